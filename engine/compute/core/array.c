/* Arrays from and to the host: creators, reads and writes.
 *
 * SPDX-License-Identifier: MIT */
#include "copies.h"
#include "async-index.h"
#include "before-write.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static TdTensor
tensor_of (const TdVar *v)
{
  return (TdTensor){ v->buffer->data, &v->node->shape, td_shape_size (&v->node->shape),
                     (TdDtype)v->node->dtype };
}

/* A new input array; device NULL is the default one.  NULL after an error. */
static TdVar *
new_input_on (TdDevice *device, TdDtype dtype, const TdShape *shape, const TdSite *site)
{
  if (!td__ensure_started () || td__check_thread ("td_tensor") != TD_OK)
    return NULL;
  return td__var_leaf (dtype, shape, device != NULL ? device : td__engine.device, TD_MEM_INPUT,
                       site);
}

static TdVar *
new_input (TdDtype dtype, const TdShape *shape, const TdSite *site)
{
  return new_input_on (NULL, dtype, shape, site);
}

static TdVar *
finish (TdVar *v, TdStatus status)
{
  td__scope_add (v);
  return status == TD_OK ? v : td__poison ();
}

static inline TdVar *
traced (TdVar *v, TdTraceArray how)
{
  TdTracer *t = td__engine.tracer;

  if (TD_UNLIKELY (t != NULL) && v->state == TD_VAR_LIVE)
    t->array (t, v, &how);
  return v;
}

/* Take v, a new input, into the scope with the host's numbers, or zeros. */
static TdVar *
fill_from (TdVar *v, const void *host, TdCopyWhy why, const TdSite *site)
{
  const TdDeviceOps *ops;

  if (v == NULL)
    return td__poison ();
  ops = v->node->device->ops;
  if (!v->node->device->computes)
    return finish (v, TD_OK);
  return finish (v, host != NULL
                        ? td__copy_in_new (v->buffer, host, why, v->node, site)
                        : ops->zero (v->node->device, v->buffer->data, v->buffer->bytes));
}

static TdVar *
filled (TdVar *v, const void *host, TdCopyWhy why, const TdSite *site)
{
  return traced (fill_from (v, host, why, site),
                 (TdTraceArray){ .origin = host != NULL ? TD_ARRAY_UPLOAD : TD_ARRAY_FILL });
}

TdVar *
td__tensor_for (TdCopyWhy why, TdDtype dtype, const TdShape *shape, const void *host,
                const TdSite *site)
{
  return filled (new_input (dtype, shape, site), host, why, site);
}

TdVar *
td__tensor_drawn (TdDtype dtype, const TdShape *shape, const void *host, const TdSite *site)
{
  return traced (fill_from (new_input (dtype, shape, site), host, TD_COPY_NEW, site),
                 (TdTraceArray){ .origin = TD_ARRAY_UPLOAD, .drawn = true });
}

TdVar *
td_tensor_at (TdDtype dtype, TdShape shape, const void *host, const TdSite *site)
{
  return td__tensor_for (TD_COPY_NEW, dtype, &shape, host, site);
}

TdVar *
td__tensor_of_block (TdDtype dtype, const TdShape *shape, TdDevice *device, TdBlock *block,
                     const TdSite *site)
{
  size_t bytes = (size_t)td_shape_size (shape) * td_dtype_bytes (dtype);
  TdVar *v = td__var_of (dtype, shape, td__buffer_of (device, block, bytes), site);

  /* It was sent before, for this. */
  td__copy_notify (&(TdCopy){ .device = device,
                              .bytes = bytes,
                              .node = v->node,
                              .site = site,
                              .way = TD_COPY_TO_DEVICE,
                              .why = TD_COPY_BATCH });
  return traced (finish (v, TD_OK), (TdTraceArray){ .origin = TD_ARRAY_UPLOAD });
}

TdVar *(td_tensor)(TdDtype dtype, TdShape shape, const void *host)
{
  return td_tensor_at (dtype, shape, host, NULL);
}

TdVar *
td_zeros (TdDtype dtype, TdShape shape)
{
  return td_tensor_at (dtype, shape, NULL, NULL);
}

/* Does a dtype of whole numbers reach as far?  What is behind the point is cut off, as in
 * NumPy; what is too large is refused, as there. */
static bool
reaches (TdDtype dtype, double value, const char *call)
{
  static const struct
  {
    double first, end; /* both 0: any number */
  } range[TD_BOOL + 1] = {
    [TD_I32] = { -0x1p31, 0x1p31 }, [TD_I64] = { -0x1p63, 0x1p63 }, [TD_U8] = { 0, 256 }
  };

  if ((unsigned)dtype > TD_BOOL || range[dtype].end == 0
      || (trunc (value) >= range[dtype].first && trunc (value) < range[dtype].end))
    return true;
  td__fail (TD_ERR_ARG, call, NULL, "a number that %s has expected, got %g",
            td__dtype_short_names[dtype], value);
  return false;
}

