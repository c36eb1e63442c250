/* Words in a row, and storages: what the recorder's state is made of.
 * SPDX-License-Identifier: MIT */
#include "private.h"

#include <structmember.h>

#include <stddef.h>
#include <string.h>

int64_t *
words_add (PyObject *words, Py_ssize_t n)
{
  Words *w = (Words *)(void *)words;

  if (Py_TYPE (words) != words_type)
    {
      PyErr_SetString (PyExc_TypeError, "the words are not the extension's");
      return NULL;
    }
  if (w->n + n > w->room)
    {
      const Py_ssize_t room = w->room * 2 + n + 256;
      int64_t *larger = PyMem_Realloc (w->words, (size_t)room * sizeof *larger);

      if (larger == NULL)
        {
          PyErr_NoMemory ();
          return NULL;
        }
      w->words = larger;
      w->room = room;
    }
  w->n += n;
  return w->words + w->n - n;
}

static void
words_dealloc (PyObject *self)
{
  PyTypeObject *type = Py_TYPE (self);

  PyMem_Free (((Words *)(void *)self)->words);
  ((freefunc)PyType_GetSlot (type, Py_tp_free)) (self);
  Py_DECREF (type);
}

static Py_ssize_t
words_length (PyObject *self)
{
  return ((Words *)(void *)self)->n;
}

static PyObject *
words_item (PyObject *self, Py_ssize_t i)
{
  const Words *w = (const Words *)(const void *)self;

  if (i < 0 || i >= w->n)
    {
      PyErr_SetString (PyExc_IndexError, "there are not so many words");
      return NULL;
    }
  return PyLong_FromLongLong (w->words[i]);
}

static PyObject *
words_extend (PyObject *self, PyObject *more)
{
  Words *w = (Words *)(void *)self;
  const Py_ssize_t n = PySequence_Size (more), before = w->n;
  int64_t *to = n >= 0 ? words_add (self, n) : NULL;

  if (to == NULL)
    return NULL;
  for (Py_ssize_t i = 0; i < n; i++)
    {
      PyObject *item = PySequence_GetItem (more, i);

      to[i] = item != NULL ? PyLong_AsLongLong (item) : -1;
      Py_XDECREF (item);
      if (to[i] == -1 && PyErr_Occurred ())
        {
          w->n = before;
          return NULL;
        }
    }
  Py_INCREF (self);
  return self;
}

static PyObject *
words_clear (PyObject *self, PyObject *none)
{
  (void)none;
  ((Words *)(void *)self)->n = 0;
  Py_RETURN_NONE;
}

static PyObject *
words_take (PyObject *self, PyObject *none)
{
  Words *w = (Words *)(void *)self;
  Words *taken = (Words *)(void *)PyType_GenericAlloc (words_type, 0);

  (void)none;
  if (taken == NULL)
    return NULL;
  taken->words = w->words;
  taken->n = w->n;
  taken->room = w->room;
  w->words = NULL;
  w->n = w->room = 0;
  return (PyObject *)taken;
}

static PyObject *
words_buffer_info (PyObject *self, PyObject *none)
{
  const Words *w = (const Words *)(const void *)self;

  (void)none;
  return Py_BuildValue ("Nn", PyLong_FromVoidPtr (w->words), w->n);
}

static PyMethodDef words_methods[]
    = { { "clear", words_clear, METH_NOARGS, "Drop them." },
        { "take", words_take, METH_NOARGS, "Return all of them; here are none after that." },
        { "buffer_info", words_buffer_info, METH_NOARGS, "Where they lie, and how many." },
        { NULL, NULL, 0, NULL } };

static PyType_Slot words_slots[] = { { Py_tp_dealloc, words_dealloc },
                                     { Py_tp_methods, words_methods },
                                     { Py_sq_length, words_length },
                                     { Py_sq_item, words_item },
                                     { Py_sq_inplace_concat, words_extend },
                                     { Py_tp_new, PyType_GenericNew },
                                     { 0, NULL } };

PyType_Spec words_spec
    = { "_tapedeck.Words", sizeof (Words), 0, Py_TPFLAGS_DEFAULT, words_slots };

/* -------------------------------------------------------------------------- storages */

static PyMemberDef storage_members[]
    = { { "number", T_LONGLONG, offsetof (Storage, number), 0, NULL },
        { "bytes", T_LONGLONG, offsetof (Storage, bytes), 0, NULL },
        { "places", T_OBJECT, offsetof (Storage, places), 0, NULL },
        { "variables", T_OBJECT, offsetof (Storage, variables), 0, NULL },
        { NULL, 0, 0, 0, NULL } };

/* Its tables have numbers alone, so no cycle can go through it. */
static void
storage_dealloc (PyObject *self)
{
  Storage *s = (Storage *)(void *)self;
  PyTypeObject *type = Py_TYPE (self);

  Py_CLEAR (s->places);
  Py_CLEAR (s->variables);
  ((freefunc)PyType_GetSlot (type, Py_tp_free)) (self);
  Py_DECREF (type);
}

static PyType_Slot storage_slots[] = { { Py_tp_dealloc, storage_dealloc },
                                       { Py_tp_members, storage_members },
                                       { Py_tp_new, PyType_GenericNew },
                                       { 0, NULL } };

PyType_Spec storage_spec
    = { "_tapedeck.Storage", sizeof (Storage), 0, Py_TPFLAGS_DEFAULT, storage_slots };
