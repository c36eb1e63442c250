/* Running a program of elementwise kernels tile by tile.
 *
 * Every array of a program has its own dtype.  Half-precision operands are widened for each
 * kernel that reads them, and its result is rounded again: so values are rounded exactly where
 * the operations by themselves round them.
 * SPDX-License-Identifier: MIT */
#include "tiles.h"
#include "host-memory.h"

#include <stdlib.h>

#include "cpu.h"
#include "elementwise.h"
#include "vector.h"

typedef struct
{
  uint8_t family;
  TdDtype from, dtype; /* of x, and of z */
  uint32_t x, y, z, c, addend;
  int64_t sx, sy, sc; /* 0: the operand is one number */
  union
  {
    TdUnaryLoop unary;
    TdUnaryGradLoop grad;
    TdBinaryLoop binary;
    TdSelectLoop select;
    TdCastLoop cast;
  } loop;
  TdBinaryLoop add; /* z += the addend; NULL: z is written */
  bool may_add;
  bool wide; /* some operand has half precision, and is computed with */
  uint32_t draw;
  double p, q;
} Kernel;

struct TdTiles
{
  TdDevice *device; /* the device that runs the program; NULL: the CPU, below */
  void *program;
  Kernel *kernels;
  uint32_t n, n_operands, n_slots;
  int64_t *period; /* by operand; 0: not broadcast */
  uint8_t *bytes;  /* by operand: size of an element */
  bool repeats;    /* some operand is a row that is broadcast */
  int64_t size, tile;
  size_t most_bytes; /* the largest element of any operand, slot or stage */
};

enum
{
  TILE_BYTES = 24576, /* of all arrays of a tile: half of a 48 KiB first-level cache */
  TILE_MIN = 512,
  TILE_MAX = 4096,
  SCRATCH_BYTES = TD_TILE_MAX_SLOTS * TILE_MIN * 8,
  ROW_BYTES = TILE_BYTES, /* of a broadcast row: two tiles */
  N_STAGES = 3,           /* of a kernel: widened x, y, z, or a mask */
  STAGE_BYTES = TILE_BYTES / (N_STAGES + 2)
};

_Static_assert(SCRATCH_BYTES >= TILE_BYTES, "slots of a full tile must fit");
_Static_assert(ROW_BYTES >= 2 * TILE_MIN * 8, "rows along the smallest tile must fit");
_Static_assert(STAGE_BYTES >= TILE_MIN * 8, "a stage of the smallest tile must fit");

static int64_t
tile_for (const TdTiles *t, bool stages)
{
  const uint32_t n = t->n_operands + t->n_slots + 1 + (stages ? N_STAGES : 0);
  int64_t tile = TILE_BYTES / (int64_t)(t->most_bytes * n) / 64 * 64;

  tile = tile < TILE_MIN ? TILE_MIN : tile > TILE_MAX ? TILE_MAX : tile;
  return tile < t->size ? tile : t->size;
}

static bool
is_number (const TdTiles *t, uint32_t place)
{
  return place < t->n_operands && t->period[place] == 1;
}

static TdDtype
wide_of (TdDtype dtype)
{
  return td__is_half (dtype) ? TD_F32 : dtype;
}

static Kernel
kernel_of (const TdTiles *t, const TdTileStep *step)
{
  const TdTileCall *c = &step->call;
  const TdDtype from = td__tile_dtype_of_x (c), dtype = (TdDtype)c->dtype,
                wide = wide_of (dtype);
  Kernel k = { .family = c->family,
               .from = from,
               .dtype = dtype,
               .x = step->x,
               .y = step->y,
               .z = step->z,
               .c = step->c,
               .addend = step->addend,
               .sx = !is_number (t, step->x),
               .sy = !is_number (t, step->y),
               .sc = !is_number (t, step->c),
               .may_add = step->may_add,
               .draw = step->draw,
               .p = c->p,
               .q = c->q };

  switch ((TdTileFamily)c->family)
    {
    case TD_TILE_UNARY:
      k.loop.unary = td__vector->unary[c->kind][wide];
      break;
    case TD_TILE_GRAD:
      k.loop.grad = td__vector->unary_grad[c->kind][wide];
      break;
    case TD_TILE_SELECT: /* moves bits, of any dtype */
      k.loop.select = td__select_loop ((TdDtype)c->kind, td__dtype_sizes[dtype]);
      return k;
    case TD_TILE_CAST:
      k.loop.cast = td__cast_loop (from, dtype);
      break;
    case TD_TILE_BINARY:
      k.loop.binary = td__vector->binary[c->kind][wide][k.sx == 0   ? TD_WALK_SECOND
                                                        : k.sy == 0 ? TD_WALK_FIRST
                                                                    : TD_WALK_BOTH];
      break;
    case TD_TILE_MASK:
      k.loop.binary = td__vector->binary[TD_BINARY_MUL][wide][TD_WALK_BOTH];
      break;
    }
  k.wide = td__is_half (from) || td__is_half (dtype);
  if (c->accumulate || step->may_add)
    k.add = td__vector->binary[TD_BINARY_ADD][wide][TD_WALK_BOTH];
  return k;
}

