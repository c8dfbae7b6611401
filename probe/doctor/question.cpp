// One child and one pipe for each question. See question.h.
#include "doctor/question.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>

#include "contract/wire.h"
#include "system/loop.h"

namespace netcheck::doctor {

namespace {

constexpr std::size_t kMaxAnswer = 1U << 20;  // a configuration of Slurm is 12 KiB
constexpr std::size_t kMaxText = 4'096;
constexpr auto kDeathPatience = std::chrono::milliseconds(100);  // it has closed its pipe: it is ending

Json as_message(const Result<Json>& answer) {
  if (answer) return Json{{"ok", true}, {"answer", *answer}};
  const Error& error = answer.error();
  return Json{{"ok", false},
              {"attempted", error.attempted},
              {"subject", error.subject},
              {"reason", error.reason},
              {"remedy", error.remedy}};
}

Result<Json> from_message(const std::string& text, const std::string& name, system::Process& child) {
  if (text.empty()) {
    const auto status = child.wait(system::now() + kDeathPatience);
    return fail(
        "ask", name,
        "the process that looked ended with " + (status ? system::describe_status(*status) : "no word"));
  }
  auto message = from_json_text(text, name, kMaxAnswer);
  if (!message) return message;
  try {
    const Fields fields(*message, "answer");
    if (fields.flag("ok")) return message->at("answer");
    return fail(fields.text("attempted", kMaxText), fields.text("subject", kMaxText),
                fields.text("reason", kMaxText), fields.text("remedy", kMaxText));
  } catch (const Malformed& malformed) {
    return fail("ask", name, malformed.reason);
  } catch (const Json::exception& error) {
    return fail("ask", name, error.what());
  }
}

// In the child. Libraries that it loads may write to stdout: the report is there.
int answer_on(int pipe, const std::function<Result<Json>()>& answer) {
  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (nowhere >= 0) ::dup2(nowhere, stream);
  std::string text;
  try {
    text = as_message(answer()).dump(-1, ' ', false, Json::error_handler_t::replace);
  } catch (const std::exception& error) {
    text = as_message(fail("look", "", error.what())).dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  std::string_view left = text;
  while (!left.empty()) {
    const ssize_t wrote = ::write(pipe, left.data(), left.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return 1;
    left.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return 0;
}

// What is there now. False: its end.
bool read_some(int pipe, std::string& heard) {
  std::array<char, 16'384> chunk{};
  const ssize_t got = ::read(pipe, chunk.data(), chunk.size());
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  heard.append(chunk.data(), static_cast<std::size_t>(got));
  return got > 0 && heard.size() < kMaxAnswer;
}

}  // namespace

void Questions::ask(const std::string& name, Ns patience, const std::function<Result<Json>()>& answer) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    answered_.emplace(name, fail("ask", name, std::strerror(errno)));
    return;
  }
  system::Descriptor read_end(ends[0]), write_end(ends[1]);
  ::fcntl(read_end.get(), F_SETFL, O_NONBLOCK);
  auto child = system::Process::fork([&] { return answer_on(write_end.get(), answer); });
  if (!child) {
    answered_.emplace(name, tl::unexpected(child.error()));
    return;
  }
  open_.push_back({.name = name,
                   .patience = patience,
                   .deadline = system::now() + patience,
                   .child = std::move(*child),
                   .answer = std::move(read_end)});
}

std::map<std::string, Result<Json>> Questions::answers() {
  while (!open_.empty()) {
    std::vector<pollfd> wait;
    Time next = open_.front().deadline;
    for (const Question& question : open_) {
      wait.push_back({question.answer.get(), POLLIN, 0});
      next = std::min(next, question.deadline);
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - system::now()).count();
    ::poll(wait.data(), wait.size(), static_cast<int>(std::max<std::int64_t>(left, 0)));
    for (std::size_t i = wait.size(); i-- > 0;) {
      Question& question = open_[i];
      const bool late = system::now() >= question.deadline;
      if (wait[i].revents == 0 && !late) continue;
      if (wait[i].revents != 0 && read_some(question.answer.get(), question.heard)) continue;
      auto result = wait[i].revents != 0 ? from_message(question.heard, question.name, question.child)
                                         : fail("ask", question.name,
                                                "no answer within " + format_duration(question.patience));
      answered_.insert_or_assign(question.name, std::move(result));
      open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(i));  // kills what has not ended
    }
  }
  return std::move(answered_);
}

}  // namespace netcheck::doctor
