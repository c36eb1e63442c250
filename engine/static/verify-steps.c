/* Verification, the lists of steps: two traces of one code number their nodes and values alike,
 * so a step of one is compared with the step of the same place in the other.
 *
 * SPDX-License-Identifier: MIT */
#include "verify.h"
#include "host-memory.h"

#include "compute/core/copies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAY(miss, ...) snprintf ((miss)->text, sizeof (miss)->text, __VA_ARGS__)

const char *
td__check_kind (const TdStep *step)
{
  static const char *const names[]
      = { "an operation",      "a new array", "a copy", "a side effect",
          "a read of numbers", "a link",      "a link", "a scope",
          "a scope",           "a gradient",  "a group" };

  return step->kind == TD_STEP_OP ? step->cls->name : names[step->kind];
}

const char *
td__check_place (const TdSite *site, char *text, size_t size)
{
  const char *slash = site != NULL ? strrchr (site->file, '/') : NULL;

  if (site == NULL)
    return "?";
  snprintf (text, size, "%s:%d", slash != NULL ? slash + 1 : site->file, site->line);
  return text;
}

/* Where it is in the code; for an operation of a link that is marked, the link. */
static const char *
place_of (const TdStep *step, char *text, size_t size)
{
  if (step == NULL || step->site != NULL || step->path == NULL)
    return td__check_place (step != NULL ? step->site : NULL, text, size);
  snprintf (text, size, "%s", step->path->text);
  return text;
}

static bool
differs (TdMiss *miss, const char *what, const TdStep *then, const TdStep *now)
{
  char a[80], b[80], text[600];

  miss->guard = "verify";
  miss->site = now != NULL ? now->site : then->site;
  miss->other = then != NULL ? then->site : NULL;
  snprintf (text, sizeof text, "%.200s: %.60s at %s now, %.60s at %s in the schedule", what,
            now != NULL ? td__check_kind (now) : "nothing", place_of (now, a, sizeof a),
            then != NULL ? td__check_kind (then) : "nothing", place_of (then, b, sizeof b));
  SAY (miss, "%.230s", text);
  return false;
}

/* --- attributes --- */

static size_t
attr_bytes (const TdAttr *attr)
{
  static const size_t bytes[] = {
    [TD_ATTR_INT] = sizeof (int),       [TD_ATTR_DOUBLE] = sizeof (double),
    [TD_ATTR_BOOL] = sizeof (bool),     [TD_ATTR_INTS] = sizeof (int),
    [TD_ATTR_SHAPE] = sizeof (TdShape), [TD_ATTR_DTYPE] = sizeof (int),
    [TD_ATTR_U64] = sizeof (uint64_t),  [TD_ATTR_CHOICE] = sizeof (int),
  };

  return bytes[attr->kind] * (size_t)(attr->kind == TD_ATTR_INTS ? attr->count : 1);
}

static bool
same_attr (const TdAttr *attr, const char *a, const char *b)
{
  TdShape x, y;
  int n = 0, m = 0;

  if (attr->kind == TD_ATTR_INTS && attr->count == 0)
    {
      memcpy (&n, a + attr->n_offset, sizeof n);
      memcpy (&m, b + attr->n_offset, sizeof m);
      return n == m && memcmp (a + attr->offset, b + attr->offset, (size_t)n * sizeof n) == 0;
    }
  if (attr->kind != TD_ATTR_SHAPE)
    return memcmp (a + attr->offset, b + attr->offset, attr_bytes (attr)) == 0;
  memcpy (&x, a + attr->offset, sizeof x);
  memcpy (&y, b + attr->offset, sizeof y);
  return td_shape_equal (&x, &y);
}

static double
attr_number (const TdAttr *attr, const char *at)
{
  double d;
  uint64_t u;
  bool b;
  int i;

  at += attr->offset;
  if (attr->kind == TD_ATTR_DOUBLE)
    {
      memcpy (&d, at, sizeof d);
      return d;
    }
  if (attr->kind == TD_ATTR_U64)
    {
      memcpy (&u, at, sizeof u);
      return (double)u;
    }
  if (attr->kind == TD_ATTR_BOOL)
    {
      memcpy (&b, at, sizeof b);
      return b;
    }
  memcpy (&i, at, sizeof i);
  return i;
}

/* "(0, 1, 2)", with dots after the first few. */
static const char *
ints_text (const TdAttr *attr, const char *at, char *text, size_t size)
{
  int n = attr->count, one;
  size_t used;

  if (n == 0)
    memcpy (&n, at + attr->n_offset, sizeof n);
  used = (size_t)snprintf (text, size, "(");
  for (int k = 0; k < n && used + 20 < size; k++)
    {
      memcpy (&one, at + attr->offset + (size_t)k * sizeof one, sizeof one);
      used += (size_t)snprintf (text + used, size - used, used + 40 < size ? "%s%d" : "%s...",
                                k > 0 ? ", " : "", one);
    }
  snprintf (text + used, size - used, ")");
  return text;
}

