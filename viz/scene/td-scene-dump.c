/*
 * A scene as text: one primitive a line, roles by name, so that golden files need no pictures.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-json.h"
#include "td-scene-private.h"

static const char *const kind_names[]
    = { "rect",         "round", "cut",  "octagon", "ellipse", "playhead", "chevron-right",
        "chevron-down", "cross", "line", "polygon", "text",    "heat" };
static const char *const pattern_names[]
    = { "", "hatch-up", "hatch-down", "dots", "cross", "horizontal", "vertical", "outline" };
static const char *const dash_names[] = { "", "dashed", "dotted", "fine" };
static const char *const tag_names[TD_N_TAGS]
    = { "",     "node", "group",   "toggle",    "edge",     "pill",
        "stub", "lane", "event",   "iteration", "category", "parameter",
        "cell", "row",  "minimap", "playhead",  "head" };

G_STATIC_ASSERT (G_N_ELEMENTS (kind_names) == TD_PRIM_HEAT + 1);
G_STATIC_ASSERT (G_N_ELEMENTS (pattern_names) == TD_PATTERN_OUTLINE + 1);

static void
dump_paint (GString *s, const char *what, guint role, float alpha)
{
  if (role == TD_ROLE_NONE)
    return;
  g_string_append_printf (s, " %s=%s", what, td_role_name (role));
  if (alpha > 0 && alpha != 1)
    g_string_append_printf (s, "*%.2f", (double)alpha);
}

static void
dump_text (const TdScene *scene, const TdPrim *p, GString *s)
{
  g_string_append_printf (s, " %.1f %.1f ", (double)p->text_x, (double)p->text_y);
  td_json_append_string (s, td__scene_text (scene, p));
  g_string_append_printf (s, " %.4gpx", td_text_pixels (p->size));
  if (p->align > 0)
    g_string_append_printf (s, " align=%.1f", (double)p->align);
  if (p->max_width > 0)
    g_string_append_printf (s, " max=%.1f", (double)p->max_width);
  g_string_append (s, p->bold ? " bold" : "");
  g_string_append (s, p->upward ? " upward" : "");
}

static void
dump_heat (const TdSceneHeat *h, GString *s)
{
  static const char glyphs[] = { 0, '.', 'N', '+', '-', ' ' };

  g_string_append_printf (s, " %dx%d %s %.4g..%.4g", h->heat.rows, h->heat.cols,
                          td_colormap_name (h->heat.map), h->heat.lo, h->heat.hi);
  if ((gsize)h->heat.rows * (gsize)h->heat.cols > 4096)
    return;
  for (int r = 0; r < h->heat.rows; r++)
    {
      g_string_append (s, "\n    |");
      for (int c = 0; c < h->heat.cols; c++)
        {
          TdCell cell = td__heat_cell (h, r, c);
          double v = h->values[r * h->heat.cols + c];
          double t
              = h->heat.hi > h->heat.lo ? (v - h->heat.lo) / (h->heat.hi - h->heat.lo) : 0.5;

          /* values as a digit of their place on the scale: stable over rounding of the inputs
           */
          g_string_append_c (s, cell == TD_CELL_VALUE
                                    ? (char)('0' + CLAMP ((int)(t * 10), 0, 9))
                                    : glyphs[cell]);
        }
      g_string_append_c (s, '|');
    }
  if (!h->numbers)
    return;
  g_string_append (s, "\n    columns");
  for (int c = 0; c < h->heat.cols; c++)
    if (h->numbers[c] < 0)
      g_string_append (s, " -");
    else
      g_string_append_printf (s, " %" G_GINT64_FORMAT, h->numbers[c]);
}

static void
dump_prim (const TdScene *scene, const TdPrim *p, GString *s)
{
  g_string_append (s, kind_names[p->kind]);
  if (p->kind == TD_PRIM_TEXT)
    dump_text (scene, p, s);
  else if (p->kind == TD_PRIM_POLYLINE || p->kind == TD_PRIM_POLYGON)
    for (guint32 i = 0; i < p->n; i++)
      g_string_append_printf (s, " %.1f,%.1f", td__scene_points (scene, p)[i].x,
                              td__scene_points (scene, p)[i].y);
  else
    g_string_append_printf (s, " %.1f %.1f %.1f %.1f", p->box.x, p->box.y, p->box.width,
                            p->box.height);
  dump_paint (s, p->kind == TD_PRIM_TEXT ? "color" : "fill", p->fill, p->fill_alpha);
  dump_paint (s, "stroke", p->stroke, p->stroke_alpha);
  if (p->stroke_width > 0)
    g_string_append_printf (s, " width=%.1f", (double)p->stroke_width);
  if (p->pattern)
    g_string_append_printf (s, " %s", pattern_names[p->pattern]);
  if (p->dash)
    g_string_append_printf (s, " %s", dash_names[p->dash]);
  if (p->flags & TD_PRIM_ARROW_END)
    g_string_append (s, " ->");
  if (p->flags & TD_PRIM_ARROW_START)
    g_string_append (s, " <-");
  if (p->tag)
    g_string_append_printf (s, " [%s %" G_GINT64_FORMAT "]", tag_names[p->tag], p->data);
  if (p->kind == TD_PRIM_HEAT)
    dump_heat (&g_array_index (scene->heats, TdSceneHeat, p->first), s);
  g_string_append_c (s, '\n');
}

char *
td_scene_dump (const TdScene *scene)
{
  GString *s = g_string_new (NULL);

  g_string_append_printf (s, "scene %.1f x %.1f, %u items\n", scene->width, scene->height,
                          scene->prims->len);
  if (scene->has_axes)
    g_string_append_printf (s, "axes %.1f %.1f %.1f %.1f x %.6g..%.6g y %.6g..%.6g\n",
                            scene->axes.box.x, scene->axes.box.y, scene->axes.box.width,
                            scene->axes.box.height, scene->axes.x0, scene->axes.x1,
                            scene->axes.y0, scene->axes.y1);
  for (guint i = 0; i < scene->prims->len; i++)
    dump_prim (scene, td__scene_prim (scene, i), s);
  return g_string_free (s, FALSE);
}
