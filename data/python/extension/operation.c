/* What an operator was given and made, as a record: `operation` of plain.py.
 * SPDX-License-Identifier: MIT */
#include "private.h"

/* An operator that is being said. */
typedef struct
{
  State *s;
  const Known *known;
  Row ins, written, outs;
  PyObject *rest; /* [(place or name, value)] of what is no tensor; NULL: nothing */
} Said;

/* ---------------------------------------------------------------------- known operators */

static void
known_free (PyObject *capsule)
{
  Known *k = PyCapsule_GetPointer (capsule, NULL);

  Py_XDECREF (k->operator);
  Py_XDECREF (k->call);
  Py_XDECREF (k->texts);
  Py_XDECREF (k->written);
  Py_XDECREF (k->plain);
  PyMem_Free (k);
}

static bool
is_so (PyObject *of, PyObject *name)
{
  PyObject *value = PyObject_GetAttr (of, name);
  const bool so = value != NULL && PyObject_IsTrue (value) == 1;

  Py_XDECREF (value);
  return so;
}

static uint64_t
bits_of (PyObject *numbers)
{
  PyObject *iterator = numbers != NULL ? PyObject_GetIter (numbers) : NULL, *item;
  uint64_t bits = 0;

  while (iterator != NULL && (item = PyIter_Next (iterator)) != NULL)
    {
      const long i = PyLong_AsLong (item);

      bits |= i >= 0 && i < 64 ? (uint64_t)1 << i : 0;
      Py_DECREF (item);
    }
  Py_XDECREF (iterator);
  return bits;
}

static bool
read_operator (Known *k, PyObject *func)
{
  PyObject *writes = PyObject_GetAttr (k->operator, names.writes);

  k->texts = PyObject_GetAttr (k->operator, names.texts);
  k->written = PyObject_GetAttr (k->operator, names.written);
  k->plain = PyObject_GetAttr (k->operator, names.plain);
  k->writes = bits_of (writes);
  Py_XDECREF (writes);
  k->kept = is_so (k->operator, names.kept);
  k->filled = is_so (k->operator, names.filled);
  k->clears = is_so (k->operator, names.clears);
  if (PyErr_Occurred () || !number_at (k->operator, names.number, &k->number))
    return false;
  k->call = PyObject_GetAttr (k->operator, names.call);
  if (k->call != Py_None)
    return k->call != NULL;
  Py_CLEAR (k->call);
  /* An overload's own call only hands on what it was given. */
  if ((PyObject *)Py_TYPE (func) == facts.OpOverload)
    k->call = PyObject_GetAttr (func, names._op);
  else
    {
      Py_INCREF (func);
      k->call = func;
    }
  return k->call != NULL;
}

static Known *
look_up_known (State *s, PyObject *func)
{
  PyObject *key = PyLong_FromVoidPtr (func), *capsule = NULL;
  Known *k = NULL;

  if (s->known == NULL)
    s->known = PyDict_New ();
  if (key != NULL && s->known != NULL)
    capsule = PyDict_GetItemWithError (s->known, key);
  if (capsule != NULL)
    k = PyCapsule_GetPointer (capsule, NULL);
  if (capsule != NULL || PyErr_Occurred ())
    {
      Py_XDECREF (key);
      return k;
    }
  k = PyMem_Calloc (1, sizeof *k);
  capsule = k != NULL ? PyCapsule_New (k, NULL, known_free) : PyErr_NoMemory ();
  if (capsule == NULL)
    PyMem_Free (k);
  else
    {
      k->operator= PyDict_GetItemWithError (s->operators, key);
      Py_XINCREF (k->operator);
      if (k->operator== NULL && !PyErr_Occurred ())
        k->operator= PyObject_CallMethodObjArgs ((PyObject *)s, names.operator, func, NULL);
    }
  if (capsule == NULL || k->operator== NULL || !read_operator (k, func)
      || PyDict_SetItem (s->known, key, capsule) < 0)
    k = NULL;
  else
    k->func = func;
  Py_XDECREF (capsule);
  Py_XDECREF (key);
  return k;
}

