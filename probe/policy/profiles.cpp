// Two kinds. What training is said to want (ml-engineering, "Network": github.com/stas00/ml-engineering), as
// it stands there. And what healthy fabrics were published to carry, times 0.8: the fraction under which this
// program calls a node slow anywhere.
#include "policy/profiles.h"

#include <fmt/format.h>

#include <array>

namespace netcheck {

namespace {

constexpr Rate gbps(double gigabits) {
  return Rate{gigabits * 1e9};
}

constexpr std::array<Profile, 9> kProfiles{{
    {"llm", gbps(400), {}, "ml-engineering: at least 400 Gb/s are usually wanted"},
    {"bloom-176b", gbps(50), {}, "ml-engineering: BLOOM-176B was trained on 50 Gb/s"},
    {"zero3-v100",
     gbps(200),
     {},
     "ml-engineering: ZeRO-3 on 64 and more V100: 100 Gb/s are not enough, 200 are"},
    {"zero3-v100-ideal", gbps(800), {}, "ml-engineering: ZeRO-3 on 64 and more V100: ideal from 800 Gb/s on"},
    // One rail: 380 of NDR's 400 Gb/s and 180 of HDR's 200 are the lowest that healthy ones read: × 0.8.
    {"ndr", {}, gbps(304), "published readings of one NDR rail, from 380 Gb/s, × 0.8"},
    {"hdr", {}, gbps(144), "published readings of one HDR rail, from 180 Gb/s, × 0.8"},
    // 165 GB/s = 1320 Gb/s; 356 GB/s = 2848 Gb/s; 289 GB/s = 2312 Gb/s: × 0.8, rounded down to 10.
    {"a100-8xhdr", gbps(1'050), gbps(144),
     "published: from 165 GB/s between nodes of 8 A100 and 8 HDR, × 0.8"},
    {"h100-8xndr", gbps(2'270), gbps(304),
     "published: 356 GB/s at 512 MiB between 8 nodes of 8 H100 and 8 NDR, × 0.8"},
    {"p5-efa", gbps(1'840), {}, "published: 289 GB/s at 128 MiB between nodes of 8 H100 with EFA, × 0.8"},
}};

}  // namespace

std::span<const Profile> profiles() {
  return kProfiles;
}

const Profile* find_profile(std::string_view name) {
  for (const Profile& profile : kProfiles)
    if (profile.name == name) return &profile;
  return nullptr;
}

std::string profile_names() {
  std::string names = "\"none\"";
  for (const Profile& profile : kProfiles)
    names += fmt::format("{}\"{}\"", &profile == &kProfiles.back() ? " or " : ", ", profile.name);
  return names;
}

}  // namespace netcheck
