/* cuDNN's plans for a GPU that is only described: what a graph's attributes are wrong in, it
 * says here as it would there.  No device, no driver.
 *
 * SPDX-License-Identifier: MIT */
#include "cudnn.h"

#include "h200.h"
#include "libraries.h"
#include "td-test.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One convolution: sizes of x and W, and windows the same along every axis. */
typedef struct
{
  const char *name;
  int ndim;
  int64_t n, c, size, out, ksize;
  int stride, pad, dilate, groups;
} Case;

static const Case cases[] = {
  { "LeNet's first", 2, 64, 1, 28, 6, 5, 1, 2, 1, 1 },
  { "LeNet's second", 2, 64, 6, 14, 16, 5, 1, 0, 1, 1 },
  { "ResNet's stem", 2, 32, 3, 224, 64, 7, 2, 3, 1, 1 },
  { "3x3", 2, 32, 64, 56, 64, 3, 1, 1, 1, 1 },
  { "1x1", 2, 32, 64, 56, 256, 1, 1, 0, 1, 1 },
  { "strided 1x1", 2, 32, 256, 56, 512, 1, 2, 0, 1, 1 },
  { "dilated", 2, 8, 16, 20, 16, 3, 1, 2, 2, 1 },
  { "grouped", 2, 8, 32, 20, 32, 3, 1, 1, 1, 4 },
  { "depthwise", 2, 8, 32, 20, 32, 3, 1, 1, 1, 32 },
  { "one axis", 1, 8, 16, 100, 32, 5, 2, 2, 1, 1 },
  { "three axes", 3, 2, 4, 12, 8, 3, 1, 1, 1, 1 },
};

static TdLayout layout; /* of the keys that are made */

static void
make_key (TdCudnnConv *key, const Case *c, TdConvKind kind, TdDtype dtype, bool tf32)
{
  TdShape shapes[3]
      = { { .ndim = c->ndim + 2 }, { .ndim = c->ndim + 2 }, { .ndim = c->ndim + 2 } };
  TdTensor t[3], in[2];
  TdConv attrs = { .ndim = c->ndim, .groups = c->groups, .layout = (uint8_t)layout };
  int64_t to = (c->size + 2 * c->pad - c->dilate * (c->ksize - 1) - 1) / c->stride + 1;
  const int64_t first[3][2]
      = { { c->n, c->c }, { c->out, c->c / c->groups }, { c->n, c->out } };
  const int64_t rest[3] = { c->size, c->ksize, to };

  for (int i = 0; i < 3; i++)
    {
      t[i] = (TdTensor){ .shape = &shapes[i], .size = 1, .dtype = dtype };
      for (int k = 0; k < c->ndim + 2; k++)
        t[i].size *= shapes[i].dim[k] = k < 2 ? first[i][k] : rest[i];
    }
  for (int k = 0; k < c->ndim; k++)
    {
      attrs.stride[k] = c->stride;
      attrs.pad[k] = c->pad;
      attrs.dilate[k] = c->dilate;
    }
  in[0] = t[kind == TD_CONV_DATA_GRAD ? 1 : 0];
  in[1] = t[kind == TD_CONV_FORWARD ? 1 : 2];
  assert_true (td_cudnn_conv_key (key, kind, &attrs, in, 2,
                                  &t[kind == TD_CONV_FORWARD     ? 2
                                     : kind == TD_CONV_DATA_GRAD ? 0
                                                                 : 1],
                                  tf32));
}

static void
plan_all_in (TdLayout in, TdDtype dtype, bool tf32)
{
  layout = in;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    for (int kind = TD_CONV_FORWARD; kind <= TD_CONV_WEIGHT_GRAD; kind++)
      {
        TdCudnnConv key;
        TdCudnnPlanned planned;

        make_key (&key, &cases[i], (TdConvKind)kind, dtype, tf32);
        if (!td_cudnn_conv_plan_deviceless (&key, td_h200, 1, &planned))
          fail_msg ("%s, kind %d: %d engines, %d exact, no plan: %s", cases[i].name, kind,
                    planned.n_engines, planned.n_exact, planned.why);
        assert_true (planned.n_exact >= 1 && planned.n_exact <= planned.n_engines);
      }
}

