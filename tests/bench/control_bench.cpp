// The control plane at scale: one leader and many followers on loopback, the real protocol, real munge.
// Prints how long the rendezvous and one exchange take, from the moment that leader and followers start.
//
// Run by scripts/bench-control and by hand; see --help. Followers share a few processes, each an event loop
// of its own with a clerk of its own; every follower has its own connection, credentials and channel. munged
// serves 1,024 nodes here, where a real cluster has one on each.
#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "peers/peers.h"
#include "system/loop.h"
#include "system/process.h"

namespace {

using namespace netcheck;
using namespace std::chrono_literals;
using system::Descriptor;

/// What a check sends each node, and gets back: a plan and its cards, an answer with samples.
constexpr std::size_t kDown = 4096;
constexpr std::size_t kUp = 1024;
constexpr Ns kClerkPatience = 2s;
/// Reasons that a process tells; with a late leader every follower has the same one.
constexpr std::size_t kTold = 3;
constexpr double kWantedSeconds = 3.0;

struct Settings {
  std::uint32_t followers = 1024;
  std::uint32_t processes = 4;
  unsigned workers = 2;
  std::string munge_socket;
  std::string key_file;
  std::string munged = "/usr/sbin/munged";
  unsigned munged_threads = 2;
  unsigned late_ms = 0;
  unsigned limit_seconds = 30;
};

std::function<Result<std::unique_ptr<peers::Credential>>()> credentials(const Settings& settings) {
  if (!settings.key_file.empty())
    return [file = settings.key_file] { return peers::key_credential(file, 60s); };
  return [socket = settings.munge_socket]() -> Result<std::unique_ptr<peers::Credential>> {
    return peers::munge_credential(socket);
  };
}

Roster roster_of(const Settings& settings, std::uint32_t self) {
  Roster roster{{"bench", 1, 0}, {}, self};
  for (std::uint32_t i = 0; i <= settings.followers; ++i)
    roster.nodes.push_back(fmt::format("n{}", i));
  return roster;
}

/// A munged of our own, in a folder of our own, gone with it.
class PrivateMunged {
 public:
  PrivateMunged() = default;
  PrivateMunged(const PrivateMunged&) = delete;
  PrivateMunged& operator=(const PrivateMunged&) = delete;
  ~PrivateMunged() {
    process_ = {};
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }

