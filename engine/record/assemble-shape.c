/* From the raw records of an iteration to its structure: events, variables, spans, keys.  Done
 * once for each distinct iteration; repeats are recognised in assemble-match.c.
 * SPDX-License-Identifier: MIT */
#include "assembler-private.h"

#include <stdlib.h>
#include <string.h>

#define LINK_SALT 0x6c696e6bu
#define LEAF_SALT 0x6c656166u
#define SCOPE_SALT 0x73636f70u
#define GIVE_BACK_AT (4u << 20)

/* The build in progress. */
typedef struct
{
  TdAssembler *a;
  TdShape *shape;
  TdIdMap var_of; /* engine id -> variable */
  TdList own;     /* uint32_t: the same plus 1, by id, of the iteration's own */
  TdIdMap counts; /* how often a place was met */
  TdList stack;   /* uint32_t: open spans */
  bool failed;
} Build;

static uint32_t
innermost (const Build *b)
{
  return b->stack.n ? ((const uint32_t *)b->stack.items)[b->stack.n - 1] : TD_TAPE_NONE;
}

/* Key of the innermost open scope; links are in the path already. */
static uint64_t
scope_key (const Build *b)
{
  const TdTapeSpan *spans = b->shape->spans.items;

  for (uint32_t i = b->stack.n; i-- > 0;)
    {
      uint32_t span = ((const uint32_t *)b->stack.items)[i];

      if (spans[span].kind == TD_TAPE_SPAN_SCOPE)
        return spans[span].key;
    }
  return 0;
}

static void
put_dims (Build *b, TdTapeVar *v, const int64_t *dims, unsigned n)
{
  int64_t *to;

  v->first_dim = b->shape->dims.n;
  v->ndim = (uint8_t)n;
  if (n > 0)
    {
      to = td__list_add_n (&b->shape->dims, sizeof *to, n);
      if (to != NULL)
        memcpy (to, dims, n * sizeof *to);
      else
        {
          b->failed = true;
          v->ndim = 0;
        }
    }
  v->bytes = td_tape_dtype_bytes (v->dtype);
  for (unsigned i = 0; i < v->ndim; i++)
    if (dims[i] < 0 || __builtin_mul_overflow (v->bytes, (uint64_t)dims[i], &v->bytes))
      v->bytes = 0;
}

/* Ids of the iteration's own are nearly without gaps: a table of them is smaller than a map. */
static bool
in_table (const Build *b, uint64_t id)
{
  return id >= b->a->begin.first_id
         && id - b->a->begin.first_id < 8ull * b->a->n_records + 1024;
}

static uint32_t
known_var (const Build *b, uint64_t id)
{
  const uint64_t at = id - b->a->begin.first_id;

  if (!in_table (b, id))
    return td__id_map_get (&b->var_of, id);
  return at < b->own.n ? ((const uint32_t *)b->own.items)[at] - 1 : TD_TAPE_NONE;
}

static bool
note_var (Build *b, uint64_t id, uint32_t index)
{
  const uint64_t at = id - b->a->begin.first_id;

  if (!in_table (b, id))
    return td__id_map_set (&b->var_of, id, index);
  if (at >= b->own.n)
    {
      const uint32_t more = (uint32_t)(at + 1 - b->own.n);
      uint32_t *slots = td__list_add_n (&b->own, sizeof *slots, more);

      if (slots == NULL)
        return false;
      memset (slots, 0, more * sizeof *slots);
    }
  ((uint32_t *)b->own.items)[at] = index + 1;
  return true;
}

static uint32_t
add_var (Build *b, uint64_t id, const TdTapeVar *var)
{
  uint32_t index = b->shape->vars.n;
  TdTapeVar *v = td__list_add (&b->shape->vars, sizeof *v);

  if (v == NULL || !note_var (b, id, index))
    {
      b->failed = true;
      return 0;
    }
  *v = *var;
  return index;
}

