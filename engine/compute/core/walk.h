/* One run of backward: what it has to visit, and in which order.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core.h"

/** A growing array of pointers. */
typedef struct
{
  void **items;
  size_t n, capacity;
} TdList;

enum
{
  WALK_HOOKED = 1 << 8 /* of Walk.flags: hooks were registered when it began */
};

/** One run of backward. */
typedef struct
{
  TdList heap;    /* operations that wait, newest at the root */
  TdList touched; /* nodes with a collected gradient, held by a reference */
  uint32_t mark;  /* on operations: has been queued; +1 with targets: leads to a target */
  unsigned flags;
  bool targets; /* td_grad_of: only what leads to the wanted variables */
  const TdSite *site;
  const TdHookTable *hooks; /* where flags has WALK_HOOKED: as they were when it began */
  TdLinkWalk *links;        /* hooked link calls on the way, or NULL */
  bool careful;        /* gradients that are there are not added to, as an error may come */
  const TdNode *mixed; /* a leaf whose gradient is times a loss scale, and this is not */
} Walk;

static inline bool
wanted (const Walk *w, const TdNode *n)
{
  if (!w->targets)
    return n->requires_grad;
  return n->mark == w->mark
         || (n->creator != NULL
             && (n->creator->mark == w->mark + 1 || n->creator->mark == w->mark));
}

void td__list_grow (TdList *l);
static inline void
list_add (TdList *l, void *item)
{
  if (TD_UNLIKELY (l->n == l->capacity))
    td__list_grow (l);
  l->items[l->n++] = item;
}

void td__walk_push_among (Walk *w, TdOp *op);
TdOp *td__walk_pop_among (Walk *w);
/** The newest operation first; along a chain only one waits. */
static inline void
td__walk_push (Walk *w, TdOp *op)
{
  if (w->heap.n == 0)
    list_add (&w->heap, op);
  else
    td__walk_push_among (w, op);
}
static inline TdOp *
td__walk_pop (Walk *w)
{
  return w->heap.n == 1 ? w->heap.items[--w->heap.n] : td__walk_pop_among (w);
}
/** td_grad_of: mark the operations on a path from a target to a root with mark + 1. */
void td__walk_mark_paths (Walk *w, TdVar *const *ys, int n_y, TdVar *const *xs, int n_x);
/** The same for a graph that was made since, of operations from first_id on. */
void td__walk_mark_new (Walk *w, TdVar *const *ys, int n_y, uint64_t first_id);

/** The walk's state behind TdBackward.priv: one operation's turn. */
typedef struct
{
  Walk *walk;
  TdOp *op;
  TdStatus status;
  uint32_t into;  /**< bit i: a kernel may accumulate into the gradient of input i */
  uint32_t needs; /**< bit i: input i needs a gradient; not cached for inputs above 31 */
} Step;

static inline bool
has_input (const TdBackward *b, int i)
{
  return TD_LIKELY (b != NULL && b->priv != NULL && (unsigned)i < (unsigned)b->n_in);
}

static inline bool
has_output (const TdBackward *b, int i)
{
  return TD_LIKELY (b != NULL && b->priv != NULL && (unsigned)i < (unsigned)b->n_out);
}

static inline bool
needs_gradient (const Step *s, int i)
{
  return TD_LIKELY (i < 32) ? s->needs >> i & 1 : wanted (s->walk, s->op->in[i]);
}

/* backward-step.c */
/** Report that backward asks for an input or output that is not there: NULL, or none of them.
 */
void td__backward_not_there (const TdBackward *b, int i, bool output);
/** Return the variable of a retained array: the one that exists if it still has that memory,
 * else a new one. */
TdVar *td__revive (TdNode *n, const TdSite *site);

/* backward-check.c */
enum
{
  TD_BACKWARD_GUARDS = 4 /**< places behind the gradients, which nobody asked for */
};
/** Look at what a class's backward returned, before anything of it is handed on: an error is
 * reported, gradients have the shape and dtype of their inputs, and the guards behind gx[n_in]
 * are still empty.  needs: as Step has it. */
TdStatus td__backward_check (const TdOp *op, TdStatus status, TdVar *const *gx, uint32_t needs);
/** What an operation added to a gradient that was there, backward gives as that gradient.
 * into: as Step has it. */
TdStatus td__backward_check_into (const TdOp *op, TdVar *const *gx, uint32_t into);
/** Fail for an operation of the program's own that has no backward. */
TdStatus td__backward_missing (const TdOp *op);
/** The gradient of input i is a dead handle.  Returns the status of the (first) error. */
TdStatus td__backward_dead (const TdOp *op, int i, const TdVar *g);
/** Config debug: a gradient that no operation made, such as a constant or one that was set, is
 * finite as well.  what: whose gradient it is. */
TdStatus td__debug_gradient (const TdVar *g, const char *op, const TdSite *site,
                             const char *what);
TdStatus td__backward_debug (const TdOp *op, TdVar *const *gx);

/** A gradient in an array of its own, in the same layout. (to-layout.c) */
TdVar *td__gradient_again (TdVar *g);
/** Fail for flags that there are not. (backward-check.c) */
TdStatus td__backward_check_flags (unsigned flags, const char *call, const TdSite *site);
