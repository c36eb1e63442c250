/*
 * Retained bytes. The graph that dominators are taken of is root -> groups of handles ->
 * handles -> operations and arrays: so that the tree has what a group alone keeps, and below
 * it what each of its handles alone keeps.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "td-dominators.h"
#include "td-retained.h"

#define MAX_COUNTED 256 /* shared things whose sharers are counted */

typedef struct
{
  guint n_groups, n; /* nodes: the root, groups, objects */
  guint *group;      /* by object: of a root handle, from 0 */
  guint *first, *edges;
  guint *idom, *order, n_reached;
} Graph;

static gboolean
is_root (const TdTapeObject *o)
{
  return o->kind == TD_TAPE_OBJECT_HANDLE && (o->flags & TD_TAPE_OBJECT_ROOT);
}

static guint
last_reference (const TdTapeIteration *t, guint i)
{
  return i + 1 < t->n_objects ? t->objects[i + 1].first_reference : t->n_references;
}

/* ---- groups ---- */

/* As in td-holders.c, names make no difference. */
static guint
hash_handle (gconstpointer key)
{
  const TdTapeObject *o = key;

  return ((o->site * 31 + o->holder_site) * 31 + o->opdef) * 31 + o->holder;
}

static gboolean
same_handle (gconstpointer a, gconstpointer b)
{
  const TdTapeObject *x = a, *y = b;

  return x->site == y->site && x->holder_site == y->holder_site && x->opdef == y->opdef
         && x->holder == y->holder;
}

static void
find_groups (Graph *g, const TdTapeIteration *t)
{
  g_autoptr (GHashTable) known = g_hash_table_new (hash_handle, same_handle);

  g->group = g_new (guint, t->n_objects + 1);
  for (guint i = 0; i < t->n_objects; i++)
    {
      gpointer at;

      if (!is_root (&t->objects[i]))
        continue;
      at = g_hash_table_lookup (known, &t->objects[i]);
      if (!at)
        {
          at = GUINT_TO_POINTER (++g->n_groups);
          g_hash_table_insert (known, (gpointer)&t->objects[i], at);
        }
      g->group[i] = GPOINTER_TO_UINT (at) - 1;
    }
}

/* ---- the tree ---- */

static void
add_edges (Graph *g, const TdTapeIteration *t)
{
  g_autofree guint *n_of = g_new0 (guint, g->n_groups + 1);
  guint m = g->n_groups, base = 1 + g->n_groups;

  g->n = base + t->n_objects;
  g->first = g_new (guint, g->n + 1);
  g->edges = g_new (guint, (gsize)g->n_groups + t->n_objects + t->n_references + 1);
  g->first[0] = 0;
  for (guint i = 0; i < g->n_groups; i++)
    g->edges[i] = 1 + i;
  for (guint i = 0; i < t->n_objects; i++)
    if (is_root (&t->objects[i]))
      n_of[g->group[i]]++;
  for (guint i = 0; i < g->n_groups; i++)
    {
      g->first[1 + i] = m;
      m += n_of[i];
      n_of[i] = g->first[1 + i]; /* where its next handle goes */
    }
  for (guint i = 0; i < t->n_objects; i++)
    {
      g->first[base + i] = m;
      if (is_root (&t->objects[i]))
        g->edges[n_of[g->group[i]]++] = base + i;
      for (guint e = t->objects[i].first_reference; e < last_reference (t, i); e++)
        g->edges[m++] = base + t->references[e];
    }
  g->first[g->n] = m;
  g->idom = g_new (guint, g->n);
  g->order = g_new (guint, g->n);
  g->n_reached = td_dominators (g->n, g->first, g->edges, 0, g->idom, g->order);
}

static void
clear_graph (Graph *g)
{
  g_free (g->group);
  g_free (g->first);
  g_free (g->edges);
  g_free (g->idom);
  g_free (g->order);
}

/* Objects come by their distance from a handle: the first that refers to one is the nearest. */
static void
find_ways (TdRetained *self)
{
  const TdTapeIteration *t = self->tape;

  for (guint i = 0; i < t->n_objects; i++)
    self->above[i] = G_MAXUINT;
  for (guint i = 0; i < t->n_objects; i++)
    for (guint e = t->objects[i].first_reference; e < last_reference (t, i); e++)
      if (t->references[e] > i && self->above[t->references[e]] == G_MAXUINT
          && !is_root (&t->objects[t->references[e]]))
        self->above[t->references[e]] = i;
}

/* Bytes that giving up frees: what something else has as well stays. */
static guint64
bytes_of (const TdTapeObject *o)
{
  return o->flags & TD_TAPE_OBJECT_ELSEWHERE ? 0 : o->bytes;
}

