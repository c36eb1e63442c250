/* What is asked of a shape that is made: which variable has an id, and what is known of it.
 * SPDX-License-Identifier: MIT */
#include "assemble-build.h"

#include <stdlib.h>

static int
by_id (const void *x, const void *y)
{
  const TdVarAt *a = x, *b = y;

  if (a->id != b->id)
    return a->id < b->id ? -1 : 1;
  return a->var < b->var ? -1 : a->var > b->var;
}

/* As they mostly are; qsort takes memory of its own. */
static bool
in_order (const TdVarAt *at, uint32_t n)
{
  for (uint32_t i = 1; i < n; i++)
    if (at[i - 1].id > at[i].id)
      return false;
  return true;
}

void
td__shape_index (TdShape *s)
{
  const uint32_t n = COUNT (s, vars);

  s->at.n = 0;
  for (uint32_t i = 0; i < n; i++)
    {
      const TdTapeVar *v = s->packed != NULL ? td_tape_rows_at (s->packed->vars, i)
                                             : (const TdTapeVar *)s->vars.items + i;
      TdVarAt *at = v != NULL && !(v->flags & TD_TAPE_VAR_EXTERNAL)
                        ? td__list_add (&s->at, sizeof *at)
                        : NULL;

      if (at != NULL)
        *at = (TdVarAt){ .id = v->id, .var = i };
    }
  if (!in_order (s->at.items, s->at.n))
    qsort (s->at.items, s->at.n, sizeof (TdVarAt), by_id);
}

void
td__shape_free (TdShape *s)
{
  if (s == NULL)
    return;

  TdList *lists[]
      = { &s->events, &s->ins,           &s->outs,      &s->vars,          &s->dims,
          &s->spans,  &s->grads,         &s->types,     &s->type_words,    &s->at,
          &s->own,    &s->external_refs, &s->externals, &s->external_meta, &s->external_var };

  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
    td__list_clear (lists[i]);
  if (s->packed != NULL)
    {
      td__packed_free_events (s->packed);
      td_tape_rows_free (s->packed->vars);
      td_tape_rows_free (s->packed->dims);
    }
  free (s->packed);
  free (s->raw);
  free (s);
}

void
td__shape_slim (TdShape *s)
{
  TdList *lists[]
      = { &s->events, &s->ins, &s->outs, &s->spans, &s->grads, &s->types, &s->type_words };

  if (s->raw != NULL || s->it.structure == 0)
    return;
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
    td__list_clear (lists[i]);
  s->it.n_events = s->it.n_ins = s->it.n_outs = s->it.n_spans = s->it.n_grads = 0;
  if (s->packed != NULL)
    {
      td__packed_free_events (s->packed);
      s->packed->types = NULL;
      s->packed->type_words = NULL;
    }
}

const TdTapeVar *
td__shape_var_at (const TdShape *s, uint32_t var)
{
  return s->packed != NULL ? td_tape_rows_at (s->packed->vars, var) : &s->it.vars[var];
}

TdMeta
td__shape_meta (const TdShape *s, const TdTapeVar *v)
{
  TdMeta meta = { .key = v->key,
                  .name = v->name,
                  .path = v->path,
                  .site = v->site,
                  .dtype = v->dtype,
                  .ndim = v->ndim,
                  .category = v->category,
                  .flags = v->flags,
                  .device = v->device };

  for (unsigned d = 0; d < v->ndim; d++)
    {
      const int64_t *dim = s->packed != NULL
                               ? td_tape_rows_at (s->packed->dims, v->first_dim + d)
                               : s->it.dims + v->first_dim + d;

      meta.dims[d] = dim != NULL ? *dim : 0;
    }
  return meta;
}

uint32_t
td__shape_own_var (const TdShape *s, uint64_t id)
{
  const TdVarAt *at = s->at.items;
  uint32_t lo = 0, hi = s->at.n;

  if (s->at.n == 0)
    return id < s->own.n ? ((const uint32_t *)s->own.items)[id] - 1 : TD_TAPE_NONE;
  while (lo < hi)
    {
      uint32_t mid = (lo + hi) / 2;

      if (at[mid].id <= id)
        lo = mid + 1;
      else
        hi = mid;
    }
  return lo > 0 && at[lo - 1].id == id ? at[lo - 1].var : TD_TAPE_NONE;
}

uint32_t
td__shape_var (const TdAssembler *a, const TdShape *s, uint64_t id)
{
  const uint64_t *externals = s->externals.items;

  if (id == 0)
    return TD_TAPE_NONE;
  if (id >= a->begin.first_id)
    return td__shape_own_var (s, id - a->begin.first_id);
  for (uint32_t i = 0; i < s->externals.n; i++)
    if (externals[i] == id)
      return ((const uint32_t *)s->external_var.items)[i];
  return TD_TAPE_NONE;
}
