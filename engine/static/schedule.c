/* Schedules: how their lists grow, end, and are checked.
 *
 * SPDX-License-Identifier: MIT */
#include "schedule.h"
#include "host-memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *
grown (void *items, uint32_t n, uint32_t *capacity, size_t bytes)
{
  if (n <= *capacity)
    return items;
  *capacity = 2 * n < 32 ? 32 : 2 * n;
  items = td__xrealloc (items, *capacity * bytes);
  return items;
}

TdSchedule *
td__schedule_new (uint32_t n_arguments)
{
  TdSchedule *s = td__xcalloc (1, sizeof *s);

  s->n_arguments = n_arguments;
  return s;
}

uint32_t
td__schedule_value (TdSchedule *s, TdValueKind kind, uint32_t index, size_t bytes)
{
  s->values = grown (s->values, s->n_values + 1, &s->values_capacity, sizeof *s->values);
  s->values[s->n_values] = (TdValue){ .kind = (uint8_t)kind, .index = index, .bytes = bytes };
  return s->n_values++;
}

uint32_t
td__schedule_node (TdSchedule *s, uint32_t value, const TdNode *like)
{
  s->nodes = grown (s->nodes, s->n_nodes + 1, &s->nodes_capacity, sizeof *s->nodes);
  s->nodes[s->n_nodes] = (TdNodeInfo){ .value = value,
                                       .dtype = like->dtype,
                                       .layout = like->layout,
                                       .requires_grad = like->requires_grad,
                                       .category = like->category,
                                       .name = like->name,
                                       .shape = like->shape };
  return s->n_nodes++;
}

uint32_t
td__schedule_operands (TdSchedule *s, uint32_t n)
{
  uint32_t first = s->n_operands;

  s->operands
      = grown (s->operands, s->n_operands + n, &s->operands_capacity, sizeof *s->operands);
  s->n_operands += n;
  return first;
}

/* Against the order of the code, from the outputs that have a gradient. */
static void
mark_reached (const TdSchedule *s, uint64_t gy_given, bool *reached)
{
  for (uint32_t k = 0; k < s->n_outputs; k++)
    if (gy_given >> k & 1)
      reached[s->outputs[k].node] = true;
  for (uint32_t i = s->forward.n; i-- > 0;)
    {
      const TdStep *step = &s->forward.steps[i];
      bool any = false;

      for (uint32_t k = 0; k < step->n_out && step->graph; k++)
        any |= reached[td__step_out (s, step, k)];
      for (uint32_t k = 0; k < step->n_in && any; k++)
        if (k >= 32 || !(step->cls->no_grad_in >> k & 1))
          reached[td__step_in (s, step, k)] = true;
    }
}

void
td__schedule_reach (const TdSchedule *s, TdBackwardTrace *b)
{
  const uint32_t words = s->n_externals / 64 + 1;
  bool *reached = td__xcalloc (s->n_nodes + 1, sizeof *reached);
  uint64_t *reach;

  b->wanted = td__xcalloc (2 * (size_t)words, sizeof *b->wanted);
  b->reach = reach = b->wanted + words;
  mark_reached (s, b->gy_given, reached);
  for (uint32_t k = 0; k < s->n_externals; k++)
    if (reached[s->externals[k].node])
      {
        reach[k / 64] |= (uint64_t)1 << k % 64;
        reached[s->externals[k].node] = false; /* of one variable that comes twice: the first */
      }
  free (reached);
}

bool
td__schedule_retains (const TdSchedule *s, uint32_t value)
{
  for (uint32_t i = 0; i < s->forward.n; i++)
    {
      const TdStep *step = &s->forward.steps[i];

      if (!step->graph)
        continue;
      for (uint32_t k = 0; k < step->n_in && k < 32; k++)
        if ((step->cls->retain_in >> k & 1)
            && s->nodes[td__step_in (s, step, k)].value == value)
          return true;
      for (uint32_t k = 0; k < step->n_out && k < 32; k++)
        if ((step->cls->retain_out >> k & 1)
            && s->nodes[td__step_out (s, step, k)].value == value)
          return true;
    }
  return false;
}

TdStep *
td__steps_add (TdSteps *list)
{
  TdStep *step;

  list->steps = grown (list->steps, list->n + 1, &list->capacity, sizeof *list->steps);
  step = &list->steps[list->n++];
  memset (step, 0, sizeof *step);
  step->external = TD_ABSENT;
  return step;
}

void
td__steps_free (TdSteps *list)
{
  for (uint32_t i = 0; i < list->n; i++)
    {
      TdStep *step = &list->steps[i];

      free (step->attrs);
      free (step->bytes);
      if (step->effect.free != NULL)
        step->effect.free (step->effect.data);
    }
  free (list->steps);
  *list = (TdSteps){ NULL, 0, 0, 0 };
}

