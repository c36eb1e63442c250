#!/bin/sh
# run.sh [quick|full] [RESULT.json]: what a machine with a GPU can show of this tree, in one file.
#
# It needs nvcc, meson, ninja, a C compiler and python3 (PyTorch and NCCL where they are); it goes on
# after a failure, and writes the result as it goes: steps with their ends and times, rows of numbers,
# and `claims`, what was put to the test and whether it held.  Tapes lie beside the result,
# in RESULT.tapes.  `full` also runs gradients, the examples to their ends, recording at every level and
# CUDA's checkers.  Where the driver is the fake one of the tests, sizes are small, and the result says
# "fake": it shows that the steps run, and nothing of a GPU.
#
# A run that was cut off goes on at the step where it was, when it is called again with the same words and
# the same files: `full` may take two commands of ten minutes.
#
#   TD_GPU_BUILD    a build folder to use as it is, instead of .build/gpu
#   TD_GPU_PYTHON   the python3 that has PyTorch
#   TD_GPU_COPY     a folder that gets a copy of the result after each step, of the tapes at the end
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2086  # $on_gpu, $small, $cpu: several words or none
set -u

what=${1:-quick}
case $what in
  quick | full) ;;
  *)
    echo "usage: run.sh [quick|full] [RESULT.json]" >&2
    exit 2
    ;;
