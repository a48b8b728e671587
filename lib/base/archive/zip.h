/* zip.h - whether a zip file says the same at its end and before each member. */
#ifndef BASE_ARCHIVE_ZIP_H
#define BASE_ARCHIVE_ZIP_H

#include "lib/base/err.h"

/* A zip describes each member twice, in the central directory and in a header before the data, and
 * programs differ in which of them they believe. Name, method, CRC and sizes must agree, as far as
 * both are given. fd: a seekable file, whose position stays. -1: EXIT_BAD_DATA, or EXIT_IO. */
int zip_check(int fd, const char *path, struct err *e);

#endif
