// The keys of netcheck.toml: type, range and form of each value. Pure.
#include "policy/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace netcheck::policy {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A prolog that takes a minute is one that Slurm or its users no longer wait for.
constexpr Ns kLongestCheck = seconds(60);
constexpr std::size_t kMaxTextBytes = 255;
constexpr std::size_t kMaxPathBytes = 1'024;
constexpr std::size_t kMaxEntries = 64;            ///< device globs: a node has a dozen rails at most
constexpr std::uint64_t kMaxMemory = 64ull << 30;  ///< a message of 64 GiB outlasts every deadline

using Read = std::function<std::string(Policy&, const toml::node&)>;

bool all_of(std::string_view text, std::string_view extra) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           extra.find(c) != std::string_view::npos;
  });
}

/// The text of a node; `wrong` is set when it is none or not fit for one line.
std::optional<std::string> text_of(const toml::node& node, std::size_t max_bytes, std::string& wrong) {
  const auto* text = node.as_string();
  if (text == nullptr) {
    wrong = "must be text in quotes";
    return std::nullopt;
  }
  if (printable(text->get(), max_bytes) != text->get()) {
    wrong = fmt::format("must be one line of at most {} bytes", max_bytes);
    return std::nullopt;
  }
  return text->get();
}

Read text(std::string Policy::*field, const std::function<std::string(const std::string&)>& check) {
  return [=](Policy& policy, const toml::node& node) {
    std::string wrong;
    auto value = text_of(node, kMaxPathBytes, wrong);
    if (!value) return wrong;
    wrong = check(*value);
    if (wrong.empty()) policy.*field = std::move(*value);
    return wrong;
  };
}

Read path(std::string Policy::*field, bool may_be_empty) {
  return text(field, [=](const std::string& value) -> std::string {
    if (value.empty() && may_be_empty) return {};
    if (!value.starts_with('/') || value.find("/../") != std::string::npos || value.ends_with("/.."))
      return "must be an absolute path";
    return {};
  });
}

Read duration(Ns Policy::*field, Ns least, Ns most) {
  return [=](Policy& policy, const toml::node& node) -> std::string {
    const auto* text = node.as_string();
    if (text == nullptr) return "must be a time in quotes, for example \"8s\" or \"500ms\"";
    const auto value = parse_duration(text->get());
    if (!value) return describe(value.error());
    if (*value < least || *value > most)
      return fmt::format("must be from {} to {}", format_duration(least), format_duration(most));
    policy.*field = *value;
    return {};
  };
}

template <typename Integer>
Read whole(Integer Policy::*field, std::int64_t least, std::int64_t most) {
  return [=](Policy& policy, const toml::node& node) -> std::string {
    const auto* number = node.as_integer();
    if (number == nullptr || number->get() < least || number->get() > most)
      return fmt::format("must be a whole number from {} to {}", least, most);
    policy.*field = static_cast<Integer>(number->get());
    return {};
  };
}

Read globs(std::vector<std::string> Policy::*field) {
  return [=](Policy& policy, const toml::node& node) -> std::string {
    const auto* list = node.as_array();
    if (list == nullptr) return "must be a list of texts, for example [\"mlx5_*\"]";
    if (list->size() > kMaxEntries) return fmt::format("must have at most {} entries", kMaxEntries);
    std::vector<std::string> out;
    for (const toml::node& part : *list) {
      const auto* glob = part.as_string();
      if (glob == nullptr || glob->get().empty() || glob->get().size() > kMaxEntries ||
          !all_of(glob->get(), "_-.:*?[]!@"))
        return "must be a list of device names or globs, for example [\"mlx5_*\"]";
      out.push_back(glob->get());
    }
    policy.*field = std::move(out);
    return {};
  };
}

std::string read_min(Policy& policy, const toml::node& node) {
  const auto* text = node.as_string();
  if (text == nullptr) return "must be a rate in quotes, for example \"400Gbps\", or \"none\"";
  if (text->get() == "none") {
    policy.min = policy.site_min = std::nullopt;
    return {};
  }
  const auto rate = parse_rate(text->get());
  if (!rate) return describe(rate.error());
  policy.min = policy.site_min = *rate;
  return {};
}

