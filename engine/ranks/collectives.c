/* bcast, allreduce, allgather and alltoall: operations, whose gradients are collectives too, of
 * a loss that is the sum of all ranks' losses.
 *
 * The meeting comes before the operation, so that what is wrong on one rank keeps no other
 * waiting inside a kernel.  There ranks also hear whether x wants a gradient anywhere: then all
 * keep the graph (TD_OP_CAPTURES), because all must come to the backward; and whether x lies on
 * every rank's device, from where it goes without the host.
 *
 * SPDX-License-Identifier: MIT */
#include "by-hand.h"
#include "teams.h"

#include <stdlib.h>
#include <string.h>

typedef struct
{
  TdComm *comm;
  int rank, size, root;
} CommAttrs;

static const TdAttr comm_attrs[] = {
  { "rank", TD_ATTR_INT, offsetof (CommAttrs, rank), 0, 0, NULL },
  { "size", TD_ATTR_INT, offsetof (CommAttrs, size), 0, 0, NULL },
  { "root", TD_ATTR_INT, offsetof (CommAttrs, root), 0, 0, NULL },
};

static TdComm *
comm_of (const TdOpCall *call)
{
  return ((const CommAttrs *)call->attrs)->comm;
}

static size_t
bytes_of (const TdTensor *t)
{
  return (size_t)t->size * td__dtype_sizes[t->dtype];
}

static TdStatus
infer_same (TdOpCall *call)
{
  return td_op_out (call, 0, call->in[0].dtype, call->in[0].shape);
}

/* The end of a call of the transport. */
static TdStatus
sent (TdOpCall *call, bool ok, const char *why)
{
  comm_of (call)->brought = true;
  return ok ? TD_OK : td__comm_fail (comm_of (call), why, td__engine.call_site);
}

/* --- the forwards --- */

static TdStatus
bcast_forward (TdOpCall *call)
{
  const CommAttrs *a = call->attrs;
  char why[TD_WHY_WIRE] = "";

  if (a->rank == a->root && call->in[0].size > 0)
    memcpy (call->out[0].data, call->in[0].data, bytes_of (&call->in[0]));
  return sent (call,
               td__wait_bcast (a->comm, call->out[0].data, bytes_of (&call->out[0]), a->root,
                               why, td__engine.call_site),
               why);
}

/* What each dtype is summed in; half precision in float. */
static const TdWireKind wire_kinds[TD__N_DTYPES]
    = { [TD_F32] = TD_WIRE_F32,  [TD_F64] = TD_WIRE_F64, [TD_F16] = TD_WIRE_F32,
        [TD_BF16] = TD_WIRE_F32, [TD_I32] = TD_WIRE_I32, [TD_I64] = TD_WIRE_I64,
        [TD_U8] = TD_WIRE_U8 };

static TdStatus
sum (TdOpCall *call, const TdTensor *t)
{
  TdComm *comm = comm_of (call);
  char why[TD_WHY_WIRE] = "";

  return sent (
      call,
      td__wait_sum (comm, t->data, t->size, wire_kinds[t->dtype], why, td__engine.call_site),
      why);
}

static TdStatus
allreduce_forward (TdOpCall *call)
{
  const TdTensor *x = &call->in[0];
  const TdDeviceOps *ops = call->device->ops;
  TdTensor y = call->out[0], wide = y;
  TdStatus status;

  if (x->dtype != TD_F16 && x->dtype != TD_BF16)
    {
      if (x->size > 0)
        memcpy (y.data, x->data, bytes_of (x));
      return sum (call, &y);
    }
  wide.dtype = TD_F32;
  wide.data = td_op_workspace (call, (size_t)x->size * sizeof (float));
  if (wide.data == NULL)
    return TD_ERR_MEMORY;
  status = ops->cast (call->device, x, &wide);
  if (status == TD_OK)
    status = sum (call, &wide);
  return status == TD_OK ? ops->cast (call->device, &wide, &y) : status;
}

