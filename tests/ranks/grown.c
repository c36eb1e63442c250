/* Models of real kinds, trained by several ranks, with a fault of one of them:
 *
 *   grown gan|transformer FAULT RANK ITERATION ITERATIONS SEED
 *
 * A GAN has two models with an optimizer each, a transformer one.  RANK does FAULT in
 * ITERATION, or from then on. SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum
{
  BATCH = 6,
  NUMBERS = 5,
  PICTURE = 12,
  STEPS = 5,
  WIDTH = 8,
  CHARACTERS = 11
};

static const char *fault;
static int rank, odd, at;
static TdComm *comm;

static bool
is (const char *name)
{
  return strcmp (fault, name) == 0;
}

static bool
does (const char *name, int i)
{
  return is (name) && rank == odd && i == at;
}

/* Numbers of a rank's own, which the engine's generator does not draw. */
static uint64_t state;

static float
draw (void)
{
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (float)(state >> 40) / (float)(1 << 24) - 0.5F;
}

static TdVar *
drawn (int64_t n, int64_t m, int i)
{
  float x[BATCH * PICTURE];

  for (int64_t k = 0; k < n * m; k++)
    x[k] = draw ();
  if (is ("nan") && rank == odd && i >= at)
    x[3] = NAN;
  return td_tensor (TD_F32, TD_SHAPE (n, m), x);
}

static void
write_to (TdLink *link)
{
  float b[WIDTH];

  td_read (td_link_param (link, "b"), b, sizeof b);
  b[1] += 0.25F;
  td_write (td_link_param (link, "b"), b, sizeof b); /* the write */
}

/* By hand, "forgot": but in one iteration; "first": but in the first one; "early": too early.
 */
static bool
is_by_hand (void)
{
  return is ("unsent") || is ("forgot") || is ("first") || is ("early");
}

static void
backward (TdLink *model, TdVar *loss)
{
  if (is ("early"))
    td_comm_allreduce_grad (comm, model);
  td_backward (loss, 0);
}

/* How a model is updated: by the optimizer of all ranks, or by hand, "unsent": without rank 0's
 * weights; "plain": alone. */
static TdOpt *
share (TdOpt *opt)
{
  return is ("plain") || is_by_hand () ? opt : td_multi_node_optimizer_new (opt, comm);
}

static void
step (TdLink *model, TdOpt *opt, int i, bool faulty)
{
  if (faulty && does ("rate", i))
    td_opt_set_lr (opt, 0.5);
  if (is_by_hand () && !is ("early") && !(is ("forgot") && i == at)
      && !(is ("first") && i == 0))
    td_comm_allreduce_grad (comm, model);
  if (!(faulty && does ("skip", i)))
    td_opt_update (opt);
}

/* ---- a GAN ---- */

typedef struct
{
  TdLink *painter, *critic, *p1, *p2, *c1, *c2;
  TdOpt *paints, *judges;
} Gan;

static TdVar *
judge (const Gan *g, TdVar *x)
{
  return td_link (g->c2, td_leaky_relu (td_link (g->c1, x)));
}

static TdVar *
loss_of (const Gan *g, TdVar *x, int real)
{
  int32_t t[BATCH];

  for (int k = 0; k < BATCH; k++)
    t[k] = real;
  return td_sigmoid_cross_entropy (judge (g, x), td_tensor (TD_I32, TD_SHAPE (BATCH, 1), t));
}

static TdVar *
paint (const Gan *g, TdVar *z)
{
  return td_link (g->p2, td_relu (td_link (g->p1, z)));
}

static void
gan_step (const Gan *g, int i)
{
  TdVar *real = drawn (BATCH, PICTURE, i), *z = drawn (BATCH, NUMBERS, -1), *painted = NULL;

  TD_NO_BACKPROP
    painted = paint (g, z);
  td_cleargrads (g->critic);
  backward (g->critic, td_add (loss_of (g, real, 1), loss_of (g, painted, 0)));
  if (does ("frozen", i))
    td_link_disable_update (g->c1);
  if (does ("write", i))
    write_to (g->c1);
  step (g->critic, g->judges, i, true);
  td_cleargrads (g->painter);
  td_cleargrads (g->critic);
  backward (g->painter, loss_of (g, paint (g, z), 1));
  step (g->painter, g->paints, i, false);
}

