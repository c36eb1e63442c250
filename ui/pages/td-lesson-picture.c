/* Lesson pictures, drawn in the colours of the theme: what a lesson is about in twenty strokes.
 * SPDX-License-Identifier: MIT */
#include "pages/td-lesson-picture.h"

#include <math.h>
#include <string.h>

#include "scene/td-theme.h"

#define WIDTH 104
#define HEIGHT 64

typedef struct
{
  cairo_t *cr;
  GdkRGBA text;
  const TdTheme *theme;
} Pen;

static void
use (Pen *pen, TdRole role, double alpha)
{
  TdColor c = pen->theme->color[role];
  cairo_set_source_rgba (pen->cr, c.r, c.g, c.b, c.a * alpha);
}

static void
use_line (Pen *pen)
{
  gdk_cairo_set_source_rgba (
      pen->cr, &(GdkRGBA){ pen->text.red, pen->text.green, pen->text.blue, 0.45f });
}

static void
box (Pen *pen, double x, double y, double w, double h, double r)
{
  cairo_new_sub_path (pen->cr);
  cairo_arc (pen->cr, x + w - r, y + r, r, -M_PI / 2, 0);
  cairo_arc (pen->cr, x + w - r, y + h - r, r, 0, M_PI / 2);
  cairo_arc (pen->cr, x + r, y + h - r, r, M_PI / 2, M_PI);
  cairo_arc (pen->cr, x + r, y + r, r, M_PI, 3 * M_PI / 2);
  cairo_close_path (pen->cr);
}

static void
line (Pen *pen, double x0, double y0, double x1, double y1)
{
  cairo_move_to (pen->cr, x0, y0);
  cairo_line_to (pen->cr, x1, y1);
  cairo_stroke (pen->cr);
}

/* Fill what the path encloses with a role, then stroke it in the same or the line colour. */
static void
paint (Pen *pen, TdRole fill, double alpha, TdRole stroke)
{
  if (fill != TD_ROLE_NONE)
    {
      use (pen, fill, alpha);
      cairo_fill_preserve (pen->cr);
    }
  if (stroke == TD_ROLE_NONE)
    use_line (pen);
  else
    use (pen, stroke, 1);
  cairo_stroke (pen->cr);
}

static void
circle (Pen *pen, double x, double y, TdRole fill, TdRole stroke)
{
  cairo_new_sub_path (pen->cr);
  cairo_arc (pen->cr, x, y, 6.5, 0, 2 * M_PI);
  paint (pen, fill, stroke == TD_ROLE_ACCENT ? 0.25 : 1, stroke);
}

static void
draw_network (Pen *pen)
{
  use_line (pen);
  for (int i = 0; i < 2; i++)
    {
      for (int j = 0; j < 2; j++)
        line (pen, 10, 18 + 28 * i, 51, 18 + 28 * j);
      line (pen, 51, 18 + 28 * i, 92, 32);
    }
  for (int i = 0; i < 2; i++)
    {
      circle (pen, 10, 18 + 28 * i, TD_ROLE_CARD, TD_ROLE_NONE);
      circle (pen, 51, 18 + 28 * i, TD_ROLE_CARD, TD_ROLE_NONE);
    }
  circle (pen, 92, 32, TD_ROLE_CARD, TD_ROLE_NONE);
  circle (pen, 92, 32, TD_ROLE_ACCENT, TD_ROLE_ACCENT);
}

static void
draw_branch (Pen *pen)
{
  use_line (pen);
  line (pen, 18, 32, 36, 32);
  line (pen, 56, 28, 78, 16);
  line (pen, 56, 36, 78, 48);
  box (pen, 2, 25, 16, 14, 3);
  paint (pen, TD_ROLE_CARD, 1, TD_ROLE_NONE);
  box (pen, 78, 9, 24, 14, 3);
  paint (pen, TD_ROLE_CARD, 1, TD_ROLE_NONE);
  cairo_move_to (pen->cr, 47, 21);
  cairo_line_to (pen->cr, 58, 32);
  cairo_line_to (pen->cr, 47, 43);
  cairo_line_to (pen->cr, 36, 32);
  cairo_close_path (pen->cr);
  paint (pen, TD_ROLE_ACCENT, 0.25, TD_ROLE_ACCENT);
  cairo_set_dash (pen->cr, (const double[]){ 3, 2 }, 2, 0);
  box (pen, 78, 41, 24, 14, 3);
  paint (pen, TD_ROLE_NONE, 1, TD_ROLE_NONE);
  cairo_set_dash (pen->cr, NULL, 0, 0);
}

