/* Iterations so large that they are packed while they go on: what is on the tape is what would
 * be there if they were small.  Where memory runs out, the tape says so.
 * SPDX-License-Identifier: MIT */
#include "rig.h"

#include "record/assembler-private.h"

#include <stdlib.h>
#include <string.h>

enum
{
  SMALLEST = 64, /* bytes of raw records from which on the second assembler packs */
  BLOCK = 4096,  /* rows of a block */
  PLACES = 200   /* of memory */
};

/* Two assemblers that get the same records. */
typedef struct
{
  Rig rig;
  TdTapeWriter *w;
  TdAssembler *a; /* to which everything is large */
  const char *path;
  uint64_t
      before; /* first id of the iteration before: a large one makes older ones forgotten */
  uint64_t buffers[PLACES]; /* what lies there; 0: nothing */
  uint64_t seed;
} Pair;

static uint32_t
any (Pair *p, uint32_t n)
{
  p->seed = p->seed * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(p->seed >> 33) % n;
}

/* Both have the same clock, which counts nanoseconds. */
static void
set_clock (TdAssembler *a, const TdAssembler *like)
{
  a->ns_per_tick = 1.0;
  a->next_calibration_ns = UINT64_MAX;
  a->ticks0 = like->ticks0;
}

static void
pair_start (Pair *p, uint32_t largest)
{
  TdTapeWriterOptions options = { .size = sizeof options, .overwrite = true };

  rig_start (&p->rig, &options);
  p->path = options.path = td_test_tmp ("large.tdtape");
  options.mono_ns = p->rig.ring->shared->mono_ns;
  p->w = td_tape_writer_new (&options, p->rig.error, sizeof p->rig.error);
  assert_non_null (p->w);
  p->a = td_assembler_new (p->w, p->rig.ring->shared);
  p->a->largest = largest;
  set_clock (p->rig.a, p->rig.a);
  set_clock (p->a, p->rig.a);
}

static void
feed (Pair *p)
{
  const void *bytes;
  size_t n;

  while ((n = td_ring_peek (p->rig.ring, &bytes)) > 0)
    {
      td_assembler_feed (p->rig.a, bytes, n);
      td_assembler_feed (p->a, bytes, n);
      td_ring_take (p->rig.ring, n);
      td_ring_release (p->rig.ring, 0);
    }
}

/* All that is on a tape, as text. */
static char *
text_of (TdTapeWriter *w, const char *path, uint64_t last)
{
  char error[256], *text = NULL;
  size_t n;
  TdTapeReader *r;
  FILE *out = open_memstream (&text, &n);

  td_tape_writer_flush (w);
  r = td_tape_reader_open (path, error, sizeof error);
  assert_non_null (r);
  td_tape_dump (r, out, true, 0, last);
  fclose (out);
  td_tape_reader_free (r);
  return text;
}

/* The same text; with `bytes` also the same file, but for the name and the hour in its head. */
static void
assert_same (Pair *p, bool bytes)
{
  char *plain = text_of (p->rig.w, p->rig.path, p->rig.m.iteration),
       *large = text_of (p->w, p->path, p->rig.m.iteration);

  assert_true (strlen (plain) > 1000);
  assert_string_equal (plain, large);
  free (plain);
  free (large);
  if (bytes)
    {
      size_t n, n_large;
      char *x = td_test_read_file (p->rig.path, &n), *y = td_test_read_file (p->path, &n_large);

      assert_int_equal (n, n_large);
      assert_memory_equal (x + sizeof (TdTapeHeader), y + sizeof (TdTapeHeader),
                           n - sizeof (TdTapeHeader));
      free (x);
      free (y);
    }
}

static void
pair_clear (Pair *p)
{
  td_assembler_free (p->a);
  td_tape_writer_free (p->w);
  rig_clear (&p->rig);
}

/* ------------------------------------------------------------------------ any records */

/* A variable of the iteration, mostly a new one, or one from before. */
static uint64_t
any_variable (Pair *p, uint64_t first)
{
  const Model *m = &p->rig.m;
  const uint64_t n = m->next_id - first;

  if (n == 0 || any (p, 16) == 0)
    return first == p->before || any (p, 2)
               ? m->parameter
               : p->before + any (p, (uint32_t)(first - p->before));
  return any (p, 4) ? m->next_id - 1 - any (p, n < 8 ? (uint32_t)n : 8)
                    : first + any (p, (uint32_t)n);
}

