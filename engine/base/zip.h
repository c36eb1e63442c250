/* The part of zip that npz needs: members stored or deflated, below 4 GiB.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* --- reading: nothing is believed before it is checked against the file's size --- */
typedef struct
{
  char *name;
  uint32_t crc;
  uint16_t method;
  uint64_t packed_bytes, bytes, header_offset;
} TdZipMember;
typedef struct
{
  int fd;
  uint64_t file_bytes;
  TdZipMember *members;
  int n_members;
} TdZip;

/** Open a zip file and read its directory.  NULL: *why. */
TdZip *td__zip_open (const char *path, const char **why);
void td__zip_close (TdZip *zip);
const TdZipMember *td__zip_find (const TdZip *zip, const char *name);
/** Read and unpack a member.  *Owner*: the caller, free ().  NULL: *why. */
void *td__zip_read (const TdZip *zip, const TdZipMember *member, const char **why);

/* --- writing --- */
typedef struct
{
  FILE *file;
  uint64_t bytes; /**< written so far: a pipe cannot be asked */
  TdZipMember *members;
  int n_members;
} TdZipWriter;

/** Append a member, deflated if asked and zlib is there.  False: *why. */
bool td__zip_add (TdZipWriter *writer, const char *name, const void *data, size_t bytes,
                  bool compress, const char **why);
/** Write the directory; the file stays open.  False: *why. */
bool td__zip_finish (TdZipWriter *writer, const char **why);
void td__zip_writer_clear (TdZipWriter *writer);
