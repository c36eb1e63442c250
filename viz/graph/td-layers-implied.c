/* Implied calls. In each recorded call, and at the top, neighbours whose paths begin alike make
 * a run: `res3/conv1 ... res3/bn2`. What stands between two of its calls belongs to it; what
 * stands between two runs does if it is written on their lines, or closes a residual, or
 * follows each of several runs; the rest stays where it is. A run that makes the same calls
 * again and again is several runs: a cell over time is one box for each step.
 *
 * SPDX-License-Identifier: MIT */
#include "graph/td-layers-implied.h"

#include <string.h>

#include "tape/td-mix.h"

#define MAX_DEPTH 64 /* deeper calls are not looked into */

/* One thing that a call does. */
typedef struct
{
  gint32 layer;       /* recorded; -1: an operation */
  guint32 event, end; /* forward events [event, end) */
  guint32 site;
} Item;

/* Neighbours below one path. Items [first, end) once operations beside it were given to it. */
typedef struct
{
  guint first, end;
  guint last_call;
  gsize path_length; /* of the path that they share; 0: one call that stands by itself */
  guint min_line, max_line;
  const char *file;
} Run;

typedef struct
{
  TdIteration *iteration;
  const TdTapeIteration *tape;
  const TdLayer *recorded;
  TdLayers *result;
  GArray **items;      /* of each container: layer + 1 */
  GHashTable *follows; /* (operation, call before or after it) -> how often */
} Implier;

static const char *
line_of (const Implier *m, guint32 site, guint *line)
{
  guint32 at = 0;
  const char *file = site ? td_iteration_get_site (m->iteration, site, &at) : "";

  *line = at;
  return file;
}

/* ---- runs ---- */

/* How long the path of the implied call is that `item` would be in: "net/res3" of
 * "net/res3/conv1" below "net"; 0: in none. */
static gsize
implied_length (const Implier *m, const Item *item, const char *base)
{
  gsize length = strlen (base);
  const char *path, *slash;

  if (item->layer < 0 || !m->recorded[item->layer].is_link)
    return 0;
  path = m->recorded[item->layer].path;
  if (length > 0 && (strncmp (path, base, length) != 0 || path[length] != '/'))
    return 0;
  slash = strchr (path + (length > 0 ? length + 1 : 0), '/');
  return slash ? (gsize)(slash - path) : 0;
}

static void
widen (const Implier *m, Run *run, const Item *item)
{
  guint line;
  const char *file = line_of (m, item->site, &line);

  if (line == 0 || (run->file && strcmp (run->file, file) != 0))
    return;
  run->min_line = run->file ? MIN (run->min_line, line) : line;
  run->max_line = run->file ? MAX (run->max_line, line) : line;
  run->file = file;
}

static const char *
path_at (const Implier *m, const Item *items, guint i)
{
  return m->recorded[items[i].layer].path;
}

static void
add_run (const Implier *m, GArray *runs, const Item *items, guint first, guint last,
         gsize path_length)
{
  Run run = { .first = first, .end = last + 1, .last_call = last, .path_length = path_length };

  for (guint i = first; i <= last; i++)
    widen (m, &run, &items[i]);
  g_array_append_val (runs, run);
}

/* How many of the calls from `first` on are made again and again up to `last`, exactly: a cell
 * over time, a critic judging twice. 0: they are no repetition. */
static guint
find_repeat (const Implier *m, const guint *calls, guint n, const Item *items)
{
  guint period = 1;

  while (period < n
         && strcmp (path_at (m, items, calls[period]), path_at (m, items, calls[0])) != 0)
    period++;
  if (period == n || n % period != 0 || period == 1)
    return 0;
  for (guint i = period; i < n; i++)
    if (strcmp (path_at (m, items, calls[i]), path_at (m, items, calls[i - period])) != 0)
      return 0;
  return period;
}

static GArray *
find_runs (const Implier *m, const Item *items, guint n, const char *base)
{
  GArray *runs = g_array_new (FALSE, TRUE, sizeof (Run));
  GArray *calls = g_array_new (FALSE, FALSE, sizeof (guint));

  for (guint i = 0; i < n; i++)
    if (items[i].layer >= 0)
      g_array_append_val (calls, i);
  for (guint c = 0; c < calls->len;)
    {
      const guint *at = &g_array_index (calls, guint, c);
      gsize length = implied_length (m, &items[*at], base);
      guint n_like = 1, period;

      while (length > 0 && c + n_like < calls->len
             && implied_length (m, &items[at[n_like]], base) == length
             && strncmp (path_at (m, items, at[n_like]), path_at (m, items, *at), length) == 0)
        n_like++;
      period = find_repeat (m, at, n_like, items);
      period = period ? period : n_like;
      for (guint k = 0; k < n_like; k += period)
        add_run (m, runs, items, at[k], at[k + period - 1], length);
      c += n_like;
    }
  g_array_free (calls, TRUE);
  return runs;
}

/* ---- operations between runs ---- */

