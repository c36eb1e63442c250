/* Which sizes follow the inputs' sizes: infer is asked again, with others.
 *
 * SPDX-License-Identifier: MIT */
#include "onnx-sizes.h"

#include "../links/object.h"
#include "export.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  UNSET = 1 << 7, /* the dtype of an output of which infer has said nothing */
  MOST_TRIED = 4  /* open sizes of one operation that are decided together */
};
static const char cuts[] = "cuts it into a number of parts";
static const char one_size[] = "is possible with the size that there was alone";

TdOnnxSize
td__onnx_size (int64_t n)
{
  return (TdOnnxSize){ .v = { n, n, n }, .fixed = n, .known = true };
}

bool
td__onnx_size_same (const TdOnnxSize *a, const TdOnnxSize *b)
{
  return memcmp (a->v, b->v, sizeof a->v) == 0;
}

static TdOnnxSize
size_of_symbol (const TdOnnxSizes *z, int symbol, int64_t times)
{
  TdOnnxSize size = { .mask = (uint64_t)1 << symbol, .times = times, .known = true };

  for (int j = 0; j < TD_ONNX_SAMPLES; j++)
    size.v[j] = times * z->symbols[symbol].v[j];
  size.outer[symbol] = times == 1;
  return size;
}

const char *
td__onnx_size_text (const TdOnnxSizes *z, const TdOnnxSize *s, char *text, size_t size)
{
  size_t n = 0;

  text[0] = '\0';
  if (!s->known || s->mask == 0 || s->mask >> TD_ONNX_SYMBOLS != 0)
    return text;
  if (s->times != 1)
    n += (size_t)snprintf (text, size, "%lld*", (long long)s->times);
  for (int i = 0, any = 0; i < z->n_symbols && n < size; i++)
    if (s->mask >> i & 1)
      n += (size_t)snprintf (text + n, size - n, "%s%s", any++ > 0 ? "*" : "",
                             z->symbols[i].name);
  if (s->fixed != 0 && n < size)
    snprintf (text + n, size - n, "%+lld", (long long)s->fixed);
  return text;
}

/* "get_item at net.c:12 takes some of its rows by number"; of what a link is made of, whose
 * line is the link's call, also in which: "embed_id at net.c:12 in net/bi ...".  step NULL:
 * what. */
static void
say_why (char *why, size_t size, const TdStep *step, const char *what)
{
  TdExportLacks line = { 0, NULL, 0 };
  const char *path = step != NULL && step->path != NULL ? step->path->text : "";

  if (step != NULL)
    td__export_lack (&line, step, NULL);
  snprintf (why, size, "%.160s%s%.60s%s%.100s", step != NULL ? line.lines[0] : "",
            path[0] != '\0' ? " in " : "", path, step != NULL ? " " : "", what);
  td__export_lacks_free (&line);
}

void
td__onnx_sizes_fix (TdOnnxSizes *z, uint64_t mask, const TdStep *step, const char *what)
{
  char why[sizeof z->symbols->why];

  say_why (why, sizeof why, step, what);
  for (int i = 0; i < z->n_symbols; i++)
    if ((mask >> i & 1) != 0 && z->symbols[i].why[0] == '\0')
      memcpy (z->symbols[i].why, why, sizeof why);
}

/* --- open sizes --- */

static bool
is_argument (const TdSchedule *s, uint32_t node)
{
  for (uint32_t i = 0; i < s->n_arguments; i++)
    if (s->externals[i].node == node)
      return true;
  return false;
}

static const TdOnnxDecision *
decision_of (const TdOnnxSizes *z, uint32_t node, int axis)
{
  for (uint32_t i = 0; i < z->n_decided; i++)
    if (z->decided[i].node == node && z->decided[i].axis == axis)
      return &z->decided[i];
  return NULL;
}

