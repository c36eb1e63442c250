/* Numbers of elements are sorted, by merging, and in the end the elements themselves are put in
 * their places: nothing is copied that is large, and between any two pieces of work one can
 * leave.  What is in order already, as most of a trace is, is not merged.
 * SPDX-License-Identifier: MIT */
#include "tape-sort.h"

#include <stdlib.h>
#include <string.h>

enum
{
  PIECE = 1 << 16, /* elements from one look to the next */
  FIRST_RUN = 8    /* elements that are sorted by insertion */
};

typedef struct
{
  char *array;
  size_t size;
  uint64_t n, since; /* elements that were handled since somebody looked */
  int (*compare) (const void *a, const void *b);
  TapeSortGoesOn goes_on;
  void *user;
} Sort;

static int
compare (const Sort *s, uint32_t a, uint32_t b)
{
  return s->compare (s->array + (size_t)a * s->size, s->array + (size_t)b * s->size);
}

/* So many more are handled. */
static bool
goes_on (Sort *s, uint64_t handled)
{
  s->since += handled;
  if (s->since < PIECE)
    return true;
  s->since = 0;
  return s->goes_on == NULL || s->goes_on (s->user);
}

static bool
sort_runs (Sort *s, uint32_t *order)
{
  for (uint64_t first = 0; first < s->n; first += FIRST_RUN)
    {
      const uint64_t end = first + FIRST_RUN < s->n ? first + FIRST_RUN : s->n;

      for (uint64_t i = first; i < end; i++)
        {
          uint64_t at = i;

          for (; at > first && compare (s, order[at - 1], (uint32_t)i) > 0; at--)
            order[at] = order[at - 1];
          order[at] = (uint32_t)i;
        }
      if (!goes_on (s, end - first))
        return false;
    }
  return true;
}

/* from[first .. middle) and from[middle .. end), both in order, become to[first .. end). */
static bool
merge (Sort *s, const uint32_t *from, uint32_t *to, uint64_t first, uint64_t middle,
       uint64_t end)
{
  uint64_t a = first, b = middle;

  if (middle >= end || compare (s, from[middle - 1], from[middle]) <= 0)
    {
      memcpy (to + first, from + first, (size_t)(end - first) * sizeof *to);
      return goes_on (s, (end - first) / 16 + 1);
    }
  for (uint64_t i = first; i < end; i++)
    {
      to[i] = b >= end || (a < middle && compare (s, from[a], from[b]) <= 0) ? from[a++]
                                                                             : from[b++];
      if ((i & 1023) == 1023 && !goes_on (s, 1024))
        return false;
    }
  return goes_on (s, (end - first) & 1023);
}

/* Put each element where its number is in `order`, which is used up. */
static bool
put (Sort *s, uint32_t *order)
{
  char held[TAPE_SORT_MOST];

  for (uint64_t i = 0; i < s->n; i++)
    {
      uint64_t at = i, from, moved = 1;

      if (order[i] == i)
        continue;
      memcpy (held, s->array + i * s->size, s->size);
      while ((from = order[at]) != i)
        {
          memcpy (s->array + at * s->size, s->array + from * s->size, s->size);
          order[at] = (uint32_t)at;
          at = from;
          if (++moved % PIECE == 0 && !goes_on (s, PIECE))
            return false;
        }
      memcpy (s->array + at * s->size, held, s->size);
      order[at] = (uint32_t)at;
      if (!goes_on (s, moved % PIECE))
        return false;
    }
  return true;
}

/* The numbers in order, in one of the two rows; NULL: left. */
static uint32_t *
order_all (Sort *s, uint32_t *order, uint32_t *other)
{
  if (!sort_runs (s, order))
    return NULL;
  for (uint64_t width = FIRST_RUN; width < s->n; width *= 2)
    {
      uint32_t *const before = order;

      for (uint64_t first = 0; first < s->n; first += 2 * width)
        {
          const uint64_t middle = first + width < s->n ? first + width : s->n;
          const uint64_t end = first + 2 * width < s->n ? first + 2 * width : s->n;

          if (!merge (s, before, other, first, middle, end))
            return NULL;
        }
      order = other;
      other = before;
    }
  return order;
}

TapeSort
td__tape_sort (void *array, uint64_t n, size_t size,
               int (*compare_two) (const void *a, const void *b), TapeSortGoesOn looks_on,
               void *user)
{
  Sort s = { .array = array,
             .size = size,
             .n = n,
             .compare = compare_two,
             .goes_on = looks_on,
             .user = user };
  uint32_t *rows, *order;
  bool done;

  if (n < 2)
    return TAPE_SORTED;
  if (n > UINT32_MAX || size > TAPE_SORT_MOST)
    return TAPE_SORT_NO_MEMORY;
  rows = malloc ((size_t)n * 2 * sizeof *rows);
  if (rows == NULL)
    return TAPE_SORT_NO_MEMORY;
  order = order_all (&s, rows, rows + n);
  done = order != NULL && put (&s, order);
  free (rows);
  return done ? TAPE_SORTED : TAPE_SORT_LEFT;
}
