#!/usr/bin/env bash
# The first process in the namespaces of the cluster. SIGTERM ends it, and every other process of the cluster with it.
set -euo pipefail
. "$(dirname "$0")/env.sh"
log=$STATE/log
mkdir -p "$log" "$STATE/etcd" "$STATE/cni"
say() { printf '%s %s\n' "$(date +%T.%1N)" "$*"; }

end() {
  trap '' TERM INT
  # Pods first: none of their mounts and control groups may stay. Without the kubelet nothing starts them again.
  touch "$STATE/run/ending"
  kill "$(cat "$STATE/run/kubelet.pid")" 2>/dev/null || true
  for id in $(ctr --address "$STATE/run/containerd.sock" -n k8s.io tasks ls -q 2>/dev/null); do
    ctr --address "$STATE/run/containerd.sock" -n k8s.io tasks kill -s KILL "$id" >/dev/null 2>&1 || true
  done
  sleep 1
  kill -TERM -- -1 2>/dev/null || true
  sleep 1
  exit 0
}
trap end TERM INT

mount --make-rprivate /
mount --make-rshared /
hostname "$NODE_NAME"
# Paths of the host that containerd and the kubelet write to.
mkdir -p "$STATE/run" "$STATE/var/kubelet" "$STATE/var/log"
mount -t tmpfs tmpfs "$STATE/run"
mount --bind "$STATE/var/log" /var/log
printf '127.0.0.1 localhost\n%s %s\n' "$NODE_IP" "$NODE_NAME" >"$STATE/hosts"
mount --bind "$STATE/hosts" /etc/hosts
# The node and the suite use the DNS of the cluster. No name outside resolves.
printf 'nameserver %s\noptions attempts:2 timeout:2\n' "$DNS_IP" >"$STATE/resolv.conf"
mount --bind "$STATE/resolv.conf" /etc/resolv.conf

ip link set lo up
ip link add node0 type veth peer name node0-peer
ip link set node0-peer up
ip addr add "$NODE_IP/24" dev node0
ip link set node0 up
# Addresses of Services need a route before kube-proxy rewrites them. Nothing is at the other end of this link.
ip route add default dev node0
sysctl -qw net.ipv4.ip_forward=1
[ -e /proc/sys/net/bridge ] && sysctl -qw net.bridge.bridge-nf-call-iptables=1
iptables -w -P FORWARD ACCEPT

