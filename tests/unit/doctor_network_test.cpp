// Ports, credentials, names, interfaces, the other node.
#include <gmock/gmock.h>

#include "doctor/network.h"

namespace netcheck::doctor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Finding only(const Findings& findings) {
  EXPECT_EQ(findings.size(), 1U);
  return findings.front();
}

TEST(DoctorPorts, AreReadFromTheKernelsTable) {
  // Lines of Linux 6.1: 1AA2 is 6818 in LISTEN (0A), 035C is 860; the second is established (01).
  EXPECT_THAT(listening_ports(
                  "  sl  local_address rem_address   st tx_queue\n"
                  "   0: 00000000:1AA2 00000000:0000 0A 00000000:00000000 00:00000000\n"
                  "   1: 0100007F:0360 0200007F:D431 01 00000000:00000000 00:00000000\n"
                  "   2: 00000000000000000000000000000000:035C 00000000000000000000000000000000:0000 0A 0\n"),
              ElementsAre(6818, 860));
  EXPECT_TRUE(listening_ports("").empty());
  EXPECT_TRUE(listening_ports("garbage: x:y z 0A \n:::\n").empty());
}

TEST(DoctorPorts, FailOnlyWhereSomeJobWouldHaveNone) {
  // A job has four in a row: 860-863 for job 0, 864-867 for job 1, …
  PortFacts facts{.first = 860, .last = 899, .taken = {22, 859, 900}, .least_unprivileged = 1024};
  EXPECT_EQ(only(check_ports(facts)).level, Level::ok);
  facts.taken = {860, 861, 862};
  EXPECT_EQ(only(check_ports(facts)).level, Level::warn);
  EXPECT_THAT(only(check_ports(facts)).why, HasSubstr("860, 861, 862"));
  facts.taken = {863, 862, 861, 860, 860};
  EXPECT_EQ(only(check_ports(facts)).level, Level::fail);
  EXPECT_THAT(only(check_ports(facts)).remedy, HasSubstr("first_port"));
}

TEST(DoctorPorts, WarnWhereAnyUserCouldTakeThem) {
  PortFacts facts{.first = 860, .last = 899, .least_unprivileged = 1024};
  facts.least_unprivileged = 899;  // as in a container: net.ipv4.ip_unprivileged_port_start
  EXPECT_EQ(only(check_ports(facts)).level, Level::warn);
  facts.least_unprivileged = 900;
  EXPECT_EQ(only(check_ports(facts)).level, Level::ok);
}

TEST(DoctorCredential, TellsWhatMungeSays) {
  EXPECT_EQ(only(check_credential({.kind = "munge", .as = "netcheck"})).level, Level::ok);
  const auto finding = only(check_credential(
      {.kind = "munge", .error = Error{"ask", "credential", "no answer within 3.0s", ""}, .as = "netcheck"}));
  EXPECT_EQ(finding.level, Level::fail);
  EXPECT_EQ(finding.remedy, "start munged on this node");
}

TEST(DoctorName, LeadsToAnotherNode) {
  struct Case {
    NameFacts facts;
    Level level;
    const char* why;
  };
  const std::vector<Case> cases{
      {{.node = "n1", .address = "n1", .numbers = {"10.0.0.1"}, .here = true, .own = {"10.0.0.1"}},
       Level::ok,
       "n1 is 10.0.0.1"},
      {{.node = "n2", .address = "n2-ib0", .numbers = {"10.0.0.2"}, .own = {"10.0.0.1"}},
       Level::ok,
       "n2-ib0 (for n2) is 10.0.0.2"},
      // Debian gives a host's own name to loopback.
      {{.node = "n1", .address = "n1", .numbers = {"127.0.1.1"}, .here = true, .own = {"10.0.0.1"}},
       Level::fail,
       "127.0.1.1, which never leaves a node"},
      {{.node = "n2", .address = "n2", .numbers = {"::1", "0.0.0.0"}}, Level::fail, "never leaves a node"},
      {{.node = "n1",
        .address = "n1",
        .numbers = {"127.0.1.1", "10.0.0.1"},
        .here = true,
        .own = {"10.0.0.1"}},
       Level::ok,
       "n1 is 10.0.0.1"},
      {{.node = "n1", .address = "n1", .numbers = {"10.0.0.9"}, .here = true, .own = {"10.0.0.1"}},
       Level::fail,
       "no address of this node"},
      {{.node = "n2", .address = "n2", .error = Error{"look up", "n2", "Name or service not known", ""}},
       Level::fail,
       "Name or service not known"},
      {{.node = "n2", .address = "n2"}, Level::fail, "nothing"},
  };
  for (const Case& one : cases) {
    const Finding finding = only(check_name(one.facts));
    EXPECT_EQ(name(finding.level), name(one.level)) << one.why;
    EXPECT_THAT(finding.why, HasSubstr(one.why));
    EXPECT_EQ(finding.remedy.find("/etc/hosts") != std::string::npos, one.level == Level::fail);
  }
}

