// std::visit with one lambda per alternative. For whoever takes messages, events and actions apart.
#pragma once

namespace netcheck {

template <typename... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};
template <typename... Handlers>
Overloaded(Handlers...) -> Overloaded<Handlers...>;  // C++20 needs none; clang before 17 does

}  // namespace netcheck
