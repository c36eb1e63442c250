/* Guards: whatever a trace depended on and the engine can see is planted to change, and is
 * caught at the first wrong call, with the result of define-by-run and a line on what changed.
 *
 * SPDX-License-Identifier: MIT */
#include "static-rig.h"

#include "../support/fake-remote.h"

#include <stddef.h>
#include <string.h>

/* --- one function that reads everything --- */

typedef struct
{
  float factor;
} Scaled;

static TdStatus
scaled_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)link;
  (void)n_in;
  (void)n_out;
  out[0] = td_mul_scalar (in[0], (double)((const Scaled *)self)->factor);
  return td_poisoned (out[0]) ? TD_ERR_STATE : TD_OK;
}

static const TdLinkClass scaled_class = { .size = sizeof (TdLinkClass),
                                          .name = "Scaled",
                                          .self_bytes = sizeof (Scaled),
                                          .forward = scaled_forward };

typedef struct
{
  TdLink *root, *scaled, *l1, *l2;
  TdVar *captured, *gate;
  TdVar *x, *y;
  int32_t depth;
  TdHook *hook;
} World;

static void
world_forward (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  World *w = self;
  TdVar *h = td_link (w->l1, td_link (w->scaled, in[0]));

  (void)n_in;
  (void)n_out;
  for (int32_t i = 0; i < w->depth; i++)
    h = td_link (td_link_child (w->root, "l2"), h);
  h = td_add (h, w->captured);
  if (td_item (w->gate) > 0)
    h = td_tanh (h);
  out[0] = td_add (h, td_sum (td_cast (in[1], TD_F32)));
}

static void
make_world (World *w)
{
  *w = (World){ .root = td_chain_new ("world"), .depth = 1 };
  w->scaled = td_link_new (&scaled_class, w->root, "scaled");
  ((Scaled *)td_link_self (w->scaled))->factor = 1.5f;
  w->l1 = td_linear_new (w->root, "l1", 4, 6);
  w->l2 = td_linear_new (w->root, "l2", 6, 6);
  fill_params (w->root, 2);
  w->captured = td_retain (some (TD_SHAPE (6), 3));
  w->gate = td_retain (td_ones (TD_F32, TD_SHAPE (1)));
  w->x = td_retain (some (TD_SHAPE (5, 4), 4));
  w->y = td_retain (some (TD_SHAPE (2), 5));
}

static void
free_world (World *w)
{
  td_release (w->captured);
  td_release (w->gate);
  td_release (w->x);
  td_release (w->y);
  td_link_free (w->root);
}

static void
replace (TdVar **v, TdVar *by)
{
  td_release (*v);
  *v = td_retain (by);
}

static void
other_rows (World *w)
{
  replace (&w->x, some (TD_SHAPE (7, 4), 4));
}

static void
other_axes (World *w)
{
  replace (&w->x, some (TD_SHAPE (5, 4, 1), 4));
}

static void
other_dtype (World *w)
{
  replace (&w->y, td_full (TD_F64, TD_SHAPE (2), 3));
}

static void
wants_gradient (World *w)
{
  td_variable (w->x, "x");
}

static void
same_array (World *w)
{
  replace (&w->y, w->x);
}

static void
parameter_replaced (World *w)
{
  td_link_free (w->l1);
  w->l1 = td_linear_new (w->root, "l1", 4, 6);
  fill_params (w->l1, 55);
}

static void
parameter_added (World *w)
{
  td_link_add_param (w->l2, "extra", TD_SHAPE (2));
  td_write (td_link_param (w->l2, "extra"), (float[]){ 1, 2 }, 8);
}

static void
link_added (World *w)
{
  td_linear_new (w->root, "l3", 2, 2);
  fill_params (w->root, 3);
}

static void
link_removed (World *w)
{
  td_link_free (w->l2);
  w->depth = 0;
}

static void
link_swapped (World *w)
{
  td_link_free (w->l2);
  w->l2 = td_linear_new (w->root, "l2", 6, 6, .nobias = true);
  fill_params (w->l2, 77);
}

static void
self_of_a_link (World *w)
{
  ((Scaled *)td_link_self (w->scaled))->factor = -2;
}

static void
registered_memory (World *w)
{
  w->depth = 2;
}

static void
host_read (World *w)
{
  td_write (w->gate, (float[]){ -1 }, 4);
}

