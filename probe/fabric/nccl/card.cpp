#include "fabric/nccl/card.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>

#include "contract/wire.h"

namespace netcheck::fabric::nccl {

namespace {

constexpr std::size_t kMaxVersion = 32;
/// Of one node, all interfaces: a hypervisor has some dozens, and a card must stay small.
constexpr std::size_t kMaxSources = 64;
constexpr std::size_t kAddressInId = 8;  // after eight bytes of magic, since NCCL 2.14

template <typename T>
T taken_from(const NcclId& id, std::size_t offset) {
  T value{};
  std::memcpy(&value, &id.bytes.at(offset), sizeof value);
  return value;
}

}  // namespace

Bytes encode(const Card& card) {
  Bytes id;
  if (card.id) {
    const auto* first = reinterpret_cast<const std::byte*>(card.id->bytes.data());
    id.assign(first, first + card.id->bytes.size());
  }
  Json sources = Json::array();
  for (const auto& source : card.sources)
    if (sources.size() < kMaxSources) sources.push_back(Json::binary({source.begin(), source.end()}));
  return to_cbor({{"version", card.version}, {"id", bytes_to_json(id)}, {"sources", std::move(sources)}});
}

Result<Card> decode_card(const Bytes& frame, const std::string& from) {
  return read_frame(frame, from, [](const Json& value) {
    const Fields fields(value, "card");
    Card card{fields.text("version", kMaxVersion), {}, {}};
    const Bytes id = fields.bytes("id", sizeof(NcclId));
    if (!id.empty() && id.size() != sizeof(NcclId)) throw Malformed{"card: the id is none"};
    if (!id.empty()) std::memcpy(card.id.emplace().bytes.data(), id.data(), id.size());
    for (const auto& entry : fields.array("sources", kMaxSources)) {
      Address source{};
      if (!entry.is_binary() || entry.get_binary().size() != source.size())
        throw Malformed{"card: a source is no address"};
      std::copy_n(entry.get_binary().begin(), source.size(), source.begin());
      card.sources.push_back(source);
    }
    return card;
  });
}

Bootstrap bootstrap_of(const NcclId& id) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const auto family = taken_from<sa_family_t>(id, kAddressInId);
  if (family == AF_INET) {
    const auto address = taken_from<sockaddr_in>(id, kAddressInId);
    ::inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
    return {fmt::format("{}:{}", text.data(), ntohs(address.sin_port)),
            (ntohl(address.sin_addr.s_addr) >> 24U) == IN_LOOPBACKNET};
  }
  if (family == AF_INET6) {
    const auto address = taken_from<sockaddr_in6>(id, kAddressInId);
    ::inet_ntop(AF_INET6, &address.sin6_addr, text.data(), text.size());
    return {fmt::format("[{}]:{}", text.data(), ntohs(address.sin6_port)),
            IN6_IS_ADDR_LOOPBACK(&address.sin6_addr) != 0};
  }
  return {};
}

}  // namespace netcheck::fabric::nccl
