{{- define "cluster.name" -}}
{{- $name := default .Release.Name .Values.name -}}
{{- if gt (len $name) 40 -}}
{{- fail (printf "the cluster's name %q has %d characters, 40 are the most: set name" $name (len $name)) -}}
{{- end -}}
{{- $name -}}
{{- end -}}

{{- define "cluster.labels" -}}
app.kubernetes.io/name: rocketmq
app.kubernetes.io/instance: {{ include "cluster.name" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* An object's name for a topic or group, whose own name may have capitals, "_" and "%". */}}
{{- define "cluster.objectName" -}}
{{- $cluster := index . 0 -}}
{{- $name := index . 1 -}}
{{- $plain := $name | lower | replace "_" "-" -}}
{{- if and (eq $plain $name) (regexMatch "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" $name) (le (len $name) 127) -}}
{{- printf "%s-%s" $cluster $name -}}
{{- else -}}
{{- printf "%s-%s-%s" $cluster ($plain | replace "%" "" | replace "|" "" | trunc 100 | trimAll "-") (sha256sum $name | trunc 8) -}}
{{- end -}}
{{- end -}}
