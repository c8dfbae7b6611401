// What is asked of a node about its GPUs, and the answers. Each question in a child of its own.
#pragma once

#include <map>
#include <string>

#include "doctor/gpu.h"
#include "doctor/question.h"
#include "policy/policy.h"

namespace netcheck::doctor {

struct GpuQuestions {
  Policy policy;
  std::string node, module_folder;
  std::string sinfo;  ///< the program; "": there is none to ask
  Ns patience{};
};
/// Asks nothing where the policy measures no GPUs.
void ask_about_gpus(Questions& questions, const GpuQuestions& about);

using Answers = std::map<std::string, Result<Json>>;
/// Whether Slurm gives jobs GPUs of this node. Where it does, there are the two below.
[[nodiscard]] bool gives_gpus(const Answers& answers);
/// Whether the module for GPUs loads: load_module_as()'s.
[[nodiscard]] const Result<Json>& gpu_module(const Answers& answers);
[[nodiscard]] Findings check_libraries(const Answers& answers, const Policy& policy);

}  // namespace netcheck::doctor
