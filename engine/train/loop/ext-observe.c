/* Small extensions: values that are reported, graphs that are cut, numbers that are none.
 *
 * *Source*: chainer.training.extensions.value_observation, unchain_variables, FailOnNonNumber.
 * SPDX-License-Identifier: MIT */
#include "trainer.h"
#include "host-memory.h"

#include <math.h>
#include <stdlib.h>

/* --- values --- */

typedef struct
{
  char *key, *optimizer;
  double (*value) (void *self, TdTrainer *trainer);
  void *self;
} Observe;

static TdStatus
observe_call (void *self, TdTrainer *t)
{
  Observe *o = self;
  TdOpt *opt;
  double value = 0;

  if (o->value != NULL)
    value = o->value (o->self, t);
  else
    {
      opt = td_updater_optimizer (t->updater, o->optimizer);
      if (opt == NULL)
        return td__error_status ();
      value = td_opt_lr (opt);
    }
  td_report (o->key, value);
  return TD_OK;
}

static void
observe_free (void *self)
{
  Observe *o = self;

  free (o->key);
  free (o->optimizer);
}

#define OBSERVE_CLASS(class_name)                                                              \
  {                                                                                            \
    .size = sizeof (TdExtensionClass), .name = class_name, .self_bytes = sizeof (Observe),     \
    .priority = TD_PRIORITY_WRITER, .period = 1, .unit = "epoch", .call = observe_call,        \
    .free = observe_free                                                                       \
  }
static const TdExtensionClass observe_lr_class = OBSERVE_CLASS ("observe_lr");
static const TdExtensionClass observe_value_class = OBSERVE_CLASS ("observe_value");

TdExtension *
td_ext_observe_lr_ (TdObserveLrOpt o)
{
  TdExtension *x;

  if (td__check_thread ("td_ext_observe_lr") != TD_OK)
    return td__extension_inert ();
  if (o.optimizer == NULL || o.key == NULL)
    {
      td__fail (TD_ERR_ARG, "td_ext_observe_lr", NULL,
                "an optimizer's name and a key expected");
      return td__extension_inert ();
    }
  x = td_extension_new (&observe_lr_class);
  *(Observe *)x->self = (Observe){ td__xstrdup (o.key), td__xstrdup (o.optimizer), NULL, NULL };
  return x;
}

TdExtension *
td_ext_observe_value (const char *key, double (*value) (void *self, TdTrainer *trainer),
                      void *self)
{
  TdExtension *x;

  if (td__check_thread ("td_ext_observe_value") != TD_OK)
    return td__extension_inert ();
  if (key == NULL || value == NULL)
    {
      td__fail (TD_ERR_ARG, "td_ext_observe_value", NULL, "a key and a function expected");
      return td__extension_inert ();
    }
  x = td_extension_new (&observe_value_class);
  *(Observe *)x->self = (Observe){ td__xstrdup (key), NULL, value, self };
  return x;
}

/* --- graphs --- */

static TdStatus
unchain_call (void *self, TdTrainer *t)
{
  (void)self;
  for (int i = 0; i < t->observation->n_entries; i++)
    if (t->observation->entries[i].variable != NULL)
      td_unchain_backward (t->observation->entries[i].variable);
  return TD_OK;
}

static const TdExtensionClass unchain_class = { .size = sizeof (TdExtensionClass),
                                                .name = "unchain_variables",
                                                .priority = 999,
                                                .call = unchain_call };

TdExtension *
td_ext_unchain_variables (void)
{
  return td_extension_new (&unchain_class);
}

/* --- numbers --- */

typedef struct
{
  TdStatus status;
  char *host;
  size_t room;
} Search;

/* x - x is 0 for every number and NaN for what is none. */
static bool
all_numbers (const float *x, int64_t n)
{
  float sum = 0;

  for (int64_t i = 0; i < n; i++)
    sum += x[i] - x[i];
  return sum == 0;
}

static void
search_one (const char *path, TdVar *param, void *user)
{
  Search *s = user;
  TdDtype dtype = td_dtype (param);
  size_t bytes = (size_t)td_size (param) * td_dtype_bytes (dtype);

  if (s->status != TD_OK)
    return;
  if (s->room < bytes)
    {
      s->host = td__xrealloc (s->host, bytes);
      s->room = bytes;
    }
  s->status = td_read (param, s->host, bytes);
  if (s->status != TD_OK
      || (dtype == TD_F32 && all_numbers ((const float *)(void *)s->host, td_size (param))))
    return;
  for (int64_t i = 0; i < td_size (param) && s->status == TD_OK; i++)
    {
      double v = td__host_element (s->host, dtype, i);

      if (!isfinite (v))
        s->status = td__fail (TD_ERR_NUMERIC, "FailOnNonNumber", NULL,
                              "parameter %s is not a number any more: element %lld is %g", path,
                              (long long)i, v);
    }
}

static TdStatus
fail_call (void *self, TdTrainer *t)
{
  Search s = { TD_OK, NULL, 0 };

  (void)self;
  for (int i = 0; i < t->updater->n_opts && s.status == TD_OK; i++)
    {
      TdLink *target = td__opt_target (t->updater->opts[i].opt);

      if (target != NULL)
        td_link_each_param (target, search_one, &s);
    }
  free (s.host);
  return s.status;
}

static const TdExtensionClass fail_class = { .size = sizeof (TdExtensionClass),
                                             .name = "FailOnNonNumber",
                                             .priority = TD_PRIORITY_READER,
                                             .call = fail_call };

TdExtension *
td_ext_fail_on_non_number (void)
{
  return td_extension_new (&fail_class);
}
