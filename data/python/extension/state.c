/* A recorder's state: attributes that both Python and this module read and write, the methods
 * that Python calls, and small things that the other files share.  SPDX-License-Identifier: MIT
 */
#include "private.h"

#include <structmember.h>

#include <stddef.h>
#include <string.h>

/* ---------------------------------------------------------------------------- shared */

bool
is_tensor (PyObject *value)
{
  PyTypeObject *type = Py_TYPE (value);

  return (PyObject *)type == facts.Tensor
         || PyType_IsSubtype (type, (PyTypeObject *)(void *)facts.Tensor);
}

unsigned
slot_of (const void *address)
{
  const uintptr_t a = (uintptr_t)address >> 4;

  return (unsigned)(a ^ a >> 8) & (N_LAST - 1);
}

bool
is_true_at (PyObject *of, PyObject *name)
{
  PyObject *value = PyObject_GetAttr (of, name);
  const bool is = value == Py_True;

  Py_XDECREF (value);
  return is;
}

bool
forgiven (void)
{
  if (!PyErr_ExceptionMatches (PyExc_Exception))
    return false;
  PyErr_Clear ();
  return true;
}

static bool
take_number (PyObject *value, long long *number)
{
  if (value == NULL)
    return false;
  *number = PyLong_AsLongLong (value);
  if (*number == -1 && PyErr_Occurred () && PyErr_ExceptionMatches (PyExc_OverflowError))
    {
      PyErr_Clear (); /* an address above the middle */
      *number = (long long)PyLong_AsUnsignedLongLong (value);
    }
  Py_DECREF (value);
  return *number != -1 || !PyErr_Occurred ();
}

bool
number_of (PyObject *of, PyObject *method, long long *number)
{
  return take_number (PyObject_CallMethodObjArgs (of, method, NULL), number);
}

bool
number_at (PyObject *of, PyObject *name, long long *number)
{
  return take_number (PyObject_GetAttr (of, name), number);
}

long long
look_up (PyObject *table, long long key)
{
  PyObject *at = PyLong_FromLongLong (key);
  PyObject *value = at != NULL ? PyDict_GetItemWithError (table, at) : NULL;
  long long found = -1;

  Py_XDECREF (at);
  if (value != NULL)
    found = PyLong_AsLongLong (value);
  return PyErr_Occurred () ? -2 : found;
}

bool
enter (PyObject *table, long long key, long long value)
{
  PyObject *at = PyLong_FromLongLong (key), *number = PyLong_FromLongLong (value);
  const bool done = at != NULL && number != NULL && PyDict_SetItem (table, at, number) == 0;

  Py_XDECREF (at);
  Py_XDECREF (number);
  return done;
}

bool
strike (PyObject *table, PyObject *key)
{
  if (PyDict_Size (table) == 0)
    return true;
  if (PyDict_GetItemWithError (table, key) == NULL)
    return !PyErr_Occurred ();
  return PyDict_DelItem (table, key) == 0;
}

/* ------------------------------------------------------------------------------ rows */

void
row_begin (Row *row)
{
  row->tensors = row->first_tensors;
  row->variables = row->first_variables;
  row->n = 0;
  row->room = sizeof row->first_tensors / sizeof *row->first_tensors;
}

bool
row_add (Row *row, PyObject *tensor, long long variable)
{
  if (row->n == row->room)
    {
      const size_t room = (size_t)row->room * 2;
      PyObject **tensors = PyMem_Malloc (room * sizeof *tensors);
      long long *variables = PyMem_Malloc (room * sizeof *variables);

      if (tensors == NULL || variables == NULL)
        {
          PyMem_Free (tensors);
          PyMem_Free (variables);
          PyErr_NoMemory ();
          return false;
        }
      for (Py_ssize_t i = 0; i < row->n; i++)
        {
          tensors[i] = row->tensors[i];
          variables[i] = row->variables[i];
        }
      row_end (row);
      row->tensors = tensors;
      row->variables = variables;
      row->room = (Py_ssize_t)room;
    }
  row->tensors[row->n] = tensor;
  row->variables[row->n++] = variable;
  return true;
}