TdVar *
td_full (TdDtype dtype, TdShape shape, double value)
{
  TdVar *v = reaches (dtype, value, "td_full") ? new_input (dtype, &shape, NULL) : NULL;
  TdTensor t;

  if (v == NULL)
    return td__poison ();
  t = tensor_of (v);
  finish (v, v->node->device->computes ? v->node->device->ops->fill (v->node->device, &t, value)
                                       : TD_OK);
  return traced (v, (TdTraceArray){ .origin = TD_ARRAY_FILL, .a = value });
}

TdVar *
td_ones (TdDtype dtype, TdShape shape)
{
  return td_full (dtype, shape, 1.0);
}

TdVar *
td_zeros_like (TdVar *v)
{
  return td__var_usable (v, "td_zeros_like", NULL) ? filled (
             new_input_on (v->node->device, (TdDtype)v->node->dtype, &v->node->shape, NULL),
             NULL, TD_COPY_NEW, NULL)
                                                   : td__poison ();
}

TdVar *
td_arange (TdDtype dtype, double start, double stop, double step)
{
  double n = ceil ((stop - start) / step);
  TdShape shape = { 1, { n > 0 ? (int64_t)n : 0 } };
  TdVar *v;
  TdTensor t;

  if (!(step != 0) || !(n < 1e15))
    {
      td__fail (TD_ERR_ARG, "td_arange", NULL, "a step of %g from %g to %g has no end", step,
                start, stop);
      return td__poison ();
    }
  if (n > 0
      && !(reaches (dtype, start, "td_arange")
           && reaches (dtype, start + (n - 1) * step, "td_arange")))
    return td__poison ();
  v = new_input (dtype, &shape, NULL);
  if (v == NULL)
    return td__poison ();
  t = tensor_of (v);
  finish (v, v->node->device->computes
                 ? v->node->device->ops->arange (v->node->device, &t, start, step)
                 : TD_OK);
  return traced (v, (TdTraceArray){ .origin = TD_ARRAY_ARANGE, .a = start, .b = step });
}

static TdVar *
random_array (TdDtype dtype, const TdShape *shape, TdRandomKind kind)
{
  TdVar *v = new_input (dtype, shape, NULL);
  TdTensor t;
  TdRngKey key;

  if (v == NULL)
    return td__poison ();
  t = tensor_of (v);
  key = td__rng_take ((uint64_t)t.size);
  if (!v->node->device->computes
      || v->node->device->ops->random (v->node->device, kind, key, 0, &t) == TD_OK)
    return traced (
        finish (v, TD_OK),
        (TdTraceArray){ .origin = TD_ARRAY_RANDOM, .random_kind = (int)kind, .key = key });
  td__fail (TD_ERR_DTYPE, kind == TD_RANDOM_NORMAL ? "td_randn" : "td_rand", NULL,
            "random numbers come as f32 or f64, not %s", td_dtype_name (dtype));
  return finish (v, TD_ERR_DTYPE);
}

TdVar *
td_randn (TdDtype dtype, TdShape shape)
{
  return random_array (dtype, &shape, TD_RANDOM_NORMAL);
}

TdVar *
td_rand (TdDtype dtype, TdShape shape)
{
  return random_array (dtype, &shape, TD_RANDOM_UNIFORM);
}

/* A place in the stream: n numbers take (n + 3) / 4 Philox blocks (two per normal in f64). */
TdRngKey
td__rng_take (uint64_t n_numbers)
{
  TdEngine *e = &td__engine;
  TdRngKey key = { e->rng_seed, e->rng_offset };

  e->rng_offset += (n_numbers + 1) / 2 + 1;
  if (TD_UNLIKELY (e->tracer != NULL))
    e->tracer->random (e->tracer, key.offset, e->rng_offset - key.offset);
  return key;
}

void
td_set_seed (uint64_t seed)
{
  td__ensure_started ();
  if (td__stranger ("td_set_seed"))
    return;
  td__engine.rng_seed = seed;
  td__engine.rng_offset = 0;
  if (td__engine.tracer != NULL)
    td__engine.tracer->refuse (td__engine.tracer, "td_set_seed", NULL);
}

/* Element i of host memory, as a double. */
double
td__host_element (const void *host, TdDtype dtype, int64_t i)
{
  switch (dtype)
    {
    case TD_F32:
      return (double)((const float *)host)[i];
    case TD_F64:
      return ((const double *)host)[i];
    case TD_I32:
      return (double)((const int32_t *)host)[i];
    case TD_I64:
      return (double)((const int64_t *)host)[i];
    case TD_U8:
    case TD_BOOL:
      return (double)((const uint8_t *)host)[i];
    case TD_BF16:
      {
        uint32_t bits = (uint32_t)((const uint16_t *)host)[i] << 16;
        float f;

        memcpy (&f, &bits, sizeof f);
        return (double)f;
      }
    case TD_F16:
      {
        uint16_t h = ((const uint16_t *)host)[i];
        int exponent = h >> 10 & 31, mantissa = h & 1023;
        double value = exponent == 31  ? (mantissa != 0 ? (double)NAN : (double)INFINITY)
                       : exponent == 0 ? ldexp (mantissa, -24)
                                       : ldexp (mantissa + 1024, exponent - 25);

        return h >> 15 ? -value : value;
      }
    default:
      return (double)NAN;
    }
}

