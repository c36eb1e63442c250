/* What the model defines once (texts, operations, sites, paths, sources, parameters), and the
 * tensors that come in parts.
 * SPDX-License-Identifier: MIT */
#include "assembler-private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TEXT (64u << 20)

/* Entry `id` of a table; ids are small, so a wild one is not believed. */
static void *
entry (TdList *table, uint32_t id, size_t size)
{
  if (id == 0 || id > 1u << 24)
    return NULL;
  if (id > table->n)
    {
      uint32_t before = table->n;
      char *more = td__list_add_n (table, size, id - before);

      if (more == NULL)
        return NULL;
      memset (more, 0, (id - before) * size);
    }
  return (char *)table->items + (id - 1) * size;
}

const char *
td__assembler_text (const TdAssembler *a, uint32_t id)
{
  const char *text = id && id <= a->texts.n ? ((char *const *)a->texts.items)[id - 1] : NULL;

  return text ? text : "";
}

static void
set_alias (TdAssembler *a, TdList *table, unsigned kind, uint32_t foreign, uint32_t id,
           uint64_t hash)
{
  TdAlias *alias = entry (table, foreign, sizeof *alias);

  if (alias == NULL)
    return;
  *alias = (TdAlias){ .id = id, .hash = hash };
  td_tape_writer_alias (a->w, kind, foreign, id);
}

void
td__feed_string (TdAssembler *a, const TdRawHead *head)
{
  const TdRawString *raw = (const TdRawString *)head;
  char **text = entry (&a->texts, raw->id, sizeof *text);

  if (text == NULL)
    return;
  free (*text);
  *text = malloc (raw->length + 1u);
  if (*text == NULL)
    return;
  memcpy (*text, raw->bytes, raw->length);
  (*text)[raw->length] = '\0';
  set_alias (a, &a->strings, TD_TAPE_FRAME_STRING, raw->id,
             td_tape_writer_string_n (a->w, raw->bytes, raw->length),
             td_tape_hash_bytes (2, raw->bytes, raw->length));
}

void
td__feed_opdef (TdAssembler *a, const TdRawHead *head)
{
  const TdTapeOpdef *raw = &((const TdRawOpdef *)head)->def;
  TdTapeOpdef def = *raw;

  def.name = td__alias (&a->strings, raw->name).id;
  def.group = td__alias (&a->strings, raw->group).id;
  def.attributes = td__alias (&a->strings, raw->attributes).id;
  def.formula = td__alias (&a->strings, raw->formula).id;
  set_alias (a, &a->opdefs, TD_TAPE_FRAME_OPDEF, raw->id, td_tape_writer_opdef (a->w, &def),
             td__alias (&a->strings, raw->name).hash);
  uint32_t *name = entry (&a->op_names, raw->id, sizeof *name);
  if (name != NULL)
    *name = raw->name;
}

void
td__feed_site (TdAssembler *a, const TdRawHead *head)
{
  const TdTapeSite *raw = &((const TdRawSite *)head)->site;

  set_alias (a, &a->sites, TD_TAPE_FRAME_SITE, raw->id,
             td_tape_writer_site (a->w, td__assembler_text (a, raw->file), raw->line,
                                  td__assembler_text (a, raw->function)),
             td_tape_hash (td__alias (&a->strings, raw->file).hash, raw->line));
  TdPlace *place = entry (&a->places, raw->id, sizeof *place);
  if (place != NULL)
    *place = (TdPlace){ raw->file, raw->line };
}

const char *
td__assembler_op (const TdAssembler *a, uint32_t opdef)
{
  return opdef != 0 && opdef <= a->op_names.n
             ? td__assembler_text (a, ((const uint32_t *)a->op_names.items)[opdef - 1])
             : "";
}

const char *
td__assembler_place (const TdAssembler *a, uint32_t site, uint32_t *line)
{
  const TdPlace *place
      = site != 0 && site <= a->places.n ? &((const TdPlace *)a->places.items)[site - 1] : NULL;

  *line = place != NULL ? place->line : 0;
  return place != NULL ? td__assembler_text (a, place->file) : "";
}

void
td_assembler_describe (const TdAssembler *a, const TdRingNow *now, char *op, size_t op_size,
                       char *where, size_t where_size)
{
  uint32_t line;
  const char *name = td__assembler_op (a, now->opdef);
  const char *file = td__assembler_place (a, now->site, &line);

  snprintf (op, op_size, "%s", *name != '\0' ? name : "?");
  if (*file != '\0')
    snprintf (where, where_size, "%s:%u", file, line);
  else
    snprintf (where, where_size, "?");
}

