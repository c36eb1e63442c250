/* `tapedeck`: the table of commands.  Links the tape and what a supervisor needs, never the
 * engine's mathematics, GTK, Graphviz or Cairo: what needs those is executed.
 *
 * SPDX-License-Identifier: MIT */
#include "address.h"
#include "command.h"
#include "model-tape.h"

#include "td-tape.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int command_viz (int argc, char **argv);
static int command_show (int argc, char **argv);
static int command_eval (int argc, char **argv);
static int command_serve (int argc, char **argv);
static int command_weights (int argc, char **argv);
static int command_app (int argc, char **argv);

static const struct
{
  const char *name, *arguments, *summary;
  int (*run) (int argc, char **argv);
  bool takes_tapes; /* or what can be made into one */
} commands[] = {
  { "run", "[OPTIONS] MODEL [ARGS]", "compile a model if it ends in .c, run it, record it",
    td_command_run },
  { "info", "TAPE|MODEL.onnx [--oom] [--json]",
    "what is on a tape, or in a model of another program", td_command_info, true },
  { "show", "TAPE|MODEL.onnx --view VIEW [OPTIONS]",
    "a view of a tape as text, picture or data", command_show, true },
  { "diff", "TAPE[:ITER] TAPE[:ITER] [--json]", "structure and numbers of two iterations",
    command_viz, true },
  { "leaks", "TAPE [--json]", "what grows and who holds it", command_viz, true },
  { "ranks", "FOLDER|TAPE... [--json]",
    "where the ranks of one run part, and who waits for whom", command_viz },
  { "eval", "OP [--in A.npy]... [OPTIONS]", "one operation on arrays, and its gradients",
    command_eval },
  { "serve", "MODEL.onnx [OPTIONS]", "answer requests over HTTP with a model", command_serve },
  { "weights", "FROM --into MODEL.npz -o OUT.npz",
    "weights of PyTorch under our names, npz and safetensors", command_weights },
  { "recompute", "TAPE --iteration N -o OUT", "an iteration again, with all its values",
    command_eval, true },
  { "cat", "TAPE [--iterations A:B] [--json]", "the tape's records as text or JSON lines",
    td_command_cat, true },
  { "export", "TAPE --format FORMAT -o FILE", "what is on a tape for other programs to read",
    td_command_export, true },
  { "import", "FILE -o TAPE", "a memory snapshot, a trace or a reference as a tape",
    td_command_import },
  { "check", "TAPE [--repair OUT]", "is it whole; what is the first bad offset",
    td_command_check },
};

enum
{
  N_COMMANDS = sizeof commands / sizeof *commands
};

static void
print_help (void)
{
  puts ("Usage: tapedeck [FILE...]           open models (.c, .onnx), programs, tapes and "
        "folders of ranks in the app\n"
        "       tapedeck COMMAND ...\n");
  for (int i = 0; i < N_COMMANDS; i++)
    printf ("  %-9s %-34s %s\n", commands[i].name, commands[i].arguments, commands[i].summary);
  puts ("\n  --help, --version                          this text; the version\n\n"
        "tapedeck COMMAND --help describes one command; the man pages begin with tapedeck(1).");
}

/* Another program, which is told a name and arguments. */
static int
run_helper (const char *helper, char *name, int argc, char **argv)
{
  char **args = calloc ((size_t)argc + 2, sizeof *args);
  int status;

  if (args == NULL)
    return TD_EXIT_USAGE;
  args[0] = name;
  memcpy (&args[1], argv, (size_t)argc * sizeof *argv);
  status = td_exec_helper (helper, args);
  free (args);
  return status;
}

/* A command of another program, whose name it is told with its arguments. */
static int
command_of (char *program, int argc, char **argv)
{
  return run_helper (program, program, argc, argv);
}

static int
command_viz (int argc, char **argv)
{
  static char name[] = "tapedeck-viz";

  return command_of (name, argc, argv);
}

/* A model is as good as a tape of it. */
static int
command_show (int argc, char **argv)
{
  const int status = td_model_arguments (argc - 1, argv + 1);

  return status == TD_EXIT_OK ? command_viz (argc, argv) : status;
}

