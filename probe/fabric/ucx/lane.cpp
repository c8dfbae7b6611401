// UCX's context, worker and endpoints.
#include "fabric/ucx/lane.h"

#include <fmt/format.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

namespace netcheck::fabric::ucx {

namespace {

/// What is used here came with UCX 1.13: ucp_config_modify for transports' own settings among it.
constexpr unsigned kMajor = 1, kMinor = 13;

/// Small enough that `received` tells how far a slow link got (0.2 s of 10 Mb/s), large enough to cost
/// nothing (a microsecond of 200 at 10 Gb/s).
constexpr std::size_t kPieceTcp = std::size_t{256} * 1024;
/// Rendezvous costs some microseconds per message: 5 % of 80 µs at 400 Gb/s, hidden by others under way.
constexpr std::size_t kPieceRdma = std::size_t{4} * 1024 * 1024;

using Setting = std::pair<const char*, const char*>;
constexpr std::array kTcpSettings = {
    Setting{"TLS", "tcp"},          // neither shared memory nor loopback: the NIC is what is measured
    Setting{"RNDV_THRESH", "inf"},  // rendezvous' control messages would queue behind data
    Setting{"TCP_CONN_NB", "y"},    // a connect to a dead node must not block this process
};
constexpr std::array kRdmaSettings = {Setting{"TLS", "rc,ud,dc"}};
constexpr std::array kCommonSettings = {
    Setting{"MAX_EAGER_RAILS", "1"}, Setting{"MAX_RNDV_RAILS", "1"},  // one lane is one rail
};

std::string text(ucs_status_t status) {
  return ucs_status_string(status);
}

bool is_device_name(const std::string& device) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.' || c == ':' || c == '@';
  };
  constexpr std::size_t kMaxDevice = 80;  // IBV_SYSFS_NAME_MAX and a port
  return !device.empty() && device != "all" && device.size() <= kMaxDevice &&
         std::all_of(device.begin(), device.end(), allowed);
}

/// There, but without a link: UCX calls that no device.
bool has_lost_its_link(const std::string& device) {
  ifreq request{};
  if (device.size() >= sizeof request.ifr_name) return false;
  device.copy(request.ifr_name, device.size());
  const int query = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (query < 0) return false;
  const bool there = ::ioctl(query, SIOCGIFFLAGS, &request) == 0;
  ::close(query);
  return there && (request.ifr_flags & IFF_RUNNING) == 0;
}

template <typename Settings>
ucs_status_t apply(ucp_config_t* config, const Settings& settings) {
  for (const auto& [key, value] : settings)
    if (const auto status = ucp_config_modify(config, key, value); status != UCS_OK) return status;
  return UCS_OK;
}

void done(Post& post, ucs_status_t status, std::size_t bytes) {
  post.request = nullptr;
  post.poster->completed(post, status, bytes);
}

extern "C" {
static void sent(void* request, ucs_status_t status, void* post) {
  ucp_request_free(request);
  auto& one = *static_cast<Post*>(post);
  done(one, status, one.length);
}
static void received(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info, void* post) {
  ucp_request_free(request);
  done(*static_cast<Post*>(post), status, status == UCS_OK ? info->length : 0);
}
}

}  // namespace

Result<std::string> library_version() {
  unsigned major = 0, minor = 0, release = 0;
  ucp_get_version(&major, &minor, &release);
  const std::string version = fmt::format("{}.{}.{}", major, minor, release);
  if (major != kMajor || minor < kMinor)
    return fail("use", "UCX " + version,
                fmt::format("UCX {}.{} or a later {}.x is needed", kMajor, kMinor, kMajor));
  return version;
}

Result<std::unique_ptr<Lane>> Lane::open(const std::string& device) {
  if (!is_device_name(device))
    return fail("open", "device '" + printable(device, 64) + "'", "no device name");
  std::unique_ptr<Lane> lane(new Lane);
  lane->device_ = device;
  lane->rdma_ = device.find(':') != std::string::npos;
  lane->meter_.emplace(device);
  const ucs_status_t status = lane->start();
  if (status == UCS_OK || (status == UCS_ERR_NO_DEVICE && has_lost_its_link(device))) return lane;
  std::string remedy;
  if (status == UCS_ERR_NO_DEVICE)
    remedy = "see that it is there, up and has an address";
  else if (lane->rdma_)
    remedy = "see that RLIMIT_MEMLOCK is raised";
  return fail("open UCX on", device, text(status), std::move(remedy));
}

