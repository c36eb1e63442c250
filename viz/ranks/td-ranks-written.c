/*
 * What a program did to a gradient between its mean and the update, or to a parameter outside
 * of updates, on one rank and not on another: operations of a framework, whose last "_" says
 * that they write to what they read first.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "td-ranks-private.h"

/* One that is averaged in backward has its mean when that is over. */
static guint
find_end_of_backward (const TdTapeIteration *it)
{
  guint end = it->n_events;

  for (guint e = 0; e < it->n_events; e++)
    end = it->events[e].phase == TD_TAPE_PHASE_BACKWARD ? e + 1 : end;
  return end;
}

/* It is written, or looked at as what detach and select return. */
static gboolean
takes (const TdTapeIteration *it, const TdTapeEvent *event, const gboolean *gradient)
{
  for (guint k = 0; k < MIN (event->n_in, event->n_out); k++)
    if (gradient[it->ins[event->first_in + k]])
      return TRUE;
  return FALSE;
}

/* Owner: the caller. */
static char *
dup_write (const TdIteration *iteration, guint event)
{
  g_autofree char *site = td_iteration_dup_site (iteration, event),
                  *base = *site ? g_path_get_basename (site) : NULL;

  return g_strdup_printf ("%s%s%s", td_iteration_get_op_name (iteration, event),
                          base ? " at " : "", base ? base : "");
}

/* "mul_ at train.py:49", for each that writes to the gradient of this parameter. Owner: the
 * caller. */
static GPtrArray *
list_writes (const TdIteration *iteration, const char *path)
{
  const TdTapeIteration *it = td_iteration_get_tape (iteration);
  g_autofree gboolean *gradient = g_new0 (gboolean, MAX (it->n_vars, 1));
  GPtrArray *writes = g_ptr_array_new_with_free_func (g_free);

  for (guint i = 0; i < it->n_grads; i++)
    if (it->grads[i].gradient < it->n_vars
        && g_strcmp0 (td_iteration_get_string (iteration, it->grads[i].path), path) == 0)
      gradient[it->grads[i].gradient] = TRUE;
  for (guint e = find_end_of_backward (it); e < it->n_events; e++)
    {
      const TdTapeEvent *event = &it->events[e];
      const char *name = td_iteration_get_op_name (iteration, e);

      if (!takes (it, event, gradient))
        continue;
      for (guint k = 0; k < event->n_out; k++)
        gradient[it->outs[event->first_out + k]] = TRUE;
      if (!g_str_has_suffix (name, "_"))
        continue;
      g_ptr_array_add (writes, dup_write (iteration, e));
    }
  return writes;
}

static const char *
write_at (const GPtrArray *writes, guint i)
{
  return i < writes->len ? g_ptr_array_index (writes, i) : NULL;
}

/* The place of a call, "train.py:49". Owner: the caller. NULL: it has none. */
static char *
dup_place (const char *write)
{
  const char *at = strstr (write, " at ");

  return at ? g_strdup (at + strlen (" at ")) : NULL;
}

/* The first that the second list has and the first has not, in order; NULL: none. */
static const char *
find_more (const GPtrArray *of_x, const GPtrArray *of_y)
{
  guint i = 0;

  for (guint k = 0; k < of_y->len; k++)
    if (of_x && i < of_x->len && g_strcmp0 (of_x->pdata[i], of_y->pdata[k]) == 0)
      i++;
    else
      return of_y->pdata[k];
  return NULL;
}

/* What they return is another look at what they read. */
static gboolean
is_view (const char *name)
{
  static const char *const views[]
      = { "alias",   "as_strided", "detach", "diagonal", "expand",  "flatten", "narrow",
          "permute", "reshape",    "select", "slice",    "squeeze", "t",       "transpose",
          "unfold",  "unsqueeze",  "view",   "view_as",  NULL };

  return g_strv_contains (views, name);
}

/* Parameters by variable: "net/0/bias", in `names`, as ranks are compared by them. Owner: the
 * caller, with g_free. */
static char **
name_parameters (const TdIteration *iteration)
{
  const TdTapeIteration *it = td_iteration_get_tape (iteration);
  char **names = g_new0 (char *, MAX (it->n_vars, 1));

  for (guint i = 0; i < it->n_vars; i++)
    if (it->vars[i].flags & TD_TAPE_VAR_PARAMETER)
      names[i]
          = g_strdup_printf ("%s/%s", td_iteration_get_path_name (iteration, it->vars[i].path),
                             td_iteration_get_var_name (iteration, i));
  return names;
}

