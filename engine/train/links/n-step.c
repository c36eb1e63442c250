/* Recurrent links of several layers over whole sequences of any lengths in any order.
 *
 * The functions take steps of sequences sorted by length; the link sorts, cuts into steps, and
 * puts the results back.  Cutting and putting back are one gathering of rows each.
 *
 * SPDX-License-Identifier: MIT */
#include "link.h"
#include "host-memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum
{
  LSTM,
  GRU,
  RNN_TANH,
  RNN_RELU
} Kind;

static const struct
{
  int n_weights;
  bool cell;
} kinds[] = { [LSTM] = { 8, true },
              [GRU] = { 6, false },
              [RNN_TANH] = { 2, false },
              [RNN_RELU] = { 2, false } };

typedef struct
{
  Kind kind;
  int n_layers, n_directions;
  int64_t in_size, out_size;
  double dropout;
} NStep;

/* --- rows of sequences, and rows of steps --- */

typedef struct
{
  int n;           /* sequences */
  int64_t *length; /* of each, as given */
  int *order;      /* longest first; equal ones stay in order */
  int64_t n_steps, n_rows;
  int32_t *to_steps;     /* row of all sequences joined, for each row of all steps joined */
  int32_t *to_sequences; /* and the other way */
} Layout;

static void
layout_free (Layout *l)
{
  free (l->length);
  free (l->order);
  free (l->to_steps);
  free (l->to_sequences);
}

/* Number of sequences that are longer than t; they are the first ones in order. */
static int
batch_at (const Layout *l, int64_t t)
{
  int n = 0;

  while (n < l->n && l->length[l->order[n]] > t)
    n++;
  return n;
}

static void
layout_fill (Layout *l)
{
  int64_t *start = td__xcalloc ((size_t)l->n, sizeof *start), row = 0;

  for (int i = 1; i < l->n; i++)
    start[i] = start[i - 1] + l->length[i - 1];
  for (int i = 0; i < l->n; i++)
    {
      int at = i;

      for (; at > 0 && l->length[l->order[at - 1]] < l->length[i]; at--)
        l->order[at] = l->order[at - 1];
      l->order[at] = i;
    }
  for (int64_t t = 0; t < l->n_steps; t++)
    for (int k = 0, n = batch_at (l, t); k < n; k++, row++)
      {
        l->to_steps[row] = (int32_t)(start[l->order[k]] + t);
        l->to_sequences[l->to_steps[row]] = (int32_t)row;
      }
  free (start);
}

static TdStatus
layout_of (const TdLink *link, const NStep *s, TdVar *const *xs, int n, Layout *l)
{
  char text[160];

  *l = (Layout){ .n = n };
  l->length = td__xcalloc ((size_t)n, sizeof *l->length);
  l->order = td__xcalloc ((size_t)n, sizeof *l->order);
  for (int i = 0; i < n; i++)
    {
      const TdShape *shape = &xs[i]->node->shape;

      if (td_poisoned (xs[i]))
        return TD_ERR_STATE;
      if (shape->ndim != 2 || shape->dim[0] < 1 || shape->dim[1] != s->in_size)
        return td__fail (TD_ERR_SHAPE, link->cls->name, td__engine.site,
                         "sequences (length, %lld) expected, xs[%d] is %s",
                         (long long)s->in_size, i, td_shape_text (shape, text, sizeof text));
      l->length[i] = shape->dim[0];
      l->n_rows += shape->dim[0];
      if (shape->dim[0] > l->n_steps)
        l->n_steps = shape->dim[0];
    }
  if (l->n_rows > INT32_MAX)
    return td__fail (TD_ERR_SHAPE, link->cls->name, td__engine.site,
                     "at most 2147483647 steps in all expected, got %lld",
                     (long long)l->n_rows);
  l->to_steps = td__xcalloc ((size_t)l->n_rows, sizeof *l->to_steps);
  l->to_sequences = td__xcalloc ((size_t)l->n_rows, sizeof *l->to_sequences);
  layout_fill (l);
  return TD_OK;
}

/* Rows of x in another order. */
static TdVar *
gather (TdVar *x, const int32_t *rows, int64_t n)
{
  return td_embed_id (
      td_to_device (td_tensor (TD_I32, (TdShape){ 1, { n } }, rows), td_device (x)), x);
}

