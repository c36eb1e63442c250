/* Rank 0's optimizer on all ranks: counts, loss scale, hyperparameters, and the states of every
 * parameter.
 *
 * SPDX-License-Identifier: MIT */
#include "optimizer-state.h"
#include "arrays.h"
#include "host-memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What an optimizer has besides its slots, as it is sent. */
typedef struct
{
  int64_t t, epoch, n_skipped;
  double scale, growth, initial_lr;
  TdUpdate u;
  bool fp32_update, dynamic, seen_overflow;
} Whole;

/* The same of a slot. */
typedef struct
{
  int64_t t, n_overflows;
  int32_t dtypes[TD_OPT_MAX_STATES]; /* of states; -1: none */
  bool master, has_rule, disabled;
  uint32_t own;
  TdUpdate u;
} Part;

/* Hyperparameters of rank 0's, with what is this device's own. */
static TdUpdate
hyper_from (const TdUpdate *root, const TdUpdate *mine)
{
  TdUpdate u = *root;

  u.decided = mine->decided;
  u.n_known = mine->n_known;
  memcpy (u.earlier, mine->earlier, sizeof u.earlier);
  return u;
}

static TdStatus
share_whole (TdComm *comm, TdOpt *opt, const TdSite *site)
{
  Whole w;
  TdStatus status;

  memset (&w, 0, sizeof w); /* its bytes are sent */
  w.t = opt->t;
  w.epoch = opt->epoch;
  w.n_skipped = opt->n_skipped;
  w.scale = opt->scale;
  w.growth = opt->growth;
  w.initial_lr = opt->initial_lr;
  w.u = opt->u;
  w.fp32_update = opt->fp32_update;
  w.dynamic = opt->dynamic;
  w.seen_overflow = opt->seen_overflow;
  status = td__bcast_bytes (comm, &w, sizeof w, site);
  if (status != TD_OK || comm->rank == 0)
    return status;
  opt->t = w.t;
  opt->epoch = w.epoch;
  opt->n_skipped = w.n_skipped;
  opt->scale = w.scale;
  opt->growth = w.growth;
  opt->initial_lr = w.initial_lr;
  opt->u = hyper_from (&w.u, &opt->u);
  opt->fp32_update = w.fp32_update;
  opt->dynamic = w.dynamic;
  opt->seen_overflow = w.seen_overflow;
  return TD_OK;
}

static Part
part_of (const TdOpt *opt, const TdOptSlot *slot)
{
  const TdOptRule *rule = td__opt_rule (opt, slot->param_id);
  Part p;

  memset (&p, 0, sizeof p); /* its bytes are sent */
  p.t = slot->t;
  p.n_overflows = slot->n_overflows;
  p.master = slot->master != NULL;
  for (int i = 0; i < TD_OPT_MAX_STATES; i++)
    p.dtypes[i] = slot->states[i] != NULL ? (int32_t)slot->states[i]->node->dtype : -1;
  if (rule != NULL)
    {
      p.has_rule = true;
      p.disabled = rule->disabled;
      p.own = rule->own;
      p.u = rule->u;
    }
  return p;
}

/* Hooks of a rule stay: they are this program's functions. */
static void
take_rule (TdOpt *opt, const TdOptSlot *slot, const Part *p)
{
  TdOptRule *rule = p->has_rule ? td__opt_rule_make (opt, slot->param_id)
                                : td__opt_rule (opt, slot->param_id);

  if (rule == NULL)
    return;
  rule->own = p->own;
  rule->disabled = p->disabled;
  if (p->has_rule)
    rule->u = hyper_from (&p->u, &rule->u);
}

