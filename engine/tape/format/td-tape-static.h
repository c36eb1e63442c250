/* Static schedules on the tape, from format 1.1 on: prose, records, and what readers return.
 * Included by td-tape.h.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A program may have static functions: their operations are traced at one call and replayed at
 * later ones.  The format's first name for such a function was "chain": the record
 * STATIC_CHAIN, the fields and keys `chain` and the symbols with it keep that word.
 *
 * STATIC_CHAIN says once that there is such a function.  SCHEDULE is one plan of it, complete
 * and never changed: a list of steps over nodes, a node being a variable's place in the graph
 * that shows one value, and a value being memory.  The steps come in lists: 0 is the forward,
 * 1, 2 ... are the backwards that were traced, of which each call runs one.  A step stays in
 * its list when a pass took it out; its fate says which pass.  The members of a fused group
 * follow the group's step.  STATIC_EVENT says what happened to a function: traced, scheduled,
 * missed ...
 *
 * How often a function ran its code and how often its schedule is said in each iteration, in
 * the section STATICS: so it is stored, thinned and shown as the rest of the iteration is.  In
 * an iteration that still runs, the section has the functions whose state changed in it, as
 * they are now.
 *
 * Which events a function made is said in the section RUNS.  A replay makes one event of each
 * operation and group of its list, in order, with TD_TAPE_EVENT_REPLAYED: so the k-th such
 * event of a run is the k-th step of the list that runs and is an operation or a group.  A run
 * whose results were thrown away is *discarded*: the code of a verified call that agreed, or
 * the schedule of one that did not.  Readers leave it out unless they are asked for it.
 *
 * While the code is traced each step is said at once, in the section TRACED: a schedule can be
 * watched as it grows.
 *
 * A schedule is shown whole or not at all: td_tape_schedule_load checks it as the engine does.
 * Every number is in range; groups are closed; every value in the arena is written before it is
 * read and lies inside; values that live at the same time do not overlap, except that a step's
 * output may take the very place of an input that ends there; the lifetimes that are said are
 * those of the steps. */

/** STATIC_CHAIN: ids are 1, 2 ... in the order of the program's td_static_new. */
typedef struct
{
  uint32_t id;
  uint32_t name; /* string */
  uint32_t site; /* of td_static_new */
  uint32_t reserved;
} TdTapeChain;
static_assert (sizeof (TdTapeChain) == 16, "TdTapeChain changed size");

typedef enum
{
  TD_TAPE_CHAIN_OFF,       /* runs its code */
  TD_TAPE_CHAIN_TRACING,   /* a trace waits for its first backward */
  TD_TAPE_CHAIN_SCHEDULED, /* replays */
  TD_TAPE_CHAIN_INVALID,   /* its schedule was found to differ from its code */
  TD_TAPE_N_CHAIN_STATES
} TdTapeChainState;

/** STATICS: of each function that there is, in one iteration and since the program began. */
typedef struct
{
  uint32_t chain;
  uint32_t schedule;             /* replayed last; 0: none */
  uint32_t state;                /* TdTapeChainState, at the iteration's end */
  uint32_t n_replays, n_dynamic; /* calls in this iteration: by schedule, by code */
  uint32_t reserved;
  uint64_t all_replays, all_dynamic; /* up to the iteration's end */
  uint64_t verified_at;              /* iteration of the last agreement, plus 1; 0: never */
  uint64_t unverified_since;         /* the first replay after it, plus 1; 0: there is none */
} TdTapeStatic;
static_assert (sizeof (TdTapeStatic) == 56, "TdTapeStatic changed size");

typedef enum
{
  TD_TAPE_STATIC_TRACED,
  TD_TAPE_STATIC_REFUSED,   /* cannot be traced: text says why */
  TD_TAPE_STATIC_SCHEDULED, /* a plan was made: schedule */
  TD_TAPE_STATIC_MISSED,    /* a guard did not hold: guard, text with both values, site */
  TD_TAPE_STATIC_EVICTED,
  TD_TAPE_STATIC_VERIFIED,
  TD_TAPE_STATIC_DIFFERS,  /* a verification found a difference: text, site and other site */
  TD_TAPE_STATIC_PROVED,   /* in a verified call the code did what no replay does: guard is the
                              name of memory that the program registered, or "stdout" */
  TD_TAPE_STATIC_CAPTURED, /* steps became CUDA graphs: text says which did not, and why */
  TD_TAPE_STATIC_ASIDE,    /* from this call on no schedule is asked for: text says why; older
                              tapes have none */
  TD_TAPE_N_STATIC_EVENTS
} TdTapeStaticWhat;

