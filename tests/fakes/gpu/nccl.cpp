// A stand-in for libnccl.so.2 over the stand-in for libcuda: communicators that do not block, real traffic
// between real processes. As strict as NCCL where the module could be careless: a communicator that is in
// progress takes no call, a stream must be of its communicator's device.
//
// fake.ini: version=CODE (default 22809), advertise=IPV4 (what the unique id shows), init=hang|error,
// async_error=N (the N-th operation of a communicator ends in ncclRemoteError), stall=N (it never ends),
// wrong_element=N (of what every operation receives, that element is wrong), slow=BYTES per second.
#include <arpa/inet.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "fabric/nccl/abi.h"
#include "faults.h"
#include "stream.h"
#include "wire.h"

namespace netcheck::fabric::nccl {

struct NcclComm {
  int rank = 0, ranks = 0, device = -1;
  std::atomic<NcclResult> state = NcclResult::in_progress;
  std::unique_ptr<netcheck::fakes::Wire> wire;
  std::atomic<int> operations = 0;
};

namespace {

using netcheck::Op;
using netcheck::Type;
using netcheck::fakes::fault;
using netcheck::fakes::fault_number;
using netcheck::fakes::Wire;

struct Call {
  NcclComm* comm = nullptr;
  CuStream* stream = nullptr;
  Op op = Op::transfer;  // transfer: a send or a receive
  Type type = Type::u8;
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::size_t bytes = 0;  // `count` elements
  int peer = 0;           // or root
  bool receives = false;
};
struct Init {
  NcclComm* comm;
  NcclComm** place;  // written to once more when it ends, as NCCL does
  sockaddr_in root;
};

thread_local int depth = 0;
thread_local std::vector<Call> calls;
thread_local std::vector<Init> inits;
std::mutex words_mutex;
std::string last_words;

void say_last(const std::string& words) {
  const std::lock_guard lock(words_mutex);
  last_words = words;
}

/// As NCCL writes them, to where it is told.
void log(int device, const std::string& line) {
  static std::FILE* const file = [] {
    const char* level = std::getenv("NCCL_DEBUG");
    const char* path = std::getenv("NCCL_DEBUG_FILE");
    return level == nullptr || path == nullptr ? nullptr : std::fopen(path, "w");
  }();
  if (file == nullptr) return;
  std::fprintf(file, "fakehost:%d:%d [%d] NCCL INFO %s\n", ::getpid(), ::gettid(), device, line.c_str());
  std::fflush(file);
}

/// " [0]eth0:10.1.0.7<0> [1]eth1:10.1.1.7<0>"
std::string cards() {
  std::string list;
  int number = 0;
  for (const auto& nic : netcheck::fakes::nics()) {
    char address[INET_ADDRSTRLEN] = "";
    ::inet_ntop(AF_INET, &nic.address, address, sizeof address);
    list += " [" + std::to_string(number++) + "]" + nic.name + ":" + address + "<0>";
  }
  return list;
}

void init(const Init& init) {
  if (fault("init") == "hang")
    while (true)
      ::pause();
  NcclComm& comm = *init.comm;
  try {
    if (fault("init") == "error") throw netcheck::fakes::Lost{"Call to connect returned No route to host"};
    comm.wire = std::make_unique<Wire>(init.root, comm.ranks, comm.rank, comm.device);
    log(comm.device, "NET/Socket : Using" + cards());
    for (const std::string& way : comm.wire->ways())
      log(comm.device, way);
    log(comm.device, "Init timings - ncclCommInitRankConfig: rank " + std::to_string(comm.rank) + " nranks " +
                         std::to_string(comm.ranks) +
                         " total 0.02 (kernels 0.00, alloc 0.00, bootstrap 0.01, allgathers 0.00, topo 0.01, "
                         "graphs 0.00, connections 0.00, rest 0.00)");
    *init.place = init.comm;
    comm.state = NcclResult::success;
  } catch (const netcheck::fakes::Lost& lost) {
    say_last(lost.what);
    *init.place = init.comm;
    comm.state = NcclResult::system_error;
  }
}

// --- what runs on a stream --------------------------------------------------------------------------------

void spoil(std::byte* data, std::size_t bytes) {
  static const long element = fault_number("wrong_element", -1);
  const auto at = static_cast<std::size_t>(element) * 4;
  if (element >= 0 && bytes > at + 4) data[at] ^= std::byte{0x11};
}

void run_collective(const Call& call) {
  NcclComm& comm = *call.comm;
  const auto ranks = static_cast<std::size_t>(comm.ranks);
  const auto rank = static_cast<std::size_t>(comm.rank);
  const bool splits = call.op == Op::all_gather || call.op == Op::reduce_scatter;
  std::size_t size = call.bytes * (splits ? ranks : 1);
  if (!splits) size = (size + 4 * ranks - 1) / (4 * ranks) * (4 * ranks);  // all_reduce goes in n blocks
  std::vector<std::byte> work(size);
  const std::size_t sent = call.op == Op::reduce_scatter ? size : call.bytes;
  if (call.op != Op::broadcast || call.peer == comm.rank)
    std::memcpy(&work[call.op == Op::all_gather ? call.bytes * rank : 0], call.from, sent);
  comm.wire->collective(call.op, call.type, static_cast<std::uint32_t>(call.peer), work);
  if (call.op == Op::reduce && call.peer != comm.rank) return;
  const std::size_t result = call.op == Op::all_gather ? size : call.bytes;
  std::memcpy(call.to, &work[call.op == Op::reduce_scatter ? call.bytes * rank : 0], result);
  spoil(call.to, result);
}

void run(const std::vector<Call>& together) {
  NcclComm& comm = *together.front().comm;
  const int number = ++comm.operations;
  if (number == fault_number("stall", 0))
    while (true)
      ::pause();
  try {
    if (number == fault_number("async_error", 0))
      throw netcheck::fakes::Lost{"NET/IB: Got completion from peer 10.0.0.2<4791> with status=12 opcode=0"};
    if (together.front().op != Op::transfer) return run_collective(together.front());
    std::vector<Wire::Out> outs;
    std::vector<Wire::In> ins;
    for (const Call& call : together)
      if (call.receives)
        ins.push_back({call.peer, call.to, call.bytes});
      else
        outs.push_back({call.peer, call.from, call.bytes});
    comm.wire->exchange(outs, ins);
    for (const auto& in : ins)
      spoil(in.data, in.size);
  } catch (const netcheck::fakes::Lost& lost) {
    say_last(lost.what);
    comm.state = NcclResult::remote_error;
    while (true)  // the kernel spins on
      ::pause();
  }
}

void launch(std::vector<Call> group) {
  std::map<NcclComm*, std::vector<Call>> by_comm;
  for (const Call& call : group)
    by_comm[call.comm].push_back(call);
  for (auto& [comm, list] : by_comm) {
    std::function<void()> work = [list = list] { run(list); };
    netcheck_fake_enqueue(list.front().stream, &work);
    NcclResult launching = NcclResult::in_progress;
    comm->state.compare_exchange_strong(launching, NcclResult::success);
  }
}

NcclResult end_group() {
  for (const auto& one : inits)
    std::thread(init, one).detach();
  for (const auto& call : calls) {
    NcclResult ready = NcclResult::success;  // an error stays
    call.comm->state.compare_exchange_strong(ready, NcclResult::in_progress);
  }
  const bool any = !inits.empty() || !calls.empty();
  if (!calls.empty()) std::thread(launch, std::move(calls)).detach();
  inits.clear();
  calls.clear();
  return any ? NcclResult::in_progress : NcclResult::success;
}

NcclResult add(const Call& call) {
  const NcclResult state = call.comm->state;
  if (state == NcclResult::in_progress) return NcclResult::invalid_argument;
  if (state != NcclResult::success) return state;
  if (netcheck_fake_device_of(call.stream) != call.comm->device) return NcclResult::invalid_usage;
  calls.push_back(call);
  return depth > 0 ? NcclResult::success : end_group();
}

Type type_of(NcclType type) {
  switch (type) {
    case NcclType::u8:
      return Type::u8;
    case NcclType::i32:
      return Type::i32;
    case NcclType::bf16:
      return Type::bf16;
    case NcclType::f32:
      break;
  }
  return Type::f32;
}

Call call_of(NcclComm* comm, CuStream* stream, Op op, NcclType type, const void* from, void* to,
             std::size_t count, int peer = 0) {
  return {.comm = comm,
          .stream = stream,
          .op = op,
          .type = type_of(type),
          .from = static_cast<const std::byte*>(from),
          .to = static_cast<std::byte*>(to),
          .bytes = count * netcheck::size_of(type_of(type)),
          .peer = peer,
          .receives = from == nullptr};
}

constexpr std::size_t kShown = 8, kTrue = 64;  // where in the unique id

}  // namespace
}  // namespace netcheck::fabric::nccl

