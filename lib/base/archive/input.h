/* input.h - a readable FILE for every form of a data set: plain, .gz, .bz2, .xz, .zst, or one
 * member of a .zip, .tar, .tar.gz...
 *
 * The first bytes of a file tell its form, and at most one unpacker is added. The automatic mode of
 * libarchive is not used, because it unpacks nested gzip without limit. No file is extracted by
 * name. zlib checks the CRC of gzip data; libarchive checks the CRC of a zip member. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "lib/base/err.h"

struct input; /* owns the FILE */

/* Opens a path; "-" is standard input. `member` is a glob for the wanted member of an archive; NULL
 * means the only regular file in it. `max_bytes` limits the bytes that can be read. 0 means 8 GiB
 * for packed data, and no limit for a plain file. Returns NULL with *e filled: EXIT_NO_INPUT if the
 * file cannot be opened; EXIT_BAD_DATA if its form is not supported, if its data are broken, or if
 * the member is absent, ambiguous, encrypted or not a regular file. For parquet, Arrow and UTF-16
 * the message has a command that converts the file. */
struct input *input_open(const char *path, const char *member, int64_t max_bytes, struct err *e);
FILE *input_file(struct input *in);
/* Reads at most n bytes, like read(2), for callers that do not use the FILE. Returns 0 at the end,
 * and -1 if the data are broken or exceed the limit. */
ssize_t input_read(struct input *in, char *to, size_t n);
int input_failed(const struct input *in); /* 1: a read failed; input_check says why */
/* Call after the end of the data. Returns -1 if they were cut, broken or larger than the limit, or
 * if the file changed while it was read. */
int input_check(const struct input *in, struct err *e);
/* Call after the end of the data. Returns a warning about a harmless oddity, or NULL; borrowed. */
const char *input_note(const struct input *in);
const char *input_name(const struct input *in); /* path, or path:member; borrowed */
void input_close(struct input *in);
