/* What is visible under a fold state: nodes. Their edges are made in td-view-edges.c.
 *
 * SPDX-License-Identifier: MIT */
#include "graph/td-view-private.h"

#include <string.h>

#include "tape/td-devices.h"
#include "tape/td-mix.h"

#define MAX_STUBS 2 /* parameter stubs of one node; the others are counted */

/* ---- what each event and group is shown by ---- */

static void
find_closed (TdViewBuilder *b, const TdFold *fold)
{
  guint n = b->graph->groups->len;

  b->closed = g_new (gint32, n);
  b->open_index = g_new (gint32, n);
  b->facets = g_new (gint32, n * TD_N_LANES);
  memset (b->facets, -1, sizeof (gint32) * n * TD_N_LANES);
  for (guint g = 0; g < n; g++)
    {
      const TdVizGroup *group = td__graph_group (b->graph, (gint)g);
      gint32 above = group->parent >= 0 ? b->closed[group->parent] : -1;
      gboolean open = above < 0 && (g == 0 || td_fold_is_expanded (fold, group->key));

      b->closed[g] = above >= 0 ? above : open ? -1 : (gint32)g;
      b->open_index[g] = -1;
      if (open)
        {
          TdVizOpenGroup box = { .group = (gint32)g, .parent = -1 };

          if (group->parent >= 0)
            box.parent = b->open_index[group->parent];
          for (guint lane = 0; lane < TD_N_LANES; lane++)
            box.facet_keys[lane] = td__mix (group->key, lane + 1);
          b->open_index[g] = (gint32)b->groups->len;
          g_array_append_val (b->groups, box);
        }
    }
}

static const char *
keep (TdViewBuilder *b, const char *text)
{
  return g_string_chunk_insert_const (b->strings, text);
}

static const char *
keep_and_free (TdViewBuilder *b, char *text)
{
  const char *kept = keep (b, text);

  g_free (text);
  return kept;
}

static void
add_group_node (TdViewBuilder *b, gint group_index, TdLane lane, guint event)
{
  static const char *const suffix[TD_N_LANES] = { "", "′", " update" };
  const TdVizGroup *group = td__graph_group (b->graph, group_index);
  guint n;
  const gint32 *members = td_viz_graph_get_members (b->graph, (guint)group_index, lane, &n);
  TdVizNode node = { .kind = TD_VIZ_GROUP, .lane = lane, .var = -1, .user = -1, .twin = -1 };
  gsize length;

  node.key = td__mix (group->key, lane + 1);
  node.select_key = group->key;
  node.event = (gint32)event;
  node.last_event = members[n - 1];
  node.group = group_index;
  node.parent = b->open_index[group->parent];
  length = strlen (group->name) - group->odd_length;
  node.label
      = keep_and_free (b, g_strdup_printf ("%.*s%s", (int)length, group->name, suffix[lane]));
  /* That a turn differs is said below the name, which may be cut. */
  if (lane != TD_LANE_FORWARD)
    node.detail = keep_and_free (b, g_strdup_printf (n == 1 ? "%u op" : "%u ops", n));
  else if (group->odd_length)
    node.detail = keep_and_free (b, g_strconcat (group->detail, group->name + length, NULL));
  else
    node.detail = group->detail;
  node.bytes = lane == TD_LANE_FORWARD ? group->saved_bytes : 0;
  node.time_ns = group->lane_time_ns[lane];
  for (guint i = 0; i < n; i++)
    node.failed = node.failed || (b->tape->events[members[i]].flags & TD_TAPE_EVENT_FAILED);
  b->facets[group_index * TD_N_LANES + lane] = (gint32)b->nodes->len;
  g_array_append_val (b->nodes, node);
}

static const char *
short_name (const char *name)
{
  const char *slash = strrchr (name, '/');

  return slash ? slash + 1 : name;
}

/* The last two parts of a parameter's path: "conv2/W". */
static const char *
short_path (const char *path)
{
  const char *last = strrchr (path, '/');

  for (const char *at = last; at && at > path; at--)
    if (at[-1] == '/')
      return at == last ? path : at;
  return path;
}

/* "adam conv2/W" for the update of a parameter, "matmul W" for what makes its gradient, else
 * the operation's name. */
