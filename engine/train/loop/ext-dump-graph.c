/* DumpGraph: the graph behind a reported variable, once.
 *
 * Until it has been written, reports keep their graphs, at the price of memory.
 * *Source*: chainer.training.extensions.DumpGraph.
 * SPDX-License-Identifier: MIT */
#include "trainer.h"
#include "host-memory.h"

#include <stdlib.h>

typedef struct
{
  char *root_name, *filename;
  TdDotOpt dot;
  bool dumped, keeping;
  TdConfigSave keep;
} DumpGraph;

static void
stop_keeping (DumpGraph *d)
{
  if (d->keeping)
    td__config_pop (&d->keep);
  d->keeping = false;
}

static void
dump_initialize (void *self, TdTrainer *t)
{
  DumpGraph *d = self;

  (void)t;
  if (d->dumped)
    return;
  d->keep = td__config_push (offsetof (TdConfig, keep_graph_on_report), 1);
  d->keeping = true;
}

static TdStatus
dump_call (void *self, TdTrainer *t)
{
  DumpGraph *d = self;
  TdVar *v = td_observation_variable (t->observation, d->root_name);
  char path[4096];

  if (d->dumped)
    return TD_OK;
  stop_keeping (d);
  d->dumped = true;
  if (v == NULL)
    return td__fail (TD_ERR_ARG, "DumpGraph", NULL,
                     "no variable was reported under \"%s\" by td_report_variable",
                     d->root_name);
  if (!td__trainer_path (t, d->filename, path, sizeof path, "DumpGraph"))
    return td__error_status ();
  return td_save_dot (v, path, &d->dot);
}

static void
dump_finalize (void *self, TdTrainer *t)
{
  (void)t;
  stop_keeping (self);
}

static void
dump_serialize (void *self, TdSerializer *s)
{
  td_serialize_bool (s, "_dumped", &((DumpGraph *)self)->dumped);
}

static void
dump_free (void *self)
{
  DumpGraph *d = self;

  free (d->root_name);
  free (d->filename);
}

static const TdExtensionClass dump_class = { .size = sizeof (TdExtensionClass),
                                             .name = "DumpGraph",
                                             .self_bytes = sizeof (DumpGraph),
                                             .priority = TD_PRIORITY_READER,
                                             .initialize = dump_initialize,
                                             .call = dump_call,
                                             .finalize = dump_finalize,
                                             .serialize = dump_serialize,
                                             .free = dump_free };

TdExtension *
td_ext_dump_graph_ (const char *root_name, TdDumpGraphOpt o)
{
  TdExtension *x;
  DumpGraph *d;

  if (td__check_thread ("td_ext_dump_graph") != TD_OK)
    return td__extension_inert ();
  if (root_name == NULL || o.filename == NULL)
    {
      td__fail (TD_ERR_ARG, "td_ext_dump_graph", NULL, "a key and a file name expected");
      return td__extension_inert ();
    }
  x = td_extension_new (&dump_class);
  d = x->self;
  d->root_name = td__xstrdup (root_name);
  d->filename = td__xstrdup (o.filename);
  d->dot = o.dot != NULL ? *o.dot : td_dot_options ();
  return x;
}
