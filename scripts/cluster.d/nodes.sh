# shellcheck shell=bash disable=SC2034,SC2154 # the parts of scripts/cluster share their variables
# Nodes as namespaces: how they are made, entered, found again and ended. Sourced by scripts/cluster.
#
# A node is a network, UTS, mount and PID namespace; `fabric` is one more, which holds the bridges.
# Nothing of them has a name in the machine: no file below /run/netns, no interface, no mount. All of
# it lives as long as the node's first process, so ending that process ends the node, and the kernel
# ends whatever else ran in it. The first processes carry a mark in their environment by which
# `down` finds them, even when `up` was killed before it could write anything down.

readonly kMark=NETCHECK_CLUSTER_ANCHOR

# The first process of a node: lays out the node's own mounts, then reaps orphans for ever.
# It runs in a bash of its own (see start_node), so it may use nothing that is defined elsewhere.
node_init() {
  set -eu
  local node=$1 hostname=$2 dir=$3 own=/run/node
  cd / # what is run in the node later begins here
  echo "$hostname" >/proc/sys/kernel/hostname
  mount -n -t proc proc /proc
  # Before any interface is there: no address of version 6, and the congestion control that every
  # kernel has and that keeps to a shaped link's rate.
  echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6 2>/dev/null || true
  echo reno >/proc/sys/net/ipv4/tcp_congestion_control
  if [ "$node" != fabric ]; then
    local keep=$dir/nodes/$node/run # becomes the node's /run
    mount -n -t tmpfs tmpfs "$keep"
    mkdir "$keep/cluster" "$keep/cgroup"
    mount -n --bind "$dir" "$keep/cluster"
    # /sys shows the interfaces of the network namespace that mounted it: mount the node's own, but
    # keep the control groups, without which slurmd does not start.
    mount -n --rbind /sys/fs/cgroup "$keep/cgroup"
    mount -n -t sysfs sysfs /sys
    mount -n --rbind "$keep/cgroup" /sys/fs/cgroup
    umount -n -l "$keep/cgroup"
    rmdir "$keep/cgroup"
    mkdir -p "$keep"/{mount,lock,munge,mysqld,slurm,daemons,node}
    chmod 1777 "$keep/lock"
    chown munge:munge "$keep/munge"
    chown mysql:mysql "$keep/mysqld"
    chown slurm:slurm "$keep/slurm"
    chmod 0755 "$keep"
    mount -n --move "$keep" /run
    mount -n --bind "/run/cluster/nodes/$node" "$own"
    mount -n --bind /run/cluster/etc /etc
    mount -n -t tmpfs -o mode=1777 tmpfs /dev/shm
    mount -n --bind "$own/hosts" /etc/hosts
    mount -n --bind "$own/hostname" /etc/hostname
  fi
  : >"$dir/nodes/$node/ready"
  # One child to wait for; bash reaps the others, which this process inherits as the node's first.
  while :; do
    sleep infinity &
    wait $! || true
  done
}

# Starts the first process of NODE. What it says goes to the log NODE.init.log.
start_node() {
  local node=$1
  local log
  log=$(log_of "$node" init)
  rm -f -- "$dir/nodes/$node/ready"
  (
    close_descriptors
    exec setsid env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 "$kMark=$dir" NODE="$node" \
      unshare --net --uts --mount --pid --fork --kill-child \
      bash -c "$(declare -f node_init); node_init \"\$@\"" node \
      "$node" "$(hostname_of "$node")" "$dir"
  ) </dev/null >"$log" 2>&1 &
  disown
}

# Whether NODE has laid out its mounts; 3 if it has said something and ended.
laid_out() {
  [[ ! -e $dir/nodes/$1/ready ]] || return 0
  if [[ -s $(log_of "$1" init) && -z $(anchors "NODE=$1") ]]; then return 3; else return 1; fi
}

# Waits until NODE has laid out its mounts and writes down the pid of its first process.
settle_node() {
  local node=$1 pid
  wait_for 60 "node $node to set itself up" "$(log_of "$node" init)" laid_out "$node" || return 1
  for pid in $(anchors "NODE=$node"); do
    if [[ $(sed -n 's/^NSpid:.*\t//p' "/proc/$pid/status" 2>/dev/null) == 1 ]]; then
      echo "$pid" >"$dir/state/$node.pid"
      return 0
    fi
  done
  say "the first process of node $node is gone; see $(log_of "$node" init)"
  return 1
}

# Whether process PID was started as a first process of the cluster in this folder, by a command
# that sees the same root folder as we do (a chroot may hold a checkout with the very same path).
is_anchor() {
  grep -qzxF -f <(printf '%s=%s\n' "$kMark" "$dir") "/proc/$1/environ" 2>/dev/null &&
    [[ /proc/$1/root/. -ef /. ]]
}

# The pid of NODE's first process, in $init; fails if the node is not there.
find_init() {
  init=$(cat -- "$dir/state/$1.pid" 2>/dev/null) && [[ -n $init ]] && is_anchor "$init"
}

