#!/bin/sh
# run.sh [quick|full] [RESULT.json]: what a machine with a GPU can show of this tree, in one file.
#
# It needs nvcc, meson, ninja, a C compiler and python3 (PyTorch and NCCL where they are); it goes on
# after a failure, and writes the result as it goes: steps with their ends and times, rows of numbers,
# and `claims`, what was put to the test and whether it held.  Tapes lie beside the result,
# in RESULT.tapes, and the ends of what failing steps said in RESULT.failed.log.  `quick` is what the
# machine has, the build, every operation beside float64 and the driver by itself: four minutes.  `full`
# goes on with times, models, memory, gradients, the examples to their ends, recording at every level and
# CUDA's checkers.  Where the driver is the fake one of the tests, sizes are small, and the result says
# "fake": it shows that the steps run, and nothing of a GPU.
#
# A run that was cut off goes on with the steps that are left, when it is called again with the same words
# and the same files: `full` may take two or three commands of ten minutes.
#
# It is meant for a machine that may go at any time: steps are in the order of what they are worth, each
# is printed and kept when it is done, and one that could not end in time is not begun; shorter ones after
# it are (status 75, and `left` says which are).  What has failed is not tried again in a run that goes on.
#
#   TD_GPU_SECONDS  no step is begun that is expected to end later than this (570)
#   TD_GPU_COMMIT   what is run, where there is no git
#   TD_GPU_ONLY     names of steps: of those after the build, only these
#   TD_GPU_BUILD    a build folder to use as it is, instead of .build/gpu
#   TD_GPU_BUILT    any text: what is in that folder was built elsewhere, from these sources
#   TD_GPU_PYTHON   the python3 that has PyTorch
#   TD_GPU_COPY     a folder that gets a copy of the result and of RESULT.failed.log after each step, of one
#                   tape at the end: three files
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2086  # $on_gpu, $parts, $small, $cpu: several words or none
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
failures=${result%.json}.failed.log
python=${TD_GPU_PYTHON:-python3}
failed=0
left=
waiting=
only=
keeps_failed=
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

# Of a step that has failed, or did not come to its end: more than the result has room for.
keep_failure ()
{
  {
    echo "== $key, status $status after $seconds s: $1"
    tail -c 100000 "$logs/$key.log"
    if [ "$key" = setup ]; then tail -c 50000 "$build/meson-logs/meson-log.txt"; fi
  } >>"$failures" 2>/dev/null
}

# begins KEY SECONDS: whether the step is to begin.  It is not where the time left is less than it is
# expected to take, and has to end before the command does: then the same command, called again, goes on.
begins ()
{
  case " ${only:-$1} " in
    *" $1 "*) ;;
    *) return 2 ;;
  esac
  if [ -z "$only" ] && grep -Eq "\"$1.status\": \"(0|77)\"" "$result"; then
    echo "kept    $1"
    return 2
  fi
  if [ -n "$keeps_failed" ] && [ -z "$only" ] && grep -q "\"$1.status\": " "$result" \
    && ! grep -Eq "\"$1.status\": \"(124|137|143)\"" "$result"; then
    echo "kept    $1, which has FAILED"
    failed=$((failed + 1))
    return 1
  fi
  begin=$(date +%s)
  if [ $((begin - begun + $2)) -gt "$limit" ]; then
    echo "no time $1 ($2 s expected); call run.sh again to go on"
    left="$left $1"
    return 75
  fi
  # One that hangs leaves the others their time.
  most=$((5 * $2 + 30))
  if [ $most -gt $((limit + 20 - begin + begun)) ]; then most=$((limit + 20 - begin + begun)); fi
}

# What is not there (77) is no failure.
has_ended ()
{
  case $status in
    0 | 77) ;;
    *) keep_failure "$1" ;;
  esac
  conclude step "$key" "$status" "$seconds" "$expected" "$logs/$key.log" "${suffix:-}"
  copy_result
  case $status in
    0) echo "ok      $key (${seconds} s)" ;;
    77) echo "skipped $key: $(tail -n 1 "$logs/$key.log")" ;;
    *)
      echo "FAILED  $key ($status, $seconds s)"
      failed=$((failed + 1))
      ;;
  esac
  return "$status"
}

# step KEY SECONDS COMMAND...: run it, keep the end of what it says, its status, its time and its rows.
step ()
{
  key=$1
  expected=$2
  shift 2
  begins "$key" "$expected"
  case $? in
    0) ;;
    2) return 0 ;;
    *) return 1 ;;
  esac
  timeout -k 5 $most "$@" >"$logs/$key.log" 2>&1
  status=$?
  seconds=$(($(date +%s) - begin))
  has_ended "$*"
}

