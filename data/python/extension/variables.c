/* Tensors as variables of the tape, storages, and what happens to both: plain.py in C, method
 * by method.  SPDX-License-Identifier: MIT */
#include "private.h"

/* What a tensor looks like. */
typedef struct
{
  PyObject *shape, *strides, *offset;
  long long dims[MOST_DIMS], steps[MOST_DIMS];
  Py_ssize_t ndim;
} Layout;

static void
layout_end (Layout *l)
{
  Py_CLEAR (l->shape);
  Py_CLEAR (l->strides);
  Py_CLEAR (l->offset);
}

static bool
layout_of (PyObject *tensor, bool stored, Layout *l)
{
  l->shape = PyObject_GetAttr (tensor, names.shape);
  l->strides = l->shape != NULL && stored
                   ? PyObject_CallMethodObjArgs (tensor, names.stride, NULL)
                   : NULL;
  l->offset = l->strides != NULL
                  ? PyObject_CallMethodObjArgs (tensor, names.storage_offset, NULL)
                  : NULL;
  l->ndim = l->shape != NULL ? PyTuple_Size (l->shape) : -1;
  if (l->ndim >= 0 && (!stored || l->offset != NULL))
    return true;
  layout_end (l);
  return false;
}

static PyObject *
key_of (const Layout *l)
{
  return PyTuple_Pack (3, l->offset, l->shape, l->strides);
}

/* The numbers of a tuple; more dimensions than the tape has are gathered in the first. */
static bool
read_dims (const Layout *l, long long *dims, Py_ssize_t *n)
{
  const Py_ssize_t more = l->ndim > MOST_DIMS ? l->ndim - MOST_DIMS : 0;
  long long first = 1;

  for (Py_ssize_t i = 0; i < l->ndim; i++)
    {
      const long long dim = PyLong_AsLongLong (PyTuple_GetItem (l->shape, i));

      if (dim == -1 && PyErr_Occurred ())
        return false;
      first = i <= more ? first * dim : first;
      if (i >= more)
        dims[i - more] = i == more ? first : dim;
    }
  *n = l->ndim - more;
  return true;
}

/* As PyTorch sees it: where a dimension of 1 steps to does not matter. */
static bool
read_strides (Layout *l, bool *dense)
{
  long long expected = 1;
  bool empty = false;

  *dense = true;
  for (Py_ssize_t i = l->ndim - 1; i >= 0; i--)
    {
      l->steps[i] = PyLong_AsLongLong (PyTuple_GetItem (l->strides, i));
      if (l->steps[i] == -1 && PyErr_Occurred ())
        return false;
      empty = empty || l->dims[i] == 0;
      if (l->dims[i] == 1)
        continue;
      *dense = *dense && l->steps[i] == expected;
      expected *= l->dims[i];
    }
  *dense = *dense || empty;
  return true;
}

/* -------------------------------------------------------------------------- storages */

static bool
address_at (PyObject *store, bool meta, long long *address)
{
  *address = 0;
  return meta || number_of (store, names.data_ptr, address);
}

/* 0: the host; the device's number and 1; -1: an error is set. */
static long long
device_number (PyObject *store, bool *meta)
{
  PyObject *device = PyObject_GetAttr (store, names.device);
  PyObject *type = device != NULL ? PyObject_GetAttr (device, names.type) : NULL, *index;
  long long number = 0;

  if (type == NULL)
    {
      Py_XDECREF (device);
      return -1;
    }
  *meta = PyUnicode_CompareWithASCIIString (type, "meta") == 0;
  if (PyUnicode_CompareWithASCIIString (type, "cpu") != 0)
    {
      index = PyObject_GetAttr (device, names.index);
      if (index != NULL && index != Py_None)
        number = PyLong_AsLongLong (index);
      Py_XDECREF (index);
      number++;
    }
  Py_DECREF (type);
  Py_DECREF (device);
  return PyErr_Occurred () ? -1 : number;
}

