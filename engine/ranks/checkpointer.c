/* Checkpoints of all ranks: each writes its trainer into a file of its own, and the newest
 * iteration that all have whole is what they go on from.
 *
 * Files are NAME.ITERATION.RANK-of-SIZE.npz, in the trainer's folder.  Another number of ranks
 * goes on from rank 0's file: weights, optimizers and the count of iterations are the same on
 * all; iterators and random numbers are of one rank each, and begin anew.
 *
 * *Source*: chainermn.create_multi_node_checkpointer.
 * SPDX-License-Identifier: MIT */
#include "arrays.h"
#include "host-memory.h"
#include "optimizer-state.h"

#include "train/loop/trainer.h"
#include "train/serial/archive.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum
{
  MOST = 64, /* checkpoints that are looked at, the newest */
  PATH = 4400
};

typedef struct
{
  TdComm *comm;
  char *name;
  TdCheckpointerOpt o;
} Checkpointer;

/* A file of this name. */
typedef struct
{
  int64_t iteration;
  int rank, size;
} Found;

static void
path_of (const Checkpointer *c, const TdTrainer *t, Found f, char *path)
{
  snprintf (path, PATH, "%.3000s/%.200s.%lld.%d-of-%d.npz", t->out, c->name,
            (long long)f.iteration, f.rank, f.size);
}

static bool
is_ours (const Checkpointer *c, const char *file, Found *f)
{
  const size_t n = strlen (c->name);
  long long iteration;
  int end = 0;

  if (strncmp (file, c->name, n) != 0 || file[n] != '.'
      || sscanf (file + n + 1, "%18lld.%9d-of-%9d.npz%n", &iteration, &f->rank, &f->size, &end)
             != 3
      || end == 0 || file[n + 1 + (size_t)end] != '\0')
    return false;
  f->iteration = iteration;
  return iteration >= 0 && f->rank >= 0 && f->rank < f->size;
}

static int
newest_first (const void *a, const void *b)
{
  const Found *x = a, *y = b;

  return (x->iteration < y->iteration) - (x->iteration > y->iteration);
}

/* Those that `wanted` says, the newest first. *Owner*: the caller, free (). */
static Found *
find_files (const Checkpointer *c, const TdTrainer *t,
            bool (*wanted) (const Checkpointer *c, const Found *f), int *n)
{
  DIR *dir = opendir (t->out);
  struct dirent *entry;
  Found *found = NULL, f;

  *n = 0;
  while (dir != NULL && (entry = readdir (dir)) != NULL) /* NOLINT(concurrency-mt-unsafe) */
    if (is_ours (c, entry->d_name, &f) && wanted (c, &f))
      {
        found = td__xrealloc (found, (size_t)(*n + 1) * sizeof *found);
        found[(*n)++] = f;
      }
  if (dir != NULL)
    closedir (dir);
  if (*n > 1)
    qsort (found, (size_t)*n, sizeof *found, newest_first);
  return found;
}

static bool
is_mine (const Checkpointer *c, const Found *f)
{
  return f->rank == c->comm->rank && f->size == c->comm->size;
}

static bool
is_of_another_number (const Checkpointer *c, const Found *f)
{
  return f->rank == 0 && f->size != c->comm->size;
}

/* Every value of it can be read. */
static bool
is_whole (const char *path)
{
  char key[1024];
  const char *why = "";
  TdArchiveSource *s = td__archive_open (path, TD_FILE_NPZ, &why);
  bool whole = s != NULL;

  for (int i = 0; whole && s->key (s, i, key, sizeof key); i++)
    {
      TdRecord value = { .data = NULL };

      whole = s->read (s, key, &value, &why);
      free (value.data);
    }
  if (s != NULL)
    s->close (s);
  if (!whole)
    fprintf (stderr, "tapedeck: %.3000s is damaged (%.200s): nobody goes on from it\n", path,
             why);
  return whole;
}

/* --- writing --- */

/* Older ones of this rank: all have written a newer one. */
static void
clean (const Checkpointer *c, const TdTrainer *t)
{
  int n;
  Found *found = find_files (c, t, is_mine, &n);
  char path[PATH];

  for (int i = c->o.n_retains; i < n && c->o.n_retains > 0; i++)
    {
      path_of (c, t, found[i], path);
      unlink (path);
    }
  free (found);
}