/** STATIC_EVENT. */
typedef struct
{
  uint64_t iteration;
  uint64_t time_ns;
  uint32_t chain, schedule; /* 0: none, or not on the tape */
  uint32_t what;            /* TdTapeStaticWhat */
  uint32_t guard, text;     /* strings */
  uint32_t site, other_site;
  uint32_t reserved;
} TdTapeStaticEvent;
static_assert (sizeof (TdTapeStaticEvent) == 48, "TdTapeStaticEvent changed size");

typedef enum
{
  TD_TAPE_RUN_CODE,         /* the function's code, as any code */
  TD_TAPE_RUN_TRACED,       /* the code, and its schedule was written beside */
  TD_TAPE_RUN_REPLAYED,     /* the schedule */
  TD_TAPE_RUN_VERIFICATION, /* the code, to compare the schedule with */
  TD_TAPE_N_RUN_KINDS
} TdTapeRunKind;

/** Flags of a run. */
enum
{
  TD_TAPE_RUN_DISCARDED = 1 << 0, /* what it made was thrown away */
  TD_TAPE_RUN_OPEN = 1 << 1,      /* live only: not yet over */
};

/** RUNS: the events [begin, end) that one list of one function made, in order of beginning. */
typedef struct
{
  uint32_t chain, schedule; /* schedule 0: none */
  uint32_t list;            /* 0: forward; k: the k-th backward */
  uint32_t begin, end;
  uint8_t kind, flags; /* TdTapeRunKind, TD_TAPE_RUN_... */
  uint16_t reserved;
  uint64_t ns; /* from the call to its end: with guards, and what lies between operations */
} TdTapeRun;
static_assert (sizeof (TdTapeRun) == 32, "TdTapeRun changed size");

/** TRACED: a step of a schedule that was, or is being, written. */
typedef struct
{
  uint32_t chain;
  uint32_t list;
  uint32_t number; /* in its list, from 0 on */
  uint32_t event;  /* operations: which event; others: before which */
  uint32_t opdef, site, path, text;
  uint8_t kind, phase; /* TdTapeStepKind, TdTapePhase */
  uint16_t reserved;
  uint32_t reserved2;
} TdTapeTraced;
static_assert (sizeof (TdTapeTraced) == 40, "TdTapeTraced changed size");

/** SCHEDULE: then STEPS, OPERANDS, NODES, DIMS, VALUES, GUARDS. */
typedef struct
{
  uint32_t id;
  uint32_t chain;
  uint32_t key; /* string: the arguments' shapes, train, enable_backprop */
  uint32_t n_backwards;
  uint64_t arena_bytes; /* of one call in use */
  uint64_t lower_bound; /* no plan needs less */
  uint32_t n_arguments, n_externals, n_outputs;
  uint32_t n_pruned, n_folded, n_merged, n_fused, n_in_place;
} TdTapeScheduleHead;
static_assert (sizeof (TdTapeScheduleHead) == 64, "TdTapeScheduleHead changed size");

typedef enum
{
  TD_TAPE_STEP_OP,
  TD_TAPE_STEP_FILL,      /* an array made from nothing */
  TD_TAPE_STEP_COPY,      /* into an array from outside */
  TD_TAPE_STEP_EFFECT,    /* code of the program that is run again: text names it */
  TD_TAPE_STEP_HOST_READ, /* the code read numbers: they must be the same */
  TD_TAPE_STEP_LINK_ENTER,
  TD_TAPE_STEP_LINK_LEAVE,
  TD_TAPE_STEP_SCOPE_OPEN,
  TD_TAPE_STEP_SCOPE_CLOSE,
  TD_TAPE_STEP_PROPAGATE, /* hands a gradient to what lies outside */
  TD_TAPE_STEP_GROUP,
  TD_TAPE_N_STEP_KINDS
} TdTapeStepKind;

