/* A program that keeps too much, in one of the ways that programs do: its argument.  Behind
 * "static-" its links are static functions.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  N = 40,
  WIDTH = 64
};

static TdVar *kept[N];
static TdLink *net;

/* The sum of all losses, with the graph of each: total += loss. */
static void
keep_total (TdVar *loss, TdVar *y, int i)
{
  TdVar *before = i > 0 ? kept[0] : NULL;

  kept[0] = td_retain (before != NULL ? td_add (before, loss) : loss);
  if (before != NULL)
    td_release (before);
}

/* Every loss in a list. */
static void
keep_losses (TdVar *loss, TdVar *y, int i)
{
  kept[i] = td_retain (loss);
}

/* Outputs without a graph, in a list that only grows. */
static void
keep_outputs (TdVar *loss, TdVar *y, int i)
{
  TD_NO_BACKPROP
    {
      kept[i] = td_retain (td_mul_scalar (y, 1));
    }
}

/* A link in every iteration. */
static void
keep_links (TdVar *loss, TdVar *y, int i)
{
  TdLink *aside = td_linear_new (NULL, "aside", 1, WIDTH);

  td_link (aside, y);
}

/* The same, each given up; and from some iteration on one more. */
static void
keep_one_link (TdVar *loss, TdVar *y, int i)
{
  static TdLink *late;
  TdLink *aside = td_linear_new (NULL, "aside", 1, WIDTH);

  td_link (aside, y);
  td_link_free (aside);
  if (i == 5)
    late = td_linear_new (NULL, "late", -1, WIDTH);
  if (i > 6)
    td_link (late, y);
}

/* An optimizer in every iteration, with a state of its own. */
static void
keep_optimizers (TdVar *loss, TdVar *y, int i)
{
  TdOpt *again = td_adam_new (net, .lr = 1e-4);

  td_opt_update (again);
}

/* The same, each given up; and from some iteration on a second one. */
static void
keep_one_optimizer (TdVar *loss, TdVar *y, int i)
{
  static TdOpt *second;
  TdOpt *again = td_adam_new (net, .lr = 1e-4);

  td_opt_update (again);
  td_opt_free (again);
  if (i == 5)
    second = td_adam_new (net, .lr = 1e-4);
  if (i > 6)
    td_opt_update (second);
}

/* What a sound program does: the number of the loss, and the newest output. */
static void
keep_little (TdVar *loss, TdVar *y, int i)
{
  static double total;

  total += td_item (loss);
  if (i > 0)
    td_release (kept[0]);
  kept[0] = td_retain (y);
  td_unchain (kept[0]);
}

/* A new array, with a name that no other has. */
static TdVar *
named_array (const char *stem, int i)
{
  char text[32];

  snprintf (text, sizeof text, "%s-%d", stem, i);
  return td_name (td_zeros (TD_F32, TD_SHAPE (WIDTH)), text);
}

static void
keep_named (TdVar *loss, TdVar *y, int i)
{
  TdVar *named = named_array ("hidden", i);

  td_retain (named);
}

/* Of a link, each under a name of its own. */
static void
keep_persistents (TdVar *loss, TdVar *y, int i)
{
  char text[32];

  snprintf (text, sizeof text, "p%d", i);
  td_link_add_persistent (net, text, td_zeros (TD_F32, TD_SHAPE (WIDTH)));
}

/* Each at another of so many places that none has more than a few. */
#define KEEP_HERE(k)                                                                           \
  case k:                                                                                      \
    td_retain (td_zeros (TD_F32, TD_SHAPE (WIDTH)));                                           \
    break

// clang-format off
static void
keep_at_places (TdVar *loss, TdVar *y, int i)
{
  switch (i % 16)
    {
      KEEP_HERE (0);
      KEEP_HERE (1);
      KEEP_HERE (2);
      KEEP_HERE (3);
      KEEP_HERE (4);
      KEEP_HERE (5);
      KEEP_HERE (6);
      KEEP_HERE (7);
      KEEP_HERE (8);
      KEEP_HERE (9);
      KEEP_HERE (10);
      KEEP_HERE (11);
      KEEP_HERE (12);
      KEEP_HERE (13);
      KEEP_HERE (14);
      KEEP_HERE (15);
    }
}
// clang-format on

/* One array, which is longer in every iteration. */
static void
keep_longer (TdVar *loss, TdVar *y, int i)
{
  TdVar *before = kept[0];

  kept[0] = td_retain (td_zeros (TD_F32, TD_SHAPE (WIDTH * (i + 1))));
  if (before != NULL)
    td_release (before);
}

static const struct
{
  const char *name;
  void (*keep) (TdVar *loss, TdVar *y, int i);
} ways[] = { { "total", keep_total },
             { "losses", keep_losses },
             { "outputs", keep_outputs },
             { "links", keep_links },
             { "one-link", keep_one_link },
             { "optimizers", keep_optimizers },
             { "one-optimizer", keep_one_optimizer },
             { "named", keep_named },
             { "persistents", keep_persistents },
             { "places", keep_at_places },
             { "longer", keep_longer },
             { "little", keep_little },
             { "state", NULL },
             { "cut-state", NULL } };

/* What giving up all that is kept frees. */
static void
let_go (void)
{
  const TdMemInfo before = td_mem_info (NULL);

  for (int i = 0; i < N; i++)
    if (kept[i] != NULL)
      td_release (kept[i]);
  const TdMemInfo after = td_mem_info (NULL);
  printf ("freed %zu bytes, %d operations\n", before.live_bytes - after.live_bytes,
          (int)(before.live_ops - after.live_ops));
}

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);
  net = td_chain_new ("net");
  TdLink *first = td_linear_new (net, "first", WIDTH, WIDTH);
  TdLink *cell = td_lstm_new (net, "cell", WIDTH, WIDTH);
  TdLink *last = td_linear_new (net, "last", WIDTH, 1);
  TdOpt *opt = td_sgd_new (net, .lr = 1e-4);
  const char *name = argc > 1 ? argv[1] : ways[0].name;
  int way = 0, n = argc > 2 ? atoi (argv[2]) : N;

  if (strncmp (name, "static-", strlen ("static-")) == 0)
    {
      name += strlen ("static-");
      td_link_set_static (first);
      td_link_set_static (last);
    }
  while (way < (int)(sizeof ways / sizeof *ways) - 1 && strcmp (ways[way].name, name) != 0)
    way++;
  TD_ITERATIONS (i, n)
    {
      TdVar *x = td_relu (td_link (first, td_randn (TD_F32, TD_SHAPE (8, WIDTH))));
      TdVar *y = td_link (last, ways[way].keep != NULL ? x : td_link (cell, x));
      TdVar *loss = td_mean (td_mul (y, y));

      td_cleargrads (net);
      if (ways[way].keep != NULL)
        {
          td_backward (loss, 0);
          td_opt_update (opt);
          ways[way].keep (loss, y, (int)i);
        }
      else if (strcmp (ways[way].name, "cut-state") == 0)
        {
          td_backward (loss, 0);
          td_unchain_backward (loss);
          td_opt_update (opt);
        }
      td_report ("loss", td_item (loss));
    }
  if (argc > 2)
    let_go ();
  return td_finish ();
}