static Storage *
allocate (State *s, PyObject *tensor, PyObject *store, PyObject *cdata, long long category,
          long long bytes)
{
  bool meta = false;
  const long long at = is_true_at (tensor, names.is_cpu) ? 0 : device_number (store, &meta);
  PyObject *weak;
  long long address;
  Storage *made;
  int64_t *w;

  if (at < 0 || PyErr_Occurred () || !address_at (store, meta, &address))
    return NULL;
  made = (Storage *)(void *)PyType_GenericAlloc (storage_type, 0);
  if (made == NULL)
    return NULL;
  made->number = s->next_storage;
  made->bytes = bytes;
  made->places = PyDict_New ();
  made->variables = PyList_New (0);
  weak = made->places != NULL && made->variables != NULL
             ? PyObject_CallMethodObjArgs (store, names._weak_ref, NULL)
             : NULL;
  Py_XDECREF (weak);
  if (weak == NULL || PyDict_SetItem (s->storages, cdata, (PyObject *)made) < 0)
    {
      Py_DECREF (made);
      return NULL;
    }
  Py_DECREF (made); /* the table has it */
  s->next_storage++;
  s->live_bytes += bytes;
  w = words_add (s->words, 7);
  if (w == NULL)
    return NULL;
  w[0] = ALLOC;
  w[1] = 7;
  w[2] = made->number;
  w[3] = address;
  w[4] = bytes;
  w[5] = category;
  w[6] = at;
  return made;
}

/* The storage of a tensor, and its address as an object that is the caller's; both NULL: it has
 * none, or an error is set. */
static Storage *
storage_of (State *s, PyObject *tensor, long long category, PyObject **cdata)
{
  PyObject *store = PyObject_CallFunctionObjArgs (facts.storage_of, tensor, NULL), *done;
  Storage *found = NULL;
  long long bytes, n;

  *cdata = store != NULL ? PyObject_GetAttr (store, names._cdata) : NULL;
  if (*cdata == NULL)
    {
      Py_XDECREF (store);
      (void)forgiven (); /* sparse, fake, wrapped */
      return NULL;
    }
  found = (Storage *)(void *)PyDict_GetItemWithError (s->storages, *cdata);
  if (PyErr_Occurred () || !number_of (store, names.nbytes, &bytes))
    goto none;
  if (found != NULL && bytes > found->bytes)
    { /* resize_ has made it larger */
      Py_INCREF (found);
      done = PyObject_CallMethodObjArgs ((PyObject *)s, names.give_up, *cdata, found, NULL);
      Py_DECREF (found);
      Py_XDECREF (done);
      if (done == NULL)
        goto none;
      found = NULL;
    }
  if (found == NULL)
    {
      if (bytes == 0 && (!number_of (tensor, names.numel, &n) || n == 0))
        goto none;
      found = allocate (s, tensor, store, *cdata, category, bytes);
      if (found == NULL)
        goto none;
    }
  Py_DECREF (store);
  return found;
none:
  Py_DECREF (store);
  Py_CLEAR (*cdata);
  return NULL;
}

PyObject *
state_storage (PyObject *self, PyObject *args)
{
  PyObject *tensor, *cdata;
  long long category;
  Storage *found;

  if (!PyArg_ParseTuple (args, "OL:storage", &tensor, &category))
    return NULL;
  found = storage_of ((State *)(void *)self, tensor, category, &cdata);
  if (found != NULL)
    return Py_BuildValue ("ON", found, cdata);
  return PyErr_Occurred () ? NULL : Py_BuildValue ("Oi", Py_None, 0);
}

/* --------------------------------------------------------------------- what goes away */

/* The call-back of a weak reference: what is to be forgotten when its tensor goes. */
typedef struct
{
  PyObject ob_base;
  State *state;
  PyObject *key, *cdata;
} Gone;

