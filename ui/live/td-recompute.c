/* `tapedeck recompute` as a child of the window. SPDX-License-Identifier: MIT */
#include "live/td-recompute.h"

TdJob *
td_recompute_new (const char *tape, gint64 iteration, GError **error)
{
  g_autofree char *number = g_strdup_printf ("%" G_GINT64_FORMAT, iteration);
  g_autoptr (TdJob) job = td_job_new (NULL, error);
  if (!job)
    return NULL;
  const char *const arguments[]
      = { "recompute", tape, "--iteration",           number, "--progress",
          "--quiet",   "-o", td_job_get_result (job), NULL };
  return td_job_start (job, arguments, error) ? g_steal_pointer (&job) : NULL;
}
