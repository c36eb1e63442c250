/* `tapedeck export`: a tape's contents in a form that other programs read.
 *
 * SPDX-License-Identifier: MIT */
#include "command.h"

#include "number.h"
#include "replace.h"
#include "td-tape-reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[]
    = "Usage: tapedeck export TAPE --format FORMAT [--iteration N] [--device N] -o FILE\n"
      "\n"
      "chrome: operations in time as JSON that chrome://tracing, ui.perfetto.dev and "
      "speedscope\n"
      "open: inside of phases and layers, what devices ran on rows of their own; memory by "
      "category,\n"
      "norms of gradients and reports as counters.\n"
      "perfetto: the same as Perfetto's protobuf.\n"
      "Both have all iterations unless --iteration names one.\n"
      "torch-snapshot: the memory of one iteration (default: the one in which memory ran out\n"
      "last, else the last) as a pickle that pytorch.org/memory_viz opens.  Segments are "
      "derived\n"
      "from the addresses of blocks; what the allocator keeps beside them is not on the tape.\n"
      "--device 0 (default) is the host, the others are numbered as on the tape.\n"
      "-o - is standard output.\n\n"
      "The man page is tapedeck-export(1).";

typedef struct Format Format;

typedef struct
{
  const char *tape, *format, *out, *iteration, *device;
  const Format *as;
  uint64_t first, last; /* iterations */
  uint64_t on;          /* device */
} Options;

struct Format
{
  const char *name;
  bool (*write) (TdTapeReader *r, const Options *o, FILE *out, char *error, size_t n);
  bool of_one; /* iteration, of one device */
};

static bool
write_chrome (TdTapeReader *r, const Options *o, FILE *out, char *error, size_t n)
{
  return td_tape_write_trace (r, TD_TAPE_TRACE_CHROME, o->first, o->last, out, error, n);
}

static bool
write_perfetto (TdTapeReader *r, const Options *o, FILE *out, char *error, size_t n)
{
  return td_tape_write_trace (r, TD_TAPE_TRACE_PERFETTO, o->first, o->last, out, error, n);
}

static bool
write_snapshot (TdTapeReader *r, const Options *o, FILE *out, char *error, size_t n)
{
  return td_tape_write_snapshot (r, o->first, (uint32_t)o->on, out, error, n);
}

static const Format formats[] = {
  { "chrome", write_chrome, false },
  { "perfetto", write_perfetto, false },
  { "torch-snapshot", write_snapshot, true },
};

static int
parse (int argc, char **argv, Options *o)
{
  const struct
  {
    const char *name, **value;
  } options[] = { { "--format", &o->format },
                  { "--iteration", &o->iteration },
                  { "--device", &o->device },
                  { "-o", &o->out } };
  const size_t n = sizeof options / sizeof *options;

  for (int i = 1; i < argc; i++)
    {
      size_t k = 0;

      while (k < n && strcmp (argv[i], options[k].name) != 0)
        k++;
      if (k < n && i + 1 < argc)
        *options[k].value = argv[++i];
      else if (argv[i][0] == '-' && argv[i][1] != '\0')
        return td_usage_error (argv[0], "%s: no such option, or its value is missing", argv[i]);
      else if (o->tape != NULL)
        return td_usage_error (argv[0], "%s: one tape expected", argv[i]);
      else
        o->tape = argv[i];
    }
  if (o->tape == NULL)
    return td_usage_error (argv[0], "a tape expected");
  for (size_t k = 0; o->format != NULL && k < sizeof formats / sizeof *formats; k++)
    if (strcmp (o->format, formats[k].name) == 0)
      o->as = &formats[k];
  if (o->as == NULL)
    return td_usage_error (argv[0], "--format chrome, perfetto or torch-snapshot expected");
  if (o->device != NULL && !o->as->of_one)
    return td_usage_error (argv[0], "--device goes with --format torch-snapshot");
  return o->out != NULL ? TD_EXIT_OK : td_usage_error (argv[0], "-o FILE expected");
}

static bool
default_iteration (TdTapeReader *r, uint64_t *iteration)
{
  const TdTapeSummaries s = td_tape_reader_summaries (r);

  for (uint32_t i = td_tape_reader_n_ooms (r); i-- > 0;)
    if (td_tape_reader_oom (r, i)->flags & TD_TAPE_OOM_ITERATION)
      {
        *iteration = td_tape_reader_oom (r, i)->iteration;
        return true;
      }
  if (s.n > 0)
    *iteration = s.rows[s.n - 1].number;
  return s.n > 0;
}

static int
trouble (const char *file, const char *what)
{
  fprintf (stderr, "tapedeck: %s: %s\n", file, what);
  return TD_EXIT_USAGE;
}

static int
write_file (TdTapeReader *r, const Options *o)
{
  char error[256];
  bool written;
  TdReplace out;

  if (strcmp (o->out, "-") == 0) /* what it does not take is said at the end */
    {
      written = o->as->write (r, o, stdout, error, sizeof error);
      return written ? TD_EXIT_OK : trouble (o->tape, error);
    }
  if (!td__replace_begin (&out, o->out, 0666))
    return trouble (o->out, strerror (errno));
  written = o->as->write (r, o, out.file, error, sizeof error);
  if (!td__replace_end (&out, written))
    return written ? trouble (o->out, strerror (errno)) : trouble (o->tape, error);
  return TD_EXIT_OK;
}

int
td_command_export (int argc, char **argv)
{
  Options o = { .last = UINT64_MAX };
  TdTapeReader *r;
  char error[256];
  int status;

  for (int i = 1; i < argc; i++)
    if (strcmp (argv[i], "--help") == 0)
      return puts (help), TD_EXIT_OK;
  status = parse (argc, argv, &o);
  if (status != TD_EXIT_OK)
    return status;
  if (o.device != NULL
      && (!td_parse_number (o.device, strlen (o.device), &o.on) || o.on > UINT8_MAX))
    return td_usage_error (argv[0], "--device %s: the number of a device expected", o.device);
  if (o.iteration != NULL && !td_parse_number (o.iteration, strlen (o.iteration), &o.first))
    return td_usage_error (argv[0], "--iteration %s: a number expected", o.iteration);
  r = td_tape_reader_open (o.tape, error, sizeof error);
  if (r == NULL)
    return trouble (o.tape, error);
  if (o.iteration != NULL)
    o.last = o.first;
  if (td_tape_reader_summaries (r).n == 0
      || (o.iteration == NULL && o.as->of_one && !default_iteration (r, &o.first)))
    status = trouble (
        o.tape, td_tape_reader_damage (r, error, sizeof error) ? error : "no iteration on it");
  else if (o.iteration != NULL && td_tape_reader_find (r, o.first) < 0 && !o.as->of_one)
    {
      snprintf (error, sizeof error, "no iteration %" PRIu64 " on it", o.first);
      status = trouble (o.tape, error);
    }
  else
    status = write_file (r, &o);
  td_tape_reader_free (r);
  return status;
}
