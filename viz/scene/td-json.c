/*
 * Writing JSON. Objects in lists stay on one line each: greppable, and still one JSON value.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "td-json.h"

/* What is written comes in small pieces, for which g_string_append_len () takes long. */
static void
append_bytes (void *out, const char *text, size_t n)
{
  GString *string = out;

  if (string->allocated_len - string->len <= n)
    {
      g_string_append_len (string, text, (gssize)n);
      return;
    }
  memcpy (string->str + string->len, text, n);
  string->len += n;
  string->str[string->len] = '\0';
}

void
td_json_append_string (GString *out, const char *text)
{
  td__json_put_string (append_bytes, out, text ? text : "", text ? strlen (text) : 0);
}

void
td_json_init (TdJson *json, GString *out)
{
  json->out = out;
  td__json_write (&json->writer, append_bytes, out, TD_JSON_LINES);
}

void
td_json_begin_object (TdJson *json)
{
  td__json_begin_object (&json->writer);
}

/* The whole ends in a line end. */
static void
end_line (TdJson *json)
{
  if (td__json_is_whole (&json->writer))
    g_string_append_c (json->out, '\n');
}

void
td_json_end_object (TdJson *json)
{
  td__json_end_object (&json->writer);
  end_line (json);
}

void
td_json_begin_array (TdJson *json)
{
  td__json_begin_array (&json->writer);
}

void
td_json_end_array (TdJson *json)
{
  td__json_end_array (&json->writer);
  end_line (json);
}

void
td_json_key (TdJson *json, const char *key)
{
  td__json_key (&json->writer, key);
}

void
td_json_string (TdJson *json, const char *value)
{
  td__json_string (&json->writer, value);
}

void
td_json_int (TdJson *json, gint64 value)
{
  td__json_int (&json->writer, value);
}

void
td_json_double (TdJson *json, double value)
{
  td__json_double (&json->writer, value);
}

void
td_json_bool (TdJson *json, gboolean value)
{
  td__json_bool (&json->writer, value);
}

void
td_json_null (TdJson *json)
{
  td__json_null (&json->writer);
}

void
td_json_id (TdJson *json, guint64 key)
{
  static const char digits[] = "0123456789abcdef";
  char text[17] = { 0 };

  for (int i = 16; i-- > 0; key >>= 4)
    text[i] = digits[key & 15];
  td_json_string (json, text);
}

void
td_json_member_string (TdJson *json, const char *key, const char *value)
{
  td__json_member_string (&json->writer, key, value);
}

void
td_json_member_int (TdJson *json, const char *key, gint64 value)
{
  td__json_member_int (&json->writer, key, value);
}

void
td_json_member_double (TdJson *json, const char *key, double value)
{
  td__json_member_double (&json->writer, key, value);
}

void
td_json_member_share (TdJson *json, const char *key, double value)
{
  td_json_key (json, key);
  td__json_rounded (&json->writer, value, 6);
}

void
td_json_member_bool (TdJson *json, const char *key, gboolean value)
{
  td__json_member_bool (&json->writer, key, value);
}
