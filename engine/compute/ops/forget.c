/* Recomputation: a function runs without its graph, and again, with it, in backward.
 *
 * The operation's forward only copies what the function computed; it remembers the place in the
 * random stream where the function began, so that the second run draws the same numbers.  None
 * of that is an attribute to print: a recording has no use for pointers.
 *
 * *Source*: chainer.functions.forget; Chen et al., 2016.
 * SPDX-License-Identifier: MIT */
#include "compose.h"

#include <stdlib.h>
#include <string.h>

enum
{
  MAX_INPUTS = 32 /* that can be retained */
};

typedef struct
{
  TdRngKey key;
  TdForgetFn fn;
  void *user;
  TdVar *const *results; /* of the first run, during the call */
  int train;
} Attrs;

static TdStatus
infer (TdOpCall *call)
{
  const Attrs *a = call->attrs;
  TdStatus status = TD_OK;

  if (a->fn == NULL)
    return td_op_fail (call, TD_ERR_ARG, "a function to run expected, got none");
  for (int i = 0; status == TD_OK && i < call->n_out; i++)
    status
        = td_op_out (call, i, (TdDtype)a->results[i]->node->dtype, &a->results[i]->node->shape);
  return status;
}

static TdStatus
forward (TdOpCall *call)
{
  const Attrs *a = call->attrs;
  TdStatus status = TD_OK;

  for (int i = 0; status == TD_OK && i < call->n_out; i++)
    status = call->device->ops->copy (
        call->device, call->out[i].data, a->results[i]->buffer->data,
        (size_t)call->out[i].size * td_dtype_bytes (call->out[i].dtype));
  return status;
}

/* A leaf that shows v's memory.  *Owner*: the innermost scope. */
static TdVar *
leaf_of (TdVar *v)
{
  TdNode *n = td__node_new ();

  n->dtype = v->node->dtype;
  n->shape = v->node->shape;
  n->layout = v->node->layout;
  n->device = v->node->device;
  n->category = v->node->category;
  n->requires_grad = v->node->requires_grad;
  return td__scope_add (td__var_new (n, td__buffer_ref (v->buffer), td__engine.site));
}

/* Run the function as it ran, now with a graph.  What that does not keep for backward goes
 * before backward begins. */
static void
run_again (const Attrs *a, TdVar *const *xs, int n, TdVar **ys, int m)
{
  TdEngine *e = &td__engine;
  TdScope *scope = td_scope_open_at ("forget", e->site);
  const TdRngKey now = { e->rng_seed, e->rng_offset };
  const bool outer = e->recomputing;

  e->rng_seed = a->key.seed;
  e->rng_offset = a->key.offset;
  e->recomputing = true;
  TD_USING (train, a->train)
    TD_USING (enable_backprop, 1)
      a->fn (a->user, xs, n, ys, m);
  for (int i = 0; i < m; i++)
    if (ys[i] != NULL)
      td_scope_yield (ys[i]);
  td_scope_close (scope);
  e->recomputing = outer;
  e->rng_seed = now.seed;
  e->rng_offset = now.offset;
}

/* The results of both runs have the same shapes; those without a gradient may be gone. */
static TdStatus
compare (const TdBackward *b, TdVar *const *ys)
{
  char now[160], then[160];

  for (int i = 0; i < b->n_out; i++)
    {
      const TdShape *shape;

      if (b->gy[i] == NULL)
        continue;
      shape = td_backward_out_shape (b, i);
      if (!td__var_usable (ys[i], "forget", NULL))
        return td__engine.has_error ? td__engine.error.status : TD_ERR_STATE;
      if (!td_shape_equal (&ys[i]->node->shape, shape)
          || ys[i]->node->dtype != td_backward_out_dtype (b, i))
        return td__fail (
            TD_ERR_STATE, "forget", NULL,
            "a function that computes the same again expected, got output %d of %s "
            "first and %s in backward",
            i, td_shape_text (shape, then, sizeof then),
            td_shape_text (&ys[i]->node->shape, now, sizeof now));
    }
  return TD_OK;
}

