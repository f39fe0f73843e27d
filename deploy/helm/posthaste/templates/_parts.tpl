{{/* The name of everything: the release's, with the chart's unless it is in it already. */}}
{{- define "posthaste.name" -}}
{{- if contains "posthaste" .Release.Name -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-posthaste" .Release.Name | trunc 50 | trimSuffix "-" }}
{{- end -}}
{{- end }}

{{- define "posthaste.selector" -}}
app.kubernetes.io/name: posthaste
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "posthaste.labels" -}}
{{ include "posthaste.selector" . }}
app.kubernetes.io/component: publisher
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "posthaste.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ default (include "posthaste.name" .) .Values.serviceAccount.name }}
{{- else -}}
{{ default "default" .Values.serviceAccount.name }}
{{- end -}}
{{- end }}

{{- define "posthaste.image" -}}
{{- $repository := required "image.repository: build the image with the Dockerfile of the repository and name it here" .Values.image.repository -}}
{{- if .Values.image.digest -}}
{{ $repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ $repository }}:{{ required "image.tag or image.digest: which one to run" .Values.image.tag }}
{{- end -}}
{{- end }}

{{/* The variable of a key: database.url is POSTHASTE_DATABASE_URL. */}}
{{- define "posthaste.variable" -}}
POSTHASTE_{{ . | upper | replace "." "_" }}
{{- end }}

{{/* The configuration file: what the user gives, and what the chart answers for. */}}
{{- define "posthaste.config" -}}
{{- $own := dict
  "http" (dict "listen" ":8086")
  "relay" (dict "drain" (printf "%ds" (int .Values.drainSeconds)))
  "registry" (dict "file" "/etc/posthaste/registry/registry.yaml") -}}
{{- if and (hasKey .Values.config "relay") (hasKey .Values.config.relay "drain") -}}
{{- fail "config.relay.drain: set drainSeconds instead; the grace period follows it" -}}
{{- end -}}
{{- mergeOverwrite (deepCopy .Values.config) $own | toYaml -}}
{{- end }}

{{/* What must be true before anything is made. */}}
{{- define "posthaste.check" -}}
{{- if not (hasKey (default dict .Values.secrets) "database.url") -}}
{{- fail "secrets: database.url is required, for instance {secret: outbox-publisher, item: database-url}" -}}
{{- end -}}
{{- if and (not .Values.registry.existingConfigMap) (not (hasKey (default dict .Values.registry.files) "registry.yaml")) -}}
{{- fail "registry: give files.registry.yaml (--set-file 'registry.files.registry\\.yaml=registry.yaml') or existingConfigMap" -}}
{{- end -}}
{{- if and .Values.migrate.enabled (not (and .Values.migrate.databaseURL.secret .Values.migrate.databaseURL.item)) -}}
{{- fail "migrate.databaseURL: name the secret and its item with the URL of the role that owns the tables" -}}
{{- end -}}
{{- end }}

{{- define "posthaste.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "posthaste.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}
