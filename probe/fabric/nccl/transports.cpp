#include "fabric/nccl/transports.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <optional>

#include "fabric/fabric.h"

namespace netcheck::fabric::nccl {

namespace {

constexpr std::size_t kMostWords = 64, kMostDevices = 256, kLongestName = 64, kLongestPart = 32;

/// What follows `key` on a line.
std::optional<std::string_view> after(std::string_view line, std::string_view key) {
  const auto at = line.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  return line.substr(at + key.size());
}

bool all_digits(std::string_view text) {
  const auto digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  return !text.empty() && std::all_of(text.begin(), text.end(), digit);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

struct Device {
  std::string name;   // "mlx5_0", "mlx5_0+mlx5_1" where NCCL merges ports, "eth0"
  std::string layer;  // "IB", "RoCE"; "" for sockets
};

/// Where "Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>" or "Using [0]eth0:10.0.0.1<0>"
/// names its devices. A merged one: "[0]={[0] mlx5_0:1/IB, [1] mlx5_1:1/IB}".
class Devices {
 public:
  void read(std::string_view kind, std::string_view list) {
    auto& devices = by_kind_[std::string(kind)];
    if (!devices.empty()) return;  // said once more
    list = list.substr(0, list.find("; OOB"));
    while (devices.size() < kMostDevices) {
      const auto open = list.find('['), close = list.find(']', open);
      if (open == std::string_view::npos || close == std::string_view::npos) return;
      const bool numbered = all_digits(list.substr(open + 1, close - open - 1));
      list.remove_prefix(close + 1);
      if (!numbered) continue;  // "[RO]": relaxed ordering
      if (list.starts_with("={"))
        devices.push_back(take_merged(list));
      else
        devices.push_back(take_one(list));
    }
  }
  [[nodiscard]] const Device* find(std::string_view kind, std::size_t number) const {
    const auto found = by_kind_.find(std::string(kind));
    if (found == by_kind_.end() || number >= found->second.size()) return nullptr;
    return &found->second[number];
  }

 private:
  static Device take_one(std::string_view& list) {
    while (list.starts_with(' '))
      list.remove_prefix(1);
    const auto end = std::min(list.find_first_of(" ,}"), list.size());
    const auto text = list.substr(0, end);
    list.remove_prefix(end);
    const auto slash = text.find('/');
    Device device{std::string(text.substr(0, std::min(text.find(':'), kLongestName))), {}};
    if (slash != std::string_view::npos) device.layer = split(text.substr(slash + 1), '/').front();
    return device;
  }
  static Device take_merged(std::string_view& list) {
    const auto end = std::min(list.find('}'), list.size());
    std::string_view inside = list.substr(2, end - 2);
    list.remove_prefix(end);
    Device merged;
    for (auto close = inside.find(']'); close != std::string_view::npos; close = inside.find(']')) {
      inside.remove_prefix(close + 1);
      const Device one = take_one(inside);
      merged.name += (merged.name.empty() ? "" : "+") + one.name;
      merged.layer = one.layer;
    }
    return merged;
  }

  std::map<std::string, std::vector<Device>> by_kind_;
};

/// "IB/0/GDRDMA", "IB/0(1)/GDRDMA/Shared", "AWS Libfabric/3": what a way through a network is called.
std::string network_word(std::string_view way, const Devices& devices) {
  const auto parts = split(way, '/');
  const auto number = std::find_if(parts.begin(), parts.end(), [](std::string_view part) {
    return all_digits(part.substr(0, part.find('(')));
  });
  if (number == parts.end() || number == parts.begin()) return "NET";
  std::string kind(parts.front().substr(0, kLongestName));
  std::string device(number->substr(0, std::min(number->find('('), std::size_t{4})));
  if (const Device* known = devices.find(kind, std::stoul(device)); known != nullptr) {
    device = known->name;
    if (kind == "IB" && !known->layer.empty()) kind = known->layer;
  }
  const bool direct = std::any_of(number, parts.end(), [](auto part) { return part.starts_with("GDRDMA"); });
  return kind + "/" + device + (direct ? "+GDR" : "");
}

/// "P2P/CUMEM/read", "P2P/direct pointer", "P2P/indirect/1[1]", "SHM/direct/direct", "NET/…".
std::string word_of(std::string_view way, const Devices& devices) {
  if (const auto net = after(way, "NET/"); net && way.starts_with("NET/")) return network_word(*net, devices);
  if (way.starts_with("SHM") || way.starts_with("direct shared memory")) return "SHM";
  if (way.starts_with("COLLNET/")) return "CollNet";
  if (!way.starts_with("P2P/")) return {};
  const auto kind = way.substr(4);
  return "P2P/" + std::string(kind.substr(0, std::min(kind.find_first_of("/ "), std::size_t{16})));
}

/// The longest of a part so far; what is no time between nothing and an hour is left out.
void note_part(std::string_view name, std::string_view seconds, std::map<std::string, Ns>& parts) {
  constexpr double kHour = 3'600;
  double value = -1;
  const auto [end, error] = std::from_chars(seconds.data(), seconds.data() + seconds.size(), value);
  if (error != std::errc() || !(value >= 0 && value < kHour)) return;
  const bool letters =
      std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::islower(c) != 0; });
  if (name.empty() || name.size() > kLongestPart || !letters || parts.size() >= kMaxSpent) return;
  Ns& longest = parts[std::string(name)];
  longest = std::max(longest, std::chrono::duration_cast<Ns>(std::chrono::duration<double>(value)));
}

}  // namespace

std::map<std::string, Ns> init_parts_in(std::string_view log, std::size_t since) {
  std::map<std::string, Ns> parts;
  log.remove_prefix(std::min(since, log.size()));
  for (const auto line : split(log, '\n')) {
    const auto timings = after(line, "NCCL INFO Init timings - ");
    const auto total = timings ? after(*timings, " total ") : std::nullopt;
    if (!total) continue;
    // "0.35 (kernels 0.10, alloc 0.05, …)"
    note_part("total", total->substr(0, total->find(' ')), parts);
    const auto list = after(*total, "(");
    if (!list) continue;
    for (auto part : split(list->substr(0, list->find(')')), ',')) {
      part.remove_prefix(std::min(part.find_first_not_of(' '), part.size()));
      if (const auto space = part.find(' '); space != std::string_view::npos)
        note_part(part.substr(0, space), part.substr(space + 1), parts);
    }
  }
  return parts;
}

std::vector<std::string> transports_in(std::string_view log, std::size_t since) {
  Devices devices;
  const auto lines = split(log, '\n');
  for (const auto line : lines) {
    const auto net = after(line, "NCCL INFO NET/");
    const auto list = after(line, " : Using");
    if (net && list) devices.read(net->substr(0, net->find(" :")), *list);
  }
  std::vector<std::string> words;
  for (const auto line : lines) {
    if (static_cast<std::size_t>(line.data() - log.data()) < since) continue;
    const auto said = after(line, "NCCL INFO ");
    if (!said) continue;
    std::string word;
    if (const auto way = after(*said, " via ");
        way && (said->starts_with("Channel ") || said->starts_with("CollNet ")))
      word = word_of(*way, devices);
    if (said->starts_with("NVLS comm ")) word = "NVLS";
    if (!word.empty() && words.size() < kMostWords &&
        std::find(words.begin(), words.end(), word) == words.end())
      words.push_back(std::move(word));
  }
  return words;
}

}  // namespace netcheck::fabric::nccl
