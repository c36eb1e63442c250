/* What a recorded program does: iterations, variables, operations, numbers.  Everything is
 * checked against what was said before.  SPDX-License-Identifier: MIT */
#include "producer-private.h"

#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------------- iterations */

static TdProducerStatus
end_iteration (TdProducer *p, uint64_t time_ns)
{
  TdRawIterationEnd *end;

  td__producer_flush_memory (p);
  /* Work outside goes up to the program's end, where everything is given up. */
  if (!p->outside)
    td__producer_mark (p);
  end = td__producer_record (p, TD_RAW_ITERATION_END, p->outside ? TD_RAW_WAS_OUTSIDE : 0,
                             sizeof *end);
  if (end == NULL)
    return TD_PRODUCER_MEMORY;
  end->ticks = td__producer_ticks (time_ns);
  td__producer_feed (p, end);
  td_tape_writer_flush (p->w);
  p->in_iteration = false;
  return td__producer_ready (p);
}

TdProducerStatus
td__producer_begin (TdProducer *p, uint32_t label, uint64_t time_ns, bool outside)
{
  TdRawIterationBegin *begin;

  if (label > p->n_texts)
    return td__producer_refuse (p, TD_PRODUCER_WRONG, "begin: there is no text %u", label);
  if (p->in_iteration && p->outside)
    end_iteration (p, time_ns);
  if (p->in_iteration)
    return td__producer_refuse (p, TD_PRODUCER_NOT_NOW, "begin: an iteration is open");
  begin = td__producer_record (p, TD_RAW_ITERATION_BEGIN, outside ? TD_RAW_OUTSIDE : 0,
                               sizeof *begin);
  if (begin == NULL)
    return TD_PRODUCER_MEMORY;
  begin->number = p->n_begun++;
  begin->first_id = p->first_id = p->newest_id + 1;
  begin->first_buffer = p->next_buffer;
  begin->ticks = td__producer_ticks (time_ns);
  begin->label = label != 0 ? label
                            : TD_TAPE_LABEL_NUMBER
                                  | (uint32_t)(begin->number & (TD_TAPE_LABEL_NUMBER - 1));
  td__producer_feed (p, begin);
  p->in_iteration = true;
  p->outside = outside;
  p->n_events = 0;
  p->orders.n = 0;
  return TD_PRODUCER_OK;
}

TdProducerStatus
td_producer_begin (TdProducer *p, uint32_t label, uint64_t time_ns)
{
  TdProducerStatus ready = td__producer_ready (p);

  return ready == TD_PRODUCER_OK ? td__producer_begin (p, label, time_ns, false) : ready;
}

TdProducerStatus
td__producer_end_iteration (TdProducer *p, uint64_t time_ns, bool outside)
{
  TdProducerStatus ready = td__producer_ready (p);

  if (ready != TD_PRODUCER_OK)
    return ready;
  if (!p->in_iteration)
    return td__producer_refuse (p, TD_PRODUCER_NOT_NOW, "end: no iteration is open");
  p->outside = p->outside || outside;
  return end_iteration (p, time_ns);
}

TdProducerStatus
td_producer_end_iteration (TdProducer *p, uint64_t time_ns)
{
  return td__producer_end_iteration (p, time_ns, false);
}

/* ------------------------------------------------------------------------- operations */

static TdProducerStatus
refuse_operation (TdProducer *p, const char *why)
{
  return td__producer_refuse (p, TD_PRODUCER_WRONG, "operation: %s", why);
}

