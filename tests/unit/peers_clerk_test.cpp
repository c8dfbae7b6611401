// The clerk's children: what they can reach, that no request outlives its patience, that none is left behind.
#include <gmock/gmock.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <filesystem>

#include "peers_stand.h"

namespace netcheck::peers::test {
namespace {

using ::testing::HasSubstr;

/// A credential that does what its payload says.
class Puppet final : public Credential {
 public:
  Result<std::string> seal(const Bytes& payload) override {
    const std::string order = text(payload);
    if (order == "sleep") {
      for (;;)
        ::pause();
    }
    if (order == "die") ::_exit(7);
    if (order == "throw") throw std::runtime_error("as ordered");
    if (order == "refuse") return fail("seal", "a puppet", "as ordered", "order something else");
    if (order == "dumpable") return std::to_string(::prctl(PR_GET_DUMPABLE));
    if (order == "pid") return std::to_string(::getpid());
    if (order == "descriptors") return descriptors();
    return "sealed " + order;
  }
  Result<Opened> open(const std::string& token) override { return Opened{4711, bytes(token)}; }

 private:
  static std::string descriptors() {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code error;
      const auto target = std::filesystem::read_symlink(entry.path(), error);
      if (!error && target.string().find("/fd") == std::string::npos) {
        found.push_back(entry.path().filename().string() + "=" + target.string().substr(0, 7));
      }
    }
    std::ranges::sort(found);
    std::string list;
    for (const auto& one : found)
      list += one + " ";
    return list;
  }
};

class PeersClerk : public PeersTest {
 protected:
  std::unique_ptr<Clerk> puppets(unsigned workers = 1, Ns patience = 2s) {
    return forked_clerk(
        loop, []() -> Result<std::unique_ptr<Credential>> { return std::make_unique<Puppet>(); }, patience,
        workers);
  }
  Result<std::string> seal(Clerk& clerk_, const std::string& order) {
    std::optional<Result<std::string>> got;
    clerk_.seal(bytes(order), [&](Result<std::string> answer) { got = std::move(answer); });
    EXPECT_FALSE(got.has_value());  // never from the caller's stack
    EXPECT_TRUE(until([&] { return got.has_value(); }));
    return got.value_or(fail("wait", "the clerk", "no answer"));
  }
};

TEST_F(PeersClerk, SealsAndOpensInAChild) {
  const auto clerk_ = puppets();
  EXPECT_EQ(seal(*clerk_, "this"), "sealed this");
  EXPECT_NE(seal(*clerk_, "pid"), std::to_string(::getpid()));
  std::optional<Result<Opened>> got;
  clerk_->open("token", [&](Result<Opened> answer) { got = std::move(answer); });
  ASSERT_TRUE(until([&] { return got.has_value(); }));
  ASSERT_TRUE(got->has_value());
  EXPECT_EQ((*got)->uid, 4711U);
  EXPECT_EQ(text((*got)->payload), "token");
}

TEST_F(PeersClerk, CarriesErrorsWhole) {
  const auto clerk_ = puppets();
  const auto refused = seal(*clerk_, "refuse");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), (Error{"seal", "a puppet", "as ordered", "order something else"}));
}

TEST_F(PeersClerk, LooksUpNamesAndNumbers) {
  const auto clerk_ = puppets();
  std::optional<Result<std::vector<std::string>>> local, number;
  clerk_->look_up("localhost", [&](auto answer) { local = std::move(answer); });
  clerk_->look_up("192.0.2.7", [&](auto answer) { number = std::move(answer); });
  ASSERT_TRUE(until([&] { return local && number; }));
  ASSERT_TRUE(local->has_value());
  EXPECT_EQ((*local)->front(), "127.0.0.1");  // IPv4 first
  ASSERT_TRUE(number->has_value());
  EXPECT_EQ(**number, std::vector<std::string>{"192.0.2.7"});
}

TEST_F(PeersClerk, ANameThatDoesNotResolveIsAnError) {
  const auto clerk_ = puppets();
  std::optional<Result<std::vector<std::string>>> got;
  clerk_->look_up("no-such-node.invalid", [&](auto answer) { got = std::move(answer); });
  ASSERT_TRUE(until([&] { return got.has_value(); }));
  ASSERT_FALSE(got->has_value());
  EXPECT_THAT(describe(got->error()), HasSubstr("no-such-node.invalid"));
}

TEST_F(PeersClerk, AnswersWithinItsPatienceAndGoesOnWithAFreshChild) {
  const auto clerk_ = puppets(1, 100ms);
  const auto before = seal(*clerk_, "pid");
  const auto stuck = seal(*clerk_, "sleep");
  ASSERT_FALSE(stuck);
  EXPECT_THAT(describe(stuck.error()), HasSubstr("did not answer within 100ms"));
  const auto after = seal(*clerk_, "pid");
  ASSERT_TRUE(after.has_value());
  EXPECT_NE(*before, *after);
}

