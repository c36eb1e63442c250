/* Copies from one device to another: each is an event, with its place in the program and with
 * what the engine knows about its need.  The numbers go through host memory.
 *
 * SPDX-License-Identifier: MIT */
#include "copies.h"
#include "async-index.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef struct
{
  int from, to; /* devices, by number */
  bool again;   /* the same numbers of this array were copied there before */
  bool back;    /* the array came from there, and nobody has written to it */
} Attrs;

static const TdAttr attrs_table[] = {
  { "from", TD_ATTR_CHOICE, offsetof (Attrs, from), 0, 0, NULL, td__device_names },
  { "to", TD_ATTR_CHOICE, offsetof (Attrs, to), 0, 0, NULL, td__device_names },
  { "again", TD_ATTR_BOOL, offsetof (Attrs, again), 0, 0, NULL, NULL },
  { "back", TD_ATTR_BOOL, offsetof (Attrs, back), 0, 0, NULL, NULL },
};
/* Never applied: its inputs and outputs lie on two devices. */
static const TdOpClass to_device_class = { .name = "to_device",
                                           .label = "ToDevice",
                                           .group = "array",
                                           .formula = "x on another device",
                                           .n_in_min = 1,
                                           .n_in_max = 1,
                                           .flags = TD_OP_NO_GRAD,
                                           .attrs_size = sizeof (Attrs),
                                           .attrs = attrs_table,
                                           .n_attrs = TD_ARRAY_LENGTH (attrs_table) };

static TdStatus
carry (const TdNode *n, const TdBuffer *from, const TdBuffer *to, const TdSite *site)
{
  TdDevice *a = from->device, *b = to->device;
  size_t bytes = to->bytes;
  TdStatus status;
  void *host;

  if (!b->computes)
    return TD_OK;
  if (!a->computes) /* there are no numbers */
    return b->ops->zero (b, to->data, bytes);
  host = malloc (bytes > 0 ? bytes : 1);
  if (host == NULL)
    return td__fail (TD_ERR_MEMORY, "td_to_device", site,
                     "no %zu bytes of host memory for a copy from %s to %s", bytes, a->name,
                     b->name);
  status = td__layout_download (n, from, host, TD_COPY_OP, site);
  if (status == TD_OK)
    status = td__copy_in_new (to, host, TD_COPY_OP, n, site);
  free (host);
  if (status != TD_OK && !td__engine.has_error)
    td__fail (status, "td_to_device", site, "%zu bytes could not be copied from %s to %s",
              bytes, a->name, b->name);
  return status == TD_OK ? td__index_raise () : status;
}

/* What is known about the numbers before they are copied once more. */
static Attrs
look_at (const TdBuffer *from, const TdBuffer *to)
{
  Attrs a;

  memset (&a, 0, sizeof a); /* its bytes are hashed */
  a.from = td__device_number (from->device);
  a.to = td__device_number (to->device);
  a.again = from->copied_version == from->version && (from->copied_to >> a.to & 1) != 0;
  a.back = from->version == 0 && from->origin == a.to + 1;
  return a;
}

static void
remember (TdBuffer *from, TdBuffer *to, const Attrs *a)
{
  if (from->copied_version != from->version)
    from->copied_to = 0;
  from->copied_version = from->version;
  from->copied_to |= (uint16_t)(1u << a->to);
  to->origin = (uint8_t)(a->from + 1);
}

TdStatus
td__transfer (TdVar *v, TdBuffer *to, TdVar *copy, const TdSite *site)
{
  TdEngine *e = &td__engine;
  TdObserver *o = e->observer;
  TdPhase phase = e->phase == TD_PHASE_UPDATE ? TD_PHASE_FORWARD : e->phase;
  Attrs attrs = look_at (v->buffer, to);
  TdNode *in = v->node, *out = copy != NULL ? copy->node : NULL;
  TdStatus status;

  site = site != NULL ? site : e->site;
  TdEvent event = { .id = ++e->next_id,
                    .cls = &to_device_class,
                    .attrs = &attrs,
                    .site = site,
                    .path = e->path,
                    .phase = phase,
                    .twin_id = e->twin_id,
                    .order = phase == TD_PHASE_FORWARD ? 0 : e->order++,
                    .n_in = 1,
                    .n_out = out != NULL,
                    .in = &in,
                    .out = &out,
                    .out_buffers = &to };

  if (TD_UNLIKELY (e->tracer != NULL))
    e->tracer->refuse (e->tracer, "a copy to another device", site);
  if (o != NULL)
    o->before_op (o, &event);
  status = carry (in, v->buffer, to, site);
  if (copy == NULL)
    in->layout = TD_ROW_MAJOR;
  if (status == TD_OK)
    remember (v->buffer, to, &attrs);
  if (o != NULL)
    {
      if (status != TD_OK)
        event.flags |= TD_EVENT_FAILED;
      o->after_op (o, &event);
    }
  return status;
}

TdVar *
td_to_device_at (TdVar *v, TdDevice *device, const TdSite *site)
{
  TdVar *copy;

  if (v != NULL && v->state == TD_VAR_POISON)
    return v;
  if (!td__var_usable (v, "td_to_device", site))
    return td__poison ();
  if (device == NULL)
    {
      td__fail (TD_ERR_ARG, "td_to_device", site, "the device is NULL");
      return td__poison ();
    }
  if (v->node->device == device)
    return v;
  copy = td__var_leaf ((TdDtype)v->node->dtype, &v->node->shape, device,
                       (TdMemCategory)v->buffer->category, site);
  if (copy == NULL)
    return td__poison ();
  td__scope_add (copy);
  copy->node->requires_grad = v->node->requires_grad && v->node->creator == NULL;
  copy->scaled_by = v->scaled_by;
  return td__transfer (v, copy->buffer, copy, site) == TD_OK ? copy : td__poison ();
}

TdVar *(td_to_device)(TdVar *v, TdDevice *device)
{
  return td_to_device_at (v, device, NULL);
}
