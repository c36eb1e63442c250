/* Saving and loading a link: an npz file with Chainer's keys.
 *
 * Loading has two passes: the first reads and checks every array, the second puts them in
 * place, so that a bad file changes nothing.
 *
 * SPDX-License-Identifier: MIT */
#include "../links/link.h"

#include "npy.h"
#include "zip.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- saving --- */

typedef struct
{
  const char *path;
  const TdSite *site;
  TdZipWriter zip;
  TdStatus status;
} Save;

static void
fail_save (Save *s, const char *key, const char *why)
{
  if (s->status == TD_OK)
    s->status = td__fail (TD_ERR_IO, "td_save_npz", s->site, "%.400s: %s%s%s", s->path, key,
                          *key != '\0' ? ": " : "", why);
}

/* A parameter that waits for its shape is not in the file. */
static void
save_one (TdLink *owner, TdParam *param, const char *key, void *user)
{
  Save *s = user;
  size_t bytes;
  char name[4200];
  const char *why;
  void *host, *npy;

  (void)owner;
  if (param->kind == TD_PARAM_ATTR || param->var == NULL || s->status != TD_OK)
    return;
  host = malloc (param->var->buffer->bytes + 1);
  if (host == NULL)
    {
      fail_save (s, key, "no memory to copy it");
      return;
    }
  s->status = td_read_at (param->var, host, param->var->buffer->bytes, s->site);
  if (s->status == TD_OK)
    {
      npy = td__npy_format ((TdDtype)param->var->node->dtype, &param->var->node->shape, host,
                            &bytes);
      snprintf (name, sizeof name, "%s.npy", key);
      if (!td__zip_add (&s->zip, name, npy, bytes, &why))
        fail_save (s, key, why);
      free (npy);
    }
  free (host);
}

static void
save_all (Save *s, TdLink *link, int fd)
{
  const char *why;

  s->zip.file = fdopen (fd, "wb");
  if (s->zip.file == NULL)
    {
      close (fd);
      fail_save (s, "", "no memory to write it");
      return;
    }
  td__link_visit (link, save_one, s);
  if (s->status == TD_OK && !td__zip_finish (&s->zip, &why))
    fail_save (s, "", why);
  if (s->status == TD_OK && (fflush (s->zip.file) != 0 || fsync (fd) != 0))
    fail_save (s, "", strerror (errno)); /* NOLINT(concurrency-mt-unsafe) */
  if (fclose (s->zip.file) != 0 && s->status == TD_OK)
    fail_save (s, "", strerror (errno)); /* NOLINT(concurrency-mt-unsafe) */
  td__zip_writer_clear (&s->zip);
}

TdStatus
td_save_npz_at (const char *path, TdLink *link, const TdSite *site)
{
  Save s = { .path = path, .site = site };
  char temp[4096];
  int n, fd;

  if (!td__link_usable (link, "td_save_npz", site))
    return td__engine.error.status;
  if (path == NULL)
    return td__fail (TD_ERR_ARG, "td_save_npz", site, "the path is NULL");
  n = snprintf (temp, sizeof temp, "%s.XXXXXX", path);
  fd = n > 0 && (size_t)n < sizeof temp ? mkostemp (temp, O_CLOEXEC) : -1;
  if (fd < 0)
    {
      fail_save (&s, "", strerror (errno)); /* NOLINT(concurrency-mt-unsafe) */
      return s.status;
    }
  fchmod (fd, 0644);
  save_all (&s, link, fd);
  if (s.status == TD_OK && rename (temp, path) != 0)
    fail_save (&s, "", strerror (errno)); /* NOLINT(concurrency-mt-unsafe) */
  if (s.status != TD_OK)
    unlink (temp);
  return s.status;
}

TdStatus (td_save_npz) (const char *path, TdLink *link)
{
  return td_save_npz_at (path, link, NULL);
}

/* --- loading --- */

typedef struct
{
  TdParam *param;
  TdShape shape;
  void *data; /* in the parameter's dtype */
  size_t bytes;
} Loaded;

