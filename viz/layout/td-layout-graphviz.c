/* The Graphviz engine: each open group by itself, at most 600 things at once, in the helper
 * process. Answers are kept by the group's content, so that equal groups, the next iteration
 * and the group that is folded again cost nothing.
 *
 * SPDX-License-Identifier: MIT */
#include "layout/td-layout-helper.h"
#include "layout/td-layout-private.h"
#include "layout/td-layout-reply.h"

#include <string.h>

#define MAX_THINGS 600
#define MAX_EDGES 8000
#define MAX_CACHED_BYTES (32u << 20)

typedef struct
{
  TdLayoutHelper *helper; /* started for the first group that is not known */
  gint64 deadline_us;
  GCancellable *cancellable;
  GError *error;
  GString *reply;
} Engine;

/* ---- answers by content ---- */

static GMutex cache_lock;
static GHashTable *cache; /* request -> TdLayoutReply; one for all windows */
static gsize cache_bytes;

static TdLayoutReply *
find_reply (const char *request)
{
  TdLayoutReply *reply;

  g_mutex_lock (&cache_lock);
  reply = cache ? g_hash_table_lookup (cache, request) : NULL;
  if (reply)
    td__layout_reply_ref (reply);
  g_mutex_unlock (&cache_lock);
  return reply;
}

static void
keep_reply (const GString *request, TdLayoutReply *reply)
{
  gsize bytes = request->len + 16u * (reply->n_nodes + reply->first_point[reply->n_edges]);

  g_mutex_lock (&cache_lock);
  if (!cache)
    cache = g_hash_table_new_full (g_str_hash, g_str_equal, g_free,
                                   (GDestroyNotify)td__layout_reply_unref);
  if (cache_bytes + bytes > MAX_CACHED_BYTES)
    { /* what is looked at now will be asked for again soon */
      g_hash_table_remove_all (cache);
      cache_bytes = 0;
    }
  cache_bytes += bytes;
  g_hash_table_insert (cache, g_strdup (request->str), td__layout_reply_ref (reply));
  g_mutex_unlock (&cache_lock);
}

/* ---- question and answer ---- */

static GString *
write_request (const TdLayoutBuild *b, const TdBox *box, const TdLayerEdge *edges,
               guint n_edges)
{
  GString *request = g_string_new (NULL);
  guint m = 0;

  for (guint i = 0; i < n_edges; i++)
    m += edges[i].from >= 0 && edges[i].to >= 0;
  g_string_append_printf (request, "graph %d %u\n", box->n_units, m);
  for (gint32 i = 0; i < box->n_units; i++)
    {
      const TdUnit *unit = &b->units[b->sorted_units[box->first_unit + i]];
      double breadth = 1;

      for (guint lane = 0; lane < 2; lane++)
        if (unit->in_lane[lane])
          breadth = MAX (breadth, unit->reach[lane].left + unit->reach[lane].right);
      g_string_append_printf (request, "n %d %d\n", (int)breadth, (int)MAX (unit->length, 1));
    }
  for (guint i = 0; i < n_edges; i++)
    if (edges[i].from >= 0 && edges[i].to >= 0)
      /* forward edges weigh more: the backward ones run beside them */
      g_string_append_printf (request, "e %d %d %d\n", edges[i].from, edges[i].to,
                              edges[i].lane == TD_LANE_FORWARD ? 3 : 1);
  g_string_append (request, "end\n");
  return request;
}

static TdLayoutReply *
ask (Engine *engine, const GString *request, guint n_nodes, guint n_edges)
{
  TdLayoutReply *reply = find_reply (request->str);
  char what[300];

  if (reply)
    return reply;
  if (!engine->helper)
    engine->helper = td__layout_helper_new (&engine->error);
  if (!engine->helper
      || !td__layout_helper_ask (engine->helper, request->str, request->len, engine->reply,
                                 engine->deadline_us, engine->cancellable, &engine->error))
    return NULL;
  reply = td__layout_reply_parse (engine->reply->str, engine->reply->len, n_nodes, n_edges,
                                  what, sizeof what);
  if (!reply)
    {
      engine->error = g_error_new_literal (G_IO_ERROR, G_IO_ERROR_FAILED, what);
      return NULL;
    }
  keep_reply (request, reply);
  return reply;
}

/* ---- ranks out of positions ---- */

typedef struct
{
  const TdLayoutReply *reply;
  const guint *asked;   /* per edge of the box: its number in the request */
  const double *height; /* per rank */
  const TdLayerEdge *edges;
} Passing;

static double
pass (gpointer data, guint edge, gint rank)
{
  const Passing *p = data;

  return td__layout_reply_pass (p->reply, p->asked[edge], p->height[rank],
                                p->reply->x[p->edges[edge].from]);
}

typedef struct
{
  double y;
  guint node;
} Level;

static int
compare_levels (const void *a, const void *b)
{
  const Level *x = a, *y = b;

  return x->y < y->y ? -1 : x->y > y->y;
}

/* Things of one rank have their middles at one height. Returns FALSE if an edge does not point
 * down, which no layout of these edges may do. */
