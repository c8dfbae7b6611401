// What the two stand-ins have in common: a stream is a thread that does one thing after the other.
#pragma once

#include <functional>

namespace netcheck::fabric::nccl {
struct CuStream;
}

extern "C" {
/// Of libcuda's stand-in, for libnccl's: `work` when everything before it on the stream is done.
void netcheck_fake_enqueue(netcheck::fabric::nccl::CuStream* stream, std::function<void()>* work);
/// The number of the device that this thread uses; −1: none.
int netcheck_fake_current_device();
int netcheck_fake_device_of(netcheck::fabric::nccl::CuStream* stream);
}
