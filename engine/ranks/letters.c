/* td_send, td_recv and td_pseudo_connect: one array from one rank to another, as operations.
 * The gradient of what was received goes back to who sent it.
 *
 * Nobody meets for this.  A letter, of the form of a meeting's TdMeet, goes in front of every
 * array: what is coming, that nothing can come and why, or that the sender has ended.
 *
 * SPDX-License-Identifier: MIT */
#include "comm.h"
#include "host-memory.h"

#include <stdlib.h>
#include <string.h>

typedef struct
{
  TdComm *comm;
  int rank, dtype;
  TdShape shape;
} LetterAttrs;

static const TdAttr letter_attrs[] = {
  { "rank", TD_ATTR_INT, offsetof (LetterAttrs, rank), 0, 0, NULL },
  { "dtype", TD_ATTR_DTYPE, offsetof (LetterAttrs, dtype), 0, 0, NULL },
  { "shape", TD_ATTR_SHAPE, offsetof (LetterAttrs, shape), 0, 0, NULL },
};

static size_t
bytes_of (const TdTensor *t)
{
  return (size_t)t->size * td__dtype_sizes[t->dtype];
}

static TdStatus
send_infer (TdOpCall *call)
{
  static const TdShape scalar = { 0, { 0 } };

  return td_op_out (call, 0, TD_F32, &scalar);
}

static TdStatus
send_forward (TdOpCall *call)
{
  const LetterAttrs *a = call->attrs;
  const float delegate = 0;
  char why[TD_WHY_WIRE] = "";

  memcpy (call->out[0].data, &delegate, sizeof delegate);
  if (td__wait_send (a->comm, call->in[0].data, bytes_of (&call->in[0]), a->rank, why,
                     td__engine.call_site))
    return TD_OK;
  return td__comm_fail (a->comm, why, td__engine.call_site);
}

static TdStatus
recv_infer (TdOpCall *call)
{
  const LetterAttrs *a = call->attrs;

  return td_op_out (call, 0, (TdDtype)a->dtype, &a->shape);
}

static TdStatus
recv_forward (TdOpCall *call)
{
  const LetterAttrs *a = call->attrs;
  char why[TD_WHY_WIRE] = "";

  return td__wait_receive (a->comm, call->out[0].data, bytes_of (&call->out[0]), a->rank, why,
                           td__engine.call_site)
             ? TD_OK
             : td__comm_fail (a->comm, why, td__engine.call_site);
}

/* The receiver's gradient of x comes from there. */
static TdStatus
send_backward (TdBackward *b)
{
  const LetterAttrs *a = b->attrs;
  TdVar *g = td_recv (a->comm, a->rank, NULL);

  if (td_poisoned (g))
    return td__error_status ();
  if (!td__same_shape (&g->node->shape, td_backward_in_shape (b, 0)))
    return td__fail (TD_ERR_SHAPE, "td_send", NULL,
                     "rank %d of %d: what rank %d sent is no gradient of what it received",
                     a->comm->rank, a->comm->size, a->rank);
  b->gx[0] = g;
  return TD_OK;
}

static TdStatus
recv_backward (TdBackward *b)
{
  const LetterAttrs *a = b->attrs;
  TdVar *sent = td_send (b->gy[0], a->comm, a->rank);

  if (b->n_in > 0 && td_backward_needs (b, 0))
    b->gx[0] = sent; /* a scalar 0, as the delegate is */
  return td_poisoned (sent) ? td__error_status () : TD_OK;
}

#define LETTER(name_, label_, formula_, min, more)                                             \
  {                                                                                            \
    .name = #name_, .label = label_, .group = "ranks", .formula = formula_, .n_in_min = min,   \
    .n_in_max = 1, .n_out = 1, .flags = TD_OP_HOST | (more),                                   \
    .attrs_size = sizeof (LetterAttrs), .attrs = letter_attrs,                                 \
    .n_attrs = TD_ARRAY_LENGTH (letter_attrs), .infer = name_##_infer,                         \
    .forward = name_##_forward, .backward = name_##_backward,                                  \
  }

static const TdOpClass send_class = LETTER (send, "Send", "0, when x has been sent", 1, 0);
/* [1]: where the sender's x wants a gradient */
static const TdOpClass recv_class[2]
    = { LETTER (recv, "Recv", "x of the sender", 0, 0),
        LETTER (recv, "Recv", "x of the sender", 0, TD_OP_CAPTURES) };

/* --- x, joined to a delegate --- */

static TdStatus
connect_infer (TdOpCall *call)
{
  return td_op_out (call, 0, call->in[1].dtype, call->in[1].shape);
}

static TdStatus
connect_forward (TdOpCall *call)
{
  if (call->in[1].size > 0)
    memcpy (call->out[0].data, call->in[1].data, bytes_of (&call->in[1]));
  return TD_OK;
}

/* The delegate's gradient is what tells its td_send to wait for the real one. */
static TdStatus
connect_backward (TdBackward *b)
{
  if (td_backward_needs (b, 0))
    b->gx[0] = td_zeros (td_backward_in_dtype (b, 0), *td_backward_in_shape (b, 0));
  if (td_backward_needs (b, 1))
    b->gx[1] = b->gy[0];
  return TD_OK;
}

static const char *const connect_names[] = { "delegate", "x" };
static const TdOpClass connect_class = { .name = "pseudo_connect",
                                         .label = "PseudoConnect",
                                         .group = "ranks",
                                         .formula = "x",
                                         .n_in_min = 2,
                                         .n_in_max = 2,
                                         .n_out = 1,
                                         .flags = TD_OP_HOST,
                                         .in_names = connect_names,
                                         .infer = connect_infer,
                                         .forward = connect_forward,
                                         .backward = connect_backward };

