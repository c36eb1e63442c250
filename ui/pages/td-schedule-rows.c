/* The rows of the panels' lists: which is selected, what a row selects, walking by keyboard. A
 * row stands for an operation, a buffer or a layer of the graph: selecting one selects the
 * other.
 * SPDX-License-Identifier: MIT */
#include "pages/td-schedule-rows.h"

#include <string.h>

#include "graph/td-graph.h"

/* ---- operations in order ---- */

static guint
count_order (TdScheduleData *data)
{
  TdSchedule *schedule = td__schedule_get_schedule (data);
  return schedule ? schedule->n_rows : 0;
}

static gint
current_order (TdScheduleData *data)
{
  TdSchedule *schedule = td__schedule_get_schedule (data);
  for (guint i = 0; schedule && i < schedule->n_rows; i++)
    if (td_session_is_selected (td_page_get_session (data->page), schedule->rows[i].key))
      return (gint)i;
  return td_session_get_moment (td_page_get_session (data->page)).event;
}

static guint64
key_of_order (TdScheduleData *data, guint i)
{
  return td__schedule_get_schedule (data)->rows[i].key;
}

static char *
describe_order (TdScheduleData *data, guint i)
{
  const TdScheduleRow *row = &td__schedule_get_schedule (data)->rows[i];
  return g_strdup_printf ("event %u, %s, %s", row->event, row->op, row->layer);
}

/* ---- steps of a static schedule ---- */

static const TdStaticsFunction *
shown_function (TdScheduleData *data, TdStatics **statics)
{
  guint function;
  *statics = td__schedule_get_statics (data, &function);
  return *statics ? &(*statics)->functions[function] : NULL;
}

static guint
count_static (TdScheduleData *data)
{
  TdStatics *statics;
  const TdStaticsFunction *c = shown_function (data, &statics);
  return c ? c->n_rows : 0;
}

static gint
current_static (TdScheduleData *data)
{
  TdStatics *statics;
  const TdStaticsFunction *c = shown_function (data, &statics);
  gint event = td_session_get_moment (td_page_get_session (data->page)).event;
  guint n;
  const guint64 *keys = td_session_get_selection (td_page_get_session (data->page), &n);
  if (!c || data->cursor > 0)
    return (gint)data->cursor - 1;
  g_autofree guint8 *events = td_viz_graph_mark_events (
      td_iteration_get_graph (td_page_get_iteration (data->page)), keys, n);
  g_autofree guint8 *rows = td_statics_mark_rows (c, events);
  for (guint i = 0; rows && i < c->n_rows; i++)
    if (rows[i])
      return (gint)i;
  return event >= 0 && (guint)event < c->n_row_events ? c->row_of_event[event] : -1;
}

static guint64
key_of_static (TdScheduleData *data, guint i)
{
  TdStatics *statics;
  const TdStaticsFunction *c = shown_function (data, &statics);
  return td_statics_row_key (statics, c, i,
                             td_session_get_moment (td_page_get_session (data->page)).event);
}

/* The step, where the row is a member of a fused group. */
static guint
member_step (TdScheduleData *data, guint i)
{
  TdStatics *statics;
  const TdStaticsRow *row = &shown_function (data, &statics)->rows[i];
  return row->tape->kind != TD_TAPE_STEP_GROUP && row->tape->group != TD_TAPE_NO_GROUP
             ? row->step
             : TD_SESSION_NO_STEP;
}

static gboolean
is_listed_static (TdScheduleData *data, guint i)
{
  TdStatics *statics;
  return td_statics_row_is_listed (&shown_function (data, &statics)->rows[i]);
}

static char *
describe_static (TdScheduleData *data, guint i)
{
  TdStatics *statics;
  const TdStaticsRow *row = &shown_function (data, &statics)->rows[i];
  return g_strdup_printf ("step %u, %s, %s", row->step, row->op, row->site);
}

/* ---- buffers ---- */

