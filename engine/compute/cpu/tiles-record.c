/* What an operation is, as a kernel of a program: it runs on a device that computes nothing and
 * notes what it is told to do.  And what programs a device knows.
 * SPDX-License-Identifier: MIT */
#include "tiles.h"

#include "cpu.h"
#include "elementwise.h"
#include "vector.h"

static struct
{
  const TdOpCall *call;
  TdTileCall *out;
  int n;
  bool foreign; /* memory that is no operand, or another kernel */
} note;

/* The operand whose data this is. */
static int8_t
operand_of (const TdTensor *t)
{
  const TdOpCall *c = note.call;

  for (int i = 0; i < c->n_in; i++)
    if (c->in[i].data == t->data)
      return (int8_t)i;
  for (int i = 0; i < c->n_out; i++)
    if (c->out[i].data == t->data)
      return (int8_t)(c->n_in + i);
  note.foreign = true;
  return -1;
}

/* Is x as large as z, or one number, or repeated to fill it as it lies?  Then the last axes are
 * those of z, and what is before them is 1. */
static bool
lies_along (const TdTensor *x, const TdTensor *z)
{
  int i = x->shape->ndim - 1, k = z->shape->ndim - 1;

  if (x->size == z->size || x->size == 1)
    return true;
  while (i >= 0 && k >= 0 && x->shape->dim[i] == z->shape->dim[k])
    {
      i--;
      k--;
    }
  while (i >= 0 && x->shape->dim[i] == 1)
    i--;
  return i < 0 && x->size > 0;
}

static TdStatus
noted (TdTileFamily family, int kind, double p, double q, const TdTensor *x, const TdTensor *y,
       const TdTensor *z, bool accumulate)
{
  TdTileCall *c = note.out;

  *c = (TdTileCall){ .family = (uint8_t)family,
                     .kind = (uint8_t)kind,
                     .dtype = (uint8_t)z->dtype,
                     .accumulate = accumulate,
                     .x = operand_of (x),
                     .y = y != NULL ? operand_of (y) : -1,
                     .z = operand_of (z),
                     .c = -1,
                     .size = z->size,
                     .p = p,
                     .q = q };
  for (int i = 0; i < note.call->n_in && i < 32; i++)
    if (note.call->in[i].size == z->size && note.call->in[i].dtype == z->dtype)
      c->full |= 1u << i;
  c->broadcasts = !lies_along (x, z) || (y != NULL && !lies_along (y, z));
  note.foreign |= x->dtype != z->dtype || (y != NULL && y->dtype != z->dtype);
  note.n++;
  return TD_OK;
}

static TdStatus
note_unary (TdDevice *d, TdUnaryKind kind, double p, double q, const TdTensor *x, TdTensor *y)
{
  return noted (TD_TILE_UNARY, kind, p, q, x, NULL, y, false);
}

static TdStatus
note_grad (TdDevice *d, TdUnaryKind kind, double p, const TdTensor *x, const TdTensor *gy,
           TdTensor *gx, bool accumulate)
{
  return noted (TD_TILE_GRAD, kind, p, 0, x, gy, gx, accumulate);
}

static TdStatus
note_binary (TdDevice *d, TdBinaryKind kind, const TdTensor *x, const TdTensor *y, TdTensor *z,
             bool accumulate)
{
  return noted (TD_TILE_BINARY, kind, 0, 0, x, y, z, accumulate);
}

static TdStatus
note_foreign (void)
{
  note.foreign = true;
  return TD_ERR_STATE;
}

static TdStatus
no_copy (TdDevice *d, void *dst, const void *src, size_t bytes)
{
  return note_foreign ();
}

static TdStatus
no_fill (TdDevice *d, TdTensor *y, double value)
{
  return note_foreign ();
}

