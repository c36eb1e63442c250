/* Arrays of a reference as an iteration of a tape: a forward event for each layer, in the order
 * of the file, and a backward one where there are gradients.
 * SPDX-License-Identifier: MIT */
#include "tape-arrays.h"
#include "npy-header.h"
#include "tape-import.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct
{
  TapeArrays *t;
  TdTapeWriter *w;
  TdTapeEvent *events;
  uint64_t *times; /* all 0 */
  TdTapeVar *vars;
  int64_t *dims;
  uint32_t *ins, *outs;
  TdTapeGrad *grads;
  TdTapeStats *stats;
  TdTapeTensorRef *tensors;
  uint32_t n_events, n_vars, n_dims, n_ins, n_outs, n_grads, n_stats, n_tensors;
  uint32_t opdef;
  uint32_t *var_of; /* by array; TAPE_ARRAYS_NONE */
  bool cancelled;
} Write;

/* ---------------------------------------------------------------------------- elements */

static const struct
{
  const char *descr; /* without the byte order */
  uint8_t dtype;
} dtypes[] = { { "f4", TD_TAPE_F32 }, { "f8", TD_TAPE_F64 }, { "f2", TD_TAPE_F16 },
               { "i4", TD_TAPE_I32 }, { "i8", TD_TAPE_I64 }, { "u1", TD_TAPE_U8 },
               { "b1", TD_TAPE_BOOL } };

/* An array in memory; `elements` are behind `offset` of its file. */
typedef struct
{
  TdNpyHeader header;
  char *file;
  size_t offset;
  uint64_t n;
  uint8_t dtype;
} Loaded;

static const char *
find_dtype (Loaded *a)
{
  const char *descr = a->header.descr;

  if (descr[0] == '>')
    return "its elements are big-endian";
  for (size_t i = 0; descr[0] != '\0' && i < sizeof dtypes / sizeof *dtypes; i++)
    if (strcmp (descr + 1, dtypes[i].descr) == 0)
      {
        a->dtype = dtypes[i].dtype;
        return NULL;
      }
  return "a tape has no such elements";
}

/* Elements that lie column by column, row by row. */
static bool
turn (Loaded *a, size_t size)
{
  const TdNpyHeader *h = &a->header;
  uint64_t step[TD__NPY_MAX_DIMS], at[TD__NPY_MAX_DIMS] = { 0 }, from = 0, stride = size;
  char *rows = malloc (a->n * size + 1);

  if (rows == NULL)
    return false;
  for (int d = 0; d < h->ndim; stride *= (uint64_t)h->dim[d++])
    step[d] = stride;
  for (uint64_t i = 0; i < a->n; i++)
    {
      memcpy (rows + i * size, a->file + a->offset + from, size);
      for (int d = h->ndim - 1; d >= 0; d--)
        {
          from += step[d];
          if (++at[d] < (uint64_t)h->dim[d])
            break;
          from -= step[d] * at[d];
          at[d] = 0;
        }
    }
  free (a->file);
  a->file = rows;
  a->offset = 0;
  return true;
}

/* NULL, or what is wrong; loaded->file is the caller's. */
static const char *
load (const TapeArrays *t, const TapeArray *array, Loaded *a)
{
  const char *why;
  size_t size;

  *a = (Loaded){ .file = td__zip_read (t->zip, array->member, &why), .n = 1 };
  if (a->file == NULL
      || !td__npy_header_read (a->file, array->member->bytes, &a->header, &a->offset, &why))
    return why;
  why = find_dtype (a);
  if (why != NULL)
    return why;
  size = td_tape_dtype_bytes (a->dtype);
  for (int d = 0; d < a->header.ndim; d++)
    if (__builtin_mul_overflow (a->n, (uint64_t)a->header.dim[d], &a->n))
      return "its sizes are too large";
  if (a->n > (array->member->bytes - a->offset) / size
      || a->n * size != array->member->bytes - a->offset)
    return "it has not the elements that its shape promises";
  if (a->header.fortran && a->header.ndim > 1 && !turn (a, size))
    return "no memory for it";
  memmove (a->file, a->file + a->offset, a->n * size); /* a header may have any length */
  a->offset = 0;
  return NULL;
}

