/* The machine that reads a pickle: a stack, marks on it, and a memo.  Opcodes are rows of a
 * table; those that name code or build objects have no function and are refused by their name.
 * SPDX-License-Identifier: MIT */
#include "tape-import.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER_BYTES 65536
#define MAX_MARKS 1000 /* containers that are open within each other */
#define MAX_TRACES 256 /* devices whose entries are handed on */
#define BUDGET_START ((uint64_t)32 << 20)
#define BUDGET_PER_BYTE 16

typedef struct
{
  TapePickle *p;
  int fd;
  size_t at, n;    /* in the buffer */
  uint64_t offset; /* of the buffer's end in the file */
  uint64_t size;   /* of the file */
  const TdTapeImportOptions *watch;
  uint64_t opcode; /* offset of the one that runs */
  TapeValue *stack, *memo;
  uint64_t n_stack, room_stack, n_memo, room_memo, n_puts;
  uint64_t marks[MAX_MARKS];
  unsigned n_marks;
  char *text; /* that is being read */
  uint64_t room_text;
  bool stopped, failed;
  const TapeEntries *entries; /* NULL: nobody is given any */
  TapeValue traces_key;
  char *error;
  size_t n_error;
  uint8_t buffer[BUFFER_BYTES];
} Machine;

/* ----------------------------------------------------------------------------- errors */

static bool fail (Machine *m, const char *format, ...) __attribute__ ((format (printf, 2, 3)));

static bool
fail (Machine *m, const char *format, ...)
{
  char what[160];
  va_list args;

  va_start (args, format);
  vsnprintf (what, sizeof what, format, args);
  va_end (args);
  if (!m->failed)
    snprintf (m->error, m->n_error, "offset %" PRIu64 ": %s", m->opcode, what);
  m->failed = true;
  return false;
}

static bool
fail_memory (Machine *m)
{
  return fail (m, "no memory for what comes here, or more than a snapshot of this size has");
}

/* ------------------------------------------------------------------------------ input */

static uint64_t
here (const Machine *m)
{
  return m->offset - (m->n - m->at);
}

/* The budget grows with what was read: a length alone takes nothing. */
static bool
fill (Machine *m)
{
  ssize_t got;

  do
    got = read (m->fd, m->buffer, sizeof m->buffer);
  while (got < 0 && errno == EINTR);
  if (got < 0)
    return fail (m, "%s", strerror (errno));
  if (got == 0)
    return fail (m, "the file ends within the pickle");
  if (!td__tape_import_step (m->watch, TD_TAPE_IMPORT_READING, m->offset, m->size))
    return fail (m, "cancelled");
  m->at = 0;
  m->n = (size_t)got;
  m->offset += (uint64_t)got;
  m->p->n_read = m->offset;
  m->p->budget += (uint64_t)got * BUDGET_PER_BYTE;
  return true;
}

static bool
get_bytes (Machine *m, void *out, size_t n)
{
  if (n <= m->n - m->at)
    {
      memcpy (out, m->buffer + m->at, n);
      m->at += n;
      return true;
    }
  for (size_t done = 0; done < n;)
    {
      size_t part = m->n - m->at < n - done ? m->n - m->at : n - done;

      if (part == 0 && !fill (m))
        return false;
      memcpy ((char *)out + done, m->buffer + m->at, part);
      m->at += part;
      done += part;
    }
  return true;
}

/* A little-endian number of `n` bytes. */
static bool
get_number (Machine *m, unsigned n, uint64_t *x)
{
  uint8_t bytes[8];

  *x = 0;
  if (!get_bytes (m, bytes, n))
    return false;
  for (unsigned i = 0; i < n; i++)
    *x |= (uint64_t)bytes[i] << 8 * i;
  return true;
}

/* ------------------------------------------------------------------------------ stack */

static bool
push (Machine *m, TapeValue v)
{
  TapeValue *stack;

  if (v == 0)
    return fail_memory (m);
  if (m->n_stack < m->room_stack)
    {
      m->stack[m->n_stack++] = v;
      return true;
    }
  stack = td__tape_grow (m->p, m->stack, &m->room_stack, m->n_stack + 1, sizeof *stack);
  if (stack == NULL)
    return fail_memory (m);
  m->stack = stack;
  stack[m->n_stack++] = v;
  return true;
}

