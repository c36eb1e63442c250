/* Control of a program of any kind: its end of the socket to the supervisor, how far it is to
 * run, and its breakpoints.  Whose program it is asks here before and after its events; the
 * engine's agent does, and the producer's library.  See PROTOCOL.md.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdatomic.h>

#include "break.h"

/** In the ring's first page, behind its head: what the supervisor and the model tell each other
 * without a system call. */
#define TD_CONTROL_OFFSET 2048
typedef struct
{
  _Atomic uint32_t attention; /**< TdControlAttention */
  _Atomic uint32_t stopped;   /**< model: it stands */

  /* of a program that writes its tape itself, which nobody else can name: where it was seen
   * last */
  char op[128];
  char where[512];
} TdControlPage;

/** Bits of `attention`. */
typedef enum
{
  TD_ATTENTION_COMMANDS = 1, /**< supervisor: commands are waiting in the socket */
  TD_ATTENTION_EVENTS = 2,   /**< producer's library, for itself: look at every event */
  TD_ATTENTION_VALUES = 4    /**< ... and at what it has made */
} TdControlAttention;

typedef enum
{
  TD_STEP_NONE,      /**< run */
  TD_STEP_OP,        /**< stop before the next event */
  TD_STEP_OVER,      /**< ... outside the layer of this one */
  TD_STEP_OUT,       /**< ... outside the layer around it */
  TD_STEP_ITERATION, /**< ... of the next iteration */
  TD_STEP_BACKWARD,  /**< ... of the backward phase */
  TD_STEP_UPDATE     /**< ... of the update phase */
} TdStepKind;

typedef struct TdControl TdControl;

/** A command that a kind of program has of its own: its first word, with the blank that
 * follows. */
typedef struct
{
  const char *word;
  void (*run) (TdControl *c, const char *tag, const char *rest);
} TdControlCommand;

/** What taking a command did: whether a stopped program goes on. */
typedef enum
{
  TD_CONTROL_STAY,
  TD_CONTROL_GO,
  TD_CONTROL_GONE,       /**< there is no supervisor any more */
  TD_CONTROL_INTERRUPTED /**< it waited, and there may be a signal */
} TdControlOutcome;

/** What kind of program it is. */
typedef struct
{
  const TdControlCommand *commands; /**< the last has no word */
  /** Where the program is, as a command comes: what steps are relative to. */
  void (*now) (TdControl *c, TdControlPlace *place, int64_t *iteration);
  /** What the program is asked for has changed. */
  void (*changed) (TdControl *c);
  /** Optional: why such a program can never stop there, as a line; false: it can. */
  bool (*refuses) (const TdBreak *b, char *error, size_t size);
  /** Optional: what has to be known before a command is done. */
  void (*prepare) (TdControl *c);
  /** Optional, of a program that stands: what has come for all ranks. */
  TdControlOutcome (*look) (TdControl *c);
} TdControlKind;

/** Begins the struct of whose program it is. */
struct TdControl
{
  const TdControlKind *kind;
  TdControlPage *page;
  int fd;
  bool alert;        /**< stepping, or breakpoints but those on errors: look at every event */
  bool needs_values; /**< a breakpoint looks at values */
  bool needs_after;  /**< one is asked after events: for values, or what they allocated */
  unsigned asked_at; /**< bit for each TdBreakWhen at which one is asked */
  bool compares_graphs, asks_for_held; /**< one of those at ends of iterations */
  bool aims;                           /**< it runs to a place that ranks have in common */
  bool apart;                          /**< a breakpoint may hold on some ranks only */
  int rank;
  bool on_error, exactly; /**< one asks for errors; for errors before anything else runs */
  TdStepKind step;
  const char *step_path; /**< the layer that a step is relative to */
  int64_t step_iteration;
  uint32_t step_phase;
  TdBreak **breaks;
  int n_breaks, next_break_id;
};

/** A stop, as it is told. */
typedef struct
{
  const char *reason;
  const int *rank; /**< the other rank that it stops for; NULL: its own reason */
  const TdControlPlace *place;
  int64_t iteration;
  uint64_t at; /**< how many events of the iteration have run */
  const TdBreak *by;
  const uint64_t
      *failed; /**< iteration and event of what failed, when that is not here; or NULL */
} TdControlStop;

