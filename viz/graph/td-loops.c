/* Finding loops. C's `for` leaves no trace, so a loop begins as a stretch in which (site,
 * operation) repeats exactly. From there it grows, turn by turn, both ways: over equal turns,
 * and over turns that share most of their code with them. The first turn of a recurrent network
 * has no state to read, the first loss has no sum to be added to, the last layer has no
 * activation: these are turns of the loop, too.
 *
 * Where a turn begins cannot be seen in a stretch: of the places where it may, the one that
 * makes most of the items turns, and fewest of the turns odd, is right; of several such, the
 * one at which the program goes back to the smallest line.
 *
 * SPDX-License-Identifier: MIT */
#include "graph/td-loops.h"

#include <string.h>

#define MIN_TURNS 3
#define MAX_PERIOD 256
/* As many equal turns are looked for first, as many then: what a few odd turns have in common
 * must not cut the loop that they are in. Two are a loop only with odd ones that join them. */
static const guint seeds[] = { 8, 4, MIN_TURNS, 2 };
#define MAX_STARTS 8 /* places in a stretch at which its turns may begin that are tried */

/* What standing for each other is worth, in two turns: the same code, the same name or place,
 * the same operation in another place; and what is lost by something without a partner. */
#define SAME_CODE 4
#define SAME_PLACE 2
#define SAME_OP 1
#define NO_PARTNER 2

typedef struct
{
  TdLoops *result;
  TdIteration *iteration;
  const TdTapeIteration *tape;
  const TdLayer *layers;
  const TdLoopItem *items;
  guint n;
  guint floor, end; /* where a loop may be: between those found before */
} Finder;

/* What turns are compared with: items[first], ... */
typedef struct
{
  guint first, period;
  const char *file; /* of the lines; NULL: none is known */
  guint min_line, max_line;
  guint weight;                 /* operations */
  gboolean has_first, has_last; /* only once: then no turn goes on behind or before another */
} Step;

/* ---- one item ---- */

/* Where it is written; of a call: where it is made, not what it does. */
static const char *
line_of (const Finder *f, const TdLoopItem *item, guint *line)
{
  guint32 site
      = item->layer >= 0 ? f->layers[item->layer].site : f->tape->events[item->event].site;
  guint32 at = 0;
  const char *file;

  file = site ? td_iteration_get_site (f->iteration, site, &at) : "";
  *line = at;
  return file;
}

/* How long the name is without the number at its end. */
static gsize
stem_length (const char *name)
{
  gsize n = strlen (name);

  while (n > 0 && g_ascii_isdigit (name[n - 1]))
    n--;
  return n;
}

static gboolean
have_one_stem (const char *a, const char *b)
{
  gsize n = stem_length (a);

  return strcmp (a, b) == 0 || (n > 0 && n == stem_length (b) && strncmp (a, b, n) == 0);
}

static gint
compare_items (const Finder *f, const TdLoopItem *a, const TdLoopItem *b, gboolean has_lines)
{
  if (a->token == b->token)
    return SAME_CODE;
  if ((a->layer < 0) != (b->layer < 0))
    return 0;
  if (a->layer >= 0)
    {
      const TdLayer *x = &f->layers[a->layer], *y = &f->layers[b->layer];

      /* calls of one operation are that operation, so their place has to be the same */
      return x->is_link == y->is_link && have_one_stem (x->name, y->name)
                     && ((a->n_ops > 1 && b->n_ops > 1) || (x->site && x->site == y->site))
                 ? SAME_PLACE
                 : 0;
    }
  if (has_lines && f->tape->events[a->event].site
      && f->tape->events[a->event].site == f->tape->events[b->event].site)
    return SAME_PLACE;
  return f->tape->events[a->event].opdef == f->tape->events[b->event].opdef ? SAME_OP : 0;
}

static gboolean
are_equal (const Finder *f, guint a, guint b, guint n)
{
  for (guint i = 0; i < n; i++)
    if (f->items[a + i].token != f->items[b + i].token)
      return FALSE;
  return TRUE;
}

