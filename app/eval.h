/* `tapedeck eval` from the inside: functions by Chainer's names, their attributes as text, one
 * call.
 *
 * A function is a row of a table: its operands and attributes are one line of text each, which
 * is parsed, checked and printed; its call takes what it needs by name.  Operations of the
 * engine that have no row are called by what their class says of itself.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <tapedeck-op.h>

enum
{
  TD_EVAL_MAX_ARRAYS = 512, /* inputs, outputs */
  TD_EVAL_MAX_ATTRS = 16,
  TD_EVAL_MAX_NUMBERS = 256
};

typedef struct TdEval TdEval;

/** What can be called. */
typedef struct TdEvalFunction
{
  const char *name, *group;
  const char *operands;   /**< "x W [b]": in brackets optional; "xs...": one or more */
  const char *attributes; /**< "ksize:ints stride:ints=None": name, kind, default; no default:
                               it must be given.  Kinds: int ints float floats bool text dtype;
                             int?: None as well, though it is not the default */
  const char *formula;
  /* One of: */
  TdVar *(*unary) (TdVar *x);
  TdVar *(*binary) (TdVar *a, TdVar *b);
  void (*call) (TdEval *e); /**< takes e->in, adds to e->out */
} TdEvalFunction;

/** One attribute: declared, and what it is this time. */
typedef struct TdEvalAttr
{
  char name[32], kind[12];
  char default_text[200]; /**< as declared */
  bool required, given, none;
  char text[4096]; /**< the value as given or declared */
  int n;
  int64_t ints[TD_EVAL_MAX_NUMBERS];
  double floats[TD_EVAL_MAX_NUMBERS];
} TdEvalAttr;

/** One call. */
struct TdEval
{
  const TdEvalFunction *function; /**< or NULL: cls alone */
  const TdOpClass *cls;           /**< the engine's operation of that name, or NULL */
  TdEvalAttr *attrs;
  int n_attrs;
  TdVar *in[TD_EVAL_MAX_ARRAYS], *out[TD_EVAL_MAX_ARRAYS];
  int n_in, n_out;
  const char *model_path; /**< of an ONNX model, or NULL */
  TdLink *model;
  char wrong[512]; /**< what is wrong with how it is called; "" if nothing is */
};

/** Every table of rows, ended by a row without a name. */
extern const TdEvalFunction td_eval_math[], td_eval_arrays[], td_eval_layers[],
    td_eval_windows[], td_eval_losses[], td_eval_sequences[];
/** Row i over all tables, or NULL beyond the last. */
const TdEvalFunction *td_eval_function_at (int i);
const TdEvalFunction *td_eval_function_find (const char *name);

/** Begin a call of the function or operation of that name.  False: there is none.
 * *Owner*: e, td_eval_clear (). */
bool td_eval_begin (TdEval *e, const char *name);
void td_eval_clear (TdEval *e);
const char *td_eval_name (const TdEval *e);
/** The least and largest number of operands; -1: any. */
void td_eval_operands (const TdEval *e, int *least, int *most);
/** Say whether operand i may have a gradient. */
bool td_eval_wants_grad (const TdEval *e, int i);
/** Operands as text: "x, W, [b]". */
void td_eval_operands_text (const TdEval *e, char *text, size_t size);
/** Declare an attribute; no default: it must be given. */
void td_eval_declare (TdEval *e, const char *name, const char *kind, const char *default_text);
/** Declare those of a row: "ksize:ints stride:ints=None". */
void td_eval_declare_all (TdEval *e, const char *attributes);
/** Set an attribute from "name=value".  False: e->wrong. */
bool td_eval_set (TdEval *e, const char *assignment);
/** Look whether every attribute and operand that must be there is.  False: e->wrong. */
bool td_eval_complete (TdEval *e, int n_in);
/** Call it on e->in: fills e->out.  False: e->wrong, or an error of the engine. */
bool td_eval_call (TdEval *e);

/* For rows: attributes by name, which must be declared. */
TdEvalAttr *td_eval_attr (const TdEval *e, const char *name);
int64_t td_eval_int (const TdEval *e, const char *name);
double td_eval_float (const TdEval *e, const char *name);
bool td_eval_bool (const TdEval *e, const char *name);
TdDtype td_eval_dtype (const TdEval *e, const char *name);
const char *td_eval_text (const TdEval *e, const char *name);
bool td_eval_none (const TdEval *e, const char *name);
/** Which of n words it is; another: e->wrong, and 0. */
int td_eval_choice (TdEval *e, const char *name, const char *const *words, int n);
/** How many numbers it has; numbers[0 .. max - 1] get them.  More, or beyond int: e->wrong. */
int td_eval_ints (TdEval *e, const char *name, int *numbers, int max);
/** n numbers, or one that stands for n; None leaves numbers as they are.  Else: e->wrong. */
void td_eval_tuple (TdEval *e, const char *name, int *numbers, int n);
TdShape td_eval_shape (TdEval *e, const char *name);
/** Operand i, or NULL if it was not given. */
TdVar *td_eval_in (const TdEval *e, int i);
/** Add an output of the call. */
void td_eval_output (TdEval *e, TdVar *y);
/** Say what is wrong with an attribute's value. */
void td_eval_wrong (TdEval *e, const char *name, const char *what);

/* Models (eval-model.c). */
/** Print the engine's error to stderr, without the call that it came from, and forget it. */
void td_eval_say_error (void);
/** Load it.  NULL: why, or what is not there, has been printed to stderr. */
TdLink *td_eval_load (const char *path);
void td_eval_begin_model (TdEval *e, const char *path);
/** Load it for a call, and count its inputs.  False: e->wrong, or "" and it was said. */
bool td_eval_load_model (TdEval *e, int n_in);
/** Parameters of a model, with its paths; or their gradients. */
typedef struct TdEvalParams
{
  char **paths;
  TdVar **vars;
  int n;
} TdEvalParams;
/** model NULL: none.  *Owner*: p, td_eval_params_clear (). */
void td_eval_params (TdEvalParams *p, TdLink *model);
void td_eval_params_clear (TdEvalParams *p);
/** Write an npz; those that are NULL are left out. */
void td_eval_params_save (TdEvalParams *gradients, const char *path);

/** The list of everything, and one function's page. */
void td_eval_print_list (void);
/** Operators of ONNX models: name, opsets, "yes" or what is left out. */
void td_eval_print_onnx (void);
void td_eval_print_help (const TdEval *e);
