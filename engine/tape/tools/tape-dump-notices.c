/* Notices of a tape as text and as JSON lines, each of them once: most that an iteration has
 * are also the run's. SPDX-License-Identifier: MIT */
#include "tape-dump.h"
#include "td-tape-notices.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef TapeDump Dump;

static void
dump_notice (Dump *d, const TdTapeNotice *n)
{
  static const char *const kinds[] = { "text", "error", "config", "recording" };
  const char *kind = n->kind < 4 ? kinds[n->kind] : "?";
  char site[512];

  td_tape_reader_site_text (d->r, n->site, site, sizeof site);
  if (d->json)
    {
      TdJsonWriter *json = td__tape_begin_record (d, "notice");

      td__json_member_string (json, "kind", kind);
      td__json_member_uint (json, "iteration", n->iteration);
      td__json_member_int (json, "status", n->status);
      td__json_member_string (json, "text", td_tape_reader_string (d->r, n->text));
      td__json_member_string (json, "site", site);
      td__tape_end_record (d);
      return;
    }
  fprintf (d->out, "notice %s iteration %" PRIu64 " %s%s", kind, n->iteration, site,
           *site ? " " : "");
  td__tape_put_line (d->out, td_tape_reader_string (d->r, n->text));
  fputc ('\n', d->out);
}

static int
compare (const TdTapeNotice *a, const TdTapeNotice *b)
{
  if (a->iteration != b->iteration)
    return a->iteration < b->iteration ? -1 : 1;
  if (a->time_ns != b->time_ns)
    return a->time_ns < b->time_ns ? -1 : 1;
  if (a->kind != b->kind)
    return a->kind < b->kind ? -1 : 1;
  return a->text < b->text ? -1 : a->text > b->text;
}

static int
compare_places (const void *a, const void *b)
{
  return compare (*(const TdTapeNotice *const *)a, *(const TdTapeNotice *const *)b);
}

void
td__tape_dump_notices (Dump *d)
{
  const uint32_t n = td_tape_reader_n_notices (d->r);

  if (n > 0) /* without memory for it they are printed twice */
    d->notices = malloc (n * sizeof *d->notices);
  for (uint32_t i = 0; i < n; i++)
    {
      const TdTapeNotice *notice = td_tape_reader_notice (d->r, i);

      dump_notice (d, notice);
      if (d->notices != NULL)
        d->notices[i] = notice;
    }
  if (d->notices != NULL)
    qsort (d->notices, n, sizeof *d->notices, compare_places);
}

void
td__tape_dump_iteration_notices (Dump *d, const TdTapeIteration *it)
{
  for (uint32_t i = 0; i < it->n_notices; i++)
    {
      const TdTapeNotice *notice = &it->notices[i];

      if (d->notices == NULL
          || bsearch (&notice, d->notices, td_tape_reader_n_notices (d->r), sizeof *d->notices,
                      compare_places)
                 == NULL)
        dump_notice (d, notice);
    }
}

/* ---- what the recording says about itself ---- */

/* Behind a number, which may have a fraction; where there is none, here. */
static const char *
behind_number (const char *at)
{
  return *at >= '0' && *at <= '9' ? at + strspn (at, "0123456789.") : at;
}

static bool
are_alike (const char *a, const char *b)
{
  while (*a != '\0' && *b != '\0')
    {
      const char *x = behind_number (a), *y = behind_number (b);

      if ((x == a) != (y == b) || (x == a && *a != *b))
        return false;
      a = x == a ? a + 1 : x;
      b = y == b ? b + 1 : y;
    }
  return *a == *b;
}

uint32_t
td_tape_notice_sorts (TdTapeReader *r, TdTapeNoticeSort *sorts)
{
  uint32_t n_sorts = 0;

  for (uint32_t i = 0; i < td_tape_reader_n_notices (r); i++)
    {
      const TdTapeNotice *n = td_tape_reader_notice (r, i);
      const char *text = td_tape_reader_string (r, n->text);
      uint32_t k = 0;

      if (n->kind != TD_TAPE_NOTICE_RECORDING)
        continue;
      while (k < n_sorts && k < TD_TAPE_MOST_NOTICE_SORTS - 1
             && !are_alike (td_tape_reader_string (r, sorts[k].first->text), text))
        k++;
      if (k == n_sorts)
        sorts[n_sorts++] = (TdTapeNoticeSort){ .first = n };
      sorts[k].last = n;
      sorts[k].n++;
    }
  return n_sorts;
}

char *
td_tape_notice_others (TdTapeReader *r, const TdTapeNoticeSort *sort)
{
  const char *last = td_tape_reader_string (r, sort->last->text);
  const size_t size = strlen (last) + 100;
  char *text = calloc (size, 1);

  if (text != NULL && sort->n > 1)
    snprintf (text, size,
              " (and %" PRIu32 " more of that sort, the last of iteration %" PRIu64 ": %s)",
              sort->n - 1, sort->last->iteration, last);
  return text;
}

static void
put_recording_line (FILE *out, const char *head, const char *text)
{
  fprintf (out, "%-17s", head);
  td__tape_put_line (out, text);
  fputc ('\n', out);
}

static void
info_recording_text (TdTapeReader *r, FILE *out)
{
  TdTapeNoticeSort sorts[TD_TAPE_MOST_NOTICE_SORTS];
  const uint32_t n = td_tape_notice_sorts (r, sorts);

  for (uint32_t k = 0; k < n; k++)
    {
      put_recording_line (out, k > 0 ? "" : "recording",
                          td_tape_reader_string (r, sorts[k].first->text));
      if (sorts[k].n > 2)
        fprintf (out, "%-17sand %" PRIu32 " more of that sort, the last:\n", "",
                 sorts[k].n - 1);
      if (sorts[k].n > 1)
        put_recording_line (out, "", td_tape_reader_string (r, sorts[k].last->text));
    }
}

void
td__tape_info_recording (TdTapeReader *r, FILE *out, TdJsonWriter *json)
{
  bool any = false;

  if (json == NULL)
    {
      info_recording_text (r, out);
      return;
    }
  for (uint32_t i = 0; i < td_tape_reader_n_notices (r); i++)
    {
      const TdTapeNotice *n = td_tape_reader_notice (r, i);

      if (n->kind != TD_TAPE_NOTICE_RECORDING)
        continue;
      if (!any)
        {
          td__json_key (json, "recording");
          td__json_begin_array (json);
        }
      td__json_string (json, td_tape_reader_string (r, n->text));
      any = true;
    }
  if (any)
    td__json_end_array (json);
}
