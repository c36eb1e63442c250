/* Convolutions in f32 through oneDNN's C API (2.x).
 *
 * oneDNN computes in blocked layouts: images are brought into them chunk by chunk, while they
 * are in the cache, and filters once a call.  Its own threads stay idle: the engine's threads
 * take chunks of images, whose size depends on the shapes alone, so that results are bitwise
 * equal for any number of threads.  What was made for one set of sizes (a plan) is kept for the
 * next call.
 *
 * SPDX-License-Identifier: MIT */
#include "conv-onednn.h"

#include <dlfcn.h>
#include <dnnl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu.h"
#include "gemm.h"

enum
{
  SRC,
  WEI,
  DST,
  N_SIDES,
  N_PLANS = 64,
  CHUNK_FLOPS = 20000000, /* work of one task, at least */
  MAX_WEIGHT_CHUNKS = 8,
  ALIGNMENT = 64
};

/* One operand: as we have it, as oneDNN wants it, and the way between (NULL: they are equal).
 */
typedef struct
{
  dnnl_memory_desc_t ours, theirs;
  dnnl_primitive_t reorder;
  size_t bytes; /* of theirs */
} Side;

typedef struct
{
  TdConvKind kind;
  int64_t images;
  bool bias;
  TdConvSizes sizes;
} Key;

typedef struct
{
  Key key;
  dnnl_primitive_t conv;
  Side side[N_SIDES];
  dnnl_memory_desc_t bias;
  size_t scratch_bytes;
  const char *algorithm;
} Plan;

static dnnl_engine_t engine;
static bool available;
static void (*omp_threads) (int);
static int (*omp_max_threads) (void);
static Plan plans[N_PLANS];
static int n_plans, next_plan;

static void
start (void)
{
  const char *wish = getenv ("TAPEDECK_ONEDNN");

  if ((wish != NULL && strcmp (wish, "off") == 0) || getenv ("TAPEDECK_TILES") != NULL)
    return;
  *(void **)&omp_threads = dlsym (RTLD_DEFAULT, "omp_set_num_threads");
  *(void **)&omp_max_threads = dlsym (RTLD_DEFAULT, "omp_get_max_threads");
  available = dnnl_engine_create (&engine, dnnl_cpu, 0) == dnnl_success;
}

/* Keep oneDNN's own threads out; returns how many it may use in this thread otherwise. */
static int
alone (void)
{
  const int before = omp_max_threads != NULL ? omp_max_threads () : 1;

  if (before != 1 && omp_threads != NULL)
    omp_threads (1);
  return before;
}

static void
together (int before)
{
  if (before != 1 && omp_threads != NULL)
    omp_threads (before);
}

/* The share of 16 lanes that so many channels fill. */
static double
filled (int64_t channels)
{
  return (double)channels / (double)((channels + 15) / 16 * 16);
}

/* Measured on AVX-512, one thread: 1.1 to 2.5 times as fast as our tiles where channels fill
 * the blocks, 3 and more where every channel has its own filter; slower with 20 and 50
 * channels, and in 1 x 1 forward.  Filter gradients from few channels gain as well. */
bool
td__conv_onednn_prefers (TdConvKind kind, const TdConvSizes *s)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;

  pthread_once (&once, start);
  if (!available || s->kd != 1 || s->d != 1)
    return false;
  if (s->cg == 1 && s->og == 1)
    return s->groups >= 16;
  if (kind == TD_CONV_FORWARD && s->kh == 1 && s->kw == 1)
    return false;
  if (kind == TD_CONV_WEIGHT_GRAD && s->cg <= 4 && s->groups == 1)
    return filled (s->og) >= 0.8 && s->kh * s->kw > 1;
  return filled (s->cg) * filled (s->og) >= 0.8;
}

/* --- plans --- */

/* "onednn:jit:avx512_core", kept for good. */
static const char *
name_algorithm (const_dnnl_primitive_desc_t pd)
{
  static char names[32][48];
  const char *name = "?";
  char text[48];

  dnnl_primitive_desc_query (pd, dnnl_query_impl_info_str, 0, &name);
  snprintf (text, sizeof text, "onednn:%s", name);
  for (int i = 0; i < 32; i++)
    {
      if (names[i][0] == '\0')
        memcpy (names[i], text, sizeof text);
      if (strcmp (names[i], text) == 0)
        return names[i];
    }
  return "onednn";
}

static void
plan_free (Plan *p)
{
  if (p->conv != NULL)
    dnnl_primitive_destroy (p->conv);
  for (int i = 0; i < N_SIDES; i++)
    if (p->side[i].reorder != NULL)
      dnnl_primitive_destroy (p->side[i].reorder);
  memset (p, 0, sizeof *p);
}