/** Take what the supervisor left in the environment, so that whoever the program starts is not
 * taken for it: the number of a descriptor that is open, which may still be the program's own;
 * -1: none. */
int td__control_take_fd (const char *name);

/** An array that is read: of a number, or what an operation has made. */
typedef struct
{
  uint64_t id;
  const char *op; /**< NULL: it has a number and a version */
  const char *dtype;
  uint32_t ndim;
  const int64_t *dims;
  uint64_t bytes, total; /**< that are sent; that it has */
  uint64_t version;
} TdControlArray;

/** Begin, with breakpoints, one a line, or NULL; what is none of them is said on stderr.
 * Borrowed: the page.  Owner: takes fd. */
void td__control_begin (TdControl *c, const TdControlKind *kind, TdControlPage *page, int fd,
                        const char *breaks);
void td__control_end (TdControl *c);

/** Take the commands that have come; the supervisor may be gone. */
void td__control_take (TdControl *c);
/** Let it run so far as the text says, from this place on. */
void td__control_move (TdControl *c, const char *text, const TdControlPlace *place,
                       int64_t iteration);
/** Look again at what the program is asked for. */
void td__control_look_again (TdControl *c);

/** What came of a change of breakpoints. */
typedef struct
{
  int number; /**< the id, if it has one; -1: it could not be done */
  bool has_id;
  char error[256];
} TdControlChange;
/** Change breakpoints as the command says; false: it is none that does. */
bool td__control_change (TdControl *c, const char *text, TdControlChange *done);
void td__control_answer_change (TdControl *c, const char *tag, const TdControlChange *done);

/** Tell that the program stands. */
void td__control_stops (TdControl *c, const TdControlStop *stop);
/** Wait until the program is to go on.  `may_interrupt`: a signal ends the wait, too, and so do
 * 100 ms, as one may have come before. */
TdControlOutcome td__control_wait (TdControl *c, bool may_interrupt);
/** Tell that it goes on. */
void td__control_resumes (TdControl *c);

/** Step to the first event of that iteration, or of the next that has one. */
void td__control_pause (TdControl *c, int64_t iteration);
/** Is this event the one that a step goes to? */
bool td__control_step_ends (const TdControl *c, const TdControlPlace *place, int64_t iteration);
/** The first breakpoint that holds, of those that are asked after events or of the others;
 * NULL: none. */
TdBreak *td__control_holds (const TdControl *c, const TdBreakMoment *m, bool after);
/** Could one that looks at values hold, whatever they are?  Else nobody need look at them. */
bool td__control_may_hold (const TdControl *c, const TdBreakMoment *m);
/** The first that holds for a failure, which the moment is from now on; NULL: none. */
TdBreak *td__control_fails (const TdControl *c, TdBreakMoment *m);
/** What it says at the end of an iteration that grew. */
void td__control_describe_growth (const TdBreakMoment *m, char *what, size_t size);
/** What a breakpoint says after an event: "log made NaN (4 of its numbers)". */
void td__control_describe (const TdBreak *b, const TdBreakMoment *m, const char *who,
                           char *what, size_t size);

/** Take "ID [MAX]", whole numbers and nothing else; MAX is 0 where it is left out.  Returns
 * whether that is what the text is. */
bool td__control_parse_read (const char *text, uint64_t *id, uint64_t *most);

/** Send a line to the supervisor, with a descriptor or -1. */
void td__control_send (int fd, const char *text, int memory);
/** New anonymous memory of n bytes, mapped; -1: there is none. */
int td__control_memory (size_t n, void **bytes);
/** The same with a copy of `data`. */
int td__control_copy (const void *data, size_t n);
/** How many of `total` bytes are sent where `most` are asked for; 0: all. */
size_t td__control_part (uint64_t total, uint64_t most);
/** Answer with an array and the memory that its bytes are in; -1: they could not be had. Owner:
 * takes the memory. */
void td__control_answer_array (int fd, const char *tag, const TdControlArray *array,
                               int memory);
void td__control_answer_ok (TdControl *c, const char *tag);
void td__control_answer_error (TdControl *c, const char *tag, const char *error);
/** What `read` is answered with where that does not parse. */
#define TD_CONTROL_WRONG_READ "read wants the number of an array, and perhaps of bytes"
/** The same with a number. */
void td__control_answer_number (TdControl *c, const char *tag, const char *key, int number);
