/*
 * The table of dynamic and static graphs; its general half is that of "Dynamic Graph vs Static
 * Graph", whose rows of advantages and disadvantages are empty: there only measurements stand.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-kinds.h"

#include "schedule/td-schedule.h"

typedef struct
{
  const TdDiffTotals *totals;
  TdIteration *iteration;
  TdTapeReader *reader; /* may be NULL */
  guint n_graphs;       /* distinct, dimensions included */
  guint n_iterations;
  gint64 changed; /* the first iteration whose graph is not that of the one before; -1 */
  guint n_changes;
} Measured;

/* Graphs that differ in numbers only (a step size that decays) are one. */
static guint
count_graphs (TdTapeReader *reader)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (g_int64_hash, g_int64_equal);

  for (guint i = 0; i < td_tape_reader_n_structures (reader); i++)
    g_hash_table_add (seen, (gpointer)&td_tape_reader_structure (reader, i)->fingerprint_dims);
  return g_hash_table_size (seen);
}

static Measured
measure (const TdCompare *compare, TdSide side, TdTapeReader *reader)
{
  Measured m = { .totals = &compare->diff->totals[side],
                 .iteration = compare->of[side],
                 .reader = reader,
                 .changed = -1 };
  TdTapeSummaries s;

  if (!reader)
    return m;
  s = td_tape_reader_summaries (reader);
  m.n_graphs = count_graphs (reader);
  m.n_iterations = s.n;
  for (guint i = 1; i < s.n; i++)
    if (s.rows[i].structure != s.rows[i - 1].structure
        && td_schedule_graph_of (reader, s.rows[i].structure)
               != td_schedule_graph_of (reader, s.rows[i - 1].structure))
      {
        if (m.changed < 0)
          m.changed = (gint64)s.rows[i].number;
        m.n_changes++;
      }
  return m;
}

static const char *
plural (guint64 n)
{
  return n == 1 ? "" : "s";
}

/* ---- what is measured of each aspect ---- */

static char *
measure_definition (const Measured *m)
{
  if (m->totals->n_static > 0)
    return g_strdup_printf ("%u of %u %s came from a schedule", m->totals->n_static,
                            m->totals->n_events,
                            td_plural (m->totals->n_events, "operation", "operations"));
  return g_strdup_printf ("%u operation%s, made while iteration %" G_GINT64_FORMAT " ran",
                          m->totals->n_events, plural (m->totals->n_events),
                          td_iteration_get_number (m->iteration));
}

static char *
measure_flexibility (const Measured *m)
{
  if (!m->reader)
    return g_strdup ("");
  return g_strdup_printf ("%u graph%s in %u iteration%s", m->n_graphs, plural (m->n_graphs),
                          m->n_iterations, plural (m->n_iterations));
}

static char *
measure_framework (const Measured *m)
{
  return g_strdup (m->totals->n_static > 0 ? "Tapedeck, with a static function"
                                           : "Tapedeck, define-by-run");
}

static char *
measure_advantage (const Measured *m)
{
  if (m->totals->n_static > 0)
    return g_strdup_printf ("%u operation%s ran without being traced again",
                            m->totals->n_static, plural (m->totals->n_static));
  if (!m->reader)
    return g_strdup ("");
  if (m->n_changes == 0)
    return g_strdup ("Not needed here: the graph never changed");
  if (m->n_changes == 1)
    return g_strdup ("Used: the graph changed once");
  return g_strdup_printf ("Used: the graph changed %u times", m->n_changes);
}

static char *
measure_disadvantage (const Measured *m)
{
  char outside[TD_FORMAT_SIZE], all[TD_FORMAT_SIZE], each[TD_FORMAT_SIZE];
  guint64 rest = m->totals->ns > m->totals->op_ns ? m->totals->ns - m->totals->op_ns : 0;

  if (m->totals->ns == 0)
    return g_strdup ("");
  return g_strdup_printf (
      "%s of %s an iteration passed outside operations (%.0f %%), %s for each",
      td_format_ns (outside, rest), td_format_ns (all, m->totals->ns),
      100 * (double)rest / (double)m->totals->ns,
      td_format_ns (each, rest / MAX (m->totals->n_events, 1)));
}

static char *
measure_execution (const Measured *m)
{
  if (m->n_iterations == 0)
    return g_strdup ("");
  if (m->n_iterations == 1)
    return g_strdup ("One iteration was recorded");
  if (m->changed < 0)
    return g_strdup_printf ("The same graph in all %u iterations", m->n_iterations);
  return g_strdup_printf ("Another graph from iteration %" G_GINT64_FORMAT " on", m->changed);
}

static char *
measure_optimization (const Measured *m)
{
  if (!m->reader)
    return g_strdup ("");
  return td_schedule_advice (m->reader, td_iteration_get_number (m->iteration),
                             td_schedule_count_replayed (m->iteration));
}

static char *
measure_nothing (const Measured *m)
{
  return g_strdup ("");
}

static const struct
{
  const char *aspect, *of_dynamic, *of_static;
  char *(*measure) (const Measured *m);
} aspects[] = {
  { "Definition", "Built on the fly during each forward pass",
    "Defined once before execution and reused thereafter", measure_definition },
  { "Flexibility", "Highly flexible: the structure may vary with each pass",
    "Less flexible: needs a fixed structure", measure_flexibility },
  { "Example frameworks", "Chainer, PyTorch", "TensorFlow before 2.0, Theano",
    measure_framework },
  { "Advantages", "", "", measure_advantage },
  { "Disadvantages", "", "", measure_disadvantage },
  { "Use cases", "Research, language, sequence-to-sequence tasks",
    "Production, tasks whose model structure stays the same", measure_nothing },
  { "Execution", "The structure can change during each execution",
    "The same structure for all executions", measure_execution },
  { "Optimization", "Limited, as the graph is not known before it runs",
    "Extensive optimization is possible", measure_optimization },
};

TdKinds *
td_kinds_new (const TdCompare *compare, TdTapeReader *reader_a, TdTapeReader *reader_b)
{
  TdKinds *kinds = g_new0 (TdKinds, 1);
  Measured m[TD_N_SIDES]
      = { measure (compare, TD_SIDE_A, reader_a), measure (compare, TD_SIDE_B, reader_b) };

  kinds->n_rows = G_N_ELEMENTS (aspects);
  kinds->rows = g_new0 (TdKindsRow, kinds->n_rows);
  for (guint i = 0; i < kinds->n_rows; i++)
    kinds->rows[i] = (TdKindsRow){ aspects[i].aspect,
                                   aspects[i].of_dynamic,
                                   aspects[i].of_static,
                                   { aspects[i].measure (&m[TD_SIDE_A]),
                                     aspects[i].measure (&m[TD_SIDE_B]) } };
  return kinds;
}

void
td_kinds_free (TdKinds *kinds)
{
  if (!kinds)
    return;
  for (guint i = 0; i < kinds->n_rows; i++)
    for (guint side = 0; side < TD_N_SIDES; side++)
      g_free (kinds->rows[i].measured[side]);
  g_free (kinds->rows);
  g_free (kinds);
}
