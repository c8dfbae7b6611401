// `netcheck topo`: what this node is made of, what it could reach, and what is wrong with it. Run by people
// and by health checks, as anybody.
#pragma once

#include <string>
#include <vector>

namespace netcheck {

struct TopoQuestion {
  std::string xml;     ///< a recording instead of this node
  std::string nccl;    ///< NCCL's topology of the same machine: what is near to what is as it says
  std::string fsroot;  ///< a recorded /sys and /proc instead of this node's
  std::string gpus;    ///< "0-3,6": the job's; empty: SLURM_JOB_GPUS where set, else all
  std::string save;    ///< where to record the machine for replay
  std::string svg;     ///< where to draw it
  std::vector<std::string> compare;           ///< two recordings
  std::vector<std::string> include, exclude;  ///< globs, as [fabric] devices and exclude
  std::string config;                         ///< the site's, for those two where neither is given
  bool must_exist = false;                    ///< it was named
  bool json = false;
};

/// Exit code: 0, also with findings; of a comparison 1 where the two differ; 2: something cannot be read.
int show_topology(const TopoQuestion& question);

}  // namespace netcheck
