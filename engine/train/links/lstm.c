/* LSTM: a recurrent layer that keeps its cell c and its output h from call to call.
 *
 * Gates lie interleaved, a, i, f, o for each unit, as in Chainer, so that npz files agree.
 *
 * SPDX-License-Identifier: MIT */
#include "link.h"

#include <string.h>

enum
{
  CHILD_UPWARD,
  CHILD_LATERAL
};
enum
{
  GATE_F = 2,
  N_GATES = 4
};

typedef struct
{
  int64_t size;
} Lstm;

static void
keep (TdLink *link, const char *name, TdVar *v)
{
  td__param_keep (link, name, TD_PARAM_ATTR, v, td__engine.site);
}

/* The first rows of v, and the rest. */
static void
cut_rows (TdVar *v, int64_t rows, TdVar **first, TdVar **rest)
{
  TdSlice head = { 0, rows, 1, 0 }, tail = { rows, TD_END, 1, 0 };

  *first = td_get_item (v, &head, 1);
  *rest = td_get_item (v, &tail, 1);
}

/* Sequences sorted by length end one by one: a batch smaller than the state continues its first
 * rows, and the others wait. */
static TdStatus
step_state (TdLink *link, TdVar *gates, int64_t batch, TdVar **y)
{
  const Lstm *l = link->self;
  TdVar *c = td_link_attr (link, "c"), *h = td_link_attr (link, "h");
  TdVar *c_rest = NULL, *h_rest = NULL;
  char text[160];

  if (h != NULL && h->node->shape.dim[0] < batch)
    return td__fail (TD_ERR_SHAPE, "LSTM", td__engine.site,
                     "a batch of at most %lld rows expected, as many as state h %s has, got "
                     "%lld: td_lstm_reset_state first",
                     (long long)h->node->shape.dim[0],
                     td_shape_text (&h->node->shape, text, sizeof text), (long long)batch);
  if (c == NULL)
    c = td_to_device (td_zeros (td_dtype (gates), (TdShape){ 2, { batch, l->size } }),
                      td_device (gates));
  if (h != NULL && h->node->shape.dim[0] > batch)
    {
      cut_rows (h, batch, &h, &h_rest);
      cut_rows (c, batch, &c, &c_rest);
    }
  if (h != NULL)
    gates = td_add (gates, td_link_at (link->children[CHILD_LATERAL], h, td__engine.site));
  c = td_lstm (c, gates, &h);
  if (td_poisoned (c))
    return td__engine.has_error ? td__engine.error.status : TD_ERR_STATE;
  *y = h;
  if (h_rest != NULL)
    {
      TdVar *cs[] = { c, c_rest }, *hs[] = { h, h_rest };

      c = td_concat (cs, 2, 0);
      h = td_concat (hs, 2, 0);
    }
  keep (link, "c", c);
  keep (link, "h", h);
  return TD_OK;
}

static TdStatus
lstm_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar *gates;

  (void)self;
  if (n_in != 1 || n_out != 1)
    return td__fail (TD_ERR_ARG, "LSTM", td__engine.site,
                     "one input and one output expected, got %d and %d", n_in, n_out);
  gates = td_link_at (link->children[CHILD_UPWARD], in[0], td__engine.site);
  if (td_poisoned (gates))
    return td__engine.has_error ? td__engine.error.status : TD_ERR_STATE;
  return step_state (link, gates, gates->node->shape.dim[0], &out[0]);
}

static void
lstm_reset (TdLink *link, void *self)
{
  (void)self;
  if (td__param_find (link, "c") != NULL)
    keep (link, "c", NULL);
  if (td__param_find (link, "h") != NULL)
    keep (link, "h", NULL);
}

static const TdLinkClass lstm_class = { .size = sizeof (TdLinkClass),
                                        .name = "LSTM",
                                        .self_bytes = sizeof (Lstm),
                                        .forward = lstm_forward,
                                        .reset_state = lstm_reset };

static bool
is_lstm (const TdLink *link, const char *call)
{
  if (!td__link_usable (link, call, NULL))
    return false;
  if (link->cls == &lstm_class)
    return true;
  td__fail (TD_ERR_ARG, call, NULL, "%s is a %s, not an LSTM", link->path->text,
            link->cls->name);
  return false;
}