/* ---- rows ---- */

/* One row for each node right below the root: all groups, and what several of them share. */
static GArray *
find_rows (TdRetained *self, const Graph *g, guint *row_of_node)
{
  const TdTapeIteration *t = self->tape;
  guint base = 1 + g->n_groups;
  GArray *rows = g_array_new (FALSE, FALSE, sizeof (TdRetainedRow));

  for (guint i = 1; i < g->n_reached; i++)
    {
      guint v = g->order[i];

      row_of_node[v] = row_of_node[g->idom[v]];
      if (g->idom[v] != 0)
        continue;
      TdRetainedRow row
          = { .shared = v >= base, .first = G_MAXUINT, .oldest = -1, .newest = -1, .top = v };
      row_of_node[v] = rows->len;
      g_array_append_val (rows, row);
    }
  for (guint i = 0; i < t->n_objects; i++)
    {
      const TdTapeObject *o = &t->objects[i];
      TdRetainedRow *row;

      self->row_of[i] = row_of_node[base + i];
      if (is_root (o))
        {
          row = &g_array_index (rows, TdRetainedRow, row_of_node[1 + g->group[i]]);
          row->n++;
          row->several_names
              |= row->first != G_MAXUINT && o->name != t->objects[row->first].name;
          if (row->first == G_MAXUINT || o->id > t->objects[row->first].id)
            row->first = i;
        }
      if (self->row_of[i] == G_MAXUINT)
        continue;
      row = &g_array_index (rows, TdRetainedRow, self->row_of[i]);
      if (row->shared)
        {
          row->n++;
          row->first = MIN (row->first, i);
        }
      row->retained += bytes_of (o);
      row->elsewhere += o->bytes - bytes_of (o);
      row->n_nodes += o->kind == TD_TAPE_OBJECT_OPERATION;
      row->n_arrays += o->kind == TD_TAPE_OBJECT_ARRAY;
    }
  return rows;
}

typedef struct
{
  guint row;
  guint64 iteration;
} Made;

static int
by_row (gconstpointer a, gconstpointer b)
{
  const Made *x = a, *y = b;

  if (x->row != y->row)
    return x->row < y->row ? -1 : 1;
  return (x->iteration > y->iteration) - (x->iteration < y->iteration);
}

static void
count_iterations (TdRetained *self, GArray *rows)
{
  const TdTapeIteration *t = self->tape;
  g_autoptr (GArray) made = g_array_new (FALSE, FALSE, sizeof (Made));

  for (guint i = 0; i < t->n_objects; i++)
    if (t->objects[i].kind == TD_TAPE_OBJECT_ARRAY && self->row_of[i] != G_MAXUINT
        && t->objects[i].iteration != TD_TAPE_NO_ID)
      {
        Made m = { self->row_of[i], t->objects[i].iteration };
        g_array_append_val (made, m);
      }
  g_array_sort (made, by_row);
  for (guint i = 0; i < made->len; i++)
    {
      const Made *m = &g_array_index (made, Made, i);
      TdRetainedRow *row = &g_array_index (rows, TdRetainedRow, m->row);

      if (row->oldest < 0)
        row->oldest = (gint64)m->iteration;
      row->n_iterations += row->newest != (gint64)m->iteration;
      row->newest = (gint64)m->iteration;
    }
}

/* Arrays that the handles of a group refer to, each once. */
static void
count_own (TdRetained *self, const Graph *g, GArray *rows, const guint *row_of_node)
{
  const TdTapeIteration *t = self->tape;
  g_autofree guint *seen = g_new0 (guint, t->n_objects + 1);

  for (guint i = 0; i < t->n_objects; i++)
    if (is_root (&t->objects[i]))
      for (guint e = t->objects[i].first_reference; e < last_reference (t, i); e++)
        {
          const TdTapeObject *to = &t->objects[t->references[e]];

          if (to->kind != TD_TAPE_OBJECT_ARRAY || seen[t->references[e]] == g->group[i] + 1)
            continue;
          seen[t->references[e]] = g->group[i] + 1;
          g_array_index (rows, TdRetainedRow, row_of_node[1 + g->group[i]]).own += to->bytes;
        }
}

