/* Streams of the fake driver: lists of commands that run when somebody waits, in any order that
 * events allow.
 *
 * Who comes before whom is kept by vector clocks: one for each stream, one for the host; an
 * event carries its stream's.  A command that uses bytes which another stream's used before,
 * one of them writing, must have that one's time in its clock.
 *
 * SPDX-License-Identifier: MIT */
#include "fake-internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum
{
  MAX_STREAMS = FAKE_STREAMS,
  MAX_PENDING = 400,
  MAX_USES = 1024, /* updates of 128 parameters, of five arrays each */
  MAX_EVENTS = 8192,
  MAX_ACCESSES = 20000
};

/* A use of memory that later ones are compared with. */
typedef struct
{
  CUdeviceptr address, end;
  uint64_t time;
  int stream;
  bool writes;
} Access;

typedef FakeClock Clock;

static struct
{
  struct CUstream_st streams[MAX_STREAMS];
  bool used[MAX_STREAMS];
  Clock host;
  Access accesses[MAX_ACCESSES];
  int n_accesses, forget_at;
  FakeUse uses[MAX_USES], saved[MAX_USES];
  int n_uses, n_saved;
  struct FakeEvent *events[MAX_EVENTS];
  uint32_t dice;
  bool draining;
  bool others; /* some stream waits for another process, since the last command ran */
} now;

static void
merge (Clock *into, const Clock *other)
{
  for (int i = 0; i < MAX_STREAMS; i++)
    if (other->at[i] > into->at[i])
      into->at[i] = other->at[i];
}

/* --- commands --- */

FakeCommand *
fake_command (const char *name, void (*run) (FakeCommand *command))
{
  FakeCommand *c = calloc (1, sizeof *c);

  if (c == NULL)
    abort ();
  c->name = name;
  c->run = run;
  c->refs = 1;
  c->traced = fake_cupti_id ();
  return c;
}

void
fake_command_unref (FakeCommand *c)
{
  if (--c->refs > 0)
    return;
  if (c->free != NULL)
    c->free (c);
  free (c->uses);
  free (c);
}

void
fake_command_use (FakeCommand *c, CUdeviceptr address, size_t bytes, bool writes)
{
  FakeUse *uses;

  if (bytes == 0)
    return;
  uses = realloc (c->uses, (size_t)(c->n_uses + 1) * sizeof *uses);
  if (uses == NULL)
    abort ();
  c->uses = uses;
  c->uses[c->n_uses++] = (FakeUse){ address, bytes, writes };
}

void
fake_note_use (CUstream stream, CUdeviceptr address, size_t bytes, bool writes)
{
  if (now.n_uses == MAX_USES)
    abort ();
  now.uses[now.n_uses++] = (FakeUse){ address, bytes, writes };
}

void
fake_uses_save (void)
{
  memcpy (now.saved, now.uses, (size_t)now.n_uses * sizeof *now.uses);
  now.n_saved = now.n_uses;
  now.n_uses = 0;
}

void
fake_uses_restore (void)
{
  memcpy (now.uses, now.saved, (size_t)now.n_saved * sizeof *now.uses);
  now.n_uses = now.n_saved;
}

void
fake_command_take_uses (FakeCommand *c)
{
  for (int i = 0; i < now.n_uses; i++)
    fake_command_use (c, now.uses[i].address, now.uses[i].bytes, now.uses[i].writes);
  now.n_uses = 0;
}

/* What every command that is still to come follows anyway. */
static void
forget_old_accesses (void)
{
  int kept = 0;

  for (int i = 0; i < now.n_accesses; i++)
    if (now.accesses[i].time > now.host.at[now.accesses[i].stream])
      now.accesses[kept++] = now.accesses[i];
  now.n_accesses = kept;
}

