/* L11: a mixture of experts: which expert a row goes to depends on its numbers, so every batch
 * has branches of its own.  experts=4 width=16 batch_size=12 iterations=5.
 * SPDX-License-Identifier: MIT */
#include "life.h"

enum
{
  MOST_EXPERTS = 16,
  MOST_ROWS = 256
};

typedef struct
{
  TdLink *root, *gate, *wide[MOST_EXPERTS], *narrow[MOST_EXPERTS], *out;
  int n;
} Model;

/* Rows of x, by their numbers: (n, width). */
static TdVar *
rows (TdVar *x, const int32_t *row, int64_t n)
{
  return td_embed_id (td_tensor (TD_I32, TD_SHAPE (n), row), x);
}

/* Each row through the expert that its gate likes best, times how much it does. */
static TdVar *
route (Model *m, TdVar *x, int64_t n)
{
  TdVar *share = td_softmax (td_link (m->gate, x)), *best = td_argmax (share, 1);
  int32_t chosen[MOST_ROWS], row[MOST_ROWS], back[MOST_ROWS];
  TdVar *made[MOST_EXPERTS];
  int n_made = 0;
  int32_t at = 0;

  best = td_cast (best, TD_I32);
  if (td_read (best, chosen, (size_t)n * sizeof *chosen) != TD_OK)
    return best;
  for (int e = 0; e < m->n; e++)
    {
      int64_t k = 0;

      for (int32_t i = 0; i < n; i++)
        if (chosen[i] == e)
          {
            row[k++] = i;
            back[i] = at++;
          }
      if (k > 0)
        made[n_made++]
            = td_link (m->narrow[e], td_relu (td_link (m->wide[e], rows (x, row, k))));
    }
  x = rows (td_concat (made, n_made, 0), back, n);
  share = td_reshape (td_select_item (share, best), TD_SHAPE (n, 1));
  return td_mul (x, td_broadcast_to (share, td_shape (x)));
}

/* The host reads which expert each row takes, and so the schedule of one batch is seldom that
 * of another. */
static void
loss_code (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Model *m = self;
  TdVar *y = td_add (in[0], route (m, in[0], td_shape (in[0]).dim[0]));

  (void)n_in;
  (void)n_out;
  out[0] = td_softmax_cross_entropy (td_link (m->out, y), in[1]);
}

int
main (int argc, char **argv)
{
  Model m = { 0 };

  life_begin (argc, argv);
  int64_t width = life_arg ("width", 16), n = life_arg ("batch_size", 12), end = life_end (5);
  m.n = (int)life_arg ("experts", 4);
  m.root = td_chain_new ("experts");
  m.gate = td_linear_new (m.root, "gate", width, m.n);
  for (int e = 0; e < m.n && e < MOST_EXPERTS; e++)
    {
      char name[32];

      snprintf (name, sizeof name, "expert%d", e);
      TdLink *c = td_chain_new (m.root, name);
      m.wide[e] = td_linear_new (c, "wide", width, 2 * width);
      m.narrow[e] = td_linear_new (c, "narrow", 2 * width, width);
    }
  m.out = td_linear_new (m.root, "out", width, 10);
  TdOpt *opt = td_adam_new (m.root, .lr = 5e-3);
  life_keep (m.root, opt);

  for (int64_t i = life_first (); i < end && td_error () == NULL; i++)
    TD_ITERATION (i)
      {
        TdVar *in[] = { life_array (TD_SHAPE (n, width), (uint32_t)i),
                        life_ids (TD_SHAPE (n), 10, (uint32_t)i) };
        TdVar *loss;

        life_call (loss_code, &m, in, 2, &loss, 1);
        td_cleargrads (m.root);
        td_backward (loss, 0);
        td_opt_update (opt);
        life_line (i, loss);
      }
  return life_finish ();
}
