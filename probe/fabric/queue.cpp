// See queue.h. rtnetlink(7): a request for the one discipline at the root of an interface, answered at once.
#include "fabric/queue.h"

#include <linux/gen_stats.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

namespace netcheck::fabric {
namespace {

/// An attribute's payload in a run of attributes.
std::optional<std::span<const std::byte>> attribute(std::span<const std::byte> run, unsigned short type) {
  while (run.size() >= sizeof(rtattr)) {
    rtattr head{};
    std::memcpy(&head, run.data(), sizeof head);
    if (head.rta_len < sizeof head || head.rta_len > run.size()) break;
    if ((head.rta_type & NLA_TYPE_MASK) == type) return run.subspan(sizeof head, head.rta_len - sizeof head);
    run = run.subspan(std::min<std::size_t>(RTA_ALIGN(head.rta_len), run.size()));
  }
  return std::nullopt;
}

/// Of an answer to RTM_GETQDISC.
std::optional<std::uint64_t> bytes_in(std::span<const std::byte> message) {
  nlmsghdr head{};
  constexpr std::size_t kBody = NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(tcmsg));
  if (message.size() < kBody) return std::nullopt;
  std::memcpy(&head, message.data(), sizeof head);
  if (head.nlmsg_type != RTM_NEWQDISC || head.nlmsg_len > message.size()) return std::nullopt;
  const auto stats = attribute(message.subspan(kBody), TCA_STATS2);
  const auto basic = stats ? attribute(*stats, TCA_STATS_BASIC) : std::nullopt;
  std::uint64_t bytes = 0;  // the first member of gnet_stats_basic
  if (!basic || basic->size() < sizeof bytes) return std::nullopt;
  std::memcpy(&bytes, basic->data(), sizeof bytes);
  return bytes;
}

}  // namespace

Queue::Queue(const std::string& interface)
    : interface_(static_cast<int>(::if_nametoindex(interface.c_str()))),
      socket_(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE)) {}

std::optional<std::uint64_t> Queue::sent() const {
  if (interface_ == 0 || !socket_) return std::nullopt;
  struct {
    nlmsghdr head;
    tcmsg body;
  } request{};
  request.head.nlmsg_len = sizeof request;
  request.head.nlmsg_type = RTM_GETQDISC;
  request.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ECHO;  // without the latter only listeners hear of it
  request.body.tcm_ifindex = interface_;
  request.body.tcm_parent = TC_H_ROOT;
  if (::sendto(socket_.get(), &request, sizeof request, 0, nullptr, 0) != sizeof request) return std::nullopt;
  std::array<std::byte, 8192> answer{};
  const ssize_t size = ::recv(socket_.get(), answer.data(), answer.size(), 0);
  if (size <= 0) return std::nullopt;
  return bytes_in(std::span(answer).first(static_cast<std::size_t>(size)));
}

}  // namespace netcheck::fabric
