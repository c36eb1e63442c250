/* Ten things that people come for, each from opening the recording to the answer: how many
 * clicks, and how many seconds, are printed.  Nine are on a GPT of LIFE's, one on four ranks.
 *
 * SPDX-License-Identifier: MIT */
#include "planted-ranks.h"
#include "ui-test.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "memory/td-what-if.h"
#include "pages/td-compare-page.h"
#include "pages/td-outline-page.h"
#include "window/td-window-private.h"

static guint n_clicks;
static gint64 begun;

static void
begin (const char *tape)
{
  ui_test_resize (1440, 900);
  begun = g_get_monotonic_time ();
  n_clicks = 0;
  ui_test_open (tape);
}

static void
open_gpt (const char *argument, const char *level, const char *last)
{
  g_autofree char *tape = g_strdup (td_test_tmp ("gpt.tdtape"));
  char name[] = "l03-gpt", layers[] = "layers=4";
  char *const arguments[] = { name, layers, (char *)last, (char *)argument, NULL };
  ui_test_record_life (tape, arguments, (const char *const[]){ "--level", level, NULL });
  begin (tape);
}

static void
click (const char *action, const char *parameter)
{
  n_clicks++;
  ui_test_do (action, parameter);
  ui_test_settle ();
}

/* A press in a picture; "dragged" goes on with it, and is no click. */
static void
press (TdSceneView *view, const char *how, const TdSceneHit *hit, double x, double y)
{
  n_clicks += strcmp (how, "pressed") == 0;
  g_signal_emit_by_name (view, how, hit, x, y);
  ui_test_settle ();
}

static void
done (const char *what, guint most)
{
  print_message ("%-44s %u clicks, %.1f s\n", what, n_clicks,
                 (double)(g_get_monotonic_time () - begun) / 1e6);
  g_autofree char *name = g_strdup_printf ("interaction-%c%c.png", what[0], what[1]);
  ui_test_save_picture (name);
  assert_in_range (n_clicks, 1, most);
}

static const char *
label (const char *name)
{
  return gtk_label_get_text (GTK_LABEL (ui_test_named (name)));
}

static guint64
selected (void)
{
  guint n;
  const guint64 *keys = td_session_get_selection (ui_test_session (), &n);
  return n > 0 ? keys[0] : 0;
}

/* ---- the ten ---- */

/* One sentence with its line, and what would help. */
static void
interaction__who_ate_the_memory (void **state)
{
  g_autofree char *tape = g_strdup (td_test_tmp ("oom.tdtape"));
  TdTestChild child = TD_TEST_RUN (td_test_program ("app/tapedeck"), "run", "-f", "--quiet",
                                   "--mem-limit", "5000000", "-o", tape,
                                   td_test_build ("tests/life/l03-gpt"), "iterations=4");
  assert_int_not_equal (child.status, 0);
  td_test_child_clear (&child);
  begin (tape);
  click ("show-page", "memory");
  assert_contains (label ("growth-sentence"), "Memory ran out in iteration ");
  assert_contains (label ("growth-sentence"), "l03-gpt.c:");
  assert_contains (label ("growth-sentence"), "Would help, as estimated");
  done ("01 who ate the memory", 1);
}

static void
interaction__time_is_dragged_backwards (void **state)
{
  open_gpt ("fault=none", "graph", "iterations=3");
  ui_test_do ("last-event", NULL);
  ui_test_settle ();
  TdSceneView *view = TD_SCENE_VIEW (ui_test_named ("events-strip"));
  TdScene *scene = td_scene_view_get_scene (view);
  double width = td_scene_width (scene), y = td_scene_height (scene) / 2;
  gint before = td_session_get_moment (ui_test_session ()).event, moves = 0;
  clock_t start = clock ();
  TdSceneHit hit;
  td_scene_hit (scene, width - 20, y, 0, &hit);
  press (view, "pressed", &hit, width - 20, y);
  for (double x = width - 20; x > width / 4; x -= 20, moves++)
    {
      g_signal_emit_by_name (view, "dragged", &hit, x, y);
      while (g_main_context_iteration (NULL, FALSE))
        ;
      gint now = td_session_get_moment (ui_test_session ()).event;
      assert_true (now <= before);
      before = now;
    }
  print_message ("%d places of a drag, %.1f ms of processor time each, drawing included\n",
                 moves, (double)(clock () - start) / (CLOCKS_PER_SEC / 1e3) / moves);
  ui_test_settle ();
  g_autoptr (TdIteration) it = td_session_get_current (ui_test_session ());
  assert_true ((guint)before < td_iteration_get_n_events (it) / 2);
  assert_true (moves > 20);
  done ("02 time is dragged backwards", 1);
}

