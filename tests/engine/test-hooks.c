/* Hooks: four moments of operations and of links, where they are registered, what they see, and
 * that they change nothing.
 *
 * SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- a hook that writes down what it is told --- */

typedef struct
{
  char text[4000];
  int n_pre, n_post;
  double last_in, last_out, last_gy, last_gx;
} Diary;

static void
note (Diary *d, const char *moment, const char *what)
{
  size_t used = strlen (d->text);

  snprintf (d->text + used, sizeof d->text - used, "%s %s;", moment, what);
}

static double
sum_of (TdVar *const *vars, int n)
{
  double sum = 0;

  for (int i = 0; i < n; i++)
    if (vars[i] != NULL && td_dtype (vars[i]) == TD_F32)
      sum += td_item (td_sum (vars[i]));
  return sum;
}

static void
forward_pre (TdHook *hook, void *self, const TdFunctionCall *call)
{
  Diary *d = self;

  (void)hook;
  assert_true (call->out == NULL && call->gy == NULL && call->gx == NULL && call->id == 0);
  d->n_pre++;
  d->last_in = sum_of (call->in, call->n_in);
  note (d, call->in_backward ? "(pre" : "pre", call->label);
}

static void
forward_post (TdHook *hook, void *self, const TdFunctionCall *call)
{
  Diary *d = self;

  (void)hook;
  d->n_post++;
  assert_true (call->id > 0 && call->out != NULL);
  d->last_out = sum_of (call->out, call->n_out);
  note (d, call->in_backward ? "post)" : "post", call->label);
}

static void
backward_pre (TdHook *hook, void *self, const TdFunctionCall *call)
{
  Diary *d = self;

  (void)hook;
  assert_true (call->gx == NULL && call->gy != NULL);
  d->last_gy = sum_of (call->gy, call->n_out);
  note (d, "back", call->label);
}

static void
backward_post (TdHook *hook, void *self, const TdFunctionCall *call)
{
  Diary *d = self;

  (void)hook;
  d->last_gx = sum_of (call->gx, call->n_in);
  note (d, "done", call->label);
}

static void
added (TdHook *hook, void *self, TdLink *link)
{
  (void)hook;
  note (self, "added", link != NULL ? td_link_path (link) : "everywhere");
}

static void
deleted (TdHook *hook, void *self, TdLink *link)
{
  (void)hook;
  note (self, "deleted", link != NULL ? td_link_path (link) : "everywhere");
}

static const TdHookClass diary_class = { .size = sizeof (TdHookClass),
                                         .name = "Diary",
                                         .self_bytes = sizeof (Diary),
                                         .added = added,
                                         .deleted = deleted,
                                         .forward_preprocess = forward_pre,
                                         .forward_postprocess = forward_post,
                                         .backward_preprocess = backward_pre,
                                         .backward_postprocess = backward_post };

static TdVar *
ramp (int n)
{
  return td_variable (td_arange (TD_F32, -1, n - 1, 1), "x");
}

/* --- operations --- */

static void
hk01__a_function_hook_hears_four_moments_with_their_values (void **state)
{
  TdHook *hook = td_hook_new (&diary_class);
  Diary *d = td_hook_self (hook);
  TdVar *x = ramp (4), *y, *z; /* -1 0 1 2 */

  (void)state;
  assert_int_equal (td_hook_add (hook), TD_OK);
  y = td_relu (x);
  assert_true (d->last_in == 2 && d->last_out == 3);
  z = td_sum (y);
  assert_string_equal (d->text, "added everywhere;pre ReLU;post ReLU;pre Sum;post Sum;");
  d->text[0] = '\0';
  assert_int_equal (td_backward (z, 0), TD_OK);
  assert_true (d->last_gy == 4 && d->last_gx == 2); /* relu's: where x is above 0 */
  assert_non_null (strstr (d->text, "back Sum;"));
  assert_non_null (strstr (d->text, "done Sum;"));
  assert_true (strstr (d->text, "done Sum;") < strstr (d->text, "back ReLU;"));
  assert_non_null (strstr (d->text, "(pre")); /* backward is made of operations itself */
  assert_int_equal (d->n_pre, d->n_post);
  assert_int_equal (td_hook_remove (hook), TD_OK);
  d->text[0] = '\0';
  td_relu (x);
  assert_string_equal (d->text, "");
}

static void
hk01__with_hook_registers_for_a_block (void **state)
{
  TdHook *hook = td_hook_new (&diary_class);
  Diary *d = td_hook_self (hook);
  TdVar *x = ramp (3);

  (void)state;
  TD_WITH_HOOK (hook)
    {
      td_relu (x);
      break; /* leaves the block, as in every block of the library */
    }
  td_tanh (x);
  assert_string_equal (d->text, "added everywhere;pre ReLU;post ReLU;deleted everywhere;");
}

