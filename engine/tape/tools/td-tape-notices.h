/* What a recording says about itself, without saying it a thousand times.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "td-tape-reader.h"

TD_TAPE_BEGIN_C

enum
{
  TD_TAPE_MOST_NOTICE_SORTS = 32
};

/** Notices of the recording that are alike but for numbers, as one for each request to a server
 * that was recorded. */
typedef struct
{
  const TdTapeNotice *first, *last; /* *Owner*: the reader */
  uint32_t n;
} TdTapeNoticeSort;

/** Sort the notices of the recording, in the order of the first of each sort, into an array of
 * TD_TAPE_MOST_NOTICE_SORTS; what there is no room for counts for the last of them.  Returns
 * how many sorts there are. */
TD_API uint32_t td_tape_notice_sorts (TdTapeReader *r, TdTapeNoticeSort *sorts);
/** How the others of a sort are told behind its first: " (and 4 more of that sort, the last of
 * iteration 9: ...)", or "" where there are none.  *Owner*: the caller, free ().  NULL: no
 * memory. */
TD_API char *td_tape_notice_others (TdTapeReader *r, const TdTapeNoticeSort *sort);

TD_TAPE_END_C