static TdVar *
rows_of (TdVar *x, int64_t start, int64_t n)
{
  TdSlice slice = { start, start + n, 1, 0 };

  return td_get_item (x, &slice, 1);
}

/* The second axis of a state in another order. */
static TdVar *
permute_state (TdVar *h, const Layout *l, bool back)
{
  const int axes[] = { 1, 0, 2 };
  int32_t *rows = td__xcalloc ((size_t)l->n, sizeof *rows);
  bool sorted = true;
  TdShape shape;

  for (int i = 0; i < l->n; i++)
    {
      rows[back ? l->order[i] : i] = (int32_t)(back ? i : l->order[i]);
      sorted = sorted && l->order[i] == i;
    }
  if (!sorted && !td_poisoned (h))
    {
      shape = (TdShape){ 3, { l->n, h->node->shape.dim[0], h->node->shape.dim[2] } };
      h = td_reshape (td_transpose (h, axes), (TdShape){ 2, { l->n, -1 } });
      h = td_transpose (td_reshape (gather (h, rows, l->n), shape), axes);
    }
  free (rows);
  return h;
}

/* --- the call --- */

static TdStatus
run (const NStep *s, TdVar *const *ws, TdVar *const *bs, TdVar *hx, TdVar *cx,
     TdVar *const *steps, int n_steps, TdVar **hy, TdVar **cy, TdVar **ys)
{
  TdRnnActivation f = s->kind == RNN_RELU ? TD_RNN_RELU : TD_RNN_TANH;
  bool both = s->n_directions == 2;

  if (s->kind == LSTM)
    return (both ? td_n_step_bilstm : td_n_step_lstm) (s->n_layers, s->dropout, hx, cx, ws, bs,
                                                       steps, n_steps, hy, cy, ys);
  if (s->kind == GRU)
    return (both ? td_n_step_bigru : td_n_step_gru) (s->n_layers, s->dropout, hx, ws, bs, steps,
                                                     n_steps, hy, ys);
  return (both ? td_n_step_birnn : td_n_step_rnn) (s->n_layers, s->dropout, hx, ws, bs, steps,
                                                   n_steps, f, hy, ys);
}

static TdStatus
run_sorted (TdLink *link, const NStep *s, const Layout *l, TdVar *const *in, TdVar **out)
{
  int states = kinds[s->kind].cell ? 2 : 1, n_weights = kinds[s->kind].n_weights;
  int n_cells = s->n_layers * s->n_directions;
  TdVar **w = td__xcalloc (2 * (size_t)n_cells * (size_t)n_weights, sizeof *w);
  TdVar **steps = td__xcalloc ((size_t)l->n_steps * 2, sizeof *steps);
  TdVar **b = w + n_cells * n_weights, **ys = steps + l->n_steps;
  TdVar *all = td_concat (in + states, l->n, 0), *h[2] = { NULL, NULL };
  TdStatus status;
  int64_t row = 0;

  for (int c = 0; c < n_cells; c++)
    for (int j = 0; j < n_weights; j++)
      {
        w[c * n_weights + j] = link->children[c]->params[2 * j]->var;
        b[c * n_weights + j] = link->children[c]->params[2 * j + 1]->var;
      }
  if (!td_poisoned (all))
    all = gather (all, l->to_steps, l->n_rows);
  for (int64_t t = 0; t < l->n_steps; t++)
    {
      int n = batch_at (l, t);

      steps[t] = rows_of (all, row, n);
      row += n;
    }
  status = run (s, w, b, permute_state (in[0], l, false),
                states == 2 ? permute_state (in[1], l, false) : NULL, steps, (int)l->n_steps,
                &h[0], &h[1], ys);
  if (status == TD_OK)
    {
      for (int i = 0; i < states; i++)
        out[i] = permute_state (h[i], l, true);
      all = gather (td_concat (ys, (int)l->n_steps, 0), l->to_sequences, l->n_rows);
      row = 0;
      for (int i = 0; i < l->n; i++)
        {
          out[states + i] = rows_of (all, row, l->length[i]);
          row += l->length[i];
        }
      status = td__link_status (out[states]);
    }
  free (w);
  free (steps);
  return status;
}

