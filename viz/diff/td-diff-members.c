/*
 * Members of fused groups: what they compute with is in no event, but in the schedules on both
 * tapes. The first that differs is what the program changed.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "schedule/td-inside.h"
#include "td-diff-private.h"
#include "td-tape.h"

/* A group of one side: a step of a schedule, which its members follow. */
typedef struct
{
  TdTapeReader *reader;
  const TdTapeSchedule *s;
  guint step;
  const TdTapeEvent *event;
} Group;

void
td__diff_member_free (gpointer member)
{
  TdDiffMember *m = member;

  g_free (m->title);
  g_free (m->what);
  g_free (m->site[0]);
  g_free (m->site[1]);
  g_free (m);
}

void
td__diff_forget_schedules (TdComparison *c)
{
  for (guint side = 0; side < 2; side++)
    td_tape_schedule_free (c->schedule[side]);
}

/* The last one is kept: groups of a schedule come one after another. */
static const TdTapeSchedule *
load_schedule (TdComparison *c, guint side, guint id)
{
  char error[256];

  if (c->schedule_id[side] == id)
    return c->schedule[side];
  td_tape_schedule_free (c->schedule[side]);
  c->schedule[side] = td_tape_schedule_load (c->reader[side], id, error, sizeof error);
  c->schedule_id[side] = id;
  return c->schedule[side];
}

static gboolean
find_group (TdComparison *c, guint side, guint event, Group *g)
{
  const TdReplayed *replayed = td_iteration_get_replayed (c->d->side[side], event);
  gint step;

  g->reader = c->reader[side];
  g->event = &c->t[side]->events[event];
  g->s = g->reader && replayed && replayed->schedule > 0
             ? load_schedule (c, side, replayed->schedule)
             : NULL;
  step = g->s ? td_replayed_step (replayed, g->s) : -1;
  g->step = (guint)step;
  return step >= 0 && g->s->steps[step].kind == TD_TAPE_STEP_GROUP;
}

static guint
value_of (const TdTapeSchedule *s, guint operand)
{
  return s->nodes[s->operands[operand]].value;
}

/* Where an operand of member k comes from: the member before it that makes it; ~i: it is input
 * i of the group; G_MAXINT: neither. */
static gint
origin_of (const Group *g, guint k, guint operand)
{
  const TdTapeStep *group = &g->s->steps[g->step];
  guint value = value_of (g->s, operand);

  for (guint i = k; i-- > 0;)
    {
      const TdTapeStep *t = group + 1 + i;

      for (guint o = 0; o < t->n_out; o++)
        if (value_of (g->s, t->first_out + o) == value)
          return (gint)i;
    }
  for (guint i = 0; i < group->n_in; i++)
    if (value_of (g->s, group->first_in + i) == value)
      return ~(gint)i;
  return G_MAXINT;
}

typedef enum
{
  READS_SAME,
  READS_FROM_OUTSIDE, /* another input of the group */
  READS_OF_ANOTHER    /* what another member made, or one where the other side has none */
} Reads;

static void
add_reads (TdDiffMember *m, guint32 a, guint32 b)
{
  for (guint i = 0; i < m->n_reads; i += 2)
    if (m->reads[i] == a && m->reads[i + 1] == b)
      return;
  if (m->n_reads + 2 > G_N_ELEMENTS (m->reads))
    return;
  m->reads[m->n_reads++] = a;
  m->reads[m->n_reads++] = b;
}

/* Variables that are read from outside are added to `m`. */
static Reads
compare_reads (const TdComparison *c, const Group g[2], guint k, TdDiffMember *m)
{
  const TdTapeStep *x = &g[0].s->steps[g[0].step + 1 + k],
                   *y = &g[1].s->steps[g[1].step + 1 + k];
  Reads reads = x->n_in != y->n_in ? READS_OF_ANOTHER : READS_SAME;

  for (guint i = 0; i < MIN (x->n_in, y->n_in); i++)
    {
      gint a = origin_of (&g[0], k, x->first_in + i), b = origin_of (&g[1], k, y->first_in + i);

      if (a < 0 && b < 0 && (guint)~a < g[0].event->n_in && (guint)~b < g[1].event->n_in)
        {
          const guint32 var_a = c->t[0]->ins[g[0].event->first_in + (guint)~a],
                        var_b = c->t[1]->ins[g[1].event->first_in + (guint)~b];

          if (!td__diff_reads_other (c, var_a, var_b))
            continue;
          add_reads (m, var_a, var_b);
          reads = MAX (reads, READS_FROM_OUTSIDE);
        }
      else if (a != b)
        reads = READS_OF_ANOTHER;
    }
  return reads;
}

static const char *
attrs_of (const Group *g, guint k)
{
  return td_tape_reader_string (g->reader, g->s->steps[g->step + 1 + k].attrs);
}

/* A member on both sides, and what is found of all members of a group. */
typedef struct
{
  const char *op, *attrs[2], *call[2], *site[2]; /* call: NULL where only attributes count */
  Reads reads;
} Both;

typedef struct
{
  guint aspects;
  GString *what; /* "value=0.5 → 0.51"; of those after the first with their name before */
  TdDiffMember first; /* title NULL: none differs yet */
} Found;

