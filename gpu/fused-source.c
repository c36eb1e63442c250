/* Writes the source of one kernel for a group of element-by-element operations.
 *
 * Each operand and each intermediate result becomes a variable of the thread, of the array's
 * type.  Inputs are loaded first and outputs stored last, so that an output may overwrite an
 * input.  Halves are rounded after every operation, as by kernels of their own.  Sizes and
 * numeric parameters are arguments, not text: all groups of the same operations share one
 * kernel.
 *
 * SPDX-License-Identifier: MIT */
#include "fused-source.h"

#include "kernels.h"
#include "scalar-ops.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "disk-cache.h"

#define NAME(kind, formula) [TD_UNARY_##kind] = #kind,
static const char *const unary_names[TD_UNARY_N] = { TD_UNARY_FLOAT (NAME, f32) };
static const char *const grad_names[TD_UNARY_N] = { TD_UNARY_GRAD_FLOAT (NAME, f32) };
#undef NAME
#define NAME(kind, formula) [TD_BINARY_##kind] = #kind,
static const char *const binary_names[TD_BINARY_N] = { TD_BINARY_FLOAT (NAME, f32) };
static const char *const whole_binary_names[TD_BINARY_N] = { TD_BINARY_INT (NAME, i32) };
#undef NAME
#define NAME(kind, formula) [TD_UNARY_##kind] = #kind,
static const char *const whole_unary_names[TD_UNARY_N] = { TD_UNARY_INT (NAME, i32) };
#undef NAME
/* A type: what its arrays hold, and what follows names that are its own. */
static const struct
{
  const char *type, *suffix;
} types[TD_N_DTYPES] = { [TD_F32] = { "float", "f32" },   [TD_F64] = { "double", "f64" },
                         [TD_F16] = { "td_f16", "f16" },  [TD_BF16] = { "td_bf16", "bf16" },
                         [TD_I32] = { "int32_t", "i32" }, [TD_I64] = { "int64_t", "i64" },
                         [TD_U8] = { "uint8_t", "u8" },   [TD_BOOL] = { "uint8_t", "bool" } };

enum
{
  FEW_PACKS = 8
};

/* What the program does with a place. */
typedef struct
{
  bool read, kept; /* by the first step that touches it; kept: some call adds to it */
  bool written, touched;
  uint8_t dtype;     /* of an operand; of what was put in a slot last */
  uint8_t all_types; /* that a slot has in turn, as a mask */
} Place;

typedef struct
{
  const TdProgram *p;
  Place *places;
  TdFused *out;
  FILE *text;
  uint8_t number_types[TD_FUSED_NUMBERS];
  int n_sums;
} Writer;

static bool
is_floating (int dtype)
{
  return dtype == TD_F32 || dtype == TD_F64 || dtype == TD_F16 || dtype == TD_BF16;
}

/* Those that have arithmetic. */
static bool
is_whole (int dtype)
{
  return dtype == TD_I32 || dtype == TD_I64;
}

/* What is computed in. */
static const char *
wide_type (int dtype)
{
  return is_whole (dtype) ? types[dtype].type : dtype == TD_F64 ? "double" : "float";
}

/* --- what the steps do with their places --- */

/* False: it is of another type, or a slot that is empty. */
static bool
touch_read (Writer *w, uint32_t place, int dtype)
{
  Place *q = &w->places[place];

  if (place >= w->p->n_operands) /* something has been put there */
    return q->written && q->dtype == dtype;
  q->read |= !q->written;
  if (q->touched)
    return q->dtype == dtype;
  q->touched = true;
  q->dtype = (uint8_t)dtype;
  return true;
}

static bool
touch_written (Writer *w, uint32_t place, int dtype, bool kept)
{
  Place *q = &w->places[place];

  if (place < w->p->n_operands && q->touched && q->dtype != dtype)
    return false;
  q->kept |= kept && !q->written;
  q->written = q->touched = true;
  q->dtype = (uint8_t)dtype;
  q->all_types |= (uint8_t)(1u << dtype);
  return place >= w->p->n_operands || w->p->period[place] == 0;
}

/* Find out what is read before it is written, and what is written. */
static bool
look_through (Writer *w)
{
  const TdProgram *p = w->p;
  bool good = true;

  for (uint32_t i = 0; i < p->n_steps && good; i++)
    {
      const TdTileStep *s = &p->steps[i];
      const TdTileCall *c = &s->call;

      good = touch_read (w, s->x, (int)td__tile_dtype_of_x (c));
      if (c->family == TD_TILE_GRAD || c->family == TD_TILE_BINARY
          || c->family == TD_TILE_SELECT)
        good &= touch_read (w, s->y, c->dtype);
      if (c->family == TD_TILE_SELECT)
        good &= touch_read (w, s->c, c->kind);
      if (!s->may_add && c->accumulate)
        good &= touch_read (w, s->z, c->dtype);
      good &= touch_written (w, s->z, c->dtype, s->may_add);
    }
  return good;
}

