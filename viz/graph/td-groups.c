/* The tree of groups. Calls of links and scopes are given by the tape; loops are found among
 * the things that one call does.
 *
 * SPDX-License-Identifier: MIT */
#include "graph/td-graph-private.h"

#include <string.h>

#include "graph/td-loops.h"

#include "tape/td-mix.h"

#define MAX_NODES 44         /* at the top, in the lanes forward and backward */
#define N_SECTIONS 16        /* that more are cut into */
#define MIN_SECTION 8        /* nodes in one */
#define MAX_SECTION_DEPTH 12 /* 16^12 operations: never reached */
#define MAX_TWINS 8          /* of one operation that stand by themselves in backward */

typedef struct
{
  TdVizGraph *graph;
  const TdTapeIteration *tape;
  const TdLayer *layers; /* recorded and implied */
  guint n_layers;
  const gint32 *event_layer;
  guint32 *first_item; /* per container (layer + 1; 0 is the top): into items */
  TdLoopItem *items;
  guint32 *item_of_layer;  /* where a layer stands in its container */
  GHashTable *occurrences; /* hash -> how often so far */
} Builder;

/* ---- items of each call ---- */

static guint
count_ops (const guint32 *n_forward, const TdLayer *layer)
{
  return n_forward[layer->end] - n_forward[layer->first];
}

/* Visit calls and operations in order of time. */
static void
visit_items (Builder *b, const guint32 *n_forward,
             void (*visit) (Builder *, gint, const TdLoopItem *))
{
  guint next_layer = 0;

  for (guint e = 0; e <= b->tape->n_events; e++)
    {
      for (; next_layer < b->n_layers && b->layers[next_layer].first <= e; next_layer++)
        {
          const TdLayer *layer = &b->layers[next_layer];
          TdLoopItem item
              = { (gint32)next_layer, (gint32)layer->first, count_ops (n_forward, layer), 0 };

          if (item.n_ops > 0)
            visit (b, layer->parent + 1, &item);
        }
      if (e < b->tape->n_events && b->tape->events[e].phase == TD_TAPE_PHASE_FORWARD)
        {
          TdLoopItem item = { -1, (gint32)e, 1, 0 };

          item.token = td__mix (b->tape->events[e].site, b->tape->events[e].opdef);
          visit (b, b->event_layer[e] + 1, &item);
        }
    }
}

static void
count_item (Builder *b, gint container, const TdLoopItem *item)
{
  (void)item;
  b->first_item[container + 2]++;
}

static void
place_item (Builder *b, gint container, const TdLoopItem *item)
{
  guint32 at = b->first_item[container + 1]++;

  b->items[at] = *item;
  if (item->layer >= 0)
    b->item_of_layer[item->layer] = at + 1;
}

static void
collect_items (Builder *b)
{
  guint n = b->n_layers + 1;
  guint32 *n_forward = g_new0 (guint32, b->tape->n_events + 1);

  for (guint e = 0; e < b->tape->n_events; e++)
    n_forward[e + 1] = n_forward[e] + (b->tape->events[e].phase == TD_TAPE_PHASE_FORWARD);
  /* counted two places on, so that placing leaves first_item where it should be */
  b->first_item = g_new0 (guint32, n + 2);
  visit_items (b, n_forward, count_item);
  for (guint i = 1; i < n + 2; i++)
    b->first_item[i] += b->first_item[i - 1];
  b->items = g_new0 (TdLoopItem, b->first_item[n + 1] + 1);
  b->item_of_layer = g_new0 (guint32, n);
  visit_items (b, n_forward, place_item);
  g_free (n_forward);
  /* calls within come after the call, so tokens are made from the back */
  for (gint layer = (gint)b->n_layers - 1; layer >= 0; layer--)
    {
      guint64 token = b->layers[layer].is_link;

      for (guint i = b->first_item[layer + 1]; i < b->first_item[layer + 2]; i++)
        token = td__mix (token, b->items[i].token);
      if (b->item_of_layer[layer])
        b->items[b->item_of_layer[layer] - 1].token = token;
    }
}

/* ---- groups ---- */

static guint64
count_occurrence (Builder *b, guint64 hash)
{
  gint64 key = (gint64)hash;
  guint count = GPOINTER_TO_UINT (g_hash_table_lookup (b->occurrences, &key));

  g_hash_table_insert (b->occurrences, g_memdup2 (&key, sizeof key),
                       GUINT_TO_POINTER (count + 1));
  return td__mix (hash, count);
}

