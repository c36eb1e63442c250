/*
 * How much an example counts in the gradients of a rank, beside one of another rank: from the
 * loss up to the operation that puts a batch together, a mean or a sum, with all numbers that
 * it is multiplied with on the way, and those that gradients are.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "tape/td-attributes.h"
#include "td-ranks-private.h"

#define MOST_DEEP 200  /* operations between the loss and the batch */
#define TOLERANCE 1e-3 /* relative: numbers of attributes are short */
#define NOTHING G_MAXUINT32

typedef struct
{
  const TdIteration *of;
  const TdTapeIteration *it;
  gboolean *of_model; /* by variable: parameters, and what is computed of them */
  double factor;
} Side;

typedef struct
{
  Side a, b;
  gboolean is_known; /* all numbers on the way are */
  gboolean *seen;    /* by variable of a: nothing is found above it */
} Walk;

static void
side_init (Side *side, const TdIteration *of)
{
  const TdTapeIteration *it = td_iteration_get_tape (of);

  *side = (Side){ of, it, g_new0 (gboolean, MAX (it->n_vars, 1)), 1 };
  for (guint i = 0; i < it->n_vars; i++)
    side->of_model[i] = (it->vars[i].flags & TD_TAPE_VAR_PARAMETER) != 0;
  for (guint e = 0; e < it->n_events; e++)
    {
      const TdTapeEvent *event = &it->events[e];
      gboolean any = FALSE;

      for (guint k = 0; k < event->n_in; k++)
        any = any || side->of_model[it->ins[event->first_in + k]];
      for (guint k = 0; any && k < event->n_out; k++)
        side->of_model[it->outs[event->first_out + k]] = TRUE;
    }
}

static guint64
count (const Side *side, guint32 var)
{
  const TdTapeVar *v = &side->it->vars[var];
  guint64 n = 1;

  for (guint k = 0; k < v->ndim; k++)
    n *= (guint64)side->it->dims[v->first_dim + k];
  return n;
}

static gboolean
has_same_shape (const Side *a, guint32 x, const Side *b, guint32 y)
{
  const TdTapeVar *v = &a->it->vars[x], *w = &b->it->vars[y];

  return v->ndim == w->ndim
         && memcmp (a->it->dims + v->first_dim, b->it->dims + w->first_dim,
                    v->ndim * sizeof *a->it->dims)
                == 0;
}

/* The operation that made it, of forward; NULL: it came from outside. */
static const TdTapeEvent *
find_maker (const Side *side, guint32 var)
{
  const gint32 e = side->it->vars[var].producer;

  return e >= 0 && (guint)e < side->it->n_events
                 && side->it->events[e].phase == TD_TAPE_PHASE_FORWARD
             ? &side->it->events[e]
             : NULL;
}

static const char *
name_of (const Side *side, const TdTapeEvent *event)
{
  return td_iteration_get_op_name (side->of, (guint)(event - side->it->events));
}

/* "mul", "mul_" and "mul_scalar". */
static gboolean
is_named (const char *name, const char *word)
{
  const char *rest = g_str_has_prefix (name, word) ? name + strlen (word) : NULL;

  return rest
         && (g_str_equal (rest, "") || g_str_equal (rest, "_")
             || g_str_equal (rest, "_scalar"));
}

/* ---- numbers ---- */

/* Of PyTorch "other=0.5", of the engine "value=0.5". */
static gboolean
read_attribute (const Side *side, const TdTapeEvent *event, double *number)
{
  g_auto (GStrv) words = td_attributes_split (td_iteration_get_string (side->of, event->attrs));

  for (guint i = 0; words[i]; i++)
    if (g_str_has_prefix (words[i], "other=") || g_str_has_prefix (words[i], "value="))
      {
        *number = g_ascii_strtod (strchr (words[i], '=') + 1, NULL);
        return TRUE;
      }
  return FALSE;
}

/* All its elements are this number. */
static gboolean
read_variable (const Side *side, guint32 var, double *number)
{
  for (guint i = 0; i < side->it->n_stats; i++)
    if (side->it->stats[i].var == var && side->it->stats[i].min == side->it->stats[i].max)
      {
        *number = side->it->stats[i].min;
        return TRUE;
      }
  return FALSE;
}

