/* Reads texts that may be anything through the readers of viz: graphs in DOT (laid out and
 * drawn as text), the notebook of a recording, names of weights with their table, and of the
 * settings rules for gradients and ranges.  Each is read or refused with one line.
 * SPDX-License-Identifier: MIT */
#include "mutate.h"

#include "diff/td-weights.h"
#include "gradient/td-gradient-rules.h"
#include "scene/td-dot.h"
#include "tape/td-notebook.h"
#include "tape/td-range.h"

#include <glib/gstdio.h>
#include <math.h>
#include <unistd.h>

static const char *const graphs[] = {
  "digraph g { rankdir=TB; subgraph cluster_0 { label=\"l1\"; a [label=\"x: 4, 3\\nfloat32\", "
  "shape=octagon, style=\"filled\", fillcolor=\"#aabbcc\"]; } b [label=matmul]; a -> b -> c; }",
  "strict digraph \"two \\\"words\\\"\" { // comment\n node [shape=box]; 1 -> 2 -> n3 [x=y];\n"
  " n3 [label=plain]; edge [a=b]; subgraph s { 4; 5 -> 4 } }",
  "graph { a -- b -- a; a [label=\"\xe2\x82\xac\"]; rankdir = LR }",
};

static const char notebook[]
    = "[recording]\nuuid=000102030405060708090a0b0c0d0e0f\n\n[note 1]\niteration=3\nevent=12\n"
      "text=the loss \\n jumps here\n\n[note 2]\niteration=-1\nevent=99999999999\ntext=x\n\n"
      "[watch 1]\nkey=00ff00ff00ff00ff\nname=conv1/W\n\n[watch 2]\nkey=1\nname=\xe2\x82\xac\n";

static const char *const ranges[] = { "10..40", "10:40" };
/* A model of ours, one of theirs, and answers; sizes behind names. */
static const char *const weights[] = {
  "l1/W 4 3\nl1/b 4\nbn/gamma 4\nbn/beta 4\nbn/avg_mean 4\nbn/avg_var 4\nbn/N\n"
  "rnn/upward/W 8 3\nrnn/upward/b 8\nrnn/lateral/W 8 2\na/q/W 2 2\na/k/W 2 2\na/v/W 2 2\n=\n"
  "m.l1.weight 3 4\nm.l1.bias 4\nm.bn.weight 4\nm.bn.bias 4\nm.bn.running_mean 4\n"
  "m.bn.running_var 4\nm.rnn.weight_ih_l0 8 3\nm.rnn.weight_hh_l0 8 2\nm.rnn.bias_ih_l0 8\n"
  "m.rnn.bias_hh_l0 8\nm.a.in_proj_weight 6 2\nm.mask 9 9\n=\n- m.mask # out\nl1/b zeros\n",
  "x/0/w0 2 3\nx/0/w1 2 2\nx/0/b0 2\nx/0/b1 2\nc1/W 5 4 1 1\nc2/W 5 4 1 1\n=\n"
  "y.weight_ih_l0 2 3\ny.weight_hh_l0 2 2\ny.bias_ih_l0 2\ny.bias_hh_l0 2\n"
  "d.weight 5 4\ne.weight 5 4\n=\nc1/W d.weight reshape\nx y\nc2/W e.weight+d.weight reshape\n",
};

static long n_read, n_refused;

static void
settle (GError *error)
{
  if (!error)
    n_read++;
  else if (!*error->message || strchr (error->message, '\n'))
    {
      fprintf (stderr, "not one line: %s\n", error->message);
      abort ();
    }
  else
    n_refused++;
  g_clear_error (&error);
}

static void
read_graph (const uint8_t *data, size_t n)
{
  GError *error = NULL;
  g_autofree char *text = g_malloc (n + (n == 0)); /* of its own size */
  if (n)
    memcpy (text, data, n);
  g_autoptr (TdDotGraph) graph = td_dot_parse (text, n, &error);
  g_autoptr (TdScene) scene = graph ? td_dot_scene (graph) : NULL;
  if (!!graph == !!error || !!scene != !!graph)
    abort ();
  settle (error);
}

static void
read_notebook (const uint8_t *data, size_t n)
{
  static const guint8 uuid[16] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
  g_autofree char *tape = g_strdup_printf ("/dev/shm/td-fuzz-notes-%d.tdtape", (int)getpid ());
  g_autofree char *path = g_strdup_printf ("/dev/shm/td-fuzz-notes-%d.tdnotes", (int)getpid ());
  GError *error = NULL;
  fuzz_write (path, data, n);
  g_autoptr (TdNotebook) notes = td_notebook_new (tape, uuid, &error);
  if (!!notes == !!error)
    abort ();
  for (guint i = 0; notes && i < td_notebook_get_n_notes (notes); i++)
    if (!g_utf8_validate (td_notebook_get_note (notes, i)->text, -1, NULL))
      abort ();
  settle (error);
  g_unlink (path);
}

/* Limits are numbers that something can be held against. */
static void
read_rules (const uint8_t *data, size_t n)
{
  GError *error = NULL;
  TdGradientRules rules;
  g_autofree char *text = g_strndup ((const char *)data, n),
                  *valid = g_utf8_make_valid (text, -1); /* as those of settings are */

  if (td_gradient_rules_parse (valid, &rules, &error) == !!error)
    abort ();
  for (guint i = 0; !error && i < TD_N_RULES; i++)
    if (!(rules.limit[i] >= 0) || isinf (rules.limit[i]))
      abort ();
  settle (error);
}

