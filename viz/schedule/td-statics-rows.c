/*
 * Which event of an iteration is which step of a schedule, and what a function's calls wait for
 * at an event.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-statics-rows.h"

gboolean
td__statics_is_member (const TdTapeStep *t)
{
  return t->kind != TD_TAPE_STEP_GROUP && t->group != TD_TAPE_NO_GROUP;
}

/* ---- rows ---- */

/* A group's event is called as its members are, joined. */
static char *
join_members (const TdStaticsFunction *c, guint group)
{
  GString *name = g_string_new (NULL);

  for (guint k = 1; k <= c->rows[group].tape->group && group + k < c->n_rows; k++)
    if (c->rows[group + k].tape->opdef)
      g_string_append_printf (name, "%s%s", name->len > 0 ? "+" : "", c->rows[group + k].op);
  return g_string_free (name, FALSE);
}

static gboolean
writes (const TdStaticsFunction *c, guint step, guint value)
{
  const TdTapeSchedule *s = c->tape;
  const TdTapeStep *t = &s->steps[step];

  for (guint k = 0; k < t->n_out; k++)
    if (s->nodes[s->operands[t->first_out + k]].value == value)
      return TRUE;
  return FALSE;
}

/* Who made what a step hands out. */
static gint
maker_of (const TdStaticsFunction *c, guint step)
{
  const TdTapeSchedule *s = c->tape;

  if (s->steps[step].n_in == 0)
    return -1;
  for (guint i = step; i-- > 0;)
    if (s->steps[i].fate == TD_TAPE_FATE_RUNS
        && writes (c, i, s->nodes[s->operands[s->steps[step].first_in]].value))
      return c->rows[i].leader;
  return -1;
}

static gint
leader_of (const TdStaticsFunction *c, guint step)
{
  const TdTapeStep *t = &c->tape->steps[step];

  if (t->fate != TD_TAPE_FATE_RUNS)
    return -1;
  if (t->kind == TD_TAPE_STEP_PROPAGATE || t->kind == TD_TAPE_STEP_HOST_READ)
    return maker_of (c, step);
  if (t->kind != TD_TAPE_STEP_OP && t->kind != TD_TAPE_STEP_GROUP)
    return -1;
  return td__statics_is_member (t) ? (gint)t->group : (gint)step;
}

void
td__statics_fill_leaders (TdStaticsFunction *c)
{
  for (guint i = 0; i < c->n_rows; i++)
    {
      c->rows[i].leader = leader_of (c, i);
      if (c->rows[i].tape->kind == TD_TAPE_STEP_GROUP && !c->rows[i].tape->opdef)
        {
          g_autofree char *name = join_members (c, i);

          if (*name)
            c->rows[i].op = g_intern_string (name);
        }
    }
}

/* ---- events ---- */

void
td__statics_fill_steps (TdStatics *all)
{
  const TdTapeIteration *it = td_iteration_get_tape (all->it);

  g_free (all->steps);
  all->steps = g_new0 (TdPanelStep, MAX (it->n_events, 1));
  for (guint i = 0; i < it->n_runs; i++)
    for (guint e = it->runs[i].begin; e < it->runs[i].end && e < it->n_events; e++)
      if (it->runs[i].kind == TD_TAPE_RUN_REPLAYED)
        all->steps[e] = (TdPanelStep){ it->runs[i].schedule, TD_PANEL_NO_STEP };
  for (guint i = all->n_functions; i-- > 0;)
    for (guint e = 0; e < MIN (it->n_events, all->functions[i].n_row_events); e++)
      if (all->functions[i].row_of_event[e] >= 0)
        all->steps[e] = (TdPanelStep){ all->functions[i].schedule,
                                       (guint)all->functions[i].row_of_event[e] };
}

gint
td_statics_row_event (const TdStaticsFunction *c, guint row, gint near)
{
  gint found = -1, of_leader = -1;

  if (row >= c->n_rows)
    return -1;
  for (guint e = 0; e < c->n_row_events; e++)
    {
      gint at = c->row_of_event[e];
      gint *slot = at == (gint)row                        ? &found
                   : at >= 0 && at == c->rows[row].leader ? &of_leader
                                                          : NULL;

      if (slot && (*slot < 0 || (gint)e <= near))
        *slot = (gint)e;
    }
  return found >= 0 ? found : of_leader;
}

guint64
td_statics_row_key (const TdStatics *all, const TdStaticsFunction *c, guint row, gint near)
{
  gint event = td_statics_row_event (c, row, near);

  return event >= 0 ? td_iteration_get_tape (all->it)->events[event].key : 0;
}

guint8 *
td_statics_mark_rows (const TdStaticsFunction *c, const guint8 *events)
{
  guint8 *marked = events && c->n_rows > 0 ? g_malloc0 (c->n_rows) : NULL;
  gboolean any = FALSE;

  for (guint e = 0; marked && e < c->n_row_events; e++)
    if (events[e] && c->row_of_event[e] >= 0)
      any = marked[c->row_of_event[e]] = 1;
  for (guint i = 0; any && i < c->n_rows; i++)
    if (td__statics_is_member (c->rows[i].tape) && marked[c->rows[i].tape->group])
      marked[i] = 1;
  if (!any)
    g_clear_pointer (&marked, g_free);
  return marked;
}

/* ---- calls ---- */

/* The last step of a list that leaves an event. */
static gint
last_step (const TdStaticsFunction *c, guint list)
{
  for (guint i = c->n_rows; i-- > 0;)
    if (c->rows[i].tape->list == list && c->rows[i].leader == (gint)i)
      return (gint)i;
  return -1;
}

/* One event of the forward or of a backward: who waits for what after it. */
static void
count_step (const TdStaticsFunction *c, gint row, gboolean begins, TdStaticsUse *use)
{
  guint list = c->rows[row].tape->list;
  gint leader = c->rows[row].leader >= 0 ? c->rows[row].leader : row;
  gboolean ends = leader == last_step (c, list);

  if (list == 0)
    {
      use->n_forward += begins;
      if (!ends || use->n_forward == 0)
        return;
      use->n_forward--;
      *(c->tape->head.n_backwards > 0 ? &use->n_awaiting : &use->n_done) += 1;
      return;
    }
  if (begins && use->n_awaiting > 0)
    {
      use->n_awaiting--;
      use->n_backward++;
    }
  if (ends && use->n_backward > 0)
    {
      use->n_backward--;
      use->n_done++;
    }
}

TdStaticsUse
td_statics_use (const TdStaticsFunction *c, gint event)
{
  TdStaticsUse use = { 0 };
  gint last[2] = { -1, -1 }; /* step of the forward and of the backward */

  for (guint e = 0; (gint)e <= event && e < c->n_row_events; e++)
    {
      gint row = c->row_of_event[e];

      if (row < 0)
        continue;
      gint *at = &last[c->rows[row].tape->list > 0];

      count_step (c, row, *at < 0 || row <= *at, &use);
      *at = row;
    }
  return use;
}

char *
td_statics_use_text (const TdStaticsUse *use)
{
  const struct
  {
    guint n;
    const char *what;
  } parts[] = { { use->n_forward, "in forward" },
                { use->n_awaiting, "awaiting backward" },
                { use->n_backward, "in backward" } };
  GString *text = g_string_new (NULL);

  for (guint i = 0; i < G_N_ELEMENTS (parts); i++)
    if (parts[i].n > 0)
      g_string_append_printf (text, "%s%u %s", text->len > 0 ? ", " : "", parts[i].n,
                              parts[i].what);
  if (text->len == 0)
    g_string_append (text, "free");
  return g_string_free (text, FALSE);
}
