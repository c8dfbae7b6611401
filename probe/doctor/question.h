// Questions that may hang (a directory service, a controller, munged, a library that loads drivers), each in
// a child of its own that is killed at its time; all at once, so that the slowest one is what they cost.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "contract/error.h"
#include "contract/json.h"
#include "contract/units.h"
#include "system/process.h"

namespace netcheck::doctor {

class Questions {
 public:
  /// Starts `answer` in a child, which ends with it. `name` is for messages and for the answer.
  void ask(const std::string& name, Ns patience, const std::function<Result<Json>()>& answer);

  /// All answers, by name, once each child has ended or its time has come. Error: its own, or that it did not
  /// answer in time, or that it died.
  [[nodiscard]] std::map<std::string, Result<Json>> answers();

 private:
  struct Question {
    std::string name;
    Ns patience{};
    Time deadline;
    system::Process child;
    system::Descriptor answer;
    std::string heard;
  };
  std::vector<Question> open_;
  std::map<std::string, Result<Json>> answered_;
};

}  // namespace netcheck::doctor