static gint
add_group (Builder *b, gint parent, TdGroupKind kind, guint64 identity, const char *name,
           const char *path, guint n_repeats)
{
  TdVizGraph *graph = b->graph;
  TdVizGroup group = { .kind = kind, .parent = parent, .n_repeats = n_repeats };

  if (parent >= 0)
    {
      const TdVizGroup *above = td__graph_group (graph, parent);

      group.depth = above->depth + 1;
      group.key = count_occurrence (b, td__mix (td__mix (above->key, kind), identity));
    }
  else
    group.key = td__mix (0, 0x726f6f74);
  group.name = g_string_chunk_insert_const (graph->strings, name);
  group.path = g_string_chunk_insert_const (graph->strings, path);
  g_array_append_val (graph->groups, group);
  return (gint)graph->groups->len - 1;
}

static void emit_items (Builder *b, gint group, const TdLoopItem *items, guint n);

static void
emit_flat (Builder *b, gint group, const TdLayer *layer)
{
  for (guint e = layer->first; e < layer->end; e++)
    if (b->tape->events[e].phase == TD_TAPE_PHASE_FORWARD)
      b->graph->event_group[e] = group;
}

static guint
count_twins (const Builder *b, guint32 event)
{
  guint n = 0;

  td_iteration_get_twins (b->graph->iteration, event, &n);
  return n;
}

/* One that many undo, as `stack` of 200 rows is by 200 of select, is a box with them. */
static void
emit_operation (Builder *b, gint group, const TdLoopItem *item)
{
  gboolean has_room = td__graph_group (b->graph, group)->depth < TD_MAX_GROUP_DEPTH;

  if (count_twins (b, (guint32)item->event) > MAX_TWINS && has_room)
    group = add_group (b, group, TD_GROUP_SECTION, item->token,
                       td_iteration_get_op_name (b->graph->iteration, (guint)item->event),
                       td__graph_group (b->graph, group)->path, 0);
  b->graph->event_group[item->event] = group;
}

/* "gan/critic" is the critic where only paths say that a whole model has calls: of its parts,
 * each called by the program, all would be called gan. */
static const TdLoopItem *
skip_model (const Builder *b, const TdLoopItem *item)
{
  const TdLayer *layer = &b->layers[item->layer];
  const TdLoopItem *inside = b->items + b->first_item[item->layer + 1];
  guint n_inside = b->first_item[item->layer + 2] - b->first_item[item->layer + 1];
  gboolean is_model = layer->is_link && (layer->parent < 0 || !b->layers[layer->parent].is_link)
                      && !td_iteration_has_calls (b->graph->iteration);

  return is_model && n_inside == 1 && inside->layer >= 0 ? inside : item;
}

/* `name`: what to call it instead of its own name; NULL: that. */
static void
emit_item (Builder *b, gint group, const TdLoopItem *item, const char *name)
{
  const TdLayer *layer;
  const TdLoopItem *inside;
  guint n_inside;
  gint own;

  if (item->layer < 0)
    {
      emit_operation (b, group, item);
      return;
    }
  item = skip_model (b, item);
  layer = &b->layers[item->layer];
  /* a call of one operation is that operation */
  if (item->n_ops == 1 || td__graph_group (b->graph, group)->depth >= TD_MAX_GROUP_DEPTH)
    {
      emit_flat (b, group, layer);
      return;
    }
  own = add_group (b, group, layer->is_link ? TD_GROUP_LINK : TD_GROUP_SCOPE,
                   td__mix_text (0, layer->path), name ? name : layer->name, layer->path, 0);
  inside = b->items + b->first_item[item->layer + 1];
  n_inside = b->first_item[item->layer + 2] - b->first_item[item->layer + 1];
  while (n_inside == 1 && inside->layer >= 0) /* a call that only makes another one */
    {
      gint32 inner = inside->layer;

      inside = b->items + b->first_item[inner + 1];
      n_inside = b->first_item[inner + 2] - b->first_item[inner + 1];
    }
  emit_items (b, own, inside, n_inside);
}

