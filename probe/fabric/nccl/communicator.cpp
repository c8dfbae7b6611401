#include "fabric/nccl/communicator.h"

#include <fmt/format.h>

#include "contract/nccl_version.h"
#include "fabric/nccl/library.h"

namespace netcheck::fabric::nccl {

namespace {

constexpr std::size_t kScratch = 256;

Breakdown refused(const Error& error) {
  return {judge::Trouble::refused, describe(error)};
}

/// NCCL's hint is for whoever can set its environment.
std::string without_hint(std::string text) {
  if (const auto hint = text.find(" (run with NCCL_DEBUG"); hint != std::string::npos) text.resize(hint);
  return text;
}

}  // namespace

Result<Nccl> Nccl::open(const std::string& path) {
  auto calls = load_nccl(path);
  if (!calls) return tl::unexpected(calls.error());
  Nccl nccl;
  nccl.calls_ = *calls;
  int code = 0;
  static_cast<void>(nccl.calls_.get_version(&code));
  nccl.version_ = nccl_version(code);
  return nccl;
}

Result<NcclId> Nccl::unique_id() const {
  NcclId id{};
  const NcclResult result = calls_.get_unique_id(&id);
  if (result != NcclResult::success)
    return fail("ask for a unique id", "NCCL " + version_, breakdown(result, nullptr).detail);
  return id;
}

NcclResult Nccl::group(const std::function<NcclResult()>& body) const {
  if (const NcclResult result = calls_.group_start(); result != NcclResult::success) return result;
  const NcclResult called = body();
  const NcclResult ended = calls_.group_end();
  return called == NcclResult::success || called == NcclResult::in_progress ? ended : called;
}

tl::expected<bool, Breakdown> Nccl::settled(NcclComm* communicator) const {
  NcclResult state = NcclResult::success;
  const NcclResult asked = calls_.comm_get_async_error(communicator, &state);
  if (asked != NcclResult::success) state = asked;
  if (state == NcclResult::in_progress) return false;
  if (state != NcclResult::success) return tl::unexpected(breakdown(state, communicator));
  return true;
}

Breakdown Nccl::breakdown(NcclResult result, NcclComm* communicator) const {
  const char* general = calls_.get_error_string(result);
  const char* last = calls_.get_last_error(communicator);
  Breakdown breakdown;
  if (result == NcclResult::remote_error) breakdown.trouble = judge::Trouble::no_bytes;
  breakdown.detail = "NCCL: " + without_hint(general == nullptr ? "an unknown error" : general);
  if (last != nullptr && *last != '\0') breakdown.detail += fmt::format(": {}", last);
  breakdown.detail = printable(breakdown.detail, 384);
  return breakdown;
}

// --- forming ----------------------------------------------------------------------------------------------

tl::expected<std::unique_ptr<Forming>, Breakdown> Forming::start(const Nccl& nccl, Plan plan) {
  std::unique_ptr<Forming> forming(new Forming(nccl, std::move(plan)));
  for (auto& seat : forming->plan_.seats) {
    auto stream = seat.gpu->use().and_then([&seat] { return seat.gpu->stream(); });
    if (!stream) return tl::unexpected(refused(stream.error()));
    seat.stream = *stream;
  }
  NcclConfig config;
  config.blocking = 0;
  const NcclResult result = nccl.group([&] {
    for (auto& seat : forming->plan_.seats) {
      if (!seat.gpu->use()) return NcclResult::unhandled_cuda_error;
      const NcclResult one =
          nccl.calls().comm_init_rank_config(&seat.communicator, static_cast<int>(forming->plan_.ranks),
                                             forming->plan_.id, static_cast<int>(seat.rank), &config);
      if (one != NcclResult::success && one != NcclResult::in_progress) return one;
    }
    return NcclResult::success;
  });
  if (result == NcclResult::success || result == NcclResult::in_progress) return forming;
  static_cast<void>(forming.release());  // see communicator.h: of a part of it NCCL may not have let go
  return tl::unexpected(nccl.breakdown(result, nullptr));
}

tl::expected<bool, Breakdown> Forming::step() {
  if (phase_ == Phase::first) {
    for (std::size_t i = 0; i < first_.size(); ++i) {
      const auto reached = plan_.seats[i].gpu->reached(first_[i]);
      if (!reached) return tl::unexpected(refused(reached.error()));
      if (auto healthy = nccl_.settled(plan_.seats[i].communicator); !healthy) return healthy;
      if (!*reached) return false;
    }
    for (std::size_t i = 0; i < scratch_.size(); ++i)
      plan_.seats[i].gpu->give(scratch_[i]);
    return true;
  }
  auto settled = all_settled();
  if (!settled || !*settled) return settled;
  auto went = phase_ == Phase::init ? connect() : mark();
  if (!went) return tl::unexpected(went.error());
  phase_ = phase_ == Phase::init ? Phase::connect : Phase::first;
  return false;
}

tl::expected<bool, Breakdown> Forming::all_settled() const {
  for (const auto& seat : plan_.seats) {
    if (seat.communicator == nullptr) return false;  // not made yet
    auto settled = nccl_.settled(seat.communicator);
    if (!settled || !*settled) return settled;
  }
  return true;
}

tl::expected<void, Breakdown> Forming::connect() {
  for (const auto& seat : plan_.seats) {
    auto memory = seat.gpu->take(kScratch);
    if (!memory) return tl::unexpected(refused(memory.error()));
    scratch_.push_back(*memory);
  }
  const NcclResult result = nccl_.group([this] {
    for (std::size_t i = 0; i < scratch_.size(); ++i) {
      const auto& seat = plan_.seats[i];
      if (!seat.gpu->use()) return NcclResult::unhandled_cuda_error;
      const NcclResult one =
          nccl_.calls().all_reduce(scratch_[i].at(0), scratch_[i].at(kScratch / 2), 1, NcclType::i32,
                                   NcclReduction::sum, seat.communicator, seat.stream);
      if (one != NcclResult::success && one != NcclResult::in_progress) return one;
    }
    return NcclResult::success;
  });
  if (result != NcclResult::success && result != NcclResult::in_progress)
    return tl::unexpected(nccl_.breakdown(result, plan_.seats.front().communicator));
  return {};
}

tl::expected<void, Breakdown> Forming::mark() {
  for (const auto& seat : plan_.seats) {
    auto marked = seat.gpu->use().and_then([&seat] { return seat.gpu->event(); });
    if (!marked) return tl::unexpected(refused(marked.error()));
    first_.push_back(std::move(*marked));
    if (auto recorded = seat.gpu->record(seat.stream, first_.back()); !recorded)
      return tl::unexpected(refused(recorded.error()));
  }
  return {};
}

}  // namespace netcheck::fabric::nccl