static void
draw_tiles (Pen *pen)
{
  static const double shade[4][4] = { { 0.1, 0.3, 0.6, 0.2 },
                                      { 0.3, 0.9, 0.7, 0.3 },
                                      { 0.2, 0.8, 0.5, 0.9 },
                                      { 0.1, 0.2, 0.6, 0.4 } };
  for (int r = 0; r < 4; r++)
    for (int c = 0; c < 4; c++)
      {
        cairo_rectangle (pen->cr, 4 + 13 * c, 6 + 13 * r, 12, 12);
        use (pen, TD_ROLE_ACTIVATION, shade[r][c]);
        cairo_fill (pen->cr);
      }
  cairo_rectangle (pen->cr, 17, 19, 25, 25);
  paint (pen, TD_ROLE_NONE, 1, TD_ROLE_ACCENT);
  use_line (pen);
  line (pen, 60, 32, 74, 32);
  cairo_rectangle (pen->cr, 78, 20, 24, 24);
  paint (pen, TD_ROLE_ACCENT, 0.25, TD_ROLE_ACCENT);
}

static void
draw_chain (Pen *pen)
{
  use_line (pen);
  line (pen, 12, 32, 92, 32);
  for (int i = 0; i < 4; i++)
    {
      use_line (pen);
      line (pen, 13 + 26 * i, 10, 13 + 26 * i, 54);
      box (pen, 4 + 26 * i, 24, 18, 16, 3);
      paint (pen, TD_ROLE_CARD, 1, i == 3 ? TD_ROLE_ACCENT : TD_ROLE_NONE);
    }
}

static void
draw_schedule (Pen *pen)
{
  static const struct
  {
    double x, y, w;
    TdRole role;
  } bars[] = { { 4, 48, 86, TD_ROLE_ACTIVATION },
               { 16, 37, 58, TD_ROLE_PARAMETER },
               { 32, 26, 22, TD_ROLE_OPTIMIZER },
               { 58, 26, 34, TD_ROLE_ACTIVATION },
               { 40, 15, 18, TD_ROLE_GRADIENT } };
  for (guint i = 0; i < G_N_ELEMENTS (bars); i++)
    {
      box (pen, bars[i].x + 3, bars[i].y, bars[i].w, 9, 2);
      use (pen, bars[i].role, 0.85);
      cairo_fill (pen->cr);
    }
  use_line (pen);
  line (pen, 2.5, 8, 2.5, 60);
  line (pen, 2, 60.5, 102, 60.5);
}

static void
draw_pair (Pen *pen)
{
  use_line (pen);
  line (pen, 14, 12, 14, 52);
  line (pen, 90, 18, 90, 46);
  cairo_set_dash (pen->cr, (const double[]){ 3, 2 }, 2, 0);
  use (pen, TD_ROLE_FUSED, 1);
  for (int i = 0; i < 4; i++)
    line (pen, 30, 10 + 14.5 * i, 74, i < 2 ? 16 : 48);
  cairo_set_dash (pen->cr, NULL, 0, 0);
  for (int i = 0; i < 4; i++)
    {
      box (pen, 2, 5.5 + 14.5 * i, 25, 9, 2);
      paint (pen, TD_ROLE_CARD, 1, TD_ROLE_NONE);
    }
  for (int i = 0; i < 2; i++)
    {
      box (pen, 76, 8 + 32 * i, 26, 16, 2);
      paint (pen, TD_ROLE_CARD, 1, TD_ROLE_FUSED);
      box (pen, 76, 8 + 32 * i, 26, 16, 2);
      paint (pen, TD_ROLE_FUSED, 0.2, TD_ROLE_FUSED);
    }
}

