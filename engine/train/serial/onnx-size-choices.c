/* What open sizes are decided to be where an operation does not accept them as they are.
 *
 * As few are decided as the operation needs, and each as what is least likely to be wrong: as
 * large as another open one, a number, and at last a symbol.  A decision is *doubted* where the
 * operation accepts others as well, be it only where a symbol is 1, which broadcasts.
 *
 * SPDX-License-Identifier: MIT */
#include "onnx-sizes.h"

#include "../links/object.h"

#include <stdlib.h>
#include <string.h>

const char td__onnx_one_size[] = "is possible with the size that there was alone";

/* What an open size may become, beside what it is: as large as another one or a multiple of it,
 * a number, a symbol or a multiple of it. */
enum
{
  MOST_TRIED = 6,      /* open sizes of one operation that are decided together ... */
  MOST_WAYS = 200000,  /* ... and in how many ways, */
  MOST_DOUBTED = 20000 /* and of how many it is looked whether others are possible */
};
typedef struct
{
  int open;
  int choices[2 + MOST_TRIED + TD_ONNX_SYMBOLS]; /* KEEP, TIE + the place of another, ... */
  int n, chosen, best;
  bool numbers_first; /* a number is the more likely of that and a symbol */
  bool is_inner;      /* of an argument, and not its first axis */
  bool doubted;       /* the best is not the only one that is possible */
} Trial;
enum
{
  KEEP,
  AS_NUMBER,
  AS_SYMBOL,
  TIE = AS_SYMBOL + TD_ONNX_SYMBOLS,
  COST_TIE = 1,
  COST_FIRST = 2,                /* of the more likely of number and symbol */
  COST_LAST = 5,                 /* of the other */
  COST_INNER = 2 * COST_LAST + 1 /* an axis of an argument behind its first as a symbol */
};

/* How often the one that it is tied to goes into it. */
static int64_t
times_tied (const TdOnnxSizes *z, const Trial *trials, int i)
{
  return z->open[trials[i].open].v[0] / z->open[trials[trials[i].chosen - TIE].open].v[0];
}

static int64_t
value_as (const TdOnnxSizes *z, int bit, const Trial *trials, int n, int j)
{
  for (int i = 0; i < n; i++)
    if (bit == TD_ONNX_SYMBOLS + trials[i].open && trials[i].chosen != KEEP)
      {
        const int64_t was = z->open[trials[i].open].v[0];
        const int64_t *symbol
            = z->symbols[trials[i].chosen >= AS_SYMBOL && trials[i].chosen < TIE
                             ? trials[i].chosen - AS_SYMBOL
                             : 0]
                  .v;

        return trials[i].chosen == AS_NUMBER ? was
               : trials[i].chosen < TIE
                   ? was / symbol[0] * symbol[j]
                   : times_tied (z, trials, i)
                         * value_as (z, TD_ONNX_SYMBOLS + trials[trials[i].chosen - TIE].open,
                                     trials, n, j);
      }
  return td__onnx_size_values (z, bit)[j];
}

/* A size with what was chosen in place of open ones.  False: it is no sum or product. */
static bool
substitute (const TdOnnxSizes *z, TdOnnxSize *size, const Trial *trials, int n)
{
  for (int j = 1; j < TD_ONNX_SAMPLES && size->known; j++)
    {
      int64_t by = 1;

      for (int bit = 0; bit < 64; bit++)
        if (size->mask >> bit & 1)
          by *= value_as (z, bit, trials, n, j);
      size->v[j] = size->fixed + size->times * by;
    }
  return size->known;
}

/* Is the operation possible with what was chosen?  at_one: where all symbols are 1 that were
 * not. */
static bool
is_accepted (TdOnnxSizes *z, const TdStep *step, TdOnnxSize (*in)[TD_MAX_DIMS],
             const Trial *trials, int n, bool at_one, TdShape *out)
{
  TdOnnxSize (*with)[TD_MAX_DIMS] = td__xmalloc ((step->n_in + 1) * sizeof *with);
  TdOnnxSymbol kept[TD_ONNX_SYMBOLS];
  bool fits = true;

  memcpy (kept, z->symbols, sizeof kept);
  memcpy (with, in, step->n_in * sizeof *with);
  for (int i = 0; i < z->n_symbols && at_one; i++)
    if (z->symbols[i].v[0] > 1)
      z->symbols[i].v[1] = z->symbols[i].v[2] = 1;
  for (uint32_t i = 0; i < step->n_in && fits; i++)
    for (int d = 0; d < z->s->nodes[td__step_in (z->s, step, i)].shape.ndim; d++)
      if (with[i][d].mask >> TD_ONNX_SYMBOLS != 0 || (at_one && with[i][d].mask != 0))
        fits = fits && substitute (z, &with[i][d], trials, n);
  fits = fits && td__onnx_size_infers (z, step, with, out);
  memcpy (z->symbols, kept, sizeof kept);
  free (with);
  return fits;
}

