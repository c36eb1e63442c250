/* Where memory ran out, on the Memory page: figures, who held what, what would help.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "pages/td-page.h"

#define TD_TYPE_MEMORY_OOM (td_memory_oom_get_type ())
G_DECLARE_FINAL_TYPE (TdMemoryOom, td_memory_oom, TD, MEMORY_OOM, TdPage)

/** Create it, with the picture "oom". Owner: the caller. */
TdMemoryOom *td_memory_oom_new (void);

/** Fill the card, whose layout `builder` has. */
void td_memory_oom_build (TdMemoryOom *self, GtkBuilder *builder);

/** The Memory page is on show now: look again. */
void td_memory_oom_look (TdMemoryOom *self);
