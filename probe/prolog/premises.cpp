#include "prolog/premises.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "prolog/folder.h"
#include "prolog/supervisor.h"

namespace netcheck::prolog {
namespace {

constexpr std::size_t kMaxConfigBytes = 1u << 20;  // with an exception for every node of a large cluster

std::string module_of(const std::string& directory, const Policy& policy) {
  return directory + "/netcheck-fabric-" + policy.fabric + ".so";
}

}  // namespace

std::string kill_switch_of(const std::string& config) {
  return std::filesystem::path(config).parent_path() / kKillSwitch;
}

Result<Site> read_site(const std::string& config) {
  auto text = read_trusted(config, kMaxConfigBytes, "");
  if (!text) return tl::unexpected(text.error());
  return parse_config(*text, config);
}

Result<system::Account> probe_account(const Policy& policy, uid_t job_uid, Time deadline) {
  constexpr const char* kRemedy = "[probe] probe_user names an unprivileged account of its own";
  if (policy.probe_user == "root" || policy.probe_user == "nobody")
    return fail("use the account", policy.probe_user, "it is not netcheck's own", kRemedy);
  auto account = system::find_account(policy.probe_user, deadline);
  if (!account) return account;
  if (account->uid == 0) return fail("use the account", policy.probe_user, "it has root's rights", kRemedy);
  if (account->uid == job_uid)
    return fail("use the account", policy.probe_user, "the job itself runs as it", kRemedy);
  return account;
}

std::string module_directory_of(const Policy& policy, const std::vector<std::string>& places) {
  if (!policy.module_directory.empty()) return policy.module_directory;
  const auto has_it = [&](const std::string& place) {
    std::error_code error;
    return std::filesystem::exists(module_of(place, policy), error);
  };
  const auto found = std::ranges::find_if(places, has_it);
  return found != places.end() ? *found : places.empty() ? "" : places.back();
}

Result<void> check_library(const std::string& library) {
  std::error_code error;
  if (library.empty() || !std::filesystem::exists(library, error)) return {};
  if (auto folder = check_trusted(std::filesystem::path(library).parent_path()); !folder) return folder;
  return check_trusted(library);
}

Result<void> check_modules(const Policy& policy) {
  // The look at the hardware asks the watcher whatever the fabric is.
  std::vector<std::string> libraries{module_of(policy.module_directory, policy), policy.nccl_watcher};
  if (policy.fabric == "nccl") libraries.insert(libraries.end(), {policy.nccl_library, policy.nccl_driver});
  for (const std::string& library : libraries)
    if (auto trusted = check_library(library); !trusted) return trusted;
  return {};
}

Claim claim_node(const std::string& run_directory, std::uint32_t job, const std::string& node) {
  Claim claim;
  auto folder = Folder::open(run_directory, 0755);
  if (!folder) {
    claim.no_lock = folder.error();
    return claim;
  }
  claim.folder = std::move(*folder);
  auto lock = try_lock(*claim.folder, {job, node});
  if (!lock) {
    claim.no_lock = lock.error();
    return claim;
  }
  const bool named = lock->holder && !lock->holder->node.empty();
  if (!lock->taken && named && lock->holder->node != node)
    claim.busy = shared_directory(run_directory, lock->holder->node);
  else if (!lock->taken)
    claim.busy = fmt::format("another check is running on {}{}", node,
                             lock->holder ? fmt::format(" (job {})", lock->holder->job) : "");
  if (!claim.busy.empty()) return claim;
  claim.lock = std::move(lock->file);
  if (const Remains remains = living_remains(*claim.folder); !remains.empty())
    claim.busy =
        fmt::format("process {} of an earlier check on {} cannot be ended", remains.front().first, node);
  return claim;
}

}  // namespace netcheck::prolog
