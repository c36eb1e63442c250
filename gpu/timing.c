/* When operations ran: events on the compute stream before and after each operation that is
 * timed, read once the device has passed them.
 *
 * Times are relative to an event that is recorded once an iteration: the difference of two
 * events stays small, and a float of milliseconds holds it exactly enough.
 * TAPEDECK_DEVICE_TIMES (auto, all, off, or every N-th iteration) says which iterations are
 * timed; auto spends at most one percent of the time on it.
 *
 * Where CUPTI traces, an operation's time is that of its kernels, and the events only tell
 * when to ask.
 *
 * SPDX-License-Identifier: MIT */
#include "kernel-times.h"
#include "async.h"

#include <stdlib.h>

enum
{
  PAIRS = 2048,  /* operations on their way */
  MAX_LOOKS = 3, /* for kernels that CUPTI has not reported: there may be none */
  ZEROS = 64
};

typedef struct
{
  TdAsyncOf of;
  CUevent begin, end;
  uint64_t zero;  /* its number */
  bool on_copies; /* on a stream of copies, which may be ahead of the mark it counts from */
  uint64_t id;    /* what CUPTI knows it by; 0: it does not trace */
  int looks;      /* after which nothing had come from CUPTI */
} Pair;

typedef struct
{
  CUevent event;
  uint64_t number; /* 1, 2 ...; 0: never used */
  uint64_t zero;   /* the recorder's name for it */
  uint64_t traced; /* CUPTI's time then */
  double since_ns;
  bool compared;
  int n_pairs; /* that wait */
} Zero;

struct TdCudaTiming
{
  CUevent stock[2 * PAIRS + 1];
  int n_stock, n_made;
  Pair pairs[PAIRS];
  int first, n;
  Zero zeros[ZEROS];
  uint64_t n_zeros;
  CUevent begin; /* of the operation that runs; NULL: none is timed */
  CUstream on;   /* what it runs on */
  bool copies;   /* it is a copy of the host's, nothing else */
  bool traces;   /* CUPTI does */
  uint64_t n_ids;
};

static Zero *
zero_of (struct TdCudaTiming *t, uint64_t number)
{
  return &t->zeros[number % ZEROS];
}

static CUevent
take_event (struct TdCudaTiming *t)
{
  CUevent event = NULL;

  if (t->n_stock > 0)
    return t->stock[--t->n_stock];
  if (t->n_made == 2 * PAIRS + 1
      || td_cuda.cuEventCreate (&event, CU_EVENT_DEFAULT) != CUDA_SUCCESS)
    return NULL;
  t->n_made++;
  return event;
}

static void
put_back_event (struct TdCudaTiming *t, CUevent event)
{
  if (event != NULL)
    t->stock[t->n_stock++] = event;
}

void
td_cuda_timing_close (TdCuda *c)
{
  struct TdCudaTiming *t = c->timing;

  if (t == NULL)
    return;
  if (c->lost == TD_OK)
    {
      put_back_event (t, t->begin);
      for (int i = 0; i < t->n; i++)
        {
          put_back_event (t, t->pairs[(t->first + i) % PAIRS].begin);
          put_back_event (t, t->pairs[(t->first + i) % PAIRS].end);
        }
      for (int i = 0; i < t->n_stock; i++)
        td_cuda.cuEventDestroy (t->stock[i]);
      for (int i = 0; i < ZEROS; i++)
        if (t->zeros[i].event != NULL)
          td_cuda.cuEventDestroy (t->zeros[i].event);
    }
  free (t);
  c->timing = NULL;
}

