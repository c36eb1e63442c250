/* Backward: walk the graph from the newest operation to the oldest.
 *
 * Ids increase in the order of creation, so they are a topological order, and the heap of
 * operations that are due is keyed by id alone (Chainer's rank and insertion order in one).
 * Each operation runs once.  Gradients are accumulated at nodes, and in the end attached to the
 * variables of leaves.  Without double backprop gradients have no graph, and sums are made in
 * place if nothing else refers to their memory.
 *
 * *Source*: chainer/_backprop.py.
 * SPDX-License-Identifier: MIT */
#include "walk.h"
#include "host-memory.h"
#include "walk-watch.h"

#include <stdlib.h>
#include <string.h>

static void
queue (Walk *w, TdOp *op)
{
  if (op == NULL || op->mark == w->mark || (w->targets && op->mark != w->mark + 1))
    return;
  op->mark = w->mark;
  op->refs++; /* unchain during backward must not free it */
  td__walk_push (w, op);
}

/* Store the first gradient that reaches node n. */
static void
start_collecting (Walk *w, TdNode *n, TdVar *g)
{
  n->acc = td__var_ref (g, TD_HOLD_ENGINE);
  list_add (&w->touched, td__node_ref (n));
}

/* A leaf's gradient of an earlier backward is gone on with. */
static inline void
go_on_collecting (Walk *w, TdNode *n)
{
  if (n->acc != NULL || n->creator != NULL || w->targets || n->var == NULL
      || n->var->grad == NULL)
    return;
  if (TD_UNLIKELY (w->careful) && n->var->grad->scaled_by != TD_SCALED_BY_NONE)
    {
      w->mixed = n;
      return;
    }
  start_collecting (w, n, n->var->grad);
}

/* Bring a gradient into the layout of the array that it is the gradient of. */
static inline TdVar *
laid_out_for (const TdNode *n, TdVar *g)
{
  return TD_LIKELY (g->node->layout == n->layout)
             ? g
             : td__to_layout (g, (TdLayout)n->layout, NULL);
}

/* Whether the engine may accumulate into gradient g in place: not if it has a graph, or if
 * anything else refers to it or its memory.  `own` counts the references of this walk. */
static bool
in_place_allowed (const Walk *w, const TdVar *g, const TdNode *n)
{
  uint32_t own = g->holds[TD_HOLD_ENGINE] == 1 ? 1 : 0;

  if ((w->flags & TD_DOUBLE_BACKPROP) || g->node->creator != NULL || own == 0)
    return false;
  if (n->var != NULL && n->var->grad == g)
    {
      if (TD_UNLIKELY (w->careful))
        return false;
      own++; /* the leaf's own gradient from an earlier backward */
    }
  own += g->holds[TD_HOLD_SCOPE];
  return g->refs == own && g->buffer->refs == 1 && g->holds[TD_HOLD_SCOPE] == 0;
}

static TdStatus
add_in_place (TdVar *sum, TdVar *g)
{
  TdEngine *e = &td__engine;
  TdVar *in[] = { sum, g };
  TdPhase phase = e->phase;
  TdStatus status;

  e->phase = TD_PHASE_ACCUMULATE;
  status = td__apply_at (&td__add_into_class, NULL, in, 2, NULL, 0, NULL);
  e->phase = phase;
  return status;
}

/* A kernel that adds to a sum in half precision rounds once, an addition of its own twice: what
 * comes of it must not depend on whether the sum so far is kept as another variable's gradient
 * (TD_RETAIN_GRADS).  The walk goes on with a copy, then. */
static void
part_from_kept (const Walk *w, TdNode *n)
{
  TdVar *g = n->acc, *copy;
  uint32_t kept;

  if (TD_LIKELY (!(w->flags & TD_RETAIN_GRADS)) || g == NULL
      || (g->node->dtype != TD_F16 && g->node->dtype != TD_BF16))
    return;
  kept = g->holds[TD_HOLD_GRADIENT] - (n->var != NULL && n->var->grad == g);
  if (kept == 0 || g->refs != kept + 1 || g->holds[TD_HOLD_ENGINE] != 1 || g->buffer->refs != 1)
    return;
  copy = td__gradient_again (g);
  if (td__dead (copy))
    return; /* an error, which the step finds */
  td__var_ref (copy, TD_HOLD_ENGINE);
  td__var_unref (g, TD_HOLD_ENGINE);
  td__scope_hand_out (copy);
  n->acc = copy;
}

