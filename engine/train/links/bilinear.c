/* Bilinear: e1 W e2 + e1 V1 + e2 V2 + b, each pair of features with a weight of its own.
 *
 * SPDX-License-Identifier: MIT */
#include "link.h"

enum
{
  PARAM_W,
  PARAM_V1,
  PARAM_V2,
  PARAM_B
};

static TdStatus
bilinear_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  const bool bias = *(const bool *)self;
  TdParam **p = link->params;
  TdStatus status = td__link_arity (link, n_in, 2, n_out, 1);

  if (status != TD_OK)
    return status;
  out[0] = td_bilinear (in[0], in[1], p[PARAM_W]->var, bias ? p[PARAM_V1]->var : NULL,
                        bias ? p[PARAM_V2]->var : NULL, bias ? p[PARAM_B]->var : NULL);
  return td__link_status (out[0]);
}

static const TdLinkClass bilinear_class = { .size = sizeof (TdLinkClass),
                                            .name = "Bilinear",
                                            .self_bytes = sizeof (bool),
                                            .forward = bilinear_forward };

TdLink *
td_bilinear_new_at (TdLink *parent, const char *name, int64_t left_size, int64_t right_size,
                    int64_t out_size, TdBilinearOpt options, const TdSite *site)
{
  const TdInit normal = td_init_lecun_normal ();
  TdLink *link;

  if (left_size <= 0 || right_size <= 0 || out_size <= 0)
    {
      td__fail (TD_ERR_ARG, "Bilinear", site,
                "left, right and out sizes above 0 expected, got %lld, %lld and %lld",
                (long long)left_size, (long long)right_size, (long long)out_size);
      return td__link_inert ();
    }
  link = td__link_make (&bilinear_class, parent, name, site);
  if (link->inert)
    return link;
  *(bool *)link->self = !options.nobias;
  if (!td__link_add (link, "W", TD_SHAPE (left_size, right_size, out_size), options.initialW,
                     normal, site)
      || (!options.nobias
          && (!td__link_add (link, "V1", TD_SHAPE (left_size, out_size), options.initialV1,
                             normal, site)
              || !td__link_add (link, "V2", TD_SHAPE (right_size, out_size), options.initialV2,
                                normal, site)
              || !td__link_add (link, "b", TD_SHAPE (out_size), options.initial_bias,
                                td_init_zero (), site))))
    return td__link_abandon (link);
  return link;
}

TdLink *
td_bilinear_new_ (TdLink *parent, const char *name, int64_t left_size, int64_t right_size,
                  int64_t out_size, const TdBilinearOpt *options)
{
  static const TdBilinearOpt defaults = { TD_BILINEAR_DEFAULTS };

  return td_bilinear_new_at (parent, name, left_size, right_size, out_size,
                             options != NULL ? *options : defaults, NULL);
}
