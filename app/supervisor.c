/* The supervisor: see supervisor.h.
 *
 * The model is its first direct child, so that the end of the model is seen by waitpid,
 * whatever kills it.  One poll loop: the end of the model, signals for us, the control socket,
 * the ring. SPDX-License-Identifier: MIT */
#include "supervisor.h"

#include "command.h"
#include "control-server.h"
#include "paths.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
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
  MAX_SOURCE = 8 << 20
};

typedef struct
{
  const TdSupervisorOptions *options;
  char ring_path[4200], socket_path[4200];
  TdRing *ring;
  TdTapeWriter *writer;
  TdAssembler *assembler;
  TdControlServer *server;
  TdControlRun run;
  int signal_fd;
  sigset_t old_signals;
  pid_t pid;
  int status; /* of waitpid */
  bool ended, killed_by_us, stopped_at_break, said_disk;
  int64_t kill_at_ms; /* 0: no */
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

/* The process that records to this tape just now, 0: nobody. */
static int32_t
recorded_by (const char *ring_path)
{
  char error[256];
  TdRing *ring
      = access (ring_path, F_OK) == 0 ? td_ring_open (ring_path, error, sizeof error) : NULL;
  int32_t pid = ring != NULL ? atomic_load (&ring->shared->consumer_pid) : 0;

  td_ring_free (ring);
  return td_ring_alive (pid) ? pid : 0;
}

/* Make the ring (beside the tape, or in a private folder) and the tape. */
static bool
open_recording (Supervisor *s)
{
  const TdSupervisorOptions *o = s->options;
  char error[256], folder[4096];
  TdRingOptions ring_options = { .capacity = o->tape != NULL ? 0 : 65536,
                                 .level = o->level,
                                 .rank = o->rank,
                                 .n_ranks = o->n_ranks,
                                 .budget_bytes = o->budget_bytes,
                                 .values_bytes = o->values_bytes,
                                 .tape = o->tape };
  TdTapeWriterOptions options = { .size = sizeof options,
                                  .level = o->level,
                                  .path = o->tape,
                                  .overwrite = o->overwrite,
                                  .budget_bytes = o->budget_bytes,
                                  .values_bytes = o->values_bytes,
                                  .rank = o->rank,
                                  .n_ranks = o->n_ranks };

  if (o->tape != NULL && !o->overwrite && access (o->tape, F_OK) == 0)
    return complain (o->tape, "exists already; -f overwrites it");
  if (o->tape != NULL)
    {
      snprintf (s->ring_path, sizeof s->ring_path, "%s.ring", o->tape);
      if (recorded_by (s->ring_path) != 0)
        {
          s->ring_path[0] = '\0'; /* not ours to remove */
          return complain (o->tape, "another run is recording to it");
        }
    }
  else
    {
      if (!td_runtime_folder (folder, sizeof folder))
        return false;
      snprintf (s->ring_path, sizeof s->ring_path, "%s/%ld.ring", folder, (long)getpid ());
    }
  unlink (s->ring_path);
  s->ring = td_ring_new (s->ring_path, &ring_options, error, sizeof error);
  if (s->ring == NULL)
    return complain (o->tape != NULL ? o->tape : s->ring_path, error);
  td_ring_consume (s->ring);
  if (o->tape == NULL)
    return true;
  options.mono_ns = s->ring->shared->mono_ns;
  options.ticks = s->ring->shared->ticks;
  options.ns_per_tick = s->ring->shared->ns_per_tick;
  s->writer = td_tape_writer_new (&options, error, sizeof error);
  if (s->writer == NULL)
    return complain (o->tape, error);
  s->assembler = td_assembler_new (s->writer, s->ring->shared);
  return s->assembler != NULL;
}

/* What the tape says about the run before it begins. */
static void
write_head (const Supervisor *s)
{
  const TdSupervisorOptions *o = s->options;
  char text[4096] = "", *source;
  size_t used = 0;
  FILE *f;

  if (s->writer == NULL)
    return;
  for (int i = 0; o->argv[i] != NULL && used < sizeof text; i++)
    used += (size_t)snprintf (text + used, sizeof text - used, "%s%s", i > 0 ? " " : "",
                              i == 0 ? o->name : o->argv[i]);
  td_tape_writer_info (s->writer, "program", o->name);
  td_tape_writer_info (s->writer, "argv", text);
  td_tape_writer_info (s->writer, "device", o->device != NULL ? o->device : "cpu");
  td_tape_writer_info (s->writer, "version", TD_VERSION);
  if (getcwd (text, sizeof text) != NULL)
    td_tape_writer_info (s->writer, "cwd", text);
  if (gethostname (text, sizeof text) == 0)
    td_tape_writer_info (s->writer, "host", text);
  source = o->source != NULL ? malloc (MAX_SOURCE) : NULL;
  f = source != NULL ? fopen (o->source, "rb") : NULL;
  if (f != NULL)
    {
      td_tape_writer_source (s->writer, o->source, source, fread (source, 1, MAX_SOURCE, f));
      fclose (f);
    }
  free (source);
  td_tape_writer_flush (s->writer);
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

/* In the child: the environment the engine reads in td_init, then the program. */
static void
become_model (const Supervisor *s, int control_fd)
{
  static const char *const levels[] = { "graph", "stats", "values" };
  const TdSupervisorOptions *o = s->options;
  int ring_fd = open (s->ring_path, O_RDWR);

  put_number ("TAPEDECK_RING", ring_fd);
  put_number ("TAPEDECK_CONTROL", control_fd);
  fcntl (control_fd, F_SETFD, 0);
  put ("TAPEDECK_LEVEL", levels[o->level <= 2 ? o->level : 0]);
  put ("TAPEDECK_RECORD", o->tape != NULL ? "1" : "0");
  put ("TAPEDECK_BREAK", o->breaks);
  put ("TAPEDECK_DEVICE", o->device);
  put ("TAPEDECK_MEM_LIMIT", o->mem_limit);
  put ("TAPEDECK_SEED", o->seed);
  put ("TAPEDECK_ITERATIONS", o->iterations);
  put ("TAPEDECK_STATIC", o->statics);
  signal (SIGPIPE, SIG_DFL); /* what is ignored stays so across exec */
  signal (SIGXFSZ, SIG_DFL);
  sigprocmask (SIG_SETMASK, &s->old_signals, NULL);
  execvp (o->program, o->argv);
  int code = errno == ENOENT ? TD_EXIT_NOT_FOUND : TD_EXIT_NOT_EXECUTABLE;
  fprintf (stderr, "tapedeck: %s: %s\n", o->name, strerror (errno));
  _exit (code);
}

static bool
start_model (Supervisor *s)
{
  int pair[2];

  if (socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
    return complain ("socketpair", strerror (errno));
  fflush (NULL);
  s->pid = fork ();
  if (s->pid == 0)
    become_model (s, pair[1]);
  close (pair[1]);
  if (s->pid < 0)
    return complain ("fork", strerror (errno));
  s->run.model_fd = pair[0];
  s->run.model_pid = s->pid;
  return true;
}

static void
ask_to_stop (void *user)
{
  Supervisor *s = user;

  if (s->ended)
    return;
  s->killed_by_us = true;
  kill (s->pid, SIGTERM);
  if (atomic_load (
          &s->run.page->stopped)) /* it waits in the socket: only a signal reaches it */
    kill (s->pid, SIGCONT);
  s->kill_at_ms = now_ms () + KILL_AFTER_MS;
}

/* The text of a JSON string member, unescaped as far as our own writer escapes. */
static void
json_text (const char *json, const char *member, char *out, size_t size)
{
  char key[64];
  const char *at;
  size_t used = 0;

  snprintf (key, sizeof key, "\"%s\":\"", member);
  at = strstr (json, key);
  for (at = at != NULL ? at + strlen (key) : ""; *at != '\0' && *at != '"' && used + 1 < size;
       at++)
    {
      if (*at == '\\' && at[1] != '\0' && at[1] != 'u')
        at++;
      out[used++] = *at;
    }
  out[used] = '\0';
}

/* The model says something.  Without a client a stop is the end of the run. */
static void
model_event (void *user, const char *json)
{
  Supervisor *s = user;
  char where[512], reason[1024];

  if (strstr (json, "\"event\":\"stopped\"") == NULL || !s->options->exit_at_break
      || s->stopped_at_break)
    return;
  json_text (json, "where", where, sizeof where);
  json_text (json, "reason", reason, sizeof reason);
  s->stopped_at_break = true;
  if (s->assembler != NULL)
    td_assembler_drain (s->assembler, s->ring);
  fprintf (stderr, "tapedeck: stopped at %s: %s\n", where, reason);
  s->killed_by_us = true;
  kill (s->pid, SIGKILL);
}

static void
drain (Supervisor *s, size_t *n)
{
  const char *error;

  *n = s->assembler != NULL ? td_assembler_drain (s->assembler, s->ring) : 0;
  error = s->writer != NULL ? td_tape_writer_error (s->writer) : NULL;
  if (error != NULL && !s->said_disk)
    {
      s->said_disk = true;
      fprintf (stderr, "tapedeck: %s: %s; the program runs on unrecorded\n", s->options->tape,
               error);
      td_control_server_tell (s->server,
                              "{\"event\":\"notice\",\"text\":\"recording has stopped: "
                              "the tape cannot be written\"}");
    }
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
        kill (s->pid, (int)info.ssi_signo);
      /* A model may take its time over an interrupt, to save what it has. */
      if (s->kill_at_ms == 0 && info.ssi_signo == SIGTERM)
        s->kill_at_ms = now_ms () + KILL_AFTER_MS;
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
      drain (s, &drained);
      timeout = drained > 0 ? DRAIN_MS : IDLE_MS;
      if (wanted >= 0 && wanted < timeout)
        timeout = wanted;
      if (s->kill_at_ms > 0 && now_ms () >= s->kill_at_ms)
        {
          kill (s->pid, SIGKILL);
          s->kill_at_ms = now_ms () + KILL_AFTER_MS;
        }
      if (atomic_load (&s->ring->shared->producer_waits) != 0)
        timeout = 0;
    }
}

static void
report_end (Supervisor *s)
{
  char json[160], op[128], where[512];
  size_t drained;
  int sig = WIFSIGNALED (s->status) ? WTERMSIG (s->status) : 0;

  do
    drain (s, &drained);
  while (drained > 0);
  if (s->assembler != NULL)
    td_assembler_end (s->assembler, s->ring, s->status, s->killed_by_us);
  if (s->writer != NULL)
    td_tape_writer_flush (s->writer);
  snprintf (json, sizeof json, "{\"event\":\"exited\",\"status\":%d,\"signal\":%d}",
            WIFEXITED (s->status) ? WEXITSTATUS (s->status) : -1, sig);
  td_control_server_tell (s->server, json);
  if (sig != 0 && !s->killed_by_us)
    {
      td_control_now (&s->run, op, sizeof op, where, sizeof where);
      fprintf (stderr, "tapedeck: model ended by signal %d (%s) in %s at %s\n", sig,
               strsignal (sig), op, where);
    }
  else if (!s->stopped_at_break && WIFEXITED (s->status)
           && (WEXITSTATUS (s->status) == TD_EXIT_USAGE
               || WEXITSTATUS (s->status) == TD_EXIT_BREAK))
    fprintf (stderr, "tapedeck: model exited with %d\n", WEXITSTATUS (s->status));
}

static void
close_everything (Supervisor *s)
{
  td_control_server_free (s->server);
  td_assembler_free (s->assembler);
  td_tape_writer_free (s->writer);
  if (s->run.model_fd >= 0)
    close (s->run.model_fd);
  if (s->ring != NULL)
    {
      td_ring_free (s->ring);
      unlink (s->ring_path); /* drained: the tape has it all */
    }
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

  s->run.page = (TdControlPage *)(void *)((char *)s->ring->shared + TD_CONTROL_OFFSET);
  s->run.ring = s->ring;
  s->run.assembler = s->assembler;
  s->run.writer = s->writer;
  s->run.tape = s->options->tape;
  s->run.program = s->options->name;
  s->run.stop = ask_to_stop;
  s->run.event = model_event;
  s->run.user = s;
  if (s->options->control != NULL)
    snprintf (s->socket_path, sizeof s->socket_path, "%s", s->options->control);
  else if (td_runtime_folder (folder, sizeof folder))
    snprintf (s->socket_path, sizeof s->socket_path, "%s/%ld.sock", folder, (long)getpid ());
  mode_t old = umask (0177);
  s->server
      = td_control_server_new (s->socket_path[0] != '\0' ? s->socket_path : NULL, &s->run);
  umask (old);
}

int
td_supervise (const TdSupervisorOptions *options)
{
  Supervisor s = { .options = options, .signal_fd = -1, .run = { .model_fd = -1 } };
  int status = TD_EXIT_USAGE;

  signal (SIGPIPE, SIG_IGN);
  signal (SIGXFSZ, SIG_IGN); /* a tape beyond the limit of file sizes is a full disk */
  block_signals (&s);
  if (open_recording (&s))
    {
      open_control (&s);
      write_head (&s);
      if (start_model (&s))
        {
          loop (&s);
          report_end (&s);
          status = s.stopped_at_break       ? TD_EXIT_BREAK
                   : WIFEXITED (s.status)   ? WEXITSTATUS (s.status)
                   : WIFSIGNALED (s.status) ? 128 + WTERMSIG (s.status)
                                            : TD_EXIT_FINDING;
        }
    }
  close_everything (&s);
  return status;
}
