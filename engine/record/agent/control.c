/* Control of a program of any kind: see control.h and PROTOCOL.md.
 *
 * SPDX-License-Identifier: MIT */
#include "control.h"
#include "../ring.h"
#include "bytes-text.h"
#include "host-memory.h"
#include "json-line.h"
#include "td-tape.h"
#include "whereabouts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum
{
  MESSAGE_MAX = 4096,
  INTERRUPT_MS = 100,
  LOOK_MS = 10,
  /* of texts in messages, escaped: all that is told of a stop fits a line */
  MAX_BREAK = 600,
  MAX_REASON = 1100,
  MAX_WHERE = 500,
  MAX_OP = 200
};

/* Supervisor and program may be of different versions. */
_Static_assert(sizeof (TdControlPage) == 648, "TdControlPage changed size");
_Static_assert(sizeof (TdRingShared) <= TD_CONTROL_OFFSET, "the ring's head outgrew its part");
_Static_assert(TD_CONTROL_OFFSET + sizeof (TdControlPage) <= TD_RING_DATA,
               "control outgrew the ring's first page");

#define LENGTH(a) (int)(sizeof (a) / sizeof ((a)[0]))

/* ---------------------------------------------------------------------------- answers */

/* strtoull takes signs, and stops where it likes. */
static const char *
parse_whole (const char *text, uint64_t *number)
{
  char *end;

  while (*text == ' ')
    text++;
  if (*text < '0' || *text > '9')
    return NULL;
  errno = 0;
  *number = strtoull (text, &end, 10);
  return errno == 0 && (*end == '\0' || *end == ' ') ? end : NULL;
}

bool
td__control_parse_read (const char *text, uint64_t *id, uint64_t *most)
{
  *most = 0;
  text = parse_whole (text, id);
  if (text != NULL && text[strspn (text, " ")] != '\0')
    text = parse_whole (text, most);
  return text != NULL && text[strspn (text, " ")] == '\0';
}

void
td__control_send (int fd, const char *text, int memory)
{
  struct iovec part = { (void *)(uintptr_t)text, strlen (text) };
  union
  {
    struct cmsghdr head;
    char room[CMSG_SPACE (sizeof (int))];
  } control;
  struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

  if (memory >= 0)
    {
      struct cmsghdr *m;

      memset (&control, 0, sizeof control);
      message.msg_control = &control;
      message.msg_controllen = sizeof control.room;
      m = CMSG_FIRSTHDR (&message);
      m->cmsg_level = SOL_SOCKET;
      m->cmsg_type = SCM_RIGHTS;
      m->cmsg_len = CMSG_LEN (sizeof (int));
      memcpy (CMSG_DATA (m), &memory, sizeof memory);
    }
  (void)!sendmsg (fd, &message, MSG_NOSIGNAL);
}

