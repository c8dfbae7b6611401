// Memory for messages: page-aligned, given back to the system when done. Used by RankRun.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <span>
#include <utility>

namespace netcheck::fabric::ucx {

class Buffer {
 public:
  Buffer() = default;
  /// Throws std::bad_alloc. Not touched yet: pages are given when they are first written.
  explicit Buffer(std::size_t size) : size_(size) {
    if (size == 0) return;
    void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    data_ = static_cast<std::byte*>(memory);
  }
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (data_ != nullptr) ::munmap(data_, size_);
  }

  [[nodiscard]] std::span<std::byte> bytes() const { return {data_, size_}; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace netcheck::fabric::ucx
