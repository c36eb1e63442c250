/* ResNet50Layers: the residual net of 50 layers of He et al., 2015, its stride in the first
 * convolution of a block, as Chainer has it.
 *
 * SPDX-License-Identifier: MIT */
#include "net.h"

#include <stdio.h>

/* --- bottlenecks: A goes past by a convolution, B as it is --- */

/* Children are pairs of a convolution and its normalisation. */
static TdVar *
normalised (TdLink *link, int pair, TdVar *x)
{
  return td__link_child_call (link, 2 * pair + 1, td__link_child_call (link, 2 * pair, x));
}

static TdStatus
bottleneck_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out,
                    int n_out)
{
  TdStatus status = td__link_arity (link, n_in, 1, n_out, 1);
  TdVar *h, *past = in[0];

  (void)self;
  if (status != TD_OK)
    return status;
  h = td_relu (normalised (link, 0, in[0]));
  h = td_relu (normalised (link, 1, h));
  h = normalised (link, 2, h);
  if (link->n_children > 6)
    past = normalised (link, 3, in[0]);
  out[0] = td_relu (td_add (h, past));
  return td__link_status (out[0]);
}

static const TdLinkClass bottleneck_a_class
    = { .size = sizeof (TdLinkClass), .name = "BottleneckA", .forward = bottleneck_forward };
static const TdLinkClass bottleneck_b_class
    = { .size = sizeof (TdLinkClass), .name = "BottleneckB", .forward = bottleneck_forward };

static bool
add_pair (TdLink *link, int number, int64_t in, int64_t out, int ksize, int stride,
          const TdSite *site)
{
  TdBatchNormLinkOpt bn = { TD_BATCH_NORM_LINK_DEFAULTS };
  char conv[16], norm[16];

  snprintf (conv, sizeof conv, "conv%d", number);
  snprintf (norm, sizeof norm, "bn%d", number);
  return td__net_convolution (link, conv, in, out, ksize, stride, ksize / 2, true,
                              td_init_he_normal (), site)
         && !td_batch_normalization_new_at (link, norm, out, bn, site)->inert;
}

static bool
add_bottleneck (TdLink *block, const char *name, int64_t in, int64_t mid, int64_t out,
                int stride, bool past, const TdSite *site)
{
  TdLink *link
      = td__link_make (past ? &bottleneck_a_class : &bottleneck_b_class, block, name, site);

  return !link->inert && add_pair (link, 1, in, mid, 1, stride, site)
         && add_pair (link, 2, mid, mid, 3, 1, site) && add_pair (link, 3, mid, out, 1, 1, site)
         && (!past || add_pair (link, 4, in, out, 1, stride, site));
}

/* --- a block: a, b1, b2 ... one after the other --- */

static TdStatus
block_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdStatus status = td__link_arity (link, n_in, 1, n_out, 1);

  (void)self;
  if (status != TD_OK)
    return status;
  out[0] = in[0];
  for (int i = 0; i < link->n_children; i++)
    out[0] = td__link_child_call (link, i, out[0]);
  return td__link_status (out[0]);
}

static const TdLinkClass block_class
    = { .size = sizeof (TdLinkClass), .name = "BuildingBlock", .forward = block_forward };

static bool
add_block (TdLink *net, const char *name, int n, int64_t in, int64_t mid, int64_t out,
           int stride, const TdSite *site)
{
  TdLink *block = td__link_make (&block_class, net, name, site);
  bool ok = !block->inert && add_bottleneck (block, "a", in, mid, out, stride, true, site);
  char text[16];

  for (int i = 1; i < n && ok; i++)
    {
      snprintf (text, sizeof text, "b%d", i);
      ok = add_bottleneck (block, text, out, mid, out, 1, false, site);
    }
  return ok;
}

/* --- the net --- */

/* Mean over each channel. */
static TdVar *
global_average (TdVar *x)
{
  static const int axes[] = { 2, 3 };

  return td_mean_axes (x, axes, 2, false);
}

static const TdNetStep steps[] = { { NULL, "conv1", NULL, NULL },
                                   { "conv1", "bn1", NULL, td_relu },
                                   { "pool1", NULL, NULL, td__net_max_pooling_3 },
                                   { "res2", "res2", NULL, NULL },
                                   { "res3", "res3", NULL, NULL },
                                   { "res4", "res4", NULL, NULL },
                                   { "res5", "res5", NULL, NULL },
                                   { "pool5", NULL, NULL, global_average },
                                   { "fc6", "fc6", NULL, NULL },
                                   { "prob", NULL, NULL, td__net_softmax },
                                   { NULL, NULL, NULL, NULL } };

const TdLinkClass td__resnet50_class = { .size = sizeof (TdLinkClass),
                                         .name = "ResNet50Layers",
                                         .self_bytes = sizeof (TdNet),
                                         .forward = td__net_forward };

TdLink *
td_resnet50_layers_new_at (TdLink *parent, const char *name, TdNetOpt options,
                           const TdSite *site)
{
  TdLink *link = td__net_make (&td__resnet50_class, steps, parent, name, options.layer, site);
  TdBatchNormLinkOpt bn = { TD_BATCH_NORM_LINK_DEFAULTS };

  if (link->inert)
    return link;
  if (td__net_convolution (link, "conv1", 3, 64, 7, 2, 3, false, td_init_he_normal (), site)
      && !td_batch_normalization_new_at (link, "bn1", 64, bn, site)->inert
      && add_block (link, "res2", 3, 64, 64, 256, 1, site)
      && add_block (link, "res3", 4, 256, 128, 512, 2, site)
      && add_block (link, "res4", 6, 512, 256, 1024, 2, site)
      && add_block (link, "res5", 3, 1024, 512, 2048, 2, site)
      && td__net_linear (link, "fc6", 2048, 1000, td_init_he_normal (), site))
    return link;
  return td__link_abandon (link);
}

TdLink *
td_resnet50_layers_new_ (TdLink *parent, const char *name, const TdNetOpt *options)
{
  static const TdNetOpt defaults = { TD_NET_DEFAULTS };

  return td_resnet50_layers_new_at (parent, name, options != NULL ? *options : defaults, NULL);
}
