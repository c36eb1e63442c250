/* What the tape says when memory ran out: prose, records, and what readers make of them.
 * Included by td-tape.h.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

/* An OOM frame, in DEFS, says that a device refused memory, or that a limit did: what was asked
 * for and by whom, how full the device was, what was given back or waited for in vain, and who
 * held the most.  The NOTICE with the error's line follows it.
 *
 * The payload is a TdTapeOomHead, then one TdTapeOom of oom_bytes, then n_holders
 * TdTapeOomHolder of holder_bytes each.  A program that goes on and runs out of memory again
 * and again leaves at most TD_TAPE_MAX_OOMS of them; its notices say the rest.
 *
 * Bytes are those that the allocator counts: blocks, with what rounding adds.  Of the program's
 * memory live_bytes are in use; reserved_bytes is what the device gave.  Holders are groups of
 * arrays of one category, name, link, operation and place, the largest group first.  What is
 * live and is nobody's array (workspace, planned blocks of static schedules) is in
 * category_bytes alone. */

#define TD_TAPE_MAX_OOMS 64
#define TD_TAPE_MAX_OOM_HOLDERS 20

typedef struct
{
  uint32_t oom_bytes, holder_bytes, n_holders, reserved;
} TdTapeOomHead;
static_assert (sizeof (TdTapeOomHead) == 16, "TdTapeOomHead changed size");

/** Flags of an OOM. */
enum
{
  TD_TAPE_OOM_ITERATION = 1 << 0, /* `iteration` and n_memory are known */
  TD_TAPE_OOM_LIMITED = 1 << 1,   /* refused by a limit before the device was asked */
  TD_TAPE_OOM_IMPORTED = 1 << 2   /* out of a snapshot: nobody knows the phase, what was tried,
                                     who kept what, nor how much there was */
};

typedef struct
{
  uint64_t iteration;
  uint64_t time_ns;
  uint64_t asked_bytes;
  uint64_t limit_bytes;                 /* 0: none */
  uint64_t device_bytes, outside_bytes; /* all it has, in use by others; 0: not known */
  uint64_t reserved_bytes, live_bytes, pending_bytes;
  uint64_t hole_bytes;         /* free beside blocks in use */
  uint64_t largest_free_bytes; /* one block */
  uint64_t trimmed_bytes, trimmed_others_bytes, waited_bytes;
  uint64_t refused_bytes;           /* the last segment that was */
  uint64_t unnamed_bytes;           /* of arrays of other groups */
  uint64_t category_bytes[10];      /* by TdTapeCategory */
  int64_t dims[8];                  /* of the array; ndim 255: none */
  uint32_t event;                   /* that asked; the one that comes next where none ran */
  uint32_t n_memory;                /* records of the iteration's memory before that */
  uint32_t device, device_name;     /* its number; string */
  uint32_t op, site, path;          /* string, site, path */
  uint32_t n_groups;                /* of arrays, also those that are not listed */
  uint32_t n_holders, first_holder; /* filled by readers */
  uint8_t phase, dtype, ndim, flags;
  uint32_t reserved;
} TdTapeOom;
static_assert (sizeof (TdTapeOom) == 320, "TdTapeOom changed size");

/** Flags of a holder. */
enum
{
  TD_TAPE_OOM_HOLDER_SAVED = 1 << 0,   /* kept for backward */
  TD_TAPE_OOM_HOLDER_GRAPH = 1 << 1,   /* by no handle, only by the graph */
  TD_TAPE_OOM_HOLDER_EARLIER = 1 << 2, /* the oldest is of an earlier iteration */
  TD_TAPE_OOM_HOLDER_BEFORE = 1 << 3   /* the oldest was there before the first iteration */
};

/** A group of arrays. */
typedef struct
{
  uint64_t bytes, largest_bytes;
  uint64_t oldest;          /* the iteration that made the oldest */
  int64_t dims[8];          /* of the largest */
  uint32_t n;               /* arrays */
  uint32_t name, path;      /* string, path; 0: none */
  uint32_t op, site;        /* string, site that made them */
  uint32_t holder_site;     /* where they are held (td_retain); 0: unknown */
  uint8_t category, holder; /* TdTapeHolder, of the largest */
  uint8_t dtype, ndim;
  uint32_t flags;
} TdTapeOomHolder;
static_assert (sizeof (TdTapeOomHolder) == 120, "TdTapeOomHolder changed size");

typedef enum
{
  TD_TAPE_REMEDY_FREE,      /* what earlier iterations left */
  TD_TAPE_REMEDY_RECOMPUTE, /* forget a chain of operations, compute it again in backward */
  TD_TAPE_REMEDY_BATCH,     /* fewer items at once */
  TD_TAPE_REMEDY_HALVES,    /* 16-bit floats for what is not a parameter */
  TD_TAPE_N_REMEDIES
} TdTapeRemedyKind;

/** What would help, computed from what was recorded. */
typedef struct
{
  uint64_t saved_bytes;   /* at the moment when memory ran out */
  uint64_t cost_ns;       /* RECOMPUTE: what the chain took the first time */
  uint64_t batch, before; /* BATCH: that fits, that was tried */
  uint32_t n;             /* arrays that go or shrink */
  uint8_t kind;           /* TdTapeRemedyKind */
  bool enough;            /* it saves what is missing, as far as is known */
  bool whole;             /* BATCH: fits to the iteration's end, as an earlier one went */
  char text[300];         /* one sentence, with the figures */
} TdTapeRemedy;
