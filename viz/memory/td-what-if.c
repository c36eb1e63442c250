/*
 * The prediction: which layers there are, what they hold, and what becomes of it.
 *
 * SPDX-License-Identifier: MIT
 */
#include <gio/gio.h>
#include <string.h>

#include "graph/td-graph.h"
#include "tape/td-devices.h"
#include "td-what-if.h"

/* A group that holds more than this share of all is looked into: computing it again would be
 * computing nearly everything again. */
#define MOST_OF_ALL 0.6

enum
{
  MOST_LAYERS = 1000 /* the slider has as many places */
};

/* What was allocated in a forward operation, and when it was freed. */
typedef struct
{
  guint32 event;       /* that made it */
  guint32 end;         /* it is there after the events [event, end) */
  guint32 last_reader; /* of all operations of forward; 0: none */
  guint64 bytes;
  guint category;
} Block;

typedef struct
{
  TdWhatIf *self;
  const TdTapeIteration *tape;
  TdVizGraph *graph;
  const TdVizGroup *groups;
  guint n_groups;
  GArray *blocks;        /* Block, by event */
  guint *first_block;    /* by event, n_events + 1 */
  GArray *layers;        /* TdWhatIfLayer */
  gint *child, *sibling; /* by group: its first, and the next of its parent; -1: none */
  guint32 *first_backward, *last_backward; /* by forward event; TD_TAPE_NONE: none */
} Search;

/* ---- blocks ---- */

static gboolean
is_forward (const Search *s, guint event)
{
  return td_viz_graph_get_event_lane (s->graph, event) == TD_LANE_FORWARD;
}

/* The last operation of forward that reads each buffer: a view reads the buffer of its input,
 * and so do its readers. */
static guint32 *
find_readers (const Search *s)
{
  const TdTapeIteration *t = s->tape;
  guint32 *last = g_new0 (guint32, t->n_vars + 1);

  /* backwards: a view's readers are known before those of what it shows */
  for (guint e = t->n_events; e-- > 0;)
    {
      const TdTapeEvent *event = &t->events[e];

      if (!is_forward (s, e))
        continue;
      for (guint k = 0; k < event->n_in; k++)
        {
          guint32 *of = &last[t->ins[event->first_in + k]];

          *of = MAX (*of, e);
          if ((event->flags & TD_TAPE_EVENT_SHARED) && k == 0 && event->n_out > 0)
            *of = MAX (*of, last[t->outs[event->first_out]]);
        }
    }
  return last;
}

static guint64
buffer_of (const TdTapeMemory *r)
{
  return r->buffer != TD_TAPE_NO_ID && r->buffer != 0 ? r->buffer : r->address;
}

/* What backward and the optimizer make, and what the program keeps, stays as it is. */
static gboolean
may_go (const TdTapeMemory *r)
{
  return r->category == TD_TAPE_CATEGORY_ACTIVATION || r->category == TD_TAPE_CATEGORY_OTHER
         || r->category == TD_TAPE_CATEGORY_BUFFER || r->category == TD_TAPE_CATEGORY_WORKSPACE;
}

static void
find_blocks (Search *s)
{
  const TdTapeIteration *t = s->tape;
  g_autoptr (GHashTable) alive = g_hash_table_new (NULL, NULL);
  g_autofree guint32 *readers = find_readers (s);
  guint e = 0;

  s->blocks = g_array_new (FALSE, FALSE, sizeof (Block));
  s->first_block = g_new0 (guint, t->n_events + 2);
  for (guint m = 0; m < t->n_memory; m++)
    {
      const TdTapeMemory *r = &t->memory[m];
      gpointer id = GSIZE_TO_POINTER (buffer_of (r));

      for (; e <= MIN (r->event, t->n_events); e++)
        s->first_block[e] = s->blocks->len;
      if (r->kind == TD_TAPE_MEMORY_FREE)
        {
          gpointer at = g_hash_table_lookup (alive, id);

          if (at)
            g_array_index (s->blocks, Block, GPOINTER_TO_UINT (at) - 1).end = r->event;
          g_hash_table_remove (alive, id);
        }
      else if (r->kind == TD_TAPE_MEMORY_ALLOC && r->event < t->n_events
               && is_forward (s, r->event) && may_go (r))
        {
          Block block = { .event = r->event,
                          .end = t->n_events + 1,
                          .bytes = r->bytes,
                          .category = MIN (r->category, TD_TAPE_N_CATEGORIES - 1),
                          .last_reader = r->var < t->n_vars ? readers[r->var] : 0 };

          g_array_append_val (s->blocks, block);
          g_hash_table_insert (alive, id, GUINT_TO_POINTER (s->blocks->len));
        }
    }
  for (; e < t->n_events + 2; e++)
    s->first_block[e] = s->blocks->len;
}