/* Accumulate g into the gradient of node n. */
static TdStatus
collect (Walk *w, TdNode *n, TdVar *g)
{
  TdEngine *e = &td__engine;
  TdPhase phase = e->phase;
  TdVar *sum;

  if (TD_UNLIKELY (g->node->layout != n->layout))
    {
      g = laid_out_for (n, g);
      if (td__dead (g))
        return e->error.status;
    }
  go_on_collecting (w, n);
  if (n->acc == NULL)
    {
      start_collecting (w, n, g);
      return TD_OK;
    }
  if (in_place_allowed (w, n->acc, n))
    return add_in_place (n->acc, g);
  e->phase = TD_PHASE_ACCUMULATE;
  sum = td_add (n->acc, g);
  e->phase = phase;
  if (td__dead (sum))
    return e->error.status;
  td__var_ref (sum, TD_HOLD_ENGINE);
  td__var_unref (n->acc, TD_HOLD_ENGINE);
  td__scope_hand_out (sum); /* only the walk refers to it: the next one is added in place */
  n->acc = sum;
  return TD_OK;
}

bool
td__backward_has_targets (const TdBackward *b)
{
  return ((const Step *)b->priv)->walk->targets;
}

TdLayout
td__backward_in_layout (const TdBackward *b, int i)
{
  return (TdLayout)((const Step *)b->priv)->op->in[i]->layout;
}

void
td_backward_into (TdBackward *b, int i)
{
  Step *s;
  TdNode *n;

  if (TD_UNLIKELY (!has_input (b, i)))
    {
      td__backward_not_there (b, i, false);
      return;
    }
  s = b->priv;
  n = s->op->in[i];
  td__engine.into = NULL;
  if (TD_UNLIKELY (td__engine.tracer != NULL))
    td__engine.tracer->into (td__engine.tracer, n);
  if (s->walk->flags & (TD_DOUBLE_BACKPROP | WALK_HOOKED))
    return; /* hooks see the contribution of this operation alone */
  go_on_collecting (s->walk, n);
  part_from_kept (s->walk, n);
  if (n->acc == NULL || i >= 32 || !in_place_allowed (s->walk, n->acc, n))
    return;
  n->acc->flags &= (uint8_t)~TD_VAR_ADDED_TO; /* of a step that failed */
  td__engine.into = n->acc;
  s->into |= 1u << i;
}

TdOp *
td__backward_op (const TdBackward *b)
{
  return ((const Step *)b->priv)->op;
}

bool
td__backward_is_double (const TdBackward *b)
{
  return (((const Step *)b->priv)->walk->flags & TD_DOUBLE_BACKPROP) != 0;
}

bool
td__backward_wants_results (const TdBackward *b)
{
  const Step *s = b->priv;

  if (s->walk->flags & TD_RETAIN_GRADS)
    return true;
  for (int i = 0; s->walk->targets && i < s->op->n_out; i++)
    if (s->op->out[i] != NULL && s->op->out[i]->mark == s->walk->mark)
      return true;
  return false;
}

TdVar *
td__backward_target (TdBackward *b, int i)
{
  Step *s = b->priv;
  TdNode *n = s->op->in[i];

  if (s->walk->flags & WALK_HOOKED)
    return NULL;
  go_on_collecting (s->walk, n);
  part_from_kept (s->walk, n);
  if (n->acc == NULL || !in_place_allowed (s->walk, n->acc, n))
    return NULL;
  return n->acc;
}

TdVar *
td__backward_collected (TdBackward *b, int i)
{
  Step *s = b->priv;
  const TdNode *mixed = s->walk->mixed;

  go_on_collecting (s->walk, s->op->in[i]);
  s->walk->mixed = mixed; /* nothing is added to it yet */
  return s->op->in[i]->acc;
}

bool
td__backward_adds (const TdBackward *b, int i)
{
  const Step *s = b->priv;
  const TdNode *n = s->op->in[i];

  return n->acc != NULL
         || (n->creator == NULL && !s->walk->targets && n->var != NULL && n->var->grad != NULL);
}

