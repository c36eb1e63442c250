/* Random programs for test-static-search: what one is, how it is drawn from a seed, printed,
 * and made smaller.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdio.h>

enum
{
  ROWS = 3,
  COLUMNS = 4,
  MAX_STATEMENTS = 14,
  MAX_EVENTS = 10,
  ITERATIONS = 7
};

/** A statement of the static function; each makes one new variable of those before it. */
#define STATEMENTS(X)                                                                          \
  X (TANH)                                                                                     \
  X (RELU)                                                                                     \
  X (EXP)                                                                                      \
  X (SCALED)                                                                                   \
  X (SOFTMAX)                                                                                  \
  X (ADD)                                                                                      \
  X (MUL)                                                                                      \
  X (SUB)                                                                                      \
  X (LAYER)     /* a shared link */                                                            \
  X (FROZEN)    /* one that no optimizer updates */                                            \
  X (TWIN)      /* another over the same arrays */                                             \
  X (LATE)      /* one that waits for its shape */                                             \
  X (NORMALIZE) /* batch normalization */                                                      \
  X (DROPOUT)                                                                                  \
  X (RESHAPE)                                                                                  \
  X (TRANSPOSE)                                                                                \
  X (PARAMETER) /* without its link */                                                         \
  X (CAPTURED)  /* a variable from outside */                                                  \
  X (CONSTANT)  /* numbers that the code brings */                                             \
  X (RANDOM)                                                                                   \
  X (READ) /* by the host, to branch on */                                                     \
  X (FAIL) /* in some iterations */                                                            \
  X (RECURRENT)                                                                                \
  X (STATELESS) /* an LSTM, whose state goes through */                                        \
  X (STATEFUL)  /* an LSTM that keeps its own: never static */                                 \
  X (INNER)     /* a static function in the static function */                                 \
  X (MARKED)    /* a link that is one */                                                       \
  X (FORGET)    /* what is computed again in backward */                                       \
  X (OWN)       /* an operation of the program's, whose backward can fail */                   \
  X (EFFECT)    /* td_static_code */                                                           \
  X (REPORT)                                                                                   \
  X (SELF_SCALE)   /* a watched number that the code changes itself */                         \
  X (HIDDEN_SCALE) /* a number in C that no guard sees */                                      \
  X (OTHER_DTYPE)  /* parameters of halves or doubles, which other statements use as well */   \
  X (OWN_HIDDEN)   /* an operation of the program's, whose backward reads that number */       \
  X (REMEMBER)     /* one that changes an array, which is used before and after */             \
  X (EVALUATED)    /* batch normalization as it is when it is not trained */

/** What happens in one iteration besides. */
#define EVENTS(X)                                                                              \
  X (WRITE_RESULT)                                                                             \
  X (WRITE_ARGUMENT)                                                                           \
  X (WRITE_PARAMETER)                                                                          \
  X (ALIAS)                                                                                    \
  X (PASS_PARAMETER)                                                                           \
  X (PASS_CAPTURED)                                                                            \
  X (CALL_TWICE)                                                                               \
  X (KEEP_GRADIENTS)                                                                           \
  X (NO_BACKWARD)                                                                              \
  X (EVALUATE)                                                                                 \
  X (WITHOUT_BACKPROP)                                                                         \
  X (DOUBLE_BACKWARD)                                                                          \
  X (GRADIENTS_OF)                                                                             \
  X (HOOK)                                                                                     \
  X (LINK_HOOK)                                                                                \
  X (OTHER_ROWS)                                                                               \
  X (BACKWARD_TWICE)                                                                           \
  X (SECOND_ONLY)                                                                              \
  X (FLAG)          /* FAIL fails */                                                           \
  X (FAIL_BACKWARD) /* OWN fails in backward */                                                \
  X (FAIL_OUTSIDE)  /* between forward and backward */                                         \
  X (WEIGHTS_BY_HAND)                                                                          \
  X (RETAIN_GRADS)                                                                             \
  X (UNCHAIN)                                                                                  \
  X (FREEZE)                                                                                   \
  X (OTHER_RATE)                                                                               \
  X (SEED)                                                                                     \
  X (SAVE_AND_LOAD) /* the weights, back to where they were */                                 \
  X (CLEAR_SCHEDULES)                                                                          \
  X (VERIFY_NEXT)                                                                              \
  X (HIDDEN_CHANGES) /* what HIDDEN_SCALE reads */

#define SEARCH_NAME(x) x,
typedef enum
{
  STATEMENTS (SEARCH_NAME) N_KINDS
} Kind;
typedef enum
{
  EVENTS (SEARCH_NAME) N_EVENTS
} EventKind;

typedef struct
{
  Kind kind;
  unsigned a, b, which; /* a, b: variables as counted from the newest */
  bool no_backprop;
} Statement;

typedef struct
{
  EventKind kind;
  int iteration;
} Event;

enum
{
  N_OPTIMIZERS = 9,
  N_OPT_HOOKS = 7, /* 0: none */
  N_PASSES = 7,
  N_FILES = 4
};

/** How a program that is stopped goes on: what the file is. */
typedef enum
{
  FILE_OBJECT,      /* td_save_object, npz */
  FILE_SAFETENSORS, /* the same, safetensors */
  FILE_PARTS,       /* npz of the link and of each optimizer, the rest by td_save_object */
  FILE_TRAINER      /* td_save_npz of the trainer, or its snapshot; FILE_OBJECT without one */
} FileKind;

typedef struct
{
  unsigned seed;
  Statement list[MAX_STATEMENTS];
  int n;
  Event events[MAX_EVENTS];
  int n_events;
  unsigned results[2];
  unsigned optimizer, second; /* second: of a chain of its own; N_OPTIMIZERS: there is none */
  unsigned opt_hook;
  unsigned passes; /* bits: those that are off in one of the modes */
  unsigned level;  /* of the recording */
  bool frozen_arguments, double_backprop, trainer, snapshot, loss_scaling;
  bool other_dtypes; /* there are parameters for OTHER_DTYPE */
  bool goes_on;      /* what the function returns goes on through td_forget */
  int stop_at;       /* the iteration before which it is saved, ended and gone on with */
  FileKind file;
} Program;

Program program_generate (unsigned seed);
/** The same, where in a third of the programs many statements are OTHER_DTYPE, in some one is
 * OWN_HIDDEN, some of REMEMBER and EVALUATED, and some go on behind the function by td_forget,
 * with a scaled loss in half. */
Program program_generate_more (unsigned seed);
void program_print (FILE *to, const Program *p);
bool program_has (const Program *p, EventKind kind, int iteration);
/** The k-th program that is smaller than p by one thing; false: there are no more. */
bool program_smaller (const Program *p, int k, Program *smaller);
