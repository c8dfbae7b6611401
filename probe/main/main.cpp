// The program `netcheck`: reads its command line and enters a room. `netcheck prolog` is called by the SPANK
// plugin or a site's Prolog as root; `probe` and `fabric` by netcheck itself, as the probe user; the others
// by people.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "contract/error.h"
#include "doctor/doctor.h"
#include "fabric/child.h"
#include "main/policy.h"
#include "main/replay.h"
#include "main/topo.h"
#include "policy/comment.h"
#include "prolog/supervisor.h"
#include "session/look.h"
#include "session/probe.h"

namespace {

using netcheck::ExitCode;

constexpr const char* kConfig = "/etc/netcheck/netcheck.toml";
constexpr const char* kSyslog = "/dev/log";
constexpr int kFabricSocket = 3;  // fabric/child.h
constexpr int kLookPipe = 3;      // session/look.h

constexpr const char* kAbout =
    "netcheck: checks a Slurm job's network at the moment the job starts, on exactly the nodes it was "
    "given.\n\n"
    "People ask for a check when they submit:\n"
    "    sbatch --netcheck train.sh                 the site's threshold\n"
    "    sbatch --netcheck=400Gbps train.sh         at least 400 Gb/s bus bandwidth\n"
    "and read the verdict with:\n"
    "    sacct -X -P -o JobID,State,AdminComment\n";
constexpr const char* kFooter =
    "Exit codes: 0 pass or done, 1 fail, 2 usage or configuration error, 3 inconclusive.\n"
    "Example:  netcheck doctor --peer n2\n"
    "More of a subcommand:  netcheck doctor --help";

// This very file, whatever it was called by: the probe and the fabric child are started from it.
std::string own_path() {
  std::array<char, PATH_MAX> path{};
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
  return length > 0 ? std::string(path.data(), static_cast<std::size_t>(length)) : std::string();
}

// Where fabric modules may lie: beside the program (a build folder), or in the tree that both were installed
// in, wherever that has been copied to.
std::vector<std::string> module_directories(const std::string& program) {
  const std::filesystem::path own = std::filesystem::path(program).parent_path();
  return {own.string(), (own / NETCHECK_MODULES_FROM_PROGRAM).lexically_normal().string()};
}

struct Arguments {
  std::string config = kConfig;
  std::string request;
  bool request_from_comment = false;
  std::string notice_directory;
  bool syslog = false;
  bool announce_deadline = false;
  std::string fabric;
  std::string module_directory;
  std::string record;
  std::optional<std::string> replay_config;
  netcheck::PolicyQuestion policy;
  netcheck::doctor::Order doctor;
  netcheck::TopoQuestion topo;
  std::string nccl_topology, nvml;
};

// Subcommands that netcheck starts by itself; not shown in --help.
void add_internal(CLI::App& app, Arguments& arguments, std::function<int()>& chosen) {
  CLI::App* probe = app.add_subcommand("probe", "one node's part of a check (started by netcheck prolog)");
  probe->group("");
  probe->callback([&chosen] { chosen = [] { return netcheck::session::probe(own_path(), {}); }; });
  CLI::App* look =
      app.add_subcommand("look", "the process that looks at the hardware (started by netcheck probe)");
  look->group("");
  look->add_option("--nccl", arguments.nccl_topology, "NCCL's description of this machine");
  look->add_option("--nvml", arguments.nvml, "NVML's library");
  look->callback([&] {
    chosen = [&] { return netcheck::session::look(kLookPipe, arguments.nccl_topology, arguments.nvml); };
  });
  CLI::App* fabric = app.add_subcommand("fabric", "the process that moves bytes (started by netcheck probe)");
  fabric->group("");
  fabric->add_option("name", arguments.fabric)->required();
  fabric->add_option("--module-directory", arguments.module_directory)->required();
  fabric->callback([&] {
    chosen = [&] {
      return netcheck::fabric::host(arguments.fabric, arguments.module_directory, kFabricSocket);
    };
  });
}

void add_prolog(CLI::App& app, Arguments& arguments, std::function<int()>& chosen) {
  CLI::App* prolog =
      app.add_subcommand("prolog",
                         "the check of one node, from Slurm's job prolog (as root)\n"
                         "Example, in a Prolog script:  netcheck prolog --request-from-comment --syslog");
  prolog->add_option("--config", arguments.config, "the site's configuration")->capture_default_str();
  CLI::Option* request =
      prolog->add_option("--request", arguments.request,
                         "the value of --netcheck; without it, checked only where mode = \"always\"");
  prolog
      ->add_flag("--request-from-comment", arguments.request_from_comment,
                 "the job asks with the word netcheck or netcheck=SPEC in its comment (SLURM_JOB_COMMENT)")
      ->excludes(request);
  CLI::Option* notices = prolog->add_option(
      "--notice-directory", arguments.notice_directory,
      "run_directory= of plugstack.conf, where the plugin looks for the notice; without it, that of the "
      "configuration");
  prolog->add_flag("--syslog", arguments.syslog, "say what there is to say to the syslog, not on stderr");
  // The plugin's; not shown in --help.
  prolog->add_flag("--announce-deadline", arguments.announce_deadline)->group("");
  request->expected(0, 1)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  prolog->callback([&, request, notices] {
    chosen = [&, request, notices] {
      netcheck::prolog::Invocation invocation;
      invocation.program = own_path();
      invocation.config = arguments.config;
      if (request->count() > 0) invocation.request = arguments.request;
      const char* comment = arguments.request_from_comment ? std::getenv("SLURM_JOB_COMMENT") : nullptr;
      if (comment != nullptr) invocation.request = netcheck::request_in_comment(comment);
      if (notices->count() > 0) invocation.notice_directory = arguments.notice_directory;
      if (arguments.syslog) invocation.syslog = kSyslog;
      invocation.announce_deadline = arguments.announce_deadline;
      invocation.module_directories = module_directories(invocation.program);
      return netcheck::prolog::supervise(invocation);
    };
  });
}

void add_policy(CLI::App& app, Arguments& arguments, std::function<int()>& chosen) {
  netcheck::PolicyQuestion& question = arguments.policy;
  question.config = kConfig;
  CLI::App* policy =
      app.add_subcommand("policy",
                         "the settings in effect for a job, and where each comes from\n"
                         "Example:  netcheck policy --partition gpu --nodes 16 --spec 400Gbps");
  CLI::Option* config =
      policy->add_option("--config", question.config, "the site's configuration")->capture_default_str();
  policy->add_option("--spec", question.spec, "a request, as in --netcheck=SPEC");
  policy->add_option("--partition", question.partition, "the job's, for the rules");
  policy->add_option("--account", question.account, "the job's");
  policy->add_option("--nodes", question.nodes, "how many it has")->check(CLI::Range(1, 1'000'000));
  policy->add_option("--gpu", question.gpu, "the model of its first node's GPUs; \"\" where it has none");
  policy->add_option("--hardware", question.hardware, "its first node's class of hardware");
  policy->add_flag("--json", question.json, "for programs");
  policy->add_flag("--submission", question.submission)->group("");
  policy->callback([&, config] {
    question.must_exist = config->count() > 0;
    chosen = [&] { return netcheck::print_policy(question); };
  });
}

void add_doctor(CLI::App& app, Arguments& arguments, std::function<int()>& chosen) {
  netcheck::doctor::Order& order = arguments.doctor;
  order.config = kConfig;
  CLI::App* doctor = app.add_subcommand(
      "doctor",
      "what on this node is in the way of a check, line by line, and what to do; changes nothing\n"
      "Exit code 0: nothing is; 1: something is; 2: wrong use; 3: something could not be looked at (as root "
      "all "
      "of it can)\n"
      "Example:  netcheck doctor --peer n2      and on n2:  netcheck doctor --listen --peer n1");
  CLI::Option* config =
      doctor->add_option("--config", order.config, "the site's configuration")->capture_default_str();
  CLI::Option* peer = doctor->add_option(
      "--peer", order.peer,
      "another compute node: whether it is in reach, and, where its doctor listens, whether "
      "a check's rendezvous with it works");
  doctor->add_flag("--listen", order.listen, "wait a minute for the peer's doctor, rather than go there")
      ->needs(peer);
  doctor->add_option("--role", order.role, "what this node is taken for, rather than found out")
      ->check(CLI::IsMember({"compute", "login", "controller"}));
  doctor->add_flag("--settings", order.settings, "every setting in effect as well, and where it comes from");
  doctor->add_flag("--json", order.json, "for programs; has the settings");
  doctor->callback([&, config] {
    order.must_exist = config->count() > 0;
    chosen = [&] {
      order.program = own_path();
      order.module_directories = module_directories(order.program);
      return netcheck::doctor::examine(order);
    };
  });
}

void add_topo(CLI::App& app, Arguments& arguments, std::function<int()>& chosen) {
  netcheck::TopoQuestion& question = arguments.topo;
  question.config = kConfig;
  CLI::App* topo =
      app.add_subcommand("topo",
                         "what this node is made of (sockets, switches, GPUs, NICs), what it could reach, "
                         "and what is wrong with it\n"
                         "Example:  netcheck topo      of a recording:  netcheck topo --xml n3.xml");
  CLI::Option* xml =
      topo->add_option("--xml", question.xml,
                       "a recording instead: hwloc's XML (lstopo), NCCL's topology XML, or a file of --save");
  topo->add_option("--fsroot", question.fsroot,
                   "a folder with a node's /sys and /proc instead (hwloc-gather-topology)")
      ->excludes(xml);
  topo->add_option(
      "--nccl", question.nccl,
      "NCCL's topology XML of this machine: what is near to what is as it says (clouds ship one)");
  topo->add_option("--gpus", question.gpus,
                   "of these GPUs alone, like 0-3,6; without it those of SLURM_JOB_GPUS, or all");
  topo->add_option("--include", question.include, "globs: exactly these ports are fabric ports");
  topo->add_option("--exclude", question.exclude, "globs: these ports are no fabric ports");
  CLI::Option* config = topo->add_option("--config", question.config,
                                         "the site's configuration, for both where neither is given")
                            ->capture_default_str();
  topo->add_option("--save", question.save, "record the machine in this file, for replay and comparison");
  topo->add_option("--svg", question.svg, "draw it into this file");
  topo->add_option("--compare", question.compare,
                   "what two recordings differ in, by port and link; exit code 1 where they do")
      ->expected(2)
      ->excludes(xml);
  topo->add_flag("--json", question.json, "for programs");
  topo->callback([&, config] {
    question.must_exist = config->count() > 0;
    chosen = [&] { return netcheck::show_topology(question); };
  });
}

void add_replay(CLI::App& app, Arguments& arguments, std::function<int()>& chosen) {
  CLI::App* replay = app.add_subcommand(
      "replay",
      "judges the samples of a leader's record again; exits as a check does: 0 pass, 1 fail, "
      "3 inconclusive\n"
      "Example:  netcheck replay /run/netcheck/records/mycluster-17-0.json");
  replay->add_option("record", arguments.record, "a file of /run/netcheck/records")->required();
  replay->add_option(
      "--config", arguments.replay_config,
      "a site's configuration: what it would have made of them, rather than what was asked then");
  replay->callback(
      [&] { chosen = [&] { return netcheck::replay(arguments.record, arguments.replay_config); }; });
}

// CLI11 would say only that a subcommand is required.
std::string unknown_word(const CLI::App& app, int argc, char** argv) {
  const std::string word = argc > 1 ? argv[1] : "";
  if (word.empty()) return {};
  if (word.front() == '-')
    return app.get_option_no_throw(word) == nullptr
               ? fmt::format("there is no option '{}' before a subcommand", netcheck::printable(word, 40))
               : "";
  std::string known;
  for (const CLI::App* subcommand : app.get_subcommands({})) {
    if (subcommand->get_name() == word) return {};
    if (!subcommand->get_group().empty()) known += (known.empty() ? "" : ", ") + subcommand->get_name();
  }
  return fmt::format("there is no subcommand '{}', only {}", netcheck::printable(word, 40), known);
}

// Wrong use of the subcommand that the first word names, or of the program.
int usage(const CLI::App& app, int argc, char** argv, const std::string& reason) {
  std::string name = "netcheck";
  for (const CLI::App* subcommand : app.get_subcommands({}))
    if (argc > 1 && subcommand->get_name() == argv[1] && !subcommand->get_group().empty())
      name += " " + subcommand->get_name();
  fmt::print(stderr, "{0}: {1} (try: {0} --help)\n", name, netcheck::printable(reason, 400));
  return static_cast<int>(ExitCode::usage);
}

int run(int argc, char** argv) {
  CLI::App app(kAbout);
  app.name("netcheck");
  app.set_version_flag("--version", std::string("netcheck ") + NETCHECK_VERSION);
  app.require_subcommand(1);
  Arguments arguments;
  std::function<int()> chosen;
  add_prolog(app, arguments, chosen);
  add_policy(app, arguments, chosen);
  add_doctor(app, arguments, chosen);
  add_topo(app, arguments, chosen);
  add_replay(app, arguments, chosen);
  add_internal(app, arguments, chosen);
  app.footer(kFooter);  // after the subcommands, which would take it over
  if (const std::string unknown = unknown_word(app, argc, argv); !unknown.empty())
    return usage(app, argc, argv, unknown);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return 0;
  } catch (const CLI::CallForVersion& version) {
    fmt::print("{}\n", version.what());
    return 0;
  } catch (const CLI::ParseError& error) {
    // CLI11 tells what is missing before what is not known: of `replay --bogus` that a record is.
    const std::vector<std::string> unknown = app.remaining(true);
    return usage(app, argc, argv, unknown.empty() ? error.what() : CLI::ExtrasError(unknown).what());
  }
  return chosen();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: netcheck: %s\n", error.what());
  } catch (...) {
    std::fprintf(stderr, "error: netcheck: unknown exception\n");
  }
  return static_cast<int>(ExitCode::inconclusive);
}
