/* The one engine: start, end, the thread it belongs to, its devices and names.
 *
 * SPDX-License-Identifier: MIT */
#include "core.h"
#include "late-index.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TdEngine td__engine;
__thread char td__thread_mark __attribute__ ((tls_model ("initial-exec")));

static const TdConfig config_defaults = {
  .train = 1,
  .enable_backprop = 1,
  .type_check = 1,
  .dtype = TD_F32,
  .use_cudnn = 1,
  .use_static_graph = 1,
  .stale_retained = TD_STALE_ERROR,
  .channels_last = 1,
};

const char *
td_version (void)
{
  return TD_VERSION;
}

/* Names given by programs are few and live for ever: one hash table of strings. */
static struct
{
  char **slots;
  size_t n, capacity;
} names;

static uint64_t
hash_text (const char *text)
{
  uint64_t h = 14695981039346656037u;

  for (; *text != '\0'; text++)
    h = (h ^ (unsigned char)*text) * 1099511628211u;
  return h;
}

static void
names_grow (void)
{
  size_t capacity = names.capacity == 0 ? 256 : 2 * names.capacity;
  char **slots = calloc (capacity, sizeof *slots);

  if (slots == NULL)
    abort ();
  for (size_t i = 0; i < names.capacity; i++)
    if (names.slots[i] != NULL)
      {
        size_t at = hash_text (names.slots[i]) & (capacity - 1);

        while (slots[at] != NULL)
          at = (at + 1) & (capacity - 1);
        slots[at] = names.slots[i];
      }
  free (names.slots);
  names.slots = slots;
  names.capacity = capacity;
}

const char *
td__intern (const char *text)
{
  size_t at;

  if (2 * names.n >= names.capacity)
    names_grow ();
  at = hash_text (text) & (names.capacity - 1);
  while (names.slots[at] != NULL)
    {
      if (strcmp (names.slots[at], text) == 0)
        return names.slots[at];
      at = (at + 1) & (names.capacity - 1);
    }
  names.slots[at] = strdup (text);
  if (names.slots[at] == NULL)
    abort ();
  names.n++;
  return names.slots[at];
}

static void
names_finish (void)
{
  for (size_t i = 0; i < names.capacity; i++)
    free (names.slots[i]);
  free (names.slots);
  memset (&names, 0, sizeof names);
}

uint64_t td__links_generation = 1;
static const char *links_last;
static const TdSite *links_last_site;

void
td__links_changed (const TdPath *path, const TdSite *site)
{
  td__links_generation++;
  links_last = path != NULL ? td__intern (path->text) : NULL;
  links_last_site = site;
}

const char *
td__links_last (const TdSite **site)
{
  *site = links_last_site;
  return links_last != NULL ? links_last : "";
}

static void
start (void)
{
  TdEngine *e = &td__engine;

  if (e->started)
    return;
  memset (e, 0, sizeof *e);
  e->config = config_defaults;
  td__slab_init (&e->vars, sizeof (TdVar));
  td__slab_init (&e->nodes, sizeof (TdNode));
  td__slab_init (&e->ops, sizeof (TdOp));
  td__slab_init (&e->buffers, sizeof (TdBuffer));
  e->scope = &e->root_scope;
  e->iteration = -1;
  e->thread = pthread_self ();
  e->thread_mark = &td__thread_mark;
  e->started = true;
  e->device = td__devices_start ();
}

bool
td__ensure_started (void)
{
  if (TD_UNLIKELY (!td__engine.started))
    start ();
  return true;
}

/* The thread of td_init owns the engine; a first call without td_init starts it. */
TdStatus
td__check_thread (const char *call)
{
  TdEngine *e = &td__engine;

  if (TD_UNLIKELY (!e->started))
    start ();
  if (TD_LIKELY (e->thread == pthread_self ()))
    return TD_OK;
  /* Not td__fail: the error belongs to the other thread and its state. */
  fprintf (stderr, "tapedeck: %s: called from a thread that did not call td_init\n", call);
  return TD_ERR_STATE;
}

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
  return true;
}

static bool
option_debug (const char *value)
{
  td__engine.config.debug = strcmp (value, "0") != 0;
  return true;
}

static bool
option_static (const char *value)
{
  return td__static_option (value);
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
  { "--td-static", "TAPEDECK_STATIC", option_static },
};

static void
bad_option (const char *name, const char *value)
{
  const char *why = td__engine.has_error ? td__engine.error.message : "not a value it takes";

  fprintf (stderr, "tapedeck: %s=%s: %s\n", name, value, why);
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

TdStatus
td_init (int *argc, char ***argv)
{
  int kept = 0;

  if (td__engine.started && td__engine.thread != pthread_self ())
    return td__check_thread ("td_init");
  start ();
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
  td__record_attach ();
  return TD_OK;
}

/* Everything that links, optimizers, iterators and scopes hold goes; then memory. */
static void
release_everything (void)
{
  TdEngine *e = &td__engine;

  while (e->scope != &e->root_scope)
    {
      e->scope->is_iteration = false; /* td_finish inside an iteration: no limit check */
      td_scope_close (e->scope);
    }
  for (size_t i = e->n_scope_vars; i > 0; i--)
    if (e->scope_vars[i - 1] != NULL)
      {
        TdVar *v = e->scope_vars[i - 1];

        e->scope_vars[i - 1] = NULL;
        td__var_unref (v, TD_HOLD_SCOPE);
      }
  e->n_scope_vars = 0;
}

int
td_finish (void)
{
  TdEngine *e = &td__engine;
  int status = 0;

  if (!e->started) /* never begun, or ended before: nothing is wrong */
    return 0;
  if (td__check_thread ("td_finish") != TD_OK)
    return 1;
  td__index_finish ();
  if (e->in_iteration && e->observer != NULL)
    e->observer->iteration (e->observer, false, e->iteration, 0, e->iteration_site);
  if (e->has_error)
    {
      fprintf (stderr, "tapedeck: %s\n", e->error.message);
      status = 1;
    }
  release_everything ();
  td__statics_finish ();
  td__links_finish ();
  td__hooks_finish ();
  if (e->observer != NULL)
    e->observer->finish (e->observer, status);
  e->observer = NULL;
  td__index_end ();
  td__devices_finish ();
  td__slab_finish (&e->vars);
  td__slab_finish (&e->nodes);
  td__slab_finish (&e->ops);
  td__slab_finish (&e->buffers);
  free (e->scope_vars);
  td__links_changed (NULL, NULL);
  names_finish ();
  memset (e, 0, sizeof *e);
  return status;
}
