/* Puts iterations made by hand onto a tape.
 * SPDX-License-Identifier: MIT */
#include "td-synthetic-tape.h"

typedef struct
{
  TdTapeIteration tape;
  TdTapeEvent *events;
  TdTapeVar *vars;
  TdTapeSpan *spans;
  TdTapeGrad *grads;
} Copy;

static guint32
string_id (TdTapeWriter *w, const TdIteration *it, guint32 id)
{
  return td_tape_writer_string (w, td_iteration_get_string (it, id));
}

static guint32
path_id (TdTapeWriter *w, const TdIteration *it, guint32 id)
{
  const char *path = td_iteration_get_path_name (it, id);

  return *path ? td_tape_writer_path (w, path, "Link") : 0;
}

static guint32
site_id (TdTapeWriter *w, const TdIteration *it, guint32 id)
{
  guint32 line;
  const char *file = td_iteration_get_site (it, id, &line);

  return *file ? td_tape_writer_site (w, file, line, "main") : 0;
}

/* The same with the writer's ids. */
static void
translate (TdTapeWriter *w, const TdIteration *it, guint n_events, Copy *c)
{
  c->tape = *td_iteration_get_tape (it);
  c->tape.n_events = MIN (n_events, c->tape.n_events);
  c->tape.first_id = 1000 * (c->tape.number + 1);
  c->events = g_memdup2 (c->tape.events, sizeof (TdTapeEvent) * c->tape.n_events);
  c->vars = g_memdup2 (c->tape.vars, sizeof (TdTapeVar) * c->tape.n_vars);
  c->spans = g_memdup2 (c->tape.spans, sizeof (TdTapeSpan) * c->tape.n_spans);
  c->grads = g_memdup2 (c->tape.grads, sizeof (TdTapeGrad) * c->tape.n_grads);
  for (guint i = 0; i < c->tape.n_events; i++)
    {
      TdTapeOpdef opdef
          = { .name = td_tape_writer_string (w, td_iteration_get_op_name (it, i)), .n_in = -1 };

      c->events[i].opdef = td_tape_writer_opdef (w, &opdef);
      c->events[i].site = site_id (w, it, c->events[i].site);
      c->events[i].path = path_id (w, it, c->events[i].path);
      c->events[i].attrs = string_id (w, it, c->events[i].attrs);
    }
  for (guint i = 0; i < c->tape.n_vars; i++)
    {
      c->vars[i].name = string_id (w, it, c->vars[i].name);
      c->vars[i].path = path_id (w, it, c->vars[i].path);
      c->vars[i].site = 0;
      if (c->vars[i].producer >= (gint32)c->tape.n_events)
        c->vars[i].producer = -1;
    }
  for (guint i = 0; i < c->tape.n_spans; i++)
    {
      c->spans[i].name = string_id (w, it, c->spans[i].name);
      c->spans[i].path = path_id (w, it, c->spans[i].path);
      c->spans[i].site = site_id (w, it, c->spans[i].site);
      c->spans[i].begin = MIN (c->spans[i].begin, c->tape.n_events);
      c->spans[i].end = MIN (c->spans[i].end, c->tape.n_events);
    }
  for (guint i = 0; i < c->tape.n_grads; i++)
    c->grads[i].path = string_id (w, it, c->grads[i].path);
  if (c->tape.n_events < td_iteration_get_n_events (it))
    c->tape.n_grads = 0;
  c->tape.events = c->events;
  c->tape.vars = c->vars;
  c->tape.spans = c->spans;
  c->tape.grads = c->grads;
}

static void
clear (Copy *c)
{
  g_free (c->events);
  g_free (c->vars);
  g_free (c->spans);
  g_free (c->grads);
}

void
td_synthetic_write (TdTapeWriter *w, TdIteration *it)
{
  const TdSyntheticRank alone = { 0 };

  td_synthetic_write_rank (w, it, &alone);
}

void
td_synthetic_write_rank (TdTapeWriter *w, TdIteration *it, const TdSyntheticRank *rank)
{
  Copy c;

  translate (w, it, G_MAXUINT, &c);
  for (guint i = 0; i < c.tape.n_stats; i++)
    if (c.tape.stats[i].n_nan)
      c.tape.flags |= TD_TAPE_ITERATION_NAN;
  c.tape.flags |= rank->n_sums && c.tape.n_stats ? TD_TAPE_ITERATION_STATS : 0;
  c.tape.collectives = rank->waits;
  c.tape.n_collectives = rank->n_waits;
  c.tape.rank_sums = rank->sums;
  c.tape.n_rank_sums = rank->n_sums;
  if (rank->is_live)
    {
      c.tape.flags |= TD_TAPE_ITERATION_PARTIAL;
      td_tape_writer_live (w, &c.tape);
    }
  else
    td_tape_writer_whole (w, &c.tape);
  td_tape_writer_flush (w);
  clear (&c);
}

void
td_synthetic_write_live (TdTapeWriter *w, TdIteration *it, guint n_events, const char *stop)
{
  Copy c;

  translate (w, it, n_events, &c);
  c.tape.flags |= TD_TAPE_ITERATION_PARTIAL;
  c.tape.stop.stopped = stop != NULL;
  c.tape.stop.event = n_events;
  c.tape.stop.reason = stop ? td_tape_writer_string (w, stop) : 0;
  td_tape_writer_live (w, &c.tape);
  td_tape_writer_flush (w);
  clear (&c);
}
