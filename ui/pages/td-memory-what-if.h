/* What memory would be if layers were computed again in backward, on the Memory page: a slider,
 * a sentence, a picture. SPDX-License-Identifier: MIT */
#pragma once

#include "pages/td-page.h"

#define TD_TYPE_MEMORY_WHAT_IF (td_memory_what_if_get_type ())
G_DECLARE_FINAL_TYPE (TdMemoryWhatIf, td_memory_what_if, TD, MEMORY_WHAT_IF, TdPage)

/** Create it, with the picture "what-if". Owner: the caller. */
TdMemoryWhatIf *td_memory_what_if_new (void);

/** Fill the head of the card, whose layout `builder` has. */
void td_memory_what_if_build (TdMemoryWhatIf *self, GtkBuilder *builder);

/** The Memory page is on show now: look again. */
void td_memory_what_if_look (TdMemoryWhatIf *self);
