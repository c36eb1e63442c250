/* What a file takes for granted, so that who runs it with another batch can know.
 *
 * A size of an array that the code makes from nothing - zeros, a range, what it broadcasts to -
 * may be the batch's, or a multiple of it, or be as large by chance; so may one of an array
 * that it brought.  Each that no operation decides is said.
 *
 * Where a symbol's size was 1, a number 1 of the code's own - in an array that it brought, in
 * an attribute - may be that size or a 1 whatever the size is, and no operation tells the two
 * apart: 1 broadcasts.  An array of one number may have another in each row.  The analysis
 * takes the likelier of both, and here are the places where it did.
 *
 * SPDX-License-Identifier: MIT */
#include "onnx-sizes.h"

#include "compute/core/operands.h"
#include "export.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct
{
  const TdOnnxSizes *z;
  uint64_t ones; /* symbols whose size was 1, and that are open */
  char names[2 * sizeof ((TdOnnxSymbol *)NULL)->name];
  TdExportLacks *lines;
} Assumed;

static const TdShape *
shape_of (const Assumed *a, uint32_t node)
{
  return &a->z->s->nodes[node].shape;
}

/* Of a node's sizes: 1, and no symbol's. */
static bool
is_number_one (const Assumed *a, uint32_t node, int axis)
{
  return shape_of (a, node)->dim[axis] == 1 && a->z->of[node][axis].mask == 0;
}

static bool
has_number_one (const Assumed *a, uint32_t node)
{
  for (int d = 0; d < shape_of (a, node)->ndim; d++)
    if (is_number_one (a, node, d))
      return true;
  return false;
}

static uint64_t
symbols_of (const Assumed *a, uint32_t node)
{
  uint64_t mask = 0;

  for (int d = 0; d < shape_of (a, node)->ndim; d++)
    mask |= a->z->of[node][d].mask;
  return mask;
}

/* --- arrays --- */

/* The first step that reads it; NULL: none does. */
static const TdStep *
reader_of (const Assumed *a, uint32_t node)
{
  for (uint32_t i = 0; i < a->z->s->forward.n; i++)
    for (uint32_t k = 0; k < a->z->s->forward.steps[i].n_in; k++)
      if (td__step_in (a->z->s, &a->z->s->forward.steps[i], k) == node)
        return &a->z->s->forward.steps[i];
  return NULL;
}

/* What a line about an array says it is of: the step that reads it, or the place where it was
 * made. */
static TdStep
place_of (const Assumed *a, uint32_t node)
{
  const TdSchedule *s = a->z->s;
  const TdStep *reader = reader_of (a, node);
  TdStep place = { .site = NULL };

  if (reader != NULL)
    return *reader;
  for (uint32_t i = 0; i < s->forward.n; i++)
    for (uint32_t k = 0; k < s->forward.steps[i].n_out; k++)
      if (td__step_out (s, &s->forward.steps[i], k) == node)
        place.site = s->forward.steps[i].site;
  for (uint32_t i = s->n_arguments; i < s->n_externals; i++)
    if (s->externals[i].node == node)
      place.site = s->externals[i].var->site;
  if (place.site == NULL && td__node_value (s, node)->kind == TD_VALUE_CONSTANT)
    place.site = s->constants[td__node_value (s, node)->index].site;
  return place;
}

/* "add", or "output 1". */
static const char *
user_of (const Assumed *a, uint32_t node, const TdStep *place, char *text, size_t size)
{
  uint32_t k = 0;

  while (k + 1 < a->z->s->n_outputs && a->z->s->outputs[k].node != node)
    k++;
  if (place->cls != NULL)
    snprintf (text, size, "%s", place->cls->name);
  else
    snprintf (text, size, "output %u", k);
  return text;
}

