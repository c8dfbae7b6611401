// Strict reading of what another process or node wrote. Pure.
//
// nlohmann::json decodes; what it would let through (indefinite lengths, tags, depth without bound, repeated
// keys, text that is no UTF-8) is refused by a scan before it, so that hostile bytes never reach recursion.
#include "contract/wire.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

namespace netcheck {

namespace {

/// Messages here are at most five deep; 16 leaves room and keeps every recursive function shallow.
constexpr std::size_t kMaxNesting = 16;

/// One pass over CBOR (RFC 8949) without building anything.
class CborScan {
 public:
  explicit CborScan(const Bytes& frame) : frame_(frame) {}

  /// nullptr, or what is wrong.
  const char* run() {
    open_.push_back(1);
    while (!open_.empty()) {
      if (open_.back() == 0) {
        open_.pop_back();
        continue;
      }
      --open_.back();
      if (const char* wrong = item()) return wrong;
    }
    return at_ == frame_.size() ? nullptr : "bytes after the message";
  }

  [[nodiscard]] std::uint64_t pairs() const { return pairs_; }

 private:
  const char* item() {
    if (at_ == frame_.size()) return "it is cut off";
    const auto head = std::to_integer<std::uint8_t>(frame_[at_++]);
    const std::uint8_t major = head >> 5, info = head & 0x1F;
    if (major == 7) return simple(info);
    const auto argument = read_argument(info);
    if (!argument) return info == 31 ? "an indefinite length" : "it is cut off";
    constexpr std::uint64_t kInt64Max = INT64_MAX;
    switch (major) {
      case 0:
        return nullptr;
      case 1:
        return *argument > kInt64Max ? "a number out of range" : nullptr;
      case 2:
      case 3:
        return string(*argument, major == 3);
      case 4:
        return container(*argument, 1);
      case 5:
        pairs_ += *argument;
        return container(*argument, 2);
      default:
        return "a tag";
    }
  }

  const char* simple(std::uint8_t info) {
    // false, true, null; half, single and double floats. Not undefined, not break, no other simple value.
    if (info >= 20 && info <= 22) return nullptr;
    if (info < 25 || info > 27) return "a value of an unknown kind";
    return skip(std::size_t{1} << (info - 24)) ? nullptr : "it is cut off";
  }

  const char* string(std::uint64_t size, bool text) {
    const std::size_t from = at_;
    if (!skip(size)) return "it is cut off";
    if (!text) return nullptr;
    const auto* characters = reinterpret_cast<const char*>(frame_.data()) + from;
    return is_utf8({characters, static_cast<std::size_t>(size)}) ? nullptr : "text that is no UTF-8";
  }

  const char* container(std::uint64_t size, std::uint64_t items_each) {
    // Every item takes at least one byte: a length beyond what is left is a lie, told to make us allocate.
    if (size > (frame_.size() - at_) / items_each) return "it is cut off";
    if (open_.size() > kMaxNesting) return "it is nested too deep";
    open_.push_back(size * items_each);
    return nullptr;
  }

  bool skip(std::uint64_t bytes) {
    if (bytes > frame_.size() - at_) return false;
    at_ += static_cast<std::size_t>(bytes);
    return true;
  }

  std::optional<std::uint64_t> read_argument(std::uint8_t info) {
    if (info < 24) return info;
    if (info > 27) return std::nullopt;
    const std::size_t size = std::size_t{1} << (info - 24);
    if (size > frame_.size() - at_) return std::nullopt;
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i)
      value = value << 8 | std::to_integer<std::uint64_t>(frame_[at_++]);
    return value;
  }

