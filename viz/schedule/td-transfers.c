/*
 * Copies between devices: what the tape's to_device events say, and who read the copies.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "scene/td-format.h"
#include "tape/td-attributes.h"
#include "td-transfers.h"

static const char *const need_ids[] = { "needed", "again", "there_and_back" };

/* What is known of a variable while the events go by. */
typedef struct
{
  guint arrived; /* event that brought it to where it is, plus one; 0: none */
  gboolean read; /* since then */
} Place;

/* Returns the value of "name=value" in the attributes of an event. Owner: the caller. */
static char *
attribute (const char *attrs, const char *name)
{
  g_auto (GStrv) words = td_attributes_split (attrs);
  gsize n = strlen (name);

  for (guint i = 0; words[i]; i++)
    if (strncmp (words[i], name, n) == 0 && words[i][n] == '=')
      return g_strdup (words[i] + n + 1);
  return g_strdup ("");
}

static gboolean
is_true (const char *attrs, const char *name)
{
  g_autofree char *value = attribute (attrs, name);

  return g_str_equal (value, "true");
}

static gboolean
is_transfer (const TdIteration *iteration, guint event)
{
  const TdTapeEvent *e = &td_iteration_get_tape (iteration)->events[event];

  return e->n_in == 1 && !(e->flags & TD_TAPE_EVENT_FAILED)
         && g_str_equal (td_iteration_get_op_name (iteration, event), "to_device");
}

static void
add (TdTransfers *t, const TdIteration *iteration, guint event, Place *places)
{
  const TdTapeIteration *tape = td_iteration_get_tape (iteration);
  const TdTapeEvent *e = &tape->events[event];
  guint var = tape->ins[e->first_in];
  const char *attrs = td_iteration_get_string (iteration, e->attrs);
  const char *name = td_iteration_get_var_name (iteration, var);
  TdTransfer *row = &t->rows[t->n++];
  Place *source = &places[var];

  *row = (TdTransfer){ .event = event,
                       .there = -1,
                       .key = e->key,
                       .bytes = tape->vars[var].bytes,
                       .ns = tape->event_duration_ns ? tape->event_duration_ns[event] : 0,
                       .name = *name ? g_strdup (name)
                                     : td_iteration_dup_shape (iteration, var, TRUE),
                       .from = attribute (attrs, "from"),
                       .to = attribute (attrs, "to"),
                       .site = td_iteration_dup_site (iteration, event) };
  if (source->arrived > 0 && !source->read && is_true (attrs, "back"))
    {
      row->need = TD_TRANSFER_THERE_AND_BACK;
      row->there = (gint)source->arrived - 1;
    }
  else if (is_true (attrs, "again"))
    row->need = TD_TRANSFER_AGAIN;
  /* a link's parameter moves and stays the same variable */
  Place *target = e->n_out > 0 ? &places[tape->outs[e->first_out]] : source;
  *target = (Place){ event + 1, FALSE };
  t->bytes += row->bytes;
  t->ns += row->ns;
}

/* Reads of the program between two events count like those of operations. */
static void
see_host_reads (const TdTapeIteration *tape, guint event, guint *next, Place *places)
{
  for (; *next < tape->n_host_reads && tape->host_reads[*next].event <= event; ++*next)
    if (tape->host_reads[*next].var < tape->n_vars)
      places[tape->host_reads[*next].var].read = TRUE;
}

/* A copy that came back was not needed only if nothing read the array there later either. */
static void
judge (TdTransfers *t, const TdIteration *iteration, const Place *places)
{
  const TdTapeIteration *tape = td_iteration_get_tape (iteration);

  for (guint i = 0; i < t->n; i++)
    {
      TdTransfer *row = &t->rows[i];
      const TdTapeEvent *e = &tape->events[row->event];

      if (row->need == TD_TRANSFER_THERE_AND_BACK && e->n_out > 0
          && places[tape->ins[e->first_in]].read)
        row->need = TD_TRANSFER_NEEDED;
      t->n_unneeded += row->need != TD_TRANSFER_NEEDED;
      t->unneeded_bytes += row->need != TD_TRANSFER_NEEDED ? row->bytes : 0;
    }
}

