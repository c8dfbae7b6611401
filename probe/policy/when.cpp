#include "policy/when.h"

#include <fmt/format.h>

#include <algorithm>

#include "policy/settings.h"

namespace netcheck {

namespace {

using policy::written;

bool among(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool allowed(const Policy& policy, const Circumstances& job) {
  if (policy.allow_users.empty() && policy.allow_accounts.empty() && policy.allow_groups.empty()) return true;
  return among(policy.allow_users, job.user) || among(policy.allow_accounts, job.account) ||
         std::any_of(job.groups.begin(), job.groups.end(),
                     [&](const std::string& group) { return among(policy.allow_groups, group); });
}

/// Whether what passed then would pass now.
bool still_counts(const Policy& policy, const PastPass& pass) {
  const auto held = [](const std::optional<Rate>& then, const std::optional<Rate>& now) {
    return !now || (then && *then >= *now);
  };
  return pass.ago < policy.min_interval && pass.op == policy.op && pass.with == measured_with(policy) &&
         (!policy.min || pass.busbw >= *policy.min) && held(pass.min_per_rail, policy.min_per_rail) &&
         held(pass.min_per_pair, policy.min_per_pair);
}

/// "45s", "12min": whole units, as one says it.
std::string about(Ns duration) {
  const auto minutes = std::chrono::duration_cast<std::chrono::minutes>(duration);
  if (minutes.count() >= 2) return fmt::format("{}min", minutes.count());
  return fmt::format("{}s", std::chrono::duration_cast<std::chrono::seconds>(duration).count());
}

/// Why the job is not measured though it may be; "" when it is.
std::string reason_against(const Policy& policy, const Circumstances& job,
                           const std::optional<PastPass>& history) {
  if (!allowed(policy, job))
    return fmt::format("the site checks no jobs of user {}, account {}", printable(job.user, 64),
                       job.account.empty() ? "none" : printable(job.account, 64));
  if (policy.shared == Shared::skip && job.owns_nodes == false)
    return "the job does not own its nodes: submit it with --exclusive";
  if (job.walltime && *job.walltime < policy.min_walltime)
    return fmt::format("its time limit of {} is under the site's {}", written(*job.walltime),
                       written(policy.min_walltime));
  if (history && still_counts(policy, *history))
    return fmt::format("its nodes passed together {} ago, with {}", about(history->ago),
                       format_rate(history->busbw));
  return {};
}

}  // namespace

Conduct when(const Policy& policy, const Circumstances& job, const std::optional<PastPass>& history) {
  if (job.switched_off) return Skip{.reason = "it is switched off", .said = false};
  if (!job.asked && policy.mode != Mode::always) return Skip{.reason = "nobody asked", .said = false};
  if (!job.asked && job.nodes == 1) return Skip{.reason = "one node", .said = false};
  if (std::string reason = reason_against(policy, job, history); !reason.empty())
    return Skip{.reason = std::move(reason), .said = job.asked};
  if (job.up && *job.up < policy.settle)
    return WarnOnly{
        fmt::format("the node booted {} ago, the site waits {}", about(*job.up), written(policy.settle))};
  return CheckIt{};
}

Policy only_warning(Policy policy, const std::string& reason) {
  const auto set = [&](const char* key) { policy.sources[key] = reason; };
  if (policy.action != Action::annotate) set("action.action");
  if (policy.drain) set("action.drain");
  if (policy.on_inconclusive != OnInconclusive::annotate) set("action.on_inconclusive");
  policy.action = Action::annotate;
  policy.drain = false;
  policy.on_inconclusive = OnInconclusive::annotate;
  return policy;
}

}  // namespace netcheck
