/* The view of the dock that lists the breakpoints of the program that runs: each with a switch,
 * its text, which can be changed, how often it stopped, and a button that takes it away; below,
 * a line for a new one. It knows no program: whoever shows it says what there is, and does what
 * it asks. SPDX-License-Identifier: MIT */
#pragma once

#include <gtk/gtk.h>

/** One of the list. */
typedef struct
{
  gint64 id;
  const char *text;
  gboolean enabled;
  guint64 n_hits;
} TdBreakRow;

#define TD_TYPE_BREAKS_PAGE (td_breaks_page_get_type ())
G_DECLARE_FINAL_TYPE (TdBreaksPage, td_breaks_page, TD, BREAKS_PAGE, GtkWidget)

/** Create the view. Signals: "wanted" (none): it came on show, and its rows may be old; "asked"
 * (a command of the control protocol: "break EXPR", "rebreak ID EXPR", "rebreak ID on" or
 * "off", "unbreak ID"). Owner: floating. */
GtkWidget *td_breaks_page_new (void);

/** Say what there is. `live`: a program runs and can be asked; else rows are NULL and 0. A row
 * whose text is being written is left alone. */
void td_breaks_page_set_rows (TdBreaksPage *self, const TdBreakRow *rows, guint n,
                              gboolean live);

/** Say why what was asked last was not done; NULL: it was. */
void td_breaks_page_set_error (TdBreaksPage *self, const char *error);

/** Return what row i says, "on|off, TEXT, stopped N times"; NULL: there is none. Owner: the
 * caller. */
char *td_breaks_page_dup_row (TdBreaksPage *self, guint i);

/** Give the keyboard to the line for a new one. */
void td_breaks_page_focus_new (TdBreaksPage *self);
