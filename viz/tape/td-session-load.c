/* The session's iterations: the list of them, the cache, and the worker that fills it with a
 * reader of its own.
 *
 * SPDX-License-Identifier: MIT */
#include "tape/td-session-private.h"

#include "tape/td-iteration-private.h"

/* ---- the list ---- */

static gboolean
has_live (TdSession *self)
{
  return self->live_number >= 0
         && td_tape_reader_find (self->tape->reader, (guint64)self->live_number) < 0;
}

guint
td_session_get_n_iterations (TdSession *self)
{
  if (self->by_hand)
    return self->by_hand->len;
  return td_tape_reader_summaries (self->tape->reader).n + has_live (self);
}

gint64
td_session_get_iteration_number (TdSession *self, guint i)
{
  TdTapeSummaries summaries;

  if (self->by_hand)
    return td_iteration_get_number (self->by_hand->pdata[i]);
  summaries = td_tape_reader_summaries (self->tape->reader);
  return i < summaries.n ? (gint64)summaries.rows[i].number : self->live_number;
}

gint64
td_session_get_last_complete (TdSession *self)
{
  TdTapeSummaries summaries;

  if (self->by_hand)
    {
      for (guint i = self->by_hand->len; i-- > 0;)
        if (td_iteration_is_complete (self->by_hand->pdata[i]))
          return td_iteration_get_number (self->by_hand->pdata[i]);
      return -1;
    }
  summaries = td_tape_reader_summaries (self->tape->reader);
  /* the newest one that can be shown: work outside iterations and thinned ones come last */
  for (guint i = summaries.n; i-- > 0;)
    if (!(summaries.rows[i].flags & (TD_TAPE_ITERATION_PARTIAL | TD_TAPE_ITERATION_OUTSIDE))
        && td_tape_reader_stored (self->tape->reader, i))
      return (gint64)summaries.rows[i].number;
  return summaries.n ? (gint64)summaries.rows[summaries.n - 1].number : -1;
}

/* ---- loading ---- */

/* The running iteration has no summary, and one that was dropped from the list has it in the
 * file only. */
static TdIteration *
load (TdSession *self, const TdRequest *request, char *what, gsize n)
{
  TdTapeHandle *handle = self->worker_tape;
  const TdTapeIteration *tape;
  TdTapeSummary found;

  if (handle != self->tape) /* else the main thread says when */
    td_tape_reader_poll (handle->reader);
  tape = request->known
             ? td_tape_iteration_load_row (handle->reader, &request->row, what, n)
             : td_tape_iteration_load (handle->reader, (guint64)request->number, what, n);
  if (!tape && !request->known
      && td_tape_reader_look_up (handle->reader, (guint64)request->number, &found))
    tape = td_tape_iteration_load_row (handle->reader, &found, what, n);
  return tape ? td__iteration_new_from_handle (handle, tape) : NULL;
}

static TdRequest
request_for (TdSession *self, gint64 number)
{
  TdRequest request = { .number = number };
  gint64 at = td_tape_reader_find (self->tape->reader, (guint64)number);

  request.known = at >= 0;
  if (request.known)
    request.row = td_tape_reader_summaries (self->tape->reader).rows[at];
  return request;
}

TdIteration *
td_session_load_iteration (TdSession *self, gint64 number, GError **error)
{
  char what[256] = "";
  gboolean stale = FALSE;
  TdIteration *iteration;

  for (guint i = 0; self->by_hand && i < self->by_hand->len; i++)
    if (td_iteration_get_number (self->by_hand->pdata[i]) == number)
      return td_iteration_ref (self->by_hand->pdata[i]);
  iteration = td__iteration_cache_get (self->cache, number, &stale);
  if (iteration && !stale)
    return td_iteration_ref (iteration);
  iteration = NULL;
  if (self->worker_tape && number >= 0)
    {
      TdRequest request = request_for (self, number);

      g_mutex_lock (&self->worker_tape->lock);
      iteration = load (self, &request, what, sizeof what);
      g_mutex_unlock (&self->worker_tape->lock);
    }
  if (!iteration)
    {
      if (!*what)
        g_snprintf (what, sizeof what, "no iteration %" G_GINT64_FORMAT, number);
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND, "%s", what);
      return NULL;
    }
  td__iteration_cache_put (self->cache, iteration);
  return iteration;
}

TdIteration *
td_session_get_iteration (TdSession *self, gint64 number)
{
  gboolean stale = FALSE;
  TdIteration *iteration;

  if (self->by_hand)
    return td_session_load_iteration (self, number, NULL);
  iteration = td__iteration_cache_get (self->cache, number, &stale);
  if (!iteration || stale)
    td__session_request (self, number);
  return iteration ? td_iteration_ref (iteration) : NULL;
}

TdIteration *
td_session_get_current (TdSession *self)
{
  return td_session_load_iteration (self, self->moment.iteration, NULL);
}

/* ---- what is to come ---- */

/* So many different recent graphs are tried. */
#define MAX_TRIED 8
#define MAX_LOOKED_AT 256

static TdIteration *
expect_like (TdSession *self, TdIteration *now, gint64 number)
{
  TdIteration *before = number >= 0 ? td_session_load_iteration (self, number, NULL) : NULL;
  TdIteration *expected = before ? td_iteration_new_expected (now, before) : NULL;

  g_clear_pointer (&before, td_iteration_unref);
  if (expected)
    self->expected_from = number;
  return expected;
}

