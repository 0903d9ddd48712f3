#!/usr/bin/env bash
# Makes the Python environment, the data and the weights of the gpt2-megatron workload.
source "$(dirname "${BASH_SOURCE[0]}")/../prepare.sh"
