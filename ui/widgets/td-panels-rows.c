/* The rows of the panels' lists: which is selected, what a row selects, walking by keyboard. A
 * row stands for an operation, a buffer or a layer of the graph: selecting one selects the
 * other.
 * SPDX-License-Identifier: MIT */
#include "widgets/td-panels-private.h"

#include <string.h>

#include "graph/td-graph.h"

/* ---- operations in order ---- */

static guint
count_order (TdPanels *self)
{
  TdSchedule *schedule = td__panels_get_schedule (self);
  return schedule ? schedule->n_rows : 0;
}

static gint
current_order (TdPanels *self)
{
  TdSchedule *schedule = td__panels_get_schedule (self);
  for (guint i = 0; schedule && i < schedule->n_rows; i++)
    if (td_session_is_selected (self->session, schedule->rows[i].key))
      return (gint)i;
  return td_session_get_moment (self->session).event;
}

static guint64
key_of_order (TdPanels *self, guint i)
{
  return td__panels_get_schedule (self)->rows[i].key;
}

static char *
describe_order (TdPanels *self, guint i)
{
  const TdScheduleRow *row = &td__panels_get_schedule (self)->rows[i];
  return g_strdup_printf ("event %u, %s, %s", row->event, row->op, row->layer);
}

/* ---- steps of a static schedule ---- */

static const TdStaticsChain *
shown_chain (TdPanels *self, TdStatics **statics)
{
  guint chain;
  *statics = td__panels_get_statics (self, &chain);
  return *statics ? &(*statics)->chains[chain] : NULL;
}

static guint
count_static (TdPanels *self)
{
  TdStatics *statics;
  const TdStaticsChain *c = shown_chain (self, &statics);
  return c ? c->n_rows : 0;
}

static gint
current_static (TdPanels *self)
{
  TdStatics *statics;
  const TdStaticsChain *c = shown_chain (self, &statics);
  gint event = td_session_get_moment (self->session).event;
  guint n;
  const guint64 *keys = td_session_get_selection (self->session, &n);
  if (!c || self->cursor > 0)
    return (gint)self->cursor - 1;
  g_autofree guint8 *events
      = td_viz_graph_mark_events (td_iteration_get_graph (self->iteration), keys, n);
  g_autofree guint8 *rows = td_statics_mark_rows (c, events);
  for (guint i = 0; rows && i < c->n_rows; i++)
    if (rows[i])
      return (gint)i;
  return event >= 0 && (guint)event < c->n_row_events ? c->row_of_event[event] : -1;
}

static guint64
key_of_static (TdPanels *self, guint i)
{
  TdStatics *statics;
  const TdStaticsChain *c = shown_chain (self, &statics);
  return td_statics_row_key (statics, c, i, td_session_get_moment (self->session).event);
}

/* The step, where the row is a member of a fused group. */
static guint
member_step (TdPanels *self, guint i)
{
  TdStatics *statics;
  const TdStaticsRow *row = &shown_chain (self, &statics)->rows[i];
  return row->tape->kind != TD_TAPE_STEP_GROUP && row->tape->group != TD_TAPE_NO_GROUP
             ? row->step
             : TD_SESSION_NO_STEP;
}

static gboolean
is_listed_static (TdPanels *self, guint i)
{
  TdStatics *statics;
  return td_statics_row_is_listed (&shown_chain (self, &statics)->rows[i]);
}

static char *
describe_static (TdPanels *self, guint i)
{
  TdStatics *statics;
  const TdStaticsRow *row = &shown_chain (self, &statics)->rows[i];
  return g_strdup_printf ("step %u, %s, %s", row->step, row->op, row->site);
}

/* ---- buffers ---- */

static guint
count_buffers (TdPanels *self)
{
  TdGantt *gantt = td__panels_get_gantt (self);
  return gantt ? gantt->n_bars : 0;
}

static gint
current_buffers (TdPanels *self)
{
  TdGantt *gantt = td__panels_get_gantt (self);
  for (guint i = 0; gantt && i < gantt->n_bars; i++)
    if ((gantt->bars[i].key && td_session_is_selected (self->session, gantt->bars[i].key))
        || (gantt->bars[i].event_key
            && td_session_is_selected (self->session, gantt->bars[i].event_key)))
      return (gint)i;
  return -1;
}

static guint64
key_of_buffer (TdPanels *self, guint i)
{
  return td__panels_get_gantt (self)->bars[i].key;
}

static gboolean
is_listed_buffer (TdPanels *self, guint i)
{
  return key_of_buffer (self, i) != 0;
}

static char *
describe_buffer (TdPanels *self, guint i)
{
  const TdGanttBar *bar = &td__panels_get_gantt (self)->bars[i];
  char bytes[TD_FORMAT_SIZE];
  return g_strdup_printf ("%s, %s, events %u to %u", bar->name,
                          td_format_bytes (bytes, bar->bytes), bar->from, bar->to);
}

/* ---- chains that could be static ---- */

static guint
count_advice (TdPanels *self)
{
  TdStaticness *s = td__panels_get_staticness (self);
  return s ? s->n_chains : 0;
}

/* A link has its path; a scope its name only, which ends the path of the chain. */
static gboolean
is_chain (const TdVizGroup *group, const TdStaticChain *chain)
{
  if (group->kind == TD_GROUP_ROOT)
    return *chain->path == '\0';
  if (group->kind != (chain->is_link ? TD_GROUP_LINK : TD_GROUP_SCOPE))
    return FALSE;
  const char *slash = strrchr (chain->path, '/');
  return strcmp (group->path, chain->path) == 0
         || (!chain->is_link && strcmp (group->path, slash ? slash + 1 : chain->path) == 0);
}

