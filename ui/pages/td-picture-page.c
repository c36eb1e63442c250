/* The page of a picture: reads a PNG once its head says a size that can be shown.
 * SPDX-License-Identifier: MIT */
#include "pages/td-picture-page.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#define MOST_PIXELS (64 << 20)
#define MOST_FILE_BYTES (256 << 20)

struct _TdPicturePage
{
  AdwBin parent;

  GtkPicture *picture;
  GtkWidget *actual;
  char *name;
};

G_DEFINE_FINAL_TYPE (TdPicturePage, td_picture_page, ADW_TYPE_BIN)

gboolean
td_picture_page_takes (const char *path)
{
  g_autofree char *lower = g_ascii_strdown (path, -1);
  return g_str_has_suffix (lower, ".png");
}

/* A PNG says its size in its first 24 bytes: signature, then IHDR. */
static gboolean
check_size (const char *bytes, gsize n, const char *name, GError **error)
{
  static const char signature[] = "\x89PNG\r\n\x1a\n";
  guint32 size[2];
  if (n < 24 || memcmp (bytes, signature, 8) != 0 || memcmp (bytes + 12, "IHDR", 4) != 0)
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "%s: not a PNG picture", name);
      return FALSE;
    }
  memcpy (size, bytes + 16, sizeof size);
  guint64 width = GUINT32_FROM_BE (size[0]), height = GUINT32_FROM_BE (size[1]);
  if (width == 0 || height == 0 || width * height > MOST_PIXELS)
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
                   "%s: %" G_GUINT64_FORMAT " × %" G_GUINT64_FORMAT
                   " pixels; at most %d million can be shown",
                   name, width, height, MOST_PIXELS / 1000000);
      return FALSE;
    }
  return TRUE;
}

static GdkTexture *
load (const char *path, const char *name, GError **error)
{
  g_autoptr (GFile) file = g_file_new_for_path (path);
  g_autoptr (GFileInfo) info
      = g_file_query_info (file, G_FILE_ATTRIBUTE_STANDARD_SIZE, 0, NULL, error);
  if (!info)
    return NULL;
  if (g_file_info_get_size (info) > MOST_FILE_BYTES)
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "%s: larger than %d MB", name,
                   MOST_FILE_BYTES >> 20);
      return NULL;
    }
  g_autoptr (GBytes) bytes = g_file_load_bytes (file, NULL, NULL, error);
  if (!bytes)
    return NULL;
  gsize n;
  const char *data = g_bytes_get_data (bytes, &n);
  if (!check_size (data, n, name, error))
    return NULL;
  GdkTexture *texture = gdk_texture_new_from_bytes (bytes, error);
  if (!texture)
    g_prefix_error (error, "%s: ", name);
  return texture;
}

gboolean
td_picture_page_load (TdPicturePage *self, const char *path, GError **error)
{
  g_autofree char *name = g_path_get_basename (path), *valid = g_utf8_make_valid (name, -1);
  g_autoptr (GdkTexture) texture = load (path, valid, error);
  if (!texture)
    return FALSE;
  g_autofree char *label
      = g_strdup_printf ("%s, %d × %d pixels", valid, gdk_texture_get_width (texture),
                         gdk_texture_get_height (texture));
  gtk_picture_set_paintable (self->picture, GDK_PAINTABLE (texture));
  gtk_picture_set_alternative_text (self->picture, label);
  g_free (self->name);
  self->name = g_steal_pointer (&valid);
  return TRUE;
}

const char *
td_picture_page_get_name (TdPicturePage *self)
{
  return self->name ? self->name : "";
}

void
td_picture_page_get_size (TdPicturePage *self, int *width, int *height)
{
  GdkPaintable *p = gtk_picture_get_paintable (self->picture);
  *width = p ? gdk_paintable_get_intrinsic_width (p) : 0;
  *height = p ? gdk_paintable_get_intrinsic_height (p) : 0;
}

static void
actual_toggled (GtkToggleButton *button, TdPicturePage *self)
{
  gtk_picture_set_can_shrink (self->picture, !gtk_toggle_button_get_active (button));
}

static void
td_picture_page_finalize (GObject *object)
{
  g_free (TD_PICTURE_PAGE (object)->name);
  G_OBJECT_CLASS (td_picture_page_parent_class)->finalize (object);
}

static void
td_picture_page_class_init (TdPicturePageClass *class)
{
  G_OBJECT_CLASS (class)->finalize = td_picture_page_finalize;
}

static void
td_picture_page_init (TdPicturePage *self)
{
  self->picture = GTK_PICTURE (gtk_picture_new ());
  gtk_picture_set_content_fit (self->picture, GTK_CONTENT_FIT_SCALE_DOWN);
  GtkWidget *scroller = gtk_scrolled_window_new ();
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (scroller), GTK_WIDGET (self->picture));
  gtk_widget_set_hexpand (scroller, TRUE);
  gtk_widget_set_vexpand (scroller, TRUE);
  gtk_accessible_update_property (GTK_ACCESSIBLE (scroller), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _ ("Picture"), -1);

  self->actual = gtk_toggle_button_new_with_mnemonic ("_Actual Size");
  gtk_widget_set_halign (self->actual, GTK_ALIGN_END);
  gtk_widget_set_valign (self->actual, GTK_ALIGN_END);
  gtk_widget_set_margin_end (self->actual, 18);
  gtk_widget_set_margin_bottom (self->actual, 18);
  gtk_widget_add_css_class (self->actual, "osd");
  gtk_widget_add_css_class (self->actual, "pill");
  g_signal_connect (self->actual, "toggled", G_CALLBACK (actual_toggled), self);

  GtkWidget *overlay = gtk_overlay_new ();
  gtk_overlay_set_child (GTK_OVERLAY (overlay), scroller);
  gtk_overlay_add_overlay (GTK_OVERLAY (overlay), self->actual);
  adw_bin_set_child (ADW_BIN (self), overlay);
}

GtkWidget *
td_picture_page_new (void)
{
  return g_object_new (TD_TYPE_PICTURE_PAGE, NULL);
}
