/* Whole stacks of memory snapshots in the window: on the Memory page, in the inspector, and
 * between two snapshots. The snapshots are tests/golden/snapshot/make.py's.
 * SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <string.h>

#include "memory/td-memory.h"

#define ENCODE 26 /* calls: 22 of C++, and 4 of Python */
#define DECODE 46 /* and 20 that recurse */

static void
open_golden (const char *name)
{
  g_autofree char *path = g_strdup_printf ("tests/golden/snapshot/%s", name);
  ui_test_open (td_test_source (path));
  ui_test_resize (1440, 900);
  ui_test_settle ();
}

static const char *
text_of (const char *name)
{
  return gtk_label_get_text (GTK_LABEL (ui_test_named (name)));
}

static TdCallStack *
card_stack (void)
{
  return TD_CALL_STACK (ui_test_named ("stacks-stack"));
}

static guint
count_lines (TdCallStack *stack)
{
  g_autofree char *text = td_call_stack_dup_text (stack);
  guint n = 0;
  for (const char *p = text; *p; p++)
    n += *p == '\n';
  return n;
}

/* The key of the first block alive that is this large. */
static guint64
find_block (guint64 bytes)
{
  g_autoptr (TdIteration) it = td_session_get_current (ui_test_session ());
  g_autoptr (GArray) blocks = td_memory_blocks_at (it, -1);
  for (guint i = 0; i < blocks->len; i++)
    if (g_array_index (blocks, TdMemoryBlock, i).bytes == bytes)
      return g_array_index (blocks, TdMemoryBlock, i).key;
  return 0;
}

static void
scroll_to (const char *name)
{
  GtkWidget *widget = ui_test_named (name);
  gtk_widget_child_focus (widget, GTK_DIR_TAB_FORWARD);
  ui_test_settle ();
}

/* The largest one's stack is on show at first, then that of the block which is selected. */
static void
stacks__of_a_block_are_shown_whole (void **state)
{
  open_golden ("stacks-2.pickle");
  assert_true (gtk_widget_get_mapped (ui_test_named ("stacks-card")));
  assert_string_equal (text_of ("stacks-sentence"), "6 blocks alive at the playhead, 4.19 MB");
  assert_int_equal (count_lines (card_stack ()), ENCODE);
  scroll_to ("stacks-card");
  ui_test_save_picture ("stacks-memory.png");
  td_session_select (ui_test_session (), find_block (1 << 19));
  ui_test_settle ();
  assert_int_equal (count_lines (card_stack ()), DECODE);
  g_autofree char *text = td_call_stack_dup_text (card_stack ());
  assert_contains (text, "linear (/usr/lib/python3/dist-packages/torch/nn/functional.py:2251)\n"
                         "forward (/src/net/layers.py:30)\n"
                         "descend (/src/net/tree.py:8)\n");
  assert_contains (text, "decode (/src/net/model.py:20)\n<module> (/src/net/train.py:40)\n");

  /* one row for C++, ten more for Python, of which one folds the middle */
  assert_int_equal (td_call_stack_get_n_rows (card_stack ()), 14);
  GtkWidget *toggle = ui_test_find_button (GTK_WIDGET (card_stack ()), "Show All");
  assert_non_null (toggle);
  g_signal_emit_by_name (toggle, "clicked");
  ui_test_settle ();
  assert_int_equal (td_call_stack_get_n_rows (card_stack ()), DECODE);
  g_signal_emit_by_name (ui_test_find_button (GTK_WIDGET (card_stack ()), "Fold"), "clicked");
  assert_int_equal (td_call_stack_get_n_rows (card_stack ()), 14);
}

static char *
dump_blocks (void)
{
  return td_scene_dump (
      td_scene_view_get_scene (ui_test_panel_scene_view ("memory", "blocks")));
}

/* The number of the call of the block's stack that is the function. */
static guint32
find_call (guint64 key, const char *function)
{
  g_autoptr (TdIteration) it = td_session_get_current (ui_test_session ());
  gint var = td_iteration_find_var (it, key);
  g_autoptr (GArray) frames = td_stack_list (it, td_stack_of_var (it, (guint)var));
  for (guint i = 0; i < frames->len; i++)
    if (strcmp (g_array_index (frames, TdStackFrame, i).function, function) == 0)
      return g_array_index (frames, TdStackFrame, i).call;
  return 0;
}

/* A frame that is chosen leaves what was allocated under it: in the table, and in the picture,
 * where the others are dimmed. */
