# shellcheck shell=bash disable=SC2034,SC2154 # the parts of scripts/cluster share their variables
# What the nodes read: accounts, hosts, keys, and the configuration of Slurm and its database.
# Sourced by scripts/cluster. Written anew by every `up`.

readonly -a kUsers=(alice bob) # they submit jobs

# A private copy of the machine's /etc, mounted over /etc in every node. Secrets stay behind.
write_etc() {
  mkdir -p -- "$dir/etc"
  tar -C /etc --exclude=./shadow\* --exclude=./gshadow\* --exclude=./ssh --exclude=./ssl/private \
    --exclude=./slurm --exclude=./munge --exclude=./netcheck --exclude=./sudoers\* -cf - . 2>/dev/null |
    tar -C "$dir/etc" -xpf -
  mkdir -p -- "$dir/etc/slurm" "$dir/etc/netcheck"
  chmod 0755 -- "$dir/etc" "$dir/etc/slurm" "$dir/etc/netcheck"
  rm -f -- "$dir/etc/resolv.conf" # no name server is in reach
  : >"$dir/etc/resolv.conf"
  : >>"$dir/etc/hosts" # files that a bare system may lack, to mount others over
  : >>"$dir/etc/hostname"
  printf '%s\n' 'passwd: files' 'group: files' 'shadow: files' 'hosts: files dns' \
    'services: files' 'protocols: files' >"$dir/etc/nsswitch.conf"
}

# add_account NAME FIRST_ID STEP HOME SHELL : takes the first id that neither a user nor a group has.
add_account() {
  local name=$1 id=$2
  sed -i "/^$name:/d" "$dir/etc/passwd" "$dir/etc/group"
  while grep -Eq "^[^:]*:[^:]*:$id:" "$dir/etc/passwd" "$dir/etc/group"; do id=$((id + $3)); done
  echo "$name:x:$id:$id::$4:$5" >>"$dir/etc/passwd"
  echo "$name:x:$id:" >>"$dir/etc/group"
}

# The probe's account `netcheck`, as its package would make it, and the users.
write_accounts() {
  local user
  add_account netcheck 990 -1 /nonexistent /usr/sbin/nologin
  for user in "${kUsers[@]}"; do
    add_account "$user" 20001 1 "/run/cluster/home/$user" /bin/bash
    mkdir -p -- "$dir/home/$user"
    chown "$(grep "^$user:" "$dir/etc/passwd" | cut -d: -f3,4)" -- "$dir/home/$user"
    chmod 0755 -- "$dir/home/$user"
  done
}

write_slurm() {
  local last=n$nodes each="CPUs=4 RealMemory=1000"
  ((gpus == 0)) || each+=" Gres=gpu:$gpus"
  {
    echo "ClusterName=netcheck"
    echo "SlurmctldHost=ctl($(address_of ctl 0))"
    cat <<'END'
SlurmUser=slurm
AuthType=auth/munge
CredType=cred/munge
StateSaveLocation=/run/slurm/state
SlurmdSpoolDir=/run/node/spool
SlurmctldPidFile=/run/slurm/slurmctld.pid
SlurmdPidFile=/run/slurm/slurmd.pid
MailProg=/bin/true
MpiDefault=none
SwitchType=switch/none
# The nodes are namespaces of one machine: no control group, no binding, no accounting of processes.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
# The nodes claim more processors than the machine may have.
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=ctl
AccountingStoreFlags=job_comment
JobRequeue=1
ReturnToService=2
KillWait=5
# Start jobs at once rather than collect them.
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=5,bf_interval=2
PlugStackConfig=/etc/slurm/plugstack.conf
END
    echo "PrologFlags=$prolog_flags"
    ((gpus == 0)) || echo "GresTypes=gpu"
    [[ -z $extra_conf ]] || echo "$extra_conf"
    ((nodes == 1)) || echo "NodeName=n[1-$((nodes - 1))] $each State=UNKNOWN"
    echo "NodeName=$last NodeHostname=$(hostname_of "$last") NodeAddr=$last $each State=UNKNOWN"
    echo "PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP"
    echo "PartitionName=other Nodes=ALL MaxTime=INFINITE State=UP"
  } >"$dir/etc/slurm/slurm.conf"
  # slurmd wants a plugin for control groups even where none is used. The one for version 1 asks nothing
  # of the machine then; the one for version 2 asks for systemd, and autodetection finds neither here.
  echo "CgroupPlugin=cgroup/v1" >"$dir/etc/slurm/cgroup.conf"
  # Their numbers, which jobs are given, are the numbers at the ends of these names.
  ((gpus == 0)) || echo "Name=gpu File=/run/node/gpu/nvidia[0-$((gpus - 1))]" >"$dir/etc/slurm/gres.conf"
  # What SPANK loads is each node's own, so that a node without the plugin can be had.
  echo "include /run/node/plugstack.conf" >"$dir/etc/slurm/plugstack.conf"
  cat >"$dir/etc/slurm/slurmdbd.conf" <<'END'
DbdHost=ctl
SlurmUser=slurm
AuthType=auth/munge
PidFile=/run/slurm/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageLoc=slurm_acct_db
StorageUser=slurm
END
  chown slurm:slurm -- "$dir/etc/slurm/slurmdbd.conf"
  chmod 0600 -- "$dir/etc/slurm/slurmdbd.conf"
}

