/*
 * What the files of holders share: judging.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "td-holders.h"

/** Find whether a holder grows, or may, and how fast, from its series and n_iterations. */
void td__holder_judge (TdHolder *holder, const TdHoldersMark *marks, guint n_marks);
