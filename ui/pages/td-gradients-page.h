/* The Gradients page: norms of parameters by iteration, and who got none.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "pages/td-page.h"

#define TD_TYPE_GRADIENTS_PAGE (td_gradients_page_get_type ())
G_DECLARE_FINAL_TYPE (TdGradientsPage, td_gradients_page, TD, GRADIENTS_PAGE, TdPage)

/** Create the page. Owner: the caller. */
TdPage *td_gradients_page_new (void);