/* Back-propagate through the second run, to the leaves and to whatever else it used. */
static TdStatus
propagate (TdBackward *b, TdVar *const *xs, TdVar **ys)
{
  TdVar *wanted[MAX_INPUTS], *gxs[MAX_INPUTS], **gys = calloc ((size_t)b->n_out, sizeof *gys);
  int n_roots = 0, n_wanted = 0, from[MAX_INPUTS];
  const bool targets = td__backward_has_targets (b);
  TdStatus status = TD_OK;

  if (gys == NULL)
    return TD_ERR_MEMORY;
  for (int i = 0; i < b->n_out; i++)
    if (b->gy[i] != NULL && ys[i]->node->requires_grad)
      {
        ys[n_roots] = ys[i];
        gys[n_roots++] = b->gy[i];
      }
  for (int i = 0; i < b->n_in; i++)
    if (td_backward_needs (b, i))
      {
        from[n_wanted] = i;
        wanted[n_wanted++] = xs[i];
      }
  if (n_roots > 0 && targets)
    status = td__backward_run (ys, n_roots, gys, wanted, n_wanted, gxs, 0, td__engine.site);
  else if (n_roots > 0)
    status = td__backward_run (ys, n_roots, gys, NULL, 0, NULL, 0, td__engine.site);
  for (int k = 0; n_roots > 0 && status == TD_OK && k < n_wanted; k++)
    b->gx[from[k]] = targets ? gxs[k] : wanted[k]->grad;
  free (gys);
  return status;
}

static TdStatus
backward (TdBackward *b)
{
  const Attrs *a = b->attrs;
  TdVar *xs[MAX_INPUTS], **ys;
  TdStatus status;

  if (td__engine.config.enable_backprop)
    return td__fail (TD_ERR_STATE, "forget", NULL,
                     "no double backprop through a forgotten function expected");
  for (int i = 0; i < b->n_in; i++)
    {
      TdVar *x = td_backward_input (b, i);

      if (!td__var_usable (x, "forget", NULL)) /* overwritten: td_backward_input has said so */
        return td__engine.has_error ? td__engine.error.status : TD_ERR_STATE;
      xs[i] = leaf_of (x);
    }
  ys = calloc ((size_t)b->n_out, sizeof *ys);
  if (ys == NULL)
    return TD_ERR_MEMORY;
  run_again (a, xs, b->n_in, ys, b->n_out);
  status = compare (b, ys);
  if (status == TD_OK)
    status = propagate (b, xs, ys);
  free (ys);
  return status;
}

const TdOpClass td__forget_class = {
  .name = "forget",
  .label = "Forget",
  .group = "util",
  .formula = "f (x), computed again in backward",
  .n_in_min = 1,
  .n_in_max = MAX_INPUTS,
  .n_out = -1,
  .flags = TD_OP_RANDOM | TD_OP_CAPTURES,
  .retain_in = ~0u,
  .attrs_size = sizeof (Attrs),
  .infer = infer,
  .forward = forward,
  .backward = backward,
};

static TdStatus
poison_all (TdVar **ys, int m, TdStatus status)
{
  for (int i = 0; i < m && ys != NULL; i++)
    ys[i] = td__poison ();
  return status;
}

TdStatus
td_forget_at (TdForgetFn fn, void *user, TdVar *const *xs, int n, TdVar **ys, int m,
              const TdSite *site)
{
  TdEngine *e = &td__engine;
  const TdSite *outer;
  TdScope *scope;
  Attrs attrs;
  TdVar **results;
  TdStatus status = TD_OK;

  if (!td__ensure_started () || fn == NULL || n < 1 || n > MAX_INPUTS || m < 1)
    return poison_all (
        ys, m,
        td__fail (TD_ERR_ARG, "forget", site,
                  "a function, 1 to %d inputs and an output expected, got %d and %d",
                  MAX_INPUTS, n, m));
  if (!td__list_there (xs, n, "forget", site) || !td__list_there (ys, m, "forget", site))
    return poison_all (ys, m, td__error_status ());
  for (int i = 0; i < n; i++)
    if (!td__var_usable (xs[i], "forget", site))
      return poison_all (ys, m, e->has_error ? e->error.status : TD_ERR_STATE);
  results = calloc ((size_t)m, sizeof *results);
  if (results == NULL)
    return poison_all (ys, m, TD_ERR_MEMORY);
  memset (&attrs, 0, sizeof attrs);
  attrs.key = (TdRngKey){ e->rng_seed, e->rng_offset };
  attrs.fn = fn;
  attrs.user = user;
  attrs.results = results;
  attrs.train = e->config.train;
  outer = td__at (site);
  scope = td_scope_open_at ("forget", e->site);
  TD_NO_BACKPROP
    fn (user, xs, n, results, m);
  for (int i = 0; status == TD_OK && i < m; i++)
    if (!td__var_usable (results[i], "forget", site))
      status = e->has_error ? e->error.status : TD_ERR_STATE;
  if (status == TD_OK)
    status = td__apply_at (&td__forget_class, &attrs, xs, n, ys, m, site);
  else
    poison_all (ys, m, status);
  for (int i = 0; i < m; i++)
    td_scope_yield (ys[i]);
  td_scope_close (scope);
  td__at_end (outer);
  free (results);
  return status;
}

TdStatus
td_forget (TdForgetFn fn, void *user, TdVar *const *xs, int n, TdVar **ys, int m)
{
  return td_forget_at (fn, user, xs, n, ys, m, NULL);
}
