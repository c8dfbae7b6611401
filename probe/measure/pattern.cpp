// What batches carry and how it is checked. Pure. Called by the fabric modules and the simulator, as the
// probe user, outside the timing. Everything repeats after kPeriod elements, so one period of expected
// elements is worked out once and the buffer compared with it at memory speed.
#include "measure/pattern.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "measure/collective.h"
#include "measure/schedule.h"

namespace netcheck {
namespace {

constexpr std::uint64_t kPeriod = 4'099;  // the prime after 4,096: see pattern.h
/// Ranks that contribute to one element of a bf16 sum: 32 · 7 = 224 ≤ 256, up to which bf16 is exact.
constexpr std::uint32_t kBf16Ranks = 32;
constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;  // splitmix64's increment, 2^64 / golden ratio

/// The finaliser of splitmix64 (Vigna, public domain).
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EB;
  return x ^ (x >> 31U);
}

bool sums(Op op) {
  return op == Op::all_reduce || op == Op::reduce_scatter || op == Op::reduce;
}

/// pattern(), thinned out where a sum would not be exact. Its period is kPeriod for every k.
std::uint32_t contribution(const Batch& batch, std::uint32_t ranks, std::uint32_t rank, std::uint64_t index) {
  index %= kPeriod;
  if (sums(batch.op) && batch.type == Type::bf16) {
    const std::uint64_t k = (ranks + kBf16Ranks - 1) / kBf16Ranks;
    if ((rank + index) % k != 0) return 0;
  }
  return pattern(batch.seed, rank, index);
}

/// A small integer as an element.
template <Type type>
auto encode(std::uint32_t value) {
  if constexpr (type == Type::u8) return static_cast<std::uint8_t>(value);
  if constexpr (type == Type::i32) return static_cast<std::int32_t>(value);
  if constexpr (type == Type::f32) return static_cast<float>(value);
  if constexpr (type == Type::bf16) {
    const auto whole = static_cast<float>(value);
    std::uint32_t bits = 0;
    std::memcpy(&bits, &whole, sizeof bits);
    return static_cast<std::uint16_t>(bits >> 16U);
  }
}
template <Type type>
using Element = decltype(encode<type>(0));

/// Calls `body` with the type as a constant.
template <typename Body>
auto with_type(Type type, Body body) {
  switch (type) {
    case Type::u8:
      return body(std::integral_constant<Type, Type::u8>{});
    case Type::i32:
      return body(std::integral_constant<Type, Type::i32>{});
    case Type::bf16:
      return body(std::integral_constant<Type, Type::bf16>{});
    case Type::f32:
      break;
  }
  return body(std::integral_constant<Type, Type::f32>{});
}

/// Elements of one buffer from `first` on, as bytes: value(index) for each index, one period of it, or less
/// where `bytes` is less.
template <typename Value>
std::vector<std::byte> one_period(Type type, std::uint64_t first, std::uint64_t bytes, Value value) {
  return with_type(type, [&](auto constant) {
    using T = Element<decltype(constant)::value>;
    const std::uint64_t count = std::min<std::uint64_t>(kPeriod, bytes / sizeof(T));
    std::vector<std::byte> table(count * sizeof(T));
    for (std::uint64_t i = 0; i < count; ++i) {
      const T element = encode<decltype(constant)::value>(value(first + i));
      std::memcpy(&table[i * sizeof(T)], &element, sizeof element);
    }
    return table;
  });
}

std::vector<std::byte> from_rank(const Batch& batch, std::uint32_t ranks, std::uint32_t rank, Piece piece) {
  return one_period(batch.type, piece.offset / size_of(batch.type), piece.length,
                    [&](std::uint64_t index) { return contribution(batch, ranks, rank, index); });
}

std::vector<std::byte> from_all(const Batch& batch, std::uint32_t ranks, Piece piece) {
  return one_period(batch.type, piece.offset / size_of(batch.type), piece.length, [&](std::uint64_t index) {
    std::uint32_t sum = 0;
    for (std::uint32_t rank = 0; rank < ranks; ++rank)
      sum += contribution(batch, ranks, rank, index);
    return sum;
  });
}

void write(std::span<std::byte> to, const std::vector<std::byte>& period) {
  for (std::size_t at = 0; at < to.size() && !period.empty(); at += period.size())
    std::memcpy(&to[at], period.data(), std::min(period.size(), to.size() - at));
}

/// Elements of `got` that differ from the period repeated.
std::uint64_t differences(std::span<const std::byte> got, const std::vector<std::byte>& period,
                          std::size_t element) {
  std::uint64_t wrong = 0;
  for (std::size_t at = 0; at < got.size() && !period.empty(); at += period.size()) {
    const std::size_t length = std::min(period.size(), got.size() - at);
    if (std::memcmp(&got[at], period.data(), length) == 0) continue;
    for (std::size_t i = 0; i + element <= length; i += element)
      wrong += std::memcmp(&got[at + i], &period[i], element) != 0 ? 1U : 0U;
  }
  return wrong;
}

Piece whole(const Batch& batch) {
  return {0, batch.bytes};
}
Piece block(const Batch& batch, std::uint32_t ranks, std::uint32_t index) {
  const std::uint64_t length = batch.bytes / ranks;
  return {index * length, length};
}

/// What `rank` holds before the operation.
Piece contributed(const Batch& batch, std::uint32_t ranks, std::uint32_t rank) {
  switch (batch.op) {
    case Op::all_gather:
    case Op::gather:
      return block(batch, ranks, rank);
    case Op::broadcast:
    case Op::scatter:
      return rank == batch.root ? whole(batch) : Piece{};
    case Op::all_reduce:
    case Op::reduce_scatter:
    case Op::reduce:
    case Op::alltoall:
    case Op::transfer:
      break;
  }
  return whole(batch);
}

/// One part of a result: bytes `at` of the result buffer hold `source` of the rank `from`'s buffer, or of the
/// sum of all.
struct Part {
  Piece at;
  std::optional<std::uint32_t> from;  // nullopt: the sum over all ranks
  Piece source;
};

/// What `rank` should hold afterwards.
std::vector<Part> expected(const Batch& batch, std::uint32_t ranks, std::uint32_t rank) {
  const Piece all = whole(batch);
  const bool is_root = rank == batch.root;
  const auto own_block = block(batch, ranks, rank);
  std::vector<Part> parts;
  switch (batch.op) {
    case Op::all_reduce:
      return {{all, {}, all}};
    case Op::reduce:
      if (is_root) return {{all, {}, all}};
      return {};
    case Op::reduce_scatter:
      return {{own_block, {}, own_block}};
    case Op::broadcast:
      return {{all, batch.root, all}};
    case Op::scatter:
      return {{own_block, batch.root, own_block}};
    case Op::gather:
      if (!is_root) return {};
      [[fallthrough]];
    case Op::all_gather:
      for (std::uint32_t i = 0; i < ranks; ++i)
        parts.push_back({block(batch, ranks, i), i, block(batch, ranks, i)});
      return parts;
    case Op::alltoall:
      for (std::uint32_t i = 0; i < ranks; ++i)
        if (i != rank) parts.push_back({block(batch, ranks, i), i, own_block});
      return parts;
    case Op::transfer:
      for (const auto& edge : batch.edges)
        if (edge.to == rank) parts.push_back({all, edge.from, all});
      return parts;
  }
  return parts;
}

std::vector<std::byte> period_of(const Batch& batch, std::uint32_t ranks, const Part& part) {
  return part.from ? from_rank(batch, ranks, *part.from, part.source) : from_all(batch, ranks, part.source);
}

/// Blocks of this many elements have a trip count that the compiler knows, so that the sum is vectorised.
constexpr std::size_t kLane = 64;

template <typename T, typename Add>
void add_as(std::span<const std::byte> from, std::span<std::byte> into, Add add) {
  const std::size_t count = std::min(from.size(), into.size()) / sizeof(T);
  std::array<T, kLane> a{};
  std::array<T, kLane> b{};
  for (std::size_t i = 0; i < count; i += kLane) {
    const std::size_t length = std::min(kLane, count - i) * sizeof(T);
    std::memcpy(a.data(), &from[i * sizeof(T)], length);
    std::memcpy(b.data(), &into[i * sizeof(T)], length);
    for (std::size_t j = 0; j < kLane; ++j)
      b[j] = add(a[j], b[j]);
    std::memcpy(&into[i * sizeof(T)], b.data(), length);
  }
}

float widen(std::uint16_t bits) {
  const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16U;
  float value = 0;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

/// To nearest, ties to even: add just under half of the last place kept, and its lowest bit.
std::uint16_t narrow(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U);
}

}  // namespace

