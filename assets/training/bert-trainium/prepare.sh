#!/usr/bin/env bash
# Makes the Python environment and the data of the bert-trainium workload.
# shellcheck disable=SC2034  # for prepare.sh
readonly settings_need_no_package=yes
source "$(dirname "${BASH_SOURCE[0]}")/../prepare.sh"