int
td__control_memory (size_t n, void **bytes)
{
  int memory = memfd_create ("tapedeck array", MFD_CLOEXEC);

  *bytes = NULL;
  if (memory >= 0 && ftruncate (memory, (off_t)n) == 0 && n > 0)
    *bytes = mmap (NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  if (memory >= 0 && n > 0 && (*bytes == NULL || *bytes == MAP_FAILED))
    {
      close (memory);
      return -1;
    }
  return memory;
}

/* "#TAG {...}": an answer to the command that came with that tag. */
void
td__control_answer_ok (TdControl *c, const char *tag)
{
  TdJsonLine line;

  td__control_send (c->fd, td__json_line_ok (&line, tag), -1);
}

void
td__control_answer_number (TdControl *c, const char *tag, const char *key, int number)
{
  TdJsonLine line;
  TdJsonWriter *json = td__json_line_begin (&line, tag);

  td__json_member_bool (json, "ok", true);
  td__json_member_int (json, key, number);
  td__control_send (c->fd, td__json_line_end (&line), -1);
}

void
td__control_answer_error (TdControl *c, const char *tag, const char *error)
{
  TdJsonLine line;

  td__control_send (c->fd, td__json_line_error (&line, tag, error), -1);
}

size_t
td__control_part (uint64_t total, uint64_t most)
{
  return (size_t)(most > 0 && most < total ? most : total);
}

int
td__control_copy (const void *data, size_t n)
{
  void *to;
  const int memory = td__control_memory (n, &to);

  if (memory >= 0 && n > 0)
    {
      memcpy (to, data, n);
      munmap (to, n);
    }
  return memory;
}

void
td__control_answer_array (int fd, const char *tag, const TdControlArray *a, int memory)
{
  TdJsonLine line;
  TdJsonWriter *json = td__json_line_begin (&line, tag);

  td__json_member_bool (json, "ok", memory >= 0);
  if (a->op != NULL)
    td__json_member_string (json, "op", a->op);
  else
    td__json_member_uint (json, "id", a->id);
  td__json_member_string (json, "dtype", a->dtype);
  td__json_key (json, "shape");
  td__json_begin_array (json);
  for (uint32_t d = 0; d < a->ndim; d++)
    td__json_int (json, a->dims[d]);
  td__json_end_array (json);
  td__json_member_uint (json, "bytes", a->bytes);
  td__json_member_uint (json, "total", a->total);
  if (a->op == NULL)
    td__json_member_uint (json, "version", a->version);
  td__control_send (fd, td__json_line_end (&line), memory);
  if (memory >= 0)
    close (memory);
}

/* ------------------------------------------------------------------------ breakpoints */

void
td__control_look_again (TdControl *c)
{
  c->alert = c->step != TD_STEP_NONE || c->aims;
  c->needs_values = c->needs_after = c->on_error = c->exactly = c->apart = false;
  c->compares_graphs = c->asks_for_held = false;
  c->asked_at = 0;
  for (int i = 0; i < c->n_breaks; i++)
    {
      const TdBreak *b = c->breaks[i];

      if (!td__break_enabled (b))
        continue;
      c->needs_values = c->needs_values || td__break_needs_values (b);
      c->needs_after = c->needs_after || td__break_comes_after (b);
      c->alert = c->alert || td__break_looks_at_events (b);
      c->compares_graphs = c->compares_graphs || td__break_compares_graphs (b);
      c->asks_for_held = c->asks_for_held || td__break_asks_for_held (b);
      for (unsigned when = TD_BREAK_AT_EVENT; when <= TD_BREAK_AT_CUT; when++)
        c->asked_at |= td__break_asked_at (b, when) ? 1u << when : 0u;
      c->exactly = c->exactly || td__break_exactly (b);
      c->on_error = c->on_error || td__break_on_error (b);
      c->apart = c->apart || td__break_tells_ranks_apart (b);
    }
  c->kind->changed (c);
}

/* One that this program can stop at; NULL with one line. */
static TdBreak *
parse_break (const TdControl *c, const char *text, char *error, size_t size)
{
  TdBreak *b = td__break_parse (text, error, size);

  if (b == NULL || c->kind->refuses == NULL || !c->kind->refuses (b, error, size))
    return b;
  td__break_free (b);
  return NULL;
}

static int
add_break (TdControl *c, const char *text, char *error, size_t size)
{
  TdBreak *b = parse_break (c, text, error, size);

  if (b == NULL)
    return -1;
  c->breaks = td__xrealloc (c->breaks, (size_t)(c->n_breaks + 1) * sizeof (TdBreak *));
  td__break_set_id (b, c->next_break_id++);
  c->breaks[c->n_breaks++] = b;
  td__control_look_again (c);
  return td__break_id (b);
}

static int
find_break (const TdControl *c, int id)
{
  for (int i = 0; i < c->n_breaks; i++)
    if (td__break_id (c->breaks[i]) == id)
      return i;
  return -1;
}

static bool
remove_break (TdControl *c, int id)
{
  const int i = find_break (c, id);

  if (i < 0)
    return false;
  td__break_free (c->breaks[i]);
  memmove (&c->breaks[i], &c->breaks[i + 1], (size_t)(--c->n_breaks - i) * sizeof (TdBreak *));
  td__control_look_again (c);
  return true;
}

void
td__control_pause (TdControl *c, int64_t iteration)
{
  c->step = TD_STEP_ITERATION;
  c->step_iteration = iteration - 1;
  td__control_look_again (c);
}

static TdBreakMoment
moment_on (const TdControl *c, const TdBreakMoment *m)
{
  TdBreakMoment moment = *m;

  moment.rank = c->rank;
  return moment;
}

TdBreak *
td__control_holds (const TdControl *c, const TdBreakMoment *of, bool after)
{
  const TdBreakMoment moment = moment_on (c, of), *m = &moment;

  for (int i = 0; i < c->n_breaks; i++)
    if ((td__break_comes_after (c->breaks[i]) == after || m->when != TD_BREAK_AT_EVENT)
        && td__break_asked_at (c->breaks[i], m->when) && td__break_holds (c->breaks[i], m))
      return c->breaks[i];
  return NULL;
}

bool
td__control_may_hold (const TdControl *c, const TdBreakMoment *of)
{
  const TdBreakMoment moment = moment_on (c, of), *m = &moment;

  for (int i = 0; i < c->n_breaks; i++)
    if (td__break_needs_values (c->breaks[i]) && td__break_may_hold (c->breaks[i], m))
      return true;
  return false;
}

TdBreak *
td__control_fails (const TdControl *c, TdBreakMoment *m)
{
  TdBreak *b;

  m->failed = true;
  b = td__control_holds (c, m, false);
  return b != NULL ? b : td__control_holds (c, m, true); /* "error || nan" */
}

void
td__control_describe (const TdBreak *b, const TdBreakMoment *m, const char *who, char *what,
                      size_t size)
{
  char bytes[32];

  if (!td__break_needs_values (b))
    snprintf (what, size, "%.150s allocated %s", who,
              td__bytes_text (m->allocated_bytes, bytes));
  else if (m->n_nan > 0)
    snprintf (what, size, "%.150s made NaN (%lu of its numbers)", who, (unsigned long)m->n_nan);
  else if (m->n_inf > 0)
    snprintf (what, size, "%.150s made Inf (%lu of its numbers)", who, (unsigned long)m->n_inf);
  else
    snprintf (what, size, "%.150s made a norm of %g", who, m->norm);
}

void
td__control_describe_growth (const TdBreakMoment *m, char *what, size_t size)
{
  const bool less = m->grown_bytes < 0;
  const uint64_t bytes = (uint64_t)(less ? -m->grown_bytes : m->grown_bytes);
  char text[32];

  snprintf (what, size, "%s %s are alive after iteration %" PRId64 " than after the one before",
            td__bytes_text (bytes, text), less ? "less" : "more", m->iteration);
}

/* --------------------------------------------------------------------------- commands */

/* What changes breakpoints: returns a number that is no error, of `break` the new one's, or -1
 * with one line. */
static int
change_new (TdControl *c, const char *text, char *error, size_t size)
{
  return add_break (c, text, error, size);
}

static int
change_gone (TdControl *c, const char *text, char *error, size_t size)
{
  if (remove_break (c, (int)strtol (text, NULL, 10)))
    return 0;
  snprintf (error, size, "unbreak: no such breakpoint");
  return -1;
}

/* ID on, ID off, or ID EXPR: what it asks from now on. */
static int
change_other (TdControl *c, const char *text, char *error, size_t size)
{
  char *rest;
  const int i = find_break (c, (int)strtol (text, &rest, 10));
  TdBreak *b;

  while (*rest == ' ')
    rest++;
  if (i < 0)
    {
      snprintf (error, size, "rebreak: no such breakpoint");
      return -1;
    }
  if (strcmp (rest, "on") == 0 || strcmp (rest, "off") == 0)
    td__break_enable (c->breaks[i], rest[1] == 'n');
  else
    {
      b = parse_break (c, rest, error, size);
      if (b == NULL)
        return -1; /* the old one stays */
      td__break_take_over (b, c->breaks[i]);
      td__break_free (c->breaks[i]);
      c->breaks[i] = b;
    }
  td__control_look_again (c);
  return 0;
}

static const struct
{
  const char *word;
  int (*change) (TdControl *c, const char *text, char *error, size_t size);
  bool has_id;
} changes[] = {
  { "break ", change_new, true },
  { "unbreak ", change_gone, false },
  { "rebreak ", change_other, false },
};

static int
find_change (const char *text)
{
  for (int i = 0; i < LENGTH (changes); i++)
    if (strncmp (text, changes[i].word, strlen (changes[i].word)) == 0)
      return i;
  return -1;
}

bool
td__control_change (TdControl *c, const char *text, TdControlChange *done)
{
  const int i = find_change (text);

  done->number = 0;
  done->error[0] = '\0';
  if (i < 0)
    return false;
  done->has_id = changes[i].has_id;
  done->number
      = changes[i].change (c, text + strlen (changes[i].word), done->error, sizeof done->error);
  return true;
}

void
td__control_answer_change (TdControl *c, const char *tag, const TdControlChange *done)
{
  if (done->number < 0)
    td__control_answer_error (c, tag, done->error);
  else if (done->has_id)
    td__control_answer_number (c, tag, "id", done->number);
  else
    td__control_answer_ok (c, tag);
}

static void
command_breaks (TdControl *c, const char *tag, const char *text)
{
  TdJsonLine line;
  TdJsonWriter *json = td__json_line_begin (&line, tag);

  (void)text;
  td__json_member_bool (json, "ok", true);
  td__json_key (json, "breaks");
  td__json_begin_array (json);
  for (int i = 0; i < c->n_breaks && td__json_line_room (&line) > MAX_BREAK + 100; i++)
    {
      td__json_begin_object (json);
      td__json_member_int (json, "id", td__break_id (c->breaks[i]));
      td__json_key (json, "text");
      td__json_cut_string (json, td__break_text (c->breaks[i]), MAX_BREAK);
      td__json_member_bool (json, "enabled", td__break_enabled (c->breaks[i]));
      td__json_member_int (json, "hits", (int64_t)td__break_hits (c->breaks[i]));
      td__json_end_object (json);
    }
  td__json_end_array (json);
  td__control_send (c->fd, td__json_line_end (&line), -1);
}

/* Commands that only set how far the program runs. */
static const struct
{
  const char *text;
  TdStepKind step;
} motions[] = {
  { "pause", TD_STEP_OP },
  { "continue", TD_STEP_NONE },
  { "step-op", TD_STEP_OP },
  { "step-into", TD_STEP_OP },
  { "step-over", TD_STEP_OVER },
  { "step-out", TD_STEP_OUT },
  { "next-iteration", TD_STEP_ITERATION },
  { "run-to loss", TD_STEP_BACKWARD },
  { "run-to backward", TD_STEP_BACKWARD },
  { "run-to update", TD_STEP_UPDATE },
};

static const TdControlCommand commands[] = {
  { "breaks", command_breaks },
  { NULL, NULL },
};

static bool
run_named (TdControl *c, const TdControlCommand *of, const char *tag, const char *text)
{
  for (; of->word != NULL; of++)
    {
      const size_t n = strlen (of->word);

      if (strncmp (text, of->word, n) == 0)
        {
          of->run (c, tag, text + n);
          return true;
        }
    }
  return false;
}

static int
find_motion (const char *text)
{
  for (int i = 0; i < LENGTH (motions); i++)
    if (strcmp (text, motions[i].text) == 0)
      return i;
  return -1;
}

void
td__control_move (TdControl *c, const char *text, const TdControlPlace *place,
                  int64_t iteration)
{
  const int i = find_motion (text);

  c->step = i >= 0 ? motions[i].step : TD_STEP_NONE;
  c->step_iteration = iteration;
  c->step_path = place->path;
  c->step_phase = place->phase;
  td__control_look_again (c);
}

static TdControlOutcome
run_command (TdControl *c, const char *tag, const char *text)
{
  TdControlPlace place = { .path = "" };
  int64_t iteration = 0;
  TdControlChange done;

  if (c->kind->prepare != NULL)
    c->kind->prepare (c);
  if (find_motion (text) >= 0)
    {
      c->kind->now (c, &place, &iteration);
      td__control_move (c, text, &place, iteration);
      td__control_answer_ok (c, tag);
      return strcmp (text, "pause") == 0 ? TD_CONTROL_STAY : TD_CONTROL_GO;
    }
  if (td__control_change (c, text, &done))
    td__control_answer_change (c, tag, &done);
  else if (!run_named (c, commands, tag, text) && !run_named (c, c->kind->commands, tag, text))
    td__control_answer_error (c, tag, "no such command");
  return TD_CONTROL_STAY;
}

/* Read one message; `flags` as of recv. */
static TdControlOutcome
take_message (TdControl *c, int flags, bool *any)
{
  char text[MESSAGE_MAX];
  const ssize_t n = recv (c->fd, text, sizeof text - 1, flags);
  char *space;

  *any = false;
  if (n < 0 && errno == EINTR)
    return TD_CONTROL_INTERRUPTED;
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
    return TD_CONTROL_STAY;
  if (n <= 0)
    return TD_CONTROL_GONE;
  *any = true;
  text[n] = '\0';
  space = strchr (text, ' ');
  if (text[0] != '#' || space == NULL)
    return TD_CONTROL_STAY;
  *space = '\0';
  return run_command (c, text, space + 1);
}

/* The supervisor is gone: run on, without control. */
static void
lose (TdControl *c)
{
  while (c->n_breaks > 0)
    remove_break (c, td__break_id (c->breaks[0]));
  c->step = TD_STEP_NONE;
  td__control_look_again (c);
}

void
td__control_take (TdControl *c)
{
  TdControlOutcome outcome = TD_CONTROL_STAY;
  bool any = true;

  if ((atomic_fetch_and (&c->page->attention, ~(uint32_t)TD_ATTENTION_COMMANDS)
       & TD_ATTENTION_COMMANDS)
      == 0)
    return;
  while ((any || outcome == TD_CONTROL_INTERRUPTED) && outcome != TD_CONTROL_GONE)
    outcome = take_message (c, MSG_DONTWAIT, &any);
  if (outcome == TD_CONTROL_GONE)
    lose (c);
}

/* ------------------------------------------------------------------------------ stops */

void
td__control_stops (TdControl *c, const TdControlStop *stop)
{
  const TdControlPlace *place = stop->place;
  TdJsonLine line;
  TdJsonWriter *json = td__json_line_begin (&line, "!");
  char where[400];

  c->step = TD_STEP_NONE;
  td__control_look_again (c);
  atomic_store (&c->page->stopped, 1);
  snprintf (where, sizeof where, "%.300s:%d", place->file != NULL ? place->file : "?",
            place->file != NULL ? place->line : 0);
  td__json_member_string (json, "event", "stopped");
  td__json_key (json, "reason");
  td__json_cut_string (json, stop->reason, MAX_REASON);
  td__json_key (json, "where");
  td__json_cut_string (json, where, MAX_WHERE);
  td__json_key (json, "op");
  td__json_cut_string (json, place->op, MAX_OP);
  td__json_member_int (json, "iteration", stop->iteration);
  td__json_member_uint (json, "at", stop->at);
  td__json_member_int (json, "break", stop->by != NULL ? td__break_id (stop->by) : 0);
  if (stop->rank != NULL)
    {
      snprintf (where, sizeof where, "rank %d", *stop->rank);
      td__json_member_string (json, "for", where);
    }
  if (stop->failed != NULL)
    {
      td__json_key (json, "failed");
      td__json_begin_object (json);
      td__json_member_uint (json, "iteration", stop->failed[0]);
      td__json_member_uint (json, "event", stop->failed[1]);
      td__json_end_object (json);
    }
  /* What was printed is seen while the program stands, and not lost if it ends here. */
  fflush (stdout);
  td__control_send (c->fd, td__json_line_end (&line), -1);
}

/* A signal that comes just before interrupts nothing: whoever has handlers to run is asked to
 * look from time to time. */
static TdControlOutcome
take_or_interrupt (TdControl *c, int ms)
{
  struct pollfd come = { c->fd, POLLIN, 0 };
  bool any;

  return poll (&come, 1, ms) > 0 ? take_message (c, MSG_DONTWAIT, &any)
                                 : TD_CONTROL_INTERRUPTED;
}

/* What is for all ranks comes by memory that they share, in which nobody can wait. */
static TdControlOutcome
take_or_look (TdControl *c)
{
  const TdControlOutcome outcome = take_or_interrupt (c, LOOK_MS);

  return outcome == TD_CONTROL_STAY || outcome == TD_CONTROL_INTERRUPTED ? c->kind->look (c)
                                                                         : outcome;
}

TdControlOutcome
td__control_wait (TdControl *c, bool may_interrupt)
{
  TdControlOutcome outcome = TD_CONTROL_STAY;
  bool any;

  while (outcome == TD_CONTROL_STAY || (outcome == TD_CONTROL_INTERRUPTED && !may_interrupt))
    if (c->kind->look != NULL)
      outcome = take_or_look (c);
    else
      outcome = may_interrupt ? take_or_interrupt (c, INTERRUPT_MS) : take_message (c, 0, &any);
  if (outcome == TD_CONTROL_GONE)
    lose (c);
  return outcome;
}

void
td__control_resumes (TdControl *c)
{
  TdJsonLine line;

  atomic_store (&c->page->stopped, 0);
  td__json_member_string (td__json_line_begin (&line, "!"), "event", "resumed");
  td__control_send (c->fd, td__json_line_end (&line), -1);
}

/* Is `path` the layer `layer`, or inside it?  "" is the outermost layer: everything is inside.
 */
static bool
within (const char *path, const char *layer, size_t n)
{
  return strncmp (path, layer, n) == 0 && (n == 0 || path[n] == '\0' || path[n] == '/');
}

bool
td__control_step_ends (const TdControl *c, const TdControlPlace *e, int64_t iteration)
{
  const char *layer = c->step_path != NULL ? c->step_path : "";
  const char *slash = strrchr (layer, '/');
  const size_t n = strlen (layer);

  switch (c->step)
    {
    case TD_STEP_OP:
      return true;
    case TD_STEP_OVER: /* in no layer there is nothing to step over: the next event */
      return n == 0 || !within (e->path, layer, n) || e->phase != c->step_phase;
    case TD_STEP_OUT:
      return !within (e->path, layer, slash != NULL ? (size_t)(slash - layer) : n)
             || (slash == NULL && n == 0) || e->phase != c->step_phase;
    case TD_STEP_ITERATION:
      return iteration > c->step_iteration;
    case TD_STEP_BACKWARD:
    case TD_STEP_UPDATE: /* from inside the phase: that of the next iteration */
      return e->phase
                 == (c->step == TD_STEP_UPDATE ? TD_TAPE_PHASE_UPDATE : TD_TAPE_PHASE_BACKWARD)
             && (c->step_phase < e->phase || iteration > c->step_iteration);
    case TD_STEP_NONE:
    default:
      return false;
    }
}

/* ------------------------------------------------------------------- beginning and end */

int
td__control_take_fd (const char *name)
{
  const char *text = getenv (name);
  char *end;
  long fd = text != NULL && *text != '\0' ? strtol (text, &end, 10) : -1;

  if (fd < 0 || fd > INT_MAX || *end != '\0' || fcntl ((int)fd, F_GETFD) < 0)
    fd = -1;
  unsetenv (name);
  return (int)fd;
}

void
td__control_begin (TdControl *c, const TdControlKind *kind, TdControlPage *page, int fd,
                   const char *breaks)
{
  char error[256], line[MESSAGE_MAX];
  int n_ranks;

  c->kind = kind;
  c->page = page;
  c->fd = fd;
  if (!td__where_rank (&c->rank, &n_ranks))
    c->rank = 0;
  fcntl (fd, F_SETFD, FD_CLOEXEC);
  c->next_break_id = 1;
  while (breaks != NULL && *breaks != '\0')
    {
      const size_t n = strcspn (breaks, "\n");

      snprintf (line, sizeof line, "%.*s", (int)n, breaks);
      if (n > 0 && add_break (c, line, error, sizeof error) < 0)
        fprintf (stderr, "tapedeck: %s\n", error);
      breaks += n + (breaks[n] == '\n');
    }
  td__control_look_again (c);
}

void
td__control_end (TdControl *c)
{
  for (int i = 0; i < c->n_breaks; i++)
    td__break_free (c->breaks[i]);
  free (c->breaks);
  close (c->fd);
}
