/* What a screen reader is told: whatever takes the focus has a name and a role, on every page
 * of the window, and Tab comes to all of it and out again. SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <string.h>

#include "pages/td-record-page.h"
#include "window/td-window-private.h"

static gboolean
has_own_name (GtkWidget *widget)
{
  GtkAccessible *accessible = GTK_ACCESSIBLE (widget);
  return gtk_test_accessible_has_property (accessible, GTK_ACCESSIBLE_PROPERTY_LABEL)
         || gtk_test_accessible_has_relation (accessible, GTK_ACCESSIBLE_RELATION_LABELLED_BY);
}

/* Words inside it, which name a button, a row or a cell. */
static gboolean
has_words (GtkWidget *widget)
{
  if (GTK_IS_LABEL (widget) && *gtk_label_get_text (GTK_LABEL (widget)))
    return TRUE;
  for (GtkWidget *child = gtk_widget_get_first_child (widget); child;
       child = gtk_widget_get_next_sibling (child))
    if (gtk_widget_get_visible (child) && has_words (child))
      return TRUE;
  return FALSE;
}

static gboolean
is_named_by_content (GtkWidget *widget)
{
  GtkAccessibleRole role = gtk_accessible_get_accessible_role (GTK_ACCESSIBLE (widget));
  return GTK_IS_BUTTON (widget) || GTK_IS_LABEL (widget) || GTK_IS_LIST_BOX_ROW (widget)
         || role == GTK_ACCESSIBLE_ROLE_BUTTON || role == GTK_ACCESSIBLE_ROLE_TAB
         || role == GTK_ACCESSIBLE_ROLE_RADIO || role == GTK_ACCESSIBLE_ROLE_LIST_ITEM
         || role == GTK_ACCESSIBLE_ROLE_ROW || role == GTK_ACCESSIBLE_ROLE_GRID_CELL
         || role == GTK_ACCESSIBLE_ROLE_WIDGET || role == GTK_ACCESSIBLE_ROLE_CELL
         || role == GTK_ACCESSIBLE_ROLE_MENU_ITEM;
}

/* The text inside of an entry or a number is named as that is. */
static gboolean
is_named (GtkWidget *widget)
{
  if (has_own_name (widget) || (is_named_by_content (widget) && has_words (widget)))
    return TRUE;
  GtkWidget *parent = gtk_widget_get_parent (widget);
  if (GTK_IS_TEXT (widget) && parent
      && (GTK_IS_SPIN_BUTTON (parent) || GTK_IS_EDITABLE (parent)))
    return has_own_name (parent);
  /* what a choice shows of its list is named as the row is */
  GtkWidget *choice = gtk_widget_get_ancestor (widget, ADW_TYPE_COMBO_ROW);
  if (GTK_IS_LIST_VIEW (widget) && choice)
    return has_words (choice);
  /* the button that closes a search bar is GTK's own, and from 4.10 on without a name */
  if (GTK_IS_BUTTON (widget) && gtk_widget_get_ancestor (widget, GTK_TYPE_SEARCH_BAR)
      && gtk_button_get_icon_name (GTK_BUTTON (widget)))
    return gtk_check_version (4, 10, 0) == NULL;
  /* the button inside of a menu button */
  return (GTK_IS_TOGGLE_BUTTON (widget) && parent && GTK_IS_MENU_BUTTON (parent)
          && has_own_name (parent));
}

static char *
describe (GtkWidget *widget)
{
  GString *text = g_string_new (NULL);
  for (GtkWidget *w = widget; w && text->len < 120; w = gtk_widget_get_parent (w))
    g_string_append_printf (text, "%s%s", text->len ? " in " : "", G_OBJECT_TYPE_NAME (w));
  return g_string_free (text, FALSE);
}

static gboolean
has_focusable_inside (GtkWidget *widget)
{
  for (GtkWidget *child = gtk_widget_get_first_child (widget); child;
       child = gtk_widget_get_next_sibling (child))
    if (gtk_widget_get_mapped (child)
        && (gtk_widget_get_focusable (child) || has_focusable_inside (child)))
      return TRUE;
  return FALSE;
}

/* A scrolled window gives the focus on to what it holds. */
static gboolean
takes_focus (GtkWidget *widget)
{
  return gtk_widget_get_focusable (widget)
         && !(GTK_IS_SCROLLED_WINDOW (widget) && has_focusable_inside (widget));
}

static guint
check_names (GtkWidget *widget, const char *page, GString *wrong)
{
  guint n = 0;
  if (!gtk_widget_get_mapped (widget))
    return 0;
  if (takes_focus (widget))
    {
      n++;
      if (!is_named (widget))
        {
          g_autofree char *where = describe (widget);
          g_string_append_printf (wrong, "%s: %s\n", page, where);
        }
    }
  for (GtkWidget *child = gtk_widget_get_first_child (widget); child;
       child = gtk_widget_get_next_sibling (child))
    n += check_names (child, page, wrong);
  return n;
}

