/* The model of the tape's tests.
 * SPDX-License-Identifier: MIT */
#include "model.h"

#include <math.h>
#include <string.h>

void *
model_record (Model *m, unsigned type, unsigned flags, size_t bytes)
{
  uint32_t size = TD_RAW_PADDED (bytes);
  TdRawHead *head = td_ring_reserve (m->ring, size);

  memset (head, 0, size);
  *head = (TdRawHead){ .size = size, .type = (uint16_t)type, .flags = (uint16_t)flags };
  return head;
}

void
model_publish (Model *m, void *record)
{
  td_ring_publish (m->ring, ((TdRawHead *)record)->size);
}

uint32_t
model_string (Model *m, const char *text)
{
  size_t n = strlen (text);
  TdRawString *s = model_record (m, TD_RAW_STRING, 0, sizeof *s + n);

  s->id = ++m->strings;
  s->length = (uint32_t)n;
  memcpy (s->bytes, text, n);
  model_publish (m, s);
  return m->strings;
}

static void
define_source (Model *m, const char *text)
{
  uint32_t path = model_string (m, "model.c");
  size_t n = strlen (text), half = n / 2;

  for (unsigned part = 0; part < 2; part++)
    {
      size_t length = part ? n - half : half;
      TdRawSource *s = model_record (m, TD_RAW_SOURCE, 0, sizeof *s + length);

      s->path = path;
      s->length = (uint32_t)length;
      s->total = n;
      s->offset = part ? half : 0;
      memcpy (s->bytes, text + s->offset, length);
      model_publish (m, s);
    }
}

static void
define_parameter (Model *m)
{
  uint32_t name = model_string (m, "W");
  TdRawLeaf *leaf;
  TdRawParameter *p;

  leaf = model_record (m, TD_RAW_LEAF, 0, sizeof *leaf + 16);
  leaf->name = name;
  leaf->path = 1;
  leaf->site = 1;
  leaf->var.variable = m->parameter = m->next_id++;
  leaf->var.ndim = 2;
  leaf->var.category = TD_TAPE_CATEGORY_PARAMETER;
  leaf->var.flags = TD_TAPE_VAR_REQUIRES_GRAD | TD_TAPE_VAR_PARAMETER;
  leaf->var.dims[0] = leaf->var.dims[1] = 10;
  model_publish (m, leaf);
  name = model_string (m, "mlp/l1/W");
  p = model_record (m, TD_RAW_PARAMETER, 0, sizeof *p);
  p->variable = m->parameter;
  p->path = name;
  p->ndim = 2;
  p->dims[0] = p->dims[1] = 10;
  model_publish (m, p);
}

void
model_define (Model *m, TdRing *ring)
{
  static const char *const ops[]
      = { "linear", "relu", "loss", "linear_grad", "relu_grad", "sgd_update" };
  uint32_t file, function, path, class;

  m->ring = ring;
  m->next_id = m->next_buffer = 1;
  m->n_layers = m->n_layers ? m->n_layers : 3;
  m->batch = m->batch ? m->batch : 32;
  td_ring_produce (ring);
  for (uint32_t i = 0; i < 6; i++)
    {
      uint32_t name = model_string (m, ops[i]);
      TdRawOpdef *def = model_record (m, TD_RAW_OPDEF, 0, sizeof *def);

      def->def.id = i + 1;
      def->def.name = name;
      def->def.n_in = 2;
      def->def.n_out = 1;
      model_publish (m, def);
    }
  file = model_string (m, "model.c");
  function = model_string (m, "forward");
  for (uint32_t i = 1; i <= 2; i++)
    {
      TdRawSite *site = model_record (m, TD_RAW_SITE, 0, sizeof *site);

      site->site = (TdTapeSite){ .id = i, .file = file, .function = function, .line = 10 * i };
      model_publish (m, site);
    }
  path = model_string (m, "mlp/l1");
  class = model_string (m, "Linear");
  TdRawPath *p = model_record (m, TD_RAW_PATH, 0, sizeof *p);
  p->path = (TdTapePath){ .id = 1, .path = path, .link_class = class };
  model_publish (m, p);
  define_source (m, "int main (void)\n{\n  return 0;\n}\n");
  define_parameter (m);
}

