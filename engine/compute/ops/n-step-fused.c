/* Recurrent layers over sequences as one operation, on devices that have it: all weights into
 * the order that the device wants, all steps of all layers, and the gradient of both.
 *
 * The device keeps what its gradient needs in a reserve that nobody else can read.  Gradients
 * that are to have gradients are therefore composed: the layers run again from operations, and
 * their gradient is taken of those.
 *
 * SPDX-License-Identifier: MIT */
#include "layers.h"
#include "../core/copy-parts.h"
#include "host-memory.h"
#include "n-step.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum
{
  MAX_RUNS = 256, /* different numbers of sequences that last */
  GIVEN_HX = 1,
  GIVEN_CX = 2,
  GIVEN_GHY = 4,
  GIVEN_GCY = 8
};

/* What the weights of a call depend on. */
typedef struct
{
  int cell, n_layers;
  bool bidirectional;
  char zero[7]; /* no padding: recordings compare the bytes */
  int64_t in_size, units;
} Net;

typedef struct
{
  Net net;
  int given; /* which of the optional operands */
  bool keeps;
  char zero[3];
  int n_lengths; /* numbers in runs */
  TdRnnRun runs[MAX_RUNS];
} Attrs;

static const char *const cells[] = { "lstm", "gru", "rnn_tanh", "rnn_relu", NULL };
static const char *const state_names[] = { "x", "w", "hx", "cx" };
/* Then those of hx, cx, ghy, gcy that are given. */
static const char *const grad_names[]
    = { "x", "w", "y", "reserve", "gy", "state_1", "state_2", "state_3", "state_4" };

#define NET_ATTRS(type, member)                                                                \
  { "mode", TD_ATTR_CHOICE, offsetof (type, member cell), 0, 0, NULL, cells },                 \
      { "n_layers", TD_ATTR_INT, offsetof (type, member n_layers), 0, 0, "1", NULL },          \
      { "bidirectional", TD_ATTR_BOOL, offsetof (type, member bidirectional), 0, 0,            \
        "false",         NULL },                                                               \
      { "in_size", TD_ATTR_U64, offsetof (type, member in_size), 0, 0, NULL, NULL },           \
  {                                                                                            \
    "hidden_size", TD_ATTR_U64, offsetof (type, member units), 0, 0, NULL, NULL                \
  }

static const TdAttr weight_attrs[] = { NET_ATTRS (Net, ) };
static const TdAttr attr_table[] = {
  NET_ATTRS (Attrs, net.),
  { "rows_steps", TD_ATTR_INTS, offsetof (Attrs, runs), 0, offsetof (Attrs, n_lengths), NULL,
    NULL },
};

static TdVar **
handles (int n)
{
  TdVar **room = td__xcalloc ((size_t)n, sizeof *room);

  return room;
}

/* --- what the device is asked --- */

static int
n_directions (const Net *net)
{
  return net->bidirectional ? 2 : 1;
}

static int
n_cells (const Net *net)
{
  return net->n_layers * n_directions (net);
}

static int
n_parts (const Net *net)
{
  bool rectify;

  return td__n_step_cell ((TdCell)net->cell, &rectify)->n_weights;
}

static TdRnn
rnn_of (const Net *net, TdDtype dtype)
{
  return (TdRnn){ .cell = (TdCell)net->cell,
                  .n_layers = net->n_layers,
                  .n_directions = n_directions (net),
                  .in_size = net->in_size,
                  .units = net->units,
                  .dtype = dtype };
}

static TdRnn
rnn_of_call (const Attrs *a, TdDtype dtype)
{
  TdRnn rnn = rnn_of (&a->net, dtype);

  rnn.keeps = a->keeps;
  rnn.n_runs = a->n_lengths / 2;
  rnn.runs = a->runs;
  return rnn;
}

static int64_t
width (const Net *net, int cell)
{
  return cell < n_directions (net) ? net->in_size : net->units * n_directions (net);
}

/* Of matrix `part` of a cell; of a bias where part is past the matrices. */
static TdShape
part_shape (const Net *net, int cell, int part)
{
  const int n = n_parts (net);

  if (part >= n)
    return TD_SHAPE (net->units);
  return TD_SHAPE (net->units, part < n / 2 ? width (net, cell) : net->units);
}

