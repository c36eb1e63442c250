#!/bin/sh
# test-with-display.sh WITH-DISPLAY: it gives a working display, passes the status on and cleans up.
# SPDX-License-Identifier: MIT
set -eu
with_display=$1

command -v Xvfb >/dev/null 2>&1 || { echo "no Xvfb, skipped"; exit 77; }

status=0
# shellcheck disable=SC2016  # expanded by the inner shell
seen=$("$with_display" sh -c 'echo "$DISPLAY $GSK_RENDERER $XDG_RUNTIME_DIR"; exit 7') || status=$?
[ "$status" -eq 7 ] || { echo "status $status of the command is not passed on"; exit 1; }
case $seen in
  :[0-9]*" cairo "/*) ;;
  *) echo "unexpected environment: $seen"; exit 1 ;;
esac
[ ! -e "${seen##* }" ] || { echo "runtime folder is left behind"; exit 1; }
display=${seen%% *}
[ ! -e "/tmp/.X11-unix/X${display#:}" ] || { echo "server $display is left behind"; exit 1; }
if command -v xdotool >/dev/null 2>&1; then
  size=$("$with_display" xdotool getdisplaygeometry)
  [ "$size" = "1440 900" ] || { echo "screen is $size"; exit 1; }
fi
echo "display, status and clean-up: passed"
