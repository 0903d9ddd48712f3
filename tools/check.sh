#!/usr/bin/env bash
#
# Runs every check: style, types, shell scripts, CloudFormation templates of all families (also by
# cdk-nag).
#
# Called by: `make check`. Safe to run again. Runs all checks, then fails if one of them failed.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
export MYPY_CACHE_DIR="$PWD/.cache/mypy" RUFF_CACHE_DIR="$PWD/.cache/ruff"
export PATH="$PWD/.venv/bin:$PWD/node_modules/.bin:$PATH"

failed=()

check() {
  local -r name="$1"
  shift
  printf 'check: %s\n' "$name" >&2
  "$@" || failed+=("$name")
}

shell_files() {
  git ls-files -co --exclude-standard -- '*.sh' '*.slurm' .ci/run rehearsal/programs
}

job_scripts() {
  git ls-files -co --exclude-standard -- 'assets/training/*.sh' 'assets/training/*.slurm' 'ops/workload_template/*.sh'
}

rm -rf .cache/synth
mapfile -t scripts < <(shell_files)
check ruff ruff check --quiet .
check ruff-format ruff format --quiet --check .
check mypy mypy --no-error-summary --exclude 'rehearsal/faults/inside|ops/workload_template|bench/baselines' \
  app.py stacks constructs/training_cluster ops rehearsal tools bench tests
# Code that runs elsewhere is checked in its own folder, where its modules are top-level.
check mypy-provider env -C assets/cluster_provider mypy --no-error-summary --config-file ../../pyproject.toml .
check mypy-guard env -C assets/guard mypy --no-error-summary --config-file ../../pyproject.toml .
check mypy-zone env -C assets/compute_zone mypy --no-error-summary --config-file ../../pyproject.toml .
check mypy-image env -C assets/cluster_image mypy --no-error-summary --config-file ../../pyproject.toml .
check mypy-metrics env -C assets/bootstrap/metrics MYPYPATH=../../training mypy --no-error-summary --config-file ../../../pyproject.toml .
check mypy-services env -C assets/bootstrap/services mypy --no-error-summary --config-file ../../../pyproject.toml .
check mypy-health env -C assets/bootstrap/health mypy --no-error-summary --config-file ../../../pyproject.toml .
check mypy-faults env -C rehearsal/faults/inside MYPYPATH=../../../assets/cluster_provider \
  mypy --no-error-summary --config-file ../../../pyproject.toml .
check mypy-training-common env -C assets/training mypy --no-error-summary --ignore-missing-imports \
  --config-file ../../pyproject.toml trainkit
for folder in assets/training/*/; do
  if [[ -f $folder/train.sh ]]; then
    check "mypy-$(basename "$folder")" env -C "$folder" MYPYPATH=.. mypy --no-error-summary --ignore-missing-imports \
      --allow-subclassing-any --config-file ../../../pyproject.toml .
  fi
done
# torch is not installed, so the types of its modules are unknown.
check mypy-template env -C ops/workload_template MYPYPATH=../../assets/training mypy --no-error-summary \
  --ignore-missing-imports --allow-subclassing-any --config-file ../../pyproject.toml .
mapfile -t jobs < <(job_scripts)
check trainctl-lint trainctl lint "${jobs[@]}"
check shellcheck shellcheck "${scripts[@]}"
check shfmt shfmt -i 2 -ci -d "${scripts[@]}"
check synth python -m tools.synth_families .cache/synth
check lines python -m tools.lines
check prose python -m tools.prose
check nag python -m tools.nag .cache/synth/*
# W3005: CDK's own constructs name a dependency that a reference already makes.
check cfn-lint cfn-lint --ignore-checks W3005 -- .cache/synth/*/*.template.json

if ((${#failed[@]})); then
  printf 'check: FAILED: %s\n' "${failed[*]}" >&2
  exit 1
fi
printf 'check: all passed\n' >&2
