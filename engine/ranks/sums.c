/* Sums of gradients, parameters, persistents and optimizer states, told to who records.
 *
 * What is wanted of the sum: speed, since all weights are read in each update; that a change of
 * any one word changes it for certain, which is so since each step can be undone; and 128 bits,
 * so that no two different arrays have one by chance.  It is no protection against somebody who
 * looks for two that do.
 *
 * SPDX-License-Identifier: MIT */
#include "sums.h"
#include "host-memory.h"

#include "compute/core/copies.h"

#include <stdlib.h>
#include <string.h>

enum
{
  LANES = 8 /* of 64 bits, which do not wait for each other */
};

static const uint64_t odd = 0x9e3779b97f4a7c15u; /* 2^64 divided by the golden ratio */

static uint64_t
mixed (uint64_t lane, uint64_t word)
{
  lane = (lane ^ word) * odd;
  return lane ^ lane >> 32;
}

static void
add_block (uint64_t lane[LANES], const unsigned char *bytes)
{
  uint64_t word[LANES];

  memcpy (word, bytes, sizeof word);
  for (int i = 0; i < LANES; i++)
    lane[i] = mixed (lane[i], word[i]);
}

/* --- what is not finite --- */

/* The bits of an exponent, all of which are set in what is not finite; 0: integers. */
static const uint64_t exponents[TD__N_DTYPES] = { [TD_F32] = 0x7f800000u,
                                                  [TD_F64] = 0x7ff0000000000000u,
                                                  [TD_F16] = 0x7c00u,
                                                  [TD_BF16] = 0x7f80u };

#define COUNT(type)                                                                            \
  for (size_t i = 0; i + sizeof (type) <= n; i += sizeof (type))                               \
    {                                                                                          \
      type word;                                                                               \
                                                                                               \
      memcpy (&word, b + i, sizeof word);                                                      \
      count += (word & (type)mask) == (type)mask;                                              \
    }

static uint64_t
not_finite (TdDtype dtype, const unsigned char *b, size_t n)
{
  const uint64_t mask = exponents[dtype];
  uint64_t count = 0;

  if (mask == 0)
    return 0;
  if (td__dtype_sizes[dtype] == 8)
    COUNT (uint64_t)
  else if (td__dtype_sizes[dtype] == 4)
    COUNT (uint32_t)
  else
    COUNT (uint16_t)
  return count;
}

/* --- both, of an array that is read once --- */

enum
{
  BLOCK = 4096 /* bytes, which stay in the cache for the second look */
};

void
td__sum_array (TdDtype dtype, const void *bytes, size_t n, TdRankSum *to)
{
  const unsigned char *b = bytes;
  unsigned char last[LANES * sizeof (uint64_t)] = { 0 };
  uint64_t lane[LANES];

  for (int i = 0; i < LANES; i++)
    lane[i] = odd * (uint64_t)(2 * i + 1);
  to->not_finite = 0;
  for (size_t done = 0; done < n; done += BLOCK)
    {
      const size_t size = n - done < BLOCK ? n - done : BLOCK,
                   whole = size & ~(sizeof last - 1);

      for (size_t at = 0; at < whole; at += sizeof last)
        add_block (lane, b + done + at);
      if (whole < size) /* the end of the array */
        memcpy (last, b + done + whole, size - whole);
      to->not_finite += not_finite (dtype, b + done, size);
    }
  add_block (lane, last);
  to->sum[0] = mixed (n, odd);
  to->sum[1] = mixed (odd, n);
  for (int i = 0; i < LANES; i++)
    {
      to->sum[0] = mixed (to->sum[0], lane[i]);
      to->sum[1] = mixed (to->sum[1], lane[LANES - 1 - i] ^ lane[i] << 1);
    }
}

/* --- telling --- */

void
td__tell_sum (const TdRankSum *sum)
{
  td__engine.observer->rank_sum (td__engine.observer, sum);
}

TdRankSum
td__sum_of_gradient (TdRankSumKind kind, const void *numbers, bool doubles, int64_t n,
                     uint64_t turn)
{
  TdRankSum sum = { .kind = kind, .size = (uint64_t)n };

  td__sum_array (doubles ? TD_F64 : TD_F32, numbers,
                 (size_t)n * (doubles ? sizeof (double) : sizeof (float)), &sum);
  if (n > 0)
    {
      sum.at = turn * odd % (uint64_t)n;
      sum.number = doubles ? ((const double *)numbers)[sum.at]
                           : (double)((const float *)numbers)[sum.at];
    }
  return sum;
}