bool
row_has (const Row *row, const PyObject *tensor)
{
  for (Py_ssize_t i = 0; i < row->n; i++)
    if (row->tensors[i] == tensor)
      return true;
  return false;
}

void
row_end (Row *row)
{
  if (row->tensors == row->first_tensors)
    return;
  PyMem_Free (row->tensors);
  PyMem_Free (row->variables);
}

/* ------------------------------------------------------------------------------ type */

static PyMemberDef state_members[] = {
#define X(name) { #name, T_OBJECT_EX, offsetof (State, name), 0, NULL },
  STATE_OBJECTS (X)
#undef X
#define X(name) { #name, T_LONGLONG, offsetof (State, name), 0, NULL },
      STATE_NUMBERS (X)
#undef X
#define X(name) { #name, T_BOOL, offsetof (State, name), 0, NULL },
          STATE_FLAGS (X)
#undef X
              { NULL, 0, 0, 0, NULL }
};

static int
state_traverse (PyObject *self, visitproc visit, void *arg)
{
  State *s = (State *)(void *)self;

#define X(name) Py_VISIT (s->name);
  STATE_OBJECTS (X)
#undef X
  Py_VISIT (s->known);
  Py_VISIT (s->codes);
  Py_VISIT (s->known_places);
  return 0;
}

static int
state_clear (PyObject *self)
{
  State *s = (State *)(void *)self;

#define X(name) Py_CLEAR (s->name);
  STATE_OBJECTS (X)
#undef X
  memset (s->last_known, 0, sizeof s->last_known);
  memset (s->last_codes, 0, sizeof s->last_codes);
  Py_CLEAR (s->known);
  Py_CLEAR (s->codes);
  Py_CLEAR (s->known_places);
  return 0;
}

static void
state_dealloc (PyObject *self)
{
  PyTypeObject *type = Py_TYPE (self);

  PyObject_GC_UnTrack (self);
  state_clear (self);
  ((freefunc)PyType_GetSlot (type, Py_tp_free)) (self);
  Py_DECREF (type);
}

static PyObject *
state_sweep (PyObject *self, PyObject *none)
{
  (void)none;
  if (!sweep ((State *)(void *)self))
    return NULL;
  Py_RETURN_NONE;
}

static PyObject *
state_var (PyObject *self, PyObject *tensor)
{
  const long long variable = variable_of ((State *)(void *)self, tensor);

  return variable >= 0 ? PyLong_FromLongLong (variable) : NULL;
}

static PyMethodDef state_methods[]
    = { { "sweep", state_sweep, METH_NOARGS, "Say what has been given back." },
        { "var", state_var, METH_O, "The variable of a tensor." },
        { "storage", state_storage, METH_VARARGS, "The storage of a tensor, and its address." },
        { "declare", state_declare, METH_VARARGS, "A variable is there: its number." },
        { "look_at", state_look_at, METH_O, "Say it if a storage has been given back." },
        { "remove", state_remove, METH_O, "Forget a storage." },
        { "place_of", place_of, METH_O, "Where in the program a frame is." },
        { "own_nodes", state_own_nodes, METH_NOARGS, "Own those of what was made last." },
        { "layer_of_update", layer_of_update, METH_VARARGS,
          "The layer of what an optimizer works on." },
        { NULL, NULL, 0, NULL } };

static PyType_Slot state_slots[] = { { Py_tp_dealloc, state_dealloc },
                                     { Py_tp_traverse, state_traverse },
                                     { Py_tp_clear, state_clear },
                                     { Py_tp_members, state_members },
                                     { Py_tp_methods, state_methods },
                                     { Py_tp_new, PyType_GenericNew },
                                     { 0, NULL } };

PyType_Spec state_spec
    = { "_tapedeck.State", sizeof (State), 0,
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, state_slots };
