/* From a program of element-by-element kernels to the text of one kernel.
 *
 * Places (operands, then slots) become variables of a thread: what is read from outside is
 * loaded first, what is written to operands is stored last, so that an output may lie where an
 * input lay.  The text knows no sizes and no parameters of formulas: programs of one form share
 * one kernel.
 *
 * SPDX-License-Identifier: MIT */
#include "fused-source.h"

#include "scalar-ops.h"

#include <inttypes.h>
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
#undef NAME
/* Conditions: of numbers, or of integers as wide as they, which lie in a T as they are. */
static const char *const condition_names[TD_BOOL + 1] = {
  [TD_F32] = "holds", [TD_F64] = "holds", [TD_I32] = "holds_integer", [TD_I64] = "holds_integer"
};

/* What the program does with a place. */
typedef struct
{
  bool read, kept; /* by the first step that touches it; kept: some call adds to it */
  bool written;
} Place;

typedef struct
{
  const TdProgram *p;
  Place *places;
  TdFused *out;
  FILE *text;
} Writer;

static void
touch_read (Writer *w, uint32_t place)
{
  Place *q = &w->places[place];

  q->read |= !q->written;
}

/* Find out what is read before it is written, and what is written. */
static bool
look_through (Writer *w)
{
  const TdProgram *p = w->p;

  for (uint32_t i = 0; i < p->n_steps; i++)
    {
      const TdTileStep *s = &p->steps[i];
      Place *z = &w->places[s->z];

      touch_read (w, s->x);
      if (s->call.family != TD_TILE_UNARY)
        touch_read (w, s->y);
      if (s->call.family == TD_TILE_SELECT)
        touch_read (w, s->c);
      if (s->may_add)
        z->kept |= !z->written;
      else if (s->call.accumulate)
        touch_read (w, s->z);
      z->written = true;
      if (s->z < p->n_operands && p->period[s->z] != 0)
        return false;
    }
  for (uint32_t k = p->n_operands; k < p->n_operands + p->n_slots; k++)
    if (w->places[k].read) /* nothing has been put there */
      return false;
  return true;
}

static bool
has_formula (const TdTileCall *c)
{
  switch ((TdTileFamily)c->family)
    {
    case TD_TILE_UNARY:
      return c->kind < TD_UNARY_N && unary_names[c->kind] != NULL;
    case TD_TILE_GRAD:
      return c->kind < TD_UNARY_N && grad_names[c->kind] != NULL;
    case TD_TILE_BINARY:
      return c->kind < TD_BINARY_N && binary_names[c->kind] != NULL;
    case TD_TILE_SELECT:
      return c->kind <= TD_BOOL && condition_names[c->kind] != NULL
             && (c->kind == TD_F64 || c->kind == TD_I64) == (c->dtype == TD_F64);
    }
  return false;
}

/* Give a formula one of its parameters, if it looks at it.  Each has a place of its own:
 * numbers that are equal in this program may be different in the next of its form. */
static void
write_number (Writer *w, bool looks, double value)
{
  TdFused *f = w->out;

  if (!looks)
    {
      fputs (", 0", w->text);
      return;
    }
  if (f->n_numbers < TD_FUSED_NUMBERS)
    f->number[f->n_numbers] = value;
  fprintf (w->text, ", n%d", f->n_numbers++);
}

static bool
looks_at_p (const TdTileCall *c)
{
  return c->kind >= TD_UNARY_ADD_SCALAR && c->kind <= TD_UNARY_CLIPPED_RELU;
}

static void
write_value (Writer *w, const TdTileStep *s)
{
  const TdTileCall *c = &s->call;
  FILE *t = w->text;

  if (c->family == TD_TILE_SELECT)
    {
      fprintf (t, "%s (v%u) ? v%u : v%u", condition_names[c->kind], s->c, s->x, s->y);
      return;
    }
  if (c->family == TD_TILE_BINARY)
    {
      fprintf (t, "binary_%s (v%u, v%u)", binary_names[c->kind], s->x, s->y);
      return;
    }
  if (c->family == TD_TILE_UNARY)
    fprintf (t, "unary_%s (v%u", unary_names[c->kind], s->x);
  else
    fprintf (t, "grad_%s (v%u, v%u", grad_names[c->kind], s->x, s->y);
  write_number (w, looks_at_p (c), c->p);
  if (c->family == TD_TILE_UNARY)
    write_number (w, c->kind == TD_UNARY_CLIP || c->kind == TD_UNARY_INSIDE, c->q);
  fputs (")", t);
}

static void
write_step (Writer *w, const TdTileStep *s)
{
  FILE *t = w->text;

  if (!s->may_add && !s->call.accumulate)
    {
      fprintf (t, "      v%u = ", s->z);
      write_value (w, s);
      fputs (";\n", t);
      return;
    }
  fputs ("      t = ", t);
  write_value (w, s);
  if (s->may_add)
    fprintf (t, ";\n      v%u = add%u ? v%u + t : t;\n", s->z, s->z, s->z);
  else
    fprintf (t, ";\n      v%u = v%u + t;\n", s->z, s->z);
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
  for (uint32_t k = 0; k < w->p->n_operands; k++)
    {
      const Place *q = &w->places[k];

      if (q->read && w->p->period[k] == 1)
        fprintf (w->text, "  const T s%u = ((const T *)a.data[%u])[0];\n", k, k);
      else if (q->read && w->p->period[k] > 1)
        fprintf (w->text, "  const uint32_t r%u = a.period[%d];\n", k, row_of (w, k));
      else if (q->read)
        fprintf (w->text, "  Pack<V> o%u = load<V> (a, %u, i);\n", k, k);
      else if (q->kept)
        fprintf (w->text,
                 "  const bool add%u = adds (a, %u);\n"
                 "  Pack<V> o%u = add%u ? load<V> (a, %u, i) : Pack<V> {};\n",
                 k, k, k, k, k);
      else if (q->written)
        fprintf (w->text, "  Pack<V> o%u;\n", k);
      if (q->read && q->kept)
        fprintf (w->text, "  const bool add%u = adds (a, %u);\n", k, k);
    }
}