# inside NODE COMMAND… : runs COMMAND as root in the node, with an environment of its own.
inside() {
  local node=$1 init
  shift
  find_init "$node" || {
    say "node $node is gone; see $(log_of "$node" init), then: scripts/cluster down"
    return 1
  }
  env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 SLURM_CONF=/etc/slurm/slurm.conf \
    nsenter --target "$init" --root --wd --net --uts --mount --pid -- "$@"
}

# --- finding and ending ---------------------------------------------------------------------------

# Prints the pids whose environment has the cluster's mark and, if given, the line MORE.
anchors() {
  local more=${1:-} file pid
  while IFS= read -r file; do
    pid=${file#/proc/}
    pid=${pid%/environ}
    if is_anchor "$pid"; then
      if [[ -z $more ]] || grep -qzxF -- "$more" "$file" 2>/dev/null; then echo "$pid"; fi
    fi
  done < <(grep -lzxF -f <(printf '%s=%s\n' "$kMark" "$dir") /proc/[0-9]*/environ 2>/dev/null)
}

# Prints the pids of all that runs in the cluster: the marked processes, and every process in a
# network or PID namespace of theirs. The namespaces that we or the machine's first process are in
# are never the cluster's, so nothing outside can be hit, whatever it is called.
members() {
  local pid kept marked
  marked=$(anchors)
  [[ -n $marked ]] || return 0
  kept=$(readlink /proc/{self,1}/ns/{net,pid,pid_for_children} 2>/dev/null | sort -u) || true
  {
    echo "$marked"
    # lines "PID NAMESPACE"; first those of the marked, then everyone's
    awk -v kept="$kept" -v marked="$marked" '
      BEGIN {
        n = split(kept, k, "\n"); for (i = 1; i <= n; i++) never[k[i]] = 1
        n = split(marked, m, "\n"); for (i = 1; i <= n; i++) anchor[m[i]] = 1
      }
      { pid[NR] = $1; space[NR] = $2; if (($1 in anchor) && !($2 in never)) ours[$2] = 1 }
      END { for (i = 1; i <= NR; i++) if (space[i] in ours) print pid[i] }
    ' < <(find /proc -mindepth 3 -maxdepth 3 -path '/proc/[0-9]*/ns/*' \
      \( -name net -o -name pid -o -name pid_for_children \) -printf '%h %l\n' 2>/dev/null |
      sed 's,^/proc/\([0-9]*\)/ns ,\1 ,')
  } | sort -u
}

# A process in a frozen control group (of version 1) does not die before it is thawed, and no
# namespace ends before its processes have.
thaw() {
  local group
  group=$(sed -n 's/^[0-9]*:[^:]*\bfreezer\b[^:]*://p' "/proc/$1/cgroup" 2>/dev/null) || return 0
  [[ -n $group && $group != / ]] || return 0
  { echo THAWED >"/sys/fs/cgroup/freezer$group/freezer.state"; } 2>/dev/null || true
}

# Prints when PID was started, in the kernel's ticks; nothing if it is gone or has only its exit status
# left. With it, a pid that was given to another process meanwhile is not taken for the old one.
start_of() {
  local line
  read -r line 2>/dev/null <"/proc/$1/stat" || return 0
  line=${line##*) }
  # shellcheck disable=SC2086 # its words
  set -- $line
  [[ $1 == [ZX] ]] || echo "${20}"
}

# Ends all that runs in the cluster. What was found once is waited for by pid, because a process that
# is dying shows neither its environment nor its namespaces. Twice nothing found is the end: what was
# just being started while we looked is found by the second look. What does not end in time is written
# down for the next try.
end_all() {
  local deadline=$((SECONDS + 30)) empty=0 pid start left tries
  local -a killed=()
  local -A seen=()
  while read -r pid start; do seen[$pid]=$start; done 2>/dev/null <"$dir/unended" || true
  while ((empty < 2)); do
    for pid in $(members); do
      start=$(start_of "$pid")
      [[ -n $start ]] || continue
      seen[$pid]=$start
      killed+=("$pid")
      empty=0
      kill -KILL "$pid" 2>/dev/null || true
    done
    left=
    for pid in "${!seen[@]}"; do
      if [[ $(start_of "$pid") == "${seen[$pid]}" ]]; then
        left+="$pid,"
        thaw "$pid"
      else
        unset "seen[$pid]"
      fi
    done
    if [[ -z $left ]]; then
      empty=$((empty + 1))
    elif ((SECONDS >= deadline)); then
      say "these processes of the cluster do not end:"
      ps -o pid,stat,wchan:20,args -p "${left%,}" >&2 || true
      for pid in "${!seen[@]}"; do echo "$pid ${seen[$pid]}"; done >"$dir/unended"
      return 1
    fi
    sleep 0.1
  done
  rm -f -- "$dir/unended"
  # Their exit statuses are the machine's first process to collect; a moment for that, but no more.
  for ((tries = 0; tries < 30; tries++)); do
    left=
    for pid in "${killed[@]}"; do [[ ! -e /proc/$pid ]] || left=1; done
    [[ -n $left ]] || break
    sleep 0.1
  done
}