/* --------------------------------------------------------------------------- variables */

static const struct
{
  uint8_t category, flags;
} of_kind[] = {
  [TAPE_ARRAY_OUT] = { TD_TAPE_CATEGORY_ACTIVATION, 0 },
  [TAPE_ARRAY_OUT_GRADIENT] = { TD_TAPE_CATEGORY_GRADIENT, 0 },
  [TAPE_ARRAY_PARAMETER] = { TD_TAPE_CATEGORY_PARAMETER, TD_TAPE_VAR_PARAMETER },
  [TAPE_ARRAY_GRADIENT] = { TD_TAPE_CATEGORY_GRADIENT, 0 },
};

static uint32_t
key_text (const Write *b, const TapeArray *a)
{
  const char *name = a->member->name;

  return td_tape_writer_string_n (b->w, name, strlen (name) - strlen (".npy"));
}

/* The variable of an array, with its numbers as of after event `event`. */
static uint32_t
add_var (Write *b, const TapeArray *a, const Loaded *from, int32_t producer, uint32_t event)
{
  const uint32_t var = b->n_vars++;
  const uint64_t bytes = from->n * td_tape_dtype_bytes (from->dtype);
  const char *elements = from->file + from->offset;
  TdTapeTensorRecord record = { .variable = var + 1,
                                .bytes = bytes,
                                .event = event,
                                .dtype = from->dtype,
                                .ndim = (uint8_t)from->header.ndim };

  memcpy (record.dims, from->header.dim, sizeof record.dims);
  b->vars[var] = (TdTapeVar){ .key = td_tape_hash_bytes (a->kind + 2, a->member->name,
                                                         strlen (a->member->name)),
                              .bytes = bytes,
                              .producer = producer,
                              .name = key_text (b, a),
                              .path = td_tape_writer_path (b->w, a->path, ""),
                              .first_dim = b->n_dims,
                              .id = var + 1,
                              .dtype = from->dtype,
                              .ndim = (uint8_t)from->header.ndim,
                              .category = of_kind[a->kind].category,
                              .flags = of_kind[a->kind].flags };
  memcpy (b->dims + b->n_dims, from->header.dim, (size_t)from->header.ndim * sizeof *b->dims);
  b->n_dims += (uint32_t)from->header.ndim;
  td_tape_measure (elements, from->dtype, from->n, var, &b->stats[b->n_stats]);
  b->stats[b->n_stats].var = var;
  b->stats[b->n_stats++].event = event;
  if (td_tape_writer_tensor (b->w, &record, elements, &b->tensors[b->n_tensors]))
    b->tensors[b->n_tensors++].var = var;
  return var;
}

/* TAPE_ARRAYS_NONE: it is left out. */
static uint32_t
take (Write *b, uint32_t array, int32_t producer, uint32_t event)
{
  TapeArray *a = &b->t->arrays[array];
  uint32_t var = TAPE_ARRAYS_NONE;
  const char *why;
  Loaded from;

  if (a->kind == TAPE_ARRAY_LEFT_OUT)
    return var;
  why = load (b->t, a, &from);
  if (why != NULL)
    td__tape_arrays_leave_out (b->t, a, why);
  else
    var = add_var (b, a, &from, producer, event);
  free (from.file);
  b->var_of[array] = var;
  return var;
}

/* ------------------------------------------------------------------------------ events */

static TdTapeEvent *
add_event (Write *b, const TapeArrayLayer *layer, uint8_t phase, int32_t twin)
{
  TdTapeEvent *e = &b->events[b->n_events++];

  *e = (TdTapeEvent){ .opdef = b->opdef,
                      .path = td_tape_writer_path (b->w, layer->path, ""),
                      .twin = twin,
                      .span = TD_TAPE_NONE,
                      .first_in = b->n_ins,
                      .first_out = b->n_outs,
                      .phase = phase };
  return e;
}

