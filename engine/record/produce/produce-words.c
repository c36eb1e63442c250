/* Numbers of a recorded program, and a whole row of records in one call.
 * SPDX-License-Identifier: MIT */
#include "producer-private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_MEASURED (1u << 22)
#define WRONG_LENGTH "a record of its kind has another number of words"

/* --------------------------------------------------------------------------- numbers */

static const char *
wrong_in_stats (const TdTapeStats *s)
{
  uint64_t rest = s->n, binned = 0;
  const uint64_t parts[] = { s->n_zero, s->n_nan, s->n_pos_inf, s->n_neg_inf };

  for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++)
    {
      if (parts[i] > rest)
        return "more elements are counted than there are";
      rest -= parts[i];
    }
  for (unsigned i = 0; i < TD_TAPE_STATS_BINS; i++)
    binned += s->bins[i];
  if (s->n_sampled > s->n || binned > s->n_sampled)
    return "the histogram has more elements than were looked at";
  return NULL;
}

static TdProducerStatus
put_statistics (TdProducer *p, ProducerVar *v, const TdTapeStats *stats)
{
  TdRawStats *raw;

  if (!p->in_iteration || p->n_events == 0)
    return td__producer_refuse (p, TD_PRODUCER_NOT_NOW,
                                "statistics: nothing has run in this iteration");
  raw = td__producer_know (p, v) ? td__producer_record (p, TD_RAW_STATS, 0, sizeof *raw) : NULL;
  if (raw == NULL)
    return TD_PRODUCER_MEMORY;
  raw->variable = v->id;
  raw->stats = *stats;
  td__producer_feed (p, raw);
  return TD_PRODUCER_OK;
}

static TdProducerStatus
find_variable (TdProducer *p, uint64_t id, ProducerVar **v)
{
  TdProducerStatus ready = td__producer_ready (p);

  if (ready != TD_PRODUCER_OK)
    return ready;
  *v = td__producer_var (p, id);
  if (*v == NULL)
    return td__producer_refuse (p, TD_PRODUCER_WRONG, "statistics: there is no variable %llu",
                                (unsigned long long)id);
  return TD_PRODUCER_OK;
}

TdProducerStatus
td_producer_statistics (TdProducer *p, uint64_t variable, const TdTapeStats *stats)
{
  ProducerVar *v;
  TdProducerStatus status = find_variable (p, variable, &v);
  const char *wrong;

  if (status != TD_PRODUCER_OK)
    return status;
  wrong = stats != NULL ? wrong_in_stats (stats) : "they are not given";
  if (wrong != NULL)
    return td__producer_refuse (p, TD_PRODUCER_WRONG, "statistics: %s", wrong);
  return put_statistics (p, v, stats);
}

static uint64_t
count_elements (const ProducerVar *v)
{
  uint64_t n = 1;

  for (unsigned d = 0; d < v->ndim; d++)
    n *= (uint64_t)v->dims[d];
  return n;
}

TdProducerStatus
td_producer_measure (TdProducer *p, uint64_t variable, const void *data, uint64_t n)
{
  ProducerVar *v;
  TdProducerStatus status = find_variable (p, variable, &v);
  TdTapeStats stats;

  if (status != TD_PRODUCER_OK)
    return status;
  if (n != count_elements (v))
    return td__producer_refuse (p, TD_PRODUCER_WRONG,
                                "measure: the variable has %llu elements, not %llu",
                                (unsigned long long)count_elements (v), (unsigned long long)n);
  if (v->dtype >= TD_TAPE_N_DTYPES || (data == NULL && n > 0))
    return td__producer_refuse (p, TD_PRODUCER_WRONG,
                                "measure: there are no elements that can be read");
  td_tape_measure (data, v->dtype, n, v->id, &stats);
  status = put_statistics (p, v, &stats);
  return status == TD_PRODUCER_OK ? td__producer_elements (p, v, data, n) : status;
}

int64_t
td_producer_measure_ahead (TdProducer *p, uint32_t dtype, const void *data, uint64_t n)
{
  TdProducerStatus ready = td__producer_ready (p);
  ProducerMeasured *measured;

  if (ready != TD_PRODUCER_OK)
    return ready;
  if (dtype >= TD_TAPE_N_DTYPES || (data == NULL && n > 0) || n >= 1ull << 56)
    return td__producer_refuse (p, TD_PRODUCER_WRONG,
                                "measure: there are no elements that can be read");
  measured
      = p->measured.n < MOST_MEASURED ? td__list_add (&p->measured, sizeof *measured) : NULL;
  if (measured == NULL)
    return td__producer_refuse (p, TD_PRODUCER_MEMORY,
                                "measure: too many wait for their words");
  *measured = (ProducerMeasured){ .elements = NULL };
  td_tape_measure (data, dtype, n, p->measured.n, &measured->stats);
  td__producer_keep (p, measured, dtype, data, n);
  return (int64_t)p->measured.n - 1;
}

