// The probe's side of the fabric child: a Fabric whose work is done by `netcheck fabric NAME` in a process of
// its own, over a socketpair, because CUDA, NCCL and UCX block and their failures stick to a process. As the
// probe user.
//
// The child sends a sign of life every kSignOfLife while it runs a batch, with partial samples, so that "no
// bytes came" and "the process is stuck" can be told apart, and a kill loses nothing.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fabric/fabric.h"
#include "system/loop.h"

namespace netcheck::fabric {

inline constexpr Ns kSignOfLife =
    std::chrono::milliseconds(50);  ///< cheap (20 frames/s) and well under any allowance
inline constexpr Ns kSilence =
    std::chrono::milliseconds(400);  ///< eight signs missed, above a scheduling hiccup on a busy node

struct ChildCommand {
  std::string program;           ///< absolute path of netcheck
  std::string module_directory;  ///< where netcheck-fabric-NAME.so lies
  std::string name;              ///< "ucx"
};

/// A process that SIGKILL did not end within its grace.
struct Stuck {
  pid_t pid = -1;
  std::uint64_t start_time = 0;
};

class ChildFabric : public Fabric {
 public:
  ChildFabric(system::Loop& loop, ChildCommand command, Sink sink);
  ~ChildFabric() override;  ///< kills and reaps (bounded wait)
  void open(Options options) override;
  void invite(Team team, std::uint32_t self) override;
  void join(Join join) override;
  void run(Batch batch) override;
  void leave(std::uint32_t team) override;
  void abandon() noexcept override;
  /// Children that did not end even after SIGKILL.
  [[nodiscard]] std::vector<Stuck> stuck() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The child's side: `netcheck fabric NAME --module-directory DIR`, socket on descriptor 3. Runs until the
/// socket closes. Sets PR_SET_PDEATHSIG and PR_SET_DUMPABLE 0 first.
[[nodiscard]] int host(const std::string& name, const std::string& module_directory, int socket);

}  // namespace netcheck::fabric
