/*
 * Members of a fused group.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-inside.h"

#include <string.h>

#include "gradient/td-tensor-private.h"

/* ---- one member ---- */

static gboolean
is_member (const TdTapeStep *t)
{
  return t->kind != TD_TAPE_STEP_GROUP && t->group != TD_TAPE_NO_GROUP;
}

static gboolean
leaves (const TdTapeSchedule *s, const TdTapeStep *t, guint value)
{
  for (guint k = 0; k < t->n_out; k++)
    if (s->nodes[s->operands[t->first_out + k]].value == value)
      return TRUE;
  return FALSE;
}

/* The step before `step` that left a value; -1: it comes from outside the schedule. */
static gint
maker_of (const TdTapeSchedule *s, guint step, guint value)
{
  for (guint i = step; i-- > 0;)
    if (s->steps[i].fate == TD_TAPE_FATE_RUNS && s->steps[i].kind != TD_TAPE_STEP_GROUP
        && leaves (s, &s->steps[i], value))
      return (gint)i;
  return -1;
}

static const char *const value_names[TD_TAPE_N_VALUE_KINDS] = {
  [TD_TAPE_VALUE_INTERIOR] = "an array",     [TD_TAPE_VALUE_EXTERNAL] = "from outside",
  [TD_TAPE_VALUE_CONSTANT] = "a constant",   [TD_TAPE_VALUE_OUTPUT] = "an output",
  [TD_TAPE_VALUE_GY] = "gradient of output", [TD_TAPE_VALUE_GRADIENT] = "a gradient",
};

/* "#2" within the group, else a name, else what made it. */
static void
append_operand (GString *text, TdTapeReader *reader, const TdTapeSchedule *s, guint step,
                guint operand)
{
  const TdTapeNode *node = &s->nodes[s->operands[operand]];
  const TdTapeValue *value = &s->values[node->value];
  const char *name = td_tape_reader_string (reader, node->name);
  gint maker = maker_of (s, step, node->value);

  if (maker >= 0 && is_member (&s->steps[maker])
      && s->steps[maker].group == s->steps[step].group && is_member (&s->steps[step]))
    g_string_append_printf (text, "#%u", (guint)maker - s->steps[step].group);
  else if (*name)
    g_string_append (text, name);
  else if (maker >= 0 && s->steps[maker].opdef)
    g_string_append (text, td_tape_reader_op_name (reader, s->steps[maker].opdef));
  else if (value->kind == TD_TAPE_VALUE_EXTERNAL && value->index < s->head.n_arguments)
    g_string_append_printf (text, "argument %u", value->index);
  else
    g_string_append (text, value_names[MIN (value->kind, TD_TAPE_N_VALUE_KINDS - 1)]);
}

static char *
dup_call (TdTapeReader *reader, const TdTapeSchedule *s, guint step, const char *op)
{
  const TdTapeStep *t = &s->steps[step];
  GString *text = g_string_new (op);

  g_string_append (text, " (");
  for (guint k = 0; k < t->n_in; k++)
    {
      g_string_append (text, k > 0 ? ", " : "");
      append_operand (text, reader, s, step, t->first_in + k);
    }
  g_string_append_c (text, ')');
  return g_string_free (text, FALSE);
}