static void
train_gan (int n)
{
  Gan g = { .painter = td_chain_new ("painter"), .critic = td_chain_new ("critic") };

  g.p1 = td_linear_new (g.painter, "p1", NUMBERS, WIDTH);
  g.p2 = td_linear_new (g.painter, "p2", WIDTH, PICTURE);
  g.c1 = td_linear_new (g.critic, "c1", PICTURE, WIDTH);
  g.c2 = td_linear_new (g.critic, "c2", WIDTH, 1);
  g.judges = share (td_adam_new (g.critic, .lr = 1e-3));
  g.paints = share (td_adam_new (g.painter, .lr = 1e-3));
  for (int i = 0; i < n && td_error () == NULL; i++)
    TD_ITERATION (i)
      gan_step (&g, i);
}

/* ---- a transformer ---- */

typedef struct
{
  TdLink *chain, *in, *norm, *query, *key, *value, *join, *wide, *narrow, *out;
  TdOpt *opt;
} Transformer;

static TdVar *
predict (const Transformer *t, TdVar *x)
{
  TdVar *h = td_link (t->in, x), *y = td_link (t->norm, h), *all[3];

  for (int k = 0; k < 3; k++)
    all[k] = td_reshape (td_link (k == 0   ? t->query
                                  : k == 1 ? t->key
                                           : t->value,
                                  y),
                         TD_SHAPE (BATCH, 1, STEPS, WIDTH));
  y = td_scaled_dot_product_attention (all[0], all[1], all[2], .causal = true);
  h = td_add (h, td_link (t->join, td_reshape (y, TD_SHAPE (BATCH * STEPS, WIDTH))));
  return td_link (t->out, td_add (h, td_link (t->narrow, td_gelu (td_link (t->wide, h)))));
}

static void
transformer_step (const Transformer *t, int i)
{
  float x[BATCH * STEPS * CHARACTERS] = { 0 };
  int32_t next[BATCH * STEPS];
  TdVar *loss;

  for (int k = 0; k < BATCH * STEPS; k++)
    {
      x[k * CHARACTERS + (int)((draw () + 0.5F) * CHARACTERS)] = 1;
      next[k] = (int32_t)((draw () + 0.5F) * CHARACTERS);
    }
  if (is ("nan") && rank == odd && i >= at)
    x[7] = NAN;
  loss = td_softmax_cross_entropy (
      predict (t, td_tensor (TD_F32, TD_SHAPE (BATCH * STEPS, CHARACTERS), x)),
      td_tensor (TD_I32, TD_SHAPE (BATCH * STEPS), next));
  td_cleargrads (t->chain);
  backward (t->chain, loss);
  if (does ("frozen", i))
    td_link_disable_update (t->wide);
  if (does ("write", i))
    write_to (t->query);
  step (t->chain, t->opt, i, true);
}

static void
train_transformer (int n)
{
  Transformer t = { .chain = td_chain_new ("net") };

  t.in = td_linear_new (t.chain, "in", CHARACTERS, WIDTH);
  t.norm = td_layer_normalization_new (t.chain, "norm", WIDTH);
  t.query = td_linear_new (t.chain, "query", WIDTH, WIDTH);
  t.key = td_linear_new (t.chain, "key", WIDTH, WIDTH);
  t.value = td_linear_new (t.chain, "value", WIDTH, WIDTH);
  t.join = td_linear_new (t.chain, "join", WIDTH, WIDTH);
  t.wide = td_linear_new (t.chain, "wide", WIDTH, 2 * WIDTH);
  t.narrow = td_linear_new (t.chain, "narrow", 2 * WIDTH, WIDTH);
  t.out = td_linear_new (t.chain, "out", WIDTH, CHARACTERS);
  t.opt = share (td_adam_new (t.chain, .lr = 1e-3));
  for (int i = 0; i < n && td_error () == NULL; i++)
    TD_ITERATION (i)
      transformer_step (&t, i);
}

int
main (int argc, char **argv)
{
  uint64_t seed;

  td_init (&argc, &argv);
  if (argc < 7)
    return 1;
  fault = argv[2];
  odd = atoi (argv[3]);
  at = atoi (argv[4]);
  seed = strtoull (argv[6], NULL, 10);
  comm = td_comm_new (NULL);
  rank = td_comm_rank (comm);
  td_set_seed (seed + (is ("seed") || is ("unsent") ? (uint64_t)rank : 0));
  state = seed * 977 + (is ("copies") ? 0 : (uint64_t)rank + 1);
  if (strcmp (argv[1], "gan") == 0)
    train_gan (atoi (argv[5]));
  else
    train_transformer (atoi (argv[5]));
  return td_finish ();
}