/* Is it written on the line of the call? */
static gboolean
is_on_line (const Implier *m, const Item *item, const Item *call)
{
  guint line, call_line;
  const char *file = line_of (m, item->site, &line);

  return line > 0 && strcmp (line_of (m, call->site, &call_line), file) == 0
         && line == call_line;
}

/* Is it written on the lines of the run, and not rather as an argument of the call `next`? */
static gboolean
is_on_lines (const Implier *m, const Run *run, const Item *item, const Item *next)
{
  guint line;
  const char *file = line_of (m, item->site, &line);

  return line > 0 && run->file && strcmp (run->file, file) == 0 && line >= run->min_line
         && line <= run->max_line
         && (!next || line == run->max_line || !is_on_line (m, item, next));
}

static gboolean
is_known_to (const Implier *m, gint32 var, guint32 first, guint32 event)
{
  gint producer = m->tape->vars[var].producer;
  guint n;
  const gint32 *readers;

  if (producer >= (gint)first && producer < (gint)event)
    return TRUE;
  readers = td_iteration_get_consumers (m->iteration, (guint)var, &n);
  for (guint r = 0; r < n && readers[r] < (gint)event; r++)
    if (readers[r] >= (gint)first)
      return TRUE;
  return FALSE;
}

/* `x + f (x)`: reads several values, each made by the run or read by it. */
static gboolean
closes_residual (const Implier *m, const Item *first, const Item *item)
{
  const TdTapeEvent *event = &m->tape->events[item->event];

  for (guint i = 0; i < event->n_in; i++)
    if (!is_known_to (m, (gint32)m->tape->ins[event->first_in + i], first->event, item->event))
      return FALSE;
  return event->n_in > 1;
}

static gint64
beside_key (const Implier *m, const Item *item, const Item *call, gboolean after)
{
  guint64 key = td__mix (item->site, m->tape->events[item->event].opdef);

  return (gint64)td__mix (td__mix (key, call->site), after);
}

static void
count_beside (Implier *m, const Item *item, const Item *call, gboolean after)
{
  gint64 key = beside_key (m, item, call, after);
  guint count = GPOINTER_TO_UINT (g_hash_table_lookup (m->follows, &key));

  g_hash_table_insert (m->follows, g_memdup2 (&key, sizeof key), GUINT_TO_POINTER (count + 1));
}

static gboolean
is_often_beside (const Implier *m, const Item *item, const Item *call, gboolean after)
{
  gint64 key = beside_key (m, item, call, after);

  return item->site && GPOINTER_TO_UINT (g_hash_table_lookup (m->follows, &key)) > 1;
}

static void
count_neighbours (Implier *m, const Item *items, guint n, GArray *runs)
{
  for (guint r = 0; r < runs->len; r++)
    {
      const Run *run = &g_array_index (runs, Run, r);
      guint before = r > 0 ? g_array_index (runs, Run, r - 1).end : 0;
      guint after = r + 1 < runs->len ? g_array_index (runs, Run, r + 1).first : n;

      if (run->path_length == 0)
        continue;
      for (guint i = run->end; i < after; i++)
        count_beside (m, &items[i], &items[run->last_call], TRUE);
      for (guint i = before; i < run->first; i++)
        count_beside (m, &items[i], &items[run->first], FALSE);
    }
}

/* What comes between all calls of a series is beside both neighbours: it prepares the next one
 * if it is written above it. */
static gboolean
prepares (const Implier *m, const Item *item, const Item *next)
{
  guint line, next_line;
  const char *file = line_of (m, item->site, &line);

  return next && is_often_beside (m, item, next, FALSE)
         && strcmp (line_of (m, next->site, &next_line), file) == 0 && line < next_line;
}

/* Gives each run what follows it and is its own, then what comes before it. */
static void
share_neighbours (Implier *m, const Item *items, guint n, GArray *runs)
{
  for (guint r = 0; r < runs->len; r++)
    {
      Run *run = &g_array_index (runs, Run, r);
      guint after = r + 1 < runs->len ? g_array_index (runs, Run, r + 1).first : n;
      const Item *next = after < n ? &items[after] : NULL;
      guint call = run->first;

      if (run->path_length == 0)
        continue;
      for (guint before = r > 0 ? g_array_index (runs, Run, r - 1).end : 0;
           run->first > before
           && (is_on_line (m, &items[run->first - 1], &items[call])
               || is_often_beside (m, &items[run->first - 1], &items[call], FALSE));
           run->first--)
        widen (m, run, &items[run->first - 1]);
      for (; run->end < after
             && (is_on_lines (m, run, &items[run->end], next)
                 || closes_residual (m, &items[run->first], &items[run->end])
                 || (is_often_beside (m, &items[run->end], &items[run->last_call], TRUE)
                     && !prepares (m, &items[run->end], next)));
           run->end++)
        widen (m, run, &items[run->end]);
    }
}

/* ---- calls ---- */

static gint32
add_layer (Implier *m, gint32 parent, const TdLayer *like)
{
  TdLayer *layer = &m->result->layers[m->result->n_layers];

  *layer = *like;
  layer->parent = parent;
  layer->depth = parent >= 0 ? m->result->layers[parent].depth + 1 : 0;
  return (gint32)m->result->n_layers++;
}