/* "b is 3 now, 2 before". */
static const char *
say_attr (const TdAttr *attr, const char *then, const char *now, char *text, size_t size)
{
  TdShape x, y;
  char a[80], b[80];

  if (attr->kind == TD_ATTR_INTS)
    {
      snprintf (text, size, "%s is %s now, %s before", attr->name,
                ints_text (attr, now, b, sizeof b), ints_text (attr, then, a, sizeof a));
      return text;
    }
  if (attr->kind != TD_ATTR_SHAPE)
    {
      snprintf (text, size, "%s is %.9g now, %.9g before", attr->name, attr_number (attr, now),
                attr_number (attr, then));
      return text;
    }
  memcpy (&x, then + attr->offset, sizeof x);
  memcpy (&y, now + attr->offset, sizeof y);
  snprintf (text, size, "%s is %s now, %s before", attr->name, td_shape_text (&y, b, sizeof b),
            td_shape_text (&x, a, sizeof a));
  return text;
}

/* Bytes between fields may be anything, so a class that lists its fields is asked for those;
 * but not for the place in the stream of random numbers, which is another at every call. */
static const char *
other_attribute (const TdStep *then, const TdStep *now)
{
  static char text[200];
  const TdOpClass *cls = then->cls;
  size_t skip = then->random ? sizeof (TdRngKey) : 0;
  const char *a = then->attrs, *b = now->attrs;

  if (cls == NULL || a == NULL || memcmp (a + skip, b + skip, cls->attrs_size - skip) == 0)
    return NULL;
  for (int k = 0; k < cls->n_attrs; k++)
    if (cls->attrs[k].offset >= skip && !same_attr (&cls->attrs[k], a, b))
      return say_attr (&cls->attrs[k], a, b, text, sizeof text);
  return cls->n_attrs == 0 ? "its attributes" : NULL;
}

/* --- traces --- */

static bool
same_nodes (const TdSchedule *then, const TdSchedule *now, uint32_t a, uint32_t b)
{
  const TdNodeInfo *x = &then->nodes[a], *y = &now->nodes[b];

  return a == b && x->value == y->value && x->dtype == y->dtype && x->layout == y->layout
         && x->requires_grad == y->requires_grad && td_shape_equal (&x->shape, &y->shape);
}

static bool
same_operands (const TdSchedule *then, const TdSchedule *now, const TdStep *x, const TdStep *y)
{
  if (x->n_in != y->n_in || x->n_out != y->n_out)
    return false;
  for (uint32_t k = 0; k < x->n_in; k++)
    if (!same_nodes (then, now, td__step_in (then, x, k), td__step_in (now, y, k)))
      return false;
  for (uint32_t k = 0; k < x->n_out; k++)
    if (!same_nodes (then, now, td__step_out (then, x, k), td__step_out (now, y, k)))
      return false;
  return true;
}

static bool
same_array_maker (const TdStep *x, const TdStep *y)
{
  return x->how.origin == y->how.origin && x->how.a == y->how.a && x->how.b == y->how.b
         && x->how.random_kind == y->how.random_kind;
}

/* A new array knows no line where it was made; then that of the first step that reads it. */
static TdStep
with_line (const TdSchedule *s, const TdSteps *list, const TdStep *fill)
{
  const uint32_t node = td__step_out (s, fill, 0);
  TdStep step = *fill;

  for (uint32_t i = 0; i < list->n && step.site == NULL; i++)
    for (uint32_t k = 0; k < list->steps[i].n_in; k++)
      if (td__step_in (s, &list->steps[i], k) == node)
        step.site = list->steps[i].site;
  return step;
}

static bool
other_fill (TdMiss *miss, const TdStep *x, const TdStep *y)
{
  char text[120];

  snprintf (text, sizeof text, "other numbers (%.9g, %.9g now, %.9g, %.9g before)", y->how.a,
            y->how.b, x->how.a, x->how.b);
  return differs (miss, text, x, y);
}

static bool
same_effect (const TdTraceEffect *x, const TdTraceEffect *y)
{
  return x->run == y->run && x->same == y->same
         && (x->same == NULL || x->same (x->data, y->data));
}

