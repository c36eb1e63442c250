/* Recognising a repeated iteration: its raw records equal those of an earlier one if all ids of
 * its own are shifted by one offset, and its external variables correspond one to one.
 * SPDX-License-Identifier: MIT */
#include "assembler-private.h"

#include <stdlib.h>
#include <string.h>

#define MAX_METAS (1u << 20)

typedef struct
{
  TdAssembler *a;
  TdShape *s;
  uint64_t first_now, first_then;
  uint64_t *bound; /* by slot: the id in this iteration; 0: not seen yet */
  const uint32_t *refs;
  uint32_t next_ref;
  uint32_t event;
} Match;

static bool
same_meta (const TdMeta *x, const TdMeta *y)
{
  return x->key == y->key && x->name == y->name && x->path == y->path && x->dtype == y->dtype
         && x->ndim == y->ndim && x->category == y->category && x->flags == y->flags
         && x->device == y->device && memcmp (x->dims, y->dims, x->ndim * sizeof *x->dims) == 0;
}

/* Slot `slot` is seen for the first time: whether variable `id` can correspond to it. */
static bool
bind (Match *m, uint32_t slot, uint64_t id)
{
  TdMeta meta;

  if (id != ((const uint64_t *)m->s->externals.items)[slot])
    {
      td__meta_find (m->a, id, &meta);
      if (!same_meta (&meta, (const TdMeta *)m->s->external_meta.items + slot))
        return false;
    }
  for (uint32_t i = 0; i < m->s->externals.n; i++)
    if (m->bound[i] == id)
      return false; /* two different variables would correspond to one */
  m->bound[slot] = id;
  return true;
}

static bool
same_external (Match *m, uint64_t now)
{
  uint32_t slot;

  if (now == 0 || now >= m->first_now || m->next_ref >= m->s->external_refs.n)
    return false;
  slot = m->refs[m->next_ref++];
  return m->bound[slot] == now || (m->bound[slot] == 0 && bind (m, slot, now));
}

/* `then` is the id in the shape. */
static inline bool
same_id (Match *m, uint64_t now, uint64_t then)
{
  if (then >= m->first_then)
    return now - m->first_now == then - m->first_then;
  if (then == 0)
    return now == 0;
  return same_external (m, now);
}

static inline const TdRawOutput *
same_output (Match *m, const TdRawOutput *now, const TdRawOutput *then)
{
  const uint64_t *x = (const uint64_t *)now, *y = (const uint64_t *)then;
  unsigned ndim = then->ndim;

  if (x[1] != y[1] || !same_id (m, now->variable, then->variable))
    return NULL;
  for (unsigned d = 0; d < ndim; d++)
    if (x[2 + d] != y[2 + d])
      return NULL;
  return (const TdRawOutput *)(then->dims + ndim);
}

static bool
note_attrs (Match *m, uint32_t attrs)
{
  TdTapeAttrs *change = td__list_add (&m->a->attr_changes, sizeof *change);

  if (change != NULL)
    *change = (TdTapeAttrs){ .event = m->event, .attrs = td__alias (&m->a->strings, attrs).id };
  return change != NULL;
}

static bool
same_op (Match *m, const TdRawOp *now, const TdRawOp *then)
{
  const uint64_t *x = (const uint64_t *)now, *y = (const uint64_t *)then;
  const TdRawOutput *out_now, *out_then;

  /* Word 0 is size, type, flags; 1 and 2 the times; 3 to 6 all that is not an id.  Attributes
   * (a step size, a seed) may differ: the iteration says in which events they do. */
  if (((x[0] ^ y[0]) | (x[3] ^ y[3]) | (x[5] ^ y[5]) | (x[6] ^ y[6])) != 0
      || now->path != then->path || (now->attrs != then->attrs && !note_attrs (m, now->attrs)))
    return false;
  m->event++;
  for (unsigned i = 0; i < then->n_in; i++)
    if (!same_id (m, now->ids[i], then->ids[i]))
      return false;
  out_now = (const TdRawOutput *)(now->ids + then->n_in);
  out_then = (const TdRawOutput *)(then->ids + then->n_in);
  for (unsigned i = 0; i < then->n_out; i++)
    {
      const TdRawOutput *next = same_output (m, out_now, out_then);

      if (next == NULL)
        return false;
      out_now = (const TdRawOutput *)((const char *)out_now
                                      + ((const char *)next - (const char *)out_then));
      out_then = next;
    }
  return true;
}

