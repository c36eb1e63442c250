/* Looking inside a fused group: its members are run one after the other, so that a debugger can
 * show the values between them, which the group itself never writes.
 *
 * Members read the inputs of the group, or copies of those that the group overwrites.  Results
 * get memory of their own and workspaces come from a pool of their own, so that neither arrays
 * nor addresses of the program change.  The host's kernels compute, whichever device the group
 * runs on.
 *
 * SPDX-License-Identifier: MIT */
#include "pass.h"
#include "host-memory.h"
#include "replay.h"
#include "static.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The group whose event is being reported. */
static struct
{
  const TdReplay *replay;
  const TdReady *ready;
  bool ran;
  void **before; /* by input that the group overwrites: its contents before; else NULL */
} now;

/* An array while members run. */
typedef struct
{
  void *data;
  bool ours;
} Held;

typedef struct
{
  const TdSchedule *s;
  const TdGroup *g;
  Held *held;     /* by value */
  uint32_t *last; /* by value: the member that reads it last */
  TdDevice device;
  uint32_t draw;
  char why[200];
} Walk;

/* Called for each result of a member; returns true to stop. */
typedef bool (*Visit) (const TdTensor *result, uint32_t k, void *user);

/* Memory of the host; NULL if there is none. */
static void *
room (size_t bytes)
{
  return aligned_alloc (64, (bytes + 128) & ~(size_t)63);
}

static size_t
bytes_of (const TdTensor *t)
{
  return (size_t)t->size * td__dtype_sizes[t->dtype];
}

/* --- while the event is reported (observe.c) --- */

static bool
overlap (const TdTensor *a, const TdTensor *b)
{
  const char *x = a->data, *y = b->data;

  return x < y + bytes_of (b) && y < x + bytes_of (a);
}

static const TdGroup *
group (void)
{
  return &now.replay->i->plan->groups[now.ready->step->external];
}

/* Whether a step accumulates into this operand, or changes it. */
static bool
is_written (const TdSchedule *s, const TdStep *step, uint32_t value)
{
  for (uint32_t k = 0; k < step->n_out; k++)
    if (s->nodes[td__step_out (s, step, k)].value == value)
      return true;
  for (uint32_t k = 0; k < step->n_in; k++)
    if (td__step_writes_input (step, k) && s->nodes[td__step_in (s, step, k)].value == value)
      return true;
  return false;
}

static bool
is_overwritten (const TdReady *r, uint32_t k)
{
  const TdSchedule *s = now.replay->i->plan->s;
  const TdGroup *g = group ();

  for (uint32_t j = 0; j < g->n_members; j++)
    if (is_written (s, &g->members[j], s->nodes[td__step_in (s, r->step, k)].value))
      return true;
  for (uint32_t m = 0; m < r->step->n_out; m++)
    if (overlap (&r->run.call.in[k], &r->run.call.out[m]))
      return true;
  return false;
}

static const char no_memory[] = "the host has no memory for a look into the group";

static bool
is_host (const TdDevice *d)
{
  return d->ops == td_device_get ("cpu")->ops;
}

void
td__inside_begin (const TdReplay *p, const TdReady *r)
{
  now.replay = p;
  now.ready = r;
  now.ran = false;
}

void
td__inside_runs (void)
{
  const TdReady *r = now.ready;

  now.ran = true;
  if (!td__engine.inside_wanted || r == NULL || !is_host (r->run.device))
    return;
  for (uint32_t k = 0; k < r->step->n_in; k++)
    if (is_overwritten (r, k))
      {
        if (now.before == NULL)
          now.before = td__xcalloc (r->step->n_in, sizeof *now.before);
        now.before[k] = room (bytes_of (&r->run.call.in[k]));
        if (now.before[k] != NULL)
          memcpy (now.before[k], r->run.call.in[k].data, bytes_of (&r->run.call.in[k]));
      }
}

void
td__inside_end (void)
{
  for (uint32_t k = 0; now.before != NULL && k < now.ready->step->n_in; k++)
    free (now.before[k]);
  free (now.before);
  now.before = NULL;
  now.ready = NULL;
}

