/* `tapedeck`: the table of commands.  Links the engine's agent and the tape, never GTK,
 * Graphviz or Cairo: what needs those is executed.
 *
 * SPDX-License-Identifier: MIT */
#include "command.h"

#include "tapedeck.h"
#include "tape/td-tape.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int command_viz (int argc, char **argv);
static int command_app (int argc, char **argv);

static const struct
{
  const char *name, *arguments, *summary;
  int (*run) (int argc, char **argv);
  bool takes_tapes; /* or what can be made into one */
} commands[] = {
  { "run", "[OPTIONS] MODEL [ARGS]", "compile a model if it ends in .c, run it, record it",
    td_command_run },
  { "info", "TAPE [--oom] [--json]", "iterations, graphs, operations, parameters, how it ended",
    td_command_info, true },
  { "show", "TAPE --view VIEW [OPTIONS]", "a view of a tape as text, picture or data",
    command_viz, true },
  { "diff", "TAPE[:ITER] TAPE[:ITER] [--json]", "structure and numbers of two iterations",
    command_viz, true },
  { "leaks", "TAPE [--json]", "what grows and who holds it", command_viz, true },
  { "eval", "OP [--in A.npy]... [OPTIONS]", "one operation on arrays, and its gradients",
    td_command_eval },
  { "cat", "TAPE [--iterations A:B] [--json]", "the tape's records as text or JSON lines",
    td_command_cat, true },
  { "export", "TAPE --format FORMAT -o FILE", "memory for other programs to read",
    td_command_export, true },
  { "import", "SNAPSHOT -o TAPE", "a memory snapshot of PyTorch as a tape", td_command_import },
  { "check", "TAPE [--repair OUT]", "is it whole; what is the first bad offset",
    td_command_check },
};

enum
{
  N_COMMANDS = sizeof commands / sizeof *commands
};

bool
td_own_folder (char *out, unsigned long size)
{
  ssize_t n = readlink ("/proc/self/exe", out, size - 1);
  char *slash;

  if (n <= 0)
    return false;
  out[n] = '\0';
  slash = strrchr (out, '/');
  if (slash == NULL)
    return false;
  *slash = '\0';
  return true;
}

int
td_exec_helper (const char *name, char *const argv[])
{
  static const char *const places[] = { "../libexec/tapedeck", ".", "../ui", "../viz" };
  char folder[4096], path[4200];

  if (!td_own_folder (folder, sizeof folder))
    return TD_EXIT_NOT_FOUND;
  for (unsigned i = 0; i < sizeof places / sizeof *places; i++)
    {
      snprintf (path, sizeof path, "%s/%s/%s", folder, places[i], name);
      if (access (path, X_OK) != 0)
        continue;
      execv (path, argv);
      fprintf (stderr, "tapedeck: %s: %s\n", path, strerror (errno));
      return TD_EXIT_NOT_EXECUTABLE;
    }
  fprintf (stderr, "tapedeck: %s is not installed: this is a build without it\n", name);
  return TD_EXIT_NOT_FOUND;
}

int
td_usage_error (const char *command, const char *format, ...)
{
  va_list args;

  va_start (args, format);
  fputs ("tapedeck: ", stderr);
  vfprintf (stderr, format, args);
  va_end (args);
  if (command != NULL)
    fprintf (stderr, "\ntapedeck %s --help says more\n", command);
  else
    fputs ("\ntapedeck --help says more\n", stderr);
  return TD_EXIT_USAGE;
}

static void
print_help (void)
{
  puts ("Usage: tapedeck [FILE...]           open models (.c), programs and tapes in the app\n"
        "       tapedeck COMMAND ...\n");
  for (int i = 0; i < N_COMMANDS; i++)
    printf ("  %-6s %-34s %s\n", commands[i].name, commands[i].arguments, commands[i].summary);
  puts ("\n  --help, --version                          this text; the version\n\n"
        "tapedeck COMMAND --help describes one command; the man page is tapedeck(1).");
}

static void
print_version (void)
{
  printf ("tapedeck %s\ntape format %d.%d\nbackends: %s\n", td_version (), TD_TAPE_MAJOR,
          TD_TAPE_MINOR, td_device_backends ());
}

static int
command_viz (int argc, char **argv)
{
  static char name[] = "tapedeck-viz";
  char *args[256];

  if (argc > 250)
    return td_usage_error (argv[0], "too many arguments");
  args[0] = name;
  memcpy (&args[1], argv, (size_t)argc * sizeof *argv);
  args[argc + 1] = NULL;
  return td_exec_helper ("tapedeck-viz", args);
}

static int
command_app (int argc, char **argv)
{
  static char name[] = "tapedeck";
  char **args = calloc ((size_t)argc + 2, sizeof *args);

  if (args == NULL)
    return TD_EXIT_USAGE;
  memcpy (args, argv, (size_t)argc * sizeof *argv);
  args[0] = name;
  int status = td_exec_helper ("tapedeck-app", args);
  free (args);
  return status;
}

/* What a caller may have left undone: with SIGCHLD ignored no child's status is ever known, and
 * a file opened as descriptor 1 would get the model's output. */
static void
repair_inheritance (void)
{
  int fd;

  signal (SIGCHLD, SIG_DFL);
  while ((fd = open ("/dev/null", O_RDWR)) >= 0 && fd <= 2)
    ;
  if (fd > 2)
    close (fd);
}

int
main (int argc, char **argv)
{
  const char *word = argc > 1 ? argv[1] : "";

  repair_inheritance ();
  if (strcmp (word, "--help") == 0 || strcmp (word, "-h") == 0)
    return print_help (), TD_EXIT_OK;
  if (strcmp (word, "--version") == 0)
    return print_version (), TD_EXIT_OK;
  for (int i = 0; i < N_COMMANDS; i++)
    if (strcmp (word, commands[i].name) == 0)
      {
        const int status
            = commands[i].takes_tapes ? td_import_arguments (argc - 2, argv + 2) : TD_EXIT_OK;

        return status == TD_EXIT_OK ? commands[i].run (argc - 1, argv + 1) : status;
      }
  if (word[0] == '-' && word[1] != '\0' && strcmp (word, "--") != 0)
    return td_usage_error (NULL, "%s: no such option", word);
  for (int i = 1; i < argc; i++)
    if (strcmp (argv[i], "--") != 0 && access (argv[i], F_OK) != 0)
      {
        if (strpbrk (argv[i], "./") == NULL)
          return td_usage_error (NULL, "%s: no such command or file", argv[i]);
        fprintf (stderr, "tapedeck: %s: %s\n", argv[i], strerror (errno));
        return TD_EXIT_USAGE;
      }
  return td_import_arguments (argc - 1, argv + 1) == TD_EXIT_OK ? command_app (argc, argv)
                                                                : TD_EXIT_USAGE;
}
