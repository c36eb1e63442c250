/* Shifts: a hyperparameter as a function of the number of steps; one table of functions.
 *
 * *Source*: chainer.training.extensions.{exponential,inverse,linear,multistep,polynomial,step,
 * warmup}_shift.
 * SPDX-License-Identifier: MIT */
#include "trainer.h"
#include "host-memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Shift Shift;
typedef struct
{
  TdExtensionClass cls;
  double (*at) (const Shift *s, double t);
  bool begins_elsewhere; /* its value at t = 0 is not init */
  /* Say whether values go away from 0, so that the target is their largest size. */
  bool (*grows) (const Shift *s);
} ShiftClass;

struct Shift
{
  const ShiftClass *kind;
  char *attr;
  TdOpt *opt;
  double a, b, c, d, init, target, last;
  int *steps;
  int n_steps;
  int64_t t;
  bool has_last;
};

static double
exponential (const Shift *s, double t)
{
  return s->init * pow (s->a, t);
}

static double
inverse (const Shift *s, double t)
{
  return s->init * pow (1 + s->a * t, -s->b);
}

static double
linear (const Shift *s, double t)
{
  if (t <= s->c)
    return s->a;
  if (t >= s->d)
    return s->b;
  return s->a + (t - s->c) / (s->d - s->c) * (s->b - s->a);
}

static double
multistep (const Shift *s, double t)
{
  int k = 0;

  while (k < s->n_steps && t >= s->steps[k])
    k++;
  return s->init * pow (s->a, k);
}

static double
polynomial (const Shift *s, double t)
{
  return s->init * pow (fmax (1 - t / s->b, 0), s->a);
}

static double
step (const Shift *s, double t)
{
  return s->init * pow (s->a, floor (t / s->b));
}

static double
warmup (const Shift *s, double t)
{
  return t >= s->b ? s->init : s->a + (s->init - s->a) * t / s->b;
}

static bool
rate_above_1 (const Shift *s)
{
  return s->a > 1;
}

static bool
power_below_0 (const Shift *s)
{
  return s->b < 0;
}

static bool
rate_below_0 (const Shift *s)
{
  return s->a < 0;
}

/* Almost min or max, and right for negative values too. */
static double
limited (const Shift *s, double value)
{
  double share;

  if (isnan (s->target) || s->kind->grows == NULL)
    return value;
  if (value == 0)
    return s->kind->grows (s) ? value : s->target;
  share = s->target / value;
  return (s->kind->grows (s) ? share < 1 : share > 1) ? s->target : value;
}

static TdOpt *
opt_of (const Shift *s, TdTrainer *t)
{
  return s->opt != NULL ? s->opt : td_updater_optimizer (t->updater, "main");
}

static void
set_value (Shift *s, TdOpt *opt, double value)
{
  td_opt_set_hyper (opt, NULL, s->attr, value);
  s->last = value;
  s->has_last = true;
}

static void
shift_initialize (void *self, TdTrainer *t)
{
  Shift *s = self;
  TdOpt *opt = opt_of (s, t);

  if (opt != NULL && isnan (s->init))
    s->init = td_opt_hyper (opt, NULL, s->attr);
  if (td__engine.has_error)
    return;
  if (s->has_last) /* a snapshot was loaded */
    set_value (s, opt, s->last);
  else
    set_value (s, opt, s->kind->begins_elsewhere ? s->kind->at (s, 0) : s->init);
}

static TdStatus
shift_call (void *self, TdTrainer *t)
{
  Shift *s = self;
  TdOpt *opt = opt_of (s, t);

  if (opt == NULL)
    return td__error_status ();
  s->t++;
  set_value (s, opt, limited (s, s->kind->at (s, (double)s->t)));
  return td__engine.has_error ? td__engine.error.status : TD_OK;
}

static void
shift_loaded (void *self)
{
  ((Shift *)self)->has_last = true;
}

static void
shift_serialize (void *self, TdSerializer *ser)
{
  Shift *s = self;

  td_serialize_int (ser, "_t", &s->t);
  td_serialize_double (ser, "_last_value", &s->last);
  /* Chainer takes the optimizer's value again, which a shift may have changed by then. */
  if (!td_serializer_loading (ser) || td_serializer_has (ser, "tapedeck_init"))
    td_serialize_double (ser, "tapedeck_init", &s->init);
  td_serializer_finally (ser, shift_loaded, s);
}

static void
shift_free (void *self)
{
  Shift *s = self;

  free (s->attr);
  free (s->steps);
}