/* Does the program go back between the two, as from a loop's end to its beginning? */
static gboolean
goes_back (const Finder *f, guint before, guint after)
{
  guint a, b;
  const char *file = line_of (f, &f->items[before], &a);

  return strcmp (file, line_of (f, &f->items[after], &b)) == 0 && b < a && b > 0;
}

/* ---- a step, and turns that are like it ---- */

static Step
step_at (const Finder *f, guint first, guint period)
{
  Step step = { .first = first, .period = period, .has_first = TRUE, .has_last = TRUE };

  for (guint i = first; i < first + period; i++)
    {
      guint line;
      const char *file = line_of (f, &f->items[i], &line);

      step.weight += f->items[i].n_ops;
      if (i > first && f->items[i].token == f->items[first].token)
        step.has_first = FALSE;
      if (i + 1 < first + period && f->items[i].token == f->items[first + period - 1].token)
        step.has_last = FALSE;
      if (line == 0 || (step.file && strcmp (step.file, file) != 0))
        continue;
      step.min_line = step.file ? MIN (step.min_line, line) : line;
      step.max_line = step.file ? MAX (step.max_line, line) : line;
      step.file = file;
    }
  return step;
}

/* All of a library's link is on the line that calls it, which then says nothing. */
static gboolean
has_lines (const Step *step)
{
  return step->file && step->min_line < step->max_line;
}

static gboolean
is_on_its_lines (const Finder *f, const Step *step, guint item)
{
  guint line;
  const char *file = line_of (f, &f->items[item], &line);

  return has_lines (step) && f->items[item].layer < 0 && strcmp (step->file, file) == 0
         && line >= step->min_line && line <= step->max_line;
}

/* How well the items of a turn stand for those of the step, in operations. */
typedef struct
{
  gint score;
  guint same;            /* that do */
  guint inside, outside; /* that do not: on the lines of the step, elsewhere */
} Match;

static void
keep_better (Match *best, const Match *match)
{
  if (match->score > best->score || (match->score == best->score && match->same > best->same))
    *best = *match;
}

/* Not less than half of the step, and not much besides. */
static gboolean
is_alike (const Step *step, const Match *match)
{
  guint most = MAX (step->weight, match->same + match->outside);

  return match->same >= (most < 4 ? most / 2 + 1 : (most + 1) / 2)
         && match->outside <= MAX (2, step->weight / 3)
         && match->inside <= MAX (4, step->weight / 2);
}

/* Let the item stand for one of the step's. Return TRUE if it does. */
static gboolean
match_pair (const Finder *f, const Step *step, const TdLoopItem *item, guint index,
            Match *match)
{
  const TdLoopItem *other = &f->items[step->first + index];
  gint worth = compare_items (f, item, other, has_lines (step));

  match->score = worth > 0 ? match->score + worth : G_MININT / 2;
  if (worth > SAME_OP)
    match->same += MAX (item->n_ops, other->n_ops);
  else
    match->outside += item->n_ops;
  return worth > SAME_OP;
}

/* Does a turn that ends (begins, direction -1) with this item have an equal one beside it? */
static gboolean
is_beside_equal (const Finder *f, const Step *step, guint index, gint direction)
{
  if (direction > 0)
    return index + 1 + step->period <= f->end
           && are_equal (f, index + 1, step->first, step->period);
  return index >= f->floor + step->period
         && are_equal (f, index - step->period, step->first, step->period);
}

static gboolean
is_in_next_turn (const Finder *f, const Step *step, guint index, gint direction)
{
  guint edge = direction > 0 ? step->first : step->first + step->period - 1;

  return (direction > 0 ? step->has_first : step->has_last)
         && f->items[index].token == f->items[edge].token;
}

/* The turn that begins at item `at` and goes on (direction 1), or that ends before it
 * (direction -1). Return how many it has; 0: none is alike. */
