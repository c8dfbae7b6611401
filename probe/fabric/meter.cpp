#include "fabric/meter.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>

namespace netcheck::fabric {

namespace {

namespace fs = std::filesystem;

/// Of the payload, what its headers and what is sent twice may add: 66 bytes in 1,514 are 4.6 %, UCX's own
/// headers far less.
constexpr double kHeaders = 0.08;
/// Of the payload of the other direction, what its acknowledgements may come to: one of 66 bytes for every
/// second segment are 2.3 %.
constexpr double kAcknowledgements = 0.05;
/// Interfaces on interfaces: a VLAN on a bond of two ports are two.
constexpr int kDeepest = 4;
constexpr std::uint64_t kInfinibandUnit = 4;  // port_*_data count words (the kernel's sysfs-class-infiniband)

std::optional<std::uint64_t> number(const system::Descriptor& file) {
  std::array<char, 32> text{};
  const auto length = ::pread(file.get(), text.data(), text.size(), 0);
  std::uint64_t value = 0;
  if (length <= 0 || std::from_chars(text.data(), text.data() + length, value).ec != std::errc{})
    return std::nullopt;
  return value;
}

system::Descriptor open_file(const std::string& path) {
  return system::Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

std::uint64_t others(std::uint64_t all, std::uint64_t own, std::uint64_t own_opposite) {
  const double ours =
      (1 + kHeaders) * static_cast<double>(own) + kAcknowledgements * static_cast<double>(own_opposite);
  return static_cast<std::uint64_t>(std::max(0.0, static_cast<double>(all) - ours));
}

}  // namespace

/// A port's own counters alone, where it has them: those of its network interface leave RDMA out with some
/// drivers and not with others, and what is counted twice would excuse what is slow.
Meter::Meter(const std::string& device, const std::string& sys) {
  const auto colon = device.find(':');
  if (device.find('/') != std::string::npos) return;
  of_interfaces_ = colon == std::string::npos;
  if (of_interfaces_)
    add_interface(sys + "/class/net/", device, 0);
  else
    add(sys + "/class/infiniband/" + device.substr(0, colon) + "/ports/" + device.substr(colon + 1) +
            "/counters/",
        "port_rcv_data", "port_xmit_data", kInfinibandUnit);
}

void Meter::add(const std::string& folder, const char* in, const char* out, std::uint64_t unit) {
  Counter counter{open_file(folder + in), open_file(folder + out), unit};
  if (counter.in && counter.out) counters_.push_back(std::move(counter));
}

/// A bridge is read itself: its ports are others' as well, and would count twice.
void Meter::add_interface(const std::string& interfaces, const std::string& name, int depth) {
  std::error_code error;
  const fs::path folder = interfaces + name;
  std::vector<std::string> below;
  if (depth < kDeepest && !fs::exists(folder / "bridge", error))
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
      if (const std::string file = entry->path().filename(); file.starts_with("lower_"))
        below.push_back(file.substr(std::string("lower_").size()));
  for (const std::string& lower : below)
    if (fs::exists(interfaces + lower, error)) add_interface(interfaces, lower, depth + 1);
  if (!below.empty()) return;
  add(folder.string() + "/statistics/", "rx_bytes", "tx_bytes", 1);
  queues_.emplace_back(name);
}

std::optional<Octets> Meter::read() const {
  if (counters_.empty()) return std::nullopt;
  Octets sum;
  for (const Counter& counter : counters_) {
    const auto in = number(counter.in), out = number(counter.out);
    if (!in || !out) return std::nullopt;
    sum.in += *in * counter.unit;
    sum.out += *out * counter.unit;
  }
  return sum;
}

std::optional<std::uint64_t> Meter::queued() const {
  if (queues_.empty()) return std::nullopt;
  std::uint64_t sum = 0;
  for (const Queue& queue : queues_) {
    const auto sent = queue.sent();
    if (!sent) return std::nullopt;
    sum += *sent;
  }
  return sum;
}

Octets others_between(const Load& before, const Load& after, std::uint64_t uncounted) {
  if (!before.device || !after.device) return {};
  // A counter that falls was reset, or has 32 bits.
  if (after.device->in < before.device->in || after.device->out < before.device->out) return {};
  const Octets own{after.own.in - before.own.in, after.own.out - before.own.out};
  std::uint64_t out = after.device->out - before.device->out;
  if (before.queued && after.queued && *after.queued >= *before.queued)
    out = std::max(out, *after.queued - *before.queued);
  return {others(after.device->in - before.device->in + uncounted, own.in, own.out),
          others(out, own.out, own.in)};
}

}  // namespace netcheck::fabric
