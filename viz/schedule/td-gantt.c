/*
 * Lifetimes of buffers, from allocation records or from a plan. The picture is in
 * td-gantt-scene.c.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-gantt.h"

#include <string.h>

/* Segments of the pool lie apart: a gap of this size in the addresses is left out. */
#define SEGMENT_GAP (4u << 20)

/* A buffer while its end is looked for. */
typedef struct
{
  guint64 address; /* first: the key of the table */
  TdGanttBar bar;
  gboolean before; /* it was there when the iteration began */
} Alive;

typedef struct
{
  TdIteration *iteration;
  const TdTapeIteration *t;
  GHashTable *alive; /* address -> Alive */
  GArray *bars;      /* TdGanttBar, offsets are addresses yet */
  TdGantt *gantt;
} Recount;

static char *
name_of (TdIteration *iteration, const TdTapeIteration *t, guint var)
{
  const char *name = td_iteration_get_var_name (iteration, var);
  gint producer = t->vars[var].producer;

  if (producer < 0 || (guint)producer >= t->n_events)
    return g_utf8_make_valid (name, -1);
  g_autofree char *text = g_strdup_printf (
      "%s%s%s", td_iteration_get_op_name (iteration, (guint)producer), *name ? " " : "", name);
  return g_utf8_make_valid (text, -1);
}

static guint64
producer_key (const TdTapeIteration *t, guint var)
{
  gint producer = t->vars[var].producer;

  return producer >= 0 && (guint)producer < t->n_events ? t->events[producer].key : 0;
}

static void
begin (Recount *r, guint64 address, const TdGanttBar *bar, gboolean before)
{
  Alive *alive = g_new (Alive, 1);

  *alive = (Alive){ address, *bar, before };
  alive->bar.offset = address;
  g_hash_table_replace (r->alive, &alive->address, alive);
}

static void
end (Recount *r, Alive *alive, guint step)
{
  TdGanttBar bar = alive->bar;

  bar.to = step;
  if (alive->before && step >= r->gantt->n_steps) /* nothing happens to it */
    {
      r->gantt->bytes_throughout += bar.bytes;
      r->gantt->n_throughout++;
    }
  else if (bar.to > bar.from && bar.bytes > 0)
    {
      bar.name = bar.name ? bar.name : g_strdup ("");
      alive->bar.name = NULL;
      g_array_append_val (r->bars, bar);
    }
}

static void
alive_free (gpointer data)
{
  g_free ((char *)((Alive *)data)->bar.name);
  g_free (data);
}

static void
recount (Recount *r)
{
  const TdTapeIteration *t = r->t;
  GHashTableIter iter;
  gpointer value;

  for (guint i = 0; i < t->n_blocks; i++)
    {
      TdGanttBar bar = { .bytes = t->blocks[i].bytes,
                         .category = t->blocks[i].category,
                         .key = t->blocks[i].key,
                         .event = -1 };

      begin (r, t->blocks[i].address, &bar, TRUE);
    }
  for (guint m = 0; m < t->n_memory; m++)
    {
      const TdTapeMemory *record = &t->memory[m];
      guint step = MIN (record->event, t->n_events);

      if (record->kind == TD_TAPE_MEMORY_ALLOC)
        {
          gboolean known = record->var < t->n_vars;
          TdGanttBar bar = { .from = step,
                             .bytes = record->bytes,
                             .category = record->category,
                             .key = known ? t->vars[record->var].key : 0,
                             .event = known ? t->vars[record->var].producer : -1,
                             .event_key = known ? producer_key (t, record->var) : 0,
                             .name = known ? name_of (r->iteration, t, record->var) : NULL };

          begin (r, record->address, &bar, FALSE);
        }
      else if (record->kind == TD_TAPE_MEMORY_FREE)
        {
          Alive *alive = g_hash_table_lookup (r->alive, &record->address);

          if (alive)
            end (r, alive, step);
          g_hash_table_remove (r->alive, &record->address);
        }
    }
  g_hash_table_iter_init (&iter, r->alive);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    end (r, value, r->gantt->n_steps);
}

