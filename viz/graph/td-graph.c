/* The graph of an iteration: which group every event is in, what each group amounts to, what
 * the forward pass keeps for backward.
 *
 * SPDX-License-Identifier: MIT */
#include "graph/td-graph-private.h"

#include <string.h>

#include "tape/td-devices.h"
#include "tape/td-iteration-private.h"

#define MAX_DETAIL 28 /* characters that fit the second line of a node */

TdVizGraph *
td_viz_graph_ref (TdVizGraph *self)
{
  td_iteration_ref (self->iteration);
  return self;
}

void
td_viz_graph_unref (TdVizGraph *self)
{
  td_iteration_unref (self->iteration);
}

TdIteration *
td_viz_graph_get_iteration (TdVizGraph *self)
{
  return self->iteration;
}

const TdVizGroup *
td_viz_graph_get_groups (TdVizGraph *self, guint *n)
{
  *n = self->groups->len;
  return (const TdVizGroup *)(gpointer)self->groups->data;
}

gint
td_viz_graph_get_event_group (TdVizGraph *self, guint event)
{
  return self->event_group[event];
}

TdLane
td_viz_graph_get_event_lane (TdVizGraph *self, guint event)
{
  static const TdLane lanes[TD_TAPE_N_PHASES] = {
    [TD_TAPE_PHASE_FORWARD] = TD_LANE_FORWARD,
    [TD_TAPE_PHASE_BACKWARD] = TD_LANE_BACKWARD,
    [TD_TAPE_PHASE_ACCUMULATE] = TD_LANE_BACKWARD,
    [TD_TAPE_PHASE_UPDATE] = TD_LANE_UPDATE,
  };
  guint phase = td_iteration_get_tape (self->iteration)->events[event].phase;

  return phase < TD_TAPE_N_PHASES ? lanes[phase] : TD_LANE_FORWARD;
}

gint
td_viz_graph_find_group (TdVizGraph *self, guint64 key)
{
  gint64 wanted = (gint64)key;

  return GPOINTER_TO_INT (g_hash_table_lookup (self->group_by_key, &wanted)) - 1;
}

const gint32 *
td_viz_graph_get_members (TdVizGraph *self, guint group, TdLane lane, guint *n)
{
  GArray *members = self->members[group * TD_N_LANES + lane];

  *n = members ? members->len : 0;
  return members ? (const gint32 *)(gpointer)members->data : NULL;
}

guint
td_viz_graph_count_run (TdVizGraph *self, guint group, TdLane lane, gint event)
{
  guint n;
  const gint32 *members = td_viz_graph_get_members (self, group, lane, &n);
  guint low = 0;

  while (low < n)
    {
      guint middle = low + (n - low) / 2;

      if (members[middle] <= event)
        low = middle + 1;
      else
        n = middle;
    }
  return low;
}

const gint32 *
td__graph_get_saved (const TdVizGraph *self, guint event, guint *n)
{
  *n = self->saved_first[event + 1] - self->saved_first[event];
  return (const gint32 *)(gpointer)self->saved->data + self->saved_first[event];
}

/* ---- groups of events that are not forward ---- */

/* An accumulation belongs to the step whose gradient it adds: the newest of its addends. */
static gint
group_of_newest (const TdVizGraph *self, const TdTapeEvent *event)
{
  const TdTapeIteration *tape = td_iteration_get_tape (self->iteration);
  gint newest = -1;

  for (guint i = 0; i < event->n_in; i++)
    {
      gint producer = tape->vars[tape->ins[event->first_in + i]].producer;

      if (producer >= 0 && &tape->events[producer] < event)
        newest = MAX (newest, producer);
    }
  return newest >= 0 ? self->event_group[newest] : -1;
}

/* Where the things that an event reads were made; -1 if nowhere in this iteration. */
static gint
group_of_inputs (const TdVizGraph *self, const TdTapeEvent *event)
{
  const TdTapeIteration *tape = td_iteration_get_tape (self->iteration);
  gint group = -1;

  for (guint i = 0; i < event->n_in; i++)
    {
      gint producer = tape->vars[tape->ins[event->first_in + i]].producer;

      if (producer >= 0 && &tape->events[producer] < event)
        group = group < 0 ? self->event_group[producer]
                          : td__graph_common_group (self, group, self->event_group[producer]);
    }
  return group;
}

/* What clipping and norms read are gradients; they stand where the parameter is used, too. */
static void
find_gradients (TdVizGraph *self)
{
  const TdTapeIteration *tape = td_iteration_get_tape (self->iteration);

  self->parameter_of = g_new (gint32, tape->n_vars + 1);
  for (guint v = 0; v < tape->n_vars; v++)
    self->parameter_of[v] = -1;
  for (guint i = 0; i < tape->n_grads; i++)
    if (tape->grads[i].gradient < tape->n_vars && tape->grads[i].parameter < tape->n_vars)
      self->parameter_of[tape->grads[i].gradient] = (gint32)tape->grads[i].parameter;
}

