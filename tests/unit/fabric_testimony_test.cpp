// When a fabric child's missing bytes are evidence of a bad network, and when they are not, since others on
// its node could have kept them from coming. Its host runs in a network namespace of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "fabric/child.h"
#include "own_tree.h"

namespace netcheck::fabric {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::IsEmpty;
using testing::SizeIs;

class Testimony : public testing::Test {
 protected:
  Testimony() {
    std::ofstream(host_) << "#!/bin/sh\nexec unshare --net sh -c 'ip link set lo up; exec \"$0\" \"$@\"' "
                         << own(NETCHECK_TEST_HOST) << " \"$@\"\n";
    ::chmod(host_.c_str(), S_IRWXU);
  }
  ~Testimony() override { std::filesystem::remove(host_); }

  /// Of a batch that had brought 4096 bytes when it was given up, after `what` had happened to the child.
  std::vector<Sample> after(const std::string& what) {
    std::vector<Event> events;
    ChildFabric fabric(loop_, ChildCommand{host_, own(NETCHECK_TEST_MODULES), "fake"},
                       [&](Event event) { events.push_back(std::move(event)); });
    fabric.open({{"eth0", "invite=" + what, "run=wait"}, 0});
    fabric.invite(Team{1, {{0, 0}, {1, 0}}}, 0);
    Batch batch;
    batch.id = 7;
    batch.team = 1;
    batch.bytes = 4096;
    batch.iterations = 3;
    fabric.run(batch);
    turn([&] { return events.size() >= 2; }, seconds(20));
    turn([] { return false; }, 2 * kSilence);  // signs of life
    fabric.abandon();
    turn([&] { return events.size() >= 3; }, seconds(20));
    const Failed* failed = events.size() == 3 ? std::get_if<Failed>(&events.back()) : nullptr;
    EXPECT_TRUE(failed != nullptr && failed->trouble == judge::Trouble::no_bytes) << events.size();
    return failed == nullptr ? std::vector<Sample>() : failed->partial;
  }

 private:
  template <typename Done>
  void turn(Done done, Ns patience) {
    const Time deadline = system::now() + patience;
    while (!done() && system::now() < deadline)
      loop_.turn(std::min(deadline, system::now() + milliseconds(20)));
  }

  system::Loop loop_;
  std::string host_ = std::filesystem::temp_directory_path() / ("host-" + std::to_string(::getpid()));
};

TEST_F(Testimony, CountsWhereNothingElseIsToBlame) {
  EXPECT_THAT(after("nothing"), SizeIs(1));
}

TEST_F(Testimony, IsNoneOnceAStrangerWasTurnedAway) {
  EXPECT_THAT(after("stranger"), IsEmpty());
}

TEST_F(Testimony, IsNoneForWantOfAPort) {
  EXPECT_THAT(after("portless"), IsEmpty());
}

TEST_F(Testimony, IsNoneOnceAListenersQueueWasFull) {
  EXPECT_THAT(after("crowded"), IsEmpty());
}

}  // namespace
}  // namespace netcheck::fabric
