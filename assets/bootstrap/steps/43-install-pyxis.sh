#!/usr/bin/env bash
#
# Installs Pyxis, Slurm's plug-in for containers, on an AMI without it, such as an AMI that `pcluster build-image` makes
# with its defaults. ParallelCluster's AMI has Pyxis, disabled; a start step enables it.
#
# The head node always has it, and accepts `--container-image` for every partition. On a node without it Slurm
# ignores the option and runs the program on the host, so nodes of all recipes get it, with or without Enroot.
#
# Called by: run-steps.sh, as root. Safe to run again: it skips an installed Pyxis. Environment: BUNDLE,
#   PYXIS_{URL,COMMIT}, TRAINING_ROOT, TRAINING_OPT.
# Nodes: ComputeFleet
# Required: no
# Budget: 60 s
# Reads: bootstrap/lib/download.sh
set -euo pipefail
shopt -s inherit_errexit
source "$BUNDLE/bootstrap/lib/download.sh"

readonly SOURCES="$TRAINING_OPT/src/pyxis"

if [[ -f $TRAINING_ROOT/usr/local/lib/slurm/spank_pyxis.so ]]; then exit 0; fi
checkout "$PYXIS_URL" "$PYXIS_COMMIT" "$SOURCES"
CPPFLAGS="-I $TRAINING_ROOT/opt/slurm/include" \
  make -C "$SOURCES" install prefix=/usr/local DESTDIR="$TRAINING_ROOT" >&2 || {
  printf 'Pyxis did not compile: see the lines above\n' >&2
  exit 1
}
rm -rf "$SOURCES"
