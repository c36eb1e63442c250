/* Compare by layer: a model and its port as another program recorded them, what the table says,
 * where it leads, and a reference beside a recording. SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <stdio.h>
#include <string.h>

#include "td-producer.h"
#include "widgets/td-compare-layers.h"
#include "window/td-window-private.h"
#include "zip.h"

#define N_LAYERS 6
#define N_ELEMENTS 8
#define WRONG 3 /* the layer whose port has a mistake */

enum
{
  MARK,
  LAYER_A,
  LAYER_B,
  FORWARD,
  BACKWARD,
  OF,
  WORST
};

/* ---- recordings ---- */

typedef struct
{
  const char *root, *file;
  gboolean wrong; /* element 5 of what layer WRONG returns, and its gradient */
  guint32 level;
} Model;

typedef struct
{
  TdProducer *p;
  const Model *m;
  guint64 next;
} Writer;

static guint64
add (Writer *w, guint32 category, guint32 layer, const char *parameter)
{
  static const gint64 dims[] = { 2, 4 };
  TdProducerVariable v = { .size = sizeof v,
                           .id = ++w->next,
                           .dims = dims,
                           .ndim = 2,
                           .category = category,
                           .layer = layer };
  if (parameter)
    {
      v.flags = TD_TAPE_VAR_PARAMETER;
      v.name = td_producer_text (w->p, "W");
      v.parameter = td_producer_text (w->p, parameter);
    }
  assert_int_equal (td_producer_variable (w->p, &v), TD_PRODUCER_OK);
  return v.id;
}

static void
fill (float *numbers, guint seed, gboolean wrong)
{
  for (guint i = 0; i < N_ELEMENTS; i++)
    numbers[i] = (float)(seed + 1) + (float)i / 8;
  if (wrong)
    numbers[5] += 0.5f;
}

/* An operation of `layer` from two arrays to one, whose numbers are told by `seed`. */
static void
run (Writer *w, const char *kind, guint32 phase, guint32 layer, guint32 line,
     const guint64 ins[2], guint64 out, guint64 twin, guint seed, gboolean wrong)
{
  float numbers[N_ELEMENTS];
  TdProducerOperation op = { .size = sizeof op,
                             .kind = td_producer_kind (w->p, kind, NULL, NULL),
                             .phase = phase,
                             .place = td_producer_place (w->p, w->m->file, line, "forward"),
                             .layer = layer,
                             .inputs = ins,
                             .outputs = &out,
                             .n_inputs = 2,
                             .n_outputs = 1,
                             .twin = twin };
  assert_int_equal (td_producer_operation (w->p, &op), TD_PRODUCER_OK);
  fill (numbers, seed, wrong);
  if (w->m->level > TD_TAPE_LEVEL_GRAPH)
    assert_int_equal (td_producer_measure (w->p, out, numbers, N_ELEMENTS), TD_PRODUCER_OK);
}

static void
write_model (const Model *m, const char *path)
{
  TdProducerOptions o = { .size = sizeof o,
                          .level = m->level,
                          .producer = "test",
                          .version = "1",
                          .program = m->file,
                          .overwrite = 1,
                          .path = path };
  char error[200];
  Writer w = { td_producer_new (&o, error, sizeof error), m, 0 };
  guint64 weight[N_LAYERS], gradient[N_LAYERS], x;
  guint32 layer[N_LAYERS];
  assert_non_null (w.p);
  for (guint i = 0; i < N_LAYERS; i++)
    {
      g_autofree char *name = g_strdup_printf ("%s/block/%u/linear", m->root, i);
      g_autofree char *whole = g_strdup_printf ("%s/W", name);
      layer[i] = td_producer_layer (w.p, name, "Linear");
      weight[i] = add (&w, TD_TAPE_CATEGORY_PARAMETER, layer[i], whole);
    }
  assert_int_equal (td_producer_begin (w.p, 0, 0), TD_PRODUCER_OK);
  x = add (&w, TD_TAPE_CATEGORY_INPUT, 0, NULL);
  for (guint i = 0; i < N_LAYERS; i++)
    {
      const guint64 ins[2] = { x, weight[i] };
      x = add (&w, TD_TAPE_CATEGORY_ACTIVATION, 0, NULL);
      run (&w, "linear", TD_TAPE_PHASE_FORWARD, layer[i], 10 + i, ins, x, 0, i,
           m->wrong && i == WRONG);
    }
  for (guint i = N_LAYERS; i-- > 0;)
    {
      const guint64 ins[2] = { x, weight[i] };
      gradient[i] = add (&w, TD_TAPE_CATEGORY_GRADIENT, 0, NULL);
      run (&w, "linear_backward", TD_TAPE_PHASE_BACKWARD, layer[i], 30, ins, gradient[i], i + 1,
           10 + i, m->wrong && i <= WRONG);
    }
  for (guint i = 0; i < N_LAYERS; i++)
    {
      const guint64 ins[2] = { weight[i], gradient[i] };
      assert_int_equal (td_producer_gradient (w.p, weight[i], gradient[i]), TD_PRODUCER_OK);
      run (&w, "sgd", TD_TAPE_PHASE_UPDATE, layer[i], 40, ins, weight[i], 0, 20 + i, FALSE);
    }
  assert_int_equal (td_producer_end_iteration (w.p, 0), TD_PRODUCER_OK);
  td_producer_end (w.p, 0);
  td_producer_free (w.p);
}

