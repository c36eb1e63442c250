/* An optimizer that updates by the mean of all ranks' gradients.
 *
 * It is the program's own optimizer, which asks here before every update.  ChainerMN sends
 * rank 0's weights with the first update and leaves that update out; here they are sent when
 * the optimizer is made, with the first update, since rank 0 alone may have loaded a file
 * meanwhile, and again when parameters have come since.  No update is left out.
 *
 * SPDX-License-Identifier: MIT */
#include "host-memory.h"
#include "overlap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct
{
  TdComm *comm;
  int number;          /* among the optimizers of comm, from 1, as they were made */
  uint64_t generation; /* of the links when the list was made */
  TdCommon gradients;  /* of the target's parameters */
  TdCommon all;        /* and of its persistents: what who records is told of */
  uint64_t names;      /* of them, a digest */
  uint64_t digest;     /* and with their shapes */
  TdSums sums;         /* after the last update, where somebody records; of which links */
  uint64_t sums_generation;
  TdMean how; /* of their means; turn: the updates that all have met for */
  TdOverlap *overlap;
  bool doubled;  /* an update is by the means of the one before */
  bool random;   /* rank 0's random state goes with its numbers */
  bool parted;   /* it was said that ranks have parted */
  uint64_t sent; /* the digest that an update sent rank 0's numbers with last; 0: none did */
} Shared;

static void
shared_free (TdOpt *opt)
{
  Shared *s = opt->shared;

  if (s->overlap != NULL)
    td__overlap_free (s->overlap);
  td__common_clear (&s->gradients);
  td__common_clear (&s->all);
  td__sums_free (&s->sums);
  free (s);
  opt->shared = NULL;
  opt->share = NULL;
}

static void
look_again (TdOpt *opt, Shared *s)
{
  if (s->generation == td__links_generation)
    return;
  td__common_clear (&s->gradients);
  td__common_clear (&s->all);
  s->gradients = td__common_of (opt->target, false);
  s->all = td__common_of (opt->target, true);
  s->names = td__common_digest (&s->gradients, false);
  s->digest = td__common_digest (&s->gradients, true);
  s->generation = td__links_generation;
}

/* Parameters, persistents and optimizer of rank 0; *same: the parameters were those before. */
static TdStatus
send_all (TdOpt *opt, TdMeetKind kind, bool *same, const TdSite *site)
{
  Shared *s = opt->shared;
  TdCommon all = td__common_of (opt->target, true);
  TdMeet mine = td__meet_of (kind, NULL, site);
  bool differs = false;
  TdStatus status;

  mine.digest = td__common_digest (&all, false);
  status = td__meet_digest (s->comm, &mine, &differs, site);
  if (status == TD_OK)
    status = differs ? td__common_explain (s->comm, &all, NULL, kind, site)
                     : td__common_bcast (s->comm, &all, kind, same, site);
  td__common_clear (&all);
  if (status != TD_OK)
    return status;
  mine = td__meet_of (kind, NULL, site);
  if (td__opt_look_again (opt, site) != TD_OK)
    td__meet_fail (&mine);
  mine.digest = td__opt_kind_digest (opt);
  status = td__meet_digest (s->comm, &mine, &differs, site);
  if (status == TD_OK && differs)
    return td__opt_kind_explain (s->comm, opt, kind, site);
  if (status == TD_OK)
    status = td__opt_share_state (s->comm, opt, site);
  return status == TD_OK && s->random ? td__random_share (s->comm, site) : status;
}

/* How many ranks count, and whether this one does: those whose gradients are of rank 0's
 * numbers. */
static TdStatus
count_ranks (const TdOpt *opt, TdComm *comm, bool same, int *n, const TdSite *site)
{
  TdMeet mine = td__meet_of (TD_MEET_UPDATE, NULL, site);
  TdStatus status;

  mine.flags |= same ? TD_MEET_SAME : 0;
  mine.flags
      |= td__common_is_far (comm, &((const Shared *)opt->shared)->gradients) ? TD_MEET_FAR : 0;
  mine.number = (int64_t)td__opt_settings_digest (opt);
  status = td__meet (comm, &mine, site);
  *n = 0;
  for (int r = 0; r < comm->size; r++)
    *n += (comm->all[r].flags & TD_MEET_SAME) != 0;
  return status;
}

/* In the last meeting, which has each rank's digest as its number. */
static bool
settings_differ (const TdComm *comm)
{
  bool differs = false;

  for (int r = 1; r < comm->size; r++)
    differs |= comm->all[r].number != comm->all[0].number;
  return differs;
}

