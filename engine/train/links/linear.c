/* Linear: y = x W^T + b.
 *
 * SPDX-License-Identifier: MIT */
#include "link.h"

#include <stdio.h>

typedef struct
{
  int64_t out_size;
  int n_batch_axes;
  bool bias;
} Linear;

enum
{
  PARAM_W,
  PARAM_B
};

/* The first input says how long a row is: trailing axes are flattened. */
static TdVar *
weight_for (TdLink *link, const Linear *l, TdVar *x)
{
  TdShape shape = { 2, { l->out_size, 0 } };

  if (link->params[PARAM_W]->var != NULL || td_poisoned (x))
    return link->params[PARAM_W]->var;
  if (x->node->shape.ndim <= l->n_batch_axes)
    {
      char text[160], axes[16] = "two";

      if (l->n_batch_axes > 1)
        snprintf (axes, sizeof axes, "%d", l->n_batch_axes + 1);
      td__fail (TD_ERR_SHAPE, "Linear", td__engine.site,
                "x with %s or more axes expected, got %s", axes,
                td_shape_text (&x->node->shape, text, sizeof text));
      return NULL;
    }
  shape.dim[1] = 1;
  for (int i = l->n_batch_axes; i < x->node->shape.ndim; i++)
    shape.dim[1] *= x->node->shape.dim[i];
  td__param_start (link->params[PARAM_W], &shape);
  return link->params[PARAM_W]->var;
}

static TdStatus
linear_prepare (TdLink *link, void *self, TdVar *const *in, int n_in)
{
  return n_in == 1 && weight_for (link, self, in[0]) != NULL ? TD_OK : TD_ERR_SHAPE;
}

static TdStatus
linear_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar *W;

  if (n_in != 1 || n_out != 1)
    return td__fail (TD_ERR_ARG, "Linear", td__engine.site,
                     "one input and one output expected, got %d and %d", n_in, n_out);
  W = weight_for (link, self, in[0]);
  if (W == NULL) /* out stays poisoned */
    return td__engine.has_error ? td__engine.error.status : TD_ERR_STATE;
  out[0] = td_linear_axes (in[0], W, ((Linear *)self)->bias ? link->params[PARAM_B]->var : NULL,
                           ((Linear *)self)->n_batch_axes);
  return td_poisoned (out[0]) ? td__engine.error.status : TD_OK;
}

static const TdLinkClass linear_class = { .size = sizeof (TdLinkClass),
                                          .name = "Linear",
                                          .self_bytes = sizeof (Linear),
                                          .forward = linear_forward,
                                          .prepare = linear_prepare };

TdLink *
td_linear_new_at (TdLink *parent, const char *name, int64_t in_size, int64_t out_size,
                  TdLinearOpt options, const TdSite *site)
{
  TdShape W = { 2, { out_size, in_size } }, b = { 1, { out_size } };
  TdLink *link;

  if (options.n_batch_axes == 0)
    options.n_batch_axes = 1;
  if (options.n_batch_axes < 1 || options.n_batch_axes >= TD_MAX_DIMS)
    {
      td__fail (TD_ERR_ARG, "Linear", site, "n_batch_axes 1 to %d expected, got %d",
                TD_MAX_DIMS - 1, options.n_batch_axes);
      return td__link_inert ();
    }
  if (out_size < 0 || in_size < TD_INFER)
    {
      td__fail (TD_ERR_ARG, "Linear", site, "sizes in %lld and out %lld make no matrix",
                (long long)in_size, (long long)out_size);
      return td__link_inert ();
    }
  link = td__link_make (&linear_class, parent, name, site);
  if (link->inert)
    return link;
  *(Linear *)link->self = (Linear){ out_size, options.n_batch_axes, !options.nobias };
  if (td__param_add (link, "W", &W, -1, options.initialW, td_init_lecun_normal (), site) == NULL
      || (!options.nobias
          && td__param_add (link, "b", &b, -1, options.initial_bias, td_init_zero (), site)
                 == NULL))
    return td__link_abandon (link);
  return link;
}

TdLink *
td_linear_new_ (TdLink *parent, const char *name, int64_t in_size, int64_t out_size,
                const TdLinearOpt *options)
{
  static const TdLinearOpt defaults = { TD_LINEAR_DEFAULTS };

  return td_linear_new_at (parent, name, in_size, out_size,
                           options != NULL ? *options : defaults, NULL);
}
