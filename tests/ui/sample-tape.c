/* The sample: LeNet-5 on batches of 64, 13 forward, 22 backward and 10 update events, described
 * by a table of layers from which the backward pass follows as the engine would make it.
 * SPDX-License-Identifier: MIT */
#include "sample-tape.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "td-tape-writer.h"
#include "td-test.h"

enum
{
  MAX_VARS = 128,
  MAX_EVENTS = 64,
  MAX_EDGES = 512,
  MAX_DIMS = 512,
  MAX_SPANS = 16,
  MAX_MEMORY = 256,
  N_PARAMETERS = 10,
  BATCH = 64,
  VALUES_KEPT = 20 /* iterations with tensors */
};

typedef struct
{
  const char *op, *grad_op, *layer;
  int w[4], w_ndim; /* shape of W; 0: no parameters */
  int y[4], y_ndim; /* output */
  int line;
  const char *attrs;
} Layer;

static const Layer layers[SAMPLE_N_FORWARD] = {
  { "convolution_2d",
    "convolution_2d_grad",
    "lenet/block1/conv1",
    { 6, 1, 5, 5 },
    4,
    { BATCH, 6, 28, 28 },
    4,
    21,
    "stride=1,1 pad=2,2" },
  { "relu", "relu_grad", "lenet/block1", { 0 }, 0, { BATCH, 6, 28, 28 }, 4, 22, "" },
  { "max_pooling_2d",
    "max_pooling_2d_grad",
    "lenet/block1",
    { 0 },
    0,
    { BATCH, 6, 14, 14 },
    4,
    22,
    "ksize=2,2 stride=2,2" },
  { "convolution_2d",
    "convolution_2d_grad",
    "lenet/block2/conv2",
    { 16, 6, 5, 5 },
    4,
    { BATCH, 16, 10, 10 },
    4,
    25,
    "stride=1,1 pad=0,0" },
  { "relu", "relu_grad", "lenet/block2", { 0 }, 0, { BATCH, 16, 10, 10 }, 4, 26, "" },
  { "max_pooling_2d",
    "max_pooling_2d_grad",
    "lenet/block2",
    { 0 },
    0,
    { BATCH, 16, 5, 5 },
    4,
    26,
    "ksize=2,2 stride=2,2" },
  { "reshape", "reshape", "lenet/head", { 0 }, 0, { BATCH, 400 }, 2, 29, "" },
  { "linear", "linear_grad", "lenet/head/fc1", { 120, 400 }, 2, { BATCH, 120 }, 2, 30, "" },
  { "relu", "relu_grad", "lenet/head", { 0 }, 0, { BATCH, 120 }, 2, 30, "" },
  { "linear", "linear_grad", "lenet/head/fc2", { 84, 120 }, 2, { BATCH, 84 }, 2, 31, "" },
  { "relu", "relu_grad", "lenet/head", { 0 }, 0, { BATCH, 84 }, 2, 31, "" },
  { "linear", "linear_grad", "lenet/head/fc3", { 10, 84 }, 2, { BATCH, 10 }, 2, 32, "" },
  { "softmax_cross_entropy", "softmax_cross_entropy_grad", "", { 0 }, 0, { 1 }, 0, 41, "" },
};

static const struct
{
  const char *path;
  int begin, end, parent;
} spans[] = {
  { "lenet", 0, 12, -1 },
  { "lenet/block1", 0, 3, 0 },
  { "lenet/block1/conv1", 0, 1, 1 },
  { "lenet/block2", 3, 6, 0 },
  { "lenet/block2/conv2", 3, 4, 3 },
  { "lenet/head", 6, 12, 0 },
  { "lenet/head/fc1", 7, 8, 5 },
  { "lenet/head/fc2", 9, 10, 5 },
  { "lenet/head/fc3", 11, 12, 5 },
};