TdStatus
td__backward_propagate (TdBackward *b, int i, TdVar *g, bool accumulated)
{
  Step *s = b->priv;
  TdNode *n = s->op->in[i];
  TdStatus status = accumulated ? TD_OK : collect (s->walk, n, g);

  if (status == TD_OK)
    queue (s->walk, n->creator);
  return status;
}

TdStatus
td__backward_splice (TdBackward *b, TdVar *const *ys, TdVar *const *gys, int n_y,
                     uint64_t first_id)
{
  Step *s = b->priv;
  TdStatus status = TD_OK;

  if (s->walk->targets)
    td__walk_mark_new (s->walk, ys, n_y, first_id);
  for (int i = 0; i < n_y && status == TD_OK; i++)
    if (gys[i] != NULL)
      status = collect (s->walk, ys[i]->node, gys[i]);
  for (int i = 0; i < n_y && status == TD_OK; i++)
    if (gys[i] != NULL)
      queue (s->walk, ys[i]->node->creator);
  return status;
}

/* Of a variable that td_grad_of was asked for, what arrived there is wanted at the end, too;
 * unless op put operations in its own place, to which it is still to come. */
static void
keep_targets (const Walk *w, TdOp *op, TdVar *const *gy)
{
  for (int i = 0; i < op->n_out; i++)
    if (gy[i] != NULL && op->out[i] != NULL && op->out[i]->mark == w->mark
        && op->out[i]->acc == NULL)
      op->out[i]->acc = td__var_ref (gy[i], TD_HOLD_ENGINE);
}

/* Take the gradients that arrived at op's outputs.  False if there were none. */
static bool
take_gradients (TdOp *op, TdVar **gy)
{
  bool any = false;

  for (int i = 0; i < op->n_out; i++)
    {
      TdNode *n = op->out[i];

      gy[i] = n != NULL ? n->acc : NULL;
      if (gy[i] == NULL)
        continue;
      n->acc = NULL; /* its reference is the scope's now */
      td__scope_take (gy[i]);
      any = true;
    }
  return any;
}

void
td__scope_unwind (size_t start)
{
  TdEngine *e = &td__engine;

  while (e->n_scope_vars > start)
    {
      TdVar *v = e->scope_vars[--e->n_scope_vars];

      if (v != NULL)
        {
          v->scope_index = -1;
          td__var_unref (v, TD_HOLD_SCOPE);
        }
    }
}

static void
retain_gradients (TdOp *op, TdVar *const *gy)
{
  for (int i = 0; i < op->n_out; i++)
    if (gy[i] != NULL && op->out[i] != NULL && op->out[i]->var != NULL)
      {
        td__put_grad (op->out[i]->var, gy[i]);
        gy[i]->scaled_by = td__engine.loss_scaled_by;
      }
}

enum
{
  INLINE_OPERANDS = 8,
  GUARDS = TD_BACKWARD_GUARDS
};

/* A graph is larger than the L1 cache: prefetch what a later step reads first. */
static inline void
prefetch_op (const TdOp *op)
{
  for (int line = 0; op != NULL && line < 3; line++) /* up to in_inline */
    __builtin_prefetch ((const char *)op + 64 * line, 1);
}

/* Retained arrays for hooks: NULL if an array was not kept, or written since. */
static TdVar *
hook_input (const TdOp *op, int i)
{
  TdNode *n = op->in[i];

  if (!(i < 32 && (op->retained_in >> i & 1)) || n->retained == NULL
      || n->retained->version != op->in_versions[i])
    return NULL;
  return td__revive (n, op->site);
}

static __attribute__ ((noinline, cold)) void
notify_hooks (const Step *s, TdMoment moment, TdVar *const *gy, TdVar *const *gx)
{
  const TdOp *op = s->op;
  char label[64];
  TdFunctionCall call
      = td__function_call (op->cls, op->attrs, op->site, op->path, label, sizeof label);
  TdVar **in = td__xcalloc ((size_t)op->n_in * 2 + 1, sizeof *in);
  TdVar **shown = in + op->n_in;

  for (int i = 0; i < op->n_in; i++)
    {
      in[i] = hook_input (op, i);
      if (gx != NULL && gx[i] != NULL && !td__dead (gx[i]))
        shown[i] = gx[i];
    }
  call.id = op->id;
  call.status = s->status;
  call.n_in = op->n_in;
  call.n_out = op->n_out;
  call.in = in;
  call.gy = gy;
  call.gx = gx != NULL ? shown : NULL;
  s->walk->hooks->function (moment, &call);
  if (gx != NULL && s->walk->links != NULL)
    s->walk->hooks->backward_made (s->walk->links, op, shown);
  free (in);
}