ucs_status_t Lane::start() {
  ucp_config_t* config = nullptr;
  ucs_status_t status = ucp_config_read(nullptr, nullptr, &config);
  if (status != UCS_OK) return status;
  status = ucp_config_modify(config, "NET_DEVICES", device_.c_str());
  if (status == UCS_OK) status = apply(config, kCommonSettings);
  if (status == UCS_OK) status = rdma_ ? apply(config, kRdmaSettings) : apply(config, kTcpSettings);
  if (status == UCS_OK) {
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP;
    status = ucp_init(&params, config, &context_);
  }
  ucp_config_release(config);
  if (status != UCS_OK) return status;

  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SINGLE;
  ucp_worker_h worker = nullptr;
  status = ucp_worker_create(context_, &params, &worker);
  if (status != UCS_OK) return status;
  ucp_address_t* address = nullptr;
  std::size_t length = 0;
  status = ucp_worker_get_efd(worker, &event_descriptor_);
  if (status == UCS_OK) status = ucp_worker_get_address(worker, &address, &length);
  if (status != UCS_OK) return status;
  const auto* first = reinterpret_cast<const std::byte*>(address);
  address_.assign(first, first + length);
  ucp_worker_release_address(worker, address);
  worker_ = worker;
  return UCS_OK;
}

std::size_t Lane::piece() const {
  return rdma_ ? kPieceRdma : kPieceTcp;
}

Peer& Lane::reach(const Bytes& address, std::uint32_t node) {
  auto& entry = peers_[{node, address}];
  if (!entry) entry = std::make_unique<Peer>();
  Peer& peer = *entry;
  peer.node = node;
  if (peer.endpoint != nullptr) return peer;
  if (address.empty()) {  // its device has no link
    peer.error = UCS_ERR_UNREACHABLE;
    return peer;
  }
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(address.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler = {&Lane::broke, &peer};
  peer.error = UCS_OK;
  const ucs_status_t status = ucp_ep_create(worker_, &params, &peer.endpoint);
  if (status == UCS_OK) return peer;
  peer.endpoint = nullptr;
  peer.error = status;
  return peer;
}

/// Called by UCX in the middle of its own work: only noted here.
void Lane::broke(void* peer, ucp_ep_h /*endpoint*/, ucs_status_t status) {
  static_cast<Peer*>(peer)->error = status;
}

std::vector<Peer*> Lane::take_broken() {
  std::vector<Peer*> broken;
  for (auto& [address, peer] : peers_) {
    if (peer->error == UCS_OK || peer->endpoint == nullptr) continue;
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_EP_CLOSE_FLAG_FORCE;
    auto* const closing = ucp_ep_close_nbx(peer->endpoint, &param);
    if (UCS_PTR_IS_PTR(closing)) ucp_request_free(closing);
    peer->endpoint = nullptr;
    broken.push_back(peer.get());
  }
  return broken;
}

void Lane::send(Peer& peer, Post& post, std::uint64_t tag) {
  post.peer = &peer;
  if (peer.endpoint == nullptr)
    return done(post, peer.error == UCS_OK ? UCS_ERR_NOT_CONNECTED : peer.error, 0);
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = sent;
  param.user_data = &post;
  auto* const request = ucp_tag_send_nbx(peer.endpoint, post.buffer, post.length, tag, &param);
  if (UCS_PTR_IS_PTR(request))
    post.request = request;
  else
    done(post, UCS_PTR_STATUS(request), post.length);
}

void Lane::receive(Post& post, std::uint64_t tag) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.recv = received;
  param.user_data = &post;
  auto* const request = ucp_tag_recv_nbx(worker_, post.buffer, post.length, tag, ~ucp_tag_t{0}, &param);
  if (UCS_PTR_IS_PTR(request))
    post.request = request;
  else  // UCX 1.13 leaves recv_info empty here; what is too long is an error, what is too short shows in the
        // check
    done(post, UCS_PTR_STATUS(request), post.length);
}

void Lane::cancel(Post& post) {
  if (post.request != nullptr) ucp_request_cancel(worker_, post.request);
}

bool Lane::progress() {
  return !down() && ucp_worker_progress(worker_) != 0;
}

bool Lane::arm() {
  return down() || ucp_worker_arm(worker_) == UCS_OK;
}

}  // namespace netcheck::fabric::ucx
