/* What the code of a static function does besides operations, as a verified call shows it:
 * bytes on the standard output, and bytes set in memory that the program registered.
 *
 * SPDX-License-Identifier: MIT */
#include "notify.h"
#include "host-memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the standard output --- */

#ifdef __GLIBC__
static FILE *real;
static uint64_t n_written;

static ssize_t
count_bytes (void *cookie, const char *bytes, size_t n)
{
  (void)cookie;
  n_written += n;
  return (ssize_t)fwrite (bytes, 1, n, real);
}

/* Only what goes through stdio is seen; where no such stream can be made, nothing is. */
void
td__stdout_count (bool begin, uint64_t *bytes)
{
  static FILE *counting;

  if (begin && counting == NULL)
    {
      counting = fopencookie (NULL, "w", (cookie_io_functions_t){ .write = count_bytes });
      if (counting == NULL)
        return;
      setvbuf (counting, NULL, _IONBF, 0);
      real = stdout;
      n_written = 0;
      stdout = counting;
      return;
    }
  if (begin || counting == NULL)
    return;
  if (stdout == counting)
    stdout = real;
  fclose (counting);
  counting = NULL;
  *bytes = n_written;
}
#else
void
td__stdout_count (bool begin, uint64_t *bytes)
{
  (void)begin;
  (void)bytes;
}
#endif

/* --- memory --- */

static void
run_effect (TdTracer *tracer, void (*fn) (void *user), void *user)
{
  TdTrace *t = (TdTrace *)(void *)tracer;

  if (t != NULL)
    t->in_effect = true;
  fn (user);
  if (t != NULL)
    t->in_effect = false;
}

/* What an effect sets a replay sets too: that proves nothing. */
void
td__trace_effect (TdTracer *tracer, void (*fn) (void *user), void *user)
{
  TdGuards *g = tracer != NULL ? ((TdTrace *)(void *)tracer)->guards : NULL;

  if (g != NULL)
    td__guards_note_changes (g, false);
  run_effect (tracer, fn, user);
  if (g != NULL)
    td__guards_note_changes (g, true);
}

static size_t
set_by_code (const TdWatch *w)
{
  size_t n = 0;

  for (size_t b = 0; b < w->bytes; b++)
    n += w->by_code != NULL && w->by_code[b];
  return n;
}

/* --- reports --- */

static bool
was_told (TdStatic *s, const char *name)
{
  for (uint32_t k = 0; k < s->n_proved; k++)
    if (strcmp (s->proved[k], name) == 0)
      return true;
  s->proved = td__xrealloc (s->proved, (s->n_proved + 1) * sizeof *s->proved);
  s->proved[s->n_proved++] = name;
  return false;
}

static void
notify (TdStatic *s, const char *name, const TdSite *site, const char *did, uint64_t bytes)
{
  TdMiss proof = { .guard = name, .site = site };

  if (bytes == 0 || was_told (s, name))
    return;
  snprintf (proof.text, sizeof proof.text, "%llu %s %s by the code", (unsigned long long)bytes,
            bytes == 1 ? "byte" : "bytes", did);
  td__static_notify (s, TD_STATIC_EVENT_PROVED, NULL, &proof, NULL);
}

void
td__static_notify_side_effects (TdStatic *s, const TdGuards *guards, uint64_t stdout_bytes)
{
  if (td__engine.observer == NULL)
    return;
  notify (s, "stdout", NULL, "written", stdout_bytes);
  for (uint32_t k = 0; guards != NULL && k < guards->n_watches && k < s->n_watches; k++)
    notify (s, guards->watches[k].name, guards->watches[k].site, "set",
            set_by_code (&guards->watches[k]));
}
