/*
 * Text of scenes through Pango. Layouts are cached by thread, because scenes are rebuilt at
 * every step while most labels stay the same: those of the last scenes are kept, and no more,
 * for a program that runs never ends having new numbers. Text is set as text, never as markup.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "td-paint-text.h"

/* A scene that is painted finds all that it had, however much that was. */
#define CACHE_YOUNG 600

static const double pixels[TD_N_TEXT_SIZES] = {
  [TD_TEXT_BODY] = 14.7, [TD_TEXT_LIST] = 13.3, [TD_TEXT_CAPTION] = 12, [TD_TEXT_NODE] = 12.5,
  [TD_TEXT_SMALL] = 11,  [TD_TEXT_AXIS] = 10.6, [TD_TEXT_STRIP] = 12,
};

typedef struct
{
  PangoContext *context;
  GHashTable *young, *old; /* key string -> PangoLayout; used since the turn, and before it */
  const char *font;
} TextState;

static void
text_state_free (gpointer data)
{
  TextState *t = data;

  g_hash_table_unref (t->young);
  g_hash_table_unref (t->old);
  g_object_unref (t->context);
  g_free (t);
}

static GHashTable *
new_table (void)
{
  return g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_object_unref);
}

static GPrivate text_state_key = G_PRIVATE_INIT (text_state_free);

static PangoContext *
new_context (void)
{
  PangoContext *context = pango_font_map_create_context (pango_cairo_font_map_get_default ());
  cairo_font_options_t *options = cairo_font_options_create ();

  /* unhinted metrics: a line is as wide at 50 % and in the PDF as it is at 100 % */
  cairo_font_options_set_hint_style (options, CAIRO_HINT_STYLE_NONE);
  cairo_font_options_set_hint_metrics (options, CAIRO_HINT_METRICS_OFF);
  cairo_font_options_set_antialias (options, CAIRO_ANTIALIAS_GRAY);
  pango_cairo_context_set_font_options (context, options);
  cairo_font_options_destroy (options);
  return context;
}

static TextState *
text_state (void)
{
  TextState *t = g_private_get (&text_state_key);

  if (!t)
    {
      t = g_new0 (TextState, 1);
      t->context = new_context ();
      t->young = new_table ();
      t->old = new_table ();
      t->font = td_theme_get ("light")->font;
      g_private_set (&text_state_key, t);
    }
  return t;
}

double
td_text_pixels (TdTextSize size)
{
  return pixels[size];
}

static PangoLayout *
layout_new (PangoContext *context, const char *font, const char *text, TdTextSize size,
            gboolean bold, gboolean middle, double max_width)
{
  PangoLayout *layout = pango_layout_new (context);
  PangoFontDescription *desc = pango_font_description_from_string (font);
  PangoAttrList *attrs = pango_attr_list_new ();

  pango_font_description_set_absolute_size (desc, pixels[size] * PANGO_SCALE);
  pango_font_description_set_weight (desc, bold ? PANGO_WEIGHT_BOLD : PANGO_WEIGHT_NORMAL);
  pango_layout_set_font_description (layout, desc);
  pango_attr_list_insert (attrs, pango_attr_font_features_new ("tnum=1"));
  pango_layout_set_attributes (layout, attrs);
  pango_layout_set_single_paragraph_mode (layout, TRUE);
  pango_layout_set_auto_dir (layout, FALSE);
  pango_layout_set_text (layout, text, -1);
  if (max_width > 0)
    {
      pango_layout_set_width (layout, (int)(max_width * PANGO_SCALE));
      pango_layout_set_ellipsize (layout,
                                  middle ? PANGO_ELLIPSIZE_MIDDLE : PANGO_ELLIPSIZE_END);
    }
  pango_attr_list_unref (attrs);
  pango_font_description_free (desc);
  return layout;
}

/* Returns a borrowed layout of the cache. */
static PangoLayout *
cached_layout (TextState *t, const char *text, TdTextSize size, gboolean bold, gboolean middle,
               double max_width)
{
  char head[48];
  g_autofree char *key = NULL;
  gpointer kept_key, layout;

  g_snprintf (head, sizeof head, "%d%d%d %d ", size, bold, middle, (int)(max_width * 4));
  key = g_strconcat (head, text, NULL);
  layout = g_hash_table_lookup (t->young, key);
  if (layout)
    return layout;
  if (g_hash_table_steal_extended (t->old, key, &kept_key, &layout))
    {
      g_hash_table_insert (t->young, kept_key, layout);
      return layout;
    }
  layout = layout_new (t->context, t->font, text, size, bold, middle, max_width);
  g_hash_table_insert (t->young, g_steal_pointer (&key), layout);
  return layout;
}

