#!/bin/sh
# record-ranks.sh TAPEDECK FOLDER RANKS PROGRAM.c [FILES]: record a program of the lessons as so many
# ranks, to FOLDER/PROGRAM-rank-0.tdtape and so on. FILES are what it includes.
# SPDX-License-Identifier: MIT
set -eu

tapedeck=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
to=$(cd "$2" && pwd)
ranks=$3
name=$(basename "$4" .c)
shift 3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp "$@" "$folder"
cd "$folder"
# Ranks on one machine need no network, and containers allow no reading of each other's memory.
export OMPI_MCA_btl=self,vader OMPI_MCA_btl_vader_single_copy_mechanism=none
export OMPI_MCA_plm=isolated OMPI_MCA_plm_rsh_agent=false
# MPI leaves memory behind in libraries that it has closed.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
if ! "$tapedeck" run -f --quiet -n "$ranks" --level stats -o tapes "$name.c" 2>said; then
  cat said >&2
  exit 1
fi
for tape in tapes/rank-*.tdtape; do
  cp "$tape" "$to/$name-$(basename "$tape")"
done
