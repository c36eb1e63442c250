/* Kernels made at run time, without a device: every formula, and chains as schedules make them,
 * compiled for the card by NVRTC, none of them spilling; the disk cache; what has no text.
 *
 * SPDX-License-Identifier: MIT */
#include "disk-cache.h"
#include "fused-source.h"
#include "scalar-ops.h"
#include "libraries.h"
#include "nvrtc-code.h"
#include "cuda-device.h"
#include "td-test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

TdCudaApi td_cuda;
const TdModuleHost *td_cuda_host;

enum
{
  MANY = 200
};

/* A program being written down: operands first, then slots. */
typedef struct
{
  TdTileStep steps[MANY];
  int64_t period[64];
  TdProgram p;
} Draft;

static void
draft (Draft *d, uint32_t n_operands, uint32_t n_slots)
{
  *d = (Draft){ 0 };
  d->p = (TdProgram){ .steps = d->steps,
                      .period = d->period,
                      .n_operands = n_operands,
                      .n_slots = n_slots,
                      .size = 1000 };
}

static TdTileStep *
step (Draft *d, TdTileFamily family, int kind, TdDtype dtype, uint32_t x, uint32_t y,
      uint32_t z)
{
  TdTileStep *s = &d->steps[d->p.n_steps++];

  *s = (TdTileStep){ .call = { .family = (uint8_t)family,
                               .kind = (uint8_t)kind,
                               .dtype = (uint8_t)dtype,
                               .p = 0.5,
                               .q = 2 },
                     .x = x,
                     .y = y,
                     .z = z,
                     .addend = UINT32_MAX };
  return s;
}

/* A fused group's text, for sm_90. */
static TdCudaSource
fused (const char *text)
{
  return (TdCudaSource){ text, td_fused_texts, 9, 0 };
}

/* Compile for sm_90.  Returns the log; the caller's. */
static char *
compile (const TdCudaSource *source)
{
  TdCudaCode code;
  char *log;

  if (!td_cuda_nvrtc_compile (source, &code))
    fail_msg ("%s\n%s", source->text, code.log);
  assert_true (code.bytes > 1000);
  assert_memory_equal (code.data, "\177ELF", 4);
  assert_false (code.from_disk);
  log = strdup (code.log);
  td_cuda_code_clear (&code);
  return log;
}

static void
assert_source_does_not_spill (const TdCudaSource *source, const char *name)
{
  char *log = compile (source);

  if (strstr (log, name) == NULL
      || strstr (log, " 0 bytes spill stores, 0 bytes spill loads") == NULL)
    {
      puts (log);
      fail_msg ("%s", name);
    }
  free (log);
}

static void
assert_text_does_not_spill (const char *text, const char *name)
{
  const TdCudaSource source = fused (text);

  assert_source_does_not_spill (&source, name);
}

/* Nor does the twin that counts what it writes. */
static void
assert_no_spills (const Draft *d)
{
  TdFused f;
  char name[32], *twin;

  assert_true (td_cuda_fused_write (&d->p, &f));
  assert_text_does_not_spill (f.text, f.name);
  if (f.n_with_stats > 0)
    {
      twin = td_cuda_fused_twin (f.text, f.name, name);
      assert_non_null (twin);
      assert_string_not_equal (name, f.name);
      assert_text_does_not_spill (twin, name);
      free (twin);
    }
  td_cuda_fused_clear (&f);
}

/* All formulas of a family, in one kernel: each reads input 0 and is added up. */
static void
every_formula (TdTileFamily family, TdDtype dtype)
{
  const int n = family == TD_TILE_BINARY ? TD_BINARY_N : TD_UNARY_N;
  const int first = family == TD_TILE_GRAD ? TD_UNARY_LEAKY_RELU : 0;
  Draft d;

  draft (&d, 3, 1);
  step (&d, TD_TILE_UNARY, TD_UNARY_COPY, dtype, 0, 0, 2);
  for (int kind = first; kind < n; kind++)
    {
      step (&d, family, kind, dtype, 0, 1, 3);
      step (&d, TD_TILE_BINARY, TD_BINARY_ADD, dtype, 2, 3, 2);
    }
  assert_no_spills (&d);
}

