/* A transformer that learns to write a text character by character.
 *
 *     transformer [TEXT-FILE [ITERATIONS]]
 *
 * Two layers of attention that looks back only, each followed by a net of two layers, all of
 * them behind a normalisation and added to what they were given.  Every place of a piece of the
 * text is a lesson: what comes next, after all that has come?
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  BATCH = 16,
  STEPS = 32,
  WIDTH = 64,
  HEADS = 4,
  LAYERS = 2
};

static const char built_in_text[]
    = "The tape turns and the needle rests. What was heard goes round again.\n"
      "Press stop and the tape stands still; press back and the song runs backward.\n"
      "A small machine keeps every note: the first, the last, the one between.\n"
      "Turn the wheel to the left and you hear what led to the sound.\n"
      "Turn the wheel to the right and you hear what the sound led to.\n"
      "Nothing is lost while the tape is whole, and the tape is whole to its end.\n"
      "When the light goes red, look at the place where the needle stands.\n"
      "There the song went wrong, and there it can be mended.\n"
      "Mend it, turn back a little, and let the tape turn again.\n"
      "The song that was wrong is now the song that is right.\n";

/* A text as ids of its characters. */
typedef struct
{
  int32_t *id;
  int64_t n;
  int n_chars;
  char chars[256];
} Text;

static Text
text_new (const char *path)
{
  Text t = { .n = sizeof built_in_text - 1 };
  char *read = NULL;
  FILE *file = path != NULL ? fopen (path, "rb") : NULL;
  int place[256];

  if (path != NULL && (file == NULL || (read = malloc (1 << 20)) == NULL))
    {
      fprintf (stderr, "transformer: %s: cannot be read\n", path);
      exit (1);
    }
  if (file != NULL)
    {
      t.n = (int64_t)fread (read, 1, 1 << 20, file);
      fclose (file);
    }
  t.id = malloc ((size_t)t.n * sizeof *t.id + 1);
  memset (place, -1, sizeof place);
  for (int64_t i = 0; i < t.n && t.id != NULL; i++)
    {
      unsigned char c = (unsigned char)(read != NULL ? read : built_in_text)[i];

      if (place[c] < 0)
        {
          place[c] = t.n_chars;
          t.chars[t.n_chars++] = (char)c;
        }
      t.id[i] = place[c];
    }
  free (read);
  return t;
}

typedef struct
{
  TdLink *before_attention, *query, *key, *value, *join, *before_net, *wide, *narrow;
} Layer;

typedef struct
{
  TdLink *chain, *character, *place, *last, *out;
  Layer layer[LAYERS];
} Model;

static Model
model_new (int n_chars)
{
  Model m = { .chain = td_chain_new ("transformer") };
  TdInit small = td_init_normal (0.05);

  m.character = td_embed_id_new (m.chain, "character", n_chars, WIDTH, .initialW = small);
  m.place = td_embed_id_new (m.chain, "place", STEPS, WIDTH, .initialW = small);
  for (int i = 0; i < LAYERS; i++)
    {
      Layer *l = &m.layer[i];
      char name[20];
      TdLink *chain;

      snprintf (name, sizeof name, "layer%d", i);
      chain = td_chain_new (m.chain, name);
      l->before_attention = td_layer_normalization_new (chain, "before_attention", WIDTH);
      l->query = td_linear_new (chain, "query", WIDTH, WIDTH);
      l->key = td_linear_new (chain, "key", WIDTH, WIDTH);
      l->value = td_linear_new (chain, "value", WIDTH, WIDTH);
      l->join = td_linear_new (chain, "join", WIDTH, WIDTH);
      l->before_net = td_layer_normalization_new (chain, "before_net", WIDTH);
      l->wide = td_linear_new (chain, "wide", WIDTH, 4 * WIDTH);
      l->narrow = td_linear_new (chain, "narrow", 4 * WIDTH, WIDTH);
    }
  m.last = td_layer_normalization_new (m.chain, "last", WIDTH);
  m.out = td_linear_new (m.chain, "out", WIDTH, n_chars);
  return m;
}

