/*
 * LeNet-5 on 64 images, event by event, through the tape writer.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lenet-tape.h"

#include <math.h>
#include <string.h>

#include "td-tape-writer.h"

#define PARAMETERS 10

typedef struct
{
  TdTapeWriter *w;
  const LenetOptions *options;
  guint number;
  GArray *events, *start, *duration, *ins, *outs, *vars, *dims, *spans, *grads, *memory, *stats,
      *tensors;
  guint64 clock_ns, next_address, next_buffer;
  GArray *address; /* of each variable, 0: none */
  GRand *rand;
} Lenet;

static const struct
{
  const char *link, *name;
  gint64 dims[4];
  guint ndim;
} parameters[PARAMETERS] = {
  { "lenet/block1/conv1", "W", { 6, 1, 5, 5 }, 4 },  { "lenet/block1/conv1", "b", { 6 }, 1 },
  { "lenet/block2/conv2", "W", { 16, 6, 5, 5 }, 4 }, { "lenet/block2/conv2", "b", { 16 }, 1 },
  { "lenet/head/fc1", "W", { 120, 400 }, 2 },        { "lenet/head/fc1", "b", { 120 }, 1 },
  { "lenet/head/fc2", "W", { 84, 120 }, 2 },         { "lenet/head/fc2", "b", { 84 }, 1 },
  { "lenet/head/fc3", "W", { 10, 84 }, 2 },          { "lenet/head/fc3", "b", { 10 }, 1 },
};

static guint32
add_var (Lenet *l, const char *name, guint ndim, const gint64 *dims, guint category,
         gint producer, guint flags)
{
  TdTapeVar v = { .producer = producer,
                  .category = (guint8)category,
                  .ndim = (guint8)ndim,
                  .first_dim = l->dims->len,
                  .dtype = TD_TAPE_F32,
                  .flags = (guint8)flags,
                  .id = l->vars->len,
                  .name = td_tape_writer_string (l->w, name) };
  guint64 none = 0;

  v.bytes = 4;
  for (guint k = 0; k < ndim; k++)
    v.bytes *= (guint64)dims[k];
  g_array_append_vals (l->dims, dims, ndim);
  g_array_append_val (l->vars, v);
  g_array_append_val (l->address, none);
  return l->vars->len - 1;
}

static void
add_memory (Lenet *l, guint kind, guint32 var, guint event)
{
  TdTapeVar *v = &g_array_index (l->vars, TdTapeVar, var);
  guint64 *address = &g_array_index (l->address, guint64, var);

  if (kind == TD_TAPE_MEMORY_ALLOC)
    {
      *address = l->next_address;
      l->next_address += (v->bytes + 511) / 512 * 512;
    }
  TdTapeMemory m = { .address = *address,
                     .bytes = v->bytes,
                     .buffer = l->next_buffer++,
                     .variable = v->id,
                     .event = event,
                     .var = var,
                     .kind = (guint8)kind,
                     .category = v->category };
  g_array_append_val (l->memory, m);
}

static void
add_stats (Lenet *l, guint32 var, guint event, double l2, gboolean nan, gboolean inf)
{
  const TdTapeVar *v = &g_array_index (l->vars, TdTapeVar, var);
  guint64 n = v->bytes / 4;
  TdTapeStats s = { .var = var,
                    .event = event,
                    .n = n,
                    .n_sampled = MIN (n, 65536),
                    .n_nan = nan,
                    .n_pos_inf = inf,
                    .l2 = l2,
                    .min = -3 * l2 / sqrt ((double)n),
                    .max = 3.1 * l2 / sqrt ((double)n),
                    .mean = 0.01 * l2 / (double)n,
                    .m2 = l2 * l2 };

  for (int k = 0; k < 12; k++)
    s.bins[10 + k] = (guint32)(s.n_sampled * (guint64)(12 - abs (k - 6) * 2) / 84);
  g_array_append_val (l->stats, s);
}

