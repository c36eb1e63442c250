#!/bin/sh
# install.sh SOURCE-ROOT BUILD-ROOT: `meson install` into a folder puts everything where a
# distribution wants it, and a model builds and runs against what is there, by pkg-config alone.
# SPDX-License-Identifier: MIT
set -u
source=$1 build=$2

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
option ()
{
  python3 -c 'import json, sys
print(next(o["value"] for o in json.load(sys.stdin) if o["name"] == sys.argv[1]))' "$1" \
    <"$build/meson-info/intro-buildoptions.json"
}
prefix=$(option prefix)
if [ "$(option default_library)" = static ]; then suffix=a how=--static; else suffix=so how=; fi
libdir=$prefix/$(option libdir)
has ()
{
  [ -e "$build/$1" ]
}

everything_is_there ()
{
  app=io.github.tapedeck.Tapedeck
  set -- "$(option includedir)/tapedeck.h" "$(option includedir)/tapedeck-op.h" \
    "$(option libdir)/libtapedeck.$suffix" "$(option libdir)/libtdtape.$suffix" \
    "$(option libdir)/pkgconfig/tapedeck.pc" "$(option libdir)/pkgconfig/tapedeck-tape.pc" \
    "$(option libdir)/libtdproducer.so" "$(option libdir)/pkgconfig/tapedeck-producer.pc" \
    "$(option includedir)/td-producer.h" "$(option includedir)/tapedeck-ggml.h" share/tapedeck/examples/producer.c \
    share/tapedeck/python/tapedeck/__main__.py \
    "$(option mandir)/man5/tapedeck-tape.5" share/bash-completion/completions/tapedeck \
    share/zsh/site-functions/_tapedeck share/fish/vendor_completions.d/tapedeck.fish \
    share/doc/tapedeck/CHANGELOG.md share/doc/tapedeck/GOING-OUT.md share/doc/tapedeck/OPERATORS.md \
    share/tapedeck/examples/mlp.c share/tapedeck/examples/lenet.c share/tapedeck/examples/clinic/xor.c bin/tapedeck \
    "$(option libexecdir)/tapedeck/tapedeck-eval"
  if has app/tapedeck-viz; then
    set -- "$@" "$(option libexecdir)/tapedeck/tapedeck-viz" \
      "$(option libexecdir)/tapedeck/tapedeck-layout"
  fi
  if has app/tapedeck-weights; then
    set -- "$@" "$(option libexecdir)/tapedeck/tapedeck-weights"
  fi
  if has app/tapedeck-serve; then
    set -- "$@" "$(option libexecdir)/tapedeck/tapedeck-serve"
  fi
  if has gpu/tapedeck-cuda.so; then
    set -- "$@" "$(option libdir)/tapedeck-cuda.so"
  fi
  if has engine/ranks/mpi/tapedeck-mpi.so; then
    set -- "$@" "$(option libdir)/tapedeck-mpi.so"
  fi
  if has data/python/extension/_tapedeck.abi3.so; then
    set -- "$@" "$(option libdir)/tapedeck/_tapedeck.abi3.so"
  fi
  if has app/tapedeck-app; then
    set -- "$@" "$(option libexecdir)/tapedeck/tapedeck-app" "share/applications/$app.desktop" \
      "share/dbus-1/services/$app.service" "share/metainfo/$app.metainfo.xml" "share/mime/packages/$app.xml" \
      "share/glib-2.0/schemas/$app.gschema.xml" "share/icons/hicolor/scalable/apps/$app.svg" \
      "share/icons/hicolor/symbolic/apps/$app-symbolic.svg" \
      share/icons/hicolor/scalable/mimetypes/application-vnd.tapedeck.tape.svg \
      share/icons/hicolor/scalable/mimetypes/application-x-onnx.svg "share/thumbnailers/$app.thumbnailer" \
      share/tapedeck/lessons/1-first-network.lesson share/tapedeck/lessons/xor.tdtape
  fi
  for name in "$source"/data/man/*.1; do
    set -- "$@" "$(option mandir)/man1/$(basename "$name")"
  done
  for name in "$source"/data/python/tapedeck/*.py; do
    set -- "$@" "share/tapedeck/python/tapedeck/$(basename "$name")"
  done
  status=0
  for name in "$@"; do
    [ -s "$root$prefix/$name" ] || { echo "$name is missing"; status=1; }
  done
  return $status
}

nothing_else_is_there ()
{
  strange=$(cd "$root$prefix" && find . -type f | grep -v -e '^\./bin/tapedeck$' \
    -e '^\./include/\(tapedeck\|td-tape\|td-producer\)[a-z-]*\.h$' -e '/libtapedeck\.\(so\|a$\)' -e '/libtdtape\.\(so\|a$\)' -e '/libtdproducer\.so' \
    -e '/tapedeck-\(cuda\|mpi\)\.so$' -e '/tapedeck/_tapedeck\.abi3\.so$' \
    -e '/pkgconfig/tapedeck' -e '/libexec/tapedeck/tapedeck-' -e '^\./share/')
  [ -z "$strange" ] || { echo "$strange"; return 1; }
}

no_build_path_is_named ()
{
  named=$(grep -rlF -e "$source" -e "$build" "$root$prefix/share" "$root$prefix/include" \
    "$root$libdir/pkgconfig")
  [ -z "$named" ] || { echo "$named"; return 1; }
}

flags ()
{
  PKG_CONFIG_PATH=$root$libdir/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root pkg-config "$@"
}

model_builds ()
{
  awk '/^```c$/ { on = 1; next } /^```$/ { if (on) exit } on' "$source/README.md" >"$root/model.c"
  # shellcheck disable=SC2046
  LD_LIBRARY_PATH=$root$libdir cc -o "$root/model" "$root/model.c" $(flags $how --cflags --libs tapedeck)
}
model_trains ()
{
  # Built-in digits, so that it needs no file.
  (cd "$root" && unset TAPEDECK_DATA && LD_LIBRARY_PATH=$root$libdir ./model)
}
program_starts ()
{
  LD_LIBRARY_PATH=$root$libdir "$root$prefix/bin/tapedeck" --version
}
tape_program_builds ()
{
  printf '#include <td-tape-reader.h>\nint main (void) { return 0; }\n' >"$root/tape.c"
  # shellcheck disable=SC2046
  cc -o "$root/tape" "$root/tape.c" $(flags $how --cflags --libs tapedeck-tape)
}

producer_builds ()
{
  # shellcheck disable=SC2046
  LD_LIBRARY_PATH=$root$libdir cc -o "$root/producer" "$root$prefix/share/tapedeck/examples/producer.c" \
    $(flags --cflags --libs tapedeck-producer) \
    && LD_LIBRARY_PATH=$root$libdir "$root/producer" "$root/line.tdtape"
}

claim "meson install succeeds" env DESTDIR="$root" meson install -C "$build" --no-rebuild --quiet
claim "what belongs to the product is installed" everything_is_there
claim "nothing else is installed" nothing_else_is_there
claim "no installed text names the source or the build tree" no_build_path_is_named
claim "tapedeck starts from there" program_starts
claim "the README's model builds by pkg-config alone" model_builds
claim "the README's model trains" model_trains
claim "a program that reads tapes builds by pkg-config alone" tape_program_builds
claim "a program that records itself builds by pkg-config alone" producer_builds
echo "1..$n"
[ "$failed" -eq 0 ]