static void
announce (Write *b, const TapeArray *a, const TdTapeVar *v)
{
  TdTapeParameter p = { .key = v->key, .dtype = v->dtype, .ndim = v->ndim };
  char path[4096];

  snprintf (path, sizeof path, "%s/%s", a->path, a->name);
  p.path = td_tape_writer_string (b->w, path);
  memcpy (p.dims, b->dims + v->first_dim, v->ndim * sizeof *p.dims);
  td_tape_writer_parameter (b->w, &p);
}

static void
put_forward (Write *b, TapeArrayLayer *layer)
{
  const uint32_t event = b->n_events;
  TdTapeEvent *e = add_event (b, layer, TD_TAPE_PHASE_FORWARD, -1);
  uint32_t var;

  layer->forward = event;
  for (uint32_t i = layer->first; i != TAPE_ARRAYS_NONE; i = b->t->arrays[i].next)
    if (b->t->arrays[i].kind == TAPE_ARRAY_PARAMETER
        && (var = take (b, i, -1, event)) != TAPE_ARRAYS_NONE)
      {
        announce (b, &b->t->arrays[i], &b->vars[var]);
        b->ins[b->n_ins++] = var;
        e->n_in++;
      }
  if (layer->out != TAPE_ARRAYS_NONE
      && (var = take (b, layer->out, (int32_t)event, event)) != TAPE_ARRAYS_NONE)
    {
      b->outs[b->n_outs++] = var;
      e->n_out++;
    }
}

/* The parameter of a gradient; where only the gradient is there, its sizes are the
 * parameter's. */
static uint32_t
parameter_of (const Write *b, const TapeArrayLayer *layer, uint32_t gradient)
{
  const TapeArray *of = &b->t->arrays[gradient];

  for (uint32_t i = layer->first; i != TAPE_ARRAYS_NONE; i = b->t->arrays[i].next)
    if (b->t->arrays[i].kind == TAPE_ARRAY_PARAMETER
        && strcmp (b->t->arrays[i].name, of->name) == 0)
      return b->var_of[i];
  return TAPE_ARRAYS_NONE;
}

static void
put_gradient (Write *b, const TapeArrayLayer *layer, uint32_t array, uint32_t var)
{
  const TapeArray *a = &b->t->arrays[array];
  const uint32_t parameter = parameter_of (b, layer, array);
  char path[4096];

  snprintf (path, sizeof path, "%s/%s", a->path, a->name);
  if (parameter == TAPE_ARRAYS_NONE)
    announce (b, a, &b->vars[var]);
  b->grads[b->n_grads++]
      = (TdTapeGrad){ .event = TD_TAPE_NONE,
                      .parameter = parameter != TAPE_ARRAYS_NONE ? parameter : var,
                      .gradient = var,
                      .path = td_tape_writer_string (b->w, path) };
}

static void
put_backward (Write *b, const TapeArrayLayer *layer)
{
  const uint32_t event = b->n_events;
  TdTapeEvent *e;
  uint32_t var;

  if (layer->out_gradient == TAPE_ARRAYS_NONE && layer->n_gradients == 0)
    return;
  e = add_event (b, layer, TD_TAPE_PHASE_BACKWARD, (int32_t)layer->forward);
  if (layer->out_gradient != TAPE_ARRAYS_NONE
      && (var = take (b, layer->out_gradient, -1, event)) != TAPE_ARRAYS_NONE)
    {
      b->ins[b->n_ins++] = var;
      e->n_in++;
    }
  for (uint32_t i = layer->first; i != TAPE_ARRAYS_NONE; i = b->t->arrays[i].next)
    if (b->t->arrays[i].kind == TAPE_ARRAY_GRADIENT
        && (var = take (b, i, (int32_t)event, event)) != TAPE_ARRAYS_NONE)
      {
        b->outs[b->n_outs++] = var;
        e->n_out++;
        put_gradient (b, layer, i, var);
      }
}

/* ------------------------------------------------------------------------------- whole */

