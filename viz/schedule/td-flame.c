/*
 * The tree of an iteration's costs, and walking in it.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "tape/td-devices.h"
#include "td-flame.h"

static const char *const size_names[TD_N_FLAME_SIZES] = { "time", "bytes" };
static const char *const lane_names[TD_N_LANES] = { "Forward", "Backward", "Update" };

/* A node while the tree is made: in order of beginning, wherever it is in the tree. */
/* Nodes are made in the order of their operations, and lie in that of the picture. */
typedef struct
{
  gint32 first, last, next; /* children, and the next child of its parent; -1: none */
  gint32 at;                /* where it belongs */
} Draft;

typedef struct
{
  TdFlame *flame;
  TdVizGraph *graph;
  const TdVizGroup *groups;
  GArray *nodes;    /* TdFlameNode */
  GArray *drafts;   /* Draft, of each node */
  gint32 *draft_of; /* by group and lane, plus 1; 0: there is none yet */
} Builder;

static Draft *
draft (Builder *b, gint i)
{
  return &g_array_index (b->drafts, Draft, i);
}

static TdFlameNode *
node_of (Builder *b, gint i)
{
  return &g_array_index (b->nodes, TdFlameNode, i);
}

static gint
add_draft (Builder *b, gint parent, const TdFlameNode *node)
{
  gint i = (gint)b->drafts->len;
  Draft made = { -1, -1, -1, -1 };

  g_array_append_val (b->nodes, *node);
  g_array_append_val (b->drafts, made);
  node_of (b, i)->parent = parent;
  if (parent < 0)
    return i;
  node_of (b, i)->depth = node_of (b, parent)->depth + 1;
  if (draft (b, parent)->last >= 0)
    draft (b, draft (b, parent)->last)->next = i;
  else
    draft (b, parent)->first = i;
  draft (b, parent)->last = i;
  return i;
}

/* Sections are only there because a picture of the graph has no room: not layers. */
static gint
layer_of (const Builder *b, gint group)
{
  while (group >= 0 && b->groups[group].kind == TD_GROUP_SECTION)
    group = b->groups[group].parent;
  return group;
}

/* A tape may hold anything. */
static const char *
valid_text (Builder *b, const char *text)
{
  g_autofree char *valid
      = g_utf8_validate (text, -1, NULL) ? NULL : g_utf8_make_valid (text, -1);

  return valid ? g_string_chunk_insert_const (b->flame->strings, valid) : text;
}

/* The node of a group in a lane, made when its first operation comes by; the root is the lane.
 */
static gint
find_draft (Builder *b, gint group, TdLane lane, gint32 event)
{
  gint32 *slot = &b->draft_of[MAX (group, 0) * TD_N_LANES + (gint)lane];
  TdFlameNode node = { .lane = lane, .event = event, .name = lane_names[lane], .path = "" };
  gint parent = 0;

  if (*slot > 0)
    return *slot - 1;
  if (group > 0)
    {
      const TdVizGroup *g = &b->groups[group];

      parent = find_draft (b, layer_of (b, g->parent), lane, event);
      node.key = g->key;
      node.name = valid_text (b, g->name);
      node.path = g->path;
    }
  *slot = add_draft (b, parent, &node) + 1;
  return *slot - 1;
}

/* "fc1 · linear" where the layer of one operation has no box of its own, else "linear". */
static const char *
name_op (Builder *b, guint event, const char *path, const char *path_around)
{
  const char *op = td_iteration_get_op_name (b->flame->iteration, event);
  const char *slash = strrchr (path, '/'), *last = slash ? slash + 1 : path;
  g_autofree char *both = g_strdup_printf ("%s · %s", last, op);
  g_autofree char *valid = g_utf8_make_valid (both, -1);

  return *last && strcmp (path, path_around) != 0
             ? g_string_chunk_insert_const (b->flame->strings, valid)
             : valid_text (b, op);
}