/* Handles that reach an object: back along its references. */
static guint
count_sharers (const TdRetained *self, const guint *first, const guint *from, guint object,
               guint *seen, guint mark)
{
  const TdTapeIteration *t = self->tape;
  g_autoptr (GArray) work = g_array_new (FALSE, FALSE, sizeof (guint));
  guint n = 0;

  seen[object] = mark;
  g_array_append_val (work, object);
  while (work->len > 0)
    {
      guint i = g_array_index (work, guint, work->len - 1);

      g_array_set_size (work, work->len - 1);
      n += is_root (&t->objects[i]);
      for (guint e = first[i]; e < first[i + 1]; e++)
        if (seen[from[e]] != mark)
          {
            seen[from[e]] = mark;
            g_array_append_val (work, from[e]);
          }
    }
  return n;
}

static void
count_all_sharers (TdRetained *self)
{
  const TdTapeIteration *t = self->tape;
  g_autofree guint *first = g_new0 (guint, t->n_objects + 2);
  g_autofree guint *from = g_new (guint, t->n_references + 1);
  g_autofree guint *seen = g_new0 (guint, t->n_objects + 1);
  guint n_counted = 0;

  for (guint e = 0; e < t->n_references; e++)
    first[t->references[e] + 2]++;
  for (guint i = 0; i < t->n_objects; i++)
    first[i + 2] += first[i + 1];
  for (guint i = 0; i < t->n_objects; i++)
    for (guint e = t->objects[i].first_reference; e < last_reference (t, i); e++)
      from[first[t->references[e] + 1]++] = i;
  for (guint i = 0; i < self->n_rows && n_counted < MAX_COUNTED; i++)
    if (self->rows[i].shared && self->rows[i].retained > 0)
      self->rows[i].n_sharers
          = count_sharers (self, first, from, self->rows[i].first, seen, ++n_counted);
}

static int
most_first (gconstpointer a, gconstpointer b)
{
  const TdRetainedRow *x = a, *y = b;

  if (x->retained != y->retained)
    return x->retained < y->retained ? 1 : -1;
  if (x->own != y->own)
    return x->own < y->own ? 1 : -1;
  return (x->top > y->top) - (x->top < y->top);
}

/* Leaves out rows that keep nothing; then sorts the others. */
static void
take_rows (TdRetained *self, GArray *rows, guint n_nodes)
{
  g_autofree guint *place = g_new (guint, n_nodes + 1);

  for (guint i = 0; i < rows->len;)
    {
      const TdRetainedRow *row = &g_array_index (rows, TdRetainedRow, i);

      if (row->first == G_MAXUINT || row->retained + row->own + row->elsewhere == 0)
        g_array_remove_index_fast (rows, i);
      else
        i++;
    }
  g_array_sort (rows, most_first);
  for (guint i = 0; i <= n_nodes; i++)
    place[i] = G_MAXUINT;
  for (guint i = 0; i < rows->len; i++)
    place[g_array_index (rows, TdRetainedRow, i).top] = i;
  self->n_rows = rows->len;
  for (guint i = 0; i < self->tape->n_objects; i++)
    if (self->row_of[i] != G_MAXUINT)
      self->row_of[i] = place[self->row_of[i]];
  self->rows = (TdRetainedRow *)(void *)g_array_free (rows, FALSE);
}

static void
find_retained (TdRetained *self)
{
  const TdTapeIteration *t = self->tape;
  Graph g = { 0 };
  guint base;
  GArray *rows;

  find_groups (&g, t);
  add_edges (&g, t);
  base = 1 + g.n_groups;
  g_autofree guint *row_of_node = g_new (guint, g.n);
  for (guint i = 0; i < g.n; i++)
    row_of_node[i] = G_MAXUINT;
  rows = find_rows (self, &g, row_of_node);
  count_iterations (self, rows);
  count_own (self, &g, rows, row_of_node);
  for (guint i = 0; i < t->n_objects; i++)
    {
      self->retained[i] = bytes_of (&t->objects[i]);
      if (self->row_of[i] != G_MAXUINT)
        self->row_of[i] = g_array_index (rows, TdRetainedRow, self->row_of[i]).top;
    }
  for (guint i = g.n_reached; i-- > 1;)
    if (g.order[i] >= base && g.idom[g.order[i]] >= base)
      self->retained[g.idom[g.order[i]] - base] += self->retained[g.order[i] - base];
  take_rows (self, rows, g.n);
  count_all_sharers (self);
  clear_graph (&g);
}

/* ---- a tape ---- */

static const TdTapeIteration *
load_newest (TdTapeReader *reader, gint64 last)
{
  TdTapeSummaries all = td_tape_reader_summaries (reader);
  char error[128];

  for (guint i = (guint)all.n; i-- > 0;)
    {
      const TdTapeIteration *it;

      if (!(all.rows[i].flags & TD_TAPE_ITERATION_OBJECTS)
          || (last >= 0 && all.rows[i].number > (guint64)last))
        continue;
      it = td_tape_iteration_load_end (reader, &all.rows[i], error, sizeof error);
      if (it && it->n_objects > 0)
        return it;
      td_tape_iteration_free (it);
    }
  return NULL;
}

