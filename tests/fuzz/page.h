/* page.h - reads the output of report as strictly as browsers, LaTeX and spreadsheets do: no text
 * of a record may become a tag, a command or a cell. */
#pragma once

#include <ctype.h>

#include "tests/fuzz/mutate.h"

enum { PAGE_DEPTH = 64, PAGE_NAME = 24 };

/* Returns the end of the tag that begins here, or NULL if it does not end. Quoted values may
 * contain anything. */
static inline const char *page_tag_end(const char *s)
{
    char quote = 0;
    for (; *s && (quote || *s != '>'); s++) {
        fuzz_check(quote || *s != '<');
        quote = !quote && (*s == '"' || *s == '\'') ? *s : *s == quote ? 0 : quote;
    }
    return *s ? s : NULL;
}

/* Checks that every tag ends, and that opened tags are closed in their order. */
static inline void page_check_html(const char *s)
{
    static const char *const empty[] = {"meta", "br", "img", "hr", "link", "col", "input"};
    char open[PAGE_DEPTH][PAGE_NAME];
    size_t depth = 0;
    while ((s = strchr(s, '<'))) {
        char name[PAGE_NAME] = "";
        int closes = s[1] == '/';
        s += 1 + closes;
        if (*s == '!') {
            fuzz_check((s = strchr(s, '>')));
            continue;
        }
        for (size_t n = 0; isalnum((unsigned char)*s) && n + 1 < PAGE_NAME; s++)
            name[n++] = *s;
        fuzz_check(*name && strcmp(name, "xss"));
        fuzz_check((s = page_tag_end(s)));
        int alone = s[-1] == '/';
        for (size_t i = 0; i < sizeof empty / sizeof *empty; i++)
            alone |= !strcmp(name, empty[i]);
        if (closes)
            fuzz_check(depth && !strcmp(open[--depth], name));
        else if (!alone)
            fuzz_check(depth < PAGE_DEPTH && strcpy(open[depth++], name));
        if (!closes && (!strcmp(name, "script") || !strcmp(name, "style"))) {
            char *end = mem_format("</%s>", name);
            fuzz_check((s = strstr(s, end)));
            free(end);
        }
    }
    fuzz_check(depth == 0);
}

/* Checks that the data in the page are JSON. */
static inline void page_check_data(const char *html)
{
    static const char begin[] = "<script type=\"application/json\"";
    while ((html = strstr(html, begin))) {
        const char *from = strchr(html, '>') + 1, *to = strstr(from, "</script>");
        json_t *j = json_loadb(from, (size_t)(to - from), JSON_ALLOW_NUL, NULL);
        fuzz_check(j);
        json_decref(j);
        html = to;
    }
}

/* Returns the number of columns of a line of Markdown; 0 if it is no row. */
static inline size_t page_columns(const char *line, const char *end)
{
    size_t bars = 0;
    for (const char *c = line; *line == '|' && c < end; c++)
        if (*c == '\\')
            c++;
        else
            bars += *c == '|';
    return bars;
}

/* Checks that rows of a table have as many cells as its head, and that the text has no HTML tag. */
static inline void page_check_markdown(const char *s)
{
    size_t before = 0;
    for (const char *end; *s; s = *end ? end + 1 : end) {
        end = strchr(s, '\n');
        end = end ? end : strchr(s, 0);
        size_t columns = page_columns(s, end);
        fuzz_check(!before || !columns || columns == before);
        before = columns;
        for (const char *x = s; (x = strstr(x, "<xss")) && x < end; x++)
            fuzz_check(x > s && x[-1] == '\\');
    }
}

/* Checks that braces are closed, and that no text is a command. */
static inline void page_check_latex(const char *s)
{
    long depth = 0;
    fuzz_check(!strstr(s, "\\xss"));
    for (; *s; s++) {
        if (*s == '\\' && s[1])
            s++;
        else
            depth += (*s == '{') - (*s == '}');
        fuzz_check(depth >= 0);
    }
    fuzz_check(depth == 0);
}

/* Checks that rows of a table with tabs have as many columns as the first row of their block. */
static inline void page_check_columns(const char *s)
{
    size_t before = 0;
    for (const char *end; *s; s = *end ? end + 1 : end) {
        size_t columns = 1;
        end = strchr(s, '\n');
        end = end ? end : strchr(s, 0);
        for (const char *c = s; c < end; c++)
            columns += *c == '\t';
        if (end == s || *s == '#')
            columns = 0;
        fuzz_check(!before || !columns || columns == before);
        before = columns;
    }
}