static PyObject *
gone_new (State *s, PyObject *key, PyObject *cdata)
{
  Gone *g = (Gone *)(void *)PyType_GenericAlloc (gone_type, 0);

  if (g == NULL)
    return NULL;
  Py_INCREF (s);
  Py_INCREF (key);
  Py_INCREF (cdata);
  g->state = s;
  g->key = key;
  g->cdata = cdata;
  return (PyObject *)g;
}

static PyObject *
gone_call (PyObject *self, PyObject *args, PyObject *kwargs)
{
  const Gone *g = (const Gone *)(const void *)self;
  const State *s = g->state;

  (void)args;
  (void)kwargs;
  if (s == NULL || s->by_id == NULL || s->refs == NULL || s->hints == NULL)
    Py_RETURN_NONE; /* the state is going itself */
  if (!strike (s->by_id, g->key) || !strike (s->refs, g->key)
      || PyList_Append (s->hints, g->cdata) < 0)
    return NULL;
  Py_RETURN_NONE;
}

static int
gone_traverse (PyObject *self, visitproc visit, void *arg)
{
  Py_VISIT (((Gone *)(void *)self)->state);
  return 0;
}

static int
gone_clear (PyObject *self)
{
  Py_CLEAR (((Gone *)(void *)self)->state);
  return 0;
}

static void
gone_dealloc (PyObject *self)
{
  Gone *g = (Gone *)(void *)self;
  PyTypeObject *type = Py_TYPE (self);

  PyObject_GC_UnTrack (self);
  Py_CLEAR (g->state);
  Py_CLEAR (g->key);
  Py_CLEAR (g->cdata);
  ((freefunc)PyType_GetSlot (type, Py_tp_free)) (self);
  Py_DECREF (type);
}

static PyType_Slot gone_slots[] = { { Py_tp_dealloc, gone_dealloc },
                                    { Py_tp_traverse, gone_traverse },
                                    { Py_tp_clear, gone_clear },
                                    { Py_tp_call, gone_call },
                                    { 0, NULL } };

PyType_Spec gone_spec = { "_tapedeck.Gone", sizeof (Gone), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, gone_slots };

/* ------------------------------------------------------------------------- variables */

static bool
ref_new (State *s, PyObject *tensor, PyObject *key, PyObject *cdata)
{
  PyObject *gone = gone_new (s, key, cdata);
  PyObject *ref = gone != NULL ? PyWeakref_NewRef (tensor, gone) : NULL;
  const bool done = ref != NULL && PyDict_SetItem (s->refs, key, ref) == 0;

  Py_XDECREF (ref);
  Py_XDECREF (gone);
  return done;
}

/* set_ has given it another storage: the one before may go without it. */
static bool
ref_move (State *s, PyObject *ref, PyObject *cdata)
{
  PyObject *callback = PyObject_GetAttr (ref, names.__callback__);
  Gone *g = (Gone *)(void *)callback;
  int moved = callback != NULL ? PyObject_RichCompareBool (g->cdata, cdata, Py_NE) : -1;

  if (moved > 0 && PyList_Append (s->hints, g->cdata) < 0)
    moved = -1;
  if (moved > 0)
    {
      Py_INCREF (cdata);
      Py_DECREF (g->cdata);
      g->cdata = cdata;
    }
  Py_XDECREF (callback);
  return moved >= 0;
}

/* By its handle the tensor is this variable; when it goes that is forgotten. */
static bool
watch (State *s, PyObject *tensor, long long variable, PyObject *cdata)
{
  PyObject *key = PyLong_FromVoidPtr (tensor), *value = PyLong_FromLongLong (variable), *ref;
  bool done = key != NULL && value != NULL && PyDict_SetItem (s->by_id, key, value) == 0;

  ref = done ? PyDict_GetItemWithError (s->refs, key) : NULL;
  if (ref != NULL)
    done = ref_move (s, ref, cdata);
  else if (done)
    done = !PyErr_Occurred () && ref_new (s, tensor, key, cdata);
  Py_XDECREF (key);
  Py_XDECREF (value);
  return done;
}

