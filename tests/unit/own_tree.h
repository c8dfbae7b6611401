// The build tree that a test runs in. Its objects may have been compiled in another one, whose paths they
// have: see test_sources in tests/CMakeLists.txt.
#pragma once

#include <filesystem>
#include <string>

namespace netcheck {

/// A path in the tree that the test was compiled in, as one in the tree that it was linked in. "" stays "".
inline std::string own(const std::string& path) {
  const std::string compiled = NETCHECK_TEST_TREE;
  if (!path.starts_with(compiled)) return path;
  const auto tests = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  return tests.parent_path().string() + path.substr(compiled.size());
}

}  // namespace netcheck