static void
add_leaf (Pair *p)
{
  Model *m = &p->rig.m;
  const unsigned ndim = any (p, 4);
  TdRawLeaf *leaf = model_record (m, TD_RAW_LEAF, 0, sizeof *leaf + 8 * ndim);

  leaf->site = 1 + any (p, 2);
  leaf->var.variable = m->next_id++;
  leaf->var.dtype = (uint8_t)any (p, TD_TAPE_N_DTYPES);
  leaf->var.ndim = (uint8_t)ndim;
  for (unsigned d = 0; d < ndim; d++)
    leaf->var.dims[d] = 1 + any (p, 5);
  model_publish (m, leaf);
}

static void
add_op (Pair *p, uint64_t first, uint32_t n_events)
{
  Model *m = &p->rig.m;
  const unsigned n_in = any (p, 4), n_out = any (p, 8) ? 1 : any (p, 3);
  TdRawOp *op = model_record (m, TD_RAW_OP, any (p, 4) ? 0 : TD_TAPE_EVENT_FAILED,
                              sizeof *op + 8 * n_in + n_out * (sizeof (TdRawOutput) + 16));
  TdRawOutput *out = (TdRawOutput *)(op->ids + n_in);

  op->start = td_ring_ticks ();
  op->end = op->start + any (p, 1000);
  op->opdef = 1 + any (p, 6);
  op->site = 1 + any (p, 2);
  op->path = any (p, 2);
  op->phase = (uint8_t)any (p, TD_TAPE_N_PHASES);
  op->twin_back
      = op->phase != TD_TAPE_PHASE_FORWARD && n_events > 0 ? any (p, n_events + 2) : 0;
  op->order = (uint16_t)(any (p, 7) | (any (p, 5) ? 0 : TD_RAW_ORDER_APART));
  op->retained_in = any (p, 8);
  op->n_in = (uint16_t)n_in;
  op->n_out = (uint16_t)n_out;
  for (unsigned i = 0; i < n_in; i++)
    op->ids[i] = any (p, 8) ? any_variable (p, first) : 0;
  for (unsigned k = 0; k < n_out; k++)
    {
      /* now and then written in place, or with an id that has a gap before it */
      m->next_id += any (p, 50) ? 0 : any (p, 40000);
      out->variable = any (p, 16) ? m->next_id++ : any_variable (p, first);
      out->ndim = 2;
      out->category = (uint8_t)any (p, TD_TAPE_N_CATEGORIES);
      out->dims[0] = 1 + any (p, 3);
      out->dims[1] = 4;
      out = (TdRawOutput *)(out->dims + 2);
    }
  model_publish (m, op);
}

static void
add_name (Pair *p, uint64_t first, uint32_t name)
{
  TdRawName *named
      = model_record (&p->rig.m, any (p, 2) ? TD_RAW_NAME : TD_RAW_UNCHAIN, 0, sizeof *named);

  named->variable = any_variable (p, first);
  named->name = name;
  named->flags = any (p, 2) ? TD_TAPE_VAR_REQUIRES_GRAD : 0;
  model_publish (&p->rig.m, named);
}

static void
add_grad (Pair *p, uint64_t first, uint32_t path)
{
  TdRawGrad *grad = model_record (&p->rig.m, TD_RAW_GRAD, 0, sizeof *grad);

  grad->parameter = p->rig.m.parameter;
  grad->gradient = any (p, 4) ? any_variable (p, first) : 0;
  grad->path = path;
  model_publish (&p->rig.m, grad);
}

static void
add_stats (Pair *p, uint64_t first)
{
  TdRawStats *stats = model_record (&p->rig.m, TD_RAW_STATS, 0, sizeof *stats);

  stats->variable = any_variable (p, first);
  stats->stats.n = any (p, 100);
  stats->stats.bins[any (p, TD_TAPE_STATS_BINS)] = 7;
  model_publish (&p->rig.m, stats);
}