static void
decide (TdOnnxSizes *z, TdOnnxDecision d)
{
  if (d.symbol >= 0)
    d.times = z->s->nodes[d.node].shape.dim[d.axis] / z->symbols[d.symbol].v[0];
  z->decided = td__xrealloc (z->decided, (z->n_decided + 1) * sizeof *z->decided);
  z->decided[z->n_decided++] = d;
}

static bool
could_follow (const TdOnnxSizes *z, int64_t n, int symbol)
{
  const int64_t was = z->symbols[symbol].v[0];

  return z->symbols[symbol].why[0] == '\0' && (was > 1 ? n > 0 && n % was == 0 : n == was);
}

/* An open size is a number, by an operation; of an argument it is kept why. */
static void
decide_number (TdOnnxSizes *z, int k, const TdStep *step, const char *what)
{
  const uint32_t node = z->open[k].node;
  const int axis = z->open[k].axis;
  struct TdOnnxStay *stay;

  decide (z, (TdOnnxDecision){ .node = node, .axis = axis, .symbol = TD_ONNX_NUMBER });
  if (!is_argument (z->s, node))
    return;
  z->stays = td__xrealloc (z->stays, (z->n_stays + 1) * sizeof *z->stays);
  stay = &z->stays[z->n_stays++];
  *stay = (struct TdOnnxStay){ .node = node, .axis = axis };
  say_why (stay->why, sizeof stay->why, step, what);
}

static TdOnnxSize
size_of_open (const TdOnnxSizes *z, int k)
{
  TdOnnxSize size = { .mask = (uint64_t)1 << (TD_ONNX_SYMBOLS + k), .times = 1, .known = true };

  memcpy (size.v, z->open[k].v, sizeof size.v);
  return size;
}

/* A size that the code wrote: what was decided of it, open, or a number. */
static TdOnnxSize
open_size (TdOnnxSizes *z, uint32_t node, int axis)
{
  const int64_t n = z->s->nodes[node].shape.dim[axis];
  const TdOnnxDecision *d = decision_of (z, node, axis);
  const int k = z->n_open;
  bool could = false;

  if (d != NULL && d->symbol == TD_ONNX_TIED)
    return open_size (z, d->tied, d->tied_axis);
  if (d != NULL)
    return d->symbol >= 0 && z->symbols[d->symbol].why[0] == '\0'
               ? size_of_symbol (z, d->symbol, d->times)
               : td__onnx_size (n);
  for (int i = 0; i < z->n_open; i++)
    if (z->open[i].node == node && z->open[i].axis == axis)
      return size_of_open (z, i);
  for (int i = 0; i < z->n_symbols; i++)
    could = could || could_follow (z, n, i);
  if (!could || k == (int)(sizeof z->open / sizeof *z->open))
    return td__onnx_size (n);
  z->open[k].node = node;
  z->open[k].axis = axis;
  z->open[k].v[0] = n;
  for (int j = 1; j < TD_ONNX_SAMPLES; j++)
    z->open[k].v[j] = td__onnx_prime (2 * (TD_ONNX_SYMBOLS + k) + j - 1);
  z->n_open++;
  return size_of_open (z, k);
}

/* What one bit of a mask stands for. */
static const int64_t *
values_of (const TdOnnxSizes *z, int bit)
{
  return bit < TD_ONNX_SYMBOLS ? z->symbols[bit].v : z->open[bit - TD_ONNX_SYMBOLS].v;
}

/* --- one operation --- */

/* What the values of a result say: a number, or a number and a multiple of some of the symbols
 * in mask. */
