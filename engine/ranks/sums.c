/* Sums of gradients, parameters, persistents and optimizer states, told to who records.  How an
 * array is summed is in sum-array.c.
 *
 * SPDX-License-Identifier: MIT */
#include "sums.h"
#include "host-memory.h"

#include "compute/core/copies.h"

#include <stdlib.h>

static const uint64_t odd = 0x9e3779b97f4a7c15u; /* 2^64 divided by the golden ratio */

/* --- telling --- */

void
td__tell_sum (const TdRankSum *sum)
{
  td__engine.observer->rank_sum (td__engine.observer, sum);
}

const TdSite *
td__sum_maker (const TdVar *v)
{
  return v->buffer->version > 0 ? v->buffer->writer : v->site;
}

TdRankSum
td__sum_of_gradient (TdRankSumKind kind, const TdSummer *s, const void *numbers, int64_t n,
                     uint64_t turn)
{
  TdRankSum sum = { .kind = kind, .size = (uint64_t)n };

  td__summer_end (s, &sum);
  if (n > 0)
    {
      sum.at = turn * odd % (uint64_t)n;
      sum.number = s->dtype == TD_F64 ? ((const double *)numbers)[sum.at]
                                      : (double)((const float *)numbers)[sum.at];
    }
  return sum;
}

void
td__sums_clear (TdSums *sums)
{
  free (sums->of);
  *sums = (TdSums){ .marks = sums->marks,
                    .n_marks = sums->n_marks,
                    .room_marks = sums->room_marks };
}

void
td__sums_free (TdSums *sums)
{
  free (sums->of);
  free (sums->marks);
  *sums = (TdSums){ .n = 0 };
}

/* Of another array there is nothing to be said. */
static TdSumMark *
find_mark (TdSums *sums, const TdBuffer *b)
{
  TdSumMark *end = sums->marks + sums->n_marks;
  TdSumMark *next = sums->marks + sums->n_old++;

  if (next < end && next->buffer == b->id)
    return next;
  for (TdSumMark *m = sums->marks; m < end; m++)
    if (m->buffer == b->id)
      return m;
  return NULL;
}

/* The sum of an array, wherever it is; and its element `at`. */
static TdStatus
sum_up (const TdVar *v, TdRankSum *sum, const TdSite *site)
{
  const TdNode *node = v->node;
  const size_t bytes = (size_t)td__size (&node->shape) * td__dtype_sizes[node->dtype];
  const bool here = node->device->number == 0 && node->layout == TD_ROW_MAJOR;
  void *copy = NULL;
  const void *numbers;
  TdStatus status;

  if (!here)
    {
      copy = td__xmalloc (bytes + 1);
      status = td__layout_download (node, v->buffer, copy, TD_COPY_RECORDING, site);
      if (status != TD_OK)
        {
          free (copy);
          return status;
        }
    }
  numbers = here ? v->buffer->data : copy;
  sum->size = (uint64_t)td__size (&node->shape);
  td__sum_array ((TdDtype)node->dtype, numbers, bytes, sum);
  if (sum->at < sum->size && node->dtype == TD_F64)
    sum->number = ((const double *)numbers)[sum->at];
  else if (sum->at < sum->size && node->dtype == TD_F32)
    sum->number = (double)((const float *)numbers)[sum->at];
  free (copy);
  return TD_OK;
}

/* Its element is another one than the mean's: what the program does between is its own. */
TdStatus
td__sum_of_own (const TdVar *gradient, TdRankSum *sum, const TdSite *site)
{
  TdStatus status;

  *sum = (TdRankSum){ .kind = TD_RANK_SUM_GRADIENT };
  status = sum_up (gradient, sum, site);
  if (status == TD_OK && sum->not_finite > 0)
    sum->written = td__sum_maker (gradient);
  return status;
}

static void
look_at (TdSums *sums, const TdVar *v)
{
  TdSumMark *mark = v != NULL && v->buffer != NULL ? find_mark (sums, v->buffer) : NULL;
  TdRankSum now = { .at = UINT64_MAX };

  if (mark == NULL)
    return;
  mark->wrote = mark->version != v->buffer->version ? v->buffer->writer : NULL;
  mark->spoiled = mark->wrote != NULL && v->node->device->computes
                  && sum_up (v, &now, mark->wrote) == TD_OK && now.not_finite > 0;
}

void
td__sums_look (const TdCommon *all, const TdOpt *opt, TdSums *sums)
{
  sums->n_old = 0;
  for (int i = 0; i < all->n; i++)
    if (all->of[i].param->kind != TD_PARAM_PERSISTENT)
      look_at (sums, all->of[i].param->var);
  for (int i = 0; i < opt->n_slots; i++)
    {
      for (int s = 0; s < TD_OPT_MAX_STATES; s++)
        look_at (sums, opt->slots[i].states[s]);
      look_at (sums, opt->slots[i].master);
    }
  sums->n_old = 0;
}

/* What wrote to it, which is said once; and how it is now. */
static void
take_mark (TdSums *sums, const TdBuffer *b, TdRankSum *sum)
{
  TdSumMark *mark = find_mark (sums, b);

  if (mark != NULL)
    {
      sum->written = mark->wrote;
      sum->spoiled = mark->spoiled;
    }
  else
    {
      if (sums->n_marks == sums->room_marks)
        {
          sums->room_marks = 2 * sums->room_marks + 16;
          sums->marks
              = td__xrealloc (sums->marks, (size_t)sums->room_marks * sizeof *sums->marks);
        }
      mark = &sums->marks[sums->n_marks++];
    }
  *mark = (TdSumMark){ .buffer = b->id, .version = b->version };
}