/* What the layers of the original return, as a file of arrays. */
static void
write_reference (gboolean is_wrong, const char *path)
{
  static const char head[]
      = "\x93NUMPY\1\0v\0{'descr': '<f4', 'fortran_order': False, 'shape': "
        "(2, 4), }";
  TdZipWriter zip = { .file = fopen (path, "wb") };
  const char *why = NULL;
  assert_non_null (zip.file);
  for (guint i = 0; i < N_LAYERS; i++)
    {
      g_autofree char *name = g_strdup_printf ("Net/block/%u/linear/out.npy", i);
      char bytes[128 + N_ELEMENTS * sizeof (float)];
      float numbers[N_ELEMENTS];
      memset (bytes, ' ', 128);
      memcpy (bytes, head, sizeof head - 1);
      bytes[127] = '\n';
      fill (numbers, i, is_wrong && i == WRONG);
      memcpy (bytes + 128, numbers, sizeof numbers);
      assert_true (td__zip_add (&zip, name, bytes, sizeof bytes, FALSE, &why));
    }
  assert_true (td__zip_finish (&zip, &why));
  td__zip_writer_clear (&zip);
  fclose (zip.file);
}

static TdComparePage *
page (void)
{
  return td_workspace_get_compare (ui_test_workspace ());
}

static GtkWidget *
find_layers (GtkWidget *below)
{
  GtkWidget *found = TD_IS_COMPARE_LAYERS (below) ? below : NULL;
  for (GtkWidget *child = gtk_widget_get_first_child (below); child && !found;
       child = gtk_widget_get_next_sibling (child))
    found = find_layers (child);
  return found;
}

static TdCompareLayers *
layers (void)
{
  return TD_COMPARE_LAYERS (find_layers (GTK_WIDGET (page ())));
}

static gboolean
is_compared (gpointer unused)
{
  return td_compare_page_get (page ()) != NULL;
}

static gboolean
is_checked (gpointer unused)
{
  return td_compare_page_get_port (page ()) != NULL;
}

/* The original, with its port beside it. */
static void
open_pair (const Model *port)
{
  static const Model original = { "Net", "net.c", FALSE, TD_TAPE_LEVEL_VALUES };
  const char *path;
  write_model (port, td_test_tmp ("port.tdtape"));
  path = td_test_tmp ("original.tdtape");
  write_model (&original, path);
  ui_test_resize (1400, 900);
  ui_test_open (path);
  ui_test_do ("compare-with", td_test_tmp ("port.tdtape"));
  assert_null (td_compare_page_get_port (page ())); /* nobody has asked */
  ui_test_do ("compare-by", "by-layer");
  ui_test_wait ("the layers", is_checked, NULL);
}

static const Model wrong = { "Port/net", "port.py", TRUE, TD_TAPE_LEVEL_VALUES };
static const Model right = { "Port/net", "port.py", FALSE, TD_TAPE_LEVEL_VALUES };

