/* Evaluator: the means of what is reported over a dataset, without building graphs.
 *
 * *Source*: chainer.training.extensions.Evaluator.
 * SPDX-License-Identifier: MIT */
#include "trainer.h"
#include "host-memory.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct
{
  TdEvaluatorOpt o;
  TdIter *iter;
  uint64_t target_id;
  char *name;
  const TdEvaluatorShare *share; /* NULL: this process's own */
  void *shared;
} Evaluator;

/* Returns how many examples it has. */
static int64_t
evaluate_batch (Evaluator *v, TdLink *target)
{
  TdBatch b = td_iter_next_at (v->iter, td__engine.site);
  TdVar *in[TD_MAX_FIELDS], *out = NULL;

  if (td__engine.has_error)
    return 0;
  if (v->o.eval_func != NULL)
    {
      v->o.eval_func (v->o.self, &b);
      return b.n;
    }
  for (int k = 0; k < b.n_fields; k++)
    in[k] = b.field[k];
  td_link_call_at (target, in, b.n_fields, &out, 1, td__engine.site);
  return b.n;
}

/* The means of one process are over batches, as Chainer's; those of several over examples,
 * which are not spread evenly. */
static void
add_batch (const Evaluator *v, TdObservation *summary, const TdObservation *batch, int64_t n)
{
  if (v->share == NULL)
    td_observation_add_last (summary, batch);
  else
    for (int i = 0; i < batch->n_entries; i++)
      td_observation_add (summary, batch->entries[i].key, batch->entries[i].last, (double)n);
}

static void
evaluate (Evaluator *v, TdLink *target, TdObservation *summary)
{
  TdObservation batch = { .n_entries = 0 };

  td_iter_reset (v->iter);
  while (!td__engine.has_error && !td__cursor_ended (v->iter, &v->iter->at))
    {
      TdScope *scope = td_scope_open_at ("evaluate", td__engine.site);
      TdReportSave save = td__report_push (&batch);
      const int64_t n = evaluate_batch (v, target);

      td__report_pop (&save);
      add_batch (v, summary, &batch, n);
      td_observation_clear (&batch);
      td_scope_close (scope);
    }
}

static TdStatus
evaluator_call (void *self, TdTrainer *t)
{
  Evaluator *v = self;
  TdLink *target = v->target_id != 0 ? td__link_by_id (v->target_id) : NULL;
  TdObservation summary = { .n_entries = 0 };
  TdConfigSave train, backprop;
  char key[600];

  if (v->target_id != 0 && target == NULL)
    return td__fail (TD_ERR_STATE, v->name, NULL, "its link was freed");
  if (v->o.eval_hook != NULL)
    v->o.eval_hook (v->o.self, t);
  train = td__config_push (offsetof (TdConfig, train), 0);
  backprop = td__config_push (offsetof (TdConfig, enable_backprop), 0);
  evaluate (v, target, &summary);
  td__config_pop (&backprop);
  td__config_pop (&train);
  if (v->share != NULL)
    v->share->all (v->shared, &summary);
  for (int i = 0; i < summary.n_entries && !td__engine.has_error; i++)
    {
      snprintf (key, sizeof key, "%.200s/%.300s", v->name, summary.entries[i].key);
      td_report (key, summary.entries[i].mean);
    }
  td_observation_clear (&summary);
  return td__engine.has_error ? td__engine.error.status : TD_OK;
}

static void
evaluator_free (void *self)
{
  Evaluator *v = self;

  if (v->share != NULL)
    v->share->free (v->shared);
  free (v->name);
}

static const TdExtensionClass evaluator_class = { .size = sizeof (TdExtensionClass),
                                                  .name = "validation",
                                                  .self_bytes = sizeof (Evaluator),
                                                  .priority = TD_PRIORITY_WRITER,
                                                  .period = 1,
                                                  .unit = "epoch",
                                                  .call = evaluator_call,
                                                  .free = evaluator_free };

bool
td__evaluator_share (TdExtension *x, const TdEvaluatorShare *share, void *shared)
{
  Evaluator *v;

  if (x == NULL || x->inert || x->cls != &evaluator_class)
    return false;
  v = x->self;
  if (v->share != NULL)
    return false;
  v->share = share;
  v->shared = shared;
  return true;
}

TdExtension *
td_ext_evaluator_ (TdIter *iter, TdLink *target, TdEvaluatorOpt o)
{
  TdExtension *x;
  Evaluator *v;

  if (td__check_thread ("td_ext_evaluator") != TD_OK)
    return td__extension_inert ();
  if (iter == NULL || iter->inert || iter->o.repeat)
    td__fail (TD_ERR_ARG, "td_ext_evaluator", NULL, "%s",
              iter != NULL && !iter->inert ? "an iterator that does not repeat expected"
                                           : "the iterator is inert");
  else if (o.name == NULL || *o.name == '\0')
    td__fail (TD_ERR_ARG, "td_ext_evaluator", NULL, "a name expected");
  else if ((target == NULL && o.eval_func != NULL)
           || td__link_usable (target, "td_ext_evaluator", NULL))
    {
      x = td_extension_new (&evaluator_class);
      v = x->self;
      v->o = o;
      v->iter = iter;
      v->target_id = target != NULL ? target->id : 0;
      v->name = td__xstrdup (o.name);
      return x;
    }
  return td__extension_inert ();
}
