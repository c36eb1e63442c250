/* What an iteration needs to be run again: is all of it there, and bringing it in.
 *
 * SPDX-License-Identifier: MIT */
#include "recompute-private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t
td__recompute_bytes (const TdTapeIteration *it, uint32_t var)
{
  const TdTapeVar *v = &it->vars[var];
  uint64_t n = v->dtype < TD_TAPE_N_DTYPES ? td__dtype_sizes[v->dtype] : 0;

  for (unsigned d = 0; d < v->ndim; d++)
    {
      const int64_t size = it->dims[v->first_dim + d];

      if (size < 0 || (size > 0 && n > ((uint64_t)1 << 40) / (uint64_t)size))
        return UINT64_MAX;
      n *= (uint64_t)size;
    }
  return n;
}

static void
var_text (const TdRecompute *c, uint32_t var, char *text, size_t size)
{
  const TdTapeVar *v = &c->it->vars[var];
  const char *name = td_tape_reader_string (c->r, v->name),
             *path = td_tape_reader_path_text (c->r, v->path);

  snprintf (text, size, "v%u%s%.80s%s%.80s%s", var, name[0] != '\0' ? " (" : "", name,
            name[0] != '\0' && path[0] != '\0' ? " of " : "", name[0] != '\0' ? path : "",
            name[0] != '\0' ? ")" : "");
}

/* --- the operations --- */

static const TdOpClass *
class_of (const char *name)
{
  const TdOpClass *cls = strcmp (name, td__add_into_class.name) == 0 ? &td__add_into_class
                                                                     : td_op_class_find (name);

  for (int i = 0; cls == NULL && td__engine.updates != NULL && td__engine.updates[i] != NULL;
       i++)
    if (strcmp (td__engine.updates[i]->name, name) == 0)
      cls = td__engine.updates[i];
  return cls;
}

/* A pointer among the attributes is one of the process that is gone. */
static bool
has_pointer (const TdOpClass *cls, const void *attrs)
{
  TdUpdate u;

  if (cls->flags & TD_OP_CAPTURES)
    return true;
  if (cls->attrs_size != sizeof u || strcmp (cls->group, "optimizer") != 0)
    return false;
  memcpy (&u, attrs, sizeof u);
  return u.decided != NULL;
}

static bool
counts_fit (const TdOpClass *cls, const TdTapeEvent *e)
{
  return e->n_in >= cls->n_in_min && (cls->n_in_max < 0 || e->n_in <= cls->n_in_max)
         && (cls->n_out < 0 || e->n_out == cls->n_out);
}

/* What of the attributes says of itself is possible: the rest infer looks at. */
static bool
attrs_possible (const TdOpClass *cls, const char *attrs)
{
  for (int i = 0; i < cls->n_attrs; i++)
    {
      const TdAttr *a = &cls->attrs[i];
      unsigned char flag;
      int n = 0, n_choices = 0;

      switch (a->kind)
        {
        case TD_ATTR_BOOL:
          memcpy (&flag, attrs + a->offset, 1);
          if (flag > 1)
            return false;
          break;
        case TD_ATTR_INTS:
          if (a->n_offset == 0)
            break;
          memcpy (&n, attrs + a->n_offset, sizeof n);
          if (n > 0 && (size_t)n > (cls->attrs_size - a->offset) / sizeof (int))
            return false;
          break;
        case TD_ATTR_SHAPE:
        case TD_ATTR_DTYPE:
        case TD_ATTR_CHOICE:
          memcpy (&n, attrs + a->offset, sizeof n);
          while (a->kind == TD_ATTR_CHOICE && a->choices[n_choices] != NULL)
            n_choices++;
          if (a->kind == TD_ATTR_SHAPE)
            memcpy (&n, attrs + a->offset + offsetof (TdShape, ndim), sizeof n);
          if (n < 0
              || n >= (a->kind == TD_ATTR_SHAPE   ? TD_MAX_DIMS + 1
                       : a->kind == TD_ATTR_DTYPE ? (int)TD_TAPE_N_DTYPES
                                                  : n_choices))
            return false;
          break;
        case TD_ATTR_INT:
        case TD_ATTR_DOUBLE:
        case TD_ATTR_U64:
        default:
          break;
        }
    }
  return true;
}