static void
captured_replaced (World *w)
{
  replace (&w->captured, some (TD_SHAPE (6), 6));
}

static void
captured_wants_gradient (World *w)
{
  td_variable (w->captured, "captured");
}

static void
statistics_off (World *w)
{
  (void)w;
  td_config_set (train, 0);
}

/* clang-format off */
static const struct
{
  const char *name;
  void (*violate) (World *w);
  const char *words[5];
} plants[] = {
  { "shape",     other_rows,         { "argument:", "argument 0 has shape (7, 4), (5, 4) before" } },
  { "axes",      other_axes,         { "argument 0 has shape (5, 4, 1), (5, 4) before" } },
  { "dtype",     other_dtype,        { "argument 1 is f64, f32 before" } },
  { "gradient",  wants_gradient,     { "argument 0 wants a gradient" } },
  { "alias",     same_array,         { "argument 1 has shape" } },
  { "config",    statistics_off,     { "config:", "config.train is 0, 1 before" } },
  { "parameter", parameter_replaced, { "links:", "world/l1/b" } },
  { "extra",     parameter_added,    { "links:", "world/l2/extra" } },
  { "added",     link_added,         { "links:", "world/l3/b" } },
  { "removed",   link_removed,       { "links:", "world/l2" } },
  { "swapped",   link_swapped,       { "links:", "world/l2/W" } },
  { "self",      self_of_a_link,     { "host memory:", "world/scaled", "-2", "1.5", "test-static-guards.c:" } },
  { "memory",    registered_memory,  { "host memory:", "depth", "2, 1 before", "test-static-guards.c:" } },
  { "read",      host_read,          { "host read:", "-1, 1 before", "test-static-guards.c:" } },
  { "captured",  captured_replaced,  { "captured variable:", "gone", "test-static-guards.c:" } },
  { "captured gradient", captured_wants_gradient, { "captured variable:", "wants a gradient" } },
};
/* clang-format on */

static void
violated (void *user)
{
  int which = *(int *)user;
  World w;
  TdStatic *s = td_static_new (world_forward, &w, .fuse = false);

  make_world (&w);
  td_static_watch (s, "depth", &w.depth, sizeof w.depth);
  for (int i = 0; i < 6; i++)
    TD_SCOPE ("call")
      {
        TdVar *in[2], *out;

        if (i == 3)
          plants[which].violate (&w);
        in[0] = w.x;
        in[1] = w.y;
        assert_int_equal (td_static_call (s, in, 2, &out, 1), TD_OK);
        note (out);
        if (i == 2)
          expect_calls (s, 1, 2);
        if (i == 3)
          {
            expect_calls (s, 2, 2); /* the first wrong call */
            for (int k = 0; k < 5 && plants[which].words[k] != NULL; k++)
              expect_miss (s, plants[which].words[k], NULL);
            if (is_static_run ())
              assert_int_equal (td_static_info (s).n_misses, 1);
          }
        td_cleargrads (w.root);
        td_backward (td_sum (out), 0);
        note_link (w.root);
      }
  expect_calls (s, 2, 4); /* and what came of it is replayed */
  td_config_set (train, 1);
  td_static_free (s);
  free_world (&w);
}

static void
guards__catch_each_planted_change_at_the_first_wrong_call (void **state)
{
  (void)state;
  for (int i = 0; i < (int)(sizeof plants / sizeof *plants); i++)
    {
      print_message ("planted: %s\n", plants[i].name);
      run_both (violated, &i);
    }
}

/* --- every setting --- */

#define FIELD(name)                                                                            \
  {                                                                                            \
    offsetof (TdConfig, name), #name                                                           \
  }
static const struct
{
  size_t offset;
  const char *name;
} fields[] = { FIELD (train),          FIELD (enable_backprop),
               FIELD (debug),          FIELD (type_check),
               FIELD (dtype),          FIELD (use_cudnn),
               FIELD (autotune),       FIELD (cudnn_deterministic),
               FIELD (tf32),           FIELD (keep_graph_on_report),
               FIELD (lazy_grad_sum),  FIELD (warn_nondeterministic),
               FIELD (stale_retained), FIELD (channels_last),
               FIELD (keep_graph) };

static void
square (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)self;
  (void)n_in;
  (void)n_out;
  out[0] = td_add (td_mul (in[0], in[0]), in[n_in - 1]);
}

