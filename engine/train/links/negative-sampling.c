/* NegativeSampling: the loss of telling a word from words that are drawn by their frequency.
 *
 * SPDX-License-Identifier: MIT */
#include "link.h"
#include "host-memory.h"

#include <math.h>
#include <stdlib.h>

/* The sampler belongs to the link and its copies. */
typedef struct
{
  TdWalkerAlias *sampler;
  int refs;
} Shared;

typedef struct
{
  Shared *shared;
  int64_t n_words;
  int sample_size;
  bool each;
} NegativeSampling;

static TdStatus
negative_sampling_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out,
                           int n_out)
{
  const NegativeSampling *s = self;
  TdNegativeSamplingOpt options = { .reduce = s->each ? "no" : "sum" };
  TdVar *samples;
  char text[160];

  if (n_in != 2 || n_out < 1 || n_out > 2)
    return td__fail (TD_ERR_ARG, "NegativeSampling", td__engine.site,
                     "inputs x, t and outputs loss, samples expected, got %d and %d", n_in,
                     n_out);
  if (td_poisoned (in[0]) || td_poisoned (in[1]))
    return TD_ERR_STATE;
  if (in[1]->node->shape.ndim != 1)
    return td__fail (TD_ERR_SHAPE, "NegativeSampling", td__engine.site,
                     "t with one axis expected, got %s",
                     td_shape_text (&in[1]->node->shape, text, sizeof text));
  samples = td_walker_alias_sample (
      s->shared->sampler, (TdShape){ 2, { in[1]->node->shape.dim[0], s->sample_size } });
  samples = td_to_device (samples, td_device (in[0]));
  out[0] = td_negative_sampling_ (in[0], in[1], link->params[0]->var, samples, &options);
  if (n_out == 2)
    out[1] = samples;
  return td__link_status (out[0]);
}

static void
negative_sampling_free (void *self)
{
  Shared *shared = ((NegativeSampling *)self)->shared;

  if (shared == NULL || --shared->refs > 0)
    return;
  td_walker_alias_free (shared->sampler);
  free (shared);
}

static void
negative_sampling_copied (TdLink *to, const TdLink *from)
{
  NegativeSampling *t = to->self;

  *t = *(const NegativeSampling *)from->self;
  t->shared->refs++;
}

static const TdLinkClass negative_sampling_class = { .size = sizeof (TdLinkClass),
                                                     .name = "NegativeSampling",
                                                     .self_bytes = sizeof (NegativeSampling),
                                                     .forward = negative_sampling_forward,
                                                     .free = negative_sampling_free,
                                                     .copied = negative_sampling_copied };

/* Words by their counts to a power. */
static TdWalkerAlias *
sampler_of (const int64_t *counts, int64_t n, double power)
{
  double *weights = td__xcalloc ((size_t)n, sizeof *weights);
  TdWalkerAlias *sampler;

  for (int64_t i = 0; i < n; i++)
    weights[i] = pow ((double)counts[i], power);
  sampler = td_walker_alias_new (weights, n);
  free (weights);
  return sampler;
}

TdLink *
td_negative_sampling_new_at (TdLink *parent, const char *name, int64_t in_size,
                             const int64_t *counts, int64_t n_words, int sample_size,
                             TdNegativeSamplingLinkOpt options, const TdSite *site)
{
  TdWalkerAlias *sampler;
  NegativeSampling *s;
  TdLink *link;

  if (in_size <= 0 || counts == NULL || n_words <= 0 || n_words > INT32_MAX || sample_size <= 0)
    {
      td__fail (
          TD_ERR_ARG, "NegativeSampling", site,
          "sizes above 0 and counts of words expected, got in %lld, %lld words, %d samples",
          (long long)in_size, (long long)n_words, sample_size);
      return td__link_inert ();
    }
  sampler = sampler_of (counts, n_words, options.power);
  if (sampler == NULL)
    return td__link_inert ();
  link = td__link_make (&negative_sampling_class, parent, name, site);
  if (link->inert)
    {
      td_walker_alias_free (sampler);
      return link;
    }
  s = link->self;
  *s = (NegativeSampling){ td__xcalloc (1, sizeof *s->shared), n_words, sample_size,
                           options.each };
  *s->shared = (Shared){ sampler, 1 };
  if (!td__link_add (link, "W", (TdShape){ 2, { n_words, in_size } }, options.initialW,
                     td_init_zero (), site))
    return td__link_abandon (link);
  return link;
}

TdLink *
td_negative_sampling_new_ (TdLink *parent, const char *name, int64_t in_size,
                           const int64_t *counts, int64_t n_words, int sample_size,
                           const TdNegativeSamplingLinkOpt *options)
{
  static const TdNegativeSamplingLinkOpt defaults = { TD_NEGATIVE_SAMPLING_LINK_DEFAULTS };

  return td_negative_sampling_new_at (parent, name, in_size, counts, n_words, sample_size,
                                      options != NULL ? *options : defaults, NULL);
}
