#include "prolog/passes.h"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <sstream>

#include "policy/request.h"
#include "prolog/folder.h"

namespace netcheck::prolog {
namespace {

constexpr mode_t kPassesFolder = 0700;
constexpr std::size_t kMaxPasses = 1'000;  // as many as records
constexpr std::size_t kMaxPassBytes = 256;

std::int64_t seconds_since_boot() {
  timespec ts{};
  ::clock_gettime(CLOCK_BOOTTIME, &ts);
  return ts.tv_sec;
}

// A name for the set: FNV-1a, 64 bit, over the sorted names. Two sets under one name would spare one of them
// a check; with a thousand sets that is one in 10^13.
std::string name_of_set(std::vector<std::string> nodes) {
  std::sort(nodes.begin(), nodes.end());
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::string& node : nodes)
    for (const char c : node + "\n") {
      hash ^= static_cast<std::uint8_t>(c);
      hash *= 0x100000001b3;
    }
  return fmt::format("{}-{:016x}", nodes.size(), hash);
}

std::optional<Rate> rate_from(double bits_per_second) {
  if (!std::isfinite(bits_per_second) || bits_per_second <= 0) return std::nullopt;
  return Rate{bits_per_second};
}

double or_zero(const std::optional<Rate>& rate) {
  return rate ? rate->bits_per_second : 0;
}

Result<Folder> passes_of(const std::string& run_directory) {
  auto base = Folder::open(run_directory, 0755);
  if (!base) return base;
  return base->inner("passes", kPassesFolder);
}

}  // namespace

std::string write_pass(const PastPass& pass, std::int64_t now) {
  return fmt::format("{} {} {} {} {} {}\n", now, pass.busbw.bits_per_second, pass.op,
                     or_zero(pass.min_per_rail), or_zero(pass.min_per_pair), pass.with);
}

std::optional<PastPass> read_pass(std::string_view line, std::int64_t now) {
  std::istringstream text{std::string(line)};
  std::int64_t then = 0;
  double busbw = 0, per_rail = 0, per_pair = 0;
  PastPass pass;
  if (!(text >> then >> busbw >> pass.op >> per_rail >> per_pair >> pass.with)) return std::nullopt;
  const auto rate = rate_from(busbw);
  if (!rate || then < 0 || then > now || !is_operation(pass.op)) return std::nullopt;
  pass.ago = std::chrono::seconds(now - then);
  pass.busbw = *rate;
  pass.min_per_rail = rate_from(per_rail);
  pass.min_per_pair = rate_from(per_pair);
  return pass;
}

std::optional<PastPass> last_pass(const std::string& run_directory, const std::vector<std::string>& nodes) {
  const auto folder = passes_of(run_directory);
  if (!folder) return std::nullopt;
  const auto line = folder->read(name_of_set(nodes), kMaxPassBytes);
  return line ? read_pass(*line, seconds_since_boot()) : std::nullopt;
}

Result<void> remember_pass(const std::string& run_directory, const std::vector<std::string>& nodes,
                           const PastPass& pass) {
  const auto folder = passes_of(run_directory);
  if (!folder) return tl::unexpected(folder.error());
  const std::string name = name_of_set(nodes);
  folder->rotate(kMaxPasses - 1, kMaxPasses * kMaxPassBytes, name);
  return folder->write(name, write_pass(pass, seconds_since_boot()), 0600, {::geteuid(), ::getegid()});
}

Result<void> remember_pass(const std::optional<judge::Verdict>& verdict, const Policy& policy,
                           const std::vector<std::string>& nodes) {
  if (!verdict || policy.min_interval == Ns::zero()) return {};
  if (std::holds_alternative<judge::Fail>(*verdict)) {
    if (const auto folder = passes_of(policy.run_directory)) folder->remove(name_of_set(nodes));
    return {};
  }
  const auto* pass = std::get_if<judge::Pass>(&*verdict);
  if (pass == nullptr) return {};
  return remember_pass(policy.run_directory, nodes,
                       {.ago = {},
                        .busbw = pass->figures.busbw,
                        .op = policy.op,
                        .min_per_rail = policy.min_per_rail,
                        .min_per_pair = policy.min_per_pair,
                        .with = measured_with(policy)});
}

}  // namespace netcheck::prolog