TdProducerStatus
td__producer_report (TdProducer *p, uint32_t key, double value)
{
  TdRawReport *raw;

  if (key == 0 || key > p->n_texts)
    return td__producer_refuse (p, TD_PRODUCER_WRONG, "report: it has no name");
  raw = td__producer_record (p, TD_RAW_REPORT, 0, sizeof *raw);
  if (raw == NULL)
    return TD_PRODUCER_MEMORY;
  raw->key = key;
  raw->value = value;
  td__producer_feed (p, raw);
  return TD_PRODUCER_OK;
}

TdProducerStatus
td_producer_report (TdProducer *p, const char *key, double value)
{
  TdProducerStatus ready = td__producer_ready (p);

  if (ready != TD_PRODUCER_OK)
    return ready;
  return td__producer_report (p, key != NULL ? td__producer_text_n (p, key, strlen (key)) : 0,
                              value);
}

TdProducerStatus
td__producer_notice (TdProducer *p, uint32_t text)
{
  TdRawNotice *raw;

  if (text == 0 || text > p->n_texts)
    return td__producer_refuse (p, TD_PRODUCER_WRONG, "notice: it has no text");
  raw = td__producer_record (p, TD_RAW_NOTICE, TD_TAPE_NOTICE_TEXT, sizeof *raw);
  if (raw == NULL)
    return TD_PRODUCER_MEMORY;
  raw->text = text;
  raw->ticks = td__producer_ticks (0);
  td__producer_feed (p, raw);
  return TD_PRODUCER_OK;
}

TdProducerStatus
td_producer_notice (TdProducer *p, const char *text)
{
  TdProducerStatus ready = td__producer_ready (p);

  if (ready != TD_PRODUCER_OK)
    return ready;
  return td__producer_notice (p,
                              text != NULL ? td__producer_text_n (p, text, strlen (text)) : 0);
}

/* ----------------------------------------------------------------------------- words */

static TdProducerStatus
refuse_words (TdProducer *p, const char *why)
{
  return td__producer_refuse (p, TD_PRODUCER_WRONG, "%s", why);
}

/* A word where 32 bits are asked for: what does not fit is no number that was ever given. */
static uint32_t
narrow (int64_t word)
{
  return word >= 0 && word <= INT32_MAX ? (uint32_t)word : UINT32_MAX;
}

static TdProducerStatus
take_begin (TdProducer *p, const int64_t *w, uint64_t n)
{
  (void)n;
  return td__producer_begin (p, narrow (w[1]), (uint64_t)w[0], w[2] != 0);
}

static TdProducerStatus
take_end (TdProducer *p, const int64_t *w, uint64_t n)
{
  if (n > 2)
    return refuse_words (p, WRONG_LENGTH);
  return td__producer_end_iteration (p, (uint64_t)w[0], n > 1 && w[1] != 0);
}

static TdProducerStatus
take_alloc (TdProducer *p, const int64_t *w, uint64_t n)
{
  (void)n;
  return td_producer_alloc (p, (uint64_t)w[0], (uint64_t)w[1], (uint64_t)w[2], narrow (w[3]),
                            narrow (w[4]));
}

static TdProducerStatus
take_release (TdProducer *p, const int64_t *w, uint64_t n)
{
  (void)n;
  return td_producer_release (p, (uint64_t)w[0]);
}

static TdProducerStatus
take_variable (TdProducer *p, const int64_t *w, uint64_t n)
{
  const uint64_t ndim = (uint64_t)w[12], rest = n - 13;
  TdProducerVariable v = { .size = sizeof v,
                           .id = (uint64_t)w[0],
                           .storage = (uint64_t)w[1],
                           .offset = (uint64_t)w[2],
                           .version = (uint64_t)w[3],
                           .dtype = narrow (w[4]),
                           .category = narrow (w[5]),
                           .flags = narrow (w[6]),
                           .device = narrow (w[7]),
                           .name = narrow (w[8]),
                           .layer = narrow (w[9]),
                           .place = narrow (w[10]),
                           .parameter = narrow (w[11]),
                           .ndim = narrow (w[12]),
                           .dims = w + 13 };

  if (ndim > TD_TAPE_MAX_NDIM || (rest != ndim && rest != 2 * ndim))
    return refuse_words (p, "variable: its dimensions and strides are not so many");
  v.strides = rest == 2 * ndim && ndim > 0 ? w + 13 + ndim : NULL;
  return td_producer_variable (p, &v);
}

