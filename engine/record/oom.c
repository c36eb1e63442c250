/* Memory that ran out, into the ring: what was asked for, how full the device was, who holds
 * the most.
 *
 * SPDX-License-Identifier: MIT */
#include "compute/core/memory-chain.h"
#include "td-tape-oom-way.h"
#include "holdings.h"

#include <string.h>

static void
put_dims (int64_t *to, uint8_t *ndim, const TdShape *shape)
{
  *ndim = shape != NULL && shape->ndim <= TD_TAPE_MAX_NDIM ? (uint8_t)shape->ndim : UINT8_MAX;
  for (int d = 0; *ndim != UINT8_MAX && d < shape->ndim; d++)
    to[d] = shape->dim[d];
}

static TdTapeOomHolder
holder (TdRecorder *r, const TdMemHolder *h)
{
  TdTapeOomHolder to = { .bytes = h->bytes, .largest_bytes = h->largest, .n = h->n };
  const bool after = td__holdings_iteration_of (r->holdings, h->oldest, &to.oldest);

  put_dims (to.dims, &to.ndim, &h->node->shape);
  to.dtype = h->node->dtype;
  to.name = td__recorder_string (r, h->name);
  to.path = td__recorder_path (r, h->path);
  to.op = td__recorder_string (r, h->cls != NULL ? h->cls->name : NULL);
  to.site = td__recorder_site (r, h->site);
  to.category = td__tape_category[h->category];
  to.holder = TD_TAPE_HOLDER_RETAINED;
  if (h->var != NULL)
    {
      to.holder = td__holdings_holder (h->var);
      to.holder_site = td__recorder_site (r, h->var->retained_site);
    }
  to.flags = (h->saved ? TD_TAPE_OOM_HOLDER_SAVED : 0u)
             | (h->var == NULL ? TD_TAPE_OOM_HOLDER_GRAPH : 0u)
             | (!after                                             ? TD_TAPE_OOM_HOLDER_BEFORE
                : r->in_iteration && to.oldest < r->now->iteration ? TD_TAPE_OOM_HOLDER_EARLIER
                                                                   : 0u);
  return to;
}

static void
fill (TdRecorder *r, TdTapeOom *to, const TdMemReport *m)
{
  const TdMemInfo *info = m->info;

  *to = (TdTapeOom){
    .asked_bytes = m->bytes,
    .limit_bytes = m->limit,
    .device_bytes = info->device_bytes,
    .outside_bytes = info->outside_bytes,
    .reserved_bytes = info->reserved_bytes,
    .live_bytes = info->live_bytes,
    .pending_bytes = info->pending_bytes,
    .largest_free_bytes = info->largest_free_bytes,
    .trimmed_bytes = m->tried.trimmed,
    .trimmed_others_bytes = m->tried.trimmed_others,
    .waited_bytes = m->tried.waited,
    .refused_bytes = m->tried.refused,
    .device = m->device->number,
    .device_name = td__recorder_string (r, m->device->name),
    .op = td__recorder_string (r, m->op),
    .site = td__recorder_site (r, m->site),
    .path = td__recorder_path (r, td__engine.path),
    .n_groups = (uint32_t)m->n_holders,
    .phase = (uint8_t)td__engine.phase,
    .dtype = (uint8_t)m->dtype,
    .flags = m->tried.limited ? TD_TAPE_OOM_LIMITED : 0,
  };
  put_dims (to->dims, &to->ndim, m->shape);
  for (int i = 0; i < TD_MEM_N_POOLS; i++)
    to->hole_bytes += info->pool_split_bytes[i];
  for (int i = 0; i < TD_MEM_N_CATEGORIES; i++)
    to->category_bytes[td__tape_category[i]] += info->category_bytes[i];
}

/* The way to the arrays of holder k.  Returns how many links it has. */
static uint32_t
put_way (TdRecorder *r, const TdMemReport *m, const TdMemHolder *h, uint32_t k,
         TdTapeOomLink *to)
{
  TdMemLink links[TD_MEM_LINKS];
  uint32_t left_out, n;

  if (m->chains == NULL)
    return 0;
  n = td__mem_chain (m->chains, h, links, &left_out);
  for (uint32_t i = 0; i < n; i++)
    {
      const TdVar *v = links[i].var;
      const TdOp *op = links[i].op;

      to[i] = (TdTapeOomLink){ .holder_index = k, .kind = TD_TAPE_OOM_LINK_OPERATION };
      if (left_out > 0 && i == TD_MEM_LINKS / 2)
        to[i].left_out = (uint16_t)(left_out < UINT16_MAX ? left_out : UINT16_MAX);
      if (op != NULL)
        {
          to[i].op = td__recorder_string (r, op->cls->name);
          to[i].site = td__recorder_site (r, op->site);
          to[i].path = td__recorder_path (r, op->path);
          continue;
        }
      to[i].kind = i == 0 ? TD_TAPE_OOM_LINK_HANDLE : TD_TAPE_OOM_LINK_GRADIENT;
      to[i].holder = td__holdings_holder (v);
      to[i].name = td__recorder_string (r, v->name);
      to[i].path = td__recorder_path (r, v->node->path);
      to[i].site = td__recorder_site (r, v->retained_site != NULL ? v->retained_site : v->site);
    }
  return n;
}

void
td__recorder_out_of_memory (TdObserver *o, const TdMemReport *m)
{
  TdRecorder *r = (TdRecorder *)(void *)o;
  TdTapeOomHolder holders[TD_TAPE_MAX_OOM_HOLDERS];
  TdTapeOomLink links[TD_TAPE_MAX_OOM_HOLDERS * TD_TAPE_MAX_OOM_LINKS];
  TdRawOom *raw;
  TdTapeOom oom;
  uint32_t n = 0, n_links = 0, bytes;

  if (!r->writes || r->n_ooms == TD_TAPE_MAX_OOMS)
    return;
  r->n_ooms++;
  td__recorder_flush_memory (r);
  fill (r, &oom, m);
  for (size_t i = 0; i < m->n_holders; i++)
    if (m->holders[i].bytes > 0 && n < TD_TAPE_MAX_OOM_HOLDERS)
      {
        n_links += put_way (r, m, &m->holders[i], n, links + n_links);
        holders[n++] = holder (r, &m->holders[i]);
      }
    else
      oom.unnamed_bytes += m->holders[i].bytes;
  oom.n_holders = n;
  bytes = TD_RAW_PADDED (sizeof *raw + n * sizeof *holders + n_links * sizeof *links);
  raw = td_ring_reserve (r->ring, bytes);
  raw->head = (TdRawHead){ bytes, TD_RAW_OOM, 0 };
  raw->ticks = td_ring_ticks ();
  raw->oom = oom;
  raw->n_links = n_links;
  raw->reserved = 0;
  memcpy (raw->holders, holders, n * sizeof *holders);
  memcpy (raw->holders + n, links, n_links * sizeof *links);
  td_ring_publish (r->ring, bytes);
}
