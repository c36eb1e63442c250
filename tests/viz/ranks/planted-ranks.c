/* Tapes of ranks made by hand.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include <glib/gstdio.h>

#include "planted-ranks.h"
#include "td-test.h"

#define NOBODY 0x3fffffff /* a process that is not there */

static const char *const arrays[] = { "l1/W", "l2/W" };

static guint32
site (TdTapeWriter *w, guint line)
{
  return td_tape_writer_site (w, "/src/model.c", line, "main");
}

/* ---- operations ---- */

static TdIteration *
make_iteration (const PlantedStep *step)
{
  TdSynthetic *s = td_synthetic_new ((guint64)step->iteration);
  guint x = td_synthetic_input (s, "x", TD_SHAPE (step->batch, 4));
  guint w1 = td_synthetic_parameter (s, "l1/W", TD_SHAPE (4, 4)),
        w2 = td_synthetic_parameter (s, "l2/W", TD_SHAPE (4, 4)), h;

  if (step->input_mean != 0)
    td_synthetic_mean (s, x, step->input_mean);
  h = TD_OP (s, "linear", 10, TD_SHAPE (step->batch, 4), x, w1);
  if (step->nan)
    {
      h = TD_OP (s, "exp", 88, TD_SHAPE (step->batch, 4), h);
      td_synthetic_nan (s);
    }
  if (step->summed || step->received)
    {
      g_autofree char *attrs = g_strdup_printf ("rank=%u size=4 root=-1", step->rank);

      h = TD_OP (s, "comm_allreduce", 11, TD_SHAPE (step->batch, 4), h);
      td_synthetic_attrs (s, attrs);
      if (step->received)
        td_synthetic_nan (s);
    }
  h = step->other_op ? TD_OP (s, "sigmoid", 88, TD_SHAPE (step->batch, 4), h)
                     : TD_OP (s, "relu", 12, TD_SHAPE (step->batch, 4), h);
  if (step->attrs)
    td_synthetic_attrs (s, step->attrs);
  if (!step->unused)
    h = TD_OP (s, "linear", 14, TD_SHAPE (step->batch, 4), h, w2);
  h = step->adds ? TD_OP (s, "sum", 16, TD_SHAPE (1), h)
                 : TD_OP (s, "mean", 16, TD_SHAPE (1), h);
  if (step->doubled > 0)
    {
      guint of_weights = TD_OP (s, "square", 17, TD_SHAPE (4, 4), w1);

      for (guint i = 0; i < step->doubled; i++)
        of_weights = TD_OP (s, "add", 17, TD_SHAPE (4, 4), of_weights, of_weights);
      h = TD_OP (s, "add", 17, TD_SHAPE (1), TD_OP (s, "sum", 17, TD_SHAPE (1), of_weights), h);
    }
  if (!step->no_backward)
    td_synthetic_backward (s, h);
  if (step->clips)
    td_synthetic_change_gradient (s, "clip", 22, w2);
  if (step->clips_in_vain)
    td_synthetic_read_gradient (s, "clip", 22, w2);
  if (step->reads)
    td_synthetic_read_gradient (s, "sum", 23, w2);
  if (!step->no_update)
    td_synthetic_update (s, "sgd");
  if (step->updates_twice)
    td_synthetic_update (s, "sgd");
  if (step->evaluated > 0)
    TD_OP (s, "linear", 40, TD_SHAPE (step->evaluated, 4),
           td_synthetic_input (s, "v", TD_SHAPE (step->evaluated, 4)), w1);
  return td_synthetic_finish (s);
}

/* ---- sums ---- */

static double
gradient_of (const PlantedRun *run, guint rank, gint64 iteration, guint array)
{
  double g = 0.1 * (rank + 1) + 0.013 * (double)iteration + array;

  return run->half ? (double)(float)(round (g * 128) / 128) : (double)(float)g;
}

static double
mean_of (const PlantedRun *run, gint64 iteration, guint array)
{
  double sum = 0;

  for (guint r = 0; r < run->n_ranks; r++)
    sum += gradient_of (run, r, iteration, array);
  sum /= run->n_ranks;
  return run->half ? (double)(float)(round (sum * 128) / 128) : (double)(float)sum;
}

static void
add_sum (PlantedStep *step, guint kind, const char *path, double value)
{
  TdTapeRankSum s = { .kind = (guint8)kind,
                      .path = td_tape_writer_string (step->w, path),
                      .sample = value,
                      .at = 5,
                      .size = 16 };

  if (kind == TD_TAPE_SUM_NUMBER)
    memcpy (&s.sum[0], &value, sizeof value);
  else
    s.sum[0] = td_tape_hash_bytes (7, &value, sizeof value);
  s.sum[1] = kind == TD_TAPE_SUM_NUMBER ? 0 : td_tape_hash (s.sum[0], 1);
  if (kind == TD_TAPE_SUM_MEAN)
    s.n_averaged = step->run->n_ranks;
  assert_true (step->n_sums < PLANTED_MOST_ROWS);
  step->sums[step->n_sums++] = s;
}

