/* Updaters: one step of training, with the iterators and optimizers that it needs.
 *
 * *Source*: chainer.training.updaters.StandardUpdater.
 * SPDX-License-Identifier: MIT */
#include "trainer.h"
#include "host-memory.h"

#include "../optim/optimizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static TdUpdater *
inert_updater (void)
{
  static TdUpdater inert = { .inert = true };

  return &inert;
}

static bool
usable (const TdUpdater *u, const char *call)
{
  if (td__stranger (call))
    return false;
  if (u != NULL && !u->inert)
    return true;
  td__fail (TD_ERR_STATE, call, NULL, "the updater %s",
            u == NULL         ? "is NULL"
            : u->object.freed ? "was freed"
                              : "is inert");
  return false;
}

static void
updater_free (void *object)
{
  TdUpdater *u = object;

  for (int i = 0; i < u->n_iters; i++)
    free (u->iters[i].name);
  for (int i = 0; i < u->n_opts; i++)
    free (u->opts[i].name);
  free (u->iters);
  free (u->opts);
  *u = (TdUpdater){ .inert = true, .object.freed = true };
  td__shell_keep (u);
}

void
td_updater_free (TdUpdater *u)
{
  if (td__stranger ("td_updater_free") || u == NULL || u->inert || !td__engine.started)
    return;
  td__object_remove (&u->object);
  updater_free (u);
}

TdUpdater *
td_standard_updater_new_ (TdIter *iter, TdOpt *opt, TdUpdaterOpt options)
{
  TdUpdater *u;

  if (td__check_thread ("td_standard_updater_new") != TD_OK)
    return inert_updater ();
  if (iter == NULL || iter->inert || opt == NULL || opt->inert)
    {
      td__fail (TD_ERR_STATE, "td_standard_updater_new", NULL, "the %s is %s",
                iter == NULL || iter->inert ? "iterator" : "optimizer",
                iter == NULL || (opt == NULL && !iter->inert) ? "NULL" : "inert");
      return inert_updater ();
    }
  if (options.loss_scale < 0)
    {
      td__fail (TD_ERR_ARG, "td_standard_updater_new", NULL,
                "a loss scale above 0 expected, got %g", options.loss_scale);
      return inert_updater ();
    }
  u = td__xcalloc (1, sizeof *u);
  u->o = options;
  td__object_add (&u->object, updater_free);
  td_updater_add_iterator (u, "main", iter);
  td_updater_add_optimizer (u, "main", opt);
  if (options.loss_scale > 0)
    td_opt_loss_scaling_ (opt, &(TdLossScalingOpt){ .scale = options.loss_scale });
  return u;
}

static TdNamedIter *
find_iter (const TdUpdater *u, const char *name)
{
  for (int i = 0; name != NULL && i < u->n_iters; i++)
    if (strcmp (u->iters[i].name, name) == 0)
      return &u->iters[i];
  return NULL;
}

static TdNamedOpt *
find_opt (const TdUpdater *u, const char *name)
{
  for (int i = 0; name != NULL && i < u->n_opts; i++)
    if (strcmp (u->opts[i].name, name) == 0)
      return &u->opts[i];
  return NULL;
}

TdStatus
td_updater_add_iterator (TdUpdater *u, const char *name, TdIter *iter)
{
  if (!usable (u, "td_updater_add_iterator"))
    return td__error_status ();
  if (name == NULL || find_iter (u, name) != NULL || iter == NULL || iter->inert)
    return td__fail (TD_ERR_ARG, "td_updater_add_iterator", NULL,
                     "an iterator under a name of its own expected, got \"%s\"",
                     name != NULL ? name : "(null)");
  u->iters = td__xrealloc (u->iters, (size_t)(u->n_iters + 1) * sizeof *u->iters);
  u->iters[u->n_iters++] = (TdNamedIter){ td__xstrdup (name), iter };
  return TD_OK;
}

TdStatus
td_updater_add_optimizer (TdUpdater *u, const char *name, TdOpt *opt)
{
  if (!usable (u, "td_updater_add_optimizer"))
    return td__error_status ();
  if (name == NULL || find_opt (u, name) != NULL || opt == NULL || opt->inert)
    return td__fail (TD_ERR_ARG, "td_updater_add_optimizer", NULL,
                     "an optimizer under a name of its own expected, got \"%s\"",
                     name != NULL ? name : "(null)");
  u->opts = td__xrealloc (u->opts, (size_t)(u->n_opts + 1) * sizeof *u->opts);
  u->opts[u->n_opts++] = (TdNamedOpt){ td__xstrdup (name), opt };
  return TD_OK;
}

TdIter *
td_updater_iterator (const TdUpdater *u, const char *name)
{
  TdNamedIter *at = usable (u, "td_updater_iterator") ? find_iter (u, name) : NULL;

  if (at == NULL)
    td__fail (TD_ERR_ARG, "td_updater_iterator", NULL, "there is no iterator \"%s\"",
              name != NULL ? name : "(null)");
  return at != NULL ? at->iter : NULL;
}