static TdStatus
n_step_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  const NStep *s = self;
  int states = kinds[s->kind].cell ? 2 : 1, n = n_in - states;
  TdShape want = { 3, { s->n_layers * s->n_directions, n, s->out_size } };
  TdStatus status;
  Layout l;
  char a[160], b[160];

  if (n < 1 || n_out != n_in)
    return td__fail (TD_ERR_ARG, link->cls->name, td__engine.site,
                     "%s and one or more sequences in, as many out, expected, got %d and %d",
                     states == 2 ? "hx, cx" : "hx", n_in, n_out);
  for (int i = 0; i < states; i++)
    if (td_poisoned (in[i]))
      return TD_ERR_STATE;
    else if (!td_shape_equal (&in[i]->node->shape, &want))
      return td__fail (TD_ERR_SHAPE, link->cls->name, td__engine.site, "%s %s expected, got %s",
                       i == 0 ? "hx" : "cx", td_shape_text (&want, a, sizeof a),
                       td_shape_text (&in[i]->node->shape, b, sizeof b));
  status = layout_of (link, s, in + states, n, &l);
  if (status == TD_OK)
    status = run_sorted (link, s, &l, in, out);
  layout_free (&l);
  return status;
}

#define N_STEP_CLASS(text)                                                                     \
  {                                                                                            \
    .size = sizeof (TdLinkClass), .name = text, .self_bytes = sizeof (NStep),                  \
    .forward = n_step_forward                                                                  \
  }
/* Of each kind, in one direction and in both. */
static const TdLinkClass classes[TD_ARRAY_LENGTH (kinds)][2]
    = { [LSTM] = { N_STEP_CLASS ("NStepLSTM"), N_STEP_CLASS ("NStepBiLSTM") },
        [GRU] = { N_STEP_CLASS ("NStepGRU"), N_STEP_CLASS ("NStepBiGRU") },
        [RNN_TANH] = { N_STEP_CLASS ("NStepRNNTanh") },
        [RNN_RELU] = { N_STEP_CLASS ("NStepRNNReLU") } };

static bool
is_n_step (const TdLinkClass *cls)
{
  for (int i = 0; i < TD_ARRAY_LENGTH (classes); i++)
    if (cls == &classes[i][0] || cls == &classes[i][1])
      return true;
  return false;
}

TdStatus
td_n_step_call_at (TdLink *link, TdVar *hx, TdVar *cx, TdVar *const *xs, int n, TdVar **hy,
                   TdVar **cy, TdVar **ys, const TdSite *site)
{
  const NStep *s = link != NULL ? link->self : NULL;
  TdVar **in, **out;
  TdStatus status;
  int states;

  if (!td__link_usable (link, "td_n_step_call", site))
    return td__error_status ();
  if (!is_n_step (link->cls) || n < 1)
    return td__fail (TD_ERR_ARG, "td_n_step_call", site,
                     "an n-step link and one or more sequences expected, got a %s and %d",
                     link->cls->name, n);
  if (!td__var_usable (xs[0], "td_n_step_call", site))
    return td__error_status ();
  states = kinds[s->kind].cell ? 2 : 1;
  in = td__xcalloc ((size_t)(n + states) * 2, sizeof *in);
  out = in + n + states;
  in[0] = hx;
  if (states == 2)
    in[1] = cx;
  for (int i = 0; i < states; i++)
    if (in[i] == NULL)
      in[i] = td_to_device (
          td_zeros (td_dtype (xs[0]),
                    (TdShape){ 3, { s->n_layers * s->n_directions, n, s->out_size } }),
          td_device (xs[0]));
  memcpy (in + states, xs, (size_t)n * sizeof *in);
  status = td_link_call_at (link, in, n + states, out, n + states, site);
  if (hy != NULL)
    *hy = out[0];
  if (cy != NULL)
    *cy = states == 2 ? out[1] : NULL;
  if (ys != NULL)
    memcpy (ys, out + states, (size_t)n * sizeof *ys);
  free (in);
  return status;
}

