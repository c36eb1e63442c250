/* Arrays that ranks have in common: listed by their keys, compared, and copied from rank 0.
 *
 * SPDX-License-Identifier: MIT */
#include "arrays.h"
#include "host-memory.h"
#include "teams.h"

#include "compute/core/before-write.h"
#include "compute/core/copies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct
{
  TdCommon *common;
  bool persistents;
} Gather;

static void
gather_one (TdLink *owner, TdParam *param, const char *key, void *user)
{
  Gather *g = user;
  TdCommon *c = g->common;

  (void)owner;
  if (param->kind == TD_PARAM_ATTR || (param->kind == TD_PARAM_PERSISTENT && !g->persistents))
    return;
  for (int i = 0; i < c->n; i++)
    if (param->var != NULL && c->of[i].param->var == param->var)
      return;
  c->of = td__xrealloc (c->of, (size_t)(c->n + 1) * sizeof *c->of);
  c->of[c->n++] = (TdCommonArray){ param, td__xstrdup (key) };
}

TdCommon
td__common_of (TdLink *link, bool persistents)
{
  TdCommon common = { NULL, 0 };
  Gather g = { &common, persistents };

  td__link_visit (link, gather_one, &g);
  return common;
}

void
td__common_clear (TdCommon *common)
{
  for (int i = 0; i < common->n; i++)
    free (common->of[i].key);
  free (common->of);
  *common = (TdCommon){ NULL, 0 };
}

static TdDtype
dtype_of (const TdParam *p)
{
  return p->var != NULL ? (TdDtype)p->var->node->dtype : p->dtype;
}

uint64_t
td__common_digest (const TdCommon *common, bool shapes)
{
  uint64_t digest = td__digest (0, &common->n, sizeof common->n);

  for (int i = 0; i < common->n; i++)
    {
      const TdParam *p = common->of[i].param;
      const int what[] = { p->kind, dtype_of (p), shapes && p->var != NULL };

      digest = td__digest (digest, common->of[i].key, strlen (common->of[i].key) + 1);
      digest = td__digest (digest, what, sizeof what);
      if (shapes && p->var != NULL)
        digest = td__digest (digest, p->var->node->shape.dim,
                             (size_t)p->var->node->shape.ndim * sizeof (int64_t));
    }
  return digest;
}

bool
td__common_is_far (const TdComm *comm, const TdCommon *common)
{
  bool all = comm->far != NULL;

  for (int i = 0; i < common->n && all; i++)
    all = common->of[i].param->var == NULL || td__far_has (comm, common->of[i].param->var);
  return all;
}

/* "l1/W (10, 20) f32" */
static void
put_line (TdLines *lines, const TdCommonArray *a)
{
  char shape[160] = "without a shape yet,";

  if (a->param->var != NULL)
    td_shape_text (&a->param->var->node->shape, shape, sizeof shape);
  td__lines_put (lines, "%.200s %s %s", a->key, shape,
                 td__dtype_short_names[dtype_of (a->param)]);
}

TdStatus
td__common_explain (TdComm *comm, const TdCommon *common, const char *of, TdMeetKind kind,
                    const TdSite *site)
{
  TdLines lines = { NULL, 0 };
  TdStatus status;

  if (of != NULL)
    td__lines_put (&lines, "%s", of);
  for (int i = 0; i < common->n; i++)
    put_line (&lines, &common->of[i]);
  status = td__explain (comm, &lines, "", "", kind, site);
  td__lines_clear (&lines);
  return status;
}

uint64_t
td__common_numbers (const TdCommon *common, const TdSite *site)
{
  uint64_t digest = 0;

  for (int i = 0; i < common->n; i++)
    {
      const TdVar *v = common->of[i].param->var;
      const size_t bytes
          = v == NULL ? 0
                      : (size_t)td__size (&v->node->shape) * td__dtype_sizes[v->node->dtype];
      char *numbers;

      if (bytes == 0 || !v->node->device->computes)
        continue;
      numbers = td__xmalloc (bytes);
      if (td__layout_download (v->node, v->buffer, numbers, TD_COPY_OP, site) == TD_OK)
        digest = td__digest (digest, numbers, bytes);
      free (numbers);
    }
  return digest;
}

/* --- shapes --- */

/* This rank's arrays can take rank 0's numbers?  Else the note. */
static bool
shapes_fit (const TdCommon *common, const TdShape *roots, char *note, size_t size)
{
  for (int i = 0; i < common->n; i++)
    {
      const TdVar *v = common->of[i].param->var;
      char a[160], b[160];

      if (v == NULL || (roots[i].ndim >= 0 && td__same_shape (&v->node->shape, &roots[i])))
        continue;
      if (roots[i].ndim < 0)
        snprintf (note, size, "it has %.100s, whose shape rank 0 does not know yet",
                  common->of[i].key);
      else
        snprintf (note, size, "it has %.72s %.50s where rank 0 has %.50s", common->of[i].key,
                  td_shape_text (&v->node->shape, a, sizeof a),
                  td_shape_text (&roots[i], b, sizeof b));
      return false;
    }
  return true;
}