/* A variable from before the iteration gets a slot among the externals. */
static uint32_t
add_external (Build *b, uint64_t id)
{
  TdShape *s = b->shape;
  TdTapeVar v = { .producer = -1, .id = s->externals.n };
  TdMeta *meta = td__list_add (&s->external_meta, sizeof *meta);
  uint64_t *slot = td__list_add (&s->externals, sizeof *slot);
  uint32_t *var = td__list_add (&s->external_var, sizeof *var);

  if (meta == NULL || slot == NULL || var == NULL)
    {
      b->failed = true;
      return 0;
    }
  td__meta_find (b->a, id, meta);
  *slot = id;
  v.key = meta->key;
  v.name = meta->name;
  v.path = meta->path;
  v.site = meta->site;
  v.dtype = meta->dtype;
  v.category = meta->category;
  v.device = meta->device;
  v.flags = (uint8_t)((meta->flags & ~TD_TAPE_VAR_RETAINED) | TD_TAPE_VAR_EXTERNAL);
  put_dims (b, &v, meta->dims, meta->ndim);
  *var = add_var (b, id, &v);
  return *var;
}

/* The variable with this id; 0 means none, as for an optional input. */
static uint32_t
var_of (Build *b, uint64_t id)
{
  uint32_t var = known_var (b, id);

  if (var == TD_TAPE_NONE)
    {
      /* An id of this iteration that was never announced: a leaf without a name. */
      TdTapeVar v = { .producer = -1, .id = (uint32_t)(id - b->a->begin.first_id) };

      var = id < b->a->begin.first_id ? add_external (b, id) : add_var (b, id, &v);
    }
  if (id < b->a->begin.first_id)
    {
      const TdTapeVar *v = (const TdTapeVar *)b->shape->vars.items + var;
      uint32_t *ref = td__list_add (&b->shape->external_refs, sizeof *ref);

      if (ref != NULL && !b->failed)
        *ref = v->id;
      else
        b->failed = true;
    }
  return var;
}

uint64_t
td__leaf_key (TdAssembler *a, const TdRawLeaf *leaf, uint64_t scope, TdIdMap *counts)
{
  uint64_t path = td__alias (&a->paths, leaf->path).hash;
  uint64_t name = td__alias (&a->strings, leaf->name).hash;
  uint64_t h = td_tape_hash (td_tape_hash (LEAF_SALT, path), name);

  if (leaf->path != 0)
    return h;
  h = td_tape_hash (td_tape_hash (h, td__alias (&a->sites, leaf->site).hash), scope);
  return td_tape_hash (h, td__id_map_count (counts, h));
}

void
td__leaf_meta (TdAssembler *a, const TdRawLeaf *leaf, uint64_t key, TdMeta *meta)
{
  *meta = (TdMeta){ .key = key,
                    .name = td__alias (&a->strings, leaf->name).id,
                    .path = td__alias (&a->paths, leaf->path).id,
                    .site = td__alias (&a->sites, leaf->site).id,
                    .dtype = leaf->var.dtype,
                    .ndim = leaf->var.ndim,
                    .category = leaf->var.category,
                    .flags = leaf->var.flags,
                    .device = (uint8_t)leaf->var.device };
  memcpy (meta->dims, leaf->var.dims, leaf->var.ndim * sizeof *meta->dims);
}

static void
build_leaf (Build *b, const TdRawLeaf *leaf)
{
  TdMeta meta;
  TdTapeVar v = { .producer = -1, .id = (uint32_t)(leaf->var.variable - b->a->begin.first_id) };

  td__leaf_meta (b->a, leaf, td__leaf_key (b->a, leaf, scope_key (b), &b->counts), &meta);
  v.key = meta.key;
  v.name = meta.name;
  v.path = meta.path;
  v.site = meta.site;
  v.dtype = meta.dtype;
  v.category = meta.category;
  v.device = meta.device;
  v.flags = (uint8_t)(meta.flags & ~TD_TAPE_VAR_EXTERNAL);
  put_dims (b, &v, meta.dims, meta.ndim);
  if (leaf->var.variable >= b->a->begin.first_id)
    add_var (b, leaf->var.variable, &v);
}

