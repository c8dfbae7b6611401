// See look.h.
#include "session/look.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "contract/wire.h"
#include "judge/contradiction.h"
#include "measure/other_tree.h"
#include "topology/machine.h"

namespace netcheck::session {
namespace {

constexpr int kLookFd = 3;
/// A node of 8 GPUs, 16 ports and their switches takes 30 KiB; SR-IOV functions come on top.
constexpr std::size_t kMaxMachineBytes = 4u << 20;
/// The program runs already, from where it is started again.
constexpr Ns kLookStart = std::chrono::milliseconds(500);

/// The driver of the GPUs answers within some ten where it is kept loaded, and within seconds where it is
/// not.
constexpr Ns kDriverPatience = std::chrono::milliseconds(400);

/// What the process says.
struct Told {
  Machine machine;
  std::optional<Machine> file;  ///< NCCL's description of it
};

Told told_from_json(const Json& value) {
  const Fields fields(value, "look");
  Told told{machine_from_json(fields.object("machine")), {}};
  if (fields.has("file")) told.file = machine_from_json(fields.object("file"));
  return told;
}

Seen seen_by(const Policy& policy, Told told) {
  const topology::PortGlobs globs{policy.devices, policy.exclude};
  topology::tell_roles(told.machine, globs);
  if (!told.file) return {std::move(told.machine), {}};
  Seen seen{with_tree_of(told.machine, *told.file), judge::contradictions(told.machine, *told.file)};
  topology::tell_roles(seen.machine, globs);
  return seen;
}

}  // namespace

Look::Look(system::Loop& loop, const std::string& program, Policy policy, Time deadline,
           std::function<void(Result<Seen>)> told)
    : loop_(loop), policy_(std::move(policy)), told_(std::move(told)) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    timer_ = loop_.at(system::now(), [this] { end(fail("look at", "the hardware", "no pipe")); });
    return;
  }
  pipe_.reset(ends[0]);
  system::Descriptor child_end(ends[1]);
  system::Launch launch;
  launch.program = program;
  launch.arguments = {"look"};
  if (!policy_.nccl_topology.empty()) launch.arguments.push_back("--nccl=" + policy_.nccl_topology);
  if (!policy_.nccl_watcher.empty()) launch.arguments.push_back("--nvml=" + policy_.nccl_watcher);
  launch.environment = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C", "HOME=/nonexistent"};
  launch.descriptors = {{child_end.get(), kLookFd}};
  launch.start_patience = std::min(kLookStart, std::max(deadline - system::now(), Ns{0}));
  auto process = system::Process::start(launch);
  if (!process) {
    timer_ = loop_.at(system::now(), [this, why = process.error()] { end(tl::unexpected(why)); });
    return;
  }
  process_ = std::move(*process);
  ::fcntl(pipe_.get(), F_SETFL, O_NONBLOCK);
  loop_.watch(pipe_.get(), system::Loop::kRead, [this](std::uint8_t) { take(); });
  timer_ = loop_.at(deadline, [this] { end(fail("look at", "the hardware", "it took too long")); });
}

Look::~Look() {
  told_ = nullptr;
  if (pipe_) loop_.forget(pipe_.get());
  loop_.cancel(timer_);
}

/// To the end of the pipe: then it is whole.
void Look::take() {
  constexpr std::size_t kPart = 64u << 10;
  std::array<std::byte, kPart> part;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled by read
  const ssize_t got = ::read(pipe_.get(), part.data(), part.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got > 0) {
    text_.insert(text_.end(), part.begin(), part.begin() + got);
    if (text_.size() > kMaxMachineBytes) end(fail("look at", "the hardware", "there is too much of it"));
    return;
  }
  if (text_.empty()) return end(fail("look at", "the hardware", "its process ended without a word"));
  end(read_frame(text_, "the look at the hardware", told_from_json).map([this](Told told) {
    return seen_by(policy_, std::move(told));
  }));
}

void Look::end(Result<Seen> seen) {
  if (pipe_) loop_.forget(pipe_.get());
  pipe_.reset();
  loop_.cancel(timer_);
  process_.kill_group();
  if (auto told = std::exchange(told_, nullptr)) told(std::move(seen));
}

int look(int pipe, const std::string& nccl_topology, const std::string& nvml) {
  auto machine = topology::read_machine();
  if (!machine) {
    fmt::print(stderr, "netcheck: {}\n", describe(machine.error()));
    return static_cast<int>(ExitCode::inconclusive);
  }
  topology::ask_driver(*machine, kDriverPatience, nvml);
  Json told = Json::object();
  if (!nccl_topology.empty()) {
    if (const auto file = topology::read_trusted_recording(nccl_topology))
      told["file"] = to_json(*file);
    else
      machine->notes.push_back(describe(file.error()));
  }
  told["machine"] = to_json(*machine);
  const Bytes frame = to_cbor(told);
  std::size_t at = 0;
  while (at < frame.size()) {
    const ssize_t wrote = ::write(pipe, frame.data() + at, frame.size() - at);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return static_cast<int>(ExitCode::inconclusive);
    at += static_cast<std::size_t>(wrote);
  }
  return 0;
}

}  // namespace netcheck::session