void
td_inside_member_fill (TdInsideMember *m, TdTapeReader *reader, const TdTapeSchedule *s,
                       guint step)
{
  const TdTapeStep *t = &s->steps[step];
  const TdTapeOpdef *def = td_tape_reader_opdef (reader, t->opdef);
  GString *result = g_string_new ("(");
  char site[512];

  *m = (TdInsideMember){ .step = step, .var = -1, .dtype = TD_TAPE_N_DTYPES };
  m->op
      = t->opdef ? td_tape_reader_op_name (reader, t->opdef) : td_tape_step_kind_name (t->kind);
  m->formula = def ? td_tape_reader_string (reader, def->formula) : "";
  m->layer = td_tape_reader_path_text (reader, t->path);
  m->call = dup_call (reader, s, step, m->op);
  m->site = g_strdup (td_tape_reader_site_text (reader, t->site, site, sizeof site));
  if (t->n_out + t->n_in > 0)
    {
      /* what leaves nothing of its own adds to its first input */
      const TdTapeNode *node
          = &s->nodes[s->operands[t->n_out > 0 ? t->first_out : t->first_in]];

      m->dtype = node->dtype;
      m->ndim = MIN (node->ndim, TD_TAPE_MAX_NDIM);
      memcpy (m->dims, s->dims + node->first_dim, m->ndim * sizeof *m->dims);
    }
  for (guint d = 0; d < m->ndim; d++)
    g_string_append_printf (result, d ? ", %" G_GINT64_FORMAT : "%" G_GINT64_FORMAT,
                            m->dims[d]);
  g_string_append_printf (result, ") %s", td_tape_dtype_name (m->dtype));
  m->result = g_string_free (result, FALSE);
}

void
td_inside_member_clear (TdInsideMember *m)
{
  g_free (m->call);
  g_free (m->result);
  g_free (m->site);
}

/* ---- a group ---- */

/* Which output of the event a member's result is, where no later member writes it again. */
static gint
find_var (const TdTapeSchedule *s, guint group, guint step, const TdTapeIteration *tape,
          const TdTapeEvent *event)
{
  const TdTapeStep *g = &s->steps[group], *t = &s->steps[step];
  guint value;

  if (t->n_out == 0 || g->n_out != event->n_out)
    return -1;
  value = s->nodes[s->operands[t->first_out]].value;
  for (guint i = step + 1; i <= group + g->group; i++)
    if (leaves (s, &s->steps[i], value))
      return -1;
  for (guint k = 0; k < g->n_out; k++)
    {
      const TdTapeNode *node = &s->nodes[s->operands[g->first_out + k]];
      guint var = tape->outs[event->first_out + k];

      if (node->value == value && var < tape->n_vars && tape->vars[var].ndim == node->ndim
          && memcmp (tape->dims + tape->vars[var].first_dim, s->dims + node->first_dim,
                     node->ndim * sizeof *s->dims)
                 == 0)
        return (gint)var;
    }
  return -1;
}

/* event NULL: it is still to come */
static TdInside *
new_group (TdTapeReader *reader, const TdReplayed *replayed, const TdTapeIteration *tape,
           const TdTapeEvent *event)
{
  char error[256];
  const TdTapeSchedule *s
      = replayed->schedule > 0
            ? td_tape_schedule_load (reader, replayed->schedule, error, sizeof error)
            : NULL;
  gint group = s ? td_replayed_step (replayed, s) : -1;
  GString *name = g_string_new (NULL);
  TdInside *self = NULL;

  if (group >= 0 && s->steps[group].kind == TD_TAPE_STEP_GROUP && s->steps[group].group > 0)
    {
      self = g_new0 (TdInside, 1);
      self->schedule = replayed->schedule;
      self->group = (guint)group;
      self->n = s->steps[group].group;
      self->members = g_new0 (TdInsideMember, self->n);
    }
  for (guint k = 0; self && k < self->n; k++)
    {
      const guint step = (guint)group + 1 + k;

      td_inside_member_fill (&self->members[k], reader, s, step);
      g_string_append_printf (name, "%s%s", k > 0 ? "+" : "", self->members[k].op);
      if (event)
        self->members[k].var = find_var (s, (guint)group, step, tape, event);
    }
  if (self)
    self->name = g_string_free (name, FALSE);
  else
    g_string_free (name, TRUE);
  td_tape_schedule_free (s);
  return self;
}

TdInside *
td_inside_new (TdTapeReader *reader, TdIteration *it, guint event)
{
  const TdTapeIteration *tape = td_iteration_get_tape (it);
  const TdReplayed *replayed
      = event < tape->n_events ? td_iteration_get_replayed (it, event) : NULL;
  /* a group is called as its members are, joined: of others no schedule needs to be loaded */
  TdInside *self = reader && replayed && strchr (td_iteration_get_op_name (it, event), '+')
                       ? new_group (reader, replayed, tape, &tape->events[event])
                       : NULL;

  if (self)
    {
      self->key = tape->events[event].key;
      self->iteration = td_iteration_get_number (it);
      self->event = (gint)event;
    }
  return self;
}

