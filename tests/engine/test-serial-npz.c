/* What the npz files of Chainer hold besides plain weights: None, texts, scalars; and how much
 * of a file is taken.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "train/serial/none-pickle.h"
#include "npy-header.h"
#include "train/serial/serializer.h"
#include "start.h"

/* An object with a field of each kind, and a child. */
typedef struct
{
  int64_t count;
  double rate;
  bool on;
  char *text, *nothing;
  TdShape shape;
  void *rows;
  int64_t child;
  int finished;
} Thing;

static void
finish_thing (void *object)
{
  ((Thing *)object)->finished++;
}

static void
serialize_thing (void *object, TdSerializer *s)
{
  Thing *t = object;

  td_serialize_int (s, "count", &t->count);
  td_serialize_double (s, "rate", &t->rate);
  td_serialize_bool (s, "on", &t->on);
  td_serialize_text (s, "text", &t->text);
  td_serialize_text (s, "nothing", &t->nothing);
  td_serialize_array (s, "rows", TD_I32, &t->shape, &t->rows);
  td_serializer_enter (s, "child:one");
  td_serialize_int (s, "n", &t->child);
  td_serializer_leave (s);
  td_serializer_finally (s, finish_thing, t);
}

static Thing
a_thing (void)
{
  static const int32_t rows[] = { 1, -2, 3, -4, 5, -6 };
  Thing t
      = { INT64_MIN + 5, 0.1, true, strdup ("naïve ✓ 𝄞"), NULL, { 2, { 3, 2 } }, NULL, -9, 0 };

  t.rows = malloc (sizeof rows);
  memcpy (t.rows, rows, sizeof rows);
  return t;
}

static void
clear_thing (Thing *t)
{
  free (t->text);
  free (t->nothing);
  free (t->rows);
}

static void
serializer__brings_back_every_kind_of_field (void **state)
{
  static const TdFileFormat formats[] = { TD_FILE_NPZ, TD_FILE_SAFETENSORS };

  (void)state;
  for (int i = 0; i < 2; i++)
    {
      const char *path = td_test_tmp ("thing");
      Thing saved = a_thing (), loaded = { .nothing = strdup ("something") };

      assert_int_equal (
          td__save_object (path, formats[i], true, serialize_thing, &saved, "test", NULL),
          TD_OK);
      assert_int_equal (
          td__load_object (path, formats[i], serialize_thing, &loaded, NULL, "test", NULL),
          TD_OK);
      assert_true (loaded.count == saved.count && loaded.rate == saved.rate && loaded.on);
      assert_string_equal (loaded.text, saved.text);
      assert_null (loaded.nothing);
      assert_true (td_shape_equal (&loaded.shape, &saved.shape));
      assert_memory_equal (loaded.rows, saved.rows, 24);
      assert_int_equal (loaded.child, -9);
      assert_int_equal (loaded.finished, 1);
      clear_thing (&saved);
      clear_thing (&loaded);
    }
}

static void
serializer__writes_what_numpy_reads (void **state)
{
  const char *path = td_test_tmp ("thing.npz");
  Thing saved = a_thing ();

  (void)state;
  assert_int_equal (
      td__save_object (path, TD_FILE_NPZ, true, serialize_thing, &saved, "test", NULL), TD_OK);
  clear_thing (&saved);
  assert_python_says (
      "import sys, numpy as np\n"
      "f = np.load(sys.argv[1], allow_pickle=True)\n"
      "assert f['nothing'][()] is None\n"
      "assert str(f['text']) == 'na\\u00efve \\u2713 \\U0001d11e'\n"
      "for k in f.files: print(k, f[k].dtype, f[k].shape)\n"
      "print(f['count'], f['rate'], f['on'], f['rows'].tolist(), f['child:one/n'])\n",
      path,
      "count int64 ()\nrate float64 ()\non bool ()\ntext <U9 ()\nnothing object ()\n"
      "rows int32 (3, 2)\nchild:one/n int64 ()\n"
      "-9223372036854775803 0.1 True [[1, -2], [3, -4], [5, -6]] -9\n");
}

static void
serializer__reads_what_numpy_writes (void **state)
{
  const char *path = td_test_tmp ("thing.npz");
  Thing loaded = { .nothing = strdup ("something") };

  (void)state;
  assert_python_says ("import sys, numpy as np\n"
                      "np.savez_compressed(sys.argv[1], **{'count': 7, 'rate': 0.25,\n"
                      " 'on': True, 'text': 'h\\u00e9', 'nothing': np.asarray(None),\n"
                      " 'rows': np.asfortranarray([[1, 2], [3, 4]]), 'child:one/n': 3})\n",
                      path, "");
  assert_int_equal (
      td__load_object (path, TD_FILE_NPZ, serialize_thing, &loaded, NULL, "test", NULL), TD_OK);
  assert_true (loaded.count == 7 && loaded.rate == 0.25 && loaded.on && loaded.child == 3);
  assert_string_equal (loaded.text, "hé");
  assert_null (loaded.nothing);
  assert_memory_equal (loaded.rows, ((int32_t[]){ 1, 2, 3, 4 }), 16);
  clear_thing (&loaded);
}

