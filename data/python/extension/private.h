/* _tapedeck, the recorder's extension module: what runs with each operator, the same as
 * tapedeck/plain.py, against Python's limited API.  Here are its types and what its files call
 * of one another.  All of it runs with the interpreter's lock held.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#define Py_LIMITED_API 0x03080000 /* 3.8 */
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

/** What the Python files ask of this module: EXTENSION of library.py. */
#define EXTENSION_VERSION 4

/** Attributes and methods that are asked for: X (how it is written). */
// clang-format off
#define NAMES(X) \
  X (__self__) X (__torch_dispatch__) X (_cdata) X (_op) X (_weak_ref) X (after) \
  X (attributes) X (before) X (begin) X (call) X (clears) X (codes) X (contiguous) X (cpu) \
  X (data_ptr) X (device) X (dtype) X (_sequence_nr) X (name) X (f_back) X (f_code) \
  X (f_lasti) X (failed) X (filled) X (give_up) X (gradients_of) X (index) X (is_cpu) \
  X (is_meta) X (kept) X (keep_as_left) X (layout) X (mistake) X (nbytes) X (new) \
  X (number) X (numel) X (operator) X (overflow) X (places) X (plain) X (shape) \
  X (storage_offset) X (stride) X (texts) X (twin) X (type) X (updates) X (writes) \
  X (written) X (ask) X (grad_fn) X (__callback__) X (agrees) X (metadata) X (next_functions) \
  X (register_hook) X (variable) X (_tapedeck)
// clang-format on

typedef struct
{
#define X(name) PyObject *name;
  NAMES (X)
#undef X
} Names;

/** What is known of PyTorch: `setup` of the module. */
// clang-format off
#define FACTS(X) \
  X (Tensor) X (OpOverload) X (detach) X (strided) X (dtypes) X (storage_of) X (expired) \
  X (free_weak_ref) X (current_node) X (pop_mode) X (push_mode) X (set_mode) \
  X (stack_depth) X (sequence) X (accumulate)
// clang-format on

typedef struct
{
#define X(name) PyObject *name;
  FACTS (X)
#undef X
} Facts;

extern Names names;
extern Facts facts;
extern PyTypeObject *words_type, *storage_type, *state_type, *dispatch_type, *gone_type,
    *stack_type, *ended_type;

/** Of td-producer.h. */
enum
{
  BEGIN = 1,
  END,
  ALLOC,
  RELEASE,
  VARIABLE,
  FORGET,
  OPERATION,
  GRADIENT,
  MEASURED
};
enum
{
  FORWARD,
  BACKWARD,
  ACCUMULATE,
  UPDATE
};
/** Words of an operation. */
enum
{
  OPERATOR = 2,
  PHASE,
  LAYER = 5,
  TWIN = 9
};
enum
{
  OF_GRADIENTS = 2,
  OF_ACTIVATION,
  OF_OPTIMIZER,
  OF_INPUT
};
enum
{
  EVENT_FAILED = 2,
  NO_DTYPE = 8,
  MOST_DIMS = 8,
  MANY_WORDS = 1 << 20,
  N_LAST = 256 /* slots of what was asked last: a power of two */
};

/** Words of the library, in a row. */
typedef struct
{
  PyObject ob_base;
  int64_t *words;
  Py_ssize_t n, room;
} Words;

/** Memory that is in use. */
typedef struct
{
  PyObject ob_base;
  long long number, bytes;
  PyObject *places, *variables;
} Storage;

/** An operator. */
typedef struct
{
  PyObject *func;     /* its address alone */
  PyObject *operator; /* as names.py knows it, which keeps the function */
  PyObject *call;     /* what runs it */
  PyObject *texts, *written, *plain;
  long long number;
  uint64_t writes; /* bit i: argument i */
  bool kept, filled, clears;
} Known;

/** Objects of a recorder's state, and its numbers: both are its attributes. */
// clang-format off
#define STATE_OBJECTS(X) \
  X (by_id) X (refs) X (storages) X (hints) X (doubts) X (parameters) X (update_layers) \
  X (bare) X (operators) X (gradients) X (owners) X (slots) X (words) X (phase_codes) \
  X (places) X (node_names) X (fresh) X (mark)
#define STATE_NUMBERS(X) \
  X (phase) X (layer) X (event) X (phase_place) X (next_variable) X (next_storage) \
  X (live_bytes) X (first) X (last_sequence) X (producer) X (measure_ahead) X (adding) \
  X (seeding) X (node_from) X (node_layer) X (node_twin) X (thread) X (age)
// clang-format on
#define STATE_FLAGS(X) X (on) X (open) X (stats)