/* Whether td__backward_check, which knows what to say, has nothing to look at: no error, the
 * guards are empty, and gradients have the shape and dtype of their inputs. */
static inline bool
is_as_expected (const Step *s, TdStatus status, TdVar *const *gx)
{
  const TdOp *op = s->op;
  uintptr_t extra = 0;
  bool fits = status == TD_OK && op->n_in <= 32;

  for (int i = 0; i < GUARDS; i++)
    extra |= (uintptr_t)gx[op->n_in + i];
  for (uint32_t left = s->needs; left != 0 && fits; left &= left - 1)
    {
      const int i = __builtin_ctz (left);
      const TdNode *n = op->in[i];

      fits = gx[i] == NULL
             || (gx[i]->state == TD_VAR_LIVE && gx[i]->node->dtype == n->dtype
                 && td__same_shape (&gx[i]->node->shape, &n->shape));
    }
  return fits && extra == 0;
}

static bool
wanted_in (const void *walk, const TdNode *n)
{
  return wanted (walk, n);
}

/* Run one operation's backward and accumulate its results. */
static TdStatus
step (Walk *w, TdOp *op)
{
  TdEngine *e = &td__engine;
  TdVar *gy_room[INLINE_OPERANDS], *gx_room[INLINE_OPERANDS + GUARDS];
  TdVar **gy
      = op->n_out > INLINE_OPERANDS ? td__xcalloc ((size_t)op->n_out, sizeof *gy) : gy_room;
  TdVar **gx = op->n_in > INLINE_OPERANDS ? td__xcalloc ((size_t)op->n_in + GUARDS, sizeof *gx)
                                          : gx_room;
  size_t start = e->n_scope_vars;
  Step s = { w, op, TD_OK, 0, 0 };
  TdBackward b = { op->cls, op->attrs, op->n_in, op->n_out, gy, gx, &s };
  bool needed = (op->cls->flags & TD_OP_CAPTURES) != 0;

  for (int i = 0; i < op->n_in; i++)
    {
      gx[i] = NULL;
      if (!wanted (w, op->in[i]) || (i < 32 && (op->cls->no_grad_in >> i & 1)))
        continue;
      needed = true;
      if (i < 32)
        s.needs |= 1u << i;
      prefetch_op (op->in[i]->creator); /* most likely the next step */
    }
  for (int i = 0; i < GUARDS; i++) /* filled by a backward that counts wrong */
    gx[op->n_in + i] = NULL;
  if (TD_UNLIKELY (w->flags & WALK_HOOKED) && w->links != NULL && needed)
    w->hooks->backward_reach (w->links, op, w->touched.items, w->touched.n);
  if (take_gradients (op, gy) && needed)
    {
      e->site = op->site;
      e->path = op->path;
      e->twin = op;
      e->twin_id = op->id;
      e->order = 0;
      s.status = TD_OK;
      bool traced = TD_UNLIKELY (e->traces != NULL)
                    && e->trace_table->step_begin (op, gy, wanted_in, w);
      if (TD_UNLIKELY (w->flags & WALK_HOOKED))
        notify_hooks (&s, TD_MOMENT_BACKWARD_PRE, gy, NULL);
      TdStatus status = TD_LIKELY (op->cls->backward != NULL) ? op->cls->backward (&b)
                                                              : td__backward_missing (op);
      e->into = NULL;
      if (w->targets)
        keep_targets (w, op, gy);
      if (TD_UNLIKELY (!is_as_expected (&s, status, gx)) && s.status == TD_OK)
        s.status = td__backward_check (op, status, gx, s.needs);
      if (s.into != 0 && s.status == TD_OK)
        s.status = td__backward_check_into (op, gx, s.into);
      if (TD_UNLIKELY (e->config.debug) && s.status == TD_OK)
        s.status = td__backward_debug (op, gx);
      if (TD_UNLIKELY (w->flags & WALK_HOOKED))
        notify_hooks (&s, TD_MOMENT_BACKWARD_POST, gy, gx);
      for (int i = 0; i < op->n_in && s.status == TD_OK; i++)
        {
          if (gx[i] == NULL || !needs_gradient (&s, i))
            continue;
          bool into = i < 32 && (s.into >> i & 1) && gx[i] == op->in[i]->acc;
          if (TD_UNLIKELY (traced) && !into && !td__dead (gx[i]))
            gx[i] = laid_out_for (op->in[i], gx[i]);
          if (TD_UNLIKELY (traced) && !td__dead (gx[i]))
            e->trace_table->gradient (op, i, gx[i], into);
          if (td__dead (gx[i]))
            s.status = td__backward_dead (op, i, gx[i]);
          else if (!into)
            s.status = collect (w, op->in[i], gx[i]); /* else a kernel added to it already */
          if (TD_UNLIKELY (traced))
            e->trace_table->collected (op, i);
          if (s.status == TD_OK)
            queue (w, op->in[i]->creator);
        }
      if (TD_UNLIKELY (traced))
        e->trace_table->step_end (s.status);
      if (w->flags & TD_RETAIN_GRADS)
        retain_gradients (op, gy);
    }
  td__scope_unwind (start);
  if (gy != gy_room)
    free (gy);
  if (gx != gx_room)
    free (gx);
  return s.status;
}