/* Returns how many widgets take the focus; says which of them have no name. */
static guint
check_page (const char *page, guint *n_wrong)
{
  g_autoptr (GString) wrong = g_string_new (NULL);
  ui_test_settle ();
  guint n = check_names (GTK_WIDGET (ui_test_window ()), page, wrong);
  if (wrong->len)
    print_error ("without a name:\n%s", wrong->str);
  *n_wrong += wrong->len > 0;
  return n;
}

static void
names__everything_that_takes_the_focus_has_one (void **state)
{
  static const char *const pages[]
      = { "outline", "value",  "iterations", "gradient", "outline", "op",
          "life",    "links",  "gradients",  "schedule", "curves",  "evaluate",
          "log",     "source", "memory",     "debug" };
  guint wrong = 0;
  assert_in_range (check_page ("start", &wrong), 6, 100);
  g_action_group_activate_action (G_ACTION_GROUP (ui_test_app ()), "record", NULL);
  assert_in_range (check_page ("record", &wrong), 14, 100);
  ui_test_new_window ();
  ui_test_open_sample (NULL);
  ui_test_do ("go-to", "i=10&e=27");
  ui_test_do ("select", "relu");
  assert_in_range (check_page ("workspace", &wrong), 30, 500);
  for (guint i = 0; i < G_N_ELEMENTS (pages); i++)
    {
      ui_test_do ("show-page", pages[i]);
      assert_in_range (check_page (pages[i], &wrong), 20, 500);
    }
  ui_test_do ("find", NULL);
  check_page ("find", &wrong);
  td_window_show_message (ui_test_window (), "dialog-error-symbolic", "Title", "Text",
                          "Details");
  assert_in_range (check_page ("message", &wrong), 2, 50);
  assert_int_equal (wrong, 0);
}

static void
roles__are_those_of_the_design (void **state)
{
  ui_test_open_sample (NULL);
  TdWorkspace *workspace = ui_test_workspace ();
  GtkWidget *canvas = GTK_WIDGET (td_graph_page_get_view (td_workspace_get_graph (workspace)));
  gtk_test_accessible_assert_role (GTK_ACCESSIBLE (canvas), GTK_ACCESSIBLE_ROLE_IMG);
  gtk_test_accessible_assert_property (GTK_ACCESSIBLE (canvas), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                       "Computation graph");
  ui_test_do ("go-to", "i=10&e=3");
  ui_test_do ("select", "softmax_cross_entropy");
  assert_true (gtk_test_accessible_has_property (GTK_ACCESSIBLE (canvas),
                                                 GTK_ACCESSIBLE_PROPERTY_DESCRIPTION));
  char *said = gtk_test_accessible_check_property (GTK_ACCESSIBLE (canvas),
                                                   GTK_ACCESSIBLE_PROPERTY_DESCRIPTION, "");
  assert_contains (said, "softmax_cross_entropy, event 12");
  g_free (said);
}

/* Focus goes round: from where it starts Tab leads back to it, over everything that Tab can
 * come to and never twice to the same in between. */
static guint
count_tab_stops (void)
{
  GtkWindow *window = GTK_WINDOW (ui_test_window ());
  g_autoptr (GHashTable) seen = g_hash_table_new (NULL, NULL);
  gtk_window_set_focus (window, NULL);
  for (guint i = 0; i < 500; i++)
    {
      if (!gtk_widget_child_focus (GTK_WIDGET (window), GTK_DIR_TAB_FORWARD))
        return g_hash_table_size (seen); /* the end: it begins again */
      GtkWidget *focus = gtk_window_get_focus (window);
      if (!focus)
        return g_hash_table_size (seen);
      if (!g_hash_table_add (seen, focus))
        {
          if (gtk_widget_get_ancestor (focus, ADW_TYPE_HEADER_BAR))
            return g_hash_table_size (seen); /* round */
          g_autofree char *where = describe (focus);
          fail_msg ("Tab comes to it twice after %u others: %s", g_hash_table_size (seen),
                    where);
        }
    }
  fail_msg ("Tab never comes round");
  return 0;
}

static void
tab__is_caught_nowhere (void **state)
{
  static const char *const pages[] = { "value", "op", "life", "links", "iterations", "memory" };
  count_tab_stops ();
  ui_test_open_sample (NULL);
  ui_test_do ("go-to", "i=10&e=27");
  for (guint i = 0; i < G_N_ELEMENTS (pages); i++)
    {
      ui_test_do ("show-page", pages[i]);
      guint n = count_tab_stops ();
      if (n < 15)
        fail_msg ("%s: Tab comes to %u widgets only", pages[i], n);
    }
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (names__everything_that_takes_the_focus_has_one),
    ui_test (roles__are_those_of_the_design),
    ui_test (tab__is_caught_nowhere),
  };
  g_setenv ("GTK_A11Y", "test", TRUE);
  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
