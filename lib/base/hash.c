/* hash.c - SHA-256; see hash.h.
 *
 * libcrypto's EVP interface uses the processor's SHA instructions when there are any: hashing 16 GB
 * of weights then costs seconds. Reading out a hash works on a copy, so the running one goes on.
 */
#include "lib/base/hash.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

struct hash {
    EVP_MD_CTX *ctx;
};

static void must(int ok)
{
    if (!ok)
        err_machine(__FILE__, __LINE__, "libcrypto refused SHA-256");
}

struct hash *hash_new(void)
{
    struct hash *h = mem_alloc(sizeof *h);
    h->ctx = EVP_MD_CTX_new();
    must(h->ctx && EVP_DigestInit_ex(h->ctx, EVP_sha256(), NULL));
    return h;
}

struct hash *hash_copy(const struct hash *h)
{
    struct hash *copy = hash_new();
    must(EVP_MD_CTX_copy_ex(copy->ctx, h->ctx));
    return copy;
}

void hash_add(struct hash *h, const void *bytes, size_t n)
{
    must(EVP_DigestUpdate(h->ctx, bytes, n));
}

void hash_hex(const struct hash *h, char hex[65])
{
    unsigned char digest[32];
    EVP_MD_CTX *copy = EVP_MD_CTX_new();
    must(copy && EVP_MD_CTX_copy_ex(copy, h->ctx) && EVP_DigestFinal_ex(copy, digest, NULL));
    EVP_MD_CTX_free(copy);
    for (int i = 0; i < 32; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}

void hash_free(struct hash *h)
{
    if (h)
        EVP_MD_CTX_free(h->ctx);
    free(h);
}

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
