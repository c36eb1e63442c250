/* Runs `tapedeck recompute` for one iteration of a tape. SPDX-License-Identifier: MIT */
#pragma once

#include "live/td-job.h"

/** Start it. "ended" says "" when all came out equal; its tape is there then, and also with
 * differences. Owner: caller. Errors: NULL and `error`. */
TdJob *td_recompute_new (const char *tape, gint64 iteration, GError **error);
