#!/bin/sh
# headers.sh HEADER...: each public header compiles alone as C11 and as C++17, with gcc and clang.
# HEADER_FLAGS: what they need besides.
# SPDX-License-Identifier: MIT
set -u

n=0 failed=0
claim ()
{
  n=$((n + 1))
  word=ok
  log=$(shift; "$@" 2>&1) || word='not ok' failed=1
  echo "$word $n - $1"
  [ "$word" = ok ] || printf '%s\n' "$log" | head -n 20
}

dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
warn="-Wall -Wextra -Wshadow -pedantic -Werror -fsyntax-only ${HEADER_FLAGS-}"
# Installed they lie in one folder.
for header in "$@"; do
  folder=-I$(dirname "$header")
  case " $warn " in *" $folder "*) ;; *) warn="$warn $folder" ;; esac
done
for header in "$@"; do
  name=$(basename "$header")
  printf '#include "%s"\nint td_header_test;\n' "$header" | tee "$dir/a.c" >"$dir/a.cc"
  for cc in gcc clang; do
    command -v "$cc" >/dev/null 2>&1 || continue
    # shellcheck disable=SC2086
    claim "$name alone as C11 with $cc" "$cc" -std=c11 $warn "$dir/a.c"
  done
  for cxx in g++ clang++; do
    command -v "$cxx" >/dev/null 2>&1 || continue
    # shellcheck disable=SC2086
    claim "$name alone as C++17 with $cxx" "$cxx" -std=c++17 $warn "$dir/a.cc"
  done
done
echo "1..$n"
[ "$n" -gt 0 ] && [ "$failed" -eq 0 ]
