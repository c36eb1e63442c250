/* Gradients checked against differences: first order, and second order by checking the gradient
 * of the gradient.
 *
 * The function under check is called again and again with one element moved; random numbers are
 * taken from the same place of the stream each time.
 *
 * *Source*: chainer/gradient_check.py.
 * SPDX-License-Identifier: MIT */
#include "core.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum
{
  MAX_OPERANDS = 32
};

/* A function, its inputs, and the weights of its outputs: what is differentiated is
 * sum (gys[k] * ys[k]). */
typedef struct
{
  TdCheckFn fn;
  void *user;
  TdVar *const *in;
  TdVar *const *gys; /* or NULL: weights made from the place of an element */
  int n_in, n_out;
  const char *call;
  const TdSite *site;
  uint64_t rng_offset;
} Check;

static bool
is_float (const TdVar *v)
{
  return td_dtype (v) <= TD_BF16;
}

static size_t
bytes_of (const TdVar *v)
{
  return (size_t)td_size (v) * td_dtype_bytes (td_dtype (v));
}

static TdStatus
status_now (void)
{
  return td__engine.has_error ? td__engine.error.status : TD_OK;
}

static void *
host_copy (const TdVar *v)
{
  void *host = malloc (bytes_of (v) + 1);

  if (host != NULL && td_read (v, host, bytes_of (v)) != TD_OK)
    {
      free (host);
      host = NULL;
    }
  return host;
}

static void
host_put (void *host, TdDtype dtype, int64_t i, double value)
{
  if (dtype == TD_F32)
    ((float *)host)[i] = (float)value;
  else
    ((double *)host)[i] = value;
}

/* Weights that no symmetry can hide an error from. */
static double
default_weight (int k, int64_t i)
{
  return 0.6 + 0.4 * sin (1.0 + 2.3 * (double)i + 0.7 * k);
}

static TdVar *
leaf (const Check *c, int i, const void *host)
{
  TdVar *v
      = td_to_device (td_tensor_at (td_dtype (c->in[i]), td_shape (c->in[i]), host, c->site),
                      td_device (c->in[i]));

  return is_float (v) ? td_variable_at (v, NULL, c->site) : v;
}

static void
call (const Check *c, TdVar *const *xs, TdVar **ys)
{
  for (int k = 0; k < c->n_out; k++)
    ys[k] = NULL;
  td__engine.rng_offset = c->rng_offset;
  c->fn (c->user, xs, c->n_in, ys, c->n_out);
  for (int k = 0; k < c->n_out; k++)
    if (ys[k] == NULL)
      {
        td__fail (TD_ERR_ARG, c->call, c->site, "the function gave no output %d", k);
        ys[k] = td__poison ();
      }
}

/* sum (gys[k] * ys[k]) over floating-point outputs. */
static double
weighted_sum (const Check *c, TdVar *const *ys)
{
  double sum = 0;

  for (int k = 0; k < c->n_out; k++)
    {
      TdVar *gy = c->gys != NULL ? c->gys[k] : NULL;
      void *y, *w;

      if (!is_float (ys[k]) || (c->gys != NULL && gy == NULL))
        continue;
      y = host_copy (ys[k]);
      w = gy != NULL ? host_copy (gy) : NULL;
      for (int64_t i = 0; y != NULL && i < td_size (ys[k]); i++)
        sum += td__host_element (y, td_dtype (ys[k]), i)
               * (w != NULL ? td__host_element (w, td_dtype (gy), i) : default_weight (k, i));
      free (y);
      free (w);
    }
  return sum;
}

/* The sum with element `at` of input i set to `value`. */
static double
value_at (const Check *c, void *const *host, int i, int64_t at, double value)
{
  TdVar *xs[MAX_OPERANDS], *ys[MAX_OPERANDS];
  double old = td__host_element (host[i], td_dtype (c->in[i]), at), sum = 0;

  host_put (host[i], td_dtype (c->in[i]), at, value);
  TD_SCOPE ("difference")
    TD_USING (enable_backprop, 0)
      {
        for (int k = 0; k < c->n_in; k++)
          xs[k] = leaf (c, k, host[k]);
        call (c, xs, ys);
        sum = weighted_sum (c, ys);
      }
  host_put (host[i], td_dtype (c->in[i]), at, old);
  return sum;
}

