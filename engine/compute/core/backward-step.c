/* What a class's backward may ask of its step: which gradients are needed, what was kept, and
 * what shapes and dtypes there were.
 *
 * The ways that end in an error are functions of their own, with which the others end: those
 * need no frame then, and they are called several times in each step.
 *
 * SPDX-License-Identifier: MIT */
#include "walk.h"

#include <stdio.h>

void
td__backward_not_there (const TdBackward *b, int i, bool output)
{
  Step *s = b != NULL ? b->priv : NULL;

  if (s == NULL)
    td__fail (TD_ERR_ARG, "td_backward", NULL, "a step of backward expected, got NULL");
  else
    s->status
        = td__fail (TD_ERR_ARG, s->op->cls->name, s->op->site, "backward asks for %s %d of %d",
                    output ? "output" : "input", i, output ? b->n_out : b->n_in);
}

static __attribute__ ((noinline, cold)) TdVar *
refuse_var (const TdBackward *b, int i, bool output)
{
  td__backward_not_there (b, i, output);
  return td__poison ();
}

static __attribute__ ((noinline, cold)) const TdShape *
refuse_shape (const TdBackward *b, int i, bool output)
{
  static const TdShape none;

  td__backward_not_there (b, i, output);
  return &none;
}

static __attribute__ ((noinline, cold)) TdDtype
refuse_dtype (const TdBackward *b, int i, bool output)
{
  td__backward_not_there (b, i, output);
  return TD_F32;
}

/* Of an input above 31, or of none. */
static __attribute__ ((noinline, cold)) bool
needs_gradient_far (const TdBackward *b, int i)
{
  if (has_input (b, i))
    return needs_gradient (b->priv, i);
  td__backward_not_there (b, i, false);
  return false;
}

bool
td_backward_needs (const TdBackward *b, int i)
{
  if (TD_LIKELY ((unsigned)i < 32 && has_input (b, i)))
    return needs_gradient (b->priv, i);
  return needs_gradient_far (b, i);
}

/* A variable for a retained array whose own is no more. */
static __attribute__ ((noinline)) TdVar *
revive_anew (TdNode *n, const TdSite *site)
{
  TdVar *v = n->var;

  if (v != NULL)
    return td__poison (); /* cannot be: a handle keeps its buffer for life */
  v = td__var_new (td__node_revive (n), td__buffer_ref (n->retained), site);
  v->name = n->name;
  return td__scope_add (v);
}

/* The variable of a retained array: the one that exists if it still has that memory, else a new
 * one. */
static inline TdVar *
revive (TdNode *n, const TdSite *site)
{
  TdVar *v = n->var;

  return TD_LIKELY (v != NULL && v->buffer == n->retained) ? v : revive_anew (n, site);
}

TdVar *
td__revive (TdNode *n, const TdSite *site)
{
  return revive (n, site);
}

static TdVar *
stale (Step *s, const char *what, int i, const TdBuffer *b)
{
  TdEngine *e = &td__engine;
  const TdSite *made = s->op->site, *wrote = b->writer;

  char at[300] = "since";

  if (wrote != NULL)
    snprintf (at, sizeof at, "at %.280s:%d", wrote->file, wrote->line);
  s->status = td__fail (TD_ERR_STATE, s->op->cls->name, made,
                        "%s %d was kept for backward at %s:%d and overwritten %s", what, i,
                        made != NULL ? made->file : "?", made != NULL ? made->line : 0, at);
  if (e->config.stale_retained == TD_STALE_WARN)
    s->status = TD_OK;
  return td__poison ();
}

static __attribute__ ((noinline, cold)) TdVar *
refuse_kept (const TdBackward *b, int i, bool output)
{
  Step *s = b->priv;
  const TdNode *n = output ? s->op->out[i] : s->op->in[i];

  if (n != NULL && n->retained != NULL)
    return stale (s, output ? "output" : "input", i, n->retained);
  s->status = td__fail (TD_ERR_STATE, b->cls->name, s->op->site,
                        output ? "backward asks for output %d, which is not there"
                               : "backward asks for input %d, which the class does not retain",
                        i);
  return td__poison ();
}

TdVar *
td_backward_input (TdBackward *b, int i)
{
  const Step *s;
  TdNode *n;

  if (TD_UNLIKELY (!has_input (b, i)))
    return refuse_var (b, i, false);
  s = b->priv;
  n = s->op->in[i];
  if (TD_UNLIKELY (n->retained == NULL || n->retained->version != s->op->in_versions[i]))
    return refuse_kept (b, i, false);
  return revive (n, s->op->site);
}

TdVar *
td_backward_output (TdBackward *b, int i)
{
  const Step *s;
  TdNode *n;

  if (TD_UNLIKELY (!has_output (b, i)))
    return refuse_var (b, i, true);
  s = b->priv;
  n = s->op->out[i];
  if (TD_UNLIKELY (n == NULL || n->retained == NULL
                   || n->retained->version != n->retained_version))
    return refuse_kept (b, i, true);
  return revive (n, s->op->site);
}

static inline const TdNode *
input_node (const TdBackward *b, int i)
{
  return ((const Step *)b->priv)->op->in[i];
}

static inline const TdNode *
output_node (const TdBackward *b, int i)
{
  return ((const Step *)b->priv)->op->out[i];
}

const TdShape *
td_backward_in_shape (const TdBackward *b, int i)
{
  return has_input (b, i) ? &input_node (b, i)->shape : refuse_shape (b, i, false);
}

TdDtype
td_backward_in_dtype (const TdBackward *b, int i)
{
  return has_input (b, i) ? (TdDtype)input_node (b, i)->dtype : refuse_dtype (b, i, false);
}

const TdShape *
td_backward_out_shape (const TdBackward *b, int i)
{
  return has_output (b, i) ? &output_node (b, i)->shape : refuse_shape (b, i, true);
}

TdDtype
td_backward_out_dtype (const TdBackward *b, int i)
{
  return has_output (b, i) ? (TdDtype)output_node (b, i)->dtype : refuse_dtype (b, i, true);
}
