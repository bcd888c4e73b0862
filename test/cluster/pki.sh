#!/usr/bin/env bash
# The certificates and kubeconfigs of one cluster.
set -euo pipefail
. "$(dirname "$0")/env.sh"
mkdir -p "$STATE/pki"
cd "$STATE/pki"
key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1.key" 2>/dev/null; }
ca() { key "$1"; openssl req -x509 -new -key "$1.key" -subj "/CN=$1" -days 3650 -out "$1.crt" -addext keyUsage=critical,keyCertSign,digitalSignature; }
# cert NAME CA SUBJECT USAGE [SAN]
cert() {
  key "$1"
  openssl req -new -key "$1.key" -subj "$3" -out "$1.csr"
  printf 'keyUsage=critical,digitalSignature,keyEncipherment\nextendedKeyUsage=%s\n%s\n' "$4" "${5:+subjectAltName=$5}" >"$1.ext"
  openssl x509 -req -in "$1.csr" -CA "$2.crt" -CAkey "$2.key" -CAcreateserial -days 3650 -extfile "$1.ext" -out "$1.crt" 2>/dev/null
}
# config NAME: a kubeconfig with the certificate of that name
config() {
  cat >"$1.conf" <<END
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: 'https://$NODE_IP:6443', certificate-authority: '$STATE/pki/ca.crt'}}]
users: [{name: u, user: {client-certificate: '$STATE/pki/$1.crt', client-key: '$STATE/pki/$1.key'}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
END
}
ca ca
ca front-proxy-ca
key service-accounts
openssl ec -in service-accounts.key -pubout -out service-accounts.pub 2>/dev/null
names=DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local,DNS:localhost
cert apiserver ca /CN=kube-apiserver serverAuth "$names,IP:$API_IP,IP:$NODE_IP,IP:127.0.0.1"
cert apiserver-kubelet ca /O=system:masters/CN=apiserver-kubelet clientAuth
cert front-proxy front-proxy-ca /CN=front-proxy clientAuth
cert kubelet-server ca "/O=system:nodes/CN=system:node:$NODE_NAME" serverAuth "DNS:$NODE_NAME,IP:$NODE_IP"
cert admin ca /O=system:masters/CN=admin clientAuth
cert controllers ca /CN=system:kube-controller-manager clientAuth
cert scheduler ca /CN=system:kube-scheduler clientAuth
cert proxy ca /CN=system:kube-proxy clientAuth
cert kubelet ca "/O=system:nodes/CN=system:node:$NODE_NAME" clientAuth
# The public addresses of the product, for the reverse proxy in front of it, and the servers beside the cluster.
cert edge ca /CN=edge serverAuth 'DNS:postern.example.com,DNS:*.sites.example.net,DNS:s3.backing.svc.cluster.local,DNS:git.backing.svc.cluster.local'
for name in admin controllers scheduler proxy kubelet; do config "$name"; done
