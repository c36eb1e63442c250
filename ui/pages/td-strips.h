/* The two strips of the deck: all iterations with the flags of notes, and the events of the one
 * at the playhead. SPDX-License-Identifier: MIT */
#pragma once

#include "pages/td-page.h"
#include "tape/td-notebook.h"

#define TD_TYPE_STRIPS (td_strips_get_type ())
G_DECLARE_FINAL_TYPE (TdStrips, td_strips, TD, STRIPS, TdPage)

/** Create the strips "iterations-strip" and "events-strip". Owner: the caller. */
TdStrips *td_strips_new (void);

/** Show the notes of a notebook as flags on the strip of iterations; NULL: none. */
void td_strips_set_notebook (TdStrips *self, TdNotebook *notebook);
