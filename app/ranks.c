/* Several ranks by mpirun: see ranks.h.  SPDX-License-Identifier: MIT */
#include "ranks.h"

#include "command.h"
#include "mpirun.h"
#include "plural.h"
#include "python.h"
#include "rank-lines.h"
#include "whereabouts.h"

#include "td-tape-reader.h"
#include "td-tape-writer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum
{
  MOST_ARGUMENTS = 40, /* of ours, before the model's */
  GRACE_MS = 500,      /* for output that comes after the end of mpirun */
  TAPES_MS = 5000      /* and for tapes */
};

typedef struct
{
  const TdRanksOptions *options;
  char folder[PATH_MAX], own[4200], tapes[4200];
  TdWhere where;
  int version;  /* of mpirun */
  bool crowded; /* more ranks than processors */
  char **argv;
  pid_t pid;
  int status;       /* of waitpid */
  int ended_by;     /* a signal to us; 0: none */
  int64_t ended_ns; /* and when */
  int signal_fd;
  sigset_t old_signals;
  int out, err; /* what mpirun writes */
  TdRankLines *lines[2];
} Launch;

void
td_rank_tape (const char *folder, int rank, char *out, unsigned long size)
{
  snprintf (out, size, "%s/rank-%d.tdtape", folder, rank);
}

void
td_rank_board (const char *folder, char *out, unsigned long size)
{
  snprintf (out, size, "%s/" TD_WHERE_NAME, folder);
}

static bool
complain (const char *what, const char *why)
{
  fprintf (stderr, "tapedeck: %s: %s\n", what, why);
  return false;
}

/* --- the folder --- */

/* The rank whose tape that is; -1: it is none. */
static int
rank_of (const char *name)
{
  int rank = -1, n = 0;

  return sscanf (name, "rank-%d.tdtape%n", &rank, &n) == 1 && n > 0 && name[n] == '\0'
                 && rank >= 0
             ? rank
             : -1;
}

/* Tapes of another run: they are in the way, or, of more ranks than there are now, go. */
static bool
clear_tapes (const Launch *l)
{
  DIR *dir = opendir (l->folder);
  const struct dirent *entry;
  char path[PATH_MAX + 64], error[256];
  bool fine = true;

  if (dir == NULL)
    return complain (l->folder, strerror (errno));
  while (fine && (entry = readdir (dir)) != NULL)
    {
      const int rank = rank_of (entry->d_name);

      if (rank < 0)
        continue;
      td_rank_tape (l->folder, rank, path, sizeof path);
      if (!l->options->overwrite)
        fine = complain (path, "exists already; -f overwrites it");
      else if (!td_tape_may_replace (path, error, sizeof error))
        fine = complain (path, error);
      else if (rank >= l->options->n && unlink (path) != 0)
        fine = complain (path, strerror (errno));
    }
  closedir (dir);
  return fine;
}

/* "mlp.ranks" of "nets/mlp.c" */
static void
usual_folder (const char *model, char *out, size_t size)
{
  const char *slash = strrchr (model, '/'), *name = slash != NULL ? slash + 1 : model;
  const char *dot = strrchr (name, '.');

  snprintf (out, size, "%.*s.ranks",
            (int)(dot != NULL && dot != name ? (size_t)(dot - name) : strlen (name)), name);
}

/* Made here, and by each rank where it is not the same disk; by its whole name, for those who
 * start elsewhere. */
static bool
make_folder (Launch *l)
{
  char board[PATH_MAX + 64];

  if (l->options->folder != NULL)
    snprintf (l->tapes, sizeof l->tapes, "%s", l->options->folder);
  else
    usual_folder (l->options->model, l->tapes, sizeof l->tapes);
  if (mkdir (l->tapes, 0777) != 0 && errno != EEXIST)
    return complain (l->tapes, strerror (errno));
  if (realpath (l->tapes, l->folder) == NULL)
    return complain (l->tapes, strerror (errno));
  if (!clear_tapes (l))
    return false;
  td_rank_board (l->folder, board, sizeof board);
  unlink (board);
  return td__where_open_at (&l->where, board, -1, l->options->n, false)
         || complain (board, "cannot be written");
}

