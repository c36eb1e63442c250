/*
 * Which event shows which step of a schedule.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "td-statics.h"

G_BEGIN_DECLS

gboolean td__statics_is_member (const TdTapeStep *step);
/** Name groups by their members and find each row's leader. */
void td__statics_fill_leaders (TdStaticsFunction *c);
/** Fill the steps by event, of all functions. */
void td__statics_fill_steps (TdStatics *all);

G_END_DECLS