/* A state where rank 0 has one, and none where it has none. */
static TdStatus
share_state (TdComm *comm, TdVar **state, const TdOptSlot *slot, int dtype, const TdSite *site)
{
  const TdNode *n = slot->param->node;
  bool same = true;

  if (dtype < 0 || (*state != NULL && (int)(*state)->node->dtype != dtype))
    td__opt_state_drop (state);
  if (dtype < 0)
    return TD_OK;
  if (*state == NULL)
    *state = td__opt_state ((TdDtype)dtype, &n->shape, n->device, site);
  if (*state == NULL)
    {
      td__comm_abort (comm);
      return td__error_status ();
    }
  return td__bcast_var (comm, *state, &same, site);
}

static TdStatus
share_slot (TdComm *comm, TdOpt *opt, TdOptSlot *slot, const TdSite *site)
{
  Part p = part_of (opt, slot);
  TdStatus status = td__bcast_bytes (comm, &p, sizeof p, site);

  if (status != TD_OK)
    return status;
  slot->t = p.t;
  slot->n_overflows = p.n_overflows;
  if (comm->rank != 0)
    take_rule (opt, slot, &p);
  for (int i = 0; i < TD_OPT_MAX_STATES && status == TD_OK; i++)
    status = share_state (comm, &slot->states[i], slot, p.dtypes[i], site);
  if (status == TD_OK)
    status = share_state (comm, &slot->master, slot, p.master ? (int)TD_F32 : -1, site);
  slot->master_version = slot->param->buffer->version;
  return status;
}

uint64_t
td__opt_kind_digest (const TdOpt *opt)
{
  uint64_t digest = td__digest (0, opt->cls->name, strlen (opt->cls->name));

  for (int i = 0; i < opt->n_slots; i++)
    {
      const TdOptSlot *s = &opt->slots[i];

      digest = td__digest (digest, s->key, strlen (s->key) + 1);
      digest = td__digest (digest, &s->param->node->shape.ndim, sizeof (int));
      digest = td__digest (digest, s->param->node->shape.dim,
                           (size_t)s->param->node->shape.ndim * sizeof (int64_t));
    }
  return digest;
}

TdStatus
td__opt_kind_explain (TdComm *comm, const TdOpt *opt, TdMeetKind kind, const TdSite *site)
{
  TdLines lines = { NULL, 0 };
  char shape[160];
  TdStatus status;

  td__lines_put (&lines, "%s", opt->cls->name);
  for (int i = 0; i < opt->n_slots; i++)
    td__lines_put (&lines, "%.200s %s", opt->slots[i].key,
                   td_shape_text (&opt->slots[i].param->node->shape, shape, sizeof shape));
  status = td__explain (comm, &lines, "optimizers of one kind expected: ", "", kind, site);
  td__lines_clear (&lines);
  return status;
}

TdStatus
td__opt_share_state (TdComm *comm, TdOpt *opt, const TdSite *site)
{
  TdStatus status;

  td__opt_settle (opt, 0);
  status = share_whole (comm, opt, site);
  for (int i = 0; i < opt->n_slots && status == TD_OK; i++)
    status = share_slot (comm, opt, &opt->slots[i], site);
  return status;
}

TdStatus
td_comm_bcast_optimizer_at (TdComm *comm, TdOpt *opt, const TdSite *site)
{
  bool differs;
  TdStatus status;
  TdMeet mine;

  if (!td__comm_usable (comm, "td_comm_bcast_optimizer", site))
    return td__error_status ();
  mine = td__meet_of (TD_MEET_BCAST_OPTIMIZER, NULL, site);
  if (!td__opt_usable (opt, "td_comm_bcast_optimizer", site)
      || td__opt_look_again (opt, site) != TD_OK)
    td__meet_fail (&mine);
  else
    mine.digest = td__opt_kind_digest (opt);
  status = td__meet_digest (comm, &mine, &differs, site);
  if (status == TD_OK && differs)
    return td__opt_kind_explain (comm, opt, TD_MEET_BCAST_OPTIMIZER, site);
  return status == TD_OK ? td__opt_share_state (comm, opt, site) : status;
}

TdStatus
td_comm_bcast_optimizer (TdComm *comm, TdOpt *opt)
{
  return td_comm_bcast_optimizer_at (comm, opt, NULL);
}