/* --- mpirun's arguments --- */

static int
n_processors (void)
{
  cpu_set_t set;

  return sched_getaffinity (0, sizeof set, &set) == 0 ? CPU_COUNT (&set) : 1;
}

/* What is asked for must be there: mpirun itself says it in a page. */
static bool
check_slots (Launch *l)
{
  const TdRanksOptions *o = l->options;
  const int n = n_processors ();
  long slots;

  if (o->hosts == NULL)
    {
      l->crowded = o->n > n;
      if (l->crowded && !o->quiet)
        fprintf (stderr,
                 "tapedeck: %d ranks on %d %s: they take turns (mpirun --oversubscribe)\n",
                 o->n, n, td_plural ((uint64_t)n, "processor", "processors"));
      return true;
    }
  if (!td_mpirun_hosts (o->hosts, &slots))
    return false;
  if (slots == 0 || o->n <= slots)
    return true;
  fprintf (stderr, "tapedeck: %s has %ld %s, and %d ranks are asked for\n", o->hosts, slots,
           td_plural ((uint64_t)slots, "slot", "slots"), o->n);
  return false;
}

static size_t
length (char **list)
{
  size_t n = 0;

  while (list[n] != NULL)
    n++;
  return n;
}

/* What mpirun is told before the program. Returns how many. */
static size_t
list_options (const Launch *l, const char *mpirun, const char **mine)
{
  const TdRanksOptions *o = l->options;
  static char number[16];
  size_t n = 0;

  snprintf (number, sizeof number, "%d", o->n);
  mine[n++] = mpirun;
  if (geteuid () == 0)
    mine[n++] = "--allow-run-as-root"; /* who is root here has said so by being it */
  mine[n++] = "-n";
  mine[n++] = number;
  mine[n++] = "--bind-to"; /* a rank has a supervisor, and threads */
  mine[n++] = "none";
  if (l->crowded)
    {
      mine[n++] = l->version == 4 ? "--oversubscribe" : "--map-by";
      if (l->version != 4)
        mine[n++] = ":OVERSUBSCRIBE";
    }
  if (o->hosts != NULL)
    {
      mine[n++] = "--hostfile";
      mine[n++] = o->hosts;
    }
  return n;
}

/* The program's own name says where it was compiled: the model is named, too, for the tape. */
static bool
build_arguments (Launch *l, const char *mpirun)
{
  const TdRanksOptions *o = l->options;
  const bool compiled = o->program != o->model;
  const char *mine[MOST_ARGUMENTS];
  size_t n = list_options (l, mpirun, mine), n_options = length (o->options),
         n_model = length (o->argv);

  mine[n++] = l->version == 4 ? "--tag-output" : "--output";
  mine[n++] = l->version == 4 ? "-q" : "tag";
  mine[n++] = l->own;
  mine[n++] = "run";
  mine[n++] = "--ranks-folder";
  mine[n++] = l->folder;
  if (compiled)
    {
      mine[n++] = "--source";
      mine[n++] = o->model;
    }
  l->argv = calloc (n + n_options + n_model + 2, sizeof *l->argv);
  if (l->argv == NULL)
    return complain ("tapedeck", strerror (ENOMEM));
  memcpy (l->argv, mine, n * sizeof *mine);
  memcpy (l->argv + n, o->options, n_options * sizeof *l->argv);
  n += n_options;
  l->argv[n++] = (char *)(uintptr_t) "--";
  l->argv[n++] = (char *)(uintptr_t)o->program;
  memcpy (l->argv + n, o->argv + 1, (n_model - 1) * sizeof *l->argv);
  return true;
}

/* -q, without which it has a page for every rank that fails, takes away why it starts none: it
 * is asked for that once more, with a program that does nothing. */
static void
say_refusal (const Launch *l)
{
  const char *mine[MOST_ARGUMENTS];
  size_t n = list_options (l, l->argv[0], mine);

  mine[n++] = "true";
  mine[n] = NULL;
  if (l->version == 4)
    td_mpirun_complain ((char **)mine);
}

/* --- while they run --- */

