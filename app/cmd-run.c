/* `tapedeck run`: options, compile, supervise.
 *
 * SPDX-License-Identifier: MIT */
#include "command.h"
#include "compile.h"
#include "keeper.h"
#include "program.h"
#include "python.h"
#include "ranks.h"
#include "supervisor.h"

#include "record/agent/agent.h"
#include "td-tape-writer.h"
#include "whereabouts.h"

#include <errno.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char help[]
    = "Usage: tapedeck run [OPTIONS] MODEL [ARGS]\n\n"
      "Compile MODEL if it ends in .c, run it under supervision.  Options end at MODEL.\n\n"
      "  -o, --tape FILE        record to FILE (refuses to overwrite; -f forces)\n"
      "                         under mpirun each rank N to FILE-rank-N, before its dot;\n"
      "                         with -n the folder of all tapes\n"
      "  -n, --ranks N          N processes, by Open MPI's mpirun; tapes go to the folder\n"
      "                         MODEL.ranks: rank-0.tdtape ...\n"
      "      --hosts FILE       machines for them, a line each: NAME [slots=N]\n"
      "      --hang-after S     a rank may wait for the others for S seconds (default 60,\n"
      "                         0: for ever); then it says where each of them is\n"
      "      --on-hang WHAT     abort (default with --hang-after): all are ended; stuck\n"
      "                         (default without): unless some rank computes; stop: all are "
      "left\n"
      "      --level LEVEL      graph (default), stats or values\n"
      "      --tape-budget N    bytes of the tape, 0: unlimited (default 2G)\n"
      "      --tape-rate N      bytes a second by which the tape may grow beyond its first\n"
      "                         256M, older iterations becoming summaries (default 1M);\n"
      "                         0: whatever the budget allows\n"
      "      --values-budget N  bytes of recorded values, 0: unlimited (default 256M)\n"
      "      --keyframes N      every N-th iteration, the first of them, can be recomputed:\n"
      "                         all that its operations are given is recorded; 0: none\n"
      "      --runs-budget N    bytes of this recording and of those in folders beside its\n"
      "                         own together, 0: unlimited (default)\n"
      "      --device NAME      cpu, cuda:N, cuda (each rank its own) or null\n"
      "      --mem-limit N      refuse allocations beyond N bytes, 0: none\n"
      "      --seed N           seed of random numbers\n"
      "      --static MODE      static functions: auto (verified at calls 2, 3, 5,\n"
      "                         9 ...), as-is (never), off (run as code), verify or\n"
      "                         verify=K (every K-th call)\n"
      "      --iterations N     stop after N iterations, exit 0\n"
      "      --break EXPR       stop there, print where and why, exit 3:\n"
      "                         error, exact error, nan, inf, op == NAME, link == PATH,\n"
      "                         line == FILE:N, iteration == N, rank == N, bytes > N,\n"
      "                         pool > N, alloc > N, growth > N, norm > X,\n"
      "                         norm(grad) > X, graph changed, held after iteration,\n"
      "                         guard failed, edge cut, && and ||\n"
      "      --window           open the app on it\n"
      "      --quiet            silence tapedeck's own progress\n\n"
      "A MODEL that ends in .onnx runs forward and backward, once or as --iterations says, "
      "with\n"
      "--input NAME=FILE.npy and --size NAME=N (an open size) as its ARGS.\n"
      "A MODEL that ends in .py is a PyTorch script, which python3 (or TAPEDECK_PYTHON) runs\n"
      "and records: with -o, -f, -n, --hosts, --hang-after, --on-hang, --level,\n"
      "--tape-budget, --break and --quiet.\n\n"
      "N may end in K, M, G or T.  The model's own exit status is passed through, 128+N for "
      "signal N.\n"
      "The man page is tapedeck-run(1).";

#define NO_LIMIT ((uint64_t)1 << 50)

