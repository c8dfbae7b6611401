// Who sent this, and can only the right one read it: munge, or a key file. Sealing and opening block (munged
// may be stopped), so they run in the clerk (clerk.h), a child that can be killed. As the probe user.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "contract/error.h"
#include "contract/units.h"

namespace netcheck::peers {

struct Opened {
  uid_t uid = 0;
  Bytes payload;
};

class Credential {
 public:
  virtual ~Credential() = default;
  /// A token that only processes of our uid (munge) or holders of the key can open.
  [[nodiscard]] virtual Result<std::string> seal(const Bytes& payload) = 0;
  /// Errors name the cause: replayed, expired, rewound (clock skew, with how much where known), wrong key,
  /// not allowed, munged unreachable.
  [[nodiscard]] virtual Result<Opened> open(const std::string& token) = 0;
};

/// munge with MUNGE_OPT_UID_RESTRICTION to our own effective uid. `socket` "" = libmunge's default.
[[nodiscard]] std::unique_ptr<Credential> munge_credential(const std::string& socket);
/// libsodium secretbox with a 32-byte key file (hex or raw), sealed with the time; refused when older than
/// `lifetime` or from the future.
[[nodiscard]] Result<std::unique_ptr<Credential>> key_credential(const std::string& key_file, Ns lifetime);

/// By what a site's checks prove who is who.
struct CredentialKind {
  bool by_key = false;       ///< a key file; else munge
  std::string key_file;      ///< of the one
  std::string munge_socket;  ///< of the other
};
[[nodiscard]] Result<std::unique_ptr<Credential>> make_credential(const CredentialKind& kind);

}  // namespace netcheck::peers
