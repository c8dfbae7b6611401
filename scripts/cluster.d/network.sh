# shellcheck shell=bash disable=SC2034,SC2154 # the parts of scripts/cluster share their variables
# Rails, bridges and shaped links. Sourced by scripts/cluster.
#
# Rail R is the subnet 10.110.R.0/24 and the interface ethR of every node, plugged into a bridge in
# the namespace `fabric`. Rail 0 is also the control network. With --trunk, the first half of the
# nodes hangs on one bridge of each rail (brRa), the rest on another (brRb), and a shaped link joins
# the two: two leaf switches with an oversubscribed uplink.
#
# What a node sends is shaped where it leaves the node (tx: the queue of ethR in the node), what is
# sent to it where it leaves the bridge (rx: the queue of the port nNeR in `fabric`). A shape of one
# pair of nodes is a class of htb below the link's own tbf, chosen by address with u32.

# --- rates ----------------------------------------------------------------------------------------

# bits_of RATE : bits per second, for rates as tc writes them. `mbps` means megabytes to tc: refused.
bits_of() {
  [[ $1 =~ ^([0-9]{1,6})(\.([0-9]{1,3}))?([kmgKMG]?)bit$ ]] || return 1
  local whole=${BASH_REMATCH[1]} part=${BASH_REMATCH[3]:-0} unit=1
  case ${BASH_REMATCH[4]} in
    k | K) unit=1000 ;;
    m | M) unit=1000000 ;;
    g | G) unit=1000000000 ;;
  esac
  part=$((10#${part}00 * unit / 10 ** (${#part} + 2)))
  echo $((10#$whole * unit + part))
}

check_rate() {
  local bits
  [[ $1 == off ]] && return 0
  bits=$(bits_of "$1") || usage_error "'$1' is no rate; write 100mbit, 2.5gbit, 64kbit or off"
  ((bits >= 8000 && bits <= 100000000000)) || usage_error "rate $1 is not between 8kbit and 100gbit"
}

# The bytes that may leave at once. 2 ms at the link's rate, which is longer than this machine's timers
# are late; a fixed large burst would let short transfers on slow links go unshaped. From 100 Mb/s up at least
# one of the 64 KiB segments that the stack hands over whole: tbf would cut each into packets, at a third of the rate.
burst_of() {
  local bits bytes least
  bits=$(bits_of "$1")
  bytes=$((bits / 8 / 500))
  least=$((bits < 100000000 ? 16000 : 100000))
  echo $((bytes < least ? least : bytes))
}

# The bytes that may wait: 50 ms at the link's rate, but two of TCP's largest segments at least.
queue_of() {
  local bytes
  bytes=$(($(bits_of "$1") / 8 / 20))
  echo $((bytes < 131072 ? 131072 : bytes))
}

# --- building -------------------------------------------------------------------------------------

in_fabric() {
  local init
  find_init fabric || die "the namespace of the bridges is gone; run: scripts/cluster down"
  nsenter --net="/proc/$init/ns/net" -- "$@"
}

# The bridge of NODE on RAIL: the controller and the first half are on leaf a.
bridge_of() {
  if [[ $trunk != off && $1 != ctl ]] && (($(index_of "$1") > (nodes + 1) / 2)); then
    echo "br${2}b"
  else
    echo "br${2}a"
  fi
}

plug_commands() {
  local node rail init
  for ((rail = 0; rail < rails; rail++)); do
    echo "link add br${rail}a type bridge stp_state 0 forward_delay 0 mcast_snooping 0"
    echo "link set br${rail}a up"
    if [[ $trunk != off ]]; then
      echo "link add br${rail}b type bridge stp_state 0 forward_delay 0 mcast_snooping 0"
      echo "link add trunk${rail}a type veth peer name trunk${rail}b"
      echo "link set trunk${rail}a master br${rail}a up"
      echo "link set trunk${rail}b master br${rail}b up"
      echo "link set br${rail}b up"
    fi
  done
  for node in ctl "${node_list[@]}"; do
    find_init "$node" || die "node $node is gone; see $(log_of "$node" init)"
    for rail in $(rails_of "$node"); do
      # netns takes a pid: the other end comes into being inside the node, nowhere in between.
      echo "link add ${node}e$rail type veth peer name eth$rail netns $init"
      echo "link set ${node}e$rail master $(bridge_of "$node" "$rail") up"
    done
  done
}

address_commands() {
  local rail
  echo "link set lo up"
  for rail in $(rails_of "$1"); do
    echo "address add $(address_of "$1" "$rail")/24 dev eth$rail"
    echo "link set eth$rail up"
  done
}

address_node() { address_commands "$1" | inside "$1" ip -batch -; }

shape_node() {
  local rail way
  for rail in $(rails_of "$1"); do
    for way in tx rx; do set_shape "$1" "$rail" "$way" "$rate"; done
  done
}

build_network() {
  local rail end
  mkdir -p -- "$dir/state/shape"
  plug_commands | in_fabric ip -batch - || die "the bridges could not be made (kernel without veth or bridge?)"
  for_each address_node ctl "${node_list[@]}" || die "a node's interfaces could not be set up"
  for_each shape_node "${node_list[@]}" || die "a link could not be shaped"
  if [[ $trunk != off ]]; then
    for ((rail = 0; rail < rails; rail++)); do
      for end in a b; do
        in_fabric tc qdisc replace dev "trunk$rail$end" root tbf rate "$trunk" \
          burst "$(burst_of "$trunk")" limit "$(queue_of "$trunk")"
      done
    done
  fi
}

# --- shaping --------------------------------------------------------------------------------------

# state/shape/NODE.RAIL.WAY holds what is in force: a line `link RATE`, and one `NODE RATE` for each
# node to which (tx) or from which (rx) there is a rate of its own.
shape_file() { echo "$dir/state/shape/$1.$2.$3"; }

# Writes tc's commands for one queue; $1 is the device, $2 the way, $3 the rail, $4 the file.
shape_commands() {
  local device=$1 way=$2 rail=$3 file=$4 link=off parent peer rate match id
  local -a pairs=()
  while read -r peer rate; do
    if [[ $peer == link ]]; then link=$rate; else pairs+=("$peer $rate"); fi
  done <"$file"
  if [[ $link != off ]]; then
    echo "qdisc replace dev $device root handle 1: tbf rate $link" \
      "burst $(burst_of "$link") limit $(queue_of "$link")"
  fi
  ((${#pairs[@]})) || return 0
  if [[ $link != off ]]; then parent="parent 1:1"; else parent=root; fi
  # All other traffic: no limit of its own; 100gbit is what htb can count, quantum is two frames of
  # the largest size.
  echo "qdisc add dev $device $parent handle 2: htb default 1"
  echo "class add dev $device parent 2: classid 2:1 htb rate 100gbit burst 1mb cburst 1mb quantum 131072"
  if [[ $way == tx ]]; then match=dst; else match=src; fi
  for pair in "${pairs[@]}"; do
    read -r peer rate <<<"$pair"
    id=$(printf '%x' $(($(index_of "$peer") + 16)))
    echo "class add dev $device parent 2: classid 2:$id htb rate $rate ceil $rate" \
      "burst $(burst_of "$rate") cburst $(burst_of "$rate") quantum 131072"
    echo "qdisc add dev $device parent 2:$id bfifo limit $(queue_of "$rate")"
    echo "filter add dev $device parent 2: protocol ip prio 1 u32" \
      "match ip $match $(address_of "$peer" "$rail")/32 flowid 2:$id"
  done
}

# Brings the queue of NODE, RAIL, WAY (tx or rx) in line with its file.
apply_shape() {
  local node=$1 rail=$2 way=$3 file device
  local -a enter=(in_fabric)
  file=$(shape_file "$@")
  device=${node}e$rail
  if [[ $way == tx ]]; then enter=(inside "$node") device=eth$rail; fi
  # A plain change of rate is made in place; anything else begins anew (an absent queue is no error).
  if [[ $(wc -l <"$file") != 1 || -e $file.pairs ]] || grep -qx 'link off' "$file"; then
    "${enter[@]}" tc qdisc delete dev "$device" root 2>/dev/null || true
  fi
  rm -f -- "$file.pairs"
  [[ $(wc -l <"$file") == 1 ]] || : >"$file.pairs"
  shape_commands "$device" "$way" "$rail" "$file" | "${enter[@]}" tc -batch - ||
    die "tc could not shape $node.$rail $way (is the kernel without tbf, htb or u32?)"
}

# set_shape NODE RAIL WAY RATE [PEER] : RATE is a rate, off (no limit) or default (what `up` set;
# with PEER: no rate for this pair).
set_shape() {
  local file rate_=$4 peer=${5:-}
  file=$(shape_file "$1" "$2" "$3")
  [[ -e $file ]] || echo "link off" >"$file"
  if [[ -n $peer ]]; then
    sed -i "/^$peer /d" "$file"
    [[ $rate_ == default ]] || echo "$peer $rate_" >>"$file"
  elif [[ $rate_ == default ]]; then
    echo "link $(default_rate "$1")" >"$file"
  else
    sed -i "s/^link .*/link $rate_/" "$file"
  fi
  apply_shape "$1" "$2" "$3"
}

# The controller's own link is not shaped: it carries no job's data.
default_rate() { if [[ $1 == ctl ]]; then echo off; else echo "$rate"; fi; }

# Splits NODE[.RAIL] into $node and $rail_list; without a rail, $2 says which.
split_target() {
  node=${1%%.*}
  need_node "$node"
  rail_list=$2
  [[ $1 != *.* ]] || rail_list=${1#*.}
  [[ $rail_list =~ ^[0-9\ ]+$ ]] || usage_error "'$1' is no NODE or NODE.RAIL"
  local rail
  for rail in $rail_list; do
    ((rail < $(rails_of "$node" | wc -l))) || usage_error "$node has no rail $rail"
  done
}

shape_main() {
  local node rail_list wanted=default ways="tx rx" peer='' way target=${1:-}
  [[ -n $target ]] || usage_error "shape which NODE[.RAIL]?"
  (($# >= 2)) || usage_error "shape $target to which rate? e.g. 100mbit, or off"
  check_rate "$2"
  [[ $2 == off ]] || wanted=$2
  shift 2
  split_target "$target" 0
  while (($#)); do
    case $1 in
      --tx) ways=tx ;;
      --rx) ways=rx ;;
      --to)
        peer=${2:-}
        need_node "$peer"
        [[ $peer != "$node" ]] || usage_error "--to $peer: no traffic of $node to itself is on a link"
        shift
        ;;
      *) usage_error "shape: unknown option '$1'" ;;
    esac
    shift
  done
  for way in $ways; do set_shape "$node" "$rail_list" "$way" "$wanted" "$peer"; done
}

# --- cables ---------------------------------------------------------------------------------------

# Pulls or plugs the cable of NODE[.RAIL], at the bridge: the node sees its carrier go. Without a
# rail, all of them.
link_main() {
  local node rail_list rail
  [[ ${2:-} == up || ${2:-} == down ]] || usage_error "link NODE[.RAIL] up|down"
  split_target "$1" "$(rails_of "${1%%.*}" | xargs)"
  for rail in $rail_list; do in_fabric ip link set "${node}e$rail" "$2"; done
}

# Prints the bridges' ports that are plugged, for link_state.
plugged_ports() { in_fabric ip -o link show up 2>/dev/null | sed -n 's/^[0-9]*: \([^@:]*\).*/\1/p'; }

# link_state NODE RAIL PORTS : up or down.
link_state() { if grep -qx "${1}e$2" <<<"$3"; then echo up; else echo down; fi; }
