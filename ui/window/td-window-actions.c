/* Every command of the window: one table of names, functions and what they need, so that a
 * shortcut, a menu, a button, a test and D-Bus all do the same. Steps are in td-window-steps.c.
 * SPDX-License-Identifier: MIT */
#include "window/td-window-private.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "settings/td-keys.h"
#include "widgets/td-csv.h"
#include "widgets/td-scene-view.h"

#define ZOOM_STEP 1.25

/* ---- selection and graph ---- */

static gboolean
shows_compare (TdWindow *self)
{
  return strcmp (td_workspace_get_perspective (self->workspace), "compare") == 0;
}

/* On the compare page the other canvas follows. */
static TdGraphView *
graph_view (TdWindow *self)
{
  if (shows_compare (self))
    return td_compare_side_get_view (
        td_compare_page_get_side (td_workspace_get_compare (self->workspace), TD_SIDE_A));
  return td_graph_page_get_view (td_workspace_get_graph (self->workspace));
}

static guint64
selected_key (TdWindow *self)
{
  guint n = 0;
  const guint64 *keys = self->session ? td_session_get_selection (self->session, &n) : NULL;
  return n ? keys[0] : 0;
}

/* Without a selection the operation at the playhead is meant. */
static guint64
layer_key (TdWindow *self)
{
  guint64 key = selected_key (self);
  TdIteration *iteration = key ? NULL : td_session_get_current (self->session);
  TdMoment moment = td_session_get_moment (self->session);
  if (iteration && moment.event >= 0
      && (guint)moment.event < td_iteration_get_n_events (iteration))
    key = td_iteration_get_tape (iteration)->events[moment.event].key;
  g_clear_pointer (&iteration, td_iteration_unref);
  return td_graph_view_find_layer (graph_view (self), key);
}

static void
run_expand (TdWindow *self, const char *parameter)
{
  td_graph_view_set_expanded (graph_view (self), layer_key (self), TRUE);
}

static void
run_collapse (TdWindow *self, const char *parameter)
{
  td_graph_view_set_expanded (graph_view (self), layer_key (self), FALSE);
}

static void
run_expand_all (TdWindow *self, const char *parameter)
{
  td_graph_view_expand_to (graph_view (self), -1);
  td_outline_page_expand_all (td_workspace_get_outline (self->workspace), TRUE);
}

static void
run_expand_to (TdWindow *self, const char *parameter)
{
  char *end;
  gint64 depth = g_ascii_strtoll (parameter, &end, 10);
  if (*parameter && !*end && depth >= 0 && depth <= 1000)
    td_graph_view_expand_to (graph_view (self), (int)depth);
  else
    td__window_toast (self, _ ("A depth is a number from 0 on"));
}

static void
run_fit (TdWindow *self, const char *parameter)
{
  td_graph_view_fit (graph_view (self));
}

static void
run_zoom_in (TdWindow *self, const char *parameter)
{
  td_graph_view_zoom (graph_view (self), ZOOM_STEP);
}

static void
run_zoom_out (TdWindow *self, const char *parameter)
{
  td_graph_view_zoom (graph_view (self), 1 / ZOOM_STEP);
}

static void
run_zoom_normal (TdWindow *self, const char *parameter)
{
  td_graph_view_zoom (graph_view (self), 0);
}

static void
run_find (TdWindow *self, const char *parameter)
{
  if (g_str_equal (td_workspace_get_perspective (self->workspace), "compare")
      && td_compare_page_get (td_workspace_get_compare (self->workspace)))
    {
      td_compare_page_find (td_workspace_get_compare (self->workspace));
      return;
    }
  td_workspace_show_page (self->workspace, "debug");
  td_graph_page_find (td_workspace_get_graph (self->workspace));
}

static void
run_filter (TdWindow *self, const char *parameter)
{
  td_workspace_show_page (self->workspace, "debug");
  td_workspace_show_page (self->workspace, "filter");
  td_filter_page_focus (td_workspace_get_filter (self->workspace));
}

