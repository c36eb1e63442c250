/*
 * Numbers of two outputs: their statistics, and where both tapes hold the tensors every
 * element.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "td-diff-private.h"
#include "td-tape.h"

/* Elements compared at a time: a multiple of every element's size fits a small buffer. */
#define CHUNK_BYTES 65536

typedef struct
{
  TdComparison *c;
  const TdTapeStats **stats[2];      /* by variable */
  const TdTapeTensorRef **tensor[2]; /* by variable; NULL: no reader or no tensor */
  GArray *numbers;
} Numbers;

/* ---- elements ---- */

static double
half_value (guint16 h)
{
  double m = h & 0x3ff, sign = h & 0x8000 ? -1 : 1;
  int e = (h >> 10) & 31;

  if (e == 31)
    return m > 0 ? (double)NAN : sign * HUGE_VAL;
  return e > 0 ? sign * ldexp (1024 + m, e - 25) : sign * ldexp (m, -24);
}

double
td__diff_element (guint dtype, const guint8 *p, gint64 *place)
{
  union
  {
    gint64 i64;
    guint64 u64;
    gint32 i32;
    guint32 u32;
    guint16 u16;
    float f32;
    double f64;
  } u;

  u.i64 = 0;
  memcpy (&u, p, td_tape_dtype_bytes (dtype));
  switch (dtype)
    {
    case TD_TAPE_F32:
      *place = u.u32 & 0x80000000u ? -(gint64)(u.u32 & 0x7fffffffu) : (gint64)u.u32;
      return u.f32;
    case TD_TAPE_F64:
      *place = u.i64 < 0 ? -(gint64)(u.u64 & G_MAXINT64) : u.i64;
      return u.f64;
    case TD_TAPE_F16:
    case TD_TAPE_BF16:
      *place = u.u16 & 0x8000 ? -(gint64)(u.u16 & 0x7fff) : (gint64)u.u16;
      if (dtype == TD_TAPE_F16)
        return half_value (u.u16);
      u.u32 = (guint32)u.u16 << 16;
      return u.f32;
    case TD_TAPE_I32:
      return (double)(*place = u.i32);
    case TD_TAPE_I64:
      return (double)(*place = u.i64);
    default:
      return (double)(*place = p[0]);
    }
}

static void
compare_element (TdDiffNumbers *n, guint dtype, const guint8 *a, const guint8 *b, gint64 index)
{
  gint64 place_a, place_b;
  double x = td__diff_element (dtype, a, &place_a), y = td__diff_element (dtype, b, &place_b);
  double apart = fabs (x - y);
  gboolean nan = isnan (x) || isnan (y);
  guint64 ulp = place_a > place_b ? (guint64)place_a - (guint64)place_b
                                  : (guint64)place_b - (guint64)place_a;

  if (isnan (x) && isnan (y))
    return;
  if (!nan && ulp == 0) /* 0 and -0 stand at one place */
    return;
  if (n->first < 0)
    {
      n->first = index;
      n->first_value[0] = x;
      n->first_value[1] = y;
    }
  n->n_differ++;
  n->max_abs = MAX (n->max_abs, isnan (apart) ? HUGE_VAL : apart);
  n->max_ulp = MAX (n->max_ulp, nan ? G_MAXUINT64 : ulp);
}

/* Reads both tensors piece by piece. FALSE: one of them is no longer there. */
static gboolean
compare_values (Numbers *s, TdDiffNumbers *n, const TdTapeTensorRef *a,
                const TdTapeTensorRef *b)
{
  TdComparison *c = s->c;
  g_autofree guint8 *buffer = g_malloc (2 * CHUNK_BYTES);
  TdTapeTensorRecord record[2];
  gsize size;
  guint64 at = 0;

  n->bitwise = TRUE;
  n->first = -1;
  do
    {
      gint64 got[2];

      got[0] = td_tape_tensor_read (c->reader[0], a, &record[0], buffer, at, CHUNK_BYTES);
      got[1] = td_tape_tensor_read (c->reader[1], b, &record[1], buffer + CHUNK_BYTES, at,
                                    CHUNK_BYTES);
      size = td_tape_dtype_bytes (record[0].dtype);
      if (got[0] < 0 || got[0] != got[1] || size == 0 || record[0].dtype != record[1].dtype
          || record[0].bytes != record[1].bytes || (got[0] == 0 && at < record[0].bytes))
        return FALSE;
      if (memcmp (buffer, buffer + CHUNK_BYTES, (gsize)got[0]) != 0)
        {
          n->bitwise = FALSE;
          for (gsize k = 0; k + size <= (gsize)got[0]; k += size)
            if (memcmp (buffer + k, buffer + CHUNK_BYTES + k, size) != 0)
              compare_element (n, record[0].dtype, buffer + k, buffer + CHUNK_BYTES + k,
                               (gint64)((at + k) / size));
        }
      at += (guint64)got[0];
    }
  while (at < record[0].bytes);
  n->n = record[0].bytes / size;
  n->has_values = TRUE;
  return TRUE;
}

