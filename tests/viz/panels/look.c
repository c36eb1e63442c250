/*
 * Writes every picture of the hand-made LeNet tape into a folder, for looking at them.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <string.h>

#include "gradient/td-gradient.h"
#include "gradient/td-tensor.h"
#include "layout/td-layout.h"
#include "lenet-tape.h"
#include "memory/td-memory.h"
#include "scene/td-graph-scene.h"
#include "schedule/td-curve.h"
#include "schedule/td-schedule.h"

static void
save (TdScene *scene, const char *dir, const char *name)
{
  static const char *const themes[] = { "light", "dark" };

  for (int i = 0; i < 2; i++)
    {
      g_autofree char *path = g_strdup_printf ("%s/%s-%s.png", dir, name, themes[i]);
      g_autoptr (GError) error = NULL;

      if (!td_scene_export (scene, "png", path, 1.5, td_theme_get (themes[i]), &error))
        fprintf (stderr, "%s\n", error->message);
    }
  td_scene_unref (scene);
}

int
main (int argc, char **argv)
{
  LenetOptions o = LENET_DEFAULT;
  const char *dir = argc > 1 ? argv[1] : ".";
  g_autofree char *tape = g_strdup_printf ("%s/look.tdtape", dir);
  char error[160];

  o.nan_at = 33;
  o.extra_relu_at = 20;
  o.failed_event = 26;
  lenet_tape_write (tape, &o);
  TdTapeReader *r = td_tape_reader_open (tape, error, sizeof error);
  g_autoptr (TdIteration) it = lenet_tape_load (r, 39);
  TdPanelView v = { .width = 480, .height = 190, .iteration = 39, .event = 28, .head = 30 };
  guint64 key = td_iteration_get_tape (it)->vars[2].key;
  TdMemoryProfile *p = td_memory_profile_new (it);
  save (td_memory_scene_events (it, p, NULL, 6290000, &v), dir, "memory-events");
  TdMemoryHistory *h = td_memory_history_new (r, (TdRange){ 0 }, 400);
  save (td_memory_scene_iterations (h, &v), dir, "memory-iterations");
  save (td_memory_scene_blocks (it, &v), dir, "memory-blocks");
  TdGradientTable *g = td_gradient_table_new (r);
  TdGradientRange range = td_gradient_range_run (r, 39);
  td_gradient_table_load (g, r, &range, 39);
  v.selected = &key;
  v.n_selected = 1;
  save (td_gradient_scene (g, it, &range, &v), dir, "gradients");
  TdSchedule *s = td_schedule_new (it);
  g_autofree char *advice = td_schedule_advice (r, 39, 0);
  save (td_schedule_scene (s, advice, &v), dir, "schedule");
  TdCurves *c = td_curves_new ();
  td_curves_update (c, r);
  v.width = 1320;
  v.height = 38;
  save (td_deck_scene_iterations (c, r, 0, 0, NULL, 0, &v), dir, "deck-iterations");
  v.height = 24;
  save (td_deck_scene_events (it, FALSE, (TdRange){ 0 }, &v), dir, "deck-events");
  v.width = v.height = 0;
  save (td_timeline_scene (it, &v), dir, "timeline");
  save (td_curves_scene (c, &v), dir, "curves");
  gint var = td_tensor_find_var (
      it, td_iteration_get_tape (it)->vars[td_iteration_get_tape (it)->grads[2].gradient].key);
  TdTensor *t = td_tensor_new (r, it, (guint)var, -1);
  save (td_tensor_scene (t, NULL, &v), dir, "tensor");
  TdVizGraph *graph = td_iteration_get_graph (it);
  g_autoptr (TdFold) fold = td_fold_new_default (graph, 0);
  g_autoptr (TdVizView) view = td_viz_view_new (graph, fold, TD_VIEW_ALL);
  TdLayoutOptions options = { TD_ORIENTATION_TB };
  g_autoptr (TdLayout) layout = td_layout_new_quick (view, &options, NULL);
  save (td_graph_scene_new (layout, &v, TD_HEAT_OFF), dir, "graph");
  save (td_graph_scene_new (layout, &v, TD_HEAT_TIME), dir, "graph-heat");
  TdSceneRect seen = { 100, 100, 500, 300 };
  save (td_graph_minimap_new (layout, &v, &seen), dir, "minimap");
  td_fold_set_expanded (fold, td_viz_graph_get_groups (graph, &(guint){ 0 })[0].key, TRUE);
  g_autoptr (TdFold) shallow = td_fold_new_depth (graph, 2);
  g_autoptr (TdVizView) view2 = td_viz_view_new (graph, shallow, TD_VIEW_ALL);
  g_autoptr (TdLayout) layout2 = td_layout_new_quick (view2, &options, NULL);
  save (td_graph_scene_new (layout2, &v, TD_HEAT_OFF), dir, "graph2");
  return 0;
}
