// Frames between the probe and its fabric child. Pure.
#include "fabric/codec.h"

#include <array>

#include "contract/wire.h"
#include "judge/names.h"

namespace netcheck::fabric {

namespace {

constexpr std::size_t kMaxLanes = 256;  // a node of 16 GPUs has 16; headroom for virtual functions
constexpr std::size_t kMaxName = 128;   // device, lane, module, version, transport of one lane
constexpr std::size_t kMaxCard = std::size_t{256} * 1024;  // kMaxLanes addresses of 1 KiB
constexpr std::size_t kMaxCards = 65'536;                  // one per member node: as many as a team has ranks
constexpr std::size_t kMaxSamples = 1'024;  // ranks of one node in one batch, or in all running ones
constexpr std::size_t kMaxTransport = std::size_t{16} * 1024;  // one name per lane

constexpr std::size_t kMaxSettings = 256;
constexpr std::size_t kMaxSetting = 4'096;  // a path, or a list of devices

constexpr std::array kTroubles = {judge::Trouble::no_bytes, judge::Trouble::late, judge::Trouble::child_died,
                                  judge::Trouble::child_silent, judge::Trouble::refused};

template <typename... Cases>
struct Match : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Match(Cases...) -> Match<Cases...>;

Json texts(const std::vector<std::string>& values) {
  Json list = Json::array();
  for (const auto& value : values)
    list.push_back(value);
  return list;
}

std::vector<std::string> texts_from(const Fields& fields, std::string_view key, std::size_t most,
                                    std::size_t longest) {
  std::vector<std::string> values;
  for (const auto& entry : fields.array(key, most)) {
    if (!entry.is_string()) throw Malformed{std::string(key) + ": not a text"};
    values.push_back(entry.get<std::string>());
    if (values.back().size() > longest) throw Malformed{std::string(key) + ": a text is too long"};
  }
  return values;
}

std::map<std::string, std::string> settings_from(const Json& value) {
  if (!value.is_object() || value.size() > kMaxSettings) throw Malformed{"settings: no list of settings"};
  std::map<std::string, std::string> settings;
  for (const auto& [name, text] : value.items()) {
    if (!text.is_string() || name.size() > kMaxName ||
        text.get_ref<const std::string&>().size() > kMaxSetting)
      throw Malformed{"settings: not a text, or too long"};
    settings[name] = text.get<std::string>();
  }
  return settings;
}

Json samples(const std::vector<Sample>& values) {
  Json list = Json::array();
  for (const auto& value : values)
    list.push_back(to_json(value));
  return list;
}

std::vector<Sample> samples_from(const Fields& fields, std::string_view key) {
  std::vector<Sample> values;
  for (const auto& entry : fields.array(key, kMaxSamples))
    values.push_back(sample_from_json(entry));
  return values;
}

judge::Trouble trouble_from(const Fields& fields) {
  const std::string text = fields.text("trouble", kMaxName);
  for (const auto trouble : kTroubles)
    if (judge::name(trouble) == text) return trouble;
  throw Malformed{"trouble: no such trouble"};
}

Json cards_to_json(const std::vector<Bytes>& cards) {
  Json list = Json::array();
  for (const auto& card : cards)
    list.push_back(bytes_to_json(card));
  return list;
}

std::vector<Bytes> cards_from(const Fields& fields) {
  std::vector<Bytes> cards;
  for (const auto& entry : fields.array("cards", kMaxCards)) {
    if (!entry.is_binary()) throw Malformed{"cards: not bytes"};
    const auto& raw = entry.get_binary();
    if (raw.size() > kMaxCard) throw Malformed{"cards: a card is too large"};
    Bytes card(raw.size());
    for (std::size_t i = 0; i < raw.size(); ++i)
      card[i] = static_cast<std::byte>(raw[i]);
    cards.push_back(std::move(card));
  }
  return cards;
}

Json event_to_json(const Event& event) {
  return std::visit(
      Match{
          [](const Ready& ready) {
            return Json{{"kind", "ready"},
                        {"module", ready.module},
                        {"version", ready.version},
                        {"lanes", texts(ready.lanes)},
                        {"max_bytes", ready.max_bytes},
                        {"terms", texts(ready.terms)}};
          },
          [](const Invited& invited) {
            return Json{{"kind", "invited"}, {"team", invited.team}, {"card", bytes_to_json(invited.card)}};
          },
          [](const Joined& joined) {
            return Json{{"kind", "joined"},
                        {"team", joined.team},
                        {"took", joined.took.count()},
                        {"transport", joined.transport},
                        {"spent", durations_to_json(joined.spent)}};
          },
          [](const Measured& measured) {
            return Json{{"kind", "measured"},
                        {"batch", measured.batch},
                        {"algorithm", measured.algorithm},
                        {"local", samples(measured.local)}};
          },
          [](const Failed& failed) {
            return Json{{"kind", "failed"},
                        {"id", failed.id},
                        {"trouble", judge::name(failed.trouble)},
                        {"detail", printable(failed.detail, kMaxDetail)},
                        {"partial", samples(failed.partial)}};
          },
      },
      event);
}

Json alive_to_json(const Alive& alive) {
  Json list = Json::array();
  for (const auto& [batch, sample] : alive.partial)
    list.push_back(Json{{"batch", batch}, {"sample", to_json(sample)}});
  return Json{{"kind", "alive"}, {"partial", std::move(list)}};
}

Alive alive_from(const Fields& fields) {
  Alive alive;
  for (const auto& entry : fields.array("partial", kMaxSamples)) {
    const Fields part(entry, "partial sample");
    alive.partial.emplace_back(part.u32("batch"), sample_from_json(part.object("sample")));
  }
  return alive;
}

Request request_from(const Json& value) {
  const Fields fields(value, "request");
  const std::string kind = fields.text("kind", kMaxName);
  if (kind == "open")
    return Open{Options{texts_from(fields, "devices", kMaxLanes, kMaxName),
                        fields.count("max_bytes", UINT64_MAX), settings_from(fields.object("settings"))}};
  if (kind == "invite") return Invite{team_from_json(fields.object("team")), fields.u32("self")};
  if (kind == "join")
    return Join{team_from_json(fields.object("team")), cards_from(fields), fields.u32("self")};
  if (kind == "run") return Run{batch_from_json(fields.object("batch"))};
  if (kind == "leave") return Leave{fields.u32("team")};
  throw Malformed{"request of an unknown kind"};
}

Reply reply_from(const Json& value) {
  const Fields fields(value, "reply");
  const std::string kind = fields.text("kind", kMaxName);
  if (kind == "alive") return alive_from(fields);
  if (kind == "ready")
    return Event{Ready{fields.text("module", kMaxName), fields.text("version", kMaxName),
                       texts_from(fields, "lanes", kMaxLanes, kMaxName),
                       fields.count("max_bytes", UINT64_MAX),
                       texts_from(fields, "terms", kMaxTerms, kMaxTerm)}};
  if (kind == "invited") return Event{Invited{fields.u32("team"), fields.bytes("card", kMaxCard)}};
  if (kind == "joined")
    return Event{Joined{fields.u32("team"), fields.duration("took"), fields.text("transport", kMaxTransport),
                        fields.durations("spent", kMaxSpent)}};
  if (kind == "measured")
    return Event{
        Measured{fields.u32("batch"), fields.text("algorithm", kMaxName), samples_from(fields, "local")}};
  if (kind == "failed")
    return Event{Failed{fields.u32("id"), trouble_from(fields), fields.text("detail", kMaxDetail),
                        samples_from(fields, "partial")}};
  throw Malformed{"reply of an unknown kind"};
}

}  // namespace

Bytes encode(const Request& request) {
  return to_cbor(
      std::visit(Match{
                     [](const Open& open) {
                       return Json{{"kind", "open"},
                                   {"devices", texts(open.options.devices)},
                                   {"max_bytes", open.options.max_bytes},
                                   {"settings", open.options.settings}};
                     },
                     [](const Invite& invite) {
                       return Json{{"kind", "invite"}, {"team", to_json(invite.team)}, {"self", invite.self}};
                     },
                     [](const Join& join) {
                       return Json{{"kind", "join"},
                                   {"team", to_json(join.team)},
                                   {"cards", cards_to_json(join.cards)},
                                   {"self", join.self}};
                     },
                     [](const Run& run) {
                       return Json{{"kind", "run"}, {"batch", to_json(run.batch)}};
                     },
                     [](const Leave& leave) {
                       return Json{{"kind", "leave"}, {"team", leave.team}};
                     },
                 },
                 request));
}

Bytes encode(const Reply& reply) {
  const auto* alive = std::get_if<Alive>(&reply);
  return to_cbor(alive != nullptr ? alive_to_json(*alive) : event_to_json(std::get<Event>(reply)));
}

Result<Request> decode_request(const Bytes& frame) {
  return read_frame(frame, "the probe", request_from);
}

Result<Reply> decode_reply(const Bytes& frame) {
  return read_frame(frame, "the fabric child", reply_from);
}

}  // namespace netcheck::fabric
