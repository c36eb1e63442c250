/* What all extensions share, and the extension that is a function.
 *
 * SPDX-License-Identifier: MIT */
#include "trainer.h"
#include "host-memory.h"

#include <stdlib.h>

TdExtension *
td__extension_inert (void)
{
  static TdExtension inert = { .inert = true };

  return &inert;
}

static void
extension_free (void *object)
{
  TdExtension *x = object;

  if (x->cls->free != NULL)
    x->cls->free (x->self);
  free (x->self);
  *x = (TdExtension){ .inert = true, .object.freed = true };
  td__shell_keep (x);
}

TdExtension *
td_extension_new (const TdExtensionClass *cls)
{
  TdExtension *x;

  if (td__check_thread ("td_extension_new") != TD_OK)
    return td__extension_inert ();
  if (cls == NULL || cls->size != sizeof *cls || cls->name == NULL || cls->call == NULL)
    {
      td__fail (TD_ERR_ARG, "td_extension_new", NULL,
                "a class with its size, name and call expected");
      return td__extension_inert ();
    }
  x = td__xcalloc (1, sizeof *x);
  x->cls = cls;
  x->self = td__xcalloc (1, cls->self_bytes);
  td__object_add (&x->object, extension_free);
  return x;
}

void *
td_extension_self (TdExtension *x)
{
  return td__stranger ("td_extension_self") || x == NULL ? NULL : x->self;
}

void
td_extension_free (TdExtension *x)
{
  if (td__stranger ("td_extension_free") || x == NULL || x->inert || x->owned
      || !td__engine.started)
    return;
  td__object_remove (&x->object);
  extension_free (x);
}

void
td__extension_drop (TdExtension *x)
{
  if (x != NULL && !x->inert)
    extension_free (x);
}

typedef struct
{
  TdStatus (*function) (void *self, TdTrainer *trainer);
  void *self;
} Function;

static TdStatus
function_call (void *self, TdTrainer *trainer)
{
  Function *f = self;

  return f->function (f->self, trainer);
}

static const TdExtensionClass function_class = { .size = sizeof (TdExtensionClass),
                                                 .name = "function",
                                                 .self_bytes = sizeof (Function),
                                                 .priority = TD_PRIORITY_READER,
                                                 .call = function_call };

TdExtension *
td_ext_function_new (TdStatus (*function) (void *self, TdTrainer *trainer), void *self)
{
  TdExtension *x;

  if (td__check_thread ("td_ext_function_new") != TD_OK)
    return td__extension_inert ();
  if (function == NULL)
    {
      td__fail (TD_ERR_ARG, "td_ext_function_new", NULL, "the function is NULL");
      return td__extension_inert ();
    }
  x = td_extension_new (&function_class);
  if (!x->inert)
    *(Function *)x->self = (Function){ function, self };
  return x;
}
