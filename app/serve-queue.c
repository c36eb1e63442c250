/* The queue between the threads of HTTP and that of the engine, and the model that is the
 * newest.
 *
 * SPDX-License-Identifier: MIT */
#define TD_NO_SITES
#include "serve.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t came; /* by the monotonic clock */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static struct
{
  TdServeRequest *first, **end;
  uint64_t n;
  bool closed, woken;
} queue;

static TdServeModel *newest, *older;

uint64_t
td_serve_now_ns (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* --- models --------------------------------------------------------------------------------
 */

TdServeModel *
td_serve_model_ref (void)
{
  TdServeModel *m;

  pthread_mutex_lock (&lock);
  m = newest;
  m->refs++;
  pthread_mutex_unlock (&lock);
  return m;
}

void
td_serve_model_unref (TdServeModel *m)
{
  pthread_mutex_lock (&lock);
  m->refs--;
  pthread_mutex_unlock (&lock);
}

void
td_serve_model_swap (TdServeModel *m)
{
  pthread_mutex_lock (&lock);
  if (newest != NULL)
    {
      newest->older = older;
      older = newest;
    }
  newest = m;
  pthread_mutex_unlock (&lock);
}

void
td_serve_models_collect (void)
{
  TdServeModel *gone = NULL;

  pthread_mutex_lock (&lock);
  for (TdServeModel **at = &older; *at != NULL;)
    {
      TdServeModel *m = *at;

      if (m->refs > 0)
        {
          at = &m->older;
          continue;
        }
      *at = m->older;
      m->older = gone;
      gone = m;
    }
  pthread_mutex_unlock (&lock);
  while (gone != NULL)
    {
      TdServeModel *next = gone->older;

      td_serve_record_free (gone);
      gone = next;
    }
}

/* --- requests ------------------------------------------------------------------------------
 */

static void
init (void)
{
  pthread_condattr_t attr;

  pthread_condattr_init (&attr);
  pthread_condattr_setclock (&attr, CLOCK_MONOTONIC);
  pthread_cond_init (&came, &attr);
  pthread_condattr_destroy (&attr);
  queue.end = &queue.first;
}

bool
td_serve_queue_put (TdServeRequest *r, uint64_t most)
{
  bool put;

  pthread_once (&once, init);
  pthread_mutex_lock (&lock);
  put = !queue.closed && queue.n < most;
  if (!put)
    {
      r->status = 503;
      if (queue.closed)
        td_serve_refuse (r->why, "the server stops");
      else
        td_serve_refuse (r->why, "%llu requests wait already", (unsigned long long)queue.n);
    }
  else
    {
      r->next = NULL;
      *queue.end = r;
      queue.end = &r->next;
      queue.n++;
      pthread_cond_signal (&came);
    }
  pthread_mutex_unlock (&lock); /* from here on it may be answered already */
  return put;
}

uint64_t
td_serve_queue_length (void)
{
  uint64_t n;

  pthread_mutex_lock (&lock);
  n = queue.n;
  pthread_mutex_unlock (&lock);
  return n;
}

void
td_serve_queue_close (void)
{
  pthread_mutex_lock (&lock);
  queue.closed = true;
  pthread_mutex_unlock (&lock);
}

void
td_serve_queue_wake (void)
{
  pthread_once (&once, init);
  pthread_mutex_lock (&lock);
  queue.woken = true;
  pthread_cond_signal (&came);
  pthread_mutex_unlock (&lock);
}

/* --- batches -------------------------------------------------------------------------------
 */

/* Can it be rows of the same call? */
static bool
goes_with (const TdServeRequest *r, const TdServeRequest *first)
{
  if (r->model != first->model || r->record)
    return false;
  for (int i = 0; i < first->model->ports.n_needed; i++)
    {
      const TdShape *a = &r->in[i].shape, *b = &first->in[i].shape;

      if (a->ndim != b->ndim
          || memcmp (a->dim + 1, b->dim + 1, (size_t)(a->ndim - 1) * sizeof *a->dim) != 0)
        return false;
    }
  return td_serve_rows_given (&first->model->ports, r->in) > 0;
}

static TdServeRequest *
unlink_one (TdServeRequest **at)
{
  TdServeRequest *r = *at;

  *at = r->next;
  if (queue.end == &r->next)
    queue.end = at;
  queue.n--;
  r->next = NULL;
  return r;
}

/* Move from the queue what goes with the first.  Returns the rows that there are now. */
static uint64_t
add_those (TdServeRequest **batch, int *n, int most, uint64_t rows, uint64_t most_rows)
{
  for (TdServeRequest **at = &queue.first; *at != NULL && *n < most && rows < most_rows;)
    {
      const uint64_t more = (uint64_t)td_serve_rows_given (&(*at)->model->ports, (*at)->in);

      if (goes_with (*at, batch[0]) && rows + more <= most_rows)
        {
          batch[(*n)++] = unlink_one (at);
          rows += more;
        }
      else
        at = &(*at)->next;
    }
  return rows;
}

static struct timespec
time_of (uint64_t ns)
{
  return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000u),
                            .tv_nsec = (long)(ns % 1000000000u) };
}

/* Is there a client that is not in this batch, and may send what goes into it? */
static bool
others_may_come (int n)
{
  int n_clients, n_busy;

  td_clients_count (&n_clients, &n_busy);
  return n_clients > n;
}

int
td_serve_queue_take (TdServeRequest **batch, int most, const TdServeOptions *o)
{
  uint64_t rows = 0, until;
  int n = 0;

  pthread_once (&once, init);
  pthread_mutex_lock (&lock);
  while (queue.first == NULL && !queue.woken)
    pthread_cond_wait (&came, &lock);
  queue.woken = false;
  if (queue.first != NULL)
    {
      batch[n++] = unlink_one (&queue.first);
      rows = (uint64_t)td_serve_rows_given (&batch[0]->model->ports, batch[0]->in);
    }
  if (n > 0 && rows > 0 && batch[0]->model->gathers != TD_SERVE_GATHERS_NOT
      && !batch[0]->record)
    {
      const struct timespec t
          = time_of (until = batch[0]->queued_ns + o->deadline_ms * 1000000u);

      rows = add_those (batch, &n, most, rows, o->batch);
      while (rows < o->batch && n < most && !queue.woken && !queue.closed
             && td_serve_now_ns () < until && others_may_come (n))
        {
          pthread_cond_timedwait (&came, &lock, &t);
          rows = add_those (batch, &n, most, rows, o->batch);
        }
    }
  pthread_mutex_unlock (&lock);
  return n;
}
