/* Convolutions over any axes, dilated, depthwise and transposed: one link with several classes.
 *
 * SPDX-License-Identifier: MIT */
#include "link.h"

typedef enum
{
  CONVOLUTION_ND,
  DILATED_2D,
  DEPTHWISE_2D,
  DECONVOLUTION_2D,
  DECONVOLUTION_ND
} Kind;

typedef struct
{
  Kind kind;
  int ndim;
  int64_t out; /* channels, of a depthwise one the multiplier */
  bool bias;
  TdConvLinkOpt o; /* kernel holds all sizes */
} Convolution;

enum
{
  PARAM_W,
  PARAM_B
};

/* Sizes for so many input channels; TD_INFER stays where they are not known. */
static TdShape
shape_of_W (const Convolution *c, int64_t in)
{
  int64_t groups = c->o.groups, in_group = in == TD_INFER ? TD_INFER : in / groups;
  TdShape W = { c->ndim + 2, { c->out, in_group } };

  if (c->kind == DEPTHWISE_2D)
    W.dim[1] = in;
  if (c->kind >= DECONVOLUTION_2D)
    {
      W.dim[0] = in;
      W.dim[1] = c->out / groups;
    }
  for (int i = 0; i < c->ndim; i++)
    W.dim[2 + i] = c->o.kernel[i];
  return W;
}

static TdShape
shape_of_b (const Convolution *c, int64_t in)
{
  TdShape b = { 1, { c->out } };

  if (c->kind == DEPTHWISE_2D)
    b.dim[0] = in == TD_INFER ? TD_INFER : in * c->out;
  return b;
}

static TdStatus
convolution_prepare (TdLink *link, void *self, TdVar *const *in, int n_in)
{
  const Convolution *c = self;
  char text[160];
  int64_t channels;
  TdStatus status;

  if (n_in != 1 || td_poisoned (in[0]) || link->params[PARAM_W]->var != NULL)
    return TD_OK;
  channels = in[0]->node->shape.ndim == c->ndim + 2 ? in[0]->node->shape.dim[1] : 0;
  if (channels <= 0 || channels % c->o.groups != 0)
    return td__fail (TD_ERR_SHAPE, link->cls->name, td__engine.site,
                     "x with %d axes, channels divisible by groups %d, expected, got %s",
                     c->ndim + 2, c->o.groups,
                     td_shape_text (&in[0]->node->shape, text, sizeof text));
  status = td__link_settle (link, PARAM_W, shape_of_W (c, channels));
  if (status == TD_OK && c->bias)
    status = td__link_settle (link, PARAM_B, shape_of_b (c, channels));
  return status;
}

static TdVar *
convolve_2d (const Convolution *c, TdVar *x, TdVar *W, TdVar *b)
{
  TdConv2dOpt o = { .stride = { c->o.stride[0], c->o.stride[1] },
                    .pad = { c->o.pad[0], c->o.pad[1] },
                    .dilate = { c->o.dilate[0], c->o.dilate[1] },
                    .groups = c->o.groups };

  return c->kind == DEPTHWISE_2D ? td_depthwise_convolution_2d_ (x, W, b, &o)
                                 : td_dilated_convolution_2d_ (x, W, b, &o);
}

static TdVar *
convolve_nd (const Convolution *c, TdVar *x, TdVar *W, TdVar *b)
{
  TdConvNdOpt o = { .groups = c->o.groups, .cover_all = c->o.cover_all };

  for (int i = 0; i < c->ndim; i++)
    {
      o.stride[i] = c->o.stride[i];
      o.pad[i] = c->o.pad[i];
      o.dilate[i] = c->o.dilate[i];
    }
  return td_convolution_nd_ (x, W, b, &o);
}

static TdVar *
deconvolve_2d (const Convolution *c, TdVar *x, TdVar *W, TdVar *b)
{
  TdDeconv2dOpt o = { .stride = { c->o.stride[0], c->o.stride[1] },
                      .pad = { c->o.pad[0], c->o.pad[1] },
                      .dilate = { c->o.dilate[0], c->o.dilate[1] },
                      .outsize = { c->o.outsize[0], c->o.outsize[1] },
                      .groups = c->o.groups };

  return td_deconvolution_2d_ (x, W, b, &o);
}

static TdVar *
deconvolve_nd (const Convolution *c, TdVar *x, TdVar *W, TdVar *b)
{
  TdDeconvNdOpt o = { .groups = c->o.groups };

  for (int i = 0; i < c->ndim; i++)
    {
      o.stride[i] = c->o.stride[i];
      o.pad[i] = c->o.pad[i];
      o.dilate[i] = c->o.dilate[i];
      o.outsize[i] = c->o.outsize[i];
    }
  return td_deconvolution_nd_ (x, W, b, &o);
}

static TdVar *(*const functions[]) (const Convolution *c, TdVar *x, TdVar *W, TdVar *b)
    = { [CONVOLUTION_ND] = convolve_nd,
        [DILATED_2D] = convolve_2d,
        [DEPTHWISE_2D] = convolve_2d,
        [DECONVOLUTION_2D] = deconvolve_2d,
        [DECONVOLUTION_ND] = deconvolve_nd };

static TdStatus
convolution_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out,
                     int n_out)
{
  const Convolution *c = self;
  TdStatus status = td__link_arity (link, n_in, 1, n_out, 1);

  if (status == TD_OK)
    status = convolution_prepare (link, self, in, n_in);
  if (status != TD_OK || link->params[PARAM_W]->var == NULL)
    return status != TD_OK ? status : TD_ERR_STATE;
  out[0] = functions[c->kind](c, in[0], link->params[PARAM_W]->var,
                              c->bias ? link->params[PARAM_B]->var : NULL);
  return td__link_status (out[0]);
}