static guint
find_turn (const Finder *f, const Step *step, guint at, gint direction)
{
  Match row[MAX_PERIOD + 1], best = { .score = G_MININT };
  guint room = direction > 0 ? f->end - at : at - f->floor;
  guint n = MIN (room, step->period * 2 + 2), length = 0;
  gboolean begun = FALSE;

  if (step->weight == 1) /* any operation would be a turn of it */
    return 0;
  for (guint j = 0; j <= step->period; j++)
    row[j] = (Match){ .score = -(gint)(NO_PARTNER * j) };
  for (guint k = 0; k < n; k++)
    {
      guint index = direction > 0 ? at + k : at - 1 - k;
      const TdLoopItem *item = &f->items[index];
      gboolean inside = is_on_its_lines (f, step, index);
      Match diagonal = row[0];

      if (begun && is_in_next_turn (f, step, index, direction))
        break;

      for (guint j = 0; j <= step->period; j++)
        {
          Match alone = row[j], missing, pair = diagonal;

          alone.score -= inside ? 0 : NO_PARTNER;
          *(inside ? &alone.inside : &alone.outside) += item->n_ops;
          diagonal = row[j];
          row[j] = alone;
          if (j == 0)
            continue;
          missing = row[j - 1];
          missing.score -= NO_PARTNER;
          keep_better (&row[j], &missing);
          begun |= match_pair (f, step, item, direction > 0 ? j - 1 : step->period - j, &pair);
          keep_better (&row[j], &pair);
        }
      if (!is_alike (step, &row[step->period]))
        continue;
      if (is_beside_equal (f, step, index, direction))
        return k + 1;
      if (row[step->period].score > best.score)
        {
          best = row[step->period];
          length = k + 1;
        }
    }
  if (length == 0)
    return 0;
  /* and what is written between the lines of the step, as long as the program goes on */
  while (length < n)
    {
      guint next = direction > 0 ? at + length : at - 1 - length;

      if (!is_on_its_lines (f, step, next) || is_in_next_turn (f, step, next, direction)
          || (direction > 0 ? goes_back (f, next - 1, next) : goes_back (f, next, next + 1)))
        break;
      length++;
    }
  return length;
}

/* How many items from `first` on repeat with this period. */
static guint
measure_stretch (const Finder *f, guint first, guint period)
{
  guint length = period;

  while (first + length < f->end
         && f->items[first + length].token == f->items[first + length - period].token)
    length++;
  return length;
}

/* Is what begins here rather a loop of its own than a turn of `length` items? Two odd turns may
 * be equal. */
static gboolean
begins_another (const Finder *f, guint at, guint length)
{
  for (guint p = 1; p <= MAX_PERIOD && at + 2 * p <= f->end; p++)
    if (2 * p > length && f->items[at + p].token == f->items[at].token
        && measure_stretch (f, at, p) >= (p == length ? MIN_TURNS : 2) * p)
      return TRUE;
  return FALSE;
}

/* The same for what ends here. */
static gboolean
ends_another (const Finder *f, guint at, guint length)
{
  return at >= f->floor + MIN_TURNS * length
         && are_equal (f, at - 2 * length, at - length, length)
         && are_equal (f, at - 3 * length, at - length, length);
}

/* ---- one loop ---- */

/* A loop as it grows. */
typedef struct
{
  GArray *turns; /* TdLoopTurn */
  guint first, end;
  guint n_differ;
  guint n_odd; /* in a row, at the end that grows */
  gint score;
  guint line; /* of its step; 0: the program does not go back to it */
} Growth;

static void
put_turn (Growth *growth, guint first, guint n, gboolean differs, gboolean in_front)
{
  TdLoopTurn turn = { first, n, differs };

  if (in_front)
    g_array_prepend_val (growth->turns, turn);
  else
    g_array_append_val (growth->turns, turn);
  growth->first = MIN (growth->first, first);
  growth->end = MAX (growth->end, first + n);
  growth->n_differ += differs;
  growth->n_odd = differs ? growth->n_odd + 1 : 0;
}

