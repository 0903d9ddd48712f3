#!/usr/bin/env bash
#
# libfabric's provider is efa, on every interface that the instance type has. Without it NCCL and MPI go on over TCP
# at a tenth of the speed, and nothing says so.
#
# Called by: check-node.sh, as root.
# Kinds: all
# Where: node
set -euo pipefail
# shellcheck source=assets/bootstrap/health/verdict.sh
source "$(dirname "${BASH_SOURCE[0]}")/../verdict.sh"

if ((EFA_INTERFACES == 0)); then exit 0; fi
need fi_info "its $EFA_INTERFACES EFA interfaces work"
said="$(fi_info -p efa -t FI_EP_RDM 2>&1)" ||
  unfit "libfabric has no efa provider here, so jobs would fall back to TCP: $(last_line "$said")"
# An interface comes twice where libfabric has efa and efa-direct: its domain is what counts.
count="$(awk '$1 == "provider:" { efa = $2 == "efa" } efa && $1 == "domain:" { print $2 }' <<<"$said" |
  sort -u | wc -l)"
((count == EFA_INTERFACES)) || unfit "libfabric finds $count of $EFA_INTERFACES EFA interfaces"