# hosts_of NODE : every node by its NodeName on rail 0, and by NodeName-railR on the others. A node's own
# hostname, where it is another, is what Debian makes it: an alias of loopback.
hosts_of() {
  local node rail
  echo "127.0.0.1 localhost"
  [[ $(hostname_of "$1") == "$1" ]] || echo "127.0.1.1 $(hostname_of "$1")"
  for node in ctl "${node_list[@]}"; do
    echo "$(address_of "$node" 0) $node"
    for rail in $(rails_of "$node"); do
      ((rail == 0)) || echo "$(address_of "$node" "$rail") $node-rail$rail"
    done
  done
}

# The folder of NODE, which the node itself sees as /run/node.
write_node() {
  local own=$dir/nodes/$1
  mkdir -p -- "$own/run" "$own/spool" "$own/munge"
  hosts_of "$1" >"$own/hosts"
  hostname_of "$1" >"$own/hostname"
  : >>"$own/plugstack.conf"
  [[ $1 == ctl ]] || write_gpus "$own/gpu"
  set_key "$1" right
}

# What of GPUs a node has, in FOLDER: a device for each, and the libraries, for root alone to write.
write_gpus() {
  local folder=$1 number
  ((gpus > 0)) || return 0
  mkdir -p -- "$folder"
  echo "gpus=$gpus" >"$folder/fake.ini"
  chmod 0755 -- "$folder"
  chmod 0644 -- "$folder/fake.ini"
  chown -R 0:0 -- "$folder"
  copy_gpu_libraries "$folder"
  # slurmd wants devices.
  for ((number = 0; number < gpus; number++)); do ln -s /dev/null "$folder/nvidia$number"; done
}

# By renaming: what runs has the old ones mapped.
copy_gpu_libraries() {
  local folder=$1 library
  ((gpus > 0)) && [[ -n $gpu_libraries ]] || return 0
  for library in "$gpu_libraries"/lib*.so.[0-9]*; do
    install -o 0 -g 0 -m 0644 -- "$library" "$folder/.new"
    mv -- "$folder/.new" "$folder/${library##*/}"
  done
}

# set_key NODE right|wrong : the key that its munged reads when it starts.
set_key() {
  local file=$dir/nodes/$1/munge/munge.key
  if [[ $2 == right ]]; then
    cp -- "$dir/state/munge.key" "$file.new"
  else
    head -c 1024 /dev/urandom >"$file.new"
  fi
  chown -R munge:munge -- "$dir/nodes/$1/munge"
  chmod 0700 -- "$dir/nodes/$1/munge"
  chmod 0600 -- "$file.new"
  mv -- "$file.new" "$file"
}

write_all() {
  local node
  mkdir -p -- "$dir"/{state,logs,home,nodes/fabric}
  chmod 0755 -- "$dir"/{state,logs,home,nodes,nodes/fabric}
  (umask 077 && head -c 1024 /dev/urandom >"$dir/state/munge.key")
  write_etc
  write_accounts
  write_slurm
  for node in ctl "${node_list[@]}"; do write_node "$node"; done
  cat >"$dir/state/accounting.sql" <<'END'
CREATE DATABASE IF NOT EXISTS slurm_acct_db;
CREATE USER IF NOT EXISTS slurm@localhost IDENTIFIED VIA unix_socket;
GRANT ALL ON slurm_acct_db.* TO slurm@localhost;
END
}
