/* The one thread pool: helpers that sleep until there is work, and no work queue.
 *
 * A region is one body over fixed pieces.  Each thread has a share of them that lie together,
 * so that what it wrote in the region before is likely to be in its own cache, claims those one
 * by one, and then those that others have left.  Helpers that wake too late find the region
 * closed; the caller waits only for those that joined.  Waits spin a few microseconds at most,
 * then sleep; but helpers that are kept awake spin until they are let go, and a while longer,
 * so that a region costs them no more than a look at it.
 *
 * Who joins counts itself active before it looks whether the region is open; who closes it does
 * so before it looks whether anybody is active.  The lock is for those who sleep.
 * SPDX-License-Identifier: MIT */
#include "cpu.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_THREADS 64
#define SPINS 400        /* about 5 to 20 us */
#define SPINS_AFTER 4000 /* once they were kept awake: some 100 us */

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
  atomic_int n_threads;   /* callers included; 0: not asked yet */
  int n_started;          /* helpers that exist */
  atomic_uint generation; /* of the newest region */
  atomic_bool open;       /* helpers may still join it */
  atomic_int active;      /* helpers inside it, or about to look */
  atomic_int awake;       /* so many ask that helpers stay awake */
  atomic_bool waiting;    /* the caller sleeps until active is 0 */
  atomic_int n_kept;      /* helpers that spin because they were kept awake */
  int n_asleep;
  TdCpuBody body;
  void *context;
  int64_t n, grain;
  int n_shares;
  struct
  {
    _Alignas(64) atomic_llong next; /* piece; from the share's first to its last */
    int64_t end;
  } share[MAX_THREADS];
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
  pool.n_asleep = 0;
  atomic_store (&pool.n_kept, 0);
  atomic_store (&pool.open, false);
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
run_share (int k, int worker)
{
  for (;;)
    {
      const int64_t piece
          = atomic_fetch_add_explicit (&pool.share[k].next, 1, memory_order_relaxed);
      const int64_t begin = piece * pool.grain;

      if (piece >= pool.share[k].end)
        return;
      pool.body (begin, pool.n - begin < pool.grain ? pool.n : begin + pool.grain, worker,
                 pool.context);
    }
}

static void
run_pieces (int worker)
{
  in_parallel = true;
  for (int k = 0; k < pool.n_shares; k++)
    run_share ((worker + k) % pool.n_shares, worker);
  in_parallel = false;
}

static void
set_shares (int64_t n_pieces)
{
  pool.n_shares = pool.n_threads;
  for (int k = 0; k < pool.n_shares; k++)
    {
      atomic_store_explicit (&pool.share[k].next, n_pieces * k / pool.n_shares,
                             memory_order_relaxed);
      pool.share[k].end = n_pieces * (k + 1) / pool.n_shares;
    }
}

/* Is there a region that this helper has not seen, and may join? */
static bool
is_called (int worker, unsigned seen)
{
  return atomic_load (&pool.generation) != seen && worker < pool.n_threads;
}

/* Spin for a while; as long as threads are to stay awake, and longer after that. */
static void
spin (int worker, unsigned seen, bool *was_kept)
{
  if (*was_kept)
    atomic_fetch_add (&pool.n_kept, 1);
  for (int i = 0; i < (*was_kept ? SPINS_AFTER : SPINS) && !is_called (worker, seen); i++)
    {
      if (atomic_load (&pool.awake) > 0 && worker < pool.n_threads)
        {
          if (!*was_kept)
            atomic_fetch_add (&pool.n_kept, 1);
          *was_kept = true;
          i = 0;
        }
      RELAX ();
    }
  if (*was_kept)
    atomic_fetch_sub (&pool.n_kept, 1);
}

/* Spin, then sleep, until there is something to look at. */
static void
await_call (int worker, unsigned seen, bool *was_kept)
{
  spin (worker, seen, was_kept);
  if (is_called (worker, seen))
    return;
  *was_kept = false;
  pthread_mutex_lock (&pool.lock);
  pool.n_asleep++;
  while (!(atomic_load (&pool.open) && is_called (worker, seen))
         && !(atomic_load (&pool.awake) > 0 && worker < pool.n_threads))
    pthread_cond_wait (&pool.wake, &pool.lock);
  pool.n_asleep--;
  pthread_mutex_unlock (&pool.lock);
}

static void *
helper_main (void *argument)
{
  const int worker = (int)(intptr_t)argument;
  bool was_kept = false;
  unsigned seen = 0;

  for (;;)
    {
      await_call (worker, seen, &was_kept);
      if (!is_called (worker, seen))
        continue;
      seen = atomic_load (&pool.generation);
      atomic_fetch_add (&pool.active, 1);
      if (atomic_load (&pool.open))
        run_pieces (worker);
      if (atomic_fetch_sub (&pool.active, 1) == 1 && atomic_load (&pool.waiting))
        {
          pthread_mutex_lock (&pool.lock);
          pthread_cond_signal (&pool.done);
          pthread_mutex_unlock (&pool.lock);
        }
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

/* Helpers that spin see the call by themselves. */
static void
wake_helpers (void)
{
  pthread_mutex_lock (&pool.lock);
  if (pool.n_asleep > 0)
    pthread_cond_broadcast (&pool.wake);
  pthread_mutex_unlock (&pool.lock);
}

static void
await_helpers (void)
{
  pthread_mutex_lock (&pool.lock);
  atomic_store (&pool.waiting, true);
  while (atomic_load (&pool.active) > 0)
    pthread_cond_wait (&pool.done, &pool.lock);
  atomic_store (&pool.waiting, false);
  pthread_mutex_unlock (&pool.lock);
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
  pool.body = body;
  pool.context = context;
  pool.n = n;
  pool.grain = grain;
  set_shares ((n + grain - 1) / grain);
  atomic_store (&pool.open, true);
  atomic_fetch_add (&pool.generation, 1);
  wake_helpers ();

  run_pieces (0);

  atomic_store (&pool.open, false); /* who has not joined by now finds nothing left */
  for (int i = 0; i < SPINS && atomic_load (&pool.active) > 0; i++)
    RELAX ();
  if (atomic_load (&pool.active) > 0)
    await_helpers ();
  pthread_mutex_unlock (&pool.region);
}

void
td__cpu_stay_awake (bool awake)
{
  if (td__cpu_threads () == 1 || in_parallel)
    return;
  if (!awake)
    {
      atomic_fetch_sub (&pool.awake, 1);
      return;
    }
  start_helpers ();
  atomic_fetch_add (&pool.awake, 1);
  wake_helpers ();
}

bool
td__cpu_stays_awake (void)
{
  return atomic_load_explicit (&pool.awake, memory_order_relaxed) > 0;
}

bool
td__cpu_are_awake (void)
{
  return td__cpu_stays_awake ()
         || atomic_load_explicit (&pool.n_kept, memory_order_relaxed) > 0;
}
