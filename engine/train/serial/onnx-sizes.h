/* Which sizes of a schedule follow the inputs' sizes.
 *
 * A *symbol* is a size of an input that may be another one in each call: the batch, a length.
 * The schedule was made with one size; what the others would be is found by asking each
 * operation's infer again, with two other sizes in place of each symbol: prime numbers, so that
 * a size that is a sum or product of symbols and numbers is known by its values.
 *
 * Sizes that the code wrote as numbers - of reshape, of an array it filled - are *open*: they
 * may be the symbol's size or a number that is the same by chance.  An open size has prime
 * numbers of its own until an operation does not accept them; then it becomes what that
 * operation accepts: the same as another open size or a multiple of it, a number, and at last a
 * symbol.  Where the code is compatible with both to the end, and where a number cannot follow
 * (get_item of one row of the batch), the symbol is *fixed*: it stays the number it was, and
 * `why` says by which operation.  A decision that is not the only one possible is *doubted*,
 * and said (onnx-assumed.c).
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "static/schedule.h"

struct TdExportLacks;

enum
{
  TD_ONNX_NUMBER = -1, /* TdOnnxDecision.symbol */
  TD_ONNX_TIED = -2,
  TD_ONNX_SYMBOLS = 8,
  TD_ONNX_SAMPLES = 3 /* the size that was, and two others */
};

/** One size of a shape. */
typedef struct TdOnnxSize
{
  int64_t v[TD_ONNX_SAMPLES];
  uint64_t mask;                  /**< bit i: follows symbol i; from TD_ONNX_SYMBOLS on: open */
  int64_t fixed, times;           /**< fixed + times * the product of the symbols in mask ... */
  bool known;                     /**< ... if this is true */
  int64_t outer[TD_ONNX_SYMBOLS]; /**< so many of the axis' elements come before a symbol's
                                     next: the axis is (outer, symbol, ...); 0: not known */
} TdOnnxSize;

typedef struct TdOnnxSymbol
{
  char name[64];
  int64_t v[TD_ONNX_SAMPLES];
  uint32_t node; /**< of the input whose axis it is */
  int axis;
  char why[300]; /**< it is fixed; or empty */
} TdOnnxSymbol;

typedef struct TdOnnxDecision
{
  uint32_t node;
  int axis;
  int symbol;    /**< or TD_ONNX_NUMBER, or TD_ONNX_TIED */
  int64_t times; /**< of the symbol, or of what it is tied to */
  uint32_t tied; /**< to what is decided of this node ... */
  int tied_axis; /**< ... and axis */
  bool doubted;  /**< another one is possible as well */
} TdOnnxDecision;

typedef struct TdOnnxSizes
{
  const TdSchedule *s;
  TdOnnxSymbol symbols[TD_ONNX_SYMBOLS];
  int n_symbols;
  TdOnnxSize (*of)[TD_MAX_DIMS]; /**< by node */
  uint64_t *depends;             /**< by node: symbols that its numbers come from */
  bool *is_uniform;              /**< by node: a constant all of whose numbers are one */
  TdOnnxDecision *decided;
  uint32_t n_decided;
  struct
  {
    uint32_t node;
    int axis;
    int64_t v[TD_ONNX_SAMPLES];
  } open[64 - TD_ONNX_SYMBOLS];
  int n_open;
  struct TdOnnxStay
  {
    uint32_t node;
    int axis;
    char why[300];
  } * stays; /**< axes of arguments that were taken for numbers */
  uint32_t n_stays;
  bool opens_arguments; /**< sizes of arguments that are no symbols may be those of symbols */
  struct TdOnnxMore
  {
    uint32_t node;
    int axis, symbol;
  } * more; /**< further axes with a symbol's size */
  uint32_t n_more;
  bool numbers_first; /**< an operation that accepts both makes an open size a number */
  const struct TdOnnxLoops *loops; /**< NULL: there are none */
} TdOnnxSizes;

/** Find the symbols of the arguments by what the option `axes` says: NULL, axis 0 of each is
 * "batch"; else "x:0=batch,1:2=length", an argument by name or number.  named: names of the
 * arguments, by number.  *Errors*: after td__fail, by `call`.  (onnx-axes.c) */
TdStatus td__onnx_sizes_begin (TdOnnxSizes *sizes, const TdSchedule *s, const char *axes,
                               const char *const *named, const char *call, const TdSite *site);
/** The k-th prime number from 101 on: sizes that stand for symbols. */
int64_t td__onnx_prime (int k);
/** Find all sizes. */
void td__onnx_sizes_find (TdOnnxSizes *sizes);
/** Fix what a size follows: the file's nodes have it as a number.  step, what: what needs
 * that.  */
void td__onnx_sizes_fix (TdOnnxSizes *sizes, uint64_t mask, const TdStep *step,
                         const char *what);