static void
short_memory (Model *m, unsigned kind, unsigned place, uint64_t bytes, uint64_t variable)
{
  if (kind == TD_TAPE_MEMORY_ALLOC)
    {
      TdRawAlloc *a = model_record (m, TD_RAW_ALLOC, TD_TAPE_CATEGORY_ACTIVATION, sizeof *a);

      a->address = 0x10000u + place * 4096u;
      a->bytes = bytes;
      a->buffer = m->next_buffer++;
      a->variable = variable;
      model_publish (m, a);
    }
  else
    {
      TdRawFree *f = model_record (m, TD_RAW_FREE, TD_TAPE_CATEGORY_ACTIVATION, sizeof *f);

      f->address = 0x10000u + place * 4096u;
      f->bytes = bytes;
      f->buffer = m->next_buffer - 1;
      model_publish (m, f);
    }
}

/* In the short form and the long one in turn: readers must not see a difference. */
void
model_memory (Model *m, unsigned kind, unsigned place, uint64_t bytes, uint64_t variable)
{
  if (m->n_memory++ % 2 == 0)
    {
      short_memory (m, kind, place, bytes, variable);
      return;
    }
  TdRawMemory *r = model_record (m, TD_RAW_MEMORY, kind, sizeof *r);

  r->address = 0x10000u + place * 4096u;
  r->bytes = bytes;
  r->buffer = kind == TD_TAPE_MEMORY_ALLOC ? m->next_buffer++ : m->next_buffer - 1;
  r->variable = variable;
  r->category = TD_TAPE_CATEGORY_ACTIVATION;
  model_publish (m, r);
}

uint64_t
model_op (Model *m, unsigned opdef, unsigned phase, uint32_t twin_back, uint64_t in0,
          uint64_t in1)
{
  TdRawOp *op = model_record (m, TD_RAW_OP, 0, sizeof *op + 16 + sizeof (TdRawOutput) + 16);
  TdRawOutput *out = (TdRawOutput *)(op->ids + 2);

  m->ring->shared->now.opdef = opdef;
  m->ring->shared->now.site = 1;
  m->ring->shared->now.event++;
  op->start = td_ring_ticks ();
  op->end = op->start + 100;
  op->opdef = opdef;
  op->site = 1;
  op->path = 1;
  op->twin_back = twin_back;
  op->phase = (uint8_t)phase;
  op->n_in = 2;
  op->n_out = 1;
  op->ids[0] = in0;
  op->ids[1] = in1;
  out->variable = m->next_id++;
  out->ndim = 2;
  out->category = TD_TAPE_CATEGORY_ACTIVATION;
  out->dims[0] = m->batch;
  out->dims[1] = 10;
  model_publish (m, op);
  return m->next_id - 1;
}

void
model_begin (Model *m)
{
  TdRawIterationBegin *b = model_record (m, TD_RAW_ITERATION_BEGIN, 0, sizeof *b);

  b->number = m->iteration;
  b->first_id = m->next_id;
  b->first_buffer = m->next_buffer;
  b->ticks = td_ring_ticks ();
  model_publish (m, b);
  m->ring->shared->now.event = 0;
  m->ring->shared->now.iteration = m->iteration;
}

void
model_end (Model *m)
{
  TdRawIterationEnd *e = model_record (m, TD_RAW_ITERATION_END, 0, sizeof *e);

  e->ticks = td_ring_ticks ();
  model_publish (m, e);
  m->iteration++;
}

void
model_iteration (Model *m)
{
  uint64_t x, g;
  TdRawLeaf *leaf;

  model_begin (m);
  leaf = model_record (m, TD_RAW_LEAF, 0, sizeof *leaf + 16);
  leaf->site = 2;
  leaf->var.variable = x = m->next_id++;
  leaf->var.ndim = 2;
  leaf->var.category = TD_TAPE_CATEGORY_INPUT;
  leaf->var.dims[0] = m->batch;
  leaf->var.dims[1] = 10;
  model_publish (m, leaf);
  if (m->recurrent && m->state)
    x = m->state;
  for (int i = 0; i < m->n_layers; i++)
    {
      if (m->memory)
        model_memory (m, TD_TAPE_MEMORY_ALLOC, (unsigned)i, 1280, m->next_id);
      x = model_op (m, MODEL_LINEAR, TD_TAPE_PHASE_FORWARD, 0, x, m->parameter);
      x = model_op (m, MODEL_RELU, TD_TAPE_PHASE_FORWARD, 0, x, 0);
    }
  m->state = x;
  g = model_op (m, MODEL_LOSS, TD_TAPE_PHASE_FORWARD, 0, x, 0);
  for (int i = 0; i < m->n_layers; i++)
    {
      g = model_op (m, MODEL_RELU_GRAD, TD_TAPE_PHASE_BACKWARD, (uint32_t)(4 * i + 2), g, 0);
      g = model_op (m, MODEL_LINEAR_GRAD, TD_TAPE_PHASE_BACKWARD, (uint32_t)(4 * i + 4), g,
                    m->parameter);
    }
  model_op (m, MODEL_SGD, TD_TAPE_PHASE_UPDATE, 0, m->parameter, g);
  if (m->memory)
    for (int i = 0; i < m->n_layers; i++)
      model_memory (m, TD_TAPE_MEMORY_FREE, (unsigned)i, 1280, 0);
  model_end (m);
}

