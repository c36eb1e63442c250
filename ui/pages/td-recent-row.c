/* A row of recent recordings. The tape is read in a worker thread with a reader of its own,
 * down to a few hundred points; the row is drawn from those. SPDX-License-Identifier: MIT */
#include "pages/td-recent-row.h"

#include <glib/gi18n-lib.h>
#include <math.h>
#include <string.h>

#include "ranks/td-rank-files.h"
#include "td-session.h"
#include "widgets/td-scene-view.h"

#define N_POINTS 96
#define SPARK_WIDTH 112
#define SPARK_HEIGHT 30
/* A tape this large takes a moment to read; its row then shows only name and size. */
#define MAX_READ_BYTES (512ll << 20)

/** What the worker finds. */
typedef struct
{
  char *path;
  guint n_iterations;
  guint n_loss, n_memory;
  double loss[N_POINTS], memory[N_POINTS];
  char *badge; /* NULL: nothing went wrong */
} Digest;

static void
digest_free (Digest *d)
{
  g_free (d->path);
  g_free (d->badge);
  g_free (d);
}

/* ---- worker ---- */

static void
take_memory (Digest *d, TdTapeSummaries summaries)
{
  d->n_memory = MIN (summaries.n, N_POINTS);
  for (guint i = 0; i < d->n_memory; i++)
    d->memory[i] = (double)summaries.rows[(guint64)i * summaries.n / d->n_memory].peak_bytes;
}

/* The report called "loss", else the first one there is. */
static void
take_loss (Digest *d, TdTapeReader *reader)
{
  guint64 n, n_of_key = 0, k = 0;
  const TdTapeReport *reports = td_tape_reader_reports (reader, &n);
  guint32 key = n ? reports[0].key : 0;
  for (guint64 i = 0; i < n; i++)
    if (strcmp (td_tape_reader_string (reader, reports[i].key), "loss") == 0)
      {
        key = reports[i].key;
        break;
      }
  for (guint64 i = 0; i < n; i++)
    n_of_key += reports[i].key == key;
  for (guint64 i = 0; i < n && d->n_loss < N_POINTS; i++)
    if (reports[i].key == key && k++ * N_POINTS / MAX (n_of_key, N_POINTS) >= d->n_loss)
      d->loss[d->n_loss++] = reports[i].value;
}

static void
take_badge (Digest *d, TdTapeReader *reader, TdTapeSummaries summaries)
{
  static const struct
  {
    guint32 flag;
    const char *words;
  } findings[] = { { TD_TAPE_ITERATION_NAN, "NaN" },
                   { TD_TAPE_ITERATION_ERROR, N_ ("Error") },
                   { TD_TAPE_ITERATION_INF, N_ ("Inf") } };
  const TdTapeEnd *end = td_tape_reader_end (reader);
  for (guint32 i = 0; i < summaries.n && !d->badge; i++)
    for (guint k = 0; k < G_N_ELEMENTS (findings) && !d->badge; k++)
      if (summaries.rows[i].flags & findings[k].flag)
        d->badge = g_strdup_printf ("✕ %s at %" G_GUINT64_FORMAT, _ (findings[k].words),
                                    summaries.rows[i].number);
  if (!d->badge && end && end->signal)
    d->badge = g_strdup_printf ("✕ Signal %d", end->signal);
  else if (!d->badge && end && end->status > 0)
    d->badge = g_strdup_printf (_ ("Exited with %d"), end->status);
}

static void
digest_tape (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  Digest *d = g_new0 (Digest, 1);
  char error[256];
  d->path = g_strdup (data);
  TdTapeReader *reader = td_tape_reader_open (d->path, error, sizeof error);
  if (reader)
    {
      TdTapeSummaries summaries = td_tape_reader_summaries (reader);
      d->n_iterations = (guint)td_tape_reader_thinning (reader).n_iterations;
      take_memory (d, summaries);
      take_loss (d, reader);
      take_badge (d, reader, summaries);
      td_tape_reader_free (reader);
    }
  else
    d->badge = g_strdup (_ ("Cannot be read"));
  g_task_return_pointer (task, d, (GDestroyNotify)digest_free);
}

/* ---- drawing ---- */

static void
range_of (const double *values, guint n, double *lo, double *hi)
{
  *lo = G_MAXDOUBLE;
  *hi = -G_MAXDOUBLE;
  for (guint i = 0; i < n; i++)
    if (isfinite (values[i]))
      {
        *lo = MIN (*lo, values[i]);
        *hi = MAX (*hi, values[i]);
      }
}

