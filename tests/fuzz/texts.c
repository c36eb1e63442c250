/* Reads texts that may be anything through the readers of viz: graphs in DOT (laid out and
 * drawn as text), the notebook of a recording, and of the settings rules for gradients and
 * ranges.  Each is read or refused with one line.
 * SPDX-License-Identifier: MIT */
#include "mutate.h"

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
  return n_refused == 0;
}
