# shellcheck shell=bash disable=SC2034,SC2154 # the parts of scripts/cluster share their variables
# The plugin under test: copied to where root alone can write, then named in the nodes' plugstack.conf.
# Sourced by scripts/cluster.
#
# Copies, because netcheck refuses to run, as root, what others could have written, and a build
# folder is often such a place. In the nodes: /run/cluster/root (laid out like the tree of
# `cmake --install`) and /etc/netcheck/netcheck.toml.

# Takes the options that concern the plugin off the front of the arguments; sets $taken to their count.
plugin_so='' plugin_program='' plugin_install='' plugin_config='' plugin_args=''
plugin_modules=()
take_plugin_option() {
  taken=2
  case $1 in
    --plugin) plugin_so=${2:-} ;;
    --program) plugin_program=${2:-} ;;
    --module) plugin_modules+=("${2:-}") ;;
    --install) plugin_install=${2:-} ;;
    --config) plugin_config=${2:-} ;;
    --plugin-args)
      plugin_args=${2:-}
      return 0
      ;;
    *) taken=0 && return 1 ;;
  esac
  [[ -e ${2:-} ]] || usage_error "$1: there is no '${2:-}'"
}

plugin_given() { [[ -n $plugin_so || -n $plugin_install ]]; }

# Copies what the options name and writes state/plugin, the line for plugstack.conf.
copy_plugin() {
  local tree=$dir/root.new so program
  rm -rf -- "$tree"
  mkdir -p -- "$tree/bin" "$tree/lib/netcheck"
  if [[ -n $plugin_install ]]; then cp -RL --no-preserve=ownership -- "$plugin_install/." "$tree/"; fi
  [[ -z $plugin_program ]] || cp -L -- "$plugin_program" "$tree/bin/netcheck"
  [[ -z $plugin_so ]] || cp -L -- "$plugin_so" "$tree/lib/netcheck/netcheck.so"
  ((!${#plugin_modules[@]})) || cp -L -- "${plugin_modules[@]}" "$tree/lib/netcheck/"
  chown -R 0:0 -- "$tree"
  chmod -R u+rwX,go+rX,go-w,a-s -- "$tree"
  # The program; the Prolog script of the same name is none.
  find "$tree" -type f -perm -u+x -name netcheck -not -path '*/prolog.d/*' -exec chmod 0711 {} +
  so=$(find "$tree" -type f -name netcheck.so -printf '%P\n' -quit)
  [[ -n $so ]] || die "no netcheck.so in ${plugin_install:-$plugin_so}"
  program=$(find "$tree" -type f -perm 0711 -name netcheck -printf '%P\n' -quit)
  if [[ -z $plugin_config && -n $plugin_install ]]; then
    plugin_config=$(find "$tree" -type f -name netcheck.toml -print -quit)
  fi
  if [[ -n $plugin_config ]]; then
    cp -L -- "$plugin_config" "$dir/etc/netcheck/netcheck.toml"
    chown 0:0 -- "$dir/etc/netcheck/netcheck.toml"
    chmod 0644 -- "$dir/etc/netcheck/netcheck.toml"
  fi
  # A running slurmd has the old file mapped: new files come by renaming, never by overwriting.
  rm -rf -- "$dir/root.old"
  [[ ! -e $dir/root ]] || mv -- "$dir/root" "$dir/root.old"
  mv -- "$tree" "$dir/root"
  rm -rf -- "$dir/root.old"
  {
    echo -n "optional /run/cluster/root/$so"
    [[ -z $program ]] || echo -n " program=/run/cluster/root/$program"
    [[ ! -e $dir/etc/netcheck/netcheck.toml ]] || echo -n " config=/etc/netcheck/netcheck.toml"
    echo "${plugin_args:+ $plugin_args}"
  } >"$dir/state/plugin"
}

# write_plugstack on|off NODE… ; the file keeps its inode, so it may be mounted anywhere.
write_plugstack() {
  local node on=$1
  shift
  for node in "$@"; do
    if [[ $on == on ]]; then
      cat -- "$dir/state/plugin" >"$dir/nodes/$node/plugstack.conf"
    else
      : >"$dir/nodes/$node/plugstack.conf"
    fi
  done
}

# plugin on|off [OPTIONS] [NODE…] : all nodes and the controller unless named. slurmd decides at its
# start whether SPANK has a prolog, so each slurmd concerned is started anew.
plugin_main() {
  local act=${1:-} node taken
  local -a wanted=() restart=()
  [[ $act == on || $act == off ]] || usage_error "plugin on|off [NODE…]"
  shift
  while (($#)); do
    if take_plugin_option "$@"; then
      shift "$taken"
    else
      need_node "$1"
      wanted+=("$1")
      shift
    fi
  done
  if plugin_given; then copy_plugin; fi
  [[ $act == off || -e $dir/state/plugin ]] ||
    usage_error "no plugin has been given yet: plugin on --install DIR, or --plugin SO --program PROGRAM"
  ((${#wanted[@]})) || wanted=(ctl "${node_list[@]}")
  write_plugstack "$act" "${wanted[@]}"
  for node in "${wanted[@]}"; do [[ $node == ctl ]] || restart+=("$node"); done
  ((${#restart[@]})) || return 0
  for_each restart_slurmd "${restart[@]}" || die "a slurmd did not start again"
  wait_nodes usable || exit 1
}
