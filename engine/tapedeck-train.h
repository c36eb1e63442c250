/* Reports and training loops.  Included by tapedeck.h.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

TD_BEGIN_DECLS

typedef struct TdObservation TdObservation;

/* --- reports ------------------------------------------------------------------------------ */
/** Report a number under a key, for curves and breakpoints; inside TD_REPORT_SCOPE it goes to
 * that observation only. */
TD_API void td_report (const char *key, double value);
/** The same with the link's path before the key: "mlp/l1/scale". */
TD_API void td_report_for (TdLink *link, const char *key, double value);
/** Count, mean, standard deviation, last and extreme values of what was reported. */
typedef struct TdSummary
{
  int64_t n;
  double last, mean, std, min, max;
} TdSummary;
TD_API TdObservation *td_observation_new (void);
TD_API void td_observation_free (TdObservation *observation);
TD_API void td_observation_clear (TdObservation *observation);
/** Summary of a key; NULL observation: the program's own reports.  n is 0 for an unknown key.
 */
TD_API TdSummary td_observation_get (const TdObservation *observation, const char *key);
typedef struct
{
  TdObservation *outer;
  int armed;
} TdReportSave;
TD_API TdReportSave td__report_push (TdObservation *observation);
TD_API void td__report_pop (TdReportSave *save);
#define TD_REPORT_SCOPE_(n, observation)                                                       \
  for (TdReportSave TD_CAT (td_save_, n) TD_CLEANUP_ (td__report_pop)                          \
       = td__report_push (observation),                                                        \
       TD_CAT (td_once_, n) = { NULL, 1 };                                                     \
       TD_CAT (td_once_, n).armed; TD_CAT (td_once_, n).armed = 0)
/** A block whose reports go to an observation (Chainer's report_scope). */
#define TD_REPORT_SCOPE(observation) TD_REPORT_SCOPE_ (__COUNTER__, observation)

TD_END_DECLS