static TdProducerStatus
check_operation (TdProducer *p, const TdProducerOperation *op)
{
  const unsigned known = TD_TAPE_EVENT_ACCUMULATED | TD_TAPE_EVENT_FAILED | TD_TAPE_EVENT_DOUBLE
                         | TD_TAPE_EVENT_NO_BACKPROP;

  if (op->kind == 0 || op->kind > p->n_kinds)
    return refuse_operation (p, "there is no such kind");
  if (op->phase >= TD_TAPE_N_PHASES)
    return refuse_operation (p, "there is no such phase");
  if (op->place > p->n_places)
    return refuse_operation (p, "there is no such place");
  if (op->layer > p->n_layers)
    return refuse_operation (p, "there is no such layer");
  if ((op->flags & ~known) != 0)
    return refuse_operation (p, "there is no such flag");
  if (op->n_inputs > UINT16_MAX || op->n_outputs > UINT16_MAX)
    return refuse_operation (p, "it has more than 65,535 inputs or outputs");
  if ((op->n_inputs > 0 && op->inputs == NULL) || (op->n_outputs > 0 && op->outputs == NULL))
    return refuse_operation (p, "its inputs or outputs are not given");
  if (op->end_ns < op->start_ns)
    return refuse_operation (p, "it ends before it starts");
  if (op->twin > (p->in_iteration ? p->n_events : 0))
    return refuse_operation (p, "its twin has not run in this iteration");
  if (op->twin != 0 && op->phase == TD_TAPE_PHASE_FORWARD)
    return refuse_operation (p, "a forward operation has no twin before it");
  if (p->in_iteration && p->n_events >= PRODUCER_MOST)
    return refuse_operation (p, "the iteration has too many");
  return TD_PRODUCER_OK;
}

static TdProducerStatus
check_variables (TdProducer *p, const TdProducerOperation *op)
{
  p->mark++;
  for (uint32_t i = 0; i < op->n_inputs; i++)
    if (op->inputs[i] != 0 && td__producer_var (p, op->inputs[i]) == NULL)
      return td__producer_refuse (p, TD_PRODUCER_WRONG,
                                  "operation: its input %u, variable %llu, is not there", i,
                                  (unsigned long long)op->inputs[i]);
  for (uint32_t i = 0; i < op->n_outputs; i++)
    {
      ProducerVar *v = td__producer_var (p, op->outputs[i]);

      if (v == NULL)
        return td__producer_refuse (p, TD_PRODUCER_WRONG,
                                    "operation: its output %u, variable %llu, is not there", i,
                                    (unsigned long long)op->outputs[i]);
      if (v->mark == p->mark)
        return refuse_operation (p, "two of its outputs are one");
      if (p->in_iteration && v->id >= p->first_id && v->said)
        return td__producer_refuse (p, TD_PRODUCER_WRONG,
                                    "operation: its output %u, variable %llu, has been made or "
                                    "read in this iteration: what is written in place is "
                                    "another variable on the same storage",
                                    i, (unsigned long long)v->id);
      v->mark = p->mark;
    }
  return TD_PRODUCER_OK;
}

static void
mark_storage (TdProducer *p, const ProducerVar *v)
{
  if (v->storage != TD_TAPE_NONE)
    ((ProducerStorage *)p->storages.items)[v->storage].mark = p->mark;
}

/* An output that lies where an input lies, and is not that input, is a view. */
static bool
shares (TdProducer *p, const TdProducerOperation *op)
{
  for (uint32_t i = 0; i < op->n_inputs; i++)
    if (op->inputs[i] != 0)
      mark_storage (p, td__producer_var (p, op->inputs[i]));
  for (uint32_t i = 0; i < op->n_outputs; i++)
    {
      const ProducerVar *v = td__producer_var (p, op->outputs[i]);

      if (v->storage != TD_TAPE_NONE && !v->said
          && ((const ProducerStorage *)p->storages.items)[v->storage].mark == p->mark)
        return true;
    }
  return false;
}