/* ---- statistics ---- */

static gboolean
same_number (double a, double b)
{
  return a == b || (isnan (a) && isnan (b));
}

static gboolean
same_stats (const TdTapeStats *a, const TdTapeStats *b)
{
  return a->n == b->n && a->n_nan == b->n_nan && a->n_pos_inf == b->n_pos_inf
         && a->n_neg_inf == b->n_neg_inf && a->n_zero == b->n_zero
         && same_number (a->mean, b->mean) && same_number (a->l2, b->l2)
         && same_number (a->min, b->min) && same_number (a->max, b->max)
         && same_number (a->m2, b->m2);
}

/* ---- pairs ---- */

static gboolean
same_size (const TdComparison *c, guint a, guint b)
{
  const TdTapeVar *x = &c->t[0]->vars[a], *y = &c->t[1]->vars[b];

  return x->dtype == y->dtype && x->ndim == y->ndim && x->bytes == y->bytes;
}

static void
compare_output (Numbers *s, TdDiffPair *pair, guint output, guint a, guint b)
{
  TdDiffNumbers n
      = { .output = output, .stats = { s->stats[0][a], s->stats[1][b] }, .first = -1 };
  gboolean stats = n.stats[0] && n.stats[1],
           tensors = s->tensor[0][a] && s->tensor[1][b] && same_size (s->c, a, b);

  if (tensors && !compare_values (s, &n, s->tensor[0][a], s->tensor[1][b]))
    tensors = FALSE;
  if (!stats && !tensors)
    return;
  n.differ = tensors ? n.n_differ > 0 : !same_stats (n.stats[0], n.stats[1]);
  s->c->d->has_numbers = TRUE;
  s->c->d->has_values |= tensors;
  if (n.differ)
    pair->aspects |= TD_DIFF_NUMBERS;
  if (pair->n_numbers++ == 0)
    pair->first_numbers = s->numbers->len;
  g_array_append_val (s->numbers, n);
}

static void
compare_pair (Numbers *s, TdDiffPair *pair)
{
  const TdTapeIteration *const *t = s->c->t;

  if (pair->event[0] < 0 || pair->event[1] < 0)
    return;
  const TdTapeEvent *ea = &t[0]->events[pair->event[0]], *eb = &t[1]->events[pair->event[1]];
  for (guint k = 0; k < MIN (ea->n_out, eb->n_out); k++)
    compare_output (s, pair, k, t[0]->outs[ea->first_out + k], t[1]->outs[eb->first_out + k]);
}

static void
index_side (Numbers *s, guint side)
{
  const TdTapeIteration *t = s->c->t[side];

  s->stats[side] = g_new0 (const TdTapeStats *, MAX (t->n_vars, 1));
  s->tensor[side] = g_new0 (const TdTapeTensorRef *, MAX (t->n_vars, 1));
  for (guint i = 0; i < t->n_stats; i++)
    if (t->stats[i].var < t->n_vars)
      s->stats[side][t->stats[i].var] = &t->stats[i];
  for (guint i = 0; s->c->reader[side] && i < t->n_tensors; i++)
    if (t->tensors[i].var < t->n_vars && t->tensors[i].event != TD_TAPE_NONE)
      s->tensor[side][t->tensors[i].var] = &t->tensors[i];
}

void
td__diff_numbers (TdComparison *c)
{
  Numbers s = { .c = c, .numbers = g_array_new (FALSE, FALSE, sizeof (TdDiffNumbers)) };

  index_side (&s, 0);
  index_side (&s, 1);
  for (guint i = 0; i < c->d->n_pairs; i++)
    compare_pair (&s, &c->d->pairs[i]);
  for (guint side = 0; side < 2; side++)
    {
      g_free (s.stats[side]);
      g_free (s.tensor[side]);
    }
  c->d->numbers = (TdDiffNumbers *)(void *)g_array_free (s.numbers, FALSE);
}
