// Errors and foreign text made fit for one line of a log, a comment or a terminal. Pure; compiled into the
// plugin as well, so nothing but the C++ library and fmt here.
#include "contract/error.h"

#include <fmt/format.h>

#include <cstdint>

namespace netcheck {

namespace {

/// An error line is read by people: four short parts, the longest of them a path or a quoted value.
constexpr std::size_t kMaxErrorBytes = 1'024;

/// Length of the well-formed UTF-8 sequence at the front of `text` (RFC 3629, table 3-7 of Unicode), 0 when
/// there is none.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  std::size_t length = 0;
  std::uint8_t low = 0x80, high = 0xBF;  // of the second byte: no overlong forms, no surrogates
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return 0;
  }
  if (text.size() < length || byte(1) < low || byte(1) > high) return 0;
  for (std::size_t i = 2; i < length; ++i)
    if (byte(i) < 0x80 || byte(i) > 0xBF) return 0;
  return length;
}

/// C0 controls, DEL, C1 controls (U+0080 … U+009F: a terminal obeys them), the two Unicode line ends, and
/// what turns the direction of writing around (U+200E, U+200F, U+202A … U+202E, U+2066 … U+2069).
bool is_control(std::string_view sequence) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(sequence[i]); };
  if (sequence.size() == 1) return byte(0) < 0x20 || byte(0) == 0x7F;
  if (sequence.size() == 2) return byte(0) == 0xC2 && byte(1) < 0xA0;
  if (sequence.size() != 3 || byte(0) != 0xE2) return false;
  const bool line_end_or_direction = byte(1) == 0x80 && byte(2) >= 0xA8 && byte(2) <= 0xAE;
  const bool mark = byte(1) == 0x80 && (byte(2) == 0x8E || byte(2) == 0x8F);
  const bool isolate = byte(1) == 0x81 && byte(2) >= 0xA6 && byte(2) <= 0xA9;
  return line_end_or_direction || mark || isolate;
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string printable(std::string_view text, std::size_t max_bytes) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    std::string_view piece = text.substr(0, length == 0 ? 1 : length);
    text.remove_prefix(piece.size());
    if (length == 0)
      piece = "?";  // not UTF-8: JSON and terminals would choke on it
    else if (is_control(piece))
      piece = " ";
    if (out.size() + piece.size() > max_bytes) break;
    out += piece;
  }
  return out;
}

std::string describe(const Error& error) {
  std::string text = error.attempted;
  if (!error.subject.empty()) text += fmt::format("{}{}", text.empty() ? "" : " ", error.subject);
  if (!error.reason.empty()) text += fmt::format("{}{}", text.empty() ? "" : ": ", error.reason);
  if (!error.remedy.empty()) text += fmt::format(" ({})", error.remedy);
  return printable(text, kMaxErrorBytes);
}

}  // namespace netcheck
