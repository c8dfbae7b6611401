// What is looked at, in which order, and how it is printed. See doctor.h.
//
//   configuration → ask all at once: Slurm's programs, the account, the module, a credential → with the
//   node's name: names, interfaces, the peer, again at once → findings → text or JSON
//
// All of it in a child, since a file on a network filesystem that does not answer hangs whoever touches it.
#include "doctor/doctor.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "contract/job.h"
#include "doctor/collect.h"
#include "doctor/gpu_questions.h"
#include "doctor/question.h"
#include "doctor/site.h"
#include "doctor/words.h"
#include "policy/show.h"
#include "prolog/premises.h"
#include "system/loop.h"
#include "system/process.h"

namespace netcheck::doctor {

namespace {

// A controller that is well answers within tenths of a second.
constexpr Ns kSlurmPatience = std::chrono::seconds(5);
constexpr Ns kPatience =
    std::chrono::seconds(3);  // accounts, credentials, libraries, names: what a check itself gives them
constexpr Ns kListenPatience = std::chrono::seconds(60);  // to walk to the other node and type
// Both rounds of questions, and what is in no child of its own.
constexpr Ns kAll = kSlurmPatience + kPatience + std::chrono::milliseconds(1'500);

// Questions by what is asked: their names stand in messages.
constexpr const char* kVersion = "sinfo -V";
constexpr const char* kConfig = "scontrol show config";
constexpr const char* kAliases = "scontrol show aliases";
constexpr const char* kHelp = "sbatch --help";
constexpr const char* kPartitions = "sinfo for partitions";
constexpr const char* kAccounts = "sacctmgr for accounts";
constexpr const char* kNames = "for the names in allow_users and allow_groups";
constexpr const char* kAccount = "the account database";
constexpr const char* kCredential = "for a credential";
constexpr const char* kOwnName = "for the address of this node";
constexpr const char* kPeerName = "for the address of the peer";
constexpr const char* kInterfaces = "for the interfaces";
constexpr const char* kKnock = "the peer's ports";
constexpr const char* kMeet = "the peer for a meeting";

constexpr const char* kNoSettings =
    "is slurmctld up, in reach of this node, and slurm.conf (or SLURM_CONF) where Slurm looks for it? "
    "Another munge "
    "key, or a clock that is off, looks like this as well: compare both with the controller's (`munge -n | "
    "ssh "
    "CONTROLLER unmunge`, `date`)";

class Examination {
 public:
  explicit Examination(const Order& order) : order_(order) {}

  int run() {
    config_ = look_at_config(order_.config, site_);
    policy_ = site_ ? site_->defaults : Policy{};
    answers_ = ask_first();
    find_out_slurm();
    network_ = ask_about_network();
    judge_all();
    order_.json ? print_json() : print_text();
    return static_cast<int>(exit_code(findings_));
  }

 private:
  [[nodiscard]] bool computes() const { return role_ == "compute"; }
  [[nodiscard]] std::string module_folder() const {
    return prolog::module_directory_of(policy_, order_.module_directories);
  }
  [[nodiscard]] std::vector<std::string> modules() const {
    return site_ ? plain_modules(*site_) : std::vector{fabric_of(policy_, false)};
  }
  static std::string question_of(const std::string& module) {
    return fmt::format("the fabric module {} to load", printable(module));
  }

  Answers ask_first() {
    const Plugstack plugstack = read_plugstack(plugstack_file({}));
    if (const PlugstackLine* line = netcheck_line(plugstack); line != nullptr)
      slurm_folder_ = plugin_settings(*line).slurm_bin;
    Questions questions;
    const auto ask_slurm = [&](const char* name, const char* program,
                               const std::vector<std::string>& arguments, bool errors) {
      if (const std::string path = find_program(program, slurm_folder_); !path.empty())
        questions.ask(name, kSlurmPatience,
                      [=] { return ask_program(path, arguments, kSlurmPatience, errors); });
    };
    ask_slurm(kVersion, "sinfo", {"-V"}, false);
    ask_slurm(kConfig, "scontrol", {"show", "config"}, false);
    ask_slurm(kAliases, "scontrol", {"show", "aliases", host_name()}, false);
    ask_slurm(kHelp, "sbatch", {"--help"}, true);
    if (site_) ask_about_site(questions, ask_slurm);
    const std::string user = policy_.probe_user;
    const std::string folder = module_folder();
    questions.ask(kAccount, kPatience, [=] { return ask_account(user); });
    for (const std::string& module : modules())
      questions.ask(question_of(module), kPatience, [=] { return load_module_as(user, module, folder); });
    questions.ask(kCredential, kPatience, [=, this] { return seal_and_open_as(user, policy_); });
    return questions.answers();
  }

  // Only where the file names any.
  void ask_about_site(Questions& questions, const auto& ask_slurm) const {
    const AllowedNames names = allowed_names(*site_);
    if (std::ranges::any_of(site_->rules, [](const Rule& rule) { return !rule.partition.empty(); }))
      ask_slurm(kPartitions, "sinfo", {"--noheader", "--all", "--format=%R"}, false);
    if (!names.accounts.empty() && ::geteuid() == 0)  // PrivateData may hide them from others
      ask_slurm(kAccounts, "sacctmgr", {"--noheader", "--parsable2", "show", "account", "format=Account"},
                false);
    if (!names.users.empty() || !names.groups.empty())
      questions.ask(kNames, kPatience, [=] { return ask_names(names.users, names.groups); });
  }

  [[nodiscard]] SiteFacts site_facts() const {
    SiteFacts facts;
    const auto lines = [&](const char* question) -> std::optional<std::vector<std::string>> {
      const Result<Json>* found = answer(question);
      if (found == nullptr || !*found) return std::nullopt;
      return lines_of(text_of_answer(question));
    };
    facts.partitions = lines(kPartitions);
    facts.accounts = lines(kAccounts);
    const Result<Json>* names = answer(kNames);
    if (names == nullptr || !*names) return facts;
    facts.unknown_users = (*names)->at("users").get<std::vector<std::string>>();
    facts.unknown_groups = (*names)->at("groups").get<std::vector<std::string>>();
    return facts;
  }

  static std::string host_name() {
    std::array<char, 256> name{};
    ::gethostname(name.data(), name.size() - 1);
    const std::string whole = name.data();
    return whole.substr(0, whole.find('.'));
  }

  [[nodiscard]] const Result<Json>* answer(const std::string& name) const {
    const auto found = answers_.find(name);
    return found == answers_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] std::string text_of_answer(const std::string& name) const {
    const Result<Json>* found = answer(name);
    return found != nullptr && *found && (*found)->is_string() ? (*found)->get<std::string>() : "";
  }

  void find_out_slurm() {
    slurm_ = parse_slurm_config(text_of_answer(kConfig));
    const std::string aliases = text_of_answer(kAliases);
    node_ = aliases.substr(0, aliases.find_first_of(" \n"));
    const bool known = !node_.empty();
    if (!known) node_ = host_name();
    plugin_.config = order_.config;
    plugin_.slurm = parse_slurm_version(text_of_answer(kVersion));
    if (const Result<Json>* help = answer(kHelp))
      plugin_.help = *help ? Result<std::string>(text_of_answer(kHelp)) : tl::unexpected(help->error());
    look_at_plugin(plugin_, slurm_);
    const auto processes = running_processes();
    const bool controller = std::ranges::any_of(
        processes, [](const Running& one) { return one.command == "slurmctld" && !one.elsewhere; });
    const char* found = plugin_.slurmd_runs || known ? "compute" : controller ? "controller" : "login";
    role_ = order_.role.value_or(found);
    plugin_.computes = computes();
  }

  Answers ask_about_network() {
    Questions questions;
    const std::string own = address_of(policy_, node_);
    const std::string peer = order_.peer.value_or("");
    const std::string there = peer.empty() ? own : address_of(policy_, peer);
    if (computes()) {
      questions.ask(kOwnName, kPatience, [=] { return look_up(own); });
      questions.ask(kInterfaces, kPatience, [=, this] { return ask_interfaces(policy_, node_, there); });
      ask_about_gpus(questions, {.site = site_,
                                 .policy = policy_,
                                 .node = node_,
                                 .module_folder = module_folder(),
                                 .sinfo = find_program("sinfo", slurm_folder_),
                                 .patience = kPatience});
    }
    if (peer.empty()) return questions.answers();
    questions.ask(kPeerName, kPatience, [=] { return look_up(there); });
    if (!order_.listen)
      questions.ask(kKnock, kPatience,
                    [=, this] { return knock(there, policy_, kPatience - std::chrono::seconds(1)); });
    if (::geteuid() != 0) return questions.answers();  // its ports and its account are root's to use
    const Ns patience = order_.listen ? kListenPatience : kPatience - std::chrono::milliseconds(500);
    const Appointment appointment{
        .cluster = cluster(), .self = node_, .peer = peer, .listen = order_.listen, .patience = patience};
    questions.ask(kMeet, patience + std::chrono::milliseconds(500),
                  [=, this] { return meet(appointment, policy_); });
    return questions.answers();
  }

  [[nodiscard]] std::string cluster() const {
    const std::string name = value_of(slurm_, "ClusterName");
    return name.empty() ? "unknown" : name;
  }

  void judge_all() {
    judge_slurm();
    append(findings_, check_config(config_));
    if (!policy_.nccl_topology.empty() && computes())
      append(findings_, check_nccl_topology(look_at(policy_.nccl_topology)));
    if (site_) append(findings_, check_site(*site_, site_facts()));
    if (computes()) judge_node();
    if (!order_.peer) return;
    append(findings_, check_name(name_facts(*order_.peer, kPeerName, false)));
    PeerFacts peer{.node = *order_.peer, .self = node_, .listened = order_.listen, .root = ::geteuid() == 0};
    if (const auto found = network_.find(kKnock); found != network_.end())
      peer.reach = reach_of(found->second);
    if (const auto found = network_.find(kMeet); found != network_.end())
      peer.meeting = meeting_of(found->second);
    append(findings_, check_peer(peer));
  }

  void judge_slurm() {
    const bool tools = answer(kConfig) != nullptr || answer(kVersion) != nullptr;
    if (!tools && !plugin_.plugstack_exists) {
      findings_.push_back({Level::unseen, "Slurm",
                           "there is neither scontrol nor plugstack.conf on this node",
                           "install Slurm, or have its programs in the PATH"});
      return;
    }
    append(findings_, check_plugin(plugin_));
    if (slurm_.empty()) {
      const Result<Json>* asked = answer(kConfig);
      findings_.push_back(asked == nullptr || *asked
                              ? Finding{Level::unseen, "Slurm's settings", "there is no scontrol here to ask",
                                        "have it in the PATH"}
                              : finding_of(Level::unseen, "Slurm's settings", asked->error(), kNoSettings));
      return;
    }
    const Policy most = site_ ? longest(*site_) : policy_;
    append(findings_, check_prolog_flags(slurm_));
    append(findings_, check_timeouts(slurm_, most, plugin_timeout(plugin_.plugstack),
                                     plugin_.script ? script_limit(*plugin_.script) : std::nullopt));
    append(findings_, check_authentication(slurm_, policy_));
    append(findings_, check_accounting(slurm_, policy_));
    if (site_) append(findings_, check_requeue(slurm_, *site_));
  }

  void judge_node() {
    const AccountFacts account = account_facts(policy_.probe_user, answers_.at(kAccount));
    append(findings_, check_account(account));
    if (::geteuid() != 0 || !account.missing) judge_as(account);  // else there is nobody to try the rest as
    append(findings_, check_ports(look_at_ports(policy_)));
    append(findings_, check_name(name_facts(node_, kOwnName, true)));
    append(findings_, check_interfaces(interface_facts(network_.at(kInterfaces), order_.peer.value_or(""))));
    FolderFacts records = look_at_folder("record folder", policy_.run_directory);
    look_for_other_nodes(records, node_);
    append(findings_, check_folder(records));
    if (policy_.spool_dir.empty()) return;
    FolderFacts spool = look_at_folder("spool folder", policy_.spool_dir);
    spool.spool = true;
    append(findings_, check_folder(spool));
  }

  // What was tried as the probe's account.
  void judge_as(const AccountFacts& account) {
    const auto called = [&](const Json& uid) {
      return uid == account.uid && !account.missing ? account.name : "uid " + uid.dump();
    };
    const auto by_sections = [&](const std::string& module) {
      return module == fabric_of(policy_, false) || module == fabric_of(policy_, true);
    };
    const auto judge_module = [&](const std::string& name, const Result<Json>& loaded) {
      const std::string folder = module_folder();
      ModuleFacts module{.name = name,
                         .file = look_at(folder + "/netcheck-fabric-" + name + ".so"),
                         .folder = look_at(folder)};
      if (loaded)
        module.as = called(*loaded);
      else
        module.load = loaded.error();
      const Findings found = check_module(module);
      append(findings_, by_sections(name) ? found : for_rules_alone(found));
    };
    const std::vector<std::string> plain = modules();
    for (const std::string& module : plain)
      judge_module(module, answers_.at(question_of(module)));
    if (gives_gpus(network_)) {
      if (std::ranges::find(plain, kNccl) == plain.end()) judge_module(kNccl, gpu_module(network_));
      const Findings found = check_libraries(network_, policy_);
      append(findings_, by_sections(kNccl) ? found : for_rules_alone(found));
    }
    CredentialFacts credential{.kind = policy_.credential};
    if (const auto& sealed = answers_.at(kCredential); sealed) {
      credential.as = called(sealed->at("uid"));
      credential.took = Ns(sealed->at("took").get<std::int64_t>());
    } else {
      credential.error = sealed.error();
    }
    append(findings_, check_credential(credential));
  }

  [[nodiscard]] NameFacts name_facts(const std::string& node, const std::string& question, bool here) const {
    NameFacts facts{.node = node, .address = address_of(policy_, node), .here = here, .own = own_addresses()};
    const auto& found = network_.at(question);
    if (!found)
      facts.error = found.error();
    else
      for (const Json& number : *found)
        facts.numbers.push_back(number.get<std::string>());
    return facts;
  }

  [[nodiscard]] std::string whom() const {
    return ::geteuid() == 0 ? "root" : fmt::format("uid {}", ::geteuid());
  }

  void print_text() const {
    fmt::print("netcheck {} on {} ({} node), as {}\n\n", NETCHECK_VERSION, printable(node_), role_, whom());
    fmt::print("{}", as_text(findings_, ::isatty(STDOUT_FILENO) == 1));
    if (!order_.settings) {
      fmt::print(
          "\nEvery setting in effect: netcheck doctor --settings; those of a kind of job: netcheck policy\n");
      std::fflush(stdout);
      return;
    }
    fmt::print("\n# Settings in effect, of {}{}\n", printable(order_.config),
               config_.file.there ? "" : " (not there: built-in values)");
    if (!site_) fmt::print("# It is not used, as said above: these are the built-in values.\n");
    for (const Rule& rule : site_ ? site_->rules : std::vector<Rule>())
      fmt::print("# {} changes them for its jobs: netcheck policy --help\n", printable(rule.source));
    fmt::print("\n{}", as_toml(policy_));
    std::fflush(stdout);
  }

  void print_json() const {
    Json settings = Json::array(), rules = Json::array();
    for (const Shown& shown : show(policy_))
      settings.push_back(
          {{"section", shown.section}, {"key", shown.key}, {"value", shown.value}, {"source", shown.source}});
    for (const Rule& rule : site_ ? site_->rules : std::vector<Rule>())
      rules.push_back(rule.source);
    const Json all{{"version", NETCHECK_VERSION},
                   {"node", node_},
                   {"role", role_},
                   {"root", ::geteuid() == 0},
                   {"config", order_.config},
                   {"config_used", site_.has_value() && config_.file.there},
                   {"findings", as_json(findings_)},
                   {"rules", rules},
                   {"settings", settings}};
    fmt::print("{}\n", all.dump(2, ' ', false, Json::error_handler_t::replace));
    std::fflush(stdout);
  }

  const Order& order_;
  ConfigFacts config_;
  std::optional<Site> site_;
  Policy policy_;
  Answers answers_, network_;
  std::string slurm_folder_;
  SlurmConfig slurm_;
  PluginFacts plugin_;
  std::string node_, role_;
  Findings findings_;
};

std::optional<std::string> wrong_use(const Order& order) {
  if (order.must_exist && !std::filesystem::path(order.config).is_absolute())
    return fmt::format("--config {}: must be an absolute path, as in plugstack.conf",
                       printable(order.config));
  const FileFacts config = look_at(order.config);
  if (order.must_exist && !config.there && config.why_not.empty())
    return fmt::format("--config {}: there is no such file", printable(order.config));
  if (!order.peer) return std::nullopt;
  const auto names = expand_node_list(*order.peer);
  if (!names || names->size() != 1 || names->front() != *order.peer)
    return fmt::format("--peer '{}': must be the name of one node, as Slurm knows it",
                       printable(*order.peer, 64));
  return std::nullopt;
}

}  // namespace

int examine(const Order& order) {
  if (const auto wrong = wrong_use(order)) {
    fmt::print(stderr, "netcheck: {}\n", *wrong);
    return static_cast<int>(ExitCode::usage);
  }
  const Ns patience = kAll + (order.listen ? kListenPatience : Ns{});
  if (order.listen) {
    fmt::print(stderr, "netcheck: waiting for {} s at most for `netcheck doctor --peer` from {}\n",
               std::chrono::seconds(kListenPatience / std::chrono::seconds(1)).count(),
               printable(*order.peer));
  }
  std::fflush(stdout);
  auto child = system::Process::fork([&order] {
    try {
      return Examination(order).run();
    } catch (const std::exception& error) {
      fmt::print(stderr, "netcheck: doctor: {}\n", error.what());
      return static_cast<int>(ExitCode::inconclusive);
    }
  });
  if (!child) {
    fmt::print(stderr, "netcheck: {}\n", describe(child.error()));
    return static_cast<int>(ExitCode::inconclusive);
  }
  const auto status = child->wait(system::now() + patience);
  if (status && WIFEXITED(*status)) return WEXITSTATUS(*status);
  if (status && WIFSIGNALED(*status) && WTERMSIG(*status) == SIGPIPE)  // `netcheck doctor | head`
    return static_cast<int>(ExitCode::inconclusive);
  fmt::print(stderr, "netcheck: doctor: {}\n",
             status ? system::describe_status(*status)
                    : fmt::format("no answer within {}: a filesystem (of {}, of Slurm, of netcheck) may hang",
                                  seconds_text(patience), printable(order.config)));
  return static_cast<int>(ExitCode::inconclusive);
}

}  // namespace netcheck::doctor
