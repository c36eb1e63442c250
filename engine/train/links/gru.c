/* GRU, with a state of its own and without.
 *
 * SPDX-License-Identifier: MIT */
#include "link.h"

enum
{
  W_R,
  U_R,
  W_Z,
  U_Z,
  W_H,
  U_H,
  N_CHILDREN
};

static const char *const child_names[N_CHILDREN] = { "W_r", "U_r", "W_z", "U_z", "W", "U" };

static TdVar *
sum_of (TdLink *link, int w, TdVar *x, int u, TdVar *h)
{
  return td_add (td__link_child_call (link, w, x), td__link_child_call (link, u, h));
}

/* A state of zeros as every child would see it: its biases count, unlike in the stateful one.
 */
static TdVar *
zero_state (TdLink *link, TdVar *x)
{
  const TdVar *b = link->children[U_H]->params[1]->var;

  if (td_poisoned (x) || x->node->shape.ndim < 1)
    return td__poison ();
  return td_to_device (
      td_zeros (td_dtype (x), (TdShape){ 2, { x->node->shape.dim[0], b->node->shape.dim[0] } }),
      td_device (x));
}

static TdStatus
stateless_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar *x = in[n_in > 0 ? n_in - 1 : 0], *h, *r, *z, *h_bar;

  (void)self;
  if (n_in != 1 && td__link_arity (link, n_in, 2, n_out, 1) != TD_OK)
    return TD_ERR_ARG;
  h = n_in == 2 ? in[0] : zero_state (link, x);
  r = td_sigmoid (sum_of (link, W_R, x, U_R, h));
  z = td_sigmoid (sum_of (link, W_Z, x, U_Z, h));
  h_bar = td_tanh (sum_of (link, W_H, x, U_H, td_mul (r, h)));
  out[0] = td_linear_interpolate (z, h_bar, h);
  return td__link_status (out[0]);
}

static TdStatus
stateful_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar *h = td_link_attr (link, "h"), *z, *h_bar, *r;
  TdStatus status = td__link_arity (link, n_in, 1, n_out, 1);

  (void)self;
  if (status != TD_OK)
    return status;
  if (h == NULL)
    {
      z = td_sigmoid (td__link_child_call (link, W_Z, in[0]));
      h = td_mul (z, td_tanh (td__link_child_call (link, W_H, in[0])));
    }
  else
    {
      r = td_sigmoid (sum_of (link, W_R, in[0], U_R, h));
      z = td_sigmoid (sum_of (link, W_Z, in[0], U_Z, h));
      h_bar = td_tanh (sum_of (link, W_H, in[0], U_H, td_mul (r, h)));
      h = td_linear_interpolate (z, h_bar, h);
    }
  if (!td_poisoned (h))
    td__link_keep (link, "h", h);
  out[0] = h;
  return td__link_status (h);
}

static void
gru_reset (TdLink *link, void *self)
{
  (void)self;
  td__link_forget (link, "h");
}

static const TdLinkClass stateless_class
    = { .size = sizeof (TdLinkClass), .name = "StatelessGRU", .forward = stateless_forward };
static const TdLinkClass stateful_class = { .size = sizeof (TdLinkClass),
                                            .name = "StatefulGRU",
                                            .forward = stateful_forward,
                                            .reset_state = gru_reset };
static const TdLinkClass gru_class = { .size = sizeof (TdLinkClass),
                                       .name = "GRU",
                                       .forward = stateful_forward,
                                       .reset_state = gru_reset };

static TdLink *
gru_new (const TdLinkClass *cls, TdLink *parent, const char *name, int64_t in_size,
         int64_t out_size, const TdGruOpt *o, const TdSite *site)
{
  TdLink *link;

  if (out_size <= 0 || in_size < TD_INFER || in_size == 0)
    {
      td__fail (TD_ERR_ARG, cls->name, site, "sizes above 0 expected, got in %lld and out %lld",
                (long long)in_size, (long long)out_size);
      return td__link_inert ();
    }
  link = td__link_make (cls, parent, name, site);
  for (int i = 0; i < N_CHILDREN && !link->inert; i++)
    {
      bool inner = i % 2 != 0;
      TdLinearOpt options
          = { .initialW = inner ? o->inner_init : o->init, .initial_bias = o->bias_init };

      if (td_linear_new_at (link, child_names[i], inner ? out_size : in_size, out_size, options,
                            site)
              ->inert)
        link = td__link_abandon (link);
    }
  return link;
}

#define CONSTRUCTORS(fn, cls)                                                                  \
  TdLink *td_##fn##_new_at (TdLink *parent, const char *name, int64_t in_size,                 \
                            int64_t out_size, TdGruOpt options, const TdSite *site)            \
  {                                                                                            \
    return gru_new (&cls, parent, name, in_size, out_size, &options, site);                    \
  }                                                                                            \
  TdLink *td_##fn##_new_ (TdLink *parent, const char *name, int64_t in_size, int64_t out_size, \
                          const TdGruOpt *options)                                             \
  {                                                                                            \
    static const TdGruOpt defaults = { TD_GRU_DEFAULTS };                                      \
                                                                                               \
    return gru_new (&cls, parent, name, in_size, out_size,                                     \
                    options != NULL ? options : &defaults, NULL);                              \
  }

CONSTRUCTORS (stateless_gru, stateless_class)
CONSTRUCTORS (stateful_gru, stateful_class)
CONSTRUCTORS (gru, gru_class)