/* Arrays that wait for their shapes get rank 0's; their numbers come next. */
static TdStatus
start_waiting (const TdCommon *common, const TdShape *roots)
{
  for (int i = 0; i < common->n; i++)
    {
      TdParam *p = common->of[i].param;
      TdVar *v;

      if (p->var != NULL || roots[i].ndim < 0)
        continue;
      v = td__param_leaf (p, &roots[i]);
      if (v == NULL)
        return td__error_status ();
      v->node->device->ops->zero (v->node->device, v->buffer->data, v->buffer->bytes);
      td__param_adopt (p, v);
      td__var_unref (v, TD_HOLD_ENGINE);
    }
  return TD_OK;
}

static TdStatus
agree_on_shapes (TdComm *comm, const TdCommon *common, TdMeetKind kind, const TdSite *site)
{
  TdMeet mine = td__meet_of (kind, NULL, site);
  TdShape *shapes = td__xcalloc ((size_t)common->n + 1, sizeof *shapes);
  TdStatus status;

  for (int i = 0; i < common->n; i++)
    if (common->of[i].param->var != NULL)
      shapes[i] = common->of[i].param->var->node->shape;
    else
      shapes[i].ndim = -1;
  status = td__bcast_bytes (comm, shapes, (size_t)common->n * sizeof *shapes, site);
  if (status == TD_OK && !shapes_fit (common, shapes, mine.note, sizeof mine.note))
    mine.flags |= TD_MEET_FAILED;
  if (status == TD_OK)
    status = td__meet (comm, &mine, site);
  if (status == TD_OK)
    {
      status = start_waiting (common, shapes);
      if (status != TD_OK)
        td__comm_abort (comm);
    }
  free (shapes);
  return status;
}

/* --- numbers --- */

TdStatus
td__bcast_var (TdComm *comm, TdVar *v, bool *same, const TdSite *site)
{
  const size_t bytes = (size_t)td__size (&v->node->shape) * td__dtype_sizes[v->node->dtype];
  char *numbers, *own;
  TdStatus status;

  if (!v->node->device->computes || bytes == 0) /* there are none */
    return TD_OK;
  numbers = td__xmalloc (bytes);
  own = td__xmalloc (bytes);
  status = td__layout_download (v->node, v->buffer, own, TD_COPY_OP, site);
  if (status != TD_OK)
    td__comm_abort (comm);
  memcpy (numbers, own, bytes);
  if (status == TD_OK)
    status = td__bcast_bytes (comm, numbers, bytes, site);
  if (status == TD_OK && memcmp (numbers, own, bytes) != 0)
    {
      *same = false;
      td__will_be_written (v->buffer);
      status = td__layout_upload (v->node, v->buffer, numbers, TD_COPY_OP, site);
      td__buffer_written (v->buffer, site);
    }
  free (numbers);
  free (own);
  return status;
}

/* Persistents are no difference: a forward writes them, so that each rank has its own running
 * statistics though all gradients are of the same parameters. */
TdStatus
td__common_bcast (TdComm *comm, const TdCommon *common, TdMeetKind kind, bool *same,
                  const TdSite *site)
{
  bool *excused = td__xcalloc ((size_t)common->n + 1, sizeof *excused), none = true;
  TdStatus status;

  for (int i = 0; i < common->n; i++)
    excused[i] = common->of[i].param->var == NULL /* of which nothing was computed yet */
                 || common->of[i].param->kind == TD_PARAM_PERSISTENT;
  *same = true;
  status = agree_on_shapes (comm, common, kind, site);
  for (int i = 0; i < common->n && status == TD_OK; i++)
    if (common->of[i].param->var != NULL)
      status = td__bcast_var (comm, common->of[i].param->var, excused[i] ? &none : same, site);
  free (excused);
  return status;
}

TdStatus
td_comm_bcast_link_at (TdComm *comm, TdLink *link, const TdSite *site)
{
  TdCommon common = { NULL, 0 };
  bool differs = false, same;
  TdStatus status;
  TdMeet mine;

  if (!td__comm_usable (comm, "td_comm_bcast_link", site))
    return td__error_status ();
  mine = td__meet_of (TD_MEET_BCAST_LINK, NULL, site);
  if (td__link_usable (link, "td_comm_bcast_link", site))
    common = td__common_of (link, true);
  else
    td__meet_fail (&mine);
  mine.digest = td__common_digest (&common, false);
  status = td__meet_digest (comm, &mine, &differs, site);
  if (status == TD_OK)
    status = differs ? td__common_explain (comm, &common, NULL, TD_MEET_BCAST_LINK, site)
                     : td__common_bcast (comm, &common, TD_MEET_BCAST_LINK, &same, site);
  td__common_clear (&common);
  return status;
}

TdStatus
td_comm_bcast_link (TdComm *comm, TdLink *link)
{
  return td_comm_bcast_link_at (comm, link, NULL);
}
