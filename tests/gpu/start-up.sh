#!/bin/sh
# start-up.sh TAPEDECK PROGRAM MODULE: a program that asks for no GPU starts with the libraries that
# it has on a machine without one, and neither the driver's library nor the module is opened.  What
# is opened is what the dynamic linker says it initialises.
# SPDX-License-Identifier: MIT
set -u
tapedeck=$1 program=$2 module=$3

n=0 failed=0
claim ()
{
  n=$((n + 1))
  word=ok
  log=$(shift; "$@" 2>&1) || word='not ok' failed=1
  echo "$word $n - $1"
  [ "$word" = ok ] || printf '%s\n' "$log" | head -n 30 | sed 's/^/#   /'
}

root=$(mktemp -d) || exit 1
trap 'rm -rf "$root"' EXIT
# opened NAME MODULE ARGUMENT...: one iteration under `run`; the libraries of all its processes into NAME.
opened ()
{
  name=$1 with=$2
  shift 2
  mkdir "$root/$name"
  env TAPEDECK_DATA= TAPEDECK_CUDA_MODULE="$with" LD_DEBUG=files LD_DEBUG_OUTPUT="$root/$name/log" \
    "$tapedeck" run --quiet --iterations 1 -o "$root/$name.tdtape" "$@" "$program" || return 1
  cat "$root/$name"/log.* | sed -n 's/.*calling init: //p' | sed 's/.*\///' | sort -u >"$root/$name.list"
  [ -s "$root/$name.list" ]
}
names_gpu ()
{
  grep -E "^libcuda\.|^$(basename "$module")\$" "$root/$1.list"
}
cpu_opens_nothing ()
{
  opened cpu "$module" && ! names_gpu cpu
}
gpu_opens_the_module ()
{
  opened gpu "$module" --device cuda:0 && names_gpu gpu
}
absent_is_the_same ()
{
  opened absent "$root/no-such-module.so" && diff "$root/absent.list" "$root/cpu.list"
}
absent_is_said ()
{
  ! text=$(opened said "$root/no-such-module.so" --device cuda:0 2>&1) \
    && printf '%s\n' "$text" | grep 'no GPU for cuda:0: '
}

claim "a program of the CPU opens neither driver nor module" cpu_opens_nothing
claim "one of cuda:0 opens the module" gpu_opens_the_module
claim "without a module the same libraries are opened" absent_is_the_same
claim "without a module --device cuda:0 says why" absent_is_said
echo "1..$n"
[ "$failed" -eq 0 ]
