#!/usr/bin/env bash
# A clock for waits, without a process.
#
# Sourced by: nodes.sh, launch.sh. Only defines a function.

# clock: sets `now` to the hundredths of a second since this machine's start. bash's SECONDS follows the wall clock, of which
# a step would end a wait, or lengthen it by hours.
clock() {
  read -r now _ </proc/uptime
  now="${now/./}"
}
