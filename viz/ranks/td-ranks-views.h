/*
 * Pictures of one step of all ranks, with their text and JSON: lanes on one clock, the ladder
 * of calls, and the matrix of what ranks have in common.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "scene/td-panel.h"
#include "td-ranks.h"

G_BEGIN_DECLS

/** Draw the findings as sentences, and the ranks below. A finding is hit as TD_TAG_ROW with its
 * place. */
TdScene *td_ranks_findings_scene (const TdRanks *ranks, const TdPanelView *view);

/** One step: the iterations of all ranks that belong together. */
typedef struct _TdRanksStep TdRanksStep;

/** Read the step in which the first rank with it has iteration `number`; -1: that of the first
 * finding that has one, else the last. After td_ranks_look. Owner: the caller. Errors: no such
 * iteration, or it is whole on no tape. Sync: reads that iteration, or all up to it where ranks
 * number them differently. */
TdRanksStep *td_ranks_step_new (TdRanks *ranks, gint64 number, GError **error);
void td_ranks_step_free (TdRanksStep *step);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (TdRanksStep, td_ranks_step_free)
gint64 td_ranks_step_get_number (const TdRanksStep *step);

/** Draw a lane for each rank, on the first one's clock: what it computed, by phase; what it
 * waited in meetings; what it sent and received. */
TdScene *td_ranks_lanes_scene (TdRanksStep *step, const TdPanelView *view);
/** format: "text", "csv" or "json". Owner: the caller; the same of the others. */
char *td_ranks_lanes_print (TdRanksStep *step, const char *format);

/** Draw the calls of the step from top to bottom, those last made where ranks wait: a rung
 * each, with who left it, who waits in it and who is missing, dashed. */
TdScene *td_ranks_ladder_scene (TdRanksStep *step, const TdPanelView *view);
char *td_ranks_ladder_print (TdRanksStep *step, const char *format);

/** Draw arrays by ranks, by kind: equal ones have the same letter. What must be equal and is
 * not is marked on the odd ones. */
TdScene *td_ranks_matrix_scene (TdRanksStep *step, const TdPanelView *view);
char *td_ranks_matrix_print (TdRanksStep *step, const char *format);

G_END_DECLS