static int
command_eval (int argc, char **argv)
{
  static char name[] = "tapedeck-eval";

  return command_of (name, argc, argv);
}

static int
command_serve (int argc, char **argv)
{
  static char name[] = "tapedeck-serve";

  return command_of (name, argc, argv);
}

static int
command_weights (int argc, char **argv)
{
  static char name[] = "tapedeck-weights";

  return command_of (name, argc, argv);
}

/* The engine knows the devices. */
static int
print_version (void)
{
  static char backends[] = "backends";
  char *argv[] = { backends, NULL };

  printf ("tapedeck %s\ntape format %d.%d\n", TD_VERSION, TD_TAPE_MAJOR, TD_TAPE_MINOR);
  fflush (stdout);
  return command_eval (1, argv);
}

static int
command_app (int argc, char **argv)
{
  static char name[] = "tapedeck";

  return run_helper ("tapedeck-app", name, argc - 1, argv + 1);
}

/* Behind -- there are names of files only, as every command sees when they do not begin with a
 * dash.  Returns how many arguments are left, or -1. */
static int
take_end_of_options (int argc, char **argv)
{
  int end = 2;

  while (end < argc && (strcmp (argv[end], "--") != 0 || td_names_output (argv[end - 1])))
    end++;
  if (end >= argc)
    return argc;
  memmove (&argv[end], &argv[end + 1], (size_t)(argc - end) * sizeof *argv); /* and the NULL */
  argc--;
  for (int i = end; i < argc; i++)
    {
      const size_t n = strlen (argv[i]) + sizeof "./";
      char *name;

      if (argv[i][0] != '-' || argv[i][1] == '\0')
        continue;
      name = malloc (n); /* as long as the process */
      if (name == NULL)
        return -1;
      snprintf (name, n, "./%s", argv[i]);
      argv[i] = name;
    }
  return argc;
}

static int
run (int argc, char **argv)
{
  const char *word = argc > 1 ? argv[1] : "";

  if (strcmp (word, "--help") == 0 || strcmp (word, "-h") == 0)
    return print_help (), TD_EXIT_OK;
  if (strcmp (word, "help") == 0 && argc == 2)
    return print_help (), TD_EXIT_OK;
  if (strcmp (word, "help") == 0 && argc == 3) /* of a command */
    return run (argc, (char *[]){ argv[0], argv[2], (char *)(uintptr_t) "--help", NULL });
  if (strcmp (word, "--version") == 0)
    return print_version ();
  for (int i = 0; i < N_COMMANDS; i++)
    if (strcmp (word, commands[i].name) == 0)
      {
        int status = TD_EXIT_OK;

        if (commands[i].run != td_command_run) /* what its model is given is not ours */
          {
            argc = take_end_of_options (argc, argv);
            status = argc > 0 ? td_refuse_own_input (argc - 1, argv + 1) : TD_EXIT_USAGE;
          }
        if (status == TD_EXIT_OK && commands[i].takes_tapes)
          status = td_import_arguments (argc - 2, argv + 2);
        return status == TD_EXIT_OK ? commands[i].run (argc - 1, argv + 1) : status;
      }
  if (word[0] == '-' && word[1] != '\0' && strcmp (word, "--") != 0)
    return td_usage_error (NULL, "%s: no such option", word);
  for (int i = 1; i < argc; i++)
    {
      char *path = td_address_to_path (argv[i]);

      argv[i] = path != NULL ? path : argv[i]; /* as long as the process */
    }
  for (int i = 1; i < argc; i++)
    if (strcmp (argv[i], "--") != 0 && !td_address_is_link (argv[i])
        && access (argv[i], F_OK) != 0)
      {
        if (strpbrk (argv[i], "./") == NULL)
          return td_usage_error (NULL, "%s: no such command or file", argv[i]);
        fprintf (stderr, "tapedeck: %s: %s\n", argv[i], strerror (errno));
        return TD_EXIT_USAGE;
      }
  return command_app (argc, argv);
}

int
main (int argc, char **argv)
{
  return td_command_main (argc, argv, run);
}
