/* Writing JSON: texts, numbers, and the grammar around them.  See json.h.
 * SPDX-License-Identifier: MIT */
#include "json.h"

#include "host-memory.h"
#include "json-read.h"
#include "utf8.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  MAX_ESCAPE = 7, /* \u0000 and its end */
  MAX_NUMBER = 40
};

/* ---- where it goes ---- */

static bool
has_room (TdJsonText *t, size_t n)
{
  if (t->room - t->n > n)
    return true;
  if (t->is_fixed)
    return false;
  t->room = 2 * t->room + n + 256;
  t->text = td__xrealloc (t->text, t->room);
  return true;
}

void
td__json_put_text (void *to, const char *text, size_t n)
{
  TdJsonText *t = to;

  t->is_cut = t->is_cut || !has_room (t, n);
  if (t->is_cut)
    return;
  memcpy (t->text + t->n, text, n);
  t->n += n;
  t->text[t->n] = '\0';
}

void
td__json_put_file (void *to, const char *text, size_t n)
{
  fwrite (text, 1, n, to);
}

/* ---- texts ---- */

/* What stands for a character of `length` bytes, 0: of none; NULL: it stands for itself. */
static const char *
escaped (const char *at, size_t length, char escape[MAX_ESCAPE])
{
  const unsigned char *s = (const unsigned char *)at;

  if (length == 0)
    return "\xef\xbf\xbd";
  if (*at == '"' || *at == '\\')
    snprintf (escape, MAX_ESCAPE, "\\%c", *at);
  else if (*at == '\n' || *at == '\t')
    snprintf (escape, MAX_ESCAPE, "\\%c", *at == '\n' ? 'n' : 't');
  else if (td__utf8_is_control (at, length))
    snprintf (escape, MAX_ESCAPE, "\\u%04x", s[length - 1]); /* in two bytes: 0xc2 and itself */
  else
    return NULL;
  return escape;
}

/* Most characters are. */
static bool
is_plain (char c)
{
  return c >= ' ' && c < 0x7f && c != '"' && c != '\\';
}

static void
put_cut (TdJsonPut put, void *to, const char *text, size_t n, size_t most)
{
  size_t from = 0, at = 0;

  put (to, "\"", 1);
  while (at < n && most > 0)
    {
      char escape[MAX_ESCAPE];
      const char *instead = NULL;
      size_t length = 1, n_put = 1;

      if (!is_plain (text[at]))
        {
          length = td__utf8_length (text + at, n - at);
          instead = escaped (text + at, length, escape);
          n_put = instead != NULL ? strlen (instead) : length;
          length = length > 0 ? length : 1;
        }
      if (n_put > most)
        break;
      most -= n_put;
      if (instead != NULL)
        {
          put (to, text + from, at - from);
          put (to, instead, n_put);
          from = at + length;
        }
      at += length;
    }
  put (to, text + from, at - from);
  put (to, "\"", 1);
}

void
td__json_put_string (TdJsonPut put, void *to, const char *text, size_t n)
{
  put_cut (put, to, text, n, SIZE_MAX);
}

/* ---- the grammar ---- */

static void
put (TdJsonWriter *w, const char *text)
{
  w->put (w->to, text, strlen (text));
}

void
td__json_write (TdJsonWriter *w, TdJsonPut put_bytes, void *to, TdJsonStyle style)
{
  *w = (TdJsonWriter){ .put = put_bytes, .to = to, .style = style };
}

bool
td__json_is_whole (const TdJsonWriter *w)
{
  return w->depth == 0;
}

/* Level 0 is outside of all. */
static uint64_t
bit_of (const TdJsonWriter *w)
{
  return w->depth > 0 ? (uint64_t)1 << (w->depth - 1) : 0;
}

static void
put_line (TdJsonWriter *w)
{
  static const char blanks[] = "\n        ";

  w->put (w->to, blanks, 1 + (size_t)w->depth * (w->style == TD_JSON_PYTHON ? 4 : 2));
}

/* What stands before the next item.  In lists numbers and texts stay on one line, and so does
 * everything from the third level on. */
static void
separate (TdJsonWriter *w, bool is_scalar)
{
  const uint64_t bit = bit_of (w);
  const bool has_line = w->style != TD_JSON_TIGHT && w->depth > 0 && w->depth <= 2
                        && !(is_scalar && (w->is_array & bit) != 0);

  if (w->is_behind_key)
    {
      w->is_behind_key = false;
      return;
    }
  if ((w->has_item & bit) != 0)
    put (w, w->style == TD_JSON_TIGHT || has_line ? "," : ", ");
  w->has_item |= bit;
  if (!has_line)
    return;
  put_line (w);
  w->has_lines |= bit;
}

static void
begin (TdJsonWriter *w, bool is_array)
{
  uint64_t bit;

  separate (w, false);
  assert (w->depth < TD_JSON_MAX_DEPTH);
  w->depth++;
  bit = bit_of (w);
  w->has_item &= ~bit;
  w->has_lines &= ~bit;
  w->is_array = is_array ? w->is_array | bit : w->is_array & ~bit;
  put (w, is_array ? "[" : "{");
}

static void
end (TdJsonWriter *w, bool is_array)
{
  const bool has_lines = (w->has_lines & bit_of (w)) != 0;

  assert (w->depth > 0 && !w->is_behind_key && is_array == ((w->is_array & bit_of (w)) != 0));
  w->depth--;
  if (has_lines)
    put_line (w);
  put (w, is_array ? "]" : "}");
}