/* Some odd turns in a row are the beginning or the end of a loop; more of them are no loop. Of
 * like calls, as of the blocks of a network, nearly half may differ. */
static gboolean
may_differ (const Growth *growth, const Step *step, gboolean is_beside_equal)
{
  guint n_equal = growth->turns->len - growth->n_differ + is_beside_equal;

  return growth->n_differ + 1 < n_equal && growth->n_odd < MAX (2, n_equal / 4)
         && (step->period == 1 || growth->n_differ < MAX (2, n_equal / 2));
}

static void
drop_odd (Growth *growth, gboolean in_front)
{
  for (; growth->n_odd > 0; growth->n_odd--, growth->n_differ--)
    {
      guint last = growth->turns->len - 1;

      if (in_front)
        growth->first += g_array_index (growth->turns, TdLoopTurn, 0).n;
      else
        growth->end -= g_array_index (growth->turns, TdLoopTurn, last).n;
      g_array_remove_index (growth->turns, in_front ? 0 : last);
    }
}

static void
grow_on (const Finder *f, Growth *growth, const Step *step)
{
  guint p = step->period;

  for (;;)
    {
      guint at = growth->end, n;
      gboolean beside_equal;

      if (at + p <= f->end && are_equal (f, at, step->first, p))
        {
          put_turn (growth, at, p, FALSE, FALSE);
          continue;
        }
      n = find_turn (f, step, at, 1);
      if (n == 0)
        break;
      beside_equal = is_beside_equal (f, step, at + n - 1, 1);
      if (!beside_equal && begins_another (f, at, n))
        break;
      if (!may_differ (growth, step, beside_equal))
        {
          drop_odd (growth, FALSE);
          break;
        }
      put_turn (growth, at, n, TRUE, FALSE);
    }
  growth->n_odd = 0;
}

static void
grow_back (const Finder *f, Growth *growth, const Step *step)
{
  guint p = step->period;

  for (;;)
    {
      guint at = growth->first, n;
      gboolean beside_equal;

      if (at >= f->floor + p && are_equal (f, at - p, step->first, p))
        {
          put_turn (growth, at - p, p, FALSE, TRUE);
          continue;
        }
      n = find_turn (f, step, at, -1);
      if (n == 0)
        break;
      beside_equal = is_beside_equal (f, step, at - n, -1);
      if (!beside_equal && ends_another (f, at, n))
        break;
      if (!may_differ (growth, step, beside_equal))
        {
          drop_odd (growth, TRUE);
          break;
        }
      put_turn (growth, at - n, n, TRUE, TRUE);
    }
}

/* The step itself in a turn that does something before it or behind it; else all of the turn.
 */
static TdLoopTurn
find_core (const Finder *f, const TdLoopTurn *turn, const Step *step)
{
  for (guint i = 0; turn->differs && i + step->period <= turn->n; i++)
    if (are_equal (f, turn->first + i, step->first, step->period))
      return (TdLoopTurn){ turn->first + i, step->period, FALSE };
  return *turn;
}

/* What is between the steps of two turns was done by the first one, up to where the program
 * goes back. */
static void
cut_between (const Finder *f, Growth *growth, const Step *step)
{
  for (guint t = 1; t < growth->turns->len; t++)
    {
      TdLoopTurn *turn = &g_array_index (growth->turns, TdLoopTurn, t), *before = turn - 1;
      TdLoopTurn core = find_core (f, before, step);
      guint at = core.first + core.n, end = turn->first + turn->n;

      core = find_core (f, turn, step);
      while (at < core.first && !goes_back (f, at - 1, at))
        at++;
      before->n = at - before->first;
      turn->first = at;
      turn->n = end - at;
    }
  growth->n_differ = 0;
  for (guint t = 0; t < growth->turns->len; t++)
    {
      TdLoopTurn *turn = &g_array_index (growth->turns, TdLoopTurn, t);

      turn->differs
          = turn->n != step->period || !are_equal (f, turn->first, step->first, turn->n);
      growth->n_differ += turn->differs;
    }
}

