/* Static functions as text and as JSON lines, and in `info`.
 * SPDX-License-Identifier: MIT */
#include "tape-dump.h"
#include "plural.h"

#include <inttypes.h>
#include <stdlib.h>

static const char *
function_name (const TdTapeReader *r, uint32_t id)
{
  const TdTapeChain *function = td_tape_reader_chain (r, id);

  return function != NULL ? td_tape_reader_string (r, function->name) : "?";
}

static void
dump_function (TapeDump *d, const TdTapeChain *c)
{
  char site[512];

  td_tape_reader_site_text (d->r, c->site, site, sizeof site);
  if (d->json)
    {
      TdJsonWriter *json = td__tape_begin_record (d, "static_chain");

      td__json_member_uint (json, "id", c->id);
      td__json_member_string (json, "name", td_tape_reader_string (d->r, c->name));
      td__json_member_string (json, "site", site);
      td__tape_end_record (d);
      return;
    }
  fprintf (d->out, "static function %u ", c->id);
  td__tape_put_line (d->out, td_tape_reader_string (d->r, c->name));
  fprintf (d->out, "%s%s\n", *site ? " " : "", site);
}

/* ------------------------------------------------------------------------- schedules */

static void
put_nodes (const TapeDump *d, const TdTapeSchedule *s, uint32_t first, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    {
      uint32_t node = s->operands[first + i];
      const TdTapeNode *o = &s->nodes[node];

      fprintf (d->out, "%sn%u:%u", i ? " " : "", node, o->value);
      td__tape_put_dims (d->out, s->dims + o->first_dim, o->ndim);
    }
}

static void
json_nodes (TdJsonWriter *json, const char *key, const TdTapeSchedule *s, uint32_t first,
            uint32_t n)
{
  td__json_key (json, key);
  td__json_begin_array (json);
  for (uint32_t i = 0; i < n; i++)
    {
      const uint32_t node = s->operands[first + i];
      const TdTapeNode *o = &s->nodes[node];

      td__json_begin_object (json);
      td__json_member_uint (json, "node", node);
      td__json_member_uint (json, "value", o->value);
      td__json_member_string (json, "dtype", td_tape_dtype_name (o->dtype));
      td__tape_json_shape (json, s->dims + o->first_dim, o->ndim);
      td__json_end_object (json);
    }
  td__json_end_array (json);
}

static void
json_step (TapeDump *d, const TdTapeSchedule *s, uint32_t i, const char *op)
{
  const TdTapeStep *t = &s->steps[i];
  TdJsonWriter *json = td__tape_begin_record (d, "step");

  td__json_member_uint (json, "schedule", s->head.id);
  td__json_member_uint (json, "step", i);
  td__json_member_uint (json, "list", t->list);
  td__json_member_string (json, "kind", td_tape_step_kind_name (t->kind));
  td__json_member_string (json, "fate", td_tape_fate_name (t->fate));
  td__json_member_string (json, "op", op);
  td__json_member_string (json, "link", td_tape_reader_path_text (d->r, t->path));
  td__tape_json_site (json, d->r, "site", t->site);
  td__json_member_uint (json, "event", t->event);
  td__json_key (json, "group");
  if (t->group == TD_TAPE_NO_GROUP)
    td__json_null (json);
  else
    td__json_uint (json, t->group);
  json_nodes (json, "in", s, t->first_in, t->n_in);
  json_nodes (json, "out", s, t->first_out, t->n_out);
  if (t->why)
    td__json_member_string (json, "why", td_tape_reader_string (d->r, t->why));
  td__tape_end_record (d);
}

static void
dump_step (TapeDump *d, const TdTapeSchedule *s, uint32_t i)
{
  const TdTapeStep *t = &s->steps[i];
  const char *op = t->opdef ? td_tape_reader_op_name (d->r, t->opdef) : "";
  char site[512];

  if (d->json)
    {
      json_step (d, s, i, op);
      return;
    }
  td_tape_reader_site_text (d->r, t->site, site, sizeof site);
  fprintf (d->out, "  %u list %u %s", i, t->list, td_tape_step_kind_name (t->kind));
  if (*op)
    fprintf (d->out, " %s", op);
  if (t->fate != TD_TAPE_FATE_RUNS)
    fprintf (d->out, " %s", td_tape_fate_name (t->fate));
  if (t->kind == TD_TAPE_STEP_GROUP)
    fprintf (d->out, " of %u", t->group);
  else if (t->group != TD_TAPE_NO_GROUP)
    fprintf (d->out, " in %u", t->group);
  fprintf (d->out, "%s%s : ", *site ? " " : "", site);
  put_nodes (d, s, t->first_in, t->n_in);
  fputs (" -> ", d->out);
  put_nodes (d, s, t->first_out, t->n_out);
  if (t->why)
    {
      fputs ("  (", d->out);
      td__tape_put_line (d->out, td_tape_reader_string (d->r, t->why));
      fputc (')', d->out);
    }
  fputc ('\n', d->out);
}

