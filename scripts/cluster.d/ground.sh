# shellcheck shell=bash disable=SC2034,SC2154 # the parts of scripts/cluster share their variables
# What every part of scripts/cluster stands on: messages, waits with a deadline, the cluster's
# folder with its lock, and the settings that `up` was called with. Sourced by scripts/cluster.

kind=netcheck-cluster # the name of the file that marks a folder as a cluster's
readonly kind

say() { printf 'cluster: %s\n' "$*" >&2; }
die() {
  say "$@"
  exit 1
}
usage_error() {
  say "$@"
  say "see: scripts/cluster --help"
  exit 2
}

# wait_for SECONDS WHAT LOG COMMAND… : until COMMAND succeeds. Past the deadline, or when COMMAND exits
# with 3 (it never will), it says what did not happen and shows the end of LOG ('' for none). Waits
# are generous: a busy machine is no failure.
wait_for() {
  local seconds=$1 what=$2 log=$3 deadline status
  shift 3
  deadline=$((SECONDS + seconds))
  while :; do
    status=0
    "$@" >/dev/null 2>&1 || status=$?
    ((status)) || return 0
    kill -0 $$ 2>/dev/null || exit 1 # the command that this is a part of was killed: give way
    ((status != 3 && SECONDS < deadline)) || break
    sleep 0.1
  done
  if ((status == 3)); then say "it ended at once: $what"; else say "waited $seconds s in vain for: $what"; fi
  if [[ -s $log ]]; then
    say "the end of $log:"
    tail -n 8 "$log" >&2
  fi
  return 1
}

# Runs FUNCTION for each NODE at once and fails if one of them failed.
for_each() {
  local call=$1 node pid failed=0
  local -a pids=()
  shift
  for node in "$@"; do
    "$call" "$node" &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
  return "$failed"
}

# --- the folder -----------------------------------------------------------------------------------

# Sets $dir. Inside every node the same folder is /run/cluster: short, without spaces, and with
# parents that root alone can write, wherever the checkout lies.
find_dir() {
  local repo
  repo=$(cd -- "$(dirname -- "$program")/.." && pwd -P)
  dir=$(realpath -m -- "${NETCHECK_CLUSTER_DIR:-$repo/build/cluster}")
  [[ $dir != *$'\n'* ]] || die "NETCHECK_CLUSTER_DIR has a newline in it"
  readonly dir
}

make_dir() {
  if [[ -d $dir && ! -e $dir/.$kind ]] && [[ -n $(ls -A -- "$dir") ]]; then
    die "$dir is not empty and no cluster's folder; point NETCHECK_CLUSTER_DIR to another"
  fi
  mkdir -p -- "$dir" # its parents as the umask says: they are the build folder
  chown 0:0 -- "$dir"
  chmod 0755 -- "$dir"
  : >"$dir/.$kind"
}

# One change at a time. The descriptor is closed in all that outlives us, so that the lock falls when
# the command that took it ends, however it ends.
lock_fd=
lock_dir() {
  make_dir
  exec {lock_fd}>"$dir/lock"
  flock -w 300 "$lock_fd" || die "another scripts/cluster has been at work on $dir for 5 minutes"
}

# Closes every descriptor but the first three; for processes that stay.
close_descriptors() {
  local fd
  for fd in /proc/self/fd/*; do
    fd=${fd##*/}
    if ((fd > 2)); then eval "exec $fd>&-" 2>/dev/null || true; fi
  done
}

# --- the settings of `up` -------------------------------------------------------------------------

readonly -a kSettings=(nodes rails gpus gpu_libraries trunk rate prolog_flags extra_conf)

default_settings() {
  nodes=4 rails=1 gpus=0 gpu_libraries= trunk=off rate=1gbit prolog_flags=Alloc,DeferBatch extra_conf=
}

save_settings() {
  mkdir -p -- "$dir/state"
  declare -p "${kSettings[@]}" | sed 's/^declare --/declare -g --/' >"$dir/state/settings.new"
  mv -- "$dir/state/settings.new" "$dir/state/settings"
}

load_settings() {
  [[ -r $dir/state/settings ]] || return 1
  # shellcheck disable=SC1091 # written by save_settings into a folder of root's
  source "$dir/state/settings"
  list_nodes
}

need_cluster() {
  if ! load_settings || [[ ! -e $dir/state/up ]]; then
    die "no cluster is up in $dir; start one with: scripts/cluster up"
  fi
}

# --- names ----------------------------------------------------------------------------------------

# Sets $node_list: n1 … nN.
list_nodes() {
  local i
  node_list=()
  for ((i = 1; i <= nodes; i++)); do node_list+=("n$i"); done
}

# The last node's hostname differs from its NodeName, as on many a real cluster.
hostname_of() { if [[ $1 == "n$nodes" ]]; then echo "host-$1"; else echo "$1"; fi; }

is_node() { [[ $1 =~ ^n([1-9][0-9]*)$ ]] && ((BASH_REMATCH[1] <= nodes)); }

need_node() {
  is_node "$1" || [[ $1 == ctl ]] || usage_error "no node '$1'; there are: ctl ${node_list[*]}"
}

# The last byte of a node's addresses, the same on every rail.
index_of() { if [[ $1 == ctl ]]; then echo 254; else echo "${1#n}"; fi; }
address_of() { echo "10.110.$2.$(index_of "$1")"; }
rails_of() { if [[ $1 == ctl ]]; then echo 0; else seq 0 $((rails - 1)); fi; }

# The log of one daemon of one node.
log_of() { echo "$dir/logs/$1.$2.log"; }