TdOpt *
td_updater_optimizer (const TdUpdater *u, const char *name)
{
  TdNamedOpt *at = usable (u, "td_updater_optimizer") ? find_opt (u, name) : NULL;

  if (at == NULL)
    td__fail (TD_ERR_ARG, "td_updater_optimizer", NULL, "there is no optimizer \"%s\"",
              name != NULL ? name : "(null)");
  return at != NULL ? at->opt : NULL;
}

/* --- the update --- */

TdLink *
td__opt_target (const TdOpt *opt)
{
  return td__link_by_id (opt->target_id);
}

static TdVar *
loss_of (TdUpdater *u, TdOpt *opt, const TdBatch *b, const TdSite *site)
{
  TdVar *in[TD_MAX_FIELDS], *loss = NULL;
  TdLink *target;

  if (u->o.loss_func != NULL)
    {
      loss = u->o.loss_func (u->o.self, b);
      if (loss != NULL)
        return loss;
      td__fail (TD_ERR_STATE, "td_updater_update", site, "the loss function returned NULL");
      return td__poison ();
    }
  target = td__opt_target (opt);
  if (target == NULL)
    {
      td__fail (TD_ERR_STATE, "td_updater_update", site, "the optimizer's link was freed");
      return td__poison ();
    }
  for (int k = 0; k < b->n_fields; k++)
    in[k] = b->field[k];
  td_link_call_at (target, in, b->n_fields, &loss, 1, site);
  return loss;
}

static TdStatus
update_main (TdUpdater *u, const TdSite *site)
{
  TdEngine *e = &td__engine;
  TdIter *iter = u->iters[0].iter;
  TdOpt *opt = u->opts[0].opt;
  TdBatch b = td_iter_next_at (iter, site);
  TdVar *loss;

  if (e->has_error)
    return e->error.status;
  loss = loss_of (u, opt, &b, site);
  if (e->has_error)
    return e->error.status;
  td_cleargrads (td__opt_target (opt));
  td_opt_backward (opt, loss, 0);
  if (td_opt_update_at (opt, site) == TD_OK && u->o.auto_new_epoch && iter->at.is_new_epoch)
    td_opt_new_epoch (opt);
  return e->has_error ? e->error.status : TD_OK;
}

TdStatus
td_updater_update_at (TdUpdater *u, const TdSite *site)
{
  TdEngine *e = &td__engine;
  const TdSite *outer = e->site;
  TdScope *scope;
  TdStatus status;

  if (!usable (u, "td_updater_update") || e->has_error)
    return td__error_status ();
  if (site != NULL)
    e->site = site;
  scope = td_scope_open_at ("update", e->site);
  status = u->o.update != NULL ? u->o.update (u, u->o.self) : update_main (u, e->site);
  td_scope_close (scope);
  e->site = outer;
  if (status == TD_OK && e->has_error)
    status = e->error.status;
  if (status == TD_OK)
    u->iteration++;
  else if (!e->has_error)
    td__fail (status, "td_updater_update", site, "the update function says that it failed");
  return status;
}

TdStatus (td_updater_update) (TdUpdater *u)
{
  return td_updater_update_at (u, NULL);
}

/* --- where it stands --- */

static const TdIter *
main_iter (const TdUpdater *u)
{
  return !td__asked ("td_updater_epoch") && u != NULL && u->n_iters > 0 ? u->iters[0].iter
                                                                           : NULL;
}

int64_t
td_updater_iteration (const TdUpdater *u)
{
  return td__asked ("td_updater_iteration") || u == NULL ? 0 : u->iteration;
}

int64_t
td_updater_epoch (const TdUpdater *u)
{
  const TdIter *it = main_iter (u);

  return it != NULL ? td_iter_epoch (it) : 0;
}

double
td_updater_epoch_detail (const TdUpdater *u)
{
  return td_iter_epoch_detail (main_iter (u));
}

double
td_updater_previous_epoch_detail (const TdUpdater *u)
{
  return td_iter_previous_epoch_detail (main_iter (u));
}

bool
td_updater_is_new_epoch (const TdUpdater *u)
{
  return td_iter_is_new_epoch (main_iter (u));
}

/* Chainer's keys: "iterator:main", "optimizer:main", "model:main". */
void
td__updater_serialize (TdUpdater *u, TdSerializer *s)
{
  char name[300];

  for (int i = 0; i < u->n_iters; i++)
    {
      snprintf (name, sizeof name, "iterator:%s", u->iters[i].name);
      td_serializer_enter (s, name);
      td__iter_serialize (u->iters[i].iter, s);
      td_serializer_leave (s);
    }
  for (int i = 0; i < u->n_opts; i++)
    {
      TdOpt *opt = u->opts[i].opt;
      TdLink *target;

      /* The link first: an optimizer's states take the shapes of its parameters. */
      target = td__opt_target (opt);
      snprintf (name, sizeof name, "model:%s", u->opts[i].name);
      td_serializer_enter (s, name);
      if (target != NULL)
        td__link_serialize (target, s);
      td_serializer_leave (s);
      snprintf (name, sizeof name, "optimizer:%s", u->opts[i].name);
      td_serializer_enter (s, name);
      td__opt_serialize (opt, s);
      td_serializer_leave (s);
    }
  td_serialize_int (s, "iteration", &u->iteration);
}
