/*
 * Which holders grow: by the last steps from mark to mark, and by the quarters of a run; in
 * arrays, and in bytes of arrays that become larger.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-holders-private.h"

#define OLD_ENOUGH 8 /* iterations whose arrays are still there, or that bytes came in */
#define STEPS 8
#define FEWEST_STEPS 3
#define QUARTERS 4

/* What is looked at over the marks. */
typedef struct
{
  const TdHolder *h;
  const TdHoldersMark *marks;
  guint n_marks, birth; /* the first mark with an array */
  gboolean in_bytes;
} Series;

static guint64
amount (const Series *s, guint mark)
{
  return s->in_bytes ? s->h->bytes[mark] : s->h->n_objects[mark];
}

static guint
find_birth (const TdHolder *h)
{
  guint at = 0;

  while (h->n_objects[at] == 0)
    at++;
  return at;
}

/* More in nearly every one of the last steps since the first array, and far more than there
 * has ever been before it became fewer, as looks miss when there was most: a list that is given
 * up now and then grows no further than the last time. */
static gboolean
grows_in_steps (const Series *s)
{
  guint last = s->n_marks - 1, steps = MIN (STEPS, s->n_marks - MAX (s->birth, 1));
  guint up = 0;
  guint64 peak = 0;

  for (guint i = last - steps; i < last; i++)
    up += amount (s, i + 1) > amount (s, i);
  for (guint i = 0; i < last; i++)
    if (amount (s, i + 1) < amount (s, i))
      peak = MAX (peak, amount (s, i));
  return steps >= FEWEST_STEPS && up + (steps == STEPS) >= steps && amount (s, last) > 2 * peak;
}

/* What many groups have together rises while one after the other begins, and comes and goes in
 * more ways than one of them: here every quarter lies above the one before it, and the last one
 * rises at least half as much as the others. */
static gboolean
rises_steadily (const guint64 *least, const guint64 *most)
{
  const guint last = QUARTERS - 1;

  for (guint q = 0; q < last; q++)
    if (least[q + 1] <= most[q])
      return FALSE;
  return (most[last] - most[last - 1]) * 2 * last >= most[last] - most[0];
}

/* From the first array on, in every quarter of the iterations both the fewest and the most are
 * more than in the quarter before: growth now and then, or under what comes and goes. Bytes
 * vary with what a program is given: of these the fewest are in the end more than the most in
 * the beginning. */
static gboolean
grows_in_the_long_run (const Series *s)
{
  const TdHoldersMark *marks = s->marks;
  guint64 least[QUARTERS], most[QUARTERS] = { 0 };
  gint64 length = marks[s->n_marks - 1].iteration - marks[s->birth].iteration + 1;

  for (guint q = 0; q < QUARTERS; q++)
    least[q] = G_MAXUINT64;
  for (guint i = s->birth; i < s->n_marks; i++)
    {
      guint q = (guint)((marks[i].iteration - marks[s->birth].iteration) * QUARTERS / length);

      least[q] = MIN (least[q], amount (s, i));
      most[q] = MAX (most[q], amount (s, i));
    }
  for (guint q = 0; q + 1 < QUARTERS; q++)
    if (least[q + 1] == G_MAXUINT64 || least[q + 1] <= least[q] || most[q + 1] <= most[q])
      return FALSE;
  if (s->h->together)
    return rises_steadily (least, most);
  return (s->in_bytes ? least[QUARTERS - 1] : 2 * least[QUARTERS - 1]) > most[0];
}

/* Arrays are of so many iterations; bytes came in so many, in whatever array they are now. */
static guint
count_iterations (const Series *s)
{
  return s->in_bytes
             ? (guint)(s->marks[s->n_marks - 1].iteration - s->marks[s->birth].iteration + 1)
             : s->h->n_iterations;
}

static gboolean
grows (const Series *s)
{
  return count_iterations (s) >= OLD_ENOUGH
         && (grows_in_steps (s) || grows_in_the_long_run (s));
}

/* More at every look since the first array, of which there are too few to judge by. */
static gboolean
may_grow (const Series *s)
{
  for (guint i = s->birth; i + 1 < s->n_marks; i++)
    if (amount (s, i + 1) <= amount (s, i))
      return FALSE;
  return count_iterations (s) >= 2 && s->birth + 1 < s->n_marks
         && (count_iterations (s) < OLD_ENOUGH || s->n_marks - 1 - s->birth < FEWEST_STEPS);
}

void
td__holder_judge (TdHolder *h, const TdHoldersMark *marks, guint n_marks)
{
  guint first = n_marks - 1 - MIN (STEPS, n_marks - 1);
  guint64 now = h->bytes[n_marks - 1];

  for (guint in_bytes = 0; in_bytes < 2 && now > 0; in_bytes++)
    {
      const Series s = { h, marks, n_marks, find_birth (h), in_bytes == 1 };

      h->grows = h->grows || grows (&s);
      h->may_grow = h->may_grow || may_grow (&s);
    }
  h->may_grow = h->may_grow && !h->grows;
  if (now > h->bytes[first])
    h->bytes_per_iteration = (double)(now - h->bytes[first])
                             / (double)(marks[n_marks - 1].iteration - marks[first].iteration);
}
