/*
 * Reads an expression from left to right and computes while it reads. The first mistake ends
 * it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "gradient/td-evaluate.h"

#include <gio/gio.h>
#include <math.h>
#include <string.h>

#include "gradient/td-evaluate-name.h"
#include "td-tensor-private.h"

/* So deep may brackets be: the stack is used for them. */
#define MOST_DEEP 64
#define MOST_PRINTED 6

typedef struct
{
  const char *text, *p;
  const TdEvaluateSource *source;
  guint deep;
  GError **error;
} Reader;

static TdTensor *read_sum (Reader *r);

/* Always NULL: what a reader returns that could not go on. The first mistake is the one. */
G_GNUC_PRINTF (3, 4)
static TdTensor *
mistake (Reader *r, const char *at, const char *format, ...)
{
  va_list args;

  va_start (args, format);
  g_autofree char *what = g_strdup_vprintf (format, args);
  va_end (args);
  if (r->error && !*r->error)
    g_set_error (r->error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT, "character %ld: %s",
                 g_utf8_pointer_to_offset (r->text, at) + 1, what);
  return NULL;
}

static void
skip_spaces (Reader *r)
{
  while (g_ascii_isspace (*r->p))
    r->p++;
}

static gboolean
accept (Reader *r, char c)
{
  skip_spaces (r);
  if (*r->p != c)
    return FALSE;
  r->p++;
  return TRUE;
}

/* ---- values ---- */

static TdTensor *
new_result (guint ndim, const gint64 *dims, guint64 n)
{
  TdTensor *t = td__tensor_new_empty ();

  t->title = g_strdup ("");
  t->subtitle = g_strdup ("");
  t->dtype = TD_TAPE_F64;
  t->ndim = ndim;
  for (guint k = 0; k < ndim; k++)
    t->dims[k] = dims[k];
  t->slice = td_slice_whole (ndim, dims);
  t->n_total = t->n_values = n;
  t->values = g_new (double, MAX (n, 1));
  return t;
}

static TdTensor *
new_number (double value)
{
  TdTensor *t = new_result (0, NULL, 1);

  t->values[0] = value;
  return t;
}

static double
compute (char op, double a, double b)
{
  switch (op)
    {
    case '+':
      return a + b;
    case '-':
      return a - b;
    case '*':
      return a * b;
    default:
      return a / b;
    }
}

/* Takes a and b. */
static TdTensor *
combine (Reader *r, const char *at, char op, TdTensor *a, TdTensor *b)
{
  TdTensor *t = NULL;
  gboolean same = a && b && a->ndim == b->ndim
                  && memcmp (a->dims, b->dims, a->ndim * sizeof a->dims[0]) == 0;

  if (a && b && (same || a->ndim == 0 || b->ndim == 0))
    {
      const TdTensor *shape = a->ndim > 0 ? a : b;
      t = new_result (shape->ndim, shape->dims, shape->n_total);
      for (guint64 i = 0; i < t->n_total; i++)
        t->values[i]
            = compute (op, a->values[a->ndim > 0 ? i : 0], b->values[b->ndim > 0 ? i : 0]);
    }
  else if (a && b)
    {
      g_autofree char *of_a = td_slice_dup_index (a->ndim, a->dims);
      g_autofree char *of_b = td_slice_dup_index (b->ndim, b->dims);
      mistake (r, at, "%c is between shapes %s and %s", op, of_a, of_b);
    }
  td_tensor_free (a);
  td_tensor_free (b);
  return t;
}

/* ---- functions ---- */

static double
get_sum (const TdTensor *t)
{
  double sum = 0;

  for (guint64 i = 0; i < t->n_values; i++)
    sum += t->values[i];
  return sum;
}

static double
get_mean (const TdTensor *t)
{
  return get_sum (t) / (double)t->n_values;
}

static double
get_norm (const TdTensor *t)
{
  double square = 0;

  for (guint64 i = 0; i < t->n_values; i++)
    square += t->values[i] * t->values[i];
  return sqrt (square);
}

/* NaN where one of the values is: it is neither larger nor smaller. */
static double
find_end (const TdTensor *t, double sign)
{
  double end = t->n_values > 0 ? t->values[0] : NAN;

  for (guint64 i = 1; i < t->n_values; i++)
    if (isnan (t->values[i]) || sign * t->values[i] > sign * end)
      end = t->values[i];
  return end;
}

static double
get_min (const TdTensor *t)
{
  return find_end (t, -1);
}

static double
get_max (const TdTensor *t)
{
  return find_end (t, 1);
}

