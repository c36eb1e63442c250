/*
 * Reading DOT: a scanner and a parser by recursive descent, for text that may be anything.
 *
 * SPDX-License-Identifier: MIT
 */
#include <gio/gio.h>
#include <string.h>

#include "td-dot.h"

/* A graph beyond this is no picture any more. */
#define MAX_NODES 20000
#define MAX_EDGES 60000
#define MAX_DEPTH 64

typedef enum
{
  TOKEN_END,
  TOKEN_WORD, /* identifier, number or quoted text */
  TOKEN_ARROW,
  TOKEN_SIGN /* one of { } [ ] = ; , : */
} TokenKind;

typedef struct
{
  const char *p, *end;
  int line;
  TokenKind kind;
  char sign;
  GString *word;
  TdDotGraph *graph;
  GHashTable *index; /* id -> node + 1 */
  GError **error;
} Parser;

static gboolean
fail (Parser *s, const char *what)
{
  if (s->error && !*s->error)
    g_set_error (s->error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "line %d: %s", s->line, what);
  return FALSE;
}

static void
skip_space (Parser *s)
{
  for (; s->p < s->end; s->p++)
    if (*s->p == '\n')
      s->line++;
    else if (*s->p == '#' || (*s->p == '/' && s->p + 1 < s->end && s->p[1] == '/'))
      while (s->p + 1 < s->end && s->p[1] != '\n')
        s->p++;
    else if (!g_ascii_isspace (*s->p))
      return;
}

static gboolean
scan_quoted (Parser *s)
{
  for (s->p++; s->p < s->end && *s->p != '"'; s->p++)
    {
      if (*s->p == '\n')
        s->line++;
      /* DOT unquotes only \"; what a backslash means else depends on the attribute */
      if (*s->p == '\\' && s->p + 1 < s->end && s->p[1] == '"')
        s->p++;
      else if (*s->p == '\\' && s->p + 1 < s->end)
        g_string_append_c (s->word, *s->p++);
      g_string_append_c (s->word, *s->p);
    }
  if (s->p >= s->end)
    return fail (s, "a text in quotes does not end");
  s->p++;
  return TRUE;
}

static gboolean
is_word (char c)
{
  return g_ascii_isalnum (c) || c == '_' || c == '.' || (c & 0x80);
}

static gboolean
next (Parser *s)
{
  skip_space (s);
  g_string_truncate (s->word, 0);
  if (s->p >= s->end || *s->p == '\0')
    {
      s->kind = TOKEN_END;
      return TRUE;
    }
  if (*s->p == '"')
    {
      s->kind = TOKEN_WORD;
      return scan_quoted (s);
    }
  if (*s->p == '-' && s->p + 1 < s->end && (s->p[1] == '>' || s->p[1] == '-'))
    {
      s->kind = TOKEN_ARROW;
      s->p += 2;
      return TRUE;
    }
  if (is_word (*s->p) || (*s->p == '-' && s->p + 1 < s->end && is_word (s->p[1])))
    {
      s->kind = TOKEN_WORD;
      do
        g_string_append_c (s->word, *s->p++);
      while (s->p < s->end && is_word (*s->p));
      return TRUE;
    }
  if (!strchr ("{}[]=;,:", *s->p))
    return fail (s, "unexpected character");
  s->kind = TOKEN_SIGN;
  s->sign = *s->p++;
  return TRUE;
}

static gboolean
at (const Parser *s, char sign)
{
  return s->kind == TOKEN_SIGN && s->sign == sign;
}

static gboolean
node_index (Parser *s, const char *id, guint *out)
{
  gpointer found = g_hash_table_lookup (s->index, id);
  TdDotNode node = { 0 };

  if (found)
    {
      *out = GPOINTER_TO_UINT (found) - 1;
      return TRUE;
    }
  if (s->graph->nodes->len >= MAX_NODES)
    return fail (s, "more nodes than a picture can show");
  node.id = g_strdup (id);
  g_array_append_val (s->graph->nodes, node);
  *out = s->graph->nodes->len - 1;
  g_hash_table_insert (s->index, node.id, GUINT_TO_POINTER (*out + 1));
  return TRUE;
}

/* Escapes of a label: \n, \l, \r are line ends; a backslash before anything else goes. */
static char *
unescape_label (const char *text)
{
  GString *out = g_string_new (NULL);

  for (; *text; text++)
    if (*text == '\\' && text[1])
      {
        text++;
        g_string_append_c (out, strchr ("nlr", *text) ? '\n' : *text);
      }
    else
      g_string_append_c (out, *text);
  return g_string_free (out, FALSE);
}

/* [ key = value, ... ], the bracket already read; node may be NULL. */
static gboolean
parse_attributes (Parser *s, gint node)
{
  for (;;)
    {
      g_autofree char *key = NULL;

      if (!next (s))
        return FALSE;
      if (at (s, ']'))
        return next (s);
      if (at (s, ',') || at (s, ';'))
        continue;
      if (s->kind != TOKEN_WORD)
        return fail (s, "] expected");
      key = g_strdup (s->word->str);
      if (!next (s))
        return FALSE;
      if (!at (s, '='))
        return fail (s, "= expected after an attribute");
      if (!next (s))
        return FALSE;
      if (s->kind != TOKEN_WORD)
        return fail (s, "an attribute has no value");
      if (node < 0)
        continue;
      TdDotNode *n = &g_array_index (s->graph->nodes, TdDotNode, node);
      if (g_str_equal (key, "label"))
        {
          g_free (n->label);
          n->label = unescape_label (s->word->str);
        }
      else if (g_str_equal (key, "shape"))
        n->octagon = g_str_equal (s->word->str, "octagon");
    }
}

