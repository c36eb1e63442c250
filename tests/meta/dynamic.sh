#!/bin/sh
# dynamic.sh PROGRAM...: the dynamic section of each names no GTK, Graphviz, GLib, Cairo or Pango,
# so that it starts on a server that has none of them; and tapedeck, which supervises, none of the
# libraries of the engine's mathematics, which start threads before main.
# SPDX-License-Identifier: MIT
set -u

command -v readelf >/dev/null 2>&1 || { echo "no readelf, skipped"; exit 77; }
n=0 failed=0
for program in "$@"; do
  n=$((n + 1))
  needed=$(readelf -d "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | tr '\n' ' ')
  [ -n "$needed" ] || { echo "not ok $n - $program has no dynamic section"; failed=1; continue; }
  bad=$(printf '%s\n' "$needed" | tr ' ' '\n' | grep -E 'gtk|adwaita|gdk|gvc|cgraph|cairo|pango|glib|gobject|gio|cuda')
  case "$program" in
    */tapedeck) bad="$bad$(printf '%s\n' "$needed" | tr ' ' '\n' | grep -E 'blas|dnnl|gomp|libtapedeck')" ;;
  esac
  if [ -n "$bad" ]; then
    echo "not ok $n - $(basename "$program") names $bad"
    failed=1
  else
    echo "ok $n - $(basename "$program") names only $needed"
  fi
done
echo "1..$n"
[ "$n" -gt 0 ] && [ "$failed" -eq 0 ]
