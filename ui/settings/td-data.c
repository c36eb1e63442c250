/* Where the files are that are installed beside the program. SPDX-License-Identifier: MIT */
#include "settings/td-data.h"

#include <string.h>

static const struct
{
  const char *kind, *variable;
  const char *folders[3]; /* of sources and build, ended by NULL */
} kinds[] = { { "lessons", "TAPEDECK_LESSONS", { TD_SOURCE_LESSONS, TD_BUILD_LESSONS } },
              { "examples", "TAPEDECK_EXAMPLES", { TD_SOURCE_EXAMPLES } } };

static char *
dup_installed (const char *kind)
{
  g_autofree char *self = g_file_read_link ("/proc/self/exe", NULL);
  g_autofree char *here = self ? g_path_get_dirname (self) : g_strdup (".");
  return g_build_filename (here, "../../share/tapedeck", kind, NULL);
}

char **
td_data_list_folders (const char *kind)
{
  g_autoptr (GStrvBuilder) folders = g_strv_builder_new ();
  g_autofree char *installed = dup_installed (kind);
  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++)
    {
      const char *own = g_getenv (kinds[i].variable);
      if (strcmp (kinds[i].kind, kind) != 0)
        continue;
      if (own)
        g_strv_builder_add (folders, own);
      else
        {
          g_strv_builder_addv (folders, (const char **)kinds[i].folders);
          g_strv_builder_add (folders, installed);
        }
    }
  return g_strv_builder_end (folders);
}

char *
td_data_find (const char *kind, const char *file)
{
  g_auto (GStrv) folders = td_data_list_folders (kind);
  for (guint i = 0; folders[i]; i++)
    {
      g_autofree char *path = g_build_filename (folders[i], file, NULL);
      if (g_file_test (path, G_FILE_TEST_EXISTS))
        return g_steal_pointer (&path);
    }
  return NULL;
}