/* is_brought: its numbers are the code's, not of a call that fills an array. */
static void
say_array (Assumed *a, uint32_t node, bool is_brought)
{
  const TdStep place = place_of (a, node);
  char shape[120], user[80], text[260];
  const char *by = user_of (a, node, &place, user, sizeof user);

  td_shape_text (shape_of (a, node), shape, sizeof shape);
  if (is_brought && (symbols_of (a, node) & a->ones) != 0)
    snprintf (text, sizeof text, "all rows are the one of the array %.100s of %.60s", shape,
              by);
  else if (has_number_one (a, node))
    snprintf (text, sizeof text, "1 is a number and not %.60s in the array %.80s of %.60s",
              a->names, shape, by);
  else
    return;
  td__export_lack (a->lines, &place, text);
}

/* An array that the code brought, which is no link's: nobody says where its sizes and numbers
 * come from. */
static bool
is_brought (const Assumed *a, uint32_t node)
{
  const TdSchedule *s = a->z->s;

  for (uint32_t i = s->n_arguments; i < s->n_externals; i++)
    if (s->externals[i].node == node)
      return (s->externals[i].var->flags & TD_VAR_PERSISTENT) == 0;
  return td__export_is_given (s, node);
}

static void
arrays (Assumed *a)
{
  for (uint32_t n = 0; n < a->z->s->n_nodes; n++)
    if (is_brought (a, n) && td__export_is_used (a->z->s, n))
      say_array (a, n, true);
}

/* --- operations --- */

static bool
is_shape_ambiguous (const Assumed *a, const TdStep *step)
{
  const uint32_t from = td__step_in (a->z->s, step, 0), node = td__step_out (a->z->s, step, 0);
  const TdShape *written = step->attrs; /* all that reshape has */
  int n = 0, n_open = 0;
  bool follows = false, left_several = false;

  for (int d = 0; d < written->ndim; d++)
    {
      n += written->dim[d] == 1;
      n_open += written->dim[d] == -1;
      follows = follows || (written->dim[d] == 1 && a->z->of[node][d].mask != 0);
      if (written->dim[d] == -1)
        {
          const uint64_t left = a->z->of[node][d].mask & a->ones;

          left_several = (left & (left - 1)) != 0; /* one of them may be in another size */
        }
    }
  return (symbols_of (a, from) & a->ones) != 0
         && (n_open > 0 ? n > 0 || left_several : n != 1 || !follows || written->ndim > 1);
}

/* A size of the result that no operand has in its place, or that is no longer the symbol. */
static bool
is_written_one (const Assumed *a, const TdStep *step)
{
  return has_number_one (a, td__step_out (a->z->s, step, 0));
}

static bool
is_once (const Assumed *a, const TdStep *step)
{
  int64_t times[2 * TD_MAX_DIMS];
  const int n = td__export_ints (step, td__export_has (step, "reps") ? "reps" : "repeats",
                                 times, 2 * TD_MAX_DIMS);

  (void)a;
  for (int i = 0; i < n; i++)
    if (times[i] == 1)
      return true;
  return false;
}

/* A sum to a size that follows and was 1: it changed nothing, and may be the sum of all rows.
 */
static bool
is_kept_one (const Assumed *a, const TdStep *step)
{
  return (symbols_of (a, td__step_out (a->z->s, step, 0)) & a->ones) != 0;
}

/* One by the batch; or the gradient of a mean of squares, two by it, of what has no axis of the
 * batch's. */
static bool
is_count_of_one (const Assumed *a, const TdStep *step)
{
  const double factor = fabs (td__export_number (step, "value", 0));
  const uint32_t node = td__step_in (a->z->s, step, 0);
  const uint64_t from = a->z->depends[node] & a->ones;

  return (factor == 1 && from != 0) || (factor == 2 && (from & ~symbols_of (a, node)) != 0);
}

static const struct
{
  const char *op;
  bool (*is_ambiguous) (const Assumed *a, const TdStep *step);
  const char *how;
} rules[] = {
  { "reshape", is_shape_ambiguous, "a size is taken for" },
  { "broadcast_to", is_written_one, "1 is a number and not" },
  { "sum_to", is_written_one, "1 is a number and not" },
  { "sum_to", is_kept_one, "1 is taken for" },
  { "tile", is_once, "1 is how often and not" },
  { "repeat", is_once, "1 is how often and not" },
  { "repeat_grad", is_once, "1 is how often and not" },
  { "mul_scalar", is_count_of_one, "1 is no count of" },
  { "div_scalar", is_count_of_one, "1 is no count of" },
  { "rdiv_scalar", is_count_of_one, "1 is no count of" },
};

