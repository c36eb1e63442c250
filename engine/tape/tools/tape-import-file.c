/* Importing: which kind of file it is, and the files around it.
 * SPDX-License-Identifier: MIT */
#include "tape-arrays.h"
#include "tape-trace.h"

#include "replace.h"
#include "source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool
td_tape_is_snapshot (const char *path)
{
  const int fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  uint8_t head[2] = { 0 };
  bool is;

  if (fd < 0)
    return false;
  is = read (fd, head, sizeof head) == sizeof head && head[0] == 0x80 && head[1] >= 2
       && head[1] <= 5;
  close (fd);
  return is;
}

/* The first byte that is no blank says enough: a tape, a pickle and a model begin otherwise. */
bool
td_tape_is_trace (const char *path)
{
  const char *why;
  TdSource *source = td__source_open (path, &why);
  char head[256] = "";
  int64_t n = 0;

  if (source == NULL)
    return false;
  n = td__source_read (source, head, sizeof head, &why);
  td__source_close (source);
  for (int64_t i = 0; i < n; i++)
    if (strchr (" \t\r\n", head[i]) == NULL || head[i] == '\0')
      return head[i] == '{' || head[i] == '[';
  return false;
}

bool
td_tape_is_import (const char *path)
{
  return td_tape_is_snapshot (path) || td_tape_is_trace (path) || td_tape_is_arrays (path);
}

static void
put_info (TdTapeWriter *w, const char *path)
{
  const char *slash = strrchr (path, '/');

  td_tape_writer_info (w, "program", slash != NULL ? slash + 1 : path);
}

static void
put_notice (TdTapeWriter *w, const char *before, uint64_t n, const char *after)
{
  char text[160];

  if (n == 0)
    return;
  snprintf (text, sizeof text, "%s%" PRIu64 "%s", before, n, after);
  td_tape_writer_notice (w, &(TdTapeNotice){ .kind = TD_TAPE_NOTICE_RECORDING,
                                             .event = TD_TAPE_NONE,
                                             .text = td_tape_writer_string (w, text) });
}

bool
td__tape_import_step (const TdTapeImportOptions *watch, TdTapeImportStage stage, uint64_t done,
                      uint64_t all)
{
  if (watch != NULL && watch->progress != NULL)
    watch->progress (watch->user, stage,
                     done < all ? (double)done / (double)all : (double)(all > 0));
  return watch == NULL || watch->cancel == NULL || *watch->cancel == 0;
}

/* A stage begins.  False, with the line, when it is not to. */
static bool
begin (const TdTapeImportOptions *watch, TdTapeImportStage stage, char *error, size_t n)
{
  return td__tape_import_step (watch, stage, 0, 1) || (snprintf (error, n, "cancelled"), false);
}

/* What makes a tape of a file; false with a line that does not name it. */
typedef bool (*Convert) (TdTapeWriter *w, void *from, const TdTapeImportOptions *watch,
                         TdTapeImport *what, char *error, size_t n);

static bool
convert_snapshot (TdTapeWriter *w, void *from, const TdTapeImportOptions *watch,
                  TdTapeImport *what, char *error, size_t n)
{
  TapeSnapshot s = { .w = w };
  const int *fd = from;
  bool done;

  td_tape_writer_info (w, TD_TAPE_IMPORT_KEY, TD_TAPE_IMPORT_TORCH);
  done = td__tape_snapshot_read (&s, *fd, watch, error, n)
         && begin (watch, TD_TAPE_IMPORT_WRITING, error, n)
         && td__tape_snapshot_write (&s, what, error, n);
  if (done)
    {
      td__tape_sources_store (&s, *fd);
      put_notice (w, "the trace is longer than can be shown: its first ", what->n_dropped,
                  " entries are left out");
      put_notice (w, "", s.n_annotations,
                  " annotations have no place in the trace, and are left out");
      put_notice (w, "", s.n_stackless,
                  " stacks are kept by their innermost place alone: all are too many");
    }
  td__tape_snapshot_clear (&s);
  return done;
}