/* --- members --- */

static uint32_t
result_node (const TdSchedule *s, const TdStep *step)
{
  if (step->n_out > 0)
    return td__step_out (s, step, 0);
  for (uint32_t k = 0; k < step->n_in; k++)
    if (td__step_writes_input (step, k))
      return td__step_in (s, step, k);
  return td__step_in (s, step, 0);
}

uint32_t
td__inside_n (void)
{
  return now.ready != NULL ? group ()->n_members : 0;
}

bool
td__inside_ran (void)
{
  return now.ready != NULL && now.ran;
}

TdInsideStep
td__inside_step (uint32_t k)
{
  const TdSchedule *s = now.replay->i->plan->s;
  const TdStep *step = &group ()->members[k];
  const TdNodeInfo *n = &s->nodes[result_node (s, step)];

  return (TdInsideStep){ step->cls, step->site != NULL ? step->site : now.replay->i->site,
                         (TdDtype)n->dtype, &n->shape, step->path };
}

static TdTensor
tensor_of (const Walk *w, uint32_t node)
{
  TdNodeInfo *n = &w->s->nodes[node];

  return (TdTensor){ .data = w->held[n->value].data,
                     .shape = &n->shape,
                     .size = td__size (&n->shape),
                     .dtype = (TdDtype)n->dtype,
                     .layout = n->layout };
}

/* Copy an input of the group to the host. */
static bool
fetch (Walk *w, uint32_t node)
{
  const TdReady *r = now.ready;
  const uint32_t value = w->s->nodes[node].value;
  Held *h = &w->held[value];
  uint32_t k = 0;
  const TdTensor *t;

  while (k < r->step->n_in && w->s->nodes[td__step_in (w->s, r->step, k)].value != value)
    k++;
  if (k == r->step->n_in)
    {
      snprintf (w->why, sizeof w->why, "the group reads something by the way");
      return false;
    }
  t = &r->run.call.in[k];
  if (now.ran && is_overwritten (r, k) && (now.before == NULL || now.before[k] == NULL))
    {
      snprintf (w->why, sizeof w->why,
                "the group has overwritten what it read: stop before it to look inside");
      return false;
    }
  if (now.before != NULL && now.before[k] != NULL)
    *h = (Held){ now.before[k], false };
  else if (is_host (r->run.device))
    *h = (Held){ t->data, false };
  else
    {
      *h = (Held){ room (bytes_of (t)), true };
      if (h->data == NULL)
        {
          snprintf (w->why, sizeof w->why, "%s", no_memory);
          return false;
        }
      if (r->run.device->ops->download (r->run.device, h->data, t->data, bytes_of (t)) != TD_OK)
        {
          snprintf (w->why, sizeof w->why, "what the group reads cannot be read");
          return false;
        }
    }
  return true;
}

static void
drop (Held *h)
{
  if (h->ours)
    free (h->data);
  *h = (Held){ NULL, false };
}

/* Make a new array for a node that a member writes; keeps: with its contents so far.  The array
 * it had goes to *before. */
static bool
renew (Walk *w, uint32_t node, bool keeps, Held *before)
{
  Held *h = &w->held[w->s->nodes[node].value];
  const TdTensor t = tensor_of (w, node);

  *before = *h;
  *h = (Held){ room (bytes_of (&t)), true };
  if (h->data == NULL)
    snprintf (w->why, sizeof w->why, "%s", no_memory);
  else if (keeps)
    memcpy (h->data, before->data, bytes_of (&t));
  return h->data != NULL;
}

/* The attributes of a step, with this run's key for random numbers. */
static void *
attrs_of (Walk *w, const TdStep *step)
{
  const TdRngKey *keys = now.ready->run.call.attrs;
  void *attrs;

  if (!step->random || keys == NULL || w->g->tiles == NULL)
    return NULL;
  attrs = room (step->cls->attrs_size);
  if (attrs == NULL)
    td__out_of_host_memory (step->cls->attrs_size, __func__);
  memcpy (attrs, step->attrs, step->cls->attrs_size);
  memcpy (attrs, &keys[w->draw++], sizeof *keys);
  return attrs;
}

