// See names.h.
#include "judge/names.h"

#include <fmt/format.h>

#include <algorithm>

namespace netcheck::judge {

std::string plain(std::string_view text, std::size_t max_bytes) {
  std::string result = printable(text, max_bytes);
  std::ranges::replace(result, '"', '\'');
  std::ranges::replace(result, '|', '/');
  return result;
}

std::string lane_name(const Plan& plan, std::uint32_t node, std::uint32_t lane) {
  constexpr std::size_t kMaxBytes = 32;
  if (node < plan.nodes.size() && lane < plan.nodes[node].lanes.size())
    return plain(plan.nodes[node].lanes[lane], kMaxBytes);
  return fmt::format("rail{}", lane);
}

std::string node_name(const Plan& plan, std::uint32_t node) {
  constexpr std::size_t kMaxBytes = 64;
  if (node < plan.nodes.size()) return plain(plan.nodes[node].name, kMaxBytes);
  return fmt::format("node {}", node);
}

std::string_view name(Phase phase) {
  switch (phase) {
    case Phase::start:
      return "start";
    case Phase::rendezvous:
      return "rendezvous";
    case Phase::open:
      return "open";
    case Phase::connect:
      return "connect";
    case Phase::gate:
      return "gate";
    case Phase::blame:
      return "blame";
    case Phase::finish:
      return "finish";
  }
  return "unknown";
}

std::string_view name(Trouble trouble) {
  switch (trouble) {
    case Trouble::no_bytes:
      return "no_bytes";
    case Trouble::late:
      return "late";
    case Trouble::child_died:
      return "child_died";
    case Trouble::child_silent:
      return "child_silent";
    case Trouble::refused:
      return "refused";
  }
  return "unknown";
}

std::string_view name(Direction direction) {
  switch (direction) {
    case Direction::transmit:
      return "tx";
    case Direction::receive:
      return "rx";
    case Direction::both:
      return "tx+rx";
  }
  return "unknown";
}

std::string_view name(Teaming teaming) {
  return teaming == Teaming::over_lanes ? "over_lanes" : "per_lane";
}

}  // namespace netcheck::judge
