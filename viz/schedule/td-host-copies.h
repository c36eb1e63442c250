/*
 * Copies between the host and devices in an iteration, by what they are for and where.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "scene/td-json.h"
#include "tape/td-iteration.h"

G_BEGIN_DECLS

/* Those of one line of the program, one way and for one reason. */
typedef struct
{
  guint way, why; /* TdTapeCopyWay, TdTapeCopyWhy */
  guint device, flags;
  guint n, event; /* the first one's */
  guint64 bytes;
  guint64 ns;        /* of the host, busy with them or waiting; of those that were timed */
  guint64 device_ns; /* of the device; of those that were timed there */
  char *site;        /* "" where the engine knows none */
} TdHostCopy;

typedef struct
{
  guint n_rows;
  TdHostCopy *rows; /* in the order of the first copy of each */
  guint n[TD_TAPE_N_COPY_WAYS];
  guint64 bytes[TD_TAPE_N_COPY_WAYS], ns[TD_TAPE_N_COPY_WAYS];
  const TdIteration *iteration; /* which must outlive it */
} TdHostCopies;

/** Owner: the caller. */
TdHostCopies *td_host_copies_new (const TdIteration *iteration);
void td_host_copies_free (TdHostCopies *copies);
/** Say one copy in a line: what for, from where to where, bytes, time, the program's line.
 * Owner: the caller. */
char *td_host_copy_describe (const TdIteration *iteration, const TdTapeCopy *copy);
/** Return where a copy lies on the host's line of time: as it was timed, else where the event
 * is that it came before. Units: ns since the iteration began. */
guint64 td_host_copy_start (const TdIteration *iteration, const TdTapeCopy *copy);
/** Return the copy that an event is, NULL where none is known. */
const TdTapeCopy *td_host_copy_of_event (const TdIteration *iteration, guint event);
/** Append the table, nothing when there was no copy. */
void td_host_copies_print (const TdHostCopies *copies, GString *out);
/** Append a row of CSV, without the end of the line: columns of an operation that a copy has
 * none of stay empty, then way, why, device, site, array, before, unused, the time of the
 * device. */
void td_host_copy_print_csv (const TdIteration *iteration, const TdTapeCopy *copy,
                             GString *out);
/** Append an object: the table, and each copy. */
void td_host_copies_print_json (const TdHostCopies *copies, TdJson *json);

G_END_DECLS