static bool
start (Launch *l)
{
  int out[2], err[2];
  sigset_t set;

  if (pipe2 (out, O_CLOEXEC) != 0 || pipe2 (err, O_CLOEXEC) != 0)
    return complain ("pipe", strerror (errno));
  sigemptyset (&set);
  sigaddset (&set, SIGCHLD);
  sigaddset (&set, SIGINT);
  sigaddset (&set, SIGTERM);
  sigaddset (&set, SIGHUP);
  sigprocmask (SIG_BLOCK, &set, &l->old_signals);
  l->signal_fd = signalfd (-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  fflush (NULL);
  l->pid = fork ();
  if (l->pid == 0)
    {
      prctl (PR_SET_PDEATHSIG, SIGTERM); /* nobody else would end the ranks */
      sigprocmask (SIG_SETMASK, &l->old_signals, NULL);
      dup2 (out[1], 1);
      dup2 (err[1], 2);
      /* else MPI's library opens the X display to look for GPUs, and a rank dies with it */
      setenv ("HWLOC_COMPONENTS", "-gl", 0);
      if (td_is_python (l->options->model) && l->options->hosts == NULL)
        td_python_meet ();
      execvp (l->argv[0], l->argv);
      _exit (errno == ENOENT ? TD_EXIT_NOT_FOUND : TD_EXIT_NOT_EXECUTABLE);
    }
  close (out[1]);
  close (err[1]);
  l->out = out[0];
  l->err = err[0];
  return l->pid > 0 || complain ("fork", strerror (errno));
}

/* One that is stopped, or whose supervisor is, would not hear that it is to end. */
static void
wake_ranks (const Launch *l)
{
  kill (l->pid, SIGCONT);
  for (int r = 0; r < l->options->n; r++)
    {
      const TdWherePage *p = td__where_page (&l->where, r);
      const int supervisor = atomic_load (&p->supervisor), pid = atomic_load (&p->pid);

      if (!td__where_is_here (&l->where, p) || atomic_load (&p->ended))
        continue;
      if (supervisor > 0)
        kill (supervisor, SIGCONT);
      if (pid > 0)
        kill (pid, SIGCONT);
    }
}

/* Ctrl+C reaches mpirun itself; what is sent to us alone is passed on. */
static void
pass_on (Launch *l, const struct signalfd_siginfo *info)
{
  if (info->ssi_code != SI_USER && info->ssi_signo == SIGINT)
    return;
  kill (l->pid, (int)info->ssi_signo);
  wake_ranks (l);
}

/* True: mpirun has ended. */
static bool
take_signals (Launch *l)
{
  struct signalfd_siginfo info;

  while (read (l->signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
    if (info.ssi_signo != SIGCHLD)
      {
        /* what ranks leave undone is no fault of theirs: it goes onto their tapes */
        l->ended_by = (int)info.ssi_signo;
        l->ended_ns = td__where_now ();
        atomic_store (&td__where_page (&l->where, 0)->ended_by, l->ended_by);
        pass_on (l, &info);
      }
  return waitpid (l->pid, &l->status, WNOHANG) == l->pid;
}

/* What a pipe has; closes it at its end. */
static void
take_output (int *fd, TdRankLines *lines)
{
  char bytes[65536];
  const ssize_t n = read (*fd, bytes, sizeof bytes);

  if (n > 0)
    td_rank_lines_take (lines, bytes, (size_t)n);
  if (n > 0 || (n < 0 && errno == EINTR))
    return;
  close (*fd);
  *fd = -1;
}

static void
loop (Launch *l)
{
  bool ended = false;

  while (!ended || l->out >= 0 || l->err >= 0)
    {
      struct pollfd fds[3]
          = { { l->signal_fd, POLLIN, 0 }, { l->out, POLLIN, 0 }, { l->err, POLLIN, 0 } };
      const int n = poll (fds, 3, ended ? GRACE_MS : -1);

      if (ended && n == 0)
        return; /* somebody who is none of ours has them open */
      if (fds[0].revents != 0 && !ended)
        ended = take_signals (l);
      if (fds[1].revents != 0)
        take_output (&l->out, l->lines[0]);
      if (fds[2].revents != 0)
        take_output (&l->err, l->lines[1]);
    }
}

/* mpirun ends before supervisors that it has killed the keepers of. */
static void
wait_for_tapes (const Launch *l)
{
  const struct timespec nap = { 0, 10000000 };
  bool all = false;

  for (int ms = 0; ms < TAPES_MS && !all; ms += 10)
    {
      all = true;
      for (int r = 0; r < l->options->n; r++)
        {
          const TdWherePage *page = td__where_page (&l->where, r);
          const int pid = atomic_load (&page->supervisor);

          all &= pid == 0 || !td__where_is_here (&l->where, page)
                 || (kill (pid, 0) != 0 && errno == ESRCH);
        }
      if (!all)
        nanosleep (&nap, NULL);
    }
}

/* --- the end --- */

static int
status_of (const TdWherePage *p)
{
  return p->signal != 0 ? 128 + p->signal : p->status;
}

/* The worst of those that mpirun did not end itself, and which rank's it is; -1: none's. */
static int
worst (const Launch *l, int *rank)
{
  const int of_mpirun
      = WIFSIGNALED (l->status) ? 128 + WTERMSIG (l->status) : WEXITSTATUS (l->status);
  int status = 0;

  *rank = -1;
  for (int r = 0; r < l->options->n; r++)
    {
      const TdWherePage *p = td__where_page (&l->where, r);

      if (!atomic_load (&p->ended) || atomic_load (&p->told) || status_of (p) <= status)
        continue;
      status = status_of (p);
      *rank = r;
    }
  return status != 0 ? status : of_mpirun;
}

/* mpirun tells all to end because of one: where the run itself was told nothing, and each rank
 * ended of a signal in a call that it waited in, it is the first that did; -1: nobody. */
static int
find_first (const Launch *l)
{
  int first = -1;

  for (int r = 0; r < l->options->n && l->ended_by == 0; r++)
    {
      const TdWherePage *p = td__where_page (&l->where, r);

      if (atomic_load (&p->ended) && p->signal != 0
          && (first < 0 || p->ended_ns < td__where_page (&l->where, first)->ended_ns))
        first = r;
    }
  return first;
}

/* Who ended while others were in a call for all ranks; -1: nobody. */
static int
find_early (const Launch *l)
{
  for (int r = 0; r < l->options->n; r++)
    {
      const TdWherePage *p = td__where_page (&l->where, r);

      if (atomic_load (&p->early) && !atomic_load (&p->told))
        return r;
    }
  return -1;
}

/* A script that did something else has a tape with nothing on it. */
static bool
has_recorded (const Launch *l, int rank)
{
  char path[PATH_MAX + 64], error[256];
  TdTapeReader *reader;
  bool some;

  td_rank_tape (l->folder, rank, path, sizeof path);
  reader = td_tape_reader_open (path, error, sizeof error);
  some = reader != NULL
         && (td_tape_reader_thinning (reader).n_iterations > 0
             || td_tape_reader_live (reader) != NULL);
  td_tape_reader_free (reader);
  return some;
}

/* How that rank ended, and who of those that ended well, without td_finish, was gone before:
 * of a script nobody knows more. */
static void
describe (const Launch *l, int rank, char *text, size_t size)
{
  const TdWherePage *last = td__where_page (&l->where, rank);
  size_t n;

  td__where_describe (&l->where, rank, text, size);
  for (int r = 0; r < l->options->n && last->signal == 0; r++)
    {
      const TdWherePage *p = td__where_page (&l->where, r);

      if (r == rank || !atomic_load (&p->ended) || atomic_load (&p->told) || status_of (p) != 0
          || p->ended_ns >= last->ended_ns || strcmp (p->call, "td_finish") == 0)
        continue;
      n = strlen (text);
      snprintf (text + n, size - n, "; rank %d had ended before, with status 0%s", r,
                has_recorded (l, r) ? "" : " and nothing on its tape");
    }
}

/* Whatever ranks did when they were told to end, unless one had failed before. */
static bool
is_told (const Launch *l, int rank)
{
  return l->ended_by != 0
         && (rank < 0 || td__where_page (&l->where, rank)->ended_ns >= l->ended_ns);
}

/* Nothing says that a rank was: what they do without mpirun is no fault of theirs. */
static bool
is_lost (const Launch *l, int rank)
{
  return WIFSIGNALED (l->status) && l->ended_by == 0 && rank < 0;
}

/* One line: how it ended, and where the tapes are.  Returns the status: what the line says went
 * wrong is not 0. */
static int
report (const Launch *l)
{
  const int n = l->options->n;
  char text[TD_WHERE_LINE] = "";
  int n_begun = 0, found = -1, rank, status = worst (l, &rank);

  for (int r = 0; r < n; r++)
    {
      n_begun += atomic_load (&td__where_page (&l->where, r)->pid) != 0;
      if (found < 0 && atomic_load (&td__where_page (&l->where, r)->n_findings) > 0)
        found = r;
    }
  if (status <= 1 && find_early (l) >= 0) /* the others fail because of it */
    rank = find_early (l);
  if (rank < 0)
    rank = td__where_culprit (&l->where);
  if (rank < 0 && n_begun == n && status != 0 && !is_lost (l, rank))
    rank = find_first (l);
  if (found >= 0 && status != 0)
    snprintf (text, sizeof text, "rank %d has waited for another in vain (above)", found);
  else if (status != 0 && is_told (l, rank))
    {
      snprintf (text, sizeof text, "told to end by signal %d (%s)", l->ended_by,
                strsignal (l->ended_by));
      status = 128 + l->ended_by;
    }
  else if (is_lost (l, rank))
    snprintf (text, sizeof text, "mpirun was ended by signal %d (%s), and all ranks with it",
              WTERMSIG (l->status), strsignal (WTERMSIG (l->status)));
  else if (rank >= 0)
    describe (l, rank, text, sizeof text);
  else if (n_begun < n && n > 1) /* one alone has nobody to tell */
    {
      if (n_begun == 0)
        say_refusal (l);
      snprintf (text, sizeof text, "%d of %d ranks have begun (mpirun: status %d)", n_begun, n,
                status);
    }
  else if (status != 0)
    snprintf (text, sizeof text, "ended with status %d", status);
  if (status == 0 && text[0] != '\0')
    status = TD_EXIT_FINDING;
  if (status != 0)
    fprintf (stderr, "tapedeck: %d %s: %s; tapes in %s\n", n,
             td_plural ((uint64_t)n, "rank", "ranks"), text, l->tapes);
  else if (!l->options->quiet)
    fprintf (stderr, "tapedeck: %d %s ended well; tapes in %s\n", n,
             td_plural ((uint64_t)n, "rank", "ranks"), l->tapes);
  return status;
}

static bool
prepare (Launch *l)
{
  const char *mpirun = getenv ("TAPEDECK_MPIRUN");

  if (mpirun == NULL || *mpirun == '\0')
    mpirun = "mpirun";
  if (!td_own_folder (l->own, sizeof l->own - sizeof "/tapedeck"))
    return complain ("tapedeck", strerror (errno));
  strcat (l->own, "/tapedeck");
  if (!check_slots (l))
    return false;
  l->version = td_mpirun_version (mpirun);
  return l->version > 0 && make_folder (l) && build_arguments (l, mpirun);
}

int
td_run_ranks (const TdRanksOptions *options)
{
  Launch l = { .options = options, .signal_fd = -1, .out = -1, .err = -1 };
  int status = TD_EXIT_USAGE;

  if (prepare (&l))
    {
      l.lines[0] = td_rank_lines_new (options->n, STDOUT_FILENO, l.version > 4);
      l.lines[1] = td_rank_lines_new (options->n, STDERR_FILENO, l.version > 4);
      if (l.lines[0] != NULL && l.lines[1] != NULL && start (&l))
        {
          loop (&l);
          wait_for_tapes (&l);
          for (int i = 0; i < 2; i++)
            td_rank_lines_free (l.lines[i]);
          status = report (&l);
        }
    }
  if (l.where.pages != NULL)
    unlink (l.where.path);
  td__where_close (&l.where);
  free (l.argv);
  return status;
}
