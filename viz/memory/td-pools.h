/*
 * The pools of a device's memory at the end of an iteration: what is reserved for what, and how
 * much of that is in use, on its way back, or free.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "scene/td-json.h"
#include "td-memory.h"

G_BEGIN_DECLS

/** Height of the band, with its room above. */
#define TD_POOLS_BAND_HEIGHT 20.0

/** Whether the iteration says anything of pools of this device. */
gboolean td_pools_any (const TdIteration *iteration, guint device);
/**
 * Draw a bar of all that the program and its recording reserved of a device, pool by pool: in
 * use, given back while work may use it, free; with all numbers of a pool in its tooltip.
 */
void td_pools_add_band (TdSceneBuilder *builder, const TdIteration *iteration, guint device,
                        TdSceneRect place);
/** Append a line for each pool; nothing where there are none. */
void td_pools_append_text (GString *out, const TdIteration *iteration);
/** Add the member "pools": a list of objects; nothing where there are none. */
void td_pools_add_json (TdJson *json, const TdIteration *iteration);

G_END_DECLS