static void
nvrtc__compiles_every_formula_without_spills (void **state)
{
  for (int family = TD_TILE_UNARY; family <= TD_TILE_BINARY; family++)
    for (int dtype = TD_F32; dtype <= TD_BF16; dtype++)
      every_formula ((TdTileFamily)family, (TdDtype)dtype);
}

static void
nvrtc__compiles_every_formula_of_integers_without_spills (void **state)
{
#define UNARY(kind, formula) TD_UNARY_##kind,
#define BINARY(kind, formula) TD_BINARY_##kind,
  static const int unary[] = { TD_UNARY_INT (UNARY, i32) },
                   binary[] = { TD_BINARY_INT (BINARY, i32) };

  for (int wide = 0; wide < 2; wide++)
    {
      const TdDtype dtype = wide ? TD_I64 : TD_I32;
      Draft d;

      draft (&d, 3, 1);
      step (&d, TD_TILE_UNARY, TD_UNARY_COPY, dtype, 0, 0, 2);
      for (size_t k = 0; k < sizeof unary / sizeof *unary; k++)
        {
          step (&d, TD_TILE_UNARY, unary[k], dtype, 0, 0, 3);
          step (&d, TD_TILE_BINARY, TD_BINARY_ADD, dtype, 2, 3, 2);
        }
      for (size_t k = 0; k < sizeof binary / sizeof *binary; k++)
        {
          step (&d, TD_TILE_BINARY, binary[k], dtype, 0, 1, 3);
          step (&d, TD_TILE_BINARY, TD_BINARY_ADD, dtype, 2, 3, 2);
        }
      assert_no_spills (&d);
    }
}

/* From every type to every type and back, in one kernel for each. */
static void
nvrtc__compiles_casts_of_all_types_without_spills (void **state)
{
  for (int from = TD_F32; from <= TD_BOOL; from++)
    {
      Draft d;

      draft (&d, 2 + TD_BOOL + 1, 1);
      for (int to = TD_F32; to <= TD_BOOL; to++)
        {
          step (&d, TD_TILE_CAST, from, (TdDtype)to, 0, 0, 2 + (uint32_t)to);
          step (&d, TD_TILE_CAST, to, (TdDtype)from, 2 + (uint32_t)to, 0, 1);
        }
      assert_no_spills (&d);
    }
}

/* What mixed precision has between two products: a bias in fp32 added to halves, gelu, dropout,
 * a choice by a byte, a sum that some call adds to; two masks, so that two sets of bits live.
 */
static void
nvrtc__compiles_random_masks_of_every_type_without_spills (void **state)
{
  for (int dtype = TD_F32; dtype <= TD_BF16; dtype++)
    {
      const TdDtype t = (TdDtype)dtype;
      TdFused f;
      Draft d;

      draft (&d, 5, 3);
      d.period[1] = 100;
      step (&d, TD_TILE_CAST, TD_F32, t, 1, 0, 5);
      step (&d, TD_TILE_BINARY, TD_BINARY_ADD, t, 0, 5, 6);
      step (&d, TD_TILE_UNARY, TD_UNARY_GELU, t, 6, 0, 6);
      step (&d, TD_TILE_MASK, 0, t, 6, 0, 6)->draw = 1;
      step (&d, TD_TILE_MASK, 0, t, 0, 0, 7);
      step (&d, TD_TILE_SELECT, TD_BOOL, t, 6, 7, 3)->c = 2;
      step (&d, TD_TILE_MASK, 0, t, 7, 0, 4)->may_add = true;
      assert_no_spills (&d);
      assert_true (td_cuda_fused_write (&d.p, &f));
      assert_int_equal (f.n_draws, 2);
      assert_int_equal (f.n_numbers, 6);
      assert_int_equal (f.pack, t == TD_F64 ? 2 : 4);
      assert_true (f.number[0] == (t == TD_F64 ? 0.5 : 8388608) && f.number[1] == 2);
      td_cuda_fused_clear (&f);
    }
}

