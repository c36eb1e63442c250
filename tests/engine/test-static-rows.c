/* Row normalisations that make a sum while they read their rows, and gradients of them that are
 * added while they are written: when a schedule joins them, and when it must not.
 *
 * SPDX-License-Identifier: MIT */
#include "static-rig.h"
#include "static/entry.h"

#include <string.h>

typedef enum
{
  LAYER,
  RMS,
  GROUP
} Norm;

typedef struct
{
  TdDtype dtype;
  Norm norm;
  enum
  {
    STREAM,     /* a block adds to what it read, twice */
    RETURNED,   /* the caller gets the sum as well */
    POST,       /* only the normalisation reads the sum */
    READ_FIRST, /* something else reads it before */
    ROW,        /* what is added is repeated */
    SELF,       /* it is the same array twice */
    SCALED,     /* an element-by-element step makes one part of it, and takes the sum too */
    VIEWED,     /* the normalisation sees it in another shape */
    AS_GAMMA    /* and scales by what is added */
  } net;
  bool test; /* no backward */
  bool nan;  /* in x */
  double eps;
  int64_t rows, width;
  int forward, backward; /* groups there should be */
  TdVar *W[2], *gamma, *beta, *row;
} Blocks;

static bool
joins (TdDtype dtype)
{
  TdVar *x = td_zeros (TD_F32, TD_SHAPE (1));

  return (x->node->device->ops->joins_norms & 1u << dtype) != 0;
}

static TdVar *
weight (const Blocks *c, const char *name, TdShape shape, unsigned seed)
{
  return td_variable (td_retain (td_cast (some (shape, seed), c->dtype)), name);
}

static void
blocks_new (Blocks *c)
{
  c->W[0] = weight (c, "W0", TD_SHAPE (c->width, c->width), 11);
  c->W[1] = weight (c, "W1", TD_SHAPE (c->width, c->width), 12);
  c->gamma = weight (c, "gamma", TD_SHAPE (c->width), 13);
  c->beta = weight (c, "beta", TD_SHAPE (c->width), 14);
  c->row = weight (c, "row", TD_SHAPE (c->width), 15);
}

static void
blocks_free (Blocks *c)
{
  td_release (c->W[0]);
  td_release (c->W[1]);
  td_release (c->gamma);
  td_release (c->beta);
  td_release (c->row);
}

static TdVar *
normalise (const Blocks *c, TdVar *h)
{
  if (c->norm == LAYER)
    return td_layer_normalization (h, c->gamma, c->beta, .eps = c->eps);
  if (c->norm == RMS)
    return td_rms_normalization (h, c->gamma, .eps = c->eps);
  return td_group_normalization (h, 2, c->gamma, c->beta, .eps = c->eps);
}

static TdVar *
product (const Blocks *c, TdVar *h, int i)
{
  return td_matmul (h, c->W[i], false, false);
}

static void
blocks_code (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Blocks *c = self;
  TdVar *h = in[0], *y;

  (void)n_in;
  (void)n_out;
  switch (c->net)
    {
    case STREAM:
    case RETURNED:
      h = td_add (h, product (c, h, 0));
      h = td_add (product (c, normalise (c, h), 1), h);
      out[0] = normalise (c, h);
      out[1] = c->net == RETURNED ? h : td_square (out[0]);
      return;
    case POST:
      h = normalise (c, td_add (h, product (c, h, 0)));
      out[0] = normalise (c, td_add (product (c, h, 1), h));
      break;
    case READ_FIRST:
      h = td_add (h, product (c, h, 0));
      y = product (c, h, 1);
      out[0] = td_mul (normalise (c, h), y);
      break;
    case ROW:
      out[0] = normalise (c, td_add (product (c, h, 0), c->row));
      break;
    case SELF:
      h = product (c, h, 0);
      out[0] = normalise (c, td_add (h, h));
      break;
    case SCALED:
      h = td_add (h, td_mul_scalar (product (c, h, 0), 0.5));
      out[0] = td_mul (normalise (c, h), h);
      break;
    case VIEWED:
      h = td_add (h, product (c, h, 0));
      out[0] = normalise (c, td_reshape (h, TD_SHAPE (1, c->rows, c->width)));
      break;
    case AS_GAMMA:
      y = td_reshape (product (c, h, 0), TD_SHAPE (c->width));
      h = td_add (product (c, h, 1), td_reshape (y, TD_SHAPE (1, c->width)));
      out[0] = td_layer_normalization (h, y, c->beta, .eps = c->eps);
      break;
    }
  out[1] = td_square (out[0]);
}