static void
draw_growth (Pen *pen)
{
  for (int i = 0; i < 6; i++)
    {
      box (pen, 6 + 16 * i, 49 - 8 * i, 11, 9 + 8 * i, 1.5);
      use (pen, TD_ROLE_ACTIVATION, 0.85);
      cairo_fill (pen->cr);
    }
  use_line (pen);
  line (pen, 2, 60.5, 102, 60.5);
}

/* Born in one place, and everywhere from there on. */
static void
draw_nan (Pen *pen)
{
  for (int r = 0; r < 4; r++)
    for (int c = 0; c < 6; c++)
      {
        gboolean born = c == 4 && r == 1, reached = c == 5 && r < 3;
        box (pen, 5 + 16 * c, 5 + 14 * r, 13, 11, 2);
        paint (pen, born || reached ? TD_ROLE_ERROR : TD_ROLE_CARD, 1,
               born || reached ? TD_ROLE_ERROR : TD_ROLE_NONE);
      }
  use (pen, TD_ROLE_CARD, 1);
  line (pen, 73, 22, 78, 27);
  line (pen, 78, 22, 73, 27);
}

/* A row of layers, and gradients that end before the first. */
static void
draw_frozen (Pen *pen)
{
  use_line (pen);
  line (pen, 12, 24, 92, 24);
  for (int i = 0; i < 3; i++)
    {
      box (pen, 4 + 37 * i, 15, 22, 18, 3);
      paint (pen, TD_ROLE_CARD, 1, i == 0 ? TD_ROLE_ERROR : TD_ROLE_NONE);
    }
  use (pen, TD_ROLE_GRADIENT, 1);
  cairo_set_line_width (pen->cr, 2.4);
  line (pen, 92, 48, 44, 48);
  line (pen, 44, 48, 50, 43);
  line (pen, 44, 48, 50, 53);
  cairo_set_line_width (pen->cr, 1.2);
  use (pen, TD_ROLE_ERROR, 1);
  line (pen, 28, 42, 38, 54);
  line (pen, 38, 42, 28, 54);
}

static const struct
{
  const char *name;
  void (*draw) (Pen *pen);
} pictures[]
    = { { "network", draw_network }, { "branch", draw_branch },     { "tiles", draw_tiles },
        { "chain", draw_chain },     { "schedule", draw_schedule }, { "pair", draw_pair },
        { "growth", draw_growth },   { "nan", draw_nan },           { "frozen", draw_frozen } };

static void
draw (GtkDrawingArea *area, cairo_t *cr, int width, int height, gpointer data)
{
  AdwStyleManager *style = adw_style_manager_get_default ();
  Pen pen = { .cr = cr };
  pen.theme = td_theme_get (adw_style_manager_get_dark (style) ? "dark" : "light");
  gtk_style_context_get_color (gtk_widget_get_style_context (GTK_WIDGET (area)), &pen.text);
  cairo_set_line_width (cr, 1.2);
  cairo_translate (cr, (width - WIDTH) / 2.0, (height - HEIGHT) / 2.0);
  for (guint i = 0; i < G_N_ELEMENTS (pictures); i++)
    if (strcmp (pictures[i].name, data) == 0)
      pictures[i].draw (&pen);
}

gboolean
td_lesson_picture_exists (const char *name)
{
  for (guint i = 0; i < G_N_ELEMENTS (pictures); i++)
    if (strcmp (pictures[i].name, name) == 0)
      return TRUE;
  return FALSE;
}

GtkWidget *
td_lesson_picture_new (const char *name)
{
  GtkWidget *area = gtk_drawing_area_new ();
  gtk_drawing_area_set_content_width (GTK_DRAWING_AREA (area), WIDTH);
  gtk_drawing_area_set_content_height (GTK_DRAWING_AREA (area), HEIGHT);
  gtk_drawing_area_set_draw_func (GTK_DRAWING_AREA (area), draw, g_strdup (name), g_free);
  gtk_accessible_update_state (GTK_ACCESSIBLE (area), GTK_ACCESSIBLE_STATE_HIDDEN, TRUE, -1);
  return area;
}
