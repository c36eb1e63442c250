/* What the schedule says of a fused operation: which of its inputs an output is computed from,
 * by which members. Numbers between members are on no tape.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "tape/td-origin-private.h"

typedef struct
{
  const TdTapeSchedule *schedule;
  guint step; /* the group's, which its members follow */
} Group;

/* What comes of one input, by value of the schedule. */
typedef struct
{
  gboolean is_read, passes, by_element;
} Reached;

gboolean
td__origin_is_group (const TdIteration *it, guint event)
{
  return td_iteration_get_replayed (it, event) != NULL
         && strchr (td_iteration_get_op_name (it, event), '+') != NULL;
}

/* The schedule of a replayed event, and its step there. */
static gboolean
load_step (TdSession *session, const TdIteration *it, guint event, Group *g)
{
  const TdReplayed *replayed = td_iteration_get_replayed (it, event);
  char error[256];
  gint step;

  g->schedule = replayed && replayed->schedule > 0 ? td_tape_schedule_load (
                    td_session_get_reader (session), replayed->schedule, error, sizeof error)
                                                   : NULL;
  step = g->schedule ? td_replayed_step (replayed, g->schedule) : -1;
  g->step = (guint)step;
  if (step >= 0)
    return TRUE;
  td_tape_schedule_free (g->schedule);
  return FALSE;
}

static gboolean
load (TdSession *session, const TdIteration *it, guint event, Group *g)
{
  if (!td__origin_is_group (it, event) || !load_step (session, it, event, g))
    return FALSE;
  if (g->schedule->steps[g->step].kind == TD_TAPE_STEP_GROUP)
    return TRUE;
  td_tape_schedule_free (g->schedule);
  return FALSE;
}

static guint
value_of (const TdTapeSchedule *s, guint operand)
{
  return s->nodes[s->operands[operand]].value;
}

gboolean
td__origin_is_filled (TdSession *session, const TdIteration *it, guint event, guint k)
{
  gboolean is_filled = FALSE, is_made = FALSE;
  Group g;

  if (!load_step (session, it, event, &g))
    return FALSE;
  const TdTapeSchedule *s = g.schedule;
  const TdTapeStep *t = &s->steps[g.step];
  guint value = k < t->n_in ? value_of (s, t->first_in + k) : G_MAXUINT;

  for (guint i = 0; i < s->n_steps && k < t->n_in; i++)
    for (guint o = 0; o < s->steps[i].n_out; o++)
      if (value_of (s, s->steps[i].first_out + o) == value)
        {
          is_filled = is_filled || s->steps[i].kind == TD_TAPE_STEP_FILL;
          is_made = is_made || s->steps[i].kind != TD_TAPE_STEP_FILL;
        }
  td_tape_schedule_free (s);
  return is_filled && !is_made;
}

static void
pass_member (const Group *g, TdSession *session, guint step, gboolean is_inf, Reached *at)
{
  const TdTapeSchedule *s = g->schedule;
  const TdTapeStep *t = &s->steps[step];
  const char *op = td_tape_reader_op_name (td_session_get_reader (session), t->opdef);
  Reached out = { FALSE, FALSE, TRUE };

  for (guint k = 0; k < t->n_in; k++)
    {
      const Reached *in = &at[value_of (s, t->first_in + k)];

      out.is_read = out.is_read || in->is_read;
      out.passes = out.passes || (in->passes && td__origin_passes_on (op, is_inf));
      out.by_element = out.by_element && (!in->is_read || in->by_element);
    }
  out.by_element = out.by_element && td__origin_is_elementwise (op);
  for (guint k = 0; k < t->n_out; k++)
    {
      Reached *to = &at[value_of (s, t->first_out + k)], before = *to;

      *to = out;
      if (t->flags & TD_TAPE_STEP_ACCUMULATES && before.is_read)
        *to = (Reached){ TRUE, before.passes || out.passes,
                         before.by_element && (!out.is_read || out.by_element) };
    }
}

/* Which output of the event is this variable? */
static gint
find_output (const TdTapeIteration *t, const TdTapeEvent *e, guint var)
{
  for (guint k = 0; k < e->n_out; k++)
    if (t->outs[e->first_out + k] == var)
      return (gint)k;
  return e->n_out == 1 ? 0 : -1; /* a sum's, by the name of what was added to */
}

TdOriginWay
td__origin_group_way (TdSession *session, const TdIteration *it, guint event, guint out_var,
                      guint k, TdBad bad)
{
  const TdTapeIteration *t = td_iteration_get_tape (it);
  const TdTapeEvent *e = &t->events[event];
  TdOriginWay way = { TRUE, FALSE, FALSE };
  gint out = find_output (t, e, out_var);
  Group g;

  if (!load (session, it, event, &g))
    return way;
  const TdTapeSchedule *s = g.schedule;
  const TdTapeStep *group = &s->steps[g.step];

  if (out >= 0 && group->n_in == e->n_in && group->n_out == e->n_out)
    {
      g_autofree Reached *at = g_new0 (Reached, s->n_values + 1);

      at[value_of (s, group->first_in + k)] = (Reached){ TRUE, TRUE, TRUE };
      for (guint m = 1; m <= group->group; m++)
        pass_member (&g, session, g.step + m, bad == TD_BAD_INF, at);
      const Reached *end = &at[value_of (s, group->first_out + (guint)out)];

      way = (TdOriginWay){ end->is_read, end->passes, end->is_read && end->by_element };
    }
  td_tape_schedule_free (s);
  return way;
}

/* " at model.c:31", "" unknown. An iteration has the names of its own places only. */
static void
append_place (GString *text, TdTapeReader *reader, guint32 id)
{
  const TdTapeSite *site = td_tape_reader_site (reader, id);
  const char *file = site ? td_tape_reader_string (reader, site->file) : "";
  const char *slash = strrchr (file, '/');

  if (*file)
    g_string_append_printf (text, " at %s:%u", slash ? slash + 1 : file, site->line);
}

char *
td__origin_dup_inside (TdSession *session, const TdIteration *it, guint event)
{
  const TdReplayed *replayed = td_iteration_get_replayed (it, event);
  TdTapeReader *reader = td_session_get_reader (session);
  const TdTapeChain *chain
      = replayed ? td_tape_reader_chain (reader, replayed->function) : NULL;
  GString *text = g_string_new ("inside static function ");
  Group g;

  g_string_append (text, chain ? td_tape_reader_string (reader, chain->name) : "?");
  if (chain)
    append_place (text, reader, chain->site);
  if (load (session, it, event, &g))
    {
      const TdTapeStep *group = &g.schedule->steps[g.step];

      for (guint m = 1; m <= group->group; m++)
        {
          const TdTapeStep *t = &g.schedule->steps[g.step + m];

          g_string_append_printf (text, "%s%s", m == 1 ? ", in one of " : ", ",
                                  td_tape_reader_op_name (reader, t->opdef));
          append_place (text, reader, t->site);
        }
      td_tape_schedule_free (g.schedule);
    }
  g_string_append (text, ""
                         ", whose operations ran as one: what each made is not recorded, run "
                         "with --static off to see it");
  return g_string_free (text, FALSE);
}
