#!/usr/bin/env bash
# Makes the Python environment and the data of the roberta workload.
source "$(dirname "${BASH_SOURCE[0]}")/../prepare.sh"
