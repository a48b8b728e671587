/* input.h - a readable FILE for every form of a data set: plain, .gz, .bz2, .xz, .zst, or one
 * member of a .zip, .tar, .tar.gz...
 *
 * The first bytes decide, and exactly one filter is added: libarchive's automatic mode unpacks
 * nested gzip without limit. No file is extracted by name. zlib checks the CRC of gzip data,
 * libarchive that of a zip member. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "lib/base/err.h"

struct input; /* owns the FILE */

/* path "-" is standard input. `member`: glob of the wanted archive member, NULL: the only regular
 * file. `max_bytes`: cap on unpacked bytes (0: 8 GiB). NULL with *e: 66 missing; 65 not readable,
 * or the member is absent, ambiguous, encrypted or no regular file. For parquet, Arrow and UTF-16
 * the message has a command that converts them. */
struct input *input_open(const char *path, const char *member, int64_t max_bytes, struct err *e);
FILE *input_file(struct input *in);
/* As read(2), for callers that do not use the FILE: at most n bytes, 0 at the end; -1: broken. */
ssize_t input_read(struct input *in, char *to, size_t n);
int input_failed(const struct input *in); /* 1: a read failed; input_check says why */
/* Call it after the end. -1: the data were cut, broken, or larger than the cap. */
int input_check(const struct input *in, struct err *e);
/* A warning about harmless oddities, after the end; borrowed; NULL: none. */
const char *input_note(const struct input *in);
const char *input_name(const struct input *in); /* path, or path:member; borrowed */
void input_close(struct input *in);
