/* Which events of an iteration were replayed from a static schedule, and which call of its list
 * each was.
 *
 * SPDX-License-Identifier: MIT */
#include "tape/td-iteration-private.h"

/* A replay makes one event of each operation and group of its list, in order. */
TdReplayed *
td__iteration_index_replayed (const TdTapeIteration *it)
{
  TdReplayed *all = NULL;

  for (guint i = 0; i < it->n_runs; i++)
    {
      const TdTapeRun *r = &it->runs[i];
      guint call = 0;

      if (r->kind != TD_TAPE_RUN_REPLAYED)
        continue;
      if (!all)
        all = g_new0 (TdReplayed, it->n_events + 1);
      for (guint e = r->begin; e < r->end; e++)
        if (it->events[e].flags & TD_TAPE_EVENT_REPLAYED)
          all[e] = (TdReplayed){
            .function = r->chain, .schedule = r->schedule, .list = r->list, .call = call++
          };
    }
  return all;
}

gint
td_replayed_step (const TdReplayed *replayed, const TdTapeSchedule *schedule)
{
  guint call = 0;

  for (guint i = 0; i < schedule->n_steps; i++)
    {
      const TdTapeStep *t = &schedule->steps[i];

      if (t->list != replayed->list || t->fate != TD_TAPE_FATE_RUNS
          || (t->kind != TD_TAPE_STEP_GROUP
              && (t->kind != TD_TAPE_STEP_OP || t->group != TD_TAPE_NO_GROUP)))
        continue;
      if (call++ == replayed->call)
        return (gint)i;
    }
  return -1;
}
