/* Settings: the program finds its schema in the build tree and in any prefix, and lives
 * without. SPDX-License-Identifier: MIT */
#include "td-test.h"

#include "settings/td-settings.h"

#include <glib/gstdio.h>
#include <stdlib.h>

static void
settings__are_found_from_the_build_tree (void **state)
{
  GSettings *settings = td_settings_open (td_test_build ("app"));

  (void)state;
  assert_non_null (settings);
  assert_true (g_settings_get_boolean (settings, "single-key-shortcuts"));
  g_object_unref (settings);
}

static void
settings__are_found_from_an_unusual_prefix (void **state)
{
  const char *program = td_test_tmp ("opt/libexec/tapedeck");
  const char *schemas = td_test_tmp ("opt/share/glib-2.0/schemas");
  const char *compiled = td_test_tmp ("opt/share/glib-2.0/schemas/gschemas.compiled");
  size_t bytes;
  char *data = td_test_read_file (td_test_build ("data/gschemas.compiled"), &bytes);
  GSettings *settings;

  (void)state;
  g_mkdir_with_parents (program, 0755);
  g_mkdir_with_parents (schemas, 0755);
  td_test_write_file (compiled, data, bytes);
  free (data);
  settings = td_settings_open (program);
  assert_non_null (settings);
  assert_int_equal (g_settings_get_int (settings, "window-width"), 1440);
  g_object_unref (settings);
}

static void
settings__defaults_are_those_of_the_design (void **state)
{
  GSettings *settings = td_settings_open (td_test_build ("app"));
  char *level = g_settings_get_string (settings, "level");
  char **panels = g_settings_get_strv (settings, "dock-panels");

  (void)state;
  assert_string_equal (level, "stats");
  assert_int_equal (g_settings_get_uint (settings, "values-iterations"), 20);
  assert_int_equal (g_settings_get_uint64 (settings, "values-budget"), 256 << 20);
  assert_int_equal (g_settings_get_uint64 (settings, "tape-budget"), 512 << 20);
  assert_int_equal (g_settings_get_uint64 (settings, "runs-budget"), (guint64)5000000000);
  assert_int_equal (g_strv_length (panels), 3);
  assert_string_equal (panels[0], "memory");
  g_strfreev (panels);
  g_free (level);
  g_object_unref (settings);
}

static void
settings__missing_schema_is_null_and_no_end (void **state)
{
  (void)state;
  assert_null (td_settings_open (td_test_tmp ("nowhere/bin")));
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (settings__are_found_from_the_build_tree),
    td_test (settings__are_found_from_an_unusual_prefix),
    td_test (settings__defaults_are_those_of_the_design),
    td_test (settings__missing_schema_is_null_and_no_end),
  };

  /* Before GLib looks: only what lies beside the program counts here; below a file lies
   * nothing. */
  g_setenv ("XDG_DATA_DIRS", "/dev/null/none", TRUE);
  g_setenv ("XDG_DATA_HOME", "/dev/null/none", TRUE);
  g_unsetenv ("GSETTINGS_SCHEMA_DIR");
  g_setenv ("GSETTINGS_BACKEND", "memory", TRUE);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
