// What an Ethernet port could run at: the fastest of the link modes that its driver says it supports. One
// ioctl that asks for no privilege. As the probe user or whoever runs `netcheck topo`.
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstddef>
#include <cstring>

#include "system/descriptor.h"
#include "topology/interfaces.h"

namespace netcheck::topology {
namespace {

/// Bits of enum ethtool_link_mode_bit_indices (linux/ethtool.h of Linux 6.17) and their speed in Mb/s. Those
/// that are no mode (Autoneg, TP, Pause, FEC) are left out; so are those below 1 Gb/s, which no fabric is.
struct Modes {
  std::uint32_t first, last, megabits;
};
constexpr Modes kModes[] = {
    {4, 5, 1'000},       {12, 12, 10'000},    {15, 15, 2'500},     {17, 17, 1'000},      {18, 20, 10'000},
    {21, 22, 20'000},    {23, 26, 40'000},    {27, 30, 56'000},    {31, 33, 25'000},     {34, 35, 50'000},
    {36, 39, 100'000},   {40, 40, 50'000},    {41, 41, 1'000},     {42, 46, 10'000},     {47, 47, 2'500},
    {48, 48, 5'000},     {52, 56, 50'000},    {57, 61, 100'000},   {62, 66, 200'000},    {68, 68, 1'000},
    {69, 73, 400'000},   {75, 79, 100'000},   {80, 84, 200'000},   {85, 89, 400'000},    {93, 98, 800'000},
    {103, 108, 200'000}, {109, 114, 400'000}, {115, 120, 800'000}, {121, 124, 1'600'000}};

bool is_set(std::span<const std::uint32_t> words, std::uint32_t bit) {
  constexpr std::uint32_t kBits = 32;
  return bit / kBits < words.size() && ((words[bit / kBits] >> (bit % kBits)) & 1U) != 0;
}

/// What the kernel fills in: a head, and behind it three sets of modes, the supported ones first. The head
/// has a signed byte for the number of words in a set.
constexpr std::size_t kHeadWords = sizeof(ethtool_link_settings) / sizeof(std::uint32_t);
using Answer = std::array<std::uint32_t, kHeadWords + (3 * std::size_t{SCHAR_MAX})>;

/// The number of words that the driver asks for, negative, where `words` is not that; else `words`.
std::optional<std::int8_t> ask(int socket, const std::string& interface, std::int8_t words, Answer& answer) {
  ethtool_link_settings head{};
  head.cmd = ETHTOOL_GLINKSETTINGS;
  head.link_mode_masks_nwords = words;
  std::memcpy(answer.data(), &head, sizeof head);
  ifreq request{};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  request.ifr_data = reinterpret_cast<char*>(answer.data());
  if (::ioctl(socket, SIOCETHTOOL, &request) != 0) return std::nullopt;
  std::memcpy(&head, answer.data(), sizeof head);
  return head.link_mode_masks_nwords;
}

}  // namespace

std::optional<Rate> fastest_mode(std::span<const std::uint32_t> modes) {
  std::uint32_t best = 0;
  for (const auto& [first, last, megabits] : kModes)
    for (std::uint32_t bit = first; bit <= last; ++bit)
      if (is_set(modes, bit)) best = std::max(best, megabits);
  return best > 0 ? std::optional(Rate{best * 1e6}) : std::nullopt;
}

std::optional<Rate> fastest_supported(const std::string& interface) {
  const system::Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket || interface.size() >= IFNAMSIZ) return std::nullopt;
  Answer answer{};
  const auto wanted = ask(socket.get(), interface, 0, answer);
  if (!wanted || *wanted >= 0 || *wanted < -SCHAR_MAX) return std::nullopt;
  const auto words = static_cast<std::int8_t>(-*wanted);
  if (ask(socket.get(), interface, words, answer) != words) return std::nullopt;
  return fastest_mode(std::span(answer).subspan(kHeadWords, static_cast<std::size_t>(words)));
}

}  // namespace netcheck::topology