void
td__feed_path (TdAssembler *a, const TdRawHead *head)
{
  const TdTapePath *raw = &((const TdRawPath *)head)->path;

  set_alias (a, &a->paths, TD_TAPE_FRAME_PATH, raw->id,
             td_tape_writer_path (a->w, td__assembler_text (a, raw->path),
                                  td__assembler_text (a, raw->link_class)),
             td__alias (&a->strings, raw->path).hash);
}

void
td__feed_info (TdAssembler *a, const TdRawHead *head)
{
  const TdRawInfo *raw = (const TdRawInfo *)head;

  td_tape_writer_info (a->w, td__assembler_text (a, raw->key),
                       td__assembler_text (a, raw->value));
}

/* Parts in order make the whole text; anything else is dropped. */
void
td__feed_source (TdAssembler *a, const TdRawHead *head)
{
  const TdRawSource *raw = (const TdRawSource *)head;

  if (raw->offset == 0)
    {
      free (a->source);
      a->source = raw->total <= MAX_TEXT ? malloc ((size_t)raw->total + 1) : NULL;
      a->source_total = raw->total;
      a->source_have = 0;
    }
  if (a->source == NULL || raw->offset != a->source_have
      || raw->length > a->source_total - a->source_have)
    return;
  memcpy (a->source + a->source_have, raw->bytes, raw->length);
  a->source_have += raw->length;
  if (a->source_have < a->source_total)
    return;
  td_tape_writer_source (a->w, td__assembler_text (a, raw->path), a->source,
                         (size_t)a->source_total);
  free (a->source);
  a->source = NULL;
}

void
td__feed_parameter (TdAssembler *a, const TdRawHead *head)
{
  const TdRawParameter *raw = (const TdRawParameter *)head;
  TdTapeParameter p = { .path = td__alias (&a->strings, raw->path).id,
                        .dtype = raw->dtype,
                        .ndim = raw->ndim,
                        .flags = raw->flags & TD_TAPE_PARAMETER_PERSISTENT };
  TdMeta meta;

  if (raw->ndim > TD_TAPE_MAX_NDIM)
    return;
  memcpy (p.dims, raw->dims, raw->ndim * sizeof *p.dims);
  td__meta_find (a, raw->variable, &meta);
  p.key = meta.key;
  td_tape_writer_parameter (a->w, &p);
}

static void
put_tensor (TdAssembler *a)
{
  const TdRawTensor *raw = &a->tensor;
  TdTapeTensorRecord record
      = { .iteration = a->state.iteration,
          .variable = raw->variable,
          .bytes = raw->total,
          .event = a->state.n_events ? a->state.n_events - 1 : TD_TAPE_NONE,
          .dtype = raw->dtype,
          .ndim = raw->ndim };
  TdPendingTensor *tensor = td__list_add (&a->tensors, sizeof *tensor);

  memcpy (record.dims, raw->dims, raw->ndim * sizeof *record.dims);
  if (tensor == NULL)
    return;
  *tensor = (TdPendingTensor){ .variable = raw->variable };
  if (td_tape_writer_tensor (a->w, &record, a->tensor_bytes, &tensor->ref))
    tensor->ref.flags = raw->head.flags & TD_RAW_BEFORE ? TD_TAPE_TENSOR_BEFORE : 0;
  else
    a->tensors.n--;
}

void
td__feed_tensor (TdAssembler *a, const TdRawHead *head)
{
  const TdRawTensor *raw = (const TdRawTensor *)head;

  if (!a->state.in_iteration)
    return;
  if (raw->offset == 0)
    {
      free (a->tensor_bytes);
      a->tensor = *raw;
      a->tensor_have = 0;
      a->tensor_bytes
          = raw->total <= a->values_bytes / 2 ? malloc ((size_t)raw->total + 1) : NULL;
    }
  if (a->tensor_bytes == NULL || raw->variable != a->tensor.variable
      || raw->offset != a->tensor_have || raw->length > a->tensor.total - a->tensor_have)
    return;
  memcpy (a->tensor_bytes + a->tensor_have, raw->bytes, raw->length);
  a->tensor_have += raw->length;
  if (a->tensor_have < a->tensor.total)
    return;
  put_tensor (a);
  free (a->tensor_bytes);
  a->tensor_bytes = NULL;
}
