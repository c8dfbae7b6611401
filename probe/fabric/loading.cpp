// Finding, checking and opening a fabric module.
#include "fabric/loading.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace netcheck::fabric {

namespace {

constexpr std::size_t kMaxModuleName = 32;
constexpr std::size_t kWhySize = 512;  // a library's own words, one line

bool is_module_name(const std::string& name) {
  const auto allowed = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  return !name.empty() && name.size() <= kMaxModuleName && std::all_of(name.begin(), name.end(), allowed);
}

/// Whoever may write here decides what this process does.
Result<void> check_trusted(const std::string& path, const std::string& file) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return fail("", file, path + ": " + std::strerror(errno));
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return fail("", file, path + " may be written by group or others", "chmod go-w " + path);
  if (status.st_uid != 0 && status.st_uid != ::geteuid())
    return fail("", file, fmt::format("{} belongs to uid {}", path, status.st_uid), "chown root " + path);
  return {};
}

std::string loader_error() {
  const char* text = ::dlerror();
  return text != nullptr ? text : "unknown error of the dynamic loader";
}

}  // namespace

Result<std::unique_ptr<Module>> load_module(const std::string& name, const std::string& directory,
                                            const Hosting& hosting) {
  if (!is_module_name(name)) return fail("", "fabric " + printable(name, 64), "no such module name");
  const std::string file = "netcheck-fabric-" + name + ".so";
  if (directory.empty() || directory.front() != '/')
    return fail("", file, "the module directory '" + directory + "' is not absolute");
  const std::string path = directory + "/" + file;
  for (const auto& place : {directory, path})
    if (auto trusted = check_trusted(place, file); !trusted) return tl::unexpected(trusted.error());

  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return fail("", file, loader_error());
  const auto entry = reinterpret_cast<ModuleEntry>(::dlsym(library, kModuleEntry));
  if (entry == nullptr) return fail("", file, loader_error());
  std::array<char, kWhySize> why{};
  Module* module = entry(kModuleAbi, &hosting, why.data(), why.size());
  why.back() = '\0';
  if (module == nullptr) return fail("", file, why.data());
  return std::unique_ptr<Module>(module);
}

}  // namespace netcheck::fabric
