/* hash.h - SHA-256 of streams and files (libcrypto does the work). */
#pragma once

#include <stddef.h>

#include "lib/base/err.h"

struct hash; /* a running SHA-256 */

struct hash *hash_new(void);
void hash_add(struct hash *hash, const void *bytes, size_t n);
/* Writes the hash of all bytes added so far: 64 hex digits and a NUL. More bytes may be added
 * afterwards. */
void hash_hex(const struct hash *hash, char hex[65]);
void hash_free(struct hash *hash);

/* Writes the SHA-256 of a whole file. Returns -1: EXIT_NO_INPUT if the file cannot be opened,
 * EXIT_IO on a read error. */
int hash_file(const char *path, char hex[65], struct err *e);
/* SHA-256 of bytes in memory. */
void hash_bytes(const void *bytes, size_t n, char hex[65]);
