/* What the engine tells whoever records it.  With no observer, each event costs one predictable
 * branch.  The engine never waits for an answer, but before_op may block (a debugger's pause).
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "../tapedeck-op.h"
#include "observer-static.h"

struct TdCopy;
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
  TD_EVENT_GRAPH = 4,  /**< a graph node was kept */
  TD_EVENT_DOUBLE = 8, /**< backward with double backprop */
  TD_EVENT_REPLAYED
  = 16, /**< by a static schedule; its outputs' memory was told before, if any */
  TD_EVENT_CAPTURED
  = 32 /**< it runs with others as one CUDA graph, launched later: no time of its own */
};

/** In an event's order: it is a change of layout, which other devices may not have, and is not
 * counted with the others. */
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
  uint32_t order;   /**< which of the operations of that one's backward, TD_ORDER_APART apart */
  int n_in, n_out;
  struct TdNode *const *in;
  struct TdNode *const *out;
  struct TdBuffer *const *out_buffers;
  uint32_t retained_in, retained_out;
  const char *algorithm; /**< after_op: which implementation ran, where there are several */
} TdEvent;

/** Where an event is recorded: its iteration, and which of its events it is. */
typedef struct
{
  uint64_t iteration;
  uint32_t event;
  bool known; /**< false: nobody records */
} TdEventPlace;

/** An error that a device has found in the indices of an event which was over by then. */
typedef struct
{
  TdEventPlace at;
  const char *operand; /**< the input's name */
  int64_t value, limit, element;
  bool at_end; /**< found as its iteration, or a later one, ended */
} TdLateFault;

typedef struct TdObserver TdObserver;
struct TdObserver
{
  /** Before an operation's kernels run: stamp, name it as running, stop here if asked. */
  void (*before_op) (TdObserver *o, const TdEvent *event);
  /** After its kernels were issued (or it failed). */
  void (*after_op) (TdObserver *o, const TdEvent *event);
  /** Memory was taken: not told of an operation's outputs, which is what after_op says; told
   * before after_op of those that a failed one made. */
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
  /** Optional: numbers went between the host and a device (copies.h), and before that: they are
   * about to, what is the time?  Its unit is the observer's; 0: never mind. */
  void (*copied) (TdObserver *o, const struct TdCopy *copy);
  uint64_t (*copying) (TdObserver *o, struct TdDevice *device);
  void (*write) (TdObserver *o, struct TdNode *node, const TdSite *site);
  void (*unchain) (TdObserver *o, struct TdNode *node, const TdSite *site);
  void (*name) (TdObserver *o, struct TdNode *node, const char *name);
  void (*error) (TdObserver *o, const TdError *error);
  /** Optional: memory ran out (memory-report.h); `error` says so in a line right after. */
  void (*out_of_memory) (TdObserver *o, const struct TdMemReport *report);
  /** Optional: the place of the event that runs, or of the next; false: it is not recorded. */
  bool (*where) (TdObserver *o, TdEventPlace *place);
  /** Optional, else `error`: the same of an event that was over. */
  void (*fault) (TdObserver *o, const TdError *error, const TdLateFault *fault);
  /** Optional: what a device has to say, in a line. */
  void (*notice) (TdObserver *o, const char *text);
  void (*config) (TdObserver *o, const char *field, int value);
  void (*param) (TdObserver *o, const TdPath *path, const TdVar *param);
  /** Optional: news of a static chain, and a schedule before it is replayed first. */
  void (*static_news) (TdObserver *o, const TdStaticNews *news);
  void (*schedule) (TdObserver *o, const TdScheduleInfo *schedule);
  /** Optional: which events are a chain's, and what its trace has so far. */
  void (*static_run) (TdObserver *o, const TdStaticRun *run);
  void (*static_entry) (TdObserver *o, const TdStaticEntry *entry);
  /** Optional: does somebody look at each operation, so that it must run between its two calls,
   * and not with others in a CUDA graph?  NULL: yes. */
  bool (*each) (TdObserver *o);
  void (*finish) (TdObserver *o, int status);
};
