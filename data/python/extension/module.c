/* The module: its types, and what it is told of PyTorch.  SPDX-License-Identifier: MIT */
#include "private.h"

Names names;
Facts facts;
PyTypeObject *words_type, *storage_type, *state_type, *dispatch_type, *gone_type, *stack_type,
    *ended_type;

static bool
take_fact (PyObject **fact, PyObject *given, const char *name)
{
  PyObject *value = PyDict_GetItemString (given, name);

  if (value == NULL)
    {
      PyErr_Format (PyExc_TypeError, "setup: %s is not given", name);
      return false;
    }
  Py_INCREF (value);
  Py_XDECREF (*fact);
  *fact = value;
  return true;
}

static PyObject *
setup (PyObject *module, PyObject *args, PyObject *given)
{
  (void)module;
  (void)args;
  if (given == NULL)
    given = PyDict_New ();
  else
    Py_INCREF (given);
  if (given == NULL)
    return NULL;
#define X(name)                                                                                \
  if (!take_fact (&facts.name, given, #name))                                                  \
    {                                                                                          \
      Py_DECREF (given);                                                                       \
      return NULL;                                                                             \
    }
  FACTS (X)
#undef X
  Py_DECREF (given);
  if (!PyType_Check (facts.Tensor) || !PyDict_Check (facts.dtypes))
    {
      PyErr_SetString (PyExc_TypeError, "setup: Tensor is no type, or dtypes no table");
      return NULL;
    }
  Py_RETURN_NONE;
}

static PyMethodDef methods[] = { { "setup", (PyCFunction)(void (*) (void))setup,
                                   METH_VARARGS | METH_KEYWORDS, "What is known of PyTorch." },
                                 { NULL, NULL, 0, NULL } };

static struct PyModuleDef definition = { PyModuleDef_HEAD_INIT, .m_name = "_tapedeck",
                                         .m_doc = "The recorder's work with each operator.",
                                         .m_size = -1, .m_methods = methods };

static bool
make_names (void)
{
#define X(name)                                                                                \
  names.name = PyUnicode_InternFromString (#name);                                             \
  if (names.name == NULL)                                                                      \
    return false;
  NAMES (X)
#undef X
  return true;
}

static bool
add_type (PyObject *module, const char *name, PyType_Spec *spec, PyTypeObject **type)
{
  *type = (PyTypeObject *)(void *)PyType_FromSpec (spec);
  if (*type == NULL)
    return false;
  Py_INCREF (*type);
  if (PyModule_AddObject (module, name, (PyObject *)*type) == 0)
    return true;
  Py_DECREF (*type);
  return false;
}

PyMODINIT_FUNC PyInit__tapedeck (void);

PyMODINIT_FUNC
PyInit__tapedeck (void)
{
  PyObject *module = PyModule_Create (&definition);

  if (module == NULL)
    return NULL;
  if (make_names () && add_type (module, "Words", &words_spec, &words_type)
      && add_type (module, "Storage", &storage_spec, &storage_type)
      && add_type (module, "State", &state_spec, &state_type)
      && add_type (module, "Dispatch", &dispatch_spec, &dispatch_type)
      && add_type (module, "Gone", &gone_spec, &gone_type)
      && add_type (module, "Stack", &stack_spec, &stack_type)
      && add_type (module, "Ended", &ended_spec, &ended_type)
      && PyModule_AddIntConstant (module, "VERSION", EXTENSION_VERSION) == 0)
    return module;
  Py_DECREF (module);
  return NULL;
}
