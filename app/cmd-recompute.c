/* `tapedeck recompute`: an iteration that was recorded, run again for its values.
 *
 * SPDX-License-Identifier: MIT */
#define TD_NO_SITES
#include "command.h"

#include "tapedeck.h"

#include "record/recompute.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[]
    = "Usage: tapedeck recompute TAPE --iteration N -o OUT [-f] [--progress] [--quiet]\n"
      "\n"
      "Run the operations of iteration N again, on the host, and write the tape OUT of that "
      "one\n"
      "iteration, with the elements of every array.  N must be a keyframe (tapedeck run "
      "--help):\n"
      "then TAPE has the weights, the batch and all else that came from outside.  The program\n"
      "is not run.  Each result is compared with what TAPE "
      "has\n"
      "of it; the first that differs is named.\n"
      "\n"
      "  --iteration N  which one\n"
      "  -o OUT         the new tape; -f overwrites an older one\n"
      "  --progress     print \"DONE of ALL\" events on standard output, a line each\n"
      "  --quiet        print nothing when all is equal\n"
      "\n"
      "SIGINT and SIGTERM end it, and leave no OUT.\n"
      "Exit status: 0 all is equal; 1 something differs, or the iteration cannot be run "
      "again;\n"
      "2 wrong usage, a file that cannot be read or written.\n"
      "The man page is tapedeck-recompute(1).";

static volatile sig_atomic_t cancelled;

static void
on_signal (int number)
{
  cancelled = number;
}

typedef struct
{
  TdRecomputeOptions options;
  bool has_iteration, progress, quiet, help;
} Request;

static bool
parse_number (const char *text, uint64_t *number)
{
  char *end;

  *number = strtoull (text, &end, 10);
  return text[0] >= '0' && text[0] <= '9' && *end == '\0' && strlen (text) < 20;
}

static int
parse (int argc, char **argv, Request *r)
{
  for (int i = 1; i < argc; i++)
    {
      const char *arg = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;

      if (strcmp (arg, "--help") == 0)
        r->help = true;
      else if (strcmp (arg, "-f") == 0)
        r->options.overwrite = true;
      else if (strcmp (arg, "--progress") == 0)
        r->progress = true;
      else if (strcmp (arg, "--quiet") == 0)
        r->quiet = true;
      else if (strcmp (arg, "-o") == 0 && value != NULL)
        r->options.out = argv[++i];
      else if (strcmp (arg, "--iteration") == 0
               && (value == NULL || !parse_number (value, &r->options.iteration)))
        return td_usage_error (argv[0], "--iteration %s: a number expected",
                               value != NULL ? value : "");
      else if (strcmp (arg, "--iteration") == 0)
        r->has_iteration = ++i > 0;
      else if (arg[0] == '-' && arg[1] != '\0')
        return td_usage_error (argv[0], "%s: no such option, or its value is missing", arg);
      else if (r->options.tape != NULL)
        return td_usage_error (argv[0], "%s: one tape expected", arg);
      else
        r->options.tape = arg;
    }
  if (r->help)
    return TD_EXIT_OK;
  if (r->options.tape == NULL)
    return td_usage_error (argv[0], "a tape expected");
  if (!r->has_iteration)
    return td_usage_error (argv[0], "--iteration N expected");
  if (r->options.out == NULL)
    return td_usage_error (argv[0], "-o OUT expected");
  return td_refuse_standard_output (argv[0], "-o", r->options.out);
}

static void
print_progress (void *user, uint32_t done, uint32_t n)
{
  (void)user;
  printf ("%" PRIu32 " of %" PRIu32 "\n", done, n);
  fflush (stdout);
}

static int
say (const Request *r, TdRecomputeOutcome outcome, const TdRecomputeResult *result)
{
  switch (outcome)
    {
    case TD_RECOMPUTE_EQUAL:
      if (!r->quiet)
        printf ("%" PRIu32 " events run again; %" PRIu32 " arrays compared by their "
                "statistics, %" PRIu32 " by all their elements: all equal\n",
                result->n_events, result->n_compared, result->n_bitwise);
      return TD_EXIT_OK;
    case TD_RECOMPUTE_DIFFERS:
      fprintf (stderr, "tapedeck: %s (%" PRIu32 " in all)\n", result->text, result->n_differ);
      return TD_EXIT_FINDING;
    case TD_RECOMPUTE_REFUSED:
      fprintf (stderr, "tapedeck: cannot be recomputed: %s\n", result->text);
      return TD_EXIT_FINDING;
    case TD_RECOMPUTE_CANCELLED:
      fputs ("tapedeck: recompute: cancelled; nothing was written\n", stderr);
      return 128 + cancelled;
    default:
      fprintf (stderr, "tapedeck: %s\n", result->text);
      return TD_EXIT_USAGE;
    }
}

/* The environment is the caller's: what is run here is not to be recorded. */
static void
forget_recorder (void)
{
  static const char *const names[]
      = { "TAPEDECK_RING",   "TAPEDECK_CONTROL",    "TAPEDECK_TAPE",
          "TAPEDECK_DEVICE", "TAPEDECK_ITERATIONS", "TAPEDECK_DEBUG" };

  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    unsetenv (names[i]);
}

int
td_command_recompute (int argc, char **argv)
{
  const struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
  Request r = { 0 };
  TdRecomputeResult result;
  TdRecomputeOutcome outcome;
  int status = parse (argc, argv, &r);

  if (status != TD_EXIT_OK)
    return status;
  if (r.help)
    return puts (help), TD_EXIT_OK;
  forget_recorder ();
  sigaction (SIGINT, &action, NULL);
  sigaction (SIGTERM, &action, NULL);
  if (td_init (NULL, NULL) != TD_OK)
    return td_finish ();
  r.options.cancel = &cancelled;
  r.options.progress = r.progress ? print_progress : NULL;
  outcome = td_recompute (&r.options, &result);
  td_finish ();
  return say (&r, outcome, &result);
}
