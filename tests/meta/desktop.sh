#!/bin/sh
# desktop.sh SOURCE-ROOT: the files that a desktop reads are valid, agree with each other, and the
# MIME magic is the one that tapes begin with.
# SPDX-License-Identifier: MIT
set -u
root=$1
id=io.github.tapedeck.Tapedeck
cd "$root/data" || exit 1

n=0 failed=0
claim ()
{
  n=$((n + 1))
  word=ok
  log=$(shift; "$@" 2>&1) || word='not ok' failed=1
  echo "$word $n - $1"
  [ "$word" = ok ] || printf '%s\n' "$log" | sed 's/^/#   /'
}
# claim_with TOOL CLAIM COMMAND...: the claim, or a skip where the tool is not installed.
claim_with ()
{
  if command -v "$1" >/dev/null 2>&1; then
    shift
    claim "$@"
  else
    n=$((n + 1))
    echo "ok $n - $2 # SKIP no $1"
  fi
}

tool_is_silent ()
{
  status=0
  said=$("$@" 2>&1) || status=$?
  [ -z "$said" ] || printf '%s\n' "$said"
  [ "$status" -eq 0 ] && [ -z "$said" ]
}

magic_is_the_tapes ()
{
  in_header=$(sed -n 's/^#define TD_TAPE_MAGIC "\(.*\)".*/\1/p' ../engine/tape/format/td-tape.h)
  echo "td-tape.h says '$in_header'"
  [ -n "$in_header" ] && grep -qF "value=\"$in_header\"" "$id.mime.xml"
}

# mime_type_is_found TYPE FILE: the shared MIME database of a folder of its own, asked about a file
# whose name says nothing.
mime_type_is_found ()
{
  dir=$(mktemp -d) || return 1
  mkdir -p "$dir/mime/packages"
  cp "$id.mime.xml" "$dir/mime/packages/"
  update-mime-database "$dir/mime" || return 1
  cp "$2" "$dir/sample"
  type=$(XDG_DATA_HOME=$dir XDG_DATA_DIRS=$dir gio info -a standard::content-type "$dir/sample")
  rm -rf "$dir"
  case $type in *$1*) ;; *) echo "$type"; return 1 ;; esac
}

models_are_found ()
{
  for model in ../tests/golden/onnx/*.onnx; do
    mime_type_is_found application/x-onnx "$model" || return 1
  done
}

# Other protobufs begin alike: the first fields of saved_model.pb of TensorFlow, a text, a list and a number.
others_are_no_models ()
{
  found=0
  sample=$(mktemp) || return 1
  for bytes in '\010\001\022\204\026\012\073\022\020\012\003Add\022\001x\042\003cpu' '\010\003\022\006Conv2D\032\002\010\001' \
    '\010\010\072\020\012\006MatMul\022\006onnx42' '\010\011\022\005hello'; do
    # shellcheck disable=SC2059
    printf "$bytes" > "$sample"
    if mime_type_is_found application/x-onnx "$sample" > /dev/null; then
      echo "a model: $bytes"
      found=1
    fi
  done
  rm -f "$sample"
  return $found
}

# What it makes pictures of is what the desktop file opens, and its command has these options.
thumbnails_are_of_our_types ()
{
  [ "$(sed -n 's/^MimeType=//p' "$id.thumbnailer")" \
    = "$(sed -n 's/^MimeType=\(.*\)x-scheme-handler.*/\1/p' "$id.desktop")" ] || return 1
  for option in --view --fit --format; do
    grep -q "^Exec=tapedeck show %i .*$option" "$id.thumbnailer" || return 1
  done
}

ids_agree ()
{
  grep -q "<id>$id</id>" "$id.metainfo.xml" || return 1
  grep -q "^Icon=$id\$" "$id.desktop" || return 1
  grep -q "$id.desktop</launchable>" "$id.metainfo.xml" || return 1
  for type in application/vnd.tapedeck.tape application/x-onnx; do
    grep -q "^MimeType=.*$type;" "$id.desktop" || return 1
    grep -q "<mediatype>$type<" "$id.metainfo.xml" || return 1
    grep -q "type=\"$type\"" "$id.mime.xml" || return 1
    test -f "icons/hicolor/scalable/mimetypes/$(echo $type | tr / -).svg" || return 1
  done
  test -f "icons/hicolor/scalable/apps/$id.svg" -a -f "icons/hicolor/symbolic/apps/$id-symbolic.svg"
}

