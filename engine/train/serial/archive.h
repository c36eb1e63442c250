/* What files of values have in common: lists of values that are written, sources that are read.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "serializer.h"

#include <stdio.h>

typedef struct TdMember
{
  char *key;
  TdRecord value;
} TdMember;

struct TdArchive
{
  TdMember *entries;
  int n;
};

/** Append a copy of a value.  False: *why. */
bool td__archive_add (TdArchive *archive, const char *key, const TdRecord *value,
                      const char **why);

/** A file that values are read from by key. */
typedef struct TdArchiveSource TdArchiveSource;
struct TdArchiveSource
{
  bool (*has) (const TdArchiveSource *source, const char *key);
  /** *Owner*: the caller, free (value->data).  False: *why. */
  bool (*read) (const TdArchiveSource *source, const char *key, TdRecord *value,
                const char **why);
  /** Key i, in the order of the file, in room; false behind the last. */
  bool (*key) (const TdArchiveSource *source, int i, char *room, size_t size);
  void (*close) (TdArchiveSource *source);
};

/** What is wrong, where several say it. */
extern const char td__no_such_array[], td__pytorch_pickle[];

/** Open a file.  NULL: *why. */
TdArchiveSource *td__archive_open (const char *path, TdFileFormat format, const char **why);
TdArchiveSource *td__npz_source (const char *path, const char **why);
TdArchiveSource *td__safetensors_source (const char *path, const char **why);

/** Write all values to an open file.  False: why, of size bytes. */
bool td__npz_write (const TdArchive *archive, FILE *file, bool compress, char *why,
                    size_t size);
bool td__safetensors_write (const TdArchive *archive, FILE *file, char *why, size_t size);

TdStatus td__load_source (const TdArchiveSource *source, const char *path,
                          TdSerializeFn serialize, void *object, const TdLoadRule *rule,
                          const char *call, const TdSite *site);