/* A key in hexadecimal, or words that are searched for. */
static void
run_select (TdWindow *self, const char *parameter)
{
  char *end;
  guint64 key = g_ascii_strtoull (parameter, &end, 16);
  if (strlen (parameter) == 16 && !*end)
    td_session_select (self->session, key);
  else if (!*parameter)
    td_session_select (self->session, 0);
  else
    td_graph_page_search (td_workspace_get_graph (self->workspace), parameter);
}

static void
run_holders (TdWindow *self, const char *parameter)
{
  td_workspace_show_page (self->workspace, "life");
}

/* ---- history, pages, parts ---- */

static void
run_back (TdWindow *self, const char *parameter)
{
  td_session_go_back (self->session);
}

static void
run_forward (TdWindow *self, const char *parameter)
{
  td_session_go_forward (self->session);
}

/* FILE:LINE */
static void
run_show_source (TdWindow *self, const char *parameter)
{
  const char *colon = strrchr (parameter, ':');
  guint64 line = colon ? g_ascii_strtoull (colon + 1, NULL, 10) : 0;
  g_autofree char *file = colon ? g_strndup (parameter, (gsize)(colon - parameter)) : NULL;
  td_workspace_show_page (self->workspace, "debug");
  td_workspace_show_page (self->workspace, "source");
  if (!file || line == 0 || line > G_MAXINT
      || !td_source_page_show_line (td_workspace_get_source (self->workspace), file,
                                    (guint)line))
    td__window_toast (self, _ ("That line was not stored with the recording"));
}

static void
run_show_page (TdWindow *self, const char *parameter)
{
  gtk_stack_set_visible_child (self->pages, GTK_WIDGET (self->workspace));
  if (!td_workspace_show_page (self->workspace, parameter))
    {
      g_autofree char *text = g_strdup_printf (_ ("There is no page called %s."), parameter);
      td__window_toast (self, text);
    }
}

static void
run_explain (TdWindow *self, const char *parameter)
{
  td_workspace_show_picture (self->workspace, "schedule", "explain");
}

static void
run_flame (TdWindow *self, const char *parameter)
{
  TdFlameSize size;
  if (td_flame_size_find (parameter, &size))
    td_workspace_show_flame (self->workspace, size);
  else
    td__window_toast (self, _ ("What layers cost is said in time or in bytes."));
}

static void
toggle_part (TdWindow *self, TdWorkspacePart part)
{
  td_workspace_set_part_shown (self->workspace, part,
                               !td_workspace_is_part_shown (self->workspace, part));
}

static void
run_toggle_outline (TdWindow *self, const char *parameter)
{
  toggle_part (self, TD_PART_OUTLINE);
}

static void
run_toggle_inspector (TdWindow *self, const char *parameter)
{
  toggle_part (self, TD_PART_INSPECTOR);
}

static void
run_toggle_dock (TdWindow *self, const char *parameter)
{
  toggle_part (self, TD_PART_DOCK);
}

/* ---- pictures ---- */

/* What is on show, for Graphviz. */
static gboolean
save_dot (TdLayout *layout, const char *path, GError **error)
{
  if (!layout)
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED, "%s: there is no graph", path);
      return FALSE;
    }
  g_autofree char *text = td_viz_view_to_dot (layout->view);
  return g_file_set_contents (path, text, -1, error);
}

static const char *
format_of (const char *path)
{
  const char *dot = strrchr (path, '.');
  return dot ? dot + 1 : "png";
}

static gboolean
save_scene (TdScene *scene, const char *path, GError **error)
{
  const char *format = format_of (path);
  return td_scene_export (scene, format, path, strcmp (format, "png") == 0 ? 2.0 : 1.0,
                          td_scene_view_get_theme (), error);
}

static void
say_saved (TdWindow *self, const char *path, const GError *error)
{
  g_autofree char *text = g_strdup_printf (_ ("Saved %s"), path);
  if (error)
    td__window_show_info (self, GTK_MESSAGE_ERROR, error->message);
  else
    td__window_toast (self, text);
}