TdStatus (td_n_step_call) (TdLink *link, TdVar *hx, TdVar *cx, TdVar *const *xs, int n,
                           TdVar **hy, TdVar **cy, TdVar **ys)
{
  return td_n_step_call_at (link, hx, cx, xs, n, hy, cy, ys, NULL);
}

/* --- constructors --- */

static TdStatus
cell_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)self, (void)in, (void)n_in, (void)out, (void)n_out;
  return td__fail (TD_ERR_STATE, "Link", td__engine.site,
                   "%s holds the weights of one layer: call its parent", link->path->text);
}

static const TdLinkClass cell_class
    = { .size = sizeof (TdLinkClass), .name = "Link", .forward = cell_forward };

static bool
add_cell (TdLink *link, const NStep *s, int cell, const TdNStepOpt *o, const TdSite *site)
{
  int n_weights = kinds[s->kind].n_weights;
  int64_t deep = cell < s->n_directions ? s->in_size : s->out_size * s->n_directions;
  char name[16];
  TdLink *child;

  snprintf (name, sizeof name, "%d", cell);
  child = td__link_make (&cell_class, link, name, site);
  for (int j = 0; j < n_weights && !child->inert; j++)
    {
      TdShape W = { 2, { s->out_size, j < n_weights / 2 ? deep : s->out_size } };

      snprintf (name, sizeof name, "w%d", j);
      if (!td__link_add (child, name, W, o->initialW, td_init_lecun_normal (), site))
        return false;
      snprintf (name, sizeof name, "b%d", j);
      if (!td__link_add (child, name, (TdShape){ 1, { s->out_size } }, o->initial_bias,
                         td_init_zero (), site))
        return false;
    }
  return !child->inert;
}

static TdLink *
n_step_new (TdLink *parent, const char *name, NStep s, const TdNStepOpt *o, const TdSite *site)
{
  const TdLinkClass *cls = &classes[s.kind][s.n_directions - 1];
  TdLink *link;

  if (s.n_layers < 1 || s.n_layers > 10000 || s.in_size < 1 || s.out_size < 1
      || s.out_size > INT64_MAX / 8 || !(s.dropout >= 0 && s.dropout < 1))
    {
      td__fail (
          TD_ERR_ARG, cls->name, site,
          "layers and sizes above 0 and dropout from 0 to below 1 expected, got %d, %lld, "
          "%lld and %g",
          s.n_layers, (long long)s.in_size, (long long)s.out_size, s.dropout);
      return td__link_inert ();
    }
  link = td__link_make (cls, parent, name, site);
  if (link->inert)
    return link;
  *(NStep *)link->self = s;
  for (int i = 0; i < s.n_layers * s.n_directions; i++)
    if (!add_cell (link, &s, i, o, site))
      return td__link_abandon (link);
  return link;
}

#define CONSTRUCTORS(fn, kind, directions)                                                     \
  TdLink *td_n_step_##fn##_new_at (TdLink *parent, const char *name, int n_layers,             \
                                   int64_t in_size, int64_t out_size, double dropout,          \
                                   TdNStepOpt options, const TdSite *site)                     \
  {                                                                                            \
    return n_step_new (parent, name,                                                           \
                       (NStep){ kind, n_layers, directions, in_size, out_size, dropout },      \
                       &options, site);                                                        \
  }                                                                                            \
  TdLink *td_n_step_##fn##_new_ (TdLink *parent, const char *name, int n_layers,               \
                                 int64_t in_size, int64_t out_size, double dropout,            \
                                 const TdNStepOpt *options)                                    \
  {                                                                                            \
    static const TdNStepOpt defaults = { TD_N_STEP_DEFAULTS };                                 \
                                                                                               \
    return td_n_step_##fn##_new_at (parent, name, n_layers, in_size, out_size, dropout,        \
                                    options != NULL ? *options : defaults, NULL);              \
  }

CONSTRUCTORS (lstm, LSTM, 1)
CONSTRUCTORS (bilstm, LSTM, 2)
CONSTRUCTORS (gru, GRU, 1)
CONSTRUCTORS (bigru, GRU, 2)
CONSTRUCTORS (rnn_tanh, RNN_TANH, 1)
CONSTRUCTORS (rnn_relu, RNN_RELU, 1)