/* The last field is wrong: the first ones have been read by then, but are not put in place. */
static void
serializer__leaves_everything_when_one_field_fails (void **state)
{
  const char *path = td_test_tmp ("thing.npz");
  Thing saved = a_thing (), loaded = { .count = 1, .rate = 2 };
  TdLoadRule lenient = { .lenient = true }, ignore = { .ignore_names = "rate, child:one/n" };

  (void)state;
  td__save_object (path, TD_FILE_NPZ, false, serialize_thing, &saved, "test", NULL);
  assert_python_says ("import sys, numpy as np\n"
                      "f = dict(np.load(sys.argv[1], allow_pickle=True))\n"
                      "del f['child:one/n']\n"
                      "np.savez(sys.argv[1], **f)\n",
                      path, "");
  assert_int_equal (
      td__load_object (path, TD_FILE_NPZ, serialize_thing, &loaded, NULL, "test", NULL),
      TD_ERR_IO);
  assert_contains (td_error ()->message,
                   "thing.npz: child:one/n: there is no such array in the file");
  td_error_clear ();
  assert_true (loaded.count == 1 && loaded.rate == 2 && loaded.text == NULL
               && loaded.rows == NULL && loaded.finished == 0);
  assert_int_equal (
      td__load_object (path, TD_FILE_NPZ, serialize_thing, &loaded, &lenient, "test", NULL),
      TD_OK);
  assert_true (loaded.count == saved.count && loaded.child == 0);
  loaded.rate = 2;
  assert_int_equal (
      td__load_object (path, TD_FILE_NPZ, serialize_thing, &loaded, &ignore, "test", NULL),
      TD_OK);
  assert_true (loaded.rate == 2 && loaded.child == 0);
  ignore.ignore_names = "rate , child:one/m,child:one/n";
  loaded.count = 1;
  assert_int_equal (
      td__load_object (path, TD_FILE_NPZ, serialize_thing, &loaded, &ignore, "test", NULL),
      TD_ERR_ARG);
  assert_contains (td_error ()->message,
                   "thing.npz: ignore_names: nothing here has the key \"child:one/m\"");
  td_error_clear ();
  assert_int_equal (loaded.count, 1);
  clear_thing (&saved);
  clear_thing (&loaded);
}

static void
npz__reads_none_without_running_pickle (void **state)
{
  TdLink *lazy = td_chain_new ("lazy"), *l1 = td_chain_new (lazy, "l1");
  TdVar *n = td_link_add_persistent (lazy, "n", td_zeros (TD_I64, TD_SCALAR));

  (void)state;
  td_link_add_param (l1, "W", TD_SHAPE (2, TD_INFER));
  td_link_add_param (l1, "b", TD_SHAPE (2));
  assert_int_equal (td_load_npz (numpys_file ("none.npz"), lazy), TD_OK);
  assert_null (td_link_param (lazy, "l1/W"));
  assert_true (td_item (n) == 42);
}

static void
npz__writes_none_for_a_parameter_without_shape (void **state)
{
  const char *path = td_test_tmp ("lazy.npz");
  TdLink *lazy = td_chain_new ("lazy");

  (void)state;
  td_link_add_param (lazy, "W", TD_SHAPE (2, TD_INFER));
  assert_int_equal (td_save_npz (path, lazy), TD_OK);
  assert_int_equal (td_load_npz (path, lazy), TD_OK);
  assert_null (td_link_param (lazy, "W"));
  assert_python_says ("import sys, numpy as np\n"
                      "f = np.load(sys.argv[1], allow_pickle=True)\n"
                      "print(f.files, f['W'][()])\n",
                      path, "['W'] None\n");
}

