/* Writing a tape from any program: a framework, a script, a simulator says what it does, in the
 * order in which it happens, and every view of Tapedeck reads it.  A C ABI: nothing of the
 * engine is needed.  SPDX-License-Identifier: MIT */
#pragma once

#include "td-tape.h"

TD_TAPE_BEGIN_C

/* What is said, and in which order
 *
 * - Texts, places in the source, layers and kinds of operations are said once; each gets a
 * small number, and 0 stands for none.
 * - Memory is said by storage: td_producer_alloc, and td_producer_release when it is given
 * back. The number of a storage is the caller's own, and may be used again after that.
 * - A variable is an array that operations read and make.  Its number is the caller's too, from
 *   1 on, and larger than all before.  Several variables may lie on one storage, with an
 * offset, strides and a version: views, and what has been written in place.
 * - An operation names its inputs and outputs, which have been said before.  What no operation
 *   makes is a leaf: a parameter, a batch.  An output that was there before the iteration has
 *   been written in place; one made in this iteration is made once.
 * - Operations belong to the iteration that is open; where there is none they are work outside.
 * - What was alive before the first iteration is said before it.
 *
 * Structs begin with their size, so that they may grow: a program that was compiled against an
 * older header is read as far as it goes, and one against a newer header is refused where it
 * uses what this library lacks.
 *
 * Every call is checked.  A call that is refused changes nothing, and td_producer_error says in
 * a line what was wrong with it.  One thread at a time. */

typedef struct TdProducer TdProducer;

typedef enum
{
  TD_PRODUCER_OK = 0,
  TD_PRODUCER_WRONG = -1,   /* it makes no sense */
  TD_PRODUCER_NOT_NOW = -2, /* it does, but not in this order */
  TD_PRODUCER_MEMORY = -3,
  TD_PRODUCER_FILE = -4, /* writing has stopped: the disk is full, another took the file */
  TD_PRODUCER_INTERRUPTED = 1, /* of td_producer_gate: a signal came */
} TdProducerStatus;

/** How a tape is made; fill with zeros, set `size`. */
typedef struct
{
  uint32_t size;  /* sizeof (TdProducerOptions) */
  uint32_t level; /* TdTapeLevel, which readers are told */
  const char *path;
  const char *producer, *version; /* "PyTorch", "2.6.0" */
  const char *program;            /* what is recorded: "train.py"; NULL: not known */
  uint64_t budget_bytes;          /* 0: unlimited */
  uint32_t overwrite;             /* 1: an older tape may go */
  uint32_t rank, n_ranks;         /* n_ranks 0: 1 */
  uint32_t reserved;
} TdProducerOptions;

/** An array. */
typedef struct
{
  uint32_t size;  /* sizeof (TdProducerVariable) */
  uint32_t dtype; /* TdTapeDtype; TD_TAPE_N_DTYPES: one that the tape has no name for */
  uint64_t id;
  uint64_t storage; /* 0: not known */
  uint64_t offset;  /* in the storage, in elements */
  uint64_t version; /* how often the storage had been written to */
  const int64_t *dims;
  const int64_t *strides; /* in elements; NULL: row-major */
  uint32_t ndim;
  uint32_t category;  /* TdTapeCategory */
  uint32_t flags;     /* TD_TAPE_VAR_REQUIRES_GRAD, _RETAINED, _PARAMETER */
  uint32_t device;    /* 0: the host */
  uint32_t name;      /* text */
  uint32_t layer;     /* that has it; 0: none */
  uint32_t place;     /* of a leaf: where it was made */
  uint32_t parameter; /* text: the whole name of a parameter, "net/l1/W" */
} TdProducerVariable;

/** One attribute of an operation: "stride", "2,2". */
typedef struct
{
  const char *name, *value;
} TdProducerAttribute;

/** Something that the program did. */
typedef struct
{
  uint32_t size;  /* sizeof (TdProducerOperation) */
  uint32_t kind;  /* of td_producer_kind */
  uint32_t phase; /* TdTapePhase */
  uint32_t place, layer;
  uint32_t flags;  /* TD_TAPE_EVENT_ACCUMULATED, _FAILED, _DOUBLE, _NO_BACKPROP */
  uint32_t thread; /* that ran it; 0: the program's first */
  uint32_t n_attributes;
  const TdProducerAttribute *attributes;
  const uint64_t *inputs, *outputs; /* variables; an input of 0 is one that was left out */
  uint32_t n_inputs, n_outputs;
  uint64_t twin; /* of a backward one: the forward operation's number in this iteration, from 1
                  * on; 0: not known */
  uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC; 0: now */
} TdProducerOperation;

