/* The tree of an iteration. Children of all groups are sorted out once; row objects are made
 * for what a list shows.
 * SPDX-License-Identifier: MIT */
#include "pages/td-outline-model.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "scene/td-format.h"
#include "tape/td-devices.h"

/* A list of more children than these is one of spans: a tree of GTK takes time for each of its
 * rows before it shows the first. */
#define MAX_CHILDREN 10000
#define SPAN 1000

/* One child of a group: a group (>= 0) or an event (stored as -1 - event). */
typedef gint32 Child;

struct _TdOutlineModel
{
  GObject parent;
  TdIteration *iteration;
  TdVizGraph *graph; /* borrowed from the iteration */
  const TdVizGroup *groups;
  guint n_groups;
  guint32 *first; /* of each group, into children; n_groups + 1 entries */
  Child *children;
};

struct _TdOutlineRow
{
  GObject parent;
  TdOutlineModel *model;
  TdOutlineKind kind;
  gint group;       /* of a group */
  gint event;       /* of the others */
  gint var;         /* of in and out */
  guint32 from, to; /* of a span: places in the model's children */
};

/* The list of one row's children. */
#define TD_TYPE_OUTLINE_LIST (td_outline_list_get_type ())
G_DECLARE_FINAL_TYPE (TdOutlineList, td_outline_list, TD, OUTLINE_LIST, GObject)

struct _TdOutlineList
{
  GObject parent;
  TdOutlineModel *model;
  guint32 from, to; /* places in the model's children */
  gint event;       /* >= 0: in and out of this event */
};

static void outline_list_iface_init (GListModelInterface *iface);

G_DEFINE_FINAL_TYPE (TdOutlineModel, td_outline_model, G_TYPE_OBJECT)
G_DEFINE_FINAL_TYPE (TdOutlineRow, td_outline_row, G_TYPE_OBJECT)
G_DEFINE_FINAL_TYPE_WITH_CODE (TdOutlineList, td_outline_list, G_TYPE_OBJECT,
                               G_IMPLEMENT_INTERFACE (G_TYPE_LIST_MODEL,
                                                      outline_list_iface_init))

/* ---- model ---- */

static gint
first_event_of (TdOutlineModel *self, gint group)
{
  gint first = G_MAXINT;
  for (int lane = 0; lane < TD_N_LANES; lane++)
    {
      guint n;
      const gint32 *members = td_viz_graph_get_members (self->graph, (guint)group, lane, &n);
      if (n)
        first = MIN (first, members[0]);
    }
  return first;
}

static gint
last_event_of (TdOutlineModel *self, gint group)
{
  gint last = -1;
  for (int lane = 0; lane < TD_N_LANES; lane++)
    {
      guint n;
      const gint32 *members = td_viz_graph_get_members (self->graph, (guint)group, lane, &n);
      if (n)
        last = MAX (last, members[n - 1]);
    }
  return last;
}

typedef struct
{
  gint32 order; /* its first event */
  gint32 group;
} Entry;

static int
compare_entries (gconstpointer a, gconstpointer b)
{
  const Entry *x = a, *y = b;
  return (x->order > y->order) - (x->order < y->order);
}

/* Groups in the order of their first events. */
static GArray *
list_groups (TdOutlineModel *self)
{
  GArray *entries = g_array_sized_new (FALSE, FALSE, sizeof (Entry), self->n_groups);
  for (guint g = 1; g < self->n_groups; g++)
    {
      Entry entry = { first_event_of (self, (gint)g), (gint32)g };
      g_array_append_val (entries, entry);
    }
  g_array_sort (entries, compare_entries);
  return entries;
}

/* Events have their order: only groups are sorted, and all are put where their parents' begin.
 */
static void
sort_out_children (TdOutlineModel *self)
{
  guint n_events = td_iteration_get_n_events (self->iteration), next = 0;
  g_autoptr (GArray) groups = list_groups (self);
  g_autofree guint32 *at = g_new0 (guint32, self->n_groups + 1);
  self->first = g_new0 (guint32, self->n_groups + 1);
  self->children = g_new (Child, n_events + self->n_groups + 1);
  for (guint g = 1; g < self->n_groups; g++)
    self->first[MAX (self->groups[g].parent, 0) + 1]++;
  for (guint e = 0; e < n_events; e++)
    self->first[MAX (td_viz_graph_get_event_group (self->graph, e), 0) + 1]++;
  for (guint g = 1; g <= self->n_groups; g++)
    at[g] = self->first[g] += self->first[g - 1];
  for (guint e = 0; e <= n_events; e++)
    {
      for (; next < groups->len; next++)
        {
          const Entry *entry = &g_array_index (groups, Entry, next);
          if (e < n_events && entry->order > (gint32)e)
            break;
          self->children[at[MAX (self->groups[entry->group].parent, 0)]++] = entry->group;
        }
      if (e < n_events)
        self->children[at[MAX (td_viz_graph_get_event_group (self->graph, e), 0)]++]
            = -1 - (Child)e;
    }
}