static bool
has_formula (const TdTileStep *s)
{
  const TdTileCall *c = &s->call;
  const bool adds = c->accumulate || s->may_add;

  switch ((TdTileFamily)c->family)
    {
    case TD_TILE_UNARY:
      if (is_whole (c->dtype))
        return c->kind < TD_UNARY_N && whole_unary_names[c->kind] != NULL && !adds;
      return is_floating (c->dtype) && c->kind < TD_UNARY_N && unary_names[c->kind] != NULL;
    case TD_TILE_GRAD:
      return is_floating (c->dtype) && c->kind < TD_UNARY_N && grad_names[c->kind] != NULL;
    case TD_TILE_BINARY:
      if (is_whole (c->dtype))
        return c->kind < TD_BINARY_N && whole_binary_names[c->kind] != NULL && !adds;
      return is_floating (c->dtype) && c->kind < TD_BINARY_N && binary_names[c->kind] != NULL;
    case TD_TILE_SELECT:
    case TD_TILE_CAST:
      return c->dtype <= TD_BOOL && c->kind <= TD_BOOL && !adds;
    case TD_TILE_MASK:
      return is_floating (c->dtype) && s->draw < TD_FUSED_DRAWS;
    }
  return false;
}

/* --- steps --- */

/* The variable of a place: of a slot one for each type. */
static void
write_name (Writer *w, uint32_t place, int dtype)
{
  if (place < w->p->n_operands)
    fprintf (w->text, "v%u", place);
  else
    fprintf (w->text, "v%u_%s", place, types[dtype].suffix);
}

static void
write_number_of (Writer *w, uint32_t place, int dtype)
{
  fputs ("at (", w->text);
  write_name (w, place, dtype);
  fputs (")", w->text);
}

/* Give a formula one of its parameters, if it looks at it.  Each has a place of its own:
 * numbers that are equal in this program may be different in the next of its form. */
static void
write_parameter (Writer *w, bool looks, double value, int dtype)
{
  TdFused *f = w->out;

  if (!looks)
    {
      fputs (", 0", w->text);
      return;
    }
  if (f->n_numbers < TD_FUSED_NUMBERS)
    {
      f->number[f->n_numbers] = value;
      w->number_types[f->n_numbers] = (uint8_t)dtype;
    }
  fprintf (w->text, ", n%d", f->n_numbers++);
}

static bool
looks_at_p (const TdTileCall *c)
{
  return c->kind >= TD_UNARY_ADD_SCALAR && c->kind <= TD_UNARY_CLIPPED_RELU;
}

/* In halves the mask is rounded too, as if it lay in memory. */
static void
write_mask (Writer *w, const TdTileStep *s)
{
  const TdTileCall *c = &s->call;
  const bool half = c->dtype == TD_F16 || c->dtype == TD_BF16;

  if ((int)s->draw >= w->out->n_draws)
    w->out->n_draws = (int)s->draw + 1;
  write_number_of (w, s->x, c->dtype);
  fputs (" * ", w->text);
  if (half)
    fprintf (w->text, "at (to_%s (", types[c->dtype].suffix);
  fprintf (w->text, "mask (d%u.bits[k]", s->draw);
  write_parameter (w, true, c->dtype == TD_F64 ? c->p : ceil (c->p * 16777216.0), c->dtype);
  write_parameter (w, true, 1.0 / (1.0 - c->p), c->dtype);
  fputs (half ? ")))" : ")", w->text);
}

/* The number that a step computes, not rounded yet. */
static void
write_value (Writer *w, const TdTileStep *s)
{
  const TdTileCall *c = &s->call;
  FILE *t = w->text;

  if (c->family == TD_TILE_MASK)
    {
      write_mask (w, s);
      return;
    }
  if (is_whole (c->dtype)) /* functions of their own: they wrap */
    fprintf (t, "%s_", types[c->dtype].suffix);
  fprintf (t, "%s_%s (",
           c->family == TD_TILE_BINARY  ? "binary"
           : c->family == TD_TILE_UNARY ? "unary"
                                        : "grad",
           c->family == TD_TILE_BINARY  ? binary_names[c->kind]
           : c->family == TD_TILE_UNARY ? unary_names[c->kind]
                                        : grad_names[c->kind]);
  write_number_of (w, s->x, c->dtype);
  if (c->family != TD_TILE_UNARY)
    {
      fputs (", ", t);
      write_number_of (w, s->y, c->dtype);
    }
  if (c->family != TD_TILE_BINARY)
    write_parameter (w, looks_at_p (c), c->p, c->dtype);
  if (c->family == TD_TILE_UNARY)
    write_parameter (w, c->kind == TD_UNARY_CLIP || c->kind == TD_UNARY_INSIDE, c->q, c->dtype);
  fputs (")", t);
}

