/* The window in the test's own process: a fresh window for each test, actions by name,
 * pictures. SPDX-License-Identifier: MIT */
#pragma once

#include "sample-tape.h"
#include "td-test.h"
#include "app/td-application.h"
#include "window/td-window.h"
#include "pages/td-start-page.h"
#include "pages/td-workspace.h"
#include "widgets/td-scene-view.h"

/** Iterations of the sample that ui_test_open_sample (NULL) writes. */
#define SAMPLE_ITERATIONS 60

/** A CMocka row for `f` with a temporary folder and a window of its own. */
#define ui_test(f) cmocka_unit_test_setup_teardown (f, ui_test_setup, ui_test_teardown)

/** Start GTK; ends the program with 77 when there is no display. */
void ui_test_init (int *argc, char ***argv);
int ui_test_setup (void **state);
int ui_test_teardown (void **state);

TdApplication *ui_test_app (void);
TdWindow *ui_test_window (void);
TdSession *ui_test_session (void);
TdWorkspace *ui_test_workspace (void);

/** Open a file and wait until the window shows it or says why not. */
void ui_test_open (const char *path);
/** Record a program of tests/life to `tape`; "torch-NAME" is NAME.py of models/life/torch, and
 * skips the test where no Python has PyTorch. Arguments: its name and its own, ended by NULL;
 * options of `tapedeck run`, ended by NULL, or NULL: none. */
void ui_test_record_life (const char *tape, char *const *arguments, const char *const *options);
/** Write a sample (NULL: the usual one) and open it. */
void ui_test_open_sample (const SampleOptions *options);
/** Do an action of the window; fails the test when it is disabled. */
void ui_test_do (const char *action, const char *parameter);
/** Return one of the read-only states. Owner: caller. */
char *ui_test_state (const char *name);
/** Return which page is on show: start, message, workspace. */
const char *ui_test_page (void);
const char *ui_test_message_title (void);
const char *ui_test_info_text (void);

const char *ui_test_message_text (void);
/** Say whether the info bar shows `text`: for ui_test_wait. */
gboolean ui_test_has_info (gpointer text);
/** Replace the test's window by a fresh one. */
void ui_test_new_window (void);
/** The window was destroyed: what is asked of it next is asked of a fresh one. */
void ui_test_forget_window (void);
/** Run the main loop until `met (data)`; fails the test with `what` when the patience
 * is over. */
void ui_test_wait (const char *what, gboolean (*met) (gpointer data), gpointer data);

/** Return the start page. */
TdStartPage *ui_test_start_page (void);

void ui_test_resize (int width, int height);
void ui_test_set_dark (gboolean dark);
/** Wait until nothing is left to do and the window was drawn. */
void ui_test_settle (void);
/** Say whether the window shows at least `n` colours (in steps of 16) inside its content. */
gboolean ui_test_has_many_colours (guint n);
/** Save the window as a picture among the test's artifacts. */
void ui_test_save_picture (const char *name);
/** The same at a path of its own. */
void ui_test_save_picture_at (const char *path);
/** Is the one saved picture bright and the other dark? */
gboolean ui_test_are_bright_and_dark (const char *bright, const char *dark);
/** Turn a panel to one of its pages and return that page. */
GtkWidget *ui_test_panel_page (const char *panel, const char *page);
/** What "save-panel" writes as CSV of that widget, which takes the keyboard. Owner: the caller;
 * the test fails where there is no table. */
char *ui_test_dup_csv (GtkWidget *widget);
/** The scene view of that page. */
TdSceneView *ui_test_panel_scene_view (const char *panel, const char *page);
/** A key, as GTK would, to whoever listens on the widget.  Returns whether it was taken. */
gboolean ui_test_press_key (GtkWidget *widget, guint keyval);
/** Find the widget of that name, or the button of that label, in this one or below it; NULL:
 * there is none. */
GtkWidget *ui_test_find_named (GtkWidget *widget, const char *name);
GtkWidget *ui_test_find_button (GtkWidget *widget, const char *label);
/** The widget of that name on the workspace, or the test fails. */
GtkWidget *ui_test_named (const char *name);
/** Wait until Graphviz's layout has replaced the quick one, or cannot. */
void ui_test_wait_for_layout (void);

#define assert_moment(i, e)                                                                    \
  do                                                                                           \
    {                                                                                          \
      TdMoment moment_ = td_session_get_moment (ui_test_session ());                           \
      assert_int_equal (moment_.iteration, (i));                                               \
      assert_int_equal (moment_.event, (e));                                                   \
    }                                                                                          \
  while (0)