void
td__json_begin_object (TdJsonWriter *w)
{
  begin (w, false);
}

void
td__json_end_object (TdJsonWriter *w)
{
  end (w, false);
}

void
td__json_begin_array (TdJsonWriter *w)
{
  begin (w, true);
}

void
td__json_end_array (TdJsonWriter *w)
{
  end (w, true);
}

void
td__json_key (TdJsonWriter *w, const char *key)
{
  separate (w, false);
  td__json_put_string (w->put, w->to, key, strlen (key));
  put (w, w->style == TD_JSON_TIGHT ? ":" : ": ");
  w->is_behind_key = true;
}

/* ---- values ---- */

static void
put_scalar (TdJsonWriter *w, const char *text)
{
  separate (w, true);
  put (w, text);
}

void
td__json_cut_string (TdJsonWriter *w, const char *text, size_t most)
{
  if (text == NULL)
    {
      td__json_null (w);
      return;
    }
  separate (w, true);
  put_cut (w->put, w->to, text, strlen (text), most);
}

void
td__json_string (TdJsonWriter *w, const char *text)
{
  td__json_cut_string (w, text, SIZE_MAX);
}

/* Most of a large file is integers: printf takes four times as long for them. */
static void
put_integer (TdJsonWriter *w, bool is_negative, uint64_t size)
{
  char text[MAX_NUMBER], *first = text + sizeof text - 1;

  *first = '\0';
  do
    *--first = (char)('0' + size % 10);
  while ((size /= 10) > 0);
  if (is_negative)
    *--first = '-';
  put_scalar (w, first);
}

void
td__json_int (TdJsonWriter *w, int64_t value)
{
  put_integer (w, value < 0, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

void
td__json_uint (TdJsonWriter *w, uint64_t value)
{
  put_integer (w, false, value);
}

void
td__json_bool (TdJsonWriter *w, bool value)
{
  put_scalar (w, value ? "true" : "false");
}

void
td__json_null (TdJsonWriter *w)
{
  put_scalar (w, "null");
}

static void
put_not_finite (TdJsonWriter *w, double value)
{
  const char *text = isnan (value) ? "nan" : value > 0 ? "inf" : "-inf";

  if (w->style != TD_JSON_PYTHON)
    td__json_string (w, text);
  else
    put_scalar (w, isnan (value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
}

/* Whatever stands between digits in the language of the user is a point. */
static void
put_number (TdJsonWriter *w, const char *digits)
{
  char text[MAX_NUMBER];
  size_t n = 0;

  for (; *digits != '\0' && n + 1 < sizeof text; digits++)
    if (strchr ("0123456789+-e", *digits) != NULL)
      text[n++] = *digits;
    else if (n == 0 || text[n - 1] != '.')
      text[n++] = '.';
  text[n] = '\0';
  put_scalar (w, text);
}

/* Of the numbers with so few digits that round to this one, that with the fewest.  Up to 15
 * digits are given back whole, but for the smallest of numbers. */
static int
digits_of (double value)
{
  int n = fpclassify (value) == FP_NORMAL ? 15 : 1;
  char text[MAX_NUMBER];

  for (; n < 17; n++)
    {
      snprintf (text, sizeof text, "%.*e", n - 1, value);
      if (strtod (text, NULL) == value)
        break;
    }
  if (n > 15)
    return n;
  snprintf (text, sizeof text, "%.*e", n - 1, value);
  for (const char *last = strchr (text, 'e') - 1; n > 1 && *last == '0'; last--)
    n--;
  return n;
}

void
td__json_double (TdJsonWriter *w, double value)
{
  char text[MAX_NUMBER];
  int n, exponent, places;

  if (!isfinite (value))
    {
      put_not_finite (w, value);
      return;
    }
  n = digits_of (value);
  snprintf (text, sizeof text, "%.*e", n - 1, value);
  exponent = (int)strtol (strchr (text, 'e') + 1, NULL, 10);
  places = n - 1 > exponent ? n - 1 - exponent : 0;
  if (exponent >= -4 && exponent < 16)
    snprintf (text, sizeof text, "%.*f", places == 0 && w->style == TD_JSON_PYTHON ? 1 : places,
              value);
  put_number (w, text);
}

void
td__json_rounded (TdJsonWriter *w, double value, int digits)
{
  char text[MAX_NUMBER];

  if (!isfinite (value))
    {
      put_not_finite (w, value);
      return;
    }
  snprintf (text, sizeof text, "%.*g", digits, value);
  put_number (w, text);
}

/* ---- members ---- */

void
td__json_member_string (TdJsonWriter *w, const char *key, const char *text)
{
  td__json_key (w, key);
  td__json_string (w, text);
}

void
td__json_member_int (TdJsonWriter *w, const char *key, int64_t value)
{
  td__json_key (w, key);
  td__json_int (w, value);
}

void
td__json_member_uint (TdJsonWriter *w, const char *key, uint64_t value)
{
  td__json_key (w, key);
  td__json_uint (w, value);
}

void
td__json_member_double (TdJsonWriter *w, const char *key, double value)
{
  td__json_key (w, key);
  td__json_double (w, value);
}

void
td__json_member_bool (TdJsonWriter *w, const char *key, bool value)
{
  td__json_key (w, key);
  td__json_bool (w, value);
}

void
td__json_member_null (TdJsonWriter *w, const char *key)
{
  td__json_key (w, key);
  td__json_null (w);
}