/* What a function does beside one element of an input. */
typedef struct
{
  double slope;       /* over both sides */
  double left, right; /* to each */
  double noise;       /* of a slope, by rounding alone */
} Sides;

/* Move element `at` of input i by eps to each side; `here` is the sum where it stands.  False
 * after td__fail: eps is lost beside the element. */
static bool
look_beside (const Check *c, void *const *host, int i, int64_t at, double eps, double here,
             Sides *sides)
{
  const TdDtype dtype = td_dtype (c->in[i]);
  const double x = td__host_element (host[i], dtype, at);
  double up = x + eps, down = x - eps, of_up, of_down;

  if (dtype == TD_F32) /* divide by the step that was really taken */
    {
      up = (double)(float)up;
      down = (double)(float)down;
    }
  if (up == x || down == x)
    {
      td__fail (TD_ERR_ARG, c->call, c->site,
                "eps = %g is too small beside an element %g of input %d, which is %s: the sum "
                "of both is %g again",
                eps, x, i, td_dtype_name (dtype), x);
      return false;
    }
  of_up = value_at (c, host, i, at, up);
  of_down = value_at (c, host, i, at, down);
  *sides = (Sides){ .slope = (of_up - of_down) / (up - down),
                    .left = (here - of_down) / (x - down),
                    .right = (of_up - here) / (up - x),
                    .noise = (dtype == TD_F32 ? 6e-8 : 1.2e-16)
                             * (fabs (here) + fabs (of_up) + fabs (of_down)) / (up - x) };
  return true;
}

/* Host copies of all inputs; false after an error. */
static bool
copy_inputs (Check *c, void **host)
{
  bool whole = td__engine.started && !td__engine.has_error;

  if (c->n_in > MAX_OPERANDS || c->n_out > MAX_OPERANDS)
    {
      td__fail (TD_ERR_ARG, c->call, c->site, "at most %d inputs and outputs expected",
                MAX_OPERANDS);
      return false;
    }
  for (int i = 0; i < c->n_in; i++)
    host[i] = NULL;
  for (int i = 0; i < c->n_in && whole; i++)
    {
      whole = td__var_usable (c->in[i], c->call, c->site)
              && (host[i] = host_copy (c->in[i])) != NULL;
      if (whole && (td_dtype (c->in[i]) == TD_F16 || td_dtype (c->in[i]) == TD_BF16))
        {
          td__fail (TD_ERR_DTYPE, c->call, c->site,
                    "differences need f32 or f64, input %d is %s", i,
                    td_dtype_name (td_dtype (c->in[i])));
          whole = false;
        }
    }
  c->rng_offset = td__engine.rng_offset;
  return whole;
}

static void
free_all (void **host, int n)
{
  for (int i = 0; i < n; i++)
    free (host[i]);
}

static bool
eps_fits (const Check *c, double eps)
{
  if (eps > 0 && isfinite (eps))
    return true;
  td__fail (TD_ERR_ARG, c->call, c->site, "eps > 0 expected, got %g", eps);
  return false;
}

/* A function, and the lists that it is called with, are there? */
static bool
complete (const Check *c)
{
  if (td__stranger (c->call) || !td__list_there (c->in, c->n_in, c->call, c->site))
    return false;
  if (c->fn == NULL)
    td__fail (TD_ERR_ARG, c->call, c->site, "a function expected, got NULL");
  return c->fn != NULL;
}

