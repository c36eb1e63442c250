#!/bin/sh
# record.sh TAPEDECK TAPE LEVEL PROGRAM.c [ARGS]: record a program of the lessons. It is done in a
# folder of its own, so that the tape, which is installed, names no place of the build.
# SPDX-License-Identifier: MIT
set -eu

absolute ()
{
  echo "$(cd "$(dirname "$1")" && pwd)/$(basename "$1")"
}

tapedeck=$(absolute "$1")
tape=$(absolute "$2")
level=$3
program=$4
shift 4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp "$program" "$folder"
cd "$folder"
# What a program has to say about itself is for those who open the tape.
if ! "$tapedeck" run -f --quiet --level "$level" -o "$tape" "$(basename "$program")" "$@" 2>"$folder/said"; then
  cat "$folder/said" >&2
  exit 1
fi
