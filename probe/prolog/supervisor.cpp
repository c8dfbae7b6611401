// The flow of one check from the outside. As root; ends within the check's deadline plus 2 s, whatever the
// probe does.
//
//   job → kill switch → policy → is this job to be checked? (mode, allow, shared, min_walltime, min_interval,
//   settle) → checked already? → can this node check at all? (nodes, lock, remains, account, modules,
//   listener) → probe → outcome → record and notice → the leader annotates
#include "prolog/supervisor.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <utility>

#include "policy/when.h"
#include "prolog/act.h"
#include "prolog/circumstances.h"
#include "prolog/folder.h"
#include "prolog/guard.h"
#include "prolog/listener.h"
#include "prolog/outcome.h"
#include "prolog/passes.h"
#include "prolog/probe_run.h"
#include "prolog/record.h"
#include "prolog/syslog.h"
#include "system/loop.h"

namespace netcheck::prolog {
namespace {

constexpr std::size_t kMaxConfigBytes = 1u << 20;  // with an exception for every node of a large cluster
// Kept back from the check's time for what follows the probe: two calls to Slurm take 100 ms on an idle
// controller. Short checks keep back an eighth.
constexpr Ns kAfterwards = std::chrono::milliseconds(500);
constexpr Ns kActPatience = std::chrono::seconds(2);
// The promise is deadline + 2 s; half a second is for the record.
constexpr Ns kOverrun = std::chrono::milliseconds(1'500);
// A cache (sssd, nscd) answers in milliseconds, a directory across the network within a second; and the other
// nodes wait 3 s for this one.
constexpr Ns kAccountPatience = std::chrono::seconds(2);
// Of the check's time, for the one question to slurmctld before it.
constexpr Ns kAskPatience = std::chrono::seconds(1);
constexpr std::size_t kMaxSaidAloud = 20;  // of the probe's lines into slurmd's log; the record has them all
constexpr std::size_t kMaxDeclined = 160;  // bytes of a reason that the leader repeats in its line

class Log {
 public:
  explicit Log(std::string syslog) : syslog_(std::move(syslog)) {}
  void name(std::uint32_t job) { prefix_ = fmt::format("job {}: ", job); }
  void info(const std::string& text) const { write("", text); }
  void error(const std::string& text) const { write("error: ", text); }
  static void line(const std::string& text) {
    // One write, so that lines of two processes do not mix; nobody to tell when it fails.
    const std::string whole = text + "\n";
    static_cast<void>(!::write(STDERR_FILENO, whole.data(), whole.size()));
  }

 private:
  void write(const char* kind, const std::string& text) const {
    const std::string clean = printable(text, 1'024);
    if (!syslog_.empty() && write_syslog(fmt::format("{}{}{}", kind, prefix_, clean), syslog_)) return;
    line(fmt::format("{}netcheck: {}{}", kind, prefix_, clean));
  }
  std::string syslog_, prefix_;
};

std::string kill_switch_of(const std::string& config) {
  return std::filesystem::path(config).parent_path() / kKillSwitch;
}

Result<Site> read_site(const std::string& config) {
  auto text = read_trusted(config, kMaxConfigBytes, "");
  if (!text) return tl::unexpected(text.error());
  return parse_config(*text, config);
}

// The first of the places that has the module; without any the last, for the fabric to name.
std::string module_directory_of(const Invocation& invocation, const Policy& policy) {
  if (!policy.module_directory.empty()) return policy.module_directory;
  std::string directory;
  for (const std::string& place : invocation.module_directories) {
    directory = place;
    std::error_code error;
    if (std::filesystem::exists(place + "/netcheck-fabric-" + policy.fabric + ".so", error)) break;
  }
  return directory;
}

// A missing module is for the fabric to report, with its name; one that others can change is not loaded.
Result<void> check_modules(const Policy& policy) {
  const std::string module = policy.module_directory + "/netcheck-fabric-" + policy.fabric + ".so";
  std::error_code error;
  if (!std::filesystem::exists(module, error)) return {};
  if (auto folder = check_trusted(policy.module_directory); !folder) return folder;
  return check_trusted(module);
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

class Check {
 public:
  explicit Check(const Invocation& invocation) : invocation_(invocation) {
    record_.unix_time = std::time(nullptr);
    record_.request = printable(invocation.request.value_or(""));
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
    if (leads() && !why_not) decide_conduct();
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

  Outcome start_failed(const std::string& reason) {
    return inconclusive(assignment(), judge::Phase::start, reason, system::now() - start_);
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
      notes_.push_back(wish.text);
    for (const std::string& line : without_effect(policy()))
      record_.remarks.push_back(line);  // the site's, who asks with `netcheck policy`
    assignment().agreement = agreement(policy());
    policy().module_directory = module_directory_of(invocation_, policy());
    const Ns kept_back = std::min(kAfterwards, policy().time / 8);
    assignment().deadline = start_ + policy().time - kept_back;
    assignment().rendezvous_deadline = std::min(start_ + policy().rendezvous, assignment().deadline);
    return {};
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
    record_.judged = none.judged;
    const auto first = begin_record(record_);
    if (first && !*first) return false;
    // Where nothing can be written: better a check too many than none. No earlier run's notice stays in any
    // case.
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
    const Conduct conduct = conduct_of_first(known_, record_.job, policy(), deadline, unknown);
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
    // Before the lock: the child that asks for the account would hold it too.
    auto account = probe_account(policy(), record_.job.uid,
                                 std::min(system::now() + kAccountPatience, assignment().deadline));
    if (!account) return describe(account.error());
    account_ = std::move(*account);
    if (auto busy = take_lock()) return busy;
    if (auto modules = check_modules(policy()); !modules) return describe(modules.error());
    if (!leads()) return std::nullopt;
    auto listener = listen_for(run_id().job, policy());
    if (!listener) return describe(listener.error());
    listener_ = std::move(*listener);
    return std::nullopt;
  }

  std::optional<std::string> take_lock() {
    auto folder = Folder::open(policy().run_directory, 0755);
    if (!folder) {
      remark("no lock: " + describe(folder.error()));
      return std::nullopt;
    }
    folder_ = std::move(*folder);
    auto lock = try_lock(*folder_, run_id().job);
    if (!lock) {
      remark("no lock: " + describe(lock.error()));
      return std::nullopt;
    }
    if (!lock->taken)
      return fmt::format("another check is running on {}{}", own_name(),
                         lock->holder ? fmt::format(" (job {})", *lock->holder) : "");
    lock_ = std::move(lock->file);
    if (const Remains remains = living_remains(*folder_); !remains.empty())
      return fmt::format("process {} of an earlier check on {} cannot be ended", remains.front().first,
                         own_name());
    return std::nullopt;
  }

  Outcome measure() {
    const auto end = probe(true);
    if (!end) return start_failed(describe(end.error()));
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
    lock_.reset();  // the node is quiet again: the next job's check need not wait for our paperwork
    for (const std::string& line : end->said)
      record_.remarks.push_back("probe: " + line);
    return end;
  }

  void keep_remains(const Remains& remains) {
    if (remains.empty()) return;
    for (const auto& [pid, start_time] : remains)
      remark(fmt::format("process {} cannot be ended: no checks on {} while it lives", pid, own_name()));
    if (!folder_) return;
    if (auto kept = remember(*folder_, remains); !kept) remark(describe(kept.error()));
  }

  // Record and notice first: they are there whatever the controller does. Then, on the leader, the comment.
  int conclude(Outcome outcome) {
    outcome.line = with_notes(std::move(outcome.line), notes_);
    lock_.reset();
    listener_.reset();
    log_.info(outcome.line);
    // Who did not ask hears nothing of a check that did not take place.
    const bool quiet = quiet_ || (!asked() && !leads() && outcome.verdict == "inconclusive");
    if (auto kept = remember_pass(outcome.judged, policy(), assignment().roster.nodes); !kept)
      remark("min_interval: " + describe(kept.error()));
    record_.verdict = outcome.verdict;
    record_.line = outcome.line;
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
    else if (auto noticed = write_notice(outcome); !noticed)
      remark("no notice: " + describe(noticed.error()));
    if (!annotates) return 0;
    act_on(outcome);
    keep_record();
    if (outcome.line == record_.line) return 0;
    outcome.line = record_.line;  // the user is told what was done, and what had been
    if (auto noticed = write_notice(outcome); !noticed) remark("no notice: " + describe(noticed.error()));
    return 0;
  }

  void keep_record() {
    record_.took = system::now() - start_;
    if (auto written = write_record(record_); !written && !record_failed_) {
      record_failed_ = true;  // said once; the verdict is shown all the same
      remark("no record: " + describe(written.error()));
    }
  }

  Result<void> write_notice(const Outcome& outcome) {
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
    Controller controller(slurm_conf(), slurm_path());
    const Acted acted =
        act(case_of(record_, outcome, {kill_switch_of(invocation_.config), policy().kill_switch}), controller,
            deadline);
    record_.phases["annotate"] = system::now() - began;
    record_.action = name(acted.action);
    record_.action_result = acted.result;
    record_.line = acted.line;
    if (acted.result != "done" && acted.result != kEnded)
      log_.error(fmt::format("{}: {}", record_.action, acted.result));
    for (const std::string& line : acted.said) {
      if (invocation_.syslog.empty()) log_.info(line);
      write_syslog(line);
      record_.remarks.push_back(printable(line, 400));
    }
    if (acted.early && !help_to_start(*acted.early, controller))
      log_.error("no helper could be started: the job waits Slurm's two minutes");
  }

  const Invocation& invocation_;
  Time start_ = system::now();
  Log log_{invocation_.syslog};
  Record record_;
  system::Account account_;
  std::vector<std::string> notes_;  // what the request asked for and the site does not grant
  std::optional<Folder> folder_;
  system::Descriptor lock_, listener_;
  Circumstances known_;
  bool quiet_ = false;  ///< nobody asked, and nothing was measured
  bool record_failed_ = false;
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
