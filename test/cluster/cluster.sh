#!/usr/bin/env bash
# A one-node Kubernetes in separate namespaces (network, mounts, processes, host name): its traffic never leaves them.
# Needs root, and a kernel with veth, bridge, overlay and iptables.
#   cluster.sh up            starts it; returns when the node is ready and DNS answers
#   cluster.sh run COMMAND…  runs a command in its namespaces, with KUBECONFIG set
#   cluster.sh down          stops it and removes its state; the cache stays, with its last logs
set -euo pipefail
. "$(dirname "$0")/env.sh"

alive() { [ -e "$STATE/pid" ] && [ -e "/proc/$(cat "$STATE/pid")" ]; }

case ${1:-} in
up)
  ! alive || { echo "A cluster is running: process $(cat "$STATE/pid"). End it: test/cluster/cluster.sh down"; exit 1; }
  rm -rf "$STATE"
  mkdir -p "$STATE/log"
  bash "$KIT/pki.sh"
  setsid unshare --mount --net --pid --uts --ipc --fork --kill-child=KILL --mount-proc bash "$KIT/inside.sh" >"$STATE/log/inside.log" 2>&1 &
  outer=$!
  until [ -e "$STATE/ready" ]; do
    [ -e "/proc/$outer" ] || { cat "$STATE/log/inside.log"; exit 1; }
    pgrep -P "$outer" >"$STATE/pid" || true
    sleep 0.2
  done
  cat "$STATE/log/inside.log"
  ;;
run)
  shift
  export KUBECONFIG=$STATE/pki/admin.conf
  exec nsenter --target "$(cat "$STATE/pid")" --mount --net --pid --uts --ipc --wd="$PWD" -- "$@"
  ;;
down)
  if alive; then
    pid=$(cat "$STATE/pid")
    kill -TERM "$pid"
    for _ in $(seq 100); do [ -e "/proc/$pid" ] || break; sleep 0.2; done
    [ ! -e "/proc/$pid" ] || kill -KILL "$pid"
  fi
  # Mounts and networks end with the processes; control groups belong to the host.
  for _ in 1 2 3 4 5; do
    compgen -G '/sys/fs/cgroup/kubepods' >/dev/null || compgen -G '/sys/fs/cgroup/*/kubepods' >/dev/null || break
    find /sys/fs/cgroup -depth -type d -path '*/kubepods*' -exec rmdir {} + 2>/dev/null || true
    sleep 0.5
  done
  # The logs of its programs and pods outlive it, for a run that failed.
  rm -rf "$CACHE/log"
  [ ! -e "$STATE/log" ] || { mv "$STATE/log" "$CACHE/log" && mv "$STATE/var/log/pods" "$CACHE/log/" || true; }
  rm -rf "$STATE"
  ;;
*)
  sed -n '4,6p' "$0"
  exit 2
  ;;
esac
