/* Functions that are made of operations: each of these is at the line that called the function,
 * so that messages, exports and recordings name the model's code.
 *
 * SPDX-License-Identifier: MIT */
#include "fixture.h"

#include "compute/core/core.h"

#include <string.h>

typedef struct
{
  const char *name;
  TdVar *(*call) (void);
} Composed;

static TdVar *
spread (TdShape shape)
{
  TdVar *x = td_zeros (TD_F32, shape);

  fill (x, 7);
  return x;
}

static TdVar *
ids (int64_t n)
{
  static const int32_t list[] = { 1, -1, 2, 0, 1, 2 };

  return td_tensor (TD_I32, TD_SHAPE (n), list);
}

#define COMPOSED(name, ...)                                                                    \
  static TdVar *name (void)                                                                    \
  {                                                                                            \
    return __VA_ARGS__;                                                                        \
  }
COMPOSED (causal_mask, td_causal_mask (TD_BOOL, 3, 4))
COMPOSED (attention, td_scaled_dot_product_attention (spread (TD_SHAPE (2, 3, 4)),
                                                      spread (TD_SHAPE (2, 3, 4)),
                                                      spread (TD_SHAPE (2, 3, 4)),
                                                      .causal = true, .composed = true))
COMPOSED (embed_id, td_embed_id (ids (3), spread (TD_SHAPE (3, 2)), .ignore_label = -1))
COMPOSED (matmul,
          td_matmul (spread (TD_SHAPE (2, 3, 4)), spread (TD_SHAPE (4, 5)), false, false))
COMPOSED (einsum,
          td_einsum ("iij,jk->ik",
                     ((TdVar *[]){ spread (TD_SHAPE (3, 3, 4)), spread (TD_SHAPE (4, 5)) }), 2))
COMPOSED (tensordot,
          td_tensordot (spread (TD_SHAPE (2, 3, 4)), spread (TD_SHAPE (4, 3)), .axes = 1))
COMPOSED (negative_sampling,
          td_negative_sampling (spread (TD_SHAPE (2, 4)), ids (2), spread (TD_SHAPE (3, 4)),
                                td_tensor (TD_I32, TD_SHAPE (2, 2),
                                           ((const int32_t[]){ 0, 1, 2, 0 }))))
COMPOSED (linear_axes,
          td_linear_axes (spread (TD_SHAPE (2, 3, 4)), spread (TD_SHAPE (5, 4)), NULL, 2))
COMPOSED (average, td_average (spread (TD_SHAPE (2, 3)), .weights = spread (TD_SHAPE (2, 3))))
COMPOSED (maxout, td_maxout (spread (TD_SHAPE (2, 6)), 3))
COMPOSED (repeat, td_repeat (spread (TD_SHAPE (3, 2)), ((const int[]){ 1, 2, 1 }), 3, 0))
COMPOSED (pad,
          td_pad (spread (TD_SHAPE (4, 4)), ((const int[]){ 1, 1, 2, 2 }), TD_PAD_REFLECT, 0))
COMPOSED (gaussian_nll, td_gaussian_nll (spread (TD_SHAPE (2, 3)), spread (TD_SHAPE (2, 3)),
                                         spread (TD_SHAPE (2, 3))))
COMPOSED (gaussian_kl,
          td_gaussian_kl_divergence (spread (TD_SHAPE (2, 3)), spread (TD_SHAPE (2, 3))))
COMPOSED (bernoulli_nll, td_bernoulli_nll (spread (TD_SHAPE (2, 3)), spread (TD_SHAPE (2, 3))))
COMPOSED (gumbel_softmax, td_gumbel_softmax (spread (TD_SHAPE (2, 3))))
COMPOSED (linear_interpolate,
          td_linear_interpolate (spread (TD_SHAPE (2, 3)), spread (TD_SHAPE (2, 3)),
                                 spread (TD_SHAPE (2, 3))))
COMPOSED (soft_cross_entropy,
          td_softmax_cross_entropy (spread (TD_SHAPE (3, 3)), ids (3), .reduce = "no"))
COMPOSED (stack,
          td_stack (((TdVar *[]){ spread (TD_SHAPE (2, 3)), spread (TD_SHAPE (2, 3)) }), 2, 1))
