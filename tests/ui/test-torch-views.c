/* PyTorch programs of real size in the window: what each view says of them is so. That every
 * page can be read is first-picture's and looks' to say, that each does what it is for is
 * rows'.
 *
 *     test-torch-views NAME [ARGUMENTS]        NAME of the table below: torch-resnet
 *
 * SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <math.h>
#include <string.h>

#include "pages/td-graph-page.h"
#include "schedule/td-curve.h"
#include "widgets/td-graph-view.h"

typedef struct
{
  const char *program;
  const char *curve;     /* a loss that is reported in each iteration of the program */
  const char *layer;     /* a folded box of the forward pass */
  const char *parameter; /* a row of the heat map */
  const char *op;        /* the loss, at which the order stands */
  const char *flame;     /* a layer that costs something */
  const char *line;      /* of the loss; of two in an iteration the first */
} Program;

#define KEPT "# what --keep keeps"

static const Program programs[] = {
  { "torch-resnet", "loss", "blocks", "stem/weight", "nll_loss_forward", "blocks", KEPT },
  { "torch-gpt", "loss", "layers ×12", "words/weight", "nll_loss_forward", "layers", KEPT },
  { "torch-lstm", "loss", "words…out ×200", "cell/weight_ih", "nll_loss_forward", "words",
    KEPT },
  { "torch-dcgan", "painter", "critic", "first/bias", "mean", "critic", "judged = " },
  { "torch-vae", "loss", "Vae", "see/weight", "div", "see", KEPT },
};

static char **arguments;
static char *tape; /* recorded once */
static const Program *program;

/* ---- what is shown ---- */

static char *
dump (const char *panel, const char *page)
{
  if (strcmp (panel, "memory") != 0) /* which has a page, too, beside its place in the dock */
    ui_test_do ("show-page", panel);
  return td_scene_dump (td_scene_view_get_scene (ui_test_panel_scene_view (panel, page)));
}

static void
assert_says (const char *panel, const char *page, const char *text)
{
  g_autofree char *dumped = dump (panel, page);
  if (!strstr (dumped, text))
    fail_msg ("%s, %s: no \"%s\" in\n%.3000s", panel, page, text, dumped);
}

static void
record_program (void)
{
  static const char *const options[] = { "--level", "stats", NULL };
  g_autofree char *name = g_strconcat ("views-", program->program, ".tdtape", NULL);
  g_autofree char *folder = g_strdup (td_test_build ("tests/ui/pictures"));
  g_autofree char *path = g_build_filename (folder, name, NULL);
  if (tape)
    return;
  g_mkdir_with_parents (folder, 0755);
  ui_test_record_life (path, arguments, options);
  tape = g_steal_pointer (&path);
}

static void
open_program (void)
{
  record_program ();
  ui_test_resize (1440, 900);
  ui_test_open (tape);
  ui_test_wait_for_layout ();
  assert_string_equal (ui_test_page (), "workspace");
}

static gint
go_to_loss (void)
{
  td_session_go (ui_test_session (), TD_VERB_LOSS, 1, NULL);
  ui_test_settle ();
  return td_session_get_moment (ui_test_session ()).event;
}

/* ---- views ---- */

static void
torch__has_layers_by_their_names (void **state)
{
  gboolean found[TD_N_LANES] = { FALSE };
  (void)state;
  open_program ();
  TdVizView *view = td_graph_view_get_layout (
                        td_graph_page_get_view (td_workspace_get_graph (ui_test_workspace ())))
                        ->view;
  for (guint i = 0; i < view->n_nodes; i++)
    {
      const TdVizNode *node = &view->nodes[i];
      if (node->kind != TD_VIZ_GROUP)
        continue;
      found[node->lane] = found[node->lane] || g_str_has_prefix (node->label, program->layer);
      /* what nobody has called anything */
      assert_false (g_str_has_prefix (node->label, "ops "));
      assert_false (g_str_has_prefix (node->label, "step "));
    }
  assert_true (found[TD_LANE_FORWARD]);
  assert_true (found[TD_LANE_BACKWARD]); /* whatever PyTorch says of its nodes */
}

