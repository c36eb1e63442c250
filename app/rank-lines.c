/* The output of ranks by lines: see rank-lines.h.  SPDX-License-Identifier: MIT */
#include "rank-lines.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum
{
  TAG_BYTES = 128,  /* a longer one is none */
  LONGEST = 1 << 20 /* a line that is longer is written in parts */
};

typedef struct
{
  char *text;
  size_t n, room;
} Line;

struct TdRankLines
{
  int n, fd;
  bool spaced;
  Line *lines; /* by rank; the last: of mpirun itself */
  int now;     /* whose text comes */
  bool begins; /* a new line of mpirun's output */
  char held[TAG_BYTES];
  size_t n_held; /* what may be a tag, not whole yet */
};

TdRankLines *
td_rank_lines_new (int n, int fd, bool spaced)
{
  TdRankLines *l = calloc (1, sizeof *l);

  if (l == NULL)
    return NULL;
  l->lines = calloc ((size_t)n + 1, sizeof *l->lines);
  if (l->lines == NULL)
    {
      free (l);
      return NULL;
    }
  l->n = l->now = n;
  l->fd = fd;
  l->spaced = spaced;
  l->begins = true;
  return l;
}

static void
write_all (int fd, const char *text, size_t n)
{
  while (n > 0)
    {
      const ssize_t done = write (fd, text, n);

      if (done < 0 && errno == EINTR)
        continue;
      if (done <= 0)
        return; /* nobody reads it */
      text += done;
      n -= (size_t)done;
    }
}

/* With what is before it, in one call: lines of others come before or behind. */
static void
put_line (TdRankLines *l, int rank)
{
  Line *line = &l->lines[rank];

  if (line->n > 0)
    write_all (l->fd, line->text, line->n);
  line->n = 0;
}

static void
put_byte (TdRankLines *l, int rank, char byte)
{
  Line *line = &l->lines[rank];
  char before[32];
  const int n
      = line->n > 0 || rank == l->n ? 0 : snprintf (before, sizeof before, "[rank %d] ", rank);

  if (line->n + sizeof before + 1 > line->room)
    {
      const size_t room = line->room * 2 + 256;
      char *text = realloc (line->text, room);

      if (text == NULL)
        {
          put_line (l, rank);
          return;
        }
      line->text = text;
      line->room = room;
    }
  memcpy (line->text + line->n, before, (size_t)n);
  line->n += (size_t)n;
  line->text[line->n++] = byte;
  if (byte == '\n' || line->n >= LONGEST)
    put_line (l, rank);
}

/* Is this a tag?  1, *rank: of whom; 0: it may become one; -1: no. */
static int
is_tag (const TdRankLines *l, const char *text, size_t n, int *rank)
{
  static const char *const ends[] = { "]<stdout>:", "]<stderr>:", "]<stddiag>:" };
  size_t at = 1, digits, width;
  long number = 0;

  while (at < n && text[at] != ',' && text[at] != '[' && text[at] != ']' && text[at] != '\n')
    at++;
  if (at == n)
    return n < TAG_BYTES ? 0 : -1;
  if (text[at] != ',')
    return -1;
  for (digits = ++at; at < n && text[at] >= '0' && text[at] <= '9' && at - digits < 8; at++)
    number = number * 10 + (text[at] - '0');
  if (at == n)
    return 0;
  if (at == digits || number >= l->n)
    return -1;
  *rank = (int)number;
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
    {
      width = strlen (ends[i]);
      if (n - at < width + l->spaced)
        {
          if (strncmp (text + at, ends[i], n - at < width ? n - at : width) == 0)
            return 0;
        }
      else if (strncmp (text + at, ends[i], width) == 0)
        return 1;
    }
  return -1;
}

static void
put_text (TdRankLines *l, char byte)
{
  if (l->begins) /* without a tag before it, it is mpirun's own */
    l->now = l->n;
  l->begins = byte == '\n';
  put_byte (l, l->now, byte);
}

/* No tag: its first byte is text, the others may begin one. */
static void
let_go (TdRankLines *l)
{
  char held[TAG_BYTES];
  const size_t n = l->n_held;

  memcpy (held, l->held, n);
  l->n_held = 0;
  put_text (l, held[0]);
  td_rank_lines_take (l, held + 1, n - 1);
}

void
td_rank_lines_take (TdRankLines *l, const char *bytes, size_t n)
{
  for (size_t i = 0; i < n; i++)
    {
      int rank, found;

      if (l->n_held == 0 && bytes[i] != '[')
        {
          put_text (l, bytes[i]);
          continue;
        }
      l->held[l->n_held++] = bytes[i];
      found = is_tag (l, l->held, l->n_held, &rank);
      if (found < 0)
        let_go (l);
      if (found > 0)
        {
          l->now = rank;
          l->begins = false;
          l->n_held = 0;
        }
    }
}

void
td_rank_lines_free (TdRankLines *l)
{
  while (l->n_held > 0)
    let_go (l);
  for (int r = 0; r <= l->n; r++)
    {
      if (l->lines[r].n > 0)
        put_byte (l, r, '\n');
      free (l->lines[r].text);
    }
  free (l->lines);
  free (l);
}
