/* hash.h - SHA-256 of streams and files (libcrypto does the work). */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

struct hash; /* a running SHA-256 */
enum { HASH_BLOCK = 64 }; /* bytes that it takes in at once; Source: FIPS 180-4, 6.2 */

struct hash *hash_new(void);
struct hash *hash_copy(const struct hash *h); /* goes on from there by itself */
void hash_add(struct hash *h, const void *bytes, size_t n);
/* Writes 64 hex digits and a NUL of what was added so far; more may be added afterwards. */
void hash_hex(const struct hash *h, char hex[65]);
void hash_free(struct hash *h);

/* How many bytes were added. */
int64_t hash_bytes_added(const struct hash *h);
/* The chaining value, as hash_hex writes: all that the whole blocks of these bytes amount to. */
void hash_state(const struct hash *h, char hex[65]);
/* Goes on from there: `added` bytes, whole blocks, were added to it. NULL: no 64 hex digits. */
struct hash *hash_resume(const char *hex, int64_t added);

/* SHA-256 of a whole file. -1: not readable (EXIT_NO_INPUT) or read error (EXIT_IO). */
int hash_file(const char *path, char hex[65], struct err *e);
/* SHA-256 of bytes in memory. */
void hash_bytes(const void *bytes, size_t n, char hex[65]);

#endif
