{{/*
Variables and credentials of each process. Only this file decides least privilege:
the gateway has no identity client, no session secret and no encryption key; a migration has the database alone.
*/}}

{{/* One variable from a Secret: (list NAME SECRET KEY) */}}
{{- define "postern.fromSecret" -}}
- name: {{ index . 0 }}
  valueFrom:
    secretKeyRef:
      name: {{ index . 1 | quote }}
      key: {{ index . 2 | quote }}
{{- end }}

{{- define "postern.fromValue" -}}
- name: {{ index . 0 }}
  value: {{ index . 1 | toString | quote }}
{{- end }}

{{/* One of the three secrets that can be generated: (list $ NAME WHICH) */}}
{{- define "postern.fromOwnSecret" -}}
{{- $root := index . 0 -}}
{{- $ref := index $root.Values.secrets (index . 2) -}}
{{- if $ref.existingSecret -}}
{{- include "postern.fromSecret" (list (index . 1) $ref.existingSecret $ref.key) -}}
{{- else -}}
{{- include "postern.fromSecret" (list (index . 1) (include "postern.generatedSecret" $root) (printf "%s-secret" (index . 2))) -}}
{{- end -}}
{{- end }}

{{/* (list $ COMPONENT), for web, gateway and worker */}}
{{- define "postern.env" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $isGateway := eq $component "gateway" -}}
{{- with $root.Values -}}
{{ include "postern.fromValue" (list "NODE_ENV" "production") }}
{{ include "postern.fromValue" (list "SERVICE_UI_URL" (include "postern.uiUrl" $root)) }}
{{ include "postern.fromValue" (list "SITES_CONTENT_URL" (include "postern.contentUrl" $root)) }}
{{- if .environments.contentUrl }}
{{ include "postern.fromValue" (list "ENVIRONMENTS_CONTENT_URL" (include "postern.environmentsContentUrl" $root)) }}
{{- end }}
{{ include "postern.fromValue" (list "HOST" "0.0.0.0") }}
{{ include "postern.fromValue" (list "PORT" 3000) }}
{{ include "postern.fromValue" (list "GATEWAY_PORT" 3001) }}
{{ include "postern.fromValue" (list "METRICS_PORT" 9464) }}
{{ include "postern.fromValue" (list "DATA_DIR" "/data") }}
{{ include "postern.fromValue" (list "KEY_PREFIX" .keyPrefix) }}
{{ include "postern.fromValue" (list "LOG_LEVEL" .logLevel) }}
{{- if and .trustedProxies (kindIs "slice" .trustedProxies) }}
{{ include "postern.fromValue" (list "TRUSTED_PROXIES" (join "," .trustedProxies)) }}
{{- end }}
{{- $database := ternary .database.gateway .database $isGateway }}
{{ include "postern.fromSecret" (list "DATABASE_URL" $database.existingSecret $database.key) }}
{{ include "postern.fromSecret" (list "KV_URL" .kv.existingSecret .kv.key) }}
{{ include "postern.fromValue" (list "OBJECT_STORE_URL" .objectStore.url) }}
{{ include "postern.fromValue" (list "OBJECT_CACHE_BYTES" (int64 .objectStore.cacheBytes)) }}
{{- $store := ternary .objectStore.gateway .objectStore (and $isGateway (ne .objectStore.gateway.accessKey.existingSecret "")) }}
{{ include "postern.fromSecret" (list "OBJECT_STORE_ACCESS_KEY" $store.accessKey.existingSecret $store.accessKey.key) }}
{{ include "postern.fromSecret" (list "OBJECT_STORE_SECRET_KEY" $store.secretKey.existingSecret $store.secretKey.key) }}
{{ include "postern.fromOwnSecret" (list $root "GRANT_SECRET" "grant") }}
{{- if $isGateway }}
{{ include "postern.fromValue" (list "GATEWAY_REQUESTS_PER_ADDRESS" (int64 .gateway.requestsPerAddress)) }}
{{ include "postern.fromValue" (list "GATEWAY_REQUESTS_PER_HOST" (int64 .gateway.requestsPerHost)) }}
{{ include "postern.fromValue" (list "GATEWAY_FAST_HTTP" (ternary "on" "off" .gateway.fastHttp)) }}
{{- end }}
{{- if not $isGateway }}
{{ include "postern.fromOwnSecret" (list $root "SESSION_SECRET" "session") }}
{{ include "postern.fromOwnSecret" (list $root "ENCRYPTION_KEY" "encryption") }}
{{ include "postern.fromValue" (list "OWNER_SWEEP_MINUTES" (int64 .identity.ownerSweepMinutes)) }}
{{ include "postern.fromValue" (list "IDENTITY_PROVIDER" .identity.provider) }}
{{- if eq .identity.provider "keycloak" }}
{{ include "postern.fromValue" (list "OIDC_ISSUER" .identity.issuer) }}
{{- with .identity.roles.user }}
{{ include "postern.fromValue" (list "OIDC_USER_ROLE" .) }}
{{- end }}
{{- with .identity.roles.admin }}
{{ include "postern.fromValue" (list "OIDC_ADMIN_ROLE" .) }}
{{- end }}
{{- with .identity.clients.login }}
{{ include "postern.fromValue" (list "OIDC_CLIENT_ID" .clientId) }}
{{ include "postern.fromSecret" (list "OIDC_CLIENT_SECRET" .existingSecret .key) }}
{{- end }}
{{- with .identity.clients.principalSync }}
{{ include "postern.fromValue" (list "PRINCIPAL_SYNC_CLIENT_ID" .clientId) }}
{{ include "postern.fromSecret" (list "PRINCIPAL_SYNC_CLIENT_SECRET" .existingSecret .key) }}
{{- end }}
{{- end }}
{{- end }}
{{- if and .environments.engine (not $isGateway) }}
{{ include "postern.fromValue" (list "ENVIRONMENTS_ENGINE" .environments.engine) }}
{{ include "postern.fromValue" (list "ENVIRONMENTS_NAMESPACE" .environments.namespace) }}
{{ include "postern.fromValue" (list "ENVIRONMENTS_POD_IMAGE" (include "postern.image" $root)) }}
{{ include "postern.fromValue" (list "ENVIRONMENTS_PORT" 3002) }}
{{ include "postern.fromValue" (list "ENVIRONMENTS_WEB_URL" (printf "http://%s-web-files.%s.svc:80" (include "postern.fullname" $root) $root.Release.Namespace)) }}
{{- end }}
{{- if and .environments.database.existingSecret (eq $component "worker") }}
{{ include "postern.fromSecret" (list "ENVIRONMENTS_DATABASE_URL" .environments.database.existingSecret .environments.database.key) }}
{{- end }}
{{- if and .environments.secrets (eq $component "worker") }}
{{ include "postern.fromValue" (list "SECRETS_DIR" "/secrets") }}
{{- end }}
{{- if eq $component "web" }}
{{- with .bootstrapAdmin }}
{{- if .email }}
{{ include "postern.fromValue" (list "BOOTSTRAP_ADMIN_EMAIL" .email) }}
{{ include "postern.fromSecret" (list "BOOTSTRAP_ADMIN_PASSWORD" .existingSecret .key) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "postern.migrationEnv" -}}
{{ include "postern.fromValue" (list "NODE_ENV" "production") }}
{{ include "postern.fromValue" (list "DATA_DIR" "/data") }}
{{ include "postern.fromValue" (list "LOG_LEVEL" .Values.logLevel) }}
{{- $database := ternary .Values.database.migrations .Values.database (ne .Values.database.migrations.existingSecret "") }}
{{ include "postern.fromSecret" (list "DATABASE_URL" $database.existingSecret $database.key) }}
{{- with .Values.database.gateway.role }}
{{ include "postern.fromValue" (list "GATEWAY_DATABASE_ROLE" .) }}
{{- end }}
{{- end }}
