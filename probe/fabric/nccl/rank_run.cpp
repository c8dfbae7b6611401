#include "fabric/nccl/rank_run.h"

#include <algorithm>

#include "measure/collective.h"

namespace netcheck::fabric::nccl {

namespace {

// In a rank's scratch memory, apart from each other so that no two share a cache line.
constexpr std::uint64_t kCounterAt = 0, kTokenOutAt = 128, kTokenInAt = 256, kScratchSize = 384;

NcclType type_of(Type type) {
  switch (type) {
    case Type::u8:
      return NcclType::u8;
    case Type::i32:
      return NcclType::i32;
    case Type::bf16:
      return NcclType::bf16;
    case Type::f32:
      break;
  }
  return NcclType::f32;
}

/// The first result that is none of the good ones.
NcclResult all_of(std::initializer_list<NcclResult> results) {
  for (const NcclResult result : results)
    if (result != NcclResult::success && result != NcclResult::in_progress) return result;
  return NcclResult::success;
}

}  // namespace

RankRun::RankRun(const Nccl& nccl, const Seat& seat, const Batch& batch, std::uint32_t ranks)
    : nccl_(nccl), seat_(seat), batch_(batch), ranks_(ranks), type_(type_of(batch.type)) {
  if (moves_blocks(batch.op)) block_ = batch.bytes / ranks;
  if (batch.op != Op::transfer) batch_.edges.clear();
  std::erase_if(batch_.edges,
                [&](const Edge& edge) { return edge.from != seat.rank && edge.to != seat.rank; });
  checked_ = !batch.verify;
}

/// Of a batch that did not end, memory may still be written to: it is not used again.
RankRun::~RankRun() {
  if (!released_) return;
  for (const Memory& memory : {work_, landing_, tables_, scratch_})
    seat_.gpu->give(memory);
  if (counter_ != nullptr) seat_.gpu->give_counter(counter_);
}

Result<std::unique_ptr<RankRun>> RankRun::start(const Nccl& nccl, const Seat& seat, const Batch& batch,
                                                std::uint32_t ranks) {
  std::unique_ptr<RankRun> run(new RankRun(nccl, seat, batch, ranks));
  if (auto ready = run->prepare(); !ready) return tl::unexpected(ready.error());
  return run;
}

Result<void> RankRun::prepare() {
  if (auto used = seat_.gpu->use(); !used) return used;
  const auto filled = contributed_stretches(batch_, ranks_, seat_.rank);
  if (batch_.verify) expected_ = expected_stretches(batch_, ranks_, seat_.rank);
  std::vector<std::byte> tables;
  for (const auto& stretch : filled)
    tables.insert(tables.end(), stretch.period.begin(), stretch.period.end());
  for (const auto& stretch : expected_)
    tables.insert(tables.end(), stretch.period.begin(), stretch.period.end());
  return take_memory(tables.size()).and_then([&] { return queue_filling(filled, tables); });
}

Result<void> RankRun::take_memory(std::size_t tables) {
  Gpu& gpu = *seat_.gpu;
  struct Need {
    Memory* memory;
    std::uint64_t size;
  };
  for (const auto& [memory, size] : {Need{&work_, batch_.bytes}, Need{&landing_, batch_.bytes},
                                     Need{&scratch_, kScratchSize}, Need{&tables_, tables}}) {
    if (size == 0) continue;
    auto taken = gpu.take(size);
    if (!taken) return tl::unexpected(taken.error());
    *memory = *taken;
  }
  auto counter = gpu.take_counter();
  if (!counter) return tl::unexpected(counter.error());
  counter_ = *counter;
  for (std::uint32_t i = 0; i < batch_.warmup + 1 + batch_.iterations; ++i) {
    auto event = gpu.event();
    if (!event) return tl::unexpected(event.error());
    events_.push_back(std::move(*event));
  }
  return {};
}

/// The tables go first: all that is written from them then waits for nothing but the stream.
Result<void> RankRun::queue_filling(const std::vector<Stretch>& filled,
                                    const std::vector<std::byte>& tables) {
  const Gpu& gpu = *seat_.gpu;
  for (const Memory* memory : {&work_, &landing_})
    if (auto set = gpu.set(seat_.stream, memory->address, kPoison, batch_.bytes); !set) return set;
  if (auto zero = gpu.set(seat_.stream, scratch_.address, std::byte{0}, kScratchSize); !zero) return zero;
  if (!tables.empty())
    if (auto up = gpu.upload(seat_.stream, tables_.address, tables); !up) return up;
  CuAddress table = tables_.address;
  const std::size_t width = size_of(batch_.type);
  const auto next_table = [&table, width](const Stretch& stretch) {
    const Gpu::Table here{table, static_cast<std::uint32_t>(stretch.period.size() / width)};
    table += stretch.period.size();
    return here;
  };
  for (const auto& stretch : filled)
    if (auto fill = gpu.fill(seat_.stream, work_.address + stretch.offset, stretch.length / width, width,
                             next_table(stretch));
        !fill)
      return fill;
  for (auto& stretch : expected_) {
    tables_of_expected_.push_back(next_table(stretch));
    stretch.period = {};
  }
  return {};
}

bool RankRun::idle() const {
  return batch_.op == Op::transfer && batch_.edges.empty();
}

// --- operations -------------------------------------------------------------------------------------------

NcclResult RankRun::operation() const {
  const NcclCalls& nccl = nccl_.calls();
  NcclComm* const all = seat_.communicator;
  CuStream* const stream = seat_.stream;
  const std::uint64_t own = block_ * seat_.rank;
  switch (batch_.op) {
    case Op::all_reduce:
      return nccl.all_reduce(work_.at(0), landing_.at(0), count(batch_.bytes), type_, NcclReduction::sum, all,
                             stream);
    case Op::reduce_scatter:
      return nccl.reduce_scatter(work_.at(0), landing_.at(own), count(block_), type_, NcclReduction::sum, all,
                                 stream);
    case Op::all_gather:
      return nccl.all_gather(work_.at(own), landing_.at(0), count(block_), type_, all, stream);
    case Op::broadcast:
      return nccl.broadcast(work_.at(0), landing_.at(0), count(batch_.bytes), type_, root(), all, stream);
    case Op::reduce:
      return nccl.reduce(work_.at(0), landing_.at(0), count(batch_.bytes), type_, NcclReduction::sum, root(),
                         all, stream);
    case Op::alltoall:
    case Op::gather:
    case Op::scatter:
      return blocks_one_way();
    case Op::transfer:
      break;
  }
  return edges(false);
}

/// Operations that NCCL has no call for, as nccl-tests does them: sends and receives in one group. The root's
/// own block goes to itself; alltoall's own crosses no network and stays.
NcclResult RankRun::blocks_one_way() const {
  const NcclCalls& nccl = nccl_.calls();
  for (std::uint32_t other = 0; other < ranks_; ++other) {
    const bool exchange = batch_.op == Op::alltoall && other != seat_.rank;
    const bool from_here =
        batch_.op == Op::gather ? other == batch_.root : batch_.op == Op::scatter && is_root();
    const bool to_here =
        batch_.op == Op::gather ? is_root() : batch_.op == Op::scatter && other == batch_.root;
    const std::uint32_t sent = batch_.op == Op::gather ? seat_.rank : other;
    const std::uint32_t landed = batch_.op == Op::scatter ? seat_.rank : other;
    NcclResult result = NcclResult::success;
    if (exchange || from_here)
      result = all_of({nccl.send(work_.at(block_ * sent), count(block_), type_, static_cast<int>(other),
                                 seat_.communicator, seat_.stream)});
    if (result == NcclResult::success && (exchange || to_here))
      result = all_of({nccl.recv(landing_.at(block_ * landed), count(block_), type_, static_cast<int>(other),
                                 seat_.communicator, seat_.stream)});
    if (result != NcclResult::success) return result;
  }
  return NcclResult::success;
}

/// Data goes with the edges, tokens against them.
NcclResult RankRun::edges(bool tokens) const {
  const NcclCalls& nccl = nccl_.calls();
  const std::uint64_t number = tokens ? 1 : count(batch_.bytes);
  const NcclType type = tokens ? NcclType::i32 : type_;
  for (const auto& edge : batch_.edges) {
    const bool sends = (edge.from == seat_.rank) != tokens;
    const int other = static_cast<int>(edge.from == seat_.rank ? edge.to : edge.from);
    const NcclResult result = sends ? nccl.send(tokens ? scratch_.at(kTokenOutAt) : work_.at(0), number, type,
                                                other, seat_.communicator, seat_.stream)
                                    : nccl.recv(tokens ? scratch_.at(kTokenInAt) : landing_.at(0), number,
                                                type, other, seat_.communicator, seat_.stream);
    if (all_of({result}) != NcclResult::success) return result;
  }
  return NcclResult::success;
}

NcclResult RankRun::barrier() const {
  if (batch_.op == Op::transfer) return edges(true);
  return nccl_.calls().all_reduce(scratch_.at(kTokenOutAt), scratch_.at(kTokenInAt), 1, NcclType::i32,
                                  NcclReduction::sum, seat_.communicator, seat_.stream);
}

// --- time -------------------------------------------------------------------------------------------------

Result<void> RankRun::mark() {
  const std::size_t step = marked_++;
  if (auto used = seat_.gpu->use(); !used) return used;
  return seat_.gpu->record(seat_.stream, events_.at(step));
}

Result<bool> RankRun::ended(std::uint32_t step) {
  auto reached = seat_.gpu->reached(events_.at(step));
  if (!reached || !*reached) return reached;
  if (step != batch_.warmup) received_ += received_per_operation();
  if (step <= batch_.warmup) return true;
  auto since = seat_.gpu->between(events_.at(batch_.warmup), events_.at(step));
  if (!since) return tl::unexpected(since.error());
  // Times are single-precision milliseconds: far from the barrier two that are close may come out equal.
  done_.push_back(done_.empty() ? std::max(Ns::zero(), *since) : std::max(done_.back(), *since));
  return true;
}

/// NCCL tells nobody how much of an operation has come: what counts is what the definition of each needs.
std::uint64_t RankRun::received_per_operation() const {
  const std::uint64_t others = ranks_ - 1;
  switch (batch_.op) {
    case Op::all_reduce:
      return 2 * others * (batch_.bytes / ranks_);
    case Op::all_gather:
    case Op::reduce_scatter:
    case Op::alltoall:
      return others * block_;
    case Op::broadcast:
      return is_root() ? 0 : batch_.bytes;
    case Op::reduce:
      return is_root() && others > 0 ? batch_.bytes : 0;
    case Op::gather:
      return is_root() ? others * block_ : 0;
    case Op::scatter:
      return is_root() ? 0 : block_;
    case Op::transfer:
      break;
  }
  const auto arrives = [this](const Edge& edge) { return edge.to == seat_.rank; };
  return std::any_of(batch_.edges.begin(), batch_.edges.end(), arrives) ? batch_.bytes : 0;
}

// --- the check --------------------------------------------------------------------------------------------

Result<void> RankRun::check() {
  Gpu& gpu = *seat_.gpu;
  if (auto used = gpu.use(); !used) return used;
  const std::size_t width = size_of(batch_.type);
  const CuAddress counter = scratch_.address + kCounterAt;
  for (std::size_t i = 0; i < expected_.size(); ++i)
    if (auto counted = gpu.count_other(seat_.stream, landing_.address + expected_[i].offset,
                                       expected_[i].length / width, width, tables_of_expected_[i], counter);
        !counted)
      return counted;
  if (auto down = gpu.download(seat_.stream, counter_, counter); !down) return down;
  auto event = gpu.event();
  if (!event) return tl::unexpected(event.error());
  at_check_ = std::move(*event);
  return gpu.record(seat_.stream, *at_check_);
}

Result<bool> RankRun::checked() {
  if (checked_) return true;
  auto reached = seat_.gpu->reached(*at_check_);
  if (!reached || !*reached) return reached;
  checked_ = true;
  return true;
}

Sample RankRun::sample() const {
  Sample sample;
  sample.rank = seat_.rank;
  sample.received = received_;
  if (batch_.verify && checked_) sample.wrong = *counter_;
  const auto arrives = [this](const Edge& edge) { return edge.to == seat_.rank; };
  if (batch_.op != Op::transfer || std::any_of(batch_.edges.begin(), batch_.edges.end(), arrives))
    sample.done = done_;
  return sample;
}

}  // namespace netcheck::fabric::nccl
