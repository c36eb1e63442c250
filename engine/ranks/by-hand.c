/* A mean that the program makes itself is seen by how many numbers have been summed, or given
 * to all, between backward and an update: as many as the gradients have.  A loss for the log is
 * fewer, and the sum of an evaluation, or of weights, has a backward between it and the update.
 * Where they are fewer than the gradients, those gradients are by a mean that are a multiple of
 * what was summed, or of what all ranks gave: of a few elements of each that is remembered.
 *
 * What a rank brings is summed up before the first such call, of optimizers whose last update
 * was by a mean.
 *
 * What td_comm_allreduce_grad has averaged is known, and told by it; an update that follows it,
 * with no backward between, is by that.
 *
 * SPDX-License-Identifier: MIT */
#include "by-hand.h"
#include "host-memory.h"
#include "sums.h"

#include "compute/core/walk-watch.h"

#include <math.h>
#include <stdlib.h>

enum
{
  SAMPLES = 6,
  MOST_BROUGHT = 4096 /* calls between a backward and an update */
};

/* A parameter whose gradient td_comm_allreduce_grad has averaged, and that gradient. */
typedef struct
{
  const TdParam *param;
  uint64_t buffer;
  uint32_t version;
} Averaged;

/* An array that was summed over the ranks, or given to all of them. */
typedef struct
{
  TdShape shape;
  int64_t at[SAMPLES];
  double sample[SAMPLES]; /* of the sum */
} Brought;

typedef struct ByHand
{
  struct ByHand *next; /* of all */
  uint64_t generation; /* of the links when the list was made */
  TdCommon all, part;  /* part: of this update, borrowed keys */
  TdSums sums;
  TdRankSum *own; /* this rank's gradients before the mean, by `all`; NULL: not known */
  bool now;       /* this update is by a mean, of `part` */
  bool by_grad;   /* which td_comm_allreduce_grad has made */
} ByHand;

static ByHand *watched;  /* those of optimizers that have one */
static int64_t n_summed; /* numbers, since the last backward began */
static int n_ranks;      /* that the last of them are of */
static Brought *brought; /* since the last backward began */
static int n_brought, room_brought;
static Averaged *averaged; /* since the last backward began */
static int n_averaged, room_averaged;

void
td__by_hand_forget (void)
{
  n_summed = 0;
  n_brought = 0;
  n_averaged = 0;
}

static void
nothing_at_step (const TdOp *op)
{
  (void)op;
}

static void
nothing_at_end (TdStatus status)
{
  (void)status;
}

static const TdWalkWatch walk_watch = { td__by_hand_forget, nothing_at_step, nothing_at_end };

static ByHand *
by_hand_of (TdOpt *opt)
{
  ByHand *h = opt->watched;

  if (h == NULL)
    {
      opt->watched = h = td__xcalloc (1, sizeof *h);
      h->next = watched;
      watched = h;
    }
  if (h->generation != td__links_generation)
    {
      free (h->own);
      h->own = NULL;
      td__common_clear (&h->all);
      h->all = td__common_of (opt->target, true);
      h->generation = td__links_generation;
    }
  return h;
}

static const TdVar *
gradient_of (const TdCommonArray *array)
{
  const TdParam *p = array->param;

  return p->kind != TD_PARAM_PERSISTENT && p->var != NULL ? p->var->grad : NULL;
}

static int64_t
count_gradients (const TdCommon *all)
{
  int64_t n = 0;

  for (int i = 0; i < all->n; i++)
    {
      const TdVar *g = gradient_of (&all->of[i]);

      n += g != NULL ? td__size (&g->node->shape) : 0;
    }
  return n;
}

/* --- which gradients are by a mean --- */

/* Of an array of the host; false: it cannot be looked at. */
static bool
read_number (const TdVar *v, int64_t at, double *number)
{
  const TdNode *node = v->node;

  if (node->device->number != 0 || node->layout != TD_ROW_MAJOR
      || (node->dtype != TD_F32 && node->dtype != TD_F64))
    return false;
  *number = node->dtype == TD_F64 ? ((const double *)v->buffer->data)[at]
                                  : (double)((const float *)v->buffer->data)[at];
  return true;
}

/* Of one number alone everything is a multiple: only the sum itself, or its mean, is one. */
static bool
is_certain (const Brought *b, double factor)
{
  return b->at[SAMPLES - 1] > 0 || factor == 0 || fabs (factor - 1) < 1e-5
         || fabs (factor * n_ranks - 1) < 1e-5;
}