bool
td_cuda_time_zero (TdDevice *d, uint64_t zero)
{
  TdCuda *c = td_cuda_enter (d);
  struct TdCudaTiming *t = c->timing;
  Zero *z;

  if (c->lost != TD_OK || c->capture != NULL)
    return false;
  if (t == NULL)
    t = c->timing = calloc (1, sizeof *t);
  if (t == NULL)
    return false;
  t->traces = td_cupti_start ();
  z = zero_of (t, t->n_zeros + 1);
  if (z->n_pairs > 0)
    return false; /* the device is that many iterations behind */
  if (z->event == NULL && td_cuda.cuEventCreate (&z->event, CU_EVENT_DEFAULT) != CUDA_SUCCESS)
    return false;
  if (td_cuda.cuEventRecord (z->event, c->stream) != CUDA_SUCCESS)
    return false;
  *z = (Zero){ .event = z->event, .number = ++t->n_zeros, .zero = zero, .since_ns = -1 };
  z->traced = t->traces ? td_cupti_now () : 0;
  return true;
}

static bool
begin_op (TdCuda *c, struct TdCudaTiming *t)
{
  CUevent event;

  if (t->n == PAIRS || c->lost != TD_OK || (event = take_event (t)) == NULL)
    return false;
  if (t->begin != NULL) /* of one that never ended */
    {
      put_back_event (t, t->begin);
      if (t->traces)
        td_cupti_pop ();
    }
  t->begin = event;
  t->on = c->stream;
  t->copies = false;
  if (t->traces)
    td_cupti_push (++t->n_ids);
  return td_cuda.cuEventRecord (event, c->stream) == CUDA_SUCCESS;
}

static bool
end_op (TdCuda *c, struct TdCudaTiming *t, const TdAsyncOf *of)
{
  CUevent event = t->begin != NULL && c->lost == TD_OK ? take_event (t) : NULL;

  if (t->begin != NULL && t->traces)
    td_cupti_pop ();
  if (event == NULL)
    return false;
  if (td_cuda.cuEventRecord (event, t->on) != CUDA_SUCCESS)
    {
      put_back_event (t, event);
      return false;
    }
  t->pairs[(t->first + t->n++) % PAIRS] = (Pair){ .of = *of,
                                                  .begin = t->begin,
                                                  .end = event,
                                                  .zero = t->n_zeros,
                                                  .on_copies = t->on != c->stream,
                                                  .id = t->traces ? t->n_ids : 0 };
  t->begin = NULL;
  zero_of (t, t->n_zeros)->n_pairs++;
  return true;
}

void
td_cuda_timing_on (TdCuda *c, CUstream stream)
{
  struct TdCudaTiming *t = c->timing;

  if (t == NULL || t->begin == NULL || c->lost != TD_OK
      || td_cuda.cuEventRecord (t->begin, stream) != CUDA_SUCCESS)
    return;
  t->on = stream;
}

/* A read waits on a stream of its own for what is computed: it counts from there. */
void
td_cuda_timing_read_on (TdCuda *c, CUstream stream)
{
  if (c->timing != NULL && c->timing->copies)
    td_cuda_timing_on (c, stream);
}

bool
td_cuda_time_op (TdDevice *d, const TdAsyncOf *of)
{
  TdCuda *c = td_cuda_thread (d);
  struct TdCudaTiming *t = c->timing;

  if (t == NULL || t->n_zeros == 0 || c->capture != NULL)
    return false;
  td_cuda_updates_send (c);
  td_cuda_repeat_leave (c);
  return of == NULL ? begin_op (c, t) : end_op (c, t, of);
}

bool
td_cuda_time_copy (TdDevice *d)
{
  const bool begun = td_cuda_time_op (d, NULL);

  if (begun)
    ((TdCuda *)d->priv)->timing->copies = true;
  return begun;
}

static CUresult
reached (CUevent event, TdAsyncHow how)
{
  return how == TD_ASYNC_WAIT ? td_cuda.cuEventSynchronize (event)
                              : td_cuda.cuEventQuery (event);
}

/* From one event to another, in ns.  False: not to be had. */
static bool
measure (CUevent from, CUevent to, double *ns)
{
  float ms = 0;
  const bool known = td_cuda.cuEventElapsedTime (&ms, from, to) == CUDA_SUCCESS;

  *ns = (double)ms * 1e6;
  return known;
}

