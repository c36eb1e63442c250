/* Packing, sending and unpacking of buckets: see buckets.h.
 *
 * SPDX-License-Identifier: MIT */
#include "buckets.h"
#include "host-memory.h"

#include "compute/core/copies.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the layout --- */

static TdVar *
array_of (const TdCommon *common, int i)
{
  return common->of[i].param->var;
}

static bool
is_double (const TdVar *v)
{
  return v->node->dtype == TD_F64;
}

/* TD_PARAM_TRAINED ones are of floating point. */
int64_t
td__bucket_size_of (const TdVar *v)
{
  return v != NULL && v->node->device->computes ? td__size (&v->node->shape) : 0;
}

/* The bucket that ends before array `end`. */
static TdBucket
bucket_before (const TdCommon *common, const TdMean *how, int end)
{
  TdBucket b = { .first = end, .end = end, .dtype = TD_F32 };

  while (b.first > 0)
    {
      const TdVar *v = array_of (common, b.first - 1);
      const int64_t n = td__bucket_size_of (v);
      const TdDtype dtype = n > 0 && is_double (v) ? TD_F64 : TD_F32;

      if (n > 0 && b.n > 0 && (dtype != b.dtype || b.n + n > how->bucket))
        break;
      if (n > 0)
        b.dtype = dtype;
      b.n += n;
      b.first--;
    }
  b.sent_as = how->sent_as == TD_F32 ? b.dtype : how->sent_as;
  b.far = how->far;
  b.n_here = b.far == NULL ? b.n : 0;
  b.n_far = b.far != NULL ? td__far_bucket_room (common, b.first, b.end) : 0;
  return b;
}

TdBucket *
td__buckets_of (const TdCommon *common, const TdMean *how, int *n)
{
  TdBucket *buckets = NULL;

  *n = 0;
  for (int end = common->n; end > 0; end = buckets[*n - 1].first)
    {
      buckets = td__xrealloc (buckets, (size_t)(*n + 1) * sizeof *buckets);
      buckets[*n] = bucket_before (common, how, end);
      ++*n;
    }
  return buckets;
}

static int64_t
count (const TdBucket *b)
{
  return b->n_here + b->end - b->first + 1;
}

static size_t
number_bytes (const TdBucket *b)
{
  return td__dtype_sizes[b->dtype];
}

/* Are the host's numbers sent as others than they are? */
static bool
is_thin (const TdBucket *b)
{
  return b->far == NULL && b->sent_as != b->dtype;
}

size_t
td__bucket_bytes (const TdBucket *b)
{
  const size_t here = (size_t)count (b) * td__dtype_sizes[is_thin (b) ? b->sent_as : b->dtype];

  return here + (size_t)b->n_far * td__dtype_sizes[b->sent_as];
}

/* The place of array i. */
static char *
place_of (const TdBucket *b, const TdCommon *common, int i)
{
  int64_t before = 0;

  for (int k = b->first; k < i; k++)
    before += td__bucket_size_of (array_of (common, k));
  return b->numbers + (size_t)before * number_bytes (b);
}

/* Number i of those behind the gradients. */
static double
behind (const TdBucket *b, int i)
{
  const char *at = b->numbers + (size_t)(b->n_here + i) * number_bytes (b);
  double d;
  float f;

  if (b->dtype == TD_F64)
    {
      memcpy (&d, at, sizeof d);
      return d;
    }
  memcpy (&f, at, sizeof f);
  return (double)f;
}

static void
set_behind (const TdBucket *b, int i, double number)
{
  char *at = b->numbers + (size_t)(b->n_here + i) * number_bytes (b);
  const float f = (float)number;

  if (b->dtype == TD_F64)
    memcpy (at, &number, sizeof number);
  else
    memcpy (at, &f, sizeof f);
}

void
td__bucket_open (TdBucket *b, bool told, const TdSite *site)
{
  b->numbers = td__xcalloc ((size_t)count (b), number_bytes (b));
  b->sent = is_thin (b) ? td__xcalloc (1, td__bucket_bytes (b)) : b->numbers;
  b->told = told ? td__xcalloc ((size_t)(b->end - b->first) + 1, sizeof *b->told) : NULL;
  if (b->far != NULL)
    td__far_bucket_open (b, site);
}

void
td__bucket_close (TdBucket *b, const TdTransport *transport)
{
  if (b->far != NULL)
    td__far_bucket_close (b);
  if (b->sent != b->numbers)
    free (b->numbers);
  if (b->sum != NULL)
    transport->sum_drop (b->sum, b->sent);
  else
    free (b->sent);
  free (b->told);
  b->numbers = b->sent = NULL;
  b->told = NULL;
  b->sum = NULL;
}

/* --- in and out --- */

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

enum
{
  PIECE = 32 * TD_SUM_BLOCK /* bytes, which stay in the cache till they are summed */
};

