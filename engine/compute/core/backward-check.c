/* What backward is asked for, and what an operation's own hands back, is looked at before
 * anything is done with it.
 *
 * SPDX-License-Identifier: MIT */
#include "walk.h"

#include <stdio.h>

/* "x" or "input 1". */
static const char *
operand_name (const TdOp *op, int i, char *text, size_t size)
{
  if (op->cls->in_names != NULL && i < op->cls->n_in_max)
    return op->cls->in_names[i];
  snprintf (text, size, "input %d", i);
  return text;
}

/* A gradient has the shape and dtype of its input. */
static inline bool
gradient_fits (const TdNode *n, const TdVar *g)
{
  return TD_LIKELY (td_shape_equal (&g->node->shape, &n->shape) && g->node->dtype == n->dtype);
}

static TdStatus
refuse_gradient (const TdOp *op, int i, const TdVar *g)
{
  char want[160], got[160], name[24];
  const TdNode *n = op->in[i];

  return td__fail (g->node->dtype != n->dtype ? TD_ERR_DTYPE : TD_ERR_SHAPE, op->cls->name,
                   op->site, "backward gives %s a gradient %s %s, %s %s expected",
                   operand_name (op, i, name, sizeof name),
                   td_shape_text (&g->node->shape, got, sizeof got),
                   td_dtype_name (g->node->dtype), td_shape_text (&n->shape, want, sizeof want),
                   td_dtype_name (n->dtype));
}

/* Poison is the result of an error that has been told, unless the program has cleared it. */
TdStatus
td__backward_dead (const TdOp *op, int i, const TdVar *g)
{
  const TdSite *made = g->state == TD_VAR_DEAD ? g->site : NULL;
  char name[24];

  if (g->state == TD_VAR_POISON && td__engine.has_error)
    return td__engine.error.status;
  return td__fail (TD_ERR_STATE, op->cls->name, op->site,
                   "backward gives %s a gradient that is no more, of %s:%d: td_retain it",
                   operand_name (op, i, name, sizeof name), made != NULL ? made->file : "?",
                   made != NULL ? made->line : 0);
}

TdStatus
td__backward_missing (const TdOp *op)
{
  return td__fail (TD_ERR_STATE, op->cls->name, op->site,
                   "its class has no backward, and a gradient arrived: give it one, or "
                   "TD_OP_NO_GRAD");
}

TdStatus
td__backward_check (const TdOp *op, TdStatus status, TdVar *const *gx, uint32_t needs)
{
  uintptr_t extra = 0;

  if (TD_UNLIKELY (status != TD_OK))
    return td__engine.has_error
               ? status
               : td__fail (status, op->cls->name, op->site, "backward returned an error: %s",
                           td_status_name (status));
  for (int i = 0; i < TD_BACKWARD_GUARDS; i++)
    extra |= (uintptr_t)gx[op->n_in + i];
  if (TD_UNLIKELY (extra != 0))
    return td__fail (TD_ERR_ARG, op->cls->name, op->site,
                     "backward gives more than %d gradient%s, one for each input expected",
                     op->n_in, op->n_in == 1 ? "" : "s");
  for (int i = 0; i < op->n_in; i++)
    if (gx[i] != NULL && !td__dead (gx[i]) && (i >= 32 || (needs >> i & 1))
        && !gradient_fits (op->in[i], gx[i]))
      return refuse_gradient (op, i, gx[i]);
  return TD_OK;
}

TdStatus
td__backward_check_into (const TdOp *op, TdVar *const *gx, uint32_t into)
{
  char name[24];

  for (int i = 0; i < op->n_in && i < 32; i++)
    {
      TdVar *sum = into >> i & 1 ? op->in[i]->acc : NULL;
      const bool added = sum != NULL && (sum->flags & TD_VAR_ADDED_TO);

      if (added)
        sum->flags &= (uint8_t)~TD_VAR_ADDED_TO;
      if (TD_UNLIKELY (added && gx[i] != sum))
        return td__fail (TD_ERR_STATE, op->cls->name, op->site,
                         "backward adds to the gradient of %s that is there, and then gives "
                         "another: td_backward_into is for the last operation",
                         operand_name (op, i, name, sizeof name));
    }
  return TD_OK;
}

TdStatus
td__debug_gradient (const TdVar *g, const char *op, const TdSite *site, const char *what)
{
  TdDevice *d = g->node->device;
  const TdTensor t = { g->buffer->data, &g->node->shape, td_shape_size (&g->node->shape),
                       (TdDtype)g->node->dtype, g->node->layout };
  TdStats stats;

  if (t.dtype > TD_BF16 || !d->computes || d->ops->stats (d, &t, UINT64_MAX, 0, &stats) != TD_OK
      || stats.n_nan + stats.n_pos_inf + stats.n_neg_inf == 0)
    return TD_OK;
  return td__fail (TD_ERR_NUMERIC, op, site,
                   "%s has %lu NaN, %lu +inf, %lu -inf among %lu numbers", what,
                   (unsigned long)stats.n_nan, (unsigned long)stats.n_pos_inf,
                   (unsigned long)stats.n_neg_inf, (unsigned long)stats.n);
}

TdStatus
td__backward_debug (const TdOp *op, TdVar *const *gx)
{
  TdStatus status = TD_OK;
  char name[24], what[400];

  for (int i = 0; i < op->n_in && status == TD_OK; i++)
    if (gx[i] != NULL && !td__dead (gx[i]))
      {
        snprintf (what, sizeof what, "backward of %s at %.200s:%d: the gradient of %s",
                  op->cls->name, op->site != NULL ? op->site->file : "?",
                  op->site != NULL ? op->site->line : 0,
                  operand_name (op, i, name, sizeof name));
        status = td__debug_gradient (gx[i], op->cls->name, op->site, what);
      }
  return status;
}

/* An unknown bit would be taken for what the program believes that it asks for. */
TdStatus
td__backward_check_flags (unsigned flags, const char *call, const TdSite *site)
{
  if ((flags & ~(unsigned)(TD_DOUBLE_BACKPROP | TD_RETAIN_GRADS)) == 0)
    return TD_OK;
  return td__fail (TD_ERR_ARG, call, site,
                   "TD_DOUBLE_BACKPROP (1), TD_RETAIN_GRADS (2), both or 0 expected, got %u",
                   flags);
}