static void
hook__on_one_kind_of_operation_hears_no_other (void **state)
{
  TdHook *hook = td_hook_new (&diary_class);
  Diary *d = td_hook_self (hook);
  TdVar *x = ramp (3), *y;

  (void)state;
  assert_int_equal (td_hook_add_to_op (hook, "tanh"), TD_OK);
  y = td_sum (td_tanh (td_relu (x)));
  assert_int_equal (td_backward (y, 0), TD_OK);
  assert_string_equal (d->text, "added everywhere;pre Tanh;post Tanh;back Tanh;done Tanh;");
}

static void
hook__on_one_node_hears_its_backward (void **state)
{
  TdHook *hook = td_hook_new (&diary_class);
  Diary *d = td_hook_self (hook);
  TdVar *x = ramp (3), *a = td_relu (x), *b = td_relu (a);

  (void)state;
  assert_int_equal (td_hook_add_to_creator (hook, b), TD_OK);
  assert_int_equal (td_backward (td_sum (td_relu (b)), 0), TD_OK);
  assert_string_equal (d->text, "added everywhere;back ReLU;done ReLU;");
  assert_int_equal (td_hook_add_to_creator (hook, x), TD_ERR_ARG);
  assert_contains (said (TD_ERR_ARG), "a variable that an operation made expected");
}

static void
hooks__refuse_equal_names_at_one_place (void **state)
{
  TdHook *a = td_hook_new (&diary_class), *b = td_hook_new (&diary_class);
  TdLink *l = td_linear_new (NULL, "l", 2, 2);

  (void)state;
  assert_int_equal (td_hook_add (a), TD_OK);
  assert_int_equal (td_hook_add (b), TD_ERR_ARG);
  assert_contains (said (TD_ERR_ARG), "a hook named Diary is registered there already");
  assert_int_equal (td_link_add_hook (l, b), TD_OK);
  assert_int_equal (td_hook_remove (a), TD_OK);
  assert_int_equal (td_hook_add (b), TD_OK);
  assert_int_equal (td_link_remove_hook (l, a), TD_ERR_ARG);
  assert_contains (said (TD_ERR_ARG), "l has no hook Diary");
  td_hook_add (NULL);
  assert_contains (said (TD_ERR_STATE), "the hook is NULL");
  td_hook_add (td_hook_new (NULL));
  assert_contains (said (TD_ERR_ARG), "a hook class has its size and a name");
}

/* What a hook computes dies with it, builds no graph and is heard by no hook. */
static void
hooks__leave_the_model_as_it_was (void **state)
{
  float with[2][6], without[2][6];
  TdLink *l = td_linear_new (NULL, "l", 3, 2);
  TdVar *x = td_rand (TD_F32, TD_SHAPE (2, 3));

  (void)state;
  for (int i = 0; i < 2; i++)
    {
      float (*to)[6] = i == 0 ? without : with;
      TdMemInfo before = td_mem_info (NULL), after;
      TdHook *hook = td_hook_new (&diary_class);

      if (i == 1)
        td_hook_add (hook);
      TD_SCOPE ("step")
        {
          TdVar *h = td_link (l, x), *y = td_sum (td_mul (td_tanh (h), td_relu (h)));

          td_cleargrads (l);
          assert_int_equal (td_backward (y, 0), TD_OK);
          assert_int_equal (td_backward (y, 0), TD_OK); /* adds in place without hooks */
          td_read (td_grad (td_link_param (l, "W")), to[0], sizeof to[0]);
          td_read (td_link_param (l, "W"), to[1], sizeof to[1]);
        }
      td_cleargrads (l);
      after = td_mem_info (NULL);
      assert_int_equal (after.live_vars, before.live_vars);
      assert_int_equal (after.live_ops, before.live_ops);
      assert_int_equal (after.live_bytes, before.live_bytes);
      td_hook_free (hook);
    }
  assert_memory_equal (with, without, sizeof with);
}

static void
remove_me (TdHook *hook, void *self, const TdFunctionCall *call)
{
  (void)self, (void)call;
  td_hook_free (hook);
}

static void
hooks__may_free_themselves_while_they_run (void **state)
{
  static const TdHookClass once = { .size = sizeof (TdHookClass),
                                    .name = "Once",
                                    .self_bytes = 64,
                                    .forward_postprocess = remove_me };
  TdHook *first = td_hook_new (&once), *hook = td_hook_new (&diary_class);
  Diary *d = td_hook_self (hook);

  (void)state;
  td_hook_add (first);
  td_hook_add (hook);
  td_relu (ramp (3));
  td_relu (ramp (3));
  assert_int_equal (d->n_post, d->n_pre);
  assert_true (d->n_post >= 2);
}

