/* Which files are the tapes of a run's ranks: see td-rank-files.h.
 *
 * SPDX-License-Identifier: MIT */
#include "td-rank-files.h"

#include <string.h>

#include <gio/gio.h>

#include "td-session.h"

#define SUFFIX ".tdtape"

static int
by_text (gconstpointer a, gconstpointer b)
{
  return strcmp (*(char *const *)a, *(char *const *)b);
}

/* All tapes of a folder, or those whose names begin and end so with a number between. */
static GPtrArray *
list_folder (const char *folder, const char *begin, const char *end, GError **error)
{
  g_autoptr (GDir) dir = g_dir_open (folder, 0, error);
  GPtrArray *paths;
  const char *name;

  if (!dir)
    return NULL;
  paths = g_ptr_array_new_with_free_func (g_free);
  while ((name = g_dir_read_name (dir)))
    {
      gsize n = strlen (name), at = begin ? strlen (begin) : 0;

      if (begin && (n <= at + strlen (end) || !g_str_has_prefix (name, begin)))
        continue;
      if (begin)
        at += strspn (name + at, "0123456789");
      if (begin ? strcmp (name + at, end) == 0 : g_str_has_suffix (name, SUFFIX))
        g_ptr_array_add (paths, g_build_filename (folder, name, NULL));
    }
  g_ptr_array_sort (paths, by_text);
  return paths;
}

/* "run-rank-0.tdtape" has siblings; another name has none. */
static GPtrArray *
list_siblings (const char *path, GError **error)
{
  g_autofree char *folder = g_path_get_dirname (path), *name = g_path_get_basename (path);
  char *digits = g_strrstr (name, "rank-");
  GPtrArray *paths;
  g_autofree char *end = NULL;

  if (digits && g_ascii_isdigit (digits[5]))
    {
      digits += 5;
      end = g_strdup (digits + strspn (digits, "0123456789"));
      *digits = '\0';
      return list_folder (folder, name, end, error);
    }
  paths = g_ptr_array_new_with_free_func (g_free);
  g_ptr_array_add (paths, g_strdup (path));
  return paths;
}

GPtrArray *
td_rank_files_list (const char *const *paths, guint n, GError **error)
{
  GPtrArray *all;

  if (n == 1 && g_file_test (paths[0], G_FILE_TEST_IS_DIR))
    return list_folder (paths[0], NULL, NULL, error);
  if (n == 1)
    return list_siblings (paths[0], error);
  all = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; i < n; i++)
    g_ptr_array_add (all, g_strdup (paths[i]));
  return all;
}

/* ---- by what they say of themselves ---- */

/* Its header alone is read. Returns 0 for what is none, or of one rank alone. */
static guint
read_rank (const char *path, guint *rank)
{
  TdTapeHeader header;
  FILE *f = fopen (path, "rbe");
  gboolean whole = f && fread (&header, sizeof header, 1, f) == 1
                   && memcmp (header.magic, TD_TAPE_MAGIC, sizeof header.magic) == 0
                   && header.major == TD_TAPE_MAJOR;

  g_clear_pointer (&f, fclose);
  if (!whole || header.n_ranks < 2 || header.rank >= header.n_ranks)
    return 0;
  *rank = header.rank;
  return header.n_ranks;
}

char *
td_rank_files_find (const char *path, guint rank, guint *n_ranks)
{
  g_autoptr (GPtrArray) paths = td_rank_files_list (&path, 1, NULL);
  guint own;

  *n_ranks = 0;
  for (guint i = 0; paths && i < paths->len; i++)
    {
      const char *one = g_ptr_array_index (paths, i);
      const guint n = read_rank (one, &own);

      *n_ranks = MAX (*n_ranks, n);
      if (n > 0 && own == rank)
        return g_strdup (one);
    }
  return NULL;
}

char *
td_rank_files_find_first (const char *path, guint *n_ranks)
{
  g_autoptr (GPtrArray) paths = td_rank_files_list (&path, 1, NULL);
  const char *first = NULL;
  guint own, least = G_MAXUINT;

  *n_ranks = 0;
  for (guint i = 0; paths && i < paths->len; i++)
    {
      const guint n = read_rank (g_ptr_array_index (paths, i), &own);

      *n_ranks = MAX (*n_ranks, n);
      if (n == 0 || own >= least)
        continue;
      least = own;
      first = g_ptr_array_index (paths, i);
    }
  return g_strdup (first);
}