# Those of the commands, and the one that is made of headers.
man_page_of ()
{
  case $1 in
    *.in) python3 man/prose.py "$1" version=0 datadir=/usr/share includedir=/usr/include \
      ../engine/tape/format/*.h ../engine/record/produce/td-producer.h ;;
    *) cat "$1" ;;
  esac
}
man_pages_are_silent ()
{
  status=0
  for page in man/*.1 man/*.5.in; do
    said=$(man_page_of "$page" \
      | LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z - 2>&1 >/dev/null)
    [ -z "$said" ] || { echo "$page: $said"; status=1; }
  done
  return $status
}
man_pages_are_found ()
{
  status=0
  for page in man/*.1 man/*.5.in; do
    name=$(basename "$page")
    file=$(mktemp) || return 1
    man_page_of "$page" >"$file"
    said=$(LC_ALL=C.UTF-8 lexgrog "$file")
    rm -f "$file"
    case $said in *"\"${name%%.*} - "*) ;; *) echo "$page: $said"; status=1 ;; esac
  done
  return $status
}

# The bus starts the app under its id, and what the launcher offers are actions that it has.
bus_starts_it ()
{
  grep -qx "Name=$id" "$id.service.in" && grep -qx 'DBusActivatable=true' "$id.desktop" || return 1
  grep -q '^Exec=.*/tapedeck-app --gapplication-service$' "$id.service.in" || return 1
  for action in $(sed -n 's/^Actions=//p' "$id.desktop" | tr ';' ' '); do
    grep -q "\.name = \"$action\"" ../ui/app/td-application.c || { echo "no action $action"; return 1; }
  done
}
# What software centres show lies here, in that form which they ask for.
screenshots_are_there ()
{
  shots=$(sed -n "s,.*<image>$(sed -n 's/.*type="homepage">\(.*\)<.*/\1/p' "$id.metainfo.xml")\(screenshots/.*\)</image>.*,\1,p" \
    "$id.metainfo.xml")
  [ "$(echo "$shots" | wc -w)" -ge 3 ] || { echo "$shots"; return 1; }
  for shot in $shots; do
    size=$(file -b "$shot" | sed -n 's/^PNG image data, \([0-9]*\) x \([0-9]*\),.*/\1 \2/p')
    # At least 620 wide, as AppStream asks for, and no strip.
    echo "$size" | awk '{ exit !($1 >= 620 && $2 >= $1 / 3 && $2 <= $1) }' || { echo "$shot: $size"; return 1; }
  done
}

# shellcheck disable=SC2046
claim_with xmllint "XML is well formed" xmllint --noout $(find . -name '*.xml' -o -name '*.svg')
claim_with desktop-file-validate "the desktop file is valid" tool_is_silent \
  desktop-file-validate --warn-kde "$id.desktop"
claim_with appstreamcli "the AppStream file is valid" appstreamcli validate --no-net --explain \
  "$id.metainfo.xml"
claim_with glib-compile-schemas "the settings schema compiles" tool_is_silent \
  glib-compile-schemas --strict --dry-run .
claim "the MIME magic is what tapes begin with" magic_is_the_tapes
claim_with update-mime-database "a tape without its suffix is recognised" mime_type_is_found \
  application/vnd.tapedeck.tape ../tests/golden/tape-1.3.tdtape
claim_with update-mime-database "an ONNX model without its suffix is recognised" models_are_found
claim_with update-mime-database "another protobuf is not taken for an ONNX model" others_are_no_models
claim "pictures are made of what is opened" thumbnails_are_of_our_types
claim "the bus starts the app, whose actions the launcher names" bus_starts_it
claim_with file "pictures that software centres show are there" screenshots_are_there
claim "application id, icons and MIME types agree" ids_agree
claim_with man "no man page has a warning" man_pages_are_silent
claim_with lexgrog "whatis and apropos find every man page" man_pages_are_found
echo "1..$n"
[ "$failed" -eq 0 ]
