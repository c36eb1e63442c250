/* Indices over one iteration of a tape: keys, consumers, twins, layers, anomalies.
 *
 * SPDX-License-Identifier: MIT */
#include "tape/td-iteration-private.h"

#include <string.h>

#include "td-tape-reader.h"

/* Where the events or variables of a key are: open addressing, at most half full, -1 in what is
 * empty. Of two with the same key the first is found. */
typedef struct
{
  gint32 *slots;
  guint32 mask;
} Keys;

/* Lists of indices by index: the items of k are items[first[k]] ... items[first[k + 1]]. */
typedef struct
{
  guint32 *first;
  gint32 *items;
} Lists;

struct TdIteration
{
  gint ref_count;
  const TdNamesClass *names;
  gpointer names_data;
  GDestroyNotify free_names_data;
  const TdTapeIteration *tape;
  void (*free_tape) (const TdTapeIteration *);
  GMutex keys_lock;
  Keys event_keys, var_keys; /* without slots: not made yet */
  Lists consumers, twins;
  gint32 *forward;      /* per event */
  gint32 *layer;        /* per event */
  guint n_run;          /* events; the others are expected */
  guint8 *anomaly;      /* per event */
  TdReplayed *replayed; /* per event; NULL: none was in a run that is known */
  gboolean any_replayed;
  TdLayer *layers;
  guint n_layers;
  GStringChunk *strings; /* of layers that had to be inferred */
  GMutex kept_lock;
  gpointer kept; /* what was made of it and goes with it; NULL: nothing yet */
  GDestroyNotify free_kept;
};

G_DEFINE_BOXED_TYPE (TdIteration, td_iteration, td_iteration_ref, td_iteration_unref)

/* ---- names ---- */

const char *
td_iteration_get_string (const TdIteration *self, guint32 id)
{
  const char *text = id ? self->names->string (self->names_data, id) : NULL;

  return text ? text : "";
}

const char *
td_iteration_get_path_name (const TdIteration *self, guint32 path)
{
  const char *text = path ? self->names->path (self->names_data, path) : NULL;

  return text ? text : "";
}

const char *
td_iteration_get_site (const TdIteration *self, guint32 site, guint32 *line)
{
  const char *file;

  *line = 0;
  file = site ? self->names->site (self->names_data, site, line) : NULL;
  return file ? file : "";
}

const char *
td_iteration_get_function (const TdIteration *self, guint32 site)
{
  const char *text
      = site && self->names->function ? self->names->function (self->names_data, site) : NULL;

  return text ? text : "";
}

const char *
td_iteration_get_op_name (const TdIteration *self, guint event)
{
  const char *text = self->names->op (self->names_data, self->tape->events[event].opdef);

  return text ? text : "";
}

const char *
td_iteration_get_link_path (const TdIteration *self, guint event)
{
  return td_iteration_get_path_name (self, self->tape->events[event].path);
}

const char *
td_iteration_get_var_name (const TdIteration *self, guint var)
{
  return td_iteration_get_string (self, self->tape->vars[var].name);
}

char *
td_iteration_dup_place (const TdIteration *self, guint32 site)
{
  guint32 line;
  const char *file = td_iteration_get_site (self, site, &line), *slash = strrchr (file, '/');

  if (!*file)
    return g_strdup ("");
  return g_strdup_printf ("%s:%u", slash ? slash + 1 : file, line);
}

char *
td_iteration_dup_site (const TdIteration *self, guint event)
{
  return td_iteration_dup_place (self, self->tape->events[event].site);
}

char *
td_iteration_dup_shape (const TdIteration *self, guint var, gboolean with_dtype)
{
  const TdTapeVar *v = &self->tape->vars[var];
  GString *text = g_string_new (NULL);

  if (v->ndim > 0)
    {
      g_string_append_c (text, '(');
      for (guint i = 0; i < v->ndim; i++)
        g_string_append_printf (text, "%s%" G_GINT64_FORMAT, i ? ", " : "",
                                self->tape->dims[v->first_dim + i]);
      g_string_append_c (text, ')');
    }
  if (with_dtype)
    g_string_append_printf (text, "%s%s", text->len ? " " : "", td_tape_dtype_name (v->dtype));
  if (with_dtype && (v->flags & TD_TAPE_VAR_CHANNELS_LAST))
    g_string_append (text, ", channels last");
  return g_string_free (text, FALSE);
}

