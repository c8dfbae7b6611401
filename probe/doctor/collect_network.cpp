// The network around this node. See collect.h.
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "contract/wire.h"
#include "doctor/collect.h"
#include "peers/address.h"
#include "peers/clerk.h"
#include "peers/peers.h"
#include "prolog/listener.h"
#include "system/loop.h"
#include "topology/interfaces.h"
#include "topology/inventory.h"

namespace netcheck::doctor {

namespace {

constexpr std::size_t kMaxAddresses = 16;  // of one name; as peers/clerk_worker.cpp
constexpr std::size_t kMaxName = 256;
constexpr std::size_t kMostKnocks = 128;                // ports: the built-in range has forty
constexpr Ns kClerkPatience = std::chrono::seconds(1);  // as session/probe.cpp
constexpr std::size_t kMostSaid = 20;
constexpr auto kLastWords = std::chrono::milliseconds(200);  // until the other has read our last frame

/// The first address of a name that leaves the node.
Result<std::string> number_of(const std::string& name) {
  const auto numbers = look_up(name);
  if (!numbers) return tl::unexpected(numbers.error());
  for (const Json& number : *numbers) {
    const auto address = peers::parse_address(number.get<std::string>(), 0);
    if (address && !peers::stays_on_node(*address)) return number.get<std::string>();
  }
  return fail("reach", printable(name), "it resolves to loopback alone",
              "give it an address that other nodes reach");
}

/// Our own end of a connection to there, by the routing table: nothing is sent.
Result<std::string> local_address_towards(const std::string& number) {
  constexpr std::uint16_t kAnyPort = 9;  // discard
  const auto address = peers::parse_address(number, kAnyPort);
  if (!address) return fail("find the way to", number, "it is no address");
  const system::Descriptor socket(::socket(address->family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket || ::connect(socket.get(), address->get(), address->size) != 0)
    return fail("find the way to", number, std::strerror(errno),
                "look at the routes of this node (ip route)");
  return peers::local_address_of(socket.get());
}

struct Knock {
  system::Descriptor socket;
  int error = EINPROGRESS;
};

void settle(std::vector<Knock>& knocks, Time deadline) {
  for (;;) {
    std::vector<pollfd> wait;
    wait.reserve(knocks.size());
    for (const Knock& knock : knocks)
      wait.push_back({knock.error == EINPROGRESS ? knock.socket.get() : -1, POLLOUT, 0});
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - system::now()).count();
    const bool open = std::ranges::any_of(wait, [](const pollfd& one) { return one.fd >= 0; });
    if (!open || left <= 0) return;
    ::poll(wait.data(), wait.size(), static_cast<int>(left));
    for (std::size_t i = 0; i < knocks.size(); ++i) {
      if (wait[i].revents == 0) continue;
      socklen_t size = sizeof knocks[i].error;
      ::getsockopt(knocks[i].socket.get(), SOL_SOCKET, SO_ERROR, &knocks[i].error, &size);
    }
  }
}

}  // namespace

Result<Json> look_up(const std::string& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int rc = ::getaddrinfo(name.c_str(), nullptr, &hints, &found);
  if (rc != 0)
    return fail(kLookUp, printable(name), rc == EAI_SYSTEM ? std::strerror(errno) : ::gai_strerror(rc));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  Json numbers = Json::array();
  for (const int family : {AF_INET, AF_INET6}) {
    for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
      peers::Address address;
      if (at->ai_family != family || at->ai_addrlen > sizeof address.storage) continue;
      std::memcpy(&address.storage, at->ai_addr, at->ai_addrlen);
      address.size = at->ai_addrlen;
      if (numbers.size() < kMaxAddresses) numbers.push_back(peers::host_of(address));
    }
  }
  return numbers;
}

std::vector<std::string> own_addresses() {
  std::vector<std::string> all;
  for (const topology::Interface& interface : topology::list_interfaces())
    all.insert(all.end(), interface.addresses.begin(), interface.addresses.end());
  return all;
}

Result<Json> ask_interfaces(const Policy& policy, const std::string& node, const std::string& address) {
  const topology::Wanted wanted{policy.devices, policy.exclude};
  const Inventory inventory = topology::take_inventory(node, wanted);
  std::string local;
  std::optional<Error> unreachable;
  const auto number = number_of(address);
  const auto towards = number ? local_address_towards(*number) : number;
  if (towards)
    local = *towards;
  else
    unreachable = towards.error();
  const auto lanes = topology::choose_lanes(inventory, wanted, local);
  if (!lanes) return tl::unexpected(unreachable.value_or(lanes.error()));
  return Json{{"inventory", to_json(inventory)}, {"lanes", *lanes}};
}