/* Adds one event with one output; returns the output. */
static guint32
op (Lenet *l, const char *name, guint phase, const char *path, guint32 span, gint twin,
    guint order, guint64 us, guint line, const guint32 *in, guint n_in, const char *out_name,
    guint ndim, const gint64 *dims, guint category)
{
  guint event = l->events->len;
  TdTapeOpdef opdef
      = { .name = td_tape_writer_string (l->w, name), .n_in = (gint16)n_in, .n_out = 1 };
  TdTapeEvent e = { .opdef = td_tape_writer_opdef (l->w, &opdef),
                    .site = td_tape_writer_site (l->w, "lenet.c", line, "forward"),
                    .path = td_tape_writer_path (l->w, path, "Chain"),
                    .twin = twin,
                    .span = span,
                    .first_in = l->ins->len,
                    .first_out = l->outs->len,
                    .n_in = (guint16)n_in,
                    .n_out = 1,
                    .order = (guint16)order,
                    .phase = (guint8)phase };
  guint64 ns = us * 1000 + (guint64)g_rand_int_range (l->rand, 0, (gint32)(us * 60 + 2));
  guint32 out = add_var (l, out_name, ndim, dims, category, (gint)event,
                         phase == TD_TAPE_PHASE_FORWARD ? TD_TAPE_VAR_REQUIRES_GRAD : 0);

  add_memory (l, TD_TAPE_MEMORY_ALLOC, out, event);
  g_array_append_vals (l->ins, in, n_in);
  g_array_append_val (l->outs, out);
  if (l->options->failed_event == (gint)event)
    e.flags |= TD_TAPE_EVENT_FAILED;
  if (l->options->cold_at == (gint)l->number)
    ns *= 20;
  if (l->options->static_from <= (gint)l->number)
    {
      e.flags |= TD_TAPE_EVENT_REPLAYED;
      ns /= 2;
    }
  g_array_append_val (l->events, e);
  g_array_append_val (l->start, l->clock_ns);
  g_array_append_val (l->duration, ns);
  l->clock_ns += ns + 900;
  return out;
}

static guint32
span (Lenet *l, const char *path, guint32 parent, guint line)
{
  TdTapeSpan s = { .key = td_tape_hash_bytes (7, path, strlen (path)),
                   .kind = TD_TAPE_SPAN_LINK,
                   .path = td_tape_writer_path (l->w, path, "Chain"),
                   .name = td_tape_writer_string (
                       l->w, strrchr (path, '/') ? strrchr (path, '/') + 1 : path),
                   .site = td_tape_writer_site (l->w, "lenet.c", line, "forward"),
                   .parent = parent,
                   .begin = l->events->len };

  for (guint32 p = parent; p != TD_TAPE_NONE;
       p = g_array_index (l->spans, TdTapeSpan, p).parent)
    s.depth++;
  g_array_append_val (l->spans, s);
  return l->spans->len - 1;
}

static void
span_end (Lenet *l, guint32 s)
{
  g_array_index (l->spans, TdTapeSpan, s).end = l->events->len;
}

static void
retain (Lenet *l, guint32 var)
{
  g_array_index (l->vars, TdTapeVar, var).flags |= TD_TAPE_VAR_RETAINED;
}

static guint32
producer (Lenet *l, guint32 var)
{
  return (guint32)g_array_index (l->vars, TdTapeVar, var).producer;
}

static const char *const fc_names[3] = { "lenet/head/fc1", "lenet/head/fc2", "lenet/head/fc3" };
static const gint64 fc_out[3][2] = { { 64, 120 }, { 64, 84 }, { 64, 10 } };
static const gint64 fc_in[3][2] = { { 64, 400 }, { 64, 120 }, { 64, 84 } };

typedef struct
{
  guint32 p[PARAMETERS], g[PARAMETERS], x, t;
  guint32 conv[2], relu[2], pool[2], flat, fc[3], fc_relu[2], loss;
} Vars;

static void
forward_block (Lenet *l, Vars *v, int i, guint32 in, guint32 lenet, const gint64 *conv,
               const gint64 *pool)
{
  static const char *const blocks[] = { "lenet/block1", "lenet/block2" };
  static const char *const convs[] = { "lenet/block1/conv1", "lenet/block2/conv2" };
  const char *pooling = l->options->op_name ? l->options->op_name : "max_pooling_2d";
  guint line = 30 + 4 * (guint)i;
  guint32 block = span (l, blocks[i], lenet, line), link = span (l, convs[i], block, line + 1);

  v->conv[i] = op (l, "convolution_2d", 0, convs[i], link, -1, 0, i ? 420 : 310, line + 1,
                   (guint32[]){ in, v->p[2 * i], v->p[2 * i + 1] }, 3, "y", 4, conv,
                   TD_TAPE_CATEGORY_ACTIVATION);
  span_end (l, link);
  retain (l, in);
  v->relu[i] = op (l, "relu", 0, blocks[i], block, -1, 0, 35, line + 2, &v->conv[i], 1, "y", 4,
                   conv, TD_TAPE_CATEGORY_ACTIVATION);
  retain (l, v->relu[i]);
  v->pool[i] = op (l, pooling, 0, blocks[i], block, -1, 0, 60, line + 3, &v->relu[i], 1, "y", 4,
                   pool, TD_TAPE_CATEGORY_ACTIVATION);
  span_end (l, block);
}

