/* The steps of a C program: which row writes an operation, what of it cannot be written, and
 * floats between two casts where its numbers are halves and the kernels know none.
 *
 * SPDX-License-Identifier: MIT */
#include "c-out.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define P TD_C_PRINT

static const TdCRow *
row_of (const TdStep *step)
{
  const TdCRow *const tables[]
      = { td__c_maps, td__c_reductions, td__c_moves, td__c_calls, td__c_windows, td__c_losses };

  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
    for (const TdCRow *row = tables[i]; row->op != NULL; row++)
      if (strcmp (row->op, step->cls->name) == 0)
        return row;
  return NULL;
}

static bool
in_table (const TdCRow *row, const TdCRow *table)
{
  for (const TdCRow *r = table; r->op != NULL; r++)
    if (r == row)
      return true;
  return false;
}

/* Operand k of a step: its inputs, then its results. */
static uint32_t
operand_of (const TdCOut *o, const TdStep *step, uint32_t k)
{
  return k < step->n_in ? td__c_in (o, step, k) : td__c_out (o, step, k - step->n_in);
}

/* A call of kernels, which are of one type. */
static bool
calls (const TdCRow *row)
{
  return in_table (row, td__c_calls) || in_table (row, td__c_windows)
         || in_table (row, td__c_losses);
}

/* Why an operation cannot be written although it has a row, or NULL. */
static const char *
refuses (const TdCOut *o, const TdStep *step, const TdCRow *row)
{
  for (uint32_t k = 0; k < step->n_in; k++)
    if (step->cls->writes >> k & 1)
      {
        const TdValue *v = td__node_value (o->s, td__c_in (o, step, k));

        if (v->kind == TD_VALUE_EXTERNAL && v->index < o->s->n_arguments)
          return "that writes to an argument";
      }
  if (step->accumulate)
    return "that adds to what is there";
  for (uint32_t k = 0; k < step->n_in + step->n_out && o->real == TD_F64 && calls (row); k++)
    if (td__c_dtype (o, operand_of (o, step, k)) == TD_F32)
      return "of f32 and f64";
  return NULL;
}

/* --- halves --- */

/* What a step computes in, and what it rounds to. */
static void
look_at_types (TdCOut *o, const TdStep *step)
{
  o->real = o->half = TD_F32;
  o->in_floats = false;
  for (uint32_t k = 0; k < step->n_in + step->n_out; k++)
    {
      const TdDtype dtype = td__c_dtype (o, operand_of (o, step, k));

      if (dtype == TD_F64)
        o->real = TD_F64;
      if (td__c_is_half (dtype))
        o->half = dtype;
    }
}

/* Is operand k of a step half precision, and the first that shows its value? */
static bool
is_half_array (const TdCOut *o, const TdStep *step, uint32_t k)
{
  const uint32_t node = operand_of (o, step, k);

  for (uint32_t j = 0; j < k; j++)
    if (td__c_value (o, operand_of (o, step, j)) == td__c_value (o, node))
      return false;
  return td__c_is_half ((TdDtype)o->s->nodes[node].dtype);
}

/* The declarations of a step's floats. */
static void
print_floats (TdCOut *o, const TdStep *step)
{
  int64_t at = 0;

  for (uint32_t k = 0; k < step->n_in + step->n_out; k++)
    if (is_half_array (o, step, k))
      {
        const uint32_t node = operand_of (o, step, k);

        P (o, "  float *const %s = floats + %lld;\n", td__c_v (o, node), (long long)at);
        at += (td__c_count (o, node) + TD_C_ALIGNED - 1) / TD_C_ALIGNED * TD_C_ALIGNED;
      }
  P (o, "\n");
  at = at > 0 ? at : 1;
  o->floats = at > o->floats ? at : o->floats;
}

/* Casts to floats of what a step reads, or back of what it writes. */
static void
print_casts (TdCOut *o, const TdStep *step, bool back)
{
  for (uint32_t k = 0; k < step->n_in + step->n_out; k++)
    {
      const bool is_input = k < step->n_in;
      const uint32_t node = operand_of (o, step, k), value = td__c_value (o, node);
      const char *half = td__c_half ((TdDtype)o->s->nodes[node].dtype);

      if (!is_half_array (o, step, k)
          || (back ? is_input && !(step->kind == TD_STEP_OP && step->cls->writes >> k & 1)
                   : !is_input))
        continue;
      if (back)
        P (o, "  %s_of_floats (%s, v%u, %lld);\n", half, td__c_v (o, node), value,
           td__c_count (o, node));
      else
        P (o, "  floats_of_%s (v%u, %s, %lld);\n", half, value, td__c_v (o, node),
           td__c_count (o, node));
    }
}

