// Credentials: the key file's, and munge's against munged daemons of the test's own. Where munged is not
// installed its tests are skipped, visibly.
#include <gmock/gmock.h>
#include <munge.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <csignal>

#include "peers_stand.h"
#include "system/process.h"

namespace netcheck::peers::test {
namespace {

using ::testing::HasSubstr;

class PeersKeyCredential : public PeersTest {};

TEST_F(PeersKeyCredential, OpensWhatItSealed) {
  const auto opened = key()->open(*key()->seal(bytes("hello")));
  ASSERT_TRUE(opened.has_value());
  EXPECT_EQ(text(opened->payload), "hello");
  EXPECT_EQ(opened->uid, ::geteuid());
}

TEST_F(PeersKeyCredential, TakesRawAndHexadecimalKeys) {
  const auto raw = key_credential(folder.write("raw", std::string(32, 'k')), 60s);
  std::string hex;
  for (int i = 0; i < 32; ++i)
    hex += "6b";  // 'k' in ASCII
  const auto written = key_credential(folder.write("hex", hex + "\n"), 60s);
  ASSERT_TRUE(raw && written);
  EXPECT_TRUE((*written)->open(*(*raw)->seal(bytes("x"))));
}

TEST_F(PeersKeyCredential, RefusesBadKeyFiles) {
  EXPECT_FALSE(key_credential(folder.path("absent"), 60s));
  EXPECT_FALSE(key_credential(folder.self(), 60s));
  for (const std::size_t size : {0U, 31U, 33U, 63U, 66U})
    EXPECT_FALSE(key_credential(folder.write("sized", std::string(size, 'a')), 60s)) << size;
  EXPECT_FALSE(key_credential(folder.write("letters", std::string(64, 'z')), 60s));
  const auto open_to_all = key_credential(folder.write("open", std::string(32, 'k'), 0644), 60s);
  ASSERT_FALSE(open_to_all);
  EXPECT_THAT(describe(open_to_all.error()), HasSubstr("0644"));
}

TEST_F(PeersKeyCredential, RefusesAnotherKeyAndAnyChange) {
  const std::string token = *key()->seal(bytes("hello"));
  EXPECT_FALSE(key("x")->open(token));
  for (std::size_t i = 0; i < token.size(); ++i) {
    std::string forged = token;
    forged[i] = static_cast<char>(forged[i] ^ 1);
    EXPECT_FALSE(key()->open(forged)) << "byte " << i;
  }
  EXPECT_FALSE(key()->open(""));
  EXPECT_FALSE(key()->open(token.substr(0, 47)));
}

/// A token as the format has it, sealed `ahead` of now: nonce, then secretbox(time, payload).
std::string token_from(std::chrono::seconds ahead) {
  const std::string secret(32, 'k');
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const std::int64_t stamp = (std::int64_t{now.tv_sec} + ahead.count()) * 1'000'000'000;
  std::string plain;
  for (unsigned shift = 0; shift < 64; shift += 8)
    plain.push_back(static_cast<char>((static_cast<std::uint64_t>(stamp) >> shift) & 0xffU));
  plain += "payload";
  std::string token(crypto_secretbox_NONCEBYTES + crypto_secretbox_MACBYTES + plain.size(), '\0');
  auto* raw = reinterpret_cast<unsigned char*>(token.data());
  crypto_secretbox_easy(raw + crypto_secretbox_NONCEBYTES,
                        reinterpret_cast<const unsigned char*>(plain.data()), plain.size(), raw,
                        reinterpret_cast<const unsigned char*>(secret.data()));
  return token;
}

TEST_F(PeersKeyCredential, RefusesClocksThatDifferByMoreThanItsLife) {
  EXPECT_TRUE(key()->open(token_from(0s)));
  EXPECT_TRUE(key()->open(token_from(50s)));
  EXPECT_TRUE(key()->open(token_from(-50s)));
  const auto late = key()->open(token_from(-600s)), early = key()->open(token_from(600s));
  ASSERT_FALSE(late);
  ASSERT_FALSE(early);
  EXPECT_THAT(describe(late.error()), HasSubstr("before this node's time"));
  EXPECT_THAT(describe(early.error()), HasSubstr("after this node's time"));
}

/// A munged of its own, with a key of its own.
class Munged {
 public:
  Munged(const Folder& folder, const std::string& name, char key) : socket_(folder.path(name + ".socket")) {
    system::Launch launch;
    launch.program = "/usr/sbin/munged";
    // --force: the folder is under /tmp, which everybody may write to.
    launch.arguments = {"--foreground",
                        "--force",
                        "--socket=" + socket_,
                        "--key-file=" + folder.write(name + ".key", std::string(64, key)),
                        "--pid-file=" + folder.path(name + ".pid"),
                        "--seed-file=" + folder.path(name + ".seed"),
                        "--num-threads=1"};
    auto started = system::Process::start(launch);
    if (started) process_ = std::move(*started);
    const Time limit = system::now() + 10s;
    while (!munge_credential(socket_)->seal(bytes("ready?")) && system::now() < limit)
      ::usleep(10'000);
  }
  Munged(const Munged&) = delete;
  Munged& operator=(const Munged&) = delete;
  ~Munged() { signal(SIGCONT); }
  void signal(int number) const {
    if (process_.pid() > 0) ::kill(process_.pid(), number);
  }
  void end() {
    process_.kill_group();
    (void)process_.wait(system::now() + 5s);
  }
  [[nodiscard]] const std::string& socket() const { return socket_; }
  [[nodiscard]] std::unique_ptr<Credential> credential() const { return munge_credential(socket_); }

 private:
  std::string socket_;
  system::Process process_;
};

class PeersMungeCredential : public PeersTest {
 protected:
  void SetUp() override {
    PeersTest::SetUp();
    if (::access("/usr/sbin/munged", X_OK) != 0) GTEST_SKIP() << "munged is not installed";
    ::chmod(folder.self().c_str(), 0755);  // another account must reach the socket
    munged = std::make_unique<Munged>(folder, "one", 'a');
  }
  std::unique_ptr<Munged> munged;
};

TEST_F(PeersMungeCredential, OpensWhatItSealedAndKnowsWhoDid) {
  const auto token = munged->credential()->seal(bytes("hello"));
  ASSERT_TRUE(token.has_value()) << describe(token.error());
  const auto opened = munged->credential()->open(*token);
  ASSERT_TRUE(opened.has_value()) << describe(opened.error());
  EXPECT_EQ(text(opened->payload), "hello");
  EXPECT_EQ(opened->uid, ::geteuid());
}

TEST_F(PeersMungeCredential, OpensACredentialOnce) {
  const auto token = munged->credential()->seal(bytes("hello"));
  ASSERT_TRUE(munged->credential()->open(*token));
  const auto again = munged->credential()->open(*token);
  ASSERT_FALSE(again);
  EXPECT_THAT(describe(again.error()), HasSubstr("has been opened before"));
}

TEST_F(PeersMungeCredential, AnotherAccountCannotOpenIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another account";
  const auto token = munged->credential()->seal(bytes("hello"));
  const auto theirs = munged->credential();
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setresgid(65534, 65534, 65534) != 0 || ::setresuid(65534, 65534, 65534) != 0) ::_exit(2);
    const auto opened = theirs->open(*token);
    const bool named = !opened && opened.error().reason.find("another account") != std::string::npos;
    ::_exit(opened ? 1 : named ? 0 : 3);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(munged->credential()->open(*token));  // and it did not use it up
}

TEST_F(PeersMungeCredential, DifferentKeysAreNamed) {
  const Munged other(folder, "two", 'b');
  const auto opened = other.credential()->open(*munged->credential()->seal(bytes("hello")));
  ASSERT_FALSE(opened);
  EXPECT_THAT(describe(opened.error()), HasSubstr("different munge keys"));
}

TEST_F(PeersMungeCredential, GarbageIsRefused) {
  for (const char* garbage : {"", "MUNGE:", "MUNGE:AAAA:", "not munge at all"})
    EXPECT_FALSE(munged->credential()->open(garbage)) << garbage;
}

TEST_F(PeersMungeCredential, AnExpiredCredentialSpeaksOfClocks) {
  // Ours live a minute; one that lives a second is sealed with libmunge itself.
  munge_ctx_t context = ::munge_ctx_create();
  ::munge_ctx_set(context, MUNGE_OPT_SOCKET, munged->socket().c_str());
  ::munge_ctx_set(context, MUNGE_OPT_TTL, 1);
  std::vector<std::string> tokens;
  for (int i = 0; i < 40; ++i) {  // each can be tried once
    char* token = nullptr;
    ASSERT_EQ(::munge_encode(&token, context, "x", 1), EMUNGE_SUCCESS);
    tokens.emplace_back(token);
    std::free(token);
  }
  ::munge_ctx_destroy(context);
  for (const auto& token : tokens) {
    const auto opened = munged->credential()->open(token);
    if (!opened) {
      EXPECT_THAT(describe(opened.error()),
                  HasSubstr("the nodes' clocks differ, or it is older than its life"));
      EXPECT_THAT(describe(opened.error()), HasSubstr("s before this node's time"));
      return;
    }
    ::usleep(100'000);
  }
  FAIL() << "a credential that lives a second was still good after four";
}

TEST_F(PeersMungeCredential, AMissingMungedIsNamedAtOnceWhetherItsSocketIsThereOrNot) {
  const auto absent = munge_credential(folder.path("absent"))->seal(bytes("hello"));
  ASSERT_FALSE(absent);
  EXPECT_THAT(describe(absent.error()), HasSubstr("not running on this node"));
  munged->end();  // killed: its socket stays
  const auto stale = munge_credential(munged->socket())->seal(bytes("hello"));
  ASSERT_FALSE(stale);
  EXPECT_THAT(describe(stale.error()), HasSubstr("not running on this node"));
  EXPECT_THAT(describe(stale.error()), HasSubstr(munged->socket()));
}

TEST_F(PeersMungeCredential, AStoppedMungedCostsTheClerksPatienceAndNoMore) {
  const auto clerk_ = forked_clerk(
      loop, [this]() -> Result<std::unique_ptr<Credential>> { return munged->credential(); }, 300ms, 1);
  munged->signal(SIGSTOP);
  std::optional<Result<std::string>> stuck, good;
  clerk_->seal(bytes("hello"), [&](Result<std::string> answer) { stuck = std::move(answer); });
  ASSERT_TRUE(until([&] { return stuck.has_value(); }));
  ASSERT_FALSE(stuck->has_value());
  EXPECT_THAT(describe(stuck->error()), HasSubstr("munged (or the key file) did not answer within 300ms"));
  munged->signal(SIGCONT);
  clerk_->seal(bytes("hello"), [&](Result<std::string> answer) { good = std::move(answer); });
  ASSERT_TRUE(until([&] { return good.has_value(); }));
  EXPECT_TRUE(good->has_value());
}

TEST_F(PeersMungeCredential, ServesAWholeRendezvousAndRefusesAReplayedHello) {
  const auto clerk_ = forked_clerk(
      loop, [this]() -> Result<std::unique_ptr<Credential>> { return munged->credential(); }, 2s, 2);
  Port port;
  const auto number = port.number;
  const auto boss = lead(loop, *clerk_, roster(0), std::move(port.socket), leading.sink());
  const auto hello = munged->credential()->seal(encode(make_hello(roster(1), random_nonce())));
  for (int i = 0; i < 2; ++i) {
    Stranger copy(number);
    copy.say_frame(encode(Greeting{Greeting::Kind::hello, 1, *hello}));
    std::optional<Bytes> reply;
    ASSERT_TRUE(until([&] { return (reply = copy.frame()).has_value(); }));
    EXPECT_EQ(decode_greeting(*reply)->kind, i == 0 ? Greeting::Kind::welcome : Greeting::Kind::refusal);
  }
  EXPECT_TRUE(leading.dropped("has been opened before: somebody sent a copy")) << leading.told();
  const auto one =
      follow(loop, *clerk_, roster(1), "127.0.0.1", {number}, true, system::now() + 20s, following.sink());
  ASSERT_TRUE(until([&] { return leading.count<Proven>() == 1 && following.count<Proven>() == 1; }))
      << leading.told() << following.told();
}

}  // namespace
}  // namespace netcheck::peers::test