static void
dump_value (TapeDump *d, const TdTapeSchedule *s, uint32_t i)
{
  const TdTapeValue *v = &s->values[i];
  bool placed = v->offset != TD_TAPE_NO_OFFSET;

  if (d->json)
    {
      TdJsonWriter *json = td__tape_begin_record (d, "value");

      td__json_member_uint (json, "schedule", s->head.id);
      td__json_member_uint (json, "value", i);
      td__json_member_string (json, "kind", td_tape_value_kind_name (v->kind));
      td__json_member_uint (json, "bytes", v->bytes);
      td__json_key (json, "offset");
      if (placed)
        td__json_uint (json, v->offset);
      else
        td__json_null (json);
      td__json_member_int (json, "first", (int)v->first);
      td__json_member_int (json, "last", (int)v->last);
      td__tape_end_record (d);
      return;
    }
  fprintf (d->out, "  value %u %s %" PRIu64 " %s", i, td_tape_value_kind_name (v->kind),
           v->bytes, td_plural (v->bytes, "byte", "bytes"));
  if (placed)
    fprintf (d->out, " at %" PRIu64, v->offset);
  if (v->first != TD_TAPE_NO_GROUP)
    fprintf (d->out, " steps %u to %u", v->first, v->last);
  fputc ('\n', d->out);
}

static void
dump_guard (TapeDump *d, const TdTapeSchedule *s, const TdTapeGuard *g)
{
  char site[512];

  td_tape_reader_site_text (d->r, g->site, site, sizeof site);
  if (d->json)
    {
      TdJsonWriter *json = td__tape_begin_record (d, "guard");

      td__json_member_uint (json, "schedule", s->head.id);
      td__json_member_string (json, "guard", td_tape_reader_string (d->r, g->guard));
      td__json_member_string (json, "text", td_tape_reader_string (d->r, g->text));
      td__json_member_string (json, "site", site);
      td__tape_end_record (d);
      return;
    }
  fputs ("  guard ", d->out);
  td__tape_put_line (d->out, td_tape_reader_string (d->r, g->guard));
  fputs (": ", d->out);
  td__tape_put_line (d->out, td_tape_reader_string (d->r, g->text));
  fprintf (d->out, "%s%s\n", *site ? " " : "", site);
}

static void
dump_schedule (TapeDump *d, const TdTapeSchedule *s)
{
  const TdTapeScheduleHead *h = &s->head;

  if (d->json)
    {
      TdJsonWriter *json = td__tape_begin_record (d, "schedule");

      td__json_member_uint (json, "id", h->id);
      td__json_member_uint (json, "chain", h->chain);
      td__json_member_string (json, "key", td_tape_reader_string (d->r, h->key));
      td__json_member_uint (json, "steps", s->n_steps);
      td__json_member_uint (json, "backwards", h->n_backwards);
      td__json_member_uint (json, "arena_bytes", h->arena_bytes);
      td__json_member_uint (json, "lower_bound", h->lower_bound);
      td__json_member_uint (json, "pruned", h->n_pruned);
      td__json_member_uint (json, "folded", h->n_folded);
      td__json_member_uint (json, "merged", h->n_merged);
      td__json_member_uint (json, "fused", h->n_fused);
      td__json_member_uint (json, "in_place", h->n_in_place);
      td__tape_end_record (d);
    }
  else
    {
      fprintf (d->out, "schedule %u of ", h->id);
      td__tape_put_line (d->out, function_name (d->r, h->chain));
      fprintf (d->out, " [");
      td__tape_put_line (d->out, td_tape_reader_string (d->r, h->key));
      fprintf (d->out, "] %u %s %u %s arena %" PRIu64 " %s bound %" PRIu64 "\n", s->n_steps,
               td_plural (s->n_steps, "step", "steps"), h->n_backwards,
               td_plural (h->n_backwards, "backward", "backwards"), h->arena_bytes,
               td_plural (h->arena_bytes, "byte", "bytes"), h->lower_bound);
    }
  for (uint32_t i = 0; i < s->n_steps; i++)
    dump_step (d, s, i);
  for (uint32_t i = 0; i < s->n_values; i++)
    dump_value (d, s, i);
  for (uint32_t i = 0; i < s->n_guards; i++)
    dump_guard (d, s, &s->guards[i]);
}

