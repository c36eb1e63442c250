/* A searcher: random programs around one static function, each run define by run, static as it
 * is by default, verified at every call, never verified, with other passes, under an observer,
 * recorded at each level, and stopped, saved and gone on with.  Every status, result, gradient
 * and weight must be the same, bit for bit.
 *
 * A program that fails is shrunk: what can be dropped while it still fails is dropped, and what
 * is left is printed with its seed.  Arguments: how many programs, and the first seed.
 * SPDX-License-Identifier: MIT */
#include "search-run.h"

#include "td-test.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum
{
  PROGRAMS = 2000,
  AT_ONCE = 50, /* by one process: half of a program's time would be the kernel's otherwise */
  MOST_TOLD = 5,
  MOST_BUSY = 120,   /* seconds of a processor for one program */
  MOST_WAITED = 1200 /* seconds: it may have been stopped for a while */
};

static const Mode modes[] = {
  { "define by run", false, -1, .observed = false },
  { "never verified", true, -1, .observed = false },
  { "verified", true, 1, .observed = false },
  { "verified, every third", true, 3, .observed = false },
  { "by default", true, 0, .observed = false },
  { "other passes", true, -1, .other_passes = true },
  { "observed", true, -1, .observed = true },
  { "recorded", true, 0, .recorded = true },
  { "recorded, define by run", false, -1, .recorded = true },
  { "stopped", true, 0, .stopped = true },
  { "stopped, define by run", false, -1, .stopped = true },
};

enum
{
  N_MODES = sizeof modes / sizeof *modes
};

/* What came of one program, in a process that may end by it: what crashes or hangs fails, too.
 */
typedef struct
{
  bool fails;
  int mode; /* that came to an end, or did not */
  Note where;
  uint64_t n_replays, n_expected_errors, n_refused;
} Outcome;

/* What the process writes: before each way, in case that it does not come back, and at the end.
 */
typedef struct
{
  Outcome outcome;
  bool ended;
} Said;

static Outcome all; /* of all programs: their counts */
static FILE *said;  /* stderr, which is the engine's own while programs run */

/* A number in C that changes is no guard's matter, but that of who verifies every call. */
static bool
changes_hidden (const Program *p)
{
  bool reads = false, changes = false;

  for (int i = 0; i < p->n; i++)
    reads |= p->list[i].kind == HIDDEN_SCALE || p->list[i].kind == OWN_HIDDEN;
  for (int i = 0; i < p->n_events; i++)
    changes |= p->events[i].kind == HIDDEN_CHANGES;
  return reads && changes;
}

/* A backward that was not traced yet needs what the function was given, also where the code's
 * own graph keeps none of it: an error that names the write, and no wrong number.  The two go
 * apart from there. */
static bool
refused_for_a_write (const Program *p, const Note *a, const Note *b)
{
  bool writes = false;

  for (int k = WRITE_RESULT; k <= WRITE_PARAMETER; k++)
    writes |= program_has (p, (EventKind)k, a->iteration);
  if (!writes || a->hash != 1 || b->hash != 2 || strcmp (a->what, b->what) != 0)
    return false;
  return true;
}

/* Compare two ways, up to where they go apart as they may. */
static void
compare (const Run *a, const Run *b, Outcome *o)
{
  const int n = a->n_notes < b->n_notes ? a->n_notes : b->n_notes;
  const bool hidden = changes_hidden (a->p);

  for (int k = 0; k < n && !o->fails; k++)
    {
      const Note *x = &a->notes[k], *y = &b->notes[k];

      if (refused_for_a_write (a->p, x, y))
        {
          o->n_refused++;
          return;
        }
      if (hidden && strcmp (x->what, "differences") == 0)
        continue;
      o->fails = strcmp (x->what, y->what) != 0 || x->hash != y->hash
                 || x->iteration != y->iteration;
      o->where = *y;
    }
  if (o->fails || a->n_notes == b->n_notes)
    return;
  o->fails = true;
  o->where = a->notes[n > 0 ? n - 1 : 0];
}

/* Recording costs ten times what the rest does: a quarter of the programs.  Half of them go on
 * from a file statically. */
static bool
is_run (const Program *p, const Mode *m)
{
  if (changes_hidden (p) && m->is_static && m->verify != 1)
    return false;
  if (m->recorded && (p->seed % 4 != 0 || m->is_static != (p->seed / 4 % 2 == 0)))
    return false;
  return !m->stopped || m->is_static == (p->seed % 2 == 0);
}

static Outcome
run_all (const Program *p, FILE *tells, int report)
{
  static Note rooms[2][MAX_NOTES];
  Run dynamic = { .notes = rooms[0], .tells = tells };
  Run other = { .notes = rooms[1], .tells = tells };
  Outcome o = { .fails = false };

  run_program (p, &modes[0], &dynamic);
  for (int k = 0; k < dynamic.n_notes; k++)
    o.n_expected_errors += dynamic.notes[k].hash == 2;
  for (int m = 1; m < N_MODES && !o.fails; m++)
    if (is_run (p, &modes[m]))
      {
        o.mode = m;
        if (write (report, &(Said){ o, false }, sizeof (Said)) != sizeof (Said))
          _exit (1);
        run_program (p, &modes[m], &other);
        o.n_replays += other.n_replays;
        compare (&dynamic, &other, &o);
      }
  return o;
}

/* What a process of its own says of n programs, up to the first that does not come to its end;
 * returns how many came. */
