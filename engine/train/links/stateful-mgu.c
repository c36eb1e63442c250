/* StatefulMGU: the minimal gated unit.
 *
 * SPDX-License-Identifier: MIT */
#include "link.h"

enum
{
  CHILD_F,
  CHILD_H
};

typedef struct
{
  int64_t size;
} Mgu;

static TdVar *
beside (TdVar *h, TdVar *x)
{
  TdVar *both[] = { h, x };

  return td_concat (both, 2, 1);
}

static TdStatus
mgu_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  const Mgu *m = self;
  TdVar *h = td_link_attr (link, "h"), *x = in[0], *f, *h_bar;
  TdStatus status = td__link_arity (link, n_in, 1, n_out, 1);
  char text[160];

  if (status != TD_OK || td_poisoned (x))
    return status != TD_OK ? status : TD_ERR_STATE;
  if (x->node->shape.ndim != 2)
    return td__fail (TD_ERR_SHAPE, "StatefulMGU", td__engine.site,
                     "x with two axes expected, got %s",
                     td_shape_text (&x->node->shape, text, sizeof text));
  if (h == NULL)
    h = td_to_device (
        td_zeros (td_dtype (x), (TdShape){ 2, { x->node->shape.dim[0], m->size } }),
        td_device (x));
  f = td_sigmoid (td__link_child_call (link, CHILD_F, beside (h, x)));
  h_bar = td_tanh (td__link_child_call (link, CHILD_H, beside (td_mul (f, h), x)));
  h = td_linear_interpolate (f, h_bar, h);
  if (!td_poisoned (h))
    td__link_keep (link, "h", h);
  out[0] = h;
  return td__link_status (h);
}

static void
mgu_reset (TdLink *link, void *self)
{
  (void)self;
  td__link_forget (link, "h");
}

static const TdLinkClass mgu_class = { .size = sizeof (TdLinkClass),
                                       .name = "StatefulMGU",
                                       .self_bytes = sizeof (Mgu),
                                       .forward = mgu_forward,
                                       .reset_state = mgu_reset };

TdLink *
td_stateful_mgu_new (TdLink *parent, const char *name, int64_t in_size, int64_t out_size)
{
  TdLinearOpt options = { .nobias = false };
  TdLink *link;

  if (out_size <= 0 || in_size <= 0 || out_size > INT64_MAX / 8 || in_size > INT64_MAX / 8)
    {
      td__fail (TD_ERR_ARG, "StatefulMGU", NULL,
                "sizes above 0 expected, got in %lld and out %lld", (long long)in_size,
                (long long)out_size);
      return td__link_inert ();
    }
  link = td__link_make (&mgu_class, parent, name, NULL);
  if (link->inert)
    return link;
  ((Mgu *)link->self)->size = out_size;
  if (td_linear_new_at (link, "W_f", in_size + out_size, out_size, options, NULL)->inert
      || td_linear_new_at (link, "W_h", in_size + out_size, out_size, options, NULL)->inert)
    return td__link_abandon (link);
  return link;
}
