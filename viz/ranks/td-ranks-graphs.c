/*
 * Iterations of one step whose operations or inputs say that ranks do not compute the same
 * model, or do not compute with different examples.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "diff/td-diff.h"
#include "td-ranks-private.h"
#include "td-tape-writer.h"

#define INPUT_STEPS 3 /* whose inputs are compared */
#define LASTING 5     /* steps in a row, up to the end, that no chance makes */

typedef struct
{
  guint64 key, own;
} Pair;

/* The steps whose training differs, whatever ranks do beside it. */
typedef struct
{
  guint n, n_since;      /* of them; steps from the first of them on */
  gint64 iteration;      /* the first; -1: none */
  gint64 after;          /* the one before it */
  gint64 *numbers;       /* of it, by place; -1 */
  guint64 *fingerprints; /* of what trains, by place; 0: not together */
  gboolean moves;        /* other ranks differ in another step */
} Training;

struct TdRanksGraphs
{
  Training training;
  guint n_steps, n_differ, n_inputs;
  gint64 last, after;
  gint64 iteration;      /* of the first difference; -1: none */
  gint64 *numbers;       /* of it, by place; -1 */
  guint64 *fingerprints; /* of it, by place */
  GHashTable *seen;      /* Pair: what each had beside the first's */
  guint n_kinds;         /* graphs of the first */
  guint64 *inputs; /* by place, INPUT_STEPS of each: what the inputs' numbers are like; 0: not
                      recorded */
  gboolean changes, first_differs;
  TdRanksBatches *batches;
  TdRanksAttrs *attrs;
};

TdRanksGraphs *
td__ranks_graphs_new (const TdRanks *self)
{
  TdRanksGraphs *g = g_new0 (TdRanksGraphs, 1);

  g->last = g->iteration = g->after = g->training.iteration = g->training.after = -1;
  g->training.numbers = g_new0 (gint64, self->n);
  g->training.fingerprints = g_new0 (guint64, self->n);
  g->numbers = g_new0 (gint64, self->n);
  g->fingerprints = g_new0 (guint64, self->n);
  g->seen = g_hash_table_new_full (g_int64_hash, g_int64_equal, NULL, g_free);
  g->inputs = g_new0 (guint64, self->n * INPUT_STEPS);
  g->attrs = td__ranks_attrs_new (self);
  g->batches = td__ranks_batches_new ();
  return g;
}

static void
graphs_free (TdRanksGraphs *g)
{
  g_free (g->training.numbers);
  g_free (g->training.fingerprints);
  g_free (g->numbers);
  g_free (g->fingerprints);
  g_hash_table_unref (g->seen);
  g_free (g->inputs);
  g_free (g);
}

/* Ranks train one model together where they share a mean. Returns the first place that does,
 * and which others do with it; -1: none. */
static gint
find_together (const TdRanks *self, const TdSumTable *table, gboolean *together)
{
  for (guint key = 0; key < table->n; key++)
    {
      gint first = -1;
      guint n = 0;

      if (g_array_index (table->keys, TdSumKey, key).kind != TD_TAPE_SUM_MEAN)
        continue;
      for (guint i = 0; i < self->n; i++)
        {
          together[i] = td__sum_table_get (table, key, i) != NULL;
          n += together[i];
          first = first < 0 && together[i] ? (gint)i : first;
        }
      if (n > 1)
        return first;
    }
  return -1;
}

/* Graphs that come and go depend on the data; the first step may be another one. An evaluation
 * now and then is another graph on all ranks: what a rank has beside a graph of the first is
 * the same whenever the first has that, where it does not depend on the data. */
static void
see (TdRanksGraphs *g, guint place, gboolean is_first, guint64 of_first, guint64 own)
{
  const guint64 key = td_tape_hash (of_first, place);
  Pair *pair = g_hash_table_lookup (g->seen, &key);

  if (g->n_steps == 0)
    return;
  if (pair)
    {
      g->changes = g->changes || pair->own != own;
      return;
    }
  pair = g_new (Pair, 1);
  *pair = (Pair){ key, own };
  g_hash_table_insert (g->seen, pair, pair);
  g->n_kinds += is_first;
}

/* Are the same ranks of one kind? */
static gboolean
are_alike (const guint64 *a, const guint64 *b, guint n)
{
  for (guint i = 0; i < n; i++)
    for (guint j = 0; j < i; j++)
      if ((a[i] == a[j]) != (b[i] == b[j]))
        return FALSE;
  return TRUE;
}

