/* The supervisor: see supervisor.h.
 *
 * The model is its first direct child, so that the end of the model is seen by waitpid,
 * whatever kills it.  It is spawned, not forked: what libraries do at a fork is none of ours.
 * One poll loop: the end of the model, signals for us, the control socket, the ring.
 * SPDX-License-Identifier: MIT */
#include "supervisor.h"

#include "command.h"
#include "control-server.h"
#include "json-read.h"
#include "keeper.h"
#include "paths.h"
#include "rank-watch.h"
#include "recording.h"
#include "runtime-folder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum
{
  DRAIN_MS = 2, /* between looks at the ring while records come */
  IDLE_MS = 20, /* ... while none come */
  KILL_AFTER_MS = 3000,
  KILL_RANK_AFTER_MS = 1000, /* the others are ended as well: nobody waits for it */
  LOST_FOR_MS = 300,
  MAX_SOURCE = 8 << 20
};

typedef struct
{
  const TdSupervisorOptions *options;
  char socket_path[4200];
  TdRecording recording;
  TdControlServer *server;
  TdControlRun run;
  TdRankWatch ranks;
  int signal_fd;
  sigset_t old_signals;
  pid_t pid;
  int status; /* of waitpid */
  TdWhereNow last;
  bool ended, killed_by_us, told, stopped_at_break, said_wrong, lost;
  int64_t kill_at_ms; /* 0: no */
  int64_t lost_at_ms; /* mpirun was seen to be gone; 0: it was not */
} Supervisor;

