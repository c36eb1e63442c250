/* The observer: call-backs by which a recorder or debugger follows the engine.  Without an
 * observer an event costs one predictable branch.  Call-backs return at once, but before_op may
 * block (a debugger's pause).
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tapedeck-op.h"
#include "observer-static.h"

struct TdCopy;
struct TdWait;
struct TdRankSum;
struct TdMemReport;
struct TdNode;
struct TdBuffer;

/** A link path, interned: "mlp/l1". */
typedef struct TdPath
{
  uint32_t id; /**< 1, 2 ... in order of first use */
  const char *text;
  const char *link_class;
} TdPath;

typedef enum
{
  TD_PHASE_FORWARD,
  TD_PHASE_BACKWARD,
  TD_PHASE_ACCUMULATE,
  TD_PHASE_UPDATE
} TdPhase;

enum
{
  TD_EVENT_ACCUMULATE = 1, /**< added into its output */
  TD_EVENT_FAILED = 2,
  TD_EVENT_GRAPH = 4,  /**< a node of the graph was made */
  TD_EVENT_DOUBLE = 8, /**< backward with double backprop */
  TD_EVENT_REPLAYED
  = 16, /**< by a static schedule; the memory of its outputs was reported earlier */
  TD_EVENT_CAPTURED
  = 32 /**< part of a CUDA graph that is launched later: it has no time of its own */
};

/** Flag in TdEvent.order: a change of layout.  Other devices may not need it, so it is not
 * counted in the order of the other operations. */
#define TD_ORDER_APART 0x8000u

/** One event: a forward or backward operation, an accumulation, an update. */
typedef struct TdEvent
{
  uint64_t id; /**< engine id of the operation */
  const TdOpClass *cls;
  const void *attrs;
  const TdSite *site;
  const TdPath *path;
  TdPhase phase;
  unsigned flags;
  uint64_t twin_id; /**< forward operation of a backward one, or 0 */
  uint32_t order;   /**< its number among the operations of that backward; or TD_ORDER_APART */
  int n_in, n_out;
  struct TdNode *const *in;
  struct TdNode *const *out;
  struct TdBuffer *const *out_buffers;
  struct TdNode *into; /**< what it added to, where flags have TD_EVENT_ACCUMULATE; or NULL */
  uint32_t retained_in, retained_out;
  const char *algorithm; /**< after_op: the implementation that ran, if there are several */
} TdEvent;

/** Where an event is recorded: its iteration and its number there. */
typedef struct
{
  uint64_t iteration;
  uint32_t event;
  bool known; /**< false: nothing is recorded */
} TdEventPlace;

/** An asynchronous error: the device found a bad index after the operation's call had returned.
 */
typedef struct
{
  TdEventPlace at;
  const char *operand; /**< the input's name */
  int64_t value, limit, element;
  bool at_end; /**< found as its iteration, or a later one, ended */
} TdAsyncFault;

typedef struct TdObserver TdObserver;
struct TdObserver
{
  /** Before an operation's kernels run.  May block, to stop the program here. */
  void (*before_op) (TdObserver *o, const TdEvent *event);
  /** After its kernels were launched, or it failed. */
  void (*after_op) (TdObserver *o, const TdEvent *event);
  /** Memory was allocated.  Not called for the outputs of an operation, which after_op reports,
   * unless the operation failed: then before after_op. */
  void (*buffer_new) (TdObserver *o, const struct TdBuffer *buffer);
  void (*buffer_free) (TdObserver *o, const struct TdBuffer *buffer);
  void (*scope) (TdObserver *o, bool open, const TdScope *scope);
  void (*link) (TdObserver *o, bool enter, const TdPath *path, const TdSite *site);
  void (*iteration) (TdObserver *o, bool begin, int64_t number, int64_t label,
                     const TdSite *site);
  void (*backward) (TdObserver *o, bool begin, const TdSite *site);
  void (*gradient) (TdObserver *o, struct TdNode *leaf, struct TdNode *gradient);
  void (*report) (TdObserver *o, const char *key, double value);
  void (*host_read) (TdObserver *o, struct TdNode *node, const TdSite *site);
  /** Optional: `copied` after a copy between host and device (copies.h); before it, the other
   * asks the observer for the time, in a unit of its own (0: not wanted). */
  void (*copied) (TdObserver *o, const struct TdCopy *copy);
  uint64_t (*copying) (TdObserver *o, struct TdDevice *device);
  void (*write) (TdObserver *o, struct TdNode *node, const TdSite *site);
  void (*unchain) (TdObserver *o, struct TdNode *node, const TdSite *site);
  void (*name) (TdObserver *o, struct TdNode *node, const char *name);
  void (*error) (TdObserver *o, const TdError *error);
  /** Optional: memory ran out (memory-report.h).  `error` follows with the message. */
  void (*out_of_memory) (TdObserver *o, const struct TdMemReport *report);
  /** Optional: the place of the present event, or of the next one; false: it is not recorded.
   */
  bool (*where) (TdObserver *o, TdEventPlace *place);
  /** Optional: an asynchronous error, of an event that is over; without it `error` is called.
   */
  void (*fault) (TdObserver *o, const TdError *error, const TdAsyncFault *fault);
  /** Optional: a message of a device, one line. */
  void (*notice) (TdObserver *o, const char *text);
  void (*config) (TdObserver *o, const char *field, int value);
  void (*param) (TdObserver *o, const TdPath *path, const TdVar *param, bool learnt);
  /** Optional: events of a static function, and a schedule before its first replay. */
  void (*static_event) (TdObserver *o, const TdStaticEvent *event);
  void (*schedule) (TdObserver *o, const TdScheduleInfo *schedule);
  /** Optional: runs of a static function, and each step that is added to its trace. */
  void (*static_run) (TdObserver *o, const TdStaticRun *run);
  void (*static_entry) (TdObserver *o, const TdStaticEntry *entry);
  /** Optional: the program waits for other ranks, or does so no more (rank-notes.h). */
  void (*wait) (TdObserver *o, const struct TdWait *wait, bool ended);
  /** Beside wait: the clock of TdWait.behind. */
  uint64_t (*clock) (void);
  /** Optional: what ranks are compared by; NULL: are such sums wanted? */
  bool (*rank_sum) (TdObserver *o, const struct TdRankSum *sum);
  /** Optional: whether each operation has to run between its two call-backs, and not in a CUDA
   * graph together with others.  NULL: yes. */
  bool (*each) (TdObserver *o);
  void (*finish) (TdObserver *o, int status);
  bool tells_ranges; /**< it is that of ranges.c, of which one is enough */
};