gint64
td_retained_find_iteration (TdTapeReader *reader, gint64 last)
{
  TdTapeSummaries all = td_tape_reader_summaries (reader);

  for (guint i = (guint)all.n; i-- > 0;)
    if ((all.rows[i].flags & TD_TAPE_ITERATION_OBJECTS)
        && (last < 0 || all.rows[i].number <= (guint64)last)
        && td_tape_reader_stored (reader, i))
      return (gint64)all.rows[i].number;
  return -1;
}

TdRetained *
td_retained_new (TdTapeReader *reader, gint64 last)
{
  const TdTapeIteration *tape = load_newest (reader, last);
  TdRetained *self;

  if (!tape)
    return NULL;
  self = g_new0 (TdRetained, 1);
  self->reader = reader;
  self->tape = tape;
  self->iteration = (gint64)tape->number;
  self->above = g_new (guint, tape->n_objects);
  self->row_of = g_new (guint, tape->n_objects);
  self->retained = g_new (guint64, tape->n_objects);
  for (guint i = 0; i < tape->n_objects; i++)
    self->cut |= (tape->objects[i].flags & TD_TAPE_OBJECT_CUT) != 0;
  self->cut |= tape->n_objects == TD_TAPE_MAX_OBJECTS;
  find_ways (self);
  find_retained (self);
  return self;
}

void
td_retained_free (TdRetained *self)
{
  if (!self)
    return;
  td_tape_iteration_free (self->tape);
  g_free (self->rows);
  g_free (self->above);
  g_free (self->row_of);
  g_free (self->retained);
  g_free (self);
}

gint
td_retained_find (const TdRetained *self, const TdHolder *h)
{
  for (guint i = 0; i < self->n_rows && !h->others && !h->together; i++)
    {
      const TdTapeObject *o = &self->tape->objects[self->rows[i].first];

      if (!self->rows[i].shared && o->holder == h->kind && o->holder_site == h->holder_site
          && o->site == h->held_site && o->opdef == h->held_opdef)
        return (gint)i;
    }
  return -1;
}

/* ---- where arrays were made ---- */

static int
more_bytes_first (gconstpointer a, gconstpointer b)
{
  const TdRetainedSite *x = a, *y = b;

  if (x->bytes != y->bytes)
    return x->bytes < y->bytes ? 1 : -1;
  return (x->object > y->object) - (x->object < y->object);
}

GArray *
td_retained_list_sites (const TdRetained *self, guint row)
{
  GArray *sites = g_array_new (FALSE, FALSE, sizeof (TdRetainedSite));

  for (guint i = 0; i < self->tape->n_objects; i++)
    {
      const TdTapeObject *o = &self->tape->objects[i];
      TdRetainedSite *s = NULL;

      if (o->kind != TD_TAPE_OBJECT_ARRAY || self->row_of[i] != row)
        continue;
      for (guint k = 0; k < sites->len && !s; k++)
        {
          s = &g_array_index (sites, TdRetainedSite, k);
          if (s->site != o->site || s->opdef != o->opdef || s->category != o->category)
            s = NULL;
        }
      if (!s)
        {
          TdRetainedSite one
              = { .site = o->site, .opdef = o->opdef, .category = o->category, .object = i };
          g_array_append_val (sites, one);
          s = &g_array_index (sites, TdRetainedSite, sites->len - 1);
        }
      s->n++;
      s->bytes += o->bytes;
      if (o->bytes > self->tape->objects[s->object].bytes)
        s->object = i;
    }
  g_array_sort (sites, more_bytes_first);
  return sites;
}

gboolean
td_retained_locate (const TdRetained *self, guint object, gint64 *iteration, guint64 *key)
{
  const TdTapeObject *o = &self->tape->objects[object];
  const TdTapeIteration *it;
  char error[128];
  gboolean found = FALSE;

  if (o->iteration == TD_TAPE_NO_ID)
    return FALSE;
  it = td_tape_iteration_load (self->reader, o->iteration, error, sizeof error);
  if (!it)
    return FALSE;
  if (o->id >= it->first_id)
    for (guint i = 0; i < it->n_vars && !found; i++)
      if (td_tape_var_id (it, i) == o->id)
        {
          *iteration = (gint64)o->iteration;
          *key = it->vars[i].key;
          found = TRUE;
        }
  td_tape_iteration_free (it);
  return found;
}