static bool
describe (const Key *k, dnnl_format_tag_t images, dnnl_format_tag_t filters,
          dnnl_memory_desc_t md[N_SIDES])
{
  const TdConvSizes *s = &k->sizes;
  const dnnl_dims_t src = { k->images, s->c, s->h, s->w };
  const dnnl_dims_t wei = { s->groups, s->og, s->cg, s->kh, s->kw };
  const dnnl_dims_t dst = { k->images, s->o, s->oh, s->ow };
  const int one = s->groups == 1;

  return dnnl_memory_desc_init_by_tag (&md[SRC], 4, src, dnnl_f32, images) == dnnl_success
         && dnnl_memory_desc_init_by_tag (&md[WEI], 5 - one, wei + one, dnnl_f32, filters)
                == dnnl_success
         && dnnl_memory_desc_init_by_tag (&md[DST], 4, dst, dnnl_f32, images) == dnnl_success;
}

static bool
describe_conv (const Key *k, const dnnl_memory_desc_t *bias, dnnl_convolution_desc_t *cd)
{
  const TdConvSizes *s = &k->sizes;
  const dnnl_dims_t stride = { s->sy, s->sx }, dilate = { s->dy - 1, s->dx - 1 };
  const dnnl_dims_t begin = { s->py, s->px };
  const dnnl_dims_t end = { (s->oh - 1) * s->sy + (s->kh - 1) * s->dy + 1 - s->h - s->py,
                            (s->ow - 1) * s->sx + (s->kw - 1) * s->dx + 1 - s->w - s->px };
  dnnl_memory_desc_t md[N_SIDES];

  if (!describe (k, dnnl_format_tag_any, dnnl_format_tag_any, md))
    return false;
  if (k->kind == TD_CONV_FORWARD)
    return dnnl_dilated_convolution_forward_desc_init (
               cd, dnnl_forward_training, dnnl_convolution_direct, &md[SRC], &md[WEI], bias,
               &md[DST], stride, dilate, begin, end)
           == dnnl_success;
  if (k->kind == TD_CONV_DATA_GRAD)
    return dnnl_dilated_convolution_backward_data_desc_init (cd, dnnl_convolution_direct,
                                                             &md[SRC], &md[WEI], &md[DST],
                                                             stride, dilate, begin, end)
           == dnnl_success;
  return dnnl_dilated_convolution_backward_weights_desc_init (
             cd, dnnl_convolution_direct, &md[SRC], &md[WEI], NULL, &md[DST], stride, dilate,
             begin, end)
         == dnnl_success;
}

static void
at_least (size_t *bytes, const_dnnl_primitive_desc_t pd)
{
  const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md (pd, dnnl_query_scratchpad_md, 0);
  const size_t n = md != NULL ? dnnl_memory_desc_get_size (md) : 0;

  *bytes = *bytes < n ? n : *bytes;
}

/* The way between the two layouts of an operand, in the direction that the kind goes. */
static bool
make_reorder (Plan *p, Side *side, bool inwards, const_dnnl_primitive_attr_t attr)
{
  dnnl_primitive_desc_t pd;
  dnnl_status_t status;

  if (dnnl_memory_desc_equal (&side->ours, &side->theirs))
    return true;
  status = dnnl_reorder_primitive_desc_create (&pd, inwards ? &side->ours : &side->theirs,
                                               engine, inwards ? &side->theirs : &side->ours,
                                               engine, attr);
  if (status != dnnl_success)
    return false;
  at_least (&p->scratch_bytes, pd);
  status = dnnl_primitive_create (&side->reorder, pd);
  dnnl_primitive_desc_destroy (pd);
  return status == dnnl_success;
}

/* Which operand a kind writes. */
static const int written[] = {
  [TD_CONV_FORWARD] = DST,
  [TD_CONV_DATA_GRAD] = SRC,
  [TD_CONV_WEIGHT_GRAD] = WEI,
};