/* A guard's matter, which the schedule would have met too. */
static bool
same_read (const TdSchedule *then, const TdStep *x, const TdStep *y, TdMiss *miss)
{
  const TdNodeInfo *n = &then->nodes[td__step_in (then, x, 0)];

  if (memcmp (x->bytes, y->bytes, (size_t)td__size (&n->shape) * td__dtype_sizes[n->dtype])
      == 0)
    return true;
  miss->guard = "host read";
  miss->site = y->site;
  SAY (miss, "the code reads numbers that are others now: the first is %.9g, %.9g before",
       td__host_element (y->bytes, (TdDtype)n->dtype, 0),
       td__host_element (x->bytes, (TdDtype)n->dtype, 0));
  return false;
}

/* The function's own scope is where it is called from, which may be several places. */
static bool
same_place (const TdStep *x, const TdStep *y)
{
  const bool scope = x->kind == TD_STEP_SCOPE_OPEN || x->kind == TD_STEP_SCOPE_CLOSE;

  return (scope ? x->text == y->text : x->site == y->site) && x->path == y->path;
}

static bool
same_step (const TdSchedule *then, const TdSchedule *now, const TdStep *x, const TdStep *y,
           TdMiss *miss)
{
  const char *attribute;

  if (x->kind != y->kind || x->cls != y->cls)
    return differs (miss, "another step", x, y);
  if (!same_place (x, y))
    return differs (miss, "another line", x, y);
  if (!same_operands (then, now, x, y))
    return differs (miss, "other operands", x, y);
  if ((attribute = other_attribute (x, y)) != NULL)
    return differs (miss, attribute, x, y);
  if (x->kind == TD_STEP_HOST_READ)
    return same_read (then, x, y, miss);
  if (x->kind == TD_STEP_FILL && !same_array_maker (x, y))
    {
      const TdStep before = with_line (then, &then->forward, x),
                   after = with_line (now, &now->forward, y);

      return other_fill (miss, &before, &after);
    }
  if (x->kind == TD_STEP_EFFECT && !same_effect (&x->effect, &y->effect))
    return differs (miss, "another effect", x, y);
  if (x->random != y->random || (x->random && x->random_at != y->random_at)
      || x->graph != y->graph)
    return differs (miss, "another way to run", x, y);
  return true;
}

static bool
same_externals (const TdSchedule *then, const TdSchedule *now, TdMiss *miss)
{
  miss->guard = "verify";
  for (uint32_t k = then->n_arguments; k < then->n_externals && k < now->n_externals; k++)
    if (then->externals[k].var != now->externals[k].var)
      {
        const TdVar *v = now->externals[k].var;

        miss->site = v->site;
        SAY (miss, "another variable is used: %s", v->name != NULL ? v->name : "unnamed");
        return false;
      }
  miss->guard = NULL;
  return true;
}

/* What the code used may be another because of what it read before that: then this is what is
 * said. */
static void
say_earlier_read (const TdSchedule *then, const TdSchedule *now, TdMiss *miss)
{
  const TdSteps *x = &then->forward, *y = &now->forward;
  TdMiss read = { NULL, "", NULL };

  for (uint32_t k = 0; k < x->n && k < y->n; k++)
    {
      const TdStep *a = &x->steps[k], *b = &y->steps[k];

      if (a->kind != b->kind || a->cls != b->cls || !same_operands (then, now, a, b))
        return;
      if (a->kind == TD_STEP_HOST_READ && !same_read (then, a, b, &read))
        {
          *miss = read;
          return;
        }
    }
}

/* Which element of a constant it is, and what it is and was. */
static const char *
first_other (const TdSchedule *s, uint32_t constant, const char *then, const char *now,
             char *text, size_t size)
{
  for (uint32_t n = 0; n < s->n_nodes; n++)
    {
      const TdNodeInfo *node = &s->nodes[n];
      const TdValue *v = &s->values[node->value];
      const size_t one = td__dtype_sizes[node->dtype];

      if (v->kind != TD_VALUE_CONSTANT || v->index != constant)
        continue;
      for (size_t k = 0; (k + 1) * one <= v->bytes; k++)
        if (memcmp (then + k * one, now + k * one, one) != 0)
          {
            snprintf (text, size, ": element %zu is %.9g now, %.9g before", k,
                      td__host_element (now, (TdDtype)node->dtype, (int64_t)k),
                      td__host_element (then, (TdDtype)node->dtype, (int64_t)k));
            return text;
          }
    }
  return "";
}

