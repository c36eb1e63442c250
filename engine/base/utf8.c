/* UTF-8, and text that a terminal can be given.  See utf8.h.
 *  SPDX-License-Identifier: MIT */
#include "utf8.h"

#include <stdlib.h>
#include <string.h>

enum
{
  MAX_CHARACTER = 4
};

/* The length that a first byte promises. */
static size_t
promised_length (unsigned char first)
{
  return first < 0x80   ? 1
         : first < 0xc2 ? 0
         : first < 0xe0 ? 2
         : first < 0xf0 ? 3
         : first < 0xf5 ? 4
                        : 0;
}

size_t
td__utf8_length (const char *text, size_t n)
{
  const unsigned char *s = (const unsigned char *)text;
  const size_t length = n > 0 ? promised_length (s[0]) : 0;

  if (length > n)
    return 0;
  for (size_t i = 1; i < length; i++)
    if ((s[i] & 0xc0) != 0x80)
      return 0;
  if (length >= 3
      && ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f)
          || (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f)))
    return 0;
  return length;
}

bool
td__utf8_is_control (const char *character, size_t length)
{
  const unsigned char *s = (const unsigned char *)character;

  return length == 1 ? s[0] < ' ' || s[0] == 0x7f : length == 2 && s[0] == 0xc2 && s[1] < 0xa0;
}

/* A stream, and the beginning of a character whose rest has not come yet. */
typedef struct
{
  FILE *to;
  char begun[MAX_CHARACTER];
  size_t n_begun;
} Plain;

static void
put (FILE *to, const char *character, size_t length)
{
  if (length > 0 && !td__utf8_is_control (character, length))
    fwrite (character, 1, length, to);
  else
    for (size_t i = 0; i < length || i == 0; i++)
      fprintf (to, "\\x%02x", (unsigned char)character[i]);
}

/* Could more bytes make a character of these?  Only bytes that follow are looked at. */
static bool
is_begun (const char *text, size_t n)
{
  if (n >= promised_length ((unsigned char)text[0]))
    return false;
  for (size_t i = 1; i < n; i++)
    if (((unsigned char)text[i] & 0xc0) != 0x80)
      return false;
  return true;
}

/* How many bytes from here on are printed as they are. */
static size_t
plain_run (const char *text, size_t n)
{
  size_t i = 0;

  while (i < n && ((text[i] >= ' ' && text[i] < 0x7f) || text[i] == '\n' || text[i] == '\t'))
    i++;
  return i;
}

/* Put whole characters; how many bytes were taken. */
static size_t
put_all (FILE *to, const char *text, size_t n, bool is_end)
{
  size_t at = 0;

  for (;;)
    {
      const size_t run = plain_run (text + at, n - at);
      size_t length;

      fwrite (text + at, 1, run, to);
      at += run;
      if (at == n || (!is_end && is_begun (text + at, n - at)))
        return at;
      length = td__utf8_length (text + at, n - at);
      put (to, text + at, length);
      at += length > 0 ? length : 1;
    }
}

static ssize_t
plain_write (void *cookie, const char *text, size_t n)
{
  Plain *p = cookie;
  size_t at = 0;

  while (p->n_begun > 0 && at < n)
    {
      size_t taken;

      p->begun[p->n_begun++] = text[at++];
      taken = put_all (p->to, p->begun, p->n_begun, false);
      memmove (p->begun, p->begun + taken, p->n_begun - taken);
      p->n_begun -= taken;
    }
  at += put_all (p->to, text + at, n - at, false);
  if (at < n) /* less than a character, and begun is empty */
    {
      memcpy (p->begun, text + at, n - at);
      p->n_begun = n - at;
    }
  return ferror (p->to) ? 0 : (ssize_t)n;
}

static int
plain_close (void *cookie)
{
  Plain *p = cookie;

  put_all (p->to, p->begun, p->n_begun, true);
  free (p);
  return 0;
}

FILE *
td__plain_stream (FILE *to)
{
  static const cookie_io_functions_t functions = { .write = plain_write, .close = plain_close };
  Plain *p = calloc (1, sizeof *p);
  FILE *f;

  if (p == NULL)
    return NULL;
  p->to = to;
  f = fopencookie (p, "w", functions);
  if (f == NULL)
    free (p);
  return f;
}

char *
td__plain_text (const char *text)
{
  char *plain = NULL;
  size_t n;
  FILE *f = open_memstream (&plain, &n);

  if (f == NULL)
    return NULL;
  put_all (f, text, strlen (text), true);
  if (fclose (f) == 0)
    return plain;
  free (plain);
  return NULL;
}