/* Conditions that are numbers, or integers from outside; one of both, read by another step. */
static void
nvrtc__compiles_a_choice_by_numbers_and_by_integers_without_spills (void **state)
{
  for (int dtype = TD_F32; dtype <= TD_F64; dtype++)
    {
      const int integer = dtype == TD_F32 ? TD_I32 : TD_I64;
      TdFused f;
      Draft d;

      draft (&d, 5, 2);
      d.period[2] = 1;
      step (&d, TD_TILE_BINARY, TD_BINARY_GT, (TdDtype)dtype, 0, 2, 5);
      step (&d, TD_TILE_SELECT, dtype, (TdDtype)dtype, 0, 1, 6)->c = 5;
      step (&d, TD_TILE_SELECT, integer, (TdDtype)dtype, 6, 2, 4)->c = 3;
      assert_no_spills (&d);
      assert_true (td_cuda_fused_write (&d.p, &f));
      assert_non_null (strstr (f.text, dtype == TD_F32 ? "v6_f32 = holds (v5_f32) ? v0 : v1;"
                                                       : "v6_f64 = holds (v5_f64) ? v0 : v1;"));
      assert_non_null (strstr (f.text, dtype == TD_F32 ? "v4 = holds (v3) ? v6_f32 : v2;"
                                                       : "v4 = holds (v3) ? v6_f64 : v2;"));
      assert_int_equal (f.reads, 1 | 2 | 4 | 8);
      td_cuda_fused_clear (&f);
      d.steps[2].call.kind = TD_BOOL; /* of another width */
      assert_no_spills (&d);
    }
}

/* A chain of 100 with as many operands as there may be: some read, some written, one number
 * and one row among them, one that some call adds to. */
static void
nvrtc__compiles_the_widest_program_without_spills (void **state)
{
  for (int dtype = TD_F32; dtype <= TD_BF16; dtype++)
    {
      const uint32_t n_in = 12, n = TD_FUSED_OPERANDS;
      Draft d;

      draft (&d, n, 4);
      d.period[3] = 1;
      d.period[5] = 10;
      for (uint32_t i = 0; i < 96; i++)
        step (&d, TD_TILE_BINARY, i % 3 == 0 ? TD_BINARY_MUL : TD_BINARY_ADD, (TdDtype)dtype,
              i < 4 ? i : n + i % 4, i % n_in, n + i % 4);
      for (uint32_t k = n_in; k < n; k++)
        step (&d, TD_TILE_UNARY, TD_UNARY_TANH, (TdDtype)dtype, n + k % 4, 0, k)->may_add
            = k == n_in;
      step (&d, TD_TILE_UNARY, TD_UNARY_SIGMOID, (TdDtype)dtype, n, 0, 0)->call.accumulate
          = true;
      assert_no_spills (&d);
    }
}

/* Sizes and parameters are not in the text; the form is. */
static void
fused__programs_of_one_form_share_a_text (void **state)
{
  TdFused a, b, c;
  Draft d;

  draft (&d, 2, 0);
  step (&d, TD_TILE_UNARY, TD_UNARY_MUL_SCALAR, TD_F32, 0, 0, 1);
  assert_true (td_cuda_fused_write (&d.p, &a));
  d.p.size = 77;
  d.steps[0].call.p = 3;
  assert_true (td_cuda_fused_write (&d.p, &b));
  d.steps[0].call.kind = TD_UNARY_ADD_SCALAR;
  assert_true (td_cuda_fused_write (&d.p, &c));
  assert_string_equal (a.text, b.text);
  assert_string_equal (a.name, b.name);
  assert_string_not_equal (a.name, c.name);
  assert_true (a.n_numbers == 1 && a.number[0] == 0.5 && b.number[0] == 3);
  assert_true (a.reads == 1 && a.writes == 2 && a.repeated == 0);
  td_cuda_fused_clear (&a);
  td_cuda_fused_clear (&b);
  td_cuda_fused_clear (&c);
}

/* The n-th next call for memory fails; 0: none. */
static int missing;

static bool
is_missing (void)
{
  return missing > 0 && --missing == 0;
}

#define WRAP(type, name, parameters, arguments)                                                \
  type __real_##name parameters;                                                               \
  type __wrap_##name parameters;                                                               \
  type __wrap_##name parameters                                                                \
  {                                                                                            \
    return is_missing () ? NULL : __real_##name arguments;                                     \
  }