/* The operation's own attributes, and what the tape has no other place for. */
static uint32_t
attributes_of (TdProducer *p, const TdProducerOperation *op, uint32_t text)
{
  uint32_t layout = 0;
  char all[1024];
  int n = 0;

  for (uint32_t i = 0; layout == 0 && i < op->n_outputs; i++)
    layout = td__producer_var (p, op->outputs[i])->layout;
  if (layout == 0 && op->thread == 0)
    return text;
  for (unsigned part = 0; part < 2; part++)
    {
      const uint32_t id = part == 0 ? text : layout;

      if (id != 0 && id <= p->a->texts.n && n < (int)sizeof all - 1)
        n += snprintf (all + n, sizeof all - (size_t)n, "%s%s", n > 0 ? " " : "",
                       ((char *const *)p->a->texts.items)[id - 1]);
    }
  if (op->thread != 0 && n < (int)sizeof all - 1)
    n += snprintf (all + n, sizeof all - (size_t)n, "%sthread=%u", n > 0 ? " " : "",
                   op->thread);
  return td__producer_text_n (p, all, n < (int)sizeof all ? (size_t)n : sizeof all - 1);
}

static void
put_output (TdRawOutput **at, const ProducerVar *v)
{
  **at = (TdRawOutput){ .variable = v->id,
                        .dtype = v->dtype,
                        .ndim = v->ndim,
                        .category = v->category,
                        .flags = v->flags,
                        .device = v->device };
  memcpy ((*at)->dims, v->dims, v->ndim * sizeof *v->dims);
  *at = (TdRawOutput *)((*at)->dims + v->ndim);
}

/* Which of its twin's backward events it is. */
static uint16_t
order_of (TdProducer *p, uint64_t twin)
{
  uint16_t *own = td__list_add (&p->orders, sizeof *own), *of;

  if (own != NULL)
    *own = 0;
  if (twin == 0 || twin > p->orders.n)
    return 0;
  of = (uint16_t *)p->orders.items + (twin - 1);
  return *of < TD_RAW_ORDER_APART - 1 ? (*of)++ : *of;
}

static void
origin (TdProducer *p, const TdProducerOperation *op, ProducerVar *v)
{
  ProducerStorage *s
      = v->storage != TD_TAPE_NONE ? (ProducerStorage *)p->storages.items + v->storage : NULL;

  v->said = true;
  if (s == NULL || s->kind != 0 || s->variable != v->id)
    return;
  s->kind = op->kind;
  s->place = op->place;
}

static TdProducerStatus
put_operation (TdProducer *p, const TdProducerOperation *op, uint32_t attributes)
{
  const bool shared = shares (p, op);
  size_t bytes = sizeof (TdRawOp) + op->n_inputs * sizeof (uint64_t);
  TdRawOutput *out;
  TdRawOp *raw;

  for (uint32_t i = 0; i < op->n_outputs; i++)
    bytes += sizeof *out + td__producer_var (p, op->outputs[i])->ndim * sizeof (int64_t);
  raw = td__producer_record (p, TD_RAW_OP, op->flags | (shared ? TD_TAPE_EVENT_SHARED : 0),
                             bytes);
  if (raw == NULL)
    return TD_PRODUCER_MEMORY;
  raw->start = td__producer_ticks (op->start_ns != 0 ? op->start_ns : op->end_ns);
  raw->end = op->end_ns != 0 ? op->end_ns : raw->start;
  raw->opdef = op->kind;
  raw->site = op->place;
  raw->path = op->layer;
  raw->attrs = attributes;
  raw->twin_back = op->twin != 0 ? (uint32_t)(p->n_events + 1 - op->twin) : 0;
  raw->order = order_of (p, op->twin);
  raw->phase = (uint8_t)op->phase;
  raw->n_in = (uint16_t)op->n_inputs;
  raw->n_out = (uint16_t)op->n_outputs;
  if (op->n_inputs > 0)
    memcpy (raw->ids, op->inputs, op->n_inputs * sizeof *raw->ids);
  out = (TdRawOutput *)(raw->ids + op->n_inputs);
  for (uint32_t i = 0; i < op->n_outputs; i++)
    put_output (&out, td__producer_var (p, op->outputs[i]));
  td__producer_feed (p, raw);
  for (uint32_t i = 0; i < op->n_outputs; i++)
    origin (p, op, td__producer_var (p, op->outputs[i]));
  p->n_events++;
  return TD_PRODUCER_OK;
}

