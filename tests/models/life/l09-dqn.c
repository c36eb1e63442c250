/* L09: DQN on a walk along a line: a target network that is copied, replay memory, a frozen
 * branch, TD_NO_BACKPROP inside the loss, parameters written by hand, gradient clipping.
 * units=24 batch_size=16 iterations=8.  SPDX-License-Identifier: MIT */
#include "life.h"

enum
{
  PLACES = 6,
  ACTIONS = 2,
  MEMORY = 64
};

typedef struct
{
  TdLink *root, *eyes, *hidden, *value; /* eyes are frozen: they are never trained */
  TdLink *target;
} Agent;

typedef struct
{
  int32_t place, action, next;
  float reward;
} Step;

static TdVar *
values (Agent *a, TdLink *net, TdVar *place)
{
  TdVar *seen = NULL;

  TD_NO_BACKPROP
    seen = td_tanh (td_link (a->eyes, place));
  return td_link (td_link_child (net, "value"),
                  td_relu (td_link (td_link_child (net, "hidden"), seen)));
}

/* in: places, actions, rewards, next places. */
static void
dqn_loss (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  static const int actions[] = { 1 };
  Agent *a = self;
  TdVar *q = td_select_item (values (a, a->root, in[0]), in[1]), *want = NULL;

  (void)n_in;
  (void)n_out;
  TD_NO_BACKPROP
    want = td_add (
        in[2],
        td_mul_scalar (td_max_axes (values (a, a->target, in[3]), actions, 1, false), 0.9));
  out[0] = td_mean (td_huber_loss (q, want, 1.0, .reduce = "no"));
}

/* Walk on from `place` by a hash of i; the reward lies at the right end. */
static Step
walk (int64_t i, int32_t place)
{
  Step s = { .place = place, .action = life_number (11, i) < 0.4f ? 0 : 1 };

  s.next = s.action == 1 ? place + 1 : place > 0 ? place - 1 : 0;
  s.reward = s.next == PLACES - 1 ? 1.0f : 0.0f;
  s.next %= PLACES - 1;
  return s;
}

/* All that had been lived through by iteration i is a function of i. */
static void
remember (int64_t i, Step memory[MEMORY])
{
  int32_t place = 0;

  for (int64_t k = 0; k < MEMORY + i; k++)
    {
      memory[k % MEMORY] = walk (k, place);
      place = memory[k % MEMORY].next;
    }
}

static void
batch_of (int64_t i, int64_t n, TdVar *in[4])
{
  Step memory[MEMORY];
  int32_t place[256], action[256], next[256];
  float reward[256];

  remember (i, memory);
  for (int64_t k = 0; k < n; k++)
    {
      Step s = memory[(int)(life_number ((uint32_t)i + 50, k) * MEMORY)];

      place[k] = s.place;
      action[k] = s.action;
      next[k] = s.next;
      reward[k] = s.reward;
    }
  in[0] = td_tensor (TD_I32, TD_SHAPE (n), place);
  in[1] = td_tensor (TD_I32, TD_SHAPE (n), action);
  in[2] = td_tensor (TD_F32, TD_SHAPE (n), reward);
  in[3] = td_tensor (TD_I32, TD_SHAPE (n), next);
}

int
main (int argc, char **argv)
{
  Agent a = { 0 };

  life_begin (argc, argv);
  int64_t units = life_arg ("units", 24), n = life_arg ("batch_size", 16), end = life_end (8);
  a.root = td_chain_new ("agent");
  a.eyes = td_embed_id_new (a.root, "eyes", PLACES, units);
  a.hidden = td_linear_new (a.root, "hidden", units, units);
  a.value = td_linear_new (a.root, "value", units, ACTIONS);
  a.target = td_link_copy (a.root);
  TdOpt *opt = td_rmsprop_new (a.root, .lr = 1e-3);
  td_opt_add_hook (opt, td_gradient_clipping_new (1.0));
  life_keep (a.root, opt);
  life_keep (a.target, NULL);

  for (int64_t i = life_first (); i < end && td_error () == NULL; i++)
    TD_ITERATION (i)
      {
        TdVar *in[4], *loss;

        batch_of (i, n < 256 ? n : 256, in);
        life_call (dqn_loss, &a, in, 4, &loss, 1);
        td_cleargrads (a.root);
        td_backward (loss, 0);
        td_opt_update (opt);
        if (i % 4 == 3)
          td_link_copy_params (a.target, a.root);
        if (i % 3 == 2) /* written by hand: the frozen eyes drift a little */
          {
            float eyes[PLACES * 256];
            TdVar *W = td_link_param (a.eyes, "W");
            size_t bytes = (size_t)(PLACES * units) * sizeof *eyes;

            if (bytes <= sizeof eyes && td_read (W, eyes, bytes) == TD_OK)
              {
                eyes[0] += 0.01f;
                td_write (W, eyes, bytes);
              }
          }
        life_line (i, loss);
      }
  return life_finish ();
}
