/* Lists, id maps and the checks of raw records.
 * SPDX-License-Identifier: MIT */
#include "assembler-private.h"

#include "td-tape-oom-way.h"

#include <stdlib.h>
#include <string.h>

void *
td__list_add_n (TdList *list, size_t size, uint32_t n)
{
  void *at;

  if (n > UINT32_MAX / 2 - list->n)
    return NULL;
  if (list->n + n > list->room)
    {
      uint32_t room = list->room ? list->room : 32;
      void *items;

      while (room < list->n + n)
        room *= 2;
      items = realloc (list->items, room * size);
      if (items == NULL)
        return NULL;
      list->items = items;
      list->room = room;
    }
  at = (char *)list->items + list->n * size;
  list->n += n;
  return at;
}

void *
td__list_add (TdList *list, size_t size)
{
  return td__list_add_n (list, size, 1);
}

void
td__list_clear (TdList *list)
{
  free (list->items);
  *list = (TdList){ 0 };
}

static uint32_t
slot_of (const TdIdMap *map, uint64_t id)
{
  uint32_t i = (uint32_t)(id * 0x9e3779b97f4a7c15u >> 32) & (map->room - 1);

  while (map->values[i] != 0 && map->ids[i] != id)
    i = (i + 1) & (map->room - 1);
  return i;
}

uint32_t
td__id_map_get (const TdIdMap *map, uint64_t id)
{
  return map->room == 0 ? TD_TAPE_NONE : map->values[slot_of (map, id)] - 1;
}

static bool
make_room (TdIdMap *map)
{
  TdIdMap bigger
      = { .room = map->room ? map->room * 2 : 64, .n = map->n, .failed = map->failed };

  bigger.ids = malloc (bigger.room * sizeof *bigger.ids);
  bigger.values = calloc (bigger.room, sizeof *bigger.values);
  if (bigger.ids == NULL || bigger.values == NULL)
    {
      td__id_map_clear (&bigger);
      return false;
    }
  for (uint32_t i = 0; i < map->room; i++)
    if (map->values[i] != 0)
      {
        uint32_t to = slot_of (&bigger, map->ids[i]);

        bigger.ids[to] = map->ids[i];
        bigger.values[to] = map->values[i];
      }
  td__id_map_clear (map);
  *map = bigger;
  return true;
}

bool
td__id_map_set (TdIdMap *map, uint64_t id, uint32_t value)
{
  uint32_t i;

  if (map->n * 2 >= map->room && !make_room (map))
    {
      map->failed = true;
      return false;
    }
  i = slot_of (map, id);
  map->n += map->values[i] == 0;
  map->ids[i] = id;
  map->values[i] = value + 1;
  return true;
}

bool
td__id_map_remove (TdIdMap *map, uint64_t id)
{
  uint32_t hole = map->room ? slot_of (map, id) : 0;

  if (map->room == 0 || map->values[hole] == 0)
    return false;
  map->values[hole] = 0;
  map->n--;
  /* Move up what was displaced by it. */
  for (uint32_t i = (hole + 1) & (map->room - 1); map->values[i] != 0;
       i = (i + 1) & (map->room - 1))
    {
      uint32_t value = map->values[i], to;

      map->values[i] = 0;
      to = slot_of (map, map->ids[i]);
      map->ids[to] = map->ids[i];
      map->values[to] = value;
    }
  return true;
}

uint32_t
td__id_map_count (TdIdMap *map, uint64_t id)
{
  uint32_t before = td__id_map_get (map, id), count = before == TD_TAPE_NONE ? 0 : before;

  td__id_map_set (map, id, count + 1);
  return count;
}

void
td__id_map_clear (TdIdMap *map)
{
  free (map->ids);
  free (map->values);
  *map = (TdIdMap){ 0 };
}

TdAlias
td__alias (const TdList *table, uint32_t id)
{
  return id != 0 && id <= table->n ? ((const TdAlias *)table->items)[id - 1] : (TdAlias){ 0 };
}

