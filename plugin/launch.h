// In the job prolog: starts `netcheck prolog`, relays what it says to slurmd's log, and ends it at a hard
// deadline. As root, in the short-lived `slurmstepd spank prolog`. Pure parts first; no Slurm calls here.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "contract/units.h"
#include "settings.h"

namespace netcheck::plugin {

/// "K=V": the variables of the prolog that the program needs and that no user can set, and a PATH. `get`
/// gives a variable's value or nullptr.
[[nodiscard]] std::vector<std::string> child_environment(const std::function<const char*(const char*)>& get,
                                                         const Settings& settings);

/// One line for slurmd's log. `is_error`: the program marked it with "error:", which is taken off.
using Relay = std::function<void(bool is_error, const std::string& text)>;

/// Cuts what the program writes into lines fit for a log: printable, at most kMaxLineBytes each, at most
/// kMaxLines in all, then one line that says so. A deadline announced in the very first line is kept for us.
/// Pure.
class LineRelay {
 public:
  static constexpr std::size_t kMaxLines = 64;  ///< a check has a dozen things to say, at most
  static constexpr std::size_t kMaxLineBytes = 512;

  explicit LineRelay(Relay relay) : relay_(std::move(relay)) {}
  void take(std::string_view bytes);
  /// What is left without an end of line.
  void finish();
  /// How far away the deadline was when it was announced; nullopt before, and without one.
  [[nodiscard]] std::optional<std::chrono::milliseconds> announced() const { return announced_; }

 private:
  void end_line();
  void emit();
  Relay relay_;
  std::optional<std::chrono::milliseconds> announced_;
  bool first_ = true;
  std::string line_;
  std::size_t lines_ = 0;
};

/// A program that does not announce its deadline within this is taken for one that hangs. It has a
/// configuration of a few KiB to read first: milliseconds, and a second on a node that is busy or has just
/// booted.
inline constexpr std::chrono::milliseconds kAnnouncePatience{3'000};
/// What the program may take beyond the deadline that it announced (prolog/supervisor.h).
inline constexpr std::chrono::milliseconds kOverrun{2'000};

/// Runs `PROGRAM prolog --announce-deadline --notice-directory RUN_DIR --config CONFIG [--request=REQUEST]`,
/// so that the notice lies where steps look for it whatever the site's file says, to its end, or to the
/// deadline that it announces plus kOverrun, at most to `settings.timeout`; then it and everything below it
/// is killed. Never waits for more than the program itself: an orphan that holds its stderr open is not
/// waited for. Says through `relay` whatever went wrong; the job is not harmed by it.
void run_check(const Settings& settings, const std::optional<std::string>& request,
               std::vector<std::string> environment, const Relay& relay);

}  // namespace netcheck::plugin
