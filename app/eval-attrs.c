/* The attributes of a call of `tapedeck eval`: declared as text, given as text, taken as
 * numbers.
 *
 * SPDX-License-Identifier: MIT */
#define TD_NO_SITES
#include "eval.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* --- declaring and setting --- */

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
  if (a->none && (strcmp (a->default_text, "None") == 0 || strchr (a->kind, '?') != NULL))
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

void
td_eval_declare (TdEval *e, const char *name, const char *kind, const char *default_text)
{
  TdEvalAttr *a = &e->attrs[e->n_attrs++];

  snprintf (a->name, sizeof a->name, "%s", name);
  snprintf (a->kind, sizeof a->kind, "%s", kind);
  a->required = default_text == NULL;
  snprintf (a->default_text, sizeof a->default_text, "%s",
            default_text != NULL ? default_text : "");
  if (default_text != NULL)
    parse_value (e, a, a->default_text);
}

/* From "ksize:ints stride:ints=None". */
void
td_eval_declare_all (TdEval *e, const char *attributes)
{
  char name[32], kind[12], value[200];
  int used;

  for (const char *at = attributes; at != NULL && *at != '\0'; at += used)
    {
      int more = 0;

      if (e->n_attrs == TD_EVAL_MAX_ATTRS
          || sscanf (at, " %31[^:]:%11[a-z?]%n", name, kind, &used) != 2)
        return;
      if (at[used] == '=' && sscanf (at + used, "=%199s%n", value, &more) == 1)
        used += more;
      td_eval_declare (e, name, kind, more > 0 ? value : NULL);
    }
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

/* --- for rows --- */

TdEvalAttr *
td_eval_attr (const TdEval *e, const char *name)
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
  return td_eval_attr (e, name)->ints[0];
}

double
td_eval_float (const TdEval *e, const char *name)
{
  return td_eval_attr (e, name)->floats[0];
}

bool
td_eval_bool (const TdEval *e, const char *name)
{
  return td_eval_attr (e, name)->ints[0] != 0;
}

TdDtype
td_eval_dtype (const TdEval *e, const char *name)
{
  return (TdDtype)td_eval_attr (e, name)->ints[0];
}

const char *
td_eval_text (const TdEval *e, const char *name)
{
  return td_eval_attr (e, name)->text;
}

bool
td_eval_none (const TdEval *e, const char *name)
{
  return td_eval_attr (e, name)->none;
}

int
td_eval_choice (TdEval *e, const char *name, const char *const *words, int n)
{
  const char *text = td_eval_attr (e, name)->text;
  char expected[200] = "";
  size_t used = 0;

  for (int i = 0; i < n; i++)
    {
      if (strcmp (text, words[i]) == 0)
        return i;
      used += (size_t)snprintf (expected + used, sizeof expected - used, "%s%s",
                                i == 0       ? ""
                                : i == n - 1 ? " or "
                                             : ", ",
                                words[i]);
    }
  snprintf (expected + used, sizeof expected - used, " expected, got %.40s", text);
  td_eval_wrong (e, name, expected);
  return 0;
}

int
td_eval_ints (TdEval *e, const char *name, int *numbers, int max)
{
  const TdEvalAttr *a = td_eval_attr (e, name);
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
  const TdEvalAttr *a = td_eval_attr (e, name);
  TdShape shape = { .ndim = a->n < TD_MAX_DIMS ? a->n : TD_MAX_DIMS };

  if (a->n > TD_MAX_DIMS)
    td_eval_wrong (e, name, "at most 8 sizes expected");
  for (int i = 0; i < shape.ndim; i++)
    shape.dim[i] = a->ints[i];
  return shape;
}
