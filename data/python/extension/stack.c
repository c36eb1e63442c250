/* PyTorch 1.13 keeps its stack of modes in Python (torch.utils._python_dispatch): this does
 * what its
 * `_TorchDispatchStackMode` does, for whatever modes are on it.  SPDX-License-Identifier: MIT
 */
#include "private.h"

static bool
set_mode (PyObject *mode)
{
  PyObject *done = PyObject_CallFunctionObjArgs (facts.set_mode, mode, NULL);

  Py_XDECREF (done);
  return done != NULL;
}

static long
stack_depth (void)
{
  PyObject *n = PyObject_CallFunctionObjArgs (facts.stack_depth, NULL);
  const long depth = n != NULL ? PyLong_AsLong (n) : -1;

  Py_XDECREF (n);
  return depth;
}

static PyObject *
run_under (PyObject *mode, PyObject *args)
{
  PyObject *method, *of, *out = NULL;

  if (PyType_IsSubtype (Py_TYPE (mode), dispatch_type))
    return torch_dispatch (mode, args);
  method = PyObject_GetAttr (mode, names.__torch_dispatch__);
  of = method != NULL ? PyObject_GetAttr (method, names.__self__) : NULL;
  if (of == (PyObject *)Py_TYPE (mode))
    PyErr_SetString (PyExc_RuntimeError,
                     "a mode's __torch_dispatch__ is to be a method, not one of its class");
  else if (of != NULL)
    out = PyObject_CallObject (method, args);
  Py_XDECREF (of);
  Py_XDECREF (method);
  return out;
}

/* The mode is back on the stack, whatever happened. */
static bool
put_back (PyObject *self, PyObject *mode)
{
  PyObject *type, *error, *trace, *done = NULL;
  long depth;

  PyErr_Fetch (&type, &error, &trace);
  depth = stack_depth ();
  if (depth > 0 || (depth == 0 && set_mode (self)))
    done = PyObject_CallFunctionObjArgs (facts.push_mode, mode, NULL);
  Py_XDECREF (done);
  if (done != NULL)
    PyErr_Restore (type, error, trace);
  else
    {
      Py_XDECREF (type);
      Py_XDECREF (error);
      Py_XDECREF (trace);
    }
  return done != NULL;
}

static PyObject *
stack_dispatch (PyObject *self, PyObject *args)
{
  PyObject *mode = PyObject_CallFunctionObjArgs (facts.pop_mode, NULL), *out = NULL;
  long depth;

  if (mode == NULL)
    return NULL;
  depth = stack_depth ();
  if (depth >= 0 && set_mode (depth > 0 ? self : Py_None))
    out = run_under (mode, args);
  if (!put_back (self, mode))
    Py_CLEAR (out);
  Py_DECREF (mode);
  return out;
}

static PyMethodDef stack_methods[] = { { "__torch_dispatch__", stack_dispatch, METH_VARARGS,
                                         "Run an operator under the last mode." },
                                       { NULL, NULL, 0, NULL } };

static PyType_Slot stack_slots[]
    = { { Py_tp_methods, stack_methods }, { Py_tp_new, PyType_GenericNew }, { 0, NULL } };

PyType_Spec stack_spec
    = { "_tapedeck.Stack", sizeof (PyObject), 0, Py_TPFLAGS_DEFAULT, stack_slots };