static void
forward (Lenet *l, Vars *v)
{
  static const gint64 conv[2][4] = { { 64, 6, 28, 28 }, { 64, 16, 10, 10 } },
                      pool[2][4] = { { 64, 6, 14, 14 }, { 64, 16, 5, 5 } };
  guint32 lenet = span (l, "lenet", TD_TAPE_NONE, 29);
  guint32 h;

  forward_block (l, v, 0, v->x, lenet, conv[0], pool[0]);
  forward_block (l, v, 1, v->pool[0], lenet, conv[1], pool[1]);
  guint32 head = span (l, "lenet/head", lenet, 38);
  h = v->flat = op (l, "reshape", 0, "lenet/head", head, -1, 0, 3, 39, &v->pool[1], 1, "h", 2,
                    fc_in[0], TD_TAPE_CATEGORY_ACTIVATION);
  for (int i = 0; i < 3; i++)
    {
      guint32 link = span (l, fc_names[i], head, 40 + (guint)i);

      retain (l, h);
      v->fc[i] = op (l, "linear", 0, fc_names[i], link, -1, 0, i ? 30 : 90, 40 + (guint)i,
                     (guint32[]){ h, v->p[4 + 2 * i], v->p[5 + 2 * i] }, 3, "y", 2, fc_out[i],
                     TD_TAPE_CATEGORY_ACTIVATION);
      span_end (l, link);
      if (i == 2)
        break;
      h = v->fc_relu[i] = op (l, "relu", 0, "lenet/head", head, -1, 0, 6, 40 + (guint)i,
                              &v->fc[i], 1, "y", 2, fc_out[i], TD_TAPE_CATEGORY_ACTIVATION);
    }
  span_end (l, head);
  span_end (l, lenet);
  h = v->fc[2];
  if (l->options->extra_relu_at == (gint)l->number)
    h = op (l, "relu", 0, "", TD_TAPE_NONE, -1, 0, 5, 50, &h, 1, "y", 2, fc_out[2],
            TD_TAPE_CATEGORY_ACTIVATION);
  retain (l, h);
  v->loss = op (l, "softmax_cross_entropy", 0, "", TD_TAPE_NONE, -1, 0, 12, 51,
                (guint32[]){ h, v->t }, 2, "loss", 0, NULL, TD_TAPE_CATEGORY_ACTIVATION);
}

/* The gradient of a parameter: one backward event whose twin made use of it. */
static void
grad_of (Lenet *l, Vars *v, int i, const char *name, guint32 twin, guint order, guint64 us,
         guint32 gy, guint32 x)
{
  guint32 in[2] = { gy, x };
  double norm = 0.02 * (1 + i % 4) * (1 + 0.4 * sin (l->number * 0.7 + i)) * (i == 5 ? 0.1 : 1);
  gboolean nan = l->options->nan_at == (gint)l->number && i == 8;
  gboolean inf = l->options->inf_at == (gint)l->number && i == 8;

  if (l->options->cut_at == (gint)l->number && i == 1)
    {
      v->g[i] = TD_TAPE_NONE;
      return;
    }
  v->g[i] = op (l, name, 1, parameters[i].link, TD_TAPE_NONE, (gint)twin, order, us, 52, in,
                i % 2 ? 1 : 2, NULL, parameters[i].ndim, parameters[i].dims,
                TD_TAPE_CATEGORY_GRADIENT);
  add_stats (l, v->g[i], l->events->len - 1, norm, nan, inf);
}

