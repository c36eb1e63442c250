/* Summaries and curves as they come: in one order, each once, though they lie in two kinds of
 * segments and are written again where a tape with a budget is thinned; and the tally.
 * SPDX-License-Identifier: MIT */
#include "reader-private.h"

#include <stdlib.h>
#include <string.h>

static void
count_structures (TdTapeReader *r)
{
  const TdTapeSummary *rows = r->summaries.items;

  for (; r->n_counted < r->summaries.n; r->n_counted++)
    {
      const TdTapeSummary *s = &rows[r->n_counted];
      TdTapeStructure *structure
          = s->structure && s->structure <= r->structures.n
                ? (TdTapeStructure *)r->structures.items + (s->structure - 1)
                : NULL;

      /* What was cut off is no graph of its own. */
      if (r->n_counted > 0 && (s->flags & TD_TAPE_ITERATION_PARTIAL))
        continue;
      if (structure != NULL && structure->n_iterations++ == 0)
        structure->first_iteration = s->number;
    }
}

/* The tally knows of those that left no summary, too. */
static void
tally_structures (TdTapeReader *r)
{
  for (uint32_t i = 0; i < r->structures.n && i < TD_TAPE_TALLY_STRUCTURES; i++)
    {
      TdTapeStructure *structure = (TdTapeStructure *)r->structures.items + i;

      if (structure->n_iterations > 0 && r->tally.structures[i] > structure->n_iterations)
        structure->n_iterations = r->tally.structures[i];
    }
}

static int
by_number (const void *a, const void *b)
{
  const TdTapeSummary *x = a, *y = b;

  if (x->number != y->number)
    return x->number < y->number ? -1 : 1;
  return x->seq < y->seq ? -1 : x->seq > y->seq;
}

static int
by_iteration (const void *a, const void *b)
{
  const TdTapeReport *x = a, *y = b;

  if (x->iteration != y->iteration)
    return x->iteration < y->iteration ? -1 : 1;
  if (x->event != y->event)
    return x->event < y->event ? -1 : 1;
  if (x->key != y->key)
    return x->key < y->key ? -1 : 1;
  return memcmp (&x->value, &y->value, sizeof x->value);
}

static bool
in_order (const TapeArray *rows, size_t size, int (*compare) (const void *, const void *),
          uint32_t from)
{
  const char *at = rows->items;

  for (uint32_t i = from > 0 ? from : 1; i < rows->n; i++)
    if (compare (at + (i - 1) * size, at + i * size) >= 0)
      return false;
  return true;
}

/* Sort, and drop what is there twice. */
static void
put_in_order (TapeArray *rows, size_t size, int (*compare) (const void *, const void *))
{
  char *at = rows->items;
  uint32_t n = 0;

  qsort (at, rows->n, size, compare);
  for (uint32_t i = 0; i < rows->n; i++)
    if (n == 0 || compare (at + (n - 1) * size, at + i * size) != 0)
      memmove (at + n++ * size, at + i * size, size);
  rows->n = n;
}

/* Are there two kinds of segments with rows?  What one recorder wrote one behind the other
 * stays in its order. */
static bool
is_thinned (const TdTapeReader *r)
{
  for (uint32_t i = 0; i < r->n_seen; i++)
    if (r->seen[i].head.kind == TD_TAPE_SEGMENT_RECENT_INDEX)
      return true;
  return r->said_again || (r->has_tally && r->tally.stride > 1);
}

/* A recorder that says reports of an iteration in an order of its own is not put right: only
 * where the tape itself wrote them in another order are they sorted. */
static bool
iterations_in_order (const TapeArray *reports, uint32_t from)
{
  const TdTapeReport *rows = reports->items;

  for (uint32_t i = from > 0 ? from : 1; i < reports->n; i++)
    if (rows[i].iteration < rows[i - 1].iteration)
      return false;
  return true;
}

bool
td__tape_read_index (TdTapeReader *r)
{
  uint32_t summaries = r->summaries.n, reports = r->reports.n;
  bool any = td__tape_read_kind (r, TD_TAPE_SEGMENT_INDEX);
  const TdTapeSummary *rows;
  const TdTapeReport *curve;

  any |= td__tape_read_kind (r, TD_TAPE_SEGMENT_RECENT_INDEX);
  count_structures (r);
  tally_structures (r);
  if (!in_order (&r->summaries, sizeof *rows, by_number, summaries))
    {
      r->summaries_sorted = is_thinned (r) && r->summaries_sorted;
      if (r->summaries_sorted)
        put_in_order (&r->summaries, sizeof *rows, by_number);
      r->n_counted = r->summaries.n;
    }
  if (is_thinned (r) && !iterations_in_order (&r->reports, reports))
    put_in_order (&r->reports, sizeof *curve, by_iteration);
  r->reports_sorted = r->reports_sorted && iterations_in_order (&r->reports, reports);
  rows = r->summaries.items;
  curve = r->reports.items;
  if (r->summaries.n > 0 && rows[r->summaries.n - 1].number >= r->known_through)
    r->known_through = rows[r->summaries.n - 1].number + 1;
  if (r->reports.n > reports && curve[r->reports.n - 1].iteration >= r->reported_through)
    r->reported_through = curve[r->reports.n - 1].iteration + 1;
  return any;
}

