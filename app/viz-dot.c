/*
 * tapedeck-viz dot FILE -o PICTURE: what td_save_dot starts when a picture is asked for.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "scene/td-dot.h"
#include "viz-commands.h"

int
td_viz_dot (int argc, char **argv)
{
  const char *in = NULL, *out = NULL, *theme = "chainer", *ending;
  g_autofree char *text = NULL;
  g_autoptr (GError) error = NULL;
  gsize n;

  for (int i = 1; i < argc; i++)
    if (strcmp (argv[i], "-o") == 0 && i + 1 < argc)
      out = argv[++i];
    else if (strcmp (argv[i], "--theme") == 0 && i + 1 < argc)
      theme = argv[++i];
    else
      in = argv[i];
  if (!in || !out || !(ending = strrchr (out, '.')))
    return td__viz_trouble ("usage: tapedeck-viz dot FILE.dot -o FILE.png|svg|pdf");
  if (!g_file_get_contents (in, &text, &n, &error))
    return td__viz_trouble ("%s", error->message);
  g_autoptr (TdDotGraph) graph = td_dot_parse (text, n, &error);
  if (!graph)
    return td__viz_trouble ("%s: %s", in, error->message);
  g_autoptr (TdScene) scene = td_dot_scene (graph);
  g_autofree char *format = g_ascii_strdown (ending + 1, -1);
  if (!td_scene_export (scene, format, out, 1, td_theme_get (theme), &error))
    return td__viz_trouble ("%s", error->message);
  return 0;
}