static guint32
back (Lenet *l, const char *name, guint32 forward_out, guint order, guint64 us, guint32 gy,
      guint32 like, const char *path)
{
  const TdTapeVar *v = &g_array_index (l->vars, TdTapeVar, like);
  gint64 dims[4];
  guint ndim = v->ndim;
  guint32 in[2] = { gy, forward_out };

  memcpy (dims, &g_array_index (l->dims, gint64, v->first_dim), ndim * sizeof *dims);
  return op (l, name, 1, path, TD_TAPE_NONE, (gint)producer (l, forward_out), order, us, 52, in,
             2, "gy", ndim, dims, TD_TAPE_CATEGORY_GRADIENT);
}

static void
backward (Lenet *l, Vars *v)
{
  guint32 g = back (l, "softmax_cross_entropy_grad", v->loss, 0, 14, v->loss, v->fc[2], "");

  for (int i = 2; i >= 0; i--)
    {
      guint32 x = i ? v->fc_relu[i - 1] : v->flat;

      guint32 gx = back (l, "linear_grad_x", v->fc[i], 0, i ? 28 : 95, g, x, fc_names[i]);
      grad_of (l, v, 4 + 2 * i, "linear_grad_W", producer (l, v->fc[i]), 1, i ? 30 : 99, g, x);
      grad_of (l, v, 5 + 2 * i, "linear_grad_b", producer (l, v->fc[i]), 2, 4, g, x);
      add_memory (l, TD_TAPE_MEMORY_FREE, g, l->events->len);
      g = i ? back (l, "relu_grad", v->fc_relu[i - 1], 0, 6, gx, v->fc_relu[i - 1],
                    "lenet/head")
            : back (l, "reshape_grad", v->flat, 0, 3, gx, v->pool[1], "lenet/head");
      add_memory (l, TD_TAPE_MEMORY_FREE, gx, l->events->len);
    }
  for (int i = 1; i >= 0; i--)
    {
      static const char *const blocks[] = { "lenet/block1", "lenet/block2" };
      guint32 gp = back (l, "max_pooling_2d_grad", v->pool[i], 0, 52, g, v->relu[i], blocks[i]);
      guint32 gr = back (l, "relu_grad", v->relu[i], 0, 38, gp, v->conv[i], blocks[i]);

      add_memory (l, TD_TAPE_MEMORY_FREE, g, l->events->len);
      add_memory (l, TD_TAPE_MEMORY_FREE, gp, l->events->len);
      grad_of (l, v, 2 * i, "convolution_2d_grad_W", producer (l, v->conv[i]), 0, 455, gr,
               i ? v->pool[0] : v->x);
      grad_of (l, v, 2 * i + 1, "convolution_2d_grad_b", producer (l, v->conv[i]), 1, 41, gr,
               gr);
      if (i)
        g = back (l, "convolution_2d_grad_x", v->conv[i], 2, 468, gr, v->pool[0],
                  parameters[2].link);
      add_memory (l, TD_TAPE_MEMORY_FREE, gr, l->events->len);
    }
}

static void
update (Lenet *l, Vars *v)
{
  for (int i = 0; i < PARAMETERS; i++)
    {
      g_autofree char *path = g_strdup_printf ("%s/%s", parameters[i].link, parameters[i].name);
      TdTapeGrad grad = { .event = TD_TAPE_NONE,
                          .parameter = v->p[i],
                          .gradient = v->g[i],
                          .path = td_tape_writer_string (l->w, path) };

      if (v->g[i] != TD_TAPE_NONE)
        {
          grad.event = l->events->len;
          guint32 out = op (l, "adam", TD_TAPE_PHASE_UPDATE, parameters[i].link, TD_TAPE_NONE,
                            -1, 0, 9, 53, (guint32[]){ v->p[i], v->g[i] }, 2, NULL,
                            parameters[i].ndim, parameters[i].dims, TD_TAPE_CATEGORY_WORKSPACE);
          add_memory (l, TD_TAPE_MEMORY_FREE, out, l->events->len);
        }
      g_array_append_val (l->grads, grad);
    }
}

static void
store_values (Lenet *l, guint32 var)
{
  TdTapeTensorRecord r = { .iteration = l->number,
                           .variable = var,
                           .bytes = 2400 * 4,
                           .event = TD_TAPE_NONE,
                           .dtype = TD_TAPE_F32,
                           .ndim = 4,
                           .dims = { 16, 6, 5, 5 } };
  TdTapeTensorRef ref = { .var = var };
  float values[2400];

  for (int i = 0; i < 2400; i++)
    values[i] = (float)((g_rand_double (l->rand) + g_rand_double (l->rand)
                         + g_rand_double (l->rand) - 1.5)
                        * 0.01 * (1 + (i % 150) / 25 % 3));
  values[77] = NAN;
  if (td_tape_writer_tensor (l->w, &r, values, &ref))
    {
      ref.event = TD_TAPE_NONE;
      ref.var = var;
      g_array_append_val (l->tensors, ref);
    }
}

