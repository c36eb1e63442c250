/* One call of `tapedeck eval`: finding the function, its attributes from text, the call.
 *
 * SPDX-License-Identifier: MIT */
#define TD_NO_SITES
#include "eval.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- finding ------------------------------------------------------------------------------ */

static const TdEvalFunction *const tables[]
    = { td_eval_math, td_eval_arrays, td_eval_layers, td_eval_losses, td_eval_sequences };

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
  [TD_ATTR_U64] = "int",
};

static void
declare (TdEval *e, const char *name, const char *kind, const char *default_text)
{
  TdEvalAttr *a = &e->attrs[e->n_attrs++];

  snprintf (a->name, sizeof a->name, "%s", name);
  snprintf (a->kind, sizeof a->kind, "%s", kind);
  a->required = default_text == NULL;
  snprintf (a->default_text, sizeof a->default_text, "%s",
            default_text != NULL ? default_text : "");
}

/* From "ksize:ints stride:ints=None". */
static void
declare_all (TdEval *e, const char *attributes)
{
  char name[32], kind[12], value[200];
  int used;

  for (const char *at = attributes; at != NULL && *at != '\0'; at += used)
    {
      int more = 0;

      if (e->n_attrs == TD_EVAL_MAX_ATTRS
          || sscanf (at, " %31[^:]:%11[a-z]%n", name, kind, &used) != 2)
        return;
      if (at[used] == '=' && sscanf (at + used, "=%199s%n", value, &more) == 1)
        used += more;
      declare (e, name, kind, more > 0 ? value : NULL);
    }
}

static bool parse_value (TdEval *e, TdEvalAttr *a, const char *text);

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
    declare_all (e, e->function->attributes);
  else
    for (int i = 0; i < e->cls->n_attrs && i < TD_EVAL_MAX_ATTRS; i++)
      declare (e, e->cls->attrs[i].name, class_kinds[e->cls->attrs[i].kind],
               e->cls->attrs[i].default_text);
  for (int i = 0; i < e->n_attrs; i++)
    if (!e->attrs[i].required)
      parse_value (e, &e->attrs[i], e->attrs[i].default_text);
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

/* --- attributes --------------------------------------------------------------------------- */

static const struct
{
  const char *name;
  TdDtype dtype;
} dtypes[] = {
  { "float32", TD_F32 }, { "f32", TD_F32 },       { "f4", TD_F32 },    { "f", TD_F32 },
  { "float64", TD_F64 }, { "f64", TD_F64 },       { "f8", TD_F64 },    { "d", TD_F64 },
  { "float", TD_F64 },   { "float16", TD_F16 },   { "f16", TD_F16 },   { "f2", TD_F16 },
  { "e", TD_F16 },       { "bfloat16", TD_BF16 }, { "bf16", TD_BF16 }, { "int32", TD_I32 },
  { "i32", TD_I32 },     { "i4", TD_I32 },        { "i", TD_I32 },     { "int64", TD_I64 },
  { "i64", TD_I64 },     { "i8", TD_I64 },        { "q", TD_I64 },     { "int", TD_I64 },
  { "uint8", TD_U8 },    { "u8", TD_U8 },         { "u1", TD_U8 },     { "B", TD_U8 },
  { "bool", TD_BOOL },   { "b1", TD_BOOL },       { "?", TD_BOOL },    { "bool_", TD_BOOL },
};

void
td_eval_wrong (TdEval *e, const char *name, const char *what)
{
  if (e->wrong[0] == '\0')
    snprintf (e->wrong, sizeof e->wrong, "%s: attribute %.40s: %.300s", td_eval_name (e), name,
              what);
}

/* Numbers by commas; brackets of nested lists say nothing that is needed. */
static bool
parse_numbers (TdEvalAttr *a, const char *text, bool whole)
{
  a->n = 0;
  while (true)
    {
      char *end;

      text += strspn (text, " ([{");
      if (a->n == TD_EVAL_MAX_NUMBERS)
        return false;
      if (*text == '\0' && a->n == 0)
        return true; /* the empty list */
      errno = 0;
      if (whole)
        a->floats[a->n] = (double)(a->ints[a->n] = strtoll (text, &end, 10));
      else
        a->floats[a->n] = strtod (text, &end);
      if (end == text)
        return a->n > 0 && *text == '\0'; /* "(2,)" */
      if (errno == ERANGE && whole)
        return false;
      a->n++;
      text = end + strspn (end, " )]}");
      if (*text == '\0')
        return true;
      if (*text++ != ',')
        return false;
      text += strspn (text, " )]}");
    }
}

static bool
parse_bool (TdEvalAttr *a, const char *text)
{
  static const char *const words[] = { "false", "true", "False", "True", "0", "1" };

  for (int i = 0; i < 6; i++)
    if (strcmp (text, words[i]) == 0)
      {
        a->ints[0] = i % 2;
        a->n = 1;
        return true;
      }
  return false;
}

static bool
parse_dtype (TdEvalAttr *a, const char *text)
{
  text += strncmp (text, "numpy.", 6) == 0 ? 6 : strncmp (text, "np.", 3) == 0 ? 3 : 0;
  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
    if (strcmp (text, dtypes[i].name) == 0)
      {
        a->ints[0] = dtypes[i].dtype;
        a->n = 1;
        return true;
      }
  return false;
}

