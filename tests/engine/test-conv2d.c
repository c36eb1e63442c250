/* Convolution kernels in f32 against the definition in f64, and the definition against numbers
 * worked out by hand.
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compute/cpu/conv.h"
#include "compute/cpu/cpu.h"

typedef struct
{
  int64_t n, c, h, w, o, kh, kw;
  int sy, sx, py, px, dy, dx, groups;
  int overhang; /* extra output rows and columns, as cover_all asks for */
} Case;

static const Case cases[] = {
  { 1, 1, 3, 3, 1, 2, 2, 1, 1, 0, 0, 1, 1, 1, 0 },
  { 3, 1, 28, 28, 20, 5, 5, 1, 1, 0, 0, 1, 1, 1, 0 },  /* LeNet's first */
  { 2, 20, 12, 12, 50, 5, 5, 1, 1, 0, 0, 1, 1, 1, 0 }, /* and second */
  { 2, 8, 9, 11, 7, 3, 3, 1, 1, 1, 1, 1, 1, 1, 0 },    /* padded */
  { 2, 3, 13, 10, 5, 3, 2, 2, 3, 2, 1, 1, 1, 1, 0 },   /* strided */
  { 2, 4, 12, 12, 6, 3, 3, 1, 1, 2, 2, 2, 2, 1, 0 },   /* dilated */
  { 2, 6, 8, 8, 9, 3, 3, 1, 1, 1, 1, 1, 1, 3, 0 },     /* groups */
  { 1, 5, 7, 7, 5, 3, 3, 1, 1, 1, 1, 1, 1, 5, 0 },     /* depthwise */
  { 2, 16, 7, 9, 12, 1, 1, 1, 1, 0, 0, 1, 1, 1, 0 },   /* 1 x 1 */
  { 2, 2, 8, 9, 3, 3, 3, 2, 2, 0, 0, 1, 1, 1, 1 },     /* window over the edge */
  { 1, 3, 40, 1, 4, 5, 1, 1, 1, 2, 0, 1, 1, 1, 0 },    /* one column */
  { 9, 2, 30, 30, 3, 3, 3, 1, 1, 1, 1, 1, 1, 1, 0 },   /* more images than chunks */
  { 1, 1, 40, 40, 2, 37, 37, 1, 1, 0, 0, 1, 1, 1, 0 }, /* window rows longer than a panel */
  /* Channels in blocks of 16, which oneDNN computes where the build has it. */
  { 3, 16, 9, 11, 32, 3, 3, 1, 1, 1, 1, 1, 1, 1, 0 },   /* padded */
  { 5, 32, 13, 10, 16, 3, 2, 2, 3, 2, 1, 1, 1, 1, 0 },  /* strided, the window overhangs */
  { 11, 16, 12, 12, 16, 3, 3, 1, 1, 2, 2, 2, 2, 1, 0 }, /* dilated, chunks of two sizes */
  { 2, 32, 8, 8, 32, 3, 3, 1, 1, 1, 1, 1, 1, 2, 0 },    /* groups */
  { 2, 16, 7, 7, 16, 3, 3, 1, 1, 1, 1, 1, 1, 16, 0 },   /* depthwise */
  { 2, 16, 8, 9, 15, 3, 3, 2, 2, 0, 0, 1, 1, 1, 1 },    /* window over the edge */
  { 9, 3, 12, 10, 16, 5, 5, 1, 1, 2, 2, 1, 1, 1, 0 },   /* few channels */
  { 3, 48, 6, 6, 64, 1, 1, 1, 1, 0, 0, 1, 1, 1, 0 },    /* 1 x 1 */
};

static uint32_t state = 7;

static TdTensor
tensor (TdShape *shape, TdDtype dtype)
{
  const int64_t size = shape->dim[0] * shape->dim[1] * shape->dim[2] * shape->dim[3];
  double *x = malloc ((size_t)size * 8);

  assert_non_null (x);
  for (int64_t i = 0; i < size; i++)
    {
      state = state * 1664525u + 1013904223u;
      x[i] = (double)(float)((double)(state >> 8) / (1 << 24) * 2 - 1);
    }
  return (TdTensor){ x, shape, size, dtype };
}

/* The same numbers in f32. */
static TdTensor
narrow (const TdTensor *x)
{
  float *y = malloc ((size_t)x->size * 4);

  assert_non_null (y);
  for (int64_t i = 0; i < x->size; i++)
    y[i] = (float)((double *)x->data)[i];
  return (TdTensor){ y, x->shape, x->size, TD_F32 };
}

static void
compare (const Case *c, int kind, const TdTensor *f32, const TdTensor *f64)
{
  for (int64_t i = 0; i < f32->size; i++)
    {
      const double got = (double)((float *)f32->data)[i], wanted = ((double *)f64->data)[i];

      if (!(fabs (got - wanted) < 2e-5 * (1 + fabs (wanted))))
        fail_msg ("case %d kind %d: [%d] is %.9g, expected %.9g", (int)(c - cases), kind,
                  (int)i, got, wanted);
    }
}