static TdStatus
checkpointer_call (void *self, TdTrainer *t)
{
  const Checkpointer *c = self;
  const Found now = { t->updater->iteration, c->comm->rank, c->comm->size };
  char path[PATH];
  TdStatus status;
  TdMeet mine;

  if (!td__comm_usable (c->comm, "td_multi_node_checkpointer_new", NULL))
    return td__error_status ();
  mine = td__meet_of (TD_MEET_CHECKPOINT, NULL, NULL);
  path_of (c, t, now, path);
  if (td__save_object (path, TD_FILE_NPZ, false, td__trainer_serialize, t,
                       "td_multi_node_checkpointer_new", NULL)
      != TD_OK)
    td__meet_fail (&mine);
  mine.digest = td__digest (0, &now.iteration, sizeof now.iteration);
  status = td__meet (c->comm, &mine, NULL);
  if (status == TD_OK)
    clean (c, t);
  return status;
}

/* --- going on --- */

/* Whole on all ranks?  For all of them. */
static bool
all_have_it (const Checkpointer *c, const TdTrainer *t, int64_t iteration)
{
  TdMeet mine = td__meet_of (TD_MEET_CHECKPOINT, NULL, NULL);
  bool all = true;
  char path[PATH];

  path_of (c, t, (Found){ iteration, c->comm->rank, c->comm->size }, path);
  mine.flags |= is_whole (path) ? TD_MEET_HAS : 0;
  if (td__meet (c->comm, &mine, NULL) != TD_OK)
    return false;
  for (int r = 0; r < c->comm->size; r++)
    all &= (c->comm->all[r].flags & TD_MEET_HAS) != 0;
  return all;
}

static bool
is_in (int64_t iteration, const int64_t list[MOST])
{
  for (int i = 0; i < MOST; i++)
    if (list[i] == iteration)
      return true;
  return false;
}

/* The newest iteration, after `than`, of which every rank has a whole file; -1: there is none.
 */
static int64_t
newest_of_all (const Checkpointer *c, const TdTrainer *t, int64_t than)
{
  int n;
  Found *found = find_files (c, t, is_mine, &n);
  int64_t own[MOST], newest = -1, (*all)[MOST];
  char why[TD_WHY_WIRE] = "";

  all = td__xcalloc ((size_t)c->comm->size, sizeof *all);
  for (int i = 0; i < MOST; i++)
    own[i] = i < n ? found[i].iteration : -1;
  free (found);
  if (!td__wait_gather (c->comm, own, all, sizeof own, why, NULL))
    td__comm_fail (c->comm, why, NULL);
  for (int i = 0; i < MOST && newest < 0 && !c->comm->parted; i++)
    {
      bool common = all[0][i] > than;

      for (int r = 1; r < c->comm->size; r++)
        common = common && is_in (all[0][i], all[r]);
      if (common && all_have_it (c, t, all[0][i]))
        newest = all[0][i];
    }
  free (all);
  return newest;
}

/* What all ranks have in common. */
static void
serialize_common (void *trainer, TdSerializer *s)
{
  TdUpdater *u = ((TdTrainer *)trainer)->updater;
  char name[300];

  td_serializer_enter (s, "updater");
  for (int i = 0; i < u->n_opts; i++)
    {
      TdLink *target = td__opt_target (u->opts[i].opt);

      snprintf (name, sizeof name, "model:%.280s", u->opts[i].name);
      if (target != NULL)
        td_serialize_link (s, name, target);
      snprintf (name, sizeof name, "optimizer:%.280s", u->opts[i].name);
      td_serialize_opt (s, name, u->opts[i].opt);
    }
  td_serialize_int (s, "iteration", &u->iteration);
  td_serializer_leave (s);
}

/* Rank 0 loads its file of another number of ranks, and all get what it has of them. */
static TdStatus
go_on_from_others (const Checkpointer *c, TdTrainer *t, Found from)
{
  TdMeet mine = td__meet_of (TD_MEET_CHECKPOINT, NULL, NULL);
  TdUpdater *u = t->updater;
  char path[PATH];
  TdStatus status;

  path_of (c, t, from, path);
  if (c->comm->rank == 0
      && td__load_object (path, TD_FILE_NPZ, serialize_common, t, NULL,
                          "td_multi_node_checkpointer_new", NULL)
             != TD_OK)
    td__meet_fail (&mine);
  status = td__meet (c->comm, &mine, NULL);
  for (int i = 0; i < u->n_opts && status == TD_OK; i++)
    {
      TdLink *target = td__opt_target (u->opts[i].opt);

      if (target != NULL)
        status = td_comm_bcast_link (c->comm, target);
      if (status == TD_OK)
        status = td_comm_bcast_optimizer (c->comm, u->opts[i].opt);
    }
  if (status == TD_OK)
    status = td__bcast_bytes (c->comm, &u->iteration, sizeof u->iteration, NULL);
  if (status == TD_OK && c->comm->rank == 0)
    fprintf (stderr,
             "tapedeck: %d %s on from iteration %lld of %d: with its weights and "
             "optimizers; iterators, epochs and random numbers begin anew\n",
             c->comm->size, c->comm->size == 1 ? "rank goes" : "ranks go",
             (long long)from.iteration, from.size);
  return status;
}

