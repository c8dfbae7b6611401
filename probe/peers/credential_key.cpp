// Credentials by a shared key file: for sites whose Slurm uses auth/slurm, for use outside Slurm, and for
// tests. libsodium's secretbox over the time and the payload. Whoever can read the key is trusted, so the uid
// that it vouches for is our own. As the probe user.
#include <fcntl.h>
#include <fmt/core.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <ctime>

#include "peers/credential.h"
#include "system/descriptor.h"

namespace netcheck::peers {
namespace {

using Key = std::array<unsigned char, crypto_secretbox_KEYBYTES>;
constexpr Ns kLifetime = std::chrono::minutes(5);  // in a check: as munge's own default
constexpr std::size_t kStamp = 8;                  // bytes of the time: nanoseconds since 1970, little-endian
constexpr std::size_t kHexKey = std::size_t{2} * crypto_secretbox_KEYBYTES;

std::int64_t wall_clock() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

Result<std::string> read_key_file(const std::string& path) {
  const auto refuse = [&path](std::string why, std::string remedy = {}) {
    return fail("read the key file", path, std::move(why), std::move(remedy));
  };
  const system::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file) return refuse(std::strerror(errno));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return refuse(std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return refuse("it is no regular file");
  if ((status.st_mode & (S_IWGRP | S_IRWXO)) != 0) {
    return refuse(fmt::format("its mode {:04o} lets others use it", status.st_mode & 07777U),
                  "chmod 0440, with the group of the account that measures");
  }
  std::array<char, kHexKey + 2> buffer{};  // two more than a key: a line end, and one that makes it too long
  const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
  if (got < 0) return refuse(std::strerror(errno));
  std::string text(buffer.data(), static_cast<std::size_t>(got));
  sodium_memzero(buffer.data(), buffer.size());
  return text;
}

Result<Key> parse_key(const std::string& path, std::string text) {
  Key key{};
  if (text.size() == kHexKey + 1 && text.back() == '\n') text.pop_back();
  bool good = false;
  if (text.size() == key.size()) {
    std::memcpy(key.data(), text.data(), key.size());
    good = true;
  } else if (text.size() == kHexKey) {
    std::size_t length = 0;
    good = sodium_hex2bin(key.data(), key.size(), text.data(), text.size(), nullptr, &length, nullptr) == 0 &&
           length == key.size();
  }
  sodium_memzero(text.data(), text.size());
  if (!good) {
    return fail("read the key file", path, "it holds neither 32 bytes nor 64 hexadecimal digits",
                "head -c 32 /dev/urandom | xxd -p -c 64");
  }
  return key;
}

class KeyFile final : public Credential {
 public:
  KeyFile(const Key& key, Ns lifetime) : key_(key), lifetime_(lifetime) {}
  KeyFile(const KeyFile&) = delete;
  KeyFile& operator=(const KeyFile&) = delete;
  ~KeyFile() override { sodium_memzero(key_.data(), key_.size()); }

  Result<std::string> seal(const Bytes& payload) override {
    Bytes plain(kStamp + payload.size());
    const std::int64_t now = wall_clock();
    for (std::size_t i = 0; i < kStamp; ++i) {
      plain[i] = static_cast<std::byte>((static_cast<std::uint64_t>(now) >> (8 * i)) & 0xffU);
    }
    std::copy(payload.begin(), payload.end(), plain.begin() + kStamp);
    std::string token(crypto_secretbox_NONCEBYTES + crypto_secretbox_MACBYTES + plain.size(), '\0');
    auto* raw = reinterpret_cast<unsigned char*>(token.data());
    randombytes_buf(raw, crypto_secretbox_NONCEBYTES);
    crypto_secretbox_easy(raw + crypto_secretbox_NONCEBYTES,
                          reinterpret_cast<const unsigned char*>(plain.data()), plain.size(), raw,
                          key_.data());
    sodium_memzero(plain.data(), plain.size());
    return token;
  }

  Result<Opened> open(const std::string& token) override {
    constexpr std::size_t kAround = crypto_secretbox_NONCEBYTES + crypto_secretbox_MACBYTES;
    const auto refuse = [](std::string why, std::string remedy) {
      return fail("open", "a key credential", std::move(why), std::move(remedy));
    };
    if (token.size() < kAround + kStamp) return refuse("it is too short to be one", "");
    Bytes plain(token.size() - kAround);
    const auto* raw = reinterpret_cast<const unsigned char*>(token.data());
    if (crypto_secretbox_open_easy(reinterpret_cast<unsigned char*>(plain.data()),
                                   raw + crypto_secretbox_NONCEBYTES,
                                   token.size() - crypto_secretbox_NONCEBYTES, raw, key_.data()) != 0) {
      return refuse("the two nodes have different keys, or it is forged",
                    "compare the key file on both nodes");
    }
    std::uint64_t sealed = 0;
    for (std::size_t i = 0; i < kStamp; ++i) {
      sealed |= std::to_integer<std::uint64_t>(plain[i]) << (8 * i);
    }
    // Both sides' wall clocks: one may be ahead by as much as a credential may be old (as munge has it).
    const double age = static_cast<double>(wall_clock()) - static_cast<double>(sealed);
    const auto life = static_cast<double>(lifetime_.count());
    if (age > life || age < -life) {
      return refuse(
          fmt::format("the nodes' clocks differ, or it is older than its life of {:g} s: it was sealed "
                      "{:.1f} s {} this node's time",
                      life / 1e9, std::abs(age) / 1e9, age < 0 ? "after" : "before"),
          "compare the two nodes' clocks (NTP)");
    }
    Opened opened{::geteuid(), Bytes(plain.begin() + kStamp, plain.end())};
    sodium_memzero(plain.data(), plain.size());
    return opened;
  }

 private:
  Key key_;
  Ns lifetime_;
};

}  // namespace

Result<std::unique_ptr<Credential>> key_credential(const std::string& key_file, Ns lifetime) {
  if (sodium_init() < 0) return fail("start", "libsodium", "it found no source of randomness");
  auto text = read_key_file(key_file);
  if (!text) return tl::unexpected(text.error());
  auto key = parse_key(key_file, std::move(*text));
  if (!key) return tl::unexpected(key.error());
  std::unique_ptr<Credential> credential = std::make_unique<KeyFile>(*key, lifetime);
  sodium_memzero(key->data(), key->size());
  return credential;
}

Result<std::unique_ptr<Credential>> make_credential(const CredentialKind& kind) {
  if (kind.by_key) return key_credential(kind.key_file, kLifetime);
  return munge_credential(kind.munge_socket);
}

}  // namespace netcheck::peers
