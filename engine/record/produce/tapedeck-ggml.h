/* Recording ggml: one header, for programs that have ggml.h and ggml-backend.h and are linked
 * with libtdproducer.
 *
 *     char why[256];
 *     TdGgml *g = td_ggml_new (&(TdProducerOptions){ .size = sizeof (TdProducerOptions),
 *                                                    .path = "run.tdtape",
 *                                                    .level = TD_TAPE_LEVEL_STATS },
 *                              why, sizeof why);
 *     ggml_backend_sched_set_eval_callback (sched, td_ggml_eval, g);
 *     td_ggml_forward (g, gf);
 *     ggml_backend_sched_graph_compute (sched, gb);
 *     td_ggml_end (g);               an iteration is over: a step, a token
 *     td_ggml_free (g);
 *
 * What is not in gf is backward; without that call, what comes behind the tensor that
 * ggml_set_loss names.  A node of a graph is an operation; a tensor that no node makes is a
 * leaf.  Names are paths: "blk.3.attn_q.weight" is the parameter blk/3/attn_q/weight, and the
 * node that reads it is of the layer blk/3/attn_q.  The steps of optimizers
 * (GGML_OP_OPT_STEP_...) are updates.  At level stats a node's elements are read after it has
 * run, which waits for the device; at level values they are recorded, arrays up to 16 MiB, and
 * so are weights and inputs as an iteration first reads them, and moments as it leaves them:
 * .budget_bytes of the options bounds the tape.  Quantised tensors have their shape, bytes and,
 * as an attribute, their type. Nothing of the graph is changed, and a tape that cannot be
 * written does not stop it.
 *
 * One thread at a time: that which computes the graph.  C11 or C++17, and POSIX for its clock.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <ggml-backend.h>
#include <ggml.h>
#include <td-producer.h>

/** What is known of a tensor. */
typedef struct
{
  const struct ggml_tensor *tensor;
  const void *data;
  uint64_t variable, storage;
  uint64_t version;   /* how often it was written to */
  uint64_t iteration; /* that used its variable last, from 1 on; a leaf's counts in all */
  uint64_t measured;  /* the last iteration in which a leaf was */
  bool is_leaf, is_forward;
} TdGgmlTensor;

/** A recording of ggml.  Only for the functions below. */
typedef struct
{
  TdProducer *producer;
  uint32_t level;
  bool is_open, knows_forward;
  bool is_behind_loss; /* of this iteration */
  uint64_t iteration, n_ids, n_storages, start_ns;
  TdGgmlTensor *tensors; /* by the hash of their addresses; `room` is a power of two */
  size_t n, room;
  const void *buffers[64]; /* that were met */
  size_t n_buffers;
  char *scratch, *gathered;
  size_t scratch_room, gathered_room;
  char error[512]; /* the first */
} TdGgml;

/** Create a tape.  `producer` and `version` of the options may be NULL.
 * Owner: the caller; td_ggml_free.  Errors: NULL, with one line in `error`. */
static inline TdGgml *
td_ggml_new (const TdProducerOptions *options, char *error, size_t n)
{
  TdProducerOptions own = *options;
  TdGgml *g = (TdGgml *)calloc (1, sizeof *g);

  if (g == NULL)
    {
      snprintf (error, n, "no memory");
      return NULL;
    }
  own.producer = own.producer != NULL ? own.producer : "ggml";
  own.version = own.version != NULL ? own.version : "";
  g->level = own.level;
  g->producer = td_producer_new (&own, error, n);
  if (g->producer != NULL)
    return g;
  free (g);
  return NULL;
}

/** The first thing that went wrong with the recording, in one line; "". */
static inline const char *
td_ggml_error (const TdGgml *g)
{
  return g->error;
}

static inline void
td__ggml_check (TdGgml *g, bool is_good)
{
  if (!is_good && g->error[0] == '\0')
    snprintf (g->error, sizeof g->error, "%s", td_producer_error (g->producer));
}