static void
measure (Builder *b, guint event, TdFlameNode *node)
{
  const TdIteration *iteration = b->flame->iteration;
  const TdTapeIteration *t = td_iteration_get_tape (iteration);
  const TdTapeEvent *e = &t->events[event];
  const TdTapeDeviceTime *time = td_devices_time (iteration, event);
  gboolean captured = (e->flags & TD_TAPE_EVENT_CAPTURED) != 0;

  node->size[TD_FLAME_TIME] = td_devices_duration (iteration, event);
  node->n_sampled = time && time->kind == TD_TAPE_DEVICE_TIME_SAMPLED;
  node->n_untimed
      = !time && (captured || !t->event_duration_ns || td_devices_is_work (iteration, event));
  for (guint k = 0; k < e->n_out; k++)
    node->size[TD_FLAME_BYTES] += t->vars[t->outs[e->first_out + k]].bytes;
}

static void
add_op (Builder *b, guint event)
{
  const TdTapeIteration *t = td_iteration_get_tape (b->flame->iteration);
  TdLane lane = td_viz_graph_get_event_lane (b->graph, event);
  gint group = layer_of (b, td_viz_graph_get_event_group (b->graph, event));
  gint forward = td_iteration_get_forward (b->flame->iteration, event);
  gint parent = find_draft (b, group, lane, (gint32)event);
  TdFlameNode node = {
    .lane = lane, .key = t->events[event].key, .event = (gint32)event, .is_op = TRUE, .n_ops = 1
  };

  node.path
      = td_iteration_get_link_path (b->flame->iteration, forward >= 0 ? (guint)forward : event);
  node.name = name_op (b, event, node.path, node_of (b, parent)->path);
  measure (b, event, &node);
  add_draft (b, parent, &node);
}

/* Children were made after their parents. */
static void
add_up (Builder *b)
{
  for (gint i = (gint)b->drafts->len - 1; i > 0; i--)
    {
      const TdFlameNode *node = node_of (b, i);
      TdFlameNode *parent = node_of (b, node->parent);

      parent->n_ops += node->n_ops;
      parent->n_sampled += node->n_sampled;
      parent->n_untimed += node->n_untimed;
      for (guint s = 0; s < TD_N_FLAME_SIZES; s++)
        parent->size[s] += node->size[s];
    }
}

/* Find where a node and what is below it belong; the tree is no deeper than groups may be. */
static void
place (Builder *b, gint i, gint parent, const guint64 *start)
{
  gint at = (gint)b->flame->n++;
  TdFlameNode *node = node_of (b, i);
  guint64 next[TD_N_FLAME_SIZES];

  draft (b, i)->at = at;
  node->parent = parent;
  memcpy (node->start, start, sizeof node->start);
  memcpy (next, start, sizeof next);
  for (gint child = draft (b, i)->first; child >= 0; child = draft (b, child)->next)
    {
      place (b, child, at, next);
      for (guint s = 0; s < TD_N_FLAME_SIZES; s++)
        next[s] += node_of (b, child)->size[s];
    }
  node->end = (gint32)b->flame->n;
}

/* Put all nodes there: each takes the place of one that goes on to its own. */
static void
move (Builder *b)
{
  for (gint i = 0; i < (gint)b->nodes->len; i++)
    while (draft (b, i)->at != i)
      {
        gint to = draft (b, i)->at;
        TdFlameNode node = *node_of (b, i);

        *node_of (b, i) = *node_of (b, to);
        *node_of (b, to) = node;
        draft (b, i)->at = draft (b, to)->at;
        draft (b, to)->at = to;
      }
}

TdFlame *
td_flame_new (TdIteration *iteration)
{
  static const guint64 nowhere[TD_N_FLAME_SIZES] = { 0 };
  TdFlame *flame = g_new0 (TdFlame, 1);
  guint n_groups, n = td_iteration_get_n_events (iteration);
  Builder b = { .flame = flame, .graph = td_iteration_get_graph (iteration) };
  TdFlameNode root = { .lane = TD_FLAME_ALL, .path = "" };
  g_autofree char *name
      = g_strdup_printf ("iteration %" G_GINT64_FORMAT, td_iteration_get_number (iteration));

  flame->iteration = td_iteration_ref (iteration);
  flame->strings = g_string_chunk_new (1024);
  root.name = g_string_chunk_insert (flame->strings, name);
  b.groups = td_viz_graph_get_groups (b.graph, &n_groups);
  b.draft_of = g_new0 (gint32, n_groups * TD_N_LANES);
  b.nodes = g_array_sized_new (FALSE, FALSE, sizeof (TdFlameNode), n + n_groups);
  b.drafts = g_array_sized_new (FALSE, FALSE, sizeof (Draft), n + n_groups);
  add_draft (&b, -1, &root);
  for (guint e = 0; e < n; e++)
    add_op (&b, e);
  add_up (&b);
  place (&b, 0, -1, nowhere);
  move (&b);
  flame->nodes = (TdFlameNode *)(gpointer)g_array_free (b.nodes, FALSE);
  g_array_unref (b.drafts);
  g_free (b.draft_of);
  return flame;
}

