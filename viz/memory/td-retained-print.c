/*
 * What would be freed, in words: handles as the program calls them, ways of references,
 * sentences, tables.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "scene/td-json.h"
#include "td-retained.h"

#define SITE_SIZE 320
#define MAX_STEPS 6 /* of a way that is printed whole */
#define SITES_SHOWN 4

/* "train.c:52", "" where it is not known. */
static char *
place (const TdRetained *self, guint32 site)
{
  char text[SITE_SIZE];

  if (!td_tape_reader_site (self->reader, site))
    return g_strdup ("");
  td_tape_reader_site_text (self->reader, site, text, sizeof text);
  return g_path_get_basename (text);
}

static const char *
op_of (const TdRetained *self, guint32 opdef)
{
  return td_tape_reader_opdef (self->reader, opdef)
             ? td_tape_reader_op_name (self->reader, opdef)
             : NULL;
}

/* ---- names of handles ---- */

/* A line of the recorded source, or NULL. */
static char *
dup_line (const TdRetained *self, guint32 site)
{
  const TdTapeSite *s = td_tape_reader_site (self->reader, site);
  const char *file = s ? td_tape_reader_string (self->reader, s->file) : NULL;

  for (guint i = 0; file && i < td_tape_reader_n_sources (self->reader); i++)
    {
      TdTapeSource source = td_tape_reader_source (self->reader, i);
      const char *at = source.text, *end;
      g_autofree char *a = g_path_get_basename (source.path ? source.path : "");
      g_autofree char *b = g_path_get_basename (file);

      if (strcmp (a, b) != 0 || !at)
        continue;
      for (guint line = 1; line < s->line && at; line++)
        {
          at = strchr (at, '\n');
          at = at ? at + 1 : NULL;
        }
      if (!at)
        return NULL;
      end = strchr (at, '\n');
      return end ? g_strndup (at, (gsize)(end - at)) : g_strdup (at);
    }
  return NULL;
}

static gboolean
is_word (char c)
{
  return g_ascii_isalnum (c) || c == '_';
}

/* What stands before the `=` that ends at `end`: "kept[i]", "self->loss". */
static char *
assigned (const char *line, const char *end)
{
  const char *from;

  while (end > line && g_ascii_isspace (end[-1]))
    end--;
  from = end;
  while (from > line)
    {
      char c = from[-1];

      if (c == ']')
        {
          while (from > line && from[-1] != '[')
            from--;
          from -= from > line;
        }
      else if (is_word (c) || c == '.')
        from--;
      else if (c == '>' && from > line + 1 && from[-2] == '-')
        from -= 2;
      else
        break;
    }
  return from < end ? g_strndup (from, (gsize)(end - from)) : NULL;
}

/* "x" of "x = td_retain (...)" and of "td_retain (x)"; NULL: neither. */
static char *
handle_in (const char *line)
{
  const char *call = strstr (line, "td_retain"), *at = call, *end;

  if (!call)
    return NULL;
  while (at > line && g_ascii_isspace (at[-1]))
    at--;
  if (at > line + 1 && at[-1] == '=' && !strchr ("=!<>", at[-2]))
    return assigned (line, at - 1);
  at = call + strlen ("td_retain");
  at += strspn (at, " \t");
  if (*at != '(')
    return NULL;
  at += 1 + strspn (at + 1, " \t");
  for (end = at;
       is_word (*end) || *end == '.' || *end == '[' || *end == ']'
       || (end[0] == '-' && end[1] == '>') || (end > at && end[0] == '>' && end[-1] == '-');
       end++)
    ;
  return end > at && end[strspn (end, " \t")] == ')' ? g_strndup (at, (gsize)(end - at)) : NULL;
}

/* What the source calls a handle; else its name, if that is asked for. */
static char *
dup_called (const TdRetained *self, const TdTapeObject *o, gboolean by_name)
{
  g_autofree char *line = o->holder_site != 0 ? dup_line (self, o->holder_site) : NULL;
  g_autofree char *handle = line ? handle_in (line) : NULL;
  const char *name
      = by_name && o->name != 0 ? td_tape_reader_string (self->reader, o->name) : NULL;

  if (handle)
    return g_utf8_make_valid (handle, -1);
  return name && *name ? g_utf8_make_valid (name, -1) : NULL;
}

