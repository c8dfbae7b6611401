// What comes to a leader's port that is not its job's: strangers, floods, copies, forgeries, nodes with other
// keys, clocks, accounts and jobs. Each is dropped and named, and the real follower still gets in.
#include <gmock/gmock.h>

#include <random>

#include "peers/channel.h"
#include "peers_stand.h"

namespace netcheck::peers::test {
namespace {

using ::testing::HasSubstr;

class PeersHostile : public PeersTest {
 protected:
  void SetUp() override {
    PeersTest::SetUp();
    number = port.number;
  }
  /// The real follower comes after all that, and is let in.
  void expect_rendezvous() {
    const auto one = follower({number}, following);
    ASSERT_TRUE(until([&] { return leading.count<Proven>() == 1 && following.count<Proven>() == 1; }))
        << leading.told() << following.told();
  }
  /// A follower's hello, taken by somebody who listens where it looks for its leader.
  Bytes captured_hello(const Roster& who = roster(1)) {
    Port trap;
    Diary unused;
    const auto victim = follower({trap.number}, unused, who);
    std::optional<Stranger> thief;
    std::optional<Bytes> hello;
    EXPECT_TRUE(until([&] {
      if (!thief) {
        const int fd = ::accept(trap.socket.get(), nullptr, nullptr);
        if (fd >= 0) thief.emplace(system::Descriptor(fd));
      }
      if (thief) hello = thief->frame();
      return hello.has_value();
    }));
    return hello.value_or(Bytes{});
  }
  /// Goes through the whole handshake by hand, as node 1, and keeps the channel.
  std::unique_ptr<Channel> shake(Stranger& self) {
    const Nonce nonce = random_nonce();
    const auto credential = key();
    const auto token = credential->seal(encode(make_hello(roster(1), nonce)));
    self.say_frame(encode(Greeting{Greeting::Kind::hello, 1, *token}));
    std::optional<Bytes> frame;
    EXPECT_TRUE(until([&] { return (frame = self.frame()).has_value(); }));
    const auto greeting = decode_greeting(*frame);
    EXPECT_TRUE(greeting && greeting->kind == Greeting::Kind::welcome);
    const auto welcome = decode_welcome(credential->open(greeting->text)->payload);
    EXPECT_TRUE(check(*welcome, roster(1), nonce));
    return std::make_unique<Channel>(welcome->key, Channel::End::follower);
  }

