/* Links to a moment: made in a window, and followed in it, in another, or in vain.
 * SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <string.h>

#include "window/td-window-private.h"

/* From another window, which finds the recording among those that were opened lately. */
static void
link__leads_back_to_its_moment_and_selection (void **state)
{
  ui_test_open_sample (NULL);
  ui_test_do ("go-to", "i=7&e=2");
  assert_true (td__window_go_to_text (ui_test_window (), "softmax_cross"));
  g_autofree char *selected = ui_test_state ("selected");
  g_autofree char *link = td__window_dup_link (ui_test_window ());
  assert_int_equal (strlen (selected), 16);
  assert_true (g_str_has_suffix (link, selected));
  ui_test_do ("copy-link", NULL);
  ui_test_do ("go-to", "i=1&e=1&sel=0");
  assert_true (td_window_open_link (ui_test_window (), link));
  assert_moment (7, 2);
  ui_test_new_window ();
  assert_null (ui_test_session ());
  assert_true (td_window_open_link (ui_test_window (), link));
  assert_non_null (ui_test_session ());
  assert_moment (7, 2);
  g_autofree char *again = ui_test_state ("selected");
  assert_string_equal (again, selected);
}

static void
link__to_what_is_not_here_says_so_and_loses_nothing (void **state)
{
  static const char *const links[] = {
    "tapedeck:",
    "tapedeck:12?i=3",
    "tapedeck:xyz",
    "tapedeck:0123456789abcdef0123456789abcdef?i=3&e=1",
    "tapedeck:01234567-89ab-cdef-0123-456789abcdef",
  };
  ui_test_open_sample (NULL);
  ui_test_do ("go-to", "i=7&e=2");
  for (guint i = 0; i < G_N_ELEMENTS (links); i++)
    {
      assert_false (td_window_open_link (ui_test_window (), links[i]));
      assert_true (ui_test_has_info (
          (gpointer)(i < 3 ? "A link is tapedeck:" : "recording that is not open")));
      assert_moment (7, 2);
    }
  g_autofree char *link = td__window_dup_link (ui_test_window ());
  g_autofree char *far = g_strdup_printf ("%.*s?i=99999&e=0", 9 + 32, link);
  assert_false (td_window_open_link (ui_test_window (), far));
  assert_true (ui_test_has_info ((gpointer) "has no iteration 99999"));
  g_autofree char *long_one = g_strnfill (100000, 'A');
  memcpy (long_one, "tapedeck:", 9);
  assert_false (td_window_open_link (ui_test_window (), long_one));
  ui_test_new_window ();
  assert_false (td_window_open_link (ui_test_window (), long_one));
  ui_test_settle ();
  assert_false (td_window_open_link (ui_test_window (), links[3]));
  ui_test_save_picture ("link-not-here.png");
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (link__leads_back_to_its_moment_and_selection),
    ui_test (link__to_what_is_not_here_says_so_and_loses_nothing),
  };
  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
