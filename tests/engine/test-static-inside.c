/* Inside fused groups: what a debugger sees there is what the code computes operation by
 * operation, and nothing of the run knows that somebody looked.
 *
 * SPDX-License-Identifier: MIT */
#include "fixture.h"

#include "compute/core/core.h"
#include "static/static.h"
#include "quiet-observer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  MAX_SEEN = 1000,
  CALLS = 4,
  ROWS = 6,
  IN = 5,
  OUT = 7
};

/* What an operation left. */
typedef struct
{
  char key[100]; /* class, line, call */
  size_t bytes;
  TdDtype dtype;
  void *data;
} Seen;

typedef struct
{
  TdObserver observer; /* first */
  Seen seen[MAX_SEEN];
  int n, call;
  int n_groups, n_before, n_after, n_refused, n_backward, n_casts, n_products;
  bool exact; /* to the bit */
  bool looks; /* at what groups hold, instead of keeping what operations leave */
  const Seen *code;
  int n_code;
} Watch;

static void
name (char *key, size_t size, const TdOpClass *cls, const TdSite *site, int call)
{
  snprintf (key, size, "%s at %d in %d", cls->name, site != NULL ? site->line : 0, call);
}

static void
keep (Watch *w, const TdEvent *e)
{
  const TdNode *n = e->n_out > 0 ? e->out[0] : e->cls->writes == 1 ? e->in[0] : NULL;
  const TdBuffer *b = e->n_out > 0 ? e->out_buffers[0] : NULL;
  Seen *s = &w->seen[w->n];

  if (b == NULL && n != NULL)
    b = n->var != NULL ? n->var->buffer : n->retained;

  if (b == NULL || (e->cls->flags & TD_OP_VIEW))
    return;
  assert_true (w->n < MAX_SEEN);
  w->n++;
  name (s->key, sizeof s->key, e->cls, e->site, w->call);
  s->bytes = b->bytes;
  s->dtype = (TdDtype)n->dtype;
  s->data = malloc (b->bytes + 1);
  b->device->ops->download (b->device, s->data, b->data, b->bytes);
}

static TdDevice *
here (void)
{
  TdDevice *device = NULL;

  TD_SCOPE ("here")
    device = td_device (td_zeros (TD_F32, TD_SHAPE (1)));
  return device;
}

static bool
is_on_host (void)
{
  return here () == td_device_get ("cpu");
}

/* Are programs of element-by-element kernels made there? */
static bool
has_groups (void)
{
  return is_on_host () || here ()->ops->program_new != NULL;
}

static float
number (const void *data, TdDtype dtype, size_t i)
{
  float x;

  if (dtype == TD_F32)
    return ((const float *)data)[i];
  memcpy (&x, &(uint32_t){ (uint32_t)((const uint16_t *)data)[i] << 16 }, sizeof x);
  return x;
}

/* The same bits on the host; elsewhere as near as its kernels and the device's are. */
static bool
is_near (const Watch *w, const Seen *s, const TdInsideArray *a)
{
  const float most = s->dtype == TD_F32 ? 1e-5f : 1e-2f;
  const size_t n = s->bytes / td_dtype_bytes (s->dtype);

  if (s->bytes != a->bytes || s->dtype != a->step.dtype)
    return false;
  if (w->exact)
    return memcmp (s->data, a->data, s->bytes) == 0;
  for (size_t i = 0; i < n; i++)
    {
      const float x = number (s->data, s->dtype, i), y = number (a->data, s->dtype, i);

      if (!(fabsf (x - y) <= most * fmaxf (1, fabsf (x))))
        return false;
    }
  return true;
}

/* Some operation of that class and line left these numbers in that call of the code. */
static void
expect_known (const Watch *w, const TdInsideArray *a)
{
  char key[100];
  bool named = false;

  name (key, sizeof key, a->step.cls, a->step.site, w->call);
  for (int i = 0; i < w->n_code; i++)
    if (strcmp (w->code[i].key, key) == 0)
      {
        named = true;
        if (is_near (w, &w->code[i], a))
          return;
      }
  fail_msg ("%s: %s", key, named ? "other numbers than the code's" : "the code has none");
}

static bool
is_group (const TdEvent *e)
{
  return strcmp (e->cls->group, "static") == 0 && strchr (e->cls->name, '+') != NULL;
}

