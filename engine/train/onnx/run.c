/* One call of an ONNX graph: values, and the nodes one after the other.
 *
 * SPDX-License-Identifier: MIT */
#include "run.h"

#include "host-memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
td__run_fail (TdOnnxRun *r, TdStatus status, const char *format, ...)
{
  char text[500];
  va_list args;

  va_start (args, format);
  vsnprintf (text, sizeof text, format, args);
  va_end (args);
  if (!r->failed)
    td__fail (status, r->node->type, NULL, "%s", text);
  r->failed = true;
}

/* --- inputs --- */

static TdOnnxValue *
value (const TdOnnxRun *r, int i)
{
  return td__run_there (r, i) ? &r->values[r->node->in[i]] : NULL;
}

TdVar *
td__run_upload (TdOnnxRun *r, const TdOnnxHost *h)
{
  return td_tensor (h->dtype, h->shape, td__host_elements (&r->arena, h));
}

TdVar *
td__run_var (TdOnnxRun *r, int i)
{
  TdOnnxValue *v = value (r, i);

  if (v == NULL)
    {
      td__run_fail (r, TD_ERR_ARG, "input %d is not there", i);
      return td__poison ();
    }
  if (v->var == NULL)
    {
      const char *name = r->node->in_names[i], *slash = strrchr (name, '/');

      v->var = td_name (td__run_upload (r, v->host), slash != NULL ? slash + 1 : name);
    }
  return v->var;
}

TdShape
td__run_shape (TdOnnxRun *r, int i)
{
  const TdOnnxHost *h = td__run_known (r, i);

  return h != NULL ? h->shape : td_shape (td__run_var (r, i));
}

const TdOnnxHost *
td__run_known (const TdOnnxRun *r, int i)
{
  const TdOnnxValue *v = value (r, i);

  return v != NULL ? v->host : NULL;
}

const TdOnnxHost *
td__run_numbers (TdOnnxRun *r, int i)
{
  const TdOnnxHost *h = td__run_known (r, i);
  TdVar *v = h == NULL ? td__run_var (r, i) : NULL;
  TdShape shape;
  size_t bytes;
  void *room;

  if (h != NULL || td_poisoned (v))
    return h;
  shape = td_shape (v);
  if (!td__shape_bytes (&shape, td_dtype (v), &bytes) || bytes > TD_ONNX_HOST_MOST)
    {
      td__run_fail (r, TD_ERR_SHAPE, "input %d has too many numbers to be read", i);
      return NULL;
    }
  room = td__onnx_alloc (&r->arena, bytes + 1, 1);
  if (td_read (v, room, bytes) != TD_OK)
    return NULL;
  h = td__host_from (&r->arena, td_dtype (v), &shape, room);
  if (h == NULL)
    td__run_fail (r, TD_ERR_SHAPE, "input %d has too many numbers to be read", i);
  return h;
}

int
td__run_ints (TdOnnxRun *r, int i, const char *attribute, int64_t *to, int most)
{
  const TdOnnxAttr *a = attribute != NULL ? td__onnx_attr (r->node, attribute) : NULL;
  const TdOnnxHost *h = NULL;
  int64_t n = -1;

  if (i >= 0 && td__run_there (r, i))
    {
      h = td__run_numbers (r, i);
      if (h == NULL)
        r->failed = true;
    }
  if (h != NULL)
    n = h->n;
  else if (a != NULL)
    n = a->kind == TD_ONNX_INT ? 1 : a->n;
  if (n > most)
    {
      td__run_fail (r, TD_ERR_ARG, "at most %d %s expected, got %lld", most,
                    attribute != NULL ? attribute : "numbers", (long long)n);
      return -1;
    }
  for (int k = 0; k < n; k++)
    to[k] = h != NULL                 ? td__host_int (h, k)
            : a->kind == TD_ONNX_INT  ? a->i
            : a->kind == TD_ONNX_INTS ? a->ints[k]
                                      : 0;
  return (int)n;
}

bool
td__run_axes (TdOnnxRun *r, int i, const char *attribute, int ndim, int *axes, int *n_axes)
{
  int64_t given[TD_MAX_DIMS];
  int n = td__run_ints (r, i, attribute, given, TD_MAX_DIMS);

  *n_axes = n > 0 ? n : 0;
  for (int k = 0; k < n; k++)
    {
      const int64_t axis = given[k] < 0 ? given[k] + ndim : given[k];

      for (int j = 0; j < k; j++)
        if (axis == axes[j])
          td__run_fail (r, TD_ERR_ARG, "axis %lld comes twice", (long long)given[k]);
      if (axis < 0 || axis >= ndim)
        td__run_fail (r, TD_ERR_ARG, "axis %lld of %d axes", (long long)given[k], ndim);
      axes[k] = (int)axis;
    }
  return !r->failed;
}

