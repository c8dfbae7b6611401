// Strict reading of JSON and CBOR that another process or node wrote: every field present, of its exact type,
// in its range. nlohmann::json alone would turn -1 into 2^64-1 and 3.7 into 3 without a word.
//
// Writers build json values by hand; readers go through Fields. CBOR between processes and nodes (bytes stay
// bytes), JSON in files that people read.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "contract/json.h"
#include "contract/units.h"

namespace netcheck {

/// A message that does not fit: thrown by Fields, caught at the one place that decodes a frame (read_frame).
struct Malformed {
  std::string reason;
};

/// One JSON object being read. Throws Malformed.
class Fields {
 public:
  /// `what` names the object in messages ("batch").
  Fields(const Json& object, std::string_view what);

  [[nodiscard]] std::uint64_t count(std::string_view key,
                                    std::uint64_t max) const;  ///< unsigned integer ≤ max
  [[nodiscard]] std::uint32_t u32(std::string_view key, std::uint32_t max = UINT32_MAX) const;
  [[nodiscard]] double finite(std::string_view key) const;  ///< finite number
  [[nodiscard]] bool flag(std::string_view key) const;
  [[nodiscard]] std::string text(std::string_view key,
                                 std::size_t max_bytes) const;  ///< valid UTF-8 ≤ max_bytes
  [[nodiscard]] Bytes bytes(std::string_view key, std::size_t max_bytes) const;  ///< CBOR byte string
  [[nodiscard]] Ns duration(std::string_view key) const;  ///< nanoseconds ≥ 0, ≤ 73 years
  /// Names of at most 32 bytes, each with a duration; none where the key is not there.
  [[nodiscard]] std::map<std::string, Ns> durations(std::string_view key, std::size_t max_size) const;
  [[nodiscard]] const Json& array(std::string_view key, std::size_t max_size) const;
  [[nodiscard]] const Json& object(std::string_view key) const;
  [[nodiscard]] bool has(std::string_view key) const;

 private:
  [[nodiscard]] const Json& at(std::string_view key) const;
  const Json& object_;
  std::string what_;
};

[[nodiscard]] Json bytes_to_json(const Bytes& bytes);
[[nodiscard]] Json durations_to_json(const std::map<std::string, Ns>& durations);
[[nodiscard]] Bytes to_cbor(const Json& value);

/// Decodes CBOR (definite, no trailing bytes, nesting ≤ 16) and calls `read(json) → T`; Malformed and every
/// library exception become an Error on `subject`.
template <typename Read>
[[nodiscard]] auto read_frame(const Bytes& frame, std::string_view subject, Read&& read)
    -> Result<decltype(read(std::declval<const Json&>()))>;

/// Parses CBOR without throwing. Used by read_frame.
[[nodiscard]] Result<Json> from_cbor(const Bytes& frame, std::string_view subject);
/// Parses JSON text of at most `max_bytes` without throwing.
[[nodiscard]] Result<Json> from_json_text(std::string_view text, std::string_view subject,
                                          std::size_t max_bytes);

template <typename Read>
auto read_frame(const Bytes& frame, std::string_view subject, Read&& read)
    -> Result<decltype(read(std::declval<const Json&>()))> {
  auto value = from_cbor(frame, subject);
  if (!value) return tl::unexpected(value.error());
  try {
    return read(*value);
  } catch (const Malformed& malformed) {
    return fail("read a message from", std::string(subject), malformed.reason);
  } catch (const Json::exception& error) {
    return fail("read a message from", std::string(subject), error.what());
  }
}

}  // namespace netcheck