static void
hooks__hear_how_a_call_failed (void **state)
{
  TdHook *hook = td_hook_new (&diary_class);
  Diary *d = td_hook_self (hook);
  TdVar *x = ramp (3), *W = td_zeros (TD_F32, TD_SHAPE (2, 4));

  (void)state;
  td_hook_add (hook);
  td_matmul (x, W, false, false); /* the check of shapes comes before any hook */
  assert_contains (said (TD_ERR_SHAPE), "matmul");
  assert_int_equal (d->n_pre, 0);
}

/* --- links --- */

typedef struct
{
  char text[2000];
  double gy[8], gx[8];
  int n;
} LinkDiary;

static void
link_note (LinkDiary *d, const char *moment, const TdLinkCall *call)
{
  size_t used = strlen (d->text);

  assert_string_equal (call->path, td_link_path (call->link));
  snprintf (d->text + used, sizeof d->text - used, "%s %s;", moment, call->path);
}

static void
link_pre (TdHook *hook, void *self, const TdLinkCall *call)
{
  (void)hook;
  link_note (self, "in", call);
  assert_true (call->n_in >= 1 && call->out == NULL);
}

static void
link_post (TdHook *hook, void *self, const TdLinkCall *call)
{
  (void)hook;
  link_note (self, "out", call);
  assert_non_null (call->out);
}

static void
link_back (TdHook *hook, void *self, const TdLinkCall *call)
{
  (void)hook;
  assert_non_null (call->gy);
  link_note (self, "back", call);
}

static void
link_done (TdHook *hook, void *self, const TdLinkCall *call)
{
  LinkDiary *d = self;

  (void)hook;
  link_note (d, "done", call);
  d->gy[d->n] = sum_of (call->gy, call->n_out);
  d->gx[d->n++] = sum_of (call->gx, call->n_in);
}

static const TdHookClass link_diary_class = { .size = sizeof (TdHookClass),
                                              .name = "LinkDiary",
                                              .self_bytes = sizeof (LinkDiary),
                                              .link_forward_preprocess = link_pre,
                                              .link_forward_postprocess = link_post,
                                              .link_backward_preprocess = link_back,
                                              .link_backward_postprocess = link_done };

static TdLink *
two_layers (void)
{
  TdLink *net = td_sequential_new ("net");

  td_linear_new (net, "l1", 3, 3, .initialW = td_init_constant (0.5));
  td_sequential_append (net, td_tanh);
  td_linear_new (net, "l2", 3, 2, .initialW = td_init_constant (2));
  return net;
}

static void
hk01__a_link_hook_hears_its_link_forward_and_backward (void **state)
{
  TdLink *net = two_layers ();
  TdHook *hook = td_hook_new (&link_diary_class);
  LinkDiary *d = td_hook_self (hook);
  TdVar *x = td_variable (td_zeros (TD_F32, TD_SHAPE (1, 3)), "x");

  (void)state;
  assert_int_equal (td_link_add_hook (td_link_child (net, "l2"), hook), TD_OK);
  assert_int_equal (td_backward (td_sum (td_link (net, x)), 0), TD_OK);
  assert_string_equal (d->text, "in net/l2;out net/l2;back net/l2;done net/l2;");
  assert_true (d->gy[0] == 2 && d->gx[0] == 2 * 2 * 3);
  d->text[0] = '\0';
  assert_int_equal (td_link_remove_hook (td_link_child (net, "l2"), hook), TD_OK);
  td_link (net, x);
  assert_string_equal (d->text, "");
}

static void
call_net (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)n_in, (void)n_out;
  out[0] = td_link (self, in[0]);
}

/* Static functions run as code while there are hooks, and again as schedule after those. */
static void
hook__that_saw_a_link_is_gone_when_it_is_freed (void **state)
{
  TdLink *net = two_layers ();
  TdStatic *s = td_static_new (call_net, net);
  TdHook *hook = td_hook_new (&link_diary_class);
  TdVar *x = td_variable (td_zeros (TD_F32, TD_SHAPE (1, 3)), "x");

  (void)state;
  td_link_add_hook (td_link_child (net, "l2"), hook);
  for (int i = 0; i < 4; i++)
    TD_SCOPE ("call")
      {
        assert_int_equal (td_backward (td_sum (td_static_call1 (s, x)), 0), TD_OK);
        if (i == 1)
          td_hook_free (hook);
      }
  assert_int_equal (td_static_info (s).n_replays, 1);
  td_static_free (s);
}