void
td__paint_text_begin (cairo_t *cr, const TdTheme *theme)
{
  TextState *t = text_state ();

  pango_cairo_update_context (cr, t->context);
  if (t->font != theme->font)
    {
      g_hash_table_remove_all (t->young);
      g_hash_table_remove_all (t->old);
      t->font = theme->font;
    }
  if (g_hash_table_size (t->young) >= CACHE_YOUNG)
    {
      g_hash_table_unref (t->old);
      t->old = g_steal_pointer (&t->young);
      t->young = new_table ();
    }
}

static void
paint_bar (const TdScene *scene, const TdPrim *p, cairo_t *cr, TdColor c)
{
  double px = pixels[p->size];
  double width = 0.5 * px * g_utf8_strlen (td__scene_text (scene, p), p->n);

  if (p->max_width > 0)
    width = MIN (width, p->max_width);
  cairo_set_source_rgba (cr, c.r, c.g, c.b, c.a * 0.4);
  cairo_rectangle (cr, p->text_x - p->align * width, p->text_y - 0.18 * px, width, 0.36 * px);
  cairo_fill (cr);
}

static void
paint_upward (const TdScene *scene, const TdPrim *p, cairo_t *cr, const TdTheme *theme)
{
  PangoContext *context = new_context ();
  int w, h;

  cairo_save (cr);
  cairo_translate (cr, p->text_x, p->text_y);
  cairo_rotate (cr, -G_PI / 2);
  pango_cairo_update_context (cr, context);
  PangoLayout *layout = layout_new (context, theme->font, td__scene_text (scene, p), p->size,
                                    p->bold, p->middle, p->max_width);
  pango_layout_get_size (layout, &w, &h);
  cairo_move_to (cr, -p->align * w / PANGO_SCALE, -0.5 * h / PANGO_SCALE);
  pango_cairo_show_layout (cr, layout);
  g_object_unref (layout);
  g_object_unref (context);
  cairo_restore (cr);
}

void
td__paint_text (const TdScene *scene, const TdPrim *p, cairo_t *cr, double scale,
                const TdTheme *theme)
{
  TdColor c = td__color (theme, p->fill, p->fill_alpha);
  int w, h;

  if (p->n == 0)
    return;
  if (pixels[p->size] * scale < TD_LOD_TEXT_PIXELS)
    {
      paint_bar (scene, p, cr, c);
      return;
    }
  cairo_set_source_rgba (cr, c.r, c.g, c.b, c.a);
  if (p->upward)
    {
      paint_upward (scene, p, cr, theme);
      return;
    }
  PangoLayout *layout = cached_layout (text_state (), td__scene_text (scene, p), p->size,
                                       p->bold, p->middle, p->max_width);
  pango_layout_get_size (layout, &w, &h);
  cairo_move_to (cr, p->text_x - p->align * w / PANGO_SCALE, p->text_y - 0.5 * h / PANGO_SCALE);
  pango_cairo_show_layout (cr, layout);
}

/* Measuring has a context of its own: the painting one follows the zoom. */
static GPrivate measure_key = G_PRIVATE_INIT (g_object_unref);

double
td_text_width (const char *text, TdTextSize size, gboolean bold)
{
  PangoContext *context = g_private_get (&measure_key);
  int w, h;

  if (!context)
    {
      context = new_context ();
      g_private_set (&measure_key, context);
    }
  PangoLayout *layout
      = layout_new (context, td_theme_get ("light")->font, text, size, bold, FALSE, 0);
  pango_layout_get_size (layout, &w, &h);
  g_object_unref (layout);
  return (double)w / PANGO_SCALE;
}

char *
td__text_fit (const char *text, TdTextSize size, gboolean bold, double max_width)
{
  glong lo = 0, hi = g_utf8_strlen (text, -1);

  if (max_width <= 0 || td_text_width (text, size, bold) <= max_width)
    return g_strdup (text);
  while (lo < hi)
    {
      glong mid = (lo + hi + 1) / 2;
      g_autofree char *part = g_utf8_substring (text, 0, mid);
      g_autofree char *cut = g_strconcat (part, "…", NULL);

      if (td_text_width (cut, size, bold) <= max_width)
        lo = mid;
      else
        hi = mid - 1;
    }
  g_autofree char *part = g_utf8_substring (text, 0, lo);
  return g_strconcat (part, "…", NULL);
}