static gboolean
graph_attribute (Parser *s, const char *key)
{
  static const char *const known[] = { "TB", "BT", "LR", "RL", NULL };

  if (!next (s))
    return FALSE;
  if (s->kind != TOKEN_WORD)
    return fail (s, "an attribute has no value");
  if (g_str_equal (key, "rankdir") && g_strv_contains (known, s->word->str))
    g_strlcpy (s->graph->rankdir, s->word->str, sizeof s->graph->rankdir);
  return next (s);
}

/* A node, a chain of edges, an attribute of the graph: it begins with the word that was read.
 */
static gboolean
parse_statement (Parser *s)
{
  g_autofree char *word = g_strdup (s->word->str);
  guint from, to;

  if (!next (s))
    return FALSE;
  if (at (s, '='))
    return graph_attribute (s, word);
  if (at (s, '[')
      && (g_str_equal (word, "node") || g_str_equal (word, "edge")
          || g_str_equal (word, "graph")))
    return parse_attributes (s, -1);
  if (!node_index (s, word, &from))
    return FALSE;
  if (s->kind != TOKEN_ARROW)
    return at (s, '[') ? parse_attributes (s, (gint)from) : TRUE;
  while (s->kind == TOKEN_ARROW)
    {
      if (!next (s))
        return FALSE;
      if (s->kind != TOKEN_WORD)
        return fail (s, "an edge goes nowhere");
      if (!node_index (s, s->word->str, &to))
        return FALSE;
      if (s->graph->edges->len >= MAX_EDGES)
        return fail (s, "more edges than a picture can show");
      TdDotEdge edge = { from, to };
      g_array_append_val (s->graph->edges, edge);
      from = to;
      if (!next (s))
        return FALSE;
    }
  return at (s, '[') ? parse_attributes (s, -1) : TRUE;
}

/* Statements up to the closing brace, which is read. */
static gboolean
parse_body (Parser *s, int depth)
{
  if (depth > MAX_DEPTH)
    return fail (s, "too deeply nested");
  if (!next (s))
    return FALSE;
  for (;;)
    {
      if (s->kind == TOKEN_END)
        return fail (s, "} expected");
      if (at (s, '}'))
        return next (s);
      if (at (s, ';'))
        {
          if (!next (s))
            return FALSE;
        }
      else if (at (s, '{'))
        {
          if (!parse_body (s, depth + 1))
            return FALSE;
        }
      else if (s->kind != TOKEN_WORD)
        return fail (s, "a node expected");
      else if (g_str_equal (s->word->str, "subgraph"))
        {
          if (!next (s) || (s->kind == TOKEN_WORD && !next (s)))
            return FALSE;
          if (!at (s, '{'))
            return fail (s, "{ expected");
          if (!parse_body (s, depth + 1))
            return FALSE;
        }
      else if (!parse_statement (s))
        return FALSE;
    }
}

static gboolean
parse_graph (Parser *s)
{
  if (!next (s))
    return FALSE;
  if (s->kind == TOKEN_WORD && g_str_equal (s->word->str, "strict") && !next (s))
    return FALSE;
  if (s->kind != TOKEN_WORD
      || (!g_str_equal (s->word->str, "digraph") && !g_str_equal (s->word->str, "graph")))
    return fail (s, "not a DOT graph");
  if (!next (s) || (s->kind == TOKEN_WORD && !next (s)))
    return FALSE;
  if (!at (s, '{'))
    return fail (s, "{ expected");
  return parse_body (s, 0);
}

TdDotGraph *
td_dot_parse (const char *text, gsize n, GError **error)
{
  TdDotGraph *g = g_new0 (TdDotGraph, 1);
  g_autoptr (GError) why = NULL;
  g_autofree char *valid = g_utf8_make_valid (text, (gssize)n); /* labels are drawn, ids said */
  Parser s = { .p = valid,
               .end = valid + strlen (valid),
               .line = 1,
               .word = g_string_new (NULL),
               .graph = g,
               .error = &why };

  g->nodes = g_array_new (FALSE, TRUE, sizeof (TdDotNode));
  g->edges = g_array_new (FALSE, TRUE, sizeof (TdDotEdge));
  strcpy (g->rankdir, "TB");
  s.index = g_hash_table_new (g_str_hash, g_str_equal);
  gboolean ok = parse_graph (&s);
  g_hash_table_unref (s.index);
  g_string_free (s.word, TRUE);
  for (guint i = 0; i < g->nodes->len; i++)
    {
      TdDotNode *node = &g_array_index (g->nodes, TdDotNode, i);

      if (!node->label)
        node->label = g_strdup (node->id);
    }
  if (ok)
    return g;
  g_propagate_error (error, g_steal_pointer (&why));
  td_dot_free (g);
  return NULL;
}

void
td_dot_free (TdDotGraph *g)
{
  if (!g)
    return;
  for (guint i = 0; i < g->nodes->len; i++)
    {
      g_free (g_array_index (g->nodes, TdDotNode, i).id);
      g_free (g_array_index (g->nodes, TdDotNode, i).label);
    }
  g_array_unref (g->nodes);
  g_array_unref (g->edges);
  g_free (g);
}