static Trial
trial_of (const TdOnnxSizes *z, int k)
{
  const bool is_argument = td__onnx_size_is_argument (z->s, z->open[k].node);

  return (Trial){ .open = k,
                  .is_inner = z->open[k].axis > 0 && is_argument,
                  .numbers_first = z->numbers_first || z->open[k].axis > 0 || !is_argument };
}

/* May trial i be a multiple of trial k, which may not be one of i then? */
static bool
may_tie (const TdOnnxSizes *z, const Trial *trials, int i, int k)
{
  const int64_t of = z->open[trials[i].open].v[0], by = z->open[trials[k].open].v[0];

  return of == by ? k < i : by > 0 && by < of && of % by == 0;
}

/* All that may become of one. */
static void
list_choices (const TdOnnxSizes *z, Trial *trials, int n, int i)
{
  Trial *t = &trials[i];

  t->n = 0;
  t->choices[t->n++] = KEEP;
  t->choices[t->n++] = AS_NUMBER;
  for (int k = 0; k < n; k++)
    if (may_tie (z, trials, i, k))
      t->choices[t->n++] = TIE + k;
  for (int k = 0; k < z->n_symbols; k++)
    if (td__onnx_size_could_follow (z, z->open[t->open].v[0], k))
      t->choices[t->n++] = AS_SYMBOL + k;
}

/* Of all; the last are left out of *n where there are too many ways.  Returns how many. */
static int
list_ways (const TdOnnxSizes *z, Trial *trials, int *n)
{
  int64_t n_ways;

  do
    {
      n_ways = 1;
      for (int i = 0; i < *n; i++)
        {
          list_choices (z, trials, *n, i);
          n_ways *= trials[i].n;
        }
    }
  while (n_ways > MOST_WAYS && --*n > 0);
  return (int)n_ways;
}

/* What it is by the choices of all: number, symbol, or another trial that is kept as it is. */
static int
reading_of (const Trial *trials, int i)
{
  while (trials[i].chosen >= TIE)
    i = trials[i].chosen - TIE;
  return trials[i].chosen == KEEP ? TIE + i : trials[i].chosen;
}

/* Returns what it costs; what is dear is less likely to be meant. */
static int
choose (Trial *t, int at)
{
  t->chosen = t->choices[at];
  return t->chosen == KEEP        ? 0
         : t->chosen >= TIE       ? COST_TIE
         : t->chosen == AS_NUMBER ? t->numbers_first ? COST_FIRST : COST_LAST
         : t->is_inner            ? COST_INNER
         : t->numbers_first       ? COST_LAST
                                  : COST_FIRST;
}

/* The choices of one of all ways; returns what they cost. */
static int
choose_all (Trial *trials, int n, int way)
{
  int costs = 0;

  for (int i = 0; i < n; way /= trials[i++].n)
    costs += choose (&trials[i], way % trials[i].n);
  return costs;
}

/* Which of the best choices another way makes otherwise, of those that are not doubted yet. */
static bool
differ (Trial *trials, int n, bool *others)
{
  bool any = false;

  for (int i = 0; i < n; i++)
    {
      const Trial *t = &trials[i];

      others[i] = t->best != KEEP && !t->doubted
                  && reading_of (trials, i)
                         != (t->best >= TIE ? reading_of (trials, t->best - TIE) : t->best);
      any = any || others[i];
    }
  return any;
}

/* Which of the best choices are not the only ones that are possible. */
static void
doubt (TdOnnxSizes *z, const TdStep *step, TdOnnxSize (*in)[TD_MAX_DIMS], Trial *trials, int n,
       int n_ways)
{
  TdShape *out = td__xcalloc (2 * (size_t)step->n_out + 1, sizeof *out);
  bool others[MOST_TRIED];

  for (int i = 0; i < n; i++)
    {
      trials[i].best = trials[i].chosen;
      trials[i].doubted = n_ways > MOST_DOUBTED;
    }
  for (int way = 0; way < n_ways && n_ways <= MOST_DOUBTED; way++)
    {
      choose_all (trials, n, way);
      if (!differ (trials, n, others)
          || !(is_accepted (z, step, in, trials, n, false, out)
               || is_accepted (z, step, in, trials, n, true, out)))
        continue;
      for (int i = 0; i < n; i++)
        trials[i].doubted = trials[i].doubted || others[i];
    }
  for (int i = 0; i < n; i++)
    trials[i].chosen = trials[i].best;
  free (out);
}

