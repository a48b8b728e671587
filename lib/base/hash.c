/* hash.c - SHA-256; see hash.h.
 *
 * libcrypto uses the processor's SHA instructions when there are any: hashing 16 GB of weights then
 * costs seconds. Its older interface is used, for its newer one keeps the chaining value to itself.
 */
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
    struct hash *h = mem_alloc(sizeof *h);
    SHA256_Init(&h->ctx);
    return h;
}

struct hash *hash_copy(const struct hash *h)
{
    struct hash *copy = mem_alloc(sizeof *copy);
    *copy = *h;
    return copy;
}

void hash_add(struct hash *h, const void *bytes, size_t n)
{
    SHA256_Update(&h->ctx, bytes, n);
}

static const char digits[] = "0123456789abcdef";

void hash_hex(const struct hash *h, char hex[65])
{
    unsigned char digest[SHA256_DIGEST_LENGTH];
    struct hash copy = *h;
    SHA256_Final(digest, &copy.ctx);
    for (size_t i = 0; i < sizeof digest; i++) {
        *hex++ = digits[digest[i] >> 4];
        *hex++ = digits[digest[i] & 15];
    }
    *hex = 0;
}

void hash_free(struct hash *h)
{
    free(h);
}

/* ---- where it stands ---- */

int64_t hash_bytes_added(const struct hash *h)
{
    return (int64_t)(((uint64_t)h->ctx.Nh << 32 | h->ctx.Nl) / 8);
}

void hash_state(const struct hash *h, char hex[65])
{
    for (int i = 0; i < 64; i++)
        hex[i] = digits[h->ctx.h[i / 8] >> (28 - 4 * (i % 8)) & 15];
    hex[64] = 0;
}

struct hash *hash_resume(const char *hex, int64_t added)
{
    if (strspn(hex, digits) != 64 || hex[64])
        return NULL;
    struct hash *h = hash_new();
    for (int i = 0; i < 64; i++) {
        const unsigned digit = (unsigned)(strchr(digits, hex[i]) - digits);
        h->ctx.h[i / 8] = h->ctx.h[i / 8] << 4 | digit;
    }
    h->ctx.Nl = (SHA_LONG)((uint64_t)added << 3);
    h->ctx.Nh = (SHA_LONG)((uint64_t)added >> 29);
    return h;
}

/* ---- files and memory ---- */

int hash_file(const char *path, char hex[65], struct err *e)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return err_set(e, err_reason(EXIT_NO_INPUT), "%s: %s", path, strerror(errno));
    struct hash *h = hash_new();
    enum { CHUNK = 1 << 20 };
    char *chunk = mem_alloc(CHUNK);
    size_t n;
    while ((n = fread(chunk, 1, CHUNK, f)) > 0)
        hash_add(h, chunk, n);
    int bad = ferror(f), why = errno;
    fclose(f);
    free(chunk);
    hash_hex(h, hex);
    hash_free(h);
    return bad ? err_set(e, why == EISDIR ? EXIT_NO_INPUT : EXIT_IO, "%s: read error: %s", path,
                         strerror(why))
               : 0;
}

void hash_bytes(const void *bytes, size_t n, char hex[65])
{
    struct hash *h = hash_new();
    hash_add(h, bytes, n);
    hash_hex(h, hex);
    hash_free(h);
}
