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
#define CUT_THINGS 400 /* in each part of a box that has more than that */
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

/* Things [first, end) of a box; a box of more than MAX_THINGS is cut by the order in which they
 * ran. */
typedef struct
{
  gint32 first, end;
} Part;

static gboolean
is_in_part (const Part *part, const TdLayerEdge *e)
{
  return e->from >= part->first && e->from < part->end && e->to >= part->first
         && e->to < part->end;
}

static GString *
write_request (const TdLayoutBuild *b, const TdBox *box, const Part *part,
               const TdLayerEdge *edges, guint n_edges, guint *n_asked)
{
  GString *request = g_string_new (NULL);

  *n_asked = 0;
  for (guint i = 0; i < n_edges; i++)
    *n_asked += is_in_part (part, &edges[i]);
  g_string_append_printf (request, "graph %d %u\n", part->end - part->first, *n_asked);
  for (gint32 i = part->first; i < part->end; i++)
    {
      const TdUnit *unit = &b->units[b->sorted_units[box->first_unit + i]];
      double breadth = 1;

      for (guint lane = 0; lane < 2; lane++)
        if (unit->in_lane[lane])
          breadth = MAX (breadth, unit->reach[lane].left + unit->reach[lane].right);
      g_string_append_printf (request, "n %d %d\n", (int)breadth, (int)MAX (unit->length, 1));
    }
  for (guint i = 0; i < n_edges; i++)
    if (is_in_part (part, &edges[i]))
      /* forward edges weigh more: the backward ones run beside them */
      g_string_append_printf (request, "e %d %d %d\n", edges[i].from - part->first,
                              edges[i].to - part->first,
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
  TdLayerEdge *edges;
  guint n_edges;
  gint32 *rank;   /* per thing */
  double *x;      /* per thing */
  gint32 n_ranks; /* so far */
  double *height; /* per rank, in its part's answer */
  TdLayoutReply *
      *reply;   /* per edge: the answer that has its curve; NULL: it goes between parts */
  guint *asked; /* per edge: its number there */
} Ranks;

/* Where an edge passes a rank: on its curve, or on the straight line between parts. */
static double
pass (gpointer data, guint edge, gint rank)
{
  const Ranks *r = data;
  const TdLayerEdge *e = &r->edges[edge];
  double share = (double)(rank - r->rank[e->from]) / (r->rank[e->to] - r->rank[e->from]);
  double straight = r->x[e->from] + share * (r->x[e->to] - r->x[e->from]);

  return r->reply[edge]
             ? td__layout_reply_pass (r->reply[edge], r->asked[edge], r->height[rank], straight)
             : straight;
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

/* Things of one rank have their middles at one height. */
static void
add_part (Ranks *r, const Part *part, TdLayoutReply *reply)
{
  Level *levels = g_new (Level, reply->n_nodes + 1);
  guint asked = 0;

  for (guint i = 0; i < reply->n_nodes; i++)
    levels[i] = (Level){ reply->y[i], i };
  qsort (levels, reply->n_nodes, sizeof (Level), compare_levels);
  for (guint i = 0; i < reply->n_nodes; i++)
    {
      if (i == 0 || levels[i].y - levels[i - 1].y > 1)
        r->height[r->n_ranks++] = levels[i].y;
      r->rank[part->first + (gint32)levels[i].node] = r->n_ranks - 1;
      r->x[part->first + (gint32)levels[i].node] = reply->x[levels[i].node];
    }
  for (guint i = 0; i < r->n_edges; i++)
    if (is_in_part (part, &r->edges[i]))
      {
        r->reply[i] = td__layout_reply_ref (reply);
        r->asked[i] = asked++;
      }
  g_free (levels);
}

/* No layout of these edges may have one that does not point down. */
static gboolean
point_down (const Ranks *r)
{
  for (guint i = 0; i < r->n_edges; i++)
    if (r->edges[i].from >= 0 && r->edges[i].to >= 0
        && r->rank[r->edges[i].from] >= r->rank[r->edges[i].to])
      return FALSE;
  return TRUE;
}

static void
ask_part (Engine *engine, TdLayoutBuild *b, const TdBox *box, const Part *part, Ranks *r)
{
  guint n_asked;
  GString *request = write_request (b, box, part, r->edges, r->n_edges, &n_asked);
  TdLayoutReply *reply = NULL;

  if (n_asked > MAX_EDGES)
    engine->error = g_error_new_literal (G_IO_ERROR, G_IO_ERROR_FAILED,
                                         "too many edges for the layout helper");
  else
    reply = ask (engine, request, (guint)(part->end - part->first), n_asked);
  if (reply)
    {
      add_part (r, part, reply);
      td__layout_reply_unref (reply);
    }
  g_string_free (request, TRUE);
}

static TdLayering *
layer_box (gpointer data, TdLayoutBuild *b, gint index, TdLayerEdge *edges, guint n_edges)
{
  Engine *engine = data;
  const TdBox *box = &b->boxes[index];
  guint n = (guint)box->n_units;
  gint32 step = box->n_units <= MAX_THINGS ? MAX_THINGS : CUT_THINGS;
  Ranks r = { .edges = edges, .n_edges = n_edges };
  TdLayering *layering = NULL;

  if (engine->error)
    return NULL;
  /* a chain has one layout, whoever makes it */
  if (n < 3 || n_edges < 3)
    return td__layering_new (n, edges, n_edges);
  r.rank = g_new0 (gint32, n + 1);
  r.x = g_new0 (double, n + 1);
  r.height = g_new0 (double, n + 1);
  r.reply = g_new0 (TdLayoutReply *, n_edges + 1);
  r.asked = g_new0 (guint, n_edges + 1);
  for (Part part = { 0, 0 }; part.end < box->n_units && !engine->error; part.first = part.end)
    {
      part.end = MIN (part.first + step, box->n_units);
      ask_part (engine, b, box, &part, &r);
    }
  if (!engine->error && !point_down (&r))
    engine->error = g_error_new_literal (G_IO_ERROR, G_IO_ERROR_FAILED,
                                         "the layout helper turned an edge upside down");
  if (!engine->error)
    layering = td__layering_new_from (n, edges, n_edges, r.rank, r.x, pass, &r);
  for (guint i = 0; i < n_edges; i++)
    g_clear_pointer (&r.reply[i], td__layout_reply_unref);
  g_free (r.rank);
  g_free (r.x);
  g_free (r.height);
  g_free (r.reply);
  g_free (r.asked);
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