static void
interaction__where_the_nan_comes_from (void **state)
{
  g_autofree char *tape = g_strdup (td_test_tmp ("nan.tdtape"));
  char name[] = "l03-gpt", last[] = "iterations=8", fault[] = "fault=nan";
  char *const arguments[] = { name, last, fault, NULL };
  ui_test_record_life (tape, arguments, (const char *const[]){ "--level", "stats", NULL });
  begin (tape);
  click ("where-from", NULL);
  g_autoptr (TdIteration) it = td_session_get_current (ui_test_session ());
  guint event = (guint)td_session_get_moment (ui_test_session ()).event;
  g_autofree char *site = td_iteration_dup_site (it, event);
  assert_int_equal (td_session_get_moment (ui_test_session ()).iteration, 3);
  assert_string_equal (td_iteration_get_op_name (it, event), "sqrt");
  assert_contains (site, "l03-gpt.c:");
  done ("03 where the NaN comes from", 1);
}

static void
interaction__what_changed_in_the_graph (void **state)
{
  g_autofree char *tape = g_strdup (td_test_tmp ("branch.tdtape"));
  char name[] = "l03-gpt", last[] = "iterations=8", fault[] = "fault=branch";
  char *const arguments[] = { name, last, fault, NULL };
  ui_test_record_life (tape, arguments, NULL);
  begin (tape);
  click ("show-page", "compare");
  const char *text
      = td_compare_page_get_sentence (td_workspace_get_compare (ui_test_workspace ()));
  assert_contains (text, "→");
  assert_contains (text, "l03-gpt.c:");
  done ("04 what changed in the graph", 1);
}

/* Code beside schedule, what an operation became there, and that calls were verified. */
static void
interaction__trust_in_the_static_graph (void **state)
{
  open_gpt ("static=1", "graph", "iterations=8");
  click ("show-page", "compare");
  click ("compare-with", "code");
  TdComparePage *page = td_workspace_get_compare (ui_test_workspace ());
  const TdCompare *compare = td_compare_page_get (page);
  assert_non_null (compare);
  assert_int_equal (td_iteration_get_number (compare->of[0]), 0);
  assert_int_equal (td_iteration_get_number (compare->of[1]), 7);
  click ("explain", NULL);
  TdSceneView *view = ui_test_panel_scene_view ("schedule", "explain");
  g_autofree char *text = td_scene_dump (td_scene_view_get_scene (view));
  assert_contains (text, "verif");
  done ("05 trust in the static graph", 3);
}

/* What waits is told at each step of backward. */
static void
interaction__backward_as_a_machine (void **state)
{
  TdOutlinePage *outline;
  guint with_queue = 0, steps = 12;
  open_gpt ("tied=1", "graph", "iterations=2");
  ui_test_do ("first-event", NULL);
  click ("run-to-backward", NULL);
  outline = td_workspace_get_outline (ui_test_workspace ());
  for (guint i = 0; i < steps; i++)
    {
      click ("step-op", NULL);
      with_queue += *td_outline_page_get_waiting (outline) != '\0';
    }
  assert_true (with_queue >= steps - 1);
  done ("06 backward as a machine", 1 + steps);
}

static void
interaction__one_selection_everywhere (void **state)
{
  TdSceneHit hit;
  double x = 0, y = 0;
  open_gpt ("fault=none", "graph", "iterations=3");
  n_clicks++; /* Blocks, of the panel Memory */
  TdSceneView *blocks = ui_test_panel_scene_view ("memory", "blocks");
  ui_test_settle ();
  /* of a block that an operation of this iteration made */
  g_autoptr (TdIteration) it = td_session_get_current (ui_test_session ());
  gint event = -1;
  TdScene *scene = td_scene_view_get_scene (blocks);
  for (y = 2; event < 0 && y < td_scene_height (scene); y += 3)
    for (x = 2; event < 0 && x < td_scene_width (scene); x += 2)
      if (td_scene_hit (scene, x, y, 0, &hit) && hit.key != 0)
        {
          gint var = td_iteration_find_var (it, hit.key);
          event = var >= 0 ? td_iteration_get_tape (it)->vars[var].producer : -1;
          if (event >= 0)
            press (blocks, "pressed", &hit, x, y);
        }
  assert_true (event >= 0);
  assert_int_equal (td_iteration_find (it, selected ()), event);
  /* the graph marks the operation, the order its row */
  TdSceneView *order = ui_test_panel_scene_view ("schedule", "order");
  ui_test_settle ();
  g_autofree char *rows = td_scene_dump (td_scene_view_get_scene (order));
  assert_contains (rows, "selected");
  done ("07 one selection everywhere", 2);
}