/* What was parsed. */
typedef struct
{
  TdSupervisorOptions s;
  bool window, help, has_rate;
  const char *engines; /* the last option that only a program of the engine can have */
  char breaks[4096];
  char why[256]; /* an option is no good, said in full; "": it is not */
  int n_ranks;   /* 0: this process is the run, or one rank of it */
  const char *hosts, *source;
  const char *own; /* the last option that several processes cannot share */
  char **passed;   /* options for each of them, and how many */
  int n_passed;
  int first;               /* index of MODEL */
  const char *last_option; /* that has a value, for the window, which takes none */
} Run;

static bool
parse_bytes (const char *text, uint64_t *out)
{
  static const char units[] = "KMGT";
  char *end;
  double value = strtod (text, &end);
  const char *unit = (*end & ~32) != 0 ? strchr (units, *end & ~32) : NULL;

  if (text + strspn (text, "0123456789.") != end || end == text || !(value >= 0)
      || (*end != '\0' && (unit == NULL || end[1] != '\0')))
    return false;
  if (unit != NULL)
    value *= (double)((uint64_t)1 << (10 * (unit - units + 1)));
  if (!(value < 1e15)) /* as the engine says; infinity too */
    return false;
  *out = (uint64_t)value;
  return true;
}

static bool
set_tape (Run *r, const char *v)
{
  r->s.tape = v;
  return *v != '\0';
}

static bool
set_level (Run *r, const char *v)
{
  for (uint32_t level = TD_TAPE_LEVEL_GRAPH; level <= TD_TAPE_LEVEL_VALUES; level++)
    if (strcmp (v, td_tape_level_name (level)) == 0)
      {
        r->s.level = level;
        return true;
      }
  return false;
}

static bool
set_budget (Run *r, const char *v)
{
  return parse_bytes (v, &r->s.budget_bytes);
}

static bool
set_rate (Run *r, const char *v)
{
  r->has_rate = true;
  return parse_bytes (v, &r->s.rate_bytes);
}

static bool
set_values_budget (Run *r, const char *v)
{
  const bool good = parse_bytes (v, &r->s.values_bytes);

  if (good && r->s.values_bytes == 0) /* a writer takes 0 for its default */
    r->s.values_bytes = NO_LIMIT;
  return good;
}

static bool
set_runs_budget (Run *r, const char *v)
{
  return parse_bytes (v, &r->s.runs_bytes);
}

static bool
set_device (Run *r, const char *v)
{
  r->s.device = v;
  return strcmp (v, "cpu") == 0 || strcmp (v, "null") == 0 || strcmp (v, "cuda") == 0
         || strncmp (v, "cuda:", 5) == 0;
}

static bool
set_mem_limit (Run *r, const char *v)
{
  uint64_t bytes;

  r->s.mem_limit = v;
  return parse_bytes (v, &bytes);
}

static bool
is_number (const char *v)
{
  return *v != '\0' && v[strspn (v, "0123456789")] == '\0' && strlen (v) < 20;
}

static bool
set_seed (Run *r, const char *v)
{
  r->s.seed = v;
  return is_number (v);
}

/* verify=K: every K-th call. */
static bool
set_static (Run *r, const char *v)
{
  r->s.statics = v;
  return strcmp (v, "auto") == 0 || strcmp (v, "as-is") == 0 || strcmp (v, "off") == 0
         || strcmp (v, "verify") == 0
         || (strncmp (v, "verify=", 7) == 0 && is_number (v + 7) && strlen (v) < 16
             && strtoull (v + 7, NULL, 10) > 0);
}

static bool
set_keyframes (Run *r, const char *v)
{
  r->s.keyframes = v;
  return is_number (v);
}

static bool
set_iterations (Run *r, const char *v)
{
  r->s.iterations = v;
  return is_number (v) && strtoull (v, NULL, 10) > 0;
}

static bool
set_break (Run *r, const char *v)
{
  TdBreak *b = td__break_parse (v, r->why, sizeof r->why);
  size_t used = strlen (r->breaks);

  if (b == NULL)
    return false;
  td__break_free (b);
  r->s.exit_at_break = true;
  return (size_t)snprintf (r->breaks + used, sizeof r->breaks - used, "%s%s",
                           used > 0 ? "\n" : "", v)
         < sizeof r->breaks - used;
}