static void
stacks__narrow_the_blocks_to_those_under_a_frame (void **state)
{
  open_golden ("stacks-2.pickle");
  td_session_select (ui_test_session (), find_block (1 << 19));
  ui_test_settle ();
  g_signal_emit_by_name (card_stack (), "chosen", find_call (find_block (1 << 19), "decode"));
  ui_test_settle ();
  assert_string_equal (text_of ("stacks-sentence"),
                       "4 of 6 blocks, 2.10 MB, under decode (/src/net/model.py:20)");
  scroll_to ("stacks-card");
  ui_test_save_picture ("stacks-under.png");
  GtkSelectionModel *rows
      = gtk_column_view_get_model (GTK_COLUMN_VIEW (ui_test_named ("stacks-table")));
  assert_int_equal (g_list_model_get_n_items (G_LIST_MODEL (rows)), 4);
  ui_test_do ("show-page", "debug");
  g_autofree char *some = dump_blocks ();
  ui_test_do ("show-page", "memory");
  g_signal_emit_by_name (card_stack (), "chosen", find_call (find_block (1 << 19), "<module>"));
  ui_test_settle ();
  assert_int_equal (g_list_model_get_n_items (G_LIST_MODEL (rows)), 6); /* all began there */
  g_signal_emit_by_name (card_stack (), "chosen", find_call (find_block (1 << 19), "decode"));
  GtkWidget *all = ui_test_find_button (ui_test_named ("stacks-card"), "All Blocks");
  g_signal_emit_by_name (all, "clicked");
  ui_test_settle ();
  assert_int_equal (g_list_model_get_n_items (G_LIST_MODEL (rows)), 6);
  ui_test_do ("show-page", "debug");
  g_autofree char *every = dump_blocks ();
  assert_string_not_equal (some, every);
}

/* Of a block that was freed both stacks are there; of what has none that is said. */
static void
stacks__are_a_page_of_the_inspector (void **state)
{
  open_golden ("stacks-2.pickle");
  ui_test_do ("show-page", "debug");
  TdInspector *inspector = td_workspace_get_inspector (ui_test_workspace ());
  TdStackPage *page = td_inspector_get_stack (inspector);
  g_autoptr (TdIteration) it = td_session_get_current (ui_test_session ());
  const TdTapeIteration *t = td_iteration_get_tape (it);
  gint freed = -1, said = -1;
  for (guint i = 0; i < t->n_events; i++)
    {
      if (strcmp (td_iteration_get_op_name (it, i), "free") == 0)
        freed = (gint)i;
      if (t->events[i].n_out > 0 && *td_stack_metadata (it, i))
        said = (gint)i;
    }
  assert_true (freed >= 0 && said >= 0);
  assert_true (gtk_widget_get_mapped (GTK_WIDGET (page)));
  td_session_select (ui_test_session (), t->vars[t->ins[t->events[freed].first_in]].key);
  ui_test_settle ();
  assert_int_equal (count_lines (td_stack_page_get_stack (page, FALSE)), ENCODE);
  assert_int_equal (count_lines (td_stack_page_get_stack (page, TRUE)), ENCODE);
  assert_true (gtk_widget_get_mapped (GTK_WIDGET (td_stack_page_get_stack (page, TRUE))));
  ui_test_save_picture ("stacks-inspector.png");
  td_session_select (ui_test_session (), t->vars[t->outs[t->events[said].first_out]].key);
  ui_test_settle ();
  assert_false (gtk_widget_get_mapped (GTK_WIDGET (td_stack_page_get_stack (page, TRUE))));
  ui_test_save_picture ("stacks-said.png");

  ui_test_open_sample (NULL);
  assert_false (
      td_inspector_show_page (td_workspace_get_inspector (ui_test_workspace ()), "stack"));
  ui_test_do ("show-page", "memory");
  ui_test_settle ();
  assert_false (gtk_widget_get_mapped (ui_test_named ("stacks-card")));
}

static gboolean
is_compared (gpointer page)
{
  return td_compare_page_get_snapshots (page) != NULL;
}

static gboolean
is_refused (gpointer page)
{
  return strstr (td_compare_page_get_reason (page), "is compared with another one only")
         != NULL;
}