static bool
device_fits (const TdRecompute *c, const TdTapeEvent *e)
{
  for (uint32_t k = 0; k < e->n_in; k++)
    if (c->it->vars[c->it->ins[e->first_in + k]].device != 0)
      return false;
  for (uint32_t k = 0; k < e->n_out; k++)
    if (c->it->vars[c->it->outs[e->first_out + k]].device != 0)
      return false;
  return true;
}

/* Can this event be run at all? */
static bool
look_at_event (TdRecompute *c, uint32_t i)
{
  const TdTapeEvent *e = &c->it->events[i];
  const TdOpClass *cls = class_of (td_tape_reader_op_name (c->r, e->opdef));
  const TdTapeCall *call = c->calls[i];
  const void *attrs
      = call != NULL && call->n_bytes > 0 ? c->it->call_words + call->first_word : NULL;
  char what[400];

  if (e->flags & TD_TAPE_EVENT_FAILED)
    return true;
  td__recompute_event_text (c, i, what, sizeof what);
  if (e->flags & TD_TAPE_EVENT_REPLAYED)
    return td__recompute_refuse (c,
                                 "%s ran from a static schedule, whose steps are no operations "
                                 "of their own (record with --static off)",
                                 what);
  if (!device_fits (c, e))
    return td__recompute_refuse (c, "%s ran on another device than the host", what);
  if (cls == NULL)
    return td__recompute_refuse (c, "%s is no operation of the engine's own", what);
  if (cls->attrs_size != (call != NULL ? call->n_bytes : 0) || !counts_fit (cls, e)
      || (attrs != NULL && !attrs_possible (cls, attrs)))
    return td__recompute_refuse (
        c, "%s has operands or attributes that this version does not know", what);
  if (has_pointer (cls, attrs))
    return td__recompute_refuse (c, "%s depends on the program's own memory", what);
  if ((e->flags & TD_TAPE_EVENT_ACCUMULATED) && (cls->flags & TD_OP_ACCUMULATES)
      && (call == NULL || call->into == TD_TAPE_NONE))
    return td__recompute_refuse (c, "%s adds to a gradient that was there before the iteration",
                                 what);
  c->classes[i] = cls;
  return true;
}

/* --- the arrays --- */

/* Is the array still on the tape, and of the variable's size? */
static bool
is_readable (const TdRecompute *c, const TdTapeTensorRef *ref)
{
  TdTapeTensorRecord record;
  const TdTapeVar *v = &c->it->vars[ref->var];
  char none;

  return td_tape_tensor_read (c->r, ref, &record, &none, 0, 0) >= 0 && record.dtype == v->dtype
         && record.bytes == td__recompute_bytes (c->it, ref->var);
}

static bool
look_at_input (TdRecompute *c, uint32_t i, uint32_t var, const uint8_t *there)
{
  char what[400], which[240];

  if (there[var])
    return true;
  td__recompute_event_text (c, i, what, sizeof what);
  var_text (c, var, which, sizeof which);
  return td__recompute_refuse (c,
                               "%s, which %s reads, is not on the tape: the budget of values "
                               "had no room for it, or newer ones have taken it",
                               which, what);
}

/* Go through the iteration as it will be run, and note what is used last where. */
static bool
look_at_arrays (TdRecompute *c)
{
  const TdTapeIteration *it = c->it;
  uint8_t *there = calloc (it->n_vars + 1, 1);
  bool good = there != NULL;
  uint32_t next = 0;

  for (uint32_t i = 0; good && i < it->n_events; i++)
    {
      const TdTapeEvent *e = &it->events[i];
      const uint32_t into = c->calls[i] != NULL ? c->calls[i]->into : TD_TAPE_NONE;

      for (; next < it->n_tensors
             && (!(it->tensors[next].flags & TD_TAPE_TENSOR_BEFORE)
                 || td__recompute_before (&it->tensors[next]) <= i);
           next++)
        if (it->tensors[next].flags & TD_TAPE_TENSOR_BEFORE)
          there[it->tensors[next].var] = is_readable (c, &it->tensors[next]);
      if (c->classes[i] == NULL)
        continue;
      for (uint32_t k = 0; good && k < e->n_in; k++)
        {
          good = look_at_input (c, i, it->ins[e->first_in + k], there);
          c->last_use[it->ins[e->first_in + k]] = i;
        }
      if (good && into != TD_TAPE_NONE)
        {
          good = look_at_input (c, i, into, there);
          c->last_use[into] = i;
        }
      for (uint32_t k = 0; k < e->n_out; k++)
        {
          there[it->outs[e->first_out + k]] = 1;
          c->last_use[it->outs[e->first_out + k]] = i;
        }
    }
  free (there);
  return good;
}

