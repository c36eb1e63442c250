/* A searcher: random loops of which turns were changed. Whatever was changed and where, the
 * graph has one loop of so many turns, with just the loop's operations in it, and says which
 * differ.
 *
 * PLANTED_FIRST=n begins there, PLANTED_N=n looks at so many.
 * SPDX-License-Identifier: MIT */
#include "td-test.h"
#include "td-synthetic.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "graph/td-graph.h"

#define N_CASES 2000
#define MAX_PIECES 9
#define FIRST_LINE 30 /* of the loop's body: its pieces are at 30, 32, 34 ... */

typedef enum
{
  LEFT_OUT,     /* an operation that the other turns do, as the sum of the first loss */
  ADDED,        /* one more, between two others */
  REPLACED,     /* another operation on the same line */
  OTHER_BRANCH, /* another operation on another line of the body */
  CHANGED_CALL, /* a call does something else */
  N_CHANGES,
} Change;

/* A call of `n_ops` operations, or an operation. */
typedef struct
{
  gboolean is_call, is_series; /* of a link: always the same one, or h0, h1, h2 ... */
  guint op, n_ops;
} Piece;

typedef struct
{
  Piece pieces[MAX_PIECES];
  guint n_pieces, n_turns, n_before, n_after;
  guint n_changed, changed[2]; /* turns */
  Change change;
  guint at; /* which piece */
} Program;

static const char *const ops[] = { "linear", "tanh", "sigmoid", "add", "mul", "relu", "exp" };

static guint
pick (guint64 *random, guint n)
{
  *random = *random * 6364136223846793005u + 1442695040888963407u;
  return (guint)((*random >> 33) % n);
}

/* ---- programs ---- */

static gboolean
is_changed (const Program *p, guint turn)
{
  for (guint i = 0; i < p->n_changed; i++)
    if (p->changed[i] == turn)
      return TRUE;
  return FALSE;
}

static guint
count_ops (const Program *p)
{
  guint n = 0;

  for (guint i = 0; i < p->n_pieces; i++)
    n += p->pieces[i].is_call ? p->pieces[i].n_ops : 1;
  return n;
}

static void
make_body (Program *p, guint64 *random)
{
  gboolean has_series = FALSE;

  p->n_pieces = 1 + pick (random, MAX_PIECES);
  for (guint i = 0; i < p->n_pieces; i++)
    {
      Piece *piece = &p->pieces[i];

      piece->is_call = pick (random, 3) == 0;
      piece->is_series = piece->is_call && !has_series && pick (random, 2);
      has_series = has_series || piece->is_series;
      piece->op = pick (random, G_N_ELEMENTS (ops));
      piece->n_ops = 2 + pick (random, 5);
    }
  /* one operation again and again, and then another one: nobody could say that it is a turn */
  if (count_ops (p) < 4)
    p->pieces[0] = (Piece){ .is_call = TRUE, .n_ops = 4 };
}

static void
make_change (Program *p, guint64 *random)
{
  p->change = (Change)pick (random, N_CHANGES);
  p->at = pick (random, p->n_pieces);
  if (p->change == CHANGED_CALL || p->n_pieces < 3)
    {
      p->change = CHANGED_CALL;
      while (!p->pieces[p->at].is_call)
        {
          p->at = (p->at + 1) % p->n_pieces;
          if (p->at == 0 && !p->pieces[0].is_call)
            p->pieces[0] = (Piece){ .is_call = TRUE, .n_ops = 3 };
        }
      return;
    }
  /* at the very beginning or end nobody knows whether it is before or behind the loop */
  p->at = 1 + pick (random, p->n_pieces - 2);
  p->pieces[p->at] = (Piece){ .op = p->pieces[p->at].op };
}

