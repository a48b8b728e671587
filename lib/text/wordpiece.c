/* wordpiece.c - see wordpiece.h.
 *
 * The vocabulary maps pieces to ids. A piece that does not begin a word has "##" in front, as in
 * the files. A word becomes one [UNK] if it has more than 100 characters or no pieces cover it. */
#include "lib/text/wordpiece.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "lib/base/buf.h"
#include "lib/base/file.h"
#include "lib/base/mem.h"
#include "lib/record/json.h"
#include "lib/text/utf8.h"

enum { FILE_LIMIT = 64 << 20, WORD_CHARACTERS = 100, ID_LIMIT = 1 << 24 };
static const char inside[] = "##"; /* in front of a piece that does not begin a word */

struct wordpiece {
    json_t *vocab; /* piece -> id */
    int lower, bare; /* 1: texts are lower-cased; 1: accents are removed */
    int32_t begin, end, unknown; /* ids of [CLS], [SEP] and [UNK] */
    size_t size;                 /* largest id + 1 */
};

/* ---- the files ---- */

static int find(const struct wordpiece *wordpiece, const char *where, const char *piece,
                int32_t *id, struct err *e)
{
    const json_t *j = json_object_get(wordpiece->vocab, piece);
    if (!j)
        return err_set(e, EXIT_BAD_DATA, "%s: expected a vocabulary with %s", where, piece);
    *id = (int32_t)json_integer_value(j);
    return 0;
}

/* Checks every id of the vocabulary and finds the special ones. */
static int check(struct wordpiece *wordpiece, const char *where, struct err *e)
{
    const char *piece;
    const json_t *id;
    json_object_foreach(wordpiece->vocab, piece, id) {
        if (!json_is_integer(id) || json_integer_value(id) < 0 ||
            json_integer_value(id) >= ID_LIMIT)
            return err_set(e, EXIT_BAD_DATA, "%s: id of \"%.60s\": expected integer from 0 to %d",
                           where, piece, ID_LIMIT - 1);
        if ((size_t)json_integer_value(id) >= wordpiece->size)
            wordpiece->size = (size_t)json_integer_value(id) + 1;
    }
    return find(wordpiece, where, "[CLS]", &wordpiece->begin, e) ||
                   find(wordpiece, where, "[SEP]", &wordpiece->end, e) ||
                   find(wordpiece, where, "[UNK]", &wordpiece->unknown, e)
               ? -1
               : 0;
}

static int is_text(const json_t *object, const char *key, const char *wanted)
{
    const char *got = json_string_value(json_object_get(object, key));
    return got && !strcmp(got, wanted);
}

/* Sets lower and bare; strip: strip_accents of the file, whose default is `lower`. */
static void set_case(struct wordpiece *wordpiece, int lower, const json_t *strip)
{
    wordpiece->lower = lower;
    wordpiece->bare = json_is_boolean(strip) ? json_is_true(strip) : lower;
}

static int read_json(struct wordpiece *wordpiece, const char *path, const json_t *j, struct err *e)
{
    const json_t *model = json_object_get(j, "model"), *n = json_object_get(j, "normalizer");
    const json_t *most = json_object_get(model, "max_input_chars_per_word");
    /* old files name no type */
    int other = json_object_get(model, "type") && !is_text(model, "type", "WordPiece");
    if (other || !is_text(n, "type", "BertNormalizer") ||
        !is_text(json_object_get(j, "pre_tokenizer"), "type", "BertPreTokenizer"))
        return err_set(e, EXIT_BAD_DATA, "%s: expected model WordPiece, normalizer BertNormalizer "
                       "and pre_tokenizer BertPreTokenizer", path);
    if (!json_is_true(json_object_get(n, "clean_text")) ||
        !json_is_true(json_object_get(n, "handle_chinese_chars")) ||
        !is_text(model, "continuing_subword_prefix", inside) ||
        !is_text(model, "unk_token", "[UNK]") ||
        (most && json_integer_value(most) != WORD_CHARACTERS))
        return err_set(e, EXIT_BAD_DATA, "%s: expected clean_text and handle_chinese_chars true, "
                       "prefix \"%s\", unk_token [UNK], words of up to %d characters", path, inside,
                       WORD_CHARACTERS);
    if (!json_is_object(json_object_get(model, "vocab")))
        return err_set(e, EXIT_BAD_DATA, "%s: model: vocab: expected an object", path);
    wordpiece->vocab = json_incref(json_object_get(model, "vocab"));
    set_case(wordpiece, json_is_true(json_object_get(n, "lowercase")),
             json_object_get(n, "strip_accents"));
    return check(wordpiece, path, e);
}

/* Reads vocab.txt: one piece a line; the id of a piece is the number of its line, from 0. */
static int read_lines(struct wordpiece *wordpiece, const char *path, struct err *e)
{
    struct buf text = {0};
    json_int_t id = 0;
    if (file_read(path, FILE_LIMIT, &text, e))
        return -1;
    wordpiece->vocab = json_object();
    int bad = utf8_valid(text.data ? text.data : "", text.len) != text.len;
    char *rest = NULL;
    for (char *line = text.data; line && *line && !bad; line = rest) {
        rest = line + strcspn(line, "\n");
        char *end = rest > line && rest[-1] == '\r' ? rest - 1 : rest;
        rest += *rest == '\n';
        *end = 0;
        bad = json_object_set_new(wordpiece->vocab, line, json_integer(id++));
    }
    buf_free(&text);
    return bad ? err_set(e, EXIT_BAD_DATA, "%s: expected UTF-8, one piece a line", path)
               : check(wordpiece, path, e);
}