/* Values above the last mark, or all of them. */
static uint64_t
above_mark (const Machine *m)
{
  return m->n_stack - (m->n_marks > 0 ? m->marks[m->n_marks - 1] : 0);
}

static bool
need (Machine *m, uint64_t n)
{
  return above_mark (m) >= n || fail (m, "a value is missing on the stack");
}

/* Take the last mark; its values are the upper `*n` of the stack. */
static bool
pop_mark (Machine *m, uint64_t *n)
{
  *n = 0;
  if (m->n_marks == 0)
    return fail (m, "no mark on the stack");
  *n = above_mark (m);
  m->n_marks--;
  return true;
}

/* ---------------------------------------------------------------------------- opcodes */

static bool
op_protocol (Machine *m, unsigned unused)
{
  uint64_t version;

  if (!get_number (m, 1, &version))
    return false;
  if (m->opcode != 0)
    return fail (m, "a second PROTO");
  return (version >= 2 && version <= 5)
         || fail (m, "pickle protocol %u; 2 to 5 can be read", (unsigned)version);
}

/* Frames tell a reader how much to read at once: nothing that we need. */
static bool
op_frame (Machine *m, unsigned n)
{
  uint64_t length;

  return get_number (m, n, &length);
}

static bool
op_mark (Machine *m, unsigned unused)
{
  if (m->n_marks == MAX_MARKS)
    return fail (m, "values within values, more than %d deep", MAX_MARKS);
  m->marks[m->n_marks++] = m->n_stack;
  return true;
}

static bool
op_stop (Machine *m, unsigned unused)
{
  if (m->n_marks != 0 || m->n_stack != 1)
    return fail (m, "the pickle ends with %" PRIu64 " values on the stack", m->n_stack);
  m->p->root = m->stack[0];
  m->stopped = true;
  return true;
}

/* Python takes a mark away when there is nothing above it. */
static bool
op_pop (Machine *m, unsigned unused)
{
  if (m->n_marks > 0 && above_mark (m) == 0)
    m->n_marks--;
  else if (!need (m, 1))
    return false;
  else
    m->n_stack--;
  return true;
}

static bool
op_pop_mark (Machine *m, unsigned unused)
{
  uint64_t n;

  if (!pop_mark (m, &n))
    return false;
  m->n_stack -= n;
  return true;
}

static bool
op_dup (Machine *m, unsigned unused)
{
  if (!need (m, 1))
    return false;
  td__tape_note_copy (m->p, m->stack[m->n_stack - 1]);
  return push (m, m->stack[m->n_stack - 1]);
}

static bool
op_none (Machine *m, unsigned unused)
{
  return push (m, td__tape_value_make_plain (TAPE_VALUE_NONE, false));
}

static bool
op_bool (Machine *m, unsigned x)
{
  return push (m, td__tape_value_make_plain (TAPE_VALUE_BOOL, x));
}

/* BININT has four bytes and a sign, the others are shorter and have none. */
static bool
op_int (Machine *m, unsigned n)
{
  uint64_t x;

  if (!get_number (m, n, &x))
    return false;
  return push (m, n == 4 ? td__tape_value_make_signed (m->p, (int32_t)(uint32_t)x)
                         : td__tape_value_make_unsigned (m->p, x));
}

/* As many bytes as it says, in two's complement. */
static bool
op_long (Machine *m, unsigned length_bytes)
{
  uint8_t bytes[9] = { 0 };
  uint64_t n, x = 0;

  if (!get_number (m, length_bytes, &n))
    return false;
  if (n > sizeof bytes)
    return fail (m, "an integer of %" PRIu64 " bytes", n);
  if (!get_bytes (m, bytes, (size_t)n))
    return false;
  for (unsigned i = 0; i < n && i < 8; i++)
    x |= (uint64_t)bytes[i] << 8 * i;
  if (n == 9 && bytes[8] != 0)
    return fail (m, "an integer of more than 64 bits");
  if (n == 0 || n == 9 || (bytes[n - 1] & 0x80) == 0)
    return push (m, td__tape_value_make_unsigned (m->p, x));
  if (n < 8)
    x |= UINT64_MAX << 8 * n;
  return push (m, td__tape_value_make_signed (m->p, (int64_t)x));
}