static TdOnnxSize
fitted (const TdOnnxSizes *z, const int64_t *v, uint64_t mask)
{
  TdOnnxSize size = { .v = { v[0], v[1], v[2] } };
  uint64_t tried[64 + 64 * 63 / 2 + 1];
  int n = 0;

  if (v[0] == v[1] && v[0] == v[2])
    return td__onnx_size (v[0]);
  for (int i = 0; i < 64; i++)
    if (mask >> i & 1)
      tried[n++] = (uint64_t)1 << i;
  for (int i = 0, n_bits = n; i < n_bits; i++)
    for (int k = 0; k < i; k++)
      tried[n++] = tried[i] | tried[k];
  tried[n++] = mask;
  for (int i = 0; i < n; i++)
    {
      int64_t by[TD_ONNX_SAMPLES] = { 1, 1, 1 };

      for (int bit = 0; bit < 64; bit++)
        for (int j = 0; j < TD_ONNX_SAMPLES && (tried[i] >> bit & 1) != 0; j++)
          by[j] *= values_of (z, bit)[j];
      if (by[2] == by[1] || (v[2] - v[1]) % (by[2] - by[1]) != 0)
        continue;
      size.times = (v[2] - v[1]) / (by[2] - by[1]);
      size.fixed = v[1] - size.times * by[1];
      size.known = v[0] == size.fixed + size.times * by[0];
      size.mask = tried[i];
      if (size.known)
        return size;
    }
  size.mask = mask;
  return size;
}

/* Ask infer, with the sizes of sample j.  False: it does not accept them. */
static bool
infers (const TdOnnxSizes *z, const TdStep *step, int j, TdOnnxSize (*in)[TD_MAX_DIMS],
        TdShape *out)
{
  TdEngine *e = &td__engine;
  const TdError error = e->error;
  const bool had = e->has_error, asked = e->error_asked;
  TdObserver *observer = e->observer;
  TdShape *shapes = td__xcalloc (step->n_in + 1, sizeof *shapes);
  TdTensor *tensors = td__xcalloc (step->n_in + step->n_out + 1, sizeof *tensors);
  TdOpCall call = { .cls = step->cls,
                    .attrs = step->attrs,
                    .device = z->s->device,
                    .n_in = (int)step->n_in,
                    .n_out = (int)step->n_out,
                    .in = tensors,
                    .out = tensors + step->n_in };
  bool fits = td__onnx_size_accepts (step, j, in);

  for (uint32_t i = 0; i < step->n_in; i++)
    {
      const TdNodeInfo *n = &z->s->nodes[td__step_in (z->s, step, i)];

      shapes[i].ndim = n->shape.ndim;
      for (int d = 0; d < n->shape.ndim; d++)
        shapes[i].dim[d] = in[i][d].v[j];
      tensors[i] = (TdTensor){ .shape = &shapes[i],
                               .size = td__size (&shapes[i]),
                               .dtype = (TdDtype)n->dtype };
    }
  for (uint32_t k = 0; k < step->n_out; k++)
    call.out[k] = (TdTensor){ .shape = &out[k], .dtype = (TdDtype)UNSET };
  e->observer = NULL;
  fits = fits && step->cls->infer (&call) == TD_OK;
  for (uint32_t k = 0; k < step->n_out; k++)
    fits = fits && (unsigned)call.out[k].dtype < UNSET
           && out[k].ndim == z->s->nodes[td__step_out (z->s, step, k)].shape.ndim;
  e->observer = observer;
  e->error = error;
  e->has_error = had;
  e->error_asked = asked;
  free (shapes);
  free (tensors);
  return fits;
}

/* For both of the other samples; out: results, n_out of the one and then of the other. */
static bool
infers_both (const TdOnnxSizes *z, const TdStep *step, TdOnnxSize (*in)[TD_MAX_DIMS],
             TdShape *out)
{
  return infers (z, step, 1, in, out) && infers (z, step, 2, in, out + step->n_out);
}

static uint64_t
mask_of (const TdOnnxSizes *z, const TdStep *step, TdOnnxSize (*in)[TD_MAX_DIMS])
{
  uint64_t mask = 0;

  for (uint32_t i = 0; i < step->n_in; i++)
    for (int d = 0; d < z->s->nodes[td__step_in (z->s, step, i)].shape.ndim; d++)
      mask |= in[i][d].mask;
  return mask;
}