static void
write_select (Writer *w, const TdTileStep *s)
{
  fputs ("holds (", w->text);
  write_name (w, s->c, s->call.kind);
  fputs (") ? ", w->text);
  write_name (w, s->x, s->call.dtype);
  fputs (" : ", w->text);
  write_name (w, s->y, s->call.dtype);
}

/* As cast.c does: halves by way of float, floating numbers to integers by way of double. */
static void
write_cast (Writer *w, const TdTileStep *s)
{
  static const char *const from_integer[TD_BOOL + 1] = {
    [TD_F32] = "(float)(",          [TD_F64] = "(double)(",       [TD_F16] = "to_f16 ((float)",
    [TD_BF16] = "to_bf16 ((float)", [TD_I32] = "(int32_t)(",      [TD_I64] = "(int64_t)(",
    [TD_U8] = "(uint8_t)(",         [TD_BOOL] = "(uint8_t)(0 != "
  };
  static const char *const from_floating[TD_BOOL + 1]
      = { [TD_I32] = "td_i32_of_f64 ((double)",
          [TD_I64] = "td_i64_of_f64 ((double)",
          [TD_U8] = "(uint8_t)td_i64_of_f64 ((double)" };
  const char *by = is_floating (s->call.kind) ? from_floating[s->call.dtype] : NULL;

  fputs (by != NULL ? by : from_integer[s->call.dtype], w->text);
  write_number_of (w, s->x, s->call.kind);
  fputs (")", w->text);
}

static void
write_step (Writer *w, const TdTileStep *s)
{
  const TdTileCall *c = &s->call;
  const char *suffix = types[c->dtype].suffix;
  FILE *t = w->text;

  if (s->may_add)
    {
      fprintf (t, "      const %s t%d = ", wide_type (c->dtype), w->n_sums);
      write_value (w, s);
      fputs (";\n", t);
    }
  fputs ("      ", t);
  write_name (w, s->z, c->dtype);
  fputs (" = ", t);
  if (c->family == TD_TILE_SELECT)
    write_select (w, s);
  else if (c->family == TD_TILE_CAST)
    write_cast (w, s);
  else
    {
      fprintf (t, "to_%s (", suffix);
      if (s->may_add)
        {
          fprintf (t, "add%u ? ", s->z);
          write_number_of (w, s->z, c->dtype);
          fprintf (t, " + t%d : t%d", w->n_sums, w->n_sums);
          w->n_sums++;
        }
      else
        {
          if (c->accumulate)
            {
              write_number_of (w, s->z, c->dtype);
              fputs (" + ", t);
            }
          write_value (w, s);
        }
      fputs (")", t);
    }
  fputs (";\n", t);
}

/* --- around them --- */

/* What is counted by the twin: floating numbers that are written, the first of them.  Many
 * packs beside the counters need the registers of a block that is alone. */
static void
write_with_stats (Writer *w)
{
  TdFused *f = w->out;
  int n_packs = 0;

  for (uint32_t k = 0; k < w->p->n_operands && f->n_with_stats < TD_FUSED_COUNTS; k++)
    if (w->places[k].written && is_floating (w->places[k].dtype))
      f->with_stats[f->n_with_stats++] = (uint8_t)k;
  for (uint32_t k = 0; k < w->p->n_operands; k++)
    n_packs += w->places[k].touched && w->p->period[k] == 0;
  fprintf (w->text, "#define TD_FUSED_RESIDENT %d\n#define TD_FUSED_WITH_STATS(X)",
           n_packs > FEW_PACKS ? 1 : 2);
  for (int i = 0; i < f->n_with_stats; i++)
    fprintf (w->text, " X (%d, %d, %s)", i, f->with_stats[i],
             wide_type (w->places[f->with_stats[i]].dtype));
  fputs ("\n", w->text);
}

