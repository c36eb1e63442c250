/* Static functions beside define-by-run: the two runs and what they noted.
 *
 * SPDX-License-Identifier: MIT */
#include "static-rig.h"
#include "static/entry.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct
{
  TdDtype dtype;
  int ndim; /* -1: no variable */
  int64_t n;
  void *bytes;
} Note;

typedef struct
{
  Note *notes;
  size_t n;
} Log;

static Log logs[2];
static int which;
static char doing[80];

bool
is_static_run (void)
{
  return which == 1;
}

static Note *
add_note (void)
{
  Log *l = &logs[which];

  l->notes = realloc (l->notes, (l->n + 1) * sizeof *l->notes);
  assert_non_null (l->notes);
  l->notes[l->n] = (Note){ 0 };
  return &l->notes[l->n++];
}

void
note (TdVar *v)
{
  Note *to = add_note ();
  size_t bytes;

  to->ndim = -1;
  if (v == NULL)
    return;
  to->ndim = td_ndim (v);
  to->n = td_size (v);
  to->dtype = td_dtype (v);
  bytes = (size_t)to->n * td_dtype_bytes (to->dtype);
  to->bytes = malloc (bytes + 1);
  assert_non_null (to->bytes);
  assert_int_equal (td_read (v, to->bytes, bytes), TD_OK);
}

void
note_number (double x)
{
  Note *to = add_note ();

  to->n = 1;
  to->dtype = TD_F64;
  to->bytes = malloc (sizeof x);
  assert_non_null (to->bytes);
  memcpy (to->bytes, &x, sizeof x);
}

static void
note_param (const char *path, TdVar *param, void *user)
{
  (void)path;
  (void)user;
  note (param);
  note (td_grad (param));
}

static void
note_statistics (const char *path, TdLink *link, void *user)
{
  (void)path;
  (void)user;
  if (strcmp (td_link_class_name (link), "BatchNormalization") != 0)
    return;
  note (td_link_param (link, "avg_mean"));
  note (td_link_param (link, "avg_var"));
}

void
note_link (TdLink *link)
{
  td_link_each_param (link, note_param, NULL);
  td_link_each (link, note_statistics, NULL);
}

static void
run (Scenario scenario, void *user, int as_static)
{
  which = as_static;
  td_set_seed (1);
  TD_USING (use_static_graph, as_static)
    TD_SCOPE ("scenario")
      {
        scenario (user);
        note (td_rand (TD_F32, TD_SHAPE (1)));
      }
  which = 0;
}

void
run_doing (const char *what, int number)
{
  snprintf (doing, sizeof doing, "%s %d: ", what, number);
}

static double
number_at (const Note *x, int64_t i)
{
  return x->dtype == TD_F64 ? ((const double *)x->bytes)[i]
                            : (double)((const float *)x->bytes)[i];
}

/* One unit in the last place of an array's largest number. */
static double
unit_of (const Note *x)
{
  double largest = 0;
  int exponent;

  for (int64_t i = 0; i < x->n; i++)
    largest = fmax (largest, fabs (number_at (x, i)));
  frexp (largest, &exponent);
  return ldexp (1, exponent - (x->dtype == TD_F64 ? 53 : 24));
}

static bool
same_element (const Note *a, const Note *b, int64_t i, double tolerance)
{
  size_t bytes = td_dtype_bytes (a->dtype);

  if (memcmp ((char *)a->bytes + (size_t)i * bytes, (char *)b->bytes + (size_t)i * bytes, bytes)
      == 0)
    return true;
  return (a->dtype == TD_F32 || a->dtype == TD_F64)
         && fabs (number_at (a, i) - number_at (b, i)) <= tolerance;
}

static void
compare_notes (size_t k, const Note *a, const Note *b, int ulps)
{
  bool is_float = a->dtype == TD_F32 || a->dtype == TD_F64;
  double tolerance;

  if (a->ndim != b->ndim || a->n != b->n || a->dtype != b->dtype)
    fail_msg ("%snote %zu: %d axes and %lld elements, %d and %lld replayed", doing, k, a->ndim,
              (long long)a->n, b->ndim, (long long)b->n);
  if (a->ndim < 0)
    return;
  tolerance = ulps > 0 && is_float ? ulps * unit_of (a) : 0;
  for (int64_t i = 0; i < a->n; i++)
    if (!same_element (a, b, i, tolerance))
      fail_msg ("%snote %zu, element %lld of %lld: %.9g, %.9g replayed", doing, k, (long long)i,
                (long long)a->n, is_float ? number_at (a, i) : 0,
                is_float ? number_at (b, i) : 0);
}

static void
compare (int ulps)
{
  assert_int_equal (logs[0].n, logs[1].n);
  for (size_t k = 0; k < logs[0].n; k++)
    compare_notes (k, &logs[0].notes[k], &logs[1].notes[k], ulps);
}