WRAP (void *, malloc, (size_t bytes), (bytes))
WRAP (void *, calloc, (size_t n, size_t bytes), (n, bytes))
WRAP (FILE *, open_memstream, (char **text, size_t *n), (text, n))

static void
fused__without_memory_is_no_kernel (void **state)
{
  TdFused f;
  Draft d;
  int n = 1;

  draft (&d, 2, 0);
  step (&d, TD_TILE_UNARY, TD_UNARY_RELU, TD_F32, 0, 0, 1);
  for (missing = n; !td_cuda_fused_write (&d.p, &f); missing = ++n)
    assert_true (f.text == NULL && n < 10);
  missing = 0;
  assert_int_equal (n, 5); /* places, text, its steps, the whole */
  assert_non_null (strstr (f.text, f.name + strlen ("td_")));
  td_cuda_fused_clear (&f);
}

static void
fused__refuses_what_is_no_kernel (void **state)
{
  TdFused f;
  Draft d;

  draft (&d, 2, 1);
  assert_false (td_cuda_fused_write (&d.p, &f)); /* nothing */
  step (&d, TD_TILE_UNARY, TD_UNARY_RELU, TD_F32, 0, 0, 1);
  assert_true (td_cuda_fused_write (&d.p, &f));
  td_cuda_fused_clear (&f);
  d.steps[0].call.dtype = TD_U8; /* of which there is no arithmetic */
  assert_false (td_cuda_fused_write (&d.p, &f));
  d.steps[0].call.dtype = TD_I32;
  assert_true (td_cuda_fused_write (&d.p, &f));
  td_cuda_fused_clear (&f);
  d.steps[0].call.kind = TD_UNARY_SQRT; /* nor this of integers */
  assert_false (td_cuda_fused_write (&d.p, &f));
  d.steps[0].call.kind = TD_UNARY_RELU;
  d.steps[0].call.dtype = TD_F32;
  d.steps[0].call.family = TD_TILE_GRAD; /* relu's slope is a kernel of two inputs */
  assert_false (td_cuda_fused_write (&d.p, &f));
  d.steps[0].call.family = TD_TILE_UNARY;
  d.steps[0].x = 2; /* a slot in which nothing is */
  assert_false (td_cuda_fused_write (&d.p, &f));
  d.steps[0].x = 0;
  d.steps[0].call.family = TD_TILE_CAST;
  d.steps[0].call.kind = TD_BF16;
  d.steps[0].z = 2;
  step (&d, TD_TILE_UNARY, TD_UNARY_RELU, TD_F32, 0, 0, 1); /* x is halves, and floats */
  assert_false (td_cuda_fused_write (&d.p, &f));
  d.steps[1].x = 2;
  assert_true (td_cuda_fused_write (&d.p, &f));
  td_cuda_fused_clear (&f);
  d.steps[1].call.dtype = TD_F64; /* of what is a float */
  assert_false (td_cuda_fused_write (&d.p, &f));
  d.steps[0].z = 1;
  d.steps[0].call.family = TD_TILE_MASK;
  d.steps[0].call.dtype = TD_I32; /* no mask has integers */
  d.p.n_steps = 1;
  assert_false (td_cuda_fused_write (&d.p, &f));
  d.steps[0].call.dtype = TD_F16;
  d.steps[0].draw = TD_FUSED_DRAWS;
  assert_false (td_cuda_fused_write (&d.p, &f));
  d.steps[0].draw = TD_FUSED_DRAWS - 1;
  assert_true (td_cuda_fused_write (&d.p, &f));
  td_cuda_fused_clear (&f);
  d.steps[0].call.family = TD_TILE_UNARY;
  d.steps[0].call.kind = TD_UNARY_RELU;
  d.steps[0].call.dtype = TD_F32;
  d.period[1] = 1; /* one number, written by all */
  assert_false (td_cuda_fused_write (&d.p, &f));
  d.period[1] = 0;
  d.p.n_operands = TD_FUSED_OPERANDS + 1;
  assert_false (td_cuda_fused_write (&d.p, &f));
  d.p.n_operands = 2;
  for (int i = 0; i < TD_FUSED_NUMBERS; i++)
    step (&d, TD_TILE_UNARY, TD_UNARY_ADD_SCALAR, TD_F32, 0, 0, 1);
  assert_true (td_cuda_fused_write (&d.p, &f));
  td_cuda_fused_clear (&f);
  step (&d, TD_TILE_UNARY, TD_UNARY_ADD_SCALAR, TD_F32, 0, 0, 1);
  assert_false (td_cuda_fused_write (&d.p, &f));
}

