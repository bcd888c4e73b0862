{{/*
Contradictory values stop the rendering. All are reported at once, each with its fix. What a single value may look like is in
values.schema.json. checks.yaml asks these one after the other: (list $ WRONG) each.
*/}}

{{/* (list WRONG VALUE PROBLEM FIX) */}}
{{- define "postern.wrong" -}}
{{- $wrong := index . 0 -}}
{{- $line := printf "  %s: %s\n    %s" (index . 1) (index . 2) (index . 3) -}}
{{- $_ := set $wrong "list" (append $wrong.list $line) -}}
{{- end }}

{{/* An https address and nothing but an origin: (list WRONG VALUE ADDRESS) */}}
{{- define "postern.checkOrigin" -}}
{{- $wrong := index . 0 -}}
{{- $name := index . 1 -}}
{{- $address := index . 2 -}}
{{- if not (hasPrefix "https://" $address) -}}
{{- include "postern.wrong" (list $wrong $name "is not https: keys and sessions would cross the network unencrypted" "Write its https address, such as https://postern.example.com.") -}}
{{- else if not (regexMatch "^https://[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?$" $address) -}}
{{- include "postern.wrong" (list $wrong $name "has more than scheme, host and port" "Write only scheme, host and port, such as https://postern.example.com.") -}}
{{- end -}}
{{- end }}

{{- define "postern.checkAddresses" -}}
{{- $root := index . 0 -}}
{{- $wrong := index . 1 -}}
{{- with $root.Values -}}
{{- if not .image.repository -}}
{{- include "postern.wrong" (list $wrong "image.repository" "is missing" "Build the Containerfile, push the image, and name the repository.") -}}
{{- end -}}
{{- $ui := include "postern.uiUrl" $root -}}
{{- if $ui -}}
{{- include "postern.checkOrigin" (list $wrong (ternary "ui.appUrl" "global.uiDomain" (ne .ui.appUrl "")) $ui) -}}
{{- else -}}
{{- include "postern.wrong" (list $wrong "ui.appUrl" "is missing, and so is global.uiDomain" "Set the public address of the web app, such as https://postern.example.com.") -}}
{{- end -}}
{{- if .sites.contentUrl -}}
{{- include "postern.checkOrigin" (list $wrong "sites.contentUrl" (include "postern.contentUrl" $root)) -}}
{{- else -}}
{{- include "postern.wrong" (list $wrong "sites.contentUrl" "is missing" "Set the public address of the content hosts, such as https://sites.example.net, with DNS and a certificate for *.sites.example.net.") -}}
{{- end -}}
{{- if .environments.contentUrl -}}
{{- include "postern.checkOrigin" (list $wrong "environments.contentUrl" (include "postern.environmentsContentUrl" $root)) -}}
{{- end -}}
{{- if and (or .ingress.enabled .httpRoute.enabled) (not .trustedProxies) -}}
{{- include "postern.wrong" (list $wrong "trustedProxies" "is empty while ingress or httpRoute is on: everyone would count as the proxy, in limits and in the audit trail" "Name the addresses or ranges of the proxy, such as [10.20.0.0/16], or write none (trustedProxies: none) if it forwards no address.") -}}
{{- end -}}
{{- if and .httpRoute.enabled (not (and .httpRoute.web.parentRefs .httpRoute.content.parentRefs)) -}}
{{- include "postern.wrong" (list $wrong "httpRoute" "has no parentRefs for web, for content, or for both" "Name the Gateway and the listener with the certificate of each.") -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* A Secret that must be named: (list WRONG VALUE REF) */}}
{{- define "postern.checkRef" -}}
{{- if not (index . 2).existingSecret -}}
{{- include "postern.wrong" (list (index . 0) (printf "%s.existingSecret" (index . 1)) "is missing" (printf "Name the Secret that holds it under the key %s." (index . 2).key)) -}}
{{- end -}}
{{- end }}

