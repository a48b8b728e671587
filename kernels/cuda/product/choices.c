/* choices.c - the table of choices.h in memory and in a file. The table is short, so it is searched
 * linearly. A file is used only if all of it is valid: with a part of a file two processes could
 * choose differently, and their results would differ in bits. */
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
        for (char *at = path + strlen(folder) + 1; *at; at++)
            *at = *at == ' ' || *at == '/' ? '_' : *at;
    }
    free(folder);
    return path;
}

struct gemm_choice *choices_find(const struct choices *choices, const uint64_t key[CHOICE_KEY])
{
    for (size_t i = 0; i < choices->n; i++)
        if (!memcmp(choices->at[i].key, key, sizeof choices->at[i].key))
            return &choices->at[i];
    return NULL;
}

struct gemm_choice *choices_add(struct choices *choices, const uint64_t key[CHOICE_KEY])
{
    if (choices->n == choices->room) {
        choices->room = choices->room ? 2 * choices->room : 16;
        choices->at = mem_resize(choices->at, choices->room, sizeof *choices->at);
    }
    struct gemm_choice *new = &choices->at[choices->n++];
    memset(new, 0, sizeof *new);
    memcpy(new->key, key, sizeof new->key);
    return new;
}

uint64_t choices_hash(const struct gemm_choice *choice)
{
    const uint64_t h = hash64_fnv(HASH64_FNV, choice->key, sizeof choice->key);
    return hash64_fnv(h, choice->algo, sizeof choice->algo);
}

void choices_free(struct choices *choices)
{
    free(choices->at);
    memset(choices, 0, sizeof *choices);
}

/* Reads a number and the character behind it. Returns -1 if the text is different. */
static int number(const char **at, int base, char behind, uint64_t *value)
{
    static const char digits[] = "0123456789abcdef";
    const char *cursor = *at, *digit;
    uint64_t number_read = 0, most = UINT64_MAX / (uint64_t)base;
    for (; *cursor && (digit = strchr(digits, *cursor)) && digit - digits < base; cursor++) {
        if (number_read > most)
            return -1;
        number_read = number_read * (uint64_t)base + (uint64_t)(digit - digits);
    }
    if (cursor == *at || *cursor != behind)
        return -1;
    *at = cursor + 1;
    *value = number_read;
    return 0;
}

static int line(const char **at, struct gemm_choice *choice)
{
    for (int i = 0; i < CHOICE_KEY; i++)
        if (number(at, 10, '\t', &choice->key[i]))
            return -1;
    for (int i = 0; i < CHOICE_WORDS; i++)
        if (number(at, 16, i + 1 < CHOICE_WORDS ? '\t' : '\n', &choice->algo[i]))
            return -1;
    return 0;
}

static int lines(struct choices *choices, const char *text)
{
    while (*text) {
        struct gemm_choice read;
        if (line(&text, &read))
            return -1;
        if (!choices_find(choices, read.key))
            memcpy(choices_add(choices, read.key)->algo, read.algo, sizeof read.algo);
    }
    return 0;
}

int choices_read(struct choices *choices, const char *path, const char *library, struct err *e)
{
    struct buf text = {0};
    size_t before = choices->n, n = strlen(library);
    if (!file_exists(path))
        return 0;
    int bad = file_read(path, FILE_MOST, &text, e);
    if (!bad && (!text.data || strlen(text.data) != text.len || strncmp(text.data, library, n) ||
                 text.data[n] != '\n' || lines(choices, text.data + n + 1))) {
        choices->n = before;
        bad = err_set(e, EXIT_BAD_DATA, "%s: expected choices of algorithms for %s without "
                      "broken lines; delete the file to choose again", path, library);
    }
    buf_free(&text);
    return bad;
}

void choices_write(const struct choices *choices, const char *path, const char *library)
{
    struct out out;
    struct err e = {0};
    if (out_open(&out, path, &e))
        return;
    fprintf(out.f, "%s\n", library);
    for (size_t i = 0; i < choices->n; i++) {
        const struct gemm_choice *one = &choices->at[i];
        if (one->state != 0 && one->state != 2)
            continue;
        for (int k = 0; k < CHOICE_KEY; k++)
            fprintf(out.f, "%" PRIu64 "\t", one->key[k]);
        for (int k = 0; k < CHOICE_WORDS; k++)
            fprintf(out.f, "%" PRIx64 "%c", one->algo[k], k + 1 < CHOICE_WORDS ? '\t' : '\n');
    }
    out_commit(&out, &e);
}
