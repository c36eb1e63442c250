/* Negative sampling for word vectors, made of operations; and the sampler that draws words by
 * their frequency.
 *
 * SPDX-License-Identifier: MIT */
#include "core/copies.h"
#include "losses.h"

#include <math.h>
#include <stdlib.h>

/* --- Walker's alias method --- */

struct TdWalkerAlias
{
  int64_t n;
  double *threshold; /* of each column: below it the column's own number, above it the other */
  int32_t *other;
};

/* Columns that hold less than their share are filled up from columns that hold more. */
static void
fill_columns (TdWalkerAlias *w, double *share, int64_t *small)
{
  int64_t n_small = 0, n_large = 0, *large = small + w->n;

  for (int64_t i = 0; i < w->n; i++)
    {
      w->threshold[i] = 1;
      w->other[i] = (int32_t)i;
      if (share[i] < 1)
        small[n_small++] = i;
      else
        large[n_large++] = i;
    }
  while (n_small > 0 && n_large > 0)
    {
      const int64_t s = small[--n_small], l = large[n_large - 1];

      w->threshold[s] = share[s];
      w->other[s] = (int32_t)l;
      share[l] -= 1 - share[s];
      if (share[l] < 1)
        {
          n_large--;
          small[n_small++] = l;
        }
    }
}

static double
sum_of (const double *weights, int64_t n)
{
  double sum = 0;

  for (int64_t i = 0; i < n; i++)
    sum += weights[i] >= 0 ? weights[i] : NAN;
  return sum;
}

TdWalkerAlias *
td_walker_alias_new (const double *weights, int64_t n)
{
  double sum;
  TdWalkerAlias *w;
  double *share;
  int64_t *places;

  if (!td__list_there (weights, n, "walker_alias", NULL))
    return NULL;
  sum = n > 0 && n <= INT32_MAX ? sum_of (weights, n) : 0;
  if (!(sum > 0) || isinf (sum))
    {
      td__fail (TD_ERR_ARG, "walker_alias", NULL,
                "weights that are not negative, with a sum above 0, expected");
      return NULL;
    }
  w = calloc (1, sizeof *w);
  share = calloc ((size_t)n, sizeof *share);
  places = calloc (2 * (size_t)n, sizeof *places);
  if (w != NULL)
    {
      w->n = n;
      w->threshold = calloc ((size_t)n, sizeof *w->threshold);
      w->other = calloc ((size_t)n, sizeof *w->other);
    }
  if (w == NULL || share == NULL || places == NULL || w->threshold == NULL || w->other == NULL)
    {
      td__fail (TD_ERR_MEMORY, "walker_alias", NULL, "no host memory for %lld weights",
                (long long)n);
      td_walker_alias_free (w);
      w = NULL;
    }
  else
    {
      for (int64_t i = 0; i < n; i++)
        share[i] = weights[i] / sum * (double)n;
      fill_columns (w, share, places);
    }
  free (share);
  free (places);
  return w;
}

void
td_walker_alias_free (TdWalkerAlias *w)
{
  if (td__stranger ("td_walker_alias_free") || w == NULL)
    return;
  free (w->threshold);
  free (w->other);
  free (w);
}

/* A uniform number gives the column by its whole part, the side by its fraction. */
TdVar *
td_walker_alias_sample_at (const TdWalkerAlias *w, TdShape shape, const TdSite *site)
{
  TdDevice *cpu = td_device_get ("cpu"), *device = td__engine.device;
  const int64_t n = td_shape_size (&shape);
  TdShape flat = TD_SHAPE (n);
  double *u = n >= 0 ? calloc ((size_t)n + 1, sizeof *u) : NULL;
  int32_t *numbers = n >= 0 ? calloc ((size_t)n + 1, sizeof *numbers) : NULL;
  TdVar *v = td__poison ();
  TdTensor t = { u, &flat, n, TD_F64 };

  if (w == NULL || u == NULL || numbers == NULL || cpu == NULL)
    td__fail (w == NULL ? TD_ERR_ARG : TD_ERR_MEMORY, "walker_alias", site,
              w == NULL ? "a sampler expected, got NULL" : "no host memory for the numbers");
  else if (cpu->ops->random (cpu, TD_RANDOM_UNIFORM, td__rng_take ((uint64_t)n), 0, &t)
           == TD_OK)
    {
      for (int64_t i = 0; i < n; i++)
        {
          const double place = u[i] * (double)w->n;
          const int64_t column = (int64_t)place < w->n ? (int64_t)place : w->n - 1;

          numbers[i] = place - (double)column < w->threshold[column] ? (int32_t)column
                                                                     : w->other[column];
        }
      v = td_to_device (td__tensor_drawn (TD_I32, &shape, numbers, site), device);
    }
  free (u);
  free (numbers);
  return v;
}