/* What an open size may become, beside what it is: one that came before, a symbol, a number. */
typedef struct
{
  int open;
  int choices[2 + MOST_TRIED + TD_ONNX_SYMBOLS]; /* KEEP, TIE + the place of another, ... */
  int n, chosen;
  bool is_inner; /* of an argument, and not its first axis */
} Trial;
enum
{
  KEEP,
  AS_NUMBER,
  AS_SYMBOL,
  TIE = AS_SYMBOL + TD_ONNX_SYMBOLS,
  COST_TIE = 1,
  COST_FIRST = 2, /* of the more likely of number and symbol */
  COST_LAST = 5,
  COST_INNER = 2 * COST_LAST + 1 /* an axis of an argument behind its first as a symbol */
};

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
                   : value_as (z, TD_ONNX_SYMBOLS + trials[trials[i].chosen - TIE].open, trials,
                               n, j);
      }
  return values_of (z, bit)[j];
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

static bool
is_accepted (const TdOnnxSizes *z, const TdStep *step, TdOnnxSize (*in)[TD_MAX_DIMS],
             const Trial *trials, int n, TdShape *out)
{
  TdOnnxSize (*with)[TD_MAX_DIMS] = td__xmalloc ((step->n_in + 1) * sizeof *with);
  bool fits = true;

  memcpy (with, in, step->n_in * sizeof *with);
  for (uint32_t i = 0; i < step->n_in && fits; i++)
    for (int d = 0; d < z->s->nodes[td__step_in (z->s, step, i)].shape.ndim; d++)
      if (with[i][d].mask >> TD_ONNX_SYMBOLS != 0)
        fits = fits && substitute (z, &with[i][d], trials, n);
  fits = fits && infers_both (z, step, with, out);
  free (with);
  return fits;
}

static Trial
trial_of (const TdOnnxSizes *z, int k)
{
  return (Trial){ .open = k,
                  .is_inner = z->open[k].axis > 0 && is_argument (z->s, z->open[k].node) };
}

/* In which order it is tried; what comes late is less likely to be meant. */
static void
list_choices (const TdOnnxSizes *z, Trial *trials, int i)
{
  Trial *t = &trials[i];
  const int64_t was = z->open[t->open].v[0];
  const bool numbers_first = z->numbers_first || t->is_inner;

  t->choices[t->n++] = KEEP;
  for (int k = 0; k < i; k++)
    if (z->open[trials[k].open].v[0] == was)
      t->choices[t->n++] = TIE + k;
  if (numbers_first)
    t->choices[t->n++] = AS_NUMBER;
  for (int k = 0; k < z->n_symbols; k++)
    if (could_follow (z, was, k))
      t->choices[t->n++] = AS_SYMBOL + k;
  if (!numbers_first)
    t->choices[t->n++] = AS_NUMBER;
}

/* Returns what it costs. */
static int
choose (Trial *t, int at)
{
  t->chosen = t->choices[at];
  return t->chosen == KEEP                       ? 0
         : t->chosen >= TIE                      ? COST_TIE
         : t->chosen >= AS_SYMBOL && t->is_inner ? COST_INNER
         : at == t->n - 1                        ? COST_LAST
                                                 : COST_FIRST;
}

static void
take_choice (TdOnnxSizes *z, const TdStep *step, const Trial *trials, int i)
{
  const Trial *t = &trials[i];
  TdOnnxDecision d = { .node = z->open[t->open].node, .axis = z->open[t->open].axis };

  if (t->chosen == KEEP)
    return;
  if (t->chosen == AS_NUMBER)
    {
      decide_number (z, t->open, step, one_size);
      return;
    }
  if (t->chosen >= TIE)
    {
      d.symbol = TD_ONNX_TIED;
      d.tied = z->open[trials[t->chosen - TIE].open].node;
      d.tied_axis = z->open[trials[t->chosen - TIE].open].axis;
    }
  else
    d.symbol = t->chosen - AS_SYMBOL;
  decide (z, d);
}

