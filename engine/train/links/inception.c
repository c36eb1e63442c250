/* Inception: windows of several sizes and a pooling beside one another.
 *
 * SPDX-License-Identifier: MIT */
#include "link.h"

enum
{
  CONV1,
  PROJ3,
  CONV3,
  PROJ5,
  CONV5,
  PROJP,
  N_CHILDREN
};

static TdStatus
inception_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  static const TdPool2dOpt pool
      = { .ksize = { 3, 3 }, .stride = { 1, 1 }, .pad = { 1, 1 }, .cover_all = true };
  TdStatus status = td__link_arity (link, n_in, 1, n_out, 1);
  TdVar *side[4];

  (void)self;
  if (status != TD_OK)
    return status;
  side[0] = td__link_child_call (link, CONV1, in[0]);
  side[1]
      = td__link_child_call (link, CONV3, td_relu (td__link_child_call (link, PROJ3, in[0])));
  side[2]
      = td__link_child_call (link, CONV5, td_relu (td__link_child_call (link, PROJ5, in[0])));
  side[3] = td__link_child_call (link, PROJP, td_max_pooling_2d_ (in[0], &pool));
  out[0] = td_relu (td_concat (side, 4, 1));
  return td__link_status (out[0]);
}

static const TdLinkClass inception_class
    = { .size = sizeof (TdLinkClass), .name = "Inception", .forward = inception_forward };

TdLink *
td_inception_new_at (TdLink *parent, const char *name, int64_t in_channels, int64_t out1,
                     int64_t proj3, int64_t out3, int64_t proj5, int64_t out5,
                     int64_t proj_pool, TdInceptionOpt options, const TdSite *site)
{
  const struct
  {
    const char *name;
    int64_t in, out;
    int ksize;
  } children[N_CHILDREN] = { [CONV1] = { "conv1", in_channels, out1, 1 },
                             [PROJ3] = { "proj3", in_channels, proj3, 1 },
                             [CONV3] = { "conv3", proj3, out3, 3 },
                             [PROJ5] = { "proj5", in_channels, proj5, 1 },
                             [CONV5] = { "conv5", proj5, out5, 5 },
                             [PROJP] = { "projp", in_channels, proj_pool, 1 } };
  TdLink *link = td__link_make (&inception_class, parent, name, site);

  for (int i = 0; i < N_CHILDREN && !link->inert; i++)
    {
      TdConv2dLinkOpt o = { TD_CONV_2D_LINK_DEFAULTS };

      o.pad[0] = o.pad[1] = children[i].ksize / 2;
      o.initialW = options.conv_init;
      o.initial_bias = options.bias_init;
      if (td_convolution_2d_new_at (link, children[i].name, children[i].in, children[i].out,
                                    children[i].ksize, o, site)
              ->inert)
        link = td__link_abandon (link);
    }
  return link;
}

TdLink *
td_inception_new_ (TdLink *parent, const char *name, int64_t in_channels, int64_t out1,
                   int64_t proj3, int64_t out3, int64_t proj5, int64_t out5, int64_t proj_pool,
                   const TdInceptionOpt *options)
{
  static const TdInceptionOpt defaults = { TD_INCEPTION_DEFAULTS };

  return td_inception_new_at (parent, name, in_channels, out1, proj3, out3, proj5, out5,
                              proj_pool, options != NULL ? *options : defaults, NULL);
}
