/* Parameter: a link that is nothing but one parameter.
 *
 * SPDX-License-Identifier: MIT */
#include "link.h"

static TdStatus
parameter_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdStatus status = td__link_arity (link, n_in, 0, n_out, 1);

  (void)self, (void)in;
  if (status == TD_OK)
    out[0] = link->params[0]->var;
  return status;
}

static const TdLinkClass parameter_class
    = { .size = sizeof (TdLinkClass), .name = "Parameter", .forward = parameter_forward };

TdLink *
td_parameter_new (TdLink *parent, const char *name, TdVar *array)
{
  TdLink *link;
  TdParam *p;
  TdDevice *d;

  if (!td__var_usable (array, "Parameter", NULL))
    return td__link_inert ();
  if (array->node->dtype > TD_BF16)
    {
      td__fail (TD_ERR_DTYPE, "Parameter", NULL, "an array of floating point expected, got %s",
                td_dtype_name (td_dtype (array)));
      return td__link_inert ();
    }
  link = td__link_make (&parameter_class, parent, name, NULL);
  if (link->inert)
    return link;
  array = td__to_layout (array, TD_ROW_MAJOR, NULL);
  if (td_poisoned (array))
    return td__link_abandon (link);
  p = td__param_add (link, "W", &array->node->shape, (int)td_dtype (array), td_init_zero (),
                     td_init_zero (), NULL);
  d = array->node->device;
  if (p == NULL || td__var_move (p->var, d) != TD_OK)
    return td__link_abandon (link);
  p->device = d;
  if (d->computes)
    d->ops->copy (d, p->var->buffer->data, array->buffer->data, array->buffer->bytes);
  return link;
}