static bool
plan_make (Plan *p, const Key *key, const_dnnl_primitive_attr_t attr)
{
  static const dnnl_query_t what[3][N_SIDES] = {
    [TD_CONV_FORWARD] = { dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md },
    [TD_CONV_DATA_GRAD]
    = { dnnl_query_diff_src_md, dnnl_query_weights_md, dnnl_query_diff_dst_md },
    [TD_CONV_WEIGHT_GRAD]
    = { dnnl_query_src_md, dnnl_query_diff_weights_md, dnnl_query_diff_dst_md },
  };
  const dnnl_dims_t channels = { key->sizes.o };
  dnnl_memory_desc_t ours[N_SIDES];
  dnnl_convolution_desc_t cd;
  dnnl_primitive_desc_t pd;
  bool ok;

  memset (p, 0, sizeof *p);
  p->key = *key;
  if (dnnl_memory_desc_init_by_tag (&p->bias, 1, channels, dnnl_f32, dnnl_a) != dnnl_success
      || !describe (key, dnnl_nchw, key->sizes.groups == 1 ? dnnl_oihw : dnnl_goihw, ours)
      || !describe_conv (key, key->bias ? &p->bias : NULL, &cd)
      || dnnl_primitive_desc_create (&pd, &cd, attr, engine, NULL) != dnnl_success)
    return false;
  p->algorithm = name_algorithm (pd);
  at_least (&p->scratch_bytes, pd);
  ok = dnnl_primitive_create (&p->conv, pd) == dnnl_success;
  for (int i = 0; i < N_SIDES && ok; i++)
    {
      p->side[i].ours = ours[i];
      p->side[i].theirs = *dnnl_primitive_desc_query_md (pd, what[key->kind][i], 0);
      p->side[i].bytes = dnnl_memory_desc_get_size (&p->side[i].theirs);
      p->side[i].bytes = (p->side[i].bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
      ok = make_reorder (p, &p->side[i], i != written[key->kind], attr);
    }
  dnnl_primitive_desc_destroy (pd);
  return ok;
}

/* A plan for that many images, made in the place of any but `keep`; NULL when oneDNN has none.
 */
static const Plan *
plan_for (TdConvKind kind, const TdConvSizes *s, int64_t images, bool bias, const Plan *keep)
{
  dnnl_primitive_attr_t attr;
  Plan *p;
  Key key;
  bool ok;

  memset (&key, 0, sizeof key); /* compared as bytes */
  key.kind = kind;
  key.images = images;
  key.bias = bias;
  key.sizes = *s;
  key.sizes.n = 0;
  for (int i = 0; i < n_plans; i++)
    if (memcmp (&plans[i].key, &key, sizeof key) == 0)
      return &plans[i];
  p = &plans[n_plans < N_PLANS ? n_plans++ : next_plan++ % N_PLANS];
  if (p == keep)
    p = &plans[next_plan++ % N_PLANS];
  plan_free (p);
  if (dnnl_primitive_attr_create (&attr) != dnnl_success)
    return NULL;
  dnnl_primitive_attr_set_scratchpad_mode (attr, dnnl_scratchpad_mode_user);
  ok = plan_make (p, &key, attr);
  dnnl_primitive_attr_destroy (attr);
  if (ok)
    return p;
  plan_free (p);
  return NULL;
}

/* --- running --- */

enum
{
  MAX_ARGS = 6
};

/* Arguments of one execution.  Memory objects are made for it: they carry the address. */
typedef struct
{
  dnnl_exec_arg_t arg[MAX_ARGS];
  int n;
  bool failed;
} Args;

static void
add_arg (Args *a, int what, const dnnl_memory_desc_t *md, const void *data)
{
  dnnl_memory_t memory;

  if (a->failed
      || dnnl_memory_create (&memory, md, engine, (void *)(uintptr_t)data) != dnnl_success)
    a->failed = true;
  else
    a->arg[a->n++] = (dnnl_exec_arg_t){ what, memory };
}

static bool
execute (dnnl_primitive_t primitive, dnnl_stream_t stream, Args *a, size_t scratch_bytes)
{
  const dnnl_dims_t bytes = { (int64_t)scratch_bytes };
  dnnl_memory_desc_t md;

  if (scratch_bytes > 0)
    {
      void *scratch = td__cpu_scratch (TD_SCRATCH_C, scratch_bytes);

      if (scratch == NULL
          || dnnl_memory_desc_init_by_tag (&md, 1, bytes, dnnl_u8, dnnl_a) != dnnl_success)
        a->failed = true;
      add_arg (a, DNNL_ARG_SCRATCHPAD, &md, scratch);
    }
  a->failed = a->failed
              || dnnl_primitive_execute (primitive, stream, a->n, a->arg) != dnnl_success
              || dnnl_stream_wait (stream) != dnnl_success;
  for (int i = 0; i < a->n; i++)
    dnnl_memory_destroy (a->arg[i].memory);
  return !a->failed;
}

static bool
run_reorder (const Plan *p, const Side *side, dnnl_stream_t stream, const void *from, void *to,
             bool inwards)
{
  Args a = { .n = 0 };

  add_arg (&a, DNNL_ARG_FROM, inwards ? &side->ours : &side->theirs, from);
  add_arg (&a, DNNL_ARG_TO, inwards ? &side->theirs : &side->ours, to);
  return execute (side->reorder, stream, &a, p->scratch_bytes);
}

typedef struct
{
  const TdConvSizes *s;
  TdConvKind kind;
  const Plan *plan, *last; /* for whole chunks, for the last */
  int64_t chunk, n_chunks; /* images */
  const float *data[N_SIDES];
  const void *filters; /* in oneDNN's layout */
  const float *bias;
  TdGemm end;  /* td__conv_end */
  char *parts; /* sums of the chunks, in oneDNN's layout */
  bool failed;
} Job;

/* An operand of a chunk in oneDNN's layout: itself, or a copy. */
static const void *
bring_in (const Plan *p, int which, dnnl_stream_t stream, const float *data, void *room)
{
  if (p->side[which].reorder == NULL)
    return data;
  return run_reorder (p, &p->side[which], stream, data, room, true) ? room : NULL;
}

/* What is left to do to images that are written: the bias of a data gradient, and the end. */
static void
finish_images (const Job *job, int64_t first, int64_t n)
{
  const TdConvSizes *s = job->s;
  const bool forward = job->kind == TD_CONV_FORWARD;
  const int64_t channels = forward ? s->o : s->c, size = forward ? s->pixels : s->image;
  float *to = (float *)(uintptr_t)job->data[forward ? DST : SRC] + first * channels * size;

  for (int64_t ic = 0; !forward && job->bias != NULL && ic < n * channels; ic++)
    for (int64_t i = 0; i < size; i++)
      to[ic * size + i] += job->bias[ic % channels];
  td__gemm_end_f32 (&job->end, first * channels, n * channels, 0, size, to);
}

static bool
run_chunk (const Job *job, const Plan *p, int64_t i, dnnl_stream_t stream)
{
  static const int names[3][N_SIDES] = {
    [TD_CONV_FORWARD] = { DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST },
    [TD_CONV_DATA_GRAD] = { DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST },
    [TD_CONV_WEIGHT_GRAD] = { DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST },
  };
  const TdConvSizes *s = job->s;
  const int out = written[job->kind];
  const int64_t first = i * job->chunk;
  const float *data[N_SIDES] = { [SRC] = job->data[SRC] + first * s->c * s->image,
                                 [DST] = job->data[DST] + first * s->o * s->pixels };
  void *room[N_SIDES] = { [SRC] = td__cpu_scratch (TD_SCRATCH_IMAGE, p->side[SRC].bytes),
                          [DST] = td__cpu_scratch (TD_SCRATCH_B, p->side[DST].bytes) };
  const void *theirs[N_SIDES];
  Args a = { .n = 0 };

  if (room[SRC] == NULL || room[DST] == NULL)
    return false;
  for (int k = 0; k < N_SIDES; k++)
    {
      if (k == WEI)
        theirs[k] = out == WEI ? job->parts + i * (int64_t)p->side[WEI].bytes : job->filters;
      else if (k == out)
        theirs[k] = p->side[k].reorder != NULL ? room[k] : data[k];
      else
        theirs[k] = bring_in (p, k, stream, data[k], room[k]);
      if (theirs[k] == NULL)
        return false;
      add_arg (&a, names[job->kind][k], &p->side[k].theirs, theirs[k]);
    }
  if (job->kind == TD_CONV_FORWARD && job->bias != NULL)
    add_arg (&a, DNNL_ARG_BIAS, &p->bias, job->bias);
  if (!execute (p->conv, stream, &a, p->scratch_bytes))
    return false;
  if (out == WEI)
    return true;
  if (p->side[out].reorder != NULL
      && !run_reorder (p, &p->side[out], stream, theirs[out], (void *)(uintptr_t)data[out],
                       false))
    return false;
  finish_images (job, first, p->key.images);
  return true;
}

/* Chunks [begin, end). */
static void
chunks_body (int64_t begin, int64_t end, int worker, void *context)
{
  Job *job = context;
  const int before = alone ();
  dnnl_stream_t stream;
  bool ok = dnnl_stream_create (&stream, engine, dnnl_stream_default_flags) == dnnl_success;

  for (int64_t i = begin; i < end && ok; i++)
    ok = run_chunk (job, i == job->n_chunks - 1 ? job->last : job->plan, i, stream);
  if (!ok)
    __atomic_store_n (&job->failed, true, __ATOMIC_RELAXED);
  else
    dnnl_stream_destroy (stream);
  together (before);
}

/* Images of a task, from sizes alone. */
static int64_t
chunk_of (TdConvKind kind, const TdConvSizes *s)
{
  const int64_t flops = 2 * s->og * s->k * s->groups * s->pixels;
  int64_t chunk = (CHUNK_FLOPS + flops - 1) / flops;

  if (kind == TD_CONV_WEIGHT_GRAD && chunk < (s->n + MAX_WEIGHT_CHUNKS - 1) / MAX_WEIGHT_CHUNKS)
    chunk = (s->n + MAX_WEIGHT_CHUNKS - 1) / MAX_WEIGHT_CHUNKS;
  return chunk < s->n ? chunk : s->n;
}

/* Add up the chunks in order, and bring the sum into our layout. */
static TdStatus
finish_weights (const Job *job, dnnl_stream_t stream, float *gW, bool accumulate)
{
  const Plan *p = job->plan;
  const Side *side = &p->side[WEI];
  const int64_t n = (int64_t)(side->bytes / sizeof (float)), size = job->s->o * job->s->k;
  float *sum = (float *)(void *)job->parts, *plain = gW;

  for (int64_t i = 1; i < job->n_chunks; i++)
    for (int64_t j = 0; j < n; j++)
      sum[j] += sum[i * n + j];
  if (side->reorder == NULL)
    plain = sum;
  else if (accumulate)
    plain = td__cpu_scratch (TD_SCRATCH_A, (size_t)size * sizeof *plain);
  if (plain == NULL)
    return TD_ERR_MEMORY;
  if (side->reorder != NULL && !run_reorder (p, side, stream, sum, plain, false))
    return TD_ERR_STATE;
  for (int64_t j = 0; plain != gW && j < size; j++)
    gW[j] = accumulate ? gW[j] + plain[j] : plain[j];
  return TD_OK;
}

static TdStatus
run (Job *job, const float *filters, float *out, bool accumulate)
{
  const Side *weights = &job->plan->side[WEI];
  dnnl_stream_t stream;
  TdStatus status = TD_OK;

  if (dnnl_stream_create (&stream, engine, dnnl_stream_default_flags) != dnnl_success)
    return TD_ERR_STATE;
  if (job->kind == TD_CONV_WEIGHT_GRAD)
    job->parts = td__cpu_scratch (TD_SCRATCH_PARTS,
                                  (size_t)job->n_chunks * job->plan->side[WEI].bytes);
  else
    job->filters = bring_in (job->plan, WEI, stream, filters,
                             td__cpu_scratch (TD_SCRATCH_A, weights->bytes));
  if (job->filters == NULL && job->parts == NULL)
    status = TD_ERR_MEMORY;
  if (status == TD_OK)
    td__cpu_parallel (job->n_chunks, 1, chunks_body, job);
  if (status == TD_OK && job->failed)
    status = TD_ERR_STATE;
  if (status == TD_OK && job->kind == TD_CONV_WEIGHT_GRAD)
    status = finish_weights (job, stream, out, accumulate);
  dnnl_stream_destroy (stream);
  return status;
}

TdStatus
td__conv_onednn (TdConvKind kind, const TdConv *attrs, const TdConvSizes *s, const TdTensor *in,
                 int n_in, TdTensor *out, const char **algorithm)
{
  const int before = alone ();
  const bool bias = kind == TD_CONV_FORWARD && n_in > 2;
  const float *const x = kind == TD_CONV_DATA_GRAD ? out->data : in[0].data;
  const float *const y = kind == TD_CONV_FORWARD ? out->data : in[1].data;
  const float *const W = kind == TD_CONV_DATA_GRAD ? in[0].data : in[1].data;
  Job job = { .s = s,
              .kind = kind,
              .chunk = chunk_of (kind, s),
              .data = { [SRC] = x, [DST] = y },
              .bias = n_in > 2 ? in[2].data : NULL,
              .end = td__conv_end (attrs, kind == TD_CONV_FORWARD ? s->pixels : s->image) };
  TdStatus status = TD_ERR_STATE;

  job.n_chunks = (s->n + job.chunk - 1) / job.chunk;
  job.plan = plan_for (kind, s, job.chunk, bias, NULL);
  job.last = plan_for (kind, s, s->n - (job.n_chunks - 1) * job.chunk, bias, job.plan);
  if (job.plan != NULL && job.last != NULL
      && job.plan->side[WEI].bytes == job.last->side[WEI].bytes
      && dnnl_memory_desc_equal (&job.plan->side[WEI].theirs, &job.last->side[WEI].theirs))
    {
      status = run (&job, W, out->data, attrs->accumulate);
      *algorithm = job.plan->algorithm;
    }
  together (before);
  return status;
}