static void
say_operation (Assumed *a, const TdStep *step)
{
  char text[260];

  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
    if (strcmp (rules[i].op, step->cls->name) == 0 && rules[i].is_ambiguous (a, step))
      {
        snprintf (text, sizeof text, "%s %.120s in %.100s", rules[i].how, a->names,
                  step->cls->name);
        td__export_lack (a->lines, step, text);
      }
}

/* Does it repeat its operands to one shape, and have gradients that are summed back? */
static bool
broadcasts (const TdStep *step)
{
  return step->cls->infer == td__infer_float_pair || step->cls->infer == td__infer_number_pair
         || strcmp (step->cls->name, "where") == 0;
}

/* A parameter's axis of 1 stands where another operand has the symbol: the parameter is as it
 * is, but its gradient is a sum where the symbol is more than 1, and at 1 nothing was summed.
 */
static void
say_alignment (Assumed *a, const TdStep *step)
{
  const uint32_t out = td__step_out (a->z->s, step, 0);
  const TdShape *y = shape_of (a, out);

  if (!broadcasts (step))
    return;
  for (uint32_t i = 0; i < step->n_in; i++)
    {
      const uint32_t node = td__step_in (a->z->s, step, i);
      const int more = y->ndim - shape_of (a, node)->ndim;
      char name[160], text[260];

      for (int d = more; d >= 0 && d < y->ndim; d++)
        if ((a->z->of[out][d].mask & a->ones) != 0 && is_number_one (a, node, d - more)
            && (a->z->depends[node] & a->ones) == 0 && !is_brought (a, node))
          {
            snprintf (text, sizeof text, "1 is a number and not %.60s in %.100s of %.60s",
                      a->names,
                      td__export_is_given (a->z->s, node)
                          ? td__export_name (a->z->s, node, name, sizeof name)
                          : "an operand",
                      step->cls->name);
            td__export_lack (a->lines, step, text);
            break;
          }
    }
}

/* A symbol that was more than 1, in a reshape: the size that is taken for it may be a number
 * where another is left open, and one that is a multiple of it may be the one that follows.
 * What the code left open itself is not doubted. */
static void
say_reshape (const Assumed *a, const TdStep *step, int symbol, int axis)
{
  const TdOnnxSymbol *of = &a->z->symbols[symbol];
  const TdShape *written = step->attrs, /* all that reshape has */
      *y = shape_of (a, td__step_out (a->z->s, step, 0));
  char text[260] = "";

  for (int d = 0; d < written->ndim && written->dim[axis] != -1 && text[0] == '\0'; d++)
    if (d != axis && written->dim[d] == -1)
      snprintf (text, sizeof text, "%lld is %s%.70s and not a number in reshape",
                (long long)y->dim[axis], y->dim[axis] == of->v[0] ? "" : "a multiple of ",
                of->name);
    else if (d != axis && written->dim[d] > of->v[0] && written->dim[d] % of->v[0] == 0)
      snprintf (text, sizeof text, "%lld is %s%.70s and %lld is not in reshape",
                (long long)y->dim[axis], y->dim[axis] == of->v[0] ? "" : "a multiple of ",
                of->name, (long long)written->dim[d]);
  if (text[0] != '\0')
    td__export_lack (a->lines, step, text);
}

/* --- sizes that may be a symbol's or not --- */

/* What an axis follows, or could: a symbol that is open; -1: nothing. */
static int
symbol_of (const Assumed *a, uint32_t node, int axis)
{
  const int64_t n = shape_of (a, node)->dim[axis];
  const uint64_t mask = a->z->of[node][axis].mask;
  int found = -1;

  for (int k = 0; k < a->z->n_symbols; k++)
    {
      const int64_t was = a->z->symbols[k].v[0];

      if (mask != 0 ? mask >> k & 1
                    : a->z->symbols[k].why[0] == '\0' && n > 1 && n % was == 0
                          && (found < 0 || n == was))
        found = k;
    }
  return found;
}

