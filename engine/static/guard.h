/* Guards: everything that a trace depended on and that the engine can see, checked before every
 * replay.  The first that does not hold is named, with its old and new value.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "schedule.h"

/** Host memory that the code may read: the self of a link, or what the program registered. */
typedef struct TdWatch
{
  const char *name; /**< interned */
  const TdSite *site;
  void *memory;
  size_t bytes;
  uint8_t *seen;  /**< its bytes when the trace began: so they must be when a replay begins */
  uint8_t *after; /**< and ended; meanwhile, when the last td_static_code in it ended */
  size_t n_changed, first_changed;
  uint8_t *by_effect; /**< by byte: td_static_code set it; NULL: none did */
  uint8_t *by_code;   /**< likewise: the code set it outside of that */
} TdWatch;

/** How an argument was. */
typedef struct TdArgumentGuard
{
  TdShape shape;
  uint8_t dtype, layout;
  bool requires_grad;
  TdDevice *device;
  uint32_t same_buffer; /**< the first external with the same memory */
  uint32_t same_node;   /**< the first that is the same variable */
  const TdVar *held;    /**< the program or a link had it as well, so the code may have used it
                           by another way; or NULL */
  uint64_t node_id;     /**< its own */
} TdArgumentGuard;

typedef struct TdGuards
{
  TdConfig config;
  bool recomputing;
  TdArgumentGuard *arguments;
  uint32_t n_arguments;
  TdWatch *watches;
  uint32_t n_watches;
  uint64_t links_generation, state_generation;
  uint64_t state_reads; /**< at the begin */
  bool reads_state;     /**< the code asked for a link's recurrent state */
} TdGuards;

TdGuards *td__guards_new (TdVar *const *in, int n_in);
void td__guards_free (TdGuards *g);
void td__guards_watch (TdGuards *g, const char *name, const TdSite *site, void *memory,
                       size_t bytes);
/** An effect begins (by_effect false) or ends: what was changed since the last time was changed
 * by the code itself, or by the effect. */
void td__guards_note_changes (TdGuards *g, bool by_effect);
/** The trace is over: what was changed by the code itself is known. */
void td__guards_settle (TdGuards *g);

/** Two traces are the same step by step: the code uses those arguments that are other variables
 * in both as arguments only, so that it is no matter which variable comes. */
void td__guards_learn (TdGuards *now, const TdGuards *earlier);

/** Which guard did not hold. */
typedef struct TdMiss
{
  const char *guard; /**< "argument", "config" ... */
  char text[480];    /**< "argument 0 has shape (32, 784), (64, 784) before" */
  const TdSite *site;
  const TdSite *other; /**< verify: of the schedule's step */
} TdMiss;
/** Say whether a replay with these arguments is a replay of what was traced. */
bool td__guards_hold (const TdGuards *g, const TdSchedule *s, TdVar *const *in, int n_in,
                      TdMiss *miss);