typedef enum
{
  TD_TAPE_FATE_RUNS,
  TD_TAPE_FATE_PRUNED,  /* nobody needed its result */
  TD_TAPE_FATE_FOLDED,  /* its result never changes: computed once */
  TD_TAPE_FATE_MERGED,  /* another step computes the same */
  TD_TAPE_FATE_BATCHED, /* done together with others by another step */
  TD_TAPE_N_FATES
} TdTapeFate;

/** Flags of a step. */
enum
{
  TD_TAPE_STEP_ACCUMULATES = 1 << 0, /* adds into its output */
  TD_TAPE_STEP_RANDOM = 1 << 1,
  TD_TAPE_STEP_AGAIN = 1 << 2, /* of a group: computed again instead of saved */
};

/** One step of a schedule.  Operands are nodes, `operands[first_in ...]`. */
typedef struct
{
  uint8_t kind, phase, fate, flags;
  uint32_t list; /* 0: forward; k: the k-th backward */
  uint32_t opdef, site, path;
  uint32_t attrs, text; /* strings */
  uint32_t first_in, n_in, first_out, n_out;
  uint32_t event; /* which event of the call it is, from 1 on; 0: none */
  uint32_t twin;  /* backward: the forward's event; 0: none */
  uint32_t group; /* GROUP: how many members follow; a member: its group's step; else
                     TD_TAPE_NO_GROUP */
  uint32_t why; /* string: what the passes did to it, or why they did not; 0: nothing to say */
  uint32_t reserved;
} TdTapeStep;
static_assert (sizeof (TdTapeStep) == 64, "TdTapeStep changed size");
#define TD_TAPE_NO_GROUP UINT32_MAX

typedef struct
{
  uint32_t value;
  uint32_t name; /* string */
  uint32_t first_dim;
  uint8_t dtype, ndim, category, flags; /* TD_TAPE_VAR_REQUIRES_GRAD */
} TdTapeNode;
static_assert (sizeof (TdTapeNode) == 16, "TdTapeNode changed size");

typedef enum
{
  TD_TAPE_VALUE_INTERIOR, /* in the arena, or only in the tiles of a group */
  TD_TAPE_VALUE_EXTERNAL, /* of an argument or of a variable that the code uses */
  TD_TAPE_VALUE_CONSTANT,
  TD_TAPE_VALUE_OUTPUT, /* leaves the call: memory of its own at each call */
  TD_TAPE_VALUE_GY,     /* the gradient of an output, given to a backward */
  TD_TAPE_VALUE_GRADIENT,
  TD_TAPE_N_VALUE_KINDS
} TdTapeValueKind;

enum
{
  TD_TAPE_VALUE_STATE = 1 << 0, /* from outside, and written */
  TD_TAPE_VALUE_SAVED = 1 << 1, /* made by the forward, read by a backward */
  TD_TAPE_VALUE_IN_TILE = 1 << 2,
};

#define TD_TAPE_NO_OFFSET UINT64_MAX

typedef struct
{
  uint64_t bytes;
  uint64_t offset;      /* in the arena; TD_TAPE_NO_OFFSET: not there */
  uint32_t index;       /* of its kind: which argument, output ... */
  uint32_t first, last; /* steps; both TD_TAPE_NO_GROUP: no step that runs uses it */
  uint8_t kind, flags;
  uint16_t n_writers; /* 65535: and more */
} TdTapeValue;
static_assert (sizeof (TdTapeValue) == 32, "TdTapeValue changed size");

/** What must hold for the schedule to be replayed. */
typedef struct
{
  uint32_t guard; /* string: "argument", "config" ... */
  uint32_t text;  /* string: what it was when it was traced */
  uint32_t site;
  uint32_t reserved;
} TdTapeGuard;
static_assert (sizeof (TdTapeGuard) == 16, "TdTapeGuard changed size");

/** A schedule: what writers are given and readers return. */
typedef struct
{
  uint32_t size; /* sizeof (TdTapeSchedule) */
  uint32_t n_steps, n_operands, n_nodes, n_dims, n_values, n_guards;
  uint32_t reserved;
  TdTapeScheduleHead head;
  const TdTapeStep *steps;
  const uint32_t *operands;
  const TdTapeNode *nodes;
  const int64_t *dims;
  const TdTapeValue *values;
  const TdTapeGuard *guards;
} TdTapeSchedule;
