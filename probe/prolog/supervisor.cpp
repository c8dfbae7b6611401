// The flow of one check from the outside. As root; ends within the check's deadline plus 2 s, whatever the
// probe does.
//
//   job → kill switch → policy → is this job to be checked? (mode, allow) → checked already? → can this node
//   check at all? (nodes, account; on the first node the listener, then shared, min_walltime, min_interval,
//   settle; lock, remains, modules) → probe → outcome → record and notice → the leader annotates and acts →
//   spool
//
// What the steps stand on is in premises.h.
#include "prolog/supervisor.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <utility>

#include "policy/when.h"
#include "prolog/act.h"
#include "prolog/circumstances.h"
#include "prolog/listener.h"
#include "prolog/log.h"
#include "prolog/outcome.h"
#include "prolog/passes.h"
#include "prolog/premises.h"
#include "prolog/probe_run.h"
#include "prolog/record.h"
#include "prolog/spool.h"
#include "prolog/syslog.h"
#include "system/loop.h"

namespace netcheck::prolog {
namespace {

// Kept back from the check's time for what follows the probe: two calls to Slurm take 100 ms on an idle
// controller. Short checks keep back an eighth.
constexpr Ns kAfterwards = std::chrono::milliseconds(500);
constexpr Ns kActPatience = std::chrono::seconds(2);
// The promise is deadline + 2 s; half a second is for the record.
constexpr Ns kOverrun = std::chrono::milliseconds(1'500);
// Of the check's time, for the one question to slurmctld before it.
constexpr Ns kAskPatience = std::chrono::seconds(1);
constexpr std::size_t kMaxSaidAloud = 20;  // of the probe's lines into slurmd's log; the record has them all
constexpr std::size_t kMaxDeclined = 160;  // bytes of a reason that the leader repeats in its line

class Check {
 public:
  explicit Check(const Invocation& invocation) : invocation_(invocation) {
    record_.unix_time = std::time(nullptr);
    record_.request = printable(given_spec(invocation.request.value_or("")));
    policy().run_directory = invocation.run_directory;
  }

  int run() {
    auto job = job_from_environment([](const char* name) { return std::getenv(name); });
    if (!job) {
      log_.error(describe(job.error()) + "; the job runs unchecked");
      return 0;
    }
    record_.job = std::move(*job);
    assignment().roster = record_.job.roster;
    log_.name(run_id().job);
    const auto prepared = set_policy();
    announce();
    if (!prepared && !asked()) {
      log_.error(describe(prepared.error()) + "; nothing is checked");
      return 0;
    }
    const auto skip = prepared ? skipped_by_all() : std::nullopt;
    if (skip && !skip->said) return 0;
    if (!first_for_this_run()) return 0;
    for (const std::string& note : notes_)
      remark(note);
    if (!prepared) return conclude(start_failed(describe(prepared.error())));
    if (skip) return conclude(start_failed("not measured: " + skip->reason));
    const auto why_not = prepare();
    record_.phases["start"] = system::now() - start_;
    if (why_not) return conclude(leads() || account_.uid == 0 ? start_failed(*why_not) : decline(*why_not));
    return conclude(measure());
  }

 private:
  session::Assignment& assignment() { return record_.assignment; }
  Policy& policy() { return record_.assignment.policy; }
  const JobRun& run_id() const { return record_.job.roster.run; }
  const std::string& own_name() const { return record_.job.roster.nodes.at(record_.job.roster.self); }
  const std::string& notice_directory() {
    return invocation_.notice_directory ? *invocation_.notice_directory : policy().run_directory;
  }
  bool leads() const { return record_.job.roster.self == 0; }
  bool asked() const { return invocation_.request.has_value(); }
  bool to_be_measured() { return assignment().not_measured.empty(); }

  Outcome start_failed(const std::string& reason) {
    return inconclusive(assignment(), judge::Phase::start, reason, system::now() - start_);
  }
  // Said in the log once, however much of a check such a folder is in the way of.
  void cannot_write(const char* what, const Error& error) {
    const std::string text = fmt::format("{}: {}", what, describe(error));
    if (!std::exchange(cannot_write_, true)) return remark(text);
    record_.remarks.push_back(printable(text, 400));
  }
  void remark(const std::string& text) {
    log_.error(text);
    record_.remarks.push_back(printable(text, 400));
  }

  // The site's file, then the job's request. Until it is read the built-in values stand.
  Result<void> set_policy() {
    const auto site = read_site(invocation_.config);
    if (!site) return tl::unexpected(site.error());
    policy() = site->defaults;
    const auto mine = resolve(*site, kind_of(record_.job));
    if (!mine) return tl::unexpected(mine.error());
    policy() = *mine;
    const auto request = parse_request(invocation_.request.value_or(""));
    if (!request) return tl::unexpected(request.error());
    std::vector<Wish> wishes;
    policy() = apply(*mine, *request, wishes);
    for (const Wish& wish : wishes)
      notes_.push_back(wish.note());
    for (const std::string& line : without_effect(policy()))
      record_.remarks.push_back(line);  // the site's, who asks with `netcheck policy`
    choose_fabric();
    assignment().agreement = agreement(policy());
    policy().module_directory = module_directory_of(policy(), invocation_.module_directories);
    const Ns kept_back = std::min(kAfterwards, policy().time / 8);
    assignment().deadline = start_ + policy().time - kept_back;
    assignment().rendezvous_deadline = std::min(start_ + policy().rendezvous, assignment().deadline);
    return {};
  }

  // By what the job has on this node. Where it differs between nodes the leader says so.
  void choose_fabric() {
    const auto& gpus = record_.job.gpus;
    policy().fabric = fabric_of(policy(), !gpus || !gpus->empty());
    if (policy().fabric != "nccl") return;
    if (!gpus)
      no_gpus_ = describe(gpus.error());
    else if (gpus->empty())
      no_gpus_ = fmt::format("fabric = \"nccl\", and the job has no GPU on {}", own_name());
    else
      assignment().gpus = *gpus;
  }

  // Before anything that can hang but the site's file: whoever waits for us then need not wait for long.
  void announce() {
    if (!invocation_.announce_deadline) return;
    const Ns left = start_ + policy().time - system::now();
    Log::line(announce_deadline(std::chrono::ceil<std::chrono::milliseconds>(left)));
  }

  // Where SPANK and a Prolog script both start a check, the first makes it; the other has nothing to say and
  // leaves record and notice alone. Until there is a verdict both say that there is none: all that is left of
  // a check that was killed.
  bool first_for_this_run() {
    const Outcome none = start_failed("the check has not ended: it is running, or was killed");
    record_.verdict = none.verdict;
    record_.line = none.line;
    record_.time = none.took;
    record_.judged = none.judged;
    const auto begun = begin_record(record_);
    if (begun && begun->whose == Begun::Whose::this_runs) return false;
    if (begun && begun->whose == Begun::Whose::another_nodes) {
      not_ours_ = shared_directory(policy().run_directory, begun->node);
      remark(not_ours_);
      return true;
    }
    // Where nothing can be written: better a check too many than none. No earlier run's notice stays in any
    // case.
    if (!begun) cannot_write("no record of this check, and no line for its user", begun.error());
    if (!write_notice(none)) remove_notice(notice_directory(), run_id().job);
    return true;
  }

  // Why no node of the job checks it, by what all of them know alike.
  std::optional<Skip> skipped_by_all() {
    known_ = known_to_all(record_.job, asked(), policy(), system::now() + kAccountPatience);
    const Conduct conduct = when(policy(), known_, std::nullopt);
    const auto* skip = std::get_if<Skip>(&conduct);
    return skip != nullptr ? std::optional(*skip) : std::nullopt;
  }

  // The rest is the first node's to find out; the others hear of it at the rendezvous.
  void decide_conduct() {
    const Time began = system::now();
    std::vector<std::string> unknown;
    const Time deadline = std::min(began + kAskPatience, assignment().rendezvous_deadline);
    const Conduct conduct = conduct_of_first(known_, record_.job, policy(), controller_, deadline, unknown);
    record_.phases["conduct"] = system::now() - began;
    for (const std::string& what : unknown) {
      log_.info(what);
      record_.remarks.push_back(printable(what, 400));
    }
    if (const auto* skip = std::get_if<Skip>(&conduct)) {
      assignment().not_measured = "not measured: " + skip->reason;
      quiet_ = !skip->said;
    }
    const auto* warn = std::get_if<WarnOnly>(&conduct);
    if (warn == nullptr) return;
    const Policy before = std::exchange(policy(), only_warning(policy(), warn->reason));
    if (before.sources == policy().sources) return;  // nothing would have been done
    notes_.push_back("only a warning: " + warn->reason);
    remark(notes_.back());
  }

  // Everything the probe needs. Returns why there can be no check.
  std::optional<std::string> prepare() {
    if (assignment().roster.nodes.size() < 2) return "one node: no network between nodes to check";
    // Before the lock: a child that asks for something would hold it too.
    auto account = probe_account(policy(), record_.job.uid,
                                 std::min(system::now() + kAccountPatience, assignment().deadline));
    if (!account) return describe(account.error());
    account_ = std::move(*account);
    if (!not_ours_.empty()) return not_ours_;
    if (!no_gpus_.empty()) return no_gpus_;
    if (leads()) {
      auto listener = listen_for(run_id().job, policy());
      if (!listener) return describe(listener.error());
      listener_ = std::move(*listener);  // the others may knock while Slurm is asked
      decide_conduct();
    }
    // What is not to be measured needs no quiet node; the others are told of it all the same.
    if (!to_be_measured()) return std::nullopt;
    claim_ = claim_node(policy().run_directory, run_id().job, own_name());
    if (!claim_.busy.empty()) return claim_.busy;
    if (claim_.no_lock) cannot_write("no lock", *claim_.no_lock);
    if (auto modules = check_modules(policy()); !modules) return describe(modules.error());
    return std::nullopt;
  }

  Outcome measure() {
    const auto end = probe(to_be_measured());
    if (!end) return start_failed(to_be_measured() ? describe(end.error()) : assignment().not_measured);
    return outcome_of(*end, assignment(), system::now() - start_);
  }

  // A follower that cannot take part lets its leader know why: it would be missing otherwise. The line is the
  // leader's where it answers. Whatever else runs as the account here, another job's check, is left alone.
  Outcome decline(const std::string& why) {
    assignment().declined = printable(why, kMaxDeclined);
    const auto end = probe(false);
    if (end) {
      Outcome outcome = outcome_of(*end, assignment(), system::now() - start_);
      if (outcome.report && !outcome.report->line.empty() && outcome.verdict == "inconclusive")
        return outcome;
    }
    return start_failed(why);
  }

  Result<ProbeEnd> probe(bool alone) {
    set_limits(assignment().roster.nodes.size());
    system::become_subreaper();
    const Time began = system::now();
    ProbeOrder order;
    order.program = invocation_.program;
    order.account = account_;
    order.assignment = assignment();
    order.listener = std::move(listener_);
    order.alone = alone;
    order.say = [this, said = std::size_t{0}](const std::string& line) mutable {
      if (said++ < kMaxSaidAloud) log_.info("probe: " + line);
    };
    auto end = run_probe(std::move(order));
    record_.phases["probe"] = system::now() - began;
    if (!end) return end;
    keep_remains(end->remains);
    claim_.lock.reset();  // the node is quiet again: the next job's check need not wait for our paperwork
    for (const std::string& line : end->said)
      record_.remarks.push_back("probe: " + line);
    return end;
  }

  void keep_remains(const Remains& remains) {
    if (remains.empty()) return;
    for (const auto& [pid, start_time] : remains)
      remark(fmt::format("process {} cannot be ended: no checks on {} while it lives", pid, own_name()));
    if (!claim_.folder) return;
    if (auto kept = remember(*claim_.folder, remains); !kept) remark(describe(kept.error()));
  }

  // Record and notice first: they are there whatever the controller does. Then, on the leader, the comment,
  // and what follows; then both once more, since the user is told what was done, and what had been.
  int conclude(Outcome outcome) {
    outcome.line = with_notes(std::move(outcome.line), notes_);
    claim_.lock.reset();
    listener_.reset();
    log_.info(outcome.line);
    // Who did not ask hears nothing of a check that did not take place.
    const bool quiet = quiet_ || (!asked() && !leads() && outcome.verdict == "inconclusive");
    if (auto kept = remember_pass(outcome.judged, policy(), assignment().roster.nodes); !kept)
      remark("min_interval: " + describe(kept.error()));
    record_.verdict = outcome.verdict;
    record_.line = outcome.line;
    record_.time = outcome.took;
    record_.judged = outcome.judged;
    record_.report = std::move(outcome.report);
    const bool annotates = leads() && policy().annotate && !quiet;
    record_.action = annotates ? "annotate" : "none";
    record_.action_result = annotates ? "begun"
                            : quiet   ? "nobody asked"
                            : leads() ? "the site has switched it off"
                                      : "the job's first node annotates";
    keep_record();
    if (quiet)
      remove_notice(notice_directory(), run_id().job);
    else
      tell(outcome);
    if (annotates) {
      act_on(outcome);
      keep_record();
      if (std::exchange(outcome.line, record_.line) != record_.line) tell(outcome);
    }
    if (!quiet && !policy().spool_dir.empty()) spool();
    return 0;
  }

  void keep_record() {
    record_.took = system::now() - start_;
    if (!not_ours_.empty()) return;
    if (auto written = write_record(record_); !written) cannot_write("no record", written.error());
  }

  void tell(const Outcome& outcome) {
    if (auto noticed = write_notice(outcome); !noticed) cannot_write("no line for the user", noticed.error());
  }

  Result<void> write_notice(const Outcome& outcome) {
    if (!not_ours_.empty() && notice_directory() == policy().run_directory) return {};
    Notice notice;
    notice.run = run_id();
    const auto boot = read_trusted("/proc/sys/kernel/random/boot_id", 64, "");
    notice.boot_id = boot ? boot->substr(0, boot->find('\n')) : "";
    notice.leader = leads();
    notice.line = outcome.line;
    notice.environment = environment_of(outcome, assignment(), record_path(policy().run_directory, run_id()));
    return write_notice_file(notice_directory(), notice);
  }

  void act_on(const Outcome& outcome) {
    const Time began = system::now();
    const Time deadline = std::min(began + kActPatience, start_ + policy().time + kOverrun);
    const Acted acted =
        act(case_of(record_, outcome, {kill_switch_of(invocation_.config), policy().kill_switch},
                    topology_file()),
            controller_, deadline);
    record_.phases["annotate"] = system::now() - began;
    record_.action = name(acted.action);
    record_.action_result = acted.result;
    record_.line = acted.line;
    // Each once in the syslog, and, where the plugin relays it, in slurmd's log.
    for (const std::string& line : acted.said) {
      if (invocation_.syslog.empty()) log_.info(line);
      write_syslog(line);
      record_.remarks.push_back(printable(line, 400));
    }
    const bool told = std::ranges::any_of(
        acted.said, [&](const std::string& line) { return line.find(acted.result) != std::string::npos; });
    if (!told && acted.result != "done" && acted.result != kEnded)
      log_.error(fmt::format("{}: {}", record_.action, acted.result));
    if (acted.early && !help_to_start(*acted.early, controller_))
      log_.error("no helper could be started: the job waits Slurm's two minutes");
  }

  // By a process that nobody waits for: a filesystem of the site's may be slow, or hang.
  void spool() {
    if (!keep_for_good(record_)) log_.error("spool_dir: no process could be started to write there");
  }

  const Invocation& invocation_;
  Time start_ = system::now();
  Log log_{invocation_.syslog};
  Record record_;
  system::Account account_;
  std::vector<std::string> notes_;  // what the request asked for and the site does not grant
  Claim claim_;
  system::Descriptor listener_;
  Circumstances known_;
  Controller controller_{slurm_conf(), slurm_path()};  // its calls are those of the whole check
  bool quiet_ = false;                                 ///< nobody asked, and nothing was measured
  bool cannot_write_ = false;
  std::string no_gpus_;   // why there are none to measure over; "" where there are, or none are needed
  std::string not_ours_;  // why the run directory is not this node's: then nothing is written there
};

// SIGTERM is read in the probe's loop; what comes after it is short and bounded, and not to be cut.
void block_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP})
    ::sigaddset(&signals, signal);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);  // NOLINT: a standard macro
}

}  // namespace

int supervise(const Invocation& invocation) {
  if (std::getenv("SLURM_JOB_ID") == nullptr) {
    Log("").error(
        "prolog: no job here: SLURM_JOB_ID is not set (this is called by Slurm's prolog, not by hand)");
    return static_cast<int>(ExitCode::usage);
  }
  if (exists(kill_switch_of(invocation.config))) return 0;
  block_signals();
  ::umask(022);
  return Check(invocation).run();
}

}  // namespace netcheck::prolog
