/*
 * What a static schedule could save, measured on the newest equal iterations of a recording:
 * time between operations, elementwise operations that meet, memory that is not needed at once.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>

#include "td-staticness-private.h"

/* Of TdTapeOpdef.flags: out[i] depends on in[i] only; the output lies in its input's memory. */
#define OP_ELEMENTWISE 1u
#define OP_VIEW 2u
/* Below this share of an iteration a gain is none. */
#define WORTH 0.01

/* ---- times ---- */

static gint
compare_ns (gconstpointer a, gconstpointer b)
{
  guint64 x = *(const guint64 *)a, y = *(const guint64 *)b;

  return (x > y) - (x < y);
}

static guint64
median (guint64 *values, guint n)
{
  if (n == 0)
    return 0;
  qsort (values, n, sizeof *values, compare_ns);
  return values[n / 2];
}

/* The time between an event and the one before it. */
static guint64
gap_before (const TdTapeIteration *t, guint event)
{
  guint64 end = event > 0 ? t->event_start_ns[event - 1] + t->event_duration_ns[event - 1] : 0;

  return event > 0 && t->event_start_ns[event] > end ? t->event_start_ns[event] - end : 0;
}

/* The functions of each layer of an iteration, innermost first; looked up once. */
static gint *
functions_of_layers (const TdStaticScan *scan, const TdIteration *it)
{
  guint n;
  gint *functions;

  td_iteration_get_layers (it, &n);
  functions = g_new (gint, n + 1);
  for (guint i = 0; i < n; i++)
    functions[i] = td__static_function_of (scan, it, (gint)i);
  return functions;
}

guint8 *
td__static_mark (const TdStaticScan *scan, const TdIteration *it)
{
  guint n_events = td_iteration_get_n_events (it), n;
  const TdLayer *layers = td_iteration_get_layers (it, &n);
  g_autofree gint *functions = functions_of_layers (scan, it);
  guint8 *marks = g_malloc0 (n_events + 1);

  for (guint e = 0; e < n_events; e++)
    {
      gint layer;

      if (td_iteration_get_forward (it, e) < 0)
        continue;
      marks[e] = g_array_index (scan->functions, TdStaticFunction, 0).maximal;
      for (layer = td_iteration_get_layer (it, e); layer >= 0 && !marks[e];
           layer = layers[layer].parent)
        marks[e]
            = functions[layer] >= 0
              && g_array_index (scan->functions, TdStaticFunction, functions[layer]).maximal;
    }
  return marks;
}

/* Adds up the times of one iteration: op[function], gap[function]. A gap belongs to a function
 * if the events on both sides belong to one call of it. */
static void
add_times (const TdStaticScan *scan, const TdIteration *it, guint64 *op, guint64 *gap)
{
  const TdTapeIteration *t = td_iteration_get_tape (it);
  g_autofree gint *functions = functions_of_layers (scan, it);
  g_autofree guint *last_in = g_new0 (guint, scan->functions->len + 1); /* event + 1 */
  g_autofree gint *last_call = g_new0 (gint, scan->functions->len + 1); /* its layer */
  const TdLayer *layers;
  guint n;

  layers = td_iteration_get_layers (it, &n);
  for (guint e = 0; t->event_duration_ns && t->event_start_ns && e < t->n_events; e++)
    {
      gint layer = td_iteration_get_forward (it, e) >= 0 ? td_iteration_get_layer (it, e) : -1;

      if (td_iteration_get_forward (it, e) < 0)
        continue;
      for (;; layer = layers[layer].parent)
        {
          gint function = layer < 0 ? 0 : functions[layer];

          if (function >= 0
              && last_in[function] != e + 1) /* a link within itself counts once */
            {
              op[function] += t->event_duration_ns[e];
              if (e > 0 && last_in[function] == e && last_call[function] == layer)
                gap[function] += gap_before (t, e);
              last_in[function] = e + 1;
              last_call[function] = layer;
            }
          if (layer < 0)
            break;
        }
    }
}

