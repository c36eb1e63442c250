/* Reading JSON: characters, numbers, and the grammar around them.  See json-read.h.
 *  SPDX-License-Identifier: MIT */
#include "json-read.h"

#include "utf8.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
td__json_read (TdJsonReader *r, const char *text, size_t n)
{
  *r = (TdJsonReader){ .at = text, .end = text + n };
}

void
td__json_read_python (TdJsonReader *r, const char *text, size_t n)
{
  td__json_read (r, text, n);
  r->takes_python = true;
}

static void
blanks (TdJsonReader *r)
{
  while (r->at < r->end
         && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
    r->at++;
}

static bool
eat (TdJsonReader *r, char c)
{
  blanks (r);
  if (r->at == r->end || *r->at != c)
    return false;
  r->at++;
  return true;
}

/* ---- texts ---- */

/* The value of four hexadecimal digits, -1: others. */
static int32_t
hex4 (const char *at, const char *end)
{
  int32_t value = 0;

  if (end - at < 4)
    return -1;
  for (int i = 0; i < 4; i++)
    {
      const char c = at[i];
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;

      if (digit < 0)
        return -1;
      value = value << 4 | digit;
    }
  return value;
}

static size_t
put_utf8 (uint32_t c, char *to)
{
  const int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  static const unsigned char first[] = { 0, 0xc0, 0xe0, 0xf0 };

  to[0] = (char)(first[more] | c >> (6 * more));
  for (int i = 1; i <= more; i++)
    to[i] = (char)(0x80 | (c >> (6 * (more - i)) & 0x3f));
  return (size_t)more + 1;
}

/* A code of four hexadecimal digits behind its backslash, with the second half of a pair. */
static size_t
take_code (const char **at, const char *end, char *to)
{
  const int32_t c = hex4 (*at + 1, end);
  int32_t low;

  if (c <= 0 || (c >= 0xdc00 && c < 0xe000))
    return 0;
  *at += 5;
  if (c < 0xd800 || c >= 0xe000)
    return put_utf8 ((uint32_t)c, to);
  if (end - *at < 6 || (*at)[0] != '\\' || (*at)[1] != 'u')
    return 0;
  low = hex4 (*at + 2, end);
  if (low < 0xdc00 || low > 0xdfff)
    return 0;
  *at += 6;
  return put_utf8 (0x10000 + (((uint32_t)c - 0xd800) << 10) + ((uint32_t)low - 0xdc00), to);
}

/* One character of a text, unescaped to `to` (4 bytes); its bytes there, 0: wrong. */
static size_t
take_character (const char **at, const char *end, char *to)
{
  static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
  const char *found;
  size_t n;

  if (**at == '\\')
    {
      if (end - *at < 2)
        return 0;
      (*at)++;
      if (**at == 'u')
        return take_code (at, end, to);
      found = memchr (from, **at, sizeof from - 1);
      if (found == NULL)
        return 0;
      (*at)++;
      *to = into[found - from];
      return 1;
    }
  n = td__utf8_length (*at, (size_t)(end - *at));
  if ((unsigned char)**at < ' ' || n == 0)
    return 0;
  memcpy (to, *at, n);
  *at += n;
  return n;
}

/* From the quote on. */
static bool
take_text (TdJsonReader *r)
{
  char unused[4];

  r->text = ++r->at;
  while (r->at < r->end && *r->at != '"')
    if (take_character (&r->at, r->end, unused) == 0)
      return false;
  r->n = (size_t)(r->at - r->text);
  return eat (r, '"');
}

size_t
td__json_text (const TdJsonReader *r, char *out, size_t size)
{
  const char *at = r->text, *end = r->text + r->n;
  size_t n = 0, kept = 0;

  while (at < end)
    {
      char to[4];
      const size_t length = take_character (&at, end, to);

      if (n == kept && n + length < size)
        {
          memcpy (out + n, to, length);
          kept = n + length;
        }
      n += length;
    }
  if (size > 0)
    out[kept] = '\0';
  return n;
}

static bool
is_text (const TdJsonReader *r)
{
  return r->token == TD_JSON_KEY || r->token == TD_JSON_STRING;
}

bool
td__json_is (const TdJsonReader *r, const char *text)
{
  const char *at = r->text, *end = at + r->n;

  if (!is_text (r))
    return false;
  while (at < end)
    {
      char to[4];
      const size_t length = take_character (&at, end, to);

      if (strncmp (text, to, length) != 0)
        return false;
      text += length;
    }
  return *text == '\0';
}

/* ---- numbers ---- */

static bool
take_digits (TdJsonReader *r)
{
  const char *first = r->at;

  while (r->at < r->end && *r->at >= '0' && *r->at <= '9')
    r->at++;
  return r->at > first;
}

static bool
take_number (TdJsonReader *r)
{
  const char *first;

  r->text = r->at;
  r->at += *r->at == '-';
  first = r->at;
  if (!take_digits (r) || (*first == '0' && r->at > first + 1))
    return false;
  if (r->at < r->end && *r->at == '.')
    {
      r->at++;
      if (!take_digits (r))
        return false;
    }
  if (r->at < r->end && (*r->at == 'e' || *r->at == 'E'))
    {
      r->at++;
      r->at += r->at < r->end && (*r->at == '+' || *r->at == '-');
      if (!take_digits (r))
        return false;
    }
  r->n = (size_t)(r->at - r->text);
  return true;
}

bool
td__json_whole (const TdJsonReader *r, uint64_t *value)
{
  uint64_t sum = 0;

  if (r->token != TD_JSON_NUMBER)
    return false;
  for (size_t i = 0; i < r->n; i++)
    {
      const char c = r->text[i];

      if (c < '0' || c > '9' || sum > (UINT64_MAX - (uint64_t)(c - '0')) / 10)
        return false;
      sum = sum * 10 + (uint64_t)(c - '0');
    }
  *value = sum;
  return true;
}

/* Most numbers are a whole one that a double holds, times or through a power of ten that a
 * double holds: one operation, which is rounded right.  The others are left to strtod.
 * *Source*: Clinger, How to read floating point numbers accurately (1990), section 3. */
static bool
take_short (const TdJsonReader *r, double *value)
{
  static const double powers[]
      = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
          1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
  const bool is_below = *r->text == '-';
  uint64_t digits = 0;
  int exponent = 0, written = 0;
  bool in_fraction = false, is_written_below = false;
  size_t i = is_below;

  for (; i < r->n && r->text[i] != 'e' && r->text[i] != 'E'; i++)
    if (r->text[i] == '.')
      in_fraction = true;
    else
      {
        digits = digits * 10 + (uint64_t)(r->text[i] - '0');
        exponent -= in_fraction;
        if (digits > (uint64_t)1 << 53)
          return false;
      }
  for (i++; i < r->n; i++)
    if (r->text[i] == '-')
      is_written_below = true;
    else if (r->text[i] != '+' && (written = written * 10 + (r->text[i] - '0')) > 999)
      return false;
  exponent += is_written_below ? -written : written;
  if (FLT_EVAL_METHOD != 0 || exponent < -22 || exponent > 22)
    return false;
  *value
      = exponent < 0 ? (double)digits / powers[-exponent] : (double)digits * powers[exponent];
  if (is_below)
    *value = -*value;
  return true;
}

/* strtod wants the point of the user's language. */
bool
td__json_number (const TdJsonReader *r, double *value)
{
  char text[512], half[16];
  const char *point = half + 1; /* 0.5 */
  size_t n = 0, n_point;

  if (r->token != TD_JSON_NUMBER || r->n > 500)
    return false;
  if (*r->text != 'N' && *r->text != 'I' && r->text[r->n - 1] != 'y' && take_short (r, value))
    return true;
  snprintf (half, sizeof half, "%.1f", 0.5);
  n_point = strlen (point) - 1;
  for (size_t i = 0; i < r->n; i++)
    if (r->text[i] != '.')
      text[n++] = r->text[i];
    else
      {
        memcpy (text + n, point, n_point);
        n += n_point;
      }
  text[n] = '\0';
  *value = strtod (text, NULL);
  return true;
}

/* ---- the grammar ---- */

static TdJsonToken
wrong (TdJsonReader *r)
{
  if (r->wrong == NULL)
    r->wrong = r->at;
  r->at = r->end;
  return r->token = TD_JSON_WRONG;
}

static bool
in_array (const TdJsonReader *r)
{
  return r->depth > 0 && (r->is_array >> (r->depth - 1) & 1) != 0;
}

static TdJsonToken
open_one (TdJsonReader *r, TdJsonToken token)
{
  uint64_t bit;

  if (r->depth == TD_JSON_MAX_DEPTH)
    return wrong (r);
  bit = (uint64_t)1 << r->depth;
  r->at++;
  r->is_array = token == TD_JSON_ARRAY ? r->is_array | bit : r->is_array & ~bit;
  r->depth++;
  r->has_item = false;
  return r->token = token;
}

static TdJsonToken
close_one (TdJsonReader *r)
{
  const TdJsonToken token = in_array (r) ? TD_JSON_ARRAY_END : TD_JSON_OBJECT_END;

  r->depth--;
  r->has_item = true; /* the object or array around it has this one */
  return r->token = token;
}

static TdJsonToken
take_word (TdJsonReader *r)
{
  static const struct
  {
    const char *word;
    TdJsonToken token;
  } words[]
      = { { "true", TD_JSON_TRUE }, { "false", TD_JSON_FALSE }, { "null", TD_JSON_NULL } };

  for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
    {
      const size_t n = strlen (words[i].word);

      if ((size_t)(r->end - r->at) >= n && memcmp (r->at, words[i].word, n) == 0)
        {
          r->at += n;
          return r->token = words[i].token;
        }
    }
  return wrong (r);
}

/* What is no number in JSON, and one in Python. */
static bool
take_python (TdJsonReader *r)
{
  static const char *const words[] = { "NaN", "Infinity", "-Infinity" };

  for (unsigned i = 0; r->takes_python && i < sizeof words / sizeof *words; i++)
    {
      const size_t n = strlen (words[i]);

      if ((size_t)(r->end - r->at) >= n && memcmp (r->at, words[i], n) == 0)
        {
          r->text = r->at;
          r->n = n;
          r->at += n;
          return true;
        }
    }
  return false;
}

static TdJsonToken
take_value (TdJsonReader *r)
{
  blanks (r);
  if (r->at == r->end)
    return wrong (r);
  r->has_item = true;
  if (*r->at == '{')
    return open_one (r, TD_JSON_OBJECT);
  if (*r->at == '[')
    return open_one (r, TD_JSON_ARRAY);
  if (*r->at == '"')
    return take_text (r) ? (r->token = TD_JSON_STRING) : wrong (r);
  if (take_python (r))
    return r->token = TD_JSON_NUMBER;
  if (*r->at == '-' || (*r->at >= '0' && *r->at <= '9'))
    return take_number (r) ? (r->token = TD_JSON_NUMBER) : wrong (r);
  return take_word (r);
}

/* `"name":`, and the value comes next. */
static TdJsonToken
take_key (TdJsonReader *r)
{
  blanks (r);
  if (r->at == r->end || *r->at != '"' || !take_text (r) || !eat (r, ':'))
    return wrong (r);
  r->is_key_before = true;
  return r->token = TD_JSON_KEY;
}

TdJsonToken
td__json_next (TdJsonReader *r)
{
  if (r->token == TD_JSON_WRONG && r->at == r->end)
    return TD_JSON_WRONG;
  if (r->is_key_before)
    {
      r->is_key_before = false;
      return take_value (r);
    }
  if (r->depth == 0 && r->has_item)
    {
      blanks (r);
      return r->at == r->end ? (r->token = TD_JSON_END) : wrong (r);
    }
  if (r->depth == 0)
    return take_value (r);
  if (eat (r, in_array (r) ? ']' : '}'))
    return close_one (r);
  if (r->has_item && !eat (r, ','))
    return wrong (r);
  return in_array (r) ? take_value (r) : take_key (r);
}

bool
td__json_skip (TdJsonReader *r)
{
  int depth = 0;

  for (;;)
    {
      depth += r->token == TD_JSON_OBJECT || r->token == TD_JSON_ARRAY;
      depth -= r->token == TD_JSON_OBJECT_END || r->token == TD_JSON_ARRAY_END;
      if (r->token == TD_JSON_WRONG || r->token == TD_JSON_END)
        return false;
      if (depth == 0)
        return true;
      td__json_next (r);
    }
}

bool
td__json_member (const char *json, const char *member, char *out, size_t size)
{
  TdJsonReader r;
  bool found = false;

  if (size > 0)
    out[0] = '\0';
  td__json_read (&r, json, strlen (json));
  if (td__json_next (&r) != TD_JSON_OBJECT)
    return false;
  while (td__json_next (&r) == TD_JSON_KEY)
    {
      const bool is_it = !found && td__json_is (&r, member);

      td__json_next (&r);
      if (is_it && r.token == TD_JSON_STRING)
        {
          td__json_text (&r, out, size);
          found = true;
        }
      if (!td__json_skip (&r))
        break;
    }
  if (r.token == TD_JSON_OBJECT_END && td__json_next (&r) == TD_JSON_END)
    return found;
  if (size > 0)
    out[0] = '\0';
  return false;
}
