/*
 * A scene as SVG of our own making: text stays text, patterns stay patterns, keys and tooltips
 * become titles. (Cairo's SVG turns text into outlines.)
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "td-paint-text.h"
#include "td-scene-private.h"

typedef struct
{
  const TdScene *scene;
  const TdTheme *theme;
  GString *out;
} Svg;

/* Numbers in the C locale with at most two decimals and no trailing zeros. */
static void
num (GString *s, double v)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];

  g_ascii_formatd (text, sizeof text, "%.2f", v);
  gsize n = strlen (text);
  while (n > 1 && text[n - 1] == '0')
    n--;
  if (text[n - 1] == '.')
    n--;
  g_string_append_len (s, text, (gssize)n);
}

static void
attr (GString *s, const char *name, double v)
{
  g_string_append_printf (s, " %s=\"", name);
  num (s, v);
  g_string_append_c (s, '"');
}

static void
color (GString *s, const char *name, TdColor c)
{
  g_string_append_printf (s, " %s=\"#%02x%02x%02x\"", name, (guint)(c.r * 255 + 0.5),
                          (guint)(c.g * 255 + 0.5), (guint)(c.b * 255 + 0.5));
  if (c.a < 1)
    {
      g_autofree char *opacity = g_strconcat (name, "-opacity", NULL);

      attr (s, opacity, c.a);
    }
}

static void
escape (GString *s, const char *text)
{
  g_autofree char *e = g_markup_escape_text (text, -1);

  g_string_append (s, e);
}

static void
stroke (Svg *v, const TdPrim *p)
{
  static const char *const dashes[] = { NULL, "4 3", "0.01 5", "1.2 2.8" };
  double width = td__stroke_width (v->theme, p);

  if (p->stroke == TD_ROLE_NONE)
    {
      g_string_append (v->out, " stroke=\"none\"");
      return;
    }
  color (v->out, "stroke", td__color (v->theme, p->stroke, p->stroke_alpha));
  attr (v->out, "stroke-width", p->dash == TD_DASH_DOTTED ? width * 1.4 : width);
  if (dashes[p->dash])
    g_string_append_printf (v->out, " stroke-dasharray=\"%s\"", dashes[p->dash]);
  if (p->dash == TD_DASH_DOTTED || p->kind == TD_PRIM_CHEVRON_DOWN
      || p->kind == TD_PRIM_CHEVRON_RIGHT)
    g_string_append (v->out, " stroke-linecap=\"round\"");
}

static void
fill (Svg *v, const TdPrim *p, gboolean open)
{
  if (open || p->fill == TD_ROLE_NONE)
    g_string_append (v->out, " fill=\"none\"");
  else
    color (v->out, "fill", td__color (v->theme, p->fill, td__fill_alpha (v->theme, p)));
}

static void
points (Svg *v, const TdScenePoint *q, guint n)
{
  g_string_append (v->out, " points=\"");
  for (guint i = 0; i < n; i++)
    {
      num (v->out, q[i].x);
      g_string_append_c (v->out, ',');
      num (v->out, q[i].y);
      g_string_append_c (v->out, i + 1 < n ? ' ' : '"');
    }
}

static guint
cut_points (const TdPrim *p, TdScenePoint q[8])
{
  const TdSceneRect *b = &p->box;
  double c = p->kind == TD_PRIM_OCTAGON ? MIN (b->width, b->height) * 0.29 : (double)p->radius;
  double x1 = b->x + b->width, y1 = b->y + b->height;

  c = MIN (c, MIN (b->width, b->height) / 2);
  const TdScenePoint all[8]
      = { { b->x + c, b->y }, { x1 - c, b->y }, { x1, b->y + c }, { x1, y1 - c },
          { x1 - c, y1 },     { b->x + c, y1 }, { b->x, y1 - c }, { b->x, b->y + c } };
  memcpy (q, all, sizeof all);
  return 8;
}

