/* Edges of a view: data, gradients, and what the forward pass keeps for backward.
 *
 * SPDX-License-Identifier: MIT */
#include "graph/td-view-private.h"

static TdVizNode *
node_at (const TdViewBuilder *b, gint32 index)
{
  return &g_array_index (b->nodes, TdVizNode, index);
}

static gpointer
pair (guint32 a, guint32 b)
{
  return GSIZE_TO_POINTER ((gsize)a << 32 | b);
}

/* Of both halves: GLib's own takes the lower one, and variables one after another with two
 * edges each are all looked for in one another's places. */
static guint
hash_pair (gconstpointer key)
{
  return (guint)((GPOINTER_TO_SIZE (key) * G_GUINT64_CONSTANT (0x9e3779b97f4a7c15)) >> 32);
}

/* Add `var` to the edge between two nodes, once for all readers in the same node. */
static void
add_to_edge (TdViewBuilder *b, GHashTable *known, GHashTable *counted, TdVizEdgeKind kind,
             gint32 from, gint32 to, gint32 var, gint32 reader)
{
  gpointer between = pair ((guint32)from, (guint32)to);
  gint index = GPOINTER_TO_INT (g_hash_table_lookup (known, between)) - 1;
  TdVizEdge *edge;

  if (index < 0)
    {
      TdVizEdge fresh = { .kind = kind, .from = from, .to = to, .var = var, .event = reader };

      index = (gint)b->edges->len;
      g_array_append_val (b->edges, fresh);
      g_hash_table_insert (known, between, GINT_TO_POINTER (index + 1));
    }
  if (!g_hash_table_add (counted, pair ((guint32)index, (guint32)var)))
    return;
  edge = &g_array_index (b->edges, TdVizEdge, index);
  edge->n_vars++;
  edge->bytes += b->tape->vars[var].bytes;
}

static TdVizEdgeKind
kind_between (TdLane from, TdLane to)
{
  if (from == TD_LANE_FORWARD && to == TD_LANE_BACKWARD)
    return TD_EDGE_SAVED;
  if (from != TD_LANE_UPDATE && to == TD_LANE_UPDATE)
    return TD_EDGE_GRAD;
  return TD_EDGE_DATA;
}

/* A backward operation reads what its twin kept: drawn from the twin, by add_saved_edges (). */
static gboolean
is_saved_by_twin (TdViewBuilder *b, guint event, gint32 var)
{
  gint forward = td_iteration_get_forward (b->graph->iteration, event);
  guint n = 0;
  const gint32 *saved
      = forward >= 0 ? td__graph_get_saved (b->graph, (guint)forward, &n) : NULL;

  for (guint i = 0; i < n; i++)
    if (saved[i] == var)
      return TRUE;
  return FALSE;
}

static void
add_read_edges (TdViewBuilder *b, GHashTable *known, GHashTable *counted)
{
  for (guint e = 0; e < b->tape->n_events; e++)
    for (guint i = 0; i < b->tape->events[e].n_in; i++)
      {
        gint32 var = (gint32)b->tape->ins[b->tape->events[e].first_in + i];
        gint32 producer = b->tape->vars[var].producer;
        gint32 from, to = b->node_of[e];
        TdVizEdgeKind kind;

        if (producer < 0 || (guint)producer >= e || to < 0)
          continue;
        from = b->node_of[producer];
        if (from < 0 || from == to)
          continue;
        kind = kind_between (node_at (b, from)->lane, node_at (b, to)->lane);
        if (kind == TD_EDGE_SAVED && is_saved_by_twin (b, e, var))
          continue;
        add_to_edge (b, known, counted, kind, from, to, var, (gint32)e);
      }
}

/* One edge in each row: to the first of the twins that stand there. */
static void
add_saved_edges (TdViewBuilder *b, GHashTable *known, GHashTable *counted)
{
  gint32 *first_twin = g_new (gint32, b->nodes->len + 1);

  for (guint i = 0; i < b->nodes->len; i++)
    first_twin[i] = -1;
  for (guint i = b->nodes->len; i-- > 0;)
    if (node_at (b, (gint32)i)->lane == TD_LANE_BACKWARD && node_at (b, (gint32)i)->twin >= 0)
      first_twin[node_at (b, (gint32)i)->twin] = (gint32)i;
  for (guint e = 0; e < b->tape->n_events; e++)
    {
      guint n, n_twins;
      const gint32 *saved = td__graph_get_saved (b->graph, e, &n);
      const gint32 *twins = td_iteration_get_twins (b->graph->iteration, e, &n_twins);
      gint32 from = b->node_of[e];

      if (from < 0 || n == 0 || n_twins == 0 || first_twin[from] < 0)
        continue;
      for (guint i = 0; i < n; i++)
        add_to_edge (b, known, counted, TD_EDGE_SAVED, from, first_twin[from], saved[i],
                     twins[0]);
    }
  g_free (first_twin);
}

/* "y (64, 10)" where an edge leaves or enters a group: inside, the next node says it all. */
static const char *
label_edge (TdViewBuilder *b, GHashTable *labelled, const TdVizEdge *edge)
{
  const TdVizNode *from = node_at (b, edge->from), *to = node_at (b, edge->to);
  const char *name;
  char *shape, *text;
  const char *kept;

  if (edge->kind != TD_EDGE_DATA || from->lane != to->lane || from->kind == TD_VIZ_INPUT
      || (from->kind == TD_VIZ_OP && to->kind == TD_VIZ_OP && from->parent == to->parent))
    return NULL;
  /* a value that several read is named once */
  if (!g_hash_table_add (labelled, pair ((guint32)edge->from, (guint32)edge->var)))
    return NULL;
  if (edge->n_vars > 1)
    {
      text = g_strdup_printf ("%u values", edge->n_vars);
    }
  else
    {
      name = td_iteration_get_var_name (b->graph->iteration, (guint)edge->var);
      if (!*name)
        name = from->lane == TD_LANE_BACKWARD ? "gy" : "y";
      shape = td_iteration_dup_short_shape (b->graph->iteration, (guint)edge->var);
      text = g_strdup_printf ("%s%s%s", name, *shape ? " " : "", shape);
      g_free (shape);
    }
  kept = g_string_chunk_insert_const (b->strings, text);
  g_free (text);
  return kept;
}

void
td__view_add_edges (TdViewBuilder *b)
{
  GHashTable *known = g_hash_table_new (hash_pair, NULL);
  GHashTable *counted = g_hash_table_new (hash_pair, NULL);
  GHashTable *labelled = g_hash_table_new (hash_pair, NULL);
  guint first = b->edges->len;

  add_read_edges (b, known, counted);
  add_saved_edges (b, known, counted);
  for (guint i = first; i < b->edges->len; i++)
    {
      TdVizEdge *edge = &g_array_index (b->edges, TdVizEdge, i);

      edge->label = label_edge (b, labelled, edge);
    }
  g_hash_table_unref (known);
  g_hash_table_unref (counted);
  g_hash_table_unref (labelled);
}
