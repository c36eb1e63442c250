/* A schedule: what one call of a static function does, as data.
 *
 * A flat list of steps over numbered values.  A *value* is memory with a role; a *node* is a
 * variable's place in the graph, and shows one value in some shape (a reshape makes a new node
 * of the same value).  Steps name nodes.  Numbers are given when a value is born in the trace,
 * by the buffer's id and never by its address.  Forward and backward share the nodes and
 * values: what a backward reads of the forward is *saved*.
 *
 * The trace is kept as it was (TdSchedule.forward, .backwards); passes write the list that runs
 * (TdPlan), so that a fused group can be shown operation by operation.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "compute/core/core.h"

#define TD_ABSENT UINT32_MAX

/** Where a value's memory is. */
typedef enum
{
  TD_VALUE_INTERIOR, /**< in the instance's arena */
  TD_VALUE_EXTERNAL, /**< of an argument or a captured variable: TdSchedule.externals[index] */
  TD_VALUE_CONSTANT, /**< numbers that the code brought: TdSchedule.constants[index] */
  TD_VALUE_OUTPUT,   /**< leaves the call: a buffer of its own at every call */
  TD_VALUE_GY,       /**< the gradient of output `index`, given to backward */
  TD_VALUE_GRADIENT  /**< leaves backward: a buffer of its own */
} TdValueKind;

typedef struct TdValue
{
  uint8_t kind;
  bool is_state;  /**< an external that a step writes */
  bool is_saved;  /**< made by the forward, read by a backward */
  uint32_t index; /**< of its kind */
  size_t bytes;
  uint32_t n_writers; /**< steps that write it: more than 1 is a value changed in place */
} TdValue;

typedef struct TdNodeInfo
{
  uint32_t value;
  uint8_t dtype;
  uint8_t layout; /**< a TdLayout */
  bool requires_grad;
  uint8_t category;
  const char *name; /**< interned, or NULL */
  TdShape shape;
} TdNodeInfo;

typedef enum
{
  TD_STEP_OP,
  TD_STEP_FILL,      /**< out = an array made from nothing (TdStep.how) */
  TD_STEP_COPY,      /**< out = in, where the traced run changed a foreign array in place */
  TD_STEP_EFFECT,    /**< td_static_code, td_report: run again */
  TD_STEP_HOST_READ, /**< the code read numbers: they must be the same */
  TD_STEP_LINK_ENTER,
  TD_STEP_LINK_LEAVE,
  TD_STEP_SCOPE_OPEN,
  TD_STEP_SCOPE_CLOSE,
  TD_STEP_PROPAGATE, /**< backward: in[0] is a gradient of external `external` */
  TD_STEP_GROUP      /**< passes: several element-by-element steps in one go */
} TdStepKind;

/** One step.  Operands are TdSchedule.operands[in .. in + n_in), nodes. */
typedef struct TdStep
{
  uint8_t kind;
  uint8_t phase;
  bool accumulate; /**< adds into out[0] */
  bool graph;      /**< the operation was kept for backward */
  bool random;     /**< attrs begin with a key: `random_at` from where the call's begin */
  uint32_t in, n_in, out, n_out;
  const TdOpClass *cls;
  void *attrs; /**< a copy; owned by the trace */
  const TdSite *site;
  const TdPath *path;
  uint64_t random_at;
  uint32_t event; /**< 1, 2 ...: which of the call's events; 0: none */
  uint32_t twin;  /**< backward: the event of the forward operation */
  uint32_t order;
  uint32_t external; /**< PROPAGATE; OP: may add to that external's gradient; or TD_ABSENT */
  uint32_t trace_at; /**< of a plan: its place in the trace's list */
  uint32_t pack;     /**< of a plan: 1 + which of its packed matrices it multiplies by; or 0 */
  TdTraceArray how;  /**< FILL */
  TdTraceEffect effect;
  const char *text; /**< scope's name */
  void *bytes;      /**< HOST_READ: the numbers that were read */
} TdStep;

typedef struct TdSteps
{
  TdStep *steps;
  uint32_t n, capacity;
  uint32_t n_events;
} TdSteps;

/** A variable that the code uses and did not make. */
typedef struct TdExternal
{
  uint32_t node;
  int argument; /**< or -1: captured */
  TdVar *var;   /**< captured: held */
  uint64_t node_id;
  bool retained; /**< by the program, when it was captured */
} TdExternal;

typedef struct TdConstant
{
  TdBuffer *buffer; /**< held */
  const TdSite *site;
  bool drawn; /**< from numbers of the random stream, by code that is no step: another call has
                 others */
} TdConstant;

/** What the call returns. */
typedef struct TdOutput
{
  uint32_t node;
  uint32_t same_as;  /**< an earlier output, the same variable; or TD_ABSENT */
  uint32_t external; /**< it is an external itself; or TD_ABSENT */
} TdOutput;

/** A backward that was traced: which gradients came, which were wanted. */
typedef struct TdBackwardTrace
{
  uint64_t gy_given;     /**< bit k: output k had a gradient */
  uint64_t gy_alias;     /**< hash of which of them were one array */
  uint64_t *wanted;      /**< bits: external i wanted a gradient */
  const uint64_t *reach; /**< bits: one could come to external i, for that part of the code had
                            backprop; in the same memory */
  bool targets;          /**< it was td_grad_of */
  TdSteps list;
} TdBackwardTrace;

typedef struct TdSchedule
{
  TdNodeInfo *nodes;
  uint32_t n_nodes, nodes_capacity;
  TdValue *values;
  uint32_t n_values, values_capacity;
  uint32_t *operands;
  uint32_t n_operands, operands_capacity;
  TdExternal *externals;
  uint32_t n_externals, n_arguments;
  TdConstant *constants;
  uint32_t n_constants;
  TdOutput *outputs;
  uint32_t n_outputs;
  TdSteps forward;
  TdBackwardTrace *backwards;
  uint32_t n_backwards;
  uint64_t random_total; /**< how far a call moves the stream */
  TdDevice *device;
} TdSchedule;

TdSchedule *td__schedule_new (uint32_t n_arguments);
void td__schedule_free (TdSchedule *s);
uint32_t td__schedule_value (TdSchedule *s, TdValueKind kind, uint32_t index, size_t bytes);
uint32_t td__schedule_node (TdSchedule *s, uint32_t value, const TdNode *like);
/** Room for n operands; returns the first's place. */
uint32_t td__schedule_operands (TdSchedule *s, uint32_t n);
/** Find which externals gradients of a backward's outputs can come to: reach, and room for
 * wanted. */
void td__schedule_reach (const TdSchedule *s, TdBackwardTrace *b);
/** Say whether the graph of the forward keeps a value for backward. */
bool td__schedule_retains (const TdSchedule *s, uint32_t value);
/** A new last step, zeroed but for external. */
TdStep *td__steps_add (TdSteps *list);
void td__steps_free (TdSteps *list);
static inline uint32_t
td__step_in (const TdSchedule *s, const TdStep *step, uint32_t i)
{
  return s->operands[step->in + i];
}
static inline uint32_t
td__step_out (const TdSchedule *s, const TdStep *step, uint32_t i)
{
  return s->operands[step->out + i];
}
static inline TdValue *
td__node_value (const TdSchedule *s, uint32_t node)
{
  return &s->values[s->nodes[node].value];
}
/** Is every number in range and every value written before it is read?  NULL, or what is wrong:
 * one line.  *Owner*: static. */
const char *td__schedule_verify (const TdSchedule *s);