#define EXPORT extern "C" [[gnu::visibility("default")]]
using namespace netcheck::fabric::nccl;
using netcheck::fakes::fault;
using netcheck::fakes::fault_number;

EXPORT NcclResult ncclGetVersion(int* version) {
  *version = static_cast<int>(fault_number("version", 22'809));
  return NcclResult::success;
}
EXPORT NcclResult ncclGetUniqueId(NcclId* id) {
  const sockaddr_in root = netcheck::fakes::open_root();
  sockaddr_in shown = root;
  if (!fault("advertise").empty()) ::inet_pton(AF_INET, fault("advertise").c_str(), &shown.sin_addr);
  std::memset(id, 0x5a, sizeof *id);
  std::memcpy(&id->bytes[kShown], &shown, sizeof shown);
  std::memcpy(&id->bytes[kTrue], &root, sizeof root);
  return NcclResult::success;
}
EXPORT NcclResult ncclCommInitRankConfig(NcclComm** comm, int ranks, NcclId id, int rank,
                                         NcclConfig* config) {
  if (config->size != sizeof *config || config->magic != 0xcafebeef || config->blocking != 0)
    return NcclResult::invalid_argument;
  if (netcheck_fake_current_device() < 0) return NcclResult::unhandled_cuda_error;
  auto* made = new NcclComm;
  made->rank = rank;
  made->ranks = ranks;
  made->device = netcheck_fake_current_device();
  *comm = made;
  sockaddr_in root{};
  std::memcpy(&root, &id.bytes[kTrue], sizeof root);
  inits.push_back({made, comm, root});
  return depth > 0 ? NcclResult::success : end_group();
}
EXPORT NcclResult ncclCommGetAsyncError(NcclComm* comm, NcclResult* state) {
  *state = comm->state;
  return NcclResult::success;
}
EXPORT const char* ncclGetErrorString(NcclResult result) {
  switch (result) {
    case NcclResult::remote_error:
      return "remote process exited or there was a network error";
    case NcclResult::system_error:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case NcclResult::invalid_argument:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    default:
      return "an error of the stand-in";
  }
}
EXPORT const char* ncclGetLastError(NcclComm*) {
  thread_local std::string copy;
  const std::lock_guard lock(words_mutex);
  copy = last_words;
  return copy.c_str();
}
EXPORT NcclResult ncclGroupStart() {
  ++depth;
  return NcclResult::success;
}
EXPORT NcclResult ncclGroupEnd() {
  return --depth > 0 ? NcclResult::success : end_group();
}
EXPORT NcclResult ncclAllReduce(const void* from, void* to, std::size_t count, NcclType type, NcclReduction,
                                NcclComm* comm, CuStream* stream) {
  return add(call_of(comm, stream, Op::all_reduce, type, from, to, count));
}
EXPORT NcclResult ncclReduceScatter(const void* from, void* to, std::size_t count, NcclType type,
                                    NcclReduction, NcclComm* comm, CuStream* stream) {
  return add(call_of(comm, stream, Op::reduce_scatter, type, from, to, count));
}
EXPORT NcclResult ncclAllGather(const void* from, void* to, std::size_t count, NcclType type, NcclComm* comm,
                                CuStream* stream) {
  return add(call_of(comm, stream, Op::all_gather, type, from, to, count));
}
EXPORT NcclResult ncclBroadcast(const void* from, void* to, std::size_t count, NcclType type, int root,
                                NcclComm* comm, CuStream* stream) {
  return add(call_of(comm, stream, Op::broadcast, type, from, to, count, root));
}
EXPORT NcclResult ncclReduce(const void* from, void* to, std::size_t count, NcclType type, NcclReduction,
                             int root, NcclComm* comm, CuStream* stream) {
  return add(call_of(comm, stream, Op::reduce, type, from, to, count, root));
}
EXPORT NcclResult ncclSend(const void* from, std::size_t count, NcclType type, int peer, NcclComm* comm,
                           CuStream* stream) {
  return add(call_of(comm, stream, Op::transfer, type, from, nullptr, count, peer));
}
EXPORT NcclResult ncclRecv(void* to, std::size_t count, NcclType type, int peer, NcclComm* comm,
                           CuStream* stream) {
  return add(call_of(comm, stream, Op::transfer, type, nullptr, to, count, peer));
}