/* ---- calls ---- */

static void
find_backward (Search *s)
{
  guint n = s->tape->n_events;

  s->first_backward = g_new (guint32, n + 1);
  s->last_backward = g_new (guint32, n + 1);
  for (guint e = 0; e < n; e++)
    s->first_backward[e] = s->last_backward[e] = TD_TAPE_NONE;
  for (guint e = 0; e < n; e++)
    {
      gint forward = td_iteration_get_forward (s->self->iteration, e);

      if (forward < 0 || (guint)forward == e
          || td_viz_graph_get_event_lane (s->graph, e) != TD_LANE_BACKWARD)
        continue;
      if (s->first_backward[forward] == TD_TAPE_NONE)
        s->first_backward[forward] = e;
      s->last_backward[forward] = e;
    }
}

/* One call: forward [a, b], backward [r, z]. */
typedef struct
{
  guint32 a, b, r, z;
} Call;

static void
add_change (Search *s, guint32 from, guint32 to, gint64 bytes, guint category)
{
  TdWhatIfChange change = { from, to, bytes, category };

  if (to > from && bytes != 0)
    g_array_append_val (s->self->changes, change);
}

/* What the second run needs beyond what stays of it: at its first event it is there as well. */
static guint64
passing_bytes (const Search *s, const Call *c)
{
  g_autofree guint64 *gone = g_new0 (guint64, c->b - c->a + 2); /* by event */
  guint64 now = 0, most = 0;

  for (guint e = c->a; e <= c->b; e++)
    {
      now -= gone[e - c->a];
      for (guint i = s->first_block[e]; i < s->first_block[e + 1]; i++)
        {
          const Block *block = &g_array_index (s->blocks, Block, i);

          now += block->bytes;
          if (block->end <= e)
            now -= block->bytes;
          else if (block->end <= c->b)
            gone[block->end - c->a] += block->bytes;
        }
      most = MAX (most, now);
    }
  return most - now;
}

static void
change_block (Search *s, const Call *c, const Block *block, TdWhatIfLayer *layer)
{
  if (block->last_reader > c->b || block->last_reader == 0) /* handed on */
    {
      /* made a second time, and its gradient is not overwritten while it is the function's */
      add_change (s, c->r, c->z + 1, (gint64)block->bytes, block->category);
      add_change (s, c->r, c->z + 1, (gint64)block->bytes, TD_TAPE_CATEGORY_GRADIENT);
      return;
    }
  if (block->end <= c->b + 1)
    return;
  layer->held_bytes += block->end > c->r ? block->bytes : 0;
  add_change (s, c->b + 1, MIN (c->r, block->end), -(gint64)block->bytes, block->category);
  if (block->end > c->z + 1)
    add_change (s, c->z + 1, block->end, -(gint64)block->bytes, block->category);
}

/* Returns whether anything is kept by it. */
static void
add_call (Search *s, guint32 a, guint32 b, TdWhatIfLayer *layer)
{
  Call c = { a, b, TD_TAPE_NONE, 0 };

  for (guint e = a; e <= b; e++)
    if (s->first_backward[e] != TD_TAPE_NONE)
      {
        c.r = MIN (c.r, s->first_backward[e]);
        c.z = MAX (c.z, s->last_backward[e]);
      }
  if (c.r == TD_TAPE_NONE || c.r <= b)
    return;
  layer->n_calls++;
  for (guint e = a; e <= b; e++)
    layer->time_ns += td_devices_duration (s->self->iteration, e);
  for (guint i = s->first_block[a]; i < s->first_block[b + 1]; i++)
    change_block (s, &c, &g_array_index (s->blocks, Block, i), layer);
  add_change (s, c.r, c.r + 1, (gint64)passing_bytes (s, &c), TD_TAPE_CATEGORY_ACTIVATION);
}

/* ---- layers ---- */

static void
add_layer (Search *s, guint group)
{
  guint n;
  const gint32 *members = td_viz_graph_get_members (s->graph, group, TD_LANE_FORWARD, &n);
  const TdVizGroup *g = &s->groups[group];
  TdWhatIfLayer layer = { .path = g->path,
                          .name = g->name,
                          .n_ops = n,
                          .title = g->kind == TD_GROUP_LINK && *g->path ? g->path : g->name,
                          .first_change = s->self->changes->len };

  if (n == 0)
    return;
  layer.event = members[0];
  for (guint from = 0, to; from < n; from = to)
    {
      for (to = from + 1; to < n && members[to] == members[to - 1] + 1; to++)
        ;
      add_call (s, (guint32)members[from], (guint32)members[to - 1], &layer);
    }
  layer.n_changes = s->self->changes->len - layer.first_change;
  if (layer.held_bytes > 0 && s->layers->len < MOST_LAYERS)
    g_array_append_val (s->layers, layer);
  else
    g_array_set_size (s->self->changes, layer.first_change);
}

