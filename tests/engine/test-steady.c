/* 1,000 iterations of an example: after warm-up the bytes in use are the same, to the byte, at
 * the same mark of each iteration.  The mark is td_report ("loss", ...), the example is
 * compiled in.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void steady_report (const char *key, double value);

#define td_report steady_report
#define td_iter_epoch(iter) ((void)(iter), (int64_t)0) /* as long as it is let */
#define main example_main
int example_main (int argc, char **argv);
#include EXAMPLE
#undef main
#undef td_report
#undef td_iter_epoch

enum
{
  WARM_UP = 5,
  ITERATIONS = 1000
};

static int n_reports;
static TdMemInfo warm;

static void
steady_report (const char *key, double value)
{
  TdMemInfo now = td_mem_info (NULL);

  td_report (key, value);
  if (++n_reports == WARM_UP)
    warm = now;
  if (n_reports <= WARM_UP)
    return;
  if (now.live_bytes != warm.live_bytes || now.live_vars != warm.live_vars
      || now.live_nodes != warm.live_nodes || now.live_ops != warm.live_ops
      || memcmp (now.category_bytes, warm.category_bytes, sizeof now.category_bytes) != 0)
    {
      fprintf (stderr,
               "report %d: %zu bytes, %lld variables, %lld nodes, %lld operations; "
               "report %d had %zu, %lld, %lld, %lld\n",
               n_reports, now.live_bytes, (long long)now.live_vars, (long long)now.live_nodes,
               (long long)now.live_ops, WARM_UP, warm.live_bytes, (long long)warm.live_vars,
               (long long)warm.live_nodes, (long long)warm.live_ops);
      exit (9);
    }
}

/* td_finish ends the program when the engine has counted its iterations. */
static void
check_count (void)
{
  if (n_reports < ITERATIONS)
    {
      fprintf (stderr, "%d reports, %d expected\n", n_reports, ITERATIONS);
      _Exit (8);
    }
  printf ("%d iterations at %zu bytes\n", n_reports, warm.live_bytes);
}

int
main (int argc, char **argv)
{
  char program[] = "steady", limit[] = "--td-iterations=1000",
       *arguments[] = { argc > 0 ? argv[0] : program, limit, NULL, NULL, NULL };
  char n[] = "1000";

  unsetenv ("TAPEDECK_DATA");
  if (argc > 1) /* a text, read this often */
    {
      arguments[2] = argv[1];
      arguments[3] = n;
    }
  atexit (check_count);
  return example_main (argc > 1 ? 4 : 2, arguments);
}