static void
write_iteration (Lenet *l)
{
  static const gint64 x[4] = { 64, 1, 28, 28 }, t[1] = { 64 };
  TdTapeIteration it = { .size = sizeof it, .number = l->number };
  GArray **arrays[]
      = { &l->events, &l->start, &l->duration, &l->ins,   &l->outs,    &l->vars,   &l->dims,
          &l->spans,  &l->grads, &l->memory,   &l->stats, &l->tensors, &l->address };
  const guint sizes[] = { sizeof (TdTapeEvent),
                          8,
                          8,
                          4,
                          4,
                          sizeof (TdTapeVar),
                          8,
                          sizeof (TdTapeSpan),
                          sizeof (TdTapeGrad),
                          sizeof (TdTapeMemory),
                          sizeof (TdTapeStats),
                          sizeof (TdTapeTensorRef),
                          8 };
  Vars v;
  guint64 externals[PARAMETERS + 2];
  guint64 total = 0, peak;

  for (guint i = 0; i < G_N_ELEMENTS (arrays); i++)
    *arrays[i] = g_array_new (FALSE, TRUE, sizes[i]);
  l->clock_ns = 0;
  l->next_address = 0x7f0000000000;
  l->next_buffer = 1;
  for (int i = 0; i < PARAMETERS; i++)
    {
      g_autofree char *path = g_strdup_printf ("%s/%s", parameters[i].link, parameters[i].name);
      v.p[i]
          = add_var (l, parameters[i].name, parameters[i].ndim, parameters[i].dims,
                     TD_TAPE_CATEGORY_PARAMETER, -1,
                     TD_TAPE_VAR_PARAMETER | TD_TAPE_VAR_EXTERNAL | TD_TAPE_VAR_REQUIRES_GRAD);
      TdTapeVar *var = &g_array_index (l->vars, TdTapeVar, v.p[i]);
      var->key = td_tape_hash_bytes (1, path, strlen (path));
      var->path = td_tape_writer_path (l->w, parameters[i].link, "Linear");
      it.start_bytes[TD_TAPE_CATEGORY_PARAMETER] += var->bytes;
      it.start_bytes[TD_TAPE_CATEGORY_OPTIMIZER] += 2 * var->bytes;
    }
  v.x = add_var (l, "x", 4, x, TD_TAPE_CATEGORY_INPUT, -1, TD_TAPE_VAR_EXTERNAL);
  v.t = add_var (l, "t", 1, t, TD_TAPE_CATEGORY_INPUT, -1, TD_TAPE_VAR_EXTERNAL);
  g_array_index (l->vars, TdTapeVar, v.x).key = 1001;
  g_array_index (l->vars, TdTapeVar, v.t).key = 1002;
  it.start_bytes[TD_TAPE_CATEGORY_INPUT] = 64 * 28 * 28 * 4 + 64 * 4;
  for (int i = 0; i < PARAMETERS + 2; i++)
    externals[i] = (guint64)i + 1;
  forward (l, &v);
  backward (l, &v);
  if (!l->options->no_update)
    update (l, &v);
  if (l->options->values)
    store_values (l, v.g[2]);

  for (int c = 0; c < TD_TAPE_N_CATEGORIES; c++)
    total += it.start_bytes[c];
  peak = total;
  for (guint m = 0; m < l->memory->len; m++)
    {
      const TdTapeMemory *r = &g_array_index (l->memory, TdTapeMemory, m);
      total += r->kind == TD_TAPE_MEMORY_ALLOC ? r->bytes : -r->bytes;
      peak = MAX (peak, total);
    }
  it.peak_bytes = peak;
  it.end_bytes = total;
  it.start_ns = (guint64)l->number * 4000000;
  it.duration_ns = l->clock_ns;
  it.flags = TD_TAPE_ITERATION_STATS
             | (l->options->nan_at == (gint)l->number ? TD_TAPE_ITERATION_NAN : 0)
             | (l->options->inf_at == (gint)l->number ? TD_TAPE_ITERATION_INF : 0);
  it.n_externals = PARAMETERS + 2;
  it.externals = externals;
  it.n_events = l->events->len;
  it.events = (void *)l->events->data;
  it.event_start_ns = (void *)l->start->data;
  it.event_duration_ns = (void *)l->duration->data;
  it.n_ins = l->ins->len;
  it.ins = (void *)l->ins->data;
  it.n_outs = l->outs->len;
  it.outs = (void *)l->outs->data;
  it.n_vars = l->vars->len;
  it.vars = (void *)l->vars->data;
  it.n_dims = l->dims->len;
  it.dims = (void *)l->dims->data;
  it.n_spans = l->spans->len;
  it.spans = (void *)l->spans->data;
  it.n_grads = l->grads->len;
  it.grads = (void *)l->grads->data;
  it.n_memory = l->memory->len;
  it.memory = (void *)l->memory->data;
  it.n_stats = l->stats->len;
  it.stats = (void *)l->stats->data;
  it.n_tensors = l->tensors->len;
  it.tensors = (void *)l->tensors->data;
  td_tape_writer_whole (l->w, &it);
  for (guint i = 0; i < G_N_ELEMENTS (arrays); i++)
    g_array_unref (*arrays[i]);
}

