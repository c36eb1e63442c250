/* Nets that are a list of named layers.
 *
 * SPDX-License-Identifier: MIT */
#include "net.h"

#include <string.h>

static int
find_layer (const TdNetStep *steps, const char *layer)
{
  for (int i = 0; steps[i].layer != NULL || steps[i].child != NULL; i++)
    if (layer != NULL && steps[i].layer != NULL && strcmp (steps[i].layer, layer) == 0)
      return i;
  return -1;
}

TdVar *
td__net_run (TdLink *link, TdVar *x, const char *const *taps, TdVar **tapped, int n_taps)
{
  const TdNet *net = link->self;

  for (int i = 0; i <= net->last; i++)
    {
      const TdNetStep *step = &net->steps[i];

      if (step->before != NULL)
        x = step->before (x);
      if (step->child != NULL)
        x = td_link_at (td_link_child (link, step->child), x, td__engine.site);
      if (step->after != NULL)
        x = step->after (x);
      for (int t = 0; t < n_taps; t++)
        if (step->layer != NULL && strcmp (step->layer, taps[t]) == 0)
          tapped[t] = x;
    }
  return x;
}

TdLink *
td__net_make (const TdLinkClass *cls, const TdNetStep *steps, TdLink *parent, const char *name,
              const char *layer, const TdSite *site)
{
  int last = find_layer (steps, layer);
  TdLink *link;

  if (last < 0)
    {
      td__fail (TD_ERR_ARG, cls->name, site, "it has no layer %.60s",
                layer != NULL ? layer : "(null)");
      return td__link_inert ();
    }
  link = td__link_make (cls, parent, name, site);
  if (!link->inert)
    *(TdNet *)link->self = (TdNet){ steps, last };
  return link;
}

bool
td__net_convolution (TdLink *link, const char *name, int64_t in, int64_t out, int ksize,
                     int stride, int pad, bool nobias, TdInit init, const TdSite *site)
{
  TdConv2dLinkOpt o = { TD_CONV_2D_LINK_DEFAULTS };

  o.stride[0] = o.stride[1] = stride;
  o.pad[0] = o.pad[1] = pad;
  o.nobias = nobias;
  o.initialW = init;
  return !td_convolution_2d_new_at (link, name, in, out, ksize, o, site)->inert;
}

bool
td__net_linear (TdLink *link, const char *name, int64_t in, int64_t out, TdInit init,
                const TdSite *site)
{
  return !td_linear_new_at (link, name, in, out, (TdLinearOpt){ .initialW = init }, site)
              ->inert;
}

TdVar *
td__net_max_pooling_3 (TdVar *x)
{
  static const TdPool2dOpt pool = { .ksize = { 3, 3 }, .stride = { 2, 2 }, .cover_all = true };

  return td_max_pooling_2d_ (x, &pool);
}

TdVar *
td__net_softmax (TdVar *x)
{
  return td_softmax_ (x, NULL);
}

static bool
is_net (const TdLinkClass *cls)
{
  return cls == &td__vgg16_class || cls == &td__resnet50_class || cls == &td__googlenet_class;
}

TdStatus
td_net_set_layer (TdLink *net, const char *layer)
{
  int last;

  if (!td__link_usable (net, "td_net_set_layer", NULL))
    return td__error_status ();
  if (!is_net (net->cls))
    return td__fail (TD_ERR_ARG, "td_net_set_layer", NULL, "%s is a %s, not a net of layers",
                     net->path->text, net->cls->name);
  last = find_layer (((TdNet *)net->self)->steps, layer);
  if (last < 0)
    return td__fail (TD_ERR_ARG, "td_net_set_layer", NULL, "%s has no layer %.60s",
                     net->path->text, layer != NULL ? layer : "(null)");
  ((TdNet *)net->self)->last = last;
  return TD_OK;
}

/* One input; one output, the layer's. */
TdStatus
td__net_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdStatus status = td__link_arity (link, n_in, 1, n_out, 1);

  (void)self;
  if (status != TD_OK)
    return status;
  out[0] = td__net_run (link, in[0], NULL, NULL, 0);
  return td__link_status (out[0]);
}