  const Bytes& frame_;
  std::size_t at_ = 0;
  std::uint64_t pairs_ = 0;          ///< in all maps
  std::vector<std::uint64_t> open_;  ///< items still to come, by level
};

/// Members of every object in `value`. A map with a repeated key has fewer than the scan counted.
std::uint64_t count_members(const Json& value) {
  std::uint64_t count = value.is_object() ? value.size() : 0;
  if (value.is_structured())
    for (const Json& part : value)
      count += count_members(part);
  return count;
}

/// One pass over a JSON text without building anything: its depth, and how many keys it has. Not the parser's
/// own callback, with which a list costs the square of its length: a report of 16 MiB would keep root busy
/// for an hour.
class JsonScan : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(number_integer_t /*value*/) override { return true; }
  bool number_unsigned(number_unsigned_t /*value*/) override { return true; }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override { return true; }
  bool string(string_t& /*value*/) override { return true; }
  bool binary(binary_t& /*value*/) override { return true; }
  bool start_object(std::size_t /*elements*/) override { return enter(); }
  bool key(string_t& /*value*/) override { return ++keys_ != 0; }
  bool end_object() override { return depth_-- != 0; }
  bool start_array(std::size_t /*elements*/) override { return enter(); }
  bool end_array() override { return depth_-- != 0; }
  bool parse_error(std::size_t /*at*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    return false;
  }
  [[nodiscard]] bool too_deep() const { return depth_ > kMaxNesting; }
  [[nodiscard]] std::uint64_t keys() const { return keys_; }

 private:
  bool enter() {
    ++depth_;
    return !too_deep();
  }
  std::size_t depth_ = 0;
  std::uint64_t keys_ = 0;
};

[[noreturn]] void malformed(std::string_view what, std::string_view key, std::string_view wrong) {
  throw Malformed{fmt::format("{}: '{}' {}", what, key, wrong)};
}

/// Numbers that arrive are unsigned when they are not negative; those built in this process may be signed.
std::optional<std::uint64_t> unsigned_value(const Json& value) {
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  if (!value.is_number_integer() || value.get<std::int64_t>() < 0) return std::nullopt;
  return static_cast<std::uint64_t>(value.get<std::int64_t>());
}

}  // namespace

Fields::Fields(const Json& object, std::string_view what) : object_(object), what_(what) {
  if (!object.is_object()) throw Malformed{fmt::format("{} is no object", what)};
}

bool Fields::has(std::string_view key) const {
  return object_.contains(key);
}

const Json& Fields::at(std::string_view key) const {
  const auto found = object_.find(key);
  if (found == object_.end()) malformed(what_, key, "is missing");
  return *found;
}

std::uint64_t Fields::count(std::string_view key, std::uint64_t max) const {
  const auto value = unsigned_value(at(key));
  if (!value) malformed(what_, key, "is no whole number from 0 up");
  if (*value > max) malformed(what_, key, fmt::format("is {}, above {}", *value, max));
  return *value;
}

std::uint32_t Fields::u32(std::string_view key, std::uint32_t max) const {
  return static_cast<std::uint32_t>(count(key, max));
}

double Fields::finite(std::string_view key) const {
  const Json& value = at(key);
  if (!value.is_number()) malformed(what_, key, "is no number");
  const auto number = value.get<double>();
  if (!std::isfinite(number)) malformed(what_, key, "is not finite");
  return number;
}

bool Fields::flag(std::string_view key) const {
  const Json& value = at(key);
  if (!value.is_boolean()) malformed(what_, key, "is neither true nor false");
  return value.get<bool>();
}

std::string Fields::text(std::string_view key, std::size_t max_bytes) const {
  const Json& value = at(key);
  if (!value.is_string()) malformed(what_, key, "is no text");
  const auto& text = value.get_ref<const std::string&>();
  if (text.size() > max_bytes) malformed(what_, key, fmt::format("is longer than {} bytes", max_bytes));
  if (!is_utf8(text)) malformed(what_, key, "is no UTF-8");
  return text;
}

Bytes Fields::bytes(std::string_view key, std::size_t max_bytes) const {
  const Json& value = at(key);
  if (!value.is_binary()) malformed(what_, key, "is no byte string");
  const auto& binary = value.get_binary();
  if (binary.size() > max_bytes) malformed(what_, key, fmt::format("is longer than {} bytes", max_bytes));
  const auto* data = reinterpret_cast<const std::byte*>(binary.data());
  return {data, data + binary.size()};
}

Ns Fields::duration(std::string_view key) const {
  // 73 years: added to a time, or to each other, they stay in range.
  constexpr std::uint64_t kLongest = INT64_MAX / 4;
  return Ns{static_cast<std::int64_t>(count(key, kLongest))};
}

std::map<std::string, Ns> Fields::durations(std::string_view key, std::size_t max_size) const {
  constexpr std::size_t kMaxName = 32;
  std::map<std::string, Ns> durations;
  if (!has(key)) return durations;
  const Json& value = object(key);
  if (value.size() > max_size) malformed(what_, key, fmt::format("has more than {} entries", max_size));
  const Fields fields(value, key);
  for (const auto& entry : value.items()) {
    if (entry.key().size() > kMaxName) malformed(what_, key, "has a name that is too long");
    durations[printable(entry.key(), kMaxName)] = fields.duration(entry.key());
  }
  return durations;
}

const Json& Fields::array(std::string_view key, std::size_t max_size) const {
  const Json& value = at(key);
  if (!value.is_array()) malformed(what_, key, "is no list");
  if (value.size() > max_size) malformed(what_, key, fmt::format("has more than {} entries", max_size));
  return value;
}

const Json& Fields::object(std::string_view key) const {
  const Json& value = at(key);
  if (!value.is_object()) malformed(what_, key, "is no object");
  return value;
}

Json durations_to_json(const std::map<std::string, Ns>& durations) {
  Json value = Json::object();
  for (const auto& [name, duration] : durations)
    value[name] = duration.count();
  return value;
}

Json bytes_to_json(const Bytes& bytes) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  return Json::binary({data, data + bytes.size()});
}

Bytes to_cbor(const Json& value) {
  const std::vector<std::uint8_t> cbor = Json::to_cbor(value);
  const auto* data = reinterpret_cast<const std::byte*>(cbor.data());
  Bytes bytes(data, data + cbor.size());
  return bytes;
}

Result<Json> from_cbor(const Bytes& frame, std::string_view subject) {
  const auto refuse = [&](std::string reason) {
    return fail("read a message from", std::string(subject), std::move(reason));
  };
  try {
    CborScan scan(frame);
    if (const char* wrong = scan.run()) return refuse(wrong);
    const auto* data = reinterpret_cast<const std::uint8_t*>(frame.data());
    Json value = Json::from_cbor(data, data + frame.size(), /*strict=*/true, /*allow_exceptions=*/false);
    if (value.is_discarded()) return refuse("it is no CBOR");
    if (count_members(value) != scan.pairs()) return refuse("a repeated key");
    return value;
  } catch (const std::exception& error) {
    return refuse(error.what());
  }
}

Result<Json> from_json_text(std::string_view text, std::string_view subject, std::size_t max_bytes) {
  const auto refuse = [&](std::string reason) {
    return fail("read", std::string(subject), std::move(reason));
  };
  if (text.size() > max_bytes) return refuse(fmt::format("it is larger than {} bytes", max_bytes));
  try {
    JsonScan scan;
    const bool whole = Json::sax_parse(text, &scan);
    if (scan.too_deep()) return refuse("it is nested too deep");
    if (!whole) return refuse("it is no JSON");
    Json value = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (value.is_discarded()) return refuse("it is no JSON");
    if (count_members(value) != scan.keys()) return refuse("a repeated key");
    return value;
  } catch (const std::exception& error) {
    return refuse(error.what());
  }
}

}  // namespace netcheck
