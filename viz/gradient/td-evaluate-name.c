/*
 * Names in expressions: all variables and gradients of the iteration are looked through, whole
 * paths before their ends.
 *
 * SPDX-License-Identifier: MIT
 */
#include "gradient/td-evaluate-name.h"

#include <gio/gio.h>
#include <string.h>

/* What was found so far. */
typedef struct
{
  const TdIteration *iteration;
  const char *name;
  gint event;     /* -1: at the end */
  gint var;       /* -1: none */
  gboolean whole; /* it is the whole path */
  char *path;     /* of the one that was found */
  char *other;    /* another one with the same end */
} Search;

static gboolean
ends_in (const char *path, const char *name)
{
  gsize n = strlen (path), m = strlen (name);

  return n > m && path[n - m - 1] == '/' && strcmp (path + n - m, name) == 0;
}

/* Of versions of one variable the one that is there at the moment, written last. */
static gboolean
is_later (const Search *s, gint var)
{
  const TdTapeIteration *it = td_iteration_get_tape (s->iteration);
  gint32 here = it->vars[var].producer, before = it->vars[s->var].producer;

  if (s->event >= 0 && here > s->event)
    return FALSE;
  return here > before || (s->event >= 0 && before > s->event);
}

static void
consider (Search *s, const char *path, gint var)
{
  gboolean whole = g_str_equal (path, s->name);

  if (!whole && (s->whole || !ends_in (path, s->name)))
    return;
  if (s->var >= 0 && whole == s->whole && !g_str_equal (path, s->path))
    {
      if (!s->other)
        s->other = g_strdup (path);
      return;
    }
  if (s->var >= 0 && whole == s->whole && !is_later (s, var))
    return;
  if (whole && !s->whole)
    g_clear_pointer (&s->other, g_free);
  s->whole = whole;
  s->var = var;
  g_free (s->path);
  s->path = g_strdup (path);
}

static void
look_at_variables (Search *s)
{
  const TdTapeIteration *it = td_iteration_get_tape (s->iteration);

  for (guint32 v = 0; v < it->n_vars; v++)
    {
      const char *name = td_iteration_get_var_name (s->iteration, v);
      const char *layer = td_iteration_get_path_name (s->iteration, it->vars[v].path);
      g_autofree char *path = !*name   ? NULL
                              : *layer ? g_strconcat (layer, "/", name, NULL)
                                       : g_strdup (name);
      if (path)
        consider (s, path, (gint)v);
    }
}

static void
look_at_gradients (Search *s)
{
  const TdTapeIteration *it = td_iteration_get_tape (s->iteration);

  for (guint32 i = 0; i < it->n_grads; i++)
    if (it->grads[i].gradient != TD_TAPE_NONE && it->grads[i].gradient < it->n_vars)
      {
        const char *of = td_iteration_get_string (s->iteration, it->grads[i].path);
        g_autofree char *path = g_strconcat (*of == '/' ? of + 1 : of, ".grad", NULL);
        consider (s, path, (gint)it->grads[i].gradient);
      }
}

static gint
find_output (const TdIteration *iteration, const char *name, GError **error)
{
  const TdTapeIteration *it = td_iteration_get_tape (iteration);
  char *end;
  guint64 event = g_ascii_strtoull (name + 1, &end, 10);

  if (end == name + 1 || *end)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
                 "an event is written as # and its number");
  else if (event >= it->n_events || it->events[event].n_out == 0)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND, "there is no output of event %s",
                 name + 1);
  else
    return (gint)it->outs[it->events[event].first_out];
  return -1;
}

gint
td__evaluate_find (const TdIteration *iteration, const char *name, gint event, GError **error)
{
  Search s = { .iteration = iteration, .name = name, .event = event, .var = -1 };

  if (*name == '#')
    return find_output (iteration, name, error);
  look_at_variables (&s);
  look_at_gradients (&s);
  if (s.var < 0)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND, "nothing here is called “%s”", name);
  else if (s.other)
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND, "“%s” could be %s or %s", name,
                   s.path, s.other);
      s.var = -1;
    }
  g_free (s.path);
  g_free (s.other);
  return s.var;
}