/* Memory comes and goes, within the iteration or beyond it. */
static void
add_memory (Pair *p, uint64_t first)
{
  Model *m = &p->rig.m;
  const uint32_t place = any (p, PLACES);
  const bool comes = p->buffers[place] == 0;
  TdRawMemory *r = model_record (m, TD_RAW_MEMORY,
                                 comes ? TD_TAPE_MEMORY_ALLOC : TD_TAPE_MEMORY_FREE, sizeof *r);

  r->address = 0x10000u + place * 4096u;
  r->bytes = 16 * (1 + place % 4);
  r->buffer = comes ? m->next_buffer++ : p->buffers[place];
  r->variable = comes ? first + any (p, (uint32_t)(m->next_id + 1 - first)) : 0;
  r->category = (uint8_t)(place % TD_TAPE_N_CATEGORIES);
  model_publish (m, r);
  p->buffers[place] = comes ? r->buffer : 0;
}

static void
add_span (Pair *p, uint32_t name)
{
  TdRawSpan *span = model_record (&p->rig.m, any (p, 2) ? TD_RAW_SCOPE_OPEN : TD_RAW_LINK_ENTER,
                                  0, sizeof *span);

  span->name = name;
  span->path = 1;
  span->site = 1;
  model_publish (&p->rig.m, span);
}

/* A record of any kind, in any order that a recorder could write, and more that none would. */
static void
add_any (Pair *p, uint64_t first, uint32_t *n_events, const uint32_t names[2])
{
  const uint32_t which = any (p, 24), name = names[any (p, 2)];

  if (which == 0)
    add_leaf (p);
  else if (which == 1)
    add_name (p, first, name);
  else if (which == 2)
    add_grad (p, first, name);
  else if (which == 3)
    add_stats (p, first);
  else if (which == 4)
    add_span (p, name);
  else if (which == 5)
    model_span (&p->rig.m, any (p, 2) ? TD_RAW_SCOPE_CLOSE : TD_RAW_LINK_LEAVE, NULL, 0);
  else if (which < 12)
    add_memory (p, first);
  else
    {
      add_op (p, first, *n_events);
      ++*n_events;
    }
}

static void
add_records (Pair *p, uint64_t first, uint32_t *n_events, unsigned n)
{
  const uint32_t names[2] = { model_string (&p->rig.m, "a"), model_string (&p->rig.m, "b") };

  for (unsigned i = 0; i < n; i++)
    {
      add_any (p, first, n_events, names);
      if (i % 64 == 63)
        feed (p);
    }
  feed (p);
}

static void
large_iteration__of_any_records_is_on_the_tape_as_a_small_one (void **state)
{
  (void)state;
  for (uint64_t seed = 1; seed <= 6; seed++)
    {
      Pair p = { .seed = seed, .before = 1 };

      /* at once, or only after some of it */
      pair_start (&p, seed % 3 == 0 ? 4096 : SMALLEST);
      for (unsigned i = 0; i < 4; i++)
        {
          const uint64_t first = p.rig.m.next_id;
          uint32_t n_events = 0;

          model_begin (&p.rig.m);
          add_records (&p, first, &n_events, any (&p, 3) ? any (&p, 300) : 3 * BLOCK);
          model_end (&p.rig.m);
          feed (&p);
          p.before = first;
        }
      assert_same (&p, true);
      pair_clear (&p);
    }
}

static void
large_iteration__that_comes_again_is_on_the_tape_as_a_small_one (void **state)
{
  Pair p = { .rig = { .m = { .memory = true, .recurrent = true } } };

  (void)state;
  pair_start (&p, SMALLEST);
  for (unsigned i = 0; i < 5; i++)
    {
      model_iteration (&p.rig.m);
      feed (&p);
      assert_same (&p, false);
    }
  pair_clear (&p);
}

#define SAME(array, n)                                                                         \
  do                                                                                           \
    {                                                                                          \
      assert_int_equal (x->n, y->n);                                                           \
      if (x->n > 0)                                                                            \
        assert_memory_equal (x->array, y->array, x->n * sizeof *x->array);                     \
    }                                                                                          \
  while (0)

