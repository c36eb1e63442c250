/* Comparing itself: at once where it takes no time, else in a thread with readers of its own,
 * while both pictures are already there. SPDX-License-Identifier: MIT */
#include "pages/td-compare-page-private.h"

/* Comparing takes about a microsecond an event, and reading tensors a second a gigabyte. */
#define EVENTS_AT_ONCE 4000
#define BYTES_AT_ONCE (16u << 20)

static void
find_sources (TdComparePage *self, TdSession **sources)
{
  sources[self->mine] = self->session;
  sources[1 - self->mine] = td__compare_page_source (self);
}

TdCompareJob *
td__compare_job_new (TdComparePage *self, TdIteration *const *of)
{
  TdCompareJob *job = g_new0 (TdCompareJob, 1);
  TdSession *sources[TD_N_SIDES];
  find_sources (self, sources);
  for (int side = 0; side < TD_N_SIDES; side++)
    {
      job->of[side] = td_iteration_ref (of[side]);
      job->paths[side] = g_strdup (td_session_get_path (sources[side]));
      job->is_reference[side] = td_session_is_reference (sources[side]);
    }
  return job;
}

void
td__compare_job_free (gpointer data)
{
  TdCompareJob *job = data;
  for (int side = 0; side < TD_N_SIDES; side++)
    {
      td_iteration_unref (job->of[side]);
      g_free (job->paths[side]);
    }
  g_free (job);
}

static gboolean
is_small (TdIteration *const *of)
{
  guint64 events = 0, bytes = 0;
  for (int side = 0; side < TD_N_SIDES; side++)
    {
      const TdTapeIteration *t = td_iteration_get_tape (of[side]);
      events += t->n_events;
      for (guint i = 0; i < t->n_tensors; i++)
        bytes += t->tensors[i].bytes;
    }
  return events <= EVENTS_AT_ONCE && bytes <= BYTES_AT_ONCE;
}

static void
compare_in_thread (GTask *task, gpointer page, gpointer data, GCancellable *cancellable)
{
  TdCompareJob *job = data;
  TdCompare *compare = td_compare_new_of_files (job->of[TD_SIDE_A], job->paths[TD_SIDE_A],
                                                job->of[TD_SIDE_B], job->paths[TD_SIDE_B]);
  g_task_return_pointer (task, compare, (GDestroyNotify)td_compare_free);
}

static void
compared (GObject *source, GAsyncResult *result, gpointer data)
{
  TdComparePage *self = data;
  TdCompareJob *job = g_task_get_task_data (G_TASK (result));
  g_autoptr (TdCompare) compare = g_task_propagate_pointer (G_TASK (result), NULL);
  if (!compare || g_task_get_cancellable (G_TASK (result)) != self->job)
    return; /* something else is looked at meanwhile */
  g_clear_object (&self->job);
  job->take (self, g_steal_pointer (&compare));
}

void
td__compare_page_cancel (TdComparePage *self)
{
  if (self->job)
    g_cancellable_cancel (self->job);
  g_clear_object (&self->job);
}

void
td__compare_page_run (TdComparePage *self, TdIteration *const *of, TdCompareTakeFunc take)
{
  TdSession *sources[TD_N_SIDES];
  td__compare_page_cancel (self);
  find_sources (self, sources);
  if (is_small (of))
    {
      take (self, td_compare_new (of[TD_SIDE_A], of[TD_SIDE_B],
                                  td_session_get_reader (sources[TD_SIDE_A]),
                                  td_session_get_reader (sources[TD_SIDE_B])));
      return;
    }
  TdCompareJob *job = td__compare_job_new (self, of);
  job->take = take;
  self->job = g_cancellable_new ();
  g_autoptr (GTask) task = g_task_new (self, self->job, compared, self);
  g_task_set_task_data (task, job, td__compare_job_free);
  g_task_run_in_thread (task, compare_in_thread);
}
