# shellcheck shell=bash
# What the benches share: build, a cluster of their own, checked jobs, and the way a figure is printed. Sourced
# by scripts/bench-*; needs root, like scripts/cluster. A bench prints, for each figure, what was measured and
# what is wanted; it exits 1 when a figure was missed, 2 when it could not measure.

readonly kBuild=${NETCHECK_BUILD_DIR:-$PWD/build/bench}
readonly kStage=$PWD/build/bench-stage
export NETCHECK_CLUSTER_DIR=${NETCHECK_CLUSTER_DIR:-$PWD/build/cluster-bench}
missed=0
watcher='' # a process of the bench that must not outlive it

die() {
  echo "${0##*/}: $*" >&2
  exit 2
}

# Prints the head of the script itself: what it measures and how it is used.
usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "scripts/${0##*/}"; }

usage_and_exit() { # OPTION
  usage
  [[ $1 == --help || $1 == -h ]] && exit 0
  exit 2
}

need_root() { ((EUID == 0)) || die "needs root: it makes network namespaces (try sudo $0)"; }

# FIGURE WHAT MEASURED WANTED ok|MISSED
figure() {
  printf '%-52s %-22s wanted %-18s %s\n' "$1" "$2" "$3" "$4"
  [[ $4 == ok ]] || missed=$((missed + 1))
}

finish_figures() {
  ((missed == 0)) || echo "${0##*/}: $missed figures missed"
  exit $((missed > 0))
}

figures() { python3 scripts/bench.d/figures.py "$@"; }

# build [TARGET…] : configures and builds; the whole program unless targets are named.
build() {
  scripts/packages install build run
  mkdir -p "$kBuild"
  local -a launcher=()
  if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
  if ! { cmake -S . -B "$kBuild" -G Ninja "${launcher[@]}" && ninja -C "$kBuild" "$@"; } >"$kBuild.log" 2>&1; then
    tail -n 30 "$kBuild.log" >&2
    die "the build failed; all that it said is in $kBuild.log"
  fi
}

# Builds the program and lays it out as an installation; writes the site's configuration there: built-in values
# and the lines given.
stage() { # [TOML_LINE…]
  local module
  build netcheck netcheck-fabric-ucx spank_netcheck manual
  rm -rf "$kStage"
  cmake --install "$kBuild" --prefix "$kStage" >>"$kBuild.log" || die "the installation failed; see $kBuild.log"
  module=$(find "$kStage" -name netcheck-fabric-ucx.so -printf '%P\n' -quit)
  [[ -n $module ]] || die "the fabric module was not built"
  {
    printf '%s\n' "$@"
    printf '[probe]\nmodule_directory = "/run/cluster/root/%s"\n' "${module%/*}"
  } >"$kStage.toml"
}

end_cluster() {
  local status=$?
  trap - EXIT
  [[ -z $watcher ]] || kill "$watcher" 2>/dev/null || true
  scripts/cluster down >/dev/null 2>&1 || echo "${0##*/}: the cluster did not go down" >&2
  exit "$status"
}

# A cluster with the staged program; taken down at the end, however that comes.
start_cluster() { # CLUSTER_OPTION…
  trap end_cluster EXIT
  trap 'exit 130' INT TERM HUP
  scripts/cluster up "$@" --install "$kStage" --config "$kStage.toml" >"$kStage.up" 2>&1 || {
    cat "$kStage.up" >&2
    die "the cluster did not start"
  }
}

on() { scripts/cluster exec "$@"; }

shape_all() { # RATE NODE…
  local rate=$1 node
  shift
  for node in "$@"; do scripts/cluster shape "$node" "$rate"; done
}

# Runs one checked job over the nodes and leaves the first node's record in the file. The line goes to stderr.
checked_job() { # RECORD_FILE SBATCH_OPTION…
  local file=$1 job
  shift
  job=$(cd "$NETCHECK_CLUSTER_DIR/home/alice" && timeout 120 "$OLDPWD/scripts/cluster" exec --user alice ctl \
    sbatch --parsable --wait --netcheck --exclusive -o /dev/null "$@" --wrap true) || die "job $* failed"
  on n1 sh -c "cat /run/netcheck/records/*-$job-*.json" >"$file" || die "job $job left no record on n1"
  echo "  $(figures line "$file")" >&2
}

# iperf3 over pairs FROM:TO, one way, all at once; prints "FROM TO RECEIVED_BITS_PER_SECOND" for each.
iperf_pairs() { # SECONDS FROM:TO…
  local seconds=$1 pair folder status=0
  local -a clients=() servers=()
  shift
  folder=$(mktemp -d)
  for pair in "$@"; do
    on "${pair#*:}" timeout $((seconds + 20)) iperf3 -s -1 >"$folder/$pair.server" 2>&1 &
    servers+=($!)
  done
  sleep 1
  for pair in "$@"; do
    on "${pair%:*}" timeout $((seconds + 15)) iperf3 -c "$(figures address "${pair#*:}")" -t "$seconds" -O 1 -J \
      >"$folder/$pair" &
    clients+=($!)
  done
  wait "${clients[@]}" || status=1
  wait "${servers[@]}" || true
  for pair in "$@"; do
    echo "${pair%:*} ${pair#*:} $(figures iperf "$folder/$pair")" || status=1
  done
  rm -rf "$folder"
  return $status
}
