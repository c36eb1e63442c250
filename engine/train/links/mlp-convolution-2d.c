/* MLPConvolution2D: a small net of layers at every place of a picture.
 *
 * SPDX-License-Identifier: MIT */
#include "link.h"

#include <stdio.h>

typedef struct
{
  TdVar *(*activation) (TdVar *x);
} MlpConv;

static TdStatus
mlp_conv_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  const MlpConv *m = self;
  TdStatus status = td__link_arity (link, n_in, 1, n_out, 1);
  TdVar *x = in[0];

  if (status != TD_OK)
    return status;
  for (int i = 0; i < link->n_children; i++)
    {
      x = td__link_child_call (link, i, x);
      if (i + 1 < link->n_children)
        x = m->activation (x);
    }
  out[0] = x;
  return td__link_status (x);
}

static const TdLinkClass mlp_conv_class = { .size = sizeof (TdLinkClass),
                                            .name = "MLPConvolution2D",
                                            .self_bytes = sizeof (MlpConv),
                                            .forward = mlp_conv_forward };

TdLink *
td_mlp_convolution_2d_new_at (TdLink *parent, const char *name, int64_t in_channels,
                              const int64_t *out_channels, int n, int ksize,
                              TdMlpConv2dOpt options, const TdSite *site)
{
  TdLink *link;
  char text[16];

  if (out_channels == NULL || n < 1 || options.activation == NULL)
    {
      td__fail (TD_ERR_ARG, "MLPConvolution2D", site,
                "one or more layers and an activation expected, got %d", n);
      return td__link_inert ();
    }
  link = td__link_make (&mlp_conv_class, parent, name, site);
  if (link->inert)
    return link;
  ((MlpConv *)link->self)->activation = options.activation;
  for (int i = 0; i < n; i++)
    {
      TdConv2dLinkOpt o = { TD_CONV_2D_LINK_DEFAULTS };

      o.initialW = options.conv_init;
      o.initial_bias = options.bias_init;
      for (int d = 0; d < 2 && i == 0; d++)
        {
          o.stride[d] = options.stride[d];
          o.pad[d] = options.pad[d];
        }
      snprintf (text, sizeof text, "%d", i);
      if (td_convolution_2d_new_at (link, text, i == 0 ? in_channels : out_channels[i - 1],
                                    out_channels[i], i == 0 ? ksize : 1, o, site)
              ->inert)
        return td__link_abandon (link);
    }
  return link;
}

TdLink *
td_mlp_convolution_2d_new_ (TdLink *parent, const char *name, int64_t in_channels,
                            const int64_t *out_channels, int n, int ksize,
                            const TdMlpConv2dOpt *options)
{
  static const TdMlpConv2dOpt defaults = { TD_MLP_CONV_2D_DEFAULTS };

  return td_mlp_convolution_2d_new_at (parent, name, in_channels, out_channels, n, ksize,
                                       options != NULL ? *options : defaults, NULL);
}