static guint
count_buffers (TdScheduleData *data)
{
  TdGantt *gantt = td__schedule_get_gantt (data);
  return gantt ? gantt->n_bars : 0;
}

static gint
current_buffers (TdScheduleData *data)
{
  TdGantt *gantt = td__schedule_get_gantt (data);
  for (guint i = 0; gantt && i < gantt->n_bars; i++)
    if ((gantt->bars[i].key
         && td_session_is_selected (td_page_get_session (data->page), gantt->bars[i].key))
        || (gantt->bars[i].event_key
            && td_session_is_selected (td_page_get_session (data->page),
                                       gantt->bars[i].event_key)))
      return (gint)i;
  return -1;
}

static guint64
key_of_buffer (TdScheduleData *data, guint i)
{
  return td__schedule_get_gantt (data)->bars[i].key;
}

static gboolean
is_listed_buffer (TdScheduleData *data, guint i)
{
  return key_of_buffer (data, i) != 0;
}

static char *
describe_buffer (TdScheduleData *data, guint i)
{
  const TdGanttBar *bar = &td__schedule_get_gantt (data)->bars[i];
  char bytes[TD_FORMAT_SIZE];
  return g_strdup_printf ("%s, %s, events %u to %u", bar->name,
                          td_format_bytes (bytes, bar->bytes), bar->from, bar->to);
}

/* ---- what could be static ---- */

static guint
count_advice (TdScheduleData *data)
{
  TdStaticness *s = td__schedule_get_staticness (data);
  return s ? s->n_functions : 0;
}

/* A link has its path; a scope its name only, which ends the path of the function. */
static gboolean
is_function (const TdVizGroup *group, const TdStaticFunction *function)
{
  if (group->kind == TD_GROUP_ROOT)
    return *function->path == '\0';
  if (group->kind != (function->is_link ? TD_GROUP_LINK : TD_GROUP_SCOPE))
    return FALSE;
  const char *slash = strrchr (function->path, '/');
  return strcmp (group->path, function->path) == 0
         || (!function->is_link
             && strcmp (group->path, slash ? slash + 1 : function->path) == 0);
}

static gint
current_advice (TdScheduleData *data)
{
  TdStaticness *s = td__schedule_get_staticness (data);
  TdVizGraph *graph = td_iteration_get_graph (td_page_get_iteration (data->page));
  guint n_groups, n;
  const TdVizGroup *groups = td_viz_graph_get_groups (graph, &n_groups);
  const guint64 *keys = td_session_get_selection (td_page_get_session (data->page), &n);
  gint group = n ? td_viz_graph_find_group (graph, keys[0]) : -1;
  gint event = n ? td_iteration_find (td_page_get_iteration (data->page), keys[0]) : -1;
  if (group < 0 && event >= 0)
    group = td_viz_graph_get_event_group (graph, (guint)event);
  for (; s && group >= 0; group = groups[group].parent)
    for (guint i = 0; i < s->n_functions; i++)
      if (is_function (&groups[group], &s->functions[i])
          && (*s->functions[i].path || groups[group].key == keys[0]))
        return (gint)i;
  return -1;
}

static guint64
key_of_advice (TdScheduleData *data, guint i)
{
  TdStaticness *s = td__schedule_get_staticness (data);
  guint n_groups;
  const TdVizGroup *groups = td_viz_graph_get_groups (
      td_iteration_get_graph (td_page_get_iteration (data->page)), &n_groups);
  for (guint g = 0; g < n_groups; g++)
    if (is_function (&groups[g], &s->functions[i]))
      return groups[g].key;
  return 0;
}

static gboolean
is_listed_advice (TdScheduleData *data, guint i)
{
  return key_of_advice (data, i) != 0; /* the iteration may be without that layer */
}

static char *
describe_advice (TdScheduleData *data, guint i)
{
  TdStaticness *s = td__schedule_get_staticness (data);
  return td_staticness_dup_function (s, &s->functions[i]);
}