/* But for how long it lasts so far, which is another matter in each. */
static void
assert_same_live (Pair *p)
{
  char error[256];
  TdTapeReader *plain, *large;
  const TdTapeIteration *x, *y;
  uint32_t n_events;
  uint64_t number;

  td_tape_writer_flush (p->rig.w);
  td_tape_writer_flush (p->w);
  plain = td_tape_reader_open (p->rig.path, error, sizeof error);
  large = td_tape_reader_open (p->path, error, sizeof error);
  assert_true (plain != NULL && large != NULL);
  x = td_tape_reader_live (plain);
  y = td_tape_reader_live (large);
  assert_true (x != NULL && y != NULL);
  assert_int_equal (x->n_events, p->a->state.n_events);
  assert_true (td_tape_reader_head (large, &number, &n_events));
  assert_true (number == x->number && n_events == x->n_events);
  assert_true (x->fingerprint == y->fingerprint && x->fingerprint_dims == y->fingerprint_dims);
  assert_true (x->peak_bytes == y->peak_bytes && x->end_bytes == y->end_bytes);
  SAME (events, n_events);
  SAME (event_start_ns, n_events);
  SAME (event_duration_ns, n_events);
  SAME (ins, n_ins);
  SAME (outs, n_outs);
  SAME (vars, n_vars);
  SAME (dims, n_dims);
  SAME (spans, n_spans);
  SAME (grads, n_grads);
  SAME (externals, n_externals);
  SAME (memory, n_memory);
  SAME (stats, n_stats);
  td_tape_iteration_free (x);
  td_tape_iteration_free (y);
  td_tape_reader_free (plain);
  td_tape_reader_free (large);
}

/* It is shown where the program stands, as often as it does, and goes on. */
static void
large_iteration__is_shown_where_it_stands_as_a_small_one (void **state)
{
  (void)state;
  for (uint64_t seed = 1; seed <= 3; seed++)
    {
      Pair p = { .seed = 100 + seed, .before = 1 };
      uint32_t n_events = 0;
      uint64_t first;

      pair_start (&p, SMALLEST);
      first = p.rig.m.next_id;
      model_begin (&p.rig.m);
      for (unsigned i = 0; i < 5; i++)
        {
          add_op (&p, first, n_events++);
          add_records (&p, first, &n_events, any (&p, 2) ? 40 : 2 * BLOCK);
          assert_true (p.a->large != NULL && p.rig.a->large == NULL);
          td_assembler_show_live (p.rig.a);
          td_assembler_show_live (p.a);
          assert_same_live (&p);
        }
      model_end (&p.rig.m);
      feed (&p);
      assert_same (&p, false); /* the pictures have times */
      pair_clear (&p);
    }
}

/* ------------------------------------------------------------------------ no memory */

static struct
{
  int calls;  /* so far */
  int first;  /* of those that fail; 0: none */
  bool after; /* and all that follow */
} missing;

static bool
is_missing (void)
{
  missing.calls++;
  return missing.first != 0
         && (missing.after ? missing.calls >= missing.first : missing.calls == missing.first);
}

#define WRAP(name, parameters, arguments)                                                      \
  void *__real_##name parameters;                                                              \
  void *__wrap_##name parameters;                                                              \
  void *__wrap_##name parameters                                                               \
  {                                                                                            \
    return is_missing () ? NULL : __real_##name arguments;                                     \
  }
WRAP (malloc, (size_t bytes), (bytes))
WRAP (calloc, (size_t n, size_t bytes), (n, bytes))
WRAP (realloc, (void *old, size_t bytes), (old, bytes))

/* From the n-th call for memory on there is none, or there is none for that alone. */
static void
run_out (int n, bool after)
{
  missing.calls = 0;
  missing.first = n;
  missing.after = after;
}

/* Only the second assembler has none.  Returns how often it asked. */
static int
feed_without (Pair *p, int n, bool after)
{
  const void *bytes;
  size_t n_bytes = td_ring_peek (p->rig.ring, &bytes);
  int n_calls;

  td_assembler_feed (p->rig.a, bytes, n_bytes);
  run_out (n, after);
  td_assembler_feed (p->a, bytes, n_bytes);
  n_calls = missing.calls;
  run_out (0, false);
  td_ring_take (p->rig.ring, n_bytes);
  td_ring_release (p->rig.ring, 0);
  return n_calls;
}