/* "6 is a multiple of batch and not a number in the array (2, 6) of concat", or the other way
 * round; of a step that has the size as a number itself, "in broadcast_to".  False: it can
 * follow nothing. */
static bool
say_size (const Assumed *a, uint32_t node, int axis, const TdStep *step)
{
  const int64_t n = shape_of (a, node)->dim[axis];
  const int k = symbol_of (a, node, axis);
  const bool follows = a->z->of[node][axis].mask != 0;
  const TdStep place = step != NULL ? *step : place_of (a, node);
  char of[90], array[120], user[80], where[200], text[400];

  if (k < 0)
    return false;
  snprintf (of, sizeof of, "%s%.60s", n == a->z->symbols[k].v[0] ? "" : "a multiple of ",
            a->z->symbols[k].name);
  td_shape_text (shape_of (a, node), array, sizeof array);
  if (step != NULL)
    snprintf (where, sizeof where, "%.60s", step->cls->name);
  else
    snprintf (where, sizeof where, "the array %.80s of %.60s", array,
              user_of (a, node, &place, user, sizeof user));
  if (follows)
    snprintf (text, sizeof text, "%lld is %s and not a number in %s", (long long)n, of, where);
  else
    snprintf (text, sizeof text, "%lld is a number and not %s in %s", (long long)n, of, where);
  td__export_lack (a->lines, &place, text);
  return true;
}

/* Was the decision of an axis, or of one that it is tied to, not the only one possible? */
static bool
is_doubted (const Assumed *a, const TdOnnxDecision *d)
{
  while (d != NULL && !d->doubted)
    d = d->symbol == TD_ONNX_TIED ? td__onnx_size_decision (a->z, d->tied, d->tied_axis) : NULL;
  return d != NULL;
}

/* As large as a symbol that is open, and a number: of an array that the code made from nothing,
 * as ones for what is there and zeros for the rest, the other may be meant although no
 * operation accepts it with the numbers beside it. */
static bool
is_like_symbol (const Assumed *a, const TdOnnxDecision *d)
{
  for (int k = 0; d != NULL && d->symbol == TD_ONNX_NUMBER && k < a->z->n_symbols; k++)
    if (a->z->symbols[k].why[0] == '\0' && a->z->symbols[k].v[0] > 1
        && shape_of (a, d->node)->dim[d->axis] == a->z->symbols[k].v[0])
      return true;
  return false;
}

/* What was decided of an array's axes.  step: that broadcasts to them; made: from nothing. */
static void
say_decided (const Assumed *a, uint32_t node, const TdStep *step, bool made)
{
  for (int d = 0; d < shape_of (a, node)->ndim; d++)
    {
      const TdOnnxDecision *decision = td__onnx_size_decision (a->z, node, d);

      if (is_doubted (a, decision) || (made && is_like_symbol (a, decision)))
        say_size (a, node, d, step);
    }
}

/* Of an array's axes of which nothing had to be decided, the first that is as large as a
 * symbol, or else the first that is a multiple of one: the code wrote the number.  like: the
 * array that is broadcast by step, whose axes the code did not write; NULL: none is. */
static void
say_written (const Assumed *a, uint32_t node, const TdStep *step, const TdShape *like)
{
  const TdShape *shape = shape_of (a, node);
  int first = -1;

  for (int d = shape->ndim - 1; d >= 0; d--)
    {
      const int k = symbol_of (a, node, d),
                c = like != NULL ? d + like->ndim - shape->ndim : -1;

      if (k < 0 || a->z->of[node][d].mask != 0 || td__onnx_size_decision (a->z, node, d) != NULL
          || (c >= 0 && like->dim[c] == shape->dim[d]))
        continue;
      if (first < 0 || shape->dim[d] == a->z->symbols[k].v[0]
          || shape->dim[first] != a->z->symbols[k].v[0])
        first = d;
    }
  if (first >= 0)
    say_size (a, node, first, step);
}