static void
add_sums (PlantedStep *step)
{
  add_sum (step, TD_TAPE_SUM_NUMBER, "lr", 0.1);
  add_sum (step, TD_TAPE_SUM_NUMBER, "t", (double)step->iteration + 1);
  for (guint a = 0; a < G_N_ELEMENTS (arrays); a++)
    {
      double mean = mean_of (step->run, step->iteration, a);
      g_autofree char *state = g_strconcat (arrays[a], "/m", NULL);

      add_sum (step, TD_TAPE_SUM_GRADIENT, arrays[a],
               gradient_of (step->run, step->rank, step->iteration, a));
      add_sum (step, TD_TAPE_SUM_MEAN, arrays[a], mean);
      add_sum (step, TD_TAPE_SUM_STATE, state, 0.9 * mean);
      add_sum (step, TD_TAPE_SUM_PARAMETER, arrays[a], 1 - 0.1 * mean);
    }
  add_sum (step, TD_TAPE_SUM_PERSISTENT, "bn/mean", 3);
}

TdTapeRankSum *
planted_sum (PlantedStep *step, guint kind, const char *path)
{
  guint32 id = td_tape_writer_string (step->w, path);

  for (guint i = 0; i < step->n_sums; i++)
    if (step->sums[i].kind == kind && step->sums[i].path == id)
      return &step->sums[i];
  fail_msg ("no sum of %s", path);
  return NULL;
}

/* ---- calls ---- */

/* Times of a rank's tape, of one that is true for all. */
static guint64
own_time (const PlantedRun *run, guint rank, guint64 true_ns)
{
  return true_ns - run->start_ns[rank];
}

static void
add_waits (PlantedStep *step)
{
  const PlantedRun *run = step->run;
  guint64 begin = 50000000u + (guint64)step->iteration * PLANTED_STEP_NS, last = 0, own;
  TdTapeCollective w = { .comm = 11,
                         .seq = (guint64)step->iteration + 1,
                         .rank = step->rank,
                         .size = run->n_ranks,
                         .peer = -1,
                         .call = td_tape_writer_string (step->w, "td_opt_update"),
                         .site = site (step->w, 30),
                         .event = 4,
                         .flags = TD_TAPE_COLLECTIVE_WHOLE };

  for (guint r = 0; r < run->n_ranks; r++)
    last = MAX (last, begin + 1000 * r + run->late_ns[r]);
  own = begin + 1000 * step->rank + run->late_ns[step->rank];
  w.wait = TD_TAPE_WAIT_MEET;
  w.start_ns = own_time (run, step->rank, own);
  w.duration_ns = last + 4000 + 300 * step->rank - own;
  step->waits[step->n_waits++] = w;
  w.wait = TD_TAPE_WAIT_SUM;
  w.start_ns += w.duration_ns + 100;
  w.duration_ns = 9000;
  w.bytes = run->half ? 64 : 128;
  step->waits[step->n_waits++] = w;
}

/* ---- writing ---- */

static TdTapeWriter *
open_tape (const PlantedRun *run, guint rank, const char *path)
{
  char error[256];
  TdTapeWriterOptions options
      = { .size = sizeof options,
          .path = path,
          .rank = rank,
          .n_ranks = run->n_ranks,
          .pid = NOBODY,
          .level = TD_TAPE_LEVEL_STATS,
          .overwrite = true,
          .mono_ns = (guint64)(5000000000 + run->clock_ns[rank]) + run->start_ns[rank] };
  TdTapeWriter *w = td_tape_writer_new (&options, error, sizeof error);

  if (!w)
    fail_msg ("%s", error);
  td_tape_writer_info (w, "program", "model");
  if (run->of_run[rank])
    td_tape_writer_info (w, "run", run->of_run[rank]);
  td_tape_writer_info (w, "host", run->host[rank] ? run->host[rank] : "here");
  td_tape_writer_info (w, "device", run->device[rank] ? run->device[rank] : "cpu");
  if (run->uuid[rank])
    td_tape_writer_info (w, "device.uuid", run->uuid[rank]);
  for (guint line = 1; line <= 99; line++)
    assert_int_equal (site (w, line), line);
  return w;
}

/* Sums are made between backward and the update. */
static void
place_sums (PlantedStep *step, const TdTapeIteration *it)
{
  guint update = 0;

  while (update < it->n_events && it->events[update].phase != TD_TAPE_PHASE_UPDATE)
    update++;
  for (guint i = 0; i < step->n_sums; i++)
    step->sums[i].event = update;
}

