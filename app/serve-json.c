/* Requests and answers in JSON: {"inputs": {"x": [[1, 2]]}} and {"outputs": {"y": [[3]]}}.  Of
 * a model with one input the array may stand where the object does.  Numbers that are not
 * finite are the texts "nan", "inf" and "-inf", as everywhere.
 *
 * SPDX-License-Identifier: MIT */
#define TD_NO_SITES
#include "serve.h"

#include "json-read.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- elements ------------------------------------------------------------------------------
 */

/* "nan", "inf" and "-inf". */
static bool
take_words (const TdJsonReader *r, double *value)
{
  static const struct
  {
    const char *word;
    double value;
  } words[] = { { "nan", NAN }, { "inf", INFINITY }, { "-inf", -INFINITY } };

  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (td__json_is (r, words[i].word))
      {
        *value = words[i].value;
        return true;
      }
  return false;
}

static const char *
take_double (const TdJsonReader *r, double *value)
{
  if (r->token == TD_JSON_STRING && take_words (r, value))
    return NULL;
  if (!td__json_number (r, value))
    return "a number expected";
  return isfinite (*value) ? NULL : "a number that float64 can hold expected";
}

static const char *
put_f64 (const TdJsonReader *r, void *to)
{
  return take_double (r, to);
}

static const char *
put_f32 (const TdJsonReader *r, void *to)
{
  double value;
  const char *wrong = take_double (r, &value);

  if (wrong == NULL && isfinite (value) && !isfinite ((float)value))
    return "a number that float32 can hold expected";
  if (wrong == NULL)
    *(float *)to = (float)value;
  return wrong;
}

/* Digits behind a sign, and no more: 1e3 is a number, and none that is written as a whole one.
 */
static const char *
take_whole (const TdJsonReader *r, int64_t least, int64_t most, int64_t *value)
{
  TdJsonReader digits = *r;
  uint64_t size;
  bool below;

  below = r->token == TD_JSON_NUMBER && *r->text == '-';
  digits.text += below;
  digits.n -= below;
  if (!td__json_whole (&digits, &size))
    return "a whole number expected";
  if (below ? size > (uint64_t) - (least + 1) + 1 : size > (uint64_t)most)
    return "a whole number that the element type can hold expected";
  *value = below ? (int64_t)(0 - size) : (int64_t)size;
  return NULL;
}

static const char *
put_i64 (const TdJsonReader *r, void *to)
{
  return take_whole (r, INT64_MIN, INT64_MAX, to);
}

static const char *
put_i32 (const TdJsonReader *r, void *to)
{
  int64_t value;
  const char *wrong = take_whole (r, INT32_MIN, INT32_MAX, &value);

  if (wrong == NULL)
    *(int32_t *)to = (int32_t)value;
  return wrong;
}

static const char *
put_u8 (const TdJsonReader *r, void *to)
{
  int64_t value;
  const char *wrong;

  if (r->token == TD_JSON_NUMBER && *r->text == '-')
    return "a whole number from 0 to 255 expected";
  wrong = take_whole (r, 0, UINT8_MAX, &value);
  if (wrong == NULL)
    *(uint8_t *)to = (uint8_t)value;
  return wrong;
}

static const char *
put_bool (const TdJsonReader *r, void *to)
{
  if (r->token != TD_JSON_TRUE && r->token != TD_JSON_FALSE)
    return "true or false expected";
  *(uint8_t *)to = r->token == TD_JSON_TRUE;
  return NULL;
}

static void
write_f32 (TdJsonWriter *w, const void *at)
{
  td__json_rounded (w, (double)*(const float *)at, FLT_DECIMAL_DIG);
}

static void
write_f64 (TdJsonWriter *w, const void *at)
{
  td__json_double (w, *(const double *)at);
}

static void
write_i32 (TdJsonWriter *w, const void *at)
{
  td__json_int (w, *(const int32_t *)at);
}

static void
write_i64 (TdJsonWriter *w, const void *at)
{
  td__json_int (w, *(const int64_t *)at);
}

static void
write_u8 (TdJsonWriter *w, const void *at)
{
  td__json_uint (w, *(const uint8_t *)at);
}

static void
write_bool (TdJsonWriter *w, const void *at)
{
  td__json_bool (w, *(const uint8_t *)at != 0);
}

