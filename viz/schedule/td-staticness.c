/*
 * Which functions were the same all the time: structures of the tape are read once each, calls
 * get fingerprints, and what differs is explained by a comparison of two iterations.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "diff/td-diff.h"
#include "tape/td-mix.h"
#include "td-schedule.h"
#include "td-staticness-private.h"

/* Structures looked at: of programs that never repeat, a spread. */
#define MAX_UNITS 200
#define MAX_EVENTS 5000000
/* Sizes and structures up to which one schedule for each is worth having. */
#define MAX_SCHEDULES 4
#define SETTLED 8
/* A tape may hold anything. */
#define MAX_FUNCTIONS 5000
#define MAX_DEPTH 64

/* ---- which iterations and structures there are ---- */

static gboolean
is_whole (const TdTapeSummary *row)
{
  return (row->flags & (TD_TAPE_ITERATION_PARTIAL | TD_TAPE_ITERATION_OUTSIDE)) == 0;
}

static void
unit_clear (gpointer data)
{
  TdStaticUnit *unit = data;

  g_clear_pointer (&unit->iteration, td_iteration_unref);
  g_clear_pointer (&unit->calls, g_hash_table_unref);
}

/* What only numbers differ in, a decaying step size say, is another structure on the tape, but
 * the same graph: graphs are told by their fingerprint, dimensions included. */
static GHashTable *
fingerprints (TdTapeReader *reader)
{
  GHashTable *by_id = g_hash_table_new_full (NULL, NULL, NULL, g_free);

  for (guint i = 0; i < td_tape_reader_n_structures (reader); i++)
    {
      const TdTapeStructure *s = td_tape_reader_structure (reader, i);

      g_hash_table_insert (by_id, GUINT_TO_POINTER (s->id),
                           g_memdup2 (&s->fingerprint_dims, sizeof s->fingerprint_dims));
    }
  return by_id;
}

/* Iterations without a structure of their own on the tape are each one. */
static void
collect_units (TdStaticScan *scan)
{
  TdTapeSummaries summaries = td_tape_reader_summaries (scan->reader);
  g_autoptr (GHashTable) by_id = fingerprints (scan->reader);
  g_autoptr (GHashTable) known = g_hash_table_new (g_int64_hash, g_int64_equal);

  for (guint32 i = 0; i < summaries.n; i++)
    {
      const TdTapeSummary *row = &summaries.rows[i];
      guint64 *print = g_hash_table_lookup (by_id, GUINT_TO_POINTER (row->structure));
      guint32 unit;

      if (!is_whole (row) || !td_range_has (scan->range, (gint64)row->number))
        continue;
      unit = print ? GPOINTER_TO_UINT (g_hash_table_lookup (known, print)) : 0;
      if (unit == 0)
        {
          TdStaticUnit one = { .row = i, .number = row->number };

          g_array_append_val (scan->units, one);
          unit = scan->units->len;
          if (print)
            g_hash_table_insert (known, print, GUINT_TO_POINTER (unit));
        }
      unit--;
      /* the first one that is kept */
      TdStaticUnit *self = &g_array_index (scan->units, TdStaticUnit, unit);
      if (!td_tape_reader_stored (scan->reader, self->row))
        self->row = i;
      g_array_append_val (scan->rows, i);
      g_array_append_val (scan->unit_of, unit);
    }
}

/* ---- functions of one structure ---- */

/* "L:net/l1" for a link, its parent's key and the name for a scope. */
static void
append_key (GString *key, const TdLayer *layers, gint layer, guint depth)
{
  if (layer < 0 || depth > MAX_DEPTH)
    return;
  if (layers[layer].is_link)
    {
      g_string_append_printf (key, "L:%s", layers[layer].path);
      return;
    }
  append_key (key, layers, layers[layer].parent, depth + 1);
  g_string_append_printf (key, ">%s", layers[layer].name);
}

static gint
find_function (const TdStaticScan *scan, const TdLayer *layers, gint layer)
{
  g_autoptr (GString) key = g_string_new (NULL);

  append_key (key, layers, layer, 0);
  return GPOINTER_TO_INT (g_hash_table_lookup (scan->by_key, key->str)) - 1;
}

