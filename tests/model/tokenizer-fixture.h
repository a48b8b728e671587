/* tokenizer-fixture.h - makes small tokenizer.json files for tests: 256 bytes, then the pieces that
 * the merges make, then the tokens that a test adds. */
#pragma once

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/text/tokenizer/alphabet.h"
#include "lib/text/tokenizer-parts.h"
#include "lib/text/tokenizer.h"
#include "lib/text/utf8.h"
#include "tests/tap.h"

#define LLAMA3                                                                                  \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|"                   \
    " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define LLADA                                                                                   \
    "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}|"                              \
    " ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"

static char fixture_folder[] = P_tmpdir "/test-tokenizer-XXXXXX";

static inline void fixture_start(void)
{
    if (!mkdtemp(fixture_folder))
        exit(EXIT_FAILURE);
}

static inline void fixture_end(void)
{
    char *path = mem_format("%s/tokenizer.json", fixture_folder);
    unlink(path);
    rmdir(fixture_folder);
    free(path);
}

/* Makes the model part. n: number of merges; merges[i] is "left right" in the file's spelling. */
static inline json_t *fixture_model(const char *const *merges, size_t n, int as_pairs, int ignore)
{
    json_t *vocab = json_object(), *list = json_array();
    struct buf b = {0};
    for (uint32_t code = 0; code < 324; code++)
        if (alphabet_byte(code) >= 0) {
            buf_clear(&b);
            utf8_put(&b, code);
            json_object_set_new(vocab, b.data, json_integer((json_int_t)json_object_size(vocab)));
        }
    for (size_t i = 0; i < n; i++) {
        const char *space = strchr(merges[i], ' ');
        json_t *left = json_stringn(merges[i], (size_t)(space - merges[i]));
        json_t *both = json_sprintf("%s%s", json_string_value(left), space + 1);
        if (!json_object_get(vocab, json_string_value(both)))
            json_object_set_new(vocab, json_string_value(both),
                                json_integer((json_int_t)json_object_size(vocab)));
        json_array_append_new(list, as_pairs ? json_pack("[O,s]", left, space + 1)
                                             : json_string(merges[i]));
        json_decref(left);
        json_decref(both);
    }
    buf_free(&b);
    return json_pack("{s:s,s:b,s:o,s:o}", "type", "BPE", "ignore_merges", ignore, "vocab", vocab,
                     "merges", list);
}

static inline json_t *fixture_byte_level(int prefix, int pattern)
{
    return json_pack("{s:s,s:b,s:b,s:b}", "type", "ByteLevel", "add_prefix_space", prefix,
                     "trim_offsets", 1, "use_regex", pattern);
}

/* Makes a whole file; takes over `model`. pattern NULL: ByteLevel alone, with GPT-2's pattern. */
static inline json_t *fixture_file(json_t *model, const char *pattern, int nfc)
{
    json_t *pre = fixture_byte_level(0, 1);
    if (pattern) {
        json_decref(pre);
        json_t *split = json_pack("{s:s,s:{s:s},s:s,s:b}", "type", "Split", "pattern", "Regex",
                                  pattern, "behavior", "Isolated", "invert", 0);
        pre = json_pack("{s:s,s:[o,o]}", "type", "Sequence", "pretokenizers", split,
                        fixture_byte_level(0, 0));
    }
    return json_pack("{s:[],s:o,s:o,s:n,s:o,s:o}", "added_tokens", "normalizer",
                     nfc ? json_pack("{s:s}", "type", "NFC") : json_null(), "pre_tokenizer", pre,
                     "post_processor", "decoder", fixture_byte_level(0, 1), "model", model);
}

/* Adds a token. flags: letters s special, n normalized, w single_word, l lstrip, r rstrip. */
static inline void fixture_added(json_t *file, int id, const char *content, const char *flags)
{
    json_array_append_new(
        json_object_get(file, "added_tokens"),
        json_pack("{s:i,s:s,s:b,s:b,s:b,s:b,s:b}", "id", id, "content", content, "special",
                  strchr(flags, 's') != NULL, "normalized", strchr(flags, 'n') != NULL,
                  "single_word", strchr(flags, 'w') != NULL, "lstrip", strchr(flags, 'l') != NULL,
                  "rstrip", strchr(flags, 'r') != NULL));
}

/* Writes the text to a file and loads the file. */
static inline struct tokenizer *fixture_load_text(const char *text, size_t n, struct err *e)
{
    char *path = mem_format("%s/tokenizer.json", fixture_folder);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(text, 1, n, f) != n || fclose(f))
        exit(EXIT_FAILURE);
    free(path);
    return tokenizer_load(fixture_folder, e);
}

/* Writes and loads a file; takes over `file`. A test that expects success passes e = NULL. */
static inline struct tokenizer *fixture_load(json_t *file, struct err *e)
{
    struct err mine = {0};
    char *text = json_dumps(file, JSON_INDENT(1));
    struct tokenizer *t = fixture_load_text(text, strlen(text), e ? e : &mine);
    if (!t && !e) {
        printf("Bail out! %s\n", mine.text);
        exit(EXIT_FAILURE);
    }
    free(text);
    json_decref(file);
    return t;
}

/* Collects words with bars between them. ctx: struct buf. */
static inline int fixture_bar(void *ctx, const char *s, size_t n, struct err *e)
{
    struct buf *b = ctx;
    (void)e;
    if (b->len)
        buf_char(b, '|');
    buf_put(b, s, n);
    return 0;
}

/* Tests that the ids of a text equal the list (ended by -1). Prints the difference. */
static inline int fixture_ids(const struct tokenizer *t, const char *text, int flags,
                              const int *want)
{
    struct ids got = {0};
    struct err e = {0};
    int bad = tokenizer_encode(t, text, strlen(text), flags, &got, &e);
    size_t n = 0;
    while (want[n] >= 0)
        n++;
    bad |= got.n != n;
    for (size_t i = 0; !bad && i < n; i++)
        bad = got.v[i] != want[i];
    if (bad) {
        printf("# \"%s\" %s:", text, e.text);
        for (size_t i = 0; i < got.n; i++)
            printf(" %d", (int)got.v[i]);
        puts("");
    }
    ids_free(&got);
    return !bad;
}
#define IDS(...) ((const int[]){__VA_ARGS__, -1})
