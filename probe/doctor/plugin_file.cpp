// The few symbols by which Slurm knows a plugin, read from its file. Loading it here would prove nothing: it
// takes half of its functions from the Slurm program that loads it.
#include <elf.h>
#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "doctor/plugin.h"

namespace netcheck::doctor {

namespace {

constexpr std::size_t kMostEntries = 65'536;  // of any table: netcheck.so has some dozens
constexpr std::size_t kMaxWord = 64;          // plugin_name, plugin_type

/// Bounded views of a file that may be anything.
class Elf {
 public:
  explicit Elf(std::string_view file) : file_(file) {}

  template <typename T>
  [[nodiscard]] std::optional<T> at(std::uint64_t offset) const {
    if (offset > file_.size() || file_.size() - offset < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, file_.data() + offset, sizeof value);
    return value;
  }
  /// The text at `offset`, up to its NUL.
  [[nodiscard]] std::string_view word(std::uint64_t offset, std::size_t most) const {
    if (offset >= file_.size()) return {};
    const std::string_view rest = file_.substr(offset, most);
    return rest.substr(0, rest.find('\0'));
  }
  /// Where in the file lies what is loaded at `address`.
  [[nodiscard]] std::optional<std::uint64_t> offset_of(std::uint64_t address) const {
    const auto header = at<Elf64_Ehdr>(0);
    for (std::uint64_t i = 0; header && i < header->e_phnum; ++i) {
      const auto part = at<Elf64_Phdr>(header->e_phoff + i * sizeof(Elf64_Phdr));
      if (!part) return std::nullopt;
      if (part->p_type == PT_LOAD && address >= part->p_vaddr && address - part->p_vaddr < part->p_filesz)
        return part->p_offset + (address - part->p_vaddr);
    }
    return std::nullopt;
  }
  /// The address of an exported object; nullopt: there is none of this name.
  [[nodiscard]] std::optional<std::uint64_t> symbol(std::string_view name) const {
    const auto header = at<Elf64_Ehdr>(0);
    for (std::uint64_t i = 0; header && i < header->e_shnum; ++i) {
      const auto section = at<Elf64_Shdr>(header->e_shoff + i * sizeof(Elf64_Shdr));
      if (!section || section->sh_type != SHT_DYNSYM) continue;
      const auto names = at<Elf64_Shdr>(header->e_shoff + section->sh_link * sizeof(Elf64_Shdr));
      const std::uint64_t count = std::min<std::uint64_t>(section->sh_size / sizeof(Elf64_Sym), kMostEntries);
      for (std::uint64_t k = 0; names && k < count; ++k) {
        const auto entry = at<Elf64_Sym>(section->sh_offset + k * sizeof(Elf64_Sym));
        if (!entry) return std::nullopt;
        if (entry->st_shndx != SHN_UNDEF && word(names->sh_offset + entry->st_name, kMaxWord) == name)
          return entry->st_value;
      }
    }
    return std::nullopt;
  }

 private:
  std::string_view file_;
};

std::uint16_t own_machine() {
#if defined(__x86_64__)
  return EM_X86_64;
#elif defined(__aarch64__)
  return EM_AARCH64;
#elif defined(__powerpc64__)
  return EM_PPC64;
#elif defined(__riscv)
  return EM_RISCV;
#else
  return EM_NONE;
#endif
}

}  // namespace

Result<PluginFile> read_plugin_file(std::string_view file, const std::string& path) {
  constexpr const char* kAttempted = "read the plugin";
  const Elf elf(file);
  const auto header = elf.at<Elf64_Ehdr>(0);
  constexpr int kOrder = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_type != ET_DYN)
    return fail(kAttempted, path, "it is no shared object", "install netcheck.so anew");
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != kOrder ||
      (own_machine() != EM_NONE && header->e_machine != own_machine()))
    return fail(kAttempted, path, "it was built for another kind of machine",
                "build it on the distribution and the architecture of the nodes");
  const auto place = [&](std::string_view name) {
    const auto address = elf.symbol(name);
    return address ? elf.offset_of(*address) : std::nullopt;
  };
  const auto name = place("plugin_name"), type = place("plugin_type"), version = place("plugin_version");
  const auto number = version ? elf.at<std::uint32_t>(*version) : std::nullopt;
  if (!name || !type || !number)
    return fail(kAttempted, path,
                "it is no plugin of Slurm (plugin_name, plugin_type or plugin_version is missing)",
                "install netcheck.so anew");
  return PluginFile{std::string(elf.word(*name, kMaxWord)), std::string(elf.word(*type, kMaxWord)), *number};
}

}  // namespace netcheck::doctor