/* The newest iteration that began like this one; as long as it goes on so, the same. */
static TdIteration *
expect (TdSession *self, TdIteration *now)
{
  TdTapeSummaries s = td_tape_reader_summaries (self->tape->reader);
  TdIteration *expected = expect_like (self, now, self->expected_from);
  guint32 tried[MAX_TRIED];
  guint n_tried = 0;

  for (guint i = s.n; i-- > 0 && !expected && n_tried < MAX_TRIED && i + MAX_LOOKED_AT > s.n;)
    {
      gboolean known = (s.rows[i].flags & TD_TAPE_ITERATION_PARTIAL) != 0;

      for (guint k = 0; k < n_tried; k++)
        known = known || tried[k] == s.rows[i].structure;
      if (known)
        continue;
      tried[n_tried++] = s.rows[i].structure;
      expected = expect_like (self, now, (gint64)s.rows[i].number);
    }
  return expected;
}

TdIteration *
td_session_get_expected (TdSession *self)
{
  TdIteration *now = td_session_get_current (self);

  if (!now || !self->tape || self->state != TD_PROGRAM_PAUSED || td_iteration_is_complete (now)
      || self->head.iteration != td_iteration_get_number (now))
    return now;
  if (now != self->expected_of)
    {
      g_clear_pointer (&self->expected, td_iteration_unref);
      g_clear_pointer (&self->expected_of, td_iteration_unref);
      self->expected_of = td_iteration_ref (now);
      self->expected = expect (self, now);
    }
  if (!self->expected)
    return now;
  td_iteration_unref (now);
  return td_iteration_ref (self->expected);
}

/* ---- the worker ---- */

typedef struct
{
  GWeakRef session;
  gint64 number;
  TdIteration *iteration; /* NULL: could not be loaded */
} Result;

static gboolean
deliver (gpointer data)
{
  Result *result = data;
  TdSession *self = g_weak_ref_get (&result->session);

  if (self)
    {
      if (result->iteration)
        td__iteration_cache_put (self->cache, result->iteration);
      g_signal_emit_by_name (self, "iteration-loaded", result->number);
      g_object_unref (self);
    }
  return G_SOURCE_REMOVE;
}

static void
result_free (gpointer data)
{
  Result *result = data;

  if (result->iteration)
    td_iteration_unref (result->iteration);
  g_weak_ref_clear (&result->session);
  g_free (result);
}

/* Runs in the pool's one thread, once for each request; takes the newest, since that is what
 * somebody looks at now. The pool is stopped before the session goes. */
static void
work (gpointer data, gpointer user_data)
{
  TdSession *self = user_data;
  Result *result;
  GSource *source;
  TdRequest request = { .number = -1 };
  TdPrepareFunc prepare;
  char what[256];

  (void)data;
  g_mutex_lock (&self->lock);
  if (self->n_requests > 0)
    request = self->requests[--self->n_requests];
  prepare = self->prepare;
  g_mutex_unlock (&self->lock);
  if (request.number < 0)
    return;
  result = g_new0 (Result, 1);
  g_weak_ref_init (&result->session, self);
  result->number = request.number;
  g_mutex_lock (&self->worker_tape->lock);
  result->iteration = load (self, &request, what, sizeof what);
  g_mutex_unlock (&self->worker_tape->lock);
  if (result->iteration)
    td__iteration_index_keys (result->iteration);
  if (result->iteration && prepare)
    prepare (result->iteration);
  /* not g_main_context_invoke (): that would run it here whenever the main loop does not */
  source = g_idle_source_new ();
  g_source_set_priority (source, G_PRIORITY_DEFAULT);
  g_source_set_callback (source, deliver, result, result_free);
  g_source_attach (source, NULL);
  g_source_unref (source);
}

void
td__session_start_worker (TdSession *self)
{
  self->worker_tape = td__tape_handle_open (self->path, 1, NULL);
  if (self->worker_tape)
    self->pool = g_thread_pool_new (work, self, 1, FALSE, NULL);
}

void
td_session_set_prepare (TdSession *self, TdPrepareFunc prepare)
{
  g_mutex_lock (&self->lock);
  self->prepare = prepare;
  g_mutex_unlock (&self->lock);
}

void
td_session_set_shows_discarded (TdSession *self, gboolean shows)
{
  if (!self->worker_tape)
    return;
  g_mutex_lock (&self->worker_tape->lock);
  self->worker_tape->whole = shows;
  g_mutex_unlock (&self->worker_tape->lock);
}

void
td__session_stop_worker (TdSession *self)
{
  GThreadPool *pool = g_steal_pointer (&self->pool);

  g_mutex_lock (&self->lock);
  self->n_requests = 0;
  g_mutex_unlock (&self->lock);
  if (pool)
    g_thread_pool_free (pool, TRUE, TRUE);
}

void
td__session_request (TdSession *self, gint64 number)
{
  gboolean known = FALSE;

  if (!self->pool || number < 0)
    return;
  TdRequest request = request_for (self, number);
  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->n_requests; i++)
    known = known || self->requests[i].number == number;
  if (!known)
    {
      if (self->n_requests == TD_MAX_REQUESTS)
        {
          for (guint i = 1; i < TD_MAX_REQUESTS; i++)
            self->requests[i - 1] = self->requests[i];
          self->n_requests--;
        }
      self->requests[self->n_requests++] = request;
    }
  g_mutex_unlock (&self->lock);
  if (!known)
    g_thread_pool_push (self->pool, GINT_TO_POINTER (1), NULL);
}