static bool
same_leaf (Match *m, const TdRawLeaf *now, const TdRawLeaf *then)
{
  size_t n = then->head.size;
  bool local = then->var.variable >= m->first_then;

  if (now->head.size != n)
    return false;
  if (local ? now->var.variable - m->first_now != then->var.variable - m->first_then
            : now->var.variable != then->var.variable)
    return false;
  return memcmp ((const char *)now + 8, (const char *)then + 8, 16) == 0
         && memcmp ((const char *)now + 32, (const char *)then + 32, n - 32) == 0;
}

static bool
same_other (Match *m, const TdRawHead *now, const TdRawHead *then)
{
  const TdRawGrad *g = (const TdRawGrad *)now, *h = (const TdRawGrad *)then;
  const TdRawName *v = (const TdRawName *)now, *w = (const TdRawName *)then;

  switch (then->type)
    {
    case TD_RAW_LEAF:
      return same_leaf (m, (const TdRawLeaf *)now, (const TdRawLeaf *)then);
    case TD_RAW_GRAD:
      return g->path == h->path && same_id (m, g->parameter, h->parameter)
             && same_id (m, g->gradient, h->gradient);
    case TD_RAW_NAME:
    case TD_RAW_UNCHAIN:
      return v->name == w->name && v->flags == w->flags
             && same_id (m, v->variable, w->variable);
    default:
      return memcmp (now, then, then->size) == 0;
    }
}

static bool
matches (TdAssembler *a, TdShape *s)
{
  Match m = { .a = a,
              .s = s,
              .first_now = a->begin.first_id,
              .first_then = s->first_id,
              .bound = a->bound.items,
              .refs = s->external_refs.items };
  const char *now = a->raw.items, *then = s->raw, *end = then + s->n_raw;

  if (s->n_raw != a->raw.n || s->n_records != a->n_records)
    return false;
  a->bound.n = 0;
  a->attr_changes.n = 0;
  m.bound = td__list_add_n (&a->bound, sizeof *m.bound, s->externals.n + 1);
  if (m.bound == NULL)
    return false;
  memset (m.bound, 0, (s->externals.n + 1) * sizeof *m.bound);
  while (then < end)
    {
      const TdRawHead *x = (const TdRawHead *)now, *y = (const TdRawHead *)then;

      if (x->size != y->size || x->type != y->type)
        return false;
      if (y->type == TD_RAW_OP ? !same_op (&m, (const TdRawOp *)x, (const TdRawOp *)y)
                               : !same_other (&m, x, y))
        return false;
      now += y->size;
      then += y->size;
    }
  if (s->externals.n > 0)
    memcpy (s->externals.items, m.bound, s->externals.n * sizeof *m.bound);
  return true;
}

TdShape *
td__shape_match (TdAssembler *a)
{
  TdShape *newest = NULL;

  /* The shape of the last iteration first. */
  for (unsigned i = 0; i < MAX_SHAPES; i++)
    if (a->shapes[i] != NULL && (newest == NULL || a->shapes[i]->used > newest->used))
      newest = a->shapes[i];
  for (unsigned i = 0; i <= MAX_SHAPES; i++)
    {
      TdShape *s = i == 0 ? newest : a->shapes[i - 1];

      if (s == NULL || (i > 0 && s == newest) || !matches (a, s))
        continue;
      s->used = ++a->use_clock;
      return s;
    }
  return NULL;
}

static void
forget_shape (TdAssembler *a, unsigned i)
{
  for (unsigned k = 0; k < MAX_RECENT; k++)
    if (a->recent[k].shape == a->shapes[i])
      a->recent[k] = (TdRecent){ 0 };
  td__shape_free (a->shapes[i]);
  a->shapes[i] = NULL;
}