static int read_folder(struct wordpiece *wordpiece, const char *folder, struct err *e)
{
    char *json = mem_format("%s/tokenizer.json", folder);
    char *lines = mem_format("%s/vocab.txt", folder);
    char *config = mem_format("%s/tokenizer_config.json", folder);
    json_t *j = NULL;
    int bad = 0;
    if (file_exists(json) || !file_exists(lines)) {
        j = json_file(json, FILE_LIMIT, e);
        bad = !j || read_json(wordpiece, json, j, e);
    } else {
        if (file_exists(config))
            bad = !(j = json_file(config, FILE_LIMIT, e));
        set_case(wordpiece, !json_is_false(json_object_get(j, "do_lower_case")),
                 json_object_get(j, "strip_accents"));
        bad = bad || read_lines(wordpiece, lines, e);
    }
    json_decref(j);
    free(json);
    free(lines);
    free(config);
    return bad ? -1 : 0;
}

struct wordpiece *wordpiece_load(const char *folder, struct err *e)
{
    struct wordpiece *wordpiece = mem_zero(1, sizeof *wordpiece);
    if (!read_folder(wordpiece, folder, e))
        return wordpiece;
    wordpiece_free(wordpiece);
    return NULL;
}

void wordpiece_free(struct wordpiece *wordpiece)
{
    if (wordpiece)
        json_decref(wordpiece->vocab);
    free(wordpiece);
}

size_t wordpiece_size(const struct wordpiece *wordpiece)
{
    return wordpiece->size;
}

/* ---- characters ---- */

static int is_punctuation(uint32_t c)
{
    if (c < 0x80)
        return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) ||
               (c >= 123 && c <= 126);
    utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
    return k >= UTF8PROC_CATEGORY_PC && k <= UTF8PROC_CATEGORY_PO;
}

/* 1: control, format, private or unassigned characters, and U+FFFD, which are removed. */
static int is_other(uint32_t c)
{
    utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
    return c == 0xFFFD || k == UTF8PROC_CATEGORY_CN ||
           (k >= UTF8PROC_CATEGORY_CC && k <= UTF8PROC_CATEGORY_CO);
}

/* 1: CJK ideographs, which are written without spaces; kana and hangul are not among them. */
static int is_chinese(uint32_t c)
{
    static const uint32_t range[][2] = {{0x4E00, 0x9FFF}, {0x3400, 0x4DBF}, {0x20000, 0x2A6DF},
                                        {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F}, {0x2B820, 0x2CEAF},
                                        {0xF900, 0xFAFF}, {0x2F800, 0x2FA1F}};
    for (size_t i = 0; i < sizeof range / sizeof *range; i++)
        if (c >= range[i][0] && c <= range[i][1])
            return 1;
    return 0;
}

/* ---- words ---- */

/* Length in bytes of the longest piece that text[0..n-1] begins with, or 0. first 1: the text
 * begins a word. */
static size_t find_longest(const struct wordpiece *wordpiece, const char *text, size_t n, int first,
                           int32_t *id)
{
    char key[4 * WORD_CHARACTERS + sizeof inside];
    size_t front = first ? 0 : sizeof inside - 1;
    memcpy(key, inside, front);
    memcpy(key + front, text, n);
    for (; n; n--) {
        key[front + n] = 0;
        const json_t *j = json_object_get(wordpiece->vocab, key);
        if (j) {
            *id = (int32_t)json_integer_value(j);
            return n;
        }
    }
    return 0;
}

static void end_word(const struct wordpiece *wordpiece, struct buf *word, struct ids *out)
{
    size_t characters = 0, before = out->n;
    for (size_t i = 0; i < word->len; i++)
        characters += (word->data[i] & 0xC0) != 0x80;
    int covered = characters <= WORD_CHARACTERS;
    for (size_t i = 0, n; covered && i < word->len; i += n) {
        int32_t id = 0;
        n = find_longest(wordpiece, word->data + i, word->len - i, !i, &id);
        covered = n > 0;
        if (covered)
            ids_push(out, id);
    }
    if (!covered) {
        out->n = before;
        ids_push(out, wordpiece->unknown);
    }
    buf_clear(word);
}

static void take_character(const struct wordpiece *wordpiece, uint32_t code, struct buf *word,
                           struct ids *out)
{
    int space = code == '\t' || code == '\n' || code == '\r' || utf8_is_space(code);
    int alone = is_punctuation(code) || is_chinese(code);
    if (!space && is_other(code))
        return;
    if (wordpiece->bare && utf8proc_category((utf8proc_int32_t)code) == UTF8PROC_CATEGORY_MN)
        return;
    if ((space || alone) && word->len)
        end_word(wordpiece, word, out);
    if (!space)
        utf8_put(word,
                 wordpiece->lower ? (uint32_t)utf8proc_tolower((utf8proc_int32_t)code) : code);
    if (alone)
        end_word(wordpiece, word, out);
}

void wordpiece_encode(const struct wordpiece *wordpiece, const char *text, struct ids *out)
{
    struct buf word = {0};
    utf8proc_uint8_t *apart = NULL;
    const utf8proc_uint8_t *bytes = (const utf8proc_uint8_t *)text;
    if (wordpiece->bare && (apart = utf8proc_NFD(bytes)))
        text = (const char *)apart;
    ids_push(out, wordpiece->begin);
    for (size_t len; *text; text += len)
        take_character(wordpiece, utf8_read(text, &len), &word, out);
    if (word.len)
        end_word(wordpiece, &word, out);
    ids_push(out, wordpiece->end);
    buf_free(&word);
    free(apart);
}