/* The same; below 0: not to be had. */
static double
elapsed (CUevent from, CUevent to)
{
  double ns;

  return measure (from, to, &ns) ? ns : -1;
}

static void
compare (struct TdCudaTiming *t, Zero *z)
{
  const Zero *before = zero_of (t, z->number - 1);

  if (!z->compared && before->number != 0 && before->number == z->number - 1)
    z->since_ns = elapsed (before->event, z->event);
  z->compared = true;
}

/* The kernels' own times, if CUPTI has them. */
static bool
take_traced (const Zero *z, const Pair *p, TdAsyncResult *result)
{
  uint64_t start, end;

  if (p->id == 0 || !td_cupti_take (p->id, &start, &end) || start < z->traced)
    return false;
  result->start_ns = (double)(start - z->traced);
  result->duration_ns = (double)(end - start);
  result->exact = true;
  return true;
}

static TdAsyncResult
answer (TdCuda *c, struct TdCudaTiming *t, const Pair *p, TdStatus status)
{
  Zero *z = zero_of (t, p->zero);
  TdAsyncResult result
      = { .of = p->of, .what = TD_ASYNC_TIME, .status = status, .stream = p->on_copies };

  z->n_pairs--;
  if (status != TD_OK)
    return result;
  compare (t, z);
  result.zero = z->zero;
  result.since_ns = z->since_ns;
  if (take_traced (z, p, &result))
    return result;
  result.duration_ns = elapsed (p->begin, p->end);
  if (!measure (z->event, p->begin, &result.start_ns) || (result.start_ns < 0 && !p->on_copies)
      || result.duration_ns < 0)
    result.status = TD_ERR_DEVICE;
  return result;
}

/* CUPTI tells of a kernel some time after it has ended. */
static bool
has_come (Pair *p, TdAsyncHow how)
{
  uint64_t start, end;

  if (p->id == 0 || td_cupti_take (p->id, &start, &end))
    return true;
  if (how == TD_ASYNC_WAIT)
    td_cupti_flush (true);
  p->looks += how != TD_ASYNC_LOOK;
  return p->looks > MAX_LOOKS || how == TD_ASYNC_WAIT;
}

int
td_cuda_timing_answers (TdCuda *c, TdAsyncHow how, TdAsyncResult *answers, int room)
{
  struct TdCudaTiming *t = c->timing;
  int n = 0;

  if (t != NULL && t->traces && t->n > 0 && how == TD_ASYNC_SEND)
    td_cupti_flush (false);
  while (t != NULL && n < room && t->n > 0)
    {
      Pair *p = &t->pairs[t->first];
      TdStatus status = c->lost == TD_ERR_DEVICE ? c->lost : TD_OK;

      if (status == TD_OK)
        {
          CUresult result = reached (p->end, how);

          /* What it counts from is on another stream. */
          if (result == CUDA_SUCCESS && p->on_copies)
            result = reached (zero_of (t, p->zero)->event, how);
          if (result == CUDA_ERROR_NOT_READY)
            break;
          status = td_cuda_check (c, result, "times");
          if (status == TD_OK && !has_come (p, how))
            break;
        }
      answers[n++] = answer (c, t, p, status);
      put_back_event (t, p->begin);
      put_back_event (t, p->end);
      t->first = (t->first + 1) % PAIRS;
      t->n--;
    }
  return n;
}

int
td_cuda_poll_async (TdDevice *d, TdAsyncHow how, TdAsyncResult *answers, int room)
{
  TdCuda *c = td_cuda_thread (d);
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  int n;

  td_cuda_exchange_mode (c, &mode);
  n = td_cuda_stats_answers (c, how, answers, room);
  n += td_cuda_timing_answers (c, how, answers + n, room - n);
  td_cuda_exchange_mode (c, &mode);
  return n;
}
