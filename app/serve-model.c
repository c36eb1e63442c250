/* Models that are served: loading one, and one call of it, on the engine's thread.
 *
 * SPDX-License-Identifier: MIT */
#define TD_NO_SITES
#include "serve.h"

#include "record/on-demand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- loading -------------------------------------------------------------------------------
 */

/* A schedule is saved in four forms, of which one can be loaded. */
static bool
names_no_model (const char *path)
{
  static const char *const others[] = { ".c", ".dot", ".npz", ".safetensors", ".tdtape" };
  const size_t n = strlen (path);

  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (n > strlen (others[i]) && strcmp (path + n - strlen (others[i]), others[i]) == 0)
      return true;
  return false;
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

/* The engine's words without its function's name; nothing where they were lines already. */
static void
take_error (const Lacks *lacks, char *why)
{
  const TdError *error = td_error ();

  *why = '\0';
  if (lacks->n == 0)
    td_serve_refuse (why, "%.600s", error->message + strlen (error->op) + strlen (": "));
}

static bool
take_ports (TdLink *link, TdOnnxInfo (*info) (TdLink *link, int i), TdOnnxInfo *ports, int *n)
{
  for (*n = 0; info (link, *n).name != NULL; ++*n)
    {
      if (*n == TD_SERVE_MOST_PORTS)
        return false;
      ports[*n] = info (link, *n);
    }
  return true;
}

/* Rows of one call can be those of several requests where each first axis is open.  Inputs that
 * may be left out are no rows: who gives one is alone. */
static const char *
why_not_gathered (const TdServePorts *p)
{
  for (int i = 0; i < p->n_needed; i++)
    if (p->in[i].ndim < 1 || p->in[i].dim[0] >= 0)
      return "the first axis of an input has one size";
  for (int k = 0; k < p->n_out; k++)
    if (p->out[k].ndim == 0 || (p->out[k].ndim > 0 && p->out[k].dim[0] >= 0))
      return "the first axis of an output has one size";
  return p->n_needed > 0 ? NULL : "it has no inputs that must be given";
}

TdServeModel *
td_serve_model_load (const char *path, char *why)
{
  TdOnnxLoadOpt options = td_onnx_load_options ();
  Lacks lacks = { path, 0 };
  TdServeModel *m;

  if (names_no_model (path))
    {
      td_serve_refuse (why,
                       "%.400s: an ONNX model expected; td_static_save writes a schedule "
                       "as one to a name that ends in .onnx",
                       path);
      return NULL;
    }
  m = calloc (1, sizeof *m);
  if (m == NULL)
    {
      td_serve_refuse (why, "no memory");
      return NULL;
    }
  options.lack = say_lack;
  options.user = &lacks;
  m->link = td_onnx_load_at (path, options, NULL);
  if (td_error () != NULL)
    take_error (&lacks, why);
  else if (take_ports (m->link, td_onnx_input, m->ports.in, &m->ports.n_in)
           && take_ports (m->link, td_onnx_output, m->ports.out, &m->ports.n_out))
    {
      while (m->ports.n_needed < m->ports.n_in && !m->ports.in[m->ports.n_needed].is_optional)
        m->ports.n_needed++;
      m->why_not = why_not_gathered (&m->ports);
      m->gathers = m->why_not == NULL ? TD_SERVE_GATHERS_UNKNOWN : TD_SERVE_GATHERS_NOT;
      return m;
    }
  else
    td_serve_refuse (why, "%.400s: at most %d inputs and outputs expected", path,
                     TD_SERVE_MOST_PORTS);
  td_error_clear ();
  td_serve_model_free (m);
  return NULL;
}

void
td_serve_model_free (TdServeModel *m)
{
  td_link_free (m->link);
  free (m);
}

/* --- one call ------------------------------------------------------------------------------
 */

static bool
take_output (TdVar *y, TdServeArray *to, char *why)
{
  TdVar *wire = td_serve_wire (td_dtype (y)) == td_dtype (y)
                    ? y
                    : td_cast (y, td_serve_wire (td_dtype (y)));

  to->dtype = td_dtype (wire);
  to->shape = td_shape (wire);
  to->bytes = (size_t)td_size (wire) * td_dtype_bytes (to->dtype);
  to->data = malloc (to->bytes + 1);
  if (to->data == NULL)
    return td_serve_refuse (why, "no memory for an output");
  return td_read (wire, to->data, to->bytes) == TD_OK;
}

static bool
call (TdServeModel *m, const TdServeArray *in, TdServeArray *out, char *why)
{
  const TdServePorts *p = &m->ports;
  TdVar *x[TD_SERVE_MOST_PORTS], *y[TD_SERVE_MOST_PORTS];
  const char *names[TD_SERVE_MOST_PORTS];
  int n = 0;

  for (int i = 0; i < p->n_in; i++)
    {
      if (in[i].data == NULL) /* it has a default */
        continue;
      x[n] = td_tensor (in[i].dtype, in[i].shape, in[i].data);
      if (p->in[i].dtype != in[i].dtype)
        x[n] = td_cast (x[n], p->in[i].dtype);
      td_name (x[n], p->in[i].name);
      names[n++] = p->in[i].name;
    }
  if (td_onnx_call (m->link, n > p->n_needed ? names : NULL, x, n, y, p->n_out) != TD_OK)
    return false;
  for (int k = 0; k < p->n_out; k++)
    if (!take_output (y[k], &out[k], why))
      return false;
  return true;
}

/* Whose fault an error of the engine is: the request's, whose numbers do not fit the model, or
 * that of this side. */
static int
status_of (TdStatus status)
{
  return status == TD_ERR_SHAPE || status == TD_ERR_DTYPE || status == TD_ERR_ARG ? 400
         : status == TD_ERR_MEMORY                                                ? 503
                                                                                  : 500;
}

int
td_serve_model_call (TdServeModel *m, uint64_t label, const char *note, const TdServeArray *in,
                     TdServeArray *out, char *why)
{
  int status = 200;

  *why = '\0';
  TD_ITERATION ((int64_t)label)
    {
      if (note != NULL)
        td__record_note (note);
      if (!call (m, in, out, why))
        status = *why != '\0' ? 503 : 500;
    }
  if (td_error () != NULL)
    {
      status = status_of (td_error ()->status);
      td_serve_refuse (why, "%.600s", td_error ()->message);
      td_error_clear ();
    }
  if (status != 200)
    td_serve_clear (out, m->ports.n_out);
  return status;
}