/* Of ranks whose operations differ: does what trains? */
static void
compare_training (TdRanksGraphs *g, TdRanks *self, const TdRankRow *row,
                  const gboolean *together)
{
  Training *t = &g->training;
  g_autofree guint64 *of = g_new0 (guint64, self->n);
  guint64 first = 0;
  gboolean differ = FALSE;

  for (guint i = 0; i < self->n; i++)
    {
      of[i] = together[i] ? td__ranks_hash_trained (self, i, row->of[i]->number) : 0;
      if (together[i] && of[i] == 0)
        return;
      first = first ? first : of[i];
      differ = differ || (of[i] && of[i] != first);
    }
  if (!differ)
    return;
  t->n++;
  t->moves = t->moves || (t->iteration >= 0 && !are_alike (of, t->fingerprints, self->n));
  if (t->iteration >= 0)
    return;
  t->after = g->last;
  memcpy (t->fingerprints, of, self->n * sizeof *of);
  for (guint i = 0; i < self->n; i++)
    {
      t->numbers[i] = together[i] ? row->of[i]->number : -1;
      t->iteration = t->iteration < 0 ? t->numbers[i] : t->iteration;
    }
}

/* Graphs by place: where those of PyTorch differ, without the order that it takes for itself.
 */
static void
take_fingerprints (TdRanks *self, const TdRankRow *row, gint first, const gboolean *together,
                   guint64 *of)
{
  gboolean differ = FALSE;

  for (guint i = 0; i < self->n; i++)
    if (together[i])
      {
        of[i] = row->of[i]->fingerprint;
        differ = differ || of[i] != row->of[first]->fingerprint;
      }
  for (guint i = 0; differ && i < self->n; i++)
    if (together[i] && td__ranks_is_of_framework (self, i))
      of[i] = td__ranks_hash_order (self, i, row->of[i]->number);
}

static void
compare_graphs (TdRanksGraphs *g, TdRanks *self, const TdRankRow *row, gint first,
                const gboolean *together)
{
  g_autofree guint64 *of = g_new0 (guint64, self->n);
  gboolean differ = FALSE;

  take_fingerprints (self, row, first, together, of);
  for (guint i = 0; i < self->n; i++)
    if (together[i])
      {
        see (g, i, i == (guint)first, of[first], of[i]);
        differ = differ || of[i] != of[first];
      }
  if (g->n_steps++ == 0)
    g->first_differs = differ;
  g->n_differ += differ;
  if (differ)
    compare_training (g, self, row, together);
  g->training.n_since += g->training.iteration >= 0;
  if (!differ || g->iteration >= 0)
    return;
  g->iteration = row->of[first]->number;
  g->after = g->last;
  for (guint i = 0; i < self->n; i++)
    {
      g->numbers[i] = together[i] ? row->of[i]->number : -1;
      g->fingerprints[i] = of[i];
    }
}

/* ---- inputs ---- */

/* Is it what ranks have in common only where they read the same examples? */
static gboolean
is_of_examples (const TdTapeVar *v, gint first_layer)
{
  return first_layer < 0 ? v->producer < 0 && v->category == TD_TAPE_CATEGORY_INPUT
                         : v->producer == first_layer;
}

/* What the numbers of all inputs are like, as one number; 0: they are not recorded. */
static guint64
hash_inputs (TdRanks *self, guint place, gint64 number)
{
  g_autoptr (TdIteration) loaded = td__ranks_load (self, place, number);
  const TdTapeIteration *it = loaded ? td_iteration_get_tape (loaded) : NULL;
  gint first = it && td__ranks_is_of_framework (self, place)
                   ? td__ranks_find_first_layer (loaded)
                   : -1;
  guint64 h = 0;

  for (guint i = 0; it && i < it->n_stats; i++)
    {
      const TdTapeStats *s = &it->stats[i];
      const TdTapeVar *v = &it->vars[s->var];
      const double of[] = { s->min, s->max, s->mean, s->m2, s->l2 };

      if (is_of_examples (v, first) && s->n > 1)
        h = td_tape_hash_bytes (td_tape_hash (h, s->n), of, sizeof of);
    }
  return h;
}

static void
take_inputs (TdRanksGraphs *g, TdRanks *self, const TdRankRow *row, const gboolean *together)
{
  for (guint i = 0; i < self->n; i++)
    if (together[i])
      g->inputs[i * INPUT_STEPS + g->n_inputs] = hash_inputs (self, i, row->of[i]->number);
  g->n_inputs++;
}

/* Equal in all steps, and not the same in each. */
static gboolean
read_the_same (const TdRanksGraphs *g, guint a, guint b)
{
  const guint64 *x = g->inputs + a * INPUT_STEPS, *y = g->inputs + b * INPUT_STEPS;

  for (guint k = 0; k < INPUT_STEPS; k++)
    if (x[k] == 0 || x[k] != y[k])
      return FALSE;
  return x[0] != x[1] || x[1] != x[2];
}