static void
save_picture (TdWindow *self, const char *path)
{
  g_autoptr (GError) error = NULL;
  TdScene *scene = td_graph_view_get_scene (graph_view (self));
  if (!scene)
    return;
  if (shows_compare (self))
    td__window_save_compare (self, format_of (path), path, &error);
  else if (strcmp (format_of (path), "dot") == 0)
    save_dot (td_graph_view_get_layout (graph_view (self)), path, &error);
  else
    save_scene (scene, path, &error);
  say_saved (self, path, error);
}

static void
run_export (TdWindow *self, const char *parameter)
{
  td__window_ask_where (self, _ ("Export the Graph (.png, .svg, .pdf or .dot)"), "graph.svg",
                        save_picture);
}

static void
run_save_picture (TdWindow *self, const char *parameter)
{
  save_picture (self, parameter);
}

static gboolean
is_panel (GtkWidget *focus)
{
  return focus
         && (td_csv_is_provided (focus) || gtk_widget_get_ancestor (focus, TD_TYPE_SCENE_VIEW));
}

static gboolean
is_menu (GtkWidget *focus)
{
  return focus
         && (gtk_widget_get_ancestor (focus, GTK_TYPE_POPOVER)
             || gtk_widget_get_ancestor (focus, GTK_TYPE_MENU_BUTTON));
}

/* What has the keyboard, or had it before the menu took it. NULL: nothing. */
static GtkWidget *
focused_panel (TdWindow *self)
{
  GtkWidget *focus = gtk_window_get_focus (GTK_WINDOW (self));
  if (is_menu (focus))
    focus = self->panel && gtk_widget_get_mapped (self->panel) ? self->panel : NULL;
  return focus;
}

void
td__window_note_focus (TdWindow *self)
{
  GtkWidget *focus = gtk_window_get_focus (GTK_WINDOW (self));
  if (is_menu (focus))
    return;
  g_set_weak_pointer (&self->panel, is_panel (focus) ? focus : NULL);
}

static gboolean
has_table (TdWindow *self)
{
  GtkWidget *focus = focused_panel (self);
  return focus && td_csv_is_provided (focus);
}

static gboolean
save_table (TdWindow *self, const char *path, GError **error)
{
  GtkWidget *focus = focused_panel (self);
  g_autofree char *text = focus ? td_csv_dup (focus) : NULL;
  if (text)
    return g_file_set_contents (path, text, -1, error);
  g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_FAILED, _ ("There is no table here"));
  return FALSE;
}

/* The picture of that panel. NULL: it has none. */
static TdScene *
focused_scene (TdWindow *self)
{
  GtkWidget *focus = focused_panel (self);
  GtkWidget *view = focus ? gtk_widget_get_ancestor (focus, TD_TYPE_SCENE_VIEW) : NULL;
  return view ? td_scene_view_get_scene (TD_SCENE_VIEW (view)) : NULL;
}

static void
save_panel (TdWindow *self, const char *path)
{
  g_autoptr (GError) error = NULL;
  TdScene *scene = focused_scene (self);
  gboolean table = g_str_has_suffix (path, ".csv");
  if (!scene && !table)
    {
      td__window_toast (self, _ ("Put the keyboard into a picture or a table first"));
      return;
    }
  if (table)
    save_table (self, path, &error);
  else
    save_scene (scene, path, &error);
  say_saved (self, path, error);
}

static void
run_export_panel (TdWindow *self, const char *parameter)
{
  if (focused_scene (self) && has_table (self))
    td__window_ask_where (self, _ ("Export the Picture (.png, .svg, .pdf) or Its Table (.csv)"),
                          "picture.svg", save_panel);
  else if (focused_scene (self))
    td__window_ask_where (self, _ ("Export the Picture (.png, .svg or .pdf)"), "picture.svg",
                          save_panel);
  else if (has_table (self))
    td__window_ask_where (self, _ ("Export the Table (.csv)"), "table.csv", save_panel);
  else
    td__window_toast (self, _ ("Put the keyboard into a picture or a table first"));
}