static bool
set_ranks (Run *r, const char *v)
{
  if (!is_number (v) || strlen (v) > 6)
    return false;
  r->n_ranks = atoi (v);
  return r->n_ranks > 0 && r->n_ranks <= TD_MOST_RANKS;
}

static bool
set_hosts (Run *r, const char *v)
{
  r->hosts = v;
  return *v != '\0';
}

static bool
set_hang_after (Run *r, const char *v)
{
  r->s.hang_after = v;
  return v[strspn (v, "0123456789.")] == '\0' && strcspn (v, "0123456789") < strlen (v)
         && strlen (v) < 10 && strchr (v, '.') == strrchr (v, '.');
}

static bool
set_on_hang (Run *r, const char *v)
{
  r->s.on_hang = v;
  return strcmp (v, "abort") == 0 || strcmp (v, "stuck") == 0 || strcmp (v, "stop") == 0;
}

/* `tapedeck run -n` says these two to each rank. */
static bool
set_ranks_folder (Run *r, const char *v)
{
  r->s.ranks_folder = v;
  return *v != '\0';
}

static bool
set_source (Run *r, const char *v)
{
  r->source = v;
  return *v != '\0';
}

/* Breakpoints for a client that waits for them: the app. */
static bool
set_stop (Run *r, const char *v)
{
  bool exits = r->s.exit_at_break, good = set_break (r, v);

  r->s.exit_at_break = exits;
  return good;
}

/* For the app, too. */
static bool
set_pause (Run *r, const char *v)
{
  r->s.pause = v;
  return is_number (v);
}

static bool
set_control (Run *r, const char *v)
{
  r->s.control = v;
  return *v != '\0';
}

static const struct
{
  const char *name, *alias;
  bool (*set) (Run *r, const char *value);
  const char *expected;
  bool scripts; /* have it, too */
  enum
  {
    EACH, /* of several ranks takes it */
    ALL,  /* is about all of them together */
    ONE   /* can only be one process's */
  } ranks;
} options[] = {
  { "--tape", "-o", set_tape, "a file", true, ALL },
  { "--ranks", "-n", set_ranks, "a number of processes from 1 to 65536", true, ALL },
  { "--hosts", NULL, set_hosts, "a file", true, ALL },
  { "--hang-after", NULL, set_hang_after, "a number of seconds", true },
  { "--on-hang", NULL, set_on_hang, "abort, stuck or stop", true },
  { "--ranks-folder", NULL, set_ranks_folder, "a folder", true, ONE },
  { "--source", NULL, set_source, "a file", false, ONE },
  { "--level", NULL, set_level, "graph, stats or values", true },
  { "--tape-budget", NULL, set_budget, "a number of bytes", true },
  { "--tape-rate", NULL, set_rate, "a number of bytes", false },
  { "--values-budget", NULL, set_values_budget, "a number of bytes", false },
  { "--keyframes", NULL, set_keyframes, "a number", false },
  { "--runs-budget", NULL, set_runs_budget, "a number of bytes", false },
  { "--device", NULL, set_device, "cpu, cuda, cuda:N or null", false },
  { "--mem-limit", NULL, set_mem_limit, "a number of bytes", false },
  { "--seed", NULL, set_seed, "a number", false },
  { "--static", NULL, set_static, "auto, as-is, off, verify or verify=K", false },
  { "--iterations", NULL, set_iterations, "a number above 0", false },
  { "--break", NULL, set_break, "a condition", true },
  { "--stop", NULL, set_stop, "a condition", true },
  { "--pause", NULL, set_pause, "the number of an iteration", false },
  { "--control", NULL, set_control, "the path of a socket", true, ONE },
};

static const struct
{
  const char *name, *alias;
  size_t offset;
} flags[] = {
  { "--force", "-f", offsetof (Run, s.overwrite) },
  { "--quiet", "-q", offsetof (Run, s.quiet) },
  { "--window", NULL, offsetof (Run, window) },
  { "--help", "-h", offsetof (Run, help) },
};

