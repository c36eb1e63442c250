/*
 * Writing JSON to a GString, as the command line promises it: the writer of engine/base does
 * it.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib.h>

#include "json.h"

G_BEGIN_DECLS

/* Where a value is written next; commas and indentation take care of themselves. */
typedef struct
{
  GString *out;
  TdJsonWriter writer;
} TdJson;

void td_json_init (TdJson *json, GString *out);
void td_json_begin_object (TdJson *json);
void td_json_end_object (TdJson *json);
void td_json_begin_array (TdJson *json);
void td_json_end_array (TdJson *json);
void td_json_key (TdJson *json, const char *key);
/** Write a string (NULL writes null); bytes that are not UTF-8 become U+FFFD. */
void td_json_string (TdJson *json, const char *value);
void td_json_int (TdJson *json, gint64 value);
/** Write a number so that it reads back the same; NaN and infinities are written as strings. */
void td_json_double (TdJson *json, double value);
void td_json_bool (TdJson *json, gboolean value);
void td_json_null (TdJson *json);
/** Write a key as 16 hexadecimal digits: JSON numbers hold 53 bits only. */
void td_json_id (TdJson *json, guint64 key);

/* Shorthand for members. */
void td_json_member_string (TdJson *json, const char *key, const char *value);
void td_json_member_int (TdJson *json, const char *key, gint64 value);
void td_json_member_double (TdJson *json, const char *key, double value);
/** A number of six digits: a share, which needs no more. */
void td_json_member_share (TdJson *json, const char *key, double value);
void td_json_member_bool (TdJson *json, const char *key, gboolean value);

/** Append `text` quoted and escaped as JSON. */
void td_json_append_string (GString *out, const char *text);

G_END_DECLS
