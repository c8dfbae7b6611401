// What a check says of itself: lines on stderr, which slurmd logs for a plugin, or to the syslog, since
// slurmd drops the words of a Prolog script. As root.
#pragma once

#include <cstdint>
#include <string>

namespace netcheck::prolog {

class Log {
 public:
  /// `syslog`: the socket; "": stderr, and so where nobody listens at the socket.
  explicit Log(std::string syslog) : syslog_(std::move(syslog)) {}
  /// From here on every line begins with the job.
  void name(std::uint32_t job);
  void info(const std::string& text) const { write("", text); }
  void error(const std::string& text) const { write("error: ", text); }
  /// On stderr as it is: what is meant for the plugin.
  static void line(const std::string& text);

 private:
  void write(const char* kind, const std::string& text) const;
  std::string syslog_, prefix_;
};

}  // namespace netcheck::prolog
