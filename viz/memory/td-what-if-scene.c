/*
 * The picture of a prediction, and a measured iteration beside it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-what-if.h"

enum
{
  N_PARTS = 3 /* forward, backward, update */
};

/* Where the parts of an iteration begin, and where the last ends. */
static void
find_parts (const TdTapeIteration *t, guint bounds[N_PARTS + 1])
{
  bounds[0] = 0;
  for (guint part = 1; part <= N_PARTS; part++)
    bounds[part] = t->n_events + 1;
  for (guint e = t->n_events; e-- > 0;)
    if (t->events[e].phase == TD_TAPE_PHASE_UPDATE)
      bounds[2] = e;
  for (guint e = t->n_events; e-- > 0;)
    if (t->events[e].phase == TD_TAPE_PHASE_BACKWARD)
      bounds[1] = e;
  bounds[1] = MIN (bounds[1], bounds[2]);
}

/* The highest total of `measured` in what corresponds to each step: it has other operations, so
 * that forward goes beside forward, and so on. */
static guint64 *
beside (const TdWhatIf *self, TdIteration *measured)
{
  TdMemoryProfile *p = td_memory_profile_new (measured);
  guint here[N_PARTS + 1], there[N_PARTS + 1];
  guint64 *total = g_new0 (guint64, self->recorded->n_steps);

  find_parts (td_iteration_get_tape (self->iteration), here);
  find_parts (td_iteration_get_tape (measured), there);
  for (guint part = 0; part < N_PARTS; part++)
    for (guint e = here[part]; e < here[part + 1]; e++)
      {
        guint64 n = here[part + 1] - here[part], m = there[part + 1] - there[part];
        guint from = there[part] + (guint)((e - here[part]) * m / n);
        guint to = there[part] + (guint)((e - here[part] + 1) * m / n);

        for (guint k = from; k < MAX (to, from + 1) && k < p->n_steps; k++)
          total[e] = MAX (total[e], p->total[k]);
      }
  td_memory_profile_free (p);
  return total;
}

TdScene *
td_what_if_scene (const TdWhatIf *self, TdIteration *measured, const TdPanelView *view)
{
  TdMemoryProfile *profile = td_what_if_predict_profile (self);
  g_autofree guint64 *other = measured ? beside (self, measured) : NULL;
  const TdMemoryLine lines[] = {
    { "Recorded", self->recorded->total, TD_ROLE_TEXT },
    { "Measured", other, TD_ROLE_ACCENT },
  };
  TdScene *scene;

  if (self->n_layers == 0)
    scene = td_panel_message (view, "Nothing to compute again",
                              "No layer of this iteration keeps arrays for backward.");
  else
    scene = td_memory_scene_lines (self->iteration, profile, lines, G_N_ELEMENTS (lines), view);
  td_memory_profile_free (profile);
  return scene;
}