/* The input that it multiplies with a number, or divides by one; NOTHING: it does neither. */
static guint32
find_scaled (const Side *side, const TdTapeEvent *event, guint32 *other)
{
  const char *name = name_of (side, event);
  const guint32 *in = side->it->ins + event->first_in;

  *other = NOTHING;
  if (event->n_in == 0 || !(is_named (name, "mul") || is_named (name, "div")))
    return NOTHING;
  if (event->n_in == 1)
    return in[0];
  if (side->of_model[in[0]] && !side->of_model[in[1]])
    {
      *other = in[1];
      return in[0];
    }
  if (!side->of_model[in[0]] && side->of_model[in[1]] && is_named (name, "mul"))
    {
      *other = in[0];
      return in[1];
    }
  return NOTHING;
}

static void
take_number (Walk *w, Side *side, const TdTapeEvent *event, guint32 other)
{
  double number = 1;

  if (!(other == NOTHING ? read_attribute (side, event, &number)
                         : read_variable (side, other, &number)))
    w->is_known = FALSE;
  side->factor *= is_named (name_of (side, event), "div") ? 1 / number : number;
}

/* Above all operations that multiply it with a number. */
static guint32
strip (Walk *w, Side *side, guint32 var)
{
  for (guint n = 0; n < MOST_DEEP; n++)
    {
      const TdTapeEvent *event = find_maker (side, var);
      guint32 other, scaled = event ? find_scaled (side, event, &other) : NOTHING;

      if (scaled == NOTHING)
        break;
      take_number (w, side, event, other);
      var = scaled;
    }
  return var;
}

/* ---- from the loss to the batch ---- */

typedef enum
{
  REDUCES_OTHERWISE,
  ADDS,
  AVERAGES
} Reduction;

static const struct
{
  const char *word; /* somewhere in the name */
  Reduction reduction;
} reductions[] = { { "sum", ADDS },         { "mean", AVERAGES },  { "average", AVERAGES },
                   { "entropy", AVERAGES }, { "loss", AVERAGES },  { "error", AVERAGES },
                   { "hinge", AVERAGES },   { "kl_div", AVERAGES } };

/* A loss of PyTorch has in its attributes that it adds (2). */
static Reduction
find_reduction (const Side *side, const TdTapeEvent *event)
{
  const char *name = name_of (side, event);

  if (strstr (td_iteration_get_string (side->of, event->attrs), "reduction=2"))
    return ADDS;
  for (guint i = 0; i < G_N_ELEMENTS (reductions); i++)
    if (strstr (name, reductions[i].word))
      return reductions[i].reduction;
  return REDUCES_OTHERWISE;
}

static void
take_reduction (Walk *w, const TdTapeEvent *a, guint32 x, guint32 y)
{
  const Reduction reduction = find_reduction (&w->a, a);

  w->is_known = w->is_known && reduction != REDUCES_OTHERWISE;
  if (reduction == AVERAGES)
    {
      w->a.factor /= (double)MAX (count (&w->a, x), 1);
      w->b.factor /= (double)MAX (count (&w->b, y), 1);
    }
  strip (w, &w->a, x);
  strip (w, &w->b, y);
}

/* FALSE: no batch is put together above these. */
static gboolean
walk_up (Walk *w, guint32 x, guint32 y, guint depth)
{
  const Walk before = *w;
  const TdTapeEvent *a, *b;

  if (w->seen[x])
    return FALSE;
  w->seen[x] = TRUE;
  x = strip (w, &w->a, x);
  y = strip (w, &w->b, y);
  a = find_maker (&w->a, x);
  b = find_maker (&w->b, y);
  if (depth < MOST_DEEP && a && b && a->n_in == b->n_in
      && g_str_equal (name_of (&w->a, a), name_of (&w->b, b)))
    for (guint k = 0; k < a->n_in; k++)
      {
        const guint32 in_a = w->a.it->ins[a->first_in + k],
                      in_b = w->b.it->ins[b->first_in + k];

        if (!w->a.of_model[in_a] || !w->b.of_model[in_b])
          continue;
        if (!has_same_shape (&w->a, in_a, &w->b, in_b))
          {
            take_reduction (w, a, in_a, in_b);
            return TRUE;
          }
        if (walk_up (w, in_a, in_b, depth + 1))
          return TRUE;
      }
  *w = before;
  return FALSE;
}

