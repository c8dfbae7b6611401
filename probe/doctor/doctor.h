// `netcheck doctor`: what stands between this node and a check that works, line by line, with what to do. On
// compute, login and controller nodes; as root or anybody. It changes nothing, and ends within ten seconds
// whatever hangs (with --listen, within a minute more).
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace netcheck::doctor {

struct Order {
  std::string program;                          ///< absolute path of this program
  std::string config;                           ///< the site's file
  bool must_exist = false;                      ///< it was named on the command line
  std::vector<std::string> module_directories;  ///< where fabric modules may lie, unless the site says where
  std::optional<std::string> peer;              ///< another node, by its name in Slurm
  bool listen = false;                          ///< waits for the peer's doctor, rather than go there
  bool settings = false;                        ///< every setting in effect as well; JSON always has them
  bool json = false;
  std::optional<std::string> role;  ///< "compute", "login", "controller"; nullopt: found out
};

/// Prints. 0: nothing is in the way; 1: something is; 2: wrong use; 3: something could not be looked at.
[[nodiscard]] int examine(const Order& order);

}  // namespace netcheck::doctor
