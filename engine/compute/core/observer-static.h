/* What the engine reports to observers about static functions: events of a static function, and
 * each schedule as plain data.  Pointers are valid during the call only.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "tapedeck-op.h"

struct TdPath;

typedef enum
{
  TD_STATIC_EVENT_MADE,      /**< td_static_new */
  TD_STATIC_EVENT_FREED,     /**< td_static_free */
  TD_STATIC_EVENT_CODE,      /**< a call ran the code */
  TD_STATIC_EVENT_REPLAYED,  /**< a call ran the schedule */
  TD_STATIC_EVENT_TRACED,    /**< the code was traced meanwhile */
  TD_STATIC_EVENT_REFUSED,   /**< it cannot be: text and site say why */
  TD_STATIC_EVENT_SCHEDULED, /**< a plan was made: schedule */
  TD_STATIC_EVENT_MISSED,    /**< a guard did not hold: guard, text, site */
  TD_STATIC_EVENT_EVICTED,   /**< a schedule left the cache */
  TD_STATIC_EVENT_VERIFIED,  /**< code and schedule agree */
  TD_STATIC_EVENT_CAPTURED, /**< a call's steps became CUDA graphs: text says which did not, and
                               why */
  TD_STATIC_EVENT_DIFFERS,  /**< they do not: text, site and other_site */
  TD_STATIC_EVENT_PROVED, /**< seen in a verified call: the code does what no replay does: guard
                     names the memory, or "stdout"; text says how much */
  TD_STATIC_EVENT_ASIDE,  /**< from this call on no schedule is asked for: text says why */
  TD_N_STATIC_EVENTS
} TdStaticEventKind;

/** What a static function does at the moment. */
typedef enum
{
  TD_FUNCTION_OFF,
  TD_FUNCTION_TRACING,
  TD_FUNCTION_SCHEDULED,
  TD_FUNCTION_INVALID
} TdFunctionState;

/** Something happened to a static function. */
typedef struct TdStaticEvent
{
  uint8_t what;         /**< TdStaticEventKind */
  uint8_t state;        /**< TdFunctionState */
  uint32_t function;    /**< 1, 2 ... in the order of td_static_new */
  uint32_t schedule;    /**< 1, 2 ... in the order of planning; 0: none */
  const char *name;     /**< of the function */
  const TdSite *made;   /**< of td_static_new */
  const TdSite *called; /**< the last call; NULL: there was none, or its place is not known */
  const char *guard, *text;
  const TdSite *site, *other_site;
} TdStaticEvent;

/** What a call of a static function does, with the numbers of the tape (TdTapeRunKind). */
typedef enum
{
  TD_RUN_CODE,
  TD_RUN_TRACED,
  TD_RUN_REPLAYED,
  TD_RUN_VERIFICATION, /**< the code, beside the schedule that it is compared with */
  TD_RUN_CALL          /**< not known yet: a call was made, whose time counts from here */
} TdStaticRunKind;

typedef enum
{
  TD_RUN_BEGINS,
  TD_RUN_ENDS,
  TD_RUN_DISCARDED /**< what the last one of that kind made was thrown away */
} TdStaticRunMoment;

/** One list of a static function begins or ends; between both, events are its. */
typedef struct TdStaticRun
{
  uint8_t moment, kind;
  uint32_t function, schedule;
  uint32_t list; /**< 0: forward; k: the k-th backward */
} TdStaticRun;

/** A step was traced; of an operation, after its event. */
typedef struct TdStaticEntry
{
  uint32_t function, list;
  uint32_t number; /**< in its list, from 0 on */
  uint8_t kind, phase;
  const TdOpClass *cls;
  const TdSite *site;
  const struct TdPath *path;
  const char *text;
} TdStaticEntry;

enum
{
  TD_WHY_SIZE = 120
};

/** A step.  kind, fate and flags are those of the tape (td-tape-static.h). */
typedef struct TdScheduleStep
{
  uint8_t kind, phase, fate, flags;
  uint32_t list; /**< 0: forward; k: the k-th backward */
  const TdOpClass *cls;
  const void *attrs;
  const TdSite *site;
  const struct TdPath *path;
  const char *text;
  uint32_t in, n_in, out, n_out; /**< in TdScheduleInfo.operands */
  uint32_t event, twin;
  uint32_t group;        /**< as on the tape */
  uint32_t trace_at;     /**< its place in the trace's list */
  uint32_t other;        /**< that of the step that does its work; UINT32_MAX: none */
  char why[TD_WHY_SIZE]; /**< what the passes did to it, or why they did not */
} TdScheduleStep;

typedef struct TdScheduleNode
{
  uint32_t value;
  uint8_t dtype, category;
  bool requires_grad;
  const char *name;
  const TdShape *shape;
} TdScheduleNode;

typedef struct TdScheduleValue
{
  uint8_t kind, flags; /**< as on the tape */
  uint32_t index, n_writers;
  size_t bytes;
  size_t offset; /**< SIZE_MAX: not in the arena */
} TdScheduleValue;

typedef struct TdScheduleGuard
{
  const char *guard;
  char text[240];
  const TdSite *site;
} TdScheduleGuard;

/** A schedule as it was planned. */
typedef struct TdScheduleInfo
{
  uint32_t function, schedule;
  char key[240];
  size_t arena_bytes, lower_bound;
  uint32_t n_backwards, n_arguments, n_externals, n_outputs;
  uint32_t n_pruned, n_folded, n_merged, n_fused, n_in_place;
  uint32_t n_steps, n_operands, n_nodes, n_values, n_guards;
  TdScheduleStep *steps;
  uint32_t *operands; /**< nodes */
  TdScheduleNode *nodes;
  TdScheduleValue *values;
  TdScheduleGuard *guards;
} TdScheduleInfo;