static void
torch__has_the_curve_of_its_loss (void **state)
{
  (void)state;
  open_program ();
  ui_test_do ("show-page", "curves");
  ui_test_settle ();
  const TdCurves *curves = td_session_get_curves (ui_test_session ());
  int curve = curves ? td_curves_find (curves, program->curve) : -1;
  assert_true (curve >= 0);
  guint n = td_curves_length (curves, (guint)curve);
  assert_int_equal (n, g_ascii_strtoull (arguments[g_strv_length (arguments) - 1], NULL, 10));
  for (guint i = 0; i < n; i++)
    {
      gint64 iteration;
      double value;
      td_curves_get (curves, (guint)curve, i, &iteration, &value);
      assert_true (isfinite (value) && value > 0);
    }
}

static void
torch__has_gradients_of_its_parameters (void **state)
{
  (void)state;
  open_program ();
  assert_says ("gradients", "heatmap", program->parameter);
  assert_says ("gradients", "findings", "Nothing found");
  /* of two optimizers that take turns the last iteration has both */
  assert_says ("gradients", "missing", "Nothing is missing");
}

static void
torch__has_its_memory_and_no_growth (void **state)
{
  (void)state;
  open_program ();
  assert_says ("memory", "events", "parameter");
  assert_says ("memory", "events", "activation");
  ui_test_do ("show-page", "memory");
  const char *growth = gtk_label_get_text (GTK_LABEL (ui_test_named ("growth-sentence")));
  print_message ("%s: %s\n", program->program, growth);
  assert_null (strstr (growth, " per iteration"));
}

static void
torch__has_its_order_time_and_cost (void **state)
{
  (void)state;
  open_program ();
  go_to_loss ();
  assert_says ("schedule", "order", program->op);
  assert_says ("schedule", "timeline", "Forward");
  assert_says ("schedule", "timeline", "Backward");
  assert_says ("schedule", "timeline", "Update");
  /* The same on a busy machine, where what a layer took may be too short for its name. */
  ui_test_do ("flame", "bytes");
  assert_says ("schedule", "flame", program->flame);
}

/* The line of the loss, in the program's own file. */
static void
torch__has_its_source (void **state)
{
  (void)state;
  open_program ();
  ui_test_do ("show-page", "source");
  assert_true (go_to_loss () > 0);
  TdSourcePage *source = td_workspace_get_source (ui_test_workspace ());
  g_autofree char *name = g_strdup_printf ("/%s.py", program->program + strlen ("torch-"));
  assert_true (g_str_has_suffix (td_source_page_get_file (source), name));
  g_autofree char *path = g_strconcat (td_test_source ("tests/models/life/torch"), name, NULL);
  g_autofree char *text = NULL;
  assert_true (g_file_get_contents (path, &text, NULL, NULL));
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  assert_non_null (strstr (lines[td_source_page_get_line (source) - 1], program->line));
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (torch__has_layers_by_their_names),
    ui_test (torch__has_the_curve_of_its_loss),
    ui_test (torch__has_gradients_of_its_parameters),
    ui_test (torch__has_its_memory_and_no_growth),
    ui_test (torch__has_its_order_time_and_cost),
    ui_test (torch__has_its_source),
  };
  for (guint i = 0; argc > 1 && i < G_N_ELEMENTS (programs); i++)
    if (strcmp (programs[i].program, argv[1]) == 0)
      program = &programs[i];
  if (!program)
    {
      fprintf (stderr, "usage: test-torch-views NAME [ARGUMENTS]\n");
      return 2;
    }
  arguments = g_strdupv (argv + 1);
  argc = 1;
  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests_name (program->program, tests, NULL, NULL);
}