static void
take_choice (TdOnnxSizes *z, const TdStep *step, const Trial *trials, int i)
{
  const Trial *t = &trials[i];
  TdOnnxDecision d
      = { .node = z->open[t->open].node, .axis = z->open[t->open].axis, .doubted = t->doubted };

  if (t->chosen == KEEP)
    return;
  if (t->chosen == AS_NUMBER)
    {
      td__onnx_size_decide_number (z, t->open, step, td__onnx_one_size, t->doubted);
      return;
    }
  if (t->chosen >= TIE)
    {
      d.symbol = TD_ONNX_TIED;
      d.tied = z->open[trials[t->chosen - TIE].open].node;
      d.tied_axis = z->open[trials[t->chosen - TIE].open].axis;
      d.times = times_tied (z, trials, i);
    }
  else
    d.symbol = t->chosen - AS_SYMBOL;
  td__onnx_size_decide (z, d);
}

/* Decide as few open sizes as the operation needs.  False: nothing helps. */
static bool
resolve (TdOnnxSizes *z, const TdStep *step, TdOnnxSize (*in)[TD_MAX_DIMS], TdShape *out)
{
  const uint64_t mask = td__onnx_size_mask (z, step, in);
  Trial trials[MOST_TRIED] = { 0 };
  int n = 0, n_ways;

  for (int k = 0; k < z->n_open && n < MOST_TRIED; k++)
    if (mask >> (TD_ONNX_SYMBOLS + k) & 1)
      trials[n++] = trial_of (z, k);
  n_ways = list_ways (z, trials, &n);
  for (int cost = 1; cost <= n * COST_INNER; cost++)
    for (int way = 1; way < n_ways; way++)
      {
        if (choose_all (trials, n, way) != cost
            || !is_accepted (z, step, in, trials, n, false, out))
          continue;
        doubt (z, step, in, trials, n, n_ways);
        for (int i = 0; i < n; i++)
          take_choice (z, step, trials, i);
        return true;
      }
  return false;
}

/* Does an operation accept its sizes with the symbols of `numbers` as they were, and each open
 * size as the symbol that is as large, or a number? */
static bool
accepts_numbers (TdOnnxSizes *z, const TdStep *step, TdOnnxSize (*in)[TD_MAX_DIMS],
                 unsigned numbers, Trial *trials, int n, TdShape *out)
{
  TdOnnxSize (*with)[TD_MAX_DIMS] = td__xmalloc ((step->n_in + 1) * sizeof *with);
  TdOnnxSymbol kept[TD_ONNX_SYMBOLS];
  bool fits = true;

  memcpy (kept, z->symbols, sizeof kept);
  memcpy (with, in, step->n_in * sizeof *with);
  for (int i = 0; i < z->n_symbols; i++)
    if (numbers >> i & 1)
      z->symbols[i].v[1] = z->symbols[i].v[2] = z->symbols[i].v[0];
  for (int t = 0; t < n; t++)
    {
      trials[t].chosen = AS_NUMBER;
      trials[t].doubted = true;
      for (int i = 0; i < z->n_symbols && trials[t].chosen == AS_NUMBER && !trials[t].is_inner;
           i++)
        if ((numbers >> i & 1) == 0 && z->symbols[i].why[0] == '\0'
            && z->symbols[i].v[0] == z->open[trials[t].open].v[0])
          trials[t].chosen = AS_SYMBOL + i;
    }
  for (uint32_t k = 0; k < step->n_in && fits; k++)
    for (int d = 0; d < z->s->nodes[td__step_in (z->s, step, k)].shape.ndim && fits; d++)
      if (with[k][d].mask != 0)
        fits = substitute (z, &with[k][d], trials, n);
  fits = fits && td__onnx_size_infers (z, step, with, out);
  memcpy (z->symbols, kept, sizeof kept);
  free (with);
  return fits;
}

/* Where nothing helps, or there are too many open sizes to try them all: as few symbols as are
 * needed stay what they were.  False: all have to. */
static bool
resolve_alike (TdOnnxSizes *z, const TdStep *step, TdOnnxSize (*in)[TD_MAX_DIMS], TdShape *out)
{
  const uint64_t mask = td__onnx_size_mask (z, step, in);
  Trial trials[sizeof z->open / sizeof *z->open] = { 0 };
  int n = 0;

  for (int k = 0; k < z->n_open; k++)
    if (mask >> (TD_ONNX_SYMBOLS + k) & 1)
      trials[n++] = trial_of (z, k);
  for (int many = 0; many <= z->n_symbols; many++)
    for (unsigned numbers = 0; numbers < 1u << z->n_symbols; numbers++)
      {
        if (__builtin_popcount (numbers) != many || (n == 0 && (numbers & mask) == 0)
            || !accepts_numbers (z, step, in, numbers, trials, n, out))
          continue;
        for (int t = 0; t < n; t++)
          take_choice (z, step, trials, t);
        td__onnx_sizes_fix (z, numbers & mask, step, td__onnx_one_size);
        return true;
      }
  return false;
}

bool
td__onnx_size_resolve (TdOnnxSizes *z, const TdStep *step, TdOnnxSize (*in)[TD_MAX_DIMS],
                       TdShape *out)
{
  return resolve (z, step, in, out) || resolve_alike (z, step, in, out);
}
