/* tokenizer-steps.c - reads normalizer, pre-tokenizer and decoder of tokenizer.json.
 *
 * An unknown step is refused, because it could change ids; the message prints the step. */
#include <string.h>

#include "lib/text/tokenizer-load.h"
#include "lib/text/utf8.h"

static int add_normalizer(const struct tokenizer_load *load, const json_t *j)
{
    struct normalizer *normalizer = &load->t->normalizer;
    const char *prepend = tokenizer_text(json_object_get(j, "prepend"));
    const char *old = tokenizer_string_of(json_object_get(j, "pattern"));
    const char *by = tokenizer_text(json_object_get(j, "content"));
    int bad = -1;
    if (!strcmp(tokenizer_type(j), "NFC"))
        bad = normalize_add(normalizer, NORMALIZE_NFC, NULL, NULL);
    else if (!strcmp(tokenizer_type(j), "Prepend") && prepend)
        bad = normalize_add(normalizer, NORMALIZE_PREPEND, prepend, NULL);
    else if (!strcmp(tokenizer_type(j), "Replace") && old && by)
        bad = normalize_add(normalizer, NORMALIZE_REPLACE, old, by);
    return bad ? tokenizer_refuse(load, "normalizer", j) : 0;
}

int tokenizer_load_normalizer(const struct tokenizer_load *load, const json_t *j)
{
    const json_t *list = json_object_get(j, "normalizers");
    if (!j || json_is_null(j))
        return 0;
    if (strcmp(tokenizer_type(j), "Sequence") != 0)
        return add_normalizer(load, j);
    if (!json_is_array(list))
        return tokenizer_refuse(load, "normalizer", j);
    for (size_t i = 0; i < json_array_size(list); i++)
        if (add_normalizer(load, json_array_get(list, i)))
            return -1;
    return 0;
}

/* ---- pre-tokenizer ---- */

/* Reads "behavior" into *how; absent: its default. -1: the behaviour is unknown. */
static int behavior_of(const json_t *j, const char *absent, enum pretokenize_how *how)
{
    static const char *const names[] = {"Isolated", "Contiguous", "MergedWithPrevious",
                                        "MergedWithNext", "Removed"}; /* order of the enum */
    const json_t *given = json_object_get(j, "behavior");
    const char *name = given ? json_string_value(given) : absent;
    for (int i = 0; name && i < (int)(sizeof names / sizeof *names); i++)
        if (!strcmp(name, names[i])) {
            *how = (enum pretokenize_how)i;
            return 0;
        }
    return -1;
}

/* Writes a pattern that matches exactly this text. */
static void put_literal(const char *text, struct buf *to)
{
    for (size_t len; *text; text += len)
        buf_format(to, "\\x{%X}", (unsigned)utf8_read(text, &len));
}

/* Reads a Split. "invert" swaps the roles of matches and of the text between them: the text between
 * then joins the match before or after it. The code lets the match join the text on the other side
 * instead, which gives the same pieces. */
static int load_split(const struct tokenizer_load *load, const json_t *j)
{
    static const enum pretokenize_how inverted[] = {
        PRETOKENIZE_ISOLATED, PRETOKENIZE_CONTIGUOUS, PRETOKENIZE_WITH_NEXT,
        PRETOKENIZE_WITH_PREVIOUS, PRETOKENIZE_KEPT};
    const json_t *pattern = json_object_get(j, "pattern");
    const char *literal = tokenizer_string_of(pattern);
    struct buf text = {0};
    struct pretokenize_rule rule = {.pattern = tokenizer_text(json_object_get(pattern, "Regex"))};
    if ((!rule.pattern && !literal) || behavior_of(j, "", &rule.how))
        return tokenizer_refuse(load, "pre_tokenizer", j);
    if (tokenizer_has(j, "invert"))
        rule.how = inverted[rule.how];
    if (literal)
        put_literal(literal, &text);
    rule.pattern = literal ? text.data : rule.pattern;
    int bad = pretokenize_add(&load->t->split, rule, load->path, load->e);
    buf_free(&text);
    return bad;
}

