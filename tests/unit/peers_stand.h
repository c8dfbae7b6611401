// What the tests of peers stand on: one loop, listeners on loopback, a clerk without children, key files, and
// strangers who speak raw bytes.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sodium.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "peers/handshake.h"
#include "peers/peers.h"
#include "system/loop.h"

namespace netcheck::peers::test {

using namespace std::chrono_literals;

inline Bytes bytes(std::string_view text) {
  Bytes result(text.size());
  std::transform(text.begin(), text.end(), result.begin(), [](char c) { return static_cast<std::byte>(c); });
  return result;
}

inline std::string text(const Bytes& raw) {
  std::string result;
  for (const std::byte letter : raw)
    result.push_back(static_cast<char>(letter));
  return result;
}

/// A folder of its own that goes with the test.
class Folder {
 public:
  Folder() {
    std::string name = "/tmp/netcheck-peers-XXXXXX";
    if (::mkdtemp(name.data()) != nullptr) path_ = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string path(const std::string& name) const { return path_ + "/" + name; }
  [[nodiscard]] const std::string& self() const { return path_; }
  std::string write(const std::string& name, const std::string& content, unsigned mode = 0600) const {
    std::ofstream(path(name), std::ios::binary) << content;
    std::filesystem::permissions(path(name), static_cast<std::filesystem::perms>(mode));
    return path(name);
  }

 private:
  std::string path_;
};

/// A clerk that does its work at once, from the loop: no processes, so that a test sees only the protocol.
class DirectClerk final : public Clerk {
 public:
  DirectClerk(system::Loop& loop, std::unique_ptr<Credential> credential)
      : loop_(loop), credential_(std::move(credential)) {}

  void look_up(std::string name, std::function<void(Result<std::vector<std::string>>)> answer) override {
    loop_.post([this, name, answer = std::move(answer)] {
      answer(addresses.empty() ? Result<std::vector<std::string>>(fail("look up", name, "unknown"))
                               : addresses);
    });
  }
  void seal(Bytes payload, std::function<void(Result<std::string>)> answer) override {
    ++seals;
    loop_.post([this, payload = std::move(payload), answer = std::move(answer)] {
      if (seal_error) return answer(tl::unexpected(*seal_error));
      answer(credential_->seal(payload));
    });
  }
  void open(std::string token, std::function<void(Result<Opened>)> answer) override {
    ++opens;
    loop_.post([this, token = std::move(token), answer = std::move(answer)] {
      auto opened = credential_->open(token);
      if (opened && uid) opened->uid = *uid;
      answer(std::move(opened));
    });
  }

  std::vector<std::string> addresses{"127.0.0.1"};
  std::optional<uid_t> uid;  ///< instead of the true one
  std::optional<Error> seal_error;
  int seals = 0, opens = 0;

 private:
  system::Loop& loop_;
  std::unique_ptr<Credential> credential_;
};

/// A socket bound to a free port of loopback; listening unless told otherwise.
struct Port {
  explicit Port(bool listening = true) {
    socket.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* raw = reinterpret_cast<sockaddr*>(&address);
    if (::bind(socket.get(), raw, size) == 0 && ::getsockname(socket.get(), raw, &size) == 0) {
      number = ntohs(address.sin_port);
    }
    if (listening) listen();
  }
  void listen() const { EXPECT_EQ(::listen(socket.get(), 256), 0); }
  system::Descriptor socket;
  std::uint16_t number = 0;
};

/// What one side was told.
struct Diary {
  std::vector<Event> events;

