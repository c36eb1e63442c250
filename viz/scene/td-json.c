/*
 * Writing JSON. Objects in lists stay on one line each: greppable, and still one JSON value.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "td-json.h"

static void
append_bytes (void *out, const char *text, size_t n)
{
  g_string_append_len (out, text, (gssize)n);
}

void
td_json_append_string (GString *out, const char *text)
{
  td__json_put_string (append_bytes, out, text ? text : "", text ? strlen (text) : 0);
}

void
td_json_init (TdJson *json, GString *out)
{
  *json = (TdJson){ .out = out };
}

static guint64
depth_bit (const TdJson *j)
{
  return (guint64)1 << MIN (j->depth, 63);
}

/* Comma, line and indentation before the next item: lists of numbers and texts stay on one
 * line, and so does everything from the third level on. */
static void
separate (TdJson *j, gboolean scalar)
{
  gboolean own_line
      = j->depth > 0 && j->depth <= 2 && !(scalar && (j->is_array & depth_bit (j)));

  if (j->after_key)
    {
      j->after_key = FALSE;
      return;
    }
  if (j->has_item & depth_bit (j))
    g_string_append (j->out, own_line ? "," : ", ");
  if (own_line)
    {
      g_string_append_printf (j->out, "\n%*s", 2 * j->depth, "");
      j->has_lines |= depth_bit (j);
    }
  j->has_item |= depth_bit (j);
}

static void
begin (TdJson *j, char c)
{
  separate (j, FALSE);
  g_string_append_c (j->out, c);
  j->depth++;
  j->has_item &= ~depth_bit (j);
  j->has_lines &= ~depth_bit (j);
  if (c == '[')
    j->is_array |= depth_bit (j);
  else
    j->is_array &= ~depth_bit (j);
}

static void
end (TdJson *j, char c)
{
  gboolean lines = (j->has_lines & depth_bit (j)) != 0;

  j->depth--;
  if (lines)
    g_string_append_printf (j->out, "\n%*s", 2 * j->depth, "");
  g_string_append_c (j->out, c);
  if (j->depth == 0)
    g_string_append_c (j->out, '\n');
}

void
td_json_begin_object (TdJson *json)
{
  begin (json, '{');
}

void
td_json_end_object (TdJson *json)
{
  end (json, '}');
}

void
td_json_begin_array (TdJson *json)
{
  begin (json, '[');
}

void
td_json_end_array (TdJson *json)
{
  end (json, ']');
}

void
td_json_key (TdJson *json, const char *key)
{
  separate (json, FALSE);
  td_json_append_string (json->out, key);
  g_string_append (json->out, ": ");
  json->after_key = TRUE;
}

void
td_json_string (TdJson *json, const char *value)
{
  if (!value)
    {
      td_json_null (json);
      return;
    }
  separate (json, TRUE);
  td_json_append_string (json->out, value);
}

void
td_json_int (TdJson *json, gint64 value)
{
  separate (json, TRUE);
  g_string_append_printf (json->out, "%" G_GINT64_FORMAT, value);
}

void
td_json_double (TdJson *json, double value)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];

  if (!isfinite (value))
    {
      td_json_string (json, isnan (value) ? "nan" : value > 0 ? "inf" : "-inf");
      return;
    }
  separate (json, TRUE);
  /* the shortest of two forms that reads back as the same number */
  g_ascii_formatd (text, sizeof text, "%.15g", value);
  if (g_ascii_strtod (text, NULL) != value)
    g_ascii_dtostr (text, sizeof text, value);
  g_string_append (json->out, text);
}

void
td_json_bool (TdJson *json, gboolean value)
{
  separate (json, TRUE);
  g_string_append (json->out, value ? "true" : "false");
}

void
td_json_null (TdJson *json)
{
  separate (json, TRUE);
  g_string_append (json->out, "null");
}

void
td_json_id (TdJson *json, guint64 key)
{
  char text[20];

  g_snprintf (text, sizeof text, "%016" G_GINT64_MODIFIER "x", key);
  td_json_string (json, text);
}

void
td_json_member_string (TdJson *json, const char *key, const char *value)
{
  td_json_key (json, key);
  td_json_string (json, value);
}

void
td_json_member_int (TdJson *json, const char *key, gint64 value)
{
  td_json_key (json, key);
  td_json_int (json, value);
}

void
td_json_member_double (TdJson *json, const char *key, double value)
{
  td_json_key (json, key);
  td_json_double (json, value);
}

void
td_json_member_bool (TdJson *json, const char *key, gboolean value)
{
  td_json_key (json, key);
  td_json_bool (json, value);
}