static void *
zeroed (size_t n, size_t bytes)
{
  void *memory = td__xcalloc (n + 1, bytes);

  return memory;
}

/* Note the dtype of a place.  False: another kernel uses the operand with another dtype. */
static bool
note_bytes (TdTiles *t, uint32_t place, TdDtype dtype)
{
  const uint8_t bytes = td__dtype_sizes[dtype];

  if (bytes > t->most_bytes)
    t->most_bytes = bytes;
  if (place >= t->n_operands)
    return true;
  if (t->bytes[place] != 0 && t->bytes[place] != bytes)
    return false;
  t->bytes[place] = bytes;
  return true;
}

/* Find the sizes of all elements, and whether some kernel needs stages. */
static bool
look_at_types (TdTiles *t, const TdProgram *p, bool *stages)
{
  bool good = true;

  for (uint32_t i = 0; i < p->n_steps; i++)
    {
      const TdTileStep *s = &p->steps[i];
      const TdTileCall *c = &s->call;
      const TdDtype from = td__tile_dtype_of_x (c), dtype = (TdDtype)c->dtype;
      const bool wide = td__is_half (from) || td__is_half (dtype);

      good &= note_bytes (t, s->x, from) && note_bytes (t, s->z, dtype);
      if (c->family != TD_TILE_UNARY && c->family != TD_TILE_CAST && c->family != TD_TILE_MASK)
        good &= note_bytes (t, s->y, dtype);
      if (c->family == TD_TILE_SELECT)
        good &= note_bytes (t, s->c, (TdDtype)c->kind);
      *stages |= c->family == TD_TILE_MASK || (wide && c->family != TD_TILE_SELECT);
      if (wide && t->most_bytes < sizeof (float))
        t->most_bytes = sizeof (float);
    }
  return good;
}

static TdTiles *
device_program (TdTiles *t, TdDevice *d, const TdProgram *p)
{
  t->device = d;
  t->program = d->ops->program_new (d, p);
  if (t->program != NULL)
    return t;
  free (t);
  return NULL;
}

TdTiles *
td__tiles_new (TdDevice *d, const TdProgram *p)
{
  TdTiles *t = zeroed (1, sizeof *t);
  bool stages = false;

  t->size = p->size;
  if (d->ops != &td__cpu_ops)
    return device_program (t, d, p);
  t->n = p->n_steps;
  t->n_operands = p->n_operands;
  t->n_slots = p->n_slots;
  t->most_bytes = 1;
  t->period = zeroed (p->n_operands, sizeof *t->period);
  t->bytes = zeroed (p->n_operands, sizeof *t->bytes);
  memcpy (t->period, p->period, p->n_operands * sizeof *t->period);
  for (uint32_t k = 0; k < p->n_operands; k++)
    t->repeats |= p->period[k] > 1;
  t->kernels = zeroed (p->n_steps, sizeof *t->kernels);
  if (!look_at_types (t, p, &stages))
    {
      td__tiles_free (t);
      return NULL;
    }
  t->tile = tile_for (t, stages);
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
  free (t->bytes);
  free (t->kernels);
  free (t);
}

int64_t
td__tiles_length (const TdTiles *t)
{
  return t->tile;
}

/* --- one kernel over one tile --- */

typedef struct
{
  char *at[TD_TILE_MAX_OPERANDS + TD_TILE_MAX_SLOTS]; /* places, at element `first` */
  char *stage[N_STAGES];
  const bool *adds;
  const TdRngKey *keys;
  int64_t first, n;
} Tile;

/* The values of an operand, widened if they have half precision. */
static char *
numbers (const Tile *w, TdDtype dtype, uint32_t place, int64_t n, int stage)
{
  const TdTensor t = { .data = w->at[place], .dtype = dtype };

  if (!td__is_half (dtype))
    return w->at[place];
  td__half_load (&t, 0, n, (float *)(void *)w->stage[stage]);
  return w->stage[stage];
}

static void
compute (const Kernel *k, const Tile *w, char *x, char *y, char *z)
{
  switch ((TdTileFamily)k->family)
    {
    case TD_TILE_UNARY:
      k->loop.unary (x, z, w->n, k->p, k->q);
      break;
    case TD_TILE_GRAD:
      k->loop.grad (x, y, z, w->n, k->p);
      break;
    case TD_TILE_BINARY:
      k->loop.binary (x, y, z, w->n);
      break;
    case TD_TILE_CAST:
      k->loop.cast (x, z, w->n);
      break;
    case TD_TILE_MASK:
      td__mask_make (w->keys[k->draw], k->p, k->dtype, w->first, w->n, w->stage[1]);
      k->loop.binary (x, w->stage[1], z, w->n);
      break;
    case TD_TILE_SELECT:
      k->loop.select (w->at[k->c], k->sc, x, k->sx, y, k->sy, z, w->n);
      break;
    }
}

/* Run a kernel with half-precision operands.  The addend is not rounded before it is added to
 * z, as in the operation by itself. */