gint
td__static_function_of (const TdStaticScan *scan, const TdIteration *iteration, gint layer)
{
  guint n;
  const TdLayer *layers = td_iteration_get_layers (iteration, &n);

  return find_function (scan, layers, layer < (gint)n ? layer : -1);
}

static const char *
keep (TdStaticScan *scan, const char *text)
{
  return g_string_chunk_insert_const (scan->s->texts, text);
}

static gint
add_function (TdStaticScan *scan, const TdIteration *iteration, const TdLayer *layers,
              gint layer)
{
  TdStaticFunction function = { .path = "", .parent = -1, .changed = -1, .compared = -1 };
  g_autoptr (GString) key = g_string_new (NULL);

  append_key (key, layers, layer, 0);
  function.op = function.site = function.site_a = function.site_b = function.why = "";
  function.read_site = function.attribute = "";
  if (layer >= 0)
    {
      const TdLayer *self = &layers[layer];
      g_autofree char *site = td_iteration_dup_place (iteration, self->site);

      function.parent = MAX (find_function (scan, layers, self->parent), 0);
      function.is_link = self->is_link;
      function.site = keep (scan, site);
      if (self->is_link)
        function.path = keep (scan, self->path);
      else
        {
          const char *parent
              = g_array_index (scan->functions, TdStaticFunction, function.parent).path;
          g_autofree char *path
              = g_strdup_printf ("%s%s%s", parent, *parent ? "/" : "", self->name);
          function.path = keep (scan, path);
        }
    }
  g_array_append_val (scan->functions, function);
  g_ptr_array_add (scan->prints,
                   g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL));
  g_ptr_array_add (scan->sizes,
                   g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL));
  g_hash_table_insert (scan->by_key, g_strdup (key->str),
                       GUINT_TO_POINTER (scan->functions->len));
  return (gint)scan->functions->len - 1;
}

/* ---- fingerprints of calls ---- */

typedef struct
{
  guint64 structure, sizes;
  guint n_ops;
} Print;

/* What a call's operation reads: what the call made, parameters, and what comes from outside by
 * the order in which it is read first. */
static guint64
input_print (const TdIteration *it, guint var, guint first, GHashTable *outside)
{
  const TdTapeVar *v = &td_iteration_get_tape (it)->vars[var];

  if (v->producer >= (gint)first)
    return td__mix (td__mix (1, (guint64)(v->producer - (gint)first)), v->out_index);
  if (v->flags & TD_TAPE_VAR_PARAMETER)
    return td__mix_text (td__mix_text (2, td_iteration_get_path_name (it, v->path)),
                         td_iteration_get_var_name (it, var));
  guint known = GPOINTER_TO_UINT (g_hash_table_lookup (outside, GUINT_TO_POINTER (var + 1)));
  if (known == 0)
    {
      known = g_hash_table_size (outside) + 1;
      g_hash_table_insert (outside, GUINT_TO_POINTER (var + 1), GUINT_TO_POINTER (known));
    }
  return td__mix (3, known);
}

static Print
call_print (const TdIteration *it, guint first, guint end)
{
  const TdTapeIteration *t = td_iteration_get_tape (it);
  g_autoptr (GHashTable) outside = g_hash_table_new (NULL, NULL);
  Print p = { 1, 1, 0 };

  for (guint e = first; e < MIN (end, t->n_events); e++)
    {
      const TdTapeEvent *event = &t->events[e];

      if (event->phase != TD_TAPE_PHASE_FORWARD)
        continue;
      p.n_ops++;
      p.structure = td__mix_text (p.structure, td_iteration_get_op_name (it, e));
      p.structure = td__mix_text (p.structure, td_iteration_get_link_path (it, e));
      for (guint k = 0; k < event->n_in; k++)
        p.structure = td__mix (p.structure,
                               input_print (it, t->ins[event->first_in + k], first, outside));
      for (guint k = 0; k < event->n_out; k++)
        {
          const TdTapeVar *v = &t->vars[t->outs[event->first_out + k]];

          p.structure = td__mix (td__mix (p.structure, v->dtype), v->ndim);
          for (guint d = 0; d < v->ndim; d++)
            p.sizes = td__mix (p.sizes, (guint64)t->dims[v->first_dim + d]);
        }
    }
  p.sizes = td__mix (p.sizes, p.structure);
  return p;
}

