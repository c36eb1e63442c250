/*
 * Recounting memory from allocation records. Pictures are in td-memory-scene.c.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "td-memory.h"

/* Distinct memory profiles that a history reads; later ones show only their peak. */
#define MAX_PROFILES 256

guint
td_memory_list_devices (const TdTapeIteration *t, guint devices[TD_MEMORY_MAX_DEVICES])
{
  guint n = 0;

  for (guint i = 0; i < t->n_devices && n < TD_MEMORY_MAX_DEVICES - 1; i++)
    if (t->devices[i].device != 0)
      devices[n++] = t->devices[i].device;
  if (n > 0 && !(t->flags & TD_TAPE_ITERATION_SNAPSHOT)) /* which has nothing of the host's */
    devices[n++] = 0;
  return n;
}

void
td_memory_start_of (const TdTapeIteration *t, gint device, guint64 bytes[TD_TAPE_N_CATEGORIES])
{
  if (device == TD_MEMORY_ALL || t->n_devices == 0)
    {
      memcpy (bytes, t->start_bytes, sizeof t->start_bytes);
      return;
    }
  memset (bytes, 0, sizeof t->start_bytes);
  for (guint i = 0; i < t->n_blocks; i++)
    if (t->blocks[i].device == (guint)device)
      bytes[MIN (t->blocks[i].category, TD_TAPE_N_CATEGORIES - 1)] += t->blocks[i].bytes;
}

TdMemoryProfile *
td_memory_profile_new (const TdIteration *iteration)
{
  return td_memory_profile_new_of (iteration, TD_MEMORY_ALL);
}

TdMemoryProfile *
td_memory_profile_new_of (const TdIteration *iteration, gint device)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);
  TdMemoryProfile *p = g_new0 (TdMemoryProfile, 1);
  guint64 now[TD_TAPE_N_CATEGORIES], total = 0;
  guint m = 0;

  td_memory_start_of (t, device, now);

  p->n_steps = t->n_events + 1;
  p->total = g_new0 (guint64, p->n_steps);
  for (int c = 0; c < TD_TAPE_N_CATEGORIES; c++)
    {
      p->bytes[c] = g_new0 (guint64, p->n_steps);
      p->start[c] = now[c];
      total += now[c];
    }
  p->peak_bytes = total;
  for (guint e = 0; e < p->n_steps; e++)
    {
      for (; m < t->n_memory && t->memory[m].event <= e; m++)
        {
          const TdTapeMemory *r = &t->memory[m];
          guint64 *of = &now[MIN (r->category, TD_TAPE_N_CATEGORIES - 1)];

          if (device != TD_MEMORY_ALL && r->device != device)
            continue;
          if (r->kind == TD_TAPE_MEMORY_ALLOC)
            {
              *of += r->bytes;
              total += r->bytes;
            }
          else if (r->kind == TD_TAPE_MEMORY_FREE)
            {
              /* a damaged tape may free more than there is */
              guint64 bytes = MIN (r->bytes, *of);

              *of -= bytes;
              total -= bytes;
            }
          if (total > p->peak_bytes)
            {
              p->peak_bytes = total;
              p->peak_event = e;
            }
        }
      /* zeros are there already, and take no memory as long as nobody writes them */
      for (int c = 0; c < TD_TAPE_N_CATEGORIES; c++)
        if (now[c] != 0)
          {
            p->bytes[c][e] = now[c];
            p->most[c] = MAX (p->most[c], now[c]);
          }
      p->total[e] = total;
    }
  return p;
}

void
td_memory_profile_free (TdMemoryProfile *profile)
{
  if (!profile)
    return;
  for (int c = 0; c < TD_TAPE_N_CATEGORIES; c++)
    g_free (profile->bytes[c]);
  g_free (profile->total);
  g_free (profile);
}