TdVar *
td_walker_alias_sample (const TdWalkerAlias *w, TdShape shape)
{
  return td_walker_alias_sample_at (w, shape, NULL);
}

/* --- the loss --- */

static const char *const reductions[] = { "sum", "no", NULL };

/* -1 for the word itself, 1 for the samples: (1, k + 1). */
static TdVar *
signs (TdVar *like, int64_t k, const TdSite *site)
{
  TdVar *places = td_to_device (td_arange (TD_F64, 0, (double)(k + 1), 1), td_device (like));
  TdVar *number
      = td_reshape_at (td_cast_at (places, td_dtype (like), site), TD_SHAPE (1, k + 1), site);

  return td_rsub_scalar_at (
      td_mul_scalar_at (td_equal_at (number, td__number_like (number, 0), site), 2, site), 1,
      site);
}

/* Sum over k of log (1 + e^(s w_k x)): s is -1 for the word and 1 for the samples; words -1 are
 * left out.  *Source*: chainer.functions.negative_sampling; T. Mikolov et al., "Distributed
 * representations of words and phrases and their compositionality", 2013, equation 4. */
TdVar *
td_negative_sampling_at (TdVar *x, TdVar *t, TdVar *W, TdVar *samples, TdNegativeSamplingOpt o,
                         const TdSite *site)
{
  static const char *const names[] = { "x", "t", "W", "samples" };
  const TdSoftplusOpt plain = { TD_SOFTPLUS_DEFAULTS };
  const TdEmbedOpt any = { TD_EMBED_DEFAULTS };
  const int reduce = td__choice (reductions, o.reduce);
  TdVar *in[] = { x, t, W, samples }, *words[2], *rows, *counts, *wx, *loss;
  TdShape s[4];
  int64_t n, k;

  if (reduce < 0)
    return td__choice_fail ("negative_sampling", "reduce", reductions, o.reduce, site);
  for (int i = 0; i < 4; i++)
    {
      if (td_poisoned (in[i]))
        return td_identity_at (in[i], site);
      s[i] = td_shape (in[i]);
    }
  if (s[0].ndim != 2 || s[1].ndim != 1 || s[2].ndim != 2 || s[3].ndim != 2
      || s[0].dim[0] != s[1].dim[0] || s[0].dim[0] != s[3].dim[0] || s[0].dim[1] != s[2].dim[1])
    return td__compose_fail (TD_ERR_SHAPE, "negative_sampling", site, names, in, 4,
                             "x (n, d), t (n), W (words, d) and samples (n, k) expected");
  n = s[0].dim[0];
  k = s[3].dim[1];
  t = td_cast_at (t, TD_I32, site);
  words[0]
      = td_reshape_at (td_maximum_at (t, td__number_like (t, 0), site), TD_SHAPE (n, 1), site);
  words[1] = td_cast_at (samples, TD_I32, site);
  rows = td_embed_id_at (td_concat_at (words, 2, 1, site), W, any, site);
  wx = td_reshape_at (
      td_batch_matmul_at (rows, td_expand_dims_at (x, 2, site), false, false, site),
      TD_SHAPE (n, k + 1), site);
  loss = td_softplus_at (td_mul_at (wx, signs (x, k, site), site), plain, site);
  loss = td_sum_axes_at (loss, (const int[]){ 1 }, 1, false, site);
  counts = td_add_scalar_at (td_clip_at (td_cast_at (t, td_dtype (x), site), -1, 0, site), 1,
                             site);
  loss = td_mul_at (loss, counts, site);
  return reduce == 0 ? td_sum_at (loss, site) : loss;
}

TdVar *
td_negative_sampling_ (TdVar *x, TdVar *t, TdVar *W, TdVar *samples,
                       const TdNegativeSamplingOpt *options)
{
  return td_negative_sampling_at (
      x, t, W, samples, options != NULL ? *options : (TdNegativeSamplingOpt){ NULL, 0 }, NULL);
}