/* The seed of one root: the given gradient, its own, or 1 for a single element. */
static TdStatus
seed (Walk *w, TdVar *y, TdVar *given)
{
  TdEngine *e = &td__engine;
  TdVar *g = given;
  char text[160];

  if (g == NULL && !w->targets)
    g = y->grad;
  if (g == NULL)
    {
      TdDevice *d = y->node->device;
      TdTensor t;
      TdStatus status;

      if (td_shape_size (&y->node->shape) != 1)
        return td__fail (
            TD_ERR_ARG, "td_backward", w->site,
            "a root of one element expected, or a gradient set with td_set_grad: got %s",
            td_shape_text (&y->node->shape, text, sizeof text));
      g = td__var_leaf ((TdDtype)y->node->dtype, &y->node->shape, d, TD_MEM_GRADIENT, w->site);
      if (g == NULL)
        return e->error.status;
      if (TD_UNLIKELY (e->config.keep_graph)) /* td_save_onnx: no operation made it */
        g->node->category = TD_MEM_INPUT;
      td__scope_add (g);
      t = (TdTensor){ g->buffer->data, &g->node->shape, 1, (TdDtype)g->node->dtype };
      status = d->computes ? d->ops->fill (d, &t, 1.0) : TD_OK;
      if (status != TD_OK)
        return td__fail (status, "td_backward", w->site, "no gradient seed for dtype %s",
                         td_dtype_name (t.dtype));
    }
  else if (!td_shape_equal (&g->node->shape, &y->node->shape)
           || g->node->dtype != y->node->dtype)
    return td__fail (TD_ERR_SHAPE, "td_backward", w->site,
                     "the gradient of a root has its shape and dtype: %s expected",
                     td_shape_text (&y->node->shape, text, sizeof text));
  g = laid_out_for (y->node, g);
  if (td__dead (g))
    return e->error.status;
  if (TD_UNLIKELY (e->config.debug)
      && td__debug_gradient (g, "td_backward", w->site, "the gradient of a root") != TD_OK)
    return e->error.status;
  if (y->node->acc == NULL)
    start_collecting (w, y->node, g);
  else
    return collect (w, y->node, g);
  if (!w->targets && y->node->creator != NULL)
    td__put_grad (y, NULL); /* as Chainer: taken off the root, kept with retain_grads */
  return TD_OK;
}

/* Of gradients that were there, and went on. */
static void
mark_scaled (const TdNode *n)
{
  const TdVar *before = n->var->grad;
  const uint16_t by = td__engine.loss_scaled_by;

  n->acc->scaled_by = before != NULL ? td__scaled_by_both (before->scaled_by, by) : by;
  td__engine.has_scaled = true;
}

/* Attach the gradients to the variables of the leaves. */
static void
settle_leaves (Walk *w)
{
  TdEngine *e = &td__engine;

  for (size_t i = 0; i < w->touched.n; i++)
    {
      TdNode *n = w->touched.items[i];

      if (n->acc == NULL || n->creator != NULL || n->var == NULL)
        continue;
      if (TD_UNLIKELY (e->loss_scaled_by != TD_SCALED_BY_NONE))
        mark_scaled (n);
      if (n->var->grad == n->acc)
        continue;
      td__put_grad (n->var, n->acc);
      if (e->observer != NULL)
        e->observer->gradient (e->observer, n, n->acc->node);
    }
}