{{- define "postern.checkCredentials" -}}
{{- $root := index . 0 -}}
{{- $wrong := index . 1 -}}
{{- with $root.Values -}}
{{- include "postern.checkRef" (list $wrong "database" .database) -}}
{{- include "postern.checkRef" (list $wrong "database.gateway" .database.gateway) -}}
{{- range $other := list .database .database.migrations -}}
{{- if and $other.existingSecret (eq (include "postern.refId" $other) (include "postern.refId" $root.Values.database.gateway)) -}}
{{- include "postern.wrong" (list $wrong "database.gateway" "is an address that may write" "Give the gateway a separate role that only reads: docs/how-to/install-on-kubernetes.md.") -}}
{{- end -}}
{{- end -}}
{{- include "postern.checkRef" (list $wrong "kv" .kv) -}}
{{- if not .objectStore.url -}}
{{- include "postern.wrong" (list $wrong "objectStore.url" "is missing: pods share no folder for the files of sites" "Set the bucket, such as s3://postern-sites?endpoint=https://s3.example.com&region=eu-central-1.") -}}
{{- end -}}
{{- include "postern.checkRef" (list $wrong "objectStore.accessKey" .objectStore.accessKey) -}}
{{- include "postern.checkRef" (list $wrong "objectStore.secretKey" .objectStore.secretKey) -}}
{{- if ne (empty .objectStore.gateway.accessKey.existingSecret) (empty .objectStore.gateway.secretKey.existingSecret) -}}
{{- include "postern.wrong" (list $wrong "objectStore.gateway" "has one key of a pair" "Name the Secrets of both, accessKey and secretKey, or of neither.") -}}
{{- end -}}
{{- range $name := list "session" "encryption" "grant" -}}
{{- if not $root.Values.secrets.generate -}}
{{- include "postern.checkRef" (list $wrong (printf "secrets.%s" $name) (index $root.Values.secrets $name)) -}}
{{- end -}}
{{- end -}}
{{- if .secrets.generate -}}
{{- include "postern.checkGenerated" (list $root $wrong) -}}
{{- end -}}
{{- if ne (empty .bootstrapAdmin.email) (empty .bootstrapAdmin.existingSecret) -}}
{{- include "postern.wrong" (list $wrong "bootstrapAdmin" "is half set" "Set both, email and existingSecret, or neither.") -}}
{{- end -}}
{{- if and .bootstrapAdmin.email (ne .identity.provider "builtin") -}}
{{- include "postern.wrong" (list $wrong "bootstrapAdmin" "is for the built-in provider, and identity.provider is another" "Leave it empty; administrators are made in Keycloak, by role.") -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/*
Secrets are generated only where the ones of an earlier install would be seen. Without a cluster (helm template, and what
is built on it) each rendering would make new ones: everyone signed out, and stored tokens lost.
*/}}
{{- define "postern.checkGenerated" -}}
{{- $root := index . 0 -}}
{{- $wrong := index . 1 -}}
{{- $name := include "postern.generatedSecret" $root -}}
{{- $there := lookup "v1" "Secret" $root.Release.Namespace $name -}}
{{- if $there -}}
{{- range list "session" "encryption" "grant" -}}
{{- if not (index (default dict $there.data) (printf "%s-secret" .)) -}}
{{- include "postern.wrong" (list $wrong "secrets.generate" (printf "finds the Secret %s without %s-secret" $name .) "Put the Secret back from its copy; a new one would lose what the old one protects.") -}}
{{- end -}}
{{- end -}}
{{- else if not (lookup "v1" "ConfigMap" $root.Release.Namespace "kube-root-ca.crt") -}}
{{- include "postern.wrong" (list $wrong "secrets.generate" "cannot see the cluster, or the namespace is not there yet" "Make the namespace first; with helm template or GitOps make the Secrets yourself and name them in secrets.*.existingSecret.") -}}
{{- end -}}
{{- end }}

{{/* Secret and key as one word. */}}
{{- define "postern.refId" -}}
{{- printf "%s/%s" .existingSecret .key -}}
{{- end }}