static void
plan_all (TdDtype dtype, bool tf32)
{
  plan_all_in (TD_CHANNELS_LAST, dtype, tf32);
  plan_all_in (TD_ROW_MAJOR, dtype, tf32);
}

static void
cudnn__plans_exact_fp32_convolutions (void **state)
{
  plan_all (TD_F32, false);
}

static void
cudnn__plans_tf32_convolutions (void **state)
{
  plan_all (TD_F32, true);
}

static void
cudnn__plans_bf16_convolutions (void **state)
{
  plan_all (TD_BF16, false);
}

static void
cudnn__plans_fp16_convolutions (void **state)
{
  plan_all (TD_F16, false);
}

/* Without tf32 the engines on tensor cores are out; with it they are in. */
static void
cudnn__keeps_fp32_off_tensor_cores_unless_told (void **state)
{
  TdCudnnConv key;
  TdCudnnPlanned exact, fast;

  make_key (&key, &cases[3], TD_CONV_FORWARD, TD_F32, false);
  assert_true (td_cudnn_conv_plan_deviceless (&key, td_h200, 1, &exact));
  make_key (&key, &cases[3], TD_CONV_FORWARD, TD_F32, true);
  assert_true (td_cudnn_conv_plan_deviceless (&key, td_h200, 1, &fast));
  assert_true (exact.n_exact < fast.n_exact);
}

/* The reason for channels-last arrays: no copies in another order inside the library. */
static void
cudnn__needs_next_to_no_workspace_for_channels_last_convolutions (void **state)
{
  static const struct
  {
    TdDtype dtype;
    bool tf32;
  } ways[] = { { TD_F32, true }, { TD_BF16, false }, { TD_F16, false } };

  for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
    for (int kind = TD_CONV_FORWARD; kind <= TD_CONV_WEIGHT_GRAD; kind++)
      {
        TdCudnnPlanned rows, last;
        TdCudnnConv key;

        layout = TD_ROW_MAJOR;
        make_key (&key, &cases[3], (TdConvKind)kind, ways[i].dtype, ways[i].tf32);
        assert_true (td_cudnn_conv_plan_deviceless (&key, td_h200, 1, &rows));
        layout = TD_CHANNELS_LAST;
        make_key (&key, &cases[3], (TdConvKind)kind, ways[i].dtype, ways[i].tf32);
        assert_true (td_cudnn_conv_plan_deviceless (&key, td_h200, 1, &last));
        layout = TD_ROW_MAJOR;
        print_message (
            "dtype %d, kind %d: workspace %lld bytes row-major, %lld channels-last\n",
            (int)ways[i].dtype, kind, (long long)rows.workspace_bytes,
            (long long)last.workspace_bytes);
        assert_true (rows.workspace_bytes > 20000000);
        assert_true (last.workspace_bytes < 1000000);
      }
}

/* What follows a convolution in one graph: its own bias in define-by-run code; in schedules
 * relu too, and what goes round a residual block. */
static const struct
{
  const char *name;
  bool added, bias, relu;
} ends[] = {
  { "bias", false, true, false },
  { "bias, relu", false, true, true },
  { "sum, bias, relu", true, true, true },
};

static void
cudnn__plans_convolutions_with_their_ends (void **state)
{
  static const struct
  {
    TdDtype dtype;
    bool tf32;
  } ways[] = { { TD_F32, true }, { TD_F32, false }, { TD_BF16, false }, { TD_F16, false } };

  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++)
      for (size_t e = 0; e < sizeof ends / sizeof ends[0]; e++)
        {
          TdCudnnConv key;
          TdCudnnPlanned planned;

          layout = TD_CHANNELS_LAST;
          make_key (&key, &cases[i], TD_CONV_FORWARD, ways[w].dtype, ways[w].tf32);
          key.added = ends[e].added;
          key.bias = ends[e].bias;
          key.relu = ends[e].relu;
          if (!td_cudnn_conv_plan_deviceless (&key, td_h200, 1, &planned))
            fail_msg ("%s with %s, dtype %d: %d engines, %d exact, no plan: %s", cases[i].name,
                      ends[e].name, (int)ways[w].dtype, planned.n_engines, planned.n_exact,
                      planned.why);
        }
}