Known *
known_of (State *s, PyObject *func)
{
  Known **slot = &s->last_known[slot_of (func)], *k = *slot;

  if (k != NULL && k->func == func)
    return k;
  k = look_up_known (s, func);
  *slot = k;
  return k;
}

/* ---------------------------------------------------------------------------- places */

/* Whether a code is of some kind (names.py, Codes): 1, 0; -1: an error is set. */
static int
is_of (PyObject *codes, PyObject *code)
{
  PyObject *key = PyLong_FromVoidPtr (code);
  PyObject *known = key != NULL ? PyDict_GetItemWithError (codes, key) : NULL, *asked;
  int is = known == Py_True;

  Py_XDECREF (key);
  if (known != NULL)
    return is;
  asked = !PyErr_Occurred () ? PyObject_CallMethodObjArgs (codes, names.ask, code, NULL) : NULL;
  is = asked != NULL ? asked == Py_True : -1;
  Py_XDECREF (asked);
  return is;
}

/* Whether a function is the program's: the same of `places`, whose codes it keeps. */
static int
is_own (State *s, PyObject *code)
{
  const unsigned slot = slot_of (code);
  int is;

  if (s->last_codes[slot] == code)
    return s->last_own[slot];
  is = is_of (s->codes, code);
  if (is >= 0)
    {
      s->last_codes[slot] = code;
      s->last_own[slot] = is > 0;
    }
  return is;
}

static PyObject *
place_at (State *s, PyObject *frame, PyObject *code)
{
  PyObject *address = PyLong_FromVoidPtr (code);
  PyObject *at = address != NULL ? PyObject_GetAttr (frame, names.f_lasti) : NULL;
  PyObject *key = at != NULL ? PyTuple_Pack (2, address, at) : NULL;
  PyObject *place = key != NULL ? PyDict_GetItemWithError (s->known_places, key) : NULL;

  Py_XDECREF (address);
  Py_XDECREF (at);
  Py_XDECREF (key);
  Py_XINCREF (place);
  if (place == NULL && !PyErr_Occurred ())
    place = PyObject_CallMethodObjArgs (s->places, names.new, frame, code, NULL);
  return place;
}

/* The place of the innermost frame that is the program's own. */
static PyObject *
here (State *s, PyObject *frame)
{
  PyObject *place = NULL;

  if (s->codes == NULL)
    s->codes = PyObject_GetAttr (s->places, names.codes);
  if (s->known_places == NULL)
    s->known_places = PyObject_GetAttr (s->places, names.places);
  if (s->codes == NULL || s->known_places == NULL)
    return NULL;
  Py_INCREF (frame);
  while (frame != Py_None)
    {
      PyObject *code = PyObject_GetAttr (frame, names.f_code), *back;
      const int own = code != NULL ? is_own (s, code) : -1;

      if (own > 0)
        place = place_at (s, frame, code);
      Py_XDECREF (code);
      if (own != 0)
        {
          Py_DECREF (frame);
          return place;
        }
      back = PyObject_GetAttr (frame, names.f_back);
      Py_DECREF (frame);
      if (back == NULL)
        return NULL;
      frame = back;
    }
  Py_DECREF (frame);
  return PyLong_FromLong (0);
}

PyObject *
place_of (PyObject *self, PyObject *frame)
{
  State *s = (State *)(void *)self;
  PyObject *code;
  int stands = 0;

  if (frame == NULL || frame == Py_None)
    return PyLong_FromLong (0);
  if (s->phase_codes != Py_None)
    {
      code = PyObject_GetAttr (frame, names.f_code);
      stands = code != NULL ? is_of (s->phase_codes, code) : -1;
      Py_XDECREF (code);
    }
  if (stands < 0)
    return NULL;
  return stands ? PyLong_FromLongLong (s->phase_place) : here (s, frame);
}

/* ------------------------------------------------------------------- what it was given */

static bool
read_tensor (Said *o, PyObject *tensor, bool writes)
{
  const long long variable = variable_of (o->s, tensor);

  return variable >= 0 && row_add (&o->ins, tensor, variable)
         && (!writes || row_add (&o->written, tensor, variable));
}

