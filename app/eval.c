/* One call of `tapedeck eval`: finding the function, its operands, the call.
 *
 * SPDX-License-Identifier: MIT */
#define TD_NO_SITES
#include "eval.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- finding ------------------------------------------------------------------------------ */

static const TdEvalFunction *const tables[]
    = { td_eval_math,    td_eval_arrays, td_eval_layers,
        td_eval_windows, td_eval_losses, td_eval_sequences };

const TdEvalFunction *
td_eval_function_at (int i)
{
  for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
    for (const TdEvalFunction *f = tables[t]; f->name != NULL; f++)
      if (i-- == 0)
        return f;
  return NULL;
}

const TdEvalFunction *
td_eval_function_find (const char *name)
{
  const TdEvalFunction *f;

  for (int i = 0; (f = td_eval_function_at (i)) != NULL; i++)
    if (strcmp (f->name, name) == 0)
      return f;
  return NULL;
}

/* What a class calls its attributes. */
static const char *const class_kinds[] = {
  [TD_ATTR_INT] = "int",   [TD_ATTR_DOUBLE] = "float", [TD_ATTR_BOOL] = "bool",
  [TD_ATTR_INTS] = "ints", [TD_ATTR_SHAPE] = "ints",   [TD_ATTR_DTYPE] = "dtype",
  [TD_ATTR_U64] = "int",   [TD_ATTR_CHOICE] = "text",
};

bool
td_eval_begin (TdEval *e, const char *name)
{
  memset (e, 0, sizeof *e);
  e->function = td_eval_function_find (name);
  e->cls = td_op_class_find (name);
  if (e->function == NULL && e->cls == NULL)
    return false;
  e->attrs = calloc (TD_EVAL_MAX_ATTRS, sizeof *e->attrs);
  if (e->attrs == NULL)
    return false;
  if (e->function != NULL)
    td_eval_declare_all (e, e->function->attributes);
  else
    for (int i = 0; i < e->cls->n_attrs && i < TD_EVAL_MAX_ATTRS; i++)
      td_eval_declare (e, e->cls->attrs[i].name, class_kinds[e->cls->attrs[i].kind],
                       e->cls->attrs[i].default_text);
  return true;
}

void
td_eval_clear (TdEval *e)
{
  free (e->attrs);
  e->attrs = NULL;
}

const char *
td_eval_name (const TdEval *e)
{
  return e->function != NULL ? e->function->name : e->cls->name;
}

/* --- operands ----------------------------------------------------------------------------- */

void
td_eval_operands (const TdEval *e, int *least, int *most)
{
  char word[64];
  int used;

  *least = e->function == NULL ? e->cls->n_in_min : 0;
  *most = e->function == NULL ? e->cls->n_in_max : 0;
  if (e->function == NULL)
    return;
  for (const char *at = e->function->operands; sscanf (at, " %63s%n", word, &used) == 1;
       at += used)
    {
      *least += word[0] != '[';
      *most = strstr (word, "...") != NULL || *most < 0 ? -1 : *most + 1;
    }
}

bool
td_eval_wants_grad (const TdEval *e, int i)
{
  char word[64] = "";
  int used;

  if (td_dtype (e->in[i]) > TD_BF16)
    return false;
  if (e->function == NULL)
    return i >= 32 || (e->cls->no_grad_in >> i & 1) == 0;
  for (const char *at = e->function->operands;
       i >= 0 && sscanf (at, " %63s%n", word, &used) == 1; at += used)
    i--;
  return i >= 0 || strchr (word, '~') == NULL;
}

void
td_eval_operands_text (const TdEval *e, char *text, size_t size)
{
  const char *from = e->function != NULL ? e->function->operands : "";
  size_t used = 0;

  text[0] = '\0';
  for (; *from != '\0' && used + 2 < size; from++)
    {
      if (*from == '~')
        continue;
      if (*from == ' ')
        text[used++] = ',';
      text[used++] = *from;
      text[used] = '\0';
    }
  if (e->function != NULL)
    return;
  for (int i = 0; i < e->cls->n_in_max && used < size; i++)
    {
      bool named = e->cls->in_names != NULL && e->cls->in_names[i] != NULL;

      used += (size_t)snprintf (text + used, size - used, "%s%s%s%s", i > 0 ? ", " : "",
                                i >= e->cls->n_in_min ? "[" : "",
                                named ? e->cls->in_names[i] : "input",
                                i >= e->cls->n_in_min ? "]" : "");
    }
  if (e->cls->n_in_max < 0)
    snprintf (text, size, "xs...");
}

TdVar *
td_eval_in (const TdEval *e, int i)
{
  return i < e->n_in ? e->in[i] : NULL;
}

