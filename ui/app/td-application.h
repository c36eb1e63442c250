/* The application: one process, files and command lines from further starts, the actions of
 * `app.`. Windows do the rest.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <adwaita.h>

#define TD_APPLICATION_ID "io.github.tapedeck.Tapedeck"

#define TD_TYPE_APPLICATION (td_application_get_type ())
G_DECLARE_FINAL_TYPE (TdApplication, td_application, TD, APPLICATION, AdwApplication)

/** Create the application. Owner: caller. */
TdApplication *td_application_new (void);

/** Set what GTK reads from the environment at its start: the renderer where there is no GPU,
 * and nothing else. Call before any GTK function. */
void td_application_prepare_environment (void);