/* Decide as few open sizes as the operation needs.  False: nothing helps. */
static bool
resolve (TdOnnxSizes *z, const TdStep *step, TdOnnxSize (*in)[TD_MAX_DIMS], TdShape *out)
{
  const uint64_t mask = mask_of (z, step, in);
  Trial trials[MOST_TRIED] = { 0 };
  int n = 0, n_ways = 1;

  for (int k = 0; k < z->n_open && n < MOST_TRIED; k++)
    if (mask >> (TD_ONNX_SYMBOLS + k) & 1)
      {
        trials[n] = trial_of (z, k);
        list_choices (z, trials, n);
        n_ways *= trials[n++].n;
      }
  for (int cost = 1; cost <= n * COST_INNER; cost++)
    for (int way = 1; way < n_ways; way++)
      {
        int costs = 0;

        for (int i = 0, rest = way; i < n; rest /= trials[i++].n)
          costs += choose (&trials[i], rest % trials[i].n);
        if (costs != cost || !is_accepted (z, step, in, trials, n, out))
          continue;
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
  fits = fits && infers_both (z, step, with, out);
  memcpy (z->symbols, kept, sizeof kept);
  free (with);
  return fits;
}

/* Where nothing helps, or there are too many open sizes to try them all: as few symbols as are
 * needed stay what they were.  False: all have to. */
static bool
resolve_alike (TdOnnxSizes *z, const TdStep *step, TdOnnxSize (*in)[TD_MAX_DIMS], TdShape *out)
{
  const uint64_t mask = mask_of (z, step, in);
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
        td__onnx_sizes_fix (z, numbers & mask, step, one_size);
        return true;
      }
  return false;
}

static void
as_it_was (TdOnnxSizes *z, uint32_t node)
{
  const TdShape *shape = &z->s->nodes[node].shape;

  for (int d = 0; d < shape->ndim; d++)
    z->of[node][d] = td__onnx_size (shape->dim[d]);
}

/* Sizes of a result by their values; an axis that is an operand's has its parts. */
static void
take_results (TdOnnxSizes *z, const TdStep *step, TdOnnxSize (*in)[TD_MAX_DIMS], uint64_t mask,
              const TdShape *out)
{
  for (uint32_t k = 0; k < step->n_out; k++)
    {
      const uint32_t node = td__step_out (z->s, step, k);
      const TdShape *was = &z->s->nodes[node].shape;

      for (int d = 0; d < was->ndim; d++)
        {
          const int64_t v[] = { was->dim[d], out[k].dim[d], out[step->n_out + k].dim[d] };
          TdOnnxSize *to = &z->of[node][d];

          *to = fitted (z, v, mask);
          if (to->known && to->fixed == 0 && to->times == 1)
            for (int i = 0; i < z->n_symbols; i++)
              to->outer[i] = to->mask == (uint64_t)1 << i;
          for (uint32_t i = 0; i < step->n_in && to->mask != 0; i++)
            for (int c = 0; c < z->s->nodes[td__step_in (z->s, step, i)].shape.ndim; c++)
              if (td__onnx_size_same (to, &in[i][c]))
                *to = in[i][c];
        }
    }
}

/* The sizes of broadcast_to and sum_to: an operand's, or written by the code. */
static void
sizes_to (TdOnnxSizes *z, const TdStep *step)
{
  const uint32_t from = td__step_in (z->s, step, 0), node = td__step_out (z->s, step, 0);
  const TdShape *x = &z->s->nodes[from].shape, *y = &z->s->nodes[node].shape;

  for (int d = 0; d < y->ndim; d++)
    {
      const int c = d + x->ndim - y->ndim;
      const bool carried
          = c >= 0 && x->dim[c] == y->dim[d] && (z->of[from][c].mask != 0 || y->dim[d] != 1);

      z->of[node][d] = carried                                   ? z->of[from][c]
                       : strcmp (step->cls->name, "sum_to") == 0 ? td__onnx_size (y->dim[d])
                                                                 : open_size (z, node, d);
    }
}