static void
write_variables (Writer *w)
{
  const uint32_t n = w->p->n_operands + w->p->n_slots;

  for (uint32_t k = 0; k < n; k++)
    {
      const Place *q = &w->places[k];

      if (q->read && k < w->p->n_operands && w->p->period[k] == 1)
        fprintf (w->text, "      T v%u = s%u;\n", k, k);
      else if (q->read && k < w->p->n_operands && w->p->period[k] > 1)
        fprintf (w->text,
                 "      T v%u = ((const T *)a.data[%u])[(uint32_t)(i * V + k) %% r%u];\n", k, k,
                 k);
      else if (q->read || q->kept)
        fprintf (w->text, "      T v%u = o%u.v[k];\n", k, k);
      else if (q->written)
        fprintf (w->text, "      T v%u;\n", k);
    }
  fputs ("      T t;\n\n", w->text);
}

static void
write_text (Writer *w)
{
  const TdProgram *p = w->p;
  char *steps = NULL;
  size_t n_steps = 0;
  FILE *whole = w->text;

  /* Steps first: they say how many numbers there are. */
  w->text = open_memstream (&steps, &n_steps);
  if (w->text == NULL)
    abort ();
  for (uint32_t i = 0; i < p->n_steps; i++)
    write_step (w, &p->steps[i]);
  fclose (w->text);
  w->text = whole;
  fprintf (whole,
           "#define TD_FUSED_DOUBLE %d\n#include \"fused.cuh\"\n\n"
           "template <int V>\nTD_DEVICE void\ncompute (const TdFusedParams &a, int64_t i)\n{\n",
           p->steps[0].call.dtype == TD_F64);
  write_loads (w);
  for (int k = 0; k < w->out->n_numbers; k++)
    fprintf (whole, "  const T n%d = (T)a.number[%d];\n", k, k);
  fputs ("\n#pragma unroll\n  for (int k = 0; k < V; k++)\n    {\n", whole);
  write_variables (w);
  fputs (steps, whole);
  for (uint32_t k = 0; k < p->n_operands; k++)
    if (w->places[k].written)
      fprintf (whole, "      o%u.v[k] = v%u;\n", k, k);
  fputs ("      (void)t;\n    }\n", whole);
  for (uint32_t k = 0; k < p->n_operands; k++)
    if (w->places[k].written)
      fprintf (whole, "  store<V> (a, %u, i, o%u);\n", k, k);
  fputs ("}\n\n", whole);
  free (steps);
}

/* For places that many kernels have, one number that stands for the text. */
static void
name_and_finish (TdFused *f)
{
  const size_t room = strlen (f->text) + 64;
  char *whole = malloc (room);

  if (whole == NULL)
    abort ();
  snprintf (f->name, sizeof f->name, "td_fused_%016" PRIx64,
            td_cuda_cache_hash (TD_CACHE_HASH, f->text, strlen (f->text)));
  snprintf (whole, room, "%sTD_FUSED_KERNEL (%s)\n", f->text, f->name);
  free (f->text);
  f->text = whole;
}

bool
td_cuda_fused_write (const TdProgram *p, TdFused *f)
{
  Writer w = { .p = p, .out = f };
  size_t n;
  /* Rows are found by 32 bits. */
  bool good = p->n_steps > 0 && p->n_operands <= TD_FUSED_OPERANDS && p->size <= UINT32_MAX;
  const uint8_t dtype = good ? p->steps[0].call.dtype : 0;

  *f = (TdFused){ .n_operands = (int)p->n_operands };
  for (uint32_t i = 0; i < p->n_steps && good; i++)
    good = has_formula (&p->steps[i].call) && p->steps[i].call.dtype == dtype;
  if (!good || (dtype != TD_F32 && dtype != TD_F64))
    return false;
  w.places = calloc (p->n_operands + p->n_slots + 1, sizeof *w.places);
  if (w.places == NULL)
    abort ();
  good = look_through (&w);
  w.text = good ? open_memstream (&f->text, &n) : NULL;
  if (w.text != NULL)
    {
      write_text (&w);
      fclose (w.text);
      name_and_finish (f);
    }
  for (uint32_t k = 0; k < p->n_operands && good; k++)
    {
      f->repeated |= (uint32_t)(p->period[k] != 0) << k;
      f->reads |= (uint32_t)(w.places[k].read || w.places[k].kept) << k;
      f->writes |= (uint32_t)w.places[k].written << k;
    }
  free (w.places);
  if (w.text != NULL && f->n_numbers <= TD_FUSED_NUMBERS && f->n_rows <= TD_FUSED_ROWS)
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
