/*
 * What the two files of the picture Growth share: the curve, and the look of a row's band in
 * it.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "td-growth.h"

#define TD_GROWTH_BANDS 7 /* all further rows are one */

/** Return how the band of the row in that place is filled. */
TdStyle td__growth_look (const TdHolders *holders, const TdHolder *holder, guint place);

/** Draw the stack of all rows over the marks (two or more); `cursor`: which is chosen, from 1.
 * Bands are hit as their rows are. */
void td__growth_add_curve (TdSceneBuilder *builder, const TdHolders *holders,
                           const TdRetained *retained, const guint *order, guint cursor,
                           TdSceneRect place);
