{{/* Names, labels, and the settings that the pods of the service and of the worker share. */}}

{{- define "waylore.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "waylore.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains (include "waylore.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "waylore.name" .) | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "waylore.selector" -}}
app.kubernetes.io/name: {{ include "waylore.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "waylore.labels" -}}
{{ include "waylore.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "waylore.image" -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}

{{- define "waylore.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "waylore.fullname" .) .Values.serviceAccount.name }}
{{- else -}}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* Names that requests may have in their Host header: those of the service, of the ingress, and `hosts`. */}}
{{- define "waylore.hosts" -}}
{{- $name := include "waylore.fullname" . }}
{{- $inside := printf "%s.%s" $name .Release.Namespace }}
{{- $hosts := list $name $inside (printf "%s.svc" $inside) (printf "%s.svc.cluster.local" $inside) }}
{{- if .Values.ingress.enabled }}
{{- range .Values.ingress.hosts }}
{{- $hosts = append $hosts .host }}
{{- end }}
{{- end }}
{{- concat $hosts .Values.hosts | uniq | join "," }}
{{- end }}

{{- define "waylore.secret" -}}
{{- default (include "waylore.fullname" .) .Values.existingSecret }}
{{- end }}

{{- define "waylore.spoolClaim" -}}
{{- if .Values.spool.existingClaim -}}
{{- .Values.spool.existingClaim }}
{{- else if .Values.spool.create -}}
{{- printf "%s-spool" (include "waylore.fullname" .) }}
{{- end }}
{{- end }}

{{/* Reject values that would only fail at run time: no store, or uploads that the worker cannot read. */}}
{{- define "waylore.validate" -}}
{{- if not (or .Values.existingSecret .Values.secrets.WAYLORE_STORE) -}}
{{- fail "no database is configured: set existingSecret to a secret with the key WAYLORE_STORE, or set secrets.WAYLORE_STORE" }}
{{- end }}
{{- if and .Values.existingSecret .Values.secrets -}}
{{- fail "existingSecret and secrets are both set: put all variables into one of them" }}
{{- end }}
{{- $claim := include "waylore.spoolClaim" . -}}
{{- if and .Values.worker.enabled (not $claim) -}}
{{- fail "worker.enabled needs a folder that the service and the worker share: set spool.create (with a storageClass that is ReadWriteMany) or spool.existingClaim" }}
{{- end }}
{{- $several := or (gt (int .Values.replicas) 1) .Values.autoscaling.enabled -}}
{{- if and $several (not (or $claim .Values.spool.perPod)) -}}
{{- fail "several pods need a shared folder for uploads: set spool.create (with a storageClass that is ReadWriteMany) or spool.existingClaim, or set spool.perPod if waiting uploads may be lost with their pod" }}
{{- end }}
{{- end }}

{{- define "waylore.podAnnotations" -}}
checksum/secret: {{ toJson .Values.secrets | sha256sum }}
{{- with .Values.podAnnotations }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "waylore.podSettings" -}}
serviceAccountName: {{ include "waylore.serviceAccount" . }}
automountServiceAccountToken: false
enableServiceLinks: false  # a service named waylore would set the variable WAYLORE_PORT
terminationGracePeriodSeconds: 45
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.topologySpreadConstraints }}
topologySpreadConstraints: {{- toYaml . | nindent 2 }}
{{- end }}
volumes:
  - name: temporary
    emptyDir: {}
  - name: state
    emptyDir: {}
  - name: spool
    {{- with include "waylore.spoolClaim" . }}
    persistentVolumeClaim:
      claimName: {{ . }}
    {{- else }}
    emptyDir:
      sizeLimit: {{ .Values.spool.emptyDirLimit }}
    {{- end }}
  - name: models
    {{- with .Values.models.existingClaim }}
    persistentVolumeClaim:
      claimName: {{ . }}
    {{- else }}
    emptyDir:
      sizeLimit: {{ .Values.models.emptyDirLimit }}
    {{- end }}
{{- end }}

{{- define "waylore.containerSettings" -}}
image: {{ include "waylore.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
envFrom:
  - secretRef:
      name: {{ include "waylore.secret" . }}
env:
  {{- if not (hasKey .Values.settings "WAYLORE_HTTP_HOSTS") }}
  - name: WAYLORE_HTTP_HOSTS
    value: {{ include "waylore.hosts" . | quote }}
  {{- end }}
  {{- range $name, $value := .Values.settings }}
  - name: {{ $name }}
    value: {{ $value | quote }}
  {{- end }}
  {{- with .Values.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
volumeMounts:
  - name: temporary
    mountPath: /tmp
  - name: state
    mountPath: /var/lib/waylore
  - name: spool
    mountPath: /var/lib/waylore/spool
  - name: models
    mountPath: /var/lib/waylore/models
{{- end }}
