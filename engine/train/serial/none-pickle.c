/* Recognises one pickle, that of numpy.array (None), and writes it.
 *
 * A pickle is a program.  It is turned into a list of words (numbers, texts, names, calls), in
 * which the protocols hardly differ, and the list is compared with the only one allowed.
 *
 * SPDX-License-Identifier: MIT */
#include "none-pickle.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum
{
  WORDS_MOST = 64,
  WORD_BYTES = 48,
  MEMO_MOST = 64
};

typedef struct
{
  const unsigned char *at, *end;
  char words[WORDS_MOST][WORD_BYTES];
  int n;
  char memo[MEMO_MOST][WORD_BYTES]; /* the word that was remembered under this number */
  int n_memo;
} Scan;

/* What is left of the pickle after dropping memo and framing, blank by blank:
 * numbers as they are, texts in quotes, names module.name; a call is R, a tuple T. */
static const char *const none_words[] = { "@_reconstruct",
                                          "@numpy.ndarray",
                                          "0",
                                          "T",
                                          "'b'",
                                          "T",
                                          "R",
                                          "(",
                                          "1",
                                          "()",
                                          "@numpy.dtype",
                                          "'O8'",
                                          "0",
                                          "1",
                                          "T",
                                          "R",
                                          "(",
                                          "3",
                                          "'|'",
                                          "None",
                                          "None",
                                          "None",
                                          "-1",
                                          "-1",
                                          "63",
                                          "T",
                                          "B",
                                          "0",
                                          "[]",
                                          "None",
                                          "A",
                                          "T",
                                          "B",
                                          "." };

static bool
take (Scan *s, void *data, size_t n)
{
  if ((size_t)(s->end - s->at) < n)
    return false;
  memcpy (data, s->at, n);
  s->at += n;
  return true;
}

static bool
word (Scan *s, const char *text)
{
  if (s->n == WORDS_MOST)
    return false;
  snprintf (s->words[s->n++], WORD_BYTES, "%s", text);
  return true;
}

static bool
number (Scan *s, long value)
{
  char text[24];

  snprintf (text, sizeof text, "%ld", value);
  return word (s, text);
}

/* A text of n bytes, in quotes. */
static bool
quoted (Scan *s, size_t n)
{
  char text[WORD_BYTES];

  if (n > WORD_BYTES - 4 || (size_t)(s->end - s->at) < n || memchr (s->at, 0, n) != NULL)
    return false;
  snprintf (text, sizeof text, "'%.*s'", (int)n, (const char *)s->at);
  s->at += n;
  return word (s, text);
}

/* NumPy 2 moved numpy.core to numpy._core: the function is the same. */
static bool
name (Scan *s, const char *module, const char *function)
{
  char text[WORD_BYTES];

  if (strcmp (function, "_reconstruct") == 0
      && (strcmp (module, "numpy.core.multiarray") == 0
          || strcmp (module, "numpy._core.multiarray") == 0))
    return word (s, "@_reconstruct");
  return (size_t)snprintf (text, sizeof text, "@%s.%s", module, function) < sizeof text
         && word (s, text);
}

static bool
line (Scan *s, char *text, size_t size)
{
  const unsigned char *stop = memchr (s->at, '\n', (size_t)(s->end - s->at));
  size_t n = stop != NULL ? (size_t)(stop - s->at) : size;

  if (n >= size)
    return false;
  memcpy (text, s->at, n);
  text[n] = '\0';
  s->at += n + 1;
  return true;
}

static bool
global (Scan *s)
{
  char module[WORD_BYTES], function[WORD_BYTES];

  return line (s, module, sizeof module) && line (s, function, sizeof function)
         && name (s, module, function);
}

/* Module and name are the last two texts. */
static bool
stack_global (Scan *s)
{
  char module[WORD_BYTES], function[WORD_BYTES];

  if (s->n < 2 || s->words[s->n - 1][0] != '\'' || s->words[s->n - 2][0] != '\'')
    return false;
  snprintf (module, sizeof module, "%.*s", (int)strlen (s->words[s->n - 2]) - 2,
            s->words[s->n - 2] + 1);
  snprintf (function, sizeof function, "%.*s", (int)strlen (s->words[s->n - 1]) - 2,
            s->words[s->n - 1] + 1);
  s->n -= 2;
  return name (s, module, function);
}

/* Protocol 2 of Python 3 has no bytes: it writes a call of encode ('b', 'latin1'). */
static bool
reduce (Scan *s)
{
  static const char *const encode[] = { "@_codecs.encode", "'b'", "'latin1'", "T" };
  int from = s->n - 4;

  for (int i = 0; i < 4; i++)
    if (from < 0 || strcmp (s->words[from + i], encode[i]) != 0)
      return word (s, "R");
  s->n = from;
  return word (s, "'b'");
}

static bool
remember (Scan *s, int slot)
{
  if (slot >= MEMO_MOST || s->n == 0)
    return false;
  if (s->n_memo <= slot)
    s->n_memo = slot + 1;
  memcpy (s->memo[slot], s->words[s->n - 1], WORD_BYTES);
  return true;
}