static void
run_save_panel (TdWindow *self, const char *parameter)
{
  save_panel (self, parameter);
}

/* ---- window ---- */

static void
run_cancel (TdWindow *self, const char *parameter)
{
  if (self->import || self->loading)
    {
      td__run_cancel_import (self, NULL);
      return;
    }
  if (self->record_page && gtk_stack_get_visible_child (self->pages) == self->record_page)
    {
      gtk_stack_set_visible_child (self->pages, self->start_page);
      return;
    }
  if (td__window_stop_playing (self) || td_workspace_leave (self->workspace))
    return;
  if (td_compare_page_close_find (td_workspace_get_compare (self->workspace))
      || td_graph_page_close_find (td_workspace_get_graph (self->workspace)))
    return;
  if (self->tour)
    td__run_lesson_close (self, NULL);
  else if (self->session && selected_key (self))
    td_session_select (self->session, 0);
  else
    gtk_info_bar_set_revealed (GTK_INFO_BAR (self->info_bar), FALSE);
}

static void
run_close (TdWindow *self, const char *parameter)
{
  gtk_window_close (GTK_WINDOW (self));
}

// clang-format off
static const TdWindowAction actions[] = {
  { "play", td__run_play, TD_NEEDS_PLAYABLE },
  { "pause", td__run_pause, TD_NEEDS_RUNNING },
  { "play-pause", td__run_play_pause, TD_NEEDS_STEPPABLE },
  { "continue-back", td__run_continue_back, TD_NEEDS_STEPPABLE },
  { "step-op", td__run_step_op, TD_NEEDS_STEPPABLE },
  { "reverse-step-op", td__run_reverse_step_op, TD_NEEDS_STEPPABLE },
  { "step-over", td__run_step_over, TD_NEEDS_STEPPABLE },
  { "reverse-step-over", td__run_reverse_step_over, TD_NEEDS_STEPPABLE },
  { "step-into", td__run_step_into, TD_NEEDS_STEPPABLE },
  { "reverse-step-into", td__run_reverse_step_into, TD_NEEDS_STEPPABLE },
  { "step-out", td__run_step_out, TD_NEEDS_STEPPABLE },
  { "reverse-step-out", td__run_reverse_step_out, TD_NEEDS_STEPPABLE },
  { "next-iteration", td__run_next_iteration, TD_NEEDS_STEPPABLE },
  { "previous-iteration", td__run_previous_iteration, TD_NEEDS_STEPPABLE },
  { "first-event", td__run_first_event, TD_NEEDS_EVENTS },
  { "last-event", td__run_last_event, TD_NEEDS_EVENTS },
  { "next-anomaly", td__run_next_anomaly, TD_NEEDS_EVENTS },
  { "previous-anomaly", td__run_previous_anomaly, TD_NEEDS_STEPPABLE },
  { "next-difference", td__run_next_difference, TD_NEEDS_EVENTS },
  { "previous-difference", td__run_previous_difference, TD_NEEDS_EVENTS },
  { "run-to-cursor", td__run_to_cursor, TD_NEEDS_EVENTS | TD_NEEDS_SELECTION },
  { "run-to-loss", td__run_to_loss, TD_NEEDS_STEPPABLE },
  { "run-to-backward", td__run_to_backward, TD_NEEDS_STEPPABLE },
  { "run-to-update", td__run_to_update, TD_NEEDS_STEPPABLE },
  { "follow", td__run_follow, TD_NEEDS_LIVE },
  { "toggle-breakpoint", td__run_toggle_breakpoint, TD_NEEDS_LIVE | TD_NEEDS_EVENTS },
  { "break-when", td__run_break_when, TD_NEEDS_LIVE },
  { "record", td__run_record, TD_NEEDS_LIVE },
  { "set-level", td__run_set_level, TD_NEEDS_LIVE, TRUE },
  { "verify-static", td__run_verify_static, TD_NEEDS_LIVE },
  { "run-dynamically", td__run_dynamically, TD_NEEDS_LIVE },
  { "run-statically", td__run_statically, TD_NEEDS_LIVE },
  { "next-function", td__run_next_function, TD_NEEDS_EVENTS },
  { "previous-function", td__run_previous_function, TD_NEEDS_EVENTS },
  { "next-schedule", td__run_next_schedule, TD_NEEDS_EVENTS },
  { "previous-schedule", td__run_previous_schedule, TD_NEEDS_EVENTS },
  { "where-from", td__run_where_from, TD_NEEDS_EVENTS },
  { "where-used", td__run_where_used, TD_NEEDS_EVENTS },
  { "twin", td__run_twin, TD_NEEDS_EVENTS },
  { "path", td__run_path, TD_NEEDS_EVENTS },
  { "go-to", td__run_go_to, TD_NEEDS_RECORDING, TRUE },
  { "go-to-place", td__run_go_to_place, TD_NEEDS_EVENTS },
  { "copy-link", td__run_copy_link, TD_NEEDS_EVENTS },
  { "save-copy", td__run_save_copy, TD_NEEDS_RECORDING },
  { "attach", td__run_attach, TD_NEEDS_NOTHING },
  { "rank", td__run_rank, TD_NEEDS_RECORDING, TRUE },
  { "next-rank", td__run_next_rank, TD_NEEDS_RECORDING },
  { "previous-rank", td__run_previous_rank, TD_NEEDS_RECORDING },
  { "detach", td__run_detach, TD_NEEDS_LIVE },
  { "holders", run_holders, TD_NEEDS_EVENTS },
  { "expand", run_expand, TD_NEEDS_EVENTS },
  { "collapse", run_collapse, TD_NEEDS_EVENTS },
  { "expand-all", run_expand_all, TD_NEEDS_EVENTS },
  { "expand-to", run_expand_to, TD_NEEDS_EVENTS, TRUE },
  { "fit", run_fit, TD_NEEDS_EVENTS },
  { "zoom-in", run_zoom_in, TD_NEEDS_EVENTS },
  { "zoom-out", run_zoom_out, TD_NEEDS_EVENTS },
  { "zoom-normal", run_zoom_normal, TD_NEEDS_EVENTS },
  { "find", run_find, TD_NEEDS_EVENTS },
  { "filter", run_filter, TD_NEEDS_EVENTS },
  { "select", run_select, TD_NEEDS_RECORDING, TRUE },
  { "compare", td__run_compare, TD_NEEDS_RECORDING },
  { "compare-with", td__run_compare_with, TD_NEEDS_RECORDING, TRUE },
  { "compare-by", td__run_compare_by, TD_NEEDS_RECORDING, TRUE },
  { "compare-iteration", td__run_compare_iteration, TD_NEEDS_RECORDING },
  { "compare-recording", td__run_compare_recording, TD_NEEDS_RECORDING },
  { "compare-previous", td__run_compare_previous, TD_NEEDS_EVENTS },
  { "compare-next", td__run_compare_next, TD_NEEDS_EVENTS },
  { "toggle-numbers", td__run_toggle_numbers, TD_NEEDS_EVENTS },
  { "copy-differences", td__run_copy_differences, TD_NEEDS_EVENTS },
  { "slice", td__run_slice, TD_NEEDS_EVENTS },
  { "evaluate", td__run_evaluate, TD_NEEDS_EVENTS },
  { "copy-values", td__run_copy_values, TD_NEEDS_EVENTS },
  { "export-values", td__run_export_values, TD_NEEDS_EVENTS },
  { "save-values", td__run_save_values, TD_NEEDS_EVENTS, TRUE },
  { "recompute", td__run_recompute, TD_NEEDS_EVENTS },
  { "cancel-recompute", td__run_cancel_recompute, TD_NEEDS_EVENTS },
  { "cancel-import", td__run_cancel_import, TD_NEEDS_NOTHING },
  { "import-again", td__run_import_again, TD_NEEDS_NOTHING },
  { "note", td__run_note, TD_NEEDS_EVENTS },
  { "watch", td__run_watch, TD_NEEDS_EVENTS | TD_NEEDS_SELECTION },
  { "page-keys", td__run_page_keys, TD_NEEDS_NOTHING },
  { "lesson", td__run_lesson, TD_NEEDS_NOTHING, TRUE },
  { "lesson-next", td__run_lesson_next, TD_NEEDS_LESSON },
  { "lesson-back", td__run_lesson_back, TD_NEEDS_LESSON_BEFORE },
  { "lesson-close", td__run_lesson_close, TD_NEEDS_LESSON },
  { "lesson-compare", td__run_lesson_compare, TD_NEEDS_NO_RECORDING },
  { "export", run_export, TD_NEEDS_EVENTS },
  { "save-picture", run_save_picture, TD_NEEDS_EVENTS, TRUE },
  { "export-panel", run_export_panel, TD_NEEDS_EVENTS },
  { "save-panel", run_save_panel, TD_NEEDS_EVENTS, TRUE },
  { "back", run_back, TD_NEEDS_PAST },
  { "forward", run_forward, TD_NEEDS_FUTURE },
  { "show-page", run_show_page, TD_NEEDS_RECORDING, TRUE },
  { "show-source", run_show_source, TD_NEEDS_RECORDING, TRUE },
  { "explain", run_explain, TD_NEEDS_EVENTS },
  { "range", td__run_range, TD_NEEDS_RECORDING, TRUE },
  { "range-from-here", td__run_range_from_here, TD_NEEDS_EVENTS },
  { "range-to-here", td__run_range_to_here, TD_NEEDS_EVENTS },
  { "clear-range", td__run_clear_range, TD_NEEDS_RECORDING },
  { "flame", run_flame, TD_NEEDS_EVENTS, TRUE },
  { "toggle-outline", run_toggle_outline, TD_NEEDS_RECORDING },
  { "toggle-inspector", run_toggle_inspector, TD_NEEDS_RECORDING },
  { "toggle-dock", run_toggle_dock, TD_NEEDS_RECORDING },
  { "cancel", run_cancel, TD_NEEDS_NOTHING },
  { "close", run_close, TD_NEEDS_NOTHING },
};

