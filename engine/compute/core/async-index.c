/* Asynchronous checks of indices (labels, words, rows) on a device.
 *
 * A check is launched before the kernel that uses the indices, and the program goes on; the
 * kernel ignores indices out of range.  The device keeps the first bad index of each place.  A
 * place is one check in a CUDA graph; place 0 stands for all checks of define-by-run.
 *
 * Host and device both count the runs of a place, the host as it launches them and the device
 * as they happen, in the same order.  So a result leads back to its call, iteration and
 * recorded event, however far ahead the host is.  The error is reported when the host next
 * reads from the device or waits for it, and at the end of an iteration.
 *
 * SPDX-License-Identifier: MIT */
#include "async-index.h"
#include "host-memory.h"

#include <stdio.h>
#include <stdlib.h>

enum
{
  CALLS = 1024, /* so many calls of define-by-run are remembered */
  RUNS = 128    /* so many launches of a check in a graph */
};

typedef struct
{
  const TdOpClass *cls;
  const TdSite *site;
  const TdPath *path;
  TdShape shape;
  int64_t limit;
  TdEventPlace at; /* of a check of define-by-run */
  uint8_t dtype, operand;
} Call;

/* A check in a CUDA graph. */
typedef struct
{
  Call call;
  uint64_t n_runs, n_before; /* launches, and those of earlier graphs among them */
  int64_t iteration[RUNS];
  TdEventPlace at[RUNS];
  uint16_t next; /* another place of the same step; 0: none */
  bool used;
} Place;

typedef struct
{
  Call call[CALLS];
  int64_t iteration[CALLS];
  uint64_t n_calls;
  Place *place[TD_INDEX_PLACES]; /* from 1 on */
  int last; /* place that was assigned last.  A place is reused as late as possible, so that
results which arrive late still find their call. */
} Checks;

bool td__index_now, td__index_wait;
static Checks *checks[TD_MAX_DEVICES];
static uint32_t asked; /* bit mask of devices that were asked */
static bool at_end;
static bool unfinished;                 /* checks were launched since the last wait */
static const TdEventPlace *async_event; /* NULL: the present event */
static struct
{
  TdDevice *device; /* NULL: no capture */
  uint16_t *at;
  const TdPath *path;
} captured;

static void *
zeroed (size_t bytes)
{
  void *memory = td__xcalloc (1, bytes);

  return memory;
}

static Checks *
checks_of (const TdDevice *d)
{
  Checks **c = &checks[d->number];

  if (*c == NULL)
    *c = zeroed (sizeof **c);
  return *c;
}

TdEventPlace
td__index_where (void)
{
  TdObserver *o = td__engine.observer;
  TdEventPlace at = { .known = false };

  if (async_event != NULL)
    return *async_event;
  at.known = o != NULL && o->where != NULL && o->where (o, &at);
  return at;
}

void
td__index_async_event (const TdEventPlace *at)
{
  async_event = at;
}

static Call
call_of (const TdOpCall *call, int i, int64_t limit, const TdPath *path)
{
  const TdRun *r = (const TdRun *)(const void *)call; /* call is the first member */

  return (Call){ .cls = call->cls,
                 .site = r->site,
                 .path = path,
                 .shape = *call->in[i].shape,
                 .limit = limit,
                 .dtype = (uint8_t)call->in[i].dtype,
                 .operand = (uint8_t)i };
}

/* --- places of graphs --- */

/* The next place for the step that is being captured; 0: there are no more. */
static uint32_t
captured_place (const Call *call)
{
  Checks *c = checks_of (captured.device);
  Place *p;

  for (int i = 0; *captured.at == 0 && i < TD_INDEX_PLACES - 1; i++)
    {
      c->last = c->last % (TD_INDEX_PLACES - 1) + 1;
      if (c->place[c->last] == NULL)
        c->place[c->last] = zeroed (sizeof **c->place);
      p = c->place[c->last];
      if (p->used)
        continue;
      p->used = true;
      p->n_before = p->n_runs;
      p->next = 0;
      *captured.at = (uint16_t)c->last;
    }
  if (*captured.at == 0)
    return 0;
  p = c->place[*captured.at];
  p->call = *call;
  uint32_t place = *captured.at;
  captured.at = &p->next;
  return place;
}

void
td__index_capture (TdDevice *d, uint16_t *places, const TdPath *path)
{
  captured.device = places != NULL ? d : NULL;
  captured.at = places;
  captured.path = path;
}

void
td__index_launched (TdDevice *d, uint16_t places, const TdEventPlace *at)
{
  Checks *c = checks_of (d);

  unfinished = true;
  for (; places != 0; places = c->place[places]->next)
    {
      Place *p = c->place[places];

      p->at[p->n_runs % RUNS] = at != NULL ? *at : (TdEventPlace){ .known = false };
      p->iteration[p->n_runs++ % RUNS] = td__engine.in_iteration ? td__engine.iteration : -1;
    }
}

void
td__index_forget (TdDevice *d, uint16_t *places)
{
  Checks *c = checks_of (d);

  for (uint16_t at = *places; at != 0; at = c->place[at]->next)
    c->place[at]->used = false;
  *places = 0;
}

/* --- checking --- */

