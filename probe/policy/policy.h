// What will be done and why: every effective value with its source. Pure: built-in values, then the site's
// file, then the user's request, which may ask for more and never for less.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "contract/error.h"
#include "contract/units.h"
#include "policy/request.h"

namespace netcheck {

/// Every setting of a check. Defaults are the built-in values; etc/netcheck.toml documents each.
struct Policy {
  // [threshold]
  std::optional<Rate> min;       ///< effective: max of the site's and the user's
  std::optional<Rate> site_min;  ///< the site's alone
  // [check]
  std::string op = "auto";
  Ns time = std::chrono::seconds(8);       ///< whole deadline: Slurm 25.11 prints "Prolog hung" after 8 s
  Ns max_time = std::chrono::seconds(20);  ///< what a user's time= may reach
  Ns rendezvous = std::chrono::seconds(3);
  Ns slice = std::chrono::milliseconds(1500);  ///< measuring time of a pass
  std::uint32_t group_size = 8;
  // [probe]
  std::string probe_user = "netcheck";
  std::string module_directory;  ///< "" = the build's own libdir/netcheck
  std::uint64_t memory = 0;      ///< bytes a message buffer may take; 0 = the module's default
  // [peers]
  std::uint16_t first_port = 860, last_port = 899;  ///< below 1024: no local user can squat on them
  std::string address = "{node}";                   ///< template: how a node is reached
  std::map<std::string, std::string> addresses;     ///< exceptions by node
  std::string credential = "munge";                 ///< or "key"
  std::string key_file;                             ///< for credential = "key"
  std::string munge_socket;                         ///< "" = libmunge's default
  // [fabric]
  std::string fabric = "ucx";
  std::vector<std::string> devices;  ///< globs, in rail order; empty: chosen (docs/design.md)
  std::vector<std::string> exclude;  ///< globs on top of the built-in ones
  // [record]
  std::string run_directory = "/run/netcheck";
  bool annotate = true;  ///< write AdminComment

  std::map<std::string, std::string>
      sources;  ///< "check.time" → "/etc/netcheck/netcheck.toml:12", "built-in", "the job's request"

  friend bool operator==(const Policy&, const Policy&) = default;
};

/// The site's file, as text; keys are "[section] field" as above. Unknown keys, wrong types and values out of
/// range are errors with file and line.
[[nodiscard]] Result<Policy> parse_config(std::string_view toml, std::string_view file_name);

/// The request applied: a higher `min`, a longer `time` up to `max_time`, any `op`. Notes say what was not
/// granted ("time=60s: the site's maximum is 20s").
[[nodiscard]] Policy apply(Policy site, const Request& request, std::vector<std::string>& notes);

/// Hash of the settings on which all nodes must agree (hex); a difference is named before anything can hang
/// on it.
[[nodiscard]] std::string agreement(const Policy& policy);
/// The same settings as "key=value" lines, to name the difference.
[[nodiscard]] std::vector<std::string> agreement_terms(const Policy& policy);

}  // namespace netcheck