/* An update stands where the forward pass uses its parameters. */
static gint
group_of_parameters (const TdVizGraph *self, const TdTapeEvent *event)
{
  const TdTapeIteration *tape = td_iteration_get_tape (self->iteration);
  gint group = -1;

  for (guint i = 0; i < event->n_in; i++)
    {
      guint var = tape->ins[event->first_in + i];
      guint n;
      const gint32 *readers;

      if (self->parameter_of[var] >= 0)
        var = (guint)self->parameter_of[var];
      else if (!(tape->vars[var].flags & TD_TAPE_VAR_PARAMETER))
        continue;
      readers = td_iteration_get_consumers (self->iteration, var, &n);
      for (guint r = 0; r < n; r++)
        if (tape->events[readers[r]].phase == TD_TAPE_PHASE_FORWARD)
          group = group < 0
                      ? self->event_group[readers[r]]
                      : td__graph_common_group (self, group, self->event_group[readers[r]]);
    }
  return group;
}

static void
place_other_events (TdVizGraph *self)
{
  const TdTapeIteration *tape = td_iteration_get_tape (self->iteration);

  for (guint e = 0; e < tape->n_events; e++)
    {
      const TdTapeEvent *event = &tape->events[e];
      gint group = -1;

      if (event->phase == TD_TAPE_PHASE_FORWARD)
        continue;
      if (td_iteration_get_forward (self->iteration, e) >= 0)
        group = self->event_group[td_iteration_get_forward (self->iteration, e)];
      else if (event->phase == TD_TAPE_PHASE_UPDATE)
        group = group_of_parameters (self, event);
      else if (event->phase == TD_TAPE_PHASE_ACCUMULATE)
        group = group_of_newest (self, event);
      if (group < 0)
        group = group_of_inputs (self, event);
      self->event_group[e] = MAX (group, 0);
    }
}

/* ---- sums ---- */

static void
collect_members (TdVizGraph *self)
{
  const TdTapeIteration *tape = td_iteration_get_tape (self->iteration);

  self->members = g_new0 (GArray *, self->groups->len * TD_N_LANES);
  for (guint e = 0; e < tape->n_events; e++)
    {
      TdLane lane = td_viz_graph_get_event_lane (self, e);
      guint64 ns = td_devices_cost (self->iteration, e);
      gint32 index = (gint32)e;

      for (gint g = self->event_group[e]; g >= 0; g = td__graph_group (self, g)->parent)
        {
          TdVizGroup *group = &g_array_index (self->groups, TdVizGroup, g);
          GArray **members = &self->members[g * TD_N_LANES + lane];

          if (!*members)
            *members = g_array_new (FALSE, FALSE, sizeof (gint32));
          g_array_append_val (*members, index);
          group->n_ops[lane]++;
          group->time_ns += ns;
          group->lane_time_ns[lane] += ns;
        }
    }
}

static gboolean
is_kept_value (const TdTapeVar *var)
{
  return !(var->flags & TD_TAPE_VAR_PARAMETER) && var->category != TD_TAPE_CATEGORY_PARAMETER;
}

/* What a forward operation keeps: what it retained, and what its twins read of its inputs and
 * outputs (a writer may not record retention). */
static void
collect_saved (TdVizGraph *self)
{
  const TdTapeIteration *tape = td_iteration_get_tape (self->iteration);
  guint32 *stamp
      = g_new0 (guint32, tape->n_vars + 1); /* variable -> event + 1 that listed it */
  guint32 *touched
      = g_new0 (guint32, tape->n_vars + 1); /* -> event + 1 that reads or writes it */

  self->saved = g_array_new (FALSE, FALSE, sizeof (gint32));
  self->saved_first = g_new0 (guint32, tape->n_events + 2);
  for (guint e = 0; e < tape->n_events; e++)
    {
      const TdTapeEvent *event = &tape->events[e];
      guint n_twins;
      const gint32 *twins = td_iteration_get_twins (self->iteration, e, &n_twins);

      self->saved_first[e] = self->saved->len;
      if (event->phase != TD_TAPE_PHASE_FORWARD)
        continue;
      for (guint i = 0; i < (guint)event->n_in + event->n_out; i++)
        {
          gboolean is_input = i < event->n_in;
          gint32 v = (gint32)(is_input ? tape->ins[event->first_in + i]
                                       : tape->outs[event->first_out + i - event->n_in]);
          gboolean retained = is_input ? (event->retained_in >> MIN (i, 31)) & 1
                                       : (tape->vars[v].flags & TD_TAPE_VAR_RETAINED) != 0;

          touched[v] = e + 1;
          if (!retained || stamp[v] == e + 1 || !is_kept_value (&tape->vars[v]))
            continue;
          stamp[v] = e + 1;
          g_array_append_val (self->saved, v);
        }
      for (guint t = 0; t < n_twins; t++)
        for (guint i = 0; i < tape->events[twins[t]].n_in; i++)
          {
            gint32 v = (gint32)tape->ins[tape->events[twins[t]].first_in + i];

            if (touched[v] != e + 1 || stamp[v] == e + 1 || !is_kept_value (&tape->vars[v]))
              continue;
            stamp[v] = e + 1;
            g_array_append_val (self->saved, v);
          }
    }
  self->saved_first[tape->n_events] = self->saved->len;
  g_free (stamp);
  g_free (touched);
}