char *
td_retained_dup_handle (const TdRetained *self, guint object)
{
  return dup_called (self, &self->tape->objects[object], TRUE);
}

static guint32
held_at (const TdTapeObject *o)
{
  return o->holder_site != 0 ? o->holder_site : o->site;
}

/* "user handle `total_loss` (train.c:52)" */
static void
append_handle (GString *out, const TdRetained *self, guint object, gboolean several,
               gboolean by_name)
{
  const TdTapeObject *o = &self->tape->objects[object];
  g_autofree char *name = dup_called (self, o, by_name);
  g_autofree char *at = place (self, held_at (o));

  if (o->holder == TD_TAPE_HOLDER_HANDLE)
    g_string_append (out, several ? "handles" : "handle");
  else
    g_string_append (out, td_tape_holder_name (o->holder));
  if (name)
    g_string_append_printf (out, " `%s`", name);
  if (*at)
    g_string_append_printf (out, " (%s)", at);
}

char *
td_retained_dup_title (const TdRetained *self, guint row)
{
  const TdRetainedRow *r = &self->rows[row];
  const TdTapeObject *o = &self->tape->objects[r->first];
  g_autofree char *at = place (self, o->site);
  GString *out = g_string_new (NULL);

  if (!r->shared)
    {
      if (r->n > 1)
        g_string_append_printf (out, "%u ", r->n);
      append_handle (out, self, r->first, r->n > 1, !r->several_names);
    }
  else
    {
      if (r->n_sharers > 0)
        g_string_append_printf (out, "shared by %u: ", r->n_sharers);
      else
        g_string_append (out, "shared: ");
      g_string_append (out, o->opdef != 0 ? op_of (self, o->opdef)
                                          : td_tape_category_name (o->category));
      if (*at)
        g_string_append_printf (out, " (%s)", at);
    }
  return g_string_free (out, FALSE);
}

/* ---- ways ---- */

static void
append_step (GString *out, const TdRetained *self, guint object)
{
  const TdTapeObject *o = &self->tape->objects[object];
  const char *op = op_of (self, o->opdef);
  g_autofree char *at = place (self, o->site);
  char bytes[TD_FORMAT_SIZE];

  switch ((TdTapeObjectKind)o->kind)
    {
    case TD_TAPE_OBJECT_HANDLE:
      if (o->flags & TD_TAPE_OBJECT_ROOT)
        append_handle (out, self, object, FALSE, TRUE);
      else
        g_string_append (out, "its gradient");
      return;
    case TD_TAPE_OBJECT_OPERATION:
      g_string_append (out, op ? op : "operation");
      break;
    case TD_TAPE_OBJECT_ARRAY:
    case TD_TAPE_N_OBJECTS:
    default:
      g_string_append_printf (out, "%s of ", td_format_bytes (bytes, o->bytes));
      g_string_append (out, op ? op : td_tape_category_name (o->category));
    }
  if (*at)
    g_string_append_printf (out, " (%s)", at);
}

char *
td_retained_way (const TdRetained *self, guint object)
{
  g_autoptr (GArray) steps = g_array_new (FALSE, FALSE, sizeof (guint));
  GString *out = g_string_new (NULL);

  for (guint i = object; i != G_MAXUINT; i = self->above[i])
    g_array_append_val (steps, i);
  for (guint k = steps->len; k-- > 0;)
    {
      if (k + 1 < steps->len)
        g_string_append (out, " → ");
      if (steps->len > MAX_STEPS && k == steps->len - 1 - MAX_STEPS / 2)
        {
          guint n_left_out = steps->len - MAX_STEPS;

          g_string_append_printf (out, "… %u more", n_left_out);
          k -= n_left_out - 1;
          continue;
        }
      append_step (out, self, g_array_index (steps, guint, k));
    }
  return g_string_free (out, FALSE);
}

/* ---- sentences ---- */