TdStatus
td_numerical_grad (TdCheckFn fn, void *user, TdVar *const *in, int n_in, TdVar *const *gys,
                   int n_out, double eps, TdVar **gxs)
{
  Check c = { fn, user, in, gys, n_in, n_out, "td_numerical_grad", td__engine.site, 0 };
  void *host[MAX_OPERANDS];

  if (!complete (&c) || !td__list_there (gxs, n_in, c.call, c.site))
    return td__error_status ();
  for (int i = 0; i < n_in; i++)
    gxs[i] = NULL;
  if (!eps_fits (&c, eps))
    return TD_ERR_ARG;
  if (copy_inputs (&c, host))
    for (int i = 0; i < n_in && status_now () == TD_OK; i++)
      {
        int64_t n = td_size (in[i]);
        double *g = is_float (in[i]) ? calloc ((size_t)n + 1, sizeof *g) : NULL;
        Sides sides;

        for (int64_t at = 0; g != NULL && at < n && status_now () == TD_OK; at++)
          if (look_beside (&c, host, i, at, eps, 0, &sides))
            g[at] = sides.slope;
        if (g != NULL)
          gxs[i] = td_to_device (td_tensor (TD_F64, td_shape (in[i]), g), td_device (in[i]));
        free (g);
      }
  if (n_in <= MAX_OPERANDS)
    free_all (host, n_in);
  return status_now ();
}

static TdVar *
weights_for (const TdVar *y, int k)
{
  int64_t n = td_size (y);
  void *host = calloc ((size_t)n + 1, sizeof (double));
  TdVar *w;

  if (host == NULL)
    return td__poison ();
  for (int64_t i = 0; i < n; i++)
    host_put (host, td_dtype (y), i, default_weight (k, i));
  w = td_to_device (td_tensor (td_dtype (y), td_shape (y), host), td_device (y));
  free (host);
  return w;
}

/* What backward says: gradients of all inputs, NULL where it says none. */
static TdStatus
analytic (const Check *c, void *const *host, TdVar **gxs)
{
  TdVar *xs[MAX_OPERANDS], *ys[MAX_OPERANDS], *used_y[MAX_OPERANDS], *used_gy[MAX_OPERANDS];
  TdVar *used_x[MAX_OPERANDS], *used_gx[MAX_OPERANDS];
  int n_y = 0, n_x = 0;
  TdStatus status;

  for (int i = 0; i < c->n_in; i++)
    xs[i] = leaf (c, i, host[i]);
  call (c, xs, ys);
  for (int k = 0; k < c->n_out; k++)
    {
      if (!is_float (ys[k]) || (c->gys != NULL && c->gys[k] == NULL))
        continue;
      used_gy[n_y] = c->gys != NULL ? c->gys[k] : weights_for (ys[k], k);
      used_y[n_y++] = ys[k];
    }
  for (int i = 0; i < c->n_in; i++)
    if (is_float (xs[i]))
      used_x[n_x++] = xs[i];
  status = status_now ();
  if (status == TD_OK)
    status = td_grad_of (used_y, n_y, used_x, n_x, used_gy, 0, used_gx);
  n_x = 0;
  for (int i = 0; i < c->n_in; i++)
    gxs[i] = is_float (xs[i]) && status == TD_OK ? used_gx[n_x++] : NULL;
  return status;
}

static void
place_text (const TdShape *shape, int64_t at, char *text, size_t size)
{
  TdShape place = *shape;

  for (int d = shape->ndim - 1; d >= 0; d--)
    {
      place.dim[d] = at % shape->dim[d];
      at /= shape->dim[d];
    }
  td_shape_text (&place, text, size);
}

/* At a kink the slopes to both sides differ however near one looks; where a smooth function
 * only bends, their difference becomes smaller with the step. */
static bool
kink_at (const Check *c, void *const *host, int i, int64_t at, const TdCheckOpt *o, double here,
         const Sides *sides)
{
  const double gap = sides->right - sides->left;
  Sides nearer;

  if (!(fabs (gap) > 10 * (o->atol + o->rtol * fabs (sides->slope)))
      || fabs (gap) < 0.1 * (fabs (sides->left) + fabs (sides->right)))
    return false;
  for (double eps = o->eps / 2; eps > o->eps / 5; eps /= 2)
    if (!look_beside (c, host, i, at, eps, here, &nearer) || fabs (gap) < 64 * nearer.noise
        || fabs (nearer.right - nearer.left - gap) > 0.1 * fabs (gap))
      return false;
  return true;
}

static TdStatus
fail_kink (const Check *c, int i, const char *place, const Sides *sides, double said)
{
  return td__fail (TD_ERR_NUMERIC, c->call, c->site,
                   "input %d at %s lies at a kink: slope %.9g to its left, %.9g to its "
                   "right, backward says %.9g: choose another point, or a smaller eps",
                   i, place, sides->left, sides->right, said);
}