/* Least size of each type; 0: any. */
static const uint16_t least[TD_RAW_N_TYPES] = {
  [TD_RAW_STRING] = sizeof (TdRawString),
  [TD_RAW_OPDEF] = sizeof (TdRawOpdef),
  [TD_RAW_SITE] = sizeof (TdRawSite),
  [TD_RAW_PATH] = sizeof (TdRawPath),
  [TD_RAW_INFO] = sizeof (TdRawInfo),
  [TD_RAW_SOURCE] = sizeof (TdRawSource),
  [TD_RAW_PARAMETER] = sizeof (TdRawParameter),
  [TD_RAW_ITERATION_BEGIN] = sizeof (TdRawIterationBegin),
  [TD_RAW_ITERATION_END] = sizeof (TdRawIterationEnd),
  [TD_RAW_OP] = sizeof (TdRawOp),
  [TD_RAW_LEAF] = sizeof (TdRawLeaf),
  [TD_RAW_SCOPE_OPEN] = sizeof (TdRawSpan),
  [TD_RAW_LINK_ENTER] = sizeof (TdRawSpan),
  [TD_RAW_MEMORY] = sizeof (TdRawMemory),
  [TD_RAW_GRAD] = sizeof (TdRawGrad),
  [TD_RAW_NAME] = sizeof (TdRawName),
  [TD_RAW_UNCHAIN] = sizeof (TdRawName),
  [TD_RAW_REPORT] = sizeof (TdRawReport),
  [TD_RAW_STATS] = sizeof (TdRawStats),
  [TD_RAW_TENSOR] = sizeof (TdRawTensor),
  [TD_RAW_HOST_READ] = sizeof (TdRawHostRead),
  [TD_RAW_NOTICE] = sizeof (TdRawNotice),
  [TD_RAW_STOPPED] = sizeof (TdRawStopped),
  [TD_RAW_EXIT] = sizeof (TdRawExit),
  [TD_RAW_ALLOC] = sizeof (TdRawAlloc),
  [TD_RAW_FREE] = sizeof (TdRawFree),
  [TD_RAW_STATIC_FUNCTION] = sizeof (TdRawFunction),
  [TD_RAW_SCHEDULE] = sizeof (TdRawSchedule),
  [TD_RAW_STATIC_EVENT] = sizeof (TdRawStaticEvent),
  [TD_RAW_STATIC] = sizeof (TdRawStatic),
  [TD_RAW_STATIC_RUN] = sizeof (TdRawStaticRun),
  [TD_RAW_STATIC_ENTRY] = sizeof (TdRawStaticEntry),
  [TD_RAW_HELD] = sizeof (TdRawHeld),
  [TD_RAW_ASYNC_STATS] = sizeof (TdRawAsyncStats),
  [TD_RAW_DEVICE_TIME] = sizeof (TdRawDeviceTime),
  [TD_RAW_ANSWERED] = sizeof (TdRawAnswered),
  [TD_RAW_DEVICE] = sizeof (TdRawDevice),
  [TD_RAW_OBJECT] = sizeof (TdRawObject),
  [TD_RAW_REFERENCES] = sizeof (TdRawReferences),
  [TD_RAW_POOL] = sizeof (TdRawPool),
  [TD_RAW_FAULT] = sizeof (TdRawFault),
  [TD_RAW_COPY] = sizeof (TdRawCopy),
  [TD_RAW_OOM] = sizeof (TdRawOom),
  [TD_RAW_CALL] = sizeof (TdRawCall),
};

static bool
op_valid (const TdRawOp *op)
{
  const char *at = (const char *)(op->ids + op->n_in), *end = (const char *)op + op->head.size;

  if ((size_t)op->n_in * sizeof *op->ids > op->head.size - sizeof *op)
    return false;
  for (unsigned i = 0; i < op->n_out; i++)
    {
      const TdRawOutput *out = (const TdRawOutput *)at;

      if ((size_t)(end - at) < sizeof *out || out->ndim > TD_TAPE_MAX_NDIM
          || (size_t)(end - at) - sizeof *out < out->ndim * sizeof *out->dims)
        return false;
      at += sizeof *out + out->ndim * sizeof *out->dims;
    }
  return true;
}

/* Bytes that follow the fixed part. */
static bool
tail_valid (const TdRawHead *head, size_t fixed, uint64_t length)
{
  return length <= head->size - fixed;
}

static bool
oom_valid (const TdRawOom *raw)
{
  return raw->oom.n_holders <= TD_TAPE_MAX_OOM_HOLDERS
         && raw->n_links <= raw->oom.n_holders * TD_TAPE_MAX_OOM_LINKS
         && tail_valid (&raw->head, sizeof *raw,
                        raw->oom.n_holders * sizeof (TdTapeOomHolder)
                            + raw->n_links * sizeof (TdTapeOomLink));
}

bool
td__raw_valid (const TdRawHead *head, size_t available)
{
  if (head->size < sizeof *head || head->size % 8 != 0 || head->size > available)
    return false;
  if (head->type >= TD_RAW_N_TYPES) /* of a newer engine */
    return true;
  if (head->size < least[head->type])
    return false;
  switch (head->type)
    {
    case TD_RAW_OP:
      return op_valid ((const TdRawOp *)head);
    case TD_RAW_LEAF:
      return ((const TdRawLeaf *)head)->var.ndim <= TD_TAPE_MAX_NDIM
             && tail_valid (head, sizeof (TdRawLeaf), ((const TdRawLeaf *)head)->var.ndim * 8u);
    case TD_RAW_STRING:
      return tail_valid (head, sizeof (TdRawString), ((const TdRawString *)head)->length);
    case TD_RAW_SOURCE:
      return tail_valid (head, sizeof (TdRawSource), ((const TdRawSource *)head)->length);
    case TD_RAW_SCHEDULE:
      return tail_valid (head, sizeof (TdRawSchedule), ((const TdRawSchedule *)head)->length);
    case TD_RAW_REFERENCES:
      return tail_valid (head, sizeof (TdRawReferences),
                         ((const TdRawReferences *)head)->n * (uint64_t)sizeof (uint32_t));
    case TD_RAW_OOM:
      return oom_valid ((const TdRawOom *)head);
    case TD_RAW_CALL:
      return tail_valid (head, sizeof (TdRawCall), ((const TdRawCall *)head)->length);
    case TD_RAW_TENSOR:
      return ((const TdRawTensor *)head)->ndim <= TD_TAPE_MAX_NDIM
             && tail_valid (head, sizeof (TdRawTensor), ((const TdRawTensor *)head)->length);
    default:
      return true;
    }
}
