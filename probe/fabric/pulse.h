// How long this process was kept from running: stopped, throttled, or waiting for a processor. In the fabric
// child; its host beats, the module asks. A process that does not run moves no bytes, and the network is not
// to blame: judge/standing.h and judge/figures.h say what follows.
#pragma once

#include "contract/units.h"

namespace netcheck::fabric {

class Pulse {
 public:
  /// Of the thread that makes it.
  Pulse();
  ~Pulse();
  Pulse(const Pulse&) = delete;
  Pulse& operator=(const Pulse&) = delete;
  /// Between two beats the process has worked, rested as announced, or been kept from running. To be called
  /// at least every millisecond of work, and after every rest.
  void beat();
  /// The process will sleep of its own will, until then at the latest.
  void rest_until(Time when) { rest_until_ = when; }
  /// In all, until now. Only ever grows; less than the truth rather than more.
  [[nodiscard]] Ns kept();

 private:
  [[nodiscard]] Ns queued() const;

  int schedstat_;   // the kernel's own account of this thread; -1: it keeps none
  Time wall_;       // of the last beat
  Ns processor_{};  // this thread's, at the last beat
  Ns queued_{};     // so long it had been ready to run and did not, at the last beat
  Time rest_until_{};
  Ns kept_{};
};

}  // namespace netcheck::fabric