/* Remember parameters, optimizer state and what links hold: later iterations use them too. */
static void
remember_vars (TdAssembler *a, const TdShape *s)
{
  for (uint32_t i = 0; i < s->it.n_vars; i++)
    {
      const TdTapeVar *v = td__shape_var_at (s, i);
      TdMeta meta;

      if (v == NULL)
        return;
      if (v->flags & TD_TAPE_VAR_EXTERNAL)
        {
          const uint64_t id = ((const uint64_t *)s->externals.items)[v->id];

          if (td__meta_find (a, id, &meta))
            td__meta_set (a, id, &meta);
          continue;
        }
      if (v->producer >= 0 && v->category != TD_TAPE_CATEGORY_PARAMETER
          && v->category != TD_TAPE_CATEGORY_OPTIMIZER)
        continue;
      if (v->producer < 0 && v->path == 0 && v->category == TD_TAPE_CATEGORY_INPUT)
        continue;
      meta = td__shape_meta (s, v);
      td__meta_set (a, s->first_id + v->id, &meta);
    }
}

void
td__shape_keep (TdAssembler *a, TdShape *s)
{
  unsigned oldest = 0;
  size_t total = 0;

  for (unsigned i = 0; i < MAX_SHAPES; i++)
    total += a->shapes[i] ? a->shapes[i]->n_raw : 0;
  for (unsigned i = 1; i < MAX_SHAPES; i++)
    if (a->shapes[oldest] != NULL
        && (a->shapes[i] == NULL || a->shapes[i]->used < a->shapes[oldest]->used))
      oldest = i;
  if (a->large != NULL || total + a->raw.n > TD_SHAPE_LARGEST)
    for (unsigned i = 0; i < MAX_SHAPES; i++)
      forget_shape (a, i);
  if (a->shapes[oldest] != NULL)
    forget_shape (a, oldest);
  remember_vars (a, s);
  /* A very large one is built each time that it comes: two of it would take too much memory. */
  s->raw = a->large == NULL ? malloc (a->raw.n + 1u) : NULL;
  if (s->raw != NULL && a->raw.n > 0)
    memcpy (s->raw, a->raw.items, a->raw.n);
  s->n_raw = s->raw ? a->raw.n : 0;
  s->n_records = a->n_records;
  s->used = ++a->use_clock;
  a->shapes[oldest] = s;
}

/* What is known of variable `id` of a recent iteration. */
static bool
find_recent (TdAssembler *a, uint64_t id, TdMeta *meta)
{
  for (unsigned i = 0; i < MAX_RECENT; i++)
    {
      const TdRecent *r = &a->recent[(a->next_recent + MAX_RECENT - 1 - i) % MAX_RECENT];
      const TdTapeVar *v;
      uint32_t var;

      if (r->shape == NULL || id < r->first_id || id >= r->end_id)
        continue;
      var = td__shape_own_var (r->shape, id - r->first_id);
      v = var != TD_TAPE_NONE ? td__shape_var_at (r->shape, var) : NULL;
      if (v != NULL)
        *meta = td__shape_meta (r->shape, v);
      return v != NULL;
    }
  return false;
}

bool
td__meta_find (TdAssembler *a, uint64_t id, TdMeta *meta)
{
  uint32_t at = td__id_map_get (&a->meta_at, id);

  *meta = (TdMeta){ 0 };
  if (at != TD_TAPE_NONE)
    {
      *meta = ((const TdMeta *)a->metas.items)[at];
      return true;
    }
  return find_recent (a, id, meta);
}

void
td__meta_set (TdAssembler *a, uint64_t id, const TdMeta *meta)
{
  uint32_t at = td__id_map_get (&a->meta_at, id);
  TdMeta *slot;

  if (a->metas.n >= MAX_METAS && at == TD_TAPE_NONE)
    return;
  if (at != TD_TAPE_NONE)
    slot = (TdMeta *)a->metas.items + at;
  else
    {
      slot = td__list_add (&a->metas, sizeof *slot);
      if (slot == NULL || !td__id_map_set (&a->meta_at, id, a->metas.n - 1))
        return;
    }
  *slot = *meta;
}