long long
dtype_of (PyObject *tensor)
{
  PyObject *dtype = PyObject_GetAttr (tensor, names.dtype);
  PyObject *number = dtype != NULL ? PyDict_GetItemWithError (facts.dtypes, dtype) : NULL;

  Py_XDECREF (dtype);
  if (number != NULL)
    return PyLong_AsLongLong (number);
  return PyErr_Occurred () ? -1 : NO_DTYPE;
}

/* Append a number to a list; not of more than is there. */
static bool
append (PyObject *list, long long number)
{
  PyObject *item = PyLong_FromLongLong (number);
  const bool done = item != NULL && PyList_Append (list, item) == 0;

  Py_XDECREF (item);
  return done;
}

/* What is said of a variable that has a name. */
typedef struct
{
  long long flags, name, layer, whole;
} Named;

static bool
enter_named (State *s, long long variable, long long category, const Named *named)
{
  PyObject *known = Py_BuildValue ("(LLLLL)", named->flags, category, named->name, named->layer,
                                   named->whole);
  PyObject *key = PyLong_FromLongLong (variable);
  const bool done
      = known != NULL && key != NULL && PyDict_SetItem (s->parameters, key, known) == 0;

  Py_XDECREF (known);
  Py_XDECREF (key);
  return done && enter (s->update_layers, variable, named->layer);
}

/* The newest variable there; what is the parameter's stays so: backward looks at a weight, too.
 */
static bool
enter_place (const State *s, const Storage *storage, PyObject *key, PyObject *variable,
             const Named *named)
{
  PyObject *known = named->flags == 0 ? PyDict_GetItemWithError (storage->places, key) : NULL;
  const int stays = known != NULL ? PyDict_Contains (s->parameters, known) : 0;

  return !PyErr_Occurred () && stays >= 0
         && (stays > 0 || PyDict_SetItem (storage->places, key, variable) == 0);
}

/* Say a variable; `laid`: its layout where the caller has it already. */
static long long
declare (State *s, PyObject *tensor, Storage *storage, PyObject *cdata, long long category,
         const Named *named, Layout *laid)
{
  static const Named none = { 0, 0, 0, 0 };
  const long long variable = s->next_variable++;
  Layout own, *l = laid != NULL ? laid : &own;
  PyObject *key = NULL, *value = NULL, *zero = NULL;
  long long dtype, offset = 0;
  bool dense = true, done = false;
  Py_ssize_t ndim = 0, n_strides = 0;
  int64_t *w;

  named = named != NULL ? named : &none;
  if (laid == NULL && !layout_of (tensor, storage != NULL, l))
    return -1;
  dtype = dtype_of (tensor);
  if (dtype < 0 || !read_dims (l, l->dims, &ndim))
    goto out;
  if (storage != NULL)
    {
      key = key_of (l);
      value = PyLong_FromLongLong (variable);
      offset = PyLong_AsLongLong (l->offset);
      if (key == NULL || value == NULL || (offset == -1 && PyErr_Occurred ())
          || !enter_place (s, storage, key, value, named)
          || PyList_Append (storage->variables, value) < 0
          || (l->ndim <= MOST_DIMS && !read_strides (l, &dense)))
        goto out;
      n_strides = l->ndim > 0 && l->ndim <= MOST_DIMS && !dense ? ndim : 0;
    }
  else if (!append (s->bare, variable))
    goto out;
  w = words_add (s->words, 15 + ndim + n_strides);
  if (w == NULL)
    goto out;
  *w++ = VARIABLE;
  *w++ = 15 + ndim + n_strides;
  *w++ = variable;
  *w++ = storage != NULL ? storage->number : 0;
  *w++ = offset;
  *w++ = 0;
  *w++ = dtype;
  *w++ = category;
  *w++ = named->flags;
  *w++ = 0;
  *w++ = named->name;
  *w++ = named->layer;
  *w++ = 0;
  *w++ = named->whole;
  *w++ = ndim;
  for (Py_ssize_t i = 0; i < ndim; i++)
    *w++ = l->dims[i];
  for (Py_ssize_t i = 0; i < n_strides; i++)
    *w++ = l->steps[i];
  if (named->flags != 0 && !enter_named (s, variable, category, named))
    goto out;
  zero = cdata == NULL ? PyLong_FromLong (0) : NULL;
  done = (cdata != NULL || zero != NULL)
         && watch (s, tensor, variable, cdata != NULL ? cdata : zero);
out:
  Py_XDECREF (zero);
  Py_XDECREF (key);
  Py_XDECREF (value);
  if (laid == NULL)
    layout_end (l);
  return done ? variable : -1;
}

