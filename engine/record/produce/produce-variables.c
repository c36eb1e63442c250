/* Variables of a recorded program: what is checked of them, and how the assembler is told.
 * SPDX-License-Identifier: MIT */
#include "producer-private.h"

#include <stdio.h>
#include <string.h>

#define PIN_AFTER 8 /* iterations: the assembler has forgotten what is older than 64 */

static const char *
wrong_in_variable (const TdProducer *p, const TdProducerVariable *v)
{
  const unsigned known
      = TD_TAPE_VAR_REQUIRES_GRAD | TD_TAPE_VAR_RETAINED | TD_TAPE_VAR_PARAMETER;
  uint64_t n = 1;

  if (v->id == 0 || v->id >= 1ull << 62)
    return "a number from 1 on is needed";
  if (v->ndim > TD_TAPE_MAX_NDIM)
    return "it has more than 8 dimensions";
  if (v->ndim > 0 && v->dims == NULL)
    return "its dimensions are not given";
  for (uint32_t d = 0; d < v->ndim; d++)
    if (v->dims[d] < 0 || __builtin_mul_overflow (n, (uint64_t)v->dims[d], &n)
        || n >= 1ull << 56)
      return "its shape is impossible";
  if (v->dtype > TD_TAPE_N_DTYPES)
    return "there is no such dtype";
  if (v->category >= TD_TAPE_N_CATEGORIES)
    return "there is no such category";
  if ((v->flags & ~known) != 0)
    return "there is no such flag";
  if (v->device > UINT8_MAX)
    return "there is no such device";
  if (v->name > p->n_texts || v->parameter > p->n_texts)
    return "its name is no text";
  if (v->layer > p->n_layers)
    return "there is no such layer";
  if (v->place > p->n_places)
    return "there is no such place";
  return NULL;
}

/* Whether its elements leave the storage; of a dtype without a size nobody knows. */
static bool
leaves_storage (const TdProducerVariable *v, const ProducerStorage *s)
{
  const size_t size = td_tape_dtype_bytes (v->dtype);
  uint64_t step = 1, last = v->offset, way;

  if (size == 0)
    return false;
  for (uint32_t d = v->ndim; d-- > 0; step *= (uint64_t)v->dims[d])
    {
      const int64_t stride = v->strides != NULL ? v->strides[d] : (int64_t)step;

      if (v->dims[d] == 0)
        return false; /* it has none */
      if (stride < 0
          || __builtin_mul_overflow ((uint64_t)v->dims[d] - 1, (uint64_t)stride, &way)
          || __builtin_add_overflow (last, way, &last))
        return true;
    }
  return last >= s->bytes / size;
}

/* How its elements lie, in elements.  False: not row by row. */
static bool
find_strides (const TdProducerVariable *v, int64_t *strides)
{
  int64_t step = 1;
  bool usual = true;

  for (uint32_t d = v->ndim; d-- > 0; step *= v->dims[d])
    {
      strides[d] = v->strides != NULL ? v->strides[d] : step;
      usual = usual && (v->dims[d] <= 1 || strides[d] == step);
    }
  return usual;
}

/* "offset=3 strides=1,4", where the elements do not lie in order from the first on. */
static uint32_t
layout_text (TdProducer *p, const TdProducerVariable *v)
{
  char text[256];
  int n = 0;
  int64_t strides[TD_TAPE_MAX_NDIM];
  const bool usual = find_strides (v, strides);

  if (v->offset > 0)
    n = snprintf (text, sizeof text, "offset=%llu", (unsigned long long)v->offset);
  for (uint32_t d = 0; !usual && d < v->ndim; d++)
    n += snprintf (text + n, sizeof text - (size_t)n, "%s%lld",
                   d > 0   ? ","
                   : n > 0 ? " strides="
                           : "strides=",
                   (long long)v->strides[d]);
  return n > 0 ? td__producer_text_n (p, text, (size_t)n) : 0;
}

static bool
put_parameter (TdProducer *p, const ProducerVar *v, uint32_t path)
{
  TdRawParameter *raw = td__producer_record (p, TD_RAW_PARAMETER, 0, sizeof *raw);

  if (raw == NULL)
    return false;
  raw->variable = v->id;
  raw->path = path;
  raw->dtype = v->dtype;
  raw->ndim = v->ndim;
  raw->flags = v->category == TD_TAPE_CATEGORY_PARAMETER ? 0 : TD_TAPE_PARAMETER_PERSISTENT;
  memcpy (raw->dims, v->dims, sizeof raw->dims);
  td__producer_feed (p, raw);
  return true;
}

