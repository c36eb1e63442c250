/* The desktop app's main: the environment first, then the application.
 * SPDX-License-Identifier: MIT */
#include "app/td-application.h"

#include <libintl.h>
#include <signal.h>

/* `--run MODEL ARGS`: the arguments are the model's, whatever they look like. */
static char **
protect_arguments (int *argc, char **argv)
{
  if (*argc < 3 || !g_str_equal (argv[1], "--run") || g_str_equal (argv[2], "--"))
    return argv;
  char **out = g_new0 (char *, (gsize)*argc + 2);
  out[0] = argv[0];
  out[1] = argv[1];
  out[2] = (char *)"--";
  for (int i = 2; i < *argc; i++)
    out[i + 1] = argv[i];
  (*argc)++;
  return out;
}

int
main (int argc, char **argv)
{
  signal (SIGXFSZ, SIG_IGN); /* a file beyond the limit of sizes is a full disk */
  bindtextdomain ("tapedeck", TD_LOCALE_DIR); /* what templates say is looked for there */
  bind_textdomain_codeset ("tapedeck", "UTF-8");
  td_application_prepare_environment ();
  g_autoptr (TdApplication) app = td_application_new ();
  argv = protect_arguments (&argc, argv);
  return g_application_run (G_APPLICATION (app), argc, argv);
}
