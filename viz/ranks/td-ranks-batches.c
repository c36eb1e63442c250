/*
 * Ranks whose batches are of different sizes: what the model reads first says how many examples
 * there are.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-ranks-private.h"

#define MOST_LOOKS 64 /* iterations that are loaded whole to compare their inputs */
#define MOST_SIZES 16 /* of a rank, to know whether it has a usual one */

struct TdRanksBatches
{
  guint n_looks;
  gboolean found;       /* the rest is of it */
  gboolean is_weighted; /* perhaps, by numbers that are not on the tapes */
  gint64 number, after;
  guint a, b, input;
  gint64 n, m;
  char *name;
};

TdRanksBatches *
td__ranks_batches_new (void)
{
  return g_new0 (TdRanksBatches, 1);
}

/* What is of parameters alone, as a transposed weight is. Owner: the caller; by variable. */
static gboolean *
mark_of_parameters (const TdTapeIteration *it)
{
  gboolean *of = g_new0 (gboolean, MAX (it->n_vars, 1));

  for (guint i = 0; i < it->n_vars; i++)
    of[i] = it->vars[i].category == TD_TAPE_CATEGORY_PARAMETER;
  for (guint e = 0; e < it->n_events; e++)
    {
      const TdTapeEvent *event = &it->events[e];
      gboolean all = event->n_in > 0;

      for (guint k = 0; k < event->n_in; k++)
        all = all && of[it->ins[event->first_in + k]];
      for (guint k = 0; all && k < event->n_out; k++)
        of[it->outs[event->first_out + k]] = TRUE;
    }
  return of;
}

/* What gradients come from in this iteration, but not by way of a parameter that was written:
 * an average of weights that is loaded into these has no examples. Owner: the caller; by
 * variable. */
static gboolean *
mark_differentiated (const TdIteration *iteration, const gboolean *of_parameters)
{
  const TdTapeIteration *it = td_iteration_get_tape (iteration);
  gboolean *marked = g_new0 (gboolean, MAX (it->n_vars, 1));

  for (guint e = it->n_events; e-- > 0;)
    {
      const TdTapeEvent *event = &it->events[e];
      gboolean leads = event->phase == TD_TAPE_PHASE_BACKWARD, writes = FALSE;
      guint n_twins;

      td_iteration_get_twins (iteration, e, &n_twins);
      leads = leads || n_twins > 0;
      for (guint k = 0; k < event->n_out; k++)
        {
          leads = leads || marked[it->outs[event->first_out + k]];
          writes = writes || (event->n_in > 1 && of_parameters[it->outs[event->first_out + k]]);
        }
      for (guint k = 0; leads && !(writes && n_twins == 0) && k < event->n_in; k++)
        marked[it->ins[event->first_in + k]] = TRUE;
    }
  return marked;
}

/* It makes something of both, from which gradients come: what writes a parameter, and an
 * average that is kept of one, read no examples. */
static gboolean
is_layer (const TdTapeIteration *it, const TdTapeEvent *event, const gboolean *of_parameters,
          const gboolean *marked)
{
  gboolean leads = FALSE;
  guint n = 0;

  for (guint k = 0; k < event->n_in; k++)
    n += of_parameters[it->ins[event->first_in + k]];
  for (guint k = 0; k < event->n_out; k++)
    {
      if (of_parameters[it->outs[event->first_out + k]])
        return FALSE;
      leads = leads || marked[it->outs[event->first_out + k]];
    }
  return leads && event->phase == TD_TAPE_PHASE_FORWARD && n > 0 && n < event->n_in;
}

/* The first operation that brings a parameter together with something else. Where examples come
 * from operations, as in PyTorch, no variable is an input, but this has them. -1: none. */
gint
td__ranks_find_first_layer (const TdIteration *iteration)
{
  const TdTapeIteration *it = td_iteration_get_tape (iteration);
  g_autofree gboolean *of_parameters = mark_of_parameters (it),
                      *marked = mark_differentiated (iteration, of_parameters);

  for (guint e = 0; e < it->n_events; e++)
    if (is_layer (it, &it->events[e], of_parameters, marked))
      return (gint)e;
  return -1;
}

gboolean
td__ranks_is_of_framework (const TdRanks *self, guint place)
{
  return *td_tape_reader_info (self->tapes[place].reader, "producer") != '\0';
}

/* What the first layer reads, but for its parameters. Owner: the caller. */
static GArray *
list_of_first_layer (const TdIteration *iteration)
{
  const TdTapeIteration *it = td_iteration_get_tape (iteration);
  gint first = td__ranks_find_first_layer (iteration);
  const TdTapeEvent *event = first < 0 ? NULL : &it->events[first];
  g_autofree gboolean *of_parameters = mark_of_parameters (it);
  GArray *vars = g_array_new (FALSE, FALSE, sizeof (guint));

  for (guint k = 0; event && k < event->n_in; k++)
    {
      guint var = it->ins[event->first_in + k];

      if (!of_parameters[var])
        g_array_append_val (vars, var);
    }
  return vars;
}

/* What came from outside, is no part of the model, and gradients come from, in order: of an
 * evaluation ranks may have different parts. Owner: the caller. */
static GArray *
list_inputs (const TdIteration *iteration)
{
  const TdTapeIteration *it = td_iteration_get_tape (iteration);
  g_autofree gboolean *trained = td__ranks_mark_trained (iteration);
  GArray *vars = g_array_new (FALSE, FALSE, sizeof (guint));

  for (guint i = 0; i < it->n_vars; i++)
    if (it->vars[i].producer < 0 && it->vars[i].category == TD_TAPE_CATEGORY_INPUT
        && !(it->vars[i].flags & TD_TAPE_VAR_PARAMETER) && trained[i])
      g_array_append_val (vars, i);
  return vars;
}

