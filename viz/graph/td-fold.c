/* Fold states: a set of expanded groups.
 *
 * SPDX-License-Identifier: MIT */
#include "graph/td-graph-private.h"

struct TdFold
{
  GHashTable *expanded; /* guint64 *, owned */
};

static TdFold *
fold_new (void)
{
  TdFold *self = g_new (TdFold, 1);

  self->expanded = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);
  return self;
}

gboolean
td_fold_is_expanded (const TdFold *self, guint64 group_key)
{
  gint64 key = (gint64)group_key;

  return g_hash_table_contains (self->expanded, &key);
}

void
td_fold_set_expanded (TdFold *self, guint64 group_key, gboolean expanded)
{
  gint64 key = (gint64)group_key;

  if (!expanded)
    g_hash_table_remove (self->expanded, &key);
  else if (!g_hash_table_contains (self->expanded, &key))
    g_hash_table_add (self->expanded, g_memdup2 (&key, sizeof key));
}

gboolean
td_fold_equal (const TdFold *self, const TdFold *other)
{
  GHashTableIter iter;
  gpointer key;

  g_hash_table_iter_init (&iter, self->expanded);
  while (g_hash_table_iter_next (&iter, &key, NULL))
    if (!g_hash_table_contains (other->expanded, key))
      return FALSE;
  return g_hash_table_size (self->expanded) == g_hash_table_size (other->expanded);
}

void
td_fold_free (TdFold *self)
{
  g_hash_table_unref (self->expanded);
  g_free (self);
}

TdFold *
td_fold_new_depth (TdVizGraph *graph, gint depth)
{
  TdFold *self = fold_new ();

  for (guint g = 0; g < graph->groups->len; g++)
    if (depth < 0 || td__graph_group (graph, (gint)g)->depth <= depth)
      td_fold_set_expanded (self, td__graph_group (graph, (gint)g)->key, TRUE);
  return self;
}

/* How many nodes each group shows when it alone is opened, in all lanes. */
static guint *
count_inside (const TdVizGraph *graph)
{
  guint *inside = g_new0 (guint, graph->groups->len);

  for (guint e = 0; e < td_iteration_get_n_events (graph->iteration); e++)
    inside[graph->event_group[e]]++;
  for (guint g = 1; g < graph->groups->len; g++)
    for (guint lane = 0; lane < TD_N_LANES; lane++)
      inside[td__graph_group (graph, (gint)g)->parent]
          += td__graph_group (graph, (gint)g)->n_ops[lane] > 0;
  return inside;
}

static guint
count_facets (const TdVizGroup *group)
{
  return (group->n_ops[0] > 0) + (group->n_ops[1] > 0) + (group->n_ops[2] > 0);
}

/* Opens what hides the event, from the top, as long as that stays within the limit. */
static void
open_towards (TdFold *self, TdVizGraph *graph, const guint *inside, gint event, guint limit,
              guint *visible)
{
  gint path[TD_MAX_GROUP_DEPTH + 2];
  guint n = 0;

  for (gint g = graph->event_group[event]; g > 0 && n < G_N_ELEMENTS (path);
       g = td__graph_group (graph, g)->parent)
    path[n++] = g;
  while (n-- > 0)
    {
      const TdVizGroup *group = td__graph_group (graph, path[n]);
      guint more = inside[path[n]] - MIN (inside[path[n]], count_facets (group));

      if (*visible + more > limit)
        return;
      *visible += more;
      td_fold_set_expanded (self, group->key, TRUE);
    }
}

TdFold *
td_fold_new_default (TdVizGraph *graph, guint max_visible)
{
  return td_fold_new_near (graph, max_visible, -1);
}

/* Opens the groups of one level after the other, each level's small groups first, as long as
 * that stays within the limit. */
TdFold *
td_fold_new_near (TdVizGraph *graph, guint max_visible, gint event)
{
  TdFold *self = fold_new ();
  guint *inside = count_inside (graph);
  guint visible = inside[0];

  max_visible = max_visible ? max_visible : 40;
  td_fold_set_expanded (self, td__graph_group (graph, 0)->key, TRUE);
  if (event >= 0 && (guint)event < td_iteration_get_n_events (graph->iteration))
    open_towards (self, graph, inside, event, max_visible, &visible);
  /* by depth, then by size, then as they run */
  for (guint pass = 0, moved = 1; moved && pass <= TD_MAX_GROUP_DEPTH; pass++)
    {
      moved = 0;
      for (guint limit = 4; limit / 2 <= max_visible; limit *= 2)
        for (guint g = 1; g < graph->groups->len; g++)
          {
            const TdVizGroup *group = td__graph_group (graph, (gint)g);
            guint more = inside[g] - MIN (inside[g], count_facets (group));

            if (group->depth != (gint)pass + 1 || more >= limit || visible + more > max_visible
                || td_fold_is_expanded (self, group->key)
                || !td_fold_is_expanded (self, td__graph_group (graph, group->parent)->key))
              continue;
            visible += more;
            moved = 1;
            td_fold_set_expanded (self, group->key, TRUE);
          }
    }
  g_free (inside);
  return self;
}

gboolean
td_fold_reveal (TdFold *self, TdVizGraph *graph, guint event)
{
  gboolean changed = FALSE;

  for (gint g = graph->event_group[event]; g >= 0; g = td__graph_group (graph, g)->parent)
    if (!td_fold_is_expanded (self, td__graph_group (graph, g)->key))
      {
        td_fold_set_expanded (self, td__graph_group (graph, g)->key, TRUE);
        changed = TRUE;
      }
  return changed;
}