static bool
is_option (const char *arg, const char *name, const char *alias)
{
  return strcmp (arg, name) == 0 || (alias != NULL && strcmp (arg, alias) == 0);
}

/* One option at argv[i]; the index of the next argument, 0 after an error. */
static int
parse_option (Run *r, int argc, char **argv, int i)
{
  const char *arg = argv[i], *equals = strchr (arg, '=');

  for (unsigned k = 0; k < sizeof flags / sizeof *flags; k++)
    if (is_option (arg, flags[k].name, flags[k].alias))
      {
        *((bool *)(void *)((char *)r + flags[k].offset)) = true;
        r->passed[r->n_passed++] = argv[i];
        return i + 1;
      }
  for (unsigned k = 0; k < sizeof options / sizeof *options; k++)
    {
      size_t n = strlen (options[k].name);
      bool joined = equals != NULL && (size_t)(equals - arg) == n
                    && strncmp (arg, options[k].name, n) == 0;
      const char *value = joined ? equals + 1 : i + 1 < argc ? argv[i + 1] : NULL;

      if (!joined && !is_option (arg, options[k].name, options[k].alias))
        continue;
      if (value == NULL || !options[k].set (r, value))
        {
          if (r->why[0] != '\0')
            td_usage_error ("run", "%s", r->why);
          else
            td_usage_error ("run", "%s %s: %s expected", options[k].name,
                            value != NULL ? value : "", options[k].expected);
          return 0;
        }
      r->last_option = options[k].name;
      if (!options[k].scripts)
        r->engines = options[k].name;
      if (options[k].ranks == ONE)
        r->own = options[k].name;
      for (int j = 0; options[k].ranks == EACH && j < (joined ? 1 : 2); j++)
        r->passed[r->n_passed++] = argv[i + j];
      return i + (joined ? 1 : 2);
    }
  td_usage_error ("run", "%s: no such option", arg);
  return 0;
}

static int
open_window (const Run *r, int argc, char **argv)
{
  char **args = calloc ((size_t)argc + 3, sizeof *args);
  int n = 0;

  if (args == NULL)
    return TD_EXIT_USAGE;
  args[n++] = (char *)(uintptr_t) "tapedeck";
  args[n++] = (char *)(uintptr_t) "--run";
  for (int i = r->first; i < argc; i++)
    args[n++] = argv[i];
  int status = td_exec_helper ("tapedeck-app", args);
  free (args);
  return status;
}

/* As so many processes, each of which comes here again without -n. */
static int
run_ranks (const Run *r, const char *model, const char *program, char **argv)
{
  const TdRanksOptions o = { .n = r->n_ranks,
                             .hosts = r->hosts,
                             .model = model,
                             .program = program,
                             .argv = argv + r->first,
                             .options = r->passed,
                             .folder = r->s.tape,
                             .overwrite = r->s.overwrite,
                             .quiet = r->s.quiet };

  return td_run_ranks (&o);
}