static const char source_text[]
    = "/* lenet.c: LeNet-5 on MNIST. */\n"
      "#include <tapedeck.h>\n\n"
      "typedef struct { TdLink *chain, *block1, *block2, *head; } Lenet;\n\n"
      "static TdVar *\nlenet_forward (Lenet *m, TdVar *x)\n{\n"
      "  return td_link (m->head, td_link (m->block2, td_link (m->block1, "
      "x)));\n}\n\n\n\n\n\n\n\n\n"
      "/* block1 */\n{\n"
      "  h = td_link (b->conv1, x);\n"
      "  h = td_max_pooling_2d (td_relu (h), .ksize = { 2, 2 });\n\n/* block2 */\n"
      "  h = td_link (b->conv2, h);\n"
      "  h = td_max_pooling_2d (td_relu (h), .ksize = { 2, 2 });\n\n/* head */\n"
      "  h = td_flatten (h);\n"
      "  h = td_relu (td_link (b->fc1, h));\n"
      "  h = td_relu (td_link (b->fc2, h));\n"
      "  return td_link (b->fc3, h);\n}\n\nint\nmain (int argc, char **argv)\n{\n"
      "  TD_ITERATION (0)\n    {\n\n"
      "      loss = td_softmax_cross_entropy (lenet_forward (&m, b.x), b.t);\n"
      "      td_backward (loss, 0);\n"
      "      td_opt_update (opt);\n    }\n}\n";

typedef struct
{
  TdTapeWriter *w;
  TdTapeIteration it;
  TdTapeEvent events[MAX_EVENTS];
  uint64_t start_ns[MAX_EVENTS], duration_ns[MAX_EVENTS];
  uint32_t ins[MAX_EDGES], outs[MAX_EDGES];
  TdTapeVar vars[MAX_VARS];
  int64_t dims[MAX_DIMS];
  TdTapeSpan spans[MAX_SPANS];
  TdTapeGrad grads[N_PARAMETERS];
  TdTapeMemory memory[MAX_MEMORY];
  TdTapeStats stats[MAX_VARS];
  TdTapeReport report;
  uint64_t externals[MAX_VARS];
  uint32_t out_of[SAMPLE_N_FORWARD]; /* variable each layer makes */
  uint32_t parameters[N_PARAMETERS], gradients[N_PARAMETERS];
  uint64_t random, live, address;
} Sample;

/* A fixed sequence (64-bit LCG of Knuth), so that every run writes the same tape. */
static double
draw (Sample *s)
{
  s->random = s->random * 6364136223846793005u + 1442695040888963407u;
  return (double)(s->random >> 11) / (double)(1ull << 53);
}

static uint32_t
add_var (Sample *s, const char *name, const char *path, unsigned category, unsigned flags,
         const int *shape, int ndim)
{
  uint32_t index = s->it.n_vars++;
  TdTapeVar *v = &s->vars[index];

  *v = (TdTapeVar){ .producer = -1,
                    .name = td_tape_writer_string (s->w, name),
                    .path = path && *path ? td_tape_writer_path (s->w, path, "Chain") : 0,
                    .first_dim = s->it.n_dims,
                    .ndim = (uint8_t)ndim,
                    .category = (uint8_t)category,
                    .flags = (uint8_t)flags,
                    .bytes = 4 };
  for (int i = 0; i < ndim; i++)
    {
      s->dims[s->it.n_dims++] = shape[i];
      v->bytes *= (uint64_t)shape[i];
    }
  if (flags & TD_TAPE_VAR_EXTERNAL)
    {
      v->id = s->it.n_externals;
      s->externals[s->it.n_externals++] = 1 + v->id;
      v->key = td_tape_hash (td_tape_hash_bytes (1, name, strlen (name)),
                             path ? td_tape_hash_bytes (2, path, strlen (path)) : 0);
    }
  else
    v->id = index;
  return index;
}

static uint32_t
opdef (Sample *s, const char *name, const char *group)
{
  TdTapeOpdef def = { .name = td_tape_writer_string (s->w, name),
                      .group = td_tape_writer_string (s->w, group),
                      .n_in = -1,
                      .n_out = -1 };

  return td_tape_writer_opdef (s->w, &def);
}

static TdTapeEvent *
add_event (Sample *s, const char *op, const char *layer, int line, unsigned phase, int twin,
           unsigned order)
{
  uint32_t index = s->it.n_events++;
  TdTapeEvent *e = &s->events[index];

  *e = (TdTapeEvent){ .opdef = opdef (s, op, "sample"),
                      .site = td_tape_writer_site (s->w, "lenet.c", (uint32_t)line, "main"),
                      .path = *layer ? td_tape_writer_path (s->w, layer, "Chain") : 0,
                      .twin = twin,
                      .span = TD_TAPE_NONE,
                      .first_in = s->it.n_ins,
                      .first_out = s->it.n_outs,
                      .order = (uint16_t)order,
                      .phase = (uint8_t)phase };
  for (unsigned k = 0; k < sizeof spans / sizeof *spans; k++)
    if (phase == TD_TAPE_PHASE_FORWARD && (int)index >= spans[k].begin
        && (int)index < spans[k].end)
      e->span = k;
  return e;
}