/* "loss of iteration 7 (train.c:41)"; what several handles have is counted. */
static void
append_held (GString *out, const TdRetained *self, const TdRetainedRow *r)
{
  const TdTapeObject *o = &self->tape->objects[r->first];
  const char *op = op_of (self, o->opdef), *name = NULL;
  g_autofree char *at = place (self, o->site);

  if (o->name != 0 && !r->several_names)
    name = td_tape_reader_string (self->reader, o->name);
  if (r->n > 1)
    g_string_append_printf (out, "%u × ", r->n);
  g_string_append (out, name && *name ? name : op ? op : "variable");
  if (r->n == 1 && o->iteration != TD_TAPE_NO_ID)
    g_string_append_printf (out, " of iteration %" G_GUINT64_FORMAT, o->iteration);
  if (*at)
    g_string_append_printf (out, " (%s)", at);
}

char *
td_retained_sentence (const TdRetained *self, guint row)
{
  const TdRetainedRow *r = &self->rows[row];
  const TdTapeObject *o = &self->tape->objects[r->first];
  GString *out = g_string_new (NULL);
  g_autofree char *advice = g_strdup (td_holder_advice (o->holder, r->n_nodes > 0));
  char bytes[TD_FORMAT_SIZE];

  if (r->shared)
    {
      g_autofree char *title = td_retained_dup_title (self, row);

      g_string_append_printf (out, "%s, %s: freed only when all of them let go", title,
                              td_format_bytes (bytes, r->retained));
      return g_string_free (out, FALSE);
    }
  append_held (out, self, r);
  g_string_append (out, " held by ");
  append_handle (out, self, r->first, r->n > 1, !r->several_names);
  g_string_append_printf (out, " retain%s %s", r->n > 1 ? "" : "s",
                          td_format_bytes (bytes, r->retained));
  if (r->n_nodes > 0)
    g_string_append_printf (out, " through %u graph node%s", r->n_nodes,
                            r->n_nodes == 1 ? "" : "s");
  if (r->n_iterations > 1)
    g_string_append_printf (out, " of %u iterations", r->n_iterations);
  if (self->cut)
    g_string_append_printf (out, ", of the nearest %u objects", TD_TAPE_MAX_OBJECTS);
  *advice = g_ascii_tolower (*advice);
  g_string_append_printf (out, "; %s", advice);
  return g_string_free (out, FALSE);
}

/* ---- tables ---- */

static void
json_place (TdJson *j, const TdRetained *self, const char *key, guint32 site)
{
  char text[SITE_SIZE];

  td_json_key (j, key);
  if (td_tape_reader_site (self->reader, site))
    td_json_string (j, td_tape_reader_site_text (self->reader, site, text, sizeof text));
  else
    td_json_null (j);
}

static void
json_sites (TdJson *j, const TdRetained *self, guint row)
{
  g_autoptr (GArray) sites = td_retained_list_sites (self, row);

  td_json_key (j, "sites");
  td_json_begin_array (j);
  for (guint i = 0; i < sites->len; i++)
    {
      const TdRetainedSite *s = &g_array_index (sites, TdRetainedSite, i);
      g_autofree char *way = td_retained_way (self, s->object);

      td_json_begin_object (j);
      json_place (j, self, "site", s->site);
      td_json_member_string (j, "op", op_of (self, s->opdef));
      td_json_member_string (j, "category", td_tape_category_name (s->category));
      td_json_member_int (j, "arrays", s->n);
      td_json_member_int (j, "bytes", (gint64)s->bytes);
      td_json_member_string (j, "way", way);
      td_json_end_object (j);
    }
  td_json_end_array (j);
}

