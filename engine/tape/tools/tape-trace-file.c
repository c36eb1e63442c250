/* Traces as files: a window that moves on over the text, plain or gzip, from event to event.
 *
 * Where an item ends is found by counting brackets and quotes; whether it is JSON is told when
 * it is read.  What is between items is read here.
 * SPDX-License-Identifier: MIT */
#include "tape-trace.h"

#include "source.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  WINDOW = 1 << 20,
  MOST = 1 << 24, /* bytes of one item */
};

typedef enum
{
  AT_START,
  IN_OBJECT, /* before the first member */
  IN_MEMBERS,
  IN_LIST, /* before the first event */
  IN_EVENTS,
  AT_END
} Where;

struct TapeTraceFile
{
  TdSource *source;
  const TdTapeImportOptions *watch;
  char *text; /* [at, n) is still to be read */
  size_t at, n, room;
  bool ended; /* the file has no more */
  bool alone; /* the list is not in an object */
  Where where;
  uint64_t count;
  char key[64];
  const char *why;
};

TapeTraceFile *
td__tape_trace_open (const char *path, const TdTapeImportOptions *watch, char *error, size_t n)
{
  const char *why = "no memory";
  TapeTraceFile *f = calloc (1, sizeof *f);

  if (f != NULL)
    {
      f->source = td__source_open (path, &why);
      f->text = malloc (WINDOW);
      f->room = WINDOW;
      f->watch = watch;
    }
  if (f != NULL && f->source != NULL && f->text != NULL)
    return f;
  snprintf (error, n, "%s", f != NULL && f->source != NULL ? "no memory" : why);
  td__tape_trace_close (f);
  return NULL;
}

void
td__tape_trace_close (TapeTraceFile *f)
{
  if (f == NULL)
    return;
  td__source_close (f->source);
  free (f->text);
  free (f);
}

uint64_t
td__tape_trace_count (const TapeTraceFile *f)
{
  return f->count;
}

/* Read on behind what there is.  False: there is no more, or it cannot be read (f->why). */
static bool
more (TapeTraceFile *f)
{
  uint64_t done, all;
  int64_t n;

  if (f->ended)
    return false;
  td__source_progress (f->source, &done, &all);
  if (!td__tape_import_step (f->watch, TD_TAPE_IMPORT_READING, done, all))
    return f->why = "cancelled", false;
  if (f->at > 0)
    memmove (f->text, f->text + f->at, f->n - f->at);
  f->n -= f->at;
  f->at = 0;
  if (f->n == f->room)
    {
      char *bigger = f->room < MOST ? realloc (f->text, f->room * 2) : NULL;

      if (bigger == NULL)
        return f->why = f->room < MOST ? "no memory" : "an item is larger than 16 MB", false;
      f->text = bigger;
      f->room *= 2;
    }
  n = td__source_read (f->source, f->text + f->n, f->room - f->n, &f->why);
  if (n < 0)
    return false;
  f->ended = (size_t)n < f->room - f->n;
  f->n += (size_t)n;
  return n > 0;
}

