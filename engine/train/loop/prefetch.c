/* Loading ahead: threads that read the batches which the iterator will ask for.
 *
 * A cursor of its own runs ahead of the iterator's over the same sequence; each batch it names
 * is a slot of a ring, which any thread may fill and the iterator empties in order.  The order
 * of batches therefore depends on nothing that threads do.
 *
 * SPDX-License-Identifier: MIT */
#include "iterator.h"
#include "host-memory.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct
{
  int64_t *rows;
  int64_t n, draw;
  TdHostBatch batch;
  bool ready;
} Slot;

struct TdPrefetch
{
  const TdIter *it;
  uint64_t seed;     /* the iterator's, and its rule, as they were when loading began: */
  TdGatherRule rule; /* what threads read changes only while none of them loads */
  TdCursor ahead;
  bool ended; /* the cursor ahead has named its last batch */
  Slot *slots;
  int n_slots;
  pthread_t *threads;
  int n_threads;
  pthread_mutex_t lock; /* of all below */
  pthread_cond_t work, done;
  uint64_t taken, claimed, named; /* batches so far; slots are these modulo n_slots */
  int n_loading;
  bool handed; /* the slot before `taken` is in the iterator's hands */
  bool stop;
};

static Slot *
slot_of (TdPrefetch *p, uint64_t k)
{
  return &p->slots[k % (uint64_t)p->n_slots];
}

/* A batch without rows is one that the order sampler spoilt. */
static void
load (const TdPrefetch *p, Slot *s)
{
  if (s->n > 0)
    td__gather_rows (p->it->dataset, s->rows, s->n, p->seed, s->draw, &p->rule, &s->batch);
  else
    snprintf (s->batch.why, sizeof s->batch.why, "its rows are not among %lld",
              (long long)p->it->n);
  s->batch.failed = s->batch.failed || s->n == 0;
}

static void *
loader (void *argument)
{
  TdPrefetch *p = argument;
  Slot *s;

  pthread_mutex_lock (&p->lock);
  while (!p->stop)
    {
      if (p->claimed == p->named)
        {
          pthread_cond_wait (&p->work, &p->lock);
          continue;
        }
      s = slot_of (p, p->claimed++);
      p->n_loading++;
      pthread_mutex_unlock (&p->lock);
      load (p, s);
      pthread_mutex_lock (&p->lock);
      p->n_loading--;
      s->ready = true;
      pthread_cond_broadcast (&p->done);
    }
  pthread_mutex_unlock (&p->lock);
  return NULL;
}

/* Name batches for all slots that are free; the lock is held. */
static void
name_batches (TdPrefetch *p)
{
  while (!p->ended && p->named - p->taken + (p->handed ? 1 : 0) < (uint64_t)p->n_slots)
    {
      Slot *s = slot_of (p, p->named);

      s->ready = false;
      s->draw = p->ahead.drawn;
      if (!td__cursor_next (p->it, &p->ahead, s->rows, &s->n))
        {
          s->n = 0; /* the iterator's own cursor fails there too, and says so */
          p->ended = true;
        }
      p->ended = p->ended || td__cursor_ended (p->it, &p->ahead);
      p->named++;
    }
  pthread_cond_broadcast (&p->work);
}

void
td__prefetch_restart (TdPrefetch *p)
{
  pthread_mutex_lock (&p->lock);
  p->claimed = p->named; /* nobody begins another one */
  while (p->n_loading > 0)
    pthread_cond_wait (&p->done, &p->lock);
  p->taken = p->named;
  p->handed = false;
  p->seed = p->it->seed;
  p->rule = p->it->rule;
  td__cursor_copy (p->it, &p->ahead, &p->it->at);
  p->ended = td__cursor_ended (p->it, &p->ahead);
  name_batches (p);
  pthread_mutex_unlock (&p->lock);
}

/* The engine's signals are for its own thread. */
static void
start_threads (TdPrefetch *p, int n)
{
  sigset_t all, before;

  sigfillset (&all);
  pthread_sigmask (SIG_SETMASK, &all, &before);
  p->threads = td__xcalloc ((size_t)n, sizeof *p->threads);
  while (p->n_threads < n && pthread_create (&p->threads[p->n_threads], NULL, loader, p) == 0)
    p->n_threads++;
  pthread_sigmask (SIG_SETMASK, &before, NULL);
}

TdPrefetch *
td__prefetch_new (const TdIter *it, int n_threads, int n_slots)
{
  TdPrefetch *p = td__xcalloc (1, sizeof *p);

  p->it = it;
  p->n_slots = n_slots + 1; /* one is in the iterator's hands */
  p->slots = td__xcalloc ((size_t)p->n_slots, sizeof *p->slots);
  for (int i = 0; i < p->n_slots; i++)
    p->slots[i].rows = td__xcalloc ((size_t)it->o.batch_size, sizeof (int64_t));
  pthread_mutex_init (&p->lock, NULL);
  pthread_cond_init (&p->work, NULL);
  pthread_cond_init (&p->done, NULL);
  start_threads (p, n_threads);
  td__prefetch_restart (p);
  return p;
}

bool
td__prefetch_has_more (TdPrefetch *p)
{
  bool more;

  pthread_mutex_lock (&p->lock);
  more = !p->ended || p->taken < p->named;
  pthread_mutex_unlock (&p->lock);
  return more;
}

TdHostBatch *
td__prefetch_take (TdPrefetch *p)
{
  Slot *s;

  pthread_mutex_lock (&p->lock);
  p->handed = false;
  name_batches (p);
  s = slot_of (p, p->taken);
  if (p->n_threads == 0)
    {
      p->claimed++;
      load (p, s); /* no thread could be started */
      s->ready = true;
    }
  while (!s->ready)
    pthread_cond_wait (&p->done, &p->lock);
  p->taken++;
  p->handed = true;
  pthread_mutex_unlock (&p->lock);
  return &s->batch;
}

void
td__prefetch_free (TdPrefetch *p)
{
  if (p == NULL)
    return;
  pthread_mutex_lock (&p->lock);
  p->stop = true;
  pthread_cond_broadcast (&p->work);
  pthread_mutex_unlock (&p->lock);
  for (int i = 0; i < p->n_threads; i++)
    pthread_join (p->threads[i], NULL);
  for (int i = 0; i < p->n_slots; i++)
    {
      free (p->slots[i].rows);
      td__host_batch_clear (&p->slots[i].batch);
    }
  pthread_mutex_destroy (&p->lock);
  pthread_cond_destroy (&p->work);
  pthread_cond_destroy (&p->done);
  free (p->ahead.order);
  free (p->threads);
  free (p->slots);
  free (p);
}
