/* Negative log likelihoods and divergences, made of operations as in Chainer: bernoulli_nll,
 * gaussian_nll, gaussian_kl_divergence.
 *
 * SPDX-License-Identifier: MIT */
#include "losses.h"

#include <math.h>

static const char *const reductions[] = { "sum", "mean", "no", NULL };

static TdVar *
reduced (TdVar *loss, int reduce, const TdSite *site)
{
  return reduce == 0 ? td_sum_at (loss, site) : reduce == 1 ? td_mean_at (loss, site) : loss;
}

/* log (1 + e^y) - x y: the Bernoulli distribution whose mean is sigmoid (y).
 * *Source*: chainer.functions.bernoulli_nll. */
TdVar *
td_bernoulli_nll_at (TdVar *x, TdVar *y, TdNllOpt o, const TdSite *site)
{
  const int reduce = td__choice (reductions, o.reduce);
  const TdSoftplusOpt plain = { TD_SOFTPLUS_DEFAULTS };

  if (reduce < 0)
    return td__choice_fail ("bernoulli_nll", "reduce", reductions, o.reduce, site);
  return reduced (td_sub_at (td_softplus_at (y, plain, site), td_mul_at (x, y, site), site),
                  reduce, site);
}

TdVar *
td_bernoulli_nll_ (TdVar *x, TdVar *y, const TdNllOpt *options)
{
  return td_bernoulli_nll_at (x, y, options != NULL ? *options : (TdNllOpt){ NULL, 0 }, NULL);
}

/* (ln_var + log (2 pi) + (x - mean)^2 e^-ln_var) / 2.
 * *Source*: chainer.functions.gaussian_nll. */
TdVar *
td_gaussian_nll_at (TdVar *x, TdVar *mean, TdVar *ln_var, TdNllOpt o, const TdSite *site)
{
  const int reduce = td__choice (reductions, o.reduce);
  TdVar *precision, *square;

  if (reduce < 0)
    return td__choice_fail ("gaussian_nll", "reduce", reductions, o.reduce, site);
  precision = td_exp_at (td_neg_at (ln_var, site), site);
  square = td_square_at (td_sub_at (x, mean, site), site);
  return reduced (td_mul_scalar_at (td_add_at (td_add_scalar_at (ln_var, log (2 * M_PI), site),
                                               td_mul_at (square, precision, site), site),
                                    0.5, site),
                  reduce, site);
}

TdVar *
td_gaussian_nll_ (TdVar *x, TdVar *mean, TdVar *ln_var, const TdNllOpt *options)
{
  return td_gaussian_nll_at (x, mean, ln_var,
                             options != NULL ? *options : (TdNllOpt){ NULL, 0 }, NULL);
}

/* (mean^2 + e^ln_var - ln_var - 1) / 2, from the normal distribution to the standard one.
 * *Source*: chainer.functions.gaussian_kl_divergence. */
TdVar *
td_gaussian_kl_divergence_at (TdVar *mean, TdVar *ln_var, TdNllOpt o, const TdSite *site)
{
  const int reduce = td__choice (reductions, o.reduce);
  TdVar *excess;

  if (reduce < 0)
    return td__choice_fail ("gaussian_kl_divergence", "reduce", reductions, o.reduce, site);
  excess = td_sub_at (td_expm1_at (ln_var, site), ln_var, site);
  return reduced (
      td_mul_scalar_at (td_add_at (td_square_at (mean, site), excess, site), 0.5, site), reduce,
      site);
}

TdVar *
td_gaussian_kl_divergence_ (TdVar *mean, TdVar *ln_var, const TdNllOpt *options)
{
  return td_gaussian_kl_divergence_at (
      mean, ln_var, options != NULL ? *options : (TdNllOpt){ NULL, 0 }, NULL);
}
