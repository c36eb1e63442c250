/* What an observer sees of a replay: the same events as of the code, and their numbers.
 *
 * SPDX-License-Identifier: MIT */
#include "fixture.h"

#include "compute/core/core.h"
#include "quiet-observer.h"

#include <stdio.h>
#include <string.h>

enum
{
  MAX_EVENTS = 400
};

typedef struct
{
  char text[120];
  uint64_t in[8], out[4], id, twin;
  int n_in, n_out;
  double first; /* number of output 0 */
} Seen;

typedef struct
{
  TdObserver observer; /* first */
  Seen seen[MAX_EVENTS];
  int n, n_links, n_allocs, n_frees;
  bool replayed;
} Watch;

static void
look (TdObserver *o, const TdEvent *e)
{
  Watch *w = (Watch *)(void *)o;
  Seen *s = &w->seen[w->n++];

  assert_true (w->n < MAX_EVENTS);
  snprintf (s->text, sizeof s->text,
            "%s phase %d line %d path %s flags %u order %u saves %x %x", e->cls->name,
            (int)e->phase, e->site != NULL ? e->site->line : 0,
            e->path != NULL ? e->path->text : "", e->flags & ~(unsigned)TD_EVENT_REPLAYED,
            e->order, e->retained_in, e->retained_out);
  w->replayed |= (e->flags & TD_EVENT_REPLAYED) != 0;
  s->n_in = e->n_in;
  s->n_out = e->n_out;
  s->id = e->id;
  s->twin = e->twin_id;
  for (int i = 0; i < e->n_in; i++)
    s->in[i] = e->in[i]->id;
  for (int i = 0; i < e->n_out; i++)
    s->out[i] = e->out[i]->id;
  if (e->n_out > 0 && e->out[0]->dtype == TD_F32)
    {
      const TdBuffer *b = e->out_buffers[0];
      float first;

      b->device->ops->download (b->device, &first, b->data, sizeof first);
      s->first = (double)first;
    }
}

static void
look_link (TdObserver *o, bool enter, const TdPath *path, const TdSite *site)
{
  (void)enter;
  (void)path;
  (void)site;
  ((Watch *)(void *)o)->n_links++;
}

static void
look_alloc (TdObserver *o, const TdBuffer *b)
{
  (void)b;
  ((Watch *)(void *)o)->n_allocs++;
}

static void
look_free (TdObserver *o, const TdBuffer *b)
{
  (void)b;
  ((Watch *)(void *)o)->n_frees++;
}

static void
watch (Watch *w)
{
  memset (w, 0, sizeof *w);
  w->observer = quiet_observer;
  w->observer.after_op = look;
  w->observer.buffer_new = look_alloc;
  w->observer.buffer_free = look_free;
  w->observer.link = look_link;
  td__engine.observer = &w->observer;
}

typedef struct
{
  TdLink *l1, *l2;
} Net;

static void
forward (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Net *net = self;
  TdVar *h = td_reshape (td_link (net->l1, in[0]), TD_SHAPE (8, 8));

  (void)n_in;
  (void)n_out;
  h = td_add (td_sigmoid (h), td_dropout (h, 0.25));
  out[0] = td_mean_squared_error (td_link (net->l2, h), in[1]);
}

static void
one_iteration (Watch *w, TdStatic *s, Net *net, bool dynamic)
{
  float x[8 * 6], t[8 * 3];

  for (int i = 0; i < 48; i++)
    x[i] = (float)(i % 7) / 7 - 0.4f;
  for (int i = 0; i < 24; i++)
    t[i] = (float)(i % 5) / 5;
  td_set_seed (3);
  TD_ITERATION (0)
    {
      TdVar *in[]
          = { td_tensor (TD_F32, TD_SHAPE (8, 6), x), td_tensor (TD_F32, TD_SHAPE (8, 3), t) };
      TdVar *loss;

      watch (w);
      if (dynamic)
        TD_USING (use_static_graph, 0)
          td_static_call (s, in, 2, &loss, 1);
      else
        td_static_call (s, in, 2, &loss, 1);
      td_backward (loss, 0);
      td__engine.observer = NULL;
      td_cleargrad (td_link_param (net->l1, "W"));
      td_cleargrad (td_link_param (net->l1, "b"));
      td_cleargrad (td_link_param (net->l2, "W"));
      td_cleargrad (td_link_param (net->l2, "b"));
    }
}

/* Which earlier event made this variable, as event and output; -1: none. */
static int
maker (const Watch *w, int before, uint64_t id)
{
  for (int i = before - 1; i >= 0; i--)
    for (int k = 0; k < w->seen[i].n_out; k++)
      if (w->seen[i].out[k] == id)
        return i * 4 + k;
  return -1;
}

static void
observe__a_replay_is_seen_as_the_code_is (void **state)
{
  static Watch a, b;
  TdLink *root = td_chain_new ("net");
  Net net = { td_linear_new (root, "l1", 6, 8), td_linear_new (root, "l2", 8, 3) };
  TdStatic *s = td_static_new (forward, &net, .fuse = false, .prune = false, .cse = false,
                               .fold = false);

  (void)state;
  fill_params (root, 3);
  one_iteration (&a, s, &net, true);
  one_iteration (&b, s, &net, false); /* traced */
  assert_false (b.replayed);
  for (int again = 0; again < 3; again++)
    {
      one_iteration (&b, s, &net, false);
      assert_true (b.replayed);
      assert_int_equal (a.n, b.n);
      assert_int_equal (a.n_links, b.n_links);
      for (int i = 0; i < a.n; i++)
        {
          const Seen *x = &a.seen[i], *y = &b.seen[i];

          assert_string_equal (x->text, y->text);
          assert_int_equal (x->n_in, y->n_in);
          assert_int_equal (x->n_out, y->n_out);
          assert_true (x->first == y->first);
          assert_int_equal (x->id - a.seen[0].id, y->id - b.seen[0].id);
          if (x->twin != 0)
            assert_int_equal (x->twin - a.seen[0].id, y->twin - b.seen[0].id);
          for (int k = 0; k < x->n_in; k++)
            assert_int_equal (maker (&a, i, x->in[k]), maker (&b, i, y->in[k]));
        }
    }
  assert_true (b.n_allocs < a.n_allocs + a.n);
  assert_int_equal (td_static_info (s).n_replays, 3);
}

int
main (void)
{
  const struct CMUnitTest tests[] = { engine_test (observe__a_replay_is_seen_as_the_code_is) };

  return cmocka_run_group_tests_name ("static_observe", tests, NULL, NULL);
}
