/* The tree of groups. Calls of links and scopes are given by the tape; loops are not, because
 * C's `for` leaves no trace: a loop is a maximal periodic run of equal (site, operation)
 * sequences among the things that one call does.
 *
 * SPDX-License-Identifier: MIT */
#include "graph/td-graph-private.h"

#include <string.h>

#include "graph/td-layers-implied.h"

#include "tape/td-mix.h"

#define MIN_REPEATS 3
#define MAX_PERIOD 256
#define MAX_NODES 44         /* at the top, in the lanes forward and backward */
#define N_SECTIONS 16        /* that more are cut into */
#define MIN_SECTION 8        /* nodes in one */
#define MAX_SECTION_DEPTH 12 /* 16^12 operations: never reached */

/* One thing that a call does: an operation, or another call. */
typedef struct
{
  gint32 layer; /* -1: an operation */
  gint32 event; /* the operation, or the first one inside */
  guint32 n_ops;
  guint64 token; /* equal for equal code: site and operation of all that is in it */
} Item;

typedef struct
{
  TdVizGraph *graph;
  const TdTapeIteration *tape;
  const TdLayer *layers; /* recorded and implied */
  guint n_layers;
  const gint32 *event_layer;
  guint32 *first_item; /* per container (layer + 1; 0 is the top): into items */
  Item *items;
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
             void (*visit) (Builder *, gint, const Item *))
{
  guint next_layer = 0;

  for (guint e = 0; e <= b->tape->n_events; e++)
    {
      for (; next_layer < b->n_layers && b->layers[next_layer].first <= e; next_layer++)
        {
          const TdLayer *layer = &b->layers[next_layer];
          Item item
              = { (gint32)next_layer, (gint32)layer->first, count_ops (n_forward, layer), 0 };

          if (item.n_ops > 0)
            visit (b, layer->parent + 1, &item);
        }
      if (e < b->tape->n_events && b->tape->events[e].phase == TD_TAPE_PHASE_FORWARD)
        {
          Item item = { -1, (gint32)e, 1, 0 };

          item.token = td__mix (b->tape->events[e].site, b->tape->events[e].opdef);
          visit (b, b->event_layer[e] + 1, &item);
        }
    }
}

static void
count_item (Builder *b, gint container, const Item *item)
{
  (void)item;
  b->first_item[container + 2]++;
}

static void
place_item (Builder *b, gint container, const Item *item)
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
  b->items = g_new0 (Item, b->first_item[n + 1] + 1);
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

static void emit_items (Builder *b, gint group, const Item *items, guint n);

static void
emit_flat (Builder *b, gint group, const TdLayer *layer)
{
  for (guint e = layer->first; e < layer->end; e++)
    if (b->tape->events[e].phase == TD_TAPE_PHASE_FORWARD)
      b->graph->event_group[e] = group;
}