static void
check_use (CUstream s, const FakeCommand *c, const FakeUse *use)
{
  CUdeviceptr end = use->address + use->bytes;
  int kept = 0;

  if (!fake_is_mapped (use->address, use->bytes))
    fake_violation ("%s uses %zu bytes that are not all there", c->name, use->bytes);
  for (int i = 0; i < now.n_accesses; i++)
    {
      const Access *a = &now.accesses[i];
      bool overlap = a->address < end && a->end > use->address;

      if (overlap && a->stream != s->number && (a->writes || use->writes)
          && s->clock.at[a->stream] < a->time)
        fake_violation ("%s uses what another stream %s, and no event is between them", c->name,
                        a->writes ? "writes" : "reads");
      /* A newer use by the same stream that covers an older makes that one needless. */
      if (!(overlap && a->stream == s->number && a->address >= use->address && a->end <= end
            && (use->writes || !a->writes)))
        now.accesses[kept++] = *a;
    }
  now.n_accesses = kept;
  if (now.n_accesses >= now.forget_at)
    {
      forget_old_accesses ();
      now.forget_at
          = 2 * now.n_accesses + 256 < MAX_ACCESSES ? 2 * now.n_accesses + 256 : MAX_ACCESSES;
    }
  if (now.n_accesses < MAX_ACCESSES)
    now.accesses[now.n_accesses++]
        = (Access){ use->address, end, s->clock.at[s->number], s->number, use->writes };
}

static void
issue (CUstream s, FakeCommand *c)
{
  merge (&s->clock, &now.host);
  s->clock.at[s->number]++;
  if (c->waits != NULL)
    merge (&s->clock, &c->waits->clock);
  for (int i = 0; i < c->n_uses; i++)
    check_use (s, c, &c->uses[i]);
  if (c->records != NULL)
    c->records->clock = s->clock;
}

static void drain_as (bool patient, CUstream wanted, const struct FakeEvent *event,
                      uint64_t version);

static void
append (FakeCommand **first, FakeCommand **last, FakeCommand *c)
{
  c->next = NULL;
  if (*first == NULL)
    *first = c;
  else
    (*last)->next = c;
  *last = c;
}

CUresult
fake_enqueue (CUstream s, FakeCommand *c)
{
  if (s == NULL)
    {
      fake_violation ("%s on the default stream", c->name);
      fake_command_unref (c);
      return CUDA_ERROR_INVALID_HANDLE;
    }
  if (s->captured != NULL)
    return fake_graph_add (s, c);
  issue (s, c);
  append (&s->first, &s->last, c);
  if (++fake.n_pending >= MAX_PENDING)
    drain_as (false, NULL, NULL, 0);
  return CUDA_SUCCESS;
}

/* --- running --- */

void
fake_run_now (FakeCommand *c)
{
  for (int i = 0; i < c->n_uses; i++)
    if (!fake_is_mapped (c->uses[i].address, c->uses[i].bytes))
      {
        fake_violation ("%s ran after its memory was given back", c->name);
        return;
      }
  if (c->run != NULL)
    c->run (c);
  fake_cupti_ran (c->traced, c->run != NULL);
  if (c->records != NULL && c->version > c->records->reached)
    c->records->reached = c->version;
}

static bool
writes_to (const FakeCommand *writer, const FakeCommand *reader)
{
  for (int i = 0; i < writer->n_uses; i++)
    for (int k = 0; k < reader->n_uses; k++)
      if (writer->uses[i].writes
          && writer->uses[i].address < reader->uses[k].address + reader->uses[k].bytes
          && writer->uses[i].address + writer->uses[i].bytes > reader->uses[k].address)
        return true;
  return false;
}

/* The first command waits for another process.  What is given to others behind it goes already
 * where nothing before it makes it: their hosts may wait for this one's, and on a device that
 * runs by itself it would be there in time.  Was something done? */
static bool
give_early (CUstream s)
{
  for (FakeCommand *c = s->first; c != NULL; c = c->next)
    {
      const bool gives = c->early && c->run != NULL;

      if ((c->waits != NULL && c->waits->reached < c->version)
          || (c->run != NULL && !c->early && c->ready == NULL))
        return false;
      for (const FakeCommand *before = s->first; gives && before != c; before = before->next)
        if (before->run != NULL && writes_to (before, c))
          return false;
      if (!gives)
        continue;
      fake_run_now (c);
      c->run = NULL;
      return true;
    }
  return false;
}

/* Run the first command of s, if it can be; that is whether something was done. */
static bool
step (CUstream s)
{
  FakeCommand *c = s->first;

  if (c == NULL || (c->waits != NULL && c->waits->reached < c->version))
    return false;
  if (c->ready != NULL && !c->ready (c))
    {
      now.others = true;
      return give_early (s);
    }
  s->first = c->next;
  if (s->first == NULL)
    s->last = NULL;
  fake_run_now (c);
  fake_command_unref (c);
  fake.n_pending--;
  return true;
}

/* Throw for the stream that is next, until this one (or this event, or all) is done; patient:
 * though another process has to come first. */
