#!/usr/bin/env bash
#
# Checks that the GPUs have joined the NVLink fabric behind NVSwitches, and that no link of theirs is down.
#
# A GPU whose fabric is not ready is listed by nvidia-smi as if it were healthy, and every CUDA program ends with error
# 802. The driver reports the fabric of Hopper GPUs and newer ones: Not Started, In Progress, Completed; for all others
# N/A, which is not a verdict (14-gpu-cuda.sh finds a fabric of A100s that is not ready). A node's start waits for the
# fabric (steps/89-await-fabric.sh), so here the state must be final.
# A link that is down costs bandwidth between GPUs, or ends NCCL. The catalog does not have the number of links, so a GPU
# with fewer links than another one of its node is a fault. Without NVLink (g5) the driver lists none. With MIG it switches
# them off, and such a node is not judged.
# Sources: NVML's nvmlGpuFabricInfoV_t; kubernetes-sigs/dra-driver-nvidia-gpu issue 626 has the text of nvidia-smi -q,
# Azure/azhpc-diagnostics issue 73 the output of nvidia-smi nvlink.
#
# Called by: check-node.sh, as root; steps/89-await-fabric.sh.
# Kinds: gpu
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../verdict.sh"

# Prints GPU, STATE, STATUS and SUMMARY of each GPU's fabric, and its MIG mode, separated by |.
fabrics() {
  awk '
    function value() { sub(/^[^:]*: */, ""); sub(/ *$/, ""); return $0 }
    function flush() { if (gpu != "") print gpu "|" state "|" status "|" summary "|" mig }
    /^GPU / { flush(); gpu = $2; state = status = summary = mig = "N/A"; section = "" }
    /^    [A-Za-z]/ { section = $1 }
    section == "MIG" && /^        Current +:/ { mig = value() }
    section == "Fabric" && /^        State +:/ { state = value() }
    section == "Fabric" && /^        Status +:/ { status = value() }
    section == "Fabric" && /^            Summary +:/ { summary = value() }
    END { flush() }
  ' <<<"$1"
}

# Prints the number of each GPU and of its NVLinks that are up, and the names of those that are down, separated by |.
links() {
  awk '
    function flush() { if (gpu != "") print gpu "|" up "|" down }
    /^GPU [0-9]+:/ { flush(); gpu = $2; sub(":", "", gpu); up = 0; down = "" }
    /^[ \t]+Link [0-9]+: *<inactive>/ { link = $2; sub(":", "", link); down = down (down == "" ? "" : ", ") link }
    /^[ \t]+Link [0-9]+: *[0-9.]+ GB\/s/ { up++ }
    END { flush() }
  ' <<<"$1"
}

need nvidia-smi "its GPUs' fabric is ready"
said="$(nvidia-smi -q)" || exit 1 # 10-gpus.sh checks that nvidia-smi works
mig_anywhere=""
while IFS='|' read -r gpu state status summary mig; do
  if [[ -z $gpu ]]; then continue; fi # a report in an unknown format
  if [[ $mig == Enabled ]]; then mig_anywhere=yes; fi
  # A GPU alone (g5.xlarge, p5.4xlarge) has no peer to reach.
  if ((ACCELERATORS_PER_NODE == 1)) || [[ $state == N/A || $state == "Not Supported" ]]; then continue; fi
  [[ $state == Completed ]] || unhealthy "the fabric of the GPU $gpu is not ready ($state): CUDA ends with error 802"
  [[ $status == Success ]] || unhealthy "the GPU $gpu could not join its fabric: $status"
  [[ $summary != Unhealthy ]] || unhealthy "the driver calls the fabric of the GPU $gpu unhealthy"
done <<<"$(fabrics "$said")"
if [[ -n $mig_anywhere ]]; then exit 0; fi

listed="$(nvidia-smi nvlink --status)" || exit 1
most=0
while IFS='|' read -r gpu up down; do
  if ((up > most)); then most=$up; fi
done <<<"$(links "$listed")"
while IFS='|' read -r gpu up down; do
  if [[ -z $gpu ]]; then continue; fi
  ((up == most)) ||
    unhealthy "the GPU $gpu has $up NVLinks, and another of this node has $most${down:+ (down: link $down)}"
done <<<"$(links "$listed")"
