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
# It is meant for a machine that may go at any time: steps are in the order of what they are worth, each
# is printed and kept when it is done, and one that could not end in time is not begun (status 75).
#
#   TD_GPU_SECONDS  no step is begun that is expected to end later than this (570)
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
limit=${TD_GPU_SECONDS:-570}
begun=$(date +%s)

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

# step KEY SECONDS COMMAND...: run it, keep the end of what it says, its status, its time and its rows.
# What is not there (77) is no failure.  It is not begun where the time left is less than it is
# expected to take: then the same command, called again, goes on there.
step ()
{
  key=$1
  expected=$2
  shift 2
  if grep -Eq "\"$key.status\": \"(0|77)\"" "$result"; then
    echo "kept    $key"
    return 0
  fi
  begin=$(date +%s)
  if [ $((begin - begun + expected)) -gt "$limit" ]; then
    echo "no time $key ($expected s expected); call run.sh again to go on"
    exit 75
  fi
  "$@" >"$logs/$key.log" 2>&1
  status=$?
  seconds=$(($(date +%s) - begin))
  conclude step "$key" "$status" "$seconds" "$expected" "$logs/$key.log" "${suffix:-}"
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
note limit_seconds "$limit"
note date "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
note commit "$commit"
note tree "$tree"
note changed "$(git status --porcelain --untracked-files=no 2>/dev/null | head -20)"

# 0. Facts.
prefix=
if [ ! -e /usr/local/cuda/include/cudnn_graph.h ]; then prefix=$(pip_prefix); fi
note gpu_prefix "$prefix"
if [ -z "${TAPEDECK_CUDA_MODULE:-}" ]; then
  step gpu 2 nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm,clocks.mem --format=csv
fi
step nvcc 1 nvcc --version
step machine 2 python3 tests/gpu/result.py facts "$result"

# 1. Build: the engine, the module, the programs of this run; no GTK, no OpenBLAS, no CMocka.
if [ ! -f "$build/build.ninja" ]; then
  step setup 15 meson setup "$build" . -Dbuildtype=release -Dui=disabled -Dviz=disabled -Dmpi=disabled \
    -Donednn=disabled -Dblas=reference -Dcuda=enabled ${prefix:+"-Dgpu_prefix=$prefix"}
fi
if [ -z "${TAPEDECK_CUDA_MODULE:-}" ]; then
  step build 110 ninja -C "$build" gpu/tapedeck-cuda.so app/tapedeck gpu-run
else
  step build 1 ninja -C "$build" app/tapedeck gpu-run
fi
bare=$build/tests/gpu/bare
tapedeck=$build/app/tapedeck

# 2. Does the module see a GPU?  Without one, the rest says nothing about it.
step backends 5 "$tapedeck" --version
if ! grep -q 'cuda:0' "$logs/backends.log"; then
  note skipped "no GPU: $(grep backends "$logs/backends.log")"
  echo "no GPU here; the rest is skipped"
  exit 77
fi
small=
cpu=
driver="bare-driver"
iterations=0
models=
recorded="mlp mlp_small lenet lstm"
nets="resnet50.bf16 gpt2.bf16 resnet50.tf32 gpt2.tf32 resnet50.bf16.static gpt2.bf16.static
  resnet50.tf32.static gpt2.tf32.static"
small_net=
gradients="*gradient*"
timed="mlp_small lenet"
if grep -q 'cuda:0 (Fake' "$logs/backends.log"; then
  note fake "the driver of the tests: this shows nothing of a GPU"
  small="--small --seconds 0.01"
  cpu=--cpu
  driver="bare-driver-fake"
  iterations=3
  models="mlp mlp.static mlp_small mlp_small.static"
  recorded=mlp_small
  small_net=gpt2
  nets="gpt2.tf32 gpt2.tf32.static resnet50.tf32"
  timed=mlp_small
  gradients="s*gradient*" # the others are a test of their own
fi
# Plans and kernels that the run makes, to be looked at; a run that goes on finds them again.
on_gpu="env TAPEDECK_DEVICE=cuda:0 TAPEDECK_ON_ERROR=continue TAPEDECK_CUDA_CACHE=$logs/cache"
mkdir -p "$logs/cache"
torch="$python tests/gpu/bare/cross.py"

# Steps are in the order of what they are worth, should the machine go.
# 3. Numbers: every operation on cuda:0 beside float64.
cases=$bare/bare-op-cases
step numbers 60 $on_gpu timeout 200 "$cases" '*__agrees_*'

# 4. Ceilings: the driver by itself.  The table of kernels and products; the same rows by PyTorch.
step driver 15 timeout 60 "$bare/$driver" $small
step times 40 $on_gpu timeout 240 "$bare/bare-times" $small
step torch-times 40 timeout 180 $torch times $small $cpu

# 5. Updates that leave memory flat; static schedules, as CUDA graphs, beside define-by-run.
step trainings 60 $on_gpu timeout 200 "$bare/bare-trainings" $small $models
step torch-trainings 20 timeout 100 $torch trainings $small $cpu

# 6. Models of size, and the convolutions that one is made of.
# A process each, for the highest use of memory is a process's.
for net in $nets; do
  step "model-$net" 12 $on_gpu timeout 90 "$bare/bare-models" $small "$net"
done
step torch-models 60 timeout 200 $torch models $small_net $small $cpu
step convs 40 $on_gpu timeout 120 "$bare/bare-convs" $small
step ends 20 $on_gpu timeout 120 "$bare/bare-ends" $small
step torch-convs 40 timeout 120 $torch convs "$result" $small $cpu
step plans 1 python3 tests/gpu/result.py plans "$result" "$logs/cache"

# 7. Memory: counters, running out by the limit and in earnest.
step memory 15 $on_gpu ${small:+FAKE_CUDA=megabytes=400} timeout 60 "$bare/bare-memory"

# 8. A NaN in each kind of operation; values beside PyTorch's.
step nan 40 python3 tests/gpu/result.py nan "$result" "$tapedeck" "$bare/bare-nan"
mkdir -p "$logs/values"
step values 5 $on_gpu timeout 60 "$bare/bare-torch" "$logs/values" \
  && step torch-values 10 timeout 60 $torch values "$logs/values" $cpu

# 9. NCCL with one rank; two processes that share the GPU.
nccl=$(find "${prefix:-/usr/lib}" /usr/lib /usr/local/cuda -name 'libnccl.so.2' 2>/dev/null | head -n 1)
step nccl 10 timeout 60 "$bare/bare-nccl${small:+-fake}" "${nccl:-libnccl.so.2}" ${small:+--small}
step shared 10 $on_gpu timeout 60 "$bare/bare-shared"

# 10. An example on both devices, recorded: its tape is to come back.
step example 20 timeout 60 python3 tests/gpu/result.py examples "$result" "$tapedeck" "$bare/bare-" "$tapes" 4 mlp
step lesson 5 "$tapedeck" run --quiet -f --device cuda:0 --iterations 3 -o "$tapes/lesson.tdtape" "$bare/bare-mlp"

# 11. Recording: what a level costs, and that weights do not know of it.  `health` is what a breakpoint
# on NaN wants.
# `plain` is the same without a recording, in the same minute.
levels="plain graph"
if [ "$what" = full ]; then levels="plain graph health stats values"; fi
for level in $levels; do
  suffix=@$level
  tape=$tapes/$level.tdtape
  case $level in
    plain) record= ;;
    health) record="$tapedeck run --quiet -f --device cuda:0 --level graph --break nan -o $tape" ;;
    *) record="$tapedeck run --quiet -f --device cuda:0 --level $level -o $tape" ;;
  esac
  step "recorded-$level" 20 ${record:-$on_gpu} "$bare/bare-trainings" --seconds 1 --flat 100 $small $recorded
  if [ "$what" = full ] && [ "$level" != values ] && [ -z "$small" ]; then
    step "recorded-models-$level" 30 ${record:-$on_gpu} "$bare/bare-models" 'resnet50.bf16' 'gpt2.bf16'
  fi
  rm -f "$tape" # thousands of updates: the examples' tapes are those to keep