#define CONVOLUTION_CLASS(text)                                                                \
  {                                                                                            \
    .size = sizeof (TdLinkClass), .name = text, .self_bytes = sizeof (Convolution),            \
    .forward = convolution_forward, .prepare = convolution_prepare                             \
  }
static const TdLinkClass nd_class = CONVOLUTION_CLASS ("ConvolutionND"),
                         one_class = CONVOLUTION_CLASS ("Convolution1D"),
                         three_class = CONVOLUTION_CLASS ("Convolution3D"),
                         dilated_class = CONVOLUTION_CLASS ("DilatedConvolution2D"),
                         depthwise_class = CONVOLUTION_CLASS ("DepthwiseConvolution2D"),
                         de_2d_class = CONVOLUTION_CLASS ("Deconvolution2D"),
                         de_nd_class = CONVOLUTION_CLASS ("DeconvolutionND");

static bool
options_ok (const TdLinkClass *cls, Convolution *c, int64_t in, int ksize, const TdSite *site)
{
  TdConvLinkOpt *o = &c->o;
  bool ok = c->ndim >= 1 && c->ndim <= TD_MAX_DIMS - 2 && c->out > 0 && in >= TD_INFER
            && in != 0 && o->groups > 0 && c->out <= INT32_MAX && in <= INT32_MAX;

  if (c->kind != DEPTHWISE_2D && ok)
    ok = c->out % o->groups == 0 && (in == TD_INFER || in % o->groups == 0);
  for (int i = 0; i < c->ndim && ok; i++)
    {
      if (o->kernel[i] == 0)
        o->kernel[i] = ksize;
      ok = o->kernel[i] > 0 && o->stride[i] > 0 && o->pad[i] >= 0 && o->dilate[i] > 0
           && o->outsize[i] >= 0;
    }
  if (!ok)
    td__fail (TD_ERR_ARG, cls->name, site,
              "%d axes, in %lld, out %lld, ksize %d, groups %d with strides from %d, pads from "
              "%d and dilations from %d make no convolution",
              c->ndim, (long long)in, (long long)c->out, ksize, o->groups, o->stride[0],
              o->pad[0], o->dilate[0]);
  return ok;
}

static TdLink *
convolution_new (const TdLinkClass *cls, TdLink *parent, const char *name, Convolution c,
                 int64_t in, int ksize, const TdSite *site)
{
  TdLink *link;

  if (!options_ok (cls, &c, in, ksize, site))
    return td__link_inert ();
  link = td__link_make (cls, parent, name, site);
  if (link->inert)
    return link;
  c.bias = !c.o.nobias;
  *(Convolution *)link->self = c;
  if (!td__link_add (link, "W", shape_of_W (&c, in), c.o.initialW, td_init_lecun_normal (),
                     site)
      || (c.bias
          && !td__link_add (link, "b", shape_of_b (&c, in), c.o.initial_bias, td_init_zero (),
                            site)))
    return td__link_abandon (link);
  return link;
}

static TdConvLinkOpt
options_or (const TdConvLinkOpt *options)
{
  static const TdConvLinkOpt defaults = { TD_CONV_LINK_DEFAULTS };

  return options != NULL ? *options : defaults;
}

/* The two constructors of one that has its number of axes in its name. */
#define FIXED_AXES(fn, cls, kind, ndim)                                                        \
  TdLink *td_##fn##_new_at (TdLink *parent, const char *name, int64_t in_channels,             \
                            int64_t out_channels, int ksize, TdConvLinkOpt options,            \
                            const TdSite *site)                                                \
  {                                                                                            \
    return convolution_new (&cls, parent, name,                                                \
                            (Convolution){ kind, ndim, out_channels, true, options },          \
                            in_channels, ksize, site);                                         \
  }                                                                                            \
  TdLink *td_##fn##_new_ (TdLink *parent, const char *name, int64_t in_channels,               \
                          int64_t out_channels, int ksize, const TdConvLinkOpt *options)       \
  {                                                                                            \
    return td_##fn##_new_at (parent, name, in_channels, out_channels, ksize,                   \
                             options_or (options), NULL);                                      \
  }
/* The two constructors of one that is told its number of axes. */
#define ANY_AXES(fn, cls, kind)                                                                \
  TdLink *td_##fn##_new_at (TdLink *parent, const char *name, int ndim, int64_t in_channels,   \
                            int64_t out_channels, int ksize, TdConvLinkOpt options,            \
                            const TdSite *site)                                                \
  {                                                                                            \
    return convolution_new (&cls, parent, name,                                                \
                            (Convolution){ kind, ndim, out_channels, true, options },          \
                            in_channels, ksize, site);                                         \
  }                                                                                            \
  TdLink *td_##fn##_new_ (TdLink *parent, const char *name, int ndim, int64_t in_channels,     \
                          int64_t out_channels, int ksize, const TdConvLinkOpt *options)       \
  {                                                                                            \
    return td_##fn##_new_at (parent, name, ndim, in_channels, out_channels, ksize,             \
                             options_or (options), NULL);                                      \
  }

ANY_AXES (convolution_nd, nd_class, CONVOLUTION_ND)
FIXED_AXES (convolution_1d, one_class, CONVOLUTION_ND, 1)
FIXED_AXES (convolution_3d, three_class, CONVOLUTION_ND, 3)
FIXED_AXES (dilated_convolution_2d, dilated_class, DILATED_2D, 2)
FIXED_AXES (depthwise_convolution_2d, depthwise_class, DEPTHWISE_2D, 2)
FIXED_AXES (deconvolution_2d, de_2d_class, DECONVOLUTION_2D, 2)
ANY_AXES (deconvolution_nd, de_nd_class, DECONVOLUTION_ND)
