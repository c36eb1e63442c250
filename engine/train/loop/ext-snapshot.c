/* Snapshots: the trainer's state, or a link's, in a file; written at once or by a thread.
 *
 * *Source*: chainer.training.extensions.snapshot.
 * SPDX-License-Identifier: MIT */
#include "trainer.h"
#include "host-memory.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file that is to be written; the thread that writes it sees nothing else. */
typedef struct
{
  TdArchive *archive;
  char path[4096], folder[4096], *pattern;
  int n_retains;
  bool failed;
  char why[600];
} Job;

typedef struct
{
  TdSnapshotOpt o;
  uint64_t target_id; /* 0: the trainer */
  char *pattern;
  pthread_t thread;
  bool running;
  Job job;
} Snapshot;

/* --- names --- */

/* Say whether a file name fits the pattern; number is that of its first placeholder. */
static bool
fits (const char *pattern, const char *name, long long *number)
{
  static const char *const words[]
      = { "{.updater.iteration}", "{.updater.epoch}", "{iteration}", "{epoch}" };
  bool has_number = false;

  *number = 0;
  while (*pattern != '\0')
    {
      size_t word = 0, digits;

      for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strncmp (pattern, words[i], strlen (words[i])) == 0)
          word = strlen (words[i]);
      if (word == 0)
        {
          if (*pattern++ != *name++)
            return false;
          continue;
        }
      digits = strspn (name, "0123456789");
      if (digits == 0 || digits > 18)
        return false;
      if (!has_number)
        *number = strtoll (name, NULL, 10);
      has_number = true;
      name += digits;
      pattern += word;
    }
  return *name == '\0';
}

typedef struct
{
  char *name;
  long long number;
  struct timespec time;
} Found;

static int
older_first (const void *a, const void *b)
{
  const Found *p = a, *q = b;

  if (p->number != q->number)
    return p->number < q->number ? -1 : 1;
  if (p->time.tv_sec != q->time.tv_sec)
    return p->time.tv_sec < q->time.tv_sec ? -1 : 1;
  return p->time.tv_nsec < q->time.tv_nsec ? -1 : p->time.tv_nsec > q->time.tv_nsec;
}

/* Snapshots in a folder, the oldest first.  *Owner*: the caller, found_free. */
static Found *
find_files (const char *folder, const char *pattern, int *n)
{
  DIR *dir = opendir (folder);
  Found *found = NULL;
  struct dirent *entry;

  *n = 0;
  while (dir != NULL && (entry = readdir (dir)) != NULL) /* NOLINT(concurrency-mt-unsafe) */
    {
      long long number;
      struct stat st;

      if (!fits (pattern, entry->d_name, &number)
          || fstatat (dirfd (dir), entry->d_name, &st, 0) != 0 || !S_ISREG (st.st_mode))
        continue;
      found = td__xrealloc (found, (size_t)(*n + 1) * sizeof *found);
      found[(*n)++] = (Found){ td__xstrdup (entry->d_name), number, st.st_mtim };
    }
  if (dir != NULL)
    closedir (dir);
  if (*n > 1)
    qsort (found, (size_t)*n, sizeof *found, older_first);
  return found;
}

static void
found_free (Found *found, int n)
{
  for (int i = 0; i < n; i++)
    free (found[i].name);
  free (found);
}

/* --- writing --- */

static TdFileFormat
format_of (const char *path)
{
  const char *ending = strrchr (path, '.');

  return ending != NULL && strcmp (ending, ".safetensors") == 0 ? TD_FILE_SAFETENSORS
                                                                : TD_FILE_NPZ;
}

static void
write_job (Job *job)
{
  job->failed = !td__archive_write (job->archive, job->path, format_of (job->path), true,
                                    job->why, sizeof job->why);
  td__archive_free (job->archive);
  job->archive = NULL;
  if (!job->failed && job->n_retains >= 0)
    {
      int n;
      Found *found = find_files (job->folder, job->pattern, &n);

      for (int i = 0; i < n - job->n_retains; i++)
        {
          char path[4400];

          snprintf (path, sizeof path, "%s/%s", job->folder, found[i].name);
          unlink (path);
        }
      found_free (found, n);
    }
}

static void *
writer_main (void *argument)
{
  write_job (argument);
  return NULL;
}

/* Wait for the file before, and say what was wrong with it. */
static TdStatus
finish_job (Snapshot *s)
{
  if (s->running)
    pthread_join (s->thread, NULL);
  s->running = false;
  if (!s->job.failed)
    return TD_OK;
  s->job.failed = false;
  return td__fail (TD_ERR_IO, "snapshot", NULL, "%.400s: %s", s->job.path, s->job.why);
}

static TdStatus
start_job (Snapshot *s)
{
  sigset_t all, before;

  if (s->o.writer == TD_WRITER_THREAD)
    {
      sigfillset (&all);
      pthread_sigmask (SIG_SETMASK, &all, &before);
      s->running = pthread_create (&s->thread, NULL, writer_main, &s->job) == 0;
      pthread_sigmask (SIG_SETMASK, &before, NULL);
    }
  if (s->running)
    return TD_OK;
  write_job (&s->job);
  return finish_job (s);
}