TdProducerStatus
td__producer_operation (TdProducer *p, const TdProducerOperation *op, uint32_t attributes)
{
  TdProducerStatus status = check_operation (p, op);

  if (status == TD_PRODUCER_OK && attributes > p->n_texts)
    status = refuse_operation (p, "its attributes are no text");
  if (status == TD_PRODUCER_OK)
    status = check_variables (p, op);
  if (status == TD_PRODUCER_OK && !p->in_iteration)
    status = td__producer_begin (p, 0, op->start_ns, true);
  if (status != TD_PRODUCER_OK)
    return status;
  for (uint32_t i = 0; i < op->n_inputs; i++)
    if (op->inputs[i] != 0 && !td__producer_know (p, td__producer_var (p, op->inputs[i])))
      return TD_PRODUCER_MEMORY;
  for (uint32_t i = 0; i < op->n_outputs; i++)
    {
      ProducerVar *v = td__producer_var (p, op->outputs[i]);

      if (v->id < p->first_id && !td__producer_know (p, v))
        return TD_PRODUCER_MEMORY;
    }
  attributes = attributes_of (p, op, attributes);
  td__producer_flush_memory (p);
  return put_operation (p, op, attributes);
}

/* "stride=2,2 pad=1,1". */
static TdProducerStatus
join (TdProducer *p, const TdProducerOperation *op, uint32_t *text)
{
  char all[4096];
  size_t n = 0;

  if (op->n_attributes > 0 && op->attributes == NULL)
    return refuse_operation (p, "its attributes are not given");
  for (uint32_t i = 0; i < op->n_attributes; i++)
    {
      const TdProducerAttribute *a = &op->attributes[i];
      const size_t room = sizeof all - n;
      int more;

      if (a->name == NULL || *a->name == '\0' || a->value == NULL)
        return refuse_operation (p, "an attribute needs a name and a value");
      more = snprintf (all + n, room, "%s%s=%s", n > 0 ? " " : "", a->name, a->value);
      if (more < 0 || (size_t)more >= room)
        return refuse_operation (p, "its attributes are longer than 4,095 bytes");
      n += (size_t)more;
    }
  *text = td__producer_text_n (p, all, n);
  return TD_PRODUCER_OK;
}

TdProducerStatus
td_producer_operation (TdProducer *p, const TdProducerOperation *given)
{
  TdProducerStatus status = td__producer_ready (p);
  TdProducerOperation op;
  const char *wrong;
  uint32_t text = 0;

  if (status != TD_PRODUCER_OK)
    return status;
  wrong = td__producer_take (&op, sizeof op, given, sizeof op);
  if (wrong != NULL)
    return refuse_operation (p, wrong);
  status = join (p, &op, &text);
  return status == TD_PRODUCER_OK ? td__producer_operation (p, &op, text) : status;
}

TdProducerStatus
td_producer_gradient (TdProducer *p, uint64_t parameter, uint64_t gradient)
{
  TdProducerStatus ready = td__producer_ready (p);
  ProducerVar *of, *g;
  TdRawGrad *raw;

  if (ready != TD_PRODUCER_OK)
    return ready;
  of = td__producer_var (p, parameter);
  g = td__producer_var (p, gradient);
  if (of == NULL || (gradient != 0 && g == NULL))
    return td__producer_refuse (p, TD_PRODUCER_WRONG, "gradient: there is no variable %llu",
                                (unsigned long long)(of == NULL ? parameter : gradient));
  if (!p->in_iteration)
    return td__producer_refuse (p, TD_PRODUCER_NOT_NOW, "gradient: no iteration is open");
  if (!td__producer_know (p, of) || (g != NULL && !td__producer_know (p, g)))
    return TD_PRODUCER_MEMORY;
  raw = td__producer_record (p, TD_RAW_GRAD, 0, sizeof *raw);
  if (raw == NULL)
    return TD_PRODUCER_MEMORY;
  raw->parameter = parameter;
  raw->gradient = gradient;
  raw->path = of->parameter != 0 ? of->parameter : of->name;
  td__producer_feed (p, raw);
  return TD_PRODUCER_OK;
}
