/* Convolutions and what follows them, relu or a sum and relu, in a schedule on a device: done
 * by the convolution, and apart.
 *
 *   bare-ends [--small] [--seconds S] [ROW ...]
 *
 * prints one JSON object per row: times of both, how far the one is from float64, and whether
 * NaN comes through its relu.  The status is 1 where numbers are wrong or a NaN is lost.
 *
 * SPDX-License-Identifier: MIT */
#include "measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct
{
  int64_t batch, in, out, side;
  int ksize;
} Sizes;

static const Sizes timed[] = { { 64, 64, 64, 56, 3 }, { 64, 64, 256, 56, 1 } };
/* Few enough for the definition in float64. */
static const Sizes checked = { 2, 32, 64, 9, 3 };
static const Sizes smallest = { 1, 4, 6, 8, 3 };

static const struct
{
  const char *name;
  TdDtype dtype;
  bool tf32;
  double tolerance; /* of the largest number */
} kinds[] = {
  { "tf32", TD_F32, true, 2e-3 },
  { "bf16", TD_BF16, false, 2e-2 },
  { "f16", TD_F16, false, 2e-3 },
  { "f32", TD_F32, false, 1e-5 },
};
static const struct
{
  const char *name;
  bool bias, sum;
} ends[] = { { "bias_relu", true, false },
             { "relu", false, false },
             { "bias_sum_relu", true, true } };

typedef struct
{
  bool bias, sum, tf32;
  TdVar *in[4]; /* x, W, b, what is added */
  TdStatic *chain;
} Rig;

static void
code (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  const Rig *r = self;
  const int pad = (int)td_shape (in[1]).dim[2] / 2;
  TdVar *y = td_convolution_2d (in[0], in[1], r->bias ? in[2] : NULL, .pad = { pad, pad });

  (void)n_in;
  (void)n_out;
  out[0] = td_relu (r->sum ? td_add (y, in[3]) : y);
}

static TdVar *
numbers (TdShape shape, double scale, TdDtype dtype)
{
  return td_retain (td_cast (td_mul_scalar (td_randn (TD_F32, shape), scale), dtype));
}

static void
prepare (Rig *r, const Sizes *s, TdDtype dtype)
{
  const int64_t k = s->ksize;

  r->in[0] = numbers (TD_SHAPE (s->batch, s->in, s->side, s->side), 1, dtype);
  r->in[1]
      = numbers (TD_SHAPE (s->out, s->in, k, k), 1 / sqrt ((double)(s->in * k * k)), dtype);
  r->in[2] = numbers (TD_SHAPE (s->out), 1, dtype);
  r->in[3] = numbers (TD_SHAPE (s->batch, s->out, s->side, s->side), 1, dtype);
}

static void
forget (Rig *r)
{
  for (int i = 0; i < 4; i++)
    td_release (r->in[i]);
}

static TdVar *
call (Rig *r)
{
  TdVar *y = NULL;

  TD_USING (tf32, r->tf32)
    TD_NO_BACKPROP
      td_static_call (r->chain, r->in, 4, &y, 1);
  return y;
}

static void
run (void *rig)
{
  call (rig);
}

static double
time_of (const MeasureOptions *o, Rig *r, bool fuse)
{
  double us;

  r->chain = td_static_new (code, r, .fuse = fuse);
  us = measure_call (o, td_device (r->in[0]), run, r);
  td_static_free (r->chain);
  return us;
}

/* The same in float64, by the host. */
static TdVar *
by_definition (Rig *r)
{
  TdVar *in[4], *y;

  for (int i = 0; i < 4; i++)
    in[i] = td_cast (td_to_device (td_cast (r->in[i], TD_F32), td_device_get ("cpu")), TD_F64);
  code (r, in, 4, &y, 1);
  return y;
}

static float *
read_floats (TdVar *y)
{
  const size_t bytes = (size_t)td_size (y) * sizeof (float);
  float *numbers_of = malloc (bytes);

  if (numbers_of == NULL || td_read (td_cast (y, TD_F32), numbers_of, bytes) != TD_OK)
    {
      free (numbers_of);
      return NULL;
    }
  return numbers_of;
}

