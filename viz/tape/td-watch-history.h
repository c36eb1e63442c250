/*
 * The norm of a watched thing over the iterations, read from the tape bit by bit, and its small
 * curve.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "scene/td-panel.h"

G_BEGIN_DECLS

typedef struct TdWatchHistory TdWatchHistory;

/** Begin a history; the reader must outlive it. Owner: the caller. */
TdWatchHistory *td_watch_history_new (TdTapeReader *reader);
void td_watch_history_free (TdWatchHistory *self);

/** Read the norms of these keys in the `n` iterations up to `iteration`, newest first, for at
 * most `budget_us`. Returns how many iterations are still to be read. */
guint td_watch_history_read (TdWatchHistory *self, const guint64 *keys, guint n_keys,
                             gint64 iteration, guint n, gint64 budget_us);
/** Return the norm in an iteration; NaN: not recorded, or not read yet. */
double td_watch_history_get (const TdWatchHistory *self, guint64 key, gint64 iteration);

/** Draw the `n` iterations up to the view's as a line with a dot at its end. */
TdScene *td_watch_history_scene (const TdWatchHistory *self, guint64 key, guint n,
                                 const TdPanelView *view);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TdWatchHistory, td_watch_history_free)

G_END_DECLS