static void
add_in (Sample *s, uint32_t var, bool retained)
{
  TdTapeEvent *e = &s->events[s->it.n_events - 1];

  if (retained)
    e->retained_in |= 1u << e->n_in;
  s->ins[s->it.n_ins++] = var;
  e->n_in++;
}

static void
add_memory (Sample *s, unsigned kind, uint32_t var, uint32_t event, uint64_t address)
{
  const TdTapeVar *v = &s->vars[var];

  s->memory[s->it.n_memory++] = (TdTapeMemory){ .address = address,
                                                .bytes = v->bytes,
                                                .buffer = var,
                                                .variable = v->id,
                                                .event = event,
                                                .kind = (uint8_t)kind,
                                                .category = v->category };
  s->live += kind == TD_TAPE_MEMORY_ALLOC ? v->bytes : -v->bytes;
  if (s->live > s->it.peak_bytes)
    s->it.peak_bytes = s->live;
}

static uint32_t
add_out (Sample *s, const char *name, unsigned category, const int *shape, int ndim)
{
  uint32_t event = s->it.n_events - 1;
  TdTapeEvent *e = &s->events[event];
  uint32_t var = add_var (s, name, "", category, TD_TAPE_VAR_REQUIRES_GRAD, shape, ndim);

  s->vars[var].producer = (int32_t)event;
  s->vars[var].out_index = e->n_out;
  s->outs[s->it.n_outs++] = var;
  e->n_out++;
  add_memory (s, TD_TAPE_MEMORY_ALLOC, var, event, s->address);
  s->address += (s->vars[var].bytes + 255) & ~255ull;
  return var;
}

static void
add_forward (Sample *s)
{
  uint32_t x = add_var (s, "x", "", TD_TAPE_CATEGORY_INPUT, TD_TAPE_VAR_EXTERNAL,
                        (const int[]){ BATCH, 1, 28, 28 }, 4);
  uint32_t t = add_var (s, "t", "", TD_TAPE_CATEGORY_INPUT, TD_TAPE_VAR_EXTERNAL,
                        (const int[]){ BATCH }, 1);
  unsigned p = 0;

  for (unsigned i = 0; i < SAMPLE_N_FORWARD; i++)
    {
      const Layer *layer = &layers[i];
      TdTapeEvent *e
          = add_event (s, layer->op, layer->layer, layer->line, TD_TAPE_PHASE_FORWARD, -1, 0);

      e->attrs = td_tape_writer_string (s->w, layer->attrs);
      add_in (s, i == 0 ? x : s->out_of[i - 1], true);
      if (layer->w_ndim)
        for (int k = 0; k < 2; k++)
          {
            s->parameters[p] = add_var (
                s, k ? "b" : "W", layer->layer, TD_TAPE_CATEGORY_PARAMETER,
                TD_TAPE_VAR_EXTERNAL | TD_TAPE_VAR_PARAMETER | TD_TAPE_VAR_REQUIRES_GRAD,
                layer->w, k ? 1 : layer->w_ndim);
            add_in (s, s->parameters[p++], k == 0);
          }
      if (i == SAMPLE_N_FORWARD - 1)
        add_in (s, t, true);
      s->out_of[i] = add_out (s, i == SAMPLE_N_FORWARD - 1 ? "loss" : "",
                              TD_TAPE_CATEGORY_ACTIVATION, layer->y, layer->y_ndim);
    }
}

