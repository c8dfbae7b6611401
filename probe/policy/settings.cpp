// The table of all keys of netcheck.toml. Pure.
#include "policy/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>

#include "policy/profiles.h"
#include "policy/values.h"

namespace netcheck::policy {

namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// A prolog that takes a minute is one that Slurm or its users no longer wait for.
constexpr Ns kLongestCheck = seconds(60);
/// As long as parse_duration reads.
constexpr Ns kDay = hours(24);
/// The prologs of a job begin within a second of each other where the controller is quiet; each needs a tenth
/// to ask it, and some to prove who it is. Sooner not even four idle nodes meet.
constexpr Ns kShortestRendezvous = milliseconds(500);
constexpr std::size_t kMaxHostBytes = 255;  // DNS

std::string check_address(const std::string& value) {
  std::string bare = value;
  const auto at = bare.find("{node}");
  if (at == std::string::npos) return "must contain {node}, for example \"{node}-ib0\"";
  bare.erase(at, std::string_view("{node}").size());
  return bare.size() <= kMaxHostBytes && made_of(bare, "_-.") ? ""
                                                              : "must be a host name with {node} in it once";
}

std::string check_user(const std::string& value) {
  if (value.empty() || value.size() > 32 || !made_of(value, "_-.")) return "must be the name of an account";
  // The probe's credentials say "this is netcheck": an account that other services share would prove nothing.
  if (value == "root" || value == "nobody" || value == "daemon")
    return fmt::format("must be an account of netcheck's own, not '{}'", value);
  return {};
}

std::string check_fabric(const std::string& value) {
  // It becomes part of a file's name: netcheck-fabric-NAME.so.
  return !value.empty() && value.size() <= 32 && made_of(value, "_-") ? "" : "must be the name of a module";
}

/// NCCL's names for them. Some fit no operation or no machine: then it says so, or hangs.
constexpr std::array kNcclAlgorithms{"Ring",     "Tree", "CollnetDirect", "CollnetChain", "NVLS",
                                     "NVLSTree", "PAT"};

std::string nccl_algorithms() {
  return fmt::format("\"{}\"", fmt::join(kNcclAlgorithms, "\", \""));
}

std::string check_algorithm(const std::string& value) {
  return std::ranges::find(kNcclAlgorithms, value) != kNcclAlgorithms.end()
             ? ""
             : fmt::format("must be one of {}", nccl_algorithms());
}

/// "IB", "RoCE", "Socket", "AWS Libfabric": a plugin calls itself what it likes.
std::string check_transport(const std::string& value) {
  return value.size() <= 32 && made_of(value, "_-. ") ? "" : "must be the name of a transport, or \"\"";
}

constexpr const char* kOperationForm =
    "\"auto\", \"all_gather\", \"all_reduce\", \"reduce_scatter\", \"alltoall\" or \"broadcast\"";

std::string check_operation(const std::string& value) {
  return is_operation(value) ? "" : fmt::format("must be {}", kOperationForm);
}

std::string check_credential(const std::string& value) {
  return value == "munge" || value == "key" ? "" : "must be \"munge\" or \"key\"";
}

std::string check_profile(const std::string& value) {
  return find_profile(value) != nullptr || value == "none" ? "" : "must be " + profile_names();
}

Value names(std::vector<std::string> Policy::*field, const char* of, const char* example) {
  return texts(field, of, example, "_-.@$");
}

Value devices(std::vector<std::string> Policy::*field) {
  return texts(field, "device names or globs", "[\"mlx5_*\"]", "_-.:*?[]!@");
}

std::vector<Setting> thresholds() {
  return {
      {"threshold", "profile", Scope::job, "thresholds from published guidance, by name",
       text(&Policy::profile, profile_names(), check_profile)},
      {"threshold", "min", Scope::job, "the bus bandwidth below which a check fails", threshold()},
      {"threshold", "min_per_rail", Scope::job, "the same for each rail alone", rate(&Policy::min_per_rail)},
      {"threshold", "min_per_pair", Scope::job, "the rate below which one way between two nodes fails it",
       rate(&Policy::min_per_pair)},
      {"threshold", "min_fraction", Scope::job, "min, as a part of what the hardware could reach",
       fraction(&Policy::min_fraction)},
      {"threshold", "min_fraction_per_rail", Scope::job, "the same for each rail alone",
       fraction(&Policy::min_fraction_per_rail)},
      {"threshold", "nominal", Scope::job, "what a node's rails could reach together, where it is not known",
       rate(&Policy::nominal)},
  };
}

Setting finding(std::string_view key, Flaw flaw, std::string_view about) {
  return {"findings", key, Scope::job, about, weight(flaw)};
}

std::vector<Setting> findings() {
  return {
      finding("port_down", Flaw::port_down, "a fabric port is down"),
      finding("port_slow", Flaw::port_slow, "one is slower than its like on the node"),
      finding("pcie_narrow", Flaw::pcie_narrow, "a card has fewer PCIe lanes than both ends have"),
      finding("pcie_slow", Flaw::pcie_slow, "one is on an older generation of PCIe than both ends can"),
      finding("gpu_lost", Flaw::gpu_lost, "a GPU is on the bus, and its driver does not know it"),
      finding("gpu_far", Flaw::gpu_far, "a GPU goes to a port far from it, its own being down or excluded"),
      finding("nvlink_missing", Flaw::nvlink_missing, "GPUs that are made for NVLink have none"),
      finding("nvlink_uneven", Flaw::nvlink_uneven, "a GPU has fewer NVLinks than the others"),
      finding("mtu_uneven", Flaw::mtu_uneven, "the rails of a node differ in their MTU"),
      finding("memlock", Flaw::memlock, "too little memory may be locked for RDMA"),
      finding("iommu", Flaw::iommu, "the IOMMU sends traffic of GPUs and NICs by the CPU"),
      finding("acs", Flaw::acs, "ACS at a switch does"),
      finding("gpus_missing", Flaw::gpus_missing, "fewer GPUs than [hardware] says"),
      finding("ports_missing", Flaw::ports_missing, "fewer fabric ports than it says"),
      finding("gpu_capped", Flaw::gpu_capped, "a GPU's clocks or power are held down"),
      finding("roce_gid", Flaw::roce_gid, "a RoCE port has no address that RDMA can use"),
      finding("nccl_differs", Flaw::nccl_differs, "NCCL's file and the node say different things"),
      finding("odd_gpus", Flaw::odd_gpus, "a node has other GPUs than the others"),
      finding("odd_ports", Flaw::odd_ports, "another number of fabric ports, or of those that are up"),
      finding("odd_rate", Flaw::odd_rate, "rails of another speed"),
      finding("odd_mtu", Flaw::odd_mtu, "another MTU"),
      finding("odd_pcie", Flaw::odd_pcie, "cards with other numbers of PCIe lanes"),
      finding("odd_nvlink", Flaw::odd_nvlink, "another number of NVLinks"),
      finding("odd_driver", Flaw::odd_driver, "another kernel, driver or firmware"),
      finding("odd_cpu", Flaw::odd_cpu, "other numbers of cores or NUMA nodes"),
  };
}

std::vector<Setting> hardware() {
  constexpr std::uint32_t kMost = 64;  // lanes of a node
  return {
      {"hardware", "gpus", Scope::job, "how many GPUs each node has", count(&Policy::gpus, kMost)},
      {"hardware", "ports", Scope::job, "how many fabric ports each node has", count(&Policy::ports, kMost)},
      {"hardware", "nccl_topology", Scope::job, "NCCL's description of what is near to what on them",
       path(&Policy::nccl_topology, true)},
  };
}

std::vector<Setting> check() {
  return {
      {"check", "op", Scope::job, "what is measured", text(&Policy::op, kOperationForm, check_operation)},
      {"check", "time", Scope::job, "deadline of the whole check",
       duration(&Policy::time, kShortestCheck, kLongestCheck)},
      {"check", "max_time", Scope::job, "how long a user may make it",
       duration(&Policy::max_time, kShortestCheck, kLongestCheck)},
      {"check", "rendezvous", Scope::job, "how long the nodes have to find each other",
       duration(&Policy::rendezvous, kShortestRendezvous, kLongestCheck)},
      {"check", "slice", Scope::job, "how long bytes are moved when all is well",
       duration(&Policy::slice, milliseconds(100), kLongestCheck)},
      {"check", "group_size", Scope::job, "larger jobs are measured in groups of so many nodes",
       whole(&Policy::group_size, 2, 1'024)},
  };
}

std::vector<Setting> when() {
  return {
      {"when", "mode", Scope::job, "whether jobs are checked that did not ask",
       choice(&Policy::mode, {Mode::opt_in, Mode::always})},
      {"when", "shared", Scope::job, "what becomes of jobs that do not own their nodes",
       choice(&Policy::shared, {Shared::skip, Shared::measure})},
      {"when", "min_walltime", Scope::job, "jobs with a shorter time limit are not measured",
       duration(&Policy::min_walltime, seconds(1), kDay, true)},
      {"when", "min_interval", Scope::job, "nodes that passed together so recently are not measured again",
       duration(&Policy::min_interval, seconds(1), kDay, true)},
      {"when", "settle", Scope::job, "a node that booted so recently has nothing done about it",
       duration(&Policy::settle, seconds(1), kDay, true)},
      {"when", "allow_users", Scope::job, "whose jobs are checked",
       names(&Policy::allow_users, "user names", "[\"alice\"]")},
      {"when", "allow_accounts", Scope::job, "jobs of which accounts",
       names(&Policy::allow_accounts, "account names", "[\"physics\"]")},
      {"when", "allow_groups", Scope::job, "jobs of whose members",
       names(&Policy::allow_groups, "group names", "[\"hpc\"]")},
      {"when", "kill_switch", Scope::site, "while this file exists, nothing is checked and nothing done",
       path(&Policy::kill_switch, true)},
  };
}

std::vector<Setting> users() {
  return {
      {"users", "user_actions", Scope::job, "what users may choose with action=, beside the site's action",
       actions(&Policy::user_actions)},
      {"users", "lowest_min", Scope::job, "a user's min= may not be lower", rate(&Policy::lowest_min)},
      {"users", "highest_min", Scope::job, "nor higher", rate(&Policy::highest_min)},
  };
}

std::vector<Setting> action() {
  constexpr std::int64_t kMost = 1'000;
  return {
      {"action", "action", Scope::job, "what follows from a fail",
       choice(&Policy::action, {Action::annotate, Action::hold, Action::requeue, Action::cancel})},
      {"action", "drain", Scope::job, "whether culprits are drained as well", flag(&Policy::drain)},
      {"action", "dry_run", Scope::job, "only say what would have been done", flag(&Policy::dry_run)},
      {"action", "on_inconclusive", Scope::job, "what follows where nothing could be measured",
       choice(&Policy::on_inconclusive, {OnInconclusive::annotate, OnInconclusive::requeue_once})},
      {"action", "requeue_fallback", Scope::job, "instead of a requeue that is not possible",
       choice(&Policy::requeue_fallback, {Action::annotate, Action::hold, Action::cancel})},
      {"action", "between_switches", Scope::job,
       "whether a job is refused that is slow between switches only", flag(&Policy::between_switches)},
      {"action", "early_start", Scope::job,
       "whether a requeued job is let start before Slurm's two minutes are over", flag(&Policy::early_start)},
      {"action", "max_requeues", Scope::job, "most requeues of one job", whole(&Policy::max_requeues, 0, 16)},
      {"action", "max_drain", Scope::job, "most nodes drained for one job",
       whole(&Policy::max_drain, 0, kMost)},
      {"action", "max_drained_total", Scope::site, "most nodes of the cluster drained at once",
       share(&Policy::max_drained_total)},
      {"action", "max_actions_per_hour", Scope::site, "most actions in an hour",
       whole(&Policy::max_actions_per_hour, 0, kMost)},
  };
}

std::vector<Setting> probe() {
  return {
      {"probe", "probe_user", Scope::site, "the account that measures",
       text(&Policy::probe_user, "the name of an account", check_user)},
      {"probe", "module_directory", Scope::site, "where the fabric modules lie",
       path(&Policy::module_directory, true)},
      {"probe", "memory", Scope::job, "most memory of one message buffer", memory()},
  };
}

std::vector<Setting> peers() {
  constexpr std::int64_t kMaxPort = std::numeric_limits<std::uint16_t>::max();
  return {
      {"peers", "first_port", Scope::site, "ports on which a job's first node listens",
       whole(&Policy::first_port, 1, kMaxPort)},
      {"peers", "last_port", Scope::site, "the last of them", whole(&Policy::last_port, 1, kMaxPort)},
      {"peers", "address", Scope::site, "how a node is reached",
       text(&Policy::address, "a host name with {node} in it", check_address)},
      {"peers", "addresses", Scope::site, "exceptions, by node", addresses()},
      {"peers", "credential", Scope::site, "by what nodes prove who they are",
       text(&Policy::credential, "\"munge\" or \"key\"", check_credential)},
      {"peers", "key_file", Scope::site, "the file for \"key\"", path(&Policy::key_file, true)},
      {"peers", "munge_socket", Scope::site, "munged's socket", path(&Policy::munge_socket, true)},
  };
}

std::vector<Setting> fabric() {
  return {
      {"fabric", "fabric", Scope::job, "the module that moves the bytes",
       text(&Policy::fabric, "\"auto\", or the name of a module", check_fabric)},
      {"fabric", "devices", Scope::job, "the devices that carry the traffic", devices(&Policy::devices)},
      {"fabric", "exclude", Scope::job, "those that never do", devices(&Policy::exclude)},
  };
}

std::vector<Setting> nccl() {
  constexpr std::int64_t kMostRanks = 4'096;
  return {
      {"nccl", "library", Scope::site, "NCCL itself, libnccl.so.2", path(&Policy::nccl_library, true)},
      {"nccl", "driver", Scope::site, "the CUDA driver's library, libcuda.so.1",
       path(&Policy::nccl_driver, true)},
      {"nccl", "watcher", Scope::site, "NVML, libnvidia-ml.so.1", path(&Policy::nccl_watcher, true)},
      {"nccl", "env", Scope::job, "NCCL's own settings", nccl_variables()},
      {"nccl", "algorithm", Scope::job, "how NCCL moves the bytes (NCCL_ALGO)",
       text(&Policy::nccl_algorithm, nccl_algorithms(), check_algorithm)},
      {"nccl", "max_world", Scope::job, "most GPUs of one communicator",
       whole(&Policy::max_world, 2, kMostRanks)},
      {"nccl", "mig", Scope::job, "what becomes of GPUs in MIG mode",
       choice(&Policy::mig, {OnGpu::refuse, OnGpu::measure})},
      {"nccl", "busy", Scope::job, "what becomes of GPUs that others compute on",
       choice(&Policy::busy, {OnGpu::refuse, OnGpu::measure})},
      {"nccl", "require_transport", Scope::job, "what NCCL's bytes must go over between nodes",
       text(&Policy::require_transport, "the name of a transport, or \"\"", check_transport)},
  };
}

std::vector<Setting> record() {
  return {
      {"record", "run_directory", Scope::site, "where records and notices lie",
       path(&Policy::run_directory, false)},
      {"record", "spool_dir", Scope::site, "where records are kept for good", path(&Policy::spool_dir, true)},
      {"record", "annotate", Scope::job, "whether the verdict is written into AdminComment",
       flag(&Policy::annotate)},
  };
}

std::vector<Setting> collect() {
  std::vector<Setting> all;
  for (auto* part :
       {thresholds, findings, hardware, check, when, users, action, probe, peers, fabric, nccl, record})
    for (Setting& setting : part())
      all.push_back(std::move(setting));
  return all;
}

}  // namespace

const std::vector<Setting>& all_settings() {
  static const std::vector<Setting> settings = collect();
  return settings;
}

const Setting& setting(std::string_view name) {
  const auto& all = all_settings();
  return *std::find_if(all.begin(), all.end(), [&](const Setting& one) { return one.name() == name; });
}

}  // namespace netcheck::policy