static TdProducerStatus
take_forget (TdProducer *p, const int64_t *w, uint64_t n)
{
  (void)n;
  return td_producer_forget (p, (uint64_t)w[0]);
}

static TdProducerStatus
take_operation (TdProducer *p, const int64_t *w, uint64_t n)
{
  const uint64_t n_in = (uint64_t)w[10], rest = n - 11;
  TdProducerOperation op = { .size = sizeof op,
                             .kind = narrow (w[0]),
                             .phase = narrow (w[1]),
                             .place = narrow (w[2]),
                             .layer = narrow (w[3]),
                             .flags = narrow (w[4]),
                             .thread = narrow (w[5]),
                             .twin = (uint64_t)w[7],
                             .start_ns = (uint64_t)w[8],
                             .end_ns = (uint64_t)w[9],
                             .inputs = (const uint64_t *)(w + 11) };

  if (n_in > rest || rest - n_in > UINT16_MAX || n_in > UINT16_MAX)
    return refuse_words (p, "operation: its inputs and outputs are not so many");
  op.n_inputs = (uint32_t)n_in;
  op.n_outputs = (uint32_t)(rest - n_in);
  op.outputs = op.inputs + n_in;
  return td__producer_operation (p, &op, narrow (w[6]));
}

static TdProducerStatus
take_gradient (TdProducer *p, const int64_t *w, uint64_t n)
{
  (void)n;
  return td_producer_gradient (p, (uint64_t)w[0], (uint64_t)w[1]);
}

static TdProducerStatus
take_measured (TdProducer *p, const int64_t *w, uint64_t n)
{
  ProducerVar *v;
  TdProducerStatus status = find_variable (p, (uint64_t)w[0], &v);
  ProducerMeasured *measured = p->measured.items;

  (void)n;
  if (status != TD_PRODUCER_OK)
    return status;
  if (w[1] < 0 || (uint64_t)w[1] >= p->measured.n)
    return refuse_words (p, "measured: nothing was measured under that number");
  measured += w[1];
  status = put_statistics (p, v, &measured->stats);
  return status == TD_PRODUCER_OK ? td__producer_say_kept (p, measured, v, count_elements (v))
                                  : status;
}

static TdProducerStatus
take_report (TdProducer *p, const int64_t *w, uint64_t n)
{
  double value;

  (void)n;
  memcpy (&value, &w[1], sizeof value);
  return td__producer_report (p, narrow (w[0]), value);
}

static TdProducerStatus
take_notice (TdProducer *p, const int64_t *w, uint64_t n)
{
  (void)n;
  return td__producer_notice (p, narrow (w[0]));
}

static TdProducerStatus
take_wait (TdProducer *p, const int64_t *w, uint64_t n)
{
  const TdProducerWait wait = { .size = sizeof wait,
                                .wait = narrow (w[0]),
                                .comm = (uint64_t)w[1],
                                .seq = (uint64_t)w[2],
                                .bytes = (uint64_t)w[3],
                                .start_ns = (uint64_t)w[4],
                                .end_ns = (uint64_t)w[5],
                                .call = narrow (w[6]),
                                .place = narrow (w[7]),
                                .rank = narrow (w[8]),
                                .n_ranks = narrow (w[9]),
                                .peer = w[10] == -1 ? -1 : (int32_t)narrow (w[10]),
                                .flags = narrow (w[11]),
                                .dtype = narrow (w[12]) };

  (void)n;
  if (w[10] < -1 || w[10] > INT32_MAX)
    return refuse_words (p, "wait: there is no such peer");
  return td_producer_wait (p, &wait);
}

static TdProducerStatus
take_sum (TdProducer *p, const int64_t *w, uint64_t n)
{
  TdTapeRankSum sum = { .path = narrow (w[1]), .n_averaged = narrow (w[3]) };

  (void)n;
  if (w[0] < 0 || w[0] >= TD_TAPE_N_SUMS || w[2] < 0 || w[2] > UINT8_MAX)
    return refuse_words (p, "sum: of no kind");
  sum.kind = (uint8_t)w[0];
  sum.flags = (uint8_t)w[2];
  memcpy (sum.sum, &w[4], sizeof sum.sum);
  memcpy (&sum.sample, &w[6], sizeof sum.sample);
  sum.at = (uint64_t)w[7];
  sum.size = (uint64_t)w[8];
  sum.n_not_finite = (uint64_t)w[9];
  return td__producer_sum (p, &sum);
}

