/* Layouts: in which order an array's elements lie in memory.  Shapes, indices and all that the
 * host sees are logical; one place, before an operation's infer, brings operands to the layout
 * that the call is made in, by recorded operations.
 *
 * SPDX-License-Identifier: MIT */
#include "copies.h"

#include <stdlib.h>
#include <string.h>

TdLayout
td_layout (const TdVar *v)
{
  return td__var_usable (v, "td_layout", NULL) ? (TdLayout)v->node->layout : TD_ROW_MAJOR;
}

TdLayout
td__call_layout (const TdOpCall *call)
{
  uint8_t layout = TD_ROW_MAJOR;

  for (int i = 0; i < call->n_in; i++)
    layout |= call->in[i].layout;
  for (int i = 0; i < call->n_out; i++)
    layout |= call->out[i].layout;
  return (TdLayout)layout;
}

int
td__layout_axis (int axis, int ndim, TdLayout layout)
{
  return layout == TD_ROW_MAJOR || axis == 0 || ndim < 3 ? axis
         : axis == 1                                     ? ndim - 1
                                                         : axis - 1;
}

/* --- calls --- */

static bool
is_free (const TdNode *n)
{
  return td__layout_fits_both (&n->shape);
}

/* All operands have one shape, or are one number each. */
static bool
one_shape (const TdRun *r)
{
  const TdShape *widest = &r->in[0]->node->shape;

  for (int i = 1; i < r->call.n_in; i++)
    if (td__size (&r->in[i]->node->shape) > td__size (widest))
      widest = &r->in[i]->node->shape;
  for (int i = 0; i < r->call.n_in; i++)
    {
      const TdShape *shape = &r->in[i]->node->shape;

      if (!td_shape_equal (shape, widest)
          && (td__size (shape) != 1 || shape->ndim > widest->ndim))
        return false;
    }
  return true;
}

static bool
device_likes_it (const TdRun *r)
{
  return r->device->channels_last && td__engine.config.channels_last;
}

/* Do the operands say nothing, as they fit both? */
static bool
all_free (const TdRun *r)
{
  for (int i = 0; i < r->call.n_in; i++)
    if (!is_free (r->in[i]->node))
      return false;
  return r->in[0]->node->shape.ndim >= 3;
}

static bool
takes_it (const TdRun *r)
{
  const TdOpClass *cls = r->call.cls;

  if (cls->flags & TD_OP_IMAGES)
    return device_likes_it (r);
  if ((cls->flags & TD_OP_LAYOUTS) && cls->takes_layout != NULL)
    return r->call.layout == TD_CHANNELS_LAST
           && cls->takes_layout (r->call.attrs, &r->in[0]->node->shape);
  if (cls->flags & TD_OP_LAYOUTS)
    return r->call.layout == TD_CHANNELS_LAST || (device_likes_it (r) && all_free (r));
  return (cls->flags & TD_OP_ELEMENTWISE) && !(cls->flags & (TD_OP_RANDOM | TD_OP_VIEW))
         && one_shape (r);
}

/* What is written in place stays as it is; else a channels-last operand makes it a call of
 * that, where the class can be one. */
static TdLayout
wanted (const TdRun *r)
{
  for (int i = 0; i < r->call.n_in; i++)
    if (td__bit (r->call.cls->writes, i) && !is_free (r->in[i]->node))
      return (TdLayout)r->in[i]->node->layout;
  return takes_it (r) ? TD_CHANNELS_LAST : TD_ROW_MAJOR;
}

