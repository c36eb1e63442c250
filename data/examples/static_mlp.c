/* A multilayer perceptron as a static function, and what becomes of its side effects.
 *
 * Its code runs once: it is traced, and its schedule runs from then on.  So what is not an
 * operation happens once too - a counter stays at 1, a line is printed once - unless it is
 * wrapped in td_static_code, which is part of the schedule.  `.verify = 0` is why the code
 * never runs again: otherwise a static function compares itself with its code now and then.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <stddef.h>
#include <stdio.h>

enum
{
  N_ITERATIONS = 20,
  BATCH = 32
};

typedef struct
{
  TdLink *chain, *l1, *l2;
  int n_plain;   /* counted by plain code: only while the function is traced */
  int n_wrapped; /* counted by td_static_code: at every call */
} Mlp;

static void
count (void *user)
{
  ++*(int *)user;
}

static void
mlp_forward (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Mlp *m = self;
  TdVar *h = td_relu (td_link (m->l1, in[0]));

  (void)n_in;
  (void)n_out;
  m->n_plain++;
  td_static_code (count, &m->n_wrapped);
  printf ("a line of the function's code\n");
  out[0] = td_link (m->l2, h);
}

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);

  Mlp m = { .chain = td_chain_new ("mlp") };
  m.l1 = td_linear_new (m.chain, "l1", 28 * 28, 100);
  m.l2 = td_linear_new (m.chain, "l2", 100, 10);

  TdStatic *forward = td_static_new (mlp_forward, &m, .name = "mlp", .verify = 0,
                                     .self_bytes = offsetof (Mlp, n_plain));
  TdOpt *opt = td_sgd_new (m.chain, .lr = 0.1);
  TdDataset *digits = td_digits_open (TD_TRAIN);
  TdIter *iter = td_serial_iterator_new (digits, .batch_size = BATCH);

  TD_ITERATIONS (i, N_ITERATIONS)
    {
      TdBatch b = td_iter_next (iter);
      TdVar *y = td_static_call1 (forward, b.x);
      TdVar *loss = td_softmax_cross_entropy (y, b.t);

      td_cleargrads (m.chain);
      td_backward (loss, 0);
      td_opt_update (opt);
      td_report ("loss", td_item (loss));
    }

  TdStaticInfo info = td_static_info (forward);
  printf ("%d iterations: the plain counter is %d, the wrapped one %d\n", N_ITERATIONS,
          m.n_plain, m.n_wrapped);
  printf ("%d calls ran the code, %d the schedule\n", (int)info.n_dynamic, (int)info.n_replays);
  return td_finish ();
}