static bool
convert_timeline (TdTapeWriter *w, TapeTraceFile *f, const TdTapeImportOptions *watch,
                  TdTapeImport *what, char *error, size_t n)
{
  TapeSnapshot s = { .w = w };
  bool done;

  td_tape_writer_info (w, TD_TAPE_IMPORT_KEY, TD_TAPE_IMPORT_TORCH);
  done = td__tape_timeline_take (&s, f, error, n)
         && begin (watch, TD_TAPE_IMPORT_WRITING, error, n)
         && td__tape_snapshot_write (&s, what, error, n);
  td__tape_snapshot_clear (&s);
  return done;
}

static bool
convert_trace (TdTapeWriter *w, void *from, const TdTapeImportOptions *watch,
               TdTapeImport *what, char *error, size_t n)
{
  TapeTrace t = { .w = w, .watch = watch, .error = error, .n_error = n };
  bool done;

  if (td__tape_trace_has_rows (from))
    return convert_timeline (w, from, watch, what, error, n);
  td_tape_writer_info (w, TD_TAPE_IMPORT_KEY, TD_TAPE_IMPORT_TRACE);
  done = td__tape_trace_take (&t, from) && begin (watch, TD_TAPE_IMPORT_ARRANGING, error, n)
         && td__tape_trace_nest (&t) && td__tape_trace_write (&t, what);
  td__tape_trace_clear (&t);
  return done;
}

static bool
convert_arrays (TdTapeWriter *w, void *from, const TdTapeImportOptions *watch,
                TdTapeImport *what, char *error, size_t n)
{
  TapeArrays *t = from;

  t->watch = watch;
  t->error = error;
  t->n_error = n;
  td_tape_writer_info (w, TD_TAPE_IMPORT_KEY, TD_TAPE_IMPORT_ARRAYS);
  return td__tape_arrays_write (t, w, what);
}

/* Make the file of a tape, and fill it.  An older one stays as it was unless all went well. */
static bool
make_tape (const char *path, const char *tape, const TdTapeImportOptions *options,
           uint64_t values_bytes, Convert convert, void *from, TdTapeImport *what, char *error,
           size_t n)
{
  const bool overwrite = options != NULL && options->overwrite;
  TdTapeImport found = { 0 };
  TdTapeWriter *w;
  TdReplace to = { 0 };
  char text[256];
  bool done;

  if (overwrite && !td_tape_may_replace (tape, text, sizeof text))
    return snprintf (error, n, "%s: %s", tape, text), false;
  if (overwrite && (!td__replace_begin (&to, tape, 0600) || to.temp[0] == '\0'))
    {
      snprintf (error, n, "%s: %s", tape, to.file != NULL ? "it is no file" : strerror (errno));
      if (to.file != NULL)
        td__replace_end (&to, false);
      return false;
    }
  w = td_tape_writer_new (
      &(TdTapeWriterOptions){ .size = sizeof (TdTapeWriterOptions),
                              .path = overwrite ? to.temp : tape,
                              .overwrite = overwrite,
                              .level = values_bytes > 0 ? TD_TAPE_LEVEL_VALUES : 0,
                              .values_bytes = values_bytes },
      text, sizeof text);
  if (w == NULL)
    {
      snprintf (error, n, "%s: %s", tape, text);
      return overwrite ? td__replace_end (&to, false) : false;
    }
  put_info (w, path);
  done = convert (w, from, options, &found, text, sizeof text);
  if (!done)
    snprintf (error, n, "%s: %s", path, text);
  td_tape_writer_flush (w);
  if (done && td_tape_writer_error (w) != NULL)
    done = snprintf (error, n, "%s: %s", tape, td_tape_writer_error (w)) < 0;
  td_tape_writer_free (w);
  if (overwrite && !td__replace_end (&to, done) && done)
    done = snprintf (error, n, "%s: %s", tape, strerror (errno)) < 0;
  else if (!overwrite && !done)
    unlink (tape); /* made by this call */
  if (done && what != NULL)
    {
      const uint32_t size = what->size;

      memcpy (what, &found, size < sizeof found ? size : sizeof found);
      what->size = size;
    }
  return done;
}

static bool
import_snapshot (const char *path, const char *tape, const TdTapeImportOptions *options,
                 TdTapeImport *what, char *error, size_t n)
{
  int fd = open (path, O_RDONLY | O_CLOEXEC);
  bool done;

  if (fd < 0)
    return snprintf (error, n, "%s: %s", path, strerror (errno)), false;
  done = make_tape (path, tape, options, 0, convert_snapshot, &fd, what, error, n);
  close (fd);
  return done;
}