char *
td_iteration_dup_short_shape (const TdIteration *self, guint var)
{
  const guint dtype = self->tape->vars[var].dtype;

  return td_iteration_dup_shape (self, var, dtype == TD_TAPE_F16 || dtype == TD_TAPE_BF16);
}

/* ---- indices ---- */

static guint64
event_key (const TdTapeIteration *t, gint32 i)
{
  return t->events[i].key;
}

static guint64
var_key (const TdTapeIteration *t, gint32 i)
{
  return t->vars[i].key;
}

/* Keys are hashes themselves, but a test's or a producer's may be small numbers. */
static guint32
slot_of (const Keys *keys, guint64 key)
{
  return (guint32)((key * G_GUINT64_CONSTANT (0x9e3779b97f4a7c15)) >> 32) & keys->mask;
}

static Keys
keys_new (const TdTapeIteration *t, guint n,
          guint64 (*key_of) (const TdTapeIteration *t, gint32 i))
{
  Keys keys = { .mask = 7 };

  while (keys.mask / 2 < n)
    keys.mask = keys.mask * 2 + 1;
  keys.slots = g_new (gint32, (gsize)keys.mask + 1);
  memset (keys.slots, 0xff, sizeof (gint32) * ((gsize)keys.mask + 1));
  for (guint i = 0; i < n; i++)
    {
      const guint64 key = key_of (t, (gint32)i);
      guint32 at = slot_of (&keys, key);

      while (keys.slots[at] >= 0 && key_of (t, keys.slots[at]) != key)
        at = (at + 1) & keys.mask;
      if (keys.slots[at] < 0)
        keys.slots[at] = (gint32)i;
    }
  return keys;
}

/* An index is made when somebody asks, by whatever thread: who only prints asks for none. */
static gint
find_key (const TdIteration *iteration, Keys *keys, guint n, guint64 key,
          guint64 (*key_of) (const TdTapeIteration *t, gint32 i))
{
  const TdTapeIteration *t = iteration->tape;
  GMutex *lock = (GMutex *)&iteration->keys_lock;

  if (!g_atomic_pointer_get (&keys->slots))
    {
      g_mutex_lock (lock);
      if (!keys->slots)
        {
          const Keys made = keys_new (t, n, key_of);

          keys->mask = made.mask;
          g_atomic_pointer_set (&keys->slots, made.slots);
        }
      g_mutex_unlock (lock);
    }
  guint32 at = slot_of (keys, key);
  while (keys->slots[at] >= 0 && key_of (t, keys->slots[at]) != key)
    at = (at + 1) & keys->mask;
  return keys->slots[at];
}

static void
index_consumers (TdIteration *self)
{
  const TdTapeIteration *t = self->tape;
  Lists *lists = &self->consumers;
  guint32 *next;

  lists->first = g_new0 (guint32, t->n_vars + 2);
  lists->items = g_new (gint32, t->n_ins + 1);
  for (guint e = 0; e < t->n_events; e++)
    for (guint i = 0; i < t->events[e].n_in; i++)
      lists->first[t->ins[t->events[e].first_in + i] + 1]++;
  for (guint v = 0; v < t->n_vars; v++)
    lists->first[v + 1] += lists->first[v];
  next = g_memdup2 (lists->first, sizeof (guint32) * (t->n_vars + 1));
  for (guint e = 0; e < t->n_events; e++)
    for (guint i = 0; i < t->events[e].n_in; i++)
      {
        guint v = t->ins[t->events[e].first_in + i];

        /* an operation that reads a variable twice is one consumer */
        if (next[v] > lists->first[v] && lists->items[next[v] - 1] == (gint32)e)
          continue;
        lists->items[next[v]++] = (gint32)e;
      }
  /* close the gaps that double readers left */
  {
    guint32 to = 0;

    for (guint v = 0; v < t->n_vars; v++)
      {
        guint32 from = lists->first[v], end = next[v];

        lists->first[v] = to;
        while (from < end)
          lists->items[to++] = lists->items[from++];
      }
    lists->first[t->n_vars] = to;
  }
  g_free (next);
}