static void
guards__hold_every_setting_but_use_static_graph (void **state)
{
  TdStatic *s = td_static_new (square, NULL, .minimize_cache_size = false);
  TdVar *x = some (TD_SHAPE (3), 1);

  (void)state;
  assert_int_equal (sizeof fields / sizeof *fields + 1, sizeof (TdConfig) / sizeof (int));
  td_static_call1 (s, x);
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
    {
      int old = *(const int *)(const void *)((const char *)td_config () + fields[i].offset);
      TdConfigSave save = td__config_push (fields[i].offset, old == 0);

      assert_int_equal (td_static_info (s).n_traces, i + 1);
      td_static_call1 (s, x);
      if (td_static_info (s).n_traces != i + 2
          || strstr (td_static_last_miss (s), fields[i].name) == NULL)
        fail_msg ("%s: %s", fields[i].name, td_static_last_miss (s));
      td__config_pop (&save);
      td_static_call1 (s, x);
    }
}

/* --- devices --- */

static void
guards__hold_the_device_and_refuse_two (void **state)
{
  TdStatic *s = td_static_new (square, NULL, .minimize_cache_size = false);
  TdDevice *remote = fake_remote_start ();
  TdVar *x = some (TD_SHAPE (3), 1), *far = td_to_device (x, remote), *out;
  TdVar *mixed[] = { x, far };

  (void)state;
  td_test_needs_cpu ("it brings a far device to set beside the CPU");
  for (int i = 0; i < 3; i++)
    out = td_static_call1 (s, x);
  assert_int_equal (td_static_info (s).n_replays, 2);
  for (int i = 0; i < 3; i++)
    {
      TdVar *y = td_static_call1 (s, far);

      assert_ptr_equal (td_device (y), remote);
      assert_bits (y, out);
      if (i == 0)
        assert_non_null (strstr (td_static_last_miss (s), "argument 0 is on remote, cpu"));
    }
  assert_int_equal (td_static_info (s).n_replays, 4);
  assert_int_not_equal (td_static_call (s, mixed, 2, &out, 1), TD_OK);
  assert_true (td_poisoned (out));
  assert_non_null (strstr (said (TD_ERR_DEVICE), "add"));
}

/* --- recurrent state --- */

typedef struct
{
  TdLink *root, *lstm, *head;
} Recurrent;

static void
recurrent_forward (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  const Recurrent *r = self;

  (void)n_in;
  (void)n_out;
  out[0] = td_link (r->head, td_link (r->lstm, in[0]));
}

static void
recurrent (void *user)
{
  Recurrent r = { .root = td_chain_new ("rnn") };
  TdStatic *s = td_static_new (recurrent_forward, &r, .fuse = false);

  (void)user;
  r.lstm = td_lstm_new (r.root, "lstm", 3, 4);
  r.head = td_linear_new (r.root, "head", 4, 2);
  fill_params (r.root, 9);
  for (unsigned i = 0; i < 3; i++)
    TD_SCOPE ("sequence")
      {
        TdVar *loss = NULL;

        td_lstm_reset_state (r.lstm);
        for (unsigned t = 0; t < 4; t++)
          {
            TdVar *y = sum_of_squares (td_static_call1 (s, some (TD_SHAPE (2, 3), i + t)));

            loss = loss == NULL ? y : td_add (loss, y);
          }
        td_cleargrads (r.root);
        td_backward (loss, 0);
        note (loss);
        note_link (r.root);
      }
  expect_calls (s, 12, 0);
  expect_miss (s, "keeps the state of a recurrent link", "td_stateless_lstm_new", NULL);
  if (is_static_run ())
    assert_int_equal (td_static_info (s).state, TD_STATIC_OFF);
  td_static_free (s);
  td_link_free (r.root);
}

static void
guards__a_link_with_state_runs_its_code_and_says_so (void **state)
{
  (void)state;
  run_both (recurrent, NULL);
}

/* One function reads h of the LSTM, the other only the layer behind it. */
typedef struct
{
  TdLink *root, *lstm, *head;
  bool reads;
} Beside;

static void
beside (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  const Beside *b = self;

  (void)n_in;
  (void)n_out;
  out[0] = td_link (b->head, b->reads ? td_add (in[0], td_lstm_h (b->lstm)) : in[0]);
}