/* NaN is a multiple of NaN. */
static bool
is_multiple (const TdVar *g, const Brought *b)
{
  double number, factor = 0;
  bool any = false;

  if (!td_shape_equal (&g->node->shape, &b->shape))
    return false;
  for (int i = 0; i < SAMPLES; i++)
    {
      if (!read_number (g, b->at[i], &number))
        return false;
      if (!isfinite (number) || !isfinite (b->sample[i]))
        {
          if (isfinite (number) != isfinite (b->sample[i]))
            return false;
          any = true;
          continue;
        }
      if ((number == 0) != (b->sample[i] == 0))
        return false;
      if (number == 0)
        continue;
      if (factor != 0 && fabs (number / b->sample[i] - factor) > 1e-4 * fabs (factor))
        return false;
      factor = number / b->sample[i];
      any = true;
    }
  return any && is_certain (b, factor);
}

static bool
was_brought (const TdVar *g)
{
  for (int i = 0; i < n_brought; i++)
    if (is_multiple (g, &brought[i]))
      return true;
  return false;
}

/* All of them where as much was summed as there is; else those that are a multiple. */
static void
choose_part (ByHand *h, bool all)
{
  h->part.n = 0;
  h->part.of = td__xrealloc (h->part.of, ((size_t)h->all.n + 1) * sizeof *h->part.of);
  for (int i = 0; i < h->all.n; i++)
    {
      const TdVar *g = gradient_of (&h->all.of[i]);

      if (all || (g != NULL && was_brought (g)))
        h->part.of[h->part.n++] = h->all.of[i];
    }
}

/* --- what a rank brings --- */

static void
take_own (ByHand *h)
{
  free (h->own);
  h->own = td__xcalloc ((size_t)h->all.n + 1, sizeof *h->own);
  for (int i = 0; i < h->all.n; i++)
    {
      const TdVar *g = gradient_of (&h->all.of[i]);

      if (g != NULL && g->node->device->computes
          && td__sum_of_own (g, &h->own[i], td__engine.site) != TD_OK)
        h->own[i] = (TdRankSum){ .size = 0 };
    }
}

static void
tell_own (ByHand *h)
{
  for (int i = 0; i < h->all.n && h->own != NULL; i++)
    for (int k = 0; k < h->part.n; k++)
      if (h->own[i].size > 0 && h->part.of[k].param == h->all.of[i].param)
        {
          h->own[i].path = h->all.of[i].key;
          td__tell_sum (&h->own[i]);
        }
  free (h->own);
  h->own = NULL;
}

/* --- what td_comm_allreduce_grad has averaged --- */

static const Averaged *
find_averaged (const TdParam *param)
{
  for (int i = 0; i < n_averaged; i++)
    if (averaged[i].param == param)
      return &averaged[i];
  return NULL;
}

static void
choose_averaged (ByHand *h)
{
  h->part.n = 0;
  h->part.of = td__xrealloc (h->part.of, ((size_t)h->all.n + 1) * sizeof *h->part.of);
  for (int i = 0; i < h->all.n && n_averaged > 0; i++)
    if (find_averaged (h->all.of[i].param) != NULL)
      h->part.of[h->part.n++] = h->all.of[i];
}

/* What was written to, or set, since is told of once more. */
static TdStatus
tell_changed (const ByHand *h, const TdSite *site)
{
  TdCommon changed = { td__xcalloc ((size_t)h->part.n + 1, sizeof *changed.of), 0 };
  TdStatus status;

  for (int i = 0; i < h->part.n; i++)
    {
      const TdVar *g = gradient_of (&h->part.of[i]);
      const Averaged *a = find_averaged (h->part.of[i].param);

      if (g != NULL && (g->buffer->id != a->buffer || g->buffer->version != a->version))
        changed.of[changed.n++] = h->part.of[i];
    }
  status = td__tell_means (&changed, n_ranks, site);
  free (changed.of);
  return status;
}

/* --- an update --- */

static TdStatus
before_averaged (TdOpt *opt, ByHand *h, const TdSite *site)
{
  h->now = td__rank_sums_wanted ();
  if (!h->now)
    return TD_OK;
  td__sums_look (&h->part, opt, &h->sums);
  return tell_changed (h, site);
}