static const char *
label_event (TdViewBuilder *b, guint event)
{
  const TdTapeEvent *e = &b->tape->events[event];
  const char *op = td_iteration_get_op_name (b->graph->iteration, event);
  const char *path = b->update_path[event];

  if (!*op)
    op = "?";
  if (e->phase == TD_TAPE_PHASE_UPDATE)
    {
      if (!path && e->n_in > 0 && e->n_in <= 2)
        path = b->gradient_path[b->tape->ins[e->first_in]];
      if (path)
        return keep_and_free (b, g_strdup_printf ("%s %s", op, short_path (path)));
    }
  else if (e->phase == TD_TAPE_PHASE_BACKWARD && e->n_out == 1 && !strstr (op, "grad"))
    {
      path = b->gradient_path[b->tape->outs[e->first_out]];
      if (path)
        return keep_and_free (b, g_strdup_printf ("%s %s", op, short_name (path)));
    }
  return keep (b, op);
}

static guint32
count_fused (TdViewBuilder *b, guint event)
{
  guint32 n = 0;

  if (b->tape->events[event].flags & TD_TAPE_EVENT_REPLAYED)
    for (const char *c = td_iteration_get_op_name (b->graph->iteration, event); *c; c++)
      n += *c == '+';
  return n > 0 ? n + 1 : 0;
}

static void
add_op_node (TdViewBuilder *b, TdLane lane, guint event)
{
  const TdTapeEvent *e = &b->tape->events[event];
  TdVizNode node = { .kind = TD_VIZ_OP, .lane = lane, .group = -1, .user = -1, .twin = -1 };

  node.key = node.select_key = e->key;
  node.event = node.last_event = (gint32)event;
  node.parent = b->open_index[b->graph->event_group[event]];
  node.var = e->n_out ? (gint32)b->tape->outs[e->first_out] : -1;
  node.label = label_event (b, event);
  for (guint o = 0; o < e->n_out; o++)
    node.bytes += b->tape->vars[b->tape->outs[e->first_out + o]].bytes;
  node.time_ns = td_devices_cost (b->graph->iteration, event);
  node.failed = (e->flags & TD_TAPE_EVENT_FAILED) != 0;
  node.n_fused = count_fused (b, event);
  b->node_of[event] = (gint32)b->nodes->len;
  g_array_append_val (b->nodes, node);
}

static void
add_lane (TdViewBuilder *b, TdLane lane)
{
  for (guint e = 0; e < b->tape->n_events; e++)
    {
      gint32 closed = b->closed[b->graph->event_group[e]];

      if (td_viz_graph_get_event_lane (b->graph, e) != lane)
        continue;
      if (closed < 0)
        {
          add_op_node (b, lane, e);
          continue;
        }
      if (b->facets[closed * TD_N_LANES + lane] < 0)
        add_group_node (b, closed, lane, e);
      b->node_of[e] = b->facets[closed * TD_N_LANES + lane];
    }
}

/* ---- twins ---- */

/* The forward node in whose row an update stands: the first visible one that reads its
 * parameter. */
static gint32
row_of_update (TdViewBuilder *b, const TdTapeEvent *event)
{
  for (guint i = 0; i < event->n_in; i++)
    {
      guint var = b->tape->ins[event->first_in + i];
      guint n;
      const gint32 *readers;

      if (b->graph->parameter_of[var] >= 0)
        var = (guint)b->graph->parameter_of[var];
      else if (!(b->tape->vars[var].flags & TD_TAPE_VAR_PARAMETER))
        continue;
      readers = td_iteration_get_consumers (b->graph->iteration, var, &n);
      for (guint r = 0; r < n; r++)
        if (b->tape->events[readers[r]].phase == TD_TAPE_PHASE_FORWARD
            && b->node_of[readers[r]] >= 0)
          return b->node_of[readers[r]];
    }
  return -1;
}