static const struct
{
  const char *name;
  double (*of_each) (double);
  double (*of_all) (const TdTensor *);
} functions[] = {
  { "abs", fabs, NULL },    { "sqrt", sqrt, NULL },   { "exp", exp, NULL },
  { "log", log, NULL },     { "sum", NULL, get_sum }, { "mean", NULL, get_mean },
  { "min", NULL, get_min }, { "max", NULL, get_max }, { "norm", NULL, get_norm },
};

/* -1: it is none. */
static int
find_function (const char *name)
{
  for (gsize i = 0; i < G_N_ELEMENTS (functions); i++)
    if (g_str_equal (functions[i].name, name))
      return (int)i;
  return -1;
}

/* Takes x. */
static TdTensor *
apply (int function, TdTensor *x)
{
  TdTensor *y;

  if (!x)
    return NULL;
  if (functions[function].of_all)
    y = new_number (functions[function].of_all (x));
  else
    {
      y = new_result (x->ndim, x->dims, x->n_total);
      for (guint64 i = 0; i < x->n_total; i++)
        y->values[i] = functions[function].of_each (x->values[i]);
    }
  td_tensor_free (x);
  return y;
}

/* ---- reading ---- */

/* A slice behind a value, which is taken. Brackets do not nest in it. */
static TdTensor *
read_slice (Reader *r, TdTensor *x)
{
  const char *begin = r->p, *end = strchr (begin, ']');
  g_autoptr (GError) error = NULL;
  TdSlice slice;
  TdTensor *part = NULL;
  guint at = 0;

  if (!end)
    mistake (r, begin, "the bracket is not closed");
  else
    {
      g_autofree char *text = g_strndup (begin, (gsize)(end + 1 - begin));
      if (td_slice_parse (text, x->ndim, x->dims, &slice, &at, &error))
        part = td_tensor_take (x, &slice, &error);
      if (part)
        r->p = end + 1;
      else
        {
          const char *what = strstr (error->message, ": ");
          mistake (r, g_utf8_offset_to_pointer (begin, (glong)at), "%s",
                   what ? what + 2 : error->message);
        }
    }
  td_tensor_free (x);
  return part;
}

static gboolean
is_name (char c)
{
  return g_ascii_isalnum (c) || strchr ("_/.:", c) || (c & 0x80);
}

static char *
dup_name (Reader *r)
{
  const char *begin = r->p;

  if (*begin == '"')
    {
      const char *end = strchr (begin + 1, '"');
      if (!end)
        {
          mistake (r, begin, "the quotation is not closed");
          return NULL;
        }
      r->p = end + 1;
      return g_strndup (begin + 1, (gsize)(end - begin - 1));
    }
  if (*r->p == '#')
    r->p++;
  /* x-y is a difference, and so is what a / b is where spaces are around */
  while (*r->p && is_name (*r->p))
    r->p++;
  return g_strndup (begin, (gsize)(r->p - begin));
}

/* Arrays are used again: has another variable been written over this one by now? What shows the
 * same array in another shape has not. */
static gboolean
is_written_over (const TdEvaluateSource *s, guint var)
{
  const TdTapeIteration *t = td_iteration_get_tape (s->iteration);
  guint64 id = td_tape_var_id (t, var);

  for (guint k = 0; k < t->n_vars; k++)
    if (t->vars[k].producer > t->vars[var].producer && t->vars[k].producer <= s->event
        && td_tape_var_id (t, k) == id)
      return TRUE;
  return FALSE;
}

/* What the program has there; NULL: it has it no longer, or there is none. */
static TdTensor *
read_from_program (const TdEvaluateSource *s, guint var, GError **error)
{
  guint64 id = td_tape_var_id (td_iteration_get_tape (s->iteration), var);

  if (!s->read || id == 0)
    return NULL;
  if (!is_written_over (s, var))
    return s->read (id, s->data, error);
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND, "its array is used for another");
  return NULL;
}

static gboolean
is_whole (const TdTensor *x)
{
  return x && x->values && x->n_values == x->n_total;
}

static TdTensor *
read_variable (Reader *r, const char *at, const char *name)
{
  const TdEvaluateSource *s = r->source;
  g_autoptr (GError) error = NULL, gone = NULL;
  gint var = td__evaluate_find (s->iteration, name, s->event, &error);
  TdTensor *x, *live;

  if (var < 0)
    return mistake (r, at, "%s", error->message);
  live = read_from_program (s, (guint)var, &gone);
  if (is_whole (live))
    return live;
  x = td_tensor_new (s->reader, s->iteration, (guint)var, s->event);
  if (!is_whole (x))
    {
      if (x->values || live)
        mistake (r, at, "of %s only a part is %s", name, live ? "read" : "recorded");
      else if (gone)
        mistake (r, at, "values of %s are not recorded, and cannot be read: %s", name,
                 gone->message);
      else
        mistake (r, at, "values of %s are not recorded at this moment", name);
      g_clear_pointer (&x, td_tensor_free);
    }
  td_tensor_free (live);
  return x;
}