static void
add_backward (Sample *s)
{
  uint32_t gy = TD_TAPE_NONE;
  unsigned p = N_PARAMETERS;

  for (int i = SAMPLE_N_FORWARD - 1; i >= 0; i--)
    {
      const Layer *layer = &layers[i];
      unsigned order = 0, first_p = layer->w_ndim ? (p -= 2) : 0;
      char name[64];
      uint32_t gx = gy;

      for (int k = layer->w_ndim ? 0 : 2; k < 3; k++)
        {
          if (k == 2 && i == 0)
            break;
          snprintf (name, sizeof name, layer->w_ndim ? "%s_%c" : "%s", layer->grad_op,
                    "Wbx"[k]);
          add_event (s, name, layer->layer, layer->line, TD_TAPE_PHASE_BACKWARD, i, order++);
          if (gy != TD_TAPE_NONE)
            add_in (s, gy, false);
          if (k != 1)
            add_in (s,
                    k == 0 || !layer->w_ndim ? (i ? s->out_of[i - 1] : 0)
                                             : s->parameters[first_p],
                    false);
          if (k < 2)
            {
              snprintf (name, sizeof name, "%s/%c.grad", strrchr (layer->layer, '/') + 1,
                        "Wb"[k]);
              s->gradients[first_p + (unsigned)k] = add_out (s, name, TD_TAPE_CATEGORY_GRADIENT,
                                                             layer->w, k ? 1 : layer->w_ndim);
            }
          else
            gx = add_out (s, "", TD_TAPE_CATEGORY_GRADIENT, layers[i - 1].y,
                          layers[i - 1].y_ndim);
        }
      gy = gx;
    }
}

static void
add_update (Sample *s)
{
  unsigned p = 0;

  for (unsigned i = 0; i < SAMPLE_N_FORWARD; i++)
    for (int k = 0; layers[i].w_ndim && k < 2; k++, p++)
      {
        char path[96];

        add_event (s, "adam_update", layers[i].layer, 43, TD_TAPE_PHASE_UPDATE, -1, 0);
        add_in (s, s->parameters[p], false);
        add_in (s, s->gradients[p], false);
        snprintf (path, sizeof path, "%s/%c", layers[i].layer, "Wb"[k]);
        s->grads[s->it.n_grads++] = (TdTapeGrad){ .event = s->it.n_events - 1,
                                                  .parameter = s->parameters[p],
                                                  .gradient = s->gradients[p],
                                                  .path = td_tape_writer_string (s->w, path) };
      }
}

static void
add_spans (Sample *s)
{
  for (unsigned k = 0; k < sizeof spans / sizeof *spans; k++)
    {
      const char *name = strrchr (spans[k].path, '/');
      uint32_t depth = 0;

      for (int up = spans[k].parent; up >= 0; up = spans[up].parent)
        depth++;
      s->spans[k]
          = (TdTapeSpan){ .key = td_tape_hash_bytes (3, spans[k].path, strlen (spans[k].path)),
                          .kind = TD_TAPE_SPAN_LINK,
                          .name = td_tape_writer_string (s->w, name ? name + 1 : spans[k].path),
                          .path = td_tape_writer_path (s->w, spans[k].path, "Chain"),
                          .site = td_tape_writer_site (s->w, "lenet.c", 41, "main"),
                          .parent
                          = spans[k].parent < 0 ? TD_TAPE_NONE : (uint32_t)spans[k].parent,
                          .begin = (uint32_t)spans[k].begin,
                          .end = (uint32_t)spans[k].end,
                          .depth = depth };
    }
  s->it.n_spans = sizeof spans / sizeof *spans;
}

/* Everything made in the iteration is freed at its end, as scopes do. */
static void
add_frees (Sample *s)
{
  uint32_t n = s->it.n_memory;

  for (uint32_t i = 0; i < n; i++)
    add_memory (s, TD_TAPE_MEMORY_FREE, (uint32_t)s->memory[i].buffer, s->it.n_events,
                s->memory[i].address);
}

static void
add_times (Sample *s)
{
  uint64_t at = 1000;

  for (uint32_t i = 0; i < s->it.n_events; i++)
    {
      uint64_t bytes = s->events[i].n_out ? s->vars[s->outs[s->events[i].first_out]].bytes : 64;

      s->start_ns[i] = at;
      s->duration_ns[i] = 2000 + (uint64_t)((double)bytes * (0.3 + 0.2 * draw (s)));
      at += s->duration_ns[i] + 400;
    }
  s->it.start_ns = 1000000 + s->it.number * (at + 50000);
  s->it.duration_ns = at;
}