bool
td_eval_complete (TdEval *e, int n_in)
{
  char operands[300], text[80];
  int least, most;

  td_eval_operands (e, &least, &most);
  for (int i = 0; i < e->n_attrs; i++)
    if (e->attrs[i].required && !e->attrs[i].given)
      {
        snprintf (text, sizeof text, "--attr %s=... is missing", e->attrs[i].name);
        snprintf (e->wrong, sizeof e->wrong, "%s: %s", td_eval_name (e), text);
        return false;
      }
  if (n_in >= least && (n_in <= most || most < 0) && n_in <= TD_EVAL_MAX_ARRAYS)
    return true;
  td_eval_operands_text (e, operands, sizeof operands);
  if (most < 0)
    snprintf (text, sizeof text, "at least %d", least);
  else if (least == most)
    snprintf (text, sizeof text, "%d", least);
  else
    snprintf (text, sizeof text, "%d to %d", least, most);
  snprintf (e->wrong, sizeof e->wrong, "%s: %s input%s expected (%s), got %d", td_eval_name (e),
            text, least == 1 && least == most ? "" : "s", operands, n_in);
  return false;
}

/* --- the call ----------------------------------------------------------------------------- */

void
td_eval_output (TdEval *e, TdVar *y)
{
  if (e->n_out < TD_EVAL_MAX_ARRAYS)
    e->out[e->n_out++] = y;
}

/* How many numbers a list holds at most: the table does not say it, but what lies next does. */
static int
room_of (const TdOpClass *cls, const TdAttr *list)
{
  size_t end = cls->attrs_size;

  for (int i = 0; i < cls->n_attrs; i++)
    {
      const size_t places[] = { cls->attrs[i].offset, cls->attrs[i].n_offset };

      for (int k = 0; k < 2; k++)
        if (places[k] > list->offset && places[k] < end)
          end = places[k];
    }
  end = (end - list->offset) / sizeof (int);
  return end < TD_EVAL_MAX_NUMBERS ? (int)end : TD_EVAL_MAX_NUMBERS;
}

/* An attribute in the form that its class wants. */
static void
store (TdEval *e, const TdAttr *attr, char *attrs)
{
  TdEvalAttr *a = td_eval_attr (e, attr->name);
  char *at = attrs + attr->offset;
  int numbers[TD_EVAL_MAX_NUMBERS] = { 0 }, n;
  TdShape shape;

  switch (attr->kind)
    {
    case TD_ATTR_INT:
    case TD_ATTR_DTYPE:
      td_eval_ints (e, attr->name, numbers, 1);
      memcpy (at, numbers, sizeof (int));
      break;
    case TD_ATTR_CHOICE:
      while (attr->choices[numbers[0]] != NULL
             && strcmp (attr->choices[numbers[0]], a->text) != 0)
        numbers[0]++;
      if (attr->choices[numbers[0]] == NULL)
        td_eval_wrong (e, attr->name, "one of the words that --help lists expected");
      memcpy (at, numbers, sizeof (int));
      break;
    case TD_ATTR_DOUBLE:
      memcpy (at, a->floats, sizeof (double));
      break;
    case TD_ATTR_BOOL:
      *(bool *)at = a->ints[0] != 0;
      break;
    case TD_ATTR_U64:
      memcpy (at, a->ints, sizeof (uint64_t));
      break;
    case TD_ATTR_SHAPE:
      shape = td_eval_shape (e, attr->name);
      memcpy (at, &shape, sizeof shape);
      break;
    case TD_ATTR_INTS:
      if (attr->n_offset == 0)
        {
          td_eval_tuple (e, attr->name, numbers, attr->count);
          memcpy (at, numbers, (size_t)attr->count * sizeof (int));
          break;
        }
      n = a->none ? -1 : td_eval_ints (e, attr->name, numbers, room_of (e->cls, attr));
      memcpy (at, numbers, (size_t)(n > 0 ? n : 0) * sizeof (int));
      memcpy (attrs + attr->n_offset, &n, sizeof n);
      break;
    }
}

static void
call_class (TdEval *e)
{
  char *attrs = calloc (1, e->cls->attrs_size + 1);

  if (attrs == NULL)
    return td_eval_wrong (e, "", "no memory");
  for (int i = 0; i < e->cls->n_attrs; i++)
    store (e, &e->cls->attrs[i], attrs);
  if (e->wrong[0] == '\0')
    {
      e->n_out = e->cls->n_out > 0 ? e->cls->n_out : 1;
      td_apply (e->cls, attrs, e->in, e->n_in, e->out, e->n_out);
    }
  free (attrs);
}

bool
td_eval_call (TdEval *e)
{
  const TdEvalFunction *f = e->function;

  e->n_out = 0;
  if (f == NULL)
    call_class (e);
  else if (f->unary != NULL)
    td_eval_output (e, f->unary (e->in[0]));
  else if (f->binary != NULL)
    td_eval_output (e, f->binary (e->in[0], e->in[1]));
  else
    f->call (e);
  return e->wrong[0] == '\0' && td_error () == NULL;
}