TdStatus
td__layout_begin (TdRun *r, TdVar **room)
{
  TdEngine *e = &td__engine;
  TdVar *const *given = r->in;
  const size_t start = e->n_scope_vars;
  const int n_in = r->call.n_in;
  TdStatus status = TD_OK;

  for (int i = 0; i < n_in; i++)
    room[i] = given[i];
  r->in = room;
  if (r->call.cls == &td__to_layout_class)
    {
      r->call.layout = TD_ROW_MAJOR; /* its infer says all there is to say */
      return TD_OK;
    }
  r->call.layout = (uint8_t)wanted (r);
  for (int i = 0; i < n_in && status == TD_OK; i++)
    {
      if (given[i]->node->layout == r->call.layout || is_free (given[i]->node))
        continue;
      for (int j = 0; j < i && room[i] == given[i]; j++)
        if (given[j] == given[i])
          room[i] = room[j];
      if (room[i] == given[i])
        room[i] = td__to_layout (given[i], (TdLayout)r->call.layout, r->site);
      if (td_poisoned (room[i]))
        {
          status = e->has_error ? e->error.status : TD_ERR_STATE;
          room[i] = given[i];
        }
      else
        td__var_ref (room[i], TD_HOLD_ENGINE);
    }
  td__scope_unwind (start);
  e->call_site = r->site;
  return status;
}

void
td__layout_end (const TdRun *r, TdVar *const *given)
{
  for (int i = 0; i < r->call.n_in; i++)
    if (r->in[i] != given[i])
      td__var_unref (r->in[i], TD_HOLD_ENGINE);
}

void
td__layout_outputs (TdRun *r)
{
  for (int i = 0; i < r->call.n_out; i++)
    {
      TdTensor *t = &r->call.out[i];

      t->layout = r->call.cls->takes_layout == NULL && !td__layout_fits_both (t->shape)
                      ? r->call.layout
                      : (uint8_t)TD_ROW_MAJOR;
    }
}

/* --- the host's view --- */

/* An array as (n, c, rest), element by element; logical: to is the logical order. */
static void
reorder (const TdShape *shape, size_t item, const char *from, char *to, bool logical)
{
  const size_t n = (size_t)shape->dim[0], c = (size_t)shape->dim[1];
  size_t rest = 1;

  for (int i = 2; i < shape->ndim; i++)
    rest *= (size_t)shape->dim[i];
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < c; k++)
      for (size_t p = 0; p < rest; p++)
        {
          const size_t place = ((i * c + k) * rest + p) * item;
          const size_t last = ((i * rest + p) * c + k) * item;

          memcpy (to + (logical ? place : last), from + (logical ? last : place), item);
        }
}

TdStatus
td__layout_download (const TdNode *n, const TdBuffer *b, void *host, TdCopyWhy why,
                     const TdSite *site)
{
  TdDevice *d = n->device;
  TdStatus status;
  void *memory;

  if (TD_LIKELY (n->layout == TD_ROW_MAJOR))
    return td__copy_out (d, host, b->data, b->bytes, why, n, site);
  memory = malloc (b->bytes + 1);
  if (memory == NULL)
    return td__fail (TD_ERR_MEMORY, "read", NULL, "no %zu bytes of host memory", b->bytes);
  status = td__copy_out (d, memory, b->data, b->bytes, why, n, site);
  if (status == TD_OK)
    reorder (&n->shape, td__dtype_sizes[n->dtype], memory, host, true);
  free (memory);
  return status;
}

TdStatus
td__layout_upload (const TdNode *n, const TdBuffer *b, const void *host, TdCopyWhy why,
                   const TdSite *site)
{
  TdDevice *d = n->device;
  TdStatus status;
  void *memory;

  if (TD_LIKELY (n->layout == TD_ROW_MAJOR))
    return td__copy_in (d, b->data, host, b->bytes, why, n, site);
  memory = malloc (b->bytes + 1);
  if (memory == NULL)
    return td__fail (TD_ERR_MEMORY, "write", NULL, "no %zu bytes of host memory", b->bytes);
  reorder (&n->shape, td__dtype_sizes[n->dtype], host, memory, false);
  status = td__copy_in (d, b->data, memory, b->bytes, why, n, site);
  free (memory);
  return status;
}
