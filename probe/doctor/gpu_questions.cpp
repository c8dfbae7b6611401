// See gpu_questions.h.
#include "doctor/gpu_questions.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "doctor/collect.h"
#include "doctor/site.h"
#include "doctor/words.h"

namespace netcheck::doctor {

namespace {

// By what is asked, as in doctor.cpp.
constexpr const char* kGres = "sinfo for the node's GPUs";
constexpr const char* kGpuModule = "the fabric module for GPUs to load";
constexpr std::array kLibraries{Library::nccl, Library::driver, Library::watcher};

const char* question_of(Library library) {
  return library == Library::nccl     ? "NCCL to load"
         : library == Library::driver ? "the CUDA driver's library to load"
                                      : "NVML to load";
}

std::string wanted_of(Library library, const Policy& policy) {
  return library == Library::nccl     ? policy.nccl_library
         : library == Library::driver ? policy.nccl_driver
                                      : policy.nccl_watcher;
}

}  // namespace

void ask_about_gpus(Questions& questions, const GpuQuestions& about) {
  if (about.site && !measures_gpus(*about.site)) return;
  if (!about.sinfo.empty())
    questions.ask(kGres, about.patience, [&about] {
      return ask_program(about.sinfo, {"--noheader", "--nodes=" + about.node, "--format=%G"}, about.patience);
    });
  const std::string& user = about.policy.probe_user;
  questions.ask(kGpuModule, about.patience, [&] { return load_module_as(user, kNccl, about.module_folder); });
  if (!about.site) return;
  for (const Library library : kLibraries)
    questions.ask(question_of(library), about.patience,
                  [&] { return load_library_as(user, library, wanted_of(library, about.policy)); });
}

bool gives_gpus(const Answers& answers) {
  const auto gres = answers.find(kGres);
  if (gres == answers.end() || !gres->second || !gres->second->is_string()) return false;
  return std::ranges::any_of(lines_of(gres->second->get<std::string>()), has_gpus);
}

const Result<Json>& gpu_module(const Answers& answers) {
  return answers.at(kGpuModule);
}

Findings check_libraries(const Answers& answers, const Policy& policy) {
  if (!answers.contains(question_of(Library::nccl)))
    return {{Level::unseen, "GPU libraries",
             "not judged: which ones checks use stands in the configuration, which is not to be had",
             "see configuration, then call this again"}};
  Findings findings;
  for (const Library library : kLibraries)
    append(findings, check_library(library_facts(library, wanted_of(library, policy),
                                                 answers.at(question_of(library)))));
  return findings;
}

}  // namespace netcheck::doctor
