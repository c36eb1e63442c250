#!/bin/sh
# dev-front-door.sh SOURCE-ROOT: set-up of ./dev, against package tools that only note what is asked
# of them: nothing missing asks nothing, something missing names it, no right to install says how.
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016,SC2181  # programs in quotes; statuses of a function
set -u
root=$1

n=0 failed=0
claim ()
{
  n=$((n + 1))
  if [ "$2" -eq 0 ]; then echo "ok $n - $1"; else
    echo "not ok $n - $1"
    sed 's/^/#   /' "$dir/said"
    failed=1
  fi
}

dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/bin" "$dir/tree"
cp "$root/dev" "$dir/tree/dev"

# Everything that dev may call before and during set-up, and nothing else of this machine.
for tool in sh cat dirname mktemp rm mkdir tail head grep env basename sort cp; do
  ln -s "$(command -v $tool)" "$dir/bin/$tool"
done
fake ()
{
  printf '#!/bin/sh\n%s\n' "$2" >"$dir/bin/$1"
  chmod +x "$dir/bin/$1"
}
# After set-up comes the job: a clang-format that notes its files shows that it was reached.
fake git 'echo a.c'
fake xargs 'cat >/dev/null; echo "job $*"'
fake clang-format ':'
fake true :

front_door ()
{
  (cd "$dir/tree" && PATH=$dir/bin ./dev "$@" </dev/null >"$dir/said" 2>&1)
}
says ()
{
  grep -qF -- "$1" "$dir/said"
}

fake id 'echo 0'
fake dpkg-query 'shift 3; for p; do echo "$p installed"; done'
fake apt-get 'echo "apt-get was called" >&2; exit 1'
front_door format
status=$?
says 'job clang-format -i' && ! says 'apt-get' && [ $status -eq 0 ]
claim "with everything installed nothing is asked" $?

fake dpkg-query 'shift 3; for p; do [ "$p" = git ] || echo "$p installed"; done; exit 1'
fake apt-get "echo \"\$DEBIAN_FRONTEND \$*\" >>$dir/apt"
front_door format
status=$?
[ $status -eq 0 ] && says 'job clang-format -i' \
  && grep -q '^noninteractive -q -o DPkg::Lock::Timeout=300 update$' "$dir/apt" \
  && grep -q '^noninteractive .*DPkg::Lock::Timeout=300 install -y .* git' "$dir/apt" \
  && ! grep -q clang-format "$dir/apt"
claim "as root what is missing is installed, and only that" $?

fake apt-get 'case "$*" in *install*) echo "E: no such package"; exit 100 ;; esac'
front_door format
[ $? -eq 2 ] && says 'E: no such package' && says 'apt-get update && apt-get'
claim "an apt that fails shows its error, ends in 2" $?

fake id 'echo 1000'
fake apt-get 'echo "apt-get was called"'
front_door format
[ $? -eq 2 ] && says 'as root: apt-get update && apt-get' && says ' git' && ! says 'was called'
claim "without sudo the exact command is printed, and it ends in 2" $?

fake sudo 'echo "sudo $*" >>'"$dir/sudo"'; case $2 in true) exit 1 ;; esac'
front_door format
[ $? -eq 2 ] && says 'as root: apt-get update' && grep -q '^sudo -n true$' "$dir/sudo"
claim "a sudo that would ask for a password is not waited for" $?

# A user's set-up must not bring the developer's tools; this machine knows no package at all.
fake id 'echo 0'
fake dpkg-query 'exit 1'
fake apt-get "echo \"\$*\" >$dir/apt"
touch "$dir/tree/model.c"
front_door run model.c
grep -q ' libgtk-4-dev .*libadwaita-1-dev' "$dir/apt" \
  && ! grep -qE 'clang|cmocka|xvfb|mpi|torch|cuda' "$dir/apt"
claim "run installs what the app needs and no developer's tool" $?
front_door test
grep -q ' libcmocka-dev .*clang.* xvfb' "$dir/apt" && grep -q libgtk-4-dev "$dir/apt" \
  && grep -q ' libopenmpi-dev openmpi-bin' "$dir/apt" && ! grep -qE 'torch|cuda' "$dir/apt"
claim "test installs the developer's tools as well" $?

