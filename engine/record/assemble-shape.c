/* From the raw records of an iteration to its structure: events, variables, spans, keys.  Done
 * once for each distinct iteration; repeats are recognised in assemble-match.c.
 * SPDX-License-Identifier: MIT */
#include "assemble-build.h"

#include <stdlib.h>
#include <string.h>

#define LINK_SALT 0x6c696e6bu
#define LEAF_SALT 0x6c656166u
#define SCOPE_SALT 0x73636f70u

/* Add `n` rows to one of a shape's arrays, packed or not. */
static bool
put (TdList *plain, TdTapeRows *packed, size_t size, const void *rows, uint32_t n)
{
  void *to;

  for (uint32_t i = 0; packed != NULL && i < n; i++)
    if (!td_tape_rows_add (packed, (const char *)rows + i * size))
      return false;
  if (packed != NULL || n == 0)
    return true;
  to = td__list_add_n (plain, size, n);
  if (to != NULL)
    memcpy (to, rows, n * size);
  return to != NULL;
}

#define PUT(shape, array, rows, n)                                                             \
  put (&(shape)->array, ROWS (shape, array), sizeof *(rows), rows, n)

static uint32_t
innermost (const TdBuild *b)
{
  return b->stack.n ? ((const uint32_t *)b->stack.items)[b->stack.n - 1] : TD_TAPE_NONE;
}

/* Key of the innermost open scope; links are in the path already. */
static uint64_t
scope_key (const TdBuild *b)
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
put_dims (TdBuild *b, TdTapeVar *v, const int64_t *dims, unsigned n)
{
  TdShape *s = b->shape;

  v->first_dim = COUNT (s, dims);
  v->ndim = (uint8_t)n;
  if (!PUT (s, dims, dims, n))
    {
      b->failed = true;
      v->ndim = 0;
    }
  v->bytes = td_tape_dtype_bytes (v->dtype);
  for (unsigned i = 0; i < v->ndim; i++)
    if (dims[i] < 0 || __builtin_mul_overflow (v->bytes, (uint64_t)dims[i], &v->bytes))
      v->bytes = 0;
}

/* Ids of the iteration's own are nearly without gaps: a table of them is smaller than a map. */
static bool
in_table (const TdBuild *b, uint64_t id)
{
  return id >= b->a->begin.first_id
         && id - b->a->begin.first_id < 8ull * b->a->n_records + 1024;
}

static uint32_t
known_var (const TdBuild *b, uint64_t id)
{
  const TdList *own = &b->shape->own;
  const uint64_t at = id - b->a->begin.first_id;
  const uint32_t var = at < own->n ? ((const uint32_t *)own->items)[at] : 0;

  return var != 0 ? var - 1 : td__id_map_get (&b->var_of, id);
}

static bool
note_var (TdBuild *b, uint64_t id, uint32_t index)
{
  TdList *own = &b->shape->own;
  const uint64_t at = id - b->a->begin.first_id;

  if (!in_table (b, id))
    {
      b->scattered = b->scattered || id >= b->a->begin.first_id;
      return td__id_map_set (&b->var_of, id, index);
    }
  if (at >= own->n)
    {
      const uint32_t more = (uint32_t)(at + 1 - own->n);
      uint32_t *slots = td__list_add_n (own, sizeof *slots, more);

      if (slots == NULL)
        return false;
      memset (slots, 0, more * sizeof *slots);
    }
  b->scattered = b->scattered || ((uint32_t *)own->items)[at] != 0;
  ((uint32_t *)own->items)[at] = index + 1;
  return true;
}

static uint32_t
add_var (TdBuild *b, uint64_t id, const TdTapeVar *var, const int64_t *dims)
{
  TdShape *s = b->shape;
  const uint32_t index = COUNT (s, vars);

  if (!PUT (s, vars, var, 1) || !note_var (b, id, index)
      || (s->packed != NULL && !td__build_note_type (b, var, dims)))
    {
      b->failed = true;
      return 0;
    }
  return index;
}

/* A variable from before the iteration gets a slot among the externals. */
static uint32_t
add_external (TdBuild *b, uint64_t id)
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
  *var = add_var (b, id, &v, meta->dims);
  return *var;
}

/* The variable with this id; 0 means none, as for an optional input. */
static uint32_t
var_of (TdBuild *b, uint64_t id)
{
  uint32_t var = known_var (b, id);

  if (var == TD_TAPE_NONE)
    {
      /* An id of this iteration that was never announced: a leaf without a name. */
      TdTapeVar v = { .producer = -1, .id = (uint32_t)(id - b->a->begin.first_id) };

      var = id < b->a->begin.first_id ? add_external (b, id) : add_var (b, id, &v, NULL);
    }
  /* They are for the match, and of a very large one there is none. */
  if (id < b->a->begin.first_id && b->shape->packed == NULL)
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
build_leaf (TdBuild *b, const TdRawLeaf *leaf)
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
    add_var (b, leaf->var.variable, &v, meta.dims);
}

