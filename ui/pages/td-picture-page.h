/* The page that shows a picture which Tapedeck, or `dot`, has written: fitted to the window or
 * at its own size. SPDX-License-Identifier: MIT */
#pragma once

#include <adwaita.h>

#define TD_TYPE_PICTURE_PAGE (td_picture_page_get_type ())
G_DECLARE_FINAL_TYPE (TdPicturePage, td_picture_page, TD, PICTURE_PAGE, AdwBin)

/** Say whether `path` ends as pictures do that the page can show. */
gboolean td_picture_page_takes (const char *path);

/** Create an empty page. Owner: floating. */
GtkWidget *td_picture_page_new (void);

/** Show a PNG file. Its size is looked at before it is decoded. Errors: FALSE and one line; the
 * page keeps what it shows. */
gboolean td_picture_page_load (TdPicturePage *self, const char *path, GError **error);

/** Return the name of the file on show, "" before the first. Owner: the page. */
const char *td_picture_page_get_name (TdPicturePage *self);

/** Return width and height of the picture in its own pixels, 0 before the first. */
void td_picture_page_get_size (TdPicturePage *self, int *width, int *height);