/** Create a tape.
 * Owner: the caller; end with td_producer_free.
 * Errors: NULL, with one line in `error` (`n` bytes; may be NULL). */
TD_API TdProducer *td_producer_new (const TdProducerOptions *options, char *error, size_t n);

/** Close the tape, as one whose program did not say how it ended unless td_producer_end did,
 * and free the producer.  NULL is allowed. */
TD_API void td_producer_free (TdProducer *p);

/** The line that says why the last refused call was refused; "" when none was. */
TD_API const char *td_producer_error (const TdProducer *p);

/* ------------------------------------------------------------------ what is said once */

/** Return the number of a text.  Errors: 0. */
TD_API uint32_t td_producer_text (TdProducer *p, const char *text);

/** Return the number of a place in the source; `function` may be NULL.  Errors: 0. */
TD_API uint32_t td_producer_place (TdProducer *p, const char *file, uint32_t line,
                                   const char *function);

/** Return the number of a layer: its path, "net/l1", and its class.  Errors: 0. */
TD_API uint32_t td_producer_layer (TdProducer *p, const char *path, const char *layer_class);

/** Return the number of a kind of operations; `group` and `arguments` may be NULL.  Errors: 0.
 */
TD_API uint32_t td_producer_kind (TdProducer *p, const char *name, const char *group,
                                  const char *arguments);

/** Say something about the run: "argv", "device", "host" ... */
TD_API TdProducerStatus td_producer_info (TdProducer *p, const char *key, const char *value);

/** Store the text of a source file that places name. */
TD_API TdProducerStatus td_producer_source (TdProducer *p, const char *path, const char *text,
                                            size_t n);

/* -------------------------------------------------------------------- what happens */

/** Begin an iteration at `time_ns` of CLOCK_MONOTONIC; 0: now.  `label` is a text, 0: its
 * number among the iterations. */
TD_API TdProducerStatus td_producer_begin (TdProducer *p, uint32_t label, uint64_t time_ns);

/** End it.  What is on the tape then is there also if the program is killed. */
TD_API TdProducerStatus td_producer_end_iteration (TdProducer *p, uint64_t time_ns);

/** Memory is taken, and given back, before the operation that is said next. */
TD_API TdProducerStatus td_producer_alloc (TdProducer *p, uint64_t storage, uint64_t address,
                                           uint64_t bytes, uint32_t category, uint32_t device);
TD_API TdProducerStatus td_producer_release (TdProducer *p, uint64_t storage);
/** A variable is there, and what it is. */
TD_API TdProducerStatus td_producer_variable (TdProducer *p, const TdProducerVariable *v);

/** A variable is not named any more.  With its storage it is forgotten by itself. */
TD_API TdProducerStatus td_producer_forget (TdProducer *p, uint64_t variable);
/** An operation has run: its inputs and outputs have been said before. */
TD_API TdProducerStatus td_producer_operation (TdProducer *p, const TdProducerOperation *op);

/** The operation that is said next updates `parameter` with `gradient` (0: none). */
TD_API TdProducerStatus td_producer_gradient (TdProducer *p, uint64_t parameter,
                                              uint64_t gradient);

/** Statistics of a variable as it is after the operation that was said last; var and event of
 * `stats` are ignored. */
TD_API TdProducerStatus td_producer_statistics (TdProducer *p, uint64_t variable,
                                                const TdTapeStats *stats);

/** The same, computed from the variable's `n` elements at `data`, row-major and without gaps.
 * At level values these are written, too, unless they take more than 16 MiB. */
TD_API TdProducerStatus td_producer_measure (TdProducer *p, uint64_t variable, const void *data,
                                             uint64_t n);

/** A rank waits for others, in a collective or a letter; once when it begins, with an end_ns of
 * 0, and once more with its end; or once.  What it says is TdTapeCollective's. */
