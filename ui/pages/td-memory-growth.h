/* Why memory grows, on the Memory page: a sentence, the rows of Growth, those of Holders.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "pages/td-page.h"

#define TD_TYPE_MEMORY_GROWTH (td_memory_growth_get_type ())
G_DECLARE_FINAL_TYPE (TdMemoryGrowth, td_memory_growth, TD, MEMORY_GROWTH, TdPage)

/** Create it, with the pictures "growth" and "holders". Owner: the caller. */
TdMemoryGrowth *td_memory_growth_new (void);

/** Fill the sentence and the heads of both cards, whose layout `builder` has. */
void td_memory_growth_build (TdMemoryGrowth *self, GtkBuilder *builder);

/** The Memory page is on show now: look again. */
void td_memory_growth_look (TdMemoryGrowth *self);
