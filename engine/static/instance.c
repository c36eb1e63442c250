/* Making instances of a plan: its memory, and its steps with their operands filled in.
 *
 * SPDX-License-Identifier: MIT */
#include "instance.h"
#include "replay.h"
#include "host-memory.h"
#include "entry.h"
#include "pass.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static char nothing[64]; /* the address of arrays without elements */

static void *
zeroed (size_t n, size_t bytes)
{
  void *memory = td__xcalloc (n + 1, bytes);

  return memory;
}

static bool
is_fixed (const TdValue *v)
{
  return v->kind == TD_VALUE_INTERIOR || v->kind == TD_VALUE_CONSTANT;
}

static void
set_tensor (const TdInstance *i, TdTensor *t, uint32_t node)
{
  TdNodeInfo *n = &i->plan->s->nodes[node];

  t->shape = &n->shape;
  t->size = td__size (&n->shape);
  t->dtype = (TdDtype)n->dtype;
  t->layout = n->layout;
  t->data = i->address[n->value];
}

static int
by_value (const void *a, const void *b)
{
  const TdPatch *x = a, *y = b;

  return (x->value > y->value) - (x->value < y->value);
}

/* How many keys of random numbers a step needs (a group: one for each member that draws), and
 * the bytes of the attributes that contain them. */
static uint32_t
n_keys_of (const TdPlan *p, const TdStep *step, size_t *bytes)
{
  uint32_t n = 0;

  *bytes = 0;
  if (!step->random)
    return 0;
  if (step->kind == TD_STEP_OP)
    {
      *bytes = step->cls->attrs_size;
      return 1;
    }
  if (step->kind == TD_STEP_GROUP)
    for (uint32_t k = 0; k < p->groups[step->external].n_members; k++)
      n += p->groups[step->external].members[k].random;
  else
    n = 1;
  *bytes = n * sizeof (TdRngKey);
  return n;
}

static void
own_key (TdReadyList *list, char *room, uint64_t random_at)
{
  list->keys[list->n_keys] = (TdRngKey *)(void *)room;
  list->key_at[list->n_keys++] = random_at;
}

/* Give a step that draws a copy of its attributes, whose key each run replaces.  For a group
 * the copy has only the keys. */
static void
own_attrs (const TdPlan *p, TdReadyList *list, TdReady *r, char **room)
{
  const TdStep *step = r->step;
  size_t bytes;
  const uint32_t n = n_keys_of (p, step, &bytes);

  r->run.call.attrs = *room;
  if (step->kind == TD_STEP_GROUP)
    for (uint32_t k = 0, at = 0; at < n; k++)
      {
        const TdStep *member = &p->groups[step->external].members[k];

        if (member->random)
          own_key (list, *room + at++ * sizeof (TdRngKey), member->random_at);
      }
  else
    {
      memcpy (*room, step->attrs, bytes);
      own_key (list, *room, step->random_at);
    }
  *room += (bytes + 15) / 16 * 16;
}

static void
prepare_step (TdInstance *i, TdReadyList *list, const TdStep *step, TdTensor **room)
{
  const TdSchedule *s = i->plan->s;
  TdReady *r = &list->ready[list->n_ready++];
  TdTensor *t = *room;

  r->step = step;
  r->packed = step->pack > 0 ? &i->packed[step->pack - 1] : NULL;
  r->run.site = step->site;
  r->run.device = s->device;
  r->run.call = (TdOpCall){ .cls = step->cls,
                            .attrs = step->attrs,
                            .device = s->device,
                            .n_in = (int)step->n_in,
                            .n_out = (int)step->n_out,
                            .in = t,
                            .out = t + step->n_in,
                            .accumulate = step->accumulate };
  for (uint32_t k = 0; k < step->n_in + step->n_out; k++, t++)
    {
      uint32_t node
          = k < step->n_in ? td__step_in (s, step, k) : td__step_out (s, step, k - step->n_in);

      set_tensor (i, t, node);
      r->opens |= k >= step->n_in && td__node_value (s, node)->kind == TD_VALUE_GRADIENT;
      if (!is_fixed (td__node_value (s, node)))
        list->patches[list->n_patches++] = (TdPatch){ t, s->nodes[node].value };
    }
  *room = t;
}

static void
index_patches (TdReadyList *list, uint32_t n_values)
{
  uint32_t at = 0;

  qsort (list->patches, list->n_patches, sizeof *list->patches, by_value);
  list->patch_at = zeroed (n_values + 1, sizeof *list->patch_at);
  for (uint32_t v = 0; v <= n_values; v++)
    {
      while (at < list->n_patches && list->patches[at].value < v)
        at++;
      list->patch_at[v] = at;
    }
}