static TdStatus
take (Snapshot *s, TdTrainer *t)
{
  TdLink *link = s->target_id != 0 ? td__link_by_id (s->target_id) : NULL;
  char name[1024], *slash;
  TdStatus status = finish_job (s);

  if (status != TD_OK)
    return status;
  if (s->target_id != 0 && link == NULL)
    return td__fail (TD_ERR_STATE, "snapshot", NULL, "its link was freed");
  td__file_name (s->pattern, t->updater, name, sizeof name);
  if (!td__trainer_path (t, name, s->job.path, sizeof s->job.path, "snapshot"))
    return td__error_status ();
  memcpy (s->job.folder, s->job.path, sizeof s->job.folder);
  slash = strrchr (s->job.folder, '/');
  *slash = '\0';
  slash = strrchr (s->pattern, '/');
  s->job.pattern = slash != NULL ? slash + 1 : s->pattern;
  s->job.n_retains = s->o.n_retains;
  s->job.archive = link != NULL ? td__archive_new (td__link_serialize, link, "snapshot", NULL)
                                : td__archive_new (td__trainer_serialize, t, "snapshot", NULL);
  if (s->job.archive == NULL)
    return td__engine.has_error ? td__engine.error.status : TD_ERR_STATE;
  return start_job (s);
}

/* --- the extension --- */

static TdStatus
snapshot_call (void *self, TdTrainer *t)
{
  Snapshot *s = self;

  if (s->o.condition != NULL && !s->o.condition (s->o.self, t))
    return TD_OK;
  return take (s, t);
}

static void
snapshot_load (void *self, TdTrainer *t)
{
  Snapshot *s = self;
  TdLink *link = s->target_id != 0 ? td__link_by_id (s->target_id) : NULL;
  char path[4096];
  Found *found;
  int n;

  if (!s->o.autoload)
    return;
  found = find_files (t->out, s->pattern, &n);
  if (n > 0 && td__trainer_path (t, found[n - 1].name, path, sizeof path, "snapshot"))
    {
      if (s->target_id == 0)
        td__load_object (path, format_of (path), td__trainer_serialize, t, NULL, "snapshot",
                         NULL);
      else if (link != NULL)
        td__load_object (path, format_of (path), td__link_serialize, link, NULL, "snapshot",
                         NULL);
    }
  found_free (found, n);
}

static void
snapshot_on_error (void *self, TdTrainer *t, const TdError *error)
{
  Snapshot *s = self;

  (void)error;
  if (s->o.snapshot_on_error)
    take (s, t);
}

static void
snapshot_finalize (void *self, TdTrainer *t)
{
  (void)t;
  finish_job (self);
}

static void
snapshot_free (void *self)
{
  Snapshot *s = self;

  if (s->running)
    pthread_join (s->thread, NULL);
  free (s->pattern);
}

#define SNAPSHOT_CLASS(class_name)                                                             \
  {                                                                                            \
    .size = sizeof (TdExtensionClass), .name = class_name, .self_bytes = sizeof (Snapshot),    \
    .priority = -100, .period = 1, .unit = "epoch", .call = snapshot_call,                     \
    .on_error = snapshot_on_error, .finalize = snapshot_finalize, .free = snapshot_free,       \
    .load = snapshot_load                                                                      \
  }
static const TdExtensionClass snapshot_class = SNAPSHOT_CLASS ("snapshot");
static const TdExtensionClass snapshot_object_class = SNAPSHOT_CLASS ("snapshot_object");

static TdExtension *
snapshot_new (const TdExtensionClass *cls, TdLink *target, const char *filename,
              TdSnapshotOpt o, const char *call)
{
  const char *slash = filename != NULL ? strrchr (filename, '/') : NULL;
  TdExtension *x;
  Snapshot *s;

  if (td__check_thread (call) != TD_OK)
    return td__extension_inert ();
  if (filename == NULL || *filename == '\0' || (slash != NULL && slash[1] == '\0'))
    td__fail (TD_ERR_ARG, call, NULL, "a name for its files expected");
  else if (slash != NULL && o.autoload)
    td__fail (TD_ERR_ARG, call, NULL, "autoload looks in the trainer's folder: no / in %s",
              filename);
  else if (target == NULL || td__link_usable (target, call, NULL))
    {
      x = td_extension_new (cls);
      s = x->self;
      s->o = o;
      s->target_id = target != NULL ? target->id : 0;
      s->pattern = td__xstrdup (filename);
      return x;
    }
  return td__extension_inert ();
}

TdExtension *
td_ext_snapshot_ (TdSnapshotOpt o)
{
  return snapshot_new (&snapshot_class, o.target, o.filename, o, "td_ext_snapshot");
}

TdExtension *
td_ext_snapshot_object_ (TdLink *target, const char *filename, TdSnapshotOpt o)
{
  if (!td__link_usable (target, "td_ext_snapshot_object", NULL))
    return td__extension_inert ();
  return snapshot_new (&snapshot_object_class, target, filename, o, "td_ext_snapshot_object");
}
