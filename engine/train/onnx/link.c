/* The link that an ONNX graph becomes: its call, its copies, what goes in and out.
 *
 * SPDX-License-Identifier: MIT */
#include "onnx-link.h"

#include "host-memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the call --- */

static void
port_text (const TdOnnxPort *p, char *text, size_t size)
{
  size_t used = (size_t)snprintf (text, size, "(");

  for (int d = 0; d < p->ndim && used < size; d++)
    {
      if (p->dim[d] >= 0)
        used += (size_t)snprintf (text + used, size - used, "%s%lld", d > 0 ? ", " : "",
                                  (long long)p->dim[d]);
      else
        used += (size_t)snprintf (text + used, size - used, "%s%.40s", d > 0 ? ", " : "",
                                  p->symbol[d] != NULL ? p->symbol[d] : "?");
    }
  if (used < size)
    snprintf (text + used, size - used, ")");
}

static bool
port_fits (const TdOnnxPort *p, const TdShape *shape)
{
  if (p->ndim < 0)
    return true;
  if (p->ndim != shape->ndim)
    return false;
  for (int d = 0; d < p->ndim; d++)
    if (p->dim[d] >= 0 && p->dim[d] != shape->dim[d])
      return false;
  return true;
}

static bool
is_named (const TdOnnxPort *p, int d)
{
  return p->dim[d] < 0 && p->symbol[d] != NULL && p->symbol[d][0] != '\0';
}

/* A name of a size stands for one size in all inputs of a call.  Exporters give one name to
 * sizes that have nothing to do with each other, so that it is said, once for a link, and what
 * needs them to be equal fails where it is computed: as in onnxruntime, which says nothing. */
static void
say_symbols (const TdLink *link, TdOnnxLink *l, TdVar *const *in, int n_in)
{
  const TdOnnxPort *ports = l->graph->in;

  for (int i = 1; i < n_in && !l->said; i++)
    for (int d = 0; d < ports[i].ndim && !l->said; d++)
      for (int j = 0; j < i && is_named (&ports[i], d) && !l->said; j++)
        for (int c = 0; c < ports[j].ndim && !l->said; c++)
          {
            const TdShape *one = &in[j]->node->shape, *other = &in[i]->node->shape;

            /* nothing has looked at the shape of a default that nothing uses */
            if (!is_named (&ports[j], c) || strcmp (ports[i].symbol[d], ports[j].symbol[c]) != 0
                || one->ndim != ports[j].ndim || other->ndim != ports[i].ndim
                || one->dim[c] == other->dim[d])
              continue;
            fprintf (stderr,
                     "tapedeck: %s: size %.100s is %lld in input %.100s and %lld in input "
                     "%.100s\n",
                     link->path->text, ports[i].symbol[d], (long long)one->dim[c],
                     ports[j].name, (long long)other->dim[d], ports[i].name);
            l->said = true;
          }
}

static TdStatus
check_inputs (const TdOnnxGraph *g, TdVar *const *in, int n_in, int n_out)
{
  char want[300], got[160], optional[40] = "";

  if (g->n_optional > 0)
    snprintf (optional, sizeof optional, " to %d", g->n_in + g->n_optional);
  if (n_in < g->n_in || n_in > g->n_in + g->n_optional || n_out > g->n_out)
    return td__fail (TD_ERR_ARG, "Onnx", td__engine.site,
                     "%d%s inputs and at most %d outputs expected, got %d and %d", g->n_in,
                     optional, g->n_out, n_in, n_out);
  for (int i = 0; i < n_in; i++)
    {
      if (td_poisoned (in[i]))
        return td__error_status ();
      if (i >= g->n_in && !g->givens[g->in[i].given].is_used)
        continue; /* nothing looks at it */
      if (g->in[i].dtype != (int)in[i]->node->dtype)
        return td__fail (TD_ERR_DTYPE, "Onnx", td__engine.site, "input %.100s is of %s, got %s",
                         g->in[i].name, td_dtype_name ((TdDtype)g->in[i].dtype),
                         td_dtype_name (td_dtype (in[i])));
      if (port_fits (&g->in[i], &in[i]->node->shape))
        continue;
      port_text (&g->in[i], want, sizeof want);
      return td__fail (TD_ERR_SHAPE, "Onnx", td__engine.site,
                       "input %.100s of shape %s expected, got %s", g->in[i].name, want,
                       td_shape_text (&in[i]->node->shape, got, sizeof got));
    }
  return TD_OK;
}

