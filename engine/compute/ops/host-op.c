/* Operations of the program's own, called through td_apply, on devices whose memory the host
 * cannot read: their forward is a loop of the host, unless the class says something else.
 *
 * TD_OP_HOST has them run all the same: operands are copied to the host, results and what is
 * written in place back to the device, each copy an event.  The graph joins the variables of
 * the device, so that backward, which is written in operations, stays there.
 *
 * SPDX-License-Identifier: MIT */
#include "ops.h"
#include "host-memory.h"

#include "compute/core/before-write.h"

#include <stdlib.h>

enum
{
  INLINE_OPERANDS = 8
};

static bool
is_engines (const TdOpClass *cls)
{
  for (int i = 0; i < td_op_class_count (); i++)
    if (td_op_class_at (i) == cls)
      return true;
  return false;
}

/* The device of a call whose forward must not see its operands' memory; NULL: there is none, or
 * the call is wrong in another way, which is found there. */
static TdDevice *
far_device (const TdOpClass *cls, TdVar *const *in, int n_in)
{
  TdDevice *d = td__engine.device;

  for (int i = 0; i < n_in; i++)
    {
      if (in[i] == NULL || in[i]->state != TD_VAR_LIVE || (i > 0 && in[i]->node->device != d))
        return NULL;
      d = in[i]->node->device;
    }
  if (TD_LIKELY (d == NULL || !d->computes || d->ops->provider == &td__provider_host))
    return NULL;
  return (cls->flags & (TD_OP_DEVICE | TD_OP_VIEW)) || is_engines (cls) ? NULL : d;
}

static TdVar **
vars_new (TdVar **room, int n)
{
  TdVar **vars = n <= INLINE_OPERANDS ? room : td__xcalloc ((size_t)n, sizeof *vars);

  return vars;
}

/* The graph's record of the call, over the variables of the device. */
static void
keep_graph (TdRun *r, TdVar *const *out, uint64_t id)
{
  TdNode *node_room[INLINE_OPERANDS], **nodes = node_room;
  TdBuffer *buffer_room[INLINE_OPERANDS], **buffers = buffer_room;
  const int n = r->call.n_out;

  if (n > INLINE_OPERANDS)
    {
      nodes = td__xcalloc ((size_t)n, sizeof *nodes);
      buffers = td__xcalloc ((size_t)n, sizeof *buffers);
    }
  for (int i = 0; i < n; i++)
    {
      nodes[i] = out[i]->node;
      buffers[i] = out[i]->buffer;
    }
  r->nodes = nodes;
  r->buffers = buffers;
  td__graph_keep (r, id);
  if (n > INLINE_OPERANDS)
    {
      free (nodes);
      free (buffers);
    }
}

/* Run on the host; copies that nobody asked for are no part of a graph. */
static TdStatus
run (TdRun *r, TdVar **here, TdVar **results, TdVar **out)
{
  TdEngine *e = &td__engine;
  const TdOpClass *cls = r->call.cls;
  TdDevice *host = td__device_at (0), *usual = e->device;
  const bool backprop = e->config.enable_backprop;
  TdStatus status;
  uint64_t id;

  for (int i = 0; i < r->call.n_in; i++)
    {
      here[i] = td_to_device_at (r->in[i], host, r->site);
      if (td_poisoned (here[i]))
        return e->has_error ? e->error.status : TD_ERR_STATE;
    }
  e->config.enable_backprop = false;
  e->device = host; /* of a call without inputs */
  status
      = td__apply_at (cls, r->call.attrs, here, r->call.n_in, results, r->call.n_out, r->site);
  id = e->next_id;
  e->device = usual;
  e->config.enable_backprop = backprop;
  for (int i = 0; i < r->call.n_in && status == TD_OK; i++)
    if (td__bit (cls->writes, i))
      {
        td__will_be_written (r->in[i]->buffer);
        status = td__transfer (here[i], r->in[i]->buffer, NULL, r->site);
        r->in[i]->node->layout = TD_ROW_MAJOR;
        td__buffer_written (r->in[i]->buffer, r->site);
      }
  for (int i = 0; i < r->call.n_out && status == TD_OK; i++)
    {
      out[i] = td_to_device_at (results[i], r->device, r->site);
      status = !td_poisoned (out[i]) ? TD_OK : e->has_error ? e->error.status : TD_ERR_STATE;
    }
  if (status == TD_OK && r->call.n_out > 0 && td__wants_graph (r))
    keep_graph (r, out, id);
  return status;
}