static void
check_case (const Case *c, bool accumulate)
{
  const int64_t oh = (c->h + 2 * c->py - c->dy * (c->kh - 1) - 1) / c->sy + 1 + c->overhang;
  const int64_t ow = (c->w + 2 * c->px - c->dx * (c->kw - 1) - 1) / c->sx + 1 + c->overhang;
  TdShape xs = TD_SHAPE (c->n, c->c, c->h, c->w);
  TdShape ws = TD_SHAPE (c->o, c->c / c->groups, c->kh, c->kw);
  TdShape ys = TD_SHAPE (c->n, c->o, oh, ow), bs = TD_SHAPE (1, 1, 1, c->o);
  const TdConv attrs
      = { 2, { c->sy, c->sx }, { c->py, c->px }, { c->dy, c->dx }, c->groups, accumulate };
  TdTensor x = tensor (&xs, TD_F64), W = tensor (&ws, TD_F64), y = tensor (&ys, TD_F64);
  TdTensor b = tensor (&bs, TD_F64);
  const TdTensor x32 = narrow (&x), W32 = narrow (&W), y32 = narrow (&y), b32 = narrow (&b);
  const TdTensor in[3][3] = { { x, W, b }, { W, y }, { x, y } };
  const TdTensor in32[3][3] = { { x32, W32, b32 }, { W32, y32 }, { x32, y32 } };
  TdTensor *const shapes[3] = { &y, &x, &W };

  for (int kind = accumulate ? TD_CONV_WEIGHT_GRAD : 0; kind < 3; kind++)
    {
      TdTensor out = tensor (shapes[kind]->shape, TD_F64), out32 = narrow (&out);
      const int n_in = kind == TD_CONV_FORWARD ? 3 : 2;

      assert_int_equal (td__cpu_conv (NULL, kind, &attrs, in[kind], n_in, &out), TD_OK);
      assert_int_equal (td__cpu_conv (NULL, kind, &attrs, in32[kind], n_in, &out32), TD_OK);
      compare (c, kind, &out32, &out);
      free (out.data);
      free (out32.data);
    }
  for (int i = 0; i < 3; i++)
    {
      free (in[0][i].data);
      free (in32[0][i].data);
    }
  free (y.data);
  free (y32.data);
}

static void
conv2d__agrees_with_the_definition (void **unused)
{
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    check_case (&cases[i], false);
}

/* NaN, zeros of both signs and a few large numbers among those of a tensor. */
static void
strew (TdTensor *t)
{
  float *x = t->data;

  for (int64_t i = 0; i < t->size; i++)
    x[i] = i % 13 == 5   ? NAN
           : i % 7 == 3  ? -0.f
           : i % 11 == 2 ? 0
           : i % 17 == 0 ? 1e30f * x[i]
                         : x[i];
}

/* Bits, but that one NaN is as good as another. */
static void
assert_same (const TdTensor *a, const TdTensor *b)
{
  const uint32_t *x = a->data, *y = b->data;

  for (int64_t i = 0; i < a->size; i++)
    if (x[i] != y[i] && !(isnan (((float *)a->data)[i]) && isnan (((float *)b->data)[i])))
      fail_msg ("[%d] is %.9g, expected %.9g", (int)i, (double)((float *)a->data)[i],
                (double)((float *)b->data)[i]);
}

/* One kind with bias: the whole end in one call, beside one call after the other. */
static void
compare_end (TdConvKind kind, const TdConv *attrs, const TdTensor *in, const TdTensor *like,
             bool sum, bool grad)
{
  TdTensor whole = narrow (like), parts = narrow (like), added = narrow (like),
           above = narrow (like);
  TdConv ended = *attrs;

  strew (&above);
  ended.end = (TdProductEnd){ .relu = !grad,
                              .added = sum ? &added : NULL,
                              .above = grad ? &above : NULL };
  assert_int_equal (td__cpu_conv (NULL, kind, attrs, in, 3, &parts), TD_OK);
  if (sum)
    assert_int_equal (td__cpu_binary (NULL, TD_BINARY_ADD, &parts, &added, &parts, false),
                      TD_OK);
  if (grad)
    assert_int_equal (td__cpu_binary (NULL, TD_BINARY_RELU_GRAD, &above, &parts, &parts, false),
                      TD_OK);
  else
    assert_int_equal (td__cpu_unary (NULL, TD_UNARY_RELU, 0, 0, &parts, &parts), TD_OK);
  assert_int_equal (td__cpu_conv (NULL, kind, &ended, in, 3, &whole), TD_OK);
  assert_same (&whole, &parts);
  free (whole.data);
  free (parts.data);
  free (added.data);
  free (above.data);
}

