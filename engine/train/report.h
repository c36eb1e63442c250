/* Reports from the inside.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

/** Forget every report and observation that is left. */
void td__reports_finish (void);