static gint32
add_implied (Implier *m, gint32 parent, const Item *items, const Run *run)
{
  const char *path = path_at (m, items, run->last_call), *slash;
  TdLayer layer = { .first = items[run->first].event,
                    .end = items[run->end - 1].end,
                    .site = items[run->first].site,
                    .is_link = TRUE };

  layer.path = g_string_chunk_insert_len (m->result->strings, path, (gssize)run->path_length);
  slash = strrchr (layer.path, '/');
  layer.name = slash ? slash + 1 : layer.path;
  return add_layer (m, parent, &layer);
}

static void imply (Implier *m, gint32 parent, const char *base, const Item *items, guint n);

static void
emit (Implier *m, gint32 parent, const Item *item)
{
  const TdLayer *layer;
  const char *base = "";
  GArray *inside;
  gint32 own;

  if (item->layer < 0)
    {
      m->result->event_layer[item->event] = parent;
      return;
    }
  layer = &m->recorded[item->layer];
  own = add_layer (m, parent, layer);
  if (m->result->layers[own].depth >= MAX_DEPTH)
    {
      for (guint e = layer->first; e < layer->end; e++)
        m->result->event_layer[e] = own;
      return;
    }
  for (gint32 l = item->layer; l >= 0 && !*base; l = m->recorded[l].parent)
    if (m->recorded[l].is_link)
      base = m->recorded[l].path;
  inside = m->items[item->layer + 1];
  if (inside)
    imply (m, own, base, (const Item *)(gpointer)inside->data, inside->len);
}

static void
imply (Implier *m, gint32 parent, const char *base, const Item *items, guint n)
{
  GArray *runs = find_runs (m, items, n, base);
  gint depth = parent >= 0 ? m->result->layers[parent].depth : 0;
  guint i = 0;

  count_neighbours (m, items, n, runs);
  share_neighbours (m, items, n, runs);
  for (guint r = 0; r < runs->len; r++)
    {
      const Run *run = &g_array_index (runs, Run, r);

      for (; i < run->first; i++)
        emit (m, parent, &items[i]);
      if (run->path_length > 0 && run->end - run->first > 1 && depth < MAX_DEPTH)
        {
          gint32 own = add_implied (m, parent, items, run);

          imply (m, own, m->result->layers[own].path, items + run->first,
                 run->end - run->first);
        }
      else
        for (guint k = run->first; k < run->end; k++)
          emit (m, parent, &items[k]);
      i = run->end;
    }
  for (; i < n; i++)
    emit (m, parent, &items[i]);
  g_array_free (runs, TRUE);
}

/* ---- the whole ---- */

static void
add_item (Implier *m, gint32 container, const Item *item)
{
  GArray **items = &m->items[container + 1];

  if (!*items)
    *items = g_array_new (FALSE, FALSE, sizeof (Item));
  g_array_append_val (*items, *item);
}

static void
collect (Implier *m, guint n_recorded)
{
  guint next = 0;

  for (guint e = 0; e <= m->tape->n_events; e++)
    {
      for (; next < n_recorded && m->recorded[next].first <= e; next++)
        {
          const TdLayer *layer = &m->recorded[next];
          Item item = { (gint32)next, layer->first, layer->end, layer->site };

          add_item (m, layer->parent, &item);
        }
      if (e < m->tape->n_events && m->tape->events[e].phase == TD_TAPE_PHASE_FORWARD)
        {
          Item item = { -1, e, e + 1, m->tape->events[e].site };

          add_item (m, td_iteration_get_layer (m->iteration, e), &item);
        }
    }
}

void
td__layers_imply (TdLayers *self, TdIteration *iteration)
{
  Implier m = { .iteration = iteration, .result = self };
  guint n_recorded;
  guint depth = 1;

  m.tape = td_iteration_get_tape (iteration);
  m.recorded = td_iteration_get_layers (iteration, &n_recorded);
  /* at most one for each part of a path */
  for (guint i = 0; i < n_recorded; i++)
    for (const char *c = m.recorded[i].is_link ? m.recorded[i].path : ""; *c; c++)
      depth += *c == '/';
  self->layers = g_new0 (TdLayer, n_recorded + depth);
  self->n_layers = 0;
  self->event_layer = g_new (gint32, m.tape->n_events + 1);
  memset (self->event_layer, -1, sizeof (gint32) * (m.tape->n_events + 1));
  self->strings = g_string_chunk_new (256);
  m.items = g_new0 (GArray *, n_recorded + 1);
  m.follows = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);
  collect (&m, n_recorded);
  if (m.items[0])
    imply (&m, -1, "", (const Item *)(gpointer)m.items[0]->data, m.items[0]->len);
  for (guint i = 0; i <= n_recorded; i++)
    if (m.items[i])
      g_array_free (m.items[i], TRUE);
  g_free (m.items);
  g_hash_table_unref (m.follows);
}

void
td__layers_clear (TdLayers *self)
{
  g_free (self->layers);
  g_free (self->event_layer);
  g_string_chunk_free (self->strings);
}