  Sink sink() {
    return [this](Event event) { events.push_back(std::move(event)); };
  }
  template <typename T>
  [[nodiscard]] std::vector<T> all() const {
    std::vector<T> result;
    for (const Event& event : events) {
      if (const T* found = std::get_if<T>(&event)) result.push_back(*found);
    }
    return result;
  }
  template <typename T>
  [[nodiscard]] std::size_t count() const {
    return all<T>().size();
  }
  /// Some Dropped whose reason contains `words`.
  [[nodiscard]] bool dropped(std::string_view words) const {
    for (const Dropped& drop : all<Dropped>()) {
      if (drop.why.find(words) != std::string::npos) return true;
    }
    return false;
  }
  [[nodiscard]] std::string told() const {
    std::string lines;
    for (const Dropped& drop : all<Dropped>())
      lines += drop.from + ": " + drop.why + "\n";
    return lines;
  }
};

/// A client that says what it likes. Blocking connect and send (loopback takes them), reads what is there.
class Stranger {
 public:
  explicit Stranger(std::uint16_t port) {
    socket_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  explicit Stranger(system::Descriptor socket) : socket_(std::move(socket)) {}

  void say(const Bytes& raw) {
    (void)!::send(socket_.get(), raw.data(), raw.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  /// As a frame: with its length in front.
  void say_frame(const Bytes& frame) {
    Bytes raw;
    for (unsigned shift = 0; shift < 32; shift += 8)
      raw.push_back(static_cast<std::byte>((frame.size() >> shift) & 0xffU));
    raw.insert(raw.end(), frame.begin(), frame.end());
    say(raw);
  }
  void read() {
    std::array<std::byte, 4096> chunk{};
    for (;;) {
      const ssize_t got = ::recv(socket_.get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
      if (got == 0 || (got < 0 && errno != EAGAIN)) closed_ = true;
      if (got <= 0) return;
      heard_.insert(heard_.end(), chunk.begin(), chunk.begin() + got);
    }
  }
  /// The first whole frame heard and not yet taken.
  std::optional<Bytes> frame() {
    read();
    if (heard_.size() < 4) return std::nullopt;
    std::size_t length = 0;
    for (std::size_t i = 0; i < 4; ++i)
      length |= std::to_integer<std::size_t>(heard_[i]) << (8 * i);
    if (heard_.size() < 4 + length) return std::nullopt;
    Bytes result(heard_.begin() + 4, heard_.begin() + 4 + static_cast<std::ptrdiff_t>(length));
    heard_.erase(heard_.begin(), heard_.begin() + 4 + static_cast<std::ptrdiff_t>(length));
    return result;
  }
  bool closed() {
    read();
    return closed_;
  }

 private:
  system::Descriptor socket_;
  Bytes heard_;
  bool closed_ = false;
};

inline Roster roster(std::uint32_t self, std::vector<std::string> nodes = {"n1", "n2", "n3"}) {
  return Roster{{"alps", 4711, 0}, std::move(nodes), self};
}

/// One loop, one key, and the parties that a test puts on it.
class PeersTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_GE(sodium_init(), 0); }

  std::unique_ptr<Credential> key(const std::string& letter = "k", Ns lifetime = 60s) {
    const std::string name = "key-" + letter;
    auto made = key_credential(folder.write(name, std::string(32, letter.at(0))), lifetime);
    EXPECT_TRUE(made.has_value());
    return std::move(*made);
  }
  std::unique_ptr<DirectClerk> direct(const std::string& letter = "k", Ns lifetime = 60s) {
    return std::make_unique<DirectClerk>(loop, key(letter, lifetime));
  }
  std::unique_ptr<Peers> leader(Port& port, Roster who = roster(0)) {
    return lead(loop, *clerk, std::move(who), std::move(port.socket), leading.sink());
  }
  std::unique_ptr<Peers> follower(std::vector<std::uint16_t> ports, Diary& diary, Roster who = roster(1)) {
    return follow(loop, *clerk, std::move(who), "n1", std::move(ports), true, system::now() + 20s,
                  diary.sink());
  }
  /// Turns the loop until `done`, for five seconds at most: nothing here takes more than three.
  template <typename Done>
  [[nodiscard]] bool until(Done done) {
    const Time limit = system::now() + 5s;
    while (!done()) {
      if (system::now() >= limit) return false;
      loop.turn(std::min(limit, system::now() + 10ms));
    }
    return true;
  }
  void turn_for(Ns time) {
    const Time end = system::now() + time;
    while (system::now() < end)
      loop.turn(end);
  }

  Folder folder;
  system::Loop loop;
  std::unique_ptr<DirectClerk> clerk = direct();
  Diary leading, following;
};

}  // namespace netcheck::peers::test
