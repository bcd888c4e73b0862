# Paths and addresses of the test cluster. State is below STATE (short, because it holds UNIX sockets); compiled programs,
# base images and image archives are below CACHE and outlive a run.
KIT=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ROOT=$(cd "$KIT/../.." && pwd)
STATE=${STATE:-/tmp/postern-cluster}
CACHE=${CACHE:-$ROOT/node_modules/.cache/cluster}
BIN=$CACHE/bin
IMAGES=$CACHE/images
NODE_NAME=node-1
NODE_IP=10.77.0.1
POD_CIDR=10.244.0.0/24
SERVICE_CIDR=10.96.0.0/16
API_IP=10.96.0.1
DNS_IP=10.96.0.10
export PATH="$BIN:/usr/lib/cni:/usr/sbin:/sbin:$PATH"
# Separate image storage: these builds never mix with other images on the machine.
BUILDAH=(buildah --root "$CACHE/storage" --runroot "$CACHE/storage-run")