bool
td_tape_import_snapshot (const char *snapshot, const char *tape, bool overwrite,
                         TdTapeImport *what, char *error, size_t n)
{
  const TdTapeImportOptions options = { .size = sizeof options, .overwrite = overwrite };

  return import_snapshot (snapshot, tape, &options, what, error, n);
}

/* Values have all the room that they need, with their heads. */
static bool
import_arrays (const char *path, const char *tape, const TdTapeImportOptions *options,
               TdTapeImport *what, char *error, size_t n)
{
  char text[256];
  TapeArrays t = { .error = text, .n_error = sizeof text };
  bool done = td__tape_arrays_open (&t, path);

  if (!done)
    snprintf (error, n, "%s: %s", path, text);
  else
    done = make_tape (path, tape, options, 4 * td__tape_arrays_bytes (&t) + (64 << 20),
                      convert_arrays, &t, what, error, n);
  td__tape_arrays_clear (&t);
  return done;
}

bool
td_tape_import_with (const char *path, const char *tape, const TdTapeImportOptions *options,
                     TdTapeImport *what, char *error, size_t n)
{
  TapeTraceFile *f;
  char text[256];
  bool done;

  if (td__tape_is_zip (path)) /* of arrays with other names it says so */
    return import_arrays (path, tape, options, what, error, n);
  if (!td_tape_is_trace (path))
    return import_snapshot (path, tape, options, what, error, n);
  f = td__tape_trace_open (path, options, text, sizeof text);
  if (f == NULL)
    return snprintf (error, n, "%s: %s", path, text), false;
  done = make_tape (path, tape, options, 0, convert_trace, f, what, error, n);
  td__tape_trace_close (f);
  return done;
}

bool
td_tape_import (const char *path, const char *tape, bool overwrite, TdTapeImport *what,
                char *error, size_t n)
{
  const TdTapeImportOptions options = { .size = sizeof options, .overwrite = overwrite };

  return td_tape_import_with (path, tape, &options, what, error, n);
}

uint64_t
td_tape_import_identity (const char *path)
{
  char *real = realpath (path, NULL);
  struct stat s;
  uint64_t h = 0;

  if (real != NULL && stat (real, &s) == 0)
    {
      h = td_tape_hash (td_tape_hash_bytes (1, real, strlen (real)), s.st_ino);
      h = td_tape_hash (td_tape_hash (h, (uint64_t)s.st_size), (uint64_t)s.st_mtim.tv_sec);
      h = td_tape_hash (h, (uint64_t)s.st_mtim.tv_nsec);
      h = td_tape_hash_bytes (h, TD_VERSION, strlen (TD_VERSION));
    }
  free (real);
  return h;
}

bool
td_tape_import_path (const char *path, const char *folder, char *tape, size_t n_tape,
                     char *error, size_t n)
{
  const char *slash = strrchr (path, '/');
  const int length
      = snprintf (tape, n_tape, "%s/%s.tdtape", folder, slash != NULL ? slash + 1 : path);

  if (length >= 0 && (size_t)length < n_tape)
    return true;
  return snprintf (error, n, "%s: the name is too long", path), false;
}

/* Another process may do the same: whoever is done first has the name. */
bool
td_tape_import_into (const char *path, const char *folder, const TdTapeImportOptions *options,
                     char *tape, size_t n_tape, char *error, size_t n)
{
  TdTapeImportOptions over = { .size = sizeof over };
  char part[4200];

  if (!td_tape_import_path (path, folder, tape, n_tape, error, n))
    return false;
  if (snprintf (part, sizeof part, "%s/%ld.part", folder, (long)getpid ()) >= (int)sizeof part)
    return snprintf (error, n, "%s: the name is too long", path), false;
  if (access (tape, R_OK) == 0)
    return true;
  if (options != NULL)
    over = *options;
  over.overwrite = true;
  if (!td_tape_import_with (path, part, &over, NULL, error, n))
    return false;
  if (rename (part, tape) == 0)
    return true;
  snprintf (error, n, "%s: %s", tape, strerror (errno));
  unlink (part);
  return false;
}