/* Only what is one word can be repeated by one word. */
static bool
recall (Scan *s, int slot)
{
  if (slot >= s->n_memo || s->n == WORDS_MOST
      || (*s->memo[slot] != '\'' && *s->memo[slot] != '@'))
    return false;
  memcpy (s->words[s->n++], s->memo[slot], WORD_BYTES);
  return true;
}

static bool
int_of (Scan *s, size_t n)
{
  unsigned char b[8] = { 0 };
  uint64_t value = 0;

  if (n > 8 || !take (s, b, n))
    return false;
  for (size_t i = 0; i < n; i++)
    value |= (uint64_t)b[i] << (8 * i);
  return number (s, n == 4 ? (int32_t)(uint32_t)value : (long)value);
}

static bool
sized_text (Scan *s, size_t size_bytes)
{
  unsigned char b[8] = { 0 };
  size_t n = 0;

  if (!take (s, b, size_bytes))
    return false;
  for (size_t i = 0; i < size_bytes; i++)
    n |= (size_t)b[i] << (8 * i);
  return quoted (s, n);
}

static bool
skip (Scan *s, size_t n)
{
  unsigned char gone[8];

  return take (s, gone, n);
}

static bool
put (Scan *s)
{
  unsigned char slot;

  return take (s, &slot, 1) && remember (s, slot);
}

static bool
get (Scan *s)
{
  unsigned char slot;

  return take (s, &slot, 1) && recall (s, slot);
}

/* One instruction, already without its code. */
static bool
step (Scan *s, unsigned char code)
{
  switch (code)
    {
    case 0x80: /* PROTO */
      return skip (s, 1);
    case 0x95: /* FRAME */
      return skip (s, 8);
    case 'q': /* BINPUT */
      return put (s);
    case 0x94: /* MEMOIZE */
      return remember (s, s->n_memo);
    case 'h': /* BINGET */
      return get (s);
    case 'c': /* GLOBAL */
      return global (s);
    case 0x93: /* STACK_GLOBAL */
      return stack_global (s);
    case 'R': /* REDUCE */
      return reduce (s);
    case 'K': /* BININT1 */
      return int_of (s, 1);
    case 'M': /* BININT2 */
      return int_of (s, 2);
    case 'J': /* BININT */
      return int_of (s, 4);
    case 'X': /* BINUNICODE */
      return sized_text (s, 4);
    case 0x8c: /* SHORT_BINUNICODE */
    case 'U':  /* SHORT_BINSTRING */
    case 'C':  /* SHORT_BINBYTES */
      return sized_text (s, 1);
    case 0x88: /* NEWTRUE */
      return number (s, 1);
    case 0x89: /* NEWFALSE */
      return number (s, 0);
    case 't': /* TUPLE from the mark, of 1, 2, 3 */
    case 0x85:
    case 0x86:
    case 0x87:
      return word (s, "T");
    case 'N':
      return word (s, "None");
    case '(':
      return word (s, "(");
    case ')':
      return word (s, "()");
    case ']':
      return word (s, "[]");
    case 'a': /* APPEND */
      return word (s, "A");
    case 'b': /* BUILD */
      return word (s, "B");
    case '.': /* STOP */
      return word (s, ".");
    default:
      return false;
    }
}

bool
td__pickle_is_none (const unsigned char *pickle, size_t bytes)
{
  enum
  {
    N = sizeof none_words / sizeof *none_words
  };
  Scan s = { .at = pickle, .end = pickle + bytes };

  while (s.at < s.end)
    {
      unsigned char code = *s.at++;

      if (!step (&s, code))
        return false;
      if (code == '.')
        break;
    }
  if (s.at != s.end || s.n != N)
    return false;
  for (int i = 0; i < N; i++)
    if (strcmp (s.words[i], none_words[i]) != 0)
      return false;
  return true;
}

#define NONE_HEAD                                                                              \
  "\x93NUMPY\x01\x00v\x00{'descr': '|O', 'fortran_order': False, 'shape': (), }"               \
  "                                                               \n"
#define NONE_PICKLE                                                                            \
  "\x80\x03"                                                                                   \
  "cnumpy.core.multiarray\n_reconstruct\nq\x00"                                                \
  "cnumpy\nndarray\nq\x01K\x00\x85q\x02"                                                       \
  "C\x01"                                                                                      \
  "bq\x03\x87q\x04Rq\x05(K\x01)cnumpy\ndtype\nq\x06"                                           \
  "X\x02\x00\x00\x00"                                                                          \
  "O8q\x07\x89\x88\x87q\x08Rq\x09(K\x03X\x01\x00\x00\x00|q\x0a"                                \
  "NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK?tq\x0b"                                              \
  "b\x89]q\x0c"                                                                                \
  "Natq\x0d"                                                                                   \
  "b."
const unsigned char td__none_npy[] = NONE_HEAD NONE_PICKLE;
const size_t td__none_npy_bytes = sizeof td__none_npy - 1;