/* The row of layer `i`; around each stands "block/i". */
static guint
row_of (guint i)
{
  g_autofree char *path = g_strdup_printf ("Net/block/%u/linear", i);
  for (guint row = 0; row < td_port_get_n_rows (td_compare_page_get_port (page ())); row++)
    {
      g_autofree char *cell = td_compare_layers_dup_cell (layers (), row, LAYER_A);
      if (g_strcmp0 (cell, path) == 0)
        return row;
    }
  fail_msg ("there is no layer %u", i);
  return 0;
}

static void
assert_cell (guint i, guint column, const char *text)
{
  g_autofree char *cell = td_compare_layers_dup_cell (layers (), row_of (i), column);
  assert_non_null (cell);
  assert_string_equal (cell, text);
}

static guint64
selected_of (TdSession *session)
{
  guint n;
  const guint64 *keys = td_session_get_selection (session, &n);
  return n ? keys[0] : 0;
}

static void
assert_selected (TdSession *session, const char *site)
{
  TdIteration *it = td_session_get_current (session);
  const gint event = td_iteration_find_event (it, selected_of (session));
  assert_true (event >= 0);
  g_autofree char *found = td_iteration_dup_site (it, (guint)event);
  assert_string_equal (found, site);
  td_iteration_unref (it);
}

static gboolean
is_selected (gpointer unused)
{
  return selected_of (td_compare_page_get_other (page ())) != 0;
}

/* ---- claims ---- */

static void
layers__names_the_first_that_differs_in_either_direction (void **state)
{
  open_pair (&wrong);
  assert_non_null (strstr (td_compare_layers_get_text (layers ()),
                           "Forward: the first layer that differs is Net/block/3/linear, "
                           "Port/net/block/3/linear: element (1, 1) 4.625, 5.125"));
  assert_non_null (strstr (td_compare_layers_get_text (layers ()),
                           "Backward: the first layer that differs is Net/block/3/linear"));
  assert_cell (WRONG, MARK, "1st →←");
  assert_cell (WRONG, LAYER_A, "Net/block/3/linear");
  assert_cell (WRONG, LAYER_B, "Port/net/block/3/linear");
  assert_cell (WRONG, FORWARD, "9.8e-02"); /* 0.5 of 5.125 */
  assert_cell (WRONG, OF, "W");
  assert_cell (WRONG, WORST,
               "output: element (1, 1) 4.625, 5.125 (9.8e-02 apart), 1 of 8 beyond");
  assert_cell (WRONG - 1, MARK, "≠"); /* its gradient */
  assert_cell (WRONG - 1, FORWARD, "0");
  assert_cell (WRONG - 1, OF, "W");
  assert_cell (WRONG + 1, WORST, "output: same (all elements)");
  assert_cell (WRONG + 1, MARK, "");
  assert_cell (WRONG + 1, BACKWARD, "0");
}

/* Two runs of one program: its layers have the same names, which are said once. */
static void
layers__of_the_same_name_are_named_once (void **state)
{
  static const Model again = { "Net", "net.c", TRUE, TD_TAPE_LEVEL_VALUES };
  open_pair (&again);
  assert_non_null (strstr (td_compare_layers_get_text (layers ()),
                           "Forward: the first layer that differs is Net/block/3/linear: "
                           "element (1, 1) 4.625, 5.125"));
}

static void
layers__without_a_difference_says_so (void **state)
{
  open_pair (&right);
  assert_non_null (
      strstr (td_compare_layers_get_text (layers ()),
              "Forward: no layer is known to differ\nBackward: no layer is known"));
  for (guint i = 0; i < N_LAYERS; i++)
    assert_cell (i, MARK, "");
}

static void
layers__lead_to_both_operations (void **state)
{
  open_pair (&wrong);
  ui_test_wait ("the first of them", is_selected, NULL);
  assert_selected (ui_test_session (), "net.c:13");
  assert_selected (td_compare_page_get_other (page ()), "port.py:13");
  /* where only backward differs, to that */
  g_signal_emit_by_name (layers (), "chosen", row_of (1));
  assert_selected (ui_test_session (), "net.c:30");
  assert_selected (td_compare_page_get_other (page ()), "port.py:30");
}

static void
layers__say_what_is_not_known (void **state)
{
  const Model port = { "Port/net", "port.py", FALSE, TD_TAPE_LEVEL_STATS };
  open_pair (&port);
  assert_non_null (strstr (td_compare_layers_get_text (layers ()),
                           "statistics alone: A has no elements of 0 of them, B of"));
}