/* How many backward events with this hash its twin has already.  Most have one of each kind: of
 * a very large iteration a bit is kept of those. */
static uint32_t
count_twins (TdBuild *b, const TdRawOp *op, uint32_t twin, uint64_t h)
{
  uint8_t *of, bit;

  if (b->shape->packed == NULL || op->order >= 4
      || (op->phase != TD_TAPE_PHASE_BACKWARD && op->phase != TD_TAPE_PHASE_ACCUMULATE))
    return td__id_map_count (&b->counts, h);
  of = (uint8_t *)b->twins.items + twin;
  bit = (uint8_t)(1u << (op->order + (op->phase == TD_TAPE_PHASE_ACCUMULATE ? 4 : 0)));
  if (*of & bit)
    return td__id_map_count (&b->counts, h) + 1;
  *of |= bit;
  return 0;
}

static uint64_t
key_at (const TdBuild *b, int32_t event)
{
  return b->shape->packed != NULL ? ((const uint64_t *)b->keys.items)[event]
                                  : ((const TdTapeEvent *)b->shape->events.items)[event].key;
}

static uint64_t
event_key (TdBuild *b, const TdRawOp *op, const TdTapeEvent *e)
{
  uint64_t h, place;

  if (e->twin >= 0)
    {
      h = td_tape_twin_key (key_at (b, e->twin), op->phase, e->order);
      place = count_twins (b, op, (uint32_t)e->twin, h);
      return place ? td_tape_hash (h, place) : h; /* a second backward through the same graph */
    }
  h = td_tape_event_key (scope_key (b), td__alias (&b->a->paths, op->path).hash,
                         td__alias (&b->a->sites, op->site).hash, 0, op->phase);
  if (e->order & TD_RAW_ORDER_APART) /* not one more of its line's operations */
    {
      h = td_tape_hash (h, e->order);
      return td_tape_hash (h, td__id_map_count (&b->counts, h));
    }
  return td_tape_event_key (scope_key (b), td__alias (&b->a->paths, op->path).hash,
                            td__alias (&b->a->sites, op->site).hash,
                            td__id_map_count (&b->counts, h), op->phase);
}

static const TdRawOutput *
build_output (TdBuild *b, const TdRawOutput *out, const TdTapeEvent *e, uint32_t index,
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
  TdShape *s = b->shape;
  uint32_t var;

  put_dims (b, &v, out->dims, out->ndim);
  if (out->variable >= b->a->begin.first_id)
    var = add_var (b, out->variable, &v, out->dims);
  else
    var = var_of (b, out->variable); /* written in place: an update of a parameter */
  if (!PUT (s, outs, &var, 1))
    b->failed = true;
  return (const TdRawOutput *)(out->dims + out->ndim);
}

/* The inputs of an event; bits follow those that are there. */
static void
build_inputs (TdBuild *b, const TdRawOp *op, TdTapeEvent *e)
{
  TdShape *s = b->shape;

  for (unsigned i = 0; i < op->n_in; i++)
    {
      const unsigned bit = i < 31 ? i : 31;
      uint32_t var;

      if (op->ids[i] == 0)
        continue;
      var = var_of (b, op->ids[i]);
      if (!PUT (s, ins, &var, 1))
        b->failed = true;
      if (op->retained_in >> bit & 1)
        e->retained_in |= 1u << (e->n_in < 31 ? e->n_in : 31);
      e->n_in++;
    }
}

static bool
add_event (TdBuild *b, const TdTapeEvent *e)
{
  TdShape *s = b->shape;
  uint64_t *key;
  uint8_t *twins;

  if (s->packed != NULL)
    {
      key = td__list_add (&b->keys, sizeof *key);
      twins = td__list_add (&b->twins, sizeof *twins);
      if (key == NULL || twins == NULL)
        return false;
      *key = e->key;
      *twins = 0;
    }
  return PUT (s, events, e, 1);
}

static void
build_op (TdBuild *b, const TdRawOp *op)
{
  TdShape *s = b->shape;
  const uint32_t index = COUNT (s, events);
  const TdRawOutput *out = (const TdRawOutput *)(op->ids + op->n_in);
  TdTapeEvent e
      = { .opdef = td__alias (&b->a->opdefs, op->opdef).id,
          .site = td__alias (&b->a->sites, op->site).id,
          .path = td__alias (&b->a->paths, op->path).id,
          .attrs = td__alias (&b->a->strings, op->attrs).id,
          .twin
          = op->twin_back && op->twin_back <= index ? (int32_t)(index - op->twin_back) : -1,
          .span = innermost (b),
          .first_in = COUNT (s, ins),
          .first_out = COUNT (s, outs),
          .n_out = op->n_out,
          .order = op->twin_back ? op->order : op->order & TD_RAW_ORDER_APART,
          .phase = op->phase,
          .flags = op->head.flags };

  e.key = event_key (b, op, &e);
  build_inputs (b, op, &e);
  if (!add_event (b, &e))
    {
      b->failed = true;
      return;
    }
  for (uint32_t k = 0; k < op->n_out; k++)
    out = build_output (b, out, &e, index, k);
}