/* Pack, and sum what is packed; an array of the host as it goes by. */
static TdStatus
pack (const TdVar *g, char *place, TdSummer *sum, const TdSite *site)
{
  const TdNode *node = g->node;
  const size_t n = (size_t)td__size (&node->shape) * td__dtype_sizes[sum->dtype];
  const bool by = node->device->number == 0 && node->layout == TD_ROW_MAJOR
                  && (TdDtype)node->dtype == sum->dtype;
  TdStatus status = by ? TD_OK : copy (g, place, true, site);

  for (size_t done = 0, size; done < n; done += size)
    {
      size = n - done < PIECE ? n - done : PIECE;
      if (by)
        memcpy (place + done, (const char *)g->buffer->data + done, size);
      td__summer_add (sum, place + done, size);
    }
  return status;
}

static bool
is_finite (const TdBucket *b, const char *place, int64_t n)
{
  const double *d = (const double *)(const void *)place;
  const float *f = (const float *)(const void *)place;
  bool finite = true;

  for (int64_t i = 0; i < n && b->dtype == TD_F64; i++)
    finite &= isfinite (d[i]) != 0;
  for (int64_t i = 0; i < n && b->dtype != TD_F64; i++)
    finite &= isfinite (f[i]) != 0;
  return finite;
}

TdStatus
td__bucket_put (TdBucket *b, const TdCommon *common, int i, const TdVar *gradient,
                bool left_out, uint64_t turn, const TdSite *site)
{
  const int64_t n = td__bucket_size_of (array_of (common, i));
  char *place = b->far == NULL ? place_of (b, common, i) : NULL;
  TdRankSum *told = b->told != NULL && n > 0 ? &b->told[i - b->first] : NULL;
  TdStatus status = TD_OK;
  char *read = NULL;
  TdSummer sum;

  if (gradient == NULL || n == 0)
    {
      if (told != NULL)
        *told
            = (TdRankSum){ .kind = TD_RANK_SUM_GRADIENT, .absent = true, .left_out = left_out };
      return TD_OK;
    }
  if (b->far != NULL)
    status = td__far_bucket_copy (b, common, i, gradient, true, site);
  if (b->far != NULL && told != NULL && status == TD_OK) /* sums are made by the host */
    place = read = td__xmalloc ((size_t)n * number_bytes (b));
  if (told != NULL && status == TD_OK)
    {
      td__summer_begin (&sum, b->dtype);
      status = pack (gradient, place, &sum, site);
      *told = td__sum_of_gradient (TD_RANK_SUM_GRADIENT, &sum, place, n, turn);
      if (told->not_finite > 0)
        told->written = td__sum_maker (gradient);
    }
  else if (b->far == NULL)
    status = copy (gradient, place, true, site);
  free (read);
  set_behind (b, i - b->first, 1);
  if (is_thin (b) && !is_finite (b, place, n))
    set_behind (b, b->end - b->first, 1);
  return status;
}

static const TdWireKind wire_kinds[TD__N_DTYPES] = { [TD_F32] = TD_WIRE_F32,
                                                     [TD_F64] = TD_WIRE_F64,
                                                     [TD_F16] = TD_WIRE_F16,
                                                     [TD_BF16] = TD_WIRE_BF16 };

/* Between numbers and what is sent, where that is not the same array. */
static bool
convert (const TdBucket *b, bool narrow)
{
  TdDevice *host = td__device_at (0);
  TdShape shape = TD_SHAPE (count (b));
  const TdTensor wide = { b->numbers, &shape, count (b), b->dtype };
  const TdTensor thin = { b->sent, &shape, count (b), b->sent_as };
  TdTensor to = narrow ? thin : wide;

  return !is_thin (b) || host->ops->cast (host, narrow ? &wide : &thin, &to) == TD_OK;
}

/* What a device could not do, as the transport says such things. */
static bool
of_device (char *why)
{
  snprintf (why, TD_WHY_WIRE, "%.250s",
            td__engine.has_error ? td__engine.error.message : "the device has failed");
  return false;
}

bool
td__bucket_send (TdBucket *b, TdComm *comm, TdWire *wire, char *why)
{
  if (!convert (b, true))
    return false;
  b->sum = comm->transport->sum_begin (wire, b->sent, count (b),
                                       wire_kinds[is_thin (b) ? b->sent_as : b->dtype], why);
  if (b->sum == NULL || b->far == NULL || td__far_bucket_send (b, NULL) == TD_OK)
    return b->sum != NULL;
  return of_device (why);
}

bool
td__bucket_test (const TdBucket *b, const TdTransport *transport)
{
  return transport->sum_test (b->sum)
         && (b->mark == NULL || b->far->device->ops->teams->passed (b->far->device, b->mark));
}