/* The only number whose first byte is the highest. */
static bool
op_float (Machine *m, unsigned unused)
{
  uint64_t bits;
  double x;

  if (!get_number (m, 8, &bits))
    return false;
  bits = __builtin_bswap64 (bits);
  memcpy (&x, &bits, sizeof x);
  return push (m, td__tape_value_make_float (m->p, x));
}

/* Memory comes with the bytes, in steps. */
static bool
op_text (Machine *m, unsigned length_bytes)
{
  uint64_t n, done = 0;

  if (!get_number (m, length_bytes, &n))
    return false;
  if (n <= m->n - m->at) /* usual: it lies in the buffer */
    {
      m->at += n;
      return push (m,
                   td__tape_value_make_text (m->p, (char *)m->buffer + m->at - n, (size_t)n));
    }
  while (done < n)
    {
      const uint64_t part = n - done < BUFFER_BYTES ? n - done : BUFFER_BYTES;
      char *text = td__tape_grow (m->p, m->text, &m->room_text, done + part, 1);

      if (text == NULL)
        return fail_memory (m);
      m->text = text;
      if (!get_bytes (m, text + done, (size_t)part))
        return false;
      done += part;
    }
  return push (m, td__tape_value_make_text (m->p, m->text, (size_t)n));
}

static bool
op_empty (Machine *m, unsigned kind)
{
  return push (m, td__tape_value_make_list (m->p, kind));
}

/* Replace the upper `n` values by a list of them. */
static bool
collect (Machine *m, uint64_t n)
{
  const TapeValue list = td__tape_value_make_list (m->p, TAPE_VALUE_LIST);

  if (list == 0 || !td__tape_list_add (m->p, list, m->stack + m->n_stack - n, n))
    return fail_memory (m);
  m->n_stack -= n;
  return push (m, td__tape_once (m->p, list, m->memo, m->n_memo));
}

static bool
op_collect_mark (Machine *m, unsigned unused)
{
  uint64_t n;

  return pop_mark (m, &n) && (n == 0 ? op_empty (m, TAPE_VALUE_LIST) : collect (m, n));
}

static bool
op_tuple (Machine *m, unsigned n)
{
  return need (m, n) && collect (m, n);
}

static bool
add_items (Machine *m, uint64_t n)
{
  TapeValue list;
  bool is_first;

  if (!need (m, n + 1))
    return false;
  list = m->stack[m->n_stack - n - 1];
  if (td__tape_value_kind (list) != TAPE_VALUE_LIST)
    return fail (m, "items for what is no list");
  is_first = td__tape_value_length (m->p, list) == 0;
  if (!td__tape_may_grow (m->p, list))
    return fail (m, "items for a list that had all of them");
  while (n > 0 && td__tape_value_kind (m->stack[m->n_stack - 1]) == TAPE_VALUE_TAKEN)
    {
      m->n_stack--;
      n--;
    }
  if (!td__tape_list_add (m->p, list, m->stack + m->n_stack - n, n))
    return fail_memory (m);
  m->n_stack -= n;
  if (is_first)
    m->stack[m->n_stack - 1] = td__tape_once (m->p, list, m->memo, m->n_memo);
  return true;
}

static bool
op_append (Machine *m, unsigned unused)
{
  return add_items (m, 1);
}

static bool
op_appends (Machine *m, unsigned unused)
{
  uint64_t n;

  return pop_mark (m, &n) && add_items (m, n);
}

/* Is the value at `at` on the stack an entry of a trace?  It stands above its list, and that
 * above those of the devices before it and the list of all: the value of "device_traces" in the
 * outermost dictionary. */