static void
take_iteration (TdOutlineModel *self, TdIteration *iteration)
{
  td_iteration_ref (iteration);
  g_clear_pointer (&self->iteration, td_iteration_unref);
  self->iteration = iteration;
  self->graph = td_iteration_get_graph (iteration);
  self->groups = td_viz_graph_get_groups (self->graph, &self->n_groups);
}

TdOutlineModel *
td_outline_model_new (TdIteration *iteration)
{
  TdOutlineModel *self = g_object_new (TD_TYPE_OUTLINE_MODEL, NULL);
  take_iteration (self, iteration);
  sort_out_children (self);
  return self;
}

gboolean
td_outline_model_update (TdOutlineModel *self, TdIteration *iteration)
{
  const TdTapeIteration *old = td_iteration_get_tape (self->iteration);
  const TdTapeIteration *new = td_iteration_get_tape (iteration);
  if (self->iteration == iteration)
    return TRUE;
  if (!old->fingerprint || old->fingerprint != new->fingerprint
      || old->n_events != new->n_events)
    return FALSE;
  take_iteration (self, iteration);
  return TRUE;
}

TdIteration *
td_outline_model_get_iteration (TdOutlineModel *self)
{
  return self->iteration;
}

static GListModel *
new_list (TdOutlineModel *self, guint32 from, guint32 to, gint event)
{
  TdOutlineList *list = g_object_new (TD_TYPE_OUTLINE_LIST, NULL);
  list->model = g_object_ref (self);
  list->from = from;
  list->to = to;
  list->event = event;
  return G_LIST_MODEL (list);
}

static GListModel *
new_list_of_group (TdOutlineModel *self, gint group)
{
  return new_list (self, self->first[group], self->first[group + 1], -1);
}

GListModel *
td_outline_model_get_roots (TdOutlineModel *self)
{
  return new_list_of_group (self, 0);
}

static void
prepend_position (GArray *path, TdOutlineModel *self, gint group, Child child)
{
  for (guint32 i = self->first[group]; i < self->first[group + 1]; i++)
    if (self->children[i] == child)
      {
        guint position = i - self->first[group], span = position / SPAN;
        gboolean in_span = self->first[group + 1] - self->first[group] > MAX_CHILDREN;
        if (in_span)
          position %= SPAN;
        g_array_prepend_val (path, position);
        if (in_span)
          g_array_prepend_val (path, span);
      }
}

GArray *
td_outline_model_find_group (TdOutlineModel *self, gint group)
{
  GArray *path = g_array_new (FALSE, FALSE, sizeof (guint));
  for (gint g = group; g > 0 && (guint)g < self->n_groups; g = self->groups[g].parent)
    prepend_position (path, self, self->groups[g].parent, g);
  return path;
}

GArray *
td_outline_model_find_event (TdOutlineModel *self, gint event)
{
  if (event < 0 || (guint)event >= td_iteration_get_n_events (self->iteration))
    return g_array_new (FALSE, FALSE, sizeof (guint));
  gint group = td_viz_graph_get_event_group (self->graph, (guint)event);
  GArray *path = td_outline_model_find_group (self, group);
  GArray *last = g_array_new (FALSE, FALSE, sizeof (guint));
  prepend_position (last, self, MAX (group, 0), -1 - event);
  g_array_append_vals (path, last->data, last->len);
  g_array_unref (last);
  return path;
}

static void
td_outline_model_finalize (GObject *object)
{
  TdOutlineModel *self = TD_OUTLINE_MODEL (object);
  g_clear_pointer (&self->iteration, td_iteration_unref);
  g_free (self->first);
  g_free (self->children);
  G_OBJECT_CLASS (td_outline_model_parent_class)->finalize (object);
}

static void
td_outline_model_class_init (TdOutlineModelClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = td_outline_model_finalize;
}

static void
td_outline_model_init (TdOutlineModel *self)
{
}

/* ---- rows ---- */

static const TdTapeEvent *
event_of (TdOutlineRow *row)
{
  const TdTapeIteration *tape = td_iteration_get_tape (row->model->iteration);
  return row->event >= 0 && (guint32)row->event < tape->n_events ? &tape->events[row->event]
                                                                 : NULL;
}

TdOutlineKind
td_outline_row_get_kind (TdOutlineRow *row)
{
  return row->kind;
}

