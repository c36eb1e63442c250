/*
 * Formats are three magnitudes each: what rounds past the largest number, what is below the
 * smallest normal one, what rounds to zero.
 *
 * SPDX-License-Identifier: MIT
 */
#include "gradient/td-float-format.h"

#include <math.h>

static const struct
{
  const char *name;
  double over; /* from here on (where `past`: only past it) there is no finite number */
  gboolean past;
  int normal; /* 2 to this is the smallest normal number */
  int zero;   /* 2 to this, and less, rounds to zero: half of the smallest number, a tie */
} formats[TD_N_FLOATS] = {
  [TD_FLOAT_F16] = { "f16", 65520, FALSE, -14, -25 },
  /* the largest is 0x1.fep127; half a step above it is a tie that goes up */
  [TD_FLOAT_BF16] = { "bf16", 0x1.ffp127, FALSE, -126, -134 },
  /* 480 would be the next, whose mantissa is odd: the tie goes down */
  [TD_FLOAT_E4M3] = { "e4m3", 464, TRUE, -6, -10 },
  [TD_FLOAT_E5M2] = { "e5m2", 61440, FALSE, -14, -17 },
};

const char *
td_float_name (TdFloat format)
{
  return formats[format].name;
}

static gboolean
is_over (TdFloat format, double magnitude)
{
  return formats[format].past ? magnitude > formats[format].over
                              : magnitude >= formats[format].over;
}

static TdFloatLoss
count_values (TdFloat format, const TdTensor *t)
{
  double zero = ldexp (1, formats[format].zero), normal = ldexp (1, formats[format].normal);
  guint64 n = 0, n_over = 0, n_zero = 0, n_subnormal = 0;
  TdHonesty honesty = t->n_values == t->n_total ? TD_HONEST_EXACT : TD_HONEST_SAMPLED;

  for (guint64 i = 0; i < t->n_values; i++)
    {
      double v = fabs (t->values[i]);

      if (!isfinite (v))
        continue;
      n++;
      n_over += is_over (format, v);
      n_zero += v > 0 && v <= zero;
      n_subnormal += v > zero && v < normal;
    }
  double all = (double)MAX (n, 1);
  return (TdFloatLoss){ { honesty, (double)n_over / all },
                        { honesty, (double)n_zero / all },
                        { honesty, (double)n_subnormal / all } };
}

/* Count the magnitudes below 2^exponent. The lowest bin has all that is smaller, too: an
 * exponent inside of it cannot be answered, unless nothing is there. */
static TdFloatShare
count_below (const TdTapeStats *s, int exponent)
{
  int bin = exponent - TD_TAPE_STATS_MIN_EXPONENT;
  guint64 below = 0, all = 0;

  for (int k = 0; k < TD_TAPE_STATS_BINS; k++)
    {
      all += s->bins[k];
      below += k < bin ? s->bins[k] : 0;
    }
  if (bin <= 0)
    return (TdFloatShare){ s->bins[0] > 0         ? TD_HONEST_MISSING
                           : s->n_sampled == s->n ? TD_HONEST_EXACT
                                                  : TD_HONEST_SAMPLED,
                           0 };
  /* zeros are not in the bins; of a sample they are as many as of all */
  double finite = (double)(s->n - s->n_nan - s->n_pos_inf - s->n_neg_inf);
  double others = finite > 0 ? (finite - (double)s->n_zero) / finite : 0;
  return (TdFloatShare){ s->n_sampled == s->n ? TD_HONEST_EXACT : TD_HONEST_SAMPLED,
                         all > 0 ? (double)below / (double)all * others : 0 };
}

/* A magnitude that is itself the border of a bin counts as above it: so little is lost that it
 * need not be said. The largest magnitude is known exactly. */
static TdFloatLoss
ask_recorder (TdFloat format, const TdTapeStats *s)
{
  TdFloatLoss loss = { .zero = count_below (s, formats[format].zero),
                       .subnormal = count_below (s, formats[format].normal) };
  double largest = MAX (fabs (s->min), fabs (s->max));

  loss.over.honesty
      = isfinite (largest) && is_over (format, largest) ? TD_HONEST_MISSING : TD_HONEST_EXACT;
  loss.subnormal.share -= loss.zero.share;
  if (loss.zero.honesty == TD_HONEST_MISSING)
    loss.subnormal.honesty = TD_HONEST_MISSING;
  return loss;
}

TdFloatLoss
td_float_loss (TdFloat format, const TdTensor *tensor)
{
  if (tensor->values)
    return count_values (format, tensor);
  if (tensor->has_stats)
    return ask_recorder (format, &tensor->stats);
  return (TdFloatLoss){ { TD_HONEST_MISSING, 0 },
                        { TD_HONEST_MISSING, 0 },
                        { TD_HONEST_MISSING, 0 } };
}
