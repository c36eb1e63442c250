/* Times of the convolutions of ResNet-50 on a device: forward, and each of the two backward.
 *
 *   bare-convs [--small] [--seconds S] [ROW ...]
 *
 * prints one JSON object per row, with the sizes that PyTorch's time is taken of (cross.py).
 * Images are as a layer before leaves them, in whatever order of axes that is.
 *
 * SPDX-License-Identifier: MIT */
#include "measure.h"

#include "compute/core/core.h"
#include "device.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum
{
  BATCH = 64
};

typedef enum
{
  FORWARD,
  DATA,   /* backward to the images */
  FILTER, /* backward to the weights */
  N_WAYS
} Way;

typedef struct
{
  int64_t in, out, side;
  int ksize, stride;
} Shape;

/* clang-format off */
static const Shape shapes[] = {
  { 3, 64, 224, 7, 2 },  { 64, 64, 56, 1, 1 },    { 64, 64, 56, 3, 1 },  { 64, 256, 56, 1, 1 },
  { 256, 512, 56, 1, 2 }, { 128, 128, 28, 3, 1 }, { 512, 128, 28, 1, 1 }, { 256, 256, 14, 3, 1 },
  { 1024, 256, 14, 1, 1 }, { 512, 512, 7, 3, 1 },
};
/* clang-format on */
static const struct
{
  const char *name;
  TdDtype dtype;
  bool tf32;
  double goal[N_WAYS]; /* PyTorch's time over ours, at least; 0: none */
} kinds[] = {
  { "tf32", TD_F32, true, { 0.95, 0.90, 0.90 } },
  { "bf16", TD_BF16, false, { 0.95, 0.90, 0.90 } },
  { "f32", TD_F32, false, { 0, 0, 0 } },
};
static const char *const ways[] = { "forward", "data", "filter" };

typedef struct
{
  Shape s;
  int64_t batch;
  bool tf32;
  TdVar *x, *W, *y, *slope;
} Rig;

/* What a convolution of 1 x 1 makes of random numbers. */
static TdVar *
made_by_a_layer (int64_t batch, int64_t channels, int64_t side, TdDtype dtype)
{
  TdVar *x = td_cast (td_randn (TD_F32, TD_SHAPE (batch, channels, side, side)), dtype);
  TdVar *W = td_mul_scalar (td_randn (TD_F32, TD_SHAPE (channels, channels, 1, 1)),
                            1 / sqrt ((double)channels));

  return td_retain (td_convolution_2d (x, td_cast (W, dtype), NULL));
}

static TdVar *
convolve (Rig *r)
{
  return td_convolution_2d (r->x, r->W, NULL, .stride = { r->s.stride, r->s.stride },
                            .pad = { r->s.ksize / 2, r->s.ksize / 2 });
}

static void
run_forward (void *rig)
{
  Rig *r = rig;

  TD_USING (tf32, r->tf32)
    TD_NO_BACKPROP
      convolve (r);
}

/* Backward alone, to what wants a gradient; the graph stays. */
static void
run_backward (void *rig)
{
  Rig *r = rig;

  td_cleargrad (r->x);
  td_cleargrad (r->W);
  td_set_grad (r->y, r->slope);
  TD_USING (tf32, r->tf32)
    td_backward (r->y, 0);
}

static void
prepare (Rig *r, TdDtype dtype, Way way)
{
  const int64_t k = r->s.ksize, to = (r->s.side + 2 * (k / 2) - k) / r->s.stride + 1;

  TD_NO_BACKPROP
    {
      r->x = made_by_a_layer (r->batch, r->s.in, r->s.side, dtype);
      r->W = td_mul_scalar (td_randn (TD_F32, TD_SHAPE (r->s.out, r->s.in, k, k)),
                            1 / sqrt ((double)(r->s.in * k * k)));
      r->W = td_retain (td_cast (r->W, dtype));
      if (way != FORWARD)
        r->slope = made_by_a_layer (r->batch, r->s.out, to, dtype);
    }
  if (way == DATA)
    td_variable (r->x, "x");
  if (way == FILTER)
    td_variable (r->W, "W");
  if (way != FORWARD)
    TD_USING (tf32, r->tf32)
      r->y = td_retain (convolve (r));
}

static void
forget (Rig *r)
{
  TdVar *held[] = { r->x, r->W, r->y, r->slope };

  for (int i = 0; i < TD_ARRAY_LENGTH (held); i++)
    if (held[i] != NULL)
      td_release (held[i]);
}

static void
measure (const MeasureOptions *o, const char *name, const Shape *shape, int kind, Way way)
{
  TdDevice *d = td_device (td_zeros (TD_F32, TD_SHAPE (1)));
  Rig r = { .s = *shape, .batch = o->small ? 1 : BATCH, .tf32 = kinds[kind].tf32 };
  double us;
  int64_t to;

  if (o->small)
    r.s = (Shape){ 4, 6, 8, shape->ksize, shape->stride };
  to = (r.s.side + 2 * (r.s.ksize / 2) - r.s.ksize) / r.s.stride + 1;
  d->algorithm = NULL;
  prepare (&r, kinds[kind].dtype, way);
  us = measure_call (o, d, way == FORWARD ? run_forward : run_backward, &r);
  if (td_error () == NULL)
    printf ("{\"row\": \"%s\", \"us\": %.6g, \"flops\": %.0f, \"torch_goal\": %g, \"conv\": "
            "[%d, %d, %d, %d, %d, %d], \"algorithm\": \"%s\"}\n",
            name, us,
            2.0 * (double)(r.batch * r.s.in * r.s.out)
                * (double)(r.s.ksize * r.s.ksize * to * to),
            kinds[kind].goal[way], (int)r.batch, (int)r.s.in, (int)r.s.out, (int)r.s.side,
            r.s.ksize, r.s.stride, d->algorithm != NULL ? d->algorithm : "");
  else
    printf ("{\"row\": \"%s\", \"error\": \"%.300s\"}\n", name, td_error ()->message);
  fflush (stdout);
  td_error_clear ();
  forget (&r);
  td_pool_trim (d);
}

/* float32 without tensor cores is exact and no goal: a few rows of it show what that costs. */
static bool
is_left_out (const MeasureOptions *o, int kind, size_t shape)
{
  if (o->small) /* the CPU's kernels, behind the fake driver, know no bf16 */
    return shape != 2 || kinds[kind].dtype != TD_F32;
  return kind == 2 && shape != 2 && shape != 7;
}

int
main (int argc, char **argv)
{
  MeasureOptions o;
  char name[64];

  td_init (&argc, &argv);
  o = measure_options (argc, argv);
  for (int kind = 0; kind < TD_ARRAY_LENGTH (kinds); kind++)
    for (size_t i = 0; i < TD_ARRAY_LENGTH (shapes); i++)
      for (int way = FORWARD; way < N_WAYS && !is_left_out (&o, kind, i); way++)
        {
          const Shape *s = &shapes[i];

          snprintf (name, sizeof name, "conv.%s.%d_%d_%dx%d_s%d_%d.%s", kinds[kind].name,
                    (int)s->in, (int)s->out, s->ksize, s->ksize, s->stride, (int)s->side,
                    ways[way]);
          if (measure_wanted (&o, name))
            TD_SCOPE ("row")
              measure (&o, name, s, kind, (Way)way);
        }
  return measure_end ();
}