static void
hk01__a_global_link_hook_hears_all_links_nested (void **state)
{
  TdLink *net = two_layers ();
  TdHook *hook = td_hook_new (&link_diary_class);
  LinkDiary *d = td_hook_self (hook);
  TdVar *x = td_variable (td_zeros (TD_F32, TD_SHAPE (1, 3)), "x");

  (void)state;
  TD_WITH_HOOK (hook)
    assert_int_equal (td_backward (td_sum (td_link (net, x)), 0), TD_OK);
  assert_string_equal (d->text,
                       "in net;in net/l1;out net/l1;in net/l2;out net/l2;out net;"
                       "back net;back net/l2;done net/l2;back net/l1;done net/l1;done net;");
}

/* Two uses of one input by the link, one outside: the hook sees the link's share alone. */
static TdStatus
square_and_add (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)link, (void)self, (void)n_in, (void)n_out;
  out[0] = td_add (td_mul (in[0], in[0]), td_mul_scalar (in[0], 3));
  out[1] = td_mul_scalar (in[0], 100);
  return TD_OK;
}

static const TdLinkClass square_class
    = { .size = sizeof (TdLinkClass), .name = "Square", .forward = square_and_add };

static void
link_backward__sees_what_the_call_adds_to_its_inputs (void **state)
{
  TdLink *l = td_link_define (&square_class);
  TdHook *hook = td_hook_new (&link_diary_class);
  LinkDiary *d = td_hook_self (hook);
  TdVar *x = td_variable (td_full (TD_F32, TD_SHAPE (2), 5), "x"), *out[2];

  (void)state;
  td_link_add_hook (l, hook);
  for (int i = 0; i < 2; i++) /* two calls, each with its own backward */
    {
      assert_int_equal (td_link_call (l, &x, 1, out, 2), TD_OK);
      x = i == 0 ? out[0] : x;
    }
  assert_int_equal (td_backward (td_sum (td_add (td_mul_scalar (out[0], 2), x)), 0), TD_OK);
  assert_string_equal (d->text, "in Square;out Square;in Square;out Square;"
                                "back Square;done Square;back Square;done Square;");
  assert_true (d->gy[0] == 2 * 2 && d->gx[0] == 2 * 2 * (2 * 40 + 3));
  assert_true (d->gy[1] == d->gx[0] + 2 && d->gx[1] == d->gy[1] * (2 * 5 + 3));
}

static void
link_backward__goes_with_double_backprop_and_grad_of (void **state)
{
  TdLink *net = two_layers ();
  TdHook *hook = td_hook_new (&link_diary_class);
  LinkDiary *d = td_hook_self (hook);
  TdVar *x = td_variable (td_rand (TD_F32, TD_SHAPE (1, 3)), "x"), *gx, *y, *plain;
  float a[3], b[3];

  (void)state;
  y = td_sum (td_link (net, x));
  td_grad_of (&y, 1, &x, 1, NULL, TD_DOUBLE_BACKPROP, &plain);
  plain = td_sum (td_mul (plain, plain));
  td_grad_of (&plain, 1, &x, 1, NULL, 0, &gx);
  td_read (gx, a, sizeof a);
  td_hook_add (hook);
  y = td_sum (td_link (net, x));
  td_grad_of (&y, 1, &x, 1, NULL, TD_DOUBLE_BACKPROP, &plain);
  assert_int_equal (d->n, 3);
  plain = td_sum (td_mul (plain, plain));
  td_grad_of (&plain, 1, &x, 1, NULL, 0, &gx);
  td_read (gx, b, sizeof b);
  assert_memory_equal (a, b, sizeof a);
}

static void
link_hooks__keep_no_graph_alive (void **state)
{
  TdLink *net = two_layers ();
  TdVar *x = td_variable (td_zeros (TD_F32, TD_SHAPE (1, 3)), "x");
  TdMemInfo before = td_mem_info (NULL), after;

  (void)state;
  td_hook_add (td_hook_new (&link_diary_class));
  for (int i = 0; i < 300; i++)
    TD_SCOPE ("call")
      {
        TD_NO_BACKPROP
          td_link (net, x);
        (void)td_link (net, x);
      }
  after = td_mem_info (NULL);
  assert_int_equal (after.live_vars, before.live_vars);
  assert_int_equal (after.live_ops, before.live_ops);
  assert_int_equal (after.live_bytes, before.live_bytes);
}