static void
compare_member (const Both *m, Found *f)
{
  g_autoptr (GString) own = g_string_new (NULL);
  /* places in the random stream are those of the call that was traced */
  guint aspects = td__diff_compare_attributes (m->op, m->attrs[0], m->attrs[1], TRUE)
                  & TD_DIFF_ATTRIBUTES;

  if (aspects)
    td__diff_append_attributes (own, m->attrs[0], m->attrs[1]);
  if (m->reads != READS_SAME)
    aspects |= TD_DIFF_INPUTS;
  if (m->reads == READS_OF_ANOTHER)
    g_string_append (own, own->len > 0 ? "; " : "");
  if (m->reads == READS_OF_ANOTHER && g_str_equal (m->call[0], m->call[1]))
    g_string_append (own, "reads something else");
  else if (m->reads == READS_OF_ANOTHER)
    g_string_append_printf (own, "%s → %s", m->call[0], m->call[1]);
  if (aspects == 0)
    return;
  f->aspects |= aspects;
  if (!f->what)
    f->what = g_string_new (NULL);
  if (own->len > 0 && f->first.title)
    g_string_append_printf (f->what, "%s%s ", f->what->len > 0 ? "; " : "", m->op);
  g_string_append (f->what, own->str);
  if (f->first.title)
    return;
  f->first.title = g_strdup (m->op);
  for (guint side = 0; side < 2; side++)
    f->first.site[side] = g_strdup (td__base_name (m->site[side]));
}

/* The aspects; `event` of A is where the pair is looked up. */
static guint
finish (TdComparison *c, Found *f, guint event, const char *group)
{
  g_autofree char *op = NULL;

  if (!f->first.title)
    return 0;
  op = f->first.title;
  f->first.title = g_strdup_printf ("%s in %s", op, group);
  f->first.what = g_string_free (f->what, FALSE);
  g_hash_table_insert (c->d->members, GUINT_TO_POINTER (event + 1),
                       g_memdup2 (&f->first, sizeof f->first));
  return f->aspects;
}

guint
td__diff_compare_members (TdComparison *c, guint a, guint b)
{
  const char *name = td_iteration_get_op_name (c->d->side[0], a);
  const gboolean forward = c->t[0]->events[a].phase == TD_TAPE_PHASE_FORWARD;
  Group group[2];
  Found found = { 0 };
  guint n;

  /* a group is called as its members are, joined */
  if (!strchr (name, '+') || !find_group (c, 0, a, &group[0])
      || !find_group (c, 1, b, &group[1]))
    return 0;
  n = group[0].s->steps[group[0].step].group;
  if (n != group[1].s->steps[group[1].step].group)
    return 0;
  for (guint k = 0; k < n; k++)
    {
      TdInsideMember m[2];

      for (guint s = 0; s < 2; s++)
        td_inside_member_fill (&m[s], group[s].reader, group[s].s, group[s].step + 1 + k);
      compare_member (
          &(Both){ .op = m[0].op,
                   .attrs = { attrs_of (&group[0], k), attrs_of (&group[1], k) },
                   .call = { m[0].call, m[1].call },
                   .site = { m[0].site, m[1].site },
                   .reads = forward ? compare_reads (c, group, k, &found.first) : READS_SAME },
          &found);
      td_inside_member_clear (&m[0]);
      td_inside_member_clear (&m[1]);
    }
  return finish (c, &found, a, name);
}

/* The first of the events that is this operation and was none of those before; -1: none. */
static gint
take_event (const TdIteration *it, const guint32 *events, guint n, guint64 *taken,
            const char *op)
{
  for (guint i = 0; i < n && i < 64; i++)
    if (!(*taken >> i & 1) && g_str_equal (td_iteration_get_op_name (it, events[i]), op))
      {
        *taken |= (guint64)1 << i;
        return (gint)events[i];
      }
  return -1;
}

guint
td__diff_compare_fused (TdComparison *c, const TdFusedGroup *fused)
{
  const guint side = fused->side, other = 1 - side;
  const TdIteration *it = c->d->side[side];
  const guint32 *events = &g_array_index (c->fused, guint32, fused->first);
  guint64 taken = 0;
  Found found = { 0 };
  Group group;

  if (!find_group (c, other, (guint)fused->event, &group))
    return 0;
  for (guint k = 0; k < group.s->steps[group.step].group; k++)
    {
      TdInsideMember m;
      gint event;

      td_inside_member_fill (&m, group.reader, group.s, group.step + 1 + k);
      event = take_event (it, events, fused->n, &taken, m.op);
      if (event >= 0)
        {
          g_autofree char *site = td_iteration_dup_site (it, (guint)event);
          Both both = { .op = m.op };

          both.attrs[side] = td_iteration_get_string (it, c->t[side]->events[event].attrs);
          both.attrs[other] = attrs_of (&group, k);
          both.site[side] = site;
          both.site[other] = m.site;
          compare_member (&both, &found);
        }
      td_inside_member_clear (&m);
    }
  return finish (c, &found, side == TD_DIFF_A ? events[fused->n - 1] : (guint)fused->event,
                 td_iteration_get_op_name (c->d->side[other], (guint)fused->event));
}

const TdDiffMember *
td__diff_member_of (const TdDiff *d, const TdDiffPair *pair)
{
  if (pair->event[0] < 0 || pair->event[1] < 0)
    return NULL;
  return g_hash_table_lookup (d->members, GUINT_TO_POINTER ((guint)pair->event[0] + 1));
}
