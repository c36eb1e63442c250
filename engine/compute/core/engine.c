/* The one engine: its state, the thread it belongs to, its names.  td_init and td_finish, which
 * know what else there is, are engine/start.c.
 *
 * SPDX-License-Identifier: MIT */
#include "core.h"
#include "op-held.h"
#include "host-memory.h"
#include "async-index.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

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
  char **slots = td__xcalloc (capacity, sizeof *slots);

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
  names.slots[at] = td__xstrdup (text);
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

/* Another thread than the engine's has called it. */
static atomic_bool strangers;
static pid_t started_in;
static void note_status (int status, void *unused);

static void
start (void)
{
  TdEngine *e = &td__engine;

  if (e->started)
    return;
  memset (e, 0, sizeof *e);
  e->config = config_defaults;
  td__vars_start ();
  td__slab_init (&e->nodes, sizeof (TdNode));
  td__slab_init (&e->ops, sizeof (TdOp));
  td__slab_init (&e->buffers, sizeof (TdBuffer));
  e->scope = &e->root_scope;
  e->iteration = -1;
  e->thread = pthread_self ();
  e->thread_mark = &td__thread_mark;
  e->started = true;
  if (started_in == 0)
    on_exit (note_status, NULL);
  started_in = getpid ();
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
  td__say_stranger (call);
  return TD_ERR_STATE;
}

void
td__say_stranger (const char *what)
{
  if (!atomic_exchange (&strangers, true))
    fprintf (stderr, "tapedeck: %s: called from a thread that did not call td_init\n", what);
}

/* A program that ends without td_finish: what is wrong is said all the same, and its exit
 * status is not 0.  Registered before main begins, so all its own handlers have run. */
static void
at_exit (int status, void *unused)
{
  const TdEngine *e = &td__engine;

  (void)unused;
  if (getpid () != started_in || !(e->has_error || atomic_load (&strangers)))
    return;
  if (e->has_error && (status == 0 || !e->error_asked)) /* else it has been dealt with */
    fprintf (stderr, "tapedeck: %s\n", e->error.message);
  if (status != 0)
    return;
  fflush (NULL);
  _exit (1);
}

static bool has_ended;
static int ended_with;

static void
note_status (int status, void *unused)
{
  (void)unused;
  has_ended = true;
  ended_with = status;
}

/* OpenBLAS starts threads of its own when it is loaded, which we never use.  One that finds no
 * address space for its buffer tries for ever, and OpenBLAS waits for it when it is unloaded: a
 * program under `ulimit -v` would never end.  So nothing is unloaded there.  The program's own
 * handlers and destructors have run; at_exit, which is older than they are, has not. */
static __attribute__ ((destructor)) void
leave_threads_behind (void)
{
  struct rlimit space;

  if (!has_ended || getrlimit (RLIMIT_AS, &space) != 0 || space.rlim_cur == RLIM_INFINITY)
    return;
  at_exit (ended_with, NULL);
  fflush (NULL);
  _exit (ended_with);
}

static __attribute__ ((constructor)) void
watch_exit (void)
{
  on_exit (at_exit, NULL);
}

/* What scopes hold goes. */
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
td__engine_close (void)
{
  TdEngine *e = &td__engine;
  int status = 0;

  td__index_finish ();
  if (e->in_iteration && e->observer != NULL)
    e->observer->iteration (e->observer, false, e->iteration, 0, e->iteration_site);
  if (e->has_error)
    {
      fprintf (stderr, "tapedeck: %s\n", e->error.message);
      status = 1;
    }
  if (atomic_exchange (&strangers, false)) /* which was said when it happened */
    status = 1;
  release_everything ();
  return status;
}

int
td__engine_end (int status)
{
  TdEngine *e = &td__engine;

  if (e->observer != NULL)
    e->observer->finish (e->observer, status);
  if (e->recording_failed)
    status = 1;
  e->observer = NULL;
  td__index_end ();
  td__ops_finish ();
  td__devices_finish ();
  td__vars_finish ();
  td__slab_finish (&e->nodes);
  td__slab_finish (&e->ops);
  td__slab_finish (&e->buffers);
  free (e->scope_vars);
  td__links_changed (NULL, NULL);
  names_finish ();
  memset (e, 0, sizeof *e);
  return status;
}
