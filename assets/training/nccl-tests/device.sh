#!/usr/bin/env bash
# The kind of devices that an all-reduce test measures, and the program that measures.
#
# Sourced by: prepare.sh and train.sh, as the user. Only defines functions.
# Reads: DEVICE (cuda or gpu, cpu; default: the family's ACCELERATOR_KIND), MEASURE_WITH, ENVIRONMENT_OF, TRAINING_OPT.

# measured_device: prints gpu, cpu or neuron; for another word it prints an error and returns 1.
measured_device() {
  case ${DEVICE:-$ACCELERATOR_KIND} in
    # Other workloads use the word cuda, the family's file gpu.
    cuda | gpu) printf 'gpu\n' ;;
    cpu | none) printf 'cpu\n' ;;
    neuron) printf 'neuron\n' ;;
    *)
      printf '%s: DEVICE is "%s"; allowed: cuda, cpu.\n' "$(basename "$0")" "${DEVICE:-$ACCELERATOR_KIND}" >&2
      return 1
      ;;
  esac
}

# measuring_program: prints torch (all_reduce.py, the default), product (product.py) or nccl-tests (all_reduce_perf of the
# nodes' image). For another word, and on a node without all_reduce_perf, it prints an error and returns 1.
measuring_program() {
  case ${MEASURE_WITH:-torch} in
    torch | product) ;;
    nccl-tests)
      if [[ ! -x ${TRAINING_OPT:-/opt/training-cluster}/bin/all_reduce_perf ]]; then
        printf '%s: %s has no all_reduce_perf: the image build compiles it.\n  %s\n' "$(basename "$0")" "$(hostname)" \
          'Deploy with -c image=build, or measure with torch: MEASURE_WITH=torch sbatch ...' >&2
        return 1
      fi
      ;;
    *)
      printf '%s: MEASURE_WITH is "%s"; allowed: torch, nccl-tests, product.\n' "$(basename "$0")" "$MEASURE_WITH" >&2
      return 1
      ;;
  esac
  printf '%s\n' "${MEASURE_WITH:-torch}"
}

# measured_environment FOLDER: prints the folder of the workload whose torch measures: ENVIRONMENT_OF, default this one.
measured_environment() {
  local -r folder="$(dirname "$1")/${ENVIRONMENT_OF:-$(basename "$1")}"
  if ! grep -Eqs '^torch *==' "$folder/requirements.txt"; then
    printf '%s: ENVIRONMENT_OF is "%s", which is not a workload with torch in its requirements.txt.\n' "$(basename "$0")" \
      "$ENVIRONMENT_OF" >&2
    return 1
  fi
  printf '%s\n' "$folder"
}