static TdStatus
check_net (const TdOpCall *call, const Net *net)
{
  if (net->cell < TD_CELL_LSTM || net->cell > TD_CELL_RELU || net->n_layers < 1
      || net->n_layers > 10000 || net->in_size < 1 || net->units < 1
      || net->in_size > INT_MAX / 2 || net->units > INT_MAX / 8)
    return td_op_fail (call, TD_ERR_ARG, "layers and sizes above 0 expected");
  if (call->device->ops->rnn == NULL)
    return td_op_fail (call, TD_ERR_DEVICE,
                       "a device that runs recurrent layers as one expected, got %s",
                       call->device->name);
  return TD_OK;
}

static TdStatus
sizes_of (const TdOpCall *call, const TdRnn *rnn, TdRnnSizes *sizes)
{
  const char *why = call->device->ops->rnn->sizes (call->device, rnn, sizes);

  return why == NULL
             ? TD_OK
             : td_op_fail (call, TD_ERR_ARG, "not possible on %s: %s", call->device->name, why);
}

/* --- weights: into the device's order, and out of it --- */

/* Copy the parts to where they lie among all of them, or back. */
static TdStatus
move_parts (TdOpCall *call, const TdTensor *parts, char *all, bool back)
{
  const Net *net = call->attrs;
  const int n = n_cells (net), k = n_parts (net);
  const TdDeviceOps *ops = call->device->ops;
  const size_t bytes = td_dtype_bytes (parts[0].dtype);
  const TdRnn rnn = rnn_of (net, parts[0].dtype);
  TdCopyParts copies = { .device = call->device };
  TdStatus status = TD_OK;

  for (int i = 0; i < n * k && status == TD_OK; i++)
    {
      const TdTensor *both[] = { &parts[i], &parts[n * k + i] };
      int64_t at[2];

      status = ops->rnn->place (call->device, &rnn, i / k, i % k, &at[0], &at[1]);
      for (int j = 0; j < 2 && status == TD_OK; j++)
        {
          char *place = all + (size_t)at[j] * bytes;

          td__copy_parts_add (&copies, back ? both[j]->data : place,
                              back ? place : both[j]->data, (size_t)both[j]->size * bytes);
        }
    }
  return status == TD_OK ? td__copy_parts_end (&copies) : status;
}

static TdStatus
weights_infer (TdOpCall *call)
{
  const Net *net = call->attrs;
  TdStatus status = check_net (call, net);
  TdRnnSizes sizes;
  TdRnn rnn;

  if (status != TD_OK)
    return status;
  if (call->n_in != 2 * n_cells (net) * n_parts (net))
    return td_op_fail (call, TD_ERR_ARG, "%d matrices and biases expected, got %d",
                       2 * n_cells (net) * n_parts (net), call->n_in);
  for (int i = 0; i < call->n_in; i++)
    {
      const int k = n_parts (net), n = n_cells (net) * k;
      const TdShape want = part_shape (net, i % n / k, i < n ? i % k : k);
      char a[160], b[160];

      if (!td_shape_equal (&want, call->in[i].shape))
        return td_op_fail (call, TD_ERR_SHAPE, "%s[%d][%d] %s expected, got %s",
                           i < n ? "ws" : "bs", i % n / k, i % k,
                           td_shape_text (&want, a, sizeof a),
                           td_shape_text (call->in[i].shape, b, sizeof b));
      if (call->in[i].dtype != call->in[0].dtype || !td__is_float (call->in[i].dtype))
        return td_op_fail (
            call, TD_ERR_DTYPE, "weights of one floating-point dtype expected, got %s and %s",
            td_dtype_name (call->in[0].dtype), td_dtype_name (call->in[i].dtype));
    }
  rnn = rnn_of (net, call->in[0].dtype);
  status = sizes_of (call, &rnn, &sizes);
  return status != TD_OK ? status
                         : td_op_out (call, 0, call->in[0].dtype, &TD_SHAPE (sizes.n_weights));
}