static bool
parse_value (TdEval *e, TdEvalAttr *a, const char *text)
{
  const char *expected;
  bool ok = true;

  a->none = strcmp (text, "None") == 0;
  a->n = 0;
  if (strlen (text) >= sizeof a->text)
    return td_eval_wrong (e, a->name, "its value is too long"), false;
  memmove (a->text, text, strlen (text) + 1);
  if (a->none && strcmp (a->default_text, "None") == 0)
    return true;
  if (strcmp (a->kind, "text") == 0)
    {
      a->none = false;
      return true;
    }
  if (strcmp (a->kind, "bool") == 0)
    ok = parse_bool (a, text), expected = "true or false";
  else if (strcmp (a->kind, "dtype") == 0)
    ok = parse_dtype (a, text), expected = "an element type such as float32";
  else
    {
      bool whole = a->kind[0] == 'i', one = a->kind[strlen (a->kind) - 1] != 's';

      ok = parse_numbers (a, text, whole) && (!one || a->n == 1);
      expected = whole ? one ? "a whole number" : "whole numbers, separated by commas,"
                 : one ? "a number"
                       : "numbers, separated by commas,";
    }
  if (!ok && e->wrong[0] == '\0')
    snprintf (e->wrong, sizeof e->wrong, "%s: attribute %s=%.200s: %s expected",
              td_eval_name (e), a->name, text, expected);
  return ok;
}

bool
td_eval_set (TdEval *e, const char *assignment)
{
  const char *equals = strchr (assignment, '=');
  size_t length = equals != NULL ? (size_t)(equals - assignment) : 0, used;

  if (equals == NULL)
    {
      snprintf (e->wrong, sizeof e->wrong, "--attr %.100s: NAME=VALUE expected", assignment);
      return false;
    }
  for (int i = 0; i < e->n_attrs; i++)
    if (strlen (e->attrs[i].name) == length
        && memcmp (e->attrs[i].name, assignment, length) == 0)
      {
        e->attrs[i].given = true;
        return parse_value (e, &e->attrs[i], equals + 1);
      }
  used = (size_t)snprintf (e->wrong, sizeof e->wrong, "%s has no attribute %.*s%s",
                           td_eval_name (e), length < 60 ? (int)length : 60, assignment,
                           e->n_attrs > 0 ? "; it has" : " and takes none");
  for (int i = 0; i < e->n_attrs && used < sizeof e->wrong - 40; i++)
    used += (size_t)snprintf (e->wrong + used, sizeof e->wrong - used, "%s %s",
                              i > 0 ? "," : "", e->attrs[i].name);
  return false;
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

static TdEvalAttr *
attr_of (const TdEval *e, const char *name)
{
  for (int i = 0; i < e->n_attrs; i++)
    if (strcmp (e->attrs[i].name, name) == 0)
      return &e->attrs[i];
  fprintf (stderr, "tapedeck: eval: %s declares no attribute %s\n", td_eval_name (e), name);
  abort ();
}

int64_t
td_eval_int (const TdEval *e, const char *name)
{
  return attr_of (e, name)->ints[0];
}

double
td_eval_float (const TdEval *e, const char *name)
{
  return attr_of (e, name)->floats[0];
}

bool
td_eval_bool (const TdEval *e, const char *name)
{
  return attr_of (e, name)->ints[0] != 0;
}

TdDtype
td_eval_dtype (const TdEval *e, const char *name)
{
  return (TdDtype)attr_of (e, name)->ints[0];
}

const char *
td_eval_text (const TdEval *e, const char *name)
{
  return attr_of (e, name)->text;
}

bool
td_eval_none (const TdEval *e, const char *name)
{
  return attr_of (e, name)->none;
}

int
td_eval_ints (TdEval *e, const char *name, int *numbers, int max)
{
  const TdEvalAttr *a = attr_of (e, name);
  char text[60];

  snprintf (text, sizeof text, "at most %d numbers expected, got %d", max, a->n);
  if (a->n > max)
    td_eval_wrong (e, name, text);
  for (int i = 0; i < a->n && i < max; i++)
    {
      if (a->ints[i] > INT_MAX || a->ints[i] < INT_MIN)
        td_eval_wrong (e, name, "a number is too large");
      numbers[i] = (int)a->ints[i];
    }
  return a->n < max ? a->n : max;
}

void
td_eval_tuple (TdEval *e, const char *name, int *numbers, int n)
{
  int got[TD_EVAL_MAX_NUMBERS], count;
  char text[60];

  if (td_eval_none (e, name))
    return;
  count = td_eval_ints (e, name, got, TD_EVAL_MAX_NUMBERS);
  snprintf (text, sizeof text, "1 or %d numbers expected, got %d", n, count);
  if (count != 1 && count != n)
    td_eval_wrong (e, name, text);
  for (int i = 0; i < n; i++)
    numbers[i] = count == 1 ? got[0] : i < count ? got[i] : 0;
}

TdShape
td_eval_shape (TdEval *e, const char *name)
{
  const TdEvalAttr *a = attr_of (e, name);
  TdShape shape = { .ndim = a->n < TD_MAX_DIMS ? a->n : TD_MAX_DIMS };

  if (a->n > TD_MAX_DIMS)
    td_eval_wrong (e, name, "at most 8 sizes expected");
  for (int i = 0; i < shape.ndim; i++)
    shape.dim[i] = a->ints[i];
  return shape;
}

/* --- the call ----------------------------------------------------------------------------- */

void
td_eval_give (TdEval *e, TdVar *y)
{
  if (e->n_out < TD_EVAL_MAX_ARRAYS)
    e->out[e->n_out++] = y;
}

/* An attribute in the form that its class wants. */
static void
store (TdEval *e, const TdAttr *attr, char *attrs)
{
  TdEvalAttr *a = attr_of (e, attr->name);
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
      n = a->none ? -1 : td_eval_ints (e, attr->name, numbers, TD_MAX_DIMS);
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
    td_eval_give (e, f->unary (e->in[0]));
  else if (f->binary != NULL)
    td_eval_give (e, f->binary (e->in[0], e->in[1]));
  else
    f->call (e);
  return e->wrong[0] == '\0' && td_error () == NULL;
}