/* The first four arrays of floating numbers among those that are written. */
static void
fused__counts_what_floats_it_writes (void **state)
{
  char name[32], *twin;
  TdFused f;
  Draft d;

  draft (&d, 8, 0);
  step (&d, TD_TILE_CAST, TD_F32, TD_I32, 0, 0, 1);
  step (&d, TD_TILE_CAST, TD_F32, TD_BF16, 0, 0, 2);
  assert_true (td_cuda_fused_write (&d.p, &f));
  assert_true (f.n_with_stats == 1 && f.with_stats[0] == 2);
  assert_non_null (strstr (f.text, "#define TD_FUSED_WITH_STATS(X) X (0, 2, float)\n"));
  assert_non_null (strstr (f.text, "      TD_FUSED_SEE (2, at (v2));\n"));
  assert_null (strstr (f.text, "TD_FUSED_SEE (1"));
  twin = td_cuda_fused_twin (f.text, f.name, name);
  assert_non_null (twin);
  assert_string_not_equal (twin, f.text);
  assert_non_null (strstr (twin, f.text));
  assert_memory_equal (name, "td_count_fused_", 15);
  assert_string_equal (name + 9, f.name + 3); /* all of its digits */
  free (twin);
  td_cuda_fused_clear (&f);
  for (uint32_t k = 3; k < 8; k++)
    step (&d, TD_TILE_CAST, TD_F32, k == 4 ? TD_F64 : TD_F32, 0, 0, k);
  assert_true (td_cuda_fused_write (&d.p, &f));
  assert_int_equal (f.n_with_stats, TD_FUSED_COUNTS);
  assert_memory_equal (f.with_stats, ((uint8_t[]){ 2, 3, 4, 5 }), 4);
  assert_non_null (strstr (f.text, " X (2, 4, double)"));
  td_cuda_fused_clear (&f);
}

/* --- kernels of our files that gather statistics --- */

/* One of each file, type and structure that registers depend on. */
static const char *const counting[] = {
  "td_count_unary_RELU_f32",
  "td_count_unary_TANH_f64",
  "td_count_unary_GELU_f16",
  "td_count_unary_EXP_bf16",
  "td_count_unary_grad_GELU_f32",
  "td_count_unary_grad_SILU_f64",
  "td_count_binary_ADD_f32",
  "td_count_binary_MUL_f16",
  "td_count_cast_f32_bf16",
  "td_count_cast_i64_f64",
  "td_count_sum_along_f32",
  "td_count_scan_along_f16",
  "td_count_softmax_f32",
  "td_count_softmax_grad_f64",
  "td_count_loss_f32",
  "td_count_loss_grad_bf16",
  "td_count_lstm_f32",
  "td_count_lstm_grad_f64",
  "td_count_gather_f32",
  "td_count_select_bf16",
  "td_count_row_norm_f32",
  "td_count_norm_of_sum_f16",
  "td_count_row_norm_grad_f64",
  "td_count_norm_grad_to_sum_bf16",
  "td_count_pool_max_2d_f32",
  "td_count_pool_average_grad_6d_f16",
  "td_count_batch_norm_train_f32",
  "td_count_batch_norm_last_scale_f16",
};

