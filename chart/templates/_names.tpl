{{/* Names and labels. Everything about one name is here; what is in a pod is in _pod.tpl. */}}

{{- define "postern.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{/* At most 40 characters, so that the longest suffix still fits into the 63 of a name in DNS. */}}
{{- define "postern.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "postern.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "postern.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "postern.serviceAccount" -}}
{{- if .Values.serviceAccount.name -}}
{{- .Values.serviceAccount.name -}}
{{- else if .Values.serviceAccount.create -}}
{{- include "postern.fullname" . -}}
{{- else -}}
default
{{- end -}}
{{- end }}

{{/* The account of the worker, while it runs Environments. */}}
{{- define "postern.workerAccount" -}}
{{- printf "%s-worker" (include "postern.fullname" .) -}}
{{- end }}

{{- define "postern.generatedSecret" -}}
{{- printf "%s-generated" (include "postern.fullname" .) -}}
{{- end }}

{{- define "postern.selector" -}}
app.kubernetes.io/name: {{ include "postern.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "postern.labels" -}}
{{ include "postern.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* metadata of an object: (list $ NAME-SUFFIX COMPONENT), and with NAMESPACE if it is not that of the release */}}
{{- define "postern.metadata" -}}
{{- $root := index . 0 -}}
name: {{ include "postern.fullname" $root }}{{ with index . 1 }}-{{ . }}{{ end }}
namespace: {{ if gt (len .) 3 }}{{ index . 3 }}{{ else }}{{ $root.Release.Namespace }}{{ end }}
labels:
  {{- include "postern.labels" $root | nindent 2 }}
  {{- with index . 2 }}
  app.kubernetes.io/component: {{ . }}
  {{- end }}
{{- end }}

{{/* Pods of a component: (list $ COMPONENT) */}}
{{- define "postern.componentSelector" -}}
{{ include "postern.selector" (index . 0) }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "postern.uiUrl" -}}
{{- if .Values.ui.appUrl -}}
{{- trimSuffix "/" .Values.ui.appUrl -}}
{{- else if .Values.global.uiDomain -}}
{{- printf "https://%s" .Values.global.uiDomain -}}
{{- end -}}
{{- end }}

{{- define "postern.contentUrl" -}}
{{- trimSuffix "/" .Values.sites.contentUrl -}}
{{- end }}

{{- define "postern.environmentsContentUrl" -}}
{{- default .Values.sites.contentUrl .Values.environments.contentUrl | trimSuffix "/" -}}
{{- end }}

{{/* The wildcard hosts of the gateway, as a YAML list: one, unless Environments have another host than sites. */}}
{{- define "postern.contentHosts" -}}
{{- $hosts := list (include "postern.host" (include "postern.contentUrl" .)) (include "postern.host" (include "postern.environmentsContentUrl" .)) | uniq -}}
{{- range $hosts }}
- {{ printf "*.%s" . | quote }}
{{- end }}
{{- end }}

{{/* Host of an address, without its port. */}}
{{- define "postern.host" -}}
{{- get (urlParse .) "hostname" | lower -}}
{{- end }}

{{/*
What a registrable domain is, without the public suffix list: the last two labels, three below suffixes such as co.uk.
The program has the list and looks again; this tells a mistake before anything is installed.
*/}}
{{- define "postern.registrableDomain" -}}
{{- $labels := splitList "." . -}}
{{- $count := len $labels -}}
{{- $take := 2 -}}
{{- if gt $count 2 -}}
{{- if and (eq (len (last $labels)) 2) (has (index $labels (sub $count 2 | int)) (list "ac" "co" "com" "edu" "gob" "gov" "ne" "net" "or" "org")) -}}
{{- $take = 3 -}}
{{- end -}}
{{- end -}}
{{- slice $labels (max 0 (sub $count $take) | int) | join "." -}}
{{- end }}

{{- define "postern.image" -}}
{{- $repository := .Values.image.repository -}}
{{- with .Values.global.imageRegistry -}}
{{- $repository = printf "%s/%s" (trimSuffix "/" .) $repository -}}
{{- end -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" $repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" $repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end }}
