/* Static functions as text and as JSON lines, and in `info`.
 * SPDX-License-Identifier: MIT */
#include "tape-dump.h"

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
      fprintf (d->out, "{\"record\":\"static_chain\",\"id\":%u,\"name\":", c->id);
      td__tape_put_string (d->out, td_tape_reader_string (d->r, c->name));
      fputs (",\"site\":", d->out);
      td__tape_put_string (d->out, site);
      fputs ("}\n", d->out);
      return;
    }
  fprintf (d->out, "static function %u ", c->id);
  td__tape_put_line (d->out, td_tape_reader_string (d->r, c->name));
  fprintf (d->out, "%s%s\n", *site ? " " : "", site);
}

/* ------------------------------------------------------------------------- schedules */

static void
put_nodes (TapeDump *d, const TdTapeSchedule *s, uint32_t first, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    {
      uint32_t node = s->operands[first + i];
      const TdTapeNode *o = &s->nodes[node];

      if (d->json)
        fprintf (d->out,
                 "%s{\"node\":%u,\"value\":%u,\"dtype\":\"%s\",\"shape\":", i ? "," : "", node,
                 o->value, td_tape_dtype_name (o->dtype));
      else
        fprintf (d->out, "%sn%u:%u", i ? " " : "", node, o->value);
      td__tape_put_dims (d->out, s->dims + o->first_dim, o->ndim, d->json);
      if (d->json)
        fputc ('}', d->out);
    }
}

static void
dump_step (TapeDump *d, const TdTapeSchedule *s, uint32_t i)
{
  const TdTapeStep *t = &s->steps[i];
  const char *op = t->opdef ? td_tape_reader_op_name (d->r, t->opdef) : "";
  char site[512];

  td_tape_reader_site_text (d->r, t->site, site, sizeof site);
  if (!d->json)
    {
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
      return;
    }
  fprintf (d->out, "{\"record\":\"step\",\"schedule\":%u,\"step\":%u,\"list\":%u", s->head.id,
           i, t->list);
  fprintf (d->out, ",\"kind\":\"%s\",\"fate\":\"%s\",\"op\":", td_tape_step_kind_name (t->kind),
           td_tape_fate_name (t->fate));
  td__tape_put_string (d->out, op);
  fputs (",\"link\":", d->out);
  td__tape_put_string (d->out, td_tape_reader_path_text (d->r, t->path));
  fputs (",\"site\":", d->out);
  td__tape_put_string (d->out, site);
  fprintf (d->out, ",\"event\":%u,\"group\":", t->event);
  if (t->group == TD_TAPE_NO_GROUP)
    fputs ("null", d->out);
  else
    fprintf (d->out, "%u", t->group);
  fputs (",\"in\":[", d->out);
  put_nodes (d, s, t->first_in, t->n_in);
  fputs ("],\"out\":[", d->out);
  put_nodes (d, s, t->first_out, t->n_out);
  fputc (']', d->out);
  if (t->why)
    {
      fputs (",\"why\":", d->out);
      td__tape_put_string (d->out, td_tape_reader_string (d->r, t->why));
    }
  fputs ("}\n", d->out);
}

static void
dump_value (TapeDump *d, const TdTapeSchedule *s, uint32_t i)
{
  const TdTapeValue *v = &s->values[i];
  bool placed = v->offset != TD_TAPE_NO_OFFSET;

  if (d->json)
    {
      fprintf (d->out,
               "{\"record\":\"value\",\"schedule\":%u,\"value\":%u,\"kind\":\"%s\",\"bytes\":"
               "%" PRIu64 ",\"offset\":",
               s->head.id, i, td_tape_value_kind_name (v->kind), v->bytes);
      if (placed)
        fprintf (d->out, "%" PRIu64, v->offset);
      else
        fputs ("null", d->out);
      fprintf (d->out, ",\"first\":%d,\"last\":%d}\n", (int)v->first, (int)v->last);
      return;
    }
  fprintf (d->out, "  value %u %s %" PRIu64 " bytes", i, td_tape_value_kind_name (v->kind),
           v->bytes);
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
      fprintf (d->out, "{\"record\":\"guard\",\"schedule\":%u,\"guard\":", s->head.id);
      td__tape_put_string (d->out, td_tape_reader_string (d->r, g->guard));
      fputs (",\"text\":", d->out);
      td__tape_put_string (d->out, td_tape_reader_string (d->r, g->text));
      fputs (",\"site\":", d->out);
      td__tape_put_string (d->out, site);
      fputs ("}\n", d->out);
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
      fprintf (d->out, "{\"record\":\"schedule\",\"id\":%u,\"chain\":%u,\"key\":", h->id,
               h->chain);
      td__tape_put_string (d->out, td_tape_reader_string (d->r, h->key));
      fprintf (d->out,
               ",\"steps\":%u,\"backwards\":%u,\"arena_bytes\":%" PRIu64
               ",\"lower_bound\":%" PRIu64,
               s->n_steps, h->n_backwards, h->arena_bytes, h->lower_bound);
      fprintf (d->out,
               ",\"pruned\":%u,\"folded\":%u,\"merged\":%u,\"fused\":%u,\"in_place\":%u}\n",
               h->n_pruned, h->n_folded, h->n_merged, h->n_fused, h->n_in_place);
    }
  else
    {
      fprintf (d->out, "schedule %u of ", h->id);
      td__tape_put_line (d->out, function_name (d->r, h->chain));
      fprintf (d->out, " [");
      td__tape_put_line (d->out, td_tape_reader_string (d->r, h->key));
      fprintf (d->out, "] %u steps %u backwards arena %" PRIu64 " bytes bound %" PRIu64 "\n",
               s->n_steps, h->n_backwards, h->arena_bytes, h->lower_bound);
    }
  for (uint32_t i = 0; i < s->n_steps; i++)
    dump_step (d, s, i);
  for (uint32_t i = 0; i < s->n_values; i++)
    dump_value (d, s, i);
  for (uint32_t i = 0; i < s->n_guards; i++)
    dump_guard (d, s, &s->guards[i]);
}