static TdStatus
weights_forward (TdOpCall *call)
{
  const size_t bytes = td_dtype_bytes (call->out[0].dtype);
  int64_t used = 0;
  TdStatus status = TD_OK;

  for (int i = 0; i < call->n_in; i++)
    used += call->in[i].size;
  if (used < call->out[0].size) /* between the parts */
    status = call->device->ops->zero (call->device, call->out[0].data,
                                      (size_t)call->out[0].size * bytes);
  return status != TD_OK ? status : move_parts (call, call->in, call->out[0].data, false);
}

static TdStatus
weights_backward (TdBackward *b)
{
  return b->gy[0] == NULL
             ? TD_OK
             : td_apply (&td__n_step_weights_grad_class, b->attrs, b->gy, 1, b->gx, b->n_in);
}

const TdOpClass td__n_step_weights_class = {
  .name = "n_step_weights",
  .label = "NStepWeights",
  .group = "rnn",
  .formula = "all matrices and biases, as the device wants them to lie",
  .n_in_min = 4,
  .n_in_max = -1,
  .n_out = 1,
  .flags = TD_OP_WORKSPACE,
  .attrs_size = sizeof (Net),
  .attrs = weight_attrs,
  .n_attrs = TD_ARRAY_LENGTH (weight_attrs),
  .infer = weights_infer,
  .forward = weights_forward,
  .backward = weights_backward,
};

static TdStatus
parts_infer (TdOpCall *call)
{
  const Net *net = call->attrs;
  TdStatus status = td__check_floats (call, 1);
  TdRnnSizes sizes;
  TdRnn rnn;

  if (status == TD_OK)
    status = check_net (call, net);
  if (status != TD_OK)
    return status;
  rnn = rnn_of (net, call->in[0].dtype);
  status = sizes_of (call, &rnn, &sizes);
  if (status == TD_OK
      && (call->in[0].size != sizes.n_weights
          || call->n_out != 2 * n_cells (net) * n_parts (net)))
    return td_op_fail_operands (call, TD_ERR_SHAPE, "%lld weights expected",
                                (long long)sizes.n_weights);
  for (int i = 0; i < call->n_out && status == TD_OK; i++)
    {
      const int k = n_parts (net), n = n_cells (net) * k;
      const TdShape shape = part_shape (net, i % n / k, i < n ? i % k : k);

      status = td_op_out (call, i, call->in[0].dtype, &shape);
    }
  return status;
}

static TdStatus
parts_forward (TdOpCall *call)
{
  return move_parts (call, call->out, call->in[0].data, true);
}

static TdStatus
parts_backward (TdBackward *b)
{
  TdVar **gys = handles (b->n_out);
  TdVar *some = NULL;
  const Net *net = b->attrs;
  TdStatus status = TD_OK;

  for (int i = 0; i < b->n_out; i++)
    some = b->gy[i] != NULL ? b->gy[i] : some;
  for (int i = 0; i < b->n_out && some != NULL; i++)
    {
      const int k = n_parts (net), n = n_cells (net) * k;

      gys[i] = b->gy[i] != NULL
                   ? b->gy[i]
                   : td_broadcast_to (td__number_like (some, 0),
                                      part_shape (net, i % n / k, i < n ? i % k : k));
    }
  if (some != NULL)
    status = td_apply (&td__n_step_weights_class, net, gys, b->n_out, b->gx, 1);
  free (gys);
  return status;
}

const TdOpClass td__n_step_weights_grad_class = {
  .name = "n_step_weights_grad",
  .label = "NStepWeightsGrad",
  .group = "rnn",
  .formula = "each matrix and bias out of all of them",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = -1,
  .in_names = td__names_x,
  .attrs_size = sizeof (Net),
  .attrs = weight_attrs,
  .n_attrs = TD_ARRAY_LENGTH (weight_attrs),
  .infer = parts_infer,
  .forward = parts_forward,
  .backward = parts_backward,
};

/* --- all layers and steps --- */

static int64_t
n_rows (const Attrs *a)
{
  int64_t n = 0;

  for (int i = 0; i < a->n_lengths / 2; i++)
    n += (int64_t)a->runs[i].rows * a->runs[i].steps;
  return n;
}

static TdShape
state_shape (const Attrs *a)
{
  return TD_SHAPE (n_cells (&a->net), a->runs[0].rows, a->net.units);
}

