/* `tapedeck import` as a child of the window. Its tape is made beside its place in the user's
 * cache, and has its name there when it is whole.
 * SPDX-License-Identifier: MIT */
#include "live/td-import.h"

#include <errno.h>
#include <glib/gstdio.h>

#include "td-session.h"

TdJob *
td_import_new (const char *path, GError **error)
{
  g_autofree char *tape = td_session_dup_import (path, error);
  g_autofree char *folder = tape ? g_path_get_dirname (tape) : NULL;
  g_autoptr (TdJob) job = folder ? td_job_new (folder, error) : NULL;
  if (!job)
    return NULL;
  const char *const arguments[]
      = { "import", "--progress", "-o", td_job_get_result (job), "--", path, NULL };
  return td_job_start (job, arguments, error) ? g_steal_pointer (&job) : NULL;
}

char *
td_import_take (TdJob *job, const char *path, GError **error)
{
  g_autofree char *tape = td_session_dup_import (path, error);
  if (!tape || g_rename (td_job_get_result (job), tape) == 0)
    return g_steal_pointer (&tape);
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED, "%s: %s", tape, g_strerror (errno));
  return NULL;
}
