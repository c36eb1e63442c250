/* Packing: a weight matrix that several steps of a list multiply by is packed once into the
 * layout of the matrix product's kernel, when the first of them runs.
 *
 * SPDX-License-Identifier: MIT */
#include "pass.h"
#include "host-memory.h"
#include "compute/cpu/packed.h"

#include <stdlib.h>
#include <string.h>

enum
{
  MIN_STEPS = 3
};

/* The matrix that a step multiplies by, if it lies outside the schedule and no step writes it.
 */
static bool
find_matrix (const TdPlan *p, uint32_t list, const TdStep *step, TdPack *out)
{
  const TdSchedule *s = p->s;
  const bool linear = step->kind == TD_STEP_OP && strcmp (step->cls->name, "linear") == 0;
  const TdNodeInfo *w;
  const TdValue *v;
  bool ta = false, tb = linear;

  if (step->kind != TD_STEP_OP || (!linear && strcmp (step->cls->name, "matmul") != 0)
      || td_op_class_find (step->cls->name) != step->cls)
    return false;
  for (int i = 0; i < step->cls->n_attrs; i++)
    {
      const TdAttr *a = &step->cls->attrs[i];
      const bool set = a->kind == TD_ATTR_BOOL && *((const bool *)step->attrs + a->offset);

      ta |= set && strcmp (a->name, "transa") == 0;
      tb |= set && strcmp (a->name, "transb") == 0;
    }
  w = &s->nodes[td__step_in (s, step, 1)];
  v = &s->values[w->value];
  if (ta || w->dtype != TD_F32 || w->shape.ndim != 2 || v->is_state || v->n_writers > 0
      || (v->kind != TD_VALUE_EXTERNAL && v->kind != TD_VALUE_CONSTANT))
    return false;
  *out = (TdPack){ .list = list,
                   .value = w->value,
                   .tb = tb,
                   .n = w->shape.dim[tb ? 0 : 1],
                   .k = w->shape.dim[tb ? 1 : 0] };
  out->bytes = td__packed_bytes (s->device, out->n, out->k);
  return out->bytes > 0;
}

static bool
is_same (const TdPack *a, const TdPack *b)
{
  return a->list == b->list && a->value == b->value && a->tb == b->tb && a->n == b->n;
}

static uint32_t
count_users (const TdPlan *p, const TdPack *pack)
{
  const TdSteps *list = td__plan_list (p, pack->list);
  uint32_t n = 0;
  TdPack other;

  for (uint32_t i = 0; i < list->n; i++)
    n += find_matrix (p, pack->list, &list->steps[i], &other) && is_same (pack, &other);
  return n;
}

static uint32_t
pack_of (TdPlan *p, const TdPack *pack)
{
  for (uint32_t k = 0; k < p->n_packs; k++)
    if (is_same (&p->packs[k], pack))
      return k;
  p->packs = td__xrealloc (p->packs, (p->n_packs + 1) * sizeof *p->packs);
  p->packs[p->n_packs] = *pack;
  if (count_users (p, pack) < MIN_STEPS)
    p->packs[p->n_packs].bytes = 0; /* too few steps use it: it is not packed */
  return p->n_packs++;
}

void
td__pass_pack (TdPlan *p)
{
  for (uint32_t list = 0; list <= p->s->n_backwards; list++)
    for (uint32_t i = 0; i < td__plan_list (p, list)->n; i++)
      {
        TdStep *step = &td__plan_list (p, list)->steps[i];
        TdPack pack;
        uint32_t k;

        if (!find_matrix (p, list, step, &pack))
          continue;
        k = pack_of (p, &pack);
        if (p->packs[k].bytes == 0)
          continue;
        step->pack = k + 1;
        td__plan_note (p, TD_PASS_PACK, list, step->trace_at, k);
        p->n_packed++;
      }
}

void
td__pass_pack_place (TdPlan *p)
{
  for (uint32_t k = 0; k < p->n_packs; k++)
    {
      const size_t bytes = (p->packs[k].bytes + 63) / 64 * 64;

      p->packs[k].offset = p->arena_bytes;
      p->arena_bytes += bytes;
      p->lower_bound += bytes;
    }
}