done
suffix=
if [ "$what" = full ]; then
  # What operations are timed by, and what that costs.
  step clocks 30 timeout 120 ${small:+env FAKE_CUPTI=1} python3 tests/gpu/result.py times "$result" "$tapedeck" \
    "$bare/bare-trainings" $small --flat 20 $timed

  # 12. Examples to their ends on both devices; memory by cuda_malloc; gradients by differences, first and
  # second; errors and poison on the device.
  step examples 240 timeout 540 python3 tests/gpu/result.py examples "$result" "$tapedeck" "$bare/bare-" "$tapes" "$iterations" \
    mlp lenet char_lstm mnist_trainer seq2seq recursive transformer gan vae static_mlp
  step numbers-malloc 60 $on_gpu TAPEDECK_CUDA_ALLOCATOR=cuda_malloc timeout 200 "$cases" '*__agrees_*'
  step gradients 120 $on_gpu timeout 400 "$cases" "$gradients"
  step errors 20 $on_gpu timeout 100 "$cases" '*poison*'
  # 13. CUDA's checkers, where they work.
  for tool in memcheck racecheck; do
    if [ -z "$small" ] && command -v compute-sanitizer >/dev/null 2>&1; then
      step $tool 120 $on_gpu timeout 120 compute-sanitizer --tool $tool --error-exitcode 9 "$cases" 's*__agrees_in_float'
    else
      note $tool "skipped: no compute-sanitizer"
    fi
  done
fi

note failed "$failed"
conclude finish
if [ -n "${TD_GPU_COPY:-}" ]; then cp "$result" "$tapes/lesson.tdtape" "$TD_GPU_COPY"; fi
echo "$failed steps failed; $result"
[ "$failed" -eq 0 ]