static TdStatus
check_runs (const TdOpCall *call, const Attrs *a)
{
  bool fit = a->n_lengths >= 2 && a->n_lengths <= 2 * MAX_RUNS && a->n_lengths % 2 == 0;

  for (int i = 0; fit && i < a->n_lengths / 2; i++)
    fit = a->runs[i].rows > 0 && a->runs[i].steps > 0
          && (i == 0 || a->runs[i].rows < a->runs[i - 1].rows);
  return fit ? TD_OK
             : td_op_fail (call, TD_ERR_ARG, "steps of ever fewer rows expected, not so in %d",
                           a->n_lengths);
}

/* Input i is as large as the shape, and of x's dtype. */
static TdStatus
check_like (const TdOpCall *call, int i, TdShape want)
{
  char text[160];

  if (!td_shape_equal (call->in[i].shape, &want) || call->in[i].dtype != call->in[0].dtype)
    return td_op_fail_operands (call, TD_ERR_SHAPE, "operand %d of %s and x.dtype expected", i,
                                td_shape_text (&want, text, sizeof text));
  return TD_OK;
}

static TdStatus
check_states (const TdOpCall *call, const Attrs *a, int from, int given)
{
  TdStatus status = TD_OK;
  int n = from;

  for (; given != 0; given &= given - 1)
    n++;
  if (call->n_in != n)
    return td_op_fail (call, TD_ERR_ARG, "%d operands expected, got %d", n, call->n_in);
  for (int i = from; i < n && status == TD_OK; i++)
    status = check_like (call, i, state_shape (a));
  return status;
}

/* x and w, and all that the attributes say. */
static TdStatus
check (const TdOpCall *call, TdRnnSizes *sizes)
{
  const Attrs *a = call->attrs;
  TdStatus status = td__check_floats (call, 1 | 2);
  TdRnn rnn;

  if (status == TD_OK)
    status = check_net (call, &a->net);
  if (status == TD_OK)
    status = check_runs (call, a);
  if (status == TD_OK)
    status = check_like (call, 0, TD_SHAPE (n_rows (a), a->net.in_size));
  if (status != TD_OK)
    return status;
  rnn = rnn_of_call (a, call->in[0].dtype);
  status = sizes_of (call, &rnn, sizes);
  return status != TD_OK ? status : check_like (call, 1, TD_SHAPE (sizes->n_weights));
}

static TdShape
out_shape (const Attrs *a)
{
  return TD_SHAPE (n_rows (a), a->net.units * n_directions (&a->net));
}

/* y, the reserve, hy, cy of LSTMs. */
static TdStatus
infer (TdOpCall *call)
{
  const Attrs *a = call->attrs;
  const TdShape y = out_shape (a), h = state_shape (a);
  TdRnnSizes sizes;
  TdStatus status = check (call, &sizes);

  if (status == TD_OK)
    status = check_states (call, a, 2, a->given);
  if (status == TD_OK && call->n_out != (a->net.cell == TD_CELL_LSTM ? 4 : 3))
    return td_op_fail (call, TD_ERR_ARG, "y, the reserve and a state or two out expected");
  if (status == TD_OK)
    status = td_op_out (call, 0, call->in[0].dtype, &y);
  if (status == TD_OK)
    status
        = td_op_out (call, 1, TD_U8, &TD_SHAPE (a->keeps ? (int64_t)sizes.reserve_bytes : 0));
  for (int i = 2; i < call->n_out && status == TD_OK; i++)
    status = td_op_out (call, i, call->in[0].dtype, &h);
  return status;
}

static TdStatus
forward (TdOpCall *call)
{
  const Attrs *a = call->attrs;
  const TdRnn rnn = rnn_of_call (a, call->in[0].dtype);
  TdRnnArrays arrays = { .x = &call->in[0],
                         .w = &call->in[1],
                         .y = &call->out[0],
                         .reserve = a->keeps ? &call->out[1] : NULL,
                         .hy = &call->out[2],
                         .cy = call->n_out == 4 ? &call->out[3] : NULL };
  int n = 2;

  if (a->given & GIVEN_HX)
    arrays.hx = &call->in[n++];
  if (a->given & GIVEN_CX)
    arrays.cx = &call->in[n++];
  return call->device->ops->rnn->forward (call->device, &rnn, &arrays);
}