/* The largest difference, as a part of the largest number; *nan: NaN is where it should be. */
static double
difference (TdVar *got, TdVar *wanted, bool *nan)
{
  float *x = read_floats (got), *y = read_floats (wanted);
  double most = 0, largest = 1e-30;

  *nan = x != NULL && y != NULL;
  for (int64_t i = 0; *nan && i < td_size (got); i++)
    {
      if (isnan (x[i]) != isnan (y[i]))
        *nan = false;
      else if (!isnan (y[i]))
        {
          most = fmax (most, fabs ((double)x[i] - (double)y[i]));
          largest = fmax (largest, fabs ((double)y[i]));
        }
    }
  free (x);
  free (y);
  return most / largest;
}

/* What the second and third call give: the first traces, the second replays, the third is a
 * graph where there are any.  with_nan: a number of the bias, or of x, is NaN. */
static double
error_of (Rig *r, bool with_nan, bool *nan)
{
  const int which = r->bias ? 2 : 0;
  double most = 0;
  bool every = true;

  r->chain = td_static_new (code, r);
  if (with_nan)
    {
      TdVar *x = r->in[which];
      TdVar *ones = td_full (TD_F32, td_shape (x), 1);
      float *first = read_floats (ones);

      first[0] = NAN;
      r->in[which] = td_retain (
          td_mul (x, td_cast (td_tensor (TD_F32, td_shape (x), first), td_dtype (x))));
      free (first);
      td_release (x);
    }
  for (int i = 0; i < 3; i++)
    TD_SCOPE ("call")
      {
        const double e = difference (call (r), by_definition (r), nan);

        most = fmax (most, e);
        every = every && *nan;
      }
  *nan = every;
  td_static_free (r->chain);
  return most;
}

static bool
measure (const MeasureOptions *o, const char *name, const Sizes *sizes, int kind, int end)
{
  Rig r = { .bias = ends[end].bias, .sum = ends[end].sum, .tf32 = kinds[kind].tf32 };
  bool nan = false, finite = false, good;
  double us, apart_us, error;

  prepare (&r, o->small ? &smallest : sizes, kinds[kind].dtype);
  us = time_of (o, &r, true);
  apart_us = time_of (o, &r, false);
  forget (&r);
  prepare (&r, o->small ? &smallest : &checked, kinds[kind].dtype);
  error = error_of (&r, false, &finite);
  error_of (&r, true, &nan);
  forget (&r);
  if (td_error () != NULL)
    printf ("{\"row\": \"%s\", \"error\": \"%.300s\"}\n", name, td_error ()->message);
  else
    printf ("{\"row\": \"%s\", \"us\": %.6g, \"apart_us\": %.6g, \"difference\": %.3g, "
            "\"tolerance\": %g, \"nan_kept\": %s}\n",
            name, us, apart_us, error, kinds[kind].tolerance, nan ? "true" : "false");
  fflush (stdout);
  good = td_error () == NULL && finite && nan && error <= kinds[kind].tolerance;
  td_error_clear ();
  return good;
}

int
main (int argc, char **argv)
{
  MeasureOptions o;
  char name[64];
  bool good = true;

  td_init (&argc, &argv);
  o = measure_options (argc, argv);
  for (int kind = 0; kind < (int)(sizeof kinds / sizeof kinds[0]); kind++)
    for (int end = 0; end < (int)(sizeof ends / sizeof ends[0]); end++)
      for (int i = 0; i < (o.small ? 1 : 2); i++)
        {
          /* The CPU's kernels, behind the fake driver, know no halves here. */
          if (o.small && kinds[kind].dtype != TD_F32)
            continue;
          snprintf (name, sizeof name, "end.%s.%s.%dx%d", kinds[kind].name, ends[end].name,
                    timed[i].ksize, timed[i].ksize);
          if (measure_wanted (&o, name))
            TD_SCOPE ("row")
              good = measure (&o, name, &timed[i], kind, end) && good;
        }
  return measure_end () != 0 || !good;
}