/* Blocks of one line with two callers are two rows, and each shows its own stack. */
static void
stacks__tell_what_is_new_in_another_snapshot (void **state)
{
  open_golden ("stacks-1.pickle");
  ui_test_do ("compare", NULL);
  ui_test_settle ();
  TdComparePage *page = td_workspace_get_compare (ui_test_workspace ());
  assert_contains (td_compare_page_get_reason (page), "Another snapshot beside this one");
  ui_test_do ("compare-with", td_test_source ("tests/golden/snapshot/stacks-2.pickle"));
  ui_test_wait ("the other snapshot", is_compared, page);
  ui_test_settle ();
  ui_test_save_picture ("stacks-compare.png");
  assert_string_equal (td_compare_page_get_sentence (page),
                       "4.19 MB, then 4.19 MB: 2 blocks new, 1.05 MB; 1 gone, 1.05 MB");
  TdCompareSnapshots *snapshots = td_compare_page_get_snapshots (page);
  assert_int_equal (td_compare_snapshots_get (snapshots)->n, 2);
  assert_int_equal (count_lines (td_compare_snapshots_get_stack (snapshots)), DECODE);
  ui_test_do ("next-difference", NULL);
  assert_int_equal (td_compare_snapshots_get_position (snapshots), 2);
  assert_int_equal (count_lines (td_compare_snapshots_get_stack (snapshots)), ENCODE);
  ui_test_do ("next-difference", NULL); /* that was the last one */
  assert_int_equal (td_compare_snapshots_get_position (snapshots), 2);
  ui_test_do ("copy-differences", NULL);

  ui_test_resize (900, 600);
  ui_test_set_dark (TRUE);
  ui_test_settle ();
  ui_test_save_picture ("stacks-compare-small.png");
  ui_test_do ("show-page", "memory");
  ui_test_settle ();
  scroll_to ("stacks-card");
  ui_test_save_picture ("stacks-memory-small.png");
  td_session_select (ui_test_session (), find_block (1 << 19));
  ui_test_do ("show-page", "debug");
  ui_test_do ("show-page", "stack");
  ui_test_settle ();
  ui_test_save_picture ("stacks-inspector-small.png");
  ui_test_set_dark (FALSE);

  ui_test_open_sample (NULL);
  ui_test_do ("compare", NULL);
  ui_test_settle ();
  assert_null (td_compare_page_get_snapshots (page));
  ui_test_do ("compare-with", td_test_source ("tests/golden/snapshot/stacks-2.pickle"));
  ui_test_wait ("why not", is_refused, page);
}

/* A snapshot as Python writes it in protocol 2, with another name of a file: a text is its
 * length in four bytes, then itself. */
static void
write_with_file (const char *path, const char *old, const char *file)
{
  g_autofree char *bytes = NULL;
  g_autoptr (GByteArray) made = g_byte_array_new ();
  gsize n, before = strlen (old), after = strlen (file);
  g_file_get_contents (td_test_source ("tests/golden/snapshot/small-2.pickle"), &bytes, &n,
                       NULL);
  char *at = memmem (bytes, n, old, before);
  assert_non_null (at);
  const guint8 length[4] = { (guint8)after, (guint8)(after >> 8) };
  g_byte_array_append (made, (guint8 *)bytes, (guint)(at - 4 - bytes));
  g_byte_array_append (made, length, sizeof length);
  g_byte_array_append (made, (const guint8 *)file, (guint)after);
  g_byte_array_append (made, (guint8 *)at + before, (guint)(bytes + n - at - before));
  td_test_write_file (path, made->data, made->len);
}

/* The frames of a file that is there lead to its source. */
static void
stacks__lead_to_the_source (void **state)
{
  g_autofree char *source = g_strdup (td_test_tmp ("train.py"));
  g_autofree char *path = g_strdup (td_test_tmp ("run.pickle"));
  g_autoptr (GString) text = g_string_new (NULL);
  for (int i = 1; i <= 50; i++)
    g_string_append_printf (text, "step (%d)\n", i);
  td_test_write_file (source, text->str, text->len);
  write_with_file (path, "/src/net/train.py", source);
  ui_test_open (path);
  ui_test_resize (1440, 900);
  td_session_select (ui_test_session (), find_block (3000320)); /* its place is line 21 */
  ui_test_settle ();
  scroll_to ("stacks-card");
  ui_test_save_picture ("stacks-source.png");
  GtkWidget *link = ui_test_find_named (GTK_WIDGET (card_stack ()), "frame-source");
  assert_non_null (link);
  g_signal_emit_by_name (link, "clicked");
  ui_test_settle ();
  TdSourcePage *page = td_workspace_get_source (ui_test_workspace ());
  assert_string_equal (td_source_page_get_file (page), source);
  assert_int_equal (td_source_page_get_line (page), 21);
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (stacks__of_a_block_are_shown_whole),
    ui_test (stacks__narrow_the_blocks_to_those_under_a_frame),
    ui_test (stacks__are_a_page_of_the_inspector),
    ui_test (stacks__lead_to_the_source),
    ui_test (stacks__tell_what_is_new_in_another_snapshot),
  };

  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
