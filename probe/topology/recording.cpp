// A recorded machine in a file, of whichever kind. As whoever runs `netcheck topo`: the file may be anything.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <pugixml.hpp>

#include "contract/wire.h"
#include "system/descriptor.h"
#include "topology/machine.h"
#include "topology/tree.h"

namespace netcheck::topology {

namespace {

/// hwloc writes 1.5 MB for a server of 16 GPUs and 400 cores with everything in it.
constexpr std::size_t kMaxRecordingBytes = 16U << 20;
/// Bridges are nested 12 deep in a server with three layers of switches; hwloc walks them by recursion.
constexpr int kMaxXmlDepth = 64;

constexpr const char* kWanted =
    "what is wanted is hwloc's XML (lstopo --of xml), NCCL's (NCCL_TOPO_DUMP_FILE), or a file of "
    "netcheck topo --save";

/// Neither the file nor its folder may be changed by others than root.
Result<void> check_owner(int file, const std::string& path) {
  const auto others = [](const struct stat& about) {
    return about.st_uid != 0 || (about.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  };
  struct stat about {
  }, folder{};
  const std::size_t slash = path.rfind('/');
  const std::string parent = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  if (::fstat(file, &about) != 0 || others(about) || ::stat(parent.c_str(), &folder) != 0 || others(folder))
    return fail("trust", path, "it can be changed by others than root", "chown root and chmod go-w");
  return {};
}

Result<std::string> read_bounded(const std::string& path, bool trusted) {
  const system::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return fail("read", path, std::strerror(errno));
  struct stat about {};
  if (::fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode))
    return fail("read", path, "it is no regular file");
  if (trusted)
    if (auto owned = check_owner(file.get(), path); !owned) return tl::unexpected(owned.error());
  std::string text;
  std::array<char, 1U << 16> piece;
  while (text.size() <= kMaxRecordingBytes) {
    const ssize_t got = ::read(file.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail("read", path, std::strerror(errno));
    if (got == 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
  return fail("read", path,
              fmt::format("it is larger than {} MiB, and no machine is", kMaxRecordingBytes >> 20), kWanted);
}

std::size_t line_of(std::string_view text, std::size_t offset) {
  return 1 + static_cast<std::size_t>(std::ranges::count(text.substr(0, offset), '\n'));
}

class Depth : public pugi::xml_tree_walker {
 public:
  bool for_each(pugi::xml_node& /*node*/) override { return depth() < kMaxXmlDepth; }
};

/// hwloc 2.9 takes for granted that an object with processors says which, and ends the process where one does
/// not.
class ObjectCheck : public pugi::xml_tree_walker {
 public:
  /// hwloc 1 writes no sets of NUMA nodes where there is but one.
  explicit ObjectCheck(bool nodesets) : nodesets_(nodesets) {}

  bool for_each(pugi::xml_node& node) override {
    if (std::string_view(node.name()) != "object") return true;
    const std::string_view type = node.attribute("type").value();
    for (const char* io : {"Bridge", "PCIDev", "OSDev", "Misc"})
      if (type == io) return true;
    if ((type == "NUMANode" || type == "PU") && !is_index(node.attribute("os_index").value())) {
      wrong_ = fmt::format("an object {} has no os_index", type);
      return false;
    }
    if (!has(node, "cpuset") || !has(node, "complete_cpuset")) return false;
    return !nodesets_ || (has(node, "nodeset") && has(node, "complete_nodeset"));
  }

  [[nodiscard]] const std::string& wrong() const { return wrong_; }

 private:
  bool has(const pugi::xml_node& object, const char* set) {
    if (is_set(object.attribute(set).value())) return true;
    wrong_ = fmt::format("an object {} has no {}", printable(object.attribute("type").value(), 40), set);
    return false;
  }

  static bool is_index(std::string_view text) {
    return !text.empty() && text.size() <= 7 &&
           text.find_first_not_of("0123456789") == std::string_view::npos;
  }
  /// "0x0000ffff,0xffffffff,,0x0", "0xf...f"
  static bool is_set(std::string_view text) {
    return text.rfind("0x", 0) == 0 &&
           text.find_first_not_of("0123456789abcdefABCDEFx,.") == std::string_view::npos;
  }

  bool nodesets_;
  std::string wrong_;
};

Result<Machine> parse_hwloc(pugi::xml_document& document, const std::string& name) {
  ObjectCheck objects(!document.document_element().attribute("version").empty());
  if (!document.traverse(objects))
    return fail("read", name, objects.wrong(), "write it again: lstopo --of xml FILE");
  return tree_of_hwloc_xml(document, name);
}

Result<Machine> parse_xml(std::string_view text, const std::string& name) {
  pugi::xml_document document;
  const pugi::xml_parse_result parsed = document.load_buffer(
      text.data(), text.size(), pugi::parse_minimal | pugi::parse_escapes | pugi::parse_wconv_attribute);
  if (!parsed) {
    const auto offset = static_cast<std::size_t>(std::max<std::ptrdiff_t>(parsed.offset, 0));
    // An element that is not closed is found out at the end of the text, or at the first end that does not
    // fit.
    const std::size_t last = text.find_last_not_of(" \t\r\n");
    const bool cut = last == std::string_view::npos || text[last] != '>' || offset >= last;
    if (cut)
      return fail("read", name,
                  fmt::format("it is cut off: it ends in line {} with elements left open",
                              line_of(text, text.size())),
                  "record it again");
    return fail("read", name,
                fmt::format("line {}: it is no XML ({})", line_of(text, offset), parsed.description()),
                kWanted);
  }
  if (Depth depth; !document.traverse(depth))
    return fail("read", name, fmt::format("its elements are nested deeper than {}", kMaxXmlDepth));
  const std::string_view root = document.document_element().name();
  if (root == "topology") return parse_hwloc(document, name);
  if (root == "system") return tree_of_nccl_xml(document, name);
  return fail("read", name, fmt::format("it is XML of another kind: <{}>", printable(root, 40)), kWanted);
}

Result<Machine> parse_saved(std::string_view text, const std::string& name) {
  const auto json = from_json_text(text, name, kMaxRecordingBytes);
  if (!json) return tl::unexpected(json.error());
  try {
    if (!json->is_object() || !json->contains("netcheck_machine"))
      return fail("read", name, "it is JSON, but no recording of netcheck topo --save", kWanted);
    return machine_from_json(*json);
  } catch (const Malformed& malformed) {
    return fail("read", name, malformed.reason, "record it again");
  } catch (const Json::exception& error) {
    return fail("read", name, error.what());
  }
}

Result<Machine> parse_by_content(std::string_view text, const std::string& name) {
  const std::size_t first = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");  // a byte order mark, too
  if (first == std::string_view::npos) return fail("read", name, "it is empty", kWanted);
  if (text[first] == '{') return parse_saved(text.substr(first), name);
  if (text[first] != '<') return fail("read", name, "it is neither XML nor JSON", kWanted);
  return parse_xml(text, name);
}

}  // namespace

Result<Machine> parse_recording(std::string_view text, const std::string& name) {
  auto machine = parse_by_content(text, name);
  if (machine) machine->source = printable(name, 255);
  return machine;
}

Result<Machine> read_recording(const std::string& path) {
  const auto text = read_bounded(path, false);
  if (!text) return tl::unexpected(text.error());
  return parse_recording(*text, path);
}

Result<Machine> read_trusted_recording(const std::string& path) {
  const auto text = read_bounded(path, true);
  if (!text) return tl::unexpected(text.error());
  return parse_recording(*text, path);
}

}  // namespace netcheck::topology
