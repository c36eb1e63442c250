/* An iteration that is so large that it is built while it goes on.  It has no equal that it
 * could be recognised by (no records are kept of one), so the raw records are of no more use:
 * what is made of them is packed at once, in the blocks that will be on the tape.  A million
 * operations take some 30 MB then, and took 300.
 * SPDX-License-Identifier: MIT */
#include "assembler-private.h"

#include <stdlib.h>
#include <string.h>

void
td__large_free (TdAssembler *a)
{
  TdLarge *l = a->large;

  a->large = NULL;
  if (l == NULL)
    return;
  td__build_free (l->build);
  td_tape_rows_free (l->times);
  td_tape_rows_free (l->memory);
  td__list_clear (&l->fates);
  free (l);
}

static uint8_t *
fate_of (TdLarge *l, uint64_t buffer)
{
  const uint64_t most = 8ull * td_tape_rows_count (l->memory) + 1024;
  uint8_t *more;

  if (buffer >= most)
    return NULL;
  if (buffer >= l->fates.n)
    {
      const uint32_t n = (uint32_t)buffer + 1 - l->fates.n;

      more = td__list_add_n (&l->fates, 1, n);
      if (more == NULL)
        return NULL;
      memset (more, 0, n);
    }
  return (uint8_t *)l->fates.items + buffer;
}

bool
td__large_add_memory (TdAssembler *a, const TdTapeMemory *m)
{
  const TdTapeMemory relative = td__memory_relative (a, m);
  uint8_t *fate = m->buffer >= a->begin.first_buffer && m->buffer != 0
                      ? fate_of (a->large, relative.buffer)
                      : NULL;

  a->large->memory_full
      = a->large->memory_full || !td_tape_rows_add (a->large->memory, &relative);
  if (a->large->memory_full)
    return false;
  td__memory_hash (&a->large->memory_hash, &relative);
  if (fate != NULL)
    td__memory_fate (fate, m);
  return true;
}

/* What the iteration has so far, into what it will be kept in from now on. */
static bool
move (TdAssembler *a)
{
  const char *at = a->raw.items, *end = at + a->raw.n;
  const uint64_t *start = a->start.items, *duration = a->duration.items;
  const TdTapeMemory *memory = a->memory.items;
  bool done = true;

  for (; done && at < end; at += ((const TdRawHead *)at)->size)
    done = td__build_record (a->large->build, (const TdRawHead *)at);
  for (uint32_t i = 0; done && i < a->start.n; i++)
    {
      const TdTapeTicks ticks = { start[i], duration[i] };

      done = td_tape_rows_add (a->large->times, &ticks);
    }
  for (uint32_t i = 0; done && i < a->memory.n; i++)
    done = td__large_add_memory (a, &memory[i]);
  return done;
}

bool
td__large_begin (TdAssembler *a)
{
  TdLarge *l = calloc (1, sizeof *l);

  a->large = l;
  if (l == NULL)
    return false;
  l->build = td__build_new (a);
  l->times = td_tape_rows_new (sizeof (TdTapeTicks));
  l->memory = td_tape_rows_new (sizeof (TdTapeMemory));
  l->memory_hash = td__memory_no_hash;
  if (l->build == NULL || l->times == NULL || l->memory == NULL || !move (a))
    {
      td__large_free (a);
      return false;
    }
  td__list_clear (&a->raw);
  td__list_clear (&a->start);
  td__list_clear (&a->duration);
  td__list_clear (&a->memory);
  return true;
}

void
td__large_resolve (const TdAssembler *a, const TdShape *s)
{
  s->packed->times = a->large->times;
  s->packed->memory = a->large->memory;
  s->packed->first_tick = a->begin.ticks;
  s->packed->ns_per_tick = a->ns_per_tick;
}

void
td__large_leave (const TdShape *s)
{
  if (s->packed != NULL)
    s->packed->times = s->packed->memory = NULL;
}