  [[nodiscard]] Result<std::string> start(const Settings& settings) {
    std::string name = "/tmp/netcheck-bench-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) return fail("create", name, std::strerror(errno));
    folder_ = name;
    const std::string key = folder_ + "/key", socket = folder_ + "/socket";
    std::ofstream(key) << std::string(64, 'b');
    std::filesystem::permissions(key, std::filesystem::perms::owner_read);
    system::Launch launch;
    launch.program = settings.munged;
    // --force: the folder is under /tmp, which everybody may write to.
    launch.arguments = {"--foreground",
                        "--force",
                        "--socket=" + socket,
                        "--key-file=" + key,
                        "--pid-file=" + folder_ + "/pid",
                        "--seed-file=" + folder_ + "/seed",
                        fmt::format("--num-threads={}", settings.munged_threads)};
    auto process = system::Process::start(launch);
    if (!process) return tl::unexpected(process.error());
    process_ = std::move(*process);
    const Time until = system::now() + 10s;
    while (system::now() < until) {
      if (peers::munge_credential(socket)->seal(Bytes(1))) return socket;
      ::usleep(20'000);
    }
    return fail("start", settings.munged, "it did not serve within 10 s",
                "try it by hand, or name a running one's socket with --munge-socket");
  }

 private:
  std::string folder_;
  system::Process process_;
};

/// Bound to a free port of loopback. Without `listening` it refuses, as before a prolog has begun.
Result<std::pair<Descriptor, std::uint16_t>> bind_loopback() {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  if (!socket || ::bind(socket.get(), raw, size) != 0 || ::getsockname(socket.get(), raw, &size) != 0) {
    return fail("bind", "a port of loopback", std::strerror(errno));
  }
  return std::make_pair(std::move(socket), ntohs(address.sin_port));
}

/// In a child: followers `first`, first + step, … until the leader has closed all their connections.
int run_followers(const Settings& settings, std::uint32_t first, std::uint16_t port, int start) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  char go = 0;
  if (::read(start, &go, 1) < 0) return 1;  // returns when the parent closes its end
  system::Loop loop;
  const Time deadline = system::now() + std::chrono::seconds(settings.limit_seconds);
  const auto clerk = peers::forked_clerk(loop, credentials(settings), kClerkPatience, 1);
  std::vector<std::unique_ptr<peers::Peers>> followers;
  std::size_t open = 0, told = 0;
  for (std::uint32_t node = first; node <= settings.followers; node += settings.processes) {
    const std::size_t index = followers.size();
    followers.push_back(peers::follow(loop, *clerk, roster_of(settings, node), "127.0.0.1", {port}, true,
                                      deadline, [&, index, node](const peers::Event& event) {
                                        if (std::holds_alternative<peers::Heard>(event))
                                          followers[index]->send(0, Bytes(kUp));
                                        if (std::holds_alternative<peers::Gone>(event) && --open == 0)
                                          loop.stop();
                                        if (const auto* drop = std::get_if<peers::Dropped>(&event);
                                            drop != nullptr && told++ < kTold) {
                                          fmt::print(stderr, "n{}: {}: {}\n", node, drop->from, drop->why);
                                        }
                                      }));
    ++open;
  }
  return loop.run_until(deadline) ? 0 : 1;
}

struct Figures {
  std::uint32_t proven = 0, answered = 0;
  Time started, rendezvous, exchanged;
};

/// The leader: waits for all, sends each its message, hears each one's answer.
Figures run_leader(const Settings& settings, Descriptor listener, Descriptor start) {
  Figures figures;
  system::Loop loop;
  const auto clerk = peers::forked_clerk(loop, credentials(settings), kClerkPatience, settings.workers);
  std::unique_ptr<peers::Peers> leader;
  const auto sink = [&](const peers::Event& event) {
    if (std::holds_alternative<peers::Proven>(event) && ++figures.proven == settings.followers) {
      figures.rendezvous = system::now();
      for (std::uint32_t node = 1; node <= settings.followers; ++node)
        leader->send(node, Bytes(kDown));
    }
    if (std::holds_alternative<peers::Heard>(event) && ++figures.answered == settings.followers) {
      figures.exchanged = system::now();
      loop.stop();
    }
    if (const auto* gone = std::get_if<peers::Gone>(&event)) {
      fmt::print(stderr, "n{} is gone: {}\n", gone->node, gone->why);
    }
    if (const auto* drop = std::get_if<peers::Dropped>(&event)) {
      fmt::print(stderr, "leader: {}: {}\n", drop->from, drop->why);
    }
  };
  start.reset();  // the followers begin
  figures.started = system::now();
  if (settings.late_ms > 0) ::usleep(settings.late_ms * 1000);
  if (::listen(listener.get(), 4096) != 0) return figures;
  leader = peers::lead(loop, *clerk, roster_of(settings, 0), std::move(listener), sink);
  (void)loop.run_until(figures.started + std::chrono::seconds(settings.limit_seconds));
  return figures;
}

double seconds(Ns time) {
  return std::chrono::duration<double>(time).count();
}

int report(const Settings& settings, const Figures& figures) {
  if (figures.answered < settings.followers) {
    fmt::print("control plane: only {} of {} followers proved themselves and {} answered within {} s\n",
               figures.proven, settings.followers, figures.answered, settings.limit_seconds);
    return static_cast<int>(ExitCode::inconclusive);
  }
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const double total = seconds(figures.exchanged - figures.started);
  fmt::print("control plane: {} followers in {} processes on loopback, {}\n", settings.followers,
             settings.processes, settings.key_file.empty() ? "munge" : "key file");
  fmt::print("  rendezvous {:.3f} s\n", seconds(figures.rendezvous - figures.started));
  fmt::print("  exchange   {:.3f} s ({} B down, {} B up, each)\n",
             seconds(figures.exchanged - figures.rendezvous), kDown, kUp);
  fmt::print("  total      {:.3f} s, wanted at most {:.1f} s: {}\n", total, kWantedSeconds,
             total <= kWantedSeconds ? "reached" : "missed");
  fmt::print("  leader     {:.1f} MiB resident at most\n", static_cast<double>(usage.ru_maxrss) / 1024.0);
  return static_cast<int>(ExitCode::pass);
}

int bench(Settings settings) {
  PrivateMunged munged;
  if (settings.key_file.empty() && settings.munge_socket.empty()) {
    auto socket = munged.start(settings);
    if (!socket) {
      fmt::print(stderr, "control_bench: {}\n", describe(socket.error()));
      return static_cast<int>(ExitCode::usage);
    }
    settings.munge_socket = *socket;
  }
  auto bound = bind_loopback();
  std::array<int, 2> pipe_ends{-1, -1};
  if (!bound || ::pipe(pipe_ends.data()) != 0) {
    fmt::print(stderr, "control_bench: no port or pipe: {}\n", std::strerror(errno));
    return static_cast<int>(ExitCode::usage);
  }
  Descriptor wait_end(pipe_ends[0]), start_end(pipe_ends[1]);
  std::vector<pid_t> children;
  for (std::uint32_t i = 0; i < settings.processes; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      start_end.reset();
      ::_exit(run_followers(settings, i + 1, bound->second, wait_end.get()));
    }
    if (child > 0) children.push_back(child);
  }
  const Figures figures = run_leader(settings, std::move(bound->first), std::move(start_end));
  const int code = report(settings, figures);
  if (code != 0) {
    for (const pid_t child : children)
      ::kill(child, SIGKILL);
  }
  for (const pid_t child : children)
    ::waitpid(child, nullptr, 0);  // they end with their leader, or at their own deadline
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app(
      "control_bench: how long the rendezvous of a job's nodes and one exchange take, on loopback.\n"
      "Starts a munged of its own unless --munge-socket or --key-file is given. Exit code: 0 measured,\n"
      "2 could not start, 3 did not complete within --limit.");
  app.add_option("--followers", settings.followers, "nodes beside the leader")
      ->capture_default_str()
      ->check(CLI::Range(1, 16'000));
  app.add_option("--processes", settings.processes, "processes that the followers share")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  app.add_option("--workers", settings.workers, "the leader's clerk processes")
      ->capture_default_str()
      ->check(CLI::Range(1, 16));
  app.add_option("--munge-socket", settings.munge_socket, "socket of a munged that runs already");
  app.add_option("--key-file", settings.key_file, "use this key file instead of munge");
  app.add_option("--munged", settings.munged, "the munged to start")->capture_default_str();
  app.add_option("--munged-threads", settings.munged_threads, "threads of the munged that is started")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  app.add_option("--late", settings.late_ms, "milliseconds by which the leader comes late")
      ->capture_default_str()
      ->check(CLI::Range(0, 20'000));
  app.add_option("--limit", settings.limit_seconds, "seconds after which it gives up")
      ->capture_default_str()
      ->check(CLI::Range(1, 600));
  CLI11_PARSE(app, argc, argv);
  return bench(settings);
}
