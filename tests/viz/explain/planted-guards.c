/* Random programs with static functions, in which guards are made to fail at known iterations:
 *
 *     planted-guards SEED
 *
 * Between two plants the function `step` is called as before, often enough to be replayed. What
 * made calls run the code is printed when it is over, one line for each reason that a viewer
 * has to give:
 *
 *     FUNCTION|TITLE|LINE|CALLS|FIRST ITERATION
 *
 * LINE is 0 where no line is to blame. Other functions have one trouble each.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  N_PLANTS = 8,
  GAP = 3, /* calls as before, behind a plant */
  END = GAP + N_PLANTS * (GAP + 1),
  N_OTHER = 12,
  ROWS = 5,
  WIDTH = 4
};

static struct
{
  TdLink *root, *l1;
  TdVar *captured, *gate, *outside;
  int32_t depth, set_by_code;
  double unseen;
} w;

static struct
{
  const char *function, *title;
  int line, n, first;
} told[64];
static int n_told, now; /* the iteration */

static TdStatic *step;
static uint64_t random_state;
static int read_line, call_line, captured_line, watch_line;

static int
pick (int n)
{
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (int)((random_state >> 33) % (uint64_t)n);
}

/* More calls ran the code for this reason. */
static void
tell (const char *function, const char *title, int line, int n)
{
  int i = 0;

  while (i < n_told
         && (strcmp (told[i].function, function) != 0 || strcmp (told[i].title, title) != 0
             || told[i].line != line))
    i++;
  if (i < n_told)
    {
      told[i].n += n;
      return;
    }
  told[n_told].function = function;
  told[n_told].title = title;
  told[n_told].line = line;
  told[n_told].n = n;
  told[n_told++].first = now;
}

/* ---- the function that is planted in ---- */

static void
step_forward (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar *h = td_link (w.l1, in[0]);

  (void)self;
  (void)n_in;
  for (int32_t i = 0; i < w.depth; i++)
    h = td_add_scalar (h, 0.5);
  h = td_add (h, w.captured);
  read_line = __LINE__ + 1;
  h = td_item (w.gate) > 0 ? td_tanh (h) : td_relu (h);
  out[0] = td_add (td_sum (h), td_sum (td_cast (in[1], TD_F32)));
  for (int k = 1; k < n_out; k++)
    out[k] = td_mul_scalar (out[0], k + 1);
}

static TdVar *
call (TdVar *x, TdVar *y, int n_in, int n_out)
{
  TdVar *in[3] = { x, y, y }, *out[2];

  call_line = __LINE__ + 1;
  td_static_call (step, in, n_in, out, n_out);
  return out[0];
}

static void
train (TdVar *loss)
{
  td_cleargrads (w.root);
  td_backward (loss, 0);
}

static TdVar *
usual_x (void)
{
  return td_rand (TD_F32, TD_SHAPE (ROWS, WIDTH));
}

static TdVar *
usual_y (void)
{
  return td_rand (TD_F32, TD_SHAPE (2));
}

static void
usual (void)
{
  train (call (usual_x (), usual_y (), 2, 1));
}

/* ---- plants ---- */

static int n_shapes;

static void
shape (void)
{
  TdVar *x = td_mul_scalar (td_rand (TD_F32, TD_SHAPE (ROWS + ++n_shapes, WIDTH)), 2);

  tell ("step", "shape of an argument", __LINE__ - 2, 1);
  train (call (x, usual_y (), 2, 1));
}

static void
shape_twice (void)
{
  TdVar *x = td_square (td_rand (TD_F32, TD_SHAPE (ROWS + ++n_shapes, WIDTH))), *first;

  tell ("step", "shape of an argument", __LINE__ - 2, 1);
  tell ("step", "the trace waits for its backward", 0, 1);
  first = call (x, usual_y (), 2, 1);
  train (td_add (first, call (x, usual_y (), 2, 1)));
}

