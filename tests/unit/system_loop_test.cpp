// The loop's promises: deadlines hold, callbacks may take themselves away, frames arrive whole.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "system/frames.h"
#include "system/loop.h"

namespace netcheck::system {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Loop, EndsAtItsDeadlineWithNothingToDo) {
  Loop loop;
  const Time deadline = now() + milliseconds(20);
  EXPECT_FALSE(loop.run_until(deadline));
  EXPECT_GE(now(), deadline);
}

TEST(Loop, FiresTimersInOrderOfTheirTimes) {
  Loop loop;
  std::string order;
  const Time start = now();
  loop.at(start + milliseconds(20), [&] {
    order += "b";
    loop.stop();
  });
  loop.at(start + milliseconds(10), [&] { order += "a"; });
  const auto cancelled = loop.at(start + milliseconds(15), [&] { order += "x"; });
  loop.cancel(cancelled);
  EXPECT_TRUE(loop.run_until(start + seconds(10)));
  EXPECT_EQ(order, "ab");
}

TEST(Loop, ACallbackMayForgetItself) {
  Loop loop;
  auto pair = socket_pair();
  ASSERT_TRUE(pair);
  int calls = 0;
  loop.watch(pair->first.get(), Loop::kRead, [&](std::uint8_t) {
    ++calls;
    loop.forget(pair->first.get());
  });
  ASSERT_EQ(::write(pair->second.get(), "x", 1), 1);
  loop.run_until(now() + milliseconds(20));
  EXPECT_EQ(calls, 1);
}

struct Pair {
  Loop loop;
  std::vector<Bytes> frames;
  std::vector<std::string> closed;
  Descriptor other;
  std::unique_ptr<FrameSocket> socket;

  explicit Pair(std::size_t max_frame) {
    auto pair = socket_pair();
    other = std::move(pair->second);
    socket = std::make_unique<FrameSocket>(
        loop, std::move(pair->first), max_frame, [this](Bytes frame) { frames.push_back(std::move(frame)); },
        [this](const std::string& why) { closed.push_back(why); });
  }
  void put(const std::string& bytes) {
    ASSERT_EQ(::write(other.get(), bytes.data(), bytes.size()), ssize_t(bytes.size()));
  }
  void run() { loop.run_until(now() + milliseconds(20)); }
};

Bytes bytes(std::string_view text) {
  Bytes out;
  for (const char c : text)
    out.push_back(static_cast<std::byte>(c));
  return out;
}

TEST(FrameSocket, PutsTogetherAFrameThatArrivesInPieces) {
  Pair pair(100);
  using namespace std::string_literals;
  pair.put("\3\0"s);
  pair.run();
  pair.put("\0\0ab"s);
  pair.run();
  EXPECT_TRUE(pair.frames.empty());
  pair.put("c\1\0\0\0d"s);
  pair.run();
  EXPECT_THAT(pair.frames, testing::ElementsAre(bytes("abc"), bytes("d")));
}

TEST(FrameSocket, RefusesAFrameAboveItsLimitBeforeReadingIt) {
  Pair pair(100);
  using namespace std::string_literals;
  pair.put("\0\0\0\x40"s);  // 1 GiB
  pair.run();
  EXPECT_THAT(pair.closed, testing::ElementsAre(testing::HasSubstr("1073741824 bytes is too large")));
}

TEST(FrameSocket, SaysWhenTheOtherSideEndsInMidFrame) {
  Pair pair(100);
  using namespace std::string_literals;
  pair.put("\3\0\0\0a"s);
  pair.other.reset();
  pair.run();
  EXPECT_THAT(pair.closed, testing::ElementsAre(testing::HasSubstr("middle of a frame")));
}

TEST(FrameSocket, AnOrderlyEndGivesNoReason) {
  Pair pair(100);
  pair.other.reset();
  pair.run();
  EXPECT_THAT(pair.closed, testing::ElementsAre(""));
}

TEST(FrameSocket, ClosesWhenTheOtherSideNeverReads) {
  Pair pair(1 << 20);
  for (int i = 0; i < 8; ++i)
    pair.socket->send(Bytes(1 << 20));
  pair.run();
  EXPECT_THAT(pair.closed, testing::ElementsAre(testing::HasSubstr("does not read")));
}

TEST(FrameSocket, MayBeDestroyedByItsOwnFrame) {
  auto pair = socket_pair();
  ASSERT_TRUE(pair);
  Loop loop;
  std::unique_ptr<FrameSocket> socket;
  int frames = 0;
  socket = std::make_unique<FrameSocket>(
      loop, std::move(pair->first), 100,
      [&](const Bytes&) {
        ++frames;
        socket.reset();
      },
      nullptr);
  ASSERT_EQ(::write(pair->second.get(), "\1\0\0\0a\1\0\0\0b", 10), 10);
  loop.run_until(now() + milliseconds(20));
  EXPECT_EQ(frames, 1);
}

}  // namespace
}  // namespace netcheck::system