{{- define "postern.checkIdentity" -}}
{{- $root := index . 0 -}}
{{- $wrong := index . 1 -}}
{{- $identity := $root.Values.identity -}}
{{- $clients := $identity.clients -}}
{{- if eq $identity.provider "keycloak" -}}
{{- if not (hasPrefix "https://" $identity.issuer) -}}
{{- include "postern.wrong" (list $wrong "identity.issuer" "is missing or not https" "Set the realm's address, such as https://id.example.com/realms/postern.") -}}
{{- end -}}
{{- range $name := list "login" "principalSync" -}}
{{- $client := index $clients $name -}}
{{- if not $client.clientId -}}
{{- include "postern.wrong" (list $wrong (printf "identity.clients.%s.clientId" $name) "is missing" "Name the client of that purpose in the realm.") -}}
{{- end -}}
{{- include "postern.checkRef" (list $wrong (printf "identity.clients.%s" $name) $client) -}}
{{- end -}}
{{- $sync := $clients.principalSync -}}
{{- range $name := list "management" "login" -}}
{{- $other := index $clients $name -}}
{{- if or (and $other.clientId (eq $other.clientId $sync.clientId)) (and $other.existingSecret (eq (include "postern.refId" $other) (include "postern.refId" $sync))) -}}
{{- include "postern.wrong" (list $wrong "identity.clients.principalSync" (printf "is the %s client" $name) "Create a separate client that may only read users and roles and introspect tokens.") -}}
{{- end -}}
{{- end -}}
{{- if has $sync.clientId (list "admin-cli" "realm-management" "security-admin-console" "master-realm") -}}
{{- include "postern.wrong" (list $wrong "identity.clients.principalSync.clientId" (printf "%s is a client that manages the realm" $sync.clientId) "Create a separate client that may only read users and roles and introspect tokens.") -}}
{{- end -}}
{{- if or (and $clients.management.clientId (eq $clients.management.clientId $clients.login.clientId)) (and $clients.management.existingSecret (eq (include "postern.refId" $clients.management) (include "postern.refId" $clients.login))) -}}
{{- include "postern.wrong" (list $wrong "identity.clients.login" "is the management client" "Create a separate client for sign-ins.") -}}
{{- end -}}
{{- else if or $identity.issuer $identity.roles.user $identity.roles.admin $clients.login.clientId $clients.login.existingSecret $clients.principalSync.clientId $clients.principalSync.existingSecret -}}
{{- include "postern.wrong" (list $wrong "identity" "names an issuer, roles or clients while the provider is builtin" "Set identity.provider to keycloak, or leave them empty.") -}}
{{- end -}}
{{- end }}

{{/* The value of SITES_ALLOW_SHARED_APEX in a component's extraEnv; empty = not there. */}}
{{- define "postern.sharedApex" -}}
{{- range .extraEnv -}}
{{- if eq .name "SITES_ALLOW_SHARED_APEX" -}}{{ default "(by reference)" .value }}{{- end -}}
{{- end -}}
{{- end }}

{{- define "postern.checkSharedApex" -}}
{{- $root := index . 0 -}}
{{- $wrong := index . 1 -}}
{{- with $root.Values -}}
{{- $web := include "postern.sharedApex" .web -}}
{{- $gateway := include "postern.sharedApex" .gateway -}}
{{- range $value := list $web $gateway (include "postern.sharedApex" .worker) -}}
{{- if not (has $value (list "" "true")) -}}
{{- include "postern.wrong" (list $wrong "SITES_ALLOW_SHARED_APEX" "is neither true nor unset" "Write {name: SITES_ALLOW_SHARED_APEX, value: 'true'} in web.extraEnv and gateway.extraEnv, or in neither.") -}}
{{- end -}}
{{- end -}}
{{- if ne $web $gateway -}}
{{- include "postern.wrong" (list $wrong "SITES_ALLOW_SHARED_APEX" (printf "is set on %s alone" (ternary "web" "gateway" (eq $gateway ""))) "Set it in both, web.extraEnv and gateway.extraEnv, or in neither.") -}}
{{- end -}}
{{- $ui := include "postern.host" (include "postern.uiUrl" $root) -}}
{{- range $name, $address := dict "sites.contentUrl" .sites.contentUrl "environments.contentUrl" .environments.contentUrl -}}
{{- $content := include "postern.host" $address -}}
{{- if and $ui $content -}}
{{- if eq $ui $content -}}
{{- include "postern.wrong" (list $wrong $name "has the host of the web app" "Give the content hosts a host of their own.") -}}
{{- else if and (eq $web "") (eq $gateway "") (eq (include "postern.registrableDomain" $ui) (include "postern.registrableDomain" $content)) -}}
{{- include "postern.wrong" (list $wrong $name (printf "shares the registrable domain %s with the web app" (include "postern.registrableDomain" $ui)) "Use a separate domain, or accept it with SITES_ALLOW_SHARED_APEX in both, web.extraEnv and gateway.extraEnv.") -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "postern.checkEnvironments" -}}
{{- $root := index . 0 -}}
{{- $wrong := index . 1 -}}
{{- with $root.Values.environments -}}
{{- if not .engine -}}
{{- range $name, $value := set (pick . "namespace" "secrets" "egress" "quota" "limitRange") "database" .database.existingSecret -}}
{{- if $value -}}
{{- include "postern.wrong" (list $wrong (printf "environments.%s" $name) "is set while environments.engine is empty" "Set environments.engine to kubernetes, or leave it empty.") -}}
{{- end -}}
{{- end -}}
{{- else if not .namespace -}}
{{- include "postern.wrong" (list $wrong "environments.namespace" "is missing" "Create a namespace for Environments alone, and name it.") -}}
{{- else if eq .namespace $root.Release.Namespace -}}
{{- include "postern.wrong" (list $wrong "environments.namespace" "is the namespace of the release: code of repositories would run beside the Secrets of Postern" "Create a namespace for Environments alone, and name it.") -}}
{{- end -}}
{{- if and .engine (eq (include "postern.serviceAccount" $root) (include "postern.workerAccount" $root)) -}}
{{- include "postern.wrong" (list $wrong "serviceAccount.name" "is the account of the worker, which may change Environments" "Choose another name.") -}}
{{- end -}}
{{- $own := include "postern.ownSecrets" $root | splitList "\n" -}}
{{- $seen := list -}}
{{- range .secrets -}}
{{- if has .existingSecret $own -}}
{{- include "postern.wrong" (list $wrong "environments.secrets" (printf "gives %s, which holds a credential of Postern, to the repository %s" .existingSecret .repository) "Put the secrets of a repository into a Secret of their own.") -}}
{{- end -}}
{{- if has .repository $seen -}}
{{- include "postern.wrong" (list $wrong "environments.secrets" (printf "names the repository %s twice" .repository) "Put all secrets of a repository into one Secret.") -}}
{{- end -}}
{{- $seen = append $seen .repository -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Names of the Secrets with credentials of Postern, one a line. */}}
{{- define "postern.ownSecrets" -}}
{{- with .Values -}}
{{- $clients := .identity.clients -}}
{{- $store := .objectStore -}}
{{- range list .environments.database .database .database.gateway .database.migrations .kv $store.accessKey $store.secretKey $store.gateway.accessKey $store.gateway.secretKey .secrets.session .secrets.encryption .secrets.grant $clients.login $clients.principalSync $clients.management .bootstrapAdmin -}}
{{- with .existingSecret -}}{{ . }}{{ "\n" }}{{- end -}}
{{- end -}}
{{- end -}}
{{- include "postern.generatedSecret" . -}}
{{- end }}

