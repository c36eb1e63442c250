/* The Ranks page: where the ranks of one run part, and one iteration of all of them.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "pages/td-page.h"

#define TD_TYPE_RANKS_PAGE (td_ranks_page_get_type ())
G_DECLARE_FINAL_TYPE (TdRanksPage, td_ranks_page, TD, RANKS_PAGE, TdPage)

/** Create the page. Owner: the caller. */
TdPage *td_ranks_page_new (void);

/** Go to the worst finding, once the tapes are read, unless by then the user has gone somewhere
 * or the program still runs. Sync: not now. */
void td_ranks_page_lead (TdRanksPage *self);
