/* Products that end in relu, by a library that may lose NaN in it: that is found out once, and
 * then kernels do what the library may not.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include "compute/core/core.h"
#include "far-test.h"
#include "td-test.h"

#include <math.h>
#include <string.h>

enum
{
  ROWS = 3,
  INNER = 4,
  COLUMNS = 2
};
#define APART ((size_t)4 << 10)

static TdShape shapes[4] = { { 2, { ROWS, INNER } },
                             { 2, { INNER, COLUMNS } },
                             { 1, { COLUMNS } },
                             { 2, { ROWS, COLUMNS } } };

/* a, b, bias, out: of `dtype`, one behind the other. */
static TdTensor
tensor (int i, TdDtype dtype)
{
  return (TdTensor){ far_memory + (size_t)i * APART, &shapes[i], td_shape_size (&shapes[i]),
                     dtype };
}

/* relu (a b + bias), all of it as floats. */
static TdStatus
multiply (TdDtype dtype, bool with_bias, float *result)
{
  const TdTensor a = tensor (0, dtype), b = tensor (1, dtype), bias = tensor (2, dtype);
  TdTensor out = tensor (3, dtype),
           floats = { far_memory + 4 * APART, &shapes[3], out.size, TD_F32 };
  const TdGemm g = { .m = ROWS,
                     .n = COLUMNS,
                     .k = INNER,
                     .batch = 1,
                     .alpha = 1,
                     .end = { .bias = with_bias ? &bias : NULL, .relu = true } };
  TdStatus status = far_device->ops->gemm (far_device, &g, &a, &b, &out);

  if (status == TD_OK)
    status = far_device->ops->cast (far_device, &out, &floats);
  if (status == TD_OK)
    status = far_device->ops->download (far_device, result, floats.data,
                                        (size_t)out.size * sizeof (float));
  return status;
}

/* Row 0 has a NaN, row 1 comes out below 0, row 2 above. */
static void
put_numbers (TdDtype dtype)
{
  static const float a[ROWS * INNER] = { 1, 2, NAN, 4, -1, -2, -3, -4, 1, 2, 3, 4 },
                              b[INNER * COLUMNS] = { 1, 2, 1, 2, 1, 2, 1, 2 },
                              bias[COLUMNS] = { 1, -1 };
  const float *const from[] = { a, b, bias };

  for (int i = 0; i < 3; i++)
    {
      TdTensor to = tensor (i, dtype),
               floats = { far_memory + 4 * APART, to.shape, to.size, TD_F32 };

      assert_int_equal (far_device->ops->upload (far_device, floats.data, from[i],
                                                 (size_t)to.size * sizeof (float)),
                        TD_OK);
      assert_int_equal (far_device->ops->cast (far_device, &floats, &to), TD_OK);
    }
}

static void
relu__of_a_product_keeps_nan_whatever_the_library_does_with_it (void **state)
{
  static const TdDtype dtypes[] = { TD_F32, TD_F64, TD_F16, TD_BF16 };
  const bool lost = far_driver->state->relu_loses_nan;

  (void)state;
  for (int i = 0; i < 4; i++)
    for (int with_bias = 0; with_bias < 2; with_bias++)
      {
        /* Sizes and ends are the plan's key: one that was tried stays so, and is another's. */
        put_numbers (dtypes[i]);
        for (int call = 0; call < 2; call++)
          {
            const long before = far_driver->state->n_products;
            float y[ROWS * COLUMNS];

            assert_int_equal (multiply (dtypes[i], with_bias != 0, y), TD_OK);
            assert_int_equal (far_driver->state->n_products - before,
                              (call == 0) + (lost ? PRODUCTS_WITHOUT_END : 1));
            assert_true (isnan (y[0]) && isnan (y[1]));
            assert_true (y[2] == 0 && y[3] == 0);
            assert_true (y[4] == 10 + with_bias && y[5] == 20 - with_bias);
          }
      }
}

static void
relu__of_a_product_keeps_nan_where_the_librarys_loses_it (void **state)
{
  far_driver->state->relu_loses_nan = true;
  relu__of_a_product_keeps_nan_whatever_the_library_does_with_it (state);
}

/* Whether it does is known after waiting, which a capture cannot. */
static void
relu__of_a_product_is_not_tried_in_a_capture (void **state)
{
  const char *why = NULL;
  float y[ROWS * COLUMNS];

  (void)state;
  put_numbers (TD_F32);
  assert_null (far_device->ops->graphs->begin (far_device, NULL));
  far_device->ops->graphs->step (far_device, 0);
  assert_int_equal (multiply (TD_F32, true, y), TD_ERR_STATE);
  far_device->ops->graphs->abandon (far_device, &why);
  assert_string_equal (why, "the relu of a product is tried");
  assert_int_equal (multiply (TD_F32, true, y), TD_OK);
  assert_true (isnan (y[0]) && y[4] == 11);
  assert_null (td_error ());
}

int
main (void)
{
#define row(f)                                                                                 \
  cmocka_unit_test_setup_teardown (f, far_test_setup_memory, far_test_teardown_memory)
  const struct CMUnitTest tests[] = {
    row (relu__of_a_product_keeps_nan_whatever_the_library_does_with_it),
    row (relu__of_a_product_keeps_nan_where_the_librarys_loses_it),
    row (relu__of_a_product_is_not_tried_in_a_capture),
  };

  return cmocka_run_group_tests_name ("products", tests, NULL, NULL);
}