/* `name`: what to call it instead of its own name; NULL: that. */
static void
emit_item (Builder *b, gint group, const Item *item, const char *name)
{
  const TdLayer *layer;
  const Item *inside;
  guint n_inside;
  gint own;

  if (item->layer < 0)
    {
      b->graph->event_group[item->event] = group;
      return;
    }
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
item_name (const Builder *b, const Item *item)
{
  return item->layer >= 0 ? b->layers[item->layer].name
                          : td_iteration_get_op_name (b->graph->iteration, (guint)item->event);
}

/* What a step is called after: its call, its calls from first to last, or its one operation. */
static gboolean
find_named (const Item *step, guint period, const Item **first, const Item **last)
{
  *first = *last = period == 1 ? step : NULL;
  for (guint i = 0; period > 1 && i < period; i++)
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

/* "lstm ×35" where all are calls of lstm, "l1…l12 ×12" where names differ, "loop ×35" where
 * nothing in a step has a name. */
static char *
name_loop (const Builder *b, const Item *items, guint period, guint repeats)
{
  const Item *first, *last, *ignored;
  char *range, *name;

  if (!find_named (items, period, &first, &ignored))
    return g_strdup_printf ("loop ×%u", repeats);
  find_named (items + (gsize)period * (repeats - 1), period, &ignored, &last);
  range = name_range (item_name (b, first), item_name (b, last));
  name = g_strdup_printf ("%s ×%u", range, repeats);
  g_free (range);
  return name;
}

/* "h3", "up2…join2"; with its number where the next step is called the same. */
static char *
name_step (const Builder *b, const Item *items, guint period, guint repeats, guint r)
{
  const Item *step = items + (gsize)r * period, *first, *last;
  const Item *other = items + (gsize)(r + 1 < repeats ? r + 1 : r - 1) * period;
  char *name, *numbered;

  if (!find_named (step, period, &first, &last))
    return g_strdup_printf ("step %u", r);
  name = name_range (item_name (b, first), item_name (b, last));
  if (strcmp (item_name (b, first), item_name (b, other + (first - step))) != 0)
    return name;
  numbered = g_strdup_printf ("%s %u", name, r);
  g_free (name);
  return numbered;
}

static void
emit_loop (Builder *b, gint parent, const Item *items, guint period, guint repeats)
{
  char *name = name_loop (b, items, period, repeats);
  const char *path = td__graph_group (b->graph, parent)->path;
  guint64 identity = period;
  gint loop;

  for (guint i = 0; i < period; i++)
    identity = td__mix (identity, items[i].token);
  loop = add_group (b, parent, TD_GROUP_LOOP, identity, name, path, repeats);
  g_free (name);
  for (guint r = 0; r < repeats; r++)
    {
      const Item *step = items + (gsize)r * period;
      char *step_name = name_step (b, items, period, repeats, r);

      if (period == 1)
        emit_item (b, loop, step, step_name);
      else
        {
          gint group = add_group (b, loop, TD_GROUP_STEP, r, step_name, path, 0);

          for (guint i = 0; i < period; i++)
            emit_item (b, group, &step[i], NULL);
        }
      g_free (step_name);
    }
}

/* Are two calls of one step members of one series, as "res2" and "res3"? Then a step is no
 * unit that anybody thinks of. */
static gboolean
cuts_series (const Builder *b, const Item *step, guint period)
{
  const char *stem = NULL;
  gsize length = 0;

  for (guint i = 0; i < period; i++)
    {
      const char *name = step[i].layer >= 0 ? item_name (b, &step[i]) : "";
      gsize n = strlen (name);

      while (n > 0 && g_ascii_isdigit (name[n - 1]))
        n--;
      if (n == 0 || !name[n])
        continue;
      if (stem && n == length && strncmp (stem, name, n) == 0)
        return TRUE;
      stem = name;
      length = n;
    }
  return FALSE;
}

/* The period with which the run from items[0] covers most; 0: none repeats often enough. */
static guint
find_period (const Builder *b, const Item *items, guint n, guint *repeats)
{
  guint best = 0, covered = 0;

  for (guint p = 1; p <= MAX_PERIOD && p * MIN_REPEATS <= n; p++)
    {
      guint length = p;

      if (items[p].token != items[0].token || items[2 * p].token != items[0].token)
        continue;
      while (length < n && items[length].token == items[length - p].token)
        length++;
      length -= length % p;
      if (length / p >= MIN_REPEATS && length > covered && !cuts_series (b, items, p))
        {
          best = p;
          covered = length;
          *repeats = length / p;
          if (p == 1)
            break;
        }
    }
  return best;
}

/* ---- sections ---- */

/* One item, or a loop of several. */
typedef struct
{
  guint first, period, repeats;
  guint n_nodes; /* forward and backward, folded */
} Unit;

static guint
count_nodes (const Builder *b, const Item *item, guint n_items)
{
  guint n_twins = 0;

  if (n_items > 1 || item->n_ops > 1)
    return 2;
  td_iteration_get_twins (b->graph->iteration, (guint)item->event, &n_twins);
  return 1 + n_twins;
}

static void
emit_unit (Builder *b, gint group, const Item *items, const Unit *unit)
{
  if (unit->repeats)
    emit_loop (b, group, items + unit->first, unit->period, unit->repeats);
  else
    emit_item (b, group, &items[unit->first], NULL);
}

static void emit_units (Builder *b, gint group, const Item *items, const Unit *units, guint n,
                        guint n_nodes);

static void
emit_section (Builder *b, gint group, const Item *items, const Unit *units, guint n,
              guint n_nodes)
{
  const Unit *end = &units[n - 1];
  guint last = end->first + MAX (end->period * end->repeats, 1) - 1;
  guint first_event = (guint)items[units->first].event;
  guint last_event = items[last].layer >= 0 ? b->layers[items[last].layer].end - 1
                                            : (guint)items[last].event;
  char *name;
  gint section;

  if (n == 1)
    {
      emit_unit (b, group, items, units);
      return;
    }
  name = g_strdup_printf ("ops %u…%u", first_event, last_event);
  section = add_group (b, group, TD_GROUP_SECTION, units->first, name,
                       td__graph_group (b->graph, group)->path, 0);
  g_free (name);
  emit_units (b, section, items, units, n, n_nodes);
}

/* More than a picture has room for is cut into sections of equal size, and these again. */
static void
emit_units (Builder *b, gint group, const Item *items, const Unit *units, guint n,
            guint n_nodes)
{
  guint size = MAX (n_nodes / N_SECTIONS + 1, MIN_SECTION);

  if (n_nodes <= MAX_NODES || td__graph_group (b->graph, group)->depth + 2 > MAX_SECTION_DEPTH)
    {
      for (guint i = 0; i < n; i++)
        emit_unit (b, group, items, &units[i]);
      return;
    }
  for (guint i = 0; i < n;)
    {
      guint first = i, inside = 0;

      do
        inside += units[i++].n_nodes;
      while (i < n && inside + units[i].n_nodes <= size);
      emit_section (b, group, items, units + first, i - first, inside);
    }
}

static void
emit_items (Builder *b, gint group, const Item *items, guint n)
{
  /* A trace of allocations repeats itself without a loop behind it. */
  gboolean may_nest = td__graph_group (b->graph, group)->depth + 2 < TD_MAX_GROUP_DEPTH
                      && !(b->tape->flags & TD_TAPE_ITERATION_SNAPSHOT);

  GArray *units = g_array_new (FALSE, FALSE, sizeof (Unit));
  guint n_nodes = 0;

  for (guint i = 0; i < n;)
    {
      Unit unit = { .first = i };

      unit.period = may_nest ? find_period (b, items + i, n - i, &unit.repeats) : 0;
      unit.n_nodes = count_nodes (b, &items[i], MAX (unit.period * unit.repeats, 1));
      n_nodes += unit.n_nodes;
      i += MAX (unit.period * unit.repeats, 1);
      g_array_append_val (units, unit);
    }
  emit_units (b, group, items, (const Unit *)(gpointer)units->data, units->len,
              group == 0 && may_nest ? n_nodes : 0);
  g_array_free (units, TRUE);
}

/* The model's outermost link and the iteration's own scope hold nearly everything: as boxes
 * they would say nothing. */
static GArray *
unwrap_top (Builder *b)
{
  GArray *top = g_array_new (FALSE, FALSE, sizeof (Item));
  guint total = 0;

  g_array_append_vals (top, b->items + b->first_item[0], b->first_item[1] - b->first_item[0]);
  for (guint i = 0; i < top->len; i++)
    total += g_array_index (top, Item, i).n_ops;
  for (gint only = 0; only >= 0;)
    {
      only = -1;
      for (guint i = 0; i < top->len; i++)
        if (g_array_index (top, Item, i).layer >= 0)
          {
            if (only >= 0 || g_array_index (top, Item, i).n_ops * 2 < total)
              {
                only = -2;
                break;
              }
            only = (gint)i;
          }
      if (only >= 0)
        {
          gint32 layer = g_array_index (top, Item, only).layer;

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
  emit_items (&b, 0, (const Item *)(gpointer)top->data, top->len);
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