guint64
td_outline_row_get_key (TdOutlineRow *row)
{
  const TdTapeEvent *event = event_of (row);
  if (row->kind == TD_OUTLINE_GROUP)
    return row->model->groups[row->group].key;
  if (row->kind == TD_OUTLINE_SPAN)
    return 0;
  if (row->kind == TD_OUTLINE_EVENT)
    return event ? event->key : 0;
  return td_iteration_get_tape (row->model->iteration)->vars[row->var].key;
}

static gint
event_of_child (TdOutlineRow *row, guint32 at, gint (*of_group) (TdOutlineModel *, gint))
{
  Child child = row->model->children[at];
  return child >= 0 ? of_group (row->model, child) : -1 - child;
}

gint
td_outline_row_get_event (TdOutlineRow *row)
{
  if (row->kind == TD_OUTLINE_SPAN)
    return event_of_child (row, row->from, first_event_of);
  if (row->kind != TD_OUTLINE_GROUP)
    return row->event;
  gint first = first_event_of (row->model, row->group);
  return first == G_MAXINT ? -1 : first;
}

gint
td_outline_row_get_last_event (TdOutlineRow *row)
{
  if (row->kind == TD_OUTLINE_SPAN)
    return event_of_child (row, row->to - 1, last_event_of);
  return row->kind == TD_OUTLINE_GROUP ? last_event_of (row->model, row->group) : row->event;
}

static char *
dup_var_name (TdOutlineRow *row)
{
  TdIteration *iteration = row->model->iteration;
  const TdTapeVar *var = &td_iteration_get_tape (iteration)->vars[row->var];
  g_autofree char *name
      = g_utf8_make_valid (td_iteration_get_var_name (iteration, (guint)row->var), -1);
  g_autofree char *shape = td_iteration_dup_shape (iteration, (guint)row->var, TRUE);
  const char *from = "";
  if (!*name && row->kind == TD_OUTLINE_IN && var->producer >= 0)
    from = td_iteration_get_op_name (iteration, (guint)var->producer);
  return g_strdup_printf ("%s %s%s%s %s", row->kind == TD_OUTLINE_IN ? "in" : "out", name,
                          *from ? "from " : "", from, shape);
}

/* Of a layer that is one operation, and so has no row of its own: its name, behind the row that
 * the operation is in. NULL: there is none. */
static const char *
own_name (TdOutlineRow *row)
{
  const TdTapeEvent *event = event_of (row);
  const char *path = td_iteration_get_link_path (row->model->iteration, (guint)row->event);
  gint group = td_viz_graph_get_event_group (row->model->graph, (guint)row->event);
  const char *around = group > 0 ? row->model->groups[group].path : NULL;
  gsize n = around ? strlen (around) : strcspn (path, "/");
  if (!event || event->phase != TD_TAPE_PHASE_FORWARD || group < 0
      || (around && !g_str_has_prefix (path, around)) || path[n] != '/')
    return NULL;
  return path + n + 1;
}

/* "convolution_2d_grad_W" beside its "convolution_2d" is "grad_W", as in the picture. */
static char *
dup_event_name (TdOutlineRow *row)
{
  TdIteration *iteration = row->model->iteration;
  const char *name = td_iteration_get_op_name (iteration, (guint)row->event);
  gint twin = td_iteration_get_forward (iteration, (guint)row->event);
  const char *base = twin >= 0 && twin != row->event
                         ? td_iteration_get_op_name (iteration, (guint)twin)
                         : "";
  gsize n = strlen (base);
  if (n && strncmp (name, base, n) == 0 && g_str_has_prefix (name + n, "_grad_"))
    name += n + 1;
  const char *own = own_name (row);
  g_autofree char *both = own ? g_strdup_printf ("%s · %s", name, own) : NULL;
  return g_utf8_make_valid (both ? both : name, -1);
}

char *
td_outline_row_dup_name (TdOutlineRow *row)
{
  if (row->kind == TD_OUTLINE_GROUP)
    return g_utf8_make_valid (row->model->groups[row->group].name, -1);
  if (row->kind == TD_OUTLINE_EVENT)
    return dup_event_name (row);
  if (row->kind == TD_OUTLINE_SPAN)
    return g_strdup_printf (_ ("Events %d to %d"), td_outline_row_get_event (row),
                            td_outline_row_get_last_event (row));
  return dup_var_name (row);
}

char *
td_outline_row_dup_bytes (TdOutlineRow *row)
{
  guint64 bytes = 0;
  if (row->kind == TD_OUTLINE_GROUP)
    bytes = row->model->groups[row->group].saved_bytes;
  else if (row->kind == TD_OUTLINE_EVENT)
    bytes = td_viz_graph_get_saved_bytes (row->model->graph, (guint)row->event);
  else if (row->kind != TD_OUTLINE_SPAN)
    bytes = td_iteration_get_tape (row->model->iteration)->vars[row->var].bytes;
  char text[TD_FORMAT_SIZE];
  return g_strdup (bytes ? td_format_bytes (text, bytes) : "");
}