/* What this rank says before an update. */
static TdMeet
meet_of_update (TdOpt *opt, TdStatus so_far, const TdSite *site)
{
  Shared *s = opt->shared;
  TdMeet mine = td__meet_of (TD_MEET_UPDATE, NULL, site);

  if (so_far != TD_OK)
    td__meet_fail (&mine);
  else
    {
      look_again (opt, s);
      mine.number = (int64_t)td__opt_settings_digest (opt);
    }
  mine.digest = td__digest (s->names, &s->number, sizeof s->number);
  /* of shapes that are new to a rank all hear below */
  mine.flags |= s->sent != s->digest ? TD_MEET_HAS : 0;
  mine.flags |= td__common_is_far (s->comm, &s->gradients) ? TD_MEET_FAR : 0;
  mine.flags |= s->overlap != NULL ? td__overlap_flags (s->overlap) : 0;
  if (s->sums_generation == td__links_generation) /* else their list is another by now */
    memcpy (mine.sums, s->sums.root, sizeof mine.sums);
  return mine;
}

/* Ranks update other optimizers, or other parameters of this one. */
static TdStatus
explain_update (const TdOpt *opt, const TdSite *site)
{
  const Shared *s = opt->shared;
  char which[TD_LINE];

  snprintf (which, sizeof which, "%s of %s (optimizer %d)", opt->cls->name,
            td_link_name (opt->target), s->number);
  return td__common_explain (s->comm, &s->gradients, which, TD_MEET_UPDATE, site);
}

/* Double buffering: these gradients go, and those that have come are for this update. */
static TdStatus
means_before (TdOpt *opt, bool counts, int n_counting, const TdSite *site)
{
  Shared *s = opt->shared;
  TdStatus status;

  if (opt->pending_scale == TD_OPT_SCALE_OF_DEVICE)
    return td__fail (TD_ERR_STATE, "td_opt_update", site,
                     "double buffering needs a loss scale that does not lie on a device");
  status = td__overlap_begin (s->overlap, counts, n_counting, (float)opt->pending_scale, site);
  if (!td__overlap_has (s->overlap))
    opt->nothing_yet = true;
  else if (status == TD_OK)
    status = td__overlap_take (s->overlap, &s->how, (float)opt->pending_scale, site);
  return status;
}

/* Those of this iteration; in backward some have gone, of use if all have. */
static TdStatus
means_now (TdOpt *opt, bool useful, bool counts, int n_counting, const TdSite *site)
{
  const Shared *s = opt->shared;

  if (useful)
    return td__overlap_take (s->overlap, &s->how, 1, site);
  if (s->overlap != NULL)
    td__overlap_forget (s->overlap);
  return td__common_mean_gradients (s->comm, &s->gradients, &s->how, counts, n_counting, site);
}

/* Rank 0's numbers go to all; *n ranks have gradients of them, *same: this one. */
static TdStatus
send_first (TdOpt *opt, bool *same, int *n, const TdSite *site)
{
  Shared *s = opt->shared;
  TdStatus status = send_all (opt, TD_MEET_UPDATE, same, site);

  if (status == TD_OK)
    {
      look_again (opt, s);
      status = count_ranks (opt, s->comm, *same, n, site);
    }
  if (status != TD_OK)
    return status;
  s->sent = s->digest;
  if (s->overlap != NULL)
    td__overlap_forget (s->overlap); /* of other numbers */
  return TD_OK;
}

static TdStatus
mean_gradients (TdOpt *opt, TdStatus so_far, const TdSite *site)
{
  Shared *s = opt->shared;
  TdComm *comm = s->comm;
  bool differs = false, same = true, parted, other_settings, sends, begun, useful, far;
  int n = comm->size;
  TdStatus status;
  TdMeet mine;

  if (so_far != TD_OK && comm->parted) /* which has been said */
    return so_far;
  if (!td__comm_usable (comm, "td_opt_update", site))
    return td__error_status ();
  if (s->sums.n_marks > 0)
    td__sums_look (&s->all, opt, &s->sums);
  mine = meet_of_update (opt, so_far, site);
  status = td__meet_digest (comm, &mine, &differs, site);
  /* all that the meeting says, before there is another one */
  parted = !s->parted && td__roots_differ (comm);
  other_settings = settings_differ (comm);
  sends = td__meet_any (comm, TD_MEET_HAS);
  far = td__meet_all (comm, TD_MEET_FAR);
  begun = s->overlap != NULL && td__meet_any (comm, TD_MEET_ROUND);
  useful = begun && !sends && !s->doubled && !td__meet_any (comm, TD_MEET_STALE);
  if (begun && !comm->parted) /* whatever else is wrong: it is on its way */
    {
      const TdStatus come = td__overlap_wait (s->overlap, site);

      status = status == TD_OK ? come : status;
    }
  if (status == TD_OK && differs)
    status = explain_update (opt, site);
  if (status == TD_OK && parted)
    {
      status = td__say_parted (comm, &s->all, opt, &s->sums, site);
      s->parted = true;
    }
  if (status == TD_OK && sends)
    {
      status = send_first (opt, &same, &n, site);
      other_settings = settings_differ (comm); /* what rank 0 set before has gone to all */
      far = td__meet_all (comm, TD_MEET_FAR);
    }
  if (status == TD_OK && other_settings)
    status = td__opt_settings_explain (comm, opt, TD_MEET_UPDATE, site);
  s->how.far = far ? comm->far : NULL;
  s->how.turn++;
  s->how.may_overflow = opt->dynamic;
  if (s->overlap != NULL && status == TD_OK)
    {
      td__overlap_lay_out (s->overlap, s->how.far != NULL);
      td__overlap_turn (s->overlap, s->how.turn);
    }
  if (status == TD_OK)
    status = s->doubled ? means_before (opt, same, n, site)
                        : means_now (opt, useful, same, n, site);
  if (s->overlap != NULL)
    td__overlap_updated (s->overlap,
                         begun && !useful && !sends && !s->doubled && status == TD_OK, site);
  return status;
}