static bool
keep_rest (Said *o, PyObject *where, PyObject *value)
{
  PyObject *pair;
  bool done;

  if (o->rest == NULL)
    o->rest = PyList_New (0);
  pair = o->rest != NULL && where != NULL ? PyTuple_Pack (2, where, value) : NULL;
  done = pair != NULL && PyList_Append (o->rest, pair) == 0;
  Py_XDECREF (pair);
  return done;
}

/* A list that has tensors: 1, read; 0: it has none; -1: an error is set. */
static int
read_list (Said *o, PyObject *list, bool writes)
{
  const Py_ssize_t n = PySequence_Size (list);
  int has = 0;

  for (Py_ssize_t i = 0; i < n; i++)
    {
      PyObject *item = PySequence_GetItem (list, i);
      bool done = item != NULL;

      if (done && is_tensor (item))
        {
          has = 1;
          done = read_tensor (o, item, writes); /* the list keeps it */
        }
      Py_XDECREF (item);
      if (!done)
        return -1;
    }
  return has;
}

static bool
read_argument (Said *o, Py_ssize_t i, PyObject *value)
{
  const bool writes = i < 64 && (o->known->writes >> i & 1) != 0;
  PyObject *where, *frozen;
  bool done;
  int read = 0;

  if (is_tensor (value))
    return read_tensor (o, value, writes);
  if (value == Py_None)
    return true;
  if (PyList_Check (value) || PyTuple_Check (value))
    read = read_list (o, value, writes);
  if (read != 0)
    return read > 0;
  where = PyLong_FromSsize_t (i);
  frozen = PyList_Check (value) ? PyList_AsTuple (value) : NULL;
  done = !PyErr_Occurred () && keep_rest (o, where, frozen != NULL ? frozen : value);
  Py_XDECREF (where);
  Py_XDECREF (frozen);
  return done;
}

static bool
read_arguments (Said *o, PyObject *args, PyObject *kwargs)
{
  const Py_ssize_t n = PyTuple_Size (args);
  PyObject *name, *value;
  Py_ssize_t at = 0;

  for (Py_ssize_t i = 0; i < n; i++)
    if (!read_argument (o, i, PyTuple_GetItem (args, i)))
      return false;
  while (kwargs != NULL && PyDict_Next (kwargs, &at, &name, &value))
    {
      int writes;

      if (!is_tensor (value))
        {
          if (value != Py_None && value != Py_False && !keep_rest (o, name, value))
            return false;
          continue;
        }
      writes = PySequence_Contains (o->known->written, name);
      if (writes < 0 || !read_tensor (o, value, writes > 0))
        return false;
    }
  return n >= 0;
}

/* The number of the text of what it was given beside tensors. */
static bool
read_text (Said *o, long long *text)
{
  PyObject *key, *known, *made;

  *text = 0;
  if (o->rest == NULL)
    return true;
  key = PyList_AsTuple (o->rest);
  known = key != NULL ? PyDict_GetItemWithError (o->known->texts, key) : NULL;
  if (known == NULL && PyErr_Occurred () && PyErr_ExceptionMatches (PyExc_TypeError))
    { /* of what has no hash */
      PyErr_Clear ();
      Py_XDECREF (key);
      key = PyObject_Repr (o->rest);
      known = key != NULL ? PyDict_GetItemWithError (o->known->texts, key) : NULL;
    }
  if (known != NULL)
    *text = PyLong_AsLongLong (known);
  else if (!PyErr_Occurred ())
    {
      made = PyObject_CallMethodObjArgs ((PyObject *)o->s, names.attributes, o->known->operator,
                                         o->rest, key, NULL);
      *text = made != NULL ? PyLong_AsLongLong (made) : -1;
      Py_XDECREF (made);
    }
  Py_XDECREF (key);
  return !PyErr_Occurred ();
}

/* ------------------------------------------------------------------------ what it made */

static bool
make_one (Said *o, PyObject *tensor, long long phase)
{
  const long long variable = make_variable (o->s, tensor, phase, &o->written);

  return variable >= 0 && row_add (&o->outs, tensor, variable);
}

