/* The mode's method: an operator is run and said, and before and after it the gate is asked
 * where somebody wants that.  SPDX-License-Identifier: MIT */
#include "private.h"

#include <structmember.h>

#include <stddef.h>
#include <time.h>

/** What a mode has beside what PyTorch gives it. */
typedef struct
{
  PyObject ob_base;
  PyObject *recorder, *gate;
  unsigned long long word; /* address of what the gate's library wants; 0: nothing ever */
} Dispatch;

static long long
now (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return (long long)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* An error of the recorder's own is counted and forgotten; what is none stays set. */
static bool
forgive (State *s, PyObject *func)
{
  PyObject *type, *error, *trace, *done;

  if (!PyErr_ExceptionMatches (PyExc_Exception))
    return false;
  PyErr_Fetch (&type, &error, &trace);
  PyErr_NormalizeException (&type, &error, &trace);
  if (trace != NULL)
    PyException_SetTraceback (error, trace);
  done = PyObject_CallMethodObjArgs ((PyObject *)s, names.mistake, func, error, NULL);
  Py_XDECREF (type);
  Py_XDECREF (error);
  Py_XDECREF (trace);
  Py_XDECREF (done);
  return done != NULL;
}

/* Run an operator as PyTorch's own call of it would. */
static PyObject *
run (PyObject *call, PyObject *args, PyObject *kwargs)
{
  return PyObject_Call (call, args, kwargs != NULL && PyDict_Size (kwargs) > 0 ? kwargs : NULL);
}

/* It has failed with the error that is set, which stays so. */
static void
failed (const Dispatch *d, const Known *known, PyObject *func, PyObject *args, PyObject *kwargs,
        long long start, PyObject *frame)
{
  State *s = (State *)(void *)d->recorder;
  PyObject *type, *error, *trace, *none, *asked;
  const long long end = now ();

  if (!PyErr_ExceptionMatches (PyExc_Exception))
    return;
  PyErr_Fetch (&type, &error, &trace);
  PyErr_NormalizeException (&type, &error, &trace);
  none = PyTuple_New (0);
  if (none != NULL
      && (operation (s, known, args, kwargs, none, start, end, EVENT_FAILED, frame)
          || forgive (s, func)))
    {
      asked
          = PyObject_CallMethodObjArgs (d->gate, names.failed, func, args, error, frame, NULL);
      Py_XDECREF (asked);
    }
  Py_XDECREF (none);
  if (PyErr_Occurred ())
    { /* a handler of the program's has raised: that goes before */
      Py_XDECREF (type);
      Py_XDECREF (error);
      Py_XDECREF (trace);
    }
  else
    PyErr_Restore (type, error, trace);
}

/* What the gate wants to see of an operator's result; -1: an error is set. */
static long
ask (const Dispatch *d, PyObject *func, PyObject *args, PyObject *frame)
{
  PyObject *looks = PyObject_CallMethodObjArgs (d->gate, names.before, func, args, frame, NULL);
  const long wanted = looks != NULL ? PyLong_AsLong (looks) : -1;

  Py_XDECREF (looks);
  return PyErr_Occurred () ? -1 : wanted;
}

static PyObject *
run_and_say (const Dispatch *d, PyObject *func, PyObject *args, PyObject *kwargs,
             PyObject *frame)
{
  State *s = (State *)(void *)d->recorder;
  const volatile uint32_t *word = (const volatile uint32_t *)(uintptr_t)d->word;
  const Known *known = known_of (s, func);
  PyObject *out, *after;
  long looks = 0;
  long long start, end;

  if (known == NULL && !forgive (s, func))
    return NULL;
  if (word != NULL && *word != 0)
    looks = ask (d, func, args, frame);
  if (looks < 0)
    return NULL;
  start = now ();
  out = run (known != NULL ? known->call : func, args, kwargs);
  if (out == NULL)
    {
      if (known != NULL)
        failed (d, known, func, args, kwargs, start, frame);
      return NULL;
    }
  end = now ();
  if (known != NULL && !operation (s, known, args, kwargs, out, start, end, 0, frame)
      && !forgive (s, func))
    Py_CLEAR (out);
  if (out != NULL && looks != 0)
    {
      after = PyObject_CallMethodObjArgs (d->gate, names.after, func, args, out, NULL);
      if (after == NULL)
        Py_CLEAR (out);
      Py_XDECREF (after);
    }
  return out;
}

PyObject *
torch_dispatch (PyObject *self, PyObject *given)
{
  const Dispatch *d = (const Dispatch *)(const void *)self;
  PyObject *func, *types, *args, *kwargs = NULL, *frame, *out;

  if (!PyArg_ParseTuple (given, "OOO!|O:__torch_dispatch__", &func, &types, &PyTuple_Type,
                         &args, &kwargs))
    return NULL;
  kwargs = kwargs != NULL && PyDict_Check (kwargs) ? kwargs : NULL;
  /* That PyTorch copies a handle is shown as a detach with a type: no operator has run. */
  if (d->recorder == NULL || d->gate == NULL || !((State *)(void *)d->recorder)->on
      || (func == facts.detach && PyObject_IsTrue (types) == 1))
    return run (func, args, kwargs);
  frame = (PyObject *)PyEval_GetFrame ();
  frame = frame != NULL ? frame : Py_None;
  Py_INCREF (frame);
  out = run_and_say (d, func, args, kwargs, frame);
  Py_DECREF (frame);
  return out;
}

/* -------------------------------------------------------------------------------- type */

static int
dispatch_traverse (PyObject *self, visitproc visit, void *arg)
{
  const Dispatch *d = (const Dispatch *)(const void *)self;

  Py_VISIT (d->recorder);
  Py_VISIT (d->gate);
  return 0;
}

static int
dispatch_clear (PyObject *self)
{
  Dispatch *d = (Dispatch *)(void *)self;

  Py_CLEAR (d->recorder);
  Py_CLEAR (d->gate);
  return 0;
}

static void
dispatch_dealloc (PyObject *self)
{
  PyTypeObject *type = Py_TYPE (self);

  PyObject_GC_UnTrack (self);
  dispatch_clear (self);
  ((freefunc)PyType_GetSlot (type, Py_tp_free)) (self);
  Py_DECREF (type);
}

static PyObject *
get_recorder (PyObject *self, void *closure)
{
  PyObject *recorder = ((Dispatch *)(void *)self)->recorder;

  (void)closure;
  recorder = recorder != NULL ? recorder : Py_None;
  Py_INCREF (recorder);
  return recorder;
}

static int
set_recorder (PyObject *self, PyObject *recorder, void *closure)
{
  Dispatch *d = (Dispatch *)(void *)self;
  PyObject *before = d->recorder;

  (void)closure;
  if (recorder == NULL || !PyType_IsSubtype (Py_TYPE (recorder), state_type))
    {
      PyErr_SetString (PyExc_TypeError, "the recorder's state is not the extension's");
      return -1;
    }
  Py_INCREF (recorder);
  d->recorder = recorder;
  Py_XDECREF (before);
  return 0;
}

static PyMemberDef dispatch_members[]
    = { { "gate", T_OBJECT, offsetof (Dispatch, gate), 0, NULL },
        { "word", T_ULONGLONG, offsetof (Dispatch, word), 0, NULL },
        { NULL, 0, 0, 0, NULL } };
static PyGetSetDef dispatch_attributes[]
    = { { "recorder", get_recorder, set_recorder, NULL, NULL },
        { NULL, NULL, NULL, NULL, NULL } };
static PyMethodDef dispatch_methods[]
    = { { "__torch_dispatch__", torch_dispatch, METH_VARARGS, "Run an operator and say it." },
        { NULL, NULL, 0, NULL } };

static PyType_Slot dispatch_slots[]
    = { { Py_tp_dealloc, dispatch_dealloc },   { Py_tp_traverse, dispatch_traverse },
        { Py_tp_clear, dispatch_clear },       { Py_tp_members, dispatch_members },
        { Py_tp_getset, dispatch_attributes }, { Py_tp_methods, dispatch_methods },
        { Py_tp_new, PyType_GenericNew },      { 0, NULL } };

PyType_Spec dispatch_spec
    = { "_tapedeck.Dispatch", sizeof (Dispatch), 0,
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, dispatch_slots };
