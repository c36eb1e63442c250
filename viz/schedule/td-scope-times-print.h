/* Scopes of the program over time, as text and JSON.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "scene/td-json.h"
#include "schedule/td-scope-times.h"

/** Append the scopes as a table, an empty line before it; nothing where there are none. */
void td_scope_times_print (const GArray *scopes, GString *out);
/** Write the scopes as an array. */
void td_scope_times_print_json (const GArray *scopes, TdJson *j);
