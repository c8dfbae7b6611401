// What a check needs of the node itself: the site's file, the probe's account, the fabric module, the folder
// for records. Pure: facts in, findings out.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "doctor/finding.h"
#include "policy/policy.h"

namespace netcheck::doctor {

/// What stat(2) says of a path.
struct FileFacts {
  std::string path;
  bool there = false;
  std::string why_not;  ///< where stat failed otherwise than by ENOENT
  bool folder = false, regular = false;
  uid_t owner = 0;
  mode_t mode = 0;
};
/// Why root does not take what lies there; nullopt: it does, or there is nothing. An Error's reason and
/// remedy.
[[nodiscard]] std::optional<Error> distrust(const FileFacts& file);

struct ConfigFacts {
  FileFacts file, folder;
  std::optional<Error> unreadable;  ///< to us
  std::optional<Error> wrong;       ///< what is in it
  std::vector<std::string> without_effect;
  std::vector<std::string> switches;  ///< kill switches that are there
};
[[nodiscard]] Findings check_config(const ConfigFacts& facts);
/// nccl_topology of [hardware]: a look at the hardware does without a file that is not there or not root's.
[[nodiscard]] Findings check_nccl_topology(const FileFacts& file);

struct AccountFacts {
  std::string name;
  std::optional<Error> missing;  ///< or not to be found out
  bool unknown = false;          ///< `missing` is about the question, not about the account
  uid_t uid = 0;
  std::string shell;
  std::vector<std::string> same_uid;   ///< other accounts of the same number
  std::vector<std::string> processes;  ///< that run as it and are no check: "1234 sleep"
};
[[nodiscard]] Findings check_account(const AccountFacts& facts);

struct ModuleFacts {
  std::string name;  ///< "ucx"
  FileFacts file, folder;
  std::optional<Error> load;  ///< why it did not load
  std::string as;             ///< the account that it was loaded as
};
[[nodiscard]] Findings check_module(const ModuleFacts& facts);

struct FolderFacts {
  std::string what;  ///< "record folder", "spool folder"
  FileFacts file;
  std::optional<std::uint64_t> free_bytes;
  bool spool = false;      ///< of records kept for good: somebody has to make it, and no check hangs on it
  std::string other_node;  ///< that has checked in it, too; empty: none, or not known
  std::string network;     ///< what kind of filesystem it is, where nodes may share that: "NFS"; else empty
};
[[nodiscard]] Findings check_folder(const FolderFacts& facts);

/// The longest deadlines that any job may have, by any of the rules: in `time` and `max_time`.
[[nodiscard]] Policy longest(const Site& site);

}  // namespace netcheck::doctor