static TdTensor *
read_primary (Reader *r)
{
  TdTensor *x = NULL;

  skip_spaces (r);
  const char *begin = r->p;
  if (accept (r, '('))
    {
      x = read_sum (r);
      if (x && !accept (r, ')'))
        {
          td_tensor_free (x);
          return mistake (r, r->p, "a bracket is not closed");
        }
    }
  else if (g_ascii_isdigit (*r->p) || (*r->p == '.' && g_ascii_isdigit (r->p[1])))
    {
      char *end;
      x = new_number (g_ascii_strtod (r->p, &end));
      r->p = end;
    }
  else if (*r->p == '"' || *r->p == '#' || (*r->p && is_name (*r->p)))
    {
      g_autofree char *name = dup_name (r);
      if (!name)
        return NULL;
      skip_spaces (r);
      int function = *r->p == '(' ? find_function (name) : -1;
      if (*r->p == '(' && function < 0)
        return mistake (r, begin, "there is no function “%s”", name);
      if (function >= 0)
        x = apply (function, read_primary (r));
      else
        x = read_variable (r, begin, name);
    }
  else
    return *r->p ? mistake (r, begin, "“%.*s” is not understood here",
                            (int)(g_utf8_next_char (r->p) - r->p), r->p)
                 : mistake (r, begin, "something is missing here");
  skip_spaces (r);
  while (x && *r->p == '[')
    {
      x = read_slice (r, x);
      skip_spaces (r);
    }
  return x;
}

static TdTensor *
read_sign (Reader *r)
{
  skip_spaces (r);
  const char *at = r->p;
  if (!accept (r, '-'))
    return read_primary (r);
  if (r->deep++ > MOST_DEEP)
    return mistake (r, at, "this is too deep");
  TdTensor *x = read_sign (r);
  r->deep--;
  return x ? combine (r, at, '*', new_number (-1), x) : NULL;
}

static TdTensor *
read_product (Reader *r)
{
  TdTensor *x = read_sign (r);

  for (;;)
    {
      skip_spaces (r);
      const char *at = r->p;
      char op = *at;
      if (!x || (op != '*' && op != '/'))
        return x;
      r->p++;
      x = combine (r, at, op, x, read_sign (r));
    }
}

static TdTensor *
read_sum (Reader *r)
{
  if (r->deep++ > MOST_DEEP)
    return mistake (r, r->p, "this is too deep");
  TdTensor *x = read_product (r);
  for (;;)
    {
      skip_spaces (r);
      const char *at = r->p;
      char op = *at;
      if (!x || (op != '+' && op != '-'))
        break;
      r->p++;
      x = combine (r, at, op, x, read_product (r));
    }
  r->deep--;
  return x;
}

TdTensor *
td_evaluate (const char *text, const TdEvaluateSource *source, GError **error)
{
  Reader r = { .text = text, .p = text, .source = source, .error = error };
  TdTensor *x;

  if (!g_utf8_validate (text, -1, NULL))
    return mistake (&r, text, "the text is not UTF-8");
  x = read_sum (&r);
  if (x && *r.p)
    {
      mistake (&r, r.p, "“%.*s” is not understood here", (int)(g_utf8_next_char (r.p) - r.p),
               r.p);
      g_clear_pointer (&x, td_tensor_free);
    }
  return x;
}

char *
td_evaluate_print (const TdTensor *t)
{
  char text[TD_FORMAT_SIZE], end[TD_FORMAT_SIZE];

  if (t->ndim == 0 && t->n_values == 1)
    return g_strdup (td_format_digits (text, t->values[0], 12));
  g_autofree char *shape = td_slice_dup_index (t->ndim, t->dims);
  GString *s = g_string_new (NULL);
  g_string_append_printf (s, "shape %s", shape);
  if (t->n_values > 0)
    g_string_append_printf (s, ", %s to %s: ", td_format_digits (text, get_min (t), 4),
                            td_format_digits (end, get_max (t), 4));
  for (guint64 i = 0; i < MIN (t->n_values, MOST_PRINTED); i++)
    g_string_append_printf (s, "%s%s", i > 0 ? ", " : "",
                            td_format_digits (text, t->values[i], 4));
  if (t->n_values > MOST_PRINTED)
    g_string_append (s, ", …");
  return g_string_free (s, FALSE);
}