# beside KEY SECONDS COMMAND...: a step that measures nothing runs beside others, until all_end.
beside ()
{
  begins "$1" "$2" || return 0
  (
    key=$1
    shift 2
    timeout -k 5 $most "$@" >"$logs/$key.log" 2>&1
    echo "$? $(($(date +%s) - begin)) $*" >"$logs/$key.end"
  ) &
  waiting="$waiting $1:$2"
}

all_end ()
{
  wait
  for each in $waiting; do
    key=${each%:*}
    expected=${each#*:}
    read -r status seconds command <"$logs/$key.end"
    has_ended "$command"
  done
  waiting=
}

copy_result ()
{
  if [ -z "${TD_GPU_COPY:-}" ]; then return; fi
  cp "$result" "$TD_GPU_COPY"
  if [ -s "$failures" ]; then cp "$failures" "$TD_GPU_COPY"; fi
}

# Where pip put NVIDIA's packages.
pip_prefix ()
{
  "$python" -c '
import importlib.util
spec = importlib.util.find_spec("nvidia")
places = list(spec.submodule_search_locations) if spec else []
print(places[0] if places else "")
' 2>/dev/null
}

# The PyTorch's own meson and ninja, the compiler of the toolkit: also where nobody made them known.
case $python in */*) PATH=$PATH:$(dirname "$python") ;; esac
pip=$(pip_prefix)
for folder in /usr/local/cuda/bin "$pip/cu13/bin" "$pip/cuda_nvcc/bin"; do
  if ! command -v nvcc >/dev/null 2>&1 && [ -x "$folder/nvcc" ]; then PATH=$PATH:$folder; fi
done

mkdir -p .build "$logs" "$tapes" ${TD_GPU_COPY:+"$TD_GPU_COPY"}
commit=${TD_GPU_COMMIT:-$(git rev-parse HEAD 2>/dev/null || echo unknown)}
# What was built, also where there is no git.
tree=$(find engine gpu tests/gpu data/examples -type f ! -name '*.pyc' | LC_ALL=C sort | xargs sha256sum | sha256sum | cut -c1-16)
if conclude unfinished "$what" "$tree" ${TD_GPU_ONLY:+finished}; then
  echo "going on with $result"
  goes_on=yes
else
  rm -f "$result" "$failures"
  goes_on=
fi
note what "$what"
note limit_seconds "$limit"
note date "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
note commit "$commit"
note tree "$tree"
note changed "$(git status --porcelain --untracked-files=no 2>/dev/null | head -20)"

# 0. Facts.
prefix=
if [ ! -e /usr/local/cuda/include/cudnn_graph.h ]; then prefix=$pip; fi
note gpu_prefix "$prefix"
if [ -z "${TAPEDECK_CUDA_MODULE:-}" ]; then
  step gpu 2 nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm,clocks.mem --format=csv
fi
step nvcc 1 nvcc --version
step machine 2 "$python" tests/gpu/result.py facts "$result"

# Ranks want Open MPI where there are several GPUs.
ranks=disabled
if command -v mpicc >/dev/null 2>&1; then ranks=auto; fi
# 1. Build: the engine, the module, the programs of this run; no GTK, no OpenBLAS, no CMocka.
if [ -n "${TD_GPU_BUILT:-}" ]; then
  note built elsewhere
  # It was told of the other machine's folders.
  for folder in ${pip:+"$pip"/*/lib} /usr/local/nvidia/lib64; do
    LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder
  done
  export LD_LIBRARY_PATH
else
  if [ ! -f "$build/build.ninja" ]; then
    step setup 15 meson setup "$build" . -Dbuildtype=release -Dui=disabled -Dviz=disabled -Dmpi="$ranks" \
      -Donednn=disabled -Dblas=reference -Dcuda=enabled ${prefix:+"-Dgpu_prefix=$prefix"}
  fi
  if [ -z "${TAPEDECK_CUDA_MODULE:-}" ]; then
    step build 110 ninja -k 0 -C "$build" gpu/tapedeck-cuda.so app/tapedeck gpu-run
  else
    step build 1 ninja -k 0 -C "$build" app/tapedeck gpu-run
  fi
fi
bare=$build/tests/gpu/bare
tapedeck=$build/app/tapedeck
mpi=$build/engine/ranks/mpi/tapedeck-mpi.so
# Programs that have the engine within them look beside themselves, where no module is.
export TAPEDECK_CUDA_MODULE="${TAPEDECK_CUDA_MODULE:-$build/gpu/tapedeck-cuda.so}"

# 2. Does the module see a GPU?  Without one, the rest says nothing about it.
step backends 5 "$tapedeck" --version
if [ -n "$left" ]; then
  copy_result
  echo "left for the next command:$left and all after"
  exit 75
