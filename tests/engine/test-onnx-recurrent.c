/* Recurrent layers as LSTM, GRU and RNN of ONNX: where the sequences are equally long they are
 * one node for each layer and direction, and compute the same elsewhere, with other batches
 * too.
 *
 * SPDX-License-Identifier: MIT */
#include "fixture.h"
#include "onnx-run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  STEPS = 4,
  IN = 3,
  UNITS = 5,
  LAYERS = 2,
  MOST_WEIGHTS = LAYERS * 2 * 8,
  N_BATCHES = 3
};
static const int64_t batches[N_BATCHES] = { 1, 3, 7 };

/* A layer: what it is called in a file, and what it is here. */
typedef struct
{
  const char *node;
  int n_weights, n_directions;
  bool has_c, rectifies, has_states;
} Kind;

static const Kind kinds[] = {
  { "LSTM", 8, 1, true, false, true },  { "LSTM", 8, 2, true, false, true },
  { "LSTM", 8, 1, true, false, false }, { "GRU", 6, 1, false, false, true },
  { "GRU", 6, 2, false, false, false }, { "RNN", 2, 1, false, false, true },
  { "RNN", 2, 2, false, false, true },  { "RNN", 2, 1, false, true, false },
  { "RNN", 2, 2, false, true, true },
};

/* Weights and biases, the same at each call. */
typedef struct
{
  TdLink *link;
  TdVar *w[MOST_WEIGHTS], *b[MOST_WEIGHTS];
} Weights;

static void
weights_new (Weights *w, const Kind *kind)
{
  w->link = td_chain_new ("rnn");
  for (int i = 0; i < LAYERS * kind->n_directions * kind->n_weights; i++)
    {
      const int cell = i / kind->n_weights, part = i % kind->n_weights;
      const int64_t wide = part >= kind->n_weights / 2 ? UNITS
                           : cell < kind->n_directions ? IN
                                                       : UNITS * kind->n_directions;
      char name[16];

      snprintf (name, sizeof name, "w%d", i);
      w->w[i] = td_link_add_param (w->link, name, TD_SHAPE (UNITS, wide));
      snprintf (name, sizeof name, "b%d", i);
      w->b[i] = td_link_add_param (w->link, name, TD_SHAPE (UNITS));
    }
  fill_params (w->link, 3);
}

/* x (n, steps, in), hx and cx -> hy, cy, and what the last step put out. */
static int
call (const Weights *w, const Kind *kind, TdVar *const *in, TdVar **out)
{
  TdVar *xs[STEPS], *ys[STEPS], *hx = kind->has_states ? in[1] : NULL,
                                *cx = kind->has_states ? in[2] : NULL;
  const TdRnnActivation f = kind->rectifies ? TD_RNN_RELU : TD_RNN_TANH;
  const bool both = kind->n_directions == 2;

  for (int t = 0; t < STEPS; t++)
    xs[t] = td_get_item (in[0], (TdSlice[]){ TD_ALL, TD_AT (t) }, 2);
  if (kind->has_c)
    (both ? td_n_step_bilstm : td_n_step_lstm) (LAYERS, 0, hx, cx, w->w, w->b, xs, STEPS,
                                                &out[0], &out[2], ys);
  else if (kind->n_weights == 6)
    (both ? td_n_step_bigru : td_n_step_gru) (LAYERS, 0, hx, w->w, w->b, xs, STEPS, &out[0],
                                              ys);
  else
    (both ? td_n_step_birnn : td_n_step_rnn) (LAYERS, 0, hx, w->w, w->b, xs, STEPS, f, &out[0],
                                              ys);
  out[1] = td_concat ((TdVar *[]){ ys[0], ys[2] }, 2, 1);
  return kind->has_c ? 3 : 2;
}

static int
inputs (const Kind *kind, int64_t n, TdVar **in)
{
  in[0] = td_zeros (TD_F32, TD_SHAPE (n, STEPS, IN));
  in[1] = td_zeros (TD_F32, TD_SHAPE (LAYERS * kind->n_directions, n, UNITS));
  in[2] = td_zeros (TD_F32, TD_SHAPE (LAYERS * kind->n_directions, n, UNITS));
  for (unsigned i = 0; i < 3; i++)
    fill (in[i], 7 * (unsigned)n + i);
  return !kind->has_states ? 1 : kind->has_c ? 3 : 2;
}