static void
make_program (Program *p, guint64 seed)
{
  guint64 random = seed * 2654435761u + 1;

  *p = (Program){ 0 };
  for (guint i = 0; i < 8; i++)
    pick (&random, 2);
  make_body (p, &random);
  make_change (p, &random);
  p->n_turns = 5 + pick (&random, 30);
  p->n_before = pick (&random, 4);
  p->n_after = pick (&random, 4);
  p->n_changed = pick (&random, 5) == 0 ? 2 : pick (&random, 12) > 0;
  p->changed[0] = pick (&random, 3) ? 0 : pick (&random, p->n_turns);
  p->changed[1] = pick (&random, 2) ? p->n_turns - 1 : pick (&random, p->n_turns);
  if (p->n_changed == 1 && pick (&random, 2))
    p->changed[0] = p->changed[1];
  /* of eight turns, two of them odd, other eight may be the loop */
  if (p->n_changed == 2 && (p->changed[0] == p->changed[1] || p->n_turns < 12))
    p->n_changed = 1;
  /* between two turns the lines tell which of them did something more */
  if (p->n_changed && p->change == ADDED && !is_changed (p, 0) && pick (&random, 3) == 0)
    p->at = 0;
  else if (p->n_changed && p->change == ADDED && !is_changed (p, p->n_turns - 1)
           && pick (&random, 3) == 0)
    p->at = p->n_pieces;
}

static guint
run_call (TdSynthetic *s, const Program *p, guint turn, guint i, guint h, gboolean changed)
{
  const Piece *piece = &p->pieces[i];
  char path[32];
  guint n = piece->n_ops + (changed ? 1 : 0);

  if (piece->is_series)
    g_snprintf (path, sizeof path, "net/h%u", turn);
  else
    g_snprintf (path, sizeof path, "net/cell%c", 'a' + i);
  td_synthetic_enter_link (s, path, FIRST_LINE + 2 * i);
  for (guint k = 0; k < n; k++)
    h = TD_OP (s, ops[(piece->op + k) % G_N_ELEMENTS (ops)], 200 + 20 * i + k, TD_SHAPE (4, 4),
               h);
  td_synthetic_leave (s);
  return h;
}

/* Return how many operations are in the loop. */
static guint
run_turn (TdSynthetic *s, const Program *p, guint turn, guint *h)
{
  const gint64 *shape = TD_SHAPE (4, 4);
  gboolean changed = is_changed (p, turn);
  guint n = 0;

  for (guint i = 0; i <= p->n_pieces; i++)
    {
      const Piece *piece = &p->pieces[i];
      gboolean here = changed && i == p->at;
      guint line = FIRST_LINE + 2 * i, op = piece->op;

      if (here && p->change == ADDED)
        {
          *h = TD_OP (s, "dropout", line - 1, shape, *h);
          n++;
        }
      if (i == p->n_pieces || (here && p->change == LEFT_OUT))
        continue;
      if (piece->is_call)
        {
          gboolean more = here && p->change == CHANGED_CALL;

          *h = run_call (s, p, turn, i, *h, more);
          n += piece->n_ops + more;
          continue;
        }
      if (here && p->change == OTHER_BRANCH)
        line--;
      if (here && (p->change == REPLACED || p->change == OTHER_BRANCH))
        op++;
      *h = TD_OP (s, ops[op % G_N_ELEMENTS (ops)], line, shape, *h);
      n++;
    }
  return n;
}

static TdIteration *
run (const Program *p, guint *n_in_loop)
{
  TdSynthetic *s = td_synthetic_new (0);
  guint h = td_synthetic_input (s, "x", TD_SHAPE (4, 4));

  *n_in_loop = 0;
  td_synthetic_enter_link (s, "net", 5);
  for (guint i = 0; i < p->n_before; i++)
    h = TD_OP (s, i % 2 ? "reshape" : "transpose", 10 + i, TD_SHAPE (4, 4), h);
  for (guint t = 0; t < p->n_turns; t++)
    *n_in_loop += run_turn (s, p, t, &h);
  for (guint i = 0; i < p->n_after; i++)
    h = TD_OP (s, i % 2 ? "mean" : "softmax", 100 + i, TD_SHAPE (4, 4), h);
  td_synthetic_leave (s);
  return td_synthetic_finish (s);
}