/* A row's place among those that are repeated. */
static int
row_of (Writer *w, uint32_t operand)
{
  TdFused *f = w->out;

  if (f->n_rows < TD_FUSED_ROWS)
    f->period[f->n_rows] = (uint32_t)w->p->period[operand];
  return f->n_rows++;
}

static void
write_loads (Writer *w)
{
  FILE *t = w->text;

  for (uint32_t k = 0; k < w->p->n_operands; k++)
    {
      const Place *q = &w->places[k];
      const char *type = types[q->dtype].type;

      if (q->read && w->p->period[k] == 1)
        fprintf (t, "  const %s s%u = ((const %s *)a.data[%u])[0];\n", type, k, type, k);
      else if (q->read && w->p->period[k] > 1)
        fprintf (t, "  const uint32_t r%u = a.period[%d];\n", k, row_of (w, k));
      else if (q->read)
        fprintf (t, "  Pack<%s, V> o%u = load<%s, V> (a, %u, i);\n", type, k, type, k);
      else if (q->kept)
        fprintf (t,
                 "  const bool add%u = adds (a, %u);\n"
                 "  Pack<%s, V> o%u = add%u ? load<%s, V> (a, %u, i) : Pack<%s, V> {};\n",
                 k, k, type, k, k, type, k, type);
      else if (q->written)
        fprintf (t, "  Pack<%s, V> o%u;\n", type, k);
      if (q->read && q->kept)
        fprintf (t, "  const bool add%u = adds (a, %u);\n", k, k);
    }
}

static void
write_variables (Writer *w)
{
  const uint32_t n = w->p->n_operands + w->p->n_slots;
  FILE *t = w->text;

  for (uint32_t k = 0; k < w->p->n_operands; k++)
    {
      const Place *q = &w->places[k];
      const char *type = types[q->dtype].type;

      if (q->read && w->p->period[k] == 1)
        fprintf (t, "      %s v%u = s%u;\n", type, k, k);
      else if (q->read && w->p->period[k] > 1)
        fprintf (t, "      %s v%u = ((const %s *)a.data[%u])[(uint32_t)(i * V + k) %% r%u];\n",
                 type, k, type, k, k);
      else if (q->read || q->kept)
        fprintf (t, "      %s v%u = o%u.v[k];\n", type, k, k);
      else if (q->written)
        fprintf (t, "      %s v%u;\n", type, k);
    }
  for (uint32_t k = w->p->n_operands; k < n; k++)
    for (int dtype = 0; dtype <= TD_BOOL; dtype++)
      if (w->places[k].all_types >> dtype & 1)
        fprintf (t, "      %s v%u_%s;\n", types[dtype].type, k, types[dtype].suffix);
  fputs ("\n", t);
}

/* Packs are 16 bytes of the widest array, or 8 elements; 4 where random numbers are drawn, of
 * which 8 are more than the registers hold beside the rest. */
static int
pack_of (const Writer *w)
{
  size_t widest = w->out->n_draws > 0 ? 4 : 2;

  for (uint32_t k = 0; k < w->p->n_operands; k++)
    {
      const size_t bytes = td__bytes_of (w->places[k].dtype);

      if (w->places[k].touched && w->p->period[k] == 0 && bytes > widest)
        widest = bytes;
    }
  return (int)(16 / widest);
}

static void
write_head (Writer *w)
{
  bool floats = false, doubles = false, whole = false;

  for (uint32_t i = 0; i < w->p->n_steps; i++)
    {
      doubles |= w->p->steps[i].call.dtype == TD_F64;
      floats |= is_floating (w->p->steps[i].call.dtype) && w->p->steps[i].call.dtype != TD_F64;
      whole |= is_whole (w->p->steps[i].call.dtype)
               && w->p->steps[i].call.family <= TD_TILE_BINARY;
    }
  w->out->pack = pack_of (w);
  fprintf (w->text,
           "#define TD_FUSED_FLOAT %d\n#define TD_FUSED_DOUBLE %d\n#define TD_FUSED_PACK %d\n"
           "%s",
           floats, doubles, w->out->pack, whole ? "#define TD_FUSED_WHOLE 1\n" : "");
  write_with_stats (w);
  fputs ("#include \"fused.cuh\"\n\ntemplate <int V>\nTD_DEVICE void\n"
         "compute (const TdFusedParams &a, int64_t i, Seen &seen)\n{\n",
         w->text);
}

