#!/usr/bin/env bash
# Compiles the programs of the test cluster into the cache: Kubernetes (five programs in one binary), CoreDNS and the pause
# process. Needs Go 1.26. Takes about 11 minutes of processor time the first time, and nothing until a source changes.
# kubectl and Helm come as binaries from an npm package (scripts/kubectl-layer.ts).
set -euo pipefail
. "$(dirname "$0")/env.sh"
cd "$KIT"
stamp=$(cat build.sh "$ROOT/scripts/kubectl-layer.ts" go.mod go.sum ./*/main.go | sha256sum)
[ "$(cat "$BIN/stamp" 2>/dev/null)" = "$stamp" ] && exit 0
echo 'cluster: compiling Kubernetes and CoreDNS, once; this takes some minutes …'
rm -rf "$BIN"
mkdir -p "$BIN"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CGO_ENABLED=0 GOFLAGS='-p=2 -buildvcs=false -trimpath' GOTOOLCHAIN=local

build() { # NAME OPTIONS… PACKAGE
  local name=$1
  shift
  SECONDS=0
  go build -o "$BIN/$name" "$@"
  echo "cluster: $name ($SECONDS s)"
}

# Helm refuses a chart when the API server reports v0.0.0, so the version is set as a release build sets it.
release=$(go list -m -f '{{.Version}}' k8s.io/component-base)
release=${release#v0.}
package=k8s.io/component-base/version
build pause -ldflags '-s -w' ./pause
build kube -ldflags "-s -w -X $package.gitVersion=v1.$release -X $package.gitMajor=1 -X $package.gitMinor=${release%.*}" ./kube
for name in kube-apiserver kube-controller-manager kube-scheduler kube-proxy kubelet; do ln -s kube "$BIN/$name"; done

# The newest CoreDNS that needs no newer client library than this Kubernetes; one field it sets no longer exists there.
go mod download github.com/coredns/coredns
cp -r "$(go list -m -f '{{.Dir}}' github.com/coredns/coredns)" "$work/coredns"
chmod -R u+w "$work/coredns"
sed -i '/RetryOnError/d' "$work/coredns/plugin/kubernetes/object/informer.go"
cp go.mod "$work/dns.mod" && cp go.sum "$work/dns.sum"
go mod edit -replace "github.com/coredns/coredns=$work/coredns" "$work/dns.mod"
build coredns -modfile "$work/dns.mod" -ldflags '-s -w' ./dns

node "$ROOT/scripts/run.mjs" "$ROOT/scripts/kubectl-layer.ts" "$BIN"
echo "$stamp" >"$BIN/stamp"
