/* What the files of the MPI module share.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "../transport.h"

#include <mpi.h>

enum
{
  PIECE = 1 << 30 /* bytes of one message: MPI counts in int */
};

/** A message that is on its way. */
typedef struct Sent
{
  MPI_Request request;
  void *data;
  struct Sent *next;
} Sent;

typedef struct
{
  TdWire wire;
  MPI_Comm comm;
  MPI_Request meeting;
  Sent *sent;
} MpiWire;

/** Was that well?  Else *why. */
bool td_mpi_fine (int error, const char *call, char *why);
/** Wait for a request, and let others have the processor meanwhile. */
bool td_mpi_wait (MPI_Request *request, const char *call, char *why);

/* sums.c: the table's */
bool td_mpi_sum (TdWire *wire, void *data, int64_t n, TdWireKind kind, char *why);
TdWireSum *td_mpi_sum_begin (TdWire *wire, void *data, int64_t n, TdWireKind kind, char *why);
bool td_mpi_sum_test (TdWireSum *sum);
bool td_mpi_sum_end (TdWireSum *sum, char *why);
void td_mpi_sum_drop (TdWireSum *sum, void *data);
/** How numbers of 16 bits are added. */
void td_mpi_sums_add_by (const TdWireAdds *adds);
/** MPI has ended: what it may have read until then can go. */
void td_mpi_sums_end (void);
