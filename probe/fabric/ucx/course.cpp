// One rank's steps through one batch.
#include "fabric/ucx/course.h"

#include <algorithm>
#include <set>

#include "measure/pattern.h"

namespace netcheck::fabric::ucx {

namespace {

/// Steps whose receives are posted ahead, and receives at most: a pipelined chain has steps of one message,
/// and a receiver that gets a whole slice of processor late must not find them all used up.
constexpr std::uint64_t kStepsAhead = 32;
constexpr std::size_t kReceivesAhead = 512;
constexpr std::uint64_t kOperationsAhead = 2;  // of a sender that gets credits

Time now() {
  return std::chrono::steady_clock::now();
}

bool overlap(const Piece& one, const Piece& other) {
  return one.offset < other.offset + other.length && other.offset < one.offset + one.length;
}

/// Whether what `next` receives into the working buffer may arrive while `current` is under way.
bool may_overtake(const Round& next, const Round& current) {
  for (const auto& receive : next.receives) {
    if (receive.store != Store::put) continue;
    const auto meets = [&receive](const auto& other) { return overlap(receive.piece, other.piece); };
    if (std::any_of(current.sends.begin(), current.sends.end(), meets)) return false;
    if (std::any_of(current.receives.begin(), current.receives.end(), meets)) return false;
  }
  return true;
}

std::size_t added_bytes(const Round& round) {
  std::size_t bytes = 0;
  for (const auto& receive : round.receives)
    if (receive.store == Store::add) bytes += receive.piece.length;
  return bytes;
}

template <typename List>
std::vector<std::uint32_t> distinct(
    const std::vector<Round>& rounds, List list,
    std::uint32_t (*who)(const typename std::decay_t<decltype(rounds[0].*list)>::value_type&)) {
  std::set<std::uint32_t> found;
  for (const auto& round : rounds)
    for (const auto& one : round.*list)
      found.insert(who(one));
  return {found.begin(), found.end()};
}

}  // namespace

Course::Course(const Ground& ground, Plan plan, Memory memory)
    : lane_(ground.lane),
      pulse_(ground.pulse),
      plan_(std::move(plan)),
      memory_(memory),
      reach_(ground.reach) {
  pass_barrier();
  at_start_ = whole_tally();
  for (const auto& round : plan_.rounds)
    slot_ = std::max(slot_, added_bytes(round));
  adds_ = slot_ > 0;
  staging_.resize(2 * slot_);
  if (plan_.credits) {
    senders_ = distinct(plan_.rounds, &Round::receives, [](const Receive& one) { return one.from; });
    receivers_ = distinct(plan_.rounds, &Round::sends, [](const Send& one) { return one.to; });
  }
  // Nothing to exchange: a team of one.
  for (std::uint32_t i = 0; plan_.rounds.empty() && i < plan_.warmup + plan_.iterations; ++i)
    finish_operation();
}

std::uint64_t Course::total() const {
  return std::uint64_t{plan_.warmup + plan_.iterations} * plan_.rounds.size() + plan_.barrier.size() +
         plan_.end.size();
}

bool Course::in_barrier(std::uint64_t step) const {
  return step >= barrier_begin() && step < barrier_begin() + plan_.barrier.size();
}

const std::vector<Round>& Course::rounds_of(std::uint64_t step) const {
  return in_end(step) ? plan_.end : in_barrier(step) ? plan_.barrier : plan_.rounds;
}

std::size_t Course::round_index(std::uint64_t step) const {
  if (in_end(step)) return static_cast<std::size_t>(step - end_begin());
  if (in_barrier(step)) return static_cast<std::size_t>(step - barrier_begin());
  if (step >= barrier_begin()) step -= barrier_begin() + plan_.barrier.size();
  return static_cast<std::size_t>(step % plan_.rounds.size());
}

const Round& Course::round(std::uint64_t step) const {
  return rounds_of(step)[round_index(step)];
}

bool Course::step() {
  if (lane_.down()) return false;  // until the batch is given up: no bytes
  bool moved = false;
  if (partners_.empty()) connect();
  while (!breakdown_ && current_ < total() && !held()) {
    post_receives();
    if (!may_begin()) break;
    if (!steps_.front().sent) {
      steps_.front().sent = true;
      moved = true;
      post_sends_of(current_);
    }
    Step& front = steps_.front();
    if (!front.arrived.empty()) {
      add_arrived(front);
      moved = true;
    }
    if (front.sends > 0 || front.receives > 0 || breakdown_) break;
    finish_step();
    moved = true;
  }
  return moved;
}

/// To everyone at once, those that only send to this rank too: a connection that breaks is how their end is
/// noticed.
void Course::connect() {
  for (const auto* rounds : {&plan_.rounds, &plan_.barrier, &plan_.end})
    for (const auto& round : *rounds) {
      for (const auto& one : round.sends)
        partners_[one.to] = nullptr;
      for (const auto& one : round.receives)
        partners_[one.from] = nullptr;
    }
  for (auto& [rank, peer] : partners_) {
    peer = &reach_(rank);
    if (peer->endpoint == nullptr && !breakdown_) fail(peer->error, peer);
  }
}

// --- steps ------------------------------------------------------------------------------------------------

void Course::post_receives() {
  while (current_ + steps_.size() < total()) {
    const std::uint64_t next = current_ + steps_.size();
    if (next > current_ && !may_receive_ahead(next)) return;
    steps_.emplace_back();
    post_receives_of(next);
  }
}

bool Course::may_receive_ahead(std::uint64_t step) const {
  const std::uint64_t ahead = step - current_;
  // Without sums every operation puts the same bytes in the same places: early is as good as in time. With
  // sums, what is added waits in one of two slots, and what is put must not meet what is in use.
  if (!adds_) return ahead == 1 || (ahead <= kStepsAhead && receives_posted_ < kReceivesAhead);
  return ahead == 1 && (of_tokens(step) || of_tokens(current_) || may_overtake(round(step), round(current_)));
}

void Course::post_receives_of(std::uint64_t step) {
  if (of_tokens(step)) {
    for (const auto& one : round(step).receives)
      receive(Kind::token, one.from, {}, step);
    return;
  }
  std::span<std::byte> slot = std::span(staging_).subspan(slot_ * (step % 2), slot_);
  for (const auto& one : round(step).receives) {
    const auto [offset, length] = one.piece;
    std::span<std::byte> place;
    if (one.store == Store::add) {
      place = slot.first(length);
      slot = slot.subspan(length);
    } else {
      place = (one.store == Store::land ? memory_.landing : memory_.work).subspan(offset, length);
    }
    for (std::size_t at = 0; at < length; at += lane_.piece()) {
      const std::size_t bytes = std::min(lane_.piece(), length - at);
      receive(Kind::data, one.from, place.subspan(at, bytes), step,
              one.store == Store::add ? static_cast<std::int64_t>(offset + at) : -1);
    }
  }
}

void Course::post_sends_of(std::uint64_t step) {
  const bool token = of_tokens(step);
  for (const auto& one : round(step).sends) {
    if (token) {
      send(Kind::token, one.to, {}, step);
      continue;
    }
    const auto bytes = memory_.work.subspan(one.piece.offset, one.piece.length);
    for (std::size_t at = 0; at < bytes.size() && !breakdown_; at += lane_.piece())
      send(Kind::data, one.to, bytes.subspan(at, std::min(lane_.piece(), bytes.size() - at)), step);
  }
}

void Course::add_arrived(Step& step) const {
  for (const auto& [piece, bytes] : step.arrived)
    add_elements(plan_.type, {bytes, piece.length}, memory_.work.subspan(piece.offset, piece.length));
  step.arrived.clear();
}

void Course::finish_step() {
  const std::uint64_t finished = current_++;
  const bool last = round_index(finished) + 1 == rounds_of(finished).size();
  steps_.pop_front();
  if (!last) return;
  if (in_end(finished)) {
    if (waits_at_end()) at_end_ = whole_tally();
  } else if (in_barrier(finished)) {
    pass_barrier();
  } else {
    finish_operation();
  }
}

void Course::finish_operation() {
  if (operations_ >= plan_.warmup) done_.push_back(now() - started_);
  if (plan_.credits) give_credits(operations_);
  began_ = false;
  if (++operations_ == plan_.warmup && plan_.barrier.empty()) pass_barrier();
  if (operations_ == plan_.warmup + plan_.iterations && !waits_at_end()) at_end_ = whole_tally();
}

/// What a sender has given to the library may wait in a socket's buffer: until it is there, whatever else
/// goes out over the device is in its way.
bool Course::waits_at_end() const {
  return !plan_.end.empty() && !plan_.end.back().receives.empty();
}

void Course::pass_barrier() {
  started_ = now();  // bytes may be under way by now, and looking at counters takes a while
  at_barrier_ = tally();
}

Course::Tally Course::whole_tally() const {
  Tally whole = tally();
  whole.arrived = lane_.arrived();
  return whole;
}

Hindrance Course::since(const Tally& before) const {
  const Tally after = at_end_ ? *at_end_ : whole_tally();
  const std::uint64_t uncounted = uncounted_between(at_start_.arrived, after.arrived);
  return {after.kept - before.kept, others_between(before.load, after.load, uncounted)};
}

Hindrance Course::hindrance() const {
  return since(at_end_ ? at_barrier_ : at_start_);
}

Hindrance Course::hindrance_in_all() const {
  return since(at_start_);
}

// --- credits ----------------------------------------------------------------------------------------------

/// Whether the operation at hand may send.
bool Course::may_begin() {
  if (!plan_.credits || began_ || of_tokens(current_)) return true;
  if (operations_ >= kOperationsAhead && credits_due_.contains(operations_ - kOperationsAhead)) return false;
  began_ = true;
  expect_credits(operations_);
  return true;
}

void Course::expect_credits(std::uint64_t operation) {
  if (receivers_.empty()) return;
  credits_due_[operation] = receivers_.size();
  for (const auto rank : receivers_)
    receive(Kind::credit, rank, {}, operation);
}

void Course::give_credits(std::uint64_t operation) {
  for (const auto rank : senders_)
    send(Kind::credit, rank, {}, operation);
}

// --- messages ---------------------------------------------------------------------------------------------

Post& Course::take_post(Kind kind, std::span<std::byte> bytes, std::uint64_t step) {
  if (free_.empty()) free_.push_back(&posts_.emplace_back());
  Post& post = *free_.back();
  free_.pop_back();
  post = Post{};
  post.poster = this;
  post.buffer = bytes.data();
  post.length = bytes.size();
  post.step = step;
  post.kind = static_cast<std::uint8_t>(kind);
  ++under_way_;
  return post;
}

void Course::send(Kind kind, std::uint32_t to, std::span<std::byte> bytes, std::uint64_t step) {
  if (breakdown_) return;
  Post& post = take_post(kind, bytes, step);
  post.sending = true;
  if (kind != Kind::credit) ++steps_[step - current_].sends;
  lane_.send(*partners_.at(to), post, tag_of(kind, plan_.team, plan_.batch, plan_.rank, step));
}

void Course::receive(Kind kind, std::uint32_t from, std::span<std::byte> bytes, std::uint64_t step,
                     std::int64_t target) {
  Post& post = take_post(kind, bytes, step);
  post.target = target;
  if (kind != Kind::credit) ++steps_[step - current_].receives;
  ++receives_posted_;
  lane_.receive(post, tag_of(kind, plan_.team, plan_.batch, from, step));
}

void Course::completed(Post& post, ucs_status_t status, std::size_t bytes) {
  --under_way_;
  if (!post.sending) --receives_posted_;
  free_.push_back(&post);
  if (breakdown_) return;
  if (status != UCS_OK) return fail(status, post.peer);
  if (bytes != post.length) return fail(UCS_ERR_MESSAGE_TRUNCATED, nullptr);
  const auto kind = static_cast<Kind>(post.kind);
  if (kind == Kind::credit) {
    if (!post.sending && --credits_due_[post.step] == 0) credits_due_.erase(post.step);
    return;
  }
  Step& step = steps_[post.step - current_];
  if (post.sending) {
    lane_.gave(bytes);
    --step.sends;
    return;
  }
  --step.receives;
  if (kind != Kind::data) return;
  received_ += bytes;
  lane_.took(bytes);
  if (post.target >= 0)
    step.arrived.emplace_back(Piece{static_cast<std::uint64_t>(post.target), bytes}, post.buffer);
}

void Course::fail(ucs_status_t status, const Peer* peer) {
  breakdown_ = Breakdown{status, std::nullopt, ucs_status_string(status)};
  if (peer != nullptr) breakdown_->node = peer->node;
}

void Course::broke(const Peer& peer) {
  if (breakdown_ || over()) return;
  const auto is_peer = [&peer](const auto& entry) { return entry.second == &peer; };
  if (std::any_of(partners_.begin(), partners_.end(), is_peer)) fail(peer.error, &peer);
}

void Course::cancel() {
  for (auto& post : posts_)
    if (!post.sending) lane_.cancel(post);
}

}  // namespace netcheck::fabric::ucx