/* What it returned; within a list or two, which keep the tensors. */
static bool
make_all (Said *o, PyObject *value, long long phase, int depth)
{
  bool done = true;

  if (is_tensor (value))
    return make_one (o, value, phase);
  if (depth == 2 || !(PyList_Check (value) || PyTuple_Check (value)))
    return true;
  for (Py_ssize_t i = 0; done && i < PySequence_Size (value); i++)
    {
      PyObject *item = PySequence_GetItem (value, i);

      done = item != NULL && make_all (o, item, phase, depth + 1);
      Py_XDECREF (item);
    }
  return done;
}

static bool
make_outputs (Said *o, PyObject *out, long long phase)
{
  if (!make_all (o, out, phase, 0))
    return false;
  for (Py_ssize_t i = 0; i < o->written.n; i++)
    if (!row_has (&o->outs, o->written.tensors[i])
        && !make_one (o, o->written.tensors[i], phase))
      return false;
  return true;
}

static PyObject *
list_of (const Row *row)
{
  PyObject *list = PyList_New (row->n);

  for (Py_ssize_t i = 0; list != NULL && i < row->n; i++)
    {
      Py_INCREF (row->tensors[i]);
      PyList_SetItem (list, i, row->tensors[i]);
    }
  return list;
}

static bool
has_parameter (const Said *o)
{
  for (Py_ssize_t i = 0; i < o->written.n; i++)
    {
      PyObject *key = PyLong_FromLongLong (o->written.variables[i]);
      const int has = key != NULL ? PyDict_Contains (o->s->parameters, key) : -1;

      Py_XDECREF (key);
      if (has != 0)
        return has > 0;
    }
  return false;
}

/* What is written to in an update, or may be gradients that the program changes: [(tensor,
 * variable)], NULL: none, or an error is set. */
static PyObject *
look_at_written (Said *o, long long phase)
{
  PyObject *list, *changed;

  if (o->written.n == 0
      || !(phase == UPDATE
               ? has_parameter (o)
               : (phase == FORWARD && PySet_Size (o->s->gradients) > 0 && !o->known->clears)))
    return NULL;
  list = list_of (&o->written);
  changed
      = list != NULL ? PyObject_CallMethodObjArgs (
            (PyObject *)o->s, phase == UPDATE ? names.updates : names.gradients_of, list, NULL)
                     : NULL;
  Py_XDECREF (list);
  if (changed != NULL && (changed == Py_None || PyObject_Size (changed) == 0))
    Py_CLEAR (changed);
  return changed;
}

static bool
layer_of_first (State *s, const Row *ins, const Row *outs, long long *layer)
{
  *layer = 0;
  if (PyDict_Size (s->update_layers) == 0)
    return true;
  for (Py_ssize_t i = 0; i < ins->n; i++)
    {
      const long long found = look_up (s->update_layers, ins->variables[i]);

      if (found == -2)
        return false;
      if (found < 0)
        continue;
      *layer = found;
      for (Py_ssize_t j = 0; j < outs->n; j++)
        if (!enter (s->update_layers, outs->variables[j], found))
          return false;
      return true;
    }
  return true;
}

static bool
row_of (PyObject *numbers, Row *row)
{
  const Py_ssize_t n = PySequence_Size (numbers);

  for (Py_ssize_t i = 0; i < n; i++)
    {
      PyObject *item = PySequence_GetItem (numbers, i);
      const long long number = item == Py_None ? -1
                               : item != NULL  ? PyLong_AsLongLong (item)
                                               : 0;

      Py_XDECREF (item);
      if (PyErr_Occurred () || (number >= 0 && !row_add (row, NULL, number)))
        return false;
    }
  return n >= 0;
}

PyObject *
layer_of_update (PyObject *self, PyObject *args)
{
  PyObject *inputs, *outputs;
  long long layer;
  Row ins, outs;
  bool done;

  if (!PyArg_ParseTuple (args, "OO:layer_of_update", &inputs, &outputs))
    return NULL;
  row_begin (&ins);
  row_begin (&outs);
  done = row_of (inputs, &ins) && row_of (outputs, &outs)
         && layer_of_first ((State *)(void *)self, &ins, &outs, &layer);
  row_end (&ins);
  row_end (&outs);
  return done ? PyLong_FromLongLong (layer) : NULL;
}

