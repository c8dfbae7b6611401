// What an interface's queue has sent, in a network namespace with a pair of virtual interfaces.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "fabric/meter.h"

namespace netcheck::fabric {
namespace {

/// 64 datagrams of one byte each in one call.
bool send_as_one() {
  const int sender = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const int segment = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(9);
  address.sin_addr.s_addr = ::inet_addr("10.1.1.2");
  const std::array<char, 64> bytes{};
  return ::setsockopt(sender, SOL_UDP, UDP_SEGMENT, &segment, sizeof segment) == 0 &&
         ::sendto(sender, bytes.data(), bytes.size(), 0, reinterpret_cast<const sockaddr*>(&address),
                  sizeof address) == static_cast<ssize_t>(bytes.size());
}

/// The exit status says what was wrong.
int counts_each_header() {
  if (::unshare(CLONE_NEWNET) != 0 ||
      std::system("ip link add out type veth peer name in && ip link set in up && ip link set out up && "
                  "ip address add 10.1.1.1/24 dev out && ip neighbour add 10.1.1.2 lladdr 02:00:00:00:00:02 "
                  "dev out && "
                  "tc qdisc add dev out root tbf rate 1gbit burst 100k latency 50ms") != 0)
    return 10;
  const Queue queue("out");
  const auto before = queue.sent();
  if (!before) return 11;
  if (!send_as_one()) return 12;
  const auto after = queue.sent();
  // 64 times Ethernet's, IP's and UDP's headers and a byte: 2,752. What IPv6 says at the start may come with
  // it.
  if (!after || *after - *before < 64 * 43 || *after - *before > 64 * 43 + 1'000) return 13;
  return Queue("none").sent() ? 14 : Queue("in").sent().value_or(0) > 0 ? 15 : 0;  // the latter has no queue
}

TEST(QueueTest, CountsEachHeaderOfWhatWasSentAsOne) {
  const pid_t process = ::fork();
  if (process == 0) ::_exit(counts_each_header());
  int status = 0;
  ASSERT_EQ(::waitpid(process, &status, 0), process);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace netcheck::fabric