static TdStatus
check_now (TdOpCall *call, int i, int64_t limit, int64_t allowed)
{
  int64_t at = -1, value = 0;
  const TdStatus status = call->device->ops->check_index (call->device, &call->in[i], limit,
                                                          allowed, &at, &value);

  if (status != TD_OK || at < 0)
    return status;
  return td_op_fail_operands (
      call, TD_ERR_ARG, "0 <= %s[i] < %lld expected, got %lld at element %lld",
      call->cls->in_names[i], (long long)limit, (long long)value, (long long)at);
}

TdStatus
td__index_check (TdOpCall *call, int i, int64_t limit, int64_t allowed)
{
  TdDevice *d = call->device;
  const bool graph = captured.device == d;
  uint32_t place = 0;
  TdStatus status;
  Checks *c;

  if (TD_LIKELY (d->ops->check_index_async == NULL) || td__index_now || td__engine.config.debug)
    return check_now (call, i, limit, allowed);
  Call what = call_of (call, i, limit, graph ? captured.path : td__engine.path);
  if (graph && (place = captured_place (&what)) == 0)
    return check_now (call, i, limit, allowed);
  status = d->ops->check_index_async (d, &call->in[i], limit, allowed, place);
  if (status == TD_ERR_STATE) /* the host knows these, or there is no such check */
    return check_now (call, i, limit, allowed);
  if (status != TD_OK)
    return status;
  asked |= 1u << d->number;
  if (graph)
    return TD_OK;
  unfinished = true;
  what.at = td__index_where ();
  c = checks_of (d);
  c->iteration[c->n_calls % CALLS] = td__engine.in_iteration ? td__engine.iteration : -1;
  c->call[c->n_calls++ % CALLS] = what;
  return TD_OK;
}

/* --- what was found --- */

/* The call that launched run number `run`; NULL: too long ago. */
static const Call *
find_call (const Checks *c, const TdBadIndex *bad, int64_t *iteration, TdEventPlace *at)
{
  const Place *p;

  *iteration = -1;
  *at = (TdEventPlace){ .known = false };
  if (bad->place == 0)
    {
      if (bad->run == 0 || bad->run > c->n_calls || c->n_calls - bad->run >= CALLS)
        return NULL;
      *iteration = c->iteration[(bad->run - 1) % CALLS];
      *at = c->call[(bad->run - 1) % CALLS].at;
      return &c->call[(bad->run - 1) % CALLS];
    }
  p = bad->place < TD_INDEX_PLACES ? c->place[bad->place] : NULL;
  if (p == NULL || bad->run <= p->n_before || bad->run > p->n_runs)
    return NULL;
  if (p->n_runs - bad->run < RUNS)
    {
      *iteration = p->iteration[(bad->run - 1) % RUNS];
      *at = p->at[(bad->run - 1) % RUNS];
    }
  return &p->call;
}

static TdStatus
report (const TdDevice *d, const TdBadIndex *bad)
{
  TdEngine *e = &td__engine;
  const TdPath *path = e->path;
  char shape[160], when[40] = "";
  int64_t iteration;
  TdAsyncFault fault = { .value = bad->value, .element = bad->at, .at_end = at_end };
  const Call *call = find_call (checks_of (d), bad, &iteration, &fault.at);
  TdStatus status;

  if (call == NULL)
    return td__fail (TD_ERR_ARG, d->name, NULL,
                     "an index was out of range: %lld at element %lld of an operation that is "
                     "too long ago to be named",
                     (long long)bad->value, (long long)bad->at);
  if (iteration >= 0)
    snprintf (when, sizeof when, " in iteration %lld", (long long)iteration);
  const char *name = call->cls->in_names[call->operand];
  fault.operand = name;
  fault.limit = call->limit;
  e->path = call->path;
  e->fault = fault.at.known ? &fault : NULL;
  status = td__fail (TD_ERR_ARG, call->cls->name, call->site,
                     "0 <= %s[i] < %lld expected, got %lld at element %lld%s: %s %s %s", name,
                     (long long)call->limit, (long long)bad->value, (long long)bad->at, when,
                     name, td_shape_text (&call->shape, shape, sizeof shape),
                     td_dtype_name ((TdDtype)call->dtype));
  e->fault = NULL;
  e->path = path;
  return status;
}

TdStatus
td__index_raise (void)
{
  TdStatus first = TD_OK;
  TdBadIndex bad;

  for (int i = 0; asked >> i != 0; i++)
    {
      TdDevice *d = asked >> i & 1 ? td__device_at (i) : NULL;

      while (d != NULL && d->ops->bad_index (d, &bad))
        {
          const TdStatus status = report (d, &bad);

          first = first == TD_OK ? status : first;
        }
    }
  return first;
}

void
td__index_finish (void)
{
  for (int i = 0; i < TD_MAX_DEVICES; i++)
    {
      TdDevice *d = asked >> i & 1 ? td__device_at (i) : NULL;

      if (d != NULL)
        d->ops->synchronize (d);
    }
  unfinished = false;
  td__index_raise ();
}

void
td__index_iteration_ends (void)
{
  at_end = true;
  if (td__index_wait && unfinished)
    td__index_finish ();
  else
    td__index_raise ();
  at_end = false;
}

void
td__index_end (void)
{
  for (int i = 0; i < TD_MAX_DEVICES; i++)
    {
      for (int k = 0; checks[i] != NULL && k < TD_INDEX_PLACES; k++)
        free (checks[i]->place[k]);
      free (checks[i]);
      checks[i] = NULL;
    }
  asked = 0;
  unfinished = td__index_now = td__index_wait = false;
}