PyObject *
state_declare (PyObject *self, PyObject *args)
{
  PyObject *tensor, *storage, *cdata;
  long long category, variable;
  Named named;

  if (!PyArg_ParseTuple (args, "OOOLLLLL:declare", &tensor, &storage, &cdata, &category,
                         &named.flags, &named.name, &named.layer, &named.whole))
    return NULL;
  if (storage != Py_None && Py_TYPE (storage) != storage_type)
    {
      PyErr_SetString (PyExc_TypeError, "the storage is not the extension's");
      return NULL;
    }
  variable = declare ((State *)(void *)self, tensor,
                      storage != Py_None ? (Storage *)(void *)storage : NULL, cdata, category,
                      &named, NULL);
  return variable >= 0 ? PyLong_FromLongLong (variable) : NULL;
}

/* The variable of a tensor whose handle is new: known by where it lies, or made outside. */
static long long
meet (State *s, PyObject *tensor)
{
  const long long category = s->phase == UPDATE ? OF_OPTIMIZER : OF_INPUT;
  PyObject *cdata, *key, *known;
  Storage *storage = storage_of (s, tensor, category, &cdata);
  long long variable = -1;
  Layout l;

  if (storage == NULL)
    return PyErr_Occurred () ? -1 : declare (s, tensor, NULL, NULL, category, NULL, NULL);
  if (layout_of (tensor, true, &l))
    {
      key = key_of (&l);
      known = key != NULL ? PyDict_GetItemWithError (storage->places, key) : NULL;
      Py_XDECREF (key);
      if (known != NULL)
        {
          variable = PyLong_AsLongLong (known);
          variable = watch (s, tensor, variable, cdata) ? variable : -1;
        }
      else if (!PyErr_Occurred ())
        variable = declare (s, tensor, storage, cdata, category, NULL, &l);
      layout_end (&l);
    }
  Py_DECREF (cdata);
  return variable;
}

long long
variable_of (State *s, PyObject *tensor)
{
  const long long known = look_up (s->by_id, (long long)(intptr_t)tensor);

  return known == -1 ? meet (s, tensor) : known == -2 ? -1 : known;
}

/* What was named before and is written to is the same with another number. */
static bool
take_name (State *s, long long variable, Named *named, long long *category, bool *found)
{
  PyObject *key = PyLong_FromLongLong (variable), *own;
  bool done = false;

  *found = false;
  own = key != NULL ? PyDict_GetItemWithError (s->parameters, key) : NULL;
  if (own == NULL)
    done = !PyErr_Occurred ();
  else if (PyArg_ParseTuple (own, "LLLLL", &named->flags, category, &named->name, &named->layer,
                             &named->whole))
    {
      *found = true;
      done = PyDict_DelItem (s->parameters, key) == 0;
    }
  Py_XDECREF (key);
  return done;
}