static TdStatus
before (TdOpt *opt, const TdSite *site)
{
  const int64_t summed = n_summed;
  TdStatus status = TD_OK;
  bool again;
  ByHand *h;
  int64_t n;

  n_summed = 0;
  if (summed == 0 && n_averaged == 0 && opt->watched == NULL)
    return TD_OK;
  h = by_hand_of (opt);
  choose_averaged (h);
  h->by_grad = h->part.n > 0;
  if (h->by_grad)
    return before_averaged (opt, h, site);
  n = summed > 0 ? count_gradients (&h->all) : 0;
  choose_part (h, n > 0 && summed >= n);
  again = h->now;
  h->now = n > 0 && h->part.n > 0 && td__rank_sums_wanted ();
  if (!h->now)
    {
      h->sums.n_marks = 0;
      return TD_OK;
    }
  n_summed = summed > n ? summed - n : 0; /* the rest are another optimizer's */
  td__sums_look (&h->part, opt, &h->sums);
  tell_own (h);
  if (!again) /* no update has told of them: were they equal? */
    status = td__tell_parameters (&h->part, NULL, site);
  return status == TD_OK ? td__tell_means (&h->part, n_ranks, site) : status;
}

static void
after (TdOpt *opt, TdStatus status, const TdSite *site)
{
  ByHand *h = opt->watched;

  if (h == NULL || !h->now)
    return;
  td__sums_clear (&h->sums);
  if (status == TD_OK)
    td__tell_updated (&h->part, opt, &h->sums, site);
}

static void
watched_free (TdOpt *opt)
{
  ByHand *h = opt->watched, **at = &watched;

  while (*at != h)
    at = &(*at)->next;
  *at = h->next;
  td__common_clear (&h->all);
  td__sums_free (&h->sums);
  free (h->part.of);
  free (h->own);
  free (h);
  opt->watched = NULL;
}

static const TdOptWatch opt_watch = { before, after, watched_free };

/* --- calls --- */

static bool
is_of_training (const TdComm *comm)
{
  return comm->size > 1 && td__engine.phase == TD_PHASE_FORWARD && td__rank_sums_wanted ();
}

void
td__by_hand_brings (const TdComm *comm)
{
  if (n_summed > 0 || !is_of_training (comm))
    return;
  for (ByHand *h = watched; h != NULL; h = h->next)
    if (h->now && !h->by_grad && h->generation == td__links_generation)
      take_own (h);
}

/* y: what all ranks have of x; of a call that gives, a row of each. */
static void
remember (const TdVar *x, const TdVar *y)
{
  const int64_t size = td__size (&x->node->shape), n = td__size (&y->node->shape);
  Brought *b;

  if (n_brought >= MOST_BROUGHT || size == 0)
    return;
  if (n_brought == room_brought)
    {
      room_brought = 2 * room_brought + 16;
      brought = td__xrealloc (brought, (size_t)room_brought * sizeof *brought);
    }
  b = &brought[n_brought];
  *b = (Brought){ .shape = x->node->shape };
  for (int i = 0; i < SAMPLES; i++)
    {
      b->at[i] = size * i / SAMPLES;
      for (int64_t at = b->at[i]; at < n; at += size)
        {
          double number;

          if (!read_number (y, at, &number))
            return;
          b->sample[i] += number;
        }
    }
  n_brought++;
}

void
td__by_hand_summed (const TdComm *comm, const TdVar *x, const TdVar *y)
{
  if (!is_of_training (comm))
    return;
  if (td__engine.walk_watch == NULL)
    td__engine.walk_watch = &walk_watch;
  td__opt_watch = &opt_watch;
  remember (x, y);
  n_summed += td__size (&x->node->shape);
  n_ranks = comm->size;
}

/* Does an optimizer tell of it after its updates, as it did after the last one? */
static bool
is_told (const TdParam *param)
{
  for (const ByHand *h = watched; h != NULL; h = h->next)
    for (int i = 0; h->now && h->generation == td__links_generation && i < h->part.n; i++)
      if (h->part.of[i].param == param)
        return true;
  return false;
}

TdCommon
td__by_hand_averaged (const TdComm *comm, const TdCommon *common)
{
  TdCommon rest = { td__xcalloc ((size_t)common->n + 1, sizeof *rest.of), 0 };

  if (td__engine.walk_watch == NULL)
    td__engine.walk_watch = &walk_watch;
  td__opt_watch = &opt_watch;
  n_ranks = comm->size;
  if (n_averaged + common->n > room_averaged)
    {
      room_averaged = 2 * room_averaged + common->n;
      averaged = td__xrealloc (averaged, (size_t)room_averaged * sizeof *averaged);
    }
  for (int i = 0; i < common->n; i++)
    {
      const TdVar *g = gradient_of (&common->of[i]);

      if (g != NULL && find_averaged (common->of[i].param) == NULL)
        averaged[n_averaged++]
            = (Averaged){ common->of[i].param, g->buffer->id, g->buffer->version };
      if (!is_told (common->of[i].param))
        rest.of[rest.n++] = common->of[i];
    }
  return rest;
}
