/* safetensors: what is saved comes back, Python reads it, Python's is read, and a bad header is
 * refused before memory is taken for what it promises.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "start.h"

static TdLink *model;
static const float weights[6] = { 0, 0.25f, 0.5f, 0.75f, 1, 1.25f };

/* l1/W (2, 3) float32, l1/h (2) float16, l1/b (2) bfloat16, a persistent n. */
static int
setup (void **state)
{
  TdLink *l1;

  fixture_setup (state);
  model = td_chain_new ("model");
  l1 = td_chain_new (model, "l1");
  td_link_add_param (l1, "W", TD_SHAPE (2, 3), .initializer = td_init_constant (9));
  td_link_add_param (l1, "h", TD_SHAPE (2), .dtype = TD_F16,
                     .initializer = td_init_constant (9));
  td_link_add_param (l1, "b", TD_SHAPE (2), .dtype = TD_BF16,
                     .initializer = td_init_constant (9));
  td_link_add_persistent (model, "n", td_full (TD_I64, TD_SCALAR, 7));
  return 0;
}

static void
assert_model (const float *W, double h, double b, double n)
{
  float w[6];

  assert_int_equal (td_read (td_link_param (model, "l1/W"), w, sizeof w), TD_OK);
  assert_memory_equal (w, W, sizeof w);
  assert_true (td_mean_of (td_link_param (model, "l1/h")) == h);
  assert_true (td_mean_of (td_link_param (model, "l1/b")) == b);
  assert_true (td_item (td_link_param (model, "n")) == n);
}

static void
assert_untouched (void)
{
  static const float nine[6] = { 9, 9, 9, 9, 9, 9 };

  assert_model (nine, 9, 9, 7);
}

static void
safetensors__brings_back_what_was_saved (void **state)
{
  const char *path = td_test_tmp ("m.safetensors");
  float zeros[6] = { 0 };

  (void)state;
  td_write (td_link_param (model, "l1/W"), weights, sizeof weights);
  assert_int_equal (td_save_safetensors (path, model), TD_OK);
  td_write (td_link_param (model, "l1/W"), zeros, sizeof zeros);
  td_write (td_link_param (model, "l1/b"), zeros, 4);
  assert_int_equal (td_load_safetensors (path, model), TD_OK);
  assert_model (weights, 9, 9, 7);
}

static void
safetensors__is_read_by_python (void **state)
{
  const char *path = td_test_tmp ("m.safetensors"), *program = td_test_python ("safetensors");
  TdTestChild child;

  (void)state;
  td_write (td_link_param (model, "l1/W"), weights, sizeof weights);
  assert_int_equal (td_save_safetensors (path, model), TD_OK);
  child = TD_TEST_RUN (program, "-c",
                       "import sys, struct\n"
                       "from safetensors import deserialize\n"
                       "a = dict(deserialize(open(sys.argv[1], 'rb').read()))\n"
                       "for k in sorted(a): print(k, a[k]['dtype'], a[k]['shape'])\n"
                       "print(struct.unpack('<6f', a['l1/W']['data']),\n"
                       "      struct.unpack('<q', a['n']['data']),\n"
                       "      struct.unpack('<2e', a['l1/h']['data']),\n"
                       "      bytes(a['l1/b']['data']).hex())\n",
                       path);
  assert_child_status (child, 0);
  assert_string_equal (child.out,
                       "l1/W F32 [2, 3]\nl1/b BF16 [2]\nl1/h F16 [2]\nn I64 []\n"
                       "(0.0, 0.25, 0.5, 0.75, 1.0, 1.25) (7,) (9.0, 9.0) 10411041\n");
  td_test_child_clear (&child);
}

/* The binding wants the address of elements since version 0.5, and took their bytes before. */
#define PYTHON_WRITES                                                                          \
  "import sys, struct, ctypes, safetensors\n"                                                  \
  "kept = []\n"                                                                                \
  "def spec(dtype, shape, data):\n"                                                            \
  "  if not hasattr(safetensors, 'TensorSpec'):\n"                                             \
  "    return {'dtype': dtype, 'shape': shape, 'data': data}\n"                                \
  "  kept.append(ctypes.create_string_buffer(data, max(len(data), 1)))\n"                      \
  "  return safetensors.TensorSpec(dtype=dtype, shape=shape,\n"                                \
  "    data_ptr=ctypes.addressof(kept[-1]), data_len=len(data))\n"                             \
  "safetensors.serialize_file({\n"                                                             \
  "  'l1/W': spec('float64', [2, 3], struct.pack('<6d', 0, .25, .5, .75, 1, 1.25)),\n"         \
  "  'n': spec('int64', [], struct.pack('<q', 42)),\n"                                         \
  "  'l1/b': spec('float32', [2], struct.pack('<2f', 1.5, 2.5)),\n"                            \
  "  'l1/h': spec('float16', [2], struct.pack('<2e', 3, 5)),\n"                                \
  "  'other \\u00e9 \"q\"': spec('uint8', [0, 3], b'')}, sys.argv[1], {'made': 'here'})\n"

