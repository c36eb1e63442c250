/* Threads for what takes long and is not the model's: bodies read and answers written that are
 * large.  Those of HTTP have other connections to look after, which would wait.
 *
 * SPDX-License-Identifier: MIT */
#define TD_NO_SITES
#include "serve.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum
{
  LARGE_BYTES = 64 * 1024, /* of JSON, 2 ms */
  MOST_THREADS = 64
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t came = PTHREAD_COND_INITIALIZER;
static TdServeRequest *first, **end = &first;
static bool closed;
static pthread_t threads[MOST_THREADS];
static int n_threads;

/* NULL: there is none, and none to come. */
static TdServeRequest *
take (void)
{
  TdServeRequest *r;

  pthread_mutex_lock (&lock);
  while (first == NULL && !closed)
    pthread_cond_wait (&came, &lock);
  r = first;
  if (r != NULL)
    {
      first = r->next;
      end = first == NULL ? &first : end;
      r->next = NULL;
    }
  pthread_mutex_unlock (&lock);
  return r;
}

static void *
work (void *unused)
{
  TdServeRequest *r;

  while ((r = take ()) != NULL)
    r->job (r); /* which gives it away */
  return unused;
}

bool
td_serve_work_begin (const TdServeOptions *o)
{
  int wrong = 0;

  while (wrong == 0 && n_threads < (int)o->threads && n_threads < MOST_THREADS)
    {
      wrong = pthread_create (&threads[n_threads], NULL, work, NULL);
      n_threads += wrong == 0;
    }
  if (wrong != 0)
    fprintf (stderr, "tapedeck: serve: %s\n", strerror (wrong));
  return wrong == 0;
}

bool
td_serve_work_put (TdServeRequest *r, size_t bytes, void (*job) (TdServeRequest *r))
{
  bool put;

  if (bytes < LARGE_BYTES)
    return false;
  pthread_mutex_lock (&lock);
  put = !closed;
  if (put)
    {
      r->job = job;
      r->next = NULL;
      *end = r;
      end = &r->next;
      pthread_cond_signal (&came);
    }
  pthread_mutex_unlock (&lock); /* from here on it may be answered already */
  return put;
}

void
td_serve_work_end (void)
{
  pthread_mutex_lock (&lock);
  closed = true;
  pthread_cond_broadcast (&came);
  pthread_mutex_unlock (&lock);
  while (n_threads > 0)
    pthread_join (threads[--n_threads], NULL);
}
