/* `tapedeck eval MODEL.onnx`: a model as a function of its inputs, and the gradients of its
 * parameters.
 *
 * SPDX-License-Identifier: MIT */
#define TD_NO_SITES
#include "eval.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int
count (TdLink *model, TdOnnxInfo (*info) (TdLink *model, int i))
{
  int n = 0;

  while (info (model, n).name != NULL)
    n++;
  return n;
}

static int
count_needed (TdLink *model)
{
  int n = 0;

  for (TdOnnxInfo in; in = td_onnx_input (model, n), in.name != NULL && !in.is_optional; n++)
    ;
  return n;
}

static void
call_model (TdEval *e)
{
  const int n_out = count (e->model, td_onnx_output);

  if (n_out > TD_EVAL_MAX_ARRAYS)
    {
      snprintf (e->wrong, sizeof e->wrong, "%.300s: at most %d outputs expected, got %d",
                e->model_path, TD_EVAL_MAX_ARRAYS, n_out);
      return;
    }
  e->n_out = n_out;
  td_link_call (e->model, e->in, e->n_in, e->out, n_out);
}

static const TdEvalFunction model_function
    = { .name = "model", .operands = "[xs...]", .attributes = "", .call = call_model };

void
td_eval_begin_model (TdEval *e, const char *path)
{
  memset (e, 0, sizeof *e);
  e->function = &model_function;
  e->model_path = path;
}

void
td_eval_say_error (void)
{
  if (td_error () == NULL)
    return;
  fprintf (stderr, "tapedeck: %s\n",
           td_error ()->message + strlen (td_error ()->op) + strlen (": "));
  td_error_clear ();
}

typedef struct
{
  const char *path;
  int n;
} Lacks;

static void
say_lack (const char *line, void *user)
{
  Lacks *lacks = user;

  fprintf (stderr, "tapedeck: %s: not there: %s\n", lacks->path, line);
  lacks->n++;
}

TdLink *
td_eval_load (const char *path)
{
  TdOnnxLoadOpt options = td_onnx_load_options ();
  const char *slash = strrchr (path, '/'), *file = slash != NULL ? slash + 1 : path;
  Lacks lacks = { path, 0 };
  TdLink *model;
  char name[100];

  snprintf (name, sizeof name, "%.*s", (int)strcspn (file, "."), file);
  options.lack = say_lack;
  options.user = &lacks;
  options.name
      = name[0] != '\0' ? name : NULL; /* as the user calls it; an exporter says "torch_jit" */
  model = td_onnx_load_at (path, options, NULL);
  if (td_error () == NULL)
    return model;
  if (lacks.n > 0) /* the error holds nothing else */
    td_error_clear ();
  td_eval_say_error ();
  return NULL;
}

bool
td_eval_load_model (TdEval *e, int n_in)
{
  size_t used;
  int n, n_needed;

  e->model = td_eval_load (e->model_path);
  if (e->model == NULL)
    return false;
  n = count (e->model, td_onnx_input);
  n_needed = count_needed (e->model);
  if (n_in >= n_needed && n_in <= n)
    return true;
  used = (size_t)snprintf (e->wrong, sizeof e->wrong, "%.200s: ", e->model_path);
  if (n_needed < n)
    used += (size_t)snprintf (e->wrong + used, sizeof e->wrong - used, "%d to ", n_needed);
  used += (size_t)snprintf (e->wrong + used, sizeof e->wrong - used, "%d input%s expected (", n,
                            n == 1 ? "" : "s");
  for (int i = 0; i < n && used < 400; i++)
    used += (size_t)snprintf (e->wrong + used, sizeof e->wrong - used, "%s%.60s",
                              i > 0 ? ", " : "", td_onnx_input (e->model, i).name);
  snprintf (e->wrong + used, sizeof e->wrong - used, "), got %d", n_in);
  return false;
}

/* --- parameters --- */

static void
add_parameter (const char *path, TdVar *param, void *user)
{
  TdEvalParams *p = user;

  p->paths = realloc (p->paths, (size_t)(p->n + 1) * sizeof *p->paths);
  p->vars = realloc (p->vars, (size_t)(p->n + 1) * sizeof *p->vars);
  if (p->paths == NULL || p->vars == NULL)
    abort ();
  p->paths[p->n] = strdup (path);
  p->vars[p->n++] = param;
}

void
td_eval_params (TdEvalParams *p, TdLink *model)
{
  memset (p, 0, sizeof *p);
  if (model != NULL)
    td_link_each_param (model, add_parameter, p);
}

void
td_eval_params_clear (TdEvalParams *p)
{
  for (int i = 0; i < p->n; i++)
    free (p->paths[i]);
  free (p->paths);
  free (p->vars);
}

static void
serialize (void *object, TdSerializer *s)
{
  const TdEvalParams *p = object;

  for (int i = 0; i < p->n; i++)
    if (p->vars[i] != NULL)
      td_serialize_var (s, p->paths[i], p->vars[i]);
}

void
td_eval_params_save (TdEvalParams *gradients, const char *path)
{
  td_save_object (path, serialize, gradients);
}
