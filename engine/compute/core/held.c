/* Stored intermediates: what a program keeps of graphs that are over, and where it took hold.
 *
 * SPDX-License-Identifier: MIT */
#include "core.h"
#include "op-held.h"

TdOpHeld *td__op_held;

static const char *const holders[TD_HOLD_N] = {
  [TD_HOLD_SCOPE] = "scope",         [TD_HOLD_USER] = "td_retain",
  [TD_HOLD_LINK] = "link",           [TD_HOLD_GRADIENT] = "gradient",
  [TD_HOLD_OPTIMIZER] = "optimizer", [TD_HOLD_ENGINE] = "report",
};

/* The kind that is named: the program's own hold before those it has by way of others. */
static TdHold
first_holder (const TdVar *v)
{
  static const TdHold order[] = { TD_HOLD_USER,     TD_HOLD_LINK,      TD_HOLD_ENGINE,
                                  TD_HOLD_GRADIENT, TD_HOLD_OPTIMIZER, TD_HOLD_SCOPE };

  for (int i = 0; i < TD_ARRAY_LENGTH (order); i++)
    if (v->holds[order[i]] > 0)
      return order[i];
  return TD_HOLD_SCOPE;
}

int64_t
td_held_intermediates (void (*visit) (const TdHeld *held, void *user), void *user)
{
  const TdSlab *slab = &td__engine.vars;
  int64_t n = 0;

  if (td__check_thread ("td_held_intermediates") != TD_OK)
    return 0;
  for (size_t c = 0; c < slab->n_chunks; c++)
    for (size_t i = 0; i < TD_SLAB_ITEMS; i++)
      {
        TdVar *v = (TdVar *)(void *)((char *)slab->chunks[c] + i * slab->item_bytes);
        TdHold hold;
        TdHeld held;

        if (v->state != TD_VAR_LIVE || v->node->creator == NULL)
          continue;
        n++;
        if (visit == NULL)
          continue;
        hold = first_holder (v);
        held = (TdHeld){ .v = v,
                         .op = v->node->creator->cls->name,
                         .made = v->site,
                         .holder = holders[hold],
                         .held_at = hold == TD_HOLD_USER ? v->retained_site : NULL,
                         .bytes = v->buffer != NULL ? v->buffer->bytes : 0 };
        visit (&held, user);
      }
  return n;
}