static unsigned
outcomes (const Program *programs, unsigned n, FILE *tells, Outcome *of)
{
  Said next;
  int ends[2], status = 0;
  unsigned n_ended = 0;
  pid_t child;

  if (pipe (ends) != 0 || (child = fork ()) < 0)
    abort ();
  if (child == 0)
    {
      for (unsigned k = 0; k < n; k++)
        {
          setitimer (ITIMER_PROF, &(struct itimerval){ .it_value.tv_sec = MOST_BUSY }, NULL);
          alarm (MOST_WAITED);
          next = (Said){ run_all (&programs[k], tells, ends[1]), true };
          if (write (ends[1], &next, sizeof next) != sizeof next)
            _exit (1);
        }
      _exit (0);
    }
  close (ends[1]);
  while (n_ended < n && read (ends[0], &next, sizeof next) == sizeof next)
    {
      of[n_ended] = next.outcome;
      n_ended += next.ended;
    }
  close (ends[0]);
  waitpid (child, &status, 0);
  if (n_ended == n)
    return n;
  of[n_ended].fails = true;
  if (WIFSIGNALED (status))
    snprintf (of[n_ended].where.what, sizeof of->where.what, "signal %d", WTERMSIG (status));
  else
    snprintf (of[n_ended].where.what, sizeof of->where.what, "exit %d", WEXITSTATUS (status));
  return n_ended + 1;
}

static Outcome
outcome (const Program *p, FILE *tells)
{
  Outcome o = { .fails = true, .where = { "crashes", 0, 0 } };

  outcomes (p, 1, tells, &o);
  return o;
}

/* Drop what is not needed, until nothing can be dropped. */
static Outcome
shrink (Program *p)
{
  Program smaller;
  bool shrunk;

  do
    {
      shrunk = false;
      for (int k = 0; program_smaller (p, k, &smaller); k++)
        if (memcmp (p, &smaller, sizeof smaller) != 0 && outcome (&smaller, NULL).fails)
          {
            *p = smaller;
            shrunk = true;
            k--;
          }
    }
  while (shrunk);
  return outcome (p, said);
}

/* One that fails is shrunk and printed; one that fails no more is printed as it failed. */
static void
show_failure (Program p, unsigned number, const Outcome *failed)
{
  const Outcome now = shrink (&p), *o = now.fails ? &now : failed;

  fprintf (said, "program %u, %s: %s in iteration %d is not that of define by run%s\n", number,
           modes[o->mode].name, o->where.what, o->where.iteration,
           now.fails ? "" : " once, but it is when it runs again");
  program_print (said, &p);
}

/* What earlier searches found, each in its class. */
static const unsigned found[] = {
  7000346,  /* a subtrahend's gradient that was added to, then negated */
  30034938, /* NaNs of another sign, by the order of a sum */
  30041732, /* the same, in a gradient of a captured variable */
  52022921, /* a sum of gradients that hooks saw where it was not made in place */
  30051331, /* td_unchain after a write, and no backward */
  54012297, /* a variable of the program's own, written and not saved: the searcher's mistake */
};

static int
look_again (void)
{
  int n_failed = 0;

  for (size_t k = 0; k < sizeof found / sizeof *found; k++)
    {
      const Program p = program_generate (found[k]);
      const Outcome o = outcome (&p, NULL);

      if (o.fails)
        {
          n_failed++;
          show_failure (p, found[k], &o);
        }
    }
  return n_failed;
}

static int
search (unsigned first, unsigned n)
{
  int n_failed = 0;

  for (unsigned done = 0, n_run; done < n && n_failed < MOST_TOLD; done += n_run)
    {
      const unsigned n_next = n - done < AT_ONCE ? n - done : AT_ONCE;
      Program programs[AT_ONCE];
      Outcome of[AT_ONCE];

      for (unsigned k = 0; k < n_next; k++)
        {
          programs[k] = program_generate_more (first + done + k);
          of[k] = (Outcome){ .fails = true, .where = { "crashes", 0, 0 } };
        }
      n_run = outcomes (programs, n_next, NULL, of);
      for (unsigned k = 0; k < n_run; k++)
        {
          all.n_replays += of[k].n_replays;
          all.n_expected_errors += of[k].n_expected_errors;
          all.n_refused += of[k].n_refused;
          if (of[k].fails && ++n_failed <= MOST_TOLD)
            show_failure (programs[k], done + k + 1, &of[k]);
        }
    }
  printf ("%u programs from seed %u: %d failed; %llu replays, %llu errors that came in each, "
          "%llu writes refused\n",
          n, first, n_failed, (unsigned long long)all.n_replays,
          (unsigned long long)all.n_expected_errors, (unsigned long long)all.n_refused);
  return n_failed;
}

/* Engines come and go by the thousand: the kernel need not clear their pages anew each time. */
static void
keep_memory (void)
{
  prctl (PR_SET_THP_DISABLE, 1, 0, 0, 0);
  mallopt (M_TRIM_THRESHOLD, 256 << 20);
  mallopt (M_MMAP_THRESHOLD, 64 << 20);
}

int
main (int argc, char **argv)
{
  const unsigned n = argc > 1 ? (unsigned)strtoul (argv[1], NULL, 10) : PROGRAMS;
  const unsigned first = argc > 2 ? (unsigned)strtoul (argv[2], NULL, 10) : 0;
  int failed;

  if (td_test_setup (NULL) != 0)
    return 1;
  run_files (td_test_tmp ("."));
  said = fdopen (dup (STDERR_FILENO), "w");
  if (said == NULL || freopen ("/dev/null", "w", stderr) == NULL)
    return 1;
  setvbuf (said, NULL, _IOLBF, BUFSIZ);
  keep_memory ();
  failed = (argc > 1 ? 0 : look_again ()) + search (first, n);
  if (all.n_replays < n) /* it looked at nothing */
    failed++;
  td_test_teardown (NULL);
  return failed > 0;
}