static gboolean
find_ranks (const TdLayoutReply *reply, const TdLayerEdge *edges, guint n_edges, gint32 *ranks,
            double *height)
{
  Level *levels = g_new (Level, reply->n_nodes + 1);
  gint32 rank = -1;
  gboolean good = TRUE;

  for (guint i = 0; i < reply->n_nodes; i++)
    levels[i] = (Level){ reply->y[i], i };
  qsort (levels, reply->n_nodes, sizeof (Level), compare_levels);
  for (guint i = 0; i < reply->n_nodes; i++)
    {
      if (i == 0 || levels[i].y - levels[i - 1].y > 1)
        height[++rank] = levels[i].y;
      ranks[levels[i].node] = rank;
    }
  for (guint i = 0; i < n_edges; i++)
    if (edges[i].from >= 0 && edges[i].to >= 0)
      good = good && ranks[edges[i].from] < ranks[edges[i].to];
  g_free (levels);
  return good;
}

static TdLayering *
layering_from_reply (const TdLayoutReply *reply, TdLayerEdge *edges, guint n_edges)
{
  gint32 *ranks = g_new (gint32, reply->n_nodes + 1);
  double *height = g_new (double, reply->n_nodes + 1);
  guint *asked = g_new (guint, n_edges + 1);
  TdLayering *layering = NULL;
  guint m = 0;

  for (guint i = 0; i < n_edges; i++)
    {
      asked[i] = m;
      m += edges[i].from >= 0 && edges[i].to >= 0;
    }
  if (find_ranks (reply, edges, n_edges, ranks, height))
    {
      Passing passing = { reply, asked, height, edges };

      layering = td__layering_new_from (reply->n_nodes, edges, n_edges, ranks, reply->x, pass,
                                        &passing);
    }
  g_free (ranks);
  g_free (height);
  g_free (asked);
  return layering;
}

static TdLayering *
layer_box (gpointer data, TdLayoutBuild *b, gint index, TdLayerEdge *edges, guint n_edges)
{
  Engine *engine = data;
  const TdBox *box = &b->boxes[index];
  GString *request;
  TdLayoutReply *reply;
  TdLayering *layering = NULL;
  guint m = 0;

  if (engine->error || box->n_units > MAX_THINGS)
    return NULL;
  for (guint i = 0; i < n_edges; i++)
    m += edges[i].from >= 0 && edges[i].to >= 0;
  if (m > MAX_EDGES)
    return NULL;
  /* a chain has one layout, whoever makes it */
  if (box->n_units < 3 || m < 3)
    return td__layering_new ((guint)box->n_units, edges, n_edges);
  request = write_request (b, box, edges, n_edges);
  reply = ask (engine, request, (guint)box->n_units, m);
  if (reply)
    {
      layering = layering_from_reply (reply, edges, n_edges);
      if (!layering)
        engine->error = g_error_new_literal (G_IO_ERROR, G_IO_ERROR_FAILED,
                                             "the layout helper turned an edge upside down");
      td__layout_reply_unref (reply);
    }
  g_string_free (request, TRUE);
  return layering;
}

/* ---- the engine ---- */

TdLayout *
td_layout_new_graphviz (TdVizView *view, const TdLayoutOptions *options, TdLayout *previous,
                        guint timeout_ms, GCancellable *cancellable, GError **error)
{
  Engine engine = { .cancellable = cancellable, .reply = g_string_new (NULL) };
  TdLayout *layout = NULL;

  engine.deadline_us = g_get_monotonic_time () + (gint64)timeout_ms * 1000;
  if (!g_cancellable_set_error_if_cancelled (cancellable, &engine.error))
    layout = td__layout_run (view, options, previous, layer_box, &engine);
  if (engine.helper)
    td__layout_helper_free (engine.helper);
  g_string_free (engine.reply, TRUE);
  if (engine.error)
    {
      g_clear_pointer (&layout, td_layout_unref);
      g_propagate_error (error, engine.error);
    }
  return layout;
}

typedef struct
{
  TdVizView *view;
  TdLayoutOptions options;
  TdLayout *previous;
  guint timeout_ms;
} Job;

static void
job_free (gpointer data)
{
  Job *job = data;

  td_viz_view_unref (job->view);
  g_clear_pointer (&job->previous, td_layout_unref);
  g_free (job);
}

static void
run_job (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  Job *job = data;
  GError *error = NULL;
  TdLayout *layout = td_layout_new_graphviz (job->view, &job->options, job->previous,
                                             job->timeout_ms, cancellable, &error);

  (void)source;
  if (layout)
    g_task_return_pointer (task, layout, (GDestroyNotify)td_layout_unref);
  else
    g_task_return_error (task, error);
}

void
td_layout_new_graphviz_async (TdVizView *view, const TdLayoutOptions *options,
                              TdLayout *previous, guint timeout_ms, GCancellable *cancellable,
                              GAsyncReadyCallback callback, gpointer user_data)
{
  GTask *task = g_task_new (NULL, cancellable, callback, user_data);
  Job *job = g_new0 (Job, 1);

  job->view = td_viz_view_ref (view);
  if (options)
    job->options = *options;
  job->previous = previous ? td_layout_ref (previous) : NULL;
  job->timeout_ms = timeout_ms;
  g_task_set_task_data (task, job, job_free);
  g_task_run_in_thread (task, run_job);
  g_object_unref (task);
}

TdLayout *
td_layout_new_graphviz_finish (GAsyncResult *result, GError **error)
{
  return g_task_propagate_pointer (G_TASK (result), error);
}
