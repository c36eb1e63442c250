/* The pages of a panel: buttons where there is room for them, else a menu; either turns the
 * panel, and shows how it stands. SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include "widgets/td-stack-switcher.h"

static GtkStack *stack;

/* In a window of its own, `width` wide. Owner: GTK. */
static GtkWidget *
show (int width)
{
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 0), *window = gtk_window_new ();
  stack = GTK_STACK (gtk_stack_new ());
  GtkWidget *switcher = td_stack_switcher_new (stack);
  for (const char *const *name = (const char *const[]){ "Heatmap", "Newest", "Findings", NULL };
       *name; name++)
    gtk_stack_add_titled (stack, gtk_label_new (*name), *name, *name);
  gtk_box_append (GTK_BOX (box), switcher);
  gtk_box_append (GTK_BOX (box), GTK_WIDGET (stack));
  gtk_window_set_decorated (GTK_WINDOW (window), FALSE);
  gtk_window_set_default_size (GTK_WINDOW (window), width, 100);
  gtk_window_set_child (GTK_WINDOW (window), box);
  gtk_window_present (GTK_WINDOW (window));
  ui_test_settle ();
  return switcher;
}

static gboolean
is_seen (GtkWidget *switcher, GType type)
{
  for (GtkWidget *child = gtk_widget_get_first_child (switcher); child;
       child = gtk_widget_get_next_sibling (child))
    if (G_TYPE_CHECK_INSTANCE_TYPE (child, type))
      return gtk_widget_get_mapped (child);
  fail_msg ("there is no %s", g_type_name (type));
  return FALSE;
}

static void
close_window (GtkWidget *switcher)
{
  gtk_window_destroy (GTK_WINDOW (gtk_widget_get_root (switcher)));
}

static void
switcher__is_buttons_where_there_is_room (void **state)
{
  GtkWidget *switcher = show (600);
  assert_true (is_seen (switcher, GTK_TYPE_STACK_SWITCHER));
  assert_false (is_seen (switcher, GTK_TYPE_DROP_DOWN));
  close_window (switcher);
}

static void
switcher__is_a_menu_where_there_is_none (void **state)
{
  GtkWidget *switcher = show (130), *menu = gtk_widget_get_last_child (switcher);
  assert_false (is_seen (switcher, GTK_TYPE_STACK_SWITCHER));
  assert_true (is_seen (switcher, GTK_TYPE_DROP_DOWN));
  assert_true (gtk_widget_get_width (switcher) <= 130);
  gtk_drop_down_set_selected (GTK_DROP_DOWN (menu), 2);
  assert_string_equal (gtk_stack_get_visible_child_name (stack), "Findings");
  gtk_stack_set_visible_child_name (stack, "Newest");
  assert_int_equal (gtk_drop_down_get_selected (GTK_DROP_DOWN (menu)), 1);
  close_window (switcher);
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (switcher__is_buttons_where_there_is_room),
    ui_test (switcher__is_a_menu_where_there_is_none),
  };
  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
