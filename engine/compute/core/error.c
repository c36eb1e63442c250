/* The first error: kept until cleared, one line, with what was expected and where.
 *
 * SPDX-License-Identifier: MIT */
#include "core.h"
#include "operand-text.h"
#include "replayed.h"
#include "utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const status_names[]
    = { "ok", "shape", "dtype", "device", "memory", "numeric", "state", "io", "argument" };

const char *
td_status_name (TdStatus status)
{
  int i = -(int)status;

  return i >= 0 && i < TD_ARRAY_LENGTH (status_names) ? status_names[i] : "?";
}

/** Where a debugger can stop on any error of the engine. */
void td_error_break (const TdError *error);

__attribute__ ((noinline)) void
td_error_break (const TdError *error)
{
  __asm__ volatile("" : : "r"(error) : "memory");
}

const TdError *
td_error (void)
{
  if (td__stranger ("td_error"))
    return NULL;
  td__engine.error_asked = true;
  return td__engine.has_error ? &td__engine.error : NULL;
}

void
td_error_clear (void)
{
  if (td__stranger ("td_error_clear"))
    return;
  td__engine.has_error = false;
}

/* " (mlp/l1, mlp.c:12)", as much of it as is known. */
static void
append_place (char *text, size_t size, const TdSite *site)
{
  const TdPath *path = td__engine.path;
  size_t used = strlen (text);

  if (path != NULL && site != NULL)
    snprintf (text + used, size - used, " (%.120s, %.120s:%d)", path->text, site->file,
              site->line);
  else if (site != NULL)
    snprintf (text + used, size - used, " (%.120s:%d)", site->file, site->line);
  else if (path != NULL)
    snprintf (text + used, size - used, " (%.120s)", path->text);
}

/* A message is one line, and what it quotes, names of files and links, commands no terminal:
 * control characters become spaces.  Bytes that are no UTF-8 and that an older terminal obeys
 * become question marks. */
static void
make_plain (char *text)
{
  size_t n = strlen (text), length;

  for (size_t i = 0; i<n; i += length> 0 ? length : 1)
    {
      length = td__utf8_length (text + i, n - i);
      if (length > 0 && td__utf8_is_control (text + i, length))
        memset (text + i, ' ', length);
      else if (length == 0 && ((unsigned char)text[i] & 0xe0) == 0x80)
        text[i] = '?';
    }
}

static TdStatus
record_error (TdStatus status, const char *op, const TdSite *site, const char *text)
{
  TdEngine *e = &td__engine;
  TdError error = { .status = status, .op = op, .site = site != NULL ? site : e->site };
  int n = snprintf (error.message, sizeof error.message - 300, "%s: %s", op, text);
  size_t used = n < 0 ? 0 : (size_t)n;

  if (used > sizeof error.message - 301)
    used = sizeof error.message - 301;
  error.message[used] = '\0';
  if (TD_UNLIKELY (e->started && !td__on_engine_thread ()))
    {
      make_plain (error.message);
      td__say_stranger (error.message);
      return status;
    }
  append_place (error.message, sizeof error.message, error.site);
  make_plain (error.message);
  td_error_break (&error);
  if (!e->has_error)
    {
      e->error = error;
      e->has_error = true;
      e->error_asked = false;
    }
  if (e->observer != NULL && e->fault != NULL && e->observer->fault != NULL)
    e->observer->fault (e->observer, &error, e->fault);
  else if (e->observer != NULL)
    e->observer->error (e->observer, &error);
  return status;
}

TdStatus (td__fail) (TdStatus status, const char *op, const TdSite *site, const char *format,
                     ...)
{
  char text[768];
  va_list args;

  va_start (args, format);
  vsnprintf (text, sizeof text, format, args);
  va_end (args);
  return record_error (status, op, site, text);
}