TdTransfers *
td_transfers_new (const TdIteration *iteration)
{
  const TdTapeIteration *tape = td_iteration_get_tape (iteration);
  guint n_run = td_iteration_get_n_run (iteration), n = 0, next_read = 0;
  TdTransfers *t = g_new0 (TdTransfers, 1);
  g_autofree Place *places = NULL;

  for (guint e = 0; e < n_run; e++)
    n += is_transfer (iteration, e);
  t->rows = g_new0 (TdTransfer, MAX (n, 1));
  if (n == 0)
    return t;
  places = g_new0 (Place, MAX (tape->n_vars, 1));
  for (guint e = 0; e < n_run; e++)
    {
      const TdTapeEvent *event = &tape->events[e];

      see_host_reads (tape, e, &next_read, places);
      if (is_transfer (iteration, e))
        add (t, iteration, e, places);
      else
        for (guint k = 0; k < event->n_in; k++)
          places[tape->ins[event->first_in + k]].read = TRUE;
    }
  see_host_reads (tape, G_MAXUINT, &next_read, places);
  judge (t, iteration, places);
  return t;
}

void
td_transfers_free (TdTransfers *t)
{
  if (!t)
    return;
  for (guint i = 0; i < t->n; i++)
    {
      g_free (t->rows[i].name);
      g_free (t->rows[i].from);
      g_free (t->rows[i].to);
      g_free (t->rows[i].site);
    }
  g_free (t->rows);
  g_free (t);
}

void
td_transfers_print (const TdTransfers *t, GString *out)
{
  char bytes[TD_FORMAT_SIZE], ns[TD_FORMAT_SIZE];

  if (t->n == 0)
    return;
  g_string_append_printf (out, "%u cop%s between devices, %s, %s\n", t->n,
                          t->n == 1 ? "y" : "ies", td_format_bytes (bytes, t->bytes),
                          td_format_ns (ns, t->ns));
  if (t->n_unneeded == 0)
    return;
  g_string_append_printf (out, "unneeded transfers: %u, %s\n", t->n_unneeded,
                          td_format_bytes (bytes, t->unneeded_bytes));
  for (guint i = 0; i < t->n; i++)
    {
      const TdTransfer *row = &t->rows[i];

      if (row->need == TD_TRANSFER_NEEDED)
        continue;
      g_string_append_printf (out, "%6u  %s, %s, %s to %s%s%s: ", row->event, row->name,
                              td_format_bytes (bytes, row->bytes), row->from, row->to,
                              *row->site ? ", " : "", row->site);
      if (row->need == TD_TRANSFER_THERE_AND_BACK)
        g_string_append_printf (out, "there by event %d and back, not read in between\n",
                                row->there);
      else
        g_string_append_printf (out, "copied to %s before, unchanged since then\n", row->to);
    }
}

void
td_transfers_print_json (const TdTransfers *t, TdJson *j)
{
  td_json_begin_object (j);
  td_json_member_int (j, "n", t->n);
  td_json_member_int (j, "bytes", (gint64)t->bytes);
  td_json_member_int (j, "ns", (gint64)t->ns);
  td_json_key (j, "unneeded");
  td_json_begin_array (j);
  for (guint i = 0; i < t->n; i++)
    {
      const TdTransfer *row = &t->rows[i];

      if (row->need == TD_TRANSFER_NEEDED)
        continue;
      td_json_begin_object (j);
      td_json_member_int (j, "event", row->event);
      td_json_key (j, "id");
      td_json_id (j, row->key);
      td_json_member_string (j, "array", row->name);
      td_json_member_int (j, "bytes", (gint64)row->bytes);
      td_json_member_string (j, "from", row->from);
      td_json_member_string (j, "to", row->to);
      td_json_member_string (j, "site", row->site);
      td_json_member_string (j, "why", need_ids[row->need]);
      td_json_end_object (j);
    }
  td_json_end_array (j);
  td_json_end_object (j);
}
