{{/* The name of every object: the release's, with the chart's unless it stands in there. */}}
{{- define "operator.name" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- $chart := default .Chart.Name .Values.nameOverride -}}
{{- if contains $chart .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $chart | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Names of cluster-wide objects have the namespace in them: two releases never share one. */}}
{{- define "operator.clusterWideName" -}}
{{- printf "%s-%s" .Release.Namespace (include "operator.name" .) | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "operator.serviceAccount" -}}
{{- default (include "operator.name" .) .Values.serviceAccount.name -}}
{{- end -}}

{{- define "operator.selector" -}}
app.kubernetes.io/name: rocketmq-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "operator.labels" -}}
{{ include "operator.selector" . }}
app.kubernetes.io/component: operator
app.kubernetes.io/part-of: rocketmq
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "operator.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/* Namespaces in which clusters are watched, as a JSON list; empty for all. */}}
{{- define "operator.namespaces" -}}
{{- if and .Values.watch.namespaces (ne .Values.watch.mode "namespaces") -}}
{{- fail "watch.namespaces is only read when watch.mode is namespaces" -}}
{{- end -}}
{{- if eq .Values.watch.mode "own" -}}
{{- list .Release.Namespace | toJson -}}
{{- else if eq .Values.watch.mode "namespaces" -}}
{{- if not .Values.watch.namespaces -}}
{{- fail "watch.mode is namespaces, so watch.namespaces must name at least one" -}}
{{- end -}}
{{- .Values.watch.namespaces | uniq | sortAlpha | toJson -}}
{{- else -}}
{{- list | toJson -}}
{{- end -}}
{{- end -}}

{{/* What pods of this chart may do at most: nothing. */}}
{{- define "operator.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "operator.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* What the operator does in a namespace that it watches, and in no other. */}}
{{- define "operator.rules" -}}
- apiGroups: [rocketmq.rs]
  resources: [rocketmqclusters, topics, consumergroups]
  verbs: [get, list, watch, patch, update]
- apiGroups: [rocketmq.rs]
  resources: [brokergroups, operations]
  verbs: [get, list, watch, create, patch, update, delete]
- apiGroups: [rocketmq.rs]
  resources:
  - rocketmqclusters/status
  - brokergroups/status
  - topics/status
  - consumergroups/status
  - operations/status
  verbs: [get, patch, update]
- apiGroups: [rocketmq.rs]
  resources:
  - rocketmqclusters/finalizers
  - brokergroups/finalizers
  - topics/finalizers
  - consumergroups/finalizers
  - operations/finalizers
  verbs: [update]
- apiGroups: [""]
  resources: [services, configmaps, serviceaccounts]
  verbs: [get, list, watch, create, patch, update, delete]
- apiGroups: [""]
  resources: [pods, persistentvolumeclaims]
  verbs: [get, list, watch, patch, delete]
- apiGroups: [apps]
  resources: [statefulsets]
  verbs: [get, list, watch, create, patch, update, delete]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch, create, patch, update, delete]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, list, watch, create, patch, update, delete]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
# Why a pod does not start stands in its events alone.
- apiGroups: [""]
  resources: [events]
  verbs: [list]
{{- end -}}
