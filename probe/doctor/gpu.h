// What a check over GPUs needs of a node that has some: NCCL, the driver's libraries, the module that uses
// them. Of a node without GPUs nothing is said. Pure but for what says "in a child".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "contract/json.h"
#include "doctor/node.h"

namespace netcheck::doctor {

/// Whether Slurm gives jobs GPUs of this node: "gpu:h200:8(S:0-1),nvme:1", as `sinfo -o %G` writes it.
[[nodiscard]] bool has_gpus(std::string_view gres);

enum class Library : std::uint8_t { nccl, driver, watcher };

struct LibraryFacts {
  Library library = Library::nccl;
  std::string wanted;         ///< netcheck.toml's path; "": where the loader finds it
  std::optional<Error> load;  ///< why it did not load
  FileFacts file, folder;     ///< what was loaded, links followed; or `wanted`
  std::string version;        ///< "2.28.9"; "": it tells none
  std::string lacks;          ///< a function that it would have, were it what it is taken for; "": nothing
};
[[nodiscard]] Findings check_library(const LibraryFacts& facts);

/// In a child: loads the library as the account. The answer: its path, and its version.
[[nodiscard]] Result<Json> load_library_as(const std::string& account, Library library,
                                           const std::string& wanted);
[[nodiscard]] LibraryFacts library_facts(Library library, const std::string& wanted,
                                         const Result<Json>& answer);

}  // namespace netcheck::doctor
