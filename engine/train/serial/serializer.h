/* Saving and loading from the inside.  An archive is a list of named values in host memory:
 * saving fills one from an object on the engine's thread, then any thread writes it to a file.
 * Loading reads values from a source one by one, keeps them staged, and puts them in place
 * once all are there and fit.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "compute/core/core.h"

typedef enum
{
  TD_RECORD_ARRAY,
  TD_RECORD_TEXT,
  TD_RECORD_NONE
} TdRecordKind;

/** A named value; data is elements of dtype, or the text with its final 0. */
typedef struct TdRecord
{
  TdRecordKind kind;
  TdDtype dtype;
  TdShape shape;
  void *data;
  size_t bytes;
} TdRecord;

typedef enum
{
  TD_FILE_NPZ,
  TD_FILE_SAFETENSORS
} TdFileFormat;

typedef struct TdArchive TdArchive;

/** Save an object to memory.  *Owner*: the caller, td__archive_free.  NULL after td__fail in
 * the name of `call`. */
TdArchive *td__archive_new (TdSerializeFn serialize, void *object, const char *call,
                            const TdSite *site);
/** Write an archive to a file, which is replaced only when the new one is whole.  Touches
 * nothing of the engine: any thread.  False: *why is "key: what is wrong", of `size` bytes. */
bool td__archive_write (const TdArchive *archive, const char *path, TdFileFormat format,
                        bool compress, char *why, size_t size);
void td__archive_free (TdArchive *archive);

/** How a file is read. */
typedef struct TdLoadRule
{
  const char *prefix;       /**< in front of every key; NULL: none */
  const char *ignore_names; /**< keys that are left out, separated by commas; NULL: none */
  bool lenient;             /**< a missing key keeps the field as it is */
  bool partial;             /**< an array of another shape does so too */
} TdLoadRule;

/** Save an object to a file: the two steps in one. */
TdStatus td__save_object (const char *path, TdFileFormat format, bool compress,
                          TdSerializeFn serialize, void *object, const char *call,
                          const TdSite *site);
/** Load an object from a file: nothing is changed unless all of it can be.  rule may be NULL.
 * *Errors*: TD_ERR_IO, TD_ERR_SHAPE naming file and key. */
TdStatus td__load_object (const char *path, TdFileFormat format, TdSerializeFn serialize,
                          void *object, const TdLoadRule *rule, const char *call,
                          const TdSite *site);

/* What objects serialize with when the td_serialize_ functions are not enough. */
/** Read a value now.  *Owner*: the caller, free (value->data).  False: saving, left out,
 * missing or failed. */
bool td__serializer_read (TdSerializer *s, const char *key, TdRecord *value);
/** Read an array now, as dtype and of the shape (NULL: any); false for None too, which leaves
 * things as they are. */
bool td__serializer_read_array (TdSerializer *s, const char *key, TdDtype dtype,
                                const TdShape *shape, TdRecord *value);
/** Append a value, which is copied.  Loading ignores it. */
void td__serializer_write (TdSerializer *s, const char *key, const TdRecord *value);
/** Keep what was read until all is there: then apply, else drop only; drop is called after
 * apply too. */
void td__serializer_stage (TdSerializer *s, TdStatus (*apply) (void *staged),
                           void (*drop) (void *staged), void *staged);
/** Read on as files were written until format 0.1's optimizers had Chainer's keys: leaving a
 * level took one component off the prefix, so that levels of several ("l1/W") left some behind.
 * `left` is what they have left behind so far. */
void td__serializer_old_levels (TdSerializer *s, const char *left);
/** The site and the name of the call that saves or loads, for messages. */
const TdSite *td__serializer_site (const TdSerializer *s);
/** Fail in the name of the file and key. */
void td__serializer_fail (TdSerializer *s, TdStatus status, const char *key, const char *why);
bool td__serializer_failed (const TdSerializer *s);
/** False after td__fail: NULL. */
bool td__serializer_there (const TdSerializer *s, const char *call);

/** Objects of the engine as TdSerializeFn. */
void td__link_serialize (void *link, TdSerializer *s);
void td__opt_serialize (void *opt, TdSerializer *s);
