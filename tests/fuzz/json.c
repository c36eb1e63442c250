/* The reader of JSON, fed with whatever: it comes to an end, keeps to its bounds, and what it
 * takes is written and read again as the same.
 * SPDX-License-Identifier: MIT */
#include "json-read.h"
#include "json.h"

#include <stdint.h>
#include "mutate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  N_ROUNDS = 300000,
  MAX_BYTES = 400
};

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t n);

static unsigned long n_right, n_wrong;

/* The last text, in memory of its own size. */
static char *
copy_text (const TdJsonReader *r)
{
  char *text = malloc (r->n + 1); /* no escape grows */

  if (text != NULL)
    td__json_text (r, text, r->n + 1);
  return text;
}

static void
check_text (const TdJsonReader *r)
{
  char *text = copy_text (r);

  if (text == NULL || !td__json_is (r, text) || strlen (text) > r->n)
    abort ();
  free (text);
}

static void
write_number (TdJsonWriter *w, const TdJsonReader *r)
{
  uint64_t whole;
  double value;

  if (td__json_whole (r, &whole))
    td__json_uint (w, whole);
  else if (td__json_number (r, &value))
    td__json_double (w, value);
  else
    abort ();
}

static void
write_text (TdJsonWriter *w, const TdJsonReader *r,
            void (*write) (TdJsonWriter *, const char *))
{
  char *text = copy_text (r);

  if (text == NULL)
    abort ();
  write (w, text);
  free (text);
}

/* Write the token that came last. */
static void
write_token (TdJsonWriter *w, const TdJsonReader *r)
{
  switch (r->token)
    {
    case TD_JSON_OBJECT:
      td__json_begin_object (w);
      break;
    case TD_JSON_OBJECT_END:
      td__json_end_object (w);
      break;
    case TD_JSON_ARRAY:
      td__json_begin_array (w);
      break;
    case TD_JSON_ARRAY_END:
      td__json_end_array (w);
      break;
    case TD_JSON_KEY:
      write_text (w, r, td__json_key);
      break;
    case TD_JSON_STRING:
      write_text (w, r, td__json_string);
      break;
    case TD_JSON_NUMBER:
      write_number (w, r);
      break;
    case TD_JSON_TRUE:
    case TD_JSON_FALSE:
      td__json_bool (w, r->token == TD_JSON_TRUE);
      break;
    case TD_JSON_NULL:
      td__json_null (w);
      break;
    case TD_JSON_WRONG:
    case TD_JSON_END:
    default:
      abort ();
    }
}

static bool
same_number (const TdJsonReader *a, const TdJsonReader *b)
{
  double x, y;

  return td__json_number (a, &x) && td__json_number (b, &y) && memcmp (&x, &y, sizeof x) == 0;
}

static bool
same_text (const TdJsonReader *a, const TdJsonReader *b)
{
  char *text = copy_text (a);
  const bool same = text != NULL && td__json_is (b, text);

  free (text);
  return same;
}

/* Write what is right again, and read both side by side.  In the style of Python alone 1e999 is
 * still a number. */
static void
check_written (const char *data, size_t n, TdJsonStyle style)
{
  TdJsonText out = { 0 };
  TdJsonReader first, second;
  TdJsonWriter w;

  td__json_read (&first, data, n);
  td__json_write (&w, td__json_put_text, &out, style);
  while (td__json_next (&first) != TD_JSON_END)
    write_token (&w, &first);
  if (!td__json_is_whole (&w) || out.is_cut || strlen (out.text) != out.n)
    abort ();
  td__json_read (&first, data, n);
  td__json_read_python (&second, out.text, out.n);
  while (td__json_next (&first) != TD_JSON_END)
    {
      double value = 0;

      td__json_next (&second);
      if (first.token == TD_JSON_NUMBER && td__json_number (&first, &value) && isinf (value)
          && style != TD_JSON_PYTHON)
        {
          if (!td__json_is (&second, value > 0 ? "inf" : "-inf"))
            abort ();
          continue;
        }
      if (second.token != first.token || second.depth != first.depth
          || (first.token == TD_JSON_NUMBER && !same_number (&first, &second))
          || ((first.token == TD_JSON_KEY || first.token == TD_JSON_STRING)
              && !same_text (&first, &second)))
        abort ();
    }
  if (td__json_next (&second) != TD_JSON_END)
    abort ();
  free (out.text);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  /* of its own size, so that a sanitizer sees a byte too many */
  char *copy = malloc (n + (n == 0));
  TdJsonReader r;
  size_t n_tokens = 0;

  if (copy == NULL)
    abort ();
  memcpy (copy, data, n);
  td__json_read (&r, copy, n);
  while (td__json_next (&r) > TD_JSON_END)
    {
      uint64_t value;

      if (r.depth < 0 || r.depth > TD_JSON_MAX_DEPTH || ++n_tokens > n)
        abort ();
      if (r.token == TD_JSON_KEY || r.token == TD_JSON_STRING)
        check_text (&r);
      if (td__json_whole (&r, &value) && r.token != TD_JSON_NUMBER)
        abort ();
    }
  *(r.token == TD_JSON_END ? &n_right : &n_wrong) += 1;
  if (r.token == TD_JSON_END && r.depth != 0)
    abort ();
  if (td__json_next (&r) != TD_JSON_WRONG && r.token != TD_JSON_END)
    abort ();
  if (r.token == TD_JSON_END)
    for (int style = TD_JSON_TIGHT; style <= TD_JSON_PYTHON; style++)
      check_written (copy, n, (TdJsonStyle)style);
  free (copy);
  return 0;
}

#ifndef TD_LIBFUZZER
static const char *const seeds[] = {
  "{\"ok\":true,\"n\":3,\"steps\":[{\"op\":\"relu\",\"shape\":[64,10]},null]}",
  "{\"__metadata__\":{},\"W\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
  "[-0.5e+10,1E5,\"\\ud83d\\ude00\\u20ac\\n\",{},[],[[[]]],false]",
};

static const char alphabet[] = "{}[]\",:\\u0019eE+-. tfn\n\x01\xe2\x82\xac\xff";

int
main (void)
{
  uint64_t random = 14;

  const int rounds = fuzz_rounds (N_ROUNDS);

  for (int round = 0; round < rounds; round++)
    {
      char text[MAX_BYTES];
      const char *seed = seeds[round % 3];
      size_t n = strlen (seed);

      memcpy (text, seed, n);
      for (int change = round % 7; change > 0 && n > 1; change--)
        {
          size_t at;

          random = random * 6364136223846793005u + 1442695040888963407u;
          at = (size_t)(random >> 33) % n;
          if (random >> 32 & 1)
            text[at] = alphabet[(random >> 20) % (sizeof alphabet - 1)];
          else if (random >> 31 & 1)
            n = at + 1;
          else
            memmove (text + at, text + at + 1, --n - at);
        }
      LLVMFuzzerTestOneInput ((const uint8_t *)text, n);
    }
  printf ("%lu right, %lu wrong\n", n_right, n_wrong);
  return n_right == 0 || n_wrong == 0;
}
#endif
