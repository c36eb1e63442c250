/* L15: a VAE under a Trainer: evaluation between the epochs, early stopping, snapshots from
 * which a second run goes on.  epochs=3 out=FOLDER (default l15-result) snapshots=1.
 * SPDX-License-Identifier: MIT */
#include "life.h"

enum
{
  PIXELS = 64,
  HIDDEN = 32,
  LATENT = 4,
  TRAIN = 60,
  TEST = 20
};

typedef struct
{
  TdLink *root, *see, *mean, *ln_var, *imagine, *paint;
} Vae;

static void
loss_code (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Vae *v = self;
  TdVar *h = td_dropout (td_tanh (td_link (v->see, in[0])), 0.1);
  TdVar *mean = td_link (v->mean, h), *ln_var = td_link (v->ln_var, h);
  TdVar *y = td_link (v->paint, td_tanh (td_link (v->imagine, td_gaussian (mean, ln_var))));
  TdVar *loss = td_add (td_bernoulli_nll (in[0], y), td_gaussian_kl_divergence (mean, ln_var));

  (void)n_in;
  (void)n_out;
  out[0] = td_div_scalar (loss, (double)td_shape (in[0]).dim[0]);
  td_report_variable ("loss", out[0]);
}

static TdVar *
vae_loss (void *self, const TdBatch *b)
{
  TdVar *x = b->x, *loss;

  life_call (loss_code, self, &x, 1, &loss, 1);
  return loss;
}

static void
vae_evaluate (void *self, const TdBatch *b)
{
  vae_loss (self, b);
}

/* Pictures of dots by hash, n of them; labels are not looked at. */
static TdDataset *
pictures (int64_t n, uint32_t seed)
{
  float *dot = malloc ((size_t)(n * PIXELS) * sizeof *dot);
  TdVar *x;

  for (int64_t i = 0; dot != NULL && i < n * PIXELS; i++)
    dot[i] = life_number (seed, i) < 0.3f ? 1.0f : 0.0f;
  x = td_tensor (TD_F32, TD_SHAPE (n, PIXELS), dot);
  free (dot);
  return td_tuple_dataset_new (x, life_ids (TD_SHAPE (n), 2, seed));
}

int
main (int argc, char **argv)
{
  Vae v = { 0 };
  const char *out;

  life_begin (argc, argv);
  out = life_text ("out");
  v.root = td_chain_new ("vae");
  v.see = td_linear_new (v.root, "see", PIXELS, HIDDEN);
  v.mean = td_linear_new (v.root, "mean", HIDDEN, LATENT);
  v.ln_var = td_linear_new (v.root, "ln_var", HIDDEN, LATENT);
  v.imagine = td_linear_new (v.root, "imagine", LATENT, HIDDEN);
  v.paint = td_linear_new (v.root, "paint", HIDDEN, PIXELS);

  TdOpt *opt = td_adam_new (v.root, .lr = 2e-3);
  TdIter *train = td_serial_iterator_new (pictures (TRAIN, 3), .batch_size = 8);
  TdIter *test = td_serial_iterator_new (pictures (TEST, 4), .batch_size = 8, .repeat = false,
                                         .shuffle = false);
  TdUpdater *updater = td_standard_updater_new (train, opt, .loss_func = vae_loss, .self = &v);
  TdTrigger *stop
      = td_early_stopping_trigger_new (.monitor = "validation/loss", .patience = 3,
                                       .max_trigger = td_interval_trigger_new (
                                           (double)life_arg ("epochs", 3), "epoch"));
  TdTrainer *trainer = td_trainer_new (updater, stop, .out = out != NULL ? out : "l15-result");

  td_trainer_extend (trainer,
                     td_ext_evaluator (test, v.root, .eval_func = vae_evaluate, .self = &v));
  if (life_arg ("snapshots", 1) != 0)
    td_trainer_extend (trainer, td_ext_snapshot (.autoload = true));
  td_trainer_extend (trainer, td_ext_log_report ());
  life_keep (v.root, NULL);
  if (td_trainer_run (trainer) == TD_OK)
    {
      LifeHash h = { 14695981039346656037u, 14695981039346656037u };

      td_link_each_param (v.root, life_hash_param, &h);
      printf ("weights %016" PRIx64 "\n", h.weights);
    }
  return life_finish ();
}
