// The messages as CBOR, and back. Called by the driver for every frame; as the probe user.
#include "session/messages.h"

#include <array>
#include <utility>

#include "contract/wire.h"
#include "judge/names.h"

namespace netcheck::session {
namespace {

constexpr std::size_t kMaxTeams = 64;        // per node and step: rails times one; no node has 64 NICs
constexpr std::size_t kMaxMembers = 65'536;  // as measure's readers allow
constexpr std::size_t kMaxCard = 64u << 10;  // a UCX worker address is a few hundred bytes per lane
constexpr std::size_t kMaxTerms = 64;        // the settings that must agree are about a dozen
constexpr std::size_t kMaxTerm = 1'024;      // "peers.addresses=…" may be long
constexpr std::size_t kMaxName = 256;        // devices, modules, versions, transports
constexpr std::size_t kMaxDetail = 1'024;    // as contract's longest lines
constexpr std::size_t kMaxSamples = 65'536;  // lanes times batches of one node: far below
constexpr std::size_t kMaxLanes = 64;

// --- parts ------------------------------------------------------------------------------------------------

template <typename Value, typename Write>
Json list(const std::vector<Value>& values, Write write) {
  Json array = Json::array();
  for (const Value& value : values)
    array.push_back(write(value));
  return array;
}

template <typename Read>
auto read_list(const Json& array, Read read) {
  std::vector<decltype(read(array))> values;
  values.reserve(array.size());
  for (const Json& value : array)
    values.push_back(read(value));
  return values;
}

std::string read_text(const Json& value, std::size_t max_bytes) {
  if (!value.is_string()) throw Malformed{"a list of texts holds something else"};
  const auto& text = value.get_ref<const std::string&>();
  if (text.size() > max_bytes) throw Malformed{"a text is too long"};
  return text;
}

Bytes read_bytes(const Json& value, std::size_t max_bytes) {
  if (!value.is_binary()) throw Malformed{"a list of cards holds something else"};
  const auto& binary = value.get_binary();
  if (binary.size() > max_bytes) throw Malformed{"a card is too long"};
  Bytes bytes(binary.size());
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = std::byte{binary[i]};
  return bytes;
}

judge::Trouble read_trouble(const std::string& text) {
  using judge::Trouble;
  for (const Trouble trouble :
       {Trouble::no_bytes, Trouble::late, Trouble::child_died, Trouble::child_silent, Trouble::refused}) {
    if (text == name(trouble)) return trouble;
  }
  throw Malformed{"no such trouble"};
}

Json write(const judge::NodeOutcome& outcome) {
  Json value = {{"node", outcome.node}, {"detail", outcome.detail}, {"took", outcome.took.count()}};
  value["samples"] = list(outcome.samples, [](const Sample& sample) { return netcheck::to_json(sample); });
  value["batch"] = outcome.batch;
  if (outcome.trouble) value["trouble"] = judge::name(*outcome.trouble);
  if (!outcome.spent.empty()) value["spent"] = durations_to_json(outcome.spent);
  return value;
}

judge::NodeOutcome read_outcome(const Json& value) {
  const Fields fields(value, "outcome");
  judge::NodeOutcome outcome;
  outcome.node = fields.u32("node", kMaxNodes);
  outcome.samples = read_list(fields.array("samples", kMaxSamples), sample_from_json);
  for (const Json& id : fields.array("batch", kMaxSamples)) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() > UINT32_MAX) throw Malformed{"a bad batch id"};
    outcome.batch.push_back(id.get<std::uint32_t>());
  }
  if (outcome.batch.size() != outcome.samples.size()) throw Malformed{"samples without their batch"};
  if (fields.has("trouble")) outcome.trouble = read_trouble(fields.text("trouble", kMaxName));
  outcome.detail = fields.text("detail", kMaxDetail);
  outcome.took = fields.duration("took");
  outcome.spent = fields.durations("spent", fabric::kMaxSpent);
  return outcome;
}

// --- messages: write(X) → Json, and read_x(Fields) → X, in the order of messages.h -----------------------

Json write(const Present& present) {
  return {{"inventory", to_json(present.inventory)},
          {"agreement", present.agreement},
          {"terms", present.terms},
          {"remaining", present.remaining.count()},
          {"declined", present.declined}};
}
Message read_present(const Fields& fields) {
  return Present{
      .inventory = inventory_from_json(fields.object("inventory")),
      .agreement = fields.text("agreement", kMaxName),
      .terms = read_list(fields.array("terms", kMaxTerms),
                         [](const Json& term) { return read_text(term, kMaxTerm); }),
      .remaining = fields.duration("remaining"),
      .declined = fields.text("declined", kMaxDetail),
  };
}

