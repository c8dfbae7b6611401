// The pure part: what hellos, welcomes and greetings bind, how they are read when they are damaged, and the
// channel's promises.
#include <gmock/gmock.h>

#include <random>

#include "peers/address.h"
#include "peers/channel.h"
#include "peers_stand.h"

namespace netcheck::peers::test {
namespace {

using ::testing::HasSubstr;

class PeersHandshake : public PeersTest {};

/// One to four random changes: a flipped byte, a cut, a byte more.
Bytes mutate(Bytes original, std::mt19937& random) {
  for (unsigned changes = 1 + random() % 4; changes > 0; --changes) {
    const std::size_t place = original.empty() ? 0 : random() % original.size();
    switch (random() % 3) {
      case 0:
        if (!original.empty()) original[place] ^= static_cast<std::byte>(1 + random() % 255);
        break;
      case 1:
        original.resize(place);
        break;
      default:
        original.insert(original.begin() + static_cast<std::ptrdiff_t>(place),
                        static_cast<std::byte>(random()));
    }
  }
  return original;
}

TEST_F(PeersHandshake, HelloSurvivesTheWay) {
  const Hello hello = make_hello(roster(2), random_nonce());
  const auto read = decode_hello(encode(hello));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->run, (JobRun{"alps", 4711, 0}));
  EXPECT_EQ(read->sender, 2U);
  EXPECT_EQ(read->sender_name, "n3");
  EXPECT_EQ(read->receiver, 0U);
  EXPECT_EQ(read->receiver_name, "n1");
  EXPECT_EQ(read->nonce, hello.nonce);
}

TEST_F(PeersHandshake, WelcomeSurvivesTheWayWithItsKey) {
  const Hello hello = make_hello(roster(2), random_nonce());
  const Welcome welcome = make_welcome(roster(0), hello, random_nonce(), random_session_key());
  const auto read = decode_welcome(encode(welcome));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->key.bytes, welcome.key.bytes);
  EXPECT_EQ(read->hello_nonce, hello.nonce);
  EXPECT_EQ(read->receiver_name, "n3");
}

TEST_F(PeersHandshake, AHelloIsNoWelcomeAndTheOtherWayRound) {
  const Hello hello = make_hello(roster(2), random_nonce());
  EXPECT_FALSE(decode_welcome(encode(hello)));
  EXPECT_FALSE(decode_hello(encode(make_welcome(roster(0), hello, random_nonce(), random_session_key()))));
}

TEST_F(PeersHandshake, AWelcomeOfANodeThatDoesNotLeadIsRefused) {
  Welcome welcome = make_welcome(roster(0), make_hello(roster(2), Nonce{}), Nonce{}, random_session_key());
  welcome.sender = 1;
  welcome.sender_name = "n2";
  const auto fits = check(welcome, roster(2), Nonce{});
  ASSERT_FALSE(fits);
  EXPECT_THAT(describe(fits.error()), HasSubstr("n2 does not lead"));
}

TEST_F(PeersHandshake, TenThousandMutationsOfAHelloFrameNeitherCrashNorPass) {
  const auto credential = key();
  const Bytes frame = encode(
      Greeting{Greeting::Kind::hello, 1, *credential->seal(encode(make_hello(roster(1), random_nonce())))});
  const std::string token = decode_greeting(frame)->text;
  std::mt19937 random(1);
  int opened = 0;
  for (int round = 0; round < 10'000; ++round) {
    const auto greeting = decode_greeting(mutate(frame, random));
    // Kind and claim are plain and not believed; only a token that is whole may open.
    if (!greeting || greeting->text == token) continue;
    if (credential->open(greeting->text)) ++opened;
  }
  EXPECT_EQ(opened, 0);
}