std::string read_memory(Policy& policy, const toml::node& node) {
  constexpr const char* kForm =
      "must be \"default\" or a size in quotes from 1MiB to 64GiB, for example \"256MiB\"";
  const auto* text = node.as_string();
  if (text == nullptr) return kForm;
  std::string_view value = text->get();
  if (value == "default") {
    policy.memory = 0;
    return {};
  }
  unsigned shift = 0;
  if (value.ends_with("MiB")) shift = 20;
  if (value.ends_with("GiB")) shift = 30;
  if (shift == 0) return kForm;
  value.remove_suffix(3);
  constexpr std::size_t kMaxDigits = 5;  // 65536 MiB
  if (value.empty() || value.size() > kMaxDigits ||
      value.find_first_not_of("0123456789") != std::string_view::npos)
    return kForm;
  const std::uint64_t bytes = std::stoull(std::string(value)) << shift;
  if (bytes == 0 || bytes > kMaxMemory) return kForm;
  policy.memory = bytes;
  return {};
}

std::string check_address(const std::string& value) {
  std::string bare = value;
  const auto at = bare.find("{node}");
  if (at == std::string::npos) return "must contain {node}, for example \"{node}-ib0\"";
  bare.erase(at, std::string_view("{node}").size());
  return bare.size() <= kMaxTextBytes && all_of(bare, "_-.") ? ""
                                                             : "must be a host name with {node} in it once";
}

std::string read_addresses(Policy& policy, const toml::node& node) {
  constexpr const char* kForm = "must be a table of node = \"host or address\"";
  const auto* table = node.as_table();
  if (table == nullptr) return kForm;
  std::map<std::string, std::string> out;
  for (const auto& [key, value] : *table) {
    const auto* address = value.as_string();
    if (address == nullptr || address->get().empty() || address->get().size() > kMaxTextBytes ||
        !all_of(address->get(), "_-.:%") || key.str().empty() || !all_of(key.str(), "_-."))
      return fmt::format("{}: '{}' is none", kForm, printable(key.str(), 64));
    out.emplace(key.str(), address->get());
  }
  policy.addresses = std::move(out);
  return {};
}

std::string read_annotate(Policy& policy, const toml::node& node) {
  const auto* flag = node.as_boolean();
  if (flag == nullptr) return "must be true or false";
  policy.annotate = flag->get();
  return {};
}

std::string check_user(const std::string& value) {
  if (value.empty() || value.size() > 32 || !all_of(value, "_-.")) return "must be the name of an account";
  // The probe's credentials say "this is netcheck": an account that other services share would prove nothing.
  if (value == "root" || value == "nobody" || value == "daemon")
    return fmt::format("must be an account of netcheck's own, not '{}'", value);
  return {};
}

std::string check_fabric(const std::string& value) {
  // It becomes part of a file's name: netcheck-fabric-NAME.so.
  return !value.empty() && value.size() <= 32 && all_of(value, "_-") ? "" : "must be the name of a module";
}

std::string check_operation(const std::string& value) {
  return is_operation(value) ? ""
                             : "must be \"auto\", \"all_gather\", \"all_reduce\", \"reduce_scatter\", "
                               "\"alltoall\" or \"broadcast\"";
}

std::string check_credential(const std::string& value) {
  return value == "munge" || value == "key" ? "" : "must be \"munge\" or \"key\"";
}

}  // namespace

std::vector<Setting> all_settings() {
  constexpr std::int64_t kMaxPort = std::numeric_limits<std::uint16_t>::max();
  return {
      {"threshold", "min", read_min},
      {"check", "op", text(&Policy::op, check_operation)},
      {"check", "time", duration(&Policy::time, kShortestCheck, kLongestCheck)},
      {"check", "max_time", duration(&Policy::max_time, kShortestCheck, kLongestCheck)},
      {"check", "rendezvous", duration(&Policy::rendezvous, milliseconds(100), kLongestCheck)},
      {"check", "slice", duration(&Policy::slice, milliseconds(100), kLongestCheck)},
      {"check", "group_size", whole(&Policy::group_size, 2, 1'024)},
      {"probe", "probe_user", text(&Policy::probe_user, check_user)},
      {"probe", "module_directory", path(&Policy::module_directory, true)},
      {"probe", "memory", read_memory},
      {"peers", "first_port", whole(&Policy::first_port, 1, kMaxPort)},
      {"peers", "last_port", whole(&Policy::last_port, 1, kMaxPort)},
      {"peers", "address", text(&Policy::address, check_address)},
      {"peers", "addresses", read_addresses},
      {"peers", "credential", text(&Policy::credential, check_credential)},
      {"peers", "key_file", path(&Policy::key_file, true)},
      {"peers", "munge_socket", path(&Policy::munge_socket, true)},
      {"fabric", "fabric", text(&Policy::fabric, check_fabric)},
      {"fabric", "devices", globs(&Policy::devices)},
      {"fabric", "exclude", globs(&Policy::exclude)},
      {"record", "run_directory", path(&Policy::run_directory, false)},
      {"record", "annotate", read_annotate},
  };
}

}  // namespace netcheck::policy