static const struct { const char *name, *value; } states[] = {
  { "state", "ended" }, { "moment", "-1/-1/0" }, { "selected", "" },
};
// clang-format on

/* ---- the table becomes actions ---- */

static void
activated (GSimpleAction *action, GVariant *parameter, gpointer data)
{
  const TdWindowAction *row = g_object_get_data (G_OBJECT (action), "row");
  row->run (TD_WINDOW (data), parameter ? g_variant_get_string (parameter, NULL) : NULL);
}

/* States are read, not written: a request to change one is ignored. */
static void
ignore_change (GSimpleAction *action, GVariant *value, gpointer data)
{
}

/* Without this GLib would take the missing parameter for the state that is wanted. */
static void
ignore_activation (GSimpleAction *action, GVariant *parameter, gpointer data)
{
}

void
td__window_add_actions (TdWindow *self)
{
  self->actions = actions;
  self->n_actions = G_N_ELEMENTS (actions);
  for (guint i = 0; i < G_N_ELEMENTS (actions); i++)
    {
      g_autoptr (GSimpleAction) action = g_simple_action_new (
          actions[i].name, actions[i].takes_string ? G_VARIANT_TYPE_STRING : NULL);
      g_object_set_data (G_OBJECT (action), "row", (gpointer)&actions[i]);
      g_signal_connect (action, "activate", G_CALLBACK (activated), self);
      g_action_map_add_action (G_ACTION_MAP (self), G_ACTION (action));
    }
  for (guint i = 0; i < G_N_ELEMENTS (states); i++)
    {
      g_autoptr (GSimpleAction) action = g_simple_action_new_stateful (
          states[i].name, NULL, g_variant_new_string (states[i].value));
      g_signal_connect (action, "change-state", G_CALLBACK (ignore_change), NULL);
      g_signal_connect (action, "activate", G_CALLBACK (ignore_activation), NULL);
      g_action_map_add_action (G_ACTION_MAP (self), G_ACTION (action));
    }
}