/** Why axis 0 of an argument, which is as large as the first symbol was, stays what it was
 * while that symbol is open; NULL: it does not. */
const char *td__onnx_sizes_stays (const TdOnnxSizes *sizes, uint32_t argument);
/** A number as a size. */
TdOnnxSize td__onnx_size (int64_t n);
/** Are they the same for all that symbols may stand for? */
bool td__onnx_size_same (const TdOnnxSize *a, const TdOnnxSize *b);
/** "batch", "2*batch+1", or "" for one that has no such text. */
const char *td__onnx_size_text (const TdOnnxSizes *sizes, const TdOnnxSize *s, char *text,
                                size_t size);
void td__onnx_sizes_free (TdOnnxSizes *sizes);
/** Where a symbol that is open was 1: each number 1 of the code that was taken for that size,
 * or not, and may be the other: "1 is a number and not batch in the array (1, 4) of add at
 * net.c:12"; and what sizes of a reshape, of arrays that the code made or brought and of what
 * it broadcast were taken for, where it could mean others too: "3 is batch and 6 is not in
 * reshape at net.c:14", "6 is a number and not a multiple of batch in broadcast_to at
 * net.c:15".  Returns how many of the lines there are because of a 1; they come first. *Owner*:
 * lines, td__export_lacks_free.  (onnx-assumed.c) */
uint32_t td__onnx_sizes_assumed (const TdOnnxSizes *sizes, struct TdExportLacks *lines);

/* onnx-sizes.c, for the decisions: */
/** Is it an argument of the function? */
bool td__onnx_size_is_argument (const TdSchedule *s, uint32_t node);
/** May a size that was n be a symbol that is open, or a multiple of it? */
bool td__onnx_size_could_follow (const TdOnnxSizes *sizes, int64_t n, int symbol);
/** What was decided of an axis; NULL: nothing. */
const TdOnnxDecision *td__onnx_size_decision (const TdOnnxSizes *sizes, uint32_t node,
                                              int axis);
void td__onnx_size_decide (TdOnnxSizes *sizes, TdOnnxDecision d);
/** Open size k is a number, by an operation; of an argument it is kept why. */
void td__onnx_size_decide_number (TdOnnxSizes *sizes, int k, const TdStep *step,
                                  const char *what, bool doubted);
/** What one bit of a mask stands for. */
const int64_t *td__onnx_size_values (const TdOnnxSizes *sizes, int bit);
/** All bits that the sizes of a step's operands follow. */
uint64_t td__onnx_size_mask (const TdOnnxSizes *sizes, const TdStep *step,
                             TdOnnxSize (*in)[TD_MAX_DIMS]);
/** Ask infer with both of the other samples; out: results, n_out of the one and then of the
 * other. */
bool td__onnx_size_infers (const TdOnnxSizes *sizes, const TdStep *step,
                           TdOnnxSize (*in)[TD_MAX_DIMS], TdShape *out);

/* onnx-size-choices.c */
/** Why a symbol stays that no operation forbids by a rule of its own. */
extern const char td__onnx_one_size[];
/** Decide as few open sizes as an operation needs that does not accept them; where nothing
 * helps, as few symbols as are needed stay what they were.  False: all have to. */
bool td__onnx_size_resolve (TdOnnxSizes *sizes, const TdStep *step,
                            TdOnnxSize (*in)[TD_MAX_DIMS], TdShape *out);

/* onnx-size-rules.c: what infer does not know */
/** What of a step cannot follow the symbols of its operands, and those symbols' bits in *mask;
 * NULL: nothing. */
const char *td__onnx_size_refuses (const TdOnnxSizes *sizes, const TdStep *step,
                                   uint64_t *mask);
/** Does an operation accept the sizes of sample j, as far as infer accepts more than can go
 * out?
 */
bool td__onnx_size_accepts (const TdStep *step, int j, TdOnnxSize (*in)[TD_MAX_DIMS]);
/** Sizes of reshape's result, from its attribute.  What is wrong: a symbol has no place in it,
 * or may have more than one; *mask.  NULL: nothing. */
const char *td__onnx_size_reshape (TdOnnxSizes *sizes, const TdStep *step, uint64_t *mask);
/** Sizes of the result of get_item's gradient, by arrays too, whose shape is an attribute.
 * False: a symbol has no place in it, or may be a number in it; *mask. */
bool td__onnx_size_put_back (TdOnnxSizes *sizes, const TdStep *step, uint64_t *mask);
/** Is it a step that cuts the inputs of a recurrent layer into one part for each of its steps,
 * whatever numbers the code had for that? */
bool td__onnx_size_is_cut (const TdOnnxSizes *sizes, const TdStep *step);
/** Sizes of these parts, which are equally long.  False: it is not known; *mask: what it
 * follows. */
bool td__onnx_size_cut (TdOnnxSizes *sizes, const TdStep *step, uint64_t *mask);