static int64_t
now_ms (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static bool
complain (const char *what, const char *why)
{
  fprintf (stderr, "tapedeck: %s: %s\n", what, why);
  return false;
}

/* What the tape says about the run before it begins. */
static void
write_head (const Supervisor *s)
{
  const TdSupervisorOptions *o = s->options;
  TdTapeWriter *w = s->recording.writer;
  char text[4096] = "", *source;
  size_t used = 0;
  FILE *f;

  if (w == NULL)
    return;
  for (int i = 0; o->argv[i] != NULL && used < sizeof text; i++)
    used += (size_t)snprintf (text + used, sizeof text - used, "%s%s", i > 0 ? " " : "",
                              i == 0 ? o->name : o->argv[i]);
  td_tape_writer_info (w, "program", o->name);
  td_tape_writer_info (w, "argv", text);
  td_tape_writer_info (w, "device", o->device != NULL ? o->device : "cpu");
  td_tape_writer_info (w, "version", TD_VERSION);
  if (getcwd (text, sizeof text) != NULL)
    td_tape_writer_info (w, "cwd", text);
  if (gethostname (text, sizeof text) == 0)
    td_tape_writer_info (w, "host", text);
  if (o->n_ranks > 1)
    {
      td__where_run (text, sizeof text);
      td_tape_writer_info (w, "run", text);
    }
  source = o->source != NULL ? malloc (MAX_SOURCE) : NULL;
  f = source != NULL ? fopen (o->source, "rb") : NULL;
  if (f != NULL)
    {
      td_tape_writer_source (w, o->source, source, fread (source, 1, MAX_SOURCE, f));
      fclose (f);
    }
  free (source);
  td_tape_writer_flush (w);
}

static void
put_number (const char *name, long value)
{
  char text[32];

  snprintf (text, sizeof text, "%ld", value);
  setenv (name, text, 1);
}

static void
put (const char *name, const char *value)
{
  if (value != NULL)
    setenv (name, value, 1);
}

/* The environment that the engine reads in td_init.  The supervisor has no other use for its
 * own. */
static void
set_environment (const Supervisor *s, int control_fd)
{
  static const char *const levels[] = { "graph", "stats", "values" };
  const TdSupervisorOptions *o = s->options;

  put_number ("TAPEDECK_RING", s->recording.ring->fd);
  put_number ("TAPEDECK_CONTROL", control_fd);
  put ("TAPEDECK_LEVEL", levels[o->level <= 2 ? o->level : 0]);
  put ("TAPEDECK_RECORD", o->tape != NULL ? "1" : "0");
  put ("TAPEDECK_BREAK", o->breaks);
  put ("TAPEDECK_PAUSE", o->pause);
  put ("TAPEDECK_DEVICE", o->device);
  put ("TAPEDECK_MEM_LIMIT", o->mem_limit);
  put ("TAPEDECK_SEED", o->seed);
  put ("TAPEDECK_ITERATIONS", o->iterations);
  put ("TAPEDECK_STATIC", o->statics);
  put ("TAPEDECK_KEYFRAMES", o->keyframes);
  put (TD_WHERE_HANG_VARIABLE, o->hang_after);
  put (TD_WHERE_ON_HANG_VARIABLE, o->on_hang);
}

/* A script without its first line is the shell's, as for any shell. */
static int
spawn_shell (Supervisor *s, const posix_spawn_file_actions_t *files,
             const posix_spawnattr_t *attributes)
{
  static char shell[] = "/bin/sh";
  int n = 0, failed;
  char **argv;

  while (s->options->argv[n] != NULL)
    n++;
  argv = calloc ((size_t)n + 2, sizeof *argv);
  if (argv == NULL)
    return ENOMEM;
  argv[0] = shell;
  argv[1] = (char *)(uintptr_t)s->options->program;
  memcpy (argv + 2, s->options->argv + 1, (size_t)(n - 1) * sizeof *argv);
  failed = posix_spawn (&s->pid, shell, files, attributes, argv, environ);
  free (argv);
  return failed;
}

/* Start the model with the ring and the control socket, and with the signals that we were
 * started with.  Returns 0 or why not. */
static int
spawn (Supervisor *s, int control_fd)
{
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  const int ring_fd = s->recording.ring->fd;
  sigset_t defaults;
  int failed;

  sigemptyset (&defaults); /* what is ignored stays so across exec */
  sigaddset (&defaults, SIGPIPE);
  sigaddset (&defaults, SIGXFSZ);
  posix_spawn_file_actions_init (&files);
  posix_spawnattr_init (&attributes);
  posix_spawnattr_setflags (&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setsigmask (&attributes, &s->old_signals);
  posix_spawnattr_setsigdefault (&attributes, &defaults);
  /* onto itself: it is not closed on exec */
  posix_spawn_file_actions_adddup2 (&files, ring_fd, ring_fd);
  posix_spawn_file_actions_adddup2 (&files, control_fd, control_fd);
  failed = posix_spawnp (&s->pid, s->options->program, &files, &attributes, s->options->argv,
                         environ);
  if (failed == ENOEXEC)
    failed = spawn_shell (s, &files, &attributes);
  posix_spawn_file_actions_destroy (&files);
  posix_spawnattr_destroy (&attributes);
  return failed;
}

static bool
start_model (Supervisor *s)
{
  int pair[2], failed;

  if (socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
    return complain ("socketpair", strerror (errno));
  set_environment (s, pair[1]);
  failed = spawn (s, pair[1]);
  close (pair[1]);
  s->run.model_fd = pair[0];
  s->run.model_pid = s->pid;
  if (failed == 0)
    {
      td_rank_watch_begin (&s->ranks, s->pid);
      return true;
    }
  complain (s->options->own_tape != NULL ? s->options->program : s->options->name,
            strerror (failed)); /* of a script it is Python that cannot be run */
  s->ended = true;
  s->status = (failed == ENOENT ? TD_EXIT_NOT_FOUND : TD_EXIT_NOT_EXECUTABLE) << 8;
  return true; /* a run that ended at once */
}

/* Once it has been waited for its number may be another's. */
static void
signal_model (const Supervisor *s, int number)
{
  if (!s->ended)
    kill (s->pid, number);
}

static void
ask_to_stop (void *user)
{
  Supervisor *s = user;

  if (s->ended)
    return;
  s->killed_by_us = true;
  signal_model (s, SIGTERM);
  if (atomic_load (
          &s->run.page->stopped)) /* it waits in the socket: only a signal reaches it */
    signal_model (s, SIGCONT);
  s->kill_at_ms = now_ms () + KILL_AFTER_MS;
}

/* Who writes its tape itself ends it first. */
static void
end_stopped (Supervisor *s)
{
  static const char text[] = "#0 end";

  if (s->ended)
    return;
  s->killed_by_us = true;
  s->kill_at_ms = now_ms () + KILL_AFTER_MS;
  if (s->options->own_tape == NULL
      || send (s->run.model_fd, text, sizeof text - 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
    signal_model (s, SIGKILL);
}

/* The model says something.  Without a client a stop is the end of the run. */
static void
model_event (void *user, const char *json)
{
  Supervisor *s = user;
  char event[32], where[512], reason[1024], other[32], note[1600];

  if (!s->options->exit_at_break || s->stopped_at_break
      || !td__json_member (json, "event", event, sizeof event) || strcmp (event, "stopped") != 0
      || td__json_member (json, "for", other, sizeof other))
    return; /* one that stopped for another rank is ended with it */
  td__json_member (json, "where", where, sizeof where);
  td__json_member (json, "reason", reason, sizeof reason);
  s->stopped_at_break = true;
  td_recording_drain (&s->recording);
  snprintf (note, sizeof note, "stopped at %s: %s", where, reason);
  td_recording_note (&s->recording, note); /* the end on the tape is that of a killed one */
  fprintf (stderr, "tapedeck: %s\n", note);
  end_stopped (s);
}

/* Take what is in the ring; say once when recording comes to an end before the program. */
static size_t
drain (Supervisor *s)
{
  const size_t n = td_recording_drain (&s->recording);
  TdJsonLine line;

  if (s->recording.wrong[0] == '\0' || s->said_wrong)
    return n;
  s->said_wrong = true;
  fprintf (stderr, "tapedeck: %s: %s; the program runs on unrecorded\n", s->options->tape,
           s->recording.wrong);
  td_control_server_notify (s->server, td_control_notice (&line, s->recording.wrong));
  return n;
}

/* Without mpirun nobody ends the ranks, nor says what became of the run. One that was told to
 * end, as the run was, may be gone before it has told them. */
static void
look_at_starter (Supervisor *s)
{
  if (s->options->n_ranks < 2 || s->told || s->lost || td_rank_watch_ended_by (&s->ranks) > 0
      || !td_keep_lost ())
    return;
  if (s->lost_at_ms == 0)
    s->lost_at_ms = now_ms ();
  if (now_ms () < s->lost_at_ms + LOST_FOR_MS)
    return;
  s->lost = true;
  td_rank_watch_told (&s->ranks);
  td_recording_note (&s->recording, "the run has lost mpirun, which was killed or has died");
  if (s->ended)
    return;
  signal_model (s, SIGTERM);
  signal_model (s, SIGCONT);
  s->kill_at_ms = now_ms () + KILL_RANK_AFTER_MS;
}

/* A rank has waited too long: its line goes to this rank's tape and window as well. */
static void
look_at_ranks (Supervisor *s, bool now)
{
  const char *text;
  TdJsonLine line;

  while ((text = td_rank_watch_look (&s->ranks, &s->run, now)) != NULL)
    {
      td_recording_say (&s->recording, text);
      td_control_server_notify (s->server, td_control_notice (&line, text));
      now = true; /* there may be more */
    }
  if ((text = td_rank_watch_stopped (&s->ranks)) != NULL)
    td_control_server_notify (s->server, td_control_notice (&line, text));
}

static void
take_signals (Supervisor *s)
{
  struct signalfd_siginfo info;

  while (read (s->signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
    {
      if (info.ssi_signo == SIGCHLD)
        continue;
      /* Ctrl+C reaches the model itself; what is sent to us alone is passed on. */
      if (info.ssi_code == SI_USER || info.ssi_signo == SIGTERM || info.ssi_signo == SIGHUP)
        signal_model (s, (int)info.ssi_signo);
      if (info.ssi_signo == SIGTERM && s->options->n_ranks > 1)
        {
          s->told = true;
          td_rank_watch_told (&s->ranks);
          signal_model (s, SIGCONT); /* one that is stopped would not hear of it */
        }
      /* A model may take its time over an interrupt, to save what it has; a script, which
       * writes its tape itself, over this as well. */
      if (s->kill_at_ms == 0 && info.ssi_signo == SIGTERM && s->options->own_tape == NULL)
        s->kill_at_ms = now_ms () + (s->told ? KILL_RANK_AFTER_MS : KILL_AFTER_MS);
    }
  if (!s->ended && waitpid (s->pid, &s->status, WNOHANG) == s->pid)
    s->ended = true;
}

static void
loop (Supervisor *s)
{
  struct pollfd fds[48];
  int timeout = DRAIN_MS;

  while (!s->ended)
    {
      int n = 0, wanted;
      size_t drained;

      fds[n++] = (struct pollfd){ s->signal_fd, POLLIN, 0 };
      if (s->server != NULL)
        n += td_control_server_poll_fds (s->server, fds + n);
      poll (fds, (nfds_t)n, timeout);
      take_signals (s);
      wanted = s->server != NULL ? td_control_server_serve (s->server, fds + 1, n - 1) : -1;
      drained = drain (s);
      look_at_ranks (s, false);
      if (drained == 0)
        look_at_starter (s);
      timeout = drained > 0 ? DRAIN_MS : IDLE_MS;
      if (wanted >= 0 && wanted < timeout)
        timeout = wanted;
      if (s->kill_at_ms > 0 && now_ms () >= s->kill_at_ms)
        {
          signal_model (s, SIGKILL);
          s->kill_at_ms = now_ms () + KILL_AFTER_MS;
        }
      if (atomic_load (&s->recording.ring->shared->producer_waits) != 0)
        timeout = 0;
    }
}

/* A script that the package does not run has had its line. */
static bool
is_refused (const Supervisor *s)
{
  return s->options->own_tape != NULL && s->recording.ring->shared->producer_pid == 0;
}

static void
report_end (Supervisor *s)
{
  char place[512], reason[TD_WHERE_LINE];
  TdJsonLine line;
  TdJsonWriter *json = td__json_line_begin (&line, NULL);
  int sig = WIFSIGNALED (s->status) ? WTERMSIG (s->status) : 0;

  while (drain (s) > 0)
    ;
  look_at_ranks (s, true);
  for (int ms = 0; ms <= LOST_FOR_MS && !s->lost && (ms == 0 || s->lost_at_ms != 0);
       ms += IDLE_MS)
    {
      look_at_starter (s);
      if (s->lost_at_ms != 0 && !s->lost)
        poll (NULL, 0, IDLE_MS);
    }
  td_control_where (&s->run, &s->last);
  if (td_rank_watch_reason (&s->ranks, reason, sizeof reason))
    td_recording_say (&s->recording, reason);
  else if (td_rank_watch_ended_by (&s->ranks) > 0)
    {
      snprintf (reason, sizeof reason, "the run was told to end (%s)",
                strsignal (td_rank_watch_ended_by (&s->ranks)));
      td_recording_note (&s->recording, reason);
    }
  td_recording_end (&s->recording, s->pid, s->status, s->killed_by_us);
  td__json_member_string (json, "event", "exited");
  td__json_member_int (json, "status", WIFEXITED (s->status) ? WEXITSTATUS (s->status) : -1);
  td__json_member_int (json, "signal", sig);
  td_control_server_notify (s->server, td__json_line_end (&line));
  if (sig != 0 && !s->killed_by_us && !s->told && !s->lost)
    {
      td__where_place (&s->last, place, sizeof place);
      fprintf (stderr, "tapedeck: model ended by signal %d (%s)%s\n", sig, strsignal (sig),
               place);
    }
  else if (!s->stopped_at_break && WIFEXITED (s->status) && !is_refused (s)
           && (WEXITSTATUS (s->status) == TD_EXIT_USAGE
               || WEXITSTATUS (s->status) == TD_EXIT_BREAK))
    fprintf (stderr, "tapedeck: model exited with %d\n", WEXITSTATUS (s->status));
}

static void
close_everything (Supervisor *s)
{
  td_control_server_free (s->server);
  td_recording_close (&s->recording);
  td_rank_watch_close (&s->ranks);
  if (s->run.model_fd >= 0)
    close (s->run.model_fd);
  if (s->signal_fd >= 0)
    close (s->signal_fd);
}

static void
block_signals (Supervisor *s)
{
  sigset_t set;

  sigemptyset (&set);
  sigaddset (&set, SIGCHLD);
  sigaddset (&set, SIGINT);
  sigaddset (&set, SIGTERM);
  sigaddset (&set, SIGHUP);
  sigaddset (&set, SIGQUIT);
  sigprocmask (SIG_BLOCK, &set, &s->old_signals);
  s->signal_fd = signalfd (-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* The control socket: where asked, else in the user's run-time folder. */
static void
open_control (Supervisor *s)
{
  char folder[4096];

  s->run.page
      = (TdControlPage *)(void *)((char *)s->recording.ring->shared + TD_CONTROL_OFFSET);
  s->run.ring = s->recording.ring;
  s->run.tape = s->options->own_tape != NULL ? s->options->own_tape : s->options->tape;
  s->run.program = s->options->name;
  s->run.stop = ask_to_stop;
  s->run.event = model_event;
  s->run.user = s;
  s->run.ranks = &s->ranks.where;
  if (s->options->control != NULL)
    snprintf (s->socket_path, sizeof s->socket_path, "%s", s->options->control);
  else if (td_runtime_folder (folder, sizeof folder))
    {
      td__runtime_clear (folder);
      snprintf (s->socket_path, sizeof s->socket_path, "%s/%ld.sock", folder, (long)getpid ());
    }
  mode_t old = umask (0177);
  s->server
      = td_control_server_new (s->socket_path[0] != '\0' ? s->socket_path : NULL, &s->run);
  umask (old);
}

/* What `tapedeck run` says of a run that has ended. */
static int
exit_status (const Supervisor *s)
{
  if (s->stopped_at_break)
    return TD_EXIT_BREAK;
  if (WIFSIGNALED (s->status))
    return 128 + WTERMSIG (s->status);
  if (s->recording.wrong[0] == '\0' || WEXITSTATUS (s->status) != 0)
    return WEXITSTATUS (s->status);
  fprintf (stderr, "tapedeck: %s: %s; the program itself ended with 0\n", s->options->tape,
           s->recording.wrong);
  return TD_EXIT_FINDING;
}

int
td_supervise (const TdSupervisorOptions *options)
{
  Supervisor s = { .options = options,
                   .signal_fd = -1,
                   .recording = { .tape_fd = -1, .cut_at = -1 },
                   .run = { .model_fd = -1 } };
  int status = TD_EXIT_USAGE;

  signal (SIGPIPE, SIG_IGN);
  signal (SIGXFSZ, SIG_IGN); /* a tape beyond the limit of file sizes is a full disk */
  block_signals (&s);
  bool open = td_recording_open_ring (&s.recording, options);
  if (open)
    open_control (&s);
  /* The socket comes before the tape: who sees the tape can connect. */
  if (open && td_recording_open_tape (&s.recording))
    {
      s.run.writer = s.recording.writer;
      s.run.assembler = s.recording.assembler;
      write_head (&s);
      td_rank_watch_open (&s.ranks, options, td_control_server_address (s.server));
      if (start_model (&s))
        {
          loop (&s);
          report_end (&s);
          status = exit_status (&s);
          td_rank_watch_end (
              &s.ranks, &s.last, status,
              s.stopped_at_break || !WIFSIGNALED (s.status) ? 0 : WTERMSIG (s.status));
        }
    }
  close_everything (&s);
  return status;
}
