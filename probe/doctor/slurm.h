// What Slurm's own settings mean for a check. Pure: `scontrol show config` as text in, findings out.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "contract/units.h"
#include "doctor/finding.h"
#include "policy/policy.h"

namespace netcheck::doctor {

/// Key → value of `scontrol show config`, both without surrounding blanks.
using SlurmConfig = std::map<std::string, std::string>;
[[nodiscard]] SlurmConfig parse_slurm_config(std::string_view text);
/// "" where the key is not there, or is "(null)".
[[nodiscard]] std::string value_of(const SlurmConfig& config, const std::string& key);

struct SlurmVersion {
  std::uint32_t major = 0, minor = 0, micro = 0;
  friend bool operator==(const SlurmVersion&, const SlurmVersion&) = default;
};
/// "slurm-wlm 22.05.8", "slurm 25.11.0-0rc1"; nullopt for anything else.
[[nodiscard]] std::optional<SlurmVersion> parse_slurm_version(std::string_view text);
/// SLURM_VERSION_NUMBER of slurm_version.h: what a plugin carries.
[[nodiscard]] SlurmVersion unpack_slurm_version(std::uint32_t number);
[[nodiscard]] std::string text_of(const SlurmVersion& version);  ///< "22.05.8"

/// When the prologs of a job run, and what waits for them.
[[nodiscard]] Findings check_prolog_flags(const SlurmConfig& config);

/// How long a prolog may take by Slurm, against how long a check may take. `plugin_timeout`: of the line in
/// plugstack.conf; `script_limit`: of the Prolog script; nullopt: there is none.
[[nodiscard]] Findings check_timeouts(const SlurmConfig& config, const Policy& policy,
                                      std::optional<Ns> plugin_timeout,
                                      std::optional<Ns> script_limit = std::nullopt);

/// By what Slurm itself proves who is who, against what the check uses.
[[nodiscard]] Findings check_authentication(const SlurmConfig& config, const Policy& policy);

/// Whether the line can be looked up later.
[[nodiscard]] Findings check_accounting(const SlurmConfig& config, const Policy& policy);

}  // namespace netcheck::doctor
