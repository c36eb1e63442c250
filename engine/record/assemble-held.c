/* Who holds memory, out of the ring: names of places and texts become the tape's.
 * SPDX-License-Identifier: MIT */
#include "assembler-private.h"

void
td__feed_held (TdAssembler *a, const TdRawHead *head)
{
  TdTapeHeld *h = a->state.in_iteration && a->held.n <= TD_TAPE_MAX_HELD
                      ? td__list_add (&a->held, sizeof *h)
                      : NULL;

  if (h == NULL)
    return;
  *h = ((const TdRawHeld *)head)->held;
  h->site = td__alias (&a->sites, h->site).id;
  h->held_site = td__alias (&a->sites, h->held_site).id;
  h->holder_site = td__alias (&a->sites, h->holder_site).id;
  h->opdef = td__alias (&a->opdefs, h->opdef).id;
  h->held_opdef = td__alias (&a->opdefs, h->held_opdef).id;
  h->name = td__alias (&a->strings, h->name).id;
}