static void
say_keyframes (TdRecompute *c)
{
  const TdTapeSummaries s = td_tape_reader_summaries (c->r);
  char list[200] = "";
  size_t used = 0;
  uint32_t n = 0;

  for (uint32_t i = 0; i < s.n; i++)
    if ((s.rows[i].flags & TD_TAPE_ITERATION_KEYFRAME) && n++ < 8)
      used += (size_t)snprintf (list + used, sizeof list - used, "%s%" PRIu64,
                                used > 0 ? ", " : "", s.rows[i].number);
  if (n == 0)
    td__recompute_refuse (c,
                          "iteration %" PRIu64 " is no keyframe, and the tape has none: record "
                          "with --keyframes N",
                          c->it->number);
  else
    td__recompute_refuse (c, "iteration %" PRIu64 " is no keyframe; these are: %s%s",
                          c->it->number, list, n > 8 ? " ..." : "");
}

bool
td__recompute_prepare (TdRecompute *c)
{
  const TdTapeIteration *it = c->it;
  const char *producer = td_tape_reader_info (c->r, "producer");

  if (*producer) /* its operations are not ours to run */
    return td__recompute_refuse (c,
                                 "this tape was recorded by %s, and only that program "
                                 "can compute it again",
                                 producer);
  if (!(it->flags & TD_TAPE_ITERATION_KEYFRAME))
    {
      say_keyframes (c);
      return false;
    }
  if (it->flags & TD_TAPE_ITERATION_LOST)
    return td__recompute_refuse (c, "records of iteration %" PRIu64 " were lost", it->number);
  for (uint32_t i = 0; i < it->n_calls; i++)
    c->calls[it->calls[i].event] = &it->calls[i];
  for (uint32_t i = 0; i < it->n_events; i++)
    if (!look_at_event (c, i))
      return false;
  return look_at_arrays (c);
}

/* --- bringing them in --- */

static bool
bring (TdRecompute *c, const TdTapeTensorRef *ref)
{
  const TdTapeVar *v = &c->it->vars[ref->var];
  const uint64_t bytes = td__recompute_bytes (c->it, ref->var);
  TdTapeTensorRecord record;
  TdShape shape = { .ndim = v->ndim };
  TdVar *x;

  if (!td__recompute_room (c, bytes))
    return false;
  if (td_tape_tensor_read (c->r, ref, &record, c->host, 0, bytes) != (int64_t)bytes)
    return td__recompute_refuse (c, "v%u is no longer on the tape", ref->var);
  if (!td__recompute_put (c, ref->var, ref->event, TD_TAPE_TENSOR_BEFORE, NULL))
    return false;
  if (c->vars[ref->var] != NULL) /* the program wrote to it */
    return td_write (c->vars[ref->var], c->host, bytes) == TD_OK;
  for (int d = 0; d < shape.ndim; d++)
    shape.dim[d] = c->it->dims[v->first_dim + (uint32_t)d];
  x = td_tensor ((TdDtype)v->dtype, shape, c->host);
  if (v->flags & TD_TAPE_VAR_CHANNELS_LAST)
    x = td__to_layout (x, TD_CHANNELS_LAST, NULL);
  if (td_poisoned (x))
    return false;
  c->vars[ref->var] = td_retain (x);
  return true;
}

bool
td__recompute_inputs (TdRecompute *c, uint32_t event)
{
  const TdTapeIteration *it = c->it;

  for (; c->next_input < it->n_tensors; c->next_input++)
    {
      const TdTapeTensorRef *ref = &it->tensors[c->next_input];

      if (!(ref->flags & TD_TAPE_TENSOR_BEFORE))
        continue;
      if (td__recompute_before (ref) > event)
        return true;
      if (is_readable (c, ref) && !bring (c, ref))
        return false;
    }
  return true;
}
