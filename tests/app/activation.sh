#!/bin/sh
# activation.sh BUILD-ROOT TAPE: a desktop starts the app by the bus alone: with nothing, with a recording, and by the action
# of its launcher. Run it under with-display.
# SPDX-License-Identifier: MIT
set -u
build=$1 tape=$2
id=io.github.tapedeck.Tapedeck object=/io/github/tapedeck/Tapedeck

for tool in gapplication gdbus dbus-run-session xdotool; do
  command -v "$tool" >/dev/null 2>&1 || { echo "no $tool, skipped"; exit 77; }
done

# The bus that finds the service is one of its own: it reads XDG_DATA_HOME when it starts.
if [ -z "${TD_ACTIVATION-}" ]; then
  dir=$(mktemp -d) || exit 1
  mkdir -p "$dir/dbus-1/services"
  sed "s,^Exec=.*tapedeck-app,Exec=$build/app/tapedeck-app," "$build/data/$id.service" >"$dir/dbus-1/services/$id.service"
  TD_ACTIVATION=$dir XDG_DATA_HOME=$dir dbus-run-session -- "$0" "$@"
  status=$?
  rm -rf "$dir"
  exit $status
fi

n=0 failed=0
claim ()
{
  n=$((n + 1))
  word=ok
  log=$(shift; "$@" 2>&1) || word='not ok' failed=1
  echo "$word $n - $1"
  [ "$word" = ok ] || printf '%s\n' "$log" | head -n 20 | sed 's/^/#   /'
}

bus ()
{
  method=$1
  shift
  gdbus call --session --dest org.freedesktop.DBus --object-path /org/freedesktop/DBus --method "org.freedesktop.DBus.$method" "$@"
}
running ()
{
  case $(bus NameHasOwner "$id") in *true*) ;; *) return 1 ;; esac
}
windows ()
{
  gdbus introspect --session --dest "$id" --object-path "$object/window" --only-properties | grep -c "node [0-9]"
}
# has N: within ten seconds there are so many windows.
has ()
{
  tries=100
  while [ "$(windows)" != "$1" ]; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || { echo "$(windows) windows"; return 1; }
    sleep 0.1
  done
}
shows ()
{
  timeout 20 xdotool search --sync --onlyvisible --name "$1"
}

known ()
{
  ! running && case $(bus ListActivatableNames) in *"'$id'"*) ;; *) return 1 ;; esac
}
starts ()
{
  gapplication launch "$id" && running && has 1
}
opens ()
{
  gapplication launch "$id" "$tape" && shows "$(basename "$tape" .tdtape)" && has 1
}
acts ()
{
  gapplication action "$id" new-window && has 2
}
ends ()
{
  gapplication action "$id" quit || return 1
  tries=100
  while running; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || return 1
    sleep 0.1
  done
}

claim "the bus knows how to start it, and has not" known
claim "the bus starts it, with a window" starts
claim "a recording is opened there, in the window that shows nothing" opens
claim "the action of its launcher makes a window" acts
claim "it ends" ends
echo "1..$n"
[ "$failed" -eq 0 ]