static void
find_twins (TdViewBuilder *b)
{
  guint n = b->nodes->len;
  guint *n_twins = g_new0 (guint, n + 1);

  for (guint i = 0; i < n; i++)
    {
      TdVizNode *node = &g_array_index (b->nodes, TdVizNode, i);
      gint forward;

      if (node->lane == TD_LANE_FORWARD)
        continue;
      if (node->kind == TD_VIZ_GROUP
          && td__graph_group (b->graph, node->group)->n_ops[TD_LANE_FORWARD] > 0)
        node->twin = b->facets[node->group * TD_N_LANES + TD_LANE_FORWARD];
      else if (node->lane == TD_LANE_UPDATE)
        node->twin = row_of_update (b, &b->tape->events[node->event]);
      else
        {
          forward = td_iteration_get_forward (b->graph->iteration, (guint)node->event);
          node->twin = forward >= 0 ? b->node_of[forward] : -1;
        }
      if (node->twin >= 0 && node->lane == TD_LANE_BACKWARD)
        n_twins[node->twin]++;
    }
  /* side by side there is room for "grad_W" only, and the row says whose it is */
  for (guint i = 0; i < n; i++)
    {
      TdVizNode *node = &g_array_index (b->nodes, TdVizNode, i);
      const char *op;
      gsize length;

      if (node->kind != TD_VIZ_OP || node->lane != TD_LANE_BACKWARD || node->twin < 0
          || n_twins[node->twin] < 2)
        continue;
      op = g_array_index (b->nodes, TdVizNode, node->twin).label;
      length = strlen (op);
      if (node->n_fused == 0 && strncmp (node->label, op, length) == 0
          && node->label[length] == '_' && node->label[length + 1])
        node->label += length + 1;
    }
  g_free (n_twins);
}

/* ---- stubs ---- */

static void
add_stub (TdViewBuilder *b, guint user, gint32 var, gint32 event, gboolean is_parameter,
          gboolean by_itself)
{
  const TdVizNode *owner = &g_array_index (b->nodes, TdVizNode, user);
  const TdTapeVar *v = &b->tape->vars[var];
  const char *name = short_name (td_iteration_get_var_name (b->graph->iteration, (guint)var));
  TdVizNode node = { .kind = is_parameter ? TD_VIZ_STUB : TD_VIZ_INPUT,
                     .lane = TD_LANE_FORWARD,
                     .event = event,
                     .last_event = event,
                     .group = -1,
                     .var = var,
                     .twin = -1,
                     .bytes = v->bytes };
  TdVizEdge edge = { .kind = by_itself ? TD_EDGE_DATA : TD_EDGE_STUB,
                     .from = (gint32)b->nodes->len,
                     .to = (gint32)user,
                     .var = var,
                     .n_vars = 1,
                     .bytes = v->bytes,
                     .event = event };

  node.key = td__mix (td__mix (v->key, owner->key), 0x73747562);
  node.select_key = v->key;
  node.parent = by_itself ? 0 : owner->parent;
  node.user = by_itself ? -1 : (gint32)user;
  if (by_itself)
    {
      char *shape = td_iteration_dup_short_shape (b->graph->iteration, (guint)var);

      node.label = keep_and_free (b, g_strdup_printf ("%s%s%s", name, *name ? " " : "", shape));
      g_free (shape);
    }
  else
    node.label = keep (b, *name ? name : "in");
  g_array_append_val (b->nodes, node);
  g_array_append_val (b->edges, edge);
}

static gboolean
is_parameter (const TdTapeVar *var)
{
  return (var->flags & TD_TAPE_VAR_PARAMETER) || var->category == TD_TAPE_CATEGORY_PARAMETER;
}

/* One stub for each of the first few, told apart by name: W and b stand for all of a group. */
static void
add_stubs_of_kind (TdViewBuilder *b, guint user, const GArray *vars, gboolean parameters)
{
  guint shown = 0, total = 0, hidden = 0, limit = parameters ? MAX_STUBS : 1;
  const char *names[MAX_STUBS];

  for (guint i = 0; i < vars->len; i += 2)
    {
      gint32 var = g_array_index (vars, gint32, i);
      const char *name = td_iteration_get_var_name (b->graph->iteration, (guint)var);
      gboolean known = FALSE;

      if (is_parameter (&b->tape->vars[var]) != parameters)
        continue;
      total++;
      for (guint k = 0; k < shown; k++)
        known = known || strcmp (names[k], short_name (name)) == 0;
      if (known || shown == limit)
        {
          hidden++;
          continue;
        }
      names[shown++] = short_name (name);
      add_stub (b, user, var, g_array_index (vars, gint32, i + 1), parameters,
                !parameters && total == 1 && user == b->top_user);
    }
  if (shown)
    g_array_index (b->nodes, TdVizNode, b->nodes->len - 1).n_hidden = hidden;
}