static void
find_children (Search *s)
{
  s->child = g_new (gint, s->n_groups);
  s->sibling = g_new (gint, s->n_groups);
  for (guint g = 0; g < s->n_groups; g++)
    s->child[g] = s->sibling[g] = -1;
  for (guint g = s->n_groups; g-- > 1;)
    {
      s->sibling[g] = s->child[s->groups[g].parent];
      s->child[s->groups[g].parent] = (gint)g;
    }
}

/* Loops and sections are none: what is in them is. */
static void
look_into (Search *s, guint group)
{
  for (gint g = s->child[group]; g >= 0; g = s->sibling[g])
    {
      const TdVizGroup *child = &s->groups[g];

      if (child->kind == TD_GROUP_LOOP || child->kind == TD_GROUP_SECTION
          || (double)child->saved_bytes > MOST_OF_ALL * (double)s->groups[0].saved_bytes)
        look_into (s, (guint)g);
      else
        add_layer (s, (guint)g);
    }
}

static int
best_first (gconstpointer a, gconstpointer b)
{
  const TdWhatIfLayer *x = a, *y = b;
  double left = (double)x->held_bytes * (double)MAX (y->time_ns, 1);
  double right = (double)y->held_bytes * (double)MAX (x->time_ns, 1);

  if (left != right)
    return left > right ? -1 : 1;
  return (x->event > y->event) - (x->event < y->event);
}

static gboolean
can_be_asked (const TdIteration *iteration, GError **error)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);
  gboolean backward = FALSE, replayed = FALSE;
  const char *trouble = NULL;

  for (guint e = 0; e < t->n_events; e++)
    {
      backward |= t->events[e].phase == TD_TAPE_PHASE_BACKWARD;
      replayed |= (t->events[e].flags & TD_TAPE_EVENT_REPLAYED) != 0;
    }
  if (t->n_memory == 0)
    trouble = "There are no allocation records of this iteration: nothing can be predicted.";
  else if (!backward)
    trouble = "This iteration has no backward, and keeps nothing for one.";
  else if (replayed)
    trouble = "A static schedule ran in this iteration, and has planned its memory: run with "
              "--static off to ask what code would need.";
  if (trouble)
    g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_FAILED, trouble);
  return trouble == NULL;
}

TdWhatIf *
td_what_if_new (TdIteration *iteration, GError **error)
{
  TdWhatIf *self;
  Search s = { .tape = td_iteration_get_tape (iteration) };

  if (!can_be_asked (iteration, error))
    return NULL;
  self = g_new0 (TdWhatIf, 1);
  self->iteration = td_iteration_ref (iteration);
  self->recorded = td_memory_profile_new (iteration);
  self->changes = g_array_new (FALSE, FALSE, sizeof (TdWhatIfChange));
  s.self = self;
  s.graph = td_iteration_get_graph (iteration);
  s.groups = td_viz_graph_get_groups (s.graph, &s.n_groups);
  s.layers = g_array_new (FALSE, FALSE, sizeof (TdWhatIfLayer));
  find_blocks (&s);
  find_backward (&s);
  find_children (&s);
  look_into (&s, 0);
  self->time_ns = td_devices_sum_durations (iteration);
  g_array_sort (s.layers, best_first);
  self->n_layers = s.layers->len;
  self->layers = (TdWhatIfLayer *)(gpointer)g_array_free (s.layers, FALSE);
  g_array_unref (s.blocks);
  g_free (s.child);
  g_free (s.sibling);
  g_free (s.first_block);
  g_free (s.first_backward);
  g_free (s.last_backward);
  return self;
}

void
td_what_if_free (TdWhatIf *self)
{
  if (!self)
    return;
  td_iteration_unref (self->iteration);
  td_memory_profile_free (self->recorded);
  g_array_unref (self->changes);
  g_free (self->layers);
  g_free (self);
}

/* ---- a choice ---- */

void
td_what_if_choose_first (TdWhatIf *self, guint n)
{
  for (guint i = 0; i < self->n_layers; i++)
    self->layers[i].chosen = i < n;
}

static gboolean
is_named (const TdWhatIfLayer *layer, const char *word)
{
  return g_pattern_match_simple (word, layer->path)
         || g_pattern_match_simple (word, layer->name);
}

