/* The keyboard table: one row per action with its accelerators, its single keys and the words
 * that the shortcuts window shows. Everything that binds or lists keys reads this table.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <gtk/gtk.h>

/** One action: its accelerators (application wide) and single keys (canvas, outline, deck). */
typedef struct
{
  const char *action; /* detailed name, "win.step-op" or "win.show-page::memory" */
  const char *title;  /* words of the shortcuts window; NULL: not listed */
  const char *group;  /* heading in the shortcuts window */
  const char *accels; /* separated by spaces */
  const char *single; /* single keys, separated by spaces; "" for none */
} TdKey;

/** Return the table and its length. Owner: static. */
const TdKey *td_keys_table (guint *n_keys);

/** Bind every accelerator of the table on `app`. */
void td_keys_bind_accels (GtkApplication *app);

/** Return a controller with the single keys, for the widgets that take them. Owner: caller. */
GtkEventController *td_keys_new_single_controller (void);

/** Return the first accelerator of `action` as the user reads it, or NULL. Owner: caller. */
char *td_keys_get_label (const char *action);

/** Name `button` for what it does: a tip with the accelerator of `action`, and its label for
 * who does not see it. */
void td_keys_set_words (GtkWidget *button, const char *action, const char *words);

/** The same for each button with an action in `box`, whose words are its tip. */
void td_keys_name_buttons (GtkWidget *box);
