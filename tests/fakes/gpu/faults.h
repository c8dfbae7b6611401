// What the stand-ins for libcuda and libnccl are told to do wrong: lines KEY=VALUE of a file fake.ini that
// lies beside the library, since a fabric child has no environment. Without the file all goes well.
#pragma once

#include <dlfcn.h>

#include <fstream>
#include <map>
#include <string>

namespace netcheck::fakes {

/// Read once, when first asked.
inline const std::map<std::string, std::string>& faults() {
  static const auto read = [] {
    std::map<std::string, std::string> values;
    Dl_info self{};
    static const int here = 0;
    if (::dladdr(&here, &self) == 0) return values;
    const std::string library = self.dli_fname;
    std::ifstream file(library.substr(0, library.rfind('/') + 1) + "fake.ini");
    for (std::string line; std::getline(file, line);)
      if (const auto equals = line.find('='); equals != std::string::npos)
        values[line.substr(0, equals)] = line.substr(equals + 1);
    return values;
  }();
  return read;
}

inline std::string fault(const std::string& key, const std::string& otherwise = "") {
  const auto found = faults().find(key);
  return found == faults().end() ? otherwise : found->second;
}
inline long fault_number(const std::string& key, long otherwise) {
  const std::string text = fault(key);
  return text.empty() ? otherwise : std::stol(text);
}

}  // namespace netcheck::fakes
