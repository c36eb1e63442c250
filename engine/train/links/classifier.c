/* Classifier: a predictor with its loss and its reports.
 *
 * SPDX-License-Identifier: MIT */
#include "link.h"

static TdStatus
classifier_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out,
                    int n_out)
{
  TdVar *y, *accuracy;

  (void)self;
  if (n_in != 2 || n_out < 1 || n_out > 2 || link->n_children != 1)
    return td__fail (TD_ERR_ARG, "Classifier", td__engine.site,
                     "inputs x, t and outputs loss, accuracy expected, got %d and %d", n_in,
                     n_out);
  y = td_link_at (link->children[0], in[0], td__engine.site);
  out[0] = td_softmax_cross_entropy_ (y, in[1], NULL);
  accuracy = td_accuracy (y, in[1]);
  if (n_out == 2)
    out[1] = accuracy;
  if (td_poisoned (out[0]))
    return td__engine.has_error ? td__engine.error.status : TD_ERR_STATE;
  td_report_variable ("loss", out[0]);
  td_report_variable ("accuracy", accuracy);
  return TD_OK;
}

static const TdLinkClass classifier_class
    = { .size = sizeof (TdLinkClass), .name = "Classifier", .forward = classifier_forward };

TdLink *
td_classifier_new (TdLink *parent, const char *name, TdLink *predictor)
{
  TdLink *link;

  if (!td__link_usable (predictor, "Classifier", NULL))
    return td__link_inert ();
  link = td__link_make (&classifier_class, parent, name, NULL);
  if (!link->inert && td_link_adopt (link, "predictor", predictor)->inert)
    return td__link_abandon (link);
  return link;
}