static void
forget_notes (void)
{
  for (int i = 0; i < 2; i++)
    {
      for (size_t k = 0; k < logs[i].n; k++)
        free (logs[i].notes[k].bytes);
      free (logs[i].notes);
      logs[i] = (Log){ 0 };
    }
}

void
run_near (Scenario scenario, void *user, int ulps)
{
  forget_notes (); /* of a test that failed */
  run (scenario, user, 0);
  run (scenario, user, 1);
  compare (ulps);
  forget_notes ();
}

void
run_both (Scenario scenario, void *user)
{
  run_near (scenario, user, 0);
}

void
expect_calls (TdStatic *s, uint64_t n_code, uint64_t n_replays)
{
  if (!is_static_run ())
    return;
  if (td_static_info (s).n_replays != n_replays || td_static_info (s).n_dynamic != n_code)
    fail_msg ("%llu calls ran the code and %llu the schedule, not %llu and %llu; last miss: %s",
              (unsigned long long)td_static_info (s).n_dynamic,
              (unsigned long long)td_static_info (s).n_replays, (unsigned long long)n_code,
              (unsigned long long)n_replays, td_static_last_miss (s));
}

void
expect_miss (TdStatic *s, ...)
{
  const char *word;
  va_list words;

  if (!is_static_run ())
    return;
  va_start (words, s);
  while ((word = va_arg (words, const char *)) != NULL)
    if (strstr (td_static_last_miss (s), word) == NULL)
      fail_msg ("\"%s\" in the last miss expected: %s", word, td_static_last_miss (s));
  va_end (words);
}

void
skip_off_cpu (void)
{
  if (strcmp (td_device_name (td_device (td_zeros (TD_F32, TD_SHAPE (1)))), "cpu") != 0)
    skip ();
}

void
assert_bits (TdVar *a, TdVar *b)
{
  size_t bytes = (size_t)td_size (a) * td_dtype_bytes (td_dtype (a));
  char *x = malloc (bytes + 1), *y = malloc (bytes + 1);

  assert_shape (a, td_shape (b));
  assert_int_equal (td_dtype (a), td_dtype (b));
  assert_int_equal (td_read (a, x, bytes), TD_OK);
  assert_int_equal (td_read (b, y, bytes), TD_OK);
  assert_memory_equal (x, y, bytes);
  free (x);
  free (y);
}

TdVar *
some (TdShape shape, unsigned seed)
{
  TdVar *v = td_zeros (TD_F32, shape);

  fill (v, seed);
  return v;
}

TdVar *
classes (int64_t n, int n_classes, unsigned seed)
{
  int32_t t[256];

  assert_true (n <= 256);
  for (int64_t k = 0; k < n; k++)
    t[k] = (int32_t)((k * 7 + (int64_t)seed) % n_classes);
  return td_tensor (TD_I32, TD_SHAPE (n), t);
}

static void
count_wrapped (void *user)
{
  ++*(int *)user;
}

void
net_forward (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Net *net = self;
  TdVar *h;

  (void)n_in;
  (void)n_out;
  net->n_code++;
  td_static_code (count_wrapped, &net->n_wrapped);
  h = td_link (net->bn, td_link (net->l1, in[0]));
  out[0] = td_link (net->l2, td_dropout (td_relu (h), 0.4));
}

Net
net_new (void)
{
  Net net = { .root = td_chain_new ("net"), .scale = 1 };

  net.l1 = td_linear_new (net.root, "l1", 5, 7);
  net.bn = td_batch_normalization_new (net.root, "bn", 7);
  net.l2 = td_linear_new (net.root, "l2", 7, 3);
  fill_params (net.root, 3);
  return net;
}

void
classifier_forward (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  static const TdSite site = { "net.c", "classifier", 42 };
  Net *net = self;
  TdVar *y = td_link (net->l2, td_relu (td_link (net->l1, in[0])));

  (void)n_in;
  (void)n_out;
  out[0] = td_softmax_cross_entropy_at (
      y, in[1], (TdCrossEntropyOpt){ TD_CROSS_ENTROPY_DEFAULTS }, &site);
}

TdVar *
sum_of_squares (TdVar *y)
{
  return td_sum (td_mul (y, y));
}

void
reading_forward (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Net *net = self;
  TdVar *h = td_link (net->l1, in[0]);

  (void)n_in;
  (void)n_out;
  h = net->tanh_instead ? td_tanh (h) : td_relu (h);
  h = td_mul_scalar (h, (double)net->scale);
  if (net->captured != NULL)
    h = td_add (h, net->captured);
  out[0] = h;
}

const TdPlan *
plan_of (TdStatic *s)
{
  assert_non_null (s->entries);
  assert_non_null (s->entries->plan);
  return s->entries->plan;
}