static uint64_t
event_key (Build *b, const TdRawOp *op, const TdTapeEvent *e)
{
  uint64_t h, place;

  if (e->twin >= 0)
    {
      h = td_tape_twin_key (((const TdTapeEvent *)b->shape->events.items)[e->twin].key,
                            op->phase, op->order);
      place = td__id_map_count (&b->counts, h);
      return place ? td_tape_hash (h, place) : h; /* a second backward through the same graph */
    }
  h = td_tape_event_key (scope_key (b), td__alias (&b->a->paths, op->path).hash,
                         td__alias (&b->a->sites, op->site).hash, 0, op->phase);
  if (op->order & TD_RAW_ORDER_APART) /* not one more of its line's operations */
    {
      h = td_tape_hash (h, op->order);
      return td_tape_hash (h, td__id_map_count (&b->counts, h));
    }
  return td_tape_event_key (scope_key (b), td__alias (&b->a->paths, op->path).hash,
                            td__alias (&b->a->sites, op->site).hash,
                            td__id_map_count (&b->counts, h), op->phase);
}

static const TdRawOutput *
build_output (Build *b, const TdRawOutput *out, const TdTapeEvent *e, uint32_t index,
              uint32_t k)
{
  TdTapeVar v = { .key = td_tape_output_key (e->key, k),
                  .producer = (int32_t)index,
                  .path = e->path,
                  .site = e->site,
                  .id = (uint32_t)(out->variable - b->a->begin.first_id),
                  .out_index = (uint16_t)k,
                  .dtype = out->dtype,
                  .category = out->category,
                  .device = (uint8_t)out->device,
                  .flags = (uint8_t)(out->flags & ~TD_TAPE_VAR_EXTERNAL) };
  uint32_t *ref = td__list_add (&b->shape->outs, sizeof *ref);

  put_dims (b, &v, out->dims, out->ndim);
  if (ref == NULL)
    b->failed = true;
  else if (out->variable >= b->a->begin.first_id)
    *ref = add_var (b, out->variable, &v);
  else
    *ref = var_of (b, out->variable); /* written in place: an update of a parameter */
  return (const TdRawOutput *)(out->dims + out->ndim);
}

static void
build_op (Build *b, const TdRawOp *op)
{
  TdShape *s = b->shape;
  uint32_t index = s->events.n;
  TdTapeEvent *e = td__list_add (&s->events, sizeof *e), copy;
  const TdRawOutput *out = (const TdRawOutput *)(op->ids + op->n_in);

  if (e == NULL)
    {
      b->failed = true;
      return;
    }
  copy = (TdTapeEvent){ .opdef = td__alias (&b->a->opdefs, op->opdef).id,
                        .site = td__alias (&b->a->sites, op->site).id,
                        .path = td__alias (&b->a->paths, op->path).id,
                        .attrs = td__alias (&b->a->strings, op->attrs).id,
                        .twin = op->twin_back && op->twin_back <= index
                                    ? (int32_t)(index - op->twin_back)
                                    : -1,
                        .span = innermost (b),
                        .first_in = s->ins.n,
                        .first_out = s->outs.n,
                        .n_out = op->n_out,
                        .order = op->order,
                        .phase = op->phase,
                        .flags = op->head.flags };
  copy.key = event_key (b, op, &copy);
  for (unsigned i = 0; i < op->n_in; i++)
    {
      uint32_t *in;
      unsigned bit = i < 31 ? i : 31;

      if (op->ids[i] == 0)
        continue;
      in = td__list_add (&s->ins, sizeof *in);
      if (in == NULL)
        b->failed = true;
      else
        *in = var_of (b, op->ids[i]);
      /* Bits follow the inputs that are there. */
      if (op->retained_in >> bit & 1)
        copy.retained_in |= 1u << (copy.n_in < 31 ? copy.n_in : 31);
      copy.n_in++;
    }
  ((TdTapeEvent *)s->events.items)[index] = copy;
  for (uint32_t k = 0; k < op->n_out; k++)
    out = build_output (b, out, &copy, index, k);
}