static void
json_static_event (TapeDump *d, const TdTapeStaticEvent *e)
{
  TdJsonWriter *json = td__tape_begin_record_of (d, "static_event", e->iteration);

  td__json_member_uint (json, "chain", e->chain);
  td__json_member_string (json, "what", td_tape_static_event_name (e->what));
  td__json_member_uint (json, "schedule", e->schedule);
  td__json_member_string (json, "guard", td_tape_reader_string (d->r, e->guard));
  td__json_member_string (json, "text", td_tape_reader_string (d->r, e->text));
  td__tape_json_site (json, d->r, "site", e->site);
  td__tape_json_site (json, d->r, "other_site", e->other_site);
  td__tape_end_record (d);
}

static void
dump_static_event (TapeDump *d, const TdTapeStaticEvent *e)
{
  char site[512], other[512];

  if (d->json)
    {
      json_static_event (d, e);
      return;
    }
  td_tape_reader_site_text (d->r, e->site, site, sizeof site);
  td_tape_reader_site_text (d->r, e->other_site, other, sizeof other);
  fprintf (d->out, "static iteration %" PRIu64 " ", e->iteration);
  td__tape_put_line (d->out, function_name (d->r, e->chain));
  fprintf (d->out, " %s", td_tape_static_event_name (e->what));
  if (e->schedule)
    fprintf (d->out, " schedule %u", e->schedule);
  if (e->text)
    {
      fputs (": ", d->out);
      td__tape_put_line (d->out, td_tape_reader_string (d->r, e->text));
    }
  fprintf (d->out, "%s%s%s%s\n", *site ? " " : "", site, *other ? " and " : "", other);
}

void
td__tape_dump_statics (TapeDump *d)
{
  char error[256];

  for (uint32_t id = 1; id <= td_tape_reader_n_chains (d->r); id++)
    if (td_tape_reader_chain (d->r, id) != NULL)
      dump_function (d, td_tape_reader_chain (d->r, id));
  for (uint32_t id = 1; id <= td_tape_reader_n_schedules (d->r); id++)
    {
      const TdTapeSchedule *s = td_tape_schedule_load (d->r, id, error, sizeof error);

      if (s != NULL)
        dump_schedule (d, s);
      td_tape_schedule_free (s);
    }
  for (uint32_t i = 0; i < td_tape_reader_n_static_events (d->r); i++)
    dump_static_event (d, td_tape_reader_static_event (d->r, i));
}

static void
dump_runs (TapeDump *d, const TdTapeIteration *it)
{
  for (uint32_t i = 0; i < it->n_runs; i++)
    {
      const TdTapeRun *r = &it->runs[i];
      const char *kind = td_tape_run_kind_name (r->kind);

      if (d->json)
        {
          TdJsonWriter *json = td__tape_begin_record_of (d, "static_run", it->number);

          td__json_member_uint (json, "chain", r->chain);
          td__json_member_uint (json, "schedule", r->schedule);
          td__json_member_uint (json, "list", r->list);
          td__json_member_string (json, "kind", kind);
          td__json_member_uint (json, "begin", r->begin);
          td__json_member_uint (json, "end", r->end);
          td__json_member_uint (json, "ns", r->ns);
          td__json_member_bool (json, "discarded", r->flags & TD_TAPE_RUN_DISCARDED);
          td__tape_end_record (d);
        }
      else
        {
          fputs ("  run ", d->out);
          td__tape_put_line (d->out, function_name (d->r, r->chain));
          fprintf (d->out, " %s list %u events %u to %u%s%s\n", kind, r->list, r->begin, r->end,
                   r->flags & TD_TAPE_RUN_DISCARDED ? " discarded" : "",
                   r->flags & TD_TAPE_RUN_OPEN ? " open" : "");
        }
    }
}

