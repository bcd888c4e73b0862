{{/* What every pod has: the restricted profile of the pod security standards, and a read-only root. */}}

{{/* (list $ HAS-TOKEN) */}}
{{- define "postern.podSecurity" -}}
{{- $root := index . 0 -}}
automountServiceAccountToken: {{ index . 1 }}
enableServiceLinks: false
{{- with $root.Values.global.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: {{ $root.Values.podSecurity.runAsUser }}
  runAsGroup: {{ $root.Values.podSecurity.runAsGroup }}
  fsGroup: {{ $root.Values.podSecurity.fsGroup }}
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{- define "postern.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  runAsNonRoot: true
  capabilities:
    drop: [ALL]
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{- define "postern.containerImage" -}}
image: {{ include "postern.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- end }}

{{/* Everything that is written to: (list SIZE-OF-DATA EXTRA-VOLUMES) */}}
{{- define "postern.volumes" -}}
volumes:
  - name: data
    emptyDir:
      sizeLimit: {{ index . 0 }}
  - name: tmp
    emptyDir:
      sizeLimit: 64Mi
  {{- with index . 1 }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- define "postern.volumeMounts" -}}
volumeMounts:
  - name: data
    mountPath: /data
  - name: tmp
    mountPath: /tmp
  {{- with . }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/*
What keeps a workload from answering anything (decision 0031): of all other parts it says itself, with 503 and Retry-After, what it
cannot do without them.
*/}}
{{- define "postern.readyPath" -}}
{{- if eq . "web" }}/readyz?exclude=kv&exclude=blobs
{{- else if eq . "gateway" }}/readyz?exclude=database&exclude=kv&exclude=blobs
{{- else }}/readyz
{{- end }}
{{- end }}

{{/* A live process is not restarted; one that cannot answer gets no requests: (list PATH PROBE) */}}
{{- define "postern.probe" -}}
httpGet:
  path: {{ index . 0 }}
  port: metrics
periodSeconds: {{ (index . 1).periodSeconds }}
failureThreshold: {{ (index . 1).failureThreshold }}
timeoutSeconds: 5
{{- end }}