static void
trace (cairo_t *cr, const double *values, guint n, double lo, double hi, int width, int height)
{
  for (guint i = 0; i < n; i++)
    {
      double x = n > 1 ? (double)i * (width - 2) / (n - 1) + 1 : width / 2.0;
      double value = isfinite (values[i]) ? values[i] : hi;
      double y = height - 3 - (hi > lo ? (value - lo) / (hi - lo) : 0.5) * (height - 6);
      cairo_line_to (cr, x, y);
    }
}

static void
draw_loss (GtkDrawingArea *area, cairo_t *cr, int width, int height, gpointer data)
{
  const Digest *d = data;
  TdColor c = td_scene_view_get_theme ()->color[TD_ROLE_TEXT];
  double lo, hi;
  range_of (d->loss, d->n_loss, &lo, &hi);
  if (hi < lo)
    return;
  trace (cr, d->loss, d->n_loss, lo, hi, width, height);
  cairo_set_source_rgba (cr, c.r, c.g, c.b, c.a);
  cairo_set_line_width (cr, 1.4);
  cairo_stroke (cr);
}

/* Memory begins at zero: a flat area is a program that does not grow. */
static void
draw_memory (GtkDrawingArea *area, cairo_t *cr, int width, int height, gpointer data)
{
  const Digest *d = data;
  TdColor c = td_scene_view_get_theme ()->color[TD_ROLE_ACTIVATION];
  double lo, hi;
  range_of (d->memory, d->n_memory, &lo, &hi);
  if (hi <= 0)
    return;
  trace (cr, d->memory, d->n_memory, 0, hi * 1.25, width, height);
  cairo_path_t *line = cairo_copy_path (cr);
  cairo_line_to (cr, width - 1, height);
  cairo_line_to (cr, 1, height);
  cairo_close_path (cr);
  cairo_set_source_rgba (cr, c.r, c.g, c.b, 0.22);
  cairo_fill (cr);
  cairo_append_path (cr, line);
  cairo_path_destroy (line);
  cairo_set_source_rgba (cr, c.r, c.g, c.b, c.a);
  cairo_set_line_width (cr, 1.4);
  cairo_stroke (cr);
}

static GtkWidget *
new_spark (const char *words, GtkDrawingAreaDrawFunc draw, Digest *digest)
{
  GtkWidget *area
      = g_object_new (GTK_TYPE_DRAWING_AREA, "accessible-role", GTK_ACCESSIBLE_ROLE_IMG, NULL);
  gtk_drawing_area_set_content_width (GTK_DRAWING_AREA (area), SPARK_WIDTH);
  gtk_drawing_area_set_content_height (GTK_DRAWING_AREA (area), SPARK_HEIGHT);
  gtk_drawing_area_set_draw_func (GTK_DRAWING_AREA (area), draw, digest, NULL);
  gtk_widget_set_valign (area, GTK_ALIGN_CENTER);
  gtk_widget_set_tooltip_text (area, words);
  gtk_accessible_update_property (GTK_ACCESSIBLE (area), GTK_ACCESSIBLE_PROPERTY_LABEL, words,
                                  -1);
  return area;
}

/* ---- row ---- */

static void
digested (GObject *source, GAsyncResult *result, gpointer data)
{
  GtkWidget *row = GTK_WIDGET (source);
  Digest *d = g_task_propagate_pointer (G_TASK (result), NULL);
  GtkBox *suffix = g_object_get_data (G_OBJECT (row), "suffix");
  if (!d)
    return;
  g_object_set_data_full (G_OBJECT (row), "digest", d, (GDestroyNotify)digest_free);
  if (d->badge)
    {
      GtkWidget *badge = gtk_label_new (d->badge);
      gtk_widget_add_css_class (badge, "td-chip");
      gtk_widget_add_css_class (badge, "error");
      gtk_widget_set_valign (badge, GTK_ALIGN_CENTER);
      gtk_box_append (suffix, badge);
    }
  gtk_box_append (suffix, new_spark ("Loss", draw_loss, d));
  gtk_box_append (suffix, new_spark ("Peak memory", draw_memory, d));
  g_autofree char *old = g_strdup (adw_action_row_get_subtitle (ADW_ACTION_ROW (row)));
  g_autofree char *text = g_strdup_printf ("%u iteration%s · %s", d->n_iterations,
                                           d->n_iterations == 1 ? "" : "s", old);
  adw_action_row_set_subtitle (ADW_ACTION_ROW (row), text);
}