static void
dump_traced (TapeDump *d, const TdTapeIteration *it)
{
  char site[512];

  for (uint32_t i = 0; i < it->n_traced; i++)
    {
      const TdTapeTraced *t = &it->traced[i];
      const char *kind = td_tape_step_kind_name (t->kind);
      const char *op = t->opdef ? td_tape_reader_op_name (d->r, t->opdef) : "";

      td_tape_reader_site_text (d->r, t->site, site, sizeof site);
      if (d->json)
        {
          TdJsonWriter *json = td__tape_begin_record_of (d, "traced", it->number);

          td__json_member_uint (json, "chain", t->chain);
          td__json_member_uint (json, "list", t->list);
          td__json_member_uint (json, "number", t->number);
          td__json_member_string (json, "kind", kind);
          td__json_member_uint (json, "event", t->event);
          td__json_member_string (json, "op", op);
          td__json_member_string (json, "site", site);
          td__tape_end_record (d);
          continue;
        }
      fputs ("  traced ", d->out);
      td__tape_put_line (d->out, function_name (d->r, t->chain));
      fprintf (d->out, " list %u entry %u %s%s%s event %u%s%s\n", t->list, t->number, kind,
               *op ? " " : "", op, t->event, *site ? " " : "", site);
    }
}

void
td__tape_dump_iteration_statics (TapeDump *d, const TdTapeIteration *it)
{
  dump_runs (d, it);
  dump_traced (d, it);

  for (uint32_t i = 0; i < it->n_statics; i++)
    {
      const TdTapeStatic *s = &it->statics[i];

      if (d->json)
        {
          TdJsonWriter *json = td__tape_begin_record_of (d, "static", it->number);

          td__json_member_uint (json, "chain", s->chain);
          td__json_member_uint (json, "schedule", s->schedule);
          td__json_member_string (json, "state", td_tape_chain_state_name (s->state));
          td__json_member_uint (json, "replays", s->n_replays);
          td__json_member_uint (json, "dynamic", s->n_dynamic);
          td__json_member_uint (json, "all_replays", s->all_replays);
          td__json_member_uint (json, "all_dynamic", s->all_dynamic);
          td__tape_end_record (d);
        }
      else
        {
          fputs ("  static ", d->out);
          td__tape_put_line (d->out, function_name (d->r, s->chain));
          fprintf (d->out, " %s: %u replayed, %u dynamic\n",
                   td_tape_chain_state_name (s->state), s->n_replays, s->n_dynamic);
        }
    }
}

/* ------------------------------------------------------------------------------ info */

typedef struct
{
  uint64_t replays, dynamic;
  uint64_t unverified_since; /* the earliest of all functions, plus 1; 0: there is none */
} Calls;

/* What the newest iteration that is stored says. */
static Calls
count_calls (TdTapeReader *r)
{
  TdTapeSummaries all = td_tape_reader_summaries (r);
  Calls calls = { 0 };
  char error[128];

  for (uint32_t i = all.n, looked = 0; i-- > 0 && looked < 64; looked++)
    {
      const TdTapeIteration *it
          = td_tape_iteration_load (r, all.rows[i].number, error, sizeof error);
      bool any = it != NULL && it->n_statics > 0;

      for (uint32_t k = 0; any && k < it->n_statics; k++)
        {
          const uint64_t since = it->statics[k].unverified_since;

          calls.replays += it->statics[k].all_replays;
          calls.dynamic += it->statics[k].all_dynamic;
          if (since > 0 && (calls.unverified_since == 0 || since < calls.unverified_since))
            calls.unverified_since = since;
        }
      td_tape_iteration_free (it);
      if (any)
        break;
    }
  return calls;
}

static void
json_calls (TdJsonWriter *json, const TdTapeReader *r, const Calls *calls)
{
  td__json_key (json, "static");
  td__json_begin_object (json);
  td__json_member_uint (json, "chains", td_tape_reader_n_chains (r));
  td__json_member_uint (json, "schedules", td_tape_reader_n_schedules (r));
  td__json_member_uint (json, "replays", calls->replays);
  td__json_member_uint (json, "dynamic", calls->dynamic);
  td__json_key (json, "unverified_since");
  if (calls->unverified_since > 0)
    td__json_uint (json, calls->unverified_since - 1);
  else
    td__json_null (json);
  td__json_end_object (json);
}

void
td__tape_info_statics (TdTapeReader *r, FILE *out, TdJsonWriter *json)
{
  const uint32_t n = td_tape_reader_n_chains (r), n_schedules = td_tape_reader_n_schedules (r);
  Calls calls;

  if (n == 0)
    return;
  calls = count_calls (r);
  if (json)
    {
      json_calls (json, r, &calls);
      return;
    }
  fprintf (out,
           "static functions %u, %u schedule%s, %" PRIu64 " call%s replayed, %" PRIu64
           " by code",
           n, n_schedules, n_schedules == 1 ? "" : "s", calls.replays,
           calls.replays == 1 ? "" : "s", calls.dynamic);
  if (calls.unverified_since > 0)
    fprintf (out, ", unverified since iteration %" PRIu64, calls.unverified_since - 1);
  fputc ('\n', out);
}
