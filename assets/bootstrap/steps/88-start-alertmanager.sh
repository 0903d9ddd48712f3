#!/usr/bin/env bash
#
# Starts Alertmanager, from the distribution's package, on the head node: it sends Prometheus's alerts to the topic of
# alarm_email and to the webhook of alert_webhook_secret. Without either, Alertmanager does not run; Prometheus and
# trainctl top still show the alerts.
#
# Called by: run-steps.sh, as root. Environment: BUNDLE, TRAINING_ROOT, TRAINING_ETC, METRICS_TOPIC, METRICS_WEBHOOK_SECRET.
#   Safe to run again; the webhook's address is read from Secrets Manager each time, and only Alertmanager can read its copy.
# Nodes: HeadNode
# Required: no
# Budget: 120 s
# Metrics: prometheus amp
# Reads: bootstrap/lib/packages.sh bootstrap/lib/service.sh
set -euo pipefail
shopt -s inherit_errexit
source "$BUNDLE/bootstrap/lib/packages.sh"
source "$BUNDLE/bootstrap/lib/put.sh"
source "$BUNDLE/bootstrap/lib/service.sh"

readonly FOLDER="$TRAINING_ETC/alertmanager" DATA=/var/lib/prometheus/training-cluster-alertmanager
readonly IMDS=/opt/parallelcluster/scripts/imds/imds-access.sh

# receivers REGION: prints the channels of the receiver.
receivers() {
  local caller partition account
  if [[ -n ${METRICS_TOPIC:-} ]]; then
    caller="$(aws sts get-caller-identity --region "$1" --query Arn --output text)"
    IFS=: read -r _ partition _ _ account _ <<<"$caller"
    cat <<END
    sns_configs:
      - topic_arn: "arn:$partition:sns:$1:$account:$METRICS_TOPIC"
        sigv4: {region: "$1"}
        subject: '[{{ .Status }}] {{ .CommonLabels.alertname }} ({{ .CommonLabels.cluster }})'
        send_resolved: false
END
  fi
  if [[ -n ${METRICS_WEBHOOK_SECRET:-} ]]; then
    cat <<END
    slack_configs:
      - api_url_file: "$FOLDER/webhook"
        title: '[{{ .Status }}] {{ .CommonLabels.alertname }} ({{ .CommonLabels.cluster }})'
        text: '{{ range .Alerts }}{{ reReplaceAll "<" "&lt;" (reReplaceAll "&" "&amp;" .Annotations.summary) }}{{ "\n" }}{{ end }}'
END
  fi
}

if [[ -z ${METRICS_TOPIC:-}${METRICS_WEBHOOK_SECRET:-} ]]; then
  readonly UNIT=training-cluster-alertmanager.service
  if [[ -e $UNITS/$UNIT ]]; then timeout 10 systemctl disable --now "$UNIT"; fi
  exit 0
fi
install_program prometheus-alertmanager
# shellcheck source=/dev/null
source "$TRAINING_ROOT/etc/parallelcluster/cfnconfig"
channels="$(receivers "${cfn_region:?is not in cfnconfig}")"
config="$(<"$BUNDLE/bootstrap/monitoring/alertmanager.yml")"
put "$FOLDER/alertmanager.yml" <<<"${config//@RECEIVERS@/$channels}"
if [[ -n ${METRICS_WEBHOOK_SECRET:-} ]]; then
  webhook="$(aws secretsmanager get-secret-value --region "$cfn_region" --secret-id "$METRICS_WEBHOOK_SECRET" \
    --query SecretString --output text)"
  # With `put`, all users could read the file for a moment.
  (umask 077 && printf '%s' "$webhook" >"$FOLDER/.webhook")
  chown prometheus: "$FOLDER/.webhook"
  mv -f "$FOLDER/.webhook" "$FOLDER/webhook"
fi
amtool check-config "$FOLDER/alertmanager.yml" >&2
if [[ -n ${METRICS_TOPIC:-} && -x $IMDS ]]; then "$IMDS" --allow prometheus >&2; fi
install -d -o prometheus -g prometheus -m 750 "$DATA"
start_service alertmanager Alertmanager <<END
ExecStart=/usr/bin/prometheus-alertmanager --config.file=$FOLDER/alertmanager.yml --storage.path=$DATA \\
  --web.listen-address=127.0.0.1:9093 --cluster.listen-address=
MemoryMax=256M
ReadWritePaths=$DATA
END