static bool
is_entry (const Machine *m, uint64_t at, uint32_t *device)
{
  const uint64_t mark = m->n_marks > 0 ? m->marks[m->n_marks - 1] : 0;
  const bool after_others
      = at > 0 && td__tape_value_kind (m->stack[at - 1]) == TAPE_VALUE_TAKEN;
  const uint64_t trace = (after_others ? mark : at) - 1;
  uint64_t all = trace;

  if (m->entries == NULL || at < 4 || trace >= at
      || td__tape_value_kind (m->stack[trace]) != TAPE_VALUE_LIST)
    return false;
  while (all > 2 && trace - all <= MAX_TRACES
         && td__tape_value_kind (m->stack[all - 1]) == TAPE_VALUE_LIST)
    all--;
  if (all == trace || all % 2 != 0 || m->stack[all - 1] != m->traces_key
      || td__tape_value_kind (m->stack[0]) != TAPE_VALUE_DICT)
    return false;
  *device = (uint32_t)(trace - all - 1 + td__tape_value_length (m->p, m->stack[all]));
  return true;
}

/* The entry on top of the stack goes to who takes them. */
static bool
hand_on (Machine *m, uint32_t device, uint64_t n_words)
{
  TapeValue *top = &m->stack[m->n_stack - 1];

  if (!m->entries->take (m->entries->user, m->p, device, *top, m->error, m->n_error))
    {
      m->failed = true;
      return false;
    }
  if (!td__tape_forget (m->p, *top, n_words, m->memo, m->n_memo))
    return fail (m, "an entry of a trace that stands elsewhere, too");
  *top = td__tape_value_make_plain (TAPE_VALUE_TAKEN, false);
  return true;
}

static bool
add_pairs (Machine *m, uint64_t n)
{
  const uint64_t n_words = m->p->n_words;
  const char *wrong;
  TapeValue dict;
  uint32_t device;
  bool is_first;

  if (!need (m, n + 1))
    return false;
  if (n % 2 != 0)
    return fail (m, "a key without a value");
  dict = m->stack[m->n_stack - n - 1];
  if (td__tape_value_kind (dict) != TAPE_VALUE_DICT)
    return fail (m, "keys for what is no dictionary");
  is_first = td__tape_value_length (m->p, dict) == 0;
  if (!td__tape_may_grow (m->p, dict))
    return fail (m, "keys for a dictionary that had all of them");
  wrong = td__tape_dict_add (m->p, dict, m->stack + m->n_stack - n, n / 2);
  if (wrong != NULL)
    return fail (m, "%s", wrong);
  m->n_stack -= n;
  if (!is_first)
    return true;
  if (is_entry (m, m->n_stack - 1, &device))
    return hand_on (m, device, n_words);
  m->stack[m->n_stack - 1] = td__tape_once (m->p, dict, m->memo, m->n_memo);
  return true;
}

static bool
op_set_item (Machine *m, unsigned unused)
{
  return add_pairs (m, 2);
}

static bool
op_set_items (Machine *m, unsigned unused)
{
  uint64_t n;

  return pop_mark (m, &n) && add_pairs (m, n);
}

/* DICT: the pairs are there before the dictionary. */
static bool
op_dict_mark (Machine *m, unsigned unused)
{
  const TapeValue dict = td__tape_value_make_list (m->p, TAPE_VALUE_DICT);
  const char *wrong;
  uint64_t n;

  if (!pop_mark (m, &n))
    return false;
  if (n % 2 != 0)
    return fail (m, "a key without a value");
  wrong = dict == 0 ? "no memory"
                    : td__tape_dict_add (m->p, dict, m->stack + m->n_stack - n, n / 2);
  if (wrong != NULL)
    return fail (m, "%s", wrong);
  m->n_stack -= n;
  return push (m, dict);
}

/* --------------------------------------------------------------------------- the memo */

