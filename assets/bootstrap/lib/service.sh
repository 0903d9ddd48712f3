# shellcheck shell=bash
#
# Sourced by steps 38 and 86 to 88, with what it uses of lib/packages.sh and lib/put.sh: Prometheus's programs, from the
# distribution's packages, and their services.
# Environment: TRAINING_ROOT.

readonly UNITS="$TRAINING_ROOT/etc/systemd/system"

# install_program NAME: installs the package of a program that is missing. The package's own service, which would start
# at once on all addresses, is masked before.
install_program() {
  if command -v "$1" >/dev/null; then return; fi
  systemctl mask "$1.service"
  install_packages "$1"
}

# start_service NAME DESCRIPTION [UNIT_LINES] <<<LINES: writes the unit training-cluster-NAME, with these lines of [Unit]
# and of [Service], and starts it; restarts it if something that `put` has written since the step began is new.
start_service() {
  local -r unit="training-cluster-$1.service" unit_lines=${3:+$'\n'$3}
  put "$UNITS/$unit" <<END
[Unit]
Description=Training Cluster: $2$unit_lines

[Service]
User=prometheus
$(cat)
Restart=always
RestartSec=10
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes

[Install]
WantedBy=multi-user.target
END
  timeout 10 systemctl daemon-reload
  timeout 10 systemctl enable --now "$unit"
  # shellcheck disable=SC2154 # put sets it
  if [[ $changed == yes ]]; then timeout 10 systemctl restart "$unit"; fi
}
