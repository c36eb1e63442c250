/* Runs planted programs under the recorder: planted-program a|b FIRST N, PLANTED_RUNS
 * iterations of each.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include "planted.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  MAX_LINE = 400
};

typedef struct
{
  PlantedProgram of;
  TdLink *root, *link[PLANTED_MAX_STEPS];
} Program;

/* Lines of a source that is not there: insertions stand between others. */
static const TdSite *
site_at (int line)
{
  static TdSite sites[MAX_LINE];

  sites[line] = (TdSite){ .file = "planted.c", .func = "forward", .line = line };
  return &sites[line];
}

static TdVar *
run_step (const Program *p, const PlantedStep *s, TdVar *x, TdVar *other)
{
  const TdSite *site = site_at (s->line);

  switch (s->op)
    {
    case PLANTED_RELU:
      return td_relu_at (x, site);
    case PLANTED_TANH:
      return td_tanh_at (x, site);
    case PLANTED_SIGMOID:
      return td_sigmoid_at (x, site);
    case PLANTED_SIN:
      return td_sin_at (x, site);
    case PLANTED_SQUARE:
      return td_square_at (x, site);
    case PLANTED_MUL_SCALAR:
      return td_mul_scalar_at (x, s->value, site);
    case PLANTED_LEAKY_RELU:
      return td_leaky_relu_at (x, (TdLeakyReluOpt){ .slope = s->value }, site);
    case PLANTED_CLIP:
      return td_clip_at (x, -s->value, s->value, site);
    case PLANTED_CAST:
      return td_cast_at (x, s->value > 0 ? TD_F64 : TD_F16, site);
    case PLANTED_CAST_BACK:
      return td_cast_at (x, TD_F32, site);
    case PLANTED_ADD:
      return td_add_at (x, other, site);
    case PLANTED_MUL:
      return td_mul_at (x, other, site);
    case PLANTED_LINEAR:
    case PLANTED_NORM:
      return td_link_at (p->link[s->link], x, site);
    case PLANTED_N_OPS:
    default:
      abort ();
    }
}

static void
forward (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  const Program *p = self;
  TdVar *made[PLANTED_MAX_STEPS + 1] = { NULL }, *x = in[0];

  (void)n_in;
  (void)n_out;
  for (int i = 0; i < p->of.n; i++)
    {
      const PlantedStep *s = &p->of.step[i];

      if (s->no_backprop)
        TD_NO_BACKPROP
          x = run_step (p, s, x, made[s->other]);
      else
        x = run_step (p, s, x, made[s->other]);
      made[s->id] = x;
    }
  out[0] = td_sum_at (td_square_at (x, site_at (390)), site_at (391));
}

static void
make_links (Program *p)
{
  TdLink *block[PLANTED_MAX_STEPS] = { NULL };
  int width = p->of.width;
  char name[32];

  p->root = td_chain_new ("net");
  for (int i = 0; i < p->of.n; i++)
    {
      const PlantedStep *s = &p->of.step[i];

      if (s->link >= 0)
        {
          snprintf (name, sizeof name, "block%d", s->block);
          if (block[s->block] == NULL)
            block[s->block] = td_chain_new (p->root, name);
          snprintf (name, sizeof name, "%s%d", s->op == PLANTED_LINEAR ? "linear" : "norm",
                    s->line);
          p->link[s->link] = s->op == PLANTED_LINEAR
                                 ? td_linear_new (block[s->block], name, width, s->width)
                                 : td_layer_normalization_new (block[s->block], name, width);
          if (s->link == p->of.frozen)
            td_link_disable_update (p->link[s->link]);
        }
      width = s->width;
    }
}

static void
run (uint64_t seed, int64_t first_iteration, const PlantedProgram *of)
{
  Program p = { .of = *of };
  TdStatic *function = NULL;
  TdOpt *opt;

  td_set_seed (seed);
  make_links (&p);
  opt = of->adam ? td_adam_new (p.root) : td_sgd_new (p.root, .lr = 0.01);
  if (of->is_static)
    function = td_static_new (forward, &p);
  for (int k = 0; k < PLANTED_RUNS; k++)
    TD_ITERATION ((int64_t)seed *PLANTED_RUNS + k)
      {
        TdVar *x = td_randn (TD_F32, TD_SHAPE (PLANTED_BATCH, of->width)), *y;

        if (function != NULL)
          td_static_call (function, &x, 1, &y, 1);
        else
          forward (&p, &x, 1, &y, 1);
        td_cleargrads (p.root);
        td_backward (y, 0);
        td_opt_update (opt);
      }
  if (function != NULL)
    td_static_free (function);
  td_opt_free (opt);
  td_link_free (p.root);
}

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);
  bool b = argc > 1 && strcmp (argv[1], "b") == 0;
  uint64_t first = argc > 2 ? strtoull (argv[2], NULL, 10) : 0,
           n = argc > 3 ? strtoull (argv[3], NULL, 10) : 1;

  for (uint64_t seed = first; seed < first + n && td_error () == NULL; seed++)
    {
      PlantedProgram of[2];
      Planted planted;

      planted_make (seed, &of[0], &of[1], &planted);
      run (seed, (int64_t)(seed - first) * PLANTED_RUNS, &of[b]);
    }
  return td_finish ();
}
