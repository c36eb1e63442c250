/* What the server has besides /predict: health, the model, metrics.
 *
 * SPDX-License-Identifier: MIT */
#define TD_NO_SITES
#include "serve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *model_path = "";

void
td_serve_routes_begin (const TdServeOptions *o)
{
  model_path = o->model;
}

static char *
take_text (TdJsonText *text, size_t *n)
{
  if (text->is_cut)
    {
      free (text->text);
      return NULL;
    }
  *n = text->n;
  return text->text;
}

static char *
health_text (size_t *n)
{
  TdJsonText text = { 0 };
  TdJsonWriter w;

  td__json_write (&w, td__json_put_text, &text, TD_JSON_TIGHT);
  td__json_begin_object (&w);
  td__json_member_string (&w, "status", td_serve_stops () ? "stops" : "ok");
  td__json_member_uint (&w, "queue", td_serve_queue_length ());
  td__json_end_object (&w);
  return take_text (&text, n);
}

/* An axis of any size is null; a shape of any axes, too. */
static void
write_ports (TdJsonWriter *w, const char *key, const TdOnnxInfo *ports, int n)
{
  td__json_key (w, key);
  td__json_begin_array (w);
  for (int i = 0; i < n; i++)
    {
      td__json_begin_object (w);
      td__json_member_string (w, "name", ports[i].name);
      td__json_member_string (w, "dtype", td_dtype_name (ports[i].dtype));
      td__json_member_string (w, "wire", td_dtype_name (td_serve_wire (ports[i].dtype)));
      if (ports[i].is_optional)
        td__json_member_bool (w, "optional", true);
      td__json_key (w, "shape");
      if (ports[i].ndim < 0)
        td__json_null (w);
      else
        {
          td__json_begin_array (w);
          for (int d = 0; d < ports[i].ndim; d++)
            if (ports[i].dim[d] < 0)
              td__json_null (w);
            else
              td__json_int (w, ports[i].dim[d]);
          td__json_end_array (w);
        }
      td__json_end_object (w);
    }
  td__json_end_array (w);
}

static char *
model_text (size_t *n)
{
  static const char *const gathers[] = { [TD_SERVE_GATHERS_UNKNOWN] = "not tried yet",
                                         [TD_SERVE_GATHERS] = "yes",
                                         [TD_SERVE_GATHERS_NOT] = "no" };
  TdServeModel *m = td_serve_model_ref ();
  const int how = m->gathers;
  TdJsonText text = { 0 };
  TdJsonWriter w;

  td__json_write (&w, td__json_put_text, &text, TD_JSON_TIGHT);
  td__json_begin_object (&w);
  td__json_member_string (&w, "path", model_path);
  write_ports (&w, "inputs", m->ports.in, m->ports.n_in);
  write_ports (&w, "outputs", m->ports.out, m->ports.n_out);
  td__json_member_string (&w, "gathered", gathers[how]);
  if (how == TD_SERVE_GATHERS_NOT)
    td__json_member_string (&w, "why", m->why_not);
  td__json_member_uint (&w, "tried", m->n_tried);
  td__json_end_object (&w);
  td_serve_model_unref (m);
  return take_text (&text, n);
}

static const TdServeRoute routes[] = {
  { "/predict", "POST" },
  { "/health", "GET", "application/json", health_text },
  { "/model", "GET", "application/json", model_text },
  { "/metrics", "GET", "text/plain; version=0.0.4; charset=utf-8", td_serve_metrics_text },
};

/* "http://host/path" is what a proxy is asked for, and every server has to take. */
static const char *
path_of (const char *target)
{
  const char *host = strncasecmp (target, "http://", 7) == 0    ? target + 7
                     : strncasecmp (target, "https://", 8) == 0 ? target + 8
                                                                : NULL;

  return host == NULL ? target : strchr (host, '/') != NULL ? strchr (host, '/') : "/";
}

const TdServeRoute *
td_serve_route (const char *method, const char *target, int *status, char *why,
                const char **allow)
{
  const char *path = path_of (target);

  for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
    {
      const bool is_get = routes[i].text != NULL;

      if (strcmp (path, routes[i].path) != 0)
        continue;
      if (strcmp (method, routes[i].method) == 0 || (is_get && strcmp (method, "HEAD") == 0))
        return &routes[i];
      *status = 405;
      *allow = is_get ? "GET, HEAD" : "POST";
      td_serve_refuse (why, "%s takes %s, got %.20s", path, *allow, method);
      return NULL;
    }
  *status = 404;
  td_serve_refuse (why, "%.100s: POST /predict, GET /health, /model and /metrics are there",
                   path);
  return NULL;
}