static void
add_stats (Sample *s, bool nan)
{
  for (uint32_t v = 0; v < s->it.n_vars; v++)
    {
      TdTapeVar *var = &s->vars[v];
      TdTapeStats *st = &s->stats[s->it.n_stats];
      double scale = 0.02 + 0.3 * draw (s);
      bool bad = nan && var->category == TD_TAPE_CATEGORY_GRADIENT;

      if (var->producer < 0)
        continue;
      s->it.n_stats++;
      *st = (TdTapeStats){ .var = v,
                           .event = (uint32_t)var->producer,
                           .n = var->bytes / 4,
                           .n_sampled = var->bytes / 4 };
      st->min = -2 * scale;
      st->max = 2.1 * scale;
      st->mean = scale * (draw (s) - 0.5) * 0.1;
      st->m2 = scale * scale * (double)st->n;
      st->l2 = sqrt (st->m2);
      st->n_nan = bad ? st->n / 2 + 1 : 0;
      st->bins[16] = (uint32_t)(st->n - st->n_nan);
    }
}

/* Keys of our own, so that the running iteration has those of the finished ones. */
static void
add_keys (Sample *s)
{
  for (uint32_t i = 0; i < s->it.n_events; i++)
    {
      TdTapeEvent *e = &s->events[i];
      e->key = e->twin >= 0 ? td_tape_twin_key (s->events[e->twin].key, e->phase, e->order)
                            : td_tape_event_key (9, e->path, e->site, i, e->phase);
      for (uint32_t k = 0; k < e->n_out; k++)
        s->vars[s->outs[e->first_out + k]].key = td_tape_output_key (e->key, k);
    }
}

static void
make_sample (Sample *s, TdTapeWriter *w)
{
  *s = (Sample){ .w = w, .random = 42, .live = 741 * 1000, .address = 0x7f0000000000 };
  s->it = (TdTapeIteration){ .size = sizeof s->it,
                             .first_id = 1000,
                             .first_buffer = 1000,
                             .events = s->events,
                             .event_start_ns = s->start_ns,
                             .event_duration_ns = s->duration_ns,
                             .ins = s->ins,
                             .outs = s->outs,
                             .vars = s->vars,
                             .dims = s->dims,
                             .spans = s->spans,
                             .grads = s->grads,
                             .externals = s->externals,
                             .memory = s->memory,
                             .stats = s->stats,
                             .reports = &s->report };
  s->it.start_bytes[TD_TAPE_CATEGORY_PARAMETER] = 247 * 1000;
  s->it.start_bytes[TD_TAPE_CATEGORY_OPTIMIZER] = 494 * 1000;
  s->it.peak_bytes = s->it.end_bytes = s->live;
  add_forward (s);
  add_backward (s);
  add_update (s);
  add_spans (s);
  add_keys (s);
  add_frees (s);
  assert_int_equal (s->it.n_events, SAMPLE_N_EVENTS);
}

/* Values of the weight gradients, as an engine at level `values` keeps them. */
static uint32_t
write_tensors (Sample *s, TdTapeTensorRef *refs)
{
  uint32_t n = 0;

  for (unsigned p = 0; p < N_PARAMETERS; p += 2)
    {
      const TdTapeVar *v = &s->vars[s->gradients[p]];
      TdTapeTensorRecord record = { .iteration = s->it.number,
                                    .variable = s->it.first_id + v->id,
                                    .bytes = v->bytes,
                                    .event = (uint32_t)v->producer,
                                    .dtype = v->dtype,
                                    .ndim = v->ndim };
      float *data = malloc (v->bytes);

      for (int d = 0; d < v->ndim; d++)
        record.dims[d] = s->dims[v->first_dim + (uint32_t)d];
      for (uint64_t i = 0; i < v->bytes / 4; i++)
        data[i] = (float)((draw (s) + draw (s) + draw (s) - 1.5) * 0.02);
      if (td_tape_writer_tensor (s->w, &record, data, &refs[n]))
        {
          refs[n].var = s->gradients[p];
          n++;
        }
      free (data);
    }
  return n;
}