/* The column says "ms": numbers that line up compare better than numbers with units. */
static char *
dup_ms (guint64 ns)
{
  return g_strdup_printf (ns < 10000000 ? "%.2f" : "%.1f", (double)ns / 1e6);
}

char *
td_outline_row_dup_time (TdOutlineRow *row)
{
  const TdIteration *iteration = row->model->iteration;
  guint64 ns = 0;
  if (row->kind == TD_OUTLINE_GROUP)
    ns = row->model->groups[row->group].time_ns;
  else if (row->kind == TD_OUTLINE_EVENT && event_of (row)
           && (guint)row->event < td_iteration_get_n_run (iteration))
    ns = td_devices_cost (iteration, (guint)row->event);
  else
    return g_strdup ("");
  /* nothing takes no time: it was not timed where it ran */
  return ns > 0 ? dup_ms (ns) : g_strdup ("—");
}

GListModel *
td_outline_row_get_children (TdOutlineRow *row)
{
  if (row->kind == TD_OUTLINE_GROUP)
    return new_list_of_group (row->model, row->group);
  if (row->kind == TD_OUTLINE_SPAN)
    return new_list (row->model, row->from, row->to, -1);
  if (row->kind == TD_OUTLINE_EVENT)
    return new_list (row->model, 0, 0, row->event);
  return NULL;
}

static void
td_outline_row_finalize (GObject *object)
{
  g_clear_object (&TD_OUTLINE_ROW (object)->model);
  G_OBJECT_CLASS (td_outline_row_parent_class)->finalize (object);
}

static void
td_outline_row_class_init (TdOutlineRowClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = td_outline_row_finalize;
}

static void
td_outline_row_init (TdOutlineRow *row)
{
}

/* ---- lists of children ---- */

static const TdTapeEvent *
list_event (TdOutlineList *list)
{
  const TdTapeIteration *tape = td_iteration_get_tape (list->model->iteration);
  return (guint32)list->event < tape->n_events ? &tape->events[list->event] : NULL;
}

static GType
outline_list_get_item_type (GListModel *model)
{
  return TD_TYPE_OUTLINE_ROW;
}

static gboolean
is_of_spans (TdOutlineList *list)
{
  return list->to - list->from > MAX_CHILDREN;
}

static guint
outline_list_get_n_items (GListModel *model)
{
  TdOutlineList *list = TD_OUTLINE_LIST (model);
  if (list->event >= 0)
    {
      const TdTapeEvent *event = list_event (list);
      return event ? (guint)event->n_in + event->n_out : 0;
    }
  guint n = list->to - list->from;
  return is_of_spans (list) ? (n + SPAN - 1) / SPAN : n;
}

static gpointer
outline_list_get_item (GListModel *model, guint position)
{
  TdOutlineList *list = TD_OUTLINE_LIST (model);
  if (position >= outline_list_get_n_items (model))
    return NULL;
  TdOutlineRow *row = g_object_new (TD_TYPE_OUTLINE_ROW, NULL);
  row->model = g_object_ref (list->model);
  row->event = list->event;
  if (list->event >= 0)
    {
      const TdTapeIteration *tape = td_iteration_get_tape (list->model->iteration);
      const TdTapeEvent *event = list_event (list);
      row->kind = position < event->n_in ? TD_OUTLINE_IN : TD_OUTLINE_OUT;
      row->var = (gint)(position < event->n_in
                            ? tape->ins[event->first_in + position]
                            : tape->outs[event->first_out + position - event->n_in]);
      return row;
    }
  if (is_of_spans (list))
    {
      row->kind = TD_OUTLINE_SPAN;
      row->from = list->from + position * SPAN;
      row->to = MIN (row->from + SPAN, list->to);
      return row;
    }
  Child child = list->model->children[list->from + position];
  row->kind = child >= 0 ? TD_OUTLINE_GROUP : TD_OUTLINE_EVENT;
  row->group = child;
  row->event = child >= 0 ? -1 : -1 - child;
  return row;
}

static void
outline_list_iface_init (GListModelInterface *iface)
{
  iface->get_item_type = outline_list_get_item_type;
  iface->get_n_items = outline_list_get_n_items;
  iface->get_item = outline_list_get_item;
}

static void
td_outline_list_finalize (GObject *object)
{
  g_clear_object (&TD_OUTLINE_LIST (object)->model);
  G_OBJECT_CLASS (td_outline_list_parent_class)->finalize (object);
}

static void
td_outline_list_class_init (TdOutlineListClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = td_outline_list_finalize;
}

static void
td_outline_list_init (TdOutlineList *list)
{
}