static TdStatus
allgather_infer (TdOpCall *call)
{
  const TdShape *x = call->in[0].shape;
  TdShape y = { .ndim = x->ndim + 1, .dim = { ((const CommAttrs *)call->attrs)->size } };

  for (int i = 0; i < x->ndim && i + 1 < TD_MAX_DIMS; i++)
    y.dim[i + 1] = x->dim[i];
  return td_op_out (call, 0, call->in[0].dtype, &y);
}

static TdStatus
allgather_forward (TdOpCall *call)
{
  TdComm *comm = comm_of (call);
  char why[TD_WHY_WIRE] = "";

  return sent (call,
               td__wait_gather (comm, call->in[0].data, call->out[0].data,
                                bytes_of (&call->in[0]), why, td__engine.call_site),
               why);
}

static TdStatus
alltoall_forward (TdOpCall *call)
{
  TdComm *comm = comm_of (call);
  char why[TD_WHY_WIRE] = "";

  return sent (call,
               td__wait_exchange (comm, call->in[0].data, call->out[0].data,
                                  bytes_of (&call->in[0]) / (size_t)comm->size, why,
                                  td__engine.call_site),
               why);
}

/* --- the same on the devices of all ranks --- */

static TdStatus
bcast_far (TdOpCall *call)
{
  return td__far_bcast (comm_of (call), &call->in[0], &call->out[0],
                        ((const CommAttrs *)call->attrs)->root);
}

/* As on the host: half precision is summed in float, and rounded once. */
static TdStatus
allreduce_far (TdOpCall *call)
{
  const TdTensor *x = &call->in[0];
  const TdDeviceOps *ops = call->device->ops;
  TdTensor wide = *x;
  TdStatus status;

  if (x->dtype != TD_F16 && x->dtype != TD_BF16)
    return td__far_sum (comm_of (call), x, &call->out[0]);
  wide.dtype = TD_F32;
  wide.data = td_op_workspace (call, (size_t)x->size * sizeof (float));
  if (wide.data == NULL)
    return TD_ERR_MEMORY;
  status = ops->cast (call->device, x, &wide);
  if (status == TD_OK)
    status = td__far_sum (comm_of (call), &wide, &wide);
  return status == TD_OK ? ops->cast (call->device, &wide, &call->out[0]) : status;
}

static TdStatus
allgather_far (TdOpCall *call)
{
  return td__far_gather (comm_of (call), &call->in[0], &call->out[0]);
}

static TdStatus
alltoall_far (TdOpCall *call)
{
  return td__far_exchange (comm_of (call), &call->in[0], &call->out[0]);
}

/* --- the backwards --- */

/* The root gets the sum.  Others' x has no influence: zeros, made of the sum so that second
 * gradients find their way through all ranks. */
static TdStatus
bcast_backward (TdBackward *b)
{
  const CommAttrs *a = b->attrs;
  TdVar *g = td_comm_allreduce (a->comm, b->gy[0]);

  if (td_backward_needs (b, 0))
    b->gx[0] = a->rank == a->root ? g : td_mul_scalar (g, 0);
  return td_poisoned (g) ? td__error_status () : TD_OK;
}

static TdStatus
allreduce_backward (TdBackward *b)
{
  TdVar *g = td_comm_allreduce (((const CommAttrs *)b->attrs)->comm, b->gy[0]);

  if (td_backward_needs (b, 0))
    b->gx[0] = g;
  return td_poisoned (g) ? td__error_status () : TD_OK;
}

/* Row r of gy is what rank r's x got here: it goes there. */
static TdStatus
allgather_backward (TdBackward *b)
{
  static const int first[] = { 0 };
  TdVar *g = td_comm_alltoall (((const CommAttrs *)b->attrs)->comm, b->gy[0]);

  if (td_backward_needs (b, 0))
    b->gx[0] = td_sum_axes (g, first, 1, false);
  return td_poisoned (g) ? td__error_status () : TD_OK;
}