fake id 'echo 1000'
fake dpkg-query 'shift 3; for p; do [ "$p" = git ] || echo "$p installed"; done; exit 1'
fake sudo '[ "$1" = -n ] && shift; exec "$@"'
fake apt-get "echo \"\$*\" >$dir/apt"
rm -f "$dir/apt"
front_door format
[ $? -eq 0 ] && grep -q ' git' "$dir/apt"
claim "sudo without a password installs" $?

# What --quick hands to stage.py for what git names.
quick ()
{
  fake git "case \$1 in rev-parse) echo base ;; merge-base) echo base ;; diff) for f in $1; do echo \$f; done ;; esac"
  shift
  front_door test --quick "$@"
}
fake id 'echo 0'
fake dpkg-query 'shift 3; for p; do echo "$p installed"; done'
fake meson 'mkdir -p .build/gcc && : >.build/gcc/build.ninja'
fake python3 'echo "$*"'
quick 'ui/td-app.c ui/README.md README.md'
says 'stage.py gcc gcc --no-suite slow --suite meta --suite ui' && says 'summary.py .build gcc'
claim "test --quick takes the suites of the files that changed, and gcc alone" $?

quick 'engine/record/ring.c tests/viz/graph/graph.c'
says '--suite meta --suite engine --suite fuzz --suite life --suite tape --suite fuzz --suite app --suite viz'
claim "test --quick takes those of every area that changed" $?

quick README.md
says 'quick: nothing but meta' && grep -q -- '--suite meta$' "$dir/said"
claim "test --quick with nothing changed that has tests of its own takes suite meta" $?

quick 'ui/td-app.c' viz data
grep -q -- '--suite meta --suite viz --suite engine --suite app$' "$dir/said"
claim "test --quick AREA.. takes those areas, whatever has changed" $?

quick README.md nonsense
[ $? -eq 2 ] && says 'nonsense: no such area; there are: engine '
claim "test --quick refuses an area that there is not, and ends in 2" $?

fake git 'exit 128'
front_door test --quick
[ $? -eq 2 ] && says 'name areas of: engine '
claim "test --quick without git asks for areas, and ends in 2" $?

# The whole: every build, and what each of them leaves to another.
fake pkg-config "echo $dir"
: >"$dir/cmocka.pc"
fake meson 'mkdir -p "$2" && : >"$2/build.ninja"'
front_door test
asan='--no-suite slow --no-suite nvcc' clang='--suite engine --no-suite slow --no-suite files'
minimal='--suite engine --suite tape --no-suite slow --no-suite files'
says "stage.py gcc,asan,clang,minimal gcc --ahead asan $asan --whole --no-suite many --no-suite fuzz" \
  && says "asan,clang,minimal asan --ahead clang $clang $asan" \
  && says "minimal clang --ahead minimal $minimal $clang" && says "minimal minimal $minimal" \
  && says 'summary.py .build gcc asan clang minimal'
claim "test builds four times, each next one while tests run, and adds up" $?
fake meson 'case $2 in *asan) exit 1 ;; esac; mkdir -p "$2" && : >"$2/build.ninja"'
rm -rf "$dir/tree/.build"
front_door test
says 'asan: could not be configured' && ! says 'minimal asan' && says "minimal clang" \
  && [ "$(cat "$dir/tree/.build/asan.failed")" = 'the configuration' ]
claim "a build that cannot be configured is noted, and the others go on" $?

fake id 'echo 1000'
fake dpkg-query 'shift 3; for p; do [ "$p" = git ] || echo "$p installed"; done; exit 1'
fake git 'echo a.c'
rm "$dir/bin/apt-get"
front_door format
[ $? -eq 2 ] && says 'missing: git'
claim "without apt the names of the packages are printed, and it ends in 2" $?

rm "$dir/bin/dpkg-query"
front_door format
[ $? -eq 2 ] && says 'clang-format git'
claim "without dpkg the names of the packages are printed, and it ends in 2" $?

front_door nonsense
[ $? -eq 2 ] && says 'nonsense: no such command' && says 'usage: ./dev'
claim "an unknown command shows the usage, and ends in 2" $?

front_door help
[ $? -eq 0 ] && says 'usage: ./dev' && says '  run [FILE]' && says '  bench [--json]' && says '  test --quick [AREA..]'
claim "help names the commands" $?

front_door run no-such-file.c
[ $? -eq 2 ] && says 'no-such-file.c: no such file'
claim "run refuses a file that is not there before it installs anything" $?

grep -q '^exec ./dev test$' "$root/.ci/run"
claim ".ci/run is ./dev test" $?

echo "1..$n"
[ "$failed" -eq 0 ]
