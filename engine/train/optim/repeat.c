/* Updates launch the same kernels every time: a device that can takes all of one together.
 *
 * Not while somebody looks at each operation, nor where parameters lie on several devices.
 *
 * SPDX-License-Identifier: MIT */
#include "optimizer.h"

static TdDevice *
device_of (const TdOpt *opt)
{
  TdDevice *d = opt->n_slots > 0 ? opt->slots[0].param->node->device : NULL;

  if (d == NULL || !d->computes || d->ops->graphs == NULL
      || d->ops->graphs->repeat_begin == NULL)
    return NULL;
  for (int i = 1; i < opt->n_slots; i++)
    if (opt->slots[i].param->node->device != d)
      return NULL;
  return d;
}

bool
td__opt_repeat_begin (TdOpt *opt)
{
  TdObserver *o = td__engine.observer;
  TdDevice *d = device_of (opt);

  if (opt->repeat != NULL && d != opt->repeats_on)
    td__opt_repeat_free (opt);
  if (d == NULL || td__engine.config.debug || (o != NULL && (o->each == NULL || o->each (o))))
    return false;
  opt->repeats_on = d;
  return d->ops->graphs->repeat_begin (d, &opt->repeat);
}

TdStatus
td__opt_repeat_end (const TdOpt *opt)
{
  return opt->repeats_on->ops->graphs->repeat_end (opt->repeats_on);
}

void
td__opt_repeat_free (TdOpt *opt)
{
  if (opt->repeat != NULL)
    opt->repeats_on->ops->graphs->repeat_free (opt->repeats_on, opt->repeat);
  opt->repeat = NULL;
  opt->repeats_on = NULL;
}
