/* hash.c - SHA-256; see hash.h.
 *
 * libcrypto uses the processor's SHA instructions when there are any: hashing 16 GB of weights then
 * costs seconds. The older interface of libcrypto is used, because an assignment copies its
 * state. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "lib/base/hash.h"

#include <errno.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

struct hash {
    SHA256_CTX ctx;
};

struct hash *hash_new(void)
{
    struct hash *hash = mem_alloc(sizeof *hash);
    SHA256_Init(&hash->ctx);
    return hash;
}

void hash_add(struct hash *hash, const void *bytes, size_t n)
{
    SHA256_Update(&hash->ctx, bytes, n);
}

void hash_hex(const struct hash *hash, char hex[65])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char digest[SHA256_DIGEST_LENGTH];
    struct hash copy = *hash;
    SHA256_Final(digest, &copy.ctx);
    for (size_t i = 0; i < sizeof digest; i++) {
        *hex++ = digits[digest[i] >> 4];
        *hex++ = digits[digest[i] & 15];
    }
    *hex = 0;
}

void hash_free(struct hash *hash)
{
    free(hash);
}

/* ---- files and memory ---- */

int hash_file(const char *path, char hex[65], struct err *e)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return err_set(e, err_reason(EXIT_NO_INPUT), "%s: %s", path, strerror(errno));
    struct hash *hash = hash_new();
    enum { CHUNK = 1 << 20 };
    char *chunk = mem_alloc(CHUNK);
    size_t n;
    while ((n = fread(chunk, 1, CHUNK, file)) > 0)
        hash_add(hash, chunk, n);
    int bad = ferror(file), why = errno;
    fclose(file);
    free(chunk);
    hash_hex(hash, hex);
    hash_free(hash);
    return bad ? err_set(e, why == EISDIR ? EXIT_NO_INPUT : EXIT_IO, "%s: read error: %s", path,
                         strerror(why))
               : 0;
}

void hash_bytes(const void *bytes, size_t n, char hex[65])
{
    struct hash *hash = hash_new();
    hash_add(hash, bytes, n);
    hash_hex(hash, hex);
    hash_free(hash);
}
