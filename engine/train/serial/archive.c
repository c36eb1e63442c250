/* Lists of values in memory, and the way they get into a file: whole, or not at all.
 *
 * SPDX-License-Identifier: MIT */
#include "archive.h"

#include "replace.h"

#include "../links/object.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool
td__archive_add (TdArchive *archive, const char *key, const TdRecord *value, const char **why)
{
  TdMember *e;
  void *copy = NULL;

  if (value->kind != TD_RECORD_NONE)
    {
      copy = malloc (value->bytes + 1);
      *why = "no memory to copy it";
      if (copy == NULL)
        return false;
      memcpy (copy, value->data, value->bytes);
    }
  archive->entries
      = td__xrealloc (archive->entries, (size_t)(archive->n + 1) * sizeof *archive->entries);
  e = &archive->entries[archive->n++];
  e->key = td__xstrdup (key);
  e->value = *value;
  e->value.data = copy;
  return true;
}

void
td__archive_free (TdArchive *archive)
{
  if (archive == NULL)
    return;
  for (int i = 0; i < archive->n; i++)
    {
      free (archive->entries[i].key);
      free (archive->entries[i].value.data);
    }
  free (archive->entries);
  free (archive);
}

/* errno as text, from any thread. */
static bool
fail_errno (char *why, size_t size)
{
  char text[200];
  int error = errno;

  /* NOLINTNEXTLINE(concurrency-mt-unsafe): strerrordesc_np would need glibc 2.32 */
  snprintf (text, sizeof text, "%s", strerror (error));
  snprintf (why, size, "%s", text);
  return false;
}

bool
td__archive_write (const TdArchive *archive, const char *path, TdFileFormat format,
                   bool compress, char *why, size_t size)
{
  TdReplace r;
  bool ok;

  if (!td__replace_begin (&r, path, 0666))
    return fail_errno (why, size);
  ok = format == TD_FILE_NPZ ? td__npz_write (archive, r.file, compress, why, size)
                             : td__safetensors_write (archive, r.file, why, size);
  if (!td__replace_end (&r, ok))
    return ok ? fail_errno (why, size) : false;
  return true;
}

const char td__no_such_array[] = "there is no such array in the file";
const char td__pytorch_pickle[] = "a PyTorch pickle: save the state_dict as safetensors or npz";

/* Is it what torch.save wrote before it wrote zip files: pickles, from protocol 2 on? */
static bool
is_pickle (const char *path)
{
  unsigned char head[2] = { 0 };
  struct stat st;
  FILE *file;
  bool pickle;

  if (stat (path, &st) != 0 || !S_ISREG (st.st_mode)) /* a pipe would have to be waited for */
    return false;
  file = fopen (path, "rb");
  if (file == NULL)
    return false;
  pickle = fread (head, 1, sizeof head, file) == sizeof head && head[0] == 0x80 && head[1] >= 2
           && head[1] <= 5;
  fclose (file);
  return pickle;
}

TdArchiveSource *
td__archive_open (const char *path, TdFileFormat format, const char **why)
{
  TdArchiveSource *source
      = format == TD_FILE_NPZ ? td__npz_source (path, why) : td__safetensors_source (path, why);

  if (source == NULL && is_pickle (path))
    *why = td__pytorch_pickle;
  return source;
}