/* Groups of a list that are kernels of rows. */
static int
n_joined (const TdPlan *p, uint32_t list)
{
  const TdSteps *steps = td__plan_list (p, list);
  int n = 0;

  for (uint32_t k = 0; k < steps->n; k++)
    n += steps->steps[k].kind == TD_STEP_GROUP && p->groups[steps->steps[k].external].rows;
  return n;
}

static int found[2];

static void
train_blocks (void *user)
{
  Blocks *c = user;
  TdStatic *s;

  blocks_new (c);
  s = td_static_new (blocks_code, c);
  TD_ITERATIONS (i, 3)
    {
      TdVar *x = some (TD_SHAPE (c->rows, c->width), (unsigned)i), *y[2];

      if (c->nan)
        x = td_sqrt (td_add_scalar (x, 0.99));
      x = td_variable (td_cast (x, c->dtype), "x");
      td_cleargrad (c->W[0]);
      td_cleargrad (c->W[1]);
      td_cleargrad (c->gamma);
      td_cleargrad (c->beta);
      td_cleargrad (c->row);
      if (c->test)
        TD_NO_BACKPROP
          td_static_call (s, &x, 1, y, 2);
      else
        {
          td_static_call (s, &x, 1, y, 2);
          td_backward (td_add (td_sum (td_square (y[0])), td_sum (y[1])), 0);
        }
      note (y[0]);
      note (y[1]);
      note (td_grad (x));
      note (td_grad (c->W[0]));
      note (td_grad (c->W[1]));
      note (td_grad (c->gamma));
      note (td_grad (c->beta));
      note (td_grad (c->row));
    }
  expect_calls (s, 1, 2);
  if (is_static_run ())
    for (uint32_t list = 0; list < 2; list++)
      found[list] = list == 0 || !c->test ? n_joined (plan_of (s), list) : 0;
  td_static_free (s);
  blocks_free (c);
}

static void
train_both_ways (Blocks c)
{
  c.rows = c.rows > 0 ? c.rows : 7;
  c.width = c.width > 0 ? c.width : 12;
  c.eps = c.eps > 0 ? c.eps : 1e-5;
  run_doing ("net", (int)c.net);
  run_both (train_blocks, &c);
  assert_int_equal (found[0], joins (c.dtype) ? c.forward : 0);
  assert_int_equal (found[1], joins (c.dtype) ? c.backward : 0);
}

/* The gradient of the first block's normalisation is added to what went round it; where the
 * caller gets the last sum, so is that of the last. */
static void
rows__a_residual_stream_is_added_up_inside_its_normalisations (void **state)
{
  static const TdDtype dtypes[] = { TD_F32, TD_F64, TD_F16, TD_BF16 };

  (void)state;
  for (int d = 0; d < 4; d++)
    for (int norm = LAYER; norm <= GROUP; norm++)
      {
        const Blocks c
            = { .dtype = dtypes[d], .norm = (Norm)norm, .eps = 0.1 / (norm + 1), .forward = 2 };
        Blocks stream = c, returned = c, post = c;

        stream.net = STREAM;
        stream.backward = 1;
        train_both_ways (stream);
        returned.net = RETURNED;
        returned.backward = 2;
        train_both_ways (returned);
        post.net = POST;
        train_both_ways (post);
      }
}

