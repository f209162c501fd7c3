{{/* Names, labels, and what the pods of the service and of the worker have in common. */}}

{{- define "weft.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "weft.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains (include "weft.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "weft.name" .) | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "weft.selector" -}}
app.kubernetes.io/name: {{ include "weft.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "weft.labels" -}}
{{ include "weft.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "weft.image" -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}

{{- define "weft.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "weft.fullname" .) .Values.serviceAccount.name }}
{{- else -}}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "weft.secret" -}}
{{- default (include "weft.fullname" .) .Values.existingSecret }}
{{- end }}

{{- define "weft.spoolClaim" -}}
{{- if .Values.spool.existingClaim -}}
{{- .Values.spool.existingClaim }}
{{- else if .Values.spool.create -}}
{{- printf "%s-spool" (include "weft.fullname" .) }}
{{- end }}
{{- end }}

{{/* What would be found out too late: no store, or uploads that the reading pod cannot see. */}}
{{- define "weft.checked" -}}
{{- if not (or .Values.existingSecret .Values.secrets.WEFT_STORE) -}}
{{- fail "Weft needs a database: set existingSecret to a secret with the key WEFT_STORE, or secrets.WEFT_STORE" }}
{{- end }}
{{- if and .Values.existingSecret .Values.secrets -}}
{{- fail "existingSecret and secrets are both set: put all variables into one of them" }}
{{- end }}
{{- $claim := include "weft.spoolClaim" . -}}
{{- if and .Values.worker.enabled (not $claim) -}}
{{- fail "a worker reads what the service was sent: set spool.create (with a storageClass that is ReadWriteMany) or spool.existingClaim" }}
{{- end }}
{{- $several := or (gt (int .Values.replicas) 1) .Values.autoscaling.enabled -}}
{{- if and $several (not (or $claim .Values.spool.perPod)) -}}
{{- fail "uploads that wait in a pod go with it: set spool.create (with a storageClass that is ReadWriteMany) or spool.existingClaim, or spool.perPod if they may" }}
{{- end }}
{{- end }}

{{- define "weft.podAnnotations" -}}
checksum/secret: {{ toJson .Values.secrets | sha256sum }}
{{- with .Values.podAnnotations }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "weft.podSettings" -}}
serviceAccountName: {{ include "weft.serviceAccount" . }}
automountServiceAccountToken: false
enableServiceLinks: false  # a service named weft would put a WEFT_PORT of its own into the environment
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
    {{- with include "weft.spoolClaim" . }}
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

{{- define "weft.containerSettings" -}}
image: {{ include "weft.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
envFrom:
  - secretRef:
      name: {{ include "weft.secret" . }}
env:
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
    mountPath: /var/lib/weft
  - name: spool
    mountPath: /var/lib/weft/spool
  - name: models
    mountPath: /var/lib/weft/models
{{- end }}
