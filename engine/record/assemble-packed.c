/* The structure of a very large iteration: a build whose rows are packed while it goes on.
 * Keys of events, and ids and types of variables, which are asked for in any order, are not.
 * SPDX-License-Identifier: MIT */
#include "assemble-build.h"

#include <stdlib.h>
#include <string.h>

#define TYPE_SALT 0x74797065u

bool
td__build_note_type (TdBuild *b, const TdTapeVar *v, const int64_t *dims)
{
  TdShape *s = b->shape;
  const int64_t first = (int64_t)v->dtype << 8 | v->ndim;
  uint64_t h = td_tape_hash (TYPE_SALT, (uint64_t)first);
  uint32_t at, *type = td__list_add (&s->types, sizeof *type);
  int64_t *words;

  for (unsigned d = 0; d < v->ndim; d++)
    h = td_tape_hash (h, (uint64_t)dims[d]);
  at = td__id_map_get (&b->type_at, h);
  if (at == TD_TAPE_NONE)
    {
      at = s->type_words.n;
      words = td__list_add_n (&s->type_words, sizeof *words, v->ndim + 1u);
      if (words == NULL || !td__id_map_set (&b->type_at, h, at))
        return false;
      words[0] = first;
      if (v->ndim > 0)
        memcpy (words + 1, dims, v->ndim * sizeof *dims);
    }
  if (type != NULL)
    *type = at;
  return type != NULL;
}

void
td__build_change (TdBuild *b, const TdBuildChange *change)
{
  TdBuildChange *later = td__list_add (&b->changes, sizeof *later);

  b->failed = b->failed || later == NULL;
  if (later == NULL)
    return;
  *later = *change;
  later->nth = b->changes.n;
}

static int
by_var (const void *x, const void *y)
{
  const TdBuildChange *a = x, *b = y;

  return a->var != b->var ? (a->var < b->var ? -1 : 1) : (a->nth < b->nth ? -1 : 1);
}

/* Changes of what is packed wait, so that each block is unpacked once for all of them. */
static void
apply_changes (TdBuild *b)
{
  TdBuildChange *all = b->changes.items;

  if (b->changes.n > 1)
    qsort (all, b->changes.n, sizeof *all, by_var);
  for (uint32_t i = 0; i < b->changes.n; i++)
    {
      TdTapeVar *v = td_tape_rows_change (b->shape->packed->vars, all[i].var);

      if (v != NULL)
        td__build_apply (&all[i], v);
      else
        b->failed = true;
    }
  b->changes.n = 0;
}

static TdTapePacked *
new_packed (void)
{
  TdTapePacked *p = calloc (1, sizeof *p);

  if (p == NULL)
    return NULL;
  p->events = td_tape_rows_new (sizeof (TdTapeEvent));
  p->ins = td_tape_rows_new (sizeof (uint32_t));
  p->outs = td_tape_rows_new (sizeof (uint32_t));
  p->vars = td_tape_rows_new (sizeof (TdTapeVar));
  p->dims = td_tape_rows_new (sizeof (int64_t));
  return p;
}

void
td__packed_free_events (TdTapePacked *p)
{
  td_tape_rows_free (p->events);
  td_tape_rows_free (p->ins);
  td_tape_rows_free (p->outs);
  p->events = p->ins = p->outs = NULL;
}

TdBuild *
td__build_new (TdAssembler *a)
{
  TdBuild *b = calloc (1, sizeof *b);
  TdTapePacked *p;

  if (b == NULL)
    return NULL;
  b->a = a;
  b->shape = calloc (1, sizeof *b->shape);
  p = b->shape != NULL ? new_packed () : NULL;
  if (p != NULL)
    {
      b->shape->packed = p;
      b->shape->first_id = a->begin.first_id;
    }
  if (p != NULL && p->events != NULL && p->ins != NULL && p->outs != NULL && p->vars != NULL
      && p->dims != NULL)
    return b;
  td__build_free (b);
  return NULL;
}

void
td__build_free (TdBuild *b)
{
  if (b == NULL)
    return;
  td__build_clear (b);
  td__shape_free (b->shape);
  free (b);
}

TdShape *
td__build_look (TdBuild *b)
{
  TdShape *s = b->shape;
  TdTapeSpan *spans = s->spans.items;
  const TdTapeGrad *grads = s->grads.items;

  for (uint32_t i = 0; i < b->stack.n; i++)
    spans[((const uint32_t *)b->stack.items)[i]].end = td__build_n_events (b);
  while (b->n_grads_so_far < s->grads.n
         && grads[b->n_grads_so_far].event < td__build_n_events (b))
    b->n_grads_so_far++;
  apply_changes (b);
  if (b->scattered)
    td__shape_index (s);
  if (b->failed)
    return NULL;
  td__build_fill (b);
  return s;
}

void
td__build_go_on (TdBuild *b)
{
  TdTapeGrad *grads = b->shape->grads.items;

  for (uint32_t i = b->n_grads_so_far; i < b->shape->grads.n; i++)
    grads[i].event = td__build_n_events (b);
}

TdShape *
td__build_end (TdBuild *b)
{
  TdShape *s = td__build_look (b);

  if (s != NULL)
    {
      b->shape = NULL;
      if (b->scattered)
        td__list_clear (&s->own);
    }
  td__build_clear (b);
  return s;
}
