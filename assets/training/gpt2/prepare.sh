#!/usr/bin/env bash
# Makes the Python environment, the weights and the data of the gpt2 workload.
source "$(dirname "${BASH_SOURCE[0]}")/../prepare.sh"