static const char *
item_name (const Builder *b, const TdLoopItem *item)
{
  return item->layer >= 0 ? b->layers[item->layer].name
                          : td_iteration_get_op_name (b->graph->iteration, (guint)item->event);
}

/* What a turn is called after: its call, its calls from first to last, or its one operation. */
static gboolean
find_named (const TdLoopItem *items, const TdLoopTurn *turn, const TdLoopItem **first,
            const TdLoopItem **last)
{
  const TdLoopItem *step = items + turn->first;

  *first = *last = turn->n == 1 ? step : NULL;
  for (guint i = 0; turn->n > 1 && i < turn->n; i++)
    if (step[i].layer >= 0)
      {
        *first = *first ? *first : &step[i];
        *last = &step[i];
      }
  return *first != NULL;
}

static char *
name_range (const char *first, const char *last)
{
  return strcmp (first, last) == 0 ? g_strdup (first) : g_strdup_printf ("%s…%s", first, last);
}

/* "h3", "up2…join2"; with its number where the turn beside it is called the same. */
static char *
name_turn (const Builder *b, const TdLoopItem *items, const TdLoops *loops, const TdLoop *loop,
           guint t)
{
  const TdLoopItem *first, *last, *other, *ignored;
  char *name, *numbered;

  if (!find_named (items, td__loop_turn (loops, loop, t), &first, &last))
    return g_strdup_printf ("step %u", t);
  name = name_range (item_name (b, first), item_name (b, last));
  if (find_named (items, td__loop_turn (loops, loop, t + 1 < loop->n_turns ? t + 1 : t - 1),
                  &other, &ignored)
      && strcmp (item_name (b, first), item_name (b, other)) != 0)
    return name;
  numbered = g_strdup_printf ("%s %u", name, t);
  g_free (name);
  return numbered;
}

/* ", first differs": what the number of turns alone would hide. Owner: the caller. */
static char *
name_odd_turns (const Builder *b, const TdLoopItem *items, const TdLoops *loops,
                const TdLoop *loop)
{
  gboolean first = td__loop_turn (loops, loop, 0)->differs;
  gboolean last = td__loop_turn (loops, loop, loop->n_turns - 1)->differs;
  char *name, *text;
  guint t = 0;

  if (loop->n_differ == 0)
    return g_strdup ("");
  if (loop->n_differ == (guint)first + (guint)last)
    return g_strdup (first && last ? ", first and last differ"
                     : first       ? ", first differs"
                                   : ", last differs");
  if (loop->n_differ > 1)
    return g_strdup_printf (", %u differ", loop->n_differ);
  while (!td__loop_turn (loops, loop, t)->differs)
    t++;
  name = name_turn (b, items, loops, loop, t);
  text = g_strdup_printf (", %s differs", name);
  g_free (name);
  return text;
}

/* "lstm ×35" where all are calls of lstm, "l1…l12 ×12" where names differ, "loop ×35" where
 * nothing in a turn has a name. `odd`: what is said of turns that differ. */
static char *
name_loop (const Builder *b, const TdLoopItem *items, const TdLoops *loops, const TdLoop *loop,
           const char *odd)
{
  const TdLoopItem *first = NULL, *last = NULL, *one, *other;
  char *range, *name;

  for (guint t = 0; t < loop->n_turns; t++)
    {
      const TdLoopTurn *turn = td__loop_turn (loops, loop, t);

      /* an odd turn of one operation is not what the others are called after */
      if (turn->differs && td__loop_turn (loops, loop, loop->equal)->n > 1 && turn->n == 1
          && items[turn->first].layer < 0)
        continue;
      if (find_named (items, turn, &one, &other))
        {
          first = first ? first : one;
          last = other;
        }
    }
  range = first ? name_range (item_name (b, first), item_name (b, last)) : g_strdup ("loop");
  name = g_strdup_printf ("%s ×%u%s", range, loop->n_turns, odd);
  g_free (range);
  return name;
}