fi
if ! grep -q 'cuda:0' "$logs/backends.log"; then
  cat "$logs/backends.log"
  copy_result
  # Where the build failed, that is what the log is of; the next command begins with it.
  if [ $failed -gt 0 ]; then exit 1; fi
  note skipped "no GPU: $(grep backends "$logs/backends.log")"
  echo "no GPU here; the rest is skipped"
  exit 77
fi
keeps_failed=$goes_on
only=${TD_GPU_ONLY:-}
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
parts="tests/gpu/parts 4"
life="l01-resnet18:iterations=5 l03-gpt:iterations=5 l04-char-lstm:iterations=5
  l05-seq2seq:iterations=5 l06-tree-lstm:iterations=5 l07-dcgan:iterations=5 l08-unet:iterations=5 l09-dqn:iterations=20
  l10-sigmoids:iterations=5 l11-experts:iterations=5 l12-many-operations:iterations=1 l13-many-iterations:iterations=200
  l14-double-backward:iterations=5 l15-vae-trainer"
timed="mlp_small lenet"
if grep -q 'cuda:0 (Fake' "$logs/backends.log"; then
  note fake "the driver of the tests: this shows nothing of a GPU"
  small="--small --seconds 0.01"
  cpu=--cpu
  driver="bare-driver-fake"
  iterations=3
  models="mlp mlp.static mlp_small mlp_small.static"
  recorded=mlp_small
  parts="tests/gpu/parts 2"
  life="l06-tree-lstm:iterations=2 l14-double-backward:iterations=2"
  small_net=gpt2
  nets="gpt2.bf16 gpt2.bf16.static gpt2.tf32 gpt2.tf32.static resnet50.bf16 resnet50.tf32"
  timed=mlp_small
  gradients="s*gradient*" # the others are a test of their own
fi
# Plans and kernels that the run makes, to be looked at; a run that goes on finds them again.
on_gpu="env TAPEDECK_DEVICE=cuda:0 TAPEDECK_ON_ERROR=continue TAPEDECK_CUDA_CACHE=$logs/cache
  TAPEDECK_CUDNN_LOG=$logs/plans.txt"
mkdir -p "$logs/cache"
torch="$python tests/gpu/bare/cross.py"

# Steps are in the order of what they are worth, should the machine go.
# 3. Numbers: every operation on cuda:0 beside float64.
cases=$bare/bare-op-cases
step numbers 60 $on_gpu timeout 200 $parts "$cases" '*__agrees_*'

# 4. Ceilings: the driver by itself.  A short recording, which is to come back.
step driver 15 timeout 60 "$bare/$driver" $small
step lesson 5 env TAPEDECK_DEVICE_TIMES=all "$tapedeck" run --quiet -f --device cuda:0 --iterations 3 -o "$tapes/lesson.tdtape" "$bare/bare-mlp"

# The end: what is concluded of all that was run; what is left is for the next command.
end ()
{
  if [ -n "$left" ]; then note left "$left"; else note failed "$failed"; fi
  conclude finish
  copy_result
  if [ -n "${TD_GPU_COPY:-}" ]; then cp "$tapes/lesson.tdtape" "$TD_GPU_COPY"; fi
  echo "$failed steps failed; $result"
  if [ -n "$left" ]; then
    echo "left for the next command:$left"
    exit 75
  fi
  [ "$failed" -eq 0 ]
  exit
}
if [ "$what" = quick ]; then end; fi

# 5. Values beside PyTorch's; NCCL with one rank, and with two.  Then what measures nothing, side by side: a NaN in each kind
# of operation; gradients by differences, first and second; errors and poison on the device; memory by
# cuda_malloc; two processes that share the GPU; examples on both devices, one of them recorded to come back, and
# to their ends; the programs of tests/models/life; CUDA's checkers, where they work.
mkdir -p "$logs/values"
step values 5 $on_gpu timeout 60 "$bare/bare-torch" "$logs/values" \
  && step torch-values 10 timeout 60 $torch values "$logs/values" $cpu
nccl=$(find "${pip:-/usr/lib}" /usr/lib /usr/local/cuda -name 'libnccl.so.2' 2>/dev/null | head -n 1)
step nccl 10 timeout 60 "$bare/bare-nccl${small:+-fake}" "${nccl:-libnccl.so.2}" ${small:+--small}
# The same through the engine; with two ranks where there are two GPUs, and an MPI to start them.
step ranks 10 ${small:+env FAKE_NCCL=1} $on_gpu timeout 60 "$bare/bare-ranks" $small
if [ -n "$small" ] || [ "$(grep -o 'cuda:[0-9]' "$logs/backends.log" | wc -l)" -ge 2 ]; then
  step ranks-2 15 ${small:+env FAKE_NCCL=1 FAKE_CUDA=devices=2} env TAPEDECK_DEVICE=cuda TAPEDECK_MPI_MODULE="$mpi" timeout 60 \
    tests/ranks/with-ranks "$mpi" 2 "$bare/bare-ranks" $small