static TdStatus
run_on_host (TdRun *r, TdVar **out)
{
  TdEngine *e = &td__engine;
  TdVar *in_room[INLINE_OPERANDS], *out_room[INLINE_OPERANDS];
  TdVar **here = vars_new (in_room, r->call.n_in),
        **results = vars_new (out_room, r->call.n_out);
  TdScope *scope;
  TdStatus status;

  e->into = NULL;
  if (e->tracer != NULL)
    e->tracer->refuse (e->tracer, "an operation that the host computes", r->site);
  scope = td_scope_open_at ("on the host", r->site);
  status = run (r, here, results, out);
  for (int i = 0; i < r->call.n_out && status == TD_OK; i++)
    td_scope_yield (out[i]);
  td_scope_close (scope);
  if (here != in_room)
    free (here);
  if (results != out_room)
    free (results);
  return status;
}

/* What the program wrote has all that a call needs?  Without a backward it may be. */
static bool
class_ok (const TdOpClass *cls, const TdSite *site)
{
  const char *name = cls != NULL && cls->name != NULL ? cls->name : "td_apply";
  const char *lacks = cls == NULL                                          ? "it is NULL"
                      : cls->name == NULL                                  ? "it has no name"
                      : cls->infer == NULL                                 ? "it has no infer"
                      : cls->forward == NULL && !(cls->flags & TD_OP_VIEW) ? "it has no forward"
                                                                           : NULL;

  if (lacks != NULL)
    td__fail (TD_ERR_ARG, name, site, "the class of an operation cannot be called: %s", lacks);
  return lacks == NULL;
}

TdStatus
td_apply_at (const TdOpClass *cls, const void *attrs, TdVar *const *in, int n_in, TdVar **out,
             int n_out, const TdSite *site)
{
  TdDevice *d;
  TdRun r;
  TdStatus status;

  if (TD_UNLIKELY (!class_ok (cls, site)))
    {
      for (int i = 0; i < n_out && out != NULL; i++)
        out[i] = td__poison ();
      return td__error_status ();
    }
  d = in != NULL ? far_device (cls, in, n_in) : NULL;
  if (TD_UNLIKELY (cls->backward == NULL) && !is_engines (cls))
    td__engine.no_backward = cls;
  if (TD_LIKELY (d == NULL) || (out == NULL && n_out > 0)
      || pthread_self () != td__engine.thread)
    return td__apply_at (cls, attrs, in, n_in, out, n_out, site);
  r = (TdRun){ .call
               = { .cls = cls, .attrs = attrs, .device = d, .n_in = n_in, .n_out = n_out },
               .in = in,
               .site = site != NULL ? site : td__engine.site,
               .device = d };
  if (cls->flags & TD_OP_HOST)
    status = run_on_host (&r, out);
  else
    {
      td__engine.into = NULL;
      status = td__fail (TD_ERR_DEVICE, cls->name, r.site,
                         "its forward may read host memory, and its operands are on %s: give "
                         "its class TD_OP_HOST (they are copied to the host and back) or "
                         "TD_OP_DEVICE, or td_to_device them to cpu",
                         d->name);
    }
  for (int i = 0; i < n_out && status != TD_OK; i++)
    out[i] = td__poison ();
  return status;
}

TdStatus (td_apply) (const TdOpClass *cls, const void *attrs, TdVar *const *in, int n_in,
                     TdVar **out, int n_out)
{
  return td_apply_at (cls, attrs, in, n_in, out, n_out, NULL);
}