/* ---- what must be said ---- */

static char *
expected_end (const Program *p)
{
  guint n = p->n_changed, last = p->n_turns - 1;

  if (n == 0)
    return g_strdup_printf (" ×%u", p->n_turns);
  if (n == 2 && !(is_changed (p, 0) && is_changed (p, last)))
    return g_strdup_printf (" ×%u, 2 differ", p->n_turns);
  if (n == 2)
    return g_strdup_printf (" ×%u, first and last differ", p->n_turns);
  if (p->changed[0] == 0 || p->changed[0] == last)
    return g_strdup_printf (" ×%u, %s differs", p->n_turns, p->changed[0] ? "last" : "first");
  return NULL; /* " ×20, " + a name + " differs" */
}

static gboolean
is_right (const Program *p, char **said)
{
  guint n_in_loop, n, n_loops = 0;
  g_autoptr (TdIteration) it = run (p, &n_in_loop);
  const TdVizGroup *groups = td_viz_graph_get_groups (td_iteration_get_graph (it), &n);
  const TdVizGroup *loop = NULL;
  g_autofree char *end = expected_end (p);
  gboolean right;

  for (guint g = 0; g < n; g++)
    if (groups[g].kind == TD_GROUP_LOOP && groups[g].parent == 0)
      {
        loop = loop ? loop : &groups[g];
        n_loops++;
      }
  *said = loop ? g_strdup_printf ("%s of %u operations", loop->name, loop->n_ops[0])
               : g_strdup ("no loop");
  right = n_loops == 1 && loop->n_repeats == p->n_turns && loop->n_ops[0] == n_in_loop
          && (end ? g_str_has_suffix (loop->name, end)
                  : g_str_has_suffix (loop->name, " differs") && !strstr (loop->name, "first ")
                        && !strstr (loop->name, "last "));
  /* the one in the middle is a member, by its name */
  if (right && !end)
    {
      char *name = g_strndup (strchr (loop->name, ',') + 2,
                              strlen (strchr (loop->name, ',') + 2) - strlen (" differs"));
      guint turn = 0;

      for (guint g = 0; g < n; g++)
        if (&groups[groups[g].parent < 0 ? 0 : groups[g].parent] == loop)
          {
            if (turn == p->changed[0])
              right = strcmp (groups[g].name, name) == 0;
            turn++;
          }
      right = right && turn == p->n_turns;
      g_free (name);
    }
  return right;
}

static void
describe (const Program *p, guint64 seed, const char *said)
{
  static const char *const names[]
      = { "left out", "added", "replaced", "other branch", "changed call" };

  print_message ("TD_SEED=%" PRIu64 ": ×%u, %u before, %u after, %s at %u, turns", seed,
                 p->n_turns, p->n_before, p->n_after, names[p->change], p->at);
  for (guint i = 0; i < p->n_changed; i++)
    print_message (" %u", p->changed[i]);
  print_message ("; body:");
  for (guint i = 0; i < p->n_pieces; i++)
    print_message (" %s%s",
                   p->pieces[i].is_series ? "h*"
                   : p->pieces[i].is_call ? "cell"
                                          : "",
                   p->pieces[i].is_call ? "" : ops[p->pieces[i].op]);
  print_message ("\n  said: %s\n", said);
}

static void
loops__are_counted_with_turns_that_differ (void **state)
{
  guint64 first = td_test_number ("PLANTED_FIRST", 0),
          n = td_test_number ("PLANTED_N", N_CASES);
  guint wrong = 0;

  for (guint64 seed = first; seed < first + n; seed++)
    {
      Program p;
      char *said;

      make_program (&p, seed);
      if (!is_right (&p, &said))
        {
          if (wrong++ < 10)
            describe (&p, seed, said);
        }
      g_free (said);
    }
  print_message ("%" PRIu64 " programs\n", n);
  assert_int_equal (wrong, 0);
  (void)state;
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (loops__are_counted_with_turns_that_differ),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
