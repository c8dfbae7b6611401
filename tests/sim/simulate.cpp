// simulate: whole checks in virtual time, thousands of them, each from its seed, each held to the invariants.
//
//   simulate --runs 10000 --seed 1      exit 1 and the seeds that failed, if any
//   simulate --only SEED --trace        one of them again, with everything that was said
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <thread>

#include "invariants.h"
#include "judge/line.h"
#include "scenario.h"
#include "world.h"

namespace {

using namespace netcheck;
using namespace netcheck::sim;

constexpr std::size_t kKinds = static_cast<std::size_t>(kLastKind) + 1;
constexpr std::size_t kShownFailures = 20;

/// How the checks of one kind of fault ended.
struct Tally {
  std::size_t runs = 0, pass = 0, fail = 0, inconclusive = 0, no_leader = 0, named = 0;
  Tally& operator+=(const Tally& other) {
    runs += other.runs;
    pass += other.pass;
    fail += other.fail;
    inconclusive += other.inconclusive;
    no_leader += other.no_leader;
    named += other.named;
    return *this;
  }
};

struct Tallies {
  std::array<Tally, kKinds> kinds{};
  std::vector<std::pair<std::uint64_t, std::string>> failures;
  std::uint64_t events = 0;
};

void count(const Scenario& scenario, const Outcome& outcome, Tally& tally) {
  ++tally.runs;
  const auto verdict = verdict_of(outcome);
  if (!verdict) {
    ++tally.no_leader;
    return;
  }
  if (std::holds_alternative<judge::Pass>(*verdict)) ++tally.pass;
  if (std::holds_alternative<judge::Fail>(*verdict)) ++tally.fail;
  if (std::holds_alternative<judge::Inconclusive>(*verdict)) ++tally.inconclusive;
  if (names_fault(scenario, *verdict)) ++tally.named;
}

void simulate_one(std::uint64_t seed, Tallies& result) {
  const Scenario scenario = draw(seed);
  const Outcome outcome = World(scenario, {}).run();
  result.events += outcome.events;
  count(scenario, outcome, result.kinds.at(static_cast<std::size_t>(scenario.fault.kind)));
  const auto found = violations(scenario, outcome);
  if (found.empty()) return;
  const std::string more = found.size() > 1 ? fmt::format(" (and {} more)", found.size() - 1) : "";
  result.failures.emplace_back(seed, found.front() + more);
}

Tallies simulate(std::uint64_t first, std::uint64_t runs, unsigned jobs) {
  Tallies all;
  std::mutex lock;
  std::atomic<std::uint64_t> next = 0;
  std::vector<std::thread> threads;
  for (unsigned job = 0; job < jobs; ++job) {
    threads.emplace_back([&] {
      Tallies mine;
      for (std::uint64_t run = next++; run < runs; run = next++)
        simulate_one(first + run, mine);
      const std::lock_guard guard(lock);
      for (std::size_t kind = 0; kind < kKinds; ++kind)
        all.kinds.at(kind) += mine.kinds.at(kind);
      all.failures.insert(all.failures.end(), mine.failures.begin(), mine.failures.end());
      all.events += mine.events;
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  std::ranges::sort(all.failures);
  return all;
}

void print(const Tallies& result) {
  fmt::print("{:<14}{:>7}{:>7}{:>7}{:>14}{:>11}{:>7}\n", "fault", "runs", "pass", "fail", "inconclusive",
             "no leader", "named");
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    const Tally& tally = result.kinds.at(kind);
    if (tally.runs == 0) continue;
    fmt::print("{:<14}{:>7}{:>7}{:>7}{:>14}{:>11}{:>7}\n", name(static_cast<Kind>(kind)), tally.runs,
               tally.pass, tally.fail, tally.inconclusive, tally.no_leader, tally.named);
  }
}

int report(const Tallies& result, bool every_kind) {
  print(result);
  std::size_t shown = 0;
  for (const auto& [seed, violation] : result.failures) {
    if (++shown > kShownFailures) break;
    fmt::print("FAILED {}\n  {}\n  again: simulate --only {} --trace\n", violation, draw(seed).describe(),
               seed);
  }
  const bool absent =
      every_kind && std::ranges::any_of(result.kinds, [](const Tally& tally) { return tally.runs == 0; });
  if (absent) fmt::print("FAILED some kind of fault never occurred\n");
  return result.failures.empty() && !absent ? 0 : 1;
}

int replay(std::uint64_t seed, bool trace) {
  const Scenario scenario = draw(seed);
  fmt::print("{}\n", scenario.describe());
  const Outcome outcome = World(scenario, [&](const std::string& text) {
                            if (trace) fmt::print("{}\n", text);
                          }).run();
  Tallies result;
  count(scenario, outcome, result.kinds.at(static_cast<std::size_t>(scenario.fault.kind)));
  for (const std::string& violation : violations(scenario, outcome))
    result.failures.emplace_back(seed, violation);
  if (const auto verdict = verdict_of(outcome))
    fmt::print("{}\n", judge::line(*verdict, outcome.nodes.front().report->plan, Ns{0}));
  return report(result, false);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Simulates whole checks; see docs/design.md");
  std::uint64_t runs = 10'000, seed = 1, only = 0;
  unsigned jobs = std::max(1U, std::thread::hardware_concurrency());
  bool trace = false;
  app.add_option("--runs", runs, "how many")->capture_default_str();
  app.add_option("--seed", seed, "of the first; the others follow")->capture_default_str();
  app.add_option("--jobs", jobs, "threads")->capture_default_str();
  auto* one = app.add_option("--only", only, "this seed alone");
  app.add_flag("--trace", trace, "with --only: everything that is said");
  CLI11_PARSE(app, argc, argv);
  if (one->count() > 0) return replay(only, trace);
  const auto began = std::chrono::steady_clock::now();
  const Tallies result = simulate(seed, runs, jobs);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  const int code = report(result, runs >= 1'000);
  fmt::print("{} checks, {} events in {:.1f} s: {}\n", runs, result.events, took.count(),
             code == 0 ? "every invariant held" : fmt::format("{} checks failed", result.failures.size()));
  return code;
}