typedef struct
{
  const char *path;
  const TdSite *site;
  TdZip *zip;
  Loaded *loaded;
  int n;
  TdStatus status;
} Load;

static void
fail_load (Load *l, TdStatus status, const char *key, const char *why)
{
  l->status
      = td__fail (status, "td_load_npz", l->site, "%.400s: %.200s: %s", l->path, key, why);
}

/* Read one array and convert it to what its parameter wants. */
static void
take_array (Load *l, TdParam *param, const char *key, void *data, size_t bytes)
{
  char why_text[400], a[160], b[160];
  const char *why;
  Loaded *at;
  TdNpy npy;

  if (!td__npy_parse (data, bytes, &npy, &why))
    {
      fail_load (l, TD_ERR_IO, key, why);
      return;
    }
  if (param->var != NULL && !td_shape_equal (&npy.shape, &param->var->node->shape))
    {
      snprintf (why_text, sizeof why_text, "shape %s expected, the file has %s",
                td_shape_text (&param->var->node->shape, a, sizeof a),
                td_shape_text (&npy.shape, b, sizeof b));
      fail_load (l, TD_ERR_SHAPE, key, why_text);
      return;
    }
  l->loaded = td__xrealloc (l->loaded, (size_t)(l->n + 1) * sizeof *l->loaded);
  at = &l->loaded[l->n++];
  at->param = param;
  at->shape = npy.shape;
  at->bytes
      = (size_t)td_shape_size (&npy.shape)
        * td_dtype_bytes (param->var != NULL ? (TdDtype)param->var->node->dtype : param->dtype);
  at->data = td__xcalloc (1, at->bytes + 1);
  td__npy_convert (&npy, (char *)data + npy.offset,
                   param->var != NULL ? (TdDtype)param->var->node->dtype : param->dtype,
                   at->data);
}

static void
read_one (TdLink *owner, TdParam *param, const char *key, void *user)
{
  Load *l = user;
  const TdZipMember *m;
  const char *why;
  char name[4200];
  void *data;

  (void)owner;
  if (param->kind == TD_PARAM_ATTR || l->status != TD_OK)
    return;
  snprintf (name, sizeof name, "%s.npy", key);
  m = td__zip_find (l->zip, name);
  if (m == NULL && param->var == NULL)
    return; /* it waited when it was saved, and waits on */
  if (m == NULL)
    {
      fail_load (l, TD_ERR_IO, key, "there is no such array in the file");
      return;
    }
  data = td__zip_read (l->zip, m, &why);
  if (data == NULL)
    fail_load (l, TD_ERR_IO, key, why);
  else
    take_array (l, param, key, data, m->bytes);
  free (data);
}

static void
put_in_place (Load *l)
{
  for (int i = 0; i < l->n && l->status == TD_OK; i++)
    {
      Loaded *at = &l->loaded[i];

      if (at->param->var == NULL)
        l->status = td__param_start (at->param, &at->shape);
      if (l->status == TD_OK)
        l->status = td_write_at (at->param->var, at->data, at->bytes, l->site);
    }
}

TdStatus
td_load_npz_at (const char *path, TdLink *link, const TdSite *site)
{
  Load l = { .path = path, .site = site };
  const char *why;

  if (!td__link_usable (link, "td_load_npz", site))
    return td__engine.error.status;
  if (path == NULL)
    return td__fail (TD_ERR_ARG, "td_load_npz", site, "the path is NULL");
  l.zip = td__zip_open (path, &why);
  if (l.zip == NULL)
    return td__fail (TD_ERR_IO, "td_load_npz", site, "%.400s: %s", path, why);
  td__link_visit (link, read_one, &l);
  put_in_place (&l);
  for (int i = 0; i < l.n; i++)
    free (l.loaded[i].data);
  free (l.loaded);
  td__zip_close (l.zip);
  return l.status;
}

TdStatus (td_load_npz) (const char *path, TdLink *link)
{
  return td_load_npz_at (path, link, NULL);
}
