#!/usr/bin/env bash
# Run inside the cluster's namespaces: PostgreSQL, Redis and an S3 server with TLS at the node's address, with names in
# the cluster, and the namespace and Secrets of docs/how-to/install-on-kubernetes.md. They end with the cluster.
set -euo pipefail
. "$(dirname "$0")/env.sh"
data=$STATE/backing
mkdir -p "$data"/{postgres,redis,s3/content/postern,s3/attributes}
chmod 755 "$STATE" "$data"
bin=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -1)
echo superuser >"$data/postgres/password"
chown -R postgres "$data/postgres"
runuser -u postgres -- "$bin/initdb" -D "$data/postgres/data" -A scram-sha-256 -U postgres --pwfile "$data/postgres/password" >"$data/postgres.log" 2>&1
echo 'host all all all scram-sha-256' >>"$data/postgres/data/pg_hba.conf"
runuser -u postgres -- "$bin/pg_ctl" -D "$data/postgres/data" -w -l "$data/postgres/server.log" \
  -o "-c listen_addresses=$NODE_IP -c unix_socket_directories=$data/postgres -c max_connections=200 -c fsync=off" start >/dev/null
PGPASSWORD=superuser psql -qh "$NODE_IP" -U postgres <<'END'
create role postern login password 'postern';
create role postern_gateway login password 'gateway';
create database postern owner postern;
END
redis-server --bind "$NODE_IP" --requirepass redis --maxmemory-policy noeviction --save '' --dir "$data/redis" --daemonize yes >/dev/null
ROOT_ACCESS_KEY=postern ROOT_SECRET_KEY=not-a-secret setsid "$ROOT/node_modules/.cache/tools/versitygw" --port "$NODE_IP:7443" \
  --cert "$STATE/pki/edge.crt" --key "$STATE/pki/edge.key" --quiet --health /health \
  posix --sidecar "$data/s3/attributes" "$data/s3/content" >"$data/s3.log" 2>&1 &

kubectl create namespace backing >/dev/null
# Services without pods: names in the cluster for the servers beside it.
for one in postgres:5432:5432 redis:6379:6379 s3:443:7443; do
  IFS=: read -r name port target <<<"$one"
  kubectl apply -f - >/dev/null <<END
apiVersion: v1
kind: Service
metadata: { name: $name, namespace: backing }
spec: { ports: [{ name: $name, port: $port, targetPort: $target }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: $name, namespace: backing, labels: { kubernetes.io/service-name: $name } }
addressType: IPv4
ports: [{ name: $name, port: $target }]
endpoints: [{ addresses: [$NODE_IP] }]
END
done

kubectl create namespace postern >/dev/null
kubectl label namespace postern pod-security.kubernetes.io/enforce=restricted >/dev/null
secret() { kubectl -n postern create secret generic "$1" --from-file="$2=/dev/stdin" >/dev/null; }
printf 'postgresql://postern:postern@postgres.backing:5432/postern' | secret postern-database database-url
printf 'postgresql://postern_gateway:gateway@postgres.backing:5432/postern' | secret postern-database-gateway gateway-database-url
printf 'redis://:redis@redis.backing:6379' | secret postern-kv kv-url
printf postern | secret postern-object-store-id object-store-access-key
printf not-a-secret | secret postern-object-store object-store-secret-key
openssl rand -base64 32 | secret postern-session session-secret
openssl rand -base64 32 | secret postern-encryption encryption-key
openssl rand -base64 32 | secret postern-grant grant-secret
printf 'correct horse battery staple' | secret postern-admin bootstrap-admin-password
kubectl -n postern create configmap backing-ca --from-file=ca.crt="$STATE/pki/ca.crt" >/dev/null