std::uint8_t pattern(std::uint64_t seed, std::uint32_t rank, std::uint64_t index) {
  const std::uint64_t place = rank * kPeriod + index % kPeriod + 1;
  return static_cast<std::uint8_t>(mix(seed + kGolden * place) >> 61U);
}

void poison(std::span<std::byte> landing) {
  std::fill(landing.begin(), landing.end(), kPoison);
}

std::vector<Stretch> contributed_stretches(const Batch& batch, std::uint32_t ranks, std::uint32_t rank) {
  const Piece own = contributed(batch, ranks, rank);
  if (own.length == 0) return {};
  return {{own.offset, own.length, from_rank(batch, ranks, rank, own)}};
}

std::vector<Stretch> expected_stretches(const Batch& batch, std::uint32_t ranks, std::uint32_t rank) {
  std::vector<Stretch> stretches;
  for (const auto& part : expected(batch, ranks, rank))
    stretches.push_back({part.at.offset, part.at.length, period_of(batch, ranks, part)});
  return stretches;
}

void fill(const Batch& batch, std::uint32_t ranks, std::uint32_t rank, std::span<std::byte> work) {
  const Piece own = contributed(batch, ranks, rank);
  if (own.length < work.size()) poison(work);
  if (own.offset + own.length > work.size()) return;
  write(work.subspan(own.offset, own.length), from_rank(batch, ranks, rank, own));
}

std::uint64_t count_wrong(const Batch& batch, std::uint32_t ranks, std::uint32_t rank,
                          std::span<const std::byte> result) {
  const std::size_t element = size_of(batch.type);
  std::uint64_t wrong = 0;
  for (const auto& part : expected(batch, ranks, rank)) {
    if (part.at.offset + part.at.length > result.size()) {
      wrong += part.at.length / element;
      continue;
    }
    wrong +=
        differences(result.subspan(part.at.offset, part.at.length), period_of(batch, ranks, part), element);
  }
  return wrong;
}

void add_elements(Type type, std::span<const std::byte> from, std::span<std::byte> into) {
  switch (type) {
    case Type::u8:
      return add_as<std::uint8_t>(
          from, into, [](std::uint8_t a, std::uint8_t b) { return static_cast<std::uint8_t>(a + b); });
    case Type::i32:  // unsigned: wraps, where signed would be undefined
      return add_as<std::uint32_t>(from, into, [](std::uint32_t a, std::uint32_t b) { return a + b; });
    case Type::f32:
      return add_as<float>(from, into, [](float a, float b) { return a + b; });
    case Type::bf16:
      return add_as<std::uint16_t>(
          from, into, [](std::uint16_t a, std::uint16_t b) { return narrow(widen(a) + widen(b)); });
  }
}

}  // namespace netcheck
