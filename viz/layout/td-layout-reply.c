/* The parser of the layout helper's answers.
 *
 * SPDX-License-Identifier: MIT */
#include "layout/td-layout-reply.h"

#include <math.h>
#include <string.h>

typedef struct
{
  const char *at, *end;
} Input;

/* Take a word that must be there. */
static gboolean
take (Input *in, const char *word)
{
  gsize n = strlen (word);

  if ((gsize)(in->end - in->at) < n || memcmp (in->at, word, n) != 0)
    return FALSE;
  in->at += n;
  return TRUE;
}

static gboolean
take_count (Input *in, guint limit, guint *count)
{
  guint64 value = 0;
  const char *start = in->at;

  for (; in->at < in->end && g_ascii_isdigit (*in->at) && in->at - start < 10; in->at++)
    value = value * 10 + (guint)(*in->at - '0');
  *count = (guint)value;
  return in->at > start && value <= limit;
}

/* " 12.34": plain decimals only, so neither "nan" nor "1e999" gets in. */
static gboolean
take_number (Input *in, double *number)
{
  double value = 0, unit = 1;
  gboolean negative, any = FALSE;

  if (!take (in, " "))
    return FALSE;
  negative = take (in, "-");
  for (; in->at < in->end && g_ascii_isdigit (*in->at) && value < 1e9; in->at++, any = TRUE)
    value = value * 10 + (*in->at - '0');
  if (take (in, "."))
    for (; in->at < in->end && g_ascii_isdigit (*in->at); in->at++, any = TRUE)
      value += (*in->at - '0') * (unit /= 10);
  *number = negative ? -value : value;
  return any && value < 1e9;
}

static gboolean
parse (Input *in, TdLayoutReply *self, GArray *points)
{
  guint n, m;

  if (!take (in, "ok ") || !take_count (in, G_MAXINT, &n) || !take (in, " ")
      || !take_count (in, G_MAXINT, &m) || !take (in, "\n") || n != self->n_nodes
      || m != self->n_edges)
    return FALSE;
  for (guint i = 0; i < n; i++)
    if (!take (in, "n") || !take_number (in, &self->x[i]) || !take_number (in, &self->y[i])
        || !take (in, "\n"))
      return FALSE;
  for (guint i = 0; i < m; i++)
    {
      guint k;

      self->first_point[i] = points->len / 2;
      if (!take (in, "e ") || !take_count (in, TD_REPLY_MAX_POINTS, &k))
        return FALSE;
      for (guint p = 0; p < 2 * k; p++)
        {
          double number;

          if (points->len >= 2 * TD_REPLY_MAX_POINTS || !take_number (in, &number))
            return FALSE;
          g_array_append_val (points, number);
        }
      if (!take (in, "\n"))
        return FALSE;
    }
  self->first_point[m] = points->len / 2;
  return take (in, "end\n");
}

TdLayoutReply *
td__layout_reply_parse (const char *text, gsize n_text, guint n_nodes, guint n_edges,
                        char *what, gsize n_what)
{
  const char *start = text ? text : ""; /* nothing at all may come without an address */
  Input in = { start, start + n_text };
  TdLayoutReply *self;
  GArray *points;

  if (take (&in, "error "))
    {
      const char *line_end = memchr (in.at, '\n', (gsize)(in.end - in.at));

      g_snprintf (what, (gulong)n_what, "the layout helper says: %.*s",
                  (int)MIN ((line_end ? line_end : in.end) - in.at, 200), in.at);
      return NULL;
    }
  self = g_atomic_rc_box_new0 (TdLayoutReply);
  self->n_nodes = n_nodes;
  self->n_edges = n_edges;
  self->x = g_new0 (double, n_nodes + 1);
  self->y = g_new0 (double, n_nodes + 1);
  self->first_point = g_new0 (guint32, n_edges + 2);
  points = g_array_new (FALSE, FALSE, sizeof (double));
  if (!parse (&in, self, points))
    {
      guint line = 1;

      for (const char *p = start; p < in.at; p++)
        line += *p == '\n';
      g_snprintf (what, (gulong)n_what, "the layout helper's answer makes no sense in line %u",
                  line);
      g_array_free (points, TRUE);
      td__layout_reply_unref (self);
      return NULL;
    }
  self->points = (double *)(gpointer)g_array_free (points, FALSE);
  return self;
}

static void
clear (gpointer data)
{
  TdLayoutReply *self = data;

  g_free (self->x);
  g_free (self->y);
  g_free (self->first_point);
  g_free (self->points);
}

TdLayoutReply *
td__layout_reply_ref (TdLayoutReply *self)
{
  return g_atomic_rc_box_acquire (self);
}

void
td__layout_reply_unref (TdLayoutReply *self)
{
  g_atomic_rc_box_release_full (self, clear);
}

gboolean
td__layout_reply_is_whole (const char *text, gsize n_text)
{
  if (n_text >= 6 && memcmp (text, "error ", 6) == 0)
    return text[n_text - 1] == '\n';
  return n_text >= 5 && memcmp (text + n_text - 5, "\nend\n", 5) == 0;
}

double
td__layout_reply_pass (const TdLayoutReply *self, guint edge, double y, double fallback)
{
  const double *p = self->points;

  for (guint32 i = self->first_point[edge]; i + 1 < self->first_point[edge + 1]; i++)
    {
      double y0 = p[2 * i + 1], y1 = p[2 * i + 3];

      if ((y0 <= y && y <= y1) || (y1 <= y && y <= y0))
        return y0 == y1 ? p[2 * i]
                        : p[2 * i] + (p[2 * i + 2] - p[2 * i]) * (y - y0) / (y1 - y0);
    }
  return fallback;
}