static bool
add_gradients (State *s, const Row *outs)
{
  for (Py_ssize_t i = 0; i < outs->n; i++)
    {
      PyObject *variable = PyLong_FromLongLong (outs->variables[i]);
      const bool done = variable != NULL && PySet_Add (s->gradients, variable) == 0;

      Py_XDECREF (variable);
      if (!done)
        return false;
    }
  return true;
}

/* ------------------------------------------------------------------------------ twins */

/* A forward operator's node of autograd, where PyTorch numbers them. */
static bool
number_node (Said *o, long long layer)
{
  PyObject *value = PyObject_CallFunctionObjArgs (facts.sequence, NULL), *key, *owner;
  const long long number = value != NULL ? PyLong_AsLongLong (value) : -1;
  bool done;

  Py_XDECREF (value);
  if (PyErr_Occurred ())
    return false;
  if (number <= o->s->last_sequence)
    return true;
  o->s->last_sequence = number;
  key = PyLong_FromLongLong (number - 1);
  owner = Py_BuildValue ("(LLOO)", o->s->event + 1, layer, o->known->plain, Py_False);
  done = key != NULL && owner != NULL && PyDict_SetItem (o->s->owners, key, owner) == 0;
  Py_XDECREF (key);
  Py_XDECREF (owner);
  return done;
}

static bool
ask_twin (State *s, long long *twin, long long *layer)
{
  PyObject *before = PyLong_FromLongLong (*layer);
  PyObject *pair = before != NULL
                       ? PyObject_CallMethodObjArgs ((PyObject *)s, names.twin, before, NULL)
                       : NULL;
  const bool done = pair != NULL && PyArg_ParseTuple (pair, "LL", twin, layer);

  Py_XDECREF (before);
  Py_XDECREF (pair);
  return done;
}

int
has_its_name (const State *s, PyObject *node, PyObject *plain)
{
  PyObject *name = PyObject_CallMethodObjArgs (node, names.name, NULL);
  PyObject *key = name != NULL ? PyTuple_Pack (2, name, plain) : NULL;
  PyObject *same = key != NULL ? PyDict_GetItemWithError (s->node_names, key) : NULL;

  Py_XDECREF (name);
  Py_XDECREF (key);
  return same != NULL ? PyObject_IsTrue (same) : -1;
}

/* Take an owner whose name agrees; false: an error is set. */
static bool
take_owner (const State *s, PyObject *number, PyObject *owner, bool checked, long long *twin,
            long long *layer)
{
  PyObject *plain, *was, *now;
  bool done;

  if (!PyArg_ParseTuple (owner, "LLOO", twin, layer, &plain, &was))
    return false;
  if (checked)
    return true;
  now = Py_BuildValue ("(LLOO)", *twin, *layer, plain, Py_True);
  done = now != NULL && PyDict_SetItem (s->owners, number, now) == 0;
  Py_XDECREF (now);
  return done;
}

/* Which forward operator made the node that runs: `twin` of recorder.py. */
static bool
twin_of (State *s, PyObject *node, long long *twin, long long *layer)
{
  PyObject *number = PyObject_CallMethodObjArgs (node, names._sequence_nr, NULL);
  PyObject *owner = number != NULL ? PyDict_GetItemWithError (s->owners, number) : NULL;
  bool checked, done = owner != NULL || !PyErr_Occurred ();
  int same;

  if (owner != NULL)
    {
      checked = PyTuple_GetItem (owner, 3) == Py_True;
      same = checked ? 1 : has_its_name (s, node, PyTuple_GetItem (owner, 2));
      if (same > 0)
        done = take_owner (s, number, owner, checked, twin, layer);
      else if (same == 0)
        done = PyDict_DelItem (s->owners, number) == 0;
      else
        done = !PyErr_Occurred () && ask_twin (s, twin, layer);
    }
  Py_XDECREF (number);
  return done;
}

static bool
find_twin (State *s, long long *twin, long long *layer)
{
  PyObject *node = PyObject_CallFunctionObjArgs (facts.current_node, NULL);
  const bool done = node == Py_None || (node != NULL && twin_of (s, node, twin, layer));

  Py_XDECREF (node);
  return done;
}

/* ---------------------------------------------------------------------------- together */