typedef struct
{
  PyObject ob_base;
#define X(name) PyObject *name;
  STATE_OBJECTS (X)
#undef X
#define X(name) long long name;
  STATE_NUMBERS (X)
#undef X
#define X(name) char name;
  STATE_FLAGS (X)
#undef X
  PyObject *known;                /* by the address of an operator: a capsule with its Known */
  PyObject *codes, *known_places; /* of `places` */
  /* What was asked last, each in its slot of addresses; both are kept by the tables above. */
  Known *last_known[N_LAST];
  PyObject *last_codes[N_LAST];
  bool last_own[N_LAST];
} State;

/** Tensors and their variables, as many as an operator has. */
typedef struct
{
  PyObject **tensors; /* borrowed of the call's arguments and result; NULL: variables alone */
  long long *variables;
  Py_ssize_t n, room;
  PyObject *first_tensors[16];
  long long first_variables[16];
} Row;

void row_begin (Row *row);
bool row_add (Row *row, PyObject *tensor, long long variable);
bool row_has (const Row *row, const PyObject *tensor);
void row_end (Row *row);

/* --------------------------------------------------------------------------- words.c */

/** Make room for a record of `n` words and return it; NULL: an error is set. */
int64_t *words_add (PyObject *words, Py_ssize_t n);
extern PyType_Spec words_spec, storage_spec;

/* --------------------------------------------------------------------------- state.c */

extern PyType_Spec state_spec;

/** The value of a call without arguments; false: an error is set. */
bool number_of (PyObject *of, PyObject *method, long long *number);
/** A number that is an attribute. */
bool number_at (PyObject *of, PyObject *name, long long *number);
/** The number that a table has of a number; -1: none, -2: an error is set. */
long long look_up (PyObject *table, long long key);
bool enter (PyObject *table, long long key, long long value);
/** Take a key out of a table, if it is there. */
bool strike (PyObject *table, PyObject *key);
bool is_tensor (PyObject *value);
/** The slot of an address among N_LAST. */
unsigned slot_of (const void *address);
/** An attribute is True; an error may be set. */
bool is_true_at (PyObject *of, PyObject *name);
/** Take the error that is set if it is one that a program may catch as an Exception. */
bool forgiven (void);

/* ----------------------------------------------------------------------- variables.c */

/* Methods of the state, for Python. */
PyObject *state_storage (PyObject *self, PyObject *args);
PyObject *state_declare (PyObject *self, PyObject *args);
PyObject *state_look_at (PyObject *self, PyObject *cdata);
PyObject *state_remove (PyObject *self, PyObject *cdata);
extern PyType_Spec gone_spec;

/** The variable of a tensor, which is met now if it is new; -1: an error is set. */
long long variable_of (State *s, PyObject *tensor);
/** The variable of an output; `written`: what the operator has written to, or none. */
long long make_variable (State *s, PyObject *tensor, long long phase, const Row *written);
/** Say what has been given back; what is not sure waits. */
bool sweep (State *s);
/** Its number on the tape; -1: an error is set. */
long long dtype_of (PyObject *tensor);

/* ------------------------------------------------------------------------- numbers.c */

/** Compute an output's numbers, or take an input's whose view it is. */
bool measure (State *s, PyObject *tensor, long long variable, const Row *ins, bool written);

/* ----------------------------------------------------------------------- operation.c */

/** What is known of an operator; NULL: an error is set. */
Known *known_of (State *s, PyObject *func);
/** Say that an operator has run, or has failed, at `frame`. */
bool operation (State *s, const Known *known, PyObject *args, PyObject *kwargs, PyObject *out,
                long long start, long long end, unsigned flags, PyObject *frame);
/** Whether a node of autograd is by its name the backward of an operator of this plain name: 1,
 * 0; -1: it has not been asked before, or an error is set. */
int has_its_name (const State *s, PyObject *node, PyObject *plain);
PyObject *place_of (PyObject *self, PyObject *frame);
PyObject *layer_of_update (PyObject *self, PyObject *args);

/* ---------------------------------------------------------------------------- nodes.c */

/** Give the nodes of autograd of what the operator before has made their hooks. */
bool own_nodes (State *s);
/** What an operator has made is remembered until the next one, by weak references. */
bool remember_made (State *s, const Known *known, const Row *outs, long long layer);
PyObject *state_own_nodes (PyObject *self, PyObject *none);
extern PyType_Spec ended_spec;

/* ------------------------------------------------------------------------ dispatch.c */

extern PyType_Spec dispatch_spec;

/** The mode's method, of the arguments that PyTorch gives it. */
PyObject *torch_dispatch (PyObject *self, PyObject *given);

/* --------------------------------------------------------------------------- stack.c */

extern PyType_Spec stack_spec;