COMPOSED (group_normalization,
          td_group_normalization (spread (TD_SHAPE (2, 4, 3)), 2, spread (TD_SHAPE (4)),
                                  spread (TD_SHAPE (4))))
COMPOSED (normalize, td_normalize (spread (TD_SHAPE (2, 3)), 1e-5, ((const int[]){ 1 }), 1))
COMPOSED (squared_error, td_squared_error (spread (TD_SHAPE (2, 3)), spread (TD_SHAPE (2, 3))))
COMPOSED (sqrt_sum_square, td_sqrt_sum_square (spread (TD_SHAPE (2, 3))))
COMPOSED (mean_absolute_error,
          td_mean_absolute_error (spread (TD_SHAPE (2, 3)), spread (TD_SHAPE (2, 3))))
COMPOSED (bias, td_bias (spread (TD_SHAPE (2, 3)), spread (TD_SHAPE (3))))
COMPOSED (scale, td_scale (spread (TD_SHAPE (2, 3)), spread (TD_SHAPE (3))))
COMPOSED (f1_score, td_f1_score (spread (TD_SHAPE (3, 3)), ids (3), .ignore_label = -1))
COMPOSED (bilinear, td_bilinear (spread (TD_SHAPE (2, 3)), spread (TD_SHAPE (2, 4)),
                                 spread (TD_SHAPE (3, 4, 5)), NULL, NULL, NULL))
COMPOSED (swish, td_swish (spread (TD_SHAPE (2, 3)), spread (TD_SHAPE (3))))
COMPOSED (tile, td_tile (spread (TD_SHAPE (2, 3)), ((const int[]){ 2, 1 }), 2))

static const Composed composed[] = {
  { "causal_mask", causal_mask },
  { "attention", attention },
  { "embed_id", embed_id },
  { "matmul", matmul },
  { "einsum", einsum },
  { "tensordot", tensordot },
  { "negative_sampling", negative_sampling },
  { "linear_axes", linear_axes },
  { "average", average },
  { "maxout", maxout },
  { "repeat", repeat },
  { "pad", pad },
  { "gaussian_nll", gaussian_nll },
  { "gaussian_kl_divergence", gaussian_kl },
  { "bernoulli_nll", bernoulli_nll },
  { "gumbel_softmax", gumbel_softmax },
  { "linear_interpolate", linear_interpolate },
  { "soft_cross_entropy", soft_cross_entropy },
  { "stack", stack },
  { "group_normalization", group_normalization },
  { "normalize", normalize },
  { "squared_error", squared_error },
  { "sqrt_sum_square", sqrt_sum_square },
  { "mean_absolute_error", mean_absolute_error },
  { "bias", bias },
  { "scale", scale },
  { "f1_score", f1_score },
  { "bilinear", bilinear },
  { "swish", swish },
  { "tile", tile },
};

/* Operations without a place that lead to a node. */
static int
n_lost (const TdNode *node, const char *function)
{
  const TdOp *op = node->creator;
  int n = 0;

  if (op == NULL)
    return 0;
  if (op->site == NULL || strstr (op->site->file, "test-composed-sites.c") == NULL)
    {
      print_error ("%s: %s has no place\n", function, op->cls->name);
      n++;
    }
  for (int i = 0; i < op->n_in; i++)
    n += n_lost (op->in[i], function);
  return n;
}

static void
composed__functions_are_at_their_call_in_every_operation (void **state)
{
  int lost = 0;

  (void)state;
  for (size_t i = 0; i < sizeof composed / sizeof *composed; i++)
    TD_USING (keep_graph, 1)
      TD_SCOPE ("call")
        {
          TdVar *y = composed[i].call ();

          assert_null (td_error ());
          assert_non_null (y->node->creator);
          lost += n_lost (y->node, composed[i].name);
        }
  assert_int_equal (lost, 0);
}

int
main (void)
{
  const struct CMUnitTest tests[]
      = { engine_test (composed__functions_are_at_their_call_in_every_operation) };

  return cmocka_run_group_tests_name ("composed-sites", tests, NULL, NULL);
}