/* The end costs no memory: the same as of the convolution by itself. */
static void
cudnn__needs_no_more_workspace_for_an_end (void **state)
{
  static const struct
  {
    TdDtype dtype;
    bool tf32;
  } ways[] = { { TD_F32, true }, { TD_BF16, false }, { TD_F16, false } };

  layout = TD_CHANNELS_LAST;
  for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++)
    for (size_t e = 0; e < sizeof ends / sizeof ends[0]; e++)
      {
        TdCudnnConv key;
        TdCudnnPlanned plain, ended;

        make_key (&key, &cases[3], TD_CONV_FORWARD, ways[w].dtype, ways[w].tf32);
        assert_true (td_cudnn_conv_plan_deviceless (&key, td_h200, 1, &plain));
        key.added = ends[e].added;
        key.bias = ends[e].bias;
        key.relu = ends[e].relu;
        assert_true (td_cudnn_conv_plan_deviceless (&key, td_h200, 1, &ended));
        assert_true (ended.workspace_bytes < 1000);
        assert_true (ended.workspace_bytes <= plain.workspace_bytes + 1000);
      }
}

/* What a second gradient of the same filters is: added in the kernel, to what lies there. */
static void
cudnn__plans_weight_gradients_that_add (void **state)
{
  static const TdDtype dtypes[] = { TD_F32, TD_BF16, TD_F16 };

  layout = TD_CHANNELS_LAST;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++)
      {
        TdCudnnConv key;
        TdCudnnPlanned planned;

        make_key (&key, &cases[i], TD_CONV_WEIGHT_GRAD, dtypes[d], true);
        key.accumulate = true;
        if (!td_cudnn_conv_plan_deviceless (&key, td_h200, 1, &planned))
          fail_msg ("%s, dtype %d: %d engines, %d exact, no plan: %s", cases[i].name,
                    (int)dtypes[d], planned.n_engines, planned.n_exact, planned.why);
      }
}

static void
is_nan__knows_every_type (void **state)
{
  const float f32[] = { NAN, -NAN, INFINITY, -INFINITY, 0, -1 };
  const double f64[] = { NAN, -NAN, INFINITY, -INFINITY, 0, -1 };
  const uint16_t f16[] = { 0xffff, 0x7e00, 0x7c00, 0xfc00, 0, 0xbc00 };
  const uint16_t bf16[] = { 0xffff, 0x7fc0, 0x7f80, 0xff80, 0, 0xbf80 };

  for (int i = 0; i < 6; i++)
    {
      assert_int_equal (td_cudnn_is_nan (&f32[i], TD_F32), i < 2);
      assert_int_equal (td_cudnn_is_nan (&f64[i], TD_F64), i < 2);
      assert_int_equal (td_cudnn_is_nan (&f16[i], TD_F16), i < 2);
      assert_int_equal (td_cudnn_is_nan (&bf16[i], TD_BF16), i < 2);
    }
}

/* A plan that sizes do not allow says so, in cuDNN's own words. */
static void
cudnn__refuses_sizes_that_do_not_fit (void **state)
{
  TdCudnnConv key;
  TdCudnnPlanned planned;

  make_key (&key, &cases[3], TD_CONV_FORWARD, TD_F32, false);
  key.y[2]++;
  assert_false (td_cudnn_conv_plan_deviceless (&key, td_h200, 1, &planned));
  assert_true (strlen (planned.why) > 0);
}

