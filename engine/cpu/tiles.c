/* Programs of kernels, tile by tile: how an operation is asked what it does, and how a program
 * runs.
 * SPDX-License-Identifier: MIT */
#include "tiles.h"

#include <stdlib.h>

#include "cpu.h"
#include "elementwise.h"
#include "vector.h"

/* --- asking --- */

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

/* The condition has numbers as wide as the others, so that all advance alike. */
static TdStatus
note_select (TdDevice *d, const TdTensor *c, const TdTensor *x, const TdTensor *y, TdTensor *z)
{
  noted (TD_TILE_SELECT, (int)c->dtype, 0, 0, x, y, z, false);
  note.out->c = operand_of (c);
  note.out->broadcasts |= !lies_along (c, z);
  note.foreign |= td__cpu_dtype_bytes[c->dtype] != td__cpu_dtype_bytes[z->dtype];
  return TD_OK;
}

static TdStatus
no_cast (TdDevice *d, const TdTensor *x, TdTensor *y)
{
  return note_foreign ();
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
                                       .cast = no_cast,
                                       .random = no_random };

static bool
has_loop (const TdTileCall *c)
{
  if (c->dtype >= TD_DTYPE_N || td__is_half ((TdDtype)c->dtype))
    return false;
  if (c->family == TD_TILE_SELECT)
    return td__select_loop ((TdDtype)c->kind, td__cpu_dtype_bytes[c->dtype]) != NULL;
  if (c->family == TD_TILE_UNARY)
    return td__vector->unary[c->kind][c->dtype] != NULL;
  if (c->family == TD_TILE_GRAD)
    return c->dtype <= TD_F64 && td__vector->unary_grad[c->kind][c->dtype] != NULL;
  return td__vector->binary[c->kind][c->dtype][TD_WALK_BOTH] != NULL;
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
  return has_loop (call) && (is_cpu (d) || call->dtype <= TD_F64);
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

/* --- running --- */

typedef struct
{
  uint8_t family;
  uint32_t x, y, z, c, aside;
  int64_t sx, sy, sc; /* of TD_TILE_SELECT: 0 where it is one number */
  union
  {
    TdUnaryLoop unary;
    TdUnaryGradLoop grad;
    TdBinaryLoop binary;
    TdSelectLoop select;
  } loop;
  TdBinaryLoop add; /* z += what is aside; NULL: z is written */
  bool may_add;
  double p, q;
} Kernel;

struct TdTiles
{
  TdDevice *device; /* whose program it is; NULL: the CPU's, below */
  void *program;
  Kernel *kernels;
  uint32_t n, n_operands, n_slots;
  int64_t *period; /* by operand; 0: as large as the others */
  bool repeats;    /* some are more than one number, and repeated */
  int64_t size, tile;
  size_t bytes; /* of an element */
};

enum
{
  TILE_BYTES = 24576, /* of all arrays of a tile: half of a 48 KiB first-level cache */
  TILE_MIN = 512,
  TILE_MAX = 4096,
  SCRATCH_BYTES = TD_TILE_MAX_SLOTS * TILE_MIN * 8,
  ROW_BYTES = TILE_BYTES /* of one that is repeated: two tiles */
};

_Static_assert(SCRATCH_BYTES >= TILE_BYTES, "slots of a full tile must fit");
_Static_assert(ROW_BYTES >= 2 * TILE_MIN * 8, "rows along the smallest tile must fit");

static int64_t
tile_for (const TdTiles *t)
{
  int64_t tile = TILE_BYTES / (int64_t)(t->bytes * (t->n_operands + t->n_slots + 1)) / 64 * 64;

  tile = tile < TILE_MIN ? TILE_MIN : tile > TILE_MAX ? TILE_MAX : tile;
  return tile < t->size ? tile : t->size;
}

static bool
is_number (const TdTiles *t, uint32_t place)
{
  return place < t->n_operands && t->period[place] == 1;
}

static Kernel
kernel_of (const TdTiles *t, const TdTileStep *step)
{
  const TdTileCall *c = &step->call;
  Kernel k = { .family = c->family,
               .x = step->x,
               .y = step->y,
               .z = step->z,
               .c = step->c,
               .aside = step->aside,
               .p = c->p,
               .q = c->q };
  const bool first = is_number (t, step->x);
  const bool second
      = (c->family == TD_TILE_BINARY || c->family == TD_TILE_SELECT) && is_number (t, step->y);

  if (c->family == TD_TILE_UNARY)
    k.loop.unary = td__vector->unary[c->kind][c->dtype];
  else if (c->family == TD_TILE_GRAD)
    k.loop.grad = td__vector->unary_grad[c->kind][c->dtype];
  else if (c->family == TD_TILE_SELECT)
    {
      k.loop.select = td__select_loop ((TdDtype)c->kind, t->bytes);
      k.sx = !first;
      k.sy = !second;
      k.sc = !is_number (t, step->c);
    }
  else
    k.loop.binary = td__vector->binary[c->kind][c->dtype][first    ? TD_WALK_SECOND
                                                          : second ? TD_WALK_FIRST
                                                                   : TD_WALK_BOTH];
  k.may_add = step->may_add;
  if (c->accumulate || step->may_add)
    k.add = td__vector->binary[TD_BINARY_ADD][c->dtype][TD_WALK_BOTH];
  return k;
}

static void *
zeroed (size_t n, size_t bytes)
{
  void *memory = calloc (n + 1, bytes);

  if (memory == NULL)
    abort ();
  return memory;
}

TdTiles *
td__tiles_new (TdDevice *d, const TdProgram *p)
{
  TdTiles *t = zeroed (1, sizeof *t);

  t->size = p->size;
  if (!is_cpu (d))
    {
      t->device = d;
      t->program = d->ops->program_new (d, p);
      if (t->program != NULL)
        return t;
      free (t);
      return NULL;
    }
  t->n = p->n_steps;
  t->n_operands = p->n_operands;
  t->n_slots = p->n_slots;
  t->bytes = td__cpu_dtype_bytes[p->steps[0].call.dtype];
  t->period = zeroed (p->n_operands, sizeof *t->period);
  memcpy (t->period, p->period, p->n_operands * sizeof *t->period);
  for (uint32_t k = 0; k < p->n_operands; k++)
    t->repeats |= p->period[k] > 1;
  t->kernels = zeroed (p->n_steps, sizeof *t->kernels);
  t->tile = tile_for (t);
  for (uint32_t i = 0; i < p->n_steps; i++)
    t->kernels[i] = kernel_of (t, &p->steps[i]);
  return t;
}

void
td__tiles_free (TdTiles *t)
{
  if (t == NULL)
    return;
  if (t->device != NULL)
    t->device->ops->program_free (t->device, t->program);
  free (t->period);
  free (t->kernels);
  free (t);
}

int64_t
td__tiles_length (const TdTiles *t)
{
  return t->tile;
}

static void
run_kernels (const TdTiles *t, char **at, const bool *adds, int64_t n)
{
  for (uint32_t i = 0; i < t->n; i++)
    {
      const Kernel *k = &t->kernels[i];
      const bool add = k->add != NULL && (!k->may_add || adds[k->z]);
      char *z = at[add ? k->aside : k->z];

      if (k->family == TD_TILE_BINARY)
        k->loop.binary (at[k->x], at[k->y], z, n);
      else if (k->family == TD_TILE_UNARY)
        k->loop.unary (at[k->x], z, n, k->p, k->q);
      else if (k->family == TD_TILE_GRAD)
        k->loop.grad (at[k->x], at[k->y], z, n, k->p);
      else
        k->loop.select (at[k->c], k->sc, at[k->x], k->sx, at[k->y], k->sy, z, n);
      if (add)
        k->add (at[k->z], z, at[k->z], n);
    }
}

typedef struct
{
  const TdTiles *t;
  const TdTensor *operands;
  const bool *adds;
} Work;

/* The rows that are shorter than a tile, repeated to a tile from each of their places on. */
static void
spread_rows (const TdTiles *t, const TdTensor *operands, char *room, const char **rows)
{
  for (uint32_t k = 0; k < t->n_operands; k++)
    {
      const size_t row = (size_t)t->period[k] * t->bytes,
                   all = (size_t)t->tile * t->bytes + row;

      rows[k] = operands[k].data;
      if (t->period[k] <= 1 || t->period[k] > t->tile)
        continue;
      for (size_t done = 0; done < all; done += row)
        memcpy (room + done, operands[k].data, all - done < row ? all - done : row);
      rows[k] = room;
      room += ROW_BYTES;
    }
}

/* Operands from element i on; returns for how many, at most n: longer rows end in between. */
static int64_t
place_rows (const TdTiles *t, const char *const *rows, char **at, int64_t i, int64_t n)
{
  for (uint32_t k = 0; k < t->n_operands; k++)
    if (t->period[k] > 1)
      {
        const int64_t place = i % t->period[k], left = t->period[k] - place;

        at[k] = (char *)(uintptr_t)rows[k] + (size_t)place * t->bytes;
        if (t->period[k] > t->tile && left < n)
          n = left;
      }
  return n;
}

static void
run_piece (int64_t begin, int64_t end, int worker, void *context)
{
  const Work *w = context;
  const TdTiles *t = w->t;
  _Alignas(64) char scratch[SCRATCH_BYTES], row_room[TD_TILE_MAX_ROWS * ROW_BYTES];
  char *at[TD_TILE_MAX_OPERANDS + TD_TILE_MAX_SLOTS];
  const char *rows[TD_TILE_MAX_OPERANDS];
  const size_t slot = ((size_t)t->tile * t->bytes + 63) / 64 * 64;
  int64_t n;

  for (uint32_t k = 0; k < t->n_slots; k++)
    at[t->n_operands + k] = scratch + k * slot;
  if (t->repeats)
    spread_rows (t, w->operands, row_room, rows);
  for (int64_t i = begin; i < end; i += n)
    {
      n = end - i < t->tile ? end - i : t->tile;
      for (uint32_t k = 0; k < t->n_operands; k++)
        at[k] = (char *)w->operands[k].data + (t->period[k] > 0 ? 0 : (size_t)i * t->bytes);
      if (t->repeats)
        n = place_rows (t, rows, at, i, n);
      run_kernels (t, at, w->adds, n);
    }
}

TdStatus
td__tiles_run (const TdTiles *t, const TdTensor *operands, const bool *adds)
{
  Work w = { t, operands, adds };

  if (t->device != NULL)
    return t->device->ops->program_run (t->device, t->program, operands, adds);
  if (t->size <= TD_CPU_GRAIN)
    run_piece (0, t->size, 0, &w);
  else /* pieces of whole tiles */
    td__cpu_parallel (t->size, (TD_CPU_GRAIN + t->tile - 1) / t->tile * t->tile, run_piece, &w);
  return TD_OK;
}