static gboolean
says (gpointer text)
{
  return strstr (td_compare_layers_get_text (layers ()), text) != NULL;
}

static void
layers__of_recordings_without_numbers_say_why (void **state)
{
  const Model bare = { "Net", "net.c", FALSE, TD_TAPE_LEVEL_GRAPH };
  const char *path = td_test_tmp ("bare.tdtape");
  write_model (&bare, path);
  ui_test_open (path);
  write_model (&right, td_test_tmp ("port.tdtape"));
  ui_test_do ("compare-with", td_test_tmp ("port.tdtape"));
  ui_test_do ("compare-by", "by-layer");
  ui_test_wait ("why there is none", says, (gpointer) "No layer has statistics on both sides");
  assert_null (td_compare_page_get_port (page ()));
}

/* A window of 900 by 600 has room for one half of the page: the one that is asked for. */
static void
layers__have_the_place_in_a_low_window (void **state)
{
  open_pair (&wrong);
  ui_test_wait_for_layout ();
  ui_test_settle ();
  ui_test_save_picture ("compare-layers.png");
  ui_test_set_dark (TRUE);
  ui_test_settle ();
  ui_test_save_picture ("compare-layers-dark.png");
  ui_test_resize (900, 600);
  ui_test_settle ();
  assert_true (gtk_widget_get_mapped (GTK_WIDGET (layers ())));
  assert_true (gtk_widget_get_width (GTK_WIDGET (layers ())) <= 900);
  assert_false (
      gtk_widget_get_mapped (GTK_WIDGET (td_compare_page_get_side (page (), TD_SIDE_A))));
  ui_test_save_picture ("compare-layers-low-dark.png");
  ui_test_set_dark (FALSE);
  ui_test_settle ();
  ui_test_save_picture ("compare-layers-low.png");
  ui_test_do ("compare-by", "operations");
  ui_test_settle ();
  ui_test_save_picture ("compare-low.png");
  assert_false (gtk_widget_get_mapped (GTK_WIDGET (layers ())));
  assert_true (
      gtk_widget_get_mapped (GTK_WIDGET (td_compare_page_get_side (page (), TD_SIDE_A))));
}

static void
layers__of_another_iteration_are_compared_anew (void **state)
{
  open_pair (&wrong);
  write_model (&right, td_test_tmp ("right.tdtape"));
  ui_test_do ("compare-with", td_test_tmp ("right.tdtape"));
  ui_test_wait ("the other layers", is_checked, NULL);
  assert_cell (WRONG, MARK, "");
}

/* A reference has layers and nothing else: no operations that were removed, and no times. */
static void
layers__are_what_a_reference_is_compared_by (void **state)
{
  const char *path;
  guint n;
  for (int is_wrong = 1; is_wrong >= 0; is_wrong--)
    {
      write_reference (is_wrong == 1, td_test_tmp ("ref.npz"));
      path = td_test_tmp ("port.tdtape");
      write_model (&right, path);
      ui_test_resize (1400, 900);
      ui_test_open (path);
      ui_test_do ("compare-with", td_test_tmp ("ref.npz"));
      ui_test_wait ("the layers", is_checked, NULL);
      ui_test_settle ();
      assert_true (gtk_widget_get_mapped (GTK_WIDGET (layers ())));
      assert_string_equal (
          td_compare_page_get_sentence (page ()),
          is_wrong == 1
              ? "Forward: the first layer that differs is Port/net/block/3/linear, "
                "Net/block/3/linear: element (1, 1) 4.625, 5.125 (9.8e-02 apart), 1 of 8 beyond"
              : "No layer is known to differ, forward or backward");
      ui_test_wait ("the operations", is_compared, NULL);
      assert_non_null (strstr (td_compare_page_get_sentence (page ()), "ayer"));
      td_compare_page_get_position (page (), &n);
      assert_int_equal (n, 0); /* in the list beside the pictures */
    }
  ui_test_save_picture ("compare-reference.png");
}
static const char *const no_tolerances[] = { "", "-1", "nan", "inf", "1x" };

static gboolean
differs_nowhere (void)
{
  return !td_port_differs (td_compare_page_get_port (page ()));
}

