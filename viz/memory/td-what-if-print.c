/*
 * A prediction in words and tables.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "scene/td-json.h"
#include "tape/td-devices.h"
#include "td-what-if.h"

/* "h0, h1 and 10 more" */
static char *
dup_chosen (const TdWhatIf *self)
{
  enum
  {
    MOST_NAMED = 3
  };
  guint n = td_what_if_count_chosen (self), named = 0;
  GString *out = g_string_new (NULL);

  for (guint i = 0; i < self->n_layers && named < (n <= MOST_NAMED ? n : MOST_NAMED - 1); i++)
    if (self->layers[i].chosen)
      g_string_append_printf (out, "%s%s", named++ > 0 ? ", " : "", self->layers[i].name);
  if (named < n)
    g_string_append_printf (out, " and %u more", n - named);
  return g_string_free (out, FALSE);
}

static double
share (guint64 part, guint64 whole)
{
  return whole > 0 ? (double)part / (double)whole : 0;
}

char *
td_what_if_sentence (const TdWhatIf *self)
{
  TdWhatIfForecast f = td_what_if_predict (self);
  g_autofree char *names = dup_chosen (self);
  guint64 before = self->recorded->peak_bytes, after = f.peak_bytes;
  char text[5][TD_FORMAT_SIZE];

  if (self->n_layers == 0)
    return g_strdup ("No layer of this iteration keeps arrays for backward.");
  if (td_what_if_count_chosen (self) == 0)
    return g_strdup_printf ("Nothing is computed again: the peak is %s, as recorded.",
                            td_format_bytes (text[0], before));
  if (after >= before)
    return g_strdup_printf ("Computing %s again would not lower the peak of %s, and would take "
                            "%s more.",
                            names, td_format_bytes (text[0], before),
                            td_format_ns (text[1], f.more_ns));
  return g_strdup_printf (
      "Computing %s again: peak %s instead of %s (%s less), %s more of %s.", names,
      td_format_bytes (text[0], after), td_format_bytes (text[1], before),
      td_format_share (text[2], share (before - after, before), TD_HONEST_EXACT),
      td_format_ns (text[3], f.more_ns), td_format_ns (text[4], self->time_ns));
}

enum
{
  MOST_ROWS = 33 /* of the slider's places */
};

/* A place of the slider: so many layers are chosen. */
typedef struct
{
  guint n;
  guint64 peak, more_ns;
} Row;

static GArray *
make_rows (TdWhatIf *self)
{
  GArray *rows = g_array_new (FALSE, FALSE, sizeof (Row));
  g_autofree gboolean *chosen = g_new (gboolean, self->n_layers + 1);
  guint n_rows = MIN (self->n_layers + 1, MOST_ROWS);

  for (guint i = 0; i < self->n_layers; i++)
    chosen[i] = self->layers[i].chosen;
  for (guint k = 0; k < n_rows; k++)
    {
      guint n = n_rows > 1 ? (guint)((guint64)k * self->n_layers / (n_rows - 1)) : 0;
      td_what_if_choose_first (self, n);
      TdWhatIfForecast f = td_what_if_predict (self);
      Row row = { n, f.peak_bytes, f.more_ns };
      g_array_append_val (rows, row);
    }
  for (guint i = 0; i < self->n_layers; i++)
    self->layers[i].chosen = chosen[i];
  return rows;
}

/* ---- text ---- */

static void
append_measured (GString *out, const TdWhatIfForecast *f, TdIteration *measured)
{
  TdMemoryProfile *p = td_memory_profile_new (measured);
  char text[3][TD_FORMAT_SIZE];
  double off = share (MAX (p->peak_bytes, f->peak_bytes) - MIN (p->peak_bytes, f->peak_bytes),
                      p->peak_bytes);

  g_string_append_printf (
      out, "Measured: peak %s (predicted %s off it), %s for all operations.\n",
      td_format_bytes (text[0], p->peak_bytes), td_format_share (text[1], off, TD_HONEST_EXACT),
      td_format_ns (text[2], td_devices_sum_durations (measured)));
  td_memory_profile_free (p);
}

static void
append_layers (GString *out, const TdWhatIf *self)
{
  char bytes[TD_FORMAT_SIZE], ns[TD_FORMAT_SIZE];

  g_string_append_printf (out, "\n%-6s %-28s %6s %6s %10s %10s\n", "", "layer", "ops", "calls",
                          "kept", "again");
  for (guint i = 0; i < self->n_layers; i++)
    {
      const TdWhatIfLayer *l = &self->layers[i];

      g_string_append_printf (
          out, "%-6s %-28s %6u %6u %10s %10s\n", l->chosen ? "again" : "", l->title, l->n_ops,
          l->n_calls, td_format_bytes (bytes, l->held_bytes), td_format_ns (ns, l->time_ns));
    }
}

