/* pretokenize.c - cuts a text into words by patterns; see pretokenize.h.
 *
 * PCRE2 matches with its just-in-time compiler, or with its interpreter if the compiler is missing
 * or its stack is too small; results are the same. The patterns were written for Oniguruma.
 * Constructs that mean something else there are rewritten (\s without U+180E, ^ and $ match at
 * lines, \w includes marks) or refused (sets inside sets, \h). Look-ahead does not see beyond a
 * piece. PCRE2's tables may lack new characters. So patterns match a copy of the text, the shadow,
 * in which utf8_stand_in() replaces new characters; words are cut from the text itself. */
#include "lib/text/tokenizer/pretokenize.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

#include "lib/text/tokenizer/alphabet.h"
#include "lib/text/utf8.h"

/* Limits against a pattern that looks far ahead from every place. A match first gets NEAR bytes of
 * text and NEAR steps; if these do not decide, it is tried again with MORE times as many, and so
 * on. Steps of tries that do not decide are counted: a text may use TEXT_STEPS, plus BYTE_STEPS for
 * each byte. MATCH_KIB: memory of a match, in KiB. */
enum { NEAR = 256, MORE = 4, TEXT_STEPS = 1 << 20, BYTE_STEPS = 64, MATCH_KIB = 1 << 20 };

/* Source: tokenizer.json of https://huggingface.co/GSAI-ML/LLaDA-8B-Instruct, and the pattern of
 * https://github.com/openai/gpt-2, src/encoder.py. */
const char pretokenize_llada[] = "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}|"
                           " ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+";