static char *
describe_age (GDateTime *when)
{
  g_autoptr (GDateTime) now = g_date_time_new_now_local ();
  g_autoptr (GDateTime) local = g_date_time_to_local (when);
  int days = g_date_time_get_day_of_year (now) - g_date_time_get_day_of_year (local);
  if (g_date_time_get_year (now) != g_date_time_get_year (local))
    return g_date_time_format (local, "%e %B %Y");
  if (days == 0)
    return g_date_time_format (local, "%H:%M");
  if (days == 1)
    return g_strdup ("Yesterday");
  return g_date_time_format (local, days < 7 ? "%A" : "%e %B");
}

/* Runs of the app are all called run.tdtape: their folder carries the name. */
static char *
dup_title (const char *path)
{
  char *name = g_path_get_basename (path);
  if (g_str_equal (name, "run.tdtape"))
    {
      g_autofree char *folder = g_path_get_dirname (path);
      g_free (name);
      name = g_path_get_basename (folder);
    }
  else if (g_str_has_suffix (name, ".tdtape"))
    name[strlen (name) - strlen (".tdtape")] = '\0';
  g_autofree char *raw = name;
  return g_utf8_make_valid (raw, -1);
}

static goffset
size_of (const char *path)
{
  g_autoptr (GFile) file = g_file_new_for_path (path);
  g_autoptr (GFileInfo) info
      = g_file_query_info (file, G_FILE_ATTRIBUTE_STANDARD_SIZE, 0, NULL, NULL);
  return info ? g_file_info_get_size (info) : 0;
}

const char *
td_recent_row_get_path (GtkWidget *row)
{
  return g_object_get_data (G_OBJECT (row), "path");
}

GtkWidget *
td_recent_row_new (const char *path, GDateTime *modified)
{
  GtkWidget *row = adw_action_row_new ();
  g_autofree char *title = dup_title (path);
  g_autofree char *folder = g_path_get_dirname (path);
  guint n_ranks = 0; /* of a folder the first rank's recording is read */
  g_autofree char *tape = g_file_test (path, G_FILE_TEST_IS_DIR)
                              ? td_rank_files_find_first (path, &n_ranks)
                              : g_strdup (path);
  goffset bytes = tape ? size_of (tape) : 0;
  g_autofree char *size
      = n_ranks ? g_strdup_printf ("%u ranks", n_ranks) : g_format_size ((guint64)bytes);
  g_autofree char *subtitle = g_strdup_printf ("%s · %s", size, folder);
  g_autofree char *valid = g_utf8_make_valid (subtitle, -1);
  g_autofree char *escaped = g_markup_escape_text (valid, -1);
  adw_preferences_row_set_use_markup (ADW_PREFERENCES_ROW (row), FALSE);
  adw_preferences_row_set_title (ADW_PREFERENCES_ROW (row), title);
  adw_action_row_set_subtitle (ADW_ACTION_ROW (row), escaped);
  adw_action_row_set_subtitle_lines (ADW_ACTION_ROW (row), 1);

  GtkWidget *suffix = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 18);
  adw_action_row_add_suffix (ADW_ACTION_ROW (row), suffix);
  g_autofree char *age = describe_age (modified);
  GtkWidget *when = gtk_label_new (age);
  gtk_label_set_xalign (GTK_LABEL (when), 1);
  gtk_label_set_width_chars (GTK_LABEL (when), 10);
  gtk_widget_add_css_class (when, "dim-label");
  gtk_widget_add_css_class (when, "caption");
  adw_action_row_add_suffix (ADW_ACTION_ROW (row), when);
  adw_action_row_add_suffix (ADW_ACTION_ROW (row),
                             gtk_image_new_from_icon_name ("go-next-symbolic"));
  gtk_list_box_row_set_activatable (GTK_LIST_BOX_ROW (row), TRUE);
  g_object_set_data_full (G_OBJECT (row), "path", g_strdup (path), g_free);
  g_object_set_data (G_OBJECT (row), "suffix", suffix);
  if (tape && bytes <= MAX_READ_BYTES)
    {
      GTask *task = g_task_new (row, NULL, digested, NULL);
      g_task_set_task_data (task, g_steal_pointer (&tape), g_free);
      g_task_run_in_thread (task, digest_tape);
      g_object_unref (task);
    }
  return row;
}
