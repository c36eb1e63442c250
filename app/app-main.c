/* The desktop app's main: the environment first, then the application.
 * SPDX-License-Identifier: MIT */
#include "td-application.h"

int
main (int argc, char **argv)
{
  td_application_prepare_environment ();
  g_autoptr (TdApplication) app = td_application_new ();
  return g_application_run (G_APPLICATION (app), argc, argv);
}
