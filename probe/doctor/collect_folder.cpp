// Who else uses a folder that is to be one node's own. See collect.h.
#include <linux/magic.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <utility>

#include "doctor/collect.h"
#include "prolog/folder.h"
#include "prolog/guard.h"

namespace netcheck::doctor {

namespace {

// Of filesystems that nodes share: linux/magic.h, and statfs(2) of coreutils for those that are not in the
// kernel.
constexpr std::array<std::pair<std::uint32_t, const char*>, 8> kNetworkFilesystems{
    {{NFS_SUPER_MAGIC, "NFS"},
     {CEPH_SUPER_MAGIC, "CephFS"},
     {SMB_SUPER_MAGIC, "SMB"},
     {0xFE534D42, "SMB"},
     {0x0BD00BD0, "Lustre"},
     {0x47504653, "GPFS"},
     {0x19830326, "BeeGFS"},
     {OCFS2_SUPER_MAGIC, "OCFS2"}}};

}  // namespace

void look_for_other_nodes(FolderFacts& facts, const std::string& node) {
  struct statfs status {};
  if (::statfs(facts.file.path.c_str(), &status) == 0) {
    const auto kind = std::ranges::find(kNetworkFilesystems, static_cast<std::uint32_t>(status.f_type),
                                        &std::pair<std::uint32_t, const char*>::first);
    if (kind != kNetworkFilesystems.end()) facts.network = kind->second;
  }
  const auto folder = prolog::Folder::existing(facts.file.path);
  const auto holder = folder ? prolog::last_holder(*folder) : std::nullopt;  // the lock is root's to read
  if (holder && !holder->node.empty() && holder->node != node) facts.other_node = holder->node;
}

}  // namespace netcheck::doctor