/* The forward event at the root of the twins, of whatever order. */
static void
index_twins (TdIteration *self)
{
  const TdTapeIteration *t = self->tape;
  Lists *lists = &self->twins;
  guint32 *next;

  self->forward = g_new (gint32, t->n_events + 1);
  lists->first = g_new0 (guint32, t->n_events + 2);
  lists->items = g_new (gint32, t->n_events + 1);
  for (guint e = 0; e < t->n_events; e++)
    {
      gint32 twin = t->events[e].twin;

      if (t->events[e].phase == TD_TAPE_PHASE_FORWARD)
        self->forward[e] = (gint32)e;
      else if (twin >= 0 && (guint)twin < e) /* a twin always ran before */
        self->forward[e] = self->forward[twin];
      else
        self->forward[e] = -1;
      if (self->forward[e] >= 0 && self->forward[e] != (gint32)e)
        lists->first[self->forward[e] + 1]++;
    }
  for (guint e = 0; e < t->n_events; e++)
    lists->first[e + 1] += lists->first[e];
  next = g_memdup2 (lists->first, sizeof (guint32) * (t->n_events + 1));
  for (guint e = 0; e < t->n_events; e++)
    if (self->forward[e] >= 0 && self->forward[e] != (gint32)e)
      lists->items[next[self->forward[e]]++] = (gint32)e;
  g_free (next);
}

/* Batches and weights are counted when they are read first, after the event before: what is
 * wrong with them is nothing of its. */
static gboolean
is_of_event (const TdTapeIteration *t, const TdTapeStats *stats)
{
  const TdTapeEvent *e = &t->events[stats->event];

  for (guint k = 0; k < e->n_in; k++)
    if (t->ins[e->first_in + k] == stats->var)
      return TRUE;
  for (guint k = 0; k < e->n_out; k++)
    if (t->outs[e->first_out + k] == stats->var)
      return TRUE;
  return FALSE;
}

static void
index_anomalies (TdIteration *self)
{
  const TdTapeIteration *t = self->tape;

  self->anomaly = g_new0 (guint8, t->n_events + 1);
  for (guint e = 0; e < t->n_events; e++)
    self->anomaly[e] = (t->events[e].flags & TD_TAPE_EVENT_FAILED) != 0;
  for (guint s = 0; s < t->n_stats; s++)
    {
      const TdTapeStats *stats = &t->stats[s];

      if (stats->event < t->n_events && stats->n_nan + stats->n_pos_inf + stats->n_neg_inf > 0
          && is_of_event (t, stats))
        self->anomaly[stats->event] = 1;
    }
}

/* ---- layers ---- */

static const char *
last_part (const char *path)
{
  const char *slash = strrchr (path, '/');

  return slash ? slash + 1 : path;
}

static void
layers_from_spans (TdIteration *self)
{
  const TdTapeIteration *t = self->tape;

  self->n_layers = t->n_spans;
  self->layers = g_new0 (TdLayer, t->n_spans + 1);
  for (guint s = 0; s < t->n_spans; s++)
    {
      const TdTapeSpan *span = &t->spans[s];
      TdLayer *layer = &self->layers[s];
      const char *path = td_iteration_get_path_name (self, span->path);
      const char *name = td_iteration_get_string (self, span->name);

      layer->is_link = span->kind == TD_TAPE_SPAN_LINK;
      layer->path = layer->is_link && *path ? path : name;
      layer->name = layer->is_link ? last_part (layer->path) : name;
      layer->parent = span->parent < s ? (gint32)span->parent : -1;
      layer->depth = layer->parent >= 0 ? self->layers[layer->parent].depth + 1 : 0;
      layer->first = MIN (span->begin, t->n_events);
      layer->end = CLAMP (span->end, layer->first, t->n_events);
      layer->site = span->site;
    }
  for (guint e = 0; e < t->n_events; e++)
    self->layer[e] = t->events[e].span < t->n_spans ? (gint32)t->events[e].span : -1;
}

