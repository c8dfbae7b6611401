// What one node is made of, as far as it bears on the network: sockets, PCI, GPUs, ports, and the links
// between them, each with its present and its maximal speed. Pure values: filled by topology from this
// machine or a recording; read by measure (what it could reach), judge (what is wrong with it) and picture.
//
// Facts only, as the sources tell them. What is unknown is absent: no 0, no -1, no "Unknown" stands for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "contract/json.h"
#include "contract/units.h"

namespace netcheck {

/// Transfers of one lane, and lanes: "16.0 GT/s PCIe" and "8" in sysfs.
struct PciSpeed {
  double gigatransfers = 0;  ///< 2.5, 5, 8, 16, 32, 64: generations 1 to 6
  std::uint32_t lanes = 0;
  friend bool operator==(const PciSpeed&, const PciSpeed&) = default;
};

/// What one end of a PCIe link says of it: a root or downstream port of the link below it, any other device
/// of the one above it.
struct PciLink {
  std::optional<PciSpeed> now;   ///< as trained
  std::optional<PciSpeed> most;  ///< what this end could
  std::optional<Rate> rate;  ///< present, one way: where a recording keeps nothing but the product (hwloc)
  friend bool operator==(const PciLink&, const PciLink&) = default;
};

enum class PciKind : std::uint8_t { host_bridge, port, gpu, nic, nvswitch, other };

/// Where a port of a bridge looks. A root port and a switch's downstream port look down, to one device; a
/// switch's upstream port looks up. `unknown`: a recording that shows a switch as one (NCCL's).
enum class Facing : std::uint8_t { unknown, up, down };

/// One function. Only those on the way to a GPU, a network port or an NVSwitch are kept.
struct PciDevice {
  std::string address;  ///< "0000:5d:00.0"; of a host bridge its domain and bus: "0000:5d"
  PciKind kind = PciKind::other;
  Facing facing = Facing::unknown;      ///< of ports
  std::optional<std::uint32_t> parent;  ///< index into Machine::pci, always a smaller one; none: host bridges
  std::optional<std::int32_t> numa;     ///< of host bridges: os index of their NUMA node
  std::optional<std::int32_t> socket;   ///< of host bridges
  /// Of a function of SR-IOV: the index of the card's own, which is none itself. In a virtual machine the
  /// card is not to be seen, and the function is a card like any other.
  std::optional<std::uint32_t> physical;
  std::uint16_t vendor = 0, device = 0, subvendor = 0, subdevice = 0;  ///< PCI ids; 0: unknown
  std::string model;
  std::string driver;  ///< "nvidia", "mlx5_core"; empty: none bound, or not known
  PciLink link;
  std::optional<bool> redirects;   ///< ports: ACS sends traffic between devices below up to the root
  std::optional<bool> translated;  ///< the IOMMU translates its addresses (domain type DMA, not identity)
  /// Of GPUs and NICs, from their Device Control register, which only root may read: whether they may send
  /// with relaxed ordering, and the most bytes that one of their reads asks for.
  std::optional<bool> relaxed_ordering;
  std::optional<std::uint32_t> max_read_request;
  friend bool operator==(const PciDevice&, const PciDevice&) = default;
};

struct Gpu {
  std::uint32_t pci = 0;  ///< index into Machine::pci
  std::string model;      ///< as its driver names it; else PCI's name
  std::string uuid;
  std::optional<bool> known_to_driver;  ///< nvidia's /proc or NVML lists it; absent: that driver is not there
  // What NVML alone tells.
  std::optional<bool> mig;  ///< sliced for several users
  std::string slowed;  ///< why its clocks are held down at this moment: "power brake"; empty: not, or unknown
  /// Watts: what it may take, and what it may take as delivered.
  std::optional<std::uint32_t> power_limit, power_default;
  friend bool operator==(const Gpu&, const Gpu&) = default;
};

enum class PortState : std::uint8_t { unknown, up, down };

/// The best of a RoCE port's addresses (GIDs): RDMA needs one, and between subnets one of version 2 made from
/// an IP address.
enum class Gids : std::uint8_t { unknown, none, version_1, link_local, usable };

/// One port of a network card: an RDMA port with its interface, or an interface alone (a bond, a bridge,
/// veth).
struct NetworkPort {
  std::string name;         ///< "mlx5_0", "mlx5_0:2", "eth0": as the matrix and the site's globs say it
  std::string interface;    ///< "ib0"; empty: none
  std::string rdma_device;  ///< "mlx5_0"; empty: no RDMA
  std::uint32_t port = 1;   ///< of the RDMA device
  std::optional<std::uint32_t> pci;  ///< index into Machine::pci; absent: virtual, or not known
  std::string link_layer;            ///< "InfiniBand", "Ethernet"; empty: unknown
  PortState state = PortState::unknown;
  std::string state_text;     ///< "1: DOWN", "lowerlayerdown": as the kernel says it
  std::optional<Rate> rate;   ///< at present
  std::optional<Rate> rated;  ///< what port and card could; where a source says so
  std::optional<std::uint32_t> mtu;
  Gids gids = Gids::unknown;         ///< of RoCE
  std::string firmware;              ///< of the RDMA device: "28.39.1002"
  bool virtual_function = false;     ///< SR-IOV
  std::string master;                ///< the bond or bridge that it is part of
  std::vector<std::string> members;  ///< of a bond
  std::string why_not;               ///< empty: a fabric port. Else why it is none
  friend bool operator==(const NetworkPort&, const NetworkPort&) = default;
};

/// NVLinks of a GPU to a peer, or to NVSwitches.
struct NvLink {
  std::uint32_t gpu = 0;              ///< index into Machine::gpus
  std::optional<std::uint32_t> peer;  ///< another GPU; absent: switches
  std::uint32_t count = 0;
  std::optional<Rate> rate;  ///< all of them, one way
  friend bool operator==(const NvLink&, const NvLink&) = default;
};

/// One with processors; those of memory alone (a GPU's, on POWER9) are left out.
struct NumaNode {
  std::int32_t index = 0;  ///< the kernel's
  std::optional<std::int32_t> socket;
  std::uint32_t cores = 0;  ///< 0: unknown
  std::uint64_t memory_bytes = 0;
  friend bool operator==(const NumaNode&, const NumaNode&) = default;
};

/// Of a driver, where it has one of its own: those that come with the kernel mostly have none.
struct DriverVersion {
  std::string driver;   ///< "nvidia", "mlx5_core", as PciDevice::driver
  std::string version;  ///< "550.54.15"
  friend bool operator==(const DriverVersion&, const DriverVersion&) = default;
};

/// Of a library that carries a job's data.
struct LibraryVersion {
  std::string library;  ///< "NCCL", "UCX"
  std::string version;
  friend bool operator==(const LibraryVersion&, const LibraryVersion&) = default;
};

inline constexpr std::uint64_t kUnlimitedMemory = UINT64_MAX;

struct Machine {
  std::string node;                    ///< its name; empty where a recording keeps none
  std::string product;                 ///< class of hardware, as Inventory::machine
  std::string source;                  ///< "this machine", "hwloc XML n3.xml"
  std::string kernel;                  ///< its release; empty: unknown
  std::vector<DriverVersion> drivers;  ///< of GPUs and NICs
  std::vector<LibraryVersion> libraries;
  std::vector<NumaNode> numa;
  std::vector<PciDevice> pci;  ///< a tree, each after its parent; empty: no PCI (containers, some VMs)
  std::vector<Gpu> gpus;       ///< in the order of their indices
  std::vector<NetworkPort> ports;
  std::vector<NvLink> nvlinks;
  bool nvlinks_known = false;                  ///< the source tells of NVLinks: none is then really none
  std::optional<std::uint64_t> memlock_bytes;  ///< RLIMIT_MEMLOCK of this process; kUnlimitedMemory
  std::vector<std::string> notes;              ///< what the source does not tell, and why
  friend bool operator==(const Machine&, const Machine&) = default;
};

/// GT/s × lanes, less the line code: 8b/10b up to 5 GT/s (PCIe 2.1, 4.2.1), 128b/130b up to 32 GT/s
/// (PCIe 5.0, 4.2.2), 242 of 256 bytes of a FLIT at 64 GT/s (PCIe 6.0, 4.2.3.4). One way; packet headers not
/// subtracted.
[[nodiscard]] Rate rate_of(const PciSpeed& speed);

/// "Gen4 x8"; "2.5 GT/s" is Gen1. Of a speed that is no generation: "12 GT/s x8".
[[nodiscard]] std::string format_speed(const PciSpeed& speed);

/// "400 Gb/s", "126 Gb/s", "31.5 Gb/s": for texts that people read.
[[nodiscard]] std::string in_words(Rate rate);

[[nodiscard]] Json to_json(const Machine& machine);
/// Throws Malformed (for read_frame and read_saved).
[[nodiscard]] Machine machine_from_json(const Json& value);

}  // namespace netcheck