static int
count (const char *text, const char *word)
{
  int n = 0;

  for (const char *at = text; (at = strstr (at, word)) != NULL; at += strlen (word))
    n++;
  return n;
}

static const Weights *called;
static const Kind *called_kind;

static void
call_static (void *user, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)user, (void)n_in, (void)n_out;
  call (called, called_kind, in, out);
}

/* Out of the graph that ran, or of a static function where the states are left to the call. */
static void
save (const Weights *w, const Kind *kind, const char *path, int opset)
{
  const char *axes = !kind->has_states ? "0:0=batch"
                     : kind->has_c     ? "0:0=batch,1:1=batch,2:1=batch"
                                       : "0:0=batch,1:1=batch";
  TdVar *in[3], *out[3];
  const int n_in = inputs (kind, 2, in);
  int n_out = kind->has_c ? 3 : 2;
  TdStatic *function;

  if (kind->has_states)
    {
      TD_USING (keep_graph, 1)
        n_out = call (w, kind, in, out);
      assert_int_equal (td_save_onnx (out, (size_t)n_out, path, .in = in, .n_in = n_in,
                                      .opset = opset, .axes = axes),
                        TD_OK);
      return;
    }
  called = w;
  called_kind = kind;
  function = td_static_new (call_static, NULL);
  td_static_call (function, in, n_in, out, n_out);
  assert_int_equal (td_static_save (function, path, .opset = opset, .axes = axes), TD_OK);
  td_static_free (function);
}

static void
out__of_equally_long_sequences_is_one_node_a_layer_and_direction (void **state)
{
  static const char *const inside[] = { "Sigmoid", "Tanh", "Relu", "Split" };

  (void)state;
  td_test_python ("onnxruntime");
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    TD_SCOPE ("call")
      {
        Weights w;
        char *text, path[512];

        weights_new (&w, &kinds[i]);
        snprintf (path, sizeof path, "%s", td_test_tmp ("rnn.onnx"));
        save (&w, &kinds[i], path, i % 2 == 0 ? 17 : 21);
        for (int k = 0; k < N_BATCHES; k++)
          {
            TdVar *in[3], *out[3];
            const int n_in = inputs (&kinds[i], batches[k], in),
                      n_out = call (&w, &kinds[i], in, out);

            keep_case ("rnn.onnx", k, in, n_in, out, n_out);
          }
        text = run_onnx ("rnn.onnx", !kinds[i].rectifies); /* which the reference lacks */
        if (strstr (text, "3 runs\ninput0(batch,4,3) ") == NULL
            || count (text, kinds[i].node) != LAYERS * kinds[i].n_directions)
          fail_msg ("kind %zu: %s", i, text);
        for (size_t k = 0; k < sizeof inside / sizeof *inside; k++)
          assert_null (strstr (text, inside[k]));
        free (text);
        td_link_free (w.link);
      }
}

/* What comes in again runs here, too. */
static void
out__of_a_layer_comes_in_again (void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    TD_SCOPE ("call")
      {
        Weights w;
        TdVar *in[3], *out[3], *back[3];
        const int n_in = inputs (&kinds[i], 2, in);
        int n_out;
        TdLink *link;
        char path[512];

        weights_new (&w, &kinds[i]);
        snprintf (path, sizeof path, "%s", td_test_tmp ("rnn.onnx"));
        save (&w, &kinds[i], path, 20);
        n_out = call (&w, &kinds[i], in, out);
        link = td_onnx_load (path);
        assert_null (td_error ());
        assert_int_equal (td_link_call (link, in, n_in, back, n_out), TD_OK);
        for (int k = 0; k < n_out; k++)
          assert_same (back[k], out[k], 1e-6);
        td_link_free (link);
        td_link_free (w.link);
      }
}

/* --- steps that code takes one after the other --- */

static TdLink *first, *second;

static TdVar *
column (TdVar *x, int t)
{
  return td_get_item (x, (TdSlice[]){ TD_ALL, TD_AT (t) }, 2);
}

