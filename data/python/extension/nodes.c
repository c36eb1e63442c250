/* Nodes of autograd by what operators have made, where PyTorch does not number them (1.13): the
 * same as plain.py has.  SPDX-License-Identifier: MIT */
#include "private.h"

/* The node that made what `ref` is of, if that is still there: with the event that did. */
static bool
own_node (State *s, PyObject *ref, PyObject **last)
{
  PyObject *tensor = PyObject_CallFunctionObjArgs (ref, NULL), *said = NULL;
  PyObject *node = tensor != NULL ? PyObject_GetAttr (tensor, names.grad_fn) : NULL;
  bool done = node != NULL || (tensor == Py_None && (PyErr_Clear (), true));

  if (node != NULL && node != Py_None && node != *last)
    {
      said = PyObject_CallMethodObjArgs ((PyObject *)s, names.own_node, node,
                                         PyTuple_GetItem (s->fresh, 0), NULL);
      done = said != NULL;
      Py_XDECREF (*last);
      Py_INCREF (node);
      *last = node; /* what several outputs share */
    }
  Py_XDECREF (said);
  Py_XDECREF (node);
  Py_XDECREF (tensor);
  return done;
}

static void
set_fresh (State *s, PyObject *fresh)
{
  PyObject *before = s->fresh;

  s->fresh = fresh;
  Py_XDECREF (before);
}

bool
own_nodes (State *s)
{
  PyObject *refs = PyTuple_GetItem (s->fresh, 1), *last = NULL;
  bool done = refs != NULL;

  for (Py_ssize_t i = 0; done && i < PyList_Size (refs); i++)
    done = own_node (s, PyList_GetItem (refs, i), &last);
  Py_XDECREF (last);
  Py_INCREF (Py_None);
  set_fresh (s, Py_None);
  return done;
}

bool
remember_made (State *s, const Known *known, const Row *outs, long long layer)
{
  PyObject *refs = PyList_New (0), *made = NULL;
  bool done = refs != NULL;

  for (Py_ssize_t i = 0; done && i < outs->n; i++)
    {
      PyObject *key = PyLong_FromVoidPtr (outs->tensors[i]);
      PyObject *ref = key != NULL ? PyDict_GetItemWithError (s->refs, key) : NULL;

      Py_XDECREF (key);
      done = ref != NULL ? PyList_Append (refs, ref) == 0 : !PyErr_Occurred ();
    }
  if (done && PyList_Size (refs) > 0)
    made = Py_BuildValue ("((LLO)O)", s->event, layer, known->plain, refs);
  if (made != NULL)
    set_fresh (s, made);
  Py_XDECREF (refs);
  return done && !PyErr_Occurred ();
}

/* A sum of gradients before a node's own operators is of what the node before has made. */
static void
own_operation (const State *s, int64_t *row, bool *first, long long layer, long long twin)
{
  const bool sums = *first && row[OPERATOR] == s->adding;

  if (row[0] != OPERATION || row[PHASE] != BACKWARD || (*first && row[OPERATOR] == s->seeding))
    return;
  *first = sums;
  row[LAYER] = sums ? s->node_layer : layer;
  row[TWIN] = sums ? s->node_twin : twin;
}

PyObject *
state_end_node (PyObject *self, PyObject *args)
{
  State *s = (State *)(void *)self;
  Words *w = (Words *)(void *)s->words;
  long long layer, twin;
  bool first = true;

  if (!PyArg_ParseTuple (args, "LL:end_node", &layer, &twin))
    return NULL;
  for (Py_ssize_t i = (Py_ssize_t)s->node_from; i < w->n && w->words[i + 1] > 0;
       i += (Py_ssize_t)w->words[i + 1])
    own_operation (s, w->words + i, &first, layer, twin);
  s->node_from = w->n;
  s->node_layer = layer;
  s->node_twin = twin;
  Py_RETURN_NONE;
}

PyObject *
state_own_nodes (PyObject *self, PyObject *none)
{
  State *s = (State *)(void *)self;

  (void)none;
  if (s->fresh != Py_None && !own_nodes (s))
    return NULL;
  Py_RETURN_NONE;
}