static TdTapeReader *
open_tape (TdTapeWriter *w, const char *path)
{
  char error[256];
  TdTapeReader *r;

  td_tape_writer_flush (w);
  r = td_tape_reader_open (path, error, sizeof error);
  if (r == NULL)
    fail_msg ("%s", error);
  return r;
}

/* What the second tape says was lost of iteration `number`, "" where it says nothing. */
static void
read_loss (Pair *p, uint64_t number, char *text, size_t size)
{
  TdTapeReader *r = open_tape (p->w, p->path);

  *text = '\0';
  for (uint32_t i = 0; i < td_tape_reader_n_notices (r); i++)
    {
      const TdTapeNotice *n = td_tape_reader_notice (r, i);

      if (n->iteration != number)
        continue;
      assert_int_equal (n->kind, TD_TAPE_NOTICE_RECORDING);
      assert_int_equal (n->status, TD_TAPE_NOTICE_LOST);
      assert_int_equal (*text, '\0'); /* once */
      snprintf (text, size, "%s", td_tape_reader_string (r, n->text));
    }
  td_tape_reader_free (r);
}

static void
assert_info_says (TdTapeReader *r, const char *wanted)
{
  char *text = NULL;
  size_t n;
  FILE *out = open_memstream (&text, &n);

  td_tape_info (r, out, false);
  fclose (out);
  assert_non_null (strstr (text, wanted));
  free (text);
}

/* The second tape has of the iteration the beginning, and says where it ends. */
static void
assert_begins_alike (Pair *p, uint64_t number)
{
  TdTapeReader *plain = open_tape (p->rig.w, p->rig.path), *large = open_tape (p->w, p->path);
  char error[256] = "", loss[120], wanted[120];
  const TdTapeIteration *x = td_tape_iteration_load (plain, number, error, sizeof error),
                        *y = td_tape_iteration_load (large, number, error, sizeof error);

  if (x == NULL || y == NULL)
    fail_msg ("%s", error);
  assert_true (y->n_events <= x->n_events);
  for (uint32_t i = 0; i < y->n_events; i++)
    {
      assert_true (x->events[i].key == y->events[i].key);
      assert_true (x->event_start_ns[i] == y->event_start_ns[i]);
    }
  snprintf (wanted, sizeof wanted,
            y->n_events > 0 ? "no memory for all of iteration %d: only operations up to %d are "
                              "on the tape"
                            : "no memory for iteration %d: none of its operations is on the "
                              "tape",
            (int)number, (int)y->n_events - 1);
  read_loss (p, number, loss, sizeof loss);
  assert_string_equal (loss, wanted);
  assert_info_says (large, wanted);
  assert_int_not_equal (y->flags & TD_TAPE_ITERATION_LOST, 0);
  td_tape_iteration_free (x);
  td_tape_iteration_free (y);
  td_tape_reader_free (plain);
  td_tape_reader_free (large);
}

/* The second tape has it as the first. */
static void
assert_whole (Pair *p, uint64_t number)
{
  TdTapeReader *plain = open_tape (p->rig.w, p->rig.path), *large = open_tape (p->w, p->path);
  char error[256] = "", loss[120];
  const TdTapeIteration *x = td_tape_iteration_load (plain, number, error, sizeof error),
                        *y = td_tape_iteration_load (large, number, error, sizeof error);

  if (x == NULL || y == NULL)
    fail_msg ("%s", error);
  SAME (events, n_events);
  SAME (ins, n_ins);
  SAME (outs, n_outs);
  SAME (spans, n_spans);
  SAME (grads, n_grads);
  SAME (stats, n_stats);
  assert_int_equal (x->n_memory, y->n_memory);
  assert_int_equal (y->flags & TD_TAPE_ITERATION_LOST, 0);
  read_loss (p, number, loss, sizeof loss);
  assert_string_equal (loss, "");
  td_tape_iteration_free (x);
  td_tape_iteration_free (y);
  td_tape_reader_free (plain);
  td_tape_reader_free (large);
}

static void
add_plain_ops (Pair *p, unsigned n)
{
  for (unsigned i = 0; i < n; i++)
    model_op (&p->rig.m, MODEL_RELU, TD_TAPE_PHASE_FORWARD, 0, p->rig.m.parameter, 0);
}

