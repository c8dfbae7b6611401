// Loading what a check over GPUs loads. See gpu.h.
#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "contract/nccl_version.h"
#include "contract/wire.h"
#include "doctor/collect.h"
#include "doctor/gpu.h"

namespace netcheck::doctor {

namespace {

constexpr std::size_t kMaxPath = 4'096, kMaxVersion = 64;

const char* default_name(Library library) {
  return library == Library::nccl     ? "libnccl.so.2"
         : library == Library::driver ? "libcuda.so.1"
                                      : "libnvidia-ml.so.1";
}

/// What none of them can do without.
const char* first_call(Library library) {
  return library == Library::nccl ? "ncclGetVersion" : library == Library::driver ? "cuInit" : "nvmlInit_v2";
}

/// The libraries' own codes; CUDA's is X·1000 + Y·10.
std::string version_of(Library library, void* opened) {
  if (library == Library::watcher) return {};
  const char* call = library == Library::nccl ? "ncclGetVersion" : "cuDriverGetVersion";
  const auto ask = reinterpret_cast<int (*)(int*)>(::dlsym(opened, call));
  int code = 0;
  if (ask == nullptr || ask(&code) != 0) return {};
  if (library == Library::driver) return fmt::format("{}.{}", code / 1'000, code % 1'000 / 10);
  return nccl_version(code);
}

std::string path_of(void* opened, const std::string& name) {
  link_map* map = nullptr;
  if (::dlinfo(opened, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr || map->l_name == nullptr) return name;
  std::error_code error;
  const auto path = std::filesystem::canonical(map->l_name, error);
  return error ? std::string(map->l_name) : path.string();
}

}  // namespace

Result<Json> load_library_as(const std::string& account, Library library, const std::string& wanted) {
  if (auto done = become(account); !done) return tl::unexpected(done.error());
  const std::string name = wanted.empty() ? default_name(library) : wanted;
  void* const opened = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    const char* why = ::dlerror();
    return fail("open", name, why == nullptr ? "unknown error of the dynamic loader" : printable(why));
  }
  const char* call = first_call(library);
  return Json{{"path", printable(path_of(opened, name), kMaxPath)},
              {"version", version_of(library, opened)},
              {"lacks", ::dlsym(opened, call) == nullptr ? call : ""}};
}

LibraryFacts library_facts(Library library, const std::string& wanted, const Result<Json>& answer) {
  LibraryFacts facts{.library = library, .wanted = wanted};
  std::string path = wanted;
  if (!answer) {
    facts.load = answer.error();
  } else {
    const Fields fields(*answer, "library");
    path = fields.text("path", kMaxPath);
    facts.version = fields.text("version", kMaxVersion);
    facts.lacks = fields.text("lacks", kMaxVersion);
  }
  if (path.empty()) return facts;
  facts.file = look_at(path);
  facts.folder = look_at(std::filesystem::path(path).parent_path().string());
  return facts;
}

}  // namespace netcheck::doctor
