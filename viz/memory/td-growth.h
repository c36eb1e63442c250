/*
 * The pictures of the pages Growth and Holders: rows of series over the marks, and rows of what
 * would be freed, with the way to it.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "memory/td-retained.h"

G_BEGIN_DECLS

/** Order holders for the page: those that grow, then by bytes grown over all marks. Owner: the
 * caller, n_holders entries. */
guint *td_growth_order (const TdHolders *holders);
/** Return the bytes that came since the first mark; below 0: that went. */
gint64 td_growth_bytes (const TdHolders *holders, const TdHolder *holder);
/** Return a holder or a site in few words; retained may be NULL. Owner: the caller. */
char *td_growth_dup_title (const TdHolders *holders, const TdRetained *retained,
                           const TdHolder *holder);
/** Return what a row says to those who do not see it. Owner: the caller. */
char *td_growth_describe (const TdHolders *holders, const TdRetained *retained,
                          const TdHolder *holder);
/** Return the sentence for the top of a page: what grows most, who keeps it, what to do; or
 * that nothing grows. Owner: the caller. */
char *td_growth_headline (const TdHolders *holders, const TdRetained *retained);

/** Draw the bytes of all over the iterations, one on top of the other, where there is room for
 * it; below or beside it, as its legend, a row for each in order (view->cursor: which is
 * chosen, from 1): title, series, bytes now and how many came. Rows and their bands are hit as
 * TD_TAG_ROW with their place. */
TdScene *td_growth_rows_scene (const TdHolders *holders, const TdRetained *retained,
                               const TdPanelView *view);

/* A place in the list of what is retained: a row, or one of its sites; cursor - 1. */
#define TD_RETAINED_SUBS 16
#define TD_RETAINED_LINE(row, sub) ((row)*TD_RETAINED_SUBS + (sub))

/** Count the sites of a row that the list shows, below TD_RETAINED_SUBS. */
guint td_retained_count_subs (const TdRetained *self, guint row);
/** Return the object that a line stands for. */
guint td_retained_line_object (const TdRetained *self, guint line);
/** Return a line in words, with the way to it. Owner: the caller. */
char *td_retained_describe (const TdRetained *self, guint line);
/** Draw the rows with own and retained bytes; the one with the cursor (view->cursor: its line,
 * plus 1; 0: the first) is open and shows its sites. Lines are hit as TD_TAG_ROW. */
TdScene *td_retained_scene (const TdRetained *self, const TdPanelView *view);

G_END_DECLS