static void
interaction__what_if (void **state)
{
  open_gpt ("fault=none", "graph", "iterations=3");
  click ("show-page", "memory");
  GtkRange *slider = GTK_RANGE (ui_test_named ("what-if-scale"));
  n_clicks++;
  gtk_range_set_value (slider, 4);
  ui_test_settle ();
  assert_contains (label ("what-if-sentence"), " instead of ");
  assert_contains (label ("what-if-sentence"), " less), ");
  done ("08 what if layers were computed again", 2);
}

static void
part (PlantedStep *step)
{
  if (step->rank == 2 && step->iteration >= 3)
    planted_sum (step, TD_TAPE_SUM_PARAMETER, "l2/W")->sum[0] ^= 1;
}

static gboolean
says_parted (gpointer view)
{
  TdScene *scene = td_scene_view_get_scene (view);
  g_autofree char *text = scene ? td_scene_dump (scene) : NULL;
  return text && strstr (text, "rank 2 parted in iteration 3") != NULL;
}

static void
interaction__rank_2_lies (void **state)
{
  PlantedRun run = { .plant = part };
  g_autofree char *path = g_build_filename (planted_write (&run), "rank-0.tdtape", NULL);
  TdSceneHit hit;
  begin (path);
  click ("show-page", "ranks");
  TdSceneView *view = ui_test_panel_scene_view ("ranks", "findings");
  ui_test_wait ("the finding", says_parted, view);
  assert_true (td_scene_hit (td_scene_view_get_scene (view), 100, 20, 6, &hit));
  press (view, "pressed", &hit, 100, 20);
  assert_int_equal (td_session_get_moment (ui_test_session ()).iteration, 3);
  done ("09 rank 2 lies", 2);
}

static void
lead_a_group (gpointer unused)
{
  setpgid (0, 0);
}

/* Model and supervisor are killed; who opens the file finds what had happened by then. */
static void
record_and_kill (const char *tape)
{
  g_autoptr (GError) error = NULL;
  const char *const argv[] = { td_test_program ("app/tapedeck"),
                               "run",
                               "-f",
                               "--quiet",
                               "-o",
                               tape,
                               td_test_build ("tests/life/l03-gpt"),
                               "layers=4",
                               "iterations=20000",
                               NULL };
  GPid pid;
  int status;
  assert_true (g_spawn_async (NULL, (char **)argv, NULL,
                              G_SPAWN_DO_NOT_REAP_CHILD | G_SPAWN_STDOUT_TO_DEV_NULL
                                  | G_SPAWN_STDERR_TO_DEV_NULL,
                              lead_a_group, NULL, &pid, &error));
  for (gint64 until = g_get_monotonic_time () + 1000 * (gint64)td_test_patience_ms ();;)
    {
      TdTestChild child
          = TD_TEST_RUN (td_test_program ("app/tapedeck"), "info", "--json", tape);
      const char *at = child.status == 0 ? strstr (child.out, "\"iterations\":") : NULL;
      gboolean enough = at && strtol (at + strlen ("\"iterations\":"), NULL, 10) > 20;
      td_test_child_clear (&child);
      if (enough)
        break;
      assert_true (g_get_monotonic_time () < until);
      g_usleep (50000);
    }
  kill (-pid, SIGKILL);
  waitpid (pid, &status, 0);
}

static void
interaction__post_mortem_without_preparation (void **state)
{
  g_autofree char *tape = g_strdup (td_test_tmp ("killed.tdtape"));
  g_autofree char *picture = g_strdup (td_test_tmp ("graph.svg")), *svg = NULL;
  record_and_kill (tape);
  begin (tape);
  assert_true (td_session_get_n_iterations (ui_test_session ()) > 10);
  click ("last-event", NULL);
  n_clicks++; /* the note's text and Return */
  assert_true (td__window_write_note (ui_test_window (), "the last that is known"));
  click ("show-page", "notes");
  g_autofree char *note
      = td_notes_page_dup_row (td_workspace_get_notes (ui_test_workspace (), FALSE), 0);
  assert_contains (note, "the last that is known, Iteration ");
  click ("save-picture", picture);
  assert_true (g_file_get_contents (picture, &svg, NULL, NULL));
  assert_contains (svg, "<svg");
  done ("10 post mortem without preparation", 4);
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (interaction__who_ate_the_memory),
    ui_test (interaction__time_is_dragged_backwards),
    ui_test (interaction__where_the_nan_comes_from),
    ui_test (interaction__what_changed_in_the_graph),
    ui_test (interaction__trust_in_the_static_graph),
    ui_test (interaction__backward_as_a_machine),
    ui_test (interaction__one_selection_everywhere),
    ui_test (interaction__what_if),
    ui_test (interaction__rank_2_lies),
    ui_test (interaction__post_mortem_without_preparation),
  };

  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests_name ("interactions", tests, NULL, NULL);
}
