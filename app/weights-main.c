/* tapedeck-weights: weights of another program for a model of ours.  `tapedeck weights` starts
 * it.
 *
 * SPDX-License-Identifier: MIT */
#include "command.h"
#include "weights-files.h"

#include "tapedeck.h"
#include "utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[]
    = "Usage: tapedeck weights FROM --into MODEL.npz|--for TAPE [--table FILE] [--by-order]\n"
      "                        -o OUT.npz|--dry-run\n"
      "\n"
      "FROM is an npz or safetensors file of weights as PyTorch names them (the state_dict of "
      "a\n"
      "model: l1.weight, bn.running_mean, rnn.weight_ih_l0).  OUT gets the same weights under\n"
      "the names and in the layout of our model, whose parameters MODEL.npz has "
      "(td_save_npz),\n"
      "or a recording of it; td_load_npz loads it.  An OUT that ends in .safetensors is one.\n"
      "\n"
      "First the table is printed: a line for each array of ours, with the array of theirs, "
      "the\n"
      "steps between the two, and behind # what tells that they belong together.  Layers are\n"
      "paired by their names, else by their numbers and sizes.  A line that begins with ? is "
      "a\n"
      "question: several could be meant, or a shape does not fit, or nothing is left; then\n"
      "nothing is written.  --by-order lets the order decide between layers of one size.\n"
      "--table reads answers: the table as it was printed, edited, or some lines of it, or "
      "the\n"
      "table of layers that tapedeck diff writes; blocks of layers may stand there as well.\n"
      "OURS - leaves ours as it is, OURS zeros fills it, and - THEIRS leaves theirs out.\n"
      "\n"
      "Exit status: 0 done, 1 questions are open, 2 trouble.\n"
      "The man page is tapedeck-weights(1).";

typedef struct
{
  const char *from, *into, *tape, *table, *out;
  gboolean dry_run, by_order;
} Asked;

static int
parse (int argc, char **argv, Asked *asked)
{
  const struct
  {
    const char *name;
    const char **value;
  } options[] = { { "--into", &asked->into },
                  { "--for", &asked->tape },
                  { "--table", &asked->table },
                  { "-o", &asked->out } };

  for (int i = 1; i < argc; i++)
    {
      gboolean taken = FALSE;

      for (size_t k = 0; i + 1 < argc && !taken && k < G_N_ELEMENTS (options); k++)
        if (strcmp (argv[i], options[k].name) == 0)
          {
            *options[k].value = argv[++i];
            taken = TRUE;
          }
      if (taken)
        continue;
      if (strcmp (argv[i], "--dry-run") == 0)
        asked->dry_run = TRUE;
      else if (strcmp (argv[i], "--by-order") == 0)
        asked->by_order = TRUE;
      else if (argv[i][0] == '-' && argv[i][1] != '\0')
        return td_usage_error (argv[0], "%s: no such option, or its value is missing", argv[i]);
      else if (asked->from != NULL)
        return td_usage_error (argv[0], "%s: one file of weights expected", argv[i]);
      else
        asked->from = argv[i];
    }
  if (asked->from == NULL)
    return td_usage_error (argv[0], "a file of weights expected");
  if ((asked->into == NULL) == (asked->tape == NULL))
    return td_usage_error (argv[0], "--into MODEL.npz or --for TAPE expected");
  if ((asked->out == NULL) != asked->dry_run)
    return td_usage_error (argv[0], "-o OUT.npz or --dry-run expected");
  return TD_EXIT_OK;
}

/* One line on standard error. */
static int
trouble (const char *message)
{
  g_autofree char *line = g_strdelimit (g_strdup (message), "\n\t", '?');
  char *plain = td__plain_text (line);

  fprintf (stderr, "tapedeck: %s\n", plain != NULL ? plain : "no memory");
  free (plain);
  return TD_EXIT_USAGE;
}

/* The table, for a terminal. */
static gboolean
print_table (const TdWeights *weights)
{
  g_autofree char *text = td_weights_print (weights);
  FILE *out = td__plain_stream (stdout);

  if (out == NULL)
    return FALSE;
  fputs (text, out);
  return fclose (out) == 0 && fflush (stdout) == 0;
}

/* ---- writing ---- */

typedef struct
{
  const TdWeights *weights;
  const TdWeightsFile *ours, *theirs;
} Job;

static void
serialize (void *object, TdSerializer *s)
{
  const Job *job = object;

  for (guint i = 0; i < job->ours->arrays->len; i++)
    {
      const TdWeightsRow *row = td_weights_get_row (job->weights, i);
      const char *key = g_ptr_array_index (job->ours->names, i);
      g_autofree char *why = NULL;
      TdRecord value;

      if (td_weights_make (job->weights, row, job->ours, job->theirs, &value, &why))
        td__serializer_write (s, key, &value);
      else
        td_serializer_refuse (s, key, why);
      free (value.data);
    }
}

static int
write_out (Job *job, const char *out)
{
  if (td_save_object (out, serialize, job) == TD_OK)
    {
      fprintf (stderr, "%s: %u arrays\n", out, job->ours->arrays->len);
      return TD_EXIT_OK;
    }
  return trouble (td_error ()->message);
}

/* ---- the command ---- */

static int
import (const Asked *asked, TdWeightsFile *ours, TdWeightsFile *theirs)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *table = NULL;
  TdWeightsRules rules
      = { .by_order = asked->by_order, .same = td_weights_file_same, .user = theirs };

  if ((asked->table && !g_file_get_contents (asked->table, &table, NULL, &error))
      || !td_weights_file_open (theirs, asked->from, &error)
      || !(asked->into ? td_weights_file_open (ours, asked->into, &error)
                       : td_weights_file_open_tape (ours, asked->tape, &error)))
    return trouble (error->message);
  rules.table = table;
  g_autoptr (TdWeights) weights = td_weights_new (
      (const TdWeightsArray *)(const void *)ours->arrays->data, ours->arrays->len,
      (const TdWeightsArray *)(const void *)theirs->arrays->data, theirs->arrays->len, &rules,
      &error);
  if (!weights)
    return trouble (error->message);
  Job job = { weights, ours, theirs };
  const guint n = td_weights_get_n_questions (weights);

  if (!print_table (weights))
    return TD_EXIT_USAGE; /* and td_command_main says so */
  if (n == 0)
    return asked->dry_run ? TD_EXIT_OK : write_out (&job, asked->out);
  fprintf (stderr, "tapedeck: %s: %u %s open%s; a table answers them\n", asked->from, n,
           n == 1 ? "question is" : "questions are",
           asked->dry_run ? "" : ", and nothing is written");
  return TD_EXIT_FINDING;
}

static int
run (int argc, char **argv)
{
  TdWeightsFile ours = { 0 }, theirs = { 0 };
  Asked asked = { 0 };
  int status;

  if (argc < 2 || strcmp (argv[1], "weights") != 0)
    {
      fputs ("usage: tapedeck-weights weights ...; try tapedeck weights --help\n", stderr);
      return TD_EXIT_USAGE;
    }
  argc--;
  argv++;
  for (int i = 1; i < argc; i++)
    if (strcmp (argv[i], "--help") == 0)
      return puts (help), TD_EXIT_OK;
  status = parse (argc, argv, &asked);
  if (status == TD_EXIT_OK)
    status = import (&asked, &ours, &theirs);
  td_weights_file_clear (&ours);
  td_weights_file_clear (&theirs);
  return status;
}

int
main (int argc, char **argv)
{
  return td_command_main (argc, argv, run);
}
