/* Scopes of the program over time, as text and JSON.
 * SPDX-License-Identifier: MIT */
#include "schedule/td-scope-times-print.h"

#include "scene/td-format.h"

void
td_scope_times_print (const GArray *scopes, GString *out)
{
  char start[TD_FORMAT_SIZE], ns[TD_FORMAT_SIZE];

  if (scopes->len > 0)
    g_string_append (out,
                     "\nscope                            events             from       for\n");
  for (guint i = 0; i < scopes->len; i++)
    {
      const TdScopeTime *s = &g_array_index (scopes, TdScopeTime, i);
      g_autofree char *name
          = g_strdup_printf ("%*s%s", (int)MIN (2 * s->depth, 20), "", s->name);
      g_autofree char *events = g_strdup_printf ("%u to %u", s->first_event, s->last_event);

      g_string_append_printf (out, "%-32s %-14s %9s %9s\n", name, events,
                              td_format_ns (start, s->start_ns), td_format_ns (ns, s->ns));
    }
}

void
td_scope_times_print_json (const GArray *scopes, TdJson *j)
{
  td_json_begin_array (j);
  for (guint i = 0; i < scopes->len; i++)
    {
      const TdScopeTime *s = &g_array_index (scopes, TdScopeTime, i);

      td_json_begin_object (j);
      td_json_member_string (j, "name", s->name);
      td_json_key (j, "id");
      td_json_id (j, s->key);
      td_json_member_int (j, "depth", s->depth);
      td_json_member_int (j, "first_event", s->first_event);
      td_json_member_int (j, "last_event", s->last_event);
      td_json_member_int (j, "start_ns", (gint64)s->start_ns);
      td_json_member_int (j, "ns", (gint64)s->ns);
      td_json_end_object (j);
    }
  td_json_end_array (j);
}
