/* A recursive net that reads the mood of phrases: the graph of each phrase is its own parse
 * tree.
 *
 *     recursive [ITERATIONS]
 *
 * A leaf is a word, an inner node joins two phrases: h = tanh (W [left; right] + b).  Every
 * node is classified as bad, neutral or good, as in Chainer's sentiment example; no two
 * iterations have the same graph, which is what define-by-run is for.  The phrases are made
 * here: adjectives have moods, "not" turns the mood of what follows, a phrase of two has the
 * stronger mood.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <stdio.h>
#include <stdlib.h>

enum
{
  BATCH = 16,
  UNITS = 24,
  MOST_NODES = 32
};

/* Mood from -2 to 2; NOT is no mood. */
enum
{
  NOT = 9
};
static const struct
{
  const char *word;
  int mood;
} words[] = {
  { "not", NOT },  { "film", 0 },  { "plot", 0 },      { "music", 0 }, { "good", 1 },
  { "great", 2 },  { "warm", 1 },  { "superb", 2 },    { "bad", -1 },  { "dull", -1 },
  { "awful", -2 }, { "cold", -1 }, { "dreadful", -2 },
};
enum
{
  N_WORDS = sizeof words / sizeof *words
};

/* A parse tree: node 0 is the root; leaves have a word. */
typedef struct
{
  struct
  {
    int word, left, right, mood;
  } node[MOST_NODES];
  int n;
} Tree;

/* The generator is the example's own, so that training and test phrases are the same for all.
 */
static unsigned
draw (unsigned *state, unsigned n)
{
  *state = *state * 1664525u + 1013904223u;
  return (*state >> 16) % n;
}

static int
grow (Tree *t, unsigned *state, int depth)
{
  int at = t->n++, left, right;

  if (depth == 0 || draw (state, 4) == 0)
    {
      int word = 1 + (int)draw (state, N_WORDS - 1);

      t->node[at].word = word;
      t->node[at].mood = words[word].mood;
      return at;
    }
  t->node[at].word = -1;
  if (draw (state, 3) == 0)
    {
      left = t->n++;
      t->node[left].word = 0;
      t->node[left].mood = 0;
      right = grow (t, state, depth - 1);
      t->node[at].mood = -t->node[right].mood;
    }
  else
    {
      left = grow (t, state, depth - 1);
      right = grow (t, state, depth - 1);
      int l = t->node[left].mood, r = t->node[right].mood;
      t->node[at].mood = abs (l) > abs (r) ? l : abs (r) > abs (l) ? r : l == r ? l : 0;
    }
  t->node[at].left = left;
  t->node[at].right = right;
  return at;
}

static Tree
tree_new (unsigned *state)
{
  Tree t = { .n = 0 };

  grow (&t, state, 3);
  return t;
}

typedef struct
{
  TdLink *chain, *embed, *join, *mood;
} Model;

/* The state of node `at`; its class is compared, and the loss of all nodes below is added up.
 */
static TdVar *
read_node (Model *m, const Tree *t, int at, TdVar **loss, int *right)
{
  const int32_t word = t->node[at].word, mood = t->node[at].mood;
  const int32_t label = mood < 0 ? 0 : mood > 0 ? 2 : 1;
  TdVar *h, *y, *l, *target = td_tensor (TD_I32, TD_SHAPE (1), &label);

  if (word >= 0)
    h = td_link (m->embed, td_tensor (TD_I32, TD_SHAPE (1), &word));
  else
    {
      TdVar *pair[2];

      pair[0] = read_node (m, t, t->node[at].left, loss, NULL);
      pair[1] = read_node (m, t, t->node[at].right, loss, NULL);
      h = td_tanh (td_link (m->join, td_concat (pair, 2, 1)));
    }
  y = td_link (m->mood, h);
  l = td_softmax_cross_entropy (y, target);
  *loss = *loss == NULL ? l : td_add (*loss, l);
  if (right != NULL)
    *right += td_item (td_accuracy (y, target)) > 0.5;
  return h;
}

static double
test_accuracy (Model *m, int n)
{
  unsigned state = 977;
  int right = 0;

  for (int i = 0; i < n && td_error () == NULL; i++)
    TD_NO_BACKPROP
      TD_SCOPE ("test")
        {
          Tree t = tree_new (&state);
          TdVar *loss = NULL;

          read_node (m, &t, 0, &loss, &right);
        }
  return (double)right / n;
}

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);

  int n_iterations = argc > 1 ? atoi (argv[1]) : 400;
  unsigned state = 1;
  Model m = { .chain = td_chain_new ("recursive") };
  m.embed
      = td_embed_id_new (m.chain, "embed", N_WORDS, UNITS, .initialW = td_init_normal (0.3));
  m.join = td_linear_new (m.chain, "join", 2 * UNITS, UNITS);
  m.mood = td_linear_new (m.chain, "mood", UNITS, 3);
  TdOpt *opt = td_adam_new (m.chain, .lr = 4e-3);

  for (int i = 0; i < n_iterations && td_error () == NULL; i++)
    TD_ITERATION (i)
      {
        TdVar *loss = NULL;
        int n_nodes = 0;

        for (int k = 0; k < BATCH; k++)
          {
            Tree t = tree_new (&state);

            n_nodes += t.n;
            read_node (&m, &t, 0, &loss, NULL);
          }
        loss = td_div_scalar (loss, n_nodes);
        td_cleargrads (m.chain);
        td_backward (loss, 0);
        td_opt_update (opt);
        td_report ("loss", td_item (loss));
        if (i == 0 || i % 50 == 49)
          printf ("iteration %d  loss %.4f\n", i + 1, td_item (loss));
      }
  if (td_error () == NULL)
    printf ("test accuracy %.4f\n", test_accuracy (&m, 300));
  return td_finish ();
}