static void
dtype (void)
{
  TdVar *y = td_full (TD_F64, TD_SHAPE (2), 3);

  tell ("step", "dtype of an argument", call_line, 1); /* an array is of no line */
  train (call (usual_x (), y, 2, 1));
}

static void
gradient (void)
{
  TdVar *x = td_variable (td_rand (TD_F32, TD_SHAPE (ROWS, WIDTH)), "x");

  tell ("step", "gradient of an argument", __LINE__ - 2, 1);
  train (call (x, usual_y (), 2, 1));
}

static void
arguments (void)
{
  tell ("step", "number of arguments", call_line, 1);
  train (call (usual_x (), usual_y (), 3, 1));
}

static void
results (void)
{
  tell ("step", "number of results", call_line, 1);
  train (call (usual_x (), usual_y (), 2, 2));
}

static void
mode (void)
{
  tell ("step", "training or test", call_line, 1);
  TD_USING (train, 0)
    call (usual_x (), usual_y (), 2, 1);
}

static void
backprop (void)
{
  tell ("step", "with or without backprop", call_line, 1);
  TD_NO_BACKPROP
    call (usual_x (), usual_y (), 2, 1);
}

static void
links (void)
{
  char name[16];

  snprintf (name, sizeof name, "more%d", now);
  td_linear_new (w.root, name, 2, 2);
  tell ("step", "links and parameters", __LINE__ - 1, 1);
  usual ();
}

static void
memory (void)
{
  w.depth++;
  tell ("step", "memory that the program registered", watch_line, 1);
  usual ();
}

/* It is of no line, until it wants a gradient. */
static void
capture (void)
{
  if (w.captured != NULL)
    td_release (w.captured);
  w.captured = td_retain (td_rand (TD_F32, TD_SHAPE (WIDTH)));
  captured_line = 0;
}

static void
captured_gone (void)
{
  tell ("step", "a variable that the code used", captured_line > 0 ? captured_line : call_line,
        1);
  capture ();
  usual ();
}

static void
captured_gradient (void)
{
  td_variable (w.captured, "captured");
  captured_line = __LINE__ - 1;
  tell ("step", "gradient of a variable that the code uses", captured_line, 1);
  usual ();
}

static void
read (void)
{
  static float value = 1;

  value = value > 0 ? -value - 1 : -value + 1;
  td_write (w.gate, &value, sizeof value);
  tell ("step", "numbers that the code reads", read_line, 1);
  usual ();
}

static void
see (TdHook *hook, void *self, const TdFunctionCall *of)
{
  (void)hook;
  (void)self;
  (void)of;
}

static void
hook (void)
{
  static const TdHookClass seeing
      = { .size = sizeof seeing, .name = "seeing", .forward_postprocess = see };
  TdHook *h = td_hook_new (&seeing);

  tell ("step", "hooks are set", call_line, 1);
  td_hook_add (h);
  usual ();
  td_hook_free (h);
}

static void
off (void)
{
  tell ("step", "static graphs are off", call_line, 1);
  TD_USING (use_static_graph, 0)
    usual ();
}

/* once: the same again would find the schedule that it left. */
static const struct
{
  void (*plant) (void);
  bool once;
} plants[] = {
  { shape, false },   { shape_twice, false },   { dtype, true },
  { gradient, true }, { arguments, true },      { results, true },
  { mode, true },     { backprop, true },       { links, false },
  { memory, false },  { captured_gone, false }, { captured_gradient, true },
  { read, false },    { hook, false },          { off, false },
};

enum
{
  N_KINDS = sizeof plants / sizeof *plants
};

/* ---- functions with one trouble each ---- */

static void
setter_forward (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)self;
  (void)n_in;
  (void)n_out;
  w.set_by_code++;
  out[0] = td_relu (in[0]);
}

static void
inner_forward (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)self;
  (void)n_in;
  (void)n_out;
  out[0] = td_tanh (in[0]);
}

static void
outer_forward (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)n_in;
  (void)n_out;
  out[0] = td_relu (td_static_call1 (self, td_sigmoid (in[0])));
}