/* The steps alone, which say how many numbers there are; NULL: there is no memory. */
static char *
steps_text (Writer *w)
{
  char *steps = NULL;
  size_t n = 0;
  FILE *whole = w->text;

  w->text = open_memstream (&steps, &n);
  if (w->text != NULL)
    {
      for (uint32_t i = 0; i < w->p->n_steps; i++)
        write_step (w, &w->p->steps[i]);
      if (fclose (w->text) != 0)
        {
          free (steps);
          steps = NULL;
        }
    }
  w->text = whole;
  return steps;
}

static bool
write_text (Writer *w)
{
  const TdProgram *p = w->p;
  char *steps = steps_text (w);
  FILE *whole = w->text;

  if (steps == NULL)
    return false;
  write_head (w);
  write_loads (w);
  for (int k = 0; k < w->out->n_numbers && k < TD_FUSED_NUMBERS; k++)
    {
      const char *type = wide_type (w->number_types[k]);

      fprintf (whole, "  const %s n%d = (%s)a.number[%d];\n", type, k, type, k);
    }
  for (int k = 0; k < w->out->n_draws; k++)
    fprintf (whole, "  const Draws<V> d%d = draws<V> (a.key[%d], i);\n", k, k);
  fputs ("\n#pragma unroll\n  for (int k = 0; k < V; k++)\n    {\n", whole);
  write_variables (w);
  fputs (steps, whole);
  for (uint32_t k = 0; k < p->n_operands; k++)
    if (w->places[k].written)
      fprintf (whole, "      o%u.v[k] = v%u;\n", k, k);
  for (int i = 0; i < w->out->n_with_stats; i++)
    fprintf (whole, "      TD_FUSED_SEE (%d, at (v%d));\n", w->out->with_stats[i],
             w->out->with_stats[i]);
  fputs ("    }\n", whole);
  for (uint32_t k = 0; k < p->n_operands; k++)
    if (w->places[k].written)
      fprintf (whole, "  store<%s, V> (a, %u, i, o%u);\n", types[w->places[k].dtype].type, k,
               k);
  fputs ("}\n\n", whole);
  free (steps);
  return true;
}

/* For places that many kernels have, one number that stands for the text. */
static bool
name_and_finish (TdFused *f)
{
  const size_t room = strlen (f->text) + 64;
  char *whole = malloc (room);

  if (whole == NULL)
    return false;
  snprintf (f->name, sizeof f->name, "td_fused_%016" PRIx64,
            td_cuda_cache_hash (TD_CACHE_HASH, f->text, strlen (f->text)));
  snprintf (whole, room, "%sTD_FUSED_KERNEL (%s)\n", f->text, f->name + strlen ("td_"));
  free (f->text);
  f->text = whole;
  return true;
}

char *
td_cuda_fused_twin (const char *text, const char *of, char name[32])
{
  static const char first[] = "#define TD_FUSED_COUNTING 1\n";
  const size_t n = strlen (text);
  char *twin = malloc (sizeof first + n);

  if (twin == NULL)
    return NULL;
  memcpy (twin, first, sizeof first - 1);
  memcpy (twin + sizeof first - 1, text, n + 1);
  snprintf (name, 32, "td_count_%s", of + strlen ("td_"));
  return twin;
}

bool
td_cuda_fused_write (const TdProgram *p, TdFused *f)
{
  Writer w = { .p = p, .out = f };
  size_t n;
  /* Rows are found by 32 bits. */
  bool good = p->n_steps > 0 && p->n_operands <= TD_FUSED_OPERANDS && p->size <= UINT32_MAX;

  *f = (TdFused){ .n_operands = (int)p->n_operands };
  for (uint32_t i = 0; i < p->n_steps && good; i++)
    good = has_formula (&p->steps[i]);
  if (!good)
    return false;
  w.places = calloc (p->n_operands + p->n_slots + 1, sizeof *w.places);
  if (w.places == NULL)
    return false;
  good = look_through (&w);
  w.text = good ? open_memstream (&f->text, &n) : NULL;
  if (w.text != NULL)
    {
      good = write_text (&w);
      good = fclose (w.text) == 0 && good && name_and_finish (f);
    }
  for (uint32_t k = 0; k < p->n_operands && good; k++)
    {
      f->repeated |= (uint32_t)(p->period[k] != 0) << k;
      f->reads |= (uint32_t)(w.places[k].read || w.places[k].kept) << k;
      f->writes |= (uint32_t)w.places[k].written << k;
    }
  free (w.places);
  if (good && w.text != NULL && f->n_numbers <= TD_FUSED_NUMBERS && f->n_rows <= TD_FUSED_ROWS)
    return true;
  td_cuda_fused_clear (f);
  return false;
}

void
td_cuda_fused_clear (TdFused *f)
{
  free (f->text);
  f->text = NULL;
}
