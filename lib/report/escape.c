/* escape.c - escapes texts of records; see escape.h. Each format has a table or a rule for every
 * character with a special meaning in the format. Control characters are replaced before, so that a
 * rule sees only text. */
#include "lib/report/escape.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/words/display.h"

struct escape_pair { const char *from, *to; };

/* Appends bytes, with each `from` of the table words[] replaced by its `to`. */
static void replace(struct buf *text, const char *bytes, const struct escape_pair *words)
{
    char *clean = display_cleaned(bytes, ESCAPE_MAX);
    for (const char *c = clean; *c;) {
        const struct escape_pair *pair = words;
        while (pair->from && strncmp(c, pair->from, strlen(pair->from)))
            pair++;
        if (pair->from)
            buf_text(text, pair->to);
        else
            buf_char(text, *c);
        c += pair->from ? strlen(pair->from) : 1;
    }
    free(clean);
}

void escape_html(struct buf *text, const char *bytes)
{
    static const struct escape_pair words[] = {{"&", "&amp;"},  {"<", "&lt;"},  {">", "&gt;"},
                                        {"\"", "&quot;"}, {"'", "&#39;"}, {NULL, NULL}};
    replace(text, bytes, words);
}

void escape_latex(struct buf *text, const char *bytes)
{
    static const struct escape_pair words[] = {
        {"\\", "\\textbackslash{}"}, {"{", "\\{"},        {"}", "\\}"},
        {"$", "\\$"},                {"&", "\\&"},        {"#", "\\#"},
        {"%", "\\%"},                {"_", "\\_"},        {"^", "\\textasciicircum{}"},
        {"~", "\\textasciitilde{}"}, {"<", "\\textless{}"}, {">", "\\textgreater{}"},
        {"|", "\\textbar{}"},        {"\"", "\\textquotedbl{}"}, {"'", "\\textquotesingle{}"},
        {"`", "\\textasciigrave{}"}, {"[", "{[}"},        {"]", "{]}"},
        {"-", "{-}"},                {"–", "--"},         {"…", "\\dots{}"},
        {"→", "$\\rightarrow$"},     {"µ", "\\textmu{}"}, {"×", "$\\times$"},
        {"“", "``"},                 {"”", "''"},         {"\xEF\xBF\xBD", "?"},
        {NULL, NULL}};
    replace(text, bytes, words);
}

/* Escapes the characters that can have a meaning anywhere in a line, and at the start of the line
 * also "-", "+", "=" and "1." or "1)". */
void escape_markdown(struct buf *text, const char *bytes)
{
    char *clean = display_cleaned(bytes, ESCAPE_MAX);
    size_t digits = strspn(clean, "0123456789");
    for (const char *c = clean; *c; c++) {
        int inside = strchr("\\`*_[]<>|#&~$", *c) != NULL;
        int first = c == clean && strchr("-+=", *c);
        int number = c == clean + digits && digits && strchr(".)", *c) && (!c[1] || c[1] == ' ');
        if (inside || first || number)
            buf_char(text, '\\');
        buf_char(text, *c);
    }
    free(clean);
}

void escape_csv(struct buf *text, const char *bytes)
{
    char *clean = display_cleaned(bytes, ESCAPE_MAX);
    int quoted = strpbrk(clean, "\",") || *clean == ' ';
    if (quoted)
        buf_char(text, '"');
    if (*clean && strchr("=+-@", *clean))
        buf_char(text, '\'');
    for (const char *letter = clean; *letter; letter++) {
        if (*letter == '"')
            buf_char(text, '"');
        buf_char(text, *letter);
    }
    if (quoted)
        buf_char(text, '"');
    free(clean);
}

static void put_percent(struct buf *text, const char *bytes, const char *safe)
{
    for (const unsigned char *c = (const unsigned char *)bytes; *c; c++) {
        if (isalnum(*c) || strchr(safe, *c))
            buf_char(text, (char)*c);
        else
            buf_format(text, "%%%02X", *c);
    }
}

void escape_link(struct buf *text, const char *bytes)
{
    put_percent(text, bytes, "-._~/,=+@");
}

void escape_data_link(struct buf *text, const char *type, const char *bytes)
{
    buf_format(text, "data:%s;charset=utf-8,", type);
    put_percent(text, bytes, "-._~,");
}
