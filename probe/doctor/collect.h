// Looking: what the facts of the checks are made of. As whoever calls; what only root may see stays unknown
// to others. Whatever may hang (a program, a look-up, a library) is called in a child of its own
// (question.h): the functions here that say "in a child" are to be called there alone.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "contract/json.h"
#include "doctor/network.h"
#include "doctor/node.h"
#include "doctor/plugin.h"
#include "peers/credential.h"
#include "policy/policy.h"

namespace netcheck::doctor {

// --- files and processes (collect_node.cpp) ---

/// lstat(2) with `follow` false.
[[nodiscard]] FileFacts look_at(const std::string& path, bool follow = true);
/// nullopt: not readable. At most a mebibyte.
[[nodiscard]] std::optional<std::string> read_file(const std::string& path);
struct Running {
  pid_t pid = 0;
  uid_t uid = 0;
  std::string command;     ///< /proc/PID/comm
  bool elsewhere = false;  ///< in another network namespace: a container's
};
[[nodiscard]] std::vector<Running> running_processes();

[[nodiscard]] ConfigFacts look_at_config(const std::string& path, std::optional<Site>& site);
[[nodiscard]] FolderFacts look_at_folder(const std::string& what, const std::string& path);
/// Whether other nodes use it as their run directory, or may (collect_folder.cpp).
void look_for_other_nodes(FolderFacts& facts, const std::string& node);
/// In a child: which of these users and groups nobody here has.
[[nodiscard]] Result<Json> ask_names(const std::vector<std::string>& users,
                                     const std::vector<std::string>& groups);
[[nodiscard]] PortFacts look_at_ports(const Policy& policy);

/// In a child: uid, shell, other accounts of the same uid.
[[nodiscard]] Result<Json> ask_account(const std::string& name);
[[nodiscard]] AccountFacts account_facts(const std::string& name, const Result<Json>& answer);

/// In a child, which is root's or already the account's: gives up root's rights, as the probe does. Nothing
/// to give up: stays what it is.
[[nodiscard]] Result<void> become(const std::string& account);
/// In a child: loads the module as the account. The answer: the uid that it had then.
[[nodiscard]] Result<Json> load_module_as(const std::string& account, const std::string& name,
                                          const std::string& folder);
/// By what a check proves who is who, at this site.
[[nodiscard]] peers::CredentialKind credential_kind(const Policy& policy);
/// In a child: seals and opens a credential as the account. The answer: its uid, and the nanoseconds it took.
[[nodiscard]] Result<Json> seal_and_open_as(const std::string& account, const Policy& policy);

// --- Slurm (collect_slurm.cpp) ---

/// Absolute path of one of Slurm's programs, from PATH and `folder`; "" where there is none.
[[nodiscard]] std::string find_program(const std::string& name, const std::string& folder);
/// In a child: what a program writes, with `errors` its stderr as well.
[[nodiscard]] Result<Json> ask_program(const std::string& program, const std::vector<std::string>& arguments,
                                       Ns patience, bool errors = false);
/// plugstack.conf as Slurm here reads it. `config` may be empty.
[[nodiscard]] std::string plugstack_file(const SlurmConfig& config);
[[nodiscard]] Plugstack read_plugstack(const std::string& path);
/// The plugin's file and program, and whether slurmd has it; the Prolog script that calls netcheck.
void look_at_plugin(PluginFacts& facts, const SlurmConfig& config);

// --- the network (collect_network.cpp) ---

/// In a child: numeric addresses of a name, IPv4 first.
[[nodiscard]] Result<Json> look_up(const std::string& name);
[[nodiscard]] std::vector<std::string> own_addresses();
/// In a child: the NICs, and those that lead to `address` (a name or a number).
[[nodiscard]] Result<Json> ask_interfaces(const Policy& policy, const std::string& node,
                                          const std::string& address);
[[nodiscard]] InterfaceFacts interface_facts(const Result<Json>& answer, const std::string& towards);
/// In a child: knocks at the ports of `name`, all at once.
[[nodiscard]] Result<Json> knock(const std::string& name, const Policy& policy, Ns patience);
[[nodiscard]] std::optional<Reach> reach_of(const Result<Json>& answer);

struct Appointment {
  std::string cluster, self, peer;
  bool listen = false;  ///< else goes to the peer, who listens
  Ns patience{};
};
/// In a child: the rendezvous of a check between two nodes, with the very code and account of one. Job 0,
/// which no job is.
[[nodiscard]] Result<Json> meet(const Appointment& appointment, const Policy& policy);
[[nodiscard]] Meeting meeting_of(const Result<Json>& answer);

}  // namespace netcheck::doctor