static void
index_layers (TdIteration *self)
{
  const TdTapeIteration *t = self->tape;

  self->layer = g_new (gint32, t->n_events + 1);
  if (td_iteration_has_calls (self))
    layers_from_spans (self);
  else
    self->layers = td__layers_from_paths (self, self->strings, self->layer, &self->n_layers);
  for (guint e = 0; e < t->n_events; e++)
    if (t->events[e].phase != TD_TAPE_PHASE_FORWARD)
      self->layer[e] = self->forward[e] >= 0 ? self->layer[self->forward[e]] : -1;
}

/* ---- life ---- */

TdIteration *
td_iteration_new (const TdNamesClass *names, gpointer names_data,
                  GDestroyNotify free_names_data, const TdTapeIteration *tape_iteration,
                  void (*free_tape_iteration) (const TdTapeIteration *))
{
  tape_iteration = td__iteration_without_discarded (tape_iteration, &free_tape_iteration);
  return td__iteration_new_whole (names, names_data, free_names_data, tape_iteration,
                                  free_tape_iteration);
}

TdIteration *
td__iteration_new_whole (const TdNamesClass *names, gpointer names_data,
                         GDestroyNotify free_names_data, const TdTapeIteration *tape_iteration,
                         void (*free_tape_iteration) (const TdTapeIteration *))
{
  TdIteration *self = g_new0 (TdIteration, 1);

  self->ref_count = 1;
  self->names = names;
  self->names_data = names_data;
  self->free_names_data = free_names_data;
  self->tape = tape_iteration;
  self->n_run = tape_iteration->n_events;
  self->free_tape = free_tape_iteration;
  self->strings = g_string_chunk_new (256);
  g_mutex_init (&self->keys_lock);
  g_mutex_init (&self->kept_lock);
  index_consumers (self);
  index_twins (self);
  index_anomalies (self);
  index_layers (self);
  self->replayed = td__iteration_index_replayed (self->tape);
  for (guint e = 0; e < self->tape->n_events && !self->any_replayed; e++)
    self->any_replayed = (self->tape->events[e].flags & TD_TAPE_EVENT_REPLAYED) != 0;
  return self;
}

TdIteration *
td__iteration_new_like (const TdIteration *like, const TdTapeIteration *tape,
                        void (*free_tape) (const TdTapeIteration *), guint n_run)
{
  TdIteration *self = td_iteration_new (like->names, like->names_data, NULL, tape, free_tape);

  self->n_run = n_run;
  return self;
}

guint
td_iteration_get_n_run (const TdIteration *self)
{
  return self->n_run;
}

TdIteration *
td_iteration_ref (TdIteration *self)
{
  g_atomic_int_inc (&self->ref_count);
  return self;
}

void
td_iteration_unref (TdIteration *self)
{
  if (!g_atomic_int_dec_and_test (&self->ref_count))
    return;
  if (self->kept)
    self->free_kept (self->kept);
  g_free (self->event_keys.slots);
  g_free (self->var_keys.slots);
  g_free (self->consumers.first);
  g_free (self->consumers.items);
  g_free (self->twins.first);
  g_free (self->twins.items);
  g_free (self->forward);
  g_free (self->layer);
  g_free (self->anomaly);
  g_free (self->replayed);
  g_free (self->layers);
  g_string_chunk_free (self->strings);
  g_mutex_clear (&self->keys_lock);
  g_mutex_clear (&self->kept_lock);
  if (self->free_tape)
    self->free_tape (self->tape);
  if (self->free_names_data)
    self->free_names_data (self->names_data);
  g_free (self);
}

gpointer
td__iteration_keep (TdIteration *self, gpointer (*make) (TdIteration *self),
                    GDestroyNotify free_kept)
{
  g_mutex_lock (&self->kept_lock);
  if (!self->kept)
    {
      self->kept = make (self);
      self->free_kept = free_kept;
    }
  g_mutex_unlock (&self->kept_lock);
  return self->kept;
}

/* ---- questions ---- */

const TdTapeIteration *
td_iteration_get_tape (const TdIteration *self)
{
  return self->tape;
}

gboolean
td_iteration_any_replayed (const TdIteration *self)
{
  return self->any_replayed;
}

