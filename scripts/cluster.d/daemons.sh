# shellcheck shell=bash disable=SC2034,SC2154 # the parts of scripts/cluster share their variables
# The daemons of the cluster: started, watched, stopped, paused. Sourced by scripts/cluster.
#
# Each runs in the foreground mode of its program below its node's first process, with its output in
# logs/NODE.DAEMON.log and its pid, as the node counts, in the node's /run/daemons/DAEMON.pid.

readonly kDatabase=/run/mysqld/db

# What every node runs, and what the controller runs besides, in the order of starting.
daemons_of() { if [[ $1 == ctl ]]; then echo munged mariadbd slurmdbd slurmctld; else echo munged slurmd; fi; }

# The command line of DAEMON, one argument a line.
command_of() {
  case $1 in
    munged) printf '%s\n' setpriv --reuid=munge --regid=munge --init-groups munged --foreground \
      --num-threads=2 --key-file=/run/node/munge/munge.key --seed-file=/run/node/munge/seed \
      --pid-file=/run/munge/munged.pid --socket=/run/munge/munge.socket.2 ;;
    # Small, and careless of a power cut: the database lives no longer than the cluster. In the node's /run, which
    # is memory: to make it and to start slurmctld is mostly waiting for a disk to say that all is written.
    mariadbd) printf '%s\n' mariadbd --no-defaults --user=mysql --datadir="$kDatabase" \
      --socket=/run/mysqld/mysqld.sock --pid-file=/run/mysqld/mysqld.pid --skip-networking \
      --init-file=/run/cluster/state/accounting.sql --innodb-buffer-pool-size=32M \
      --innodb-log-file-size=8M --innodb-flush-log-at-trx-commit=0 --innodb-doublewrite=0 \
      --innodb-lock-wait-timeout=900 --key-buffer-size=1M --performance-schema=OFF ;;
    slurmdbd) printf '%s\n' setpriv --reuid=slurm --regid=slurm --init-groups slurmdbd -D ;;
    slurmctld) printf '%s\n' setpriv --reuid=slurm --regid=slurm --init-groups slurmctld -D ;;
    slurmd) printf '%s\n' slurmd -D ;;
  esac
}

# Whether DAEMON of NODE answers; 3 if it has ended. Run inside the node.
# shellcheck disable=SC2016 # for the node's own shell
readonly kAnswers='
  name=$1
  pid=$(cat "/run/daemons/$name.pid") && [ -n "$pid" ] || exit 1
  kill -0 "$pid" || exit 3
  case $name in
    munged) timeout 5 munge -n -o /dev/null ;;
    mariadbd) timeout 5 mariadb-admin --no-defaults ping ;;
    slurmdbd) ss -Hltn "sport = :6819" | grep -q . ;;
    slurmctld) timeout 5 scontrol ping | grep -q "is UP" ;;
    slurmd) ss -Hltn "sport = :6818" | grep -q . ;;
  esac || exit 1'

answers() { inside "$1" sh -c "$kAnswers" sh "$2"; }

# running NODE DAEMON : whether its process is there, paused or not.
running() {
  # shellcheck disable=SC2016 # for the node's own shell
  inside "$1" sh -c 'kill -0 "$(cat "/run/daemons/$1.pid")"' sh "$2" 2>/dev/null
}