/* A call that does nothing else is the loop itself: "layers ×12", not "0…11 ×12" within. */
static gint
add_loop (Builder *b, gint parent, const TdLoopItem *items, const TdLoops *loops,
          const TdLoop *loop, gboolean is_all)
{
  const TdLoopTurn *equal = td__loop_turn (loops, loop, loop->equal);
  TdVizGroup *group = &g_array_index (b->graph->groups, TdVizGroup, parent);
  g_autofree char *odd = name_odd_turns (b, items, loops, loop);
  g_autofree char *name = NULL;
  guint64 identity = equal->n;

  if (is_all && group->kind == TD_GROUP_LINK)
    {
      name = g_strdup_printf ("%s ×%u%s", group->name, loop->n_turns, odd);
      group->name = g_string_chunk_insert_const (b->graph->strings, name);
      group->n_repeats = loop->n_turns;
    }
  else
    {
      for (guint i = 0; i < equal->n; i++)
        identity = td__mix (identity, items[equal->first + i].token);
      name = name_loop (b, items, loops, loop, odd);
      parent = add_group (b, parent, TD_GROUP_LOOP, identity, name, group->path, loop->n_turns);
    }
  g_array_index (b->graph->groups, TdVizGroup, parent).odd_length = (guint32)strlen (odd);
  return parent;
}

static void
emit_loop (Builder *b, gint parent, const TdLoopItem *items, const TdLoops *loops,
           const TdLoop *loop, gboolean is_all)
{
  const TdLoopTurn *equal = td__loop_turn (loops, loop, loop->equal);
  const char *path = td__graph_group (b->graph, parent)->path;
  gint group = add_loop (b, parent, items, loops, loop, is_all);

  for (guint t = 0; t < loop->n_turns; t++)
    {
      const TdLoopTurn *turn = td__loop_turn (loops, loop, t);
      char *turn_name = name_turn (b, items, loops, loop, t);

      if (equal->n == 1 && turn->n == 1)
        emit_item (b, group, &items[turn->first], turn_name);
      else
        {
          gint step = add_group (b, group, TD_GROUP_STEP, t, turn_name, path, 0);

          for (guint i = 0; i < turn->n; i++)
            emit_item (b, step, &items[turn->first + i], NULL);
        }
      g_free (turn_name);
    }
}

/* ---- sections ---- */

/* One item, or a loop of several. */
typedef struct
{
  guint first, n;
  const TdLoop *loop; /* NULL: an item */
  guint n_nodes;      /* forward and backward, folded */
} Unit;

static guint
count_nodes (const Builder *b, const TdLoopItem *item, guint n_items)
{
  guint n_twins;

  if (n_items > 1 || item->n_ops > 1)
    return 2;
  n_twins = count_twins (b, (guint32)item->event);
  return n_twins > MAX_TWINS ? 2 : 1 + n_twins;
}

/* `is_all`: it is all that the group has. */
static void
emit_unit (Builder *b, gint group, const TdLoopItem *items, const TdLoops *loops,
           const Unit *unit, gboolean is_all)
{
  if (unit->loop)
    emit_loop (b, group, items, loops, unit->loop, is_all);
  else
    emit_item (b, group, &items[unit->first], NULL);
}

static void emit_units (Builder *b, gint group, const TdLoopItem *items, const TdLoops *loops,
                        const Unit *units, guint n, guint n_nodes);

static void
emit_section (Builder *b, gint group, const TdLoopItem *items, const TdLoops *loops,
              const Unit *units, guint n, guint n_nodes)
{
  const TdLoopItem *last = &items[units[n - 1].first + units[n - 1].n - 1];
  guint first_event = (guint)items[units->first].event;
  guint last_event = last->layer >= 0 ? b->layers[last->layer].end - 1 : (guint)last->event;
  char *name;
  gint section;

  if (n == 1)
    {
      emit_unit (b, group, items, loops, units, FALSE);
      return;
    }
  name = g_strdup_printf ("ops %u…%u", first_event, last_event);
  section = add_group (b, group, TD_GROUP_SECTION, units->first, name,
                       td__graph_group (b->graph, group)->path, 0);
  g_free (name);
  emit_units (b, section, items, loops, units, n, n_nodes);
}

/* More than a picture has room for is cut into sections of equal size, and these again. */
static void
emit_units (Builder *b, gint group, const TdLoopItem *items, const TdLoops *loops,
            const Unit *units, guint n, guint n_nodes)
{
  guint size = MAX (n_nodes / N_SECTIONS + 1, MIN_SECTION);

  if (n_nodes <= MAX_NODES || td__graph_group (b->graph, group)->depth + 2 > MAX_SECTION_DEPTH)
    {
      for (guint i = 0; i < n; i++)
        emit_unit (b, group, items, loops, &units[i], n == 1);
      return;
    }
  for (guint i = 0; i < n;)
    {
      guint first = i, inside = 0;

      do
        inside += units[i++].n_nodes;
      while (i < n && inside + units[i].n_nodes <= size);
      emit_section (b, group, items, loops, units + first, i - first, inside);
    }
}

