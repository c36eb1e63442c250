/* PrintReport: the log as a table, a line at a time.
 *
 * *Source*: chainer.training.extensions.PrintReport.
 * SPDX-License-Identifier: MIT */
#include "log-report.h"
#include "host-memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct
{
  char **entries, *log_report;
  int fd, n_printed;
  bool has_header, is_terminal;
} PrintReport;

static int
width_of (const char *entry)
{
  int n = (int)strlen (entry);

  return n > 10 ? n : 10;
}

static void
add_header (TdText *text, const PrintReport *p)
{
  for (int i = 0; p->entries[i] != NULL; i++)
    td__text_add (text, "%s%-*s", i > 0 ? "  " : "", width_of (p->entries[i]), p->entries[i]);
  td__text_add (text, "\n");
}

static void
add_line (TdText *text, const PrintReport *p, TdExtension *log, int line)
{
  if (p->is_terminal)
    td__text_add (text, "\033[J"); /* over what a progress bar has drawn below */
  for (int i = 0; p->entries[i] != NULL; i++)
    {
      const char *key = p->entries[i];
      int width = width_of (key);

      if (td__log_report_has (log, line, key))
        td__text_add (text, "%-*g  ", width, td_log_report_value (log, line, key));
      else
        td__text_add (text, "%*s  ", width, "");
    }
  td__text_add (text, "\n");
}

static TdStatus
print_call (void *self, TdTrainer *t)
{
  PrintReport *p = self;
  TdExtension *log = td_trainer_extension (t, p->log_report);
  TdText text = { NULL, 0, 0 };

  if (!td__is_log_report (log))
    return td__fail (TD_ERR_STATE, "PrintReport", NULL,
                     "the trainer has no log report \"%s\" to print", p->log_report);
  if (!p->has_header)
    add_header (&text, p);
  p->has_header = true;
  while (p->n_printed < td_log_report_n_lines (log))
    add_line (&text, p, log, p->n_printed++);
  if (text.n > 0)
    {
      fflush (NULL); /* what the program printed before */
      if (write (p->fd, text.text, text.n) < 0)
        p->fd = -1; /* nobody reads any more */
    }
  free (text.text);
  return TD_OK;
}

static void
print_free (void *self)
{
  PrintReport *p = self;

  td__keys_free (p->entries);
  free (p->log_report);
}

static const TdExtensionClass print_class = { .size = sizeof (TdExtensionClass),
                                              .name = "PrintReport",
                                              .self_bytes = sizeof (PrintReport),
                                              .priority = TD_PRIORITY_READER,
                                              .call = print_call,
                                              .free = print_free };

TdExtension *
td_ext_print_report_ (const char *const *entries, TdPrintReportOpt o)
{
  TdExtension *x;
  PrintReport *p;

  if (td__check_thread ("td_ext_print_report") != TD_OK)
    return td__extension_inert ();
  if (entries == NULL || entries[0] == NULL || o.log_report == NULL)
    {
      td__fail (TD_ERR_ARG, "td_ext_print_report", NULL,
                "the keys of its columns and the name of a log report expected");
      return td__extension_inert ();
    }
  x = td_extension_new (&print_class);
  if (x->inert)
    return x;
  p = x->self;
  p->entries = td__keys_copy (entries);
  p->log_report = td__xstrdup (o.log_report);
  p->fd = o.fd;
  p->is_terminal = isatty (o.fd) == 1;
  return x;
}