/* Writes the element's name and geometry; returns whether it is an open line. */
static gboolean
geometry (Svg *v, const TdPrim *p)
{
  const TdSceneRect *b = &p->box;
  double x1 = b->x + b->width, y1 = b->y + b->height, xm = b->x + b->width / 2,
         ym = b->y + b->height / 2;
  TdScenePoint q[8];
  guint n = 0;
  gboolean open = FALSE;

  switch ((TdPrimKind)p->kind)
    {
    case TD_PRIM_RECT:
    case TD_PRIM_ROUND:
      g_string_append (v->out, "<rect");
      attr (v->out, "x", b->x);
      attr (v->out, "y", b->y);
      attr (v->out, "width", b->width);
      attr (v->out, "height", b->height);
      if (p->kind == TD_PRIM_ROUND)
        attr (v->out, "rx", MIN ((double)p->radius, MIN (b->width, b->height) / 2));
      return FALSE;
    case TD_PRIM_ELLIPSE:
      g_string_append (v->out, "<ellipse");
      attr (v->out, "cx", xm);
      attr (v->out, "cy", ym);
      attr (v->out, "rx", b->width / 2);
      attr (v->out, "ry", b->height / 2);
      return FALSE;
    case TD_PRIM_CROSS:
      g_string_append (v->out, "<path d=\"M");
      for (int i = 0; i < 2; i++)
        {
          num (v->out, b->x);
          g_string_append_c (v->out, ' ');
          num (v->out, i ? y1 : b->y);
          g_string_append (v->out, " L");
          num (v->out, x1);
          g_string_append_c (v->out, ' ');
          num (v->out, i ? b->y : y1);
          g_string_append (v->out, i ? "\"" : " M");
        }
      return TRUE;
    case TD_PRIM_CUT:
    case TD_PRIM_OCTAGON:
      n = cut_points (p, q);
      break;
    case TD_PRIM_PLAYHEAD:
      q[n++] = (TdScenePoint){ b->x, b->y };
      q[n++] = (TdScenePoint){ x1, b->y };
      q[n++] = (TdScenePoint){ xm, y1 };
      break;
    case TD_PRIM_CHEVRON_RIGHT:
      q[n++] = (TdScenePoint){ b->x + b->width * 0.3, b->y };
      q[n++] = (TdScenePoint){ b->x + b->width * 0.8, ym };
      q[n++] = (TdScenePoint){ b->x + b->width * 0.3, y1 };
      open = TRUE;
      break;
    case TD_PRIM_CHEVRON_DOWN:
      q[n++] = (TdScenePoint){ b->x, b->y + b->height * 0.3 };
      q[n++] = (TdScenePoint){ xm, b->y + b->height * 0.8 };
      q[n++] = (TdScenePoint){ x1, b->y + b->height * 0.3 };
      open = TRUE;
      break;
    case TD_PRIM_POLYLINE:
    case TD_PRIM_POLYGON:
    case TD_PRIM_TEXT:
    case TD_PRIM_HEAT:
      open = p->kind == TD_PRIM_POLYLINE;
      g_string_append (v->out, open ? "<polyline" : "<polygon");
      points (v, td__scene_points (v->scene, p), p->n);
      return open;
    }
  g_string_append (v->out, open ? "<polyline" : "<polygon");
  points (v, q, n);
  return open;
}

static void
title_and_end (Svg *v, const TdPrim *p, const char *name)
{
  if (!p->tooltip)
    {
      g_string_append (v->out, "/>\n");
      return;
    }
  g_string_append (v->out, "><title>");
  escape (v->out, v->scene->pool->str + p->tooltip);
  g_string_append_printf (v->out, "</title></%s>\n", name);
}

static void
arrow (Svg *v, const TdPrim *p, const TdScenePoint *from, const TdScenePoint *to)
{
  TdScenePoint q[3];

  if (!td__arrow_head (from, to, 6 + td__stroke_width (v->theme, p), q))
    return;
  g_string_append (v->out, "<polygon");
  points (v, q, 3);
  color (v->out, "fill", td__color (v->theme, p->stroke, p->stroke_alpha));
  g_string_append (v->out, "/>\n");
}

static void
shape (Svg *v, const TdPrim *p)
{
  gsize at = v->out->len;
  gboolean open = geometry (v, p);
  const char *name_end = strpbrk (v->out->str + at + 1, " ");
  g_autofree char *name
      = g_strndup (v->out->str + at + 1, (gsize)(name_end - v->out->str - (gssize)at - 1));

  fill (v, p, open);
  stroke (v, p);
  title_and_end (v, p, name);
  if (p->pattern != TD_PATTERN_NONE && p->pattern != TD_PATTERN_OUTLINE)
    {
      geometry (v, p);
      g_string_append_printf (v->out, " fill=\"url(#p%d)\" stroke=\"none\"/>\n", p->pattern);
    }
  if (p->kind != TD_PRIM_POLYLINE)
    return;
  const TdScenePoint *q = td__scene_points (v->scene, p);
  if (p->flags & TD_PRIM_ARROW_END)
    arrow (v, p, &q[p->n - 2], &q[p->n - 1]);
  if (p->flags & TD_PRIM_ARROW_START)
    arrow (v, p, &q[1], &q[0]);
}

static void
text (Svg *v, const TdPrim *p)
{
  g_autofree char *fitted
      = td__text_fit (td__scene_text (v->scene, p), p->size, p->bold, (double)p->max_width);
  double px = td_text_pixels (p->size);

  if (!*fitted)
    return;
  g_string_append (v->out, "<text");
  attr (v->out, "x", (double)p->text_x);
  attr (v->out, "y", (double)p->text_y + 0.35 * px); /* middle to baseline */
  attr (v->out, "font-size", px);
  color (v->out, "fill", td__color (v->theme, p->fill, p->fill_alpha));
  if (p->bold)
    g_string_append (v->out, " font-weight=\"bold\"");
  if (p->align > 0)
    g_string_append_printf (v->out, " text-anchor=\"%s\"", p->align > 0.75f ? "end" : "middle");
  if (p->upward)
    g_string_append_printf (v->out, " transform=\"rotate(-90 %d %d)\"", (int)p->text_x,
                            (int)p->text_y);
  g_string_append_c (v->out, '>');
  escape (v->out, fitted);
  g_string_append (v->out, "</text>\n");
}

