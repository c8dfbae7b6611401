// A node's card as CBOR.
#include "fabric/ucx/card.h"

#include <algorithm>

#include "contract/wire.h"

namespace netcheck::fabric::ucx {

namespace {

constexpr std::size_t kMaxLanes = 256;  // as in the frames that carry cards
constexpr std::size_t kMaxAddress =
    std::size_t{16} * 1024;  // a worker with RDMA transports has some hundred bytes
constexpr std::size_t kMaxVersion = 32;

std::string minor_of(const std::string& version) {
  return version.substr(0, version.find('.', version.find('.') + 1));
}

}  // namespace

Bytes encode(const Card& card) {
  Json addresses = Json::array();
  for (const auto& address : card.addresses)
    addresses.push_back(bytes_to_json(address));
  return to_cbor({{"version", card.version},
                  {"addresses", std::move(addresses)},
                  {"key", Json::binary({card.key.begin(), card.key.end()})}});
}

Result<Card> decode_card(const Bytes& frame, const std::string& from) {
  return read_frame(frame, from, [](const Json& value) {
    const Fields fields(value, "card");
    Card card{fields.text("version", kMaxVersion), {}, {}};
    for (const auto& entry : fields.array("addresses", kMaxLanes)) {
      if (!entry.is_binary() || entry.get_binary().size() > kMaxAddress)
        throw Malformed{"card: an address is no address"};
      const auto& raw = entry.get_binary();
      const auto* first = reinterpret_cast<const std::byte*>(raw.data());
      card.addresses.emplace_back(first, first + raw.size());
    }
    const Json& key = fields.has("key") ? value.at("key") : value;
    if (!key.is_binary() || key.get_binary().size() != card.key.size())
      throw Malformed{"card: the key is no key"};
    std::copy_n(key.get_binary().begin(), card.key.size(), card.key.begin());
    return card;
  });
}

bool speak_together(const std::string& one, const std::string& other) {
  return minor_of(one) == minor_of(other);
}

}  // namespace netcheck::fabric::ucx