static void
add_stubs (TdViewBuilder *b)
{
  guint n_nodes = b->nodes->len;
  guint32 *stamp = g_new0 (guint32, b->tape->n_vars + 1);
  GArray *vars = g_array_new (FALSE, FALSE, sizeof (gint32)); /* variable, first reader; ... */

  for (guint i = 0; i < n_nodes; i++)
    {
      const TdVizNode *node = &g_array_index (b->nodes, TdVizNode, i);
      guint n = 1;
      const gint32 *members = &node->event;

      if (node->lane != TD_LANE_FORWARD)
        break;
      if (node->kind == TD_VIZ_GROUP)
        members = td_viz_graph_get_members (b->graph, (guint)node->group, node->lane, &n);
      g_array_set_size (vars, 0);
      for (guint m = 0; m < n; m++)
        for (guint k = 0; k < b->tape->events[members[m]].n_in; k++)
          {
            gint32 var = (gint32)b->tape->ins[b->tape->events[members[m]].first_in + k];

            if (b->tape->vars[var].producer >= 0 || stamp[var] == i + 1)
              continue;
            stamp[var] = i + 1;
            g_array_append_val (vars, var);
            g_array_append_val (vars, members[m]);
          }
      add_stubs_of_kind (b, i, vars, TRUE);
      add_stubs_of_kind (b, i, vars, FALSE);
    }
  g_array_free (vars, TRUE);
  g_free (stamp);
}

/* ---- the whole ---- */

static guint64
hash_content (const TdVizView *view)
{
  guint64 hash = view->n_nodes;

  for (guint i = 0; i < view->n_nodes; i++)
    {
      const TdVizNode *node = &view->nodes[i];

      hash = td__mix (hash, node->key);
      hash
          = td__mix (hash, (guint64)node->kind << 8 | node->lane << 4 | (node->detail != NULL));
      hash = td__mix (hash, (guint64)(guint32)node->parent << 32 | (guint32)node->twin);
      hash = td__mix (hash, (guint64)node->n_fused << 32 | (guint32)node->user);
    }
  for (guint i = 0; i < view->n_groups; i++)
    hash = td__mix (hash, view->groups[i].facet_keys[0]);
  for (guint i = 0; i < view->n_edges; i++)
    {
      const TdVizEdge *edge = &view->edges[i];

      hash = td__mix (hash, (guint64)edge->kind << 1 | (edge->label != NULL));
      hash = td__mix (hash, (guint64)(guint32)edge->from << 32 | (guint32)edge->to);
    }
  return hash;
}

static void
index_keys (TdVizView *view)
{
  view->by_key = g_hash_table_new (g_int64_hash, g_int64_equal);
  for (guint i = view->n_nodes; i-- > 0;)
    g_hash_table_insert (view->by_key, &view->nodes[i].select_key,
                         GINT_TO_POINTER ((gint)i + 1));
  for (guint i = view->n_nodes; i-- > 0;)
    g_hash_table_insert (view->by_key, &view->nodes[i].key, GINT_TO_POINTER ((gint)i + 1));
}

static void
find_update_paths (TdViewBuilder *b)
{
  b->update_path = g_new0 (const char *, b->tape->n_events + 1);
  b->gradient_path = g_new0 (const char *, b->tape->n_vars + 1);
  for (guint i = 0; i < b->tape->n_grads; i++)
    {
      const TdTapeGrad *grad = &b->tape->grads[i];
      const char *path = td_iteration_get_string (b->graph->iteration, grad->path);

      if (!*path || strcmp (path, "?") == 0)
        continue;
      if (grad->event < b->tape->n_events)
        b->update_path[grad->event] = path;
      if (grad->gradient < b->tape->n_vars)
        b->gradient_path[grad->gradient] = path;
    }
}

