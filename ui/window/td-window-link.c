/* Links to a moment of a recording: tapedeck:UUID?i=4812&e=118&sel=KEY. They name the
 * recording, not its file, which is found among those that are open, were opened lately or were
 * run from the app. SPDX-License-Identifier: MIT */
#include "window/td-window-private.h"

#include <glib/gi18n-lib.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "live/td-runs.h"

#define SCHEME "tapedeck:"

enum
{
  UUID_DIGITS = 32
};

static void
write_uuid (const guint8 uuid[16], char text[UUID_DIGITS + 1])
{
  for (guint i = 0; i < 16; i++)
    g_snprintf (text + 2 * i, 3, "%02x", uuid[i]);
}

/* The digits of the link's UUID, in which hyphens may be. FALSE: there are not 32. */
static gboolean
read_uuid (const char *link, char text[UUID_DIGITS + 1])
{
  guint n = 0;
  for (const char *c = link + strlen (SCHEME); *c && *c != '?'; c++)
    if (g_ascii_isxdigit (*c) && n < UUID_DIGITS)
      text[n++] = g_ascii_tolower (*c);
    else if (*c != '-')
      return FALSE;
  text[n] = '\0';
  return n == UUID_DIGITS;
}

gboolean
td_link_is (const char *text)
{
  return g_ascii_strncasecmp (text, SCHEME, strlen (SCHEME)) == 0;
}

char *
td__window_dup_link (TdWindow *self)
{
  TdMoment moment = td_session_get_moment (self->session);
  guint n_selected;
  const guint64 *selected = td_session_get_selection (self->session, &n_selected);
  char uuid[UUID_DIGITS + 1];
  write_uuid (td_tape_reader_header (td_session_get_reader (self->session))->uuid, uuid);
  GString *link = g_string_new (SCHEME);
  g_string_append_printf (link, "%s?i=%" G_GINT64_FORMAT "&e=%d", uuid, moment.iteration,
                          moment.event);
  if (n_selected)
    g_string_append_printf (link, "&sel=%016" G_GINT64_MODIFIER "x", selected[0]);
  return g_string_free (link, FALSE);
}

void
td__run_copy_link (TdWindow *self, const char *parameter)
{
  g_autofree char *link = td__window_dup_link (self);
  gdk_clipboard_set_text (gtk_widget_get_clipboard (GTK_WIDGET (self)), link);
  td__window_toast (self, _ ("Copied a link to this moment"));
}

/* ---- finding the recording ---- */

/* Only the head of the file is read: it may be large, or no tape. */
static gboolean
has_uuid (const char *path, const char *uuid)
{
  TdTapeHeader head;
  char text[UUID_DIGITS + 1];
  int fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  gboolean whole = fd >= 0 && read (fd, &head, sizeof head) == (gssize)sizeof head
                   && memcmp (head.magic, TD_TAPE_MAGIC, sizeof head.magic) == 0;
  if (fd >= 0)
    close (fd);
  if (!whole)
    return FALSE;
  write_uuid (head.uuid, text);
  return strcmp (text, uuid) == 0;
}

static char *
find_recent (const char *uuid)
{
  GList *items = gtk_recent_manager_get_items (gtk_recent_manager_get_default ());
  char *found = NULL;
  for (GList *item = items; item && !found; item = item->next)
    {
      g_autofree char *path
          = g_filename_from_uri (gtk_recent_info_get_uri (item->data), NULL, NULL);
      if (path && g_str_has_suffix (path, ".tdtape") && has_uuid (path, uuid))
        found = g_steal_pointer (&path);
    }
  g_list_free_full (items, (GDestroyNotify)gtk_recent_info_unref);
  return found;
}

static char *
find_run (const char *uuid)
{
  g_autofree char *folder = td_runs_folder ();
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  const char *name;
  while (dir && (name = g_dir_read_name (dir)))
    {
      g_autofree char *path = g_build_filename (folder, name, "run.tdtape", NULL);
      if (has_uuid (path, uuid))
        return g_steal_pointer (&path);
    }
  return NULL;
}

/* A window that shows it already, this one first. */
static TdWindow *
find_window (TdWindow *self, const char *uuid)
{
  GList own = { .data = self };
  GApplication *app = g_application_get_default ();
  GList *others = app ? gtk_application_get_windows (GTK_APPLICATION (app)) : NULL;
  for (GList *item = &own; item; item = item == &own ? others : item->next)
    {
      char text[UUID_DIGITS + 1];
      if (!TD_IS_WINDOW (item->data) || !TD_WINDOW (item->data)->session)
        continue;
      write_uuid (
          td_tape_reader_header (td_session_get_reader (TD_WINDOW (item->data)->session))->uuid,
          text);
      if (strcmp (text, uuid) == 0)
        return item->data;
    }
  return NULL;
}

static void
say_not_found (TdWindow *self, const char *link)
{
  const char *title = "This Recording Is Not Here";
  const char *text
      = "The link names a recording that is not open, was not opened lately and was "
        "not run from here. Open its file, then the link.";
  if (self->session)
    td__window_show_info (self, GTK_MESSAGE_WARNING, text);
  else
    td_window_show_message (self, "dialog-warning-symbolic", title, text, link);
}

/* The moment may not be there: it was thinned, or the program has not come to it. */
static gboolean
go_to (TdWindow *self, const char *link)
{
  const char *wanted = strstr (link, "i=");
  gint64 iteration = wanted ? g_ascii_strtoll (wanted + 2, NULL, 10) : -1;
  td__run_go_to (self, link);
  gint64 now = td_session_get_moment (self->session).iteration;
  if (!wanted || now == iteration)
    return TRUE;
  g_autofree char *text = g_strdup_printf ("The recording has no iteration %" G_GINT64_FORMAT
                                           " to show; this is %" G_GINT64_FORMAT,
                                           iteration, now);
  td__window_show_info (self, GTK_MESSAGE_WARNING, text);
  return FALSE;
}

gboolean
td_window_open_link (TdWindow *self, const char *link)
{
  char uuid[UUID_DIGITS + 1];
  if (!td_link_is (link) || !read_uuid (link, uuid))
    {
      g_autofree char *text = g_strdup_printf (_ ("A link is tapedeck:, the recording's 32 "
                                                  "digits, and ?i=ITERATION&e=EVENT: %.100s%s"),
                                               link, strlen (link) > 100 ? "…" : "");
      if (self->session)
        td__window_show_info (self, GTK_MESSAGE_WARNING, text);
      else
        td_window_show_message (self, "dialog-error-symbolic", _ ("Not a Link"), text, text);
      return FALSE;
    }
  TdWindow *window = find_window (self, uuid);
  if (!window)
    {
      g_autofree char *path = find_recent (uuid);
      if (!path)
        path = find_run (uuid);
      if (!path)
        say_not_found (self, link);
      else if (td__window_open_tape (self, path))
        window = self;
      if (!window)
        return FALSE;
      g_autoptr (GFile) file = g_file_new_for_path (path);
      td__window_remember (file);
    }
  gtk_window_present (GTK_WINDOW (window));
  return !strchr (link, '?') || go_to (window, link);
}