guint64
td_viz_graph_get_saved_bytes (const TdVizGraph *self, guint event)
{
  guint n;
  const gint32 *saved = td__graph_get_saved (self, event, &n);
  guint64 bytes = 0;

  for (guint i = 0; i < n; i++)
    bytes += td_iteration_get_tape (self->iteration)->vars[saved[i]].bytes;
  return bytes;
}

static void
sum_saved (TdVizGraph *self)
{
  const TdTapeIteration *tape = td_iteration_get_tape (self->iteration);
  guint32 *stamp = g_new0 (guint32, tape->n_vars + 1);

  for (guint g = 0; g < self->groups->len; g++)
    {
      guint n, n_saved;
      const gint32 *members = td_viz_graph_get_members (self, g, TD_LANE_FORWARD, &n);

      for (guint m = 0; m < n; m++)
        {
          const gint32 *saved = td__graph_get_saved (self, (guint)members[m], &n_saved);

          for (guint i = 0; i < n_saved; i++)
            if (stamp[saved[i]] != g + 1)
              {
                stamp[saved[i]] = g + 1;
                g_array_index (self->groups, TdVizGroup, g).saved_bytes
                    += tape->vars[saved[i]].bytes;
              }
        }
    }
  g_free (stamp);
}

/* "convolution_2d, relu" if that fits, else "6 ops". */
static const char *
describe_group (TdVizGraph *self, guint group)
{
  const char *seen[4];
  guint n_seen = 0, length = 0, n;
  const gint32 *members = td_viz_graph_get_members (self, group, TD_LANE_FORWARD, &n);
  char *text;
  const char *detail;

  for (guint m = 0; m < n && n_seen <= 3; m++)
    {
      const char *op = td_iteration_get_op_name (self->iteration, (guint)members[m]);
      gboolean known = FALSE;

      for (guint i = 0; i < n_seen; i++)
        known = known || strcmp (seen[i], op) == 0;
      if (known)
        continue;
      if (n_seen < 3)
        {
          seen[n_seen] = op;
          length += (guint)strlen (op) + (n_seen ? 2 : 0);
        }
      n_seen++;
    }
  seen[MIN (n_seen, 3)] = NULL;
  if (n_seen == 0 || n_seen > 3 || length > MAX_DETAIL)
    text = g_strdup_printf (n == 1 ? "%u op" : "%u ops", n);
  else
    text = g_strjoinv (", ", (char **)seen);
  detail = g_string_chunk_insert_const (self->strings, text);
  g_free (text);
  return detail;
}

/* ---- life ---- */

static gpointer
graph_new (TdIteration *iteration)
{
  TdVizGraph *self = g_new0 (TdVizGraph, 1);

  self->iteration = iteration;
  self->groups = g_array_new (FALSE, TRUE, sizeof (TdVizGroup));
  self->strings = g_string_chunk_new (1024);
  self->event_group = g_new0 (gint32, td_iteration_get_n_events (iteration) + 1);
  find_gradients (self);
  td__graph_build_groups (self);
  place_other_events (self);
  td__graph_fold_updates (self);
  collect_members (self);
  collect_saved (self);
  sum_saved (self);
  self->group_by_key = g_hash_table_new (g_int64_hash, g_int64_equal);
  for (guint g = self->groups->len; g-- > 0;)
    {
      TdVizGroup *group = &g_array_index (self->groups, TdVizGroup, g);

      group->detail = describe_group (self, g);
      g_hash_table_insert (self->group_by_key, &group->key, GINT_TO_POINTER ((gint)g + 1));
    }
  return self;
}

static void
graph_free (gpointer data)
{
  TdVizGraph *self = data;

  for (guint i = 0; i < self->groups->len * TD_N_LANES; i++)
    if (self->members[i])
      g_array_free (self->members[i], TRUE);
  g_free (self->members);
  g_hash_table_unref (self->group_by_key);
  g_array_free (self->groups, TRUE);
  g_array_free (self->saved, TRUE);
  g_free (self->saved_first);
  g_free (self->parameter_of);
  g_free (self->event_group);
  g_string_chunk_free (self->strings);
  g_free (self);
}

TdVizGraph *
td_iteration_get_graph (TdIteration *iteration)
{
  return td__iteration_keep (iteration, graph_new, graph_free);
}