/* (n steps, width) -> (n, heads, steps, width / heads), and back. */
static TdVar *
split_heads (TdVar *h, int64_t n)
{
  static const int axes[4] = { 0, 2, 1, 3 };

  return td_transpose (td_reshape (h, TD_SHAPE (n, STEPS, HEADS, WIDTH / HEADS)), axes);
}

static TdVar *
join_heads (TdVar *h, int64_t n)
{
  static const int axes[4] = { 0, 2, 1, 3 };

  return td_reshape (td_transpose (h, axes), TD_SHAPE (n * STEPS, WIDTH));
}

static TdVar *
layer (Layer *l, TdVar *h, int64_t n)
{
  TdVar *x = td_link (l->before_attention, h);
  TdVar *q = split_heads (td_link (l->query, x), n);
  TdVar *k = split_heads (td_link (l->key, x), n);
  TdVar *v = split_heads (td_link (l->value, x), n);
  TdVar *seen = td_scaled_dot_product_attention (q, k, v, .causal = true);

  h = td_add (h, td_link (l->join, join_heads (seen, n)));
  x = td_link (l->before_net, h);
  return td_add (h, td_link (l->narrow, td_gelu (td_link (l->wide, x))));
}

/* Scores of the next character at each place: (n steps, characters). */
static TdVar *
predict (Model *m, TdVar *ids, int64_t n)
{
  int32_t place[STEPS];
  TdVar *h;

  for (int t = 0; t < STEPS; t++)
    place[t] = t;
  h = td_add (td_link (m->character, ids),
              td_link (m->place, td_tensor (TD_I32, TD_SHAPE (STEPS), place)));
  h = td_reshape (h, TD_SHAPE (n * STEPS, WIDTH));
  for (int i = 0; i < LAYERS; i++)
    h = layer (&m->layer[i], h, n);
  return td_link (m->out, td_link (m->last, h));
}

/* Pieces of the text from random places of [begin, end), and what comes next in each place. */
static void
pieces (const Text *text, int64_t begin, int64_t end, unsigned *state, TdVar **ids,
        TdVar **next)
{
  int32_t x[BATCH][STEPS], t[BATCH][STEPS];

  for (int i = 0; i < BATCH; i++)
    {
      *state = *state * 1664525u + 1013904223u;
      const int32_t *from = text->id + begin + (*state >> 8) % (end - begin - STEPS);

      memcpy (x[i], from, sizeof x[i]);
      memcpy (t[i], from + 1, sizeof t[i]);
    }
  *ids = td_tensor (TD_I32, TD_SHAPE (BATCH, STEPS), x);
  *next = td_tensor (TD_I32, TD_SHAPE (BATCH * STEPS), t);
}

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);

  int64_t n_iterations = argc > 2 ? atoi (argv[2]) : 200;
  Text text = text_new (argc > 1 ? argv[1] : NULL);
  int64_t n_train = text.n - text.n / 10; /* one tenth at the end is kept for the test */
  unsigned state = 1;
  if (text.n / 10 <= STEPS + 1)
    {
      fprintf (stderr, "transformer: a text of at least %d characters expected\n",
               10 * (STEPS + 2));
      return 1;
    }
  Model m = model_new (text.n_chars);
  TdOpt *opt = td_adam_new (m.chain, .lr = 2e-3);
  td_opt_add_hook (opt, td_gradient_clipping_new (1.0));

  for (int64_t i = 0; i < n_iterations && td_error () == NULL; i++)
    TD_ITERATION (i)
      {
        TdVar *ids, *next, *loss;

        pieces (&text, 0, n_train, &state, &ids, &next);
        loss = td_softmax_cross_entropy (predict (&m, ids, BATCH), next);
        td_cleargrads (m.chain);
        td_backward (loss, 0);
        td_opt_update (opt);
        td_report ("loss", td_item (loss));
        if (i == 0 || i % 50 == 49)
          printf ("iteration %d  loss %.4f\n", (int)i + 1, td_item (loss));
      }
  if (td_error () == NULL)
    TD_NO_BACKPROP
      TD_SCOPE ("test")
        {
          TdVar *ids, *next;

          pieces (&text, n_train, text.n, &state, &ids, &next);
          printf ("test accuracy %.4f\n",
                  td_item (td_accuracy (predict (&m, ids, BATCH), next)));
        }
  free (text.id);
  return td_finish ();
}
