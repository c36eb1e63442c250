/* Arrays whose elements lie in files beside the model.
 *
 * SPDX-License-Identifier: MIT */
#include "graph.h"

#include "compute/core/core.h"
#include "../serial/read-file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A path that stays in its folder: not absolute, and never up. */
static bool
stays (const char *path)
{
  for (const char *at = path;; at = strchr (at, '/') + 1)
    {
      const size_t n = strcspn (at, "/");

      if (n == 2 && at[0] == '.' && at[1] == '.')
        return false;
      if (at[n] == '\0')
        return path[0] != '\0' && path[0] != '/';
    }
}

/* Does a link lead out of the folder, whose name has `n` bytes?  What is not there does not. */
static bool
leaves (const char *file, size_t n)
{
  char *folder = n > 0 ? strndup (file, n) : strdup ("."), *inside, *root;
  bool out;

  root = folder != NULL ? realpath (folder, NULL) : NULL;
  inside = realpath (file, NULL);
  n = root != NULL ? strlen (root) : 0;
  out = root != NULL && inside != NULL && strcmp (root, "/") != 0
        && (strncmp (root, inside, n) != 0 || inside[n] != '/');
  free (folder);
  free (root);
  free (inside);
  return out;
}

static const char *
read_one (TdOnnxGraph *g, const char *path, TdOnnxTensor *t)
{
  const char *slash = strrchr (path, '/'), *why = NULL;
  const size_t folder = slash != NULL ? (size_t)(slash - path) + 1 : 0;
  char *file;
  size_t need;

  if (t->location[0] == '\0')
    return "its data lies in a file without a name";
  if (!stays (t->location))
    return "its data lies in a path that leaves the model's folder, or could: it is absolute "
           "or has ..";
  if (!td__shape_bytes (&t->shape, (TdDtype)t->dtype, &need))
    return "its sizes overflow";
  if (t->length != 0 && t->length != need)
    return "it has not the elements that its sizes promise";
  file = td__onnx_alloc (&g->arena, folder + strlen (t->location) + 1, 1);
  memcpy (file, path, folder);
  strcpy (file + folder, t->location);
  if (leaves (file, folder))
    return "its data lies in a path that leaves the model's folder";
  t->external = td__read_file_part (file, t->offset, need, &why);
  t->elements = t->external;
  t->bytes = need;
  return why;
}

bool
td__onnx_read_external (TdOnnxGraph *g, const char *path, char *why, size_t size)
{
  for (int i = 0; i < g->n_givens; i++)
    {
      TdOnnxTensor *t = &g->givens[i].tensor;
      const char *what = t->location != NULL && t->dtype >= 0 ? read_one (g, path, t) : NULL;

      if (what != NULL)
        {
          snprintf (why, size, "initializer %.100s in %.200s: %s", t->name, t->location, what);
          return false;
        }
    }
  return true;
}