/* The sum would be neither: an update that divides it is wrong in one part, one that does not
 * in the other. */
static TdStatus
refuse_mixed (const Walk *w)
{
  return td__fail (TD_ERR_STATE, "td_backward", w->site,
                   "the gradient of %s is times a loss scale: add to it by td_opt_backward, or "
                   "clear it before (td_cleargrads)",
                   w->mixed->var != NULL && w->mixed->var->name != NULL ? w->mixed->var->name
                                                                        : "a variable");
}

static void
clean_up (Walk *w)
{
  while (w->heap.n > 0)
    td__op_unref (td__walk_pop (w));
  for (size_t i = 0; i < w->touched.n; i++)
    {
      TdNode *n = w->touched.items[i];

      if (n->acc != NULL)
        {
          TdVar *g = n->acc;

          n->acc = NULL;
          td__var_unref (g, TD_HOLD_ENGINE);
        }
      td__node_unref (n);
    }
  free (w->heap.items);
  free (w->touched.items);
}

/* What is computed from a gradient that is times a loss scale has no gradient that an update
 * would divide rightly; unless that gradient is one of the scaled backward that runs, whose
 * operations go backward in runs of their own (td_forget, verification, the program's). */
TdStatus
td__backward_check_scaled (const TdVar *y, const TdVar *gy, const char *call,
                           const TdSite *site)
{
  const bool root = y->scaled_by != TD_SCALED_BY_NONE;

  if (!root
      && (gy == NULL || gy->scaled_by == TD_SCALED_BY_NONE
          || gy->scaled_by == td__engine.loss_scaled_by))
    return TD_OK;
  return td__fail (
      TD_ERR_STATE, call, site,
      "%s%s%s is computed from a gradient that is times a loss scale: do that in a "
      "hook of the optimizer, which sees it divided",
      root ? "the root" : "the gradient of the root", y->name != NULL ? " " : "",
      y->name != NULL ? y->name : "");
}

static TdStatus
check_roots (TdVar *const *vars, int n, const char *call, const TdSite *site)
{
  if (n < 0)
    return td__fail (TD_ERR_ARG, call, site, "a list of 0 or more expected, got %d", n);
  for (int i = 0; i < n; i++)
    if (!td__var_usable (vars != NULL ? vars[i] : NULL, call, site))
      return td__engine.has_error ? td__engine.error.status : TD_ERR_STATE;
  return TD_OK;
}