void
td_flame_free (TdFlame *flame)
{
  if (!flame)
    return;
  td_iteration_unref (flame->iteration);
  g_string_chunk_free (flame->strings);
  g_free (flame->nodes);
  g_free (flame);
}

const char *
td_flame_size_name (TdFlameSize size)
{
  return size_names[size];
}

gboolean
td_flame_size_find (const char *name, TdFlameSize *size)
{
  for (guint s = 0; s < TD_N_FLAME_SIZES; s++)
    if (strcmp (name, size_names[s]) == 0)
      {
        *size = (TdFlameSize)s;
        return TRUE;
      }
  return FALSE;
}

gint
td_flame_find (const TdFlame *flame, guint64 key, guint lane)
{
  const TdTapeIteration *t = td_iteration_get_tape (flame->iteration);
  gint var = key ? td_iteration_find_var (flame->iteration, key) : -1;

  if (var >= 0 && t->vars[var].producer >= 0 && (guint)t->vars[var].producer < t->n_events)
    key = t->events[t->vars[var].producer].key;
  for (guint i = 0; i < flame->n; i++)
    if (flame->nodes[i].key == key && (key != 0 || flame->nodes[i].lane == lane)
        && (lane == TD_FLAME_ALL || flame->nodes[i].lane == lane))
      return (gint)i;
  return -1;
}

/* ---- walking ---- */

static gint
step_beside (const TdFlame *flame, TdFlameSize size, gint zoom, gint at, gint direction)
{
  for (gint i = at + direction; i >= zoom && i < flame->nodes[zoom].end; i += direction)
    if (flame->nodes[i].depth == flame->nodes[at].depth && flame->nodes[i].size[size] > 0)
      return i;
  return -1;
}

static gint
step_out (const TdFlame *flame, TdFlameSize size, gint zoom, gint at)
{
  return at == zoom ? -1 : flame->nodes[at].parent;
}

static gint
step_in (const TdFlame *flame, TdFlameSize size, gint zoom, gint at)
{
  for (gint i = at + 1; i < flame->nodes[at].end; i = flame->nodes[i].end)
    if (flame->nodes[i].size[size] > 0)
      return i;
  return -1;
}

static gint
step_left (const TdFlame *flame, TdFlameSize size, gint zoom, gint at)
{
  return step_beside (flame, size, zoom, at, -1);
}

static gint
step_right (const TdFlame *flame, TdFlameSize size, gint zoom, gint at)
{
  return step_beside (flame, size, zoom, at, 1);
}

static gint
step_first (const TdFlame *flame, TdFlameSize size, gint zoom, gint at)
{
  gint first = -1;

  for (gint i = at; (i = step_left (flame, size, zoom, i)) >= 0;)
    first = i;
  return first;
}

static gint
step_last (const TdFlame *flame, TdFlameSize size, gint zoom, gint at)
{
  gint last = -1;

  for (gint i = at; (i = step_right (flame, size, zoom, i)) >= 0;)
    last = i;
  return last;
}

gint
td_flame_step (const TdFlame *flame, TdFlameSize size, gint zoom, gint at, TdFlameStep step)
{
  static gint (*const steps[TD_N_FLAME_STEPS]) (const TdFlame *, TdFlameSize, gint, gint) = {
    [TD_FLAME_OUT] = step_out,     [TD_FLAME_IN] = step_in,       [TD_FLAME_LEFT] = step_left,
    [TD_FLAME_RIGHT] = step_right, [TD_FLAME_FIRST] = step_first, [TD_FLAME_LAST] = step_last
  };

  return steps[step](flame, size, zoom, at);
}
