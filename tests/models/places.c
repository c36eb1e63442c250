/* Places at which a program may go another way: in iteration k it does so at place k, and only
 * there. Iteration 0 goes the usual way. A comparison of iterations 0 and k has to name the
 * line with the mark "place k".
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <math.h>

static TdVar *
curve (TdVar *h)
{
  return td_tanh (td_sigmoid (h));
}

static TdVar *
bend (TdVar *h)
{
  h = td_relu (h);
  return td_add_scalar (h, 1.0);
}

static TdVar *
fold (TdVar *h)
{
  return bend (td_exp (h));
}

static TdVar *
ifs (TdVar *h, int k)
{
  if (k == 1) /* place 1 */
    {
      h = td_exp (h);
      h = td_tanh (h);
    }
  else
    h = td_sigmoid (h);
  if (k == 2) /* place 2 */
    h = td_relu (h);
  h = k == 3 ? td_tanh (h) : td_sin (h); /* place 3 */
  h = k == 4                             /* place 4 */
          ? td_cos (td_square (h))
          : td_sin (h);
  if (k == -1)
    h = td_exp (h);
  else if (k == 5) /* place 5 */
    h = td_tanh (h);
  else
    h = td_relu (h);
  if (k != 6) /* place 6 */
    {
      h = td_sin (h);
      h = td_cos (h);
    }
  if (h != NULL)
    if (k == 7) /* place 7 */
      h = td_square (h);
  return td_tanh (h);
}

static TdVar *
switches (TdVar *h, int k)
{
  switch (k) /* place 8 */
    {
    case 100:
      h = td_exp (h);
      break;
    case 8:
      h = td_sqrt (td_square (h));
      break;
    default:
      h = td_sin (h);
    }
  return td_cos (h);
}

static TdVar *
loops (TdVar *h, int k)
{
  int n = 0, m = 0;

  for (int i = 0; i < (k == 9 ? 5 : 3); i++) /* place 9 */
    {
      h = td_tanh (h);
      h = td_mul_scalar (h, 0.5);
    }
  while (n < (k == 10 ? 1 : 2)) /* place 10 */
    {
      h = td_sin (h);
      n++;
    }
  do /* place 11 */
    {
      h = td_cos (h);
      h = td_square (h);
    }
  while (++m < (k == 11 ? 3 : 2));
  for (int i = 0; i < 4; i++)
    {
      h = td_relu (h);
      if (i == 2 && k == 12) /* place 12 */
        break;
      h = td_add_scalar (h, 0.1);
    }
  for (int i = 0;; i++)
    {
      h = td_tanh (h);
      h = td_add_scalar (h, 0.2);
      if (i == (k == 13 ? 4 : 2)) /* place 13 */
        break;
    }
  for (int i = 0; i < 3; i++)
    {
      h = td_sin (h);
      if (i == 1 && k == 14) /* place 14 */
        continue;
      h = td_mul_scalar (h, 0.9);
    }
  for (int i = 0; i < 4; i++)
    {
      h = td_tanh (h);
      if (i == 2 && k == 15) /* place 15 */
        h = td_relu (h);
      h = td_mul_scalar (h, 1.1);
    }
  if (k == 16) /* place 16 */
    for (int i = 0; i < 3; i++)
      h = td_square (h);
  return td_sigmoid (h);
}

static TdVar *
leaves_early (TdVar *h, int k)
{
  h = td_tanh (h);
  if (k == 17) /* place 17 */
    return h;
  h = td_cos (h);
  return td_exp (h);
}

static TdVar *
calls (TdVar *h, int k)
{
  if (k == 18) /* place 18 */
    h = curve (h);
  else
    h = bend (h);
  h = td_sin (h);
  h = k == 19 ? fold (h) : curve (h); /* place 19 */
  if (k == 20)                        /* place 20 */
    TD_SCOPE ("extra")
      {
        h = td_cos (h);
        h = td_scope_yield (bend (h));
      }
  return td_square (h);
}

/* The depth of a tree of calls is decided within the function. */
static TdVar *
recurse (TdVar *h, int depth)
{
  if (depth == 0) /* place 21 */
    return td_tanh (h);
  return recurse (td_sin (h), depth - 1);
}

static TdVar *
links (TdVar *h, TdLink *const *l, int k)
{
  if (k == 22) /* place 22 */
    h = td_link (l[1], h);
  else
    h = td_link (l[0], h);
  return td_tanh (h);
}

/* No other way through the source: another attribute, inputs the other way round, another
 * order, other sizes. */
static TdVar *
others (TdVar *h, int k)
{
  TdVar *a = td_leaky_relu (h, .slope = k == 23 ? 0.3 : 0.1), *b = td_exp (h);
  TdVar *left = k == 24 ? b : a, *right = k == 24 ? a : b, *c = NULL, *d = NULL;

  h = td_sub (left, right);
  for (int i = 0; i < 2; i++)
    if ((i == 0) == (k != 25))
      c = td_sin (h);
    else
      d = td_cos (h);
  return td_mul (c, d);
}

/* Equal but for one number: the next float after 3, or no number. */
static void
numbers (int k)
{
  const float v[4] = { 1, k == 28 ? NAN : 2, k == 27 ? 0x1.800002p+1f : 3, 4 };

  td_mul_scalar (td_tensor (TD_F32, TD_SHAPE (2, 2), v), 1.0);
}

int
main (int argc, char **argv)
{
  td_init (&argc, &argv);

  TdLink *chain = td_chain_new ("net");
  TdLink *const l[] = { td_linear_new (chain, "l0", 4, 4), td_linear_new (chain, "l1", 4, 4) };

  TD_ITERATIONS (k, 29)
    {
      td_set_seed (7);

      TdVar *x = td_name (td_rand (TD_F32, TD_SHAPE (k == 26 ? 3 : 2, 4)), "x");
      TdVar *h = ifs (x, (int)k);

      h = switches (h, (int)k);
      h = loops (h, (int)k);
      h = leaves_early (h, (int)k);
      h = calls (h, (int)k);
      h = td_add_scalar (h, 0.0);
      h = recurse (h, k == 21 ? 3 : 2);
      h = links (h, l, (int)k);
      h = others (h, (int)k);
      numbers ((int)k);
      td_cleargrads (chain);
      td_backward (td_sum (h), 0);
    }
  td_link_free (chain);
  return td_finish ();
}