TdInside *
td_inside_new_next (TdTapeReader *reader, TdIteration *it)
{
  const TdTapeIteration *tape = td_iteration_get_tape (it);
  TdInside *self = NULL;

  for (guint i = tape->n_runs; reader && i-- > 0 && !self;)
    {
      const TdTapeRun *run = &tape->runs[i];
      TdReplayed next
          = { .function = run->chain, .schedule = run->schedule, .list = run->list };

      if (run->kind != TD_TAPE_RUN_REPLAYED || !(run->flags & TD_TAPE_RUN_OPEN))
        continue;
      for (guint e = run->begin; e < tape->n_events; e++)
        next.call += (tape->events[e].flags & TD_TAPE_EVENT_REPLAYED) != 0;
      self = new_group (reader, &next, tape, NULL);
    }
  if (self)
    {
      self->iteration = td_iteration_get_number (it);
      self->event = (gint)tape->n_events;
    }
  return self;
}

void
td_inside_free (TdInside *self)
{
  if (!self)
    return;
  for (guint k = 0; k < self->n; k++)
    td_inside_member_clear (&self->members[k]);
  g_free (self->members);
  g_free (self->name);
  g_free (self);
}

gint
td_inside_find_step (const TdInside *self, guint step)
{
  return step > self->group && step - self->group <= self->n ? (gint)(step - self->group - 1)
                                                             : -1;
}

/* ---- what is known of results ---- */

TdTensor *
td_inside_load (const TdInside *self, guint k, TdTapeReader *reader, TdIteration *it)
{
  TdTensor *tensor;

  if (self->members[k].var < 0 || (guint)self->event >= td_iteration_get_n_run (it))
    return NULL;
  tensor = td_tensor_new (reader, it, (guint)self->members[k].var, self->event);
  if (tensor->has_stats || tensor->values)
    return tensor;
  td_tensor_free (tensor);
  return NULL;
}

void
td_inside_take (TdInside *self, guint k, const TdTensor *tensor)
{
  TdInsideMember *m = &self->members[k];
  const TdTensorNumbers n = td__tensor_numbers (tensor);

  m->known = n.honesty != TD_HONEST_MISSING;
  m->honesty = n.honesty;
  m->min = n.min;
  m->max = n.max;
  m->mean = n.mean;
  m->n_nan = n.nan;
  m->n_inf = n.plus_inf + n.minus_inf;
}

char *
td_inside_dup_range (const TdInsideMember *m)
{
  GString *text = g_string_new (NULL);
  char min[TD_FORMAT_SIZE], max[TD_FORMAT_SIZE];
  const char *about = m->honesty == TD_HONEST_SAMPLED ? "≈" : "";

  if (m->known && m->n_nan > 0)
    g_string_append_printf (text, "%s%" G_GUINT64_FORMAT " NaN", about, m->n_nan);
  if (m->known && m->n_inf > 0)
    g_string_append_printf (text, "%s%s%" G_GUINT64_FORMAT " Inf", text->len ? ", " : "", about,
                            m->n_inf);
  if (m->known && text->len == 0)
    g_string_append_printf (text, "%s … %s", td_format_honest (min, m->min, m->honesty),
                            td_format_honest (max, m->max, m->honesty));
  return g_string_free (text, FALSE);
}

char *
td_inside_describe (const TdInside *self, guint k)
{
  const TdInsideMember *m = &self->members[k];
  g_autofree char *range = td_inside_dup_range (m);

  return g_strdup_printf ("operation %u of %u, %s%s%s, result %s%s%s%s%s", k + 1, self->n,
                          m->call, *m->formula ? ": " : "", m->formula, m->result,
                          *m->site ? ", at " : "", m->site, *range ? ", " : "", range);
}