/* Text as a block of its own, two places further to the right. */
static void
print_block (TdCOut *o, const char *text)
{
  P (o, "  {\n");
  while (*text != '\0')
    {
      const int n = (int)strcspn (text, "\n");

      P (o, "%s%.*s\n", n > 0 ? "  " : "", n, text);
      text += text[n] == '\n' ? n + 1 : n;
    }
  P (o, "  }\n");
}

typedef const char *(*Print) (TdCOut *o, const TdStep *step, const TdCRow *row);

static const char *
write_row (TdCOut *o, const TdStep *step, const TdCRow *row)
{
  return row->write (o, step, row->text);
}

/* A step whose halves are floats while it is printed. */
static const char *
print_in_floats (TdCOut *o, const TdStep *step, Print print, const TdCRow *row)
{
  TdExport block = { NULL, 0, 0 }, *to = o->to;
  const char *why;

  o->to = &block;
  o->in_floats = true;
  print_floats (o, step);
  print_casts (o, step, false);
  why = print (o, step, row);
  print_casts (o, step, true);
  o->in_floats = false;
  o->to = to;
  print_block (o, block.bytes);
  free (block.bytes);
  return why;
}

static void
lack (TdCOut *o, const TdStep *step, const char *why)
{
  char text[120];

  snprintf (text, sizeof text, "%s %s", step->cls->name, why);
  td__export_lack (&o->lacks, step, text);
}

static void
print_op (TdCOut *o, const TdStep *step)
{
  const TdCRow *row;
  const char *why;

  if (step->cls->flags & TD_OP_VIEW
      && td__c_value (o, td__c_in (o, step, 0)) == td__c_value (o, td__c_out (o, step, 0)))
    return; /* one array */
  row = row_of (step);
  if (row == NULL)
    {
      td__export_lack (&o->lacks, step, NULL);
      return;
    }
  P (o, "\n  /* %s", step->cls->name);
  if (step->site != NULL)
    P (o, ", %s:%d", step->site->file, step->site->line);
  P (o, " */\n");
  look_at_types (o, step);
  why = refuses (o, step, row);
  if (why == NULL && o->half != TD_F32 && (calls (row) ? !row->in_halves : row->in_floats))
    why = print_in_floats (o, step, write_row, row);
  else if (why == NULL)
    why = write_row (o, step, row);
  if (why != NULL)
    lack (o, step, why);
}

static const char *
write_draw (TdCOut *o, const TdStep *step, const TdCRow *row)
{
  (void)row;
  td__c_draw (o, step, td__c_out (o, step, 0), step->how.random_kind, 0);
  return NULL;
}

static void
print_fill (TdCOut *o, const TdStep *step)
{
  const uint32_t y = td__c_out (o, step, 0);

  look_at_types (o, step);
  P (o, "\n");
  if (step->how.origin == TD_ARRAY_RANDOM && o->half != TD_F32)
    print_in_floats (o, step, write_draw, NULL);
  else if (step->how.origin == TD_ARRAY_RANDOM)
    write_draw (o, step, NULL);
  else if (step->how.origin == TD_ARRAY_ARANGE)
    {
      td__c_each (o, td__c_count (o, y));
      P (o, "%s[i0] = ", td__c_v (o, y));
      td__c_begin_store (o, td__c_dtype (o, y));
      P (o, "%a + %a * (double)i0", step->how.a, step->how.b);
      td__c_end_store (o, td__c_dtype (o, y));
      P (o, ";\n");
    }
  else
    td__c_fill (o, y, step->how.a);
}

/* out = in, where an array from outside was changed. */
static void
print_copy (TdCOut *o, const TdStep *step)
{
  const TdValue *v = td__node_value (o->s, td__c_out (o, step, 0));

  if (v->kind == TD_VALUE_EXTERNAL && v->index < o->s->n_arguments)
    td__export_lack (&o->lacks, step, "an argument that is changed in place");
  else
    P (o, "\n  memcpy (v%u, v%u, %lld * sizeof *v%u);\n",
       td__c_value (o, td__c_out (o, step, 0)), td__c_value (o, td__c_in (o, step, 0)),
       td__c_count (o, td__c_out (o, step, 0)), td__c_value (o, td__c_out (o, step, 0)));
}

void
td__c_step (TdCOut *o, const TdStep *step)
{
  if (step->kind == TD_STEP_OP)
    print_op (o, step);
  else if (step->kind == TD_STEP_FILL)
    print_fill (o, step);
  else if (step->kind == TD_STEP_COPY)
    print_copy (o, step);
  else
    td__export_lack_outside (&o->lacks, step);
}