/* Arrays that the code brought or that are made from nothing, and what is broadcast. */
static void
sizes (const Assumed *a)
{
  const TdSchedule *s = a->z->s;

  for (uint32_t node = 0; node < s->n_nodes; node++)
    if (is_brought (a, node) && td__export_is_used (s, node))
      {
        say_decided (a, node, NULL, a->z->is_uniform != NULL && a->z->is_uniform[node]);
        say_written (a, node, NULL, NULL);
      }
  for (uint32_t i = 0; i < s->forward.n; i++)
    {
      const TdStep *step = &s->forward.steps[i];
      const bool broadcasts
          = step->kind == TD_STEP_OP && strcmp (step->cls->name, "broadcast_to") == 0;

      if (step->kind != TD_STEP_FILL && !broadcasts)
        continue;
      say_decided (a, td__step_out (s, step, 0), broadcasts ? step : NULL, !broadcasts);
      say_written (a, td__step_out (s, step, 0), broadcasts ? step : NULL,
                   broadcasts ? shape_of (a, td__step_in (s, step, 0)) : NULL);
    }
}

/* squeeze without an axis drops the batch's as well where that is 1, which a file does not. */
static void
say_squeeze (const Assumed *a, const TdStep *step)
{
  const uint32_t x = td__step_in (a->z->s, step, 0);
  char text[260];

  for (int d = 0; d < shape_of (a, x)->ndim; d++)
    for (int k = 0; k < a->z->n_symbols; k++)
      if ((a->z->of[x][d].mask >> k & 1)
          && (!a->z->of[x][d].known || a->z->of[x][d].times + a->z->of[x][d].fixed == 1))
        {
          snprintf (text, sizeof text,
                    "where %.60s is 1 that axis stays, and the program drops it, in squeeze",
                    a->z->symbols[k].name);
          td__export_lack (a->lines, step, text);
          return;
        }
}

static bool
is_squeeze_of_all (const TdStep *step)
{
  return step->kind == TD_STEP_OP && strcmp (step->cls->name, "squeeze") == 0
         && td__export_number (step, "axis", 0) == INT_MIN /* no axis given */;
}

static void
reshapes (const Assumed *a)
{
  for (uint32_t i = 0; i < a->z->s->forward.n; i++)
    {
      const TdStep *step = &a->z->s->forward.steps[i];
      uint32_t node;

      if (is_squeeze_of_all (step))
        say_squeeze (a, step);
      if (step->kind != TD_STEP_OP || strcmp (step->cls->name, "reshape") != 0)
        continue;
      node = td__step_out (a->z->s, step, 0);
      for (int k = 0; k < a->z->n_symbols; k++)
        for (int d = 0; d < shape_of (a, node)->ndim && a->z->symbols[k].v[0] > 1; d++)
          if (a->z->of[node][d].mask >> k & 1)
            say_reshape (a, step, k, d);
    }
}

/* What was taken where a size was 1. */
static void
ones (Assumed *a)
{
  arrays (a);
  for (uint32_t i = 0; i < a->z->s->forward.n; i++)
    {
      const TdStep *step = &a->z->s->forward.steps[i];

      if (step->kind == TD_STEP_OP)
        {
          say_operation (a, step);
          say_alignment (a, step);
        }
      else if (step->kind == TD_STEP_FILL)
        say_array (a, td__step_out (a->z->s, step, 0), false);
    }
}

uint32_t
td__onnx_sizes_assumed (const TdOnnxSizes *z, TdExportLacks *lines)
{
  Assumed a = { .z = z, .lines = lines };
  uint32_t n_lines;
  size_t n = 0;

  for (int i = 0; i < z->n_symbols; i++)
    if (z->symbols[i].why[0] == '\0' && z->symbols[i].v[0] == 1)
      {
        a.ones |= (uint64_t)1 << i;
        if (n + strlen (z->symbols[i].name) + 5 < sizeof a.names)
          n += (size_t)snprintf (a.names + n, sizeof a.names - n, "%s%s", n > 0 ? " or " : "",
                                 z->symbols[i].name);
      }
  if (a.ones != 0)
    ones (&a);
  sizes (&a);
  n_lines = lines->n_lines;
  reshapes (&a);
  return a.ones != 0 ? n_lines : 0;
}