/* The layers again, from operations: a graph from x, w, hx and cx to y, hy and cy. */
static TdStatus
composed_again (const Attrs *a, TdVar *const *in, TdVar **out)
{
  const Net *net = &a->net;
  const int n = n_cells (net) * n_parts (net);
  TdNStep r = { .site = td__engine.site,
                .n_layers = net->n_layers,
                .n_directions = n_directions (net),
                .units = net->units,
                .hx = a->given & GIVEN_HX ? in[2] : NULL,
                .cx = a->given & GIVEN_CX ? in[a->given & GIVEN_HX ? 3 : 2] : NULL };
  TdVar **room;
  int64_t at = 0;
  TdStatus status;

  r.cell = td__n_step_cell ((TdCell)net->cell, &r.rectify);
  for (int i = 0; i < a->n_lengths / 2; i++)
    r.n_xs += a->runs[i].steps;
  room = handles (2 * n + 2 * r.n_xs);
  r.ends = td__xcalloc ((size_t)r.n_xs, sizeof *r.ends);
  for (int i = 0, t = 0; i < a->n_lengths / 2; i++)
    for (int k = 0; k < a->runs[i].steps; k++, t++)
      r.ends[t] = at += a->runs[i].rows;
  status = td_apply (&td__n_step_weights_grad_class, net, &in[1], 1, room, 2 * n);
  r.ws = room;
  r.bs = room + n;
  r.xs = room + 2 * n;
  if (status == TD_OK)
    status = td_split_axis_indices (in[0], r.ends, r.n_xs - 1, 0, room + 2 * n);
  if (status == TD_OK)
    status = td__n_step_composed (&r, "gradients that have gradients", &out[1],
                                  r.cell->has_c ? &out[2] : NULL, room + 2 * n + r.n_xs);
  if (status == TD_OK)
    out[0] = td_concat (room + 2 * n + r.n_xs, r.n_xs, 0);
  free (room);
  free (r.ends);
  return status;
}

/* Gradients with a graph of their own. */
static TdStatus
backward_composed (TdBackward *b)
{
  const Attrs *a = b->attrs;
  TdVar *in[4], *out[3], *roots[3], *gys[3], *wanted[4], *gxs[4];
  int n_roots = 0, n_wanted = 0, from[4];
  TdStatus status;

  for (int i = 0; i < b->n_in; i++)
    in[i] = td_backward_input (b, i);
  status = composed_again (a, in, out);
  if (status != TD_OK)
    return status;
  for (int i = 0; i < b->n_out; i++)
    if (i != 1 && b->gy[i] != NULL)
      {
        roots[n_roots] = out[i > 0 ? i - 1 : 0];
        gys[n_roots++] = b->gy[i];
      }
  for (int i = 0; i < b->n_in; i++)
    if (td_backward_needs (b, i))
      {
        from[n_wanted] = i;
        wanted[n_wanted++] = in[i];
      }
  if (n_roots == 0 || n_wanted == 0)
    return TD_OK;
  status = td_grad_of (roots, n_roots, wanted, n_wanted, gys, TD_DOUBLE_BACKPROP, gxs);
  for (int i = 0; i < n_wanted && status == TD_OK; i++)
    b->gx[from[i]] = gxs[i];
  return status;
}

static TdStatus
backward (TdBackward *b)
{
  Attrs a = *(const Attrs *)b->attrs;
  TdVar *in[9], *gx[4];
  int n = 0;
  TdStatus status;

  if (td__engine.config.enable_backprop)
    return backward_composed (b);
  in[n++] = td_backward_input (b, 0);
  in[n++] = td_backward_input (b, 1);
  in[n++] = td_backward_output (b, 0);
  in[n++] = td_backward_output (b, 1);
  in[n++] = b->gy[0] != NULL ? b->gy[0] : td__zeros_like (in[2]);
  for (int i = 2; i < b->n_in; i++)
    in[n++] = td_backward_input (b, i);
  for (int i = 2; i < b->n_out; i++)
    if (b->gy[i] != NULL)
      {
        in[n++] = b->gy[i];
        a.given |= i == 2 ? GIVEN_GHY : GIVEN_GCY;
      }
  status = td_apply (&td__n_step_rnn_grad_class, &a, in, n, gx, b->n_in);
  for (int i = 0; i < b->n_in && status == TD_OK; i++)
    if (td_backward_needs (b, i))
      b->gx[i] = gx[i];
  return status;
}

