/* Verification: what the code did is held against the schedule, first the lists of steps, then
 * the numbers.
 *
 * Two traces of one code number their nodes and values alike, so a step of one is compared with
 * the step of the same place in the other.  Arrays of the code's run are kept until the
 * schedule has run.
 *
 * SPDX-License-Identifier: MIT */
#include "verify.h"
#include "host-memory.h"

#include "compute/core/copies.h"

#include "static.h"
#include "notify.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAY(miss, ...) snprintf ((miss)->text, sizeof (miss)->text, __VA_ARGS__)

static const char *
kind_name (const TdStep *step)
{
  static const char *const names[]
      = { "an operation",      "a new array", "a copy", "a side effect",
          "a read of numbers", "a link",      "a link", "a scope",
          "a scope",           "a gradient",  "a group" };

  return step->kind == TD_STEP_OP ? step->cls->name : names[step->kind];
}

static const char *
place (const TdSite *site, char *text, size_t size)
{
  const char *slash = site != NULL ? strrchr (site->file, '/') : NULL;

  if (site == NULL)
    return "?";
  snprintf (text, size, "%s:%d", slash != NULL ? slash + 1 : site->file, site->line);
  return text;
}

static bool
differs (TdMiss *miss, const char *what, const TdStep *then, const TdStep *now)
{
  char a[80], b[80];

  miss->guard = "verify";
  miss->site = now != NULL ? now->site : then->site;
  miss->other = then != NULL ? then->site : NULL;
  SAY (miss, "%s: %s at %s now, %s at %s in the schedule", what,
       now != NULL ? kind_name (now) : "nothing",
       place (now != NULL ? now->site : NULL, a, sizeof a),
       then != NULL ? kind_name (then) : "nothing",
       place (then != NULL ? then->site : NULL, b, sizeof b));
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

/* "b is 3 now, 2 before"; what is no number by its name. */
static const char *
say_attr (const TdAttr *attr, const char *then, const char *now, char *text, size_t size)
{
  TdShape x, y;
  char a[80], b[80];

  if (attr->kind == TD_ATTR_INTS)
    return attr->name;
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

/* Bytes between fields may be anything, so a class that lists its fields is asked for those. */
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
    if (!same_attr (&cls->attrs[k], a, b))
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
    return other_fill (miss, x, y);
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
same_constants (const TdSchedule *then, const TdSchedule *now, TdMiss *miss)
{
  for (uint32_t k = 0; k < then->n_constants && k < now->n_constants; k++)
    {
      const TdBuffer *x = then->constants[k].buffer, *y = now->constants[k].buffer;
      TdDevice *d = then->device;
      char *a = td__xmalloc (x->bytes + 1), *b = td__xmalloc (y->bytes + 1);
      bool same = x->bytes == y->bytes;
      char text[120];

      if (same && d->computes)
        same = td__copy_out (d, a, x->data, x->bytes, TD_COPY_CHECK, NULL, NULL) == TD_OK
               && td__copy_out (d, b, y->data, y->bytes, TD_COPY_CHECK, NULL, NULL) == TD_OK
               && memcmp (a, b, x->bytes) == 0;
      if (!same)
        {
          miss->guard = "verify";
          miss->site = now->constants[k].site;
          SAY (miss, "the code brings other numbers in array %u%s", k,
               x->bytes == y->bytes ? first_other (then, k, a, b, text, sizeof text) : "");
        }
      free (a);
      free (b);
      if (!same)
        return false;
    }
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
    return false;
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

bool
td__check_lists (const TdSteps *then, const TdSteps *now, TdMiss *miss)
{
  uint32_t a = 0, b = 0;

  for (;;)
    {
      const TdStep *x = next_that_counts (then, &a), *y = next_that_counts (now, &b);
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
    }
}

/* --- numbers --- */

static double
number (const void *host, uint8_t dtype, int64_t i)
{
  return td__host_element (host, (TdDtype)dtype, i);
}

/* Bit for bit; with fusion, to one unit of the array's largest number for every operation that
 * was fused. */
static bool
near (const void *a, const void *b, const TdNodeInfo *n, uint32_t n_fused, int64_t *at)
{
  int64_t size = td__size (&n->shape);
  size_t bytes = td__dtype_sizes[n->dtype];
  static const double units[]
      = { [TD_F64] = 0x1p-52, [TD_F32] = 0x1p-23, [TD_F16] = 0x1p-10, [TD_BF16] = 0x1p-7 };
  double largest = 0;

  for (*at = 0; *at < size; ++*at)
    if (memcmp ((const char *)a + (size_t)*at * bytes, (const char *)b + (size_t)*at * bytes,
                bytes)
        != 0)
      break;
  if (*at == size)
    return true;
  if (n_fused == 0 || n->dtype > TD_BF16)
    return false;
  for (int64_t k = 0; k < size; k++)
    largest = fmax (largest, fabs (number (b, n->dtype, k)));
  for (*at = 0; *at < size; ++*at)
    {
      double x = number (a, n->dtype, *at), y = number (b, n->dtype, *at);
      double unit = units[n->dtype];

      if (!(fabs (x - y) <= n_fused * unit * largest) && !(isnan (x) && isnan (y)) && x != y)
        return false;
    }
  return true;
}

static bool
same_memory (const TdCheck *c, TdDevice *d, const void *replayed, const void *code,
             const TdNodeInfo *n, const char *what, const TdSite *site)
{
  size_t bytes = (size_t)td__size (&n->shape) * td__dtype_sizes[n->dtype];
  char *a = td__xmalloc (bytes + 1), *b = td__xmalloc (bytes + 1);
  bool same = true;
  char text[80];
  int64_t at;

  if (d->computes && td__copy_out (d, a, replayed, bytes, TD_COPY_CHECK, NULL, site) == TD_OK
      && td__copy_out (d, b, code, bytes, TD_COPY_CHECK, NULL, site) == TD_OK)
    same = near (a, b, n, c->entry->plan->n_fused, &at);
  if (!same)
    {
      c->miss->guard = "verify";
      c->miss->site = site;
      SAY (c->miss, "%s at %s: element %lld is %.9g by the code, %.9g by the schedule", what,
           place (site, text, sizeof text), (long long)at, number (b, n->dtype, at),
           number (a, n->dtype, at));
    }
  free (a);
  free (b);
  return same;
}

bool
td__check_says (TdMiss *miss, const char *name, const char *format, ...)
{
  va_list args;
  int n = snprintf (miss->text, sizeof miss->text,
                    "backward, %s: ", name != NULL ? name : "a variable from outside");

  va_start (args, format);
  if (n >= 0 && (size_t)n < sizeof miss->text)
    vsnprintf (miss->text + n, sizeof miss->text - (size_t)n, format, args);
  va_end (args);
  miss->guard = "verify";
  return false;
}

bool
td__check_gradient (TdMiss *miss, const void *replayed, const void *code, const TdNode *n,
                    const char *name, uint32_t units)
{
  const TdNodeInfo info = { .dtype = n->dtype, .shape = n->shape };
  int64_t at;

  if (n->dtype == TD_F16 || n->dtype == TD_BF16) /* sums are rounded where they end */
    units += 4;
  if (!n->device->computes || near (replayed, code, &info, units, &at))
    return true;
  return td__check_says (miss, name,
                         "element %lld of its gradient is %.9g by the code, %.9g by the "
                         "schedule",
                         (long long)at, number (code, n->dtype, at),
                         number (replayed, n->dtype, at));
}

void
td__check_step (TdCheck *c, const TdInstance *i, const TdStep *step)
{
  const TdSchedule *s = c->entry->schedule;

  for (uint32_t k = 0; k < step->n_out && c->miss->guard == NULL; k++)
    {
      uint32_t node = td__step_out (i->plan->s, step, k), value;

      if (node >= c->code_trace->schedule->n_nodes
          || (step->cls != NULL && k < 32 && step->cls->opaque_out >> k & 1))
        continue; /* made by a pass, or nobody's but backward's */
      value = s->nodes[node].value;
      if (value < c->code_trace->n_kept && c->code_trace->kept[value] != NULL
          && s->values[value].n_writers == 1)
        same_memory (c, s->device, i->address[i->plan->s->nodes[node].value],
                     c->code_trace->kept[value]->data, &s->nodes[node], kind_name (step),
                     step->site);
    }
}

static void
check_state (TdCheck *c)
{
  for (uint32_t k = 0; k < c->n_after && c->miss->guard == NULL; k++)
    {
      const TdBuffer *b = c->after[k].buffer;
      char *now = td__xmalloc (b->bytes + 1);

      if (b->device->computes
          && td__copy_out (b->device, now, b->data, b->bytes, TD_COPY_CHECK, NULL, b->writer)
                 == TD_OK
          && memcmp (now, c->after[k].bytes, b->bytes) != 0 && c->entry->plan->n_fused == 0)
        {
          c->miss->guard = "verify";
          c->miss->site = b->writer;
          SAY (c->miss, "state that the code writes has other numbers after the schedule");
        }
      free (now);
    }
}

void
td__check_end (TdCheck *c, const TdInstance *i)
{
  const TdEngine *e = &td__engine;

  (void)i;
  check_state (c);
  if (c->miss->guard != NULL
      || (e->rng_seed == c->key_after.seed && e->rng_offset == c->key_after.offset))
    return;
  c->miss->guard = "verify";
  SAY (c->miss, "the code takes %llu random numbers, the schedule %llu",
       (unsigned long long)(c->key_after.offset - c->key.offset),
       (unsigned long long)(e->rng_offset - c->key.offset));
}

/* --- a verified call --- */

void
td_static_verify_next (TdStatic *s)
{
  if (s != NULL)
    s->verify_next = true;
}

static uint32_t
save (const TdSchedule *s, TdVar *const *in, TdSavedState **saved)
{
  TdVar **externals = td__xmalloc ((s->n_externals + 1) * sizeof *externals);
  uint32_t n;

  for (uint32_t k = 0; k < s->n_externals; k++)
    externals[k] = k < s->n_arguments ? in[k] : s->externals[k].var;
  n = td__state_save (s, externals, saved);
  free (externals);
  return n;
}

static TdRngKey
place_in_stream (void)
{
  return (TdRngKey){ td__engine.rng_seed, td__engine.rng_offset };
}

static void
go_to (TdRngKey key)
{
  td__engine.rng_seed = key.seed;
  td__engine.rng_offset = key.offset;
}

/* From the state before, the schedule; what it makes is compared, and undone if it differs. */
static TdStatus
replay_beside (TdCheck *c, TdStatic *s, TdEntry *entry, TdVar *const *in, TdVar **out,
               const TdSite *site)
{
  TdInstance *i = td__static_instance (s, entry, site);
  TdMiss guard = { NULL, "", NULL };
  TdStatus status = TD_ERR_MEMORY;

  c->instance = i;
  c->n_after = save (entry->schedule, in, &c->after);
  td__state_restore (c->before, c->n_before, true);
  c->before = NULL;
  c->n_before = 0;
  go_to (c->key);
  if (i != NULL)
    status = td__replay_forward (entry, i, in, out, site, &guard, c);
  if (status == TD_OK)
    td__check_end (c, i);
  else if (guard.guard != NULL)
    *c->miss = guard;
  if (c->miss->guard != NULL || status != TD_OK)
    {
      td__state_restore (c->after, c->n_after, true);
      go_to (c->key_after);
      if (status == TD_OK)
        td__static_notify_run (TD_RUN_DISCARDED, TD_RUN_REPLAYED, entry->function, 0, 0);
    }
  else
    td__state_restore (c->after, c->n_after, false);
  return guard.guard != NULL ? TD_OK : status;
}

/* What the code says now that the schedule does not know. */
static void
no_trace (const TdStatic *s, TdStatus status, TdMiss *miss)
{
  miss->guard = "verify";
  if (status != TD_OK)
    SAY (miss, "the code fails now: %.180s", td__engine.error.message);
  else
    {
      miss->site = s->miss.site;
      SAY (miss, "no schedule can be made of the code now: %.160s", s->miss.text);
    }
}

/* The code's results, held while its scope ends. */
static void
hold_results (TdVar **out, TdVar **held, int n_out, bool hold)
{
  for (int k = 0; k < n_out; k++)
    if (held[k]->state == TD_VAR_POISON)
      out[k] = held[k];
    else if (hold)
      td__var_ref (held[k], TD_HOLD_ENGINE);
    else
      {
        if (out != NULL)
          out[k] = td__scope_add (held[k]);
        td__var_unref (held[k], TD_HOLD_ENGINE);
      }
}

/* The code ran again: what it does in C was done twice. */
static void
notify_verified (TdStatic *s, const TdEntry *entry)
{
  TdMiss note = { NULL, "", NULL };

  snprintf (
      note.text, sizeof note.text,
      "call %llu: the code ran again beside its schedule, and what it does in C shows twice",
      (unsigned long long)(entry->n_uses + 1));
  td__static_notify (s, TD_STATIC_EVENT_VERIFIED, entry, &note, NULL);
}

/* The steps were the same, and yet the schedule cannot do what the code did. */
static TdStatus
undone (const TdStatic *s, TdVar **out, int n_out, const TdSite *site)
{
  for (int k = 0; k < n_out; k++)
    out[k] = td__poison ();
  return td__fail (TD_ERR_STATE, s->name, site, "its schedule does not run as its code did");
}

TdStatus
td__verify_call (TdStatic *s, TdEntry *entry, TdVar *const *in, int n_in, TdVar **out,
                 int n_out, const TdSite *site, TdVerify how)
{
  TdMiss miss = { NULL, "", NULL };
  TdCheck c = { .entry = entry, .miss = &miss, .key = place_in_stream () };
  TdVar **held = td__xcalloc ((size_t)n_out + 1, sizeof *held);
  TdStatus status, replayed = TD_OK;
  uint64_t n_printed = 0;
  TdScope *scope;

  td__entry_ref (entry);
  s->verify_next = false;
  s->n_unverified = 0;
  s->info.n_verified++;
  c.n_before = save (entry->schedule, in, &c.before);
  scope = td_scope_open_at ("verify", site);
  td__stdout_count (true, NULL);
  c.code_trace = td__static_trace (
      s, in, n_in, held, n_out, site,
      how == TD_VERIFY_ALL ? TD_TRACE_FOR_NUMBERS : TD_TRACE_FOR_VERIFICATION, &status);
  td__stdout_count (false, &n_printed);
  c.key_after = place_in_stream ();
  hold_results (out, held, n_out, true);
  td_scope_close (scope);
  if (c.code_trace == NULL)
    no_trace (s, status, &miss);
  else if (td__check_traces (entry->schedule, c.code_trace->schedule, &miss))
    {
      if (how == TD_VERIFY_STEPS) /* its graph makes room for the schedule's */
        {
          hold_results (NULL, held, n_out, false);
          free (held);
          held = NULL;
        }
      replayed = replay_beside (&c, s, entry, in, out, site);
    }
  td__state_restore (c.before, c.n_before, false);
  if (miss.guard == NULL)
    {
      td__static_notify_run (TD_RUN_DISCARDED, TD_RUN_VERIFICATION, entry->function, 0, 0);
      td__static_notify_side_effects (s, c.code_trace->guards, n_printed);
      if (replayed == TD_OK && entry->keeps_graph && how == TD_VERIFY_ALL)
        {
          c.instance->code_graph = td__code_graph_new (c.code_trace, held, (uint32_t)n_out);
          held = NULL;
        }
      else
        {
          if (held != NULL)
            hold_results (NULL, held, n_out, false);
          td__static_untrace (c.code_trace);
        }
      s->info.unverified_since = td__engine.iteration;
      status = replayed;
      if (status == TD_OK)
        {
          s->info.n_replays++;
          s->info.state = TD_STATIC_STATIC;
          s->hopeless.n = 0;
          entry->n_replays++;
          notify_verified (s, entry);
          td__static_notify (s, TD_STATIC_EVENT_REPLAYED, entry, NULL, NULL);
        }
    }
  else
    {
      if (held != NULL)
        hold_results (out, held, n_out, false);
      else
        status = undone (s, out, n_out, site);
      td__static_remember (s, &miss, site);
      if (strcmp (miss.guard, "verify") == 0)
        {
          s->info.n_differences++;
          td__static_notify (s, TD_STATIC_EVENT_DIFFERS, entry, &s->miss, miss.other);
        }
      else
        {
          s->info.n_misses++;
          td__static_notify (s, TD_STATIC_EVENT_MISSED, entry, &s->miss, NULL);
        }
      if (entry->owner != NULL)
        td__static_evict (s, entry);
      if (c.code_trace != NULL)
        td__static_install (s, c.code_trace);
      if (strcmp (miss.guard, "verify") == 0)
        td__doubt_begin (s);
    }
  td__entry_unref (entry);
  free (held);
  return status;
}
