/* What `tapedeck eval --list` and `tapedeck eval OP --help` print.
 *
 * SPDX-License-Identifier: MIT */
#define TD_NO_SITES
#include "eval.h"

#include <stdio.h>
#include <string.h>

static const struct
{
  const char *kind, *text;
} kinds[] = {
  { "int", "a whole number" },
  { "int?", "a whole number or None" },
  { "ints", "whole numbers by commas" },
  { "float", "a number" },
  { "floats", "numbers by commas" },
  { "bool", "true or false" },
  { "text", "a word" },
  { "dtype", "float16, bfloat16, float32, float64, int32, int64, uint8, bool" },
};

static const char *
kind_text (const char *kind)
{
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (strcmp (kinds[i].kind, kind) == 0)
      return kinds[i].text;
  return kind;
}

/* "max_pooling_2d (x; ksize, stride=None, pad=0)" */
static void
print_signature (const TdEval *e)
{
  char operands[300];

  td_eval_operands_text (e, operands, sizeof operands);
  printf ("%s (%s", td_eval_name (e), operands);
  for (int i = 0; i < e->n_attrs; i++)
    printf ("%s%s%s%s", i == 0 ? "; " : ", ", e->attrs[i].name, e->attrs[i].required ? "" : "=",
            e->attrs[i].default_text);
  fputs (")", stdout);
}

static const char *
formula (const TdEval *e)
{
  const char *text = e->function != NULL ? e->function->formula : e->cls->formula;

  return text != NULL ? text : "";
}

static void
print_line (const char *name)
{
  TdEval e;

  if (!td_eval_begin (&e, name))
    return;
  print_signature (&e);
  printf ("  %s\n", formula (&e));
  td_eval_clear (&e);
}

static bool
listed_before (int at, const char *group)
{
  for (int i = 0; i < at; i++)
    if (strcmp (td_eval_function_at (i)->group, group) == 0)
      return true;
  return false;
}

void
td_eval_print_list (void)
{
  const TdEvalFunction *f, *g;
  const TdOpClass *cls;

  for (int i = 0; (f = td_eval_function_at (i)) != NULL; i++)
    {
      if (listed_before (i, f->group))
        continue;
      printf ("%s%s:\n", i == 0 ? "" : "\n", f->group);
      for (int k = i; (g = td_eval_function_at (k)) != NULL; k++)
        if (strcmp (g->group, f->group) == 0)
          print_line (g->name);
    }
  puts ("\nother operations, which functions and gradients are made of:");
  for (int i = 0; (cls = td_op_class_at (i)) != NULL; i++)
    if (td_eval_function_find (cls->name) == NULL)
      print_line (cls->name);
}

void
td_eval_print_help (const TdEval *e)
{
  char operands[300];

  td_eval_operands_text (e, operands, sizeof operands);
  fputs ("Usage: tapedeck eval ", stdout);
  print_signature (e);
  printf ("\n\n  %s\n\nInputs, in this order: %s\n", formula (e), operands);
  for (int i = 0; i < e->n_attrs; i++)
    {
      const TdEvalAttr *a = &e->attrs[i];

      printf ("%s  --attr %s=...  %s; %s%s\n", i == 0 ? "Attributes:\n" : "", a->name,
              kind_text (a->kind), a->required ? "must be given" : "default ", a->default_text);
    }
}

void
td_eval_print_onnx (void)
{
  TdOnnxOperator o;

  for (int i = 0; (o = td_onnx_operator_at (i)).name != NULL; i++)
    printf ("%-20s %2d-%d  %s%s\n", o.name, o.from, o.to, o.limits != NULL ? "partly: " : "yes",
            o.limits != NULL ? o.limits : "");
}