static void
read_range (const uint8_t *data, size_t n)
{
  g_autofree char *text = g_strndup ((const char *)data, n), *said = NULL;
  TdRange range;

  if (!td_range_parse (text, &range) && !td_range_parse_pair (text, &range))
    {
      n_refused++;
      return;
    }
  said = td_range_describe (range);
  if (range.first < 0 || (range.end <= range.first && !td_range_is_all (range)) || !*said)
    abort ();
  n_read++;
}

/* A name and sizes; the line is changed. */
static TdWeightsArray
array_of (char *line)
{
  TdWeightsArray array = { .name = line };

  for (char *space = strchr (line, ' '); space; space = strchr (space, ' '))
    {
      *space++ = '\0';
      if (array.ndim < TD_WEIGHTS_MAX_NDIM)
        array.dims[array.ndim++] = (gint64)(g_ascii_strtoull (space, NULL, 10) % 100000);
    }
  return array;
}

static gboolean
same_first (guint theirs, guint other, gpointer user)
{
  (void)user;
  return (theirs + other) % 2;
}

/* The table that it prints, without questions, is one that it takes, and prints again. */
static void
check_table (const TdWeights *w, const GArray *const *side, TdWeightsRules rules)
{
  GError *error = NULL;
  g_autofree char *table = td_weights_print (w);
  rules.table = table;
  g_autoptr (TdWeights) again = td_weights_new (
      (const TdWeightsArray *)(const void *)side[0]->data, side[0]->len,
      (const TdWeightsArray *)(const void *)side[1]->data, side[1]->len, &rules, &error);
  if (!again || td_weights_get_n_questions (again) > 0)
    {
      fprintf (stderr, "not taken again: %s\n%s", error ? error->message : "", table);
      abort ();
    }
}

static void
read_weights (const uint8_t *data, size_t n)
{
  GError *error = NULL;
  g_autofree char *text = g_strndup ((const char *)data, n);
  g_auto (GStrv) parts = g_strsplit (text, "\n=\n", 3);
  g_autoptr (GArray) ours = g_array_new (FALSE, FALSE, sizeof (TdWeightsArray));
  g_autoptr (GArray) theirs = g_array_new (FALSE, FALSE, sizeof (TdWeightsArray));
  const GArray *const side[2] = { ours, theirs };
  GStrv lines[2] = { NULL, NULL };
  TdWeightsRules rules = { .by_order = n % 2 == 0, .same = same_first };

  for (guint i = 0; i < 2 && parts[0] && parts[i]; i++)
    {
      lines[i] = g_strsplit (parts[i], "\n", -1);
      for (guint k = 0; lines[i][k]; k++)
        {
          const TdWeightsArray array = array_of (lines[i][k]);
          g_array_append_val (i == 0 ? ours : theirs, array);
        }
    }
  rules.table = parts[0] && parts[1] ? parts[2] : NULL;
  TdWeights *w = td_weights_new ((const TdWeightsArray *)(const void *)ours->data, ours->len,
                                 (const TdWeightsArray *)(const void *)theirs->data,
                                 theirs->len, &rules, &error);
  if (!!w == !!error)
    abort ();
  for (guint i = 0; w && i < td_weights_get_n_rows (w); i++)
    {
      const TdWeightsRow *row = td_weights_get_row (w, i);
      gint64 dims[TD_WEIGHTS_MAX_NDIM];
      g_autofree char *why = NULL;

      if (!row->question && row->ours >= 0 && row->n_theirs > 0
          && td_weights_shape (w, row, dims, &why) < 0)
        abort ();
    }
  if (w && td_weights_get_n_questions (w) == 0)
    check_table (w, side, rules);
  td_weights_free (w);
  for (guint i = 0; i < 2; i++)
    g_strfreev (lines[i]);
  settle (error);
}

static void
run_corpus (const char *good, void (*read) (const uint8_t *data, size_t n), int rounds)
{
  const size_t n = strlen (good), room = 2 * n;
  g_autofree uint8_t *bad = g_malloc (room);
  long before = n_read;

  read ((const uint8_t *)good, n);
  if (n_read == before)
    {
      fprintf (stderr, "a good one is not read: %s\n", good);
      exit (1);
    }
  for (size_t cut = 0; cut < n; cut++)
    read ((const uint8_t *)good, cut);
  for (int i = 0; i < rounds; i++)
    read (bad, fuzz_mutate ((const uint8_t *)good, n, bad, room, false));
}

int
main (void)
{
  const int rounds = fuzz_rounds (400);

  g_log_set_always_fatal (G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_WARNING);
  for (size_t i = 0; i < G_N_ELEMENTS (graphs); i++)
    run_corpus (graphs[i], read_graph, (rounds + 2) / 3);
  printf ("graphs: %ld read, %ld refused\n", n_read, n_refused);
  n_read = n_refused = 0;
  run_corpus (notebook, read_notebook, rounds);
  printf ("notebooks: %ld read, %ld refused\n", n_read, n_refused);
  n_read = n_refused = 0;
  run_corpus ("vanishing 1e-4, exploding 100, dead 5, missing on, not-updated off", read_rules,
              rounds);
  for (size_t i = 0; i < G_N_ELEMENTS (ranges); i++)
    run_corpus (ranges[i], read_range, (rounds + 1) / 2);
  printf ("rules and ranges: %ld read, %ld refused\n", n_read, n_refused);
  n_read = n_refused = 0;
  for (size_t i = 0; i < G_N_ELEMENTS (weights); i++)
    run_corpus (weights[i], read_weights, 10 * rounds);
  printf ("tables of weights: %ld read, %ld refused\n", n_read, n_refused);
  return n_refused == 0;
}
