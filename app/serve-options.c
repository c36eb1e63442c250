/* The command line of `tapedeck serve`.
 *
 * SPDX-License-Identifier: MIT */
#define TD_NO_SITES
#include "serve.h"

#include "command.h"
#include "number.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const char help[]
    = "Usage: tapedeck serve MODEL.onnx [OPTIONS]\n"
      "\n"
      "Answer requests over HTTP with an ONNX model, or a schedule that td_static_save wrote "
      "as\n"
      "one.  Where it listens is printed on standard output.\n"
      "\n"
      "  POST /predict  application/json: {\"inputs\": {\"x\": [[1, 2]]}}, or {\"inputs\": "
      "[[1, "
      "2]]} for\n"
      "                 one input; application/x-npy: numpy.save's files, one behind the "
      "other\n"
      "  GET /health    whether it answers\n"
      "  GET /model     names, element types and shapes\n"
      "  GET /metrics   counters and times, as Prometheus reads them\n"
      "\n"
      "  --host HOST       where to listen (127.0.0.1)\n"
      "  --port N          0: any that is free (8000)\n"
      "  --batch N         rows of several requests that are gathered to one call (1: none)\n"
      "  --deadline MS     that the first of them waits for others (1)\n"
      "  --queue N         requests that wait, at most (256)\n"
      "  --max-body BYTES  of a request (67108864)\n"
      "  --timeout MS      to send a request, to wait, and to take the answer (30000)\n"
      "  --connections N   that are open at once (256)\n"
      "  --threads N       that read requests and write answers (2)\n"
      "  --record TAPE     record requests with the header X-Tapedeck-Record: 1\n"
      "  --record-slow MS  and run what took longer once more, recorded; one in a second\n"
      "\n"
      "Rows are gathered where the model computes each for itself, which is tried, and again "
      "while\n"
      "it runs.  SIGHUP loads the file anew, and no request is lost; SIGTERM and SIGINT answer "
      "what\n"
      "waits, and end it; a second one runs nothing more.\n"
      "Exit status: 0; 2 wrong usage, or no model, tape or port.\n"
      "The man page is tapedeck-serve(1).";

static const struct
{
  const char *name;
  size_t offset;
  uint64_t least, most;
} numbers[] = {
  { "--port", offsetof (TdServeOptions, port), 0, 65535 },
  { "--batch", offsetof (TdServeOptions, batch), 1, 1 << 20 },
  { "--deadline", offsetof (TdServeOptions, deadline_ms), 0, 60000 },
  { "--queue", offsetof (TdServeOptions, queue), 1, 1 << 20 },
  { "--max-body", offsetof (TdServeOptions, max_body), 1, (uint64_t)1 << 40 },
  { "--timeout", offsetof (TdServeOptions, timeout_ms), 1, 86400000 },
  { "--connections", offsetof (TdServeOptions, connections), 1, 100000 },
  { "--threads", offsetof (TdServeOptions, threads), 1, 64 },
  { "--record-slow", offsetof (TdServeOptions, record_slow_ms), 0, 86400000 },
};
static const struct
{
  const char *name;
  size_t offset;
} texts[] = {
  { "--host", offsetof (TdServeOptions, host) },
  { "--record", offsetof (TdServeOptions, record) },
};

enum
{
  N_NUMBERS = sizeof numbers / sizeof *numbers,
  N_TEXTS = sizeof texts / sizeof *texts
};

static int
take_number (TdServeOptions *o, const char *command, int i, const char *value)
{
  uint64_t n;

  if (!td_parse_number (value, strlen (value), &n) || n < numbers[i].least
      || n > numbers[i].most)
    return td_usage_error (command, "%s %s: a number from %llu to %llu expected",
                           numbers[i].name, value, (unsigned long long)numbers[i].least,
                           (unsigned long long)numbers[i].most);
  memcpy ((char *)o + numbers[i].offset, &n, sizeof n);
  o->records_slow |= numbers[i].offset == offsetof (TdServeOptions, record_slow_ms);
  return TD_EXIT_OK;
}

/* Says how many arguments it is, 0: none of these. */
static int
take_option (TdServeOptions *o, const char *command, const char *name, const char *value,
             int *status)
{
  if (value == NULL)
    return 0;
  for (int i = 0; i < N_NUMBERS; i++)
    if (strcmp (name, numbers[i].name) == 0)
      {
        *status = take_number (o, command, i, value);
        return 2;
      }
  for (int i = 0; i < N_TEXTS; i++)
    if (strcmp (name, texts[i].name) == 0)
      {
        memcpy ((char *)o + texts[i].offset, &value, sizeof value);
        return 2;
      }
  return 0;
}

int
td_serve_options (TdServeOptions *o, int argc, char **argv)
{
  int status = TD_EXIT_OK, n;

  *o = (TdServeOptions){ .host = "127.0.0.1",
                         .port = 8000,
                         .batch = 1,
                         .deadline_ms = 1,
                         .max_body = 64 << 20,
                         .queue = 256,
                         .timeout_ms = 30000,
                         .connections = 256,
                         .threads = 2 };
  for (int i = 1; i < argc && status == TD_EXIT_OK; i += n)
    {
      n = take_option (o, argv[0], argv[i], i + 1 < argc ? argv[i + 1] : NULL, &status);
      if (n > 0)
        continue;
      n = 1;
      if (strcmp (argv[i], "--help") == 0)
        return o->help = true, puts (help), TD_EXIT_OK;
      if (argv[i][0] == '-' && argv[i][1] != '\0')
        status
            = td_usage_error (argv[0], "%s: no such option, or its value is missing", argv[i]);
      else if (o->model != NULL)
        status = td_usage_error (argv[0], "%s: one model expected", argv[i]);
      else
        o->model = argv[i];
    }
  if (status == TD_EXIT_OK && o->model == NULL)
    return td_usage_error (argv[0], "a model expected");
  if (status == TD_EXIT_OK && o->records_slow && o->record == NULL)
    return td_usage_error (argv[0], "--record-slow: --record TAPE expected with it");
  return status == TD_EXIT_OK && o->record != NULL
             ? td_refuse_standard_output (argv[0], "--record", o->record)
             : status;
}