static const struct
{
  const char *(*put) (const TdJsonReader *r, void *to); /* NULL, or what is wrong */
  void (*write) (TdJsonWriter *w, const void *at);
} kinds[] = {
  [TD_F32] = { put_f32, write_f32 }, [TD_F64] = { put_f64, write_f64 },
  [TD_I32] = { put_i32, write_i32 }, [TD_I64] = { put_i64, write_i64 },
  [TD_U8] = { put_u8, write_u8 },    [TD_BOOL] = { put_bool, write_bool },
};

/* --- an array ------------------------------------------------------------------------------
 */

typedef struct
{
  TdServeArray *to;
  size_t n, room, element;          /* elements, and bytes of one */
  int depth, ndim;                  /* ndim -1: no element came yet */
  int64_t counted[TD_MAX_DIMS + 1]; /* in the lists that are open */
} Filling;

static const char *
grow (Filling *f)
{
  const size_t room = f->room == 0 ? 256 : 2 * f->room;
  void *data = realloc (f->to->data, room * f->element);

  if (data == NULL)
    return "no memory";
  f->to->data = data;
  f->room = room;
  return NULL;
}

static const char *
open_list (Filling *f)
{
  if (f->depth == TD_MAX_DIMS)
    return "at most 8 axes expected";
  if (f->depth == f->ndim)
    return "lists of one length expected: a list stands where a number did";
  f->counted[f->depth++] = 0;
  return NULL;
}

static const char *
close_list (Filling *f)
{
  int64_t *dim;

  if (f->ndim < 0) /* without an element: the axes end here */
    f->ndim = f->depth;
  dim = &f->to->shape.dim[--f->depth];
  if (*dim < 0)
    *dim = f->counted[f->depth];
  else if (*dim != f->counted[f->depth])
    return "lists of one length expected";
  if (f->depth > 0)
    f->counted[f->depth - 1]++;
  return NULL;
}

static const char *
put_element (Filling *f, const TdJsonReader *r)
{
  const char *wrong = NULL;

  if (f->ndim < 0)
    f->ndim = f->depth;
  if (f->depth != f->ndim)
    return "lists of one length expected: an element stands where a list did";
  if (f->n == f->room)
    wrong = grow (f);
  if (wrong == NULL)
    wrong = kinds[f->to->dtype].put (r, (char *)f->to->data + f->n * f->element);
  if (wrong != NULL)
    return wrong;
  f->n++;
  if (f->depth > 0)
    f->counted[f->depth - 1]++;
  return NULL;
}

/* Where is said when all has been read. */
static bool
not_json (char *why)
{
  *why = '\0';
  return false;
}

static bool
say_where (const TdJsonReader *r, const char *body, size_t n, char *why)
{
  const char *at = r->wrong != NULL ? r->wrong : body, *line = body;
  unsigned long long n_lines = 1;

  if (n == 0)
    return td_serve_refuse (why, "the body is empty: JSON, {\"inputs\": ...}, expected");
  for (const char *c = body; c < at; c++)
    if (*c == '\n')
      {
        n_lines++;
        line = c + 1;
      }
  return td_serve_refuse (why,
                          "the body is no JSON (RFC 8259) at line %llu, byte %llu%s; NaN and "
                          "infinities are the texts \"nan\", \"inf\" and \"-inf\"",
                          n_lines, (unsigned long long)(at - line) + 1,
                          at == body + n ? ", its end" : "");
}

/* The value whose first token came last. */
static bool
read_array (TdJsonReader *r, const TdOnnxInfo *port, TdServeArray *to, char *why)
{
  Filling f = { .to = to, .ndim = -1 };
  const char *wrong = NULL;

  if (to->data != NULL)
    return td_serve_refuse (why, "input %.100s comes twice", port->name);
  to->dtype = td_serve_wire (port->dtype);
  f.element = td_dtype_bytes (to->dtype);
  for (int d = 0; d < TD_MAX_DIMS; d++)
    to->shape.dim[d] = -1;
  wrong = grow (&f); /* there, even if it is empty */
  for (; wrong == NULL; td__json_next (r))
    {
      if (r->token == TD_JSON_WRONG)
        return not_json (why);
      else if (r->token == TD_JSON_ARRAY)
        wrong = open_list (&f);
      else if (r->token == TD_JSON_ARRAY_END)
        wrong = close_list (&f);
      else
        wrong = put_element (&f, r);
      if (f.depth == 0)
        break;
    }
  if (wrong != NULL)
    return td_serve_refuse (why, "input %.100s, element %zu: %s", port->name, f.n, wrong);
  to->shape.ndim = f.ndim;
  to->bytes = f.n * f.element;
  return true;
}