/* Reads a ByteLevel step. last 1: no later step reads the byte alphabet. */
static int load_byte_level(const struct tokenizer_load *load, const json_t *j, int last)
{
    int prefix = !json_object_get(j, "add_prefix_space") || tokenizer_has(j, "add_prefix_space");
    int pattern = !json_object_get(j, "use_regex") || tokenizer_has(j, "use_regex");
    if (!prefix && !pattern && last)
        return 0;
    struct pretokenize_rule rule = {.prefix_space = prefix, .as_bytes = !last};
    rule.pattern = pattern ? pretokenize_gpt2 : NULL;
    return pretokenize_add(&load->t->split, rule, load->path, load->e);
}

static int load_step(const struct tokenizer_load *load, const json_t *j, int last,
                     int *n_byte_levels)
{
    struct pretokenize_rule rule = {.pattern = NULL};
    if (!strcmp(tokenizer_type(j), "Split"))
        return load_split(load, j);
    if (!strcmp(tokenizer_type(j), "ByteLevel") && (*n_byte_levels)++ == 0)
        return load_byte_level(load, j, last);
    if (!strcmp(tokenizer_type(j), "Digits")) {
        rule.pattern = pretokenize_digit;
        rule.how = tokenizer_has(j, "individual_digits") ? PRETOKENIZE_ISOLATED
                                                         : PRETOKENIZE_CONTIGUOUS;
    } else if (!strcmp(tokenizer_type(j), "Punctuation") &&
               !behavior_of(j, "Isolated", &rule.how)) {
        rule.pattern = pretokenize_punctuation;
    } else {
        return tokenizer_refuse(load, "pre_tokenizer", j);
    }
    return pretokenize_add(&load->t->split, rule, load->path, load->e);
}

/* 1: the step uses U+2581 in place of a space. */
static int replaces_space(const json_t *j)
{
    const json_t *by = json_object_get(j, "replacement");
    return !by || (json_is_string(by) && !strcmp(json_string_value(by), TOKENIZER_SPACE));
}

/* Reads "prepend_scheme" and its older form "add_prefix_space". METASPACE_NONE: the value is
 * unknown, or the two keys disagree. */
static enum metaspace scheme_of(const json_t *j)
{
    static const char *const names[] = {"", "never", "first", "always"}; /* order of the enum */
    const json_t *prefix = json_object_get(j, "add_prefix_space");
    const json_t *given = json_object_get(j, "prepend_scheme");
    int is_off = json_is_false(prefix);
    enum metaspace scheme = given ? METASPACE_NONE : METASPACE_ALWAYS;
    for (int i = METASPACE_NEVER; i <= METASPACE_ALWAYS && json_is_string(given); i++)
        if (!strcmp(json_string_value(given), names[i]))
            scheme = (enum metaspace)i;
    if (json_is_true(prefix) && scheme == METASPACE_NEVER)
        return METASPACE_NONE;
    return scheme && is_off ? METASPACE_NEVER : scheme;
}

static int load_metaspace(const struct tokenizer_load *load, const json_t *j)
{
    load->t->metaspace = scheme_of(j);
    if (!load->by_character || !load->t->metaspace || !replaces_space(j))
        return tokenizer_refuse(load, "pre_tokenizer", j);
    if (!json_object_get(j, "split") || tokenizer_has(j, "split"))
        load->t->cuts = TOKENIZER_SPACES;
    return 0;
}

int tokenizer_has_bytes(const json_t *pre_tokenizer)
{
    const json_t *list = json_object_get(pre_tokenizer, "pretokenizers");
    int has = !strcmp(tokenizer_type(pre_tokenizer), "ByteLevel");
    for (size_t i = 0; i < json_array_size(list); i++)
        has |= !strcmp(tokenizer_type(json_array_get(list, i)), "ByteLevel");
    return has;
}