static void
remember (GHashTable *set, guint64 print)
{
  if (!g_hash_table_contains (set, &print))
    g_hash_table_add (set, g_memdup2 (&print, sizeof print));
}

/* How many reads of values stand within a call, and where the first is. */
static void
count_reads (TdStaticScan *scan, const TdIteration *it, guint first, guint end,
             TdStaticCalls *calls)
{
  const TdTapeIteration *t = td_iteration_get_tape (it);

  calls->read_site = "";
  for (guint i = 0; i < t->n_host_reads; i++)
    if (t->host_reads[i].event > first && t->host_reads[i].event < end)
      {
        g_autofree char *site = td_iteration_dup_place (it, t->host_reads[i].site);

        if (calls->n_reads++ == 0)
          calls->read_site = keep (scan, site);
      }
}

/* Adds one call of a function: its prints to the unit's, which do not depend on how often and
 * in which order the same calls are made. */
static void
add_call (TdStaticScan *scan, TdStaticUnit *unit, gint at, guint first, guint end)
{
  Print p = call_print (unit->iteration, first, end);
  const guint64 own[2] = { p.structure, p.sizes };
  GHashTable *const sets[2]
      = { g_ptr_array_index (scan->prints, at), g_ptr_array_index (scan->sizes, at) };
  TdStaticCalls *calls = g_hash_table_lookup (unit->calls, GINT_TO_POINTER (at + 1));

  if (!calls)
    {
      calls = g_new0 (TdStaticCalls, 1);
      g_hash_table_insert (unit->calls, GINT_TO_POINTER (at + 1), calls);
    }
  if (calls->n_calls++ == 0)
    {
      calls->n_ops = p.n_ops;
      count_reads (scan, unit->iteration, first, end, calls);
    }
  for (guint i = 0; i < 2; i++)
    {
      guint64 distinct = td__mix (td__mix (own[i], (guint64)at), i);

      if (!g_hash_table_contains (scan->seen, &distinct))
        calls->print[i] += own[i];
      remember (scan->seen, distinct);
      remember (sets[i], own[i]);
    }
}

/* ---- what was added later ---- */

static void
note_addition (TdStaticScan *scan, const TdStaticUnit *unit, gboolean is_parameter,
               const char *path, guint32 site)
{
  g_autofree char *key = g_strdup_printf ("%c%s", is_parameter ? 'P' : 'L', path);

  if (!*path || g_hash_table_contains (scan->known, key))
    return;
  if (scan->s->n_looked_at > 1)
    {
      g_autofree char *where = td_iteration_dup_place (unit->iteration, site);
      TdStaticAddition one = { .is_parameter = is_parameter,
                               .path = keep (scan, path),
                               .iteration = (gint64)unit->number,
                               .site = keep (scan, where) };

      g_array_append_val (scan->additions, one);
    }
  g_hash_table_add (scan->known, g_steal_pointer (&key));
}

static void
find_additions (TdStaticScan *scan, const TdStaticUnit *unit)
{
  const TdIteration *it = unit->iteration;
  const TdTapeIteration *t = td_iteration_get_tape (it);
  guint n;
  const TdLayer *layers = td_iteration_get_layers (it, &n);

  for (guint k = 0; k < n; k++)
    if (layers[k].is_link)
      note_addition (scan, unit, FALSE, layers[k].path, layers[k].site);
  for (guint k = 0; k < t->n_vars; k++)
    if (t->vars[k].flags & TD_TAPE_VAR_PARAMETER)
      {
        guint n_readers;
        const gint32 *readers = td_iteration_get_consumers (it, k, &n_readers);
        const char *link = td_iteration_get_path_name (it, t->vars[k].path);
        g_autofree char *path = g_strdup_printf ("%s%s%s", link, *link ? "/" : "",
                                                 td_iteration_get_var_name (it, k));

        note_addition (scan, unit, TRUE, path,
                       n_readers > 0 ? t->events[readers[0]].site : t->vars[k].site);
      }
}

