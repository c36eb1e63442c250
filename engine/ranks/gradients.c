/* The mean of all ranks' gradients: packed into buckets of one layout on all ranks, summed, and
 * divided.
 *
 * A gradient that is missing is packed as zeros, so that layouts never differ; one number more
 * for each array counts the ranks that have it.
 *
 * SPDX-License-Identifier: MIT */
#include "host-memory.h"
#include "sums.h"

#include "compute/core/copies.h"

#include <stdlib.h>
#include <string.h>

enum
{
  BUCKET = 1 << 22 /* numbers, unless one array has more */
};

/* Arrays first .. end - 1 of a list, whose gradients are summed at once. */
typedef struct
{
  const TdCommon *common;
  int first, end;
  bool doubles; /* else floats */
  bool told;    /* who records wants sums */
  int64_t n;    /* numbers of all, without the counts behind them */
  char *numbers;
} Bucket;

static TdVar *
array_of (const Bucket *b, int i)
{
  return b->common->of[i].param->var;
}

static bool
is_double (const TdVar *v)
{
  return v->node->dtype == TD_F64;
}

/* Arrays that have a gradient at all; TD_PARAM_TRAINED ones are of floating point. */
static bool
takes_part (const TdVar *v)
{
  return v != NULL && v->node->device->computes;
}

/* The bucket that begins with array `first`. */
static Bucket
bucket_from (const TdCommon *common, int first)
{
  Bucket b = { .common = common, .first = first, .end = first };

  b.doubles = takes_part (array_of (&b, first)) && is_double (array_of (&b, first));
  while (b.end < common->n)
    {
      const TdVar *v = array_of (&b, b.end);
      const int64_t n = takes_part (v) ? td__size (&v->node->shape) : 0;

      if ((n > 0 && is_double (v) != b.doubles) || (b.n > 0 && b.n + n > BUCKET))
        break;
      b.n += n;
      b.end++;
    }
  return b;
}

static size_t
number_bytes (const Bucket *b)
{
  return b->doubles ? sizeof (double) : sizeof (float);
}

/* Number i of those behind the gradients: how many ranks have that of array first + i. */
static double
count_of (const Bucket *b, int i)
{
  const char *at = b->numbers + (size_t)(b->n + i - b->first) * number_bytes (b);
  double d;
  float f;

  if (b->doubles)
    memcpy (&d, at, sizeof d);
  else
    {
      memcpy (&f, at, sizeof f);
      d = (double)f;
    }
  return d;
}

static void
set_count (Bucket *b, int i, double count)
{
  char *at = b->numbers + (size_t)(b->n + i - b->first) * number_bytes (b);
  const float f = (float)count;

  if (b->doubles)
    memcpy (at, &count, sizeof count);
  else
    memcpy (at, &f, sizeof f);
}

/* Copy between a gradient and its place; half precision lies there as float. */
static TdStatus
copy (const TdVar *g, char *place, bool pack, const TdSite *site)
{
  TdDevice *host = td__device_at (0);
  const TdNode *n = g->node;
  const TdDtype dtype = (TdDtype)n->dtype;
  TdShape shape = n->shape;
  TdTensor wide = { place, &shape, td__size (&shape), TD_F32 }, half = wide;
  TdStatus status;

  if (dtype == TD_F32 || dtype == TD_F64)
    return pack ? td__layout_download (n, g->buffer, place, TD_COPY_OP, site)
                : td__layout_upload (n, g->buffer, place, TD_COPY_OP, site);
  half.dtype = dtype;
  half.data = td__xmalloc ((size_t)half.size * td__dtype_sizes[dtype] + 1);
  if (pack)
    {
      status = td__layout_download (n, g->buffer, half.data, TD_COPY_OP, site);
      if (status == TD_OK)
        status = host->ops->cast (host, &half, &wide);
    }
  else
    {
      status = host->ops->cast (host, &wide, &half);
      if (status == TD_OK)
        status = td__layout_upload (n, g->buffer, half.data, TD_COPY_OP, site);
    }
  free (half.data);
  return status;
}

/* Tell who records of the gradient, or mean, of array i. */
static void
tell (const Bucket *b, int i, TdRankSumKind kind, const char *place, uint64_t turn, int n_of)
{
  const TdVar *v = array_of (b, i);

  if (b->told)
    td__tell_gradient (kind, b->common->of[i].key, place, b->doubles,
                       td__size (&v->node->shape), turn, n_of);
}

static TdStatus
pack (Bucket *b, bool counts, uint64_t turn, const TdSite *site)
{
  char *place = b->numbers;
  TdStatus status = TD_OK;

  for (int i = b->first; i < b->end && status == TD_OK; i++)
    {
      const TdVar *v = array_of (b, i);
      const bool has = takes_part (v) && counts && v->grad != NULL;

      set_count (b, i, has);
      if (has)
        {
          status = copy (v->grad, place, true, site);
          tell (b, i, TD_RANK_SUM_GRADIENT, place, turn, 0);
        }
      else if (b->told && takes_part (v))
        td__tell_absent (b->common->of[i].key, v->grad != NULL);
      if (takes_part (v))
        place += (size_t)td__size (&v->node->shape) * number_bytes (b);
    }
  return status;
}

