/* L06: a binary TreeLSTM over random trees: every iteration has another graph, of three parts
 * that are the same in all (static=1 calls them through static functions).
 * units=24 batch_size=4 depth=4 iterations=5.  SPDX-License-Identifier: MIT */
#include "life.h"

enum
{
  WORDS = 30,
  CLASSES = 5
};

typedef struct
{
  TdLink *root, *embed, *leaf, *left, *right, *out;
  int64_t units;
  uint32_t seed;
  int64_t drawn;
} Model;

typedef struct
{
  TdVar *c, *h;
} State;

static int64_t
draw (Model *m, int64_t n)
{
  return (int64_t)(life_number (m->seed, m->drawn++) * (float)n);
}

/* Gates (1, 3 units) of a leaf, (1, 5 units) of a node, to its state. */
static State
gate (TdVar *gates, int n_children, const State *child)
{
  TdVar *part[5], *c;

  td_split_axis (gates, 3 + n_children, 1, part);
  c = td_mul (td_sigmoid (part[0]), td_tanh (part[2]));
  for (int i = 0; i < n_children; i++)
    c = td_add (c, td_mul (td_sigmoid (part[3 + i]), child[i].c));
  return (State){ c, td_mul (td_sigmoid (part[1]), td_tanh (c)) };
}

/* What is the same wherever it stands in a tree: a leaf, from its word; */
static void
leaf_code (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Model *m = self;
  State s = gate (td_link (m->leaf, td_link (m->embed, in[0])), 0, NULL);

  (void)n_in;
  (void)n_out;
  out[0] = s.c;
  out[1] = s.h;
}

/* a node, from the c and h of both children; */
static void
node_code (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Model *m = self;
  const State child[2] = { { in[0], in[1] }, { in[2], in[3] } };
  State s = gate (td_add (td_link (m->left, in[1]), td_link (m->right, in[3])), 2, child);

  (void)n_in;
  (void)n_out;
  out[0] = s.c;
  out[1] = s.h;
}

/* and what the label says of an h. */
static void
label_code (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Model *m = self;

  (void)n_in;
  (void)n_out;
  out[0] = td_softmax_cross_entropy (td_link (m->out, in[0]), in[1]);
}

static State
tree (Model *m, int depth, TdVar **loss, int *n)
{
  TdVar *s[2], *l;

  if (depth == 0 || draw (m, 4) == 0)
    {
      const int32_t word = (int32_t)draw (m, WORDS);

      life_call (leaf_code, m, (TdVar *[]){ td_tensor (TD_I32, TD_SHAPE (1), &word) }, 1, s, 2);
    }
  else
    {
      State child[2];

      child[0] = tree (m, depth - 1, loss, n);
      child[1] = tree (m, depth - 1, loss, n);
      life_call (node_code, m, (TdVar *[]){ child[0].c, child[0].h, child[1].c, child[1].h }, 4,
                 s, 2);
    }
  const int32_t label = (int32_t)draw (m, CLASSES);
  life_call (label_code, m, (TdVar *[]){ s[1], td_tensor (TD_I32, TD_SHAPE (1), &label) }, 2,
             &l, 1);
  *loss = *loss == NULL ? l : td_add (*loss, l);
  ++*n;
  return (State){ s[0], s[1] };
}

int
main (int argc, char **argv)
{
  Model m = { 0 };

  life_begin (argc, argv);
  int64_t u = m.units = life_arg ("units", 24), end = life_end (5);
  m.root = td_chain_new ("tree_lstm");
  m.embed = td_embed_id_new (m.root, "embed", WORDS, u);
  m.leaf = td_linear_new (m.root, "leaf", u, 3 * u);
  m.left = td_linear_new (m.root, "left", u, 5 * u);
  m.right = td_linear_new (m.root, "right", u, 5 * u, .nobias = true);
  m.out = td_linear_new (m.root, "out", u, CLASSES);
  TdOpt *opt = td_adagrad_new (m.root, .lr = 0.05);
  td_opt_add_hook (opt, td_weight_decay_new (1e-4));
  life_keep (m.root, opt);

  for (int64_t i = life_first (); i < end && td_error () == NULL; i++)
    TD_ITERATION (i)
      {
        TdVar *loss = NULL;
        int n = 0;

        m.seed = (uint32_t)i;
        m.drawn = 0;
        for (int64_t k = 0; k < life_arg ("batch_size", 4); k++)
          tree (&m, (int)life_arg ("depth", 4), &loss, &n);
        loss = td_div_scalar (loss, n);
        life_graph (loss);
        td_cleargrads (m.root);
        td_backward (loss, 0);
        td_opt_update (opt);
        life_line (i, loss);
      }
  return life_finish ();
}
