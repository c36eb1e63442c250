/* The deck: transport buttons, where the playhead is, and the scrubber of two strips. Always
 * visible; all of its buttons are actions of the window.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <adwaita.h>

#include "td-session.h"

#define TD_TYPE_DECK (td_deck_get_type ())
G_DECLARE_FINAL_TYPE (TdDeck, td_deck, TD, DECK, GtkWidget)

/** Create the deck with the strips of all iterations and of the events of one. Owner: floating.
 */
GtkWidget *td_deck_new (GtkWidget *iterations, GtkWidget *events);

/** What recording costs the program, and what it has lost. */
typedef struct
{
  guint64 cost_ns, ran_ns;    /* of the time that it ran; 0 and 0: not known */
  guint64 n_waits, waited_ns; /* for the recorder */
  guint64 tape_bytes;
  gboolean is_lost; /* nothing is recorded any more */
} TdCost;

/** Show it beside the state of the program. NULL: nothing is known. */
void td_deck_set_cost (TdDeck *self, const TdCost *cost);

void td_deck_set_session (TdDeck *self, TdSession *session);

/** Say what the playhead moved to, for screen readers. */
void td_deck_announce (TdDeck *self, const char *text);

/** Return the words a screen reader hears for the scrubber. Owner: caller. */
char *td_deck_dup_value_text (TdDeck *self);

/** Leave out what a narrow window has no room for. */
void td_deck_set_narrow (TdDeck *self, gboolean narrow);