static void
open_span (Build *b, const TdRawSpan *raw)
{
  bool link = raw->head.type == TD_RAW_LINK_ENTER;
  uint32_t index = b->shape->spans.n, *top;
  TdTapeSpan *span, copy = { .kind = link ? TD_TAPE_SPAN_LINK : TD_TAPE_SPAN_SCOPE,
                             .name = td__alias (&b->a->strings, raw->name).id,
                             .path = td__alias (&b->a->paths, raw->path).id,
                             .site = td__alias (&b->a->sites, raw->site).id,
                             .parent = innermost (b),
                             .begin = b->shape->events.n,
                             .end = b->shape->events.n,
                             .depth = b->stack.n };
  uint64_t h = td_tape_hash (link ? LINK_SALT : SCOPE_SALT, scope_key (b));

  h = td_tape_hash (h, td__alias (&b->a->strings, raw->name).hash);
  h = td_tape_hash (h, td__alias (&b->a->paths, raw->path).hash);
  h = td_tape_hash (h, td__alias (&b->a->sites, raw->site).hash);
  copy.key = td_tape_hash (h, td__id_map_count (&b->counts, h));
  span = td__list_add (&b->shape->spans, sizeof *span);
  top = td__list_add (&b->stack, sizeof *top);
  if (span == NULL || top == NULL)
    {
      b->failed = true;
      return;
    }
  *span = copy;
  *top = index;
}

static void
close_span (Build *b)
{
  if (b->stack.n > 0)
    ((TdTapeSpan *)b->shape->spans.items)[innermost (b)].end = b->shape->events.n;
  b->stack.n -= b->stack.n > 0;
}

static void
build_grad (Build *b, const TdRawGrad *raw)
{
  TdTapeGrad *grad = td__list_add (&b->shape->grads, sizeof *grad);

  if (grad == NULL)
    {
      b->failed = true;
      return;
    }
  grad->event = b->shape->events.n; /* the update that follows; checked at the end */
  grad->path = td__alias (&b->a->strings, raw->path).id;
  grad->parameter = var_of (b, raw->parameter);
  grad = (TdTapeGrad *)b->shape->grads.items + (b->shape->grads.n - 1);
  grad->gradient = raw->gradient ? var_of (b, raw->gradient) : TD_TAPE_NONE;
}

static void
build_name (Build *b, const TdRawName *raw)
{
  uint32_t var = var_of (b, raw->variable);
  TdTapeVar *v = (TdTapeVar *)b->shape->vars.items + var;

  if (b->failed)
    return;
  if (raw->head.type == TD_RAW_UNCHAIN)
    v->flags |= TD_TAPE_VAR_UNCHAINED;
  else
    {
      v->name = td__alias (&b->a->strings, raw->name).id;
      v->flags |= (uint8_t)(raw->flags & ~(unsigned)TD_TAPE_VAR_EXTERNAL);
    }
}

static void
build_record (Build *b, const TdRawHead *head)
{
  switch (head->type)
    {
    case TD_RAW_OP:
      build_op (b, (const TdRawOp *)head);
      break;
    case TD_RAW_LEAF:
      build_leaf (b, (const TdRawLeaf *)head);
      break;
    case TD_RAW_SCOPE_OPEN:
    case TD_RAW_LINK_ENTER:
      open_span (b, (const TdRawSpan *)head);
      break;
    case TD_RAW_SCOPE_CLOSE:
    case TD_RAW_LINK_LEAVE:
      close_span (b);
      break;
    case TD_RAW_GRAD:
      build_grad (b, (const TdRawGrad *)head);
      break;
    default:
      build_name (b, (const TdRawName *)head);
      break;
    }
}