bool
td__list_there (const void *list, int64_t n, const char *call, const TdSite *site)
{
  if (TD_LIKELY (n <= 0 || list != NULL))
    return true;
  td__fail (TD_ERR_ARG, call, site, "a list of %lld expected, got NULL", (long long)n);
  return false;
}

bool
td__list_whole (const void *list, int64_t n, const char *call, const TdSite *site)
{
  if (TD_LIKELY (n >= 0))
    return td__list_there (list, n, call, site);
  td__fail (TD_ERR_ARG, call, site, "a list of 0 or more expected, got %lld", (long long)n);
  return false;
}

/* What the program calls the array whose shape this is (td_name), or NULL.  A kernel's tensor
 * knows no more of its variable, and not every shape is a node's. */
static const char *
name_of (const TdShape *shape)
{
  const TdSlab *slab = &td__engine.nodes;
  const uintptr_t at = (uintptr_t)shape - offsetof (TdNode, shape);

  for (size_t c = 0; c < slab->n_chunks; c++)
    {
      const uintptr_t from = (uintptr_t)slab->chunks[c];

      if (at >= from && at < from + TD_SLAB_ITEMS * slab->item_bytes
          && (at - from) % slab->item_bytes == 0)
        return ((const TdNode *)at)->name;
    }
  return NULL;
}

void
td__operand_text (const char *operand, const char *name, char *text, size_t size)
{
  if (name == NULL || strcmp (name, operand) == 0)
    snprintf (text, size, "%s", operand);
  else
    snprintf (text, size, "%s = %.60s", operand, name);
}

static void
append_operands (const TdOpCall *call, char *text, size_t size)
{
  for (int i = 0; i < call->n_in && i < 6; i++)
    {
      size_t used = strlen (text);
      char shape[160], number[16], text_of[100];
      const char *name = number;

      snprintf (number, sizeof number, "input %d", i);
      if (call->cls->in_names != NULL && call->cls->n_in_max >= 0 && i < call->cls->n_in_max)
        name = call->cls->in_names[i];
      td__operand_text (name, name_of (call->in[i].shape), text_of, sizeof text_of);
      snprintf (text + used, size - used, "%s%s %s %s", i == 0 ? ": " : ", ", text_of,
                td_shape_text (call->in[i].shape, shape, sizeof shape),
                td_dtype_name (call->in[i].dtype));
    }
}

TdReplayedPlace *td__replayed_place;

/* The call's site and path are the engine's current ones: apply sets them.  A schedule does
 * not: it is asked. */
TdStatus
td__fail_call (const TdOpCall *call, TdStatus status, bool operands, const char *format,
               va_list args)
{
  TdEngine *e = &td__engine;
  const TdPath *outer_path = e->path;
  const TdSite *site = e->call_site;
  char text[768];

  if (call == NULL)
    return record_error (status, "td_op_fail", NULL, "a call expected, got NULL");
  vsnprintf (text, sizeof text, format, args);
  if (operands)
    append_operands (call, text, sizeof text);
  if (td__replayed_place != NULL)
    td__replayed_place (call, &site, &e->path);
  status = record_error (status, call->cls->name, site, text);
  e->path = outer_path;
  return status;
}

TdStatus
td_op_fail (const TdOpCall *call, TdStatus status, const char *format, ...)
{
  va_list args;

  va_start (args, format);
  td__fail_call (call, status, false, format, args);
  va_end (args);
  return status;
}

TdStatus
td_op_fail_operands (const TdOpCall *call, TdStatus status, const char *format, ...)
{
  va_list args;

  va_start (args, format);
  td__fail_call (call, status, true, format, args);
  va_end (args);
  return status;
}

static TdVar poison = { .state = TD_VAR_POISON, .refs = 1, .scope_index = -1 };

TdVar *
td__poison (void)
{
  return &poison;
}

bool
td_poisoned (const TdVar *v)
{
  return td__stranger ("td_poisoned") || v == NULL || v->state != TD_VAR_LIVE;
}