Json write(const Opened& opened) {
  Json value{{"module", opened.ready.module}, {"version", opened.ready.version},
             {"lanes", opened.ready.lanes},   {"max_bytes", opened.ready.max_bytes},
             {"terms", opened.ready.terms},   {"took", opened.took.count()}};
  if (opened.hardware) value["hardware"] = judge::to_json(*opened.hardware);
  return value;
}
Message read_opened(const Fields& fields) {
  fabric::Ready ready;
  ready.module = fields.text("module", kMaxName);
  ready.version = fields.text("version", kMaxName);
  ready.lanes =
      read_list(fields.array("lanes", kMaxLanes), [](const Json& lane) { return read_text(lane, kMaxName); });
  ready.max_bytes = fields.count("max_bytes", UINT64_MAX);
  ready.terms = read_list(fields.array("terms", fabric::kMaxTerms),
                          [](const Json& term) { return read_text(term, fabric::kMaxTerm); });
  Opened opened{.ready = std::move(ready), .took = fields.duration("took"), .hardware = std::nullopt};
  if (fields.has("hardware")) opened.hardware = judge::hardware_from_json(fields.object("hardware"));
  return opened;
}

Json write(const Broken& broken) {
  return {{"trouble", judge::name(broken.trouble)}, {"detail", broken.detail}};
}
Message read_broken(const Fields& fields) {
  return Broken{.trouble = read_trouble(fields.text("trouble", kMaxName)),
                .detail = fields.text("detail", kMaxDetail)};
}

Json write(const Cards& cards) {
  return {{"step", cards.step}, {"cards", list(cards.cards, [](const TeamCard& card) {
                                   return Json{{"team", card.team}, {"card", bytes_to_json(card.card)}};
                                 })}};
}
Message read_cards(const Fields& fields) {
  return Cards{.step = fields.u32("step"),
               .cards = read_list(fields.array("cards", kMaxTeams), [](const Json& value) {
                 const Fields card(value, "card");
                 return TeamCard{.team = card.u32("team"), .card = card.bytes("card", kMaxCard)};
               })};
}

Json write(const Answer& answer) {
  return {{"step", answer.step}, {"outcome", write(answer.outcome)}, {"transport", answer.transport}};
}
Message read_answer(const Fields& fields) {
  return Answer{.step = fields.u32("step"),
                .outcome = read_outcome(fields.object("outcome")),
                .transport = fields.text("transport", kMaxTransport)};
}

Json write(const Invite& invite) {
  return {{"step", invite.step},
          {"teams", list(invite.teams, [](const Team& team) { return netcheck::to_json(team); })},
          {"allowance", invite.allowance.count()}};
}
Message read_invite(const Fields& fields) {
  return Invite{.step = fields.u32("step"),
                .teams = read_list(fields.array("teams", kMaxTeams), team_from_json),
                .allowance = fields.duration("allowance")};
}

Json write(const Connect& connect) {
  return {{"step", connect.step},
          {"teams", list(connect.teams,
                         [](const TeamCards& team) {
                           return Json{{"team", team.team}, {"cards", list(team.cards, bytes_to_json)}};
                         })},
          {"allowance", connect.allowance.count()}};
}
Message read_connect(const Fields& fields) {
  return Connect{.step = fields.u32("step"),
                 .teams = read_list(fields.array("teams", kMaxTeams),
                                    [](const Json& value) {
                                      const Fields team(value, "team");
                                      return TeamCards{.team = team.u32("team"),
                                                       .cards = read_list(team.array("cards", kMaxMembers),
                                                                          [](const Json& card) {
                                                                            return read_bytes(card, kMaxCard);
                                                                          })};
                                    }),
                 .allowance = fields.duration("allowance")};
}

Json write(const Run& run) {
  return {{"step", run.step},
          {"batches", list(run.batches, [](const Batch& batch) { return netcheck::to_json(batch); })},
          {"allowance", run.allowance.count()}};
}
Message read_run(const Fields& fields) {
  return Run{.step = fields.u32("step"),
             .batches = read_list(fields.array("batches", kMaxTeams), batch_from_json),
             .allowance = fields.duration("allowance")};
}

Json write(const Close& close) {
  return {{"verdict", close.verdict}, {"line", close.line}};
}
Message read_close(const Fields& fields) {
  return Close{.verdict = fields.text("verdict", kMaxName), .line = fields.text("line", kMaxDetail)};
}

struct Kind {
  std::string_view name;
  Message (*read)(const Fields&);
};
// In the order of Message's alternatives.
constexpr std::array<Kind, std::variant_size_v<Message>> kKinds = {{{"present", read_present},
                                                                    {"opened", read_opened},
                                                                    {"broken", read_broken},
                                                                    {"cards", read_cards},
                                                                    {"answer", read_answer},
                                                                    {"invite", read_invite},
                                                                    {"connect", read_connect},
                                                                    {"run", read_run},
                                                                    {"close", read_close}}};

}  // namespace

std::string_view name(const Message& message) {
  return kKinds.at(message.index()).name;
}

Bytes encode(const Message& message) {
  Json value = std::visit([](const auto& kind) { return write(kind); }, message);
  value["kind"] = name(message);
  return to_cbor(value);
}

Result<Message> decode(const Bytes& frame, std::string_view from) {
  return read_frame(frame, from, [](const Json& value) {
    const Fields fields(value, "message");
    const std::string kind = fields.text("kind", kMaxName);
    for (const Kind& known : kKinds) {
      if (known.name == kind) return known.read(fields);
    }
    throw Malformed{"no such message: " + printable(kind, 32)};
  });
}

}  // namespace netcheck::session
