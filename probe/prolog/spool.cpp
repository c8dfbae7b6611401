#include "prolog/spool.h"

#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <thread>

#include "prolog/early_start.h"
#include "prolog/folder.h"
#include "prolog/syslog.h"
#include "system/loop.h"

namespace netcheck::prolog {
namespace {

constexpr const char* kSpoolLock = "spool";
constexpr mode_t kSpooledMode = 0600;
constexpr Ns kTurnPatience = kSpoolPatience / 2;
constexpr auto kTurnPause = std::chrono::milliseconds(50);

// In the run directory, which does not hang. Where no lock can be made, the record is written without.
Result<system::Descriptor> take_turn(const Policy& policy) {
  const auto folder = Folder::open(policy.run_directory, 0755);
  if (!folder) return system::Descriptor();
  auto file = folder->open_file(kSpoolLock);
  if (!file) return system::Descriptor();
  const Time deadline = system::now() + kTurnPatience;
  while (::flock(file->get(), LOCK_EX | LOCK_NB) != 0) {
    if (system::now() >= deadline)
      return fail(
          "write", policy.spool_dir,
          fmt::format("the record before has been on its way there for {}", format_duration(kTurnPatience)),
          "see whether that filesystem hangs");
    std::this_thread::sleep_for(kTurnPause);
  }
  return std::move(*file);
}

}  // namespace

std::string spooled_name(const Record& record) {
  const Roster& roster = record.job.roster;
  const std::string name = record_name(roster.run);
  return fmt::format("{}-{}.json", name.substr(0, name.rfind('.')), roster.nodes.at(roster.self));
}

Result<void> write_to_spool(const Record& record) {
  const auto folder = Folder::existing(record.assignment.policy.spool_dir);
  if (!folder) return tl::unexpected(folder.error());
  return folder->write(spooled_name(record), text_of(record), kSpooledMode, {::geteuid(), ::getegid()});
}

bool keep_for_good(const Record& record) {
  const auto body = [&] {
    const auto turn = take_turn(record.assignment.policy);
    const auto written = turn ? write_to_spool(record) : tl::unexpected(turn.error());
    if (!written)
      write_syslog(fmt::format("job {}: spool_dir: the record is not kept: {}", record.job.roster.run.job,
                               describe(written.error())));
  };
  return detach(body, kSpoolPatience);
}

}  // namespace netcheck::prolog
