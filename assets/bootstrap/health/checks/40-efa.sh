#!/usr/bin/env bash
#
# Checks that libfabric has the provider efa on every interface of the instance type. Without it NCCL and MPI silently
# use TCP at a tenth of the speed.
#
# Called by: check-node.sh, as root.
# Kinds: all
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../verdict.sh"

if ((EFA_INTERFACES == 0)); then exit 0; fi
need fi_info "its $EFA_INTERFACES EFA interfaces work"
said="$(fi_info -p efa -t FI_EP_RDM 2>&1)" ||
  unhealthy "libfabric has no efa provider here, so jobs would fall back to TCP: $(last_line "$said")"
# The domains are counted, since libfabric lists an interface twice if it has efa and efa-direct.
count="$(awk '$1 == "provider:" { efa = $2 == "efa" } efa && $1 == "domain:" { print $2 }' <<<"$said" |
  sort -u | wc -l)"
((count == EFA_INTERFACES)) || unhealthy "libfabric finds $count of $EFA_INTERFACES EFA interfaces"