static void
open_span (TdBuild *b, const TdRawSpan *raw)
{
  bool link = raw->head.type == TD_RAW_LINK_ENTER;
  uint32_t index = b->shape->spans.n, *top;
  TdTapeSpan *span, copy = { .kind = link ? TD_TAPE_SPAN_LINK : TD_TAPE_SPAN_SCOPE,
                             .name = td__alias (&b->a->strings, raw->name).id,
                             .path = td__alias (&b->a->paths, raw->path).id,
                             .site = td__alias (&b->a->sites, raw->site).id,
                             .parent = innermost (b),
                             .begin = td__build_n_events (b),
                             .end = td__build_n_events (b),
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
close_span (TdBuild *b)
{
  if (b->stack.n > 0)
    ((TdTapeSpan *)b->shape->spans.items)[innermost (b)].end = td__build_n_events (b);
  b->stack.n -= b->stack.n > 0;
}

static void
build_grad (TdBuild *b, const TdRawGrad *raw)
{
  TdTapeGrad *grad = td__list_add (&b->shape->grads, sizeof *grad);

  if (grad == NULL)
    {
      b->failed = true;
      return;
    }
  grad->event = td__build_n_events (b); /* the update that follows; checked at the end */
  grad->path = td__alias (&b->a->strings, raw->path).id;
  grad->parameter = var_of (b, raw->parameter);
  grad = (TdTapeGrad *)b->shape->grads.items + (b->shape->grads.n - 1);
  grad->gradient = raw->gradient ? var_of (b, raw->gradient) : TD_TAPE_NONE;
}

static void
build_name (TdBuild *b, const TdRawName *raw)
{
  TdBuildChange change = { .var = var_of (b, raw->variable), .flags = TD_TAPE_VAR_UNCHAINED };

  if (b->failed)
    return;
  if (raw->head.type != TD_RAW_UNCHAIN)
    {
      change.named = true;
      change.name = td__alias (&b->a->strings, raw->name).id;
      change.flags = (uint8_t)(raw->flags & ~(unsigned)TD_TAPE_VAR_EXTERNAL);
    }
  if (b->shape->packed != NULL)
    td__build_change (b, &change);
  else
    td__build_apply (&change, (TdTapeVar *)b->shape->vars.items + change.var);
}

bool
td__build_record (TdBuild *b, const TdRawHead *head)
{
  if (b->failed)
    return false;
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
  b->failed = b->failed || b->counts.failed;
  return !b->failed;
}

void
td__build_fill (TdBuild *b)
{
  TdShape *s = b->shape;
  TdTapeGrad *grads = s->grads.items;

  s->n_events = td__build_n_events (b);
  for (uint32_t i = b->n_grads_so_far; i < s->grads.n; i++)
    if (grads[i].event >= s->n_events)
      grads[i].event = TD_TAPE_NONE;
  s->it = (TdTapeIteration){ .size = sizeof s->it,
                             .events = s->events.items,
                             .n_events = s->n_events,
                             .ins = s->ins.items,
                             .n_ins = COUNT (s, ins),
                             .outs = s->outs.items,
                             .n_outs = COUNT (s, outs),
                             .vars = s->vars.items,
                             .n_vars = COUNT (s, vars),
                             .dims = s->dims.items,
                             .n_dims = COUNT (s, dims),
                             .spans = s->spans.items,
                             .n_spans = s->spans.n,
                             .grads = s->grads.items,
                             .n_grads = s->grads.n,
                             .runs = b->a->runs.items,
                             .n_runs = b->a->runs.n,
                             .packed = s->packed };
  if (s->packed != NULL)
    {
      s->packed->types = s->types.items;
      s->packed->type_words = s->type_words.items;
    }
  td_tape_writer_fingerprint (b->a->w, &s->it, &s->it.fingerprint, &s->it.fingerprint_dims);
  s->it.runs = NULL; /* of this iteration only */
  s->it.n_runs = 0;
}

void
td__build_clear (TdBuild *b)
{
  td__id_map_clear (&b->var_of);
  td__id_map_clear (&b->counts);
  td__list_clear (&b->stack);
  td__list_clear (&b->keys);
  td__list_clear (&b->twins);
  td__list_clear (&b->changes);
  td__id_map_clear (&b->type_at);
}

TdShape *
td__shape_build (TdAssembler *a)
{
  TdBuild b = { .a = a, .shape = calloc (1, sizeof *b.shape) };
  const char *at = a->raw.items, *end = at + a->raw.n;

  if (b.shape == NULL)
    return NULL;
  b.shape->first_id = a->begin.first_id;
  while (at < end && td__build_record (&b, (const TdRawHead *)at))
    at += ((const TdRawHead *)at)->size;
  while (b.stack.n > 0)
    close_span (&b);
  td__shape_index (b.shape);
  td__list_clear (&b.shape->own);
  td__build_clear (&b);
  if (b.failed)
    {
      td__shape_free (b.shape);
      return NULL;
    }
  td__build_fill (&b);
  return b.shape;
}