static void
behind_a_recurrent_link (void *user)
{
  Beside b = { .root = td_chain_new ("net"), .reads = *(const bool *)user };
  TdStatic *s = td_static_new (beside, &b, .fuse = false);

  b.lstm = td_lstm_new (b.root, "lstm", 3, 4);
  b.head = td_linear_new (b.root, "head", 4, 2);
  fill_params (b.root, 9);
  for (unsigned i = 0; i < 6; i++)
    TD_SCOPE ("call")
      {
        td_lstm_reset_state (b.lstm);
        TdVar *h = td_link (b.lstm, some (TD_SHAPE (2, 3), i));
        TdVar *loss = sum_of_squares (td_static_call1 (s, h));

        td_cleargrads (b.root);
        td_backward (loss, 0);
        note (loss);
        note_link (b.root);
      }
  if (b.reads)
    expect_miss (s, "link state", NULL);
  expect_calls (s, b.reads ? 6 : 1, b.reads ? 0 : 5);
  td_static_free (s);
  td_link_free (b.root);
}

static void
guards__hold_the_state_of_links_where_the_code_reads_one (void **state)
{
  bool reads[] = { false, true };

  (void)state;
  for (int i = 0; i < 2; i++)
    run_both (behind_a_recurrent_link, &reads[i]);
}

/* --- what a schedule cannot hold --- */

typedef struct
{
  TdVar *other, *kept;
} Odd;

static void
writes (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Odd *odd = self;
  float now;

  (void)n_in;
  (void)n_out;
  td_read (odd->other, &now, sizeof now);
  now += 1;
  td_write (odd->other, &now, sizeof now);
  out[0] = td_add (in[0], odd->other);
}

static void
keeps (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Odd *odd = self;
  TdVar *h = td_mul (in[0], in[0]);

  (void)n_in;
  (void)n_out;
  td_release (odd->kept);
  odd->kept = td_retain (h);
  out[0] = td_tanh (h);
}

static void
uses_what_was_made (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  const Odd *odd = self;

  (void)n_in;
  (void)n_out;
  out[0] = td_add (in[0], odd->kept);
}

static void
odd_functions (void *user)
{
  static const TdStaticFn codes[] = { writes, keeps, uses_what_was_made };
  static const char *const words[] = { "td_write", "td_retain", "made outside" };

  (void)user;
  for (int k = 0; k < 3; k++)
    {
      Odd odd = { .other = td_retain (td_zeros (TD_F32, TD_SHAPE (1))) };
      TdStatic *s = td_static_new (codes[k], &odd, .fuse = false);

      odd.kept = td_retain (td_tanh (td_full (TD_F32, TD_SHAPE (1), 2)));
      if (k == 2)
        td_variable (odd.other, "other"), replace (&odd.kept, td_exp (odd.other));
      for (unsigned i = 0; i < 4; i++)
        {
          note (td_static_call1 (s, some (TD_SHAPE (1), i)));
          note (odd.other);
          note (odd.kept);
        }
      expect_calls (s, 4, 0);
      expect_miss (s, words[k], "test-static-guards.c:", NULL);
      td_static_free (s);
      td_release (odd.other);
      td_release (odd.kept);
    }
}

static void
guards__what_no_schedule_can_hold_runs_as_code (void **state)
{
  (void)state;
  run_both (odd_functions, NULL);
}

/* --- td_forget --- */

static void
forgotten (void *user, TdVar *const *xs, int n, TdVar **ys, int m)
{
  (void)n;
  (void)m;
  ys[0] = td_static_call1 (user, xs[0]);
}

static void
around (void *user)
{
  Net net = net_new ();
  TdStatic *s = td_static_new (net_forward, &net, .fuse = false, .minimize_cache_size = false);

  (void)user;
  for (unsigned i = 0; i < 4; i++)
    TD_SCOPE ("call")
      {
        TdVar *x = td_variable (some (TD_SHAPE (4, 5), i), "x"), *y;

        assert_int_equal (td_forget (forgotten, s, &x, 1, &y, 1), TD_OK);
        td_cleargrads (net.root);
        td_backward (sum_of_squares (y), 0);
        note (y);
        note (td_grad (x));
        note_link (net.root);
      }
  td_static_free (s);
  td_link_free (net.root);
}