  Port port;
  std::uint16_t number = 0;
};

TEST_F(PeersHostile, DropsGarbageAndNamesWhereItCameFrom) {
  const auto boss = leader(port);
  Stranger stranger(number);
  stranger.say_frame(bytes("GET / HTTP/1.1"));
  ASSERT_TRUE(until([&] { return stranger.closed(); }));
  EXPECT_THAT(leading.told(), HasSubstr("127.0.0.1: it does not speak netcheck's protocol"));
  EXPECT_EQ(clerk->opens, 0);  // munge was not asked
  expect_rendezvous();
}

TEST_F(PeersHostile, DropsAFrameOfOneGibibyteAtItsFirstFourBytes) {
  const auto boss = leader(port);
  Stranger stranger(number);
  stranger.say({std::byte{0}, std::byte{0}, std::byte{0}, std::byte{0x40}});  // 2^30, little-endian
  ASSERT_TRUE(until([&] { return stranger.closed(); }));
  EXPECT_THAT(leading.told(), HasSubstr("it announced a frame of 1073741824 bytes, at most 65536"));
  expect_rendezvous();
}

TEST_F(PeersHostile, AMemberToMayNotSendAFrameOfOneGibibyte) {
  const auto boss = leader(port);
  Stranger member(number);
  const auto channel = shake(member);
  member.say_frame(channel->seal({}));
  ASSERT_TRUE(until([&] { return leading.count<Proven>() == 1; }));
  member.say({std::byte{0}, std::byte{0}, std::byte{0}, std::byte{0x40}});
  ASSERT_TRUE(until([&] { return leading.count<Gone>() == 1; }));
  EXPECT_THAT(leading.all<Gone>()[0].why, HasSubstr("announced a frame of 1073741824 bytes"));
}

TEST_F(PeersHostile, AStrangerWhoConnectsFirstAndSaysNothingHoldsNobodyUp) {
  const auto boss = leader(port);
  Stranger stranger(number);
  Stranger slow(number);
  slow.say({std::byte{9}});
  turn_for(20ms);
  expect_rendezvous();
  ASSERT_TRUE(until([&] { return stranger.closed() && slow.closed(); }));
  EXPECT_THAT(leading.told(), HasSubstr("it connected and did not say who it is"));
}

TEST_F(PeersHostile, ACrowdOfSilentStrangersMakesRoomForTheFollower) {
  const auto boss = leader(port);
  std::vector<std::unique_ptr<Stranger>> crowd;
  for (int i = 0; i < 100; ++i)  // more than the 64 that may be unproven at a time
    crowd.push_back(std::make_unique<Stranger>(number));
  turn_for(20ms);
  EXPECT_TRUE(crowd.front()->closed());  // the one that kept the leader waiting longest
  EXPECT_FALSE(crowd.back()->closed());
  EXPECT_THAT(leading.told(), HasSubstr("too many unproven connections"));
  expect_rendezvous();
}

TEST_F(PeersHostile, ACopiedHelloGetsNoFurtherThanAWelcomeItCannotRead) {
  const Bytes hello = captured_hello();
  const auto boss = leader(port);
  Stranger copy(number);
  copy.say_frame(hello);
  std::optional<Bytes> welcome;
  ASSERT_TRUE(until([&] { return (welcome = copy.frame()).has_value(); }));
  const auto one = follower({number}, following);  // while the copy is being waited for
  ASSERT_TRUE(until([&] { return leading.count<Proven>() == 1 && following.count<Proven>() == 1; }));
  copy.say_frame(Bytes(41, std::byte{0}));  // as long as a proof
  ASSERT_TRUE(until([&] { return copy.closed(); }));
  EXPECT_TRUE(leading.dropped("forged or damaged frame where its proof belongs")) << leading.told();
  Stranger later(number);
  later.say_frame(hello);
  ASSERT_TRUE(until([&] { return later.closed(); }));
  EXPECT_TRUE(leading.dropped("one proof per check")) << leading.told();
  EXPECT_EQ(leading.count<Proven>(), 1U);
  EXPECT_EQ(leading.count<Gone>(), 0U);
}

TEST_F(PeersHostile, ACopiedHelloIsOfNoUseToAnotherNodesLeader) {
  const Bytes hello = captured_hello();
  const auto boss = leader(port, roster(0, {"m1", "n2", "n3"}));
  Stranger copy(number);
  copy.say_frame(hello);
  ASSERT_TRUE(until([&] { return copy.closed(); }));
  EXPECT_TRUE(leading.dropped("it is meant for n1, this is m1")) << leading.told();
}

TEST_F(PeersHostile, AWelcomeThatAnswersAnotherHelloIsRefused) {
  const Nonce asked = random_nonce();
  const Hello hello = make_hello(roster(1), random_nonce());
  const Welcome welcome = make_welcome(roster(0), hello, random_nonce(), random_session_key());
  const auto fits = check(welcome, roster(1), asked);
  ASSERT_FALSE(fits);
  EXPECT_THAT(describe(fits.error()), HasSubstr("answers another hello"));
  EXPECT_TRUE(check(welcome, roster(1), hello.nonce));
}

TEST_F(PeersHostile, AForgedFrameEndsItsConnectionAndIsNamed) {
  const auto boss = leader(port);
  Stranger member(number);
  const auto channel = shake(member);
  member.say_frame(channel->seal({}));
  ASSERT_TRUE(until([&] { return leading.count<Proven>() == 1; }));
  member.say_frame(channel->seal(bytes("good")));
  Bytes forged = channel->seal(bytes("evil"));
  forged[3] ^= std::byte{1};
  member.say_frame(forged);
  member.say_frame(channel->seal(bytes("after")));
  ASSERT_TRUE(until([&] { return leading.count<Gone>() == 1; }));
  EXPECT_EQ(leading.all<Gone>()[0].why, "a forged or damaged frame");
  ASSERT_EQ(leading.count<Heard>(), 1U);
  EXPECT_EQ(text(leading.all<Heard>()[0].message), "good");
}

TEST_F(PeersHostile, AFrameSentTwiceEndsItsConnection) {
  const auto boss = leader(port);
  Stranger member(number);
  const auto channel = shake(member);
  member.say_frame(channel->seal({}));
  const Bytes once = channel->seal(bytes("pay"));
  member.say_frame(once);
  member.say_frame(once);
  ASSERT_TRUE(until([&] { return leading.count<Gone>() == 1; }));
  EXPECT_EQ(leading.count<Heard>(), 1U);
}

TEST_F(PeersHostile, ANodeWithAnotherKeyIsNamedOnBothSides) {
  const auto boss = leader(port);
  const auto theirs = direct("x");
  const auto one =
      follow(loop, *theirs, roster(1), "n1", {number}, true, system::now() + 20s, following.sink());
  ASSERT_TRUE(until([&] { return following.count<Dropped>() > 0; }));
  EXPECT_THAT(leading.told(),
              HasSubstr("127.0.0.1 (says it is n2): open a key credential: the two nodes have "
                        "different keys, or it is forged"));
  EXPECT_THAT(following.told(),
              HasSubstr("it refuses: n1: open a key credential: the two nodes have different keys"));
  EXPECT_EQ(leading.count<Proven>(), 0U);
  expect_rendezvous();
}

TEST_F(PeersHostile, AHelloThatIsTooOldIsNamedWithTheClocks) {
  const auto strict = direct("k", 1ns);
  const auto boss = lead(loop, *strict, roster(0), std::move(port.socket), leading.sink());
  const auto one = follower({number}, following);
  ASSERT_TRUE(until([&] { return leading.count<Dropped>() > 0; }));
  EXPECT_TRUE(leading.dropped("the nodes' clocks differ, or it is older than its life")) << leading.told();
  EXPECT_EQ(leading.count<Proven>(), 0U);
}

TEST_F(PeersHostile, AHelloSealedByAnotherAccountIsRefused) {
  clerk->uid = ::geteuid() + 1;
  const auto boss = leader(port);
  const auto one = follower({number}, following);
  ASSERT_TRUE(until([&] { return leading.count<Dropped>() > 0; }));
  EXPECT_TRUE(leading.dropped("not by the probe's account")) << leading.told();
  clerk->uid.reset();
  ASSERT_TRUE(until([&] { return leading.count<Proven>() == 1; }));
}

TEST_F(PeersHostile, AWelcomeSealedByAnotherAccountIsRefused) {
  const auto boss = leader(port);
  const auto theirs = direct();
  theirs->uid = ::geteuid() + 1;
  const auto one =
      follow(loop, *theirs, roster(1), "n1", {number}, true, system::now() + 20s, following.sink());
  ASSERT_TRUE(until([&] { return leading.dropped("it cannot join") && following.count<Dropped>() > 0; }));
  EXPECT_TRUE(following.dropped("accept a welcome: it is sealed by uid")) << following.told();
  EXPECT_EQ(following.count<Proven>() + leading.count<Proven>(), 0U);
}

TEST_F(PeersHostile, AnotherJobsFollowerIsRefused) {
  const auto boss = leader(port);
  Roster other = roster(1);
  other.run.job = 4712;
  Diary stray;
  const auto wrong = follower({number}, stray, other);
  ASSERT_TRUE(until([&] { return stray.count<Dropped>() > 0; }));
  EXPECT_TRUE(
      leading.dropped("it is of cluster alps job 4712 restart 0, this is cluster alps job 4711 restart 0"))
      << leading.told();
  expect_rendezvous();
}

TEST_F(PeersHostile, AnEarlierRunOfTheSameJobIsRefused) {
  const auto boss = leader(port);
  Roster earlier = roster(1);
  earlier.run.restart = 1;
  Diary stray;
  const auto wrong = follower({number}, stray, earlier);
  ASSERT_TRUE(until([&] { return leading.dropped("restart 1, this is"); }));
  EXPECT_EQ(leading.count<Proven>(), 0U);
}

TEST_F(PeersHostile, ASenderOutsideTheNodeListIsRefused) {
  const auto boss = leader(port, roster(0, {"n1", "n2"}));
  Diary stray;
  const auto third = follower({number}, stray, roster(2));
  ASSERT_TRUE(until([&] { return leading.count<Dropped>() > 0; }));
  EXPECT_TRUE(leading.dropped("its sender n3 (node 2) is not in this job's node list")) << leading.told();
  Diary swapped;
  const auto liar = follower({number}, swapped, roster(1, {"n1", "nX"}));
  ASSERT_TRUE(until([&] { return leading.dropped("its sender nX (node 1) is not"); }));
  EXPECT_EQ(leading.count<Proven>(), 0U);
}

TEST_F(PeersHostile, TheLeadersOwnNumberCannotBeClaimed) {
  const auto boss = leader(port);
  Diary stray;
  const auto liar = follower({number}, stray, roster(0));
  ASSERT_TRUE(until([&] { return leading.dropped("it names this node as its sender"); }));
}

TEST_F(PeersHostile, TheSecondWhoProvesToBeANodeIsRefused) {
  const auto boss = leader(port);
  auto one = follower({number}, following);
  ASSERT_TRUE(until([&] { return leading.count<Proven>() == 1; }));
  Diary second;
  const auto again = follower({number}, second);
  ASSERT_TRUE(until([&] { return second.dropped("one proof per check"); }));
  one->send(0, bytes("the first one is untouched"));
  ASSERT_TRUE(until([&] { return leading.count<Heard>() == 1; }));
  one.reset();
  ASSERT_TRUE(until([&] { return leading.count<Gone>() == 1; }));
  turn_for(400ms);  // some more attempts of the second one
  EXPECT_EQ(leading.count<Proven>(), 1U);
  EXPECT_EQ(second.count<Proven>(), 0U);
}

TEST_F(PeersHostile, AGuestWhoTalksOnBeforeItsAnswerIsDropped) {
  const Bytes hello = captured_hello();
  const auto boss = leader(port);
  Stranger hasty(number);
  hasty.say_frame(hello);
  hasty.say_frame(hello);
  ASSERT_TRUE(until([&] { return hasty.closed(); }));
  EXPECT_TRUE(leading.dropped("it spoke before it was answered")) << leading.told();
}

TEST_F(PeersHostile, AStrangerWhoKnocksAThousandTimesFillsNoLog) {
  const auto boss = leader(port);
  for (int i = 0; i < 1'000; ++i) {
    Stranger stranger(number);
    stranger.say_frame(bytes("knock " + std::to_string(i)));
    loop.turn(system::now());
  }
  turn_for(20ms);
  EXPECT_LE(leading.events.size(), 8U);
  EXPECT_GE(leading.events.size(), 1U);
  expect_rendezvous();
}

TEST_F(PeersHostile, NoMutationOfAHelloProvesAnythingOnTheWire) {
  const Bytes hello = captured_hello();
  const auto boss = leader(port);
  std::mt19937 random(4711);
  for (int round = 0; round < 500; ++round) {
    Bytes mutant = hello;
    for (unsigned changes = 1 + random() % 4; changes > 0; --changes) {
      switch (random() % 3) {
        case 0:
          mutant[9 + random() % (mutant.size() - 9)] ^= static_cast<std::byte>(1 + random() % 255);
          break;
        case 1:
          mutant.resize(10 + random() % (mutant.size() - 9));
          break;
        default:
          mutant.insert(mutant.begin() + static_cast<std::ptrdiff_t>(random() % mutant.size()),
                        static_cast<std::byte>(random()));
      }
    }
    if (mutant == hello) continue;
    Stranger stranger(number);
    stranger.say_frame(mutant);
    std::optional<Bytes> reply;
    ASSERT_TRUE(until([&] {
      if (!reply) reply = stranger.frame();
      return stranger.closed();
    })) << "round "
        << round;
    if (!reply) continue;
    const auto greeting = decode_greeting(*reply);
    ASSERT_TRUE(greeting.has_value());
    EXPECT_EQ(greeting->kind, Greeting::Kind::refusal) << "round " << round;
  }
  EXPECT_EQ(leading.count<Proven>(), 0U);
  expect_rendezvous();
}

}  // namespace
}  // namespace netcheck::peers::test