static void
drain_as (bool patient, CUstream wanted, const struct FakeEvent *event, uint64_t version)
{
  bool others = false; /* have to come first */
  int idle = 0;

  if (now.draining)
    return;
  now.draining = true;
  now.others = false;
  fake_memory_open ();
  while (idle < 64 * MAX_STREAMS)
    {
      CUstream s;

      if ((wanted != NULL && wanted->first == NULL)
          || (event != NULL && event->reached >= version) || fake.n_pending == 0)
        break;
      now.dice = now.dice * 1664525u + 1013904223u;
      s = &now.streams[(now.dice >> 16) % MAX_STREAMS];
      idle = now.used[s->number] && step (s) ? 0 : idle + 1;
      now.others &= idle > 0;
      if (idle < 64 * MAX_STREAMS || !now.others)
        continue;
      others = !patient;
      if (others)
        break;
      usleep (100);
      now.others = false;
      idle = 0;
    }
  if (idle == 64 * MAX_STREAMS && !others)
    fake_violation ("streams wait for each other");
  fake_memory_close ();
  now.draining = false;
}

static void
drain (CUstream wanted, const struct FakeEvent *event, uint64_t version)
{
  drain_as (true, wanted, event, version);
}

void
fake_drain_to (const FakeEvent *event)
{
  drain (NULL, event, event->recorded);
}

void
fake_drain_all (void)
{
  drain (NULL, NULL, 0);
}

static bool
overlaps (const FakeCommand *c, CUdeviceptr address, size_t bytes)
{
  for (int i = 0; i < c->n_uses; i++)
    if (c->uses[i].address < address + bytes && c->uses[i].address + c->uses[i].bytes > address)
      return true;
  return false;
}

bool
fake_is_in_use (CUdeviceptr address, size_t bytes)
{
  for (int i = 0; i < MAX_STREAMS; i++)
    for (const FakeCommand *c = now.streams[i].first; c != NULL; c = c->next)
      if (overlaps (c, address, bytes))
        return true;
  return false;
}

CUstream
fake_stream (int i)
{
  return i < MAX_STREAMS ? &now.streams[i] : NULL;
}

void
fake_streams_reset (void)
{
  fake_drain_all ();
  fake_graphs_reset ();
  for (int i = 0; i < MAX_EVENTS; i++)
    free (now.events[i]);
  memset (&now, 0, sizeof now);
}

