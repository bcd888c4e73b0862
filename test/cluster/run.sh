#!/usr/bin/env bash
# npm run test:cluster, npm run test:engines-cluster: builds what is missing, starts a cluster, runs the suite inside its
# namespaces, removes the cluster.
set -euo pipefail
. "$(dirname "$0")/env.sh"
cd "$ROOT"
if [ "${CI:-}" != true ]; then
  for program in containerd runc etcd buildah debootstrap iptables conntrack redis-server nginx go; do
    command -v "$program" >/dev/null || { echo "Left out, because $program is not installed: the suite in a cluster. See CONTRIBUTING.md."; exit 0; }
  done
fi
phase() { # TITLE COMMAND…
  local title=$1 begun=$SECONDS
  shift
  "$@"
  echo "cluster: $title in $((SECONDS - begun)) s"
}
output=$(mktemp)
trap 'rm -f "$output"' EXIT
quietly() { "$@" >"$output" 2>&1 || { cat "$output"; return 1; }; }
# One cluster at a time on a machine: a second run waits for the first.
exec 7>"$STATE.lock"
flock 7
phase programs bash "$KIT/build.sh"
phase 'base images' quietly bash "$KIT/bases.sh"
phase 'object store' node scripts/run.mjs scripts/object-store.ts
phase images quietly bash "$KIT/images.sh"
# What a run that was killed left behind.
bash "$KIT/cluster.sh" down
trap 'rm -f "$output"; bash "$KIT/cluster.sh" down; echo "cluster: logs in ${CACHE#"$ROOT/"}/log"' EXIT
phase started quietly bash "$KIT/cluster.sh" up 7>&-
phase stores bash "$KIT/cluster.sh" run bash "$KIT/backing.sh" 7>&-
export NODE_EXTRA_CA_CERTS=$STATE/pki/ca.crt CLUSTER_STATE=$STATE
phase suite bash "$KIT/cluster.sh" run node scripts/run.mjs node_modules/vitest/vitest.mjs run --project "${SUITE:-cluster}" "$@"