static void
write_iteration (Sample *s, unsigned number, const SampleOptions *options)
{
  TdTapeTensorRef refs[N_PARAMETERS];

  s->it.number = number;
  s->it.flags = TD_TAPE_ITERATION_STATS;
  s->it.n_stats = s->it.n_tensors = 0;
  s->it.tensors = refs;
  add_times (s);
  add_stats (s, (int)number == options->nan_at);
  if ((int)number == options->nan_at)
    s->it.flags |= TD_TAPE_ITERATION_NAN;
  if (number + VALUES_KEPT >= options->n_iterations)
    {
      s->it.n_tensors = write_tensors (s, refs);
      s->it.flags |= TD_TAPE_ITERATION_VALUES;
    }
  s->report
      = (TdTapeReport){ .iteration = number,
                        .value = 2.3 * exp (-(double)number / 25) + 0.15 + 0.05 * draw (s),
                        .key = td_tape_writer_string (s->w, "loss"),
                        .event = SAMPLE_N_FORWARD };
  s->it.n_reports = 1;
  td_tape_writer_report (s->w, &s->report);
  td_tape_writer_whole (s->w, &s->it);
}

/* The iteration that was running: its events so far, without memory that it never freed. */
static void
write_live (Sample *s, const SampleOptions *options)
{
  TdTapeIteration it = s->it;

  it.number = options->n_iterations;
  it.flags = TD_TAPE_ITERATION_PARTIAL;
  it.structure = it.memory_profile = 0; /* it brings its own */
  it.n_events = options->live_events;
  it.n_stats = it.n_tensors = it.n_reports = it.n_grads = 0;
  const TdTapeEvent *last = &s->events[it.n_events - 1];
  it.n_ins = last->first_in + last->n_in;
  it.n_outs = last->first_out + last->n_out;
  for (it.n_vars = 0;
       it.n_vars < s->it.n_vars && s->vars[it.n_vars].producer < (int32_t)it.n_events;)
    it.n_vars++;
  for (it.n_memory = 0; s->memory[it.n_memory].event < it.n_events;)
    it.n_memory++;
  it.stop = (TdTapeStop){ .stopped = options->end == SAMPLE_RUNNING,
                          .event = it.n_events,
                          .reason = td_tape_writer_string (s->w, "step") };
  td_tape_writer_live (s->w, &it);
}

static void
write_head (Sample *s)
{
  unsigned p = 0;

  td_tape_writer_info (s->w, "program", "lenet.c");
  td_tape_writer_info (s->w, "device", "cpu");
  td_tape_writer_source (s->w, "lenet.c", source_text, sizeof source_text - 1);
  for (unsigned i = 0; i < SAMPLE_N_FORWARD; i++)
    for (int k = 0; layers[i].w_ndim && k < 2; k++, p++)
      {
        char path[96];
        const TdTapeVar *v = &s->vars[s->parameters[p]];
        TdTapeParameter parameter = { .key = v->key, .ndim = v->ndim };

        snprintf (path, sizeof path, "%s/%c", layers[i].layer, "Wb"[k]);
        parameter.path = td_tape_writer_string (s->w, path);
        for (int d = 0; d < v->ndim; d++)
          parameter.dims[d] = s->dims[v->first_dim + (uint32_t)d];
        td_tape_writer_parameter (s->w, &parameter);
      }
}

static void
write_end (Sample *s, const SampleOptions *options)
{
  TdTapeEnd end = { .iteration = options->n_iterations, .time_ns = 1000000000 };

  if (options->end == SAMPLE_RUNNING)
    return;
  end.status = options->end == SAMPLE_EXIT_3 ? 3 : 0;
  if (options->end == SAMPLE_KILLED)
    {
      end.status = -1;
      end.signal = 9;
      end.running = 1;
      end.last_op = s->events[options->live_events].opdef;
      end.last_site = s->events[options->live_events].site;
      end.last_event = options->live_events;
    }
  td_tape_writer_end (s->w, &end);
}

void
sample_tape_write (const char *path, const SampleOptions *options)
{
  char error[256];
  TdTapeWriterOptions writer_options = { .size = sizeof writer_options,
                                         .level = TD_TAPE_LEVEL_VALUES,
                                         .path = path,
                                         .overwrite = true };
  TdTapeWriter *w = td_tape_writer_new (&writer_options, error, sizeof error);
  Sample *s = malloc (sizeof *s);

  if (w == NULL)
    fail_msg ("%s: %s", path, error);
  make_sample (s, w);
  write_head (s);
  for (unsigned i = 0; i < options->n_iterations; i++)
    write_iteration (s, i, options);
  if (options->live_events)
    write_live (s, options);
  write_end (s, options);
  td_tape_writer_free (w);
  free (s);
}