/* Compare one input's gradient with differences, at `max_elements` places at most. */
static TdStatus
compare (const Check *c, void *const *host, int i, const TdVar *gx, const TdCheckOpt *o)
{
  int64_t n = td_size (c->in[i]), step = 1, worst_at = -1;
  void *g = gx != NULL ? host_copy (gx) : NULL;
  double worst = 0, said = 0, here;
  Sides found = { 0 }, sides;
  TdShape shape = td_shape (c->in[i]);
  char place[160];

  if (gx != NULL && (g == NULL || td_size (gx) != n))
    {
      free (g);
      return td__fail (TD_ERR_SHAPE, c->call, c->site,
                       "the gradient of input %d has another size than the input", i);
    }
  if (o->max_elements > 0 && n > o->max_elements)
    step = (n + o->max_elements - 1) / o->max_elements;
  here = n > 0 ? value_at (c, host, i, 0, td__host_element (host[i], td_dtype (c->in[i]), 0))
               : 0;
  for (int64_t at = 0; at < n && status_now () == TD_OK; at += step)
    {
      double a = g != NULL ? td__host_element (g, td_dtype (gx), at) : 0;
      double excess;

      if (!look_beside (c, host, i, at, o->eps, here, &sides))
        break;
      excess = fabs (a - sides.slope) - (o->atol + o->rtol * fabs (sides.slope));
      if (!(excess <= 0) && (worst_at < 0 || !(excess <= worst)))
        {
          worst = excess;
          worst_at = at;
          said = a;
          found = sides;
        }
      else if (excess <= 0 && kink_at (c, host, i, at, o, here, &sides))
        {
          place_text (&shape, at, place, sizeof place);
          fail_kink (c, i, place, &sides, a);
        }
    }
  free (g);
  if (worst_at < 0 || status_now () != TD_OK)
    return status_now ();
  place_text (&shape, worst_at, place, sizeof place);
  if (!isfinite (found.slope))
    return td__fail (TD_ERR_NUMERIC, c->call, c->site,
                     "the function is not finite beside input %d at %s, where backward says "
                     "%.9g: choose another point, or another eps",
                     i, place, said);
  /* What backward says lies between two different slopes: both are right. */
  if (fabs (found.left - found.right) > 10 * (o->atol + o->rtol * fabs (found.slope))
      && said >= fmin (found.left, found.right) - o->atol
      && said <= fmax (found.left, found.right) + o->atol)
    return fail_kink (c, i, place, &found, said);
  return td__fail (TD_ERR_NUMERIC, c->call, c->site,
                   "gradient of input %d at %s: backward says %.9g, differences say %.9g", i,
                   place, said, found.slope);
}

static TdStatus
check (Check *c, const TdCheckOpt *o)
{
  void *host[MAX_OPERANDS];
  TdVar *gxs[MAX_OPERANDS];
  TdStatus status;

  if (!complete (c))
    return td__error_status ();
  if (!eps_fits (c, o->eps))
    return TD_ERR_ARG;
  if (!copy_inputs (c, host))
    {
      if (c->n_in <= MAX_OPERANDS)
        free_all (host, c->n_in);
      return td__engine.has_error ? td__engine.error.status : TD_ERR_STATE;
    }
  TD_SCOPE ("gradient check")
    TD_USING (enable_backprop, 1)
      {
        status = analytic (c, host, gxs);
        for (int i = 0; i < c->n_in && status == TD_OK; i++)
          if (is_float (c->in[i]) && !(o->no_grads >> i & 1))
            status = compare (c, host, i, gxs[i], o);
      }
  td__engine.rng_offset = c->rng_offset;
  free_all (host, c->n_in);
  return status_now ();
}

TdStatus
td_check_backward_at (TdCheckFn fn, void *user, TdVar *const *in, int n_in, TdVar *const *gys,
                      int n_out, TdCheckOpt options, const TdSite *site)
{
  Check c = { fn, user, in, gys, n_in, n_out, "td_check_backward", site, 0 };

  return check (&c, &options);
}