/* --- a body --------------------------------------------------------------------------------
 */

static bool
read_by_name (TdJsonReader *r, const TdServePorts *p, TdServeArray *in, char *why)
{
  while (td__json_next (r) == TD_JSON_KEY)
    {
      char name[120];
      int i = 0;

      while (i < p->n_in && !td__json_is (r, p->in[i].name))
        i++;
      td__json_text (r, name, sizeof name);
      if (i == p->n_in)
        return td_serve_refuse (why, "the model has no input %.100s", name);
      td__json_next (r);
      if (!read_array (r, &p->in[i], &in[i], why))
        return false;
    }
  return r->token == TD_JSON_OBJECT_END || not_json (why);
}

static bool
read_inputs (TdJsonReader *r, const TdServePorts *p, TdServeArray *in, char *why)
{
  if (td__json_next (r) == TD_JSON_OBJECT)
    return read_by_name (r, p, in, why);
  if (r->token != TD_JSON_WRONG && p->n_needed != 1 && p->n_in != 1)
    return td_serve_refuse (why,
                            "\"inputs\": an object with the model's %d inputs by name "
                            "expected",
                            p->n_in);
  return r->token == TD_JSON_WRONG ? not_json (why) : read_array (r, &p->in[0], &in[0], why);
}

static bool
read_body (TdJsonReader *r, const TdServePorts *p, TdServeArray *in, char *why)
{
  bool has_inputs = false;

  if (td__json_next (r) == TD_JSON_WRONG)
    return not_json (why);
  if (r->token != TD_JSON_OBJECT)
    return td_serve_refuse (why, "an object with the member \"inputs\" expected");
  while (td__json_next (r) == TD_JSON_KEY)
    {
      char name[120];

      td__json_text (r, name, sizeof name);
      if (td__json_is (r, "inputs") && has_inputs)
        return td_serve_refuse (why, "\"inputs\" comes twice");
      if (!td__json_is (r, "inputs"))
        return td_serve_refuse (why, "\"%.100s\": one member expected, \"inputs\"", name);
      has_inputs = true;
      if (!read_inputs (r, p, in, why))
        return false;
    }
  if (r->token != TD_JSON_OBJECT_END || td__json_next (r) != TD_JSON_END)
    return not_json (why);
  if (!has_inputs)
    return td_serve_refuse (why, "an object with the member \"inputs\" expected");
  for (int i = 0; i < p->n_in; i++)
    if (in[i].data == NULL && !p->in[i].is_optional)
      return td_serve_refuse (why, "input %.100s is missing", p->in[i].name);
  return true;
}

bool
td_serve_json_read (const TdServePorts *p, const char *body, size_t n, TdServeArray *in,
                    char *why)
{
  TdJsonReader r;

  td__json_read (&r, body, n);
  return read_body (&r, p, in, why) || (*why == '\0' && say_where (&r, body, n, why));
}

/* --- an answer -----------------------------------------------------------------------------
 */

static void
write_axis (TdJsonWriter *w, const TdServeArray *a, int axis, size_t element, const char **at)
{
  if (axis == a->shape.ndim)
    {
      kinds[a->dtype].write (w, *at);
      *at += element;
      return;
    }
  td__json_begin_array (w);
  for (int64_t i = 0; i < a->shape.dim[axis]; i++)
    write_axis (w, a, axis + 1, element, at);
  td__json_end_array (w);
}

char *
td_serve_json_write (const TdServePorts *p, const TdServeArray *out, size_t *n)
{
  TdJsonText text = { 0 };
  TdJsonWriter w;

  td__json_write (&w, td__json_put_text, &text, TD_JSON_TIGHT);
  td__json_begin_object (&w);
  td__json_key (&w, "outputs");
  td__json_begin_object (&w);
  for (int k = 0; k < p->n_out; k++)
    {
      const char *at = out[k].data;

      td__json_key (&w, p->out[k].name);
      write_axis (&w, &out[k], 0, td_dtype_bytes (out[k].dtype), &at);
    }
  td__json_end_object (&w);
  td__json_end_object (&w);
  if (text.is_cut)
    {
      free (text.text);
      return NULL;
    }
  *n = text.n;
  return text.text;
}