/* Every protocol's pickle of None is known; nothing else is, whatever one byte becomes. */
static void
npz__knows_only_the_pickle_of_none (void **state)
{
  const char *path = td_test_tmp ("pickles");

  (void)state;
  for (int protocol = 2; protocol <= 5; protocol++)
    {
      char script[400];
      unsigned char *bytes;
      size_t n, known = 0;

      snprintf (script, sizeof script,
                "import sys, pickle, numpy as np\n"
                "open(sys.argv[1], 'wb').write(pickle.dumps(np.array(None), protocol=%d))\n",
                protocol);
      assert_python_says (script, path, "");
      bytes = (unsigned char *)td_test_read_file (path, &n);
      assert_true (td__pickle_is_none (bytes, n));
      for (size_t i = 0; i < n; i++)
        assert_false (td__pickle_is_none (bytes, i));
      for (size_t i = 2; i < n; i++) /* 0 and 1: the protocol's number, which may be any */
        for (int k = 1; k < 256; k++)
          {
            bytes[i] ^= (unsigned char)k;
            known += td__pickle_is_none (bytes, n);
            bytes[i] ^= (unsigned char)k;
          }
      assert_in_range (known, 0, 8 * 255 + 20 * 63); /* a frame's length; memo numbers */
      free (bytes);
    }
  assert_python_says ("import sys, pickle, os\n"
                      "class E:\n"
                      "  def __reduce__(self): return (os.system, ('touch pwned',))\n"
                      "open(sys.argv[1], 'wb').write(pickle.dumps(E()))\n",
                      path, "");
  {
    size_t n;
    unsigned char *bytes = (unsigned char *)td_test_read_file (path, &n);

    assert_false (td__pickle_is_none (bytes, n));
    free (bytes);
  }
}

static void
npz__takes_a_model_out_of_a_larger_file (void **state)
{
  const char *path = td_test_tmp ("trainer.npz");
  TdLink *model = td_chain_new ("model");
  TdVar *W = td_link_add_param (model, "W", TD_SHAPE (2), .initializer = td_init_constant (9));
  float w[2];

  (void)state;
  assert_python_says ("import sys, numpy as np\n"
                      "np.savez(sys.argv[1], **{'updater/model:main/W': np.array([1, 2.5])})\n",
                      path, "");
  assert_int_equal (td_load_npz (path, model), TD_ERR_IO);
  assert_contains (td_error ()->message, "trainer.npz: W: there is no such array in the file");
  td_error_clear ();
  assert_int_equal (td_load_npz (path, model, .strict = false), TD_OK);
  assert_int_equal (td_load_npz (path, model, .path = "updater/model:main/"), TD_OK);
  td_read (W, w, sizeof w);
  assert_true (w[0] == 1 && w[1] == 2.5F);
}

/* A model that was changed and run again from its file: what still fits is taken. */
static void
dy18__a_changed_model_keeps_the_parameters_that_fit (void **state)
{
  const char *path = td_test_tmp ("m.npz");
  TdLink *old = td_chain_new ("old"), *new = td_chain_new ("new");
  float w[3];

  (void)state;
  td_linear_new (old, "l1", 2, 3, .initialW = td_init_constant (1));
  td_linear_new (old, "l2", 3, 4, .initialW = td_init_constant (2));
  td_linear_new (new, "l1", 2, 3, .initialW = td_init_constant (7));
  td_linear_new (new, "l2", 3, 5, .initialW = td_init_constant (8));
  td_linear_new (new, "l3", 5, 1, .initialW = td_init_constant (9));
  assert_int_equal (td_save_npz (path, old), TD_OK);
  assert_int_equal (td_load_npz (path, new, .strict = false), TD_ERR_SHAPE);
  assert_contains (td_error ()->message, "l2/W: shape (5, 3) expected, the file has (4, 3)");
  td_error_clear ();
  assert_true (td_mean_of (td_link_param (new, "l1/W")) == 7);
  assert_int_equal (td_load_npz (path, new, .partial = true), TD_OK);
  assert_true (td_mean_of (td_link_param (new, "l1/W")) == 1);
  assert_true (td_mean_of (td_link_param (new, "l2/W")) == 8);
  assert_true (td_mean_of (td_link_param (new, "l3/W")) == 9);
  td_read (td_link_param (new, "l1/b"), w, sizeof w);
  assert_true (w[0] == 0);
}

/* Nobody can ask a pipe how much has gone through it. */
static void
npz__goes_through_a_pipe (void **state)
{
  const char *pipe = td_test_tmp ("pipe"), *copy = td_test_tmp ("copy.npz");
  TdLink *model = td_chain_new ("model");
  TdVar *W = td_link_add_param (model, "W", TD_SHAPE (2), .initializer = td_init_constant (3));
  int status;
  pid_t pid;

  (void)state;
  assert_int_equal (mkfifo (pipe, 0600), 0);
  pid = fork ();
  if (pid == 0)
    {
      execlp ("cp", "cp", "--copy-contents", pipe, copy, (char *)NULL);
      _exit (127);
    }
  assert_int_equal (td_save_npz (pipe, model), TD_OK);
  assert_int_equal (waitpid (pid, &status, 0), pid);
  assert_int_equal (status, 0);
  td_write (W, (const float[]){ 1, 2 }, 8);
  assert_int_equal (td_load_npz (copy, model), TD_OK);
  assert_true (td_mean_of (W) == 3);
}