static void
grow (const Finder *f, Growth *growth, guint first, guint period, guint length)
{
  Step step = step_at (f, first, period);
  guint line;

  growth->first = growth->end = first;
  while (growth->end + period <= first + length)
    put_turn (growth, growth->end, period, FALSE, FALSE);
  grow_on (f, growth, &step);
  grow_back (f, growth, &step);
  if (growth->n_differ > 0)
    cut_between (f, growth, &step);
  growth->score = (gint)(growth->end - growth->first) - (gint)growth->n_differ;
  line_of (f, &f->items[first], &line);
  growth->line = goes_back (f, first + period - 1, first) ? line : 0;
}

static gboolean
is_loop (const Finder *f, const Growth *growth)
{
  guint n = growth->turns->len, n_equal = n - growth->n_differ;
  gboolean of_one_op = TRUE;

  for (guint t = 0; t < n && of_one_op; t++)
    {
      const TdLoopTurn *turn = &g_array_index (growth->turns, TdLoopTurn, t);

      of_one_op = turn->n == 1 && f->items[turn->first].n_ops == 1;
    }
  return n >= MIN_TURNS && n_equal > growth->n_differ && n_equal >= (of_one_op ? MIN_TURNS : 2);
}

static gboolean
is_better (const Growth *a, const Growth *b)
{
  if (a->score != b->score)
    return a->score > b->score;
  return a->line > 0 && (b->line == 0 || a->line < b->line);
}

/* Loops that were found before are in the way, unless they are less than a turn: they may be
 * in one. */
static void
find_room (Finder *f, guint at, guint period)
{
  f->floor = 0;
  f->end = f->n;
  for (guint l = 0; l < f->result->loops->len; l++)
    {
      const TdLoop *loop = &g_array_index (f->result->loops, TdLoop, l);

      if (loop->n < period)
        continue;
      if (loop->first >= at)
        {
          f->end = loop->first;
          return;
        }
      f->floor = loop->first + loop->n;
    }
}

static gboolean
cuts_a_loop (const Finder *f, const Growth *growth)
{
  for (guint l = 0; l < f->result->loops->len; l++)
    {
      const TdLoop *loop = &g_array_index (f->result->loops, TdLoop, l);
      guint end = loop->first + loop->n;

      if ((loop->first < growth->first && growth->first < end)
          || (loop->first < growth->end && growth->end < end))
        return TRUE;
    }
  return FALSE;
}

/* In its place among the others; those in it are gone. */
static void
add_loop (Finder *f, const Growth *growth)
{
  TdLoop loop = { .first = growth->first, .n = growth->end - growth->first };
  guint at = 0;

  while (at < f->result->loops->len)
    {
      const TdLoop *other = &g_array_index (f->result->loops, TdLoop, at);

      if (other->first >= growth->end)
        break;
      if (other->first >= growth->first)
        g_array_remove_index (f->result->loops, at);
      else
        at++;
    }
  loop.first_turn = f->result->turns->len;
  loop.n_turns = growth->turns->len;
  loop.n_differ = growth->n_differ;
  while (g_array_index (growth->turns, TdLoopTurn, loop.equal).differs)
    loop.equal++;
  g_array_append_vals (f->result->turns, growth->turns->data, growth->turns->len);
  g_array_insert_val (f->result->loops, at, loop);
}

