/* Convolution2D: two-dimensional convolution with its own filters.
 *
 * SPDX-License-Identifier: MIT */
#include "link.h"

typedef struct
{
  int64_t out_channels;
  int kh, kw;
  bool bias;
  TdConv2dOpt options;
} Convolution2d;

enum
{
  PARAM_W,
  PARAM_B
};

static TdVar *
filters_for (TdLink *link, const Convolution2d *c, TdVar *x)
{
  int groups = c->options.groups;
  TdShape shape = { 4, { c->out_channels, 0, c->kh, c->kw } };

  if (link->params[PARAM_W]->var != NULL || td_poisoned (x))
    return link->params[PARAM_W]->var;
  if (x->node->shape.ndim != 4 || x->node->shape.dim[1] % groups != 0)
    {
      char text[160];

      td__fail (TD_ERR_SHAPE, "Convolution2D", td__engine.site,
                "x (n, c, h, w) with c divisible by groups %d expected, got %s", groups,
                td_shape_text (&x->node->shape, text, sizeof text));
      return NULL;
    }
  shape.dim[1] = x->node->shape.dim[1] / groups;
  td__param_start (link->params[PARAM_W], &shape);
  return link->params[PARAM_W]->var;
}

static TdStatus
convolution_2d_prepare (TdLink *link, void *self, TdVar *const *in, int n_in)
{
  return n_in == 1 && filters_for (link, self, in[0]) != NULL ? TD_OK : TD_ERR_SHAPE;
}

static TdStatus
convolution_2d_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out,
                        int n_out)
{
  Convolution2d *c = self;
  TdVar *W;

  if (n_in != 1 || n_out != 1)
    return td__fail (TD_ERR_ARG, "Convolution2D", td__engine.site,
                     "one input and one output expected, got %d and %d", n_in, n_out);
  W = filters_for (link, c, in[0]);
  if (W == NULL)
    return td__engine.has_error ? td__engine.error.status : TD_ERR_STATE;
  out[0]
      = td_convolution_2d_ (in[0], W, c->bias ? link->params[PARAM_B]->var : NULL, &c->options);
  return td_poisoned (out[0]) ? td__engine.error.status : TD_OK;
}

static const TdLinkClass convolution_2d_class = { .size = sizeof (TdLinkClass),
                                                  .name = "Convolution2D",
                                                  .self_bytes = sizeof (Convolution2d),
                                                  .forward = convolution_2d_forward,
                                                  .prepare = convolution_2d_prepare };

static bool
options_ok (int64_t in, int64_t out, int ksize, const TdConv2dLinkOpt *o, const TdSite *site)
{
  bool ok = out > 0 && in >= TD_INFER && in != 0 && ksize > 0 && o->kw >= 0 && o->groups > 0
            && o->stride[0] > 0 && o->stride[1] > 0 && o->pad[0] >= 0 && o->pad[1] >= 0
            && o->dilate[0] > 0 && o->dilate[1] > 0;

  if (ok && out % o->groups == 0 && (in == TD_INFER || in % o->groups == 0))
    return true;
  td__fail (TD_ERR_ARG, "Convolution2D", site,
            "in %lld, out %lld, ksize %d, stride (%d, %d), pad (%d, %d), dilate (%d, %d), "
            "groups %d make no convolution",
            (long long)in, (long long)out, ksize, o->stride[0], o->stride[1], o->pad[0],
            o->pad[1], o->dilate[0], o->dilate[1], o->groups);
  return false;
}

TdLink *
td_convolution_2d_new_at (TdLink *parent, const char *name, int64_t in_channels,
                          int64_t out_channels, int ksize, TdConv2dLinkOpt options,
                          const TdSite *site)
{
  int kw = options.kw > 0 ? options.kw : ksize;
  TdShape W = { 4, { out_channels, in_channels, ksize, kw } }, b = { 1, { out_channels } };
  Convolution2d *c;
  TdLink *link;

  if (!options_ok (in_channels, out_channels, ksize, &options, site))
    return td__link_inert ();
  if (in_channels != TD_INFER)
    W.dim[1] = in_channels / options.groups;
  link = td__link_make (&convolution_2d_class, parent, name, site);
  if (link->inert)
    return link;
  c = link->self;
  *c = (Convolution2d){ .out_channels = out_channels,
                        .kh = ksize,
                        .kw = kw,
                        .bias = !options.nobias,
                        .options = { .stride = { options.stride[0], options.stride[1] },
                                     .pad = { options.pad[0], options.pad[1] },
                                     .dilate = { options.dilate[0], options.dilate[1] },
                                     .groups = options.groups } };
  if (td__param_add (link, "W", &W, -1, options.initialW, td_init_lecun_normal (), site) == NULL
      || (!options.nobias
          && td__param_add (link, "b", &b, -1, options.initial_bias, td_init_zero (), site)
                 == NULL))
    return td__link_abandon (link);
  return link;
}

TdLink *
td_convolution_2d_new_ (TdLink *parent, const char *name, int64_t in_channels,
                        int64_t out_channels, int ksize, const TdConv2dLinkOpt *options)
{
  static const TdConv2dLinkOpt defaults = { TD_CONV_2D_LINK_DEFAULTS };

  return td_convolution_2d_new_at (parent, name, in_channels, out_channels, ksize,
                                   options != NULL ? *options : defaults, NULL);
}
