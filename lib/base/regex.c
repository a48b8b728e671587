/* regex.c - see regex.h. After an empty match the next one starts at the same place and must not be
 * empty; any other match starts where the last one ended. These are the rules of Python 3.7 and
 * later. */
#include "lib/base/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>

#include "lib/base/mem.h"

struct regex {
    pcre2_code *code;
    pcre2_match_data *found;
    int gave_up;
};

struct regex *regex_new(const char *pattern, struct err *e)
{
    int wrong;
    PCRE2_SIZE at;
    PCRE2_UCHAR why[128] = "";
    pcre2_compile_context *how = pcre2_compile_context_create(NULL);
    if (!how || pcre2_set_newline(how, PCRE2_NEWLINE_LF))
        err_machine(__FILE__, __LINE__, "no memory for a pattern");
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                                     PCRE2_UTF | PCRE2_UCP, &wrong, &at, how);
    pcre2_compile_context_free(how);
    if (!code) {
        pcre2_get_error_message(wrong, why, sizeof why);
        err_set(e, EXIT_BAD_DATA, "regex '%.200s', byte %zu: %s", pattern, (size_t)at, (char *)why);
        return NULL;
    }
    struct regex *regex = mem_zero(1, sizeof *regex);
    *regex = (struct regex){code, pcre2_match_data_create_from_pattern(code, NULL), 0};
    if (!regex->found)
        err_machine(__FILE__, __LINE__, "no memory for a match");
    return regex;
}

void regex_free(struct regex *regex)
{
    if (!regex)
        return;
    pcre2_match_data_free(regex->found);
    pcre2_code_free(regex->code);
    free(regex);
}

int regex_next(struct regex *regex, const char *text, size_t n, int again, struct regex_span *whole,
               struct regex_span *group)
{
    int empty = again && whole->from == whole->to;
    /* Only the first call checks that the text is UTF-8: a check in each call would be
     * quadratic. */
    uint32_t how = (again ? PCRE2_NO_UTF_CHECK : 0) | (empty ? PCRE2_NOTEMPTY_ATSTART : 0);
    int got = pcre2_match(regex->code, (PCRE2_SPTR)text, n, whole->to, how, regex->found, NULL);
    regex->gave_up = got < 1 && got != PCRE2_ERROR_NOMATCH;
    if (got < 1)
        return 0;
    const PCRE2_SIZE *offset = pcre2_get_ovector_pointer(regex->found);
    *whole = *group = (struct regex_span){offset[0], offset[1]};
    uint32_t groups = pcre2_get_ovector_count(regex->found) - 1;
    if (groups)
        *group = (struct regex_span){0, 0};
    for (int i = 1; i < got && group->from == group->to; i++)
        if (offset[2 * i] != PCRE2_UNSET)
            *group = (struct regex_span){offset[2 * i], offset[2 * i + 1]};
    return 1;
}

int regex_gave_up(const struct regex *regex)
{
    return regex->gave_up;
}

void regex_replace(struct regex *regex, const char *by, struct buf *text)
{
    struct buf out = {0};
    struct regex_span whole = {0, 0}, group;
    size_t done = 0;
    for (int again = 0;
         text->len && regex_next(regex, text->data, text->len, again, &whole, &group); again = 1) {
        buf_put(&out, text->data + done, whole.from - done);
        buf_text(&out, by);
        done = whole.to;
    }
    if (text->len)
        buf_put(&out, text->data + done, text->len - done);
    buf_free(text);
    *text = out;
}