static void
outside_forward (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)self;
  (void)n_in;
  (void)n_out;
  out[0] = td_add (in[0], w.outside);
}

static int changing_line;

static void
changing_forward (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)self;
  (void)n_in;
  (void)n_out;
  changing_line = __LINE__ + 1;
  out[0] = td_mul_scalar (td_relu (in[0]), w.unseen);
}

static TdStatic *setter, *outer, *outside, *changing;
static int setter_line, n_others, changes_at;

static void
make_others (void)
{
  TdStatic *inner = td_static_new (inner_forward, NULL, .name = "inner", .verify = 0);

  setter = td_static_new (setter_forward, NULL, .name = "setter", .verify = 0);
  td_static_watch (setter, "count", &w.set_by_code, sizeof w.set_by_code);
  setter_line = __LINE__ - 1;
  outer = td_static_new (outer_forward, inner, .name = "outer", .verify = 0);
  outside = td_static_new (outside_forward, NULL, .name = "outside", .verify = 0);
  changing = td_static_new (changing_forward, NULL, .name = "changing", .verify = 1);
  changes_at = 3 + pick (N_OTHER - 4);
  w.unseen = 0.5;
}

static void
call_others (void)
{
  const bool first = n_others++ == 0;
  TdVar *x = td_rand (TD_F32, TD_SHAPE (3));

  w.outside = td_mul_scalar (td_variable (x, "x"), 2);
  tell ("outside", "a variable from outside", __LINE__ - 1, 1);
  td_static_call1 (outside, td_rand (TD_F32, TD_SHAPE (3)));
  tell ("setter", first ? "first call: it is traced" : "memory that the code sets",
        first ? 0 : setter_line, 1);
  td_static_call1 (setter, td_rand (TD_F32, TD_SHAPE (3)));
  td_static_call1 (outer, td_rand (TD_F32, TD_SHAPE (3)));
  w.unseen = n_others == changes_at ? 0.75 : w.unseen;
  td_static_call1 (changing, td_rand (TD_F32, TD_SHAPE (3)));
  if (first)
    {
      tell ("inner", "inside another static function", 0, 1);
      tell ("outer", "first call: it is traced", 0, 1);
      tell ("changing", "first call: it is traced", 0, 1);
    }
  else if (n_others == changes_at)
    tell ("changing", "its code is not what it was", changing_line, 1);
  else
    tell ("changing", "code ran beside its schedule", 0, 1);
}

int
main (int argc, char **argv)
{
  bool done[N_KINDS] = { false };

  td_init (&argc, &argv);
  random_state = argc > 1 ? strtoull (argv[1], NULL, 10) * 7919 + 1 : 1;
  for (int i = 0; i < 5; i++)
    pick (2);
  w.root = td_chain_new ("net");
  w.l1 = td_linear_new (w.root, "l1", WIDTH, WIDTH);
  w.gate = td_retain (td_ones (TD_F32, TD_SHAPE (1)));
  capture ();
  w.depth = 1;
  step = td_static_new (step_forward, NULL, .name = "step", .verify = 0,
                        .minimize_cache_size = false);
  td_static_watch (step, "depth", &w.depth, sizeof w.depth);
  watch_line = __LINE__ - 1;
  make_others ();
  TD_ITERATIONS (i, END + N_OTHER)
    {
      int kind;

      now = (int)i;
      if (i == 0)
        tell ("step", "first call: it is traced", 0, 1);
      do
        kind = pick (N_KINDS);
      while (done[kind]);
      if (i >= GAP && i < END && (i - GAP) % (GAP + 1) == 0)
        {
          done[kind] = plants[kind].once;
          plants[kind].plant ();
        }
      else
        usual ();
      if (i >= END) /* links that come are a miss of theirs too */
        call_others ();
    }
  for (int i = 0; i < n_told; i++)
    printf ("%s|%s|%d|%d|%d\n", told[i].function, told[i].title, told[i].line, told[i].n,
            told[i].first);
  return td_finish ();
}
