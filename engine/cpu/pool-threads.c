/* The one thread pool: helpers that sleep until there is work, and no work queue.
 *
 * A region is one body over fixed pieces that the threads claim one by one.  Helpers that wake
 * too late find the region closed; the caller waits only for those that joined.  Waits spin a
 * few microseconds at most, then sleep.
 * SPDX-License-Identifier: MIT */
#include "cpu.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_THREADS 64
#define SPINS 400 /* about 5 to 20 us */

#if defined(__x86_64__)
#define RELAX() __builtin_ia32_pause ()
#else
#define RELAX() ((void)0)
#endif

typedef struct
{
  pthread_mutex_t lock;
  pthread_cond_t wake, done;
  pthread_mutex_t region; /* held by the one caller that uses the helpers */
  int n_threads;          /* callers included; 0: not asked yet */
  int n_started;          /* helpers that exist */
  atomic_uint generation; /* of the newest region */
  bool open;              /* helpers may still join it */
  atomic_int active;      /* helpers inside it */
  TdCpuBody body;
  void *context;
  int64_t n, grain;
  atomic_llong next;
} Pool;

static Pool pool = { .lock = PTHREAD_MUTEX_INITIALIZER,
                     .wake = PTHREAD_COND_INITIALIZER,
                     .done = PTHREAD_COND_INITIALIZER,
                     .region = PTHREAD_MUTEX_INITIALIZER };
static __thread bool in_parallel;

static int
clamp_threads (long n)
{
  return n < 1 ? 1 : n > MAX_THREADS ? MAX_THREADS : (int)n;
}

static int
wanted_threads (void)
{
  static const char *const names[] = { "TAPEDECK_THREADS", "OMP_NUM_THREADS" };

  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    {
      const char *text = getenv (names[i]);
      char *end = NULL;
      long n = text != NULL ? strtol (text, &end, 10) : 0;

      if (text != NULL && end != text && n > 0)
        return clamp_threads (n);
    }
  return clamp_threads (sysconf (_SC_NPROCESSORS_ONLN));
}

/* A forked child has no helpers, and its locks may have been held by one. */
static void
forget_helpers (void)
{
  pthread_mutex_init (&pool.lock, NULL);
  pthread_mutex_init (&pool.region, NULL);
  pthread_cond_init (&pool.wake, NULL);
  pthread_cond_init (&pool.done, NULL);
  pool.n_started = 0;
  pool.open = false;
  atomic_store (&pool.active, 0);
}

int
td__cpu_threads (void)
{
  if (pool.n_threads == 0)
    {
      pool.n_threads = wanted_threads ();
      pthread_atfork (NULL, NULL, forget_helpers);
    }
  return pool.n_threads;
}

void
td__cpu_set_threads (int n)
{
  td__cpu_threads ();
  pool.n_threads = clamp_threads (n);
}

bool
td__cpu_in_parallel (void)
{
  return in_parallel;
}

static void
run_pieces (int worker)
{
  int64_t pieces = (pool.n + pool.grain - 1) / pool.grain;

  in_parallel = true;
  for (;;)
    {
      int64_t piece = atomic_fetch_add_explicit (&pool.next, 1, memory_order_relaxed);
      int64_t begin = piece * pool.grain;

      if (piece >= pieces)
        break;
      pool.body (begin, pool.n - begin < pool.grain ? pool.n : begin + pool.grain, worker,
                 pool.context);
    }
  in_parallel = false;
}

static void *
helper_main (void *argument)
{
  int worker = (int)(intptr_t)argument;
  unsigned seen = 0;

  for (;;)
    {
      for (int i = 0; i < SPINS && atomic_load (&pool.generation) == seen; i++)
        RELAX ();
      pthread_mutex_lock (&pool.lock);
      while (!pool.open || atomic_load (&pool.generation) == seen || worker >= pool.n_threads)
        pthread_cond_wait (&pool.wake, &pool.lock);
      seen = atomic_load (&pool.generation);
      atomic_fetch_add (&pool.active, 1);
      pthread_mutex_unlock (&pool.lock);
      run_pieces (worker);
      pthread_mutex_lock (&pool.lock);
      if (atomic_fetch_sub (&pool.active, 1) == 1)
        pthread_cond_signal (&pool.done);
      pthread_mutex_unlock (&pool.lock);
    }
  return NULL;
}

/* Start the helpers that are missing; fewer than wanted is no error. */
static void
start_helpers (void)
{
  while (pool.n_started < pool.n_threads - 1)
    {
      pthread_t thread;

      if (pthread_create (&thread, NULL, helper_main, (void *)(intptr_t)(pool.n_started + 1))
          != 0)
        break;
      pthread_detach (thread);
      pool.n_started++;
    }
}

static void
run_serially (int64_t n, int64_t grain, TdCpuBody body, void *context)
{
  for (int64_t begin = 0; begin < n; begin += grain)
    body (begin, n - begin < grain ? n : begin + grain, 0, context);
}

void
td__cpu_parallel (int64_t n, int64_t grain, TdCpuBody body, void *context)
{
  if (n <= grain || in_parallel || td__cpu_threads () == 1
      || pthread_mutex_trylock (&pool.region) != 0)
    {
      run_serially (n, grain, body, context);
      return;
    }
  start_helpers ();
  pthread_mutex_lock (&pool.lock);
  pool.body = body;
  pool.context = context;
  pool.n = n;
  pool.grain = grain;
  atomic_store (&pool.next, 0);
  pool.open = true;
  atomic_fetch_add (&pool.generation, 1);
  pthread_cond_broadcast (&pool.wake);
  pthread_mutex_unlock (&pool.lock);

  run_pieces (0);

  pthread_mutex_lock (&pool.lock);
  pool.open = false; /* who has not joined by now finds nothing left */
  pthread_mutex_unlock (&pool.lock);
  for (int i = 0; i < SPINS && atomic_load (&pool.active) > 0; i++)
    RELAX ();
  pthread_mutex_lock (&pool.lock);
  while (atomic_load (&pool.active) > 0)
    pthread_cond_wait (&pool.done, &pool.lock);
  pthread_mutex_unlock (&pool.lock);
  pthread_mutex_unlock (&pool.region);
}
