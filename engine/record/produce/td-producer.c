/* A tape of any program: opening and closing it, and what is said once: texts, places, layers,
 * kinds of operations, sources.  SPDX-License-Identifier: MIT */
#include "producer-private.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SOURCE_PART 60000u

TdProducerStatus
td__producer_refuse (TdProducer *p, TdProducerStatus status, const char *format, ...)
{
  va_list args;

  va_start (args, format);
  vsnprintf (p->error, sizeof p->error, format, args);
  va_end (args);
  return status;
}

TdProducerStatus
td__producer_ready (TdProducer *p)
{
  const char *why;

  if (p == NULL)
    return TD_PRODUCER_WRONG;
  if (p->ended)
    return td__producer_refuse (p, TD_PRODUCER_NOT_NOW, "the program has ended already");
  why = td_tape_writer_error (p->w);
  if (why != NULL)
    return td__producer_refuse (p, TD_PRODUCER_FILE, "%s", why);
  return TD_PRODUCER_OK;
}

static uint64_t
clock_now (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t
td__producer_ticks (uint64_t time_ns)
{
  return time_ns != 0 ? time_ns : clock_now ();
}

void *
td__producer_record (TdProducer *p, unsigned type, unsigned flags, size_t bytes)
{
  const uint32_t size = TD_RAW_PADDED (bytes);
  TdRawHead *head;

  p->record.n = 0;
  head = td__list_add_n (&p->record, 1, size);
  if (head == NULL)
    {
      td__producer_refuse (p, TD_PRODUCER_MEMORY, "no memory");
      return NULL;
    }
  memset (head, 0, size);
  *head = (TdRawHead){ .size = size, .type = (uint16_t)type, .flags = (uint16_t)flags };
  return head;
}

void
td__producer_feed (TdProducer *p, const void *record)
{
  td_assembler_feed (p->a, record, ((const TdRawHead *)record)->size);
}

/* ---------------------------------------------------------------------------- opening */

const char *
td__producer_take (void *to, size_t ours, const void *from, uint32_t least)
{
  uint32_t size;

  if (from == NULL)
    return "no struct is given";
  memcpy (&size, from, sizeof size);
  if (size < least || size > 65536)
    return "the struct's size is not set: sizeof of it";
  memset (to, 0, ours);
  memcpy (to, from, size < ours ? size : ours);
  for (size_t i = ours; i < size; i++)
    if (((const char *)from)[i] != 0)
      return "the struct has more than this library knows: a newer one is needed";
  return NULL;
}

/* A lock on a file holds off other processes only: those of this one are known. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static TdProducer *producers;

static bool
is_being_written (const char *path)
{
  struct stat st;
  bool is = false;

  if (stat (path, &st) != 0)
    return false;
  pthread_mutex_lock (&lock);
  for (const TdProducer *p = producers; p != NULL && !is; p = p->next)
    is = p->device == st.st_dev && p->inode == st.st_ino;
  pthread_mutex_unlock (&lock);
  return is;
}

static void
enter (TdProducer *p, const char *path)
{
  struct stat st;

  if (stat (path, &st) != 0)
    return;
  p->device = st.st_dev;
  p->inode = st.st_ino;
  pthread_mutex_lock (&lock);
  p->next = producers;
  producers = p;
  pthread_mutex_unlock (&lock);
}

static void
leave (TdProducer *p)
{
  pthread_mutex_lock (&lock);
  for (TdProducer **at = &producers; *at != NULL; at = &(*at)->next)
    if (*at == p)
      {
        *at = p->next;
        break;
      }
  pthread_mutex_unlock (&lock);
}

static TdProducer *
give_up (TdProducer *p, const char *why, char *error, size_t n)
{
  if (error != NULL && n > 0 && why != NULL)
    snprintf (error, n, "%s", why);
  td_producer_free (p);
  return NULL;
}

static void
say_versions (TdProducer *p, const TdProducerOptions *o)
{
  char key[80];

  td_tape_writer_info (p->w, "program", o->program != NULL ? o->program : "?");
  td_tape_writer_info (p->w, "producer", o->producer);
  td_tape_writer_info (p->w, "version.producer", o->version != NULL ? o->version : "?");
  snprintf (key, sizeof key, "%s %s", o->producer, o->version != NULL ? o->version : "");
  td_tape_writer_info (p->w, "version.engine", key);
}

TdProducer *
td_producer_new (const TdProducerOptions *options, char *error, size_t n)
{
  TdTapeWriterOptions to = { .size = sizeof to };
  TdProducerOptions o;
  TdProducer *p;
  const char *wrong = td__producer_take (&o, sizeof o, options, sizeof o);

  if (wrong == NULL && (o.path == NULL || *o.path == '\0'))
    wrong = "no path is given";
  if (wrong == NULL && (o.producer == NULL || *o.producer == '\0'))
    wrong = "the producer has no name";
  if (wrong == NULL && o.level > TD_TAPE_LEVEL_VALUES)
    wrong = "there is no such level";
  if (wrong == NULL && o.rank >= (o.n_ranks != 0 ? o.n_ranks : 1))
    wrong = "the rank is not below the number of ranks";
  if (wrong == NULL && is_being_written (o.path))
    wrong = "another producer of this process is writing to this tape";
  p = wrong == NULL ? calloc (1, sizeof *p) : NULL;
  if (p == NULL)
    return give_up (NULL, wrong != NULL ? wrong : "no memory", error, n);
  p->clock.mono_ns = p->clock.ticks = to.mono_ns = to.ticks = clock_now ();
  p->clock.ns_per_tick = to.ns_per_tick = 1.0;
  to.level = o.level;
  p->keeps_elements = o.level == TD_TAPE_LEVEL_VALUES;
  to.path = o.path;
  to.overwrite = o.overwrite != 0;
  to.budget_bytes = o.budget_bytes;
  to.rank = o.rank;
  to.n_ranks = o.n_ranks;
  p->next_buffer = 1;
  p->w = td_tape_writer_new (&to, error, n);
  if (p->w == NULL)
    return give_up (p, NULL, error, n);
  p->a = td_assembler_new (p->w, &p->clock);
  if (p->a == NULL)
    return give_up (p, "no memory", error, n);
  enter (p, o.path);
  say_versions (p, &o);
  td_tape_writer_flush (p->w);
  return p;
}

void
td_producer_free (TdProducer *p)
{
  if (p == NULL)
    return;

  TdIdMap *maps[]
      = { &p->texts, &p->places, &p->layers, &p->kinds, &p->var_at, &p->storage_at };
  TdList *lists[] = { &p->record,  &p->vars,   &p->free_vars, &p->storages,   &p->free_storages,
                      &p->pending, &p->orders, &p->measured,  &p->layer_paths };

  if (p->a != NULL && p->in_iteration && !p->ended && td__producer_ready (p) == TD_PRODUCER_OK)
    {
      TdRawExit *end = td__producer_record (p, TD_RAW_EXIT, 0, sizeof *end);

      if (end != NULL)
        {
          end->ticks = clock_now ();
          td__producer_feed (p, end);
        }
    }
  td__producer_live_end (p);
  td__producer_hang_end (p);
  td__producer_forget_measured (p);
  leave (p);
  td_assembler_free (p->a);
  td_tape_writer_free (p->w);
  for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
    td__id_map_clear (maps[i]);
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
    td__list_clear (lists[i]);
  free (p);
}

TdProducerStatus
td__producer_end (TdProducer *p, TdTapeEnd end)
{
  TdRawExit *exit;

  if (p->in_iteration)
    td__producer_flush_memory (p);
  if ((exit = td__producer_record (p, TD_RAW_EXIT, 0, sizeof *exit)) == NULL)
    return TD_PRODUCER_MEMORY;
  exit->status = end.status;
  exit->ticks = clock_now ();
  end.time_ns = exit->ticks - p->clock.mono_ns;
  td__producer_feed (p, exit);
  td_tape_writer_end (p->w, &end);
  td_tape_writer_flush (p->w);
  p->in_iteration = false;
  p->ended = true;
  return TD_PRODUCER_OK;
}

TdProducerStatus
td_producer_end (TdProducer *p, int status)
{
  TdProducerStatus ready = td__producer_ready (p);

  if (ready != TD_PRODUCER_OK)
    return ready;
  if (status < 0 || status > 255)
    return td__producer_refuse (p, TD_PRODUCER_WRONG, "%d is no exit status", status);
  return td__producer_end (
      p, (TdTapeEnd){ .status = status, .iteration = td_assembler_state (p->a)->iteration });
}

const char *
td_producer_error (const TdProducer *p)
{
  return p != NULL ? p->error : "there is no producer";
}

/* ------------------------------------------------------------------------ said once */

/* The number under this hash; a new one is one more than *counter. */
static uint32_t
number_of (TdProducer *p, TdIdMap *map, uint64_t hash, uint32_t *counter, bool *is_new)
{
  const uint32_t known = td__id_map_get (map, hash | 1);

  *is_new = known == TD_TAPE_NONE;
  if (!*is_new)
    return known;
  if (*counter >= PRODUCER_MOST || !td__id_map_set (map, hash | 1, *counter + 1))
    {
      td__producer_refuse (p, TD_PRODUCER_MEMORY, "there is no room for one more");
      return 0;
    }
  return ++*counter;
}

uint32_t
td__producer_text_n (TdProducer *p, const char *text, size_t n)
{
  const uint32_t length = n < PRODUCER_TEXT ? (uint32_t)n : PRODUCER_TEXT;
  TdRawString *s;
  bool is_new;
  uint32_t id;

  if (n == 0)
    return 0;
  id = number_of (p, &p->texts, td_tape_hash_bytes (n, text, n), &p->n_texts, &is_new);
  if (id == 0 || !is_new)
    return id;
  s = td__producer_record (p, TD_RAW_STRING, 0, sizeof *s + length);
  if (s == NULL)
    return 0;
  s->id = id;
  s->length = length;
  memcpy (s->bytes, text, length);
  td__producer_feed (p, s);
  return id;
}

static uint32_t
text_of (TdProducer *p, const char *text)
{
  return text != NULL ? td__producer_text_n (p, text, strlen (text)) : 0;
}

uint32_t
td_producer_text (TdProducer *p, const char *text)
{
  if (td__producer_ready (p) != TD_PRODUCER_OK)
    return 0;
  if (text == NULL)
    {
      td__producer_refuse (p, TD_PRODUCER_WRONG, "text: there is none");
      return 0;
    }
  return text_of (p, text);
}

uint32_t
td_producer_place (TdProducer *p, const char *file, uint32_t line, const char *function)
{
  uint32_t id, file_text, function_text;
  TdRawSite *site;
  bool is_new;

  if (td__producer_ready (p) != TD_PRODUCER_OK)
    return 0;
  if (file == NULL || *file == '\0')
    {
      td__producer_refuse (p, TD_PRODUCER_WRONG, "place: no file is given");
      return 0;
    }
  file_text = text_of (p, file);
  function_text = text_of (p, function);
  id = number_of (p, &p->places, td_tape_hash (td_tape_hash (file_text, line), function_text),
                  &p->n_places, &is_new);
  site = id != 0 && is_new ? td__producer_record (p, TD_RAW_SITE, 0, sizeof *site) : NULL;
  if (site != NULL)
    {
      site->site = (TdTapeSite){
        .id = id, .file = file_text, .function = function_text, .line = line
      };
      td__producer_feed (p, site);
    }
  return id;
}

uint32_t
td_producer_layer (TdProducer *p, const char *path, const char *layer_class)
{
  uint32_t id, path_text, class_text, *known;
  TdRawPath *layer;
  bool is_new;

  if (td__producer_ready (p) != TD_PRODUCER_OK)
    return 0;
  if (path == NULL || *path == '\0')
    {
      td__producer_refuse (p, TD_PRODUCER_WRONG, "layer: no path is given");
      return 0;
    }
  path_text = text_of (p, path);
  class_text = text_of (p, layer_class);
  id = number_of (p, &p->layers, td_tape_hash (path_text, class_text), &p->n_layers, &is_new);
  layer = id != 0 && is_new ? td__producer_record (p, TD_RAW_PATH, 0, sizeof *layer) : NULL;
  if (layer != NULL)
    {
      layer->path = (TdTapePath){ .id = id, .path = path_text, .link_class = class_text };
      td__producer_feed (p, layer);
      known = td__list_add (&p->layer_paths, sizeof *known);
      if (known != NULL)
        *known = path_text;
    }
  return id;
}

uint32_t
td_producer_kind (TdProducer *p, const char *name, const char *group, const char *arguments)
{
  uint32_t id, name_text, group_text, arguments_text;
  TdRawOpdef *def;
  bool is_new;

  if (td__producer_ready (p) != TD_PRODUCER_OK)
    return 0;
  if (name == NULL || *name == '\0')
    {
      td__producer_refuse (p, TD_PRODUCER_WRONG, "kind: it has no name");
      return 0;
    }
  name_text = text_of (p, name);
  group_text = text_of (p, group);
  arguments_text = text_of (p, arguments);
  id = number_of (p, &p->kinds,
                  td_tape_hash (td_tape_hash (name_text, group_text), arguments_text),
                  &p->n_kinds, &is_new);
  def = id != 0 && is_new ? td__producer_record (p, TD_RAW_OPDEF, 0, sizeof *def) : NULL;
  if (def != NULL)
    {
      def->def = (TdTapeOpdef){ .id = id,
                                .name = name_text,
                                .group = group_text,
                                .attributes = arguments_text,
                                .n_in = -1,
                                .n_out = -1 };
      td__producer_feed (p, def);
    }
  return id;
}

TdProducerStatus
td_producer_info (TdProducer *p, const char *key, const char *value)
{
  TdProducerStatus ready = td__producer_ready (p);

  if (ready != TD_PRODUCER_OK)
    return ready;
  if (key == NULL || *key == '\0' || value == NULL)
    return td__producer_refuse (p, TD_PRODUCER_WRONG, "info: a key and a value are needed");
  td_tape_writer_info (p->w, key, value);
  return TD_PRODUCER_OK;
}

TdProducerStatus
td_producer_source (TdProducer *p, const char *path, const char *text, size_t n)
{
  TdProducerStatus ready = td__producer_ready (p);

  if (ready != TD_PRODUCER_OK)
    return ready;
  if (path == NULL || *path == '\0' || (text == NULL && n > 0))
    return td__producer_refuse (p, TD_PRODUCER_WRONG, "source: a path and a text are needed");
  td_tape_writer_source (p->w, path, text != NULL ? text : "", n);
  return TD_PRODUCER_OK;
}
