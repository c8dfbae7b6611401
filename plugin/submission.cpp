#include "submission.h"

#include <unistd.h>

#include "contract/error.h"
#include "system/loop.h"
#include "system/process.h"

namespace netcheck::plugin {

namespace {

/// It takes 10 ms where all is well; a person at a terminal waits no longer than this for a hint.
constexpr Ns kPatience = std::chrono::seconds(1);
constexpr std::size_t kMaxAnswerBytes = 4'096;
constexpr std::size_t kMaxLines = 8;  ///< there are six kinds of wishes
/// The last line, so that half an answer is none.
constexpr std::string_view kEnd = "end";

}  // namespace

SiteAnswer read_answer(std::string_view output) {
  SiteAnswer answer;
  for (std::size_t lines = 0; lines < kMaxLines && !output.empty(); ++lines) {
    const std::string_view line = output.substr(0, output.find('\n'));
    output.remove_prefix(std::min(output.size(), line.size() + 1));
    const auto take = [&](std::string_view kind, std::vector<std::string>& texts) {
      if (line.starts_with(kind)) texts.push_back(printable(line.substr(kind.size())));
    };
    if (line == kEnd) return answer;
    take("refuse ", answer.refused);
    take("note ", answer.notes);
  }
  return {};
}

SiteAnswer ask_site(const Settings& settings, const std::string& spec) {
  if (::access(settings.program.c_str(), X_OK) != 0) return {};  // a login node needs the plugin alone
  system::Launch launch;
  launch.program = settings.program;
  launch.arguments = {"policy", "--submission", "--config=" + settings.config, "--spec=" + spec};
  launch.environment = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
  // Its exit status is not asked for: where the caller ignores SIGCHLD there is none.
  const auto finished = system::run_to_end(std::move(launch), system::now() + kPatience, kMaxAnswerBytes);
  return finished ? read_answer(finished->output) : SiteAnswer{};
}

}  // namespace netcheck::plugin
