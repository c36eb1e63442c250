/* Arrays of a reference: what each one is, by its name.
 * SPDX-License-Identifier: MIT */
#include "tape-arrays.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NPY ".npy"

/* ------------------------------------------------------------------------------- names */

static bool
ends_in (const char *text, const char *end)
{
  const size_t n = strlen (text), m = strlen (end);

  return n > m && strcmp (text + n - m, end) == 0;
}

/* A copy with "/" for every dot and without the suffix of the file. */
static char *
normal_name (const char *name)
{
  char *copy = strdup (name);

  if (copy == NULL)
    return NULL;
  if (ends_in (copy, NPY))
    copy[strlen (copy) - strlen (NPY)] = '\0';
  for (char *c = copy; *c != '\0'; c++)
    *c = *c == '.' ? '/' : *c;
  return copy;
}

static bool
is_path (const char *path)
{
  return path[0] != '\0' && path[0] != '/' && path[strlen (path) - 1] != '/'
         && strstr (path, "//") == NULL;
}

void
td__tape_arrays_leave_out (TapeArrays *t, TapeArray *a, const char *why)
{
  a->kind = TAPE_ARRAY_LEFT_OUT;
  if (t->n_left_out++ == 0)
    snprintf (t->left_out, sizeof t->left_out, "%.60s: %.90s", a->member->name, why);
}

/* What can be said of a name alone: `path` is cut to the layer, or to the parameter. */
static void
look_at_name (TapeArrays *t, TapeArray *a)
{
  a->kind = TAPE_ARRAY_PARAMETER;
  if (!ends_in (a->member->name, NPY))
    td__tape_arrays_leave_out (t, a, "it is no npy file");
  else if (!is_path (a->path))
    td__tape_arrays_leave_out (t, a, "its name is no path");
  else if (ends_in (a->path, "/out"))
    a->kind = TAPE_ARRAY_OUT;
  else if (ends_in (a->path, "/grad"))
    a->kind = TAPE_ARRAY_GRADIENT;
  else if (strchr (a->path, '/') == NULL)
    td__tape_arrays_leave_out (t, a, "no layer is named");
  if (a->kind == TAPE_ARRAY_OUT || a->kind == TAPE_ARRAY_GRADIENT)
    *strrchr (a->path, '/') = '\0';
  a->name = a->path + strlen (a->path);
}

/* ------------------------------------------------------------------------------ layers */

typedef struct
{
  const TapeArrays *t;
  const char *path;
} Sought;

static bool
is_layer (const void *user, uint32_t value)
{
  const Sought *s = user;

  return strcmp (s->t->layers[value - 1].path, s->path) == 0;
}

static uint32_t
find_layer (const TapeArrays *t, const char *path)
{
  const Sought sought = { t, path };

  return td__tape_map_find (&t->by_path, td_tape_hash_bytes (1, path, strlen (path)), is_layer,
                            &sought);
}

/* TAPE_ARRAYS_NONE: no memory. */
static uint32_t
add_layer (TapeArrays *t, const char *path)
{
  const uint32_t known = find_layer (t, path);

  if (known != 0)
    return known - 1;
  if (!td__tape_map_add (&t->by_path, td_tape_hash_bytes (1, path, strlen (path)),
                         t->n_layers + 1))
    return TAPE_ARRAYS_NONE;
  t->layers[t->n_layers] = (TapeArrayLayer){ .path = path,
                                             .first = TAPE_ARRAYS_NONE,
                                             .last = TAPE_ARRAYS_NONE,
                                             .out = TAPE_ARRAYS_NONE,
                                             .out_gradient = TAPE_ARRAYS_NONE };
  return t->n_layers++;
}

/* LAYER/grad is of what the layer returned, where that is there, else LAYER is a parameter. */
static bool
is_of_output (const TapeArrays *t, const TapeArray *a)
{
  const uint32_t layer = find_layer (t, a->path);

  return layer != 0 && t->layers[layer - 1].out != TAPE_ARRAYS_NONE;
}

static bool
twice (TapeArrays *t, const TapeArray *a)
{
  snprintf (t->error, t->n_error, "two of its arrays are %.100s", a->member->name);
  return false;
}

static bool
place_output (TapeArrays *t, uint32_t i)
{
  TapeArray *a = &t->arrays[i];
  const uint32_t layer = add_layer (t, a->path);

  if (layer == TAPE_ARRAYS_NONE)
    return false;
  if (t->layers[layer].out != TAPE_ARRAYS_NONE)
    return twice (t, a);
  a->layer = layer;
  t->layers[layer].out = i;
  return true;
}

static bool
place_gradient_of_output (TapeArrays *t, uint32_t i)
{
  TapeArray *a = &t->arrays[i];

  a->kind = TAPE_ARRAY_OUT_GRADIENT;
  a->layer = find_layer (t, a->path) - 1;
  if (t->layers[a->layer].out_gradient != TAPE_ARRAYS_NONE)
    return twice (t, a);
  t->layers[a->layer].out_gradient = i;
  return true;
}