/* With autotune several plans are made, and one is taken by its time. */
static void
cudnn__plans_rivals_for_autotune (void **state)
{
  const float times[] = { 2, 1.99f, -1, 1.5f, 1.49f, 3 }, none[] = { -1, -1 },
              last[] = { -1, 4 };
  TdCudnnPlanned one, many;
  TdCudnnConv key;

  make_key (&key, &cases[3], TD_CONV_FORWARD, TD_F32, false);
  assert_true (td_cudnn_conv_plan_deviceless (&key, td_h200, 1, &one));
  assert_true (td_cudnn_conv_plan_deviceless (&key, td_h200, 4, &many));
  assert_int_equal (one.n_plans, 1);
  assert_in_range (many.n_plans, 2, 4);
  assert_int_equal (many.workspace_bytes, one.workspace_bytes); /* the first is the same */
  assert_int_equal (td__dnn_fastest (times, 6), 3);
  assert_int_equal (td__dnn_fastest (times, 2), 0);
  assert_int_equal (td__dnn_fastest (none, 2), 0);
  assert_int_equal (td__dnn_fastest (last, 2), 1);
}

/* A plan that was kept is the same plan; a file that is damaged is only made anew. */
static void
cudnn__keeps_plans_on_disk (void **state)
{
  const char *folder = td_test_tmp ("plans");
  char path[400] = "";
  TdCudnnPlanned first, second;
  struct dirent *entry;
  TdCudnnConv key;
  DIR *d;

  assert_int_equal (mkdir (folder, 0700), 0);
  setenv ("TAPEDECK_CUDA_CACHE", folder, 1);
  make_key (&key, &cases[3], TD_CONV_FORWARD, TD_F32, false);
  assert_true (td_cudnn_conv_plan_deviceless (&key, td_h200, 1, &first));
  assert_false (first.from_disk);
  assert_true (td_cudnn_conv_plan_deviceless (&key, td_h200, 1, &second));
  assert_true (second.from_disk);
  assert_int_equal (second.workspace_bytes, first.workspace_bytes);
  d = opendir (folder);
  while ((entry = readdir (d)) != NULL)
    if (entry->d_name[0] != '.')
      snprintf (path, sizeof path, "%s/%s", folder, entry->d_name);
  closedir (d);
  assert_int_equal (truncate (path, 100), 0);
  assert_true (td_cudnn_conv_plan_deviceless (&key, td_h200, 1, &second));
  assert_false (second.from_disk);
  key.stride[0] = 2; /* of other sizes: not that plan, and none at all */
  assert_false (td_cudnn_conv_plan_deviceless (&key, td_h200, 1, &second));
  setenv ("TAPEDECK_CUDA_CACHE", "off", 1);
}

static void
key__is_of_no_more_axes_than_cudnn_has (void **state)
{
  TdShape shape = TD_SHAPE (1, 1, 2, 2, 2, 2);
  TdTensor t = { .shape = &shape, .size = 16, .dtype = TD_F32 }, in[2] = { t, t };
  TdConv attrs = { .ndim = 4, .groups = 1 };
  TdCudnnConv key;

  assert_false (td_cudnn_conv_key (&key, TD_CONV_FORWARD, &attrs, in, 2, &t, false));
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (cudnn__plans_exact_fp32_convolutions),
    cmocka_unit_test (cudnn__plans_tf32_convolutions),
    cmocka_unit_test (cudnn__plans_bf16_convolutions),
    cmocka_unit_test (cudnn__plans_fp16_convolutions),
    cmocka_unit_test (cudnn__keeps_fp32_off_tensor_cores_unless_told),
    cmocka_unit_test (cudnn__needs_next_to_no_workspace_for_channels_last_convolutions),
    cmocka_unit_test (cudnn__plans_convolutions_with_their_ends),
    cmocka_unit_test (cudnn__needs_no_more_workspace_for_an_end),
    cmocka_unit_test (cudnn__plans_weight_gradients_that_add),
    cmocka_unit_test (is_nan__knows_every_type),
    cmocka_unit_test (cudnn__refuses_sizes_that_do_not_fit),
    cmocka_unit_test (cudnn__plans_rivals_for_autotune),
    td_test (cudnn__keeps_plans_on_disk),
    cmocka_unit_test (key__is_of_no_more_axes_than_cudnn_has),
  };

  if (td_cuda_library ("libcudnn.so.9") == NULL)
    {
      puts ("libcudnn.so.9 is not here, skipped");
      return 77;
    }
  setenv ("TAPEDECK_CUDA_CACHE", "off", 1);
  return cmocka_run_group_tests_name ("cudnn", tests, NULL, NULL);
}
