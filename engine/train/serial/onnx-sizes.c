/* Which sizes follow the inputs' sizes: infer is asked again, with others.
 *
 * SPDX-License-Identifier: MIT */
#include "onnx-sizes.h"

#include "../links/object.h"
#include "export.h"
#include "onnx-size-numbers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  UNSET = 1 << 7 /* the dtype of an output of which infer has said nothing */
};
static const char cuts[] = "cuts it into a number of parts";

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

bool
td__onnx_size_is_argument (const TdSchedule *s, uint32_t node)
{
  for (uint32_t i = 0; i < s->n_arguments; i++)
    if (s->externals[i].node == node)
      return true;
  return false;
}

const TdOnnxDecision *
td__onnx_size_decision (const TdOnnxSizes *z, uint32_t node, int axis)
{
  for (uint32_t i = 0; i < z->n_decided; i++)
    if (z->decided[i].node == node && z->decided[i].axis == axis)
      return &z->decided[i];
  return NULL;
}

void
td__onnx_size_decide (TdOnnxSizes *z, TdOnnxDecision d)
{
  if (d.symbol >= 0)
    d.times = z->s->nodes[d.node].shape.dim[d.axis] / z->symbols[d.symbol].v[0];
  z->decided = td__xrealloc (z->decided, (z->n_decided + 1) * sizeof *z->decided);
  z->decided[z->n_decided++] = d;
}

bool
td__onnx_size_could_follow (const TdOnnxSizes *z, int64_t n, int symbol)
{
  const int64_t was = z->symbols[symbol].v[0];

  return z->symbols[symbol].why[0] == '\0' && (was > 1 ? n > 0 && n % was == 0 : n == was);
}

void
td__onnx_size_decide_number (TdOnnxSizes *z, int k, const TdStep *step, const char *what,
                             bool doubted)
{
  const uint32_t node = z->open[k].node;
  const int axis = z->open[k].axis;
  struct TdOnnxStay *stay;

  td__onnx_size_decide (
      z, (TdOnnxDecision){
             .node = node, .axis = axis, .symbol = TD_ONNX_NUMBER, .doubted = doubted });
  if (!td__onnx_size_is_argument (z->s, node))
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

/* So many times a size. */
static TdOnnxSize
multiple (TdOnnxSize size, int64_t times)
{
  for (int j = 0; j < TD_ONNX_SAMPLES; j++)
    size.v[j] *= times;
  size.fixed *= times;
  size.times *= times;
  if (times != 1)
    memset (size.outer, 0, sizeof size.outer);
  return size;
}

/* A size that the code wrote: what was decided of it, open, or a number. */
static TdOnnxSize
open_size (TdOnnxSizes *z, uint32_t node, int axis)
{
  const int64_t n = z->s->nodes[node].shape.dim[axis];
  const TdOnnxDecision *d = td__onnx_size_decision (z, node, axis);
  const int k = z->n_open;
  bool could = false;

  if (d != NULL && d->symbol == TD_ONNX_TIED)
    return multiple (open_size (z, d->tied, d->tied_axis), d->times);
  if (d != NULL)
    return d->symbol >= 0 && z->symbols[d->symbol].why[0] == '\0'
               ? size_of_symbol (z, d->symbol, d->times)
               : td__onnx_size (n);
  for (int i = 0; i < z->n_open; i++)
    if (z->open[i].node == node && z->open[i].axis == axis)
      return size_of_open (z, i);
  for (int i = 0; i < z->n_symbols; i++)
    could = could || td__onnx_size_could_follow (z, n, i);
  if (could && k == (int)(sizeof z->open / sizeof *z->open))
    td__onnx_size_decide (
        z, (TdOnnxDecision){
               .node = node, .axis = axis, .symbol = TD_ONNX_NUMBER, .doubted = true });
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

const int64_t *
td__onnx_size_values (const TdOnnxSizes *z, int bit)
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
          by[j] *= td__onnx_size_values (z, bit)[j];
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

bool
td__onnx_size_infers (const TdOnnxSizes *z, const TdStep *step, TdOnnxSize (*in)[TD_MAX_DIMS],
                      TdShape *out)
{
  return infers (z, step, 1, in, out) && infers (z, step, 2, in, out + step->n_out);
}

uint64_t
td__onnx_size_mask (const TdOnnxSizes *z, const TdStep *step, TdOnnxSize (*in)[TD_MAX_DIMS])
{
  uint64_t mask = 0;

  for (uint32_t i = 0; i < step->n_in; i++)
    for (int d = 0; d < z->s->nodes[td__step_in (z->s, step, i)].shape.ndim; d++)
      mask |= in[i][d].mask;
  return mask;
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
      td__onnx_size_decide_number (z, k, step, what, true);
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
          td__onnx_size_decide (z, (TdOnnxDecision){ .node = z->open[k].node,
                                                     .axis = z->open[k].axis,
                                                     .symbol = i });
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
  mask = td__onnx_size_mask (z, step, in);
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
  else if (td__onnx_size_infers (z, step, in, out))
    take_results (z, step, in, mask, out);
  else if (td__onnx_size_resolve (z, step, in, out)
           || close_open (z, mask, step, td__onnx_one_size))
    again = true;
  else
    what = td__onnx_one_size;
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
      const bool argument = td__onnx_size_is_argument (z->s, node);
      const bool first = argument && axis == 0
                         && td__onnx_size_could_follow (z, z->open[k].v[0], 0)
                         && z->open[k].v[0] == z->symbols[0].v[0];

      for (int i = 0; i < z->n_symbols && !argument; i++)
        if (z->symbols[i].why[0] == '\0' && z->symbols[i].v[0] == z->open[k].v[0])
          td__onnx_sizes_fix (z, (uint64_t)1 << i, NULL,
                              "an array that the code filled has this size, by the batch or by "
                              "chance: run it with another");
      td__onnx_size_decide (z, (TdOnnxDecision){ .node = node,
                                                 .axis = axis,
                                                 .symbol = first ? 0 : TD_ONNX_NUMBER,
                                                 .doubted = true });
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
      else if (step->kind == TD_STEP_FILL && td__onnx_number_goes_on (z, step))
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
