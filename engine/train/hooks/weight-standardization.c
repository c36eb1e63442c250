/* WeightStandardization: each output's weights with mean 0 and variance 1.
 *
 * SPDX-License-Identifier: MIT */
#include "weight.h"

#include <math.h>

typedef struct
{
  double eps;
  const char *weight_name;
  TdWeightSwap swap;
} Standardization;

static void
added (TdHook *hook, void *self, TdLink *link)
{
  td__weight_link_ok (link, ((Standardization *)self)->weight_name, hook->name);
}

static TdVar *
standardized (TdVar *W, double eps)
{
  const TdShape shape = W->node->shape;
  const int axis = 1;
  TdVar *rows = td_reshape (W, (TdShape){ 2, { shape.dim[0], -1 } });
  TdVar *centred = td_sub (rows, td_mean_axes (rows, &axis, 1, true));
  TdVar *variance = td_mean_axes (td_mul (centred, centred), &axis, 1, true);

  return td_reshape (td_div (centred, td_sqrt (td_add_scalar (variance, eps))), shape);
}

static void
before (TdHook *hook, void *self, const TdLinkCall *call)
{
  Standardization *s = self;
  TdParam *p;

  if (td__param_find (call->link, s->weight_name) == NULL)
    return; /* added said so */
  p = td__weight_find (call->link, s->weight_name, call, hook->name);
  if (p == NULL)
    return;
  if (p->var->node->shape.ndim < 2 || td_size (p->var) == 0)
    td__fail (TD_ERR_SHAPE, hook->name, call->site, "a weight of two or more axes expected");
  else
    td__weight_swap (&s->swap, call->link, p, standardized (p->var, s->eps));
}

static void
after (TdHook *hook, void *self, const TdLinkCall *call)
{
  Standardization *s = self;

  (void)hook;
  td__weight_restore (&s->swap, call->link, s->weight_name);
}

static const TdHookClass standardization_class = { .size = sizeof (TdHookClass),
                                                   .name = "WeightStandardization",
                                                   .self_bytes = sizeof (Standardization),
                                                   .flags = TD_HOOK_GRAPH,
                                                   .added = added,
                                                   .link_forward_preprocess = before,
                                                   .link_forward_postprocess = after };

TdHook *
td_weight_standardization_new_at (TdWeightStandardOpt options, const TdSite *site)
{
  TdHook *hook;

  if (!(options.eps > 0) || isinf (options.eps) || options.weight_name == NULL)
    {
      td__fail (TD_ERR_ARG, "WeightStandardization", site,
                "eps above 0 and the name of a weight expected, got %g and %s", options.eps,
                options.weight_name != NULL ? options.weight_name : "NULL");
      return td__hook_inert ();
    }
  hook = td_hook_new (&standardization_class);
  if (hook->self != NULL)
    *(Standardization *)hook->self
        = (Standardization){ .eps = options.eps,
                             .weight_name = td__intern (options.weight_name) };
  return hook;
}

TdHook *
td_weight_standardization_new_ (const TdWeightStandardOpt *options)
{
  static const TdWeightStandardOpt defaults = { TD_WEIGHT_STANDARD_DEFAULTS };

  return td_weight_standardization_new_at (options != NULL ? *options : defaults, NULL);
}
