/* Kernels that gather statistics while they write: of kernel td_NAME the variant
 * td_count_NAME, compiled from the same file (kernels/count.cuh) when a launch first wants it.
 *
 * There are about 400 of them, and a training of LeNet uses 8, so they are no part of the
 * module's images: NVRTC compiles one kernel at a time, and the disk cache keeps it for the
 * next run.  Training waits meanwhile, which a notice says.  Where NVRTC is missing or
 * fails, the plain kernel runs and its output is read once more for the statistics
 * (stats-async.c).
 *
 * Variants exist for element-by-element kernels, casts, softmax, cross entropy and its
 * gradient, row and batch normalisation, pooling, dropout, cumulative sums, LSTM cells,
 * gathered rows and select.  Their histograms are of all numbers; those that are read from an
 * array sample large ones.  Read as before is what libraries write; what is captured in a
 * graph; copies, which move bits and know no type; updates, which clip gradients, too;
 * reductions, whose output is small; our own products, convolutions and attention, which write
 * some elements more than once; and random numbers that nothing is multiplied by. Nobody asks
 * for statistics of parameters.
 *
 * SPDX-License-Identifier: MIT */
#include "async.h"
#include "nvrtc-code.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PREFIX "td_count_"
#define REPORT_SECONDS 5.0 /* of compiling between two lines about it */

/* The file of a kernel, by how its name begins; a longer beginning comes first. */
static const struct
{
  const char *begins, *file;
} files[] = {
  { "batch_norm_", "batch-norm.cu" },
  { "binary_", "binary.cu" },
  { "cast_", "cast.cu" },
  { "dropout_", "random.cu" },
  { "gather_", "move.cu" },
  { "loss_", "loss.cu" },
  { "lstm_", "lstm.cu" },
  { "norm_", "norm.cu" },
  { "pool_", "window.cu" },
  { "row_norm_", "norm.cu" },
  { "scan_along_", "lines.cu" },
  { "select_", "move.cu" },
  { "softmax_", "lines.cu" },
  { "sum_along_", "lines.cu" },
  { "unary_grad_", "binary.cu" },
  { "unary_", "unary.cu" },
};

static struct
{
  bool begun, failed; /* reported */
  int major, minor;   /* compute capability of the device that the kernels are for */
  int compiled;
  double seconds, reported;
} state;

static bool
ends_with (const char *name, const char *end)
{
  const size_t n = strlen (name), m = strlen (end);

  return n >= m && strcmp (name + n - m, end) == 0;
}

bool
td_cuda_counting_text (const char *kernel, char *text, size_t room)
{
  const char *name, *definition = "", *file = NULL;

  if (strncmp (kernel, PREFIX, strlen (PREFIX)) != 0)
    return false;
  name = kernel + strlen (PREFIX);
  for (size_t i = 0; i < sizeof files / sizeof files[0] && file == NULL; i++)
    if (strncmp (name, files[i].begins, strlen (files[i].begins)) == 0)
      file = files[i].file;
  if (ends_with (name, "_f64"))
    definition = "#define TD_KERNELS_DOUBLE\n";
  else if (ends_with (name, "f16"))
    definition = "#define TD_KERNELS_HALF\n";
  return file != NULL
         && (size_t)snprintf (text, room,
                              "#define TD_KERNELS_COUNT\n#define TD_KERNELS_ONE\n"
                              "#define TD_PICK_%s ~,\n%s#include \"%s\"\n",
                              name, definition, file)
                < room;
}

static double
now (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void say (const TdCuda *c, const char *format, ...)
    __attribute__ ((format (printf, 2, 3)));

/* Tell the user, in a line that begins with the device's name. */
static void
say (const TdCuda *c, const char *format, ...)
{
  char text[300];
  const int n = snprintf (text, sizeof text, "%s: ", c->device.name);
  va_list args;

  va_start (args, format);
  vsnprintf (text + n, sizeof text - (size_t)n, format, args);
  va_end (args);
  td_cuda_host->notice (text);
}

/* Compile, and say so: before the first kernel, and every few seconds of work. */
static bool
compile (const TdCuda *c, const TdCudaSource *source, TdCudaCode *code)
{
  const double start = now ();
  bool done;

  if (!state.begun && td_cuda_nvrtc_here ())
    say (
        c,
        "compiling kernels that gather statistics as they write, each when it is first needed");
  state.begun = true;
  done = td_cuda_nvrtc_compile (source, code);
  state.compiled += done;
  state.seconds += now () - start;
  if (done && state.seconds - state.reported >= REPORT_SECONDS)
    {
      state.reported = state.seconds;
      say (c, "%d such kernels compiled, in %.0f seconds", state.compiled, state.seconds);
    }
  return done;
}

static CUresult
load (TdCudaKernel *kernel, const TdCudaCode *code)
{
  CUlibrary library;
  CUkernel found = NULL;
  CUresult result
      = td_cuda.cuLibraryLoadData (&library, code->data, NULL, NULL, 0, NULL, NULL, 0);

  if (result == CUDA_SUCCESS)
    result = td_cuda.cuLibraryGetKernel (&found, library, kernel->name);
  if (result == CUDA_SUCCESS)
    kernel->handle = found;
  return result;
}

static void
say_failure (const TdCuda *c, const TdCudaKernel *kernel, const char *why)
{
  const char *error = why != NULL ? strstr (why, "error") : NULL; /* a log has warnings, too */
  int line;

  why = error != NULL ? error : why != NULL ? why : "no reason given";
  line = (int)strcspn (why, "\n");
  if (!state.failed)
    say (c,
         "%s cannot be compiled (%.*s): statistics are read from arrays after they are written",
         kernel->name, line < 120 ? line : 120, why);
  state.failed = true;
}

/* A handle serves all devices of one compute capability: the first one's.  Another kind of GPU
 * beside it has its statistics read. */
static bool
serves (const TdCuda *c)
{
  if (state.major == 0)
    {
      state.major = c->major;
      state.minor = c->minor;
    }
  return state.major == c->major && state.minor == c->minor;
}

bool
td_cuda_counting_kernel (TdCuda *c, TdCudaKernel *kernel)
{
  TdCudaSource source = { NULL, td_counting_texts, c->major, c->minor };
  TdCudaCode code = { 0 };
  char text[300];

  if (!serves (c) || kernel->unavailable)
    return false;
  if (kernel->handle != NULL)
    return true;
  source.text = text;
  if (!td_cuda_counting_text (kernel->name, text, sizeof text))
    say_failure (c, kernel, "it is in no file");
  else if (!td_cuda_nvrtc_find (&source, &code) && !compile (c, &source, &code))
    say_failure (c, kernel, code.log);
  else if (load (kernel, &code) != CUDA_SUCCESS)
    say_failure (c, kernel, "the driver does not load it");
  td_cuda_code_clear (&code);
  kernel->unavailable = kernel->handle == NULL;
  return !kernel->unavailable;
}