void
td__sums_clear (TdSums *sums)
{
  free (sums->of);
  *sums = (TdSums){ NULL, 0, 0, { 0, 0 } };
}

static void
put (TdSums *sums, const uint64_t sum[2])
{
  if (sums->n == sums->room)
    {
      sums->room = 2 * sums->room + 16;
      sums->of = td__xrealloc (sums->of, (size_t)sums->room * sizeof *sums->of);
    }
  for (int i = 0; i < 2; i++)
    {
      sums->of[sums->n][i] = sum[i];
      sums->root[i] = mixed (sums->root[i], sum[i]);
    }
  sums->n++;
}

/* The sum of an array; into the list, if ranks must have it in common. */
static TdStatus
tell_array (TdRankSumKind kind, const char *path, const char *state, const TdVar *v,
            TdSums *sums, const TdSite *site)
{
  const TdNode *node = v->node;
  const size_t bytes = (size_t)td__size (&node->shape) * td__dtype_sizes[node->dtype];
  const bool here = node->device->number == 0 && node->layout == TD_ROW_MAJOR;
  TdRankSum sum = { .kind = kind, .path = path, .state = state };
  void *copy = NULL;
  TdStatus status;

  if (!node->device->computes)
    return TD_OK;
  if (!here)
    {
      copy = td__xmalloc (bytes + 1);
      status = td__layout_download (node, v->buffer, copy, TD_COPY_RECORDING, site);
      if (status != TD_OK)
        {
          free (copy);
          return status;
        }
    }
  sum.size = (uint64_t)td__size (&node->shape);
  td__sum_array ((TdDtype)node->dtype, here ? v->buffer->data : copy, bytes, &sum);
  free (copy);
  td__tell_sum (&sum);
  if (sums != NULL)
    put (sums, sum.sum);
  return TD_OK;
}

static TdStatus
tell_states (TdOpt *opt, TdSums *sums, const TdSite *site)
{
  TdStatus status = TD_OK;

  for (int i = 0; i < opt->n_slots && status == TD_OK; i++)
    {
      const TdOptSlot *slot = &opt->slots[i];

      for (int s = 0; s < TD_OPT_MAX_STATES && status == TD_OK; s++)
        if (slot->states[s] != NULL)
          status = tell_array (TD_RANK_SUM_STATE, slot->key, opt->cls->states[s],
                               slot->states[s], sums, site);
      if (slot->master != NULL && status == TD_OK)
        status = tell_array (TD_RANK_SUM_STATE, slot->key, "master", slot->master, sums, site);
    }
  return status;
}

void
td__tell_number (const char *name, double number)
{
  const TdRankSum sum = { .kind = TD_RANK_SUM_NUMBER, .path = name, .number = number };

  td__tell_sum (&sum);
}

static void
tell_numbers (const TdOpt *opt)
{
  const TdOpClass *op = opt->cls->op;

  td__tell_number ("t", (double)opt->t);
  td__tell_number ("epoch", (double)opt->epoch);
  td__tell_number ("loss scale", opt->scale);
  for (int a = 0; a < op->n_attrs; a++)
    td__tell_number (op->attrs[a].name, td__opt_hyper_get (&opt->u, &op->attrs[a]));
}

TdStatus
td__tell_parameters (const TdCommon *all, TdSums *sums, const TdSite *site)
{
  TdStatus status = TD_OK;

  for (int i = 0; i < all->n && status == TD_OK; i++)
    {
      const TdParam *p = all->of[i].param;
      const bool common = p->kind != TD_PARAM_PERSISTENT;

      if (p->var != NULL)
        status = tell_array (common ? TD_RANK_SUM_PARAMETER : TD_RANK_SUM_PERSISTENT,
                             all->of[i].key, NULL, p->var, common ? sums : NULL, site);
    }
  return status;
}

TdStatus
td__tell_updated (const TdCommon *all, TdOpt *opt, TdSums *sums, const TdSite *site)
{
  TdStatus status;

  td__opt_settle (opt, 0); /* what devices have decided */
  sums->n = 0;
  sums->root[0] = sums->root[1] = odd;
  status = td__tell_parameters (all, sums, site);
  if (status == TD_OK)
    status = tell_states (opt, sums, site);
  tell_numbers (opt);
  return status;
}