static void
say_same_inputs (const TdRanksGraphs *g, TdRanks *self)
{
  for (guint a = 0; a < self->n; a++)
    {
      g_autofree gboolean *same = g_new0 (gboolean, self->n);
      g_autofree char *names = NULL;
      guint n = 0;

      for (guint b = a + 1; b < self->n; b++)
        n += same[b] = read_the_same (g, a, b);
      if (n == 0)
        continue;
      same[a] = TRUE;
      names = td__ranks_dup_names (self, same);
      TdRanksFinding *f = td__ranks_add (self, TD_RANKS_SAME_DATA, TD_RANKS_WARNING, -1, same);
      f->sentence = g_strdup_printf (
          "%s read the same examples: the numbers of all their inputs are like each other's in "
          "the first %d steps",
          names, INPUT_STEPS);
      f->advice = g_strdup (td__ranks_advice (self, TD_RANKS_DEAL_OUT));
      return;
    }
}

/* ---- a step ---- */

void
td__ranks_graphs_look (TdRanksGraphs *g, TdRanks *self, const TdRankRow *row,
                       const TdSumTable *table)
{
  g_autofree gboolean *together = g_new0 (gboolean, self->n);
  gint first = find_together (self, table, together);
  gboolean stats = TRUE;

  if (first < 0)
    return;
  for (guint i = 0; i < self->n; i++)
    {
      together[i] = together[i] && !row->of[i]->is_partial;
      stats = stats && (!together[i] || (row->of[i]->flags & TD_TAPE_ITERATION_STATS));
    }
  if (!together[first] || self->steps_said) /* from there on they have other steps in a row */
    return;
  compare_graphs (g, self, row, first, together);
  td__ranks_attrs_look (g->attrs, self, row, (guint)first, together);
  for (guint i = (guint)first + 1; i < self->n; i++)
    if (together[i] && row->of[i]->fingerprint_dims != row->of[first]->fingerprint_dims)
      td__ranks_batches_look (g->batches, self, row, (guint)first, i, g->last);
  if (stats && g->n_inputs < INPUT_STEPS)
    take_inputs (g, self, row, together);
  g->last = row->number;
}

/* ---- what differs ---- */

/* "rank 1 took the branch at model.c:37 (...)": which way through the source the second rank
 * went that the first did not. Owner: the caller; "" unknown. */
static char *
dup_way (const TdRanks *self, const TdDiff *diff, guint b, char **site)
{
  if (diff->cause.kind == TD_DIFF_CAUSE_NONE || !diff->cause.text || !*diff->cause.text)
    return g_strdup ("");
  if (*diff->cause.file)
    {
      g_autofree char *file = g_path_get_basename (diff->cause.file);

      g_free (*site);
      *site = g_strdup_printf ("%s:%u", file, diff->cause.line);
    }
  return g_strdup_printf ("rank %u %s, ", self->tapes[b].open.rank, diff->cause.text);
}

/* Does a gradient or an update come of it, on the side that has it? */
static gboolean
is_trained (const TdDiff *diff, const TdDiffPair *pair, gboolean *const *trained)
{
  for (guint side = TD_DIFF_A; side <= TD_DIFF_B; side++)
    {
      const TdTapeIteration *it = td_iteration_get_tape (diff->side[side]);
      const TdTapeEvent *e = pair->event[side] < 0 ? NULL : &it->events[pair->event[side]];

      for (guint k = 0; e && k < e->n_out; k++)
        if (trained[side][it->outs[e->first_out + k]])
          return TRUE;
    }
  return FALSE;
}

/* What a fingerprint has. Attributes it has none of, and of a shape the number of dimensions:
 * both follow, too, from which examples a rank draws, and how many. */
static gboolean
is_of_graph (const TdDiffPair *pair)
{
  return pair->kind != TD_DIFF_CHANGED
         || (pair->aspects
             & ~(guint)(TD_DIFF_NUMBERS | TD_DIFF_MODE | TD_DIFF_ATTRIBUTES | TD_DIFF_SHAPE));
}

/* Nor may it be called another graph where nothing else is known: not in PyTorch, whose
 * examples come from operations. */
static gboolean
is_of_examples_only (const TdDiffPair *pair)
{
  return pair->kind == TD_DIFF_CHANGED
         && !(pair->aspects & ~(guint)(TD_DIFF_NUMBERS | TD_DIFF_MODE | TD_DIFF_ATTRIBUTES));
}