static bool
write_operation (const Said *o, long long phase, long long place, long long layer,
                 unsigned flags, long long text, long long twin, long long start, long long end)
{
  const Py_ssize_t n = 13 + o->ins.n + o->outs.n;
  int64_t *w = words_add (o->s->words, n);

  if (w == NULL)
    return false;
  *w++ = OPERATION;
  *w++ = n;
  *w++ = o->known->number;
  *w++ = phase;
  *w++ = place;
  *w++ = layer;
  *w++ = flags;
  *w++ = 0;
  *w++ = text;
  *w++ = twin;
  *w++ = start;
  *w++ = end;
  *w++ = o->ins.n;
  for (Py_ssize_t i = 0; i < o->ins.n; i++)
    *w++ = o->ins.variables[i];
  for (Py_ssize_t i = 0; i < o->outs.n; i++)
    *w++ = o->outs.variables[i];
  o->s->event++;
  return true;
}

static bool
call_with (State *s, PyObject *method, PyObject *argument)
{
  PyObject *done = argument != NULL
                       ? PyObject_CallMethodObjArgs ((PyObject *)s, method, argument, NULL)
                       : NULL;

  Py_XDECREF (done);
  return done != NULL;
}

/* Before it: what has gone, and the iteration that it belongs to. */
static bool
prepare (State *s, long long start)
{
  PyObject *time;
  bool done;

  if (PyList_Size (s->hints) > 0 && !sweep (s))
    return false;
  if (s->fresh != Py_None && !own_nodes (s))
    return false;
  if (s->open)
    return true;
  time = PyLong_FromLongLong (start);
  done = call_with (s, names.begin, time);
  Py_XDECREF (time);
  return done;
}

static bool
say_all (Said *o, PyObject *out, long long place, long long start, long long end,
         unsigned flags)
{
  State *s = o->s;
  long long phase = s->phase, layer = s->layer, twin = 0, text;
  PyObject *changed;
  bool done;

  if (phase == BACKWARD ? facts.current_node != Py_None && !find_twin (s, &twin, &layer)
                        : facts.sequence != Py_None && !number_node (o, layer))
    return false;
  changed = look_at_written (o, phase);
  if (PyErr_Occurred ())
    return false;
  phase = changed != NULL ? BACKWARD : phase; /* what is made are gradients */
  done = make_outputs (o, out, phase)
         && (phase != UPDATE || layer_of_first (s, &o->ins, &o->outs, &layer))
         && (phase != BACKWARD || add_gradients (s, &o->outs))
         && (changed == NULL || call_with (s, names.keep_as_left, changed))
         && read_text (o, &text)
         && write_operation (o, changed != NULL ? UPDATE : phase, place, layer, flags, text,
                             twin, start, end);
  if (done && phase == FORWARD && changed == NULL && facts.current_node == Py_None)
    done = remember_made (s, o->known, &o->outs, layer);
  Py_XDECREF (changed);
  for (Py_ssize_t i = 0; done && s->stats && o->known->filled && i < o->outs.n; i++)
    done = measure (s, o->outs.tensors[i], o->outs.variables[i], &o->ins, o->written.n > 0);
  return done;
}

bool
operation (State *s, const Known *known, PyObject *args, PyObject *kwargs, PyObject *out,
           long long start, long long end, unsigned flags, PyObject *frame)
{
  Said o = { .s = s, .known = known };
  PyObject *place, *overflown;
  long long at;
  bool done;

  if (!known->kept)
    return true;
  if (!prepare (s, start))
    return false;
  place = place_of ((PyObject *)s, frame);
  at = place != NULL ? PyLong_AsLongLong (place) : -1;
  Py_XDECREF (place);
  if (PyErr_Occurred ())
    return false;
  row_begin (&o.ins);
  row_begin (&o.written);
  row_begin (&o.outs);
  done = read_arguments (&o, args, kwargs) && say_all (&o, out, at, start, end, flags);
  row_end (&o.ins);
  row_end (&o.written);
  row_end (&o.outs);
  Py_XDECREF (o.rest);
  if (done && PySequence_Size (s->words) > MANY_WORDS)
    {
      overflown = PyObject_CallMethodObjArgs ((PyObject *)s, names.overflow, NULL);
      Py_XDECREF (overflown);
      done = overflown != NULL;
    }
  return done;
}