static void
append_rows (GString *out, TdWhatIf *self)
{
  g_autoptr (GArray) rows = make_rows (self);
  char bytes[TD_FORMAT_SIZE], ns[TD_FORMAT_SIZE];

  g_string_append (out, "\nthe first  peak       more time\n");
  for (guint i = 0; i < rows->len; i++)
    {
      const Row *row = &g_array_index (rows, Row, i);

      g_string_append_printf (out, "%9u  %-9s  %s\n", row->n,
                              td_format_bytes (bytes, row->peak),
                              row->n > 0 ? td_format_ns (ns, row->more_ns) : "none");
    }
}

static const char how[]
    = "\nPredicted from the recording, not run. Such a layer is a function that td_forget "
      "calls (torch.utils.checkpoint in PyTorch).\n";

static char *
print_text (TdWhatIf *self, const TdWhatIfForecast *f, TdIteration *measured)
{
  g_autofree char *sentence = td_what_if_sentence (self);
  GString *out = g_string_new (sentence);

  g_string_append_c (out, '\n');
  if (measured)
    append_measured (out, f, measured);
  if (self->n_layers > 0)
    {
      append_layers (out, self);
      append_rows (out, self);
      g_string_append (out, how);
    }
  return g_string_free (out, FALSE);
}

static char *
print_csv (const TdWhatIf *self)
{
  GString *out = g_string_new ("layer,ops,calls,kept_bytes,time_ns,chosen\n");

  for (guint i = 0; i < self->n_layers; i++)
    {
      const TdWhatIfLayer *l = &self->layers[i];

      td_csv_append (out, l->title);
      g_string_append_printf (out, ",%u,%u,%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT ",%d\n",
                              l->n_ops, l->n_calls, l->held_bytes, l->time_ns, l->chosen);
    }
  return g_string_free (out, FALSE);
}

/* ---- JSON ---- */

static void
add_layers (TdJson *j, const TdWhatIf *self)
{
  td_json_key (j, "layers");
  td_json_begin_array (j);
  for (guint i = 0; i < self->n_layers; i++)
    {
      const TdWhatIfLayer *l = &self->layers[i];

      td_json_begin_object (j);
      td_json_member_string (j, "path", l->path);
      td_json_member_string (j, "name", l->name);
      td_json_member_int (j, "event", l->event);
      td_json_member_int (j, "ops", l->n_ops);
      td_json_member_int (j, "calls", l->n_calls);
      td_json_member_int (j, "kept_bytes", (gint64)l->held_bytes);
      td_json_member_int (j, "time_ns", (gint64)l->time_ns);
      td_json_member_bool (j, "chosen", l->chosen);
      td_json_end_object (j);
    }
  td_json_end_array (j);
}

static void
add_rows (TdJson *j, TdWhatIf *self)
{
  g_autoptr (GArray) rows = make_rows (self);

  td_json_key (j, "first");
  td_json_begin_array (j);
  for (guint i = 0; i < rows->len; i++)
    {
      const Row *row = &g_array_index (rows, Row, i);

      td_json_begin_object (j);
      td_json_member_int (j, "layers", row->n);
      td_json_member_int (j, "peak_bytes", (gint64)row->peak);
      td_json_member_int (j, "more_ns", (gint64)row->more_ns);
      td_json_end_object (j);
    }
  td_json_end_array (j);
}

static void
add_measured (TdJson *j, TdIteration *measured)
{
  td_json_key (j, "measured");
  if (!measured)
    {
      td_json_null (j);
      return;
    }
  TdMemoryProfile *p = td_memory_profile_new (measured);

  td_json_begin_object (j);
  td_json_member_int (j, "iteration", td_iteration_get_number (measured));
  td_json_member_int (j, "peak_bytes", (gint64)p->peak_bytes);
  td_json_member_int (j, "time_ns", (gint64)td_devices_sum_durations (measured));
  td_json_end_object (j);
  td_memory_profile_free (p);
}

static char *
print_json (TdWhatIf *self, const TdWhatIfForecast *f, TdIteration *measured)
{
  g_autofree char *sentence = td_what_if_sentence (self);
  GString *out = g_string_new (NULL);
  TdJson j;

  td_json_init (&j, out);
  td_json_begin_object (&j);
  td_json_member_int (&j, "iteration", td_iteration_get_number (self->iteration));
  td_json_member_string (&j, "sentence", sentence);
  td_json_member_int (&j, "recorded_peak_bytes", (gint64)self->recorded->peak_bytes);
  td_json_member_int (&j, "predicted_peak_bytes", (gint64)f->peak_bytes);
  td_json_member_int (&j, "predicted_peak_event", f->peak_event);
  td_json_member_int (&j, "more_ns", (gint64)f->more_ns);
  td_json_member_int (&j, "time_ns", (gint64)self->time_ns);
  add_measured (&j, measured);
  add_layers (&j, self);
  add_rows (&j, self);
  td_json_end_object (&j);
  return g_string_free (out, FALSE);
}

char *
td_what_if_print (TdWhatIf *self, TdIteration *measured, const char *format)
{
  TdWhatIfForecast f = td_what_if_predict (self);
  char *text;

  if (g_str_equal (format, "json"))
    text = print_json (self, &f, measured);
  else if (g_str_equal (format, "csv"))
    text = print_csv (self);
  else
    text = print_text (self, &f, measured);
  return text;
}
