/* Nets that are a list of named layers: what VGG16Layers, ResNet50Layers and GoogLeNet share.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "link.h"

/** One step: before, then the child of that name, then after; each may be NULL. */
typedef struct TdNetStep
{
  const char *layer; /**< what the result is called; NULL: it has no name */
  const char *child;
  TdVar *(*before) (TdVar *x);
  TdVar *(*after) (TdVar *x);
} TdNetStep;

/** What self begins with. */
typedef struct TdNet
{
  const TdNetStep *steps; /**< up to one without layer and child */
  int last;               /**< the step whose result the call gives */
} TdNet;

extern const TdLinkClass td__vgg16_class, td__resnet50_class, td__googlenet_class;

/** The forward of nets with one output. */
TdStatus td__net_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out,
                          int n_out);
/** Run the steps from x up to the last one; tapped gets the results of the layers named in
 * taps, as far as they are among those steps. */
TdVar *td__net_run (TdLink *link, TdVar *x, const char *const *taps, TdVar **tapped,
                    int n_taps);
/** Make the link of a net; inert after td__fail for an unknown layer. */
TdLink *td__net_make (const TdLinkClass *cls, const TdNetStep *steps, TdLink *parent,
                      const char *name, const char *layer, const TdSite *site);
/** A net's child, a convolution of square windows; says false after td__fail. */
bool td__net_convolution (TdLink *link, const char *name, int64_t in, int64_t out, int ksize,
                          int stride, int pad, bool nobias, TdInit init, const TdSite *site);
bool td__net_linear (TdLink *link, const char *name, int64_t in, int64_t out, TdInit init,
                     const TdSite *site);
/* Steps that several nets have. */
TdVar *td__net_max_pooling_3 (TdVar *x); /**< windows of 3, stride 2 */
TdVar *td__net_softmax (TdVar *x);