/* The loop that holds the stretch from `first` on. Return where it ends; 0: there is none. */
static guint
find_around (Finder *f, guint first, guint period)
{
  Growth best = { .score = G_MININT };
  guint n_starts = 0, length, end;

  find_room (f, first, period);
  length = measure_stretch (f, first, period);
  for (guint r = 0; r < period && r + period <= length && n_starts < MAX_STARTS; r++)
    {
      Growth growth = { .turns = NULL };

      if (r > 0 && !goes_back (f, first + r - 1, first + r) && r != length % period)
        continue;
      n_starts++;
      growth.turns = g_array_new (FALSE, FALSE, sizeof (TdLoopTurn));
      grow (f, &growth, first + r, period, length - r);
      if (is_loop (f, &growth) && !cuts_a_loop (f, &growth)
          && (!best.turns || is_better (&growth, &best)))
        {
          GArray *worse = best.turns;

          best = growth;
          growth.turns = worse;
        }
      if (growth.turns)
        g_array_free (growth.turns, TRUE);
    }
  if (!best.turns)
    return 0;
  add_loop (f, &best);
  end = best.end;
  g_array_free (best.turns, TRUE);
  return end;
}

/* Are two calls of one step members of one series, as "res2" and "res3"? Then a step is no
 * unit that anybody thinks of. */
static gboolean
cuts_series (const Finder *f, guint first, guint period)
{
  const char *stem = NULL;
  gsize length = 0;

  for (guint i = first; i < first + period; i++)
    {
      const char *name = f->items[i].layer >= 0 ? f->layers[f->items[i].layer].name : "";
      gsize n = stem_length (name);

      if (n == 0 || !name[n])
        continue;
      if (stem && n == length && strncmp (stem, name, n) == 0)
        return TRUE;
      stem = name;
      length = n;
    }
  return FALSE;
}

/* The loop that begins with, or around, `n_turns` equal turns from item `first` on: those that
 * cover most. Return where it ends; 0: there is none. */
static guint
find_at (Finder *f, guint first, guint n_turns)
{
  guint best = 0, covered = 0;

  for (guint p = 1; p <= MAX_PERIOD && first + p * n_turns <= f->end; p++)
    {
      guint length;

      if (f->items[first + p].token != f->items[first].token
          || f->items[first + p * (n_turns - 1)].token != f->items[first].token)
        continue;
      length = measure_stretch (f, first, p);
      length -= length % p;
      if (length / p < n_turns || length <= covered || cuts_series (f, first, p))
        continue;
      best = p;
      covered = length;
      if (p == 1)
        break;
    }
  return best > 0 ? find_around (f, first, best) : 0;
}

/* Behind the loop that `first` is in, if it is in one; else `first`. */
static guint
skip_loop (const Finder *f, guint first, guint *loop)
{
  while (*loop < f->result->loops->len
         && g_array_index (f->result->loops, TdLoop, *loop).first
                    + g_array_index (f->result->loops, TdLoop, *loop).n
                <= first)
    ++*loop;
  if (*loop < f->result->loops->len
      && g_array_index (f->result->loops, TdLoop, *loop).first <= first)
    return g_array_index (f->result->loops, TdLoop, *loop).first
           + g_array_index (f->result->loops, TdLoop, *loop).n;
  return first;
}

void
td__loops_find (TdLoops *self, TdIteration *iteration, const TdLayer *layers,
                const TdLoopItem *items, guint n)
{
  Finder f = { .result = self,
               .iteration = iteration,
               .tape = td_iteration_get_tape (iteration),
               .layers = layers,
               .items = items,
               .n = n };

  self->loops = g_array_new (FALSE, FALSE, sizeof (TdLoop));
  self->turns = g_array_new (FALSE, FALSE, sizeof (TdLoopTurn));
  for (guint pass = 0; pass < G_N_ELEMENTS (seeds); pass++)
    for (guint i = 0, loop = 0; i < n;)
      {
        guint next = skip_loop (&f, i, &loop), end;

        if (next > i)
          {
            i = next;
            continue;
          }
        f.floor = 0;
        f.end = n;
        end = find_at (&f, i, seeds[pass]);
        loop = end ? 0 : loop;
        i = MAX (i + 1, end);
      }
}

void
td__loops_clear (TdLoops *self)
{
  g_array_free (self->loops, TRUE);
  g_array_free (self->turns, TRUE);
}