static void
dump_static_event (TapeDump *d, const TdTapeStaticEvent *e)
{
  char site[512], other[512];

  td_tape_reader_site_text (d->r, e->site, site, sizeof site);
  td_tape_reader_site_text (d->r, e->other_site, other, sizeof other);
  if (!d->json)
    {
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
      return;
    }
  fprintf (d->out,
           "{\"record\":\"static_event\",\"iteration\":%" PRIu64
           ",\"chain\":%u,\"what\":\"%s\",\"schedule\":%u,\"guard\":",
           e->iteration, e->chain, td_tape_static_event_name (e->what), e->schedule);
  td__tape_put_string (d->out, td_tape_reader_string (d->r, e->guard));
  fputs (",\"text\":", d->out);
  td__tape_put_string (d->out, td_tape_reader_string (d->r, e->text));
  fputs (",\"site\":", d->out);
  td__tape_put_string (d->out, site);
  fputs (",\"other_site\":", d->out);
  td__tape_put_string (d->out, other);
  fputs ("}\n", d->out);
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
        fprintf (d->out,
                 "{\"record\":\"static_run\",\"iteration\":%" PRIu64
                 ",\"chain\":%u,\"schedule\":%u,\"list\":%u,\"kind\":\"%s\",\"begin\":%u,"
                 "\"end\":%u,\"ns\":%" PRIu64 ",\"discarded\":%s}\n",
                 it->number, r->chain, r->schedule, r->list, kind, r->begin, r->end, r->ns,
                 r->flags & TD_TAPE_RUN_DISCARDED ? "true" : "false");
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
          fprintf (d->out,
                   "{\"record\":\"traced\",\"iteration\":%" PRIu64
                   ",\"chain\":%u,\"list\":%u,\"number\":%u,\"kind\":\"%s\",\"event\":%u,"
                   "\"op\":",
                   it->number, t->chain, t->list, t->number, kind, t->event);
          td__tape_put_string (d->out, op);
          fputs (",\"site\":", d->out);
          td__tape_put_string (d->out, site);
          fputs ("}\n", d->out);
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
        fprintf (d->out,
                 "{\"record\":\"static\",\"iteration\":%" PRIu64
                 ",\"chain\":%u,\"schedule\":%u,\"state\":\"%s\",\"replays\":%u,\"dynamic\":%u,"
                 "\"all_replays\":%" PRIu64 ",\"all_dynamic\":%" PRIu64 "}\n",
                 it->number, s->chain, s->schedule, td_tape_chain_state_name (s->state),
                 s->n_replays, s->n_dynamic, s->all_replays, s->all_dynamic);
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

/* Calls replayed and run by code, as the newest iteration that is stored says. */
static void
count_calls (TdTapeReader *r, uint64_t *replays, uint64_t *dynamic)
{
  TdTapeSummaries all = td_tape_reader_summaries (r);
  char error[128];

  for (uint32_t i = all.n, looked = 0; i-- > 0 && looked < 64; looked++)
    {
      const TdTapeIteration *it
          = td_tape_iteration_load (r, all.rows[i].number, error, sizeof error);
      bool any = it != NULL && it->n_statics > 0;

      for (uint32_t k = 0; any && k < it->n_statics; k++)
        {
          *replays += it->statics[k].all_replays;
          *dynamic += it->statics[k].all_dynamic;
        }
      td_tape_iteration_free (it);
      if (any)
        return;
    }
}

void
td__tape_info_statics (TdTapeReader *r, FILE *out, bool json)
{
  uint32_t n = td_tape_reader_n_chains (r);
  uint64_t replays = 0, dynamic = 0;

  if (n == 0)
    return;
  count_calls (r, &replays, &dynamic);
  if (json)
    fprintf (out,
             ",\"static\":{\"chains\":%u,\"schedules\":%u,\"replays\":%" PRIu64
             ",\"dynamic\":%" PRIu64 "}",
             n, td_tape_reader_n_schedules (r), replays, dynamic);
  else
    fprintf (out,
             "static functions %u, %u schedules, %" PRIu64 " calls replayed, %" PRIu64
             " by code\n",
             n, td_tape_reader_n_schedules (r), replays, dynamic);
}