static void
put (TdSums *sums, const uint64_t sum[2])
{
  if (sums->n == sums->room)
    {
      sums->room = 2 * sums->room + 16;
      sums->of = td__xrealloc (sums->of, (size_t)sums->room * sizeof *sums->of);
    }
  for (int i = 0; i < 2; i++)
    {
      sums->of[sums->n][i] = sum[i];
      sums->root[i] = td__sum_mixed (sums->root[i], sum[i]);
    }
  sums->n++;
}

/* Tell of an array; into the list, if ranks must have it in common. */
static TdStatus
tell_array (TdRankSumKind kind, const char *path, const char *state, const TdVar *v,
            TdSums *sums, const TdSite *site)
{
  TdRankSum sum = { .kind = kind, .path = path, .state = state };
  TdStatus status;

  if (!v->node->device->computes)
    return TD_OK;
  status = sum_up (v, &sum, site);
  if (status != TD_OK)
    return status;
  if (sums != NULL)
    take_mark (sums, v->buffer, &sum);
  else if (kind == TD_RANK_SUM_PARAMETER && sum.not_finite > 0)
    { /* as gradients were computed with it */
      sum.written = v->buffer->writer;
      sum.spoiled = sum.written != NULL;
    }
  td__tell_sum (&sum);
  if (sums != NULL)
    put (sums, sum.sum);
  return TD_OK;
}

TdStatus
td__tell_means (const TdCommon *all, int n_averaged, const TdSite *site)
{
  TdStatus status = TD_OK;

  for (int i = 0; i < all->n && status == TD_OK; i++)
    {
      const TdParam *p = all->of[i].param;
      const TdVar *g = p->kind != TD_PARAM_PERSISTENT && p->var != NULL ? p->var->grad : NULL;
      TdRankSum sum = { .kind = TD_RANK_SUM_MEAN, .n_averaged = n_averaged, .at = UINT64_MAX };

      if (g == NULL || !g->node->device->computes)
        continue;
      sum.path = all->of[i].key;
      status = sum_up (g, &sum, site);
      if (status == TD_OK)
        td__tell_sum (&sum);
    }
  return status;
}

static bool
has_parameter (const TdCommon *all, const TdVar *v)
{
  for (int i = 0; i < all->n; i++)
    if (all->of[i].param->var == v)
      return true;
  return false;
}

static TdStatus
tell_states (const TdCommon *all, TdOpt *opt, TdSums *sums, const TdSite *site)
{
  TdStatus status = TD_OK;

  for (int i = 0; i < opt->n_slots && status == TD_OK; i++)
    {
      const TdOptSlot *slot = &opt->slots[i];

      if (!has_parameter (all, slot->param))
        continue;
      for (int s = 0; s < TD_OPT_MAX_STATES && status == TD_OK; s++)
        if (slot->states[s] != NULL)
          status = tell_array (TD_RANK_SUM_STATE, slot->key, opt->cls->states[s],
                               slot->states[s], sums, site);
      if (slot->master != NULL && status == TD_OK)
        status = tell_array (TD_RANK_SUM_STATE, slot->key, "master", slot->master, sums, site);
    }
  return status;
}

void
td__tell_number (const char *name, double number)
{
  const TdRankSum sum = { .kind = TD_RANK_SUM_NUMBER, .path = name, .number = number };

  td__tell_sum (&sum);
}

static void
tell_numbers (const TdOpt *opt)
{
  const TdOpClass *op = opt->cls->op;

  td__tell_number ("t", (double)opt->t);
  td__tell_number ("epoch", (double)opt->epoch);
  td__tell_number ("loss scale", opt->scale);
  for (int a = 0; a < op->n_attrs; a++)
    td__tell_number (op->attrs[a].name, td__opt_hyper_get (&opt->u, &op->attrs[a]));
}

TdStatus
td__tell_parameters (const TdCommon *all, TdSums *sums, const TdSite *site)
{
  TdStatus status = TD_OK;

  for (int i = 0; i < all->n && status == TD_OK; i++)
    {
      const TdParam *p = all->of[i].param;
      const bool common = p->kind != TD_PARAM_PERSISTENT;

      if (p->var != NULL)
        status = tell_array (common ? TD_RANK_SUM_PARAMETER : TD_RANK_SUM_PERSISTENT,
                             all->of[i].key, NULL, p->var, common ? sums : NULL, site);
    }
  return status;
}

TdStatus
td__tell_updated (const TdCommon *all, TdOpt *opt, TdSums *sums, const TdSite *site)
{
  TdStatus status;

  td__opt_settle (opt, 0); /* what devices have decided */
  sums->n = sums->n_old = 0;
  sums->root[0] = sums->root[1] = odd;
  status = td__tell_parameters (all, sums, site);
  if (status == TD_OK)
    status = tell_states (all, opt, sums, site);
  if (sums->n_marks > 2 * sums->n + 16) /* of arrays that are gone */
    sums->n_marks = 0;
  tell_numbers (opt);
  return status;
}
