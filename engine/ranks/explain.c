/* What differs between ranks whose digests do: each lists its side as lines, rank 0's go to
 * all, and the first line that is another is what everybody hears; and that it is rank 0 that
 * most others differ from, where they agree.
 *
 * SPDX-License-Identifier: MIT */
#include "comm.h"
#include "host-memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
td__lines_put (TdLines *lines, const char *format, ...)
{
  va_list args;

  lines->of = td__xrealloc (lines->of, (size_t)(lines->n + 1) * sizeof *lines->of);
  memset (lines->of[lines->n], 0, TD_LINE); /* its bytes are sent */
  va_start (args, format);
  vsnprintf (lines->of[lines->n++], TD_LINE, format, args);
  va_end (args);
}

void
td__lines_clear (TdLines *lines)
{
  free (lines->of);
  *lines = (TdLines){ NULL, 0 };
}

TdStatus
td__bcast_bytes (TdComm *comm, void *bytes, size_t n, const TdSite *site)
{
  char why[TD_WHY_WIRE] = "";

  return td__wait_bcast (comm, bytes, n, 0, why, site) ? TD_OK
                                                       : td__comm_fail (comm, why, site);
}

/* Do more ranks have one list that is not rank 0's than have rank 0's? */
static TdStatus
find_odd_root (TdComm *comm, const TdLines *own, TdMeetKind kind, bool *odd, const TdSite *site)
{
  TdMeet mine = td__meet_of (kind, NULL, site);
  TdStatus status;
  int most = 0, of_root = 0;

  mine.number = (int64_t)td__digest (0, own->of, (size_t)own->n * sizeof *own->of);
  status = td__meet (comm, &mine, site);
  for (int r = 0; r < comm->size && status == TD_OK; r++)
    {
      int n = 0;

      for (int k = 0; k < comm->size; k++)
        n += comm->all[k].number == comm->all[r].number;
      of_root = r == 0 ? n : of_root;
      most = n > most ? n : most;
    }
  *odd = most > of_root;
  return status;
}

static const char *
line_at (const TdLines *lines, int i)
{
  return i < lines->n ? lines->of[i] : "nothing more";
}

/* What is to be said where this rank's list is not rank 0's; false: it is. */
static bool
first_difference (const TdLines *own, const TdLines *roots, bool odd, const char *before,
                  const char *after, char *note, size_t size)
{
  for (int i = 0; i < own->n || i < roots->n; i++)
    if (strcmp (line_at (own, i), line_at (roots, i)) != 0)
      {
        const int room = odd ? 64 : 80;

        snprintf (note, size, "%s%sit has %.*s where rank 0 has %.*s%s", before,
                  odd ? "rank 0 is the odd one: " : "", room, line_at (own, i), room,
                  line_at (roots, i), after);
        return true;
      }
  return false;
}

TdStatus
td__explain (TdComm *comm, const TdLines *own, const char *before, const char *after,
             TdMeetKind kind, const TdSite *site)
{
  TdMeet mine = td__meet_of (kind, NULL, site);
  TdLines roots = { NULL, own->n };
  bool odd = false;
  TdStatus status = find_odd_root (comm, own, kind, &odd, site);

  if (status == TD_OK)
    status = td__bcast_bytes (comm, &roots.n, sizeof roots.n, site);
  roots.of = td__xcalloc ((size_t)roots.n + 1, sizeof *roots.of);
  if (comm->rank == 0 && own->n > 0)
    memcpy (roots.of, own->of, (size_t)own->n * sizeof *own->of);
  if (status == TD_OK)
    status = td__bcast_bytes (comm, roots.of, (size_t)roots.n * sizeof *roots.of, site);
  if (status == TD_OK)
    {
      if (first_difference (own, &roots, odd, before, after, mine.note, sizeof mine.note))
        mine.flags |= TD_MEET_FAILED;
      status = td__meet (comm, &mine, site);
    }
  td__lines_clear (&roots);
  return status != TD_OK
             ? status
             : td__fail (TD_ERR_STATE, td__meet_name (kind), site,
                         "rank %d of %d: %sranks differ", comm->rank, comm->size, before);
}