static TdStatus
alltoall_backward (TdBackward *b)
{
  TdVar *g = td_comm_alltoall (((const CommAttrs *)b->attrs)->comm, b->gy[0]);

  if (td_backward_needs (b, 0))
    b->gx[0] = g;
  return td_poisoned (g) ? td__error_status () : TD_OK;
}

/* --- the classes: [1], [3] where some rank's x wants a gradient; [2], [3] on devices --- */

#define COLLECTIVE(name_, label_, formula_, infer_, where, more)                               \
  {                                                                                            \
    .name = "comm_" #name_, .label = label_, .group = "ranks", .formula = formula_,            \
    .n_in_min = 1, .n_in_max = 1, .n_out = 1, .flags = more, .attrs_size = sizeof (CommAttrs), \
    .attrs = comm_attrs, .n_attrs = TD_ARRAY_LENGTH (comm_attrs), .infer = infer_,             \
    .forward = name_##_##where, .backward = name_##_backward,                                  \
  }
#define ALL(name, ...)                                                                         \
  {                                                                                            \
    COLLECTIVE (name, __VA_ARGS__, forward, TD_OP_HOST),                                       \
        COLLECTIVE (name, __VA_ARGS__, forward, TD_OP_HOST | TD_OP_CAPTURES),                  \
        COLLECTIVE (name, __VA_ARGS__, far, TD_OP_DEVICE),                                     \
        COLLECTIVE (name, __VA_ARGS__, far, TD_OP_DEVICE | TD_OP_CAPTURES)                     \
  }

// clang-format off
static const TdOpClass bcast_class[4] = ALL (bcast, "Bcast", "x of the root", infer_same);
static const TdOpClass allreduce_class[4] = ALL (allreduce, "AllReduce", "sum of all ranks' x", infer_same);
static const TdOpClass allgather_class[4] = ALL (allgather, "AllGather", "all ranks' x, in order", allgather_infer);
static const TdOpClass alltoall_class[4] = ALL (alltoall, "AllToAll", "row i of the result: from rank i", infer_same);
// clang-format on

/* --- the functions --- */

/* What is wrong with x, before it is sent anywhere: the others hear of it. */
typedef TdStatus (*Check) (const TdComm *comm, const TdVar *x, int root, const TdSite *site);

static TdVar *
collective (TdMeetKind kind, const TdOpClass *classes, Check check, TdComm *comm, TdVar *x,
            int root, const TdSite *site)
{
  TdTracer *tracer = td__engine.tracer;
  CommAttrs attrs;
  TdVar *y = NULL;
  TdMeet mine;
  int which;

  if (!td__comm_usable (comm, td__meet_name (kind), site))
    return td__poison ();
  if (tracer != NULL)
    tracer->refuse (tracer, "what is for all ranks", site);
  mine = td__meet_of (kind, x, site);
  if (x == NULL)
    td__var_usable (x, td__meet_name (kind), site);
  mine.root = root;
  mine.flags |= td__far_has (comm, x) ? TD_MEET_FAR : 0;
  if (x == NULL
      || (!(mine.flags & TD_MEET_FAILED) && check != NULL
          && check (comm, x, root, site) != TD_OK))
    td__meet_fail (&mine);
  if (td__meet (comm, &mine, site) != TD_OK)
    return td__poison ();
  memset (&attrs, 0, sizeof attrs); /* its bytes are hashed */
  attrs = (CommAttrs){ comm, comm->rank, comm->size, root };
  comm->brought = !x->node->device->computes; /* a plan, or the same plan on all */
  which = td__meet_any (comm, TD_MEET_WANTS) + 2 * td__meet_all (comm, TD_MEET_FAR);
  if (td_apply_at (&classes[which], &attrs, &x, 1, &y, 1, site) != TD_OK && !comm->brought)
    td__comm_abort (comm);
  return y;
}

