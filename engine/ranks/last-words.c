/* What a process says that mpirun ends while it waits for the others: where it waited.  Of a
 * rank that dies nobody hears; mpirun ends the others with SIGTERM.
 *
 * SPDX-License-Identifier: MIT */
#include "comm.h"
#include "process.h"

#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

/* mpirun kills a second after it has asked. */
#define WORDS_AFTER_US 300000

static const TdComm *volatile waiting;
static volatile sig_atomic_t
    left; /* all communicators: the process is about to end by itself */

/* This process's parent, that one's, and so on: mpirun is among them. */
static pid_t above[16];

typedef struct
{
  char text[400];
  size_t n;
} Line;

/* A signal's handler may not print: put text together by hand. */
static void
put (Line *l, const char *text)
{
  for (; *text != '\0' && l->n < sizeof l->text - 1; text++)
    l->text[l->n++] = *text;
}

static void
put_number (Line *l, uint64_t number)
{
  char digits[24];
  size_t at = sizeof digits - 1;

  digits[at] = '\0';
  do
    digits[--at] = (char)('0' + number % 10);
  while ((number /= 10) > 0);
  put (l, digits + at);
}

static void
put_rank (Line *l, const TdComm *c)
{
  const TdWhere *where = td__watch_where ();

  put (l, "tapedeck: rank ");
  put_number (l, (uint64_t)(c != NULL ? c->rank : where->rank));
  put (l, " of ");
  put_number (l, (uint64_t)(c != NULL ? c->size : where->n));
  put (l, " is ended");
}

/* Of which rank's end is this one's, where its page or the kernel says so.  False: of none that
 * is known. */
static bool
put_reason (Line *l)
{
  const TdWhere *where = td__watch_where ();
  const int r = td__where_culprit (where);
  const TdWherePage *page = r >= 0 ? td__where_page (where, r) : NULL;

  if (page == NULL)
    return false;
  put (l, ": rank ");
  put_number (l, (uint64_t)r);
  if (atomic_load (&page->n_findings) > 0)
    put (l, " has waited in vain, and said for whom");
  else if (!atomic_load (&page->ended))
    put (l, " has died");
  else
    {
      put (l, page->signal != 0 ? " was ended by signal " : " has ended with status ");
      put_number (l, (uint64_t)(page->signal != 0 ? page->signal : page->status));
    }
  return true;
}

static void
on_alarm (int number)
{
  (void)number;
  signal (SIGTERM, SIG_DFL);
  raise (SIGTERM);
}

/* Another handler's turn, in so many microseconds. */
static void
later (void (*handler) (int), suseconds_t us)
{
  struct sigaction then = { .sa_handler = handler };
  const struct itimerval in
      = { .it_value = { .tv_sec = us / 1000000, .tv_usec = us % 1000000 } };

  sigaction (SIGALRM, &then, NULL);
  setitimer (ITIMER_REAL, &in, NULL);
}

/* Where it waited, and whose end is this one's. */
static void
say_words (const TdComm *c)
{
  Line l = { .n = 0 };

  if (c != NULL)
    {
      put_rank (&l, c);
      put (&l, " while it waits for the others in ");
      put (&l, td__meet_name ((TdMeetKind)c->mine.kind));
      put (&l, " (call ");
      put_number (&l, c->mine.seq);
      if (c->mine.file[0] != '\0')
        {
          put (&l, ", ");
          put (&l, c->mine.file);
          put (&l, ":");
          put_number (&l, (uint64_t)c->mine.line);
        }
      put (&l, ")");
      if (!put_reason (&l))
        put (&l, ": one of them has died, or mpirun was told to stop");
    }
  else if (td__where_culprit (td__watch_where ()) >= 0)
    {
      put_rank (&l, NULL);
      put_reason (&l);
    }
  put (&l, l.n > 0 ? "\n" : "");
  if (l.n > 0 && write (STDERR_FILENO, l.text, l.n) < 0)
    _exit (128 + SIGTERM);
}