static guint
end_of_forward (const TdTapeIteration *t)
{
  guint end = t->n_events;

  while (end > 0 && t->events[end - 1].phase != TD_TAPE_PHASE_FORWARD)
    end--;
  return end;
}

static void
look_at_unit (TdStaticScan *scan, TdStaticUnit *unit)
{
  const TdLayer *layers;
  guint n;

  td_tape_reader_skip_memory (scan->reader, true); /* its graph is looked at */
  unit->iteration = td__static_load (scan, unit->row);
  td_tape_reader_skip_memory (scan->reader, false);
  if (!unit->iteration)
    return;
  scan->s->n_looked_at++;
  g_hash_table_remove_all (scan->seen);
  unit->calls = g_hash_table_new_full (NULL, NULL, NULL, g_free);
  layers = td_iteration_get_layers (unit->iteration, &n);
  if (scan->functions->len == 0)
    add_function (scan, unit->iteration, layers, -1);
  add_call (scan, unit, 0, 0, end_of_forward (td_iteration_get_tape (unit->iteration)));
  for (guint i = 0; i < n; i++)
    {
      gint at = find_function (scan, layers, (gint)i);

      if (at < 0 && scan->functions->len >= MAX_FUNCTIONS)
        continue;
      if (at < 0)
        at = add_function (scan, unit->iteration, layers, (gint)i);
      add_call (scan, unit, at, layers[i].first, layers[i].end);
    }
  find_additions (scan, unit);
  scan->n_events += td_iteration_get_n_events (unit->iteration);
  g_clear_pointer (&unit->iteration, td_iteration_unref); /* large ones may be many */
}

/* ---- verdicts ---- */

/* The function's calls in an iteration; NULL: it did not run, or is not known. */
static const TdStaticCalls *
calls_in (const TdStaticScan *scan, guint at, guint row)
{
  const TdStaticUnit *unit
      = &g_array_index (scan->units, TdStaticUnit, g_array_index (scan->unit_of, guint32, row));

  return unit->calls ? g_hash_table_lookup (unit->calls, GINT_TO_POINTER (at + 1)) : NULL;
}

static gint64
number_of (const TdStaticScan *scan, guint row)
{
  return (gint64)td_tape_reader_summaries (scan->reader)
      .rows[g_array_index (scan->rows, guint32, row)]
      .number;
}

typedef struct
{
  guint64 n_since;       /* iterations since it changed last */
  gboolean sizes_change; /* the same calls were made in other sizes */
} Course;

/* Walks over all iterations: in how many it ran, where it changed, since when it stays. */
static Course
follow_function (const TdStaticScan *scan, guint at, TdStaticFunction *function)
{
  Course course = { 0, FALSE };
  const TdStaticCalls *first = NULL, *last = NULL;
  gint64 before = -1;

  for (guint i = 0; i < scan->rows->len; i++)
    {
      const TdStaticCalls *now = calls_in (scan, at, i);

      if (!now)
        continue;
      if (!first)
        first = now;
      course.sizes_change |= now->print[1] != first->print[1];
      if (!last || now->print[0] != last->print[0])
        {
          function->since = number_of (scan, i);
          course.n_since = 0;
        }
      if (now->print[0] != first->print[0] && function->changed < 0)
        {
          function->changed = function->since;
          function->compared = before;
        }
      last = now;
      before = number_of (scan, i);
      course.n_since++;
      function->n_iterations++;
    }
  if (last) /* what the newest iteration does */
    {
      function->n_calls = last->n_calls;
      function->n_ops = last->n_ops;
      function->n_reads = last->n_reads;
      function->read_site = last->read_site;
    }
  return course;
}

