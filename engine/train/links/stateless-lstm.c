/* StatelessLSTM: one step of an LSTM whose state the caller keeps.
 *
 * SPDX-License-Identifier: MIT */
#include "link.h"

enum
{
  CHILD_UPWARD,
  CHILD_LATERAL,
  N_GATES = 4
};

typedef struct
{
  int64_t size;
} StatelessLstm;

static TdStatus
stateless_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  const StatelessLstm *l = self;
  TdVar *gates, *c;

  if (n_in != 1 && td__link_arity (link, n_in, 3, n_out, 2) != TD_OK)
    return TD_ERR_ARG;
  if (n_out != 2)
    return td__link_arity (link, n_in, n_in, n_out, 2);
  gates = td__link_child_call (link, CHILD_UPWARD, in[n_in - 1]);
  if (n_in == 3)
    gates = td_add (gates, td__link_child_call (link, CHILD_LATERAL, in[1]));
  if (td_poisoned (gates))
    return td__link_status (gates);
  c = n_in == 3
          ? in[0]
          : td_to_device (td_zeros (td_dtype (gates),
                                    (TdShape){ 2, { gates->node->shape.dim[0], l->size } }),
                          td_device (gates));
  out[0] = td_lstm (c, gates, &out[1]);
  return td__link_status (out[0]);
}

static const TdLinkClass stateless_class = { .size = sizeof (TdLinkClass),
                                             .name = "StatelessLSTM",
                                             .self_bytes = sizeof (StatelessLstm),
                                             .forward = stateless_forward };

TdLink *
td_stateless_lstm_new_at (TdLink *parent, const char *name, int64_t in_size, int64_t out_size,
                          TdLstmOpt options, const TdSite *site)
{
  TdLink *link;

  if (out_size <= 0 || in_size < TD_INFER || out_size > INT64_MAX / 8)
    {
      td__fail (TD_ERR_ARG, "StatelessLSTM", site,
                "sizes above 0 expected, got in %lld and out %lld", (long long)in_size,
                (long long)out_size);
      return td__link_inert ();
    }
  link = td__link_make (&stateless_class, parent, name, site);
  if (link->inert)
    return link;
  ((StatelessLstm *)link->self)->size = out_size;
  return td__lstm_children (link, in_size, out_size, &options, site) ? link
                                                                     : td__link_abandon (link);
}

TdLink *
td_stateless_lstm_new_ (TdLink *parent, const char *name, int64_t in_size, int64_t out_size,
                        const TdLstmOpt *options)
{
  static const TdLstmOpt defaults = { TD_LSTM_DEFAULTS };

  return td_stateless_lstm_new_at (parent, name, in_size, out_size,
                                   options != NULL ? *options : defaults, NULL);
}
