/* Snapshots of PyTorch's memory: the sources that its stacks name, where this is the machine
 * that has them.  A file that was written after the snapshot is not what the program ran, and
 * is left out. SPDX-License-Identifier: MIT */
#include "tape-import.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_SOURCES 256
#define MAX_SOURCE_BYTES ((off_t)1 << 20)
#define OWN_FILE 3 /* of td__tape_rank_of_file */

bool
td__tape_sources_note (TapeSnapshot *s, const char *file)
{
  char *copy;

  if (*file != '/' || s->n_sources >= MAX_SOURCES || td__tape_rank_of_file (file) != OWN_FILE)
    return true;
  for (uint64_t i = 0; i < s->n_sources; i++)
    if (strcmp (s->sources[i], file) == 0)
      return true;
  copy = strdup (file);
  if (copy == NULL
      || !td__tape_reserve (&s->sources, &s->room_sources, s->n_sources + 1,
                            sizeof *s->sources))
    {
      free (copy);
      return false;
    }
  s->sources[s->n_sources++] = copy;
  return true;
}

/* Read what is there to be read of `n` bytes.  Returns how many that were. */
static size_t
read_all (int fd, char *text, size_t n)
{
  size_t done = 0;

  while (done < n)
    {
      const ssize_t got = read (fd, text + done, n - done);

      if (got < 0 && errno == EINTR)
        continue;
      if (got <= 0)
        break;
      done += (size_t)got;
    }
  return done;
}

/* A name may be that of anything: of a pipe, too. */
static void
store (TapeSnapshot *s, const char *file, const struct stat *snapshot)
{
  const int fd = open (file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat st;
  char *text;

  if (fd < 0)
    return;
  if (fstat (fd, &st) == 0 && S_ISREG (st.st_mode) && st.st_size <= MAX_SOURCE_BYTES
      && st.st_mtime <= snapshot->st_mtime && (text = malloc ((size_t)st.st_size + 1)) != NULL)
    {
      td_tape_writer_source (s->w, file, text, read_all (fd, text, (size_t)st.st_size));
      free (text);
    }
  close (fd);
}

void
td__tape_sources_store (TapeSnapshot *s, int fd)
{
  struct stat snapshot;

  for (uint64_t i = 0; fstat (fd, &snapshot) == 0 && i < s->n_sources; i++)
    store (s, s->sources[i], &snapshot);
}

void
td__tape_sources_clear (TapeSnapshot *s)
{
  for (uint64_t i = 0; i < s->n_sources; i++)
    free (s->sources[i]);
  free (s->sources);
}