static void
judge (TdStaticScan *scan, guint at)
{
  TdStaticFunction *function = &g_array_index (scan->functions, TdStaticFunction, at);
  Course course = follow_function (scan, at, function);
  gboolean few_sizes;

  function->n_structures = g_hash_table_size (g_ptr_array_index (scan->prints, at));
  function->n_sizes = g_hash_table_size (g_ptr_array_index (scan->sizes, at));
  few_sizes = function->n_sizes <= MAX_SCHEDULES
              || (guint64)function->n_sizes * SETTLED <= function->n_iterations;
  if (function->n_iterations <= 1)
    function->verdict = TD_STATIC_ONCE;
  else if (function->changed < 0)
    function->verdict = !course.sizes_change ? TD_STATIC_ALWAYS
                        : few_sizes          ? TD_STATIC_SHAPES
                                             : TD_STATIC_DYNAMIC;
  else if (course.n_since >= SETTLED && 2 * course.n_since >= function->n_iterations
           && few_sizes)
    function->verdict = TD_STATIC_SETTLED;
  else if (few_sizes && function->n_structures <= MAX_SCHEDULES
           && function->n_structures * SETTLED <= function->n_iterations)
    function->verdict = TD_STATIC_SEVERAL;
  else
    function->verdict = TD_STATIC_DYNAMIC;
}

gboolean
td__static_can_be (const TdStaticFunction *function)
{
  return function->n_ops > 0 && function->verdict != TD_STATIC_DYNAMIC
         && function->verdict != TD_STATIC_ONCE;
}

static void
find_maximal (TdStaticScan *scan)
{
  g_autofree gboolean *covered = g_new0 (gboolean, scan->functions->len + 1);

  for (guint i = 0; i < scan->functions->len; i++)
    {
      TdStaticFunction *function = &g_array_index (scan->functions, TdStaticFunction, i);
      gboolean above = function->parent >= 0 && covered[function->parent];

      function->maximal = !above && td__static_can_be (function);
      covered[i] = above || function->maximal;
    }
}

/* ---- the first difference ---- */

static TdIteration *
load_number (const TdStaticScan *scan, gint64 number)
{
  gint64 row = td_tape_reader_find (scan->reader, (guint64)number);

  return row >= 0 && td_tape_reader_stored (scan->reader, (guint32)row)
             ? td__static_load (scan, (guint32)row)
             : NULL;
}

static gboolean
is_in_function (const TdStaticScan *scan, const TdIteration *it, gint event, gint at)
{
  guint n;
  const TdLayer *layers = td_iteration_get_layers (it, &n);

  if (at == 0)
    return TRUE;
  for (gint layer = td_iteration_get_layer (it, (guint)event); layer >= 0 && layer < (gint)n;
       layer = layers[layer].parent)
    if (find_function (scan, layers, layer) == at)
      return TRUE;
  return FALSE;
}

static gboolean
is_of_function (const TdStaticScan *scan, const TdDiff *d, const TdDiffPair *p, gint at)
{
  if (p->kind == TD_DIFF_CHANGED && !(p->aspects & ~(guint)(TD_DIFF_NUMBERS | TD_DIFF_MODE)))
    return FALSE;
  for (guint s = 0; s < 2; s++)
    if (p->event[s] >= 0
        && td_iteration_get_tape (d->side[s])->events[p->event[s]].phase
               == TD_TAPE_PHASE_FORWARD
        && is_in_function (scan, d->side[s], p->event[s], at))
      return TRUE;
  return FALSE;
}

/* Says what differs first in a function; the cause is known of the first difference of all. */
static void
explain_function (TdStaticScan *scan, const TdDiff *d, gint at)
{
  TdStaticFunction *function = &g_array_index (scan->functions, TdStaticFunction, at);

  for (guint i = 0; i < d->n_items; i++)
    {
      const TdDiffPair *p = &d->pairs[d->items[i]];

      if (!is_of_function (scan, d, p, at))
        continue;
      g_autofree char *title = td_diff_dup_title (d, p),
                      *site_a = td_diff_dup_site (d, p, TD_DIFF_A),
                      *site_b = td_diff_dup_site (d, p, TD_DIFF_B), *op = NULL;
      op = p->kind == TD_DIFF_CHANGED
               ? g_strdup (title)
               : g_strdup_printf ("%s %s", title, td_diff_kind_name (p->kind));
      function->op = keep (scan, op);
      function->site_a = keep (scan, site_a);
      function->site_b = keep (scan, site_b);
      if (i == 0 && d->cause.kind != TD_DIFF_CAUSE_NONE)
        function->why = keep (scan, d->cause.text);
      return;
    }
}

