#!/usr/bin/env bash
# The images of the cluster and of the product, as archives that the cluster imports when it starts.
set -euo pipefail
. "$(dirname "$0")/env.sh"
mkdir -p "$IMAGES"

save() { # NAME:TAG
  local archive=$IMAGES/${1%%:*}.tar
  rm -f "$archive"
  "${BUILDAH[@]}" push --quiet "localhost/$1" "docker-archive:$archive:localhost/$1"
}
one_program() { # NAME:TAG USER
  local folder=$CACHE/one-program name=${1%%:*}
  rm -rf "$folder" && mkdir -p "$folder"
  cp "$BIN/$name" "$folder"
  printf 'FROM scratch\nCOPY %s /\nUSER %s\nENTRYPOINT ["/%s"]\n' "$name" "$2" "$name" >"$folder/Containerfile"
  "${BUILDAH[@]}" build --isolation chroot --quiet -t "localhost/$1" "$folder" >/dev/null
  rm -rf "$folder"
  save "$1"
}
[ "$IMAGES/pause.tar" -nt "$BIN/pause" ] || one_program pause:1 65535:65535
[ "$IMAGES/coredns.tar" -nt "$BIN/coredns" ] || one_program coredns:1 65532:65532

# Node and a shell, for commands of Environments.
if [ ! "$IMAGES/base-node.tar" -nt "$CACHE/bases/stamp" ]; then
  "${BUILDAH[@]}" tag localhost/base-node localhost/base-node:test
  save base-node:test
fi

"${BUILDAH[@]}" build --isolation chroot --pull-never --layers --build-arg NODE_IMAGE=localhost/base-node --build-arg RUNTIME_IMAGE=localhost/base-runtime \
  -f "$ROOT/Containerfile" -t localhost/postern:test "$ROOT"
save postern:test