const TdOpClass td__n_step_rnn_class = {
  .name = "n_step_rnn",
  .label = "NStepRNN",
  .group = "rnn",
  .formula = "all steps of all layers of an LSTM, a GRU or plain cells",
  .n_in_min = 2,
  .n_in_max = 4,
  .n_out = -1,
  .retain_in = 15,
  .retain_out = 3,
  .opaque_out = 2, /* the reserve */
  .in_names = state_names,
  .attrs_size = sizeof (Attrs),
  .attrs = attr_table,
  .n_attrs = TD_ARRAY_LENGTH (attr_table),
  .infer = infer,
  .forward = forward,
  .backward = backward,
};

/* gx, gw, and where they were given ghx, gcx. */
static TdStatus
grad_infer (TdOpCall *call)
{
  const Attrs *a = call->attrs;
  TdRnnSizes sizes;
  TdStatus status = check (call, &sizes);

  if (status == TD_OK)
    status = check_like (call, 2, out_shape (a));
  if (status == TD_OK
      && (call->in[3].dtype != TD_U8 || call->in[3].size != (int64_t)sizes.reserve_bytes))
    return td_op_fail_operands (call, TD_ERR_SHAPE, "the reserve of the same call expected");
  if (status == TD_OK)
    status = check_like (call, 4, out_shape (a));
  if (status == TD_OK)
    status = check_states (call, a, 5, a->given);
  for (int i = 0; i < call->n_out && status == TD_OK; i++)
    status = td__out_like (call, i, i < 2 ? i : 3 + i);
  return status;
}

static TdStatus
grad_forward (TdOpCall *call)
{
  const Attrs *a = call->attrs;
  const TdRnn rnn = rnn_of_call (a, call->in[0].dtype);
  TdTensor y = call->in[2], reserve = call->in[3];
  TdRnnArrays arrays = { .x = &call->in[0],
                         .w = &call->in[1],
                         .y = &y,
                         .reserve = &reserve,
                         .gy = &call->in[4],
                         .gx = &call->out[0],
                         .gw = &call->out[1] };
  const TdTensor **const states[] = { &arrays.hx, &arrays.cx, &arrays.ghy, &arrays.gcy };
  TdTensor **const gradients[] = { &arrays.ghx, &arrays.gcx };

  for (int i = 0, in = 5, out = 2; i < 4; i++)
    if (a->given >> i & 1)
      {
        *states[i] = &call->in[in++];
        if (i < 2)
          *gradients[i] = &call->out[out++];
      }
  return call->device->ops->rnn->gradient (call->device, &rnn, &arrays);
}

const TdOpClass td__n_step_rnn_grad_class = {
  .name = "n_step_rnn_grad",
  .label = "NStepRNNGrad",
  .group = "rnn",
  .formula = "gradients of x, the weights, hx and cx",
  .n_in_min = 5,
  .n_in_max = 9,
  .n_out = -1,
  .flags = TD_OP_NO_GRAD,
  .in_names = grad_names,
  .attrs_size = sizeof (Attrs),
  .attrs = attr_table,
  .n_attrs = TD_ARRAY_LENGTH (attr_table),
  .infer = grad_infer,
  .forward = grad_forward,
};

/* --- calls --- */

/* Steps of equally many rows as one run each; false: too many. */
static bool
find_runs (const TdNStep *r, Attrs *a)
{
  int n = 0;

  for (int t = 0; t < r->n_xs; t++)
    {
      const int64_t rows = td_shape (r->xs[t]).dim[0];

      if (rows > INT_MAX)
        return false;
      if (n > 0 && a->runs[n - 1].rows == (int)rows)
        a->runs[n - 1].steps++;
      else if (n == MAX_RUNS)
        return false;
      else
        a->runs[n++] = (TdRnnRun){ (int)rows, 1 };
    }
  a->n_lengths = 2 * n;
  return true;
}

