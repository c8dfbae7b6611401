// A reader of the little PTX that the NCCL module's kernels are made of, one thread after the other: no GPU
// is needed to see that they do what their names say. What it does not know ends the test.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace netcheck::testing_ptx {

using Values = std::map<std::string, std::uint64_t>;

class Kernel {
 public:
  Kernel(const std::string& module, const std::string& name) {
    const auto entry = module.find(".entry " + name + "(");
    if (entry == std::string::npos) throw std::runtime_error("no kernel " + name);
    const auto open = module.find('{', entry), close = module.find('}', open);
    std::istringstream body(module.substr(open + 1, close - open - 1));
    for (std::string line; std::getline(body, line);) {
      const auto first = line.find_first_not_of(' ');
      if (first == std::string::npos || line.compare(first, 4, ".reg") == 0) continue;
      if (line.back() == ':')
        labels_[line.substr(first, line.size() - first - 1)] = code_.size();
      else
        code_.push_back(words_of(line.substr(first)));
    }
  }

  /// With a grid of `blocks` by `threads`.
  void run(unsigned blocks, unsigned threads, const Values& parameters) const {
    for (unsigned block = 0; block < blocks; ++block)
      for (unsigned thread = 0; thread < threads; ++thread)
        run_thread({{"%ctaid.x", block}, {"%ntid.x", threads}, {"%tid.x", thread}, {"%nctaid.x", blocks}},
                   parameters);
  }

 private:
  /// "@%p1 bra end;" → "@%p1", "bra", "end"; "ld.global.u8 %r1, [%rd2];" → "ld.global.u8", "%r1", "%rd2".
  static std::vector<std::string> words_of(std::string line) {
    for (char& c : line)
      if (c == ',' || c == ';' || c == '[' || c == ']') c = ' ';
    std::istringstream text(line);
    std::vector<std::string> words;
    for (std::string word; text >> word;)
      words.push_back(word);
    return words;
  }
  static unsigned bits_of(const std::string& operation) {
    return static_cast<unsigned>(std::stoul(operation.substr(operation.find_last_not_of("0123456789") + 1)));
  }
  static std::uint64_t cut(std::uint64_t value, unsigned bits) {
    return bits == 64 ? value : value & ((std::uint64_t{1} << bits) - 1);
  }

  void run_thread(Values registers, const Values& parameters) const {
    const auto value = [&registers](const std::string& word) {
      return word[0] == '%' ? registers.at(word) : std::stoull(word);
    };
    for (std::size_t at = 0; at < code_.size();) {
      std::vector<std::string> words = code_[at++];
      if (words[0][0] == '@') {
        if (registers.at(words[0].substr(1)) == 0) continue;
        words.erase(words.begin());
      }
      const std::string operation = words[0], kind = operation.substr(0, operation.find('.'));
      if (operation == "ret") return;
      if (operation == "bra") {
        at = labels_.at(words[1]);
        continue;
      }
      const unsigned bits = bits_of(operation);
      const auto operand = [&](std::size_t i) { return value(words.at(i)); };
      if (operation.starts_with("ld.param")) {
        registers[words[1]] = cut(parameters.at(words[2]), bits);
      } else if (operation.starts_with("ld.global")) {
        std::uint64_t loaded = 0;
        std::memcpy(&loaded, reinterpret_cast<const void*>(operand(2)), bits / 8);
        registers[words[1]] = loaded;
      } else if (operation.starts_with("st.global")) {
        const std::uint64_t stored = operand(2);
        std::memcpy(reinterpret_cast<void*>(operand(1)), &stored, bits / 8);
      } else if (operation == "red.global.add.u64") {
        *reinterpret_cast<std::uint64_t*>(operand(1)) += operand(2);
      } else if (kind == "mov" || kind == "cvt" || kind == "cvta") {
        registers[words[1]] = operand(2);
      } else if (kind == "mul") {
        registers[words[1]] = operation.find(".wide") != std::string::npos
                                  ? operand(2) * operand(3)
                                  : cut(operand(2) * operand(3), bits);
      } else if (kind == "mad") {
        registers[words[1]] = cut(operand(2) * operand(3) + operand(4), bits);
      } else if (kind == "add") {
        registers[words[1]] = cut(operand(2) + operand(3), bits);
      } else if (kind == "sub") {
        registers[words[1]] = cut(operand(2) - operand(3), bits);
      } else if (kind == "rem") {
        registers[words[1]] = operand(2) % operand(3);
      } else if (operation.starts_with("setp.ge")) {
        registers[words[1]] = operand(2) >= operand(3) ? 1 : 0;
      } else if (operation.starts_with("setp.ne")) {
        registers[words[1]] = operand(2) != operand(3) ? 1 : 0;
      } else if (operation.starts_with("setp.eq")) {
        registers[words[1]] = operand(2) == operand(3) ? 1 : 0;
      } else {
        throw std::runtime_error("an instruction that this reader does not know: " + operation);
      }
    }
  }

  std::vector<std::vector<std::string>> code_;
  std::map<std::string, std::size_t> labels_;
};

}  // namespace netcheck::testing_ptx