void
td__tape_add_rows (TdTapeReader *r, const TdTapeSummary *rows, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    td__tape_take_frame (r,
                         &(TdTapeFrame){ .type = TD_TAPE_FRAME_SUMMARY,
                                         .len = sizeof (TdTapeFrame) + sizeof *rows },
                         (const char *)&rows[i], (TapeSpot){ 0 });
  count_structures (r);
  tally_structures (r);
  if (r->summaries_sorted && r->summaries.n > 0)
    put_in_order (&r->summaries, sizeof *rows, by_number);
  r->n_counted = r->summaries.n;
  rows = r->summaries.items;
  if (r->summaries.n > 0 && rows[r->summaries.n - 1].number >= r->known_through)
    r->known_through = rows[r->summaries.n - 1].number + 1;
  td__tape_thin (r);
}

void
td__tape_read_tally (TdTapeReader *r)
{
  TdTapeTally tally;

  for (int try = 0; try < 4; try++)
    if (td__tape_pread (r->fd, &tally, sizeof tally, TD_TAPE_TALLY_OFFSET)
        && tally.crc == td__tape_crc (0, &tally, offsetof (TdTapeTally, crc)))
      {
        r->tally = tally;
        r->has_tally = true;
        return;
      }
}

/* Does the summary's frame lie where iterations are, as far as was seen? */
static bool
lies_there (const TdTapeReader *r, const TdTapeSummary *s)
{
  uint32_t low = 0, high = r->n_seen;

  if (s->flags & TD_TAPE_ITERATION_NOT_STORED)
    return false;
  while (low + 1 < high)
    {
      uint32_t middle = low + (high - low) / 2;

      if (r->seen[middle].offset <= s->offset)
        low = middle;
      else
        high = middle;
    }
  return low < r->n_seen
         && (r->seen[low].head.kind == TD_TAPE_SEGMENT_KEPT
             || r->seen[low].head.kind == TD_TAPE_SEGMENT_RECENT)
         && (int32_t)(s->seq - r->seen[low].head.first_seq) >= 0;
}

TdTapeThinning
td_tape_reader_thinning (TdTapeReader *r)
{
  const TdTapeSummary *rows = r->summaries.items;
  TdTapeThinning t = { .n_iterations = r->summaries.n,
                       .n_summaries = r->summaries.n,
                       .stride = 1,
                       .first_whole = UINT64_MAX };
  /* Of a damaged tape each is looked for. */
  const bool damaged = r->damage != NULL || r->tally.repaired != 0;

  if (r->has_tally)
    {
      t.n_operations = r->tally.n_operations;
      t.stride = r->tally.stride ? r->tally.stride : 1;
      if (r->tally.n_iterations > t.n_iterations)
        t.n_iterations = r->tally.n_iterations;
    }
  for (uint32_t i = 0; i < r->summaries.n; i++)
    if (damaged ? td_tape_reader_stored (r, i) : lies_there (r, &rows[i]))
      t.n_whole++;
    else if (damaged)
      t.n_lost += td__tape_was_lost (r, &rows[i]);
  t.n_lost += r->tally.n_lost;
  if (r->damage != NULL && t.stride <= 1 && !r->thinned
      && t.n_iterations > t.n_summaries + r->tally.n_lost)
    t.n_lost += t.n_iterations - t.n_summaries - r->tally.n_lost;
  for (uint32_t i = r->summaries.n;
       i-- > 0 && (damaged ? td_tape_reader_stored (r, i) : lies_there (r, &rows[i]))
       && (t.first_whole == UINT64_MAX || rows[i].number + 1 == t.first_whole);)
    t.first_whole = rows[i].number;
  if (damaged && r->summaries.n > 0 && rows[r->summaries.n - 1].number < r->tally.newest)
    t.first_whole = UINT64_MAX; /* the newest is lost */
  return t;
}

void
td_tape_thinning_text (const TdTapeThinning *t, char *out, size_t n)
{
  uint64_t others;
  int used;

  if (t->n_whole >= t->n_iterations)
    {
      snprintf (out, n, "%s", "");
      return;
    }
  used = snprintf (out, n, "%llu of %llu are whole", (unsigned long long)t->n_whole,
                   (unsigned long long)t->n_iterations);
  if (t->first_whole != UINT64_MAX && used > 0 && (size_t)used < n)
    used += snprintf (out + used, n - (size_t)used, ", the newest from %llu on",
                      (unsigned long long)t->first_whole);
  if (t->n_lost > 0 && used > 0 && (size_t)used < n)
    used += snprintf (out + used, n - (size_t)used, "; %llu %s lost to damage",
                      (unsigned long long)t->n_lost, t->n_lost == 1 ? "is" : "are");
  if (t->n_whole + t->n_lost >= t->n_iterations)
    return;
  others = t->n_iterations - t->n_whole - t->n_lost;
  if (t->n_summaries < t->n_iterations && used > 0 && (size_t)used < n)
    snprintf (out + used, n - (size_t)used,
              "; of the other %llu, %llu have a summary, of the older ones one in %llu",
              (unsigned long long)others,
              (unsigned long long)(t->n_summaries - t->n_whole < others
                                       ? t->n_summaries - t->n_whole
                                       : others),
              (unsigned long long)t->stride);
  else if (used > 0 && (size_t)used < n)
    snprintf (out + used, n - (size_t)used, "; all have a summary");
}
