/* What observers are told of static chains.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "entry.h"

/** Say what happened; entry, miss and other_site may be NULL. */
void td__static_tell (TdStatic *s, TdStaticNewsKind what, const TdEntry *entry,
                      const TdMiss *miss, const TdSite *other_site);
/** Number a new plan, and describe it to whoever looks. */
void td__static_tell_plan (TdStatic *s, TdEntry *entry);