/* Functions that changed in the same iteration share one comparison. */
static void
explain (TdStaticScan *scan)
{
  g_autofree gboolean *done = g_new0 (gboolean, scan->functions->len + 1);

  for (guint i = 0; i < scan->functions->len; i++)
    {
      const TdStaticFunction *one = &g_array_index (scan->functions, TdStaticFunction, i);

      if (done[i] || one->changed < 0 || one->compared < 0)
        continue;
      g_autoptr (TdIteration) a = load_number (scan, one->compared);
      g_autoptr (TdIteration) b = load_number (scan, one->changed);
      if (!a || !b)
        continue;
      g_autoptr (TdDiff) d = td_diff_new (a, b, scan->reader, scan->reader);
      for (guint k = i; k < scan->functions->len; k++)
        {
          const TdStaticFunction *other = &g_array_index (scan->functions, TdStaticFunction, k);

          if (other->changed != one->changed || other->compared != one->compared)
            continue;
          done[k] = TRUE;
          explain_function (scan, d, (gint)k);
        }
    }
}

/* ---- what changes although the structure does not ---- */

static void
find_attributes (TdStaticScan *scan)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (NULL, NULL);

  for (guint i = 1; i < scan->newest->len; i++)
    {
      g_autoptr (TdDiff) d = td_diff_new (g_ptr_array_index (scan->newest, i - 1),
                                          g_ptr_array_index (scan->newest, i), NULL, NULL);

      for (guint k = 0; k < d->n_items; k++)
        {
          const TdDiffPair *p = &d->pairs[d->items[k]];
          const TdIteration *it = d->side[TD_DIFF_B];
          guint n;
          const TdLayer *layers = td_iteration_get_layers (it, &n);

          if (!(p->aspects & TD_DIFF_ATTRIBUTES) || p->event[TD_DIFF_B] < 0
              || !g_hash_table_add (seen, GINT_TO_POINTER (p->event[TD_DIFF_B] + 1)))
            continue;
          g_autofree char *site = td_diff_dup_site (d, p, TD_DIFF_B),
                          *what = td_diff_dup_what (d, p), *text = NULL;
          text = g_strdup_printf ("%s at %s: %s",
                                  td_iteration_get_op_name (it, (guint)p->event[TD_DIFF_B]),
                                  site, what);
          for (gint layer = td_iteration_get_layer (it, (guint)p->event[TD_DIFF_B]);;)
            {
              gint at = layer >= 0 ? find_function (scan, layers, layer) : 0;
              TdStaticFunction *function
                  = at >= 0 ? &g_array_index (scan->functions, TdStaticFunction, at) : NULL;

              if (function && function->n_attributes++ == 0)
                function->attribute = keep (scan, text);
              if (layer < 0)
                break;
              layer = layers[layer].parent;
            }
        }
    }
}

/* ---- all of it ---- */

static void
look_at_units (TdStaticScan *scan)
{
  guint n = scan->units->len;

  for (guint i = 0; i < n && scan->n_events < MAX_EVENTS; i++)
    if (n <= MAX_UNITS || i < MAX_UNITS / 2 || i >= n - MAX_UNITS / 2)
      look_at_unit (scan, &g_array_index (scan->units, TdStaticUnit, i));
}

/* The newest iterations that are kept and equal in structure and sizes; of large ones fewer,
 * for they are in memory together. */
