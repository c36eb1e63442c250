#!/bin/sh
# readme.sh SOURCE-ROOT: the README's model compiles without a warning, is as short as it says, and
# what the README names is there.
# SPDX-License-Identifier: MIT
set -u
cd "$1" || exit 1

n=0 failed=0
claim ()
{
  n=$((n + 1))
  word=ok
  log=$(shift; "$@" 2>&1) || word='not ok' failed=1
  echo "$word $n - $1"
  [ "$word" = ok ] || printf '%s\n' "$log" | head -n 20 | sed 's/^/#   /'
}

dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
awk '/^```c$/ { on = 1; next } /^```$/ { if (on) exit } on' README.md >"$dir/model.c"

short ()
{
  lines=$(grep -c '[^[:space:]]' "$dir/model.c")
  echo "$lines lines"
  [ "$lines" -gt 5 ] && [ "$lines" -le 20 ]
}
named_files_are_there ()
{
  status=0
  for name in $(sed -n 's/.*](\([a-z][a-zA-Z/.-]*\)).*/\1/p' README.md) $(awk '/^## Map/,/^A model/' \
    README.md | sed -n 's/^\([a-z]*\/\) .*/\1/p'); do
    [ -e "$name" ] || { echo "$name is missing"; status=1; }
  done
  return $status
}
dev_knows_its_commands ()
{
  for command in $(grep -o '\./dev [a-z]*' README.md | cut -d' ' -f2 | sort -u) build bench; do
    ./dev help | grep -q "^  $command" || { echo "./dev $command"; return 1; }
  done
}

claim "the first model is at most 20 lines of code" short
claim "the first model compiles without a warning" \
  "${CC:-cc}" -std=gnu11 -Wall -Wextra -Wshadow -Werror -fsyntax-only -Iengine -Iengine/public "$dir/model.c"
claim "files that the README names are there" named_files_are_there
claim "./dev knows the commands that the README names" dev_knows_its_commands
echo "1..$n"
[ "$failed" -eq 0 ]
