// The tree as a drawing: boxes in boxes for sockets, NUMA nodes and switches, as lstopo draws them, and a box
// for each GPU and port with the link that leads to it. No scripts, no fonts of its own: fit for a ticket or
// a web page.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "picture/outline.h"
#include "picture/picture.h"

namespace netcheck::picture {

namespace {

// In pixels. Capitals and digits of a wide sans-serif font of 12 are 7.6 wide on average.
constexpr int kLetter = 8, kLine = 16, kGap = 10, kPad = 10, kFont = 12;
constexpr int kMinLeaf = 110, kRowWidth = 1500, kMargin = 16;

struct Box {
  const Node* node = nullptr;
  int width = 0, height = 0;
  int x = 0, y = 0;  ///< within its parent
  std::vector<std::string> lines;
  std::vector<Box> below;
};

struct Paint {
  const char* fill;
  const char* line;
};

Paint paint_of(const Node& node) {
  if (node.trouble) return {"#fde2e2", "#c62828"};
  switch (node.part) {
    case Part::socket:
      return {"#f7f7f5", "#9e9e9e"};
    case Part::numa:
      return {"#eef2f6", "#90a4ae"};
    case Part::bridge:
    case Part::switch_:
      return {"#ffffff", "#607d8b"};
    case Part::gpu:
      return {"#e3f2e1", "#2e7d32"};
    case Part::port:
      return node.about.find("[not fabric") == std::string::npos ? Paint{"#e1effb", "#1565c0"}
                                                                 : Paint{"#f0f0f0", "#9e9e9e"};
    case Part::nic:
    case Part::nvswitch:
      return {"#f3f0fa", "#5e35b1"};
  }
  return {"#ffffff", "#000000"};
}

int columns_of(const std::string& text) {
  return static_cast<int>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::vector<std::string> lines_of(const Node& node) {
  std::vector<std::string> lines{node.name};
  const bool frame = node.part == Part::socket || node.part == Part::numa;
  if (!node.place.empty()) lines[0] += "  " + node.place;
  if (!node.link.empty()) lines.push_back(node.link);
  if (node.about.empty()) return lines;
  if (frame)
    lines[0] += "  " + node.about;
  else if (const std::size_t role = node.about.find("  [not fabric"); role != std::string::npos)
    lines.insert(lines.end(), {node.about.substr(0, role), node.about.substr(role + 2)});
  else
    lines.push_back(node.about);
  return lines;
}

/// Places the boxes in rows of at most `widest`; returns the space that they take.
std::pair<int, int> place(std::vector<Box>& boxes, int widest) {
  int x = 0, y = 0, row = 0, width = 0;
  for (Box& box : boxes) {
    if (x > 0 && x + box.width > widest) {
      x = 0;
      y += row + kGap;
      row = 0;
    }
    box.x = x;
    box.y = y;
    x += box.width + kGap;
    row = std::max(row, box.height);
    width = std::max(width, box.x + box.width);
  }
  return {width, y + row};
}

Box lay_out(const Node& node) {
  Box box;
  box.node = &node;
  box.lines = lines_of(node);
  int text = kMinLeaf;
  for (const std::string& line : box.lines)
    text = std::max(text, columns_of(line) * kLetter + 2 * kPad);
  const int head = static_cast<int>(box.lines.size()) * kLine + kPad;
  for (const Node& child : node.below)
    box.below.push_back(lay_out(child));
  const auto [width, height] = place(box.below, kRowWidth - 4 * kPad);
  box.width = std::max(text, width + 2 * kPad);
  box.height = head + kPad / 2 + (box.below.empty() ? 0 : height + kPad);
  return box;
}

void draw(const Box& box, int x, int y, std::string& out) {
  const Paint paint = paint_of(*box.node);
  out += fmt::format(
      R"(<rect x="{}" y="{}" width="{}" height="{}" rx="4" fill="{}" stroke="{}" stroke-width="{}"/>)", x, y,
      box.width, box.height, paint.fill, paint.line, box.node->trouble ? 2 : 1);
  out += '\n';
  int line_y = y + kLine;
  for (std::size_t i = 0; i < box.lines.size(); ++i) {
    out += fmt::format(R"(<text x="{}" y="{}"{}>{}</text>)", x + kPad, line_y,
                       i == 0 ? R"( font-weight="bold")" : "", escaped(box.lines[i]));
    out += '\n';
    line_y += kLine;
  }
  const int head = static_cast<int>(box.lines.size()) * kLine + kPad;
  for (const Box& child : box.below)
    draw(child, x + kPad + child.x, y + head + child.y, out);
}

/// Below the drawing: the limit, then the findings.
std::vector<std::pair<std::string, bool>> captions(const Limits& limits,
                                                   const std::vector<judge::Finding>& findings) {
  std::vector<std::pair<std::string, bool>> lines;
  lines.emplace_back("limit: " + limits.derivation, false);
  if (limits.nominal && limits.present && *limits.present < *limits.nominal)
    lines.emplace_back("at present: " + in_words(*limits.present), true);
  for (const judge::Finding& finding : findings)
    lines.emplace_back(fmt::format("{}: {}", judge::name_of(finding.severity), finding.what),
                       finding.severity == judge::Severity::fault);
  return lines;
}

}  // namespace

std::string svg(const Machine& machine, const Limits& limits, const std::vector<judge::Finding>& findings) {
  const std::vector<Node> nodes = outline(machine);
  std::vector<Box> boxes;
  std::ranges::transform(nodes, std::back_inserter(boxes), lay_out);
  auto [width, height] = place(boxes, kRowWidth);
  const std::string all = heading(machine);
  const std::string title = all.substr(0, all.find('\n'));
  const auto below = captions(limits, findings);
  width = std::max(width, columns_of(title) * kLetter);
  for (const auto& [line, red] : below)
    width = std::max(width, columns_of(line) * kLetter);
  const int top = kMargin + kLine + kGap,
            total = top + height + kGap + static_cast<int>(below.size()) * kLine + kMargin;
  std::string out = fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}" font-family="sans-serif" font-size="{2}">)",
      width + 2 * kMargin, total, kFont);
  out += fmt::format("\n<title>{}</title>\n", escaped(title));
  out += R"(<rect width="100%" height="100%" fill="#ffffff"/>)";
  out += fmt::format("\n<text x=\"{}\" y=\"{}\" font-weight=\"bold\">{}</text>\n", kMargin, kMargin + kFont,
                     escaped(title));
  for (const Box& box : boxes)
    draw(box, kMargin + box.x, top + box.y, out);
  int y = top + height + kGap + kLine;
  for (const auto& [line, red] : below) {
    out += fmt::format("<text x=\"{}\" y=\"{}\"{}>{}</text>\n", kMargin, y, red ? " fill=\"#c62828\"" : "",
                       escaped(line));
    y += kLine;
  }
  return out + "</svg>\n";
}

}  // namespace netcheck::picture