/* bias_init for a, i, o, forget_bias_init for f: filled apart, then interleaved. */
static TdStatus
start_bias (TdParam *b, int64_t size, TdInit bias, TdInit forget, const TdSite *site)
{
  TdInit inits[N_GATES] = { bias, bias, forget, bias };
  TdShape shape = { 1, { size } };
  TdDevice *d = b->var->node->device;
  TdStatus status = TD_OK;

  for (int g = 0; g < N_GATES && status == TD_OK; g++)
    {
      TdVar *v = td__var_leaf (b->dtype, &shape, d, TD_MEM_WORKSPACE, site);
      TdStrides walk = { g, { N_GATES } };
      TdTensor from, to;

      if (v == NULL)
        return td__error_status ();
      td__var_ref (v, TD_HOLD_ENGINE);
      status = td__init_fill (inits[g], v, &shape, site);
      from = (TdTensor){ v->buffer->data, &v->node->shape, size, b->dtype };
      to = (TdTensor){ b->var->buffer->data, &b->var->node->shape, N_GATES * size, b->dtype };
      if (status == TD_OK && d->computes)
        status = d->ops->strided (d, TD_STRIDED_WRITE, &from, &walk, &to);
      td__var_unref (v, TD_HOLD_ENGINE);
    }
  return status;
}

bool
td__lstm_children (TdLink *link, int64_t in_size, int64_t size, const TdLstmOpt *o,
                   const TdSite *site)
{
  TdLinearOpt up = { .initialW = o->upward_init },
              side = { .initialW = o->lateral_init, .nobias = true };
  TdLink *upward = td_linear_new_at (link, "upward", in_size, N_GATES * size, up, site);
  TdLink *lateral = td_linear_new_at (link, "lateral", size, N_GATES * size, side, site);

  return !upward->inert && !lateral->inert
         && start_bias (upward->params[1], size, td__init_or (o->bias_init, td_init_zero ()),
                        td__init_or (o->forget_bias_init, td_init_one ()), site)
                == TD_OK;
}

TdLink *
td_lstm_new_at (TdLink *parent, const char *name, int64_t in_size, int64_t out_size,
                TdLstmOpt options, const TdSite *site)
{
  TdLink *link;

  if (out_size <= 0 || in_size < TD_INFER || out_size > INT64_MAX / 8)
    {
      td__fail (TD_ERR_ARG, "LSTM", site, "sizes above 0 expected, got in %lld and out %lld",
                (long long)in_size, (long long)out_size);
      return td__link_inert ();
    }
  link = td__link_make (&lstm_class, parent, name, site);
  if (link->inert)
    return link;
  ((Lstm *)link->self)->size = out_size;
  return td__lstm_children (link, in_size, out_size, &options, site) ? link
                                                                     : td__link_abandon (link);
}

TdLink *
td_lstm_new_ (TdLink *parent, const char *name, int64_t in_size, int64_t out_size,
              const TdLstmOpt *options)
{
  static const TdLstmOpt defaults = { TD_LSTM_DEFAULTS };

  return td_lstm_new_at (parent, name, in_size, out_size, options != NULL ? *options : defaults,
                         NULL);
}

void
td_lstm_reset_state (TdLink *link)
{
  if (is_lstm (link, "td_lstm_reset_state"))
    lstm_reset (link, link->self);
}

TdStatus
td_lstm_set_state (TdLink *link, TdVar *c, TdVar *h)
{
  TdVar *state[] = { c, h };
  char text[160];

  if (!is_lstm (link, "td_lstm_set_state"))
    return td__error_status ();
  for (int i = 0; i < 2; i++)
    {
      if (!td__var_usable (state[i], "td_lstm_set_state", NULL))
        return td__error_status ();
      if (state[i]->node->shape.ndim != 2
          || state[i]->node->shape.dim[1] != ((Lstm *)link->self)->size
          || state[i]->node->shape.dim[0] != state[0]->node->shape.dim[0])
        return td__fail (TD_ERR_SHAPE, "td_lstm_set_state", NULL,
                         "c and h of one shape (n, %lld) expected, got %s",
                         (long long)((Lstm *)link->self)->size,
                         td_shape_text (&state[i]->node->shape, text, sizeof text));
    }
  keep (link, "c", c);
  keep (link, "h", h);
  return TD_OK;
}

TdVar *
td_lstm_c (TdLink *link)
{
  return is_lstm (link, "td_lstm_c") ? td_link_attr (link, "c") : td__poison ();
}

TdVar *
td_lstm_h (TdLink *link)
{
  return is_lstm (link, "td_lstm_h") ? td_link_attr (link, "h") : td__poison ();
}
