/* StatefulPeepholeLSTM: gates that see the cell as well.
 *
 * Gates lie interleaved, a, i, f, o for each unit, as in LSTM.
 *
 * SPDX-License-Identifier: MIT */
#include "link.h"

enum
{
  CHILD_UPWARD,
  CHILD_LATERAL,
  CHILD_PEEP_I,
  CHILD_PEEP_F,
  CHILD_PEEP_O,
  N_CHILDREN,
  N_GATES = 4
};

typedef struct
{
  int64_t size;
} Peephole;

static TdStatus
peephole_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  const Peephole *p = self;
  TdVar *c = td_link_attr (link, "c"), *h = td_link_attr (link, "h"), *gates, *g[N_GATES];
  TdStatus status = td__link_arity (link, n_in, 1, n_out, 1);
  int64_t n;

  if (status != TD_OK)
    return status;
  gates = td__link_child_call (link, CHILD_UPWARD, in[0]);
  if (h != NULL)
    gates = td_add (gates, td__link_child_call (link, CHILD_LATERAL, h));
  if (td_poisoned (gates))
    return td__link_status (gates);
  n = gates->node->shape.dim[0];
  if (c == NULL)
    c = td_to_device (td_zeros (td_dtype (gates), (TdShape){ 2, { n, p->size } }),
                      td_device (gates));
  if (td_split_axis (td_reshape (gates, (TdShape){ 3, { n, p->size, N_GATES } }), N_GATES, 2, g)
      != TD_OK)
    return TD_ERR_STATE;
  for (int i = 0; i < N_GATES; i++)
    g[i] = td_reshape (g[i], (TdShape){ 2, { n, p->size } });
  g[1] = td_sigmoid (td_add (g[1], td__link_child_call (link, CHILD_PEEP_I, c)));
  g[2] = td_sigmoid (td_add (g[2], td__link_child_call (link, CHILD_PEEP_F, c)));
  c = td_add (td_mul (td_tanh (g[0]), g[1]), td_mul (g[2], c));
  g[3] = td_sigmoid (td_add (g[3], td__link_child_call (link, CHILD_PEEP_O, c)));
  h = td_mul (g[3], td_tanh (c));
  if (!td_poisoned (h))
    {
      td__link_keep (link, "c", c);
      td__link_keep (link, "h", h);
    }
  out[0] = h;
  return td__link_status (h);
}

static void
peephole_reset (TdLink *link, void *self)
{
  (void)self;
  td__link_forget (link, "c");
  td__link_forget (link, "h");
}

static const TdLinkClass peephole_class = { .size = sizeof (TdLinkClass),
                                            .name = "StatefulPeepholeLSTM",
                                            .self_bytes = sizeof (Peephole),
                                            .forward = peephole_forward,
                                            .reset_state = peephole_reset };

TdLink *
td_stateful_peephole_lstm_new (TdLink *parent, const char *name, int64_t in_size,
                               int64_t out_size)
{
  const struct
  {
    const char *name;
    int64_t in, out;
    bool nobias;
  } children[N_CHILDREN] = { { "upward", in_size, N_GATES * out_size, false },
                             { "lateral", out_size, N_GATES * out_size, true },
                             { "peep_i", out_size, out_size, true },
                             { "peep_f", out_size, out_size, true },
                             { "peep_o", out_size, out_size, true } };
  TdLink *link;

  if (out_size <= 0 || in_size < TD_INFER || out_size > INT32_MAX)
    {
      td__fail (TD_ERR_ARG, "StatefulPeepholeLSTM", NULL,
                "sizes above 0 expected, got in %lld and out %lld", (long long)in_size,
                (long long)out_size);
      return td__link_inert ();
    }
  link = td__link_make (&peephole_class, parent, name, NULL);
  if (link->inert)
    return link;
  ((Peephole *)link->self)->size = out_size;
  for (int i = 0; i < N_CHILDREN; i++)
    if (td_linear_new_at (link, children[i].name, children[i].in, children[i].out,
                          (TdLinearOpt){ .nobias = children[i].nobias }, NULL)
            ->inert)
      return td__link_abandon (link);
  return link;
}