/* Each output is wanted before the next step begins. */
static TdVar *
plain (TdVar *x)
{
  TdVar *sum = NULL;

  for (int t = 0; t < STEPS; t++)
    {
      TdVar *h = td_square (td_link (first, column (x, t)));

      sum = sum == NULL ? h : td_add (sum, h);
    }
  return sum;
}

static TdVar *
stacked (TdVar *x)
{
  TdVar *h = NULL;

  for (int t = 0; t < STEPS; t++)
    h = td_link (second, td_link (first, column (x, t)));
  return h;
}

/* What comes out goes in again. */
static TdVar *
fed_back (TdVar *x)
{
  TdVar *h = td_link (first, column (x, 0));

  for (int t = 1; t < STEPS; t++)
    h = td_link (first, td_add (column (x, t),
                                td_get_item (h, (TdSlice[]){ TD_ALL, TD_RANGE (0, IN) }, 2)));
  return h;
}

/* Each of two layers has its inputs without itself, but the one needs the other, and the other
 * way round: one of them stays steps. */
static TdVar *
crossed (TdVar *x)
{
  TdVar *a = td_link (first, column (x, 0)),
        *b = td_link (
            second, td_get_item (td_concat ((TdVar *[]){ column (x, 0), column (x, 1) }, 2, 1),
                                 (TdSlice[]){ TD_ALL, TD_RANGE (0, UNITS) }, 2));
  TdVar *to_a = td_get_item (b, (TdSlice[]){ TD_ALL, TD_RANGE (0, IN) }, 2), *to_b = a;

  return td_add (td_link (first, to_a), td_link (second, to_b));
}

/* The cell after the second step is read as well. */
static TdVar *
cell_inside (TdVar *x)
{
  TdVar *c = NULL, *h = NULL;

  for (int t = 0; t < STEPS; t++)
    {
      h = td_link (first, column (x, t));
      if (t == 1)
        c = td_square (td_link_attr (first, "c"));
    }
  return td_add (h, c);
}

/* A sequence that ends after two steps. */
static TdVar *
of_two_lengths (TdVar *x)
{
  TdVar *h = NULL, *all[STEPS];

  for (int t = 0; t < STEPS; t++)
    {
      h = column (x, t);
      all[t] = td_link (first, t < 2 ? h : td_get_item (h, &TD_RANGE (0, 2), 1));
    }
  return td_concat (all, STEPS, 0);
}

static void
out__takes_steps_together_only_where_they_are_a_layer (void **state)
{
  static const struct
  {
    TdVar *(*call) (TdVar *x);
    int n; /* nodes of LSTM */
    const char *open;
  } rows[] = {
    { plain, 1, "batch" },   { stacked, 2, "batch" },     { fed_back, 0, "batch" },
    { crossed, 1, "batch" }, { cell_inside, 0, "batch" }, { of_two_lengths, 1, "3" },
  };

  (void)state;
  td_test_python ("onnxruntime");
  first = td_lstm_new (NULL, "first", IN, UNITS);
  second = td_lstm_new (NULL, "second", UNITS, UNITS);
  fill_params (first, 4);
  fill_params (second, 5);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    TD_SCOPE ("call")
      {
        char *text, name[32], path[512], input[64];
        const int n_batches = strcmp (rows[i].open, "batch") == 0 ? N_BATCHES : 1;

        snprintf (name, sizeof name, "steps%zu.onnx", i);
        snprintf (path, sizeof path, "%s", td_test_tmp (name));
        snprintf (input, sizeof input, "%d runs\ninput0(%s,4,3) ", n_batches, rows[i].open);
        for (int k = -1; k < n_batches; k++)
          {
            TdVar *x = td_zeros (
                      TD_F32, TD_SHAPE (k < 0 || n_batches == 1 ? 3 : batches[k], STEPS, IN)),
                  *y = NULL;

            fill (x, (unsigned)k + 9);
            td_link_reset_state (first);
            td_link_reset_state (second);
            TD_USING (keep_graph, 1)
              y = rows[i].call (x);
            if (k < 0)
              assert_int_equal (td_save_onnx (&y, 1, path, .in = &x, .n_in = 1), TD_OK);
            else
              keep_case (name, k, &x, 1, &y, 1);
          }
        text = run_onnx (name, true);
        if (strstr (text, input) == NULL || count (text, "/LSTM") != rows[i].n)
          fail_msg ("row %zu: %s", i, text);
        free (text);
      }
  td_link_free (first);
  td_link_free (second);
}

