// The account database. It may be a directory service behind sssd or LDAP, and the C library's calls have no
// deadline: so they are made in a child, which can be killed.
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "system/loop.h"
#include "system/process.h"

namespace netcheck::system {

namespace {

struct Answer {
  bool found = false;
  int error = 0;
  uid_t uid = 0;
  gid_t gid = 0;
};

Answer look_up(const std::string& name) {
  constexpr std::size_t kBuffer =
      16'384;  // what sysconf(_SC_GETPW_R_SIZE_MAX) suggests, times 16 for directory services
  std::vector<char> buffer(kBuffer);
  passwd entry{};
  passwd* found = nullptr;
  Answer answer;
  answer.error = ::getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  answer.found = found != nullptr;
  answer.uid = entry.pw_uid;
  answer.gid = entry.pw_gid;
  return answer;
}

/// One name a line.
std::string look_up_groups(const std::string& user, gid_t gid) {
  constexpr int kMostGroups = 1'024;
  constexpr std::size_t kBuffer = 1U << 20;  // a group of ten thousand members fits
  std::vector<gid_t> ids(kMostGroups);
  int count = kMostGroups;
  if (::getgrouplist(user.c_str(), gid, ids.data(), &count) < 0) count = kMostGroups;
  ids.resize(static_cast<std::size_t>(std::clamp(count, 0, kMostGroups)));
  std::vector<char> buffer(kBuffer);
  std::string names;
  for (const gid_t id : ids) {
    group entry{};
    group* found = nullptr;
    if (::getgrgid_r(id, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr)
      names += std::string(found->gr_name) + "\n";
  }
  return names;
}

}  // namespace

std::vector<std::string> find_groups(const std::string& user, gid_t gid, Time deadline) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return {};
  const Descriptor read_end(ends[0]);
  Descriptor write_end(ends[1]);
  auto child = Process::fork([&] {
    const std::string names = look_up_groups(user, gid);  // what is beyond a pipe's 64 KiB is left out
    return ::write(write_end.get(), names.data(), names.size()) >= 0 ? 0 : 1;
  });
  write_end.reset();
  if (!child || child->wait(deadline) != 0) return {};
  std::vector<std::string> names(1);
  std::array<char, 4'096> chunk{};
  for (ssize_t got = 0; (got = ::read(read_end.get(), chunk.data(), chunk.size())) > 0;)
    for (const char c : std::string_view(chunk.data(), static_cast<std::size_t>(got))) {
      if (c == '\n')
        names.emplace_back();
      else
        names.back() += c;
    }
  names.pop_back();
  return names;
}

Result<Account> find_account(const std::string& name, Time deadline) {
  constexpr const char* kAttempted = "find the account";
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail(kAttempted, name, std::strerror(errno));
  const Descriptor read_end(ends[0]), write_end(ends[1]);
  auto child = Process::fork([&] {
    const Answer answer = look_up(name);
    return ::write(write_end.get(), &answer, sizeof answer) == sizeof answer ? 0 : 1;
  });
  if (!child) return tl::unexpected(child.error());
  const auto status = child->wait(deadline);
  if (!status)
    return fail(kAttempted, name, "the account database did not answer in time",
                "is the directory service (sssd, LDAP) of this node well?");
  Answer answer;
  if (*status != 0 || ::read(read_end.get(), &answer, sizeof answer) != sizeof answer)
    return fail(kAttempted, name, "the look-up ended with " + describe_status(*status));
  if (!answer.found)
    return fail(kAttempted, name, answer.error == 0 ? "no such account" : std::strerror(answer.error),
                "create it, or set probe_user to one of its own");
  return Account{name, answer.uid, answer.gid};
}

}  // namespace netcheck::system