static TdStatus
check_root (const TdComm *comm, const TdVar *x, int root, const TdSite *site)
{
  (void)x;
  return root >= 0 && root < comm->size
             ? TD_OK
             : td__fail (TD_ERR_ARG, "td_comm_bcast", site,
                         "a root of 0 to %d expected, got %d", comm->size - 1, root);
}

static TdStatus
check_number (const TdComm *comm, const TdVar *x, int root, const TdSite *site)
{
  (void)comm, (void)root;
  return x->node->dtype != TD_BOOL
             ? TD_OK
             : td__fail (TD_ERR_DTYPE, "td_comm_allreduce", site, "numbers expected, got bool");
}

static TdStatus
check_room (const TdComm *comm, const TdVar *x, int root, const TdSite *site)
{
  char text[200];

  (void)comm, (void)root;
  return x->node->shape.ndim < TD_MAX_DIMS
             ? TD_OK
             : td__fail (TD_ERR_SHAPE, "td_comm_allgather", site,
                         "at most %d axes expected, one is added: x %s", TD_MAX_DIMS - 1,
                         td_shape_text (&x->node->shape, text, sizeof text));
}

static TdStatus
check_rows (const TdComm *comm, const TdVar *x, int root, const TdSite *site)
{
  const TdShape *s = &x->node->shape;
  char text[200];

  (void)root;
  return s->ndim > 0 && s->dim[0] == comm->size
             ? TD_OK
             : td__fail (TD_ERR_SHAPE, "td_comm_alltoall", site,
                         "a row for each of %d ranks expected: x %s", comm->size,
                         td_shape_text (s, text, sizeof text));
}

TdVar *
td_comm_bcast_at (TdComm *comm, TdVar *x, int root, const TdSite *site)
{
  return collective (TD_MEET_BCAST, bcast_class, check_root, comm, x, root, site);
}

TdVar *
td_comm_bcast (TdComm *comm, TdVar *x, int root)
{
  return td_comm_bcast_at (comm, x, root, NULL);
}

/* One by which a program may average gradients itself. */
static TdVar *
watched (TdMeetKind kind, const TdOpClass *classes, Check check, TdComm *comm, TdVar *x,
         const TdSite *site)
{
  TdVar *y;

  if (comm != NULL && x != NULL && !td_poisoned (x))
    td__by_hand_brings (comm);
  y = collective (kind, classes, check, comm, x, -1, site);
  if (!td_poisoned (y) && !y->node->requires_grad)
    td__by_hand_summed (comm, x, y);
  return y;
}

TdVar *
td_comm_allreduce_at (TdComm *comm, TdVar *x, const TdSite *site)
{
  return watched (TD_MEET_ALLREDUCE, allreduce_class, check_number, comm, x, site);
}

TdVar *
td_comm_allreduce (TdComm *comm, TdVar *x)
{
  return td_comm_allreduce_at (comm, x, NULL);
}

TdVar *
td_comm_allgather_at (TdComm *comm, TdVar *x, const TdSite *site)
{
  return watched (TD_MEET_ALLGATHER, allgather_class, check_room, comm, x, site);
}

TdVar *
td_comm_allgather (TdComm *comm, TdVar *x)
{
  return td_comm_allgather_at (comm, x, NULL);
}

TdVar *
td_comm_alltoall_at (TdComm *comm, TdVar *x, const TdSite *site)
{
  return collective (TD_MEET_ALLTOALL, alltoall_class, check_rows, comm, x, -1, site);
}

TdVar *
td_comm_alltoall (TdComm *comm, TdVar *x)
{
  return td_comm_alltoall_at (comm, x, NULL);
}

TdStatus
td_comm_barrier_at (TdComm *comm, const TdSite *site)
{
  TdMeet mine;

  if (!td__comm_usable (comm, "td_comm_barrier", site))
    return td__error_status ();
  mine = td__meet_of (TD_MEET_BARRIER, NULL, site);
  return td__meet (comm, &mine, site); /* that is all that it is */
}

TdStatus
td_comm_barrier (TdComm *comm)
{
  return td_comm_barrier_at (comm, NULL);
}
