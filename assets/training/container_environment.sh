#!/usr/bin/env bash
# The Python environment of a workload in a container: the image's packages, and those that it lacks.
#
# Sourced by: environment.sh, which has what these functions call. Only defines functions.
# Reads: CONTAINER_DIGEST (job.slurm exports it before steps in a container), TRAINING_VENVS.
#
# Packages of the image take precedence, torch above all, since the image's libraries for GPUs and networks fit its
# version. Packages of the workload that the image lacks are installed in the lock's versions, into an environment on
# shared storage that belongs to this image and user and also sees the image's packages.

# True in a job with a container, both inside it and in job.slurm outside.
uses_container() { [[ -n ${CONTAINER_DIGEST:-} ]]; }

# True in the container itself.
is_in_container() { [[ ${CONTAINER_INSIDE:-} == 1 ]]; }

# container_environment FOLDER: prints the folder of the environment. A container shows all owners but the user as nobody,
# so it cannot distinguish an environment of another user from one of root.
container_environment() {
  local environment_variant=""
  if grep -qs '^# Variants: ' "$1/install.sh"; then environment_variant="$(bash "$1/install.sh" --variant)" || return 1; fi
  printf '%s/%s-%s-%s%s\n' "${TRAINING_VENVS:?job.slurm sets it}" "$(basename "$1")" \
    "$(cut -c 8-19 <<<"$CONTAINER_DIGEST")" "$EUID" "$environment_variant"
}

# make_container_venv PYTHON VENV: makes an environment that sees the image's packages, including pip. An image with pip may
# lack ensurepip, which is a separate package on Debian. An image without both may have all packages of the workload.
make_container_venv() {
  local -a environment_without=(--without-pip)
  if ! "$1" -c 'import pip' 2>/dev/null && "$1" -c 'import ensurepip' 2>/dev/null; then environment_without=(); fi
  (umask 022 && "$1" -m venv --clear --system-site-packages "${environment_without[@]}" "$2" >&2)
}

# check_container_pip VENV: checks that pip exists, since the image lacks packages.
check_container_pip() {
  if "$1/bin/python" -c 'import pip' 2>/dev/null; then return; fi
  printf 'the image lacks packages of the workload, and pip to install them:\n%s\n  %s\n' \
    "$(sed -n 's/^\([A-Za-z0-9][^ ;\\]*\).*/    \1/p' "$1/lacking.txt" | head -n 12)" \
    'Build the image with them, or with python3-pip.' >&2
  return 1
}

# lacking FILE VENV: prints a file of requirements without the packages that the image has, and reports those. An image's
# own torch has its GPU libraries elsewhere, and does not need the gigabytes from PyPI.
lacking() {
  "$2/bin/python" -B - "$1" <<'PYTHON'
import re
import sys
from importlib import metadata

try:
    has_torch = bool(metadata.version("torch"))
except metadata.PackageNotFoundError:
    has_torch = False
pinned, here = {}, {}
block = ""
for line in open(sys.argv[1], encoding="utf-8"):
    block += line
    if line.rstrip().endswith("\\"):
        continue
    found = re.match(r"([A-Za-z0-9][A-Za-z0-9._-]*)(?: *== *([^ ;\\\n]+))?", block)
    try:
        version = metadata.version(found[1]) if found else None
    except metadata.PackageNotFoundError:
        version = None
    if version is None:
        if not (has_torch and found and re.fullmatch("(nvidia|cuda)-.*", found[1])):
            sys.stdout.write(block)
    else:
        pinned[found[1]], here[found[1]] = found[2] or version, version
    block = ""
others = [f"{name} {here[name]} for {pinned[name]}" for name in here if here[name] != pinned[name]]
print(
    f"container: {len(here)} packages of {sys.argv[1]} are the image's"
    + (f", in other versions: {', '.join(others)}" if others else ""),
    file=sys.stderr,
)
PYTHON
}

# image_provides FOLDER PYTHON: true if the image has the module for which the workload has an install.sh
# (`# Provides: MODULE`).
image_provides() {
  local environment_module
  environment_module="$(sed -n 's/^# Provides: //p' "$1/install.sh")"
  uses_container && [[ -n $environment_module ]] &&
    "$2" -c "import importlib.util, sys; sys.exit(importlib.util.find_spec('$environment_module') is None)" 2>/dev/null
}

# finish_container_venv VENV: reports the version of torch, and adds the program torchrun to the environment, which an image
# has in another folder.
finish_container_venv() {
  "$1/bin/python" -B - "$1" <<'PYTHON' >&2
import importlib.util
import sys

spec = importlib.util.find_spec("torch")
if spec is None or spec.origin is None:
    print("container: there is no torch", file=sys.stderr)
    sys.exit()
from importlib import metadata

whose = "installed over the image's packages" if spec.origin.startswith(sys.argv[1] + "/") else "the image's own"
print(f"container: torch {metadata.version('torch')}, {whose}; Python {sys.version.split()[0]}", file=sys.stderr)
with open(f"{sys.argv[1]}/bin/torchrun", "w", encoding="utf-8") as program:
    program.write(f"#!{sys.argv[1]}/bin/python\nimport sys\n\nfrom torch.distributed.run import main\n\nsys.exit(main())\n")
PYTHON
  if [[ -f $1/bin/torchrun ]]; then chmod 755 "$1/bin/torchrun"; fi
}