/* Categories at the peak of one memory profile. */
typedef struct
{
  gboolean known;
  guint64 bytes[TD_TAPE_N_CATEGORIES];
  guint64 of_device[TD_MEMORY_MAX_DEVICES][TD_TAPE_N_CATEGORIES];
} PeakSplit;

/* Every device that an iteration knows has a place in the history. */
static void
meet_devices (TdMemoryHistory *h, TdTapeReader *reader, const TdTapeIteration *t)
{
  guint devices[TD_MEMORY_MAX_DEVICES], n = td_memory_list_devices (t, devices);

  for (guint k = 0; k < n; k++)
    {
      guint at = 0;
      const char *name = "host";

      while (at < h->n_devices && h->device[at] != devices[k])
        at++;
      for (guint i = 0; i < t->n_devices; i++)
        if (devices[k] != 0 && t->devices[i].device == devices[k])
          {
            name = td_tape_reader_string (reader, t->devices[i].name);
            h->outside[MIN (at, TD_MEMORY_MAX_DEVICES - 1)] = t->devices[i].outside_bytes;
          }
      if (at < h->n_devices || at == TD_MEMORY_MAX_DEVICES)
        continue;
      h->device[at] = devices[k];
      h->device_name[at] = g_strdup (name);
      h->device_total[at] = g_new0 (guint64, MAX (h->n, 1));
      for (int c = 0; c < TD_TAPE_N_CATEGORIES; c++)
        h->of_device[at][c] = g_new0 (guint64, MAX (h->n, 1));
      h->n_devices++;
    }
}

/* What the devices held when `until` records of the iteration had happened. */
static void
split_devices (const TdMemoryHistory *h, const TdTapeIteration *t, guint until,
               PeakSplit *split)
{
  for (guint at = 0; at < h->n_devices; at++)
    {
      guint64 *now = split->of_device[at];

      td_memory_start_of (t, (gint)h->device[at], now);
      for (guint m = 0; m < until; m++)
        {
          const TdTapeMemory *r = &t->memory[m];
          guint64 *of = &now[MIN (r->category, TD_TAPE_N_CATEGORIES - 1)];

          if (r->device != h->device[at])
            continue;
          if (r->kind == TD_TAPE_MEMORY_ALLOC)
            *of += r->bytes;
          else if (r->kind == TD_TAPE_MEMORY_FREE)
            *of -= MIN (r->bytes, *of);
        }
    }
}

static PeakSplit *
load_split (TdMemoryHistory *h, TdTapeReader *reader, guint64 number)
{
  PeakSplit *split = g_new0 (PeakSplit, 1);
  char error[160];
  const TdTapeIteration *t = td_tape_iteration_load (reader, number, error, sizeof error);
  guint64 now[TD_TAPE_N_CATEGORIES], total = 0, peak = 0;
  guint peak_at = 0;

  if (!t)
    return split;
  for (int c = 0; c < TD_TAPE_N_CATEGORIES; c++)
    total += now[c] = t->start_bytes[c];
  peak = total;
  memcpy (split->bytes, now, sizeof now);
  for (guint m = 0; m < t->n_memory; m++)
    {
      const TdTapeMemory *r = &t->memory[m];
      guint64 *of = &now[MIN (r->category, TD_TAPE_N_CATEGORIES - 1)];
      guint64 bytes = r->kind == TD_TAPE_MEMORY_FREE ? MIN (r->bytes, *of) : r->bytes;

      if (r->kind == TD_TAPE_MEMORY_ALLOC)
        {
          *of += bytes;
          total += bytes;
        }
      else if (r->kind == TD_TAPE_MEMORY_FREE)
        {
          *of -= bytes;
          total -= bytes;
        }
      if (total > peak)
        {
          peak = total;
          memcpy (split->bytes, now, sizeof now);
          peak_at = m + 1;
        }
    }
  split->known = TRUE;
  meet_devices (h, reader, t);
  split_devices (h, t, peak_at, split);
  td_tape_iteration_free (t);
  return split;
}