/* Bring a whole array to the host, recorded as a host read. */
static TdStatus
host_read (const TdVar *v, void *host, const char *call, const TdSite *site)
{
  TdEngine *e = &td__engine;
  TdDevice *d = v->node->device;
  TdStatus status;

  if (!d->computes)
    return td__fail (TD_ERR_DEVICE, call, site, "device %s keeps no values to read", d->name);
  if (TD_UNLIKELY (e->observer != NULL))
    e->observer->host_read (e->observer, v->node, site != NULL ? site : e->site);
  if (TD_UNLIKELY (e->tracer != NULL))
    e->tracer->host_read (e->tracer, v, site != NULL ? site : e->site);
  status = td__layout_download (v->node, v->buffer, host, TD_COPY_READ, site);
  return status == TD_OK ? td__index_raise () : status;
}

double
td_item_at (const TdVar *v, const TdSite *site)
{
  char text[16], shape[160];

  if (!td__var_usable (v, "td_item", site))
    return (double)NAN;
  if (td_shape_size (&v->node->shape) != 1)
    {
      td__fail (TD_ERR_SHAPE, "td_item", site, "one element expected, got shape %s",
                td_shape_text (&v->node->shape, shape, sizeof shape));
      return (double)NAN;
    }
  if (host_read (v, text, "td_item", site) != TD_OK)
    return (double)NAN;
  return td__host_element (text, (TdDtype)v->node->dtype, 0);
}

double (td_item) (const TdVar *v)
{
  return td_item_at (v, NULL);
}

double
td_mean_of_at (const TdVar *v, const TdSite *site)
{
  double sum = 0;
  int64_t n;
  void *host;

  if (!td__var_usable (v, "td_mean_of", site))
    return (double)NAN;
  n = td_shape_size (&v->node->shape);
  host = malloc (v->buffer->bytes + 1);
  if (host == NULL || host_read (v, host, "td_mean_of", site) != TD_OK)
    {
      free (host);
      return (double)NAN;
    }
  for (int64_t i = 0; i < n; i++)
    sum += td__host_element (host, (TdDtype)v->node->dtype, i);
  free (host);
  return sum / (double)n;
}

double (td_mean_of) (const TdVar *v)
{
  return td_mean_of_at (v, NULL);
}

TdStatus
td_read_at (const TdVar *v, void *host, size_t bytes, const TdSite *site)
{
  if (!td__var_usable (v, "td_read", site))
    return td__engine.has_error ? td__engine.error.status : TD_ERR_STATE;
  if (bytes != v->buffer->bytes)
    return td__fail (TD_ERR_ARG, "td_read", site, "the array has %zu bytes, not %zu",
                     v->buffer->bytes, bytes);
  if (host == NULL && bytes > 0)
    return td__fail (TD_ERR_ARG, "td_read", site, "a place for %zu bytes expected, got NULL",
                     bytes);
  return host_read (v, host, "td_read", site);
}

TdStatus (td_read) (const TdVar *v, void *host, size_t bytes)
{
  return td_read_at (v, host, bytes, NULL);
}

TdStatus
td__write_for (TdCopyWhy why, TdVar *v, const void *host, size_t bytes, const TdSite *site)
{
  TdEngine *e = &td__engine;
  TdDevice *d;

  if (!td__var_usable (v, "td_write", site))
    return e->has_error ? e->error.status : TD_ERR_STATE;
  if (bytes != v->buffer->bytes)
    return td__fail (TD_ERR_ARG, "td_write", site, "the array has %zu bytes, not %zu",
                     v->buffer->bytes, bytes);
  if (host == NULL && bytes > 0)
    return td__fail (TD_ERR_ARG, "td_write", site, "%zu bytes expected, got NULL", bytes);
  d = v->node->device;
  if (TD_UNLIKELY (e->tracer != NULL))
    e->tracer->refuse (e->tracer, "td_write", site);
  td__will_be_written (v->buffer);
  td__buffer_written (v->buffer, site);
  if (e->observer != NULL)
    e->observer->write (e->observer, v->node, site != NULL ? site : e->site);
  return d->computes ? td__layout_upload (v->node, v->buffer, host, why, site) : TD_OK;
}

TdStatus
td_write_at (TdVar *v, const void *host, size_t bytes, const TdSite *site)
{
  return td__write_for (TD_COPY_WRITE, v, host, bytes, site);
}

TdStatus (td_write) (TdVar *v, const void *host, size_t bytes)
{
  return td_write_at (v, host, bytes, NULL);
}