TdStatus
td_check_backward_ (TdCheckFn fn, void *user, TdVar *const *in, int n_in, TdVar *const *gys,
                    int n_out, const TdCheckOpt *options)
{
  return td_check_backward_at (fn, user, in, n_in, gys, n_out,
                               options != NULL ? *options : td_check_options (),
                               td__engine.site);
}

/* --- second order: the gradients as a function of x and gy --- */

typedef struct
{
  TdCheckFn fn;
  void *user;
  int n_in, n_out;
  const TdVar *const *in;
  uint32_t float_out; /* outputs that have a gradient */
} Gradient;

/* in: x ..., gy ... (of the outputs in float_out); out: gradients of the floating-point x. */
static void
gradient_of (void *user, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  const Gradient *g = user;
  TdVar *ys[MAX_OPERANDS] = { NULL }, *used_y[MAX_OPERANDS], *xs[MAX_OPERANDS];
  TdVar *gxs[MAX_OPERANDS] = { NULL };
  int n_y = 0, n_x = 0;

  for (int i = 0; i < g->n_in; i++)
    if (is_float (in[i]))
      xs[n_x++] = in[i];
  TD_USING (enable_backprop, 1)
    {
      g->fn (g->user, in, g->n_in, ys, g->n_out);
      for (int k = 0; k < g->n_out; k++)
        if (g->float_out >> k & 1)
          used_y[n_y++] = ys[k];
      td_grad_of (used_y, n_y, xs, n_x, in + g->n_in, TD_DOUBLE_BACKPROP, gxs);
    }
  for (int i = 0; i < n_out; i++)
    out[i] = gxs[i] != NULL ? gxs[i] : td_zeros_like (xs[i]);
}

TdStatus
td_check_double_backward_at (TdCheckFn fn, void *user, TdVar *const *in, int n_in,
                             TdVar *const *gys, int n_out, TdCheckOpt options,
                             const TdSite *site)
{
  TdVar *all[2 * MAX_OPERANDS], *ys[MAX_OPERANDS] = { NULL };
  Gradient g = { .fn = fn, .user = user, .n_in = n_in, .n_out = n_out };
  Check c = { gradient_of, &g, all, NULL, n_in, 0, "td_check_double_backward", site, 0 };
  TdStatus status = TD_OK;

  if (!complete (&(Check){ fn, user, in, gys, n_in, n_out, c.call, site, 0 }))
    return td__error_status ();
  for (int i = 0; i < n_in; i++)
    if (!td__var_usable (in[i], c.call, site))
      return td__error_status ();
  if (n_in > MAX_OPERANDS || n_out > MAX_OPERANDS)
    return td__fail (TD_ERR_ARG, c.call, site, "at most %d inputs and outputs expected",
                     MAX_OPERANDS);
  TD_SCOPE ("double gradient check")
    {
      uint64_t rng_offset = td__engine.rng_offset;

      fn (user, in, n_in, ys, n_out); /* for the outputs' shapes */
      td__engine.rng_offset = rng_offset;
      for (int i = 0; i < n_in; i++)
        {
          all[i] = in[i];
          c.n_out += is_float (in[i]) ? 1 : 0;
        }
      for (int k = 0; k < n_out && status_now () == TD_OK; k++)
        if (ys[k] != NULL && is_float (ys[k]) && (gys == NULL || gys[k] != NULL))
          {
            g.float_out |= 1u << k;
            all[c.n_in++] = gys != NULL ? gys[k] : weights_for (ys[k], k);
          }
      status = status_now () == TD_OK ? check (&c, &options) : status_now ();
    }
  return status;
}

TdStatus
td_check_double_backward_ (TdCheckFn fn, void *user, TdVar *const *in, int n_in,
                           TdVar *const *gys, int n_out, const TdCheckOpt *options)
{
  return td_check_double_backward_at (fn, user, in, n_in, gys, n_out,
                                      options != NULL ? *options : td_check_options (),
                                      td__engine.site);
}

TdCheckOpt
td_check_options (void)
{
  return (TdCheckOpt){ TD_CHECK_DEFAULTS };
}
