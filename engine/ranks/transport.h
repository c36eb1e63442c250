/* What carries bytes between ranks: a table that a module fills (mpi/), or alone.c for a
 * process that has nobody to talk to.  The module sees this header and nothing else of the
 * engine.
 *
 * All calls but those that say so block until this rank's part is done.  One that returns false
 * has written one line to `why`, of TD_WHY_WIRE bytes.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum
{
  TD_TRANSPORT_ABI = 4, /* bumped with every change of this header, or of TdMeet */
  TD_WHY_WIRE = 300
};
#define TD_TRANSPORT_ENTRY "td_transport"

/** What is summed. */
typedef enum
{
  TD_WIRE_F32,
  TD_WIRE_F64,
  TD_WIRE_I32,
  TD_WIRE_I64,
  TD_WIRE_U8,
  TD_WIRE_F16, /**< sum_begin alone, by TdWireAdd */
  TD_WIRE_BF16,
  TD_WIRE_N
} TdWireKind;

/** Add n numbers of 16 bits that MPI has no arithmetic for: to[i] += from[i]. */
typedef void (*TdWireAdd) (const void *from, void *to, int64_t n);
/** What the module is given when it is opened: of TD_WIRE_F16, and of TD_WIRE_BF16. */
typedef struct TdWireAdds
{
  TdWireAdd f16, bf16;
} TdWireAdds;

/** A sum that is on its way; a transport's own. */
typedef struct TdWireSum TdWireSum;

/** One communicator's connections; a transport's own begins with this. */
typedef struct TdWire
{
  int rank, size;
  int intra_rank, intra_size; /**< among the ranks of its machine */
  int inter_rank, inter_size; /**< its machine's number, in the order of their first ranks */
} TdWire;

typedef struct TdTransport
{
  uint32_t abi, bytes; /**< TD_TRANSPORT_ABI, sizeof (TdTransport) */
  /** Connect with all that were started together; each further call makes another one.  For all
   * ranks. *Owner*: the caller, close. */
  TdWire *(*open) (char *why);
  /** Of the ranks of one color; NULL with an empty *why for color < 0.  For all ranks. */
  TdWire *(*split) (TdWire *wire, int color, int key, char *why);
  /** together: all ranks close it now. */
  void (*close) (TdWire *wire, bool together);
  /** Begin to give `bytes` to all ranks, and to get theirs, in the order of ranks; mine and all
   * must stay till meet_end, which waits. */
  bool (*meet_begin) (TdWire *wire, const void *mine, void *all, size_t bytes, char *why);
  bool (*meet_end) (TdWire *wire, char *why);
  bool (*bcast) (TdWire *wire, void *data, size_t bytes, int root, char *why);
  /** data[i] becomes the sum of all ranks', the same bits on all of them. */
  bool (*sum) (TdWire *wire, void *data, int64_t n, TdWireKind kind, char *why);
  /** Begin the same, and do not wait: data must stay till sum_end.  In one order on all ranks
   * for each wire, and the same bits whenever it is waited for. */
  TdWireSum *(*sum_begin) (TdWire *wire, void *data, int64_t n, TdWireKind kind, char *why);
  /** Go on with it.  Is there nothing left to wait for? */
  bool (*sum_test) (TdWireSum *sum);
  /** Wait for it, and give it up. */
  bool (*sum_end) (TdWireSum *sum, char *why);
  /** Nobody will wait for it: others may never bring their part.  *Owner*: takes data, which
   * free () frees. */
  void (*sum_drop) (TdWireSum *sum, void *data);
  /** bytes of each rank -> size times bytes. */
  bool (*gather) (TdWire *wire, const void *in, void *all, size_t bytes, char *why);
  /** Block i of bytes goes to rank i; block i of out is from there. */
  bool (*exchange) (TdWire *wire, const void *in, void *out, size_t bytes, char *why);
  /** End all ranks at once: one of them cannot bring what the others wait for.  Returns where
   * there are no others. */
  void (*abort) (TdWire *wire);
  bool (*send) (TdWire *wire, const void *data, size_t bytes, int to, char *why);
  bool (*receive) (TdWire *wire, void *data, size_t bytes, int from, char *why);
} TdTransport;

/** The module's one symbol. */
typedef const TdTransport *(*TdTransportEntry) (const TdWireAdds *adds);

/** The same transport, as slow as TAPEDECK_TEST_LINK says, for tests; itself where that is not
 * set. (slow.c) */
const TdTransport *td__transport_slow (const TdTransport *transport);
/** A process alone. (alone.c) */
extern const TdTransport td__transport_alone;
/** MPI; NULL: *why.  Looks once. (module.c) */
const TdTransport *td__transport_mpi (const char **why);
