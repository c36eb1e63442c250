#!/bin/sh
# run.sh [quick|full] [RESULT.json]: what a machine with a GPU can show of this tree, in one file.
# It needs nvcc, meson, ninja, a C compiler and python3; it goes on after a failure, and writes the
# result as it goes. `full` also runs the gradients of all operations and CUDA's own checker.
# SPDX-License-Identifier: MIT
set -u

what=${1:-quick}
case $what in
  quick | full) ;;
  *)
    echo "usage: run.sh [quick|full] [RESULT.json]" >&2
    exit 2
    ;;
esac
result=${2:-gpu.json}
case $result in
  /*) ;;
  *) result=$PWD/$result ;;
esac
cd "$(dirname "$0")/../.." || exit 2
root=$PWD
build=$root/.build/gpu
failed=0

# note KEY [VALUE]: put a text (or what is on standard input) into the result.
note ()
{
  if [ $# -gt 1 ]; then printf '%s' "$2"; else cat; fi | python3 -c '
import json, os, sys
path, key = sys.argv[1:]
try:
    with open(path, encoding="utf-8") as f:
        result = json.load(f)
except (OSError, ValueError):
    result = {}
result[key] = sys.stdin.read().strip()[-4000:]
with open(path + ".new", "w", encoding="utf-8") as f:
    json.dump(result, f, indent=1, sort_keys=True)
os.replace(path + ".new", path)
' "$result" "$1"
}

# step KEY COMMAND...: run it, keep the end of what it says, its status and its time.
step ()
{
  key=$1
  shift
  begin=$(date +%s)
  "$@" >"$build-$key.log" 2>&1
  status=$?
  tail -c 4000 "$build-$key.log" | note "$key"
  note "$key.status" "$status"
  note "$key.seconds" "$(($(date +%s) - begin))"
  if [ $status -eq 0 ]; then
    echo "ok      $key"
  else
    echo "FAILED  $key ($status)"
    failed=$((failed + 1))
  fi
  return $status
}

# Where pip put NVIDIA's packages; nothing where the toolkit is installed as usual.
pip_prefix ()
{
  python3 -c '
import importlib.util
spec = importlib.util.find_spec("nvidia")
places = list(spec.submodule_search_locations) if spec else []
print(places[0] if places else "")
' 2>/dev/null
}

mkdir -p .build
rm -f "$result"
note what "$what"
note date "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
note commit "$(git rev-parse HEAD 2>/dev/null || echo unknown)"
note changed "$(git status --porcelain --untracked-files=no 2>/dev/null | head -20)"

# 0. Facts.
step gpu nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm,clocks.mem --format=csv
step nvcc nvcc --version

# 1. Build: the engine, the module, the rows of operations; no GTK, no OpenBLAS, no CMocka.
prefix=
if [ ! -e /usr/local/cuda/include/cudnn_graph.h ]; then prefix=$(pip_prefix); fi
note gpu_prefix "$prefix"
if [ ! -f "$build/build.ninja" ]; then
  step setup meson setup "$build" . -Dbuildtype=release -Dui=disabled -Dviz=disabled -Dmpi=disabled \
    -Donednn=disabled -Dblas=reference -Dcuda=enabled ${prefix:+"-Dgpu_prefix=$prefix"}
fi
step build ninja -C "$build" gpu/tapedeck-cuda.so app/tapedeck tests/gpu/bare/bare-op-cases \
  tests/gpu/bare/bare-runner

# 2. Does the module see a GPU?  Without one, the rest says nothing about it.
step backends "$build/app/tapedeck" --version
step runner "$build/tests/gpu/bare/bare-runner"
if ! grep -q 'cuda:0' "$build-backends.log"; then
  note skipped "no GPU: $(grep backends "$build-backends.log")"
  echo "no GPU here; the rest is skipped"
  exit 77
fi

# 3. Numbers: every operation on cuda:0 beside float64, both allocators.
cases=$build/tests/gpu/bare/bare-op-cases
step numbers env TAPEDECK_DEVICE=cuda:0 timeout 300 "$cases" '*__agrees_*'
step numbers-malloc env TAPEDECK_DEVICE=cuda:0 TAPEDECK_CUDA_ALLOCATOR=cuda_malloc \
  timeout 300 "$cases" '*__agrees_*'

if [ "$what" = full ]; then
  # 4. Gradients by differences, first and second.
  step gradients env TAPEDECK_DEVICE=cuda:0 timeout 400 "$cases" '*gradient*'
  # 5. Errors and poison on the device.
  step errors env TAPEDECK_DEVICE=cuda:0 timeout 100 "$cases" '*poison*'
  # 6. CUDA's checker, where it works.
  if command -v compute-sanitizer >/dev/null 2>&1; then
    step memcheck env TAPEDECK_DEVICE=cuda:0 timeout 120 compute-sanitizer --tool memcheck \
      --error-exitcode 9 "$cases" 'relu*__agrees_*'
  else
    note memcheck "skipped: no compute-sanitizer"
  fi
fi

note failed "$failed"
echo "$failed failed; $result"
[ "$failed" -eq 0 ]
