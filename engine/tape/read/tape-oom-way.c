/* Chains of references in reports of memory that ran out: read, and said in words.
 * SPDX-License-Identifier: MIT */
#include "td-tape-oom-way.h"
#include "tape-oom.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Not trusted: what does not fit is left out. */
void
td__tape_take_oom_links (TapeArray *to, const char *bytes, size_t n, uint32_t n_holders,
                         uint32_t first_holder)
{
  TdTapeOomLinks head;
  TdTapeOomLink *more;

  if (n < sizeof head)
    return;
  td__tape_take (&head, sizeof head, bytes, n);
  if (head.link_bytes < 8 || head.n_links == 0
      || head.n_links > n_holders * TD_TAPE_MAX_OOM_LINKS
      || (uint64_t)head.n_links * head.link_bytes > n - sizeof head)
    return;
  more = realloc (to->items, (to->n + head.n_links) * sizeof *more);
  if (more == NULL)
    return;
  to->items = more;
  bytes += sizeof head;
  for (uint32_t i = 0; i < head.n_links; i++, bytes += head.link_bytes)
    {
      TdTapeOomLink *link = &more[to->n];

      td__tape_take (link, sizeof *link, bytes, head.link_bytes);
      if (link->holder_index >= n_holders || link->kind >= TD_TAPE_N_OOM_LINKS)
        continue;
      link->holder_index += first_holder;
      to->n++;
    }
  to->room = to->n;
}

const TdTapeOomLink *
td_tape_reader_oom_links (const TdTapeReader *r, uint32_t i, uint32_t holder, uint32_t *n)
{
  const TdTapeOom *oom = td_tape_reader_oom (r, i);
  const TdTapeOomLink *all = r->oom_links.items, *first = NULL;

  *n = 0;
  if (oom == NULL || holder >= oom->n_holders)
    return NULL;
  for (uint32_t k = 0; k < r->oom_links.n && *n < TD_TAPE_MAX_OOM_LINKS; k++)
    if (all[k].holder_index == oom->first_holder + holder)
      {
        first = first != NULL ? first : &all[k];
        ++*n;
      }
    else if (first != NULL)
      break;
  return first;
}

static size_t
put_link (const TdTapeReader *r, const TdTapeOomLink *link, char *out, size_t n)
{
  const char *path = td_tape_reader_path_text (r, link->path),
             *name = td_tape_reader_string (r, link->name);
  char site[200];
  int used;

  td_tape_reader_site_text (r, link->site, site, sizeof site);
  if (link->kind == TD_TAPE_OOM_LINK_GRADIENT)
    used = snprintf (out, n, "its gradient");
  else if (link->kind == TD_TAPE_OOM_LINK_OPERATION)
    used = snprintf (out, n, "%.60s%s%.80s%s", td_tape_reader_string (r, link->op),
                     *site ? " (" : "", site, *site ? ")" : "");
  else
    used = snprintf (out, n, "%s%s%.80s%s%.60s%s%s%s", td_tape_holder_name (link->holder),
                     *path || *name ? " " : "", path, *path && *name ? "/" : "", name,
                     *site ? " (" : "", site, *site ? ")" : "");
  return used < 0 ? 0 : (size_t)used < n ? (size_t)used : n - 1;
}

void
td_tape_oom_way (const TdTapeReader *r, uint32_t i, uint32_t holder, char *out, size_t n)
{
  uint32_t n_links;
  const TdTapeOomLink *links = td_tape_reader_oom_links (r, i, holder, &n_links);
  size_t used = 0;

  *out = '\0';
  for (uint32_t k = 0; n_links > 1 && k < n_links && used + 1 < n; k++)
    {
      int more = 0;

      if (links[k].left_out > 0)
        more = snprintf (out + used, n - used, " -> %u more", links[k].left_out);
      used += more > 0 ? (size_t)more : 0;
      if (k > 0 && used < n)
        used += (size_t)snprintf (out + used, n - used, " -> ");
      if (used < n)
        used += put_link (r, &links[k], out + used, n - used);
    }
}
