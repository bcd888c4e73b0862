#!/usr/bin/env bash
# Fuzzes a separate server over its OpenAPI document: no 500, no undocumented answer (npm run test:schemathesis).
# Twice: as an administrator's session, which reaches every route, and as a personal key with every scope.
#   EXAMPLES=200 test/fuzz/schemathesis.sh        test cases per operation and phase
set -euo pipefail
cd "$(dirname "$0")/../.."

folder=$(mktemp -d)
server=
finish() {
  if [ -n "$server" ] && kill "$server" 2>/dev/null; then wait "$server" || true; fi
  rm -rf "$folder"
}
trap finish EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check 'schemathesis==4.32.5'

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
port=$(free_port)
operations=$(free_port)
base=http://localhost:$port
password=$(python3 -c 'import secrets; print(secrets.token_urlsafe(24))')

SERVICE_UI_URL=$base PORT=$port GATEWAY_PORT=$(free_port) METRICS_PORT=$operations DATA_DIR=$folder/data LOG_LEVEL=error \
  BOOTSTRAP_ADMIN_EMAIL=ada@example.com BOOTSTRAP_ADMIN_PASSWORD=$password \
  node scripts/run.mjs test/fuzz/server.ts >"$folder/server.log" 2>&1 &
server=$!
until curl -sf -o /dev/null "http://127.0.0.1:$operations/readyz"; do
  kill -0 "$server" || { cat "$folder/server.log"; exit 1; }
  sleep 0.5
done

jar=$folder/jar
form=$(curl -sL -c "$jar" -b "$jar" -o /dev/null -w '%{url_effective}' "$base/auth/login")
curl -sL -c "$jar" -b "$jar" -o /dev/null -H "Origin: $base" --data-urlencode email=ada@example.com \
  --data-urlencode "password=$password" -d decision=sign-in "$form"
session=$(awk '$6 == "__Host-postern_session" { print $7 }' "$jar")

field() { python3 -c 'import json, sys; print(json.load(sys.stdin)["data"][sys.argv[1]])' "$1"; }
as_person() { curl -sf -b "$jar" -H "Origin: $base" -H 'Content-Type: application/json' "$@"; }

# The limiter is not what this is about; server.ts lifts the limit on changes by people.
etag=$(curl -sf -b "$jar" -o "$folder/policy.json" -D - "$base/api/v2/config/api-keys" | tr -d '\r' | awk 'tolower($1) == "etag:" { print $2 }')
python3 - "$folder/policy.json" >"$folder/wide.json" <<'PYTHON'
import json, sys
policy = json.load(open(sys.argv[1]))["data"]["policy"]
json.dump({**policy, "rateLimitPerMinute": 1000000, "failedAuthenticationsPerMinute": 1000000, "maxActivePersonalKeysPerUser": 1000}, sys.stdout)
PYTHON
as_person -o /dev/null -X PUT -H "If-Match: $etag" "$base/api/v2/config/api-keys" -d "@$folder/wide.json"
key=$(as_person "$base/api/v2/me/tokens" -d '{"name":"fuzzing","scopes":["env:write","sites:write","repos:write"],"repositoryAccess":{"mode":"all"}}' | field token)

# Left out: positive_data_acceptance, because a schema cannot say which repositories exist or what the policy allows;
# allow_header_conformance, because /me/tokens/{id} also matches /me/tokens/policy and Allow rightly says so.
# Left out, too, and sent by own-fuzz.test.ts: archives (PUT …/blobs and PUT /environment-files), which this fuzzer cannot
# write; and the key policy, with which it would take back the wide limits that it needs.
# Runs in the temporary folder, where it may leave its cache.
settings=$PWD/test/fuzz/schemathesis.toml
fuzz() (
  cd "$folder"
  venv/bin/schemathesis --config-file "$settings" run "$base/api/v2/openapi.json" --url "$base" \
    --checks all --exclude-checks positive_data_acceptance,allow_header_conformance \
    --max-examples "${EXAMPLES:-60}" --no-shrink --continue-on-failure --request-timeout 20 \
    --seed "${SEED:-1}" --exclude-path-regex 'sign-out|reset-password|reset-passkeys|/blobs$|/config/api-keys' \
    --exclude-operation-id sendEnvironmentFiles "$@"
)

status=0
echo "routes for people, as an administrator:"
FUZZ_SESSION=$session FUZZ_KEY=$key fuzz -H "Origin: $base" --exclude-tag Repositories --exclude-tag Authentication || status=1
echo "routes for keys, as a personal key:"
FUZZ_SESSION= FUZZ_KEY=$key fuzz --include-tag Repositories --include-path /api/v2/auth/context || status=1

if grep -q '"level":50' "$folder/server.log"; then
  echo "the server logged errors:"
  grep '"level":50' "$folder/server.log" | head -20
  status=1
fi
exit $status