#define SHIFT(class_name, function, elsewhere, grows_when)                                     \
  {                                                                                            \
    { .size = sizeof (TdExtensionClass),                                                       \
      .name = class_name,                                                                      \
      .self_bytes = sizeof (Shift),                                                            \
      .priority = TD_PRIORITY_READER,                                                          \
      .initialize = shift_initialize,                                                          \
      .call = shift_call,                                                                      \
      .serialize = shift_serialize,                                                            \
      .free = shift_free },                                                                    \
        function, elsewhere, grows_when                                                        \
  }
enum
{
  EXPONENTIAL,
  INVERSE,
  LINEAR,
  MULTISTEP,
  POLYNOMIAL,
  STEP,
  WARMUP
};
static const ShiftClass shifts[] = {
  [EXPONENTIAL] = SHIFT ("ExponentialShift", exponential, false, rate_above_1),
  [INVERSE] = SHIFT ("InverseShift", inverse, false, power_below_0),
  [LINEAR] = SHIFT ("LinearShift", linear, true, NULL),
  [MULTISTEP] = SHIFT ("MultistepShift", multistep, false, NULL),
  [POLYNOMIAL] = SHIFT ("PolynomialShift", polynomial, false, rate_below_0),
  [STEP] = SHIFT ("StepShift", step, false, rate_above_1),
  [WARMUP] = SHIFT ("WarmupShift", warmup, true, NULL),
};

/* A shift, or the inert one after td__fail unless ok. */
static TdExtension *
shift_new (int kind, const char *attr, double a, double b, TdShiftOpt o, bool ok,
           const char *expected)
{
  TdExtension *x;

  if (td__check_thread (shifts[kind].cls.name) != TD_OK)
    return td__extension_inert ();
  if (!ok || attr == NULL || *attr == '\0' || (o.optimizer != NULL && o.optimizer->inert))
    {
      td__fail (TD_ERR_ARG, shifts[kind].cls.name, NULL, "%s expected",
                ok ? "the name of a hyperparameter" : expected);
      return td__extension_inert ();
    }
  x = td_extension_new (&shifts[kind].cls);
  *(Shift *)x->self = (Shift){ .kind = &shifts[kind],
                               .attr = td__xstrdup (attr),
                               .opt = o.optimizer,
                               .a = a,
                               .b = b,
                               .init = o.init,
                               .target = o.target };
  return x;
}

TdExtension *
td_ext_exponential_shift_ (const char *attr, double rate, TdShiftOpt o)
{
  return shift_new (EXPONENTIAL, attr, rate, 0, o, rate >= 0, "a rate of 0 or more");
}

TdExtension *
td_ext_inverse_shift_ (const char *attr, double gamma, double power, TdShiftOpt o)
{
  return shift_new (INVERSE, attr, gamma, power, o, gamma >= 0, "a gamma of 0 or more");
}

TdExtension *
td_ext_linear_shift_ (const char *attr, double first, double last, double t1, double t2,
                      TdShiftOpt o)
{
  TdExtension *x
      = shift_new (LINEAR, attr, first, last, o, t1 <= t2, "a time range that goes forward");

  if (!x->inert)
    {
      ((Shift *)x->self)->init = first; /* not asked of the optimizer */
      ((Shift *)x->self)->c = t1;
      ((Shift *)x->self)->d = t2;
    }
  return x;
}

TdExtension *
td_ext_multistep_shift_ (const char *attr, double gamma, const int *steps, int n, TdShiftOpt o)
{
  bool ok = n >= 1 && steps != NULL;
  TdExtension *x;

  for (int i = 1; i < n && ok; i++)
    ok = steps[i - 1] <= steps[i];
  x = shift_new (MULTISTEP, attr, gamma, 0, o, ok, "steps in rising order");
  if (!x->inert)
    {
      Shift *s = x->self;

      s->steps = td__xcalloc ((size_t)n, sizeof *steps);
      memcpy (s->steps, steps, (size_t)n * sizeof *steps);
      s->n_steps = n;
    }
  return x;
}

TdExtension *
td_ext_polynomial_shift_ (const char *attr, double rate, double max_count, TdShiftOpt o)
{
  return shift_new (POLYNOMIAL, attr, rate, max_count, o, max_count > 0, "a max_count above 0");
}

TdExtension *
td_ext_step_shift_ (const char *attr, double gamma, double length, TdShiftOpt o)
{
  return shift_new (STEP, attr, gamma, length, o, gamma >= 0 && length > 0,
                    "a gamma of 0 or more and a step above 0");
}

TdExtension *
td_ext_warmup_shift_ (const char *attr, double warmup_start, double warmup_iter, TdShiftOpt o)
{
  return shift_new (WARMUP, attr, warmup_start, warmup_iter, o, warmup_iter > 0,
                    "a warmup_iter above 0");
}