/* Its records stay as they came, and memory for more is asked for once, not at each. */
static void
large_iteration__that_cannot_begin_is_cut_off_and_told_of (void **state)
{
  Pair p = { .before = 1 };

  (void)state;
  pair_start (&p, 8192);
  model_begin (&p.rig.m);
  add_plain_ops (&p, 65); /* for as many the lists have room */
  feed (&p);
  add_plain_ops (&p, 60);
  assert_in_range (feed_without (&p, 1, true), 1, 3);
  add_memory (&p, p.rig.m.next_id - 1); /* after the last that is kept */
  model_end (&p.rig.m);
  feed (&p);
  model_begin (&p.rig.m);
  add_plain_ops (&p, 200);
  model_end (&p.rig.m);
  feed (&p);
  assert_begins_alike (&p, 0);
  assert_whole (&p, 1);
  pair_clear (&p);
}

/* Nothing is made of it, and what it did to memory counts for those that follow. */
static void
large_iteration__that_cannot_go_on_is_told_of (void **state)
{
  Pair p = { .before = 1 };
  uint32_t n_events = 0;
  uint64_t first;

  (void)state;
  pair_start (&p, SMALLEST);
  first = p.rig.m.next_id;
  model_begin (&p.rig.m);
  add_records (&p, first, &n_events, 300);
  add_plain_ops (&p, 500);
  feed_without (&p, 1, false);
  assert_true ((p.a->flags & TD_TAPE_ITERATION_LOST) && p.a->large != NULL);
  td_assembler_show_live (p.a); /* nor is it tried again at once */
  assert_int_equal (p.a->shown_events, p.a->state.n_events);
  add_records (&p, first, &n_events, 300);
  model_end (&p.rig.m);
  feed (&p);
  assert_begins_alike (&p, 0);
  assert_true (p.rig.a->live_total > 0 && p.a->live_total == p.rig.a->live_total);
  assert_true (p.a->live_hash == p.rig.a->live_hash);
  pair_clear (&p);
}

/* Memory that is asked for the n-th time is not there.  Returns how often it was asked for, and
 * whether all of the iteration is on the tape. */
static int
run_without (int n, bool *whole)
{
  Pair p = { .seed = 7, .before = 1 };
  uint32_t n_events = 0, names[2];
  char loss[120];
  uint64_t first;
  int n_calls;

  pair_start (&p, 4096);
  names[0] = model_string (&p.rig.m, "a");
  names[1] = model_string (&p.rig.m, "b");
  first = p.rig.m.next_id;
  model_begin (&p.rig.m);
  feed (&p);
  for (unsigned i = 0; i < 500; i++)
    add_any (&p, first, &n_events, names);
  n_calls = feed_without (&p, n, false);
  model_end (&p.rig.m);
  model_begin (&p.rig.m);
  add_plain_ops (&p, 20);
  model_end (&p.rig.m);
  feed (&p);
  read_loss (&p, 0, loss, sizeof loss);
  *whole = *loss == '\0';
  if (*whole)
    assert_whole (&p, 0);
  else
    assert_begins_alike (&p, 0);
  assert_whole (&p, 1);
  pair_clear (&p);
  return n_calls;
}

/* Whenever memory is asked for in vain, all of the iteration is on the tape or what is not is
 * told of, and the one that follows is as it would be. */
static void
large_iteration__is_whole_or_says_that_it_is_not (void **state)
{
  int n = 1, n_whole = 0;
  bool whole;

  (void)state;
  for (; run_without (n, &whole) >= n; n++)
    n_whole += whole;
  assert_true (whole); /* it ended before that */
  assert_true (n > 40 && n_whole < n / 2);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (large_iteration__of_any_records_is_on_the_tape_as_a_small_one),
    td_test (large_iteration__that_comes_again_is_on_the_tape_as_a_small_one),
    td_test (large_iteration__is_shown_where_it_stands_as_a_small_one),
    td_test (large_iteration__that_cannot_begin_is_cut_off_and_told_of),
    td_test (large_iteration__that_cannot_go_on_is_told_of),
    td_test (large_iteration__is_whole_or_says_that_it_is_not),
  };

  return cmocka_run_group_tests_name ("large", tests, NULL, NULL);
}