int
td__run_axis (TdOnnxRun *r, int otherwise, int ndim)
{
  const int64_t given = td__onnx_attr_int (r->node, "axis", otherwise);
  const int64_t axis = given < 0 ? given + ndim : given;

  if (axis >= 0 && axis < ndim)
    return (int)axis;
  td__run_fail (r, TD_ERR_ARG, "axis %lld of %d axes", (long long)given, ndim);
  return -1;
}

/* --- outputs --- */

void
td__run_out (TdOnnxRun *r, int k, TdVar *v)
{
  if (k < r->node->n_out && r->node->out[k] != TD_ONNX_ABSENT)
    r->values[r->node->out[k]].var = v;
  r->failed |= td_poisoned (v);
}

void
td__run_out_host (TdOnnxRun *r, int k, const TdOnnxHost *h)
{
  if (h == NULL)
    td__run_fail (r, TD_ERR_ARG, "inputs that fit each other expected");
  else if (k < r->node->n_out && r->node->out[k] != TD_ONNX_ABSENT)
    r->values[r->node->out[k]].host = h;
}

/* --- all nodes --- */

static bool
all_known (const TdOnnxRun *r)
{
  for (int i = 0; i < r->node->n_in; i++)
    if (td__run_there (r, i) && td__run_known (r, i) == NULL)
      return false;
  return true;
}

static bool
all_made (const TdOnnxRun *r)
{
  for (int k = 0; k < r->node->n_out; k++)
    if (r->node->out[k] != TD_ONNX_ABSENT && r->values[r->node->out[k]].var == NULL
        && r->values[r->node->out[k]].host == NULL)
      return false;
  return true;
}

/* The path of a scope's first n bytes, as that of a link that is called, or whose call ends. */
static void
tell (const char *root, const char *scope, size_t n, bool enter)
{
  TdObserver *o = td__engine.observer;
  char path[600];

  snprintf (path, sizeof path, "%.250s/%.*s", root, (int)(n < 300 ? n : 300), scope);
  o->link (o, enter, td__path_intern (path, "OnnxScope"), td__engine.site);
}

/* How many bytes of both are the same scopes. */
static size_t
shared (const char *a, const char *b)
{
  size_t n = 0, i = 0;

  for (; a[i] != '\0' && a[i] == b[i]; i++)
    if (a[i] == '/')
      n = i;
  return (a[i] == '\0' || a[i] == '/') && (b[i] == '\0' || b[i] == '/') ? i : n;
}

/* Nodes run one after the other; who watches is told of the links that their names speak of. */
static void
change_scope (TdOnnxRun *r, const char *root, const char *to)
{
  const char *from = r->scope;
  const size_t common = shared (from, to), n_to = strlen (to);

  r->scope = to;
  if (td__engine.observer == NULL)
    return;
  for (size_t n = strlen (from); n > common; n--)
    if (from[n] == '\0' || from[n] == '/')
      tell (root, from, n, false);
  for (size_t n = common + 1; n <= n_to; n++)
    if (to[n] == '\0' || to[n] == '/')
      tell (root, to, n, true);
}

/* A node of a body may have run before: nothing of that is left. */
static void
forget_outputs (TdOnnxRun *r)
{
  for (int k = 0; k < r->node->n_out; k++)
    if (r->node->out[k] != TD_ONNX_ABSENT)
      r->values[r->node->out[k]] = (TdOnnxValue){ NULL, NULL };
}

static void
run_nodes (TdOnnxRun *r, const TdOnnxGraph *g)
{
  char path[600];

  for (int i = 0; i < g->n_nodes && !r->failed; i++)
    {
      const TdOnnxRow *row = g->nodes[i].row;

      r->node = &g->nodes[i];
      snprintf (path, sizeof path, "%.250s/%.300s", r->root, r->node->path);
      change_scope (r, r->root, r->node->scope);
      td__engine.path = td__path_intern (path, r->node->type);
      forget_outputs (r);
      if (row->host != NULL && all_known (r))
        td__run_out_host (r, 0, row->host (r));
      else if (row->run != NULL)
        row->run (r);
      else
        td__run_fail (r, TD_ERR_ARG, "of sizes and constants only, got an array");
      if (!r->failed && !all_made (r))
        td__run_fail (r, TD_ERR_STATE, "an output is not there");
    }
}

bool
td__run_body (TdOnnxRun *r, const TdOnnxGraph *body)
{
  const TdOnnxNode *node = r->node;
  const TdPath *path = td__engine.path;

  run_nodes (r, body);
  r->node = node;
  td__engine.path = path;
  change_scope (r, r->root, node->scope);
  return !r->failed;
}

void
td__onnx_run (TdOnnxRun *r, const char *root)
{
  const TdPath *outer = td__engine.path;

  r->root = root;
  r->scope = "";
  run_nodes (r, r->g);
  change_scope (r, root, "");
  td__engine.path = outer;
}
