/* Sums over all ranks, waited for at once or later.
 *
 * MPI has no numbers of 16 bits: they are two bytes to it, and added by an operation of the
 * engine's.
 *
 * SPDX-License-Identifier: MIT */
#include "wire.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

struct TdWireSum
{
  int n;
  MPI_Request *requests; /* for pieces of the array */
  void *data;            /* of one that was dropped */
  TdWireSum *next;
};

static TdWireAdds add_by;
static MPI_Op ops[TD_WIRE_N];
static TdWireSum *dropped;

static void
add_f16 (void *from, void *to, int *n, MPI_Datatype *type)
{
  (void)type;
  add_by.f16 (from, to, *n);
}

static void
add_bf16 (void *from, void *to, int *n, MPI_Datatype *type)
{
  (void)type;
  add_by.bf16 (from, to, *n);
}

void
td_mpi_sums_add_by (const TdWireAdds *adds)
{
  add_by = *adds;
}

/* Made when they are used first: MPI has begun by then. */
static MPI_Op
op_of (TdWireKind kind)
{
  if (kind != TD_WIRE_F16 && kind != TD_WIRE_BF16)
    return MPI_SUM;
  if (ops[kind] == (MPI_Op)0)
    MPI_Op_create (kind == TD_WIRE_F16 ? add_f16 : add_bf16, 1, &ops[kind]);
  return ops[kind];
}

typedef struct
{
  MPI_Datatype type;
  size_t bytes;
} Number;

static Number
number_of (TdWireKind kind)
{
  const Number numbers[TD_WIRE_N]
      = { [TD_WIRE_F32] = { MPI_FLOAT, 4 },    [TD_WIRE_F64] = { MPI_DOUBLE, 8 },
          [TD_WIRE_I32] = { MPI_INT32_T, 4 },  [TD_WIRE_I64] = { MPI_INT64_T, 8 },
          [TD_WIRE_U8] = { MPI_UINT8_T, 1 },   [TD_WIRE_F16] = { MPI_UINT16_T, 2 },
          [TD_WIRE_BF16] = { MPI_UINT16_T, 2 } };

  return numbers[kind];
}

static const int64_t piece = PIECE / 8;

bool
td_mpi_sum (TdWire *wire, void *data, int64_t n, TdWireKind kind, char *why)
{
  const Number number = number_of (kind);

  for (int64_t at = 0; at < n; at += piece)
    if (!td_mpi_fine (MPI_Allreduce (MPI_IN_PLACE, (char *)data + (size_t)at * number.bytes,
                                     (int)(n - at < piece ? n - at : piece), number.type,
                                     op_of (kind), ((MpiWire *)wire)->comm),
                      "MPI_Allreduce", why))
      return false;
  return true;
}

TdWireSum *
td_mpi_sum_begin (TdWire *wire, void *data, int64_t n, TdWireKind kind, char *why)
{
  const Number number = number_of (kind);
  const int64_t n_pieces = (n + piece - 1) / piece;
  TdWireSum *sum = calloc (1, sizeof *sum);

  if (sum != NULL)
    sum->requests = calloc ((size_t)n_pieces + 1, sizeof *sum->requests);
  if (sum == NULL || sum->requests == NULL || n_pieces > INT_MAX)
    {
      free (sum);
      snprintf (why, TD_WHY_WIRE, "no memory for a sum");
      return NULL;
    }
  for (int64_t at = 0; at < n; at += piece)
    if (!td_mpi_fine (MPI_Iallreduce (MPI_IN_PLACE, (char *)data + (size_t)at * number.bytes,
                                      (int)(n - at < piece ? n - at : piece), number.type,
                                      op_of (kind), ((MpiWire *)wire)->comm,
                                      &sum->requests[sum->n++]),
                      "MPI_Iallreduce", why))
      {
        free (sum->requests);
        free (sum);
        return NULL;
      }
  return sum;
}

/* One that failed is told of by the end. */
bool
td_mpi_sum_test (TdWireSum *sum)
{
  int done = 0;

  return MPI_Testall (sum->n, sum->requests, &done, MPI_STATUSES_IGNORE) != MPI_SUCCESS || done;
}

bool
td_mpi_sum_end (TdWireSum *sum, char *why)
{
  bool ok = true;

  for (int i = 0; i < sum->n; i++)
    ok = td_mpi_wait (&sum->requests[i], "MPI_Iallreduce", why) && ok;
  free (sum->requests);
  free (sum);
  return ok;
}

void
td_mpi_sum_drop (TdWireSum *sum, void *data)
{
  sum->data = data;
  sum->next = dropped;
  dropped = sum;
}

void
td_mpi_sums_end (void)
{
  while (dropped != NULL)
    {
      TdWireSum *sum = dropped;

      dropped = sum->next;
      free (sum->requests);
      free (sum->data);
      free (sum);
    }
}