/* Those that are open when the iteration ends end with it. */
static TdProducerStatus
take_scope (TdProducer *p, const int64_t *w, uint64_t n)
{
  TdRawSpan *raw;

  (void)n;
  if (!p->in_iteration)
    return td__producer_refuse (p, TD_PRODUCER_NOT_NOW, "scope: no iteration is open");
  if (w[0] < 0 || (uint64_t)w[0] > p->n_texts)
    return refuse_words (p, "scope: there is no such text");
  if (w[0] == 0)
    {
      TdRawHead *head = td__producer_record (p, TD_RAW_SCOPE_CLOSE, 0, sizeof *head);

      if (head == NULL)
        return TD_PRODUCER_MEMORY;
      td__producer_feed (p, head);
      return TD_PRODUCER_OK;
    }
  raw = td__producer_record (p, TD_RAW_SCOPE_OPEN, 0, sizeof *raw);
  if (raw == NULL)
    return TD_PRODUCER_MEMORY;
  raw->name = (uint32_t)w[0];
  td__producer_feed (p, raw);
  return TD_PRODUCER_OK;
}

/* How many words a record has: so many, or at least so many. */
static const struct
{
  TdProducerStatus (*take) (TdProducer *p, const int64_t *w, uint64_t n);
  uint32_t n;
  bool more;
} takers[TD_PRODUCER_N_WORDS] = {
  [TD_PRODUCER_WORD_BEGIN] = { take_begin, 3, false },
  [TD_PRODUCER_WORD_END] = { take_end, 1, true },
  [TD_PRODUCER_WORD_ALLOC] = { take_alloc, 5, false },
  [TD_PRODUCER_WORD_RELEASE] = { take_release, 1, false },
  [TD_PRODUCER_WORD_VARIABLE] = { take_variable, 13, true },
  [TD_PRODUCER_WORD_FORGET] = { take_forget, 1, false },
  [TD_PRODUCER_WORD_OPERATION] = { take_operation, 11, true },
  [TD_PRODUCER_WORD_GRADIENT] = { take_gradient, 2, false },
  [TD_PRODUCER_WORD_MEASURED] = { take_measured, 2, false },
  [TD_PRODUCER_WORD_REPORT] = { take_report, 2, false },
  [TD_PRODUCER_WORD_NOTICE] = { take_notice, 1, false },
  [TD_PRODUCER_WORD_SUM] = { take_sum, 10, false },
  [TD_PRODUCER_WORD_WAIT] = { take_wait, 13, false },
  [TD_PRODUCER_WORD_SCOPE] = { take_scope, 1, false },
};

static TdProducerStatus
take (TdProducer *p, int64_t word, const int64_t *w, uint64_t n)
{
  if (word <= 0 || word >= TD_PRODUCER_N_WORDS)
    return refuse_words (p, "there is no such record");
  if (takers[word].more ? n < takers[word].n : n != takers[word].n)
    return refuse_words (p, WRONG_LENGTH);
  return takers[word].take (p, w, n);
}

TdProducerStatus
td_producer_words (TdProducer *p, const int64_t *words, uint64_t n)
{
  TdProducerStatus first = td__producer_ready (p);
  char first_error[sizeof p->error];

  if (first != TD_PRODUCER_OK)
    return first;
  if (words == NULL && n > 0)
    return refuse_words (p, "words: there are none");
  for (uint64_t at = 0; at < n;)
    {
      const uint64_t left = n - at;
      const bool fits = left >= 2 && words[at + 1] >= 2 && (uint64_t)words[at + 1] <= left;
      TdProducerStatus status
          = fits ? take (p, words[at], words + at + 2, (uint64_t)words[at + 1] - 2)
                 : refuse_words (p, "a record is longer than the row");

      if (status != TD_PRODUCER_OK && first == TD_PRODUCER_OK)
        {
          first = status;
          snprintf (first_error, sizeof first_error, "words at %llu: %.200s",
                    (unsigned long long)at, p->error);
        }
      if (!fits)
        break;
      at += (uint64_t)words[at + 1];
    }
  td__producer_forget_measured (p);
  if (first != TD_PRODUCER_OK)
    memcpy (p->error, first_error, sizeof p->error);
  return first;
}
