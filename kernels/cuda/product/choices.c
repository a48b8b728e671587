/* choices.c - the fastest algorithm of the library for each shape, in memory and in a file. The
 * table is short and searched linearly. A file is read as a whole and used only if all of it is
 * valid: with half of a file two processes could choose differently, and their results would differ
 * in bits. */
#include "kernels/cuda/product/choices.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/file.h"
#include "lib/base/hash64.h"
#include "lib/base/mem.h"
#include "lib/base/out.h"

enum { FILE_MOST = 1 << 20 };

char *choices_path(const char *device, size_t version)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char *folder = cache && *cache == '/' ? mem_format("%s/crossover", cache)
                   : home && *home == '/' ? mem_format("%s/.cache/crossover", home)
                                          : NULL;
    struct err e = {0};
    char *path = NULL;
    if (folder && !file_make_folder(folder, &e)) {
        path = mem_format("%s/gemm-%s-%zu.tsv", folder, device, version);
        for (char *p = path + strlen(folder) + 1; *p; p++)
            *p = *p == ' ' || *p == '/' ? '_' : *p;
    }
    free(folder);
    return path;
}

struct gemm_choice *choices_find(const struct choices *c, const uint64_t key[CHOICE_KEY])
{
    for (size_t i = 0; i < c->n; i++)
        if (!memcmp(c->at[i].key, key, sizeof c->at[i].key))
            return &c->at[i];
    return NULL;
}

struct gemm_choice *choices_add(struct choices *c, const uint64_t key[CHOICE_KEY])
{
    if (c->n == c->room) {
        c->room = c->room ? 2 * c->room : 16;
        c->at = mem_resize(c->at, c->room, sizeof *c->at);
    }
    struct gemm_choice *new = &c->at[c->n++];
    memset(new, 0, sizeof *new);
    memcpy(new->key, key, sizeof new->key);
    return new;
}

uint64_t choices_hash(const struct gemm_choice *c)
{
    const uint64_t h = hash64_fnv(HASH64_FNV, c->key, sizeof c->key);
    return hash64_fnv(h, c->algo, sizeof c->algo);
}

void choices_free(struct choices *c)
{
    free(c->at);
    memset(c, 0, sizeof *c);
}

/* Reads one number and the character behind it. -1: the text is different. */
static int number(const char **at, int base, char behind, uint64_t *value)
{
    static const char digits[] = "0123456789abcdef";
    const char *p = *at, *digit;
    uint64_t v = 0, most = UINT64_MAX / (uint64_t)base;
    for (; *p && (digit = strchr(digits, *p)) && digit - digits < base; p++) {
        if (v > most)
            return -1;
        v = v * (uint64_t)base + (uint64_t)(digit - digits);
    }
    if (p == *at || *p != behind)
        return -1;
    *at = p + 1;
    *value = v;
    return 0;
}

static int line(const char **at, struct gemm_choice *c)
{
    for (int i = 0; i < CHOICE_KEY; i++)
        if (number(at, 10, '\t', &c->key[i]))
            return -1;
    for (int i = 0; i < CHOICE_WORDS; i++)
        if (number(at, 16, i + 1 < CHOICE_WORDS ? '\t' : '\n', &c->algo[i]))
            return -1;
    return 0;
}

static int lines(struct choices *c, const char *text)
{
    while (*text) {
        struct gemm_choice read;
        if (line(&text, &read))
            return -1;
        if (!choices_find(c, read.key))
            memcpy(choices_add(c, read.key)->algo, read.algo, sizeof read.algo);
    }
    return 0;
}

int choices_read(struct choices *c, const char *path, const char *library, struct err *e)
{
    struct buf text = {0};
    size_t before = c->n, n = strlen(library);
    if (!file_exists(path))
        return 0;
    int bad = file_read(path, FILE_MOST, &text, e);
    if (!bad && (!text.data || strlen(text.data) != text.len || strncmp(text.data, library, n) ||
                 text.data[n] != '\n' || lines(c, text.data + n + 1))) {
        c->n = before;
        bad = err_set(e, EXIT_BAD_DATA, "%s: expected choices of algorithms for %s without "
                      "broken lines; delete the file to choose again", path, library);
    }
    buf_free(&text);
    return bad;
}

void choices_write(const struct choices *c, const char *path, const char *library)
{
    struct out out;
    struct err e = {0};
    if (out_open(&out, path, &e))
        return;
    fprintf(out.f, "%s\n", library);
    for (size_t i = 0; i < c->n; i++) {
        const struct gemm_choice *one = &c->at[i];
        if (one->state != 0 && one->state != 2)
            continue;
        for (int k = 0; k < CHOICE_KEY; k++)
            fprintf(out.f, "%" PRIu64 "\t", one->key[k]);
        for (int k = 0; k < CHOICE_WORDS; k++)
            fprintf(out.f, "%" PRIx64 "%c", one->algo[k], k + 1 < CHOICE_WORDS ? '\t' : '\n');
    }
    out_commit(&out, &e);
}