static bool
place_parameter (TapeArrays *t, uint32_t i)
{
  TapeArray *a = &t->arrays[i];
  char *slash = strrchr (a->path, '/');

  if (slash == NULL)
    {
      td__tape_arrays_leave_out (t, a, "of which array it is the gradient is not said");
      return true;
    }
  *slash = '\0';
  a->name = slash + 1;
  a->layer = add_layer (t, a->path);
  if (a->layer == TAPE_ARRAYS_NONE)
    return false;
  for (uint32_t k = t->layers[a->layer].first; k != TAPE_ARRAYS_NONE; k = t->arrays[k].next)
    if (t->arrays[k].kind == a->kind && strcmp (t->arrays[k].name, a->name) == 0)
      return twice (t, a);
  if (t->layers[a->layer].first == TAPE_ARRAYS_NONE)
    t->layers[a->layer].first = i;
  else
    t->arrays[t->layers[a->layer].last].next = i;
  t->layers[a->layer].last = i;
  t->layers[a->layer].n_gradients += a->kind == TAPE_ARRAY_GRADIENT;
  return true;
}

/* What layers returned comes first: it decides what LAYER/grad is of. */
static bool
place_all (TapeArrays *t)
{
  for (uint32_t i = 0; i < t->n_arrays; i++)
    if (t->arrays[i].kind == TAPE_ARRAY_OUT && !place_output (t, i))
      return false;
  for (uint32_t i = 0; i < t->n_arrays; i++)
    {
      TapeArray *a = &t->arrays[i];
      bool ok = true;

      if (a->kind == TAPE_ARRAY_GRADIENT && is_of_output (t, a))
        ok = place_gradient_of_output (t, i);
      else if (a->kind == TAPE_ARRAY_GRADIENT || a->kind == TAPE_ARRAY_PARAMETER)
        ok = place_parameter (t, i);
      if (!ok)
        return false;
    }
  return true;
}

/* ---------------------------------------------------------------------------- the file */

bool
td__tape_arrays_open (TapeArrays *t, const char *path)
{
  const char *why;

  t->zip = td__zip_open (path, &why);
  if (t->zip == NULL)
    return snprintf (t->error, t->n_error, "%s", why), false;
  snprintf (t->error, t->n_error, "no memory");
  t->n_arrays = (uint32_t)t->zip->n_members;
  t->arrays = calloc (t->n_arrays + 1, sizeof *t->arrays);
  t->layers = calloc (t->n_arrays + 1, sizeof *t->layers);
  if (t->arrays == NULL || t->layers == NULL)
    return false;
  for (uint32_t i = 0; i < t->n_arrays; i++)
    {
      TapeArray *a = &t->arrays[i];

      *a = (TapeArray){ .member = &t->zip->members[i], .next = TAPE_ARRAYS_NONE };
      a->path = normal_name (a->member->name);
      if (a->path == NULL)
        return false;
      look_at_name (t, a);
    }
  if (!place_all (t))
    return false;
  for (uint32_t i = 0; i < t->n_layers; i++)
    if (t->layers[i].out != TAPE_ARRAYS_NONE || t->layers[i].n_gradients > 0)
      return true;
  snprintf (t->error, t->n_error,
            "a zip file, but none of its arrays is called LAYER/out, LAYER/grad or "
            "LAYER/PARAMETER/grad");
  return false;
}

void
td__tape_arrays_clear (TapeArrays *t)
{
  for (uint32_t i = 0; t->arrays != NULL && i < t->n_arrays; i++)
    free (t->arrays[i].path);
  free (t->arrays);
  free (t->layers);
  td__tape_map_clear (&t->by_path);
  td__zip_close (t->zip);
}

uint64_t
td__tape_arrays_bytes (const TapeArrays *t)
{
  uint64_t bytes = 0;

  for (uint32_t i = 0; i < t->n_arrays; i++)
    bytes += t->arrays[i].member->bytes;
  return bytes;
}

bool
td__tape_is_zip (const char *path)
{
  const int fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  char head[2] = { 0 };
  bool is;

  if (fd < 0)
    return false;
  is = read (fd, head, sizeof head) == sizeof head && memcmp (head, "PK", sizeof head) == 0;
  close (fd);
  return is;
}

/* A zip file one of whose members is called as a reference's are: other archives, weights for
 * one, are not meant. */
bool
td_tape_is_arrays (const char *path)
{
  static const char *const ends[] = { "/out.npy", ".out.npy", "/grad.npy", ".grad.npy" };
  const char *why;
  TdZip *zip = td__tape_is_zip (path) ? td__zip_open (path, &why) : NULL;
  bool is = false;

  for (int i = 0; zip != NULL && !is && i < zip->n_members; i++)
    for (size_t k = 0; !is && k < sizeof ends / sizeof *ends; k++)
      is = ends_in (zip->members[i].name, ends[k]);
  td__zip_close (zip);
  return is;
}