static void
emit_items (Builder *b, gint group, const TdLoopItem *items, guint n)
{
  /* A trace of allocations repeats itself without a loop behind it. */
  gboolean may_nest = td__graph_group (b->graph, group)->depth + 2 < TD_MAX_GROUP_DEPTH
                      && !(b->tape->flags & TD_TAPE_ITERATION_SNAPSHOT);
  GArray *units = g_array_new (FALSE, FALSE, sizeof (Unit));
  guint n_nodes = 0, next = 0;
  TdLoops loops;

  td__loops_find (&loops, b->graph->iteration, b->layers, items, may_nest ? n : 0);
  for (guint i = 0; i < n;)
    {
      Unit unit = { .first = i, .n = 1 };

      if (next < loops.loops->len && g_array_index (loops.loops, TdLoop, next).first == i)
        {
          unit.loop = &g_array_index (loops.loops, TdLoop, next++);
          unit.n = unit.loop->n;
        }
      unit.n_nodes = count_nodes (b, &items[i], unit.n);
      n_nodes += unit.n_nodes;
      i += unit.n;
      g_array_append_val (units, unit);
    }
  emit_units (b, group, items, &loops, (const Unit *)(gpointer)units->data, units->len,
              group == 0 && may_nest ? n_nodes : 0);
  td__loops_clear (&loops);
  g_array_free (units, TRUE);
}

/* The model's outermost link and the iteration's own scope hold nearly everything: as boxes
 * they would say nothing. */
static GArray *
unwrap_top (Builder *b)
{
  GArray *top = g_array_new (FALSE, FALSE, sizeof (TdLoopItem));
  guint total = 0;

  g_array_append_vals (top, b->items + b->first_item[0], b->first_item[1] - b->first_item[0]);
  for (guint i = 0; i < top->len; i++)
    total += g_array_index (top, TdLoopItem, i).n_ops;
  for (gint only = 0; only >= 0;)
    {
      only = -1;
      for (guint i = 0; i < top->len; i++)
        if (g_array_index (top, TdLoopItem, i).layer >= 0)
          {
            if (only >= 0 || g_array_index (top, TdLoopItem, i).n_ops * 2 < total)
              {
                only = -2;
                break;
              }
            only = (gint)i;
          }
      if (only >= 0)
        {
          gint32 layer = g_array_index (top, TdLoopItem, only).layer;

          g_array_remove_index (top, (guint)only);
          g_array_insert_vals (top, (guint)only, b->items + b->first_item[layer + 1],
                               b->first_item[layer + 2] - b->first_item[layer + 1]);
        }
    }
  return top;
}

void
td__graph_build_groups (TdVizGraph *self)
{
  Builder b = { .graph = self, .tape = td_iteration_get_tape (self->iteration) };
  GArray *top;
  const char *root = "";
  TdLayers layers;

  td__layers_imply (&layers, self->iteration);
  b.layers = layers.layers;
  b.n_layers = layers.n_layers;
  b.event_layer = layers.event_layer;
  b.occurrences = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);
  for (guint i = 0; i < layers.n_layers && !*root; i++)
    if (b.layers[i].is_link && b.layers[i].depth <= 1)
      root = b.layers[i].name;
  collect_items (&b);
  add_group (&b, -1, TD_GROUP_ROOT, 0, root, "", 0);
  top = unwrap_top (&b);
  emit_items (&b, 0, (const TdLoopItem *)(gpointer)top->data, top->len);
  g_array_free (top, TRUE);
  g_hash_table_unref (b.occurrences);
  g_free (b.first_item);
  g_free (b.items);
  g_free (b.item_of_layer);
  td__layers_clear (&layers);
}

gint
td__graph_common_group (const TdVizGraph *self, gint a, gint b)
{
  while (a != b)
    {
      if (td__graph_group (self, a)->depth >= td__graph_group (self, b)->depth)
        a = td__graph_group (self, a)->parent;
      else
        b = td__graph_group (self, b)->parent;
    }
  return a;
}