{{/* What the chart sets; a second value beside it would win or lose by chance. */}}
{{- define "postern.ownVariables" -}}
^(NODE_ENV|SERVICE_UI_URL|SITES_CONTENT_URL|ENVIRONMENTS_(CONTENT_URL|ENGINE|NAMESPACE|POD_IMAGE|PORT|WEB_URL|DATABASE_URL(_FILE)?)|SECRETS_DIR|HOST|PORT|GATEWAY_PORT|METRICS_PORT|DATA_DIR|KEY_PREFIX|OWNER_SWEEP_MINUTES|LOG_LEVEL|TRUSTED_PROXIES|GATEWAY_DATABASE_ROLE|(DATABASE_URL|KV_URL|OBJECT_[A-Z_]+|SESSION_SECRET|ENCRYPTION_KEY|GRANT_SECRET|IDENTITY_[A-Z_]+|OIDC_[A-Z_]+|PRINCIPAL_SYNC_[A-Z_]+|BOOTSTRAP_[A-Z_]+?)(_FILE)?)$
{{- end }}

{{/* Secret references of extraEnv, extraEnvFrom and extraVolumes as lines NAME/KEY, or NAME/* for all of it. */}}
{{- define "postern.extraRefs" -}}
{{- range .extraEnv -}}
{{- with dig "valueFrom" "secretKeyRef" dict . -}}{{ .name }}/{{ .key }}{{ "\n" }}{{- end -}}
{{- end -}}
{{- range .extraEnvFrom -}}
{{- with .secretRef -}}{{ .name }}/*{{ "\n" }}{{- end -}}
{{- end -}}
{{- range .extraVolumes -}}
{{- with .secret -}}
{{- include "postern.volumeRefs" (list .secretName .items) -}}
{{- end -}}
{{- with .projected -}}
{{- range .sources -}}
{{- with .secret -}}
{{- include "postern.volumeRefs" (list .name .items) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "postern.volumeRefs" -}}
{{- $name := index . 0 -}}
{{- range index . 1 -}}{{ $name }}/{{ .key }}{{ "\n" }}{{- else -}}{{ $name }}/*{{ "\n" }}{{- end -}}
{{- end }}

{{- define "postern.checkExtras" -}}
{{- $root := index . 0 -}}
{{- $wrong := index . 1 -}}
{{- with $root.Values -}}
{{- $clients := .identity.clients -}}
{{- $noGateway := dict
  "identity.clients.login" $clients.login
  "identity.clients.principalSync" $clients.principalSync
  "secrets.session" (include "postern.ownRef" (list $root "session") | fromYaml)
  "secrets.encryption" (include "postern.ownRef" (list $root "encryption") | fromYaml)
  "bootstrapAdmin" .bootstrapAdmin
  "database" .database
  "database.migrations" .database.migrations -}}
{{- range $component := list "web" "gateway" "worker" "migrations" -}}
{{- $own := index $root.Values $component -}}
{{- $forbidden := dict "identity.clients.management" $clients.management -}}
{{- if eq $component "gateway" -}}
{{- $forbidden = merge $forbidden $noGateway -}}
{{- end -}}
{{- range $env := $own.extraEnv -}}
{{- $where := printf "%s.extraEnv" $component -}}
{{- if regexMatch (include "postern.ownVariables" .) $env.name -}}
{{- include "postern.wrong" (list $wrong $where (printf "sets %s, which the chart sets or leaves out on purpose" $env.name) "Use the value of the chart for it: chart/README.md.") -}}
{{- end -}}
{{- if $env.value -}}
{{- if or (regexMatch "://[^/@]*:[^/@]+@" $env.value) (and (not (hasSuffix "_FILE" $env.name)) (regexMatch "(?i)(SECRET|PASSW|TOKEN|CREDENTIAL|PRIVATE_?KEY|ACCESS_?KEY|API_?KEY)" $env.name)) -}}
{{- include "postern.wrong" (list $wrong $where (printf "holds %s in clear: it would be in the history of releases" $env.name) "Put it into a Secret and refer to it with valueFrom.secretKeyRef.") -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $ref := splitList "\n" (include "postern.extraRefs" $own) -}}
{{- range $name, $credential := $forbidden -}}
{{- if and $ref $credential.existingSecret (has $ref (list (include "postern.refId" $credential) (printf "%s/*" $credential.existingSecret))) -}}
{{- include "postern.wrong" (list $wrong (printf "%s.extraEnv, extraEnvFrom or extraVolumes" $component) (printf "hands out %s, which is not for %s" $name $component) "Remove it, or keep it in a separate Secret.") -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $own.extraVolumes -}}
{{- if regexMatch "^(data|tmp|environment-secrets-[0-9]+)$" .name -}}
{{- include "postern.wrong" (list $wrong (printf "%s.extraVolumes" $component) (printf "has a volume %s, which the chart has too" .name) "Choose another name.") -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "postern.ownRef" -}}
{{- $ref := index (index . 0).Values.secrets (index . 1) -}}
{{- if $ref.existingSecret -}}
{{- toYaml $ref -}}
{{- else -}}
{{- dict "existingSecret" (include "postern.generatedSecret" (index . 0)) "key" (printf "%s-secret" (index . 1)) | toYaml -}}
{{- end -}}
{{- end }}

{{- define "postern.checkPods" -}}
{{- $root := index . 0 -}}
{{- $wrong := index . 1 -}}
{{- $most := 0 -}}
{{- range $component := list "web" "gateway" "worker" -}}
{{- $own := index $root.Values $component -}}
{{- $most = add $most (ternary $own.autoscaling.maxReplicas $own.replicas $own.autoscaling.enabled) -}}
{{- end -}}
{{- if gt (int $most) 48 -}}
{{- include "postern.wrong" (list $wrong "replicas" (printf "and autoscaling.maxReplicas let web, gateway and worker have %d pods together; the most is 48" (int $most)) "Lower them. An installation has 64 places for processes; 16 stay for pods that come and go.") -}}
{{- end -}}
{{- if not $root.Values.gateway.enabled -}}
{{- include "postern.wrong" (list $wrong "gateway.enabled" "is false: no site would be served, and no private one could be opened" "Leave it true. To stop all sites, switch Sites off in its settings.") -}}
{{- end -}}
{{- range $component := list "web" "gateway" "worker" -}}
{{- $own := index $root.Values $component -}}
{{- if lt (int $own.terminationGracePeriodSeconds) (add $own.preStopSeconds 10 | int) -}}
{{- include "postern.wrong" (list $wrong (printf "%s.terminationGracePeriodSeconds" $component) "ends a pod before it has answered what it began" (printf "Use at least %d: preStopSeconds and the ten seconds Postern takes." (add $own.preStopSeconds 10))) -}}
{{- end -}}
{{- if and $own.autoscaling.enabled (gt (int $own.autoscaling.minReplicas) (int $own.autoscaling.maxReplicas)) -}}
{{- include "postern.wrong" (list $wrong (printf "%s.autoscaling" $component) "has more fewest than most pods" "Swap minReplicas and maxReplicas.") -}}
{{- end -}}
{{- end -}}
{{- end }}