static void
link_hooks__go_with_their_link (void **state)
{
  TdLink *l = td_linear_new (NULL, "l", 2, 2);
  TdHook *hook = td_hook_new (&diary_class);

  (void)state;
  td_link_add_hook (l, hook);
  td_link_free (l);
  assert_string_equal (((Diary *)td_hook_self (hook))->text, "added l;deleted l;");
  assert_int_equal (td_hook_remove (hook), TD_ERR_ARG);
  assert_contains (said (TD_ERR_ARG), "registered nowhere");
}

/* --- HK02: PyTorch's pre-hook --- */

static void
print_shape (TdLink *module, TdVar *const *x, int n, void *user)
{
  char *text = user;
  size_t used = strlen (text);

  snprintf (text + used, 200 - used, "%s %d input (%lld, %lld);", td_link_path (module), n,
            (long long)td_shape (x[0]).dim[0], (long long)td_shape (x[0]).dim[1]);
}

static void
hk02__register_forward_pre_hook_prints_shapes_of_that_layer_only (void **state)
{
  TdLink *net = two_layers ();
  char text[200] = "";
  TdHook *first
      = td_link_register_forward_pre_hook (td_link_child (net, "l1"), print_shape, text);

  (void)state;
  td_link (net, td_zeros (TD_F32, TD_SHAPE (7, 3)));
  assert_string_equal (text, "net/l1 1 input (7, 3);");
  td_hook_free (first);
  td_link (net, td_zeros (TD_F32, TD_SHAPE (7, 3)));
  assert_string_equal (text, "net/l1 1 input (7, 3);");
}

/* --- HK03, HK04: reports --- */

static void
hk03__report_scope_replaces_the_observation_inside_and_restores_it (void **state)
{
  TdObservation *outer = td_observation_new (), *inner = td_observation_new ();

  (void)state;
  TD_REPORT_SCOPE (outer)
    {
      td_report ("epoch", 1);
      TD_REPORT_SCOPE (inner)
        {
          td_report ("loss", 7);
          break; /* leaves the scope early, as an error would */
        }
      td_report ("loss", 2);
    }
  assert_int_equal ((int)td_observation_get (inner, "loss").n, 1);
  assert_true (td_observation_get (inner, "loss").last == 7);
  assert_int_equal ((int)td_observation_get (inner, "epoch").n, 0);
  assert_true (td_observation_get (outer, "loss").last == 2);
  td_observation_free (inner);
  td_observation_free (outer);
}

static void
hk04__report_for_prefixes_the_link_and_keeps_no_graph (void **state)
{
  TdLink *model = td_chain_new ("main");
  TdObservation *o = td_observation_new ();
  TdMemInfo before = td_mem_info (NULL);

  (void)state;
  TD_REPORT_SCOPE (o)
    TD_SCOPE ("step")
      {
        TdVar *loss = td_sum (td_tanh (ramp (3)));

        td_report_for (model, "loss", td_item (loss));
        td_report ("loss", 4);
      }
  assert_int_equal ((int)td_observation_get (o, "main/loss").n, 1);
  assert_true (td_observation_get (o, "loss").last == 4);
  assert_int_equal (td_mem_info (NULL).live_ops, before.live_ops);
  td_observation_free (o);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    engine_test (hk01__a_function_hook_hears_four_moments_with_their_values),
    engine_test (hk01__with_hook_registers_for_a_block),
    engine_test (hook__on_one_kind_of_operation_hears_no_other),
    engine_test (hook__on_one_node_hears_its_backward),
    engine_test (hooks__refuse_equal_names_at_one_place),
    engine_test (hooks__leave_the_model_as_it_was),
    engine_test (hooks__may_free_themselves_while_they_run),
    engine_test (hooks__hear_how_a_call_failed),
    engine_test (hk01__a_link_hook_hears_its_link_forward_and_backward),
    engine_test (hook__that_saw_a_link_is_gone_when_it_is_freed),
    engine_test (hk01__a_global_link_hook_hears_all_links_nested),
    engine_test (link_backward__sees_what_the_call_adds_to_its_inputs),
    engine_test (link_backward__goes_with_double_backprop_and_grad_of),
    engine_test (link_hooks__keep_no_graph_alive),
    engine_test (link_hooks__go_with_their_link),
    engine_test (hk02__register_forward_pre_hook_prints_shapes_of_that_layer_only),
    engine_test (hk03__report_scope_replaces_the_observation_inside_and_restores_it),
    engine_test (hk04__report_for_prefixes_the_link_and_keeps_no_graph),
  };

  return cmocka_run_group_tests_name ("hooks", tests, NULL, NULL);
}