/* --- all of them --- */

static bool
is_one_number (TdOnnxSizes *z, uint32_t node)
{
  return z->is_uniform != NULL && z->is_uniform[node];
}

static void
open_all (TdOnnxSizes *z, uint32_t node)
{
  for (int d = 0; d < z->s->nodes[node].shape.ndim; d++)
    z->of[node][d] = open_size (z, node, d);
}

/* What is open, and not what it seemed to be, makes no difference once it is a number.  False:
 * nothing of the mask is open. */
static bool
close_open (TdOnnxSizes *z, uint64_t mask, const TdStep *step, const char *what)
{
  for (int k = 0; k < z->n_open; k++)
    if (mask >> (TD_ONNX_SYMBOLS + k) & 1)
      decide_number (z, k, step, what);
  return mask >> TD_ONNX_SYMBOLS != 0;
}

/* The inputs of all steps of a recurrent layer are as many for each: what is open of them is as
 * large as what follows a symbol.  False: nothing was open. */
static bool
close_steps (TdOnnxSizes *z, const TdStep *step, uint64_t mask)
{
  const int64_t rows = z->s->nodes[td__step_out (z->s, step, 0)].shape.dim[0];

  for (int k = 0; k < z->n_open; k++)
    for (int i = 0; i < z->n_symbols && (mask >> (TD_ONNX_SYMBOLS + k) & 1) != 0; i++)
      if ((mask >> i & 1) != 0 && z->symbols[i].v[0] == rows && z->open[k].v[0] == rows)
        {
          decide (z, (TdOnnxDecision){
                         .node = z->open[k].node, .axis = z->open[k].axis, .symbol = i });
          return true;
        }
  return close_open (z, mask, step, cuts);
}

/* False: something was decided, and all is to be looked at again. */
static bool
operation (TdOnnxSizes *z, const TdStep *step, bool *ready)
{
  TdOnnxSize (*in)[TD_MAX_DIMS] = td__xcalloc (step->n_in + 1, sizeof *in);
  TdShape *out = td__xcalloc (2 * (size_t)step->n_out + 1, sizeof *out);
  uint64_t mask, refused = 0, depends = 0;
  const char *what = NULL;
  bool again = false;

  for (uint32_t i = 0; i < step->n_in; i++)
    {
      const uint32_t node = td__step_in (z->s, step, i);

      if (!ready[node] && is_one_number (z, node))
        open_all (z, node);
      ready[node] = true;
      memcpy (in[i], z->of[node], sizeof in[i]);
      depends |= z->depends[node];
    }
  mask = mask_of (z, step, in);
  depends |= mask & (((uint64_t)1 << TD_ONNX_SYMBOLS) - 1);
  for (uint32_t k = 0; k < step->n_out; k++)
    {
      z->depends[td__step_out (z->s, step, k)] = depends;
      ready[td__step_out (z->s, step, k)] = true;
      as_it_was (z, td__step_out (z->s, step, k));
    }
  if ((what = td__onnx_size_refuses (z, step, &refused)) != NULL)
    ;
  else if (strcmp (step->cls->name, "broadcast_to") == 0
           || strcmp (step->cls->name, "sum_to") == 0)
    sizes_to (z, step);
  else if (mask == 0)
    ;
  else if (td__onnx_size_is_cut (z, step))
    {
      if (!td__onnx_size_cut (z, step, &refused) && !(again = close_steps (z, step, refused)))
        what = cuts;
    }
  else if (td_op_class_find (step->cls->name) != step->cls)
    what = "is the program's own";
  else if (strcmp (step->cls->name, "reshape") == 0)
    what = td__onnx_size_reshape (z, step, &refused);
  else if (strcmp (step->cls->name, "get_item_grad") == 0
           || strcmp (step->cls->name, "get_item_arrays_grad") == 0)
    what = td__onnx_size_put_back (z, step, &refused)
               ? NULL
               : "has the size that there was as a number";
  else if (infers_both (z, step, in, out))
    take_results (z, step, in, mask, out);
  else if (resolve (z, step, in, out) || resolve_alike (z, step, in, out)
           || close_open (z, mask, step, one_size))
    again = true;
  else
    what = one_size;
  if (what != NULL)
    {
      refused = refused != 0 ? refused : mask;
      if (!close_open (z, refused, step, what)) /* as numbers they may be no obstacle */
        td__onnx_sizes_fix (z, refused, step, what);
      again = true;
    }
  free (in);
  free (out);
  return !again;
}

