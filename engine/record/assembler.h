/* The assembler turns raw records into a tape: it computes keys and fingerprints, recognises
 * iterations that repeat, and hands them to the writer.  The supervisor runs it on the ring;
 * without a supervisor the model runs it on itself at the end of iterations.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "ring.h"
#include "td-tape-writer.h"

typedef struct TdAssembler TdAssembler;

/** What the assembler knows of the program now, for the control socket. */
typedef struct
{
  uint64_t iteration;
  uint32_t n_events; /* of it, so far */
  bool in_iteration, stopped, exited;
  int32_t exit_status;
  uint64_t n_records;
  uint64_t n_iterations, n_repeats; /* ended; of those, written by the short way */
  uint64_t n_bad;                   /* records refused: their bytes make no sense */
} TdAssemblerState;

/** Make an assembler that writes to `w` (borrowed) with the clock of `ring`. */
TdAssembler *td_assembler_new (TdTapeWriter *w, const TdRingShared *clock);
void td_assembler_free (TdAssembler *a);

/** Take `n` bytes of whole records.  Nothing in them is trusted. */
void td_assembler_feed (TdAssembler *a, const void *bytes, size_t n);

/** Take everything that is in the ring; returns the bytes taken.  Shows the running iteration
 * when the program stands, or when it lasts over 100 ms and is not very large, and flushes the
 * writer. */
size_t td_assembler_drain (TdAssembler *a, TdRing *ring);

/** Show the running iteration now, whether or not it is time. */
void td_assembler_show_live (TdAssembler *a);
/** The same where records come from no ring: `ticks` is the time now, by their clock. */
void td_assembler_show_live_at (TdAssembler *a, uint64_t ticks);

/** Write how the program ended.  `status` as from waitpid (-1: unknown); what was running comes
 * from `ring`. */
void td_assembler_end (TdAssembler *a, const TdRing *ring, int status, bool by_tapedeck);

/** Name the operation in `now` (a ring's first line) and its place, "mlp.c:12"; "?" where it is
 * not known yet. */
void td_assembler_describe (const TdAssembler *a, const TdRingNow *now, char *op,
                            size_t op_size, char *where, size_t where_size);

/** The state now; valid until the next call. */
const TdAssemblerState *td_assembler_state (const TdAssembler *a);

/** Drain a left-over ring file into its tape's continuation: used by `check --repair` when both
 * died.  Copies the valid part of `tape` to `out`, then what is in `ring_path` (NULL: look for
 * the ring beside the tape). */
bool td_assembler_recover (const char *tape, const char *ring_path, const char *out,
                           char *error, size_t n);