# start_daemon NODE DAEMON [SKEW] : SKEW seconds is how far its clock is off (libfaketime).
start_daemon() {
  local node=$1 name=$2 skew=${3:-} log
  local -a line
  log=$(log_of "$node" "$name")
  mapfile -t line < <(command_of "$name")
  if [[ -n $skew ]]; then
    # Preload the daemon alone, after setpriv: the library makes a semaphore, which has to belong to the
    # daemon's account.
    local i
    for ((i = 0; i < ${#line[@]}; i++)); do [[ ${line[i]} != "$name" ]] || break; done
    line=("${line[@]:0:i}" env "LD_PRELOAD=$(faketime_library)" "FAKETIME=$skew"
      FAKETIME_DONT_FAKE_MONOTONIC=1 "${line[@]:i}")
  fi
  printf -- '--- %s: started by scripts/cluster\n' "$(date -u +%FT%TZ)" >>"$log"
  # shellcheck disable=SC2016 # for the node's own shell
  inside "$node" bash -c "$(declare -f close_descriptors)"'
    name=$1 log=$2
    shift 2
    rm -f "/run/daemons/$name.pid"
    close_descriptors
    setsid bash -c '\''echo $$ >"/run/daemons/$0.pid"; exec "$@"'\'' "$name" "$@" </dev/null >>"$log" 2>&1 &
  ' start "$name" "/run/cluster/logs/$node.$name.log" "${line[@]}" || return 1
  wait_for 60 "$name of $node to answer" "$log" answers "$node" "$name"
}

faketime_library() {
  local file
  for file in /usr/lib/*/faketime/libfaketimeMT.so.1; do
    [[ -e $file ]] || die "no libfaketime: install the package faketime"
    echo "$file"
    return
  done
}

# Asks DAEMON to end and, after 20 s, makes it.
stop_daemon() {
  # shellcheck disable=SC2016 # for the node's own shell
  inside "$1" sh -c '
    pid=$(cat "/run/daemons/$1.pid" 2>/dev/null) && kill -0 "$pid" 2>/dev/null || exit 0
    kill -TERM "$pid" 2>/dev/null; kill -CONT "$pid" 2>/dev/null
    tries=0
    while kill -0 "$pid" 2>/dev/null; do
      [ "$tries" -lt 200 ] || kill -KILL "$pid" 2>/dev/null
      tries=$((tries + 1))
      sleep 0.1
    done
    rm -f "/run/daemons/$1.pid"' sh "$2"
}

signal_daemon() {
  # shellcheck disable=SC2016 # for the node's own shell
  inside "$1" sh -c 'kill -"$2" "$(cat "/run/daemons/$1.pid")"' sh "$2" "$3" 2>/dev/null ||
    die "$2 of $1 is not running"
}

start_if_absent() { running "$1" "$2" || start_daemon "$1" "$2"; }
start_munged() { start_if_absent "$1" munged; }
start_slurmd() { start_if_absent "$1" slurmd; }
restart_slurmd() {
  stop_daemon "$1" slurmd
  start_daemon "$1" slurmd
}

# The controller's part, up to a database in which this cluster is known.
start_accounting() {
  local log
  log=$(log_of ctl mariadbd)
  if ! inside ctl test -d "$kDatabase/mysql"; then
    inside ctl timeout 120 mariadb-install-db --no-defaults --user=mysql --datadir="$kDatabase" \
      --skip-test-db --auth-root-authentication-method=socket --innodb-log-file-size=8M >>"$log" 2>&1 || {
      say "mariadb-install-db failed; see $log"
      return 1
    }
  fi
  start_if_absent ctl mariadbd
  start_if_absent ctl slurmdbd
}

# --- nodes as Slurm sees them -----------------------------------------------------------------------

# Lines "NODE STATE", the state with Slurm's mark for one that does not answer (*).
node_states() { inside ctl timeout 10 sinfo -h -N -p main -o '%N %T'; }

all_idle() { [[ $(node_states | grep -c ' idle$') == "$nodes" ]]; }
# In a cluster that has jobs, working is as good as idle.
all_usable() { [[ $(node_states | grep -cE ' (idle|mixed|allocated|completing)$') == "$nodes" ]]; }

wait_nodes() {
  wait_for 90 "every node to be $1" "$(log_of ctl slurmctld)" "all_$1" && return 0
  say "the nodes: $(node_states | tr '\n' ';')"
  say "their logs: $dir/logs/n*.slurmd.log"
  return 1
}

# --- the subcommands --------------------------------------------------------------------------------

need_daemon() {
  [[ " $(daemons_of "$1") " == *" $2 "* ]] || usage_error "no daemon '$2' on $1; there are: $(daemons_of "$1")"
}

# A number with s, m, h or d, as libfaketime takes it.
check_skew() { [[ $1 =~ ^[+-]?[0-9]+[smhd]?$ ]] || usage_error "'$1' is no skew; write 10m, -90s or +1h"; }

daemon_main() {
  local node=${1:-} name=${2:-} act=${3:-} skew=
  (($# >= 3)) || usage_error "daemon NODE DAEMON stop|start|restart|pause|resume|status"
  need_node "$node"
  need_daemon "$node" "$name"
  shift 3
  while (($#)); do
    case $1 in
      --skew)
        skew=${2:-}
        check_skew "$skew"
        [[ $skew == [+-]* ]] || skew=+$skew
        shift
        ;;
      *) usage_error "daemon: unknown option '$1'" ;;
    esac
    shift
  done
  case $act in
    start) running "$node" "$name" || start_daemon "$node" "$name" "$skew" ;;
    restart) stop_daemon "$node" "$name" && start_daemon "$node" "$name" "$skew" ;;
    stop) stop_daemon "$node" "$name" ;;
    pause) signal_daemon "$node" "$name" STOP ;;
    resume) signal_daemon "$node" "$name" CONT ;;
    status) daemon_state "$node" "$name" ;;
    *) usage_error "daemon: '$act' is none of stop, start, restart, pause, resume, status" ;;
  esac
}

# daemon_state NODE DAEMON… : a line for each: running, paused or stopped.
daemon_state() {
  local node=$1
  shift
  # shellcheck disable=SC2016 # for the node's own shell
  inside "$node" sh -c '
    for name; do
      state=$(sed -n "s/^State:\t\(.\).*/\1/p" "/proc/$(cat "/run/daemons/$name.pid")/status")
      case $state in "" | [XZ]) echo stopped ;; [Tt]) echo paused ;; *) echo running ;; esac
    done' sh "$@" 2>/dev/null
}

key_main() {
  [[ ${2:-} == right || ${2:-} == wrong ]] || usage_error "key NODE right|wrong"
  need_node "$1"
  set_key "$1" "$2"
  stop_daemon "$1" munged
  start_daemon "$1" munged
}