typedef struct
{
  uint32_t size; /* sizeof (TdProducerWait) */
  uint32_t wait; /* TdTapeWait */
  uint64_t comm; /* the same number on all ranks of the communicator, not 0 */
  uint64_t seq;  /* of the call, from 1 on; of a letter whose sender is not known: 0 */
  uint64_t bytes;
  uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC; start 0: now */
  uint32_t call;             /* text: "dist.all_reduce" */
  uint32_t place;
  uint32_t rank, n_ranks; /* of the communicator */
  int32_t peer;           /* root, or whom it is sent to or received from; -1: none */
  uint32_t flags;         /* TD_TAPE_COLLECTIVE_BEFORE, _FAILED, _WHOLE, _BEHIND */
  uint32_t dtype;         /* TdTapeDtype; TD_TAPE_N_DTYPES: none, or one without a name */
  uint32_t reserved;
} TdProducerWait;

/** Say that this rank has waited for others, between two operations. */
TD_API TdProducerStatus td_producer_wait (TdProducer *p, const TdProducerWait *wait);

/** Where this rank begins to wait for others, as they are told. */
typedef struct
{
  uint32_t size;          /* sizeof (TdProducerWaiting) */
  uint32_t n_members;     /* of the call */
  const int32_t *members; /* their numbers among all ranks */
  uint64_t comm, seq;     /* as in TdProducerWait; 0: it has none yet */
  const char *call;       /* "dist.all_reduce" */
  const char *file;       /* "train.py"; NULL: not known */
  uint32_t line;
  int32_t from; /* the one that it waits for; -1: for all */
} TdProducerWaiting;

/** Say to the other ranks of a run that `tapedeck run -n` has started that this one waits from
 * here on; NULL: it goes on. */
TD_API TdProducerStatus td_producer_waiting (TdProducer *p, const TdProducerWaiting *waiting);

/** Look, from time to time while it waits, whether a rank has waited for longer than
 * `--hang-after` says. passed_s: since the last look. What this rank says is written on
 * standard error; text: what any rank says, once, else "". Returns 1 where this process has to
 * end, so that all do; else 0. */
TD_API int td_producer_hang (TdProducer *p, double passed_s, char *text, size_t size);

/** Write what the open iteration has up to now, so that it is on the tape if the program is
 * killed: for one that may wait for long.  It costs what the iteration is long. */
TD_API TdProducerStatus td_producer_show (TdProducer *p);

/** A number of a curve, as of now. */
TD_API TdProducerStatus td_producer_report (TdProducer *p, const char *key, double value);

/** Something to say to the reader of the tape. */
TD_API TdProducerStatus td_producer_notice (TdProducer *p, const char *text);

/** The program ends with this status; an iteration that is open is partial.  Nothing can be
 * said after that. */
TD_API TdProducerStatus td_producer_end (TdProducer *p, int status);

/* ---------------------------------------------------------------------- all at once */

/* Where a call costs more than what it says, as from Python, an iteration can be said in one: a
 * row of 64-bit words.  Each record is a TdProducerWord, the number of its words with these
 * two, and then what the function of that name takes, in the order that stands beside it. */
typedef enum
{
  TD_PRODUCER_WORD_BEGIN = 1, /* time_ns, label, 1 if it is work outside any iteration */
  TD_PRODUCER_WORD_END,       /* time_ns, and 1 if it was work outside, or nothing */
  TD_PRODUCER_WORD_ALLOC,     /* storage, address, bytes, category, device */
  TD_PRODUCER_WORD_RELEASE,   /* storage */
  /** id, storage, offset, version, dtype, category, flags, device, name, layer, place,
   * parameter, ndim, dims, and strides or nothing */
  TD_PRODUCER_WORD_VARIABLE,
  TD_PRODUCER_WORD_FORGET, /* variable */
  /** kind, phase, place, layer, flags, thread, attributes, twin, start_ns, end_ns, n_inputs,
   * inputs, outputs; attributes is a text: "stride=2,2 pad=1,1" */
  TD_PRODUCER_WORD_OPERATION,
  TD_PRODUCER_WORD_GRADIENT, /* parameter, gradient */
  TD_PRODUCER_WORD_MEASURED, /* variable, what td_producer_measure_ahead returned */
  TD_PRODUCER_WORD_REPORT,   /* key (a text), the bits of a double */
  TD_PRODUCER_WORD_NOTICE,   /* a text */
  /** of a rank, before the next operation: what ranks are compared by (TdTapeRankSum): kind,
   * path (a text), flags, n_averaged, both words of the sum, the bits of sample, at, size,
   * n_not_finite */
  TD_PRODUCER_WORD_SUM,
  /** wait, comm, seq, bytes, start_ns, end_ns, call, place, rank, n_ranks, peer, flags, dtype
   */
  TD_PRODUCER_WORD_WAIT,
  /** name (a text): what comes next in the iteration is in a scope of that name; 0: the
   * innermost scope ends */
  TD_PRODUCER_WORD_SCOPE,
  TD_PRODUCER_N_WORDS
} TdProducerWord;

