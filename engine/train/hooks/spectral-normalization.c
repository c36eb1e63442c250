/* SpectralNormalization: a weight divided by its largest singular value, which one or more
 * steps of power iteration follow from call to call.
 *
 * SPDX-License-Identifier: MIT */
#include "weight.h"
#include "host-memory.h"

#include "compute/core/before-write.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct
{
  TdSpectralNormOpt o;
  const char *vector_name; /* "W_u" */
  uint64_t link_id;        /* 0: none yet */
  bool prepared;
  TdWeightSwap swap;
} Spectral;

/* Deconvolutions have their outputs on the second axis. */
static int
output_axis (const TdLink *link)
{
  return strncmp (link->cls->name, "Deconvolution", 13) == 0 ? 1 : 0;
}

/* W as a matrix with a row for each output. */
static TdVar *
as_matrix (const TdLink *link, TdVar *W)
{
  int axis = output_axis (link), axes[TD_MAX_DIMS] = { axis }, n = 1;

  for (int i = 0; axis > 0 && i < W->node->shape.ndim; i++)
    if (i != axis)
      axes[n++] = i;
  if (axis > 0)
    W = td_transpose (W, axes);
  return td_reshape (W, (TdShape){ 2, { W->node->shape.dim[0], -1 } });
}

/* Largest singular value, on the host: what gamma starts from. */
static double
largest_singular_value (TdVar *matrix)
{
  int64_t rows = matrix->node->shape.dim[0], columns = matrix->node->shape.dim[1];
  size_t bytes = matrix->buffer->bytes;
  double *u = td__xcalloc ((size_t)rows, sizeof *u), *v = td__xcalloc ((size_t)columns, 8);
  void *host = td__xcalloc (bytes, 1);
  double sigma = 0, before = -1;

  if (td_read (matrix, host, bytes) != TD_OK)
    rows = 0;
  for (int64_t i = 0; i < rows; i++)
    u[i] = 1 + 0.01 * (double)(i % 7); /* not orthogonal to the first vector but by accident */
  for (int step = 0; step < 10000 && fabs (sigma - before) > 1e-13 * sigma; step++)
    {
      double norm = 0;

      before = sigma;
      memset (v, 0, (size_t)columns * sizeof *v);
      for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
          v[j] += u[i] * td__host_element (host, td_dtype (matrix), i * columns + j);
      for (int64_t j = 0; j < columns; j++)
        norm += v[j] * v[j];
      norm = sqrt (norm);
      sigma = 0;
      for (int64_t i = 0; i < rows; i++)
        {
          u[i] = 0;
          for (int64_t j = 0; j < columns && norm > 0; j++)
            u[i] += td__host_element (host, td_dtype (matrix), i * columns + j) * v[j] / norm;
          sigma += u[i] * u[i];
        }
      sigma = sqrt (sigma);
      for (int64_t i = 0; i < rows && sigma > 0; i++)
        u[i] /= sigma;
    }
  free (host);
  free (u);
  free (v);
  return sigma;
}

/* The persistent u, and gamma if asked, once W has its shape. */
static bool
prepare (TdHook *hook, Spectral *s, TdLink *link, const TdParam *weight)
{
  TdVar *W = weight->var, *u;
  int64_t n_out;

  if (s->prepared)
    return true;
  n_out = W->node->shape.ndim >= 2 ? W->node->shape.dim[output_axis (link)] : 0;
  if (n_out == 0 || td_size (W) == 0)
    {
      td__fail (TD_ERR_SHAPE, hook->name, td__engine.site,
                "a weight of two or more axes and no empty ones expected");
      return false;
    }
  TD_NO_BACKPROP
    {
      TdShape shape = { 1, { n_out } }, scalar = { 0, { 0 } };

      u = td_to_device (td_randn (td_dtype (W), shape), td_device (W));
      s->prepared = !td_poisoned (td_link_add_persistent (link, s->vector_name, u));
      if (s->prepared && s->o.use_gamma)
        {
          double sigma
              = W->node->device->computes ? largest_singular_value (as_matrix (link, W)) : 1;
          TdParam *gamma = td__param_add (link, "gamma", &scalar, (int)td_dtype (W),
                                          td_init_constant (sigma), td_init_one (), NULL);

          s->prepared = gamma != NULL;
          if (gamma != NULL)
            td__var_move (gamma->var, W->node->device);
        }
    }
  return s->prepared;
}

