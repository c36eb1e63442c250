/* The iteration that runs, or ran when the program was cut off: all of it, or how far it is.
 * SPDX-License-Identifier: MIT */
#include "reader-private.h"

#include <stdlib.h>

/* Its frame stays when an iteration has ended: then there is a summary. */
static bool
runs_on (const TdTapeReader *r, const TdTapeIterationHead *head)
{
  const TdTapeSummary *rows = r->summaries.items;

  return r->summaries.n == 0 || rows[r->summaries.n - 1].number < head->number;
}

/* Takes a live frame's payload; false: it is damaged. */
typedef bool (*Take) (TdTapeReader *r, const TdTapeIterationHead *head, const char *bytes,
                      size_t n, void *data);

/* Calls `take` with what runs on, of which a newer one may come after it. */
static void
each_live (TdTapeReader *r, Take take, void *data)
{
  uint32_t newest_seq = 0;

  for (uint32_t i = 0; i < r->n_seen; i++)
    {
      const TapeSeen *s = &r->seen[i];
      TdTapeIterationHead head;
      TdTapeFrame frame;
      size_t n;
      char *bytes;

      if (s->head.kind != TD_TAPE_SEGMENT_LIVE || s->head.first_seq < newest_seq)
        continue;
      bytes = td__tape_read_frame (r->fd, s->offset + sizeof (TdTapeSegment), s->room,
                                   TD_TAPE_FRAME_LIVE, &frame);
      if (bytes == NULL)
        continue;
      n = frame.len - sizeof frame;
      td__tape_take (&head, sizeof head, bytes, n);
      if (frame.seq >= newest_seq && runs_on (r, &head) && take (r, &head, bytes, n, data))
        newest_seq = frame.seq;
      free (bytes);
    }
}

static bool
build (TdTapeReader *r, const TdTapeIterationHead *head, const char *bytes, size_t n,
       void *data)
{
  const TdTapeIteration **newest = data;
  char error[128];
  const TdTapeIteration *it = td__tape_iteration_from (r, bytes, n, error, sizeof error);

  (void)head;
  if (it == NULL)
    return false;
  td_tape_iteration_free (*newest);
  *newest = it;
  return true;
}

const TdTapeIteration *
td_tape_reader_live (TdTapeReader *r)
{
  const TdTapeIteration *newest = NULL;

  each_live (r, build, &newest);
  return newest;
}

/** How far something is. */
typedef struct
{
  bool known;
  uint64_t number;
  uint32_t n_events;
} Far;

/* Where its structure is one of the tape's, that is mostly there already. */
static bool
count_built (TdTapeReader *r, const char *bytes, size_t n, uint32_t *n_events)
{
  char error[128];
  const TdTapeIteration *it = td__tape_iteration_from (r, bytes, n, error, sizeof error);

  *n_events = it != NULL ? td__tape_count_events (it) : 0;
  td_tape_iteration_free (it);
  return it != NULL;
}

/* As they lie there: what they are, nobody asked. */
static bool
count_rows (const char *bytes, size_t n, uint32_t *n_events)
{
  TdTapeIteration it = { 0 };
  TapeSections sections;
  TdTapeRun *runs;

  if (!td__tape_find_sections (bytes, n, sizeof (TdTapeIterationHead), &sections))
    return false;
  runs = td__tape_copy_section (&sections, TD_TAPE_SECTION_RUNS, sizeof *runs, &it.n_runs);
  it.runs = runs;
  it.n_events = (uint32_t)sections.at[TD_TAPE_SECTION_EVENTS].count;
  *n_events = td__tape_count_events (&it);
  free (runs);
  return true;
}

static bool
count (TdTapeReader *r, const TdTapeIterationHead *head, const char *bytes, size_t n,
       void *data)
{
  Far *far = data, now = { .known = true, .number = head->number };

  if (head->structure != 0 ? !count_built (r, bytes, n, &now.n_events)
                           : !count_rows (bytes, n, &now.n_events))
    return false;
  *far = now;
  return true;
}

bool
td_tape_reader_head (TdTapeReader *r, uint64_t *number, uint32_t *n_events)
{
  const TdTapeSummary *rows = r->summaries.items;
  const TdTapeSummary *last = r->summaries.n > 0 ? &rows[r->summaries.n - 1] : NULL;
  Far far = { 0 };

  each_live (r, count, &far);
  if (!far.known && last != NULL)
    far = (Far){ .known = true, .number = last->number, .n_events = last->n_events };
  if (!far.known)
    return false;
  *number = far.number;
  *n_events = far.n_events;
  return true;
}