/* The last step that uses the gradient which step k propagates; TD_ABSENT if the schedule did
 * not make that gradient. */
static uint32_t
last_use (const TdPlan *p, uint32_t list, uint32_t k)
{
  const TdStep *step = &td__plan_list (p, list)->steps[k];
  const uint32_t value = p->s->nodes[td__step_in (p->s, step, 0)].value;

  return p->s->values[value].kind == TD_VALUE_GRADIENT
             ? p->lives[(size_t)list * p->s->n_values + value].last
             : TD_ABSENT;
}

/* Collect the values whose addresses have to be set before each run of the list.  In the
 * forward list that includes outputs that no step uses: they have to exist all the same. */
static void
index_bound (const TdInstance *i, TdReadyList *list)
{
  const TdSchedule *s = i->plan->s;

  list->bound = zeroed (s->n_values, sizeof *list->bound);
  for (uint32_t v = 0; v < s->n_values; v++)
    {
      const uint8_t kind = s->values[v].kind;

      if (kind == TD_VALUE_EXTERNAL || kind == TD_VALUE_GY || kind == TD_VALUE_OUTPUT)
        if (list->patch_at[v] < list->patch_at[v + 1] || list == &i->forward)
          list->bound[list->n_bound++] = v;
    }
}

/* Floating-point operations of a matrix product; 0: the step is none. */
static double
flop_of (const TdPlan *p, const TdStep *step)
{
  const TdSchedule *s = p->s;
  double sizes = 1;

  if (step->kind == TD_STEP_GROUP && p->groups[step->external].tiles == NULL
      && !p->groups[step->external].rows)
    step = &p->groups[step->external].members[0];
  if (step->kind != TD_STEP_OP || !(step->cls->flags & TD_OP_ENDS)
      || (step->cls->flags & TD_OP_IMAGES))
    return 0;
  for (uint32_t k = 0; k < 2; k++)
    sizes *= (double)td__size (&s->nodes[td__step_in (s, step, k)].shape);
  return 2 * sqrt (sizes * (double)td__size (&s->nodes[td__step_out (s, step, 0)].shape));
}

/* Whether the list has products of about 10 to 200 us each that together take longer than it
 * takes to wake the threads: then those are kept awake for the whole list. */
static bool
has_short_products (const TdPlan *p, const TdSteps *steps)
{
  double sum = 0;

  for (uint32_t k = 0; k < steps->n; k++)
    {
      const double flop = flop_of (p, &steps->steps[k]);

      sum += flop >= 1e6 && flop < 2e7 ? flop : 0;
    }
  return sum >= 4e6;
}

static void
prepare (TdInstance *i, TdReadyList *list, uint32_t which)
{
  const TdSteps *steps = td__plan_list (i->plan, which);
  size_t n_operands = 0, n_attrs = 0, n_keys = 0;
  TdTensor *room;
  char *attrs;

  list->steps = steps;
  list->short_products = has_short_products (i->plan, steps);
  for (uint32_t k = 0; k < steps->n; k++)
    {
      const TdStep *step = &steps->steps[k];
      size_t bytes;

      n_operands += step->n_in + step->n_out;
      n_keys += n_keys_of (i->plan, step, &bytes);
      n_attrs += bytes + 16;
    }
  list->ready = zeroed (steps->n, sizeof *list->ready);
  list->at = zeroed (steps->n, sizeof *list->at);
  list->tensors = room = zeroed (n_operands, sizeof *list->tensors);
  list->patches = zeroed (n_operands, sizeof *list->patches);
  list->attrs = attrs = zeroed (n_attrs, 1);
  list->keys = zeroed (n_keys, sizeof *list->keys);
  list->key_at = zeroed (n_keys, sizeof *list->key_at);
  for (uint32_t k = 0; k < steps->n; k++)
    {
      list->at[k] = TD_ABSENT;
      if (!td__step_computes (&steps->steps[k]))
        continue;
      list->at[k] = list->n_ready;
      prepare_step (i, list, &steps->steps[k], &room);
      list->ready[list->n_ready - 1].place = k;
      if (steps->steps[k].kind == TD_STEP_PROPAGATE)
        list->ready[list->n_ready - 1].last = last_use (i->plan, which, k);
      if (steps->steps[k].random)
        own_attrs (i->plan, list, &list->ready[list->n_ready - 1], &attrs);
    }
  index_patches (list, i->plan->s->n_values);
  index_bound (i, list);
}

