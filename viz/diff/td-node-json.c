/*
 * Operations and variables as JSON.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-node-json.h"

#include "td-tape.h"

static void
add_shape (TdJson *j, const TdTapeIteration *t, const TdTapeVar *v)
{
  td_json_key (j, "shape");
  if (!v)
    {
      td_json_null (j);
      td_json_member_string (j, "dtype", NULL);
      return;
    }
  td_json_begin_array (j);
  for (guint k = 0; k < v->ndim; k++)
    td_json_int (j, t->dims[v->first_dim + k]);
  td_json_end_array (j);
  td_json_member_string (j, "dtype", td_tape_dtype_name (v->dtype));
}

static void
add_id (TdJson *j, guint64 key)
{
  td_json_key (j, "id");
  td_json_id (j, key);
}

void
td_node_json_begin_event (TdJson *j, const TdIteration *iteration, guint event)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);
  const TdTapeEvent *e = &t->events[event];
  const TdTapeVar *out = e->n_out > 0 ? &t->vars[t->outs[e->first_out]] : NULL;
  g_autofree char *site = td_iteration_dup_site (iteration, event);
  guint64 bytes = 0;

  for (guint k = 0; k < e->n_out; k++)
    bytes += t->vars[t->outs[e->first_out + k]].bytes;
  td_json_begin_object (j);
  add_id (j, e->key);
  td_json_member_string (j, "kind", "op");
  td_json_member_string (j, "label", td_iteration_get_op_name (iteration, event));
  td_json_member_string (j, "op", td_iteration_get_op_name (iteration, event));
  td_json_member_string (j, "link", td_iteration_get_link_path (iteration, event));
  td_json_member_string (j, "site", site);
  td_json_member_string (j, "phase", td_tape_phase_name (e->phase));
  add_shape (j, t, out);
  td_json_member_int (j, "bytes", (gint64)bytes);
  td_json_member_int (j, "ns", t->event_duration_ns ? (gint64)t->event_duration_ns[event] : 0);
  td_json_member_int (j, "event", event);
  if (e->flags & TD_TAPE_EVENT_FAILED)
    {
      g_autofree char *fault = td_iteration_dup_fault (iteration, event);

      td_json_member_string (j, "failed", fault ? fault : "failed");
    }
}

void
td_node_json_begin_var (TdJson *j, const TdIteration *iteration, guint var)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);
  const TdTapeVar *v = &t->vars[var];
  const char *name = td_iteration_get_var_name (iteration, var), *file;
  g_autofree char *shape = td_iteration_dup_shape (iteration, var, TRUE);
  guint32 line = 0;
  g_autofree char *site = NULL;

  file = v->site ? td_iteration_get_site (iteration, v->site, &line) : "";
  site = file && *file ? g_strdup_printf ("%s:%u", file, line) : g_strdup ("");
  td_json_begin_object (j);
  add_id (j, v->key);
  td_json_member_string (j, "kind", "var");
  td_json_member_string (j, "label", *name ? name : shape);
  td_json_member_string (
      j, "op",
      v->producer >= 0 ? td_iteration_get_op_name (iteration, (guint)v->producer) : NULL);
  td_json_member_string (j, "link", td_iteration_get_path_name (iteration, v->path));
  td_json_member_string (j, "site", site);
  td_json_member_string (
      j, "phase", v->producer >= 0 ? td_tape_phase_name (t->events[v->producer].phase) : NULL);
  add_shape (j, t, v);
  td_json_member_int (j, "bytes", (gint64)v->bytes);
  td_json_member_int (j, "ns", 0);
}
