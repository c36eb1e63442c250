/* A record of a free may name the buffer alone: whose it is says the record by which it was
 * allocated.
 *
 * SPDX-License-Identifier: MIT */
#include "tape/td-frees.h"

/* Buffers have ids one after the other; what is wider apart was written by somebody else. */
#define MOST_APART 64

/* Variables by buffer, from `first` on. */
typedef struct
{
  guint64 first, n;
  guint32 *var;
} Owners;

static Owners
find_owners (const TdTapeIteration *t)
{
  Owners o = { .first = G_MAXUINT64 };
  guint64 last = 0;

  for (guint32 i = 0; i < t->n_memory; i++)
    if (t->memory[i].kind == TD_TAPE_MEMORY_ALLOC && t->memory[i].var < t->n_vars)
      {
        o.first = MIN (o.first, t->memory[i].buffer);
        last = MAX (last, t->memory[i].buffer);
      }
  if (o.first > last || (last - o.first) / MOST_APART > t->n_memory)
    return o;
  o.n = last - o.first + 1;
  o.var = g_new (guint32, o.n);
  for (guint64 i = 0; i < o.n; i++)
    o.var[i] = TD_TAPE_NONE;
  for (guint32 i = 0; i < t->n_memory; i++)
    if (t->memory[i].kind == TD_TAPE_MEMORY_ALLOC && t->memory[i].var < t->n_vars)
      o.var[t->memory[i].buffer - o.first] = t->memory[i].var;
  return o;
}

static guint32
owner_of (const Owners *o, const TdTapeIteration *t, const TdTapeMemory *m)
{
  if (m->var < t->n_vars)
    return m->var;
  return m->buffer >= o->first && m->buffer - o->first < o->n ? o->var[m->buffer - o->first]
                                                              : TD_TAPE_NONE;
}

guint32 *
td_frees_new (const TdIteration *iteration)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);
  Owners owners = find_owners (t);
  guint32 *frees = NULL;

  for (guint32 i = 0; i < t->n_memory; i++)
    {
      guint32 var = t->memory[i].kind == TD_TAPE_MEMORY_FREE
                        ? owner_of (&owners, t, &t->memory[i])
                        : TD_TAPE_NONE;

      if (var == TD_TAPE_NONE)
        continue;
      if (!frees)
        {
          frees = g_new (guint32, t->n_vars);
          for (guint32 k = 0; k < t->n_vars; k++)
            frees[k] = TD_TAPE_NONE;
        }
      frees[var] = t->memory[i].event;
    }
  g_free (owners.var);
  return frees;
}