/* A heat map: cells of equal colour in a row become one rectangle. */
static void
heat (Svg *v, const TdPrim *p)
{
  const TdSceneHeat *h = &g_array_index (v->scene->heats, TdSceneHeat, p->first);
  double cw = p->box.width / h->heat.cols, ch = p->box.height / h->heat.rows;

  g_string_append (v->out, "<g shape-rendering=\"crispEdges\">\n");
  for (int r = 0; r < h->heat.rows; r++)
    for (int c = 0; c < h->heat.cols; c++)
      {
        TdCell cell = td__heat_cell (h, r, c);
        TdColor k
            = cell == TD_CELL_VALUE
                  ? td__heat_color (h, r, c)
                  : v->theme->color[cell == TD_CELL_MISSING ? TD_ROLE_FAINT : TD_ROLE_ERROR];
        double x = p->box.x + c * cw, y = p->box.y + r * ch, w = cw - h->heat.gap,
               e = ch - h->heat.gap;

        if (cell == TD_CELL_EMPTY)
          continue;
        if (cell == TD_CELL_MISSING)
          {
            x += w / 2 - 1;
            y += e / 2 - 1;
            w = e = 2;
          }
        g_string_append (v->out, "<rect");
        attr (v->out, "x", x);
        attr (v->out, "y", y);
        attr (v->out, "width", w);
        attr (v->out, "height", e);
        color (v->out, "fill", k);
        g_string_append (v->out, "/>\n");
        if (cell == TD_CELL_NAN)
          {
            g_string_append (v->out, "<rect");
            attr (v->out, "x", x);
            attr (v->out, "y", y);
            attr (v->out, "width", w);
            attr (v->out, "height", e);
            g_string_append_printf (v->out, " fill=\"url(#p%d)\"/>\n", TD_PATTERN_CROSS);
          }
      }
  g_string_append (v->out, "</g>\n");
}

static void
patterns (Svg *v)
{
  static const struct
  {
    TdPattern pattern;
    double width, height;
    const char *path;
  } tiles[] = {
    { TD_PATTERN_HATCH_UP, 6, 6, "M-1 1L1 -1M0 6L6 0M5 7L7 5" },
    { TD_PATTERN_HATCH_DOWN, 6, 6, "M-1 5L1 7M0 0L6 6M5 -1L7 1" },
    { TD_PATTERN_DOTS, 6, 12, "M1.5 3h.01M4.5 9h.01" },
    { TD_PATTERN_CROSS, 6, 6, "M-1 1L1 -1M0 6L6 0M5 7L7 5M-1 5L1 7M0 0L6 6M5 -1L7 1" },
    { TD_PATTERN_HORIZONTAL, 4, 4, "M0 1h4" },
    { TD_PATTERN_VERTICAL, 4, 4, "M1 0v4" },
  };

  g_string_append (v->out, "<defs>\n");
  for (gsize i = 0; i < G_N_ELEMENTS (tiles); i++)
    {
      g_string_append_printf (v->out, "<pattern id=\"p%d\" patternUnits=\"userSpaceOnUse\"",
                              tiles[i].pattern);
      attr (v->out, "width", tiles[i].width);
      attr (v->out, "height", tiles[i].height);
      g_string_append_printf (v->out, "><path d=\"%s\" fill=\"none\"", tiles[i].path);
      color (v->out, "stroke", v->theme->color[TD_ROLE_PATTERN]);
      g_string_append (v->out, " stroke-width=\"1.2\" stroke-linecap=\"round\"/></pattern>\n");
    }
  g_string_append (v->out, "</defs>\n");
}

char *
td_scene_to_svg (const TdScene *scene, double scale, const TdTheme *theme)
{
  Svg v = { scene, theme, g_string_new ("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n") };

  g_string_append (v.out, "<svg xmlns=\"http://www.w3.org/2000/svg\"");
  attr (v.out, "width", scene->width * scale);
  attr (v.out, "height", scene->height * scale);
  g_string_append (v.out, " viewBox=\"0 0 ");
  num (v.out, scene->width);
  g_string_append_c (v.out, ' ');
  num (v.out, scene->height);
  g_string_append_printf (v.out, "\" font-family=\"%s\">\n", theme->font);
  patterns (&v);
  if (scene->background != TD_ROLE_NONE)
    {
      g_string_append (v.out, "<rect width=\"100%\" height=\"100%\"");
      color (v.out, "fill", theme->color[scene->background]);
      g_string_append (v.out, "/>\n");
    }
  for (guint i = 0; i < scene->prims->len; i++)
    {
      const TdPrim *p = td__scene_prim (scene, i);

      if ((p->flags & TD_PRIM_TINT) && !theme->tints)
        continue;
      if (p->kind == TD_PRIM_TEXT)
        text (&v, p);
      else if (p->kind == TD_PRIM_HEAT)
        heat (&v, p);
      else
        shape (&v, p);
    }
  g_string_append (v.out, "</svg>\n");
  return g_string_free (v.out, FALSE);
}
