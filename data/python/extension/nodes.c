/* Nodes of autograd by what operators have made, where PyTorch does not number them (1.13): the
 * same as nodes.py and plain.py have.  SPDX-License-Identifier: MIT */
#include "private.h"

/* A node's hook: with what the operator that made the node is, in numbers.  It is not one of
 * those that are looked at for cycles: the state knows no node. */
typedef struct
{
  PyObject ob_base;
  State *state;
  long long layer, event, age; /* age: of the iteration; 0: the node has no event */
} Ended;

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

static void
end_node (State *s, long long layer, long long twin)
{
  const Words *w = (const Words *)(const void *)s->words;
  bool first = true;

  for (Py_ssize_t i = (Py_ssize_t)s->node_from; i < w->n && w->words[i + 1] > 0;
       i += (Py_ssize_t)w->words[i + 1])
    own_operation (s, w->words + i, &first, layer, twin);
  s->node_from = w->n;
  s->node_layer = layer;
  s->node_twin = twin;
}

/* A node has run, on whatever thread, perhaps of a graph of an iteration before. */
static PyObject *
ended_call (PyObject *self, PyObject *args, PyObject *kwargs)
{
  const Ended *e = (const Ended *)(const void *)self;
  State *s = e->state;

  (void)args;
  (void)kwargs;
  if (s->on && s->words != NULL && (unsigned long)s->thread == PyThread_get_thread_ident ())
    end_node (s, e->layer, e->age == s->age ? e->event : 0);
  Py_RETURN_NONE;
}

static void
ended_dealloc (PyObject *self)
{
  PyTypeObject *type = Py_TYPE (self);

  Py_DECREF (((Ended *)(void *)self)->state);
  ((freefunc)PyType_GetSlot (type, Py_tp_free)) (self);
  Py_DECREF (type);
}

static PyType_Slot ended_slots[]
    = { { Py_tp_dealloc, ended_dealloc }, { Py_tp_call, ended_call }, { 0, NULL } };

PyType_Spec ended_spec
    = { "_tapedeck.Ended", sizeof (Ended), 0, Py_TPFLAGS_DEFAULT, ended_slots };

static bool
give_hook (State *s, PyObject *node, long long layer, long long event, long long age)
{
  PyObject *hook = PyType_GenericAlloc (ended_type, 0), *handle;
  Ended *e = (Ended *)(void *)hook;

  if (hook == NULL)
    return false;
  Py_INCREF (s);
  e->state = s;
  e->layer = layer;
  e->event = event;
  e->age = age;
  handle = PyObject_CallMethodObjArgs (node, names.register_hook, hook, NULL);
  Py_DECREF (hook);
  Py_XDECREF (handle);
  return handle != NULL;
}

/* The layer of the parameter that a leaf is of; 0: it is none; -1: an error is set. */
static long long
layer_of_leaf (const State *s, PyObject *leaf)
{
  PyObject *tensor = PyObject_GetAttr (leaf, names.variable);
  long long found = tensor != NULL ? look_up (s->by_id, (long long)(intptr_t)tensor) : -2;

  Py_XDECREF (tensor);
  if (found >= 0)
    found = look_up (s->update_layers, found);
  return found == -2 ? -1 : found < 0 ? 0 : found;
}

/* Gradients are summed there: a leaf has one hook of this recorder, as long as it is there. */
static bool
own_leaf (State *s, PyObject *leaf)
{
  PyObject *metadata = PyObject_GetAttr (leaf, names.metadata);
  PyObject *mark
      = metadata != NULL ? PyDict_GetItemWithError (metadata, names._tapedeck) : NULL;
  bool done = mark != NULL && mark == s->mark;

  if (!done && metadata != NULL && !PyErr_Occurred ()
      && PyDict_SetItem (metadata, names._tapedeck, s->mark) == 0)
    {
      const long long layer = layer_of_leaf (s, leaf);

      done = layer >= 0 && give_hook (s, leaf, layer, 0, 0);
    }
  Py_XDECREF (metadata);
  return done;
}

static bool
own_leaves (State *s, PyObject *node)
{
  PyObject *next = PyObject_GetAttr (node, names.next_functions);
  bool done = next != NULL;

  for (Py_ssize_t i = 0; done && i < PyTuple_Size (next); i++)
    {
      PyObject *leaf = PyTuple_GetItem (PyTuple_GetItem (next, i), 0);

      if ((PyObject *)Py_TYPE (leaf) == facts.accumulate)
        done = own_leaf (s, leaf);
    }
  Py_XDECREF (next);
  return done;
}

/* Whether it is by its name the backward of what made it: 1, 0; -1: an error is set. */
static int
agrees (State *s, PyObject *node, PyObject *plain)
{
  int same = has_its_name (s, node, plain);
  PyObject *asked;

  if (same >= 0 || PyErr_Occurred ())
    return same;
  asked = PyObject_CallMethodObjArgs ((PyObject *)s, names.agrees, node, plain, NULL);
  same = asked != NULL ? PyObject_IsTrue (asked) : -1;
  Py_XDECREF (asked);
  return same;
}

/* None where there is none, or where PyTorch gives none: of a view that was made under no_grad,
 * and of whose base the program has then written to another part. */
static PyObject *
node_of (PyObject *tensor)
{
  PyObject *node = PyObject_GetAttr (tensor, names.grad_fn);

  if (node == NULL && PyErr_ExceptionMatches (PyExc_RuntimeError))
    {
      PyErr_Clear ();
      Py_INCREF (Py_None);
      node = Py_None;
    }
  return node;
}

/* Give the node that made what `ref` is of, if that is still there, its hook. */
static bool
own_node (State *s, PyObject *ref, PyObject **last)
{
  PyObject *tensor = PyObject_CallFunctionObjArgs (ref, NULL), *plain;
  PyObject *node = tensor != NULL ? node_of (tensor) : NULL;
  bool done = node != NULL || (tensor == Py_None && (PyErr_Clear (), true));
  long long event, layer;
  int same;

  if (node != NULL && node != Py_None && node != *last)
    {
      done = PyArg_ParseTuple (PyTuple_GetItem (s->fresh, 0), "LLO", &event, &layer, &plain);
      same = done ? agrees (s, node, plain) : -1;
      done = same >= 0 && give_hook (s, node, layer, same ? event : 0, s->age)
             && own_leaves (s, node);
      Py_XDECREF (*last);
      Py_INCREF (node);
      *last = node; /* what several outputs share */
    }
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

PyObject *
state_own_nodes (PyObject *self, PyObject *none)
{
  State *s = (State *)(void *)self;

  (void)none;
  if (s->fresh != Py_None && !own_nodes (s))
    return NULL;
  Py_RETURN_NONE;
}
