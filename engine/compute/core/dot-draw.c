/* Pictures of graphs: tapedeck-viz draws them, the engine knows nothing of drawing.
 *
 * SPDX-License-Identifier: MIT */
#include "dot.h"

#include <dlfcn.h>
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

bool
td__dot_is_picture (const char *path)
{
  const char *ending = strrchr (path, '.');
  static const char *const pictures[] = { ".png", ".svg", ".pdf" };

  for (int i = 0; ending != NULL && i < TD_ARRAY_LENGTH (pictures); i++)
    if (strcasecmp (ending, pictures[i]) == 0)
      return true;
  return false;
}

#ifndef TD_HELPERS_FOLDER
#define TD_HELPERS_FOLDER                                                                      \
  "/" /* where none is: the engine is in a library that lies near them */
#endif

/* Where tapedeck-viz lies beside the library that this code is in: installed, or in a build
 * tree. */
static const char *
find_viz (char *path, size_t size)
{
  static const char *const places[]
      = { "../app/tapedeck-viz", "../libexec/tapedeck/tapedeck-viz",
          "../../libexec/tapedeck/tapedeck-viz" };
  const char *given = getenv ("TAPEDECK_VIZ"); /* NOLINT(concurrency-mt-unsafe) */
  const char *slash;
  Dl_info info;

  if (given != NULL && *given != '\0')
    return given;
  if (dladdr ((void *)(uintptr_t)td__dot_draw, &info) == 0 || info.dli_fname == NULL)
    return NULL;
  slash = strrchr (info.dli_fname, '/');
  for (int i = 0; slash != NULL && i < TD_ARRAY_LENGTH (places); i++)
    {
      snprintf (path, size, "%.*s/%s", (int)(slash - info.dli_fname), info.dli_fname,
                places[i]);
      if (access (path, X_OK) == 0)
        return path;
    }
  return access (TD_HELPERS_FOLDER "tapedeck-viz", X_OK) == 0 ? TD_HELPERS_FOLDER "tapedeck-viz"
                                                              : NULL;
}

TdStatus
td__dot_draw (const char *dot, const char *picture)
{
  char place[4096];
  const char *viz = find_viz (place, sizeof place);
  char *argv[] = { (char *)(uintptr_t)viz,   (char *)(uintptr_t) "dot",  (char *)(uintptr_t)dot,
                   (char *)(uintptr_t) "-o", (char *)(uintptr_t)picture, NULL };
  int status = -1, failed;
  pid_t pid;

  if (viz == NULL)
    {
      unlink (dot);
      return td__fail (TD_ERR_IO, "td_save_dot", NULL,
                       "%.400s: pictures are drawn by tapedeck-viz, which is not installed; "
                       ".dot needs nothing",
                       picture);
    }
  failed = posix_spawn (&pid, viz, NULL, NULL, argv, environ);
  while (failed == 0 && waitpid (pid, &status, 0) < 0 && errno == EINTR)
    continue;
  unlink (dot);
  if (failed == 0 && WIFEXITED (status) && WEXITSTATUS (status) == 0)
    return TD_OK;
  return td__fail (TD_ERR_IO, "td_save_dot", NULL, "%.400s: tapedeck-viz could not draw it",
                   picture);
}
