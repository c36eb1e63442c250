/*
 * Scenes as files. PNG and PDF come from the painter, SVG from td-svg.c.
 *
 * SPDX-License-Identifier: MIT
 */
#include <cairo-pdf.h>
#include <errno.h>
#include <gio/gio.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "replace.h"
#include "td-scene-private.h"

/* Cairo's images end at 32,767 pixels a side; a picture of more than this many is a mistake. */
#define MAX_SIDE 32767
#define MAX_PIXELS (200.0 * 1000 * 1000)

static cairo_status_t
append (void *closure, const unsigned char *data, unsigned int length)
{
  g_byte_array_append (closure, data, length);
  return CAIRO_STATUS_SUCCESS;
}

static void
paint_all (const TdScene *scene, cairo_surface_t *surface, double scale, const TdTheme *theme)
{
  cairo_t *cr = cairo_create (surface);
  TdColor c = theme->color[scene->background];

  if (scene->background != TD_ROLE_NONE)
    {
      cairo_set_source_rgba (cr, c.r, c.g, c.b, c.a);
      cairo_paint (cr);
    }
  td_scene_paint (scene, cr, NULL, scale, theme);
  cairo_destroy (cr);
}

static gboolean
to_png (const TdScene *scene, GByteArray *out, double scale, const TdTheme *theme,
        GError **error)
{
  double w = MAX (1, ceil (scene->width * scale)), h = MAX (1, ceil (scene->height * scale));

  if (w > MAX_SIDE || h > MAX_SIDE || w * h > MAX_PIXELS)
    {
      g_set_error (
          error, G_IO_ERROR, G_IO_ERROR_FAILED,
          "a picture of %.0f x %.0f pixels is too large for PNG; fold the graph, or write SVG",
          w, h);
      return FALSE;
    }
  cairo_surface_t *surface = cairo_image_surface_create (CAIRO_FORMAT_ARGB32, (int)w, (int)h);
  paint_all (scene, surface, scale, theme);
  cairo_status_t status = cairo_surface_write_to_png_stream (surface, append, out);
  cairo_surface_destroy (surface);
  if (status != CAIRO_STATUS_SUCCESS)
    g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_FAILED, cairo_status_to_string (status));
  return status == CAIRO_STATUS_SUCCESS;
}

static gboolean
to_pdf (const TdScene *scene, GByteArray *out, double scale, const TdTheme *theme,
        GError **error)
{
  /* one unit is a CSS pixel: 0.75 points */
  double k = 0.75 * scale;
  cairo_surface_t *surface
      = cairo_pdf_surface_create_for_stream (append, out, scene->width * k, scene->height * k);

  cairo_pdf_surface_set_metadata (surface, CAIRO_PDF_METADATA_CREATOR, "Tapedeck " TD_VERSION);
  paint_all (scene, surface, k, theme);
  cairo_surface_finish (surface);
  cairo_status_t status = cairo_surface_status (surface);
  cairo_surface_destroy (surface);
  if (status != CAIRO_STATUS_SUCCESS)
    g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_FAILED, cairo_status_to_string (status));
  return status == CAIRO_STATUS_SUCCESS;
}

static gboolean
to_svg (const TdScene *scene, GByteArray *out, double scale, const TdTheme *theme,
        GError **error)
{
  g_autofree char *svg = td_scene_to_svg (scene, scale, theme);

  g_byte_array_append (out, (const guint8 *)svg, (guint)strlen (svg));
  return TRUE;
}

static const struct
{
  const char *format;
  gboolean (*write) (const TdScene *, GByteArray *, double, const TdTheme *, GError **);
} formats[] = {
  { "png", to_png },
  { "pdf", to_pdf },
  { "svg", to_svg },
};

gboolean
td_scene_export (const TdScene *scene, const char *format, const char *path, double scale,
                 const TdTheme *theme, GError **error)
{
  g_autoptr (GByteArray) bytes = g_byte_array_new ();

  for (gsize i = 0; i < G_N_ELEMENTS (formats); i++)
    if (g_str_equal (formats[i].format, format))
      {
        if (!formats[i].write (scene, bytes, scale, theme, error))
          return FALSE;
        return td_write_output (path, bytes->data, bytes->len, error);
      }
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
               "no picture format is called \"%s\"", format);
  return FALSE;
}

gboolean
td_write_output (const char *path, const void *data, gsize n, GError **error)
{
  gboolean ok = g_str_equal (path, "-")
                    ? fwrite (data, 1, n, stdout) == n && fflush (stdout) == 0
                    : td__replace_file (path, data, n);

  if (!ok)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED, "%s: cannot write: %s", path,
                 g_strerror (errno));
  return ok;
}