static void
write_rank (PlantedRun *run, guint rank, const char *folder)
{
  g_autofree char *path = g_strdup_printf ("%s/rank-%u.tdtape", folder, rank);
  TdTapeWriter *w = open_tape (run, rank, path);

  for (gint64 i = 0; i < run->n_steps; i++)
    {
      PlantedStep step = { .run = run, .w = w, .rank = rank, .iteration = i, .batch = 8 };
      g_autoptr (TdIteration) it = NULL;

      add_sums (&step);
      add_waits (&step);
      if (run->plant)
        run->plant (&step);
      if (step.is_left_out)
        continue;
      it = make_iteration (&step);
      place_sums (&step, td_iteration_get_tape (it));
      td_synthetic_write_rank (w, it,
                               &(TdSyntheticRank){ .waits = step.waits,
                                                   .n_waits = step.n_waits,
                                                   .sums = step.sums,
                                                   .n_sums = step.n_sums,
                                                   .is_live = step.is_live });
    }
  if (run->note[rank])
    td_tape_writer_notice (
        w, &(TdTapeNotice){ .event = TD_TAPE_NONE,
                            .kind = TD_TAPE_NOTICE_TEXT,
                            .text = td_tape_writer_string (w, run->note[rank]) });
  if (!run->no_end[rank])
    {
      if (run->end[rank].last_op)
        {
          TdTapeOpdef opdef = { .name = td_tape_writer_string (w, "relu"), .n_in = -1 };

          run->end[rank].last_op = td_tape_writer_opdef (w, &opdef);
          run->end[rank].last_site = site (w, 12);
        }
      td_tape_writer_end (w, &run->end[rank]);
    }
  td_tape_writer_free (w);
}

const char *
planted_write (PlantedRun *run)
{
  const char *folder = td_test_tmp ("ranks");

  run->n_ranks = run->n_ranks ? run->n_ranks : 4;
  run->n_steps = run->n_steps ? run->n_steps : 6;
  assert_true (run->n_ranks <= PLANTED_MOST_RANKS);
  for (guint r = 0; r < PLANTED_MOST_RANKS; r++)
    {
      g_autofree char *path = g_strdup_printf ("%s/rank-%u.tdtape", folder, r);

      g_unlink (path);
    }
  g_mkdir_with_parents (folder, 0700);
  for (guint r = 0; r < run->n_ranks; r++)
    if (!run->no_tape[r])
      write_rank (run, r, folder);
  return folder;
}

TdRanks *
planted_look (PlantedRun *run)
{
  const char *folder = planted_write (run);
  g_autoptr (GError) error = NULL;
  TdRanks *ranks = td_ranks_open (&folder, 1, &error);

  if (!ranks)
    fail_msg ("%s", error->message);
  td_ranks_look (ranks);
  return ranks;
}

const TdRanksFinding *
planted_find (const TdRanks *ranks, TdRanksCause cause)
{
  for (guint i = 0; i < td_ranks_get_n_findings (ranks); i++)
    if (td_ranks_get_finding (ranks, i)->cause == cause)
      return td_ranks_get_finding (ranks, i);
  return NULL;
}

/* ---- what is expected ---- */

TdRanks *
planted_look_at (void (*plant) (PlantedStep *step))
{
  PlantedRun run = { .plant = plant };

  return planted_look (&run);
}

void
planted_assert_nothing (TdRanks *ranks)
{
  if (td_ranks_get_n_findings (ranks) > 0)
    fail_msg ("%s", td_ranks_get_finding (ranks, 0)->sentence);
}

void
planted_assert_cured (void (*plant) (PlantedStep *step))
{
  g_autoptr (TdRanks) ranks = planted_look_at (plant);

  planted_assert_nothing (ranks);
}

/* The finding of a cause, which is the only fault. */
const TdRanksFinding *
planted_assert_found (const TdRanks *ranks, TdRanksCause cause, TdRanksLevel level,
                      gint64 iteration)
{
  const TdRanksFinding *f = planted_find (ranks, cause);
  g_autofree char *text = td_ranks_print (ranks, "text");

  if (!f)
    fail_msg ("not found: %s", text);
  if (f->level != level || f->iteration != iteration
      || td_ranks_count_faults (ranks) != (level != TD_RANKS_NOTE))
    fail_msg ("expected %s in %d, found: %s", td_ranks_level_name (level), (int)iteration,
              text);
  assert_non_null (f->sentence);
  return f;
}

void
planted_assert_ranks (const TdRanksFinding *f, guint n, const guint *ranks)
{
  if (f->n_ranks != n)
    fail_msg ("%u ranks: %s", f->n_ranks, f->sentence);
  for (guint i = 0; i < n; i++)
    assert_int_equal (f->ranks[i], ranks[i]);
}
