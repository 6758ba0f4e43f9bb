{{/* The Pod that job pods are merged into: the service's user, and its checkpoints at its own paths. */}}
{{- define "boa.podTemplate" -}}
spec:
  securityContext:
    runAsNonRoot: true
    runAsUser: {{ int .Values.jobs.user }}
    runAsGroup: {{ int .Values.jobs.user }}
    fsGroup: {{ int .Values.jobs.user }}
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: {type: RuntimeDefault}
  {{- with .Values.image.pullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  volumes:
    - name: checkpoints
      persistentVolumeClaim: {claimName: {{ include "boa.checkpointsClaim" . }}}
    {{- with .Values.jobs.volumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  containers:
    - name: job
      {{- with .Values.jobs.container }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
      securityContext:
        allowPrivilegeEscalation: false
        capabilities: {drop: [ALL]}
      volumeMounts:
        - {name: checkpoints, mountPath: /var/lib/boa/checkpoints, subPath: checkpoints}
        - {name: checkpoints, mountPath: /var/lib/boa/artifacts, subPath: artifacts}
        {{- with .Values.jobs.volumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
{{- end -}}

{{/* boa.yaml: the user's, and what follows from where the chart puts things. */}}
{{- define "boa.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $_ := required "config.budget_per_hour: dollars per hour are needed, as in docs/config.md" $config.budget_per_hour -}}
{{- $_ := required "config.gpu_types: GPU types with their prices are needed, as in docs/config.md" $config.gpu_types -}}
{{- $given := $config.kubernetes | default dict -}}
{{- $template := mergeOverwrite (fromYaml (include "boa.podTemplate" .)) (dict "spec" (deepCopy .Values.jobs.podSpec)) -}}
{{- $ours := dict "nodes" (include "boa.mode" .) "namespace" .Release.Namespace "owner" (include "boa.owner" .) "image" .Values.jobs.image "pod_template" $template -}}
{{- if eq .Values.mode "autoscaler" -}}
{{- $_ := set $ours "autoscaler" (mergeOverwrite (deepCopy ($given.autoscaler | default dict)) (dict "priority_class" (include "boa.priorityClass" .))) -}}
{{- end -}}
{{- $url := printf "http://%s.%s.svc:%d" (include "boa.name" .) .Release.Namespace (int .Values.service.port) -}}
{{- $_ := set $config "url" ($config.url | default $url) -}}
{{- $_ := set $config "kubernetes" (mergeOverwrite (deepCopy $given) $ours) -}}
{{- mergeOverwrite $config (dict "engine" "kubernetes" "cloud" "kubernetes" "host" "0.0.0.0" "port" 8420 "data_dir" "/var/lib/boa") | toYaml -}}
{{- end -}}
