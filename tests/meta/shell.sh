#!/bin/sh
# shell.sh SOURCE-ROOT: every shell script is POSIX by dash, and clean by shellcheck where it is.
# SPDX-License-Identifier: MIT
set -u
cd "$1" || exit 1

n=0 failed=0
for script in dev .ci/run $(find tests -name '*.sh') tests/support/with-display tests/support/under-load; do
  n=$((n + 1))
  word=ok
  log=$(dash -n "$script" 2>&1) || word='not ok' failed=1
  if [ "$word" = ok ] && command -v shellcheck >/dev/null 2>&1; then
    log=$(shellcheck "$script" 2>&1) || word='not ok' failed=1
  fi
  [ -x "$script" ] || { word='not ok' failed=1 log="not executable"; }
  echo "$word $n - $script"
  [ "$word" = ok ] || printf '%s\n' "$log" | sed 's/^/#   /'
done
n=$((n + 1))
if bash -n data/completion/tapedeck; then echo "ok $n - bash completion"; else
  echo "not ok $n - bash completion"
  failed=1
fi
echo "1..$n"
[ "$failed" -eq 0 ]