/* Who records is told what all ranks must have now. */
static void
updated (TdOpt *opt, TdStatus status, const TdSite *site)
{
  Shared *s = opt->shared;

  td__sums_clear (&s->sums);
  s->sums_generation = td__links_generation;
  if (status == TD_OK && s->comm->size > 1 && td__rank_sums_wanted ())
    {
      td__tell_updated (&s->all, opt, &s->sums, site);
      if (s->doubled)
        td__tell_number ("staleness", 1);
    }
}

void
td__opt_loaded_by_all (TdOpt *opt)
{
  Shared *s = opt->shared;

  if (opt->share == NULL)
    return;
  look_again (opt, s);
  s->sent = s->digest;
}

static const TdOptShare share = { mean_gradients, updated, shared_free };

/* Can this optimizer get a communicator?  False after td__fail. */
static bool
can_share (const TdOpt *opt, const TdSite *site)
{
  if (!td__opt_usable (opt, "td_multi_node_optimizer_new", site))
    return false;
  if (opt->share != NULL)
    td__fail (TD_ERR_STATE, "td_multi_node_optimizer_new", site,
              "the optimizer has a communicator already");
  return opt->share == NULL;
}

/* The options as the rest has them; false after td__fail. */
static bool
means_of (const TdMultiNodeOpt *o, TdMean *how, const TdSite *site)
{
  const TdDtype dtype = o->allreduce_grad_dtype;
  const char *wrong = dtype != TD_F32 && dtype != TD_F16 && dtype != TD_BF16
                          ? "allreduce_grad_dtype f32, f16 or bf16 expected"
                      : o->bucket_bytes < 1 ? "bucket_bytes above 0 expected"
                      : o->overlap && o->double_buffering
                          ? "overlap or double_buffering expected, not both: the means of "
                            "double buffering run behind the whole next iteration"
                          : NULL;

  if (wrong != NULL)
    td__fail (TD_ERR_ARG, "td_multi_node_optimizer_new", site, "%s", wrong);
  *how
      = (TdMean){ .sent_as = dtype, .bucket = (o->bucket_bytes + 3) / (int64_t)sizeof (float) };
  return wrong == NULL;
}

static Shared *
shared_new (TdComm *comm, const TdMean *how, const TdMultiNodeOpt *o)
{
  Shared *s = td__xcalloc (1, sizeof *s);

  s->comm = comm;
  s->number = ++comm->n_optimizers;
  s->how = *how;
  s->doubled = o->double_buffering;
  s->random = o->bcast_random;
  return s;
}

/* What sends them behind other work, where that is wished. */
static TdStatus
overlap_new (Shared *s, const TdMultiNodeOpt *o, const TdSite *site)
{
  if (!s->doubled && (!o->overlap || s->comm->size == 1))
    return TD_OK;
  s->overlap = td__overlap_new (s->comm, &s->gradients, &s->how, !s->doubled, site);
  return s->overlap != NULL ? TD_OK : td__error_status ();
}

TdOpt *
td_multi_node_optimizer_new_at (TdOpt *opt, TdComm *comm, TdMultiNodeOpt options,
                                const TdSite *site)
{
  const int64_t said[] = { options.allreduce_grad_dtype, options.double_buffering,
                           options.overlap, options.bcast_random, options.bucket_bytes };
  TdStatus status;
  TdMean how;
  TdMeet mine;
  bool same;

  if (!td__comm_usable (comm, "td_multi_node_optimizer_new", site))
    return td__opt_inert ();
  mine = td__meet_of (TD_MEET_OPTIMIZER, NULL, site);
  mine.digest = td__digest (0, said, sizeof said);
  if (!can_share (opt, site) || !means_of (&options, &how, site)
      || td__opt_look_again (opt, site) != TD_OK)
    td__meet_fail (&mine);
  status = td__meet (comm, &mine, site);
  if (status != TD_OK)
    return td__opt_inert ();
  opt->share = &share;
  opt->shared = shared_new (comm, &how, &options);
  status = overlap_new (opt->shared, &options, site);
  if (status == TD_OK)
    status = send_all (opt, TD_MEET_OPTIMIZER, &same, site);
  if (status == TD_OK)
    return opt;
  shared_free (opt);
  return td__opt_inert ();
}

TdOpt *
td_multi_node_optimizer_new_ (TdOpt *opt, TdComm *comm, const TdMultiNodeOpt *options)
{
  const TdMultiNodeOpt defaults = { TD_MULTI_NODE_DEFAULTS };

  return td_multi_node_optimizer_new_at (opt, comm, options != NULL ? *options : defaults,
                                         NULL);
}