/** Take the records of `n` words.  One that is refused is left out and the others are taken.
 * Returns the status of the first that was refused, with its place in the error's text; a
 * length that is impossible ends the row. */
TD_API TdProducerStatus td_producer_words (TdProducer *p, const int64_t *words, uint64_t n);

/** Compute statistics of `n` elements now, for a MEASURED of the words that come next.  At
 * level values the elements are kept until then, row by row as the variable that the first
 * MEASURED names has them: of arrays up to 16 MiB, 256 MiB in all.  Returns their number; below
 * 0: a TdProducerStatus. */
TD_API int64_t td_producer_measure_ahead (TdProducer *p, uint32_t dtype, const void *data,
                                          uint64_t n);

/* ---------------------------------------------------------------------------- live */

/* Under `tapedeck run` a program can be paused, stepped, stopped at breakpoints and read.  It
 * calls td_producer_gate before each operation, on the thread that runs it, which waits in
 * there while the program is paused: between operations everything else of the program goes on.
 * As long as the word that td_producer_live returns is 0 nobody wants anything, and no call is
 * needed. */

/** Bits of that word. */
typedef enum
{
  TD_PRODUCER_LOOK_BEFORE = 3, /* any of them: call the gate before an operation */
  TD_PRODUCER_LOOK_AFTER = 4,  /* and after it, as a breakpoint asks for what it made */
} TdProducerLook;

typedef enum
{
  TD_PRODUCER_BEFORE, /* the operation comes next */
  TD_PRODUCER_AFTER,  /* it has run, and been said or is going to be in the next flush */
  TD_PRODUCER_FAILED, /* it has failed: worth a call whatever the word says */
} TdProducerWhen;

/** Where the program is. */
typedef struct
{
  uint32_t size;                      /* sizeof (TdProducerMoment) */
  uint32_t when;                      /* TdProducerWhen */
  uint32_t kind, phase, place, layer; /* of the operation, as of TdProducerOperation */
  uint64_t iteration;                 /* its number, from 0 */
  uint64_t n_events;                  /* operations of it that have run */
  uint64_t live_bytes;                /* memory in use */
  const char *error;                  /* why it has failed */
} TdProducerMoment;

/** The numbers of an array. */
typedef struct
{
  uint32_t size;  /* sizeof (TdProducerArray), set by the library */
  uint32_t dtype; /* TdTapeDtype */
  uint32_t ndim, reserved;
  int64_t dims[TD_TAPE_MAX_NDIM];
  uint64_t version; /* as of TdProducerVariable */
  uint64_t bytes;
  const void *data; /* row-major and without gaps; not used after the next call-back */
} TdProducerArray;

/** What the library asks of the program, in td_producer_gate and on its thread. */
typedef struct
{
  uint32_t size; /* sizeof (TdProducerCalls) */
  uint32_t reserved;
  void *user;
  /** Say what has happened and has not been said: the program is going to stop. */
  void (*flush) (void *user);
  /** Give the numbers of a variable, of which `array` has dtype and dims as they were said.
   * Returns 0 if it is no longer there. */
  int (*read) (void *user, uint64_t variable, TdProducerArray *array);
  /** The same of output i of the operation that has run.  0: it has not so many. */
  int (*output) (void *user, uint32_t i, TdProducerArray *array);
} TdProducerCalls;

/** Listen to the supervisor.  Returns the word; NULL: there is none, or another program of the
 * run has it.  The word is there until td_producer_free. */
TD_API const volatile uint32_t *td_producer_live (TdProducer *p, const TdProducerCalls *calls);

/** Take commands, and stop here if that is wanted.  Returns once the program is to go on; or
 * INTERRUPTED after a signal, and every 100 ms for one that came just before, so that handlers
 * run: then it is called again to stand on, or with NULL to go on. */
TD_API TdProducerStatus td_producer_gate (TdProducer *p, const TdProducerMoment *moment);

TD_TAPE_END_C