/* --- the functions --- */

/* Another rank of comm?  False after td__fail. */
static bool
can_write (const TdComm *comm, int rank, const char *call, const TdSite *site)
{
  TdTracer *tracer = td__engine.tracer;

  if (!td__comm_usable (comm, call, site))
    return false;
  if (tracer != NULL)
    tracer->refuse (tracer, "what is sent to another rank", site);
  if (rank >= 0 && rank < comm->size && rank != comm->rank)
    return true;
  td__fail (TD_ERR_ARG, call, site, "rank %d of %d: another rank of 0 to %d expected, got %d",
            comm->rank, comm->size, comm->size - 1, rank);
  return false;
}

TdVar *
td_send_at (TdVar *x, TdComm *comm, int rank, const TdSite *site)
{
  LetterAttrs attrs;
  char why[TD_WHY_WIRE] = "";
  TdVar *y = NULL;
  TdMeet letter;

  if (!can_write (comm, rank, "td_send", site))
    return td__poison ();
  letter = td__meet_of (TD_MEET_SEND, x, site);
  if (x == NULL)
    {
      td__var_usable (x, "td_send", site);
      td__meet_fail (&letter);
    }
  comm->mine = letter;
  if (!td__wait_send (comm, &letter, sizeof letter, rank, why, site))
    td__comm_fail (comm, why, site);
  if (why[0] != '\0' || (letter.flags & TD_MEET_FAILED))
    return td__poison ();
  memset (&attrs, 0, sizeof attrs); /* its bytes are hashed */
  attrs.comm = comm;
  attrs.rank = rank;
  attrs.shape = x->node->shape;
  attrs.dtype = x->node->dtype;
  td_apply_at (&send_class, &attrs, &x, 1, &y, 1, site);
  return y;
}

TdVar *
td_send (TdVar *x, TdComm *comm, int rank)
{
  return td_send_at (x, comm, rank, NULL);
}

/* The letter says that an array comes?  Else it is an error. */
static bool
comes (const TdComm *comm, const TdMeet *letter, int rank, const TdSite *site)
{
  if (letter->kind == TD_MEET_FINISH)
    td__fail (TD_ERR_STATE, "td_recv", site,
              "rank %d of %d: nothing comes from rank %d, which has ended (td_finish)",
              comm->rank, comm->size, rank);
  else if (letter->abi != TD_TRANSPORT_ABI || letter->kind != TD_MEET_SEND)
    td__fail (TD_ERR_STATE, "td_recv", site,
              "rank %d of %d: rank %d runs another version of Tapedeck", comm->rank, comm->size,
              rank);
  else if (letter->flags & TD_MEET_FAILED)
    td__fail (TD_ERR_STATE, "td_recv", site,
              "rank %d of %d: rank %d cannot send (%.43s:%d): %.199s", comm->rank, comm->size,
              rank, letter->file, letter->line, letter->note);
  else
    return true;
  return false;
}

/* What comes is taken all the same: the next letter is behind it. */
static TdVar *
dropped (TdComm *comm, const LetterAttrs *a)
{
  const size_t bytes = (size_t)td_shape_size (&a->shape) * td__dtype_sizes[a->dtype];
  char why[TD_WHY_WIRE] = "";
  void *room = td__xmalloc (bytes + 1);

  td__wait_receive (comm, room, bytes, a->rank, why, NULL);
  free (room);
  return td__poison ();
}

TdVar *
td_recv_at (TdComm *comm, int rank, TdVar *delegate, const TdSite *site)
{
  LetterAttrs attrs;
  char why[TD_WHY_WIRE] = "";
  TdVar *y = NULL;
  TdMeet letter;
  bool got;

  if (!can_write (comm, rank, "td_recv", site))
    return td__poison ();
  comm->mine = td__meet_of (TD_MEET_RECV, NULL, site);
  comm->mine.root = rank; /* for who asks what this one waits for */
  got = td__wait_receive (comm, &letter, sizeof letter, rank, why, site);
  if (!got)
    td__comm_fail (comm, why, site);
  if (!got || !comes (comm, &letter, rank, site))
    return td__poison ();
  memset (&attrs, 0, sizeof attrs); /* its bytes are hashed */
  attrs.comm = comm;
  attrs.rank = rank;
  attrs.dtype = letter.dtype;
  attrs.shape.ndim = letter.ndim;
  memcpy (attrs.shape.dim, letter.dim, sizeof letter.dim);
  if (delegate != NULL && !td__var_usable (delegate, "td_recv", site))
    return dropped (comm, &attrs);
  td_apply_at (&recv_class[(letter.flags & TD_MEET_WANTS) != 0], &attrs, &delegate,
               delegate != NULL, &y, 1, site);
  return y;
}

TdVar *
td_recv (TdComm *comm, int rank, TdVar *delegate)
{
  return td_recv_at (comm, rank, delegate, NULL);
}

TdVar *
td_pseudo_connect_at (TdVar *delegate, TdVar *x, const TdSite *site)
{
  TdVar *in[] = { delegate, x }, *y = NULL;

  td_apply_at (&connect_class, NULL, in, 2, &y, 1, site);
  return y;
}

TdVar *
td_pseudo_connect (TdVar *delegate, TdVar *x)
{
  return td_pseudo_connect_at (delegate, x, NULL);
}