static void
relu_of_link (void *user, TdVar *const *xs, int n, TdVar **ys, int m)
{
  (void)n;
  (void)m;
  ys[0] = td_dropout (td_relu (td_link (user, xs[0])), 0.3);
}

static void
forget_inside (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Net *net = self;
  TdVar *h;

  (void)n_in;
  (void)n_out;
  td_forget (relu_of_link, net->l1, in, 1, &h, 1);
  out[0] = td_link (net->l2, h);
}

static void
inside (void *user)
{
  Net net = net_new ();
  TdStatic *s = td_static_new (forget_inside, &net, .fuse = false);

  (void)user;
  for (unsigned i = 0; i < 4; i++)
    TD_SCOPE ("call")
      {
        TdVar *y = td_static_call1 (s, some (TD_SHAPE (4, 5), i));

        td_cleargrads (net.root);
        td_backward (sum_of_squares (y), 0);
        note (y);
        note_link (net.root);
      }
  td_static_free (s);
  td_link_free (net.root);
}

static void
guards__td_forget_around_and_inside_gives_the_same (void **state)
{
  (void)state;
  run_both (around, NULL);
  run_both (inside, NULL);
}

/* --- variables that come two ways --- */

static void
times_captured (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)n_in;
  (void)n_out;
  out[0] = td_mul (in[0], *(TdVar **)self);
}

static void
two_ways (void *user)
{
  TdVar *held = td_retain (td_variable (some (TD_SHAPE (3), 1), "held"));
  TdVar *other = td_retain (td_variable (some (TD_SHAPE (3), 2), "other"));
  TdStatic *s = td_static_new (times_captured, &held, .fuse = false);

  (void)user;
  for (int i = 0; i < 6; i++)
    TD_SCOPE ("call")
      {
        TdVar *y = td_static_call1 (s, i < 2 ? held : other);

        note (y);
        td_cleargrad (held);
        td_cleargrad (other);
        td_backward (td_sum (y), 0);
        note (td_grad (held));
        note (td_grad (other));
        if (i == 2)
          expect_miss (s, "argument identity: argument 0 is another variable, held before",
                       NULL);
      }
  expect_calls (s, 2, 4);
  td_static_free (s);
  td_release (held);
  td_release (other);
}

static void
alternating (void *user)
{
  TdVar *a = td_retain (some (TD_SHAPE (3), 1)), *b = td_retain (some (TD_SHAPE (3), 2));
  TdStatic *s = td_static_new (square, NULL, .fuse = false);

  (void)user;
  for (int i = 0; i < 8; i++)
    note (td_static_call1 (s, i % 2 ? a : b));
  expect_calls (s, 2, 6); /* seen once that the code uses none of them but as argument */
  td_static_free (s);
  td_release (a);
  td_release (b);
}

static void
one_memory (void *user)
{
  TdStatic *s = td_static_new (square, NULL, .fuse = false);

  (void)user;
  for (int i = 0; i < 4; i++)
    TD_SCOPE ("call")
      {
        TdVar *a = td_variable (some (TD_SHAPE (3), 1), "a");
        TdVar *b = i < 2 ? a : td_variable (td_reshape (a, TD_SHAPE (3)), "b"), *y;

        td_static_call (s, (TdVar *[]){ a, b }, 2, &y, 1);
        td_backward (td_sum (y), 0);
        note (td_grad (a));
        note (td_grad (b)); /* its own, though the memory is one */
      }
  expect_calls (s, 2, 2);
  td_static_free (s);
}

static void
guards__know_a_variable_from_its_memory_and_from_the_way_it_came (void **state)
{
  (void)state;
  run_both (two_ways, NULL);
  run_both (alternating, NULL);
  run_both (one_memory, NULL);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    engine_test (guards__catch_each_planted_change_at_the_first_wrong_call),
    engine_test (guards__hold_every_setting_but_use_static_graph),
    engine_test (guards__hold_the_device_and_refuse_two),
    engine_test (guards__a_link_with_state_runs_its_code_and_says_so),
    engine_test (guards__hold_the_state_of_links_where_the_code_reads_one),
    engine_test (guards__what_no_schedule_can_hold_runs_as_code),
    engine_test (guards__td_forget_around_and_inside_gives_the_same),
    engine_test (guards__know_a_variable_from_its_memory_and_from_the_way_it_came),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
