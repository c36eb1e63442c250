/* Where the settings schema is. GSettings itself ends the program when it is nowhere.
 * SPDX-License-Identifier: MIT */
#include "settings/td-settings.h"

#include <string.h>

#define SCHEMA_ID "io.github.tapedeck.Tapedeck"

/* From the program's folder: build tree (app/ beside data/), then libexec/tapedeck and bin. */
static const char *const schema_folders[] = {
  "../data",
  "../../share/glib-2.0/schemas",
  "../share/glib-2.0/schemas",
};

static GSettingsSchema *
schema_in (const char *folder)
{
  GSettingsSchemaSource *usual = g_settings_schema_source_get_default ();
  GSettingsSchemaSource *source
      = g_settings_schema_source_new_from_directory (folder, usual, FALSE, NULL);
  GSettingsSchema *schema = NULL;

  if (source != NULL)
    {
      schema = g_settings_schema_source_lookup (source, SCHEMA_ID, FALSE);
      g_settings_schema_source_unref (source);
    }
  return schema;
}

GSettings *
td_settings_open (const char *program_folder)
{
  GSettingsSchemaSource *usual = g_settings_schema_source_get_default ();
  GSettingsSchema *schema = NULL;
  GSettings *settings;

  /* Beside the program first: an older one that is installed may lack a key. */
  for (guint i = 0; i < G_N_ELEMENTS (schema_folders) && schema == NULL; i++)
    {
      g_autofree char *folder = g_build_filename (program_folder, schema_folders[i], NULL);

      schema = schema_in (folder);
    }
  if (schema == NULL && usual != NULL)
    schema = g_settings_schema_source_lookup (usual, SCHEMA_ID, TRUE);
  if (schema == NULL)
    return NULL;
  settings = g_settings_new_full (schema, NULL, NULL);
  g_settings_schema_unref (schema);
  return settings;
}

GSettings *
td_settings_get (void)
{
  static GSettings *settings;
  static gboolean looked;

  if (!looked)
    {
      g_autofree char *self = g_file_read_link ("/proc/self/exe", NULL);
      g_autofree char *folder = self != NULL ? g_path_get_dirname (self) : NULL;

      looked = TRUE;
      settings = td_settings_open (folder != NULL ? folder : ".");
    }
  return settings;
}

static const char units[] = "KMGT";

char *
td_settings_dup_bytes (const char *key)
{
  guint64 bytes = g_settings_get_uint64 (td_settings_get (), key);
  int unit = -1;

  while (bytes && bytes % 1024 == 0 && units[unit + 1])
    {
      bytes /= 1024;
      unit++;
    }
  return unit < 0 ? g_strdup_printf ("%" G_GUINT64_FORMAT, bytes)
                  : g_strdup_printf ("%" G_GUINT64_FORMAT "%c", bytes, units[unit]);
}

void
td_settings_set_bytes (const char *key, const char *text)
{
  char *end;
  double value = g_ascii_strtod (text, &end);
  const char *unit = *end ? strchr (units, g_ascii_toupper (*end)) : NULL;

  if (end == text || !(value >= 0))
    return;
  if (unit)
    value *= (double)((guint64)1 << (10 * (unit - units + 1)));
  if (value < 1e15)
    g_settings_set_uint64 (td_settings_get (), key, (guint64)value);
}

guint64
td_settings_get_run_bytes (void)
{
  guint64 one = g_settings_get_uint64 (td_settings_get (), "tape-budget");
  guint64 half = g_settings_get_uint64 (td_settings_get (), "runs-budget") / 2;

  return half && (!one || one > half) ? half : one;
}
