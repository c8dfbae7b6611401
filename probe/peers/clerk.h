// The clerk: a forked child that does what blocks (name look-ups, sealing and opening credentials) one
// request after another, so that the probe never waits without a deadline and a stuck munged or resolver can
// be killed. As the probe user.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "peers/credential.h"
#include "system/loop.h"

namespace netcheck::peers {

class Clerk {
 public:
  virtual ~Clerk() = default;
  /// Numeric addresses ("10.0.0.3"), IPv4 first. Error: the resolver's words.
  virtual void look_up(std::string name, std::function<void(Result<std::vector<std::string>>)> answer) = 0;
  virtual void seal(Bytes payload, std::function<void(Result<std::string>)> answer) = 0;
  virtual void open(std::string token, std::function<void(Result<Opened>)> answer) = 0;
};

/// A child per `workers` (the leader of a thousand nodes wants two: munge uses both cores). A child that dies
/// or does not answer within `patience` fails its request and is replaced.
[[nodiscard]] std::unique_ptr<Clerk> forked_clerk(
    system::Loop& loop, std::function<Result<std::unique_ptr<Credential>>()> credential, Ns patience,
    unsigned workers = 1);

}  // namespace netcheck::peers