static void
measure_times (TdStaticScan *scan)
{
  guint n = scan->newest->len, n_functions = scan->functions->len;
  g_autofree guint64 *op = g_new0 (guint64, (gsize)n_functions * (n + 1) + 1),
                     *gap = g_new0 (guint64, (gsize)n_functions * (n + 1) + 1);
  guint64 whole[TD__STATIC_SAMPLE] = { 0 }, ops[TD__STATIC_SAMPLE] = { 0 },
          gaps[TD__STATIC_SAMPLE] = { 0 }, values[TD__STATIC_SAMPLE];

  for (guint i = 0; i < n; i++)
    {
      const TdIteration *it = g_ptr_array_index (scan->newest, i);
      const TdTapeIteration *t = td_iteration_get_tape (it);

      add_times (scan, it, op + (gsize)i * n_functions, gap + (gsize)i * n_functions);
      whole[i] = t->duration_ns;
      for (guint e = 0; t->event_duration_ns && t->event_start_ns && e < t->n_events; e++)
        {
          ops[i] += t->event_duration_ns[e];
          gaps[i] += gap_before (t, e);
        }
    }
  for (guint k = 0; k < n_functions; k++)
    {
      TdStaticFunction *function = &g_array_index (scan->functions, TdStaticFunction, k);

      for (guint i = 0; i < n; i++)
        values[i] = op[(gsize)i * n_functions + k];
      function->op_ns = median (values, n);
      for (guint i = 0; i < n; i++)
        values[i] = gap[(gsize)i * n_functions + k];
      function->gap_ns = median (values, n);
    }
  scan->s->gain.duration_ns = median (whole, n);
  scan->s->gain.op_ns = median (ops, n);
  scan->s->gain.gap_ns = median (gaps, n);
}

/* ---- what is in no static function ---- */

static void
measure_outside (TdStaticScan *scan, const TdIteration *it, const guint8 *inside)
{
  const TdTapeIteration *t = td_iteration_get_tape (it);
  TdStaticGain *gain = &scan->s->gain;

  for (guint e = 0; e < t->n_events; e++)
    if (t->events[e].phase == TD_TAPE_PHASE_FORWARD && !inside[e])
      {
        gain->n_outside++;
        gain->outside_ns += t->event_duration_ns ? t->event_duration_ns[e] : 0;
      }
  for (guint k = 0; k < scan->functions->len; k++)
    {
      const TdStaticFunction *function = &g_array_index (scan->functions, TdStaticFunction, k);

      gain->static_gap_ns += function->maximal ? function->gap_ns : 0;
    }
}

/* ---- elementwise operations that meet ---- */

static gboolean
is_elementwise (const TdStaticScan *scan, const TdTapeEvent *e)
{
  const TdTapeOpdef *op = td_tape_reader_opdef (scan->reader, e->opdef);

  return op && (op->flags & OP_ELEMENTWISE) && !(op->flags & OP_VIEW) && e->n_out == 1;
}

static guint64
n_elements (const TdTapeIteration *t, const TdTapeVar *v)
{
  guint64 n = 1;

  for (guint k = 0; k < v->ndim; k++)
    n *= (guint64)t->dims[v->first_dim + k];
  return n;
}

/* Each elementwise operation joins that of an input which nobody else reads and nobody keeps.
 */
static void
measure_fusion (TdStaticScan *scan, const TdIteration *it, const guint8 *inside)
{
  const TdTapeIteration *t = td_iteration_get_tape (it);
  g_autofree gint *group = g_new (gint, t->n_events + 1), *members = NULL;
  TdStaticGain *gain = &scan->s->gain;

  members = g_new0 (gint, t->n_events + 1);
  for (guint e = 0; e < t->n_events; e++)
    {
      const TdTapeEvent *event = &t->events[e];

      group[e] = (gint)e;
      gain->n_ops += event->phase != TD_TAPE_PHASE_UPDATE;
      if (!inside[e] || !is_elementwise (scan, event))
        continue;
      const TdTapeVar *out = &t->vars[t->outs[event->first_out]];
      for (guint k = 0; k < event->n_in; k++)
        {
          guint var = t->ins[event->first_in + k], n_readers;
          const TdTapeVar *v = &t->vars[var];

          td_iteration_get_consumers (it, var, &n_readers);
          if (v->producer < 0 || v->producer >= (gint)e || !inside[v->producer]
              || n_readers != 1 || (v->flags & TD_TAPE_VAR_RETAINED)
              || n_elements (t, v) != n_elements (t, out)
              || t->events[v->producer].phase != event->phase
              || !is_elementwise (scan, &t->events[v->producer]))
            continue;
          group[e] = group[v->producer];
          gain->fused_bytes += v->bytes;
          break;
        }
      members[group[e]]++;
    }
  for (guint e = 0; e < t->n_events; e++)
    if (members[e] > 1)
      {
        gain->n_groups++;
        gain->n_fusable += (guint)members[e];
      }
}

/* ---- memory ---- */