static void
added (TdHook *hook, void *self, TdLink *link)
{
  Spectral *s = self;
  const TdParam *p;

  if (!td__weight_link_ok (link, s->o.weight_name, hook->name))
    return;
  if (s->link_id != 0)
    {
      td__fail (TD_ERR_ARG, hook->name, td__engine.site, "it is for one link, and has one");
      return;
    }
  s->link_id = link->id;
  p = td__param_find (link, s->o.weight_name);
  if (p->var != NULL)
    prepare (hook, s, link, p);
}

static void
deleted (TdHook *hook, void *self, TdLink *link)
{
  Spectral *s = self;

  (void)hook;
  if (link == NULL || s->link_id != link->id)
    return;
  td__weight_restore (&s->swap, link, s->o.weight_name);
  td__param_remove (link, s->vector_name);
  if (s->o.use_gamma)
    td__param_remove (link, "gamma");
  s->link_id = 0;
  s->prepared = false;
}

static TdVar *
unit (TdVar *v, double eps)
{
  return td_div (v, td_add_scalar (td_sqrt (td_sum (td_mul (v, v))), eps));
}

/* u of the link, overwritten in place. */
static void
store (TdVar *to, TdVar *u)
{
  TdDevice *d = to->node->device;

  if (td_poisoned (u))
    return;
  td__will_be_written (to->buffer);
  if (d->computes)
    d->ops->copy (d, to->buffer->data, u->buffer->data, to->buffer->bytes);
  td__buffer_written (to->buffer, td__engine.site);
}

static TdVar *
normalized (const Spectral *s, TdLink *link, TdVar *W)
{
  TdVar *stored = td__param_find (link, s->vector_name)->var, *matrix = as_matrix (link, W);
  TdVar *u = td_reshape (stored, (TdShape){ 2, { 1, -1 } }), *v = NULL, *sigma;

  TD_NO_BACKPROP
    {
      for (int i = 0; i < s->o.n_power_iteration; i++)
        {
          v = unit (td_matmul (u, matrix, false, false), s->o.eps);
          u = unit (td_matmul (v, matrix, false, true), s->o.eps);
        }
    }
  sigma = td_sum (td_mul (td_matmul (u, matrix, false, false), v));
  if (s->o.factor > 0)
    sigma = td_div_scalar (sigma, s->o.factor);
  if (td__engine.config.train)
    store (stored, u);
  if (s->o.use_gamma)
    W = td_mul (td__param_find (link, "gamma")->var, W);
  return td_div (W, sigma);
}

static void
before (TdHook *hook, void *self, const TdLinkCall *call)
{
  Spectral *s = self;
  TdParam *p;

  if (s->link_id != call->link->id)
    return;
  p = td__weight_find (call->link, s->o.weight_name, call, hook->name);
  if (p != NULL && prepare (hook, s, call->link, p))
    {
      p = td__param_find (call->link, s->o.weight_name);
      td__weight_swap (&s->swap, call->link, p, normalized (s, call->link, p->var));
    }
}

static void
after (TdHook *hook, void *self, const TdLinkCall *call)
{
  Spectral *s = self;

  (void)hook;
  td__weight_restore (&s->swap, call->link, s->o.weight_name);
}

static const TdHookClass spectral_class = { .size = sizeof (TdHookClass),
                                            .name = "SpectralNormalization",
                                            .self_bytes = sizeof (Spectral),
                                            .flags = TD_HOOK_GRAPH,
                                            .added = added,
                                            .deleted = deleted,
                                            .link_forward_preprocess = before,
                                            .link_forward_postprocess = after };

TdHook *
td_spectral_normalization_new_at (TdSpectralNormOpt options, const TdSite *site)
{
  TdHook *hook;
  Spectral *s;
  char name[220];

  if (options.n_power_iteration <= 0 || !(options.eps > 0) || !(options.factor >= 0)
      || options.weight_name == NULL || strlen (options.weight_name) > 200)
    {
      td__fail (TD_ERR_ARG, "SpectralNormalization", site,
                "n_power_iteration and eps above 0, factor at least 0 and the name of a weight "
                "expected, got %d, %g and %g",
                options.n_power_iteration, options.eps, options.factor);
      return td__hook_inert ();
    }
  hook = td_hook_new (&spectral_class);
  if (hook->self == NULL)
    return hook;
  s = hook->self;
  s->o = options;
  s->o.weight_name = td__intern (options.weight_name);
  snprintf (name, sizeof name, "%s_u", options.weight_name);
  s->vector_name = td__intern (name);
  return hook;
}

TdHook *
td_spectral_normalization_new_ (const TdSpectralNormOpt *options)
{
  static const TdSpectralNormOpt defaults = { TD_SPECTRAL_NORM_DEFAULTS };

  return td_spectral_normalization_new_at (options != NULL ? *options : defaults, NULL);
}