static void
safetensors__reads_what_python_wrote (void **state)
{
  const char *path = td_test_tmp ("m.safetensors");
  TdTestChild child = TD_TEST_RUN (td_test_python ("safetensors"), "-c", PYTHON_WRITES, path);

  (void)state;
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  assert_int_equal (td_load_safetensors (path, model), TD_OK);
  assert_model (weights, 4, 2, 42);
}

/* A file of this header and so many bytes of elements, all 1. */
static void
write_file (const char *path, const char *header, uint64_t claimed, size_t n_data)
{
  size_t n = strlen (header);
  char *bytes = malloc (8 + n + n_data);

  assert_non_null (bytes);
  for (int i = 0; i < 8; i++)
    bytes[i] = (char)(claimed >> (8 * i));
  memcpy (bytes + 8, header, n);
  memset (bytes + 8 + n, 1, n_data);
  td_test_write_file (path, bytes, 8 + n + n_data);
  free (bytes);
}

#define ENTRY(name, dtype, shape, offsets)                                                     \
  "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define W ENTRY ("l1/W", "F32", "[2,3]", "[0,24]")
#define REST                                                                                   \
  ENTRY ("l1/h", "F16", "[2]", "[24,28]")                                                      \
  "," ENTRY ("l1/b", "BF16", "[2]", "[28,32]") "," ENTRY ("n", "I64", "[]", "[32,40]")

static void
safetensors__refuses_bad_headers_and_changes_nothing (void **state)
{
  static const struct
  {
    const char *header;
    size_t n_data;
    const char *text;
  } bad[] = {
    { "{" W "," REST "}", 39, "offsets that lie outside the file" },
    { "{" W "," REST "}", 41, "overlap, or leave gaps" },
    { "{" ENTRY ("l1/W", "F32", "[2,3]", "[0,28]") "," REST "}", 40, "not those of its shape" },
    { "{" ENTRY ("l1/W", "F32", "[2,3]", "[4,28]") "," REST "}", 40, "overlap, or leave gaps" },
    { "{" ENTRY ("l1/W", "F32", "[2,3]", "[24,0]") "," REST "}", 40, "outside the file" },
    { "{" ENTRY ("l1/W", "F32", "[4294967296,4294967296,2]", "[0,24]") "," REST "}", 40,
      "not those of its shape" },
    { "{" ENTRY ("l1/W", "F32", "[2,3]", "[0,18446744073709551616]") "}", 40, "not the JSON" },
    { "{" ENTRY ("l1/W", "F32", "[2,-3]", "[0,24]") "," REST "}", 40, "not the JSON" },
    { "{" ENTRY ("l1/W", "F32", "[2,3]", "[0,24,25]") "," REST "}", 40, "not the JSON" },
    { "{" ENTRY ("l1/W", "F32", "[2,03]", "[0,24]") "," REST "}", 40, "not the JSON" },
    { "{" ENTRY ("l1/W", "F32", "[1,1,1,1,1,1,1,2,3]", "[0,24]") "," REST "}", 40,
      "not the JSON" },
    { "{" W "," W "," REST "}", 40, "two arrays of one name" },
    { "{" W "," REST, 40, "not the JSON" },
    { "{" W "," REST "},", 40, "not the JSON" },
    { "[" W "," REST "]", 40, "not the JSON" },
    { " {" W "," REST "}", 40, "not the JSON" },
    { "{\"l1/W\":{\"dtype\":\"F32\",\"shape\":[2,3]}," REST "}", 40, "not the JSON" },
    { "{\"l1/"
      "W\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}," REST
      "}",
      40, "not the JSON" },
    { "{\"l1/W\":7," REST "}", 40, "not the JSON" },
    { "{\"__metadata__\":{\"a\":1}," W "," REST "}", 40, "not the JSON" },
    { "{\"__metadata__\":{},\"__metadata__\":{}," W "," REST "}", 40, "not the JSON" },
    { "{\"l1\\x57\":"
      "7}",
      40, "not the JSON" },
    { "{\"l1\\ud800\":"
      "7}",
      40, "not the JSON" },
    { "{" ENTRY ("l1/W", "F8_E4M3", "[24]", "[0,24]") "," REST "}", 40,
      "l1/W: its element type has no counterpart here" },
    { "{" ENTRY ("l1/W", "F32", "[3,2]", "[0,24]") "," REST "}", 40,
      "l1/W: shape (2, 3) expected, the file has (3, 2)" },
    { "{" ENTRY ("l1/V", "F32", "[2,3]", "[0,24]") "," REST "}", 40,
      "l1/W: there is no such array in the file" },
  };
  const char *path = td_test_tmp ("bad.safetensors");

  (void)state;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    {
      write_file (path, bad[i].header, strlen (bad[i].header), bad[i].n_data);
      if (td_load_safetensors (path, model) == TD_OK)
        fail_msg ("read: %s", bad[i].header);
      assert_contains (td_error ()->message, "bad.safetensors: ");
      if (strstr (td_error ()->message, bad[i].text) == NULL)
        fail_msg ("%s: %s", bad[i].header, td_error ()->message);
      td_error_clear ();
      assert_untouched ();
    }
}