/* ---- all of them ---- */

typedef struct
{
  const char *name;
  guint (*count) (TdScheduleData *data);
  gint (*current) (TdScheduleData *data);
  guint64 (*key) (TdScheduleData *data, guint i);
  char *(*describe) (TdScheduleData *data, guint i);
  gboolean (*is_listed) (TdScheduleData *data, guint i); /* NULL: all are */
  /* Of lists whose rows say more than their keys: where the cursor stands (plus 1), and which
   * step of the schedule a row means. NULL: a row is its key. */
  guint (*cursor) (TdScheduleData *data);
  guint (*step) (TdScheduleData *data, guint i);
} Rows;

static guint
cursor_static (TdScheduleData *data)
{
  return data->cursor;
}

static guint
cursor_advice (TdScheduleData *data)
{
  return (guint)(current_advice (data) + 1);
}

static const Rows lists[] = {
  { "order", count_order, current_order, key_of_order, describe_order },
  { "timeline", count_order, current_order, key_of_order, describe_order },
  { "static", count_static, current_static, key_of_static, describe_static, is_listed_static,
    cursor_static, member_step },
  { "buffers", count_buffers, current_buffers, key_of_buffer, describe_buffer,
    is_listed_buffer },
  { "advice", count_advice, current_advice, key_of_advice, describe_advice, is_listed_advice,
    cursor_advice },
};

static const Rows *
rows_of (TdScheduleData *data, const char *name)
{
  for (guint i = 0; td_page_get_iteration (data->page) && i < G_N_ELEMENTS (lists); i++)
    if (strcmp (lists[i].name, name) == 0)
      return &lists[i];
  return NULL;
}

static void
pick (TdScheduleData *data, const Rows *rows, guint i)
{
  data->picking = TRUE;
  data->cursor = rows->step ? i + 1 : 0;
  td_session_select_step (td_page_get_session (data->page), rows->key (data, i),
                          rows->step ? rows->step (data, i) : TD_SESSION_NO_STEP);
  data->picking = FALSE;
}

void
td__schedule_place (TdScheduleData *data, const char *name, TdPanelView *view)
{
  const Rows *rows = rows_of (data, name);
  view->cursor = rows && rows->cursor ? rows->cursor (data) : 0;
}

/* Rows of the other lists carry their keys: nothing more is known of them than that. */
gboolean
td__schedule_pick (TdScheduleData *data, const char *name, const TdSceneHit *hit)
{
  const Rows *rows = hit && hit->tag == TD_TAG_ROW ? rows_of (data, name) : NULL;
  if (!rows || !rows->cursor || hit->data < 0 || (guint)hit->data >= rows->count (data))
    return FALSE;
  pick (data, rows, (guint)hit->data);
  return TRUE;
}

char *
td__schedule_move (TdScheduleData *data, const char *name, int delta)
{
  const Rows *rows = rows_of (data, name);
  guint n = rows ? rows->count (data) : 0;
  gint at = n > 0 ? rows->current (data) : -1, found = -1;
  int step = delta < 0 ? -1 : 1;
  if (delta == 0 && at >= 0)
    {
      guint64 key = rows->key (data, (guint)at);
      gint event = key ? td_iteration_find (td_page_get_iteration (data->page), key) : -1;
      if (event >= 0)
        td_session_set_moment (td_page_get_session (data->page),
                               td_iteration_get_number (td_page_get_iteration (data->page)),
                               event);
      return event >= 0 ? rows->describe (data, (guint)at) : NULL;
    }
  for (gint i = at + step; delta != 0 && i >= 0 && i < (gint)n; i += step)
    if (!rows->is_listed || rows->is_listed (data, (guint)i))
      {
        found = i;
        delta -= step;
      }
  if (found < 0)
    return NULL;
  pick (data, rows, (guint)found);
  return rows->describe (data, (guint)found);
}