/* Does another make it?  What is passed on as it is must not be handed out as it is. */
static bool
is_passed_on (const TdOnnxRun *r, TdVar *const *in, int n_in, TdParam *const *params,
              TdVar *const *out, int k)
{
  bool is = false;

  for (int i = 0; i < n_in && !is; i++)
    is = in[i] == out[k];
  for (int i = 0; i < r->g->n_givens && !is; i++)
    is = params[i] != NULL && params[i]->var == out[k];
  for (int i = 0; i < k && !is; i++)
    is = out[i] == out[k];
  return is;
}

static TdStatus
onnx_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdOnnxLink *l = self;
  const TdOnnxGraph *g = l->graph;
  TdStatus status = check_inputs (g, in, n_in, n_out);
  TdDevice *outer = td__engine.device;
  TdOnnxRun r = { .g = g };

  if (status != TD_OK)
    return status;
  say_symbols (link, l, in, n_in);
  r.values = td__onnx_alloc (&r.arena, (size_t)g->n_values + 1, sizeof *r.values);
  for (int i = 0; i < g->n_givens; i++)
    r.values[g->givens[i].value]
        = (TdOnnxValue){ l->params[i] != NULL ? l->params[i]->var : NULL, g->givens[i].host };
  for (int i = 0; i < n_in; i++)
    if (r.values[g->in[i].value].var != in[i]) /* a default keeps its numbers */
      r.values[g->in[i].value] = (TdOnnxValue){ in[i], NULL };
  if (n_in > 0)
    td__engine.device = in[0]->node->device; /* constants lie where the inputs are */
  td__onnx_run (&r, link->path->text);
  for (int k = 0; k < n_out && !r.failed; k++)
    {
      const TdOnnxValue *v = &r.values[g->out[k].value];
      out[k] = v->var != NULL ? v->var : td__run_upload (&r, v->host);
      if (is_passed_on (&r, in, n_in, l->params, out, k))
        out[k] = td_identity (out[k]);
      r.failed |= td_poisoned (out[k]);
    }
  td__engine.device = outer;
  td__onnx_arena_free (&r.arena);
  return !r.failed ? TD_OK : td__error_status () != TD_OK ? td__error_status () : TD_ERR_STATE;
}

/* --- life --- */

typedef struct
{
  const char *key;
  int given;
} Key;

typedef struct
{
  TdOnnxLink *l;
  Key *keys;
  size_t n;
} Collect;

static int
by_key (const void *a, const void *b)
{
  return strcmp (((const Key *)a)->key, ((const Key *)b)->key);
}

static void
collect_one (TdLink *owner, TdParam *param, const char *key, void *user)
{
  const Collect *c = user;
  const Key wanted = { key, 0 };
  const Key *k = bsearch (&wanted, c->keys, c->n, sizeof *c->keys, by_key);

  (void)owner;
  if (k != NULL)
    c->l->params[k->given] = param;
}

void
td__onnx_link_collect (TdLink *link)
{
  Collect c = { .l = link->self };
  const TdOnnxGraph *g = c.l->graph;

  c.keys = td__xcalloc ((size_t)g->n_givens + 1, sizeof *c.keys);
  for (int i = 0; i < g->n_givens; i++)
    if (g->givens[i].key != NULL) /* no two have one */
      c.keys[c.n++] = (Key){ g->givens[i].key, i };
  qsort (c.keys, c.n, sizeof *c.keys, by_key);
  td__link_visit (link, collect_one, &c);
  free (c.keys);
}

static void
onnx_free (void *self)
{
  TdOnnxLink *l = self;

  free (l->params);
  td__onnx_graph_unref (l->graph);
}

static void
onnx_copied (TdLink *to, const TdLink *from)
{
  const TdOnnxLink *source = from->self;

  source->graph->refs++;
  td__onnx_link_fill (to, source->graph);
  td__onnx_link_collect (to);
}

static const TdLinkClass onnx_class = { .size = sizeof (TdLinkClass),
                                        .name = "Onnx",
                                        .self_bytes = sizeof (TdOnnxLink),
                                        .forward = onnx_forward,
                                        .free = onnx_free,
                                        .copied = onnx_copied };

void
td__onnx_link_fill (TdLink *link, TdOnnxGraph *graph)
{
  TdOnnxLink *l = link->self;

  l->graph = graph;
  l->params = td__xcalloc ((size_t)graph->n_givens + 1, sizeof *l->params);
}

TdLink *
td__onnx_link_new (const char *name, const TdSite *site)
{
  return td__link_make (&onnx_class, NULL, name, site);
}

/* --- by name, and what there is --- */