/* What it was added to: of an addition backward runs nothing. */
static guint32
find_whole (const Side *side, guint32 var, guint end)
{
  const TdTapeIteration *it = side->it;

  for (guint e = 0; e < end; e++)
    {
      const TdTapeEvent *event = &it->events[e];

      for (guint k = 0; k < event->n_in && event->n_out > 0; k++)
        if (it->ins[event->first_in + k] == var
            && (is_named (name_of (side, event), "add")
                || is_named (name_of (side, event), "sub")))
          {
            var = it->outs[event->first_out];
            break;
          }
    }
  return var;
}

/* What the first backward is of: NOTHING: it is not known. */
static guint32
find_loss (const Side *side)
{
  const TdTapeIteration *it = side->it;

  for (guint e = 0; e < it->n_events; e++)
    {
      const TdTapeEvent *event = &it->events[e];

      if (event->phase != TD_TAPE_PHASE_BACKWARD)
        continue;
      if (event->twin >= 0 && (guint)event->twin < e && it->events[event->twin].n_out > 0)
        return find_whole (side, it->outs[it->events[event->twin].first_out], e);
      for (guint k = 0; k < event->n_in; k++)
        if (find_maker (side, it->ins[event->first_in + k]))
          return it->ins[event->first_in + k];
    }
  return NOTHING;
}

/* ---- gradients ---- */

/* What is done to the first gradient behind backward, by which all of them are taken: made of
 * it in front of the update, or written to it. */
static void
take_gradients (Walk *w, Side *side)
{
  const TdTapeIteration *it = side->it;
  guint32 var = NOTHING;

  for (guint i = 0; i < it->n_grads && var == NOTHING; i++)
    var = it->grads[i].gradient < it->n_vars ? it->grads[i].gradient : NOTHING;
  for (guint e = it->n_events; var != NOTHING && e-- > 0;)
    {
      const TdTapeEvent *event = &it->events[e];
      const gboolean makes = event->n_out > 0 && it->outs[event->first_out] == var;

      if (!makes || event->n_in == 0 || event->phase == TD_TAPE_PHASE_BACKWARD
          || it->vars[var].producer != (gint32)e)
        continue;
      if (is_named (name_of (side, event), "mul") || is_named (name_of (side, event), "div"))
        take_number (w, side, event, event->n_in > 1 ? it->ins[event->first_in + 1] : NOTHING);
      var = it->ins[event->first_in];
    }
  for (guint e = 0; var != NOTHING && e < it->n_events; e++)
    {
      const TdTapeEvent *event = &it->events[e];
      const char *name = name_of (side, event);

      if (event->n_in == 0 || event->n_out == 0 || it->ins[event->first_in] != var
          || !(g_str_equal (name, "mul_") || g_str_equal (name, "div_")))
        continue;
      take_number (w, side, event, event->n_in > 1 ? it->ins[event->first_in + 1] : NOTHING);
      var = it->outs[event->first_out];
    }
}

TdRanksWeighting
td__ranks_find_weighting (const TdIteration *a, const TdIteration *b)
{
  Walk w = { .is_known = TRUE };
  TdRanksWeighting found = TD_RANKS_UNWEIGHTED;
  guint32 x, y;

  side_init (&w.a, a);
  side_init (&w.b, b);
  w.seen = g_new0 (gboolean, MAX (w.a.it->n_vars, 1));
  x = find_loss (&w.a);
  y = find_loss (&w.b);
  if (x != NOTHING && y != NOTHING && walk_up (&w, x, y, 0))
    {
      take_gradients (&w, &w.a);
      take_gradients (&w, &w.b);
      if (!w.is_known)
        found = TD_RANKS_WEIGHTS_UNKNOWN;
      else if (fabs (w.a.factor - w.b.factor) <= TOLERANCE * fabs (w.a.factor))
        found = TD_RANKS_WEIGHTED;
    }
  g_free (w.seen);
  g_free (w.a.of_model);
  g_free (w.b.of_model);
  return found;
}