static inline uint64_t
td__ggml_now (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ------------------------------------------------------------------------------ tensors */

static inline size_t
td__ggml_slot (const TdGgml *g, const struct ggml_tensor *t)
{
  size_t i = (size_t)(((uintptr_t)t >> 4) * 0x9e3779b97f4a7c15u) & (g->room - 1);

  while (g->tensors[i].tensor != NULL && g->tensors[i].tensor != t)
    i = (i + 1) & (g->room - 1);
  return i;
}

/* The entry of a tensor, made when it is new.  NULL: no memory. */
static inline TdGgmlTensor *
td__ggml_find (TdGgml *g, const struct ggml_tensor *t)
{
  size_t i;

  if (g->n * 2 >= g->room)
    {
      TdGgml bigger = *g;

      bigger.room = g->room > 0 ? g->room * 2 : 1024;
      bigger.tensors = (TdGgmlTensor *)calloc (bigger.room, sizeof *bigger.tensors);
      if (bigger.tensors == NULL)
        return NULL;
      for (i = 0; i < g->room; i++)
        if (g->tensors[i].tensor != NULL)
          bigger.tensors[td__ggml_slot (&bigger, g->tensors[i].tensor)] = g->tensors[i];
      free (g->tensors);
      g->tensors = bigger.tensors;
      g->room = bigger.room;
    }
  i = td__ggml_slot (g, t);
  g->n += g->tensors[i].tensor == NULL;
  g->tensors[i].tensor = t;
  return &g->tensors[i];
}

/* "blk.3.attn_q.weight" as "blk/3/attn_q/weight"; without its last piece where that is asked
 * for. */
static inline const char *
td__ggml_path (const struct ggml_tensor *t, bool is_layer, char out[GGML_MAX_NAME + 1])
{
  char *last;

  snprintf (out, GGML_MAX_NAME + 1, "%.*s", GGML_MAX_NAME, t->name);
  for (char *at = out; *at != '\0'; at++)
    if (*at == '.')
      *at = '/';
  last = strrchr (out, '/');
  if (is_layer)
    *(last != NULL ? last : out) = '\0';
  return out;
}

static inline bool
td__ggml_is_parameter (const struct ggml_tensor *t)
{
  const char *dot = strrchr (t->name, '.');

  return (t->flags & GGML_TENSOR_FLAG_PARAM) != 0
         || (t->op == GGML_OP_NONE && dot != NULL && strchr (t->name, ' ') == NULL
             && (strcmp (dot, ".weight") == 0 || strcmp (dot, ".bias") == 0));
}

static inline uint32_t
td__ggml_dtype (enum ggml_type type)
{
  static const struct
  {
    enum ggml_type type;
    uint32_t dtype;
  } types[] = { { GGML_TYPE_F32, TD_TAPE_F32 },   { GGML_TYPE_F16, TD_TAPE_F16 },
                { GGML_TYPE_BF16, TD_TAPE_BF16 }, { GGML_TYPE_F64, TD_TAPE_F64 },
                { GGML_TYPE_I32, TD_TAPE_I32 },   { GGML_TYPE_I64, TD_TAPE_I64 } };

  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (types[i].type == type)
      return types[i].dtype;
  return TD_TAPE_N_DTYPES;
}

static inline const struct ggml_tensor *
td__ggml_root (const struct ggml_tensor *t)
{
  while (t->view_src != NULL)
    t = t->view_src;
  return t;
}

/* How large each buffer is, once, as a number of a curve. */
static inline void
td__ggml_note_buffer (TdGgml *g, const struct ggml_tensor *t)
{
  char key[160];
  size_t i = 0;

  while (i < g->n_buffers && g->buffers[i] != (const void *)t->buffer)
    i++;
  if (t->buffer == NULL || i < g->n_buffers || i == sizeof g->buffers / sizeof *g->buffers)
    return;
  g->buffers[g->n_buffers++] = (const void *)t->buffer;
  snprintf (key, sizeof key, "bytes of buffer %zu (%.100s)", i + 1,
            ggml_backend_buffer_name (t->buffer));
  td__ggml_check (
      g, td_producer_report (g->producer, key, (double)ggml_backend_buffer_get_size (t->buffer))
             == TD_PRODUCER_OK);
}

/* The storage that a tensor lies on: that of what it is a view of. */
static inline uint64_t
td__ggml_storage (TdGgml *g, const struct ggml_tensor *t, uint32_t category)
{
  const struct ggml_tensor *root = td__ggml_root (t);
  TdGgmlTensor *known = td__ggml_find (g, root);

  if (known == NULL)
    return 0;
  if (known->storage != 0 && known->data == root->data)
    return known->storage;
  if (known->storage != 0)
    td_producer_release (g->producer, known->storage);
  td__ggml_note_buffer (g, root);
  known->storage = ++g->n_storages;
  known->data = root->data;
  known->variable = 0;
  td__ggml_check (g, td_producer_alloc (g->producer, known->storage, (uintptr_t)root->data,
                                        ggml_nbytes (root), category, 0)
                         == TD_PRODUCER_OK);
  return known->storage;
}

/* A variable for a tensor as it is now. */
static inline uint64_t
td__ggml_make (TdGgml *g, const struct ggml_tensor *t, uint32_t category, uint32_t layer)
{
  const struct ggml_tensor *root = td__ggml_root (t);
  TdProducerVariable v;
  const size_t size = ggml_type_size (t->type);
  int64_t dims[GGML_MAX_DIMS], strides[GGML_MAX_DIMS];
  char path[GGML_MAX_NAME + 1];
  TdGgmlTensor *known;
  const char *last;
  const int n = ggml_n_dims (t);

  memset (&v, 0, sizeof v);
  v.size = sizeof v;
  v.dtype = td__ggml_dtype (t->type);
  v.storage = td__ggml_storage (g, t, category);
  known = td__ggml_find (g, t);
  if (v.storage == 0 || known == NULL)
    return 0;
  for (int i = 0; i < n; i++) /* the innermost is first there, and last here */
    {
      dims[i] = t->ne[n - 1 - i];
      strides[i] = (int64_t)(t->nb[n - 1 - i] / size);
    }
  v.id = ++g->n_ids;
  v.dims = dims;
  v.ndim = (uint32_t)n;
  if (v.dtype != TD_TAPE_N_DTYPES)
    {
      v.strides = strides;
      v.offset = (uint64_t)((const char *)t->data - (const char *)root->data) / size;
    }
  v.version = known->version;
  v.category = category;
  v.layer = layer;
  v.flags = td__ggml_is_parameter (t) ? TD_TAPE_VAR_PARAMETER | TD_TAPE_VAR_REQUIRES_GRAD : 0;
  v.name = td_producer_text (g->producer, t->name);
  if (v.flags != 0)
    {
      v.parameter = td_producer_text (g->producer, td__ggml_path (t, false, path));
      last = strrchr (path, '/'); /* its layer is said beside its name */
      v.name = last != NULL ? td_producer_text (g->producer, last + 1) : v.name;
    }
  known->data = t->view_src == NULL ? t->data : known->data;
  known->iteration = g->iteration;
  known->is_leaf = t->op == GGML_OP_NONE;
  known->variable = td_producer_variable (g->producer, &v) == TD_PRODUCER_OK ? v.id : 0;
  td__ggml_check (g, known->variable != 0);
  return known->variable;
}

/* ----------------------------------------------------------------------------- elements */

/* Room for so many bytes, which is kept.  NULL: no memory. */
static inline char *
td__ggml_room (char **room, size_t *size, size_t bytes)
{
  if (bytes <= *size)
    return *room;
  free (*room);
  *room = (char *)malloc (bytes);
  *size = *room != NULL ? bytes : 0;
  return *room;
}

/* The elements of a view that skips some, or has its axes in another order, row by row. */
static inline const char *
td__ggml_gather (TdGgml *g, const struct ggml_tensor *t, const char *from)
{
  const size_t size = ggml_type_size (t->type);
  char *to = td__ggml_room (&g->gathered, &g->gathered_room, (size_t)ggml_nelements (t) * size);
  char *at = to;

  if (to == NULL)
    return NULL;
  for (int64_t l = 0; l < t->ne[3]; l++)
    for (int64_t k = 0; k < t->ne[2]; k++)
      for (int64_t j = 0; j < t->ne[1]; j++)
        for (int64_t i = 0; i < t->ne[0]; i++, at += size)
          memcpy (at,
                  from + (size_t)i * t->nb[0] + (size_t)j * t->nb[1] + (size_t)k * t->nb[2]
                      + (size_t)l * t->nb[3],
                  size);
  return to;
}

/* A tensor's elements, row by row, for the next call only.  NULL: it is quantised, or not
 * computed, or there is no memory. */
static inline const char *
td__ggml_elements (TdGgml *g, const struct ggml_tensor *t)
{
  const size_t bytes = ggml_nbytes (t);
  char *span;

  if (td__ggml_dtype (t->type) == TD_TAPE_N_DTYPES || t->data == NULL)
    return NULL;
  span = td__ggml_room (&g->scratch, &g->scratch_room, bytes);
  if (span == NULL)
    return NULL;
  if (t->buffer != NULL || td__ggml_root (t)->buffer != NULL)
    ggml_backend_tensor_get (t, span, 0, bytes);
  else
    memcpy (span, t->data, bytes);
  return ggml_is_contiguous (t) ? span : td__ggml_gather (g, t, span);
}

/* Its statistics and, at level values, its elements, as they are now. */
static inline void
td__ggml_measure (TdGgml *g, const struct ggml_tensor *t, uint64_t variable)
{
  const bool is_loss = (t->flags & GGML_TENSOR_FLAG_LOSS) != 0 && ggml_nelements (t) == 1
                       && t->type == GGML_TYPE_F32;
  const char *elements
      = g->level >= TD_TAPE_LEVEL_STATS || is_loss ? td__ggml_elements (g, t) : NULL;
  float loss;

  if (elements == NULL)
    return;
  if (g->level >= TD_TAPE_LEVEL_STATS)
    td__ggml_check (
        g, td_producer_measure (g->producer, variable, elements, (uint64_t)ggml_nelements (t))
               == TD_PRODUCER_OK);
  if (!is_loss)
    return;
  memcpy (&loss, elements, sizeof loss);
  td__ggml_check (g, td_producer_report (g->producer, "loss", (double)loss) == TD_PRODUCER_OK);
}

/* What an iteration begins with, weights and inputs, when the first node has read it; moments,
 * which their update writes, as that has left them. */
static inline void
td__ggml_measure_leaf (TdGgml *g, const struct ggml_tensor *t)
{
  TdGgmlTensor *known = td__ggml_find (g, t);

  if (g->level < TD_TAPE_LEVEL_VALUES || known == NULL || known->variable == 0
      || t->op != GGML_OP_NONE || known->measured == g->iteration)
    return;
  known->measured = g->iteration;
  td__ggml_measure (g, t, known->variable);
}

/* The variable of what a node reads: what was made in this iteration, or a leaf, of `category`
 * unless it is a parameter or an input. */
static inline uint64_t
td__ggml_read (TdGgml *g, const struct ggml_tensor *t, uint32_t category)
{
  TdGgmlTensor *known = td__ggml_find (g, t);
  const bool is_parameter = td__ggml_is_parameter (t);
  char path[GGML_MAX_NAME + 1];

  if (known == NULL)
    return 0;
  if (known->variable != 0 && (known->is_leaf || known->iteration == g->iteration)
      && (t->view_src != NULL || known->data == t->data))
    {
      known->iteration = g->iteration;
      return known->variable;
    }
  if (is_parameter)
    category = TD_TAPE_CATEGORY_PARAMETER;
  else if ((t->flags & GGML_TENSOR_FLAG_INPUT) != 0)
    category = TD_TAPE_CATEGORY_INPUT;
  return td__ggml_make (
      g, t, category,
      is_parameter ? td_producer_layer (g->producer, td__ggml_path (t, true, path), "") : 0);
}

/* --------------------------------------------------------------------------- operations */

static inline bool
td__ggml_is_update (const struct ggml_tensor *t)
{
  return strncmp (ggml_op_name (t->op), "OPT_STEP", 8) == 0;
}

static inline uint32_t
td__ggml_phase (TdGgml *g, const struct ggml_tensor *t)
{
  const TdGgmlTensor *known = td__ggml_find (g, t);

  if (td__ggml_is_update (t))
    return TD_TAPE_PHASE_UPDATE;
  if (g->knows_forward)
    return known != NULL && known->is_forward ? TD_TAPE_PHASE_FORWARD : TD_TAPE_PHASE_BACKWARD;
  return g->is_behind_loss && t->type != GGML_TYPE_I32 && t->type != GGML_TYPE_I64
             ? TD_TAPE_PHASE_BACKWARD
             : TD_TAPE_PHASE_FORWARD; /* integers count what was right, and are no gradients */
}

/* The layer of a node: that of the parameter it reads, else what stands before the last dot of
 * its own name. */
static inline uint32_t
td__ggml_layer (TdGgml *g, const struct ggml_tensor *t)
{
  const struct ggml_tensor *of = t;
  char path[GGML_MAX_NAME + 1];

  for (int i = GGML_MAX_SRC; i-- > 0;)
    if (t->src[i] != NULL && td__ggml_is_parameter (t->src[i]))
      of = t->src[i];
  td__ggml_path (of, true, path);
  return path[0] != '\0' ? td_producer_layer (g->producer, path, "") : 0;
}

static inline void
td__ggml_record (TdGgml *g, const struct ggml_tensor *t)
{
  uint64_t inputs[GGML_MAX_SRC], output;
  const uint32_t phase = td__ggml_phase (g, t), layer = td__ggml_layer (g, t);
  const bool is_update = phase == TD_TAPE_PHASE_UPDATE && t->src[0] != NULL;
  /* what an optimizer reads besides are its moments */
  const uint32_t others
      = is_update ? (uint32_t)TD_TAPE_CATEGORY_OPTIMIZER : (uint32_t)TD_TAPE_CATEGORY_BUFFER;
  TdProducerAttribute type = { "type", ggml_type_name (t->type) };
  TdProducerOperation op;
  TdGgmlTensor *root;

  memset (&op, 0, sizeof op);
  op.size = sizeof op;
  for (uint32_t i = 0; i < GGML_MAX_SRC; i++)
    if (t->src[i] != NULL)
      {
        inputs[op.n_inputs] = td__ggml_read (g, t->src[i], others);
        op.n_inputs += inputs[op.n_inputs] != 0;
      }
  if (is_update) /* the parameter itself is written to */
    {
      output = td__ggml_read (g, t->src[0], others);
      td__ggml_check (
          g, td_producer_gradient (g->producer, output,
                                   t->src[1] != NULL ? td__ggml_read (g, t->src[1], others) : 0)
                 == TD_PRODUCER_OK);
      root = td__ggml_find (g, t->src[0]);
      if (root != NULL && root->iteration == g->iteration) /* it was met in this one */
        {
          root->version++;
          output = td__ggml_make (g, t->src[0], TD_TAPE_CATEGORY_PARAMETER, layer);
        }
    }
  else
    {
      root = td__ggml_find (g, td__ggml_root (t));
      if (root != NULL)
        root->version += t->view_src != NULL && t->op != GGML_OP_VIEW
                         && t->op != GGML_OP_RESHAPE && t->op != GGML_OP_PERMUTE
                         && t->op != GGML_OP_TRANSPOSE;
      output = td__ggml_make (g, t,
                              phase == TD_TAPE_PHASE_FORWARD ? TD_TAPE_CATEGORY_ACTIVATION
                                                             : TD_TAPE_CATEGORY_GRADIENT,
                              layer);
    }
  if (output == 0)
    return;
  op.kind = td_producer_kind (g->producer, ggml_op_desc (t), "ggml", NULL);
  op.phase = phase;
  op.layer = layer;
  op.inputs = inputs;
  op.outputs = &output;
  op.n_outputs = 1;
  op.attributes = &type;
  op.n_attributes = td__ggml_dtype (t->type) == TD_TAPE_N_DTYPES;
  op.end_ns = td__ggml_now ();
  op.start_ns = g->start_ns != 0 ? g->start_ns : op.end_ns;
  td__ggml_check (g, td_producer_operation (g->producer, &op) == TD_PRODUCER_OK);
  g->start_ns = 0;
  g->is_behind_loss |= (t->flags & GGML_TENSOR_FLAG_LOSS) != 0;
  td__ggml_measure (g, is_update ? t->src[0] : t, output);
  for (int i = is_update; i < GGML_MAX_SRC; i++)
    if (t->src[i] != NULL)
      td__ggml_measure_leaf (g, t->src[i]);
}

/* ---------------------------------------------------------------------------- from outside */

/** Begin an iteration; what is computed without one begins it itself. */
static inline void
td_ggml_begin (TdGgml *g)
{
  if (g->is_open)
    return;
  g->iteration++;
  g->is_open = true;
  g->is_behind_loss = false;
  td__ggml_check (g, td_producer_begin (g->producer, 0, 0) == TD_PRODUCER_OK);
}

/** Say which nodes are forward: those of this graph.  Others are backward from then on.  Called
 * before the first iteration it also says which leaves there are. */
static inline void
td_ggml_forward (TdGgml *g, struct ggml_cgraph *forward)
{
  for (int i = 0; i < ggml_graph_n_nodes (forward); i++)
    {
      TdGgmlTensor *known = td__ggml_find (g, ggml_graph_node (forward, i));

      if (known != NULL)
        known->is_forward = true;
      for (int k = 0; k < GGML_MAX_SRC && !g->is_open; k++)
        {
          const struct ggml_tensor *leaf = ggml_graph_node (forward, i)->src[k];

          if (leaf != NULL && leaf->op == GGML_OP_NONE)
            td__ggml_read (g, leaf, TD_TAPE_CATEGORY_BUFFER);
        }
    }
  g->knows_forward = true;
}

/** The call-back of ggml_backend_sched_set_eval_callback; `user` is the TdGgml. */
static inline bool
td_ggml_eval (struct ggml_tensor *t, bool ask, void *user)
{
  TdGgml *g = (TdGgml *)user;

  td_ggml_begin (g);
  if (ask)
    g->start_ns = td__ggml_now ();
  else if (t->op != GGML_OP_NONE)
    td__ggml_record (g, t);
  return true;
}

/** Record a graph that has been computed without a scheduler: all nodes as they are now, and
 * without their times. */
static inline void
td_ggml_graph (TdGgml *g, struct ggml_cgraph *graph)
{
  for (int i = 0; i < ggml_graph_n_nodes (graph); i++)
    td_ggml_eval (ggml_graph_node (graph, i), false, g);
}

/** End the iteration.  What was computed in it is given back; leaves stay. */
static inline void
td_ggml_end (TdGgml *g)
{
  if (!g->is_open)
    return;
  for (size_t i = 0; i < g->room; i++)
    {
      TdGgmlTensor *known = &g->tensors[i];

      if (known->tensor == NULL || known->is_leaf)
        continue;
      if (known->storage != 0)
        td_producer_release (g->producer, known->storage);
      known->storage = known->variable = 0;
    }
  td__ggml_check (g, td_producer_end_iteration (g->producer, 0) == TD_PRODUCER_OK);
  g->is_open = false;
}

/** Say that tensors of a context are gone: ggml_free, another graph.  Their addresses may be
 * used again. */
static inline void
td_ggml_forget (TdGgml *g)
{
  td_ggml_end (g);
  for (size_t i = 0; i < g->room; i++)
    if (g->tensors[i].tensor != NULL && g->tensors[i].storage != 0)
      td_producer_release (g->producer, g->tensors[i].storage);
  if (g->room > 0)
    memset (g->tensors, 0, g->room * sizeof *g->tensors);
  g->n = 0;
  g->knows_forward = false;
}

/** Close the tape.  NULL is allowed. */
static inline void
td_ggml_free (TdGgml *g)
{
  if (g == NULL)
    return;
  td_ggml_end (g);
  td_producer_end (g->producer, 0);
  td_producer_free (g->producer);
  free (g->tensors);
  free (g->scratch);
  free (g->gathered);
  free (g);
}
