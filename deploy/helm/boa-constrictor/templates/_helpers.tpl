{{/* Names. A release called like the chart, or `boa`, is not named twice. */}}
{{- define "boa.name" -}}
{{- if or (contains .Release.Name .Chart.Name) (contains .Chart.Name .Release.Name) -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-boa" .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Of what belongs to no namespace. */}}
{{- define "boa.clusterName" -}}
{{ printf "%s-%s" .Release.Namespace (include "boa.name" .) | trimPrefix "-" }}
{{- end -}}

{{- define "boa.image" -}}
{{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) | quote }}
{{- end -}}

{{/* Of the service's containers. */}}
{{- define "boa.confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- define "boa.account" -}}
{{ .Values.serviceAccount.name | default (include "boa.name" .) }}
{{- end -}}

{{- define "boa.tokenSecret" -}}
{{ .Values.token.existingSecret | default (printf "%s-token" (include "boa.name" .)) }}
{{- end -}}

{{- define "boa.dataClaim" -}}
{{ .Values.data.existingClaim | default (printf "%s-data" (include "boa.name" .)) }}
{{- end -}}

{{- define "boa.checkpointsClaim" -}}
{{ .Values.checkpoints.existingClaim | default (printf "%s-checkpoints" (include "boa.name" .)) }}
{{- end -}}

{{- define "boa.priorityClass" -}}
{{ .Values.priorityClass.name | default (printf "%s-placeholder" (include "boa.clusterName" .)) }}
{{- end -}}

{{- define "boa.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "boa.labels" -}}
{{ include "boa.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* Rules are granted by mode: another one is a mistake, not a reason for more or fewer of them. */}}
{{- define "boa.mode" -}}
{{- if not (has .Values.mode (list "fixed" "karpenter" "autoscaler")) -}}
{{- fail (printf "mode: got %q; expected fixed, karpenter or autoscaler" (toString .Values.mode)) -}}
{{- end -}}
{{- .Values.mode -}}
{{- end -}}

{{/* Label boa-constrictor.dev/owner of all that is this service's. */}}
{{- define "boa.owner" -}}
{{- $kubernetes := .Values.config.kubernetes | default dict -}}
{{ $kubernetes.owner | default (include "boa.name" .) }}
{{- end -}}

{{/* Whether pods of others are evicted from nodes that are given back: needs more rights. */}}
{{- define "boa.evictsOthers" -}}
{{- $kubernetes := .Values.config.kubernetes | default dict -}}
{{- $autoscaler := $kubernetes.autoscaler | default dict -}}
{{- if and (eq .Values.mode "autoscaler") $autoscaler.evict_others -}}yes{{- end -}}
{{- end -}}
