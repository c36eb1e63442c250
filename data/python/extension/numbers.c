/* Statistics of what an operator has made, at level stats.  SPDX-License-Identifier: MIT */
#include "private.h"

#define LONG_WORK (1 << 16) /* elements from which on other threads run meanwhile */

typedef int64_t (*MeasureAhead) (void *p, uint32_t dtype, const void *data, uint64_t n);

static bool
say (State *s, long long variable, PyObject *slot, long long number)
{
  PyObject *key = PyLong_FromLongLong (variable);
  int64_t *w = key != NULL && PyDict_SetItem (s->slots, key, slot) == 0
                   ? words_add (s->words, 4)
                   : NULL;

  Py_XDECREF (key);
  if (w == NULL)
    return false;
  w[0] = MEASURED;
  w[1] = 4;
  w[2] = variable;
  w[3] = number;
  return true;
}

/* A view of all of an input has the input's numbers: 1; 0: it is none; -1: an error. */
static int
take_of_input (State *s, PyObject *tensor, long long variable, const Row *ins, long long n)
{
  long long address = 0, of_slot[3];

  for (Py_ssize_t i = 0; PyDict_Size (s->slots) > 0 && i < ins->n; i++)
    {
      PyObject *key = PyLong_FromLongLong (ins->variables[i]);
      PyObject *slot = key != NULL ? PyDict_GetItemWithError (s->slots, key) : NULL;

      Py_XDECREF (key);
      if (slot == NULL && PyErr_Occurred ())
        return -1;
      if (slot == NULL)
        continue;
      if (!PyArg_ParseTuple (slot, "LLL", &of_slot[0], &of_slot[1], &of_slot[2])
          || (address == 0 && !number_of (tensor, names.data_ptr, &address)))
        return -1;
      if (of_slot[1] == n && of_slot[2] == address)
        return say (s, variable, slot, of_slot[0]) ? 1 : -1;
    }
  return 0;
}

/* No stride is 0, or there is at most one element: it has numbers of its own. */
static int
is_spread (PyObject *tensor, long long n)
{
  PyObject *strides = PyObject_CallMethodObjArgs (tensor, names.stride, NULL);
  int spread = 1;

  if (strides == NULL)
    return -1;
  for (Py_ssize_t i = 0; n > 1 && i < PyTuple_Size (strides); i++)
    if (PyLong_AsLongLong (PyTuple_GetItem (strides, i)) == 0)
      spread = 0;
  Py_DECREF (strides);
  return PyErr_Occurred () ? -1 : spread;
}

/* Not sparse, not without numbers. */
static bool
is_strided (PyObject *tensor)
{
  PyObject *layout = PyObject_GetAttr (tensor, names.layout);

  Py_XDECREF (layout);
  return layout != NULL && layout == facts.strided && !is_true_at (tensor, names.is_meta);
}

static bool
compute (State *s, PyObject *tensor, long long variable, uint32_t dtype, long long n)
{
  const MeasureAhead call = (MeasureAhead)(uintptr_t)s->measure_ahead;
  PyObject *dense = PyObject_CallMethodObjArgs (tensor, names.contiguous, NULL), *host, *slot;
  long long data, address;
  int64_t number;
  bool done;

  if (dense != NULL && !is_true_at (dense, names.is_cpu) && !PyErr_Occurred ())
    {
      host = PyObject_CallMethodObjArgs (dense, names.cpu, NULL);
      Py_DECREF (dense);
      dense = host;
    }
  if (dense == NULL || PyErr_Occurred () || !number_of (dense, names.data_ptr, &data)
      || !number_of (tensor, names.data_ptr, &address))
    {
      Py_XDECREF (dense);
      return false;
    }
  if (n < LONG_WORK)
    number = call ((void *)(uintptr_t)s->producer, dtype, (const void *)(uintptr_t)data,
                   (uint64_t)n);
  else
    {
      Py_BEGIN_ALLOW_THREADS number = call ((void *)(uintptr_t)s->producer, dtype,
                                            (const void *)(uintptr_t)data, (uint64_t)n);
      Py_END_ALLOW_THREADS
    }
  Py_DECREF (dense);
  if (number < 0)
    return true;
  slot = Py_BuildValue ("(LLL)", (long long)number, n, address);
  done = slot != NULL && say (s, variable, slot, number);
  Py_XDECREF (slot);
  return done;
}

bool
measure (State *s, PyObject *tensor, long long variable, const Row *ins, bool written)
{
  const long long dtype = dtype_of (tensor);
  long long n;
  int taken, spread;

  if (dtype == NO_DTYPE)
    return true;
  if (dtype < 0 || !number_of (tensor, names.numel, &n))
    return false;
  if (n == 0 || !is_strided (tensor))
    return !PyErr_Occurred ();
  taken = PyErr_Occurred () ? -1 : written ? 0 : take_of_input (s, tensor, variable, ins, n);
  if (taken != 0)
    return taken > 0;
  spread = is_spread (tensor, n);
  return spread > 0 ? compute (s, tensor, variable, (uint32_t)dtype, n) : spread == 0;
}
