/* The files of a training loop: their names, and how they are written.
 *
 * SPDX-License-Identifier: MIT */
#include "trainer.h"
#include "host-memory.h"

#include "replace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char **
td__keys_copy (const char *const *keys)
{
  int n = 0;
  char **copy;

  while (keys != NULL && keys[n] != NULL)
    n++;
  copy = td__xcalloc ((size_t)n + 1, sizeof *copy);
  for (int i = 0; i < n; i++)
    copy[i] = td__xstrdup (keys[i]);
  return copy;
}

void
td__keys_free (char **keys)
{
  for (int i = 0; keys != NULL && keys[i] != NULL; i++)
    free (keys[i]);
  free (keys);
}

void
td__file_name (const char *pattern, const TdUpdater *u, char *name, size_t size)
{
  const struct
  {
    const char *text;
    int64_t value;
  } words[] = { { "{.updater.iteration}", u->iteration },
                { "{.updater.epoch}", td_updater_epoch (u) },
                { "{iteration}", u->iteration },
                { "{epoch}", td_updater_epoch (u) } };
  size_t n = 0;

  while (*pattern != '\0' && n + 1 < size)
    {
      bool found = false;

      for (int i = 0; i < TD_ARRAY_LENGTH (words) && !found; i++)
        if (strncmp (pattern, words[i].text, strlen (words[i].text)) == 0)
          {
            int k = snprintf (name + n, size - n, "%lld", (long long)words[i].value);

            n = n + (size_t)k < size ? n + (size_t)k : size - 1;
            pattern += strlen (words[i].text);
            found = true;
          }
      if (!found)
        name[n++] = *pattern++;
    }
  name[n] = '\0';
}

bool
td__trainer_path (const TdTrainer *t, const char *name, char *path, size_t size,
                  const char *call)
{
  int n = *name == '/' ? snprintf (path, size, "%s", name)
                       : snprintf (path, size, "%s/%s", t->out, name);

  if (n > 0 && (size_t)n < size)
    return true;
  td__fail (TD_ERR_ARG, call, NULL, "%.200s: the name of its file is too long", name);
  return false;
}

TdStatus
td__trainer_write (const TdTrainer *t, const char *name, const char *text, size_t bytes,
                   const char *call)
{
  char path[4096];

  if (!td__trainer_path (t, name, path, sizeof path, call))
    return td__error_status ();
  if (td__replace_file (path, text, bytes))
    return TD_OK;
  return td__fail (TD_ERR_IO, call, NULL, "%.400s: %s", path,
                   strerror (errno)); /* NOLINT(concurrency-mt-unsafe) */
}
