/*
 * One node as the command line's JSON names its members.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "scene/td-json.h"
#include "tape/td-iteration.h"

G_BEGIN_DECLS

/** Write {id, kind: "op", label, op, link, site, phase, shape, dtype, bytes, ns}; the object
 * stays open so that the caller may add members, and ends it. */
void td_node_json_begin_event (TdJson *json, const TdIteration *iteration, guint event);
/** Write the same for a variable: kind "var". */
void td_node_json_begin_var (TdJson *json, const TdIteration *iteration, guint var);

G_END_DECLS