TdStatus
td__backward_run (TdVar *const *ys, int n_y, TdVar *const *gys, TdVar *const *xs, int n_x,
                  TdVar **gxs, unsigned flags, const TdSite *site)
{
  TdEngine *e = &td__engine;
  const TdSite *saved_site = e->site;
  const TdPath *saved_path = e->path;
  const TdOp *saved_twin = e->twin;
  uint64_t saved_twin_id = e->twin_id;
  uint32_t saved_order = e->order;
  TdPhase saved_phase = e->phase;
  int saved_backprop = e->config.enable_backprop;
  Walk w = { .flags = flags, .targets = xs != NULL, .site = site };
  const struct TdWalkWatch *watch = NULL;
  const char *call = xs != NULL ? "td_grad_of" : "td_backward";
  TdStatus status = td__check_thread (call);

  if (status != TD_OK || (status = td__backward_check_flags (flags, call, site)) != TD_OK
      || (status = check_roots (ys, n_y, call, site)) != TD_OK
      || (status = check_roots (xs, n_x, call, site)) != TD_OK)
    return status;
  for (int i = 0; TD_UNLIKELY (e->has_scaled) && i < n_y && status == TD_OK; i++)
    status = td__backward_check_scaled (ys[i],
                                        gys != NULL && gys[i] != NULL ? gys[i]
                                        : xs == NULL                  ? ys[i]->grad
                                                                      : NULL,
                                        call, site);
  if (status != TD_OK)
    return status;
  if (TD_UNLIKELY (e->tracer != NULL))
    e->tracer->refuse (e->tracer, call, site);
  if (e->has_error) /* training must not go on with poisoned variables */
    return e->error.status;
  w.careful = e->has_scaled && e->loss_scaled_by == TD_SCALED_BY_NONE;
  e->mark += 4;
  w.mark = e->mark;
  if (xs != NULL)
    td__walk_mark_paths (&w, ys, n_y, xs, n_x);
  e->phase = TD_PHASE_BACKWARD;
  e->config.enable_backprop = (flags & TD_DOUBLE_BACKPROP) != 0;
  if (e->observer != NULL)
    e->observer->backward (e->observer, true, site);
  if (TD_UNLIKELY (e->hooks != NULL))
    {
      w.flags |= WALK_HOOKED;
      w.hooks = e->hooks;
      w.links = w.hooks->backward_begin ();
    }
  if (TD_UNLIKELY (e->walk_watch != NULL) && xs == NULL && !(flags & TD_DOUBLE_BACKPROP))
    {
      watch = e->walk_watch;
      watch->begins ();
    }
  for (int i = 0; i < n_y && status == TD_OK; i++)
    status = seed (&w, ys[i], gys != NULL ? gys[i] : NULL);
  for (int i = 0; i < n_y && status == TD_OK; i++)
    queue (&w, ys[i]->node->creator);
  while (w.heap.n > 0 && status == TD_OK && w.mixed == NULL)
    {
      TdOp *op = td__walk_pop (&w);

      status = step (&w, op);
      if (TD_UNLIKELY (watch != NULL) && status == TD_OK)
        watch->steps (op);
      td__op_unref (op);
    }
  if (TD_UNLIKELY (w.mixed != NULL) && status == TD_OK)
    status = refuse_mixed (&w);
  if (TD_UNLIKELY (w.links != NULL))
    w.hooks->backward_end (w.links, status);
  if (status == TD_OK && xs == NULL)
    settle_leaves (&w);
  for (int i = 0; xs != NULL && i < n_x; i++)
    gxs[i]
        = status == TD_OK && xs[i]->node->acc != NULL ? td__scope_add (xs[i]->node->acc) : NULL;
  clean_up (&w);
  if (TD_UNLIKELY (watch != NULL))
    watch->ends (status);
  if (TD_UNLIKELY (e->traces != NULL))
    e->trace_table->backward_end (status);
  if (e->observer != NULL)
    e->observer->backward (e->observer, false, site);
  e->config.enable_backprop = saved_backprop;
  e->phase = saved_phase;
  e->site = saved_site;
  e->path = saved_path;
  e->twin = saved_twin;
  e->twin_id = saved_twin_id;
  e->order = saved_order;
  return status;
}

TdStatus
td_backward_at (TdVar *y, unsigned flags, const TdSite *site)
{
  return td__backward_run (&y, 1, NULL, NULL, 0, NULL, flags,
                           site != NULL ? site : td__engine.site);
}

TdStatus (td_backward) (TdVar *y, unsigned flags)
{
  return td_backward_at (y, flags, NULL);
}

/* A root given twice would be counted twice. */
static TdStatus
check_distinct (TdVar *const *ys, int n, const char *call)
{
  for (int i = 1; ys != NULL && i < n; i++)
    for (int k = 0; k < i; k++)
      if (ys[i] == ys[k] && ys[i] != NULL)
        return td__fail (TD_ERR_ARG, call, td__engine.site,
                         "each root once expected, roots %d and %d are the same", k, i);
  return TD_OK;
}

TdStatus
td_backward_all (TdVar *const *ys, int n_y, TdVar *const *gys, unsigned flags)
{
  TdStatus status;

  if (td__stranger ("td_backward_all"))
    return TD_ERR_STATE;
  status = check_distinct (ys, n_y, "td_backward_all");
  if (status != TD_OK)
    return status;
  return td__backward_run (ys, n_y, gys, NULL, 0, NULL, flags, td__engine.site);
}

TdStatus
td_grad_of (TdVar *const *ys, int n_y, TdVar *const *xs, int n_x, TdVar *const *gys,
            unsigned flags, TdVar **gxs)
{
  if (gxs == NULL && n_x > 0)
    return td__fail (TD_ERR_ARG, "td_grad_of", td__engine.site,
                     "a place for %d gradients expected, got NULL", n_x);
  return td__backward_run (ys, n_y, gys, xs, n_x, gxs, flags, td__engine.site);
}
