/*
 * Iterations of one graph whose arrays have other sizes, as a last batch has.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "td-schedule.h"

static const TdTapeStructure *
structure_of (TdTapeReader *reader, const TdTapeSummary *summary)
{
  for (guint i = 0; i < td_tape_reader_n_structures (reader); i++)
    if (td_tape_reader_structure (reader, i)->id == summary->structure)
      return td_tape_reader_structure (reader, i);
  return NULL;
}

gboolean
td_schedule_only_sizes (TdTapeReader *reader, const TdTapeSummary *a, const TdTapeSummary *b)
{
  const TdTapeStructure *x = structure_of (reader, a), *y = structure_of (reader, b);

  return x && y && x->fingerprint == y->fingerprint
         && x->fingerprint_dims != y->fingerprint_dims;
}

static void
append_sizes (GString *out, const TdTapeIteration *t, guint32 var)
{
  const TdTapeVar *v = &t->vars[var];

  g_string_append_c (out, '(');
  for (guint d = 0; d < v->ndim; d++)
    g_string_append_printf (out, "%s%" G_GINT64_FORMAT, d > 0 ? ", " : "",
                            t->dims[v->first_dim + d]);
  g_string_append_c (out, ')');
}

static gboolean
same_sizes (const TdTapeIteration *a, guint32 u, const TdTapeIteration *b, guint32 v)
{
  const TdTapeVar *x = &a->vars[u], *y = &b->vars[v];

  return x->ndim == y->ndim
         && memcmp (a->dims + x->first_dim, b->dims + y->first_dim, x->ndim * sizeof *a->dims)
                == 0;
}

/* Events of one graph stand at the same places, and read the same there. */
static void
append_first (GString *out, TdTapeReader *reader, const TdTapeIteration *a,
              const TdTapeIteration *b)
{
  for (guint e = 0; e < MIN (a->n_events, b->n_events); e++)
    for (guint k = 0; k < MIN (a->events[e].n_in, b->events[e].n_in); k++)
      {
        const guint32 u = a->ins[a->events[e].first_in + k],
                      v = b->ins[b->events[e].first_in + k];

        if (same_sizes (a, u, b, v))
          continue;
        g_string_append_printf (out, ", first where %s reads ",
                                td_tape_reader_op_name (reader, a->events[e].opdef));
        append_sizes (out, a, u);
        g_string_append (out, " instead of ");
        append_sizes (out, b, v);
        return;
      }
}

char *
td_schedule_dup_sizes (TdTapeReader *reader, const TdTapeSummary *a, const TdTapeSummary *b)
{
  GString *out = g_string_new (NULL);
  char error[160];
  const TdTapeIteration *x
      = td_tape_iteration_load_structure (reader, a->structure, error, sizeof error);
  const TdTapeIteration *y
      = td_tape_iteration_load_structure (reader, b->structure, error, sizeof error);

  g_string_append_printf (out,
                          "Iteration %" G_GUINT64_FORMAT
                          " has the graph of the one before, and arrays of other sizes",
                          a->number);
  if (x && y)
    append_first (out, reader, x, y);
  g_string_append_c (out, '.');
  if (x)
    td_tape_iteration_free (x);
  if (y)
    td_tape_iteration_free (y);
  return g_string_free (out, FALSE);
}