/* Until which event each variable is needed: read itself, or through a view of it. */
static guint *
last_uses (const TdTapeIteration *t)
{
  guint *last = g_new0 (guint, t->n_vars + 1);

  for (guint v = 0; v < t->n_vars; v++)
    last[v] = t->vars[v].producer >= 0 ? (guint)t->vars[v].producer : 0;
  for (guint e = 0; e < t->n_events; e++)
    for (guint k = 0; k < t->events[e].n_in; k++)
      last[t->ins[t->events[e].first_in + k]] = e;
  for (guint e = t->n_events; e-- > 0;)
    if ((t->events[e].flags & TD_TAPE_EVENT_SHARED) && t->events[e].n_in > 0
        && t->events[e].n_out > 0)
      {
        guint in = t->ins[t->events[e].first_in], out = t->outs[t->events[e].first_out];

        last[in] = MAX (last[in], last[out]);
      }
  return last;
}

typedef struct
{
  guint from;
  guint32 var;
  guint64 bytes;
} Alive;

static void
add_span (gint64 *change, guint from, guint to, guint64 bytes)
{
  change[from] += (gint64)bytes;
  change[to + 1] -= (gint64)bytes;
}

/* The most bytes that are needed at once: what was there before and stays, and each buffer from
 * its making to its last use. No plan of addresses can do with less. */
static void
measure_memory (TdStaticScan *scan, const TdIteration *it)
{
  const TdTapeIteration *t = td_iteration_get_tape (it);
  g_autofree guint *last = last_uses (t);
  g_autofree gint64 *change = g_new0 (gint64, t->n_events + 3);
  g_autoptr (GHashTable) alive
      = g_hash_table_new_full (g_int64_hash, g_int64_equal, NULL, g_free);
  gint64 now = 0, most = 0;
  GHashTableIter iter;
  gpointer buffer, value;

  for (guint c = 0; c < TD_TAPE_N_CATEGORIES; c++)
    change[0] += (gint64)t->start_bytes[c];
  for (guint i = 0; i < t->n_memory; i++)
    {
      const TdTapeMemory *m = &t->memory[i];
      Alive *block = g_hash_table_lookup (alive, &m->buffer);

      if (m->event > t->n_events)
        continue;
      if (m->kind == TD_TAPE_MEMORY_ALLOC)
        {
          Alive one = { m->event, m->var, m->bytes };

          g_hash_table_insert (alive, (gpointer)&m->buffer, g_memdup2 (&one, sizeof one));
        }
      else if (m->kind == TD_TAPE_MEMORY_FREE && block)
        {
          guint to = MAX (m->event, 1) - 1;

          if (block->var < t->n_vars)
            to = MIN (to, last[block->var]);
          add_span (change, block->from, MAX (to, block->from), block->bytes);
          g_hash_table_remove (alive, &m->buffer);
        }
      else if (m->kind == TD_TAPE_MEMORY_FREE) /* from before this iteration */
        change[m->event] -= (gint64)m->bytes;
    }
  g_hash_table_iter_init (&iter, alive);
  while (g_hash_table_iter_next (&iter, &buffer, &value))
    add_span (change, ((Alive *)value)->from, t->n_events, ((Alive *)value)->bytes);
  for (guint e = 0; e <= t->n_events; e++)
    {
      now += change[e];
      most = MAX (most, now);
    }
  scan->s->gain.planned_bytes = (guint64)most;
}

static guint64
output_bytes (const TdIteration *it)
{
  const TdTapeIteration *t = td_iteration_get_tape (it);
  guint64 bytes = 0;

  for (guint v = 0; v < t->n_vars; v++)
    bytes += t->vars[v].producer >= 0 ? t->vars[v].bytes : 0;
  return bytes;
}

void
td__static_measure (TdStaticScan *scan)
{
  TdStaticGain *gain = &scan->s->gain;
  const TdIteration *newest;
  g_autofree guint8 *inside = NULL;

  if (scan->newest->len == 0 || scan->functions->len == 0)
    return;
  newest = g_ptr_array_index (scan->newest, scan->newest->len - 1);
  inside = td__static_mark (scan, newest);
  measure_times (scan);
  measure_outside (scan, newest, inside);
  measure_fusion (scan, newest, inside);
  gain->peak_bytes = gain->planned_bytes = td_iteration_get_tape (newest)->peak_bytes;
  if (g_array_index (scan->functions, TdStaticFunction, 0).maximal)
    measure_memory (scan, newest);
  gain->with_recording = td_iteration_get_tape (newest)->n_stats > 0
                         || td_iteration_get_tape (newest)->n_tensors > 0;
  gain->worth_it = (double)gain->static_gap_ns > WORTH * (double)gain->duration_ns
                   || (double)gain->fused_bytes > WORTH * (double)output_bytes (newest)
                   || (double)gain->planned_bytes < (1 - WORTH) * (double)gain->peak_bytes;
}