static gint64
examples_of (const TdTapeIteration *it, const GArray *inputs, guint i)
{
  const TdTapeVar *v = &it->vars[g_array_index (inputs, guint, i)];

  return v->ndim > 0 ? it->dims[v->first_dim] : 0;
}

static GArray *
list_read (const TdRanks *self, guint place, const TdIteration *iteration)
{
  return td__ranks_is_of_framework (self, place) ? list_of_first_layer (iteration)
                                                 : list_inputs (iteration);
}

void
td__ranks_batches_look (TdRanksBatches *k, TdRanks *self, const TdRankRow *row, guint a,
                        guint b, gint64 after)
{
  g_autoptr (TdIteration) x = NULL, y = NULL;
  g_autoptr (GArray) of_x = NULL, of_y = NULL;

  TdRanksWeighting weighting;

  if ((k->found && !k->is_weighted) || k->n_looks++ >= MOST_LOOKS)
    return;
  x = td__ranks_load (self, a, row->of[a]->number);
  y = td__ranks_load (self, b, row->of[b]->number);
  if (!x || !y)
    return;
  of_x = list_read (self, a, x);
  of_y = list_read (self, b, y);
  for (guint i = 0; of_x->len == of_y->len && i < of_x->len; i++)
    {
      gint64 n = examples_of (td_iteration_get_tape (x), of_x, i),
             m = examples_of (td_iteration_get_tape (y), of_y, i);

      if (n == m)
        continue;
      weighting = td__ranks_find_weighting (x, y);
      if (weighting == TD_RANKS_WEIGHTED || (k->found && weighting != TD_RANKS_UNWEIGHTED))
        return;
      g_free (k->name);
      *k = (TdRanksBatches){ .n_looks = k->n_looks,
                             .found = TRUE,
                             .is_weighted = weighting == TD_RANKS_WEIGHTS_UNKNOWN,
                             .number = row->number,
                             .after = after,
                             .a = a,
                             .b = b,
                             .input = i,
                             .n = n,
                             .m = m };
      k->name = g_strdup (td_iteration_get_var_name (x, g_array_index (of_x, guint, i)));
      return;
    }
}

/* How many of the rank's steps have the size that most of them have, of `n_sizes`. */
static guint
count_usual (const TdRanksBatches *k, TdRanks *self, guint place, guint *n_sizes)
{
  TdTapeSummaries all = td_tape_reader_summaries (self->tapes[place].reader);
  gint64 sizes[MOST_SIZES];
  guint most = 0, step = MAX (all.n / MOST_SIZES, 1);

  *n_sizes = 0;
  for (guint i = 0; i < all.n && *n_sizes < MOST_SIZES; i += step)
    {
      g_autoptr (TdIteration) it = td__ranks_load (self, place, (gint64)all.rows[i].number);
      g_autoptr (GArray) read = it ? list_read (self, place, it) : NULL;

      if (read && k->input < read->len)
        sizes[(*n_sizes)++] = examples_of (td_iteration_get_tape (it), read, k->input);
    }
  for (guint i = 0; i < *n_sizes; i++)
    {
      guint same = 0;

      for (guint j = 0; j < *n_sizes; j++)
        same += sizes[j] == sizes[i];
      most = MAX (most, same);
    }
  return most;
}

/* In a framework the first dimension may be another: of sequences, how long they are, which is
 * another number in each step. A batch has a usual size. */
static gboolean
is_usual (const TdRanksBatches *k, TdRanks *self, guint place)
{
  guint n_sizes, most;

  if (!td__ranks_is_of_framework (self, place))
    return TRUE;
  most = count_usual (k, self, place, &n_sizes);
  return 2 * most > n_sizes;
}

static void
say_batches (const TdRanksBatches *k, TdRanks *self)
{
  g_autofree gboolean *both = g_new0 (gboolean, self->n);
  g_autofree char *when = td__ranks_dup_when (k->number, k->after);
  TdRanksFinding *f;

  both[k->a] = both[k->b] = TRUE;
  f = td__ranks_add (self, TD_RANKS_BATCHES, k->is_weighted ? TD_RANKS_NOTE : TD_RANKS_WARNING,
                     k->number, both);
  f->after = k->after;
  f->array = *k->name ? g_strdup (k->name) : NULL;
  f->sentence = g_strdup_printf (
      "ranks %u and %u have unequal batches %s: %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT
      " examples%s%s%s; %s",
      self->tapes[k->a].open.rank, self->tapes[k->b].open.rank, when, k->n, k->m,
      f->array ? " in `" : "", f->array ? f->array : "", f->array ? "`" : "",
      k->is_weighted
          ? "whether their losses are weighted by that is not on the tapes (record with "
            "--level "
            "stats)"
          : "the mean of their gradients is a mean of means, in which the examples of the "
            "smaller one count more");
  f->advice = g_strdup (td__ranks_advice (self, TD_RANKS_EQUAL_BATCHES));
}

void
td__ranks_batches_end (TdRanksBatches *k, TdRanks *self)
{
  if (k->found && is_usual (k, self, k->a) && is_usual (k, self, k->b))
    say_batches (k, self);
  g_free (k->name);
  g_free (k);
}
