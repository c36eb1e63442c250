/* A static function for the model of the tape's tests: y = relu(relu(x W)) with a backward.
 * SPDX-License-Identifier: MIT */
#include "model-static.h"

#include <string.h>

#define G TD_TAPE_NO_GROUP
#define OP TD_TAPE_STEP_OP
#define N TD_TAPE_NO_OFFSET

/* n0 x, n1 W, n2 x W, n3 relu, n4 y, n5 gy, n6, n7 gradients inside, n8 gW, n9 never used */
static const uint32_t operands[] = { 0, 1, 2, 2, 3, 3, 4, 2, 4, 5, 3, 6, 6, 2, 7, 7, 0, 8, 9 };
static const TdTapeStep steps[] = {
  { OP, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 2, 2, 1, 1, 0, G },
  { TD_TAPE_STEP_GROUP, 0, 0, 0, 0, 0, 1, 0, 0, 0, 7, 1, 8, 1, 0, 0, 2 },
  { OP, 0, 0, 0, 0, 2, 1, 0, 0, 0, 3, 1, 4, 1, 2, 0, 1 },
  { OP, 0, 0, 0, 0, 2, 2, 0, 0, 0, 5, 1, 6, 1, 3, 0, 1 },
  { OP, 0, TD_TAPE_FATE_PRUNED, 0, 0, 2, 2, 0, 0, 0, 5, 1, 18, 1, 4, 0, G },
  { OP, 1, 0, 0, 1, 5, 2, 0, 0, 0, 9, 2, 11, 1, 1, 3, G },
  { OP, 1, 0, 0, 1, 5, 1, 0, 0, 0, 12, 2, 14, 1, 2, 2, G },
  { OP, 1, 0, 1, 1, 4, 1, 1, 0, 0, 15, 2, 17, 1, 3, 1, G },
};
static const TdTapeNode nodes[] = {
  { 0, 0, 0, 0, 2, 5, 0 }, { 1, 0, 2, 0, 2, 1, 1 }, { 2, 0, 0, 0, 2, 3, 1 },
  { 3, 0, 0, 0, 2, 3, 1 }, { 4, 0, 0, 0, 2, 3, 1 }, { 5, 0, 0, 0, 2, 2, 0 },
  { 6, 0, 0, 0, 2, 2, 0 }, { 7, 0, 0, 0, 2, 2, 0 }, { 8, 0, 2, 0, 2, 2, 0 },
  { 9, 0, 0, 0, 2, 3, 0 },
};
static const int64_t dims[] = { 4, 8, 8, 8 };
/* value 7 takes the place of value 6, which ends in its step */
static const TdTapeValue values[] = {
  { 128, N, 0, 0, 0, TD_TAPE_VALUE_EXTERNAL, 0, 0 },
  { 256, N, 1, 0, 0, TD_TAPE_VALUE_EXTERNAL, 0, 0 },
  { 128, 0, 0, 0, 0, TD_TAPE_VALUE_INTERIOR, TD_TAPE_VALUE_SAVED, 1 },
  { 128, 128, 0, 0, 0, TD_TAPE_VALUE_INTERIOR, TD_TAPE_VALUE_SAVED, 1 },
  { 128, N, 0, 0, 0, TD_TAPE_VALUE_OUTPUT, 0, 1 },
  { 128, N, 0, 0, 0, TD_TAPE_VALUE_GY, 0, 0 },
  { 128, 256, 0, 0, 0, TD_TAPE_VALUE_INTERIOR, 0, 1 },
  { 128, 256, 0, 0, 0, TD_TAPE_VALUE_INTERIOR, 0, 1 },
  { 256, N, 0, 0, 0, TD_TAPE_VALUE_GRADIENT, 0, 1 },
  { 128, N, 0, 0, 0, TD_TAPE_VALUE_INTERIOR, 0, 0 },
};

TdTapeSchedule
model_schedule (void)
{
  return (TdTapeSchedule){ .size = sizeof (TdTapeSchedule),
                           .n_steps = 8,
                           .n_operands = 19,
                           .n_nodes = 10,
                           .n_dims = 4,
                           .n_values = 10,
                           .head = { .chain = 1,
                                     .n_backwards = 1,
                                     .arena_bytes = 384,
                                     .lower_bound = 384,
                                     .n_arguments = 1,
                                     .n_externals = 2,
                                     .n_outputs = 1,
                                     .n_pruned = 1,
                                     .n_fused = 2,
                                     .n_in_place = 1 },
                           .steps = steps,
                           .operands = operands,
                           .nodes = nodes,
                           .dims = dims,
                           .values = values };
}