static void
look_inside (Watch *w, bool after)
{
  const uint32_t n = td__inside_n ();
  char why[200];

  assert_true (n >= 2);
  for (uint32_t k = 0; k < n; k++)
    {
      TdInsideArray a;

      if (!td__inside_run (k, &a, why, sizeof why))
        {
          assert_true (after
                       && !(td__engine.inside_wanted && w->exact)); /* kept on the host only */
          assert_non_null (strstr (why, "stop before it"));
          w->n_refused++;
          return;
        }
      expect_known (w, &a);
      w->n_casts += strcmp (a.step.cls->name, "cast") == 0;
      w->n_products += strcmp (a.step.cls->name, "linear") == 0;
      free (a.data);
    }
  *(after ? &w->n_after : &w->n_before) += 1;
}

static void
before (TdObserver *o, const TdEvent *e)
{
  Watch *w = (Watch *)(void *)o;

  if (!w->looks)
    return;
  if (is_group (e))
    {
      w->n_groups++;
      w->n_backward += e->phase == TD_PHASE_BACKWARD;
      look_inside (w, false);
    }
  else
    assert_int_equal (td__inside_n (), 0);
}

static void
after (TdObserver *o, const TdEvent *e)
{
  Watch *w = (Watch *)(void *)o;

  if (!w->looks)
    keep (w, e);
  else if (is_group (e))
    look_inside (w, true);
}

static Watch *
watch_new (void)
{
  Watch *w = calloc (1, sizeof *w);

  w->observer = quiet_observer;
  w->observer.before_op = before;
  w->observer.after_op = after;
  return w;
}

static void
watch_free (Watch *w)
{
  for (int i = 0; i < w->n; i++)
    free (w->seen[i].data);
  free (w);
}

/* --- a program --- */

typedef struct
{
  TdLink *root, *l1, *l2;
  TdVar *scale;
} Net;

/* A line for each operation. */
static void
forward (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Net *net = self;
  TdVar *a, *b, *c;

  (void)n_in;
  (void)n_out;
  a = td_link (net->l1, in[0]);
  a = td_relu (a);
  b = td_tanh (a);
  b = td_mul (b, net->scale);
  b = td_dropout (b, 0.25);
  c = td_cast (b, TD_BF16);
  c = td_mul_scalar (c, 0.3);
  c = td_cast (c, TD_F32);
  b = td_exp (b);
  b = td_add (b, c);
  b = td_add (b, a);
  out[0] = td_mean_squared_error (td_link (net->l2, b), in[1]);
}

typedef struct
{
  float W[OUT * IN], scale[OUT], losses[CALLS];
  double random;
  size_t live, peak;
} Result;

static TdVar *
array_of (TdShape shape, int seed)
{
  float x[64];
  const int64_t n = td_shape_size (&shape);

  assert_true (n <= 64);
  for (int64_t i = 0; i < n; i++)
    x[i] = (float)((i * 7 + seed * 3) % 13 - 6) / 5;
  return td_tensor (TD_F32, shape, x);
}

static void
run (Watch *w, Result *r)
{
  Net net;
  TdOpt *opt;
  TdStatic *s;
  TdMemInfo info;

  *r = (Result){ 0 };
  td_set_seed (4);
  net.root = td_chain_new ("net");
  net.l1 = td_linear_new (net.root, "l1", IN, OUT);
  net.l2 = td_linear_new (net.root, "l2", OUT, 2);
  net.scale
      = td_link_add_param (net.root, "scale", TD_SHAPE (OUT), TD_F32, td_init_constant (0.7));
  opt = td_momentum_sgd_new (net.root, .lr = 0.1);
  s = td_static_new (forward, &net);
  TD_ITERATIONS (i, CALLS)
    {
      TdVar *in[]
          = { array_of (TD_SHAPE (ROWS, IN), (int)i), array_of (TD_SHAPE (ROWS, 2), 1) };
      TdVar *loss;

      if (w != NULL)
        {
          w->call = (int)i;
          td__engine.observer = &w->observer;
        }
      assert_int_equal (td_static_call (s, in, 2, &loss, 1), TD_OK);
      td_cleargrads (net.root);
      assert_int_equal (td_backward (loss, 0), TD_OK);
      td__engine.observer = NULL;
      td_opt_update (opt);
      r->losses[i] = (float)td_item (loss);
    }
  td_read (td_link_param (net.l1, "W"), r->W, sizeof r->W);
  td_read (net.scale, r->scale, sizeof r->scale);
  r->random = td_item (td_rand (TD_F32, TD_SHAPE (1)));
  info = td_mem_info (td_device (net.scale));
  r->live = info.live_bytes;
  r->peak = info.peak_bytes;
  td_static_free (s);
  td_opt_free (opt);
  td_link_free (net.root);
}

/* What the code leaves, operation by operation. */
static Watch *
run_code (void)
{
  Watch *w = watch_new ();
  Result r;

  td_config_set (use_static_graph, false);
  run (w, &r);
  td_config_set (use_static_graph, true);
  return w;
}

