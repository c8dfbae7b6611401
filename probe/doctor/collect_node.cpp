// The node itself: files, processes, accounts, ports, the module, credentials. See collect.h.
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "contract/wire.h"
#include "doctor/collect.h"
#include "fabric/loading.h"
#include "peers/credential.h"
#include "policy/idle.h"
#include "prolog/folder.h"
#include "prolog/supervisor.h"
#include "system/loop.h"
#include "system/process.h"

namespace netcheck::doctor {

namespace {

constexpr std::size_t kMaxFile = 1U << 20;  // as prolog/premises.cpp: an exception for every node
constexpr std::size_t kMaxShell = 1'024, kMaxAccount = 256, kMaxSame = 64;
constexpr std::uint32_t kUnprivilegedStart = 1'024;  // where the kernel has no sysctl for it (before 4.11)

std::string reason_of(int error) {
  return std::strerror(error);
}

}  // namespace

FileFacts look_at(const std::string& path, bool follow) {
  FileFacts facts{.path = path};
  struct stat status {};
  const int rc = follow ? ::stat(path.c_str(), &status) : ::lstat(path.c_str(), &status);
  facts.there = rc == 0;
  if (rc != 0 && errno != ENOENT) facts.why_not = reason_of(errno);
  if (rc != 0) return facts;
  facts.folder = S_ISDIR(status.st_mode);
  facts.regular = S_ISREG(status.st_mode);
  facts.owner = status.st_uid;
  facts.mode = status.st_mode;
  return facts;
}

std::optional<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string text(kMaxFile, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return std::nullopt;
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

std::vector<Running> running_processes() {
  std::vector<Running> all;
  std::error_code error, unreadable;  // of others' processes: only root may read that
  const auto own_network = std::filesystem::read_symlink("/proc/self/ns/net", unreadable);
  for (std::filesystem::directory_iterator at("/proc", error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const FileFacts folder = look_at(at->path().string());
    auto command = read_file(at->path().string() + "/comm");
    if (!folder.there || !command) continue;
    if (command->ends_with('\n')) command->pop_back();
    const auto network = std::filesystem::read_symlink(at->path() / "ns/net", unreadable);
    all.push_back({.pid = static_cast<pid_t>(std::stol(name)),
                   .uid = folder.owner,
                   .command = std::move(*command),
                   .elsewhere = !unreadable && network != own_network});
  }
  return all;
}

ConfigFacts look_at_config(const std::string& path, std::optional<Site>& site) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  ConfigFacts facts{.file = look_at(path), .folder = look_at(folder)};
  const auto text = prolog::read_trusted(path, kMaxFile, "");
  const bool forbidden =
      !facts.file.why_not.empty() || (facts.file.there && ::access(path.c_str(), R_OK) != 0);
  if (text) {
    auto read = parse_config(*text, path);
    if (read)
      site = std::move(*read);
    else
      facts.wrong = read.error();
  } else if (forbidden) {
    facts.unreadable = text.error();
    // Without it nobody is told at submission what the site does not grant.
    facts.unreadable->remedy = facts.file.there ? "chmod a+r " + path : "chmod a+rx " + folder;
    facts.unreadable->remedy +=
        ", so that users are told at submission what is not granted; or run this as root";
  } else {
    facts.wrong = text.error();
  }
  std::vector<std::string> switches{folder + "/" + prolog::kKillSwitch};
  if (site && !site->defaults.kill_switch.empty()) switches.push_back(site->defaults.kill_switch);
  for (const std::string& file : switches)
    if (look_at(file, false).there) facts.switches.push_back(file);
  if (!site) return facts;
  facts.without_effect = without_effect(*site);
  if (std::string idle = action_without_threshold(*site); !idle.empty())
    facts.without_effect.push_back(std::move(idle));
  const std::string switch_folder = std::filesystem::path(site->defaults.kill_switch).parent_path().string();
  if (!switch_folder.empty() && !look_at(switch_folder).folder)
    facts.without_effect.push_back(
        fmt::format("kill_switch = \"{}\": there is no folder {} on this node, so the "
                    "file cannot be made; make or mount it, or name another",
                    site->defaults.kill_switch, switch_folder));
  return facts;
}

Result<Json> ask_names(const std::vector<std::string>& users, const std::vector<std::string>& groups) {
  Json unknown{{"users", Json::array()}, {"groups", Json::array()}};
  for (const std::string& user : users) {
    errno = 0;
    // By getpwnam(3) these all mean that there is none; anything else, that nobody knows.
    if (::getpwnam(user.c_str()) == nullptr && (errno == 0 || errno == ENOENT || errno == ESRCH))
      unknown["users"].push_back(user);
  }
  for (const std::string& group : groups) {
    errno = 0;
    if (::getgrnam(group.c_str()) == nullptr && (errno == 0 || errno == ENOENT || errno == ESRCH))
      unknown["groups"].push_back(group);
  }
  return unknown;
}

FolderFacts look_at_folder(const std::string& what, const std::string& path) {
  FolderFacts facts{.what = what, .file = look_at(path, false), .free_bytes = std::nullopt};
  struct statvfs room {};
  if (facts.file.there && ::statvfs(path.c_str(), &room) == 0)
    facts.free_bytes = std::uint64_t{room.f_bavail} * room.f_frsize;
  return facts;
}

PortFacts look_at_ports(const Policy& policy) {
  PortFacts facts{.first = policy.first_port, .last = policy.last_port};
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"})
    for (const std::uint16_t port : listening_ports(read_file(table).value_or("")))
      facts.taken.push_back(port);
  std::ifstream start("/proc/sys/net/ipv4/ip_unprivileged_port_start");
  if (!(start >> facts.least_unprivileged)) facts.least_unprivileged = kUnprivilegedStart;
  return facts;
}

Result<Json> ask_account(const std::string& name) {
  const passwd* entry = ::getpwnam(name.c_str());
  if (entry == nullptr) return Json{{"found", false}};
  Json answer{{"found", true}, {"uid", entry->pw_uid}, {"shell", printable(entry->pw_shell, kMaxShell)}};
  const uid_t uid = entry->pw_uid;
  // Only the node's own file: a directory service may have a hundred thousand, and none of them is a
  // daemon's.
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/etc/passwd", "re"), &std::fclose);
  Json same = Json::array();
  while (const passwd* other = file ? ::fgetpwent(file.get()) : nullptr)
    if (other->pw_uid == uid && name != other->pw_name && same.size() < kMaxSame)
      same.push_back(printable(other->pw_name, kMaxAccount));
  answer["same"] = same;
  return answer;
}

AccountFacts account_facts(const std::string& name, const Result<Json>& answer) {
  AccountFacts facts{.name = name};
  if (!answer) {
    facts.missing = answer.error();
    facts.unknown = true;
    return facts;
  }
  const Fields fields(*answer, "account");
  if (!fields.flag("found")) {
    facts.missing = Error{"find the account", name, "no such account", ""};
    return facts;
  }
  facts.uid = fields.u32("uid");
  facts.shell = fields.text("shell", kMaxShell);
  for (const Json& other : fields.array("same", kMaxSame))
    facts.same_uid.push_back(other.get<std::string>());
  for (const Running& process : running_processes())
    if (process.uid == facts.uid && process.command != "netcheck")  // of a check, or of this doctor
      facts.processes.push_back(fmt::format("{} {}", process.pid, printable(process.command, kMaxAccount)));
  return facts;
}

Result<void> become(const std::string& account) {
  if (::geteuid() != 0) return {};
  const passwd* entry = ::getpwnam(account.c_str());
  if (entry == nullptr) return fail("become", account, "no such account");
  const gid_t group = entry->pw_gid;
  // UCX reads a ucx.conf from the working directory, which may be anybody's.
  if (::chdir("/") != 0 || ::setgroups(1, &group) != 0 || ::setresgid(group, group, group) != 0 ||
      ::setresuid(entry->pw_uid, entry->pw_uid, entry->pw_uid) != 0)
    return fail("become", account, reason_of(errno));
  return {};
}

Result<Json> load_module_as(const std::string& account, const std::string& name, const std::string& folder) {
  if (auto done = become(account); !done) return tl::unexpected(done.error());
  static fabric::Sink nobody = [](const fabric::Event&) {};  // must outlive the module's threads
  static fabric::Pulse pulse;
  auto module = fabric::load_module(name, folder, {&nobody, &pulse, {}});
  if (!module) return tl::unexpected(module.error());
  static_cast<void>(module->release());  // fabrics leave threads behind; this process ends anyhow
  return Json(::geteuid());
}

peers::CredentialKind credential_kind(const Policy& policy) {
  return {
      .by_key = policy.credential == "key", .key_file = policy.key_file, .munge_socket = policy.munge_socket};
}

Result<Json> seal_and_open_as(const std::string& account, const Policy& policy) {
  if (auto done = become(account); !done) return tl::unexpected(done.error());
  auto credential = peers::make_credential(credential_kind(policy));
  if (!credential) return tl::unexpected(credential.error());
  const Time began = system::now();
  const Bytes payload(32, std::byte{7});
  const auto token = (*credential)->seal(payload);
  if (!token) return tl::unexpected(token.error());
  const auto opened = (*credential)->open(*token);
  if (!opened) return tl::unexpected(opened.error());
  if (opened->payload != payload || (policy.credential != "key" && opened->uid != ::geteuid()))
    return fail("open", "a credential", "it is not what was sealed");
  return Json{{"uid", ::geteuid()}, {"took", (system::now() - began).count()}};
}

}  // namespace netcheck::doctor