static void
list_free (TdReadyList *list)
{
  td__captures_free (list);
  free (list->ready);
  free (list->at);
  free (list->tensors);
  free (list->patches);
  free (list->patch_at);
  free (list->bound);
  free (list->attrs);
  free (list->keys);
  free (list->key_at);
}

/* Collect the external variables that the forward writes, and the step that does. */
static void
index_writes (TdInstance *i)
{
  const TdSchedule *s = i->plan->s;

  for (uint32_t k = 0; k < s->forward.n; k++)
    for (uint32_t n = 0; n < s->forward.steps[k].n_in; n++)
      {
        const TdStep *step = &s->forward.steps[k];
        const TdValue *v = td__node_value (s, td__step_in (s, step, n));

        if (step->cls == NULL || !td__bit (step->cls->writes, (int)n)
            || v->kind != TD_VALUE_EXTERNAL)
          continue;
        i->writes = td__xrealloc (i->writes, (i->n_writes + 1) * sizeof *i->writes);
        i->writes[i->n_writes++] = (TdWrite){ v->index, step->site };
      }
}

TdInstance *
td__instance_new (TdEntry *entry, TdPlan *plan, const TdSite *site)
{
  const TdSchedule *s = plan->s;
  TdInstance *i = zeroed (1, sizeof *i);

  i->entry = entry;
  i->plan = plan;
  i->refs = 1;
  td__replay_tells_what_it_keeps ();
  if (plan->arena_bytes > 0)
    {
      i->arena = td__buffer_new (s->device, plan->arena_bytes, TD_MEM_STATIC);
      if (i->arena == NULL)
        {
          td__fail_memory (s->device, plan->arena_bytes, "static schedule", site);
          free (i);
          return NULL;
        }
    }
  i->address = zeroed (s->n_values, sizeof *i->address);
  for (uint32_t v = 0; v < s->n_values; v++)
    if (plan->offsets[v] != SIZE_MAX)
      i->address[v] = i->arena != NULL ? (char *)i->arena->data + plan->offsets[v] : nothing;
    else if (s->values[v].kind == TD_VALUE_CONSTANT)
      i->address[v] = s->constants[s->values[v].index].buffer->data;
  i->room = zeroed (s->n_externals + 2 * (size_t)s->n_outputs, sizeof *i->room);
  i->given = zeroed (s->n_values, sizeof *i->given);
  i->added = zeroed (s->n_values, sizeof *i->added);
  i->kept = zeroed (s->n_externals, sizeof *i->kept);
  index_writes (i);
  i->externals = zeroed (s->n_externals, sizeof *i->externals);
  i->versions = zeroed (s->n_externals, sizeof *i->versions);
  i->outputs = zeroed (s->n_outputs, sizeof *i->outputs);
  i->out_versions = zeroed (s->n_outputs, sizeof *i->out_versions);
  i->packed = zeroed (plan->n_packs, sizeof *i->packed);
  prepare (i, &i->forward, 0);
  i->backwards = zeroed (s->n_backwards, sizeof *i->backwards);
  for (uint32_t k = 0; k < s->n_backwards; k++)
    prepare (i, &i->backwards[k], k + 1);
  td__entry_ref (entry);
  plan->refs++;
  return i;
}

void
td__instance_drop (TdInstance *i)
{
  const TdSchedule *s = i->plan->s;

  td__replay_waits_no_more (i);
  td__code_graph_free (i->code_graph);
  i->code_graph = NULL;
  td__state_restore (i->before, i->n_before, false);
  i->before = NULL;
  i->n_before = 0;
  for (uint32_t k = 0; k < s->n_externals; k++)
    {
      td__buffer_unref (i->externals[k]);
      i->externals[k] = NULL;
    }
  for (uint32_t k = 0; k < s->n_outputs; k++)
    {
      td__buffer_unref (i->outputs[k]);
      i->outputs[k] = NULL;
    }
}

void
td__instance_unref (TdInstance *i)
{
  TdEntry *entry = i->entry;

  if (--i->refs > 0)
    return;
  td__instance_drop (i);
  td__observe_drop (i);
  td__overwritten_end (i);
  free (i->nodes);
  free (i->nodes_owned);
  free (i->slices);
  list_free (&i->forward);
  for (uint32_t k = 0; k < i->plan->s->n_backwards; k++)
    list_free (&i->backwards[k]);
  td__buffer_unref (i->arena);
  free (i->backwards);
  free (i->packed);
  free (i->address);
  free (i->externals);
  free (i->versions);
  free (i->outputs);
  free (i->out_versions);
  free (i->writes);
  free (i->room);
  free (i->given);
  free (i->added);
  free (i->kept);
  td__plan_unref (i->plan);
  free (i);
  td__entry_unref (entry);
}
