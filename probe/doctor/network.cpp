// Ports, credentials, names, interfaces, the peer. See network.h.
#include "doctor/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "doctor/words.h"
#include "peers/address.h"
#include "peers/peers.h"

namespace netcheck::doctor {

namespace {

/// Whether some job's ports would all be taken. A job's ports follow from its id (peers::ports_of).
bool leaves_a_job_without(const PortFacts& facts, const std::set<std::uint16_t>& taken) {
  const std::uint32_t jobs = std::uint32_t{facts.last} - facts.first + 1;  // then they repeat
  for (std::uint32_t job = 0; job < jobs; ++job) {
    const auto ports = peers::ports_of(job, facts.first, facts.last);
    if (std::ranges::all_of(ports, [&](std::uint16_t port) { return taken.contains(port); })) return true;
  }
  return false;
}

std::string ports_text(std::uint16_t first, std::uint16_t last) {
  return first == last ? fmt::format("TCP port {}", first) : fmt::format("TCP ports {} to {}", first, last);
}

std::string text_of(const Nic& nic) {
  std::string text = nic.name;
  std::vector<std::string> about;
  if (!nic.address.empty()) about.push_back(nic.address);
  if (nic.speed) about.push_back(format_rate(*nic.speed, true));
  if (nic.mtu) about.push_back(fmt::format("MTU {}", *nic.mtu));
  return about.empty() ? text : text + fmt::format(" ({})", fmt::join(about, ", "));
}

/// ": WHY; WHY", without those that say the same.
std::string told(const Meeting& meeting) {
  const std::set<std::string> different(meeting.said.begin(), meeting.said.end());
  return different.empty() ? "" : fmt::format(": {}", fmt::join(different, "; "));
}

Finding reach_finding(const PeerFacts& facts, const Reach& reach) {
  const std::string what = "peer " + facts.node;
  const std::string ports = ports_text(reach.first, reach.last);
  if (!reach.failed.empty())
    return {Level::fail, what, fmt::format("{}, {}: {}", reach.address, ports, reach.failed.begin()->first),
            fmt::format("look at the route to it and at its firewall: {} must be open between compute nodes",
                        ports)};
  const unsigned all = reach.answered + reach.refused + reach.silent;
  if (reach.silent > 0)
    return {
        Level::fail, what,
        fmt::format("{}: {} of {} ports from {} to {} do not answer", reach.address, reach.silent, all,
                    reach.first, reach.last),
        fmt::format("is the node up? Open {} between compute nodes in its firewall and in those on the way",
                    ports)};
  return fine(what, fmt::format("{} answers on {}: no firewall between", reach.address, ports));
}

}  // namespace

Findings check_ports(const PortFacts& facts) {
  constexpr const char* kWhat = "ports";
  Findings findings;
  const std::string range = ports_text(facts.first, facts.last);
  const std::set<std::uint16_t> all(facts.taken.begin(), facts.taken.end());
  std::set<std::uint16_t> taken(all.lower_bound(facts.first), all.upper_bound(facts.last));
  const std::string names = fmt::format("{}", fmt::join(taken, ", "));
  if (leaves_a_job_without(facts, taken))
    findings.push_back(
        {Level::fail, kWhat,
         fmt::format("others listen on {}: jobs whose ports these are cannot be checked", names),
         "set first_port and last_port in netcheck.toml, on all nodes, to ports that are free"});
  else if (!taken.empty())
    findings.push_back(
        {Level::warn, kWhat,
         fmt::format("others listen on {} (or a check that is running); each job still finds one", names),
         ""});
  if (facts.last >= facts.least_unprivileged)
    findings.push_back(
        {Level::warn, kWhat,
         fmt::format("any user may listen on ports from {} on, and so keep a job's check from taking "
                     "place (never pass for it)",
                     facts.least_unprivileged),
         "set first_port and last_port in netcheck.toml below that"});
  if (findings.empty())
    findings.push_back(fine(
        kWhat, fmt::format("{} are free; let firewalls pass them between compute nodes (--peer NODE tries)",
                           range)));
  return findings;
}

std::vector<std::uint16_t> listening_ports(std::string_view table) {
  // "  0: 00000000:1AA2 00000000:0000 0A …": local address, remote, state; in hexadecimal. 0A is LISTEN.
  std::vector<std::uint16_t> ports;
  while (!table.empty()) {
    const std::size_t end = std::min(table.find('\n'), table.size());
    const std::string_view line = table.substr(0, end);
    table.remove_prefix(std::min(end + 1, table.size()));
    const std::size_t number = line.find(": ");
    const std::size_t colon = number == std::string_view::npos ? number : line.find(':', number + 1);
    if (colon == std::string_view::npos) continue;
    const std::size_t remote = line.find(' ', colon);
    const std::size_t state = remote == std::string_view::npos ? remote : line.find(' ', remote + 1);
    if (state == std::string_view::npos || line.substr(state + 1, 3) != "0A ") continue;
    std::uint16_t port = 0;
    constexpr int kHexadecimal = 16;
    const auto [stop, error] =
        std::from_chars(line.data() + colon + 1, line.data() + remote, port, kHexadecimal);
    if (error == std::errc{}) ports.push_back(port);
  }
  return ports;
}

Findings check_credential(const CredentialFacts& facts) {
  if (facts.error)
    return {finding_of(Level::fail, facts.kind, *facts.error,
                       facts.kind == "munge" ? "start munged on this node" : "")};
  return {fine(facts.kind, fmt::format("a credential was sealed and opened as {} in {}", facts.as,
                                       format_duration(facts.took)))};
}

Findings check_name(const NameFacts& facts) {
  const std::string what = facts.here ? "own name" : "name of " + facts.node;
  const std::string name =
      facts.address == facts.node ? facts.node : fmt::format("{} (for {})", facts.address, facts.node);
  const std::string remedy = address_remedy(facts.address);
  if (facts.error) {
    Finding finding = finding_of(Level::fail, what, *facts.error);
    finding.remedy = remedy;
    return {finding};
  }
  std::vector<std::string> usable;
  for (const std::string& number : facts.numbers) {
    const auto address = peers::parse_address(number, 0);
    if (address && !peers::stays_on_node(*address)) usable.push_back(number);
  }
  if (usable.empty())
    return {
        {Level::fail, what,
         fmt::format("{} resolves to {}, which never leaves a node", name,
                     facts.numbers.empty() ? "nothing" : fmt::format("{}", fmt::join(facts.numbers, ", "))),
         remedy}};
  const std::string found = fmt::format("{} is {}", name, fmt::join(usable, ", "));
  const auto is_own = [&](const std::string& number) {
    return std::ranges::find(facts.own, number) != facts.own.end();
  };
  if (facts.here && std::ranges::none_of(usable, is_own))
    return {{Level::fail, what, found + ", which is no address of this node", remedy}};
  return {fine(what, found)};
}

Findings check_interfaces(const InterfaceFacts& facts) {
  constexpr const char* kWhat = "interfaces";
  if (facts.error) {
    Finding finding = finding_of(Level::fail, kWhat, *facts.error, "name them with devices in netcheck.toml");
    // They are chosen by the way to the other node: its name is in the way, not a device.
    if (facts.error->attempted == kLookUp) finding.remedy = address_remedy(facts.error->subject);
    return {finding};
  }
  std::vector<std::string> used, down;
  for (const std::string& lane : facts.lanes) {
    const auto nic = std::ranges::find(facts.nics, lane, &Nic::ucx_device);
    used.push_back(nic == facts.nics.end() ? lane : text_of(*nic));
    if (nic != facts.nics.end() && !nic->up) down.push_back(lane);
  }
  if (!down.empty())
    return {{Level::fail, kWhat,
             fmt::format("{} of those that would be used are down", fmt::join(down, ", ")),
             "bring them up, or name others with devices in netcheck.toml"}};
  return {fine(kWhat, fmt::format("{} would be measured{}", fmt::join(used, ", "),
                                  facts.towards.empty() ? "" : " between this node and " + facts.towards))};
}

Findings check_peer(const PeerFacts& facts) {
  const std::string what = "peer " + facts.node;
  if (facts.node == facts.self)
    return {{Level::fail, what, "that is this node itself", "name another one with --peer"}};
  if (facts.meeting && facts.meeting->met)
    return {fine(what, fmt::format("met, each with proof of who the other is, in {}",
                                   format_duration(facts.meeting->took)))};
  if (facts.listened && !facts.root)
    return {{Level::unseen, what, "the ports of a check are root's to listen on", "run this as root"}};
  if (facts.meeting && facts.meeting->error) return {finding_of(Level::fail, what, *facts.meeting->error)};
  const std::string hindered = facts.meeting ? told(*facts.meeting) : "";
  if (facts.listened)
    return {{Level::fail, what, "no meeting came about" + hindered,
             hindered.empty() ? fmt::format("run `netcheck doctor --peer {}` on {} while this waits",
                                            facts.self, facts.node)
                              : "mend that, then try again"}};
  if (!facts.reach)
    return {{Level::fail, what, "there is no address to reach it at", "see the line on its name"}};
  Findings findings{reach_finding(facts, *facts.reach)};
  if (findings.front().level == Level::fail) return findings;
  if (!facts.root)
    findings.push_back({Level::unseen, what, "the rendezvous itself is root's to try", "run this as root"});
  else if (facts.reach->answered > 0)
    findings.push_back(
        {Level::fail, what, "somebody listens there, and no meeting came about" + hindered,
         fmt::format("if that is `netcheck doctor --listen --peer {}` on {}, its own report names the "
                     "cause; if not, start that first",
                     facts.self, facts.node)});
  else
    findings.push_back({Level::warn, what, "nobody waits there, so the rendezvous itself was not tried",
                        fmt::format("run `netcheck doctor --listen --peer {}` on {}, then this again",
                                    facts.self, facts.node)});
  return findings;
}

}  // namespace netcheck::doctor