/* Bind the operands of a member.  What it writes gets new arrays; *olds are the ones before,
 * to be freed after the member has run. */
static bool
bind (Walk *w, const TdStep *step, bool adds, TdTensor *t, Held *olds)
{
  const TdSchedule *s = w->s;

  for (uint32_t k = 0; k < step->n_in; k++)
    {
      const uint32_t node = td__step_in (s, step, k);

      if (w->held[s->nodes[node].value].data == NULL && !fetch (w, node))
        return false;
      if (td__step_writes_input (step, k) && !renew (w, node, true, &olds[k]))
        return false;
    }
  for (uint32_t k = 0; k < step->n_in; k++)
    t[k] = tensor_of (w, td__step_in (s, step, k));
  for (uint32_t k = 0; k < step->n_out; k++)
    {
      const uint32_t node = td__step_out (s, step, k);

      if (adds && w->held[s->nodes[node].value].data == NULL && !fetch (w, node))
        return false;
      if (!renew (w, node, adds, &olds[step->n_in + k]))
        return false;
      t[step->n_in + k] = tensor_of (w, node);
    }
  return true;
}

static bool
run_member (Walk *w, uint32_t j)
{
  const TdStep *step = &w->g->members[j];
  const uint32_t n = step->n_in + step->n_out;
  /* A gradient for a variable outside is shown as this step's contribution, not as the sum. */
  const bool adds = step->accumulate && step->external == TD_ABSENT;
  TdTensor *t = td__xcalloc (n + 1, sizeof *t);
  Held *olds = td__xcalloc (n + 1, sizeof *olds);
  void *attrs = attrs_of (w, step);
  TdRun run = { .call = { .cls = step->cls,
                          .attrs = attrs != NULL ? attrs : step->attrs,
                          .n_in = (int)step->n_in,
                          .n_out = (int)step->n_out,
                          .accumulate = adds,
                          .in = t,
                          .out = t + step->n_in,
                          .device = &w->device },
                .site = step->site,
                .device = &w->device };
  bool good;

  good = bind (w, step, adds, t, olds);
  if (good && step->cls->forward (&run.call) != TD_OK)
    {
      snprintf (w->why, sizeof w->why, "%s cannot be run by itself", step->cls->name);
      good = false;
    }
  if (run.workspace != NULL)
    td__pool_release (run.workspace);
  for (uint32_t k = 0; k < n; k++)
    drop (&olds[k]);
  free (attrs);
  free (olds);
  free (t);
  return good;
}

/* --- all of them --- */

static void
find_last_reads (Walk *w)
{
  for (uint32_t j = 0; j < w->g->n_members; j++)
    for (uint32_t k = 0; k < w->g->members[j].n_in; k++)
      w->last[w->s->nodes[td__step_in (w->s, &w->g->members[j], k)].value] = j;
}

/* Free the arrays that no later member reads. */
static void
drop_unread (Walk *w, uint32_t j)
{
  const TdStep *step = &w->g->members[j];

  for (uint32_t k = 0; k < step->n_in + step->n_out; k++)
    {
      const uint32_t node = k < step->n_in ? td__step_in (w->s, step, k)
                                           : td__step_out (w->s, step, k - step->n_in);
      const uint32_t value = w->s->nodes[node].value;

      if (w->last[value] <= j)
        drop (&w->held[value]);
    }
}