static bool
op_get (Machine *m, unsigned n)
{
  uint64_t k;

  if (n == 4 && m->n - m->at >= 4) /* a stack of frames is many of them */
    {
      k = (uint64_t)m->buffer[m->at] | (uint64_t)m->buffer[m->at + 1] << 8
          | (uint64_t)m->buffer[m->at + 2] << 16 | (uint64_t)m->buffer[m->at + 3] << 24;
      m->at += 4;
    }
  else if (!get_number (m, n, &k))
    return false;
  if (k >= m->n_memo || m->memo[k] == 0)
    return fail (m, "memo %" PRIu64 " was never put", k);
  if (td__tape_value_kind (m->memo[k]) == TAPE_VALUE_TAKEN)
    return fail (m, "memo %" PRIu64 " is an entry of a trace, which has its place there", k);
  td__tape_note_copy (m->p, m->memo[k]);
  return push (m, m->memo[k]);
}

/* Python counts upwards: a far number would ask for much memory for nothing. */
static bool
put (Machine *m, uint64_t k)
{
  TapeValue *memo;

  if (!need (m, 1))
    return false;
  if (k > m->n_puts + 4096)
    return fail (m, "memo %" PRIu64 " after %" PRIu64 " of them", k, m->n_puts);
  memo = td__tape_grow (m->p, m->memo, &m->room_memo, k + 1, sizeof *memo);
  if (memo == NULL)
    return fail_memory (m);
  m->memo = memo;
  while (m->n_memo <= k)
    memo[m->n_memo++] = 0;
  memo[k] = m->stack[m->n_stack - 1];
  td__tape_note_put (m->p, memo[k], k);
  m->n_puts++;
  return true;
}

static bool
op_put (Machine *m, unsigned n)
{
  uint64_t k;

  return get_number (m, n, &k) && put (m, k);
}

static bool
op_memoize (Machine *m, unsigned unused)
{
  return put (m, m->n_puts);
}

/* -------------------------------------------------------------------------- the table */

typedef struct
{
  const char *name;
  bool (*run) (Machine *m, unsigned argument); /* NULL: refused */
  unsigned argument;
} Opcode;

static const Opcode opcodes[256] = {
  [0x80] = { "PROTO", op_protocol, 0 },
  [0x95] = { "FRAME", op_frame, 8 },
  ['.'] = { "STOP", op_stop, 0 },
  ['('] = { "MARK", op_mark, 0 },
  ['0'] = { "POP", op_pop, 0 },
  ['1'] = { "POP_MARK", op_pop_mark, 0 },
  ['2'] = { "DUP", op_dup, 0 },
  ['N'] = { "NONE", op_none, 0 },
  [0x88] = { "NEWTRUE", op_bool, 1 },
  [0x89] = { "NEWFALSE", op_bool, 0 },
  ['J'] = { "BININT", op_int, 4 },
  ['K'] = { "BININT1", op_int, 1 },
  ['M'] = { "BININT2", op_int, 2 },
  [0x8a] = { "LONG1", op_long, 1 },
  [0x8b] = { "LONG4", op_long, 4 },
  ['G'] = { "BINFLOAT", op_float, 0 },
  ['X'] = { "BINUNICODE", op_text, 4 },
  [0x8c] = { "SHORT_BINUNICODE", op_text, 1 },
  [0x8d] = { "BINUNICODE8", op_text, 8 },
  ['T'] = { "BINSTRING", op_text, 4 },
  ['U'] = { "SHORT_BINSTRING", op_text, 1 },
  [']'] = { "EMPTY_LIST", op_empty, TAPE_VALUE_LIST },
  [')'] = { "EMPTY_TUPLE", op_empty, TAPE_VALUE_LIST },
  ['}'] = { "EMPTY_DICT", op_empty, TAPE_VALUE_DICT },
  ['l'] = { "LIST", op_collect_mark, 0 },
  ['t'] = { "TUPLE", op_collect_mark, 0 },
  ['d'] = { "DICT", op_dict_mark, 0 },
  [0x85] = { "TUPLE1", op_tuple, 1 },
  [0x86] = { "TUPLE2", op_tuple, 2 },
  [0x87] = { "TUPLE3", op_tuple, 3 },
  ['a'] = { "APPEND", op_append, 0 },
  ['e'] = { "APPENDS", op_appends, 0 },
  ['s'] = { "SETITEM", op_set_item, 0 },
  ['u'] = { "SETITEMS", op_set_items, 0 },
  ['h'] = { "BINGET", op_get, 1 },
  ['j'] = { "LONG_BINGET", op_get, 4 },
  ['q'] = { "BINPUT", op_put, 1 },
  ['r'] = { "LONG_BINPUT", op_put, 4 },
  [0x94] = { "MEMOIZE", op_memoize, 0 },
  /* Code, objects, and what a snapshot has no use for. */
  ['c'] = { "GLOBAL", NULL, 0 },
  [0x93] = { "STACK_GLOBAL", NULL, 0 },
  ['R'] = { "REDUCE", NULL, 0 },
  ['b'] = { "BUILD", NULL, 0 },
  ['i'] = { "INST", NULL, 0 },
  ['o'] = { "OBJ", NULL, 0 },
  [0x81] = { "NEWOBJ", NULL, 0 },
  [0x92] = { "NEWOBJ_EX", NULL, 0 },
  [0x82] = { "EXT1", NULL, 0 },
  [0x83] = { "EXT2", NULL, 0 },
  [0x84] = { "EXT4", NULL, 0 },
  ['P'] = { "PERSID", NULL, 0 },
  ['Q'] = { "BINPERSID", NULL, 0 },
  [0x8f] = { "EMPTY_SET", NULL, 0 },
  [0x90] = { "ADDITEMS", NULL, 0 },
  [0x91] = { "FROZENSET", NULL, 0 },
  ['B'] = { "BINBYTES", NULL, 0 },
  ['C'] = { "SHORT_BINBYTES", NULL, 0 },
  [0x8e] = { "BINBYTES8", NULL, 0 },
  [0x96] = { "BYTEARRAY8", NULL, 0 },
  [0x97] = { "NEXT_BUFFER", NULL, 0 },
  [0x98] = { "READONLY_BUFFER", NULL, 0 },
  ['I'] = { "INT", NULL, 0 },
  ['L'] = { "LONG", NULL, 0 },
  ['F'] = { "FLOAT", NULL, 0 },
  ['S'] = { "STRING", NULL, 0 },
  ['V'] = { "UNICODE", NULL, 0 },
  ['g'] = { "GET", NULL, 0 },
  ['p'] = { "PUT", NULL, 0 },
};

