/* The Curves page: what the program reported, over the iterations.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "pages/td-page.h"

#define TD_TYPE_CURVES_PAGE (td_curves_page_get_type ())
G_DECLARE_FINAL_TYPE (TdCurvesPage, td_curves_page, TD, CURVES_PAGE, TdPage)

/** Create the page. Owner: the caller. */
TdPage *td_curves_page_new (void);
