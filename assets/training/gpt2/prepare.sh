#!/usr/bin/env bash
# Makes the Python environment, the weights and the data of the gpt2 workload.
# shellcheck source=assets/training/prepare.sh
source "$(dirname "${BASH_SOURCE[0]}")/../prepare.sh"
