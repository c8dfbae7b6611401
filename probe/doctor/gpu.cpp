// GPUs' libraries. See gpu.h.
#include "doctor/gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "doctor/words.h"

namespace netcheck::doctor {

namespace {

struct Names {
  const char* what;     // in findings
  const char* key;      // of [nccl]
  const char* without;  // what it means where it is missing
  const char* remedy;
};

Names names_of(Library library) {
  switch (library) {
    case Library::nccl:
      return {"NCCL", "library", "every check of a job with GPUs is inconclusive",
              "install NCCL 2.18 or later"};
    case Library::driver:
      return {"CUDA driver", "driver", "every check of a job with GPUs is inconclusive",
              "install the driver"};
    case Library::watcher:
      break;
  }
  return {"NVML", "watcher",
          "GPUs in MIG mode, in use or broken are not known as such, and where /proc/driver/nvidia does not "
          "number "
          "them, no check can tell which are a job's",
          "install the driver's libnvidia-ml"};
}

/// "2.18.5": whether it is NCCL 2.18 or later.
bool is_old(std::string_view version) {
  unsigned major = 0, minor = 0;
  const auto dot = version.find('.');
  if (dot == std::string_view::npos) return false;
  std::from_chars(version.data(), version.data() + dot, major);
  std::from_chars(version.data() + dot + 1, version.data() + version.size(), minor);
  constexpr unsigned kOldest = 18;
  return major < 2 || (major == 2 && minor < kOldest);
}

}  // namespace

bool has_gpus(std::string_view gres) {
  while (!gres.empty()) {
    std::string_view one = gres.substr(0, gres.find(','));
    gres.remove_prefix(std::min(gres.size(), one.size() + 1));
    if (one.starts_with("gres:")) one.remove_prefix(std::string_view("gres:").size());
    if (one == "gpu" || one.starts_with("gpu:") || one.starts_with("gpu(")) return !one.starts_with("gpu:0");
  }
  return false;
}

Findings check_library(const LibraryFacts& facts) {
  const Names names = names_of(facts.library);
  const Level bad = facts.library == Library::watcher ? Level::warn : Level::fail;
  if (facts.load) {
    Finding finding = finding_of(bad, names.what, *facts.load);
    finding.why += fmt::format(": {}", names.without);
    if (finding.remedy.empty())
      finding.remedy =
          fmt::format("{}, or name it with {} in [nccl] of netcheck.toml", names.remedy, names.key);
    return {finding};
  }
  if (!facts.lacks.empty())
    return {{bad, names.what,
             fmt::format("{} is something else, without {}: {}", facts.file.path, facts.lacks, names.without),
             fmt::format("name the right one with {} in [nccl] of netcheck.toml", names.key)}};
  for (const FileFacts& place : {facts.file, facts.folder})
    if (auto why = distrust(place)) return {finding_of(bad, names.what, *why)};
  if (facts.library == Library::nccl && is_old(facts.version))
    return {{bad, names.what, fmt::format("{} is {}: {}", facts.file.path, facts.version, names.without),
             names.remedy}};
  return {fine(names.what, fmt::format("{}{}, and root's alone to change", facts.file.path,
                                       facts.version.empty() ? "" : ", version " + facts.version))};
}

}  // namespace netcheck::doctor
