/* Built-in digits, for a first run without any file: pen strokes on 28 x 28, each with its own
 * slant, size, place, pen and noise.  Number i is always the same picture.
 *
 * SPDX-License-Identifier: MIT */
#include "dataset.h"
#include "host-memory.h"

#include <math.h>

enum
{
  SIDE = 28,
  N_TRAIN = 10000,
  N_TEST = 2000,
  ARC_STEPS = 12
};

/* A stroke: a line or an arc (centre, radii, from one angle to another, in eighths of a turn;
 * 0 points right, 2 down), in a box of 1 x 1 with y downwards. */
typedef struct
{
  char kind; /* 'L' x0 y0 x1 y1; 'A' cx cy rx ry, from, to; 0 end */
  float a, b, c, d, from, to;
} Stroke;

static const Stroke digits[10][5] = {
  { { 'A', .50f, .50f, .30f, .45f, -2, 6 } },
  { { 'L', .30f, .25f, .55f, .05f, 0, 0 }, { 'L', .55f, .05f, .55f, .95f, 0, 0 } },
  { { 'A', .50f, .30f, .28f, .25f, -4, 1 },
    { 'L', .70f, .48f, .20f, .95f, 0, 0 },
    { 'L', .20f, .95f, .82f, .95f, 0, 0 } },
  { { 'A', .45f, .28f, .28f, .23f, -4, 2 }, { 'A', .45f, .73f, .32f, .22f, -2, 4 } },
  { { 'L', .60f, .05f, .15f, .65f, 0, 0 },
    { 'L', .15f, .65f, .85f, .65f, 0, 0 },
    { 'L', .65f, .35f, .65f, .95f, 0, 0 } },
  { { 'L', .78f, .05f, .28f, .05f, 0, 0 },
    { 'L', .28f, .05f, .24f, .45f, 0, 0 },
    { 'A', .45f, .67f, .32f, .28f, -3, 3.5f } },
  { { 'A', .85f, .68f, .63f, .63f, -2.4f, -4 }, { 'A', .50f, .70f, .28f, .25f, -4, 4 } },
  { { 'L', .20f, .07f, .80f, .07f, 0, 0 }, { 'L', .80f, .07f, .40f, .95f, 0, 0 } },
  { { 'A', .50f, .28f, .24f, .22f, 0, 8 }, { 'A', .50f, .72f, .29f, .23f, 0, 8 } },
  { { 'A', .48f, .32f, .27f, .26f, 0, 8 }, { 'L', .75f, .34f, .62f, .95f, 0, 0 } },
};

/* cos and sin of eighths of a turn, interpolated between the exact ones' own Taylor sums: the
 * same bits on every machine, which libm does not promise. */
static float
cosine (float x)
{
  double t, turns = (double)x / 8;

  turns -= floor (turns + 0.5);
  t = turns * 6.283185307179586;
  t *= t;
  return (
      float)(1
             - t / 2
                   * (1
                      - t / 12
                            * (1
                               - t / 30
                                     * (1
                                        - t / 56
                                              * (1
                                                 - t / 90 * (1 - t / 132 * (1 - t / 182)))))));
}

static float
sine (float x)
{
  return cosine (x - 2);
}

static float
uniform (uint64_t *state, float low, float high)
{
  return low + (high - low) * (float)(td__random_next (state) >> 40) * 0x1p-24f;
}

/* How one picture differs from the next: x' = m x + shift, and the pen. */
typedef struct
{
  float m[4], shift[2], pen, ink;
} Hand;

static Hand
draw_hand (uint64_t *state)
{
  float turn = uniform (state, -.22f, .22f), slant = uniform (state, -.22f, .22f);
  float sx = uniform (state, 12.f, 19.f), sy = uniform (state, 16.f, 21.f);
  float c = cosine (turn), s = sine (turn);
  Hand h = { .m = { sx * c, -sy * (s + slant * c), sx * s, sy * (c - slant * s) } };

  h.shift[0] = 14 + uniform (state, -2.f, 2.f);
  h.shift[1] = 14 + uniform (state, -2.f, 2.f);
  h.pen = uniform (state, .8f, 1.6f);
  h.ink = uniform (state, 190.f, 255.f);
  return h;
}