static void
conv2d__ends_as_the_operations_after_it_would (void **unused)
{
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    {
      const Case *c = &cases[i];
      const int64_t oh = (c->h + 2 * c->py - c->dy * (c->kh - 1) - 1) / c->sy + 1 + c->overhang;
      const int64_t ow = (c->w + 2 * c->px - c->dx * (c->kw - 1) - 1) / c->sx + 1 + c->overhang;
      TdShape xs = TD_SHAPE (c->n, c->c, c->h, c->w), os = TD_SHAPE (1, 1, 1, c->o);
      TdShape ws = TD_SHAPE (c->o, c->c / c->groups, c->kh, c->kw);
      TdShape ys = TD_SHAPE (c->n, c->o, oh, ow), cs = TD_SHAPE (1, 1, 1, c->c);
      const TdConv attrs = { .ndim = 2,
                             .stride = { c->sy, c->sx },
                             .pad = { c->py, c->px },
                             .dilate = { c->dy, c->dx },
                             .groups = c->groups };
      TdTensor wide[] = { tensor (&xs, TD_F64), tensor (&ws, TD_F64), tensor (&ys, TD_F64),
                          tensor (&os, TD_F64), tensor (&cs, TD_F64) };
      TdTensor x = narrow (&wide[0]), W = narrow (&wide[1]), y = narrow (&wide[2]),
               bo = narrow (&wide[3]), bc = narrow (&wide[4]);

      ((float *)x.data)[x.size / 2] = NAN;
      for (int k = 0; k < 4; k++)
        {
          const TdTensor forward[] = { x, W, bo }, gradient[] = { W, y, bc };

          compare_end (TD_CONV_FORWARD, &attrs, forward, &wide[2], k & 1, k & 2);
          compare_end (TD_CONV_DATA_GRAD, &attrs, gradient, &wide[0], k & 1, k & 2);
        }
      for (int k = 0; k < 5; k++)
        free (wide[k].data);
      free (x.data);
      free (W.data);
      free (y.data);
      free (bo.data);
      free (bc.data);
    }
}

static void
conv2d__adds_weight_gradients_when_asked (void **unused)
{
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    check_case (&cases[i], true);
}

static void
conv2d__definition_gives_numbers_worked_out_by_hand (void **unused)
{
  /* A 3 x 3 image, a 2 x 2 filter; the corners of the image times the filter. */
  double x[9] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 }, W[4] = { 1, 10, 100, 1000 }, b[1] = { 0.5 };
  double y[4];
  const double wanted[4] = { 5421.5, 6532.5, 8754.5, 9865.5 };
  TdShape xs = TD_SHAPE (1, 1, 3, 3), ws = TD_SHAPE (1, 1, 2, 2), bs = TD_SHAPE (1);
  const TdTensor in[3]
      = { { x, &xs, 9, TD_F64 }, { W, &ws, 4, TD_F64 }, { b, &bs, 1, TD_F64 } };
  TdTensor out = { y, &ws, 4, TD_F64 };
  const TdConv attrs = { 2, { 1, 1 }, { 0, 0 }, { 1, 1 }, 1, false };

  assert_int_equal (td__cpu_conv (NULL, TD_CONV_FORWARD, &attrs, in, 3, &out), TD_OK);
  for (int i = 0; i < 4; i++)
    assert_true (y[i] == wanted[i]);
}

static void
compare_threads (int64_t channels, int64_t filters)
{
  const int before = td__cpu_threads ();
  TdShape xs = TD_SHAPE (11, channels, 10, 10), ws = TD_SHAPE (filters, channels, 3, 3);
  TdShape ys = TD_SHAPE (11, filters, 8, 8);
  TdTensor x = tensor (&xs, TD_F64), y = tensor (&ys, TD_F64), W = tensor (&ws, TD_F64);
  const TdTensor x32 = narrow (&x), y32 = narrow (&y), W32 = narrow (&W);
  const TdTensor in[3][2] = { { x32, W32 }, { W32, y32 }, { x32, y32 } };
  TdTensor *const shapes[3] = { &y, &x, &W };
  const TdConv attrs = { 2, { 1, 1 }, { 0, 0 }, { 1, 1 }, 1, false };

  for (int kind = 0; kind < 3; kind++)
    {
      TdTensor one = narrow (shapes[kind]), three = narrow (shapes[kind]);

      td__cpu_set_threads (1);
      assert_int_equal (td__cpu_conv (NULL, kind, &attrs, in[kind], 2, &one), TD_OK);
      td__cpu_set_threads (3);
      assert_int_equal (td__cpu_conv (NULL, kind, &attrs, in[kind], 2, &three), TD_OK);
      assert_memory_equal (one.data, three.data, (size_t)one.size * 4);
      free (one.data);
      free (three.data);
    }
  td__cpu_set_threads (before);
  free (x.data);
  free (y.data);
  free (W.data);
  free (x32.data);
  free (y32.data);
  free (W32.data);
}

static void
conv2d__gives_the_same_bits_on_any_number_of_threads (void **unused)
{
  compare_threads (4, 6);
  compare_threads (32, 16);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (conv2d__definition_gives_numbers_worked_out_by_hand),
    td_test (conv2d__ends_as_the_operations_after_it_would),
    td_test (conv2d__agrees_with_the_definition),
    td_test (conv2d__adds_weight_gradients_when_asked),
    td_test (conv2d__gives_the_same_bits_on_any_number_of_threads),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
