// Rendezvous and channel as they should go, and as they go when a leader is late or somebody sits on its
// ports.
#include <gmock/gmock.h>

#include "peers_stand.h"

namespace netcheck::peers::test {
namespace {

using ::testing::HasSubstr;

class PeersRendezvous : public PeersTest {};

TEST_F(PeersRendezvous, ProvesBothToEachOther) {
  Port port;
  const auto number = port.number;
  const auto boss = leader(port);
  const auto one = follower({number}, following);
  ASSERT_TRUE(until([&] { return leading.count<Proven>() == 1 && following.count<Proven>() == 1; }));
  EXPECT_EQ(leading.all<Proven>()[0].node, 1U);
  EXPECT_EQ(leading.all<Proven>()[0].local_address, "127.0.0.1");
  EXPECT_EQ(following.all<Proven>()[0].node, 0U);
  EXPECT_EQ(following.all<Proven>()[0].local_address, "127.0.0.1");
  EXPECT_EQ(leading.told() + following.told(), "");
}

TEST_F(PeersRendezvous, CarriesMessagesBothWaysInOrder) {
  Port port;
  const auto number = port.number;
  const auto boss = leader(port);
  const auto one = follower({number}, following);
  ASSERT_TRUE(until([&] { return leading.count<Proven>() == 1; }));
  for (int i = 0; i < 100; ++i) {
    boss->send(1, bytes("down " + std::to_string(i)));
    one->send(0, bytes("up " + std::to_string(i)));
  }
  ASSERT_TRUE(until([&] { return leading.count<Heard>() == 100 && following.count<Heard>() == 100; }));
  for (std::size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(text(following.all<Heard>()[i].message), "down " + std::to_string(i));
    EXPECT_EQ(text(leading.all<Heard>()[i].message), "up " + std::to_string(i));
    EXPECT_EQ(leading.all<Heard>()[i].node, 1U);
  }
}

TEST_F(PeersRendezvous, CarriesTheLargestFrameAndThenIsFlushed) {
  Port port;
  const auto number = port.number;
  const auto boss = leader(port);
  const auto one = follower({number}, following);
  ASSERT_TRUE(until([&] { return leading.count<Proven>() == 1; }));
  const Bytes large(kMaxFrame, std::byte{7});
  boss->send(1, large);
  EXPECT_FALSE(boss->flushed());  // no socket buffer takes 16 MiB at once
  ASSERT_TRUE(until([&] { return following.count<Heard>() == 1; }));
  EXPECT_EQ(following.all<Heard>()[0].message, large);
  EXPECT_TRUE(boss->flushed());
}

TEST_F(PeersRendezvous, EndsAConnectionRatherThanSendAFrameThatIsTooLarge) {
  Port port;
  const auto number = port.number;
  const auto boss = leader(port);
  const auto one = follower({number}, following);
  ASSERT_TRUE(until([&] { return leading.count<Proven>() == 1; }));
  boss->send(1, Bytes(kMaxFrame + 1));
  ASSERT_TRUE(until([&] { return leading.count<Gone>() == 1 && following.count<Gone>() == 1; }));
  EXPECT_THAT(leading.all<Gone>()[0].why, HasSubstr("too large"));
}

TEST_F(PeersRendezvous, SendingToNodesThatAreNotThereDoesNothing) {
  Port port;
  const auto boss = leader(port);
  boss->send(1, bytes("nobody"));
  boss->send(77, bytes("no such node"));
  EXPECT_TRUE(boss->flushed());
}

TEST_F(PeersRendezvous, FollowerWaitsForALeaderThatComesLate) {
  Port port(false);
  const auto number = port.number;
  const auto one = follower({number}, following);
  ASSERT_TRUE(until([&] { return following.dropped("nobody listens yet"); }));
  EXPECT_EQ(following.count<Proven>(), 0U);
  EXPECT_EQ(following.count<Dropped>(), 1U);
  port.listen();
  const auto boss = leader(port);
  ASSERT_TRUE(until([&] { return leading.count<Proven>() == 1 && following.count<Proven>() == 1; }));
}

TEST_F(PeersRendezvous, SilentSquattersOnAllPortsButOneCostNothing) {
  const Port first, second, third;  // their backlog accepts, nobody speaks
  Port port;
  const auto number = port.number;
  const auto boss = leader(port);
  const auto one = follower({first.number, second.number, third.number, number}, following);
  ASSERT_TRUE(until([&] { return leading.count<Proven>() == 1 && following.count<Proven>() == 1; }));
  one->send(0, bytes("here"));
  ASSERT_TRUE(until([&] { return leading.count<Heard>() == 1; }));
}

TEST_F(PeersRendezvous, NamesWhoSitsOnEveryPortInTime) {
  const Port first, second;
  const auto one = follow(loop, *clerk, roster(1), "n1", {first.number, second.number}, true,
                          system::now() + 3s, following.sink());
  ASSERT_TRUE(until([&] { return following.dropped("no leader proved itself at n1"); }));
  EXPECT_EQ(following.count<Proven>(), 0U);
  EXPECT_THAT(following.told(), HasSubstr("127.0.0.1:" + std::to_string(first.number) +
                                          ": it accepted the connection and has said nothing"));
  EXPECT_THAT(following.told(), HasSubstr("127.0.0.1:" + std::to_string(second.number) + ": it accepted"));
}

TEST_F(PeersRendezvous, ASquatterThatTalksGarbageIsNamedAndPassedOver) {
  Port squatter;
  Port port;
  const auto number = port.number;
  const auto one = follower({squatter.number, number}, following);
  std::optional<Stranger> guest;
  ASSERT_TRUE(until([&] {
    if (!guest) {
      const int fd = ::accept(squatter.socket.get(), nullptr, nullptr);
      if (fd >= 0) guest.emplace(system::Descriptor(fd));
    }
    return guest.has_value();
  }));
  guest->say(bytes("SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"));  // "SSH-" as a length is 759 MB
  ASSERT_TRUE(until([&] { return following.count<Dropped>() > 0; }));
  EXPECT_TRUE(following.dropped("announced a frame of")) << following.told();
  const auto boss = leader(port);
  ASSERT_TRUE(until([&] { return following.count<Proven>() == 1; }));
}

TEST_F(PeersRendezvous, ALeaderThatIsCutOffIsGoneForItsFollowers) {
  Port port;
  const auto number = port.number;
  auto boss = leader(port);
  const auto one = follower({number}, following);
  ASSERT_TRUE(until([&] { return leading.count<Proven>() == 1; }));
  boss.reset();
  ASSERT_TRUE(until([&] { return following.count<Gone>() == 1; }));
  one->send(0, bytes("anybody?"));
  turn_for(50ms);
  EXPECT_EQ(following.count<Gone>(), 1U);
}

TEST_F(PeersRendezvous, AFollowerThatIsCutOffIsGoneForItsLeaderAndOnlyIt) {
  Port port;
  const auto number = port.number;
  Diary second;
  const auto boss = leader(port);
  auto one = follower({number}, following);
  const auto two = follower({number}, second, roster(2));
  ASSERT_TRUE(until([&] { return leading.count<Proven>() == 2; }));
  one.reset();
  ASSERT_TRUE(until([&] { return leading.count<Gone>() == 1; }));
  EXPECT_EQ(leading.all<Gone>()[0].node, 1U);
  boss->send(1, bytes("lost"));
  boss->send(2, bytes("still there"));
  ASSERT_TRUE(until([&] { return second.count<Heard>() == 1; }));
}

TEST_F(PeersRendezvous, WhatWasSentBeforeTheEndStillArrives) {
  Port port;
  const auto number = port.number;
  auto boss = leader(port);
  const auto one = follower({number}, following);
  ASSERT_TRUE(until([&] { return leading.count<Proven>() == 1; }));
  // More than a receive window: part of it still waits in the leader's kernel when the leader closes, and a
  // reset, which unread bytes would cause, would throw that part away.
  const Bytes verdict(200'000, std::byte{7});
  one->send(0, bytes("unread by the leader"));
  boss->send(1, verdict);
  EXPECT_TRUE(boss->flushed());
  boss.reset();
  ASSERT_TRUE(until([&] { return following.count<Gone>() == 1; }));
  ASSERT_EQ(following.count<Heard>(), 1U);
  EXPECT_EQ(following.all<Heard>()[0].message, verdict);
}

TEST_F(PeersRendezvous, RefusesALeaderNameThatResolvesToLoopback) {
  Port port;
  const auto number = port.number;
  const auto boss = leader(port);
  clerk->addresses = {"127.0.1.1"};
  const auto one =
      follow(loop, *clerk, roster(1), "n1.example", {number}, false, system::now() + 300ms, following.sink());
  ASSERT_TRUE(until([&] { return following.dropped("no leader proved itself"); }));
  EXPECT_TRUE(following.dropped("n1.example resolves to loopback (127.0.1.1)")) << following.told();
  EXPECT_EQ(leading.events.size(), 0U);
}

TEST_F(PeersRendezvous, ALeaderThatCannotBeLookedUpIsNamedAndTriedAgain) {
  Port port;
  const auto number = port.number;
  const auto boss = leader(port);
  clerk->addresses.clear();
  const auto one = follower({number}, following);
  ASSERT_TRUE(until([&] { return following.dropped("look up n1: unknown"); }));
  clerk->addresses = {"127.0.0.1"};
  ASSERT_TRUE(until([&] { return following.count<Proven>() == 1; }));
}

TEST_F(PeersRendezvous, AFollowerThatCannotSealSaysSoOnBothSides) {
  Port port;
  const auto number = port.number;
  const auto boss = leader(port);
  const auto theirs = direct();
  theirs->seal_error = Error{"reach", "munged", "it is not running on this node", ""};
  const auto one =
      follow(loop, *theirs, roster(1), "n1", {number}, true, system::now() + 20s, following.sink());
  ASSERT_TRUE(until([&] { return leading.dropped("it cannot join") && following.count<Dropped>() > 0; }));
  EXPECT_THAT(leading.told(), HasSubstr("127.0.0.1 (says it is n2): it cannot join"));
  EXPECT_THAT(leading.told(), HasSubstr("reach munged: it is not running on this node"));
  EXPECT_THAT(following.told(), HasSubstr("n2: reach munged: it is not running on this node"));
  theirs->seal_error.reset();
  ASSERT_TRUE(until([&] { return leading.count<Proven>() == 1; }));
}

TEST_F(PeersRendezvous, PortsOfAJobAreFourInARowAndWrapRound) {
  // By hand: the range 700 … 709 has ten ports; job 0 begins at 700, job 1 at 704, job 2 at 708 and wraps.
  EXPECT_EQ(ports_of(0, 700, 709), (std::vector<std::uint16_t>{700, 701, 702, 703}));
  EXPECT_EQ(ports_of(1, 700, 709), (std::vector<std::uint16_t>{704, 705, 706, 707}));
  EXPECT_EQ(ports_of(2, 700, 709), (std::vector<std::uint16_t>{708, 709, 700, 701}));
  EXPECT_EQ(ports_of(9, 700, 701), (std::vector<std::uint16_t>{700, 701}));
  EXPECT_TRUE(ports_of(9, 701, 700).empty());
  EXPECT_EQ(ports_of(4'294'967'295U, 65'532, 65'535).size(), 4U);
}

}  // namespace
}  // namespace netcheck::peers::test