/* The gradient to write to: the one that is there, unless somebody else has its array. */
static TdVar *
gradient_to_fill (TdVar *v, const TdSite *site)
{
  TdVar *g = v->grad;
  uint16_t scaled_by = g != NULL ? g->scaled_by : 0;

  if (g != NULL && g->node->creator == NULL && g->buffer->refs == 1)
    return g;
  g = td__var_leaf ((TdDtype)v->node->dtype, &v->node->shape, v->node->device, TD_MEM_GRADIENT,
                    site);
  if (g == NULL)
    return NULL;
  td__var_ref (g, TD_HOLD_ENGINE);
  td__put_grad (v, g);
  g->scaled_by = scaled_by;
  td__var_unref (g, TD_HOLD_ENGINE);
  return g;
}

static void
divide (const Bucket *b, char *place, int64_t n, int by)
{
  double *d = (double *)(void *)place;
  float *f = (float *)(void *)place;

  for (int64_t i = 0; i < n && b->doubles; i++)
    d[i] /= by;
  for (int64_t i = 0; i < n && !b->doubles; i++)
    f[i] /= (float)by;
}

static TdStatus
unpack (const Bucket *b, int n_counting, uint64_t turn, const TdSite *site)
{
  char *place = b->numbers;
  TdStatus status = TD_OK;

  for (int i = b->first; i < b->end && status == TD_OK; i++)
    {
      TdVar *v = array_of (b, i), *g;
      int64_t n;

      if (!takes_part (v))
        continue;
      n = td__size (&v->node->shape);
      if (count_of (b, i) > 0)
        {
          divide (b, place, n, n_counting);
          tell (b, i, TD_RANK_SUM_MEAN, place, turn, n_counting);
          g = gradient_to_fill (v, site);
          status = g != NULL ? copy (g, place, false, site) : td__error_status ();
          if (g != NULL)
            td__buffer_written (g->buffer, site);
        }
      else if (v->grad != NULL) /* of this rank alone, which does not count */
        status = td__put_grad (v, NULL);
      place += (size_t)n * number_bytes (b);
    }
  return status;
}

static TdStatus
reduce (TdComm *comm, Bucket *b, bool counts, int n_counting, const TdSite *site)
{
  const int64_t n = b->n + b->end - b->first;
  char why[TD_WHY_WIRE] = "";
  TdStatus status;
  bool ok;

  b->numbers = td__xcalloc ((size_t)n, number_bytes (b));
  b->told = comm->size > 1 && td__rank_sums_wanted ();
  status = pack (b, counts, comm->seq, site);
  if (status != TD_OK)
    td__comm_abort (comm);
  ok = status == TD_OK
       && td__wait_sum (comm, b->numbers, n, b->doubles ? TD_WIRE_F64 : TD_WIRE_F32, why, site);
  if (status == TD_OK)
    status = ok ? unpack (b, n_counting, comm->seq, site) : td__comm_fail (comm, why, site);
  free (b->numbers);
  return status;
}

TdStatus
td__common_mean_gradients (TdComm *comm, const TdCommon *common, bool counts, int n_counting,
                           const TdSite *site)
{
  TdStatus status = TD_OK;

  for (int first = 0; first < common->n && status == TD_OK;)
    {
      Bucket b = bucket_from (common, first);

      status = reduce (comm, &b, counts, n_counting, site);
      first = b.end;
    }
  return status;
}

TdStatus
td_comm_allreduce_grad_at (TdComm *comm, TdLink *link, const TdSite *site)
{
  TdCommon common = { NULL, 0 };
  bool differs = false;
  TdStatus status;
  TdMeet mine;

  if (!td__comm_usable (comm, "td_comm_allreduce_grad", site))
    return td__error_status ();
  mine = td__meet_of (TD_MEET_ALLREDUCE_GRAD, NULL, site);
  if (td__link_usable (link, "td_comm_allreduce_grad", site))
    common = td__common_of (link, false);
  else
    td__meet_fail (&mine);
  mine.digest = td__common_digest (&common, true);
  status = td__meet_digest (comm, &mine, &differs, site);
  if (status == TD_OK)
    status = differs ? td__common_explain (comm, &common, TD_MEET_ALLREDUCE_GRAD, site)
                     : td__common_mean_gradients (comm, &common, true, comm->size, site);
  /* no optimizer is known here: parameters are told of as the gradients were computed with them
   */
  if (status == TD_OK && comm->size > 1 && td__rank_sums_wanted ())
    status = td__tell_parameters (&common, NULL, site);
  td__common_clear (&common);
  return status;
}

TdStatus
td_comm_allreduce_grad (TdComm *comm, TdLink *link)
{
  return td_comm_allreduce_grad_at (comm, link, NULL);
}