static TdStatus
note_select (TdDevice *d, const TdTensor *c, const TdTensor *x, const TdTensor *y, TdTensor *z)
{
  noted (TD_TILE_SELECT, (int)c->dtype, 0, 0, x, y, z, false);
  note.out->c = operand_of (c);
  note.out->broadcasts |= !lies_along (c, z);
  return TD_OK;
}

static TdStatus
note_cast (TdDevice *d, const TdTensor *x, TdTensor *y)
{
  const bool foreign = note.foreign;

  noted (TD_TILE_CAST, (int)x->dtype, 0, 0, x, NULL, y, false);
  note.foreign = foreign || note.out->x < 0 || note.out->z < 0;
  return TD_OK;
}

static TdStatus
no_random (TdDevice *d, TdRandomKind kind, TdRngKey key, double p, TdTensor *y)
{
  return note_foreign ();
}

static const TdDeviceOps notes_ops = { .abi = TD_DEVICE_ABI,
                                       .copy = no_copy,
                                       .fill = no_fill,
                                       .unary = note_unary,
                                       .unary_grad = note_grad,
                                       .binary = note_binary,
                                       .select = note_select,
                                       .cast = note_cast,
                                       .random = no_random };

static bool
has_loop (const TdTileCall *c)
{
  const TdDtype wide = td__is_half ((TdDtype)c->dtype) ? TD_F32 : (TdDtype)c->dtype;

  switch ((TdTileFamily)c->family)
    {
    case TD_TILE_UNARY:
      return td__vector->unary[c->kind][wide] != NULL;
    case TD_TILE_GRAD:
      return wide <= TD_F64 && td__vector->unary_grad[c->kind][wide] != NULL;
    case TD_TILE_BINARY:
      return td__vector->binary[c->kind][wide][TD_WALK_BOTH] != NULL;
    case TD_TILE_SELECT:
      return td__select_loop ((TdDtype)c->kind, td__dtype_sizes[c->dtype]) != NULL;
    case TD_TILE_CAST:
      return true; /* all pairs */
    case TD_TILE_MASK:
      return wide <= TD_F64;
    }
  return false;
}

static bool
is_cpu (const TdDevice *d)
{
  return d->ops == &td__cpu_ops;
}

bool
td__tiles_known (const TdDevice *d)
{
  return d->computes && (is_cpu (d) || d->ops->program_new != NULL);
}

bool
td__tiles_has (const TdDevice *d, const TdTileCall *call)
{
  const bool moves = call->family == TD_TILE_SELECT || call->family == TD_TILE_CAST;
  const bool whole = (call->dtype == TD_I32 || call->dtype == TD_I64) && !call->accumulate;

  return has_loop (call)
         && (is_cpu (d) || moves || whole || call->dtype <= TD_F64
             || td__is_half ((TdDtype)call->dtype));
}

uint32_t
td__tiles_most_operands (const TdDevice *d)
{
  return is_cpu (d) ? TD_TILE_MAX_OPERANDS : TD_TILE_FEW_OPERANDS;
}

uint32_t
td__tiles_most_steps (const TdDevice *d)
{
  return is_cpu (d) ? TD_TILE_MAX_STEPS : TD_TILE_FEW_STEPS;
}

bool
td__tiles_record (TdOpCall *call, TdTileCall *out)
{
  static char marks[64];
  static TdDevice device = { .name = "notes", .ops = &notes_ops, .computes = true };
  TdTensor *in = (TdTensor *)(uintptr_t)call->in;
  TdStatus status;

  if (call->n_in + call->n_out > (int)sizeof marks)
    return false;
  for (int i = 0; i < call->n_in; i++)
    in[i].data = &marks[i];
  for (int i = 0; i < call->n_out; i++)
    call->out[i].data = &marks[call->n_in + i];
  note.call = call;
  note.out = out;
  note.n = 0;
  note.foreign = false;
  call->device = &device;
  status = call->cls->forward (call);
  note.call = NULL;
  return status == TD_OK && note.n == 1 && !note.foreign && has_loop (out);
}