/* Run members until a result is what is looked for.  Returns whether one was. */
static bool
walk (Walk *w, Visit visit, void *user)
{
  TdEngine *e = &td__engine;
  TdObserver *observer = e->observer;
  const TdError error = e->error;
  const bool has_error = e->has_error;
  bool good = true, found = false;

  w->s = now.replay->i->plan->s;
  w->g = group ();
  w->held = td__xcalloc (w->s->n_values + 1, sizeof *w->held);
  w->last = td__xcalloc (w->s->n_values + 1, sizeof *w->last);
  w->device = *td_device_get ("cpu");
  w->device.pool = td__pool_new (&td__provider_host, NULL);
  if (w->device.pool == NULL)
    td__out_of_host_memory (0, "td__pool_new");
  e->observer = NULL; /* these runs are no events */
  find_last_reads (w);
  for (uint32_t j = 0; j < w->g->n_members && good && !found; j++)
    {
      good = run_member (w, j);
      if (good)
        {
          const TdTensor result = tensor_of (w, result_node (w->s, &w->g->members[j]));

          found = visit (&result, j, user);
          drop_unread (w, j);
        }
    }
  for (uint32_t v = 0; v < w->s->n_values; v++)
    drop (&w->held[v]);
  free (w->held);
  free (w->last);
  td__pool_free (w->device.pool);
  e->observer = observer;
  e->error = error;
  e->has_error = has_error;
  return found;
}

typedef struct
{
  uint32_t k;
  TdInsideArray *array;
} Wanted;

/* Copy the result that is looked for, in row-major order. */
static bool
take (const TdTensor *result, uint32_t k, void *user)
{
  const Wanted *wanted = user;
  TdInsideArray *a = wanted->array;
  TdShape from, to;
  TdStrides steps;
  TdTensor x = *result, y = *result;
  TdDevice *cpu = td_device_get ("cpu");

  if (k != wanted->k)
    return false;
  *a = (TdInsideArray){ room (bytes_of (result)), bytes_of (result), td__inside_step (k) };
  if (a->data == NULL)
    return true;
  if (result->layout == TD_ROW_MAJOR)
    {
      memcpy (a->data, result->data, a->bytes);
      return true;
    }
  steps = td__layout_walk (result->shape, (TdLayout)result->layout, TD_ROW_MAJOR, &from, &to);
  x.shape = &from;
  y.shape = &to;
  x.layout = y.layout = TD_ROW_MAJOR;
  y.data = a->data;
  cpu->ops->strided (cpu, TD_STRIDED_READ, &x, &steps, &y);
  return true;
}

bool
td__inside_run (uint32_t k, TdInsideArray *array, char *why, size_t size)
{
  Walk w = { .why = "" };
  Wanted wanted = { k, array };

  if (k < td__inside_n () && walk (&w, take, &wanted))
    {
      if (array->data != NULL)
        return true;
      snprintf (w.why, sizeof w.why, "%s", no_memory);
    }
  snprintf (why, size, "%s",
            td__inside_n () == 0   ? "the program does not stand at a fused group"
            : k >= td__inside_n () ? "the group has no such operation"
                                   : w.why);
  return false;
}

static bool
has_nan (const TdTensor *result, uint32_t k, void *user)
{
  TdDevice *cpu = td_device_get ("cpu");
  TdStats stats;

  *(uint32_t *)user = k;
  return result->dtype <= TD_BF16 && cpu->ops->stats (cpu, result, 1, 0, &stats) == TD_OK
         && stats.n_nan > 0;
}

uint32_t
td__inside_first_nan (void)
{
  Walk w = { .why = "" };
  uint32_t k = 0;

  return td__inside_n () > 0 && walk (&w, has_nan, &k) ? k : UINT32_MAX;
}

typedef struct
{
  TdInsideVisit visit;
  void *user;
} Shown;

static bool
show (const TdTensor *result, uint32_t k, void *user)
{
  const Shown *shown = user;
  const TdInsideStep step = td__inside_step (k);

  return shown->visit (&step, result, shown->user);
}

static bool
look_at_each (TdInsideVisit visit, void *user)
{
  Walk w = { .why = "" };
  Shown shown = { visit, user };

  return td__inside_n () > 0 && walk (&w, show, &shown);
}

void
td__static_attach (void)
{
  static const TdStaticTable table = { .verify_next = td__statics_verify_next,
                                       .n = td__inside_n,
                                       .step = td__inside_step,
                                       .ran = td__inside_ran,
                                       .run = td__inside_run,
                                       .first_nan = td__inside_first_nan,
                                       .each = look_at_each,
                                       .expand = td__static_expand,
                                       .overwritten = td__overwritten };

  td__engine.statics = &table;
}