/* The host may wait, which is counted; for what is captured, or is a part of it, it cannot. */
static CUresult
wait_begins (const char *function, bool captured)
{
  CUresult result = fake_enter (function);

  if (result == CUDA_SUCCESS && fake_forbids (function))
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (result == CUDA_SUCCESS && captured)
    {
      fake_violation ("%s while a stream is captured", function);
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
  fake.n_waits++;
  return result;
}

bool
fake_ignores (const char *function)
{
  return strcmp (fake.ignored, function) == 0;
}

/* --- one call each --- */

CUresult
cuStreamCreate (CUstream *stream, unsigned flags)
{
  CUresult result = fake_enter ("cuStreamCreate");

  for (int i = 1; result == CUDA_SUCCESS && i < MAX_STREAMS; i++)
    if (!now.used[i])
      {
        uint64_t time = now.streams[i].clock.at[i];

        now.used[i] = true;
        now.streams[i] = (struct CUstream_st){ .number = i };
        now.streams[i].clock.at[i] = time;
        *stream = &now.streams[i];
        return CUDA_SUCCESS;
      }
  return result != CUDA_SUCCESS ? result : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult
cuStreamDestroy (CUstream s)
{
  drain (s, NULL, 0);
  now.used[s->number] = false;
  return fake_enter ("cuStreamDestroy");
}

CUresult
cuStreamSynchronize (CUstream s)
{
  CUresult result = wait_begins ("cuStreamSynchronize", s->captured != NULL);

  if (result != CUDA_SUCCESS)
    return result;
  drain (s, NULL, 0);
  merge (&now.host, &s->clock);
  return fake_sticky;
}

CUresult
cuCtxSynchronize (void)
{
  CUresult result = wait_begins ("cuCtxSynchronize", fake_is_capturing ());

  if (result != CUDA_SUCCESS)
    return result;
  fake_drain_all ();
  for (int i = 0; i < MAX_STREAMS; i++)
    merge (&now.host, &now.streams[i].clock);
  return fake_sticky;
}

CUresult
cuEventCreate (CUevent *event, unsigned flags)
{
  CUresult result = fake_enter ("cuEventCreate");

  for (int i = 0; result == CUDA_SUCCESS && i < MAX_EVENTS; i++)
    if (now.events[i] == NULL)
      {
        now.events[i] = calloc (1, sizeof *now.events[i]);
        now.events[i]->untimed = (flags & CU_EVENT_DISABLE_TIMING) != 0;
        *event = (CUevent)now.events[i];
        return CUDA_SUCCESS;
      }
  return result != CUDA_SUCCESS ? result : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult
cuEventDestroy (CUevent event)
{
  struct FakeEvent *e = (struct FakeEvent *)event;

  if (e->reached < e->recorded)
    drain (NULL, e, e->recorded);
  for (int i = 0; i < MAX_EVENTS; i++)
    if (now.events[i] == e)
      now.events[i] = NULL;
  free (e);
  return fake_enter ("cuEventDestroy");
}

CUresult
cuEventRecord (CUevent event, CUstream s)
{
  CUresult result = fake_enter ("cuEventRecord");
  struct FakeEvent *e = (struct FakeEvent *)event;
  FakeCommand *c;

  if (result != CUDA_SUCCESS)
    return result;
  e->capture = 0;
  if (s->n_grouped > 0)
    fake_violation ("cuEventRecord behind exchanges of an open group: ncclGroupEnd is missing");
  if (s->captured != NULL)
    {
      fake_graph_mark (s, e);
      return CUDA_SUCCESS;
    }
  c = fake_command ("cuEventRecord", NULL);
  c->records = e;
  c->version = ++e->recorded;
  e->stream = s;
  return fake_enqueue (s, c);
}

CUresult
cuStreamWaitEvent (CUstream s, CUevent event, unsigned flags)
{
  CUresult result = fake_enter ("cuStreamWaitEvent");
  struct FakeEvent *e = (struct FakeEvent *)event;
  FakeCommand *c;

  if (result == CUDA_SUCCESS && fake_ignores ("cuStreamWaitEvent"))
    return result;
  if (result == CUDA_SUCCESS && (e->capture != 0 || s->captured != NULL))
    return fake_graph_join (s, e);
  if (result != CUDA_SUCCESS || e->recorded == 0)
    return result;
  c = fake_command ("cuStreamWaitEvent", NULL);
  c->waits = e;
  c->version = e->recorded;
  return fake_enqueue (s, c);
}

CUresult
cuEventQuery (CUevent event)
{
  CUresult result = fake_enter ("cuEventQuery");
  struct FakeEvent *e = (struct FakeEvent *)event;

  if (result != CUDA_SUCCESS || e->capture != 0)
    return result != CUDA_SUCCESS ? result : CUDA_ERROR_CAPTURED_EVENT;
  if (fake_forbids ("cuEventQuery"))
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (e->reached < e->recorded)
    return CUDA_ERROR_NOT_READY;
  merge (&now.host, &e->clock);
  return CUDA_SUCCESS;
}

CUresult
cuEventSynchronize (CUevent event)
{
  CUresult result = wait_begins ("cuEventSynchronize", false);
  struct FakeEvent *e = (struct FakeEvent *)event;

  if (result != CUDA_SUCCESS || e->capture != 0)
    return result != CUDA_SUCCESS ? result : CUDA_ERROR_CAPTURED_EVENT;
  if (fake_ignores ("cuEventSynchronize"))
    return CUDA_SUCCESS;
  drain (NULL, e, e->recorded);
  merge (&now.host, &e->clock);
  return fake_sticky;
}

/* A thousandth of a second for each command between them. */
CUresult
cuEventElapsedTime (float *milliseconds, CUevent start, CUevent end)
{
  const struct FakeEvent *a = (const struct FakeEvent *)start,
                         *b = (const struct FakeEvent *)end;

  if (a->untimed || b->untimed || a->recorded == 0 || b->recorded == 0)
    {
      fake_violation ("cuEventElapsedTime of events that have no times");
      return CUDA_ERROR_INVALID_HANDLE;
    }
  if (a->reached < a->recorded || b->reached < b->recorded)
    return CUDA_ERROR_NOT_READY;
  *milliseconds
      = (float)(b->clock.at[b->stream->number] - a->clock.at[b->stream->number]) * 1e-3f;
  return fake_enter ("cuEventElapsedTime");
}
