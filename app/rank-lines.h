/* What mpirun passes on of its ranks' output, by whole lines with the rank before each.
 *
 * mpirun reads what ranks write in pieces, which may end within a line, and puts a tag before
 * each: "[1,2]<stdout>:" is of rank 2.  Here they become lines again.  A program that prints
 * such a tag itself is misread: mpirun's cannot be told from it.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef struct TdRankLines TdRankLines;

/** For the output of n ranks that goes to `fd`; spaced: a space is part of a tag (Open MPI 5).
 * *Owner*: the caller, td_rank_lines_free.  NULL without memory. */
TdRankLines *td_rank_lines_new (int n, int fd, bool spaced);
/** Take more of it; lines that are whole are written. */
void td_rank_lines_take (TdRankLines *lines, const char *bytes, size_t n);
/** Write what has no end of line yet, and free all. */
void td_rank_lines_free (TdRankLines *lines);