/* Ink on all pixels near the line from p to q; overlapping strokes do not add up. */
static void
draw_line (uint8_t *image, const Hand *h, const float *p, const float *q)
{
  float dx = q[0] - p[0], dy = q[1] - p[1], length2 = dx * dx + dy * dy;
  float reach = h->pen + 1;
  int x0 = (int)floorf (fminf (p[0], q[0]) - reach),
      x1 = (int)ceilf (fmaxf (p[0], q[0]) + reach);
  int y0 = (int)floorf (fminf (p[1], q[1]) - reach),
      y1 = (int)ceilf (fmaxf (p[1], q[1]) + reach);

  for (int y = y0 < 0 ? 0 : y0; y <= y1 && y < SIDE; y++)
    for (int x = x0 < 0 ? 0 : x0; x <= x1 && x < SIDE; x++)
      {
        float px = (float)x - p[0], py = (float)y - p[1];
        float t = length2 > 0 ? (px * dx + py * dy) / length2 : 0;
        float ex, ey, ink;

        t = t < 0 ? 0 : t > 1 ? 1 : t;
        ex = px - t * dx;
        ey = py - t * dy;
        ink = h->ink * (h->pen + .5f - sqrtf (ex * ex + ey * ey));
        ink = ink > h->ink ? h->ink : ink;
        if (ink > (float)image[y * SIDE + x])
          image[y * SIDE + x] = (uint8_t)ink;
      }
}

static void
place (const Hand *h, float x, float y, float *out)
{
  out[0] = h->m[0] * (x - .5f) + h->m[1] * (y - .5f) + h->shift[0];
  out[1] = h->m[2] * (x - .5f) + h->m[3] * (y - .5f) + h->shift[1];
}

static void
draw_stroke (uint8_t *image, const Hand *h, const Stroke *s, uint64_t *state)
{
  float wobble[4], points[2][2];
  int n = s->kind == 'L' ? 1 : ARC_STEPS;

  for (int i = 0; i < 4; i++)
    wobble[i] = uniform (state, -.04f, .04f);
  for (int i = 0; i <= n; i++)
    {
      float t = (float)i / (float)n, angle = s->from + t * (s->to - s->from);
      float x = s->kind == 'L' ? s->a + t * (s->c - s->a) : s->a + s->c * cosine (angle);
      float y = s->kind == 'L' ? s->b + t * (s->d - s->b) : s->b + s->d * sine (angle);

      place (h, x + wobble[0] + t * wobble[1], y + wobble[2] + t * wobble[3], points[i & 1]);
      if (i > 0)
        draw_line (image, h, points[0], points[1]);
    }
}

static int
draw_digit (uint8_t *image, uint64_t number)
{
  uint64_t state = (number + 1) * 0xd1342543de82ef95u;
  int digit = (int)(td__random_next (&state) % 10);
  Hand hand = draw_hand (&state);

  for (int i = 0; i < 5 && digits[digit][i].kind != 0; i++)
    draw_stroke (image, &hand, &digits[digit][i], &state);
  for (int i = 0; i < SIDE * SIDE; i++)
    {
      uint64_t r = td__random_next (&state);
      int noisy = (int)image[i] + (int)(r & 31) - 16;

      if ((r >> 8 & 63) == 0) /* a speck */
        noisy += (int)(r >> 16 & 127);
      image[i] = (uint8_t)(noisy < 0 ? 0 : noisy > 255 ? 255 : noisy);
    }
  return digit;
}

TdDataset *
td_digits_open (int part)
{
  TdDataset *d;
  uint64_t first = part == TD_TEST ? N_TRAIN : 0;

  if (td__stranger ("td_digits_open"))
    return td__dataset_inert ();
  if (part != TD_TRAIN && part != TD_TEST)
    {
      td__fail (TD_ERR_ARG, "td_digits_open", NULL, "part %d is neither TD_TRAIN nor TD_TEST",
                part);
      return td__dataset_inert ();
    }
  d = td__dataset_make ();
  d->n = d->n_rows = part == TD_TEST ? N_TEST : N_TRAIN;
  d->row = (TdShape){ 2, { SIDE, SIDE } };
  d->row_size = SIDE * SIDE;
  d->bytes = td__xcalloc ((size_t)d->n, SIDE * SIDE);
  d->labels = td__xcalloc ((size_t)d->n, sizeof *d->labels);
  for (int64_t i = 0; i < d->n; i++)
    d->labels[i] = draw_digit (d->bytes + i * SIDE * SIDE, first + (uint64_t)i);
  return d;
}
