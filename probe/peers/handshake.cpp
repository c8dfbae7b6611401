// The handshake's messages and the checks that bind them. See handshake.h.
#include "peers/handshake.h"

#include <fmt/core.h>
#include <sodium.h>

#include <algorithm>
#include <span>
#include <tuple>

#include "contract/wire.h"

namespace netcheck::peers {
namespace {

/// "netcheck peers, version 1": a stranger's bytes end here, before munge is asked anything.
constexpr std::array<std::uint8_t, 4> kMagic = {'N', 'C', 'K', '1'};
constexpr std::size_t kGreetingHead = kMagic.size() + 1 + 4;
/// A cluster's or node's name: Slurm's own limits are far below.
constexpr std::size_t kMaxName = 255;

Json bytes_of(std::span<const std::byte> raw) {
  return bytes_to_json(Bytes(raw.begin(), raw.end()));
}

template <std::size_t N>
std::array<std::byte, N> array_of(const Fields& fields, std::string_view key) {
  const Bytes raw = fields.bytes(key, N);
  if (raw.size() != N) throw Malformed{fmt::format("{} has {} bytes, not {}", key, raw.size(), N)};
  std::array<std::byte, N> result{};
  std::copy(raw.begin(), raw.end(), result.begin());
  return result;
}

template <typename Message>
Json common(const Message& message, std::string_view kind) {
  return Json{{"kind", kind},
              {"cluster", message.run.cluster},
              {"job", message.run.job},
              {"restart", message.run.restart},
              {"sender", message.sender},
              {"sender_name", message.sender_name},
              {"receiver", message.receiver},
              {"receiver_name", message.receiver_name},
              {"nonce", bytes_of(message.nonce)}};
}

template <typename Message>
Message read_common(const Fields& fields, std::string_view kind) {
  const std::string found = fields.text("kind", 16);
  if (found != kind) throw Malformed{fmt::format("a {} where a {} belongs", printable(found, 16), kind)};
  Message message;
  message.run.cluster = fields.text("cluster", kMaxName);
  message.run.job = fields.u32("job");
  message.run.restart = fields.u32("restart");
  message.sender = fields.u32("sender");
  message.sender_name = fields.text("sender_name", kMaxName);
  message.receiver = fields.u32("receiver");
  message.receiver_name = fields.text("receiver_name", kMaxName);
  message.nonce = array_of<std::tuple_size_v<Nonce>>(fields, "nonce");
  return message;
}

std::string run_text(const JobRun& run) {
  return fmt::format("cluster {} job {} restart {}", printable(run.cluster, 64), run.job, run.restart);
}

template <typename Message>
Result<void> check_ends(const Message& message, const Roster& roster, std::string_view what) {
  const auto refuse = [&](std::string why) {
    return fail("accept a", std::string(what), std::move(why), "another job's, replayed or forged");
  };
  if (message.run != roster.run) {
    return refuse(fmt::format("it is of {}, this is {}", run_text(message.run), run_text(roster.run)));
  }
  if (message.sender >= roster.nodes.size() || roster.nodes[message.sender] != message.sender_name) {
    return refuse(fmt::format("its sender {} (node {}) is not in this job's node list",
                              printable(message.sender_name, 64), message.sender));
  }
  if (message.receiver != roster.self || roster.nodes[roster.self] != message.receiver_name) {
    return refuse(fmt::format("it is meant for {}, this is {}", printable(message.receiver_name, 64),
                              roster.nodes[roster.self]));
  }
  if (message.sender == roster.self) return refuse("it names this node as its sender");
  return {};
}

Result<void> check_account(const Opened& opened, uid_t own, std::string_view what) {
  if (opened.uid == own) return {};
  return fail("accept a", std::string(what),
              fmt::format("it is sealed by uid {}, not by the probe's account (uid {})", opened.uid, own),
              "the probe's account needs the same uid on every node");
}

template <typename T>
T random_bytes() {
  T result;
  randombytes_buf(result.data(), result.size());
  return result;
}

}  // namespace

SessionKey::~SessionKey() {
  sodium_memzero(bytes.data(), bytes.size());
}

Nonce random_nonce() {
  return random_bytes<Nonce>();
}

SessionKey random_session_key() {
  SessionKey key;
  randombytes_buf(key.bytes.data(), key.bytes.size());
  return key;
}

Hello make_hello(const Roster& roster, const Nonce& nonce) {
  return Hello{roster.run, roster.self, 0, roster.nodes.at(roster.self), roster.nodes.at(0), nonce};
}

Welcome make_welcome(const Roster& roster, const Hello& hello, const Nonce& nonce, const SessionKey& key) {
  return Welcome{roster.run,        roster.self, hello.sender, roster.nodes.at(roster.self),
                 hello.sender_name, hello.nonce, nonce,        key};
}

Bytes encode(const Hello& hello) {
  return to_cbor(common(hello, "hello"));
}

Bytes encode(const Welcome& welcome) {
  Json value = common(welcome, "welcome");
  value["hello_nonce"] = bytes_of(welcome.hello_nonce);
  value["key"] = bytes_of(welcome.key.bytes);
  return to_cbor(value);
}

Result<Hello> decode_hello(const Bytes& payload) {
  return read_frame(payload, "a hello", [](const Json& value) {
    const Fields fields(value, "hello");
    return read_common<Hello>(fields, "hello");
  });
}

Result<Welcome> decode_welcome(const Bytes& payload) {
  return read_frame(payload, "a welcome", [](const Json& value) {
    const Fields fields(value, "welcome");
    auto welcome = read_common<Welcome>(fields, "welcome");
    welcome.hello_nonce = array_of<std::tuple_size_v<Nonce>>(fields, "hello_nonce");
    welcome.key.bytes = array_of<32>(fields, "key");
    return welcome;
  });
}

Result<void> check(const Hello& hello, const Roster& roster) {
  return check_ends(hello, roster, "hello");
}

Result<void> check(const Welcome& welcome, const Roster& roster, const Nonce& nonce) {
  if (auto ends = check_ends(welcome, roster, "welcome"); !ends) return ends;
  if (welcome.sender != 0) {
    return fail("accept a", "welcome", fmt::format("{} does not lead this job", welcome.sender_name));
  }
  if (welcome.hello_nonce != nonce) {
    return fail("accept a", "welcome", "it answers another hello", "a replayed one");
  }
  return {};
}

Result<Hello> believe_hello(const Opened& opened, uid_t own, const Roster& roster) {
  if (auto account = check_account(opened, own, "hello"); !account) return tl::unexpected(account.error());
  auto hello = decode_hello(opened.payload);
  if (!hello) return hello;
  if (auto fits = check(*hello, roster); !fits) return tl::unexpected(fits.error());
  return hello;
}

Result<Welcome> believe_welcome(const Opened& opened, uid_t own, const Roster& roster, const Nonce& nonce) {
  if (auto account = check_account(opened, own, "welcome"); !account) return tl::unexpected(account.error());
  auto welcome = decode_welcome(opened.payload);
  if (!welcome) return welcome;
  if (auto fits = check(*welcome, roster, nonce); !fits) return tl::unexpected(fits.error());
  return welcome;
}

Bytes encode(const Greeting& greeting) {
  Bytes frame;
  frame.reserve(kGreetingHead + greeting.text.size());
  for (const auto letter : kMagic)
    frame.push_back(std::byte{letter});
  frame.push_back(static_cast<std::byte>(greeting.kind));
  for (unsigned shift = 0; shift < 32; shift += 8) {
    frame.push_back(static_cast<std::byte>((greeting.claim >> shift) & 0xffU));
  }
  for (const char letter : greeting.text)
    frame.push_back(static_cast<std::byte>(letter));
  return frame;
}

Result<Greeting> decode_greeting(const Bytes& frame) {
  const auto same = [](std::uint8_t ours, std::byte theirs) { return std::byte{ours} == theirs; };
  if (frame.size() < kGreetingHead || !std::equal(kMagic.begin(), kMagic.end(), frame.begin(), same)) {
    return fail("read a greeting from", "a peer", "it does not speak netcheck's protocol, version 1");
  }
  const auto kind = std::to_integer<std::uint8_t>(frame[kMagic.size()]);
  if (kind < 1 || kind > 3) return fail("read a greeting from", "a peer", "it is of no known kind");
  Greeting greeting;
  greeting.kind = static_cast<Greeting::Kind>(kind);
  for (unsigned i = 0; i < 4; ++i) {
    greeting.claim |= std::to_integer<std::uint32_t>(frame[kMagic.size() + 1 + i]) << (8 * i);
  }
  greeting.text.reserve(frame.size() - kGreetingHead);
  for (std::size_t i = kGreetingHead; i < frame.size(); ++i) {
    greeting.text.push_back(static_cast<char>(frame[i]));
  }
  if (greeting.kind == Greeting::Kind::refusal) greeting.text = printable(greeting.text, kMaxRefusal);
  return greeting;
}

}  // namespace netcheck::peers