cat >"$STATE/cni/10-bridge.conflist" <<END
{"cniVersion": "0.4.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true,
   "ipam": {"type": "host-local", "dataDir": "$STATE/var/ipam", "ranges": [[{"subnet": "$POD_CIDR"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
END
cat >"$STATE/containerd.toml" <<END
version = 2
root = "$STATE/containerd"
state = "$STATE/run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.internal.v1.opt", "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing"]
oom_score = 0
[grpc]
  address = "$STATE/run/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  disable_apparmor = true
  # Without CAP_SYS_RESOURCE, a score below the caller's own cannot be set.
  restrict_oom_score_adj = true
  tolerate_missing_hugetlb_controller = true
  disable_hugetlb_controller = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
        Root = "$STATE/run/runc"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$STATE/cni"
END
cat >"$STATE/kubelet.yaml" <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix://$STATE/run/containerd.sock
cgroupDriver: cgroupfs
cgroupRoot: /
failCgroupV1: false
failSwapOn: false
localStorageCapacityIsolation: true
enforceNodeAllocatable: [pods]
oomScoreAdj: 0
maxOpenFiles: 20000
makeIPTablesUtilChains: true
authentication: {x509: {clientCAFile: $STATE/pki/ca.crt}, anonymous: {enabled: false}, webhook: {enabled: true}}
authorization: {mode: Webhook}
tlsCertFile: $STATE/pki/kubelet-server.crt
tlsPrivateKeyFile: $STATE/pki/kubelet-server.key
address: $NODE_IP
clusterDNS: [$DNS_IP]
clusterDomain: cluster.local
resolvConf: $STATE/resolv.conf
podCIDR: $POD_CIDR
staticPodPath: ''
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
evictionHard: {memory.available: 200Mi, nodefs.available: 1%, imagefs.available: 1%, nodefs.inodesFree: 1%}
nodeStatusUpdateFrequency: 4s
# How often it measures the disks of pods. The default is a minute.
volumeStatsAggPeriod: 2s
shutdownGracePeriod: 0s
registerWithTaints: []
END
cat >"$STATE/proxy.yaml" <<END
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {kubeconfig: $STATE/pki/proxy.conf}
mode: iptables
clusterCIDR: $POD_CIDR
hostnameOverride: $NODE_NAME
healthzBindAddress: 127.0.0.1:10256
metricsBindAddress: 127.0.0.1:10249
# These sysctls belong to the host.
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
iptables: {minSyncPeriod: 0.1s}
END

# Starts a program, and starts it again when it dies, as an init system does.
start() { # NAME COMMAND…
  local name=$1
  shift
  while [ ! -e "$STATE/run/ending" ]; do
    "$@" >>"$log/$name.log" 2>&1 &
    echo $! >"$STATE/run/$name.pid"
    wait $! || true
    sleep 0.5
  done &
  say "started $name"
}
until_ok() { # SECONDS COMMAND…
  local limit=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $limit ] || { say "no success: $*"; return 1; }
    sleep 0.2
  done
}

start etcd etcd --name one --data-dir "$STATE/etcd" --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
  --listen-peer-urls http://127.0.0.1:2380 --initial-advertise-peer-urls http://127.0.0.1:2380 --initial-cluster one=http://127.0.0.1:2380
start containerd containerd --config "$STATE/containerd.toml"
until_ok 60 curl -fsS http://127.0.0.1:2379/health
say 'etcd is healthy'
start apiserver kube-apiserver --etcd-servers http://127.0.0.1:2379 --advertise-address "$NODE_IP" --bind-address "$NODE_IP" --secure-port 6443 \
  --service-cluster-ip-range "$SERVICE_CIDR" --client-ca-file "$STATE/pki/ca.crt" --tls-cert-file "$STATE/pki/apiserver.crt" --tls-private-key-file "$STATE/pki/apiserver.key" \
  --kubelet-client-certificate "$STATE/pki/apiserver-kubelet.crt" --kubelet-client-key "$STATE/pki/apiserver-kubelet.key" --kubelet-certificate-authority "$STATE/pki/ca.crt" \
  --kubelet-preferred-address-types InternalIP \
  --service-account-issuer https://kubernetes.default.svc.cluster.local --service-account-key-file "$STATE/pki/service-accounts.pub" --service-account-signing-key-file "$STATE/pki/service-accounts.key" \
  --requestheader-client-ca-file "$STATE/pki/front-proxy-ca.crt" --requestheader-allowed-names front-proxy --requestheader-username-headers X-Remote-User \
  --requestheader-group-headers X-Remote-Group --requestheader-extra-headers-prefix X-Remote-Extra- \
  --proxy-client-cert-file "$STATE/pki/front-proxy.crt" --proxy-client-key-file "$STATE/pki/front-proxy.key" \
  --authorization-mode Node,RBAC --enable-admission-plugins NodeRestriction --allow-privileged --event-ttl 2h --v 1
export KUBECONFIG=$STATE/pki/admin.conf
until_ok 180 kubectl get --raw /readyz
say 'the API server is ready'
start controllers kube-controller-manager --kubeconfig "$STATE/pki/controllers.conf" --authentication-kubeconfig "$STATE/pki/controllers.conf" --authorization-kubeconfig "$STATE/pki/controllers.conf" \
  --root-ca-file "$STATE/pki/ca.crt" --service-account-private-key-file "$STATE/pki/service-accounts.key" --use-service-account-credentials --leader-elect=false \
  --cluster-cidr "$POD_CIDR" --service-cluster-ip-range "$SERVICE_CIDR" --bind-address 127.0.0.1 \
  --node-monitor-grace-period 20s --v 1
start scheduler kube-scheduler --kubeconfig "$STATE/pki/scheduler.conf" --authentication-kubeconfig "$STATE/pki/scheduler.conf" --authorization-kubeconfig "$STATE/pki/scheduler.conf" --leader-elect=false --bind-address 127.0.0.1
until_ok 60 ctr --address "$STATE/run/containerd.sock" version
for image in "$IMAGES"/*.tar; do
  ctr --address "$STATE/run/containerd.sock" -n k8s.io images import "$image" >>"$log/images.log" 2>&1
done
say 'images are imported'
start kubelet kubelet --config "$STATE/kubelet.yaml" --kubeconfig "$STATE/pki/kubelet.conf" --root-dir "$STATE/var/kubelet" --hostname-override "$NODE_NAME" --node-ip "$NODE_IP" --cert-dir "$STATE/pki" --v 1
start proxy kube-proxy --config "$STATE/proxy.yaml"
until_ok 120 kubectl wait --for=condition=Ready "node/$NODE_NAME" --timeout 2s
say 'the node is ready'
kubectl apply -f "$KIT/dns.yaml" >"$log/dns.log" 2>&1
until_ok 120 kubectl -n kube-system rollout status deployment/coredns --timeout 2s
say 'DNS answers'
touch "$STATE/ready"

while :; do wait || true; sleep 1; done
