#!/usr/bin/env bash
#
# Before and after each job, on each of its nodes: writes and removes the file that says which job has the node, for
# node_exporter.
#
# Called by: Slurm (Prolog and Epilog), as root, on compute nodes, with no PATH. Step 86-export-metrics.sh installs it
#   on the head node, which shares both folders with all nodes, and writes MOMENT and the TRAINING_ variables below the
#   first line. Environment by Slurm: SLURM_JOB_ID, SLURM_JOB_USER, SLURM_JOB_PARTITION, SLURMD_NODENAME. Safe to run
#   again, and for several jobs at a time. It always ends with 0: another status would drain the node.
set -uo pipefail
PATH=/usr/bin:/bin
readonly FOLDER="${TRAINING_METRICS:-${TRAINING_ROOT:-}/run/training-cluster-metrics}"

# label NAME VALUE: Slurm allows neither quotes nor backslashes in these values.
label() { printf '%s="%s"' "$1" "${2//[\\\"$'\n']/_}"; }

main() {
  local -r file="$FOLDER/job-${SLURM_JOB_ID:?}.prom"
  if [[ ${MOMENT:?} == epilog ]]; then
    rm -f "$file"
    return
  fi
  mkdir -p "$FOLDER"
  {
    printf '# HELP slurm_node_job_info 1 while the job in the labels has this node.\n'
    printf '# TYPE slurm_node_job_info gauge\n'
    printf 'slurm_node_job_info{%s,%s,%s,%s} 1\n' "$(label node "${SLURMD_NODENAME:?}")" \
      "$(label job "$SLURM_JOB_ID")" "$(label user "${SLURM_JOB_USER:-?}")" "$(label partition "${SLURM_JOB_PARTITION:-?}")"
  } >"$file.$$"
  chmod 644 "$file.$$"
  mv -f "$file.$$" "$file"
}

# In a subshell, which a missing variable ends.
(main) >/dev/null 2>&1
exit 0