static void
look (bool wanted, Watch **code, Watch **w)
{
  Result plain, watched;

  *code = run_code ();
  TD_SCOPE ("plain")
    run (NULL, &plain);
  *w = watch_new ();
  (*w)->looks = true;
  (*w)->exact = is_on_host ();
  (*w)->code = (*code)->seen;
  (*w)->n_code = (*code)->n;
  td__engine.inside_wanted = wanted;
  TD_SCOPE ("watched")
    run (*w, &watched);
  td__engine.inside_wanted = false;
  assert_memory_equal (plain.W, watched.W, sizeof plain.W);
  assert_memory_equal (plain.scale, watched.scale, sizeof plain.scale);
  assert_memory_equal (plain.losses, watched.losses, sizeof plain.losses);
  assert_true (plain.random == watched.random);
  assert_int_equal (plain.live, watched.live);
  assert_int_equal (plain.peak, watched.peak);
}

static void
groups__hold_what_the_code_computes (void **state)
{
  Watch *code, *w;

  (void)state;
  look (false, &code, &w);
  assert_true (w->n_groups >= (has_groups () ? 2 : 1) * (CALLS - 1));
  if (has_groups ())
    {
      assert_true (w->n_backward >= CALLS - 1);
      assert_true (w->n_casts > 0);
    }
  assert_true (w->n_products > 0);
  assert_int_equal (w->n_before, w->n_groups);
  assert_int_equal (w->n_after + w->n_refused, w->n_groups);
  watch_free (code);
  watch_free (w);
}

/* Behind them too, while a breakpoint looks at values. */
static void
groups__hold_it_behind_them_while_somebody_wants_that (void **state)
{
  Watch *code, *w;

  (void)state;
  look (true, &code, &w);
  assert_int_equal (w->n_before, w->n_groups);
  assert_int_equal (w->n_after + w->n_refused, w->n_groups);
  if (is_on_host ())
    assert_int_equal (w->n_refused, 0);
  watch_free (code);
  watch_free (w);
}

/* --- where NaN came from --- */

static void
negative_forward (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar *y;

  (void)self;
  (void)n_in;
  (void)n_out;
  y = td_mul_scalar (in[0], 2);
  y = td_tanh (y);
  y = td_log (y);
  y = td_add_scalar (y, 1);
  out[0] = td_exp (y);
}

static void
expect_log (TdObserver *o, const TdEvent *e)
{
  Watch *w = (Watch *)(void *)o;
  const uint32_t first = is_group (e) ? td__inside_first_nan () : 0;
  TdInsideArray a;
  char why[200];

  if (!is_group (e))
    return;
  w->n_groups++;
  assert_false (td__inside_run (td__inside_n (), &a, why, sizeof why));
  assert_string_equal (why, "the group has no such operation");
  if (w->call == 2)
    assert_string_equal (td__inside_step (first).cls->name, "log");
  else
    assert_int_equal (first, UINT32_MAX);
}

static void
groups__know_which_operation_made_the_first_nan (void **state)
{
  Watch *w = watch_new ();
  TdStatic *s = td_static_new (negative_forward, NULL);
  TdInsideArray a;
  char why[200];

  (void)state;
  w->observer.before_op = expect_log;
  w->observer.after_op = expect_log;
  td__engine.inside_wanted = true;
  for (w->call = 0; w->call < 4; w->call++)
    TD_SCOPE ("call")
      {
        TdVar *x = td_full (TD_F32, TD_SHAPE (5), w->call == 2 ? -0.5 : 0.5), *y;

        td__engine.observer = &w->observer;
        td_static_call (s, &x, 1, &y, 1);
        td__engine.observer = NULL;
      }
  td__engine.inside_wanted = false;
  assert_int_equal (td_static_info (s).n_replays, 3);
  assert_int_equal (w->n_groups, has_groups () ? 2 * 3 : 0);
  assert_int_equal (td__inside_n (), 0);
  assert_false (td__inside_run (0, &a, why, sizeof why));
  assert_string_equal (why, "the program does not stand at a fused group");
  assert_int_equal (td__inside_first_nan (), UINT32_MAX);
  td_static_free (s);
  watch_free (w);
}

int
main (void)
{
#define row(f) cmocka_unit_test_setup_teardown (f, fixture_setup, fixture_teardown)
  const struct CMUnitTest tests[] = {
    row (groups__hold_what_the_code_computes),
    row (groups__hold_it_behind_them_while_somebody_wants_that),
    row (groups__know_which_operation_made_the_first_nan),
  };

  return cmocka_run_group_tests_name ("static-inside", tests, NULL, NULL);
}