static bool
take_room (Write *b)
{
  const uint32_t n = b->t->n_arrays + 1;

  b->events = malloc (2 * n * sizeof *b->events);
  b->times = calloc (2 * n, sizeof *b->times);
  b->vars = malloc (n * sizeof *b->vars);
  b->dims = malloc (n * TD__NPY_MAX_DIMS * sizeof *b->dims);
  b->ins = malloc (n * sizeof *b->ins);
  b->outs = malloc (n * sizeof *b->outs);
  b->grads = malloc (n * sizeof *b->grads);
  b->stats = malloc (n * sizeof *b->stats);
  b->tensors = calloc (n, sizeof *b->tensors);
  b->var_of = malloc (n * sizeof *b->var_of);
  return b->events && b->times && b->vars && b->dims && b->ins && b->outs && b->grads
         && b->stats && b->tensors && b->var_of;
}

static void
write_clear (Write *b)
{
  void *const all[] = { b->events, b->times, b->vars,  b->dims,    b->ins,
                        b->outs,   b->grads, b->stats, b->tensors, b->var_of };

  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    free (all[i]);
}

static void
put_notice (Write *b)
{
  const TapeArrays *t = b->t;
  char text[320];

  if (t->n_left_out == 0)
    return;
  snprintf (text, sizeof text, "%u of %u arrays %s left out: %s%s", t->n_left_out, t->n_arrays,
            t->n_left_out == 1 ? "is" : "are", t->left_out, t->n_left_out > 1 ? ", ..." : "");
  td_tape_writer_notice (b->w, &(TdTapeNotice){ .kind = TD_TAPE_NOTICE_RECORDING,
                                                .event = TD_TAPE_NONE,
                                                .text = td_tape_writer_string (b->w, text) });
}

static void
put_iteration (Write *b)
{
  TdTapeIteration it = { .size = sizeof it,
                         .flags = TD_TAPE_ITERATION_STATS | TD_TAPE_ITERATION_VALUES,
                         .label = TD_TAPE_LABEL_NUMBER,
                         .n_events = b->n_events,
                         .n_ins = b->n_ins,
                         .n_outs = b->n_outs,
                         .n_vars = b->n_vars,
                         .n_dims = b->n_dims,
                         .n_grads = b->n_grads,
                         .n_stats = b->n_stats,
                         .n_tensors = b->n_tensors,
                         .events = b->events,
                         .event_start_ns = b->times,
                         .event_duration_ns = b->times,
                         .ins = b->ins,
                         .outs = b->outs,
                         .vars = b->vars,
                         .dims = b->dims,
                         .grads = b->grads,
                         .stats = b->stats,
                         .tensors = b->tensors };

  td_tape_writer_whole (b->w, &it);
  td_tape_writer_end (b->w, &(TdTapeEnd){ .status = -1 });
}

/* Elements are read where they are written: an array at a time. */
static void
put_layers (Write *b)
{
  const TapeArrays *t = b->t;
  const uint32_t all = 2 * t->n_layers;

  for (uint32_t i = 0; i < all && !b->cancelled; i++)
    {
      if (i < t->n_layers)
        put_forward (b, &t->layers[i]);
      else
        put_backward (b, &t->layers[all - 1 - i]);
      b->cancelled = !td__tape_import_step (t->watch, TD_TAPE_IMPORT_READING, i + 1, all);
    }
}

bool
td__tape_arrays_write (TapeArrays *t, TdTapeWriter *w, TdTapeImport *what)
{
  Write b = { .t = t, .w = w };
  const bool room = take_room (&b);
  const char *wrong;

  if (room)
    {
      b.opdef = td_tape_writer_opdef (
          w, &(TdTapeOpdef){ .name = td_tape_writer_string (w, "layer"),
                             .group = td_tape_writer_string (w, "reference"),
                             .n_in = -1,
                             .n_out = -1 });
      td_tape_writer_info (w, "device", "cpu");
      put_layers (&b);
      put_iteration (&b);
      put_notice (&b);
    }
  what->n_events = b.n_events;
  what->n_iterations = 1;
  what->n_layers = t->n_layers;
  what->n_arrays = b.n_vars;
  what->n_left_out = t->n_left_out;
  wrong = !room ? "no memory" : b.cancelled ? "cancelled" : td_tape_writer_error (w);
  write_clear (&b);
  if (wrong != NULL)
    snprintf (t->error, t->n_error, "%s", wrong);
  return wrong == NULL;
}