/* Of those of the graph, else of all, the first that trains, else the first. NULL: there is
 * none. */
static const TdDiffPair *
find_pair (const TdDiff *diff, gboolean of_framework, gboolean *trains)
{
  g_autofree gboolean *a = td__ranks_mark_trained (diff->side[TD_DIFF_A]),
                      *b = td__ranks_mark_trained (diff->side[TD_DIFF_B]);
  gboolean *const trained[2] = { a, b };
  const TdDiffPair *first = NULL;

  for (guint pass = 0; pass < 2 && !first; pass++)
    for (guint i = 0; i < diff->n_items; i++)
      {
        const TdDiffPair *p = &diff->pairs[diff->items[i]];

        if ((p->kind == TD_DIFF_CHANGED && p->aspects == TD_DIFF_NUMBERS)
            || (pass == 0 && !is_of_graph (p)) || (of_framework && is_of_examples_only (p)))
          continue;
        first = first ? first : p;
        *trains = is_trained (diff, p, trained);
        if (*trains)
          return p;
      }
  return first;
}

/* "between ranks 0 and 1 sgd at model.c:88 reads other variables": a gradient that was added
 * to, as no operation of its own. Owner: the caller. NULL: there is none. */
static char *
dup_other_input (const TdRanks *self, const TdDiff *diff, guint a, guint b, gboolean *trains,
                 char **site)
{
  const TdIteration *y = diff->side[TD_DIFF_B];
  gint e = td__ranks_find_other_input (diff->side[TD_DIFF_A], y);
  g_autofree char *at = e < 0 ? NULL : td_iteration_dup_site (y, (guint)e);

  if (e < 0)
    return NULL;
  *trains = td_iteration_get_tape (y)->events[e].phase != TD_TAPE_PHASE_FORWARD;
  *site = *at ? g_path_get_basename (at) : NULL;
  return g_strdup_printf ("between ranks %u and %u %s%s%s differs first: it reads or writes "
                          "other variables",
                          self->tapes[a].open.rank, self->tapes[b].open.rank,
                          td_iteration_get_op_name (y, (guint)e), *site ? " at " : "",
                          *site ? *site : "");
}

/* Is there another operation behind forward? Other numbers and shapes are of the examples that
 * each rank has of its own: they make no other graph. */
static gboolean
differs_after_forward (const TdDiff *diff)
{
  for (guint i = 0; i < diff->n_pairs; i++)
    {
      const TdDiffPair *p = &diff->pairs[i];
      guint of = p->event[TD_DIFF_A] >= 0 ? TD_DIFF_A : TD_DIFF_B;

      if (p->kind != TD_DIFF_SAME && is_of_graph (p)
          && td_iteration_get_tape (diff->side[of])->events[p->event[of]].phase
                 != TD_TAPE_PHASE_FORWARD)
        return TRUE;
    }
  return FALSE;
}

/* "of ranks 0 and 1 only rank 1 runs relu at model.c:12". Says whether backward differs, too,
 * whether it is of what trains, and where. Owner: the caller. NULL: nothing can be said. */
static char *
dup_first_difference (TdRanks *self, guint a, guint b, const gint64 *numbers,
                      gboolean *backward, gboolean *trains, char **site)
{
  g_autoptr (TdIteration) x = td__ranks_load (self, a, numbers[a]),
                          y = td__ranks_load (self, b, numbers[b]);
  g_autoptr (TdDiff) diff = NULL;
  g_autofree char *title = NULL, *at = NULL, *base = NULL, *way = NULL;
  const TdDiffPair *pair = NULL;
  guint side;

  *backward = *trains = FALSE;
  if (!x || !y)
    return NULL;
  diff = td_diff_new (x, y, self->tapes[a].reader, self->tapes[b].reader);
  *backward = differs_after_forward (diff);
  pair = find_pair (diff, td__ranks_is_of_framework (self, a), trains);
  if (!pair)
    return dup_other_input (self, diff, a, b, trains, site);
  side = pair->event[TD_DIFF_A] >= 0 ? TD_DIFF_A : TD_DIFF_B;
  title = td_diff_dup_title (diff, pair);
  at = td_diff_dup_site (diff, pair, side);
  base = *at ? g_path_get_basename (at) : NULL;
  *site = g_strdup (base);
  way = dup_way (self, diff, b, site);
  if (pair->kind == TD_DIFF_REMOVED || pair->kind == TD_DIFF_ADDED)
    return g_strdup_printf ("%sof ranks %u and %u only rank %u runs %s%s%s", way,
                            self->tapes[a].open.rank, self->tapes[b].open.rank,
                            self->tapes[side == TD_DIFF_A ? a : b].open.rank, title,
                            base ? " at " : "", base ? base : "");
  g_autofree char *what = td_diff_dup_what (diff, pair);
  return g_strdup_printf ("%sbetween ranks %u and %u %s%s%s differs first (%s)", way,
                          self->tapes[a].open.rank, self->tapes[b].open.rank, title,
                          base ? " at " : "", base ? base : "", what);
}