static bool
step (Machine *m)
{
  uint8_t code;

  m->opcode = here (m);
  if (!get_bytes (m, &code, 1))
    return false;
  if (opcodes[code].run != NULL)
    return (m->opcode > 0 || code == 0x80 || fail (m, "not a pickle of protocol 2 to 5"))
           && opcodes[code].run (m, opcodes[code].argument);
  if (m->opcode == 0)
    return fail (m, "not a pickle of protocol 2 to 5");
  if (opcodes[code].name != NULL)
    return fail (m, "%s is refused: only dictionaries, lists, texts and numbers are read",
                 opcodes[code].name);
  return fail (m, "0x%02x is no opcode", code);
}

TapePickle *
td__tape_pickle_read (int fd, const TdTapeImportOptions *watch, const TapeEntries *entries,
                      char *error, size_t n)
{
  struct stat file = { .st_size = 0 };
  Machine *m = calloc (1, sizeof *m);
  TapePickle *p = calloc (1, sizeof *p);
  bool stopped = false;

  if (m == NULL || p == NULL)
    snprintf (error, n, "no memory");
  else
    {
      (void)!fstat (fd, &file);
      *m = (Machine){ .p = p,
                      .fd = fd,
                      .size = (uint64_t)file.st_size,
                      .watch = watch,
                      .entries = entries,
                      .error = error,
                      .n_error = n };
      p->budget = BUDGET_START;
      if (entries != NULL)
        m->traces_key = td__tape_value_make_text (p, "device_traces", strlen ("device_traces"));
      if (entries != NULL && (m->traces_key == 0 || !entries->begin (entries->user, p)))
        fail_memory (m);
      while (!m->failed && !m->stopped && step (m))
        ;
      stopped = m->stopped;
      free (m->stack);
      free (m->memo);
      free (m->text);
    }
  free (m);
  if (!stopped)
    {
      td__tape_pickle_free (p);
      p = NULL;
    }
  return p;
}