static gint
current_advice (TdPanels *self)
{
  TdStaticness *s = td__panels_get_staticness (self);
  TdVizGraph *graph = td_iteration_get_graph (self->iteration);
  guint n_groups, n;
  const TdVizGroup *groups = td_viz_graph_get_groups (graph, &n_groups);
  const guint64 *keys = td_session_get_selection (self->session, &n);
  gint group = n ? td_viz_graph_find_group (graph, keys[0]) : -1;
  gint event = n ? td_iteration_find (self->iteration, keys[0]) : -1;
  if (group < 0 && event >= 0)
    group = td_viz_graph_get_event_group (graph, (guint)event);
  for (; s && group >= 0; group = groups[group].parent)
    for (guint i = 0; i < s->n_chains; i++)
      if (is_chain (&groups[group], &s->chains[i])
          && (*s->chains[i].path || groups[group].key == keys[0]))
        return (gint)i;
  return -1;
}

static guint64
key_of_advice (TdPanels *self, guint i)
{
  TdStaticness *s = td__panels_get_staticness (self);
  guint n_groups;
  const TdVizGroup *groups
      = td_viz_graph_get_groups (td_iteration_get_graph (self->iteration), &n_groups);
  for (guint g = 0; g < n_groups; g++)
    if (is_chain (&groups[g], &s->chains[i]))
      return groups[g].key;
  return 0;
}

static gboolean
is_listed_advice (TdPanels *self, guint i)
{
  return key_of_advice (self, i) != 0; /* the iteration may be without that layer */
}

static char *
describe_advice (TdPanels *self, guint i)
{
  TdStaticness *s = td__panels_get_staticness (self);
  return td_staticness_dup_chain (s, &s->chains[i]);
}

/* ---- all of them ---- */

typedef struct
{
  const char *page;
  guint (*count) (TdPanels *self);
  gint (*current) (TdPanels *self);
  guint64 (*key) (TdPanels *self, guint i);
  gboolean (*is_listed) (TdPanels *self, guint i); /* NULL: all are */
  char *(*describe) (TdPanels *self, guint i);
} Rows;

static const Rows lists[] = {
  { "order", count_order, current_order, key_of_order, NULL, describe_order },
  { "timeline", count_order, current_order, key_of_order, NULL, describe_order },
  { "static", count_static, current_static, key_of_static, is_listed_static, describe_static },
  { "buffers", count_buffers, current_buffers, key_of_buffer, is_listed_buffer,
    describe_buffer },
  { "advice", count_advice, current_advice, key_of_advice, is_listed_advice, describe_advice },
};

static const Rows *
rows_of (TdPanels *self, const char *page)
{
  for (guint i = 0; self->session && self->iteration && i < G_N_ELEMENTS (lists); i++)
    if (strcmp (lists[i].page, page) == 0)
      return &lists[i];
  return NULL;
}

static void
pick (TdPanels *self, const Rows *rows, guint i)
{
  self->picking = TRUE;
  self->cursor = rows->count == count_static ? i + 1 : 0;
  td_session_select_step (self->session, rows->key (self, i),
                          rows->count == count_static ? member_step (self, i)
                                                      : TD_SESSION_NO_STEP);
  self->picking = FALSE;
}

void
td__panels_place_rows (TdPanels *self, const char *page, TdPanelView *view)
{
  const Rows *rows = rows_of (self, page);
  view->at_selection = self->at_selection;
  if (rows && rows->count == count_static)
    view->cursor = self->cursor;
  else if (rows && rows->count == count_advice)
    view->cursor = (guint)(current_advice (self) + 1);
}

/* Rows of the other pages carry their keys: nothing more is known of them than that. */
gboolean
td__panels_pick (TdPanels *self, const char *page, const TdSceneHit *hit)
{
  const Rows *rows = hit && hit->tag == TD_TAG_ROW ? rows_of (self, page) : NULL;
  if (!rows || (rows->count != count_static && rows->count != count_advice) || hit->data < 0
      || (guint)hit->data >= rows->count (self))
    return FALSE;
  pick (self, rows, (guint)hit->data);
  return TRUE;
}

char *
td__panels_move (TdPanels *self, const char *page, int delta)
{
  const Rows *rows = rows_of (self, page);
  guint n = rows ? rows->count (self) : 0;
  gint at = n > 0 ? rows->current (self) : -1, found = -1;
  int step = delta < 0 ? -1 : 1;
  if (delta == 0 && at >= 0)
    {
      guint64 key = rows->key (self, (guint)at);
      gint event = key ? td_iteration_find (self->iteration, key) : -1;
      if (event >= 0)
        td_session_set_moment (self->session, td_iteration_get_number (self->iteration), event);
      return event >= 0 ? rows->describe (self, (guint)at) : NULL;
    }
  for (gint i = at + step; delta != 0 && i >= 0 && i < (gint)n; i += step)
    if (!rows->is_listed || rows->is_listed (self, (guint)i))
      {
        found = i;
        delta -= step;
      }
  if (found < 0)
    return NULL;
  pick (self, rows, (guint)found);
  return rows->describe (self, (guint)found);
}