int tokenizer_load_pre_tokenizer(const struct tokenizer_load *load, const json_t *j)
{
    const json_t *list = json_object_get(j, "pretokenizers");
    int n_byte_levels = 0, is_list = !strcmp(tokenizer_type(j), "Sequence");
    size_t n = is_list ? json_array_size(list) : 1;
    if (load->by_character && (!j || json_is_null(j)))
        return 0;
    if (n == 1 && !strcmp(tokenizer_type(is_list ? json_array_get(list, 0) : j), "Metaspace"))
        return load_metaspace(load, is_list ? json_array_get(list, 0) : j);
    if (n == 0 || !j)
        return tokenizer_refuse(load, "pre_tokenizer", j);
    for (size_t i = 0; i < n; i++)
        if (load_step(load, is_list ? json_array_get(list, i) : j, i + 1 == n, &n_byte_levels))
            return -1;
    return n_byte_levels || load->by_character
               ? 0 : tokenizer_refuse(load, "pre_tokenizer without ByteLevel", j);
}

/* ---- decoder ---- */

/* Reads a decoder of SentencePiece. They must come in the order of the enum; *seen: the decoders
 * that came before. */
static int load_decoding(const struct tokenizer_load *load, const json_t *j, unsigned *seen)
{
    enum { REPLACE = 1, BYTES = 2, FUSE = 4, STRIP = 8, METASPACE = 16 };
    const char *type = tokenizer_type(j), *text;
    unsigned what = 0;
    if (!strcmp(type, "Replace") && (text = tokenizer_string_of(json_object_get(j, "pattern"))) &&
        !strcmp(text, TOKENIZER_SPACE) && (text = tokenizer_text(json_object_get(j, "content"))) &&
        !strcmp(text, " "))
        what = REPLACE;
    else if (!strcmp(type, "ByteFallback"))
        what = BYTES;
    else if (!strcmp(type, "Fuse"))
        what = FUSE;
    else if (!strcmp(type, "Strip") && *seen & FUSE && !tokenizer_has(j, "stop") &&
             (text = tokenizer_text(json_object_get(j, "content"))) && !strcmp(text, " "))
        what = STRIP;
    else if (!strcmp(type, "Metaspace") && !*seen && replaces_space(j) && scheme_of(j))
        what = METASPACE;
    if (what <= *seen) /* the decoder is unknown, comes twice, or in another order */
        return tokenizer_refuse(load, "decoder", j);
    *seen |= what;
    load->t->decoder.spaces |= what == REPLACE || what == METASPACE;
    load->t->decoder.bytes |= what == BYTES;
    if (what == STRIP)
        load->t->decoder.strip = json_integer_value(json_object_get(j, "start")) > 0;
    if (what == STRIP && json_integer_value(json_object_get(j, "start")) > 1)
        return tokenizer_refuse(load, "decoder", j);
    load->t->decoder.bare_first |= what == METASPACE && scheme_of(j) != METASPACE_NEVER;
    return 0;
}

/* The decoder must be ByteLevel (alone, or the only member of a Sequence) or a list of decoders of
 * SentencePiece. */
int tokenizer_load_decoder(const struct tokenizer_load *load, const json_t *j)
{
    const json_t *list = json_object_get(j, "decoders");
    int is_list = !strcmp(tokenizer_type(j), "Sequence");
    size_t n = is_list ? json_array_size(list) : 1;
    unsigned seen = 0;
    if (!load->by_character && n == 1 &&
        !strcmp(tokenizer_type(is_list ? json_array_get(list, 0) : j), "ByteLevel"))
        return 0;
    if (!load->by_character || n == 0)
        return tokenizer_refuse(load, "decoder", j);
    for (size_t i = 0; i < n; i++)
        if (load_decoding(load, is_list ? json_array_get(list, i) : j, &seen))
            return -1;
    return 0;
}
