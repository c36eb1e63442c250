/* Shows tapes that may be anything: each view of tapedeck show, diff with the good tape, and
 * leaks, in text, JSON and SVG, on a good tape that was damaged behind right check sums.  Each
 * prints something or says in one line what is wrong. SPDX-License-Identifier: MIT */
#include "tape-damage.h"

#include "viz-commands.h"

#include <unistd.h>

static char path[64], out[80], *good_path;

gboolean
td__viz_write_text (const char *name, const char *text, const char *format, GError **error)
{
  if (!text)
    abort ();
  fuzz_write (name, text, strlen (text));
  return TRUE;
}

static void
show (uint32_t which)
{
  static const char *const views[]
      = { "graph",  "backward", "curves",    "memory",   "blocks",  "holders",
          "growth", "retained", "gradients", "schedule", "timeline" };
  static const char *const formats[]
      = { "text", "json", "text", "json", "text", "json", "svg" };
  const uint32_t n = G_N_ELEMENTS (views), view = which % (n + 2);
  char *argv[] = { (char *)"show",
                   path,
                   (char *)"--view",
                   (char *)views[view % n],
                   (char *)"-o",
                   out,
                   (char *)"--format",
                   (char *)formats[fuzz_below (7)],
                   NULL };
  char *two[] = { (char *)"diff", path, good_path, NULL };
  char *one[] = { (char *)"leaks", path, NULL };

  if (view < n)
    td_viz_show (8, argv);
  else if (view == n)
    td_viz_diff (3, two);
  else
    td_viz_leaks (2, one);
}

int
main (int argc, char **argv)
{
  const int rounds = fuzz_rounds (150);
  uint8_t *good, *bad;
  size_t n;

  if (argc != 2)
    {
      fprintf (stderr, "usage: views TAPE\n");
      return 2;
    }
  g_log_set_always_fatal (G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_WARNING);
  good_path = argv[1];
  if (freopen ("/dev/null", "w", stdout) == NULL) /* diff and leaks print there */
    return 2;
  snprintf (path, sizeof path, "/dev/shm/td-fuzz-views-%ld", (long)getpid ());
  snprintf (out, sizeof out, "%s.out", path);
  good = fuzz_read (good_path, &n, 1 << 24);
  bad = malloc (n);
  if (bad == NULL)
    return 2;
  fuzz_write (path, good, n);
  for (uint32_t view = 0; view < 13; view++)
    show (view);
  for (int i = 0; i < rounds; i++)
    {
      tape_damage (good, n, bad);
      fuzz_write (path, bad, n);
      show ((uint32_t)i);
    }
  unlink (path);
  unlink (out);
  fprintf (stderr, "%d damaged tapes were looked at\n", rounds);
  free (good);
  free (bad);
  return 0;
}
