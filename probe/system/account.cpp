// The account database. It may be a directory service behind sssd or LDAP, and the C library's calls have no
// deadline: so they are made in a child, which can be killed.
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <unistd.h>

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

}  // namespace

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