/* The size of the header is believed only within the file and the format's limit. */
static void
safetensors__checks_sizes_before_memory (void **state)
{
  static const uint64_t claimed[] = { 0, 41, 1 << 20, 100000001, UINT64_MAX, UINT64_MAX - 8 };
  const char *path = td_test_tmp ("bad.safetensors");

  (void)state;
  for (size_t i = 0; i < sizeof claimed / sizeof *claimed; i++)
    {
      write_file (path, "{}                  ", claimed[i], 20);
      assert_int_equal (td_load_safetensors (path, model), TD_ERR_IO);
      assert_contains (td_error ()->message, "bad.safetensors: ");
      td_error_clear ();
      assert_untouched ();
    }
}

static void
safetensors__survives_every_cut_and_every_changed_byte (void **state)
{
  static const float nines[6] = { 9, 9, 9, 9, 9, 9 };
  const char *path = td_test_tmp ("bad.safetensors");
  size_t n;
  char *bytes;

  (void)state;
  assert_int_equal (td_save_safetensors (path, model), TD_OK);
  bytes = td_test_read_file (path, &n);
  for (size_t i = 0; i < n; i++)
    {
      td_test_write_file (path, bytes, i);
      assert_int_not_equal (td_load_safetensors (path, model), TD_OK);
      assert_null (strchr (td_error ()->message, '\n'));
      td_error_clear ();
      assert_untouched ();
    }
  for (size_t i = 0; i < n; i++)
    {
      bytes[i] = (char)(bytes[i] ^ 0x41);
      td_test_write_file (path, bytes, n);
      if (td_load_safetensors (path, model) != TD_OK)
        {
          assert_untouched ();
          td_error_clear ();
        }
      else /* elements have no checksum: a changed one is read as it is */
        td_write (td_link_param (model, "l1/W"), nines, sizeof nines);
      bytes[i] = (char)(bytes[i] ^ 0x41);
      td_test_write_file (path, bytes, n);
      assert_int_equal (td_load_safetensors (path, model), TD_OK);
      assert_untouched ();
    }
  free (bytes);
}

/* A disk that is full: the old file stays, whole, and nothing is left beside it. */
static void
files__stay_when_the_new_one_cannot_be_written (void **state)
{
  char *paths[2] = { strdup (td_test_tmp ("m.npz")), strdup (td_test_tmp ("m.safetensors")) };
  struct rlimit old, tight;

  (void)state;
  signal (SIGXFSZ, SIG_IGN);
  for (int i = 0; i < 2; i++)
    {
      size_t n, again_n;
      char *bytes, *again;

      assert_int_equal (i == 0 ? td_save_npz (paths[i], model)
                               : td_save_safetensors (paths[i], model),
                        TD_OK);
      bytes = td_test_read_file (paths[i], &n);
      td_write (td_link_param (model, "l1/W"), weights, sizeof weights);
      getrlimit (RLIMIT_FSIZE, &old);
      tight = old;
      tight.rlim_cur = 100;
      setrlimit (RLIMIT_FSIZE, &tight);
      assert_int_equal (i == 0 ? td_save_npz (paths[i], model)
                               : td_save_safetensors (paths[i], model),
                        TD_ERR_IO);
      setrlimit (RLIMIT_FSIZE, &old);
      assert_contains (td_error ()->message, "File too large");
      td_error_clear ();
      again = td_test_read_file (paths[i], &again_n);
      assert_int_equal (n, again_n);
      assert_memory_equal (bytes, again, n);
      free (bytes);
      free (again);
      free (paths[i]);
    }
}

#define td_safe_test(f) cmocka_unit_test_setup_teardown (f, setup, fixture_teardown)

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_safe_test (safetensors__brings_back_what_was_saved),
    td_safe_test (safetensors__is_read_by_python),
    td_safe_test (safetensors__reads_what_python_wrote),
    td_safe_test (safetensors__refuses_bad_headers_and_changes_nothing),
    td_safe_test (safetensors__checks_sizes_before_memory),
    td_safe_test (safetensors__survives_every_cut_and_every_changed_byte),
    td_safe_test (files__stay_when_the_new_one_cannot_be_written),
  };

  return cmocka_run_group_tests_name ("serial-safetensors", tests, NULL, NULL);
}
