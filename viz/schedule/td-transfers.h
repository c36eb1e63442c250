/*
 * Copies between devices in an iteration, and which of them were not needed.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "scene/td-json.h"
#include "tape/td-iteration.h"

G_BEGIN_DECLS

typedef enum
{
  TD_TRANSFER_NEEDED,        /* as far as one can tell */
  TD_TRANSFER_AGAIN,         /* the same numbers had been copied there before */
  TD_TRANSFER_THERE_AND_BACK /* came back as it went, and nothing had read it there */
} TdTransferNeed;

typedef struct
{
  guint event;
  TdTransferNeed need;
  gint there; /* the event that it comes back from; -1: none */
  guint64 key, bytes, ns;
  char *name, *from, *to, *site;
} TdTransfer;

typedef struct
{
  guint n, n_unneeded;
  TdTransfer *rows;
  guint64 bytes, unneeded_bytes, ns;
} TdTransfers;

/** Owner: the caller. */
TdTransfers *td_transfers_new (const TdIteration *iteration);
void td_transfers_free (TdTransfers *transfers);
/** Append the report, nothing when there was no copy. */
void td_transfers_print (const TdTransfers *transfers, GString *out);
/** Append an object. */
void td_transfers_print_json (const TdTransfers *transfers, TdJson *json);

G_END_DECLS