static double
now (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void
nvrtc__compiles_kernels_that_count_without_spills (void **state)
{
  for (size_t i = 0; i < sizeof counting / sizeof counting[0]; i++)
    {
      char text[300];
      const TdCudaSource source = { text, td_counting_texts, 9, 0 };
      const double start = now ();

      assert_true (td_cuda_counting_text (counting[i], text, sizeof text));
      assert_source_does_not_spill (&source, counting[i]);
      print_message ("%s: %.2f s\n", counting[i], now () - start);
    }
}

static void
counting__has_a_text_for_every_name (void **state)
{
  char text[300];

  for (size_t i = 0; i < sizeof counting / sizeof counting[0]; i++)
    assert_true (td_cuda_counting_text (counting[i], text, sizeof text));
  assert_true (td_cuda_counting_text ("td_count_cast_f32_f16", text, sizeof text));
  assert_string_equal (text, "#define TD_KERNELS_COUNT\n#define TD_KERNELS_ONE\n"
                             "#define TD_PICK_cast_f32_f16 ~,\n#define TD_KERNELS_HALF\n"
                             "#include \"cast.cu\"\n");
  assert_false (td_cuda_counting_text ("td_unary_RELU_f32", text, sizeof text));
  assert_false (td_cuda_counting_text ("td_count_rows", text, sizeof text));
  assert_false (td_cuda_counting_text (counting[0], text, 20));
}

/* What the compiler has against a text is in the log. */
static void
nvrtc__says_what_is_wrong (void **state)
{
  const TdCudaSource bad
      = fused ("#define TD_FUSED_DOUBLE 0\n#include \"fused.cuh\"\nnonsense");
  TdCudaCode code;

  assert_false (td_cuda_nvrtc_compile (&bad, &code));
  assert_non_null (strstr (code.log, "nonsense"));
  assert_null (code.data);
  td_cuda_code_clear (&code);
}

/* --- the disk cache --- */

static const char *folder;

static void
cache_open (void)
{
  folder = td_test_tmp ("cache");
  assert_int_equal (mkdir (folder, 0700), 0);
  setenv ("TAPEDECK_CUDA_CACHE", folder, 1);
}

/* How many files are there, and one of them. */
static int
files (char *path, size_t room)
{
  DIR *d = opendir (folder);
  struct dirent *entry;
  int n = 0;

  assert_non_null (d);
  while ((entry = readdir (d)) != NULL)
    if (entry->d_name[0] != '.')
      {
        snprintf (path, room, "%s/%s", folder, entry->d_name);
        n++;
      }
  closedir (d);
  return n;
}

static void
cache_close (void)
{
  setenv ("TAPEDECK_CUDA_CACHE", "off", 1);
}

static void
cache__gives_back_what_was_compiled (void **state)
{
  TdCudaCode first, second;
  char path[400], name[32], *twin;
  TdCudaSource source;
  TdFused f;
  Draft d;

  cache_open ();
  draft (&d, 2, 0);
  step (&d, TD_TILE_UNARY, TD_UNARY_RELU, TD_F32, 0, 0, 1);
  assert_true (td_cuda_fused_write (&d.p, &f));
  source = fused (f.text);
  assert_false (td_cuda_nvrtc_find (&source, &first));
  assert_true (td_cuda_nvrtc_compile (&source, &first));
  assert_false (first.from_disk);
  assert_int_equal (files (path, sizeof path), 1);
  assert_true (td_cuda_nvrtc_find (&source, &second));
  assert_true (second.from_disk);
  assert_int_equal (first.bytes, second.bytes);
  assert_memory_equal (first.data, second.data, first.bytes);
  td_cuda_code_clear (&second);
  /* Another architecture is another file. */
  source.major = 10;
  assert_true (td_cuda_nvrtc_compile (&source, &second));
  assert_false (second.from_disk);
  assert_int_equal (files (path, sizeof path), 2);
  td_cuda_code_clear (&second);
  /* So is the twin that counts. */
  twin = td_cuda_fused_twin (f.text, f.name, name);
  assert_non_null (twin);
  source = fused (twin);
  assert_true (td_cuda_nvrtc_compile (&source, &second));
  assert_false (second.from_disk);
  assert_int_equal (files (path, sizeof path), 3);
  free (twin);
  td_cuda_code_clear (&first);
  td_cuda_code_clear (&second);
  td_cuda_fused_clear (&f);
  cache_close ();
}

/* Both times are printed. */
static void
cache__gives_back_a_kernel_that_counts (void **state)
{
  char text[300];
  const TdCudaSource source = { text, td_counting_texts, 9, 0 };
  TdCudaCode first, second;
  double compiling, finding;

  cache_open ();
  assert_true (td_cuda_counting_text ("td_count_row_norm_f32", text, sizeof text));
  assert_false (td_cuda_nvrtc_find (&source, &first));
  compiling = -now ();
  assert_true (td_cuda_nvrtc_compile (&source, &first));
  compiling += now ();
  finding = -now ();
  assert_true (td_cuda_nvrtc_find (&source, &second));
  finding += now ();
  print_message ("a kernel of %zu bytes: compiled in %.2f s, found in %.2f ms\n", first.bytes,
                 compiling, 1e3 * finding);
  assert_int_equal (first.bytes, second.bytes);
  assert_memory_equal (first.data, second.data, first.bytes);
  td_cuda_code_clear (&first);
  td_cuda_code_clear (&second);
  cache_close ();
}

static void
cache__ignores_damaged_files (void **state)
{
  static const char value[] = "a value of some length";
  unsigned char bytes[200];
  const void *found;
  char path[400];
  size_t n, size;
  FILE *f;

  cache_open ();
  td_cuda_cache_write ("plan", "key", 3, value, sizeof value);
  assert_int_equal (files (path, sizeof path), 1);
  f = fopen (path, "rb");
  assert_non_null (f);
  n = fread (bytes, 1, sizeof bytes, f);
  fclose (f);
  assert_int_equal (n, 24 + 3 + sizeof value);
  assert_null (td_cuda_cache_parse (bytes, n, "key", 3, &found, &size));
  assert_int_equal (size, sizeof value);
  assert_memory_equal (found, value, sizeof value);
  assert_null (td_cuda_cache_parse (bytes, n, "kex", 3, &found, &size));
  assert_null (found); /* another key: nothing is wrong with the file */
  for (size_t i = 0; i < n; i++)
    {
      bytes[i] ^= 0x20;
      assert_non_null (td_cuda_cache_parse (bytes, n, "key", 3, &found, &size));
      assert_null (found);
      bytes[i] ^= 0x20;
      assert_non_null (td_cuda_cache_parse (bytes, i, "key", 3, &found, &size));
    }
  /* On disk: told of in one line, and not there. */
  assert_int_equal (truncate (path, (off_t)n - 1), 0);
  assert_null (td_cuda_cache_read ("plan", "key", 3, &size));
  td_cuda_cache_write ("plan", "key", 3, value, sizeof value);
  found = td_cuda_cache_read ("plan", "key", 3, &size);
  assert_non_null (found);
  free ((void *)(uintptr_t)found);
  cache_close ();
}

/* With an argument: what needs NVRTC, which compiles. */
int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (fused__programs_of_one_form_share_a_text),
    cmocka_unit_test (fused__without_memory_is_no_kernel),
    cmocka_unit_test (fused__refuses_what_is_no_kernel),
    cmocka_unit_test (fused__counts_what_floats_it_writes),
    td_test (cache__ignores_damaged_files),
    cmocka_unit_test (counting__has_a_text_for_every_name),
  };
  const struct CMUnitTest compiled[] = {
    cmocka_unit_test (nvrtc__compiles_every_formula_without_spills),
    cmocka_unit_test (nvrtc__compiles_every_formula_of_integers_without_spills),
    cmocka_unit_test (nvrtc__compiles_casts_of_all_types_without_spills),
    cmocka_unit_test (nvrtc__compiles_random_masks_of_every_type_without_spills),
    cmocka_unit_test (nvrtc__compiles_a_choice_by_numbers_and_by_integers_without_spills),
    cmocka_unit_test (nvrtc__compiles_the_widest_program_without_spills),
    cmocka_unit_test (nvrtc__compiles_kernels_that_count_without_spills),
    cmocka_unit_test (nvrtc__says_what_is_wrong),
    td_test (cache__gives_back_a_kernel_that_counts),
    td_test (cache__gives_back_what_was_compiled),
  };

  setenv ("TAPEDECK_CUDA_CACHE", "off", 1);
  if (argc < 2)
    return cmocka_run_group_tests_name ("fused", tests, NULL, NULL);
  if (!td_cuda_nvrtc_here ())
    {
      puts ("libnvrtc.so.13 is not here: kernels are not compiled");
      return 77;
    }
  return cmocka_run_group_tests_name ("nvrtc", compiled, NULL, NULL);
}