/* By the widget a user types into, and what is no tolerance changes nothing. */
static void
layers__lie_apart_as_far_as_the_fields_say (void **state)
{
  TdCompareLimits *limits;
  open_pair (&wrong);
  limits = td_compare_layers_get_limits (layers ());
  td_compare_limits_type (limits, 0, "0.2"); /* 9.8e-02 apart */
  ui_test_wait ("the layers", is_checked, NULL);
  assert_false (td_port_differs (td_compare_page_get_port (page ())));
  assert_cell (WRONG, MARK, "");
  td_compare_limits_type (limits, 0, "0.01");
  ui_test_wait ("the layers", is_checked, NULL);
  assert_cell (WRONG, MARK, "1st →←");
  td_compare_limits_type (limits, 1, "0.6"); /* 0.5 in numbers */
  ui_test_wait ("the layers", is_checked, NULL);
  assert_cell (WRONG, FORWARD, "9.8e-02");
  assert_true (differs_nowhere ());
  for (guint i = 0; i < G_N_ELEMENTS (no_tolerances); i++)
    {
      const TdPort *before = td_compare_page_get_port (page ());
      td_compare_limits_type (limits, 1, no_tolerances[i]);
      assert_true (td_compare_limits_is_wrong (limits, 1));
      assert_ptr_equal (td_compare_page_get_port (page ()), before);
    }
  td_compare_limits_type (limits, 1, "0.6");
  assert_false (td_compare_limits_is_wrong (limits, 1));
}

static void
answer (const char *names, const char *response)
{
  GtkWidget *dialog = td_compare_page_edit_names (page ());
  GtkWidget *scroller = adw_message_dialog_get_extra_child (ADW_MESSAGE_DIALOG (dialog));
  GtkTextView *view
      = GTK_TEXT_VIEW (gtk_scrolled_window_get_child (GTK_SCROLLED_WINDOW (scroller)));
  if (names)
    gtk_text_buffer_set_text (gtk_text_view_get_buffer (view), names, -1);
  adw_message_dialog_response (ADW_MESSAGE_DIALOG (dialog), response);
}

/* A table that pairs two layers crosswise, one that names what is not there, and a guess. */
static void
layers__are_paired_by_the_table_that_was_edited (void **state)
{
  g_autoptr (GString) names = g_string_new ("# crosswise\n");
  open_pair (&right);
  g_autofree char *guessed = td_port_names (td_compare_page_get_port (page ()));
  assert_non_null (strstr (guessed, "Net/block/1/linear"));
  for (guint i = 0; i < N_LAYERS; i++)
    g_string_append_printf (names, "Net/block/%u/linear Port/net/block/%u/linear\n", i,
                            i == 1   ? 2
                            : i == 2 ? 1
                                     : i);
  answer (names->str, "cancel");
  assert_cell (1, LAYER_B, "Port/net/block/1/linear");
  answer (names->str, "use");
  ui_test_wait ("the layers", is_checked, NULL);
  assert_cell (1, LAYER_B, "Port/net/block/2/linear");
  assert_cell (1, MARK, "1st →");
  answer ("Net/block/0/linear Port/net/block/9/linear\n", "use");
  ui_test_wait ("what is wrong", says, (gpointer) "block/9");
  assert_null (td_compare_page_get_port (page ()));
  answer (NULL, "use"); /* it is still there to be mended */
  ui_test_wait ("what is wrong", says, (gpointer) "block/9");
  answer (NULL, "guess");
  ui_test_wait ("the layers", is_checked, NULL);
  assert_cell (1, LAYER_B, "Port/net/block/1/linear");
  assert_cell (1, MARK, "");
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (layers__names_the_first_that_differs_in_either_direction),
    ui_test (layers__of_the_same_name_are_named_once),
    ui_test (layers__without_a_difference_says_so),
    ui_test (layers__lead_to_both_operations),
    ui_test (layers__say_what_is_not_known),
    ui_test (layers__of_recordings_without_numbers_say_why),
    ui_test (layers__have_the_place_in_a_low_window),
    ui_test (layers__of_another_iteration_are_compared_anew),
    ui_test (layers__are_what_a_reference_is_compared_by),
    ui_test (layers__lie_apart_as_far_as_the_fields_say),
    ui_test (layers__are_paired_by_the_table_that_was_edited),
  };
  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