void
model_function (Model *m)
{
  uint32_t name = model_string (m, "block");
  TdRawFunction *c = model_record (m, TD_RAW_STATIC_FUNCTION, 0, sizeof *c);

  c->function = (TdTapeChain){ .id = 1, .name = name, .site = 2 };
  model_publish (m, c);
}

static size_t
put (char *to, const void *from, size_t n)
{
  memcpy (to, from, n);
  return (n + 7) & ~(size_t)7;
}

void
model_plan (Model *m, uint32_t number, uint32_t part)
{
  const TdTapeGuard guard
      = { model_string (m, "argument"), model_string (m, "x (4, 8)"), 1, 0 };
  TdTapeSchedule s = model_schedule ();
  TdRawScheduleHead head = { s.head, 8, 19, 10, 4, 10, 1 };
  char bytes[4096] = { 0 };
  size_t n = 0;

  head.head.key = model_string (m, "(4, 8), train");
  n += put (bytes + n, &head, sizeof head);
  n += put (bytes + n, steps, sizeof steps);
  n += put (bytes + n, operands, sizeof operands);
  n += put (bytes + n, nodes, sizeof nodes);
  n += put (bytes + n, dims, sizeof dims);
  n += put (bytes + n, values, sizeof values);
  n += put (bytes + n, &guard, sizeof guard);
  for (size_t at = 0; at < n; at += part)
    {
      uint32_t length = n - at < part ? (uint32_t)(n - at) : part;
      TdRawSchedule *raw = model_record (m, TD_RAW_SCHEDULE, 0, sizeof *raw + length);

      raw->schedule = number;
      raw->length = length;
      raw->total = n;
      raw->offset = at;
      memcpy (raw->bytes, bytes + at, length);
      model_publish (m, raw);
    }
}

void
model_static_event (Model *m, unsigned what, uint32_t schedule, const char *text)
{
  uint32_t id = text != NULL ? model_string (m, text) : 0;
  TdRawStaticEvent *e = model_record (m, TD_RAW_STATIC_EVENT, 0, sizeof *e);

  e->ticks = td_ring_ticks ();
  e->event = (TdTapeStaticEvent){ .chain = 1,
                                  .schedule = schedule,
                                  .what = what,
                                  .text = id,
                                  .site = text != NULL ? 1 : 0,
                                  .other_site = what == TD_TAPE_STATIC_DIFFERS ? 2 : 0 };
  model_publish (m, e);
}

void
model_static_state (Model *m, unsigned state, uint32_t schedule, uint32_t replays,
                    uint64_t all_replays)
{
  TdRawStatic *s = model_record (m, TD_RAW_STATIC, 0, sizeof *s);

  s->state = (TdTapeStatic){ .chain = 1,
                             .schedule = schedule,
                             .state = state,
                             .n_replays = replays,
                             .n_dynamic = replays == 0,
                             .all_replays = all_replays,
                             .all_dynamic = 1,
                             .unverified_since = replays > 0 ? 2 : 0 };
  model_publish (m, s);
}

void
model_run (Model *m, unsigned moment, unsigned kind, uint32_t schedule, uint32_t list)
{
  TdRawStaticRun *r = model_record (m, TD_RAW_STATIC_RUN, (uint16_t)moment, sizeof *r);

  r->ticks = td_ring_ticks ();
  r->run = (TdTapeRun){ .chain = 1, .schedule = schedule, .list = list, .kind = (uint8_t)kind };
  model_publish (m, r);
}

void
model_entry (Model *m, uint32_t list, uint32_t number, unsigned kind, uint32_t opdef)
{
  TdRawStaticEntry *e = model_record (m, TD_RAW_STATIC_ENTRY, 0, sizeof *e);

  e->entry = (TdTapeTraced){ .chain = 1,
                             .list = list,
                             .number = number,
                             .kind = (uint8_t)kind,
                             .opdef = opdef,
                             .site = 1,
                             .path = 1 };
  model_publish (m, e);
}