gboolean
td_what_if_choose (TdWhatIf *self, const char *words, GError **error)
{
  g_auto (GStrv) list = g_strsplit (words, ",", -1);
  g_autofree gboolean *chosen = g_new0 (gboolean, self->n_layers + 1);

  for (guint w = 0; list[w]; w++)
    {
      gboolean any = FALSE;

      for (guint i = 0; i < self->n_layers; i++)
        if (is_named (&self->layers[i], list[w]))
          chosen[i] = any = TRUE;
      if (any)
        continue;
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED,
                   "--recompute %s: no layer that keeps anything for backward is called so "
                   "(the view what-if without --recompute lists them)",
                   list[w]);
      return FALSE;
    }
  for (guint i = 0; i < self->n_layers; i++)
    self->layers[i].chosen = chosen[i];
  return TRUE;
}

guint
td_what_if_count_chosen (const TdWhatIf *self)
{
  guint n = 0;

  for (guint i = 0; i < self->n_layers; i++)
    n += self->layers[i].chosen;
  return n;
}

static TdMemoryProfile *
copy_profile (const TdMemoryProfile *of)
{
  TdMemoryProfile *p = g_memdup2 (of, sizeof *of);

  p->total = g_memdup2 (of->total, of->n_steps * sizeof *of->total);
  for (int c = 0; c < TD_TAPE_N_CATEGORIES; c++)
    {
      p->bytes[c] = g_new0 (guint64, of->n_steps);
      for (guint e = 0; e < of->n_steps; e++)
        if (of->bytes[c][e] != 0) /* as in td_memory_profile_new () */
          p->bytes[c][e] = of->bytes[c][e];
    }
  return p;
}

/* What changes at each step, in one category or (TD_TAPE_N_CATEGORIES) in all; NULL: nothing.
 */
static gint64 *
find_steps (const TdWhatIf *self, guint category)
{
  guint n = self->recorded->n_steps;
  gint64 *step = NULL;

  for (guint i = 0; i < self->n_layers; i++)
    for (guint k = 0; self->layers[i].chosen && k < self->layers[i].n_changes; k++)
      {
        const TdWhatIfChange *c
            = &g_array_index (self->changes, TdWhatIfChange, self->layers[i].first_change + k);

        if (category != TD_TAPE_N_CATEGORIES && category != c->category)
          continue;
        if (!step)
          step = g_new0 (gint64, n + 1);
        step[MIN (c->from, n)] += c->bytes;
        step[MIN (c->to, n)] -= c->bytes;
      }
  return step;
}

static void
add_steps (guint64 *bytes, guint n, const gint64 *step)
{
  gint64 now = 0;

  for (guint e = 0; step && e < n; e++)
    {
      now += step[e];
      bytes[e] = (guint64)MAX ((gint64)bytes[e] + now, 0);
    }
}

/* The peak may have been between two events. */
static void
find_peak (const TdWhatIf *self, const guint64 *total, guint64 *peak, guint *event)
{
  const TdMemoryProfile *r = self->recorded;
  guint64 between = r->peak_bytes - r->total[r->peak_event];

  *peak = 0;
  for (guint e = 0; e < r->n_steps; e++)
    {
      guint64 here = total[e] + (e == r->peak_event ? between : 0);

      if (here > *peak)
        {
          *peak = here;
          *event = e;
        }
    }
}

TdWhatIfForecast
td_what_if_predict (const TdWhatIf *self)
{
  g_autofree gint64 *step = find_steps (self, TD_TAPE_N_CATEGORIES);
  g_autofree guint64 *total
      = g_memdup2 (self->recorded->total, self->recorded->n_steps * sizeof *total);
  TdWhatIfForecast f = { 0 };

  add_steps (total, self->recorded->n_steps, step);
  find_peak (self, total, &f.peak_bytes, &f.peak_event);
  for (guint i = 0; i < self->n_layers; i++)
    f.more_ns += self->layers[i].chosen ? self->layers[i].time_ns : 0;
  return f;
}

TdMemoryProfile *
td_what_if_predict_profile (const TdWhatIf *self)
{
  TdMemoryProfile *p = copy_profile (self->recorded);

  memset (p->total, 0, p->n_steps * sizeof *p->total);
  for (guint c = 0; c < TD_TAPE_N_CATEGORIES; c++)
    {
      g_autofree gint64 *step = find_steps (self, c);

      add_steps (p->bytes[c], p->n_steps, step);
      p->most[c] = 0;
      for (guint e = 0; e < p->n_steps; e++)
        {
          p->total[e] += p->bytes[c][e];
          p->most[c] = MAX (p->most[c], p->bytes[c][e]);
        }
    }
  find_peak (self, p->total, &p->peak_bytes, &p->peak_event);
  return p;
}