/* The first summary of column i of n: columns are equally wide in numbers, since of a long run
 * the old summaries are a sample and the new ones are not. */
static guint
column_start (const TdTapeSummaries *s, guint i, guint n)
{
  guint64 first = s->rows[0].number, last = s->rows[s->n - 1].number;
  guint lo = 0, hi = s->n;

  if (last < first || last - first < s->n) /* all are there, or the count began anew */
    return (guint)((guint64)i * s->n / n);
  while (lo < hi)
    {
      guint mid = (lo + hi) / 2;

      if ((double)(s->rows[mid].number - first) * n < (double)(last - first + 1) * i)
        lo = mid + 1;
      else
        hi = mid;
    }
  return lo;
}

TdMemoryHistory *
td_memory_history_new (TdTapeReader *reader, TdRange range, guint max_columns)
{
  TdTapeSummaries all = td_tape_reader_summaries (reader), s = all;
  guint first, end;
  TdMemoryHistory *h = g_new0 (TdMemoryHistory, 1);
  g_autoptr (GHashTable) splits = g_hash_table_new_full (NULL, NULL, NULL, g_free);

  td_range_find (range, &all, &first, &end);
  s.rows = all.rows + first;
  s.n = end - first;
  h->n = MIN (s.n, MAX (max_columns, 1));
  h->first = h->n > 0 ? (gint64)s.rows[0].number : 0;
  h->last = h->n > 0 ? (gint64)s.rows[s.n - 1].number : -1;
  h->iteration = g_new0 (gint64, MAX (h->n, 1));
  h->peak = g_new0 (guint64, MAX (h->n, 1));
  h->known = g_new0 (gboolean, MAX (h->n, 1));
  for (int c = 0; c < TD_TAPE_N_CATEGORIES; c++)
    h->bytes[c] = g_new0 (guint64, MAX (h->n, 1));
  for (guint i = 0; i < h->n; i++)
    {
      /* a column stands for the summaries [from, to): it shows the one with the highest peak */
      guint from = MIN (column_start (&s, i, h->n), s.n - 1),
            to = MAX (from + 1, column_start (&s, i + 1, h->n));
      guint best = from;
      PeakSplit *split;

      for (guint k = from; k < to; k++)
        if (s.rows[k].peak_bytes > s.rows[best].peak_bytes)
          best = k;
      h->iteration[i] = (gint64)s.rows[best].number;
      h->peak[i] = s.rows[best].peak_bytes;
      split = g_hash_table_lookup (splits, GUINT_TO_POINTER (s.rows[best].memory));
      if (!split && s.rows[best].memory != 0 && g_hash_table_size (splits) < MAX_PROFILES
          && td_tape_reader_stored (reader, first + best))
        {
          split = load_split (h, reader, s.rows[best].number);
          g_hash_table_insert (splits, GUINT_TO_POINTER (s.rows[best].memory), split);
        }
      h->known[i] = split && split->known;
      for (int c = 0; h->known[i] && c < TD_TAPE_N_CATEGORIES; c++)
        {
          h->bytes[c][i] = split->bytes[c];
          for (guint at = 0; at < h->n_devices; at++)
            {
              h->of_device[at][c][i] = split->of_device[at][c];
              h->device_total[at][i] += split->of_device[at][c];
            }
        }
    }
  return h;
}

void
td_memory_history_free (TdMemoryHistory *history)
{
  if (!history)
    return;
  for (int c = 0; c < TD_TAPE_N_CATEGORIES; c++)
    g_free (history->bytes[c]);
  for (guint at = 0; at < history->n_devices; at++)
    {
      for (int c = 0; c < TD_TAPE_N_CATEGORIES; c++)
        g_free (history->of_device[at][c]);
      g_free (history->device_total[at]);
      g_free (history->device_name[at]);
    }
  g_free (history->iteration);
  g_free (history->peak);
  g_free (history->known);
  g_free (history);
}