static int
by_id (const void *x, const void *y)
{
  const TdVarAt *a = x, *b = y;

  return a->id < b->id ? -1 : a->id > b->id;
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

static void
index_vars (Build *b)
{
  const TdTapeVar *vars = b->shape->vars.items;

  for (uint32_t i = 0; i < b->shape->vars.n; i++)
    if (!(vars[i].flags & TD_TAPE_VAR_EXTERNAL))
      {
        TdVarAt *at = td__list_add (&b->shape->at, sizeof *at);

        if (at != NULL)
          *at = (TdVarAt){ .id = vars[i].id, .var = i };
      }
  if (!in_order (b->shape->at.items, b->shape->at.n))
    qsort (b->shape->at.items, b->shape->at.n, sizeof (TdVarAt), by_id);
}

static void
fill_iteration (Build *b)
{
  TdShape *s = b->shape;
  TdTapeGrad *grads = s->grads.items;

  for (uint32_t i = 0; i < s->grads.n; i++)
    if (grads[i].event >= s->events.n)
      grads[i].event = TD_TAPE_NONE;
  s->it = (TdTapeIteration){ .size = sizeof s->it,
                             .events = s->events.items,
                             .n_events = s->events.n,
                             .ins = s->ins.items,
                             .n_ins = s->ins.n,
                             .outs = s->outs.items,
                             .n_outs = s->outs.n,
                             .vars = s->vars.items,
                             .n_vars = s->vars.n,
                             .dims = s->dims.items,
                             .n_dims = s->dims.n,
                             .spans = s->spans.items,
                             .n_spans = s->spans.n,
                             .grads = s->grads.items,
                             .n_grads = s->grads.n,
                             .runs = b->a->runs.items,
                             .n_runs = b->a->runs.n };
  s->n_events = s->events.n;
  td_tape_writer_fingerprint (b->a->w, &s->it, &s->it.fingerprint, &s->it.fingerprint_dims);
  s->it.runs = NULL; /* of this iteration only */
  s->it.n_runs = 0;
}

TdShape *
td__shape_build (TdAssembler *a, bool consume)
{
  Build b = { .a = a, .shape = calloc (1, sizeof *b.shape) };
  const char *begin = a->raw.items, *at = begin, *end = at + a->raw.n;
  size_t given = 0;

  if (b.shape == NULL)
    return NULL;
  while (at < end && !b.failed)
    {
      const size_t size = ((const TdRawHead *)at)->size;

      build_record (&b, (const TdRawHead *)at);
      at += size;
      if (consume && (size_t)(at - begin) - given > GIVE_BACK_AT)
        td__list_give_back (&a->raw, given = (size_t)(at - begin));
    }
  while (b.stack.n > 0)
    close_span (&b);
  index_vars (&b);
  td__id_map_clear (&b.var_of);
  td__list_clear (&b.own);
  td__id_map_clear (&b.counts);
  td__list_clear (&b.stack);
  if (b.failed)
    {
      td__shape_free (b.shape);
      return NULL;
    }
  b.shape->first_id = a->begin.first_id;
  fill_iteration (&b);
  return b.shape;
}

void
td__shape_free (TdShape *s)
{
  if (s == NULL)
    return;

  TdList *lists[] = { &s->events,        &s->ins,       &s->outs,          &s->vars,
                      &s->dims,          &s->spans,     &s->grads,         &s->at,
                      &s->external_refs, &s->externals, &s->external_meta, &s->external_var };

  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
    td__list_clear (lists[i]);
  free (s->raw);
  free (s);
}

void
td__shape_slim (TdShape *s)
{
  TdList *lists[] = { &s->events, &s->ins, &s->outs, &s->spans, &s->grads };

  if (s->raw != NULL || s->it.structure == 0)
    return;
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
    td__list_clear (lists[i]);
  s->it.n_events = s->it.n_ins = s->it.n_outs = s->it.n_spans = s->it.n_grads = 0;
}

uint32_t
td__shape_var (const TdAssembler *a, const TdShape *s, uint64_t id)
{
  TdVarAt wanted = { .id = (uint32_t)(id - a->begin.first_id) }, *found;
  const uint64_t *externals = s->externals.items;

  if (id == 0)
    return TD_TAPE_NONE;
  if (id >= a->begin.first_id)
    {
      found = s->at.n && id - a->begin.first_id < UINT32_MAX
                  ? bsearch (&wanted, s->at.items, s->at.n, sizeof wanted, by_id)
                  : NULL;
      return found ? found->var : TD_TAPE_NONE;
    }
  for (uint32_t i = 0; i < s->externals.n; i++)
    if (externals[i] == id)
      return ((const uint32_t *)s->external_var.items)[i];
  return TD_TAPE_NONE;
}
