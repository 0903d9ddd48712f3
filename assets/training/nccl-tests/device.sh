#!/usr/bin/env bash
# Kind of the devices between which an all-reduce test measures, for preparing, starting and judging.
#
# Sourced by: prepare.sh and train.sh, as the user. Defines a function and does nothing by itself.
# Reads: DEVICE (cuda or gpu, cpu; default: the family's ACCELERATOR_KIND).

# measured_device: prints gpu, cpu or neuron; returns 1 after a line on another word.
measured_device() {
  case ${DEVICE:-$ACCELERATOR_KIND} in
    # cuda in other workloads, gpu in the family's file.
    cuda | gpu) printf 'gpu\n' ;;
    cpu | none) printf 'cpu\n' ;;
    neuron) printf 'neuron\n' ;;
    *)
      printf '%s: DEVICE is "%s"; allowed: cuda, cpu.\n' "$(basename "$0")" "${DEVICE:-$ACCELERATOR_KIND}" >&2
      return 1
      ;;
  esac
}
