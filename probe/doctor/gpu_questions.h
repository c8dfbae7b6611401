// What is asked of a node about its GPUs, and the answers. Each question in a child of its own.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "doctor/gpu.h"
#include "doctor/question.h"
#include "policy/policy.h"

namespace netcheck::doctor {

struct GpuQuestions {
  std::optional<Site> site;  ///< nullopt: its file cannot be read, and nobody knows what it names
  Policy policy;             ///< the site's, or the built-in one
  std::string node, module_folder;
  std::string sinfo;  ///< the program; "": there is none to ask
  Ns patience{};
};
/// Asks nothing where neither the sections nor any rule measure GPUs.
void ask_about_gpus(Questions& questions, const GpuQuestions& about);

using Answers = std::map<std::string, Result<Json>>;
/// Whether Slurm gives jobs GPUs of this node. Where it does, there are the two below.
[[nodiscard]] bool gives_gpus(const Answers& answers);
/// Whether the module for GPUs loads: load_module_as()'s.
[[nodiscard]] const Result<Json>& gpu_module(const Answers& answers);
/// Where the site's file could not be read: that they were not looked at.
[[nodiscard]] Findings check_libraries(const Answers& answers, const Policy& policy);

}  // namespace netcheck::doctor
