// Which failed attempts are told: each once, a few per source, so that a stranger who knocks a thousand times
// a second fills no log. Pure. Used by lead.cpp and follow.cpp.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>

namespace netcheck::peers {

class Complaints {
 public:
  /// True the first time that `source` gives this reason, while it has given few and there are few sources.
  [[nodiscard]] bool worth_telling(const std::string& source, const std::string& why) {
    if (told_.size() >= kSources && !told_.contains(source)) return false;
    auto& reasons = told_[source];
    return reasons.size() < kReasons && reasons.insert(why).second;
  }

 private:
  static constexpr std::size_t kReasons = 8;      // more different ones are somebody playing
  static constexpr std::size_t kSources = 2'048;  // one address per node of a large job, and strangers
  std::map<std::string, std::set<std::string>> told_;
};

}  // namespace netcheck::peers