/* A member that claims 4 GB, or an array that does, is refused by its sizes alone. */
static void
npz__refuses_a_bomb_by_its_sizes (void **state)
{
  const char *path = td_test_tmp ("bomb.npz");
  TdLink *model = td_chain_new ("model");

  (void)state;
  td_link_add_param (model, "W", TD_SHAPE (2));
  assert_python_says (
      "import sys, zipfile, struct\n"
      "def npy(shape):\n"
      "  h = (\"{'descr': '<f4', 'fortran_order': False, 'shape': %s, }\" % shape).ljust(117)\n"
      "  return b'\\x93NUMPY\\x01\\x00' + struct.pack('<H', 118) + h.encode() + b'\\n'\n"
      "z = zipfile.ZipFile(sys.argv[1], 'w', zipfile.ZIP_DEFLATED)\n"
      "z.writestr('W.npy', npy('(2,)') + bytes(8))\n"
      "z.close()\n"
      "b = bytearray(open(sys.argv[1], 'rb').read())\n"
      "i = b.rindex(b'PK\\1\\2')\n"
      "b[i + 24:i + 28] = struct.pack('<I', 0xfffffff0)\n"
      "open(sys.argv[1], 'wb').write(b)\n",
      path, "");
  assert_int_equal (td_load_npz (path, model), TD_ERR_IO);
  assert_contains (td_error ()->message, "bomb.npz: W: it is packed by a method other than");
  assert_contains (td_error ()->message, "or its sizes disagree");
  td_error_clear ();
  assert_python_says (
      "import sys, zipfile, struct\n"
      "h = (\"{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776,), }\")\n"
      "z = zipfile.ZipFile(sys.argv[1], 'w', zipfile.ZIP_DEFLATED)\n"
      "z.writestr('W.npy', b'\\x93NUMPY\\x01\\x00' + struct.pack('<H', 118)\n"
      "  + h.ljust(117).encode() + b'\\n' + bytes(8))\n"
      "z.close()\n",
      path, "");
  assert_int_equal (td_load_npz (path, model), TD_ERR_IO);
  assert_contains (td_error ()->message, "W: it has not the elements that its shape promises");
  td_error_clear ();
}

/* numpy's own forms are read; what Python would have to compute, or another key, is not. */
static void
npy_header__is_plain_values (void **state)
{
  static const struct
  {
    const char *text;
    bool ok;
    int ndim;
  } rows[] = {
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }  \n", true, 2 },
    { "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}", true, 2 },
    { "{'shape': (), 'descr': \"<U5\", 'fortran_order': False}", true, 0 },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (3L,), }", true, 1 },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (2 * 3,), }", false, 0 },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (3), }", false, 0 },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (2, -3), }", false, 0 },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (2,, 3), }", false, 0 },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (2 3), }", false, 0 },
    { "{'descr': '<' 'f4', 'fortran_order': False, 'shape': (2, 3), }", false, 0 },
    { "{'descr': '<f4' + '', 'fortran_order': False, 'shape': (2, 3), }", false, 0 },
    { "{'descr': '<f4', 'fortran_order': not True, 'shape': (2, 3), }", false, 0 },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'x': 1}", false, 0 },
    { "{'descr': '<f4', 'descr': '<f8', 'fortran_order': False, 'shape': (2, 3)}", false, 0 },
    { "{'descr': '<f4', 'shape': (2, 3), }", false, 0 },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } or exit ()", false, 0 },
    { "dict (descr='<f4', fortran_order=False, shape=(2, 3))", false, 0 },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)", false, 0 },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", false, 0 },
    { "", false, 0 },
  };

  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    {
      TdNpyHeader header;

      if (td__npy_header_parse (rows[i].text, &header) != rows[i].ok)
        fail_msg ("%s", rows[i].text);
      if (rows[i].ok)
        assert_int_equal (header.ndim, rows[i].ndim);
    }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    engine_test (serializer__brings_back_every_kind_of_field),
    engine_test (npz__goes_through_a_pipe),
    engine_test (serializer__writes_what_numpy_reads),
    engine_test (serializer__reads_what_numpy_writes),
    engine_test (serializer__leaves_everything_when_one_field_fails),
    engine_test (npz__reads_none_without_running_pickle),
    engine_test (npz__writes_none_for_a_parameter_without_shape),
    engine_test (npz__knows_only_the_pickle_of_none),
    engine_test (npz__takes_a_model_out_of_a_larger_file),
    engine_test (dy18__a_changed_model_keeps_the_parameters_that_fit),
    engine_test (npy_header__is_plain_values),
    engine_test (npz__refuses_a_bomb_by_its_sizes),
  };

  return cmocka_run_group_tests_name ("serial-npz", tests, NULL, NULL);
}