/* The link sorts whole sequences by numbers of the code: a file of others would be wrong. */
static void
out__of_sequences_that_a_link_sorts_keeps_their_lengths (void **state)
{
  TdLink *link = td_n_step_gru_new (NULL, "gru", 1, IN, UNITS, 0.0);
  TdVar *in[3], *out[3] = { NULL };
  char *text;

  (void)state;
  td_test_python ("onnxruntime");
  fill_params (link, 6);
  for (int equal = 0; equal < 2; equal++)
    TD_SCOPE ("call")
      {
        char name[32], path[512];

        snprintf (name, sizeof name, "sorted%d.onnx", equal);
        snprintf (path, sizeof path, "%s", td_test_tmp (name));
        in[0] = td_zeros (TD_F32, TD_SHAPE (1, 2, UNITS));
        in[1] = td_zeros (TD_F32, TD_SHAPE (STEPS - 1, IN));
        in[2] = td_zeros (TD_F32, TD_SHAPE (equal ? STEPS - 1 : STEPS, IN));
        for (unsigned i = 0; i < 3; i++)
          fill (in[i], i);
        TD_USING (keep_graph, 1)
          td_n_step_call (link, in[0], NULL, in + 1, 2, &out[0], NULL, out + 1);
        assert_int_equal (
            td_save_onnx (out, 3, path, .in = in, .n_in = 3, .axes = "1:0=length,2:0=other"),
            TD_OK);
        keep_case (name, 0, in, 3, out, 3);
        text = run_onnx (name, true);
        assert_non_null (
            strstr (text, equal ? "input1(3,3) input2(3,3)" : "input1(3,3) input2(4,3)"));
        assert_non_null (strstr (text, "fixed=length stays 3: embed_id at "));
        assert_non_null (strstr (text, equal ? "\nother stays 3: " : "\nother stays 4: "));
        assert_int_equal (count (text, "/GRU"), equal);
        free (text);
      }
  td_link_free (link);
}

/* Programs that run ONNX have these layers in float32 alone. */
static void
out__of_float64_is_written_step_by_step (void **state)
{
  TdVar *in[4], *h;
  char *text, path[512];

  (void)state;
  td_test_python ("onnxruntime");
  snprintf (path, sizeof path, "%s", td_test_tmp ("wide.onnx"));
  in[0] = wide (TD_SHAPE (2, STEPS, IN), 1);
  in[1] = wide (TD_SHAPE (UNITS, IN), 2);
  in[2] = wide (TD_SHAPE (UNITS, UNITS), 3);
  in[3] = wide (TD_SHAPE (2, UNITS), 4);
  h = in[3];
  TD_USING (keep_graph, 1)
    for (int t = 0; t < STEPS; t++)
      h = td_tanh (
          td_add (td_linear (column (in[0], t), in[1], NULL), td_linear (h, in[2], NULL)));
  assert_int_equal (td_save_onnx (&h, 1, path, .in = in, .n_in = 4), TD_OK);
  keep_case ("wide.onnx", 0, in, 4, &h, 1);
  text = run_onnx ("wide.onnx", true);
  assert_int_equal (count (text, "Tanh"), STEPS);
  assert_int_equal (count (text, "RNN"), 0);
  free (text);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    engine_test (out__of_equally_long_sequences_is_one_node_a_layer_and_direction),
    engine_test (out__of_a_layer_comes_in_again),
    engine_test (out__takes_steps_together_only_where_they_are_a_layer),
    engine_test (out__of_sequences_that_a_link_sorts_keeps_their_lengths),
    engine_test (out__of_float64_is_written_step_by_step),
  };

  return cmocka_run_group_tests_name ("onnx_recurrent", tests, NULL, NULL);
}