bool
td__bucket_receive (TdBucket *b, const TdComm *comm, char *why)
{
  TdWireSum *sum = b->sum;

  b->sum = NULL;
  if (!comm->transport->sum_end (sum, why) || !convert (b, false))
    return false;
  return b->far == NULL || td__far_bucket_receive (b) == TD_OK || of_device (why);
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
divide (const TdBucket *b, char *place, int64_t n, int by, float factor)
{
  double *d = (double *)(void *)place;
  float *f = (float *)(void *)place;

  for (int64_t i = 0; i < n && b->dtype == TD_F64; i++)
    d[i] = d[i] / by * (double)factor;
  for (int64_t i = 0; i < n && b->dtype != TD_F64; i++)
    f[i] = f[i] / (float)by * factor;
}

/* And sum what comes of it. */
static void
divide_and_sum (const TdBucket *b, char *place, int64_t n, int by, float factor, TdSummer *sum)
{
  const int64_t size = (int64_t)number_bytes (b), piece = PIECE / size;

  for (int64_t done = 0, some; done < n; done += some)
    {
      some = n - done < piece ? n - done : piece;
      divide (b, place + done * size, some, by, factor);
      td__summer_add (sum, place + done * size, (size_t)(some * size));
    }
}

/* All were finite, and the sum is not. */
static TdStatus
say_overflow (const TdComm *comm, const TdBucket *b, const char *key, const TdSite *site)
{
  return td__fail (TD_ERR_NUMERIC, "td_opt_update", site,
                   "rank %d of %d: the sum of the gradients of %.200s does not fit %s: send "
                   "them as %s, or use td_opt_loss_scaling, which leaves such an update out",
                   comm->rank, comm->size, key, td_dtype_name (b->sent_as),
                   b->sent_as == TD_F16 ? "bf16" : "f32");
}

static void
tell (const TdBucket *b, const TdCommon *common, int i, const char *place, int n_counting,
      const TdMean *how, const TdSummer *summed)
{
  TdRankSum sum = b->told[i - b->first];
  const bool mean = behind (b, i - b->first) > 0;

  sum.path = common->of[i].key;
  td__tell_sum (&sum);
  if (!mean)
    return;
  sum = td__sum_of_gradient (TD_RANK_SUM_MEAN, summed, place,
                             td__bucket_size_of (array_of (common, i)), how->turn);
  sum.path = common->of[i].key;
  sum.n_averaged = n_counting;
  sum.half = b->sent_as != b->dtype;
  td__tell_sum (&sum);
}

/* The mean of array i, which is on a device, as it is told of. */
static TdStatus
tell_far (const TdBucket *b, const TdCommon *common, int i, int n_counting, const TdMean *how,
          const TdSite *site)
{
  const size_t bytes
      = (size_t)td__bucket_size_of (array_of (common, i)) * td__dtype_sizes[b->dtype];
  char *place = td__xmalloc (bytes);
  TdStatus status = TD_OK;
  TdSummer sum;

  td__summer_begin (&sum, b->dtype);
  if (behind (b, i - b->first) > 0)
    status = td__far_bucket_read (b, common, i, place, site);
  if (behind (b, i - b->first) > 0 && status == TD_OK)
    td__summer_add (&sum, place, bytes);
  if (status == TD_OK)
    tell (b, common, i, place, n_counting, how, &sum);
  free (place);
  return status;
}

/* Make the mean of array i, which some rank has, in its place. */
static void
make_mean (const TdBucket *b, char *place, int64_t n, int n_counting, float factor,
           TdSummer *sum)
{
  td__summer_begin (sum, b->dtype);
  if (b->told != NULL)
    divide_and_sum (b, place, n, n_counting, factor, sum);
  else
    divide (b, place, n, n_counting, factor);
}

/* Put it where v's gradient is. */
static TdStatus
put_mean (const TdBucket *b, const TdCommon *common, int i, char *place, const TdSite *site)
{
  TdVar *g = gradient_to_fill (array_of (common, i), site);
  TdStatus status;

  if (g == NULL)
    return td__error_status ();
  status = b->far != NULL ? td__far_bucket_copy (b, common, i, g, false, site)
                          : copy (g, place, false, site);
  td__buffer_written (g->buffer, site);
  return status;
}

TdStatus
td__bucket_take (TdBucket *b, TdComm *comm, const TdCommon *common, const TdMean *how,
                 int n_counting, float factor, const TdSite *site)
{
  const bool watched = is_thin (b) && behind (b, b->end - b->first) == 0 && !how->may_overflow;
  char *place = b->numbers;
  TdStatus status = TD_OK;
  TdSummer sum;
  int lost = -1;

  if (b->far != NULL)
    status = td__far_bucket_mean (b, comm, common, how, n_counting, factor, &lost, site);
  if (lost >= 0)
    return say_overflow (comm, b, common->of[lost].key, site);
  for (int i = b->first; i < b->end && status == TD_OK; i++)
    {
      TdVar *v = array_of (common, i);
      const int64_t n = td__bucket_size_of (v);
      const bool here = n > 0 && b->far == NULL, there = n > 0 && behind (b, i - b->first) > 0;

      if (here && there)
        make_mean (b, place, n, n_counting, factor, &sum);
      if (here && there && watched && !is_finite (b, place, n))
        return say_overflow (comm, b, common->of[i].key, site);
      if (there)
        status = put_mean (b, common, i, place, site);
      else if (n > 0 && v->grad != NULL) /* of this rank alone, which does not count */
        status = td__put_grad (v, NULL);
      if (here && b->told != NULL)
        tell (b, common, i, place, n_counting, how, &sum);
      else if (n > 0 && b->told != NULL && status == TD_OK)
        status = tell_far (b, common, i, n_counting, how, site);
      if (here)
        place += (size_t)n * number_bytes (b);
    }
  return status;
}