static bool
put_leaf (TdProducer *p, ProducerVar *v)
{
  TdRawLeaf *leaf
      = td__producer_record (p, TD_RAW_LEAF, 0, sizeof *leaf + v->ndim * sizeof *v->dims);

  if (leaf == NULL)
    return false;
  leaf->name = v->name;
  leaf->path = v->layer;
  leaf->site = v->place;
  leaf->var = (TdRawOutput){ .variable = v->id,
                             .dtype = v->dtype,
                             .ndim = v->ndim,
                             .category = v->category,
                             .flags = v->flags,
                             .device = v->device };
  memcpy (leaf->var.dims, v->dims, v->ndim * sizeof *v->dims);
  td__producer_feed (p, leaf);
  v->said = true;
  return true;
}

static ProducerVar *
new_var (TdProducer *p, uint64_t id)
{
  ProducerVar *v;
  uint32_t at;

  if (p->free_vars.n > 0)
    at = ((const uint32_t *)p->free_vars.items)[--p->free_vars.n];
  else
    {
      at = p->vars.n;
      if (at >= PRODUCER_MOST || td__list_add (&p->vars, sizeof *v) == NULL)
        return NULL;
    }
  v = (ProducerVar *)p->vars.items + at;
  return td__id_map_set (&p->var_at, id, at) ? v : NULL;
}

TdProducerStatus
td_producer_variable (TdProducer *p, const TdProducerVariable *given)
{
  TdProducerStatus ready = td__producer_ready (p);
  ProducerStorage *s;
  TdProducerVariable in;
  ProducerVar *v;
  const char *wrong;

  if (ready != TD_PRODUCER_OK)
    return ready;
  wrong = td__producer_take (&in, sizeof in, given, sizeof in);
  if (wrong == NULL)
    wrong = wrong_in_variable (p, &in);
  if (wrong != NULL)
    return td__producer_refuse (p, TD_PRODUCER_WRONG, "variable: %s", wrong);
  if (in.id <= p->newest_id)
    return td__producer_refuse (p, TD_PRODUCER_WRONG,
                                "variable %llu: its number is not larger than all before",
                                (unsigned long long)in.id);
  s = td__producer_storage (p, in.storage);
  if (in.storage != 0 && s == NULL)
    return td__producer_refuse (p, TD_PRODUCER_WRONG, "variable: there is no storage %llu",
                                (unsigned long long)in.storage);
  if (s != NULL && leaves_storage (&in, s))
    return td__producer_refuse (p, TD_PRODUCER_WRONG,
                                "variable %llu: its elements leave storage %llu, of %llu bytes",
                                (unsigned long long)in.id, (unsigned long long)in.storage,
                                (unsigned long long)s->bytes);
  v = new_var (p, in.id);
  if (v == NULL)
    return td__producer_refuse (p, TD_PRODUCER_MEMORY, "variable: too many are alive");
  p->newest_id = in.id;
  *v = (ProducerVar){ .id = in.id,
                      .made = p->n_begun,
                      .name = in.name,
                      .layer = in.layer,
                      .place = in.place,
                      .storage = TD_TAPE_NONE,
                      .next = TD_TAPE_NONE,
                      .dtype = (uint8_t)in.dtype,
                      .ndim = (uint8_t)in.ndim,
                      .category = (uint8_t)in.category,
                      .flags = (uint8_t)in.flags,
                      .device = (uint8_t)in.device,
                      .parameter = in.parameter,
                      .layout = layout_text (p, &in) };
  if (in.ndim > 0)
    memcpy (v->dims, in.dims, in.ndim * sizeof *v->dims);
  find_strides (&in, v->strides);
  if (s != NULL)
    {
      v->storage = (uint32_t)(s - (ProducerStorage *)p->storages.items);
      v->next = s->vars;
      s->vars = (uint32_t)(v - (ProducerVar *)p->vars.items);
      s->variable = s->variable == 0 ? v->id : s->variable;
      s->place = s->place == 0 ? v->place : s->place;
      s->name = s->name == 0 ? v->name : s->name;
    }
  if ((in.parameter != 0 && !put_parameter (p, v, in.parameter))
      || (!p->in_iteration && !put_leaf (p, v)))
    return TD_PRODUCER_MEMORY;
  return TD_PRODUCER_OK;
}

bool
td__producer_know (TdProducer *p, ProducerVar *v)
{
  TdMeta meta;

  if (!v->said)
    return put_leaf (p, v);
  if (!v->pinned && v->id < p->first_id && p->n_begun - v->made >= PIN_AFTER)
    {
      v->pinned = true;
      if (td__meta_find (p->a, v->id, &meta))
        td__meta_set (p->a, v->id, &meta);
    }
  return true;
}