static void
rows__without_backward_a_sum_that_nobody_needs_lies_nowhere (void **state)
{
  Blocks c = { .dtype = TD_F32,
               .norm = LAYER,
               .net = POST,
               .test = true,
               .rows = 5,
               .width = 8,
               .eps = 1e-5 };
  TdStatic *s;
  const TdPlan *p;
  int n = 0;

  (void)state;
  train_both_ways ((Blocks){ .dtype = TD_F32, .net = STREAM, .test = true, .forward = 2 });
  train_both_ways ((Blocks){ .dtype = TD_F64, .net = RETURNED, .test = true, .forward = 2 });
  train_both_ways ((Blocks){ .dtype = TD_F32, .net = POST, .test = true, .forward = 2 });
  if (!joins (TD_F32))
    return;
  blocks_new (&c);
  s = td_static_new (blocks_code, &c);
  TD_ITERATIONS (i, 2)
    {
      TdVar *x = some (TD_SHAPE (c.rows, c.width), 1), *y[2];

      TD_NO_BACKPROP
        td_static_call (s, &x, 1, y, 2);
    }
  p = plan_of (s);
  for (uint32_t k = 0; k < p->n_groups; k++)
    if (p->groups[k].rows)
      {
        n++;
        assert_int_equal (p->groups[k].n_members, 2);
        assert_string_equal (p->groups[k].members[0].cls->name, "add");
        assert_string_equal (p->groups[k].members[1].cls->name, "layer_normalization");
        assert_int_equal (p->groups[k].n_interior, 1);
        assert_true (p->offsets[p->groups[k].interior[0]] == SIZE_MAX);
        assert_true (p->groups[k].sum == TD_ABSENT);
      }
  assert_int_equal (n, 2);
  td_static_free (s);
  blocks_free (&c);
}

/* Rows that are read by packs or not, and are longer than a thread's share. */
static void
rows__of_all_lengths_are_those_of_the_code (void **state)
{
  static const int64_t widths[] = { 1, 3, 8, 64, 130, 520 };

  (void)state;
  for (int w = 0; w < 6; w++)
    for (int net = STREAM; net <= POST; net++)
      train_both_ways ((Blocks){ .dtype = w % 2 == 0 ? TD_F32 : TD_F64,
                                 .net = net,
                                 .rows = 1 + 5 * w,
                                 .width = widths[w],
                                 .forward = 2,
                                 .backward = net == STREAM     ? 1
                                             : net == RETURNED ? 2
                                                               : 0 });
}

static void
rows__what_only_looks_like_it_stays_as_it_is (void **state)
{
  (void)state;
  train_both_ways ((Blocks){ .dtype = TD_F32, .net = READ_FIRST });
  train_both_ways ((Blocks){ .dtype = TD_F32, .net = ROW });
  train_both_ways ((Blocks){ .dtype = TD_F32, .net = VIEWED });
  train_both_ways ((Blocks){ .dtype = TD_F32, .net = SELF, .forward = 1 });
  train_both_ways ((Blocks){ .dtype = TD_F32, .net = AS_GAMMA, .rows = 1, .forward = 1 });
}

static void
rows__tiles_that_make_a_part_keep_the_sum (void **state)
{
  TdVar *x = td_zeros (TD_F32, TD_SHAPE (1));
  const bool tiles = td__tiles_known (x->node->device);

  (void)state;
  train_both_ways (
      (Blocks){ .dtype = TD_F32, .net = SCALED, .forward = tiles ? 0 : 1, .backward = 1 });
}

static void
rows__nan_goes_through_as_in_the_code (void **state)
{
  (void)state;
  train_both_ways (
      (Blocks){ .dtype = TD_F32, .net = RETURNED, .nan = true, .forward = 2, .backward = 2 });
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    engine_test (rows__a_residual_stream_is_added_up_inside_its_normalisations),
    engine_test (rows__without_backward_a_sum_that_nobody_needs_lies_nowhere),
    engine_test (rows__of_all_lengths_are_those_of_the_code),
    engine_test (rows__what_only_looks_like_it_stays_as_it_is),
    engine_test (rows__tiles_that_make_a_part_keep_the_sum),
    engine_test (rows__nan_goes_through_as_in_the_code),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
