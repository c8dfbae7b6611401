// netcheck-fabric-fake.so: a fabric that moves nothing and misbehaves on demand, to prove that its host and
// the probe survive it. Each "device" it is opened with may order one fault: PHASE=FAULT, where PHASE is
// open, invite, join or run. Anything else is a lane of that name. "stranger", "portless" and "crowded" are
// what other users of the node can do to the host's sockets; they need a network namespace of their own.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <stdexcept>
#include <string>

#include "fabric/module.h"
#include "system/descriptor.h"

namespace netcheck::fabric {

namespace {

constexpr int kHostSocket = 3;

/// Sockets on the loopback interface, made with the host's own listen(), connect() and accept().
class Loopback {
 public:
  explicit Loopback(int backlog) : listener_(fresh()) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address_;
    if (::bind(listener_.get(), name(), size) != 0 || ::listen(listener_.get(), backlog) != 0 ||
        ::getsockname(listener_.get(), name(), &size) != 0)
      throw std::runtime_error("no listener on the loopback interface");
  }
  /// Calls from `port`, or any. The caller's side.
  system::Descriptor call(std::uint16_t port = 0) {
    system::Descriptor caller = fresh();
    const int yes = 1;
    ::setsockopt(caller.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_in own = address_;
    own.sin_port = htons(port);
    static_cast<void>(::bind(caller.get(), reinterpret_cast<sockaddr*>(&own), sizeof own));
    static_cast<void>(::connect(caller.get(), name(), sizeof address_));
    return caller;
  }
  void accept() { ::close(::accept(listener_.get(), nullptr, nullptr)); }

 private:
  static system::Descriptor fresh() {
    return system::Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  }
  sockaddr* name() { return reinterpret_cast<sockaddr*>(&address_); }
  sockaddr_in address_{};
  system::Descriptor listener_;
};

class Fake : public Module {
 public:
  explicit Fake(Sink* sink) : sink_(sink) {}

  void open(Options options) override {
    for (const auto& device : options.devices) {
      const auto equals = device.find('=');
      if (equals == std::string::npos)
        lanes_.push_back(device);
      else
        faults_[device.substr(0, equals)] = device.substr(equals + 1);
    }
    event_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    act("open", Ready{"fake", "1.0", lanes_, 1 << 20, {}}, 0);
  }
  void invite(Team team, std::uint32_t self) override {
    act("invite", Invited{team.id, Bytes(1, static_cast<std::byte>(self))}, team.id);
  }
  void join(Join join) override {
    act("join", Joined{join.team.id, std::chrono::milliseconds(1), "fake/none"}, join.team.id);
  }
  void run(Batch batch) override {
    Sample sample{0, {}, batch.bytes, 0};
    for (std::uint32_t i = 1; i <= batch.iterations; ++i)
      sample.done.push_back(std::chrono::milliseconds(i));
    running_ = {batch.id, sample};
    act("run", Measured{batch.id, "none", {sample}}, batch.id);
  }
  void leave(std::uint32_t) override {}
  void abandon() noexcept override {}

  bool progress() override {
    if (spinning_) return true;
    if (events_.empty()) return false;
    const Event event = events_.front();
    events_.pop_front();
    (*sink_)(event);
    return true;
  }
  bool arm() override { return events_.empty() && !spinning_; }
  [[nodiscard]] int event_descriptor() const override { return event_.get(); }
  [[nodiscard]] std::vector<std::pair<std::uint32_t, Sample>> partial() const override {
    if (running_.first == 0) return {};
    return {running_};
  }

 private:
  void act(const std::string& phase, const Event& event, std::uint32_t id) {
    const auto found = faults_.find(phase);
    const std::string fault = found == faults_.end() ? "" : found->second;
    if (fault == "wait") return;  // alive, and never an answer
    if (fault == "spin") {        // the same, with work to do for ever
      spinning_ = true;
      return;
    }
    misbehave(fault, id);
    if (fault == "refuse") return;
    events_.push_back(event);
    if (fault == "twice") events_.push_back(event);
  }

  void misbehave(const std::string& fault, std::uint32_t id) {
    if (fault == "crash") {
      static_cast<void>(::signal(SIGSEGV, SIG_DFL));  // a sanitizer would catch it
      ::raise(SIGSEGV);
    }
    if (fault == "stop") ::raise(SIGSTOP);
    if (fault == "exit") ::_exit(0);
    if (fault == "block") ::pause();
    if (fault == "throw") throw std::runtime_error("thrown by the fake");
    if (fault == "refuse") (*sink_)(Failed{id, judge::Trouble::refused, "the fake refuses", {}});
    if (fault == "words") {
      std::fprintf(stderr, "a last\nword");
      ::abort();
    }
    if (fault == "flood") flood();
    disturb(fault);
    if (fault == "nonsense") {
      const std::string nonsense("\x04\0\0\0junk", 8);
      static_cast<void>(!::send(kHostSocket, nonsense.data(), nonsense.size(), MSG_NOSIGNAL));
    }
    if (fault == "orphan" && ::fork() == 0) {  // keeps the socket open, in a session of its own
      ::setsid();
      ::alarm(5);
      ::pause();
      ::_exit(0);
    }
    if (fault == "orphan") ::_exit(3);
  }

  static void disturb(const std::string& fault) {
    if (fault == "stranger") {
      Loopback loopback(1);
      const auto caller = loopback.call();
      loopback.accept();
    }
    if (fault == "portless") {  // two from one port to another: the second finds its address in use
      constexpr std::uint16_t kPort = 5555;  // free, in a namespace of its own
      Loopback loopback(2);
      const auto first = loopback.call(kPort), second = loopback.call(kPort);
    }
    if (fault == "crowded") {
      Loopback loopback(0);
      std::deque<system::Descriptor> callers;
      for (int i = 0; i < 8; ++i)
        callers.push_back(loopback.call());
    }
  }

  /// 64 MiB to stdout and stderr, whoever reads them.
  static void flood() {
    const std::string line(4095, 'x');
    for (int i = 0; i < 8192; ++i) {
      std::fprintf(stdout, "%s\n", line.c_str());
      std::fprintf(stderr, "%s\n", line.c_str());
    }
  }

  Sink* sink_;
  std::vector<std::string> lanes_;
  std::map<std::string, std::string> faults_;
  std::deque<Event> events_;
  std::pair<std::uint32_t, Sample> running_{};
  system::Descriptor event_;
  bool spinning_ = false;
};

}  // namespace

}  // namespace netcheck::fabric

extern "C" [[gnu::visibility("default")]] netcheck::fabric::Module* netcheck_fabric_module(
    int abi, const netcheck::fabric::Hosting* hosting, char* why, std::size_t why_size) noexcept {
  if (abi == netcheck::fabric::kModuleAbi) return new netcheck::fabric::Fake(hosting->sink);
  std::snprintf(why, why_size, "built for another version of netcheck");
  return nullptr;
}
