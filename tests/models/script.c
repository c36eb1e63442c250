/* Stands in for Python in tests of `tapedeck run train.py`: it takes what the package takes,
 * writes a tape of one iteration and half of the next one, and goes as its script's first
 * argument says.
 *
 * SPDX-License-Identifier: MIT */
#include "td-producer.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static TdProducer *producer;
static int control = -1; /* to the supervisor */

/* --------------------------------------------------------------------------- recording */

static void
run_operation (uint32_t kind)
{
  const TdProducerOperation op = { .size = sizeof op, .kind = kind };

  td_producer_operation (producer, &op);
}

static void
flush (void *user)
{
  (void)user;
}

static int
read_variable (void *user, uint64_t variable, TdProducerArray *array)
{
  (void)user;
  (void)variable;
  (void)array;
  return 0;
}

static int
read_output (void *user, uint32_t i, TdProducerArray *array)
{
  return read_variable (user, i, array);
}

static void
listen_to_supervisor (void)
{
  const TdProducerCalls calls
      = { .size = sizeof calls, .flush = flush, .read = read_variable, .output = read_output };
  const char *fd = getenv ("TAPEDECK_CONTROL");

  if (fd != NULL)
    control = atoi (fd);
  td_producer_live (producer, &calls);
}

static bool
record (const char *tape, bool overwrite)
{
  const TdProducerOptions options
      = { .size = sizeof options, .path = tape, .producer = "test", .overwrite = overwrite };
  char error[256];
  uint32_t kind;

  producer = td_producer_new (&options, error, sizeof error);
  if (producer == NULL)
    {
      fprintf (stderr, "tapedeck: %s\n", error);
      return false;
    }
  listen_to_supervisor ();
  kind = td_producer_kind (producer, "relu", NULL, NULL);
  td_producer_begin (producer, 0, 0);
  run_operation (kind);
  td_producer_end_iteration (producer, 0);
  td_producer_begin (producer, 0, 0);
  run_operation (kind);
  return true;
}

/* ------------------------------------------------------------------------------- going */

static void
by_signal (const char *number)
{
  raise (atoi (number));
}

static void
without_end (const char *status)
{
  _exit (atoi (status));
}

static void
with_end (const char *status)
{
  td_producer_end (producer, atoi (status));
  td_producer_free (producer);
  exit (atoi (status));
}

static void
until_it_is_ended (const char *unused)
{
  (void)unused;
  for (;;)
    pause ();
}

static volatile sig_atomic_t terminated;

static void
note (int number)
{
  (void)number;
  terminated = 1;
}

/* As one that saves its weights, which takes longer than a model has for it. */
static void
saving_first (const char *unused)
{
  const struct timespec long_enough = { .tv_sec = 4 };
  sigset_t term, before;

  (void)unused;
  sigemptyset (&term);
  sigaddset (&term, SIGTERM);
  sigprocmask (SIG_BLOCK, &term, &before);
  signal (SIGTERM, note);
  td_producer_end_iteration (producer, 0); /* it can be told that it is as far */
  while (!terminated)
    sigsuspend (&before);
  nanosleep (&long_enough, NULL);
  with_end ("0");
}

static bool
has_state (pid_t pid, char state)
{
  char path[64], text[512] = "";
  const char *name_ends;
  FILE *f;

  snprintf (path, sizeof path, "/proc/%ld/stat", (long)pid);
  f = fopen (path, "r");
  if (f == NULL)
    return false;
  (void)!fread (text, 1, sizeof text - 1, f);
  fclose (f);
  name_ends = strrchr (text, ')');
  return name_ends != NULL && name_ends[2] == state;
}

/* Says that it has stopped at a breakpoint and ends, both before its supervisor looks up. */
static void
while_the_supervisor_sleeps (const char *status)
{
  static const char stopped[]
      = "! {\"event\":\"stopped\",\"reason\":\"relu\",\"where\":\"train.py:1\"}";
  const pid_t supervisor = getppid (), self = getpid ();

  kill (supervisor, SIGSTOP);
  while (!has_state (supervisor, 'T'))
    usleep (1000);
  (void)!write (control, stopped, sizeof stopped - 1);
  if (fork () != 0)
    _exit (atoi (status));
  while (!has_state (self, 'Z'))
    usleep (1000);
  kill (supervisor, SIGCONT);
  _exit (0);
}

static const struct
{
  const char *name;
  void (*go) (const char *argument);
} ways[] = {
  { "by-signal", by_signal },
  { "without-end", without_end },
  { "with-end", with_end },
  { "saving-first", saving_first },
  { "unseen", while_the_supervisor_sleeps },
  { "wait", until_it_is_ended },
};

int
main (int argc, char **argv)
{
  const char *tape = NULL;
  bool overwrite = false;
  int i = 1;

  for (; i < argc && strcmp (argv[i], "--") != 0; i++)
    if (strncmp (argv[i], "--tape=", 7) == 0)
      tape = argv[i] + 7;
    else if (strcmp (argv[i], "-f") == 0)
      overwrite = true;
  if (tape == NULL || i + 3 >= argc)
    return 99;
  if (!record (tape, overwrite))
    return 2;
  for (unsigned k = 0; k < sizeof ways / sizeof *ways; k++)
    if (strcmp (argv[i + 2], ways[k].name) == 0)
      ways[k].go (argv[i + 3]);
  return 98;
}
