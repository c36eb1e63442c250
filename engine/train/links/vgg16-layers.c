/* VGG16Layers: the net of 16 layers of Simonyan and Zisserman, 2014.
 *
 * SPDX-License-Identifier: MIT */
#include "net.h"

static TdVar *
pool (TdVar *x)
{
  static const TdPool2dOpt two = { .ksize = { 2, 2 }, .cover_all = true };

  return td_max_pooling_2d_ (x, &two);
}

static TdVar *
relu_and_dropout (TdVar *x)
{
  return td_dropout (td_relu (x), 0.5);
}

#define CONV(name)                                                                             \
  {                                                                                            \
    name, name, NULL, td_relu                                                                  \
  }
#define POOL(name)                                                                             \
  {                                                                                            \
    name, NULL, NULL, pool                                                                     \
  }
static const TdNetStep steps[] = { CONV ("conv1_1"),
                                   CONV ("conv1_2"),
                                   POOL ("pool1"),
                                   CONV ("conv2_1"),
                                   CONV ("conv2_2"),
                                   POOL ("pool2"),
                                   CONV ("conv3_1"),
                                   CONV ("conv3_2"),
                                   CONV ("conv3_3"),
                                   POOL ("pool3"),
                                   CONV ("conv4_1"),
                                   CONV ("conv4_2"),
                                   CONV ("conv4_3"),
                                   POOL ("pool4"),
                                   CONV ("conv5_1"),
                                   CONV ("conv5_2"),
                                   CONV ("conv5_3"),
                                   POOL ("pool5"),
                                   { "fc6", "fc6", NULL, relu_and_dropout },
                                   { "fc7", "fc7", NULL, relu_and_dropout },
                                   { "fc8", "fc8", NULL, NULL },
                                   { "prob", NULL, NULL, td__net_softmax },
                                   { NULL, NULL, NULL, NULL } };

static const struct
{
  const char *name;
  int in, out;
} convolutions[] = { { "conv1_1", 3, 64 },    { "conv1_2", 64, 64 },   { "conv2_1", 64, 128 },
                     { "conv2_2", 128, 128 }, { "conv3_1", 128, 256 }, { "conv3_2", 256, 256 },
                     { "conv3_3", 256, 256 }, { "conv4_1", 256, 512 }, { "conv4_2", 512, 512 },
                     { "conv4_3", 512, 512 }, { "conv5_1", 512, 512 }, { "conv5_2", 512, 512 },
                     { "conv5_3", 512, 512 } };

const TdLinkClass td__vgg16_class = { .size = sizeof (TdLinkClass),
                                      .name = "VGG16Layers",
                                      .self_bytes = sizeof (TdNet),
                                      .forward = td__net_forward };

TdLink *
td_vgg16_layers_new_at (TdLink *parent, const char *name, TdNetOpt options, const TdSite *site)
{
  TdLink *link = td__net_make (&td__vgg16_class, steps, parent, name, options.layer, site);
  TdInit init = td_init_normal (0.01);
  bool ok = !link->inert;

  for (int i = 0; i < TD_ARRAY_LENGTH (convolutions) && ok; i++)
    ok = td__net_convolution (link, convolutions[i].name, convolutions[i].in,
                              convolutions[i].out, 3, 1, 1, false, init, site);
  ok = ok && td__net_linear (link, "fc6", 512 * 7 * 7, 4096, init, site)
       && td__net_linear (link, "fc7", 4096, 4096, init, site)
       && td__net_linear (link, "fc8", 4096, 1000, init, site);
  return ok || link->inert ? link : td__link_abandon (link);
}

TdLink *
td_vgg16_layers_new_ (TdLink *parent, const char *name, const TdNetOpt *options)
{
  static const TdNetOpt defaults = { TD_NET_DEFAULTS };

  return td_vgg16_layers_new_at (parent, name, options != NULL ? *options : defaults, NULL);
}
