/* Ranges for tools that look at a device: an observer that tells a device which link and which
 * operation the program is in, in front of the observer that is there.
 *
 * It is there only where a device asks for ranges, when it is opened.
 *
 * SPDX-License-Identifier: MIT */
#include "core.h"
#include "observer.h"

#include <stdlib.h>

enum
{
  CATEGORY_LINK = 4 /* after the phases */
};

typedef struct
{
  TdObserver observer; /* first */
  TdObserver *inner;   /* NULL: nobody else looks */
  TdDevice *device;
} Ranges;

/* Tell the other observer, if it wants to know. */
#define NOTIFY(o, function, ...)                                                               \
  do                                                                                           \
    {                                                                                          \
      TdObserver *inner_ = ((Ranges *)(void *)(o))->inner;                                     \
      if (inner_ != NULL && inner_->function != NULL)                                          \
        inner_->function (inner_, __VA_ARGS__);                                                \
    }                                                                                          \
  while (0)

static void
range (TdObserver *o, const char *name, int category, uint64_t payload)
{
  TdDevice *d = ((Ranges *)(void *)o)->device;

  d->ops->range (d, name, category, payload);
}

static void
before_op (TdObserver *o, const TdEvent *e)
{
  NOTIFY (o, before_op, e);
  range (o, e->cls->name, e->phase, e->id);
}

static void
after_op (TdObserver *o, const TdEvent *e)
{
  range (o, NULL, 0, 0);
  NOTIFY (o, after_op, e);
}

static void
on_link (TdObserver *o, bool enter, const TdPath *path, const TdSite *site)
{
  if (!enter)
    range (o, NULL, 0, 0);
  NOTIFY (o, link, enter, path, site);
  if (enter)
    range (o, path->text, CATEGORY_LINK, path->id);
}

#define PASS(function, params, ...)                                                            \
  static void on_##function params                                                             \
  {                                                                                            \
    NOTIFY (o, function, __VA_ARGS__);                                                         \
  }
// clang-format off
PASS (buffer_new, (TdObserver *o, const struct TdBuffer *b), b)
PASS (buffer_free, (TdObserver *o, const struct TdBuffer *b), b)
PASS (scope, (TdObserver *o, bool open, const TdScope *s), open, s)
PASS (iteration, (TdObserver *o, bool begin, int64_t n, int64_t label, const TdSite *s), begin, n, label, s)
PASS (backward, (TdObserver *o, bool begin, const TdSite *s), begin, s)
PASS (gradient, (TdObserver *o, struct TdNode *leaf, struct TdNode *g), leaf, g)
PASS (report, (TdObserver *o, const char *key, double value), key, value)
PASS (host_read, (TdObserver *o, struct TdNode *n, const TdSite *s), n, s)
PASS (copied, (TdObserver *o, const struct TdCopy *copy), copy)
PASS (write, (TdObserver *o, struct TdNode *n, const TdSite *s), n, s)
PASS (unchain, (TdObserver *o, struct TdNode *n, const TdSite *s), n, s)
PASS (name, (TdObserver *o, struct TdNode *n, const char *name), n, name)
PASS (out_of_memory, (TdObserver *o, const struct TdMemReport *report), report)
PASS (error, (TdObserver *o, const TdError *error), error)
PASS (notice, (TdObserver *o, const char *text), text)
PASS (config, (TdObserver *o, const char *field, int value), field, value)
PASS (param, (TdObserver *o, const TdPath *path, const TdVar *param, bool learnt), path, param,
      learnt)
PASS (static_event, (TdObserver *o, const TdStaticEvent *event), event)
PASS (schedule, (TdObserver *o, const TdScheduleInfo *schedule), schedule)
PASS (static_run, (TdObserver *o, const TdStaticRun *run), run)
PASS (static_entry, (TdObserver *o, const TdStaticEntry *entry), entry)
PASS (wait, (TdObserver *o, const struct TdWait *wait, bool ended), wait, ended)
// clang-format on

static bool
on_rank_sum (TdObserver *o, const struct TdRankSum *sum)
{
  TdObserver *inner = ((Ranges *)(void *)o)->inner;

  return inner != NULL && inner->rank_sum != NULL && inner->rank_sum (inner, sum);
}

static void
on_fault (TdObserver *o, const TdError *error, const TdAsyncFault *fault)
{
  TdObserver *inner = ((Ranges *)(void *)o)->inner;

  if (inner != NULL && inner->fault != NULL)
    inner->fault (inner, error, fault);
  else
    on_error (o, error);
}

static bool
on_where (TdObserver *o, TdEventPlace *place)
{
  TdObserver *inner = ((Ranges *)(void *)o)->inner;

  return inner != NULL && inner->where != NULL && inner->where (inner, place);
}

static uint64_t
on_copying (TdObserver *o, TdDevice *device)
{
  TdObserver *inner = ((Ranges *)(void *)o)->inner;

  return inner != NULL && inner->copying != NULL ? inner->copying (inner, device) : 0;
}

static void
on_finish (TdObserver *o, int status)
{
  NOTIFY (o, finish, status);
  free (o);
}

static const TdObserver vtable = { .before_op = before_op,
                                   .after_op = after_op,
                                   .buffer_new = on_buffer_new,
                                   .buffer_free = on_buffer_free,
                                   .scope = on_scope,
                                   .link = on_link,
                                   .iteration = on_iteration,
                                   .backward = on_backward,
                                   .gradient = on_gradient,
                                   .report = on_report,
                                   .host_read = on_host_read,
                                   .copied = on_copied,
                                   .copying = on_copying,
                                   .wait = on_wait,
                                   .rank_sum = on_rank_sum,
                                   .write = on_write,
                                   .unchain = on_unchain,
                                   .name = on_name,
                                   .error = on_error,
                                   .out_of_memory = on_out_of_memory,
                                   .where = on_where,
                                   .fault = on_fault,
                                   .notice = on_notice,
                                   .config = on_config,
                                   .param = on_param,
                                   .static_event = on_static_event,
                                   .schedule = on_schedule,
                                   .static_run = on_static_run,
                                   .static_entry = on_static_entry,
                                   .finish = on_finish,
                                   .tells_ranges = true };

void
td__ranges_start (TdDevice *d)
{
  TdObserver *inner = td__engine.observer;
  Ranges *r;

  if (d->ops->range == NULL || (inner != NULL && inner->tells_ranges))
    return;
  r = calloc (1, sizeof *r);
  if (r == NULL)
    return;
  *r = (Ranges){ .observer = vtable, .inner = inner, .device = d };
  td__engine.observer = &r->observer;
}
