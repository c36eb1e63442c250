/* The app's settings, found wherever the app runs from: installed in any prefix, or in the
 * build tree. What the keys mean stands in data/io.github.tapedeck.Tapedeck.gschema.xml.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/** Open the settings of a program that lies in `program_folder`.
 * Looks in the usual places, then where the folder's own prefix or build tree has its schemas.
 * Owner: the caller, g_object_unref (). Errors: NULL when no schema is found; the app then runs
 * with its defaults and keeps nothing (g_settings_new () would end the program). */
GSettings *td_settings_open (const char *program_folder);

/** The settings of this program, opened once. Owner: the program. Errors: as td_settings_open
 * (). */
GSettings *td_settings_get (void);

/** Return the number of bytes under `key` as `tapedeck run` takes it: "2G", "1500". Owner:
 * caller. */
char *td_settings_dup_bytes (const char *key);

/** Return how many bytes a recording from the window may take: "tape-budget", and at most half
 * of what all runs may take together, "runs-budget". 0: any number. */
guint64 td_settings_get_run_bytes (void);

/** Put the bytes that `text` ("2G", "1500") says under `key`; nothing when it says none. */
void td_settings_set_bytes (const char *key, const char *text);

G_END_DECLS
