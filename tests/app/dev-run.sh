#!/bin/sh
# dev-run.sh SOURCE-ROOT WITH-DISPLAY window|pictures: `./dev run` as a newcomer types it. With a
# display a window opens on training that goes on; with one that cannot be opened every view is
# written as a picture.
# SPDX-License-Identifier: MIT
set -u
source=$1 with_display=$2 what=$3
id=io.github.tapedeck.Tapedeck
cd "$source" || exit 1

# The state of an action of the window that is open, as the session bus tells it: (true, '', ...).
action ()
{
  gdbus call --session --dest $id --object-path /io/github/tapedeck/Tapedeck/window/1 \
    --method org.gtk.Actions.Describe "$1" 2>/dev/null
}
# until SECONDS COMMAND: polls, because neither X nor the bus can be waited on from a script.
until_true ()
{
  deadline=$(($(date +%s) + $1))
  shift
  until "$@"; do
    [ "$(date +%s)" -lt "$deadline" ] || return 1
    kill -0 "$app" 2>/dev/null || { echo "# ./dev run has ended"; return 1; }
    sleep 0.2
  done
}
window_is_there ()
{
  xdotool search --onlyvisible --name lenet >/dev/null 2>&1
}
iteration_beyond ()
{
  at=$(action moment | sed -n "s|.*<'\([0-9]*\)/.*|\1|p")
  [ -n "$at" ] && [ "$at" -gt "$1" ]
}

inside ()
{
  ./dev run </dev/null >"$log" 2>&1 &
  app=$!
  status=0
  if until_true 540 window_is_there; then echo "ok 1 - a window opens on lenet"; else
    echo "not ok 1 - a window opens on lenet"
    status=1
  fi
  # Follow mode moves with the newest iteration: two different ones are training that goes on.
  if until_true 60 iteration_beyond 0 && until_true 60 iteration_beyond "$at"; then
    echo "ok 2 - the iterations it shows go on"
  else
    echo "not ok 2 - the iterations it shows go on"
    action moment
    status=1
  fi
  [ "$status" -eq 0 ] || sed 's/^/#   /' "$log"
  import -window root "${TD_TEST_PICTURE:-$log.png}" 2>/dev/null
  kill "$app" 2>/dev/null
  wait "$app" 2>/dev/null
  echo "1..2"
  return $status
}

case $what in
  inside)
    log=$4
    inside
    ;;
  window)
    for tool in xdotool gdbus; do
      command -v $tool >/dev/null 2>&1 || { echo "no $tool, skipped"; exit 77; }
    done
    dir=$(mktemp -d) || exit 1
    trap 'rm -rf "$dir"' EXIT
    "$with_display" --bus "$0" "$source" - inside "$dir/log"
    ;;
  pictures)
    # A display that is named and not there; an unset DISPLAY would be the easy case.
    out=$(DISPLAY=:32767 WAYLAND_DISPLAY='' ./dev run </dev/null 2>&1)
    status=$?
    folder=$(printf '%s\n' "$out" | sed -n 's/^dev: [0-9]* pictures are in //p')
    n=0 bad=0
    for view in graph backward curves memory gradients schedule; do
      n=$((n + 1))
      if [ -s "$folder/$view.png" ] && [ "$(head -c 4 "$folder/$view.png" | tail -c 3)" = PNG ]; then
        echo "ok $n - $view is drawn"
      else
        echo "not ok $n - $view is drawn"
        bad=1
      fi
    done
    n=$((n + 1))
    if [ "$status" -eq 0 ] && [ -n "$folder" ]; then echo "ok $n - it says where"; else
      echo "not ok $n - it says where, and ends in 0 (was $status)"
      printf '%s\n' "$out" | tail -n 30 | sed 's/^/#   /'
      bad=1
    fi
    echo "1..$n"
    exit $bad
    ;;
esac
