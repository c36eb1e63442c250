/* Recompute This Iteration: from values that are not recorded to those of the iteration that is
 * run again, its progress, cancelling, and why it cannot be.
 * SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <math.h>

static TdTensorPanel *
panel (void)
{
  return td_inspector_get_panel (td_workspace_get_inspector (ui_test_workspace ()));
}

/* Record a model and stand at an operation of iteration 2. */
static void
open_recorded_of (const char *model, const char *size, const char *keyframes)
{
  g_autofree char *tape = g_strdup (td_test_tmp ("run.tdtape"));
  TdTestChild child
      = TD_TEST_RUN (td_test_program ("app/tapedeck"), "run", "--quiet", "--keyframes",
                     keyframes, "-o", tape, td_test_build (model), "iterations=4", size);
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  ui_test_open (tape);
  ui_test_do ("go-to", "i=2&e=1");
  ui_test_do ("show-page", "value");
  ui_test_settle ();
}

static void
open_recorded (const char *keyframes)
{
  open_recorded_of ("tests/life/l09-dqn", "batch_size=16", keyframes);
}

static gboolean
has_values (gpointer unused)
{
  TdTensor *tensor = td_tensor_panel_get_tensor (panel ());
  return tensor && tensor->values;
}

static gboolean
shows (const char *label)
{
  GtkWidget *button = ui_test_find_button (GTK_WIDGET (panel ()), label);
  return button && gtk_widget_is_visible (button);
}

static void
recompute__shows_values_that_are_not_recorded (void **state)
{
  open_recorded ("2");
  assert_false (has_values (NULL));
  assert_true (shows ("Recompute This Iteration"));
  assert_false (shows ("Cancel"));
  ui_test_save_picture ("recompute-missing.png");
  ui_test_do ("recompute", NULL);
  ui_test_settle ();
  ui_test_wait ("values", has_values, NULL);
  ui_test_settle ();
  assert_true (g_str_has_prefix (td_tensor_panel_get_said (panel ()), "↻ Recomputed"));
  assert_false (shows ("Recompute This Iteration"));
  ui_test_save_picture ("recompute-done.png");
  /* they are of the iteration that has the recorded statistics */
  TdTensor *tensor = td_tensor_panel_get_tensor (panel ());
  double sum = 0;
  for (guint64 i = 0; i < tensor->n_values; i++)
    sum += tensor->values[i];
  assert_true (tensor->has_stats);
  assert_float_equal (sum / (double)tensor->n_values, tensor->stats.mean,
                      1e-5 * (1 + fabs (tensor->stats.mean)));
  /* the whole iteration has them, others do not */
  ui_test_do ("go-to", "i=2&e=0");
  ui_test_settle ();
  assert_true (has_values (NULL));
  ui_test_do ("go-to", "i=1&e=1");
  ui_test_settle ();
  assert_false (has_values (NULL));
}

static void
recompute__says_why_it_cannot (void **state)
{
  static char why[]
      = "cannot be recomputed: iteration 2 is no keyframe, and the tape has none: "
        "record with --keyframes N";
  open_recorded ("0");
  ui_test_do ("recompute", NULL);
  ui_test_wait ("the reason", ui_test_has_info, why);
  ui_test_settle ();
  assert_true (shows ("Recompute This Iteration"));
  assert_false (shows ("Cancel"));
}

/* Only the program that has the operations can run them again. */
static void
recompute__is_not_offered_for_what_another_program_recorded (void **state)
{
  static char why[]
      = "cannot be recomputed: this tape was recorded by line, and only that program can "
        "compute it again";
  g_autofree char *tape = g_strdup (td_test_tmp ("line.tdtape"));
  TdTestChild child = TD_TEST_RUN (td_test_build ("tests/tape/producer-example"), tape);
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  ui_test_open (tape);
  ui_test_do ("go-to", "i=2&e=1");
  ui_test_do ("show-page", "value");
  ui_test_settle ();
  assert_false (has_values (NULL));
  assert_false (shows ("Recompute This Iteration"));
  ui_test_do ("recompute", NULL);
  ui_test_wait ("the reason", ui_test_has_info, why);
}

static gboolean
is_over (gpointer unused)
{
  return !shows ("Cancel") && shows ("Recompute This Iteration");
}

static gboolean
is_under_way (gpointer unused)
{
  return shows ("Cancel");
}

/* Of many operations, and without anything between that takes long, so that there is time to. */
static void
recompute__ends_when_it_is_cancelled (void **state)
{
  open_recorded_of ("tests/life/l12-many-operations", "operations=100000", "2");
  ui_test_do ("recompute", NULL);
  ui_test_wait ("the button", is_under_way, NULL);
  ui_test_do ("cancel-recompute", NULL);
  ui_test_wait ("its end", is_over, NULL);
  ui_test_settle ();
  assert_false (has_values (NULL));
}

static void
recompute__is_forgotten_with_its_recording (void **state)
{
  open_recorded ("2");
  ui_test_do ("recompute", NULL);
  ui_test_open_sample (NULL);
  ui_test_do ("go-to", "i=5&e=3");
  ui_test_do ("show-page", "value");
  ui_test_settle ();
  assert_false (shows ("Cancel"));
  assert_false (has_values (NULL));
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (recompute__shows_values_that_are_not_recorded),
    ui_test (recompute__says_why_it_cannot),
    ui_test (recompute__is_not_offered_for_what_another_program_recorded),
    ui_test (recompute__ends_when_it_is_cancelled),
    ui_test (recompute__is_forgotten_with_its_recording),
  };
  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