/* "`net/0/bias` by copy_ at train.py:12", for each operation outside of updates that writes to
 * a parameter; path: only to this one, unless it is NULL. Owner: the caller. */
static GPtrArray *
list_parameter_writes (const TdIteration *iteration, const char *path)
{
  const TdTapeIteration *it = td_iteration_get_tape (iteration);
  char **names = name_parameters (iteration);
  GPtrArray *writes = g_ptr_array_new_with_free_func (g_free);

  for (guint e = 0; e < it->n_events; e++)
    {
      const TdTapeEvent *event = &it->events[e];
      const char *name = td_iteration_get_op_name (iteration, e);
      const gboolean writes_to = g_str_has_suffix (name, "_");

      if (event->phase != TD_TAPE_PHASE_FORWARD || !(writes_to || is_view (name)))
        continue;
      for (guint k = 0; k < MIN (event->n_in, event->n_out); k++)
        {
          const char *of = names[it->ins[event->first_in + k]];
          const guint32 out = it->outs[event->first_out + k];
          g_autofree char *what = of && writes_to ? dup_write (iteration, e) : NULL;

          if (of && !names[out])
            names[out] = g_strdup (of);
          if (what && (!path || g_str_equal (path, of)))
            g_ptr_array_add (writes, g_strdup_printf ("`%s` by %s", of, what));
        }
    }
  for (guint i = 0; i < it->n_vars; i++)
    g_free (names[i]);
  g_free (names);
  return writes;
}

char *
td__ranks_dup_parameter_write (TdRanks *self, const TdRankRow *row, const char *path,
                               gint other, guint odd, char **site)
{
  g_autoptr (TdIteration) x = NULL, y = NULL;
  g_autoptr (GPtrArray) of_x = NULL, of_y = NULL;
  const char *does;

  if (!td__ranks_is_of_framework (self, odd) || !row->of[odd]
      || (other >= 0 && !row->of[other]))
    return g_strdup ("");
  x = other >= 0 ? td__ranks_load (self, (guint)other, row->of[other]->number) : NULL;
  y = td__ranks_load (self, odd, row->of[odd]->number);
  of_x = x ? list_parameter_writes (x, path) : NULL;
  of_y = y ? list_parameter_writes (y, path) : NULL;
  does = of_y ? find_more (of_x, of_y) : NULL;
  if (!does)
    return g_strdup ("");
  if (!*site)
    *site = dup_place (does);
  if (!x)
    return g_strdup_printf ("; rank %u wrote to %s", self->tapes[odd].open.rank, does);
  return g_strdup_printf ("; rank %u wrote to %s, and rank %u did not",
                          self->tapes[odd].open.rank, does, self->tapes[other].open.rank);
}

char *
td__ranks_dup_written (TdRanks *self, const TdRankRow *row, const char *path, guint other,
                       guint odd, char **site)
{
  g_autoptr (TdIteration) x = NULL, y = NULL;
  g_autoptr (GPtrArray) of_x = NULL, of_y = NULL;
  const char *a, *b, *does;
  guint i = 0;

  if (!td__ranks_is_of_framework (self, odd) || !row->of[other] || !row->of[odd])
    return g_strdup ("");
  x = td__ranks_load (self, other, row->of[other]->number);
  y = td__ranks_load (self, odd, row->of[odd]->number);
  if (!x || !y)
    return g_strdup ("");
  of_x = list_writes (x, path);
  of_y = list_writes (y, path);
  while (i < of_x->len && i < of_y->len && g_strcmp0 (of_x->pdata[i], of_y->pdata[i]) == 0)
    i++;
  a = write_at (of_x, i);
  b = write_at (of_y, i);
  does = b ? b : a;
  if (!does)
    return g_strdup ("");
  if (!*site)
    *site = dup_place (does);
  return g_strdup_printf ("; after the mean rank %u wrote to it by %s, and rank %u did not",
                          self->tapes[b ? odd : other].open.rank, does,
                          self->tapes[b ? other : odd].open.rank);
}
