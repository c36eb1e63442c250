/* EmbedID: a row of W for each id.
 *
 * SPDX-License-Identifier: MIT */
#include "link.h"

typedef struct
{
  int ignore_label;
} EmbedId;

static TdStatus
embed_id_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  const TdEmbedOpt options = { .ignore_label = ((const EmbedId *)self)->ignore_label };

  if (n_in != 1 || n_out != 1)
    return td__fail (TD_ERR_ARG, "EmbedID", td__engine.site,
                     "one input and one output expected, got %d and %d", n_in, n_out);
  out[0] = td_embed_id_ (in[0], link->params[0]->var, &options);
  return td_poisoned (out[0]) ? td__engine.error.status : TD_OK;
}

static const TdLinkClass embed_id_class = { .size = sizeof (TdLinkClass),
                                            .name = "EmbedID",
                                            .self_bytes = sizeof (EmbedId),
                                            .forward = embed_id_forward };

TdLink *
td_embed_id_new_at (TdLink *parent, const char *name, int64_t in_size, int64_t out_size,
                    TdEmbedIdOpt options, const TdSite *site)
{
  TdShape W = { 2, { in_size, out_size } };
  TdLink *link;

  if (in_size <= 0 || out_size <= 0)
    {
      td__fail (TD_ERR_ARG, "EmbedID", site, "sizes above 0 expected, got %lld and %lld",
                (long long)in_size, (long long)out_size);
      return td__link_inert ();
    }
  link = td__link_make (&embed_id_class, parent, name, site);
  if (!link->inert
      && td__param_add (link, "W", &W, -1, options.initialW, td_init_normal (1.0), site)
             == NULL)
    return td__link_abandon (link);
  if (!link->inert)
    ((EmbedId *)link->self)->ignore_label = options.ignore_label;
  return link;
}

TdLink *
td_embed_id_new_ (TdLink *parent, const char *name, int64_t in_size, int64_t out_size,
                  const TdEmbedIdOpt *options)
{
  static const TdEmbedIdOpt defaults = { TD_EMBED_ID_DEFAULTS };

  return td_embed_id_new_at (parent, name, in_size, out_size,
                             options != NULL ? *options : defaults, NULL);
}