static bool
is_blank (char c)
{
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The next character that is no blank, without taking it; 0: there is none. */
static char
peek (TapeTraceFile *f)
{
  for (;;)
    {
      while (f->at < f->n && is_blank (f->text[f->at]))
        f->at++;
      if (f->at < f->n)
        return f->text[f->at];
      if (!more (f))
        return 0;
    }
}

static bool
eat (TapeTraceFile *f, char c)
{
  if (peek (f) != c)
    return false;
  f->at++;
  return true;
}

/* Find the bytes of the value that begins at f->at.  0: it does not end. */
static size_t
measure (TapeTraceFile *f)
{
  size_t k = 0;
  unsigned depth = 0;
  bool text = false, plain = false;

  for (;;)
    {
      for (; f->at + k < f->n; k++)
        {
          const char c = f->text[f->at + k];

          if (text && c == '\\')
            {
              if (f->at + k + 1 >= f->n)
                break;
              k++;
            }
          else if (c == '"')
            {
              text = !text;
              if (!text && depth == 0)
                return k + 1;
            }
          else if (text)
            continue;
          else if (c == '{' || c == '[')
            depth++;
          else if (depth > 0 && (c == '}' || c == ']'))
            {
              if (--depth == 0)
                return k + 1;
            }
          else if (depth == 0 && (c == ',' || c == '}' || c == ']' || is_blank (c)))
            return k;
          else if (depth == 0)
            plain = true; /* a number, or a word */
        }
      if (!more (f))
        return f->ended && f->why == NULL && plain && depth == 0 && !text ? f->n - f->at : 0;
    }
}

/* What is wrong where something else should have come; NULL: it came, and has no end. */
static bool
fail (TapeTraceFile *f, const char *expected, char *error, size_t n)
{
  const char c = f->why == NULL && expected != NULL ? peek (f) : 0;

  if (f->why != NULL)
    snprintf (error, n, "after %" PRIu64 " events: %s", f->count, f->why);
  else if (c == 0)
    snprintf (error, n, "it is cut off: it ends after %" PRIu64 " events", f->count);
  else
    snprintf (error, n, "after %" PRIu64 " events: %s expected, and no '%c'", f->count,
              expected, c > ' ' && c < 0x7f ? c : '?');
  return false;
}

/* The value at f->at, whose bytes stay where they are until the next call. */
static bool
take_value (TapeTraceFile *f, TdJsonReader *item, char *error, size_t n)
{
  size_t length;

  peek (f);
  length = measure (f);
  if (length == 0)
    return fail (f, peek (f) == '"' || peek (f) == '{' || peek (f) == '[' ? NULL : "a value",
                 error, n);
  td__json_read (item, f->text + f->at, length);
  f->at += length;
  return true;
}

static bool
take_event (TapeTraceFile *f, TdJsonReader *item, char *error, size_t n)
{
  f->key[0] = '\0';
  if (!take_value (f, item, error, n))
    return false;
  f->where = IN_EVENTS;
  f->count++;
  return true;
}

static bool
take_key (TapeTraceFile *f, char *error, size_t n)
{
  TdJsonReader key;

  if (peek (f) != '"')
    return fail (f, "the name of a member", error, n);
  if (!take_value (f, &key, error, n))
    return false;
  if (td__json_next (&key) != TD_JSON_STRING)
    return snprintf (error, n, "after %" PRIu64 " events: a name that is no JSON", f->count),
           false;
  td__json_text (&key, f->key, sizeof f->key);
  return eat (f, ':') || fail (f, "':'", error, n);
}

/* Behind the whole value nothing may come. */
static bool
end (TapeTraceFile *f, char *error, size_t n)
{
  f->where = AT_END;
  return peek (f) != 0 || f->why != NULL ? fail (f, "the end", error, n) : false;
}

/* A member of the object; where it is the list of events, its first. */
static bool
take_member (TapeTraceFile *f, TdJsonReader *item, char *error, size_t n)
{
  if (!take_key (f, error, n))
    return false;
  f->where = IN_MEMBERS;
  if (strcmp (f->key, "traceEvents") != 0)
    return take_value (f, item, error, n);
  if (!eat (f, '['))
    return fail (f, "a list of events", error, n);
  f->where = IN_LIST;
  return td__tape_trace_next (f, NULL, item, error, n);
}

bool
td__tape_trace_next (TapeTraceFile *f, const char **key, TdJsonReader *item, char *error,
                     size_t n)
{
  if (key != NULL)
    *key = f->key;
  error[0] = '\0';
  if (f->where == AT_END)
    return false;
  if (f->where == AT_START)
    {
      f->alone = eat (f, '[');
      if (!f->alone && !eat (f, '{'))
        return fail (f, "'{' or '['", error, n);
      f->where = f->alone ? IN_LIST : IN_OBJECT;
    }
  if (f->where == IN_LIST || f->where == IN_EVENTS)
    {
      const bool first = f->where == IN_LIST;

      if (eat (f, ']'))
        {
          if (f->alone)
            return end (f, error, n);
          f->where = IN_MEMBERS;
        }
      else if (first || eat (f, ','))
        return take_event (f, item, error, n);
      else
        return fail (f, "',' or ']'", error, n);
    }
  if (eat (f, '}'))
    return end (f, error, n);
  if (f->where == IN_MEMBERS && !eat (f, ','))
    return fail (f, "',' or '}'", error, n);
  return take_member (f, item, error, n);
}

bool
td__tape_trace_has_rows (TapeTraceFile *f)
{
  if (peek (f) != '[')
    return false;
  for (size_t i = f->at + 1; i < f->n; i++)
    if (!is_blank (f->text[i]))
      return f->text[i] == '[';
  return false;
}