const char pretokenize_gpt2[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|"
                          "\\s+(?!\\S)|\\s+";

/* Rust's char::is_numeric of Unicode 17; other patterns follow Unicode 16 (utf8-newer.c). */
const char pretokenize_digit[] = "[\\p{N}\\x{11DE0}-\\x{11DE9}\\x{16FF4}-\\x{16FF6}]";
/* ASCII punctuation, and class P of Unicode 8, the version of
 * https://crates.io/crates/unicode_categories: characters that joined class P later are excluded,
 * the two characters that left it later are included. */
const char pretokenize_punctuation[] =
    "(?![\\x{61D}\\x{9FD}-\\x{A76}\\x{C77}-\\x{C84}\\x{1B4E}\\x{1B4F}\\x{1B7D}-\\x{1B7F}"
    "\\x{2E43}-\\x{2E7F}\\x{10D6E}-\\x{10F89}\\x{113D4}-\\x{1145D}\\x{11660}-\\x{116B9}"
    "\\x{1183B}-\\x{11FFF}\\x{12FF1}\\x{12FF2}\\x{16D6D}-\\x{16FE2}\\x{1E5FF}-\\x{1E95F}])"
    "[!-/:-@\\[-`{-~\\p{P}\\x{166D}\\x{111C9}]";

#define SPACES "\\t-\\r\\x{85}\\p{Z}" /* Unicode White_Space */
#define WORDS /* Oniguruma's \w: also alphabetic symbols, and six characters of Latin-1 */    \
    "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{24B6}-\\x{24E9}\\x{1F130}-\\x{1F149}"                    \
    "\\x{1F150}-\\x{1F169}\\x{1F170}-\\x{1F189}\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}"

/* Rewrites an escape (two bytes). -1: it means something else to PCRE2 and cannot be rewritten. */
static int rewrite_escape(const char *escape, int in_set, struct buf *out)
{
    if (escape[1] == 's')
        buf_text(out, in_set ? SPACES : "[" SPACES "]");
    else if (escape[1] == 'S' && !in_set)
        buf_text(out, "[^" SPACES "]");
    else if (escape[1] == 'w')
        buf_text(out, in_set ? WORDS : "[" WORDS "]");
    else if (escape[1] == 'W' && !in_set)
        buf_text(out, "[^" WORDS "]");
    else if (!escape[1] || strchr("hHRXKGCOybB", escape[1]) || (strchr("SW", escape[1]) && in_set))
        return -1;
    else
        buf_put(out, escape, 2);
    return 0;
}

/* Rewrites a pattern of Oniguruma for PCRE2. -1: this is not possible. */
static int rewrite(const char *pattern, struct buf *out)
{
    int in_set = 0;
    for (const char *at = pattern; *at; at++) {
        if (*at == '\\') {
            if (rewrite_escape(at, in_set, out))
                return -1;
            at++;
        } else if (in_set && (*at == '[' || (at[0] == '&' && at[1] == '&'))) {
            return -1;
        } else {
            if (*at == '[')
                in_set = 1;
            else if (*at == ']')
                in_set = 0;
            buf_char(out, *at);
        }
    }
    return 0;
}

int pretokenize_add(struct pretokenizer *pretokenizer, struct pretokenize_rule rule,
                    const char *where, struct err *e)
{
    if (pretokenizer->n == PRETOKENIZE_MAX_STEPS)
        return err_set(e, EXIT_BAD_DATA, "%s: pre_tokenizer: more than %d steps", where,
                       PRETOKENIZE_MAX_STEPS);
    struct pretokenize_step step = {.rule = rule};
    if (rule.pattern) {
        struct buf text = {0};
        int code = 0;
        PCRE2_SIZE at = 0;
        pcre2_compile_context *lines = pcre2_compile_context_create(NULL);
        if (!lines)
            err_machine(__FILE__, __LINE__, "out of host memory");
        pcre2_set_newline(lines, PCRE2_NEWLINE_LF);
        if (!rewrite(rule.pattern, &text))
            step.code = pcre2_compile((PCRE2_SPTR)(text.data ? text.data : ""), text.len,
                                      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE |
                                          PCRE2_NEVER_BACKSLASH_C,
                                      &code, &at, lines);
        pcre2_compile_context_free(lines);
        buf_free(&text);
        PCRE2_UCHAR why[128] = "means something else to PCRE2";
        if (code)
            pcre2_get_error_message(code, why, sizeof why);
        if (!step.code)
            return err_set(e, EXIT_BAD_DATA, "%s: pre_tokenizer: pattern not supported (%s): %s",
                           where, (const char *)why, rule.pattern);
        step.jit = !pcre2_jit_compile(step.code, PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD);
    }
    step.rule.pattern = NULL; /* borrowed */
    pretokenizer->as_bytes |= rule.as_bytes;
    pretokenizer->steps[pretokenizer->n++] = step;
    return 0;
}

void pretokenize_free(struct pretokenizer *pretokenizer)
{
    for (size_t i = 0; i < pretokenizer->n; i++)
        pcre2_code_free(pretokenizer->steps[i].code);
    pretokenizer->n = 0;
}

void pretokenize_work_init(struct pretokenize_work *work, pretokenize_word *word, void *ctx)
{
    *work = (struct pretokenize_work){.word = word, .ctx = ctx, .steps_left = TEXT_STEPS};
    work->match = pcre2_match_data_create(1, NULL);
    work->limits = pcre2_match_context_create(NULL);
    if (!work->match || !work->limits)
        err_machine(__FILE__, __LINE__, "out of host memory");
    pcre2_set_heap_limit(work->limits, MATCH_KIB);
}

void pretokenize_work_free(struct pretokenize_work *work)
{
    pcre2_match_data_free(work->match);
    pcre2_match_context_free(work->limits);
    for (size_t i = 0; i < PRETOKENIZE_MAX_STEPS; i++)
        buf_free(&work->text[i]);
    buf_free(&work->shadow);
    buf_free(&work->bytes);
}

/* Runs PCRE2 for a match at or after `at` in text[0..n-1], with at most `steps` steps. Returns the
 * result of PCRE2. partial 1: the result is PCRE2_ERROR_PARTIAL if the match needs text after n. */
static int match(const struct pretokenize_step *step, struct pretokenize_work *work,
                 const char *text, size_t n, size_t at, size_t steps, int partial)
{
    uint32_t options = partial ? PCRE2_PARTIAL_HARD : 0;
    int r = PCRE2_ERROR_JIT_STACKLIMIT;
    pcre2_set_match_limit(work->limits, steps < UINT32_MAX ? (uint32_t)steps : UINT32_MAX);
    if (step->jit)
        r = pcre2_jit_match(step->code, (PCRE2_SPTR)text, n, at, options, work->match,
                            work->limits);
    if (r == PCRE2_ERROR_JIT_STACKLIMIT)
        r = pcre2_match(step->code, (PCRE2_SPTR)text, n, at,
                        options | PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, work->match, work->limits);
    return r;
}

/* Finds the next match at or after `at`. Returns 1: range = its begin and end; 0: there is none;
 * -1: a limit was hit. */
static int find(const struct pretokenize_step *step, struct pretokenize_work *work,
                const char *text, size_t n, size_t at, size_t range[2], struct err *e)
{
    for (size_t reach = NEAR;; reach *= MORE) {
        size_t end = n - at > reach ? at + reach : n;
        while (end < n && ((unsigned char)text[end] & 0xC0) == 0x80)
            end++;
        int status = match(step, work, text, end, at, reach, end < n);
        const PCRE2_SIZE *offset = pcre2_get_ovector_pointer(work->match);
        if (status == PCRE2_ERROR_NOMATCH && end == n)
            return 0;
        if (status >= 0 && offset[0] >= at && offset[1] >= offset[0]) {
            range[0] = offset[0];
            range[1] = offset[1];
            return 1;
        }
        int more = status == PCRE2_ERROR_NOMATCH || status == PCRE2_ERROR_PARTIAL ||
                   status == PCRE2_ERROR_MATCHLIMIT;
        if (!more || work->steps_left < reach)
            return err_set(e, EXIT_BAD_DATA,
                           "text of %zu bytes: the pre-tokenizer's pattern gave up at byte %zu "
                           "(%s%d)", n, at, more ? "it takes too many steps, " : "", status);
        work->steps_left -= reach;
    }
}

struct span {
    const char *s, *shadow; /* n bytes each; often the same address */
    size_t n;
};

/* A piece x while one step cuts it. The text before `done` has gone to the next step; [done, last)
 * is a run of adjacent matches (PRETOKENIZE_CONTIGUOUS) that may continue. */
struct cutting {
    const struct pretokenizer *p;
    size_t step;
    struct pretokenize_work *w;
    struct span x;
    size_t done, last;
};

static int run(const struct pretokenizer *pretokenizer, size_t step, struct pretokenize_work *work,
               struct span span, struct err *e);

/* Passes a span to the next step, or to word() after the last step. Drops empty spans. */
static int give(const struct cutting *cutting, size_t begin, size_t end, struct err *e)
{
    if (begin == end)
        return 0;
    if (cutting->step + 1 == cutting->p->n && !cutting->p->as_bytes)
        return cutting->w->word(cutting->w->ctx, cutting->x.s + begin, end - begin, e);
    const struct span span = {cutting->x.s + begin, cutting->x.shadow + begin, end - begin};
    return run(cutting->p, cutting->step + 1, cutting->w, span, e);
}

static int take_match(struct cutting *cutting, enum pretokenize_how how, const size_t span[2],
                      struct err *e)
{
    size_t done = cutting->done, last = cutting->last;
    cutting->done = cutting->last = span[1];
    switch (how) {
    case PRETOKENIZE_ISOLATED:
        return give(cutting, done, span[0], e) || give(cutting, span[0], span[1], e);
    case PRETOKENIZE_CONTIGUOUS:
        cutting->done = span[0] == last ? done : span[0];
        return span[0] > last && (give(cutting, done, last, e) || give(cutting, last, span[0], e));
    case PRETOKENIZE_WITH_PREVIOUS:
        return give(cutting, done, span[1], e);
    case PRETOKENIZE_WITH_NEXT:
        cutting->done = span[0];
        return give(cutting, done, span[0], e);
    case PRETOKENIZE_REMOVED:
        return give(cutting, done, span[0], e);
    case PRETOKENIZE_KEPT:
        break;
    }
    return give(cutting, span[0], span[1], e);
}

static int take_rest(const struct cutting *cutting, enum pretokenize_how how, struct err *e)
{
    size_t last = how == PRETOKENIZE_CONTIGUOUS ? cutting->last : cutting->done;
    if (how == PRETOKENIZE_KEPT)
        return 0;
    return give(cutting, cutting->done, last, e) || give(cutting, last, cutting->x.n, e);
}

static struct span add_space(struct buf *text, struct span span)
{
    buf_clear(text);
    buf_char(text, ' ');
    buf_put(text, span.s, span.n);
    buf_char(text, ' ');
    buf_put(text, span.shadow, span.n);
    return (struct span){text->data, text->data + span.n + 1, span.n + 1};
}

static struct span in_alphabet(struct buf *text, struct span span)
{
    buf_clear(text);
    alphabet_piece(span.s, span.n, text);
    return (struct span){text->data, text->data, text->len};
}

static int put_word(const struct pretokenizer *pretokenizer, struct pretokenize_work *work,
                    struct span span, struct err *e)
{
    if (!pretokenizer->as_bytes)
        return work->word(work->ctx, span.s, span.n, e);
    buf_clear(&work->bytes);
    alphabet_bytes(span.s, span.n, &work->bytes);
    return work->word(work->ctx, work->bytes.data, work->bytes.len, e);
}

/* Runs a step and all later steps on a span, which is not empty. The depth of recursion is at most
 * the number of steps. */
static int run(const struct pretokenizer *pretokenizer, size_t step, struct pretokenize_work *work,
               struct span span, struct err *e)
{
    if (step == pretokenizer->n)
        return put_word(pretokenizer, work, span, e);
    const struct pretokenize_step *pretokenize_step = &pretokenizer->steps[step];
    if (step > 0 && pretokenize_step[-1].rule.as_bytes)
        span = in_alphabet(&work->text[step], span);
    if (pretokenize_step->rule.prefix_space && span.s[0] != ' ')
        span = add_space(&work->text[step], span);
    if (!pretokenize_step->code)
        return run(pretokenizer, step + 1, work, span, e);
    struct cutting cutting = {.p = pretokenizer, .step = step, .w = work, .x = span};
    size_t at = 0, matched[2] = {0, 0}, last_end = SIZE_MAX;
    int found = 0;
    while (at <= span.n &&
           (found = find(pretokenize_step, work, span.shadow, span.n, at, matched, e)) == 1) {
        /* Oniguruma drops an empty match at the end of the match before */
        int counts = matched[0] < matched[1] || matched[0] != last_end;
        if (counts && take_match(&cutting, pretokenize_step->rule.how, matched, e))
            return -1;
        at = last_end = matched[1];
        if (matched[0] == matched[1]) /* after an empty match, go on behind the next character */
            at += at < span.n ? (size_t)utf8_char(span.s + at, span.n - at) : 1;
    }
    return found < 0 || take_rest(&cutting, pretokenize_step->rule.how, e) ? -1 : 0;
}

/* The text itself, or a copy in buffer with stand-ins. All characters with a stand-in have at least
 * three bytes (U+0800 and above), so shorter characters are skipped. */
static const char *shadow_of(const char *text, size_t n, struct buf *buffer)
{
    size_t done = 0, len;
    uint64_t eight;
    buf_clear(buffer);
    for (size_t i = 0; i < n; i += len) {
        while (i + 8 <= n && (memcpy(&eight, text + i, 8), !(eight & 0x8080808080808080u)))
            i += 8;
        len = 1;
        if (i == n || (unsigned char)text[i] < 0xE0)
            continue;
        uint32_t code = utf8_read(text + i, &len), known = utf8_stand_in(code);
        if (known == code)
            continue;
        buf_put(buffer, text + done, i - done);
        utf8_put(buffer, known);
        done = i + len;
    }
    if (done == 0)
        return text;
    buf_put(buffer, text + done, n - done);
    return buffer->data;
}

int pretokenize_run(const struct pretokenizer *pretokenizer, struct pretokenize_work *work,
                    const char *text, size_t n, struct err *e)
{
    work->steps_left += BYTE_STEPS * n;
    return n ? run(pretokenizer, 0, work, (struct span){text, shadow_of(text, n, &work->shadow), n},
                   e)
             : 0;
}
