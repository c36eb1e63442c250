/* A line of the control protocol: see json-line.h.
 * SPDX-License-Identifier: MIT */
#include "json-line.h"

#include <string.h>

enum
{
  ENDS = 16,
  MAX_ERROR = 1024
};

TdJsonWriter *
td__json_line_begin (TdJsonLine *l, const char *tag)
{
  l->text = (TdJsonText){ .text = l->line, .room = sizeof l->line, .is_fixed = true };
  l->line[0] = '\0';
  if (tag != NULL)
    {
      td__json_put_text (&l->text, tag, strlen (tag));
      td__json_put_text (&l->text, " ", 1);
    }
  l->n_tag = l->text.n;
  td__json_write (&l->json, td__json_put_text, &l->text, TD_JSON_TIGHT);
  td__json_begin_object (&l->json);
  return &l->json;
}

size_t
td__json_line_room (const TdJsonLine *l)
{
  const size_t free_bytes = l->text.is_cut ? 0 : l->text.room - l->text.n;

  return free_bytes > ENDS ? free_bytes - ENDS : 0;
}

static void
put_error (TdJsonWriter *json, const char *error)
{
  td__json_member_bool (json, "ok", false);
  td__json_key (json, "error");
  td__json_cut_string (json, error, MAX_ERROR);
}

const char *
td__json_line_end (TdJsonLine *l)
{
  td__json_end_object (&l->json);
  if (!l->text.is_cut)
    return l->line;
  l->text.n = l->n_tag;
  l->text.is_cut = false;
  td__json_begin_object (&l->json);
  put_error (&l->json, "the answer is too long for a line");
  td__json_end_object (&l->json);
  return l->line;
}

const char *
td__json_line_ok (TdJsonLine *l, const char *tag)
{
  td__json_member_bool (td__json_line_begin (l, tag), "ok", true);
  return td__json_line_end (l);
}

const char *
td__json_line_error (TdJsonLine *l, const char *tag, const char *error)
{
  put_error (td__json_line_begin (l, tag), error);
  return td__json_line_end (l);
}