static int
run_model (Run *r, char **argv)
{
  static char program[8192];
  static char plain[4096]; /* to a compiler -x.c is an option and @x.c a file of them */
  const char *model = argv[r->first];
  size_t n = strlen (model);
  int failed = 0;

  if (strchr ("-@", model[0]) != NULL && n > 2 && n + 3 < sizeof plain
      && strcmp (model + n - 2, ".c") == 0)
    {
      snprintf (plain, sizeof plain, "./%s", model);
      model = plain;
      n += 2;
    }
  if (r->s.tape != NULL && td_same_file (model, r->s.tape))
    {
      fprintf (stderr, "tapedeck: %s: it is what is run, and is not written over\n", r->s.tape);
      return TD_EXIT_USAGE;
    }
  r->s.name = model;
  r->s.argv = argv + r->first;
  r->s.breaks = r->breaks[0] != '\0' ? r->breaks : NULL;
  if (r->source != NULL) /* compiled for all ranks */
    {
      snprintf (program, sizeof program, "%s", model);
      failed = td_program_trouble (program);
      r->s.name = r->s.source = r->source;
      argv[r->first] = (char *)(uintptr_t)r->source;
    }
  else if (n > 2 && strcmp (model + n - 2, ".c") == 0)
    {
      if (!td_compile_model (model, r->s.quiet, program, sizeof program))
        return TD_EXIT_USAGE;
      r->s.source = model;
    }
  else if (td_is_onnx (model)) /* its program gets it as its own name */
    {
      failed = access (model, R_OK) == 0 ? 0 : errno;
      if (failed == 0 && !td_find_helper ("tapedeck-eval", program, sizeof program))
        return TD_EXIT_NOT_FOUND;
      r->s.drops_refused = r->s.pause == NULL; /* else a client has the tape open */
    }
  else
    {
      snprintf (program, sizeof program, "%s", model);
      failed = td_program_trouble (program);
    }
  if (failed != 0)
    {
      fprintf (stderr, "tapedeck: %s: %s\n", model, strerror (failed));
      return failed == ENOENT ? TD_EXIT_NOT_FOUND : TD_EXIT_NOT_EXECUTABLE;
    }
  r->s.program = program;
  if (r->n_ranks > 0)
    return run_ranks (r, model, r->s.source != NULL ? program : model, argv);
  return td_supervise (&r->s);
}

static int
check_for_python (const Run *r)
{
  if (r->engines != NULL)
    return td_usage_error ("run", "%s does not go with a Python script", r->engines);
  return TD_EXIT_OK;
}

/* A script's recorder writes the tape itself. */
static int
run_python (Run *r, char **argv)
{
  r->s.argv = argv + r->first;
  r->s.breaks = r->breaks[0] != '\0' ? r->breaks : NULL;
  if (check_for_python (r) != TD_EXIT_OK)
    return TD_EXIT_USAGE;
  if (r->s.tape != NULL && td_same_file (r->s.argv[0], r->s.tape))
    {
      fprintf (stderr, "tapedeck: %s: it is what is run, and is not written over\n", r->s.tape);
      return TD_EXIT_USAGE;
    }
  if (r->n_ranks > 0)
    return run_ranks (r, r->s.argv[0], r->s.argv[0], argv);
  return td_run_python (&r->s);
}

/* What very long iterations need comes in arrays that grow to tens of megabytes and then go.
 * Left to itself glibc soon takes those from its heap, where they leave holes: 40 MB of 330 for
 * a million operations. */
static void
give_back_large_arrays (void)
{
#ifdef __GLIBC__
  mallopt (M_MMAP_THRESHOLD, 256 << 10);
#endif
}

/* mpirun has started several of these: each writes a tape of its own, FILE-rank-N.tdtape, or
 * rank-N.tdtape in the folder of all. */
static void
take_rank (Run *r, const char *model)
{
  static char own[4200];
  const char *tape = r->s.tape, *name, *dot;
  int rank, n;
  const bool several = td__where_rank (&rank, &n);

  if (several)
    {
      r->s.rank = (uint32_t)rank;
      r->s.n_ranks = (uint32_t)n;
      if (r->s.hang_after == NULL && getenv (TD_WHERE_HANG_VARIABLE) == NULL)
        {
          /* a limit that nobody has asked for ends no program that computes */
          r->s.hang_after = "60";
          if (r->s.on_hang == NULL && getenv (TD_WHERE_ON_HANG_VARIABLE) == NULL)
            r->s.on_hang = "stuck";
        }
    }
  if (r->s.ranks_folder != NULL)
    {
      mkdir (r->s.ranks_folder, 0777); /* on a disk of another machine; else it is there */
      td_rank_tape (r->s.ranks_folder, several ? rank : 0, own, sizeof own);
      r->s.tape = own;
      return;
    }
  if (tape == NULL && several && td_is_python (model)) /* what it would be called alone */
    tape = td_python_tape (model);
  if (tape == NULL || !several)
    return;
  name = strrchr (tape, '/');
  dot = strrchr (tape, '.');
  if (dot == NULL || dot == tape || (name != NULL && dot <= name + 1))
    dot = tape + strlen (tape);
  if ((size_t)snprintf (own, sizeof own, "%.*s-rank-%d%s", (int)(dot - tape), tape, rank, dot)
      < sizeof own)
    r->s.tape = own;
}