static bool
wants_gradient (const TdNStep *r)
{
  const int n = r->n_layers * r->n_directions * r->cell->n_weights;
  bool wanted = (r->hx != NULL && r->hx->node->requires_grad)
                || (r->cx != NULL && r->cx->node->requires_grad);

  for (int t = 0; t < r->n_xs; t++)
    wanted = wanted || r->xs[t]->node->requires_grad;
  for (int i = 0; i < n; i++)
    wanted = wanted || r->ws[i]->node->requires_grad || r->bs[i]->node->requires_grad;
  return wanted && td__engine.config.enable_backprop;
}

/* Returns NULL where the call can be one operation, and fills its attributes; else why not. */
static const char *
plan (const TdNStep *r, Attrs *a)
{
  const TdConfig *config = &td__engine.config;
  TdDevice *d = td_device (r->xs[0]);
  TdRnnSizes sizes;
  TdRnn rnn;

  if (config->use_cudnn == 0)
    return "use_cudnn is 0";
  if (r->dropout_ratio != 0 && config->train != 0 && r->n_layers > 1)
    return "dropout between the layers";
  if (td__engine.hooks != NULL && td__engine.hooks->sees_steps ())
    return "hooks look at every operation";
  memset (a, 0, sizeof *a);
  a->net = (Net){ .cell = (int)(r->rectify ? TD_CELL_RELU : r->cell->cell),
                  .n_layers = r->n_layers,
                  .bidirectional = r->n_directions == 2,
                  .in_size = td_shape (r->xs[0]).dim[1],
                  .units = r->units };
  a->given = (r->hx != NULL ? GIVEN_HX : 0) | (r->cx != NULL ? GIVEN_CX : 0);
  a->keeps = wants_gradient (r);
  if (!find_runs (r, a))
    return "too many different lengths";
  if (a->runs[a->n_lengths / 2 - 1].rows == 0)
    return "steps without rows";
  rnn = rnn_of_call (a, td_dtype (r->xs[0]));
  return d->ops->rnn->sizes (d, &rnn, &sizes);
}

static TdStatus
run (const TdNStep *r, const Attrs *a, TdVar **hy, TdVar **cy, TdVar **ys)
{
  const int n = n_cells (&a->net) * n_parts (&a->net);
  TdVar **parts = handles (2 * n), **steps, *in[4], *out[4];
  int n_in = 2;
  TdStatus status;

  memcpy (parts, r->ws, (size_t)n * sizeof *parts);
  memcpy (parts + n, r->bs, (size_t)n * sizeof *parts);
  steps = handles (r->n_xs);
  in[0] = r->n_xs == 1 ? r->xs[0] : td_concat (r->xs, r->n_xs, 0);
  status = td_apply (&td__n_step_weights_class, &a->net, parts, 2 * n, &in[1], 1);
  if (r->hx != NULL)
    in[n_in++] = r->hx;
  if (r->cx != NULL)
    in[n_in++] = r->cx;
  status = td_apply (&td__n_step_rnn_class, a, in, n_in, out, r->cell->has_c ? 4 : 3);
  if (hy != NULL)
    *hy = td_scope_yield (out[2]);
  if (cy != NULL)
    *cy = td_scope_yield (out[3]);
  if (ys != NULL && r->n_xs == 1)
    ys[0] = td_scope_yield (out[0]);
  else if (ys != NULL)
    {
      td_split_axis_indices (out[0], r->ends, r->n_xs - 1, 0, steps);
      for (int t = 0; t < r->n_xs; t++)
        ys[t] = td_scope_yield (steps[t]);
    }
  free (parts);
  free (steps);
  return status;
}

const char *
td__n_step_fused (TdNStep *r, TdVar **hy, TdVar **cy, TdVar **ys, TdStatus *status,
                  bool *offered)
{
  Attrs a;
  const char *why;
  TdScope *scope;

  *offered = td_device (r->xs[0])->ops->rnn != NULL;
  why = *offered ? plan (r, &a) : "the device has no such operation";
  if (why != NULL)
    return why;
  scope = td_scope_open_at (td__n_step_name (r), td__engine.site);
  *status = run (r, &a, hy, cy, ys);
  td_scope_close (scope);
  return NULL;
}