esac
result=${2:-}
case $result in
  '' | /*) ;;
  *) result=$PWD/$result ;;
esac
cd "$(dirname "$0")/../.." || exit 2
result=${result:-$PWD/.build/gpu.json}
build=${TD_GPU_BUILD:-$PWD/.build/gpu}
logs=${result%.json}.logs
tapes=${result%.json}.tapes
python=${TD_GPU_PYTHON:-python3}
failed=0

# conclude COMMAND ARG...: what result.py does with the result.
conclude ()
{
  command=$1
  shift
  python3 tests/gpu/result.py "$command" "$result" "$@"
}

# note KEY [VALUE]: put a text (or what is on standard input) into the result.
note ()
{
  if [ $# -gt 1 ]; then printf '%s' "$2"; else cat; fi | conclude set "$1"
}

# step KEY COMMAND...: run it, keep the end of what it says, its status, its time and its rows.  What is
# not there (77) is no failure.
step ()
{
  key=$1
  shift
  if grep -Eq "\"$key.status\": \"(0|77)\"" "$result"; then
    echo "kept    $key"
    return 0
  fi
  begin=$(date +%s)
  "$@" >"$logs/$key.log" 2>&1
  status=$?
  seconds=$(($(date +%s) - begin))
  tail -c 2000 "$logs/$key.log" | note "$key"
  note "$key.status" "$status"
  note "$key.seconds" "$seconds"
  conclude rows "$logs/$key.log" "${suffix:-}"
  if [ -n "${TD_GPU_COPY:-}" ]; then cp "$result" "$TD_GPU_COPY"; fi
  case $status in
    0) echo "ok      $key (${seconds} s)" ;;
    77) echo "skipped $key: $(tail -n 1 "$logs/$key.log")" ;;
    *)
      echo "FAILED  $key ($status, $seconds s)"
      failed=$((failed + 1))
      ;;
  esac
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

mkdir -p .build "$logs" "$tapes"
commit=$(git rev-parse HEAD 2>/dev/null || echo unknown)
# What was built, also where there is no git.
tree=$(find engine gpu tests/gpu data/examples -type f ! -name '*.pyc' | LC_ALL=C sort | xargs sha256sum | sha256sum | cut -c1-16)
if conclude unfinished "$what" "$tree"; then echo "going on with $result"; else rm -f "$result"; fi
note what "$what"
note date "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
note commit "$commit"
note tree "$tree"
note changed "$(git status --porcelain --untracked-files=no 2>/dev/null | head -20)"

# 0. Facts.
prefix=
if [ ! -e /usr/local/cuda/include/cudnn_graph.h ]; then prefix=$(pip_prefix); fi
note gpu_prefix "$prefix"
if [ -z "${TAPEDECK_CUDA_MODULE:-}" ]; then
  step gpu nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm,clocks.mem --format=csv
fi
step nvcc nvcc --version

# 1. Build: the engine, the module, the programs of this run; no GTK, no OpenBLAS, no CMocka.
if [ ! -f "$build/build.ninja" ]; then
  step setup meson setup "$build" . -Dbuildtype=release -Dui=disabled -Dviz=disabled -Dmpi=disabled \
    -Donednn=disabled -Dblas=reference -Dcuda=enabled ${prefix:+"-Dgpu_prefix=$prefix"}
fi
if [ -z "${TAPEDECK_CUDA_MODULE:-}" ]; then
  step build ninja -C "$build" gpu/tapedeck-cuda.so app/tapedeck gpu-run
else
  step build ninja -C "$build" app/tapedeck gpu-run
fi
bare=$build/tests/gpu/bare
tapedeck=$build/app/tapedeck

# 2. Does the module see a GPU?  Without one, the rest says nothing about it.
step backends "$tapedeck" --version
if ! grep -q 'cuda:0' "$logs/backends.log"; then
  note skipped "no GPU: $(grep backends "$logs/backends.log")"
  echo "no GPU here; the rest is skipped"
  exit 77
fi
small=
iterations=0
models=
recorded="mlp mlp_small lenet lstm"
if grep -q 'cuda:0 (Fake' "$logs/backends.log"; then
  note fake "the driver of the tests: this shows nothing of a GPU"
  small="--small --seconds 0.01"
  iterations=3
  models="mlp mlp.static mlp_small mlp_small.static"
  recorded=mlp_small
fi
on_gpu="env TAPEDECK_DEVICE=cuda:0 TAPEDECK_ON_ERROR=continue"

# 3. Numbers: every operation on cuda:0 beside float64, both allocators.
cases=$bare/bare-op-cases
step numbers $on_gpu timeout 200 "$cases" '*__agrees_*'
step numbers-malloc $on_gpu TAPEDECK_CUDA_ALLOCATOR=cuda_malloc timeout 200 "$cases" '*__agrees_*'

# 4. Ceilings and the table of kernels; the same rows by PyTorch.
step times $on_gpu timeout 240 "$bare/bare-times" $small
cpu=
if [ -n "$small" ]; then cpu=--cpu; fi
step torch-times timeout 180 "$python" tests/gpu/bare/cross.py times $small $cpu

# 5. Values beside PyTorch's.
mkdir -p "$logs/values"
step values $on_gpu timeout 60 "$bare/bare-torch" "$logs/values" \
  && step torch-values timeout 60 "$python" tests/gpu/bare/cross.py values "$logs/values" $cpu

# 6. Memory: counters, running out by the limit and in earnest; updates that leave it flat; static
# schedules beside define-by-run.
step memory $on_gpu ${small:+FAKE_CUDA=megabytes=400} timeout 60 "$bare/bare-memory"
step trainings $on_gpu timeout 200 "$bare/bare-trainings" $small $models

# 7. A NaN in each kind of operation; NCCL with one rank.
step nan python3 tests/gpu/result.py nan "$result" "$tapedeck" "$bare/bare-nan"
nccl=$(find "${prefix:-/usr/lib}" /usr/lib /usr/local/cuda -name 'libnccl.so.2' 2>/dev/null | head -n 1)
if [ -n "$small" ]; then nccl=none-for-a-fake; fi
step nccl $on_gpu timeout 60 "$bare/bare-nccl" ${nccl:+"$nccl"}

# 8. Recording: what a level costs, and that weights do not know of it.  `health` is what a breakpoint
# on NaN wants.
levels=graph
if [ "$what" = full ]; then levels="graph health stats values"; fi
for level in $levels; do
  suffix=@$level
  case $level in
    health) options="--level graph --break nan" ;;
    *) options="--level $level" ;;
  esac
  step "recorded-$level" timeout 150 "$tapedeck" run --quiet --device cuda:0 $options -o "$tapes/$level.tdtape" \
    "$bare/bare-trainings" --flat 100 $small $recorded
  rm -f "$tapes/$level.tdtape" # thousands of updates: the examples' tapes are those to keep
done
suffix=

# 9. Examples on both devices, recorded.
names=mlp
if [ "$what" = full ] || [ -n "$small" ]; then
  names="mlp lenet char_lstm mnist_trainer seq2seq recursive transformer gan vae static_mlp"
fi
step examples timeout 540 python3 tests/gpu/result.py examples "$result" "$tapedeck" "$bare/bare-" "$tapes" "$iterations" $names

if [ "$what" = full ]; then
  # 10. Gradients by differences, first and second; errors and poison on the device.
  step gradients $on_gpu timeout 400 "$cases" '*gradient*'
  step errors $on_gpu timeout 100 "$cases" '*poison*'
  # 11. CUDA's checkers, where they work.
  for tool in memcheck racecheck; do
    if [ -z "$small" ] && command -v compute-sanitizer >/dev/null 2>&1; then
      step $tool $on_gpu timeout 120 compute-sanitizer --tool $tool --error-exitcode 9 "$cases" 's*__agrees_in_float'
    else
      note $tool "skipped: no compute-sanitizer"
    fi
  done
fi

note failed "$failed"
conclude finish
if [ -n "${TD_GPU_COPY:-}" ]; then cp "$result" "$tapes/mlp-cuda0.tdtape" "$TD_GPU_COPY"; fi
echo "$failed steps failed; $result"
[ "$failed" -eq 0 ]