void
model_span (Model *m, unsigned type, const char *name, uint32_t path)
{
  uint32_t id = name ? model_string (m, name) : 0;
  TdRawSpan *span = model_record (m, type, 0, sizeof *span);

  span->name = id;
  span->path = path;
  span->site = 2;
  model_publish (m, span);
}

void
model_values (Model *m, uint64_t variable)
{
  static const float numbers[4] = { 1, -2, 0, NAN };
  TdRawStats *stats = model_record (m, TD_RAW_STATS, 0, sizeof *stats);
  TdRawTensor *tensor;

  stats->variable = variable;
  stats->stats.n = 4;
  stats->stats.n_nan = 1;
  stats->stats.max = 1;
  stats->stats.bins[3] = 2;
  model_publish (m, stats);
  for (unsigned part = 0; part < 2; part++)
    {
      tensor = model_record (m, TD_RAW_TENSOR, 0, sizeof *tensor + 8);
      tensor->variable = variable;
      tensor->total = sizeof numbers;
      tensor->offset = part * 8;
      tensor->length = 8;
      tensor->ndim = 1;
      tensor->dims[0] = 4;
      memcpy (tensor->bytes, (const char *)numbers + part * 8, 8);
      model_publish (m, tensor);
    }
}

static void
put_notice (Model *m, unsigned kind, uint32_t text)
{
  TdRawNotice *notice = model_record (m, TD_RAW_NOTICE, kind, sizeof *notice);

  notice->status = -1;
  notice->text = text;
  notice->site = 1;
  model_publish (m, notice);
}

void
model_notice (Model *m, unsigned kind, const char *text)
{
  put_notice (m, kind, model_string (m, text));
}

void
model_side_records (Model *m, uint64_t variable)
{
  uint32_t key = model_string (m, "loss"), text = model_string (m, "shapes differ"),
           name = model_string (m, "hidden"), path = model_string (m, "mlp/l1/W");
  TdRawReport *report = model_record (m, TD_RAW_REPORT, 0, sizeof *report);
  TdRawHostRead *read;
  TdRawName *named;
  TdRawGrad *grad;

  report->value = 0.25;
  report->key = key;
  model_publish (m, report);
  read = model_record (m, TD_RAW_HOST_READ, 0, sizeof *read);
  read->variable = variable;
  read->site = 2;
  model_publish (m, read);
  put_notice (m, TD_TAPE_NOTICE_ERROR, text);
  named = model_record (m, TD_RAW_NAME, 0, sizeof *named);
  named->variable = variable;
  named->name = name;
  model_publish (m, named);
  named = model_record (m, TD_RAW_UNCHAIN, 0, sizeof *named);
  named->variable = variable;
  model_publish (m, named);
  grad = model_record (m, TD_RAW_GRAD, 0, sizeof *grad);
  grad->parameter = m->parameter;
  grad->gradient = variable;
  grad->path = path;
  model_publish (m, grad);
}

void
model_fault (Model *m, uint64_t iteration, uint32_t event)
{
  const uint32_t text = model_string (m, "relu: 0 <= t[i] < 10 expected, got 12 at element 7"),
                 op = model_string (m, "relu"), operand = model_string (m, "t");
  TdRawFault *raw = model_record (m, TD_RAW_FAULT, 0, sizeof *raw);

  raw->status = -8;
  raw->fault = (TdTapeFault){ .iteration = iteration,
                              .value = 12,
                              .limit = 10,
                              .element = 7,
                              .event = event,
                              .operand = operand,
                              .text = text,
                              .op = op,
                              .site = 1 };
  model_publish (m, raw);
}