TdVizView *
td_viz_view_new (TdVizGraph *graph, const TdFold *fold, TdViewLanes lanes)
{
  TdVizView *view = g_new0 (TdVizView, 1);
  TdViewBuilder b = { .graph = graph, .tape = td_iteration_get_tape (graph->iteration) };

  b.nodes = g_array_new (FALSE, TRUE, sizeof (TdVizNode));
  b.groups = g_array_new (FALSE, TRUE, sizeof (TdVizOpenGroup));
  b.edges = g_array_new (FALSE, TRUE, sizeof (TdVizEdge));
  b.strings = g_string_chunk_new (1024);
  b.node_of = g_new (gint32, b.tape->n_events + 1);
  memset (b.node_of, -1, sizeof (gint32) * (b.tape->n_events + 1));
  find_update_paths (&b);
  find_closed (&b, fold);
  for (guint lane = 0; lane < TD_N_LANES; lane++)
    if (lanes & (1u << lane))
      {
        guint before = b.nodes->len;

        add_lane (&b, lane);
        view->has_lane[lane] = b.nodes->len > before;
      }
  find_twins (&b);
  b.top_user = view->has_lane[TD_LANE_FORWARD] ? 0 : G_MAXUINT;
  add_stubs (&b);
  td__view_add_edges (&b);

  view->ref_count = 1;
  view->graph = td_viz_graph_ref (graph);
  view->n_nodes = b.nodes->len;
  view->n_groups = b.groups->len;
  view->n_edges = b.edges->len;
  view->nodes = (TdVizNode *)(gpointer)g_array_free (b.nodes, FALSE);
  view->groups = (TdVizOpenGroup *)(gpointer)g_array_free (b.groups, FALSE);
  view->edges = (TdVizEdge *)(gpointer)g_array_free (b.edges, FALSE);
  view->strings = b.strings;
  view->node_of_event = b.node_of;
  view->content_hash = hash_content (view);
  index_keys (view);
  g_free (b.closed);
  g_free (b.open_index);
  g_free (b.facets);
  g_free (b.update_path);
  g_free (b.gradient_path);
  return view;
}

TdVizView *
td_viz_view_ref (TdVizView *self)
{
  g_atomic_int_inc (&self->ref_count);
  return self;
}

void
td_viz_view_unref (TdVizView *self)
{
  if (!g_atomic_int_dec_and_test (&self->ref_count))
    return;
  g_hash_table_unref (self->by_key);
  g_string_chunk_free (self->strings);
  g_free (self->node_of_event);
  g_free (self->nodes);
  g_free (self->groups);
  g_free (self->edges);
  td_viz_graph_unref (self->graph);
  g_free (self);
}

gint
td_viz_view_find (const TdVizView *self, guint64 key)
{
  gint64 wanted = (gint64)key;

  return GPOINTER_TO_INT (g_hash_table_lookup (self->by_key, &wanted)) - 1;
}

gint
td_viz_view_find_event (const TdVizView *self, guint event)
{
  return event < td_iteration_get_n_events (self->graph->iteration) ? self->node_of_event[event]
                                                                    : -1;
}

char *
td_viz_view_to_text (const TdVizView *self)
{
  static const char *const kinds[] = { "op", "group", "stub", "input" };
  static const char *const lanes[] = { "F", "B", "U" };
  static const char *const edges[] = { "->", "~>", "|>", "=>" };
  GString *text = g_string_new (NULL);

  for (guint i = 0; i < self->n_groups; i++)
    g_string_append_printf (text, "open %u in %d: %s\n", i, self->groups[i].parent,
                            td__graph_group (self->graph, self->groups[i].group)->name);
  for (guint i = 0; i < self->n_nodes; i++)
    {
      const TdVizNode *n = &self->nodes[i];

      g_string_append_printf (text, "%s %u %s in %d", kinds[n->kind], i, lanes[n->lane],
                              n->parent);
      if (n->twin >= 0)
        g_string_append_printf (text, " twin %d", n->twin);
      if (n->user >= 0)
        g_string_append_printf (text, " user %d", n->user);
      if (n->n_hidden)
        g_string_append_printf (text, " +%u", n->n_hidden);
      g_string_append_printf (text, ": %s%s%s%s\n", n->label, n->detail ? " | " : "",
                              n->detail ? n->detail : "", n->failed ? " FAILED" : "");
    }
  for (guint i = 0; i < self->n_edges; i++)
    {
      const TdVizEdge *e = &self->edges[i];

      g_string_append_printf (text, "%d %s %d %" G_GUINT64_FORMAT "%s%s\n", e->from,
                              edges[e->kind], e->to, e->bytes, e->label ? " " : "",
                              e->label ? e->label : "");
    }
  return g_string_free (text, FALSE);
}
