/* How cuDNN itself is told of recurrent layers: descriptors are set as for a call and read
 * back. That is as far as it goes without a device: sizes and places of weights want one.
 *
 * SPDX-License-Identifier: MIT */
#include "cudnn-rnn.h"

#include "libraries.h"
#include "td-test.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* What is read back by, and what the module wants no more of than a pointer. */
static struct
{
  __typeof__ (cudnnCreateRNNDescriptor) *create;
  __typeof__ (cudnnDestroyRNNDescriptor) *destroy;
  __typeof__ (cudnnGetRNNDescriptor_v8) *get;
  __typeof__ (cudnnCreateRNNDataDescriptor) *create_rows;
  __typeof__ (cudnnDestroyRNNDataDescriptor) *destroy_rows;
  __typeof__ (cudnnGetRNNDataDescriptor) *get_rows;
  __typeof__ (cudnnCreateDropoutDescriptor) *create_none;
  __typeof__ (cudnnDestroyDropoutDescriptor) *destroy_none;
} dnn;

static void
find (void *function, const char *name)
{
  *(void **)function = dlsym (td__dnn.library, name);
  assert_non_null (*(void **)function);
}

static int
setup (void **state)
{
  assert_true (td__dnn_rnn_load ());
  find (&dnn.create, "cudnnCreateRNNDescriptor");
  find (&dnn.destroy, "cudnnDestroyRNNDescriptor");
  find (&dnn.get, "cudnnGetRNNDescriptor_v8");
  find (&dnn.create_rows, "cudnnCreateRNNDataDescriptor");
  find (&dnn.destroy_rows, "cudnnDestroyRNNDataDescriptor");
  find (&dnn.get_rows, "cudnnGetRNNDataDescriptor");
  find (&dnn.create_none, "cudnnCreateDropoutDescriptor");
  find (&dnn.destroy_none, "cudnnDestroyDropoutDescriptor");
  return 0;
}

/* A network as it is asked for and as it has to come back. */
typedef struct
{
  TdRnn rnn;
  bool tf32;
  cudnnRNNMode_t mode;
  cudnnDirectionMode_t direction;
  cudnnDataType_t type, compute;
  cudnnMathType_t math;
} Case;

// clang-format off
static const Case cases[] = {
  { { TD_CELL_LSTM, 2, 2, 5, 7, TD_F32, 0, 0, NULL }, false, CUDNN_LSTM, CUDNN_BIDIRECTIONAL, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, CUDNN_FMA_MATH },
  { { TD_CELL_LSTM, 1, 1, 64, 256, TD_F32, 0, 0, NULL }, true, CUDNN_LSTM, CUDNN_UNIDIRECTIONAL, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, CUDNN_DEFAULT_MATH },
  { { TD_CELL_GRU, 3, 1, 5, 7, TD_F64, 0, 0, NULL }, true, CUDNN_GRU, CUDNN_UNIDIRECTIONAL, CUDNN_DATA_DOUBLE, CUDNN_DATA_DOUBLE, CUDNN_DEFAULT_MATH },
  { { TD_CELL_TANH, 1, 2, 8, 8, TD_F16, 0, 0, NULL }, false, CUDNN_RNN_TANH, CUDNN_BIDIRECTIONAL, CUDNN_DATA_HALF, CUDNN_DATA_FLOAT, CUDNN_TENSOR_OP_MATH },
  { { TD_CELL_RELU, 1, 1, 1, 1, TD_BF16, 0, 0, NULL }, false, CUDNN_RNN_RELU, CUDNN_UNIDIRECTIONAL, CUDNN_DATA_BFLOAT16, CUDNN_DATA_FLOAT, CUDNN_TENSOR_OP_MATH },
};
// clang-format on