/* ---- what both kinds share ---- */

static gint
by_offset (gconstpointer a, gconstpointer b)
{
  guint64 x = ((const TdGanttBar *)a)->offset, y = ((const TdGanttBar *)b)->offset;

  return (x > y) - (x < y);
}

static gint
by_beginning (gconstpointer a, gconstpointer b)
{
  const TdGanttBar *x = a, *y = b;

  return x->from != y->from ? (x->from > y->from) - (x->from < y->from) : by_offset (a, b);
}

/* Addresses become offsets; what lies far above everything before it comes nearer. */
static void
close_gaps (GArray *bars)
{
  guint64 taken_out = 0, top = 0;

  g_array_sort (bars, by_offset);
  for (guint i = 0; i < bars->len; i++)
    {
      TdGanttBar *bar = &g_array_index (bars, TdGanttBar, i);
      guint64 address = bar->offset;

      if (i == 0 || (address > top && address - top > SEGMENT_GAP))
        taken_out += i == 0 ? address : address - top;
      bar->offset = address - taken_out;
      top = MAX (top, address + bar->bytes);
    }
}

static void
measure (TdGantt *g)
{
  g_autofree gint64 *change = g_new0 (gint64, g->n_steps + 1);
  gint64 now = 0;

  for (guint i = 0; i < g->n_bars; i++)
    {
      const TdGanttBar *bar = &g->bars[i];

      g->extent = MAX (g->extent, bar->offset + bar->bytes);
      change[MIN (bar->from, g->n_steps)] += (gint64)bar->bytes;
      change[MIN (bar->to, g->n_steps)] -= (gint64)bar->bytes;
    }
  for (guint step = 0; step < g->n_steps; step++)
    {
      now += change[step];
      if ((guint64)now > g->most_alive)
        {
          g->most_alive = (guint64)now;
          g->most_alive_step = step;
        }
    }
}

static void
take_bars (TdGantt *g, GArray *bars)
{
  g_array_sort (bars, by_beginning);
  g->n_bars = bars->len;
  g->bars = (TdGanttBar *)(gpointer)g_array_free (bars, FALSE);
  measure (g);
}

TdGantt *
td_gantt_new (TdIteration *iteration)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);
  TdGantt *g = g_new0 (TdGantt, 1);
  Recount r = { .iteration = iteration,
                .t = t,
                .alive = g_hash_table_new_full (g_int64_hash, g_int64_equal, NULL, alive_free),
                .bars = g_array_new (FALSE, FALSE, sizeof (TdGanttBar)),
                .gantt = g };

  g->n_steps = t->n_events + 1;
  g->first_backward = -1;
  for (guint e = 0; e < t->n_events && g->first_backward < 0; e++)
    if (t->events[e].phase != TD_TAPE_PHASE_FORWARD)
      g->first_backward = (gint)e;
  recount (&r);
  g_hash_table_unref (r.alive);
  close_gaps (r.bars);
  take_bars (g, r.bars);
  return g;
}

TdGantt *
td_gantt_new_planned (guint n_steps, const TdGanttBar *bars, guint n_bars,
                      guint64 planned_bytes, gint first_backward)
{
  TdGantt *g = g_new0 (TdGantt, 1);
  GArray *copy = g_array_new (FALSE, FALSE, sizeof (TdGanttBar));

  g->n_steps = n_steps;
  g->planned_bytes = planned_bytes;
  g->first_backward = first_backward;
  for (guint i = 0; i < n_bars; i++)
    {
      TdGanttBar bar = bars[i];

      bar.name = g_strdup (bars[i].name ? bars[i].name : "");
      g_array_append_val (copy, bar);
    }
  take_bars (g, copy);
  return g;
}

void
td_gantt_free (TdGantt *g)
{
  if (!g)
    return;
  for (guint i = 0; i < g->n_bars; i++)
    g_free ((char *)g->bars[i].name);
  g_free (g->bars);
  g_free (g);
}
