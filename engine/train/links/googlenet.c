/* GoogLeNet: nine inceptions and two classifiers on the way, of Szegedy et al., 2014.
 *
 * SPDX-License-Identifier: MIT */
#include "net.h"

static TdVar *
respond (TdVar *x)
{
  static const TdLocalResponseOpt o = { .n = 5, .k = 1, .alpha = 1e-4 / 5, .beta = 0.75 };

  return td_local_response_normalization_ (x, &o);
}

static TdVar *
pool_and_respond (TdVar *x)
{
  return respond (td__net_max_pooling_3 (x));
}

static TdVar *
relu_and_respond (TdVar *x)
{
  return respond (td_relu (x));
}

static TdVar *
average (TdVar *x, int ksize, int stride)
{
  TdPool2dOpt pool = { .ksize = { ksize, ksize }, .stride = { stride, stride } };

  return td_average_pooling_2d_ (x, &pool);
}

static TdVar *
average_7 (TdVar *x)
{
  return average (x, 7, 1);
}

static TdVar *
dropout (TdVar *x)
{
  return td_dropout (x, 0.4);
}

#define INCEPTION(name)                                                                        \
  {                                                                                            \
    name, name, NULL, NULL                                                                     \
  }
static const TdNetStep steps[] = { { "conv1", "conv1", NULL, td_relu },
                                   { "pool1", NULL, NULL, pool_and_respond },
                                   { "conv2_reduce", "conv2_reduce", NULL, td_relu },
                                   { "conv2", "conv2", NULL, relu_and_respond },
                                   { "pool2", NULL, NULL, td__net_max_pooling_3 },
                                   INCEPTION ("inc3a"),
                                   INCEPTION ("inc3b"),
                                   { "pool3", NULL, NULL, td__net_max_pooling_3 },
                                   INCEPTION ("inc4a"),
                                   INCEPTION ("inc4b"),
                                   INCEPTION ("inc4c"),
                                   INCEPTION ("inc4d"),
                                   INCEPTION ("inc4e"),
                                   { "pool4", NULL, NULL, td__net_max_pooling_3 },
                                   INCEPTION ("inc5a"),
                                   INCEPTION ("inc5b"),
                                   { "pool5", NULL, NULL, average_7 },
                                   { "loss3_fc", "loss3_fc", dropout, NULL },
                                   { "prob", NULL, NULL, td__net_softmax },
                                   { NULL, NULL, NULL, NULL } };

static const struct
{
  const char *name;
  int in, out1, proj3, out3, proj5, out5, proj_pool;
} inceptions[] = {
  { "inc3a", 192, 64, 96, 128, 16, 32, 32 },     { "inc3b", 256, 128, 128, 192, 32, 96, 64 },
  { "inc4a", 480, 192, 96, 208, 16, 48, 64 },    { "inc4b", 512, 160, 112, 224, 24, 64, 64 },
  { "inc4c", 512, 128, 128, 256, 24, 64, 64 },   { "inc4d", 512, 112, 144, 288, 32, 64, 64 },
  { "inc4e", 528, 256, 160, 320, 32, 128, 128 }, { "inc5a", 832, 256, 160, 320, 32, 128, 128 },
  { "inc5b", 832, 384, 192, 384, 48, 128, 128 }
};

/* A classifier on the way: average, convolution, two layers. */
static TdVar *
side (TdLink *link, const char *conv, const char *fc1, const char *fc2, TdVar *x)
{
  x = td_relu (td_link_at (td_link_child (link, conv), average (x, 5, 3), td__engine.site));
  x = td_relu (td_link_at (td_link_child (link, fc1), x, td__engine.site));
  return td_link_at (td_link_child (link, fc2), x, td__engine.site);
}

static TdStatus
googlenet_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  static const char *const taps[] = { "inc4a", "inc4d" };
  TdVar *tapped[2] = { NULL, NULL };

  (void)self;
  if (n_in != 1 || (n_out != 1 && n_out != 3))
    return td__fail (TD_ERR_ARG, "GoogLeNet", td__engine.site,
                     "one input and one or three outputs expected, got %d and %d", n_in, n_out);
  out[0] = td__net_run (link, in[0], taps, tapped, 2);
  if (n_out == 3 && (tapped[0] == NULL || tapped[1] == NULL))
    return td__fail (TD_ERR_ARG, "GoogLeNet", td__engine.site,
                     "a layer behind inc4d expected for three outputs");
  if (n_out == 3)
    {
      out[1] = side (link, "loss1_conv", "loss1_fc1", "loss1_fc2", tapped[0]);
      out[2] = side (link, "loss2_conv", "loss2_fc1", "loss2_fc2", tapped[1]);
    }
  return td__link_status (out[n_out - 1]);
}

const TdLinkClass td__googlenet_class = { .size = sizeof (TdLinkClass),
                                          .name = "GoogLeNet",
                                          .self_bytes = sizeof (TdNet),
                                          .forward = googlenet_forward };

TdLink *
td_googlenet_new_at (TdLink *parent, const char *name, TdNetOpt options, const TdSite *site)
{
  TdLink *link = td__net_make (&td__googlenet_class, steps, parent, name, options.layer, site);
  TdInit init = td_init_lecun_uniform ();
  bool ok;

  if (link->inert)
    return link;
  ok = td__net_convolution (link, "conv1", 3, 64, 7, 2, 3, false, init, site)
       && td__net_convolution (link, "conv2_reduce", 64, 64, 1, 1, 0, false, init, site)
       && td__net_convolution (link, "conv2", 64, 192, 3, 1, 1, false, init, site);
  for (int i = 0; i < TD_ARRAY_LENGTH (inceptions) && ok; i++)
    ok = !td_inception_new_at (link, inceptions[i].name, inceptions[i].in, inceptions[i].out1,
                               inceptions[i].proj3, inceptions[i].out3, inceptions[i].proj5,
                               inceptions[i].out5, inceptions[i].proj_pool,
                               (TdInceptionOpt){ .conv_init = init }, site)
              ->inert;
  ok = ok && td__net_linear (link, "loss3_fc", 1024, 1000, init, site)
       && td__net_convolution (link, "loss1_conv", 512, 128, 1, 1, 0, false, init, site)
       && td__net_linear (link, "loss1_fc1", 4 * 4 * 128, 1024, init, site)
       && td__net_linear (link, "loss1_fc2", 1024, 1000, init, site)
       && td__net_convolution (link, "loss2_conv", 528, 128, 1, 1, 0, false, init, site)
       && td__net_linear (link, "loss2_fc1", 4 * 4 * 128, 1024, init, site)
       && td__net_linear (link, "loss2_fc2", 1024, 1000, init, site);
  return ok ? link : td__link_abandon (link);
}

TdLink *
td_googlenet_new_ (TdLink *parent, const char *name, const TdNetOpt *options)
{
  static const TdNetOpt defaults = { TD_NET_DEFAULTS };

  return td_googlenet_new_at (parent, name, options != NULL ? *options : defaults, NULL);
}