TEST_F(PeersHandshake, TenThousandMutationsOfPayloadsAreReadOrRefusedWithoutACrash) {
  const Hello hello = make_hello(roster(1), random_nonce());
  const Bytes plain = encode(hello);
  const Bytes answer = encode(make_welcome(roster(0), hello, random_nonce(), random_session_key()));
  std::mt19937 random(2);
  int refused = 0;
  for (int round = 0; round < 10'000; ++round) {
    const auto read = decode_hello(mutate(plain, random));
    if (!read || !check(*read, roster(0))) ++refused;
    const auto welcome = decode_welcome(mutate(answer, random));
    if (welcome) (void)check(*welcome, roster(1), hello.nonce);
  }
  // What passes differs only in the nonce's 16 of some 150 bytes, or not at all.
  EXPECT_GT(refused, 8'000);
}

TEST_F(PeersHandshake, ARefusalIsPrintableAndShort) {
  const auto read = decode_greeting(encode(Greeting{Greeting::Kind::refusal, 1, std::string(5'000, '\n')}));
  ASSERT_TRUE(read.has_value());
  EXPECT_LE(read->text.size(), kMaxRefusal);
  EXPECT_EQ(read->text.find('\n'), std::string::npos);
}

TEST_F(PeersHandshake, ChannelCarriesBothWays) {
  const SessionKey key = random_session_key();
  Channel leads(key, Channel::End::leader), follows(key, Channel::End::follower);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(follows.open(leads.seal(bytes("down"))), bytes("down"));
    EXPECT_EQ(leads.open(follows.seal({})), Bytes{});
  }
}

TEST_F(PeersHandshake, ChannelsFramesDoNotShowTheirContent) {
  Channel leads(random_session_key(), Channel::End::leader);
  const Bytes frame = leads.seal(bytes("10.0.0.3 is slow"));
  EXPECT_EQ(frame.size(), 24U + 16U + 17U);  // header, message, tag and MAC: libsodium's documentation
  EXPECT_EQ(text(frame).find("slow"), std::string::npos);
}

TEST_F(PeersHandshake, ChannelRefusesFramesThatAreLostSwappedOrThrownBack) {
  const SessionKey key = random_session_key();
  Channel leads(key, Channel::End::leader);
  const Bytes first = leads.seal(bytes("1")), second = leads.seal(bytes("2")), third = leads.seal(bytes("3"));
  {
    Channel follows(key, Channel::End::follower);
    EXPECT_TRUE(follows.open(first));
    EXPECT_FALSE(follows.open(third));   // the second was lost
    EXPECT_FALSE(follows.open(second));  // and nothing mends it
  }
  {
    Channel follows(key, Channel::End::follower);
    EXPECT_FALSE(follows.open(second));
  }
  EXPECT_FALSE(leads.open(first));  // thrown back at its sender
  Channel stranger(random_session_key(), Channel::End::follower);
  EXPECT_FALSE(stranger.open(first));
}

TEST_F(PeersHandshake, EveryByteOfAFrameIsUnderTheSeal) {
  const SessionKey key = random_session_key();
  Channel leads(key, Channel::End::leader);
  const Bytes frame = leads.seal(bytes("card"));
  for (std::size_t i = 0; i < frame.size(); ++i) {
    Bytes forged = frame;
    forged[i] ^= std::byte{0x80};
    Channel follows(key, Channel::End::follower);
    EXPECT_FALSE(follows.open(forged)) << "byte " << i;
  }
  Channel follows(key, Channel::End::follower);
  EXPECT_FALSE(follows.open({}));
}

TEST_F(PeersHandshake, KnowsWhichAddressesStayOnANode) {
  // RFC 1122 3.2.1.3 (127/8, 0.0.0.0), RFC 4291 2.5.2, 2.5.3 and 2.5.5.2 (::, ::1, ::ffff:a.b.c.d).
  for (const char* number :
       {"127.0.0.1", "127.0.1.1", "127.255.255.254", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1"})
    EXPECT_TRUE(stays_on_node(*parse_address(number, 1))) << number;
  for (const char* number : {"10.0.0.1", "128.0.0.1", "fe80::1", "2001:db8::1", "::ffff:10.0.0.1"})
    EXPECT_FALSE(stays_on_node(*parse_address(number, 1))) << number;
  EXPECT_FALSE(parse_address("localhost", 1));
  EXPECT_EQ(host_of(*parse_address("::ffff:10.0.0.1", 1)), "10.0.0.1");
  EXPECT_EQ(endpoint_text("fe80::1", 703), "[fe80::1]:703");
}

}  // namespace
}  // namespace netcheck::peers::test
