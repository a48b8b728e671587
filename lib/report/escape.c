/* escape.c - see escape.h. Each format has a table or a rule for every character with a special
 * meaning. Control characters are replaced first, so that a rule sees only text. */
#include "lib/report/escape.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/words/display.h"

struct escape_pair { const char *from, *to; };

/* Copies s; a `from` of the table is replaced by its `to`. */
static void replace(struct buf *b, const char *s, const struct escape_pair *words)
{
    char *clean = display_cleaned(s, ESCAPE_MAX);
    for (const char *c = clean; *c;) {
        const struct escape_pair *w = words;
        while (w->from && strncmp(c, w->from, strlen(w->from)))
            w++;
        if (w->from)
            buf_text(b, w->to);
        else
            buf_char(b, *c);
        c += w->from ? strlen(w->from) : 1;
    }
    free(clean);
}

void escape_html(struct buf *b, const char *s)
{
    static const struct escape_pair words[] = {{"&", "&amp;"},  {"<", "&lt;"},  {">", "&gt;"},
                                        {"\"", "&quot;"}, {"'", "&#39;"}, {NULL, NULL}};
    replace(b, s, words);
}

void escape_latex(struct buf *b, const char *s)
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
    replace(b, s, words);
}

/* Every character that can mean something inside a line, and what can at its start. */
void escape_markdown(struct buf *b, const char *s)
{
    char *clean = display_cleaned(s, ESCAPE_MAX);
    size_t digits = strspn(clean, "0123456789");
    for (const char *c = clean; *c; c++) {
        int inside = strchr("\\`*_[]<>|#&~$", *c) != NULL;
        int first = c == clean && strchr("-+=", *c);
        int number = c == clean + digits && digits && strchr(".)", *c) && (!c[1] || c[1] == ' ');
        if (inside || first || number)
            buf_char(b, '\\');
        buf_char(b, *c);
    }
    free(clean);
}

void escape_csv(struct buf *b, const char *s)
{
    char *clean = display_cleaned(s, ESCAPE_MAX);
    int quoted = strpbrk(clean, "\",") || *clean == ' ';
    if (quoted)
        buf_char(b, '"');
    if (*clean && strchr("=+-@", *clean))
        buf_char(b, '\'');
    for (const char *c = clean; *c; c++) {
        if (*c == '"')
            buf_char(b, '"');
        buf_char(b, *c);
    }
    if (quoted)
        buf_char(b, '"');
    free(clean);
}

static void put_percent(struct buf *b, const char *s, const char *safe)
{
    for (const unsigned char *c = (const unsigned char *)s; *c; c++) {
        if (isalnum(*c) || strchr(safe, *c))
            buf_char(b, (char)*c);
        else
            buf_format(b, "%%%02X", *c);
    }
}

void escape_link(struct buf *b, const char *s)
{
    put_percent(b, s, "-._~/,=+@");
}

void escape_data_link(struct buf *b, const char *type, const char *bytes)
{
    buf_format(b, "data:%s;charset=utf-8,", type);
    put_percent(b, bytes, "-._~,");
}