/* On rank 0, the newest of another number of ranks; iteration -1: there is none. */
static Found
newest_of_others (const Checkpointer *c, const TdTrainer *t)
{
  Found none = { -1, 0, 0 }, *found;
  char path[PATH];
  int n;

  if (c->comm->rank != 0)
    return none;
  found = find_files (c, t, is_of_another_number, &n);
  for (int i = 0; i < n && none.iteration < 0; i++)
    {
      path_of (c, t, found[i], path);
      if (is_whole (path))
        none = found[i];
    }
  free (found);
  return none;
}

/* Each has its own file of one iteration, and its parameters are the others': so are all that
 * follow.  Files of several runs that were mixed begin with rank 0's numbers. */
static void
go_on_from_own (const Checkpointer *c, TdTrainer *t, int64_t iteration)
{
  TdUpdater *u = t->updater;
  TdMeet mine = td__meet_of (TD_MEET_CHECKPOINT, NULL, NULL);
  bool differs = false;
  char path[PATH];

  path_of (c, t, (Found){ iteration, c->comm->rank, c->comm->size }, path);
  if (td__load_object (path, TD_FILE_NPZ, td__trainer_serialize, t, NULL,
                       "td_multi_node_checkpointer_new", NULL)
      != TD_OK)
    td__meet_fail (&mine);
  for (int i = 0; i < u->n_opts; i++)
    {
      TdLink *target = td__opt_target (u->opts[i].opt);
      TdCommon parameters = { NULL, 0 };
      uint64_t numbers;

      if (target == NULL)
        continue;
      parameters = td__common_of (target, false);
      numbers = td__common_numbers (&parameters, NULL);
      mine.digest = td__digest (mine.digest, &numbers, sizeof numbers);
      td__common_clear (&parameters);
    }
  if (td__meet_digest (c->comm, &mine, &differs, NULL) == TD_OK && !differs)
    for (int i = 0; i < u->n_opts; i++)
      td__opt_loaded_by_all (u->opts[i].opt);
}

static void
checkpointer_load (void *self, TdTrainer *t)
{
  const Checkpointer *c = self;
  TdMeet mine;
  Found others;
  int64_t newest;

  if (!c->o.resume || !td__comm_usable (c->comm, "td_multi_node_checkpointer_new", NULL))
    return;
  mine = td__meet_of (TD_MEET_CHECKPOINT, NULL, NULL);
  others = newest_of_others (c, t);
  if (td__meet (c->comm, &mine, NULL) != TD_OK
      || td__bcast_bytes (c->comm, &others, sizeof others, NULL) != TD_OK)
    return;
  newest = newest_of_all (c, t, others.iteration);
  if (newest < 0 && others.iteration >= 0 && !c->comm->parted)
    {
      go_on_from_others (c, t, others);
      return;
    }
  if (newest >= 0)
    go_on_from_own (c, t, newest);
}

static void
checkpointer_free (void *self)
{
  free (((Checkpointer *)self)->name);
}

static const TdExtensionClass checkpointer_class = { .size = sizeof (TdExtensionClass),
                                                     .name = "MultiNodeCheckpointer",
                                                     .self_bytes = sizeof (Checkpointer),
                                                     .priority = -100,
                                                     .period = 1,
                                                     .unit = "epoch",
                                                     .call = checkpointer_call,
                                                     .free = checkpointer_free,
                                                     .load = checkpointer_load };

TdExtension *
td_multi_node_checkpointer_new_ (const char *name, TdComm *comm, TdCheckpointerOpt o)
{
  TdExtension *x;
  Checkpointer *c;

  if (!td__comm_usable (comm, "td_multi_node_checkpointer_new", NULL))
    return td__extension_inert ();
  if (name == NULL || *name == '\0' || strchr (name, '/') != NULL || strlen (name) > 200
      || o.n_retains < 0)
    {
      td__fail (
          TD_ERR_ARG, "td_multi_node_checkpointer_new", NULL,
          "a name for its files, which lie in the trainer's folder, and n_retains of 0 or "
          "more expected");
      return td__extension_inert ();
    }
  x = td_extension_new (&checkpointer_class);
  c = x->self;
  c->comm = comm;
  c->name = td__xstrdup (name);
  c->o = o;
  return x;
}