/* Inputs: axes that are symbols, and sizes that may be the same one. */
static void
arguments (TdOnnxSizes *z, bool *ready)
{
  for (uint32_t i = 0; i < z->s->n_arguments; i++)
    {
      const uint32_t node = z->s->externals[i].node;

      if (node >= z->s->n_nodes || ready[node])
        continue;
      ready[node] = true;
      if (z->opens_arguments)
        open_all (z, node);
      for (int k = 0; k < z->n_symbols; k++)
        if (z->symbols[k].node == node && z->symbols[k].why[0] == '\0')
          z->of[node][z->symbols[k].axis] = size_of_symbol (z, k, 1);
      for (uint32_t k = 0; k < z->n_more; k++)
        if (z->more[k].node == node && z->symbols[z->more[k].symbol].why[0] == '\0')
          z->of[node][z->more[k].axis] = size_of_symbol (z, z->more[k].symbol, 1);
      for (int d = 0; d < z->s->nodes[node].shape.ndim; d++)
        z->depends[node] |= z->of[node][d].mask;
    }
}

/* What the code is compatible with in both ways. */
static bool
end_open (TdOnnxSizes *z)
{
  for (int k = 0; k < z->n_open; k++)
    {
      const uint32_t node = z->open[k].node;
      const int axis = z->open[k].axis;
      const bool argument = is_argument (z->s, node);
      const bool first = argument && axis == 0 && could_follow (z, z->open[k].v[0], 0)
                         && z->open[k].v[0] == z->symbols[0].v[0];

      for (int i = 0; i < z->n_symbols && !argument; i++)
        if (z->symbols[i].why[0] == '\0' && z->symbols[i].v[0] == z->open[k].v[0])
          td__onnx_sizes_fix (z, (uint64_t)1 << i, NULL,
                              "an array that the code filled has this size, by the batch or by "
                              "chance: run it with another");
      decide (z, (TdOnnxDecision){
                     .node = node, .axis = axis, .symbol = first ? 0 : TD_ONNX_NUMBER });
    }
  return z->n_open == 0;
}

static bool
look (TdOnnxSizes *z)
{
  const TdSchedule *s = z->s;
  bool *ready = td__xcalloc (s->n_nodes + 1, sizeof *ready), done = true;

  z->n_open = 0;
  for (uint32_t n = 0; n < s->n_nodes; n++)
    {
      as_it_was (z, n);
      z->depends[n] = 0;
    }
  arguments (z, ready);
  for (uint32_t i = 0; i < s->forward.n && done; i++)
    {
      const TdStep *step = &s->forward.steps[i];

      if (step->kind == TD_STEP_OP)
        done = operation (z, step, ready);
      else if (step->kind == TD_STEP_FILL)
        open_all (z, td__step_out (s, step, 0));
      else if (step->kind == TD_STEP_COPY)
        memcpy (z->of[td__step_out (s, step, 0)], z->of[td__step_in (s, step, 0)],
                sizeof *z->of);
      if (step->kind == TD_STEP_FILL || step->kind == TD_STEP_COPY)
        ready[td__step_out (s, step, 0)] = true;
    }
  done = done && end_open (z);
  free (ready);
  return done;
}

void
td__onnx_sizes_find (TdOnnxSizes *z)
{
  z->n_decided = z->n_stays = 0;
  while (!look (z))
    ;
}