static void
check_network (const Case *c)
{
  const TdDnnRnnKey key = td__dnn_rnn_key (&c->rnn, c->tf32);
  cudnnRNNDescriptor_t net = NULL;
  cudnnDropoutDescriptor_t none = NULL, dropout;
  cudnnRNNAlgo_t algorithm;
  cudnnRNNMode_t mode;
  cudnnRNNBiasMode_t bias;
  cudnnDirectionMode_t direction;
  cudnnRNNInputMode_t input;
  cudnnDataType_t type, compute;
  cudnnMathType_t math;
  int32_t in, units, projection, layers;
  uint32_t flags;

  assert_int_equal (dnn.create (&net), CUDNN_STATUS_SUCCESS);
  assert_int_equal (dnn.create_none (&none), CUDNN_STATUS_SUCCESS);
  assert_int_equal (td__dnn_rnn_describe (net, &key, none), CUDNN_STATUS_SUCCESS);
  assert_int_equal (dnn.get (net, &algorithm, &mode, &bias, &direction, &input, &type, &compute,
                             &math, &in, &units, &projection, &layers, &dropout, &flags),
                    CUDNN_STATUS_SUCCESS);
  assert_int_equal (algorithm, CUDNN_RNN_ALGO_STANDARD);
  assert_int_equal (mode, c->mode);
  assert_int_equal (bias, CUDNN_RNN_DOUBLE_BIAS);
  assert_int_equal (direction, c->direction);
  assert_int_equal (input, CUDNN_LINEAR_INPUT);
  assert_int_equal (type, c->type);
  assert_int_equal (compute, c->compute);
  assert_int_equal (math, c->math);
  assert_int_equal (in, c->rnn.in_size);
  assert_int_equal (units, c->rnn.units);
  assert_int_equal (projection, c->rnn.units); /* none */
  assert_int_equal (layers, c->rnn.n_layers);
  assert_int_equal (flags, CUDNN_RNN_PADDED_IO_DISABLED);
  dnn.destroy_none (none);
  dnn.destroy (net);
}

static void
cudnn__takes_every_network (void **state)
{
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    check_network (&cases[i]);
}

/* Lengths 5, 5, 3, 1 from steps of 4, 3, 3, 2 and 2 rows. */
static void
cudnn__takes_packed_rows_of_ever_fewer_sequences (void **state)
{
  const TdRnnRun runs[] = { { 4, 1 }, { 3, 2 }, { 2, 2 } };
  const TdRnn rnn = { TD_CELL_LSTM, 1, 1, 6, 7, TD_F32, true, 3, runs };
  const int want[] = { 5, 5, 3, 1 };
  cudnnRNNDataDescriptor_t rows = NULL;
  cudnnRNNDataLayout_t layout;
  cudnnDataType_t type;
  int steps, sequences, width, lengths[4];
  float fill;

  assert_int_equal (dnn.create_rows (&rows), CUDNN_STATUS_SUCCESS);
  assert_int_equal (td__dnn_rnn_describe_rows (rows, &rnn, rnn.in_size), CUDNN_STATUS_SUCCESS);
  assert_int_equal (
      dnn.get_rows (rows, &type, &layout, &steps, &sequences, &width, 4, lengths, &fill),
      CUDNN_STATUS_SUCCESS);
  assert_int_equal (type, CUDNN_DATA_FLOAT);
  assert_int_equal (layout, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED);
  assert_int_equal (steps, 5);
  assert_int_equal (sequences, 4);
  assert_int_equal (width, 6);
  assert_memory_equal (lengths, want, sizeof want);
  dnn.destroy_rows (rows);
}

static void
cudnn__refuses_sequences_without_a_step (void **state)
{
  const TdRnnRun runs[] = { { 4, 0 } };
  const TdRnn rnn = { TD_CELL_LSTM, 1, 1, 6, 7, TD_F32, true, 1, runs };
  cudnnRNNDataDescriptor_t rows = NULL;

  assert_int_equal (dnn.create_rows (&rows), CUDNN_STATUS_SUCCESS);
  assert_int_not_equal (td__dnn_rnn_describe_rows (rows, &rnn, rnn.in_size),
                        CUDNN_STATUS_SUCCESS);
  dnn.destroy_rows (rows);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (cudnn__takes_every_network),
    cmocka_unit_test (cudnn__takes_packed_rows_of_ever_fewer_sequences),
    cmocka_unit_test (cudnn__refuses_sequences_without_a_step),
  };

  if (td_cuda_library ("libcudnn.so.9") == NULL)
    {
      puts ("libcudnn.so.9 is not here, skipped");
      return 77;
    }
  return cmocka_run_group_tests_name ("cudnn-rnn-library", tests, setup, NULL);
}
