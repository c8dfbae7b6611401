// Holds what a room declares of a library's binary interface to the library's own header. It is the compiler
// that tests.
#pragma once

#include <cstddef>
#include <type_traits>

namespace netcheck {

/// Two types that a call passes in the same way: of one size and kind.
template <typename Ours, typename Theirs>
constexpr bool passes_alike() {
  if constexpr (std::is_void_v<Ours> || std::is_void_v<Theirs>) {
    return std::is_void_v<Ours> && std::is_void_v<Theirs>;
  } else {
    return sizeof(Ours) == sizeof(Theirs) && alignof(Ours) >= alignof(Theirs) &&
           std::is_pointer_v<Ours> == std::is_pointer_v<Theirs> &&
           std::is_class_v<Ours> == std::is_class_v<Theirs> &&
           std::is_floating_point_v<Ours> == std::is_floating_point_v<Theirs>;
  }
}

template <typename Ours, typename Theirs>
struct Alike : std::false_type {};
template <typename R, typename... As, typename S, typename... Bs>
requires(sizeof...(As) == sizeof...(Bs)) struct Alike<R (*)(As...), S (*)(Bs...)>
    : std::bool_constant<passes_alike<R, S>() && (passes_alike<As, Bs>() && ...)> {
};

#define SAME_CALL(table, ours, theirs) static_assert(Alike<decltype(table::ours), decltype(&theirs)>::value)
#define SAME_VALUE(ours, theirs) static_assert(static_cast<long long>(ours) == static_cast<long long>(theirs))

}  // namespace netcheck
