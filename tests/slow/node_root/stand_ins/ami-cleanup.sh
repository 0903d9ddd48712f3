#!/usr/bin/env bash
#
# Replaces ParallelCluster's ami_cleanup.sh in an image build on a throw-away machine: it empties the same folders.
set -euo pipefail

rm -rf /tmp/* /var/tmp/*
find /var/log -type f -delete