else
  note ranks-2 "skipped: one GPU"
fi
beside shared 10 $on_gpu timeout 60 "$bare/bare-shared"
beside nan 40 python3 tests/gpu/result.py nan "$result" "$tapedeck" "$bare/bare-nan"
beside gradients 120 $on_gpu timeout 400 $parts "$cases" "$gradients"
beside errors 20 $on_gpu timeout 100 "$cases" '*poison*'
beside numbers-malloc 60 $on_gpu TAPEDECK_CUDA_ALLOCATOR=cuda_malloc timeout 200 $parts "$cases" '*__agrees_*'
for tool in memcheck racecheck; do
  if [ -z "$small" ] && command -v compute-sanitizer >/dev/null 2>&1; then
    beside $tool 120 $on_gpu timeout 200 $parts compute-sanitizer --tool $tool --report-api-errors no --error-exitcode 9 \
      "$cases" '*__agrees_in_float'
  else
    note $tool "skipped: no compute-sanitizer"
  fi
done
beside example 20 timeout 60 python3 tests/gpu/result.py examples "$result" "$tapedeck" "$bare/bare-" "$tapes/short" 4 mlp
if [ -n "$small" ]; then all_end; fi # two cores
beside examples 150 timeout 540 python3 tests/gpu/result.py examples "$result" "$tapedeck" "$bare/bare-" "$tapes" "$iterations" \
  mlp lenet char_lstm mnist_trainer seq2seq recursive transformer gan vae static_mlp
beside life 60 timeout 200 python3 tests/gpu/result.py life "$result" "$tapedeck" "$bare/bare-" $life
all_end

# 6. The table of kernels and products; the same rows by PyTorch.
step times 40 $on_gpu timeout 240 "$bare/bare-times" $small
step torch-times 40 timeout 180 $torch times $small $cpu

# 7. Updates that leave memory flat; static schedules, as CUDA graphs, beside define-by-run.
step trainings 60 $on_gpu timeout 200 "$bare/bare-trainings" $small $models
step torch-trainings 20 timeout 100 $torch trainings $small $cpu

# 8. Models of size, and the convolutions that one is made of.
# A process each, for the highest use of memory is a process's.
for net in $nets; do
  step "model-$net" 12 $on_gpu timeout 90 "$bare/bare-models" $small "$net"
done
step torch-models 60 timeout 200 $torch models $small_net $small $cpu
step convs 40 $on_gpu timeout 120 "$bare/bare-convs" $small
step ends 20 $on_gpu timeout 120 "$bare/bare-ends" $small
step torch-convs 40 timeout 120 $torch convs "$result" $small $cpu
if [ -z "$left" ]; then
  step plans 1 python3 tests/gpu/result.py plans "$result" "$logs/cache" "$logs/plans.txt"
else
  left="$left plans" # of all that the steps before it made
fi

# 9. Memory: counters, running out by the limit and in earnest.
step memory 15 $on_gpu ${small:+FAKE_CUDA=megabytes=400} timeout 60 "$bare/bare-memory"

# 10. Recording: what a level costs, and that weights do not know of it.  `health` is what a breakpoint
# on NaN wants.
# `plain` is the same without a recording.  All take turns, for a machine is faster in one minute than in the
# next; of each the best counts.
for turn in 1 2 3; do
  for level in plain graph health stats values; do
    suffix=@$level
    tape=$tapes/$level.tdtape
    case $level in
      plain) record= ;;
      health) record="$tapedeck run --quiet -f --device cuda:0 --level graph --break nan -o $tape" ;;
      *) record="$tapedeck run --quiet -f --device cuda:0 --level $level -o $tape" ;;
    esac
    step "recorded-$level-$turn" 5 ${record:-$on_gpu} "$bare/bare-trainings" --seconds 0.4 --flat 20 $small $recorded
    if [ "$level" != values ] && [ -z "$small" ] && [ $turn -lt 3 ]; then
      step "recorded-models-$level-$turn" 10 ${record:-$on_gpu} "$bare/bare-models" 'resnet50.bf16' 'gpt2.bf16'
    fi
    rm -f "$tape" # thousands of updates: the examples' tapes are those to keep
  done
done
suffix=
# What operations are timed by, and what that costs.
step clocks 30 timeout 120 ${small:+env FAKE_CUPTI=1} python3 tests/gpu/result.py times "$result" "$tapedeck" \
  "$bare/bare-trainings" $small --flat 20 $timed

end