static void
run_wide (const Kernel *k, const Tile *w, bool add)
{
  const bool half = td__is_half (k->dtype);
  const bool second = k->family == TD_TILE_GRAD || k->family == TD_TILE_BINARY;
  char *x = numbers (w, k->from, k->x, k->sx == 0 ? 1 : w->n, 0), *z, *sum;
  char *y = second ? numbers (w, k->dtype, k->y, k->sy == 0 ? 1 : w->n, 1) : NULL;
  TdTensor out = { .data = w->at[k->z], .dtype = k->dtype };

  z = half ? w->stage[2] : w->at[add ? k->addend : k->z];
  compute (k, w, x, y, z);
  if (add)
    {
      sum = numbers (w, k->dtype, k->z, w->n, 0);
      k->add (sum, z, half ? z : sum, w->n);
    }
  if (half)
    td__half_store (&out, 0, w->n, (const float *)(const void *)z);
}

static void
run_kernels (const TdTiles *t, const Tile *w)
{
  for (uint32_t i = 0; i < t->n; i++)
    {
      const Kernel *k = &t->kernels[i];
      const bool add = k->add != NULL && (!k->may_add || w->adds[k->z]);
      char *z = w->at[add ? k->addend : k->z];

      if (k->wide)
        {
          run_wide (k, w, add);
          continue;
        }
      compute (k, w, w->at[k->x], w->at[k->y], z);
      if (add)
        k->add (w->at[k->z], z, w->at[k->z], w->n);
    }
}

/* --- all tiles --- */

typedef struct
{
  const TdTiles *t;
  const TdTensor *operands;
  const bool *adds;
  const TdRngKey *keys;
} Work;

/* Repeat broadcast rows that are shorter than a tile, so that a tile can start at any of their
 * elements. */
static void
spread_rows (const TdTiles *t, const TdTensor *operands, char *room, const char **rows)
{
  for (uint32_t k = 0; k < t->n_operands; k++)
    {
      const size_t row = (size_t)t->period[k] * t->bytes[k],
                   all = (size_t)t->tile * t->bytes[k] + row;

      rows[k] = operands[k].data;
      if (t->period[k] <= 1 || t->period[k] > t->tile)
        continue;
      for (size_t done = 0; done < all; done += row)
        memcpy (room + done, operands[k].data, all - done < row ? all - done : row);
      rows[k] = room;
      room += ROW_BYTES;
    }
}

/* Set the addresses of operands at element i.  Returns for how many elements they hold, at most
 * n: a longer row may end before. */
static int64_t
place_rows (const TdTiles *t, const char *const *rows, char **at, int64_t i, int64_t n)
{
  for (uint32_t k = 0; k < t->n_operands; k++)
    if (t->period[k] > 1)
      {
        const int64_t place = i % t->period[k], left = t->period[k] - place;

        at[k] = (char *)(uintptr_t)rows[k] + (size_t)place * t->bytes[k];
        if (t->period[k] > t->tile && left < n)
          n = left;
      }
  return n;
}

static void
run_piece (int64_t begin, int64_t end, int worker, void *context)
{
  const Work *work = context;
  const TdTiles *t = work->t;
  _Alignas(64) char scratch[SCRATCH_BYTES], row_room[TD_TILE_MAX_ROWS * ROW_BYTES];
  _Alignas(64) char stages[N_STAGES][STAGE_BYTES / 64 * 64 + 64];
  const char *rows[TD_TILE_MAX_OPERANDS];
  const size_t slot = ((size_t)t->tile * t->most_bytes + 63) / 64 * 64;
  Tile w; /* not initialized, as it is large: all that is used is set */

  w.adds = work->adds;
  w.keys = work->keys;
  for (int k = 0; k < N_STAGES; k++)
    w.stage[k] = stages[k];
  for (uint32_t k = 0; k < t->n_slots; k++)
    w.at[t->n_operands + k] = scratch + k * slot;
  if (t->repeats)
    spread_rows (t, work->operands, row_room, rows);
  for (int64_t i = begin; i < end; i += w.n)
    {
      w.first = i;
      w.n = end - i < t->tile ? end - i : t->tile;
      for (uint32_t k = 0; k < t->n_operands; k++)
        w.at[k]
            = (char *)work->operands[k].data + (t->period[k] > 0 ? 0 : (size_t)i * t->bytes[k]);
      if (t->repeats)
        w.n = place_rows (t, rows, w.at, i, w.n);
      run_kernels (t, &w);
    }
}

TdStatus
td__tiles_run (const TdTiles *t, const TdTensor *operands, const bool *adds,
               const TdRngKey *keys)
{
  Work w = { t, operands, adds, keys };

  if (t->device != NULL)
    return t->device->ops->program_run (t->device, t->program, operands, adds, keys);
  if (t->size <= TD_CPU_GRAIN)
    run_piece (0, t->size, 0, &w);
  else /* pieces of whole tiles */
    td__cpu_parallel (t->size, (TD_CPU_GRAIN + t->tile - 1) / t->tile * t->tile, run_piece, &w);
  return TD_OK;
}
