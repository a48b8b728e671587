/* pretokenize.c - text cut into words by the patterns of the file; see pretokenize.h.
 *
 * PCRE2 with its just-in-time compiler matches; where that is not to be had, or its stack does not
 * suffice, its interpreter does, with the same result. The patterns were written for Oniguruma, so
 * what means something else there is rewritten (\s has no U+180E, ^ and $ work on lines) or refused
 * (sets inside sets, \h). Each piece is its own subject: look-ahead sees nothing beyond it.
 */
#include "lib/text/pretokenize.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

#include "lib/text/utf8.h"

/* Source: tokenizer.json of https://huggingface.co/GSAI-ML/LLaDA-8B-Instruct, and the pattern of
 * https://github.com/openai/gpt-2, src/encoder.py. */
const char pretokenize_llada[] = "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}|"
                           " ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+";
const char pretokenize_gpt2[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|"
                          "\\s+(?!\\S)|\\s+";

#define SPACES "\\t-\\r\\x{85}\\p{Z}" /* Unicode White_Space */

/* One escape at p (two bytes). -1: it differs between the engines and is not rewritten. */
static int rewrite_escape(const char *p, int in_set, struct buf *out)
{
    if (p[1] == 's')
        buf_text(out, in_set ? SPACES : "[" SPACES "]");
    else if (p[1] == 'S' && !in_set)
        buf_text(out, "[^" SPACES "]");
    else if (!p[1] || strchr("hHRXKGCOy", p[1]) || (p[1] == 'S' && in_set))
        return -1;
    else
        buf_put(out, p, 2);
    return 0;
}

/* Oniguruma's meaning in PCRE2's words. -1: cannot be said. */
static int rewrite(const char *pattern, struct buf *out)
{
    int in_set = 0;
    for (const char *p = pattern; *p; p++) {
        if (*p == '\\') {
            if (rewrite_escape(p, in_set, out))
                return -1;
            p++;
        } else if (in_set && (*p == '[' || (p[0] == '&' && p[1] == '&'))) {
            return -1;
        } else {
            if (*p == '[')
                in_set = 1;
            else if (*p == ']')
                in_set = 0;
            buf_char(out, *p);
        }
    }
    return 0;
}

int pretokenize_add(struct pretokenizer *p, const char *pattern, int prefix_space,
                    const char *where, struct err *e)
{
    if (p->n == PRETOKENIZE_MAX_STEPS)
        return err_set(e, EXIT_BAD_DATA, "%s: pre_tokenizer: more than %d steps", where,
                       PRETOKENIZE_MAX_STEPS);
    struct pretokenize_step step = {.prefix_space = prefix_space};
    if (pattern) {
        struct buf b = {0};
        int code = 0;
        PCRE2_SIZE at = 0;
        pcre2_compile_context *lines = pcre2_compile_context_create(NULL);
        if (!lines)
            err_machine(__FILE__, __LINE__, "out of host memory");
        pcre2_set_newline(lines, PCRE2_NEWLINE_LF);
        if (!rewrite(pattern, &b))
            step.code = pcre2_compile((PCRE2_SPTR)(b.data ? b.data : ""), b.len,
                                      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE |
                                          PCRE2_NEVER_BACKSLASH_C,
                                      &code, &at, lines);
        pcre2_compile_context_free(lines);
        buf_free(&b);
        PCRE2_UCHAR why[128] = "means something else to PCRE2";
        if (code)
            pcre2_get_error_message(code, why, sizeof why);
        if (!step.code)
            return err_set(e, EXIT_BAD_DATA, "%s: pre_tokenizer: pattern not supported (%s): %s",
                           where, (const char *)why, pattern);
        step.jit = !pcre2_jit_compile(step.code, PCRE2_JIT_COMPLETE);
    }
    p->steps[p->n++] = step;
    return 0;
}

void pretokenize_free(struct pretokenizer *p)
{
    for (size_t i = 0; i < p->n; i++)
        pcre2_code_free(p->steps[i].code);
    p->n = 0;
}

void pretokenize_work_init(struct pretokenize_work *w, pretokenize_word *word, void *ctx)
{
    *w = (struct pretokenize_work){.word = word, .ctx = ctx};
    w->match = pcre2_match_data_create(1, NULL);
    w->limits = pcre2_match_context_create(NULL);
    if (!w->match || !w->limits)
        err_machine(__FILE__, __LINE__, "out of host memory");
    pcre2_set_match_limit(w->limits, UINT32_MAX); /* a run of spaces is as long as it is */
}

void pretokenize_work_free(struct pretokenize_work *w)
{
    pcre2_match_data_free(w->match);
    pcre2_match_context_free(w->limits);
    for (size_t i = 0; i < PRETOKENIZE_MAX_STEPS; i++)
        buf_free(&w->prefixed[i]);
}

/* Next match at or after `at`: 1 and begin, end; 0 none; -1 the engine gave up. */
static int find(const struct pretokenize_step *t, struct pretokenize_work *w, const char *s,
                size_t n, size_t at, size_t range[2], struct err *e)
{
    int r = PCRE2_ERROR_JIT_STACKLIMIT;
    if (t->jit)
        r = pcre2_jit_match(t->code, (PCRE2_SPTR)s, n, at, 0, w->match, w->limits);
    if (r == PCRE2_ERROR_JIT_STACKLIMIT)
        r = pcre2_match(t->code, (PCRE2_SPTR)s, n, at, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                        w->match, w->limits);
    if (r == PCRE2_ERROR_NOMATCH)
        return 0;
    const PCRE2_SIZE *o = pcre2_get_ovector_pointer(w->match);
    if (r < 0 || o[0] < at || o[1] < o[0])
        return err_set(e, EXIT_BAD_DATA,
                       "text of %zu bytes: the pre-tokenizer's pattern gave up at byte %zu (%d)",
                       n, at, r);
    range[0] = o[0];
    range[1] = o[1];
    return 1;
}

/* Matches and what lies between them are pieces ("Isolated"); empty ones vanish. Recursion is as
 * deep as there are steps. */
static int run(const struct pretokenizer *p, size_t step, struct pretokenize_work *w, const char *s,
               size_t n, struct err *e)
{
    if (n == 0)
        return 0;
    if (step == p->n)
        return w->word(w->ctx, s, n, e);
    const struct pretokenize_step *t = &p->steps[step];
    if (t->prefix_space && s[0] != ' ') {
        struct buf *b = &w->prefixed[step];
        buf_clear(b);
        buf_char(b, ' ');
        buf_put(b, s, n);
        s = b->data;
        n = b->len;
    }
    if (!t->code)
        return run(p, step + 1, w, s, n, e);
    size_t done = 0, at = 0, m[2] = {0, 0};
    int found = 0;
    while (at <= n && (found = find(t, w, s, n, at, m, e)) == 1) {
        if (run(p, step + 1, w, s + done, m[0] - done, e) ||
            run(p, step + 1, w, s + m[0], m[1] - m[0], e))
            return -1;
        done = at = m[1];
        if (m[0] == m[1]) /* nothing matched: step over one character */
            at += at < n ? (size_t)utf8_char(s + at, n - at) : 1;
    }
    return found < 0 ? -1 : run(p, step + 1, w, s + done, n - done, e);
}

int pretokenize_run(const struct pretokenizer *p, struct pretokenize_work *w, const char *s,
                    size_t n, struct err *e)
{
    return run(p, 0, w, s, n, e);
}