void
lenet_tape_write (const char *path, const LenetOptions *options)
{
  TdTapeWriterOptions o = { .size = sizeof o,
                            .level = TD_TAPE_LEVEL_STATS,
                            .path = path,
                            .overwrite = true,
                            .budget_bytes = options->budget_bytes };
  char error[160];
  Lenet l = { .w = td_tape_writer_new (&o, error, sizeof error),
              .options = options,
              .rand = g_rand_new_with_seed (7) };
  TdTapeEnd end = { .iteration = options->n_iterations ? options->n_iterations - 1 : 0 };

  if (!l.w)
    g_error ("%s", error);
  td_tape_writer_info (l.w, "program", "lenet");
  td_tape_writer_info (l.w, "device", "cpu");
  for (int i = 0; i < PARAMETERS; i++)
    {
      g_autofree char *full = g_strdup_printf ("%s/%s", parameters[i].link, parameters[i].name);
      TdTapeParameter p = { .key = td_tape_hash_bytes (1, full, strlen (full)),
                            .path = td_tape_writer_string (l.w, full),
                            .dtype = TD_TAPE_F32,
                            .ndim = (guint8)parameters[i].ndim };

      memcpy (p.dims, parameters[i].dims, sizeof parameters[i].dims);
      td_tape_writer_parameter (l.w, &p);
    }
  for (l.number = 0; l.number < options->n_iterations; l.number++)
    {
      TdTapeReport r
          = { .iteration = l.number,
              .key = td_tape_writer_string (l.w, "loss"),
              .event = 13,
              .value = 0.35 + 1.9 * exp (-0.03 * l.number) + 0.1 * sin (l.number * 1.7) };
      TdTapeReport a = { .iteration = l.number,
                         .key = td_tape_writer_string (l.w, "accuracy"),
                         .event = 13,
                         .value = 1 - 0.9 * exp (-0.05 * l.number) };

      td_tape_writer_report (l.w, &r);
      td_tape_writer_report (l.w, &a);
      write_iteration (&l);
    }
  td_tape_writer_end (l.w, &end);
  td_tape_writer_free (l.w);
  g_rand_free (l.rand);
}

/* ---- reading back ---- */

static const char *
name_string (gpointer data, guint32 id)
{
  return td_tape_reader_string (data, id);
}

static const char *
name_op (gpointer data, guint32 opdef)
{
  return td_tape_reader_op_name (data, opdef);
}

static const char *
name_path (gpointer data, guint32 path)
{
  return td_tape_reader_path_text (data, path);
}

static const char *
name_site (gpointer data, guint32 site, guint32 *line)
{
  const TdTapeSite *s = td_tape_reader_site (data, site);

  if (!s)
    return NULL;
  *line = s->line;
  return td_tape_reader_string (data, s->file);
}

TdIteration *
lenet_tape_load (TdTapeReader *reader, guint64 number)
{
  static const TdNamesClass names = { name_string, name_op, name_path, name_site };
  char error[160];
  const TdTapeIteration *t = td_tape_iteration_load (reader, number, error, sizeof error);

  if (!t)
    g_error ("%s", error);
  return td_iteration_new (&names, reader, NULL, t, td_tape_iteration_free);
}
