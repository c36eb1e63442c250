/* Where the engine is put together: td_init, td_finish, the options that they read, and the
 * table of parts.  This is the one file that knows all of them; no other depends on it.
 *
 * SPDX-License-Identifier: MIT */
#include "compute/core/core.h"
#include "ranks/comm.h"
#include "record/attach.h"
#include "static/static.h"
#include "train/hooks/hooks.h"
#include "train/links/link.h"
#include "train/optim/updates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A size such as "64M" or "1.5G". */
static bool
parse_bytes (const char *text, size_t *bytes)
{
  static const char units[] = "KMGT";
  char *end;
  double value = strtod (text, &end);
  const char *unit = (*end & ~32) != 0 ? strchr (units, *end & ~32) : NULL;

  if (end == text || !(value >= 0) || (*end != '\0' && (unit == NULL || end[1] != '\0')))
    return false;
  if (unit != NULL)
    value *= (double)((uint64_t)1 << (10 * (unit - units + 1)));
  if (value > 1e15)
    return false;
  *bytes = (size_t)value;
  return true;
}

static bool
option_device (const char *value)
{
  TdDevice *d = td_device_get (value);

  return d != NULL && td_device_use (d) == TD_OK;
}

static bool
option_mem_limit (const char *value)
{
  size_t bytes;

  if (!parse_bytes (value, &bytes))
    return false;
  td_set_mem_limit (bytes);
  return true;
}

static bool
parse_u64 (const char *value, uint64_t *out)
{
  char *end;

  *out = strtoull (value, &end, 10);
  return end != value && *end == '\0';
}

static bool
option_seed (const char *value)
{
  uint64_t seed;

  if (!parse_u64 (value, &seed))
    return false;
  td_set_seed (seed);
  return true;
}

static bool
option_iterations (const char *value)
{
  uint64_t n;

  if (!parse_u64 (value, &n) || n == 0 || n > INT64_MAX)
    return false;
  td__engine.iteration_limit = (int64_t)n;
  td__engine.finish = td_finish;
  return true;
}

static bool
option_debug (const char *value)
{
  td__engine.config.debug = strcmp (value, "0") != 0;
  return true;
}

/* Options of the engine, as --td-NAME=VALUE or in the environment; the environment is unset, so
 * that a child of the model is not taken for a model of ours. */
static const struct
{
  const char *option, *variable;
  bool (*set) (const char *value);
} options[] = {
  { "--td-device", "TAPEDECK_DEVICE", option_device },
  { "--td-mem-limit", "TAPEDECK_MEM_LIMIT", option_mem_limit },
  { "--td-seed", "TAPEDECK_SEED", option_seed },
  { "--td-iterations", "TAPEDECK_ITERATIONS", option_iterations },
  { "--td-debug", "TAPEDECK_DEBUG", option_debug },
  { "--td-static", "TAPEDECK_STATIC", td__static_option },
};

static void
bad_option (const char *name, const char *value)
{
  const char *why = td__engine.has_error ? td__engine.error.message : "not a value it takes";

  fprintf (stderr, "tapedeck: %s=%s: %s\n", name, value, why);
  td_error_clear (); /* it has been said */
  exit (2);
}

static void
take_argument (const char *arg)
{
  for (int i = 0; i < TD_ARRAY_LENGTH (options); i++)
    {
      size_t n = strlen (options[i].option);

      if (strncmp (arg, options[i].option, n) == 0 && arg[n] == '=')
        {
          if (!options[i].set (arg + n + 1))
            bad_option (options[i].option, arg + n + 1);
          return;
        }
    }
  fprintf (stderr,
           "tapedeck: %s: no such option of the engine (--td-device, --td-mem-limit, "
           "--td-seed, --td-iterations, --td-debug, --td-static =VALUE)\n",
           arg);
  exit (2);
}

/* What hangs on the engine, in the order in which it comes and goes.  Nothing here needs
 * td_init to work: without it, no program is recorded or debugged. */
static const struct
{
  void (*attach) (void); /* td_init; again with every further call of it */
  void (*finish) (void); /* td_finish */
} parts[] = {
  { td__static_attach, td__statics_finish },
  { td__updates_attach, NULL },
  { NULL, td__links_finish },
  { NULL, td__hooks_finish },
  { td__record_attach, NULL }, /* it ends as the engine's observer */
};

TdStatus
td_init (int *argc, char ***argv)
{
  int kept = 0;

  if (td__engine.started && td__engine.thread != pthread_self ())
    return td__check_thread ("td_init");
  td__ensure_started ();
  for (int i = 0; i < TD_ARRAY_LENGTH (options); i++)
    {
      const char *value = getenv (options[i].variable);

      if (value != NULL && *value != '\0' && !options[i].set (value))
        bad_option (options[i].variable, value);
      unsetenv (options[i].variable);
    }
  for (int i = 0; argc != NULL && argv != NULL && i < *argc; i++)
    if (i > 0 && strncmp ((*argv)[i], "--td-", 5) == 0)
      take_argument ((*argv)[i]);
    else
      (*argv)[kept++] = (*argv)[i];
  if (argc != NULL && argv != NULL)
    {
      (*argv)[kept] = NULL;
      *argc = kept;
    }
  for (int i = 0; i < TD_ARRAY_LENGTH (parts); i++)
    if (parts[i].attach != NULL)
      parts[i].attach ();
  return TD_OK;
}

int
td_finish (void)
{
  int status;

  if (!td__engine.started) /* never begun, or ended before: nothing is wrong */
    return 0;
  if (td__check_thread ("td_finish") != TD_OK)
    return 1;
  status = td__ranks_leave (); /* first: an error of that is among those that are printed */
  status |= td__engine_close ();
  for (int i = 0; i < TD_ARRAY_LENGTH (parts); i++)
    if (parts[i].finish != NULL)
      parts[i].finish ();
  return td__engine_end (status);
}

/* An iteration that opens with an error that the program never asked about would train on
 * poison: say so and stop, unless TAPEDECK_ON_ERROR=continue. */
static void
stop_on_unasked_error (void)
{
  TdEngine *e = &td__engine;
  const char *on_error = getenv ("TAPEDECK_ON_ERROR");

  if (!e->has_error || e->error_asked
      || (on_error != NULL && strcmp (on_error, "continue") == 0))
    return;
  exit (td_finish ());
}

TdScope *
td__iteration_open (int64_t label, const TdSite *site)
{
  if (!td__ensure_started () || td__check_thread ("TD_ITERATION") != TD_OK)
    return NULL;
  stop_on_unasked_error ();
  return td__iteration_begin (label, site);
}

bool
td__iteration_step (TdScope **scope, int64_t i, int64_t n, const TdSite *site)
{
  if (scope == NULL)
    return false;
  if (*scope != NULL)
    td_scope_close (*scope);
  *scope = NULL;
  if (i >= n)
    return false;
  *scope = td__iteration_open (i, site);
  return *scope != NULL;
}
