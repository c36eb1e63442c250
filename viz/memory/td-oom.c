/*
 * Where memory ran out. The facts and the estimates are those of `tapedeck info --oom`.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-oom.h"

#include "scene/td-format.h"

static void
append_holder (GString *text, TdTapeReader *reader, const TdTapeOomHolder *h)
{
  const char *path = td_tape_reader_path_text (reader, h->path),
             *name = td_tape_reader_string (reader, h->name),
             *op = td_tape_reader_string (reader, h->op);
  char bytes[TD_FORMAT_SIZE], site[256];

  td_tape_reader_site_text (reader, h->site, site, sizeof site);
  g_string_append_printf (text, " The largest part is %s of %s",
                          td_format_bytes (bytes, h->bytes),
                          td_tape_category_name (h->category));
  if (*path || *name)
    g_string_append_printf (text, " %s%s%s", path, *path && *name ? "/" : "", name);
  if (*op)
    g_string_append_printf (text, ", made by %s", op);
  if (*site)
    g_string_append_printf (text, " at %s", site);
  g_string_append_c (text, '.');
}

char *
td_oom_headline (TdTapeReader *reader)
{
  const guint32 n = td_tape_reader_n_ooms (reader);
  const TdTapeOom *oom = n > 0 ? td_tape_reader_oom (reader, n - 1) : NULL;
  char sentence[700];
  TdTapeRemedy remedy;

  if (!oom)
    return NULL;
  GString *text = g_string_new ("Memory ran out in ");
  td_tape_oom_sentence (reader, n - 1, sentence, sizeof sentence);
  g_string_append_printf (text, "%s.", sentence);
  if (oom->n_holders > 0)
    append_holder (text, reader, td_tape_reader_oom_holders (reader, n - 1));
  if (td_tape_oom_remedies (reader, n - 1, &remedy, 1) > 0)
    g_string_append_printf (text, " Would help, as estimated: %s.", remedy.text);
  return g_string_free (text, FALSE);
}