TEST(DoctorInterfaces, AreNamedWithWhatIsKnownOfThem) {
  InterfaceFacts facts{
      .nics = {{.name = "eth0", .ucx_device = "eth0", .address = "10.0.0.1", .up = true, .mtu = 1500},
               {.name = "mlx5_0", .ucx_device = "mlx5_0:1", .rdma = true, .up = true, .speed = Rate{400e9}}},
      .lanes = {"mlx5_0:1", "eth0"},
      .towards = "n2"};
  const Finding finding = only(check_interfaces(facts));
  EXPECT_EQ(finding.level, Level::ok);
  EXPECT_EQ(finding.why,
            "mlx5_0 (400Gbps), eth0 (10.0.0.1, MTU 1500) would be measured between this node and n2");
  facts.nics[1].up = false;
  EXPECT_EQ(only(check_interfaces(facts)).level, Level::fail);
  facts.error = Error{"use the device", "mlx5_9", "this node has no such device", "its devices are: eth0"};
  EXPECT_EQ(only(check_interfaces(facts)).level, Level::fail);
  EXPECT_EQ(only(check_interfaces(facts)).remedy, "its devices are: eth0");
  facts.error = Error{kLookUp, "n9", "Name or service not known", ""};
  EXPECT_THAT(only(check_interfaces(facts)).remedy,
              testing::StartsWith("give n9 an address that other nodes reach"));
}

PeerFacts knocked(unsigned answered, unsigned refused, unsigned silent,
                  std::map<std::string, unsigned> failed = {}) {
  return {.node = "n2",
          .self = "n1",
          .reach = Reach{.address = "10.0.0.2",
                         .first = 860,
                         .last = 899,
                         .answered = answered,
                         .refused = refused,
                         .silent = silent,
                         .failed = std::move(failed)}};
}

TEST(DoctorPeer, IsMetOrReachedOrNeither) {
  PeerFacts met = knocked(1, 39, 0);
  met.meeting = Meeting{.met = true, .took = std::chrono::milliseconds(2)};
  EXPECT_EQ(only(check_peer(met)).level, Level::ok);

  const Findings reached = check_peer(knocked(0, 40, 0));  // the node itself answers: a firewall would not
  ASSERT_EQ(reached.size(), 2U);
  EXPECT_EQ(reached[0].level, Level::ok);
  EXPECT_EQ(reached[1].level, Level::warn);
  EXPECT_THAT(reached[1].remedy, HasSubstr("`netcheck doctor --listen --peer n1` on n2"));

  const Finding silent = only(check_peer(knocked(0, 20, 20)));
  EXPECT_EQ(silent.level, Level::fail);
  EXPECT_THAT(silent.why, HasSubstr("20 of 40"));
  EXPECT_THAT(silent.remedy, HasSubstr("TCP ports 860 to 899"));

  const Finding unroutable = only(check_peer(knocked(0, 0, 0, {{"No route to host", 40}})));
  EXPECT_EQ(unroutable.level, Level::fail);
  EXPECT_THAT(unroutable.why, HasSubstr("No route to host"));
}

TEST(DoctorPeer, NamesWhyAMeetingFailed) {
  PeerFacts facts = knocked(1, 39, 0);
  facts.meeting = Meeting{.said = {"10.0.0.2:860: the two nodes have different munge keys"}};
  const Finding finding = check_peer(facts).back();
  EXPECT_EQ(finding.level, Level::fail);
  EXPECT_THAT(finding.why, HasSubstr("different munge keys"));
  facts.meeting = Meeting{.error = Error{"become", "netcheck", "no such account", ""}};
  EXPECT_THAT(only(check_peer(facts)).why, HasSubstr("no such account"));
  PeerFacts ordinary = knocked(0, 40, 0);  // an ordinary user's: reached, and no more than that can be said
  ordinary.root = false;
  EXPECT_EQ(check_peer(ordinary).front().level, Level::ok);
  EXPECT_EQ(check_peer(ordinary).back().level, Level::unseen);
  PeerFacts waited{.node = "n2", .self = "n1", .meeting = Meeting{}, .listened = true};
  EXPECT_EQ(only(check_peer(waited)).level, Level::fail);
  EXPECT_THAT(only(check_peer(waited)).remedy, HasSubstr("on n2"));
  EXPECT_EQ(only(check_peer({.node = "n1", .self = "n1"})).why, "that is this node itself");
}

}  // namespace
}  // namespace netcheck::doctor
