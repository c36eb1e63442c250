/* What ranks must have in common for their weights to stay alike, though nobody sends it:
 * hyperparameters, which parameters are frozen, and hooks.
 *
 * Each update compares a digest of them, in the meeting that there is anyway; the lines are
 * written only where it differs.
 *
 * SPDX-License-Identifier: MIT */
#include "optimizer-state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  NUMBER = 40
};

/* The shortest text that is this number. */
static const char *
number_text (double value, char *text)
{
  snprintf (text, NUMBER, "%.9g", value);
  if (strtod (text, NULL) != value)
    snprintf (text, NUMBER, "%.17g", value);
  return text;
}

/* --- the digest --- */

static uint64_t
digest_number (uint64_t digest, double value)
{
  return td__digest (digest, &value, sizeof value);
}

static uint64_t
digest_hooks (uint64_t digest, const TdOptHook *hooks)
{
  for (const TdOptHook *h = hooks; h != NULL; h = h->next)
    {
      digest = td__digest (digest, h->name, strlen (h->name) + 1);
      digest = td__digest (digest, h->value, sizeof h->value);
      digest = td__digest (digest, &h->post, sizeof h->post);
    }
  return digest;
}

static bool
is_frozen (const TdOptSlot *slot, const TdOptRule *rule)
{
  return (slot->param->flags & TD_VAR_FIXED) || (rule != NULL && rule->disabled);
}

/* What slot i has of its own, if that is not what all have. */
static uint64_t
digest_rule (uint64_t digest, const TdOpt *opt, int i, const TdOptRule *rule)
{
  const TdOpClass *op = opt->cls->op;

  for (int a = 0; a < op->n_attrs; a++)
    {
      const double own = td__opt_hyper_get (&rule->u, &op->attrs[a]);
      const int place[] = { i, a };

      if (!(rule->own >> a & 1) || own == td__opt_hyper_get (&opt->u, &op->attrs[a]))
        continue;
      digest = td__digest (digest, place, sizeof place);
      digest = digest_number (digest, own);
    }
  if (rule->hooks != NULL)
    digest = td__digest (digest, &i, sizeof i);
  return digest_hooks (digest, rule->hooks);
}

uint64_t
td__opt_settings_digest (const TdOpt *opt)
{
  const TdOpClass *op = opt->cls->op;
  const bool whole[] = { opt->fp32_update, opt->dynamic };
  uint64_t digest = td__digest (0, whole, sizeof whole);

  for (int a = 0; a < op->n_attrs; a++)
    digest = digest_number (digest, td__opt_hyper_get (&opt->u, &op->attrs[a]));
  digest = digest_number (digest, opt->initial_lr);
  /* A dynamic scale is found by all in the same way, and known to their hosts at any time. */
  digest = digest_number (digest, opt->dynamic ? opt->growth : opt->scale);
  digest = digest_hooks (digest, opt->hooks);
  for (int i = 0; i < opt->n_slots; i++)
    {
      const TdOptSlot *slot = &opt->slots[i];
      const TdOptRule *rule = opt->n_rules > 0 ? td__opt_rule (opt, slot->param_id) : NULL;
      const bool frozen = is_frozen (slot, rule);

      digest = td__digest (digest, &frozen, sizeof frozen);
      if (rule != NULL)
        digest = digest_rule (digest, opt, i, rule);
    }
  return digest;
}

/* --- the lines --- */

/* "hook 1 WeightDecay 0.5 of l1/W": their number in the order in which they run, as other ranks
 * may have the same in another order.  The last line ends the list: one rank has a hook there
 * where another has none. */
static void
put_hooks (TdLines *lines, const TdOptHook *hooks, const char *of)
{
  int place = 1;

  for (const TdOptHook *h = hooks; h != NULL; h = h->next)
    {
      char numbers[3 * (NUMBER + 1)] = "", text[NUMBER];
      int n = 3;

      while (n > 0 && h->value[n - 1] == 0)
        n--;
      for (int i = 0; i < n; i++)
        {
          strcat (numbers, " ");
          strcat (numbers, number_text (h->value[i], text));
        }
      td__lines_put (lines, "hook %d %.40s%s%s%s", place++, h->name, numbers,
                     h->post ? " after the update" : "", of);
    }
  if (place == 1)
    td__lines_put (lines, "no hook%s", of);
  else
    td__lines_put (lines, "no hook %d%s", place, of);
}

static void
put_hypers (TdLines *lines, const TdOpt *opt, const TdUpdate *u, const char *of)
{
  const TdOpClass *op = opt->cls->op;
  char text[NUMBER];

  for (int a = 0; a < op->n_attrs; a++)
    td__lines_put (lines, "%s %s%s", op->attrs[a].name,
                   number_text (td__opt_hyper_get (u, &op->attrs[a]), text), of);
}

static void
put_slot (TdLines *lines, const TdOpt *opt, const TdOptSlot *slot)
{
  const TdOptRule *rule = td__opt_rule (opt, slot->param_id);
  const TdUpdate u = td__opt_hyper_of (opt, slot->param_id);
  char of[80];

  snprintf (of, sizeof of, " of %.70s", slot->key);
  td__lines_put (lines, "%.60s %s", slot->key, is_frozen (slot, rule) ? "frozen" : "updated");
  put_hypers (lines, opt, &u, of);
  put_hooks (lines, rule != NULL ? rule->hooks : NULL, of);
}

TdStatus
td__opt_settings_explain (TdComm *comm, const TdOpt *opt, TdMeetKind kind, const TdSite *site)
{
  TdLines lines = { NULL, 0 };
  char text[NUMBER];
  TdStatus status;

  put_hypers (&lines, opt, &opt->u, "");
  td__lines_put (&lines, "initial lr %s", number_text (opt->initial_lr, text));
  td__lines_put (&lines, "fp32 update %s", opt->fp32_update ? "on" : "off");
  if (opt->dynamic)
    td__lines_put (&lines, "a dynamic loss scale, growing by %s",
                   number_text (opt->growth, text));
  else
    td__lines_put (&lines, "loss scale %s", number_text (opt->scale, text));
  put_hooks (&lines, opt->hooks, "");
  for (int i = 0; i < opt->n_slots; i++)
    put_slot (&lines, opt, &opt->slots[i]);
  status = td__explain (comm, &lines, "optimizers differ: ", "; give all ranks the same", kind,
                        site);
  td__lines_clear (&lines);
  return status;
}
