#!/bin/sh
# static.sh SOURCE-ROOT: configured with -Ddefault_library=static, what is installed makes programs that hold the engine,
# by pkg-config alone and by `tapedeck run`. It builds the engine anew, without optimization: what is linked is the same.
# SPDX-License-Identifier: MIT
set -u
source=$1

n=0 failed=0
claim ()
{
  n=$((n + 1))
  word=ok
  log=$(shift; "$@" 2>&1) || word='not ok' failed=1
  echo "$word $n - $1"
  [ "$word" = ok ] || printf '%s\n' "$log" | tail -n 30 | sed 's/^/#   /'
}

root=$(mktemp -d) || exit 1
trap 'rm -rf "$root"' EXIT
prefix=$root/usr/local

configures ()
{
  meson setup "$root/build" "$source" --prefix=/usr/local --libdir=lib -Dbuildtype=plain -Doptimization=0 \
    -Ddefault_library=static -Dui=disabled -Dviz=disabled -Dcuda=disabled -Dtests=false
}
installs ()
{
  ninja -C "$root/build" && DESTDIR=$root meson install -C "$root/build" --no-rebuild --quiet
}
no_shared_engine ()
{
  found=$(find "$prefix/lib" -name 'libtapedeck.so*' -o -name 'libtdtape.so*')
  [ -z "$found" ] || { echo "$found"; return 1; }
  [ -s "$prefix/lib/libtapedeck.a" ] && [ -s "$prefix/lib/libtdtape.a" ]
}
# What Python opens holds the tape's library, and shows nothing of it.
producer_shows_its_own ()
{
  strange=$(nm -D --defined-only "$prefix/lib/libtdproducer.so" | grep -v -e ' A TDPRODUCER_' -e ' T td_producer_')
  [ -z "$strange" ] || { echo "$strange"; return 1; }
}
flags ()
{
  # The engine's own; those of OpenBLAS and zlib lie outside of that root.
  PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config "$@" | sed "s,/usr/local/,$prefix/,g"
}
holds_the_engine ()
{
  needed=$(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
  case $needed in *libtapedeck*|*libtdtape*) echo "$needed"; return 1 ;; esac
}
model_builds ()
{
  # shellcheck disable=SC2046
  cc -o "$root/mlp" "$prefix/share/tapedeck/examples/mlp.c" $(flags --static --cflags --libs tapedeck) \
    && holds_the_engine "$root/mlp"
}
model_records_itself ()
{
  (cd "$root" && unset TAPEDECK_DATA && TAPEDECK_TAPE=$root/mlp.tdtape ./mlp) && "$prefix/bin/tapedeck" check "$root/mlp.tdtape"
}
tape_program_builds ()
{
  printf '#include <td-tape-reader.h>\nint main (void) { return td_tape_reader_open ("", NULL, 0) != NULL; }\n' >"$root/tape.c"
  # shellcheck disable=SC2046
  cc -o "$root/tape" "$root/tape.c" $(flags --static --cflags --libs tapedeck-tape) && holds_the_engine "$root/tape" && "$root/tape"
}
run_builds ()
{
  (unset TAPEDECK_DATA CC && XDG_CACHE_HOME=$root/cache "$prefix/bin/tapedeck" run -o "$root/run.tdtape" --quiet \
    "$prefix/share/tapedeck/examples/mlp.c") && holds_the_engine "$(find "$root/cache" -type f -name mlp)"
}

claim "a static engine is configured" configures
claim "it is built and installed" installs
claim "static libraries are installed, and no shared ones of the engine" no_shared_engine
claim "the producer's library is shared, and exports nothing of the tape's" producer_shows_its_own
claim "an example builds by pkg-config --static, and holds the engine" model_builds
claim "it trains and records itself" model_records_itself
claim "so does a program that reads tapes" tape_program_builds
claim "tapedeck run makes such a program of it, too" run_builds
echo "1..$n"
[ "$failed" -eq 0 ]
