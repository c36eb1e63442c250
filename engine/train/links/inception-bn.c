/* InceptionBN: Inception with batch normalization behind every convolution.
 *
 * SPDX-License-Identifier: MIT */
#include "link.h"

#include <stdio.h>

/* Chainer's order of children is that of npz files only, so that the places here are free: each
 * convolution is followed by its normalisation. */
enum
{
  PROJ3,
  CONV3,
  PROJ33,
  CONV33A,
  CONV33B,
  CONV1,
  POOLP,
  N_LAYERS
};

typedef struct
{
  TdInceptionPool pooltype;
  int stride;
  int places[N_LAYERS]; /* of the convolution among the children, or -1 */
} InceptionBn;

/* relu (normalised (convolution (x))). */
static TdVar *
layer (TdLink *link, int at, TdVar *x)
{
  int place = ((const InceptionBn *)link->self)->places[at];

  return td_relu (td__link_child_call (link, place + 1, td__link_child_call (link, place, x)));
}

static TdVar *
pooled (const InceptionBn *s, TdVar *x)
{
  TdPool2dOpt pool = { .ksize = { 3, 3 }, .stride = { s->stride, s->stride }, .pad = { 1, 1 } };

  return s->pooltype == TD_INCEPTION_MAX ? td_max_pooling_2d_ (x, &pool)
                                         : td_average_pooling_2d_ (x, &pool);
}

static TdStatus
inception_bn_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out,
                      int n_out)
{
  const InceptionBn *s = self;
  TdStatus status = td__link_arity (link, n_in, 1, n_out, 1);
  TdVar *side[4];
  int n = 0;

  if (status != TD_OK)
    return status;
  if (s->places[CONV1] >= 0)
    side[n++] = layer (link, CONV1, in[0]);
  side[n++] = layer (link, CONV3, layer (link, PROJ3, in[0]));
  side[n++] = layer (link, CONV33B, layer (link, CONV33A, layer (link, PROJ33, in[0])));
  side[n] = pooled (s, in[0]);
  if (s->places[POOLP] >= 0)
    side[n] = layer (link, POOLP, side[n]);
  out[0] = td_concat (side, n + 1, 1);
  return td__link_status (out[0]);
}

static const TdLinkClass inception_bn_class = { .size = sizeof (TdLinkClass),
                                                .name = "InceptionBN",
                                                .self_bytes = sizeof (InceptionBn),
                                                .forward = inception_bn_forward };

static bool
add_layer (TdLink *link, const char *name, int64_t in, int64_t out, int ksize, int stride,
           TdInit init, const TdSite *site)
{
  TdConv2dLinkOpt o = { TD_CONV_2D_LINK_DEFAULTS };
  TdBatchNormLinkOpt bn = { TD_BATCH_NORM_LINK_DEFAULTS };
  char text[16];

  o.stride[0] = o.stride[1] = stride;
  o.pad[0] = o.pad[1] = ksize / 2;
  o.nobias = true;
  o.initialW = init;
  snprintf (text, sizeof text, "%sn", name);
  return !td_convolution_2d_new_at (link, name, in, out, ksize, o, site)->inert
         && !td_batch_normalization_new_at (link, text, out, bn, site)->inert;
}

TdLink *
td_inception_bn_new_at (TdLink *parent, const char *name, int64_t in_channels, int64_t out1,
                        int64_t proj3, int64_t out3, int64_t proj33, int64_t out33,
                        TdInceptionPool pooltype, TdInceptionBnOpt options, const TdSite *site)
{
  int s = options.stride;
  const struct
  {
    const char *name;
    int64_t in, out;
    int ksize, stride;
    bool there;
  } layers[N_LAYERS]
      = { [PROJ3] = { "proj3", in_channels, proj3, 1, 1, true },
          [CONV3] = { "conv3", proj3, out3, 3, s, true },
          [PROJ33] = { "proj33", in_channels, proj33, 1, 1, true },
          [CONV33A] = { "conv33a", proj33, out33, 3, 1, true },
          [CONV33B] = { "conv33b", out33, out33, 3, s, true },
          [CONV1] = { "conv1", in_channels, out1, 1, 1, out1 > 0 },
          [POOLP] = { "poolp", in_channels, options.proj_pool, 1, 1, options.proj_pool > 0 } };
  InceptionBn *self;
  TdLink *link;

  if (s < 1 || out1 < 0 || (out1 > 0 && (s != 1 || options.proj_pool <= 0))
      || pooltype < TD_INCEPTION_MAX || pooltype > TD_INCEPTION_AVERAGE)
    {
      td__fail (
          TD_ERR_ARG, "InceptionBN", site,
          "max or average pooling expected, and with out1 above 0 stride 1 and proj_pool, "
          "got out1 %lld, stride %d, proj_pool %lld",
          (long long)out1, s, (long long)options.proj_pool);
      return td__link_inert ();
    }
  link = td__link_make (&inception_bn_class, parent, name, site);
  if (link->inert)
    return link;
  self = link->self;
  *self = (InceptionBn){ .pooltype = pooltype, .stride = s };
  for (int i = 0; i < N_LAYERS; i++)
    {
      self->places[i] = layers[i].there ? link->n_children : -1;
      if (layers[i].there
          && !add_layer (link, layers[i].name, layers[i].in, layers[i].out, layers[i].ksize,
                         layers[i].stride, options.conv_init, site))
        return td__link_abandon (link);
    }
  return link;
}

TdLink *
td_inception_bn_new_ (TdLink *parent, const char *name, int64_t in_channels, int64_t out1,
                      int64_t proj3, int64_t out3, int64_t proj33, int64_t out33,
                      TdInceptionPool pooltype, const TdInceptionBnOpt *options)
{
  static const TdInceptionBnOpt defaults = { TD_INCEPTION_BN_DEFAULTS };

  return td_inception_bn_new_at (parent, name, in_channels, out1, proj3, out3, proj33, out33,
                                 pooltype, options != NULL ? *options : defaults, NULL);
}