void
td__schedule_free (TdSchedule *s)
{
  if (s == NULL)
    return;
  for (uint32_t i = 0; i < s->n_externals; i++)
    if (s->externals[i].var != NULL)
      td__var_unref (s->externals[i].var, TD_HOLD_ENGINE);
  for (uint32_t i = 0; i < s->n_constants; i++)
    td__buffer_unref (s->constants[i].buffer);
  td__steps_free (&s->forward);
  for (uint32_t i = 0; i < s->n_backwards; i++)
    {
      td__steps_free (&s->backwards[i].list);
      free (s->backwards[i].wanted);
    }
  free (s->backwards);
  free (s->nodes);
  free (s->values);
  free (s->operands);
  free (s->externals);
  free (s->constants);
  free (s->outputs);
  free (s);
}

/* --- checks --- */

static char wrong[200];

#define WRONG(...) (snprintf (wrong, sizeof wrong, __VA_ARGS__), wrong)

static const char *
verify_tables (const TdSchedule *s)
{
  const uint32_t limits[] = { [TD_VALUE_INTERIOR] = 1,
                              [TD_VALUE_EXTERNAL] = s->n_externals,
                              [TD_VALUE_CONSTANT] = s->n_constants,
                              [TD_VALUE_OUTPUT] = UINT32_MAX,
                              [TD_VALUE_GY] = s->n_outputs,
                              [TD_VALUE_GRADIENT] = UINT32_MAX };

  for (uint32_t i = 0; i < s->n_values; i++)
    if (s->values[i].kind > TD_VALUE_GRADIENT
        || s->values[i].index >= limits[s->values[i].kind])
      return WRONG ("value %u is of no kind there is", i);
  for (uint32_t i = 0; i < s->n_nodes; i++)
    {
      size_t bytes;

      if (s->nodes[i].value >= s->n_values)
        return WRONG ("node %u shows value %u of %u", i, s->nodes[i].value, s->n_values);
      if (!td__shape_bytes (&s->nodes[i].shape, (TdDtype)s->nodes[i].dtype, &bytes)
          || bytes > s->values[s->nodes[i].value].bytes)
        return WRONG ("node %u is larger than its value %u", i, s->nodes[i].value);
    }
  for (uint32_t i = 0; i < s->n_externals; i++)
    if (s->externals[i].node >= s->n_nodes)
      return WRONG ("external %u is node %u of %u", i, s->externals[i].node, s->n_nodes);
  for (uint32_t i = 0; i < s->n_outputs; i++)
    if (s->outputs[i].node >= s->n_nodes)
      return WRONG ("output %u is node %u of %u", i, s->outputs[i].node, s->n_nodes);
  return NULL;
}

static const char *
verify_list (const TdSchedule *s, const TdSteps *list, bool *written, const char *name)
{
  for (uint32_t i = 0; i < list->n; i++)
    {
      const TdStep *step = &list->steps[i];

      if (step->kind > TD_STEP_GROUP || (uint64_t)step->in + step->n_in > s->n_operands
          || (uint64_t)step->out + step->n_out > s->n_operands)
        return WRONG ("%s step %u is malformed", name, i);
      for (uint32_t k = 0; k < step->n_in; k++)
        {
          uint32_t node = td__step_in (s, step, k);

          if (node >= s->n_nodes)
            return WRONG ("%s step %u reads node %u of %u", name, i, node, s->n_nodes);
          if (!written[s->nodes[node].value])
            return WRONG ("%s step %u reads value %u before it is written", name, i,
                          s->nodes[node].value);
        }
      for (uint32_t k = 0; k < step->n_out; k++)
        {
          uint32_t node = td__step_out (s, step, k);

          if (node >= s->n_nodes)
            return WRONG ("%s step %u writes node %u of %u", name, i, node, s->n_nodes);
          if (step->kind != TD_STEP_OP || !(step->cls->flags & TD_OP_VIEW))
            written[s->nodes[node].value] = true;
        }
    }
  return NULL;
}

const char *
td__schedule_verify (const TdSchedule *s)
{
  const char *text = verify_tables (s);
  bool *written, *before;

  if (text != NULL)
    return text;
  written = td__xcalloc (s->n_values + 1, 2);
  before = written + s->n_values + 1;
  for (uint32_t i = 0; i < s->n_values; i++)
    written[i] = s->values[i].kind == TD_VALUE_EXTERNAL
                 || s->values[i].kind == TD_VALUE_CONSTANT || s->values[i].kind == TD_VALUE_GY;
  text = verify_list (s, &s->forward, written, "forward");
  memcpy (before, written, s->n_values);
  for (uint32_t i = 0; i < s->n_backwards && text == NULL; i++)
    {
      memcpy (written, before, s->n_values);
      text = verify_list (s, &s->backwards[i].list, written, "backward");
    }
  for (uint32_t i = 0; i < s->n_outputs && text == NULL; i++)
    if (!before[s->nodes[s->outputs[i].node].value])
      text = WRONG ("output %u is never written", i);
  free (written);
  return text;
}