static void
load_newest (TdStaticScan *scan)
{
  guint last = scan->rows->len, n_events = 0;

  for (guint i = last; i-- > 0 && scan->newest->len < TD__STATIC_SAMPLE;)
    {
      guint32 row = g_array_index (scan->rows, guint32, i);
      TdIteration *it;

      if (g_array_index (scan->unit_of, guint32, i)
              != g_array_index (scan->unit_of, guint32, last - 1)
          || !td_tape_reader_stored (scan->reader, row))
        continue;
      if (n_events > TD__STATIC_SAMPLE_EVENTS)
        break;
      if (!(it = td__static_load (scan, row)))
        continue;
      n_events += td_iteration_get_n_events (it);
      g_ptr_array_insert (scan->newest, 0, it);
    }
}

static void
count_equal (TdStaticScan *scan)
{
  const guint32 *rows = (const guint32 *)(gconstpointer)scan->rows->data;
  const guint n = scan->rows->len;
  guint since = n;

  while (since > 0
         && g_array_index (scan->unit_of, guint32, since - 1)
                == g_array_index (scan->unit_of, guint32, n - 1))
    since--;
  if (n == 0)
    return;
  scan->s->equal_since = number_of (scan, since);
  scan->s->n_equal = td_schedule_count_between (scan->reader, rows[since], rows[n - 1]);
  scan->s->n_ran = td_schedule_count_between (scan->reader, rows[0], rows[n - 1]);
}

static TdStaticness *
look_at_all (TdTapeReader *reader, TdIteration *loaded, TdRange range)
{
  TdStaticness *s = g_new0 (TdStaticness, 1);
  TdStaticScan scan
      = { .s = s,
          .reader = reader,
          .loaded = loaded,
          .range = range,
          .units = g_array_new (FALSE, TRUE, sizeof (TdStaticUnit)),
          .rows = g_array_new (FALSE, FALSE, sizeof (guint32)),
          .unit_of = g_array_new (FALSE, FALSE, sizeof (guint32)),
          .functions = g_array_new (FALSE, TRUE, sizeof (TdStaticFunction)),
          .by_key = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL),
          .seen = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL),
          .known = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL),
          .additions = g_array_new (FALSE, TRUE, sizeof (TdStaticAddition)),
          .prints = g_ptr_array_new_with_free_func ((GDestroyNotify)g_hash_table_unref),
          .sizes = g_ptr_array_new_with_free_func ((GDestroyNotify)g_hash_table_unref),
          .newest = g_ptr_array_new_with_free_func ((GDestroyNotify)td_iteration_unref) };

  s->texts = g_string_chunk_new (4096);
  g_array_set_clear_func (scan.units, unit_clear);
  collect_units (&scan);
  s->n_iterations = scan.rows->len;
  s->n_structures = scan.units->len;
  look_at_units (&scan);
  count_equal (&scan);
  load_newest (&scan);
  for (guint i = 0; i < scan.functions->len; i++)
    judge (&scan, i);
  find_maximal (&scan);
  explain (&scan);
  find_attributes (&scan);
  td__static_measure (&scan);
  s->n_functions = scan.functions->len;
  s->functions = (TdStaticFunction *)(void *)g_array_free (scan.functions, FALSE);
  s->n_additions = scan.additions->len;
  s->additions = (TdStaticAddition *)(void *)g_array_free (scan.additions, FALSE);
  s->sentence = td__static_sentence (s);
  g_array_unref (scan.units);
  g_array_unref (scan.rows);
  g_array_unref (scan.unit_of);
  g_hash_table_unref (scan.by_key);
  g_hash_table_unref (scan.seen);
  g_hash_table_unref (scan.known);
  g_ptr_array_unref (scan.prints);
  g_ptr_array_unref (scan.sizes);
  g_ptr_array_unref (scan.newest);
  return s;
}

TdStaticness *
td_staticness_new (TdTapeReader *reader, TdIteration *loaded)
{
  return look_at_all (reader, loaded, (TdRange){ 0, 0 });
}

TdStaticness *
td_staticness_new_in (TdTapeReader *reader, TdRange range)
{
  return look_at_all (reader, NULL, range);
}

void
td_staticness_free (TdStaticness *s)
{
  if (!s)
    return;
  g_free (s->functions);
  g_free (s->additions);
  g_free (s->sentence);
  g_string_chunk_free (s->texts);
  g_free (s);
}
