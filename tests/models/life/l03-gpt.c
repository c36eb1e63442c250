/* L03: a GPT, pre-norm, causal attention.  layers=12 width=48 heads=4 steps=32 batch_size=2
 * tied=0 forget=0 (the first so many layers are) fault=NAME iterations=3 (for speed: layers=6
 * width=384 heads=6). SPDX-License-Identifier: MIT */
#include "life.h"

enum
{
  MOST_LAYERS = 48,
  WORDS = 65
};

typedef struct Gpt Gpt;

typedef struct
{
  TdLink *ln1, *qkv, *proj, *ln2, *up, *down;
  Gpt *gpt;
} Layer;

struct Gpt
{
  TdLink *root, *wte, *wpe, *ln_f, *head; /* head NULL: the embedding's weights, tied */
  Layer layer[MOST_LAYERS];
  int n_layers;
  int64_t width, heads, steps, batch, iteration;
};

static void
gpt_make (Gpt *g)
{
  TdInit small = td_init_normal (0.02);
  int64_t w = g->width;

  g->root = td_chain_new ("gpt");
  g->wte = td_embed_id_new (g->root, "wte", WORDS, w, .initialW = small);
  g->wpe = td_embed_id_new (g->root, "wpe", g->steps, w, .initialW = small);
  for (int i = 0; i < g->n_layers; i++)
    {
      Layer *l = &g->layer[i];
      char name[32];

      snprintf (name, sizeof name, "h%d", i);
      TdLink *c = td_chain_new (g->root, name);
      l->gpt = g;
      l->ln1 = td_layer_normalization_new (c, "ln1", w);
      l->qkv = td_linear_new (c, "qkv", w, 3 * w, .initialW = small);
      l->proj = td_linear_new (c, "proj", w, w, .initialW = small);
      l->ln2 = td_layer_normalization_new (c, "ln2", w);
      l->up = td_linear_new (c, "up", w, 4 * w, .initialW = small);
      l->down = td_linear_new (c, "down", 4 * w, w, .initialW = small);
    }
  g->ln_f = td_layer_normalization_new (g->root, "ln_f", w);
  if (life_arg ("tied", 0) == 0)
    g->head = td_linear_new (g->root, "head", w, WORDS, .nobias = true, .initialW = small);
}

static TdVar *
attend (Gpt *g, Layer *l, TdVar *x)
{
  static const int order[] = { 0, 2, 1, 3 };
  TdShape split = TD_SHAPE (g->batch, g->steps, g->heads, g->width / g->heads);
  TdVar *part[3];

  td_split_axis (td_link (l->qkv, x), 3, 1, part);
  for (int i = 0; i < 3; i++)
    part[i] = td_transpose (td_reshape (part[i], split), order);
  x = td_scaled_dot_product_attention (part[0], part[1], part[2], .causal = true);
  x = td_reshape (td_transpose (x, order), TD_SHAPE (g->batch * g->steps, g->width));
  return td_link (l->proj, x);
}

/* What a layer adds in its second half; layer 6 is the one with a mistake. */
static TdVar *
expand (Gpt *g, int i, TdVar *x)
{
  Layer *l = &g->layer[i];
  TdVar *h = td_link (l->up, td_link (l->ln2, x));

  if (i == 6 && life_fault ("branch") && g->iteration % 2 == 1)
    h = td_relu (h);
  else
    h = td_gelu (h);
  if (i == 6 && life_fault ("nan") && g->iteration == 3)
    h = td_sqrt (h);
  h = td_link (l->down, h);
  return i == 6 && life_fault ("vanishing") ? td_mul_scalar (h, 1e-9) : h;
}

static void
layer (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Layer *l = self;
  TdVar *h = td_add (in[0], attend (l->gpt, l, td_link (l->ln1, in[0])));

  (void)n_in;
  (void)n_out;
  out[0] = td_add (h, expand (l->gpt, (int)(l - l->gpt->layer), h));
}

static void
gpt_loss (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Gpt *g = self;
  TdVar *h = td_add (td_link (g->wte, in[0]), td_link (g->wpe, in[1]));

  (void)n_in;
  (void)n_out;
  h = td_reshape (h, TD_SHAPE (g->batch * g->steps, g->width));
  for (int i = 0; i < g->n_layers; i++)
    {
      TdVar *x = h;

      if (i < life_arg ("forget", 0))
        td_forget (layer, &g->layer[i], &x, 1, &h, 1);
      else
        layer (&g->layer[i], &x, 1, &h, 1);
    }
  h = td_link (g->ln_f, h);
  h = g->head != NULL ? td_link (g->head, h)
                      : td_matmul (h, td_link_param (g->wte, "W"), false, true);
  out[0] = td_softmax_cross_entropy (h, in[2]);
}

int
main (int argc, char **argv)
{
  Gpt g = { 0 };
  TdVar *total = NULL;

  life_begin (argc, argv);
  g.n_layers = (int)life_arg ("layers", 12);
  g.width = life_arg ("width", 48);
  g.heads = life_arg ("heads", 4);
  g.steps = life_arg ("steps", 32);
  g.batch = life_arg ("batch_size", 2);
  int64_t end = life_end (3);
  gpt_make (&g);
  TdOpt *opt = td_adam_new (g.root, .lr = 1e-3, .weight_decay_rate = 0.01);
  td_opt_add_hook (opt, td_gradient_clipping_new (1.0));
  life_keep (g.root, opt);

  for (int64_t i = life_first (); i < end && td_error () == NULL; i++)
    TD_ITERATION (i)
      {
        TdVar *in[] = { life_ids (TD_SHAPE (g.batch, g.steps), WORDS, (uint32_t)i),
                        td_arange (TD_I32, 0, (double)g.steps, 1),
                        life_ids (TD_SHAPE (g.batch * g.steps), WORDS, (uint32_t)i + 1000) };
        TdVar *loss;

        g.iteration = i;
        life_call (gpt_loss, &g, in, 3, &loss, 1);
        td_cleargrads (g.root);
        td_backward (loss, 0);
        td_opt_update (opt);
        if (life_fault ("growth")) /* the sum of all losses, with the graph of each */
          {
            TdVar *before = total;

            total = td_retain (before != NULL ? td_add (before, loss) : loss);
            if (before != NULL)
              td_release (before);
          }
        life_line (i, loss);
      }
  if (total != NULL)
    td_release (total);
  return life_finish ();
}