/* The rank without the gradient lacks an operation: it is said with that. */
static TdRanksFinding *
find_absent (const TdRanks *self)
{
  for (guint i = 0; i < self->findings->len; i++)
    if (g_array_index (self->findings, TdRanksFinding, i).cause == TD_RANKS_ABSENT)
      return &g_array_index (self->findings, TdRanksFinding, i);
  return NULL;
}

/* In all steps but perhaps the first, in which gradients that were never cleared are none yet.
 */
static gboolean
is_always (const TdRanksGraphs *g)
{
  return g->n_differ > 2 && g->n_differ + (g->first_differs ? 0 : 1) >= g->n_steps
         && !g->changes && 2 * g->n_kinds <= g->n_steps;
}

/* From one step on, to the end, on the same ranks. */
static gboolean
lasts (const Training *t)
{
  return t->n >= LASTING && t->n == t->n_since && !t->moves;
}

/* What ranks do beside training may differ before what trains does: of that there is more to
 * say. */
static void
put_training_first (TdRanksGraphs *g, guint n)
{
  const Training *t = &g->training;

  if (t->iteration <= g->iteration)
    return;
  g->iteration = t->iteration;
  g->after = t->after;
  g->n_differ = t->n;
  memcpy (g->numbers, t->numbers, n * sizeof *t->numbers);
  memcpy (g->fingerprints, t->fingerprints, n * sizeof *t->fingerprints);
}

static void
say_graphs (TdRanksGraphs *g, TdRanks *self)
{
  g_autofree guint *classes = g_new (guint, self->n);
  g_autofree char *what = NULL, *names = NULL, *when = NULL;
  char *site = NULL;
  TdRanksFinding *absent = find_absent (self), *f;
  gboolean always = is_always (g) || lasts (&g->training), backward = FALSE, trains = FALSE;
  guint n = 0, a, b;
  TdRankVote vote;

  for (guint i = 0; i < self->n; i++)
    {
      classes[i] = TD_RANKS_NO_CLASS;
      for (guint j = 0; g->numbers[i] >= 0 && j < i; j++)
        if (g->numbers[j] >= 0 && g->fingerprints[j] == g->fingerprints[i])
          classes[i] = classes[j];
      if (g->numbers[i] >= 0 && classes[i] == TD_RANKS_NO_CLASS)
        classes[i] = n++;
    }
  td__rank_vote_init (&vote, classes, self->n);
  if (td__rank_vote_choose_pair (&vote, &a, &b))
    what = dup_first_difference (self, a, b, g->numbers, &backward, &trains, &site);
  if (absent && absent->iteration == g->iteration && what)
    {
      g_autofree char *before = absent->sentence;

      absent->sentence = g_strdup_printf ("%s; %s", before, what);
      absent->site = site;
      td__rank_vote_clear (&vote);
      return;
    }
  names = td__ranks_dup_names_do (self, vote.odd, " runs", " run");
  when = td__ranks_dup_when (g->iteration, g->after);
  f = td__ranks_add (self, TD_RANKS_GRAPHS,
                     always && (backward || trains) ? TD_RANKS_WARNING : TD_RANKS_NOTE,
                     g->iteration, vote.odd);
  f->after = g->after;
  f->site = site;
  f->sentence = g_strdup_printf (
      "%s %s%s%s%s%s; so in %u of %u steps", names,
      vote.has_majority ? "another graph than the others " : "different graphs ", when,
      what ? ": " : "", what ? what : "", backward ? "; backward differs, too" : "",
      g->n_differ, g->n_steps);
  if (f->level == TD_RANKS_WARNING)
    f->advice = g_strdup ("All ranks should train the same model: look for if (rank == ...)");
  td__rank_vote_clear (&vote);
}

void
td__ranks_graphs_end (TdRanksGraphs *g, TdRanks *self)
{
  if (!is_always (g))
    put_training_first (g, self->n);
  if (g->iteration >= 0)
    say_graphs (g, self);
  td__ranks_attrs_end (g->attrs, self);
  td__ranks_batches_end (g->batches, self);
  if (g->n_inputs == INPUT_STEPS && !td__ranks_has (self, TD_RANKS_SAME_DATA))
    say_same_inputs (g, self);
  graphs_free (g);
}
