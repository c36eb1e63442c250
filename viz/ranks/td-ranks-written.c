/*
 * What a program did to a gradient between its mean and the update, on one rank and not on
 * another: operations of a framework, whose last "_" says that they write to what they read
 * first.
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
      g_autofree char *site = NULL, *base = NULL;

      if (!takes (it, event, gradient))
        continue;
      for (guint k = 0; k < event->n_out; k++)
        gradient[it->outs[event->first_out + k]] = TRUE;
      if (!g_str_has_suffix (name, "_"))
        continue;
      site = td_iteration_dup_site (iteration, e);
      base = *site ? g_path_get_basename (site) : NULL;
      g_ptr_array_add (writes,
                       g_strdup_printf ("%s%s%s", name, base ? " at " : "", base ? base : ""));
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