const TdReplayed *
td_iteration_get_replayed (const TdIteration *self, guint event)
{
  return self->replayed && event < self->tape->n_events && self->replayed[event].function
             ? &self->replayed[event]
             : NULL;
}

gint64
td_iteration_get_number (const TdIteration *self)
{
  return (gint64)self->tape->number;
}

guint
td_iteration_get_n_events (const TdIteration *self)
{
  return self->tape->n_events;
}

gboolean
td_iteration_is_complete (const TdIteration *self)
{
  return !(self->tape->flags & TD_TAPE_ITERATION_PARTIAL);
}

gsize
td_iteration_get_size (const TdIteration *self)
{
  const TdTapeIteration *t = self->tape;
  gsize size = sizeof *self + sizeof *t;

  size += (gsize)t->n_events * (sizeof (TdTapeEvent) + 16 + 2 * sizeof (gint32) + 24);
  size += (gsize)t->n_vars * (sizeof (TdTapeVar) + 2 * sizeof (gint32) + 8);
  size += ((gsize)t->n_ins * 2 + t->n_outs) * 4 + (gsize)t->n_dims * 8;
  size += (gsize)t->n_spans * (sizeof (TdTapeSpan) + sizeof (TdLayer));
  size
      += (gsize)t->n_memory * sizeof (TdTapeMemory) + (gsize)t->n_blocks * sizeof (TdTapeBlock);
  size += (gsize)t->n_stats * sizeof (TdTapeStats)
          + (gsize)t->n_tensors * sizeof (TdTapeTensorRef);
  /* the graph, once somebody looks: groups, members by group, views are the caller's */
  size += (gsize)t->n_events * 64;
  return size;
}

gint
td_iteration_find_event (const TdIteration *self, guint64 key)
{
  return find_key (self, (Keys *)&self->event_keys, self->tape->n_events, key, event_key);
}

gint
td_iteration_find_var (const TdIteration *self, guint64 key)
{
  return find_key (self, (Keys *)&self->var_keys, self->tape->n_vars, key, var_key);
}

void
td__iteration_index_keys (const TdIteration *self)
{
  td_iteration_find_event (self, 0);
  td_iteration_find_var (self, 0);
}

gint
td_iteration_find (const TdIteration *self, guint64 key)
{
  gint event = td_iteration_find_event (self, key);
  gint var;
  guint n;

  if (event >= 0)
    return event;
  var = td_iteration_find_var (self, key);
  if (var < 0)
    return -1;
  if (self->tape->vars[var].producer >= 0)
    return self->tape->vars[var].producer;
  {
    const gint32 *readers = td_iteration_get_consumers (self, (guint)var, &n);

    return n ? readers[0] : -1;
  }
}

static const gint32 *
get_list (const Lists *lists, guint index, guint *n)
{
  *n = lists->first[index + 1] - lists->first[index];
  return lists->items + lists->first[index];
}

const gint32 *
td_iteration_get_consumers (const TdIteration *self, guint var, guint *n)
{
  return get_list (&self->consumers, var, n);
}

const gint32 *
td_iteration_get_twins (const TdIteration *self, guint event, guint *n)
{
  return get_list (&self->twins, event, n);
}

gint
td_iteration_get_forward (const TdIteration *self, guint event)
{
  return self->forward[event];
}

const TdLayer *
td_iteration_get_layers (const TdIteration *self, guint *n)
{
  *n = self->n_layers;
  return self->layers;
}

gint
td_iteration_get_layer (const TdIteration *self, guint event)
{
  return self->layer[event];
}

char *
td_iteration_dup_fault (const TdIteration *self, guint event)
{
  const TdTapeIteration *t = self->tape;

  for (guint i = 0; i < t->n_faults; i++)
    if (t->faults[i].event == event)
      {
        char text[300];

        td_tape_fault_text (&t->faults[i], td_iteration_get_string (self, t->faults[i].operand),
                            t, text, sizeof text);
        return g_strconcat ("failed: ", text, NULL);
      }
  return NULL;
}

gboolean
td_iteration_is_anomaly (const TdIteration *self, guint event)
{
  return self->anomaly[event];
}
