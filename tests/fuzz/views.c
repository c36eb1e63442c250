/* Shows tapes that may be anything: each view of tapedeck show, diff with the good tape, leaks
 * and export, in text, JSON and SVG, on a good tape that was damaged behind right check sums.
 * Each prints something or says in one line what is wrong. SPDX-License-Identifier: MIT */
#include "made-tape.h"
#include "tape-damage.h"

#include "command.h"
#include "td-session.h"
#include "viz-commands.h"

#define N_KEYS 64
#define N_NUMBERS 20
#define N_LOOKS 18 /* the views and three commands */

static char path[64], out[80], made[80], *good_path;
static char numbers[N_NUMBERS][12], keys[N_KEYS][20]; /* of iterations and variables */
static uint32_t n_numbers, n_keys;

gboolean
td__viz_write_text (const char *name, const char *text, const char *format, GError **error)
{
  if (!text)
    abort ();
  if (strcmp (name, "-") != 0)
    fuzz_write (name, text, strlen (text));
  return TRUE;
}

struct TdVizOutput
{
  const char *name, *format;
  GString *text;
};

TdVizOutput *
td__viz_output_begin (const char *name, const char *format)
{
  TdVizOutput *o = g_new (TdVizOutput, 1);

  *o = (TdVizOutput){ name, format, g_string_new (NULL) };
  return o;
}

void
td__viz_output_put (gpointer output, const char *text, gsize n)
{
  g_string_append_len (((TdVizOutput *)output)->text, text, (gssize)n);
}

gboolean
td__viz_output_end (TdVizOutput *o, gboolean whole, GError **error)
{
  if (whole)
    td__viz_write_text (o->name, o->text->str, o->format, error);
  g_string_free (o->text, TRUE);
  g_free (o);
  return whole;
}

int
td_usage_error (const char *command, const char *format, ...)
{
  abort (); /* there is nothing wrong with what it is asked */
}

/* What can be asked of the good tape: its iterations, so that one is looked at in which a NaN
 * begins, and the variables of the last that has some. */
static void
look_at_good (void)
{
  g_autoptr (GError) error = NULL;
  TdSession *session = td_session_open (good_path, &error);
  const TdTapeSummaries s = session ? td_tape_reader_summaries (td_session_get_reader (session))
                                    : (TdTapeSummaries){ 0 };

  for (uint32_t i = s.n; i-- > 0 && n_numbers < N_NUMBERS;)
    {
      TdIteration *it = td_session_load_iteration (session, (gint64)s.rows[i].number, NULL);
      const TdTapeIteration *tape = it ? td_iteration_get_tape (it) : NULL;

      snprintf (numbers[n_numbers++], sizeof numbers[0], "%u", (guint)s.rows[i].number);
      for (uint32_t v = 0; n_keys < N_KEYS && tape && v < tape->n_vars; v++)
        snprintf (keys[n_keys++], sizeof keys[0], "%" G_GINT64_MODIFIER "x", tape->vars[v].key);
      g_clear_pointer (&it, td_iteration_unref);
    }
  if (n_keys == 0)
    g_error ("%s: %s", good_path, error ? error->message : "no variables on it");
  g_object_unref (session);
}

static void
export_it (void)
{
  static char *formats[] = { (char *)"torch-snapshot", (char *)"chrome", (char *)"perfetto" };
  char *argv[] = { (char *)"export", path, (char *)"--format", NULL, (char *)"-o", out, NULL,
                   (char *)"1",      NULL };
  const uint32_t format = fuzz_below (3);

  argv[3] = formats[format];
  argv[6] = format == 0 && fuzz_below (4) == 0 ? (char *)"--device" : NULL;
  td_command_export (argv[6] != NULL ? 8 : 6, argv);
}

static void
show (uint32_t which)
{
  static const char *const views[]
      = { "graph",   "backward", "curves",   "memory",    "blocks",
          "holders", "growth",   "retained", "gradients", "schedule",
          "explain", "timeline", "tensor",   "origin",    "flame" };
  static const char *const formats[] = { "text", "json", "csv", "text", "json", "csv", "svg" };
  const uint32_t n = G_N_ELEMENTS (views), view = which % N_LOOKS;
  char *argv[] = { (char *)"show",
                   path,
                   (char *)"--view",
                   (char *)views[view % n],
                   (char *)"-o",
                   out,
                   (char *)"--format",
                   (char *)formats[fuzz_below (7)],
                   (char *)"--iteration",
                   numbers[fuzz_below (n_numbers)],
                   (char *)"--node",
                   keys[fuzz_below (n_keys)],
                   NULL };
  char *two[] = { (char *)"diff", path, good_path, NULL };
  char *one[] = { (char *)"leaks", path, NULL };

  g_assert (n + 3 == N_LOOKS);
  if (view < n)
    td_viz_show (fuzz_below (4) == 0 ? 8 : strcmp (views[view], "tensor") == 0 ? 12 : 10, argv);
  else if (view == n)
    td_viz_diff (3, two);
  else if (view == n + 1)
    td_viz_leaks (2, one);
  else
    export_it ();
}

int
main (int argc, char **argv)
{
  const int rounds = fuzz_rounds (150);
  uint8_t *good, *bad;
  size_t n;

  if (argc > 2)
    {
      fprintf (stderr, "usage: views [TAPE]\n");
      return 2;
    }
  g_log_set_always_fatal (G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_WARNING);
  snprintf (made, sizeof made, "/dev/shm/td-fuzz-views-%ld.made", (long)getpid ());
  if (argc == 1)
    make_tape (made);
  good_path = argc == 1 ? made : argv[1];
  look_at_good ();
  if (freopen ("/dev/null", "w", stdout) == NULL) /* diff and leaks print there */
    return 2;
  snprintf (path, sizeof path, "/dev/shm/td-fuzz-views-%ld", (long)getpid ());
  snprintf (out, sizeof out, "%s.out", path);
  good = fuzz_read (good_path, &n, 1 << 24);
  bad = malloc (n);
  if (bad == NULL)
    return 2;
  fuzz_write (path, good, n);
  for (uint32_t view = 0; view < N_LOOKS; view++)
    show (view);
  for (int i = 0; i < rounds; i++)
    {
      tape_damage (good, n, bad);
      fuzz_write (path, bad, n);
      show ((uint32_t)i);
    }
  unlink (path);
  unlink (out);
  unlink (made);
  fprintf (stderr, "%d damaged tapes were looked at\n", rounds);
  free (good);
  free (bad);
  return 0;
}