long long
make_variable (State *s, PyObject *tensor, long long phase, const Row *written)
{
  static const long long categories[]
      = { OF_ACTIVATION, OF_GRADIENTS, OF_GRADIENTS, OF_OPTIMIZER };
  long long category = categories[phase & 3];
  long long variable = look_up (s->by_id, (long long)(intptr_t)tensor), made = -1;
  const bool is_written = written->n > 0 && row_has (written, tensor);
  PyObject *cdata, *key;
  Storage *storage;
  bool has_name = false, kept;
  Named named;

  if (variable == -2)
    return -1;
  if (variable == -1 && is_written)
    {
      variable = meet (s, tensor);
      if (variable < 0)
        return -1;
    }
  if (variable >= 0 && is_written && variable < s->first)
    {
      key = PyLong_FromLongLong (variable);
      kept = key != NULL && strike (s->slots, key);
      Py_XDECREF (key);
      return kept ? variable : -1;
    }
  storage = storage_of (s, tensor, category, &cdata);
  if (storage == NULL && PyErr_Occurred ())
    return -1;
  if (variable < 0 || written->n == 0 || take_name (s, variable, &named, &category, &has_name))
    made = declare (s, tensor, storage, cdata, category, has_name ? &named : NULL, NULL);
  Py_XDECREF (cdata);
  return made;
}

/* ------------------------------------------------------------------- what is given back */

static bool
forget_storage (State *s, PyObject *cdata)
{
  PyObject *storage = PyDict_GetItemWithError (s->storages, cdata), *freed;

  if (storage == NULL)
    {
      if (!PyErr_Occurred ())
        PyErr_SetObject (PyExc_KeyError, cdata);
      return false;
    }
  s->live_bytes -= ((Storage *)(void *)storage)->bytes;
  if (PyDict_DelItem (s->storages, cdata) < 0)
    return false;
  freed = PyObject_CallFunctionObjArgs (facts.free_weak_ref, cdata, NULL);
  Py_XDECREF (freed);
  return freed != NULL;
}

PyObject *
state_remove (PyObject *self, PyObject *cdata)
{
  if (!forget_storage ((State *)(void *)self, cdata))
    return NULL;
  Py_RETURN_NONE;
}

static bool
release (State *s, PyObject *cdata, Storage *storage)
{
  int64_t *w = words_add (s->words, 3);
  const Py_ssize_t n = w != NULL ? PyList_Size (storage->variables) : -1;

  if (n < 0)
    return false;
  w[0] = RELEASE;
  w[1] = 3;
  w[2] = storage->number;
  for (Py_ssize_t i = 0; i < n; i++)
    {
      PyObject *variable = PyList_GetItem (storage->variables, i);

      if (!strike (s->parameters, variable) || !strike (s->slots, variable)
          || !strike (s->update_layers, variable))
        return false;
    }
  return PySet_Discard (s->doubts, cdata) >= 0 && forget_storage (s, cdata);
}

static bool
look_at (State *s, PyObject *cdata)
{
  PyObject *storage = PyDict_GetItemWithError (s->storages, cdata), *expired;
  bool is_gone;

  if (storage == NULL)
    return !PyErr_Occurred ();
  expired = PyObject_CallFunctionObjArgs (facts.expired, cdata, NULL);
  if (expired == NULL)
    return false;
  is_gone = PyObject_IsTrue (expired) == 1;
  Py_DECREF (expired);
  return is_gone ? release (s, cdata, (Storage *)(void *)storage)
                 : PySet_Add (s->doubts, cdata) == 0;
}

PyObject *
state_look_at (PyObject *self, PyObject *cdata)
{
  if (!look_at ((State *)(void *)self, cdata))
    return NULL;
  Py_RETURN_NONE;
}

bool
sweep (State *s)
{
  PyObject *hints = s->hints, *none = PyList_New (0);
  bool done = none != NULL;

  if (!done)
    return false;
  s->hints = none; /* a tensor may go meanwhile */
  for (Py_ssize_t i = 0; done && i < PyList_Size (hints); i++)
    done = look_at (s, PyList_GetItem (hints, i));
  Py_DECREF (hints);
  return done;
}
