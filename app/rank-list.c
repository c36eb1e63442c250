/* The ranks of a run as a client sees them: see rank-list.h.
 *
 * SPDX-License-Identifier: MIT */
#include "rank-list.h"

#include <stdio.h>

enum
{
  ROOM = 900 /* for one rank, escaped */
};

/* As its page says; of another machine it may be old. */
static const char *
state_of (const TdWhere *where, const TdWherePage *p)
{
  if (atomic_load (&p->ended))
    return "ended";
  if (atomic_load (&p->pid) == 0)
    return "unknown";
  if (atomic_load (&p->standing) || atomic_load (&p->stands))
    return "stopped";
  if (atomic_load (&p->waits))
    return "waits";
  return td__where_is_here (where, p) ? "running" : "unknown";
}

static void
write_rank (TdJsonWriter *json, const TdWhere *where, int rank)
{
  const TdWherePage *p = td__where_page (where, rank);
  const bool stands = atomic_load (&p->standing) != 0;
  const uint64_t place = atomic_load (&p->begun);
  char text[300];

  td__json_begin_object (json);
  td__json_member_int (json, "rank", rank);
  td__json_member_int (json, "pid", atomic_load (&p->pid));
  td__json_member_string (json, "state", state_of (where, p));
  td__json_member_uint (json, "calls", place >> 32);
  td__json_member_uint (json, "since", (uint32_t)place / 2);
  snprintf (text, sizeof text, "%.127s", stands ? p->at_op : p->now.op);
  td__json_member_string (json, "op", text);
  snprintf (text, sizeof text, "%.255s", stands ? p->at_where : p->now.where);
  td__json_member_string (json, "where", text);
  if (atomic_load (&p->waits))
    {
      snprintf (text, sizeof text, "%.39s", p->call);
      td__json_member_string (json, "call", text);
    }
  if (td__where_is_here (where, p) && p->address[0] != '\0')
    {
      snprintf (text, sizeof text, "%.107s", p->address);
      td__json_member_string (json, "socket", text);
    }
  td__json_end_object (json);
}

const char *
td_rank_list (TdJsonLine *line, const TdWhere *where, int first)
{
  TdJsonWriter *json = td__json_line_begin (line, NULL);

  td__json_member_bool (json, "ok", true);
  td__json_member_int (json, "rank", where->rank);
  td__json_member_int (json, "n", where->n);
  td__json_key (json, "ranks");
  td__json_begin_array (json);
  for (int r = first; r < where->n && td__json_line_room (line) > ROOM; r++)
    write_rank (json, where, r);
  td__json_end_array (json);
  return td__json_line_end (line);
}
