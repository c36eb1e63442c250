/* Topics of the manual become paragraphs of Pango's markup, which labels show: their links take
 * the keyboard, and their words can be selected and are read out.
 * SPDX-License-Identifier: MIT */
#include "settings/td-manual.h"

#include <gio/gio.h>
#include <string.h>

#include "settings/td-keys.h"

#define FOLDER "/io/github/tapedeck/Tapedeck/help/"

static const char *const names[]
    = { "first-minute", "stepping", "values", "memory",  "learning",
        "static",       "ranks",    "others", "leaving", NULL };

const char *const *
td_manual_names (void)
{
  return names;
}

/* What stands between `open`, whose end is at, and `close`. Owner: the caller; NULL: it does
 * not end. Moves at behind it. */
static char *
take_until (const char **at, const char *close)
{
  const char *end = strstr (*at, close);
  char *inside = end ? g_strndup (*at, (gsize)(end - *at)) : NULL;
  if (end)
    *at = end + strlen (close);
  return inside;
}

static void
append_escaped (GString *markup, const char *before, const char *text, const char *after)
{
  g_autofree char *escaped = g_markup_escape_text (text, -1);
  g_string_append_printf (markup, "%s%s%s", before, escaped, after);
}

/* {win.step-op}: its key as the user reads it; an action without one by its name. */
static void
append_key (GString *markup, const char *action)
{
  g_autofree char *key = td_keys_get_label (action);
  append_escaped (markup, "<b>", key ? key : action, "</b>");
}

/* [words](link) */
static void
append_link (GString *markup, const char *words, const char **at)
{
  g_autofree char *link = **at == '(' ? ((*at)++, take_until (at, ")")) : NULL;
  g_autofree char *target = g_markup_escape_text (link ? link : "", -1);
  g_autofree char *head = g_strdup_printf ("<a href=\"%s\">", target);
  append_escaped (markup, head, words, "</a>");
}

static char *
to_markup (const char *text)
{
  g_autoptr (GString) markup = g_string_new (NULL);
  while (*text)
    {
      const gsize plain = strcspn (text, "`*{[");
      g_autofree char *before = g_strndup (text, plain), *inside = NULL;
      append_escaped (markup, "", before, "");
      text += plain;
      if (!*text)
        break;
      const char mark = *text++;
      if (mark == '*' && *text == '*')
        {
          text++;
          inside = take_until (&text, "**");
        }
      else if (mark != '*')
        inside = take_until (&text, mark == '`' ? "`" : mark == '{' ? "}" : "]");
      if (!inside)
        append_escaped (markup, "", (const char[]){ mark, '\0' }, "");
      else if (mark == '{')
        append_key (markup, inside);
      else if (mark == '[')
        append_link (markup, inside, &text);
      else
        append_escaped (markup, mark == '`' ? "<tt>" : "<b>", inside,
                        mark == '`' ? "</tt>" : "</b>");
    }
  return g_string_free (g_steal_pointer (&markup), FALSE);
}

typedef struct
{
  GArray *blocks;
  GString *text; /* of the paragraph that has begun */
  TdManualKind kind;
} Reading;

static void
end_paragraph (Reading *r)
{
  if (r->text->len > 0)
    {
      TdManualBlock block
          = { r->kind, r->kind == TD_MANUAL_COMMANDS ? g_strdup (r->text->str)
                                                     : to_markup (r->text->str) };
      g_array_append_val (r->blocks, block);
    }
  g_string_truncate (r->text, 0);
  r->kind = TD_MANUAL_TEXT;
}

static void
begin_paragraph (Reading *r, TdManualKind kind)
{
  end_paragraph (r);
  r->kind = kind;
}

/* Lines of a paragraph are joined, those of commands stay lines. */
static void
read_line (Reading *r, const char *line)
{
  const gboolean is_command = g_str_has_prefix (line, "    ");
  if (g_str_has_prefix (line, "## "))
    {
      begin_paragraph (r, TD_MANUAL_HEADING);
      g_string_append (r->text, line + 3);
      end_paragraph (r);
      return;
    }
  if (!*line)
    {
      end_paragraph (r);
      return;
    }
  if (is_command && r->text->len == 0)
    r->kind = TD_MANUAL_COMMANDS;
  else if (g_str_has_prefix (line, "- "))
    begin_paragraph (r, TD_MANUAL_ITEM);
  if (r->text->len > 0)
    g_string_append_c (r->text, r->kind == TD_MANUAL_COMMANDS ? '\n' : ' ');
  while (*line == ' ' || (*line == '-' && r->text->len == 0))
    line++;
  g_string_append (r->text, line);
}

static const char *
find_name (const char *name)
{
  for (guint i = 0; names[i]; i++)
    if (g_str_equal (names[i], name))
      return names[i];
  return names[0];
}

TdManualTopic *
td_manual_read (const char *name)
{
  TdManualTopic *topic = g_new0 (TdManualTopic, 1);
  topic->name = find_name (name);
  g_autofree char *path = g_strconcat (FOLDER, topic->name, ".md", NULL);
  g_autoptr (GBytes) bytes = g_resources_lookup_data (path, G_RESOURCE_LOOKUP_FLAGS_NONE, NULL);
  g_autofree char *text = g_strndup (g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes));
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  Reading r = { g_array_new (FALSE, FALSE, sizeof (TdManualBlock)), g_string_new (NULL),
                TD_MANUAL_TEXT };
  topic->title = g_strdup (lines[0] + strlen ("# "));
  topic->words = g_utf8_strdown (text, -1);
  for (guint i = 1; lines[i]; i++)
    read_line (&r, lines[i]);
  end_paragraph (&r);
  g_string_free (r.text, TRUE);
  topic->n_blocks = r.blocks->len;
  topic->blocks = (TdManualBlock *)(gpointer)g_array_free (r.blocks, FALSE);
  return topic;
}

void
td_manual_free (TdManualTopic *topic)
{
  if (!topic)
    return;
  for (guint i = 0; i < topic->n_blocks; i++)
    g_free (topic->blocks[i].markup);
  g_free (topic->blocks);
  g_free (topic->title);
  g_free (topic->words);
  g_free (topic);
}