/* Numbers that the code brought. */
static bool
same_constant (const TdSchedule *then, uint32_t a, const TdSchedule *now, uint32_t b,
               TdMiss *miss)
{
  const TdBuffer *x = then->constants[a].buffer, *y = now->constants[b].buffer;
  TdDevice *d = then->device;
  char *before = td__xmalloc (x->bytes + 1), *after = td__xmalloc (y->bytes + 1);
  bool same = x->bytes == y->bytes;
  char text[120];

  if (same && d->computes)
    same = td__copy_out (d, before, x->data, x->bytes, TD_COPY_CHECK, NULL, NULL) == TD_OK
           && td__copy_out (d, after, y->data, y->bytes, TD_COPY_CHECK, NULL, NULL) == TD_OK
           && memcmp (before, after, x->bytes) == 0;
  if (!same)
    {
      miss->guard = "verify";
      miss->site = now->constants[b].site;
      SAY (miss, "the code brings other numbers in array %u%s", b,
           x->bytes == y->bytes ? first_other (then, a, before, after, text, sizeof text) : "");
    }
  free (before);
  free (after);
  return same;
}

static bool
same_constants (const TdSchedule *then, const TdSchedule *now, TdMiss *miss)
{
  for (uint32_t k = 0; k < then->n_constants && k < now->n_constants; k++)
    if (!same_constant (then, k, now, k, miss))
      return false;
  return true;
}

static bool
same_outputs (const TdSchedule *then, const TdSchedule *now, TdMiss *miss)
{
  for (uint32_t k = 0; k < then->n_outputs; k++)
    if (then->outputs[k].node != now->outputs[k].node
        || then->outputs[k].same_as != now->outputs[k].same_as
        || then->outputs[k].external != now->outputs[k].external)
      {
        miss->guard = "verify";
        SAY (miss, "output %u is another variable", k);
        return false;
      }
  return true;
}

bool
td__check_traces (const TdSchedule *then, const TdSchedule *now, TdMiss *miss)
{
  const TdSteps *x = &then->forward, *y = &now->forward;

  miss->guard = NULL;
  miss->site = NULL;
  if (!same_externals (then, now, miss))
    {
      say_earlier_read (then, now, miss);
      return false;
    }
  for (uint32_t k = 0; k < x->n && k < y->n; k++)
    if (!same_step (then, now, &x->steps[k], &y->steps[k], miss))
      return false;
  if (x->n != y->n)
    return differs (miss, "another number of steps", x->n > y->n ? &x->steps[y->n] : NULL,
                    y->n > x->n ? &y->steps[x->n] : NULL);
  return same_constants (then, now, miss) && same_outputs (then, now, miss);
}

/* Whether a gradient is added in place, or to a copy, depends on who else holds it: no matter
 * of the code's. */
static const TdStep *
next_that_counts (const TdSteps *list, uint32_t *k)
{
  while (
      *k < list->n
      && (list->steps[*k].kind == TD_STEP_COPY || list->steps[*k].phase == TD_PHASE_ACCUMULATE))
    ++*k;
  return *k < list->n ? &list->steps[(*k)++] : NULL;
}

/* What the operations of a backward read that the code brought. */
static bool
same_brought (const TdSchedule *then, const TdStep *x, const TdSchedule *now, const TdStep *y,
              TdMiss *miss)
{
  for (uint32_t k = 0; k < x->n_in && k < y->n_in; k++)
    {
      const TdValue *a = td__node_value (then, td__step_in (then, x, k)),
                    *b = td__node_value (now, td__step_in (now, y, k));

      if (a->kind == TD_VALUE_CONSTANT && b->kind == TD_VALUE_CONSTANT
          && !same_constant (then, a->index, now, b->index, miss))
        {
          miss->site = miss->site != NULL ? miss->site : y->site;
          return false;
        }
    }
  return true;
}

bool
td__check_lists (const TdSchedule *then, const TdSteps *list_then, const TdSchedule *now,
                 const TdSteps *list_now, TdMiss *miss)
{
  uint32_t a = 0, b = 0;

  for (;;)
    {
      const TdStep *x = next_that_counts (list_then, &a), *y = next_that_counts (list_now, &b);
      const char *attribute;

      if (x == NULL && y == NULL)
        return true;
      if (x == NULL || y == NULL)
        return differs (miss, "another number of steps", x, y);
      if (x->kind != y->kind || x->cls != y->cls)
        return differs (miss, "another step", x, y);
      if (!same_place (x, y))
        return differs (miss, "another line", x, y);
      if ((attribute = other_attribute (x, y)) != NULL)
        return differs (miss, attribute, x, y);
      if (x->kind == TD_STEP_FILL && !same_array_maker (x, y))
        {
          const TdStep before = with_line (then, list_then, x),
                       after = with_line (now, list_now, y);

          return other_fill (miss, &before, &after);
        }
      if (!same_brought (then, x, now, y, miss))
        return false;
    }
}