TEST_F(PeersClerk, AStuckChildDoesNotHoldUpAnother) {
  const auto clerk_ = puppets(2, 3s);
  std::optional<Result<std::string>> stuck;
  clerk_->seal(bytes("sleep"), [&](Result<std::string> answer) { stuck = std::move(answer); });
  EXPECT_EQ(seal(*clerk_, "that"), "sealed that");
  EXPECT_FALSE(stuck.has_value());
}

TEST_F(PeersClerk, AChildThatDiesFailsItsRequestOnly) {
  const auto clerk_ = puppets();
  for (const char* order : {"die", "throw"}) {
    const auto dead = seal(*clerk_, order);
    ASSERT_FALSE(dead);
    EXPECT_THAT(describe(dead.error()), HasSubstr("its process ended"));
  }
  EXPECT_EQ(seal(*clerk_, "that"), "sealed that");
}

TEST_F(PeersClerk, StopsReplacingChildrenThatKeepDying) {
  const auto clerk_ = puppets();
  for (int i = 0; i < 9; ++i)  // the first child and its eight replacements
    EXPECT_FALSE(seal(*clerk_, "die"));
  const auto refused = seal(*clerk_, "that");
  ASSERT_FALSE(refused);
  EXPECT_THAT(describe(refused.error()), HasSubstr("its processes kept ending"));
}

TEST_F(PeersClerk, QueuesMoreRequestsThanChildren) {
  const auto clerk_ = puppets(2);
  int good = 0;
  for (int i = 0; i < 200; ++i) {
    clerk_->seal(bytes(std::to_string(i)), [&good, i](const Result<std::string>& answer) {
      if (answer && *answer == "sealed " + std::to_string(i)) ++good;
    });
  }
  ASSERT_TRUE(until([&] { return good == 200; }));
}

TEST_F(PeersClerk, RefusesWhatIsTooLargeForItsSocket) {
  const auto clerk_ = puppets();
  const auto refused = seal(*clerk_, std::string(1 << 20, 'x'));
  ASSERT_FALSE(refused);
  EXPECT_THAT(describe(refused.error()), HasSubstr("too large"));
  EXPECT_EQ(seal(*clerk_, "that"), "sealed that");
}

TEST_F(PeersClerk, ACredentialThatCannotBeMadeFailsEveryRequestInItsOwnWords) {
  const auto clerk_ = forked_clerk(
      loop, [] { return key_credential("/nonexistent/key", 60s); }, 2s, 1);
  const auto refused = seal(*clerk_, "this");
  ASSERT_FALSE(refused);
  EXPECT_THAT(describe(refused.error()), HasSubstr("/nonexistent/key"));
}

TEST_F(PeersClerk, ItsChildrenHoldNothingButTheirSocketAndCannotBeRead) {
  const Port port;  // a listener that a child must not keep open
  const auto clerk_ = puppets(2);
  EXPECT_EQ(seal(*clerk_, "descriptors"), "0=/dev/nu 1=/dev/nu 2=/dev/nu 3=socket: ");
  EXPECT_EQ(seal(*clerk_, "dumpable"), "0");
}

TEST_F(PeersClerk, LeavesNoChildBehind) {
  {
    const auto clerk_ = puppets(3);
    clerk_->seal(bytes("sleep"),
                 [](const Result<std::string>&) { ADD_FAILURE() << "answered after its end"; });
    loop.turn(system::now() + 10ms);
  }
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
  loop.turn(system::now() + 10ms);
}

TEST_F(PeersClerk, MayBeDestroyedWhileItAnswers) {
  auto clerk_ = puppets();
  bool answered = false;
  clerk_->seal(bytes("this"), [&](const Result<std::string>&) {
    answered = true;
    clerk_.reset();
  });
  ASSERT_TRUE(until([&] { return answered; }));
  loop.turn(system::now() + 10ms);
}

TEST_F(PeersClerk, ServesAWholeRendezvous) {
  const auto secret = folder.write("key", std::string(32, 'k'));
  const auto clerk_ = forked_clerk(
      loop, [secret] { return key_credential(secret, 60s); }, 2s, 2);
  Port port;
  const auto number = port.number;
  const auto boss = lead(loop, *clerk_, roster(0), std::move(port.socket), leading.sink());
  const auto one =
      follow(loop, *clerk_, roster(1), "localhost", {number}, true, system::now() + 20s, following.sink());
  ASSERT_TRUE(until([&] { return leading.count<Proven>() == 1 && following.count<Proven>() == 1; }))
      << leading.told() << following.told();
}

}  // namespace
}  // namespace netcheck::peers::test