/* It ends of the signal, not by itself. */
static void
end_of_it (void)
{
  if (td__watch_where ()->pages != NULL)
    atomic_store (&td__where_page (td__watch_where (), td__watch_where ()->rank)->told, 1);
  say_words (waiting);
  signal (SIGTERM, SIG_DFL);
  raise (SIGTERM);
}

/* A process that has left all communicators ends by itself, with its own status, which may be
 * what the others end for: in a second, or of the signal. */
static void
on_late (int number)
{
  (void)number;
  if (waiting == NULL)
    later (on_alarm, 1000000 - WORDS_AFTER_US);
  else
    end_of_it ();
}

static bool
is_above (pid_t pid)
{
  for (int k = 0; k < TD_ARRAY_LENGTH (above) && above[k] > 1; k++)
    if (above[k] == pid)
      return true;
  return false;
}

/* In td_finish the others may have heard of this rank's end, ended of it and been the first
 * that mpirun heard of, before this one has heard of theirs: it is about to. */
static void
on_term (int number, siginfo_t *info, void *context)
{
  const TdComm *c = waiting;

  (void)context;
  if (!is_above (info->si_pid)) /* not mpirun, nor who supervises it for mpirun */
    {
      signal (number, SIG_DFL);
      raise (number);
    }
  else if (left && c == NULL)
    later (on_alarm, 1000000);
  else if (c != NULL && c->mine.kind == TD_MEET_FINISH)
    later (on_late, WORDS_AFTER_US);
  else
    end_of_it ();
}

void
td__last_words (const TdComm *comm)
{
  waiting = comm;
  if (comm != NULL)
    td__watch_enter (comm);
  else
    td__watch_leave ();
}

bool
td__last_words_due (void)
{
  return waiting != NULL;
}

void
td__last_words_left (void)
{
  left = 1;
}

/* ---- a program that goes on after an error ---- */

static struct sigaction fpe_before;

/* The size of no communicator is 0, which programs divide their batches by: MPI's library would
 * show a stack, and nobody why.  The division is made once more, of which the process ends. */
static void
on_division (int number, siginfo_t *info, void *context)
{
  const TdError *error = td_error ();
  Line l = { .n = 0 };

  (void)context;
  sigaction (number, &fpe_before, NULL);
  if (error != NULL)
    {
      put (&l, "tapedeck: ended by a division (no communicator has size 0) after an error: ");
      if (write (STDERR_FILENO, l.text, l.n) < 0
          || write (STDERR_FILENO, error->message, strlen (error->message)) < 0
          || write (STDERR_FILENO, "\n", 1) < 0)
        _exit (128 + number);
    }
  if (info->si_code <= 0) /* somebody has sent it */
    raise (number);
}

void
td__last_words_of_error (void)
{
  struct sigaction now, ours = { .sa_sigaction = on_division, .sa_flags = SA_SIGINFO };

  if (sigaction (SIGFPE, NULL, &now) == 0 && now.sa_sigaction != on_division
      && sigaction (SIGFPE, &ours, NULL) == 0)
    fpe_before = now;
}

/* 0: nobody knows. */
static pid_t
parent_of (pid_t pid)
{
  TdProcess process;

  return td__process_read ((int)pid, &process) ? (pid_t)process.parent : 0;
}

/* A program that handles the signal itself goes on doing so. */
void
td__last_words_start (void)
{
  struct sigaction now, ours = { .sa_sigaction = on_term, .sa_flags = SA_SIGINFO };

  left = 0;
  memset (above, 0, sizeof above);
  above[0] = getppid ();
  for (int k = 1; k < TD_ARRAY_LENGTH (above) && above[k - 1] > 1; k++)
    above[k] = parent_of (above[k - 1]);
  if (sigaction (SIGTERM, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
    sigaction (SIGTERM, &ours, NULL);
}