static void
json_row (TdJson *j, const TdRetained *self, guint row)
{
  const TdRetainedRow *r = &self->rows[row];
  const TdTapeObject *o = &self->tape->objects[r->first];
  g_autofree char *handle
      = r->shared ? NULL : dup_called (self, &self->tape->objects[r->first], !r->several_names);
  g_autofree char *sentence = td_retained_sentence (self, row);

  td_json_begin_object (j);
  td_json_member_bool (j, "shared", r->shared);
  td_json_member_string (j, "holder", r->shared ? NULL : td_tape_holder_name (o->holder));
  td_json_member_string (j, "handle", handle);
  json_place (j, self, "holder_site", o->holder_site);
  json_place (j, self, "held_site", o->site);
  td_json_member_string (j, "op", op_of (self, o->opdef));
  td_json_member_int (j, r->shared ? "objects" : "handles", r->n);
  td_json_member_int (j, "shared_by", r->n_sharers);
  td_json_member_int (j, "own_bytes", (gint64)r->own);
  td_json_member_int (j, "retained_bytes", (gint64)r->retained);
  td_json_member_int (j, "elsewhere_bytes", (gint64)r->elsewhere);
  td_json_member_int (j, "graph_nodes", r->n_nodes);
  td_json_member_int (j, "arrays", r->n_arrays);
  td_json_member_int (j, "iterations", r->n_iterations);
  td_json_member_int (j, "oldest", r->oldest);
  td_json_member_int (j, "newest", r->newest);
  td_json_member_string (j, "sentence", sentence);
  json_sites (j, self, row);
  td_json_end_object (j);
}

static char *
print_json (const TdRetained *self)
{
  GString *out = g_string_new (NULL);
  TdJson j;

  td_json_init (&j, out);
  td_json_begin_object (&j);
  td_json_member_int (&j, "iteration", self->iteration);
  td_json_member_bool (&j, "cut", self->cut);
  td_json_key (&j, "retained");
  td_json_begin_array (&j);
  for (guint i = 0; i < self->n_rows; i++)
    json_row (&j, self, i);
  td_json_end_array (&j);
  td_json_end_object (&j);
  return g_string_free (out, FALSE);
}

static char *
print_csv (const TdRetained *self)
{
  GString *out = g_string_new ("retained,own,graph_nodes,arrays,handles,shared_by,title\n");

  for (guint i = 0; i < self->n_rows; i++)
    {
      const TdRetainedRow *r = &self->rows[i];
      g_autofree char *title = td_retained_dup_title (self, i);

      g_string_append_printf (out, "%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT ",%u,%u,%u,%u,",
                              r->retained, r->own, r->n_nodes, r->n_arrays, r->n, r->n_sharers);
      td_csv_append (out, title);
      g_string_append_c (out, '\n');
    }
  return g_string_free (out, FALSE);
}

static char *
print_text (const TdRetained *self)
{
  GString *out = g_string_new (NULL);

  g_string_append_printf (
      out, "after iteration %" G_GINT64_FORMAT ": what would be freed if it were given up%s\n",
      self->iteration, self->cut ? " (of the nearest objects: there are too many)" : "");
  g_string_append (out, " retained       own   nodes  arrays\n");
  for (guint i = 0; i < self->n_rows; i++)
    {
      const TdRetainedRow *r = &self->rows[i];
      g_autofree char *title = td_retained_dup_title (self, i);
      g_autoptr (GArray) sites = td_retained_list_sites (self, i);
      char retained[TD_FORMAT_SIZE], own[TD_FORMAT_SIZE];

      g_string_append_printf (out, "%9s %9s %7u %7u  %s\n",
                              td_format_bytes (retained, r->retained),
                              td_format_bytes (own, r->own), r->n_nodes, r->n_arrays, title);
      for (guint k = 0; k < sites->len && k < SITES_SHOWN; k++)
        {
          const TdRetainedSite *s = &g_array_index (sites, TdRetainedSite, k);
          g_autofree char *way = td_retained_way (self, s->object);

          g_string_append_printf (out, "%9s in %u %s: %s\n",
                                  td_format_bytes (retained, s->bytes), s->n,
                                  td_plural (s->n, "array", "arrays"), way);
        }
    }
  return g_string_free (out, FALSE);
}

char *
td_retained_print (const TdRetained *self, const char *format)
{
  if (g_str_equal (format, "json"))
    return print_json (self);
  return g_str_equal (format, "csv") ? print_csv (self) : print_text (self);
}