InterfaceFacts interface_facts(const Result<Json>& answer, const std::string& towards) {
  InterfaceFacts facts{.towards = towards};
  if (!answer) {
    facts.error = answer.error();
    return facts;
  }
  const Fields fields(*answer, "interfaces");
  facts.nics = inventory_from_json(fields.object("inventory")).nics;
  for (const Json& lane : fields.array("lanes", kMaxName))
    facts.lanes.push_back(lane.get<std::string>());
  return facts;
}

Result<Json> knock(const std::string& name, const Policy& policy, Ns patience) {
  const auto number = number_of(name);
  if (!number) return tl::unexpected(number.error());
  std::vector<Knock> knocks;
  const std::size_t all = std::size_t{policy.last_port} - policy.first_port + 1U;
  const std::size_t step = (all + kMostKnocks - 1) / kMostKnocks;
  for (std::size_t i = 0; i < all; i += step) {
    const auto address = peers::parse_address(*number, static_cast<std::uint16_t>(policy.first_port + i));
    Knock one{.socket = system::Descriptor(
                  ::socket(address->family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0))};
    if (!one.socket) return fail("open", "a socket", std::strerror(errno));
    one.error = ::connect(one.socket.get(), address->get(), address->size) == 0 ? 0 : errno;
    knocks.push_back(std::move(one));
  }
  settle(knocks, system::now() + patience);
  unsigned answered = 0, refused = 0, silent = 0;
  std::map<std::string, unsigned> failed;
  for (const Knock& one : knocks) {
    if (one.error == 0)
      ++answered;
    else if (one.error == ECONNREFUSED)
      ++refused;
    else if (one.error == EINPROGRESS || one.error == ETIMEDOUT)
      ++silent;
    else
      ++failed[std::strerror(one.error)];
  }
  return Json{{"address", *number},   {"first", policy.first_port}, {"last", policy.last_port},
              {"answered", answered}, {"refused", refused},         {"silent", silent},
              {"failed", failed}};
}

std::optional<Reach> reach_of(const Result<Json>& answer) {
  if (!answer) return std::nullopt;
  const Fields fields(*answer, "reach");
  Reach reach{.address = fields.text("address", kMaxName),
              .first = static_cast<std::uint16_t>(fields.u32("first", UINT16_MAX)),
              .last = static_cast<std::uint16_t>(fields.u32("last", UINT16_MAX)),
              .answered = fields.u32("answered"),
              .refused = fields.u32("refused"),
              .silent = fields.u32("silent")};
  for (const auto& [why, count] : fields.object("failed").items())
    reach.failed.emplace(why, count.get<unsigned>());
  return reach;
}

Result<Json> meet(const Appointment& appointment, const Policy& policy) {
  constexpr std::uint32_t kNoJob = 0;  // Slurm's first is 1
  system::Descriptor listener;
  if (appointment.listen) {
    auto bound = prolog::listen_for(kNoJob, policy);
    if (!bound) return tl::unexpected(bound.error());
    listener = std::move(*bound);
  }
  if (auto done = become(policy.probe_user); !done) return tl::unexpected(done.error());
  system::Loop loop;
  const auto clerk = peers::forked_clerk(
      loop, [&policy] { return peers::make_credential(credential_kind(policy)); }, kClerkPatience);
  Roster roster{.run = {.cluster = appointment.cluster, .job = kNoJob},
                .nodes = {appointment.listen ? appointment.self : appointment.peer,
                          appointment.listen ? appointment.peer : appointment.self},
                .self = appointment.listen ? 0U : 1U};
  bool met = false;
  Json said = Json::array();
  const auto sink = [&](const peers::Event& event) {
    if (std::holds_alternative<peers::Proven>(event)) {
      met = true;
      loop.stop();
    } else if (const auto* dropped = std::get_if<peers::Dropped>(&event);
               dropped != nullptr && said.size() < kMostSaid) {
      said.push_back(printable(dropped->from + ": " + dropped->why));
    }
  };
  const Time began = system::now(), deadline = began + appointment.patience;
  const auto peers = appointment.listen
                         ? peers::lead(loop, *clerk, roster, std::move(listener), sink)
                         : peers::follow(loop, *clerk, roster, address_of(policy, appointment.peer),
                                         peers::ports_of(kNoJob, policy.first_port, policy.last_port), false,
                                         deadline, sink);
  static_cast<void>(loop.run_until(deadline));
  const Ns took = system::now() - began;
  if (met) static_cast<void>(loop.run_until(system::now() + kLastWords));
  return Json{{"met", met}, {"took", took.count()}, {"said", said}};
}

Meeting meeting_of(const Result<Json>& answer) {
  if (!answer) return {.error = answer.error()};
  const Fields fields(*answer, "meeting");
  Meeting meeting{.met = fields.flag("met"), .took = fields.duration("took")};
  for (const Json& line : fields.array("said", kMostSaid))
    meeting.said.push_back(line.get<std::string>());
  return meeting;
}

}  // namespace netcheck::doctor