static const TdOnnxGraph *
graph_of (TdLink *link, const char *call)
{
  if (!td__link_usable (link, call, NULL))
    return NULL;
  if (link->cls == &onnx_class)
    return ((TdOnnxLink *)link->self)->graph;
  td__fail (TD_ERR_ARG, call, NULL, "%s is a %s, and comes from no ONNX file", link->path->text,
            link->cls->name);
  return NULL;
}

TdOnnxInfo
td__onnx_port_info (const TdOnnxPort *port)
{
  TdOnnxInfo to = { .name = port->name, .dtype = (TdDtype)port->dtype, .ndim = port->ndim };

  for (int d = 0; d < port->ndim; d++)
    {
      to.dim[d] = port->dim[d];
      to.symbol[d] = is_named (port, d) ? port->symbol[d] : NULL;
    }
  return to;
}

TdOnnxInfo
td_onnx_input (TdLink *link, int i)
{
  const TdOnnxGraph *g = graph_of (link, "td_onnx_input");
  TdOnnxInfo none = { .name = NULL }, to;

  if (g == NULL || i < 0 || i >= g->n_in + g->n_optional)
    return none;
  to = td__onnx_port_info (&g->in[i]);
  to.is_optional = i >= g->n_in;
  return to;
}

TdOnnxInfo
td_onnx_output (TdLink *link, int i)
{
  const TdOnnxGraph *g = graph_of (link, "td_onnx_output");
  const TdOnnxInfo none = { .name = NULL };

  return g != NULL && i >= 0 && i < g->n_out ? td__onnx_port_info (&g->out[i]) : none;
}

static int
port_by_name (const TdOnnxPort *ports, int n, const char *name)
{
  for (int i = 0; i < n; i++)
    if (name != NULL && strcmp (ports[i].name, name) == 0)
      return i;
  return -1;
}

/* The array of a default; one that nothing uses has none, and nothing looks at it. */
static TdVar *
default_of (const TdLink *link, int given)
{
  const TdParam *p = ((const TdOnnxLink *)link->self)->params[given];

  return p != NULL ? p->var : td_zeros (TD_F32, TD_SHAPE (1));
}

static TdStatus
by_names (TdLink *link, const TdOnnxGraph *g, const char *const *names, TdVar *const *in,
          int n_in, TdVar **out, int n_out, const TdSite *site)
{
  const int n_all = g->n_in + g->n_optional;
  TdVar **ordered = td__xcalloc ((size_t)n_all + 1, sizeof *ordered);
  TdStatus status = TD_OK;
  int n = g->n_in; /* up to the last that is given */

  for (int i = 0; i < n_in && status == TD_OK; i++)
    {
      const int at = port_by_name (g->in, n_all, names[i]);

      if (at < 0 || ordered[at] != NULL)
        status = td__fail (TD_ERR_ARG, "td_onnx_call", site, "%s has no input %.100s%s",
                           link->path->text, names[i] != NULL ? names[i] : "(null)",
                           at < 0 ? "" : " left: it comes twice");
      else
        ordered[at] = in[i];
      n = at >= n ? at + 1 : n;
    }
  for (int i = 0; i < g->n_in && status == TD_OK; i++)
    if (ordered[i] == NULL)
      status = td__fail (TD_ERR_ARG, "td_onnx_call", site, "input %.100s of %s is missing",
                         g->in[i].name, link->path->text);
  for (int i = g->n_in; i < n && status == TD_OK; i++)
    if (ordered[i] == NULL)
      ordered[i] = default_of (link, g->in[i].given);
  if (status == TD_OK)
    status = td_link_call_at (link, ordered, n, out, n_out, site);
  else
    for (int k = 0; k < n_out; k++)
      out[k] = td__poison ();
  free (ordered);
  return status;
}

TdStatus
td_onnx_call_at (TdLink *link, const char *const *names, TdVar *const *in, int n_in,
                 TdVar **out, int n_out, const TdSite *site)
{
  const TdOnnxGraph *g = graph_of (link, "td_onnx_call");

  if (g == NULL || !td__list_there (in, n_in, "td_onnx_call", site)
      || !td__list_there (out, n_out, "td_onnx_call", site))
    {
      for (int k = 0; out != NULL && k < n_out; k++)
        out[k] = td__poison ();
      return td__error_status ();
    }
  if (names == NULL)
    return td_link_call_at (link, in, n_in, out, n_out, site);
  return by_names (link, g, names, in, n_in, out, n_out, site);
}

TdStatus (td_onnx_call) (TdLink *link, const char *const *names, TdVar *const *in, int n_in,
                         TdVar **out, int n_out)
{
  return td_onnx_call_at (link, names, in, n_in, out, n_out, NULL);
}