/* A condition that names a rank, and none that there is, would be waited for in vain. */
static int
check_breaks (const Run *r)
{
  const int n = r->n_ranks > 0 ? r->n_ranks : (int)r->s.n_ranks;
  char text[sizeof r->breaks], error[256], *rest = text;

  snprintf (text, sizeof text, "%s", r->s.exit_at_break ? r->breaks : "");
  for (const char *line; (line = strsep (&rest, "\n")) != NULL && *line != '\0';)
    {
      TdBreak *b = td__break_parse (line, error, sizeof error);
      const bool is_one = b == NULL || td__break_has_rank (b, n);

      td__break_free (b);
      if (!is_one && n == 1)
        return td_usage_error ("run", "--break %s: it holds on no rank, as this one is 0 of 1",
                               line);
      if (!is_one)
        return td_usage_error ("run", "--break %s: it holds on no rank, as these are 0 to %d",
                               line, n - 1);
    }
  return TD_EXIT_OK;
}

static int
command_run (Run *r, int argc, char **argv)
{
  int i = 1;

  while (i < argc && argv[i][0] == '-' && argv[i][1] != '\0' && strcmp (argv[i], "--") != 0)
    {
      i = parse_option (r, argc, argv, i);
      if (i == 0)
        return TD_EXIT_USAGE;
    }
  if (r->help && i < argc && td_is_python (argv[i]) && check_for_python (r) != TD_EXIT_OK)
    return TD_EXIT_USAGE;
  if (r->help)
    return puts (help), TD_EXIT_OK;
  if (i < argc && strcmp (argv[i], "--") == 0)
    i++;
  if (i >= argc)
    return td_usage_error ("run", "a model expected: a .c file or a program");
  r->first = i;
  if (r->hosts != NULL && r->n_ranks == 0)
    return td_usage_error ("run", "--hosts needs -n: how many processes?");
  if (r->n_ranks > 0 && (r->window || r->own != NULL))
    return td_usage_error ("run", "%s does not go with -n", r->window ? "--window" : r->own);
  if (r->n_ranks > 0 && td__where_rank (&(int){ 0 }, &(int){ 0 }))
    return td_usage_error ("run", "-n: mpirun has started this process as one of several");
  if (r->n_ranks == 0)
    take_rank (r, argv[i]);
  if (check_breaks (r) != TD_EXIT_OK)
    return TD_EXIT_USAGE;
  if (r->s.budget_bytes == 0 && !r->has_rate) /* no limit is none */
    r->s.rate_bytes = 0;
  if (r->s.tape != NULL && td_refuse_standard_output ("run", "--tape", r->s.tape) != TD_EXIT_OK)
    return TD_EXIT_USAGE;
  if (r->window && r->last_option != NULL)
    return td_usage_error (
        "run", "%s does not go with --window: the app records in its own way", r->last_option);
  if (r->window)
    return open_window (r, argc, argv);
  if (r->s.n_ranks > 1)
    td_keep_apart ();
  return td_is_python (argv[i]) ? run_python (r, argv) : run_model (r, argv);
}

int
td_command_run (int argc, char **argv)
{
  Run r = {
    .s = { .budget_bytes = (uint64_t)2 << 30, .rate_bytes = TD_TAPE_RATE_BYTES, .n_ranks = 1 }
  };
  int status;

  r.passed = calloc ((size_t)argc + 1, sizeof *r.passed);
  if (r.passed == NULL)
    return TD_EXIT_USAGE;
  give_back_large_arrays ();
  status = command_run (&r, argc, argv);
  free (r.passed);
  return status;
}
